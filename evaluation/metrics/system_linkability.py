"""Global linkability D_sys: how far the scores of mated (target) trials stand out from those of non-mated ones.

The local linkability of a score is 2 w LR / (1 + w LR) - 1 where that is positive, else 0, with the likelihood ratio LR
and w = P(mated) / P(non-mated); D_sys is its mean over mated scores. `d_sys` estimates LR with histograms, as the
references do, to the last bit; `d_sys_pav` with isotonic regression, which needs no bins and is 0 for reversed scores.

References
----------
.. [1] M. Gomez-Barrero et al., "General framework to evaluate unlinkability in biometric template protection systems",
   IEEE Transactions on Information Forensics and Security 13, 2018.
.. [2] M. Maouche et al., "A comparative study of speech anonymization metrics", Interspeech 2020.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.sorted_scores import GivenScores, SortedScores, sort_scores
from spkbase.errors import DataError
from spkbase.work import one_blas_thread

_MATED_PER_BIN = 10
_MAX_BINS = 100
_FEW_BINS = 10
# the reference's value may leave the tie-safe one by this much, either way, before it is said to mislead
_MISLEADS = 0.1


def d_sys(target: GivenScores, nontarget: ArrayLike | None = None, *, omega: float = 1.0) -> float:
    """Return the linkability in the reference's binning.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or SortedScores alone
        Mated and non-mated scores.
    omega : float
        P(mated) / P(non-mated), above 0.

    Returns
    -------
    float
        Between 0 and 1, or NaN where the reference has none: all scores equal, or infinite ones. The reference gives 0
        for fewer than 10 mated scores, 0.97 for separated (0.5 where all mated scores lie in the last bin) and 0.97 for
        fully reversed ones; see `d_sys_caveat`.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or omega is not positive and finite.
    """
    scores = sort_scores(target, nontarget)
    _check(omega)
    low, high = float(scores.thresholds[0]), float(scores.thresholds[-1])
    if low == high or not math.isfinite(high - low):
        return np.nan
    n_bins = min(int(scores.n_target / _MATED_PER_BIN), _MAX_BINS)
    edges = np.linspace(low, high, n_bins + 1)
    if not n_bins or not (np.diff(edges) > 0).all():
        return 0.0 if not n_bins else np.nan
    places = np.searchsorted(scores.thresholds, edges)
    places[-1] = len(scores)  # the last bin holds its upper edge
    mated, other = (_density(np.diff(cumulated[places]), edges) for cumulated in (scores.misses, scores.rejected))
    ratio = np.divide(mated, other, out=np.ones_like(mated), where=other != 0)
    local = 2 * (omega * ratio / (1 + omega * ratio)) - 1
    local[omega * ratio <= 1] = 0
    local[(other == 0) & (mated != 0)] = 1
    centres = (edges[1:] + edges[:-1]) / 2
    return float(np.trapezoid(local * mated, centres))


@one_blas_thread()
def d_sys_pav(target: GivenScores, nontarget: ArrayLike | None = None, *, omega: float = 1.0) -> float:
    """Return the linkability with likelihood ratios of isotonic regression.

    It has no bins, and is safe with ties and infinite scores.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), or SortedScores alone
        Mated and non-mated scores.
    omega : float
        P(mated) / P(non-mated), above 0.

    Returns
    -------
    float
        Between 0 and 1, biased upwards for few trials.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or omega is not positive and finite.

    Examples
    --------
    >>> d_sys_pav([1.0, 2.0], [-1.0, -2.0]), d_sys_pav([-1.0, -2.0], [1.0, 2.0])
    (1.0, 0.0)
    """
    scores = sort_scores(target, nontarget)
    _check(omega)
    blocks = scores.blocks
    local = np.maximum(np.tanh((blocks.llr + np.log(omega)) / 2), 0.0)
    return float(blocks.target @ local / blocks.n_target)


def d_sys_caveat(value: float, pav_value: float, scores: SortedScores) -> str | None:
    """Return why the reference's value is undefined or misleads, or None.

    Parameters
    ----------
    value, pav_value : float
        Of `d_sys` and of `d_sys_pav`.
    scores : SortedScores
        The scores.
    """
    if np.isnan(value):
        return "undefined: the histogram needs finite scores that are neither all equal nor too far apart"
    n_target, n_bins = scores.n_target, min(int(scores.n_target / _MATED_PER_BIN), _MAX_BINS)
    if not n_bins:
        return f"misleads: {n_target:g} target trials give no bin, so that it is 0 (at least {_MATED_PER_BIN} needed)"
    if value - pav_value > _MISLEADS:
        return "misleads: it counts scores as linkable where targets are rarer the higher the score; see d_sys_pav"
    if pav_value - value > _MISLEADS:
        return "misleads: far below d_sys_pav, as its bins are wide and the trapezoid rule counts half of the last one"
    if n_bins < _FEW_BINS:
        return f"uncertain: {n_target:g} target trials give {n_bins} bins only"
    return None


def _check(omega: float) -> None:
    if not 0 < omega < np.inf:
        raise DataError(f"expected omega to be positive and finite, got {omega}")


def _density(counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return counts / np.diff(edges) / counts.sum()
