"""Detection metrics: how well scores tell target from nontarget trials.

Conventions
-----------
A trial is accepted when its score is at or above the threshold. `p_miss` is the share of target trials rejected,
`p_fa` of nontarget trials accepted, both as fractions. Equal scores cannot be told apart, so they are pooled: every
number here depends on the scores' order alone, not on the order of the trials. Infinite scores are legal.

The *hull* is the convex hull of the receiver operating characteristic (ROCCH), the best that any monotone calibration
of the scores could reach; isotonic regression (pool adjacent violators) gives it. The names without addition
(`eer`, `min_dcf`, `prbep`) are those of the hull.

Metrics
-------
* `hull`, `rocch`: the vertices of the ROCCH; `roc`: the curve itself; `det_curve`: either on probit axes
* `eer`: the equal error rate, at most 0.5 on the hull
* `min_dcf`: the least detection cost at a prior, normalised or not
* `prbep`: the number of errors where misses and false alarms are equally many
* `evaluate_detection`: all of them

References
----------
.. [1] N. Brümmer and E. de Villiers, "The BOSARIS Toolkit: theory, algorithms and code", 2011.
.. [2] T. Fawcett and A. Niculescu-Mizil, "PAV and the ROC convex hull", Machine Learning 68, 2007.
.. [3] A. Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.errors import DataError

# (p_target, c_miss, c_fa) of NIST's evaluations of these years
SRE08 = (0.01, 10.0, 1.0)
SRE10 = (0.001, 1.0, 1.0)


@dataclass(frozen=True)
class Hull:
    """Vertices of the ROC convex hull, from accepting all to rejecting all.

    Parameters
    ----------
    misses : np.ndarray of int64, shape (V,)
        Target trials rejected at each vertex, from 0 to `n_target`, rising.
    false_alarms : np.ndarray of int64, shape (V,)
        Nontarget trials accepted at each vertex, from `n_nontarget` to 0, falling.
    n_target, n_nontarget : int
        Number of trials.
    """

    misses: np.ndarray
    false_alarms: np.ndarray
    n_target: int
    n_nontarget: int

    @property
    def p_miss(self) -> np.ndarray:
        """Miss rate at each vertex, shape (V,)."""
        return self.misses / self.n_target

    @property
    def p_fa(self) -> np.ndarray:
        """False-alarm rate at each vertex, shape (V,)."""
        return self.false_alarms / self.n_nontarget


@dataclass(frozen=True)
class Detection:
    """What `evaluate_detection` finds; rates are fractions.

    Parameters
    ----------
    n_target, n_nontarget : int
        Number of trials.
    eer : float
        Equal error rate of the hull.
    min_dcf_sre08, min_dcf_sre10 : float
        Normalised least detection cost at (target prior, cost of a miss, cost of a false alarm) of (0.01, 10, 1) and
        of (0.001, 1, 1).
    prbep : float
        Number of misses, which is that of false alarms, where the hull has equally many of both.
    """

    n_target: int
    n_nontarget: int
    eer: float
    min_dcf_sre08: float
    min_dcf_sre10: float
    prbep: float

    def to_dict(self) -> dict[str, Any]:
        """Give the numbers by name, for a report."""
        return asdict(self)


def evaluate_detection(target: ArrayLike, nontarget: ArrayLike) -> Detection:
    """Compute every detection metric.

    Parameters
    ----------
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
        Scores.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> evaluate_detection([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0]).eer
    0.125
    """
    vertices = hull(target, nontarget)
    return Detection(
        n_target=vertices.n_target,
        n_nontarget=vertices.n_nontarget,
        eer=hull_eer(vertices),
        min_dcf_sre08=hull_min_dcf(vertices, effective_prior(*SRE08))[0],
        min_dcf_sre10=hull_min_dcf(vertices, effective_prior(*SRE10))[0],
        prbep=hull_prbep(vertices),
    )


def eer(target: ArrayLike, nontarget: ArrayLike) -> float:
    """Equal error rate: where the hull has as large a miss as false-alarm rate.

    Parameters and errors as for `evaluate_detection`. Returns a fraction between 0 and 0.5.

    Examples
    --------
    >>> eer([1.0, 1.0], [1.0])
    0.5
    """
    return hull_eer(hull(target, nontarget))


def min_dcf(
    target: ArrayLike,
    nontarget: ArrayLike,
    *,
    p_target: float,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalised: bool = True,
) -> float:
    """Least detection cost over all thresholds, P p_miss + (1 - P) p_fa with the effective prior P.

    Parameters
    ----------
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
        Scores.
    p_target : float
        Prior probability of a target trial, between 0 and 1.
    c_miss, c_fa : float
        Costs of a miss and of a false alarm, which with `p_target` make the effective prior; see `effective_prior`.
    normalised : bool
        Divide by min(P, 1 - P), the cost of deciding without any score.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a prior or cost is out of range.

    Examples
    --------
    >>> min_dcf([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0], p_target=0.5)
    0.25
    """
    prior = effective_prior(p_target, c_miss, c_fa)
    return hull_min_dcf(hull(target, nontarget), prior, normalised=normalised)[0]


def prbep(target: ArrayLike, nontarget: ArrayLike) -> float:
    """Precision-recall break-even point: the number of misses where the hull has as many false alarms.

    Parameters and errors as for `evaluate_detection`. Returns a number of trials, fractional between two vertices.
    """
    return hull_prbep(hull(target, nontarget))


def effective_prior(p_target: float, c_miss: float = 1.0, c_fa: float = 1.0) -> float:
    """Fold prior and costs into one prior: P Cm / (P Cm + (1 - P) Cf).

    Raises
    ------
    DataError
        If the prior is not strictly between 0 and 1, or a cost is not positive and finite.

    Examples
    --------
    >>> round(effective_prior(0.01, 10, 1), 6)
    0.091743
    """
    if not 0 < p_target < 1:
        raise DataError(f"expected a target prior between 0 and 1, got {p_target}")
    if not (0 < c_miss < np.inf and 0 < c_fa < np.inf):
        raise DataError(f"expected positive costs, got {c_miss} for a miss and {c_fa} for a false alarm")
    return float(p_target * c_miss / (p_target * c_miss + (1 - p_target) * c_fa))


def rocch(target: ArrayLike, nontarget: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of the ROC convex hull.

    Parameters and errors as for `evaluate_detection`.

    Returns
    -------
    p_miss, p_fa : np.ndarray of float64, shape (V,)
        From (0, 1) to (1, 0); no three on one line.
    """
    vertices = hull(target, nontarget)
    return vertices.p_miss, vertices.p_fa


def hull(target: ArrayLike, nontarget: ArrayLike) -> Hull:
    """Vertices of the ROC convex hull, as numbers of errors; parameters and errors as for `evaluate_detection`."""
    from scipy.optimize import isotonic_regression

    n_target, n_nontarget = _runs(target, nontarget)
    weights = n_target + n_nontarget
    starts = isotonic_regression(n_target / weights, weights=weights).blocks[:-1]
    blocks = np.stack([np.add.reduceat(n_target, starts), np.add.reduceat(n_nontarget, starts)], axis=1)
    # rounding may have left neighbours of equal slope apart: with whole numbers that is decided exactly
    pooled: list[tuple[int, int]] = []
    for n_tar, n_non in blocks.tolist():
        while pooled and pooled[-1][0] * n_non >= n_tar * pooled[-1][1]:
            n_tar, n_non = n_tar + pooled[-1][0], n_non + pooled[-1][1]
            pooled.pop()
        pooled.append((n_tar, n_non))
    misses, rejected = np.concatenate([[[0, 0]], np.cumsum(pooled, axis=0)]).T
    return Hull(misses, rejected[-1] - rejected, int(misses[-1]), int(rejected[-1]))


def hull_eer(vertices: Hull) -> float:
    """Equal error rate of a hull."""
    return _balance(vertices.p_miss, vertices.p_fa)


def hull_prbep(vertices: Hull) -> float:
    """Number of errors where a hull has equally many misses and false alarms."""
    return _balance(vertices.misses.astype(float), vertices.false_alarms.astype(float))


def hull_min_dcf(vertices: Hull, prior: float, *, normalised: bool = True) -> tuple[float, float, float]:
    """Least cost at an effective prior, and where it is reached.

    Parameters
    ----------
    vertices : Hull
        See `hull`.
    prior : float
        Effective prior (not its logit) between 0 and 1; see `effective_prior`.
    normalised : bool
        Divide the cost by min(prior, 1 - prior).

    Returns
    -------
    cost, p_miss, p_fa : float
        Of several vertices with the same cost the one with the fewest misses.
    """
    if not 0 < prior < 1:
        raise DataError(f"expected an effective prior between 0 and 1, got {prior}", remedy="give it, not its logit")
    p_miss, p_fa = vertices.p_miss, vertices.p_fa
    costs = prior * p_miss + (1 - prior) * p_fa
    best = int(costs.argmin())
    scale = min(prior, 1 - prior) if normalised else 1.0
    return float(costs[best] / scale), float(p_miss[best]), float(p_fa[best])


def roc(target: ArrayLike, nontarget: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the receiver operating characteristic; equal scores make one slanted piece.

    Parameters and errors as for `evaluate_detection`.

    Returns
    -------
    p_miss, p_fa : np.ndarray of float64, shape (P,)
        From (0, 1) to (1, 0), without points on the line between their neighbours.
    """
    n_target, n_nontarget = _runs(target, nontarget)
    turns = n_target[1:] * n_nontarget[:-1] != n_target[:-1] * n_nontarget[1:]
    keep = np.concatenate([turns, [True]])
    misses = np.concatenate([[0], np.cumsum(n_target)[keep]])
    rejected = np.concatenate([[0], np.cumsum(n_nontarget)[keep]])
    return misses / misses[-1], (rejected[-1] - rejected) / rejected[-1]


def det_curve(
    p_miss: np.ndarray, p_fa: np.ndarray, *, box: tuple[float, float, float, float], points: int = 101
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a curve of straight pieces (`rocch` or `roc`) on probit axes, where they bend, within a box.

    Parameters
    ----------
    p_miss, p_fa : np.ndarray, shape (V,)
        Vertices from (0, 1) to (1, 0).
    box : tuple of float
        Smallest and largest p_fa, smallest and largest p_miss, all strictly between 0 and 1.
    points : int
        Number of points on each piece.

    Returns
    -------
    x, y : np.ndarray of float64, shape (E * points,)
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
    """Find the share of each piece from which to which it lies in the box; first > last where it does not."""
    step = stop - start
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(low - start) / step, (high - start) / step])  # (2 ends, 2 axes, V - 1)
    still = step == 0  # parallel to an axis: inside everywhere or nowhere
    within = (start >= low) & (start <= high)
    entry = np.where(still, np.where(within, 0.0, 2.0), ends.min(axis=0))
    leave = np.where(still, 1.0, ends.max(axis=0))
    return np.maximum(entry.max(axis=0), 0.0), np.minimum(leave.min(axis=0), 1.0)


def _balance(rising: np.ndarray, falling: np.ndarray) -> float:
    """Value at which a rising and a falling curve with common vertices meet."""
    after = int(np.argmax(rising >= falling))
    gap_before, gap_after = falling[after - 1] - rising[after - 1], falling[after] - rising[after]
    share = gap_before / (gap_before - gap_after)
    return float(rising[after - 1] + share * (rising[after] - rising[after - 1]))


def _runs(target: ArrayLike, nontarget: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Count the trials of each class in runs of rising score.

    A run is one score value, or the values of one class alone between two values of the other; the order within the
    latter changes no metric.

    Returns
    -------
    n_target, n_nontarget : np.ndarray of int64, shape (R,)
    """
    target, nontarget = _checked(target, "target"), _checked(nontarget, "nontarget")
    swapped = len(target) > len(nontarget)
    small, large = (nontarget, target) if swapped else (target, nontarget)
    values, counts = np.unique(small, return_counts=True)
    large = np.sort(large)
    below, up_to = np.searchsorted(large, values, "left"), np.searchsorted(large, values, "right")
    # in turn: the large class below each value, both at the value; at the end the large class above
    n_small, n_large = np.zeros((2, 2 * len(values) + 1), np.int64)
    n_small[1::2] = counts
    n_large[1::2] = up_to - below
    n_large[0::2] = np.concatenate([below, [len(large)]]) - np.concatenate([[0], up_to])
    kept = n_small + n_large > 0
    n_small, n_large = n_small[kept], n_large[kept]
    return (n_large, n_small) if swapped else (n_small, n_large)


def _checked(scores: ArrayLike, name: str) -> np.ndarray:
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
