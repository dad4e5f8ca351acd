"""Linear prediction of many frames at once: time along the first axis, frames along the second.

All operations are element by element over the frames, so a frame gives the same bits whatever stands beside it, as
long as there is something: sums over one frame alone would be taken along time, in another order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Frames that are worked on together: their samples should stay in the processor's second cache.
_BURG_FRAMES, _POLE_FRAMES = 256, 1024
_TINY = np.finfo(np.float64).tiny


def burg(frames: NDArray[np.float64], order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Linear prediction by Burg's method, with the residual that its lattice gives on the way.

    Parameters
    ----------
    frames : ndarray [shape=(n, F)]
        Samples of F frames, n > order, F > 1.
    order : int

    Returns
    -------
    coefficients : ndarray [shape=(order + 1, F)]
        A(z) of each frame, the first is 1.
    residual : ndarray [shape=(n, F)]
        Frame filtered by A(z) from a zero initial state.

    References
    ----------
    J. P. Burg, Maximum entropy spectral analysis, PhD thesis, Stanford, 1975.
    """
    coefficients, residual = np.zeros((order + 1, frames.shape[1])), np.empty_like(frames)
    for some in _pieces(frames.shape[1], _BURG_FRAMES):
        _burg(frames[:, some], coefficients[:, some], residual[:, some])
    return coefficients, residual


def _pieces(n_frames: int, size: int) -> list[slice]:
    """Slices of at most `size` + 1 frames, none of a single one."""
    if n_frames < 2:
        raise ValueError("one frame alone: repeat it, so that its sums are taken as those of others are")
    starts = list(range(0, n_frames - 1, size))
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], n_frames], strict=True)]


def _burg(frames: NDArray[np.float64], coefficients: NDArray[np.float64], residual: NDArray[np.float64]) -> None:
    n, n_frames = frames.shape
    order = len(coefficients) - 1
    forward = frames.copy()
    # Each stage delays the backward error by one sample: it stays where it is and time zero moves up, into zeros.
    shelf = np.zeros((order + n, n_frames))
    shelf[order:] = frames
    coefficients[0] = 1
    power = np.einsum("tf,tf->f", frames[1:], frames[1:]) + np.einsum("tf,tf->f", frames[:-1], frames[:-1])
    to_forward, to_backward = np.empty_like(forward), np.empty_like(forward)
    for stage in range(1, order + 1):
        backward = shelf[order - stage : order - stage + n]
        reflection = -2 * np.einsum("tf,tf->f", forward[stage:], backward[stage:])
        reflection /= np.maximum(power, _TINY)
        coefficients[1 : stage + 1] += reflection * coefficients[stage - 1 :: -1][:stage]
        np.multiply(backward, reflection, out=to_forward)
        np.multiply(forward, reflection, out=to_backward)
        backward += to_backward
        forward += to_forward
        # what leaves the sums as they get shorter by one sample
        power = (1 - reflection * reflection) * power - forward[stage] ** 2 - backward[-1] ** 2
    residual[:] = forward


def all_pole(coefficients: NDArray[np.float64], excitation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Filter each frame by 1 / A(z), from a zero initial state.

    Parameters
    ----------
    coefficients : ndarray [shape=(order + 1, F)]
        A(z) of each frame, the first is 1.
    excitation : ndarray [shape=(n, F)]

    Returns
    -------
    ndarray [shape=(n, F)]
    """
    output = np.empty_like(excitation)
    for some in _pieces(excitation.shape[1], _POLE_FRAMES):
        _all_pole(coefficients[:, some], excitation[:, some], output[:, some])
    return output


def _all_pole(coefficients: NDArray[np.float64], excitation: NDArray[np.float64], output: NDArray[np.float64]) -> None:
    order, (n, n_frames) = len(coefficients) - 1, excitation.shape
    backwards = np.ascontiguousarray(-coefficients[:0:-1])
    history = np.zeros((order + n, n_frames))
    fed_back = np.empty(n_frames)
    for time in range(n):
        np.einsum("kf,kf->f", backwards, history[time : time + order], out=fed_back)
        np.add(excitation[time], fed_back, out=history[order + time])
    output[:] = history[order:]
