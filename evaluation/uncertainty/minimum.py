"""The smallest of several error rates: its interval, and the value that a perfect anonymiser would give.

The smallest of several error rates is often small by chance, so that on average it lies below the true minimum. The
*true minimum* is the smallest true rate of several attackers on the same trials. With [L_a, U_a] for attacker a, L_a at
the usual level and U_a at a level at which the ends of `AT_ONCE` attackers hold at once (Bonferroni), its interval is

    low = min over a of L_a,    high = min over a of U_a.

The lower end needs no correction: it is at most that of the attacker who truly has the smallest rate. The upper end is
above the true minimum unless some U_a is below the true rate of a, for up to `AT_ONCE` attackers and scenarios on one
list of trials, however they depend on each other. As no end depends on the other attackers, another attacker on the
same trials never raises either end; so even a single attacker is corrected for others. Minima of parts are joined by
the same rule (`minimum_of`). Lists of other speakers give further chances of a low value: over L of them the upper ends
are moved to a level at which L times as many hold (`over_lists`).

*The value under perfect anonymisation* is the reported minimum if scores carried no identity: the speakers of the
segments are permuted against those of the models, nobody staying in place, for all attackers alike. The nontarget
trials that this pairs count as target trials, the other ones as nontarget trials, and true target trials not at all.
So the sizes of lists, the choice of the smallest, and what attackers have in common stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation import metrics as measures
from evaluation.uncertainty.intervals import (
    PLENTY,
    Interval,
    interval_over_draws,
    rate_interval,
)
from evaluation.uncertainty.resampling import (
    DEFAULT,
    Resampling,
    Sample,
    Statistic,
    bootstrap,
    check_same_trials,
)
from spkbase.errors import DataError
from spkbase.showing import one_line

AT_ONCE = 16
"""Number of equally strong attackers that the upper end of each allows for."""

METHOD = (
    f"smallest ends over attackers, the upper ones corrected for {AT_ONCE} attackers (Bonferroni)"
)

LARGEST = (
    f"largest ends over attackers, the lower ones corrected for {AT_ONCE} attackers (Bonferroni)"
)


@one_line
@dataclass(frozen=True)
class Minimum:
    """The smallest of the error rates of several attackers.

    Attributes
    ----------
    attacker : str
        The attacker with this rate.
    interval : Interval
        Interval of the smallest true rate.
    perfect, perfect_low : float
        The smallest rate under perfect anonymisation on the same trials: mean and 5 % quantile; NaN if not requested.
    """

    attacker: str
    interval: Interval
    perfect: float = np.nan
    perfect_low: float = np.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the minimum for a report."""
        ends = self.interval
        report: dict[str, Any] = {
            "attacker": self.attacker,
            **ends.numbers(),
            "method": ends.method,
        }
        if not np.isnan(self.perfect):
            report["perfect"] = {"mean": self.perfect, "low": self.perfect_low}
        if ends.note:
            report["note"] = ends.note
        return report

    @classmethod
    def from_dict(cls, report: Mapping[str, Any] | None) -> Minimum | None:
        """Return a minimum from a report; None without one."""
        if not report:
            return None
        numbers = {}
        for name in ("value", "low", "high"):
            number = report.get(name)
            numbers[name] = np.nan if number is None else number
        interval = Interval(**numbers, method=report.get("method", ""), note=report.get("note", ""))
        perfect = report.get("perfect") or {}
        return cls(
            report.get("attacker", ""),
            interval,
            perfect.get("mean", np.nan),
            perfect.get("low", np.nan),
        )


def minimum_of(intervals: Iterable[Interval]) -> Interval:
    """Return the smallest of several values with the interval of the smallest of their true values.

    Parameters
    ----------
    intervals : iterable of Interval
        Values with their lower ends, and their upper ends at a level that holds for several at once.

    Returns
    -------
    Interval
        The smallest value, the smallest lower end and the smallest upper end; unknown values and ends are ignored.

    Raises
    ------
    DataError
        If there is no value.

    Examples
    --------
    >>> smallest = minimum_of([Interval(0.2, 0.1, 0.3), Interval(0.25, 0.05, 0.4)])
    >>> smallest.value, smallest.low, smallest.high
    (0.2, 0.05, 0.3)
    """
    given = list(intervals)
    if not given:
        raise DataError("expected at least one value to take the minimum of")
    smallest = min(given, key=lambda interval: interval.value if interval.known else np.inf)
    low = float(np.fmin.reduce([interval.low for interval in given]))
    high = float(np.fmin.reduce([interval.high for interval in given]))
    return replace(smallest, low=low, high=high, method=METHOD)


def maximum_of(intervals: Iterable[Interval]) -> Interval:
    """Return the largest of several values with the interval of the largest of their true values; see `minimum_of`.

    Parameters
    ----------
    intervals : iterable of Interval
        Values with their upper ends, and their lower ends at a level that holds for several at once.

    Examples
    --------
    >>> largest = maximum_of([Interval(0.8, 0.6, 0.9), Interval(0.7, 0.5, 0.95)])
    >>> largest.value, largest.low, largest.high
    (0.8, 0.6, 0.95)
    """
    least = minimum_of(
        replace(interval, value=-interval.value, low=-interval.high, high=-interval.low)
        for interval in intervals
    )
    return replace(least, value=-least.value, low=-least.high, high=-least.low, method=LARGEST)


def largest_rate(
    successes: ArrayLike, totals: ArrayLike, *, beyond: ArrayLike = 0.0, level: float = 0.95
) -> tuple[int, Interval]:
    """Return which of several rates is the largest, with the interval of the largest of their true values.

    The highest of many observed rates is partly luck. With [L_s, U_s] of Clopper and Pearson for the rate of
    speaker s, its ends are the largest L_s, at a level at which all S hold at once (Bonferroni), and the largest
    U_s, at the usual level: the true maximum lies above it only if the U_s of the speaker who has it fails.

    Parameters
    ----------
    successes, totals : array_like of float of shape (S,)
        Number of events of each speaker, and number of recordings, which are independent given the speaker.
    beyond : float, or array_like of float of shape (S,)
        Rate to subtract from each, assumed known: how often other people's recordings match the speaker's model.
    level : float
        Confidence level of the interval.

    Returns
    -------
    index : int
        Index of the speaker.
    largest : Interval

    Raises
    ------
    DataError
        If there is no speaker, or counts are out of range.

    Examples
    --------
    >>> index, largest = largest_rate([9, 2, 0], [10, 10, 10])
    >>> index, round(largest.low, 3), largest.value, round(largest.high, 3)
    (0, 0.485, 0.9, 0.997)
    """
    seen = np.asarray(successes, np.float64)
    counts = np.asarray(totals, np.float64)
    if not seen.size or not ((seen >= 0) & (seen <= counts) & (counts > 0)).all():
        raise DataError("expected at least one recording of each speaker, and counts within them")
    subtracted = np.asarray(beyond, np.float64)
    rates = seen / counts - subtracted
    at_once = 1 - (1 - level) / len(seen)
    low = measures.clopper_pearson(seen, counts - seen, level=at_once)[0] - subtracted
    high = measures.clopper_pearson(seen, counts - seen, level=level)[1] - subtracted
    index = int(rates.argmax())
    method = (
        f"largest ends over {len(seen)} speakers, the lower ones corrected for as many (Bonferroni)"
    )
    return index, Interval(float(rates[index]), float(low.max()), float(high.max()), method)


def over_lists(
    interval: Interval,
    n_lists: int,
    *,
    before: int = 1,
    n_units: float,
    n_trials: float,
    level: float = 0.95,
) -> Interval:
    """Return an interval whose upper end holds for `AT_ONCE` attackers on each of several lists at once.

    No new resamples are needed. On the logit scale the distance of the end from the value grows as the quantiles of
    Student's t do; if fewer than 8 trials are errors, the end moves like that of `rate_interval`.

    Parameters
    ----------
    interval : Interval
        A minimum on one list, or on `before` of them.
    n_lists : int
        Lists of trials of other speakers, over which the minimum is taken.
    before : int
        Lists for which the upper end already holds.
    n_units, n_trials : float
        Numbers of speakers and target trials of a list; if unknown, the number of speakers is taken as large.
    level : float
        Confidence level of the interval.

    Examples
    --------
    >>> rate = Interval(0.2, 0.12, 0.35)
    >>> over_lists(rate, 1, n_units=30, n_trials=300).high
    0.35
    >>> round(over_lists(rate, 12, n_units=30, n_trials=300).high, 3)
    0.402
    """
    from scipy.special import expit, logit, stdtrit

    if n_lists <= before or not interval.has_interval or not 0 < interval.high < 1:
        return interval
    if not (n_units >= 2):
        n_units = math.inf
    levels = [1 - (1 - level) / (AT_ONCE * count) for count in (before, n_lists)]
    if interval.value * n_trials < PLENTY:
        settings: dict[str, Any] = {
            "n_units": int(min(n_units, n_trials)),
            "n_trials": int(n_trials),
        }
        ends = [rate_interval(interval.value, level=each, **settings)[1] for each in levels]
        further = logit(ends[1]) - logit(ends[0])
    else:
        quantiles = [stdtrit(n_units - 1, (1 + each) / 2) for each in levels]
        reach = logit(interval.high) - logit(max(interval.value, interval.high / 20))
        further = (quantiles[1] / quantiles[0] - 1) * reach
    high = float(expit(logit(interval.high) + max(further, 0.0)))
    if interval.high <= 0.5:  # true of every rate on the convex hull
        high = min(high, 0.5)
    return replace(interval, high=high)


def minima_over_attackers(
    samples: Mapping[str, Sequence[Sample]],
    groups: Mapping[str, Collection[str]],
    *,
    reading: str = "rocch",
    resampling: Resampling = DEFAULT,
    permutations: int = 100,
) -> dict[str, Minimum]:
    """Return the smallest equal error rate of each group of attackers with its interval, from one bootstrap of all.

    Parameters
    ----------
    samples : mapping of str to sequence of Sample
        For each attacker (or attacker in a scenario) its trials, one `Sample` for each draw of the anonymiser, whose
        rates are averaged. The trials and their speakers are the same ones everywhere.
    groups : mapping of str to collection of str
        Names of attackers by the name of their group; they may be in several.
    reading : str
        Definition of the equal error rate; see `evaluation.metrics.eer`.
    resampling : Resampling
        Number of resamples, seed and confidence level.
    permutations : int
        Number of permutations of speakers for the value under perfect anonymisation; 0 to omit it.

    Returns
    -------
    dict of str to Minimum
        By group; a group without attackers is left out.

    Raises
    ------
    DataError
        If there is no attacker, or the trials differ.
    """
    every, rows = _listed(samples)
    statistic = partial(_rate, reading)
    rates = np.array([statistic(sample.runs())["eer"] for sample in every])
    resampled = np.array([columns["eer"] for columns in bootstrap(every, statistic, resampling)])
    permuted = _permuted(every, statistic, permutations, resampling.seed)
    settings: dict[str, Any] = {
        "method": measures.method_of(f"eer.{reading}"),
        "n_units": every[0].n_effective,
    }
    settings["n_trials"] = every[0].n_least
    wide_level = 1 - (1 - resampling.level) / AT_ONCE
    ends = {}
    perfect_rates = {}
    for name, own in rows.items():
        usual = interval_over_draws(rates[own], resampled[own], level=resampling.level, **settings)
        wide = interval_over_draws(rates[own], resampled[own], level=wide_level, **settings)
        ends[name] = replace(usual, high=wide.high)
        perfect_rates[name] = permuted[:, own].mean(axis=1)
    minima = {}
    for group, members in groups.items():
        chosen = [name for name in samples if name in members]
        if chosen:
            best = min(chosen, key=lambda name: ends[name].value)
            smallest = np.min([perfect_rates[name] for name in chosen], axis=0)
            minimum = Minimum(best, minimum_of(ends[name] for name in chosen))
            if len(smallest):
                low = float(np.quantile(smallest, 0.05))
                minimum = replace(minimum, perfect=float(smallest.mean()), perfect_low=low)
            minima[group] = minimum
    return minima


def _listed(samples: Mapping[str, Sequence[Sample]]) -> tuple[list[Sample], dict[str, list[int]]]:
    """Return one list of the draws of all attackers, and the range of each attacker; all must hold equal trials."""
    if not samples or not all(samples.values()):
        raise DataError("expected trials of at least one attacker, each with at least one draw")
    every: list[Sample] = []
    rows = {}
    for name, draws in samples.items():
        rows[name] = list(range(len(every), len(every) + len(draws)))
        every += draws
        for sample in draws:
            check_same_trials(every[0], sample, next(iter(samples)), name)
    return every, rows


def _rate(reading: str, scores: measures.SortedScores) -> dict[str, float]:
    if reading == "rocch":
        return {"eer": measures.rocch_eer(scores)}
    return {"eer": measures.eer(scores, method=reading)}


def _permuted(
    samples: Sequence[Sample], statistic: Statistic, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Rates of each sample under permutations of speakers, (permutations, samples).

    No rates for trials without speakers.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first = samples[0]
    if first.by_trial:
        return np.empty((0, len(samples)))
    others = [np.flatnonzero(~sample.is_target) for sample in samples]
    models = first.first[others[0]]
    segments = first.second[others[0]]
    pairs = coo_array((np.ones(len(models)), (models, segments)), shape=(first.n_units + 1,) * 2)
    # components without shared trials, such as the sexes
    parts = connected_components(pairs, directed=False)[1]
    rng = np.random.default_rng(seed)
    permuted = []
    for _ in range(permutations):
        partner = np.arange(first.n_units + 1)
        order = rng.permutation(first.n_units)
        for part in np.unique(parts):
            members = order[parts[order] == part]
            partner[members] = np.roll(members, 1)  # a cyclic permutation leaves nobody in place
        if 0 < (partner[segments] == models).sum() < len(models):
            rates = []
            for sample, rows in zip(samples, others, strict=True):
                scores = sample.scores[rows]
                paired = partner[sample.second[rows]] == sample.first[rows]
                rates.append(
                    statistic(measures.sort_scores(scores[paired], scores[~paired]))["eer"]
                )
            permuted.append(rates)
    return np.array(permuted).reshape(-1, len(samples))
