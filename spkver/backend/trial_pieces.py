"""Lists of trials cut into what is scored at once: blocks of models times segments, and trials that form none."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spkbase.work import chunk_bounds

_SIDE = 256  # models, and segments, of one matrix product
_FEW = 16  # trials: smaller blocks are scored pair by pair
_TASK = 32e6  # bytes of rows in one task, or a little more


class CodedTrials(Protocol):
    """A list of trials by codes: `evaluation.trials.Trials`, or `Pairs`."""

    @property
    def models(self) -> NDArray:
        """Code of each trial's model, shape (n,)."""

    @property
    def segments(self) -> NDArray:
        """Code of each trial's segment, shape (n,)."""


def trial_blocks(trials: CodedTrials) -> list[NDArray[np.int64]]:
    """Group trials into full blocks of models times segments.

    Returns
    -------
    list of ndarray of int64 of shape (models, segments)
        Row numbers of trials: every row of a block is one model, every column one segment. Models are put together
        where their sets of segments are the same; each trial stands in one block.
    """
    order = np.lexsort((trials.segments, trials.models))
    bounds = np.flatnonzero(np.diff(trials.models[order], prepend=-1, append=-1))
    groups: dict[bytes, list[NDArray[np.int64]]] = {}
    for start, stop in pairwise(bounds):
        rows = order[start:stop]
        groups.setdefault(trials.segments[rows].tobytes(), []).append(rows)
    return [np.stack(rows) for rows in groups.values()]


def trial_pieces(trials: CodedTrials, *, paired: int) -> list[NDArray[np.int64]]:
    """Cut a list into pieces that are scored at once.

    Parameters
    ----------
    trials : CodedTrials
    paired : int
        Trials of a piece that is no block.

    Returns
    -------
    list of ndarray of int64
        Row numbers of trials, each in one piece. Those of shape (models, segments) are blocks; those of shape (n,) are
        trials of blocks that are too small, the trials of a segment one after the other.
    """
    pieces, scattered = [], [np.empty(0, np.int64)]
    for block in trial_blocks(trials):
        if block.size < _FEW:
            scattered.append(block.ravel())
            continue
        for first, last in chunk_bounds(block.shape[0], _SIDE):
            pieces += [block[first:last, start:stop] for start, stop in chunk_bounds(block.shape[1], _SIDE)]
    rest = np.concatenate(scattered)
    rest = rest[np.lexsort((trials.models[rest], trials.segments[rest]))]
    return pieces + [rest[start:stop] for start, stop in chunk_bounds(len(rest), paired)]


def put_together(pieces: list[NDArray[np.int64]], row_bytes: int) -> list[list[NDArray[np.int64]]]:
    """Put small pieces together into tasks that read rows of some size."""
    tasks: list[list[NDArray[np.int64]]] = []
    size = _TASK
    for piece in pieces:
        if size >= _TASK:
            tasks.append([])
            size = 0
        tasks[-1].append(piece)
        size += row_bytes * (2 * len(piece) if piece.ndim == 1 else sum(piece.shape))
    return tasks
