r"""Vectors in Kaldi's archives: ``.ark``, binary or text, and ``.scp``, which says where in an archive each one stands.

No entry of an scp is ever run: a pipe, standard input or a range is an error; what is decoded must begin as an array
does. After the id and one blank an archive holds, in little endian,

    text       [ 0.5 -1 2 ]                          a vector; where lines end inside, the rows of a matrix
    FV, DV     \0B FV _ 4 n values                   float32 or float64; _ is a blank, 4 the bytes of the size n
    FM, DM     \0B FM _ 4 rows 4 columns values      row by row
    CM2, CM3   \0B CM2 _ least range rows columns codes
                                                     uint16 or uint8: least + range code / 65535, or / 255
    CM         \0B CM _ least range rows columns quantiles codes
                                                     uint8, column by column; 0 to 64, 64 to 192 and 192 to 255 go
                                                     linearly from each of the column's quantiles 0, 1/4, 3/4 and 1,
                                                     four uint16 as in CM2, to the next

A matrix of one row counts as a vector.

An archive of an scp is looked for as it is named (absolute, or from the current folder), then from the folder of the
scp, then by its name alone beside the scp.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import struct
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems
from spkbase.files import is_file

Vectors = Sequence[NDArray[np.floating]] | NDArray[np.floating]
"""Vectors of any lengths, or an array (n, D) where all are alike."""

_ENTRY = re.compile(r"(?P<path>.*?)(:(?P<offset>[0-9]{1,18}))?")
_LONGEST_ID = 4096
_WHITE = b" \t\r\n"
_BINARY = b"\0B"
_FIRST_LETTERS = (b"F", b"D", b"C")  # float, double, compressed
_TYPES = {b"FV": "<f4", b"FM": "<f4", b"DV": "<f8", b"DM": "<f8", b"CM": "u1", b"CM2": "<u2", b"CM3": "u1"}
_COMPRESSED = struct.Struct("<ffII")  # least value, range, rows, columns
_SIZE = struct.Struct("<BI")  # the number of bytes of a size, and the size
_TEXT_BYTES = 1 << 16
_VECTOR_HEAD = len(b"\0BFV \4") + 4
_MOST_COPIES = 4


def read_scp(path: str | Path) -> tuple[list[str], Vectors]:
    """Read the vectors that an scp lists, in its order.

    Raises
    ------
    DataError
        With file and line, all at once: a malformed line, a pipe, a missing archive; or what stands there is no vector.
    """
    path = Path(path)
    problems = Problems(path)
    ids: list[str] = []
    places: dict[Path, list[tuple[int, int, int]]] = defaultdict(list)
    known: dict[str, Path | None] = {}
    absent: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(_lines(path), 1):
        columns = line.split(maxsplit=1)
        if not columns:
            continue
        if len(columns) != 2:
            problems.add(f"expected 'id archive:offset', got {line.strip()[:60]!r}", line=number)
            continue
        vector_id, entry = columns[0], columns[1].strip()
        name, _, offset = entry.rpartition(":")
        if (archive := known.get(name)) is not None and offset.isascii() and offset.isdigit() and len(offset) < 19:
            places[archive].append((int(offset), len(ids), number))  # as the lines before it
            ids.append(vector_id)
            continue
        reason = _why_not(entry)
        if reason:
            problems.add(reason, line=number, remedy="write the vectors to an archive, and an scp of it")
            continue
        match = _ENTRY.fullmatch(entry)
        assert match is not None
        name = match["path"]
        if name not in known:
            known[name] = _find(path, name)
        archive = known[name]
        if archive is None:
            absent[name].append(number)
            continue
        places[archive].append((int(match["offset"] or 0), len(ids), number))
        ids.append(vector_id)
    for name, numbers in absent.items():
        more = f", which {len(numbers)} lines name" if len(numbers) > 1 else ""
        remedy = f"tried it as it is, in {path.parent}, and beside the scp; an .ark can be given itself"
        problems.add(f"there is no archive {name!r}{more}", line=numbers[0], remedy=remedy)
    problems.errors.sort(key=lambda error: error.line or 0)
    problems.raise_if_any()
    return ids, _read_places(path, places, len(ids))


def read_ark(path: str | Path) -> tuple[list[str], Vectors]:
    """Read all vectors of an archive, in its order; errors as for `read_scp`."""
    path = Path(path)
    if (whole := read_equal_vectors(path)) is not None:
        return whole
    ids: list[str] = []
    vectors: list[NDArray[np.floating]] = []
    try:
        with path.open("rb") as handle:
            while vector_id := _next_id(handle, path):
                ids.append(vector_id)
                vectors.append(_decode(handle, path, None, vector_id))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    return ids, vectors


def read_equal_vectors(path: Path) -> tuple[list[str], NDArray[np.floating]] | None:
    """Read an archive of nothing but binary vectors of one type and length at once; None if it is another."""
    ids: list[bytes] = []
    vectors: list[bytes] = []
    try:
        with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            place = raw.find(_BINARY, 0, _LONGEST_ID)
            head = raw[place : place + _VECTOR_HEAD]
            dtype, length = _equal_vector(head)
            position = 0
            while position < len(raw):
                blank = raw.find(b" ", position, position + _LONGEST_ID)
                start = blank + 1 + _VECTOR_HEAD
                stop = start + length
                if blank <= position or stop > len(raw) or raw[blank + 1 : start] != head:
                    return None
                ids.append(raw[position:blank])
                vectors.append(raw[start:stop])
                position = stop
        text = b"\n".join(ids).decode("utf-8")
    except (OSError, ValueError):  # the reader of single vectors says what is wrong
        return None
    names = text.split("\n")
    if len(names) != len(ids) or any(mark in text for mark in "\t\r\0"):
        return None
    return names, np.frombuffer(b"".join(vectors), dtype).reshape(len(names), -1)


def _equal_vector(head: bytes) -> tuple[np.dtype[Any], int]:
    """Return type and bytes of a binary vector by its head; a ValueError if it is none."""
    kind = head[2:4]
    if len(head) < _VECTOR_HEAD or head[:2] != _BINARY or kind not in (b"FV", b"DV") or head[4:6] != b" \4":
        raise ValueError("no binary vector")
    dtype = np.dtype(_TYPES[kind])
    length = int.from_bytes(head[6:], "little") * dtype.itemsize
    if not length:
        raise ValueError("no values")
    return dtype, length


def _read_places(path: Path, places: dict[Path, list[tuple[int, int, int]]], count: int) -> Vectors:
    """Read vectors at (offset, row, line of the scp) of each archive, one archive open at a time."""
    vectors: list[Any] = [None] * count
    for archive, entries in places.items():
        equal = _read_equal_places(archive, [offset for offset, _, _ in entries])
        if equal is not None and len(entries) == count:
            rows = [row for _, row, _ in entries]
            return equal if rows == list(range(count)) else equal[np.argsort(rows)]
        if equal is not None:
            for (_, row, _), vector in zip(entries, equal, strict=True):
                vectors[row] = vector
            continue
        try:
            with archive.open("rb") as handle:
                for offset, row, line in sorted(entries):
                    handle.seek(offset)
                    vectors[row] = _decode(handle, path, line, f"{archive}:{offset}")
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", file=archive, remedy="check it") from error
    return vectors


def _read_equal_places(archive: Path, offsets: list[int]) -> NDArray[np.floating] | None:
    """Read binary vectors of one type and length at once; None if they are others, or beyond the file."""
    try:
        with archive.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            head = raw[offsets[0] : offsets[0] + _VECTOR_HEAD]
            dtype, length = _equal_vector(head)
            stop = _VECTOR_HEAD + length
            if max(offsets) + stop > len(raw) or len(offsets) * length > _MOST_COPIES * len(raw):
                return None
            if any(raw[offset : offset + _VECTOR_HEAD] != head for offset in offsets):
                return None
            values = b"".join([raw[offset + _VECTOR_HEAD : offset + stop] for offset in offsets])
    except (OSError, ValueError):  # the reader of single vectors says what is wrong
        return None
    return np.frombuffer(values, dtype).reshape(len(offsets), -1)


def _why_not(entry: str) -> str:
    """Return why an entry is not read, if so."""
    if entry.startswith("|") or entry.endswith("|"):
        return f"is a command, and commands are never run: {entry[:60]!r}"
    if entry == "-":
        return "names standard input"
    if entry.endswith("]"):
        return f"asks for a range of an array: {entry[:60]!r}"
    return ""


def _find(scp: Path, name: str) -> Path | None:
    candidates = [Path(name), scp.parent / name, scp.parent / Path(name).name]
    return next((candidate for candidate in candidates if is_file(candidate)), None)


def _decode(handle: BinaryIO, path: Path, line: int | None, what: str) -> NDArray[np.floating]:
    """Decode the vector at the place of the handle, if one begins there."""
    start = handle.tell()
    head = handle.read(3)
    handle.seek(start)
    binary = head.startswith(_BINARY)
    if not (binary and head[2:] in _FIRST_LETTERS) and not (head and head.lstrip(_WHITE)[:1] in (b"[", b"")):
        got = "the end of the file" if not head else f"{head!r}"
        raise DataError(
            f"expected a vector of Kaldi for {what}, got {got}", file=path, line=line, remedy="write it again"
        )
    try:
        vector = read_binary(handle) if binary else read_text_matrix(handle)
    except (ValueError, struct.error) as error:
        raise DataError(f"broken vector for {what}: {error}", file=path, line=line, remedy="write it again") from None
    if vector.ndim == 2 and len(vector) == 1:
        vector = vector[0]
    if vector.ndim != 1 or not vector.size:
        got = f"{vector.dtype} of shape {vector.shape}"
        raise DataError(f"expected a vector of floats for {what}, got {got}", file=path, line=line)
    return vector


def read_binary(handle: BinaryIO) -> NDArray[np.floating]:
    """Read the binary vector or matrix at the place of a handle; one inside another object has no \\0B before it.

    Returns
    -------
    ndarray of shape (n,) or (rows, columns)
        float64 of the kinds DV and DM, else float32.

    Raises
    ------
    ValueError
        If it is of another kind or longer than what is left of the file; no memory was taken for it.

    References
    ----------
    D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011; its ``compressed-matrix.h`` says how values are
    packed.
    """
    start = handle.tell()
    head = handle.read(32)
    kind, blank, _ = head.removeprefix(_BINARY).partition(b" ")
    if kind not in _TYPES or not blank:
        raise ValueError(f"it is of the kind {kind[:8]!r}")
    handle.seek(start + len(_BINARY) * head.startswith(_BINARY) + len(kind) + 1)
    if kind.startswith(b"C"):
        least, width, rows, columns = _COMPRESSED.unpack(_take(handle, _COMPRESSED.size))
        quantiles = _values(handle, "<u2", 4 * columns) if kind == b"CM" else None
        codes = _values(handle, _TYPES[kind], rows * columns)
        if quantiles is not None:
            corners = _unpacked(quantiles, least, width, 65535.0).reshape(columns, 4)
            return _between(codes.reshape(columns, rows), corners).T
        return _unpacked(codes, least, width, 65535.0 if kind == b"CM2" else 255.0).reshape(rows, columns)
    shape = tuple(_read_size(handle) for _ in range(1 if kind.endswith(b"V") else 2))
    return _values(handle, _TYPES[kind], math.prod(shape)).reshape(shape)


def _unpacked(codes: NDArray[Any], least: float, width: float, levels: float) -> NDArray[np.float32]:
    """Turn codes of 0 to `levels` into values from `least` to `least` + `width`."""
    values: NDArray[np.float32] = least + codes.astype(np.float32) * width / levels
    return values


def _between(codes: NDArray[np.uint8], corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn codes (columns, rows) into values between the quantiles (columns, 4) of their column."""
    first, low, high, last = (corners[:, [place]] for place in range(4))
    steps = codes.astype(np.float32)
    outer = np.where(
        codes <= 64, first + (low - first) * steps * (1 / 64), high + (last - high) * (steps - 192) * (1 / 63)
    )
    return np.where((codes > 64) & (codes <= 192), low + (high - low) * (steps - 64) * (1 / 128), outer)


def _read_size(handle: BinaryIO) -> int:
    n_bytes, size = _SIZE.unpack(_take(handle, _SIZE.size))
    if n_bytes != 4:
        raise ValueError(f"a size of {n_bytes} bytes, expected 4")
    return int(size)


def _values(handle: BinaryIO, dtype: str, count: int) -> NDArray[Any]:
    return np.frombuffer(_take(handle, count * np.dtype(dtype).itemsize), dtype)


def _take(handle: BinaryIO, size: int) -> bytes:
    """Read so many bytes, which must be there."""
    if size > os.fstat(handle.fileno()).st_size - handle.tell():
        raise ValueError("it is cut short")
    return handle.read(size)


def read_text_matrix(handle: BinaryIO, dtype: type[np.floating] = np.float32) -> NDArray[np.floating]:
    """Read the vector or matrix between brackets at the place of a handle, which stays behind it.

    Returns
    -------
    ndarray of `dtype`, of shape (n,), or (rows, columns) where a line ends between the brackets

    Raises
    ------
    ValueError
        If a bracket is missing, rows differ in length, or something is no number.
    """
    start = handle.tell()
    blocks = [handle.read(_TEXT_BYTES)]
    while blocks[-1] and b"]" not in blocks[-1]:
        blocks.append(handle.read(_TEXT_BYTES))
    inside, bracket, after = b"".join([*blocks, handle.read(1)]).partition(b"]")
    if not bracket or not inside.lstrip(_WHITE).startswith(b"["):
        raise ValueError("expected numbers between brackets")
    if after[:1] not in (b"", b"\n", b"\r"):
        raise ValueError("expected the end of the line after ']'")
    handle.seek(start + len(inside) + 1)
    lines = inside.lstrip(_WHITE)[1:].split(b"\n")
    rows = [line.split() for line in lines if line.strip()]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its rows differ in length")
    torn = next((number for row in rows for number in row if b"_" in number), None)  # float() takes 1_000
    if torn is not None:
        raise ValueError(f"{torn!r:.60} is no number")
    values = np.array([[float(number) for number in row] for row in rows], np.float64).astype(dtype)
    return values if len(lines) > 1 else values.reshape(-1)


def _next_id(handle: BinaryIO, path: Path) -> str:
    """Read the id before a vector; empty at the end of the file."""
    letters = bytearray()
    while byte := handle.read(1):
        if byte in _WHITE:
            if letters:
                break
            continue
        letters += byte
        if len(letters) > _LONGEST_ID:
            break
    try:
        text = letters.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if letters and (not text or len(letters) > _LONGEST_ID or "\0" in text):
        raise DataError("expected an id before each vector", file=path, remedy="this is no archive of vectors")
    return text


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DataError("expected text in UTF-8", file=path, remedy="an archive's name must end in .ark") from error
