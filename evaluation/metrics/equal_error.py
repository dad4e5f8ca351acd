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
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.sorted_scores import Blocks, Runs, pav, runs_of
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


def eer(target: ArrayLike, nontarget: ArrayLike, *, method: str = "rocch") -> float:
    """Equal error rate.

    Parameters
    ----------
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
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
    return eer_of(runs_of(target, nontarget), method=method)


def eer_of(runs: Runs, *, method: str = "rocch", blocks: Blocks | None = None) -> float:
    """Equal error rate of runs; see `equal_error_of`."""
    return equal_error_of(runs, method=method, blocks=blocks).rate


def equal_error(target: ArrayLike, nontarget: ArrayLike, *, method: str = "rocch") -> EqualError:
    """Equal error rate with its threshold; parameters and errors as for `eer`."""
    return equal_error_of(runs_of(target, nontarget), method=method)


def equal_error_of(runs: Runs, *, method: str = "rocch", blocks: Blocks | None = None) -> EqualError:
    """Equal error rate of runs with its threshold.

    Parameters
    ----------
    runs : Runs
        See `evaluation.metrics.runs_of`. Each must have a weight (`Runs.reweighted` sees to it).
    method : {"rocch", "interpolated", "kaldi", "speechbrain", "nearest"}
        See `evaluation.metrics.equal_error`.
    blocks : Blocks, optional
        The blocks of `runs` for ``rocch``, where they are at hand.
    """
    if method not in METHODS:
        raise DataError(f"expected a method among {', '.join(METHODS)}, got {method!r}")
    if method == "kaldi":
        return _kaldi(runs)
    if method == "speechbrain":
        return _speechbrain(runs)
    if method == "nearest":
        return _nearest(runs)
    return _crossing(runs, (blocks or pav(runs)) if method == "rocch" else None)


def balance(rising: np.ndarray, falling: np.ndarray) -> float:
    """Value at which a rising and a falling curve with common vertices meet."""
    after = int(np.argmax(rising >= falling))
    gap_before, gap_after = falling[after - 1] - rising[after - 1], falling[after] - rising[after]
    share = gap_before / (gap_before - gap_after)
    return float(rising[after - 1] + share * (rising[after] - rising[after - 1]))


def _excess(runs: Runs, place: int) -> float:
    """Miss rate minus false-alarm rate when all runs from `place` on are accepted, times both counts: exact."""
    n_target, n_nontarget = runs.n_target, runs.n_nontarget
    return float(runs.misses[place] * n_nontarget - (n_nontarget - runs.rejected[place]) * n_target)


def _cross(runs: Runs) -> int:
    """First place from which misses are at least as frequent as false alarms, between 1 and R."""
    return bisect_left(range(len(runs)), 0.0, key=lambda place: _excess(runs, place))


def _rates(runs: Runs, place: int) -> tuple[float, float]:
    n_target, n_nontarget = runs.n_target, runs.n_nontarget
    return float(runs.misses[place]) / n_target, float(n_nontarget - runs.rejected[place]) / n_nontarget


def _crossing(runs: Runs, blocks: Blocks | None) -> EqualError:
    after = _cross(runs)
    exact = after < len(runs) and _excess(runs, after) == 0
    threshold = float(runs.thresholds[after if exact else after - 1])
    if blocks is None:
        misses, rejected = runs.misses[after - 1 : after + 1], runs.rejected[after - 1 : after + 1]
    else:
        misses, rejected = (np.concatenate([[0.0], np.cumsum(one)]) for one in (blocks.target, blocks.nontarget))
    rate = balance(misses / runs.n_target, (runs.n_nontarget - rejected) / runs.n_nontarget)
    return EqualError(rate, threshold, rate, rate)


def _kaldi(runs: Runs) -> EqualError:
    """Walk the positions of sorted targets; the condition, once true, stays true, so that halving finds the first."""
    n_target, n_nontarget = runs.n_target, runs.n_nontarget

    def score(cumulated: np.ndarray, position: float) -> float:
        return float(runs.thresholds[min(int(np.searchsorted(cumulated, position, "right")) - 1, len(runs) - 1)])

    def no_more_false_alarms(position: int) -> bool:
        opposite = max(n_nontarget - 1 - int(n_nontarget * position / n_target), 0)
        return score(runs.rejected, opposite) < score(runs.misses, position)

    last = max(int(np.ceil(n_target)) - 1, 0)
    position = bisect_left(range(last), True, key=no_more_false_alarms)
    threshold = score(runs.misses, position)
    place = int(np.searchsorted(runs.thresholds, threshold))
    return EqualError(position / n_target, threshold, *_rates(runs, place))


def _speechbrain(runs: Runs) -> EqualError:
    """Find the first point of least difference.

    Scores above the threshold are accepted, so that the points begin above the lowest score, and the threshold of each
    is the score below it.
    """
    after = _cross(runs)
    before = max(after - 1, 1)
    place = before if abs(_excess(runs, before)) <= abs(_excess(runs, after)) else after
    p_miss, p_fa = _rates(runs, place)
    return EqualError((p_miss + p_fa) / 2, float(runs.thresholds[place - 1]), p_miss, p_fa)


def _nearest(runs: Runs) -> EqualError:
    """Find the point of least difference that roc_curve keeps; of two equally good ones that of higher threshold."""
    last = len(runs)
    turns = (runs.target[1:] != runs.target[:-1]) | (runs.nontarget[1:] != runs.nontarget[:-1])
    kept = np.concatenate([[True], turns, [True]])
    kept[last - 1] = True
    kept = np.flatnonzero(kept)
    after = int(np.searchsorted(kept, _cross(runs)))
    before, place = int(kept[after - 1]), int(kept[after])
    if abs(_excess(runs, before)) < abs(_excess(runs, place)):
        place = before
    p_miss, p_fa = _rates(runs, place)
    return EqualError((p_miss + p_fa) / 2, float(runs.thresholds[place]) if place < last else np.inf, p_miss, p_fa)
