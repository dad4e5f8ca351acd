"""The interval of the minimum over attackers: limits with known answers, a small study, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.coverage import simulate
from evaluation.metrics import Method, eer_of, method_of
from evaluation.uncertainty import (
    Resampling,
    Sample,
    bootstrap,
    interval,
    minimum_interval,
    minimum_over_attackers,
)
from evaluation.uncertainty.minimum import METHOD
from spkbase.errors import DataError

LINEAR, RATE = Method("identity"), method_of("eer.rocch")


def ends(found: object) -> tuple[float, float]:
    return found.low, found.high  # type: ignore[attr-defined]


def test_of_one_attacker_it_is_the_usual_interval() -> None:
    resampled = np.random.default_rng(0).normal(0.2, 0.03, (1, 300))
    usual = interval(0.2, resampled[0], method=RATE, n_units=20, n_trials=160)
    assert ends(minimum_interval([0.2], resampled, method=RATE, n_units=20, n_trials=160)) == ends(usual)


@pytest.mark.parametrize("method", [LINEAR, RATE])
def test_a_clear_winner_and_copies_of_it_have_the_usual_interval(method: Method) -> None:
    """Where the choice is never another one, nothing is taken off."""
    best = np.random.default_rng(1).normal(0.2, 0.02, 400)
    usual = interval(0.2, best, method=method, n_units=30, n_trials=240)
    for values, rows in (
        ([0.2, 0.45], [best, best + 0.25]),
        ([0.45, 0.2], [best + 0.25, best]),
        ([0.2, 0.2, 0.2], [best] * 3),
    ):
        found = minimum_interval(values, rows, method=method, n_units=30, n_trials=240)
        assert (found.value, *ends(found)) == pytest.approx((0.2, *ends(usual)))
        assert found.method == METHOD


def test_the_formula_by_brute_force() -> None:
    rng = np.random.default_rng(2)
    values, resampled = rng.normal(1, 0.1, 5), rng.normal(1, 0.1, (5, 50))
    n = 12
    noise = np.sqrt(n / (n - 1)) * (resampled - resampled.mean(axis=1, keepdims=True))
    smallest = [min(values[a] + noise[a, w] for a in range(5)) for w in range(50)]
    best = int(np.argmin(values))
    bias = np.mean(smallest) - values[best]
    reach = stats.t.ppf(0.95, n - 1) * np.std(noise[best], ddof=1)
    found = minimum_interval(values, resampled, method=LINEAR, n_units=n, level=0.9)
    assert ends(found) == pytest.approx((values[best] - bias - reach, values[best] - bias / (np.sqrt(2) - 1) + reach))
    assert bias < 0, "the smallest of several is too small on average"


@pytest.mark.parametrize(("count", "gap"), [(4, 0.0), (14, 0.0), (14, 0.5), (14, 3.0)])
def test_it_holds_the_smallest_true_value_of_normal_ones(count: int, gap: float) -> None:
    """Attackers whose errors correlate by 0.5; the true values are `gap` deviations apart; the minimum is 0."""
    rng = np.random.default_rng(count)
    true = gap * np.arange(count)
    covered = alone = 0
    for _ in range(400):
        values = true + (rng.standard_normal() + rng.standard_normal(count)) / np.sqrt(2)
        noise = (rng.standard_normal(150) + rng.standard_normal((count, 150))) / np.sqrt(2)
        rows = values[:, None] + noise
        low, high = ends(minimum_interval(values, rows, method=LINEAR, n_units=100))
        covered += low <= 0 <= high
        best = int(values.argmin())
        low, high = ends(interval(values[best], rows[best], method=LINEAR, n_units=100))
        alone += low <= 0 <= high
    assert 0.92 <= covered / 400 <= 0.99
    if (count, gap) == (14, 0.0):
        assert alone / 400 < 0.9, "which is why the choice is made anew"


def test_few_errors_have_a_bound_by_speakers() -> None:
    resampled = np.zeros((3, 100))
    found = minimum_interval([0.0, 0.0, 0.0], resampled, method=RATE, n_units=10, n_trials=80)
    assert ends(found) == pytest.approx((0.0, 1 - 0.05**0.1))
    assert "no error" in found.note


def samples(count: int = 3, seed: int = 0) -> dict[str, list[Sample]]:
    drawn = simulate(np.random.default_rng(seed), 12, (2.5,) * count, most_nontarget=600)
    return {f"attacker-{number}": [sample] for number, sample in enumerate(drawn)}


def rate(scores):  # type: ignore[no-untyped-def]
    return {"eer": eer_of(scores)}


def test_of_trials_it_is_that_of_their_joint_resamples() -> None:
    given = samples()
    found = minimum_over_attackers(given, resampling=Resampling(80, 3))
    drawn = [draws[0] for draws in given.values()]
    values = [rate(sample.runs())["eer"] for sample in drawn]
    resampled = [columns["eer"] for columns in bootstrap(drawn, rate, replicates=80, seed=3)]
    first = drawn[0]
    expected = minimum_interval(values, resampled, method=RATE, n_units=first.n_effective, n_trials=first.n_least)
    assert ends(found.interval) == ends(expected)
    assert found.attacker == f"attacker-{int(np.argmin(values))}"
    assert sum(found.chosen.values()) == pytest.approx(1)
    assert found.to_dict()["low"] == expected.low
    again = minimum_over_attackers(dict(reversed(given.items())), resampling=Resampling(80, 3))
    assert ends(again.interval) == ends(found.interval), "the order of attackers does not matter"


def test_draws_are_averaged_within_each_attacker() -> None:
    first, second = samples(2, seed=1), samples(2, seed=1)
    twice = {name: [*first[name], *second[name]] for name in first}
    once = minimum_over_attackers(first, resampling=Resampling(60, 0))
    same = minimum_over_attackers(twice, resampling=Resampling(60, 0))
    assert same.interval.value == pytest.approx(once.interval.value)
    drawn = simulate(np.random.default_rng(5), 12, (2.5, 1.0), most_nontarget=600)
    mixed = minimum_over_attackers({"a": drawn}, resampling=Resampling(60, 0)).interval.value
    assert mixed == pytest.approx(np.mean([rate(sample.runs())["eer"] for sample in drawn]))


def test_bad_input() -> None:
    with pytest.raises(DataError, match="one attacker or more"):
        minimum_over_attackers({})
    with pytest.raises(DataError, match="one attacker or more"):
        minimum_over_attackers({"a": []})
    other = simulate(np.random.default_rng(0), 11, (2.5,), most_nontarget=600)
    with pytest.raises(DataError, match="expected the same trials of all attackers"):
        minimum_over_attackers(samples() | {"b": other})
    for values, resampled, text in (
        ([], np.zeros((0, 9)), "expected values of attackers"),
        ([0.1, 0.2], np.zeros((3, 9)), "expected values of attackers"),
        ([0.1, np.nan], np.zeros((2, 9)), "1 NaN"),
    ):
        with pytest.raises(DataError, match=text):
            minimum_interval(values, resampled, method=LINEAR, n_units=9)
    # one infinite value: what is left is the interval of the chosen one, by percentiles
    found = minimum_interval([0.1, np.inf], [[0.1, 0.2, 0.15], [np.inf] * 3], method=LINEAR, n_units=9)
    assert np.isfinite(found.low)
    lost = minimum_interval([0.1, 0.2], [[0.1, np.nan, 0.15], [0.2, 0.3, np.nan]], method=LINEAR, n_units=9)
    assert np.isnan(lost.low)
