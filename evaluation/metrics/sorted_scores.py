"""The core of every score metric: scores sorted once, ties merged into runs, runs pooled into isotonic blocks.

A *run* is one distinct score with the weight (for trials that count once: the number) of target and of nontarget
trials that have it. Equal scores cannot be told apart, so nothing here or above depends on the order of trials. A
*block* is a group of neighbouring runs that isotonic regression (pool adjacent violators, PAV) gives one posterior, and
so one log-likelihood ratio (LLR): the best that any monotone calibration of the scores can make of them. The corners
between the blocks are the vertices of the ROC convex hull.

Each metric has two entry points, one on arrays of scores (`eer`) and one on these objects (`eer_of`). A resample of the
trials is new weights at the same thresholds, without another sort; see `Runs.reweighted`.

References
----------
.. [1] N. Brümmer and J. du Preez, "Application-independent evaluation of speaker detection", Computer Speech and
   Language 20, 2006.
.. [2] T. Fawcett and A. Niculescu-Mizil, "PAV and the ROC convex hull", Machine Learning 68, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spkbase.errors import DataError


@dataclass(frozen=True, eq=False)
class Runs:
    """Distinct scores with the weight of each class at them.

    Parameters
    ----------
    thresholds : np.ndarray of float64, shape (R,)
        The distinct scores, rising; infinite ones are legal.
    target, nontarget : np.ndarray of float64, shape (R,)
        Weight of the target and of the nontarget trials at each score.
    """

    thresholds: np.ndarray
    target: np.ndarray
    nontarget: np.ndarray

    @property
    def n_target(self) -> float:
        """Weight of all target trials; their number, where each counts once."""
        return float(self.misses[-1])

    @property
    def n_nontarget(self) -> float:
        """Weight of all nontarget trials."""
        return float(self.rejected[-1])

    @cached_property
    def misses(self) -> np.ndarray:
        """Weight of target trials below each threshold, then of all, shape (R + 1,)."""
        return _cumulate(self.target)

    @cached_property
    def rejected(self) -> np.ndarray:
        """Weight of nontarget trials below each threshold, then of all, shape (R + 1,)."""
        return _cumulate(self.nontarget)

    def __len__(self) -> int:
        return len(self.thresholds)

    def places(self, scores: ArrayLike) -> np.ndarray:
        """Find the run of each score, which must be one of the thresholds; shape and order as `scores`."""
        return np.searchsorted(self.thresholds, np.asarray(scores, np.float64))

    def reweighted(self, target: np.ndarray, nontarget: np.ndarray) -> Runs:
        """Give the same scores other weights, and leave out those that nobody has any more.

        Parameters
        ----------
        target, nontarget : np.ndarray of float64, shape (R,)
            New weight of each class at each score, such as
            ``np.bincount(runs.places(scores), weights_of_trials, len(runs))``.
        """
        kept = (target > 0) | (nontarget > 0)
        if kept.all():
            return Runs(self.thresholds, target, nontarget)
        return Runs(self.thresholds[kept], target[kept], nontarget[kept])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Runs pooled by isotonic regression of the class on the score.

    Parameters
    ----------
    target, nontarget : np.ndarray of float64, shape (B,)
        Weight of each class in each block.
    first, last : np.ndarray of int64, shape (B,)
        First and last run of each block; together the blocks hold every run.
    llr : np.ndarray of float64, shape (B,)
        Natural log-likelihood ratio of each block, the prior of the data removed; rising, -inf where a block holds
        no target and +inf where it holds no nontarget trial.
    """

    target: np.ndarray
    nontarget: np.ndarray
    first: np.ndarray
    last: np.ndarray
    llr: np.ndarray

    @property
    def n_target(self) -> float:
        """Weight of all target trials."""
        return float(self.target.sum())

    @property
    def n_nontarget(self) -> float:
        """Weight of all nontarget trials."""
        return float(self.nontarget.sum())

    def __len__(self) -> int:
        return len(self.llr)

    def per_run(self) -> np.ndarray:
        """LLR of each run, shape (R,)."""
        return np.repeat(self.llr, self.last - self.first + 1)


def runs_of(
    target: ArrayLike,
    nontarget: ArrayLike,
    *,
    target_weights: ArrayLike | None = None,
    nontarget_weights: ArrayLike | None = None,
) -> Runs:
    """Sort each class once and merge equal scores.

    Parameters
    ----------
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
        Scores in any order.
    target_weights, nontarget_weights : array_like of float, shapes (n_target,) and (n_nontarget,), optional
        How often each trial counts, not negative; once by default. Trials of weight 0 are left out.

    Raises
    ------
    DataError
        If a class is empty or has no weight, a score is NaN, or weights do not fit.

    Examples
    --------
    >>> runs = runs_of([1.0, 2.0, 2.0], [2.0, 0.0])
    >>> runs.thresholds.tolist(), runs.target.tolist(), runs.nontarget.tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0])
    """
    sides = _sorted(target, target_weights, "target"), _sorted(nontarget, nontarget_weights, "nontarget")
    both = np.concatenate([scores for scores, _ in sides])
    order = np.argsort(both, kind="stable")  # of two sorted halves, which a stable sort only merges
    both = both[order]
    starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
    if all(weights is None for _, weights in sides):
        if len(starts) == len(both):
            is_target = (order < len(sides[0][0])).astype(float)
            return Runs(both, is_target, 1 - is_target)
        ends = np.append(starts[1:], len(both))
        is_target = order < len(sides[0][0])
        counts = np.diff(np.cumsum(is_target)[ends - 1], prepend=0).astype(float)
        return Runs(both[starts], counts, (ends - starts) - counts)
    filled = [np.ones(len(scores)) if weights is None else weights for scores, weights in sides]
    columns = [
        np.add.reduceat(
            np.concatenate([one if place == own else 0 * one for place, one in enumerate(filled)])[order], starts
        )
        for own in (0, 1)
    ]
    return Runs(both[starts], columns[0], columns[1])


def pav(runs: Runs, *, laplace: bool = False) -> Blocks:
    """Pool runs into blocks of rising LLR, by weighted isotonic regression (pool adjacent violators).

    Parameters
    ----------
    runs : Runs
        See `runs_of`.
    laplace : bool
        Apply Laplace's rule of succession: one target and one nontarget trial are added below and above all scores,
        so that no LLR is infinite. The blocks returned hold the trials of `runs` alone, and so does the prior that
        is taken off.

    Raises
    ------
    DataError
        If a class has no weight.

    Examples
    --------
    >>> blocks = pav(runs_of([1.0, 3.0, 4.0], [0.0, 2.0]))
    >>> blocks.target.tolist(), blocks.nontarget.tolist()
    ([0.0, 1.0, 2.0], [1.0, 1.0, 0.0])
    """
    if not (runs.n_target > 0 and runs.n_nontarget > 0):
        got = f"{runs.n_target:g} target and {runs.n_nontarget:g} nontarget"
        raise DataError(f"expected trials of both classes, got {got}")
    places = np.flatnonzero((runs.target > 0) | (runs.nontarget > 0))
    target, nontarget = runs.target, runs.nontarget
    if len(places) < len(runs):
        target, nontarget = target[places], nontarget[places]
    target, nontarget, starts = _pooled(target, nontarget)
    first = places[starts]
    first[0] = 0
    blocks = Blocks(target, nontarget, first, np.append(first[1:], len(runs)) - 1, _llr(target, nontarget, runs))
    return laplace_of(blocks) if laplace else blocks


def laplace_of(blocks: Blocks) -> Blocks:
    """Apply Laplace's rule of succession to blocks that were pooled without it; see `pav`.

    Pooling may be done in any order, so that it goes on from the blocks.
    """
    padded = [np.concatenate([[1.0], one, [1.0]]) for one in (blocks.target, blocks.nontarget)]
    target, nontarget, starts = _pooled(*padded)
    llr = _llr(target, nontarget, blocks)
    for weights in (target, nontarget):
        weights[0] -= 1
        weights[-1] -= 1
    # the added trials may have remained alone
    real = (target > 0) | (nontarget > 0)
    first = blocks.first[np.clip(starts - 1, 0, len(blocks) - 1)][real]
    last = np.append(first[1:] - 1, blocks.last[-1])
    return Blocks(target[real], nontarget[real], first, last, llr[real])


def checked_scores(scores: ArrayLike, name: str) -> np.ndarray:
    """Give scores as float64 of shape (N,), or say what is wrong with them.

    Raises
    ------
    DataError
        If there is none, one is NaN, or the shape is another.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1:
        raise DataError(f"expected {name} scores of shape (N,), got {scores.shape}")
    if not len(scores):
        remedy = "detection metrics need trials of both classes: check the key"
        raise DataError(f"expected {name} scores, got none", remedy=remedy)
    n_bad = int(np.isnan(scores).sum())
    if n_bad:
        raise DataError(f"expected numbers as {name} scores, got {n_bad} NaN among {len(scores)}")
    return scores


def as_count(weight: float) -> int | float:
    """Give a sum of weights as int where it is a whole number, as it is for trials that count once."""
    return int(weight) if float(weight).is_integer() else float(weight)


def _sorted(scores: ArrayLike, weights: ArrayLike | None, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Sort the scores of a class, and their weights with them; scores of weight 0 are left out."""
    scores = checked_scores(scores, name)
    if weights is None:
        return np.sort(scores), None
    weights = np.asarray(weights, np.float64)
    if weights.shape != scores.shape:
        raise DataError(f"expected {name} weights of shape {scores.shape}, one for each score, got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise DataError(f"expected {name} weights that are finite and not negative")
    order = np.argsort(scores)
    order = order[weights[order] > 0]
    if not len(order):
        raise DataError(f"expected {name} scores with a weight above 0, got none")
    return scores[order], weights[order]


def _cumulate(column: np.ndarray) -> np.ndarray:
    result = np.zeros(len(column) + 1)
    np.cumsum(column, out=result[1:])
    return result


def _llr(target: np.ndarray, nontarget: np.ndarray, of: Runs | Blocks) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(target / nontarget) - np.log(of.n_target / of.n_nontarget)


def _pooled(target: np.ndarray, nontarget: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of the classes in the isotonic blocks, and the place of the first run of each."""
    from scipy.optimize import isotonic_regression

    weights = target + nontarget
    starts = isotonic_regression(target / weights, weights=weights).blocks[:-1]
    sums = np.stack([np.add.reduceat(target, starts), np.add.reduceat(nontarget, starts)], axis=1)
    # rounding may have left neighbours of equal slope apart: with whole numbers that is decided exactly
    pooled: list[tuple[float, float, int]] = []
    for (n_tar, n_non), start in zip(sums.tolist(), starts.tolist(), strict=True):
        while pooled and pooled[-1][0] * n_non >= n_tar * pooled[-1][1]:
            n_tar, n_non, start = n_tar + pooled[-1][0], n_non + pooled[-1][1], pooled[-1][2]
            pooled.pop()
        pooled.append((n_tar, n_non, start))
    rows = np.array(pooled)
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].astype(np.int64)
