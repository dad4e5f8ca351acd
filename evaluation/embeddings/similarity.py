"""Cosines of embeddings: single pairs in float64, and how far a float32 product can be off them.

A *gallery* is a table of vectors with their lengths beside it, in memory or in a file; the vectors that it meets are
scaled to length 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.work import chunk_bounds

TIE = 1e-12
"""Two cosines that are closer cannot be told apart in float64: they are a tie."""

_LEAST_MARGIN = 1e-5
_PAIRS = 1 << 14


def to_unit(vectors: NDArray[np.floating], norms: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return rows scaled to length 1, in float64.

    Parameters
    ----------
    vectors : ndarray of a floating type of shape (n, D)
        None of length 0.
    norms : ndarray of float64 of shape (n,), optional
        Their lengths, where they are known.

    Returns
    -------
    ndarray of float64 of shape (n, D)
    """
    unit = np.array(vectors, np.float64)
    unit /= (np.linalg.norm(unit, axis=1) if norms is None else norms)[:, None]
    return unit


def cosines(
    gallery: Rows,
    norms: NDArray[np.float64],
    unit: NDArray[np.float64],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the cosines of single pairs in float64; each is summed in the same way, whatever the others are.

    Parameters
    ----------
    gallery : ndarray or stored rows of shape (G, D)
        Vectors of any length.
    norms : ndarray of float64 of shape (G,)
        Their lengths.
    unit : ndarray of float64 of shape (n, D)
        Vectors of length 1.
    rows, columns : ndarray of int of shape (p,)
        Of each pair the row of the gallery, and the row of `unit`.

    Returns
    -------
    ndarray of float64 of shape (p,)

    Examples
    --------
    >>> gallery, unit = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> cosines(gallery, np.array([5.0]), unit, np.array([0, 0]), np.array([0, 1]))
    array([0.6, 0.8])
    """
    values = np.empty(len(rows))
    for start, stop in chunk_bounds(len(rows), _PAIRS):
        some = rows[start:stop]
        left = np.asarray(gallery[some], np.float64)
        left /= norms[some][:, None]
        left *= unit[columns[start:stop]]
        np.add.reduce(left, axis=1, out=values[start:stop])
    return values


def cosine_margin(n_dimensions: int) -> float:
    """Return the largest error that a cosine can have as a float32 product of so many dimensions.

    A sum of D products of unit vectors is off by at most D u, u = 2**-24, in whatever order it is summed; the rounding
    of the factors and of what it is compared with comes on top. It is never taken below 1e-5.

    References
    ----------
    .. [1] N. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1.
    """
    return max(_LEAST_MARGIN, (n_dimensions + 8) * 2.0**-24)
