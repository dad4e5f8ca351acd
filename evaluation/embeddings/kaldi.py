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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems
from spkbase.files import is_file

"""Vectors of any lengths, or an array (n, D) where all are alike."""

Raw = bytes | mmap.mmap
_ENTRY = re.compile(r"(?P<path>.*?)(:(?P<offset>[0-9]{1,18}))?")
_LONGEST_ID = 4096
_ID = re.compile(rb"[ \t\r\n]*([^ \t\r\n]{0,4097})[ \t\r\n]?")
_WHITE = b" \t\r\n"
_BINARY = b"\0B"
_FIRST_LETTERS = (b"F", b"D", b"C")  # float, double, compressed
_TYPES = {b"FV": "<f4", b"FM": "<f4", b"DV": "<f8", b"DM": "<f8", b"CM": "u1", b"CM2": "<u2", b"CM3": "u1"}
_USUAL: dict[bytes, np.dtype[Any]] = {b"\0BFV \4": np.dtype("<f4"), b"\0BDV \4": np.dtype("<f8")}
_COMPRESSED = struct.Struct("<ffII")  # least value, range, rows, columns
_SIZE = struct.Struct("<BI")  # the number of bytes of a size, and the size


def read_scp(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read the vectors that an scp lists, in its order.

    Raises
    ------
    DataError
        With file and line, all at once: a malformed line, a pipe, a missing archive; or what stands there is no vector.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DataError("expected text in UTF-8", file=path, remedy="an archive's name must end in .ark") from error
    problems = Problems(path)
    ids: list[str] = []
    places: dict[Path, list[tuple[int, int, int]]] = defaultdict(list)
    known: dict[str, Path | None] = {}
    absent: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        name, *rest = line.split(maxsplit=1) or [""]
        entry = "".join(rest).strip()
        match = _ENTRY.fullmatch(entry)
        if name and not (entry and match):
            problems.add(f"expected 'id archive:offset', got {line.strip()[:60]!r}", line=number)
        elif name and (reason := _why_not(entry)):
            problems.add(reason, line=number, remedy="write the vectors to an archive, and an scp of it")
        elif name and match:
            if match["path"] not in known:
                known[match["path"]] = _find(path, match["path"])
            if (archive := known[match["path"]]) is None:
                absent[match["path"]].append(number)
            else:
                places[archive].append((int(match["offset"] or 0), len(ids), number))
                ids.append(name)
    for name, numbers in absent.items():
        more = f", which {len(numbers)} lines name" if len(numbers) > 1 else ""
        remedy = f"tried it as it is, in {path.parent}, and beside the scp; an .ark can be given itself"
        problems.add(f"there is no archive {name!r}{more}", line=numbers[0], remedy=remedy)
    problems.errors.sort(key=lambda error: error.line or 0)
    problems.raise_if_any()
    vectors: dict[int, NDArray[np.floating]] = {}
    for archive, entries in places.items():
        with _mapped(archive) as raw:
            for offset, row, line_number in entries:
                vectors[row] = _decode(raw, offset, path, line_number, f"{archive}:{offset}")[0]
    return ids, [vectors[row] for row in range(len(ids))]


def read_ark(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read all vectors of an archive, in its order; errors as for `read_scp`."""
    path = Path(path)
    ids: list[str] = []
    vectors: list[NDArray[np.floating]] = []
    with _mapped(path) as raw:
        at = 0
        while (match := _ID.match(raw, at)) and match[1]:
            try:
                vector_id = match[1].decode("utf-8")
            except UnicodeDecodeError:
                vector_id = ""
            if not vector_id or len(match[1]) > _LONGEST_ID or "\0" in vector_id:
                raise DataError("expected an id before each vector", file=path, remedy="this is no archive of vectors")
            vector, at = _decode(raw, match.end(), path, None, vector_id)
            ids.append(vector_id)
            vectors.append(vector)
    return ids, vectors


@contextmanager
def _mapped(path: Path) -> Iterator[Raw]:
    """Open a file as bytes that are read where they are asked for."""
    try:
        with path.open("rb") as handle:
            if not os.fstat(handle.fileno()).st_size:
                yield b""
                return
            with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as raw:
                yield raw
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error


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


def _decode(raw: Raw, at: int, path: Path, line: int | None, what: str) -> tuple[NDArray[np.floating], int]:
    """Decode the vector at a place, if one begins there; also give the place behind it."""
    head = raw[at : at + 10]
    if (dtype := _USUAL.get(head[:6])) is not None:  # a vector that is not compressed; others take five times as long
        end = at + 10 + dtype.itemsize * int.from_bytes(head[6:], "little")
        if at + 10 < end <= len(raw):
            return np.frombuffer(raw[at + 10 : end], dtype), end
    head = head[:3]
    binary = head.startswith(_BINARY)
    if not (binary and head[2:] in _FIRST_LETTERS) and not (head and head.lstrip(_WHITE)[:1] in (b"[", b"")):
        got = "the end of the file" if not head else f"{head!r}"
        text = f"expected a vector of Kaldi for {what}, got {got}"
        raise DataError(text, file=path, line=line, remedy="write it again")
    try:
        vector, end = read_binary(raw, at) if binary else read_text_matrix(raw, at)
    except (ValueError, struct.error) as error:
        raise DataError(f"broken vector for {what}: {error}", file=path, line=line, remedy="write it again") from None
    vector = vector[0] if vector.ndim == 2 and len(vector) == 1 else vector
    if vector.ndim != 1 or not vector.size:
        got = f"{vector.dtype} of shape {vector.shape}"
        raise DataError(f"expected a vector of floats for {what}, got {got}", file=path, line=line)
    return vector, end


def read_binary(raw: Raw, at: int = 0) -> tuple[NDArray[np.floating], int]:
    """Read the binary vector or matrix at a place; one inside another object has no \\0B before it.

    Returns
    -------
    array : ndarray of shape (n,) or (rows, columns)
        float64 of the kinds DV and DM, else float32.
    end : int
        The place behind it.

    Raises
    ------
    ValueError
        If it is of another kind or longer than what is left of the file; no memory was taken for it.

    References
    ----------
    D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011; its ``compressed-matrix.h`` says how values are
    packed.
    """
    head = raw[at : at + 32]
    kind, blank, _ = head.removeprefix(_BINARY).partition(b" ")
    if kind not in _TYPES or not blank:
        raise ValueError(f"it is of the kind {kind[:8]!r}")
    at += len(_BINARY) * head.startswith(_BINARY) + len(kind) + 1

    def take(dtype: str, count: int) -> NDArray[Any]:
        nonlocal at
        size = count * np.dtype(dtype).itemsize
        if at + size > len(raw):
            raise ValueError("it is cut short")
        at += size
        return np.frombuffer(raw[at - size : at], dtype)

    if not kind.startswith(b"C"):
        shape = []
        for _ in range(1 if kind.endswith(b"V") else 2):
            n_bytes, size = _SIZE.unpack(take("u1", _SIZE.size).tobytes())
            if n_bytes != 4:
                raise ValueError(f"a size of {n_bytes} bytes, expected 4")
            shape.append(size)
        return take(_TYPES[kind], math.prod(shape)).reshape(shape), at
    least, width, rows, columns = _COMPRESSED.unpack(take("u1", _COMPRESSED.size).tobytes())

    def unpacked(codes: NDArray[Any], levels: float) -> NDArray[np.float32]:
        return np.asarray(least + codes.astype(np.float32) * width / levels, np.float32)

    if kind == b"CM":
        corners = unpacked(take("<u2", 4 * columns), 65535.0).reshape(columns, 4)
        return _between(take("u1", rows * columns).reshape(columns, rows), corners).T, at
    values = unpacked(take(_TYPES[kind], rows * columns), 65535.0 if kind == b"CM2" else 255.0)
    return values.reshape(rows, columns), at


def _between(codes: NDArray[np.uint8], corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn codes (columns, rows) into values between the quantiles (columns, 4) of their column."""
    first, low, high, last = (corners[:, [place]] for place in range(4))
    steps = codes.astype(np.float32)
    outer = np.where(
        codes <= 64, first + (low - first) * steps * (1 / 64), high + (last - high) * (steps - 192) * (1 / 63)
    )
    return np.where((codes > 64) & (codes <= 192), low + (high - low) * (steps - 64) * (1 / 128), outer)


def read_text_matrix(raw: Raw, at: int = 0, dtype: type[np.floating] = np.float32) -> tuple[NDArray[np.floating], int]:
    """Read the vector or matrix between brackets at a place.

    Returns
    -------
    array : ndarray of `dtype`
        Of shape (n,), or (rows, columns) where a line ends between the brackets.
    end : int
        The place behind it.

    Raises
    ------
    ValueError
        If a bracket is missing, rows differ in length, or something is no number.
    """
    end = raw.find(b"]", at)
    inside = raw[at : max(end, at)]
    if end < 0 or not inside.lstrip(_WHITE).startswith(b"["):
        raise ValueError("expected numbers between brackets")
    if raw[end + 1 : end + 2] not in (b"", b"\n", b"\r"):
        raise ValueError("expected the end of the line after ']'")
    lines = inside.lstrip(_WHITE)[1:].split(b"\n")
    rows = [line.split() for line in lines if line.strip()]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its rows differ in length")
    if torn := next((number for row in rows for number in row if b"_" in number), None):  # float() takes 1_000
        raise ValueError(f"{torn!r:.60} is no number")
    values = np.array([[float(number) for number in row] for row in rows], np.float64).astype(dtype)
    return values if len(lines) > 1 else values.reshape(-1), end + 1
