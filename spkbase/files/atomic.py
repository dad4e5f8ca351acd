"""Files that are whole or absent: written beside their place under a temporary name, flushed, then renamed."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

TEMPORARY = ".spkver-tmp"
"""Marks names of files and folders in the making: only what bears it may be removed as left by a killed run."""


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; on success it takes the place of `path`, else it is removed.

    Parameters
    ----------
    path : path
        The file to write. Its folder is made if it is missing.

    Raises
    ------
    DataError
        If the folder cannot be written or the disk is full, or at the place is something that is no regular file: a
        device, which a new file would replace for everybody.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print((Path(folder) / "a.txt").read_text())
    whole
    """
    path = Path(path)
    if _is_special(path):
        raise DataError("is a device or a pipe, which is not written to", file=path, remedy="give the path of a file")
    # the suffix is kept, for writers that choose the format by it
    temporary = temporary_name(path, path.suffix)
    try:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        _flush(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if error.filename is not None and Path(error.filename).resolve() not in (temporary.resolve(), path.resolve()):
            raise  # of another file, which the caller was reading
        raise disk_error(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def temporary_name(path: Path, suffix: str = "") -> Path:
    """Name something in the making beside its place.

    It is named before it is made: an interrupt may come at any moment, and whoever is to remove it must know it then.
    """
    return path.parent / f".{path.stem[:40]}.{os.urandom(4).hex()}{TEMPORARY}{suffix}"


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a binary file that takes the place of `path` on success; a full disk is an error at the end of the block.

    For the HDF5 library, which does not let go of a file that it could not write and may take the process with it:
    writes that fail are remembered instead of failing.

    Parameters
    ----------
    path : path

    Raises
    ------
    DataError
        As `atomic_path`.
    """
    with atomic_path(path) as temporary, _LateErrors(temporary) as file:
        yield file  # type: ignore[misc]  # as much of a binary file as h5py needs
        if file.error is not None:
            raise file.error


class _LateErrors(io.RawIOBase):
    """A file for writing and reading whose first error waits in `error`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=0)
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        view, written = memoryview(data).cast("B"), 0
        while self.error is None and written < len(view):
            with self._noted():
                written += self._file.write(view[written:]) or 0
        return len(view)

    def readinto(self, buffer: Any) -> int:
        view, read = memoryview(buffer).cast("B"), 0
        while read < len(view) and (count := self._file.readinto(view[read:])):
            read += count
        view[read:] = bytes(len(view) - read)
        return len(view)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        with self._noted():
            self._file.truncate(size)
        return self.tell() if size is None else size

    def close(self) -> None:
        with self._noted():
            self._file.close()
        super().close()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = self.error or error


def is_file(path: str | Path) -> bool:
    """Return whether there is a file; also for what a list holds and no file can be named: too long, a zero byte."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def size_and_time(path: str | Path) -> tuple[int | None, int | None]:
    """Return the size in bytes and the time of change in ns of a file; None twice where it is missing."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # a zero byte, in a damaged list
        return None, None
    return status.st_size, status.st_mtime_ns


def make_folder(path: str | Path) -> Path:
    """Make a folder and those above it, unless it is there; a DataError if it cannot be made."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"folder cannot be made: {error.strerror}"
        raise DataError(text, file=path, remedy="choose another place") from error
    return Path(path)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def as_plain(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Turn dataclasses and mappings into dictionaries with names of text, lists and tuples into lists.

    Examples
    --------
    >>> as_plain({1: (Path("a"), [2.5])}, str)
    {'1': ['a', ['2.5']]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name), leaf) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_plain(item, leaf) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item, leaf) for item in value]
    return leaf(value)


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array; no copy."""
    return array.reshape(-1).view(np.uint8).data


def write_at(file: int, data: bytes | memoryview, place: int) -> int:
    """Write all of a buffer at a place of an open file; return the number of its bytes."""
    view, done = memoryview(data), 0
    while done < len(view):
        done += os.pwrite(file, view[done:], place + done)
    return done


def _is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder; names that are impossible are told later."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _flush(path: Path) -> None:
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an OSError inside of the block into the error of a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> DataError:
    """Return the error of a file that cannot be written, with the reason: a full disk, for instance."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "free space or choose another output folder" if full else "check the folder and its rights"
    # h5py puts pages into its texts, but keeps the number
    reason = os.strerror(error.errno) if error.errno else str(error)
    return DataError(f"cannot be written: {reason}", file=path, remedy=remedy)
