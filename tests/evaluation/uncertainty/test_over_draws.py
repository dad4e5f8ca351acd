"""Intervals of a mean over draws: the parts of the variance, how they widen an interval, and how often it holds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from benchmarks.coverage_draws import metrics, repeat, simulate
from evaluation.metrics import Method, method_of
from evaluation.uncertainty import (
    Resampling,
    confidence_intervals,
    draw_variance,
    interval,
    interval_over_draws,
    widening,
)
from spkbase.errors import DataError

IDENTITY = Method("identity")


def test_the_parts_of_the_variance_are_those_of_a_two_way_table() -> None:
    """Oracle: mean squares of the table of speakers and draws, for the mean of its cells under all resamples."""
    rng = np.random.default_rng(1)
    n_speakers, n_draws = 6, 3
    cells = rng.standard_normal((n_draws, n_speakers))
    # multinomial weights have variance 1 - 1/P and covariance -1/P: enough of them come close
    weights = rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), 200_000) / n_speakers
    speakers, draws = draw_variance(cells.mean(axis=1), cells @ weights.T, n_units=n_speakers)
    of_speakers = cells.mean(axis=0).var(ddof=1) / n_speakers
    residuals = cells - cells.mean(axis=0) - cells.mean(axis=1, keepdims=True) + cells.mean()
    interaction = np.square(residuals).sum() / ((n_speakers - 1) * (n_draws - 1)) / (n_speakers * n_draws)
    of_draws = cells.mean(axis=1).var(ddof=1) / n_draws
    assert_allclose(speakers, of_speakers, rtol=0.01)
    assert_allclose(draws, max(0.0, of_draws - interaction), atol=0.003)
    shifted = cells + np.array([[0.0], [3.0], [-3.0]])  # what draws share moves their part alone
    again = draw_variance(shifted.mean(axis=1), shifted @ weights.T, n_units=n_speakers)
    assert_allclose(again[0], speakers, rtol=1e-9)
    assert_allclose(again[1], shifted.mean(axis=1).var(ddof=1) / n_draws - interaction, atol=0.003)


def test_an_interval_becomes_as_much_wider_as_the_variance_and_the_degrees_of_freedom_say() -> None:
    ratio = float(widening(2.0, 6.0, n_units=11, n_draws=3, level=0.95))
    freedom = 8**2 / (2**2 / 10 + 6**2 / 2)
    assert_allclose(ratio, 2 * stats.t.ppf(0.975, freedom) / stats.t.ppf(0.975, 10))
    found = widening([0.0, 1.0, 1.0, np.inf], [1.0, 0.0, np.nan, 1.0], n_units=11, n_draws=3, level=0.95)
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_draws_that_differ_widen_the_interval_about_the_mean() -> None:
    resampled = np.tile(np.random.default_rng(0).normal(0.2, 0.01, 400), (3, 1))
    alone = interval(0.2, resampled[0], method=IDENTITY, n_units=50)
    alike = interval_over_draws([0.2, 0.2, 0.2], resampled, method=IDENTITY, n_units=50)
    assert_allclose((alike.low, alike.high), (alone.low, alone.high))
    shifts = np.array([[-0.1], [0.0], [0.1]])
    apart = interval_over_draws([0.1, 0.2, 0.3], resampled + shifts, method=IDENTITY, n_units=50)
    assert_allclose(apart.value, 0.2)
    variance = resampled[0].var(ddof=1) * 50 / 49
    ratio = widening(variance, 0.1**2 / 3, n_units=50, n_draws=3, level=0.95)
    assert_allclose(apart.high - apart.value, ratio * (alone.high - alone.value), rtol=1e-9)


def test_two_draws_that_differ_are_not_few_errors() -> None:
    """13 of 70 trials fail, as 10.0 and 26.8 % of two draws; it was "few errors, worth 0.4 independent ones"."""
    rng = np.random.default_rng(0)
    resampled = np.clip(rng.normal(0.184, 0.05, 400) + np.array([[-0.084], [0.084]]), 0.01, 0.6)
    settings = {"method": method_of("eer.rocch"), "n_units": 10, "n_trials": 70}
    found = interval_over_draws([0.1, 0.268], resampled, **settings)  # type: ignore[arg-type]
    assert "few errors" not in found.note
    assert "the 2 draws differ: they make the interval" in found.note
    alike = interval_over_draws([0.184, 0.184], resampled, **settings)  # type: ignore[arg-type]
    assert alike.note == ""
    assert alike.high - alike.low < found.high - found.low
    none = interval_over_draws([0.0, 0.0], np.zeros((2, 400)), **settings)  # type: ignore[arg-type]
    assert "draws differ" not in none.note
    assert "no error" in none.note


def test_draws_of_other_trials_are_refused() -> None:
    one, other = (simulate(np.random.default_rng(0), count, 1, 1.6, 0.0)[0] for count in (5, 6))
    with pytest.raises(DataError, match=r"draw 1.*draw 2"):
        confidence_intervals([one, other], metrics, Resampling(10))


@pytest.mark.slow
@pytest.mark.parametrize("moved", [0.0, 0.25])
def test_intervals_hold_the_true_value_in_nearly_the_share_asked_for(moved: float) -> None:
    """Of 80 repetitions 76 are expected; 69 or fewer are as good as impossible (2 in 1000)."""
    found = [repeat(12, 3, 1.6, moved, 100, seed)["eer.rocch"][0, :2] for seed in range(1000, 1080)]
    assert np.sum(found) <= 10
