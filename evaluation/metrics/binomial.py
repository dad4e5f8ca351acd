"""Bounds of a share, from how often something happened and how often it did not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LEAST = 1e-9  # stands for a count of 0, of which the bound is known without the formula


def clopper_pearson(
    successes: ArrayLike, failures: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of a probability that hold it with at least the given confidence.

    Of k successes in n independent trials the bounds are quantiles of beta distributions: with a = (1 - level) / 2, the
    quantile a of Beta(k, n - k + 1) and the quantile 1 - a of Beta(k + 1, n - k); 0 where k = 0, and 1 where k = n.

    Parameters
    ----------
    successes, failures : array_like of float, broadcastable shapes
        How often it happened, and how often it did not; they need not be whole numbers.
    level : float
        Confidence, between 0 and 1.

    Returns
    -------
    low, high : ndarray of float64
        Of the shape that both broadcast to.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> [round(float(bound), 4) for bound in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    seen, missed = np.asarray(successes, np.float64), np.asarray(failures, np.float64)
    tail = (1 - level) / 2
    low = np.where(seen > 0, betaincinv(np.maximum(seen, _LEAST), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(seen + 1, np.maximum(missed, _LEAST), 1 - tail), 1.0)
    return low, high
