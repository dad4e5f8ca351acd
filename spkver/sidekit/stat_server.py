"""SIDEKIT's StatServer: statistics or supervectors of segments, in float32."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.hdf5 import create_file
from spkbase.showing import one_line
from spkver.sidekit.hdf5 import open_hdf5, read_array, read_strings, write_column, write_strings
from spkver.sidekit.idmaps import as_int32

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
        Occupation counts of each component; ones of shape (S, 1) beside supervectors.
    stat1 : ndarray of float32 of shape (S, C * D)
        First-order statistics, component after component, not centred; or supervectors.
    start, stop : ndarray of int64 of shape (S,), optional
        Frames [start, stop) of the segment, -1 for none, as by default. SIDEKIT 1.3 kept them in 8 bits, where larger
        ones are lost.
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
        What stands before the names of the datasets, for files with several.

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
        What to put before the names of the datasets.

    Raises
    ------
    DataError
        If shapes do not agree, a value is not finite in float32, or the file cannot be written.
    """
    segments, n_rows = server.segments, len(server.models)
    if len(segments) != n_rows:
        raise DataError(f"{n_rows} models, but {len(segments)} segments", file=path)
    try:
        _check_shapes(n_rows, server.stat0, server.stat1)
        with create_file(path) as file:
            write_strings(file, f"{prefix}modelset", server.models)
            write_strings(file, f"{prefix}segset", segments)
            _write_rows(file, f"{prefix}stat0", server.stat0, segments)
            _write_rows(file, f"{prefix}stat1", server.stat1, segments)
            for name, frames in (("start", server.start), ("stop", server.stop)):
                write_column(file, f"{prefix}{name}", as_int32(np.asarray(frames, dtype=np.int64)))
    except DataError as error:
        raise error if error.file is not None else DataError(error.text, file=path, remedy=error.remedy) from error


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
