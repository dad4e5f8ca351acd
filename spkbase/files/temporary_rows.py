"""Temporary files of rows: for what does not fit the memory, or what workers elsewhere are to read."""

from __future__ import annotations

import atexit
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.files.atomic import bytes_of, make_folder, temporary_name, write_at


class TemporaryRows:
    """Rows (N, D) that are appended to a new file, for which all space is reserved at the start.

    Parameters
    ----------
    folder : path
    shape : tuple of int
    dtype : dtype
    what, remedy : str
        What the rows are, and what to do if there is no space for them.
    named : bool
        Other processes can open the file; it is removed when this process ends, or before by `remove`. Else it has no
        name, and is gone when the last map of it is.

    Raises
    ------
    DataError
        If there is no space, at the start or later.
    """

    def __init__(
        self,
        folder: str | Path,
        shape: tuple[int, int],
        dtype: Any,
        *,
        what: str,
        named: bool,
        remedy: str = "free space",
    ) -> None:
        self.shape, self.dtype, self.what, self._end = shape, np.dtype(dtype), what, 0
        self.size = math.prod(shape) * self.dtype.itemsize
        self._path = temporary_name(make_folder(folder) / "rows")
        if named:
            atexit.register(_remove, self._path, os.getpid())
        try:
            handle = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
            if not named:
                self._path.unlink()
            if self.size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, self.size)
            os.ftruncate(handle, self.size)
        except BaseException as error:
            _remove(self._path, os.getpid())
            if not isinstance(error, OSError):
                raise
            raise DataError(
                f"no space for {self.size / 1e9:.1f} GB of {what}: {error.strerror or error}",
                file=folder,
                remedy=remedy,
            ) from error

    def append(self, rows: NDArray) -> None:
        """Write the next rows."""
        data = np.ascontiguousarray(rows, self.dtype)
        try:
            self._end += write_at(self._file.fileno(), bytes_of(data), self._end)
        except OSError as error:
            raise DataError(f"{self.what} cannot be kept: {error.strerror or error}", file=self._path.parent) from error

    def stored(self) -> StoredArray:
        """Refer to all rows, by the name of the file."""
        return StoredArray(self._path, 0, self.shape, self.dtype)

    def remove(self) -> None:
        """Remove the file."""
        self._file.close()
        _remove(self._path, os.getpid())

    def mapped(self) -> NDArray:
        """Map all rows into memory, read-only."""
        with self._file:
            return np.memmap(self._file, dtype=self.dtype, mode="r", shape=self.shape)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            path.unlink(missing_ok=True)
