"""How far simulated speakers lie apart and how much their sessions differ: every constant that makes the task hard.

The values are set so that a GMM-UBM or GMM-SVM system without channel compensation has an equal error rate of a few per
cent on the corpus; they are not measurements of real speech.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spkbase.errors import DataError

GENDERS = ("m", "f")
_PURPOSES = ("voice", "session", "take")
_LIMIT = 2.5  # standard deviations; what lies beyond sounds broken


@dataclass(frozen=True)
class Centre:
    """The middle of a sex: pitch in Hz and formants relative to the engine's own voice."""

    pitch: float
    tract: float


@dataclass(frozen=True)
class Variability:
    """Spreads are standard deviations of natural logarithms unless said otherwise; pairs are the ends of a range."""

    # between speakers
    centres: dict[str, Centre] = field(default_factory=lambda: {"m": Centre(105.0, 0.98), "f": Centre(185.0, 1.1)})
    pitch_spread: float = 0.15
    pitch_range: tuple[float, float] = (0.2, 0.55)
    tract_spread: float = 0.055
    formant_spread: float = 0.045  # of each formant alone
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
    """Return the random generator of one thing, the same whatever else is drawn before or after it.

    Raises
    ------
    DataError
        If the seed or a number is negative.
    """
    if seed < 0 or min(numbers, default=0) < 0:
        raise DataError(f"seeds and numbers are 0 or more, not {(seed, *numbers)}")
    return np.random.default_rng([seed, _PURPOSES.index(purpose), GENDERS.index(gender), *numbers])


def bounded_normal(random: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Return standard normal numbers, cut off at 2.5 standard deviations; shape (size,) or ()."""
    return np.clip(random.standard_normal(size), -_LIMIT, _LIMIT)
