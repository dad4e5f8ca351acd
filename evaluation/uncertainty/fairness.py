"""Fairness of error rates over groups of speakers: worst group ratio, and GARBE, with intervals.

All groups are judged at the same threshold, by default that of the equal error rate of all trials. For each of n groups
with the rates x_1, ..., x_n:

* the *worst group ratio* is the largest rate over the smallest, max x_i / min x_j; 1 is fair. See [1]_ for other
measures. * the Gini coefficient, corrected for few groups, is the mean difference of two groups over twice the mean
rate,

      G(x) = n / (n - 1) * sum over i and j of |x_i - x_j| / (2 n^2 mean x)

  from 0 (equal) to 1 (one group has all), and GARBE = alpha G(false alarms) + (1 - alpha) G(misses) [2]_.

For people who do not want to be recognised, misses are the good outcome: the ratio of the true-accept rates says how
many times as often the speakers of one group are recognised as those of another.

Even groups with equal true rates differ in a sample. The interval of a ratio comes from intervals that hold for all
pairs of groups at once, on the log scale, see `evaluation.uncertainty.groups`; that of GARBE is Student's t around the
value minus its bootstrap bias.

References
----------
.. [1] P. Grother, "Face recognition vendor test (FRVT) part 8: summarizing demographic differentials", NISTIR 8429,
   2022.
.. [2] J. Howard et al., "Evaluating proposed fairness models for face recognition algorithms", ICPR workshops 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import Method, SortedScores, equal_error
from evaluation.uncertainty.groups import sample_by_group
from evaluation.uncertainty.intervals import Interval, interval, simultaneous, to_report, to_scale
from evaluation.uncertainty.resampling import NO_INTERVALS, Resampling, Sample, bootstrap
from spkbase.errors import DataError
from spkbase.progress import verbosely
from spkbase.showing import one_line

RATES = ("false_alarm", "miss", "true_accept")
"""Rates at the common threshold."""

_LOG = Method("log", lower=0)
_SHARE = Method("identity", factor=1.0, lower=0, upper=1)


def worst_ratio(rates: ArrayLike) -> float:
    """Return the largest rate over the smallest; infinite if only some groups have rate 0, 1 if all have.

    Parameters
    ----------
    rates : array_like of float of shape (n,)
        Rates, not negative.

    Examples
    --------
    >>> worst_ratio([0.02, 0.01, 0.015]), worst_ratio([0.0, 0.0]), worst_ratio([0.1, 0.0])
    (2.0, 1.0, inf)
    """
    values = np.asarray(rates, np.float64)
    if values.max() == 0:
        return 1.0
    if values.min() == 0:
        return float("inf")
    return float(values.max() / values.min())


def gini(rates: ArrayLike) -> float:
    """Return the Gini coefficient of rates with the correction n / (n - 1); 0 if all are 0.

    Parameters
    ----------
    rates : array_like of float of shape (n,)
        At least two rates, not negative.

    Examples
    --------
    >>> gini([0.1, 0.1]), gini([0.2, 0.0, 0.0]), round(gini([0.3, 0.1]), 6)
    (0.0, 1.0, 0.5)
    """
    values = np.asarray(rates, np.float64)
    n = len(values)
    total = values.sum()
    if n < 2:
        raise DataError(f"expected the rates of at least 2 groups, got {n}")
    if total == 0:
        return 0.0
    gaps = np.abs(values[:, None] - values).sum()
    return float(gaps / (2 * (n - 1) * total))


def garbe(false_alarms: ArrayLike, misses: ArrayLike, *, alpha: float = 0.5) -> float:
    """Return the Gini aggregation rate for biometric equitability of groups, 0 if all are alike.

    Parameters
    ----------
    false_alarms, misses : array_like of float of shape (n,)
        Rates of each group at one threshold.
    alpha : float
        Weight of the false alarms, from 0 to 1.

    Examples
    --------
    >>> round(garbe([0.3, 0.1], [0.2, 0.2]), 6)
    0.25
    """
    if not 0 <= alpha <= 1:
        raise DataError(f"expected a weight from 0 to 1, got {alpha}")
    return alpha * gini(false_alarms) + (1 - alpha) * gini(misses)


@one_line
@dataclass(frozen=True)
class Fairness:
    """Rates of groups at one threshold, and their inequality.

    Attributes
    ----------
    column : str
        Name of the grouping.
    threshold : float
        Scores at or above it are accepted.
    rates : dict of str to dict of str to float
        For each group its `false_alarm`, `miss` and `true_accept` rates.
    ratios : dict of str to Interval
        Worst group ratio of each rate.
    worst : dict of str to str
        Group with the highest value of each rate.
    garbe : Interval
        See `garbe`; alpha is 1/2.
    """

    column: str
    threshold: float
    rates: dict[str, dict[str, float]]
    ratios: dict[str, Interval]
    worst: dict[str, str]
    garbe: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return everything for a report."""
        return to_report(vars(self))


@verbosely
def group_fairness(
    sample: Sample,
    groups: NDArray[Any],
    names: Sequence[str],
    *,
    threshold: float | None = None,
    resampling: Resampling = NO_INTERVALS,
    column: str = "group",
    jobs: int | None = 1,
    verbose: bool = True,
) -> Fairness:
    """Compare the error rates of groups at one threshold.

    Parameters
    ----------
    sample, groups, names, column, jobs
        See `evaluation.uncertainty.evaluate_groups`.
    threshold : float, optional
        Threshold; by default that of the equal error rate of all trials.
    resampling : Resampling
        Resampling of the speakers for the intervals; none by default. The threshold is fixed.
    verbose : bool
        Whether to show progress.

    Raises
    ------
    DataError
        If fewer than two groups have trials of both classes, or shapes disagree.
    """
    every = sample_by_group(sample, groups, names)
    if threshold is None:
        threshold = equal_error(sample.runs()).threshold
    parts = {name: part for name, part in every.items() if part.n_least}
    if len(parts) < 2:
        raise DataError(f"expected at least 2 groups with trials of both classes, got {len(parts)}")
    statistic = partial(rates_at, threshold)
    rates = {name: statistic(part.runs()) for name, part in parts.items()}
    n_units = min(part.n_effective for part in parts.values())
    drawn: list[dict[str, NDArray[Any]]] = []
    if resampling.resamples and n_units > 1:
        drawn = bootstrap(list(parts.values()), statistic, resampling, jobs=jobs)
    n_trials = min(part.n_least for part in parts.values())
    ratios = {}
    worst = {}
    table = {}
    resampled = {}
    for rate in RATES:
        table[rate] = np.array([values[rate] for values in rates.values()])
        columns = np.array([values[rate] for values in drawn]).T.reshape(-1, len(parts))
        resampled[rate] = columns[np.isfinite(columns).all(axis=1)]
        ratios[rate] = _ratio(table[rate], resampled[rate], n_trials, n_units, resampling.level)
        worst[rate] = list(parts)[int(table[rate].argmax())]
    inequity = Interval(garbe(table["false_alarm"], table["miss"]))
    if drawn:
        pairs = zip(resampled["false_alarm"], resampled["miss"], strict=True)
        values = np.array([garbe(*pair) for pair in pairs])
        settings: Any = {"n_units": n_units, "level": resampling.level}
        inequity = interval(inequity.value, values, method=_SHARE, **settings)
    return Fairness(column, threshold, rates, ratios, worst, inequity)


def rates_at(threshold: float, scores: SortedScores) -> dict[str, float]:
    """Return the rates of `RATES` if scores at or above a threshold are accepted."""
    cut = int(np.searchsorted(scores.thresholds, threshold))
    misses, false_alarms = scores.error_rates(cut)
    return {"false_alarm": false_alarms, "miss": misses, "true_accept": 1 - misses}


def _ratio(
    rates: NDArray[np.float64],
    resampled: NDArray[np.float64],
    n_trials: int,
    n_units: int,
    level: float,
) -> Interval:
    """Return the worst group ratio with the interval of the largest true ratio of two groups."""
    value = worst_ratio(rates)
    if len(resampled) < 2:
        return Interval(value)
    # a rate of 0 counts as half an error
    logs = to_scale(np.vstack([rates, resampled]), _LOG, n_trials)
    first, second = np.array(list(permutations(range(len(rates)), 2))).T
    gaps = logs[:, first] - logs[:, second]
    low, high = simultaneous(
        gaps[0], gaps[1:], method=Method("identity"), n_units=n_units, level=level
    )
    most = float(np.exp(high.max()))
    if np.isinf(value):
        most = value
    method = "t on the log scale, simultaneous for all pairs of groups"
    return Interval(value, float(np.exp(max(0.0, low.max()))), most, method)
