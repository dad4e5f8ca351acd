"""The interval of a minimum: the smallest error rate of several attackers on the same trials.

Who takes the smallest of many rates takes what chance made small, so that the smallest is below the true minimum on
average, and the interval of the chosen attacker alone covers too little: of 14 attackers of equal strength 76 to 89 %
(docs/uncertainty.md). The *true minimum* is the smallest of the attackers' true rates.

Here the choice is made anew in each resample. On the scale of the metric (logit for error rates), with the value c_a of
attacker a, less the bias of the hull that `evaluation.uncertainty.intervals` takes off, and its resamples r_a(w) around
their mean:

    m    = min over a of c_a
    m(w) = min over a of c_a + r_a(w) - mean of r_a
    bias = mean over w of m(w) - m                                  (0 or below)

    low  = m - CLEAR_WINNER bias - t(n - 1) deviation of the chosen attacker
    high = m - EQUALS bias       + t(n - 1) deviation of the chosen attacker

The resamples see the bias of a choice among values that are spread already: with A equal attackers whose errors have
the deviation s, the minimum is off by k_A s, and its resamples by k_A s (sqrt(2) - 1) more, so that 1 / (sqrt(2) - 1)
times the bias is to be taken off, `EQUALS`. Where one attacker is ahead of the others nothing is off, and what the
resamples say of a bias is at most to be taken off once, `CLEAR_WINNER`. Which it is the data do not tell where it
matters, so each end takes the case that puts it further out. With few errors, as in
`evaluation.uncertainty.few_errors`, the interval of the chosen attacker has a share, and all of it where there is
hardly one.

References
----------
.. [1] B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", chapter 10 (bias), 1993.
.. [2] R. Tibshirani and R. Tibshirani, "A bias correction for the minimum error rate in cross-validation", Annals of
   Applied Statistics 3, 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import Method, SortedScores, eer_of, method_of
from evaluation.uncertainty.draws import Resampling
from evaluation.uncertainty.few_errors import PLENTY, independent_errors, mixed, rate_interval
from evaluation.uncertainty.intervals import Interval, from_scale, interval, to_scale
from evaluation.uncertainty.over_draws import means_over_draws
from evaluation.uncertainty.resampling import Sample, bootstrap
from spkbase.errors import DataError
from spkbase.showing import one_line

CLEAR_WINNER, EQUALS = 1.0, 1 / (2**0.5 - 1)
"""How much of what resamples say of the bias of choosing is taken off at the lower and at the upper end; see above."""

METHOD = "speakers resampled jointly over attackers, the smallest taken in each resample, its bias removed"


def minimum_interval(
    values: ArrayLike,
    resampled: ArrayLike,
    *,
    method: Method,
    n_units: int,
    n_trials: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the smallest of several values with an interval that holds the smallest of their true values.

    Parameters
    ----------
    values : array_like of float of shape (A,)
        The metric of each attacker.
    resampled : array_like of float of shape (A, B)
        Of each attacker in resamples of speakers that all attackers share; resamples with a NaN do not count.
    method, n_units, n_trials, level
        See `evaluation.uncertainty.intervals.interval`; not a method of percentiles.

    Returns
    -------
    Interval
        Of one attacker that of `interval`, and also where values are infinite.

    Raises
    ------
    DataError
        If there is no attacker, shapes do not fit, or as `interval`.
    """
    found, resamples = np.asarray(values, np.float64), np.asarray(resampled, np.float64)
    if found.ndim != 1 or not len(found) or resamples.ndim != 2 or len(resamples) != len(found):
        raise DataError(f"expected values of attackers and their resamples, got {found.shape} and {resamples.shape}")
    if np.isnan(found).any():
        raise DataError(f"expected a value of each attacker, got {int(np.isnan(found).sum())} NaN")
    resamples = resamples[:, ~np.isnan(resamples).any(axis=0)]
    chosen = int(found.argmin())
    value = float(found[chosen])
    alone = interval(value, resamples[chosen], method=method, n_units=n_units, n_trials=n_trials, level=level)
    known = np.isfinite(found).all() and np.isfinite(resamples).all() and resamples.shape[1] > 1
    if len(found) == 1 or not known or method.scale == "percentile":
        return alone
    ends = _chosen_anew(found, resamples, method, n_units, n_trials, level)
    note = f"the smallest of {len(found)}"
    if method.of_errors and n_trials and 0 <= value < 0.5:
        variance = float(resamples[chosen].var(ddof=1)) * n_units / (n_units - 1)
        errors = independent_errors(value, variance, n_trials)
        if errors < PLENTY:
            few = rate_interval(value, variance, n_units=n_units, n_trials=n_trials, level=level)
            ends = mixed(few, ends, errors)
            note = f"{note}; {alone.note}" if alone.note else note
    low, high = max(ends[0], method.lower), min(ends[1], method.upper)
    return Interval(value, low, high, METHOD, note)


def _chosen_anew(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    method: Method,
    n_units: int,
    n_trials: int,
    level: float,
) -> tuple[float, float]:
    """The ends by the choice made anew in each resample; see the module."""
    from scipy.special import stdtrit

    scaled = np.stack(
        [to_scale(np.append(resampled[row], values[row]), method, n_trials) for row in range(len(values))]
    )
    scaled, centres = scaled[:, :-1], scaled[:, -1]
    means = scaled.mean(axis=1)
    centres = centres - method.factor * (means - centres)
    noise = (scaled - means[:, None]) * np.sqrt(n_units / (n_units - 1))
    smallest = (centres[:, None] + noise).min(axis=0)
    best = int(centres.argmin())
    bias = float(smallest.mean() - centres[best])
    reach = float(stdtrit(n_units - 1, (1 + level) / 2)) * float(noise[best].std(ddof=1))
    middle = float(centres[best])
    ends = np.array([middle - CLEAR_WINNER * bias - reach, middle - EQUALS * bias + reach])
    low, high = from_scale(ends, method).tolist()
    return low, high


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
    chosen : dict of str to float
        In what share of the resamples each attacker is the smallest; who never is, is left out.
    """

    attacker: str
    interval: Interval
    chosen: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        ends = self.interval
        report: dict[str, Any] = {"low": ends.low, "high": ends.high, "method": ends.method, "chosen": self.chosen}
        return report | ({"note": ends.note} if ends.note else {})


def minimum_over_attackers(
    samples: Mapping[str, Sequence[Sample]], *, reading: str = "rocch", resampling: Resampling | None = None
) -> Minimum:
    """Return the smallest equal error rate of attackers, each the mean over its draws, with its interval.

    Parameters
    ----------
    samples : mapping of str to sequence of Sample
        For each attacker its trials, one `Sample` for each draw of the anonymiser. The trials and their speakers are
        the same ones everywhere, so that speakers are drawn jointly.
    reading : str
        Of the equal error rate, see `evaluation.metrics.eer`.
    resampling : Resampling, optional
        How many resamples are drawn, of which seed, and the level.

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
    values = np.array([rates[places].mean() for places in rows.values()])
    method, most = method_of(f"eer.{reading}"), max(map(len, rows.values()))
    settings: dict[str, Any] = {"method": method, "n_units": first.n_effective, "level": resampling.level}
    settings["n_trials"] = first.n_least * most
    resamples = np.array([means_over_draws(rates[places], resampled[places], **settings) for places in rows.values()])
    ends = minimum_interval(values, resamples, **settings)
    winners = np.nanargmin(np.where(np.isnan(resamples), np.inf, resamples), axis=0)
    shares = np.bincount(winners, minlength=len(rows)) / resamples.shape[1]
    chosen = {name: float(share) for name, share in zip(rows, shares.tolist(), strict=True) if share}
    return Minimum(list(rows)[int(values.argmin())], ends, chosen)


@dataclass(frozen=True)
class _Rate:
    """An equal error rate as a statistic."""

    reading: str

    def __call__(self, scores: SortedScores) -> dict[str, float]:
        return {"eer": eer_of(scores, self.reading)}
