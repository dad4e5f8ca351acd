"""Single points of the curve: the true-accept rate where few impostors are let in, with its certainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.binomial import clopper_pearson
from evaluation.metrics.sorted_scores import SortedScores, sort_scores
from spkbase.errors import DataError

FALSE_ACCEPT_RATES = ("0.01", "0.001", "0.0001")


@dataclass(frozen=True)
class TrueAccept:
    """A true-accept rate at a bound on the false-accept rate.

    Parameters
    ----------
    value : float
        Share of target trials accepted at `threshold`.
    low, high : float
        Clopper-Pearson bounds of it, which hold for independent trials.
    threshold : float
        Lowest score at which the false-accept rate is within the bound; +inf where every score is too low for it.
    false_accept_rate : float
        The rate there, at most the bound.
    resolved : bool
        Whether the nontarget trials can tell the bound from 0: there must be at least 1 / bound of them.
    """

    value: float
    low: float
    high: float
    threshold: float
    false_accept_rate: float
    resolved: bool


def tpr_at_fpr(target: ArrayLike, nontarget: ArrayLike, *, fpr: float, level: float = 0.95) -> TrueAccept:
    """Return the largest true-accept rate with a false-accept rate of at most `fpr`, among the thresholds there are.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Scores.
    fpr : float
        Bound on the false-accept rate, between 0 and 1.
    level : float
        Confidence of the bounds.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a rate is out of range.

    Examples
    --------
    >>> point = tpr_at_fpr([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0], fpr=0.01)
    >>> point.value, point.threshold, point.resolved
    (0.75, 2.0, False)
    """
    return tpr_at_fpr_of(sort_scores(target, nontarget), fpr=fpr, level=level)


def tpr_at_fpr_of(scores: SortedScores, *, fpr: float, level: float = 0.95) -> TrueAccept:
    """Return the largest true-accept rate of sorted scores at a false-accept rate; see `tpr_at_fpr`."""
    for name, rate in (("false-accept rate", fpr), ("confidence", level)):
        if not 0 < rate < 1:
            raise DataError(f"expected a {name} between 0 and 1, got {rate}")
    n_target, n_nontarget = scores.n_target, scores.n_nontarget
    allowed = fpr * n_nontarget * (1 + 1e-12)  # 0.0001 * 10,000 may come out a little below 1
    cut = int(np.searchsorted(scores.rejected, n_nontarget - allowed))
    accepted = n_target - float(scores.misses[cut])
    low, high = _bounds(accepted, n_target - accepted, level)
    return TrueAccept(
        value=accepted / n_target,
        low=low,
        high=high,
        threshold=float(scores.thresholds[cut]) if cut < len(scores) else np.inf,
        false_accept_rate=(n_nontarget - float(scores.rejected[cut])) / n_nontarget,
        resolved=bool(allowed >= 1),
    )


@dataclass(frozen=True)
class RateAt:
    """An error rate at a threshold that was chosen elsewhere.

    Parameters
    ----------
    value : float
        The rate.
    threshold : float
        Scores at or above it are accepted.
    """

    value: float
    threshold: float


def cost_threshold_of(scores: SortedScores, prior: float) -> float:
    """Return the threshold of least detection cost; the lowest of equally good ones, +inf where none is to be accepted.

    Parameters
    ----------
    scores : SortedScores
        See `evaluation.metrics.sort_scores`.
    prior : float
        Effective target prior between 0 and 1.
    """
    cost = prior * scores.misses / scores.n_target - (1 - prior) * scores.rejected / scores.n_nontarget
    return float(np.append(scores.thresholds, np.inf)[cost.argmin()])


@lru_cache(maxsize=1 << 14)  # resamples come by the same counts again and again
def _bounds(accepted: float, rejected: float, level: float) -> tuple[float, float]:
    low, high = clopper_pearson(accepted, rejected, level=level)
    return float(low), float(high)
