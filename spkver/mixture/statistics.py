"""Zero- and first-order statistics of segments under a mixture; they add.

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000, equations 7 to 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, fill_rows
from spkbase.errors import DataError
from spkbase.runs import DestinationLike, as_destination
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Device, Work, chunk_bounds, chunks
from spkver.features import Frames
from spkver.mixture.gmm import GaussianMixture, PosteriorKernel, check_frames, natural_parameters
from spkver.mixture.stat_files import open_stat_server, write_stat_blocks, write_stat_rows
from spkver.mixture.statistics_device import segment_sums
from spkver.sidekit import read_stat_server

_SEGMENTS = 32  # in one task and in one block of a file ...
_DEVICE_SEGMENTS = 256  # ... and on a device


def segment_statistics(frames: NDArray, kernel: PosteriorKernel) -> NDArray[np.float64]:
    """Return the statistics of one segment.

        n_c = sum_t P(c | x_t),   f_c = sum_t P(c | x_t) x_t

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    kernel : PosteriorKernel
        Of the mixture, in the dtype of the frames.

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


@one_line
@dataclass(frozen=True)
class Statistics:
    """Statistics of N segments, each belonging to a model.

    Attributes
    ----------
    models, segments : ndarray of str of shape (N,)
    zeroth : ndarray or StoredArray of shape (N, C)
        Frames that each component takes.
    first : ndarray or StoredArray of shape (N, C * D)
        Sum of those frames, component after component; not centred.
    """

    models: NDArray
    segments: NDArray
    zeroth: Rows
    first: Rows

    def __post_init__(self) -> None:
        lengths = {len(self.models), len(self.segments), len(self.zeroth), len(self.first)}
        if len(lengths) != 1 or self.zeroth.ndim != 2 or self.first.ndim != 2:
            raise DataError(
                f"statistics need models (N,), segments (N,), zeroth (N, C) and first (N, C D); got "
                f"{len(self.models)}, {len(self.segments)}, {self.zeroth.shape}, {self.first.shape}"
            )

    def __len__(self) -> int:
        return len(self.models)


def accumulate_statistics(
    mixture: GaussianMixture,
    frames: Frames,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Statistics:
    """Return the statistics of each (model, segment) row of a list.

    Parameters
    ----------
    mixture : GaussianMixture
    frames : Frames
    models, segments : sequence of str, of length N
    work : spkbase.work.Work
        A segment's statistics depend on its frames alone, not on workers or on the rest of the list; those of a device
        are equal to the rounding of the dtype.
    destination : Destination or path, optional
        With a path, rows go straight into a file in the layout of SIDEKIT's StatServer, float32, and are read from it
        when they are asked for. A segment that stands in several rows is worked out for each then. The fingerprint is
        that of the frames and the mixture.

    Returns
    -------
    Statistics
        In memory in the dtype of the frames.

    Raises
    ------
    DataError
        If a segment has no frames, statistics are not finite, or the file cannot be written.
    """
    n_components, width = mixture.n_components, mixture.means.size
    destination = as_destination(destination)
    if destination.path is not None:
        zeroth, first = write_stat_blocks(
            destination,
            models,
            segments,
            (n_components, width),
            lambda draft: statistic_blocks(mixture, frames, segments[draft.n_rows :], work=work),
            n_blocks=len(chunk_bounds(len(segments), _block_length(work.device))),
        )
        return Statistics(np.asarray(models, object), np.asarray(segments, object), zeroth, first)
    distinct = sorted(set(segments))
    zeroth = np.empty((len(distinct), n_components), frames.values.dtype)
    first = np.empty((len(distinct), width), frames.values.dtype)
    fill_rows((zeroth, first), statistic_blocks(mixture, frames, distinct, work=work))
    row_of = {segment: row for row, segment in enumerate(distinct)}
    rows = np.array([row_of[segment] for segment in segments], np.int64)
    if not np.array_equal(rows, np.arange(len(distinct))):
        zeroth, first = zeroth[rows], first[rows]
    return Statistics(np.asarray(models, object), np.asarray(segments, object), zeroth, first)


def statistic_blocks(
    mixture: GaussianMixture, frames: Frames, segments: Sequence[str] | NDArray, *, work: Work = ALL_CORES
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield the zeroth (n, C) and first (n, C * D) statistics of block after block of segments, in their order."""
    check_frames(frames.values, mixture)
    for segment in segments:
        if not len(frames.of(segment)):
            raise DataError(f"recording {segment!r} has no frames", remedy="remove it from the lists")
    blocks = chunks(list(segments), _block_length(work.device))
    items = ([frames.of(segment) for segment in block] for block in blocks)
    sums_of_block = partial(_block_statistics, parameters=natural_parameters(mixture), device=work.device)
    return work.map(sums_of_block, items, description="statistics", sizes=[*map(len, blocks)])


def _block_length(device: Device | None) -> int:
    return _SEGMENTS if device is None else _DEVICE_SEGMENTS


def _block_statistics(
    segments: list[Rows], parameters: NDArray[np.float64], device: Device | None
) -> tuple[NDArray, NDArray]:
    if device is not None:
        zeroth, first = segment_sums([np.asarray(frames) for frames in segments], parameters, device)
        return zeroth, first.reshape(len(segments), -1)
    dtype = segments[0].dtype
    kernel = PosteriorKernel(parameters, dtype, segments[0].shape[1])
    statistics = np.empty((len(segments), len(parameters), segments[0].shape[1] + 1), dtype)
    for row, frames in enumerate(segments):
        statistics[row] = segment_statistics(np.asarray(frames), kernel)
    return statistics[:, :, -1], statistics[:, :, :-1].reshape(len(segments), -1)


def open_statistics(path: str | Path) -> Statistics:
    """Refer to the statistics in a file; `zeroth` and `first` are read by rows, when they are asked for."""
    return Statistics(*open_stat_server(path))


def read_statistics(path: str | Path) -> Statistics:
    """Read the statistics of a file that `write_statistics`, a recipe or SIDEKIT wrote, all of them, in float32.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, or a number is not finite.
    """
    server = read_stat_server(path)
    return Statistics(server.models, server.segments, server.stat0, server.stat1)


def write_statistics(path: DestinationLike, statistics: Statistics) -> None:
    """Write statistics in the layout of SIDEKIT's StatServer, in float32, whole or not at all.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    write_stat_rows(path, statistics.models, statistics.segments, (statistics.zeroth, statistics.first))
