"""Packed bytes: gzip and npz, whose contents are compared with what is there before memory is taken for them."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from spkbase.files.hdf5_guard import HARMLESS_BYTES, MOST_COMPRESSION, check_memory

# lists whose lines repeat shrink to a hundredth; a thousandth is one byte over and over, which no list is
_MOST_TEXT_COMPRESSION = 250
_HARMLESS_TEXT = 1 << 26
_PIECE = 1 << 20
_LONGEST_HEAD = 1 << 16
_LAST_CHARACTER, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)
_GZIP = 31  # zlib's number for a stream with the header of gzip
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's two; others shrink without a bound


def unpack_gzip(raw: bytes, most: int | None = None) -> bytes:
    """Decompress a file of gzip, some pieces at a time.

    Parameters
    ----------
    raw : bytes
        Its content, of one or several streams.
    most : int, optional
        How many bytes it may hold; by default 250 times what was read of it at any point, 64 MiB at least, so that
        memory is taken for no more than that.

    Raises
    ------
    ValueError
        If it holds more.
    EOFError
        If it is cut off.
    zlib.error
        If it is damaged.
    """
    pieces: list[bytes] = []
    held, rest = 0, raw
    while rest := rest.lstrip(b"\0") if pieces else rest:
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            piece = stream.decompress(rest, _PIECE)
            rest = stream.unconsumed_tail
            held += len(piece)
            packed = len(raw) - len(rest)
            allowed = max(_HARMLESS_TEXT, _MOST_TEXT_COMPRESSION * packed) if most is None else most
            if held > allowed:
                raise ValueError(f"it unpacks to more than {allowed >> 20} MiB, of {packed} bytes")
            if not piece and not rest and not stream.eof:
                raise EOFError("it is cut off")
            pieces.append(piece)
        rest = stream.unused_data
    return b"".join(pieces)


def read_npz(source: str | Path | BinaryIO, *names: str) -> dict[str, np.ndarray]:
    """Read arrays of an npz, all or those of the names that are there, without pickle.

    Raises
    ------
    ValueError or another of `spkbase.files.BROKEN_NPZ`
        If it is broken, holds objects, or a member claims more than its bytes can hold.
    """
    with zipfile.ZipFile(source) as archive:
        members = check_members(archive)
        chosen = [info for info in members if not names or info.filename[:-4] in names]
        return {info.filename[:-4]: _read_member(archive, info) for info in chosen}


def check_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Compare the sizes and packing of the arrays of an npz with the file, and return the members."""
    file: Any = archive.fp
    room = file.seek(0, io.SEEK_END)
    members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    for info in members:
        if info.compress_type not in _PACKINGS:
            raise ValueError(f"{info.filename[:60]!r} is packed in a way that NumPy does not write")
        room -= info.compress_size
        packed = info.compress_type != zipfile.ZIP_STORED
        possible = max(HARMLESS_BYTES, MOST_COMPRESSION * info.compress_size) if packed else info.compress_size
        if room < 0 or info.file_size > possible:
            raise ValueError(f"{info.filename[:60]!r} claims {info.file_size} bytes, more than the file can hold")
    if len({info.filename for info in members}) < len(members):
        raise ValueError("it holds an array twice")
    return members


def read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the head of an array: shape, whether columns come first, and type.

    Raises
    ------
    ValueError or another of `spkbase.files.BROKEN_NPZ`
        If it is broken, holds objects, or its sizes are no sizes.
    """
    version = np.lib.format.read_magic(stream)
    width = 2 if version == (1, 0) else 4
    raw_length = stream.read(width)
    length = int.from_bytes(raw_length, "little")
    if length > _LONGEST_HEAD:  # NumPy takes memory for any
        raise ValueError(f"its head claims {length} bytes")
    read = np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(io.BytesIO(raw_length + stream.read(length)))
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never read: they can carry programs")
    if dtype.itemsize == 0 or any(isinstance(length, bool) or length < 0 for length in shape):
        raise ValueError(f"there is no array of shape {shape} and type {dtype}")
    return shape, fortran, dtype


def check_array(handle: BinaryIO, size: int) -> None:
    """Compare the head of a file of one array, ``npy``, with its size in bytes; errors as for `read_header`."""
    shape, _, dtype = read_header(handle)
    if handle.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of shape {shape} does not fit its {size} bytes")


def check_characters(array: np.ndarray) -> np.ndarray:
    """Return an array as it is, unless it is of text with numbers that are no characters: NumPy would stumble later."""
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.str[0]}u4")
        if (codes > _LAST_CHARACTER).any() or ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])).any():
            raise ValueError("its text is none: a number stands for no character")
    return array


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Read one array; its size is compared with its head before the rest is unpacked."""
    with archive.open(info) as stream:
        shape, fortran, dtype = read_header(stream)
        expected = info.file_size - stream.tell()
        if math.prod(shape) * dtype.itemsize != expected:
            raise ValueError(f"an array of shape {shape} does not fit its {expected} bytes")
        check_memory(expected, info.filename)
        body = stream.read()
    if len(body) != expected:
        raise ValueError(f"{info.filename[:60]!r} is cut off")
    return check_characters(np.frombuffer(body, dtype).reshape(shape, order="F" if fortran else "C"))
