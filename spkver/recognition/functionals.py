"""One vector for a recording, whatever its length: statistics over time of cepstra, energy and pitch.

Conventions
-----------
Every 10 ms there are 13 cepstra, the log-energy in dB below the loudest frame, and the pitch in semitones where there
is voice. Only frames count that lie between the first and the last one less than 35 dB below the loudest, so that the
silence around an utterance says nothing. The gain of a recording says nothing either (anonymisers change it), unless
`level` is asked for.

References
----------
.. [1] B. Schuller, S. Steidl and A. Batliner, "The INTERSPEECH 2009 Emotion Challenge", Interspeech 2009.
.. [2] F. Eyben et al., "The Geneva Minimalistic Acoustic Parameter Set (GeMAPS) for voice research and affective
   computing", IEEE Trans. Affective Computing 7(2), 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.utility import pyin_track
from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.features import MfccSettings, mfcc

LEAST_FRAMES = 20
_WINDOW, _SHIFT = 0.025, 0.01
_SPEECH_DB = 35.0
_REFERENCE_HZ = 55.0  # of semitones
_DB = 10 / math.log(10)
_QUANTILES = (0.05, 0.2, 0.5, 0.8, 0.95)
_OF_CONTOURS = ("mean", "deviation", "skewness", "slope", *(f"q{100 * share:g}" for share in _QUANTILES), "range")
_OF_CHANGES = ("deviation", "size", "q5", "q95")
_OF_PITCH = ("voiced_share", "segments_per_second", "segment_mean", "segment_deviation", "rising_share", "rise", "fall")
_OF_ENERGY = ("duration", "loud_share", "peaks_per_second", "voiced_less_unvoiced")


@dataclass(frozen=True)
class FunctionalsConfig:
    """What is computed of a recording.

    Attributes
    ----------
    rate : int [Hz]
        Recordings at other rates are resampled.
    n_cepstra, n_filters : int
    low_frequency, high_frequency : float [Hz]
        Range of the filters.
    lowest_pitch, highest_pitch : float [Hz]
    pitch_resolution : float [semitones]
        Step of the pitch tracker.
    level : bool
        Keep the level of the loudest frame as one more number.
    """

    rate: int = 16000
    n_cepstra: int = 13
    n_filters: int = 26
    low_frequency: float = 50.0
    high_frequency: float = 7600.0
    lowest_pitch: float = 60.0
    highest_pitch: float = 600.0
    pitch_resolution: float = 0.2
    level: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.low_frequency < self.high_frequency <= self.rate / 2:
            raise ConfigError(f"expected 0 < low_frequency < high_frequency <= {self.rate / 2:g} Hz")
        if not 0 < self.n_cepstra < self.n_filters:
            raise ConfigError(f"expected fewer cepstra than {self.n_filters} filters, got {self.n_cepstra}")
        if not 0 < self.lowest_pitch < self.highest_pitch <= self.rate / 4 or not 0 < self.pitch_resolution < 1:
            raise ConfigError("expected 0 < lowest_pitch < highest_pitch, and a pitch_resolution between 0 and 1")


def functional_names(config: FunctionalsConfig) -> list[str]:
    """Name the elements of `functionals`, in their order."""
    contours = [*(f"c{number}" for number in range(1, config.n_cepstra + 1)), "energy", "pitch"]
    names = [f"{contour}.{statistic}" for contour in contours for statistic in _OF_CONTOURS]
    names += [f"delta_{contour}.{statistic}" for contour in contours for statistic in _OF_CHANGES]
    names += [f"pitch.{statistic}" for statistic in _OF_PITCH] + [f"energy.{statistic}" for statistic in _OF_ENERGY]
    return [*names, "level"] if config.level else names


@one_blas_thread()
def functionals(samples: NDArray, config: FunctionalsConfig) -> NDArray[np.float64]:
    """Compute the vector of a recording.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at the rate of the configuration.
    config : FunctionalsConfig

    Returns
    -------
    ndarray of shape (D,)
        As `functional_names` says; finite always. Pitch counts as 0 throughout where there is no voice.

    Raises
    ------
    ValueError
        If there are fewer than `LEAST_FRAMES` frames of sound.
    """
    samples = np.asarray(samples, np.float64)
    cepstra, log_energy = mfcc(samples, _settings(config))
    energy = _DB * log_energy
    if len(energy) < LEAST_FRAMES or not samples.any():
        raise ValueError(f"{len(energy)} frames, at least {LEAST_FRAMES} with sound are needed")
    loud = np.flatnonzero(energy > energy.max() - _SPEECH_DB)
    kept = slice(loud[0], loud[-1] + 1)
    if kept.stop - kept.start < LEAST_FRAMES:
        raise ValueError(f"{kept.stop - kept.start} frames of sound, at least {LEAST_FRAMES} are needed")
    cepstra, relative = cepstra[kept], energy[kept] - energy.max()
    pitch = _pitch(samples, config, kept)
    voiced = pitch > 0
    contours = [*cepstra.T, relative]
    values = [value for contour in contours for value in _contour(contour)] + _contour(pitch[voiced])
    changes = [_change(contour) for contour in contours]
    both = voiced[1:] & voiced[:-1]
    values += [value for change in changes for value in change] + _change(pitch, both)
    values += _voice(pitch, voiced) + _loudness(relative, voiced)
    return np.array(values + ([float(energy.max())] if config.level else []))


def _settings(config: FunctionalsConfig) -> MfccSettings:
    window, shift = round(_WINDOW * config.rate), round(_SHIFT * config.rate)
    filters = (config.n_filters, config.low_frequency, config.high_frequency)
    return MfccSettings(config.rate, window, shift, 0.97, *filters, config.n_cepstra)


def _pitch(samples: NDArray, config: FunctionalsConfig, kept: slice) -> NDArray[np.float64]:
    """Pitch in semitones above 55 Hz, 0 where there is no voice, for some frames of the cepstra."""
    shift = round(_SHIFT * config.rate)
    length = 1 << math.ceil(math.log2(3 * config.rate / config.lowest_pitch))
    # frames of the tracker are centred on those of the cepstra
    before = (length - round(_WINDOW * config.rate)) // 2
    padded = np.pad(samples, (before, length))
    pitch_hz = pyin_track(
        padded[kept.start * shift : (kept.stop - 1) * shift + length],
        config.rate,
        (config.lowest_pitch, config.highest_pitch),
        frame=length,
        shift=shift,
        resolution=config.pitch_resolution,
        centred=False,
    )
    voiced = pitch_hz > 0
    pitch = np.zeros(len(pitch_hz))
    pitch[voiced] = 12 * np.log2(pitch_hz[voiced] / _REFERENCE_HZ)
    return pitch


def _contour(values: NDArray) -> list[float]:
    """Statistics of a contour, in the order of `_OF_CONTOURS`; zeros for one without frames."""
    if not len(values):
        return [0.0] * len(_OF_CONTOURS)
    mean, deviation = float(values.mean()), float(values.std())
    skewness = float((((values - mean) / deviation) ** 3).mean()) if deviation > 1e-9 else 0.0
    time = np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1)
    slope = float(time @ (values - mean) / max(float(time @ time), 1e-9))
    quantiles = np.quantile(values, _QUANTILES).tolist()
    return [mean, deviation, skewness, slope, *quantiles, quantiles[-1] - quantiles[0]]


def _change(values: NDArray, rows: NDArray | None = None) -> list[float]:
    """Statistics of the steps from frame to frame, in the order of `_OF_CHANGES`."""
    steps = np.diff(values) if rows is None else np.diff(values)[rows]
    if not len(steps):
        return [0.0] * len(_OF_CHANGES)
    low, high = np.quantile(steps, (0.05, 0.95)).tolist()
    return [float(steps.std()), float(np.abs(steps).mean()), low, high]


def _voice(pitch: NDArray, voiced: NDArray) -> list[float]:
    """What the voiced segments are like, in the order of `_OF_PITCH`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], voiced.astype(int), [0]])))
    lengths = _SHIFT * (edges[1::2] - edges[0::2])
    steps = np.diff(pitch)[voiced[1:] & voiced[:-1]]
    rising, falling = steps[steps > 0], steps[steps < 0]
    seconds = _SHIFT * len(pitch)
    return [
        float(voiced.mean()),
        len(lengths) / seconds,
        float(lengths.mean()) if len(lengths) else 0.0,
        float(lengths.std()) if len(lengths) else 0.0,
        len(rising) / len(steps) if len(steps) else 0.0,
        float(rising.mean()) if len(rising) else 0.0,
        float(falling.mean()) if len(falling) else 0.0,
    ]


def _loudness(energy: NDArray, voiced: NDArray) -> list[float]:
    """What the envelope is like, in the order of `_OF_ENERGY`; energy in dB below the loudest frame."""
    seconds = _SHIFT * len(energy)
    smooth = np.convolve(energy, np.ones(7) / 7, mode="same")
    peaks = (smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:]) & (smooth[1:-1] > -20)
    contrast = float(energy[voiced].mean() - energy[~voiced].mean()) if voiced.any() and not voiced.all() else 0.0
    return [seconds, float((energy > -15).mean()), float(peaks.sum()) / seconds, contrast]
