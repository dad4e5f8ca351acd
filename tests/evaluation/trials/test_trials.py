"""Trials, keys and scores, and their join by id pair."""

from __future__ import annotations

import logging
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.trials import Key, Scores, Trials, align, find_rows, lists, split_scores
from spkbase.errors import DataError

ids = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=3)
pair_lists = st.lists(st.tuples(ids, ids), min_size=1, max_size=30, unique=True)


def table(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


@given(pair_lists)
def test_from_ids_keeps_pairs_and_order_and_sorts_tables(listed: list[tuple[str, str]]) -> None:
    trials = Trials.from_ids(*zip(*listed, strict=True))
    assert list(trials.pairs()) == listed
    assert len(trials) == len(listed)
    assert trials.model_ids.tolist() == sorted({model for model, _ in listed})
    assert trials.segment_ids.tolist() == sorted({segment for _, segment in listed})
    assert trials.models.dtype == trials.segments.dtype == np.int32


def test_numpy_strings_make_the_same_list() -> None:
    trials = Trials.from_ids(np.array(["b", "a"]), np.array(["s", "s"]))
    assert list(trials.pairs()) == [("b", "s"), ("a", "s")]
    assert all(type(one) is str for one in trials.model_ids)


def test_subset_keeps_tables_and_all_columns() -> None:
    key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], [True, False, False], types=["TC", "IC", "TW"])
    part = key.subset(np.array([False, True, True]))
    assert isinstance(part, Key)
    assert part.model_ids.tolist() == ["a", "b"]
    assert list(part.pairs()) == [("a", "t"), ("b", "s")]
    assert part.is_target.tolist() == [False, False]
    assert [part.type_names[code] for code in part.types] == ["IC", "TW"]
    assert list(key.of_types("TC", "TW").pairs()) == [("a", "s"), ("b", "s")]
    assert type(key.trials()) is Trials
    assert list(key.trials().pairs()) == list(key.pairs())


def test_lists_cannot_be_changed_and_leave_the_callers_arrays_writable() -> None:
    values = np.array([1.0, 2.0])
    scores = Scores.from_ids(["a", "b"], ["s", "s"], values)
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 3.0
    values[0] = 5.0  # ours to change


def test_lists_survive_the_way_to_a_worker() -> None:
    key = pickle.loads(pickle.dumps(Key.from_ids(["a", "b"], ["s", "s"], [True, False])))
    assert list(key.pairs()) == [("a", "s"), ("b", "s")]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Trials.from_ids(["a", "b", "a"], ["s", "s", "s"]), "'a s' is repeated"),
        (lambda: Trials.from_ids(["a", ""], ["s", "s"]), "not empty"),
        (lambda: Trials.from_ids(["a", 3], ["s", "s"]), "strings"),
        (lambda: Trials.from_ids([b"a"], ["s"]), "strings"),
        (lambda: Trials.from_ids(["a"], ["s", "t"]), "as many models as segments"),
        (lambda: Trials(table("a", "a"), table("s"), np.array([0]), np.array([0])), "'a' is repeated"),
        (lambda: Trials(table("a"), table("s"), np.array([1]), np.array([0])), "models from 0 to 0, got 1"),
        (lambda: Trials(table("a"), table("s"), np.array([0]), np.array([-1])), "segments from 0 to 0, got -1"),
        (lambda: Trials(table("a"), table("s"), np.array([0.0]), np.array([0])), "integers"),
        (lambda: Trials(table("a"), table("s"), np.array([[0]]), np.array([0])), "shape"),
        (lambda: Key.from_ids(["a"], ["s"], [True, False]), "is_target of shape"),
        (
            lambda: Key(table("a"), table("s"), np.array([0]), np.array([0]), np.array([True]), np.array([1]), ("TC",)),
            "types",
        ),
        (lambda: Key.from_ids(["a"], ["s"], [True], types=["TC"]).of_types("TC", "XX"), "among TC, got .'XX'"),
        (lambda: Key.from_ids(["a"], ["s"], [True]).of_types("TC"), "none"),
        (lambda: Scores.from_ids(["a"], ["s"], [float("nan")]), "1 score not a number .*'a s'"),
        (lambda: Scores.from_ids(["a"], ["s"], [1.0, 2.0]), "values of shape"),
    ],
)
def test_malformed_lists_are_refused(build, words: str) -> None:
    with pytest.raises(DataError, match=words):
        build()


@given(pair_lists, st.randoms(use_true_random=False), st.booleans())
def test_split_joins_by_pair_whatever_the_order(listed, random, large: bool) -> None:
    """Against a dictionary, with both ways of the join."""
    truth = {pair: random.random() < 0.5 for pair in listed}
    value = {pair: random.gauss(0, 1) for pair in listed}
    shuffled = random.sample(listed, len(listed))
    key = Key.from_ids(*zip(*listed, strict=True), [truth[pair] for pair in listed])
    scores = Scores.from_ids(*zip(*shuffled, strict=True), [value[pair] for pair in shuffled])
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(lists, "_MAX_CELLS", -1)  # then only lists of many trials go through a table
        target, nontarget = split_scores(scores, key)
        aligned = align(scores, key)
    assert target.tolist() == [value[pair] for pair in listed if truth[pair]]
    assert nontarget.tolist() == [value[pair] for pair in listed if not truth[pair]]
    assert aligned.tolist() == [value[pair] for pair in listed]


def test_sparse_join_equals_table_join(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    names = np.array([f"i{number:04d}" for number in range(3000)], dtype=object)
    cells = rng.choice(9_000_000, 5000, replace=False)
    within = Trials(names, names, cells[:4000] // 3000, cells[:4000] % 3000)
    trials = Trials(names, names, cells[1000:] // 3000, cells[1000:] % 3000)
    expected = [*range(1000, 4000), *[-1] * 1000]
    assert find_rows(trials, within).tolist() == expected
    monkeypatch.setattr(lists, "_MAX_CELLS", 0)
    assert find_rows(trials, within).tolist() == expected
    nothing = within.subset(np.zeros(4000, bool))
    assert find_rows(trials, nothing).tolist() == [-1] * 4000
    with pytest.raises(DataError, match="is repeated"):
        Trials(names, names, np.array([5, 2999, 5]), np.array([7, 2999, 7]))


def test_a_missing_score_is_an_error_that_names_it() -> None:
    key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], [True, False, False])
    scores = Scores.from_ids(["b", "a"], ["s", "s"], [1.0, 2.0])
    with pytest.raises(DataError, match=r"1 trial of 3 without a score: 'a t'"):
        split_scores(scores, key)
    with pytest.raises(DataError, match="'a t'"):
        align(scores, key)


def test_missing_scores_are_dropped_and_counted_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], [True, False, False])
    scores = Scores.from_ids(["b", "a"], ["s", "s"], [1.0, 2.0])
    with caplog.at_level(logging.WARNING, "evaluation"):
        target, nontarget = split_scores(scores, key, missing="drop")
    assert (target.tolist(), nontarget.tolist()) == ([2.0], [1.0])
    assert "dropped 1 trial of 3" in caplog.text


def test_a_renamed_id_is_an_error_that_names_it_and_not_a_shifted_join() -> None:
    key = Key.from_ids(["a", "b"], ["s", "s"], [True, False])
    scores = Scores.from_ids(["a", "bb"], ["s", "s"], [2.0, 1.0])
    with pytest.raises(DataError, match=r"does not know, such as the model 'bb': 'bb s'"):
        split_scores(scores, key)
    target, nontarget = split_scores(scores, key, missing="drop")
    assert (target.tolist(), nontarget.tolist()) == ([2.0], [])


def test_a_key_may_ask_for_some_of_the_scored_pairs(caplog: pytest.LogCaptureFixture) -> None:
    scores = Scores.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [1.0, 2.0, 3.0, 4.0])
    key = Key.from_ids(["b", "a"], ["s", "t"], [True, False])
    with caplog.at_level(logging.INFO, "evaluation"):
        assert [part.tolist() for part in split_scores(scores, key)] == [[3.0], [2.0]]
    assert "left out 2 scores" in caplog.text


def test_split_refuses_an_unknown_choice() -> None:
    key, scores = Key.from_ids(["a"], ["s"], [True]), Scores.from_ids(["a"], ["s"], [1.0])
    with pytest.raises(DataError, match="'ignore'"):
        split_scores(scores, key, missing="ignore")  # type: ignore[arg-type]


def test_infinite_scores_are_legal() -> None:
    key = Key.from_ids(["a", "b"], ["s", "s"], [True, False])
    scores = Scores.from_ids(["a", "b"], ["s", "s"], [np.inf, -np.inf])
    assert [part.tolist() for part in split_scores(scores, key)] == [[np.inf], [-np.inf]]


@pytest.mark.slow
def test_a_join_of_600_000_trials_takes_less_than_a_second() -> None:
    rng = np.random.default_rng(0)
    models = np.array([f"m{number}" for number in range(1710)], dtype=object)
    segments = np.array([f"s{number}" for number in range(10244)], dtype=object)
    cells = rng.choice(1710 * 10244, 600_000, replace=False)
    scores = Scores(models, segments, cells // 10244, cells % 10244, rng.normal(size=600_000))
    key = Key(models, segments, cells[::-1] // 10244, cells[::-1] % 10244, rng.random(600_000) < 0.02)
    started = time.perf_counter()
    split_scores(scores, key)
    assert time.perf_counter() - started < 1
