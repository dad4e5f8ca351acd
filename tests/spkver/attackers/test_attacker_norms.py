"""Normalisation by a cohort in memory: brute force with the standard library, and the same by lists of scores."""

from __future__ import annotations

from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.calibration.cohort_norm import cohort_moments, normalise, s_norm, t_norm, z_norm
from evaluation.trials.lists import Scores
from spkbase.errors import DataError


def brute_force(score: float, cohort: list[float], top: int | None) -> float:
    kept = sorted(cohort, reverse=True)[:top]
    return (score - fmean(kept)) / pstdev(kept)


def full(matrix: np.ndarray, models: list[str], segments: list[str]) -> Scores:
    pairs = [(model, segment) for model in models for segment in segments]
    return Scores.from_ids(*map(list, zip(*pairs, strict=True)), values=matrix.reshape(-1))


@pytest.mark.parametrize("top", [None, 2, 5, 100])
def test_norms_are_what_they_are_defined_as(top):
    rng = np.random.default_rng(0)
    values, against_models, against_segments = (rng.normal(3, 2, shape) for shape in ((4, 6), (4, 9), (6, 7)))
    models, segments = list("abcd"), list("stuvwx")
    trials = full(values, models, segments)
    # a sparse list in an order of its own
    trials = trials.subset(rng.permutation(len(trials))[:15])
    model_side = cohort_moments(against_models, models, top=top)
    segment_side = cohort_moments(against_segments, segments, top=top)
    z = normalise(trials, models=model_side)
    t = normalise(trials, segments=segment_side)
    s = normalise(trials, models=model_side, segments=segment_side)
    for row, (model, segment) in enumerate(trials.pairs()):
        m, x = models.index(model), segments.index(segment)
        by_model = brute_force(values[m, x], list(against_models[m]), top)
        by_segment = brute_force(values[m, x], list(against_segments[x]), top)
        assert z.values[row] == pytest.approx(by_model, rel=1e-12)
        assert t.values[row] == pytest.approx(by_segment, rel=1e-12)
        assert s.values[row] == pytest.approx((by_model + by_segment) / 2, rel=1e-12)
    assert list(s.pairs()) == list(trials.pairs())


@pytest.mark.parametrize("top", [None, 3])
def test_norms_by_matrices_are_those_by_lists(top):
    rng = np.random.default_rng(1)
    models, segments, cohort = list("abc"), list("stuv"), list("klmnop")
    scores = full(rng.normal(size=(3, 4)), models, segments)
    against_models, against_segments = rng.normal(size=(3, 6)), rng.normal(size=(4, 6))
    model_cohort = full(against_models, models, cohort)
    segment_cohort = full(against_segments.T, cohort, segments)
    z, t = cohort_moments(against_models, models, top=top), cohort_moments(against_segments, segments, top=top)
    for ours, theirs in (
        (normalise(scores, models=z), z_norm(scores, model_cohort, top=top)),
        (normalise(scores, segments=t), t_norm(scores, segment_cohort, top=top)),
        (normalise(scores, models=z, segments=t), s_norm(scores, model_cohort, segment_cohort, top=top)),
    ):
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12)


def test_without_moments_nothing_happens():
    scores = full(np.arange(4.0).reshape(2, 2), ["a", "b"], ["s", "t"])
    assert normalise(scores) is scores


@given(
    st.lists(st.floats(-100, 100, width=16), min_size=3, max_size=12, unique=True),
    st.floats(0.5, 8, width=16),
    st.floats(-50, 50, width=16),
)
def test_a_change_of_scale_and_place_of_all_scores_changes_nothing(cohort, factor, shift):
    if max(cohort) - min(cohort) < 1e-2:
        return
    trial = Scores.from_ids(["m"], ["s"], [1.5])
    moved = Scores.from_ids(["m"], ["s"], [1.5 * factor + shift])
    before = normalise(trial, models=cohort_moments(np.array([cohort]), ["m"]))
    after = normalise(moved, models=cohort_moments(np.array([cohort]) * factor + shift, ["m"]))
    np.testing.assert_allclose(after.values, before.values, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("cohort", "message"),
    [
        ([[1.0], [2.0]], "the cohort has 1 members: a deviation needs 2"),
        (np.empty((2, 0)), "the cohort has 0 members"),
        ([[1.0, 2.0], [0.3, 0.3]], "1 with equal cohort scores alone, 'm2' among them"),
        ([[1.0, 2.0], [1.0, np.nan]], "1 with equal cohort scores alone, 'm2' among them"),
    ],
)
def test_cohorts_that_give_no_deviation(cohort, message):
    with pytest.raises(DataError, match=message):
        cohort_moments(np.asarray(cohort, float), ["m1", "m2"])
