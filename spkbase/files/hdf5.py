"""Named arrays in HDF5 files that are whole or absent and that know what they were made from.

Big float arrays are written contiguous and uncompressed: their mantissas do not compress, and rows of a contiguous
dataset can be read one by one. Each file carries the fingerprint of its inputs, its configuration and the format
version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, StoredArray
from spkbase.errors import DataError
from spkbase.files.atomic import as_plain, atomic_file
from spkbase.files.hdf5_guard import check_memory, is_as_in_memory
from spkbase.files.hdf5_opening import open_hdf5_checked
from spkbase.files.hdf5_strings import is_text, read_text

if TYPE_CHECKING:
    import h5py

FORMAT_VERSION = 1


def fingerprint(*parts: Any) -> str:
    """Return the digest of configurations, lists and other fingerprints: equal inputs give equal strings.

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
    digest.update(json.dumps([FORMAT_VERSION, *(as_plain(part, _digested) for part in parts)], sort_keys=True).encode())
    return digest.hexdigest()


def _digested(value: Any) -> Any:
    """Turn a single value of a fingerprint into what JSON knows: an array into the digest of its bytes."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return [as_plain(item, _digested) for item in value]
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [as_plain(item, _digested) for item in value]
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


def open_file(path: str | Path) -> AbstractContextManager[h5py.File]:
    """Open an HDF5 file for reading.

    Raises
    ------
    DataError
        If it is missing, truncated or not HDF5, holds what no file of ours does (`spkbase.files.hdf5_guard`), or a
        dataset that is asked for is not there.
    """
    text, remedy = "not a complete HDF5 file of the expected kind", "remove it and run again"
    return open_hdf5_checked(path, broken=text, remedy=remedy, other_remedy=remedy)


def read_arrays(path: str | Path, *names: str) -> dict[str, NDArray]:
    """Read arrays by name, all of them by default; strings come as arrays of objects.

    Raises
    ------
    DataError
        As `open_file`.
    """
    with open_file(path) as file:
        return {name: read_dataset(file[name]) for name in (names or file)}


def check_forms(path: str | Path, arrays: Mapping[str, Any], **forms: str) -> None:
    """Check types and numbers of axes before anything is computed with arrays from a file.

    Parameters
    ----------
    path : path
        The file, for errors.
    arrays : mapping
    **forms : str
        What each array has to be: letters of `numpy.dtype.kind` ("O" for strings) and the number of axes.

    Raises
    ------
    DataError
        If one is missing or is something else.

    Examples
    --------
    >>> check_forms("a.h5", {"ids": np.array(["a"], object), "values": np.zeros((1, 2))}, ids="O1", values="f2")
    """
    for name, form in forms.items():
        array = arrays.get(name)
        if array is None or array.dtype.kind not in form[:-1] or array.ndim != int(form[-1]):
            got = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            text = f"expected {name} with {form[-1]} axes of the kind {form[:-1]}, got {got}"
            raise DataError(text, file=path, remedy="remove it and run again")


def read_dataset(dataset: h5py.Dataset) -> NDArray:
    """Return the values of a dataset; strings as an array of str objects."""
    if is_text(dataset):
        return read_text(dataset)
    if dataset.dtype.kind not in "fiub":
        raise DataError(f"expected numbers or text as {dataset.name}, got {dataset.dtype}")
    check_memory(dataset.nbytes, str(dataset.name))
    return dataset[()]


def stored_array(path: str | Path, name: str) -> Rows:
    """Refer to a contiguous dataset, whose rows are read when they are asked for; other datasets are read whole."""
    with open_file(path) as file:
        stored = stored_dataset(file[name], path)
        return read_dataset(file[name]) if stored is None else stored


def stored_dataset(dataset: Any, path: str | Path) -> StoredArray | None:
    """Return a reference to the rows of a dataset; None if they are not in one piece in its file (packed, or empty)."""
    import h5py

    if not isinstance(dataset, h5py.Dataset) or not dataset.shape or dataset.dtype.kind not in "biuf":
        return None
    offset = dataset.id.get_offset()
    if offset is None or dataset.chunks is not None or offset + dataset.nbytes > Path(path).stat().st_size:
        return None
    if not is_as_in_memory(dataset):
        return None
    return StoredArray(Path(path), offset, dataset.shape, dataset.dtype)


def file_digest(path: str | Path) -> str | None:
    """Return the SHA-256 of a file's bytes; None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    except (OSError, ValueError):
        return None
    return digest.hexdigest()
