"""Statistics of segments on a device: segments of like length make a batch, and a batch is one product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Array, Device, on_device
from spkver.mixture.e_step_device import TILE, densities


@on_device
def segment_sums(
    segments: Sequence[NDArray], parameters: NDArray[np.float64], device: Device
) -> tuple[NDArray, NDArray]:
    """Return the zero- and first-order statistics of each segment.

    Parameters
    ----------
    segments : sequence of ndarray of shape (T_s, D)
        Frames of each, at least one.
    parameters : ndarray of shape (C, 2 D + 1) or (C, D (D + 1) / 2 + D + 1)
        Natural parameters of the mixture.
    device : Device

    Returns
    -------
    zeroth : ndarray of shape (S, C)
    first : ndarray of shape (S, C, D)
        In the dtype of the frames.
    """
    dtype, dimension = segments[0].dtype, segments[0].shape[1]
    coefficients = device.asarray(parameters, dtype)
    # a long segment comes in pieces, which are added in float64
    pieces = [
        (row, start, min(start + TILE, len(frames)))
        for row, frames in enumerate(segments)
        for start in range(0, len(frames), TILE)
    ]
    zeroth = np.zeros((len(segments), len(parameters)))
    first = np.zeros((len(segments), len(parameters), dimension), dtype)
    whole = np.array([len(frames) <= TILE for frames in segments])
    long = {row: np.zeros((len(parameters), dimension)) for row in np.flatnonzero(~whole).tolist()}
    for batch in _batches(pieces, 3 * sum(parameters.shape) * dtype.itemsize, device):
        frames, mask = _padded(segments, batch)
        sums = device.to_numpy(_sums(frames, mask, coefficients, device))
        for (row, _, _), of_piece in zip(batch, sums, strict=True):
            zeroth[row] += of_piece[:, -1]
            if row in long:
                long[row] += of_piece[:, :-1]
            else:
                first[row] = of_piece[:, :-1]
    for row, total in long.items():
        first[row] = total
    return zeroth.astype(dtype), first


def _sums(frames: NDArray, mask: NDArray, parameters: Array, device: Device) -> Array:
    """Rows [first, zeroth] of each component, shape (B, C, D + 1)."""
    joint, augmented, _ = densities(device.asarray(frames), parameters, device, device.asarray(mask))
    return device.xp.matrix_transpose(joint) @ augmented[:, :, -1 - frames.shape[2] :]


Piece = tuple[int, int, int]  # segment, start, stop


def _batches(pieces: Sequence[Piece], frame_bytes: int, device: Device) -> Iterator[list[Piece]]:
    """Cut pieces, the shortest first, into batches that fit a block once they are all as long as their last."""
    batch: list[Piece] = []
    limit = device.rows_of(frame_bytes)
    for piece in sorted(pieces, key=lambda piece: piece[2] - piece[1]):
        length = piece[2] - piece[1]
        if batch and (len(batch) + 1) * length > limit:
            yield batch
            batch = []
        batch.append(piece)
    yield batch


def _padded(segments: Sequence[NDArray], batch: Sequence[Piece]) -> tuple[NDArray, NDArray]:
    """Frames of pieces (B, T, D), filled up with zeros, and which are frames (B, T)."""
    longest = batch[-1][2] - batch[-1][1]
    some = segments[batch[0][0]]
    frames = np.zeros((len(batch), longest, some.shape[1]), some.dtype)
    mask = np.zeros((len(batch), longest), some.dtype)
    for number, (row, start, stop) in enumerate(batch):
        frames[number, : stop - start] = segments[row][start:stop]
        mask[number, : stop - start] = 1
    return frames, mask
