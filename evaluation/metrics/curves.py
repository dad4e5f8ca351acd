"""Curves of errors: the receiver operating characteristic, its convex hull, and either on probit axes.

A curve runs from accepting all, (p_miss, p_fa) = (0, 1), to rejecting all, (1, 0).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.sorted_scores import SortedScores, sort_scores


def roc(target: ArrayLike, nontarget: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the receiver operating characteristic; equal scores make one slanted piece.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
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
    return roc_of(sort_scores(target, nontarget))


def roc_of(scores: SortedScores) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the receiver operating characteristic of sorted scores; see `roc`."""
    target, nontarget = scores.target, scores.nontarget
    turns = target[1:] * nontarget[:-1] != target[:-1] * nontarget[1:]
    keep = np.concatenate([[True], turns, [True]])
    misses, rejected = scores.misses[keep], scores.rejected[keep]
    return misses / misses[-1], (rejected[-1] - rejected) / rejected[-1]


def det_curve(
    p_miss: np.ndarray, p_fa: np.ndarray, *, box: tuple[float, float, float, float], points: int = 101
) -> tuple[np.ndarray, np.ndarray]:
    """Return a curve of straight pieces (`rocch` or `roc`) on probit axes, where they bend, within a box.

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

    start, stop = np.stack([p_fa[:-1], p_miss[:-1]]), np.stack([p_fa[1:], p_miss[1:]])  # (2, V - 1) each
    low, high = np.array([box[0], box[2]])[:, None], np.array([box[1], box[3]])[:, None]
    first, last = _clip(start, stop, low, high)
    inside = first <= last
    share = np.linspace(first[inside], last[inside], points, axis=1)  # (E, points)
    curve = start[:, inside, None] + (stop - start)[:, inside, None] * share
    # rounding may leave a clipped end a little outside
    x, y = ndtri(np.clip(curve, low[..., None], high[..., None])).reshape(2, -1)
    return x, y


def _clip(start: np.ndarray, stop: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each piece from which to which it lies in the box; first > last where it does not."""
    step = stop - start
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(low - start) / step, (high - start) / step])  # (2 ends, 2 axes, V - 1)
    still = step == 0  # parallel to an axis: inside everywhere or nowhere
    within = (start >= low) & (start <= high)
    entry = np.where(still, np.where(within, 0.0, 2.0), ends.min(axis=0))
    leave = np.where(still, 1.0, ends.max(axis=0))
    return np.maximum(entry.max(axis=0), 0.0), np.minimum(leave.min(axis=0), 1.0)
