"""Zeroth- and first-order statistics of segments under a mixture, which can be added.

Statistics and supervectors are written and read by blocks of rows, in files of SIDEKIT's layout.

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000, equations 7 to 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import check_index
from spkbase.arrays import Rows, chosen_rows, fill_rows, part
from spkbase.errors import DataError, counted, few
from spkbase.files import fingerprint
from spkbase.progress import verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, chunks
from spkver.features import Frames
from spkver.mixture.gmm import GaussianMixture, PosteriorKernel, check_frames, natural_parameters
from spkver.sidekit import (
    StatServer,
    open_stat_server,
    read_stat_server,
    write_stat_blocks,
    write_stat_server,
)

_SEGMENTS = 32  # number of segments in a task and in a block of a file
_REMEDY = "accumulate them on the mixture that they are used with"


def copy_stat_rows(
    path: str | Path,
    models: Sequence[str] | NDArray[Any],
    segments: Sequence[str] | NDArray[Any],
    destination: str | Path,
    *,
    widths: tuple[int, int] | None = None,
) -> None:
    """Copy the rows of given (model, segment) pairs, in that order, from a file of SIDEKIT's StatServer.

    Parameters
    ----------
    path : path
        A StatServer, which may have other rows.
    models, segments : sequence of str, of length N
        The list.
    destination : path
        The new file.
    widths : (int, int), optional
        The columns that stat0 and stat1 must have; any by default.

    Raises
    ------
    DataError
        If the file is broken or of another kind, has other columns, or lacks a row.
    """
    rows = find_stat_rows(path, models, segments)
    server = open_stat_server(path)
    columns = (server.stat0.shape[1], server.stat1.shape[1])
    if widths is not None and columns != widths:
        text = f"stat0 and stat1 have {columns} columns, expected {widths} for the mixture"
        remedy = "give the mixture that these statistics were made with (ubm.file)"
        raise DataError(text, file=path, remedy=remedy)
    write_stat_server(destination, server, rows)


def find_stat_rows(
    path: str | Path, models: Sequence[str] | NDArray[Any], segments: Sequence[str] | NDArray[Any]
) -> NDArray[np.int64]:
    """Return the row of each (model, segment) of a list in a file of SIDEKIT's StatServer.

    Raises
    ------
    DataError
        If the file is broken, holds a pair twice, or lacks one.
    """
    server = open_stat_server(path)
    row_of: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(zip(server.models.tolist(), server.segments.tolist(), strict=True)):
        if row_of.setdefault(pair, row) != row:
            text = f"{pair[0]} {pair[1]} is in rows {row_of[pair]} and {row}"
            raise DataError(text, file=path, remedy="write it again with each row once")
    pairs = [*zip(models, segments, strict=True)]
    absent = [" ".join(pair) for pair in pairs if pair not in row_of]
    if absent:
        text = f"{len(absent)} of {len(pairs)} rows of the list are not there: {few(absent)}"
        raise DataError(text, file=path, remedy="make it from the same list")
    return np.array([row_of[pair] for pair in pairs], np.int64)


def segment_statistics(frames: NDArray[Any], kernel: PosteriorKernel) -> NDArray[np.float64]:
    """Return the statistics of one segment.

        n_c = sum_t P(c | x_t),   f_c = sum_t P(c | x_t) x_t

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    kernel : PosteriorKernel
        Kernel of the mixture, in the dtype of the frames.

    Returns
    -------
    ndarray of shape (C, D + 1)
        Rows [f_c, n_c]; blocks of frames are added in float64.
    """
    dimension = frames.shape[1]
    total = 0.0
    for start, stop in chunk_bounds(len(frames), kernel.size):
        joint, augmented, _ = kernel(frames[start:stop])
        total = total + (joint @ augmented[:, -1 - dimension :]).astype(np.float64)
    return np.asarray(total)


class SegmentRows:
    """Base class for dataclasses of columns with a row per segment, each belonging to a model.

    Rows can be chosen and joined.
    """

    models: NDArray[Any]
    segments: NDArray[Any]

    def __getitem__(self, rows: Any) -> Self:
        """Return the rows, in memory, chosen by a slice, a mask, numbers or ids of segments."""
        return self._taken(chosen_rows(rows, self.segments))

    def of_models(self, models: Sequence[str] | NDArray[Any]) -> Self:
        """Return the rows of some models, in the order of the list; raise a DataError if a model has none."""
        return self._taken(chosen_rows(np.asarray(models, object), self.models))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the concatenated rows of several objects, in memory.

        Raises
        ------
        DataError
            If there are no objects, their columns or mixtures differ, or a segment of a model is in two of them.
        """
        if not parts:
            raise DataError("expected at least one part to join, got none")
        columns: dict[str, Any] = {}
        for entry in fields(cast("Any", parts[0])):
            values = [getattr(part, entry.name) for part in parts]
            columns[entry.name] = _joined_column(entry.name, values)
        joined = cls(**columns)
        pairs = Counter(zip(joined.models.tolist(), joined.segments.tolist(), strict=True))
        twice = [" ".join(pair) for pair, count in pairs.items() if count > 1]
        if twice:
            text = f"{counted(len(twice), 'segment')} in the parts twice: {few(twice)}"
            raise DataError(text, remedy="choose rows of one of them: part[ids]")
        return joined

    def _taken(self, rows: NDArray[np.int64]) -> Self:
        columns: dict[str, Any] = {}
        for entry in fields(cast("Any", self)):
            values = getattr(self, entry.name)
            if values is not None and not isinstance(values, str):
                columns[entry.name] = values[rows]
        return cast("Self", replace(cast("Any", self), **columns))


@one_line
@dataclass(frozen=True)
class Statistics(SegmentRows):
    """Statistics of N segments, each belonging to a model.

    Attributes
    ----------
    models, segments : ndarray of str of shape (N,)
    zeroth : ndarray or StoredArray of shape (N, C)
        Number of frames of each component: the sum of its posteriors.
    first : ndarray or StoredArray of shape (N, C * D)
        Sums of the frames, weighted by these posteriors, sorted by component; not centred.
    mixture : str
        Digest of the means of the mixture on which they were accumulated; empty if unknown, as in files.
    """

    models: NDArray[Any]
    segments: NDArray[Any]
    zeroth: Rows
    first: Rows
    mixture: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        lengths = {len(self.models), len(self.segments), len(self.zeroth), len(self.first)}
        if len(lengths) != 1 or self.zeroth.ndim != 2 or self.first.ndim != 2:
            needs = "models (N,), segments (N,), zeroth (N, C) and first (N, C D)"
            got = (
                f"{len(self.models)}, {len(self.segments)}, {self.zeroth.shape}, {self.first.shape}"
            )
            raise DataError(f"statistics need {needs}; got {got}")

    def __len__(self) -> int:
        return len(self.models)

    def part(self, start: int, stop: int) -> Statistics:
        """Return the rows from `start` to `stop` - 1; rows in a file are not read."""
        rows = slice(start, stop)
        zeroth = part(self.zeroth, start, stop)
        first = part(self.first, start, stop)
        return Statistics(self.models[rows], self.segments[rows], zeroth, first, self.mixture)

    def check(self, means: NDArray[Any]) -> None:
        """Raise a DataError if these are known not to be statistics of the mixture with these means (C, D)."""
        n_components, dimension = means.shape
        if (self.zeroth.shape[1], self.first.shape[1]) != (n_components, n_components * dimension):
            text = f"statistics of shapes {self.zeroth.shape} and {self.first.shape} do not fit a mixture of "
            text += f"{n_components} Gaussians in {dimension} dimensions"
            raise DataError(text, remedy=_REMEDY)
        if self.mixture and self.mixture != _mixture_digest(means):
            text = "these statistics were accumulated on another mixture, of the same size"
            raise DataError(text, remedy=_REMEDY)


@verbosely
def accumulate_statistics(
    mixture: GaussianMixture,
    frames: Frames,
    models: Sequence[str] | NDArray[Any],
    segments: Sequence[str] | NDArray[Any],
    *,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
    verbose: bool = True,
) -> Statistics:
    """Return the statistics of each (model, segment) row of a list.

    Parameters
    ----------
    mixture : GaussianMixture
    frames : Frames
    models, segments : sequence of str, of length N
    work : spkbase.work.Work
        Workers. A segment's statistics depend only on its frames, not on workers or the rest of the list.
    destination : path, optional
        File for the rows, in the layout of SIDEKIT's StatServer in float32, from which they are read on access. A
        segment in several rows is then computed for each.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Statistics
        Statistics, in memory in the dtype of the frames.

    Raises
    ------
    DataError
        If a segment has no frames, statistics are not finite, or the file cannot be written.
    """
    check_index(models=models, segments=segments)
    widths = mixture.n_components, mixture.means.size
    digest = _mixture_digest(mixture.means)
    if destination is not None:
        blocks = statistic_blocks(mixture, frames, segments, work=work)
        return Statistics(*write_stat_blocks(destination, models, segments, widths, blocks), digest)
    distinct = sorted(set(segments))
    zeroth = np.empty((len(distinct), widths[0]), frames.values.dtype)
    first = np.empty((len(distinct), widths[1]), frames.values.dtype)
    fill_rows((zeroth, first), statistic_blocks(mixture, frames, distinct, work=work))
    row_of = {segment: row for row, segment in enumerate(distinct)}
    rows = np.array([row_of[segment] for segment in segments], np.int64)
    if not np.array_equal(rows, np.arange(len(distinct))):
        zeroth = zeroth[rows]
        first = first[rows]
    names = np.asarray(models, object), np.asarray(segments, object)
    return Statistics(*names, zeroth, first, digest)


def statistic_blocks(
    mixture: GaussianMixture,
    frames: Frames,
    segments: Sequence[str] | NDArray[Any],
    *,
    work: Work = ALL_CORES,
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the zeroth (n, C) and first (n, C * D) statistics of segments, block by block, in order."""
    check_frames(frames.values, mixture)
    for segment in segments:
        if not len(frames.of(segment)):
            raise DataError(
                f"recording {segment!r} has no frames", remedy="remove it from the lists"
            )
    blocks = chunks(list(segments), _SEGMENTS)
    items = ([*map(frames.of, block)] for block in blocks)
    sums_of_block = partial(_block_statistics, parameters=natural_parameters(mixture))
    return work.map(sums_of_block, items, description="statistics", sizes=[*map(len, blocks)])


def open_statistics(path: str | Path) -> Statistics:
    """Open the statistics in a file; `zeroth` and `first` are read by rows, on access."""
    return Statistics(*open_stat_server(path))


def read_statistics(path: str | Path) -> Statistics:
    """Read all statistics of a file that `write_statistics`, a recipe or SIDEKIT wrote, in float32.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, or a number is not finite.
    """
    return Statistics(*read_stat_server(path))


def write_statistics(path: str | Path, statistics: Statistics) -> None:
    """Write statistics in the layout of SIDEKIT's StatServer, in float32, whole or not at all.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    columns = statistics.models, statistics.segments, statistics.zeroth, statistics.first
    write_stat_server(path, StatServer(*columns))


def _mixture_digest(means: NDArray[Any]) -> str:
    """Return a digest of the means of a mixture, as float32, which distinguishes mixtures of the same size."""
    return fingerprint(np.asarray(means, np.float32))


def _joined_column(name: str, values: Sequence[Any]) -> Any:
    if isinstance(values[0], str):
        return _shared_mixture(values)
    if all(value is None for value in values):
        return None
    try:
        return np.concatenate([*map(np.asarray, values)])
    except ValueError as error:
        text = f"the {name} of the parts to join differ in shape: {error}"
        raise DataError(text) from error


def _shared_mixture(digests: Sequence[str]) -> str:
    """Return the digest of the mixture of all parts; empty if that of a part is unknown."""
    if len(set(digests) - {""}) > 1:
        text = "the statistics to join were accumulated on different mixtures"
        raise DataError(text, remedy="accumulate all of them on the same mixture")
    return min(digests)


def _block_statistics(
    segments: list[Rows], parameters: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    dtype = segments[0].dtype
    kernel = PosteriorKernel(parameters, dtype, segments[0].shape[1])
    statistics = np.empty((len(segments), len(parameters), segments[0].shape[1] + 1), dtype)
    for row, frames in enumerate(segments):
        statistics[row] = segment_statistics(np.asarray(frames), kernel)
    return statistics[:, :, -1], statistics[:, :, :-1].reshape(len(segments), -1)
