"""Intervals of error rates where errors are few: bounds by speakers, no jumps, the usual ones where they abound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logit

from benchmarks.coverage_draws import metrics, repeat, simulate
from evaluation.metrics import Method, method_of
from evaluation.metrics.table import HULL_FACTOR
from evaluation.uncertainty import (
    Resampling,
    confidence_intervals,
    draw_variance,
    interval,
    interval_over_draws,
    widening,
)
from evaluation.uncertainty.intervals import (
    ALONE,
    OF_SPEAKERS,
    PLENTY,
    end_without_error,
    independent_errors,
    rate_interval,
    simultaneous,
)
from spkbase.errors import DataError

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
    assert f"no error: an upper bound only, from {n_units} speakers" in found.note


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


# means over draws


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


def test_two_draws_that_differ_are_not_few_errors() -> None:
    """13 of 70 trials fail, as 10.0 and 26.8 % of two draws; it was "few errors, worth 0.4 independent ones"."""
    rng = np.random.default_rng(0)
    resampled = np.clip(rng.normal(0.184, 0.05, 400) + np.array([[-0.084], [0.084]]), 0.01, 0.6)
    settings = {"method": method_of("eer.rocch"), "n_units": 10, "n_trials": 70}
    found = interval_over_draws([0.1, 0.268], resampled, **settings)  # type: ignore[arg-type]
    assert "few errors" not in found.note
    assert "the 2 draws differ: the interval is" in found.note
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


# the methods


def test_normal_method_is_student() -> None:
    draws = np.random.default_rng(0).normal(3, 0.2, 500)
    found = interval(3.1, draws, method=Method("identity"), n_units=20)
    reach = stats.t.ppf(0.975, 19) * draws.std(ddof=1) * np.sqrt(20 / 19)
    assert (found.low, found.high) == pytest.approx((3.1 - reach, 3.1 + reach), rel=1e-12)


@pytest.mark.parametrize("n_units", [5, 100])
def test_one_value_alone_has_the_same_interval_as_simultaneously(n_units: int) -> None:
    values = 3 + 0.2 * stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    settings = {"method": Method("identity"), "n_units": n_units}
    alone = interval(3.1, values, **settings)  # type: ignore[arg-type]
    low, high = simultaneous(np.array([3.1]), values[:, None], **settings)  # type: ignore[arg-type]
    assert (low[0], high[0]) == pytest.approx((alone.low, alone.high), abs=2e-3 * (alone.high - alone.low))


@pytest.mark.parametrize("times", [1.0, 1.5, 3.0])
def test_an_interval_of_few_errors_is_widened_by_its_standard_error(times: float) -> None:
    """Half an error is 0.01 here: resamples without an error have no interval of the usual kind to be mixed with."""
    values = np.array([0.0, 0.01] * 20)
    found = interval(0.01, values, method=KALDI, n_units=5, n_trials=50, widening=times)
    low, high = rate_interval(0.01, times**2 * values.var(ddof=1) * 5 / 4, n_units=5, n_trials=50)
    least = max(low + 1 / 50, end_without_error(5, 50))
    assert (found.low, found.high) == pytest.approx((low, max(high, least)), abs=1e-12)


@pytest.mark.parametrize(
    ("scale", "upper", "forth", "back"),
    [
        ("log", np.inf, np.log, np.exp),
        ("inverse root", np.inf, lambda x: -(x**-0.5), lambda y: y**-2.0),
        ("logit", 1.0, logit, expit),
        ("complement", 0.7, lambda x: -np.log(0.7 - x), lambda y: 0.7 - np.exp(-y)),
    ],
)
@pytest.mark.parametrize("factor", [0.0, HULL_FACTOR])
def test_scales(scale: str, upper: float, forth: object, back: object, factor: float) -> None:
    draws = np.random.default_rng(0).uniform(0.2, 0.4, 300)
    method = Method(scale, factor=factor, upper=upper)  # type: ignore[arg-type]
    found = interval(0.25, draws, method=method, n_units=8, level=0.9)
    values, centre = forth(draws), forth(0.25)  # type: ignore[operator]
    if factor:
        centre = centre - factor * (values.mean() - centre)
    reach = stats.t.ppf(0.95, 7) * values.std(ddof=1) * np.sqrt(8 / 7)
    expected = (back(centre - reach), back(centre + reach))  # type: ignore[operator]
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-10)


def test_intervals_stay_in_range() -> None:
    draws = np.random.default_rng(0).uniform(0, 0.1, 300)
    draws[:100] = 0  # no error at all in a third of the resamples
    for name in ("eer.rocch", "eer.kaldi", "min_dcf.0.01", "cllr", "min_cllr", "zebra.population", "d_sys"):
        value = 0.003 if name.startswith("min_dcf") else 0.01
        found = interval(value, draws / 10, method=method_of(name), n_units=5, n_trials=50)
        assert 0 <= found.low < found.high <= method_of(name).upper


def test_too_few_errors_are_said() -> None:
    draws = np.array([0.0, 0.01] * 20)
    found = interval(0.01, draws, method=method_of("tpr_at_fpr.0.01"), n_units=5, n_trials=50)
    assert np.isnan([found.low, found.high]).all()
    assert "too few errors" in found.note
    # an error rate has another interval then
    found = interval(0.01, draws, method=method_of("eer.kaldi"), n_units=5, n_trials=50)
    assert 0 <= found.low < 0.01 < found.high
    assert "few errors" in found.note
    assert interval(0.01, draws, method=method_of("eer.kaldi"), n_units=5, n_trials=500).low < 0.01


def test_infinite_undefined_and_constant_draws() -> None:
    method = method_of("cllr")
    draws = np.array([0.1, 0.2, 0.3, np.inf] * 10)
    found = interval(0.2, draws, method=method, n_units=5)
    assert (found.low, found.high, found.method) == (0.1, np.inf, "percentile")
    assert "infinite" in found.note
    found = interval(np.inf, np.full(10, np.inf), method=method, n_units=5)
    assert np.isnan([found.low, found.high]).all()
    assert "same value" in found.note
    assert np.isnan(interval(np.nan, draws, method=method, n_units=5).low)
    with_gaps = interval(0.2, np.append(draws[:3], np.nan), method=method, n_units=5)
    assert with_gaps == interval(0.2, draws[:3], method=method, n_units=5)


def test_methods_by_name() -> None:
    assert method_of("min_dcf_unnormalised.0.01").upper == 0.01
    assert method_of("min_dcf_unnormalised.0.9").upper == pytest.approx(0.1)
    assert method_of("min_dcf_unnormalised").upper == np.inf
    assert method_of("min_dcf.0.01").upper == 1
    assert method_of("eer.rocch").factor == HULL_FACTOR
    assert method_of("eer.kaldi").factor == 0
    assert method_of("unheard of").scale == "identity"
    assert method_of("min_cllr", difference=True) == Method("identity")
