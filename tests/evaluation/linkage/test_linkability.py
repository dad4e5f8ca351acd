"""Linkability: brute force over all draws, golden and closed-form values, ties, measures, intervals, rank measures."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit, logit, ndtr
from scipy.stats import beta, betabinom, t

from evaluation.embeddings.sets import Embeddings
from evaluation.linkage.curve import (
    _parts,
    all_draws,
    chance,
    linkability,
    linkability_at_sizes,
    linkability_by_row,
    linkability_curve,
    linkability_over_draws,
    linkability_over_sizes,
    monte_carlo,
)
from evaluation.linkage.disclosure import (
    cumulative_match,
    fit_beta_binomial,
    similarity_rank_disclosure,
)
from evaluation.linkage.ranks import Ranks
from evaluation.metrics import Method
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling, draw_variance, interval, widening
from spkbase.errors import DataError
from spkbase.work import Work


def over_all_draws(beaters, ties, impostors, size, top, rule):
    """Mean over every subset of impostors, by counting: 1 for beaters, 0 for ties, -1 for the others."""
    kinds = [1] * beaters + [0] * ties + [-1] * (impostors - beaters - ties)
    total, count = Fraction(0), 0
    for drawn in combinations(kinds, size - 1):
        higher, same = drawn.count(1), drawn.count(0)
        if rule == "strict":
            total += higher + same < top
        elif rule == "lenient":
            total += higher < top
        else:  # the owner ranks before none, one, ..., all of the ties, with equal probability
            total += Fraction(sum(higher + before < top for before in range(same + 1)), same + 1)
        count += 1
    return total / count


@given(
    counts=st.lists(st.lists(st.integers(0, 7), min_size=3, max_size=3), min_size=1, max_size=4),
    rule=st.sampled_from(["shared", "strict", "lenient"]),
    top=st.integers(1, 4),
)
def test_linkability_equals_brute_force_over_all_subsets(counts, rule, top):
    """Rows of three numbers: beaters, ties, and impostors that are neither (so that galleries differ too)."""
    counts = [one for one in counts if sum(one)] or [[1, 1, 1]]
    beaters, ties, rest = np.array(counts).T
    ranks = Ranks(beaters, ties, beaters + ties + rest)
    sizes = [
        size
        for size in range(1, ranks.largest_size + 1)
        if comb(max(map(sum, counts)), size - 1) < 1500
    ]
    expected = [
        [float(over_all_draws(k, t, k + t + r, size, top, rule)) for size in sizes]
        for k, t, r in np.array(counts).tolist()
    ]
    found = linkability_by_row(ranks, sizes, ties=rule, top=top)
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert linkability_at_sizes(ranks, sizes, ties=rule, top=top) == pytest.approx(
        np.mean(expected, axis=0), abs=1e-12
    )


@pytest.mark.parametrize("impostors", [599, 22_023, 1_000_000])
def test_linkability_equals_exact_fractions_in_large_galleries(impostors):
    """Rounding stays below 1e-9 relative where factorials have millions of digits."""
    ranks = Ranks([0, 1, 7, 40], 0, impostors)
    sizes = np.array([2, 20, impostors // 50, impostors // 3, impostors - 50])

    def exact(beaters, size):
        value = Fraction(1)
        for step in range(beaters):  # C(M - n, k) / C(M, k), the same number
            value *= Fraction(impostors - (size - 1) - step, impostors - step)
        return float(value)

    expected = [
        [exact(beaters, size) for size in sizes.tolist()] for beaters in ranks.beaters.tolist()
    ]
    assert linkability_by_row(ranks, sizes) == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.golden
@pytest.mark.parametrize("utterances", [1, 3, 5])
def test_golden_curves_are_reproduced_exactly_and_by_monte_carlo(shared, utterances):
    golden = json.loads((shared / "golden" / "evaluation" / "golden_link.json").read_text())[
        f"L{utterances}"
    ]
    ranks = Ranks(golden["beaters_strict"], 0, 599)
    for name, top in (("exact_legal_eval", 1), ("exact_proto", 1), ("top5", 5)):
        sizes = list(map(int, golden[name]))
        assert linkability_at_sizes(ranks, sizes, top=top) == pytest.approx(
            list(golden[name].values()), abs=1e-12
        )
    published = {
        int(size): values for size, values in golden["oraned_mc_seeds_42_0_6_7_25"].items()
    }
    for size, drawn in published.items():
        each = linkability_by_row(ranks, [size])[:, 0]
        error = np.sqrt((each * (1 - each)).sum()) / len(each) / np.sqrt(len(drawn))
        # the reference's draws share their noise between seeds, sizes and L, so the margin is wide
        assert abs(np.mean(drawn) - each.mean()) <= max(4 * error, 1e-12)


def test_monte_carlo_is_within_its_standard_error():
    rng = np.random.default_rng(0)
    beaters = (200 * rng.random(300) ** 3).astype(int)
    ranks = Ranks(beaters, np.minimum(rng.integers(0, 4, 300), 299 - beaters), 299)
    sizes = [2, 5, 20, 100, 300]
    for rule in ("shared", "strict", "lenient"):
        drawn = monte_carlo(ranks, sizes, runs=200, seed=1, ties=rule)
        expected = linkability_at_sizes(ranks, sizes, ties=rule)
        error = drawn.std(axis=0, ddof=1) / np.sqrt(200)
        assert (np.abs(drawn.mean(axis=0) - expected) <= 4 * error + 1e-12).all()
    assert (monte_carlo(ranks, sizes, seed=1) == monte_carlo(ranks, sizes, seed=1)).all()
    # draws of one size do not depend on the other sizes, nor sizes on each other
    assert (
        monte_carlo(ranks, [20, 100], seed=1)[:, 1].tolist()
        == monte_carlo(ranks, [100], seed=1)[:, 0].tolist()
    )
    pairs = monte_carlo(ranks, [20, 21], runs=400, seed=2)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.2


def test_exchangeable_scores_give_chance():
    """Each number of beaters once, or everything tied: 1 / N, and r / N among the first r."""
    sizes = np.arange(2, 102)
    each = Ranks(np.arange(101), 0, 100)
    tied = Ranks([0], 100, 100)
    for ranks in (each, tied):
        for top in (1, 3):
            assert linkability_at_sizes(ranks, sizes, top=top) == pytest.approx(
                chance(sizes, top=top), rel=1e-12
            )
    assert linkability_at_sizes(tied, sizes, ties="strict") == pytest.approx(0)
    assert linkability_at_sizes(tied, sizes, ties="lenient") == pytest.approx(1)


@pytest.mark.parametrize(
    ("size", "published"), [(2, 0.92135), (20, 0.55799), (100, 0.32322), (1000, 0.12029)]
)
def test_gaussian_scores_match_their_closed_form(size, published):
    """Scores of d' = 2: linkability is E[Phi(X)**(N - 1)] with X normal around 2."""
    density = NormalDist(2, 1).pdf
    integral = quad(lambda x: density(x) * ndtr(x) ** (size - 1), -8, 12, epsabs=1e-12)[0]
    assert integral == pytest.approx(published, abs=5e-6)
    # beaters are binomial given X, so rows at fine quantiles of X and of the binomial have that expected value
    rng = np.random.default_rng(0)
    mated = 2 + np.array([NormalDist().inv_cdf((row + 0.5) / 40_000) for row in range(40_000)])
    ranks = Ranks(rng.binomial(4000, 1 - ndtr(mated)), 0, 4000)
    assert linkability_at_sizes(ranks, [size])[0] == pytest.approx(integral, abs=2e-3)


# measures of the size


@pytest.mark.parametrize("rule", ["shared", "strict", "lenient"])
def test_means_over_sizes_equal_the_curve(rule):
    rng = np.random.default_rng(0)
    beaters = rng.integers(0, 40, 50)
    ranks = Ranks(beaters, rng.integers(0, 10, 50), np.where(np.arange(50) < 25, 49, 80))
    for row in range(50):
        one = Ranks(
            *([column[row]] for column in (ranks.beaters, ranks.ties)), ranks.impostors[row]
        )
        sizes = np.arange(2, one.largest_size + 1)
        curve = linkability_at_sizes(one, sizes, ties=rule)
        for measure, weights in (("log", 1 / sizes), ("uniform", np.ones(len(sizes)))):
            found = linkability_over_sizes(ranks, measure=measure, ties=rule)[row]
            assert found == pytest.approx(curve @ weights / weights.sum(), abs=1e-12)


@pytest.mark.parametrize("which", ["ek", "se", "ks", "kk", "ss"])
def test_incompatible_arguments_are_refused(which):
    key = Key.from_ids(["a", "a", "b"], ["x", "y", "x"], [True, False, False])
    scores = Scores(key.model_ids, key.segment_ids, key.models, key.segments, values=np.zeros(3))
    made = {"e": Embeddings(["a"], ["a"], np.ones((1, 2))), "s": scores, "k": key}
    with pytest.raises(
        DataError, match="expected Embeddings and Embeddings, or Scores and Key, got"
    ):
        linkability(*(made[one] for one in which), [2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda ranks: similarity_rank_disclosure(replace(ranks, impostors=np.array([5, 6]))),
            "expected the same number of impostors in each row, got 5 to 6",
        ),
        (
            lambda ranks: linkability_over_sizes(ranks, measure="grid"),
            "one of the measures of sizes log, uniform, got 'grid'",
        ),
        (
            lambda ranks: linkability_at_sizes(ranks, [0]),
            "expected sizes from 1 to 6, the whole gallery, got 0",
        ),
        (
            lambda ranks: linkability_at_sizes(ranks, [2, 7]),
            "expected sizes from 1 to 6, the whole gallery, got 7",
        ),
        (lambda ranks: linkability_at_sizes(ranks, [2.5]), "expected sizes to be integers"),
        (
            lambda ranks: linkability_at_sizes(ranks, [2], top=0),
            "expected top to be at least 1, got 0",
        ),
        (
            lambda ranks: linkability_at_sizes(ranks, [2], ties="both"),
            "expected one of the rules for ties",
        ),
        (
            lambda ranks: monte_carlo(ranks, [2], runs=0),
            "expected at least 1 run and a seed from 0",
        ),
        (
            lambda ranks: linkability_curve(ranks, [2], resampling=Resampling(1)),
            "expected 0, or 2 to 1,000,000 resamples",
        ),
        (
            lambda ranks: linkability_curve(ranks, [2], resampling=Resampling(9, level=1)),
            "expected a level between 0 and 1",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call(Ranks([0, 2], 0, 5))


# intervals


def binomtest_ends(count, total):
    return float(beta.ppf(0.025, count, total - count + 1)), float(
        beta.ppf(0.975, count + 1, total - count)
    )


def test_intervals_equal_those_of_the_general_method():
    """For rows of one speaker each: the method of `evaluation.uncertainty` on resampled means, size by size."""
    rng = np.random.default_rng(0)
    ranks = Ranks(rng.integers(0, 30, 40), 0, 60)
    sizes = np.array([2, 7, 30, 61])
    curve = linkability_curve(ranks, sizes, resampling=Resampling(200, seed=5))
    each = linkability_by_row(ranks, sizes)
    weights = []
    for block in range(8):
        own = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(block,)))
        weights += [np.bincount(own.integers(0, 40, 40), minlength=40) / 40 for _ in range(25)]
    for place in range(len(sizes)):
        resampled = np.array(weights) @ each[:, place]
        value = each[:, place].mean()
        expected = interval(value, resampled, method=Method("logit", lower=0, upper=1), n_units=40)
        ends = np.array([expected.low, expected.high])
        # the reference has 39 degrees of freedom, ours as many as speakers contribute, and stays within 0 to 1
        carriers = min(
            one.sum() ** 2 / (one**2).sum() for one in (each[:, place], 1 - each[:, place])
        )
        wider = t.ppf(0.975, carriers) / t.ppf(0.975, 39)
        ends = expit(logit(value) + wider * (logit(ends) - logit(value)))
        share = binomtest_ends(40 * value, 40)
        expected_ends = max(ends[0], share[0]), min(ends[1], share[1])
        assert (curve.low[place], curve.high[place]) == pytest.approx(expected_ends, rel=1e-9)
        assert curve.low[place] < value < curve.high[place]


def test_rows_of_a_speaker_are_drawn_together():
    """Ten copies of each row tell no more than one."""
    rng = np.random.default_rng(0)
    beaters = rng.integers(0, 30, 40)
    names = [f"s{one:02d}" for one in range(40)]
    once = linkability_curve(
        Ranks(beaters, 0, 60, speakers=names), [2, 20], resampling=Resampling(300)
    )
    often = linkability_curve(
        Ranks(np.repeat(beaters, 10), 0, 60, speakers=np.repeat(names, 10)),
        [2, 20],
        resampling=Resampling(300),
    )
    assert often.low == pytest.approx(once.low)
    assert often.high == pytest.approx(once.high)
    apart = linkability_curve(
        Ranks(np.repeat(beaters, 10), 0, 60), [2, 20], resampling=Resampling(300)
    )
    assert (apart.high - apart.low < 0.5 * (once.high - once.low)).all()


def test_intervals_of_identical_speakers_equal_clopper_pearson():
    """As Clopper and Pearson: with n of n successes the lower end is (0.025)**(1 / n)."""
    curve = linkability_curve(Ranks([0] * 10, 0, 9), [2, 10], resampling=Resampling(20))
    assert curve.low == pytest.approx(0.025**0.1)
    assert curve.high.tolist() == [1.0, 1.0]
    none = linkability_curve(Ranks([9] * 10, 0, 9), [10], resampling=Resampling(20))
    assert (none.values[0], none.low[0], none.high[0]) == (0.0, 0.0, pytest.approx(1 - 0.025**0.1))
    alike = linkability_curve(Ranks([3] * 10, 0, 9), [5], resampling=Resampling(20))
    assert (alike.low[0], alike.high[0]) == pytest.approx(binomtest_ends(10 * alike.values[0], 10))
    alone = linkability_curve(Ranks([0], 0, 9), [5], resampling=Resampling(20))
    assert np.isnan([alone.low[0], alone.high[0]]).all()


# rank measures


def test_the_cumulative_match_curve_equals_hand_computed_values():
    ranks = Ranks([0, 0, 2], [0, 2, 0], 3)
    assert cumulative_match(ranks) == pytest.approx(np.array([4 / 3, 5 / 3, 3, 3]) / 3)
    assert cumulative_match(ranks, ties="strict") == pytest.approx(np.array([1, 1, 3, 3]) / 3)
    sizes = [ranks.largest_size]
    for place in range(1, 5):
        assert cumulative_match(ranks)[place - 1] == pytest.approx(
            linkability_at_sizes(ranks, sizes, top=place)[0]
        )


def test_uniform_ranks_disclose_nothing_and_perfect_ranks_everything():
    uniform = similarity_rank_disclosure(Ranks(np.arange(64), 0, 63))
    assert (uniform["mean_bits"], uniform["worst_bits"]) == (
        pytest.approx(0, abs=1e-5),
        pytest.approx(0, abs=1e-3),
    )
    assert (uniform["alpha"], uniform["beta"]) == pytest.approx((1, 1), rel=1e-3)
    assert (uniform["histogram_mean_bits"], uniform["histogram_worst_bits"]) == pytest.approx(
        (0, 0), abs=1e-12
    )
    # the fit ends where the slope of the loss, and here the loss itself, is 1e-9
    for beaters in (0, 63):
        perfect = similarity_rank_disclosure(Ranks([beaters] * 20, 0, 63))
        assert (perfect["mean_bits"], perfect["worst_bits"]) == pytest.approx((6, 6), abs=1e-7)
        assert (perfect["histogram_mean_bits"], perfect["histogram_worst_bits"]) == pytest.approx(
            (6, 6)
        )


def test_the_disclosure_of_a_known_distribution_is_recovered():
    """Of a beta-binomial sample: parameters near the true ones, bits near those of the true distribution."""
    alpha, beta, impostors = 0.3, 4.0, 255
    truth = betabinom(impostors, alpha, beta).pmf(np.arange(impostors + 1))
    bits = np.log2((impostors + 1) * truth)
    found_alpha, found_beta = fit_beta_binomial(truth)
    assert (found_alpha, found_beta) == pytest.approx((alpha, beta), rel=1e-3)
    beaters = betabinom(impostors, alpha, beta).rvs(1500, random_state=0)
    found = similarity_rank_disclosure(Ranks(beaters, 0, impostors))
    assert found["mean_bits"] == pytest.approx(truth @ bits, abs=0.15)
    assert found["worst_bits"] == pytest.approx(bits.max(), abs=0.25)
    # few trials in many ranks: the histogram shows disclosure that does not exist
    assert found["histogram_mean_bits"] > found["mean_bits"]


# several draws of the same trials


SPEAKERS = np.repeat([f"s{number:02d}" for number in range(12)], 5)
SIZES = np.array([2, 5, 12])
RESAMPLING = Resampling(400, 0)


def ranks(seed, best=0):
    rng = np.random.default_rng(seed)
    beaters = np.minimum(best + rng.poisson(1.5, 60), 11)
    return Ranks(beaters, np.zeros(60, int), 11, speakers=SPEAKERS)


def test_values_are_means_over_draws():
    draws = [ranks(seed) for seed in range(3)]
    found = linkability_over_draws(draws, SIZES, resampling=RESAMPLING)
    assert_allclose(
        found.values, np.mean([linkability_at_sizes(one, SIZES) for one in draws], axis=0)
    )
    assert (found.low < found.values).all()
    assert (found.values < found.high).all()
    bare = linkability_over_draws(draws, SIZES)
    assert np.isnan(bare.low).all()


def test_the_variance_components_equal_those_of_resamples():
    """Oracle: the general formula, which needs resamples of speakers."""
    draws = [ranks(seed, best) for seed, best in ((0, 0), (1, 1), (2, 2))]
    weights = np.random.default_rng(0).multinomial(12, np.full(12, 1 / 12), 50_000)
    of_rows = np.repeat(weights, 5, axis=1)
    resampled = [
        of_rows @ linkability_by_row(one, SIZES) / of_rows.sum(axis=1, keepdims=True)
        for one in draws
    ]
    speakers, added, count = _parts(draws, SIZES)
    assert count == 12
    for column, size in enumerate(SIZES.tolist()):
        values = [linkability_at_sizes(one, [size])[0] for one in draws]
        expected = draw_variance(values, [drawn[:, column] for drawn in resampled], n_units=12)
        assert_allclose((speakers[column], added[column]), expected, rtol=0.05, atol=1e-5)
    found, bare = (make(draws) for make in (
        lambda draws: linkability_over_draws(draws, SIZES, resampling=RESAMPLING),
        lambda draws: linkability_curve(all_draws(draws), SIZES, resampling=RESAMPLING),
    ))  # fmt: skip
    factor = widening(speakers, added, n_units=12, n_draws=3, level=0.95)
    assert (factor > 1).all()
    for end in ("low", "high"):
        off = [logit(getattr(curve, end)) - logit(curve.values) for curve in (found, bare)]
        assert_allclose(off[0], factor * off[1])


# in one call


NAMES = [f"s{number:02d}" for number in range(30)]


@pytest.fixture(scope="module")
def sides():
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((30, 8))
    utterances = voices[:, None] + 1.5 * rng.standard_normal((30, 3, 8))
    ids = [f"{name}-{number}" for name in NAMES for number in range(3)]
    return Embeddings(NAMES, NAMES, voices), Embeddings(
        ids, np.repeat(NAMES, 3), utterances.reshape(90, 8)
    )


def counted(cosine, owners, size):
    """Mean over trials of C(M - k, N - 1) / C(M, N - 1), with k and M counted in a matrix (trials, enrolled)."""
    mated = cosine[np.arange(len(owners)), owners]
    beaters = (cosine > mated[:, None]).sum(axis=1).tolist()
    most = cosine.shape[1] - 1
    return float(
        np.mean([comb(most - beater, size - 1) / comb(most, size - 1) for beater in beaters])
    )


def cosines(enrolled, tested):
    return (tested / np.linalg.norm(tested, axis=1)[:, None]) @ (
        enrolled / np.linalg.norm(enrolled, axis=1)[:, None]
    ).T


@pytest.mark.parametrize("utterances", [None, 2, "all"])
def test_linkability_is_computed_from_embeddings(sides, utterances):
    enrolled, tested = sides
    n_used = {None: 1, 2: 2, "all": 3}[utterances]
    trials = tested.vectors.reshape(30, 3, 8)[:, :n_used].mean(axis=1)
    curve = linkability(
        enrolled, tested, utterances=utterances, resampling=Resampling(0), work=Work(jobs=1)
    )
    assert curve.sizes.tolist() == list(range(2, 31))
    expected = [
        counted(cosines(enrolled.vectors, trials), np.arange(30), size) for size in range(2, 31)
    ]
    assert curve.values == pytest.approx(expected, abs=1e-12)
    assert curve.chance == pytest.approx(1 / curve.sizes)
    assert np.isnan(curve.low).all()


def test_linkability_is_computed_from_scores_and_key(sides):
    enrolled, tested = sides
    cosine = cosines(enrolled.vectors, tested.vectors)
    owners = np.repeat(np.arange(30), 3)
    models, segments = np.tile(NAMES, 90), np.repeat(tested.ids, 30)
    is_target = (np.arange(30) == owners[:, None]).ravel()
    scores = Scores.from_ids(models, segments, 7 * cosine.ravel() - 1)
    curve = linkability(scores, Key.from_ids(models, segments, is_target), [2, 30])
    assert curve.values == pytest.approx(
        [counted(cosine, owners, size) for size in (2, 30)], abs=1e-12
    )
    assert (curve.low < curve.values).all()
    assert (curve.values < curve.high).all()


def test_printed_ranks_and_curves_show_the_result_first():
    ranks = Ranks([0, 0, 1, 3], [0, 1, 0, 0], 3)
    assert (
        str(ranks).splitlines()[0]
        == "the target speaker ranks first in 1 of 4 trials, among up to 4"
    )
    plain = linkability_curve(ranks, [4, 2])
    value = plain.values[0]
    assert (
        str(plain).splitlines()[0] == f"linkability {value:.4f} among 4 speakers, by chance 0.2500"
    )
    curve = linkability_curve(ranks, [4, 2], resampling=Resampling(20))
    assert (
        f"{value:.4f} [{curve.low[0]:.4f}, {curve.high[0]:.4f}] among 4"
        in str(curve).splitlines()[0]
    )
