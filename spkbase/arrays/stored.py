"""Rows of an array that stand in a file: read when they are asked for, and sent to workers as a file name.

An array of millions of rows is neither held in memory nor sent to workers: what travels is `StoredArray`, a reference
of a few hundred bytes, and each worker reads its own rows. Reads are plain reads, not maps: a file that was cut off
meanwhile is an error, where a mapped one would end the process.

**Rows that a worker needs, wherever the array is.**

**Rows that are worked out when they are asked for, such as those of another array less something.**
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line

# Columns are read row by row where they are less than this share of rows that are long enough to be worth it.
_SHARE, _LONG = 0.5, 4096
_REMEDY = "the file was changed or removed meanwhile, or this machine does not see it: start again"


@one_line
@dataclass(frozen=True)
class StoredArray:
    """Rows of an array that lies contiguous (in C order) in a file.

    Attributes
    ----------
    path : path
        The file; kept as an absolute path, since workers have other working folders.
    offset : int [bytes]
        Where the first row begins.
    shape : tuple of int
        Of the array, (n, ...); at least one axis.
    dtype : np.dtype
        Of plain numbers.

    Raises
    ------
    DataError
        If a number is negative, there is no axis or the type is not one of plain numbers; and whenever rows are read
        from a file that cannot be opened or ends too early.

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

    def __post_init__(self) -> None:
        shape, dtype = tuple(int(length) for length in self.shape), np.dtype(self.dtype)
        if self.offset < 0 or not shape or min(shape) < 0 or dtype.hasobject:
            text = f"expected an offset, a shape and a type of numbers, got {self.offset}, {shape} and {dtype}"
            raise DataError(text, file=self.path)
        for name, value in (
            ("path", Path(os.path.abspath(self.path))),  # noqa: PTH100  # `resolve` would follow links
            ("offset", int(self.offset)),
            ("shape", shape),
            ("dtype", dtype),
        ):
            object.__setattr__(self, name, value)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def part(self, start: int, stop: int) -> StoredArray:
        """Refer to the rows from `start` to before `stop`, bounded as those of a slice; reads nothing."""
        rows = range(len(self))[start:stop]
        return StoredArray(
            self.path, self.offset + rows.start * self._row_bytes, (len(rows), *self.shape[1:]), self.dtype
        )

    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Read rows, named by an int, a slice, or an array of integers or bools; ``[rows, a:b]`` reads columns."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        if (self.ndim < 2 and isinstance(index, tuple)) or not isinstance(columns, slice):
            raise IndexError(f"expected rows, or rows and a slice of columns, got {index!r}")
        numbers = self._numbers(rows)
        first, last, step = columns.indices(self.shape[1]) if self.ndim > 1 else (0, 1, 1)
        width = max(0, last - first)
        narrow = step == 1 and self._row_bytes >= _LONG and width < _SHARE * self.shape[1]
        with _opened(self.path) as handle:
            if narrow:
                values = self._read_columns(handle, np.atleast_1d(numbers), first, width)
            else:
                values = self._read_rows(handle, np.atleast_1d(numbers))
        if not narrow and self.ndim > 1 and columns != slice(None):
            values = np.ascontiguousarray(values[:, columns])
        return values if np.ndim(numbers) else values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("an array in a file cannot be had without a copy")
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)

    def _numbers(self, rows: Any) -> NDArray[np.intp] | np.intp:
        """Numbers of rows, as an index of any kind means them; checks the bounds."""
        if isinstance(rows, slice):
            return np.arange(*rows.indices(len(self)), dtype=np.intp)
        if isinstance(rows, int | np.integer):
            return np.intp(range(len(self))[rows])
        numbers: NDArray[np.intp] = np.arange(len(self), dtype=np.intp)[rows]
        return numbers

    @property
    def _row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def _read_rows(self, handle: int, numbers: NDArray[np.intp]) -> NDArray[Any]:
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        target = rows.reshape(-1).view(np.uint8).data
        # rows that follow each other come in one read
        ends = [*(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)] if len(numbers) else []
        for start, stop in zip([0, *ends], ends, strict=False):
            begin = self.offset + int(numbers[start]) * self._row_bytes
            self._fill(handle, target[start * self._row_bytes : stop * self._row_bytes], begin)
        return rows

    def _read_columns(self, handle: int, numbers: NDArray[np.intp], first: int, width: int) -> NDArray[Any]:
        columns = np.empty((len(numbers), width, *self.shape[2:]), self.dtype)
        target = columns.reshape(-1).view(np.uint8).data
        cell = math.prod(self.shape[2:]) * self.dtype.itemsize
        for row, number in enumerate(numbers.tolist()):
            piece = target[row * width * cell : (row + 1) * width * cell]
            self._fill(handle, piece, self.offset + number * self._row_bytes + first * cell)
        return columns

    def _fill(self, handle: int, target: memoryview, begin: int) -> None:
        done = 0
        while done < len(target):  # the system hands out 2 GB at most at once
            try:
                count = os.preadv(handle, [target[done:]], begin + done)
            except OSError as error:
                raise DataError(f"not readable: {error.strerror}", file=self.path, remedy=_REMEDY) from error
            if not count:
                text = f"expected {len(target)} bytes from {begin} on, the file ends after {done} of them"
                raise DataError(text, file=self.path, remedy=_REMEDY)
            done += count


Rows = NDArray[Any] | StoredArray
"""Rows in memory or in a file; ``np.asarray`` gives them in memory."""


def part(array: Rows, start: int, stop: int) -> Rows:
    """Return some rows: a view of those in memory, a reference to those in a file."""
    return array.part(start, stop) if isinstance(array, StoredArray) else array[start:stop]


def stored_rows(array: Rows) -> Rows:
    """Refer to the file of an array that is mapped from one; other arrays are given back as they are.

    Examples
    --------
    >>> stored_rows(np.zeros(3))
    array([0., 0., 0.])
    """
    if not isinstance(array, np.memmap) or array.filename is None or not array.ndim or not array.flags.c_contiguous:
        return array
    if array.mode not in ("r", "r+", "w+"):  # changes of a private map are not in the file
        return array
    root: np.memmap = array
    while isinstance(root.base, np.memmap):
        root = root.base
    offset = root.offset + array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    if array.flags.writeable:
        root.flush()
    return StoredArray(Path(array.filename), offset, array.shape, array.dtype)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file for reads at any place; gives its descriptor."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"not readable: {error.strerror}", file=path, remedy=_REMEDY) from error
    try:
        yield handle
    finally:
        os.close(handle)


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
