"""Gaussians with full covariances, trained from those with diagonal ones.

References
----------
A. P. Dempster, N. M. Laird and D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm", Journal of
the Royal Statistical Society B 39(1), 1977.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread
from spkver.mixture.gmm import Accumulator, GaussianMixture
from spkver.mixture.quadratic import unpack_symmetric

logger = logging.getLogger(__name__)

ALIVE = 1.0  # a component that carries less than one frame is dead


@one_blas_thread()
def full_m_step(
    accumulator: Accumulator, before: GaussianMixture, *, reference: NDArray[np.float64], limits: tuple[float, float]
) -> GaussianMixture:
    """Return the parameters of maximum likelihood with full covariances, these between limits in every direction.

        w_c = n_c / sum n,   m_c = f_c / n_c,   S_c = R^(1/2) U diag(clip(l)) U' R^(1/2)
        where R^(-1/2) (s_c / n_c - m_c m_c') R^(-1/2) = U diag(l) U'  and R = diag(reference)

    The variance of c in each direction is then at least the lower limit times that of R, and at most the upper one
    times it. Among all such covariances these are the most likely ones, so the likelihood never falls from a mixture
    that has such covariances itself. A component that carries less than one frame keeps its mean and covariance.

    Parameters
    ----------
    accumulator : Accumulator
        With full second moments, of the posteriors under `before`.
    before : GaussianMixture
        With full covariances.
    reference : ndarray of shape (D,)
        Variances that the limits are shares of.
    limits : tuple of float
        Lower and upper limit, such as .01 and 10.

    Returns
    -------
    GaussianMixture
    """
    alive = accumulator.zeroth >= ALIVE
    if not alive.all():
        dead = np.flatnonzero(~alive).tolist()
        logger.warning("UBM: Gaussians %s carry less than one frame; they stay as they are", dead)
    count = accumulator.zeroth[alive]
    means, covariances = before.means.copy(), before.variances.copy()
    means[alive] = accumulator.first[alive] / count[:, None]
    moments = unpack_symmetric(accumulator.second[alive] / count[:, None], before.dimension)
    scatter = moments - means[alive][:, :, None] * means[alive][:, None, :]
    covariances[alive] = clipped_covariances(scatter, reference, limits)
    return GaussianMixture(accumulator.zeroth / accumulator.zeroth.sum(), means, covariances)


def clipped_covariances(
    covariances: NDArray[np.float64], reference: NDArray[np.float64], limits: tuple[float, float]
) -> NDArray[np.float64]:
    """Return covariances (C, D, D) whose variances are limited in every direction; see `full_m_step`.

    Examples
    --------
    >>> clipped_covariances(np.array([[[1.0, 1.0], [1.0, 1.0]]]), np.ones(2), (0.5, 10.0)).round(6)
    array([[[1.25, 0.75],
            [0.75, 1.25]]])
    """
    deviations = np.sqrt(reference)
    scale = np.outer(deviations, deviations)
    shares, axes = np.linalg.eigh(covariances / scale)
    kept = np.clip(shares, *limits)
    outside = (kept != shares).any(axis=1)
    limited = covariances.copy()
    rebuilt = (axes[outside] * kept[outside][:, None, :]) @ axes[outside].swapaxes(1, 2)
    limited[outside] = (rebuilt + rebuilt.swapaxes(1, 2)) / 2 * scale
    return limited


def with_full_covariances(mixture: GaussianMixture) -> GaussianMixture:
    """Return the same mixture with its covariances as matrices."""
    if mixture.has_full_covariances:
        return mixture
    return GaussianMixture(mixture.weights, mixture.means, mixture.variances[:, :, None] * np.eye(mixture.dimension))
