"""Anonymisers: baselines and users' plug-ins, their random numbers, and known inverses.

Each anonymiser is a function ``samples, rate, utterance, rng -> samples``. Some can be inverted once a number of the
recording is known:

========== ======== ========================================= ===========================================
anonymiser number   effect                                    inverse
========== ======== ========================================= ===========================================
mcadams    alpha    moves a pole at the angle w to w**alpha   moving it to w**(1 / alpha)
vtln       warp     warps the envelope by the bilinear map    the map of -warp
resampling speed    plays speed times as fast                 playing 1 / speed times as fast
world      formants scales the frequencies of the envelope    scaling by 1 / formants; F0 stays as it is
========== ======== ========================================= ===========================================

Other anonymisers have no known inverse: an attacker has to learn one, see `evaluation.embeddings`.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.files import TEMPORARY
from spkbase.packages import imported
from spkbase.plugins import check_places, fill_places, load_plugin, run_command
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkver.anonymization.mcadams_coefficient import turn_poles
from spkver.audio import read_audio, write_audio

BUILT_IN = {
    "mcadams": "alpha",
    "resampling": "speed",
    "vtln": "warp",
    "world": "pitch, formants",
    "none": "",
}
# Values outside these ranges are typing errors: they overflow, or turn a second into hours.
_LIMITS = {
    "alpha": (0.01, 10),
    "speed": (0.1, 10),
    "warp": (0, 0.99),
    "pitch": (0.05, 20),
    "formants": (0.1, 10),
}
# Ranges in which the output is still speech, wider than any published range.
USUAL = {
    "alpha": (0.2, 2),
    "speed": (0.5, 2),
    "warp": (0, 0.5),
    "pitch": (0.3, 3),
    "formants": (0.5, 2),
}
LEVELS = ("utterance", "speaker")
SEEDINGS = ("utterance", "vpc2024")

# The first eight hexadecimal digits of the SHA-256 of "VPC2024".
_VPC2024_SEED = 4284258105

Anonymizer = Callable[[NDArray[Any], int, str, np.random.Generator], NDArray[Any]]

_WINDOW = 0.032  # seconds
_SHIFT = 0.008  # seconds
_QUEFRENCY = 0.002  # seconds; lower quefrencies belong to the vocal tract

Outputs = list[NDArray[Any] | DataError]
Change = Callable[[Sequence[NDArray[np.float32]], Sequence[int], Sequence[float]], Outputs]


@dataclass(frozen=True)
class AnonymizerConfig:
    """An anonymiser and its parameters; parameters of other anonymisers are ignored.

    Attributes
    ----------
    name : str
        "mcadams", "resampling", "vtln", "world", "none"; ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` for a user's
        function; "command" for a shell command.
    level : {"utterance", "speaker"}
        Whether random numbers are drawn for each utterance or for each speaker.
    seeding : {"utterance", "vpc2024"}
        "utterance": random numbers depend on the seed and the id of the utterance or speaker; "vpc2024": as in the
        VoicePrivacy Challenge 2024, where at utterance level they depend on the order of ``wav.scp`` and not on the
        seed.
    alpha : (low, high)
        Range of the McAdams coefficient, drawn uniformly.
    speed : (low, high)
        Range of the factor of tempo, pitch and formants in resampling, drawn log-uniformly.
    warp : (low, high)
        Range of the size of the bilinear warp of the frequency axis, drawn uniformly, with a random sign.
    pitch, formants : (low, high)
        Ranges of the factors of F0 and formants in WORLD, drawn log-uniformly.
    command : str
        Shell command with the placeholders {input} and {output}, and optionally {utterance}, {rate} and {seed}.
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
        if (
            self.name not in BUILT_IN
            and self.name != "command"
            and not all(self.name.partition(":"))
        ):
            known = ", ".join([*BUILT_IN, "command", "MODULE:FUNCTION"])
            raise ConfigError(f"anonymizer.name is {self.name!r}: expected one of {known}")
        for key, allowed in (("level", LEVELS), ("seeding", SEEDINGS)):
            value = getattr(self, key)
            if value not in allowed:
                raise ConfigError(f"anonymizer.{key} is {value!r}: expected {' or '.join(allowed)}")
        for key, (lowest, highest) in _LIMITS.items():
            low, high = getattr(self, key)
            if not (0 < low <= high and math.isfinite(high)):
                raise ConfigError(f"anonymizer.{key} is {low} to {high}: expected 0 < low <= high")
            if low < lowest or high > highest:
                raise ConfigError(
                    f"anonymizer.{key} is {low} to {high}: expected {lowest} to {highest}"
                )
        if (self.name == "command") != bool(self.command):
            raise ConfigError(
                "anonymizer.command is required by the anonymizer 'command', and only by that"
            )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the anonymiser is called with."""
        if self.name not in BUILT_IN:
            return {}
        return {key: getattr(self, key) for key in filter(None, BUILT_IN[self.name].split(", "))}

    def record(self) -> Mapping[str, Any]:
        """Return everything that the output depends on, without the parameters of other anonymisers."""
        used = {"name", "level", "seeding", *self.parameters()}
        if self.name == "command":
            used.add("command")
        return {key: value for key, value in vars(self).items() if key in used}


def stream_name(
    utterance: str, speaker: str, position: int, *, level: str, seeding: str, side: str = ""
) -> str:
    """Return the name of the stream of random numbers that an utterance is anonymised with.

    Parameters
    ----------
    utterance, speaker : str
    position : int
        Position of the utterance in ``wav.scp``, from 0.
    level : {"utterance", "speaker"}
    seeding : {"utterance", "vpc2024"}
    side : str
        What the speech is for, such as "enrolment" or "trials": at speaker level each side has separate streams, except
        with "vpc2024".

    Examples
    --------
    >>> stream_name("u7", "anna", 3, level="utterance", seeding="vpc2024")
    'vpc2024 position 3'
    >>> stream_name("u7", "anna", 3, level="speaker", seeding="utterance", side="trials")
    'utterance speaker trials anna'
    """
    if level == "speaker" and side and seeding != "vpc2024":
        return f"{seeding} speaker {side} {speaker}"
    if level == "speaker":
        return f"{seeding} speaker {speaker}"
    if seeding == "vpc2024":
        return f"{seeding} position {position}"
    return f"{seeding} id {utterance}"


def named_stream(name: str, seed: int) -> np.random.Generator:
    """Return the generator of a stream, the same on every machine and in every order; see `stream_name`.

    The challenge draws one number per utterance from one generator, in the order of the list: the stream of a position
    is that generator, advanced. At speaker level it makes a generator from the hash of the speaker's id.
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


def none(
    samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator
) -> NDArray[Any]:
    """Return the speech unchanged, for comparison."""
    return samples


def log_uniform(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Draw a factor, such as of tempo or pitch."""
    return float(np.exp(rng.uniform(*np.log(bounds))))


def either_sign(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Draw a number, such as the size of a bilinear warp, and its sign."""
    size = float(rng.uniform(*bounds))
    return size if rng.random() < 0.5 else -size


def change_speed(samples: NDArray[Any], rate: int, factor: float) -> NDArray[Any]:
    """Play faster or slower: tempo, pitch and formants change by one factor, and so does the duration.

    References
    ----------
    T. Ko, V. Peddinti, D. Povey, S. Khudanpur, Audio augmentation for speech recognition, Interspeech 2015.
    """
    import soxr

    return _if_any(soxr.resample(samples, rate * factor, rate, quality="HQ"), samples)


def warp_envelope(samples: NDArray[Any], rate: int, size: float) -> NDArray[Any]:
    """Warp the frequency axis of the spectral envelope by a bilinear function, as a vocal tract of another length
    would.

    The envelope is the cepstrally smoothed spectrum of 32 ms frames; pitch and phase are kept. A
    warp of -size inverts it.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        At least 32 ms.
    rate : int [Hz]
    size : float
        Size of the warp, between -1 and 1; the new envelope at omega is the old one at omega + 2 atan(size sin(omega) /
        (1 - size cos(omega))).

    References
    ----------
    J. Qian, H. Du, J. Hou, L. Chen, T. Jung, X.-Y. Li, Hidebehind: enjoy voice input with voiceprint unclonability and
    anonymity, SenSys 2018.
    """
    return _move_envelope(
        samples,
        rate,
        lambda omega: omega + 2 * np.arctan2(size * np.sin(omega), 1 - size * np.cos(omega)),
    )


def scale_envelope(samples: NDArray[Any], rate: int, factor: float) -> NDArray[Any]:
    """Scale the frequencies of the spectral envelope by a factor, as `world` scales formants; see `warp_envelope`.

    Parameters
    ----------
    samples : ndarray of shape (n,)
        At least 32 ms.
    rate : int [Hz]
    factor : float
        Factor above 0; 1 / factor inverts it, except for frequencies that it moves beyond half the rate.
    """
    return _move_envelope(samples, rate, lambda omega: np.minimum(omega / factor, np.pi))


def _move_envelope(
    samples: NDArray[Any], rate: int, source: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """Return a signal whose envelope at omega is the original envelope at source(omega)."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    length = round(rate * _WINDOW)
    shift = round(rate * _SHIFT)
    _if_any(samples[length - 1 :], samples)
    transform = ShortTimeFFT(hann(length, sym=False), shift, rate, mfft=length)
    spectrum = transform.stft(samples.astype(np.float64))
    magnitude = np.abs(spectrum)
    order = round(rate * _QUEFRENCY)
    floor = max(float(magnitude.max()), 1e-30) * 1e-6
    cepstrum = np.fft.irfft(np.log(np.maximum(magnitude, floor)), length, axis=0)
    # the envelope is smooth: its high quefrencies are left out
    cepstrum[order + 1 : length - order] = 0
    envelope = np.fft.rfft(cepstrum, axis=0).real
    bins = np.arange(len(spectrum))
    warped = _read_between(envelope.T, source(np.pi * bins / bins[-1]) / np.pi * bins[-1]).T
    return np.asarray(transform.istft(spectrum * np.exp(warped - envelope), k1=len(samples)))


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
    pyworld = import_world()
    pitch_factor = log_uniform(pitch, rng)
    formant_factor = log_uniform(formants, rng)
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    rough, times = pyworld.dio(signal, rate)
    f0 = pyworld.stonemask(signal, rough, times, rate)
    envelope = pyworld.cheaptrick(signal, f0, times, rate)
    aperiodicity = pyworld.d4c(signal, f0, times, rate)
    bins = np.arange(envelope.shape[1])
    position = np.minimum(bins / formant_factor, bins[-1])
    scaled = np.ascontiguousarray(np.exp(_read_between(np.log(envelope), position)))
    speech: NDArray[Any] = pyworld.synthesize(f0 * pitch_factor, scaled, aperiodicity, rate)
    return np.pad(speech, (0, max(0, len(samples) - len(speech))))[: len(samples)]


def import_world() -> Any:
    """Return the package pyworld; a ConfigError if it is not installed."""
    return imported("pyworld", "pyworld", "the anonymiser 'world'")


@lru_cache(maxsize=4)
def make_anonymizer(config: AnonymizerConfig, folder: Path | None = None) -> Anonymizer:
    """Build the function that a configuration names.

    Parameters
    ----------
    config : AnonymizerConfig
    folder : path, optional
        Folder for a command's files while it runs; the system's folder of temporary files by default.

    Raises
    ------
    ConfigError
        If a user-supplied function cannot be imported, or a command's placeholders are wrong.
    DataError
        If a package is missing.
    """
    if config.name == "command":
        check_places(
            config.command, ("input", "output", "utterance", "rate", "seed"), ("input", "output")
        )
        return partial(_by_command, template=config.command, folder=folder)
    if config.name in _CHANGES:
        return partial(_by_one_number, config=config)
    if config.name == "none":
        return none
    if config.name == "world":
        import_world()
        return partial(world, **config.parameters())
    function: Anonymizer = load_plugin(config.name, "anonymiser", kind="function")[0]
    return function


@one_line
@dataclass(frozen=True)
class Inverse:
    """An anonymiser and its inverse, given one number per recording; for WORLD, that is the factor of the formants.

    Attributes
    ----------
    anonymizer : str
        A name of `BUILT_IN`.
    parameter : str
        Name of the number, the key of its range in the configuration.
    draw : callable
        Draws the number of a recording, from the range and a random generator.
    apply, undo : callable
        Take signals, their rates and numbers; return samples or a DataError for each.
    bounds : callable
        Lowest and highest number that a range can give.
    """

    anonymizer: str
    parameter: str
    draw: Callable[[tuple[float, float], np.random.Generator], float]
    apply: Change
    undo: Change
    bounds: Callable[[tuple[float, float]], tuple[float, float]]


def _each(change: Callable[[NDArray[Any], int, float], NDArray[Any]]) -> Change:
    """Extend a function of one signal to several signals; return errors for those that are too short."""

    def change_all(
        signals: Sequence[NDArray[np.float32]], rates: Sequence[int], values: Sequence[float]
    ) -> Outputs:
        outputs: Outputs = []
        for samples, rate, value in zip(signals, rates, values, strict=True):
            try:
                changed = np.asarray(change(samples, rate, value))
                outputs.append(changed / max(1.0, float(np.abs(changed).max())))
            except DataError as error:
                outputs.append(error)
        return outputs

    return change_all


INVERSES = {
    "mcadams": Inverse(
        "mcadams",
        "alpha",
        draw=lambda bounds, rng: float(rng.uniform(*bounds)),
        apply=turn_poles,
        undo=partial(turn_poles, back=True),
        bounds=lambda bounds: bounds,
    ),
    "vtln": Inverse(
        "vtln",
        "warp",
        draw=either_sign,
        apply=_each(warp_envelope),
        undo=_each(lambda samples, rate, value: warp_envelope(samples, rate, -value)),
        bounds=lambda bounds: (-bounds[1], bounds[1]),
    ),
    "resampling": Inverse(
        "resampling",
        "speed",
        draw=log_uniform,
        apply=_each(change_speed),
        undo=_each(lambda samples, rate, value: change_speed(samples, rate, 1 / value)),
        bounds=lambda bounds: bounds,
    ),
    # inverted on the envelope of short frames, since the vocoder is slow; F0 is not inverted
    "world": Inverse(
        "world",
        "formants",
        draw=log_uniform,
        apply=_each(scale_envelope),
        undo=_each(lambda samples, rate, value: scale_envelope(samples, rate, 1 / value)),
        bounds=lambda bounds: bounds,
    ),
}


def _if_any(output: NDArray[Any], samples: NDArray[Any]) -> NDArray[Any]:
    """Return the output; a DataError if it is empty."""
    if not len(output):
        raise DataError(f"{len(samples)} samples are too few", remedy="leave the utterance out")
    return output


def _read_between(rows: NDArray[Any], position: NDArray[Any]) -> NDArray[Any]:
    """Read rows at fractional columns by linear interpolation."""
    low = np.minimum(position.astype(int), rows.shape[1] - 2)
    share = position - low
    warped: NDArray[Any] = (1 - share) * rows[:, low] + share * rows[:, low + 1]
    return warped


def _mcadams(samples: NDArray[Any], rate: int, alpha: float) -> NDArray[Any]:
    (output,) = turn_poles([samples], [rate], [alpha])
    if isinstance(output, DataError):
        raise output
    return output


_CHANGES = {"mcadams": _mcadams, "vtln": warp_envelope, "resampling": change_speed}
"""Changes of one signal, given the number of its recording."""


def _by_one_number(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    config: AnonymizerConfig,
) -> NDArray[Any]:
    inverse = INVERSES[config.name]
    number = inverse.draw(getattr(config, inverse.parameter), rng)
    return _CHANGES[config.name](samples, rate, number)


def _by_command(
    samples: NDArray[Any],
    rate: int,
    utterance: str,
    rng: np.random.Generator,
    *,
    template: str,
    folder: Path | None,
) -> NDArray[Any]:
    """Anonymise by a shell command that turns one WAV file (16 bits, one channel) into another.

    Both files lie in a temporary folder below `folder`, so that the next run removes what a killed process leaves.
    Output at another sampling rate is resampled.
    """
    with tempfile.TemporaryDirectory(prefix=".speech.", suffix=TEMPORARY, dir=folder) as temporary:
        source = Path(temporary) / "input.wav"
        target = Path(temporary) / "output.wav"
        write_audio(source, samples, rate)
        values = {"input": source, "output": target, "utterance": utterance, "rate": rate}
        run_command(fill_places(template, {**values, "seed": int(rng.integers(1 << 31))}))
        if not target.is_file():
            raise DataError("the command wrote no {output}")
        try:
            return read_audio(target, rate=rate, resample=True).samples
        except DataError as error:
            raise DataError(f"the command's output {error.text}") from error
