"""Features of many recordings in one table: one array for all, one row range for each recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkver.errors import DataError
from spkver.store import map_array, read_arrays


def row_index(ids: Sequence[str] | NDArray) -> dict[str, int]:
    """Place of each id.

    Raises
    ------
    DataError
        If an id is repeated.
    """
    index = {name: place for place, name in enumerate(ids)}
    if len(index) != len(ids):
        seen: set[str] = set()
        twice = next(name for name in ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError(f"recording {twice!r} stands twice in a list of features")
    return index


@dataclass(frozen=True)
class FeatureTable:
    """Raw features of many recordings, as stored on disk.

    Attributes
    ----------
    ids : ndarray of str [shape=(R,)]
    offsets : ndarray of int64 [shape=(R + 1,)]
        Rows offsets[r] to offsets[r + 1] belong to recording r.
    cepstra : ndarray [shape=(N, n_cepstra)]
    log_energy : ndarray [shape=(N,)]
    speech : ndarray of bool [shape=(N,)]
    """

    ids: NDArray
    offsets: NDArray[np.int64]
    cepstra: NDArray
    log_energy: NDArray
    speech: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, row: int) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Cepstra, log-energy and speech labels of the recording in this row."""
        here = slice(self.offsets[row], self.offsets[row + 1])
        return self.cepstra[here], self.log_energy[here], self.speech[here]


@dataclass(frozen=True)
class Frames:
    """Post-processed frames of many recordings, in memory or mapped from a file.

    Attributes
    ----------
    ids : ndarray of str [shape=(R,)]
    offsets : ndarray of int64 [shape=(R + 1,)]
    values : ndarray [shape=(N, D)]
    """

    ids: NDArray
    offsets: NDArray[np.int64]
    values: NDArray
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", row_index(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """Length D of a frame."""
        return self.values.shape[1]

    def of(self, recording: str) -> NDArray:
        """Frames (T, D) of one recording.

        Raises
        ------
        DataError
            If there are none of that id.
        """
        row = self._rows.get(recording)
        if row is None:
            raise DataError(f"no features of recording {recording!r}", remedy="extract them first")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def stack(self, recordings: Iterable[str]) -> NDArray:
        """Frames of several recordings as one array; a view where they lie one after the other, else a copy."""
        rows = []
        for recording in recordings:
            self.of(recording)
            rows.append(self._rows[recording])
        if not rows:
            return self.values[:0]
        if rows == list(range(rows[0], rows[0] + len(rows))):
            return self.values[self.offsets[rows[0]] : self.offsets[rows[-1] + 1]]
        return np.concatenate([self.values[self.offsets[row] : self.offsets[row + 1]] for row in rows])


def read_feature_table(path: str | Path) -> FeatureTable:
    """Open a feature store of ours; the big arrays are mapped, not read."""
    small = read_arrays(path, "ids", "offsets", "speech", "energy")
    table = FeatureTable(small["ids"], small["offsets"], map_array(path, "cep"), small["energy"], small["speech"])
    n_frames = {len(table.cepstra), len(table.log_energy), len(table.speech), int(table.offsets[-1])}
    if len(table.offsets) != len(table.ids) + 1 or len(n_frames) != 1 or (np.diff(table.offsets) < 0).any():
        raise DataError("the parts of the feature store do not fit together", file=path, remedy="extract it again")
    return table
