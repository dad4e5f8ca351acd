"""Which anonymiser, on what level, with which parameters, drawn from which random numbers.

**Where an anonymiser's random numbers come from.**
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np

from spkbase.errors import ConfigError
from spkbase.seeding import stream

BUILT_IN = {
    "mcadams": "alpha",
    "resampling": "speed",
    "vtln": "warp",
    "world": "pitch, formants",
    "none": "",
}
# What lies outside is a slip of the pen: it overflows, or makes hours of a second.
_LIMITS = {"alpha": (0.01, 10), "speed": (0.1, 10), "warp": (0, 0.99), "pitch": (0.05, 20), "formants": (0.1, 10)}
LEVELS = ("utterance", "speaker")
SEEDINGS = ("utterance", "vpc2024")


@dataclass(frozen=True)
class AnonymizerConfig:
    """An anonymiser and its parameters; those of the others are left alone.

    Attributes
    ----------
    name : str
        "mcadams", "resampling", "vtln", "world", "none"; ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` for a function
        of the user's; "command" for a shell command.
    level : {"utterance", "speaker"}
        Whether each utterance or each speaker has a draw of its own.
    seeding : {"utterance", "vpc2024"}
        Random numbers from the seed and the id of utterance or speaker; or those of the VoicePrivacy Challenge 2024,
        which on utterance level depend on the order of ``wav.scp`` and know no seed.
    alpha : (low, high)
        McAdams coefficient, uniform.
    speed : (low, high)
        Factor of tempo, pitch and formants in resampling, log-uniform.
    warp : (low, high)
        Size of the bilinear warp of the frequency axis, uniform, of either sign.
    pitch, formants : (low, high)
        Factors of F0 and of the formants through WORLD, log-uniform.
    command : str
        Shell command with the places {input} and {output}, and if it likes {utterance}, {rate} and {seed}.
    """

    name: str = "mcadams"
    level: str = "utterance"
    seeding: str = "utterance"
    alpha: tuple[float, float] = (0.5, 0.9)
    speed: tuple[float, float] = (0.8, 1.25)
    warp: tuple[float, float] = (0.05, 0.12)
    pitch: tuple[float, float] = (0.7, 1.4)
    formants: tuple[float, float] = (0.8, 1.25)
    command: str = ""

    def __post_init__(self) -> None:
        if self.name not in BUILT_IN and self.name != "command" and not all(self.name.partition(":")):
            known = ", ".join([*BUILT_IN, "command", "MODULE:FUNCTION"])
            raise ConfigError(f"anonymizer.name is {self.name!r}: expected one of {known}")
        for key, allowed in (("level", LEVELS), ("seeding", SEEDINGS)):
            if getattr(self, key) not in allowed:
                value = getattr(self, key)
                raise ConfigError(f"anonymizer.{key} is {value!r}: expected {' or '.join(allowed)}")
        for key, (lowest, highest) in _LIMITS.items():
            low, high = getattr(self, key)
            if not (0 < low <= high and math.isfinite(high)):
                raise ConfigError(f"anonymizer.{key} is {low} to {high}: expected 0 < low <= high")
            if low < lowest or high > highest:
                raise ConfigError(f"anonymizer.{key} is {low} to {high}: expected {lowest} to {highest}")
        if (self.name == "command") != bool(self.command):
            raise ConfigError("anonymizer.command is needed by the anonymizer 'command', and by no other")

    @property
    def changes_duration(self) -> bool:
        """Whether utterances may become longer or shorter; of user-supplied anonymisers that is not known."""
        return self.name == "resampling" or self.name not in BUILT_IN

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the anonymiser is called with."""
        if self.name not in BUILT_IN:
            return {}
        return {key: getattr(self, key) for key in filter(None, BUILT_IN[self.name].split(", "))}

    def record(self) -> Mapping[str, Any]:
        """Return what the output depends on: everything but the parameters of other anonymisers."""
        used = {"name", "level", "seeding", *self.parameters()} | ({"command"} if self.name == "command" else set())
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in used}


# The first eight hexadecimal digits of the SHA-256 of "VPC2024".
_VPC2024_SEED = 4284258105


def stream_name(utterance: str, speaker: str, position: int, *, level: str, seeding: str, side: str = "") -> str:
    """Name of the stream of random numbers that an utterance is anonymised with.

    Parameters
    ----------
    utterance, speaker : str
    position : int
        Of the utterance in ``wav.scp``, from 0.
    level : {"utterance", "speaker"}
    seeding : {"utterance", "vpc2024"}
    side : str
        What the speech is for, such as "enrolment" or "trials": on speaker level each side has streams of its own,
        except by "vpc2024".

    Examples
    --------
    >>> stream_name("u7", "anna", 3, level="utterance", seeding="vpc2024")
    'vpc2024 position 3'
    >>> stream_name("u7", "anna", 3, level="speaker", seeding="utterance", side="trials")
    'utterance speaker trials anna'
    """
    if level == "speaker":
        return f"{seeding} speaker {speaker if seeding == 'vpc2024' or not side else f'{side} {speaker}'}"
    return f"{seeding} position {position}" if seeding == "vpc2024" else f"{seeding} id {utterance}"


def named_stream(name: str, seed: int) -> np.random.Generator:
    """Return the generator of a stream, the same on every machine and in every order; see `stream_name`.

    The challenge draws one number an utterance from one generator, in the order of the list: the stream of a position
    is that generator, advanced. On speaker level it makes a generator from the hash of the speaker's id.
    """
    seeding, kind, identifier = name.split(" ", 2)
    if seeding != "vpc2024":
        return stream(seed, kind, identifier)
    if kind == "speaker":
        return np.random.default_rng(int(sha256(identifier.encode()).hexdigest()[:8], 16))
    generator = np.random.default_rng(_VPC2024_SEED)
    assert isinstance(generator.bit_generator, np.random.PCG64)
    generator.bit_generator.advance(int(identifier))
    return generator
