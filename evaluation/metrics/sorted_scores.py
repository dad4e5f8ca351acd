"""The core of all score metrics: scores are sorted once, equal ones merged, and pooled into isotonic blocks.

`SortedScores` holds the distinct scores, each with the weight (for trials that count once: the number) of target and of
nontarget trials that have it. Equal scores cannot be distinguished, so nothing here or above depends on the order of
trials. A *block* is a group of neighbouring scores to which isotonic regression (pool adjacent violators, PAV) assigns
one posterior, and so one log-likelihood ratio (LLR), the best that any monotone calibration of the scores can reach.
The corners between the blocks are the vertices of the ROC convex hull.

Each metric takes two arrays of scores, or one of these objects, which find blocks and hull once for all metrics. A
resample of the trials only needs new weights at the same thresholds, not another sort.

Error curves are the receiver operating characteristic and its convex hull, on linear or probit axes. A curve runs from
accepting all, (p_miss, p_fa) = (0, 1), to rejecting all, (1, 0).

References
----------
.. [1] N. Brümmer and J. du Preez, "Application-independent evaluation of speaker detection", Computer Speech and
   Language 20, 2006.
.. [2] T. Fawcett and A. Niculescu-Mizil, "PAV and the ROC convex hull", Machine Learning 68, 2007.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evaluation.trials import (
    Key,
    Missing,
    Scores,
    TrialError,
    acquired_scores,
    by_class,
    check_classes,
    check_index,
    column_of,
    floats_of,
)
from spkbase.errors import DataError
from spkbase.showing import one_line

Prior = TypeVar("Prior", float, np.ndarray)
_EXACT = 2**53  # float64 holds every whole number up to here

OtherScores: TypeAlias = ArrayLike | Key | None
"""Second argument of a metric: scores of nontarget trials; of `Scores` their `Key`."""


@one_line
@dataclass(frozen=True, eq=False)
class SortedScores:
    """Distinct scores with the weight of each class at them.

    Parameters
    ----------
    thresholds : ndarray of float64 of shape (R,)
        The distinct scores in ascending order, possibly infinite.
    target, nontarget : ndarray of float64 of shape (R,)
        Weight of the target and of the nontarget trials at each score.
    """

    thresholds: np.ndarray
    target: np.ndarray
    nontarget: np.ndarray

    @cached_property
    def n_target(self) -> float:
        """Return the weight of all target trials, or their number if each counts once."""
        return float(self.misses[-1])

    @cached_property
    def n_nontarget(self) -> float:
        """Return the weight of all nontarget trials."""
        return float(self.rejected[-1])

    @cached_property
    def misses(self) -> np.ndarray:
        """Return the weight of target trials below each threshold, then of all, shape (R + 1,)."""
        return _running_sums(self.target)

    @cached_property
    def rejected(self) -> np.ndarray:
        """Return the weight of nontarget trials below each threshold, then of all, shape (R + 1,)."""
        return _running_sums(self.nontarget)

    @cached_property
    def blocks(self) -> Blocks:
        """Return the scores pooled into blocks of rising LLR, by weighted isotonic regression."""
        runs = _runs_of_a_class(self.target, self.nontarget)
        ends = np.append(runs[1:], len(self))
        target, nontarget, starts = _pooled(
            np.diff(self.misses[ends], prepend=0.0), np.diff(self.rejected[ends], prepend=0.0)
        )
        first = runs[starts]
        first[0] = 0
        last = np.append(first[1:], len(self)) - 1
        return Blocks(
            target,
            nontarget,
            first,
            last,
            _llr(target, nontarget, self.n_target / self.n_nontarget),
        )

    @cached_property
    def laplace_blocks(self) -> Blocks:
        """Return the blocks under Laplace's rule of succession, so that no LLR is infinite.

        One target and one nontarget trial are added below and above all scores; the blocks, and the prior that is
        subtracted, count only the real trials. Since pooling may be done in any order, it continues from the blocks.
        """
        blocks = self.blocks
        padded = [
            np.concatenate([[1.0], weights, [1.0]]) for weights in (blocks.target, blocks.nontarget)
        ]
        target, nontarget, starts = _pooled(*padded)
        llr = _llr(target, nontarget, float(blocks.target.sum()) / float(blocks.nontarget.sum()))
        for weights in (target, nontarget):
            weights[0] -= 1
            weights[-1] -= 1
        # some blocks contain only added trials
        real = (target > 0) | (nontarget > 0)
        first = blocks.first[np.clip(starts - 1, 0, len(blocks) - 1)][real]
        last = np.append(first[1:] - 1, blocks.last[-1])
        return Blocks(target[real], nontarget[real], first, last, llr[real])

    @cached_property
    def hull(self) -> Hull:
        """Return the ROC convex hull."""
        return hull_of(self.blocks)

    @cached_property
    def untied(self) -> SortedScores:
        """Return the scores with ties broken: nontarget trials below target trials of equal score."""
        both = (self.target > 0) & (self.nontarget > 0)
        repeats = 1 + both
        target, nontarget = (
            np.repeat(weights, repeats) for weights in (self.target, self.nontarget)
        )
        first = np.cumsum(repeats)[both] - 2
        target[first] = 0
        nontarget[first + 1] = 0
        return SortedScores(np.repeat(self.thresholds, repeats), target, nontarget)

    @cached_property
    def in_single_precision(self) -> SortedScores:
        """Return the scores rounded to float32, merged if they become equal."""
        with np.errstate(over="ignore"):
            rounded = self.thresholds.astype(np.float32).astype(np.float64)
        starts = np.flatnonzero(np.concatenate([[True], rounded[1:] != rounded[:-1]]))
        weights = (np.add.reduceat(weights, starts) for weights in (self.target, self.nontarget))
        return SortedScores(rounded[starts], *weights)

    def __len__(self) -> int:
        return len(self.thresholds)

    def excess(self, cut: int | slice) -> Any:
        """Return the miss rate minus the false-alarm rate for acceptance from a cut on, times both counts.

        It is exact for whole numbers. A slice selects several cuts.
        """
        n_target = self.n_target
        n_nontarget = self.n_nontarget
        return self.misses[cut] * n_nontarget - (n_nontarget - self.rejected[cut]) * n_target

    @cached_property
    def crossing(self) -> int:
        """Return the first cut, between 1 and R, at which misses are at least as frequent as false alarms."""
        return bisect_left(range(len(self)), 0.0, key=self.excess)

    def error_rates(self, cut: int) -> tuple[float, float]:
        """Return the miss and the false-alarm rate for acceptance from `cut` on, between 0 (all) and R (none)."""
        n_target = self.n_target
        n_nontarget = self.n_nontarget
        return float(self.misses[cut]) / n_target, float(
            n_nontarget - self.rejected[cut]
        ) / n_nontarget


@one_line
@dataclass(frozen=True, eq=False)
class Blocks:
    """Scores pooled by isotonic regression of the class on the score.

    Parameters
    ----------
    target, nontarget : ndarray of float64 of shape (B,)
        Weight of each class in each block.
    first, last : ndarray of int64 of shape (B,)
        Index of the first and of the last score of each block; together the blocks hold every score.
    llr : ndarray of float64 of shape (B,)
        Natural log-likelihood ratio of each block, with the prior of the data removed, in ascending order; -inf if a
        block holds no target trial, +inf if it holds no nontarget trial.
    """

    target: np.ndarray
    nontarget: np.ndarray
    first: np.ndarray
    last: np.ndarray
    llr: np.ndarray

    def __len__(self) -> int:
        return len(self.llr)

    def per_score(self) -> np.ndarray:
        """Return the LLR of each distinct score, shape (R,)."""
        return np.repeat(self.llr, self.last - self.first + 1)


@one_line
@dataclass(frozen=True, eq=False)
class Hull:
    """Vertices of the ROC convex hull, from accepting all to rejecting all.

    Parameters
    ----------
    misses : ndarray of float64 of shape (V,)
        Target trials rejected at each vertex, from 0 to all, rising; whole numbers unless trials have weights.
    false_alarms : ndarray of float64 of shape (V,)
        Nontarget trials accepted at each vertex, from all to 0, falling.
    p_miss, p_fa : ndarray of float64 of shape (V,)
        The same as shares of the trials of each class.
    """

    misses: np.ndarray
    false_alarms: np.ndarray
    p_miss: np.ndarray
    p_fa: np.ndarray


GivenScores: TypeAlias = ArrayLike | Scores | SortedScores
"""First argument of a metric: scores of target trials, `Scores`, or only `SortedScores`."""


def sort_scores(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    target_weights: ArrayLike | None = None,
    nontarget_weights: ArrayLike | None = None,
    missing: Missing = "error",
) -> SortedScores:
    """Return the distinct scores of trials: each class is sorted once, and equal scores are merged.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or Scores and Key
        Scores in any order; `SortedScores` without a second argument are returned as they are. A single data frame, or
        scores of all trials with labels, are accepted too; see `evaluation.trials.by_class`.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score of the first argument, instead of a second argument.
    target_weights, nontarget_weights : array_like of float of shapes (n_target,) and (n_nontarget,), optional
        How often each trial counts, not negative; once by default. Trials of weight 0 are left out.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score, and with NaN in arrays: an error, drop them, or count
        them as rejected at every threshold; see `evaluation.trials.split_scores`.

    Raises
    ------
    DataError
        If a class is empty or has no weight, a score is NaN, weights do not fit, or one array holds the labels of the
        other: truth values or two numbers (0 and 1, or -1 and 1), as many as there are scores.

    Examples
    --------
    >>> scores = sort_scores([1.0, 2.0, 2.0], [2.0, 0.0])
    >>> scores.thresholds.tolist(), scores.target.tolist(), scores.nontarget.tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0])
    """
    if isinstance(target, SortedScores) and nontarget is None and labels is None:
        return target
    sides: Any = (target, nontarget)
    if not isinstance(target, SortedScores):
        try:
            sides = by_class(target, nontarget, labels, missing=missing)
        except TrialError as error:
            # accepted by all metrics
            instead = "ev.sort_scores(scores, key, missing='drop') in the place of both"
            raise error.changed(
                error.text, remedy=str(error.remedy).replace("missing='drop'", instead)
            ) from None
    own, others = sides
    if isinstance(own, SortedScores) or others is None:
        raise DataError(
            "expected scores of target and of nontarget trials",
            remedy="give both, or Scores and a Key, or labels=",
        )
    check_classes(column_of(own, "target scores"), column_of(others, "nontarget scores"))
    target, target_weights = _sorted(own, target_weights, "target", missing)
    nontarget, nontarget_weights = _sorted(others, nontarget_weights, "nontarget", missing)
    both = np.concatenate([target, nontarget])
    order = np.argsort(both, kind="stable")  # a stable sort only merges the two sorted halves
    both = both[order]
    is_target = order < len(target)
    if target_weights is None and nontarget_weights is None:
        of_target = is_target.astype(np.float64)
        of_nontarget = 1.0 - of_target
    else:
        weights = np.concatenate(
            [_or_ones(target_weights, target), _or_ones(nontarget_weights, nontarget)]
        )
        of_target = np.where(is_target, weights[order], 0.0)
        of_nontarget = np.where(is_target, 0.0, weights[order])
    is_new = np.ones(len(both), bool)
    np.not_equal(both[1:], both[:-1], out=is_new[1:])
    if not is_new.all():
        starts = np.flatnonzero(is_new)
        both = both[starts]
        of_target = np.add.reduceat(of_target, starts)
        of_nontarget = np.add.reduceat(of_nontarget, starts)
    return SortedScores(both, of_target, of_nontarget)


def hull_of(blocks: Blocks) -> Hull:
    """Return the vertices of the ROC convex hull: the corners between isotonic blocks.

    Parameters
    ----------
    blocks : Blocks
        See `SortedScores.blocks`.
    """
    misses, rejected = (
        np.append(0.0, np.cumsum(weights)) for weights in (blocks.target, blocks.nontarget)
    )
    false_alarms = rejected[-1] - rejected
    return Hull(misses, false_alarms, misses / misses[-1], false_alarms / rejected[-1])


def as_count(weight: float) -> int | float:
    """Return a sum of weights, as int if it is a whole number.

    Parameters
    ----------
    weight : float
        Sum of weights: the number of trials if each counts once.
    """
    if float(weight).is_integer():
        return int(weight)
    return float(weight)


def roc(target: GivenScores, nontarget: OtherScores = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the receiver operating characteristic; equal scores give one slanted piece.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores.

    Returns
    -------
    p_miss, p_fa : ndarray of float64 of shape (P,)
        From (0, 1) to (1, 0), without points on the line between their neighbours.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.
    """
    scores = sort_scores(target, nontarget)
    target = scores.target
    nontarget = scores.nontarget
    turns = target[1:] * nontarget[:-1] != target[:-1] * nontarget[1:]
    keep = np.concatenate([[True], turns, [True]])
    misses = scores.misses[keep]
    rejected = scores.rejected[keep]
    return misses / misses[-1], (rejected[-1] - rejected) / rejected[-1]


class DetCurve(NamedTuple):
    """Error rates at each threshold, rising; a trial is accepted at or above it, and none at the last, +inf.

    Attributes
    ----------
    fpr, fnr, thresholds : ndarray of float64 of shape (R + 1,)
        False-alarm rate, miss rate and threshold.
    """

    fpr: np.ndarray
    fnr: np.ndarray
    thresholds: np.ndarray


class RocCurve(NamedTuple):
    """Rates of accepted trials at each threshold, falling from +inf; a trial is accepted at or above it.

    Attributes
    ----------
    fpr, tpr, thresholds : ndarray of float64 of shape (R + 1,)
        False-accept rate, true-accept rate and threshold.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray


def det_curve(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> DetCurve:
    """Return the error rates at every threshold, as `sklearn.metrics.det_curve` does for all of its points.

    Parameters
    ----------
    target, nontarget, labels
        See `sort_scores`.

    Examples
    --------
    >>> curve = det_curve([1.0, 2.0, 2.0], labels=[0, 1, 1])
    >>> curve.fpr.tolist(), curve.fnr.tolist(), curve.thresholds.tolist()
    ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 2.0, inf])
    """
    scores = sort_scores(target, nontarget, labels)
    thresholds = np.append(scores.thresholds, np.inf)
    fpr = (scores.n_nontarget - scores.rejected) / scores.n_nontarget
    return DetCurve(fpr, scores.misses / scores.n_target, thresholds)


def roc_curve(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> RocCurve:
    """Return the rates of accepted trials at every threshold, as `sklearn.metrics.roc_curve` (all points).

    Parameters
    ----------
    target, nontarget, labels
        See `sort_scores`.

    Examples
    --------
    >>> curve = roc_curve([2.0], [1.0])
    >>> curve.fpr.tolist(), curve.tpr.tolist(), curve.thresholds.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [inf, 2.0, 1.0])
    """
    curve = det_curve(target, nontarget, labels)
    return RocCurve(curve.fpr[::-1], 1 - curve.fnr[::-1], curve.thresholds[::-1])


def probit_curve(
    p_miss: np.ndarray,
    p_fa: np.ndarray,
    *,
    box: tuple[float, float, float, float],
    points: int = 101,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a piecewise linear curve (`rocch` or `roc`) on probit axes, on which its straight pieces bend, within a
    box.

    Parameters
    ----------
    p_miss, p_fa : ndarray of shape (V,)
        Vertices from (0, 1) to (1, 0).
    box : tuple of float
        Smallest and largest p_fa, smallest and largest p_miss, all strictly between 0 and 1.
    points : int
        Number of points on each piece.

    Returns
    -------
    x, y : ndarray of float64 of shape (E * points,)
        Probit of p_fa and of p_miss along the E pieces that cross the box; empty if none does.
    """
    from scipy.special import ndtri

    start = np.stack([p_fa[:-1], p_miss[:-1]])  # (2, V - 1) each
    stop = np.stack([p_fa[1:], p_miss[1:]])
    low = np.array([box[0], box[2]])[:, None]
    high = np.array([box[1], box[3]])[:, None]
    first, last = _clip(start, stop, low, high)
    inside = first <= last
    share = np.linspace(first[inside], last[inside], points, axis=1)  # (E, points)
    curve = start[:, inside, None] + (stop - start)[:, inside, None] * share
    # rounding may leave a clipped end slightly outside
    x, y = ndtri(np.clip(curve, low[..., None], high[..., None])).reshape(2, -1)
    return x, y


def _sorted(
    scores: ArrayLike, weights: ArrayLike | None, name: str, missing: Missing
) -> tuple[np.ndarray, np.ndarray | None]:
    """Sort the scores of a class with their weights, if any, and drop scores of weight 0."""
    check_index(**{f"{name} scores": scores, f"{name} weights": weights})
    scores, counted = acquired_scores(scores, f"{name} scores", missing)
    if not counted.any():
        remedy = "detection metrics need trials of both classes: check the key"
        raise DataError(f"expected {name} scores, got none", remedy=remedy)
    if weights is None:
        if not counted.all():
            scores = scores[counted]
        return np.sort(scores), None
    weights = floats_of(weights, f"{name} weights").astype(np.float64)
    if weights.shape != scores.shape:
        raise DataError(
            f"expected {name} weights of shape {scores.shape}, one for each score, got {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise DataError(f"expected {name} weights that are finite and not negative")
    order = np.argsort(scores)
    order = order[(weights[order] > 0) & counted[order]]
    if not len(order):
        raise DataError(f"expected {name} scores with a weight above 0, got none")
    return scores[order], weights[order]


def _or_ones(weights: np.ndarray | None, scores: np.ndarray) -> np.ndarray:
    if weights is None:
        return np.ones(len(scores))
    return weights


def _running_sums(weights: np.ndarray) -> np.ndarray:
    """Return 0 and the cumulative sums, shape (R + 1,)."""
    dtype: type = np.float64
    if (np.rint(weights) == weights).all() and weights.sum() < _EXACT:
        dtype = np.int64  # the same sums, eight times faster
    sums: np.ndarray = np.zeros(len(weights) + 1, dtype)
    np.cumsum(weights.astype(dtype, copy=False), out=sums[1:])
    return sums.astype(np.float64, copy=False)


def _llr(target: np.ndarray, nontarget: np.ndarray, odds: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        llr: np.ndarray = np.log(target / nontarget) - np.log(odds)
    return llr


def _runs_of_a_class(target: np.ndarray, nontarget: np.ndarray) -> np.ndarray:
    """Return the first score of each run of scores that belong to one class; a score of both classes is its own run.

    A run is always within one isotonic block. Scores without weight belong to the run before.
    """
    has_target = target > 0
    has_nontarget = nontarget > 0
    has_weight = has_target | has_nontarget
    if not has_weight.all():
        places = np.flatnonzero(has_weight)
        runs: np.ndarray = places[_runs_of_a_class(target[places], nontarget[places])]
        return runs
    has_both = has_target & has_nontarget
    is_first = np.ones(len(target), bool)
    is_first[1:] = (has_target[1:] != has_target[:-1]) | has_both[1:] | has_both[:-1]
    return np.flatnonzero(is_first)


def _pooled(target: np.ndarray, nontarget: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of the classes in the isotonic blocks, and the position of the first score of each."""
    from scipy.optimize import isotonic_regression

    weights = target + nontarget
    starts = isotonic_regression(target / weights, weights=weights).blocks[:-1]
    sums = np.stack([np.add.reduceat(target, starts), np.add.reduceat(nontarget, starts)], axis=1)
    # rounding may have separated neighbours of equal slope; whole numbers allow an exact decision
    pooled: list[tuple[float, float, int]] = []
    for (n_tar, n_non), start in zip(sums.tolist(), starts.tolist(), strict=True):
        while pooled and pooled[-1][0] * n_non >= n_tar * pooled[-1][1]:
            n_tar = n_tar + pooled[-1][0]
            n_non = n_non + pooled[-1][1]
            start = pooled[-1][2]
            pooled.pop()
        pooled.append((n_tar, n_non, start))
    rows = np.array(pooled)
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].astype(np.int64)


def _clip(
    start: np.ndarray, stop: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the fractions of each piece at which it enters and leaves the box; first > last if it misses the box."""
    step = stop - start
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(low - start) / step, (high - start) / step])  # (2 ends, 2 axes, V - 1)
    still = step == 0  # parallel to an axis: inside everywhere or nowhere
    within = (start >= low) & (start <= high)
    entry = np.where(still, np.where(within, 0.0, 2.0), ends.min(axis=0))
    leave = np.where(still, 1.0, ends.max(axis=0))
    return np.maximum(entry.max(axis=0), 0.0), np.minimum(leave.min(axis=0), 1.0)
