"""Compressed streams as bytes: frames of MP3 and pages of Ogg are counted without decoding, and decoders are silenced.

libsndfile reads the first of several recordings in one file, trusts an estimate of the length of MP3 files that do not
state it, and leaves out the end of an Ogg stream without a last page. The contents of the file are counted here, so
that `spkver.audio` can refuse or repair such files.
"""

from __future__ import annotations

import ctypes
import platform
import re
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

# header of a frame of layer III
_HEADER = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]..", re.DOTALL)
_KILOBITS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KILOBITS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44100, 48000, 32000)
# the number of frames, in the header frame; tags Xing and Info have it if the lowest bit is set
_COUNTED = re.compile(
    rb"(?:Xing|Info)(?:...[\x01\x03\x05\x07\x09\x0b\x0d\x0f](.{4}))?|VBRI.{10}(.{4})", re.DOTALL
)
_TAG = 60  # number of bytes of a frame that hold the name and the number

_LOCK = threading.Lock()
_N_SILENT = 0


class Mp3Stream(NamedTuple):
    """Frames of an MP3 file with sound.

    Attributes
    ----------
    starts : list of int
        Offsets of the frames.
    headers : list of bytes
        Headers of the frames, 4 bytes each.
    promised : int or None
        Number of frames in the header that encoders write before them; None if there is no such header.
    """

    starts: list[int]
    headers: list[bytes]
    promised: int | None

    @property
    def is_joined(self) -> bool:
        """Whether version, sampling rate or number of channels change, or there are more frames than promised."""
        kinds = {(header[1] & 0xFE, header[2] & 0x0C, _is_mono(header)) for header in self.headers}
        # encoders count the frames differently, by one
        is_longer = self.promised is not None and len(self.starts) > self.promised + 1
        return len(kinds) > 1 or is_longer


def tag_size(content: bytes) -> int:
    """Return the length in bytes of the ID3v2 tags with which a file begins; 0 without tags."""
    start = 0
    while content.startswith(b"ID3", start) and start + 10 <= len(content):
        size = 0
        for byte in content[start + 6 : start + 10]:
            size = size << 7 | byte & 0x7F
        footer = 10 if content[start + 5] & 0x10 else 0
        start += 10 + size + footer
    return start


def mp3_stream(content: bytes, start: int = 0) -> Mp3Stream:
    """Find the frames of an MP3 file (layer III) from byte `start` on; bytes between frames are skipped.

    References
    ----------
    ISO/IEC 11172-3:1993, section 2.4.1.3; ISO/IEC 13818-3:1998.
    """
    starts: list[int] = []
    end = -1  # end of the last frame
    match = _HEADER.search(content, start)
    while match is not None:
        position = match.start()
        stop = position + _frame_size(match[0])
        # other bytes may look like a header by chance, but hardly like two that are one frame apart
        is_frame = position == end or _frame_size(content[stop : stop + 4]) > 0
        if is_frame and position < stop <= len(content):
            starts.append(position)
            end = stop
        else:
            stop = position + 1
        match = _HEADER.search(content, stop)
    promised = None
    counted = _COUNTED.search(content[starts[0] : starts[0] + _TAG]) if starts else None
    if counted is not None:
        starts = starts[1:]
        promised = int.from_bytes(counted[1] or counted[2] or b"", "big") or None
    headers = [content[position : position + 4] for position in starts]
    return Mp3Stream(starts, headers, promised)


def counting_frame(stream: Mp3Stream) -> bytes:
    """Return a frame, to put before those of an MP3 file, that tells a decoder their number."""
    first = stream.headers[0]
    # no checksum, and the tenth bit rate
    header = bytes([first[0], first[1] | 1, first[2] & 0x0D | 0xA0, first[3]])
    # number of bytes of side information
    sides = (17, 32) if _is_first_version(header) else (9, 17)
    side = sides[not _is_mono(header)]
    frame = header + bytes(side) + struct.pack(">4sII", b"Info", 1, len(stream.starts))
    return frame.ljust(_frame_size(header), b"\0")


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

    The pointer ``stderr`` of the C library is replaced, not the file descriptor, so that messages of this program and
    of its other threads and processes still appear.
    """
    global _N_SILENT
    with _LOCK:
        library = _c_library()
        if library is not None:
            library.pointer.value = library.nowhere
            _N_SILENT += 1
    try:
        yield
    finally:
        with _LOCK:
            if library is not None:
                _N_SILENT -= 1
                if _N_SILENT == 0:
                    library.pointer.value = library.stderr


class _CLibrary(NamedTuple):
    """The variable ``stderr`` of the C library, the stream that it points to, and a stream to nowhere."""

    pointer: Any
    stderr: int | None
    nowhere: int


@cache
def _c_library() -> _CLibrary | None:
    if platform.libc_ver()[0] != "glibc":
        return None
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    nowhere = library.fopen(b"/dev/null", b"w")
    pointer = ctypes.c_void_p.in_dll(library, "stderr")
    if not nowhere:
        return None
    return _CLibrary(pointer, pointer.value, nowhere)


def _is_first_version(header: bytes) -> bool:
    return header[1] & 0x18 == 0x18


def _is_mono(header: bytes) -> bool:
    return header[3] >> 6 == 3


def _frame_size(header: bytes) -> int:
    """Return the bytes of a frame; 0 if its header of 4 bytes is not valid."""
    if not _HEADER.fullmatch(header):
        return 0
    bits = header[2] >> 4
    rate = header[2] >> 2 & 3
    if bits in (0, 15) or rate == 3:
        return 0
    padding = header[2] >> 1 & 1
    if _is_first_version(header):
        return 144000 * _KILOBITS_1[bits] // _RATES[rate] + padding
    # the sampling rate is halved in MPEG-2, twice in MPEG-2.5
    halvings = 1 if header[1] & 0x10 else 2
    return 72000 * _KILOBITS_2[bits] // (_RATES[rate] >> halvings) + padding
