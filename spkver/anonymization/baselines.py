"""Simple anonymisers to compare with: each one function ``samples, rate, utterance, rng -> samples``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

_WINDOW, _SHIFT = 0.032, 0.008  # s
_QUEFRENCY = 0.002  # s: what is below belongs to the vocal tract


def none(samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator) -> NDArray[Any]:
    """Leave the speech as it is: the other end of every comparison."""
    return samples


def resampling(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    speed: tuple[float, float] = (0.8, 1.25),
) -> NDArray[Any]:
    """Play faster or slower: tempo, pitch and formants change by one factor, and so does the duration.

    References
    ----------
    T. Ko, V. Peddinti, D. Povey, S. Khudanpur, Audio augmentation for speech recognition, Interspeech 2015.
    """
    changed = change_speed(samples, rate, draw_speed(rng, speed))
    if not len(changed):
        raise DataError(f"utterance {utterance!r}: {len(samples)} samples are too few", remedy="leave it out")
    return changed


def draw_speed(rng: np.random.Generator, speed: tuple[float, float]) -> float:
    """Draw a factor of tempo, pitch and formants, log-uniform."""
    return _log_uniform(rng, speed)


def change_speed(samples: NDArray[Any], rate: int, factor: float) -> NDArray[Any]:
    """Play a signal so many times as fast; `resampling` draws the factor."""
    import soxr

    changed: NDArray[Any] = soxr.resample(samples, rate * factor, rate, quality="HQ")
    return changed


def vtln(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    warp: tuple[float, float] = (0.05, 0.12),
) -> NDArray[Any]:
    """Warp the frequency axis of the spectral envelope by a bilinear function, as another vocal tract length would.

    The envelope is the cepstrally smoothed spectrum of 32 ms frames; what it leaves over, pitch and phase, stays.

    References
    ----------
    J. Qian, H. Du, J. Hou, L. Chen, T. Jung, X.-Y. Li, Hidebehind: enjoy voice input with voiceprint unclonability and
    anonymity, SenSys 2018.
    """
    if len(samples) < round(rate * _WINDOW):
        raise DataError(f"utterance {utterance!r}: {len(samples)} samples are less than a frame", remedy="leave it out")
    return warp_envelope(samples, rate, draw_warp(rng, warp))


def draw_warp(rng: np.random.Generator, warp: tuple[float, float]) -> float:
    """Draw the size of a bilinear warp, uniform, and its sign."""
    return float(rng.uniform(*warp)) * (1 if rng.random() < 0.5 else -1)


def warp_envelope(samples: NDArray[Any], rate: int, size: float) -> NDArray[Any]:
    """Warp the spectral envelope by the bilinear function of one size, see `vtln`; that of -size turns it back.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        At least 32 ms.
    rate : int [Hz]
    size : float
        Between -1 and 1; the envelope at omega is that of omega + 2 atan(size sin(omega) / (1 - size cos(omega))).
    """
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    length, shift = round(rate * _WINDOW), round(rate * _SHIFT)
    transform = ShortTimeFFT(hann(length, sym=False), shift, rate, mfft=length)
    spectrum = transform.stft(samples.astype(np.float64))
    envelope = _log_envelope(np.abs(spectrum), round(rate * _QUEFRENCY), length)
    bins = np.arange(len(spectrum))
    omega = np.pi * bins / bins[-1]
    source = omega + 2 * np.arctan2(size * np.sin(omega), 1 - size * np.cos(omega))
    position = source / np.pi * bins[-1]
    low = np.minimum(position.astype(int), bins[-1] - 1)
    share = (position - low)[:, None]
    warped = (1 - share) * envelope[low] + share * envelope[low + 1]
    changed: NDArray[Any] = transform.istft(spectrum * np.exp(warped - envelope), k1=len(samples))
    return changed


def world(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    pitch: tuple[float, float] = (0.7, 1.4),
    formants: tuple[float, float] = (0.8, 1.25),
) -> NDArray[Any]:
    """Scale F0 and formants through the vocoder WORLD; needs the extra ``[world]``.

    References
    ----------
    M. Morise, F. Yokomori, K. Ozawa, WORLD: a vocoder-based high-quality speech synthesis system for real-time
    applications, IEICE Transactions on Information and Systems, E99-D(7), 2016.
    """
    pyworld = _pyworld()
    of_pitch, of_formants = _log_uniform(rng, pitch), _log_uniform(rng, formants)
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    rough, times = pyworld.dio(signal, rate)
    f0 = pyworld.stonemask(signal, rough, times, rate)
    envelope = pyworld.cheaptrick(signal, f0, times, rate)
    aperiodicity = pyworld.d4c(signal, f0, times, rate)
    bins = np.arange(envelope.shape[1])
    position = np.minimum(bins / of_formants, bins[-1])
    low = np.minimum(position.astype(int), bins[-1] - 1)
    share = position - low
    scaled = np.ascontiguousarray(np.exp((1 - share) * np.log(envelope[:, low]) + share * np.log(envelope[:, low + 1])))
    made: NDArray[Any] = pyworld.synthesize(f0 * of_pitch, scaled, aperiodicity, rate)
    return np.pad(made, (0, max(0, len(samples) - len(made))))[: len(samples)]


def check_world() -> None:
    """Raise a DataError if the vocoder is not installed."""
    _pyworld()


def _pyworld() -> Any:
    try:
        import pyworld
    except ImportError as error:
        raise DataError("the anonymiser 'world' needs pyworld", remedy="pip install 'spkver[world]'") from error
    return pyworld


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(bounds))))


def _log_envelope(magnitude: NDArray[Any], order: int, length: int) -> NDArray[Any]:
    """Log spectra (bins, frames) smoothed by leaving out the high quefrencies."""
    floor = max(float(magnitude.max()), 1e-30) * 1e-6
    cepstrum = np.fft.irfft(np.log(np.maximum(magnitude, floor)), length, axis=0)
    cepstrum[order + 1 : length - order] = 0
    smooth: NDArray[Any] = np.fft.rfft(cepstrum, axis=0).real
    return smooth
