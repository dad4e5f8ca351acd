"""How many of a gallery score higher than the owner: blocked float32 products, and exact integers out of them.

The matrix of similarities is never held. A block of the gallery times a block of the trials gives cosines in float32,
which are compared with the owner's cosine from float64, a margin above it and a margin below. The margin is 1e-5, or
the largest error that a float32 product of so many dimensions can have, whichever is larger; so what lies outside is
certain, and what lies between is computed again in float64. Counts are therefore those of float64, whatever the shape
of the blocks, the library of products and the number of workers. Two cosines closer than 1e-12, which float64 cannot
tell apart, are a tie.

The products of a device (`evaluation.linkage.counts_device`) have a text of their own. On the cores comparisons are
summed eight at a time in the bytes of words, which the array namespace cannot say: its text takes 1.7 times as long
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import TIE, cosine_margin, cosines, to_unit
from evaluation.linkage.table import Counts
from spkbase.arrays import Rows, part, stored_rows
from spkbase.work import ALL_CORES, Work, chunk_bounds, ordered_map, ships_items

# Sums of comparisons are made eight at a time, in the bytes of one word: at most 255 rows go into a byte.
_GROUP = 255
_WORD = 8
GALLERY_BLOCK = 4 * _GROUP
TRIAL_BLOCK = 2048
_FEW = 8
_BLOCKS_SENT = 8  # in a piece of work that goes to another process, so that it is worth the way
_NOBODY = np.float32(-2.0)  # below any cosine


@dataclass(frozen=True, eq=False)
class _Trials:
    """Trials, ready for products; padded to whole blocks of words with columns that nothing beats."""

    unit: NDArray[np.float64]  # (n, D)
    bounds: list[tuple[int, int]]  # of each block
    padded: list[NDArray[np.float32]]  # for each block (at least as many, D)
    mated: NDArray[np.float64]  # (n,)
    low: list[NDArray[np.float32]]
    high: list[NDArray[np.float32]]
    owners: NDArray[np.int64]  # rows of the gallery, sorted
    owned: NDArray[np.int64]  # the trial of each


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows of a gallery, in memory or in a file."""

    start: int
    vectors: Rows  # (m, D)
    norms: NDArray[np.float64]  # (m,)


def count_beaters(
    gallery: Rows,
    norms: NDArray[np.float64],
    trials: NDArray[np.floating],
    owners: NDArray[np.int64],
    *,
    work: Work = ALL_CORES,
    blocks: tuple[int, int] = (GALLERY_BLOCK, TRIAL_BLOCK),
) -> Counts:
    """Return for each trial how many vectors of a gallery beat its owner.

    Parameters
    ----------
    gallery : ndarray of shape (G, D)
        Vectors of the enrolled, of any floating type; they may stand in a file, and are read block by block, once.
    norms : ndarray of float64 of shape (G,)
        Their lengths, none 0.
    trials : ndarray of shape (n, D)
        Vectors of the trials, none of length 0.
    owners : ndarray of int64 of shape (n,)
        For each trial the row of its owner in the gallery.
    work : Work
        Who computes; the counts do not depend on it. Where workers are other processes, a mapped gallery travels as the
        name of its file, another one in parts.
    blocks : (int, int)
        Rows and columns of a block of similarities; without effect on a device, whose memory says its own.

    Returns
    -------
    Counts
    """
    if work.device is not None:
        from evaluation.linkage.counts_device import count_on_device

        return count_on_device(gallery, norms, trials, owners, work.device)
    gallery_block, trial_block = blocks
    prepared = _prepare(gallery, norms, trials, owners, trial_block)
    rows = stored_rows(gallery) if ships_items() else gallery
    bounds = chunk_bounds(len(gallery), gallery_block * (_BLOCKS_SENT if ships_items() else 1))
    parts = (_Part(start, part(rows, start, stop), norms[start:stop]) for start, stop in bounds)
    count = partial(_count_part, prepared, gallery_block)
    n_trials = len(trials)
    beaters, ties = np.zeros(n_trials, np.int64), np.zeros(n_trials, np.int64)
    for more, same in ordered_map(count, parts, jobs=work.jobs, threads=True, description="ranks", total=len(bounds)):
        beaters += more
        ties += same
    return Counts(beaters, ties, prepared.mated)


def _prepare(
    gallery: Rows, norms: NDArray[np.float64], trials: NDArray, owners: NDArray[np.int64], trial_block: int
) -> _Trials:
    unit = to_unit(trials)
    n_trials, n_dimensions = unit.shape
    mated = cosines(gallery, norms, unit, owners, np.arange(n_trials))
    margin = cosine_margin(n_dimensions)
    padded: list[NDArray[np.float32]] = []
    bounds = chunk_bounds(n_trials, trial_block)
    low: list[NDArray[np.float32]] = []
    high: list[NDArray[np.float32]] = []
    for start, stop in bounds:
        length = -(-(stop - start) // _WORD) * _WORD
        block = np.zeros((length, n_dimensions), np.float32)
        block[: stop - start] = unit[start:stop]
        padded.append(block)
        for ends, shift in ((low, -margin), (high, margin)):
            end = np.full(length, np.inf, np.float32)
            end[: stop - start] = mated[start:stop] + shift
            ends.append(end)
    order = np.argsort(owners, kind="stable")
    return _Trials(unit, bounds, padded, mated, low, high, owners[order], order)


def _count_part(trials: _Trials, height: int, rows: _Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count over some rows of the gallery: for each trial those that are higher, and those that are the same."""
    beaters, ties = np.zeros(len(trials.mated), np.int64), np.zeros(len(trials.mated), np.int64)
    for start, stop in chunk_bounds(len(rows.norms), height):
        block = np.asarray(part(rows.vectors, start, stop))
        more, same = _count_block(block, rows.norms[start:stop], trials, rows.start + start)
        beaters += more
        ties += same
    return beaters, ties


def _count_block(
    block: NDArray, norms: NDArray[np.float64], trials: _Trials, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same over a block, the rows of the gallery from `start` on."""
    vectors = np.empty(block.shape, np.float32)
    np.multiply(block, (1 / norms)[:, None], out=vectors, casting="same_kind")
    first, last = np.searchsorted(trials.owners, [start, start + len(block)])
    own_rows, own_columns = trials.owners[first:last] - start, trials.owned[first:last]
    beaters, ties = np.zeros(len(trials.mated), np.int64), np.zeros(len(trials.mated), np.int64)
    similarities, flags = None, None
    for (at, end), padded, low, high in zip(trials.bounds, trials.padded, trials.low, trials.high, strict=True):
        width = end - at
        if similarities is None or similarities.shape[1] != len(padded):
            similarities = np.empty((len(vectors), len(padded)), np.float32)
            flags = np.empty((min(_GROUP, len(vectors)), len(padded)), bool)
        assert flags is not None
        np.matmul(vectors, padded.T, out=similarities)
        inside = (own_columns >= at) & (own_columns < end)
        similarities[own_rows[inside], own_columns[inside] - at] = _NOBODY
        for group in range(0, len(similarities), _GROUP):
            rows = similarities[group : group + _GROUP]
            certain, near_rows, columns = _compare(rows, low, high, flags[: len(rows)])
            beaters[at:end] += certain[:width]
            if len(columns):
                columns = columns + at
                exact = cosines(block, norms, trials.unit, near_rows + group, columns)
                above = exact - trials.mated[columns]
                np.add.at(beaters, columns[above > TIE], 1)
                np.add.at(ties, columns[np.abs(above) <= TIE], 1)
    return beaters, ties


def _compare(
    rows: NDArray[np.float32], low: NDArray[np.float32], high: NDArray[np.float32], flags: NDArray[np.bool_]
) -> tuple[NDArray[np.integer], NDArray[np.intp], NDArray[np.intp]]:
    """Count in each column the values above `high`, and find (rows, columns) of those between `low` and `high`."""
    np.greater(rows, low, out=flags)
    possible = _column_sums(flags)
    columns = np.flatnonzero(possible)
    if len(columns) * _FEW < len(low):  # most owners are beaten by none of the group: look at the others alone
        certain = np.zeros(len(low), np.uint8)
        values = rows[:, columns]
        certain[columns] = (values > high[columns]).sum(axis=0)
        columns = columns[possible[columns] > certain[columns]]
    else:
        np.greater(rows, high, out=flags)
        certain = _column_sums(flags)
        columns = np.flatnonzero(possible > certain)
    values = rows[:, columns]
    near_rows, near_columns = np.nonzero((values > low[columns]) & ~(values > high[columns]))
    return certain, near_rows, columns[near_columns]


def _column_sums(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Sum at most 255 rows of flags, in the bytes of words."""
    return np.add.reduce(flags.view(np.uint64), axis=0).view(np.uint8)
