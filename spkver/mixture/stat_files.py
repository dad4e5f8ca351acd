"""Statistics and supervectors in files of SIDEKIT's layout, written and read by blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows
from spkbase.errors import DataError, few
from spkbase.files import fingerprint as digest_of
from spkbase.files import stored_dataset
from spkbase.runs import ArrayDraft, DestinationLike, file_destination
from spkbase.work import chunk_bounds
from spkver.sidekit import open_hdf5, read_array, read_strings, write_column, write_strings

_COPIED = 256  # rows that are copied at a time


def write_stat_blocks(
    destination: DestinationLike,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    widths: tuple[int, int],
    blocks: Callable[[StatDraft], Iterable[tuple[NDArray, NDArray]]],
    n_blocks: int,
) -> tuple[Rows, Rows]:
    """Write a file of SIDEKIT's StatServer by blocks of rows, and refer to its rows.

    Parameters
    ----------
    destination : Destination
        Blocks that an earlier call has left in its folder are taken up.
    models, segments : sequence of str, of length N
    widths : tuple of int
        Columns of stat0 and of stat1, which are float32.
    blocks : callable
        Given the draft, of which `n_done` blocks and `n_rows` rows are written, returns the blocks that follow: rows of
        stat0 and of stat1.
    n_blocks : int
        All there are.

    Returns
    -------
    stat0, stat1 : ndarray or StoredArray of shape (N, width)

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    path, destination = file_destination(destination)
    with StatDraft(destination, models, segments, widths, n_blocks) as draft:
        for stat0, stat1 in blocks(draft):
            draft.add(stat0, stat1)
        draft.finish()
    return open_stat_server(path)[2:]


def copy_stat_rows(
    path: str | Path,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    destination: DestinationLike,
    *,
    widths: tuple[int, int] | None = None,
) -> tuple[Rows, Rows]:
    """Write the rows of a list that a file of SIDEKIT's StatServer holds, by their (model, segment), in its order.

    Parameters
    ----------
    path : path
        A StatServer; its other rows stay there.
    models, segments : sequence of str, of length N
        The list.
    destination : Destination
        Where they go.
    widths : (int, int), optional
        Columns of stat0 and stat1 that are expected; those of the file by default.

    Returns
    -------
    stat0, stat1 : ndarray or StoredArray of shape (N, width)

    Raises
    ------
    DataError
        If the file is broken or of another kind, has other columns, or lacks a row.
    """
    rows = find_stat_rows(path, models, segments)
    stats = open_stat_server(path)[2:]
    found = (stats[0].shape[1], stats[1].shape[1])
    if widths is not None and found != widths:
        raise DataError(
            f"stat0 and stat1 have {found[0]} and {found[1]} columns, expected {widths[0]} and {widths[1]} for the "
            "mixture",
            file=path,
            remedy="give the mixture that these statistics were made with (ubm.file)",
        )
    return write_stat_rows(destination, models, segments, stats, rows)


def write_stat_rows(
    destination: DestinationLike,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    stats: tuple[Rows, Rows],
    rows: NDArray[np.int64] | None = None,
) -> tuple[Rows, Rows]:
    """Write stat0 and stat1, or some rows of them, as a file of SIDEKIT's StatServer, and refer to what it holds."""
    rows = np.arange(len(models)) if rows is None else rows
    bounds = chunk_bounds(len(rows), _COPIED)

    def blocks(draft: StatDraft) -> Iterable[tuple[NDArray, NDArray]]:
        for start, stop in bounds[draft.n_done :]:
            block = [np.asarray(SelectedRows(stat, rows[start:stop])) for stat in stats]
            yield block[0], block[1]

    return write_stat_blocks(destination, models, segments, (stats[0].shape[1], stats[1].shape[1]), blocks, len(bounds))


def find_stat_rows(
    path: str | Path, models: Sequence[str] | NDArray, segments: Sequence[str] | NDArray
) -> NDArray[np.int64]:
    """Return the row of each (model, segment) of a list in a file of SIDEKIT's StatServer.

    Raises
    ------
    DataError
        If the file is broken, holds a pair twice, or lacks one.
    """
    there = open_stat_server(path)
    row_of: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(zip(there[0].tolist(), there[1].tolist(), strict=True)):
        if row_of.setdefault(pair, row) != row:
            text = f"{pair[0]} {pair[1]} stands in rows {row_of[pair]} and {row}"
            raise DataError(text, file=path, remedy="write it again with each row once")
    pairs = [*zip(models, segments, strict=True)]
    absent = [" ".join(pair) for pair in pairs if pair not in row_of]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(pairs)} rows of the list are not there: {few(absent)}",
            file=path,
            remedy="make it from the same list",
        )
    return np.array([row_of[pair] for pair in pairs], np.int64)


class StatDraft(ArrayDraft):
    """A StatServer file in the making; see `write_stat_blocks`."""

    def __init__(
        self,
        destination: DestinationLike,
        models: Sequence[str] | NDArray,
        segments: Sequence[str] | NDArray,
        widths: tuple[int, int],
        n_blocks: int,
    ) -> None:
        self._segments = segments

        def ids(file: h5py.File) -> None:
            write_strings(file, "modelset", models)
            write_strings(file, "segset", segments)
            for name in ("start", "stop"):
                write_column(file, name, np.full(len(models), -1, np.int32))

        path, destination = file_destination(destination)
        datasets = {f"stat{order}": ((len(models), width), np.float32) for order, width in enumerate(widths)}
        whole = digest_of(destination.fingerprint, models, segments)
        super().__init__(path, destination.folder, whole, datasets, ids, destination.attributes, n_blocks=n_blocks)

    def add(self, stat0: NDArray, stat1: NDArray) -> None:
        """Write the next block.

        Raises
        ------
        DataError
            If a value is not finite in float32, or the disk fails.
        """
        rows = {}
        for name, values in (("stat0", stat0), ("stat1", stat1)):
            with np.errstate(over="ignore"):  # what overflows is found just below
                rows[name] = values.astype(np.float32, copy=False)
            bad = np.flatnonzero(~np.isfinite(rows[name]).all(axis=1))
            if len(bad):
                row = self.n_rows + int(bad[0])
                raise DataError(
                    f"{name} of segment {self._segments[row]!r} (row {row}) is not finite",
                    file=self.path,
                    remedy="compute the statistics again",
                )
        self.write(self.n_done, self.n_rows, rows)


def open_stat_server(path: str | Path) -> tuple[NDArray[np.object_], NDArray[np.object_], Rows, Rows]:
    """Return models, segments, stat0 (N, C) and stat1 (N, W) of a file; what can be read by rows stays in it.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, or shapes do not agree.
    """
    with open_hdf5(path) as file:
        models, segments = read_strings(file, "modelset"), read_strings(file, "segset")
        if len(models) != len(segments):
            raise DataError(f"{len(models)} models, but {len(segments)} segments", file=path)
        stats = []
        for name in ("stat0", "stat1"):
            stored = stored_dataset(file.get(name), path)
            if stored is None or stored.dtype != np.float32 or stored.ndim != 2:
                rows: Rows = read_array(file, name, kinds="f", shape=(len(models), None)).astype(np.float32, copy=False)
            else:
                rows = stored
            stats.append(rows)
        if {len(rows) for rows in stats} != {len(models)}:
            raise DataError(f"{len(models)} ids, but statistics of {[len(rows) for rows in stats]} rows", file=path)
    return models, segments, stats[0], stats[1]
