"""Linkability beyond the gallery: closed forms, what must hold whatever the data, and bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import ndtr

from evaluation.linkage import Ranks, linkability_at_sizes
from evaluation.linkage.extrapolation import (
    MARGINS,
    Tail,
    _by_bounds,
    _ends,
    _shape,
    backtest,
    beat_probabilities,
    curve_bounds,
    extrapolate,
    first_probability,
    fit_tail,
    influences,
    rank_cells,
    sizes_beyond,
)
from evaluation.uncertainty.intervals import rate_interval, rate_where
from evaluation.uncertainty.resampling import Resampling
from spkbase.errors import DataError
from spkbase.files import to_json

FAR = np.array([20_000.0, 1e5, 1e6, 1e8])
# closed_forms.json of the reference and a quadrature: normal scores, d' = 2
NORMAL = np.array([0.02584831, 0.01040906, 0.00262595, 0.00013665])


def normal_ranks(seed=0, n=1000, impostors=999, distance=2.0):
    rng = np.random.default_rng(seed)
    mated = rng.normal(distance, 1, n)
    return Ranks(rng.binomial(impostors, ndtr(-mated)), 0, impostors, mated=mated)


@pytest.fixture(scope="module")
def ranks():
    return normal_ranks()


# ---- cells


@pytest.mark.parametrize("impostors", [1, 2, 7, 40, 999])
def test_cells_sum_the_binomial_distribution(impostors):
    ranks = Ranks(np.arange(max(impostors + 1, 20)) % (impostors + 1), 0, impostors)
    counts, likelihood = rank_cells(ranks)
    z = MARGINS[::20]
    np.testing.assert_allclose(likelihood.sum(axis=0), 1, atol=1e-9)
    # the first cells are single counts
    exact = stats.binom.pmf(np.arange(min(impostors, 20))[:, None], impostors, ndtr(-z))
    np.testing.assert_allclose(likelihood[: len(exact), ::20], exact, rtol=1e-6, atol=1e-13)
    assert counts.sum() == pytest.approx(len(ranks))


def test_ties_are_spread_over_their_ranks():
    ranks = Ranks([2] * 20, [3] * 20, 50)
    assert rank_cells(ranks)[0].sum(axis=0).tolist() == [5.0] * 4
    assert rank_cells(ranks, ties="strict")[0].sum() == 20.0
    np.testing.assert_allclose(rank_cells(ranks, ties="lenient")[1], rank_cells(ranks)[1][:1])


# ---- the tail of impostor scores


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3])
def test_the_shape_of_a_pareto_tail_is_recovered(shape):
    scores = stats.genpareto.rvs(shape, size=(400, 400), random_state=2)
    # above its threshold a generalised Pareto tail has the same shape
    tail = fit_tail(-np.partition(-scores, 50, axis=1)[:, :51], np.full(400, 400))
    assert tail.shape == pytest.approx(shape, abs=3 * (1 + shape) / np.sqrt(400 * 50) + 0.02)
    mated = np.quantile(scores, 0.999) * np.ones(400)
    p = beat_probabilities(tail, mated, np.full(400, 0.5))
    assert np.exp(np.log(p).mean()) == pytest.approx(1e-3, rel=0.35)


@pytest.mark.parametrize("shape", [-0.15, 0.15, 0.4])
def test_the_influence_of_a_trial_equals_the_effect_of_doubling_it(shape):
    excess = stats.genpareto.rvs(shape, size=(200, 30), random_state=4)
    excess /= excess.mean()
    fitted = _shape(excess.ravel())
    trials = np.ones(len(excess))
    to_shape, to_mean = influences(Tail(fitted, trials, trials, trials, excess))
    refitted = [_shape(np.vstack([excess, row]).ravel()) - fitted for row in excess]
    # the slope of the straight line through the origin; clipping the largest scores adds to it
    assert to_shape @ refitted / (to_shape @ to_shape) == pytest.approx(1, abs=0.3)
    assert np.corrcoef(to_shape, refitted)[0, 1] > 0.9
    np.testing.assert_allclose(
        to_mean, [np.vstack([excess, row]).mean() - 1 for row in excess], rtol=0.02
    )


@pytest.mark.parametrize("shape", [0.15, 0.4])
def test_the_spread_of_the_influences_equals_the_standard_error(shape):
    """Of n m excesses the shape's is (1 + shape) / sqrt(n m)."""
    draws = [stats.genpareto.rvs(shape, size=(200, 30), random_state=seed) for seed in range(20)]
    spreads = []
    for excess in draws:
        tail = Tail(shape, *[np.ones(200)] * 3, excess / excess.mean())
        spreads.append(np.sqrt((influences(tail)[0] ** 2).sum()))
    assert np.mean(spreads) == pytest.approx((1 + shape) / np.sqrt(200 * 30), rel=0.15)


def test_each_trial_has_a_threshold_from_its_own_impostors():
    """Impostors of each trial are exponential beyond an offset of its own, which may differ much between trials."""
    rng = np.random.default_rng(3)
    offsets = rng.normal(0, 3, 400)
    scores = offsets[:, None] + rng.exponential(size=(400, 400))
    tail = fit_tail(-np.partition(-scores, 50, axis=1)[:, :51], np.full(400, 400))
    np.testing.assert_allclose(tail.thresholds - offsets, np.log(400 / 51), atol=0.6)
    found = beat_probabilities(tail, offsets + np.log(1000), np.full(400, 0.5))
    assert np.exp(np.log(found).mean()) == pytest.approx(1e-3, rel=0.35)


def test_exponential_impostors_match_their_closed_form():
    # p = exp(-x), x = 4 + an exponential of mean 3: E[(1 - p)^(N - 1)] by quadrature
    rng = np.random.default_rng(5)
    mated = 4 + rng.exponential(3, 3000)
    impostors = rng.exponential(size=(3000, 500))
    ranks = Ranks((impostors > mated[:, None]).sum(axis=1), 0, 500, mated=mated)
    largest = -np.partition(-impostors, 50, axis=1)[:, :51]
    found = extrapolate(
        ranks, [20_000, 1_000_000], impostor_scores=largest, resampling=Resampling(50)
    )
    grid = np.linspace(0, 90, 200_001)
    truth = [
        trapezoid(np.exp(-grid / 3) / 3 * np.exp((size - 1) * np.log1p(-np.exp(-4 - grid))), grid)
        for size in (20_000, 1_000_000)
    ]
    part = found.predictions["tail"]
    np.testing.assert_allclose(part.linkability, truth, rtol=0.2)
    assert ((part.low < truth) & (truth < part.high)).all()


# ---- predictions


def test_normal_scores_match_their_closed_form(ranks):
    found = extrapolate(ranks, FAR, resampling=Resampling(100))
    part = found.predictions["normal"]
    assert ((part.low < NORMAL) & (part.high > NORMAL)).all()
    assert (np.abs(np.log2(part.linkability / NORMAL)) < [0.5, 0.6, 0.8, 1.2]).all()
    low, high = found.span()
    # the span is that of the only method with a shape
    assert ((low == part.low) & (part.high == high)).all()
    assert part.inside < 0.02
    bounds = found.predictions["bounds"]
    assert ((bounds.low < NORMAL) & (bounds.high > NORMAL)).all()


def test_predictions_fall_with_the_population_and_lie_within_their_intervals(ranks):
    sizes = sizes_beyond(1000, 1e8, per_decade=1)
    found = extrapolate(ranks, sizes, resampling=Resampling(10))
    for part in found.predictions.values():
        assert (part.low <= part.high).all()
        if not np.isnan(part.linkability).all():
            assert (np.diff(part.linkability) <= 0).all()
            assert ((part.low <= part.linkability) & (part.linkability <= part.high)).all()
    measured = linkability_at_sizes(ranks, [1000])[0]
    bounds = found.predictions["bounds"]
    assert bounds.low[0] <= measured <= bounds.high[0]


def test_resampling_draws_speakers_not_rows(ranks):
    doubled = ranks.subset(np.tile(np.arange(len(ranks)), 4))
    apart = Ranks(doubled.beaters, 0, 999, mated=doubled.mated)
    by_speaker, by_row = (
        extrapolate(one, [100_000], resampling=Resampling(20)).predictions["normal"]
        for one in (doubled, apart)
    )
    width = [float(np.log(one.high[0] / one.low[0])) for one in (by_speaker, by_row)]
    assert width[0] > 1.5 * width[1]


# ---- bounds


@given(st.lists(st.floats(-2, 6), min_size=1, max_size=4), st.data())
@settings(max_examples=15)
def test_bounds_contain_every_distribution_within_the_band(points, data):
    raw = np.array([data.draw(st.floats(0.1, 1)) for _ in points])
    weights = np.zeros(len(MARGINS))
    for point, weight in zip(points, raw / raw.sum(), strict=True):
        weights[int(np.abs(MARGINS - point).argmin())] += weight
    inside, sizes = np.array([2.0, 10, 50, 200]), np.array([1000.0, 1e5])
    curve, truth = (weights @ first_probability(MARGINS, some) for some in (inside, sizes))
    low, high = curve_bounds(
        np.maximum(curve - 0.01, 0), np.minimum(curve + 0.01, 1), inside, sizes
    )
    assert ((low <= truth + 1e-7) & (truth <= high + 1e-7)).all()
    narrow = curve_bounds(curve - 1e-4, curve + 1e-4, inside, sizes)
    assert (narrow[0] >= low - 1e-7).all()
    assert (narrow[1] <= high + 1e-7).all()


def test_the_band_is_at_least_as_wide_as_that_of_student():
    """Where the resamples of 30 trials show no spread; the deviation is then a third of a trial."""
    inside, sizes = np.array([2.0, 10, 50]), np.array([1000.0, 1e5])
    found = _by_bounds(np.ones((30, 3)), np.ones((9, 30)), 30, inside, sizes, 0.95)
    reach = stats.t.ppf(0.975, 29) / (3 * 30)
    np.testing.assert_allclose(
        [found.low, found.high], curve_bounds(np.full(3, 1 - reach), np.ones(3), inside, sizes)
    )


def test_intervals_contain_the_sample_and_its_resamples():
    curves = np.array([[0.5], [0.1], [0.3], [0.4]])
    np.testing.assert_allclose(np.ravel(_ends(curves, 1 - 1e-12)), [0.1, 0.5])
    np.testing.assert_allclose(np.ravel(_ends(curves, 0.5)), [0.2, 0.5])


def test_an_empty_band_has_no_bounds():
    # a curve of linkability cannot rise
    low, high = curve_bounds(
        np.array([0.2, 0.6]), np.array([0.3, 0.7]), np.array([2.0, 10.0]), np.array([100.0])
    )
    assert np.isnan([low, high]).all()


# ---- hiding


@pytest.mark.parametrize("ties", ["shared", "strict"])
def test_predictions_from_half_the_gallery_match_the_whole(ties):
    ranks = normal_ranks(n=2000, impostors=19_999)
    if ties == "strict":  # ties are hidden as beaters are
        ranks = replace(ranks, beaters=0 * ranks.beaters, ties=ranks.beaters)
    found = {one.method: one for one in backtest(ranks, ties=ties, resampling=Resampling(40))}
    assert found["normal"].fitted_to == 1000
    assert found["normal"].size == 20_000
    assert found["normal"].measured == linkability_at_sizes(ranks, [20_000], ties=ties)[0]
    assert found["normal"].held
    assert found["normal"].predicted == pytest.approx(found["normal"].measured, rel=0.25)
    assert found["bounds"].held


def test_the_tail_is_fitted_if_enough_impostor_scores_remain():
    rng = np.random.default_rng(1)
    mated, impostors = rng.normal(2, 1, 100), -np.sort(-rng.normal(size=(100, 4000)), axis=1)
    ranks = Ranks((impostors > mated[:, None]).sum(axis=1), 0, 4000, mated=mated)
    tested = {
        kept: [
            one.method
            for one in backtest(
                ranks, impostor_scores=impostors[:, :kept], resampling=Resampling(2)
            )
        ]
        for kept in (200, 1000)
    }
    assert "tail" in tested[1000]
    assert tested[200] == [one for one in tested[1000] if one != "tail"]


# ---- the ceiling, the floor, and methods that fail


@pytest.mark.parametrize(("n_speakers", "with_tail"), [(20, True), (300, False)])
def test_if_everybody_ranks_first_the_upper_end_is_1_and_the_lower_end_allows_for_unseen_errors(
    n_speakers, with_tail
):
    rng = np.random.default_rng(0)
    impostors = rng.normal(size=(300, 299))
    speakers = np.arange(300) % n_speakers
    ranks = Ranks(
        np.zeros(300, int),
        0,
        299,
        speakers=[f"s{speaker:03d}" for speaker in speakers],
        mated=[9.0] * 300,
    )
    scores = -np.sort(-impostors, axis=1)[:, :21] if with_tail else None
    found = extrapolate(
        ranks, [300, 3000, 30_000], impostor_scores=scores, resampling=Resampling(20)
    )
    low, high = found.span()
    rate = rate_where(0, n_speakers, 300, 0.05)
    assert found.is_trusted
    assert high.tolist() == [1.0, 1.0, 1.0]
    # the bound for trials that are all alike: a mean of powers is never lower
    assert (low <= (1 - rate) ** np.array([1, 2999 / 299, 29_999 / 299]) + 1e-12).all()
    for test in found.tests:
        assert test.high == 1
        assert test.low < test.measured


@pytest.mark.parametrize("beaters", [np.full(100, 299), np.full(100, 1)])
def test_if_nobody_ranks_first_the_lower_end_is_0_and_the_upper_end_allows_for_unseen_hits(beaters):
    found = extrapolate(Ranks(beaters, 0, 299), [300, 1e6], resampling=Resampling(20))
    part = found.predictions["normal"]
    assert part.low.tolist() == [0.0, 0.0]
    assert (part.high >= rate_where(0, 100, 100, 0.05) * (1 - 1e-12)).all()


@pytest.mark.parametrize("n_first", [1, 93])
def test_few_hits_or_misses_bound_every_larger_gallery(n_first):
    beaters = np.r_[np.zeros(n_first, int), np.full(100 - n_first, 150)]
    found = extrapolate(Ranks(beaters, 0, 299), [300, 3000], resampling=Resampling(20))
    part = found.predictions["normal"]
    few = min(n_first, 100 - n_first) / 100
    low, high = rate_interval(few, n_units=100, n_trials=100)
    if n_first > 50:
        low, high = 1 - high, 1 - low
    assert (part.high >= high - 1e-12).all()
    assert (part.low <= low ** np.array([1, 2999 / 299]) + 1e-12).all()


@pytest.fixture(scope="module")
def failing():
    """Trials that a random impostor beats with one and the same probability: no mixture of margins as wide as ours."""
    beaters = np.random.default_rng(0).binomial(1999, 0.001, 400)
    return extrapolate(Ranks(beaters, 0, 1999), [10_000, 1e6], resampling=Resampling(40))


def test_a_span_that_fails_its_back_test_is_hidden(ranks, failing):
    trusted = extrapolate(ranks, FAR, resampling=Resampling(40))
    assert [test.method for test in trusted.tests] == ["normal", "bounds"]
    assert trusted.is_trusted
    assert np.isfinite(trusted.span()).all()
    assert not any("trusted" in note for note in trusted.notes)
    assert any(
        "no extrapolation is trusted, and only the bounds are shown: of 100 speakers" in note
        for note in failing.notes
    )
    untested = replace(failing, tests=())
    assert untested.is_trusted
    assert not failing.is_trusted
    assert np.isnan(failing.span()).all()
    np.testing.assert_array_equal(
        failing.ends(), [failing.predictions["bounds"].low, failing.predictions["bounds"].high]
    )
    np.testing.assert_array_equal(trusted.ends(), trusted.span())
    assert np.isnan(failing.at([1e6]).span()).all()
    assert json.loads(to_json(failing.to_dict()))["span"] == {
        "low": [None, None],
        "high": [None, None],
    }


def test_one_method_that_passes_its_back_test_is_enough(failing):
    normal, bounds = (
        replace(failing.tests[0], method=name, held=name != "normal")
        for name in ("normal", "bounds")
    )
    tail = replace(normal, method="tail", held=True)
    assert replace(failing, tests=(normal, tail, bounds)).is_trusted
    assert not replace(failing, tests=(normal, bounds)).is_trusted


def test_a_gallery_too_small_for_a_back_test_has_a_note():
    found = extrapolate(Ranks(np.arange(30) % 4, 0, 60), [1000], resampling=Resampling(10))
    assert found.tests == ()
    assert found.is_trusted
    assert "no back-test: 100 impostors of each trial are needed, there are 60" in found.notes


@pytest.mark.parametrize("seed", range(3))
def test_a_perfect_anonymiser_passes_the_back_test(seed):
    rng = np.random.default_rng(seed)
    ranks = Ranks(rng.integers(0, 300, 300), 0, 299)
    found = extrapolate(ranks, [30_000], resampling=Resampling(40))
    low, high = found.span()
    assert found.is_trusted
    assert low[0] <= 1 / 30_000 <= high[0]


# ---- bad input


SCORES = np.random.default_rng(0).normal(size=(1000, 12))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sizes": []}, "expected populations from 2"),
        ({"sizes": [1]}, "expected populations from 2"),
        ({"sizes": [float("nan")]}, "expected populations from 2"),
        ({"sizes": [1e13]}, "expected populations from 2"),
        ({"resampling": Resampling(0)}, "expected at least 2 resamples, got 0"),
        ({"ties": "optimistic"}, "expected one of the rules for ties"),
        (
            {"impostor_scores": SCORES[:5]},
            r"expected impostor scores of shape \(1000, 11 or more\), got \(5, 12\)",
        ),
        ({"impostor_scores": SCORES[:, :10]}, r"got \(1000, 10\)"),
        ({"impostor_scores": SCORES[:, :1] + np.zeros((1, 12))}, "largest ones are all the same"),
        (
            {"impostor_scores": np.where(SCORES > 3, np.nan, SCORES)},
            "expected finite impostor scores",
        ),
    ],
)
def test_bad_input_is_refused(ranks, options, text):
    with pytest.raises(DataError, match=text):
        extrapolate(ranks, **{"sizes": [10**6], "resampling": Resampling(2), **options})


def test_too_little_data_is_refused(ranks):
    with pytest.raises(
        DataError, match="at least 20 trials with impostors to extrapolate from, got 19"
    ):
        extrapolate(Ranks([0] * 19, 0, 10))
    with pytest.raises(
        DataError, match="expected at least 200 impostors to hide most of them, got 100"
    ):
        backtest(Ranks([0] * 30, 0, 100))
    with pytest.raises(DataError, match="expected finite mated scores"):
        extrapolate(Ranks(ranks.beaters, 0, 999), impostor_scores=SCORES, resampling=Resampling(2))


# ---- the reference's ranks


@pytest.mark.golden
@pytest.mark.parametrize("utterances", [1, 3, 5])
def test_the_golden_curve_is_matched_within_the_gallery_and_at_its_end(shared, utterances):
    golden = json.loads((shared / "golden/evaluation/golden_link.json").read_text())[
        f"L{utterances}"
    ]
    ranks = Ranks(golden["beaters_strict"], 0, 599)
    found = extrapolate(ranks, [600, 10**6], resampling=Resampling(20))
    assert found.predictions["normal"].inside < 2 * np.sqrt(0.25 / 300)
    bounds = found.predictions["bounds"]
    assert bounds.low[0] < golden["exact_legal_eval"]["600"] < bounds.high[0]
