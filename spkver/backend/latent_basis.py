"""The basis in which the posterior of a speaker's factor is diagonal, for any number of vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line


@one_line
@dataclass(frozen=True, eq=False)
class LatentBasis:
    """The model x = F y + e, e ~ N(0, W), with P = F' W^-1 F = V diag(p) V'.

    Attributes
    ----------
    projection : ndarray of shape (R, K)
        W^-1 F V: for a vector x less the mean, x @ projection is all that it says of y.
    precisions : ndarray of shape (K,)
        p, 0 or more: n vectors leave y with the variances 1 / (1 + n p).
    rotation : ndarray of shape (K, K)
        V, orthonormal.
    factor : ndarray of shape (R, R)
        The lower Cholesky factor of W.
    """

    projection: NDArray[np.float64]
    precisions: NDArray[np.float64]
    rotation: NDArray[np.floating]
    factor: NDArray[np.floating]

    @property
    def log_determinant(self) -> float:
        """log |W|."""
        return float(2 * np.log(np.diag(self.factor)).sum())

    def trace_ratio(self, scatter: NDArray[np.float64]) -> float:
        """Return tr(W^-1 C) for a scatter C of shape (R, R)."""
        whitening = np.linalg.inv(self.factor)
        return float(((whitening @ scatter) * whitening).sum())


def latent_basis(loadings: NDArray[np.float64], within: NDArray[np.float64]) -> LatentBasis:
    """Return the basis of a model.

    Parameters
    ----------
    loadings : ndarray of shape (R, K)
        F.
    within : ndarray of shape (R, R)
        W, positive definite.

    Raises
    ------
    DataError
        If W is not positive definite.
    """
    factor = lower_factor(within)
    weighted = np.linalg.solve(within, loadings)
    product = loadings.T @ weighted
    precisions, rotation = np.linalg.eigh((product + product.T) / 2)
    return LatentBasis(weighted @ rotation, np.maximum(precisions, 0), rotation, factor)


def lower_factor(covariance: NDArray[np.float64], what: str = "the covariance within speakers") -> NDArray[np.floating]:
    """Return the lower Cholesky factor.

    Raises
    ------
    DataError
        If the matrix is not symmetric and positive definite.
    """
    scale = np.abs(covariance).max()
    try:
        if np.abs(covariance - covariance.T).max() > 1e-6 * scale:
            raise DataError(f"expected {what} as a symmetric matrix", remedy="train the model again")
        factor = np.linalg.cholesky(covariance)
        if not np.isfinite(factor).all():
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise DataError(
            f"expected {what} to be positive definite, it is not", remedy="train the model on more vectors"
        ) from None
    return factor
