"""Frames for the models: the stored features of all recordings, post-processed once and kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, fill_rows
from spkbase.files import TemporaryRows
from spkbase.work import ALL_CORES, Work, chunks, ships_items
from spkver.features.config import FeatureConfig
from spkver.features.frames import FeatureTable, Frames
from spkver.features.postprocess import post_process, rasta_labels

logger = logging.getLogger(__name__)

_REMEDY = "free space, or raise features.memory_gb if there is memory"
_RECORDINGS = 64  # in one task


def load_frames(table: FeatureTable, config: FeatureConfig, *, folder: str | Path, work: Work = ALL_CORES) -> Frames:
    """Post-process all recordings once and keep their frames.

    Parameters
    ----------
    table : FeatureTable
    config : FeatureConfig
    folder : path
        Where frames that exceed `config.memory_gb` are kept in an unnamed file, mapped into memory. Where workers are
        processes or other machines (`spkbase.work.ships_items`), frames are always kept there, in a file that
        the workers read by its name and that is removed when this process ends.
    work : spkbase.work.Work
        Its workers; the frames do not depend on them.

    Returns
    -------
    Frames
    """
    offsets = _kept_offsets(table, config)
    shape = (int(offsets[-1]), config.dimension)
    parts = chunks(range(len(table)), _RECORDINGS)
    items = ([table.reference(row) for row in rows] for rows in parts)
    blocks = work.on_cores().map(partial(_post_process, config=config), items, description="frames", total=len(parts))
    return Frames(table.ids, offsets, _kept_frames(blocks, shape, config, folder))


def _kept_frames(blocks: Iterator[NDArray], shape: tuple[int, int], config: FeatureConfig, folder: str | Path) -> Rows:
    """Return all frames: in memory, mapped, or in a file that workers read by its name; see `load_frames`."""
    size = shape[0] * shape[1] * np.dtype(config.dtype).itemsize
    if size <= config.memory_gb * 1e9 and not ships_items():
        values = np.empty(shape, config.dtype)
        fill_rows([values], ((block,) for block in blocks))
        return values
    if not ships_items():
        logger.info("frames take %.1f GB, more than features.memory_gb: they are kept in %s", size / 1e9, folder)
    kept = TemporaryRows(folder, shape, config.dtype, what="frames", named=ships_items(), remedy=_REMEDY)
    for block in blocks:
        kept.append(block)
    return kept.stored() if ships_items() else kept.mapped()


def _kept_offsets(table: FeatureTable, config: FeatureConfig) -> NDArray[np.int64]:
    """Rows of each recording after the selection of speech."""
    if config.keep_all:
        return np.asarray(table.offsets, np.int64)
    counts = [0]
    for start, stop in pairwise(table.offsets.tolist()):
        speech = table.speech[start:stop]
        counts.append(int((rasta_labels(speech) if config.rasta else speech).sum()))
    return np.cumsum(counts, dtype=np.int64)


def _post_process(recordings: list[tuple[Rows, NDArray, NDArray]], config: FeatureConfig) -> NDArray:
    """Return the frames of some recordings, one after the other."""
    of_recordings = [
        post_process(np.asarray(cepstra), log_energy, speech, config)[0].astype(config.dtype, copy=False)
        for cepstra, log_energy, speech in recordings
    ]
    return np.concatenate(of_recordings)
