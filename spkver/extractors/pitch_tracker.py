"""Fundamental frequency by normalised cross-correlation and a best path, some hundreds of times as fast as speech.

References
----------
D. Talkin, "A robust algorithm for pitch tracking (RAPT)", in Speech Coding and Synthesis, Elsevier, 1995.
P. Boersma, "Accurate short-term analysis of the fundamental frequency and the harmonics-to-noise ratio of a sampled
sound", Proc. Institute of Phonetic Sciences, Amsterdam, 17, 1993 (the costs of octaves and of jumps, and their values).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHIFT = 0.01
LOWEST, HIGHEST = 60.0, 500.0
"""Range of the tracker in Hz."""

_RATE = 8000
_CUTOFF = 1500.0  # Hz: the first harmonics say the period best
_WINDOW = 0.025  # s that are correlated
_TREND = 0.025  # s over which a moving mean is removed
_QUIET = 1e-4  # of the energy of loud frames (-40 dB): where there is less, nothing correlates
_LOUD = 0.95  # quantile of the frames' energies
_CANDIDATES = 6
_UNVOICED = 0.5  # strength of no voice
_OCTAVE, _JUMP, _SWITCH = 0.03, 0.35, 0.14  # a lower octave, an octave between frames, voice on or off
_FRAMES = 4096  # at a time, so that memory does not grow with the recording
_FFT = 512


class PitchTrack(NamedTuple):
    """Pitch every 10 ms.

    Attributes
    ----------
    hertz : ndarray of float64 of shape (T,)
        0 where there is no voice.
    strength : ndarray of float64 of shape (T,)
        Height of the highest peak of the correlation, 0 to 1.
    """

    hertz: NDArray[np.float64]
    strength: NDArray[np.float64]


def track_pitch(samples: NDArray, rate: int) -> PitchTrack:
    """Return the fundamental frequency of every frame.

    The correlation of w samples with those k later, r(k) = sum x(n) x(n + k) / sqrt((e(0) + q) (e(k) + q)) with e(k)
    the energy of the w samples from k on, has peaks at periods. Of the highest peaks of each frame and *no voice* the
    best path takes one a frame: it gains r(k) - 0.03 log2(highest F0 k) of a peak, or 0.5, and pays 0.35 for an octave
    between frames and 0.14 for voice that begins or ends. Frame t is centred on t times 10 ms.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Of any level.
    rate : int [Hz]

    Returns
    -------
    PitchTrack
        1 + n // (0.01 rate) frames; none of an empty signal. Never NaN.
    """
    if not len(samples):
        return PitchTrack(np.zeros(0), np.zeros(0))
    n_frames = 1 + int(len(samples) / rate / SHIFT + 1e-6)
    signal = _prepared(samples, rate)
    longest, window, shift = round(_RATE / LOWEST) + 1, round(_WINDOW * _RATE), round(SHIFT * _RATE)
    before = (window + longest) // 2
    padded = np.pad(signal, (before, n_frames * shift + window + longest))
    views = np.lib.stride_tricks.sliding_window_view(padded, window + longest)[::shift][:n_frames]
    loud = np.quantile(_energies(views[:, :window]), _LOUD)
    peaks = [
        _candidates(correlations(views[first : first + _FRAMES], window, _QUIET * loud))
        for first in range(0, n_frames, _FRAMES)
    ]
    lags, heights = (np.concatenate(parts) for parts in zip(*peaks, strict=True))
    octaves = np.log2(np.maximum(lags, 1) * HIGHEST / _RATE)
    gains = np.where(lags > 0, heights - _OCTAVE * octaves, -np.inf)
    path = best_path(gains, octaves)
    rows = np.arange(n_frames)
    chosen = np.where(path > 0, lags[rows, path - 1], 0)
    hertz = np.divide(_RATE, chosen, out=np.zeros(n_frames), where=chosen > 0)
    return PitchTrack(hertz, np.clip(heights.max(axis=1), 0, 1))


def correlations(frames: NDArray, window: int, quiet: float) -> NDArray[np.float64]:
    """Return the normalised cross-correlation of the start of each frame with all later parts of it.

    Parameters
    ----------
    frames : ndarray of shape (T, window + K)
    window : int [samples]
        That are correlated.
    quiet : float
        Energy that is added to both sides.

    Returns
    -------
    ndarray of shape (T, K + 1)
        At lags of 0 to K samples; 0 where there is no sound.
    """
    from scipy import fft

    length = fft.next_fast_len(frames.shape[1], real=True) if frames.shape[1] > _FFT else _FFT
    spectrum = fft.rfft(frames[:, :window], n=length, axis=1).conj()
    spectrum *= fft.rfft(frames, n=length, axis=1)
    n_lags = frames.shape[1] - window + 1
    products = fft.irfft(spectrum, n=length, axis=1)[:, :n_lags]
    sums = np.zeros((len(frames), frames.shape[1] + 1))
    np.cumsum(np.square(frames, dtype=np.float64), axis=1, out=sums[:, 1:])
    energies = np.maximum(sums[:, window:] - sums[:, :-window], 0) + quiet
    scale = np.sqrt(energies[:, :1] * energies)
    return np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0)


def best_path(gains: NDArray, octaves: NDArray) -> NDArray[np.intp]:
    """Return which candidate of each frame the best path takes: 0 for no voice, else 1 more than its column.

    Parameters
    ----------
    gains : ndarray of shape (T, C)
        Strength of each candidate, -inf where there is none.
    octaves : ndarray of shape (T, C)
        Their logarithms to the base of 2.

    Returns
    -------
    ndarray of shape (T,)
    """
    n_frames, n_candidates = gains.shape
    gains = np.concatenate([np.full((n_frames, 1), _UNVOICED), gains], axis=1)
    costs = np.full((n_candidates + 1, n_candidates + 1), _SWITCH)
    costs[0, 0] = 0.0
    best = gains[0]
    origins = np.zeros((n_frames, n_candidates + 1), np.intp)
    columns = np.arange(n_candidates + 1)
    for first in range(1, n_frames, _FRAMES):
        frames = slice(first, min(first + _FRAMES, n_frames))
        before = octaves[first - 1 : frames.stop - 1]
        jumps = _JUMP * np.abs(before[:, :, None] - octaves[frames][:, None, :])
        for frame, jump in enumerate(jumps, first):
            costs[1:, 1:] = jump
            totals = best[:, None] - costs
            origin = totals.argmax(axis=0)
            origins[frame] = origin
            best = totals[origin, columns] + gains[frame]
    path = np.empty(n_frames, np.intp)
    path[-1] = best.argmax()
    for frame in range(n_frames - 1, 0, -1):
        path[frame - 1] = origins[frame, path[frame]]
    return path


def _prepared(samples: NDArray, rate: int) -> NDArray[np.float32]:
    """The signal at the tracker's rate, the slow and the fast taken out."""
    from scipy import signal

    up, down = Fraction(_RATE, int(rate)).as_integer_ratio()
    taps = signal.firwin(20 * max(up, down) + 1, min(_CUTOFF, rate / 2) / (_RATE * down / 2))
    peak = float(np.abs(samples).max()) or 1.0  # the level does not count, and float32 ends at 1e38
    scaled = np.asarray(samples / peak, np.float32)
    resampled: NDArray = signal.resample_poly(scaled, up, down, window=taps)  # type: ignore[call-overload]
    length = round(_TREND * _RATE) | 1
    padded = np.pad(np.cumsum(np.pad(resampled, length // 2, mode="edge"), dtype=np.float64), (1, 0))
    trend = (padded[length:] - padded[:-length]) / length
    return (resampled - trend).astype(np.float32)


def _energies(frames: NDArray) -> NDArray[np.float64]:
    return np.einsum("tw,tw->t", frames, frames, dtype=np.float64)


def _candidates(correlated: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The highest peaks in the tracker's range: lags between samples, 0 where there are fewer, and heights."""
    shortest = int(_RATE / HIGHEST)
    left, centre, right = (correlated[:, shortest - 1 + i : correlated.shape[1] - 2 + i] for i in (0, 1, 2))
    is_peak = (centre > left) & (centre >= right) & (centre > 0)
    lags = np.arange(shortest, shortest + centre.shape[1])
    ranked = np.where(is_peak, centre - _OCTAVE * np.log2(lags * HIGHEST / _RATE), -np.inf)
    most = np.argpartition(-ranked, _CANDIDATES, axis=1)[:, :_CANDIDATES]
    below, at, above = (np.take_along_axis(part, most, axis=1) for part in (left, centre, right))
    bend = below - 2 * at + above
    moved = np.divide((below - above) / 2, bend, out=np.zeros_like(bend), where=bend < 0)
    found = np.take_along_axis(is_peak, most, axis=1)
    heights = np.where(found, at - (below - above) * moved / 4, 0)
    return np.where(found, lags[most] + moved, 0), heights
