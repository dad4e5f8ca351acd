"""Log-likelihood ratios of models that were adapted from a mixture, and the mixture itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spkver.mixture import (
    GaussianMixture,
    block_size,
    frame_log_likelihoods,
    inverse_variances,
    natural_parameters,
    of_each_gaussian,
    squares_or_products,
)


def log_likelihood_ratios(frames: NDArray, means: Iterable[NDArray], mixture: GaussianMixture) -> NDArray[np.float64]:
    """Return the log-likelihood ratios of adapted models and the mixture that they were adapted from, per frame.

        s_m = 1/T sum_t [log p(x_t | means m) - log p(x_t | mixture)]

    Models share the weights and the variances of the mixture, diagonal or full, so what depends on products of two
    dimensions of x is computed once for all.

    Parameters
    ----------
    frames : ndarray of shape (T, D)
        Of one segment.
    means : iterable of ndarray of shape (C, D)
        Of each model.
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (m,)
        In nat per frame.

    References
    ----------
    D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
    Signal Processing 10, 2000, section 3.5.
    """
    natural = natural_parameters(mixture)
    parameters = natural.astype(frames.dtype)
    n_products = parameters.shape[1] - mixture.dimension - 1
    precisions = inverse_variances(mixture.variances)
    log_weights = parameters[:, -1:] + 0.5 * weighted_lengths(mixture.means, precisions)
    shared = parameters[:, :n_products] @ squares_or_products(frames, n_products, np).T
    background = frame_log_likelihoods(frames, natural).mean()
    ratios = []
    for adapted in means:
        linear = of_each_gaussian(precisions, adapted).astype(frames.dtype)
        constant = log_weights - 0.5 * weighted_lengths(adapted, precisions)
        ratios.append(_mean_log_likelihood(shared, linear, constant.astype(frames.dtype), frames) - background)
    return np.array(ratios)


def weighted_lengths(means: NDArray, precisions: NDArray) -> NDArray:
    """Return m_c' P_c m_c of means (C, D) and precisions (C, D) or (C, D, D), shape (C, 1)."""
    products = means**2 * precisions if precisions.ndim == 2 else means * of_each_gaussian(precisions, means)
    return products.sum(axis=1, keepdims=True)


def _mean_log_likelihood(shared: NDArray, linear: NDArray, constant: NDArray, frames: NDArray) -> float:
    """Return the mean log-likelihood of frames under one model, from the part that all models share."""
    total = 0.0
    size = block_size(len(linear))
    for start in range(0, len(frames), size):
        joint = linear @ frames[start : start + size].T
        joint += shared[:, start : start + size]
        joint += constant
        largest = joint.max(axis=0)
        joint -= largest
        np.exp(joint, out=joint)
        total += float((largest + np.log(joint.sum(axis=0))).sum(dtype=np.float64))
    return total / len(frames)
