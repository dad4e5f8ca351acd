"""Features of many recordings in one table, where each recording has a range of rows, and the frames for models.

Frames are the stored features after RASTA, deltas, normalisation over speech, and selection, in the order and with the
edge conventions of SIDEKIT 1.3.2's features server. They are computed once and kept.

References
----------
H. Hermansky and N. Morgan, "RASTA processing of speech", IEEE Trans. Speech and Audio Processing 2(4), 1994.
S. Furui, "Comparison of speaker recognition methods using statistical features and dynamic features",
IEEE Trans. ASSP 29(3), 1981.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import vectors_of
from spkbase.arrays import Rows, StoredArray, fill_rows, keep_rows, part
from spkbase.errors import DataError, few
from spkbase.hdf5 import check_forms, open_file, read_arrays, stored_array
from spkbase.progress import verbosely
from spkbase.rounding import is_constant
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunks, ships_items
from spkver.features.config import FeatureConfig
from spkver.features.windows import (
    gaussianise,
    mask_columns,
    sdc_numbers,
    shifted_deltas,
    sliding_normalise,
)

logger = logging.getLogger(__name__)

_RASTA_NUMERATOR = np.array([0.2, 0.1, 0.0, -0.1, -0.2])
_RASTA_POLE = 0.94
_RASTA_START = 4  # number of frames that only prime the filter
_DELTA_FILTER = np.array([0.25, 0.5, 0.25, 0.0, -0.25, -0.5, -0.25])

_RECORDINGS = 64  # number of recordings in a task
_TRANSPOSED = "transposed? Frames are rows, (T, D): librosa's arrays are given as array.T"


class OtherFeaturesError(DataError):
    """Error: speech or features do not fit the settings of the features; the remedy names settings that do."""


def row_index(ids: Sequence[str] | NDArray[Any]) -> dict[str, int]:
    """Return the row of each id.

    Raises
    ------
    DataError
        If an id is repeated.
    """
    index = {name: row for row, name in enumerate(ids)}
    if len(index) != len(ids):
        twice = next(name for row, name in enumerate(ids) if index[name] != row)
        raise DataError(f"recording {twice!r} is repeated in a list of features")
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
    extraction : mapping
        The keys of `FeatureConfig` with which they were extracted; empty for SIDEKIT's features.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    cepstra: Rows
    log_energy: NDArray[Any]
    speech: NDArray[np.bool_]
    extraction: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, row: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Return the cepstra, log-energy and speech labels of the recording in this row."""
        cepstra, log_energy, speech = self.reference(row)
        return np.asarray(cepstra), log_energy, speech

    def reference(self, row: int) -> tuple[Rows, NDArray[Any], NDArray[np.bool_]]:
        """Return the same as `of`, but without reading cepstra that are in a file."""
        start, stop = self.offsets[row : row + 2].tolist()
        return part(self.cepstra, start, stop), self.log_energy[start:stop], self.speech[start:stop]


@one_line
@dataclass(frozen=True)
class Frames:
    """Post-processed frames of many recordings, in memory, or in a file from which each worker reads its part.

    Attributes
    ----------
    ids : ndarray of str of shape (R,)
    offsets : ndarray of int64 of shape (R + 1,)
    values : ndarray or StoredArray of shape (N, D)
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    values: Rows
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", vectors_of(self.values, "frames"))
        object.__setattr__(self, "_rows", row_index(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_dict(cls, recordings: Mapping[str, Any]) -> Frames:
        """Build frames from arrays in memory.

        Parameters
        ----------
        recordings : mapping of str to array_like of shape (T, D)
            Frames of each recording; T may differ, D must not. Whole numbers become float64; float32 is kept if all
            arrays have it. If D exceeds T in all recordings, there is a warning, since they may be transposed.

        Raises
        ------
        DataError
            If there are no recordings, an array does not hold numbers in two dimensions, or D differs; the recording is
            named.

        Examples
        --------
        >>> frames = Frames.from_dict({"a": np.zeros((3, 2)), "b": np.ones((5, 2))})
        >>> len(frames), frames.dimension, frames.of("b").shape
        (2, 2, (5, 2))
        """
        if not recordings:
            raise DataError("expected the frames of at least one recording, got none")
        parts: list[NDArray[Any]] = []
        for name, values in recordings.items():
            rows = vectors_of(values, f"frames of recording {name!r}")
            if parts and rows.shape[1] != parts[0].shape[1]:
                text = (
                    f"recording {name!r} has frames of {rows.shape[1]} dimensions, those before it "
                )
                remedy = f"extract all alike; {_TRANSPOSED}"
                raise DataError(f"{text}have {parts[0].shape[1]}", remedy=remedy)
            parts.append(np.asarray(rows))
        if all(rows.shape[1] > rows.shape[0] for rows in parts):
            logger.warning("all recordings have fewer frames than dimensions: %s", _TRANSPOSED)
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return cls(np.array([*recordings], object), offsets, np.concatenate(parts))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the frames (T, D) by recording id, in memory."""
        return {name: np.asarray(self.of(name)) for name in self.ids.tolist()}

    @property
    def dimension(self) -> int:
        """Length D of a frame."""
        return self.values.shape[1]

    def of(self, recording: str) -> Rows:
        """Return the frames (T, D) of one recording: a view, or a reference into the file.

        Raises
        ------
        DataError
            If no recording has that id.
        """
        row = self._rows.get(recording)
        if row is None:
            raise DataError(f"no features of recording {recording!r}", remedy="extract them first")
        return part(self.values, *self.offsets[row : row + 2].tolist())

    def stack(self, recordings: Iterable[str]) -> Rows:
        """Return the frames of several recordings as one array; a view if they are adjacent, else a copy.

        A copy of frames from a file is also a file.
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
        return keep_rows(self.values.path.parent, shape, self.values.dtype, map(np.asarray, parts))


def read_feature_table(path: str | Path) -> FeatureTable:
    """Open a feature store; the cepstra are read on demand."""
    small = read_arrays(path, "ids", "offsets", "speech", "energy")
    cepstra = stored_array(path, "cep")
    forms = {"ids": "O1", "offsets": "i1", "speech": "b1", "energy": "f1", "cep": "f2"}
    check_forms(path, {**small, "cep": cepstra}, **forms)
    with open_file(path) as file:
        extraction = dict(json.loads(file.attrs.get("extraction", "{}")))
    table = FeatureTable(
        small["ids"], small["offsets"], cepstra, small["energy"], small["speech"], extraction
    )
    offsets = table.offsets
    n_frames = {len(table.cepstra), len(table.log_energy), len(table.speech)}
    rises = len(offsets) == len(table.ids) + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
    if not rises or n_frames != {int(offsets[-1])}:
        raise DataError(
            "the parts of the feature store do not fit together",
            file=path,
            remedy="extract it again",
        )
    return table


def rasta(features: NDArray[Any], *, pole: float = _RASTA_POLE) -> NDArray[Any]:
    """Return the band-pass filtered trajectory of each coefficient.

    Parameters
    ----------
    features : ndarray of shape (T, d)
    pole : float

    Returns
    -------
    ndarray of float64 of shape (T, d)
        The output; the first four frames, which prime the filter, are 0.
    """
    from scipy.signal import lfilter

    filtered = np.zeros(features.shape)
    if len(features) > _RASTA_START:
        x = features.astype(np.float64)
        zero_state = np.zeros((len(_RASTA_NUMERATOR) - 1, x.shape[1]))
        _, state = lfilter(_RASTA_NUMERATOR, [1.0], x[:_RASTA_START], axis=0, zi=zero_state)
        filtered[_RASTA_START:], _ = lfilter(
            _RASTA_NUMERATOR, [1.0, -pole], x[_RASTA_START:], axis=0, zi=state
        )
    return filtered


def rasta_labels(speech: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the speech labels after RASTA: the first two frames, which it blanks, get the label of the third."""
    labels = speech.copy()
    labels[:2] = False
    if len(labels) > 2:
        labels[:2] = labels[2]
    return labels


def delta(features: NDArray[Any], *, weights: NDArray[Any] = _DELTA_FILTER) -> NDArray[Any]:
    """Return the slope of each coefficient over seven frames, with zeros beyond the ends.

    Parameters
    ----------
    features : ndarray of shape (T, d)
    weights : ndarray of odd length
        Weights, with which each column is convolved.

    Returns
    -------
    ndarray of float32 of shape (T, d)
        Single precision, as in the features server that this reproduces.
    """
    reach = len(weights) // 2
    padded = np.zeros((len(features) + 2 * reach, features.shape[1]))
    padded[reach : reach + len(features)] = features
    slope = np.zeros(features.shape)
    for start, weight in enumerate(weights[::-1]):
        if weight:
            slope += weight * padded[start : start + len(features)]
    return slope.astype(np.float32)


def normalise(
    frames: NDArray[Any], speech: NDArray[np.bool_], *, variance: bool = True
) -> NDArray[Any]:
    """Subtract the mean over speech frames from all frames and divide by the standard deviation (ddof 0).

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    speech : ndarray of bool of shape (T,)
    variance : bool
        Whether to divide too; otherwise only the mean is removed (CMS).

    Returns
    -------
    ndarray of shape (T, D)
        The frames, unchanged if there is no speech; a coefficient that is constant over speech is only centred.
    """
    if not speech.any():
        return frames
    selected = frames[speech]
    centred: NDArray[Any] = frames - selected.mean(axis=0)
    if variance:
        spread = selected.std(axis=0)
        centred /= np.where(is_constant(selected) | (spread == 0), 1.0, spread)
    return centred


def post_process(
    cepstra: NDArray[Any],
    log_energy: NDArray[Any],
    speech: NDArray[np.bool_],
    config: FeatureConfig,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the frames of one recording: energy first, RASTA, deltas, mask, normalisation, selection.

    Parameters
    ----------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
    speech : ndarray of bool of shape (T,)
    config : FeatureConfig
        Its `log_energy`, `rasta`, `deltas`, `sdc`, `mask`, `normalisation` and `keep_all`.

    Returns
    -------
    frames : ndarray of float64 of shape (T', config.dimension)
    speech : ndarray of bool of shape (T',)
    """
    static = cepstra
    if config.log_energy:
        static = np.column_stack([log_energy, cepstra])
    static = static.astype(np.float64)
    if config.rasta:
        static = rasta(static)
        speech = rasta_labels(speech)
    frames = with_deltas(static, config)
    if config.mask is not None:
        frames = frames[:, mask_columns(config.mask, frames.shape[1])]
    if config.normalisation in ("cmvn", "cms"):
        frames = normalise(frames, speech, variance=config.normalisation == "cmvn")
    if not config.keep_all:
        frames = frames[speech]
        speech = speech[speech]
    size = config.normalisation_window
    if config.normalisation == "stg":
        frames = gaussianise(frames, window=size)
    elif config.normalisation in ("cmvn_sliding", "cms_sliding"):
        divide = config.normalisation == "cmvn_sliding"
        frames = sliding_normalise(frames, window=size, variance=divide)
    return frames, speech


def with_deltas(static: NDArray[Any], config: FeatureConfig) -> NDArray[Any]:
    """Return the coefficients (T, d) with their deltas, or with shifted deltas."""
    parts = [static]
    if config.sdc is not None:
        size, spread, shift, blocks = sdc_numbers(config.sdc)
        first = static[:, :size]
        parts.append(shifted_deltas(first, spread=spread, shift=shift, blocks=blocks))
        return np.hstack(parts)
    for _ in range(config.deltas):
        parts.append(delta(parts[-1]))
    return np.hstack(parts)


def check_extraction(table: FeatureTable, config: FeatureConfig) -> None:
    """Raise an OtherFeaturesError if the features were extracted with values that differ from a configuration's."""
    wanted = config.extraction_record()
    made = {**table.extraction, "n_cepstra": table.cepstra.shape[1]}
    differing = []
    for name in wanted:
        if name in made and made[name] != wanted[name]:
            text = f"features.{name}={made[name]} (the configuration has {wanted[name]})"
            differing.append(text)
    if differing:
        raise OtherFeaturesError(
            f"the features were extracted with {few(differing)}",
            file=getattr(table.cepstra, "path", None),
            remedy="load them with these values, or extract them again",
        )


@verbosely
def load_frames(
    table: FeatureTable | str | Path,
    config: FeatureConfig,
    *,
    folder: str | Path,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> Frames:
    """Post-process all recordings once and keep their frames.

    Parameters
    ----------
    table : FeatureTable or path
        The features, or the store that `extract_features` wrote.
    config : FeatureConfig
        Settings; those of the extraction must be unchanged, the others may differ.
    folder : path
        Folder of a file for frames that exceed `config.memory_gb`, which is removed when this process ends. If workers
        are processes or other machines (`spkbase.work.ships_items`), frames are always kept in that file.
    work : spkbase.work.Work
        Its workers; the frames do not depend on them.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Frames

    Raises
    ------
    OtherFeaturesError
        If the features were extracted with other values; a store of an earlier version does not know them.
    """
    if not isinstance(table, FeatureTable):
        table = read_feature_table(table)
    check_extraction(table, config)
    offsets = np.asarray(table.offsets, np.int64)
    if not config.keep_all:
        counts = [0]
        for start, stop in pairwise(offsets.tolist()):
            speech = table.speech[start:stop]
            if config.rasta:
                speech = rasta_labels(speech)
            counts.append(int(speech.sum()))
        offsets = np.cumsum(counts, dtype=np.int64)
    shape = (int(offsets[-1]), config.dimension)
    parts = chunks(range(len(table)), _RECORDINGS)
    items = ([*map(table.reference, rows)] for rows in parts)
    process = partial(_post_process, config=config)
    blocks = work.map(process, items, description="frames", total=len(parts))
    size = shape[0] * shape[1] * np.dtype(config.dtype).itemsize
    if size > config.memory_gb * 1e9 or ships_items():
        if not ships_items():
            logger.debug(
                "frames need %.1f GB, more than features.memory_gb: they are kept in %s",
                size / 1e9,
                folder,
            )
        return Frames(table.ids, offsets, keep_rows(folder, shape, config.dtype, blocks))
    values = np.empty(shape, config.dtype)
    fill_rows([values], ((block,) for block in blocks))
    return Frames(table.ids, offsets, values)


def _post_process(
    recordings: list[tuple[Rows, NDArray[Any], NDArray[Any]]], config: FeatureConfig
) -> NDArray[Any]:
    """Return the frames of some recordings, one after another."""
    parts = []
    for cepstra, log_energy, speech in recordings:
        frames, _ = post_process(np.asarray(cepstra), log_energy, speech, config)
        parts.append(frames.astype(config.dtype, copy=False))
    return np.concatenate(parts)
