"""Intervals of error rates where errors are few: bounds by speakers, no jumps, the usual ones where they abound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluation.metrics import METHODS, method_of
from evaluation.uncertainty.few_errors import ALONE, PLENTY, independent_errors, mixed, rate_interval
from evaluation.uncertainty.intervals import interval

KALDI = method_of("eer.kaldi")


@pytest.mark.parametrize("n_units", [5, 23, 100])
def test_no_error_is_the_rule_of_three_by_speakers(n_units: int) -> None:
    found = interval(0.0, np.zeros(50), method=KALDI, n_units=n_units, n_trials=8 * n_units)
    assert found.low == 0
    # the rate at which all n speakers pass in 5 % of the cases
    assert stats.binom.pmf(0, n_units, found.high) == pytest.approx(0.05)
    assert found.high == pytest.approx(3 / n_units, rel=0.3)
    assert f"no error: a bound from above alone, by {n_units} speakers" in found.note


@pytest.mark.parametrize("reading", METHODS)
def test_every_reading_of_the_eer_has_ends_where_all_resamples_are_alike(reading: str) -> None:
    found = interval(0.0, np.zeros(50), method=method_of(f"eer.{reading}"), n_units=10, n_trials=80)
    assert found.has_interval
    assert not interval(0.0, np.zeros(50), method=method_of("cllr"), n_units=10, n_trials=80).has_interval


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


@pytest.mark.parametrize("deviation", [1e-5, 1e-3])
def test_never_narrower_than_one_error(deviation: float) -> None:
    """Resamples that all but agree: five speakers of seven trials, where one error is 2.9 points."""
    found = interval(0.0066, draws(0.0066, deviation), method=KALDI, n_units=5, n_trials=35)
    assert found.high - found.low >= 1 / 35


def test_mixed_ends_are_continuous() -> None:
    few, usual = (0.01, 0.2), (0.03, 0.1)
    assert mixed(few, usual, ALONE) == few
    assert mixed(few, usual, PLENTY) == usual
    assert mixed(few, usual, ALONE + 1e-9) == pytest.approx(few)
    assert mixed(few, usual, PLENTY - 1e-9) == pytest.approx(usual)
