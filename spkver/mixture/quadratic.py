"""Symmetric matrices as rows of their upper triangles, and frames as the rows that go with them.

With full covariances the log-density of a Gaussian is linear in the products x_i x_j, i <= j, in x and in 1. So it is
one matrix product for all Gaussians, as with diagonal covariances, of D (D + 1) / 2 + D + 1 columns instead of 2 D + 1;
that takes half of the operations that a product for each Gaussian takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import Array, Namespace, one_blas_thread
from spkver.sidekit import inverse_matrices


def pack_symmetric(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the upper triangles, row after row, of symmetric matrices (..., D, D): shape (..., D (D + 1) / 2).

    Examples
    --------
    >>> pack_symmetric(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def unpack_symmetric(packed: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """Return the symmetric matrices (..., D, D) of packed triangles (..., D (D + 1) / 2).

    Examples
    --------
    >>> unpack_symmetric(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    rows, columns = np.triu_indices(dimension)
    matrices = np.empty((*packed.shape[:-1], dimension, dimension))
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


@one_blas_thread()
def quadratic_parameters(
    log_weights: NDArray[np.float64], means: NDArray[np.float64], covariances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the rows b_c for which the weighted log-density of c is a product with z = [x_i x_j (i <= j), x, 1].

        log(w_c N(x; m_c, S_c)) = b_c . z,   b_c = [-P_ij / (1 + (i = j)),  P_c m_c,  k_c],   P_c = S_c^-1
        k_c = log w_c - 1/2 (D log(2 pi) + log |S_c| + m_c' P_c m_c)

    Parameters
    ----------
    log_weights : ndarray of shape (C,)
    means : ndarray of shape (C, D)
    covariances : ndarray of shape (C, D, D)

    Returns
    -------
    ndarray of shape (C, D (D + 1) / 2 + D + 1)
    """
    dimension = means.shape[1]
    factors = np.linalg.cholesky(covariances)
    half_log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    precisions = inverse_variances(covariances)
    linear = of_each_gaussian(precisions, means)
    constants = log_weights - 0.5 * (dimension * np.log(2 * np.pi) + (means * linear).sum(axis=1))
    share = np.where(np.eye(dimension) > 0, 0.5, 1.0)
    return np.column_stack([pack_symmetric(-share * precisions), linear, constants - half_log_determinants])


def inverse_variances(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / variances (C, D), or the inverses of covariances (C, D, D)."""
    return 1.0 / variances if variances.ndim == 2 else inverse_matrices(variances)


def of_each_gaussian(factors: Array, values: Array, xp: Namespace = np) -> Array:
    """Return values (..., C, D) times factors (C, D), or from the left matrices (C, D, D), of each Gaussian.

    Examples
    --------
    >>> of_each_gaussian(np.array([[[2.0, 0.0], [1.0, 3.0]]]), np.array([[1.0, 2.0]]))
    array([[2., 7.]])
    """
    if len(factors.shape) == 2:
        return values * factors
    return xp.matmul(factors, xp.expand_dims(values, axis=-1))[..., 0]


def squares_or_products(frames: Array, width: int, xp: Namespace) -> Array:
    """Return what stands before x in z: x^2 where `width` is D, else the products x_i x_j, i <= j.

    Parameters
    ----------
    frames : ndarray of shape (..., T, D)
    width : int
        D, for diagonal covariances, or D (D + 1) / 2, for full ones.
    xp : module
        Namespace of the frames, after the array API standard.

    Returns
    -------
    ndarray of shape (..., T, width)
    """
    if width == frames.shape[-1]:
        return frames * frames
    products = [frames[..., first : first + 1] * frames[..., first:] for first in range(frames.shape[-1])]
    return xp.concat(products, axis=-1)


def write_squares_or_products(frames: NDArray, out: NDArray) -> None:
    """Write `squares_or_products` of frames (T, D) into the columns of `out`, in place."""
    dimension = frames.shape[1]
    if out.shape[1] == dimension:
        np.multiply(frames, frames, out=out)
        return
    start = 0
    for first in range(dimension):
        stop = start + dimension - first
        np.multiply(frames[:, first : first + 1], frames[:, first:], out=out[:, start:stop])
        start = stop


def check_positive_definite(covariances: NDArray[np.float64]) -> None:
    """Raise DataError unless all are symmetric, to the rounding of float32, and have a Cholesky factor."""
    for component, covariance in enumerate(covariances):
        scale = np.sqrt(np.diag(covariance))
        if not (np.abs(covariance - covariance.T) <= 1e-6 * np.outer(scale, scale)).all():
            raise DataError(f"covariance {component} of a mixture is not symmetric", remedy="train the mixture again")
        try:
            np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise DataError(
                f"covariance {component} of a mixture is not positive definite", remedy="train the mixture again"
            ) from None
