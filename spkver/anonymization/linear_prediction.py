"""Linear prediction of many frames at once: time along the first axis, frames along the second.

All operations are elementwise over the frames, so the result of a frame does not depend on the others, to the bit, as
long as there are others: sums over a single frame would run along time, in another order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.work import chunk_bounds

# Frames that are processed together: their samples should stay in the processor's second cache.
_BURG_FRAMES = 256
_FILTER_FRAMES = 512
_FILTER_SAMPLES = 32
_TINY = np.finfo(np.float64).tiny
# If a smaller share of a frame's energy is left unpredicted, correlations are not exact enough.
_PREDICTABLE = 1e-5


def burg(frames: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Compute linear predictors by Burg's method [1]_.

    The sums over prediction errors follow from the frame's correlations and some samples at its ends, and each order
    follows from the one before [2]_: a fifth of the work. Frames that are predicted almost perfectly (tones, digital
    silence) leave small differences of large sums; for them the lattice is used.

    Parameters
    ----------
    frames : ndarray of shape (n, F)
        Samples of F frames, n > order, F > 1.
    order : int

    Returns
    -------
    ndarray of shape (order + 1, F)
        A(z) of each frame, the first is 1.

    References
    ----------
    .. [1] J. P. Burg, Maximum entropy spectral analysis, PhD thesis, Stanford, 1975.
    .. [2] K. Vos, A fast implementation of Burg's method, 2013.
    """
    coefficients = np.zeros((order + 1, frames.shape[1]))
    unpredicted = np.empty(frames.shape[1])
    for some in _pieces(frames.shape[1], _BURG_FRAMES):
        unpredicted[some] = _by_correlations(frames[:, some], coefficients[:, some])
    bad = np.flatnonzero(~(unpredicted > _PREDICTABLE))
    if len(bad):
        twice = np.resize(bad, max(2, len(bad)))  # a single frame is repeated
        again = np.empty((order + 1, len(twice)))
        for some in _pieces(len(twice), _BURG_FRAMES):
            again[:, some] = _by_lattice(frames[:, twice[some]], order)
        coefficients[:, bad] = again[:, : len(bad)]
    return coefficients


def pole_zero(
    zeros: NDArray[np.float64], poles: NDArray[np.float64], frames: NDArray[np.float64]
) -> None:
    """Filter each frame by B(z) / A(z), in place, from a zero initial state.

    Parameters
    ----------
    zeros, poles : ndarray of shape (order + 1, F)
        B(z) and A(z) of each frame; the first of A is 1.
    frames : ndarray of shape (n, F)
    """
    order = len(zeros) - 1
    n = len(frames)
    for some in _pieces(frames.shape[1], _FILTER_FRAMES):
        # one sum for each sample: inputs and outputs alternate in `history`, which holds some samples at a time
        weights = np.empty((2 * order + 1, some.stop - some.start))
        weights[::2] = zeros[::-1, some]
        weights[1::2] = -poles[:0:-1, some]
        history = np.zeros((2 * (order + _FILTER_SAMPLES), some.stop - some.start))
        for start, stop in chunk_bounds(n, _FILTER_SAMPLES):
            end = 2 * (order + stop - start)
            history[2 * order : end : 2] = frames[start:stop, some]
            for row in range(0, 2 * (stop - start), 2):
                window = history[row : row + 2 * order + 1]
                np.einsum("kf,kf->f", weights, window, out=history[row + 2 * order + 1])
            frames[start:stop, some] = history[2 * order + 1 : end : 2]
            history[: 2 * order] = history[end - 2 * order : end].copy()


def _pieces(n_frames: int, size: int) -> list[slice]:
    """Return slices of at most `size` + 1 frames, none of a single frame."""
    if n_frames < 2:
        raise ValueError(
            "repeat a single frame, so that its sums are taken in the same order as for several"
        )
    starts = range(0, n_frames - 1, size)
    return list(map(slice, starts, [*starts[1:], n_frames]))


def _by_correlations(
    frames: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Write the coefficients, (order + 1, F), into zeros; return the share of energy that is not predicted, (F,).

    With u the m + 1 samples up to time t, the newest first, R the sum over t of u u' and of u u' turned in both
    directions, and a the polynomial of order m - 1 with a zero behind, `image` is R a: the energy of both prediction
    errors is a . image, and twice their product is a . image turned. `row` is the last row of R.
    """
    n = len(frames)
    order = len(coefficients) - 1
    correlation = np.empty_like(coefficients)
    for lag, of_lag in enumerate(correlation):
        np.einsum("tf,tf->f", frames[: n - lag], frames[lag:], out=of_lag)
    correlation *= 2
    first = frames[: order + 1]
    last = frames[: n - order - 2 : -1]
    image = np.zeros((order + 2, frames.shape[1]))
    row = np.zeros_like(coefficients)
    coefficients[0] = 1
    image[0] = correlation[0] - first[0] ** 2 - last[0] ** 2
    image[1] = row[0] = correlation[1]
    energy = image[0].copy()
    with np.errstate(all="ignore"):  # frames that overflow are left to the lattice
        for m in range(1, order + 1):
            a = coefficients[:m]
            power = np.einsum("kf,kf->f", a, image[:m])
            reflection = -np.einsum("kf,kf->f", a, image[m:0:-1]) / power
            coefficients[1 : m + 1] += reflection * coefficients[m - 1 :: -1]
            if m == order:
                break
            # the next sums are shorter by one sample at each end, and R is larger by one
            row[1 : m + 1] = row[:m] - first[:m] * first[m] - last[:m] * last[m]
            row[0] = correlation[m + 1]
            a = coefficients[: m + 1]
            newest = first[m::-1]
            oldest = last[m::-1]
            image[: m + 1] += reflection * image[m::-1]
            image[: m + 1] -= newest * np.einsum("kf,kf->f", newest, a)
            image[: m + 1] -= oldest * np.einsum("kf,kf->f", oldest, a)
            image[m + 1] = np.einsum("kf,kf->f", row[: m + 1], a)
        unpredicted: NDArray[np.float64] = power * (1 - reflection * reflection) / energy
    return unpredicted


def _by_lattice(frames: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Return the coefficients, (order + 1, F), computed from the forward and backward prediction errors themselves."""
    coefficients = np.zeros((order + 1, frames.shape[1]))
    coefficients[0] = 1
    forward = np.ascontiguousarray(frames[1:])
    backward = np.ascontiguousarray(frames[:-1])
    for stage in range(1, order + 1):
        power = np.einsum("tf,tf->f", forward, forward) + np.einsum("tf,tf->f", backward, backward)
        reflection = -2 * np.einsum("tf,tf->f", forward, backward) / np.maximum(power, _TINY)
        coefficients[1 : stage + 1] += reflection * coefficients[stage - 1 :: -1]
        next_forward = (forward + reflection * backward)[1:]
        backward = (backward + reflection * forward)[:-1]
        forward = next_forward
    return coefficients
