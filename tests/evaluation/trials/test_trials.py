"""Trials, keys and scores, and their join by id pair."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.trials import Key, Scores, Trials, align, find_rows, match_ids, split_scores
from spkbase.errors import DataError

ids = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=3)
pair_lists = st.lists(st.tuples(ids, ids), min_size=1, max_size=30, unique=True)


def table(*names):
    return np.array(names, dtype=object)


@given(pair_lists)
def test_from_ids_keeps_pairs_in_order_and_sorts_the_id_tables(listed):
    trials = Trials.from_ids(*zip(*listed, strict=True))
    assert list(trials.pairs()) == listed
    assert len(trials) == len(listed)
    assert trials.model_ids.tolist() == sorted({model for model, _ in listed})
    assert trials.segment_ids.tolist() == sorted({segment for _, segment in listed})
    assert trials.models.dtype == trials.segments.dtype == np.int32


def test_a_subset_keeps_id_tables_and_all_columns():
    key = Key.from_ids(
        ["a", "a", "b"], ["s", "t", "s"], [True, False, False], types=["TC", "IC", "TW"]
    )
    part = key.subset(np.array([False, True, True]))
    assert isinstance(part, Key)
    assert part.model_ids.tolist() == ["a", "b"]
    assert list(part.pairs()) == [("a", "t"), ("b", "s")]
    assert part.is_target.tolist() == [False, False]
    assert [part.type_names[code] for code in part.types] == ["IC", "TW"]
    assert list(key.of_types("TC", "TW").pairs()) == [("a", "s"), ("b", "s")]
    assert type(key.trials()) is Trials
    assert list(key.trials().pairs()) == list(key.pairs())


def test_lists_are_immutable_and_leave_input_arrays_writable():
    values = np.array([1.0, 2.0])
    scores = Scores.from_ids(["a", "b"], ["s", "s"], values)
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 3.0
    values[0] = 5.0  # a copy, which may be changed


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Trials.from_ids(["a", "b", "a"], ["s", "s", "s"]), "'a s' is repeated"),
        (lambda: Trials.from_ids(["a", ""], ["s", "s"]), "not empty"),
        (lambda: Trials.from_ids(["a", 3], ["s", "s"]), "strings"),
        (lambda: Trials.from_ids([b"a"], ["s"]), "strings"),
        (lambda: Trials.from_ids(["a"], ["s", "t"]), "segments of shape"),
        (
            lambda: Trials(table("a", "a"), table("s"), np.array([0]), np.array([0])),
            "'a' is repeated",
        ),
        (
            lambda: Trials(table("a"), table("s"), np.array([1]), np.array([0])),
            "models from 0 to 0, got 1",
        ),
        (
            lambda: Trials(table("a"), table("s"), np.array([0]), np.array([-1])),
            "segments from 0 to 0, got -1",
        ),
        (lambda: Trials(table("a"), table("s"), np.array([0.0]), np.array([0])), "integers"),
        (lambda: Trials(table("a"), table("s"), np.array([[0]]), np.array([0])), "shape"),
        (lambda: Key.from_ids(["a"], ["s"], [True, False]), "is_target of shape"),
        (
            lambda: Key(
                table("a"),
                table("s"),
                np.array([0]),
                np.array([0]),
                np.array([True]),
                np.array([1]),
                ("TC",),
            ),
            "types",
        ),
        (
            lambda: Key.from_ids(["a"], ["s"], [True], types=["TC"]).of_types("TC", "XX"),
            "out of TC, got .'XX'",
        ),
        (lambda: Key.from_ids(["a"], ["s"], [True]).of_types("TC"), "none"),
        (lambda: Scores.from_ids(["a"], ["s"], [float("nan")]), "1 score not a number .*'a s'"),
        (lambda: Scores.from_ids(["a"], ["s"], [1.0, 2.0]), "values of shape"),
    ],
)
def test_malformed_lists_are_refused(build, words):
    with pytest.raises(DataError, match=words):
        build()


@given(pair_lists, pair_lists, st.integers(0, 2))
def test_rows_of_pairs_are_found(some, others, every):
    """Also of lists without trials, of ids that the other list lacks, and of new pairs of ids that it has."""
    listed = some[:: every + 1] if every else []
    crossed = [(model, segment) for (model, _), (_, segment) in zip(some, some[::-1], strict=True)]
    for wanted in (list(dict.fromkeys([*some[::-1], *others, *crossed])), []):
        pairs = (np.array(both, object).reshape(-1, 2) for both in (wanted, listed))
        asked, within = (Trials.from_ids(*both.T) for both in pairs)
        found = find_rows(asked, within)
        assert found.dtype.kind == "i"
        assert found.tolist() == [listed.index(pair) if pair in listed else -1 for pair in wanted]


@given(pair_lists, st.randoms(use_true_random=False))
def test_split_scores_joins_by_pair_in_any_order(listed, random):
    """Against a dictionary."""
    truth = {pair: random.random() < 0.5 for pair in listed}
    value = {pair: random.gauss(0, 1) for pair in listed}
    shuffled = random.sample(listed, len(listed))
    key = Key.from_ids(*zip(*listed, strict=True), [truth[pair] for pair in listed])
    scores = Scores.from_ids(*zip(*shuffled, strict=True), [value[pair] for pair in shuffled])
    target, nontarget = split_scores(scores, key)
    assert target.tolist() == [value[pair] for pair in listed if truth[pair]]
    assert nontarget.tolist() == [value[pair] for pair in listed if not truth[pair]]
    assert align(scores, key).tolist() == [value[pair] for pair in listed]


KEY = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], [True, False, False])


@pytest.mark.parametrize(
    ("models", "segments", "words", "kept"),
    [
        (["b", "a"], ["s", "s"], "1 trial of 3 without a score: 'a t'", ([2.0], [1.0])),
        (
            ["bb", "a"],
            ["s", "s"],
            "1 score with an id .*, such as the model 'bb': 'bb s'",
            ([2.0], []),
        ),
        (
            ["b", "a"],
            ["ss", "s"],
            "1 score with an id .*, such as the segment 'ss': 'b ss'",
            ([2.0], []),
        ),
    ],
)
def test_unmatched_trials_are_an_error_or_dropped_and_counted(
    models, segments, words, kept, caplog
):
    scores = Scores.from_ids(models, segments, [1.0, 2.0])
    with pytest.raises(DataError, match=words):
        split_scores(scores, KEY)
    with pytest.raises(DataError, match="without a score: 'a t'"):
        align(scores, KEY)
    with caplog.at_level(logging.WARNING, "evaluation"):
        assert tuple(part.tolist() for part in split_scores(scores, KEY, missing="drop")) == kept
    assert "dropped 1 " in caplog.text
    with pytest.raises(DataError, match="'ignore'"):
        split_scores(scores, KEY, missing="ignore")


def test_a_key_may_select_some_of_the_scored_pairs(caplog):
    scores = Scores.from_ids(
        ["a", "a", "b", "b"], ["s", "t", "s", "t"], [1.0, np.inf, -np.inf, 4.0]
    )
    key = Key.from_ids(["b", "a"], ["s", "t"], [True, False])
    with caplog.at_level(logging.INFO, "evaluation"):
        assert [part.tolist() for part in split_scores(scores, key)] == [[-np.inf], [np.inf]]
    assert "2 of 4 scores belong to pairs that the key lacks" in caplog.text


SPELLINGS = {
    "VoxCeleb": "{}/{}/{}.wav",
    "SpeechBrain": "{}/{}/{}",
    "Kaldi": "{}-{}-{}",
    "underscores": "{}_{}_{}.FLAC",
}


@pytest.mark.parametrize("own", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("other", SPELLINGS.values(), ids=SPELLINGS)
def test_equivalent_spellings_of_ids_match(own, other):
    parts = [
        ("id10270", "x6uYqmx31kE", "00001"),
        ("id10270", "5r0dW-C8", "00002"),
        ("id10271", "1gtz_CUIygI", "00001"),
    ]
    ours, theirs = ([spelling.format(*one) for one in parts] for spelling in (own, other))
    key = Key.from_ids(theirs, theirs[::-1], [True, False, False])
    scores = match_ids(
        Scores.from_ids([*ours, "stranger"], [*ours[::-1], ours[0]], [2.0, 1.0, -1.0, 0.5]), key
    )
    assert list(scores.pairs())[:3] == list(key.pairs())
    assert scores.model_ids[scores.models[3]] == "stranger"
    with pytest.raises(
        DataError,
        match="1 score with an id that the key does not know, such as the model 'stranger'",
    ):
        split_scores(scores, key)


@pytest.mark.parametrize("side", ["scores", "key"])
def test_ids_that_would_become_equal_are_refused(side):
    lists = {
        "scores": Scores.from_ids(["m", "m"], ["a-1", "b"], [1.0, 0.0]),
        "key": Key.from_ids(["m", "m"], ["a/1.wav", "b"], [True, False]),
    }
    assert match_ids(**lists).segment_ids.tolist() == ["a/1.wav", "b"]
    lists[side] = lists[side].from_ids(["m", "m"], ["a_1", "a-1.flac"], [1, 0])
    with pytest.raises(
        DataError,
        match=r"segment_ids: 'a-1.flac' and 'a_1' are one if /, -, _ and extensions do not",
    ):
        match_ids(**lists)
