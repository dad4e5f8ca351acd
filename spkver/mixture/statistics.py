"""Zero- and first-order statistics of segments under a mixture; they add.

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000, equations 7 to 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows
from spkbase.errors import DataError
from spkbase.work import Device, chunk_bounds, chunks, ordered_map, progress
from spkver.features import Frames
from spkver.mixture.gmm import GaussianMixture, PosteriorKernel, check_frames, natural_parameters
from spkver.mixture.stat_files import StatDraft, open_stat_server
from spkver.mixture.statistics_device import segment_sums

_CHUNK = 32  # segments in one task and in one block of a file
_CHUNK_THERE = 256  # the same on a device


@dataclass(frozen=True)
class Statistics:
    """Statistics of N segments, each belonging to a model.

    Attributes
    ----------
    models, segments : ndarray of str [shape=(N,)]
    zeroth : ndarray or StoredArray [shape=(N, C)]
        Frames that each component takes.
    first : ndarray or StoredArray [shape=(N, C * D)]
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


def segment_statistics(frames: NDArray, kernel: PosteriorKernel) -> NDArray[np.float64]:
    """Statistics of one segment: rows [first (D,), zeroth] of each component, shape (C, D + 1)."""
    dimension = frames.shape[1]
    total = 0.0
    for first, last in chunk_bounds(len(frames), kernel.size):
        joint, augmented, _ = kernel(frames[first:last])
        total = total + (joint @ augmented[:, dimension:]).astype(np.float64)
    return np.asarray(total)


def accumulate_statistics(
    mixture: GaussianMixture,
    frames: Frames,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    *,
    jobs: int | None = None,
    device: Device | None = None,
) -> Statistics:
    """Statistics of each (model, segment) row of a list, in memory.

    Parameters
    ----------
    mixture : GaussianMixture
    frames : Frames
    models, segments : sequence of str, length N
    jobs : int, optional
        Workers. A segment's statistics depend on its frames alone, not on workers or on the rest of the list.
    device : spkbase.work.Device, optional
        Computes there instead, equal to the rounding of the frames' dtype.

    Returns
    -------
    Statistics
        In the dtype of the frames.

    Raises
    ------
    DataError
        If a segment has no frames.
    """
    unique = sorted(set(segments))
    shape = (len(unique), mixture.n_components, mixture.dimension)
    zeroth, first = (
        np.empty(shape[:2], frames.values.dtype),
        np.empty((len(unique), shape[1] * shape[2]), frames.values.dtype),
    )
    for (start, stop), block in zip(
        chunk_bounds(len(unique), _chunk(device)),
        _blocks(mixture, frames, unique, jobs=jobs, device=device),
        strict=True,
    ):
        zeroth[start:stop], first[start:stop] = block
    row = {segment: place for place, segment in enumerate(unique)}
    rows = np.array([row[segment] for segment in segments], np.int64)
    if not np.array_equal(rows, np.arange(len(unique))):
        zeroth, first = zeroth[rows], first[rows]
    return Statistics(np.asarray(models, object), np.asarray(segments, object), zeroth, first)


def stream_statistics(
    path: str | Path,
    mixture: GaussianMixture,
    frames: Frames,
    models: Sequence[str] | NDArray,
    segments: Sequence[str] | NDArray,
    *,
    folder: str | Path | None = None,
    fingerprint: str = "",
    attributes: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    device: Device | None = None,
) -> None:
    """Statistics of each row of a list straight into a file, a block of rows at a time.

    Parameters
    ----------
    path : path
        In the layout of SIDEKIT's StatServer, float32; `open_statistics` refers to its rows.
    mixture, frames, models, segments, jobs, device
        See `accumulate_statistics`, which gives the same numbers. A segment that stands in several rows is worked out
        for each.
    folder : path, optional
        Keeps what is done if the process is killed; called again with it, only the rest is worked out.
    fingerprint : str
        Of the frames and the mixture: what is in the folder is used again if it has the same.
    attributes : mapping, optional
        At the root of the file.

    Raises
    ------
    DataError
        If a segment has no frames, statistics are not finite, or the file cannot be written.
    """
    n_blocks = len(chunk_bounds(len(segments), _chunk(device)))
    widths = mixture.n_components, mixture.means.size
    with StatDraft(
        path, models, segments, widths, folder=folder, fingerprint=fingerprint, attributes=attributes, n_blocks=n_blocks
    ) as draft:
        for block in _blocks(mixture, frames, segments, done=draft.n_rows, jobs=jobs, device=device):
            draft.add(*block)
        draft.finish()


def open_statistics(path: str | Path) -> Statistics:
    """Refer to the statistics in a file; `zeroth` and `first` are read by rows, when they are asked for."""
    return Statistics(*open_stat_server(path))


def _blocks(
    mixture: GaussianMixture,
    frames: Frames,
    segments: Sequence[str] | NDArray,
    *,
    done: int = 0,
    jobs: int | None,
    device: Device | None,
) -> Iterator[tuple[NDArray, NDArray]]:
    """Zeroth and first statistics of blocks of segments, after those that are done."""
    check_frames(frames.values, mixture)
    for segment in segments:
        if not len(frames.of(segment)):
            raise DataError(f"recording {segment!r} has no frames", remedy="remove it from the lists")
    left = chunks(list(segments)[done:], _chunk(device))
    items = ([frames.of(segment) for segment in block] for block in left)
    work = partial(_block, parameters=natural_parameters(mixture), device=device)
    if device is not None:  # one device, one stream of blocks
        return progress(map(work, items), description="statistics", total=len(left))
    return ordered_map(work, items, jobs=jobs, threads=True, description="statistics", total=len(left))


def _chunk(device: Device | None) -> int:
    return _CHUNK if device is None else _CHUNK_THERE


def _block(
    segments: list[Rows], parameters: NDArray[np.float64], device: Device | None = None
) -> tuple[NDArray, NDArray]:
    """Statistics of each segment of a block: (n, C) and (n, C * D)."""
    if device is not None:
        zeroth, first = segment_sums([np.asarray(frames) for frames in segments], parameters, device)
        return zeroth, first.reshape(len(segments), -1)
    dtype = segments[0].dtype
    kernel = PosteriorKernel(parameters, dtype)
    found = np.empty((len(segments), len(parameters), segments[0].shape[1] + 1), dtype)
    for row, frames in enumerate(segments):
        found[row] = segment_statistics(np.asarray(frames), kernel)
    return found[:, :, -1], found[:, :, :-1].reshape(len(segments), -1)
