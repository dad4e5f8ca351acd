"""The session: noise and channel of a recording, heard where nobody speaks.

How far these vectors recognise speakers is no property of voices: it is what the corpus gives away, because people were
recorded apart, each in a room and over a channel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.work import one_blas_thread
from spkver.features import snr_vad

N_BANDS = 32
_WINDOW, _SHIFT = 0.025, 0.010  # s
_SCALE = 8192.0  # the detector's sample unit is a quarter of a 16-bit step
_EDGE = 3  # frames beside speech, which ring on
_LEAST = 20  # frames of silence; where there are fewer, the quietest
_SHARE = 0.1  # of all frames, at least, where the quietest are taken
_ABOVE = 10.0  # dB above the quietest tenth of the silence: breath, and speech that was missed
_FLOOR = 1e-13  # of power: -130 dB
_FALL = 20.0  # dB below the highest band: beyond the bandwidth
_MIDDLE, _SPREAD = -97.0, 14.0  # dB
_DEVIATION, _OF_DEVIATIONS = 4.5, 1.5  # dB
_FRAMES = 8192  # at a time, so that memory does not grow with the recording


class Silence(NamedTuple):
    """Which frames were taken for silence.

    Attributes
    ----------
    frames : ndarray of bool of shape (T,)
    found : bool
        Whether the detector found them; else they are the quietest.
    """

    frames: NDArray[np.bool_]
    found: bool


@one_blas_thread()
def session_vector(samples: NDArray, rate: int) -> NDArray[np.float64]:
    """Return statistics of the frames without speech, each less a typical value over a typical spread.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at least 25 ms; the level counts.
    rate : int [Hz]

    Returns
    -------
    ndarray of shape (2 N_BANDS + 4,)
        Mean and deviation of the log spectrum in bands of equal width from 0 to half the rate; level of all bands;
        bandwidth, up to the last band within 20 dB of the strongest one; mean of the samples against their deviation
        (an offset of the converter); share of samples that are exactly 0. Finite always.
    """
    spectra = band_levels(samples, rate)
    quiet = silence(samples, rate, spectra).frames
    noise, heard = spectra[quiet], _frames(samples, rate)[quiet]
    means, deviations = noise.mean(axis=0), noise.std(axis=0)
    within = np.flatnonzero(means > means.max() - _FALL)
    others = [
        (means.mean() - _MIDDLE) / _SPREAD,
        4 * (within[-1] + 1) / N_BANDS - 2,
        np.clip(heard.mean() / (heard.std() + 1e-9), -5, 5),
        10 * np.mean(heard == 0),
    ]
    parts = (means - _MIDDLE) / _SPREAD, (deviations - _DEVIATION) / _OF_DEVIATIONS, others
    return np.clip(np.concatenate(parts), -10, 10)


def silence(samples: NDArray, rate: int, spectra: NDArray) -> Silence:
    """Return the frames that the detector `snr` calls silence and that are not at the edge of speech.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]
    spectra : ndarray of shape (T, B) [dB]
        See `band_levels`. Of the silent frames those count that are at most 10 dB above their quietest tenth. Where
        they are fewer than 20, the quietest tenth of all frames is taken, at least 20 where there are as many.
    """
    signal = (np.asarray(samples, np.float32) * np.float32(_SCALE),)
    noise = (np.random.default_rng(0).standard_normal(len(samples), dtype=np.float32),)
    window, shift = round(_WINDOW * rate), round(_SHIFT * rate)
    (speech,) = snr_vad(signal, noise, window=window, shift=shift)
    near = np.convolve(speech, np.ones(2 * _EDGE + 1), mode="same") > 0.5
    frames = np.ones(len(spectra), bool)
    frames[: len(near)] = ~near[: len(spectra)]
    levels = _total(spectra)
    if frames.any():
        frames &= levels <= np.quantile(levels[frames], _SHARE) + _ABOVE
    if np.count_nonzero(frames) >= _LEAST:
        return Silence(frames, True)
    count = min(len(spectra), max(_LEAST, round(_SHARE * len(spectra))))
    frames = np.zeros(len(spectra), bool)
    frames[np.argsort(levels, kind="stable")[:count]] = True
    return Silence(frames, False)


def band_levels(samples: NDArray, rate: int) -> NDArray[np.float64]:
    """Return the level of bands of equal width from 0 to half the rate in dB, frames of 25 ms every 10 ms.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]

    Returns
    -------
    ndarray of shape (T, N_BANDS)
        At least -130 dB.
    """
    from scipy import fft

    window = round(_WINDOW * rate)
    length = fft.next_fast_len(max(window, 2 * N_BANDS), real=True)
    views = _frames(np.asarray(samples, np.float64), rate)
    shape = np.hanning(window)
    edges = np.arange(N_BANDS) * (length // 2) // N_BANDS + 1  # without the mean
    levels = []
    for first in range(0, len(views), _FRAMES):
        power = np.abs(fft.rfft(views[first : first + _FRAMES] * shape, n=length, axis=1)) ** 2 / shape.sum() ** 2
        sums = np.add.reduceat(power, edges, axis=1)
        levels.append(10 * np.log10(sums + _FLOOR))
    return np.concatenate(levels)


def _frames(samples: NDArray, rate: int) -> NDArray:
    """Frames as views, shape (T, window)."""
    return np.lib.stride_tricks.sliding_window_view(samples, round(_WINDOW * rate))[:: round(_SHIFT * rate)]


def _total(spectra: NDArray) -> NDArray[np.float64]:
    """Level of each frame in dB."""
    return 10 * np.log10((10 ** (spectra / 10)).sum(axis=1))
