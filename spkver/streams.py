"""Compressed streams as bytes: frames of MP3 and pages of Ogg are counted without decoding, and decoders are silenced.

libsndfile reads the first of several recordings in one file, trusts an estimate of the length of MP3 files that do not
state it, and leaves out the end of an Ogg stream without a last page. What is in the file is counted here, so that
`spkver.audio` can refuse or mend such files.
"""

from __future__ import annotations

import ctypes
import re
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

_HEADER = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]..", re.DOTALL)  # of a frame of layer III
_KILOBITS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KILOBITS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44100, 48000, 32000)
_COUNTED = re.compile(rb"(?:Xing|Info)...[\x01\x03\x05\x07\x09\x0b\x0d\x0f](.{4})|VBRI.{10}(.{4})", re.DOTALL)
_UNCOUNTED = re.compile(rb"Xing|Info|VBRI")
_TAG = 60  # bytes of a frame within which the name of a frame that counts the others begins

_LOCK = threading.Lock()
_N_SILENT = 0
_STDERR: Any = None


class Mp3Frame(NamedTuple):
    """Start and size in bytes of a frame, its header of 4 bytes, and the number of samples of each channel."""

    start: int
    size: int
    header: bytes
    n_samples: int

    @property
    def kind(self) -> tuple[int, int, bool]:
        """Version, sampling rate and whether there is one channel: what all frames of a recording share."""
        return self.header[1] & 0xFE, self.header[2] & 0x0C, self.header[3] >> 6 == 3


class Mp3Stream(NamedTuple):
    """Frames of an MP3 file with sound.

    Attributes
    ----------
    frames : list of Mp3Frame
    promised : int or None
        Their number in the header that encoders write before them; None without such a header.
    """

    frames: list[Mp3Frame]
    promised: int | None

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel."""
        return sum(frame.n_samples for frame in self.frames)


def tag_size(start: bytes) -> int:
    """Return the length in bytes of the ID3v2 tag of which a file's first ten bytes are given; 0 without a tag."""
    if start[:3] != b"ID3" or len(start) < 10:
        return 0
    size = 0
    for byte in start[6:10]:
        size = size << 7 | byte & 0x7F
    footer = 10 if start[5] & 0x10 else 0
    return 10 + size + footer


def mp3_stream(content: bytes, start: int = 0) -> Mp3Stream:
    """Find the frames of an MP3 file (layer III) from byte `start` on; bytes between frames are passed over.

    References
    ----------
    ISO/IEC 11172-3:1993, section 2.4.1.3; ISO/IEC 13818-3:1998.
    """
    frames: list[Mp3Frame] = []
    position = start
    expected = -1
    while (match := _HEADER.search(content, position)) is not None:
        frame = _frame_at(content, match.start())
        # by chance, other bytes look like a header, but not like two in their places
        is_first = frame is not None and frame.start != expected
        if frame is None or (is_first and _frame_at(content, frame.start + frame.size) is None):
            position = match.start() + 1
            continue
        frames.append(frame)
        position = frame.start + frame.size
        expected = position
    if not frames:
        return Mp3Stream([], None)
    first = frames[0]
    beginning = content[first.start : first.start + min(first.size, _TAG)]
    counted = _COUNTED.search(beginning)
    promised = None
    if counted is not None:
        promised = int.from_bytes(counted[1] or counted[2], "big") or None
    if _UNCOUNTED.search(beginning):
        frames = frames[1:]
    return Mp3Stream(frames, promised)


def counting_frame(stream: Mp3Stream) -> bytes:
    """Return a frame, to put before those of an MP3 file, that tells a decoder their number."""
    first = stream.frames[0].header
    header = bytes([first[0], first[1] | 1, first[2] & 0x0D | 0xA0, first[3]])  # without checksum, tenth bit rate
    size = _frame_size(header)
    is_mono = first[3] >> 6 == 3
    sides = (17, 32) if _is_first_version(header) else (9, 17)  # bytes of side information
    side = sides[not is_mono]
    frame = header + bytes(side) + struct.pack(">4sII", b"Info", 1, len(stream.frames))
    return frame.ljust(size, b"\0")


class OggStream(NamedTuple):
    """Whether an Ogg file holds its last page, and whether another recording follows the first."""

    is_whole: bool
    is_joined: bool


def ogg_stream(content: bytes) -> OggStream:
    """Walk over the pages of an Ogg file.

    References
    ----------
    S. Pfeiffer, The Ogg encapsulation format version 0, RFC 3533, 2003.
    """
    position = 0
    began = False
    ended = False
    while content.startswith(b"OggS", position) and position + 27 <= len(content):
        flags = content[position + 5]
        n_segments = content[position + 26]
        segments = content[position + 27 : position + 27 + n_segments]
        position += 27 + n_segments + sum(segments)
        is_start = bool(flags & 2)
        if is_start and began:
            return OggStream(is_whole=ended, is_joined=True)
        began = not is_start
        ended = bool(flags & 4) or ended
    return OggStream(is_whole=ended and position <= len(content), is_joined=False)


@contextmanager
def silent_decoder() -> Iterator[None]:
    """Hide what a decoder in C prints, such as libmpg123 about damaged frames, with glibc.

    The pointer ``stderr`` of the C library is exchanged, not the file descriptor, so that messages of this program and
    of its other threads and processes still appear.
    """
    global _N_SILENT, _STDERR
    library = _c_library()
    if library is None:
        yield
        return
    pointer = ctypes.c_void_p.in_dll(library, "stderr")
    with _LOCK:
        _N_SILENT += 1
        if _N_SILENT == 1:
            _STDERR = pointer.value
            pointer.value = _nowhere()
    try:
        yield
    finally:
        with _LOCK:
            _N_SILENT -= 1
            if _N_SILENT == 0:
                pointer.value = _STDERR


@cache
def _c_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # not on Windows
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None


@cache
def _nowhere() -> int | None:
    library = _c_library()
    assert library is not None
    library.fopen.restype = ctypes.c_void_p
    return library.fopen(b"/dev/null", b"w") or _STDERR


def _frame_at(content: bytes, start: int) -> Mp3Frame | None:
    """The frame that begins here, whole; None without one."""
    header = content[start : start + 4]
    if not _HEADER.fullmatch(header):
        return None
    size = _frame_size(header)
    if not size or start + size > len(content):
        return None
    n_samples = 1152 if _is_first_version(header) else 576
    return Mp3Frame(start, size, header, n_samples)


def _is_first_version(header: bytes) -> bool:
    return header[1] & 0x18 == 0x18


def _frame_size(header: bytes) -> int:
    """Bytes of a frame; 0 if the header is not valid."""
    bits, rate = header[2] >> 4, header[2] >> 2 & 3
    if bits in (0, 15) or rate == 3:
        return 0
    padding = header[2] >> 1 & 1
    if _is_first_version(header):
        return 144000 * _KILOBITS_1[bits] // _RATES[rate] + padding
    halvings = 1 if header[1] & 0x10 else 2  # of the sampling rate, in MPEG-2 and MPEG-2.5
    return 72000 * _KILOBITS_2[bits] // (_RATES[rate] >> halvings) + padding
