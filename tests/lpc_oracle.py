"""Linear prediction as a textbook has it, one signal at a time."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter


def plain_burg(signal: np.ndarray, order: int) -> np.ndarray:
    """Each reflection coefficient makes the mean of forward and backward error power smallest."""
    coefficients = np.ones(1)
    for _ in range(order):
        forward = lfilter(coefficients, [1], signal)
        backward = lfilter(coefficients[::-1], [1], signal)
        first, second = forward[len(coefficients) :], backward[len(coefficients) - 1 : -1]
        reflection = -2 * first @ second / (first @ first + second @ second)
        coefficients = np.r_[coefficients, 0] + reflection * np.r_[0, coefficients[::-1]]
    return coefficients
