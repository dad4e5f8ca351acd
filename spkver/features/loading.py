"""Frames for the models: the stored features of all recordings, post-processed once and kept."""

from __future__ import annotations

import logging
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunks, ordered_map
from spkver.errors import DataError
from spkver.features.config import FeatureConfig
from spkver.features.frames import FeatureTable, Frames
from spkver.features.postprocess import post_process, rasta_labels

logger = logging.getLogger(__name__)

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
    values = np.empty(shape, config.dtype) if size <= config.memory_gb * 1e9 else _mapped(folder, shape, config.dtype)
    work = partial(_fill, table=table, config=config, offsets=offsets, values=values)
    for _ in ordered_map(work, chunks(range(len(table)), _CHUNK), jobs=jobs, threads=True, description="frames"):
        pass
    return Frames(table.ids, offsets, values)


def _mapped(folder: str | Path, shape: tuple[int, int], dtype: str) -> NDArray:
    """An array in a file without a name: it is gone with the process."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    logger.info("frames take %.1f GB, more than features.memory_gb: they are kept in %s", size / 1e9, folder)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
            if hasattr(os, "posix_fallocate"):
                # reserved now: later, a full disk would be a signal that kills the process
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    except OSError as error:
        raise DataError(
            f"no space for {size / 1e9:.1f} GB of frames: {error.strerror or error}",
            file=folder,
            remedy="free space, or raise features.memory_gb if there is memory",
        ) from error


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
            keep_energy=config.log_energy,
            apply_rasta=config.rasta,
            deltas=config.deltas,
            normalisation=config.normalisation,
            keep_all=config.keep_all,
        )
        values[offsets[row] : offsets[row + 1]] = frames
