"""What all of SIDEKIT's HDF5 files have in common: strings, columns and the ways in which they can be broken.

SIDEKIT keeps ids as ASCII byte strings. Other ids are written here as UTF-8 strings and marked as such: SIDEKIT, which
reads ASCII alone, then stops with an error rather than take a wrong id. Here both are read, marked or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.hdf5 import open_file
from spkbase.hdf5 import read_strings as read_column


def open_hdf5(path: str | Path) -> AbstractContextManager[h5py.File]:
    """Open a file for reading, as `spkbase.hdf5.open_file`."""
    return open_file(path, remedy="it is broken or of another kind: copy or write it again")


def read_array(
    group: h5py.Group, name: str, *, kinds: str = "fiu", shape: tuple[int | None, ...] | None = None
) -> NDArray[Any]:
    """Read a dataset of numbers.

    Parameters
    ----------
    group : h5py.Group
        Where it lies.
    name : str
        Its name.
    kinds : str
        Kinds of numpy types that are allowed.
    shape : tuple of int or None, optional
        The shape that is expected; None for a free axis.

    Raises
    ------
    DataError
        If it is missing or of another type or shape.
    """
    dataset = _dataset(group, name)
    if dataset.dtype.kind not in kinds:
        raise DataError(f"{name} should hold numbers, not {dataset.dtype}")
    given = dataset.shape
    wrong = given is None or (
        shape is not None
        and (len(given) != len(shape) or any(n not in (None, m) for n, m in zip(shape, given, strict=True)))
    )
    if wrong:
        expected = "" if shape is None else str(tuple("any" if n is None else n for n in shape)).replace("'", "")
        raise DataError(f"{name} should have the shape {expected}, not {given}")
    array: NDArray[Any] = np.asarray(dataset[()])
    return array


def read_strings(group: h5py.Group, name: str) -> NDArray[np.object_]:
    """Read a column of ids as str, (N,)."""
    return read_column(_dataset(group, name))


def write_column(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    """Write numbers as SIDEKIT does: gzip, checksums, axes that can grow."""
    group.create_dataset(
        name, data=values, maxshape=(None,) * values.ndim, compression="gzip", fletcher32=True, chunks=_chunks(values)
    )


def write_strings(group: h5py.Group, name: str, ids: Sequence[str] | NDArray[np.object_]) -> None:
    """Write a column of ids: ASCII byte strings where that is possible, else UTF-8.

    Raises
    ------
    DataError
        If an id holds a zero byte (HDF5 would cut it there) or cannot be encoded.
    """
    try:
        raw = [text.encode("utf-8") for text in ids]
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object!r} cannot be written as UTF-8", remedy="rename it") from error
    cut = next((text for text in raw if b"\0" in text), None)
    if cut is not None:
        raise DataError(f"id {cut!r} holds a zero byte, which ends a string in HDF5", remedy="rename it")
    charset = "ascii" if all(map(bytes.isascii, raw)) else "utf-8"
    kind: Any = h5py.string_dtype(charset, max(map(len, raw), default=1))
    write_column(group, name, np.array(raw, dtype=kind))


def _dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    dataset = group.get(name)
    if not isinstance(dataset, h5py.Dataset):
        there = ", ".join(sorted(group)[:12]) or "nothing"
        raise DataError(f"expected {name!r}, found {there}")
    return dataset


def _chunks(values: NDArray[Any]) -> tuple[int, ...] | bool:
    return True if values.size else (1,) * values.ndim
