"""Statistics and supervectors in files of SIDEKIT's layout, written and read by blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.errors import DataError
from spkbase.files import fingerprint as digest_of
from spkbase.files import stored_dataset
from spkbase.runs import ArrayDraft, Destination, file_destination
from spkver.sidekit import open_hdf5, read_array, read_strings, write_column, write_strings


def write_stat_blocks(
    destination: Destination,
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


class StatDraft(ArrayDraft):
    """A StatServer file in the making; see `write_stat_blocks`."""

    def __init__(
        self,
        destination: Destination,
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
