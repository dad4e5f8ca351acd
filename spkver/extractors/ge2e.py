"""GE2E: three LSTM layers over mel spectra, and a unit vector from the last state.

References
----------
L. Wan, Q. Wang, A. Papir and I. Lopez Moreno, "Generalized end-to-end loss for speaker verification", ICASSP 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkver.extractors.layers import Recurrence, rectify, recur, taker

N_MELS = 40
_LAYERS = 3
_WINDOWS = 64  # side by side, so that memory does not grow with the recording


class Ge2e(NamedTuple):
    """The weights of the network."""

    layers: tuple[Recurrence, ...]
    kernel: NDArray
    offset: NDArray


def window_starts(n_frames: int, *, window: int, hop: int) -> NDArray[np.int64]:
    """Return the first frame of each whole window; one window where the recording is shorter.

    Examples
    --------
    >>> window_starts(330, window=160, hop=80)
    array([  0,  80, 160])
    """
    return np.arange(0, max(1, n_frames - window + 1), hop, dtype=np.int64)


def window_vectors(windows: NDArray, network: Ge2e) -> NDArray:
    """Return the unit vector of each window: the last state of the last layer, mapped, rectified and scaled.

    Parameters
    ----------
    windows : ndarray of shape (W, T, 40)
        Mel spectra of power; their dtype is that of the network.
    network : Ge2e

    Returns
    -------
    ndarray of shape (W, D)
        NaN where nothing passes the rectifier.
    """
    sequence = np.ascontiguousarray(windows.transpose(1, 0, 2))
    for layer in network.layers:
        sequence = recur(sequence, layer)
    vectors = rectify(sequence[-1] @ network.kernel + network.offset)
    with np.errstate(invalid="ignore"):
        unit: NDArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def ge2e_vector(frames: NDArray, network: Ge2e, *, window: int = 160, hop: int = 80) -> NDArray:
    """Return the mean of the vectors of all windows, at unit length.

    Parameters
    ----------
    frames : ndarray of shape (T, 40)
        Mel spectra of power. Fewer than a window are repeated from the start until they fill one; frames after the last
        whole window are not used.
    network : Ge2e
    window, hop : int [frames]

    Returns
    -------
    ndarray of shape (D,)
    """
    if len(frames) < window:
        frames = frames[np.arange(window) % len(frames)]
    starts = window_starts(len(frames), window=window, hop=hop)
    cut = np.lib.stride_tricks.sliding_window_view(frames, window, axis=0)[starts].transpose(0, 2, 1)
    vectors = [window_vectors(cut[first : first + _WINDOWS], network) for first in range(0, len(cut), _WINDOWS)]
    mean = np.concatenate(vectors).mean(axis=0)
    return mean / np.linalg.norm(mean)


def ge2e_network(state: Mapping[str, NDArray], *, dtype: str = "float32") -> Ge2e:
    """Make the network of the tensors of a trained one, as Resemblyzer publishes them.

    Parameters
    ----------
    state : mapping of str to ndarray
        Names and values of its tensors.
    dtype : {"float32", "float64"}
        In which it computes.

    Raises
    ------
    DataError
        If a tensor is missing or has another shape; the error names it.
    """
    take = taker(state, "GE2E")
    size = take("lstm.weight_hh_l0", None, None).shape[1]
    dimensions = take("linear.weight", None, size).shape[0]
    layers, inputs = [], N_MELS
    for number in range(_LAYERS):
        parts = take(f"lstm.weight_ih_l{number}", 4 * size, inputs), take(f"lstm.weight_hh_l{number}", 4 * size, size)
        offset = take(f"lstm.bias_ih_l{number}", 4 * size) + take(f"lstm.bias_hh_l{number}", 4 * size)
        arrays = [_gates(part, size).T.astype(dtype, order="C") for part in (*parts, offset)]
        layers.append(Recurrence(*arrays))
        inputs = size
    kernel = take("linear.weight", dimensions, size).T.astype(dtype, order="C")
    return Ge2e(tuple(layers), kernel, take("linear.bias", dimensions).astype(dtype))


def _gates(weights: NDArray, size: int) -> NDArray:
    """Put the gates input, forget, cell, output of a file in the order of `Recurrence`, with logistic ones halved."""
    given, forget, cell, out = (weights[size * i : size * (i + 1)] for i in range(4))
    return np.concatenate([given / 2, forget / 2, out / 2, cell])
