"""Anonymisers, each one function ``samples, rate, utterance, rng -> samples``: baselines, and those of users."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import TEMPORARY
from spkbase.plugins import check_places, fill_places, load_plugin, run_command
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.mcadams_coefficient import mcadams
from spkver.audio import read_audio, write_audio

Anonymizer = Callable[[NDArray[Any], int, str, np.random.Generator], NDArray[Any]]

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
    changed = change_speed(samples, rate, log_uniform(speed, rng))
    if not len(changed):
        raise DataError(f"utterance {utterance!r}: {len(samples)} samples are too few", remedy="leave it out")
    return changed


def log_uniform(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Draw a factor, such as that of tempo or pitch."""
    return float(np.exp(rng.uniform(*np.log(bounds))))


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
    return warp_envelope(samples, rate, either_sign(warp, rng))


def either_sign(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Draw a number, such as the size of a bilinear warp, and its sign."""
    return float(rng.uniform(*bounds)) * (1 if rng.random() < 0.5 else -1)


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
    magnitude, order = np.abs(spectrum), round(rate * _QUEFRENCY)
    floor = max(float(magnitude.max()), 1e-30) * 1e-6
    cepstrum = np.fft.irfft(np.log(np.maximum(magnitude, floor)), length, axis=0)
    cepstrum[order + 1 : length - order] = 0  # the envelope is smooth: its high quefrencies are left out
    envelope = np.fft.rfft(cepstrum, axis=0).real
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
    pyworld = import_world()
    of_pitch, of_formants = log_uniform(pitch, rng), log_uniform(formants, rng)
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


def import_world() -> Any:
    """Return the package pyworld; a DataError if it is not installed."""
    try:
        import pyworld
    except ImportError as error:
        raise DataError("the anonymiser 'world' needs pyworld", remedy="pip install 'spkver[world]'") from error
    return pyworld


_FUNCTIONS: dict[str, Callable[..., NDArray[Any]]] = {
    "mcadams": mcadams,
    "resampling": resampling,
    "vtln": vtln,
    "world": world,
    "none": none,
}


@lru_cache(maxsize=4)
def make_anonymizer(config: AnonymizerConfig, folder: Path | None = None) -> Anonymizer:
    """Build the function that a configuration names.

    Parameters
    ----------
    config : AnonymizerConfig
    folder : path, optional
        Where a command's files are while it runs; the system's folder of temporary files by default.

    Raises
    ------
    ConfigError
        If a user-supplied function cannot be imported, or a command's places are wrong.
    DataError
        If a package is missing.
    """
    if config.name == "command":
        check_places(config.command, ("input", "output", "utterance", "rate", "seed"), ("input", "output"))
        return partial(_by_command, template=config.command, folder=folder)
    if config.name not in _FUNCTIONS:
        function: Anonymizer = load_plugin(config.name, "anonymiser", kind="function")[0]
        return function
    if config.name == "world":
        import_world()
    return partial(_FUNCTIONS[config.name], **config.parameters())


def _by_command(
    samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator, *, template: str, folder: Path | None
) -> NDArray[Any]:
    """Anonymise by a shell command that turns one WAV file (16 bits, one channel) into another.

    Both files lie in a temporary folder below `folder`, so that speech which a killed process leaves is found there and
    removed by the next one. A sampling rate that the command changed is changed back.
    """
    with tempfile.TemporaryDirectory(prefix=".speech.", suffix=TEMPORARY, dir=folder) as place:
        source, target = Path(place) / "input.wav", Path(place) / "output.wav"
        write_audio(source, samples, rate)
        values = {"input": source, "output": target, "utterance": utterance, "rate": rate}
        run_command(fill_places(template, {**values, "seed": int(rng.integers(1 << 31))}))
        if not target.is_file():
            raise DataError("the command wrote no {output}")
        try:
            return read_audio(target, rate=rate, resample=True).samples
        except DataError as error:
            raise DataError(f"the command's output {error.text}") from error
