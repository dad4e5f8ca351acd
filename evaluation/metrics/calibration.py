"""Calibration metrics: the value of scores as natural log-likelihood ratios (LLRs).

The empirical cross-entropy (ECE) at a target prior P is the mean number of bits that remain unknown about the class of
a trial after its score was turned into a posterior with that prior:

    ECE(P) = [ P mean_tar log(1 + exp(-llr - logit P)) + (1 - P) mean_non log(1 + exp(llr + logit P)) ] / log 2

*Cllr* is ECE(0.5); the *minimum* of either is that of the best monotone calibration, found by isotonic regression, and
the *calibration loss* is the difference of the two. `evaluation.calibration` trains calibrations for new scores.

References
----------
.. [1] N. Brümmer and J. du Preez, "Application-independent evaluation of speaker detection", Computer Speech and
   Language 20, 2006.
.. [2] D. Ramos and J. Gonzalez-Rodriguez, "Reliable support: measuring calibration of likelihood ratios", Forensic
   Science International 230, 2013.
"""

from __future__ import annotations

import logging

import numpy as np

from evaluation.metrics.detection import reversal, sort_with_warning
from evaluation.metrics.sorted_scores import (
    GivenScores,
    OtherScores,
    Prior,
    SortedScores,
    sort_scores,
)
from evaluation.trials import by_class, numbers_of
from spkbase.errors import DataError

logger = logging.getLogger(__name__)
_NO_RATIOS = "so they are not log-likelihood ratios"
_FEW = 10  # with fewer distinct scores, signs and the minimum are not conclusive
_PIECE = 1 << 15


def cllr(target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None) -> float:
    """Return the cost of log-likelihood ratios in bits: 0 for perfect ones, 1 for LLRs of 0, more for misleading ones.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Natural LLRs. The cost is infinite if a target trial has -inf or a nontarget trial +inf.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> cllr([0.0, 0.0], [0.0])
    1.0
    """
    return ece(target, nontarget, labels, prior=0.5)


def min_cllr(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> float:
    """Return the least Cllr of any monotone calibration, between 0 and 1 bit.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores; any increasing map of them gives the same.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> min_cllr([2.0, 3.0], [0.0, 1.0])
    0.0
    """
    return min_ece(target, nontarget, labels, prior=0.5)


def ece(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None, *, prior: Prior
) -> Prior:
    """Return the empirical cross-entropy at a target prior, or several.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Natural LLRs.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    prior : float, or ndarray of shape (P,)
        Target priors strictly between 0 and 1.

    Returns
    -------
    float, or ndarray of float64 of shape (P,)
        Bits.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a prior is out of range.

    Examples
    --------
    >>> round(ece([0.0], [0.0], prior=0.1), 6)
    0.468996
    """
    scores = sort_with_warning(target, nontarget, labels)
    entropy = _entropy(scores.thresholds, scores.target, scores.nontarget, prior)
    if scores is not target:
        cost = None
        if isinstance(prior, float) and prior == 0.5:
            cost = float(entropy)
        _warn_of_doubt(scores, cost)
    return entropy


def min_ece(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None, *, prior: Prior
) -> Prior:
    """Return the empirical cross-entropy of the best monotone calibration.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores; any increasing map of them gives the same.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    prior : float, or ndarray of shape (P,)
        Target priors strictly between 0 and 1.

    Returns
    -------
    float, or ndarray of float64 of shape (P,)
        Bits.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or a prior is out of range.
    """
    scores = sort_with_warning(target, nontarget, labels)
    blocks = scores.blocks
    return _entropy(blocks.llr, blocks.target, blocks.nontarget, prior)


def sort_ratios(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> SortedScores:
    """Sort scores as `sort_with_warning` does, and warn if they can hardly be log-likelihood ratios."""
    scores = sort_with_warning(target, nontarget, labels)
    if scores is not target:
        _warn_of_doubt(scores)
    return scores


def _warn_of_doubt(scores: SortedScores, cost: float | None = None) -> None:
    """Warn of scores that can hardly be log-likelihood ratios, unless they are reversed."""
    if reversal(scores) is None:
        doubt = doubt_ratios(scores, cost)
        if doubt:
            logger.warning("%s", doubt)


def doubt_ratios(scores: SortedScores, cost: float | None = None) -> str | None:
    """Return why scores can hardly be meant as natural log-likelihood ratios, or None.

    Scores are doubtful if all have the same sign: then no trial supports one of the two hypotheses. They are also
    doubtful if Cllr exceeds 1.05 bit, so that no scores at all would be better, and calibration would save more than
    half of Cllr and over 0.1 bit, or over 0.3 bit.

    Parameters
    ----------
    scores : SortedScores
    cost : float, optional
        Their Cllr in bits, if known; NaN to check only the signs.

    Examples
    --------
    >>> doubt_ratios(sort_scores([-0.4, -2.0, -30.0], [-1.0 * n for n in range(1, 9)]))
    'all scores are below 0, so they are not log-likelihood ratios: calibrate'
    """
    one_sign = _doubt_signs(scores)
    if one_sign is not None:
        return one_sign
    if cost is None:
        cost = _entropy(scores.thresholds, scores.target, scores.nontarget, 0.5)
    if len(scores) < _FEW or np.isnan(cost):
        return None
    least = min_cllr(scores)
    if not (cost > 1.05 or cost - least > max(0.1, min(least, 0.3))):
        return None
    numbers = f"Cllr {cost:.3f} bit, minimum {least:.3f}"
    return f"the scores are not calibrated LLRs ({numbers}): calibrate them first, or name the base of their logarithm"


def _doubt_signs(scores: SortedScores) -> str | None:
    low, high = scores.thresholds[[0, -1]]
    if len(scores) > 2 and low >= 0 and high <= 1:
        return f"all scores are between 0 and 1, {_NO_RATIOS}: take the logit of probabilities, or calibrate"
    if len(scores) >= _FEW and low >= 0:
        return f"all scores are above 0, {_NO_RATIOS}: take the logarithm of likelihood ratios, or calibrate"
    if len(scores) >= _FEW and high <= 0:
        return f"all scores are below 0, {_NO_RATIOS}: calibrate"
    return None


def pav_llrs(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    laplace: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the LLR of each trial after isotonic regression on the same trials.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores in any order.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    laplace : bool
        Apply Laplace's rule of succession, so that no LLR is infinite; see `SortedScores.laplace_blocks`.

    Returns
    -------
    target, nontarget : ndarray of float64 of shapes (n_target,) and (n_nontarget,)
        Natural LLRs, in the order of the scores; for `SortedScores` in ascending order, each repeated according to its
        weight.

    Examples
    --------
    >>> pav_llrs([2.0, 1.0], [0.0, 1.0])
    (array([inf,  0.]), array([-inf,   0.]))
    """
    scores = sort_scores(target, nontarget, labels)
    blocks = scores.laplace_blocks if laplace else scores.blocks
    llr = blocks.per_score()
    if isinstance(target, SortedScores):
        return np.repeat(llr, scores.target.astype(int)), np.repeat(
            llr, scores.nontarget.astype(int)
        )
    target, nontarget = by_class(target, nontarget, labels)
    values = numbers_of(target, "target scores")
    others = numbers_of(nontarget, "nontarget scores")
    return llr[np.searchsorted(scores.thresholds, values)], llr[
        np.searchsorted(scores.thresholds, others)
    ]


def softplus(values: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(x)) without overflow, three times quicker than `np.logaddexp`.

    Parameters
    ----------
    values : ndarray of float64
        Array of any shape; values may be infinite.
    """
    result: np.ndarray = np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values)))
    return result


def _entropy(llr: np.ndarray, target: np.ndarray, nontarget: np.ndarray, prior: Prior) -> Prior:
    priors = np.atleast_1d(np.asarray(prior, np.float64))
    bad = priors[~((priors > 0) & (priors < 1))]
    if len(bad):
        raise DataError(
            f"expected target priors between 0 and 1, got {bad[0]:g}",
            remedy="give priors, not their logits",
        )
    result = np.zeros(len(priors))
    for number, target_prior in enumerate(priors):
        log_odds = np.log(target_prior) - np.log1p(-target_prior)
        for sign, weights, share in ((-1, target, target_prior), (1, nontarget, 1 - target_prior)):
            total = 0.0
            for start in range(0, len(llr), _PIECE):  # process pieces that fit into the cache
                piece = weights[start : start + _PIECE]
                # an infinite LLR of the other class must not meet a weight of 0
                kept = np.flatnonzero(piece > 0)
                values = sign * llr[start : start + _PIECE][kept] + sign * log_odds
                with np.errstate(over="ignore"):  # on overflow, infinity is the right result
                    # not a dot product: starting the threads of BLAS takes longer than the sum
                    total += float((piece[kept] * softplus(values)).sum())
            result[number] += share * (total / float(weights.sum()))
    result /= np.log(2)
    if isinstance(prior, np.ndarray):
        return result
    return float(result[0])
