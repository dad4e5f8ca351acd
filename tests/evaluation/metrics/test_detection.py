"""Detection metrics against SIDEKIT's numbers, closed forms and search over all thresholds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri
from sklearn.metrics import roc_auc_score

from evaluation.metrics import SortedScores, auc, detection, probit_curve, roc, sort_scores
from evaluation.metrics.detection import (
    act_dcf,
    clopper_pearson,
    eer,
    effective_prior,
    empirical_epsilon,
    equal_error,
    hull_min_dcf,
    min_dcf,
    prbep,
    rocch,
    rocch_eer,
    tpr_at_fpr,
)
from spkbase.errors import DataError
from tests.score_strategies import classes

# few values, so that ties are frequent
BOXES = {
    "old": (5e-4, 0.5, 5e-4, 0.5),
    "new": (5e-6, 5e-3, 0.01, 0.99),
    "big": (5e-6, 0.99, 5e-6, 0.99),
    "sre10": (3e-6, 0.5, 3e-4, 0.9),
}


@pytest.fixture(scope="module")
def golden(data):
    """SIDEKIT 1.3.2 on 108 target and 2056 nontarget scores with ties."""
    with np.load(data / "det.npz") as file:
        return dict(file)


def search(target, nontarget):
    """Numbers of misses and false alarms at every threshold, shape (P, 2), by counting."""
    thresholds = [*sorted({*target, *nontarget}), None]
    points = []
    for threshold in thresholds:
        accept = [
            [threshold is not None and score >= threshold for score in scores]
            for scores in (target, nontarget)
        ]
        points.append((len(target) - sum(accept[0]), sum(accept[1])))
    return np.array(points)


def balance(points):
    """Least value at which a line between two points has equal coordinates."""
    values = [float(x) for x, y in points if x == y]
    for (x0, y0), (x1, y1) in combinations(points, 2):
        if (x0 - y0) * (x1 - y1) < 0:
            share = (x0 - y0) / ((x0 - y0) - (x1 - y1))
            values.append(float(x0 + share * (x1 - x0)))
    return min(values)


# golden numbers


def test_the_golden_hull_is_reproduced(golden):
    p_miss, p_fa = rocch(golden["target"], golden["nontarget"])
    np.testing.assert_allclose(p_miss, golden["rocch_pmiss"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(p_fa, golden["rocch_pfa"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["sre08", "sre10", "half"])
@pytest.mark.parametrize("normalised", [True, False])
def test_golden_costs_are_reproduced(golden, name, normalised):
    target, nontarget = golden["target"], golden["nontarget"]
    costs = {"sre08": detection.SRE08, "sre10": (0.001, 1.0, 1.0), "half": (0.5, 1.0, 1.0)}[name]
    expected = golden[f"mindcf_{name}" + ("" if normalised else "_unnorm")]
    prior = effective_prior(*costs)
    assert prior == pytest.approx(expit(expected[0]), abs=1e-9)
    found = hull_min_dcf(target, nontarget, prior=prior, normalised=normalised)
    np.testing.assert_allclose(found, expected[1:4], rtol=0, atol=1e-9)
    p_target, c_miss, c_fa = costs
    cost = min_dcf(
        target, nontarget, p_target=p_target, c_miss=c_miss, c_fa=c_fa, normalised=normalised
    )
    assert cost == pytest.approx(expected[1], abs=1e-9)
    assert prbep(target, nontarget) == pytest.approx(expected[4], abs=1e-9)
    assert eer(target, nontarget) == pytest.approx(expected[5], abs=1e-9)


@pytest.mark.parametrize("window", BOXES)
def test_golden_det_curves_are_reproduced(golden, window):
    """Every 25th point of each piece; SIDEKIT's pieces that lie outside and shrink to a corner are left out of both."""
    x, y = probit_curve(*rocch(golden["target"], golden["nontarget"]), box=BOXES[window])
    curve = np.stack([x.reshape(-1, 101)[:, ::25], y.reshape(-1, 101)[:, ::25]])
    assert curve.shape == golden[f"det_{window}"].shape
    np.testing.assert_allclose(curve, golden[f"det_{window}"], rtol=0, atol=1e-9)


def test_the_golden_roc_contains_every_corner(golden):
    """SIDEKIT's curve, which walks through ties one by one, passes through all of ours."""
    theirs = set(
        zip(golden["roc_misses"].tolist(), golden["roc_false_alarms"].tolist(), strict=True)
    )
    p_miss, p_fa = roc(golden["target"], golden["nontarget"])
    ours = {(round(miss * 108), round(fa * 2056)) for miss, fa in zip(p_miss, p_fa, strict=True)}
    assert len(ours) > 100
    assert ours <= theirs


# search over all thresholds


@given(classes)
def test_the_hull_equals_a_search(both):
    vertices = sort_scores(*both).hull
    points = search(*both)
    corners = np.stack([vertices.misses, vertices.false_alarms], axis=1)
    assert corners[0].tolist() == [0, len(both[1])]
    assert corners[-1].tolist() == [len(both[0]), 0]
    assert {tuple(corner) for corner in corners} <= {tuple(point) for point in points}
    steps = np.diff(corners, axis=0)
    turns = steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]
    assert (turns > 0).all()  # strictly convex
    for corner, step in zip(corners, steps, strict=False):
        offset = points - corner
        assert (
            step[0] * offset[:, 1] - step[1] * offset[:, 0] >= 0
        ).all()  # no point lies below the hull


@given(classes, st.floats(1e-4, 1 - 1e-4))
def test_min_dcf_equals_a_search(both, prior):
    p_miss, p_fa = (search(*both) / [len(both[0]), len(both[1])]).T
    expected = (prior * p_miss + (1 - prior) * p_fa).min()
    assert min_dcf(*both, p_target=prior, normalised=False) == pytest.approx(expected, abs=1e-12)
    assert min_dcf(*both, p_target=prior) == pytest.approx(
        expected / min(prior, 1 - prior), abs=1e-9
    )
    assert min_dcf(*both, p_target=prior) <= 1 + 1e-12
    assert hull_min_dcf(*both, prior=prior)[0] == pytest.approx(
        min_dcf(*both, p_target=prior), abs=1e-9
    )
    several = min_dcf(*both, p_target=np.array([prior, 0.5]))
    assert several.tolist() == [min_dcf(*both, p_target=prior), min_dcf(*both, p_target=0.5)]


@given(classes)
def test_the_roc_equals_a_search(both):
    points = search(*both)
    steps = np.diff(points, axis=0)
    turns = steps[:-1, 0] * steps[1:, 1] != steps[:-1, 1] * steps[1:, 0]
    corners = points[np.concatenate([[True], turns, [True]])] / [len(both[0]), len(both[1])]
    np.testing.assert_allclose(np.stack(roc(*both), axis=1), corners, rtol=0, atol=1e-12)


@given(classes)
def test_eer_and_prbep_equal_a_search(both):
    points = search(*both)
    assert eer(*both) == pytest.approx(balance(points / [len(both[0]), len(both[1])]), abs=1e-12)
    assert prbep(*both) == pytest.approx(balance(points.astype(float)), abs=1e-9)


# closed forms and special cases


@pytest.mark.parametrize("distance", [1.0, 2.0, 4.0])
def test_gaussian_scores_match_the_closed_form(distance):
    """At quantiles, not random draws, so that the bound is that of the step, 1 / n."""
    n = 100_000
    noise = ndtri((np.arange(n) + 0.5) / n)
    target, nontarget = noise + distance / 2, noise - distance / 2
    assert eer(target, nontarget) == pytest.approx(ndtr(-distance / 2), abs=2 / n)
    for prior in (0.01, 0.5, 0.9):
        threshold = -np.log(prior / (1 - prior)) / distance
        cost = prior * ndtr(threshold - distance / 2) + (1 - prior) * ndtr(
            -threshold - distance / 2
        )
        assert min_dcf(target, nontarget, p_target=prior, normalised=False) == pytest.approx(
            cost, abs=2 / n
        )


@pytest.mark.parametrize("classes_without_one", [([], [1.0]), ([1.0], [])])
def test_an_empty_class_is_not_reported_as_reversed(classes_without_one):
    assert detection.reversal(*classes_without_one) is None


# malformed input


@pytest.mark.parametrize("metric", [eer, prbep, rocch, roc])
@pytest.mark.parametrize(
    ("target", "nontarget", "words"),
    [
        ([], [1.0], "expected target scores, got none"),
        ([1.0], [], "expected nontarget scores, got none"),
        ([1.0, np.nan], [1.0], "got 1 NaN or missing among 2"),
        ([1.0], [np.nan], "nontarget scores, got 1 NaN"),
        ([[1.0]], [1.0], r"shape \(N,\), got \(1, 1\)"),
    ],
)
def test_malformed_scores_are_refused(metric, target, nontarget, words):
    with pytest.raises(DataError, match=words):
        metric(target, nontarget)


@pytest.mark.parametrize(
    ("metric", "options", "words"),
    [
        *(
            (min_dcf, {"p_target": prior}, "prior between 0 and 1")
            for prior in (0, 1, np.nan, np.array([0.5, 1.5]))
        ),
        (min_dcf, {"p_target": 0.1, "c_miss": 0}, "positive costs"),
        (act_dcf, {"p_target": 0.1, "c_fa": np.inf}, "positive costs"),
        (
            eer,
            {"method": "eer"},
            "one of the methods rocch, interpolated, kaldi, speechbrain, nearest",
        ),
        *((tpr_at_fpr, {"fpr": rate}, "rate between 0 and 1") for rate in (0.0, 1.0, np.nan)),
        *((hull_min_dcf, {"prior": logit}, "not its logit") for logit in (-2.29, 0, 1, 1.5)),
    ],
)
def test_options_out_of_range_are_refused(metric, options, words):
    with pytest.raises(DataError, match=words):
        metric([1.0], [0.0], **options)


# the five readings of the equal error rate, walked through score by score


def by_kaldi(target, nontarget):
    target, nontarget = sorted(target), sorted(nontarget)
    position = 0
    while position + 1 < len(target):
        opposite = max(len(nontarget) - 1 - int(len(nontarget) * position / len(target)), 0)
        if nontarget[opposite] < target[position]:
            break
        position += 1
    return position / len(target), target[position]


def by_speechbrain(target, nontarget):
    """Thresholds between two scores count as the lower one does, so that the scores are enough."""
    best = None
    for threshold in sorted({*target, *nontarget}):
        p_miss = sum(score <= threshold for score in target) / len(target)
        p_fa = sum(score > threshold for score in nontarget) / len(nontarget)
        if best is None or abs(p_miss - p_fa) < best[0] - 1e-12:
            best = (abs(p_miss - p_fa), (p_miss + p_fa) / 2, threshold)
    return best[1], best[2]


def by_roc_curve(target, nontarget):
    """scikit-learn's points from the highest threshold down, without those whose steps before and after are equal."""
    values = sorted({*target, *nontarget}, reverse=True)
    points = [(sum(s >= v for s in nontarget), sum(s >= v for s in target), v) for v in values]
    kept = [
        point
        for place, point in enumerate(points)
        if place in (0, len(points) - 1)
        or any(points[place - 1][k] - 2 * point[k] + points[place + 1][k] != 0 for k in (0, 1))
    ]
    rates = [
        (1 - accepted / len(target), false / len(nontarget), value)
        for false, accepted, value in [(0, 0, np.inf), *kept]
    ]
    differences = [round(abs(p_miss - p_fa), 12) for p_miss, p_fa, _ in rates]
    p_miss, p_fa, value = rates[int(np.argmin(differences))]
    return (p_miss + p_fa) / 2, value


@given(classes, st.randoms())
def test_the_crossing_edge_gives_the_equal_error_rate_of_the_whole_hull_to_the_bit(both, random):
    scores = sort_scores(*both)
    for _ in range(3):
        weights = [np.array([random.randrange(4) for _ in scores.thresholds]) for _ in range(2)]
        weighted = SortedScores(
            scores.thresholds, scores.target * weights[0], scores.nontarget * weights[1]
        )
        if weighted.n_target and weighted.n_nontarget:
            assert rocch_eer(weighted) == eer(weighted)
    assert rocch_eer(scores) == eer(scores)


RULES = {
    "kaldi": by_kaldi,
    "speechbrain": by_speechbrain,
    "nearest": by_roc_curve,
}


@pytest.mark.parametrize("method", RULES)
@given(both=classes)
def test_each_eer_rule_equals_a_plain_walk_over_thresholds(method, both):
    rate, threshold = RULES[method](*both)
    found = equal_error(sort_scores(*both), method=method)
    assert found.rate == pytest.approx(rate, abs=1e-12)
    assert found.threshold == threshold


# actual costs


@given(classes, st.floats(1e-4, 1 - 1e-4))
def test_the_actual_cost_equals_a_count(both, prior):
    threshold = -np.log(prior / (1 - prior))
    misses = sum(score < threshold - 1e-9 for score in both[0])
    near = any(abs(score - threshold) <= 1e-9 for side in both for score in side)
    false_alarms = sum(score >= threshold for score in both[1])
    cost = prior * misses / len(both[0]) + (1 - prior) * false_alarms / len(both[1])
    if not near:
        assert act_dcf(*both, p_target=prior, normalised=False) == pytest.approx(cost, abs=1e-12)


# true accepts at few false accepts


@given(classes, st.floats(0.001, 0.999))
def test_true_accept_rates_equal_a_search(both, bound):
    found = tpr_at_fpr(*both, fpr=bound)
    best = 0.0
    for threshold in {*both[0], *both[1]}:
        if sum(s >= threshold for s in both[1]) / len(both[1]) <= bound:
            best = max(best, sum(s >= threshold for s in both[0]) / len(both[0]))
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.false_accept_rate <= bound * (1 + 1e-9)
    assert found.low <= found.value <= found.high
    assert found.resolved == (len(both[1]) * bound >= 1)


def test_round_false_accept_rates_allow_the_exact_number_of_errors():
    """0.0001 of 10,000 is one, whatever rounding says."""
    nontarget = np.arange(10_000.0)
    for bound, allowed in ((1e-4, 1), (1e-3, 10), (1e-2, 100), (0.07, 700)):
        point = tpr_at_fpr(np.array([10_000.0 - allowed, 0.0]), nontarget, fpr=bound)
        assert (point.value, point.resolved) == (0.5, True)
    assert not tpr_at_fpr([1.0], nontarget[:9_999], fpr=1e-4).resolved
    nothing = tpr_at_fpr([1.0], [1.0], fpr=0.5)
    assert (nothing.value, nothing.threshold, nothing.false_accept_rate) == (0.0, np.inf, 0.0)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (5, 10, 0.1871, 0.8129),
        (81, 263, 0.2527, 0.3676),
    ],
)
def test_clopper_pearson_equals_published_values(count, total, low, high):
    """The last row: R. Newcombe, Statistics in Medicine 17, 1998, table 1."""
    assert clopper_pearson(count, total - count) == pytest.approx((low, high), abs=5e-5)


@given(classes)
def test_auc_equals_scikit_learn(both):
    # scikit-learn refuses infinite scores
    target, nontarget = (np.clip(side, -1e9, 1e9) for side in both)
    truth = [1] * len(target) + [0] * len(nontarget)
    expected = roc_auc_score(truth, np.concatenate([target, nontarget]))
    assert auc(target, nontarget) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_epsilon_equals_counts_at_the_threshold(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 8, 40) + rng.integers(0, 4)
    nontarget = rng.integers(0, 7, 120)
    delta = rng.choice([0.0, 0.05])
    found = empirical_epsilon(target, nontarget, fpr=0.2, delta=delta, level=0.9)
    accepted = (target >= found.accepted.threshold).sum()
    false = (nontarget >= found.accepted.threshold).sum()
    assert false <= 0.2 * 120
    least = stats.binomtest(accepted, 40).proportion_ci(0.9, method="exact").low
    most = stats.binomtest(false, 120).proportion_ci(0.9, method="exact").high
    rates = [(accepted / 40, false / 120), (least, most)]
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = [np.log(max(true - delta, rate) / rate) for true, rate in rates]
    if accepted <= 40 * delta:
        expected[0] = 0.0
    assert (found.value, found.low) == pytest.approx(expected, abs=1e-9)


def test_epsilon_without_a_false_accept_is_infinite_and_bounded_from_below():
    found = empirical_epsilon(np.ones(50), np.zeros(1000), fpr=0.001)
    assert found.value == np.inf
    assert found.low == pytest.approx(np.log(0.025 ** (1 / 50) / (1 - 0.025 ** (1 / 1000))))
    assert empirical_epsilon(np.zeros(50), np.ones(1000), fpr=0.001).low == 0
    with pytest.raises(DataError, match="delta"):
        empirical_epsilon([1.0], [0.0], fpr=0.1, delta=1.0)
