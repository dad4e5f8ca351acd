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
from spkver.backend.products import check_codes
from spkver.backend.sessions import Sessions, checked_vectors

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
