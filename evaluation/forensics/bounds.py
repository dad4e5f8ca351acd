"""Bounds of likelihood ratios: the most that a set of trials supports, beyond which ratios are extrapolated.

ELUB (empirical lower and upper bounds) [1]_ compare decisions at a threshold t of the likelihood ratio, where a miss
costs 1 and a false alarm t, with decisions without a system. One more misleading trial is added to each class. The
bounds end where the system ceases to be useful:

    (misses + 1) / (n_target + 1) + t (false alarms + 1) / (n_nontarget + 1)  >  min(1, t)

Invariance bounds [2]_ ask that the likelihood ratio of "the ratio is t or more" is at least t, and that of "the ratio
is below t" at most t. Rates are those of a beta distribution with Jeffreys' prior, (count + 1/2) / (n + 1).

Both search a grid of log10 ratios, in steps of 0.01 and 0.001, from 0 outwards. Numbers equal those of the package
`lir` where a ratio is below 0; otherwise its upper bound is the end of the grid.

References
----------
.. [1] P. Vergeer et al., "Numerical likelihood ratios outputted by LR systems are often based on extrapolation: when to
   stop extrapolating?", Science and Justice 56, 2016.
.. [2] I. Alberink et al., "A transparent method to determine limit values for likelihood ratio systems", 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.forensics.deviation import LN10
from evaluation.metrics import GivenScores, OtherScores, SortedScores, sort_ratios
from evaluation.trials import Scores, floats_of

Ratios = TypeVar("Ratios", Scores, ArrayLike)

_ELUB_STEP = 0.01
_STEP = 0.001
_SAME = 1e-9  # log10 ratios that differ by less count as equal: values in files are rounded


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest log-likelihood ratio that may be reported.

    Attributes
    ----------
    lower, upper : float
        Natural LLRs, at most 0 and at least 0.
    method : str
        Name of the method, for tables.

    Examples
    --------
    >>> Bounds(-1.0, 2.0)([-3.0, 0.5, 9.0]).tolist()
    [-1.0, 0.5, 2.0]
    """

    lower: float
    upper: float
    method: str = ""

    def __call__(self, ratios: Ratios) -> Ratios:
        """Return natural LLRs, or `Scores` that are such, with those beyond a bound moved to it."""
        if isinstance(ratios, Scores):
            return replace(ratios, values=np.clip(ratios.values, self.lower, self.upper))
        values: Ratios = np.clip(floats_of(ratios, "ratios"), self.lower, self.upper)
        return values

    @property
    def log10(self) -> tuple[float, float]:
        """The bounds as logarithms of base 10."""
        return self.lower / LN10, self.upper / LN10


def elub(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
) -> Bounds:
    """Return the empirical lower and upper bounds (ELUB) of log-likelihood ratios.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Natural LLRs; those beyond a billion count as a billion.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> [round(bound, 2) for bound in elub([2.0] * 50 + [-1.0], [-2.0] * 90 + [1.0]).log10]
    [-0.86, 0.86]
    """
    scores = sort_ratios(target, nontarget, labels)
    ratios = np.clip(scores.thresholds / LN10, -9, 9)
    lowest = max(ratios[0], -np.log10(scores.n_target + 1))
    highest = min(ratios[-1], np.log10(scores.n_nontarget + 1))
    first = min(0, int(np.floor_divide(lowest, _ELUB_STEP)))
    last = max(0, int(np.floor_divide(highest, _ELUB_STEP)) + 1)
    grid = np.arange(first, last + 1) * _ELUB_STEP
    misses, alarms = _errors(scores, np.searchsorted(ratios, grid + _SAME))
    misses = (misses + 1) / (scores.n_target + 1)
    alarms = (alarms + 1) / (scores.n_nontarget + 1)
    useless = np.minimum(1, 10**grid) < misses + 10**grid * alarms
    lower = np.max(grid[useless & (grid <= 0)] + _ELUB_STEP, initial=grid[0])
    upper = np.min(grid[useless & (grid >= 0)] - _ELUB_STEP, initial=grid[-1])
    return Bounds(min(0.0, float(lower) * LN10), max(0.0, float(upper) * LN10), "ELUB")


def invariance_bounds(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
) -> Bounds:
    """Return the bounds of log-likelihood ratios by verification of their invariance.

    Parameters
    ----------
    target, nontarget, labels
        See `elub`; LLRs beyond 10^20 count as 10^20.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> [round(bound, 2) for bound in invariance_bounds([2.0] * 50 + [-1.0], [-2.0] * 90 + [1.0]).log10]
    [-0.87, 0.87]
    """
    scores = sort_ratios(target, nontarget, labels)
    ratios = np.clip(scores.thresholds / LN10, -20, 20)
    grid = np.arange(min(0.0, ratios[0]), max(0.0, ratios[-1]) + _STEP, _STEP)
    misses, alarms = _errors(scores, np.searchsorted(ratios, grid - _SAME))
    same_below = (misses + 0.5) / (scores.n_target + 1)
    other_above = (alarms + 0.5) / (scores.n_nontarget + 1)
    above = np.log10(1 - same_below) - np.log10(other_above)
    below = np.log10(same_below) - np.log10(1 - other_above)
    too_high = np.flatnonzero(above < grid)
    too_low = np.flatnonzero(below > grid)
    upper = ratios[scores.target > 0][-1]
    if len(too_high):
        upper = grid[max(too_high[0] - 1, 0)]
    lower = ratios[scores.nontarget > 0][0]
    if len(too_low):
        lower = grid[min(too_low[-1] + 1, len(grid) - 1)]
    return Bounds(min(0.0, float(lower) * LN10), max(0.0, float(upper) * LN10), "invariance")


def _errors(
    scores: SortedScores, cuts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of misses and false alarms for acceptance from each cut on."""
    return scores.misses[cuts], scores.n_nontarget - scores.rejected[cuts]
