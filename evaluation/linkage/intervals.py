"""Intervals of linkability: speakers are drawn anew, and every size of the gallery gets an interval.

Conventions
-----------
Out of P trial speakers P are drawn with replacement, with all rows of each; the gallery stays. So an interval says how
sure the mean over speakers *like these* is against *this* gallery. The ends are Student's t on the logit scale from the
standard deviation of the resampled values, as in `evaluation.uncertainty.intervals`, here for all sizes at once.

Where linkability is near 1 few speakers account for all that is missing, and near 0 few for all there is; then the
spread of the resamples is hardly known. So the degrees of freedom are not P - 1 but how many speakers share in it
alike: (sum x)^2 / (sum x^2), of what is missing or of what is there, whichever are fewer; at least 1.

No interval is wider than that of Clopper and Pearson for a share out of P: a mean of numbers from 0 to 1 is as sure as
a share at least. This is the whole interval where resamples show no spread, such as where all speakers are linked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.curve import Spans, blocks_of, chance, checked_sizes, linkability, spans_of
from evaluation.linkage.table import Ranks, TieRule
from spkbase.errors import DataError
from spkbase.work import chunk_bounds, one_blas_thread

if TYPE_CHECKING:
    from scipy.sparse import csr_array

METHOD = "t on the logit scale, degrees of freedom by how many speakers carry it"
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


@one_blas_thread()
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
        See `evaluation.linkage.linkability`.
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
    counts = _counts(ranks, spans)
    drawn = _draw(counts.shape[0], replicates, seed)
    weights = np.asarray((counts.T @ drawn.T).T)  # of each kind of row in each resample
    weights /= weights.sum(axis=1, keepdims=True)
    n_speakers = counts.shape[0]
    # speakers of one row each are as many as there are rows of a kind; others are taken one by one
    single = len(ranks) == n_speakers
    rows = np.ones((len(spans.low), 1)) if single else np.asarray(counts.sum(axis=1), np.float64)[:, None]
    alike = np.asarray(counts.sum(axis=0), np.float64) if single else np.ones(n_speakers)
    parts = []
    for block in blocks_of(spans, sizes, top):
        step = max(1, _CELLS // max(replicates, len(rows)))
        for start, stop in chunk_bounds(block.shape[1], step):
            some = block[:, start:stop]
            freedom = _freedom(some if single else counts @ some, rows, alike)
            parts.append((shares @ some, *_ends(shares @ some, weights @ some, freedom, n_speakers, level)))
    values, low, high = map(np.concatenate, zip(*parts, strict=True)) if parts else (blank, blank, blank)
    return Curve(sizes, values, low, high, chance(sizes, top=top), top)


@one_blas_thread()
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
    freedom = _freedom(values[:, None], np.ones((len(values), 1)), np.ones(len(values)))
    low, high = _ends(np.array([values.mean()]), drawn[:, None], freedom, len(values), level)
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


def _counts(ranks: Ranks, spans: Spans) -> csr_array:
    """How many rows of each kind each speaker has, shape (n_speakers, D)."""
    from scipy.sparse import coo_array

    names, speakers = np.unique(ranks.speakers, return_inverse=True)
    shape = len(names), len(spans.low)
    return coo_array((np.ones(len(ranks)), (speakers.reshape(-1), spans.inverse)), shape=shape).tocsr()


def _freedom(linked: NDArray[np.float64], rows: NDArray[np.float64], alike: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of freedom of each column, of what speakers have linked (K, S) of their rows (K, 1), `alike` of each."""
    freedom = np.full(linked.shape[1], max(alike.sum() - 1.0, 0.0))
    for part in (linked, rows - linked):
        squares = alike @ np.square(part)
        some = squares > 0
        freedom[some] = np.minimum(freedom[some], (alike @ part)[some] ** 2 / squares[some])
    return freedom


def _ends(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    freedom: NDArray[np.float64],
    n_units: int,
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of each column, from its value, its resampled values and their degrees of freedom."""
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise DataError(f"expected a level between 0 and 1, got {level}")
    if n_units < 2:
        return np.full(len(values), np.nan), np.full(len(values), np.nan)
    # products sum in one order for the value and in another for its resamples, so 1 may come out an ulp aside
    values, resampled = _snapped(values), _snapped(resampled)
    # values at the ends count as near to them as any other is
    lifted = _lifted(np.vstack([resampled, values]))
    others = _lifted(1 - lifted)
    scaled = np.log(lifted[:-1]) - np.log(others[:-1])
    centre = np.log(lifted[-1]) - np.log(others[-1])
    factor = np.sqrt(n_units / (n_units - 1)) * stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2)
    reach = factor * scaled.std(axis=0, ddof=1)
    low, high = share_ends(values, n_units, level)
    spread = ~(resampled == resampled[0]).all(axis=0) & (reach > 0)
    low[spread] = np.maximum(low, _expit(centre - reach))[spread]
    high[spread] = np.minimum(high, _expit(centre + reach))[spread]
    return low, high


def share_ends(
    values: NDArray[np.float64], count: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of shares out of `count`, after Clopper and Pearson; also for parts of one."""
    from scipy.special import betaincinv

    seen, rest, tail = values * count, (1 - values) * count, (1 - level) / 2
    low = np.where(seen > 0, betaincinv(np.maximum(seen, 1e-9), rest + 1, tail), 0.0)
    high = np.where(rest > 0, betaincinv(seen + 1, np.maximum(rest, 1e-9), 1 - tail), 1.0)
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
