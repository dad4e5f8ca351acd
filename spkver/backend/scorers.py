"""Scorers of a chain: each has a model, learnt from training vectors, and scores enrolled sessions against tests.

A score function takes the model, the enrolled `Sessions`, tested vectors (T, R), of each of n trials the codes of model
and segment, and the values of the step's parameters; it returns n scores, the higher the more alike.

**The cosine of vectors that are adapted to the trials at hand: how a domain shifts and spreads them is read
off these.**

An anonymiser, a channel or another language moves all vectors, and spreads those of a speaker in directions of its own.
Both can be seen without knowing who speaks in a trial: each side has its own mean, and the enrolled vectors of a model
differ by what is not the speaker.

**Scores of how close a tested vector is to the mean of a model's: the cosine, and Mahalanobis' distance.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, row_norms, to_unit
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkbase.work import Work, one_blas_thread
from spkver.backend.kaldi_plda import adapt_plda_unsupervised, kaldi_plda_scores, plda_from_kaldi, plda_to_kaldi
from spkver.backend.plda import (
    Plda,
    PldaConfig,
    Sessions,
    TwoCovariance,
    checked_vectors,
    fit_plda,
    lower_factor,
    plda_scores,
    two_covariance_scores,
)
from spkver.backend.scoring import check_codes, pair_products, score_trials
from spkver.backend.svm import SvmConfig, train_svms
from spkver.backend.transforms import regularised, within_covariance
from spkver.vectors import Supervectors

_SAME = 1e-12  # of the longest enrolled vector: what is left of a vector without a mean is rounding


@one_blas_thread()
def adapted_cosine_scores(
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    prior: float = 1.0,
    whole_list: bool = True,
) -> NDArray[np.float64]:
    """Return the cosines of vectors without the mean of their side and without what spreads other models' sessions.

    Means and spread leave out what is scored (leave-one-out): for the trial of model k and tested vector t, with the
    means m_j of the M models over their sessions e, and T tested vectors,

        1. e' = e - e0,  e0 = sum_{j != k} m_j / (M - 1);  t' = t - t0,  t0 = (sum_{s != t} s + e0) / T;  both scaled
           to length 1. A single test: t0 = e0
        2. W = (S + p R w I) / (n + p R), with S = sum (e' - m'_j) (e' - m'_j)^T over the N sessions of the M - 1 models
           j != k, n = N - (M - 1), and w = trace(S) / (n R): the mean variance in p R further sessions; W = I where
           sessions do not differ
        3. the cosine of the mean m'_k and t' after W^(-1/2)

    Of two models each is centred by the mean of the other, and W is that of the other's sessions.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models.
    tests : ndarray of shape (T, R)
        Each takes part in the mean of the others, whether a trial has it or not, unless `whole_list` is false.
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    prior : float
        p: the fewer sessions there are for the R dimensions, the nearer is W to the identity.
    whole_list : bool
        Whether the mean of the tested vectors is used. Without it the score of a trial is the same to the bit
        whatever else is tested; in either case it depends on all models.

    Returns
    -------
    ndarray of float64 of shape (n,)
        -1 to 1.

    Raises
    ------
    DataError
        If there is one model alone, dimensions differ, a vector is not finite, a code is out of its range, or nothing
        is left of a vector or of a model's mean without the mean of its side.

    References
    ----------
    A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
    Interspeech 2006; here of the enrolled speakers themselves.

    Examples
    --------
    Two recordings of each of three speakers, who differ in the first two numbers. All that is tested lies elsewhere.

    >>> both = Sessions([[2, 0, 1], [2, 0, -1], [0, 2, 1], [0, 2, -1], [2, 2, 1], [2, 2, -1]], [0, 0, 1, 1, 2, 2])
    >>> tests = [[6, 2, 4], [6, 2, 2], [4, 4, 4], [4, 4, 2], [6, 4, 4], [6, 4, 2]]
    >>> models, segments = [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3]
    >>> adapted_cosine_scores(both, tests, models, segments).round(2)
    array([ 0.84,  0.91, -0.78, -0.93, -0.85, -0.95,  0.78,  0.89])
    >>> adapted_cosine_scores(both, tests, models, segments, whole_list=False).round(2)
    array([ 0.41,  0.44, -0.1 , -0.12, -0.66, -0.73, -0.1 , -0.12])
    """
    tests = checked_vectors(tests, "tested vectors", sessions.dimension)
    models, segments = np.asarray(models), np.asarray(segments)
    check_codes(models, len(sessions.counts), "models")
    check_codes(segments, len(tests), "segments")
    if not prior > 0:
        raise ConfigError(f"prior is {prior:g}: expected a number above 0")
    if len(sessions.counts) < 2:
        text = "adapted scores take off the mean of the other models, and there is one model"
        raise DataError(text, remedy="use cosine, or give trials of more models")
    origin = sessions.means.mean(axis=0)  # less is lost by rounding near it; no score depends on it
    enrolled, tested = sessions.vectors - origin, tests - origin
    share = 1.0  # of e0 in t0
    if whole_list:  # t - t0 = (T + 1) / T (t - (s + e0) / (T + 1)), s the sum of all tested vectors: t itself drops out
        share = 1 / (len(tests) + 1)
        tested -= share * tested.sum(axis=0)
    beyond = np.zeros(len(tests))  # squared length outside the space of the enrolled, where W is the identity
    if len(enrolled) < sessions.dimension:
        basis, coordinates = np.linalg.qr(enrolled.T)
        inside = _products(tested, basis, whole_list)
        beyond = ((tested - _products(inside, basis.T, whole_list)) ** 2).sum(axis=1)
        enrolled, tested = coordinates.T, inside
    least = _SAME * float(row_norms(sessions.vectors).max())
    scores = np.empty(len(models))
    for model in np.unique(models):
        trials, own = np.flatnonzero(models == model), sessions.models == model
        others = Sessions(enrolled[~own], sessions.models[~own] - (sessions.models[~own] > model))
        centre = others.means.mean(axis=0)
        root = _root(others, centre, prior, least)
        moved = enrolled[own] - centre
        mean = to_unit(moved, _lengths(moved, 0.0, least, "enrolled vector")).mean(axis=0)[None]
        _lengths(mean, 0.0, _SAME, "mean of a model")
        mean = mean @ root
        rows = segments[trials]
        moved = tested[rows] - share * centre
        _lengths(moved, beyond[rows], least, "tested vector")
        moved = _products(moved, root, whole_list)
        scores[trials] = (moved * mean).sum(axis=1) / np.linalg.norm(mean)
        scores[trials] /= _lengths(moved, beyond[rows], 0.0, "tested vector")
    return np.clip(scores, -1.0, 1.0)


def _root(others: Sessions, centre: NDArray[np.float64], prior: float, least: float) -> NDArray[np.float64]:
    """Return a matrix A with A A^T = W^(-1) up to a scale, so that cosines after it are those after W^(-1/2)."""
    moved = others.vectors - centre
    unit = Sessions(to_unit(moved, np.maximum(row_norms(moved), least)), others.models)
    differences = unit.vectors - unit.means[unit.models]
    free, total = len(differences) - len(unit.counts), float((differences**2).sum())
    matrix = np.eye(unit.dimension)  # W is proportional to I + S / (p trace(S) / n)
    if free > 0 and total > _SAME**2 * len(differences):
        matrix += differences.T @ differences * (free / (prior * total))
    return np.linalg.inv(np.linalg.cholesky(matrix)).T


def _products(vectors: NDArray[np.float64], matrix: NDArray[np.float64], together: bool) -> NDArray[np.float64]:
    """Return vectors @ matrix, or each row on its own: its bits are then the same whatever the others are."""
    return vectors @ matrix if together else np.matmul(vectors[:, None, :], matrix)[:, 0]


def _lengths(vectors: NDArray, beyond: NDArray | float, least: float, what: str) -> NDArray[np.float64]:
    """Return the lengths of vectors with squares of further coordinates; DataError if one is not above `least`."""
    lengths: NDArray[np.float64] = np.sqrt((vectors**2).sum(axis=1) + beyond)
    if gone := int((~((lengths > least) & np.isfinite(lengths))).sum()):
        text = f"nothing is left of {gone} of {len(vectors)} {what}s without the mean of the other models"
        raise DataError(text, remedy="correct the vectors, or use cosine")
    return lengths


def cosine_of_sessions(sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray) -> NDArray[np.float64]:
    """Return the cosine of each trial's tested vector and the mean of its model's vectors.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of the models; averaged as they are.
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.

    Returns
    -------
    ndarray of float64 of shape (n,)
        -1 to 1.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite, one of those that are compared has no length, or a code is out of
        its range.
    """
    tests = checked_vectors(tests, "tested vectors", sessions.dimension)
    left = _unit(sessions.means, "mean of a model")
    return np.clip(pair_products(left, _unit(tests, "tested vector"), models, segments), -1.0, 1.0)


def _unit(vectors: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    norms = row_norms(vectors)
    check_norms(norms, np.array([f"row {row}" for row in range(len(vectors))], object), what=what)
    return vectors / norms[:, None]


def mahalanobis_scores(
    matrix: NDArray, sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray
) -> NDArray[np.float64]:
    """Return -(a - b)' M (a - b) / 2 of each trial, a the mean of its model's vectors and b the tested one.

    Parameters
    ----------
    matrix : ndarray of shape (R, R)
        M, symmetric and positive definite: the inverse of the covariance within speakers.
    sessions : Sessions
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)

    Returns
    -------
    ndarray of float64 of shape (n,)
        0 or less.

    Raises
    ------
    DataError
        If dimensions differ, M is not positive definite, a vector is not finite, or a code is out of its range.

    References
    ----------
    P.-M. Bousquet, D. Matrouf and J.-F. Bonastre, "Intersession compensation and scoring methods in the i-vectors space
    for speaker recognition", Interspeech 2011.
    """
    matrix = np.asarray(matrix, np.float64)
    if matrix.shape != (sessions.dimension,) * 2 or not np.isfinite(matrix).all():
        raise DataError(
            f"expected a finite Mahalanobis matrix of shape {(sessions.dimension,) * 2}, got {matrix.shape}",
            remedy="use one that was estimated on such vectors",
        )
    tests = checked_vectors(tests, "tested vectors", sessions.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        factor = lower_factor(matrix, "the Mahalanobis matrix")
        # distances from a point in the middle: less is lost where the differences are taken by a product
        middle = tests.mean(axis=0)
        enrolled, tested = (sessions.means - middle) @ factor, (tests - middle) @ factor
        ones = np.ones((max(len(enrolled), len(tested)), 1))
        left = np.hstack([enrolled, -0.5 * (enrolled**2).sum(axis=1, keepdims=True), ones[: len(enrolled)]])
        right = np.hstack([tested, ones[: len(tested)], -0.5 * (tested**2).sum(axis=1, keepdims=True)])
    return np.minimum(pair_products(left, right, models, segments), 0.0)


Codes = NDArray[np.integer]
Values = Mapping[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scorer:
    """How a step of a chain scores.

    Attributes
    ----------
    model : type
        Dataclass of arrays: what is learnt, and what a file holds.
    score : callable
        See the module.
    dimension : callable
        Gives the dimensions R that a model is for; None where it is for any.
    needs_direction : bool
        Means of sessions and tested vectors must not be 0.
    of_list : {"", "models", "models and segments"}
        What of the list of trials a score depends on besides its own two sides.
    """

    model: type
    score: Callable[[Any, Sessions, Floats, Codes, Codes, Values], Floats]
    dimension: Callable[[Any], int | None]
    needs_direction: bool = False
    of_list: Literal["", "models", "models and segments"] = ""


@dataclass(frozen=True)
class Cosine:
    """Nothing is learnt."""


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """The inverse of the covariance within speakers.

    Attributes
    ----------
    matrix : ndarray of float64 of shape (R, R)
    """

    matrix: Floats


@dataclass(frozen=True, eq=False)
class SvmBackground:
    """What machines tell a model's sessions from.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (B, R)
    """

    vectors: Floats


def fit_mahalanobis(vectors: Floats, codes: Codes, shrink: float | None = None) -> Mahalanobis:
    """Return the inverse of the covariance within speakers, shrunk where it is singular (`moments.regularised`)."""
    within = within_covariance(vectors, codes)
    n_free, what = len(codes) - int(codes.max()) - 1, "covariance within speakers"
    return Mahalanobis(np.asarray(np.linalg.inv(regularised(within, n_free, shrink=shrink, what=what)), np.float64))


def fit_plda_model(vectors: Floats, codes: Codes, adapt: Floats | None, values: Values) -> Plda:
    """Return a PLDA by the values of the step; see `spkver.backend.PldaConfig` and `adapt_plda_unsupervised`."""
    config = PldaConfig(
        rank=values["rank"],
        channel_rank=values["channel_rank"],
        residual=values["residual"],
        iterations=values["rounds"],
        minimum_divergence="sidekit" if values["convention"] == "sidekit" else "lower",
        prior=values["prior"],
    )
    plda = fit_plda(vectors, codes, config)[0]
    if values["adapt"] == "none" or adapt is None:
        return plda
    return plda_from_kaldi(adapt_plda_unsupervised(plda_to_kaldi(plda), adapt))


def score_cosine(
    model: Cosine, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return cosines with the means of the models' sessions."""
    return cosine_of_sessions(sessions, tests, models, segments)


def score_adapted_cosine(
    model: Cosine, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values,
    whole_list: bool = True,
) -> Floats:  # fmt: skip
    """Return cosines after adaptation to the list's own sessions and, of a whole list, its tests."""
    return adapted_cosine_scores(sessions, tests, models, segments, prior=values["prior"], whole_list=whole_list)


def score_mahalanobis(
    model: Mahalanobis, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return half the squared distances from the means of the models' sessions, negated."""
    return mahalanobis_scores(model.matrix, sessions, tests, models, segments)


def score_two_covariance(
    model: TwoCovariance, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return log-likelihood ratios of the two-covariance model."""
    return two_covariance_scores(model, sessions, tests, models, segments, sessions_as=values["sessions"])


def score_plda(
    model: Plda, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return log-likelihood ratios of the PLDA, by the book or as Kaldi scores."""
    if values["length"] != "none":
        options = {"sessions_as": values["sessions"], "length": values["length"]}
        return kaldi_plda_scores(plda_to_kaldi(model), sessions, tests, models, segments, **options)
    return plda_scores(model, sessions, tests, models, segments, sessions_as=values["sessions"])


def score_svm(
    model: SvmBackground, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return scores by a machine for each model, which is trained on all its sessions."""
    work, config = Work(jobs=1), SvmConfig(**values)
    sizes = len(sessions.counts), len(tests)
    names, tested = (np.array([str(code) for code in range(size)], object) for size in sizes)
    enrolled = names[sessions.models]
    try:
        trained = train_svms(Supervectors(enrolled, enrolled, sessions.vectors), model.vectors, config, work=work)
    except DataError:
        raise
    except ValueError as error:  # libsvm keeps its kernel in float32
        text = f"the support vector machines have no finite solution: {error}"
        raise DataError(text, remedy="put the step length before svm") from error
    trials = Trials(names, tested, np.asarray(models, np.int32), np.asarray(segments, np.int32))
    scores: Floats = score_trials(trained, Supervectors(tested, tested, tests), trials, work=work).values
    return scores
