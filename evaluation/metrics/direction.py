"""Whether scores point the right way: the higher, the more alike.

Distances given as scores look like perfect privacy: the best threshold accepts everybody or nobody, the ROC convex hull
is the diagonal, and nothing is disclosed. So it is said wherever numbers of scores are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.equal_error import eer_of
from evaluation.metrics.sorted_scores import SortedScores, sort_scores


@dataclass(frozen=True)
class Reversal:
    """Scores whose target trials score below the nontarget ones.

    Attributes
    ----------
    rate : float
        The interpolated EER, above 0.5.
    clear : bool
        Whether that is more than a draw of so few trials would do; if not, the scores may tell nothing at all.
    """

    rate: float
    clear: bool

    @property
    def text(self) -> str:
        """What a reader should know, in a sentence."""
        where = f"target trials score below nontarget ones (interpolated EER {100 * self.rate:.1f} %)"
        if self.clear:
            return f"REVERSED? {where}: distances look private; --distances turns them round"
        return f"{where}, by no more than chance might do; an attacker could turn the scores round"


def reversal_at(rate: float, n_trials: float) -> Reversal | None:
    """Return what an interpolated EER says of the direction of scores.

    Scores that tell nothing have an EER of 0.5 with a standard error of at most 0.5 / sqrt(n_trials); above 0.5 by
    twice that they are clearly reversed.

    Parameters
    ----------
    rate : float
        The interpolated EER; NaN where it is not known.
    n_trials : float
        Number of trials of the scarcer class.

    Returns
    -------
    Reversal or None
        None where the rate is 0.5 at most.

    Examples
    --------
    >>> reversal_at(0.3, 100), reversal_at(0.93, 100).clear, reversal_at(0.51, 100).clear
    (None, True, False)
    """
    if not rate > 0.5:
        return None
    return Reversal(float(rate), bool(rate > 0.5 + 1 / np.sqrt(n_trials)))


def reversal_of(scores: SortedScores) -> Reversal | None:
    """Return how sorted scores are reversed, or None; see `reversal`."""
    return reversal_at(eer_of(scores, "interpolated"), min(scores.n_target, scores.n_nontarget))


def reversal(target: ArrayLike, nontarget: ArrayLike) -> Reversal | None:
    """Return how scores are reversed, or None where target trials do not score below the others.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Scores.

    Examples
    --------
    >>> reversal([0.1, 0.2, 0.3] * 9, [0.7, 0.8, 0.9] * 9).rate
    1.0
    """
    target, nontarget = np.asarray(target, np.float64), np.asarray(nontarget, np.float64)
    # an EER above 0.5 puts more than half of each class on the wrong side of a threshold: the medians tell at once
    if not (len(target) and len(nontarget)) or np.median(target) >= np.median(nontarget):
        return None
    return reversal_of(sort_scores(target, nontarget))
