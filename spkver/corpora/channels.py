"""Simulated sessions: the speaker's drift from day to day, and the microphone, room, noise and level of a recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spkver.corpora.variability import VARIABILITY, Variability, bounded_normal, generator

SAMPLE_RATE = 16_000

_N_TAPS = 257
_KNOTS = np.geomspace(100, 8000, 8)  # Hz; where the channel's gains are drawn
_NOISES = ("white", "pink", "babble")
_STEEPNESS = 24.0  # dB per octave beyond the edges of the channel


@dataclass(frozen=True, eq=False)
class Session:
    """One session of a speaker.

    Attributes
    ----------
    number : int
    rate, pitch, pitch_range, tract : float
        Factors on the speaker's own rate, pitch, intonation and formants.
    tilt, breath : float
        Added to the speaker's own, dB per octave and dB.
    response : ndarray of float32 of shape (n_taps,)
        Impulse response of microphone and room; its delay is 8 ms.
    noise : {'white', 'pink', 'babble'}
    signal_to_noise : float
        dB.
    level : float
        Level of the speech, dB re full scale.
    silence : tuple of float
        Shortest and longest silence before and after a sentence, s.
    """

    number: int
    rate: float
    pitch: float
    pitch_range: float
    tract: float
    tilt: float
    breath: float
    response: np.ndarray
    noise: str
    signal_to_noise: float
    level: float
    silence: tuple[float, float]


def make_session(
    gender: str, speaker: int, number: int, seed: int = 0, *, variability: Variability = VARIABILITY
) -> Session:
    """Draw session `number` of a speaker.

    Parameters
    ----------
    gender : {'m', 'f'}
    speaker, number : int
        From 0; equal numbers are equal sessions.
    seed : int
        From 0.
    variability : Variability
        How much sessions differ.
    """
    random = generator(seed, "session", gender, speaker, number)
    return Session(
        number=number,
        rate=float(np.exp(variability.session_rate * bounded_normal(random))),
        pitch=float(np.exp(variability.session_pitch * bounded_normal(random))),
        pitch_range=float(np.exp(variability.session_pitch_range * bounded_normal(random))),
        tract=float(np.exp(variability.session_tract * bounded_normal(random))),
        tilt=float(variability.session_tilt * bounded_normal(random)),
        breath=float(variability.session_breath * bounded_normal(random)),
        response=np.convolve(_microphone(random, variability), _room(random, variability)).astype(np.float32),
        noise=_NOISES[random.integers(len(_NOISES))],
        signal_to_noise=float(random.uniform(*variability.signal_to_noise)),
        level=float(random.uniform(*variability.level)),
        silence=variability.silence,
    )


def transmit(speech: np.ndarray, session: Session, random: np.random.Generator) -> np.ndarray:
    """Record speech in a session.

    Parameters
    ----------
    speech : ndarray of float32 of shape (n_samples,)
        Clean speech at 16 kHz, of any level.
    session : Session
    random : numpy.random.Generator
        Source of the noise and of the lengths of the silences.

    Returns
    -------
    ndarray of float32 of shape (n_longer,)
        In [-1, 1].
    """
    from scipy.signal import oaconvolve

    before, after = (int(SAMPLE_RATE * random.uniform(*session.silence)) for _ in range(2))
    recorded = oaconvolve(np.pad(speech, (before, after)), session.response)[: before + len(speech) + after]
    power = np.mean(np.square(recorded[before : before + len(speech)], dtype=np.float64))
    noise = _noise(session.noise, len(recorded), random)
    noise *= np.sqrt(power / np.mean(np.square(noise, dtype=np.float64)) * 10 ** (-session.signal_to_noise / 10))
    recorded = (recorded + noise) * np.float32(10 ** (session.level / 20) / np.sqrt(power))
    return np.clip(recorded, -1, 1, dtype=np.float32)


def filter_from_gains(frequencies: np.ndarray, gains: np.ndarray, *, n_taps: int) -> np.ndarray:
    """Return a filter of linear phase with given gains.

    Parameters
    ----------
    frequencies : ndarray of shape (n,)
        Rising, Hz; between them gains are interpolated over log frequency, outside they stay.
    gains : ndarray of shape (n,)
        dB.
    n_taps : int
        Odd.

    Returns
    -------
    ndarray of float32 of shape (n_taps,)
    """
    bins = np.linspace(0, SAMPLE_RATE / 2, 257)
    level = np.interp(np.log(np.maximum(bins, 1)), np.log(frequencies), gains)
    response = np.fft.fftshift(np.fft.irfft(10 ** (level / 20)))
    middle = len(response) // 2
    taps = response[middle - n_taps // 2 : middle + n_taps // 2 + 1]
    return (taps * np.hanning(n_taps + 2)[1:-1]).astype(np.float32)


def _microphone(random: np.random.Generator, variability: Variability) -> np.ndarray:
    """Random gains over frequency, falling off beyond a random band."""
    gains = variability.channel_gain * bounded_normal(random, len(_KNOTS))
    low, high = random.uniform(*variability.channel_low), random.uniform(*variability.channel_high)
    grid = np.geomspace(20, 8000, 96)
    level = np.interp(np.log(grid), np.log(_KNOTS), gains)
    outside = np.log2(np.maximum(1, np.maximum(low / grid, grid / high)))
    return filter_from_gains(grid, np.maximum(level - _STEEPNESS * outside, -50), n_taps=_N_TAPS)


def _room(random: np.random.Generator, variability: Variability) -> np.ndarray:
    """Direct sound, a few early reflections, and noise that decays exponentially."""
    reverberation = random.uniform(*variability.reverberation)
    ratio = random.uniform(*variability.direct_to_reverberant)
    time = np.arange(int(0.6 * reverberation * SAMPLE_RATE)) / SAMPLE_RATE  # down by 36 dB at the end
    decay = np.exp(-3 * np.log(10) * time / reverberation)
    response = random.standard_normal(len(time)) * decay
    response[: int(0.004 * SAMPLE_RATE)] = 0
    early = random.integers(int(0.002 * SAMPLE_RATE), int(0.03 * SAMPLE_RATE), 6)
    response[early] += 6 * random.choice([-1, 1], len(early)) * decay[early]
    response *= np.sqrt(10 ** (-ratio / 10) / np.sum(response**2))
    response[0] = 1
    return response


def _noise(kind: str, n_samples: int, random: np.random.Generator) -> np.ndarray:
    from scipy.signal import lfilter

    white = random.standard_normal(n_samples, np.float32)
    if kind == "white":
        return white
    # two poles: falls from about 100 Hz on as pink noise does, from 600 Hz on as speech does
    pole = 0.8 if kind == "babble" else 0.96
    coloured = lfilter(np.array([1, -0.5], np.float32), np.array([1, -pole], np.float32), white)
    if kind == "pink":
        return coloured
    n_knots = n_samples * 5 // SAMPLE_RATE + 2  # the loudness of a few voices changes some five times a second
    levels = 10 ** (5 * random.standard_normal(n_knots) / 20)
    loudness = np.interp(np.arange(n_samples) * 5 / SAMPLE_RATE, np.arange(n_knots), levels)
    return coloured * loudness.astype(np.float32)
