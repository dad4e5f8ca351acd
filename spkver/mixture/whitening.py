"""The space in which every Gaussian of a mixture has the covariance I: factors of the covariances, to it and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread
from spkver.mixture.gmm import GaussianMixture
from spkver.mixture.quadratic import of_each_gaussian


@one_blas_thread()
def whitening_factors(mixture: GaussianMixture) -> NDArray[np.float64]:
    """Return what `whiten` and `unwhiten` need: standard deviations, or lower Cholesky factors of full covariances.

        sigma_cd = sqrt(v_cd),   or   S_c = L_c L_c' with L_c lower triangular

    Parameters
    ----------
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (C, D) or (C, D, D)
    """
    if mixture.has_full_covariances:
        return np.asarray(np.linalg.cholesky(mixture.variances), np.float64)
    return np.asarray(np.sqrt(mixture.variances), np.float64)


def whiten(values: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return centred sums in the space in which all covariances are I: x_c / sigma_c, or L_c^-1 x_c.

    Parameters
    ----------
    values : ndarray of shape (..., C, D)
        Such as first-order statistics less n_c m_c.
    factors : ndarray of shape (C, D) or (C, D, D)
        See `whitening_factors`.

    Returns
    -------
    ndarray of shape (..., C, D)

    Examples
    --------
    >>> values, deviations = np.array([[2.0, 9.0]]), np.array([[2.0, 3.0]])
    >>> whiten(values, deviations)
    array([[1., 3.]])
    >>> whiten(values, np.array([np.diag([2.0, 3.0])]))
    array([[1., 3.]])
    """
    if factors.ndim == 2:
        return values / factors
    from scipy.linalg import solve_triangular

    whitened = np.empty(values.shape)
    width = values.shape[-1]
    for component, factor in enumerate(factors):
        rows = values[..., component, :].reshape(-1, width)
        solved = solve_triangular(factor, rows.T, lower=True).T
        whitened[..., component, :] = solved.reshape(values[..., component, :].shape)
    return whitened


def unwhiten(values: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what `whiten` made of its result: sigma_c x_c, or L_c x_c; parameters as there.

    Examples
    --------
    >>> factors = np.array([[[2.0, 0.0], [1.0, 3.0]]])
    >>> unwhiten(whiten(np.array([[4.0, 9.0]]), factors), factors)
    array([[4., 9.]])
    """
    return of_each_gaussian(factors, values)
