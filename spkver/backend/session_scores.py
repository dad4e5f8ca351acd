"""Formulas of scores by enrolled sessions: cosines, adapted cosines, PLDA of the enrolled, Mahalanobis distances.

A scorer's formula takes enrolled `Sessions`, tested vectors (T, R), and the codes of the model and the segment of each
of n trials; it returns n scores, the higher the more alike. Its model is what it has learnt from training vectors.

The adapted cosine learns from the list of trials how a domain shifts and spreads vectors: an anonymiser, a channel or
another language shifts all vectors, and spreads those of a speaker in certain directions. Both can be seen without
knowing who speaks in a trial: each side has a mean, and the enrolled vectors of a model show the variation that is not
due to the speaker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, row_norms, to_unit
from spkbase.arrays import Floats
from spkbase.errors import ConfigError, DataError
from spkbase.work import ALL_CORES, one_blas_thread, share_out
from spkver.backend import plda
from spkver.backend.plda import Sessions
from spkver.backend.scoring import check_codes, pair_products

# rows of a matrix product, fixed so that no row depends on the others; a multiple of the tiles of BLAS kernels
_ROWS = 48
_SAME = 1e-12  # a centred vector shorter than this fraction of the longest enrolled one is a rounding error


def adapted_cosine_scores(
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    prior: float = 1.0,
    whole_list: bool = True,
) -> Floats:
    """Return the cosines of vectors, centred on each side and whitened by the covariance within the other models.

    Means and covariance leave out the trial's own model and test (leave-one-out): for the trial of model k and tested
    vector t, with the means m_j of the M models over their sessions e, and T tested vectors,

        1. e' = e - e0,  e0 = sum_{j != k} m_j / (M - 1);  t' = t - t0,  t0 = (sum_{s != t} s + e0) / T;  both scaled
           to length 1. A single test: t0 = e0
        2. W = (S + p R w I) / (n + p R), with S = sum (e' - m'_j) (e' - m'_j)^T over the N sessions of the M - 1 models
           j != k, n = N - (M - 1), and w = trace(S) / (n R): the mean variance in p R further sessions; W = I where
           sessions do not differ
        3. the cosine of the mean m'_k and t' after W^(-1/2)

    With two models, each is centred by the mean of the other, and W is that of the other's sessions.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models.
    tests : ndarray of shape (T, R)
        Tested vectors. Each contributes to the mean for the others, even if no trial uses it, unless `whole_list` is
        false.
    models, segments : ndarray of int of shape (n,)
        The code of each trial's model, and the row of its tested vector.
    prior : float
        p: weight of the identity in W, which counts more the fewer sessions there are for the R dimensions.
    whole_list : bool
        Whether the mean of the tested vectors is used. Without it the score of a trial does not depend, to the bit, on
        what else is tested; in either case it depends on all models.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Scores from -1 to 1.

    Raises
    ------
    DataError
        If there is only one model, dimensions differ, a vector is not finite, a code is out of its range, or nothing
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
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    models = check_codes(models, len(sessions.counts), "models")
    segments = check_codes(segments, len(tests), "segments")
    if not prior > 0:
        raise ConfigError(f"prior is {prior:g}: expected a number above 0")
    if len(sessions.counts) < 2:
        text = "adapted scores subtract the mean of the other models, and there is one model"
        raise DataError(text, remedy="use cosine, or give trials of more models")
    scores = np.empty(len(models))
    with one_blas_thread():
        # subtract it first to reduce rounding errors; scores do not depend on it
        origin = sessions.means.mean(axis=0)
        enrolled = sessions.vectors - origin
        tested = tests - origin
        share = 1.0  # weight of e0 in t0
        # t - t0 = (T + 1) / T (t - (s + e0) / (T + 1)), s the sum of all tested vectors: t drops out
        if whole_list:
            share = 1 / (len(tests) + 1)
            tested -= share * tested.sum(axis=0)
        # squared length outside the space of the enrolled, where W is the identity
        beyond = np.zeros(len(tests))
        if len(enrolled) < sessions.dimension:
            basis, coordinates = np.linalg.qr(enrolled.T)
            inside = _by_rows(lambda rows: rows @ basis, tested, whole_list)
            outside = tested - _by_rows(lambda rows: rows @ basis.T, inside, whole_list)
            beyond = (outside**2).sum(axis=1)
            enrolled = coordinates.T
            tested = inside
        least = _SAME * float(row_norms(sessions.vectors).max())
        centred = Sessions(enrolled, sessions.models)

        def score_model(model: int) -> None:
            trials = np.flatnonzero(models == model)
            rows = segments[trials]
            scores[trials] = _scores_of_model(
                centred,
                model,
                tested[rows],
                beyond[rows],
                share=share,
                prior=prior,
                least=least,
                together=whole_list,
            )

        share_out(ALL_CORES, score_model, np.unique(models).tolist())
    return np.clip(scores, -1.0, 1.0)


def cosine_of_sessions(
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    sessions_as: str = "mean",
) -> Floats:
    """Return the cosine of each trial's tested vector and the mean of its model's vectors.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of the models; averaged without scaling.
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
        The code of each trial's model, and the row of its tested vector.
    sessions_as : {"mean", "maximum"}
        "maximum": the largest cosine with one of the model's vectors instead.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Scores from -1 to 1.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite, a compared vector has no length, or a code is out of its range.
    """
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    tested = _unit(tests, "tested vector")
    if sessions_as == "mean":
        means = _unit(sessions.means, "mean of a model")
        return np.clip(pair_products(means, tested, models, segments), -1.0, 1.0)
    models = check_codes(models, len(sessions.counts), "models")
    segments = check_codes(segments, len(tests), "segments")
    enrolled = _unit(sessions.vectors, "enrolled vector")
    scores = np.empty(len(models))
    for model in np.unique(models):
        trials = models == model
        own = sessions.models == model
        scores[trials] = (enrolled[own] @ tested[segments[trials]].T).max(axis=0)
    return np.clip(scores, -1.0, 1.0)


def enrolled_plda_scores(
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    prior: float = 100.0,
    background: Sessions | None = None,
) -> Floats:
    """Return the log-likelihood ratio of each trial by a PLDA that learns from the enrolled models themselves.

    With m the mean of the means of all models, vectors e of sessions and t of tests become (e - m) / |e - m| and
    (t - m) / |t - m|; a PLDA of full rank is trained by EM on the former, with the models as speakers. In a trial a
    model is the mean of its sessions as one vector. Anonymised versions of an enrolment are sessions, so the PLDA
    learns how the anonymiser changes a voice, without any knowledge of the anonymiser.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models, at least one of them with two sessions that differ.
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
        The code of each trial's model, and the row of its tested vector.
    prior : float
        See `spkver.backend.PldaConfig`: few sessions need a strong prior.
    background : Sessions, optional
        Vectors of other speakers, anonymised in the same way. They are centred by their own mean and train a second
        PLDA together with the enrolled; a score is the mean of both ratios: the first PLDA knows enrolled impostors,
        the second knows strangers too.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Ratios in nat. A score depends on all models but on no other test.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or equals its mean, no two sessions of a model differ, or a code is
        out of its range.
    """
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    centre = sessions.means.mean(axis=0)
    enrolled = centred_units(sessions.vectors, centre, "enrolled")
    tested = centred_units(tests, centre, "tested")
    training = [(enrolled, sessions.models)]
    if background is not None:
        others = centred_units(background.vectors, background.means.mean(axis=0), "background")
        codes = np.concatenate([sessions.models, background.models + len(sessions.counts)])
        training.append((np.concatenate([enrolled, others]), codes))
    trials = Sessions(enrolled, sessions.models), tested, models, segments
    config = plda.PldaConfig(prior=prior)
    ratios = []
    for vectors, codes in training:
        trained = plda.fit_plda(vectors, codes, config)[0]
        ratios.append(plda.plda_scores(trained, *trials, sessions_as="mean"))
    return np.asarray(np.mean(ratios, axis=0))


def centred_units(vectors: Floats, centre: Floats, kind: str) -> Floats:
    """Return vectors minus a centre, scaled to length 1; raise a DataError if nothing is left of one.

    Parameters
    ----------
    vectors : ndarray of shape (N, R)
    centre : ndarray of shape (R,)
    kind : str
        Name of these vectors in errors, such as "enrolled".
    """
    moved = vectors - centre
    least = _SAME * float(row_norms(vectors).max())
    return to_unit(moved, _lengths(moved, 0.0, least, f"{kind} vector"))


def mahalanobis_scores(
    matrix: NDArray[Any],
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
) -> Floats:
    """Return -(a - b)' M (a - b) / 2 for each trial, where a is the mean of its model's vectors and b the tested one.

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
        Scores of at most 0.

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
    shape = sessions.dimension, sessions.dimension
    if matrix.shape != shape or not np.isfinite(matrix).all():
        raise DataError(
            f"expected a finite Mahalanobis matrix of shape {shape}, got {matrix.shape}",
            remedy="use one that was estimated on such vectors",
        )
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        factor = plda.lower_factor(matrix, "the Mahalanobis matrix")
        # centred vectors first: squared distances by a matrix product then lose less precision
        middle = tests.mean(axis=0)
        enrolled = (sessions.means - middle) @ factor
        tested = (tests - middle) @ factor
        ones = np.ones((max(len(enrolled), len(tested)), 1))
        squares = -0.5 * (enrolled**2).sum(axis=1, keepdims=True)
        enrolled = np.hstack([enrolled, squares, ones[: len(enrolled)]])
        squares = -0.5 * (tested**2).sum(axis=1, keepdims=True)
        tested = np.hstack([tested, ones[: len(tested)], squares])
    return np.minimum(pair_products(enrolled, tested, models, segments), 0.0)


def _scores_of_model(
    sessions: Sessions,
    model: int,
    tested: Floats,
    beyond: Floats,
    *,
    share: float,
    prior: float,
    least: float,
    together: bool,
) -> Floats:
    """Return the adapted cosines of a model and tested vectors, whose shift is `share` times that of the enrolled."""
    from scipy.linalg import solve_triangular

    own = sessions.models == model
    codes = sessions.models[~own]
    others = Sessions(sessions.vectors[~own], codes - (codes > model))
    centre = others.means.mean(axis=0)
    spread = _spread(others, centre, prior, least)
    moved = sessions.vectors[own] - centre
    mean = to_unit(moved, _lengths(moved, 0.0, least, "enrolled vector")).mean(axis=0)[None]
    _lengths(mean, 0.0, _SAME, "mean of a model")
    moved = tested - share * centre
    _lengths(moved, beyond, least, "tested vector")
    # after the import of SciPy: only libraries that are already loaded are limited
    with one_blas_thread():
        factor = np.linalg.cholesky(spread)

        def whiten(rows: Floats) -> Floats:
            solved: Floats = solve_triangular(factor, rows.T, lower=True, check_finite=False)
            return solved.T

        mean = whiten(mean)
        moved = _by_rows(whiten, moved, together)
    cosines: Floats = (moved * mean).sum(axis=1) / np.linalg.norm(mean)
    cosines /= _lengths(moved, beyond, 0.0, "tested vector")
    return cosines


def _spread(others: Sessions, centre: Floats, prior: float, least: float) -> Floats:
    """Return a multiple of W: cosines do not depend on its scale."""
    moved = others.vectors - centre
    unit = Sessions(to_unit(moved, np.maximum(row_norms(moved), least)), others.models)
    differences = unit.vectors - unit.means[unit.models]
    n_free = len(differences) - len(unit.counts)
    total = float((differences**2).sum())
    matrix = np.eye(unit.dimension)  # W is proportional to I + S / (p trace(S) / n)
    if n_free > 0 and total > _SAME**2 * len(differences):
        matrix += differences.T @ differences * (n_free / (prior * total))
    return matrix


def _by_rows(function: Callable[[Floats], Floats], vectors: Floats, together: bool) -> Floats:
    """Apply a function to all vectors, or to 48 at a time, padded with zeros, so that no row depends on another."""
    if together or not len(vectors):
        return function(vectors)
    filled = np.zeros((-(-len(vectors) // _ROWS) * _ROWS, vectors.shape[1]))
    filled[: len(vectors)] = vectors
    blocks = np.split(filled, len(filled) // _ROWS)
    return np.concatenate([*map(function, blocks)])[: len(vectors)]


def _lengths(
    vectors: NDArray[Any], beyond: NDArray[Any] | float, least: float, name: str
) -> Floats:
    """Return the lengths of vectors with squares of further coordinates.

    Raise a DataError if a length is not above `least`.
    """
    lengths: Floats = np.sqrt((vectors**2).sum(axis=1) + beyond)
    n_bad = int((~((lengths > least) & np.isfinite(lengths))).sum())
    if n_bad:
        text = (
            f"nothing is left of {n_bad} of {len(vectors)} {name}s without the mean of the models"
        )
        raise DataError(text, remedy="correct the vectors, or use cosine")
    return lengths


def _unit(vectors: Floats, name: str) -> Floats:
    norms = row_norms(vectors)
    rows = np.array([f"row {row}" for row in range(len(vectors))], object)
    check_norms(norms, rows, kind=name)
    return vectors / norms[:, None]
