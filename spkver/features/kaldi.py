"""Kaldi's MFCC: `compute-mfcc-feats`, to the rounding of float32.

In each frame (none beyond the ends: snip_edges) the mean is removed and the log-energy taken; pre-emphasis, Povey's
window, power spectrum, triangles on the scale 1127 ln(1 + f / 700), natural logarithm, orthonormal DCT-II, liftering.
Kaldi's first number, the log-energy or C0, becomes the log-energy of our features, or their C0 (`FeatureConfig.c0`).

References
----------
D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011.
S. Young et al., "The HTK book", version 3.4, section 5.6 (liftering).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread
from spkver.features.cepstra import cosines, frame_signal
from spkver.features.config import FeatureConfig

_FLOOR = float(np.finfo(np.float32).eps)


@one_blas_thread()
def kaldi_mfcc(samples: NDArray[Any], config: FeatureConfig) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute Kaldi's cepstra and the log-energy of a signal.

    Parameters
    ----------
    samples : ndarray of shape (n,) [16-bit steps]
        The signal; its dtype (float32 or float64) is the dtype of the computation.
    config : FeatureConfig

    Returns
    -------
    cepstra : ndarray of shape (T, n_cepstra)
    log_energy : ndarray of shape (T,)
        Log-energy of the frame minus its mean, before pre-emphasis and window (raw_energy).
    """
    frames, energy = kaldi_frames(samples, config)
    return log_mel_of_frames(frames, config) @ cosines(config).astype(samples.dtype), energy


def kaldi_frames(samples: NDArray[Any], config: FeatureConfig) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the frames of a signal without their means, (T, W), and their log-energies (T,)."""
    frames = frame_signal(samples, window=config.window_samples, shift=config.shift_samples)
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = np.einsum("ij,ij->i", frames, frames)
    return frames, np.log(np.maximum(power, samples.dtype.type(_FLOOR)))


def log_mel_of_frames(frames: NDArray[Any], config: FeatureConfig) -> NDArray[Any]:
    """Return the log filterbanks (T, n_filters) of frames without their means, (T, W)."""
    tables = _tables(config, frames.dtype)
    return kaldi_banks(frames, *tables, pre_emphasis=config.pre_emphasis)


def mel_centres(config: FeatureConfig) -> NDArray[np.float64]:
    """Return the centre of each of Kaldi's triangles in Hz, shape (n_filters,)."""
    ends = _mel(config.low_frequency), _mel(config.high_frequency)
    edges = np.linspace(*ends, config.n_filters + 2)
    centres: NDArray[np.float64] = 700.0 * np.expm1(edges[1:-1] / 1127.0)
    return centres


def kaldi_banks(
    frames: NDArray[Any], window: NDArray[Any], filters: NDArray[Any], *, pre_emphasis: float = 0.97
) -> NDArray[Any]:
    """Return Kaldi's log mel filterbanks (T, n) of frames (T, W) without their means, floored at 2^-23.

    Parameters
    ----------
    frames : ndarray of shape (T, W)
    window : ndarray of shape (W,)
    filters : ndarray of shape (bins, n)
        See `kaldi_filters`.
    pre_emphasis : float
    """
    from scipy import fft

    dtype = frames.dtype
    # correct for the first sample, which is its own predecessor
    emphasised = frames * dtype.type(1 - pre_emphasis)
    np.subtract(frames[:, 1:], dtype.type(pre_emphasis) * frames[:, :-1], out=emphasised[:, 1:])
    emphasised *= window
    spectrum = fft.rfft(emphasised, n=2 * (len(filters) - 1), axis=1)
    power = spectrum.real**2
    power += spectrum.imag**2
    banks: NDArray[Any] = np.log(np.maximum(power @ filters, dtype.type(_FLOOR)))
    return banks


def kaldi_filters(
    *, rate: int, n_fft: int, n_filters: int, low_frequency: float, high_frequency: float
) -> NDArray[np.float64]:
    """Return Kaldi's triangles, linear in mel, shape (n_filters, n_fft // 2 + 1).

    The bin at half the rate has no weight.
    """
    edges = np.linspace(_mel(low_frequency), _mel(high_frequency), n_filters + 2)
    points = _mel(np.arange(n_fft // 2 + 1) * rate / n_fft)
    widths = np.diff(edges)[:, None]
    rising = (points - edges[:-2, None]) / widths[:-1]
    falling = (edges[2:, None] - points) / widths[1:]
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    filters[:, -1] = 0
    return filters


@lru_cache(maxsize=8)
def _tables(config: FeatureConfig, dtype: np.dtype) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return Povey's window and the filters (bins, n_filters)."""
    filters = kaldi_filters(
        rate=config.rate,
        n_fft=config.n_fft,
        n_filters=config.n_filters,
        low_frequency=config.low_frequency,
        high_frequency=config.high_frequency,
    )
    window = np.hanning(config.window_samples) ** 0.85
    return window.astype(dtype), np.ascontiguousarray(filters.T, dtype)


def _mel(frequency: NDArray[Any] | float) -> NDArray[Any]:
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)
