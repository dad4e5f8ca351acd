"""Properties of a recording other than the voice: level, length, file format, tags and noise.

An anonymiser that gives all recordings of a speaker the same level, or writes a number of the speaker into a tag,
reveals the speaker whatever it does to the voice. The path, the name and the times of a file are not used.

A property without a resolution is a category, given as a number that only shows whether two are equal.
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
    "offset": 0.02,  # steps of 16 bits
    "step between values": 0.0,
    "values at the peak": 0.0005,  # share of the samples
    "duration": 0.001,  # s
    "leading silence": 0.001,  # s
    "trailing silence": 0.001,  # s
    "sampling rate": 0.0,
    "bits a sample": 0.01,  # bits of the stored file
    "format": 0.0,
    "tags": 0.0,
    "noise in the 1st quarter of the band": 0.1,  # dB
    "noise in the 2nd quarter of the band": 0.1,
    "noise in the 3rd quarter of the band": 0.1,
    "noise in the 4th quarter of the band": 0.1,
    "frequency of the steadiest tone": 1.0,  # Hz
    "level of the steadiest tone": 0.1,  # dB
}
"""Resolution of each property, in the order of the vector: smaller differences say nothing. 0: a category."""

_FULL_SCALE = 32768
_SILENCE = 2  # steps of 16 bits
_TINY = 1e-20  # least power
_FRAMES = 8  # frames per second
_LONGEST = 60  # largest duration in seconds whose noise is measured
_QUIET = 0.1  # quantile over time that represents stationary sound
_NEAR = 15  # number of bins around a tone
_VERSION = 2  # must change whenever the numbers do


@one_blas_thread()
def property_vector(path: Path) -> NDArray[np.float64]:
    """Return the properties of a recording, in the order of `PROPERTIES`; always finite.

    Raises
    ------
    DataError
        If the file cannot be read, or has several channels.
    """
    samples, rate = read_audio(path)
    return np.array(
        [*_values(samples, rate), *_file(path, len(samples), rate), *_noise(samples, rate)],
        np.float64,
    )


def open_properties(argument: str, settings: ExtractorSettings) -> Extraction:
    """Open the extractor of properties, which takes whole recordings at their own rate."""
    if argument or settings != ExtractorSettings():
        raise ConfigError(
            "the extractor of properties has no settings",
            remedy="leave out the text after the name",
        )
    return Extraction(
        partial(embed_each, embed=property_vector),
        {"version": _VERSION, "properties": len(PROPERTIES)},
    )


def _values(samples: NDArray[np.float32], rate: int) -> list[float]:
    """Return properties of the samples themselves."""
    sizes = np.abs(np.round(samples * _FULL_SCALE).astype(np.int32))
    sounding = np.append(np.flatnonzero(sizes > _SILENCE), len(sizes))
    return [
        _decibels(np.square(samples).mean(dtype=np.float64)),
        _decibels(float(np.abs(samples).max()) ** 2),
        _FULL_SCALE * float(samples.mean(dtype=np.float64)),
        float(np.gcd.reduce(sizes)),
        float(np.mean(sizes == sizes.max())),
        len(samples) / rate,
        sounding[0] / rate,
        (len(sizes) - sounding[-2:][0]) / rate,
    ]


def _file(path: Path, n_samples: int, rate: int) -> list[float]:
    """Return properties of the file."""
    kind = ""
    tags = {}
    with suppress(soundfile.LibsndfileError, OSError), soundfile.SoundFile(path) as file:
        kind = f"{file.format} {file.subtype} {file.endian}"
        tags = file.copy_metadata()
    return [
        rate,
        8 * path.stat().st_size / n_samples,
        _category(kind),
        _category(sorted(tags.items())),
    ]


def _noise(samples: NDArray[np.float32], rate: int) -> list[float]:
    """Return properties of stationary sound: its spectrum, and the most prominent tone."""
    from scipy.ndimage import median_filter
    from scipy.signal import spectrogram

    size = rate // _FRAMES
    padded = np.pad(samples[: _LONGEST * rate], (0, max(0, size - len(samples))))
    frequencies, _, power = spectrogram(padded, rate, "hann", size, scaling="spectrum")
    steady = np.quantile(power, _QUIET, axis=1) + _TINY
    quarters = [_decibels(part.mean()) for part in np.array_split(steady, 4)]
    tone = 1 + np.argmax((steady / median_filter(steady, _NEAR))[1:-1])
    around = slice(tone - 1, tone + 2)
    frequency = np.average(frequencies[around], weights=steady[around])
    return [*quarters, frequency, _decibels(steady[tone])]


def _decibels(power: float) -> float:
    return float(10 * np.log10(power + _TINY))


def _category(value: object) -> float:
    """Return a number for a value; equal values have equal numbers."""
    return float(int.from_bytes(sha256(repr(value).encode()).digest()[:6], "big"))
