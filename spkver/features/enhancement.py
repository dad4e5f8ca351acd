"""Speech enhancement for the voice activity detector `snr`: minimum statistics and a decision-directed Wiener filter.

The noise floor of each of 33 bins is followed by smoothed magnitudes and their minimum over the last 4 blocks of 40
frames. Its recursion is linear, so it is one `lfilter`; the minima are running minima inside blocks. Only the Wiener
filter's recursion is not linear: it steps through time once, for all recordings of a batch at a time.

References
----------
R. Martin, "Spectral subtraction based on minimum statistics", EUSIPCO 1994.
Y. Ephraim and D. Malah, "Speech enhancement using a minimum mean-square error short-time spectral amplitude
estimator", IEEE Trans. ASSP 32(6), 1984 (the decision-directed estimate).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_FRAME, _HOP, _BINS = 64, 32, 33
_SMOOTHING = 0.9024  # of the magnitudes, per frame
_BLOCK, _N_BLOCKS = 40, 4  # frames in a block of minima; blocks that are remembered
_FIRST_MINIMUM = 32.0  # an absolute level: the detector's sample unit is a quarter of a 16-bit step
_OVERESTIMATION = 2.4  # gain 1.2 times the factor 2 that makes up for the minimum's bias
_MEMORY = 0.75  # weight of the last frame's clean estimate
_RUN_IN = 200  # frames that the noise tracker sees once before the first
_SYNTHESIS = 1.15  # what overlapping windows add up to
_SHORTEST = 512  # samples; a shorter signal is returned as it is


def enhance(signals: Sequence[NDArray]) -> list[NDArray]:
    """Attenuate stationary noise in each of several signals.

    Parameters
    ----------
    signals : sequence of ndarray [shape=(n,), unit=16-bit steps / 4]
        Signals of any lengths, float32 or float64, all alike.

    Returns
    -------
    list of ndarray [shape=(n,)]
        Each delayed by 32 samples, in the same unit and dtype. The result of one signal does not depend on the others.
    """
    long_enough = [index for index, signal in enumerate(signals) if len(signal) >= _SHORTEST]
    spectra = [_analyse(signals[index]) for index in long_enough]
    magnitudes = [np.abs(spectrum) for spectrum in spectra]
    noises = [_noise_floor(magnitude) for magnitude in magnitudes]
    cleaned = _wiener(magnitudes, noises)
    result = list(signals)
    for index, spectrum, magnitude, clean in zip(long_enough, spectra, magnitudes, cleaned, strict=True):
        gain = clean / np.maximum(magnitude, np.finfo(magnitude.dtype).tiny)
        result[index] = _synthesise(spectrum * gain, len(signals[index]))
    return result


def _window(dtype: np.dtype) -> NDArray:
    return (1.08 * (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(_FRAME) / (_FRAME - 1)))).astype(dtype)


def _analyse(signal: NDArray) -> NDArray:
    """Short-time spectrum (K, 33): the first frame starts 32 samples early, the last is filled up."""
    from scipy import fft

    n_whole, rest = divmod(len(signal), _HOP)
    padded = np.zeros((n_whole + 2) * _HOP, signal.dtype)
    padded[_HOP : _HOP + len(signal)] = signal
    if rest:
        # the peer reads into one buffer, so the incomplete last piece keeps the end of the piece before it
        padded[_HOP + len(signal) : (n_whole + 2) * _HOP] = signal[(n_whole - 1) * _HOP + rest : n_whole * _HOP]
    else:
        padded[_HOP + len(signal) :] = signal[-_HOP:]
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]
    return fft.rfft(frames * _window(signal.dtype), axis=1)


def _noise_floor(magnitudes: NDArray) -> NDArray:
    """Noise magnitude (K, 33) from the minimum of smoothed magnitudes over the last blocks."""
    from scipy.signal import lfilter

    dtype = magnitudes.dtype
    run_in = min(_RUN_IN, len(magnitudes) - 1)
    tracked = np.concatenate([magnitudes[:run_in], magnitudes])
    coefficients = np.array([1 - _SMOOTHING], dtype), np.array([1, -_SMOOTHING], dtype)
    smooth = lfilter(*coefficients, tracked, axis=0)
    # frame i (from 1) belongs to block i // 40: block 0 is one short and starts at the absolute level
    n_blocks = (len(smooth) + 1 + _BLOCK - 1) // _BLOCK
    blocks = np.full((n_blocks * _BLOCK, _BINS), np.inf, dtype)
    blocks[0] = _FIRST_MINIMUM
    blocks[1 : 1 + len(smooth)] = smooth
    running = np.minimum.accumulate(blocks.reshape(n_blocks, _BLOCK, _BINS), axis=1)
    finished = np.full((n_blocks + _N_BLOCKS - 1, _BINS), _FIRST_MINIMUM, dtype)
    finished[_N_BLOCKS - 1 :] = running[:, -1]
    # block b looks back at the final minima of blocks b - 3 to b - 1
    before = np.lib.stride_tricks.sliding_window_view(finished[:-1], _N_BLOCKS - 1, axis=0).min(axis=-1)
    lowest = np.minimum(running, before[:n_blocks, None]).reshape(-1, _BINS)
    return dtype.type(_OVERESTIMATION) * lowest[1 + run_in : 1 + len(smooth)]


def _wiener(magnitudes: Sequence[NDArray], noises: Sequence[NDArray]) -> list[NDArray]:
    """Clean magnitudes (K, 33) of each signal: p[t] = A e / (e + n) with e = .75 p[t-1] + .25 max(A - n, 0)."""
    if not magnitudes:
        return []
    dtype = magnitudes[0].dtype
    memory, innovation = dtype.type(_MEMORY), dtype.type(1 - _MEMORY)
    # longest first, so that the signals still running are always the first ones
    order = sorted(range(len(magnitudes)), key=lambda index: -len(magnitudes[index]))
    lengths = np.array([len(magnitudes[index]) for index in order])
    shape = (lengths[0], len(order), _BINS)
    magnitude, excess, noise = np.zeros(shape, dtype), np.zeros(shape, dtype), np.ones(shape, dtype)
    for place, index in enumerate(order):
        magnitude[: lengths[place], place] = magnitudes[index]
        # the smallest number keeps digital silence from 0 / 0
        noise[: lengths[place], place] = noises[index] + np.finfo(dtype).tiny
        excess[: lengths[place], place] = innovation * np.maximum(magnitudes[index] - noises[index], 0)
    running = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    last = np.zeros(shape[1:], dtype)
    expected, total = np.empty_like(last), np.empty_like(last)
    for time, n_running in enumerate(running):
        here = slice(0, n_running)
        e, s, p = expected[here], total[here], magnitude[time, here]
        np.multiply(last[here], memory, out=e)
        e += excess[time, here]
        np.add(e, noise[time, here], out=s)
        e /= s
        p *= e  # in place: the magnitudes become the clean ones
        last = magnitude[time]
    clean: list[NDArray] = [magnitude] * len(order)
    for place, index in enumerate(order):
        clean[index] = magnitude[: lengths[place], place]
    return clean


def _synthesise(spectrum: NDArray, n_samples: int) -> NDArray:
    """Overlap-add, scaled and clipped to 16 bit."""
    from scipy import fft

    frames = fft.irfft(spectrum, n=_FRAME, axis=1)
    signal = np.zeros((len(frames) + 1, _HOP), frames.dtype)
    signal[:-1] = frames[:, :_HOP]
    signal[1:] += frames[:, _HOP:]
    signal /= frames.dtype.type(_SYNTHESIS)
    return np.clip(signal.reshape(-1)[:n_samples], -32767, 32767)
