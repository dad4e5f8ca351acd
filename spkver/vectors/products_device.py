"""MAP means, kernels and projections of supervectors on a device, in float64 as on the cores.

What these leave is small beside what goes in, so they are not shortened to float32; blocks go there as they are stored.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.work import Array, Device, chunk_bounds, on_device

_COLUMNS = 4096  # dimensions that are summed in the dtype of a product
_SIDE = 4096  # rows and columns of a block of inner products


class Matrix(Protocol):
    """What gives blocks of rows and columns: an array, one in a file, or one that is made when it is asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: tuple[slice, slice], /) -> NDArray: ...


@on_device
def adapted_means(
    zeroth: NDArray,
    first: NDArray,
    means: NDArray[np.float64],
    scale: NDArray[np.float64] | None,
    *,
    relevance: float,
    epsilon: float,
    device: Device,
) -> NDArray:
    """MAP-adapted means as supervectors; see `spkver.vectors.supervectors`.

    Parameters
    ----------
    zeroth : ndarray [shape=(N, C)]
    first : ndarray [shape=(N, C * D)]
    means : ndarray [shape=(C, D)]
        Of the mixture.
    scale : ndarray [shape=(C * D,)] or None
        Factor of each entry.
    relevance : float
        Frames at which the data weigh as much as the prior.
    epsilon : float
        Added to the counts.
    device : Device

    Returns
    -------
    ndarray [shape=(N, C * D)]
        In the dtype of the statistics.
    """
    xp = device.xp
    own = device.asarray(means, np.float64)
    factor = 1.0 if scale is None else device.asarray(scale.reshape(means.shape))
    vectors = np.empty(first.shape, first.dtype)
    for start, stop in chunk_bounds(len(vectors), device.rows_of(6 * 8 * means.size)):
        count = _float64(zeroth[start:stop].reshape(-1, len(means), 1), device)
        total = _float64(first[start:stop].reshape(-1, *means.shape), device)
        share = count + epsilon
        # where nothing is shared out the prior stays
        share = xp.where(share > 0, share / xp.where(share > 0, share + relevance, 1.0), 0.0)
        mean = xp.where(count > 0, total / xp.where(count > 0, count, 1.0), 0.0)
        adapted = (share * mean + (1 - share) * own) * factor
        vectors[start:stop] = device.to_numpy(adapted).reshape(stop - start, -1)
    return vectors


@on_device
def inner_products(
    left: Matrix, right: Matrix | None, device: Device, *, dtype: type = np.float64
) -> NDArray[np.float64]:
    """Inner products (N, M) of rows (N, D) and (M, D), the same rows by default of None.

    Products run in `dtype`; sums over blocks of dimensions are float64.
    """
    others = left if right is None else right
    found = np.empty((len(left), len(others)))
    for rows in chunk_bounds(len(left), _SIDE):
        for columns in chunk_bounds(len(others), _SIDE):
            here = slice(*rows), slice(*columns)
            if right is None and columns < rows:
                found[here] = found[here[1], here[0]].T
                continue
            same = right is None and columns == rows
            found[here] = _block(left, others, rows, None if same else columns, dtype, device)
    return found


def _block(
    left: Matrix,
    right: Matrix,
    rows: tuple[int, int],
    columns: tuple[int, int] | None,
    dtype: type,
    device: Device,
) -> NDArray[np.float64]:
    """One block of inner products; `columns` None stands for the same rows."""
    xp, total = device.xp, None
    for part in chunk_bounds(left.shape[1], _COLUMNS):
        one = _cast(left[slice(*rows), slice(*part)], dtype, device)
        other = one if columns is None else _cast(right[slice(*columns), slice(*part)], dtype, device)
        product = xp.astype(one @ xp.matrix_transpose(other), xp.float64)
        total = product if total is None else total + product
    return device.to_numpy(total)


@on_device
def combinations(weights: NDArray, vectors: Matrix, device: Device) -> NDArray[np.float64]:
    """Sums of vectors (N, D) with weights (k, N): weights @ vectors in float64, shape (k, D)."""
    found = np.empty((len(weights), vectors.shape[1]))
    own = device.asarray(weights, np.float64)
    for columns in chunk_bounds(vectors.shape[1], device.rows_of(16 * len(vectors))):
        found[:, slice(*columns)] = device.to_numpy(own @ _float64(vectors[slice(None), slice(*columns)], device))
    return found


class Projector:
    """Removes directions from blocks of vectors: x - N N^T x; the directions stay on the device.

    Parameters
    ----------
    directions : ndarray [shape=(k, D)]
        Orthonormal rows.
    device : Device
    """

    def __init__(self, directions: NDArray, device: Device) -> None:
        self.device = device
        self._directions = device.asarray(directions, np.float64)

    @on_device
    def __call__(self, vectors: Rows) -> NDArray:
        """Project vectors (N, D); they keep their dtype."""
        found = np.empty(vectors.shape, vectors.dtype)
        for start, stop in chunk_bounds(len(vectors), self.device.rows_of(4 * 8 * vectors.shape[1])):
            found[start:stop] = self.device.to_numpy(self.there(self.device.asarray(vectors[start:stop])))
        return found

    def there(self, vectors: Array) -> Array:
        """Project vectors that are on the device."""
        xp = self.device.xp
        block = xp.astype(vectors, xp.float64)
        block = block - (block @ xp.matrix_transpose(self._directions)) @ self._directions
        return xp.astype(block, vectors.dtype)


def _float64(array: NDArray, device: Device) -> Array:
    return device.xp.astype(device.asarray(array), device.xp.float64)


def _cast(array: NDArray, dtype: type, device: Device) -> Array:
    return _float64(array, device) if dtype is np.float64 else device.asarray(array, dtype)
