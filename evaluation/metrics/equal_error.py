"""The equal error rate, in the five readings that tools give it.

A trial is accepted when its score is at or above the threshold (SpeechBrain: above it). Real curves have steps, so
misses and false alarms are rarely equal at any threshold, and tools differ in what they then report:

``rocch``
    Where the convex hull of the curve has equal rates; at most 0.5. The default.
``interpolated``
    Where the straight line between two neighbouring points of the curve has equal rates. Common in papers
    (scikit-learn's `roc_curve` with `brentq`).
``kaldi``
    The miss rate at the first target score that has no more false alarms, in proportion, above or at it: Kaldi's
    `compute-eer`, and so the VoicePrivacy challenges 2020 and 2022. Ties count against the system.
``speechbrain``
    The mean of both rates at the first score where they differ least; the VoicePrivacy challenges 2024 and 2026.
``nearest``
    The mean of both rates at the point where they differ least, among the points that scikit-learn's `roc_curve` keeps
    (those where the curve goes on with another step). `spkanon_eval` reports this mean for groups, and the false-alarm
    rate alone, `EqualError.p_fa`, for all trials.

**Whether scores point the right way: the higher, the more alike.**

Distances given as scores look like perfect privacy: the best threshold accepts everybody or nobody, the ROC convex hull
is the diagonal, and nothing is disclosed. So it is said wherever numbers of scores are shown.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.sorted_scores import GivenScores, SortedScores, crossing_point, sort_scores
from spkbase.errors import DataError

METHODS = ("rocch", "interpolated", "kaldi", "speechbrain", "nearest")


@dataclass(frozen=True)
class EqualError:
    """An equal error rate and where it lies.

    Parameters
    ----------
    rate : float
        The equal error rate, as a fraction.
    threshold : float
        The score there; for ``rocch`` and ``interpolated`` that on whose step the rates cross.
    p_miss, p_fa : float
        The rates that it was made of; both are `rate` where a line was followed.
    """

    rate: float
    threshold: float
    p_miss: float
    p_fa: float


def eer(target: GivenScores, nontarget: ArrayLike | None = None, *, method: str = "rocch") -> float:
    """Return the equal error rate.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or SortedScores alone
        Scores.
    method : {"rocch", "interpolated", "kaldi", "speechbrain", "nearest"}
        See `evaluation.metrics.equal_error`.

    Returns
    -------
    float
        A fraction; between 0 and 0.5 for ``rocch``, between 0 and 1 for the others.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or the method is unknown.

    Examples
    --------
    >>> eer([1.0, 1.0], [1.0])
    0.5
    """
    scores = sort_scores(target, nontarget)
    return equal_error(scores, method=method).rate


def equal_error(target: GivenScores, nontarget: ArrayLike | None = None, *, method: str = "rocch") -> EqualError:
    """Return the equal error rate and where it lies.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or SortedScores alone
        Scores.
    method : {"rocch", "interpolated", "kaldi", "speechbrain", "nearest"}
        See `evaluation.metrics.equal_error`.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or the method is unknown.

    Examples
    --------
    >>> equal_error([1.0, 3.0, 4.0], [0.0, 2.0], method="kaldi").threshold
    3.0
    """
    scores = sort_scores(target, nontarget)
    if method not in METHODS:
        raise DataError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    if method in _READINGS:
        return _READINGS[method](scores)
    after = scores.crossing
    exact = after < len(scores) and scores.excess(after) == 0
    threshold = float(scores.thresholds[after if exact else after - 1])
    if method == "rocch":
        rate = scores.hull.eer
    else:
        misses, rejected = scores.misses[after - 1 : after + 1], scores.rejected[after - 1 : after + 1]
        rate = crossing_point(misses / scores.n_target, (scores.n_nontarget - rejected) / scores.n_nontarget)
    return EqualError(rate, threshold, rate, rate)


def _kaldi(scores: SortedScores) -> EqualError:
    """Walk the positions of sorted targets; the condition, once true, stays true, so that halving finds the first."""
    n_target, n_nontarget, last_cut = scores.n_target, scores.n_nontarget, len(scores) - 1
    thresholds, misses, rejected = scores.thresholds, scores.misses, scores.rejected

    def score(cumulated: np.ndarray, position: float) -> float:
        return float(thresholds[min(int(cumulated.searchsorted(position, "right")) - 1, last_cut)])

    def no_more_false_alarms(position: int) -> bool:
        opposite = max(n_nontarget - 1 - int(n_nontarget * position / n_target), 0)
        return score(rejected, opposite) < score(misses, position)

    last = max(int(np.ceil(n_target)) - 1, 0)
    position = bisect_left(range(last), True, key=no_more_false_alarms)
    threshold = score(misses, position)
    cut = int(np.searchsorted(scores.thresholds, threshold))
    return EqualError(position / n_target, threshold, *scores.error_rates(cut))


def _speechbrain(scores: SortedScores) -> EqualError:
    """Find the first point of least difference.

    Scores above the threshold are accepted, so that the points begin above the lowest score, and the threshold of each
    is the score below it.
    """
    after = scores.crossing
    before = max(after - 1, 1)
    cut = before if abs(scores.excess(before)) <= abs(scores.excess(after)) else after
    p_miss, p_fa = scores.error_rates(cut)
    return EqualError((p_miss + p_fa) / 2, float(scores.thresholds[cut - 1]), p_miss, p_fa)


def _nearest(scores: SortedScores) -> EqualError:
    """Find the point of least difference that roc_curve keeps; of two equally good ones that of higher threshold."""
    last = len(scores)
    turns = (scores.target[1:] != scores.target[:-1]) | (scores.nontarget[1:] != scores.nontarget[:-1])
    kept = np.concatenate([[True], turns, [True]])
    kept[last - 1] = True
    kept = np.flatnonzero(kept)
    after = int(np.searchsorted(kept, scores.crossing))
    before, cut = int(kept[after - 1]), int(kept[after])
    if abs(scores.excess(before)) < abs(scores.excess(cut)):
        cut = before
    p_miss, p_fa = scores.error_rates(cut)
    return EqualError((p_miss + p_fa) / 2, float(scores.thresholds[cut]) if cut < last else np.inf, p_miss, p_fa)


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


def reversal(target: GivenScores, nontarget: ArrayLike | None = None) -> Reversal | None:
    """Return how scores are reversed, or None where target trials do not score below the others.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or SortedScores alone
        Scores.

    Examples
    --------
    >>> reversal([0.1, 0.2, 0.3] * 9, [0.7, 0.8, 0.9] * 9).rate
    1.0
    """
    if nontarget is not None:
        target, nontarget = np.asarray(target, np.float64), np.asarray(nontarget, np.float64)
        # an EER above 0.5 puts more than half of each class on the wrong side of a threshold: the medians tell at once
        if not (len(target) and len(nontarget)) or np.median(target) >= np.median(nontarget):
            return None
    scores = sort_scores(target, nontarget)
    return reversal_at(eer(scores, method="interpolated"), min(scores.n_target, scores.n_nontarget))


_READINGS = {"kaldi": _kaldi, "speechbrain": _speechbrain, "nearest": _nearest}
