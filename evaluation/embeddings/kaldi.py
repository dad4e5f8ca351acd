r"""Vectors in Kaldi's archives: ``.ark``, binary or text, and ``.scp``, which gives positions in archives.

No entry of an scp is ever run: a pipe, standard input or a range is an error; only arrays are decoded. After the id
and one blank an archive holds, in little endian,

    text       [ 0.5 -1 2 ]                          a vector; where lines end inside, the rows of a matrix
    FV, DV     \0B FV _ 4 n values                   float32 or float64; _ is a blank, 4 the bytes of the size n
    FM, DM     \0B FM _ 4 rows 4 columns values      row by row
    CM2, CM3   \0B CM2 _ least range rows columns codes
                                                     uint16 or uint8: least + range code / 65535, or / 255
    CM         \0B CM _ least range rows columns quantiles codes
                                                     uint8, column by column; 0 to 64, 64 to 192 and 192 to 255 are
                                                     linear from each of the column's quantiles 0, 1/4, 3/4 and 1,
                                                     four uint16 as in CM2, to the next

A matrix of one row counts as a vector.

An archive named by an scp is looked for as given (absolute, or from the current folder), then from the folder of the
scp, then by its file name in that folder.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import cut_lines
from spkbase.errors import DataError, Problems
from spkbase.files import check_data, is_file, read_text_bytes

Raw = bytes | mmap.mmap
_PLACE = re.compile(r"(?P<path>.*?)(:(?P<offset>[0-9]{1,18}))?")
_ID = re.compile(rb"[ \t\r\n]*([^ \t\r\n\0]+)[ \t\r\n]?")
_HEAD = 64
_WHITE = b" \t\r\n"
_BINARY = b"\0B"
_KINDS = {
    b"FV": "<f4",
    b"FM": "<f4",
    b"DV": "<f8",
    b"DM": "<f8",
    b"CM": "u1",
    b"CM2": "<u2",
    b"CM3": "u1",
}
_TYPES = {kind: np.dtype(name) for kind, name in _KINDS.items()}


def read_scp(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read the vectors listed in an scp, in its order.

    Raises
    ------
    DataError
        With file and line, all at once: a malformed line, a pipe, a missing archive; or no vector at the offset.
    """
    path = Path(path)
    problems = Problems(path)
    ids: list[str] = []
    positions: dict[Path, list[tuple[int, int, int]]] = defaultdict(list)
    archives: dict[str, Path | None] = {}
    for line, (name, *words) in cut_lines(path, read_text_bytes(path), None):
        entry = " ".join(words)
        match = _PLACE.fullmatch(entry)
        if not entry or not match:
            problems.add(f"expected 'id archive:offset', got {f'{name} {entry}'[:60]!r}", line=line)
        elif entry == "-" or entry.startswith("|") or entry.endswith(("|", "]")):
            text = f"is a command, standard input or a range, which are never read: {entry[:60]!r}"
            problems.add(
                text, line=line, remedy="write the vectors to an archive, and an scp of it"
            )
        else:
            wanted = match["path"]
            if wanted not in archives:
                candidates = [Path(wanted), path.parent / wanted, path.parent / Path(wanted).name]
                archives[wanted] = next(filter(is_file, candidates), None)
                if archives[wanted] is None:
                    remedy = f"tried it as given, in {path.parent}, and beside the scp; an .ark can be given itself"
                    problems.add(f"there is no archive {wanted!r}", line=line, remedy=remedy)
            archive = archives[wanted]
            if archive:
                positions[archive].append((int(match["offset"] or 0), len(ids), line))
                ids.append(name)
    problems.raise_if_any()
    return ids, _vectors_at(positions, path)


def _vectors_at(
    positions: Mapping[Path, Sequence[tuple[int, int, int]]], path: Path
) -> list[NDArray[np.floating]]:
    """Read the vectors of each archive by (offset, row, line of the scp), in the order of the rows."""
    vectors: dict[int, NDArray[np.floating]] = {}
    for archive, entries in positions.items():
        with _mapped(archive) as raw:
            for offset, row, line in entries:
                vectors[row] = _decode(raw, offset, path, line, f"{archive}:{offset}")[0]
    return [vectors[row] for row in range(len(vectors))]


def read_ark(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read all vectors of an archive, in its order; errors as for `read_scp`."""
    path = Path(path)
    ids: list[str] = []
    vectors: list[NDArray[np.floating]] = []
    with _mapped(path) as raw:
        at = 0
        match = _ID.match(raw, at)
        while match:
            try:
                ids.append(match[1].decode("utf-8"))
            except UnicodeDecodeError as error:
                text = "expected an id before each vector"
                raise DataError(
                    text, file=path, remedy="the file is not an archive of vectors"
                ) from error
            vector, at = _decode(raw, match.end(), path, None, ids[-1])
            vectors.append(vector)
            match = _ID.match(raw, at)
    return ids, vectors


def read_binary(raw: Raw, at: int = 0) -> tuple[NDArray[np.floating], int]:
    """Read the binary vector or matrix at an offset; inside another object it has no \\0B before it.

    Returns
    -------
    array : ndarray of shape (n,) or (rows, columns)
        float64 for the kinds DV and DM, else float32.
    end : int
        The offset after it.

    Raises
    ------
    ValueError
        If its type is another one, or if it exceeds the rest of the file.

    References
    ----------
    D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011; its ``compressed-matrix.h`` says how values are
    packed.
    """
    at += len(_BINARY) * (raw[at : at + 2] == _BINARY)
    kind, blank, _ = raw[at : at + 8].partition(b" ")
    if kind not in _TYPES or not blank:
        raise ValueError(f"it has the kind {kind!r}")
    at += len(kind) + 1
    dtype = _TYPES[kind]
    if not kind.startswith(b"C"):
        layout = "<BI" if kind.endswith(b"V") else "<BIBI"
        sizes = struct.unpack_from(layout, raw, at)
        if set(sizes[::2]) != {4}:
            raise ValueError(f"a size of {sizes[0]} bytes, expected 4")
        values, at = _take(raw, dtype, math.prod(sizes[1::2]), at + 5 * len(sizes) // 2)
        return values.reshape(sizes[1::2]), at
    least, width, rows, columns = struct.unpack_from("<ffII", raw, at)
    at += 16

    def unpacked(codes: NDArray[np.integer], levels: float) -> NDArray[np.float32]:
        return np.asarray(least + codes.astype(np.float32) * width / levels, np.float32)

    if kind == b"CM":
        corners, at = _take(raw, np.dtype("<u2"), 4 * columns, at)
        codes, at = _take(raw, dtype, rows * columns, at)
        return _between(
            codes.reshape(columns, rows), unpacked(corners, 65535.0).reshape(columns, 4)
        ).T, at
    codes, at = _take(raw, dtype, rows * columns, at)
    levels = 65535.0 if kind == b"CM2" else 255.0
    return unpacked(codes, levels).reshape(rows, columns), at


def read_text_matrix(
    raw: Raw, at: int = 0, dtype: type[np.floating] = np.float32
) -> tuple[NDArray[np.floating], int]:
    """Read the vector or matrix between brackets at an offset.

    Returns
    -------
    array : ndarray of `dtype`
        Shape (n,), or (rows, columns) if there are line ends between the brackets.
    end : int
        The offset after it.

    Raises
    ------
    ValueError
        If a bracket is missing, rows differ in length, or a value is not a number.
    """
    end = raw.find(b"]", at)
    inside = raw[at : max(end, at)].lstrip(_WHITE)
    if not inside.startswith(b"["):
        raise ValueError(f"it begins with {raw[at : at + 8]!r}, expected numbers between brackets")
    if raw[end + 1 : end + 2] not in (b"", b"\n", b"\r"):
        raise ValueError("the line does not end after ']'")
    lines = inside[1:].split(b"\n")
    rows = [line.split() for line in lines if line.strip()]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its rows differ in length")
    values = np.array([list(map(float, row)) for row in rows], np.float64).astype(dtype)
    if len(lines) == 1:
        values = values.reshape(-1)
    return values, end + 1


@contextmanager
def _mapped(path: Path) -> Iterator[Raw]:
    """Map a file into memory as bytes."""
    try:
        with path.open("rb") as handle:
            if not check_data(path, handle.read(_HEAD)):
                raise DataError(
                    "expected vectors, got an empty file",
                    file=path,
                    remedy="write the archive again",
                )
            with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as raw:
                yield raw
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}", file=path, remedy="check the path"
        ) from error


def _decode(
    raw: Raw, at: int, path: Path, line: int | None, owner: str
) -> tuple[NDArray[np.floating], int]:
    """Decode the vector at an offset, if one begins there; also return the offset after it."""
    try:
        if raw[at : at + 2] == _BINARY:
            vector, end = read_binary(raw, at)
        else:
            vector, end = read_text_matrix(raw, at)
    except (ValueError, struct.error) as error:
        text = f"expected a vector of Kaldi for {owner}, but {error}"
        raise DataError(text, file=path, line=line, remedy="write it again") from None
    if vector.ndim == 2 and len(vector) == 1:
        vector = vector[0]
    if vector.ndim != 1 or not vector.size:
        text = (
            f"expected a vector of floats for {owner}, got {vector.dtype} of shape {vector.shape}"
        )
        raise DataError(text, file=path, line=line)
    return vector, end


def _take(raw: Raw, dtype: np.dtype[Any], count: int, at: int) -> tuple[NDArray[Any], int]:
    """Copy values at an offset from a memory-mapped file; also return the offset after them."""
    end = at + count * dtype.itemsize
    if end > len(raw):
        raise ValueError("it is cut short")
    return np.frombuffer(raw[at:end], dtype), end


def _between(codes: NDArray[np.uint8], corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """Interpolate codes (columns, rows) between the quantiles (columns, 4) of their column."""
    first, low, high, last = (corners[:, [column]] for column in range(4))
    steps = codes.astype(np.float32)
    outer = np.where(
        codes <= 64,
        first + (low - first) * steps * (1 / 64),
        high + (last - high) * (steps - 192) * (1 / 63),
    )
    return np.where(
        (codes > 64) & (codes <= 192), low + (high - low) * (steps - 64) * (1 / 128), outer
    )
