"""Columns of strings in HDF5, of fixed or of variable length.

Strings of variable length are read here and not by the library, which takes memory for any length that a file names,
and comes to no end in a heap where an object has the length 0. A row of such a column says how long its string is, in
which heap it lies and which one it is there; a heap is a list of objects one behind the other.

References
----------
"HDF5 File Format Specification Version 3.0", The HDF Group: III.E, "Disk Format: Level 1E - Global Heap".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spkbase.errors import DataError
from spkbase.files.atomic import is_file
from spkbase.files.hdf5_guard import bytes_of_row, check_memory, refused, shown, visit_pieces

if TYPE_CHECKING:
    import h5py

_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_CHECKSUM = 4  # bytes of fletcher32
_HEAP = b"GCOL\1"

Read = Callable[[int, int], bytes]


def is_text(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset holds strings; references and nested arrays look like them to NumPy, but are none."""
    import h5py

    return h5py.check_string_dtype(dataset.dtype) is not None


def read_text(dataset: h5py.Dataset) -> np.ndarray:
    """Read a column of strings, shape (N,) of str, of a file that `check_hdf5` has passed.

    Raises
    ------
    DataError
        If it holds anything else, an id that is not UTF-8, or strings that together are longer than the file: one long
        string may be named by many rows. It names no file.
    """
    name = str(dataset.name).lstrip("/")
    if not is_text(dataset) or dataset.ndim != 1:
        raise DataError(f"expected {name} to be a column of strings, got {dataset.dtype} of shape {dataset.shape}")
    check_memory(dataset.nbytes, name)
    raw = dataset[()].tolist() if dataset.dtype.kind == "S" else _strings(dataset, name)
    values = np.empty(len(raw), object)
    try:
        values[:] = [text.decode("utf-8") for text in raw]
    except UnicodeDecodeError as error:
        raise DataError(f"{name} holds an id that is not UTF-8: {error.object!r:.80}") from error
    return values


def _strings(dataset: h5py.Dataset, name: str) -> list[bytes]:
    """Strings of variable length."""
    size, base = int(dataset.file.id.get_filesize()), int(dataset.file.userblock_size)
    _, n_length = dataset.file.id.get_create_plist().get_sizes()
    rows = _rows(dataset, bytes_of_row(dataset.id), name)
    lengths = rows[:, :4].copy().view("<u4").ravel()
    if int(lengths.sum()) > size:
        raise refused(f"{shown(name)} holds strings that are longer together than the file")
    read = reader_of(dataset.file)
    heaps: dict[int, dict[int, bytes]] = {}
    room, strings = size, []
    for row, length in zip(rows, lengths.tolist(), strict=True):
        if not length:
            strings.append(b"")
            continue
        address = int.from_bytes(row[4:-4].tobytes(), "little")
        if address not in heaps:
            heaps[address] = _heap(read, base + address, room, n_length, name)
            room -= sum(map(len, heaps[address].values()))
        strings.append(_text(heaps[address], int.from_bytes(row[-4:].tobytes(), "little"), length, name))
    return strings


def string_at(file: h5py.File, row: bytes, name: str) -> bytes:
    """Read the string that a value of variable length stands for.

    Parameters
    ----------
    file : h5py.File
    row : bytes
        The value as it stands in the file: length, address of the heap, number of the object.
    name : str
        For errors.

    Raises
    ------
    DataError
        If the string is not there. It names no file.
    """
    length, address = int.from_bytes(row[:4], "little"), int.from_bytes(row[4:-4], "little")
    if not length:
        return b""
    _, n_length = file.id.get_create_plist().get_sizes()
    offset = int(file.userblock_size) + address
    heap = _heap(reader_of(file), offset, int(file.id.get_filesize()), n_length, name)
    return _text(heap, int.from_bytes(row[-4:], "little"), length, name)


def _text(heap: dict[int, bytes], number: int, length: int, name: str) -> bytes:
    text = heap.get(number)
    if text is None or len(text) < length:
        raise refused(f"{shown(name)} names a string that is not there")
    return text[:length].partition(b"\0")[0]  # the library ends a string at a zero byte too


def _heap(read: Read, offset: int, room: int, n_length: int, name: str) -> dict[int, bytes]:
    """Objects of a heap by their numbers; it may hold `room` bytes."""
    head = read(offset, 8 + n_length)
    size = int.from_bytes(head[8:], "little")
    if not head.startswith(_HEAP) or len(head) < 8 + n_length or size > room:
        raise refused(f"{shown(name)} names a heap that is none")
    raw = read(offset, size)
    objects: dict[int, bytes] = {}
    at = 8 + n_length
    while at + 8 + n_length <= len(raw):
        number = int.from_bytes(raw[at : at + 2], "little")
        length = int.from_bytes(raw[at + 8 : at + 8 + n_length], "little")
        at += 8 + n_length
        if number == 0:  # what is left is free
            break
        objects[number] = raw[at : at + length]
        at += length + -length % 8
    return objects


def _rows(dataset: h5py.Dataset, width: int, name: str) -> np.ndarray:
    """Rows as they stand in the file, shape (N, width) of bytes; zeros where nothing was written."""
    rows = np.zeros((len(dataset), width), np.uint8)
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None:
            raw = np.frombuffer(reader_of(dataset.file)(offset, rows.nbytes), np.uint8)
            rows.reshape(-1)[: len(raw)] = raw
        return rows
    plan = dataset.id.get_create_plist()
    filters = [plan.get_filter(number)[0] for number in range(plan.get_nfilters())]
    if not set(filters) <= {_DEFLATE, _SHUFFLE, _FLETCHER}:
        raise refused(f"{shown(name)} holds strings that are packed in a way that is not read")
    corners: list[tuple[int, ...]] = []
    visit_pieces(dataset.id, lambda piece: corners.append(piece.chunk_offset))
    for corner in corners:
        mask, packed = dataset.id.read_direct_chunk(corner)[:2]
        raw = np.frombuffer(_unpacked(mask, packed, filters, width, dataset.chunks[0] * width), np.uint8)
        piece = raw[: len(raw) // width * width].reshape(-1, width)
        target = rows[corner[0] : corner[0] + len(piece)]
        target[:] = piece[: len(target)]
    return rows


def _unpacked(mask: int, raw: bytes, filters: list[int], width: int, most: int) -> bytes:
    """Undo the filters of a piece of rows."""
    for number, code in reversed(list(enumerate(filters))):
        if mask >> number & 1:
            continue
        if code == _FLETCHER:
            raw = raw[:-_CHECKSUM]
        elif code == _SHUFFLE:
            n_rows = len(raw) // width
            raw = np.frombuffer(raw[: n_rows * width], np.uint8).reshape(width, n_rows).T.tobytes()
        else:
            try:
                raw = zlib.decompressobj().decompress(raw, most)
            except zlib.error as error:
                raise refused(f"a piece of strings is damaged: {error}") from error
    return raw


def reader_of(file: h5py.File) -> Read:
    """Return a function that reads bytes of a file by offset and size, on the disk or in memory."""
    path = Path(file.filename)
    if not is_file(path):
        image = memoryview(file.id.get_file_image())
        return lambda offset, size: bytes(image[offset : offset + size])

    def read(offset: int, size: int) -> bytes:
        with path.open("rb") as handle:
            handle.seek(offset)
            return handle.read(size)

    return read
