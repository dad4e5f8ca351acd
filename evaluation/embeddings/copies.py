"""Recordings that occur again under another id: their vectors have the same direction up to rounding.

A user who copies, renames, scales or prints vectors, or stores them in another type, changes their ids, lengths and
last digits, not their directions. Two recordings of a speaker are not so close: their distance is a large part of that
between two speakers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import factorise
from spkbase.work import chunk_bounds, one_blas_thread

_ROWS = 1 << 13
# exceeds the change of a unit vector by storage as float16, bfloat16 or three decimals
_ROUNDED = 7e-3
_EXACT = 1e-7  # exceeds the change by storage as float32
_SHARE = 0.05  # share of the distance between two recordings of a speaker
_LEAST_DIMENSIONS = 16  # in fewer dimensions, different recordings may be this close
_SAMPLE = 2000
_DIRECTIONS = 8
_JITTER = 1e-9
_SLACK = 1.5  # projections may lengthen a distance slightly


def find_copies(
    vectors: NDArray[np.floating], known: NDArray[np.floating] | None, tolerance: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find vectors whose direction equals that of a known vector except for rounding, in n log n time.

    Parameters
    ----------
    vectors, known : ndarray of a floating type of shape (n, D) and (m, D)
        Arrays, which may be memory-mapped. If `known` is None, copies among the rows of `vectors` are sought.
    tolerance : float
        Largest distance between copies after scaling to length 1; see `rounding`.

    Returns
    -------
    rows, originals : ndarray of int of shape (c,)
        The copies, and the row of `known` that each is nearest to.

    Notes
    -----
    Neighbours are sought among projections on 8 random directions, which keep distances within about 25 %; a neighbour
    is a copy if the vectors themselves are also within the tolerance.

    Examples
    --------
    >>> spoken = np.random.default_rng(0).standard_normal((3, 50))
    >>> find_copies(2 * spoken[1:].astype(np.float16), spoken, 0.007)
    (array([0, 1]), array([1, 2]))
    """
    from scipy.spatial import KDTree

    others = known
    rank = 1
    if others is None:
        others = vectors
        rank = 2  # the nearest one is the vector itself
    tree = KDTree(_project(others))
    _, neighbours = tree.query(_project(vectors), [rank], eps=1.0, distance_upper_bound=tolerance)
    nearest = np.ravel(neighbours)
    rows = np.flatnonzero(nearest < tree.n)
    originals = nearest[rows]
    apart = np.empty(len(rows))
    for start, stop in chunk_bounds(len(rows), _ROWS):
        difference = _unit(vectors[rows[start:stop]]) - _unit(others[originals[start:stop]])
        apart[start:stop] = np.linalg.norm(difference, axis=1)
    is_close = apart <= _SLACK * tolerance
    return rows[is_close], originals[is_close]


def rounding(vectors: NDArray[np.floating], speakers: NDArray[np.object_]) -> float:
    """Return the largest distance between unit vectors that counts as rounding.

    It is far below the distance between utterances of the same speaker (labels of shape (n,)), or between any two if
    each speaker has one.
    """
    if vectors.shape[1] < _LEAST_DIMENSIONS:
        return _EXACT
    if len(vectors) == 1:
        return _ROUNDED
    order = np.argsort(factorise(speakers)[1], kind="stable")[:_SAMPLE]
    apart = np.linalg.norm(np.diff(_unit(vectors[order]), axis=0), axis=1)
    within = apart[speakers[order[1:]] == speakers[order[:-1]]]
    if len(within):
        apart = within
    usual = np.quantile(apart, 0.75)
    return float(np.clip(_SHARE * usual, _EXACT, _ROUNDED))


@one_blas_thread()
def _project(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Project unit vectors on random directions; equal vectors are moved apart slightly for the search tree."""
    generator = np.random.default_rng(0)
    directions = generator.standard_normal((vectors.shape[1], _DIRECTIONS)) / _DIRECTIONS**0.5
    blocks = [
        _unit(vectors[start:stop]) @ directions for start, stop in chunk_bounds(len(vectors), _ROWS)
    ]
    projected = np.concatenate(blocks)
    noise = generator.standard_normal(projected.shape)
    return np.where(np.isfinite(projected), projected + _JITTER * noise, noise)


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale vectors to length 1; zero and infinite vectors become NaN."""
    vectors = np.asarray(vectors, np.float64)
    with np.errstate(all="ignore"):
        unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
