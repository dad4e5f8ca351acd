"""Score normalisation against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.calibration.cohort_norm import s_norm, t_norm, z_norm
from evaluation.trials import Scores
from spkbase.errors import DataError

MODELS, SEGMENTS, COHORT = ["a", "b", "c"], ["s", "t"], [f"k{number}" for number in range(9)]


def square(rows, columns, seed):
    rng = np.random.default_rng(seed)
    pairs = [(row, column) for row in rows for column in columns]
    rng.shuffle(pairs)
    return Scores.from_ids(*zip(*pairs, strict=True), rng.normal(3, 2, len(pairs)))


def by_pair(scores):
    return dict(zip(scores.pairs(), scores.values.tolist(), strict=True))


def standardised(score, cohort, top):
    best = sorted(cohort)[-top:] if top else cohort
    return (score - np.mean(best)) / np.std(best)


@pytest.fixture
def scores():
    return square(MODELS, SEGMENTS, 0)


@pytest.fixture
def cohorts():
    # the cohort has more models and segments than are asked for
    return square([*MODELS, "x"], COHORT, 1), square(COHORT, [*SEGMENTS, "y"], 2)


@pytest.mark.parametrize("top", [None, 2, 5, 9])
def test_each_norm_equals_a_plain_loop(scores, cohorts, top):
    of_model, of_segment = map(by_pair, cohorts)
    results = [
        z_norm(scores, cohorts[0], top=top),
        t_norm(scores, cohorts[1], top=top),
        s_norm(scores, *cohorts, top=top),
    ]
    for result in results:
        assert list(result.pairs()) == list(scores.pairs())
    for (model, segment), score in by_pair(scores).items():
        z = standardised(score, [of_model[model, one] for one in COHORT], top)
        t = standardised(score, [of_segment[one, segment] for one in COHORT], top)
        assert [by_pair(result)[model, segment] for result in results] == pytest.approx(
            [z, t, (z + t) / 2], rel=1e-12
        )


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_scaling_the_scores_of_one_model_changes_nothing(factor, offset):
    scores, cohort = square(MODELS, SEGMENTS, 0), square(MODELS, COHORT, 1)

    def changed(given):
        mine = np.array([model == "a" for model, _ in given.pairs()])
        values = np.where(mine, factor * given.values + offset, given.values)
        return Scores.from_ids(*zip(*given.pairs(), strict=True), values)

    assert z_norm(changed(scores), changed(cohort)).values == pytest.approx(
        z_norm(scores, cohort).values, abs=1e-9
    )


def test_infinite_scores_stay_infinite(cohorts):
    assert s_norm(Scores.from_ids(["a"], ["s"], [-np.inf]), *cohorts).values.tolist() == [-np.inf]


@pytest.mark.parametrize(
    ("cohort", "top", "words"),
    [
        (square(["a", "b"], COHORT, 1), None, "1 model with fewer than 2 cohort scores: 'c'"),
        (square(COHORT, MODELS, 1), None, "3 models with fewer than 2 .*'model cohort score'"),
        (
            square(MODELS, COHORT, 1),
            10,
            "3 models with fewer than 10 cohort scores.*highest 9 of its",
        ),
        (square(MODELS, COHORT, 1), 1, "expected at least 2"),
        (Scores.from_ids(["a", "a"] * 1, ["k", "l"], [1.0, 1.0]), None, "fewer than 2"),
    ],
)
def test_a_cohort_that_does_not_match_is_refused(scores, cohort, top, words):
    with pytest.raises(DataError, match=words):
        z_norm(scores, cohort, top=top)


@pytest.mark.parametrize(
    ("values", "words"), [([0.1] * 3, "equal"), ([1, 2, np.inf], "an infinite cohort score: 'a'")]
)
def test_a_cohort_without_variance_is_refused(values, words):
    cohort = Scores.from_ids(["a"] * 3, ["k", "l", "m"], values)
    with pytest.raises(DataError, match=words):
        z_norm(Scores.from_ids(["a"], ["s"], [1.0]), cohort)


@pytest.mark.parametrize("norm", ["z_norm", "t_norm", "s_norm"])
def test_cohorts_of_tested_speakers_are_warned_of(norm, caplog):
    """Their own scores, which are high, would count as those of impostors."""
    trials = Scores.from_ids(["a", "b"], ["x", "y"], [2.0, 1.0])
    of_models = Scores.from_ids(["a", "a", "b", "b"], ["x", "c", "x", "c"], [2.0, 0.0, 1.0, 0.5])
    of_segments = Scores.from_ids(["a", "c", "a", "c"], ["x", "x", "y", "y"], [2.0, 0.0, 1.0, 0.5])
    cohorts = {"z_norm": [of_models], "t_norm": [of_segments], "s_norm": [of_models, of_segments]}
    norms = {"z_norm": z_norm, "t_norm": t_norm, "s_norm": s_norm}
    norms[norm](trials, *cohorts[norm])
    text = (
        "1 of 2 {} of the cohort are in the trials too ({}): expected speakers who are not tested"
    )
    expected = {
        "z_norm": [text.format("segments", "'x'")],
        "t_norm": [text.format("models", "'a'")],
    }
    expected["s_norm"] = expected["z_norm"] + expected["t_norm"]
    assert caplog.messages == expected[norm]


def test_enrolled_models_as_segments_of_the_cohort_are_warned_of(caplog):
    trials = Scores.from_ids(["a"], ["x"], [2.0])
    z_norm(trials, Scores.from_ids(["a", "a"], ["a", "c"], [9.0, 0.0]))
    assert "1 of 2 segments of the cohort are in the trials too ('a')" in caplog.text


def test_cohorts_of_other_speakers_are_not_warned_of(caplog):
    trials = Scores.from_ids(["a"], ["x"], [2.0])
    of_models = Scores.from_ids(["a", "a"], ["c", "d"], [1.0, 0.0])
    of_segments = Scores.from_ids(["c", "d"], ["x", "x"], [1.0, 0.0])
    s_norm(trials, of_models, of_segments)
    assert not caplog.messages
