"""Scores of a PLDA: log-likelihood ratios of several enrolled vectors and a tested one, by the book."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.backend.plda import Plda
from spkver.backend.products import pair_products
from spkver.backend.sessions import Sessions, checked_vectors

SESSIONS_AS = ("all", "mean")


def ratio_rows(
    precisions: NDArray[np.float64], sums: NDArray[np.float64], counts: NDArray, tests: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows of models and of segments whose inner products are log-likelihood ratios.

    Where P = diag(p), f is the sum of n enrolled vectors and t a tested vector, as `LatentBasis` projects them,

        s = log p(x, X | one speaker) / (p(x | one) p(X | another)) = sum over k of
            f t / (1 + (n+1) p)  -  f^2 p / (2 (1 + n p) (1 + (n+1) p))  -  t^2 n p / (2 (1 + p) (1 + (n+1) p))
            + (log(1 + n p) + log(1 + p) - log(1 + (n+1) p)) / 2

    Only the factor of t^2 depends on n alone: it stands once for each number of enrolled vectors that there is (or in
    full for each model, where that is shorter).

    Parameters
    ----------
    precisions : ndarray of shape (K,)
        p.
    sums : ndarray of shape (M, K)
        f of each model.
    counts : ndarray of shape (M,)
        n of each model.
    tests : ndarray of shape (T, K)
        t of each segment.

    Returns
    -------
    models : ndarray of shape (M, Q)
    segments : ndarray of shape (T, Q)

    References
    ----------
    S. J. D. Prince and J. H. Elder, ICCV 2007; D. Garcia-Romero and C. Y. Espy-Wilson, "Analysis of i-vector length
    normalization in speaker recognition systems", Interspeech 2011.
    """
    numbers, group = np.unique(counts, return_inverse=True)
    alone = 1 + numbers[:, None] * precisions  # (numbers, K)
    joint = alone + precisions
    squares = -0.5 * numbers[:, None] * precisions / ((1 + precisions) * joint)
    constants = 0.5 * (np.log(alone) + np.log1p(precisions) - np.log(joint)).sum(axis=1)
    weights = sums / joint[group]
    offsets = constants[group] - 0.5 * (weights * sums * (precisions / alone)[group]).sum(axis=1)
    ones = np.ones((len(tests), 1))
    if len(numbers) <= len(precisions):
        return (
            np.hstack([weights, offsets[:, None], np.eye(len(numbers))[group]]),
            np.hstack([tests, ones, tests**2 @ squares.T]),
        )
    return np.hstack([weights, offsets[:, None], squares[group]]), np.hstack([tests, ones, tests**2])


def plda_scores(
    plda: Plda,
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    sessions_as: str = "all",
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of each trial: one speaker against two.

    Parameters
    ----------
    plda : Plda
    sessions : Sessions
        Enrolled vectors of the models.
    tests : ndarray of shape (T, R)
        Tested vectors.
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    sessions_as : str
        "all": the exact ratio of all vectors of a model; "mean": their mean as one vector, as SIDEKIT's fast scoring
        takes it.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat.

    Raises
    ------
    DataError
        If dimensions differ from those of the model, a vector is not finite, or a code is out of its range.
    """
    vectors, counts = enrolled(sessions, plda.dimension, sessions_as)
    tests = checked_vectors(tests, "tested vectors", plda.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        basis = plda.basis
        offset = plda.mean @ basis.projection
        sums = (vectors @ basis.projection - offset) * counts[:, None]
        rows = ratio_rows(basis.precisions, sums, counts, tests @ basis.projection - offset)
        return pair_products(*rows, models, segments)


def enrolled(sessions: Sessions, dimension: int, sessions_as: str) -> tuple[NDArray[np.float64], NDArray]:
    """Return the mean of each model's vectors, and as how many they count.

    Raises
    ------
    DataError
        If the vectors have not `dimension` dimensions.
    ConfigError
        If `sessions_as` is neither "all" nor "mean".
    """
    if sessions_as not in SESSIONS_AS:
        raise ConfigError(f"sessions_as is {sessions_as!r}: expected one of {', '.join(SESSIONS_AS)}")
    means = checked_vectors(sessions.means, "enrolled vectors", dimension)
    return means, sessions.counts if sessions_as == "all" else np.ones_like(sessions.counts)
