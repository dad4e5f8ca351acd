"""SIDEKIT's IdMap: HDF5 (leftids, rightids, start, stop) and text ("model segment" or with " start stop")."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems
from spkbase.files import line_at, not_text, read_text_bytes, write_text
from spkbase.hdf5 import create_file
from spkver.idmap import IdMap
from spkver.sidekit.hdf5 import open_hdf5, read_array, read_strings, write_column, write_strings

_HDF5_EXTENSIONS = (".h5", ".hdf5")
_NONE = -1
_SPACE = re.compile(r"\s|^\ufeff")


def read_idmap(path: str | Path) -> IdMap:
    """Read a map of models to segments, HDF5 or text as the content tells.

    Raises
    ------
    DataError
        With the place: no such file, broken, a malformed line, a row that occurs twice.
    """
    path = Path(path)
    idmap = _read_hdf5(path) if path.is_file() and h5py.is_hdf5(path) else _read_text(path)
    rows: dict[tuple[object, ...], int] = {}
    columns = idmap.models, idmap.segments, idmap.start.tolist(), idmap.stop.tolist()
    for number, row in enumerate(zip(*columns, strict=True)):
        if (first := rows.setdefault(row, number)) != number:
            text = f"{row[0]} {row[1]} for the second time, rows {first} and {number}"
            raise DataError(text, file=path, remedy="remove one of the two")
    return idmap


def write_idmap(path: str | Path, idmap: IdMap) -> None:
    """Write a map: HDF5 where the name ends in .h5 or .hdf5, else text.

    Text has the columns start and stop only where some row has them, with None for none.

    Raises
    ------
    DataError
        If an id holds what the format cannot hold (white space in text), a frame is beyond 32 bits, or the file
        cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() in _HDF5_EXTENSIONS:
        with create_file(path) as file:
            write_strings(file, "leftids", idmap.models)
            write_strings(file, "rightids", idmap.segments)
            write_column(file, "start", as_int32(idmap.start))
            write_column(file, "stop", as_int32(idmap.stop))
        return
    torn = next((name for ids in (idmap.models, idmap.segments) for name in ids if _SPACE.search(name)), None)
    if torn is not None:
        raise DataError(f"id {torn!r} holds white space, which tears a line of text", remedy="write .h5, or rename it")
    columns = [idmap.models, idmap.segments]
    if (idmap.start != _NONE).any() or (idmap.stop != _NONE).any():
        columns += [
            np.array(["None" if frame == _NONE else str(frame) for frame in frames.tolist()], dtype=object)
            for frames in (idmap.start, idmap.stop)
        ]
    write_text(path, "".join(" ".join(row) + "\n" for row in zip(*columns, strict=True)))


def as_int32(frames: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return frame numbers as SIDEKIT stores them; beyond 32 bits is an error, never another number."""
    if len(frames) and (frames.max() > np.iinfo(np.int32).max or frames.min() < _NONE):
        raise DataError(f"frame numbers {frames.min()} to {frames.max()} do not fit into 32 bits")
    return frames.astype(np.int32)


def _read_hdf5(path: Path) -> IdMap:
    with open_hdf5(path) as file:
        models, segments = read_strings(file, "leftids"), read_strings(file, "rightids")
        start, stop = (read_array(file, name, kinds="i", shape=(len(models),)) for name in ("start", "stop"))
        return IdMap(models, segments, start, stop)


def _read_text(path: Path) -> IdMap:
    raw = read_text_bytes(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(path, line_at(raw, error.start), "it holds other bytes") from error
    problems = Problems(path)
    rows: list[tuple[str, str, int, int]] = []
    for line, content in enumerate(text.split("\n"), 1):
        fields = content.split()
        frames = [_frame(field) for field in [*fields, "None", "None"][2:4]]
        if fields and (len(fields) not in (2, 4) or None in frames):
            problems.add(f"expected 'model segment' or 'model segment start stop', found {content[:100]!r}", line=line)
        elif fields:
            rows.append((fields[0], fields[1], frames[0] or 0, frames[1] or 0))
    problems.raise_if_any()
    if not rows:
        raise DataError("holds no rows", file=path, remedy="write the list again")
    try:
        return IdMap(*zip(*rows, strict=True))  # type: ignore[arg-type]  # it makes arrays of them
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error


def _frame(text: str) -> int | None:
    if text in ("None", str(_NONE)):
        return _NONE
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
