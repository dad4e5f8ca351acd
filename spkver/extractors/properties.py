"""Properties of a recording that are no voice: its level, its length, its file format, its tags, its noise.

An anonymiser that gives all recordings of a speaker the same level, or writes a number of the speaker into a tag, names
the speaker whatever it does to the voice. The path, the name and the times of a file are not used.

A property without a resolution is a category, given as a number that says nothing but whether two are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.audio import read_audio
from spkver.extractors.protocol import Extraction, ExtractorSettings, embed_each

PROPERTIES: Mapping[str, float] = {
    "level": 0.05,  # dB
    "peak": 0.05,  # dB
    "offset": 0.02,  # steps of 16 bits, as the following values
    "step between values": 0.0,
    "values at the peak": 0.0005,  # share
    "duration": 0.001,  # s
    "leading silence": 0.001,  # s
    "trailing silence": 0.001,  # s
    "sampling rate": 0.0,
    "bits a sample": 0.01,  # of the file as it is stored
    "surplus bytes": 0.0,
    "format": 0.0,
    "tags": 0.0,
    "header": 0.0,
    "end of the file": 0.0,
    "rumble": 0.1,  # dB, below 60 Hz
    "noise in the 1st quarter of the band": 0.1,  # dB
    "noise in the 2nd quarter of the band": 0.1,
    "noise in the 3rd quarter of the band": 0.1,
    "noise in the 4th quarter of the band": 0.1,
    "bandwidth": 10.0,  # Hz
    "frequency of the steadiest tone": 0.5,  # Hz
    "level of the steadiest tone": 0.1,  # dB
}
"""Resolution of each property, in the order of the vector: smaller differences say nothing. 0: a category."""

_FULL_SCALE = 32768
_SILENCE = 2  # steps of 16 bits
_TINY = 1e-20  # of power
_WINDOW = 1024
_FRAMES = 96  # evenly spaced, of a longer recording
_QUIET = 0.1  # quantile over time: what sounds always
_NEAR = 15  # bins around a tone
_RUMBLE = 60.0  # Hz
_BELOW = 1e-7  # of the highest power: beyond the bandwidth
_HEAD = 65536  # bytes that may hold a header
_SIZES = 42  # bytes of WAV and FLAC in which format, length and checksum stand
_DATA = {b"RIFF": b"data", b"fLaC": b"\xff\xf8"}  # what comes after the header
_END = 16  # bytes
_VERSION = 1  # changes with the numbers


@one_blas_thread()
def property_vector(path: Path) -> NDArray[np.float64]:
    """Return the properties of a recording, in the order of `PROPERTIES`; always finite.

    Raises
    ------
    DataError
        If the file cannot be read, or has several channels.
    """
    samples, rate = read_audio(path)
    return np.array([*_values(samples, rate), *_file(path, len(samples), rate), *_noise(samples, rate)], np.float64)


def _values(samples: NDArray[np.float32], rate: int) -> list[float]:
    """Return properties of the samples themselves."""
    sizes = np.abs(np.round(samples * _FULL_SCALE).astype(np.int32))
    sounding = sizes > _SILENCE
    return [
        _decibels(np.square(samples).mean(dtype=np.float64)),
        _decibels(float(np.abs(samples).max()) ** 2),
        _FULL_SCALE * float(samples.mean(dtype=np.float64)),
        float(np.gcd.reduce(sizes)),
        float(np.mean(sizes == sizes.max())),
        len(samples) / rate,
        _before(sounding) / rate,
        _before(sounding[::-1]) / rate,
    ]


def _before(sounding: NDArray[np.bool_]) -> int:
    """Return the number of samples before the first that sounds."""
    return int(np.append(np.flatnonzero(sounding), len(sounding))[0])


def _file(path: Path, n_samples: int, rate: int) -> list[float]:
    """Return properties of the file."""
    kind, tags = "", {}
    with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(path) as file:
        kind = f"{file.format} {file.subtype} {file.endian}"
        tags = file.copy_metadata()
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
        stream.seek(-min(_END, size), 2)
        end = stream.read()
    marker = _DATA.get(head[:4])
    header = head[_SIZES : head.find(marker, _SIZES - 6)] if marker else b""
    categories = [_category(part) for part in (kind, sorted(tags.items()), header, end)]
    return [rate, 8 * size / n_samples, size % n_samples, *categories]


def _noise(samples: NDArray[np.float32], rate: int) -> list[float]:
    """Return properties of what sounds always: its spectrum, and the tone that stands out most."""
    from scipy.fft import rfft
    from scipy.ndimage import median_filter

    padded = np.pad(samples, (0, -len(samples) % _WINDOW))
    frames = padded.reshape(-1, _WINDOW)[: max(1, len(samples) // _WINDOW)]
    spectra = rfft(frames[:: -(-len(frames) // _FRAMES)] * np.hanning(_WINDOW).astype(np.float32), workers=1)
    power = (spectra.real**2 + spectra.imag**2) / _WINDOW**2 + _TINY
    quiet = round(_QUIET * (len(power) - 1))
    steady = np.partition(power, quiet, axis=0)[quiet]
    bins = rate / _WINDOW
    rumble, rest = np.split(steady, [int(_RUMBLE / bins) + 1])
    parts = [rumble, *np.array_split(rest, 4)]
    mean = power.mean(axis=0)
    peak = 1 + int(np.argmax((steady / median_filter(steady, _NEAR))[1:-1]))
    tone = slice(peak - 1, peak + 2)
    place = np.arange(len(steady))[tone] @ steady[tone] / steady[tone].sum()
    bandwidth = bins * np.flatnonzero(mean > _BELOW * mean.max())[-1]
    return [*(_decibels(part.mean()) for part in parts), bandwidth, bins * place, _decibels(steady[peak])]


def _decibels(power: float) -> float:
    return float(10 * np.log10(power + _TINY))


def _category(value: object) -> float:
    """Return a number for a value; equal values have equal numbers."""
    return float(int.from_bytes(sha256(repr(value).encode()).digest()[:6], "big"))


def open_properties(argument: str, settings: ExtractorSettings) -> Extraction:
    """Open the extractor of properties, which takes whole recordings at their own rate."""
    if argument or settings != ExtractorSettings():
        raise ConfigError("the properties of files have no settings", remedy="leave out what follows the name")
    return Extraction(partial(embed_each, embed=property_vector), {"version": _VERSION, "properties": len(PROPERTIES)})
