"""Audio files: WAV, FLAC, NIST SPHERE, Ogg and MP3 in, one channel at a time, samples in [-1, 1] out.

`read_audio` returns an `Audio`: samples and rate; `audio_header` rate, channels and length, without decoding.
`usable_recordings` finds those that no attacker can use, `doubtful_recordings` those that are likely broken.

Conventions
-----------
Samples are floats, full scale is 1: integer samples are divided by 2 to the power of (bits - 1), so 16-bit samples
become multiples of 1/32768 in [-1, 1). Samples of floating-point WAV files are not scaled. Channels are numbered from
0. Nothing is mixed, resampled or repaired unless the caller asks for it, and a file that is shorter than its header
says is an error: a silently shorter recording would change results.

SPHERE files that are compressed with shorten (the form in which RSR2015 is shipped) are decoded by PyAV, which the
extra ``[sphere]`` installs. libsndfile reads the others, but accepts truncated files, so lengths are checked here.
"""

from __future__ import annotations

import io
import logging
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, caught, few
from spkbase.files import atomic_path, check_data
from spkbase.work import Work
from spkver.streams import (
    Mp3Stream,
    counting_frame,
    mp3_stream,
    ogg_stream,
    silent_decoder,
    tag_size,
)

logger = logging.getLogger(__name__)

EXTENSIONS = (".wav", ".flac", ".sph", ".ogg", ".oga", ".opus", ".mp3")
"""Of the files that are looked for in folders; what a file holds is detected from its content."""

_FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "NIST", "OGG", "MP3")
_CONTAINERS = {".wav": "WAV", ".flac": "FLAC", ".sph": "NIST"}
# writers that cannot seek back leave a placeholder near the largest size: 0xFFFFFFFF, 0x7FFFFFFF or 0x7FFFF000
_UNKNOWN_WAV_SIZE = 0x7FFFF000
_UNKNOWN_FRAMES = 1 << 62
_SPHERE = b"NIST_1A\n"
_SHAPE = ("sample_rate", "channel_count", "sample_count")
_MAX_SPHERE_HEADER = 1 << 20
_COPY_AGAIN = "copy the file again from its source"
_WAV = (b"RIFF", b"RIFX", b"RF64")
_MP3 = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")  # header of a frame of layer III
# beginnings of a second recording after the first, which is all that libsndfile reads
_SECOND = {
    "WAV": re.compile(rb"RIFF....WAVEfmt ", re.DOTALL),
    "FLAC": re.compile(rb"fLaC[\x00\x80]\x00\x00\x22"),
    "NIST": re.compile(rb"NIST_1A\n +\d+\n"),
}
# exceptions of the decoder, besides its own errors, for files that it cannot read
_FAILURES = (
    soundfile.SoundFileError,
    OSError,
    ValueError,
    TypeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
)
_IN_WORDS = {
    "Internal error : SF_INFO struct incomplete": "its header states no sampling rate, channels, samples or encoding",
    "File contains data in an unimplemented format": "its encoding is unknown, or its header is damaged",
    "File contains data in an unknown format": "its encoding is unknown, or its header is damaged",
}
_LOUDEST = 16.0  # times full scale; floating-point samples above it must be unscaled integers
# Hz; a header with a lower rate is damaged, and resampling from it would exhaust the memory
_LEAST_RATE = 1000
# signs of a clipped recording: share of the peak, share of the samples above that, and least peak
_HIGHEST = 0.999
_CLIPPED = 0.001
_LOUD = 0.1
_QUIET = 10 ** (-50 / 20)  # a recording with a lower peak is far too quiet
_SHORT = 0.5  # seconds
# least duration in seconds that vectors need; number of samples, from the middle, that are usually not silent
_SHORTEST = 0.1
_PART = 2048
_TAG = 1024  # number of arbitrary bytes, such as an ID3 tag, allowed after the last chunk of a WAV file


class Audio(NamedTuple):
    """One channel of speech: `samples` (n,) with full scale 1, and the sampling `rate` in Hz."""

    samples: NDArray[Any]
    rate: int


@dataclass(frozen=True)
class AudioHeader:
    """Header of an audio file.

    Attributes
    ----------
    rate : int
        Sampling rate in Hz.
    channels : int
        Number of channels.
    n_samples : int
        Number of samples of each channel.
    """

    rate: int
    channels: int
    n_samples: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.n_samples / self.rate


def audio_header(path: str | Path) -> AudioHeader:
    """Read the header of an audio file and check that the file is as long as the header says.

    No samples are decoded, so thousands of files can be checked before a long step. A truncated compressed stream
    (FLAC, shorten) is found only when it is decoded.

    Raises
    ------
    DataError
        If the file is missing, empty, cut off, in another format, holds no samples, or needs an extra that is
        not installed.
    """
    path = Path(path)
    sphere, mp3 = _check_file(path)
    if "shorten" in sphere.get("sample_coding", ""):
        return AudioHeader(*_shorten_shape(path, sphere))
    with _opened(path, mp3) as file:
        n_samples = file.frames
        if "sample_count" in sphere:
            n_samples = min(n_samples, _number(path, sphere, "sample_count"))
        return _checked_header(path, file, n_samples)


def check_headers(
    recordings: Mapping[str, Path],
    *,
    shortest: float = 0.0,
    jobs: int | None = None,
    problems: Problems | None = None,
) -> dict[str, AudioHeader]:
    """Read the header of every recording before any long step: all must be readable, long enough and have one channel.

    Parameters
    ----------
    recordings : mapping of str to Path
        Recording id to audio file.
    shortest : float [s]
    jobs : int, optional
        Worker threads; all cores by default.
    problems : Problems, optional
        Collects the problems; by default they are raised.

    Returns
    -------
    dict of str to AudioHeader
        Headers of the valid recordings.

    Raises
    ------
    DataError
        With all problems at once.
    """
    noted = Problems() if problems is None else problems
    check = partial(caught, function=partial(_sound_header, shortest=shortest))
    headers = noted.sift(zip(recordings, Work(jobs).map(check, recordings.values()), strict=True))
    if problems is None:
        noted.raise_if_any()
    return headers


def usable_recordings(
    recordings: Mapping[str, Path], problems: Problems, *, jobs: int | None = None
) -> dict[str, Path]:
    """Return the recordings that attackers can use: readable, at least 0.1 s long and not silent.

    Of most files the header and 2048 samples are read.

    Parameters
    ----------
    recordings : mapping of str to Path
        Id to audio file.
    problems : Problems
        Collects the errors of the others.
    jobs : int, optional
        Worker threads; all cores by default.
    """
    checked = Work(jobs).map(
        partial(caught, function=_usable), recordings.values(), description="checking recordings"
    )
    return problems.sift(zip(recordings, checked, strict=True))


def doubtful_recordings(recordings: Mapping[str, Path], *, jobs: int | None = None) -> list[str]:
    """Return a sentence for each kind of recording that is probably broken, for example by an anonymiser.

    Parameters
    ----------
    recordings : mapping of str to Path
        Id to audio file.
    jobs : int, optional
        Worker threads; all cores by default.

    Returns
    -------
    list of str
        Sentences that name the recordings: silent, clipped (0.1 % of the samples at their highest level), far too quiet
        (none above -50 dB of full scale), or shorter than half a second.

    Raises
    ------
    DataError
        With all recordings that cannot be read.
    """
    problems = Problems()
    ids_of: dict[str, list[str]] = {}
    doubts = Work(jobs).map(
        partial(caught, function=_doubt), recordings.values(), description="checking levels"
    )
    for name, doubt in problems.sift(zip(recordings, doubts, strict=True)).items():
        if doubt:
            ids_of.setdefault(doubt, []).append(name)
    problems.raise_if_any()
    texts = []
    for doubt, ids in sorted(ids_of.items()):
        count = f"{len(ids)} of {len(recordings)} recordings"
        texts.append(f"{count} are {doubt}: {few(sorted(ids), repr)}")
    return texts


def read_audio(
    path: str | Path,
    *,
    rate: int | None = None,
    channel: int | None = None,
    resample: bool = False,
    dtype: str = "float32",
) -> Audio:
    """Read one channel of a WAV, FLAC, SPHERE, Ogg or MP3 file.

    Parameters
    ----------
    path : path
        The file; the format is detected from its content.
    rate : int, optional
        Sampling rate in Hz that the caller needs; by default that of the file.
    channel : int, optional
        Number of the channel, from 0; required if the file has several.
    resample : bool
        Resample (soxr, high quality) if the file's rate is not `rate`. Peaks may then exceed 1 slightly.
    dtype : {"float32", "float64"}
        Type of the samples.

    Returns
    -------
    Audio
        (samples (n,), rate in Hz), n >= 1.

    Raises
    ------
    DataError
        If the file is missing, empty, cut off, longer than its header says, unreadable or in an unknown format; holds
        no samples, or has samples that are NaN, infinite or far above full scale; has several channels and none was
        chosen; or has another rate and `resample` is false.
    """
    path = Path(path)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', not {dtype!r}")
    frames, own_rate = _decoded(path, dtype)
    n_channels = frames.shape[1]
    if channel is None and n_channels > 1:
        remedy = f"choose one with channel=0 to channel={n_channels - 1}"
        raise DataError(f"has {n_channels} channels, expected one", file=path, remedy=remedy)
    if not 0 <= (channel or 0) < n_channels:
        text = f"channel {channel} was requested, the file has {n_channels}"
        raise DataError(text, file=path, remedy="channels are numbered from 0")
    samples = np.ascontiguousarray(frames[:, channel or 0])
    _check_samples(path, samples)
    if rate is None or rate == own_rate:
        return Audio(samples, own_rate)
    if not resample:
        text = f"sampling rate is {own_rate} Hz, expected {rate} Hz"
        remedy = f"ask for resampling with resample=True, or for a rate of {own_rate} Hz"
        raise DataError(text, file=path, remedy=remedy)
    import soxr

    resampled = soxr.resample(samples, own_rate, rate, quality="HQ")
    if not len(resampled):
        raise DataError(
            f"too short to be resampled: {len(samples)} samples",
            file=path,
            remedy="leave the file out",
        )
    return Audio(resampled, rate)


@contextmanager
def open_audio(path: str | Path) -> Iterator[soundfile.SoundFile]:
    """Open a file to read some of its samples or its tags; SPHERE files compressed with shorten cannot be opened.

    Raises
    ------
    DataError
        As in `audio_header`, and for any error of the decoder in the block.
    """
    path = Path(path)
    _, mp3 = _check_file(path)
    with _opened(path, mp3) as file:
        yield file


def write_audio(path: str | Path, samples: NDArray[Any], rate: int) -> None:
    """Write samples with full scale 1 in 16 bits, completely or not at all; larger samples are clipped with a warning.

    Parameters
    ----------
    path : path
        The file, whose extension .wav, .flac or .sph selects the container.
    samples : ndarray of float of shape (n,) or (n, channels)
        Rounded to multiples of 1/32768; samples of `read_audio` from a file of 16 bits are written back exactly.
    rate : int
        Sampling rate in Hz.

    Raises
    ------
    DataError
        If samples are missing, NaN or infinite, or the file cannot be written.
    """
    path = Path(path)
    samples = np.asarray(samples)
    remedy = "check the step that made them"
    if samples.size == 0:
        raise DataError("no samples to write", file=path, remedy=remedy)
    if not np.isfinite(samples).all():
        raise DataError("NaN or infinite samples to write", file=path, remedy=remedy)
    n_clipped = np.count_nonzero(np.abs(samples) > 1)
    if n_clipped:
        text = "%s: %d of %d samples beyond full scale were clipped"
        logger.warning(text, path, n_clipped, samples.size)
    steps = np.clip(np.rint(samples.astype(np.float64) * 32768), -32768, 32767).astype(np.int16)
    # encode in memory, so that a full disk causes an OSError of one write and not a warning inside libsndfile
    buffer = io.BytesIO()
    soundfile.write(buffer, steps, rate, format=_CONTAINERS[path.suffix.lower()], subtype="PCM_16")
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())


def _decoded(path: Path, dtype: str) -> tuple[NDArray[np.floating], int]:
    """Return the samples of all channels, (n, channels), and their rate, checked against the header."""
    sphere, mp3 = _check_file(path)
    if "shorten" in sphere.get("sample_coding", ""):
        rate = _shorten_shape(path, sphere)[0]
        _check_single(path, "NIST", len(_SPHERE))
        frames = _read_shorten(path, sphere).astype(dtype) / np.dtype(dtype).type(32768)
        return frames, rate
    with _opened(path, mp3) as file:
        # the number of samples, which is required where a codec cannot seek
        frames = file.read(file.frames, dtype=dtype, always_2d=True)
        if len(frames) < file.frames:
            raise _cut_off(path, file.frames, len(frames), "samples")
        if "sample_count" in sphere:
            frames = frames[: _number(path, sphere, "sample_count")]
        rate = _checked_header(path, file, len(frames)).rate
        if file.format == "FLAC":
            _check_single(path, "FLAC", len(b"fLaC"))
    return frames, rate


def _check_samples(path: Path, samples: NDArray[np.floating]) -> None:
    bad = np.flatnonzero(~np.isfinite(samples))
    if len(bad):
        text = f"{len(bad)} of {len(samples)} samples are NaN or infinite, the first at {bad[0]}"
        raise DataError(text, file=path, remedy="write the file again from its source")
    peak = np.abs(samples).max()
    if peak > _LOUDEST:
        text = (
            f"samples of up to {peak:.3g} times full scale, which is 1 for floating-point samples"
        )
        remedy = "divide them by 32768 if they are those of 16 bits, and write it again"
        raise DataError(text, file=path, remedy=remedy)


def _sound_header(path: Path, shortest: float) -> AudioHeader:
    header = audio_header(path)
    if header.channels > 1:
        text = f"{header.channels} channels, expected one"
        remedy = "mix them or keep one: ffmpeg -i IN -ac 1 OUT"
        raise DataError(text, file=path, remedy=remedy)
    if header.seconds < shortest:
        text = f"{header.seconds:.3f} s are too short: at least {shortest:g} s are needed"
        raise DataError(text, file=path, remedy="remove it from the lists")
    return header


def _usable(path: Path) -> Path:
    remedy = "replace it, or leave it out on both sides: "
    remedy += "spkver datadir --drop-unusable, then spkver split --missing drop"
    header = audio_header(path)
    if header.seconds < _SHORTEST:
        raise DataError(
            f"shorter than {_SHORTEST:g} s: {header.seconds:.3f} s", file=path, remedy=remedy
        )
    with suppress(DataError), open_audio(path) as file:  # otherwise it is read as a whole
        file.seek(max(0, header.n_samples // 2 - _PART // 2))
        if file.read(_PART).any():
            return path
    if not read_audio(path, channel=0).samples.any():
        raise DataError("silent: all samples are 0", file=path, remedy=remedy)
    return path


def _doubt(path: Path) -> str:
    samples, rate = read_audio(path)
    sizes = np.abs(samples)
    peak = sizes.max()
    if not peak:
        return "silent (all samples are 0)"
    if peak > _LOUD and np.mean(sizes >= _HIGHEST * peak) > _CLIPPED:
        return "clipped (more than 0.1 % of the samples at their highest level)"
    if len(samples) < _SHORT * rate:
        return f"shorter than {_SHORT:g} s"
    if peak < _QUIET:
        return "far too quiet (no sample above -50 dB of full scale)"
    return ""


@contextmanager
def _opened(path: Path, mp3: Mp3Stream | None) -> Iterator[soundfile.SoundFile]:
    """Open a checked file; whatever its decoder raises, here or in the block, becomes a DataError."""
    silence = nullcontext() if mp3 is None else silent_decoder()
    with silence:
        try:
            opened = _decoder(path, mp3)
        except _FAILURES as error:
            raise _unreadable(path, error) from error
        with opened as file:
            if file.format not in _FORMATS:
                raise _unreadable(path, f"its format is {file.format}")
            if file.frames >= _UNKNOWN_FRAMES:  # libsndfile cannot read such a file to its end
                text = "FLAC header without the number of samples, as written to a pipe"
                raise DataError(text, file=path, remedy="decode and encode it again into a file")
            try:
                yield file
            except DataError:
                raise
            except _FAILURES as error:  # the header may promise more than the file holds
                raise DataError(
                    f"cut off or damaged: {_reason(error)}", file=path, remedy=_COPY_AGAIN
                ) from error


def _decoder(path: Path, mp3: Mp3Stream | None) -> soundfile.SoundFile:
    """Open a file; to an MP3 file that does not state its length, prepend the number of its frames."""
    if mp3 is None or mp3.promised is not None:
        return soundfile.SoundFile(path)
    content = path.read_bytes()[mp3.starts[0] :]
    return soundfile.SoundFile(io.BytesIO(counting_frame(mp3) + content))


def _checked_header(path: Path, file: soundfile.SoundFile, n_samples: int) -> AudioHeader:
    if n_samples == 0:
        raise _no_samples(path)
    if file.samplerate < _LEAST_RATE:
        text = f"the header says {file.samplerate} Hz, expected a sampling rate of at least {_LEAST_RATE} Hz"
        raise DataError(text, file=path, remedy="write the file again from its source")
    return AudioHeader(file.samplerate, file.channels, n_samples)


def _unreadable(path: Path, reason: object) -> DataError:
    check_data(path)
    remedy = "convert the file to one of these, or copy it again if it should be one"
    return DataError(
        f"not readable as WAV, FLAC, SPHERE, Ogg or MP3: {_reason(reason)}",
        file=path,
        remedy=remedy,
    )


def _reason(error: object) -> str:
    text = getattr(error, "error_string", None) or str(error) or type(error).__name__
    text = text.removeprefix("Error : ").rstrip(".")
    return _IN_WORDS.get(text, text)


def _check_file(path: Path) -> tuple[dict[str, str], Mp3Stream | None]:
    """Check that the file is as long as its header says; return the fields of a SPHERE header and the frames of MP3."""
    if path.suffix.lower() == ".raw":  # libsndfile would trust the extension
        raise DataError(
            "headerless audio cannot be read", file=path, remedy="convert it to WAV, FLAC or SPHERE"
        )
    try:
        return _checked_content(path)
    except FileNotFoundError as error:
        raise DataError(
            "no such file", file=path, remedy="check the list and the folder it points to"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}", file=path, remedy="check its rights"
        ) from error


def _checked_content(path: Path) -> tuple[dict[str, str], Mp3Stream | None]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError("is not a file", file=path, remedy="name an audio file")
    if status.st_size == 0:
        raise DataError("is empty (0 bytes)", file=path, remedy=_COPY_AGAIN)
    with path.open("rb") as handle:
        magic = handle.read(8)
        if magic == _SPHERE:
            return _read_sphere_header(path, handle, status.st_size), None
        if magic[:4] in _WAV:
            _check_wav(path, handle, magic[:4], status.st_size)
        elif magic[:4] == b"OggS":
            _check_ogg(path)
        elif magic[:3] == b"ID3" or _MP3.match(magic):
            return {}, _checked_mp3(path)
        elif magic[:4] != b"fLaC":  # libsndfile would try its many other formats on it
            raise _unreadable(path, f"it begins with {magic[:4]!r}")
    return {}, None


def _checked_mp3(path: Path) -> Mp3Stream | None:
    """Check that an MP3 file holds as many frames as its header says; None for another format behind an ID3 tag."""
    content = path.read_bytes()
    start = tag_size(content)
    if content[start : start + 4] in (*_WAV, b"fLaC"):
        return None
    stream = mp3_stream(content, start)
    if not stream.starts:
        raise _unreadable(path, "it holds no frames of MP3 (layer III)")
    n_frames = len(stream.starts)
    if (
        stream.promised is not None and n_frames < stream.promised - 1
    ):  # encoders count the frames differently, by one
        raise _cut_off(path, stream.promised, n_frames, "MP3 frames")
    if stream.is_joined:
        raise _joined(path)
    return stream


def _check_ogg(path: Path) -> None:
    stream = ogg_stream(path.read_bytes())
    if stream.is_joined:
        raise _joined(path)
    if not stream.is_whole:
        text = "cut off: the last page of the Ogg stream is not there"
        raise DataError(text, file=path, remedy=_COPY_AGAIN)


def _check_single(path: Path, kind: str, start: int) -> None:
    """Search for the beginning of another recording after tags, from byte `start` on."""
    content = path.read_bytes()
    if _SECOND[kind].search(content, tag_size(content) + start):
        raise _joined(path)


def _joined(path: Path) -> DataError:
    """Return the error of a file in which several recordings follow each other."""
    text = "holds several recordings, one behind the other, of which decoders read only the first"
    return DataError(text, file=path, remedy="write each to a separate file")


def _check_wav(path: Path, handle: BinaryIO, magic: bytes, size: int) -> None:
    """Walk over the chunks to the samples, and compare their size in the header with the file's."""
    order = ">" if magic == b"RIFX" else "<"
    position = 12
    large = None
    while position + 8 <= size:
        handle.seek(position)
        name, length = struct.unpack(f"{order}4sI", handle.read(8))
        position += 8
        if name == b"ds64" and length >= 16:  # RF64 keeps its sizes, of 64 bits each, here
            large = struct.unpack("<QQ", handle.read(16))[1] if position + 16 <= size else None
        if name == b"data":
            if length == 0xFFFFFFFF and large is not None:
                length = large
            elif length >= _UNKNOWN_WAV_SIZE:
                _check_single(path, "WAV", position)
                return
            if length > size - position:
                raise _cut_off(path, length, size - position, "bytes of samples")
            _check_rest(path, handle, order, position + length, size)
            return
        position += length + length % 2

    # if there is no chunk of samples, libsndfile reports the error


def _check_rest(path: Path, handle: BinaryIO, order: str, position: int, size: int) -> None:
    """Walk over the chunks after the samples; other bytes there may be samples that the header does not count."""
    position += position % 2
    end = position
    while position + 8 <= size:
        handle.seek(position)
        name, length = struct.unpack(f"{order}4sI", handle.read(8))
        if name in _WAV:
            raise _joined(path)
        if name == b"data":
            text = "has two chunks of samples, expected one"
            raise DataError(text, file=path, remedy="write the file again from its source")
        position += 8 + length + length % 2
        if not (name.isascii() and name.decode("ascii").isprintable()) or position > size + 1:
            break
        end = position
    _check_end(path, handle, end, size)


def _check_end(path: Path, handle: BinaryIO, end: int, size: int) -> None:
    """Check that the bytes after the last chunk are few or zero."""
    if size - end > _TAG:
        handle.seek(end)
        rest = handle.read(size - end)
        if rest.startswith(_SPHERE):
            raise _joined(path)
        if any(rest):
            text = f"the header counts samples up to byte {end}, and {size - end} bytes follow that are not a chunk"
            raise DataError(
                text, file=path, remedy="write the file again from its source, with its real length"
            )


def _read_sphere_header(path: Path, handle: BinaryIO, size: int) -> dict[str, str]:
    """Read the fields of a header and check that the file holds as many bytes as they say.

    Parameters
    ----------
    path : path
        The file's name, for errors.
    handle : binary file
        The file, positioned after the first line.
    size : int
        Its length in bytes.

    Returns
    -------
    dict
        Field name -> value as text.
    """
    second_line = handle.read(8)
    if not second_line.strip().isdigit():
        raise DataError("SPHERE header without its length in line 2", file=path, remedy=_COPY_AGAIN)
    header_size = int(second_line)
    handle.seek(0)
    content = handle.read(min(header_size, _MAX_SPHERE_HEADER)).split(b"end_head")[0]
    if header_size > size:
        raise _cut_off(path, header_size, size, "bytes of header")
    fields = {}
    for line in content.decode("latin-1").splitlines()[2:]:
        words = line.split(maxsplit=2)
        if len(words) == 3:
            fields[words[0]] = words[2]
    if (
        "shorten" not in fields.get("sample_coding", "")
        and "sample_count" in fields
        and "sample_n_bytes" in fields
    ):
        promised = _number(path, fields, "sample_count") * _number(path, fields, "sample_n_bytes")
        if "channel_count" in fields:
            promised *= _number(path, fields, "channel_count")
        if promised > size - header_size:
            raise _cut_off(path, promised, size - header_size, "bytes of samples")
        _check_end(path, handle, header_size + promised, size)
    return fields


def _shorten_shape(path: Path, fields: dict[str, str]) -> tuple[int, int, int]:
    """Check that a file compressed with shorten can be decoded; return (rate in Hz, channels, samples of each)."""
    try:
        import av  # noqa: F401
    except ImportError as error:
        text = "SPHERE file compressed with shorten: PyAV is needed to read it"
        remedy = "pip install av"
        raise DataError(
            text, file=path, remedy=f"{remedy}, or unpack the files with sph2pipe"
        ) from error
    coding = fields.get("sample_coding", "")
    if not coding.startswith("pcm,"):
        text = f"cannot be decoded: sample_coding is {coding!r}, expected pcm,embedded-shorten"
        raise DataError(text, file=path, remedy="decode it with sph2pipe")
    rate, channels, n_samples = (_number(path, fields, name) for name in _SHAPE)
    if rate < 1 or channels < 1:
        raise DataError(
            f"SPHERE header: {channels} channels at {rate} Hz", file=path, remedy=_COPY_AGAIN
        )
    if n_samples < 1:
        raise _no_samples(path)
    return rate, channels, n_samples


def _read_shorten(path: Path, fields: dict[str, str]) -> NDArray[np.int16]:
    """Decode a file compressed with shorten to (n, channels) int16; losslessly.

    References
    ----------
    T. Robinson, "SHORTEN: Simple lossless and near-lossless waveform compression", CUED/F-INFENG/TR.156, 1994.
    """
    import av

    _, channels, n_samples = _shorten_shape(path, fields)
    blocks: list[NDArray[Any]] = [np.empty((channels, 0), np.int16)]
    n_missing = n_samples
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            for frame in container.decode(audio=0):
                blocks.append(frame.to_ndarray())
                n_missing -= blocks[-1].shape[1]
                if n_missing <= 0:
                    break
        frames = np.concatenate(blocks, axis=1).T
    except (av.FFmpegError, ValueError, IndexError) as error:
        reason = f"cannot be decoded ({fields['sample_coding']}): {getattr(error, 'strerror', None) or error}"
        raise DataError(reason, file=path, remedy=_COPY_AGAIN) from error
    if frames.shape[1] != channels or frames.dtype != np.int16:
        form = f"{frames.shape[1]} channels of {frames.dtype}"
        raise DataError(
            f"expected {channels} channels of int16, found {form}", file=path, remedy=_COPY_AGAIN
        )
    if len(frames) < n_samples:
        raise _cut_off(path, n_samples, len(frames), "samples")
    return frames[:n_samples]


def _cut_off(path: Path, promised: int, held: int, unit: str) -> DataError:
    """Return the error of a file that is shorter than its header says."""
    text = f"cut off: the header promises {promised} {unit}, the file holds {held}"
    return DataError(text, file=path, remedy=_COPY_AGAIN)


def _no_samples(path: Path) -> DataError:
    """Return the error of a file without samples."""
    return DataError("holds no samples", file=path, remedy="leave the file out, or copy it again")


def _number(path: Path, fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "nothing")
    if not text.isdecimal():
        raise DataError(
            f"SPHERE header: {name} should be a number, not {text!r}", file=path, remedy=_COPY_AGAIN
        )
    return int(text)
