"""Features of many recordings in one table: one array for all, one row range for each recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, StoredArray, part
from spkbase.errors import DataError
from spkbase.files import TemporaryRows, check_forms, read_arrays, stored_array
from spkbase.showing import one_line


def row_index(ids: Sequence[str] | NDArray) -> dict[str, int]:
    """Return the row of each id.

    Raises
    ------
    DataError
        If an id is repeated.
    """
    index = {name: row for row, name in enumerate(ids)}
    if len(index) != len(ids):
        seen: set[str] = set()
        twice = next(name for name in ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError(f"recording {twice!r} stands twice in a list of features")
    return index


@one_line
@dataclass(frozen=True)
class FeatureTable:
    """Raw features of many recordings, as stored on disk.

    Attributes
    ----------
    ids : ndarray of str of shape (R,)
    offsets : ndarray of int64 of shape (R + 1,)
        Rows offsets[r] to offsets[r + 1] belong to recording r.
    cepstra : ndarray or StoredArray of shape (N, n_cepstra)
    log_energy : ndarray of shape (N,)
    speech : ndarray of bool of shape (N,)
    """

    ids: NDArray
    offsets: NDArray[np.int64]
    cepstra: Rows
    log_energy: NDArray
    speech: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, row: int) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return the cepstra, log-energy and speech labels of the recording in this row."""
        cepstra, log_energy, speech = self.reference(row)
        return np.asarray(cepstra), log_energy, speech

    def reference(self, row: int) -> tuple[Rows, NDArray, NDArray[np.bool_]]:
        """Return the same as `of`, but cepstra that are in a file are not read."""
        start, stop = self.offsets[row : row + 2].tolist()
        return part(self.cepstra, start, stop), self.log_energy[start:stop], self.speech[start:stop]


@one_line
@dataclass(frozen=True)
class Frames:
    """Post-processed frames of many recordings, in memory, mapped from a file, or read from one by each worker.

    Attributes
    ----------
    ids : ndarray of str of shape (R,)
    offsets : ndarray of int64 of shape (R + 1,)
    values : ndarray or StoredArray of shape (N, D)
    """

    ids: NDArray
    offsets: NDArray[np.int64]
    values: Rows
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", row_index(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """Length D of a frame."""
        return self.values.shape[1]

    def of(self, recording: str) -> Rows:
        """Return the frames (T, D) of one recording: a view, or a reference into the file.

        Raises
        ------
        DataError
            If there are none of that id.
        """
        row = self._rows.get(recording)
        if row is None:
            raise DataError(f"no features of recording {recording!r}", remedy="extract them first")
        return part(self.values, *self.offsets[row : row + 2].tolist())

    def stack(self, recordings: Iterable[str]) -> Rows:
        """Return the frames of several recordings as one array; a view where they lie one after the other, else a copy.

        Of frames in a file a copy is a file too, see `TemporaryRows`.
        """
        rows = []
        for recording in recordings:
            self.of(recording)
            rows.append(self._rows[recording])
        if not rows:
            return part(self.values, 0, 0)
        if rows == list(range(rows[0], rows[0] + len(rows))):
            return part(self.values, int(self.offsets[rows[0]]), int(self.offsets[rows[-1] + 1]))
        parts = [part(self.values, *self.offsets[row : row + 2].tolist()) for row in rows]
        if not isinstance(self.values, StoredArray):
            return np.concatenate(parts)
        shape = (sum(map(len, parts)), self.dimension)
        copy = TemporaryRows(self.values.path.parent, shape, self.values.dtype, what="frames", named=True)
        for frames in parts:
            copy.append(np.asarray(frames))
        return copy.stored()


def read_feature_table(path: str | Path) -> FeatureTable:
    """Open a feature store of ours; the cepstra are read when they are asked for."""
    small = read_arrays(path, "ids", "offsets", "speech", "energy")
    cepstra = stored_array(path, "cep")
    forms = {"ids": "O1", "offsets": "i1", "speech": "b1", "energy": "f1", "cep": "f2"}
    check_forms(path, {**small, "cep": cepstra}, **forms)
    table = FeatureTable(small["ids"], small["offsets"], cepstra, small["energy"], small["speech"])
    n_frames = {len(table.cepstra), len(table.log_energy), len(table.speech), *table.offsets[-1:].tolist()}
    if (
        len(table.offsets) != len(table.ids) + 1
        or len(n_frames) != 1
        or table.offsets[0]
        or (np.diff(table.offsets) < 0).any()
    ):
        raise DataError("the parts of the feature store do not fit together", file=path, remedy="extract it again")
    return table
