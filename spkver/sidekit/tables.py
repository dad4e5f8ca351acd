"""SIDEKIT's lists and statistics in HDF5, and conventions that all of its HDF5 files share.

SIDEKIT keeps ids as ASCII byte strings. Other ids are written here as UTF-8 strings and marked as such: SIDEKIT, which
reads only ASCII, then stops with an error instead of reading a wrong id. Here both are read, marked or not.

- IdMap: HDF5 (leftids, rightids, start, stop) and text ("model segment" or with " start stop").
- StatServer: statistics or supervectors of segments, in float32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.errors import DataError, Problems, errors_of
from spkbase.files import read_text, write_text
from spkbase.hdf5 import (
    check_own,
    create_file,
    new_file,
    open_file,
    stored_dataset,
    write_column,
    write_ids,
)
from spkbase.hdf5 import read_strings as read_column
from spkbase.work import chunk_bounds
from spkver.idmap import IdMap

_HDF5_EXTENSIONS = (".h5", ".hdf5")
_NONE = -1
_SPACE = re.compile(r"\s|^\ufeff")
_FRAME = re.compile(r"None|-1|[0-9]{1,18}")

_BLOCK = 256  # number of rows copied at a time


def open_hdf5(path: str | Path) -> AbstractContextManager[h5py.File]:
    """Open a file for reading, like `spkbase.hdf5.open_file`."""
    return open_file(path, remedy="it is broken or of another kind: copy or write it again")


def read_array(
    group: h5py.Group, name: str, *, kinds: str = "fiu", shape: tuple[int | None, ...] | None = None
) -> NDArray[Any]:
    """Read a dataset of numbers.

    Parameters
    ----------
    group : h5py.Group
        The group that holds it.
    name : str
        Its name.
    kinds : str
        Kinds of NumPy types that are allowed.
    shape : tuple of int or None, optional
        The expected shape; None for an axis of any length.

    Raises
    ------
    DataError
        If it is missing or of another type or shape.
    """
    dataset = _dataset(group, name)
    if dataset.dtype.kind not in kinds:
        raise DataError(f"{name} should hold numbers, not {dataset.dtype}")
    if dataset.shape is None:
        raise DataError(f"{name} should hold numbers, but it is empty")
    if shape is not None:
        fits = len(dataset.shape) == len(shape) and all(
            n in (None, m) for n, m in zip(shape, dataset.shape, strict=True)
        )
        if not fits:
            expected = str(tuple("any" if n is None else n for n in shape)).replace("'", "")
            raise DataError(f"{name} should have the shape {expected}, not {dataset.shape}")
    array: NDArray[Any] = np.asarray(dataset[()])
    return array


def read_strings(group: h5py.Group, name: str) -> NDArray[np.object_]:
    """Read a column of ids as str, (N,)."""
    return read_column(_dataset(group, name))


def read_idmap(path: str | Path) -> IdMap:
    """Read a map of models to segments, HDF5 or text by its content.

    A file whose name begins with ``spk2utt`` has Kaldi's lines ``model segment segment ...``.

    Raises
    ------
    DataError
        If the file is missing or broken, a line is malformed, or a row occurs twice; with file and line.
    """
    path = Path(path)
    if path.is_file() and h5py.is_hdf5(path):
        with open_hdf5(path) as file:
            models = read_strings(file, "leftids")
            segments = read_strings(file, "rightids")
            start = read_array(file, "start", kinds="i", shape=(len(models),))
            stop = read_array(file, "stop", kinds="i", shape=(len(models),))
            idmap = IdMap(models, segments, start, stop)
    else:
        idmap = _read_text(path)
    rows: dict[tuple[object, ...], int] = {}
    columns = idmap.models, idmap.segments, idmap.start.tolist(), idmap.stop.tolist()
    for number, row in enumerate(zip(*columns, strict=True)):
        first = rows.setdefault(row, number)
        if first != number:
            text = f"{row[0]} {row[1]} for the second time, rows {first} and {number}"
            raise DataError(text, file=path, remedy="remove one of the two")
    return idmap


def write_idmap(path: str | Path, idmap: IdMap) -> None:
    """Write a map: HDF5 if the name ends in .h5 or .hdf5, else text.

    Text has the columns start and stop only if a row has one of them; "None" stands for a missing one.

    Raises
    ------
    DataError
        If the format cannot hold an id (white space in text), a frame exceeds 32 bits, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() in _HDF5_EXTENSIONS:
        with create_file(path) as file:
            write_ids(file, "leftids", idmap.models)
            write_ids(file, "rightids", idmap.segments)
            write_column(file, "start", as_int32(idmap.start))
            write_column(file, "stop", as_int32(idmap.stop))
        return
    for name in [*idmap.models, *idmap.segments]:
        if _SPACE.search(name):
            raise DataError(
                f"id {name!r} holds white space, which separates columns of text",
                remedy="write .h5, or rename it",
            )
    columns = [idmap.models, idmap.segments]
    if (idmap.start != _NONE).any() or (idmap.stop != _NONE).any():
        for frames in (idmap.start, idmap.stop):
            texts = frames.astype(str).astype(object)
            texts[frames == _NONE] = "None"
            columns.append(texts)
    write_text(path, "".join(" ".join(row) + "\n" for row in zip(*columns, strict=True)))


def as_int32(frames: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return frame numbers as SIDEKIT stores them; an error if they exceed 32 bits."""
    if len(frames) and (frames.max() > np.iinfo(np.int32).max or frames.min() < _NONE):
        raise DataError(f"frame numbers {frames.min()} to {frames.max()} do not fit into 32 bits")
    return frames.astype(np.int32)


class StatServer(NamedTuple):
    """Statistics, or supervectors, of segments.

    Attributes
    ----------
    models, segments : ndarray of str of shape (S,)
        Model and segment of each row.
    stat0 : ndarray or StoredArray of float32 of shape (S, C)
        Occupation counts of each component; ones of shape (S, 1) with supervectors.
    stat1 : ndarray or StoredArray of float32 of shape (S, C * D)
        First-order statistics, sorted by component, not centred; or supervectors.
    """

    models: NDArray[np.object_]
    segments: NDArray[np.object_]
    stat0: Rows
    stat1: Rows


def open_stat_server(path: str | Path) -> StatServer:
    """Open a StatServer that SIDEKIT or `write_stat_server` wrote; arrays that can be read by rows stay in the file.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, or shapes do not agree.
    """
    with open_hdf5(path) as file:
        models = read_strings(file, "modelset")
        segments = read_strings(file, "segset")
        stats: list[Rows] = []
        for name in ("stat0", "stat1"):
            stored = stored_dataset(file.get(name), path)
            if stored is None or stored.dtype != np.float32 or stored.ndim != 2:
                values = read_array(file, name, kinds="f", shape=(len(models), None))
                stats.append(values.astype(np.float32, copy=False))
            else:
                stats.append(stored)
        _check_shapes(models, segments, stats)
    return StatServer(models, segments, stats[0], stats[1])


def read_stat_server(path: str | Path) -> StatServer:
    """Read a whole StatServer; errors as in `open_stat_server`, or if a number is not finite."""
    server = open_stat_server(path)
    server = server._replace(stat0=np.asarray(server.stat0), stat1=np.asarray(server.stat1))
    with errors_of(path):
        _check_finite(server.segments, 0, (server.stat0, server.stat1))
    return server


def write_stat_server(
    path: str | Path, server: StatServer, rows: NDArray[np.int64] | None = None
) -> StatServer:
    """Write a StatServer, or some of its rows, in float32, whole or not at all, and open the file.

    Raises
    ------
    DataError
        If shapes do not agree, a value is not finite in float32, or the file cannot be written.
    """
    models = np.asarray(server.models, object)
    segments = np.asarray(server.segments, object)
    with errors_of(path):
        _check_shapes(models, segments, [server.stat0, server.stat1])
    if rows is None:
        rows = np.arange(len(models))
    widths = server.stat0.shape[1], server.stat1.shape[1]
    chunks = [rows[start:stop] for start, stop in chunk_bounds(len(rows), _BLOCK)]
    blocks = ((server.stat0[chunk], server.stat1[chunk]) for chunk in chunks)
    return write_stat_blocks(path, models[rows], segments[rows], widths, blocks)


def write_stat_blocks(
    path: str | Path,
    models: Sequence[str] | NDArray[Any],
    segments: Sequence[str] | NDArray[Any],
    widths: tuple[int, int],
    blocks: Iterable[tuple[NDArray[Any], NDArray[Any]]],
) -> StatServer:
    """Write a StatServer by blocks of rows, and open the file.

    Parameters
    ----------
    path : path
    models, segments : sequence of str, of length N
    widths : tuple of int
        Numbers of columns of stat0 and of stat1, which are float32.
    blocks : iterable of pairs of ndarray
        Rows of stat0 and of stat1, in their order.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    with new_file(path) as file:
        write_ids(file, "modelset", models)
        write_ids(file, "segset", segments)
        for name in ("start", "stop"):
            write_column(file, name, np.full(len(models), _NONE, np.int32))
        stats = [
            file.create_dataset(f"stat{order}", (len(models), width), "f4")
            for order, width in enumerate(widths)
        ]
        start = 0
        for block in blocks:
            with np.errstate(over="ignore"):  # overflows are checked below
                values = [rows.astype(np.float32, copy=False) for rows in block]
            with errors_of(path):
                _check_finite(segments, start, values)
            for dataset, rows in zip(stats, values, strict=True):
                dataset[start : start + len(rows)] = rows
            start += len(values[0])
    return open_stat_server(path)


def _dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    dataset = group.get(name)
    if not isinstance(dataset, h5py.Dataset):
        names = ", ".join(sorted(group)[:12]) or "nothing"
        raise DataError(f"expected {name!r}, found {names}")
    check_own(dataset)
    return dataset


def _read_text(path: Path) -> IdMap:
    problems = Problems(path)
    rows: list[tuple[str, str, int, int]] = []
    of_kaldi = path.name.startswith("spk2utt")
    for line, content in enumerate(read_text(path).split("\n"), 1):
        fields = content.split()
        if of_kaldi and len(fields) > 1:
            rows += [(fields[0], segment, _NONE, _NONE) for segment in fields[1:]]
        elif len(fields) == 2:
            rows.append((fields[0], fields[1], _NONE, _NONE))
        elif len(fields) == 4 and _FRAME.fullmatch(fields[2]) and _FRAME.fullmatch(fields[3]):
            rows.append((fields[0], fields[1], _frame(fields[2]), _frame(fields[3])))
        elif fields:
            problems.add(
                f"expected 'model segment' or 'model segment start stop', found {content[:100]!r}",
                line=line,
            )
    problems.raise_if_any()
    if not rows:
        raise DataError("holds no rows", file=path, remedy="write the list again")
    with errors_of(path):
        return IdMap(*zip(*rows, strict=True))  # type: ignore[arg-type]  # it makes arrays of them


def _frame(text: str) -> int:
    if text == "None":
        return _NONE
    return int(text)


def _check_shapes(models: NDArray[Any], segments: NDArray[Any], stats: Sequence[Rows]) -> None:
    if len(models) != len(segments):
        raise DataError(f"{len(models)} models, but {len(segments)} segments")
    n_rows = len(models)
    zeroth, first = (array.shape for array in stats)
    fits = zeroth[:-1] == first[:-1] == (n_rows,) and zeroth[1] > 0
    if not fits or first[1] % zeroth[1]:
        text = f"expected stat0 ({n_rows}, C) and stat1 ({n_rows}, C * D), not {zeroth} and {first}"
        raise DataError(text)


def _check_finite(segments: Any, first_row: int, stats: Sequence[Any]) -> None:
    for order, values in enumerate(stats):
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            row = first_row + int(bad[0])
            text = f"stat{order} of segment {segments[row]!r} (row {row}) is not finite"
            raise DataError(text, remedy="compute the statistics again")
