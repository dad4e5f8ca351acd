"""A short form of the coverage study, benchmarks/coverage.py: the methods hold, resamples of trials do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks.coverage import MAX_NONTARGET, metrics, simulate, study, true_metrics


def test_true_values_are_those_of_a_large_simulation() -> None:
    """The closed forms against 160,000 independent trials, within a tolerance of 4 standard errors or so."""
    from benchmarks.coverage import OFFSET, SCALE
    from evaluation.metrics.sorted_scores import sort_scores

    rng, d, count = np.random.default_rng(0), 2.0, 80_000
    target, nontarget = (SCALE * (sign * d * d / 2 + d * rng.standard_normal(count)) + OFFSET for sign in (1, -1))
    found, true = metrics(sort_scores(target, nontarget)), true_metrics(d)
    assert true["eer.rocch"] == pytest.approx(ndtr(-1), abs=1e-15)
    for name, value in true.items():
        assert found[name] == pytest.approx(value, abs=0.008), name


def test_simulation_has_the_stated_law() -> None:
    rng, d = np.random.default_rng(0), 2.5
    scores: list[list[np.ndarray]] = [[], []]
    for _ in range(60):
        sample = simulate(rng, 30, (d,))[0]
        assert int((~sample.is_target).sum()) == min(30 * 29 * 8, MAX_NONTARGET)
        scores[0].append((sample.scores[sample.is_target] - 0.3) / 1.3)
        scores[1].append((sample.scores[~sample.is_target] - 0.3) / 1.3)
    for values, sign in zip(map(np.concatenate, scores), (1, -1), strict=True):
        assert values.mean() == pytest.approx(sign * d * d / 2, abs=0.2)
        assert values.std() == pytest.approx(d, abs=0.1)
    # half of the variance of target scores is the speaker's: means of speakers vary by that and little else
    means = [one.mean() for one in scores[0]]
    assert np.std(means) == pytest.approx(d * np.sqrt((0.5 + 0.5 / 8) / 30), rel=0.35)


@pytest.mark.slow
def test_coverage() -> None:
    """20 speakers, 200 repetitions: bounds are 92 to 98 % and two and a half standard errors more on either side."""
    single, _ = study(20, repetitions=200, replicates=150, jobs=2)
    for name in ("eer.interpolated", "eer.rocch", "min_dcf_unnormalised.0.05", "cllr", "min_cllr", "zebra.population"):
        covered, _, by_trial = 1 - single[name].sum(axis=1)
        assert 0.88 <= covered <= 1, name
        assert by_trial < covered - 0.1, name
