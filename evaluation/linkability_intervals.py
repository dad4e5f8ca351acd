"""Intervals of linkability: speakers are drawn anew, and every size of the gallery gets an interval.

Conventions
-----------
Out of P trial speakers P are drawn with replacement, with all rows of each; the gallery stays. So an interval says how
sure the mean over speakers *like these* is against *this* gallery. The ends are Student's t on the logit scale from the
standard deviation of the resampled values, which is the method "t on the logit scale" of `evaluation.intervals`, here
for all sizes at once.

Where every row has the same value, resamples show no spread. If that value is 0 or 1, the end inside (0, 1) is that of
Clopper and Pearson for as many speakers; else the interval is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.errors import DataError
from evaluation.linkability import Spans, blocks_of, chance, checked_sizes, linkability, spans_of
from evaluation.parallel import chunk_bounds
from evaluation.rank_table import Ranks, TieRule

METHOD = "t on the logit scale"
_BLOCK = 25
_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Curve:
    """Linkability against the size of the gallery, with the ends of its intervals.

    Parameters
    ----------
    sizes : np.ndarray of int64, shape (S,)
        Sizes of the gallery, owner included.
    values, low, high, chance : np.ndarray of float64, shape (S,)
        Linkability, the ends (NaN without intervals, or where undefined), and what scores that say nothing give.
    top : int
        The r of "among the first r".
    """

    sizes: NDArray[np.int64]
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    chance: NDArray[np.float64]
    top: int = 1


def linkability_curve(
    ranks: Ranks,
    sizes: ArrayLike,
    *,
    ties: TieRule = "shared",
    top: int = 1,
    replicates: int = 0,
    seed: int = 0,
    level: float = 0.95,
) -> Curve:
    """Compute linkability for many sizes, with a bootstrap of the speakers.

    Parameters
    ----------
    ranks, sizes, ties, top
        See `evaluation.linkability.linkability`.
    replicates : int
        Number of resamples; 0 for no intervals.
    seed : int
        Of the resamples.
    level : float
        Share of true values that such intervals should cover.

    Raises
    ------
    DataError
        If a number is out of range.
    """
    sizes = checked_sizes(ranks, sizes)
    blank = np.full(len(sizes), np.nan)
    if not replicates:
        values = linkability(ranks, sizes, ties=ties, top=top)
        return Curve(sizes, values, blank, blank.copy(), chance(sizes, top=top), top)
    spans = spans_of(ranks, ties)
    shares = np.bincount(spans.inverse, minlength=len(spans.low)) / len(ranks)
    weights, n_speakers = _resampled_shares(ranks, spans, replicates, seed)
    parts = []
    for block in blocks_of(spans, sizes, top):
        step = max(1, _CELLS // replicates)
        for start, stop in chunk_bounds(block.shape[1], step):
            some = block[:, start:stop]
            parts.append((shares @ some, *_ends(shares @ some, weights @ some, n_speakers, level)))
    values, low, high = map(np.concatenate, zip(*parts, strict=True)) if parts else (blank, blank, blank)
    return Curve(sizes, values, low, high, chance(sizes, top=top), top)


def mean_interval(
    values: ArrayLike, *, replicates: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of values between 0 and 1, one a speaker; as for a size of `linkability_curve`.

    Without replicates the ends are NaN.

    >>> low, high = mean_interval([0.0, 1.0] * 50)
    >>> round(low, 2), round(high, 2)
    (0.4, 0.6)
    """
    values = np.asarray(values, np.float64)
    if not replicates:
        return float("nan"), float("nan")
    drawn = _draw(len(values), replicates, seed) @ values / len(values)
    low, high = _ends(np.array([values.mean()]), drawn[:, None], len(values), level)
    return float(low[0]), float(high[0])


def _draw(n_units: int, replicates: int, seed: int) -> NDArray[np.float64]:
    """How often each unit comes in each resample, shape (replicates, n_units)."""
    if replicates < 2 or seed < 0:
        raise DataError(f"expected at least 2 replicates and a seed from 0, got {replicates} and {seed}")
    weights = np.empty((replicates, n_units))
    for block, (start, stop) in enumerate(chunk_bounds(replicates, _BLOCK)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
        for row in range(start, stop):
            weights[row] = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
    return weights


def _resampled_shares(ranks: Ranks, spans: Spans, replicates: int, seed: int) -> tuple[NDArray[np.float64], int]:
    """Share of each kind of row in each resample of the speakers, shape (replicates, D); and how many speakers."""
    from scipy.sparse import coo_array

    names, speakers = np.unique(ranks.speakers, return_inverse=True)
    drawn = _draw(len(names), replicates, seed)
    shape = len(names), len(spans.low)
    counts = coo_array((np.ones(len(ranks)), (speakers.reshape(-1), spans.inverse)), shape=shape).tocsr()
    shares = np.asarray((counts.T @ drawn.T).T)
    return shares / shares.sum(axis=1, keepdims=True), len(names)


def _ends(
    values: NDArray[np.float64], resampled: NDArray[np.float64], n_units: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of each column, from its value and its resampled values."""
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise DataError(f"expected a level between 0 and 1, got {level}")
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if n_units < 2:
        return low, high
    # products sum in one order for the value and in another for its resamples, so 1 may come out an ulp aside
    values, resampled = _snapped(values), _snapped(resampled)
    # values at the ends count as near to them as any other is
    lifted = _lifted(np.vstack([resampled, values]))
    others = _lifted(1 - lifted)
    scaled = np.log(lifted[:-1]) - np.log(others[:-1])
    centre = np.log(lifted[-1]) - np.log(others[-1])
    reach = stdtrit(n_units - 1, (1 + level) / 2) * np.sqrt(n_units / (n_units - 1)) * scaled.std(axis=0, ddof=1)
    spread = ~(resampled == resampled[0]).all(axis=0) & (reach > 0)
    low[spread], high[spread] = _expit((centre - reach)[spread]), _expit((centre + reach)[spread])
    bound = ((1 - level) / 2) ** (1 / n_units)
    for alike, ends in ((1.0, (bound, 1.0)), (0.0, (0.0, 1 - bound))):
        some = ~spread & (values == alike)
        low[some], high[some] = ends
    return low, high


def _snapped(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put what is within rounding of 0 or 1 there."""
    values = np.where(values < 1e-300, 0.0, values)
    return np.where(np.abs(1 - values) < 1e-12, 1.0, values)


def _lifted(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lift each column's zeros to its least positive value."""
    least = np.min(np.where(columns > 0, columns, np.inf), axis=0)
    return np.maximum(columns, np.where(np.isfinite(least), least, 1.0))


def _expit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-values))
