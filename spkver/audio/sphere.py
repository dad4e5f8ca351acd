"""NIST SPHERE files: the text header, its check against the length of the file, and decoding of shorten.

libsndfile reads SPHERE with PCM, mu-law and A-law samples. What it lacks stands here: it takes a file that was cut off
for a shorter recording, and it knows nothing of shorten, for which PyAV (extra ``[sphere]``) is used in a process
of its own (`spkver.audio.shorten`).
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkver.audio.shorten import decode_shorten, is_installed

MAGIC = b"NIST_1A\n"
COPY_AGAIN = "copy the file again from its source"
_MAX_HEADER = 1 << 20


def read_sphere_header(path: Path, handle: BinaryIO, size: int) -> dict[str, str]:
    """Read the fields of a header and check that the file holds the bytes that they promise.

    Parameters
    ----------
    path : path
        The file's name, for errors.
    handle : binary file
        The file, read up to and including the first line.
    size : int
        Its length in bytes.

    Returns
    -------
    dict
        Field name -> value as text.
    """
    second_line = handle.read(8)
    if not second_line.strip().isdigit():
        raise DataError("SPHERE header without its length in line 2", file=path, remedy=COPY_AGAIN)
    header_size = int(second_line)
    handle.seek(0)
    lines = handle.read(min(header_size, _MAX_HEADER)).split(b"end_head")[0].decode("latin-1").splitlines()
    if header_size > size:
        raise cut_off(path, header_size, size, "bytes of header")
    fields = {words[0]: words[2] for words in (line.split(maxsplit=2) for line in lines[2:]) if len(words) == 3}
    if not is_shorten(fields) and "sample_count" in fields and "sample_n_bytes" in fields:
        promised = _number(path, fields, "sample_count") * _number(path, fields, "sample_n_bytes")
        promised *= _number(path, fields, "channel_count") if "channel_count" in fields else 1
        if promised > size - header_size:
            raise cut_off(path, promised, size - header_size, "bytes of samples")
    return fields


def sample_count(path: Path, fields: dict[str, str], found: int) -> int:
    """Return the number of samples of a channel that a header promises; `found` without header or promise."""
    return _number(path, fields, "sample_count") if "sample_count" in fields else found


def is_shorten(fields: dict[str, str]) -> bool:
    """Return whether the samples are compressed with shorten."""
    return "shorten" in fields.get("sample_coding", "")


def shorten_shape(path: Path, fields: dict[str, str]) -> tuple[int, int, int]:
    """Check that a file compressed with shorten can be decoded; return (rate in Hz, channels, samples of each)."""
    _check_decoder(path)
    coding = fields.get("sample_coding", "")
    if not coding.startswith("pcm,"):  # older releases of FFmpeg crash on others
        raise DataError(
            f"cannot be decoded: sample_coding is {coding!r}, expected pcm,embedded-shorten",
            file=path,
            remedy="decode it with sph2pipe",
        )
    rate, channels, n_samples = (
        _number(path, fields, name) for name in ("sample_rate", "channel_count", "sample_count")
    )
    if rate < 1 or channels < 1:
        raise DataError(f"SPHERE header: {channels} channels at {rate} Hz", file=path, remedy=COPY_AGAIN)
    if n_samples < 1:
        raise no_samples(path)
    return rate, channels, n_samples


def read_shorten(path: Path, fields: dict[str, str]) -> NDArray[np.int16]:
    """Decode a file compressed with shorten to (n, channels) int16; losslessly.

    References
    ----------
    T. Robinson, "SHORTEN: Simple lossless and near-lossless waveform compression", CUED/F-INFENG/TR.156, 1994.
    """
    _, channels, n_samples = shorten_shape(path, fields)
    try:
        frames = decode_shorten(path, n_samples)
    except (ValueError, OSError) as error:
        reason = f"cannot be decoded ({fields['sample_coding']}): {error}"
        raise DataError(reason, file=path, remedy=COPY_AGAIN) from error
    if frames.shape[1] != channels or frames.dtype != np.int16:
        form = f"{frames.shape[1]} channels of {frames.dtype}"
        raise DataError(f"expected {channels} channels of int16, found {form}", file=path, remedy=COPY_AGAIN)
    if len(frames) < n_samples:
        raise cut_off(path, n_samples, len(frames), "samples")
    return frames[:n_samples]


def cut_off(path: Path, promised: int, found: int, unit: str) -> DataError:
    """Return the error of a file that is shorter than its header says."""
    return DataError(
        f"cut off: the header promises {promised} {unit}, the file holds {found}", file=path, remedy=COPY_AGAIN
    )


def no_samples(path: Path) -> DataError:
    """Return the error of a file with a header and nothing behind it."""
    return DataError("holds no samples", file=path, remedy="leave the file out, or copy it again")


def _number(path: Path, fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "nothing")
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise DataError(f"SPHERE header: {name} should be a number, not {text!r}", file=path, remedy=COPY_AGAIN)
    return number


def _check_decoder(path: Path) -> None:
    if not is_installed():
        raise DataError(
            "SPHERE file compressed with shorten: PyAV is needed to read it",
            file=path,
            remedy="pip install 'spkver[sphere]', or unpack the files with sph2pipe",
        )
