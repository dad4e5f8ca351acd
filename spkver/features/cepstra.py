"""Mel-frequency cepstra and log-energy of one recording.

The conventions are those of SIDEKIT's RSR2015 tutorial: no padding, pre-emphasis inside each frame, log-energy of the
pre-emphasised frame before the window, a Hann window, filters of equal area on the HTK mel scale with integer bins,
natural logarithm, orthonormal DCT-II, C0 dropped.

`librosa_mfcc` computes the cepstra of the preset `librosa`, by librosa's definition.

References
----------
S. Davis and P. Mermelstein, "Comparison of parametric representations for monosyllabic word recognition in
continuously spoken sentences", IEEE Trans. ASSP 28(4), 1980.
M. Slaney, "Auditory Toolbox", Interval Research technical report 1998-010 (filters of equal area).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.packages import imported
from spkbase.work import one_blas_thread
from spkver.features.config import FeatureConfig


def n_frames(n_samples: int, *, window: int, shift: int) -> int:
    """Return the number of whole frames in a signal; the tail is dropped.

    Examples
    --------
    >>> n_frames(16000, window=400, shift=160)
    98
    """
    if n_samples < window:
        return 0
    return (n_samples - window) // shift + 1


def frame_signal(samples: NDArray[Any], *, window: int, shift: int) -> NDArray[Any]:
    """View a signal as overlapping frames.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    window, shift : int [samples]

    Returns
    -------
    ndarray of shape (T, window)
        A read-only view.
    """
    if len(samples) < window:
        return np.empty((0, window), samples.dtype)
    return np.lib.stride_tricks.sliding_window_view(samples, window)[::shift]


def hz_to_mel(frequency: NDArray[Any] | float) -> NDArray[Any]:
    """Return the mel of a frequency in Hz on HTK's scale, 2595 log10(1 + f / 700)."""
    return 2595.0 * np.log10(1.0 + np.asarray(frequency) / 700.0)


def mel_to_hz(mel: NDArray[Any] | float) -> NDArray[Any]:
    """Return the frequency in Hz of a mel on HTK's scale."""
    return 700.0 * (10.0 ** (np.asarray(mel) / 2595.0) - 1.0)


def mel_filterbank(
    *, rate: int, n_fft: int, n_filters: int, low_frequency: float, high_frequency: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return triangular filters of equal area, equally spaced on the mel scale, with integer bin limits.

    Returns
    -------
    filters : ndarray of shape (n_filters, n_fft // 2 + 1)
    edges : ndarray of shape (n_filters + 2,) [Hz]
        Corner frequencies: filter i rises from edge i to i + 1 and falls to i + 2.
    """
    edges = mel_to_hz(
        np.linspace(hz_to_mel(low_frequency), hz_to_mel(high_frequency), n_filters + 2)
    )
    bins = np.arange(n_fft // 2 + 1)
    frequencies = bins * rate / n_fft
    last_bin = np.floor(edges * n_fft / rate).astype(int)
    filters = np.zeros((n_filters, len(bins)))
    for number in range(n_filters):
        low, centre, high = edges[number : number + 3]
        first, middle, last = last_bin[number : number + 3]
        height = 2.0 / (high - low)
        rising = slice(first + 1, middle + 1)
        # the last bin below the upper corner is left out, as in the tutorial's filters; its weight is negligible
        falling = slice(middle + 1, max(last, middle + 1))
        filters[number, rising] = height / (centre - low) * (frequencies[rising] - low)
        filters[number, falling] = height / (high - centre) * (high - frequencies[falling])
    return filters, edges


@one_blas_thread()
def mfcc(samples: NDArray[Any], config: FeatureConfig) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute cepstra 1 to `n_cepstra` (from 0 on with `c0`) and the log-energy of a signal.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        The signal; its dtype (float32 or float64) is the dtype of the computation.
    config : FeatureConfig

    Returns
    -------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,) [natural logarithm of the squared sample unit]
        Log-energies; for digital silence, the logarithm of the smallest normal number.

    Examples
    --------
    >>> cepstra, log_energy = mfcc(np.sin(np.arange(8000) / 5), FeatureConfig())
    >>> cepstra.shape, log_energy.shape
    ((48, 19), (48,))
    """
    log_mel, log_energy = log_mel_spectrum(samples, config)
    return log_mel @ _tables(config, samples.dtype)[2], log_energy


@one_blas_thread()
def log_mel_spectrum(
    samples: NDArray[Any], config: FeatureConfig
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return log filterbank outputs (T, n_filters) and log-energy (T,); the step before the cosine transform."""
    from scipy import fft

    window, filters, _ = _tables(config, samples.dtype)
    smallest = np.finfo(samples.dtype).tiny
    frames = _pre_emphasised_frames(samples, config)
    log_energy = _log_energies(frames)
    frames *= window
    spectrum = fft.rfft(frames, n=config.n_fft, axis=1)
    power = spectrum.real**2
    power += spectrum.imag**2
    return np.log(np.maximum(power @ filters, smallest)), log_energy


def frame_energies(samples: NDArray[Any], config: FeatureConfig) -> NDArray[Any]:
    """Return the log-energy (T,) as in `mfcc`."""
    return _log_energies(_pre_emphasised_frames(samples, config))


def _log_energies(frames: NDArray[Any]) -> NDArray[Any]:
    smallest = np.finfo(frames.dtype).tiny
    energies: NDArray[Any] = np.log(np.maximum(np.einsum("ij,ij->i", frames, frames), smallest))
    return energies


def librosa_mfcc(samples: NDArray[Any], config: FeatureConfig) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute cepstra 1 to `n_cepstra` by `librosa.feature.mfcc`, and the log-energy of the same frames.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    config : FeatureConfig

    Returns
    -------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
        Log-energies. T is that of `spkver.features.cepstra`: frames are not centred, the signal is not padded.
    """
    librosa = imported("librosa", "librosa", "the preset librosa")
    window = config.window_samples
    shift = config.shift_samples
    if len(samples) < window:
        return np.empty((0, config.n_cepstra), samples.dtype), np.empty(0, samples.dtype)
    if config.pre_emphasis:
        samples = librosa.effects.preemphasis(samples, coef=config.pre_emphasis)
    # librosa centres a window that is shorter than the transform: half of the difference precedes each frame
    before = (config.n_fft - window) // 2
    padded = np.pad(samples, (before, config.n_fft - window - before))
    coefficients = librosa.feature.mfcc(
        y=padded,
        sr=config.rate,
        n_mfcc=config.n_cepstra + 1,
        n_fft=config.n_fft,
        win_length=window,
        hop_length=shift,
        n_mels=config.n_filters,
        fmin=config.low_frequency,
        fmax=config.high_frequency,
        center=False,
    )
    frames = frame_signal(samples, window=window, shift=shift)
    energy = _log_energies(frames)
    return coefficients[1:, : len(frames)].T.astype(samples.dtype), energy.astype(samples.dtype)


@lru_cache(maxsize=8)
def _tables(
    config: FeatureConfig, dtype: np.dtype
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Window, filters (bins, n_filters) and cosines (n_filters, n_cepstra), made once for a configuration."""
    filters, _ = mel_filterbank(
        rate=config.rate,
        n_fft=config.n_fft,
        n_filters=config.n_filters,
        low_frequency=config.low_frequency,
        high_frequency=config.high_frequency,
    )
    window = np.hanning(config.window_samples)
    made = window, np.ascontiguousarray(filters.T), cosines(config)
    window, filters, transform = (table.astype(dtype) for table in made)
    return window, filters, transform


def cosines(config: FeatureConfig) -> NDArray[np.float64]:
    """Return the orthonormal DCT-II from filters to cepstra, liftered, shape (n_filters, n_cepstra).

    The lifter multiplies cepstrum n by 1 + L/2 sin(pi n / L).
    """
    band = np.arange(config.n_filters)
    order = np.arange(config.n_cepstra) + (not config.c0)
    angles = np.pi / config.n_filters * np.outer(band + 0.5, order)
    transform: NDArray[np.float64] = np.sqrt(2.0 / config.n_filters) * np.cos(angles)
    if config.c0:
        transform[:, 0] = np.sqrt(1.0 / config.n_filters)
    if config.lifter:
        transform *= 1 + config.lifter / 2 * np.sin(np.pi * order / config.lifter)
    return transform


def _pre_emphasised_frames(samples: NDArray[Any], config: FeatureConfig) -> NDArray[Any]:
    """Return frames after pre-emphasis within each: the first sample counts as its own predecessor."""
    coefficient = samples.dtype.type(config.pre_emphasis)
    window = config.window_samples
    shift = config.shift_samples
    count = n_frames(len(samples), window=window, shift=shift)
    frames = np.empty((count, window), samples.dtype)
    if count:
        difference = samples[1:] - coefficient * samples[:-1]
        frames[:, 1:] = frame_signal(difference, window=window - 1, shift=shift)[:count]
        firsts = samples[: (count - 1) * shift + 1 : shift]
        frames[:, 0] = firsts * (1 - coefficient)
    return frames
