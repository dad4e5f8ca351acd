"""Affine calibration and fusion by logistic regression, which turn scores into natural log-likelihood ratios.

    llr = offset + weights[0] * score of system 0 + weights[1] * score of system 1 + ...

The weights minimise the empirical cross-entropy of the training trials at one target prior [1]_, plus half the ridge
times the squared weights (of scores scaled to unit variance). Each class is weighted to the prior, however many trials
it has. With one system this is calibration, with several fusion.

`choose_fusion` also copes with uninformative systems. Its weights are not negative, because a system whose scores are
inverted for a few speakers need not be inverted for others. It chooses the ridge and the systems in a cross-validation
over folds of speakers:

1. The ridge is the one with the smallest cost over the folds, with all systems.
2. The system whose removal costs least is removed, repeatedly, while that cost is less than two of its standard errors
   over speakers: an uninformative system has weight 0.
3. If a single calibrated system costs less than the remaining fusion, it is used alone.

The cost is Cllr [2]_, in bits.

References
----------
.. [1] N. Brümmer et al., "Fusion of heterogeneous speaker recognition systems in the STBU submission for the NIST
   speaker recognition evaluation 2006", IEEE Transactions on Audio, Speech and Language Processing 15, 2007.
.. [2] N. Brümmer and J. du Preez, "Application-independent evaluation of speaker detection", Computer Speech and
   Language 20, 2006.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.trials import (
    Missing,
    TrialSpeakers,
    by_class,
    check_classes,
    check_index,
    floats_of,
    truth_of,
)
from spkbase.errors import DataError, errors_of, few
from spkbase.files import load_json, write_json
from spkbase.rounding import is_constant
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

logger = logging.getLogger(__name__)

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Ridges to choose from."""

_FORMAT = "spkver affine calibration"
_VERSION = 1
_MAX_STEPS = 100

# Newton's decrement, relative to the loss, below which the loss falls only by rounding; the squared error of
# the weights is of this order before the last step, and of its square after it
_CONVERGED = 1e-14

_ERRORS = 2.0  # standard errors: one in 40 uninformative systems is kept
_TOLERANCE = 1e-12  # relative tolerance of the minimum
_MAX_STEPS_OF_CHOSEN_FUSION = 2000
_DOUBT = "are the scores reversed (distances), or uninformative?"


@one_line
@dataclass(frozen=True)
class Affine:
    """A trained calibration (one weight) or fusion (several).

    Parameters
    ----------
    weights : tuple of float, length K
        Factor of each system's score.
    offset : float
        Added to the sum.
    prior : float
        Target prior that it was trained for.
    names : tuple of str, length K, optional
        Names of the systems.
    """

    weights: tuple[float, ...]
    offset: float
    prior: float
    names: tuple[str, ...] = ()

    def __call__(self, scores: ArrayLike) -> np.ndarray:
        """Calibrate scores; see `apply_affine`."""
        return apply_affine(self, scores)


@one_blas_thread()
def train_affine(
    target: Any,
    nontarget: Any = None,
    labels: Any = None,
    *,
    prior: float = 0.5,
    ridge: float = 0.0,
    names: tuple[str, ...] = (),
    missing: Missing = "error",
) -> Affine:
    """Train a calibration or fusion.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) or (n_target, K), and the same for nontarget trials
        Finite scores, one column for each system to fuse; or `Scores` and `Key`; or as in `evaluation.trials.by_class`.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), optional
        The class of each score, or of each row, if the first argument holds all scores.
    prior : float
        Target prior to train for, strictly between 0 and 1.
    ridge : float
        Penalty on half the squared weights (of scores scaled to unit variance); 0 for none. Above 0 it keeps the
        weights finite where the scores separate the classes without error.
    names : tuple of str, optional
        Names of the systems, kept with the result; by default the columns of data frames.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.

    Raises
    ------
    DataError
        If a class is empty, a score is infinite or NaN, shapes or options do not fit, the scores separate the classes
        without error and `ridge` is 0, or a system gives every trial the same score.

    Examples
    --------
    >>> affine = train_affine([2.0, 1.0, -1.0], [-2.0, -1.0, 1.0])
    >>> round(affine.weights[0], 3), abs(round(affine.offset, 3))
    (0.756, 0.0)
    """
    if labels is not None and np.ndim(target) == 2:
        if hasattr(target, "columns") and not names:
            names = tuple(map(str, target.columns))
        target, nontarget = _rows_by_class(target, labels)
    elif np.ndim(target) < 2 or nontarget is None:
        target, nontarget = by_class(target, nontarget, labels, missing=missing)
    if nontarget is None:
        raise DataError("expected scores of both classes", remedy="give both, or labels=")
    if {np.shape(target)[1:], np.shape(nontarget)[1:]} <= {(), (1,)}:  # scores of one system
        check_classes(np.ravel(target), np.ravel(nontarget))
    columns = check_index("columns", target=target, nontarget=nontarget)
    if columns is not None and not names:
        names = tuple(map(str, columns))
    affine = fit_affine(target, nontarget, prior=prior, ridge=ridge, names=names)
    warn_of_inversion(affine)
    return affine


def warn_of_inversion(affine: Affine, n_quality: int = 0) -> None:
    """Warn of negative weights of systems; the last columns are quality measures, whose weights may have any sign."""
    scored = affine.weights[: len(affine.weights) - n_quality]
    if min(scored) < 0:
        subject = "the calibration"
        negative = [name for name, weight in zip(affine.names, scored, strict=False) if weight < 0]
        if negative:
            subject += f" of {few(negative)}"
        weights = ", ".join(f"{weight:.3g}" for weight in scored)
        logger.warning("%s has a negative slope: weights %s; " + _DOUBT, subject, weights)


def _rows_by_class(rows: Any, labels: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of target and of nontarget trials."""
    is_target = truth_of(labels)
    scores = floats_of(rows, "scores")
    if len(scores) != len(is_target):
        raise DataError(f"expected a label for each of {len(scores)} rows, got {len(is_target)}")
    return scores[is_target], scores[~is_target]


@one_blas_thread()
def fit_affine(
    target: ArrayLike,
    nontarget: ArrayLike,
    *,
    prior: float,
    ridge: float,
    names: tuple[str, ...] = (),
    start: Affine | None = None,
) -> Affine:
    """Train as `train_affine` does, without its warnings; from a start near the solution in fewer steps."""
    target = _matrix(target, "target", names)
    nontarget = _matrix(nontarget, "nontarget", names)
    if target.shape[1] != nontarget.shape[1]:
        raise DataError(
            f"expected scores of the same systems in both classes, got {target.shape[1]} and {nontarget.shape[1]}"
        )
    if not 0 < prior < 1:
        raise DataError(f"expected a target prior between 0 and 1, got {prior}")
    if not 0 <= ridge < np.inf:
        raise DataError(f"expected a ridge that is finite and not negative, got {ridge}")
    rows = np.concatenate([target, nontarget])
    mean, scale = _spread(rows, names)
    is_target = np.arange(len(rows)) < len(target)
    matrix, signs, shares, penalty, odds = _problem((rows - mean) / scale, is_target, prior, ridge)
    first = np.zeros(rows.shape[1] + 1)
    if start is not None:
        first[:-1] = np.array(start.weights) * scale
        first[-1] = start.offset + np.array(start.weights) @ mean
    solution = _minimise(matrix, signs, shares, penalty, odds, first)
    if not ridge:
        fused = matrix @ solution
        if fused[is_target].min() >= fused[~is_target].max() - 1e-9 * np.ptp(fused):
            text = "the scores separate the classes without error: no finite weights are best"
            raise DataError(text, remedy="give more trials, or a ridge above 0")
    weights = solution[:-1] / scale
    return Affine(
        tuple(weights.tolist()), float(solution[-1] - weights @ mean), float(prior), tuple(names)
    )


@one_blas_thread()
def apply_affine(affine: Affine, scores: ArrayLike) -> np.ndarray:
    """Calibrate or fuse scores.

    Parameters
    ----------
    affine : Affine
        See `train_affine`.
    scores : array_like of float of shape (N,) or (N, K), or a data frame
        Scores; those of a single system may be infinite. Columns that have the names of the systems are taken by name.

    Returns
    -------
    ndarray of float64 of shape (N,)
        Natural LLRs.

    Raises
    ------
    DataError
        If the number of systems differs, infinite scores of several systems contradict each other, or finite scores are
        so large that the result is infinite.
    """
    if affine.names and set(affine.names) <= set(getattr(scores, "columns", [])):
        scores = scores[list(affine.names)]  # type: ignore[call-overload,index]  # a data frame
    scores = floats_of(scores, "scores").astype(np.float64, copy=False)
    columns = scores[:, None] if scores.ndim == 1 else scores
    if columns.ndim != 2 or columns.shape[1] != len(affine.weights):
        raise DataError(
            f"expected scores of {len(affine.weights)} systems, got shape {scores.shape}"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        llr: np.ndarray = columns @ np.array(affine.weights) + affine.offset
    if not np.isfinite(llr[np.isfinite(columns).all(axis=1)]).all():
        largest = np.abs(columns[np.isfinite(columns)]).max()
        raise DataError(
            f"scores of up to {largest:.3g} are too large for these weights",
            remedy="check or scale them",
        )
    if np.isnan(llr).any() and not np.isnan(scores).any():
        raise DataError(
            "infinite scores cancel each other or have weight 0",
            remedy="replace them by finite ones",
        )
    return llr


def cross_validate_affine(
    scores: ArrayLike,
    is_target: ArrayLike,
    speakers: TrialSpeakers,
    *,
    prior: float = 0.5,
    folds: int = 5,
    seed: int = 0,
    ridge: float = 0.0,
    names: tuple[str, ...] = (),
    n_quality: int = 0,
    tell: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Calibrate each trial with a map trained on other speakers only.

    The speakers of models and segments are divided into folds. Trials between two folds (or within one) are calibrated
    with a map trained on the trials of speakers outside these folds.

    Parameters
    ----------
    scores : array_like of float of shape (N,) or (N, K)
        Finite scores, one column for each system to fuse.
    is_target : array_like of bool of shape (N,)
        The truth.
    speakers : TrialSpeakers
        Speaker of the model and of the segment of each trial; see `evaluation.trials.find_speakers`.
    prior : float
        Target prior to train for, strictly between 0 and 1.
    ridge : float
        Penalty on the weights; see `train_affine`.
    folds : int
        Number of folds, at least 3.
    seed : int
        Seed of the assignment of speakers to folds.
    names : tuple of str, optional
        Names of the systems, for errors.
    n_quality : int
        The number of last columns that are quality measures, whose weights may be negative.
    tell : callable, optional
        Called, in place of a warning, with the number of pairs of folds whose calibration has a negative slope, and
        the number of all pairs.

    Returns
    -------
    ndarray of float64 of shape (N,)
        Natural LLRs, in the order of the trials.

    Raises
    ------
    DataError
        If shapes or options do not fit, if there are fewer speakers than folds, or as in `train_affine`.
    """
    check_index(scores=scores, labels=is_target)
    scores = _matrix(scores, "trials'", names)
    _spread(scores, names)  # fails early if no number of folds can help
    is_target = truth_of(is_target)
    if folds < 3:
        raise DataError(
            f"expected at least 3 folds, so that one remains for training when two are tested, got {folds}"
        )
    if len(is_target) != len(scores) or len(speakers) != len(scores):
        raise DataError(f"expected a label and two speakers for each of {len(scores)} trials")
    both = np.concatenate(
        [speakers.names[speakers.models], speakers.names[speakers.segments]]
    ).astype(str)
    people, codes = np.unique(both, return_inverse=True)
    if len(people) < folds:
        raise DataError(
            f"expected at least as many speakers as folds, got {len(people)} and {folds}"
        )
    fold = np.empty(len(people), np.int64)
    fold[np.random.default_rng(seed).permutation(len(people))] = np.arange(len(people)) % folds
    models, segments = fold[codes].reshape(2, -1)
    result = np.empty(len(scores))
    inverted = []
    for pair in combinations_with_replacement(range(folds), 2):
        tested = (np.minimum(models, segments) == pair[0]) & (
            np.maximum(models, segments) == pair[1]
        )
        if not tested.any():
            continue
        trained = ~(np.isin(models, pair) | np.isin(segments, pair))
        tested_folds = " and ".join(str(number + 1) for number in sorted({*pair}))
        with errors_of(
            None, before=f"without the speakers of fold {tested_folds}: ", remedy="use fewer folds"
        ):
            parts = scores[trained & is_target], scores[trained & ~is_target]
            affine = fit_affine(*parts, prior=prior, ridge=ridge, names=names)
        result[tested] = apply_affine(affine, scores[tested])
        inverted.append(min(affine.weights[: len(affine.weights) - n_quality]) < 0)
    if tell is not None:
        tell(sum(inverted), len(inverted))
    elif any(inverted):
        logger.warning(
            "the calibration has a negative slope for %d of %d pairs of folds; " + _DOUBT,
            sum(inverted),
            len(inverted),
        )
    return result


def save_affine(
    path: str | Path, affine: Affine, quality: Mapping[str, tuple[float, float]] | None = None
) -> None:
    """Write a calibration or fusion as JSON, atomically and with all digits.

    Parameters
    ----------
    path : str or Path
        The file.
    affine : Affine
        See `train_affine`.
    quality : mapping of str to tuple of float, optional
        The last columns, if they are quality measures: the smallest and the largest value of each in training.
    """
    content: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **affine.__dict__}
    if quality:
        content["quality"] = quality
    write_json(path, content)


def load_affine(path: str | Path) -> Affine:
    """Read a calibration or fusion that `save_affine` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    DataError
        With the file, if it cannot be read, needs quality measures, or holds something else.
    """
    affine, quality = read_affine(path)
    if quality:
        raise DataError(
            "expected no quality measures", file=path, remedy="load_calibration reads it"
        )
    return affine


def read_affine(path: str | Path) -> tuple[Affine, dict[str, tuple[float, float]]]:
    """Return the map and the ranges of quality measures that `save_affine` wrote; errors as in `load_affine`."""
    content = load_json(path)
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        weights = tuple(map(float, content["weights"]))
        names = tuple(map(str, content["names"]))
        affine = Affine(weights, float(content["offset"]), float(content["prior"]), names)
        quality = {}
        for column, (low, high) in content.get("quality", {}).items():
            quality[str(column)] = (float(low), float(high))
        known = (content["format"], content["version"]) == (_FORMAT, _VERSION)
        fits = names[len(names) - len(quality) :] == tuple(quality) and len(quality) < len(weights)
        numbers = [*weights, affine.offset]
        if known and fits and np.isfinite(numbers).all() and 0 < affine.prior < 1:
            return affine, quality
    text = (
        f"expected '{_FORMAT}' of version {_VERSION}: finite weights and offset, a prior and names"
    )
    raise DataError(text, file=path, remedy="write it with the command calibrate or fuse")


@one_line
@dataclass(frozen=True)
class ChosenFusion:
    """A fusion and how it was chosen.

    Attributes
    ----------
    affine : Affine
        A weight for each system; 0 for removed systems.
    ridge : float
    llr : ndarray of shape (N,)
        Log-likelihood ratios of the training trials, each with weights trained on other folds.
    cllr : float [bit]
        Cllr of `llr`.
    alone : dict of str to float [bit]
        Cllr of each single system after calibration.
    tried : dict of float to float [bit]
        Cllr of the fusion of all systems, by ridge.
    """

    affine: Affine
    ridge: float
    llr: NDArray[np.float64]
    cllr: float
    alone: dict[str, float]
    tried: dict[float, float]


def cllr_of_trials(llr: ArrayLike, is_target: ArrayLike) -> NDArray[np.float64]:
    """Return the contribution of each trial to Cllr: ``log2(1 + exp(-llr)) / (2 n_target)``, likewise for nontargets.

    Examples
    --------
    >>> cllr_of_trials([0.0, 0.0], [True, False])
    array([0.5, 0.5])
    """
    llr = np.asarray(llr, np.float64)
    is_target = truth_of(is_target)
    counts = np.where(is_target, is_target.sum(), (~is_target).sum())
    costs: NDArray[np.float64] = (
        np.logaddexp(0.0, np.where(is_target, -llr, llr)) / np.log(2) / 2 / counts
    )
    return costs


@one_blas_thread()
def train_nonnegative(scores: ArrayLike, is_target: ArrayLike, *, ridge: float = 0.0) -> Affine:
    """Train a fusion whose weights are not negative, for a target prior of 0.5.

    Parameters
    ----------
    scores : array_like of float of shape (N, K)
        Finite scores.
    is_target : array_like of bool of shape (N,)
    ridge : float
        Penalty on half the squared weights, of scores scaled to unit variance.

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

    check_index(scores=scores, labels=is_target)
    rows = _matrix(scores, "trials'")
    is_target = truth_of(is_target)
    if not is_target.any() or is_target.all():
        raise DataError("fusion needs trials of both classes", remedy="give more speakers")
    mean = rows.mean(axis=0)
    scale = rows.std(axis=0)
    usable = ~is_constant(rows) & (scale > 0)
    scale = np.where(usable, scale, 1.0)
    rows, signs, shares, penalty, log_odds = _problem((rows - mean) / scale, is_target, 0.5, ridge)

    def loss(solution: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        margins = signs * (rows @ solution + log_odds)
        wrong = np.exp(-np.logaddexp(0.0, margins))  # posterior probability of the wrong class
        value = shares @ np.logaddexp(0.0, -margins) + penalty @ solution**2 / 2
        return float(value), rows.T @ (-signs * shares * wrong) + penalty * solution

    bounds: list[Any] = [(0.0, None if is_usable else 0.0) for is_usable in usable]
    bounds.append((None, None))
    options: Any = {"maxiter": _MAX_STEPS_OF_CHOSEN_FUSION, "ftol": _TOLERANCE, "gtol": 1e-10}
    optimum = minimize(
        loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    weights = optimum.x[:-1] / scale
    return Affine(tuple(weights.tolist()), float(optimum.x[-1] - weights @ mean), 0.5)


def choose_fusion(
    scores: ArrayLike,
    is_target: ArrayLike,
    folds: ArrayLike,
    speakers: ArrayLike,
    names: Sequence[str],
) -> ChosenFusion:
    """Train a fusion, choosing the ridge and the systems by cross-validation over folds of speakers.

    Parameters
    ----------
    scores : array_like of float of shape (N, K)
        Finite scores of K systems.
    is_target : array_like of bool of shape (N,)
    folds : array_like of int of shape (N,)
        Fold of each trial, at least two; no speaker has trials in two of them.
    speakers : array_like of shape (N,)
        The speaker of each trial's model; costs are compared over speakers.
    names : sequence of str, length K

    Raises
    ------
    DataError
        If there is only one fold, or a fold lacks a class.
    """
    check_index(scores=scores, labels=is_target, folds=folds, speakers=speakers)
    scores = _matrix(scores, "trials'")
    is_target = truth_of(is_target)
    folds = np.asarray(folds)
    if len(np.unique(folds)) < 2:
        raise DataError(
            "fusion needs two folds of speakers, so that its weights are tested on others"
        )
    codes = np.unique(np.asarray(speakers).astype(str), return_inverse=True)[1]

    def cost(columns: list[int], ridge: float) -> NDArray[np.float64]:
        return cllr_of_trials(_crossed(scores[:, columns], is_target, folds, ridge), is_target)

    kept = list(range(len(names)))
    tried = {ridge: float(cost(kept, ridge).sum()) for ridge in RIDGES}
    ridge = min(tried, key=lambda value: tried[value])
    alone_best = {}
    for system, name in enumerate(names):
        alone_best[name] = min(float(cost([system], value).sum()) for value in RIDGES)
    current = cost(kept, ridge)
    while len(kept) > 1:
        without = {}
        for system in kept:
            without[system] = cost([other for other in kept if other != system], ridge)
        least = min(kept, key=lambda system: float(without[system].sum()))
        by_speaker = np.bincount(codes, without[least] - current)
        if len(by_speaker) > 1:
            error = np.sqrt(len(by_speaker)) * by_speaker.std(ddof=1)
        else:
            error = 0.0
        if float((without[least] - current).sum()) >= _ERRORS * error:
            break
        kept.remove(least)
        current = without[least]
    best = min(range(len(names)), key=lambda system: alone_best[names[system]])
    if alone_best[names[best]] < float(current.sum()):
        kept = [best]
        ridge = min(RIDGES, key=lambda value: float(cost(kept, value).sum()))
    trained = train_nonnegative(scores[:, kept], is_target, ridge=ridge)
    weights = np.zeros(len(names))
    weights[kept] = trained.weights
    llr = _crossed(scores[:, kept], is_target, folds, ridge)
    affine = Affine(tuple(weights.tolist()), trained.offset, trained.prior, tuple(names))
    return ChosenFusion(
        affine, ridge, llr, float(cllr_of_trials(llr, is_target).sum()), alone_best, tried
    )


def _spread(rows: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each system's scores, which must differ."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = rows.mean(axis=0)
        scale = rows.std(axis=0)
    finite = np.isfinite(mean) & np.isfinite(scale)
    if not finite.all():
        number = int(np.argmin(finite))
        largest = np.abs(rows[:, number]).max()
        text = f"{_named(names, number, rows)} has scores of up to {largest:.3g}, too large to learn from"
        raise DataError(text, remedy="check how they were made, or scale them")
    varies = ~is_constant(rows) & (scale > 0)
    if not varies.all():
        name = _named(names, int(np.argmin(varies)), rows)
        raise DataError(f"{name} gives every trial the same score: it cannot be calibrated")
    return mean, scale


def _named(names: Sequence[str], number: int, rows: np.ndarray) -> str:
    if names:
        return names[number]
    if rows.shape[1] == 1:
        return "the system"
    return f"system {number}"


def _matrix(scores: ArrayLike, name: str, names: Sequence[str] = ()) -> np.ndarray:
    scores = floats_of(scores, f"{name} scores").astype(np.float64, copy=False)
    columns = scores[:, None] if scores.ndim == 1 else scores
    if columns.ndim != 2 or not columns.shape[1]:
        raise DataError(f"expected {name} scores of shape (N,) or (N, systems), got {scores.shape}")
    if not len(columns):
        raise DataError(
            f"expected {name} scores, got none", remedy="training needs trials of both classes"
        )
    bad = ~np.isfinite(columns)
    if bad.any():
        system = int(bad.any(axis=0).argmax())  # the first with such scores
        n_bad = int(bad[:, system].sum())
        whose = _named(names, system, columns)
        remedy = "training needs finite scores: replace or drop these trials"
        raise DataError(
            f"expected finite {name} scores, got {n_bad} infinite or NaN of {whose}", remedy=remedy
        )
    return columns


def _problem(
    rows: np.ndarray, is_target: np.ndarray, prior: float, ridge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the terms of the loss: rows with a column of ones, signs, trial weights, penalties, and prior log odds."""
    shares = np.where(is_target, prior / is_target.sum(), (1 - prior) / (~is_target).sum())
    penalty = np.append(np.full(rows.shape[1], ridge), 0.0)
    rows = np.column_stack([rows, np.ones(len(rows))])
    log_odds = float(np.log(prior) - np.log1p(-prior))
    return rows, np.where(is_target, 1.0, -1.0), shares, penalty, log_odds


def _minimise(
    rows: np.ndarray,
    signs: np.ndarray,
    shares: np.ndarray,
    penalty: np.ndarray,
    log_odds: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Minimise the weighted logistic loss by Newton steps, halved until the loss falls; the default start is 0."""
    solution = np.zeros(rows.shape[1])
    if start is not None:
        solution = start.copy()

    def loss(candidate: np.ndarray) -> float:
        return float(
            shares @ np.logaddexp(0.0, -signs * (rows @ candidate + log_odds))
            + penalty @ candidate**2 / 2
        )

    current = loss(solution)
    for _ in range(_MAX_STEPS):
        margins = np.clip(signs * (rows @ solution + log_odds), -700, 700)
        wrong = 1 / (1 + np.exp(margins))  # posterior probability of the wrong class
        gradient = rows.T @ (-signs * shares * wrong) + penalty * solution
        hessian = (rows * (shares * wrong * (1 - wrong))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        if gradient @ step <= _CONVERGED * current:
            solution -= step  # rounding hides the gain in the loss, but not in the gradient
            break
        size = 1.0
        while size > 1e-10 and loss(solution - size * step) > current:
            size /= 2
        solution = solution - size * step
        current = loss(solution)
        if size <= 1e-10:
            break
    return solution


def _crossed(
    scores: NDArray[Any], is_target: NDArray[Any], folds: NDArray[Any], ridge: float
) -> NDArray[np.float64]:
    """LLRs of each fold from a map trained on the other folds."""
    llr = np.empty(len(scores))
    for fold in np.unique(folds):
        tested = folds == fold
        llr[tested] = apply_affine(
            train_nonnegative(scores[~tested], is_target[~tested], ridge=ridge), scores[tested]
        )
    return llr
