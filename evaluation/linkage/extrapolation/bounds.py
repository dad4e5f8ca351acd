"""What rank counts alone say about larger populations: the least and the largest value that they do not contradict.

Without a shape for the distribution of the margin, linkability beyond the gallery is known only within bounds. They are
those of all distributions on the grid whose curve runs inside a band around the measured curve; the band holds the true
curve at all its sizes at once. Each bound is a linear programme.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.extrapolation.cells import first_probability, margins

Array = NDArray[np.float64]
_SLACK = 1e-9


def curve_bounds(low: Array, high: Array, inside: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the least and the largest linkability that a band around the measured curve does not contradict.

    Parameters
    ----------
    low, high : ndarray of float64 of shape (n_inside,)
        Band around the measured curve.
    inside : ndarray of float64 of shape (n_inside,)
        Its sizes.
    sizes : ndarray of float64 of shape (n_sizes,)
        Populations to extrapolate to.

    Returns
    -------
    least, most : ndarray of float64 of shape (n_sizes,)
        NaN where no distribution runs inside the band.
    """
    from scipy.optimize import linprog

    grid = np.append(margins(), np.inf)  # infinite margin: never beaten
    known, wanted = first_probability(grid, inside), first_probability(grid, sizes)
    limits = np.concatenate([high + _SLACK, -low + _SLACK])
    rows = np.vstack([known.T, -known.T])
    ends = np.full((2, len(sizes)), np.nan)
    for column in range(len(sizes)):
        for side, sign in enumerate((1.0, -1.0)):
            solution = linprog(
                sign * wanted[:, column], rows, limits, np.ones((1, len(grid))), [1.0], bounds=(0, 1), method="highs"
            )
            if solution.status == 0:
                ends[side, column] = sign * float(solution.fun or 0.0)
    # below the slack of the programme nothing is known
    ends[0][ends[0] < _SLACK] = 0.0
    return np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1)
