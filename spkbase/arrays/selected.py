"""Rows that a worker needs, wherever the array is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays.stored import Rows, StoredArray
from spkbase.showing import one_line


@one_line
@dataclass(frozen=True)
class SelectedRows:
    """Some rows of an array, in any order: nothing is copied or read until a worker asks for them.

    On the way to another process go the rows themselves, or the name of the file that they are in.

    Attributes
    ----------
    array : ndarray or StoredArray of shape (N, ...)
    rows : ndarray of int of shape (n,)

    Examples
    --------
    >>> np.asarray(SelectedRows(np.arange(6.0).reshape(3, 2), np.array([2, 0]))).tolist()
    [[4.0, 5.0], [0.0, 1.0]]
    """

    array: Rows
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> SelectedRows:
        """Return the rows from `start` to `stop`, of those selected."""
        return SelectedRows(self.array, self.rows[start:stop])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = self.array[self.rows]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.array, StoredArray):
            return SelectedRows, (self.array, self.rows)
        return SelectedRows, (self.array[self.rows], np.arange(len(self.rows)))


def fill_rows(arrays: Sequence[NDArray], blocks: Iterable[Sequence[NDArray]]) -> None:
    """Fill arrays of one length by blocks of rows, which come in order and hold rows of each array.

    Examples
    --------
    >>> both = np.empty(3), np.empty((3, 1))
    >>> fill_rows(both, [(np.ones(2), np.zeros((2, 1))), (np.full(1, 7.0), np.ones((1, 1)))])
    >>> both[0].tolist(), both[1].tolist()
    ([1.0, 1.0, 7.0], [[0.0], [0.0], [1.0]])
    """
    start = 0
    for block in blocks:
        stop = start + len(block[0])
        for array, rows in zip(arrays, block, strict=True):
            array[start:stop] = rows
        start = stop
