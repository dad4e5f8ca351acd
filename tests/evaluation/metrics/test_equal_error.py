"""The five equal error rates against their rules, walked through score by score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.detection import METHODS, act_dcf, clopper_pearson, eer, equal_error, tpr_at_fpr
from evaluation.metrics.sorted_scores import sort_scores
from spkbase.errors import DataError

tied = st.lists(st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf]), min_size=1, max_size=12)
free = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)
classes = st.tuples(tied, tied) | st.tuples(free, free)


def by_kaldi(target: list[float], nontarget: list[float]) -> tuple[float, float]:
    target, nontarget = sorted(target), sorted(nontarget)
    position = 0
    while position + 1 < len(target):
        opposite = max(len(nontarget) - 1 - int(len(nontarget) * position / len(target)), 0)
        if nontarget[opposite] < target[position]:
            break
        position += 1
    return position / len(target), target[position]


def by_speechbrain(target: list[float], nontarget: list[float]) -> tuple[float, float]:
    """Thresholds between two scores count as the lower one does, so that the scores are enough."""
    best = None
    for threshold in sorted({*target, *nontarget}):
        p_miss = sum(score <= threshold for score in target) / len(target)
        p_fa = sum(score > threshold for score in nontarget) / len(nontarget)
        if best is None or abs(p_miss - p_fa) < best[0] - 1e-12:
            best = (abs(p_miss - p_fa), (p_miss + p_fa) / 2, threshold)
    assert best is not None
    return best[1], best[2]


def by_roc_curve(target: list[float], nontarget: list[float]) -> tuple[float, float]:
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


def by_interpolation(target: list[float], nontarget: list[float]) -> tuple[float, float]:
    values = sorted({*target, *nontarget})
    before = (0.0, 1.0)
    for value in values:
        after = (sum(s <= value for s in target) / len(target), sum(s > value for s in nontarget) / len(nontarget))
        if after[0] > after[1]:
            share = (before[1] - before[0]) / ((before[1] - before[0]) - (after[1] - after[0]))
            return before[0] + share * (after[0] - before[0]), value
        before = after
    raise AssertionError


RULES: dict[str, Callable[[list[float], list[float]], tuple[float, float]]] = {
    "kaldi": by_kaldi,
    "speechbrain": by_speechbrain,
    "nearest": by_roc_curve,
    "interpolated": by_interpolation,
}


@pytest.mark.parametrize("method", RULES)
@given(both=classes)
def test_rules_walked_through(method: str, both: tuple[list[float], list[float]]) -> None:
    rate, threshold = RULES[method](*both)
    found = equal_error(*both, method=method)
    assert found.rate == pytest.approx(rate, abs=1e-12)
    assert found.threshold == threshold


@pytest.mark.parametrize("method", METHODS)
@given(both=classes, numbers=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_weights_are_repetition(method: str, both: tuple[list[float], list[float]], numbers: list[int]) -> None:
    weights = [np.array([1, *numbers[1:]][: len(side)]) for side in both]
    runs = sort_scores(*both, target_weights=weights[0], nontarget_weights=weights[1])
    repeated = [np.repeat(side, count) for side, count in zip(both, weights, strict=True)]
    assert equal_error(runs, method=method) == equal_error(*repeated, method=method)


@pytest.mark.parametrize("method", METHODS)
@given(both=classes)
def test_threshold_and_rate_keep_together_under_increasing_maps(
    method: str, both: tuple[list[float], list[float]]
) -> None:
    rank = {score: float(place) for place, score in enumerate(sorted({*both[0], *both[1]}))}
    found, mapped = (
        equal_error(*both, method=method),
        equal_error(*([rank[s] for s in side] for side in both), method=method),
    )
    assert (mapped.rate, mapped.p_miss, mapped.p_fa) == (found.rate, found.p_miss, found.p_fa)
    # scikit-learn's curve begins with a threshold above all scores, inf, which may be the highest score too
    above_all = method == "nearest" and found.p_miss == 1 and found.p_fa == 0
    assert mapped.threshold == (np.inf if above_all else rank.get(found.threshold, np.inf))


@given(classes)
def test_order_of_the_readings(both: tuple[list[float], list[float]]) -> None:
    """The hull lies below the curve; without ties Kaldi's rate is a miss rate next to the crossing."""
    rates = {method: eer(*both, method=method) for method in METHODS}
    assert rates["rocch"] <= min(rates["interpolated"], 0.5) + 1e-12
    assert all(0 <= rate <= 1 for rate in rates.values())


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(DataError, match="expected a method among rocch, interpolated, kaldi, speechbrain, nearest"):
        eer([1.0], [0.0], method="eer")


# actual costs


@given(classes, st.floats(1e-4, 1 - 1e-4))
def test_actual_cost_by_counting(both: tuple[list[float], list[float]], prior: float) -> None:
    threshold = -np.log(prior / (1 - prior))
    misses = sum(score < threshold - 1e-9 for score in both[0])
    near = any(abs(score - threshold) <= 1e-9 for side in both for score in side)
    false_alarms = sum(score >= threshold for score in both[1])
    cost = prior * misses / len(both[0]) + (1 - prior) * false_alarms / len(both[1])
    if not near:
        assert act_dcf(*both, p_target=prior, normalised=False) == pytest.approx(cost, abs=1e-12)


def test_actual_cost_accepts_at_the_threshold() -> None:
    assert act_dcf([0.0], [0.0], p_target=0.5) == 1.0
    assert act_dcf([0.0], [np.nextafter(0.0, -1)], p_target=0.5) == 0.0
    assert act_dcf([-2.0], [-3.0], p_target=0.5, c_miss=20.0) == 0.0  # effective prior 0.952, threshold -2.996
    assert act_dcf([-2.0], [-2.9], p_target=0.5, c_miss=20.0, normalised=False) == pytest.approx(1 / 21)


# true accepts at few false accepts


@given(classes, st.floats(0.001, 0.999))
def test_true_accepts_by_search(both: tuple[list[float], list[float]], bound: float) -> None:
    found = tpr_at_fpr(*both, fpr=bound)
    best = 0.0
    for threshold in {*both[0], *both[1]}:
        if sum(s >= threshold for s in both[1]) / len(both[1]) <= bound:
            best = max(best, sum(s >= threshold for s in both[0]) / len(both[0]))
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.false_accept_rate <= bound * (1 + 1e-9)
    assert found.low <= found.value <= found.high
    assert found.resolved == (len(both[1]) * bound >= 1)


def test_true_accepts_at_round_numbers() -> None:
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
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (5, 10, 0.1871, 0.8129), (81, 263, 0.2527, 0.3676)],
)
def test_clopper_pearson_against_published_values(count: int, total: int, low: float, high: float) -> None:
    """The last row: R. Newcombe, Statistics in Medicine 17, 1998, table 1."""
    assert clopper_pearson(count, total - count) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("options", [{"fpr": 0.0}, {"fpr": 1.0}, {"fpr": np.nan}, {"fpr": 0.1, "level": 1.0}])
def test_rates_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        tpr_at_fpr([1.0], [0.0], **options)
