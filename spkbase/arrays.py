"""Rows of arrays in files: read on demand, and sent to workers as a file name.

An array of millions of rows is neither held in memory nor sent to workers. They get a `StoredArray`, a reference of a
few hundred bytes, and each worker reads its own rows.
"""

from __future__ import annotations

import atexit
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, few
from spkbase.showing import one_line

Floats = NDArray[np.float64]


class _Rows(ABC):
    """Base class of rows that are not in memory; subclasses have `shape`, `dtype` and `__getitem__`."""

    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Return rows."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self[:]
        if dtype is None:
            return values
        return values.astype(dtype, copy=False)


@one_line
@dataclass(frozen=True)
class StoredArray(_Rows):
    """Rows of an array that is stored contiguously (in C order) in a file.

    Attributes
    ----------
    path : path
        The file, absolute.
    offset : int [bytes]
        Offset of the first row.
    shape : tuple of int
        Shape (n, ...) of the array; at least one axis.
    dtype : np.dtype
        A plain number type.

    Raises
    ------
    DataError
        Whenever rows are read from a file that cannot be opened or ends too early.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(6.0).tofile(file.name)
    ...     stored = StoredArray(Path(file.name), 0, (3, 2), np.dtype(float))
    ...     stored.part(1, 3)[[1, 0], :1].tolist()
    [[4.0], [2.0]]
    """

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Number of bytes of all rows."""
        return math.prod(self.shape) * self.dtype.itemsize

    def part(self, start: int, stop: int) -> StoredArray:
        """Return a reference to rows `start` to `stop` - 1, clipped as in a slice; nothing is read."""
        rows = range(len(self))[start:stop]
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        return StoredArray(
            self.path,
            self.offset + rows.start * row_bytes,
            (len(rows), *self.shape[1:]),
            self.dtype,
        )

    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Read rows; the index is as for an array in memory."""
        rows: NDArray[Any]
        if not self.nbytes:
            rows = np.empty(self.shape, self.dtype)[index]
            return rows
        try:
            # takes half as long as mapped memory
            if isinstance(index, slice) and index.step in (None, 1):
                part = self.part(*index.indices(len(self))[:2])
                return np.fromfile(
                    self.path, self.dtype, math.prod(part.shape), offset=part.offset
                ).reshape(part.shape)
            return np.array(np.memmap(self.path, self.dtype, "r", self.offset, self.shape)[index])
        except (OSError, ValueError) as error:  # ValueError: the file is too short
            remedy = (
                "the file was changed or removed, or this machine cannot access it: start again"
            )
            raise DataError(f"not readable: {error}", file=self.path, remedy=remedy) from error


Rows = NDArray[Any] | StoredArray
"""Rows in memory or in a file; ``np.asarray`` gives them in memory."""


def part(array: Rows, start: int, stop: int) -> Rows:
    """Return some rows: a view of an array in memory, a reference to an array in a file."""
    if isinstance(array, StoredArray):
        return array.part(start, stop)
    return array[start:stop]


@one_line
@dataclass(frozen=True)
class SelectedRows:
    """Rows selected from an array, in any order; nothing is copied or read until a worker uses them.

    Another process gets the rows, or the name of their file.

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
        """Return the selected rows from `start` to `stop` - 1."""
        return SelectedRows(self.array, self.rows[start:stop])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = self.array[self.rows]
        if dtype is None:
            return rows
        return rows.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.array, StoredArray):
            return SelectedRows, (self.array, self.rows)
        return SelectedRows, (self.array[self.rows], np.arange(len(self.rows)))


def fill_rows(arrays: Sequence[Any], blocks: Iterable[Sequence[NDArray[Any]]]) -> None:
    """Fill arrays of equal length, in memory or in an HDF5 file, with blocks of rows that come in order.

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


class ComputedRows(_Rows):
    """Rows (N, ...) that a function computes on demand; usable like the rows of an array in a file.

    Parameters
    ----------
    shape : tuple of int
    compute : callable
        Function of row numbers, int64 of shape (n,), that returns the rows, shape (n, ...).
    dtype : dtype

    Examples
    --------
    >>> squares = ComputedRows((4, 1), lambda numbers: numbers[:, None] ** 2.0)
    >>> squares[1:3].tolist(), squares[np.array([3, 0])].tolist(), len(squares)
    ([[1.0], [4.0]], [[9.0], [0.0]], 4)
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        compute: Callable[[NDArray[np.int64]], NDArray[Any]],
        dtype: Any = np.float64,
    ) -> None:
        self.shape = shape
        self._compute = compute
        self.dtype = np.dtype(dtype)

    def __getitem__(self, index: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Compute the rows of a slice, or of an array of integers."""
        return self._compute(np.arange(len(self))[index])


def keep_rows(
    folder: str | Path, shape: tuple[int, ...], dtype: Any, blocks: Iterable[NDArray[Any]]
) -> StoredArray:
    """Write blocks of rows to a file that is removed when this process ends, and refer to it.

    Parameters
    ----------
    folder : path
    shape : tuple of int
        Shape of all rows together.
    dtype : dtype
    blocks : iterable of ndarray
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    # runs remove files with this suffix
    handle, name = tempfile.mkstemp(".spkver-tmp", ".rows.", Path(folder).absolute())
    path = Path(name)
    atexit.register(path.unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
    return StoredArray(path, 0, shape, np.dtype(dtype))


def chosen_rows(rows: Any, ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers of the rows chosen by a slice, a mask, numbers or ids.

    Parameters
    ----------
    rows : slice, or array_like of bool of shape (n,), of int or of str
        The choice; numbers below 0 count from the end.
    ids : ndarray of str of shape (n,)
        Id of each row; an id of several rows chooses all of them.

    Raises
    ------
    DataError
        If a mask has another length, a number is out of range, or an id is unknown.

    Examples
    --------
    >>> ids = np.array(["a", "b", "c"], object)
    >>> chosen_rows(["c", "a"], ids).tolist(), chosen_rows([True, False, True], ids).tolist()
    ([2, 0], [0, 2])
    """
    expected = f"expected a slice, a mask, numbers or ids of {len(ids)} rows"
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        if rows.ndim != 1:
            got = f"{rows.dtype} of shape {rows.shape}"
            raise DataError(f"{expected}, got {got}", remedy="for a single row, give [row]")
        if rows.dtype.kind in "OU":
            return _rows_of_ids(rows.tolist(), ids)
        if not rows.size:
            rows = rows.astype(int)
    try:
        chosen: NDArray[np.int64] = np.arange(len(ids))[rows]
    except IndexError as error:
        raise DataError(f"{expected}: {error}") from error
    return chosen


def _rows_of_ids(names: list[Any], ids: NDArray[Any]) -> NDArray[np.int64]:
    rows_of: dict[Any, list[int]] = {}
    for row, name in enumerate(ids.tolist()):
        rows_of.setdefault(name, []).append(row)
    absent = [name for name in names if name not in rows_of]
    if absent:
        raise DataError(f"{len(absent)} of {len(names)} ids do not exist: {few(absent, repr)}")
    return np.concatenate([rows_of[name] for name in names])
