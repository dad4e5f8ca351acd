"""Front ends of networks: Kaldi's log mel filterbanks, and mel power spectra.

References
----------
D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011 (the filterbanks).
M. Slaney, "Auditory Toolbox", Interval Research technical report 1998-010 (the scale and the filters of the spectra).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spkver.features import kaldi_banks, kaldi_filters

Window = Literal["povey", "hamming"]
_SCALE = 32768.0  # full scale of Kaldi's samples, in 16-bit steps
_LOWEST = 20.0  # Hz
_WINDOW = 0.025  # seconds
_SHIFT = 0.010  # seconds
# window and shift of the mel spectra, in samples
_FFT = 400
_HOP = 160
# number of frames processed at a time, so that memory does not grow with the recording
_FRAMES = 4096


def kaldi_filterbanks(
    samples: NDArray[Any], *, rate: int = 16000, n_mels: int = 80, shape: Window = "povey"
) -> NDArray[Any]:
    """Return Kaldi's log mel filterbanks, with their mean over time removed.

    Frames of 25 ms every 10 ms, none beyond the ends (snip_edges), no dither; in each frame the mean is removed, then
    pre-emphasis 0.97 and a window are applied; power of a Fourier transform with the next power of two; triangles on
    the scale 1127 ln(1 + f / 700) from 20 Hz to half the rate; natural logarithm, floored at 2^-23.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at least 25 ms; float32 or float64, which is the type of the computation.
    rate : int [Hz]
    n_mels : int
    shape : {"povey", "hamming"}
        The window: (0.5 - 0.5 cos)^0.85, or 0.54 - 0.46 cos.

    Returns
    -------
    ndarray of shape (T, n_mels)
        T = 1 + (n - 0.025 rate) // (0.010 rate), in the dtype of the samples.
    """
    dtype = samples.dtype
    window = round(_WINDOW * rate)
    shift = round(_SHIFT * rate)
    weights, filters = _kaldi_tables(rate, n_mels, shape, dtype)
    pieces = []
    views = np.lib.stride_tricks.sliding_window_view(samples * dtype.type(_SCALE), window)[::shift]
    for first in range(0, len(views), _FRAMES):
        frames = views[first : first + _FRAMES]
        frames = frames - frames.mean(axis=1, keepdims=True)
        pieces.append(kaldi_banks(frames, weights, filters))
    banks = np.concatenate(pieces)
    banks -= banks.mean(axis=0, dtype=np.float64).astype(dtype)
    return banks


def mel_spectra(samples: NDArray[Any], *, rate: int = 16000, n_mels: int = 40) -> NDArray[Any]:
    """Return mel power spectra, frames of 25 ms centred on every 10th ms, zeros beyond the ends.

    A periodic Hann window; triangles of equal area from 0 to half the rate
    on Slaney's scale: 3 mel for 200 Hz up to 1 kHz, 27 mel for a factor of 6.4 above.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at 16 kHz; float32 or float64, which is the type of the computation.
    rate : int [Hz]
    n_mels : int

    Returns
    -------
    ndarray of shape (1 + n // 160, n_mels)
    """
    dtype = samples.dtype
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)).astype(dtype)
    filters = slaney_filters(rate=rate, n_fft=_FFT, n_mels=n_mels).T.astype(dtype)
    views = np.lib.stride_tricks.sliding_window_view(np.pad(samples, _FFT // 2), _FFT)[::_HOP]
    blocks = (views[first : first + _FRAMES] for first in range(0, len(views), _FRAMES))
    return np.concatenate([_power(block * window, _FFT) @ filters for block in blocks])


def slaney_filters(*, rate: int, n_fft: int, n_mels: int) -> NDArray[np.float64]:
    """Return triangles of equal area on Slaney's mel scale, shape (n_mels, n_fft // 2 + 1)."""
    knee = 1000.0  # Hz; the scale is linear below and logarithmic above
    octave = np.log(6.4) / 27
    top = rate / 2 * 3 / 200
    if rate / 2 > knee:
        top = 15 + np.log(rate / 2 / knee) / octave
    mels = np.linspace(0, top, n_mels + 2)
    edges = np.where(mels < 15, mels * 200 / 3, knee * np.exp(octave * (np.maximum(mels, 15) - 15)))
    filters = _triangles(edges, np.arange(n_fft // 2 + 1) * rate / n_fft)
    return filters * (2 / (edges[2:] - edges[:-2]))[:, None]


@lru_cache(maxsize=8)
def _kaldi_tables(
    rate: int, n_mels: int, shape: str, dtype: np.dtype
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the window (n,) and the filters (bins, n_mels); the bin at half the rate has no weight."""
    window = round(_WINDOW * rate)
    n_fft = _fft_length(window)
    cosine = np.cos(2 * np.pi * np.arange(window) / (window - 1))
    if shape == "povey":
        weights = (0.5 - 0.5 * cosine) ** 0.85
    else:
        weights = 0.54 - 0.46 * cosine
    filters = kaldi_filters(
        rate=rate, n_fft=n_fft, n_filters=n_mels, low_frequency=_LOWEST, high_frequency=rate / 2
    )
    return weights.astype(dtype), np.ascontiguousarray(filters.T, dtype)


def _triangles(edges: NDArray[Any], points: NDArray[Any]) -> NDArray[np.float64]:
    """Return triangles of height 1 at some points; each rises from an edge to the next and falls to the one after."""
    widths = np.diff(edges)[:, None]
    rising = (points - edges[:-2, None]) / widths[:-1]
    falling = (edges[2:, None] - points) / widths[1:]
    triangles: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    return triangles


def _fft_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _power(frames: NDArray[Any], n_fft: int) -> NDArray[Any]:
    from scipy import fft

    spectrum = fft.rfft(frames, n=n_fft, axis=1)
    power: NDArray[Any] = spectrum.real**2
    power += spectrum.imag**2
    return power
