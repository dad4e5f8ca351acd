"""Products of long vectors, summed in float64: blocks of rows and columns, in memory, in files or on a device.

No float64 copy of the vectors is made: a tile of rows is taken, and of it some thousand dimensions at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, part
from spkbase.work import ALL_CORES, Array, Device, Work, chunk_bounds, on_device, one_blas_thread

_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_TILE = 256  # vectors of either side of a task on the cores ...
_DEVICE_TILE = 4096  # ... and on a device


def inner_products(vectors: Rows, others: Rows) -> NDArray[np.float64]:
    """Return the inner products of two sets of vectors, in this thread: for what is itself a task.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, D)
    others : ndarray or StoredArray of shape (M, D)

    Returns
    -------
    ndarray of shape (N, M)
        Products and sums in float64.
    """
    left = Tile(np.asarray(vectors), 0)
    bounds = chunk_bounds(len(others), _TILE)
    products = [tile_product((left, Tile(part(others, start, stop), start))) for start, stop in bounds]
    return np.hstack([np.empty((len(vectors), 0)), *products])


@dataclass(frozen=True)
class GroupMeans:
    """Means that are subtracted from the rows of a matrix: each row's group has one.

    Attributes
    ----------
    means : ndarray of shape (G, D)
    groups : ndarray of int64 of shape (N,)
        Group of each row.
    """

    means: NDArray
    groups: NDArray[np.int64]


@dataclass(frozen=True)
class Tile:
    """Some rows of a matrix, and the number of the first of them."""

    rows: Rows
    start: int

    def columns(self, bounds: slice, centre: GroupMeans | None, device: Device | None) -> Array:
        """Return some columns in float64, less the means of the rows' groups; on the device if there is one."""
        block = self.rows[:, bounds]
        if centre is not None:
            block = block - centre.means[centre.groups[self.start : self.start + len(self.rows)], bounds]
        return _in_float64(block, device)


def _in_float64(block: NDArray, device: Device | None) -> Array:
    # a device takes the array as it is stored: half as many bytes travel
    return block.astype(np.float64) if device is None else device.xp.astype(device.asarray(block), device.xp.float64)


def tile_product(
    tiles: tuple[Tile, Tile | None], centre: GroupMeans | None = None, device: Device | None = None
) -> NDArray[np.float64]:
    """Return the inner products of the rows of two tiles, or of one with itself where the second is None.

    Parameters
    ----------
    tiles : tuple of Tile and (Tile or None)
        Rows (n, D) and (m, D).
    centre : GroupMeans, optional
        Subtracted from the rows first.
    device : Device, optional
        Computes in place of this thread.

    Returns
    -------
    ndarray of shape (n, m)
    """
    left, right = tiles
    if device is None:
        left = Tile(np.asarray(left.rows), left.start)
        right = None if right is None else Tile(np.asarray(right.rows), right.start)
    total = _in_float64(np.zeros((len(left.rows), len((right or left).rows))), device)
    for start, stop in chunk_bounds(left.rows.shape[1], _COLUMNS):
        block = left.columns(slice(start, stop), centre, device)
        total += block @ (block if right is None else right.columns(slice(start, stop), centre, device)).T
    return total if device is None else device.to_numpy(total)


def gram_matrix(
    vectors: Rows, others: Rows | None = None, *, centre: GroupMeans | None = None, work: Work = ALL_CORES
) -> NDArray[np.float64]:
    """Return the inner products of two sets of vectors, in float64 and without a float64 copy of them.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, D)
        Those in a file are read by blocks.
    others : ndarray or StoredArray of shape (M, D), optional
        The same vectors by default: half of the tiles are computed then.
    centre : GroupMeans, optional
        Subtracted from the rows first.
    work : spkbase.work.Work
        The result does not depend on the number of workers; a device computes in float64 too.

    Returns
    -------
    ndarray of shape (N, M)
    """
    side = _TILE if work.device is None else _DEVICE_TILE
    right_rows = vectors if others is None else others
    places = [
        (left, right)
        for left in chunk_bounds(len(vectors), side)
        for right in chunk_bounds(len(right_rows), side)
        if others is not None or right <= left
    ]
    tiles = (
        (
            Tile(part(vectors, *left), left[0]),
            None if others is None and left == right else Tile(part(right_rows, *right), right[0]),
        )
        for left, right in places
    )
    gram = np.empty((len(vectors), len(right_rows)))
    products = work.map(partial(tile_product, centre=centre, device=work.device), tiles, total=len(places))
    for (left, right), product in zip(places, products, strict=True):
        gram[slice(*left), slice(*right)] = product
        if others is None and left != right:
            gram[slice(*right), slice(*left)] = product.T
    return gram


@on_device
def combine_rows(
    weights: NDArray[np.float64], vectors: Rows, *, centre: GroupMeans | None = None, work: Work = ALL_CORES
) -> NDArray[np.float64]:
    """Return weighted sums of vectors, weights @ vectors, in float64.

    Parameters
    ----------
    weights : ndarray of shape (K, N)
    vectors : ndarray or StoredArray of shape (N, D)
    centre : GroupMeans, optional
        Subtracted from the rows first.
    work : spkbase.work.Work
        Its device; on the cores this thread alone computes.

    Returns
    -------
    ndarray of shape (K, D)
    """
    device = work.device
    height, width = _TILE, _COLUMNS
    if device is not None:
        height, width = len(vectors), device.rows_of(16 * len(vectors))
    combined = np.zeros((len(weights), vectors.shape[1]))
    with one_blas_thread():
        for start, stop in chunk_bounds(len(vectors), height):
            rows = part(vectors, start, stop)
            tile = Tile(np.asarray(rows) if device is None else rows, start)
            of_tile = weights[:, start:stop] if device is None else device.asarray(weights[:, start:stop])
            for bounds in chunk_bounds(vectors.shape[1], width):
                sums = of_tile @ tile.columns(slice(*bounds), centre, device)
                combined[:, slice(*bounds)] += sums if device is None else device.to_numpy(sums)
    return combined
