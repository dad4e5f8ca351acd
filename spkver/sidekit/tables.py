"""SIDEKIT's lists and statistics in HDF5, and what all of its HDF5 files have in common.

SIDEKIT keeps ids as ASCII byte strings. Other ids are written here as UTF-8 strings and marked as such: SIDEKIT, which
reads only ASCII, then stops with an error instead of reading a wrong id. Here both are read, marked or not.

- **IdMap**: HDF5 (leftids, rightids, start, stop) and text ("model segment" or with " start stop").
- **StatServer**: statistics or supervectors of segments, in float32.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, errors_of
from spkbase.files import read_text, write_text
from spkbase.hdf5 import create_file, open_file
from spkbase.hdf5 import read_strings as read_column
from spkbase.showing import one_line
from spkver.idmap import IdMap


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


_HDF5_EXTENSIONS = (".h5", ".hdf5")
_NONE = -1
_SPACE = re.compile(r"\s|^\ufeff")


def read_idmap(path: str | Path) -> IdMap:
    """Read a map of models to segments, HDF5 or text by its content.

    A file whose name begins with ``spk2utt`` has Kaldi's lines ``model segment segment ...``.

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

    Text has the columns start and stop only if some row has them, with None for none.

    Raises
    ------
    DataError
        If the format cannot hold an id (white space in text), a frame exceeds 32 bits, or the file cannot be written.
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
        raise DataError(
            f"id {torn!r} holds white space, which separates columns of text", remedy="write .h5, or rename it"
        )
    columns = [idmap.models, idmap.segments]
    if (idmap.start != _NONE).any() or (idmap.stop != _NONE).any():
        columns += [
            np.array(["None" if frame == _NONE else str(frame) for frame in frames.tolist()], dtype=object)
            for frames in (idmap.start, idmap.stop)
        ]
    write_text(path, "".join(" ".join(row) + "\n" for row in zip(*columns, strict=True)))


def as_int32(frames: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return frame numbers as SIDEKIT stores them; an error if they exceed 32 bits."""
    if len(frames) and (frames.max() > np.iinfo(np.int32).max or frames.min() < _NONE):
        raise DataError(f"frame numbers {frames.min()} to {frames.max()} do not fit into 32 bits")
    return frames.astype(np.int32)


def _read_hdf5(path: Path) -> IdMap:
    with open_hdf5(path) as file:
        models, segments = read_strings(file, "leftids"), read_strings(file, "rightids")
        start, stop = (read_array(file, name, kinds="i", shape=(len(models),)) for name in ("start", "stop"))
        return IdMap(models, segments, start, stop)


def _read_text(path: Path) -> IdMap:
    problems = Problems(path)
    rows: list[tuple[str, str, int, int]] = []
    of_kaldi = path.name.startswith("spk2utt")
    for line, content in enumerate(read_text(path).split("\n"), 1):
        fields = content.split()
        if of_kaldi and len(fields) > 1:
            rows += [(fields[0], segment, _NONE, _NONE) for segment in fields[1:]]
            continue
        frames = [_frame(field) for field in [*fields, "None", "None"][2:4]]
        if fields and (len(fields) not in (2, 4) or None in frames):
            problems.add(f"expected 'model segment' or 'model segment start stop', found {content[:100]!r}", line=line)
        elif fields:
            rows.append((fields[0], fields[1], frames[0] or 0, frames[1] or 0))
    problems.raise_if_any()
    if not rows:
        raise DataError("holds no rows", file=path, remedy="write the list again")
    with errors_of(path):
        return IdMap(*zip(*rows, strict=True))  # type: ignore[arg-type]  # it makes arrays of them


def _frame(text: str) -> int | None:
    if text in ("None", str(_NONE)):
        return _NONE
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


logger = logging.getLogger(__name__)

_BLOCK_BYTES = 1 << 25


@one_line
@dataclass(frozen=True, eq=False)
class StatServer:
    """Statistics of segments.

    Attributes
    ----------
    models, segments : ndarray of str of shape (S,)
        Model and segment of each row; lists become arrays.
    stat0 : ndarray of float32 of shape (S, C)
        Occupation counts of each component; ones of shape (S, 1) with supervectors.
    stat1 : ndarray of float32 of shape (S, C * D)
        First-order statistics, component after component, not centred; or supervectors.
    start, stop : ndarray of int64 of shape (S,), optional
        Frames [start, stop) of the segment, -1 (default) for none. SIDEKIT 1.3 kept them in 8 bits and lost larger
        ones.
    """

    models: NDArray[np.object_]
    segments: NDArray[np.object_]
    stat0: NDArray[Any]
    stat1: NDArray[Any]
    start: NDArray[np.int64] = None  # type: ignore[assignment]  # an array after __post_init__
    stop: NDArray[np.int64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name in ("models", "segments"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), object))
        for name in ("start", "stop"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(len(self.models), -1, np.int64))


def read_stat_server(path: str | Path, prefix: str = "") -> StatServer:
    """Read a StatServer.

    Parameters
    ----------
    path : path
        HDF5 file that SIDEKIT or `write_stat_server` wrote.
    prefix : str
        Prefix of the names of the datasets, for files with several.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a value is not finite.
    """
    with open_hdf5(path) as file:
        models = read_strings(file, f"{prefix}modelset")
        segments = read_strings(file, f"{prefix}segset")
        n_rows = len(models)
        if len(segments) != n_rows:
            raise DataError(f"{n_rows} models, but {len(segments)} segments")
        stat0 = read_array(file, f"{prefix}stat0", kinds="f", shape=(n_rows, None)).astype(np.float32, copy=False)
        stat1 = read_array(file, f"{prefix}stat1", kinds="f", shape=(n_rows, None)).astype(np.float32, copy=False)
        _check_shapes(n_rows, stat0, stat1)
        for name, values in (("stat0", stat0), ("stat1", stat1)):
            _check_finite(name, values, 0, segments)
        parts = [read_array(file, f"{prefix}{name}", kinds="i", shape=(n_rows,)) for name in ("start", "stop")]
        if any(frames.dtype == np.int8 and (frames != -1).any() for frames in parts):
            logger.warning("%s: start and stop were stored in 8 bits; frames above 127 are wrong", path)
        return StatServer(models, segments, stat0, stat1, *(frames.astype(np.int64) for frames in parts))


def write_stat_server(path: str | Path, server: StatServer, *, prefix: str = "") -> None:
    """Write a StatServer in float32, whole or not at all.

    Parameters
    ----------
    path : path
        The file.
    server : StatServer
        Statistics or supervectors; a memory map of them is read some rows at a time.
    prefix : str
        Prefix of the names of the datasets.

    Raises
    ------
    DataError
        If shapes do not agree, a value is not finite in float32, or the file cannot be written.
    """
    segments, n_rows = server.segments, len(server.models)
    if len(segments) != n_rows:
        raise DataError(f"{n_rows} models, but {len(segments)} segments", file=path)
    with errors_of(path):
        _check_shapes(n_rows, server.stat0, server.stat1)
        with create_file(path) as file:
            write_strings(file, f"{prefix}modelset", server.models)
            write_strings(file, f"{prefix}segset", segments)
            _write_rows(file, f"{prefix}stat0", server.stat0, segments)
            _write_rows(file, f"{prefix}stat1", server.stat1, segments)
            for name, frames in (("start", server.start), ("stop", server.stop)):
                write_column(file, f"{prefix}{name}", as_int32(np.asarray(frames, dtype=np.int64)))


def _check_shapes(n_rows: int, stat0: NDArray[Any], stat1: NDArray[Any]) -> None:
    good = stat0.ndim == stat1.ndim == 2 and len(stat0) == len(stat1) == n_rows
    if not good or stat0.shape[1] == 0 or stat1.shape[1] % stat0.shape[1]:
        raise DataError(
            f"expected stat0 ({n_rows}, C) and stat1 ({n_rows}, C * D), not {stat0.shape} and {stat1.shape}"
        )


def _check_finite(name: str, values: NDArray[Any], first_row: int, segments: Any) -> None:
    if not np.isfinite(values).all():
        row = first_row + int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise DataError(
            f"{name} of segment {segments[row]!r} (row {row}) is not finite", remedy="compute the statistics again"
        )


def _write_rows(file: h5py.File, name: str, values: NDArray[Any], segments: Any) -> None:
    """Write block by block, contiguous and not packed: floats of this kind shrink by a tenth at best."""
    dataset = file.create_dataset(name, shape=values.shape, dtype=np.float32)
    step = max(1, _BLOCK_BYTES // (4 * values.shape[1]))
    for start in range(0, len(values), step):
        with np.errstate(over="ignore"):  # what overflows is found just below
            block = np.asarray(values[start : start + step]).astype(np.float32, copy=False)
        _check_finite(name, block, start, segments)
        dataset[start : start + step] = block
