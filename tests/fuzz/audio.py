"""Audio: WAV, FLAC, SPHERE and SPHERE compressed with shorten."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import soundfile

from spkver.audio.reading import audio_header, read_audio
from tests.fuzz.mutation import NUMBERS, damage
from tests.fuzz.parsers import Parser
from tests.shorten_bits import ShortenBits

_RATE = 8000


def _samples(channels: int = 1) -> np.ndarray:
    values = np.random.default_rng(0).normal(0, 3000, (600, channels)).astype(np.int16)
    values[200:400] = 0
    return values if channels > 1 else values[:, 0]


def _encoded(container: str, *kinds: str) -> Callable[[Path], list[bytes]]:
    def seeds(_: Path) -> list[bytes]:
        found = []
        for kind in kinds:
            for channels in (1, 2):
                content = io.BytesIO()
                soundfile.write(content, _samples(channels), _RATE, format=container, subtype=kind)
                found.append(content.getvalue())
        return found

    return seeds


def _sphere(body: bytes, **fields: object) -> bytes:
    values = {"channel_count": 1, "sample_rate": _RATE, "sample_n_bytes": 2, "sample_count": 600, **fields}
    lines = [
        f"{name} -i {value}" if isinstance(value, int) else f"{name} -s{len(str(value))} {value}"
        for name, value in values.items()
    ]
    return ("NIST_1A\n   1024\n" + "\n".join(lines) + "\nend_head\n").encode().ljust(1024) + body


def _spheres(folder: Path) -> list[bytes]:
    pcm = {"sample_byte_format": "01", "sample_coding": "pcm"}
    mono, stereo = _samples().tobytes(), _samples(2).tobytes()
    found = [
        _sphere(mono, **pcm),
        _sphere(stereo, channel_count=2, **pcm),
        _sphere(mono[:600], sample_n_bytes=1, sample_coding="ulaw"),
    ]
    return [*found, *_encoded("NIST", "PCM_16", "ULAW")(folder)]


def _header(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Another value in a line of a SPHERE header, whose length stays."""
    head, body = data[:1024], data[1024:]
    lines = head.split(b"\n")
    place = chance.randrange(len(lines))
    words = lines[place].split(b" ")
    words[-1] = chance.choice((*NUMBERS, b"pcm,embedded-shorten-v2.00", b"ulaw", b"shorten"))
    lines[place] = b" ".join(words)
    return b"\n".join(lines)[:1024].ljust(1024) + (damage(chance, body, [body]) if chance.random() < 0.3 else body)


def _sizes(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Another number in one of the first fields of a RIFF file."""
    place = chance.choice((4, 16, 20, 22, 24, 28, 32, 34, 40, 44))
    width = chance.choice((2, 4))
    value = chance.choice((0, 1, 2, 3, 255, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, chance.randrange(1 << 32)))
    return data[:place] + struct.pack("<I", value)[:width] + data[place + width :]


# --- shorten ---------------------------------------------------------------------------------------------------------


def _padded(stream: ShortenBits) -> bytes:
    """Whole words, and one more: decoders read ahead."""
    stream.bits += [0] * (-len(stream.bits) % 32 + 32)
    return stream.packed()


def _shorten(samples: np.ndarray, block: int = 100) -> bytes:
    """Encode with DIFF1, ZERO and BITSHIFT blocks of version 2 (Robinson 1994)."""
    channels, stream = np.atleast_2d(samples.T).astype(int), ShortenBits()
    for field in (5, len(channels), block, 0, 0, 0):
        stream.long(field)
    last = [0] * len(channels)
    for start in range(0, channels.shape[1], block):
        for number, samples in enumerate(channels):
            piece = samples[start : start + block]
            if not piece.any() and not last[number]:
                stream.unsigned(8, 2)  # ZERO
                continue
            differences = np.diff(piece, prepend=last[number])
            stream.unsigned(1, 2)  # DIFF1
            n_low = int(np.abs(differences).max()).bit_length()
            stream.unsigned(n_low, 3)
            for value in differences.tolist():
                stream.signed(value, n_low)
            last[number] = int(piece[-1])
    stream.unsigned(4, 2)  # QUIT
    return b"ajkg\x02" + _padded(stream)


def _shortened(_: Path) -> list[bytes]:
    coding = {"sample_coding": "pcm,embedded-shorten-v2.00"}
    return [_sphere(_shorten(_samples()), **coding), _sphere(_shorten(_samples(2)), channel_count=2, **coding)]


def _stream(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage behind the header, where the codes are."""
    return data[:1024] + damage(chance, data[1024:], [other[1024:] for other in others])


def _invented(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A stream from scratch: any version, any fields, any commands."""
    stream = ShortenBits()
    for _ in range(6):
        stream.long(chance.choice((0, 1, 2, 3, 5, 8, 16, 100, 1000, 70000, 1 << 20)))
    for _ in range(chance.randrange(60)):
        stream.unsigned(chance.randrange(10), 2)
        for _ in range(chance.randrange(30)):
            stream.signed(chance.randrange(-300, 300), chance.randrange(9))
    return data[:1024] + b"ajkg" + bytes([chance.choice((0, 1, 2, 2, 2, 3, 9))]) + _padded(stream)


def _read(path: Path) -> object:
    """The header, which must not promise what the samples do not keep, and the samples of the first channel."""
    header = audio_header(path)
    audio = read_audio(path, channel=0)
    assert audio.samples.ndim == 1
    assert len(audio.samples)
    assert np.isfinite(audio.samples).all()
    return header


PARSERS = [
    Parser("wav", "input.wav", _encoded("WAV", "PCM_16", "PCM_24", "FLOAT", "ULAW"), _read, (damage, _sizes)),
    Parser("flac", "input.flac", _encoded("FLAC", "PCM_16"), _read),
    Parser(
        "sphere",
        "input.sph",
        _spheres,
        _read,
        (damage, _header),
        (b"NIST_1A\n", b"   1024\n", b"sample_count -i 5\n", b"end_head\n"),
    ),
    Parser("shorten", "input.sph", _shortened, _read, (damage, _header, _stream, _stream, _invented)),
]
