"""The E-step on a device: log-densities, posteriors and their sums over blocks of frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Array, Device, on_device
from spkver.mixture.frames_device import Table
from spkver.mixture.quadratic import squares_or_products

# Frames whose statistics are summed in the dtype of the frames, as in the largest block on the cores; more in float64.
TILE = 2048


def densities(
    frames: Array, parameters: Array, device: Device, mask: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return the posteriors of batches of frames, not yet normalised; as `spkver.mixture.PosteriorKernel` on the cores.

    Parameters
    ----------
    frames : ndarray of shape (B, T, D)
    parameters : ndarray of shape (C, 2 D + 1) or (C, D (D + 1) / 2 + D + 1)
        Natural parameters in the dtype of the frames.
    device : Device
    mask : ndarray of shape (B, T), optional
        0 for frames that fill a batch up, 1 for others.

    Returns
    -------
    joint : ndarray of shape (B, T, C)
        Posteriors times their total.
    augmented : ndarray of shape (B, T, 2 D + 1) or (B, T, D (D + 1) / 2 + D + 1)
        Rows [x^2, x, 1] / total; 0 where the mask is.
    log_likelihood : array of float64 of shape (B, T)
        In nat.
    """
    xp = device.xp
    ones = xp.ones_like(frames[:, :, :1])
    squares = squares_or_products(frames, parameters.shape[1] - frames.shape[2] - 1, xp)
    augmented = xp.concat([squares, frames, ones], axis=2)
    joint = augmented @ xp.matrix_transpose(parameters)
    largest = xp.max(joint, axis=2, keepdims=True)
    joint -= largest
    joint = xp.exp(joint)
    total = xp.sum(joint, axis=2, keepdims=True)
    augmented = augmented / total if mask is None else augmented * (xp.expand_dims(mask, axis=2) / total)
    log_likelihood = xp.astype(xp.squeeze(largest + xp.log(total), axis=2), xp.float64)
    return joint, augmented, log_likelihood


def frames_in_block(parameters: NDArray, dtype: np.dtype, device: Device) -> int:
    """Return the number of frames whose posteriors fit a block of the device."""
    return device.rows_of(3 * sum(parameters.shape) * dtype.itemsize, least=256)


@on_device
def accumulate(frames: Table, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the sums of posteriors times [x^2, x, 1] over all frames.

    Parameters
    ----------
    frames : Table of shape (T, D)
    parameters : ndarray of shape (C, 2 D + 1) or (C, D (D + 1) / 2 + D + 1)
        Natural parameters of the mixture.

    Returns
    -------
    sums : ndarray of the shape of `parameters`
    log_likelihood : float
        Sum over frames, in nat.
    """
    device = frames.device
    sums, log_likelihood = np.zeros(parameters.shape), 0.0
    coefficients = device.asarray(parameters, frames.dtype)
    size = frames_in_block(parameters, frames.dtype, device)
    size -= size % TILE if size > TILE else 0
    for block in frames.blocks(size):
        n_tiled = block.shape[0] // TILE * TILE
        for rows in (block[:n_tiled, :], block[n_tiled:, :]):
            if rows.shape[0]:
                tiles = device.xp.reshape(rows, (-1, min(TILE, rows.shape[0]), rows.shape[1]))
                of_tiles, of_frames = _tile_sums(tiles, coefficients, device)
                sums += device.to_numpy(of_tiles)
                log_likelihood += float(of_frames)
    return sums, log_likelihood


def _tile_sums(tiles: Array, parameters: Array, device: Device) -> tuple[Array, Array]:
    xp = device.xp
    joint, augmented, of_frames = densities(tiles, parameters, device)
    sums = xp.matrix_transpose(joint) @ augmented
    return xp.sum(sums, axis=0, dtype=xp.float64), xp.sum(of_frames)


@on_device
def log_likelihoods(frames: Table, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-density of each frame in nat, shape (T,); parameters as for `accumulate`."""
    device = frames.device
    coefficients = device.asarray(parameters, frames.dtype)
    size = frames_in_block(parameters, frames.dtype, device)
    of_blocks = [densities(block[None, :, :], coefficients, device)[2][0, :] for block in frames.blocks(size)]
    return np.concatenate([device.to_numpy(of_frames) for of_frames in of_blocks])
