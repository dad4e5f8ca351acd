"""HDF5 files of named arrays; a file is complete or absent, and records what it was made from.

Large float arrays are written contiguous and uncompressed: their mantissas do not compress, and rows of a contiguous
dataset can be read one by one. References to other files are refused: links, external and virtual datasets.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, StoredArray
from spkbase.errors import DataError
from spkbase.files import FORMAT_VERSION, atomic_path, check_data

if TYPE_CHECKING:
    import h5py

_WITHIN = "write all arrays into one file"
_checked: set[tuple[str, int, int, int]] = set()

# raised by h5py for damaged files
_BROKEN = (
    OSError,
    RuntimeError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    MemoryError,
    OverflowError,
)


@contextmanager
def create_file(path: str | Path) -> Iterator[h5py.File]:
    """Open a new HDF5 file under a temporary name; it is renamed when the block ends without an error.

    Times are not stored, so that equal contents give equal bytes.

    Raises
    ------
    DataError
        As for `atomic_path`; for a full disk, at the end of the block.
    """
    import h5py

    with atomic_path(path) as temporary, _LateErrors(temporary, "r+b") as handle:
        with h5py.File(handle, "w", track_order=False) as file:
            yield file
        if handle.error is not None:
            raise handle.error


@contextmanager
def new_file(
    path: str | Path, *, attributes: Mapping[str, Any] | None = None
) -> Iterator[h5py.File]:
    """Open a new file like `create_file`; at the end it gets the format version and the attributes."""
    with create_file(path) as file:
        yield file
        for name, value in {"format_version": FORMAT_VERSION, **(attributes or {})}.items():
            file.attrs[name] = value


def write_arrays(
    path: str | Path,
    arrays: Mapping[str, NDArray[Any] | Iterable[str]],
    *,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write named arrays as one HDF5 file, completely or not at all.

    Parameters
    ----------
    path : path
    arrays : mapping
        Arrays by name; arrays of objects and plain sequences are stored as UTF-8 strings.
    attributes : mapping, optional
        Attributes of the file: strings and numbers, such as the fingerprint.
    """
    with new_file(path, attributes=attributes) as file:
        for name, array in arrays.items():
            if isinstance(array, np.ndarray) and array.dtype != object:
                file.create_dataset(name, data=array)
            else:
                write_strings(file, name, array)


def write_strings(file: h5py.Group, name: str, strings: Iterable[str]) -> None:
    """Store strings as a dataset of variable-length UTF-8."""
    import h5py

    array = np.array(list(strings), dtype=object)
    file.create_dataset(name, data=array, shape=array.shape, dtype=h5py.string_dtype("utf-8"))


def write_column(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    """Write an array as SIDEKIT does: compressed, with checksums, and growable."""
    chunks = True if values.size else (1,) * values.ndim
    growable = (None,) * values.ndim
    group.create_dataset(
        name, data=values, compression="gzip", fletcher32=True, chunks=chunks, maxshape=growable
    )


def write_ids(group: h5py.Group, name: str, ids: Iterable[str]) -> None:
    """Write ids as SIDEKIT does: strings of one length.

    Raises
    ------
    DataError
        If an id cannot be encoded, or holds a zero byte, which ends a string in HDF5.
    """
    import h5py

    try:
        raw = [text.encode("utf-8") for text in ids]
    except UnicodeEncodeError as error:
        raise DataError(
            f"id {error.object!r} cannot be written as UTF-8", remedy="rename it"
        ) from error
    for text in raw:
        if b"\0" in text:
            raise DataError(
                f"id {text!r} holds a zero byte, which ends a string in HDF5", remedy="rename it"
            )
    encoding = "ascii" if all(map(bytes.isascii, raw)) else "utf-8"
    kind = h5py.string_dtype(encoding, max(map(len, raw), default=1))
    write_column(group, name, np.array(raw, dtype=kind))


@contextmanager
def open_file(
    path: str | Path, *, image: io.BytesIO | None = None, remedy: str = "remove it and run again"
) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading.

    Parameters
    ----------
    path : path
        The file, or a name for `image` in error messages.
    image : BytesIO, optional
        The bytes of the file, if it is not read from the disk.
    remedy : str
        Remedy for a broken file, and for errors in the block that have no remedy.

    Raises
    ------
    DataError
        If the file is missing, truncated, not HDF5, or links to other files, or the block raises an error, such as for
        a missing dataset; with the name of the file.
    """
    import h5py

    try:
        with h5py.File(path if image is None else image, "r") as file:
            if image is not None or _state(path) not in _checked:
                _check_links(file)
            if image is None:
                _checked.add(_state(path))
            yield file
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    except DataError as error:
        if error.file is not None:
            raise
        raise DataError(error.text, file=path, remedy=error.remedy or remedy) from error
    except _BROKEN as error:
        check_data(path)
        if str(error):
            why = str(error).splitlines()[0]
        else:
            why = type(error).__name__
        raise DataError(f"cannot be read as HDF5: {why}", file=path, remedy=remedy) from error


def check_own(dataset: h5py.Dataset) -> None:
    """Raise a DataError, without a file, if the values of a dataset may lie in other files."""
    if dataset.external or dataset.is_virtual:
        raise DataError(
            f"{dataset.name!r} refers to other files, which are not read", remedy=_WITHIN
        )


def read_arrays(path: str | Path, *names: str) -> dict[str, NDArray[Any]]:
    """Read arrays by name, by default all; strings become arrays of objects. Errors are those of `open_file`."""
    with open_file(path) as file:
        return {name: read_dataset(file[name]) for name in (names or file)}


def read_dataset(dataset: h5py.Dataset) -> NDArray[Any]:
    """Return the values of a dataset; raise a DataError, without a file, unless they are numbers or strings."""
    import h5py

    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise DataError(f"expected {dataset.name} to be an array")
    check_own(dataset)
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return read_strings(dataset)
    if dataset.dtype.kind not in "fiub":
        raise DataError(f"expected numbers or text as {dataset.name}, got {dataset.dtype}")
    values: NDArray[Any] = dataset[()]
    return values


def read_strings(dataset: h5py.Dataset) -> NDArray[np.object_]:
    """Read a column of strings, shape (N,); raise a DataError, without a file, if it is something else."""
    import h5py

    if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
        got = f"{dataset.dtype} of shape {dataset.shape}"
        raise DataError(f"expected {dataset.name.lstrip('/')} to be a column of strings, got {got}")
    check_own(dataset)
    try:
        texts: NDArray[np.object_] = dataset.asstr("utf-8")[()]
    except UnicodeDecodeError as error:
        raise DataError(
            f"{dataset.name.lstrip('/')} holds an id that is not UTF-8: {error.object!r:.60}"
        ) from error
    return texts


def check_forms(path: str | Path, arrays: Mapping[str, Any], **forms: str) -> None:
    """Check the types and numbers of axes of arrays from a file before anything is computed with them.

    Parameters
    ----------
    path : path
        The file, for error messages.
    arrays : mapping
    **forms : str
        For each array, the allowed letters of `numpy.dtype.kind` ("O" for strings), then the number of axes.

    Raises
    ------
    DataError
        If an array is missing or has another type or number of axes.

    Examples
    --------
    >>> check_forms("a.h5", {"ids": np.array(["a"], object), "values": np.zeros((1, 2))}, ids="O1", values="f2")
    """
    for name, form in forms.items():
        array = arrays.get(name)
        if array is None or array.dtype.kind not in form[:-1] or array.ndim != int(form[-1]):
            if array is None:
                got = "nothing"
            else:
                got = f"{array.dtype} of shape {array.shape}"
            text = f"expected {name} with {form[-1]} axes of the kind {form[:-1]}, got {got}"
            raise DataError(text, file=path, remedy="remove it and run again")


def stored_array(path: str | Path, name: str) -> Rows:
    """Return a reference to a contiguous dataset, whose rows are read on demand; read other datasets whole."""
    with open_file(path) as file:
        stored = stored_dataset(file[name], path)
        if stored is None:
            return read_dataset(file[name])
        return stored


def stored_dataset(dataset: Any, path: str | Path) -> StoredArray | None:
    """Return a reference to the rows of a dataset; None if it is not contiguous (compressed, chunked or empty)."""
    import h5py

    if (
        not isinstance(dataset, h5py.Dataset)
        or not dataset.shape
        or dataset.dtype.kind not in "biuf"
    ):
        return None
    check_own(dataset)
    offset = dataset.id.get_offset()
    if (
        offset is None
        or dataset.chunks is not None
        or offset + dataset.nbytes > Path(path).stat().st_size
    ):
        return None
    return StoredArray(Path(path), offset, dataset.shape, dataset.dtype)


def _state(path: str | Path) -> tuple[str, int, int, int]:
    """Return a key of the file and its state, so that its links are checked once and not at each opening."""
    status = Path(path).stat()
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns


def _check_links(file: h5py.File) -> None:
    """Raise a DataError if there is a link to another file; HDF5 would follow it."""
    import h5py

    def outside(name: bytes, link: Any) -> bytes | None:
        if link.type in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
            return None
        return name

    name = file.id.links.visit(outside, info=True)
    if name is not None:
        text = f"{name.decode(errors='replace')!r} is a link to another file, which is not followed"
        raise DataError(text, remedy=_WITHIN)


class _LateErrors(io.FileIO):
    """A file that keeps its first failed write in `error`, because the HDF5 library ends the process on a full disk."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        try:
            while self.error is None and len(view):
                view = view[super().write(view) :]
        except OSError as error:
            self.error = error
        return size

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        read = 0
        while read < len(view):
            count = super().readinto(view[read:])
            if not count:
                break
            read += count
        view[read:] = bytes(len(view) - read)  # zeros for data that could not be written
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            if size is None:
                return self.tell()
            return size
