"""Frames for the models: the stored features of all recordings, post-processed once and kept."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunks, ordered_map
from spkver.features.config import FeatureConfig
from spkver.features.frames import FeatureTable, Frames
from spkver.features.postprocess import post_process, rasta_labels

_CHUNK = 64  # recordings in one task


def load_frames(table: FeatureTable, config: FeatureConfig, *, folder: str | Path, jobs: int | None = None) -> Frames:
    """Post-process all recordings once and keep their frames.

    Parameters
    ----------
    table : FeatureTable
    config : FeatureConfig
    folder : path
        Where frames that exceed `config.memory_gb` are kept in an unnamed file, mapped into memory.
    jobs : int, optional
        Worker threads; the frames do not depend on it.

    Returns
    -------
    Frames
    """
    offsets = _kept_offsets(table, config)
    shape = (int(offsets[-1]), config.dimension)
    size = shape[0] * shape[1] * np.dtype(config.dtype).itemsize
    if size <= config.memory_gb * 1e9:
        values: NDArray = np.empty(shape, config.dtype)
    else:
        with tempfile.TemporaryFile(dir=folder) as file:
            values = np.memmap(file, dtype=config.dtype, mode="w+", shape=shape)
    work = partial(_fill, table=table, config=config, offsets=offsets, values=values)
    for _ in ordered_map(work, chunks(range(len(table)), _CHUNK), jobs=jobs, threads=True, description="frames"):
        pass
    return Frames(table.ids, offsets, values)


def _kept_offsets(table: FeatureTable, config: FeatureConfig) -> NDArray[np.int64]:
    """Rows of each recording after the selection of speech."""
    if config.keep_all:
        return np.asarray(table.offsets, np.int64)
    counts = [0]
    for row in range(len(table)):
        speech = table.of(row)[2]
        counts.append(int((rasta_labels(speech) if config.rasta else speech).sum()))
    return np.cumsum(counts, dtype=np.int64)


def _fill(rows: range, table: FeatureTable, config: FeatureConfig, offsets: NDArray, values: NDArray) -> None:
    for row in rows:
        frames, _ = post_process(
            *table.of(row),
            apply_rasta=config.rasta,
            deltas=config.deltas,
            normalisation=config.normalisation,
            keep_all=config.keep_all,
        )
        values[offsets[row] : offsets[row + 1]] = frames
