"""Rows that are worked out when they are asked for, such as those of another array less something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ComputedRows:
    """Rows (N, ...) that a function makes; it stands where `Rows` of an array in a file could.

    Parameters
    ----------
    shape : tuple of int
    compute : callable
        Given numbers of rows, an array of int64 of shape (n,), returns them as float64, of shape (n, ...).

    Examples
    --------
    >>> squares = ComputedRows((4, 1), lambda numbers: numbers[:, None] ** 2.0)
    >>> squares[1:3].tolist(), squares[np.array([3, 0])].tolist(), len(squares)
    ([[1.0], [4.0]], [[9.0], [0.0]], 4)
    """

    dtype = np.dtype(np.float64)

    def __init__(self, shape: tuple[int, ...], compute: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> None:
        self.shape, self._compute = shape, compute

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Make the rows of a slice, or of an array of integers."""
        return self._compute(np.arange(len(self))[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)
