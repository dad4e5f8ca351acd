"""Vectors in Kaldi's archives: ``.ark``, binary or text, and ``.scp``, which says where in an archive each one stands.

The decoding is that of `kaldiio`, an extra. Where things are is found here, because kaldiio runs what an entry of an
scp says when it ends or begins with ``|``, and unpickles what an archive says is a pickle. Here no entry is ever run:
a pipe, standard input or a range is an error, files are opened here, and what is decoded must begin as a vector does.

An archive of an scp is looked for as it is named (absolute, or from the current folder), then from the folder of the
scp, then by its name alone beside the scp.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import is_file

_ENTRY = re.compile(r"(?P<path>.*?)(:(?P<offset>[0-9]{1,18}))?")
_LONGEST_ID = 4096
_WHITE = b" \t\r\n"
_BINARY = b"\0B"
_MATRIX_KINDS = (b"F", b"D", b"C")  # float, double, compressed
_BYTES_PER_VALUE = {b"FV": 4, b"FM": 4, b"DV": 8, b"DM": 8, b"CM": 1, b"CM2": 2, b"CM3": 1}


def read_scp(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read the vectors that an scp lists, in its order.

    Raises
    ------
    DataError
        With file and line, all at once: a malformed line, a pipe, a missing archive; or what stands there is no vector.
    ConfigError
        If kaldiio is not installed.
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
        one, entry = columns[0], columns[1].strip()
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
        ids.append(one)
    for name, numbers in absent.items():
        more = f", which {len(numbers)} lines name" if len(numbers) > 1 else ""
        remedy = f"tried it as it is, in {path.parent}, and beside the scp; an .ark can be given itself"
        problems.add(f"there is no archive {name!r}{more}", line=numbers[0], remedy=remedy)
    problems.errors.sort(key=lambda error: error.line or 0)
    problems.raise_if_any()
    return ids, _read_places(path, places, len(ids))


def read_ark(path: str | Path) -> tuple[list[str], list[NDArray[np.floating]]]:
    """Read all vectors of an archive, in its order; errors as for `read_scp`."""
    path = Path(path)
    decode = _decoder()
    ids, vectors = [], []
    try:
        with path.open("rb") as handle:
            while one := _next_id(handle, path):
                ids.append(one)
                vectors.append(_decode(handle, decode, path, None, one))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    return ids, vectors


def _read_places(path: Path, places: dict[Path, list[tuple[int, int, int]]], count: int) -> list[NDArray[np.floating]]:
    """Read vectors at (offset, row, line of the scp) of each archive, one archive open at a time."""
    decode = _decoder()
    vectors: list[Any] = [None] * count
    for archive, entries in places.items():
        try:
            with archive.open("rb") as handle:
                for offset, row, line in sorted(entries):
                    handle.seek(offset)
                    vectors[row] = _decode(handle, decode, path, line, f"{archive}:{offset}")
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", file=archive, remedy="check it") from error
    return vectors


def _why_not(entry: str) -> str:
    """Tell why an entry is not read, if so."""
    if entry.startswith("|") or entry.endswith("|"):
        return f"is a command, and commands are never run: {entry[:60]!r}"
    if entry == "-":
        return "names standard input"
    if entry.endswith("]"):
        return f"asks for a range of an array: {entry[:60]!r}"
    return ""


def _find(scp: Path, name: str) -> Path | None:
    candidates = [Path(name), scp.parent / name, scp.parent / Path(name).name]
    return next((one for one in candidates if is_file(one)), None)


def _decode(handle: BinaryIO, decode: Any, path: Path, line: int | None, what: str) -> NDArray[np.floating]:
    """Decode the vector at the place of the handle, if one begins there."""
    start = handle.tell()
    head = handle.read(3)
    text = head.lstrip(_WHITE)[:1] in (b"[", b"")  # what kaldiio takes for a pickle, NumPy or audio begins otherwise
    if not (text and head) and not (head.startswith(_BINARY) and head[2:] in _MATRIX_KINDS):
        got = "the end of the file" if not head else f"{head!r}"
        raise DataError(
            f"expected a vector of Kaldi for {what}, got {got}", file=path, line=line, remedy="write it again"
        )
    binary = head.startswith(_BINARY)
    handle.seek(start)
    try:
        claimed = _claimed(handle, start) if binary else 0
        vector = np.asarray(decode(handle))
    except Exception as error:  # a broken archive can raise anything there
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"broken vector for {what}: {reason}", file=path, line=line, remedy="write it again") from None
    if binary and vector.size != claimed:
        raise DataError(f"broken vector for {what}: it is cut short", file=path, line=line, remedy="write it again")
    if vector.ndim == 2 and len(vector) == 1:
        vector = vector[0]
    if vector.dtype.kind == "i" and not binary:  # floats as text lose their point where they are whole
        vector = vector.astype(np.float32)
    if vector.ndim != 1 or vector.dtype.kind != "f" or not vector.size:
        got = f"{vector.dtype} of shape {vector.shape}"
        raise DataError(f"expected a vector of floats for {what}, got {got}", file=path, line=line)
    return vector


def _claimed(handle: BinaryIO, start: int) -> int:
    """Number of values that a binary vector or matrix says it has, which the file can hold; leaves the handle there.

    kaldiio would take memory for any size, and give what there is where the file ends before.
    """
    handle.seek(start + len(_BINARY))
    raw = handle.read(32)
    handle.seek(start)
    kind, _, rest = raw.partition(b" ")
    if kind not in _BYTES_PER_VALUE:
        raise ValueError(f"it is of the kind {kind[:8]!r}")
    if kind.startswith(b"C"):  # compressed: least value and range, rows and columns
        sizes = rest[8:12], rest[12:16]
    elif kind.endswith(b"V"):  # each number after a byte with its length
        sizes = rest[1:5], b"\1"
    else:
        sizes = rest[1:5], rest[6:10]
    columns = int.from_bytes(sizes[1], "little")
    values = int.from_bytes(sizes[0], "little") * columns
    heads = 8 * columns if kind == b"CM" else 0
    if heads + values * _BYTES_PER_VALUE[kind] > os.fstat(handle.fileno()).st_size - start:
        raise ValueError("it is cut short")
    return values


def _next_id(handle: BinaryIO, path: Path) -> str:
    """Read the id before a vector; empty at the end of the file."""
    found = bytearray()
    while byte := handle.read(1):
        if byte in _WHITE:
            if found:
                break
            continue
        found += byte
        if len(found) > _LONGEST_ID:
            break
    try:
        one = found.decode("utf-8")
    except UnicodeDecodeError:
        one = ""
    if found and (not one or len(found) > _LONGEST_ID or "\0" in one):
        raise DataError("expected an id before each vector", file=path, remedy="this is no archive of vectors")
    return one


def _decoder() -> Any:
    try:
        from kaldiio.matio import read_kaldi
    except ImportError as error:
        raise ConfigError(
            "Kaldi's archives need the package kaldiio", remedy="pip install 'spkver[kaldi]', or write npz"
        ) from error
    return read_kaldi


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DataError("expected text in UTF-8", file=path, remedy="an archive's name must end in .ark") from error
