"""Simulated speakers: an engine voice (accent, pitch, formants, rate) and a voice quality of our own on top of it.

Nothing here knows about corpora: `make_voice`, `channels.make_session` and `synthesise_utterance` give speech for any
layout. Every random number derives from the seed and the ids given, so an utterance depends on no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spkbase.errors import DataError
from spkver.corpora import espeak
from spkver.corpora.channels import SAMPLE_RATE, Session, transmit
from spkver.corpora.variability import GENDERS, VARIABILITY, Variability, bounded_normal, generator

N_FORMANTS = 9  # of the engine: 0 is the glottal one, 1 to 8 those of the vocal tract


@dataclass(frozen=True)
class Voice:
    """A simulated speaker.

    Attributes
    ----------
    gender : {'m', 'f'}
    number, seed : int
        What the voice derives from.
    accent : str
        One of `espeak.ACCENTS`.
    pitch : float
        Lowest pitch of a neutral sentence, Hz.
    pitch_range : float
        Width of the intonation as a fraction of `pitch`.
    words_per_minute : float
    formants : tuple of (frequency, height, width)
        Scale of each of the engine's formants, in per cent.
    consonants : float
        Strength of the consonants, per cent.
    tilt : float
        Slope of the glottal spectrum added to the engine's, dB per octave.
    breath : float
        Level of the breath noise relative to the voice, dB.
    shimmer : float
        Standard deviation of the level from one glottal period to the next, dB.
    """

    gender: str
    number: int
    seed: int
    accent: str
    pitch: float
    pitch_range: float
    words_per_minute: float
    formants: tuple[tuple[float, float, float], ...]
    consonants: float
    tilt: float
    breath: float
    shimmer: float


def make_voice(gender: str, number: int, seed: int = 0, *, variability: Variability = VARIABILITY) -> Voice:
    """Draw speaker `number` of a sex.

    Parameters
    ----------
    gender : {'m', 'f'}
    number : int
        Any number from 0; equal numbers are equal speakers.
    seed : int
        From 0.
    variability : Variability
        How far speakers lie apart.

    Raises
    ------
    DataError
        If the sex is neither 'm' nor 'f', or a number is negative.

    Examples
    --------
    >>> make_voice("f", 3) == make_voice("f", 3)
    True
    """
    if gender not in GENDERS:
        raise DataError(f"gender is 'm' or 'f', not {gender!r}")
    random = generator(seed, "voice", gender, number)
    centre = variability.centres[gender]
    tract = centre.tract * np.exp(variability.tract_spread * bounded_normal(random))
    frequencies = 100 * tract * np.exp(variability.formant_spread * bounded_normal(random, N_FORMANTS))
    heights = 100 * np.exp(variability.height_spread * bounded_normal(random, N_FORMANTS))
    widths = 100 * np.exp(variability.width_spread * bounded_normal(random, N_FORMANTS))
    return Voice(
        gender=gender,
        number=number,
        seed=seed,
        accent=espeak.ACCENTS[random.integers(len(espeak.ACCENTS))],
        pitch=float(centre.pitch * np.exp(variability.pitch_spread * bounded_normal(random))),
        pitch_range=float(random.uniform(*variability.pitch_range)),
        words_per_minute=float(variability.rate * np.exp(variability.rate_spread * bounded_normal(random))),
        formants=tuple(zip(frequencies.tolist(), heights.tolist(), widths.tolist(), strict=True)),
        consonants=float(random.uniform(*variability.consonants)),
        tilt=float(variability.tilt_spread * bounded_normal(random)),
        breath=float(random.uniform(*variability.breath)),
        shimmer=float(random.uniform(*variability.shimmer)),
    )


def synthesise_utterance(voice: Voice, sentence: str, session: Session, *, take: int = 0) -> np.ndarray:
    """Synthesise one recording of a speaker.

    Parameters
    ----------
    voice : Voice
        Who speaks, see `make_voice`.
    sentence : str
        English text.
    session : Session
        When and where, see `channels.make_session`; its drift is the speaker's, its channel the recording's.
    take : int
        Number of the recording in the session, from 0: noises differ from take to take.

    Returns
    -------
    ndarray of float32 of shape (n_samples,)
        Samples at 16 kHz in [-1, 1], with silence (noise) before and after the sentence.

    Raises
    ------
    DataError
        If the speech engine is missing or refuses the sentence.
    """
    import soxr

    random = generator(voice.seed, "take", voice.gender, voice.number, session.number, take)
    rate = round(voice.words_per_minute * session.rate)
    samples, engine_rate = espeak.synthesise(sentence, voice_file(voice, session), words_per_minute=rate)
    # A tract of another length moves all formants: the samples are taken at another rate, and `voice_file` has
    # moved pitch the other way.
    speech = soxr.resample(samples.astype(np.float32) / 32768, engine_rate * session.tract, SAMPLE_RATE, quality="HQ")
    speech = _voice_quality(speech, voice, session, random)
    return transmit(speech, session, random)


def voice_file(voice: Voice, session: Session) -> str:
    """Return the text of the engine's voice file of a speaker in a session.

    Without flutter, roughness and breath, which the engine does not repeat from call to call: see `espeak`.
    """
    low = voice.pitch * session.pitch / session.tract
    high = low * (1 + voice.pitch_range * session.pitch_range)
    formants = [
        f"formant {number} {frequency:.0f} {height:.0f} {width:.0f}"
        for number, (frequency, height, width) in enumerate(voice.formants)
    ]
    lines = [
        espeak.accent_text(voice.accent),
        f"gender {'male' if voice.gender == 'm' else 'female'}",
        f"pitch {low:.0f} {high:.0f}",
        *formants,
        f"consonants {voice.consonants:.0f}",
        "flutter 0",
        "roughness 0",
    ]
    return "\n".join(lines) + "\n"


def _voice_quality(speech: np.ndarray, voice: Voice, session: Session, random: np.random.Generator) -> np.ndarray:
    """Shimmer, breath and spectral tilt."""
    from scipy.signal import lfilter

    period = SAMPLE_RATE / voice.pitch
    n_periods = int(len(speech) / period) + 2
    levels = 10 ** (voice.shimmer * random.standard_normal(n_periods, np.float32) / 20)
    speech = speech * np.interp(np.arange(len(speech)) / period, np.arange(n_periods), levels).astype(np.float32)
    smoothing = np.float32(1 / (0.02 * SAMPLE_RATE))
    envelope = lfilter([smoothing], np.array([1, smoothing - 1], np.float32), np.abs(speech))
    noise = random.standard_normal(len(speech), np.float32)
    noise[1:] -= np.float32(0.9) * noise[:-1]  # aspiration lies above the voice's own spectrum
    speech = speech + np.float32(10 ** ((voice.breath + session.breath) / 20)) * envelope * noise
    return tilt(speech, voice.tilt + session.tilt)


def tilt(speech: np.ndarray, slope: float) -> np.ndarray:
    """Add `slope` dB per octave above 300 Hz, by a short filter of linear phase (a delay of 2 ms)."""
    from scipy.signal import oaconvolve

    from spkver.corpora.channels import filter_from_gains

    frequencies = np.array([300.0, 8000.0])
    gains = slope * np.log2(frequencies / 300)
    return oaconvolve(speech, filter_from_gains(frequencies, gains, n_taps=65), mode="same")
