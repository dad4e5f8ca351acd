"""Fusion of systems of which some may be useless: weights that are not negative, chosen by folds of speakers.

    llr = offset + sum over systems of weight >= 0 times score

As in `evaluation.score_maps.train_affine`, the weights minimise the empirical cross-entropy at a target prior, plus
half the ridge times their squares (of scores scaled to unit variance). No weight is below 0: that a few speakers turn a
system round would not hold for others. Which ridge, and which systems stay, is decided by trials of speakers that the
weights were not trained on:

1. The ridge is the one with the least cost over the folds, all systems together.
2. The system whose absence costs least is left out, again and again, while what it costs is less than two of its
   standard errors over speakers: who tells nothing gets no weight.
3. Where one system alone, calibrated, costs less than what is left, it is taken alone.

The cost is Cllr [1]_, in bits.

References
----------
.. [1] N. Brümmer and J. du Preez, "Application-independent evaluation of speaker detection", Computer Speech and
   Language 20, 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.score_maps.affine import Affine, apply_affine
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties that are tried."""

_ERRORS = 2.0  # standard errors: of systems that tell nothing one in 40 stays
_TOLERANCE = 1e-12  # of the minimum, relative
_MAX_STEPS = 2000


@one_line
@dataclass(frozen=True)
class ChosenFusion:
    """A fusion and how it was chosen.

    Attributes
    ----------
    affine : Affine
        A weight for each system; 0 for those that were left out.
    ridge : float
    llr : ndarray of shape (N,)
        The training trials, each by weights that were trained on other folds.
    cllr : float [bit]
        Of these.
    alone : dict of str to float [bit]
        The same for each system alone, calibrated.
    tried : dict of float to float [bit]
        The same for all systems, by the ridge.
    """

    affine: Affine
    ridge: float
    llr: NDArray[np.float64]
    cllr: float
    alone: dict[str, float]
    tried: dict[float, float]


def cllr_of_trials(llr: ArrayLike, is_target: ArrayLike) -> NDArray[np.float64]:
    """Return what each trial adds to Cllr: ``log2(1 + exp(-llr)) / (2 n_target)`` or with the signs of a nontarget.

    Examples
    --------
    >>> cllr_of_trials([0.0, 0.0], [True, False])
    array([0.5, 0.5])
    """
    llr, is_target = np.asarray(llr, np.float64), np.asarray(is_target, bool)
    counts = np.where(is_target, is_target.sum(), (~is_target).sum())
    return np.logaddexp(0.0, np.where(is_target, -llr, llr)) / np.log(2) / 2 / counts


@one_blas_thread()
def train_nonnegative(
    scores: ArrayLike, is_target: ArrayLike, *, prior: float = 0.5, ridge: float = 0.0, names: Sequence[str] = ()
) -> Affine:
    """Train a fusion whose weights are not negative.

    Parameters
    ----------
    scores : array_like of float of shape (N, K)
        Finite scores.
    is_target : array_like of bool of shape (N,)
    prior : float
        Target prior to train for.
    ridge : float
        Penalty on half the squared weights, of scores scaled to unit variance.
    names : sequence of str, length K, optional

    Raises
    ------
    DataError
        If a class is missing, or scores are infinite or NaN.

    Examples
    --------
    >>> fused = train_nonnegative([[1, -2], [2, 0], [0.5, -1], [-1, 0], [-2, 1], [1, 2]], [1, 1, 1, 0, 0, 0], ridge=0.1)
    >>> fused.weights[0] > 0, fused.weights[1]
    (True, 0.0)
    """
    from scipy.optimize import minimize

    rows, is_target = np.asarray(scores, np.float64), np.asarray(is_target, bool)
    if not is_target.any() or is_target.all():
        raise DataError("fusion needs trials of both classes", remedy="give more speakers")
    if not np.isfinite(rows).all():
        raise DataError(f"expected finite scores, got {int((~np.isfinite(rows)).sum())} infinite or NaN")
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    usable = scale > 0
    scale = np.where(usable, scale, 1.0)
    rows = np.column_stack([(rows - mean) / scale, np.ones(len(rows))])
    signs = np.where(is_target, 1.0, -1.0)
    shares = np.where(is_target, prior / is_target.sum(), (1 - prior) / (~is_target).sum())
    log_odds = np.log(prior) - np.log1p(-prior)
    penalty = np.append(np.full(rows.shape[1] - 1, ridge), 0.0)

    def loss(solution: NDArray) -> tuple[float, NDArray]:
        margins = signs * (rows @ solution + log_odds)
        wrong = np.exp(-np.logaddexp(0.0, margins))  # posterior of the other class
        value = shares @ np.logaddexp(0.0, -margins) + penalty @ solution**2 / 2
        return float(value), rows.T @ (-signs * shares * wrong) + penalty * solution

    bounds: Any = [*((0.0, None if free else 0.0) for free in usable), (None, None)]
    options: Any = {"maxiter": _MAX_STEPS, "ftol": _TOLERANCE, "gtol": 1e-10}
    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    weights = found.x[:-1] / scale
    return Affine(tuple(weights.tolist()), float(found.x[-1] - weights @ mean), float(prior), tuple(names))


def choose_fusion(
    scores: ArrayLike, is_target: ArrayLike, folds: ArrayLike, speakers: ArrayLike, names: Sequence[str]
) -> ChosenFusion:
    """Train a fusion, and choose by folds of speakers how much it is penalised and which systems have a part in it.

    Parameters
    ----------
    scores : array_like of float of shape (N, K)
        Finite scores of K systems.
    is_target : array_like of bool of shape (N,)
    folds : array_like of int of shape (N,)
        At least two; no speaker has trials in two of them.
    speakers : array_like of shape (N,)
        The speaker that each trial's model is of, over which costs are compared.
    names : sequence of str, length K

    Raises
    ------
    DataError
        If there is one fold alone, or one without trials of both classes.
    """
    scores, is_target, folds = np.asarray(scores, np.float64), np.asarray(is_target, bool), np.asarray(folds)
    if len(np.unique(folds)) < 2:
        raise DataError("fusion needs two folds of speakers, so that its weights are tried on others")
    owners = np.unique(np.asarray(speakers).astype(str), return_inverse=True)[1]

    def cost(columns: list[int], ridge: float) -> NDArray[np.float64]:
        return cllr_of_trials(_crossed(scores[:, columns], is_target, folds, ridge), is_target)

    kept = list(range(len(names)))
    tried = {ridge: float(cost(kept, ridge).sum()) for ridge in RIDGES}
    ridge = min(tried, key=lambda value: tried[value])
    alone_best = {name: min(float(cost([k], value).sum()) for value in RIDGES) for k, name in enumerate(names)}
    current = cost(kept, ridge)
    while len(kept) > 1:
        without = {k: cost([other for other in kept if other != k], ridge) for k in kept}
        least = min(kept, key=lambda k: float(without[k].sum()))
        if float((without[least] - current).sum()) >= _ERRORS * _standard_error(without[least] - current, owners):
            break
        kept.remove(least)
        current = without[least]
    best = min(range(len(names)), key=lambda k: alone_best[names[k]])
    if alone_best[names[best]] < float(current.sum()):
        kept = [best]
        ridge = min(RIDGES, key=lambda value: float(cost(kept, value).sum()))
    trained = train_nonnegative(scores[:, kept], is_target, ridge=ridge)
    weights = np.zeros(len(names))
    weights[kept] = trained.weights
    llr = _crossed(scores[:, kept], is_target, folds, ridge)
    affine = Affine(tuple(weights.tolist()), trained.offset, trained.prior, tuple(names))
    return ChosenFusion(affine, ridge, llr, float(cllr_of_trials(llr, is_target).sum()), alone_best, tried)


def _crossed(scores: NDArray, is_target: NDArray, folds: NDArray, ridge: float) -> NDArray[np.float64]:
    """LLRs of each fold by what was trained on the others."""
    llr = np.empty(len(scores))
    for fold in np.unique(folds):
        tested = folds == fold
        llr[tested] = apply_affine(train_nonnegative(scores[~tested], is_target[~tested], ridge=ridge), scores[tested])
    return llr


def _standard_error(differences: NDArray, owners: NDArray) -> float:
    """Standard error of a sum over trials, which are put together by speakers."""
    sums = np.bincount(owners, differences)
    return float(np.sqrt(len(sums)) * sums.std(ddof=1)) if len(sums) > 1 else 0.0
