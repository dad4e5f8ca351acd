"""Zero- and first-order statistics of segments under a mixture; they add.

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000, equations 7 to 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunk_bounds, chunks, ordered_map
from spkver.errors import DataError
from spkver.features.frames import Frames
from spkver.gmm import GaussianMixture, PosteriorKernel, check_frames, natural_parameters

_CHUNK = 32  # segments in one task


@dataclass(frozen=True)
class Statistics:
    """Statistics of N segments, each belonging to a model.

    Attributes
    ----------
    models, segments : ndarray of str [shape=(N,)]
    zeroth : ndarray [shape=(N, C)]
        Frames that each component takes.
    first : ndarray [shape=(N, C * D)]
        Sum of those frames, component after component; not centred.
    """

    models: NDArray
    segments: NDArray
    zeroth: NDArray
    first: NDArray

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
) -> Statistics:
    """Statistics of each (model, segment) row of a list.

    Parameters
    ----------
    mixture : GaussianMixture
    frames : Frames
    models, segments : sequence of str, length N
    jobs : int, optional
        Worker threads. A segment's statistics depend on its frames alone, not on workers or on the rest of the list.

    Returns
    -------
    Statistics
        In the dtype of the frames.

    Raises
    ------
    DataError
        If a segment has no frames.
    """
    check_frames(frames.values, mixture)
    unique = sorted(set(segments))
    for segment in unique:
        if not len(frames.of(segment)):
            raise DataError(f"recording {segment!r} has no frames", remedy="remove it from the lists")
    shape = (len(unique), mixture.n_components, mixture.dimension)
    zeroth, first = np.empty(shape[:2], frames.values.dtype), np.empty(shape, frames.values.dtype)
    work = partial(
        _fill, frames=frames, segments=unique, parameters=natural_parameters(mixture), zeroth=zeroth, first=first
    )
    for _ in ordered_map(work, chunks(range(len(unique)), _CHUNK), jobs=jobs, threads=True, description="statistics"):
        pass
    first = first.reshape(len(unique), -1)
    row = {segment: place for place, segment in enumerate(unique)}
    rows = np.array([row[segment] for segment in segments], np.int64)
    if not np.array_equal(rows, np.arange(len(unique))):
        zeroth, first = zeroth[rows], first[rows]
    return Statistics(np.asarray(models, object), np.asarray(segments, object), zeroth, first)


def _fill(
    rows: range, frames: Frames, segments: list[str], parameters: NDArray, zeroth: NDArray, first: NDArray
) -> None:
    kernel = PosteriorKernel(parameters, frames.values.dtype)
    for row in rows:
        statistics = segment_statistics(frames.of(segments[row]), kernel)
        first[row], zeroth[row] = statistics[:, :-1], statistics[:, -1]
