"""Named arrays in HDF5 files that are whole or absent and that know what they were made from.

Big float arrays are written contiguous and uncompressed: their mantissas do not compress, and a contiguous dataset can
be mapped into memory. Each file carries the fingerprint of its inputs, its configuration and the format version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.files import atomic_file
from evaluation.formats.broken import BROKEN_HDF5
from spkver.errors import DataError

if TYPE_CHECKING:
    import h5py

FORMAT_VERSION = 1


def fingerprint(*parts: Any) -> str:
    """Digest of configurations, lists and other fingerprints: equal inputs give equal strings.

    Parameters
    ----------
    *parts
        Dataclasses, mappings, sequences, strings, numbers, paths and NumPy arrays.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": [2.0]}) == fingerprint({"b": (2.0,), "a": 1})
    True
    """
    digest = hashlib.sha256()
    digest.update(json.dumps([FORMAT_VERSION, *map(_plain, parts)], sort_keys=True).encode())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return [_plain(item) for item in value]
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    raise TypeError(f"no fingerprint for {type(value)}")


def write_arrays(
    path: str | Path, arrays: Mapping[str, NDArray | Iterable[str]], *, attributes: Mapping[str, Any] | None = None
) -> None:
    """Write named arrays as one HDF5 file, whole or not at all.

    Parameters
    ----------
    path : path
    arrays : mapping
        Name to array; arrays of objects and plain sequences are stored as UTF-8 strings.
    attributes : mapping, optional
        Strings and numbers at the root of the file, such as the fingerprint.
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


@contextmanager
def new_file(path: str | Path, *, attributes: Mapping[str, Any] | None = None) -> Iterator[h5py.File]:
    """Open a new HDF5 file under a temporary name; it takes its place when the block ends without an error."""
    import h5py

    # times are not tracked, so that equal contents are equal bytes
    with atomic_file(path) as handle, h5py.File(handle, "w", track_order=False) as file:
        yield file
        file.attrs["format_version"] = FORMAT_VERSION
        for name, value in (attributes or {}).items():
            file.attrs[name] = value


@contextmanager
def open_file(path: str | Path) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading.

    Raises
    ------
    DataError
        If it is missing, truncated or not HDF5, or a dataset that is asked for is not there.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    except DataError:
        raise
    except BROKEN_HDF5 as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"not a complete HDF5 file of the expected kind: {why}", file=path, remedy="remove it and run again"
        ) from error


def read_arrays(path: str | Path, *names: str) -> dict[str, NDArray]:
    """Read arrays by name, all of them by default; strings come as arrays of objects.

    Raises
    ------
    DataError
        As `open_file`.
    """
    with open_file(path) as file:
        return {name: read_dataset(file[name]) for name in (names or file)}


def read_dataset(dataset: h5py.Dataset) -> NDArray:
    """Values of a dataset; strings as an array of str objects."""
    import h5py

    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.asarray(dataset.asstr()[()], dtype=object)
    return dataset[()]


def map_array(path: str | Path, name: str) -> NDArray:
    """Map a contiguous dataset into memory, read-only."""
    with open_file(path) as file:
        dataset = file[name]
        offset = dataset.id.get_offset()
        if offset is None:  # empty, or written by somebody else in chunks
            return dataset[()]
        return np.memmap(path, dtype=dataset.dtype, mode="r", offset=offset, shape=dataset.shape)


def file_digest(path: str | Path) -> str | None:
    """SHA-256 of a file's bytes; None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()
