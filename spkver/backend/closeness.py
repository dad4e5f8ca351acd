"""Scores of how close a tested vector is to the mean of a model's: the cosine, and Mahalanobis' distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, row_norms
from spkbase.errors import DataError
from spkbase.work import one_blas_thread
from spkver.backend.latent_basis import lower_factor
from spkver.backend.products import pair_products
from spkver.backend.sessions import Sessions, checked_vectors


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
