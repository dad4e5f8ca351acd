"""Intervals of error rates where errors are few: bounds by speakers, no jumps, the usual ones where they abound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluation.metrics import method_of
from evaluation.uncertainty import interval
from evaluation.uncertainty.intervals import (
    ALONE,
    OF_SPEAKERS,
    PLENTY,
    end_without_error,
    independent_errors,
    rate_interval,
)

KALDI = method_of("eer.kaldi")


@pytest.mark.parametrize(("n_units", "n_trials"), [(5, 35), (23, 184), (100, 300)])
def test_no_error_is_the_rate_at_which_none_is_seen_in_5_percent_of_the_cases(n_units: int, n_trials: int) -> None:
    found = interval(0.0, np.zeros(50), method=KALDI, n_units=n_units, n_trials=n_trials)
    assert found.low == 0
    rng = np.random.default_rng(n_units)
    shape = 20_000, n_units
    limit = (stats.norm.ppf(found.high) + np.sqrt(OF_SPEAKERS) * rng.standard_normal(shape)) / np.sqrt(1 - OF_SPEAKERS)
    seen = rng.binomial(n_trials // n_units, stats.norm.cdf(limit)).sum(axis=1)
    assert np.mean(seen == 0) == pytest.approx(0.05, abs=0.006)
    assert f"no error: a bound from above alone, by {n_units} speakers" in found.note


@pytest.mark.parametrize("n_units", [5, 23, 100])
def test_with_one_trial_a_speaker_no_error_is_the_rule_of_three(n_units: int) -> None:
    found = end_without_error(n_units, n_units)
    assert stats.binom.pmf(0, n_units, found) == pytest.approx(0.05)
    assert found == pytest.approx(3 / n_units, rel=0.3)


@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 16])
@pytest.mark.parametrize(
    ("n_units", "each", "worth"), [(10, 7, 20), (10, 7, 70), (23, 40, 100), (23, 40, 920), (80, 8, 300)]
)
def test_the_upper_end_does_not_fall_as_errors_grow(n_units: int, each: int, worth: int, level: float) -> None:
    """Trials are worth as many throughout; of 920 by 23 speakers it was 12.2 % without an error and 0.8 % of one."""
    shares, sizes = (np.arange(400) + 0.5) / 400, {"n_units": n_units, "n_trials": n_units * each}
    ends = [interval(0.0, np.zeros(50), method=KALDI, level=level, **sizes).high]
    for errors in np.geomspace(0.05, 0.4 * worth, 60).tolist():
        rates = np.maximum(stats.beta.ppf(shares, errors, worth - errors), 0.5 / sizes["n_trials"])
        ends.append(interval(errors / worth, rates, method=KALDI, level=level, **sizes).high)
    assert (np.maximum.accumulate(ends) - ends).max() < 0.001


def draws(rate: float, deviation: float) -> np.ndarray:
    """Resampled rates around a rate, no two alike."""
    return np.clip(rate + deviation * stats.norm.ppf((np.arange(400) + 0.5) / 400), 0, 1)


def test_where_errors_abound_the_interval_is_the_usual_one() -> None:
    rate, deviation = 0.1, 0.02
    assert independent_errors(rate, deviation**2 * 50 / 49, 400) > PLENTY
    found = interval(rate, draws(rate, deviation), method=KALDI, n_units=50, n_trials=400)
    usual = interval(rate, draws(rate, deviation), method=replace(KALDI, of_errors=False), n_units=50, n_trials=400)
    assert (found.low, found.high, found.note) == (usual.low, usual.high, "")


def test_a_jeffreys_interval_of_what_the_resamples_are_worth() -> None:
    """Two independent errors in 40 trials, of 20 speakers: no more and no fewer than the resamples show."""
    low, high = rate_interval(0.05, 0.05 * 0.95 / 40, n_units=20, n_trials=160)
    assert (low, high) == pytest.approx(stats.beta.ppf([0.025, 0.975], 2.5, 38.5), abs=1e-12)


def test_nothing_jumps() -> None:
    """Ends move little when the rate does: from nearly no error to many, through all that is mixed."""
    rates = np.geomspace(1e-3, 0.2, 400)
    ends = []
    for rate in rates.tolist():
        shares = stats.beta.ppf((np.arange(400) + 0.5) / 400, 120 * rate, 120 * (1 - rate))  # worth 120 trials
        found = interval(rate, np.maximum(shares, 0.5 / 240), method=KALDI, n_units=30, n_trials=240)
        assert 0 <= found.low <= rate <= found.high
        ends.append((found.low, found.high))
    low, high = np.array(ends).T
    assert np.abs(np.diff(high)).max() < 0.005
    assert np.abs(np.diff(low)).max() < 0.005
    errors = rates * 120
    assert errors[0] < ALONE < PLENTY < errors[-1]
