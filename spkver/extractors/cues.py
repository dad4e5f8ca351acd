"""Extractors that use no voice timbre: prosody, and the recording session.

The prosody vector holds pitch height and movement, rhythm, and the alternation of voice and pauses, but neither timbre
nor level. Every statistic is standardised: its typical value is subtracted, and it is divided by its typical spread,
both rounded from 251 speakers of read English (LibriSpeech). A statistic that cannot be measured, such as the pitch of
a recording without voice, counts as typical: 0.

The session vector describes noise and channel in the frames without speech. How well it recognises speakers is not a
property of voices: it shows how much a corpus reveals in which each speaker was recorded in a different room and over a
different channel.

References
----------
E. Shriberg et al., "Modeling prosodic feature sequences for speaker recognition", Speech Communication 46, 2005.
N. H. de Jong and T. Wempe, "Praat script to detect syllable nuclei and measure speech rate automatically", Behavior
Research Methods 41(2), 2009 (syllables as peaks of the energy with voice).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.extractors.protocol import (
    RATE,
    SHORTEST,
    Embed,
    Extraction,
    ExtractorSettings,
    extract_each,
)
from spkver.features import FRAME_SHIFT, PitchTrack, rapt_track, snr_vad

_WINDOW = 0.025  # length in seconds of a measured frame
_LOUD = 0.95  # quantile of the frames' energies

PROSODY: dict[str, tuple[float, float]] = {
    "pitch mean": (7.0, 5.0),
    "pitch deviation": (4.5, 1.8),
    "pitch skewness": (0.5, 1.3),
    "pitch 5 %": (0.5, 6.0),
    "pitch 25 %": (4.0, 6.0),
    "pitch 50 %": (7.0, 5.0),
    "pitch 75 %": (9.5, 5.5),
    "pitch 95 %": (14.0, 5.5),
    "pitch range": (13.0, 5.0),
    "pitch trend": (-0.4, 0.9),
    "pitch change deviation": (0.67, 0.22),
    "pitch change size": (0.34, 0.065),
    "pitch change 5 %": (-0.8, 0.2),
    "pitch change 95 %": (0.54, 0.14),
    "pitch rising": (0.38, 0.055),
    "stretch slope": (-12.0, 7.5),
    "stretch slope deviation": (25.0, 10.0),
    "strength": (0.886, 0.039),
    "strength deviation": (0.109, 0.012),
    "voiced share": (0.65, 0.11),
    "voiced stretches": (2.8, 0.66),
    "voiced length": (-1.77, 0.34),
    "voiced length deviation": (0.85, 0.2),
    "unvoiced length": (-2.47, 0.3),
    "unvoiced length deviation": (0.74, 0.15),
    "pause share": (0.09, 0.1),
    "pauses": (0.19, 0.18),
    "pause length": (-1.0, 0.58),
    "pause length deviation": (0.25, 0.29),
    "energy deviation": (9.4, 1.3),
    "energy skewness": (-0.64, 0.38),
    "energy 5 %": (-29.3, 3.6),
    "energy 25 %": (-18.0, 4.4),
    "energy 50 %": (-9.5, 2.6),
    "energy change deviation": (3.0, 0.5),
    "energy change size": (1.88, 0.33),
    "voiced over unvoiced": (12.0, 3.5),
    "syllables": (3.2, 0.63),
    "syllable gap": (-1.45, 0.19),
    "syllable gap deviation": (0.57, 0.11),
    "syllable depth": (18.5, 4.4),
    "modulation 1 to 2 Hz": (-1.3, 0.46),
    "modulation 2 to 4 Hz": (-1.14, 0.33),
    "modulation 4 to 8 Hz": (-1.45, 0.39),
    "modulation 8 to 16 Hz": (-2.48, 0.39),
    "modulation 16 to 32 Hz": (-4.0, 0.45),
}
"""Typical value and spread of each statistic, in the order of the vector.

Pitch is in semitones above 100 Hz, changes in semitones or dB a frame of 10 ms, slopes in semitones a second, energy in
dB below the 95th percentile, counts a second, lengths as natural logarithms of seconds.
"""

_REFERENCE = 100.0  # Hz, reference of pitch
_SOUND_DB = 35.0  # frames less than this far below the loud frames have sound
# at least this many frames without sound are a pause; shorter gaps are parts of consonants
_PAUSE = 15
_HOLE = 2  # gaps of up to this many frames do not end a voiced stretch
_SMOOTHING = 5  # frames over which the envelope is smoothed to find syllables
_DIP = 2.0  # dB by which the envelope falls between syllables
_LEAST = 5  # fewest frames for a statistic of pitch

N_BANDS = 32
_SCALE = 8192.0  # the detector's sample unit is a quarter of a 16-bit step
_EDGE = 3  # frames next to speech that are skipped because of reverberation
_LEAST_OF_SESSION = 20  # fewest frames of silence; if there are fewer, the quietest frames are used
_SHARE = 0.1  # share of all frames that are used when the quietest are taken
# dB above the quietest tenth of the silence; louder frames are breath or missed speech
_ABOVE = 10.0
_FLOOR = 1e-13  # least power, -130 dB
_FALL = 20.0  # bands this many dB below the highest one are beyond the bandwidth
# typical values and spreads over recordings, in dB, of the means of the bands and of their deviations
_MIDDLE = -97.0
_SPREAD = 14.0
_DEVIATION = 4.5
_OF_DEVIATIONS = 1.5
# number of frames processed at a time, so that memory does not grow with the recording
_FRAMES_OF_SESSION = 8192

_VERSION = 1  # must change whenever the numbers do


@one_blas_thread()
def prosody_vector(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    """Return the statistics of a recording as a vector.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Samples at any level.
    rate : int [Hz]

    Returns
    -------
    ndarray of shape (D,)
        Statistics in the order of `PROSODY`, each minus its typical value, divided by its spread, clipped to [-10, 10];
        always finite.
    """
    measured = prosody_statistics(rapt_track(samples, rate), energy_contour(samples, rate))
    vector = np.array(
        [
            (measured.get(name, middle) - middle) / spread
            for name, (middle, spread) in PROSODY.items()
        ]
    )
    clipped: NDArray[np.float64] = np.clip(np.nan_to_num(vector, posinf=0, neginf=0), -10, 10)
    return clipped


def prosody_statistics(track: PitchTrack, energy: NDArray[np.float64]) -> dict[str, float]:
    """Return those statistics of `PROSODY` that can be measured, not standardised.

    Parameters
    ----------
    track : PitchTrack
        T frames.
    energy : ndarray of shape (T,) [dB]
    """
    if not len(energy):
        return {}
    level = energy - np.quantile(energy, _LOUD)
    sound = np.flatnonzero(level > -_SOUND_DB)
    if not len(sound):
        return {}
    kept = slice(sound[0], sound[-1] + 1)  # silence around the utterance is uninformative
    level = np.maximum(level[kept], -60.0)
    hertz = track.hertz[kept]
    strength = track.strength[kept]
    voiced = hertz > 0
    for start, stop in _stretches(~voiced):  # short holes are filled
        if stop - start <= _HOLE and start > 0 and stop < len(voiced):
            voiced[start:stop] = True
    return (
        _pitch(hertz)
        | _turns(voiced, level > -_SOUND_DB)
        | _loudness(level, hertz > 0, strength)
        | _syllables(level, voiced)
        | _modulations(level)
    )


def energy_contour(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    """Return the energy of frames of 25 ms centred on every 10th ms, in dB; -200 for silence.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]
    """
    if not len(samples):
        return np.empty(0)
    n_frames = 1 + int(len(samples) / rate / FRAME_SHIFT + 1e-6)
    centred = samples - samples.mean(dtype=np.float64)
    sums = np.pad(np.cumsum(np.square(centred, dtype=np.float64)), (1, 0))
    centres = np.arange(n_frames) * FRAME_SHIFT * rate
    half = max(_WINDOW * rate / 2, 0.5)
    edges = np.round([centres - half, centres + half])
    first, last = np.clip(edges, 0, len(samples)).astype(np.int64)
    power = np.maximum(sums[last] - sums[first], 0) / np.maximum(last - first, 1)
    decibels: NDArray[np.float64] = 10 * np.log10(power + 1e-20)
    return decibels


@one_blas_thread()
def session_vector(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    """Return statistics of the frames without speech, each minus a typical value, divided by a typical spread.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        Full scale 1, at least 25 ms; the level matters.
    rate : int [Hz]

    Returns
    -------
    ndarray of shape (2 N_BANDS + 4,)
        Mean and deviation of the log spectrum in bands of equal width from 0 to half the rate; level of all bands;
        bandwidth, up to the last band within 20 dB of the strongest one; ratio of the mean of the samples to their
        deviation (an offset of the converter); share of samples that are exactly 0. Always finite.
    """
    spectra = band_levels(samples, rate)
    quiet = silence(samples, rate, spectra)
    noise = spectra[quiet]
    waves = _frames(samples, rate)[quiet]
    means = noise.mean(axis=0)
    deviations = noise.std(axis=0)
    level = means.mean()
    n_bands = np.flatnonzero(means > means.max() - _FALL)[-1] + 1  # up to the last strong band
    offset = waves.mean() / (waves.std() + 1e-9)
    silent_share = np.mean(waves == 0)
    scaled = [
        (means - _MIDDLE) / _SPREAD,
        (deviations - _DEVIATION) / _OF_DEVIATIONS,
        [
            (level - _MIDDLE) / _SPREAD,
            4 * n_bands / N_BANDS - 2,
            np.clip(offset, -5, 5),
            10 * silent_share,
        ],
    ]
    clipped: NDArray[np.float64] = np.clip(np.concatenate(scaled), -10, 10)
    return clipped


def silence(samples: NDArray[Any], rate: int, spectra: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the frames that the detector `snr` labels as silence and that are not at the edge of speech.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]
    spectra : ndarray of shape (T, B) [dB]
        See `band_levels`. Of the silent frames, those at most 10 dB above their quietest tenth are used. If there are
        fewer than 20, the quietest tenth of all frames is used instead, but at least 20 frames if there are as many.
    """
    signal = (np.asarray(samples, np.float32) * np.float32(_SCALE),)
    noise = (np.random.default_rng(0).standard_normal(len(samples), dtype=np.float32),)
    window = round(_WINDOW * rate)
    shift = round(FRAME_SHIFT * rate)
    (speech,) = snr_vad(signal, noise, window=window, shift=shift)
    near = np.convolve(speech, np.ones(2 * _EDGE + 1), mode="same") > 0.5
    frames = np.ones(len(spectra), bool)
    frames[: len(near)] = ~near[: len(spectra)]
    levels = 10 * np.log10((10 ** (spectra / 10)).sum(axis=1))
    if frames.any():
        frames &= levels <= np.quantile(levels[frames], _SHARE) + _ABOVE
    if np.count_nonzero(frames) >= _LEAST_OF_SESSION:
        return frames
    count = min(len(spectra), max(_LEAST_OF_SESSION, round(_SHARE * len(spectra))))
    frames = np.zeros(len(spectra), bool)
    frames[np.argsort(levels, kind="stable")[:count]] = True
    return frames


def band_levels(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
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
    edges = np.arange(N_BANDS) * (length // 2) // N_BANDS + 1  # skip the lowest bin, the mean
    levels = []
    for first in range(0, len(views), _FRAMES_OF_SESSION):
        frames = views[first : first + _FRAMES_OF_SESSION]
        power = np.abs(fft.rfft(frames * shape, n=length, axis=1)) ** 2 / shape.sum() ** 2
        sums = np.add.reduceat(power, edges, axis=1)
        levels.append(10 * np.log10(sums + _FLOOR))
    return np.concatenate(levels)


def _pitch(hertz: NDArray[Any]) -> dict[str, float]:
    """Return statistics of the level, range and movement of the pitch of voiced frames."""
    voiced = np.flatnonzero(hertz > 0)
    if len(voiced) < _LEAST:
        return {}
    pitch = 12 * np.log2(np.maximum(hertz, 1) / _REFERENCE)
    values = pitch[voiced]
    quantiles = np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95))
    measured = {
        "pitch mean": values.mean(),
        "pitch deviation": values.std(),
        "pitch skewness": _skewness(values),
        "pitch range": quantiles[-1] - quantiles[0],
        "pitch trend": np.clip(_slope(voiced * FRAME_SHIFT, values), -5, 5),
    }
    for share, value in zip((5, 25, 50, 75, 95), quantiles, strict=True):
        measured[f"pitch {share} %"] = value
    changes = np.diff(pitch)[(hertz[1:] > 0) & (hertz[:-1] > 0)]
    if len(changes) >= _LEAST:
        low, high = np.quantile(changes, (0.05, 0.95))
        measured |= {
            "pitch change deviation": changes.std(),
            "pitch change size": np.abs(changes).mean(),
            "pitch change 5 %": low,
            "pitch change 95 %": high,
            "pitch rising": (changes > 0).mean(),
        }
    slopes = [
        _slope(np.arange(start, stop) * FRAME_SHIFT, pitch[start:stop])
        for start, stop in _stretches(hertz > 0)
        if stop - start >= _LEAST
    ]
    if slopes:
        measured |= {"stretch slope": np.mean(slopes), "stretch slope deviation": np.std(slopes)}
    return measured


def _turns(voiced: NDArray[np.bool_], sound: NDArray[np.bool_]) -> dict[str, float]:
    """Return the shares of voiced frames and pauses, and the lengths of voiced and unvoiced stretches and of pauses."""
    pauses = [(start, stop) for start, stop in _stretches(~sound) if stop - start >= _PAUSE]
    spoken = np.ones(len(voiced), bool)
    for start, stop in pauses:
        spoken[start:stop] = False
    seconds = len(voiced) * FRAME_SHIFT
    measured = {
        "voiced share": voiced[spoken].mean(),
        "pause share": 1 - spoken.mean(),
        "pauses": len(pauses) / seconds,
        "voiced stretches": len(_stretches(voiced)) / (spoken.sum() * FRAME_SHIFT),
    }
    kinds = ("voiced", voiced & spoken), ("unvoiced", ~voiced & spoken), ("pause", ~spoken)
    for name, frames in kinds:
        lengths = np.log([(stop - start) * FRAME_SHIFT for start, stop in _stretches(frames)])
        if len(lengths):
            measured |= {
                f"{name} length": lengths.mean(),
                f"{name} length deviation": lengths.std(),
            }
    return measured


def _loudness(
    level: NDArray[Any], voiced: NDArray[np.bool_], strength: NDArray[Any]
) -> dict[str, float]:
    """Return statistics of the energy of frames with sound relative to the loud ones, and of the periodicity."""
    sounding = level > -_SOUND_DB
    values = level[sounding]
    changes = np.diff(level)[sounding[1:] & sounding[:-1]]
    measured = {"energy deviation": values.std(), "energy skewness": _skewness(values)}
    quantiles = np.quantile(values, (0.05, 0.25, 0.5))
    for share, value in zip((5, 25, 50), quantiles, strict=True):
        measured[f"energy {share} %"] = value
    if len(changes) >= _LEAST:
        measured |= {
            "energy change deviation": changes.std(),
            "energy change size": np.abs(changes).mean(),
        }
    with_voice = level[sounding & voiced]
    without = level[sounding & ~voiced]
    if len(with_voice) >= _LEAST:
        strength = strength[sounding & voiced]
        measured |= {"strength": strength.mean(), "strength deviation": strength.std()}
        if len(without) >= _LEAST:
            measured["voiced over unvoiced"] = with_voice.mean() - without.mean()
    return measured


def _syllables(level: NDArray[Any], voiced: NDArray[np.bool_]) -> dict[str, float]:
    """Return statistics of the peaks of the smoothed energy of voiced frames: about one for each syllable."""
    from scipy.signal import find_peaks

    kernel = np.hanning(_SMOOTHING + 2)[1:-1]
    padded = np.pad(level, _SMOOTHING // 2, mode="edge")
    smoothed = np.convolve(padded, kernel / kernel.sum(), mode="valid")
    peaks, properties = find_peaks(smoothed, prominence=_DIP)
    is_syllable = voiced[peaks]
    peaks = peaks[is_syllable]
    depths = properties["prominences"][is_syllable]
    measured = {"syllables": len(peaks) / (len(level) * FRAME_SHIFT)}
    if len(peaks) > 2:
        gaps = np.log(np.diff(peaks) * FRAME_SHIFT)
        measured |= {"syllable gap": float(np.median(gaps)), "syllable gap deviation": gaps.std()}
        measured["syllable depth"] = depths.mean()
    return measured


def _modulations(level: NDArray[Any]) -> dict[str, float]:
    """Return the log shares of octaves of the energy's modulation: the rhythm of syllables and sounds."""
    contour = np.maximum(level, -_SOUND_DB)
    power = np.abs(np.fft.rfft((contour - contour.mean()) * np.hanning(len(contour)))) ** 2
    rates = np.fft.rfftfreq(len(contour), FRAME_SHIFT)
    bands = {low: power[(rates >= low) & (rates < 2 * low)].sum() for low in (1, 2, 4, 8, 16)}
    total = sum(bands.values())
    if len(contour) * FRAME_SHIFT < 1 or not total > 0:
        return {}
    return {
        f"modulation {low} to {2 * low} Hz": math.log(max(part / total, 1e-3))
        for low, part in bands.items()
    }


def _stretches(frames: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first frame of each run of true values, and the first frame after it."""
    edges = np.flatnonzero(np.diff(np.pad(frames.astype(np.int8), 1)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _slope(times: NDArray[Any], values: NDArray[Any]) -> float:
    centred = times - times.mean()
    return float(centred @ (values - values.mean()) / (centred @ centred))


def _skewness(values: NDArray[Any]) -> float:
    centred = values - values.mean()
    deviation = values.std()
    if not deviation > 1e-9:
        return 0.0
    return float((centred**3).mean() / deviation**3)


def _frames(samples: NDArray[Any], rate: int) -> NDArray[Any]:
    """Return frames as views, shape (T, window)."""
    return np.lib.stride_tricks.sliding_window_view(samples, round(_WINDOW * rate))[
        :: round(FRAME_SHIFT * rate)
    ]


def _open(
    function: Embed, numbers: dict[str, int], argument: str, settings: ExtractorSettings
) -> Extraction:
    """Open an extractor of this module; recordings are not cut into windows unless the settings ask for it."""
    if argument:
        raise ConfigError(f"this extractor takes no argument after a colon, got {argument!r}")
    settings.check_rate()
    windows = settings.windows()
    extract = partial(extract_each, function=function, rate=RATE, shortest=SHORTEST, **windows)
    return Extraction(extract, {**numbers, "version": _VERSION, **windows}, RATE, SHORTEST)


open_prosody = partial(_open, prosody_vector, {"statistics": len(PROSODY)})
open_session = partial(_open, session_vector, {"bands": N_BANDS})
