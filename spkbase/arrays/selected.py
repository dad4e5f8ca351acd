"""Rows that a worker needs, wherever the array is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays.stored import Rows, StoredArray


@dataclass(frozen=True)
class SelectedRows:
    """Some rows of an array, in any order: nothing is copied or read until a worker asks for them.

    On the way to another process go the rows themselves, or the name of the file that they are in.

    Attributes
    ----------
    array : ndarray or StoredArray [shape=(N, ...)]
    rows : ndarray of int [shape=(n,)]

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
        """Fewer of the rows."""
        return SelectedRows(self.array, self.rows[start:stop])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.array[self.rows]
        return found if dtype is None else found.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.array, StoredArray):
            return SelectedRows, (self.array, self.rows)
        return SelectedRows, (self.array[self.rows], np.arange(len(self.rows)))
