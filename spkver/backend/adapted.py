"""The cosine of vectors that are adapted to the trials at hand: how a domain shifts and spreads them is read off these.

An anonymiser, a channel or another language moves all vectors, and spreads those of a speaker in directions of its own.
Both can be seen without knowing who speaks in a trial: each side has its own mean, and the enrolled vectors of a model
differ by what is not the speaker.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import row_norms, to_unit
from spkbase.errors import ConfigError, DataError
from spkbase.work import one_blas_thread
from spkver.backend.closeness import cosine_of_sessions
from spkver.backend.sessions import Sessions, checked_vectors

_SAME = 1e-12  # of the length: what is left of a vector without its mean is rounding


@one_blas_thread()
def adapted_cosine_scores(
    sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray, *, prior: float = 1.0
) -> NDArray[np.float64]:
    """Return the cosines of vectors without the mean of their side and without what spreads the models' sessions.

    With the M models' means m_k over their sessions, and T tested vectors t:

        1. e' = e - e0,  e0 = sum_k m_k / M;  t' = t - t0,  t0 = (sum t + e0) / (T + 1);  both scaled to length 1
        2. W = (S + p R w I) / (n + p R), with S = sum (e' - m'_k) (e' - m'_k)^T over the N sessions, n = N - M, and
           w = trace(S) / (n R): the mean variance in p R further sessions; W = I where sessions do not differ
        3. the cosine of the model's mean and the tested vector after W^(-1/2)

    One tested vector alone is so centred by e0. The score of a trial depends on the whole list: on all its models and
    all its segments, but not on who is said to be who in a trial.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models.
    tests : ndarray of shape (T, R)
        Each takes part in the mean, whether a trial has it or not.
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    prior : float
        p: the fewer sessions there are for the R dimensions, the nearer is W to the identity.

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
    Two recordings of each of two speakers, who differ in the first two numbers. All that is tested lies elsewhere.

    >>> both = Sessions([[1, 0, 1], [1, 0, -1], [0, 1, 1], [0, 1, -1]], [0, 0, 1, 1])
    >>> tests = [[5, 2, 4], [5, 2, 2], [4, 3, 4], [4, 3, 2]]
    >>> models, segments = [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3]
    >>> cosine_of_sessions(both, tests, models, segments).round(2)
    array([0.75, 0.87, 0.62, 0.74, 0.3 , 0.35, 0.47, 0.56])
    >>> adapted_cosine_scores(both, tests, models, segments).round(2)
    array([ 0.62,  0.75, -0.32, -0.43, -0.62, -0.75,  0.32,  0.43])
    """
    tests = checked_vectors(tests, "tested vectors", sessions.dimension)
    if not prior > 0:
        raise ConfigError(f"prior is {prior:g}: expected a number above 0")
    if len(sessions.counts) < 2:
        text = "adapted_cosine takes off the mean of all models, and there is one: nothing would be left"
        raise DataError(text, remedy="use cosine, or give trials of more models")
    enrolled_mean = sessions.means.mean(axis=0)
    tested_mean = (tests.sum(axis=0) + enrolled_mean) / (len(tests) + 1)
    enrolled = Sessions(_without(sessions.vectors, enrolled_mean, "enrolled vector"), sessions.models)
    tested = _without(tests, tested_mean, "tested vector")
    directions, shares = _spread(enrolled, prior)
    narrowed = Sessions(_narrowed(enrolled.vectors, directions, shares), enrolled.models)
    return cosine_of_sessions(narrowed, _narrowed(tested, directions, shares), models, segments)


def _without(vectors: NDArray[np.float64], centre: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    """Vectors without the mean of their side, of length 1."""
    moved = vectors - centre
    norms = row_norms(moved)
    gone = np.flatnonzero(~(norms > _SAME * float(np.linalg.norm(centre))))
    if len(gone):
        text = f"nothing is left of {len(gone)} of {len(vectors)} {what}s without their mean: they are all the same"
        raise DataError(text, remedy="correct the vectors, or use cosine")
    return to_unit(moved, norms)


def _spread(enrolled: Sessions, prior: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Directions (R, K) in which the sessions of a model differ, and what W^(-1/2) leaves of each, up to a scale."""
    differences = enrolled.vectors - enrolled.means[enrolled.models]
    free = len(differences) - len(enrolled.counts)
    total = float((differences**2).sum())
    if free < 1 or not total > _SAME**2 * len(differences):
        return np.zeros((enrolled.dimension, 0)), np.zeros(0)
    if free < enrolled.dimension:
        _, spreads, rows = np.linalg.svd(differences, full_matrices=False)
        variances, directions = spreads**2, rows.T
    else:
        variances, directions = np.linalg.eigh(differences.T @ differences)
    level = prior * total / free  # W is proportional to I + S / level
    return directions, 1 / np.sqrt(1 + np.maximum(variances, 0) / level)


def _narrowed(
    vectors: NDArray[np.float64], directions: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Vectors with no more than these shares of their parts along some directions."""
    return vectors - (vectors @ directions * (1 - shares)) @ directions.T
