"""Tests of whether a difference, a spread or a centred value is more than a rounding error.

Numbers that are all equal differ from their computed mean by its rounding: the standard deviation of a thousand times
0.1 is 1e-16, and not 0. A quotient by such a number looks like a result. So a spread, or a length after centring, is
never compared with 0 but with the size of the numbers from which it was computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SHARE = 1e-12
"""Of the numbers themselves: what is smaller is rounding of float64 numbers, or of their sums."""
SINGLE = 1e-6
"""The same of float32 numbers."""


def is_negligible(
    difference: ArrayLike, magnitude: ArrayLike, *, share: ArrayLike = SHARE
) -> NDArray[np.bool_]:
    """Return whether differences are only the rounding of numbers of a magnitude; true for NaN, false for infinity.

    Parameters
    ----------
    difference : array_like of float
        Differences, deviations, or lengths of differences, of any shape.
    magnitude : array_like of float
        Absolute values of the numbers from which they were computed; shapes are broadcast.
    share : array_like of float
        Share of the magnitude up to which a difference counts as rounding.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> values = np.full(7, 0.1)
    >>> bool(values.std() > 0), bool(is_negligible(values.std(), 0.1)), bool(is_negligible(1e-9, 0.1))
    (True, True, False)
    """
    is_larger = np.abs(difference) > np.asarray(share) * np.abs(magnitude)
    return np.asarray(~is_larger & ~np.isinf(difference))


def share_of_type(dtype: np.dtype[Any]) -> float:
    """Return the share of numbers of a type that may be rounding: `SINGLE` for float32, `SHARE` for others."""
    if dtype == np.float32:
        return SINGLE
    return SHARE


def share_of_sum(count: ArrayLike) -> NDArray[np.float64]:
    """Return the share of a sum of `n` numbers, added one after another, that may be rounding.

    Examples
    --------
    >>> share_of_sum([1, 10**6])
    array([1.00000000e-12, 2.22044605e-10])
    """
    return np.maximum(SHARE, np.asarray(count) * np.finfo(np.float64).eps)


def is_constant(values: ArrayLike, axis: int = 0) -> NDArray[np.bool_]:
    """Return whether values along an axis are all equal except for rounding.

    The range of equal values is exactly 0, since it needs no mean.

    Parameters
    ----------
    values : array_like of float
        Floating-point numbers, at least one along the axis; float32 is compared with less precision.
    axis : int
        Axis along which values are compared.

    Returns
    -------
    ndarray of bool
        Shape of the values without the axis; true for NaN.

    Examples
    --------
    >>> is_constant([[0.1, 1.0], [0.1, 2.0], [0.1 + 1e-17, 3.0]])
    array([ True, False])
    """
    values = np.asarray(values)
    low = values.min(axis=axis)
    high = values.max(axis=axis)
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore", over="ignore"):
        spread = high - low
    return is_negligible(spread, largest, share=share_of_type(values.dtype))
