"""Simulated speakers and sessions: the voices of eSpeak NG, with a voice quality, a microphone, a room and noise added.

`make_voice` and `make_session` draw a speaker and a session, `synthesise_utterance` gives their speech; nothing here
depends on a corpus. Every random number derives from the seed and the ids given, so an utterance depends on no other.

`Variability` holds every constant that makes the task hard: how far speakers lie apart and how much their sessions
differ. The values are set so that a GMM-UBM or GMM-SVM system without channel compensation has an equal error rate of a
few per cent on the corpus; they are not measurements of real speech. The thirty sentences are the first three of the
phonetically balanced lists known as the Harvard sentences, which are in the public domain; the thirty commands are the
project's own.

The library eSpeak NG of the package espeakng-loader is called through ctypes. A voice is the text of an eSpeak voice
file, loaded from a temporary file, so nothing is added to the engine's data and its limit of 350 listed voices does not
matter. The library keeps one state per process: speech depends only on the arguments as long as the voice uses no
`flutter`, `roughness` or `breath` and the accent is one of `ACCENTS`.

References
----------
"IEEE Recommended Practice for Speech Quality Measurements", IEEE Trans. Audio and Electroacoustics 17(3), 1969.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spkbase.errors import DataError
from spkbase.packages import imported

# Language files of eSpeak NG. Scottish English (en-GB-scotland) is left out: its trills carry state between calls.
ACCENTS = ("en-US", "en", "en-US-nyc", "en-GB-x-rp", "en-GB-x-gbclan", "en-GB-x-gbcwmd", "en-029")

_PACKAGE = "espeakng-loader==0.2.4"
_AGAIN = f"pip install --force-reinstall {_PACKAGE}"
_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: samples go to the callback before espeak_Synth returns
_DONT_EXIT = 0x8000  # return an error instead of ending the process when the data are missing
_UTF8 = 1
# espeak_PARAMETER
_RATE = 1
_VOLUME = 2
_PITCH = 3
_RANGE = 4

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)

GENDERS = ("m", "f")
_PURPOSES = ("voice", "session", "take")
_LIMIT = 2.5  # standard deviations; more extreme values sound broken

SENTENCES: tuple[str, ...] = (
    "The birch canoe slid on the smooth planks.",
    "Glue the sheet to the dark blue background.",
    "It's easy to tell the depth of a well.",
    "These days a chicken leg is a rare dish.",
    "Rice is often served in round bowls.",
    "The juice of lemons makes fine punch.",
    "The box was thrown beside the parked truck.",
    "The hogs were fed chopped corn and garbage.",
    "Four hours of steady work faced us.",
    "A large size in stockings is hard to sell.",
    "The boy was there when the sun rose.",
    "A rod is used to catch pink salmon.",
    "The source of the huge river is the clear spring.",
    "Kick the ball straight and follow through.",
    "Help the woman get back to her feet.",
    "A pot of tea helps to pass the evening.",
    "Smoky fires lack flame and heat.",
    "The soft cushion broke the man's fall.",
    "The salt breeze came across from the sea.",
    "The girl at the booth sold fifty bonds.",
    "The small pup gnawed a hole in the sock.",
    "The fish twisted and turned on the bent hook.",
    "Press the pants and sew a button on the vest.",
    "The swan dive was far short of perfect.",
    "The beauty of the view stunned the young boy.",
    "Two blue fish swam in the tank.",
    "Her purse was full of useless trash.",
    "The colt reared and threw the tall rider.",
    "It snowed, rained, and hailed the same morning.",
    "Read verse out loud for pleasure.",
)

COMMANDS: tuple[str, ...] = (
    "Volume up.",
    "Volume down.",
    "Lights on.",
    "Lights off.",
    "Open the door.",
    "Close the door.",
    "Start the washing.",
    "Stop the music.",
    "Call my office.",
    "Read the news.",
    "Next channel.",
    "Warmer please.",
    "Cooler please.",
    "Lock the garage.",
    "Boil some water.",
    "Wake me at six.",
    "Raise the blinds.",
    "Dim the lamp.",
    "Feed the cat.",
    "Play a song.",
    "Show the camera.",
    "Set a timer.",
    "Answer the phone.",
    "Water the garden.",
    "Heat the oven.",
    "Check the mail.",
    "Clean the floor.",
    "Mute the radio.",
    "Record this film.",
    "Good night.",
)

SAMPLE_RATE = 16_000

_N_TAPS = 257
_KNOTS = np.geomspace(100, 8000, 8)  # frequencies in Hz at which the channel's gains are drawn
_NOISES = ("white", "pink", "babble")
_STEEPNESS = 24.0  # dB per octave beyond the edges of the channel

N_FORMANTS = 9  # formants of the engine: 0 is the glottal one, 1 to 8 those of the vocal tract


def loader() -> Any:
    """Return the package espeakng-loader.

    Raises
    ------
    ConfigError
        If it is not installed.
    """
    return imported("espeakng_loader", _PACKAGE, "simulated speech")


@cache
def accent_text(accent: str) -> str:
    """Return the text of the language file of an accent, the first part of a voice file."""
    if accent not in ACCENTS:
        raise DataError(f"accent {accent!r} is not one of {', '.join(ACCENTS)}")
    file = Path(loader().get_data_path()) / "lang" / "gmw" / accent
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"the speech engine's data lack {accent}", file=file, remedy=_AGAIN
        ) from error


def synthesise(text: str, voice_file: str, *, words_per_minute: int) -> tuple[np.ndarray, int]:
    """Speak a sentence.

    Parameters
    ----------
    text : str
        The sentence.
    voice_file : str
        Text of an eSpeak voice file: `accent_text` followed by the voice's own lines.
    words_per_minute : int
        Speaking rate, 80 to 450.

    Returns
    -------
    samples : ndarray of int16 of shape (n_samples,)
    rate : int
        Samples per second, 22 050.

    Raises
    ------
    DataError
        If the engine is not installed, refuses the voice, or stays silent.
    """
    engine = _engine()
    with engine.lock:
        with tempfile.NamedTemporaryFile("w", prefix="spkver-voice-", encoding="utf-8") as handle:
            handle.write(voice_file)
            handle.flush()
            # if a voice is refused, the previous one would silently remain
            _check(engine.library.espeak_SetVoiceByFile(os.fsencode(handle.name)), "the voice")
        for parameter, value in (
            (_RATE, words_per_minute),
            (_VOLUME, 100),
            (_PITCH, 50),
            (_RANGE, 50),
        ):
            _check(
                engine.library.espeak_SetParameter(parameter, value, 0),
                f"parameter {parameter} = {value}",
            )
        engine.chunks.clear()
        data = text.encode() + b"\0"
        _check(
            engine.library.espeak_Synth(data, len(data), 0, 0, 0, _UTF8, None, None),
            f"the text {text!r}",
        )
        _check(engine.library.espeak_Synchronize(), f"the text {text!r}")
        samples = np.frombuffer(b"".join(engine.chunks), dtype=np.int16)
    if not samples.any():
        raise DataError(f"the speech engine produces no sound for the text {text!r}")
    return samples, engine.rate


@dataclass(frozen=True)
class Centre:
    """The average voice of a sex: pitch in Hz, and formants relative to the engine's own voice."""

    pitch: float
    tract: float


@dataclass(frozen=True)
class Variability:
    """How simulated voices and recordings vary.

    Spreads are standard deviations of natural logarithms unless stated otherwise; pairs are ranges.
    """

    # between speakers
    centres: dict[str, Centre] = field(
        default_factory=lambda: {"m": Centre(105.0, 0.98), "f": Centre(185.0, 1.1)}
    )
    pitch_spread: float = 0.15
    pitch_range: tuple[float, float] = (0.2, 0.55)
    tract_spread: float = 0.055
    formant_spread: float = 0.045  # of each formant separately
    height_spread: float = 0.18
    width_spread: float = 0.18
    consonants: tuple[float, float] = (70.0, 130.0)  # per cent
    rate: float = 165.0  # words per minute
    rate_spread: float = 0.12
    tilt_spread: float = 1.5  # dB per octave
    breath: tuple[float, float] = (-40.0, -16.0)  # dB
    shimmer: tuple[float, float] = (0.1, 1.0)  # dB
    # between the sessions of a speaker
    session_pitch: float = 0.06
    session_pitch_range: float = 0.2
    session_rate: float = 0.08
    session_tract: float = 0.015
    session_tilt: float = 1.0  # dB per octave
    session_breath: float = 3.0  # dB
    # recording
    channel_gain: float = 4.0  # dB, at each of eight frequencies
    channel_low: tuple[float, float] = (60.0, 250.0)  # Hz, lower edge
    channel_high: tuple[float, float] = (4500.0, 7800.0)  # Hz, upper edge
    reverberation: tuple[float, float] = (0.12, 0.45)  # s to fall by 60 dB
    direct_to_reverberant: tuple[float, float] = (4.0, 18.0)  # dB
    signal_to_noise: tuple[float, float] = (10.0, 30.0)  # dB
    level: tuple[float, float] = (-34.0, -20.0)  # dB below full scale, of the speech
    silence: tuple[float, float] = (0.1, 0.3)  # s before and after


VARIABILITY = Variability()


def generator(seed: int, purpose: str, gender: str, *numbers: int) -> np.random.Generator:
    """Return the random generator of a speaker, session or take, independent of all other draws.

    Raises
    ------
    DataError
        If the seed or a number is negative.
    """
    if seed < 0 or min(numbers, default=0) < 0:
        raise DataError(f"seed and numbers are {(seed, *numbers)}: expected 0 or more")
    return np.random.default_rng([seed, _PURPOSES.index(purpose), GENDERS.index(gender), *numbers])


def bounded_normal(random: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Return standard normal numbers, cut off at 2.5 standard deviations; shape (size,) or ()."""
    return np.clip(random.standard_normal(size), -_LIMIT, _LIMIT)


@dataclass(frozen=True, eq=False)
class Session:
    """One session of a speaker.

    Attributes
    ----------
    number : int
    rate, pitch, pitch_range, tract : float
        Factors on the speaker's own rate, pitch, intonation and formants.
    tilt, breath : float
        Values added to the speaker's own, in dB per octave and dB.
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
        Numbers from 0; equal numbers give equal sessions.
    seed : int
        From 0.
    variability : Variability
        Constants of the simulation.
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
        response=np.convolve(_microphone(random, variability), _room(random, variability)).astype(
            np.float32
        ),
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
        Samples in [-1, 1].
    """
    from scipy.signal import oaconvolve

    before = int(SAMPLE_RATE * random.uniform(*session.silence))
    after = int(SAMPLE_RATE * random.uniform(*session.silence))
    padded = np.pad(speech, (before, after))
    recorded = oaconvolve(padded, session.response)[: len(padded)]
    power = np.mean(np.square(recorded[before : before + len(speech)], dtype=np.float64))
    noise = _noise(session.noise, len(recorded), random)
    noise_power = np.mean(np.square(noise, dtype=np.float64))
    noise *= np.sqrt(power / noise_power * 10 ** (-session.signal_to_noise / 10))
    recorded = (recorded + noise) * np.float32(10 ** (session.level / 20) / np.sqrt(power))
    clipped: np.ndarray = np.clip(recorded, -1, 1, dtype=np.float32)
    return clipped


def filter_from_gains(frequencies: np.ndarray, gains: np.ndarray, *, n_taps: int) -> np.ndarray:
    """Return a filter of linear phase with given gains.

    Parameters
    ----------
    frequencies : ndarray of shape (n,)
        Frequencies in ascending order, in Hz; gains are interpolated between them over log frequency and are constant
        outside.
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


@dataclass(frozen=True)
class Voice:
    """A simulated speaker.

    Attributes
    ----------
    gender : {'m', 'f'}
    number, seed : int
        Ids from which the voice is drawn.
    accent : str
        One of `ACCENTS`.
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


def make_voice(
    gender: str, number: int, seed: int = 0, *, variability: Variability = VARIABILITY
) -> Voice:
    """Draw speaker `number` of a sex.

    Parameters
    ----------
    gender : {'m', 'f'}
    number : int
        Any number from 0; equal numbers are equal speakers.
    seed : int
        From 0.
    variability : Variability
        Constants of the simulation.

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
        raise DataError(f"gender is {gender!r}: expected 'm' or 'f'")
    random = generator(seed, "voice", gender, number)
    centre = variability.centres[gender]
    tract = centre.tract * np.exp(variability.tract_spread * bounded_normal(random))
    frequencies = (
        100 * tract * np.exp(variability.formant_spread * bounded_normal(random, N_FORMANTS))
    )
    heights = 100 * np.exp(variability.height_spread * bounded_normal(random, N_FORMANTS))
    widths = 100 * np.exp(variability.width_spread * bounded_normal(random, N_FORMANTS))
    return Voice(
        gender=gender,
        number=number,
        seed=seed,
        accent=ACCENTS[random.integers(len(ACCENTS))],
        pitch=float(centre.pitch * np.exp(variability.pitch_spread * bounded_normal(random))),
        pitch_range=float(random.uniform(*variability.pitch_range)),
        words_per_minute=float(
            variability.rate * np.exp(variability.rate_spread * bounded_normal(random))
        ),
        formants=tuple(zip(frequencies.tolist(), heights.tolist(), widths.tolist(), strict=True)),
        consonants=float(random.uniform(*variability.consonants)),
        tilt=float(variability.tilt_spread * bounded_normal(random)),
        breath=float(random.uniform(*variability.breath)),
        shimmer=float(random.uniform(*variability.shimmer)),
    )


def synthesise_utterance(
    voice: Voice, sentence: str, session: Session, *, take: int = 0
) -> np.ndarray:
    """Synthesise one recording of a speaker.

    Parameters
    ----------
    voice : Voice
        The speaker, see `make_voice`.
    sentence : str
        English text.
    session : Session
        The session, see `make_session`: it changes the speaker's voice and sets the recording channel.
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
    samples, engine_rate = synthesise(sentence, voice_file(voice, session), words_per_minute=rate)
    # A tract of another length moves all formants: the samples are taken at another rate, and `voice_file` has
    # moved pitch the other way.
    speech = soxr.resample(
        samples.astype(np.float32) / 32768, engine_rate * session.tract, SAMPLE_RATE, quality="HQ"
    )
    speech = _voice_quality(speech, voice, session, random)
    return transmit(speech, session, random)


def voice_file(voice: Voice, session: Session) -> str:
    """Return the text of the engine's voice file of a speaker in a session.

    It has no flutter, roughness or breath, which the engine does not reproduce from call to call: see the module.
    """
    low = voice.pitch * session.pitch / session.tract
    high = low * (1 + voice.pitch_range * session.pitch_range)
    gender = "male" if voice.gender == "m" else "female"
    lines = [accent_text(voice.accent), f"gender {gender}", f"pitch {low:.0f} {high:.0f}"]
    for number, (frequency, height, width) in enumerate(voice.formants):
        lines.append(f"formant {number} {frequency:.0f} {height:.0f} {width:.0f}")
    lines += [f"consonants {voice.consonants:.0f}", "flutter 0", "roughness 0"]
    return "\n".join(lines) + "\n"


def tilt(speech: np.ndarray, slope: float) -> np.ndarray:
    """Add `slope` dB per octave above 300 Hz, by a short filter of linear phase (a delay of 2 ms)."""
    from scipy.signal import oaconvolve

    frequencies = np.array([300.0, 8000.0])
    gains = slope * np.log2(frequencies / 300)
    return oaconvolve(speech, filter_from_gains(frequencies, gains, n_taps=65), mode="same")


class _Engine:
    """The library, initialised, with the buffer that its callback fills. One per process, see `_engine`."""

    def __init__(self, library: Path, data: Path) -> None:
        self.lock = threading.Lock()
        self.chunks: list[bytes] = []
        try:
            self.library = ctypes.CDLL(str(library))
        except OSError as error:
            raise DataError(
                f"the speech engine cannot be loaded: {error}", file=library, remedy=_AGAIN
            ) from error
        self.rate = self.library.espeak_Initialize(_SYNCHRONOUS, 0, os.fsencode(data), _DONT_EXIT)
        if self.rate <= 0:
            raise DataError(
                "the speech engine does not accept its data folder", file=data, remedy=_AGAIN
            )
        # kept here, because the library does not hold a reference
        self._callback = _Callback(self._collect)
        self.library.espeak_SetSynthCallback(self._callback)

    def _collect(
        self, samples: ctypes._Pointer[ctypes.c_short], count: int, events: int | None
    ) -> int:
        if samples and count > 0:
            self.chunks.append(ctypes.string_at(samples, 2 * count))
        return 0


@cache
def _engine() -> _Engine:
    package = loader()
    return _Engine(Path(package.get_library_path()), Path(package.get_data_path()))


def _check(status: int, argument: str) -> None:
    if status != 0:
        raise DataError(f"the speech engine refused {argument} (status {status})", remedy=_AGAIN)


def _microphone(random: np.random.Generator, variability: Variability) -> np.ndarray:
    """Return a filter of random gains over frequency, which fall off outside a random band."""
    gains = variability.channel_gain * bounded_normal(random, len(_KNOTS))
    low = random.uniform(*variability.channel_low)
    high = random.uniform(*variability.channel_high)
    grid = np.geomspace(20, 8000, 96)
    level = np.interp(np.log(grid), np.log(_KNOTS), gains)
    outside = np.log2(np.maximum(1, np.maximum(low / grid, grid / high)))
    return filter_from_gains(grid, np.maximum(level - _STEEPNESS * outside, -50), n_taps=_N_TAPS)


def _room(random: np.random.Generator, variability: Variability) -> np.ndarray:
    """Return a room's response: direct sound, a few early reflections, and noise that decays exponentially."""
    reverberation = random.uniform(*variability.reverberation)
    ratio = random.uniform(*variability.direct_to_reverberant)
    # the response ends 36 dB below its start
    time = np.arange(int(0.6 * reverberation * SAMPLE_RATE)) / SAMPLE_RATE
    decay = np.exp(-3 * np.log(10) * time / reverberation)
    response: np.ndarray = random.standard_normal(len(time)) * decay
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
    # two poles: the spectrum falls like pink noise from about 100 Hz, and like speech from 600 Hz
    pole = 0.8 if kind == "babble" else 0.96
    coloured = lfilter(np.array([1, -0.5], np.float32), np.array([1, -pole], np.float32), white)
    if kind == "pink":
        return coloured
    # the loudness of a few voices changes some five times a second
    n_knots = n_samples * 5 // SAMPLE_RATE + 2
    levels = 10 ** (5 * random.standard_normal(n_knots) / 20)
    loudness = np.interp(np.arange(n_samples) * 5 / SAMPLE_RATE, np.arange(n_knots), levels)
    return coloured * loudness.astype(np.float32)


def _voice_quality(
    speech: np.ndarray, voice: Voice, session: Session, random: np.random.Generator
) -> np.ndarray:
    """Add shimmer, breath and spectral tilt."""
    from scipy.signal import lfilter

    period = SAMPLE_RATE / voice.pitch
    n_periods = int(len(speech) / period) + 2
    levels = 10 ** (voice.shimmer * random.standard_normal(n_periods, np.float32) / 20)
    speech = speech * np.interp(
        np.arange(len(speech)) / period, np.arange(n_periods), levels
    ).astype(np.float32)
    smoothing = np.float32(1 / (0.02 * SAMPLE_RATE))
    envelope = lfilter([smoothing], np.array([1, smoothing - 1], np.float32), np.abs(speech))
    noise = random.standard_normal(len(speech), np.float32)
    # aspiration has higher frequencies than the voice's own spectrum
    noise[1:] -= np.float32(0.9) * noise[:-1]
    speech = speech + np.float32(10 ** ((voice.breath + session.breath) / 20)) * envelope * noise
    return tilt(speech, voice.tilt + session.tilt)
