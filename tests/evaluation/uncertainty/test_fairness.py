"""Fairness: ratios and GARBE against loops, one threshold for all groups, and intervals that hold equal groups."""

import itertools

import numpy as np
import pytest

from evaluation.metrics import equal_error
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import (
    Resampling,
    garbe,
    gini,
    group_fairness,
    largest_rate,
    sample_of,
    worst_ratio,
)
from spkbase.errors import DataError


def grouped(shifts, *, n_speakers=40, seed=0):
    """A cross of speakers whose target scores depend on their group."""
    rng = np.random.default_rng(seed)
    models, segments = np.divmod(np.arange(n_speakers**2), n_speakers)
    groups = np.where(models % len(shifts) == segments % len(shifts), models % len(shifts), -1)
    is_target = models == segments
    scores = np.round(rng.normal(size=len(models)), 1)
    scores[is_target] += 1.5 + np.array(shifts)[models[is_target] % len(shifts)]
    names = np.array([f"s{number:02d}" for number in range(n_speakers)], object)
    sample = sample_of(scores, is_target, TrialSpeakers(names, models, segments))
    return sample, groups, scores, is_target


@pytest.mark.parametrize("seed", range(25))
def test_ratio_and_gini_equal_loops_over_pairs(seed):
    rng = np.random.default_rng(seed)
    rates = rng.integers(1, 6, rng.integers(2, 7)) / 10
    pairs = list(itertools.product(rates, rates))
    assert worst_ratio(rates) == pytest.approx(max(first / second for first, second in pairs))
    n = len(rates)
    gaps = sum(abs(first - second) for first, second in pairs)
    expected = n / (n - 1) * gaps / (2 * n**2 * rates.mean())
    assert gini(rates) == pytest.approx(expected)
    others = rng.permutation(rates) ** 2
    assert garbe(rates, others, alpha=0.25) == pytest.approx(0.25 * expected + 0.75 * gini(others))


@pytest.mark.parametrize("seed", range(25))
def test_groups_are_counted_at_one_threshold(seed):
    sample, groups, scores, is_target = grouped([0.0, 1.0, -0.5], n_speakers=18, seed=seed)
    found = group_fairness(sample, groups, ["a", "b", "c"], column="accent")
    threshold = equal_error(sample.runs()).threshold
    accepted = scores >= threshold
    rates = {"false_alarm": [], "true_accept": []}
    for code, name in enumerate("abc"):
        own = groups == code
        rates["false_alarm"].append(accepted[own & ~is_target].mean())
        rates["true_accept"].append(accepted[own & is_target].mean())
        assert found.rates[name]["false_alarm"] == pytest.approx(rates["false_alarm"][-1])
        assert found.rates[name]["miss"] == pytest.approx(1 - rates["true_accept"][-1])
    misses = 1 - np.array(rates["true_accept"])
    assert found.garbe.value == pytest.approx(garbe(rates["false_alarm"], misses))
    assert found.ratios["true_accept"].value == pytest.approx(worst_ratio(rates["true_accept"]))
    assert found.worst["true_accept"] == "abc"[int(np.argmin(misses))]
    assert list(found.to_dict()["rates"]) == ["a", "b", "c"]


def test_intervals_include_equality_only_for_equal_groups():
    alike = group_fairness(*grouped([0.0, 0.0])[:2], ["a", "b"], resampling=Resampling(200))
    assert alike.ratios["true_accept"].low == 1
    assert alike.garbe.low == 0
    apart = group_fairness(*grouped([2.0, -1.5])[:2], ["a", "b"], resampling=Resampling(200))
    assert 1 < apart.ratios["true_accept"].low < apart.ratios["true_accept"].value
    assert 0 < apart.garbe.low < apart.garbe.value < apart.garbe.high
    assert apart.worst["true_accept"] == "a"


def test_a_group_without_an_error_has_an_infinite_ratio_with_a_finite_lower_end():
    found = group_fairness(
        *grouped([9.0, -0.5])[:2], ["a", "b"], threshold=1.0, resampling=Resampling(200)
    )
    ratio = found.ratios["miss"]
    assert ratio.value == ratio.high == np.inf
    assert 1 < ratio.low < np.inf


def test_one_group_cannot_be_compared():
    sample, groups, _, _ = grouped([0.0, 0.0])
    with pytest.raises(DataError, match="at least 2 groups"):
        group_fairness(sample, np.zeros_like(groups), ["a"])
    with pytest.raises(DataError, match="a group for each"):
        group_fairness(sample, groups[1:], ["a", "b"])
    with pytest.raises(DataError, match="at least 2 groups, got 1"):
        gini([0.1])


@pytest.mark.parametrize("seed", range(25))
def test_largest_rate_has_the_ends_of_binomial_tests(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    totals = rng.integers(1, 12, 8)
    seen = rng.integers(0, totals + 1)
    beyond = rng.choice([0.0, 0.1], 8)
    index, largest = largest_rate(seen, totals, beyond=beyond)
    lows, highs = [], []
    for count, total, share in zip(seen.tolist(), totals.tolist(), beyond, strict=True):
        test = stats.binomtest(count, total)
        lows.append(test.proportion_ci(1 - 0.05 / 8, method="exact").low - share)
        highs.append(test.proportion_ci(0.95, method="exact").high - share)
    rates = seen / totals - beyond
    assert rates[index] == rates.max() == largest.value
    assert (largest.low, largest.high) == pytest.approx((max(lows), max(highs)), abs=1e-9)


def test_the_largest_of_equal_rates_is_corrected_for_selection():
    """Of 50 speakers with 10 recordings each and a rate of 0.3, the largest is 0.6 or so by luck."""
    rng = np.random.default_rng(0)
    _, largest = largest_rate(rng.binomial(10, 0.3, 50), np.full(50, 10))
    assert largest.value > 0.5
    assert largest.low < 0.3 < largest.high


@pytest.mark.parametrize(("seen", "totals"), [([], []), ([2], [1]), ([0], [0])])
def test_counts_out_of_range_raise(seen, totals):
    with pytest.raises(DataError):
        largest_rate(seen, totals)
