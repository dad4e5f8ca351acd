"""Embeddings in npz, npy, HDF5 and safetensors; large ones are mapped where they lie in one piece, not packed."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.columns import IDS, SPEAKERS, VECTORS, Columns, broken, columns_of, name_among
from evaluation.embeddings.plain_data import columns_of_data, is_vector
from spkbase.errors import DataError
from spkbase.files import (
    BROKEN_HDF5,
    BROKEN_NPZ,
    check_array,
    check_characters,
    check_hdf5,
    check_members,
    check_memory,
    is_as_in_memory,
    is_text,
    read_header,
    read_npz,
    read_text,
)

_WINDOW = ("start", "duration", "step")
_SAFE_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_LONGEST_HEAD = 100_000_000


def window_ids(name: str, count: int, start: float, duration: float, step: float) -> list[str]:
    """Return ids of windows that slide over a recording: its name, begin and end in milliseconds.

    Examples
    --------
    >>> window_ids("call", 2, 0.0, 1.5, 0.25)
    ['call-0000000-0001500', 'call-0000250-0001750']
    """
    begins = [round(1000 * (start + step * number)) for number in range(count)]
    return [f"{name}-{begin:07d}-{begin + round(1000 * duration):07d}" for begin in begins]


def read_npz_columns(path: Path, map_above: int) -> Columns:
    """Read an npz: vectors with their ids, windows of a recording, or an array for each utterance."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename[:-4] for info in check_members(archive)]
        key = name_among(names, VECTORS)
        if key is None:
            columns = read_npz(path)
            if columns and not name_among(names, (*IDS, *SPEAKERS)) and all(map(is_vector, columns.values())):
                return columns_of_data(columns, path)
            return columns_of(columns, path, "an npz with")
        mapped = _map_member(path, f"{key}.npy", map_above)
        wanted = _needed(names) - ({key} if mapped is not None else set())
        columns = read_npz(path, *wanted) if wanted else {}
        if mapped is not None:
            columns[key] = mapped
    except BROKEN_NPZ as error:
        if isinstance(error, DataError):
            raise DataError(error.text, file=error.file or path, remedy=error.remedy) from error
        raise broken(path, "npz", error) from error
    made = columns_of(columns, path, "an npz with")
    if made.ids is None and set(_WINDOW) <= set(columns):
        return Columns(_windows(columns, made, path), None, made.vectors)
    return made


def _needed(names: Collection[str]) -> set[str]:
    """Names of the columns that are read, of all."""
    kinds = [name_among(names, kind) for kind in (VECTORS, IDS, SPEAKERS)]
    return {name for name in kinds if name is not None} | ({*_WINDOW} & set(names))


def _windows(columns: dict[str, Any], made: Columns, path: Path) -> list[str]:
    window = [np.asarray(columns[name]) for name in _WINDOW]
    if not all(value.size == 1 and value.dtype.kind in "fiu" and np.isfinite(value).all() for value in window):
        text = f"expected {', '.join(_WINDOW)} of the sliding window in seconds, a number each"
        raise DataError(text, file=path, remedy="write ids beside the vectors")
    return window_ids(path.stem, len(made.vectors), *(float(value.reshape(())) for value in window))


def _map_member(path: Path, name: str, map_above: int) -> NDArray[Any] | None:
    """Map an array within an npz, if it is not packed and large enough."""
    with zipfile.ZipFile(path) as archive:
        info = next((member for member in check_members(archive) if member.filename == name), None)
    if info is None or info.compress_type != zipfile.ZIP_STORED or info.file_size <= map_above:
        return None
    with path.open("rb") as handle:
        handle.seek(info.header_offset)
        local = handle.read(30)
        lengths = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        start = info.header_offset + 30 + lengths
        handle.seek(start)
        shape, fortran, dtype = read_header(handle)
        offset = handle.tell()
    if offset - start + dtype.itemsize * math.prod(shape) != info.file_size:
        raise ValueError(f"{name} is cut short")
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")


def read_npy(path: Path, map_above: int) -> NDArray[Any]:
    """Read or map one array of numbers or text."""
    try:
        size = path.stat().st_size
        with path.open("rb") as handle:
            check_array(handle, size)
        return check_characters(np.load(path, mmap_mode="r" if size > map_above else None, allow_pickle=False))
    except BROKEN_NPZ as error:
        raise broken(path, "npy", error) from error


def read_npy_columns(path: Path, map_above: int) -> Columns:
    """Read one array: a vector, or vectors whose ids stand beside the file."""
    return columns_of_data(read_npy(path, map_above), path)


def read_npy_folder(path: Path, map_above: int) -> Columns:
    """Read a folder of `vectors.npy`, `ids.npy` and `speakers.npy`."""
    names = [file.stem for file in path.glob("*.npy")]
    columns = {name: read_npy(path / f"{name}.npy", map_above) for name in _needed(names) - {*_WINDOW}}
    return columns_of(columns, path, "a folder with")


def read_hdf5_columns(path: Path, map_above: int) -> Columns:
    """Read datasets of the root of an HDF5 file."""
    import h5py

    columns: dict[str, Any] = {}
    try:
        with h5py.File(path, "r") as file:
            check_hdf5(file)
            vectors = name_among(file, VECTORS)
            if vectors == "stat1" and "stat0" in file and file["stat0"].shape[1:] != (1,):
                got = f"stat0 {file['stat0'].shape}"
                raise DataError(f"holds statistics of a mixture, {got}", remedy="extract i-vectors from them first")
            for name in _needed(list(file)) - {*_WINDOW}:
                columns[name] = _read_dataset(file[name], path, map_above if name == vectors else None)
    except BROKEN_HDF5 as error:
        if isinstance(error, DataError):
            raise DataError(error.text, file=path, remedy=error.remedy) from error
        raise broken(path, "HDF5", error) from error
    return columns_of(columns, path, "an HDF5 file with the datasets")


def _read_dataset(dataset: Any, path: Path, map_above: int | None) -> NDArray[Any]:
    if not hasattr(dataset, "shape") or dataset.shape is None:
        raise ValueError(f"{dataset.name} is no array")
    if is_text(dataset):
        return read_text(dataset)
    if dataset.dtype.kind not in "fiub":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, expected numbers or text")
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    offset = dataset.id.get_offset()
    whole = dataset.chunks is None and offset is not None and dataset.id.get_storage_size() == size
    if map_above is not None and size > map_above and whole and dataset.dtype.kind == "f" and is_as_in_memory(dataset):
        return np.memmap(path, dataset.dtype, "r", offset, dataset.shape)
    check_memory(size, str(dataset.name))
    return dataset[()]


def read_safetensors(path: Path) -> Columns:
    """Read a safetensors file: a tensor for each utterance, or one of all whose ids stand beside the file.

    References
    ----------
    The format: eight bytes of a length, a JSON object ``{name: {dtype, shape, data_offsets}}`` of that length, bytes.
    """
    try:
        content = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(content[:8].tobytes(), "little")
        if length > min(_LONGEST_HEAD, len(content) - 8):
            raise ValueError(f"its head claims {length} bytes")
        head = json.loads(content[8 : 8 + length].tobytes())
        body = content[8 + length :]
        arrays = {name: _safe_tensor(entry, body) for name, entry in head.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise broken(path, "safetensors", error) from error
    return columns_of_data(next(iter(arrays.values())) if len(arrays) == 1 else arrays, path)


def _safe_tensor(entry: Any, body: NDArray[np.uint8]) -> NDArray[Any]:
    kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _SAFE_TYPES:
        raise ValueError(f"a tensor of {kind!r:.20}, expected floats")
    numbers = [start, stop, *shape]
    if not all(isinstance(number, int) and 0 <= number <= len(body) for number in numbers) or start > stop:
        raise ValueError("a tensor beyond the file")
    values = np.asarray(body[start:stop]).view(_SAFE_TYPES[kind])
    if kind == "BF16":  # the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)
