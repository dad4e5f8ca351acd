"""Intervals of linkability: speakers are drawn anew, and every size of the gallery gets an interval.

Conventions
-----------
Each choice is made for a reason, and docs/linkability.md shows how often such intervals hold the true value:

* *Speakers are drawn, with all rows of each*, since rows of a speaker are alike: P out of P with replacement. So an
  interval says how sure the mean over speakers *like these* is.
* *The gallery stays*, since counts of beaters do not tell which impostors beat whom: nothing can be drawn anew there.
  Against another gallery the mean is less sure.
* *Student's t on the logit scale*, from the standard deviation of the resampled values, as in
  `evaluation.uncertainty.intervals`: a mean of probabilities is skewed near 0 and 1, its logit hardly, and the ends
stay inside.
* *Degrees of freedom by how many speakers carry the value*: (sum x)^2 / (sum x^2) of what is linked, or of what is
  missing to 1, whichever are fewer; at least 1. Near 1 few speakers account for all that is missing, and near 0 few for
  all there is, and resamples then hardly show the spread: with P - 1 degrees intervals hold far too seldom.
* *No wider than the interval of Clopper and Pearson for a share out of P*: a mean of numbers from 0 to 1 is as sure as
  a share at least. This is the whole interval where resamples show no spread, such as where all speakers are linked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.curve import (
    Spans,
    chance,
    checked_sizes,
    distinct_spans,
    linkability_at_sizes,
    probability_blocks,
)
from evaluation.linkage.table import Ranks, TieRule
from evaluation.metrics import Method, clopper_pearson
from evaluation.uncertainty import (
    BLOCK,
    Interval,
    Resampling,
    block_generator,
    draw_counts,
    from_scale,
    to_scale,
)
from spkbase.showing import Tabular, one_line
from spkbase.work import chunk_bounds, one_blas_thread

if TYPE_CHECKING:
    from scipy.sparse import csr_array

METHOD = "t on the logit scale, degrees of freedom by how many speakers carry it"
_LOGIT = Method("logit", lower=0, upper=1)
_CELLS = 1 << 21


@one_line
@dataclass(frozen=True, eq=False)
class Curve(Tabular):
    """Linkability against the size of the gallery, with the ends of its intervals.

    Attributes
    ----------
    sizes : ndarray of int64 of shape (S,)
        Sizes of the gallery, owner included.
    values, low, high, chance : ndarray of float64 of shape (S,)
        Linkability, the ends (NaN without intervals, or where undefined), and what scores that say nothing give.
    top : int
        The r of "among the first r".
    level : float
        Share of true values that the intervals should cover; NaN where that is not known.
    """

    sizes: NDArray[np.int64]
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    chance: NDArray[np.float64]
    top: int = 1
    level: float = float("nan")

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each size of the gallery."""
        columns = {"size": self.sizes, "linkability": self.values, "low": self.low, "high": self.high}
        return columns | {"chance": self.chance}


@one_blas_thread()
def linkability_curve(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1, resampling: Resampling | None = None
) -> Curve:
    """Return linkability for many sizes of the gallery, with intervals by a bootstrap of the speakers.

    Parameters
    ----------
    ranks, sizes, ties, top
        See `evaluation.linkage.linkability_at_sizes`.
    resampling : Resampling, optional
        Of the intervals; none by default.

    Returns
    -------
    Curve

    Raises
    ------
    DataError
        If a size or `top` is out of range, or there is no such rule.
    """
    sizes = checked_sizes(ranks, sizes)
    blank = np.full(len(sizes), np.nan)
    if resampling is None or not resampling.replicates:
        values = linkability_at_sizes(ranks, sizes, ties=ties, top=top)
        return Curve(sizes, values, blank, blank.copy(), chance(sizes, top=top), top)
    spans = distinct_spans(ranks, ties)
    shares = np.bincount(spans.inverse, minlength=len(spans.low)) / len(ranks)
    counts = _counts(ranks, spans)
    n_speakers = counts.shape[0]
    drawn = _drawn_in_blocks(n_speakers, resampling)
    weights = np.asarray((counts.T @ drawn.T).T)  # of each kind of row in each resample
    weights /= weights.sum(axis=1, keepdims=True)
    # speakers of one row each are as many as there are rows of a kind; others are taken one by one
    single = len(ranks) == n_speakers
    rows = np.ones((len(spans.low), 1)) if single else np.asarray(counts.sum(axis=1), np.float64)[:, None]
    alike = np.asarray(counts.sum(axis=0), np.float64) if single else np.ones(n_speakers)
    parts = []
    for block in probability_blocks(spans, sizes, top):
        step = max(1, _CELLS // max(resampling.replicates, len(rows)))
        for start, stop in chunk_bounds(block.shape[1], step):
            some = block[:, start:stop]
            freedom = carriers(some if single else counts @ some, rows, alike)
            values = shares @ some
            parts.append((values, *_ends(values, weights @ some, freedom, n_speakers, resampling.level)))
    values, low, high = map(np.concatenate, zip(*parts, strict=True)) if parts else (blank, blank, blank)
    return Curve(sizes, values, low, high, chance(sizes, top=top), top, resampling.level)


@one_blas_thread()
def mean_interval(values: ArrayLike, resampling: Resampling | None = None) -> Interval:
    """Return the mean of values between 0 and 1, one a speaker, with its interval as for a size of `linkability_curve`.

    Parameters
    ----------
    values : array_like of float of shape (P,)
        Between 0 and 1.
    resampling : Resampling, optional
        By default that of `Resampling`; without replicates the ends are NaN.

    Returns
    -------
    Interval

    Examples
    --------
    >>> found = mean_interval([0.0, 1.0] * 50)
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (0.5, 0.4, 0.6)
    """
    values, resampling = np.asarray(values, np.float64), resampling or Resampling()
    mean = float(values.mean())
    if not resampling.replicates:
        return Interval(mean)
    drawn = _drawn_in_blocks(len(values), resampling) @ values / len(values)
    freedom = carriers(values[:, None], np.ones((len(values), 1)), np.ones(len(values)))
    low, high = _ends(np.array([mean]), drawn[:, None], freedom, len(values), resampling.level)
    return Interval(mean, float(low[0]), float(high[0]), METHOD)


def carriers(linked: NDArray[np.float64], rows: NDArray[np.float64], alike: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many speakers carry each mean alike: the degrees of freedom of its interval.

    Of amounts x, as many equal ones as would have their sum and their sum of squares: (sum x)^2 / (sum x^2). Of what
    speakers have linked, or of what they are missing, whichever are fewer, and never more than the speakers less one.

    Parameters
    ----------
    linked : ndarray of float64 of shape (K, S)
        Rows linked of each kind of speaker, at each size.
    rows : ndarray of float64 of shape (K, 1)
        Rows that each kind has.
    alike : ndarray of float64 of shape (K,)
        Speakers of each kind.

    Returns
    -------
    ndarray of float64 of shape (S,)
    """
    freedom = np.full(linked.shape[1], max(alike.sum() - 1.0, 0.0))
    for part in (linked, rows - linked):
        squares = alike @ np.square(part)
        some = squares > 0
        freedom[some] = np.minimum(freedom[some], (alike @ part)[some] ** 2 / squares[some])
    return freedom


def _drawn_in_blocks(n_units: int, resampling: Resampling) -> NDArray[np.float64]:
    """Count how often each unit comes in each resample, shape (replicates, n_units)."""
    drawn = np.empty((resampling.replicates, n_units))
    for block, (start, stop) in enumerate(chunk_bounds(len(drawn), BLOCK)):
        drawn[start:stop] = draw_counts(n_units, stop - start, block_generator(resampling.seed, block), one_by_one=True)
    return drawn


def _counts(ranks: Ranks, spans: Spans) -> csr_array:
    """Count the rows of each kind that each speaker has, shape (n_speakers, D)."""
    from scipy.sparse import coo_array

    names, speakers = np.unique(ranks.speakers, return_inverse=True)
    shape = len(names), len(spans.low)
    return coo_array((np.ones(len(ranks)), (speakers.reshape(-1), spans.inverse)), shape=shape).tocsr()


def _ends(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    freedom: NDArray[np.float64],
    n_units: int,
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of each column, from its value, its resampled values and their degrees of freedom."""
    from scipy.special import stdtrit

    if n_units < 2:
        return np.full(len(values), np.nan), np.full(len(values), np.nan)
    # products sum in one order for the value and in another for its resamples, so 1 may come out an ulp aside
    values, resampled = _snapped(values), _snapped(resampled)
    scaled = to_scale(np.vstack([resampled, values]), _LOGIT)
    scaled, centre = scaled[:-1], scaled[-1]
    factor = np.sqrt(n_units / (n_units - 1)) * stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2)
    reach = factor * scaled.std(axis=0, ddof=1)
    low, high = share_ends(values, n_units, level)
    spread = ~(resampled == resampled[0]).all(axis=0) & (reach > 0)
    low[spread] = np.maximum(low, from_scale(centre - reach, _LOGIT))[spread]
    high[spread] = np.minimum(high, from_scale(centre + reach, _LOGIT))[spread]
    return low, high


def share_ends(
    values: NDArray[np.float64], count: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of shares out of `count`, after Clopper and Pearson; also for parts of one."""
    return clopper_pearson(values * count, (1 - values) * count, level=level)


def _snapped(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put what is within rounding of 0 or 1 there."""
    values = np.where(values < 1e-300, 0.0, values)
    return np.where(np.abs(1 - values) < 1e-12, 1.0, values)
