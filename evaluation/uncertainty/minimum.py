"""The interval of a minimum: the smallest error rate of several attackers on the same trials.

Who takes the smallest of many rates takes what chance made small, so that the smallest is below the true minimum on
average. The *true minimum* is the smallest of the attackers' true rates. With [L_a, U_a] for attacker a, L_a at the
usual level and U_a at one at which `AT_ONCE` attackers hold at once (Bonferroni), its interval is

    low = min over a of L_a,    high = min over a of U_a.

The lower end needs no correction: it is at most that of the attacker who truly has the smallest rate. The upper end is
above the true minimum unless some U_a is below the true rate of a, for up to `AT_ONCE` attackers, scenarios and sets,
however they depend on each other. As no end hangs on who else was there, another attacker on the same trials never
raises either end; this is why already the first one pays for those that may come. Minima of parts are joined by the
same rule (`minimum_of`): those of scenarios, and of sets of other speakers.

*What a perfect anonymiser would show* is the printed minimum if scores told nothing of identity: the speakers of the
segments are permuted against those of the models, nobody staying in place, for all attackers alike. The nontarget
trials that this pairs count as target trials, the other ones as nontarget trials, and true target trials not at all.
So the sizes of lists, the choice of the smallest, and what attackers have in common stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import SortedScores, eer, method_of, sort_scores
from evaluation.uncertainty.intervals import Interval, interval_over_draws
from evaluation.uncertainty.resampling import Resampling, Sample, bootstrap
from spkbase.errors import DataError
from spkbase.showing import one_line

AT_ONCE = 16
"""How many attackers of equal strength the upper end of each is made for."""

METHOD = f"the smallest ends over attackers, the upper one of each at a level for {AT_ONCE} at once"


def minimum_of(intervals: Iterable[Interval]) -> Interval:
    """Return the smallest of several values with the interval of the smallest of their true values.

    Parameters
    ----------
    intervals : iterable of Interval
        Values with their lower ends, and their upper ends at a level that holds for several at once.

    Returns
    -------
    Interval
        The smallest value and the smallest of either end; values and ends that are not known do not count.

    Raises
    ------
    DataError
        If there is none.

    Examples
    --------
    >>> found = minimum_of([Interval(0.2, 0.1, 0.3), Interval(0.25, 0.05, 0.4)])
    >>> found.value, found.low, found.high
    (0.2, 0.05, 0.3)
    """
    given = list(intervals)
    if not given:
        raise DataError("expected one value or more to take the smallest of")
    smallest = min(given, key=lambda one: one.value if one.known else np.inf)
    low, high = (float(np.fmin.reduce([getattr(one, end) for one in given])) for end in ("low", "high"))
    return replace(smallest, low=low, high=high, method=METHOD)


@one_line
@dataclass(frozen=True)
class Minimum:
    """The smallest error rate of several attackers.

    Attributes
    ----------
    attacker : str
        Who has it.
    interval : Interval
        Of the smallest of the true rates.
    perfect, perfect_low : float
        What a perfect anonymiser would show in its place on the same trials: mean and 5 % quantile; NaN where it was
        not asked for.
    """

    attacker: str
    interval: Interval
    perfect: float = np.nan
    perfect_low: float = np.nan

    def to_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        ends = self.interval
        report: dict[str, Any] = {"attacker": self.attacker, **ends.numbers(), "method": ends.method}
        if not np.isnan(self.perfect):
            report["perfect"] = {"mean": self.perfect, "low": self.perfect_low}
        return report | ({"note": ends.note} if ends.note else {})


def minima_over_attackers(
    samples: Mapping[str, Sequence[Sample]],
    groups: Mapping[str, Collection[str]],
    *,
    reading: str = "rocch",
    resampling: Resampling | None = None,
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
        Of the equal error rate, see `evaluation.metrics.eer`.
    resampling : Resampling, optional
        How many resamples are drawn, of which seed, and the level.
    permutations : int
        How often speakers are permuted for what a perfect anonymiser would show; 0 not to ask for it.

    Returns
    -------
    dict of str to Minimum
        By group; a group without attackers is left out.

    Raises
    ------
    DataError
        If there is no attacker, or the trials differ.
    """
    resampling = resampling or Resampling()
    if not samples or not all(samples.values()):
        raise DataError("expected trials of one attacker or more, each with one draw or more")
    names = [name for name, draws in samples.items() for _ in draws]
    every = [sample for draws in samples.values() for sample in draws]
    first = every[0]
    for name, sample in zip(names, every, strict=True):
        if len(sample) != len(first) or sample.n_units != first.n_units:
            counts = f"{len(first):,} of {first.n_units} and {len(sample):,} of {sample.n_units} speakers"
            text = f"expected the same trials of all attackers, but {names[0]!r} and {name!r} have {counts}"
            raise DataError(text, remedy="score the same trials with each attacker")
    statistic = _Rate(reading)
    rates = np.array([statistic(sample.runs())["eer"] for sample in every])
    found = bootstrap(every, statistic, replicates=resampling.replicates, seed=resampling.seed)
    resampled = np.array([columns["eer"] for columns in found])
    rows = {name: [row for row, owner in enumerate(names) if owner == name] for name in samples}
    settings: dict[str, Any] = {"method": method_of(f"eer.{reading}"), "n_units": first.n_effective}
    settings["n_trials"] = first.n_least
    levels, ends = (resampling.level, 1 - (1 - resampling.level) / AT_ONCE), {}
    for name, places in rows.items():
        usual, wide = (
            interval_over_draws(rates[places], resampled[places], level=level, **settings) for level in levels
        )
        ends[name] = replace(usual, high=wide.high)
    permuted = _permuted(every, statistic, permutations, resampling.seed)
    by_name = {name: permuted[:, places].mean(axis=1) for name, places in rows.items()}
    minima = {}
    for group, members in groups.items():
        chosen = [name for name in samples if name in members]
        if chosen:
            best = min(chosen, key=lambda name: ends[name].value)
            told = np.min([by_name[name] for name in chosen], axis=0)
            perfect = (float(told.mean()), float(np.quantile(told, 0.05))) if len(told) else ()
            minima[group] = Minimum(best, minimum_of(ends[name] for name in chosen), *perfect)
    return minima


def minimum_over_attackers(samples: Mapping[str, Sequence[Sample]], **settings: Any) -> Minimum:
    """Return the smallest equal error rate of all attackers; `minima_over_attackers` of one group."""
    return minima_over_attackers(samples, {"all": samples}, **settings)["all"]


def _permuted(samples: Sequence[Sample], statistic: _Rate, permutations: int, seed: int) -> NDArray[np.float64]:
    """Rates of each sample under permutations of speakers, (permutations, samples); none of trials without speakers."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, found = samples[0], []
    if first.by_trial:
        return np.empty((0, len(samples)))
    others = [np.flatnonzero(~sample.is_target) for sample in samples]
    models, segments = first.first[others[0]], first.second[others[0]]
    pairs = coo_array((np.ones(len(models)), (models, segments)), shape=(first.n_units + 1,) * 2)
    parts = connected_components(pairs, directed=False)[1]  # such as the sexes, where trials are within them
    rng = np.random.default_rng(seed)
    for _ in range(permutations):
        partner = np.arange(first.n_units + 1)
        order = rng.permutation(first.n_units)
        for part in np.unique(parts):
            members = order[parts[order] == part]
            partner[members] = np.roll(members, 1)  # a cycle: nobody stays in place
        if 0 < (partner[segments] == models).sum() < len(models):
            rates = []
            for sample, rows in zip(samples, others, strict=True):
                scores, paired = sample.scores[rows], partner[sample.second[rows]] == sample.first[rows]
                rates.append(statistic(sort_scores(scores[paired], scores[~paired]))["eer"])
            found.append(rates)
    return np.array(found).reshape(-1, len(samples))


@dataclass(frozen=True)
class _Rate:
    """An equal error rate as a statistic."""

    reading: str

    def __call__(self, scores: SortedScores) -> dict[str, float]:
        return {"eer": eer(scores, method=self.reading)}
