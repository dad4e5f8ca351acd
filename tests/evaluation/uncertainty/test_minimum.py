"""The interval of the minimum over attackers: no end rises with another attacker, coverage, a perfect anonymiser."""

from argparse import Namespace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri
from scipy.stats import t as student

from benchmarks.coverage import simulate
from benchmarks.minimum_over_attackers import lists_table, of_perfect, repeat
from evaluation.metrics import eer, method_of
from evaluation.uncertainty import (
    Interval,
    Resampling,
    bootstrap,
    interval_over_draws,
    minima_over_attackers,
    minimum_of,
    over_lists,
)
from evaluation.uncertainty.intervals import rate_where
from evaluation.uncertainty.minimum import AT_ONCE, METHOD
from spkbase.errors import DataError


def minimum_over_attackers(given, **settings):
    return minima_over_attackers(given, {"all": given}, **settings)["all"]


def ends(found):
    return found.interval.low, found.interval.high


def samples(*rates, seed=0, n_speakers=12, draws=1):
    """Attackers of these true equal error rates on the same trials."""
    distances = tuple((-2 * ndtri(np.repeat(rates, draws))).tolist())
    drawn = simulate(np.random.default_rng(seed), n_speakers, distances, most_nontarget=600)
    return {
        f"attacker-{place}": drawn[place * draws : (place + 1) * draws]
        for place in range(len(rates))
    }


def minima(given, groups, seed=0):
    return minima_over_attackers(given, groups, resampling=Resampling(40, seed), permutations=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_speakers", [5, 12])
def test_further_attackers_never_raise_an_end(seed, n_speakers):
    """Of any strength, in any order, within one call and from one call to the next."""
    rng = np.random.default_rng(seed)
    given = samples(*rng.uniform(0.001, 0.45, 5), seed=seed, n_speakers=n_speakers)
    names = rng.permutation(list(given)).tolist()
    groups = {str(count): names[:count] for count in range(1, 6)}
    together = minima(given, groups)
    alone = {
        name: ends(found) for name, found in minima(given, {name: [name] for name in names}).items()
    }
    for fewer, more in pairwise(groups):
        assert (np.array(ends(together[more])) <= ends(together[fewer])).all()
    for count, members in groups.items():
        apart = minima({name: given[name] for name in members}, {"all": members})["all"]
        assert ends(apart) == ends(together[count])
        assert ends(apart) == tuple(np.min([alone[name] for name in members], axis=0))


def test_each_end_belongs_to_one_attacker_at_its_level():
    given = samples(0.1, 0.12, 0.3, draws=2)
    found = minimum_over_attackers(given, resampling=Resampling(80, 3, 0.9))
    apart = []
    for drawn in given.values():
        rates = [eer(sample.runs()) for sample in drawn]
        resampled = [
            one["eer"]
            for one in bootstrap(drawn, lambda runs: {"eer": eer(runs)}, Resampling(80, 3))
        ]
        sizes = {"n_units": drawn[0].n_effective, "n_trials": drawn[0].n_least}
        apart.append(
            [
                interval_over_draws(
                    rates, resampled, method=method_of("eer.rocch"), level=level, **sizes
                )
                for level in (0.9, 1 - 0.1 / AT_ONCE)
            ]
        )
    expected = min(usual.low for usual, _ in apart), min(wide.high for _, wide in apart)
    assert ends(found) == expected
    best = int(np.argmin([usual.value for usual, _ in apart]))
    assert (found.attacker, found.interval.value) == (f"attacker-{best}", apart[best][0].value)
    assert found.interval.method == METHOD
    told = found.to_dict()
    assert (told["value"], told["low"], told["high"]) == (found.interval.value, *expected)
    again = minimum_over_attackers(dict(reversed(given.items())), resampling=Resampling(80, 3, 0.9))
    assert (ends(again), again.perfect) == (ends(found), found.perfect), (
        "the order of attackers does not matter"
    )


def test_a_minimum_of_minima_equals_the_overall_minimum():
    """Scenarios of one set, and sets of other speakers, are joined by their ends."""
    given = samples(0.1, 0.2, 0.15, 0.12)
    names = list(given)
    found = minima(given, {"first": names[:2], "second": names[2:], "all": names, "none": []})
    assert list(found) == ["first", "second", "all"]
    assert minimum_of([found["first"].interval, found["second"].interval]) == found["all"].interval
    unknown = minimum_of([Interval(0.4), Interval(0.3, 0.2, 0.5), Interval()])
    assert (unknown.value, unknown.low, unknown.high) == (0.3, 0.2, 0.5)
    with pytest.raises(DataError, match="at least one value"):
        minimum_of([])


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "ratio"), [(0.1, 1.0), (0.1, 1.15), (0.02, 1.0)])
def test_the_interval_covers_the_smallest_true_rate(rate, ratio):
    """Of 60 repetitions 57 are expected or more; 53 or fewer are as good as impossible (6 in 1000)."""
    rates = tuple((rate * ratio ** np.arange(16)).tolist())
    found = np.array([repeat(20, rates, 100, seed)[:, 1] for seed in range(60)])
    for low, high in found.transpose(1, 2, 0):
        assert np.sum((low <= rate) & (rate <= high)) >= 54


def test_a_perfect_anonymiser_has_the_interval_that_its_attackers_print():
    """A review had 42.3 % on average of 16 attackers of 50 % with 10 speakers of 7 segments."""
    printed, told, low = np.array([of_perfect(10, 8, seed) for seed in range(6)]).T
    assert told.mean() == pytest.approx(printed.mean(), abs=0.01)
    assert told.mean() < 0.46, "the smallest of several is below a half"
    assert (low < told).all()
    assert of_perfect(10, 1, 0)[1] > told[0]


def test_bad_input_is_refused():
    for nothing in ({}, {"a": []}):
        with pytest.raises(DataError, match="at least one attacker"):
            minimum_over_attackers(nothing)
    other = samples(0.1, n_speakers=11)
    with pytest.raises(DataError, match="expected the same trials of 'attacker-0' and 'b'"):
        minimum_over_attackers(samples(0.1) | {"b": other["attacker-0"]})


# ---- several lists


def limits(n_lists, **given):
    ends = {"value": 0.2, "low": 0.1, "high": 0.3} | given
    return over_lists(Interval(**ends), n_lists, n_units=30, n_trials=300)


def test_further_lists_only_raise_the_upper_end():
    one = Interval(0.2, 0.1, 0.3)
    assert over_lists(one, 1, n_units=30, n_trials=300) is one
    assert over_lists(one, 4, before=4, n_units=30, n_trials=300) is one
    highs = [limits(count).high for count in (1, 2, 4, 12, 100)]
    assert highs == sorted(set(highs))
    assert {(limits(count).value, limits(count).low) for count in (1, 12)} == {(0.2, 0.1)}
    twice = over_lists(limits(3), 12, before=3, n_units=30, n_trials=300)
    assert twice.high == pytest.approx(limits(12).high, rel=1e-3)


def test_the_upper_end_over_lists_stops_at_chance():
    assert limits(12, value=0.43, low=0.39, high=0.499).high == 0.5


@pytest.mark.parametrize("n_lists", [2, 4, 12])
def test_the_upper_end_over_lists_uses_the_corrected_level(n_lists):
    """Of a rate with an interval by Student's t on the logit scale, and of none of the trials."""
    tails = [0.05 / 2 / AT_ONCE / count for count in (1, n_lists)]
    once, over = 0.25 * student.ppf(1 - np.array(tails), 29)
    centre = logit(0.2)
    assert limits(n_lists, high=float(expit(centre + once))).high == pytest.approx(
        expit(centre + over)
    )
    none = [rate_where(0, 30, 300, 2 * tail) for tail in tails]
    assert limits(n_lists, value=0.0, low=0.0, high=none[0]).high == pytest.approx(none[1])


def test_the_upper_end_over_lists_has_its_nominal_coverage():
    rows = lists_table(Namespace(repetitions=1000, first_seed=0))
    once, over = (
        [float(row[f"true minimum above (%), {name}"]) for row in rows]
        for name in ("as of one list", "over lists")
    )
    assert [row["lists"] for row in rows] == [1, 2, 4, 12]
    assert once[0] == over[0]
    assert once[-1] > 15
    assert max(over) < 2.5 + 3 * 0.5  # the nominal 2.5 %, and three standard errors


@pytest.mark.parametrize(
    "interval",
    [Interval(0.2), Interval(0.2, 0.1, np.nan), Interval(0.5, 0.4, 1.0), Interval(np.nan)],
)
def test_a_missing_upper_end_stays_missing(interval):
    assert over_lists(interval, 12, n_units=30, n_trials=300) is interval


def test_numbers_of_speakers_and_trials_may_be_unknown():
    for value in (0.0, 0.2):
        found = over_lists(Interval(value, 0.0, 0.3), 12, n_units=np.nan, n_trials=np.nan)
        assert 0.3 < found.high < 0.5
