"""Means and covariances of vectors and of their classes (speakers), and their shrinkage where they are singular.

Conventions
-----------
Covariances are divided by the number N of vectors, so that total = within + between exactly. Sums are float64, taken
over blocks of rows that the data fix, with one BLAS thread. Classes are integer codes 0 .. C-1, each with a vector.

A covariance whose smallest eigenvalue is below 1e-12 of its largest is singular as far as float64 can tell: fewer
vectors than dimensions, constant dimensions, duplicates. It alone is shrunk (`regularised`); one that is not singular
stays as it is to the bit, but from few vectors its inverse is far off: `warn_of_few` says so.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, part
from spkbase.errors import DataError
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.backend.linear import GroupMeans

logger = logging.getLogger(__name__)

_ROWS = 1 << 13
_EQUAL = 1e-24  # of the squared length: below it a variance is rounding
_SINGULAR = 1e-12  # of the largest eigenvalue: below it an eigenvalue is rounding
_FEW = 3  # vectors a dimension, below which the inverse of a covariance is far off (docs/backends.md)


@one_blas_thread()
def scatter(vectors: Rows, centre: GroupMeans, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted scatter of vectors about the means of their groups: sum_i w_i (x_i - m_g) (x_i - m_g)^T.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    centre : GroupMeans
        What is subtracted.
    weights : ndarray of float64 of shape (N,)

    Returns
    -------
    ndarray of float64 of shape (R, R)
        Symmetric.
    """
    total = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        block = np.asarray(part(vectors, start, stop), np.float64) - centre.means[centre.groups[start:stop]]
        total += block.T @ (block * weights[start:stop, None])
    return (total + total.T) / 2


def class_sums(vectors: Rows, codes: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of vectors of each class, and their sum.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.

    Returns
    -------
    counts : ndarray of float64 of shape (C,)
    sums : ndarray of float64 of shape (C, R)
        Added in the order of the rows.
    """
    from scipy.sparse import csr_array

    counts = np.bincount(codes).astype(np.float64)
    sums = np.zeros((len(counts), vectors.shape[1]))
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        rows = np.arange(stop - start)
        members = csr_array((np.ones(len(rows)), (codes[start:stop], rows)), (len(sums), len(rows)))
        sums += members @ np.asarray(part(vectors, start, stop), np.float64)
    return counts, sums


def class_means(vectors: Rows, codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the mean of the vectors of each class, shape (C, R); see `class_sums`."""
    counts, sums = class_sums(vectors, codes)
    return sums / counts[:, None]


def mean(vectors: Rows) -> NDArray[np.float64]:
    """Return the mean of vectors (N, R), shape (R,)."""
    return class_means(vectors, np.zeros(len(vectors), np.int64))[0]


def total_covariance(vectors: Rows) -> NDArray[np.float64]:
    """Return the covariance of vectors (N, R) about their mean, divided by N, shape (R, R)."""
    return within_covariance(vectors, np.zeros(len(vectors), np.int64))


def within_covariance(vectors: Rows, codes: NDArray[np.integer], *, weighting: str = "vectors") -> NDArray[np.float64]:
    """Return the covariance of vectors about the means of their classes.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.
    weighting : {"vectors", "classes"}
        Each vector counts the same, sum_i (x_i - m_c) (x_i - m_c)^T / N, so that total = within + between; or each
        class does, the mean over classes of its covariance (divided by its own number), as in WCCN [1]_.

    Returns
    -------
    ndarray of float64 of shape (R, R)

    References
    ----------
    .. [1] A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker
       recognition", Interspeech 2006.
    """
    counts, sums = class_sums(vectors, codes)
    shares = np.full(len(codes), 1 / len(codes)) if weighting == "vectors" else 1 / (len(counts) * counts[codes])
    means = sums / counts[:, None]
    return _unless_rounding(scatter(vectors, GroupMeans(means, codes.astype(np.int64)), shares), means)


def between_covariance(vectors: Rows, codes: NDArray[np.integer], *, weighting: str = "vectors") -> NDArray[np.float64]:
    """Return the covariance of the means of classes, about the mean of all vectors.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.
    weighting : {"vectors", "classes"}
        A class counts by its number of vectors, sum_c n_c (m_c - m) (m_c - m)^T / N; or all classes count the same.

    Returns
    -------
    ndarray of float64 of shape (R, R)
    """
    counts, sums = class_sums(vectors, codes)
    shares = counts / counts.sum() if weighting == "vectors" else np.full(len(counts), 1 / len(counts))
    means = sums / counts[:, None]
    middle = GroupMeans(sums.sum(axis=0)[None] / counts.sum(), np.zeros(len(counts), np.int64))
    return _unless_rounding(scatter(means, middle, shares), means)


def _unless_rounding(covariance: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a covariance, or zeros where equal vectors differ from their mean by the rounding of it alone."""
    return covariance if np.trace(covariance) > _EQUAL * float((means**2).sum(axis=1).max()) else 0 * covariance


@one_blas_thread()
def regularised(
    covariance: NDArray[np.float64], n_free: int, *, shrink: float | None = None, what: str = "covariance"
) -> NDArray[np.float64]:
    """Return a covariance that can be inverted: the same unless it is singular, else shrunk.

    A singular one becomes (1 - a) S + a t I, t the mean eigenvalue trace(S) / R, with the share of the oracle
    approximating shrinkage of Chen et al. (2010) for n Gaussian vectors:

        a = ((1 - 2/R) tr(S^2) + tr(S)^2) / ((n + 1 - 2/R) (tr(S^2) - tr(S)^2 / R)),   at most 1

    It is never below 1 / (n + 1), so what is returned has a condition number of at most (n + 1) R.

    Parameters
    ----------
    covariance : ndarray of float64 of shape (R, R)
        Symmetric, no eigenvalue below 0.
    n_free : int
        Vectors that it was estimated from, less the means that were taken out of them.
    shrink : float, optional
        Share a to use whether or not it is singular, from 0 to 1; one that leaves it singular is an error.
    what : str
        Its name, for errors.

    Raises
    ------
    DataError
        If it is 0, so that there is nothing to estimate, holds NaN or infinite numbers, or stays singular.

    Examples
    --------
    >>> regularised(np.diag([2.0, 0.0]), 3).round(3)
    array([[1.333, 0.   ],
           [0.   , 0.667]])

    References
    ----------
    Y. Chen, A. Wiesel, Y. C. Eldar and A. O. Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE
    Transactions on Signal Processing 58(10), 2010, equation 23.
    """
    size, trace = len(covariance), float(np.trace(covariance))
    if not np.isfinite(covariance).all():
        raise DataError(f"the {what} is not finite", remedy="scale the vectors: their squares are beyond float64")
    if not trace > np.finfo(np.float64).tiny * size:
        raise DataError(f"the {what} is 0: the vectors do not differ", remedy="give vectors that do")
    if shrink is None:
        if not is_singular(covariance):
            warn_of_few(n_free, size, what, remedy="shrink, such as 0.1, or lda before it")
            return covariance
        squares = float((covariance**2).sum())
        spread = (n_free + 1 - 2 / size) * (squares - trace**2 / size)
        share = ((1 - 2 / size) * squares + trace**2) / spread if spread > 0 else 1.0
        shrink = min(1.0, share)
        logger.info("the %s is singular: shrunk by %.3g", what, shrink)
    shrunk: NDArray[np.float64] = (1 - shrink) * covariance + shrink * trace / size * np.eye(size)
    if is_singular(shrunk):
        raise DataError(f"the {what} is singular with shrink {shrink:g}", remedy="raise shrink, or leave it out")
    return shrunk


def warn_of_few(n_free: int, size: int, what: str, *, remedy: str) -> None:
    """Warn of a covariance that can be inverted but should not be: the scores look like scores, and are bad."""
    if n_free < _FEW * size:
        logger.warning(
            "the %s of %d dimensions rests on %d vectors (means taken out), fewer than %d a dimension: its inverse is "
            "far off, and scores may be worse than without this step (give %s)",
            *(what, size, n_free, _FEW, remedy),
        )


@one_blas_thread()
def is_singular(covariance: NDArray[np.float64]) -> bool:
    """Return whether the smallest eigenvalue is below 1e-12 of the largest."""
    values = np.linalg.eigvalsh(covariance)
    return not bool(values[0] > _SINGULAR * values[-1])
