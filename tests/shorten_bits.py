"""Bits of a shorten stream, for the encoders of the tests."""

from __future__ import annotations

import numpy as np


class ShortenBits:
    """Rice codes, most significant bit first."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def unsigned(self, value: int, n_low: int) -> None:
        self.bits += [0] * (value >> n_low) + [1] + [value >> bit & 1 for bit in reversed(range(n_low))]

    def signed(self, value: int, n_low: int) -> None:
        self.unsigned(value << 1 if value >= 0 else ~value << 1 | 1, n_low + 1)

    def long(self, value: int) -> None:
        n_low = max(1, value.bit_length() - 1)
        self.unsigned(n_low, 2)
        self.unsigned(value, n_low)

    def packed(self) -> bytes:
        return np.packbits(np.array(self.bits, np.uint8)).tobytes()


def samples() -> np.ndarray:
    """600 samples of noise with a pause."""
    values = np.random.default_rng(0).normal(0, 3000, 600).astype(np.int16)
    values[200:400] = 0
    return values


def shorten(samples: np.ndarray, block: int = 100) -> bytes:
    """Encode with DIFF1, ZERO and QUIT blocks of version 2 (Robinson 1994)."""
    channels, stream = np.atleast_2d(samples.T).astype(int), ShortenBits()
    for field in (5, len(channels), block, 0, 0, 0):
        stream.long(field)
    last = [0] * len(channels)
    for start in range(0, channels.shape[1], block):
        for number, channel in enumerate(channels):
            piece = channel[start : start + block]
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
    stream.bits += [0] * (-len(stream.bits) % 32 + 32)  # whole words, and one more: decoders read ahead
    return b"ajkg\x02" + stream.packed()


def sphere(body: bytes, **fields: object) -> bytes:
    """A file of SPHERE, of one channel of 600 samples of 16 bits, 8 kHz."""
    values = {"channel_count": 1, "sample_rate": 8000, "sample_n_bytes": 2, "sample_count": 600, **fields}
    lines = [
        f"{name} -i {value}" if isinstance(value, int) else f"{name} -s{len(str(value))} {value}"
        for name, value in values.items()
    ]
    return ("NIST_1A\n   1024\n" + "\n".join(lines) + "\nend_head\n").encode().ljust(1024) + body
