"""Intervals of error rates where errors are few: bounds by speakers, no jumps, the usual ones where they abound."""

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
    independent_errors,
    rate_interval,
    rate_where,
    simultaneous,
)
from spkbase.errors import DataError

KALDI = method_of("eer.kaldi")


@pytest.mark.parametrize(("n_units", "n_trials"), [(5, 35), (23, 184), (100, 300)])
def test_without_errors_the_upper_end_is_the_rate_that_shows_none_in_5_percent_of_cases(
    n_units, n_trials
):
    found = interval(0.0, np.zeros(50), method=KALDI, n_units=n_units, n_trials=n_trials)
    assert found.low == 0
    rng = np.random.default_rng(n_units)
    shape = 20_000, n_units
    limit = (
        stats.norm.ppf(found.high) + np.sqrt(OF_SPEAKERS) * rng.standard_normal(shape)
    ) / np.sqrt(1 - OF_SPEAKERS)
    seen = rng.binomial(n_trials // n_units, stats.norm.cdf(limit)).sum(axis=1)
    assert np.mean(seen == 0) == pytest.approx(0.05, abs=0.006)
    assert f"no error: an upper bound only, from {n_units} speakers" in found.note


@pytest.mark.parametrize("errors", [0, 1, 4])
@pytest.mark.parametrize("n_units", [5, 23, 100])
def test_with_one_trial_per_speaker_the_interval_equals_clopper_pearson(n_units, errors):
    low, high = rate_interval(errors / n_units, n_units=n_units, n_trials=n_units)
    found = stats.binomtest(errors, n_units).proportion_ci(0.95 if errors else 0.9, method="exact")
    assert (low, high) == pytest.approx((found.low, found.high), abs=1e-5)


@pytest.mark.parametrize(("n_units", "n_trials", "errors"), [(5, 35, 3), (10, 74, 9), (23, 184, 1)])
def test_at_the_upper_end_few_errors_occur_with_the_nominal_probability(n_units, n_trials, errors):
    found = rate_where(errors, n_units, n_trials, 0.1)
    rng = np.random.default_rng(errors)
    limit = stats.norm.ppf(found) + np.sqrt(OF_SPEAKERS) * rng.standard_normal((40_000, n_units))
    each = n_trials // n_units + (np.arange(n_units) < n_trials % n_units)
    seen = rng.binomial(each, stats.norm.cdf(limit / np.sqrt(1 - OF_SPEAKERS))).sum(axis=1)
    assert np.mean(seen <= errors) == pytest.approx(0.1, abs=0.006)


def shares_of_errors(rng, shape, variances, rate):
    """Return each speaker's share of errors in each draw; variances of a score are of speaker, recording and draw."""
    n_draws, n_units, each = shape
    sizes = ((1, n_units, 1), (1, n_units, each), (n_draws, n_units, each))
    effects = (
        np.sqrt(part) * rng.standard_normal(size)
        for part, size in zip(variances, sizes, strict=True)
    )
    return (sum(effects) < stats.norm.ppf(rate)).mean(axis=2)


@pytest.mark.parametrize("errors_in", [0, 1, 5])
@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 16])
def test_duplicated_draws_change_nothing(errors_in, level):
    """The same sample given 1, 3 and 10 times had the upper ends 0.190, 0.121 and 0.076."""
    rng = np.random.default_rng(errors_in)
    shares = np.where(np.arange(10) < errors_in, 2 / 7, 0.0)
    resampled = rng.multinomial(10, np.full(10, 0.1), 400) @ shares / 10
    settings = {"method": KALDI, "n_units": 10, "n_trials": 70, "level": level}
    once, *again = (
        interval_over_draws([shares.mean()] * count, [resampled] * count, **settings)
        for count in (1, 3, 10)
    )
    assert all(
        (one.low, one.high) == pytest.approx((once.low, once.high), rel=1e-12) for one in again
    )


@pytest.mark.parametrize("variances", [(0.7, 0.3, 0.0), (0.7, 0.2, 0.1), (0.4, 0.1, 0.5)])
@pytest.mark.parametrize(("n_units", "each", "rate"), [(10, 7, 0.1), (23, 40, 0.03)])
@pytest.mark.parametrize("repetitions", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_upper_ends_over_draws_cover_the_true_rate(variances, n_units, each, rate, repetitions):
    """Just above the bound without an error coverage is least: an end that claims 95 % holds in 93 % or more."""
    rng, above = np.random.default_rng(7), 0
    for _ in range(repetitions):
        shares = shares_of_errors(rng, (3, n_units, each), variances, rate)
        resampled = (
            shares @ rng.multinomial(n_units, np.full(n_units, 1 / n_units), 100).T / n_units
        )
        sizes = {"n_units": n_units, "n_trials": n_units * each}
        above += (
            rate > interval_over_draws(shares.mean(axis=1), resampled, method=KALDI, **sizes).high
        )
    assert above / repetitions <= 0.07


@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 16])
@pytest.mark.parametrize(
    ("n_units", "each", "worth"),
    [(10, 7, 20), (10, 7, 70), (23, 40, 100), (23, 40, 920), (80, 8, 300)],
)
def test_no_upper_end_is_below_that_without_errors(n_units, each, worth, level):
    """Trials are worth as many throughout; of 920 by 23 speakers it was 12.2 % without an error and 0.8 % of one."""
    shares, sizes = (np.arange(400) + 0.5) / 400, {"n_units": n_units, "n_trials": n_units * each}
    least = interval(0.0, np.zeros(50), method=KALDI, level=level, **sizes).high
    for errors in np.geomspace(0.05, 0.4 * worth, 30).tolist():
        rates = np.maximum(stats.beta.ppf(shares, errors, worth - errors), 0.5 / sizes["n_trials"])
        assert interval(errors / worth, rates, method=KALDI, level=level, **sizes).high >= least


@pytest.mark.parametrize("n_trials", [6, 34, 60])
def test_exact_ends_rise_with_the_number_of_errors(n_trials):
    counts = np.linspace(0, n_trials, 25)
    ends = np.array(
        [
            rate_interval(count / n_trials, n_units=10, n_trials=n_trials)
            for count in counts.tolist()
        ]
    )
    assert (np.diff(ends, axis=0) >= 0).all()
    assert ends[-1, 1] == 1


def draws(rate, deviation):
    """Resampled rates around a rate, no two alike."""
    return np.clip(rate + deviation * stats.norm.ppf((np.arange(400) + 0.5) / 400), 0, 1)


def test_with_many_errors_the_interval_equals_the_usual_one():
    rate, deviation = 0.1, 0.02
    assert independent_errors(rate, deviation**2 * 50 / 49, 400) > PLENTY
    found = interval(rate, draws(rate, deviation), method=KALDI, n_units=50, n_trials=400)
    usual = interval(
        rate,
        draws(rate, deviation),
        method=replace(KALDI, of_errors=False),
        n_units=50,
        n_trials=400,
    )
    assert (found.low, found.high, found.note) == (usual.low, usual.high, "")


def test_ends_change_continuously_with_the_rate():
    """Ends move little when the rate does: from nearly no error to many, through all that is mixed."""
    rates = np.geomspace(1e-3, 0.2, 400)
    ends = []
    for rate in rates.tolist():
        # as many as 120 independent trials
        shares = stats.beta.ppf((np.arange(400) + 0.5) / 400, 120 * rate, 120 * (1 - rate))
        found = interval(
            rate, np.maximum(shares, 0.5 / 240), method=KALDI, n_units=30, n_trials=240
        )
        assert 0 <= found.low <= rate <= found.high
        ends.append((found.low, found.high))
    low, high = np.array(ends).T
    assert np.abs(np.diff(high)).max() < 0.005
    assert np.abs(np.diff(low)).max() < 0.005
    errors = rates * 120
    assert errors[0] < ALONE < PLENTY < errors[-1]


# means over draws


def test_the_variance_components_equal_those_of_a_two_way_table():
    """Oracle: mean squares of the table of speakers and draws, for the mean of its cells under all resamples."""
    rng = np.random.default_rng(1)
    n_speakers, n_draws = 6, 3
    cells = rng.standard_normal((n_draws, n_speakers))
    # multinomial weights have variance 1 - 1/P and covariance -1/P: enough of them come close
    weights = rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), 200_000) / n_speakers
    speakers, draws = draw_variance(cells.mean(axis=1), cells @ weights.T, n_units=n_speakers)
    of_speakers = cells.mean(axis=0).var(ddof=1) / n_speakers
    residuals = cells - cells.mean(axis=0) - cells.mean(axis=1, keepdims=True) + cells.mean()
    interaction = (
        np.square(residuals).sum() / ((n_speakers - 1) * (n_draws - 1)) / (n_speakers * n_draws)
    )
    of_draws = cells.mean(axis=1).var(ddof=1) / n_draws
    assert_allclose(speakers, of_speakers, rtol=0.01)
    assert_allclose(draws, max(0.0, of_draws - interaction), atol=0.003)
    shifted = cells + np.array([[0.0], [3.0], [-3.0]])  # an effect shared by draws
    again = draw_variance(shifted.mean(axis=1), shifted @ weights.T, n_units=n_speakers)
    assert_allclose(again[0], speakers, rtol=1e-9)
    assert_allclose(again[1], shifted.mean(axis=1).var(ddof=1) / n_draws - interaction, atol=0.003)


def test_intervals_widen_with_variance_and_fewer_degrees_of_freedom():
    ratio = float(widening(2.0, 6.0, n_units=11, n_draws=3, level=0.95))
    freedom = 8**2 / (2**2 / 10 + 6**2 / 2)
    assert_allclose(ratio, 2 * stats.t.ppf(0.975, freedom) / stats.t.ppf(0.975, 10))
    found = widening(
        [0.0, 1.0, 1.0, np.inf], [1.0, 0.0, np.nan, 1.0], n_units=11, n_draws=3, level=0.95
    )
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_two_different_draws_are_not_treated_as_few_errors():
    """13 of 70 trials fail, as 10.0 and 26.8 % of two draws; it was "few errors, worth 0.4 independent ones"."""
    rng = np.random.default_rng(0)
    resampled = np.clip(rng.normal(0.184, 0.05, 400) + np.array([[-0.084], [0.084]]), 0.01, 0.6)
    settings = {"method": method_of("eer.rocch"), "n_units": 10, "n_trials": 70}
    found = interval_over_draws([0.1, 0.268], resampled, **settings)
    assert "few errors" not in found.note
    assert "the 2 draws differ: the interval is" in found.note
    alike = interval_over_draws([0.184, 0.184], resampled, **settings)
    assert alike.note == ""
    assert alike.high - alike.low < found.high - found.low
    none = interval_over_draws([0.0, 0.0], np.zeros((2, 400)), **settings)
    assert "draws differ" not in none.note
    assert "no error" in none.note


def test_draws_with_different_trials_are_refused():
    one, other = (simulate(np.random.default_rng(0), count, 1, 1.6, 0.0)[0] for count in (5, 6))
    with pytest.raises(DataError, match=r"draw 1.*draw 2"):
        confidence_intervals([one, other], metrics, Resampling(10))


@pytest.mark.slow
@pytest.mark.parametrize("moved", [0.0, 0.25])
def test_intervals_have_nearly_their_nominal_coverage(moved):
    """Of 80 repetitions 76 are expected; 69 or fewer are as good as impossible (2 in 1000)."""
    found = [repeat(12, 3, 1.6, moved, 100, seed)["eer.rocch"][0, :2] for seed in range(1000, 1080)]
    assert np.sum(found) <= 10


# the methods


def test_the_normal_method_equals_student_intervals():
    draws = np.random.default_rng(0).normal(3, 0.2, 500)
    found = interval(3.1, draws, method=Method("identity"), n_units=20)
    reach = stats.t.ppf(0.975, 19) * draws.std(ddof=1) * np.sqrt(20 / 19)
    assert (found.low, found.high) == pytest.approx((3.1 - reach, 3.1 + reach), rel=1e-12)


@pytest.mark.parametrize("n_units", [5, 100])
def test_a_single_value_has_the_same_interval_as_among_several(n_units):
    values = 3 + 0.2 * stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    settings = {"method": Method("identity"), "n_units": n_units}
    alone = interval(3.1, values, **settings)
    low, high = simultaneous(np.array([3.1]), values[:, None], **settings)
    assert (low[0], high[0]) == pytest.approx(
        (alone.low, alone.high), abs=2e-3 * (alone.high - alone.low)
    )


@pytest.mark.parametrize(("times", "worth"), [(1.0, 54), (1.5, 24), (3.0, 6)])
def test_correlated_draws_reduce_the_effective_number_of_trials(times, worth):
    """Half an error is 0.01 here: resamples without an error have no interval of the usual kind to be mixed with."""
    found = interval(
        0.01, np.array([0.0, 0.01] * 20), method=KALDI, n_units=5, n_trials=54, widening=times
    )
    low, high = rate_interval(0.01, n_units=5, n_trials=worth)
    assert (found.low, found.high) == pytest.approx(
        (low, max(high, rate_where(0, 5, 54, 0.05))), abs=1e-12
    )


@pytest.mark.parametrize(
    ("metric", "times"), [("min_cllr", 1.1), ("min_dcf.0.01", 1.1), ("eer.rocch", 1), ("cllr", 1)]
)
def test_differences_of_selected_attackers_have_wider_intervals(metric, times):
    """At the width of the resamples a test at 5 % called 6 to 9 % significant by chance."""
    resampled = np.random.default_rng(0).normal(0.1, 0.02, 400)
    found = interval(0.1, resampled, method=method_of(metric, difference=True), n_units=20)
    reach = times * stats.t.ppf(0.975, 19) * resampled.std(ddof=1) * np.sqrt(20 / 19)
    assert (found.high - found.low) / 2 == pytest.approx(reach)


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
def test_intervals_on_each_scale_equal_their_formula(scale, upper, forth, back, factor):
    draws = np.random.default_rng(0).uniform(0.2, 0.4, 300)
    method = Method(scale, factor=factor, upper=upper)
    found = interval(0.25, draws, method=method, n_units=8, level=0.9)
    values, centre = forth(draws), forth(0.25)
    if factor:
        centre = centre - factor * (values.mean() - centre)
    reach = stats.t.ppf(0.95, 7) * values.std(ddof=1) * np.sqrt(8 / 7)
    expected = (back(centre - reach), back(centre + reach))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "name", ["eer.rocch", "min_dcf.0.01", "min_cllr", "zebra.population", "d_sys_pav", "prbep"]
)
@pytest.mark.parametrize("shift", [-0.2, 0.2])
def test_every_interval_contains_its_value(name, shift):
    """With the bias of the hull removed that of 40.4 % was 40.8 to 50.0 %."""
    method = method_of(name)
    value = 0.6 * min(method.upper, 1.0)
    resampled = value * (1 + shift + 0.01 * np.random.default_rng(0).standard_normal(200))
    found = interval(value, resampled, method=method, n_units=20, n_trials=200)
    assert found.low <= value <= found.high


def test_a_sample_maximum_has_no_interval():
    found = interval(
        2.725, np.linspace(2.63, 2.72, 50), method=method_of("zebra.individual"), n_units=20
    )
    assert (found.value, found.has_interval) == (2.725, False)
    assert "no true value" in found.note


def test_intervals_stay_in_range():
    draws = np.random.default_rng(0).uniform(0, 0.1, 300)
    draws[:100] = 0  # no error at all in a third of the resamples
    for name in (
        "eer.rocch",
        "eer.kaldi",
        "min_dcf.0.01",
        "cllr",
        "min_cllr",
        "zebra.population",
        "d_sys",
    ):
        value = 0.003 if name.startswith("min_dcf") else 0.01
        found = interval(value, draws / 10, method=method_of(name), n_units=5, n_trials=50)
        assert 0 <= found.low < found.high <= method_of(name).upper


def test_too_few_errors_are_noted():
    draws = np.array([0.0, 0.01] * 20)
    found = interval(0.01, draws, method=method_of("tpr_at_fpr.0.01"), n_units=5, n_trials=50)
    assert np.isnan([found.low, found.high]).all()
    assert "too few errors" in found.note
    # an error rate has another kind of interval in this case
    found = interval(0.01, draws, method=method_of("eer.kaldi"), n_units=5, n_trials=50)
    assert 0 <= found.low < 0.01 < found.high
    assert "few errors" in found.note
    assert interval(0.01, draws, method=method_of("eer.kaldi"), n_units=5, n_trials=500).low < 0.01


def test_infinite_undefined_and_constant_draws_have_notes():
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


def test_methods_are_chosen_by_metric_name():
    assert method_of("min_dcf_unnormalised.0.01").upper == 0.01
    assert method_of("min_dcf_unnormalised.0.9").upper == pytest.approx(0.1)
    assert method_of("min_dcf_unnormalised").upper == np.inf
    assert method_of("min_dcf.0.01").upper == 1
    assert method_of("eer.rocch").factor == HULL_FACTOR
    assert method_of("eer.kaldi").factor == 0
    assert method_of("unheard of").scale == "identity"
    assert method_of("eer.rocch", difference=True) == Method("identity")
