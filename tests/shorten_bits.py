"""SPHERE files and shorten streams, encoded by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class ShortenBits:
    """Rice codes, most significant bit first."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def unsigned(self, value: int, n_low: int) -> None:
        self.bits += (
            [0] * (value >> n_low) + [1] + [value >> bit & 1 for bit in reversed(range(n_low))]
        )

    def signed(self, value: int, n_low: int) -> None:
        self.unsigned(value << 1 if value >= 0 else ~value << 1 | 1, n_low + 1)

    def long(self, value: int) -> None:
        n_low = max(1, value.bit_length() - 1)
        self.unsigned(n_low, 2)
        self.unsigned(value, n_low)

    def packed(self) -> bytes:
        return np.packbits(np.array(self.bits, np.uint8)).tobytes()


def sphere(samples: bytes, **fields: object) -> bytes:
    """Write a SPHERE file by hand, from the description of the format."""
    values = {
        "channel_count": 1,
        "sample_rate": 16000,
        "sample_n_bytes": 2,
        "sample_coding": "pcm",
        **fields,
    }
    lines = [
        f"{name} -i {value}" if isinstance(value, int) else f"{name} -s{len(str(value))} {value}"
        for name, value in values.items()
        if value is not None
    ]
    return ("NIST_1A\n   1024\n" + "\n".join(lines) + "\nend_head\n").encode().ljust(1024) + samples


def shorten(samples: NDArray[np.int16], block: int = 256) -> bytes:
    """Encode with DIFF0, DIFF1 and ZERO blocks of version 2 (Robinson 1994)."""
    diff0, diff1, quit_, blocksize, zero = 0, 1, 4, 5, 8
    channels = np.atleast_2d(samples.T).astype(int)
    stream = ShortenBits()
    # 16 bits little-endian, no predictor, no means, nothing skipped
    for field in (5, len(channels), block, 0, 0, 0):
        stream.long(field)
    size, last = block, [0] * len(channels)
    for start in range(0, channels.shape[1], block):
        pieces = channels[:, start : start + block]
        if pieces.shape[1] != size:
            size = pieces.shape[1]
            stream.unsigned(blocksize, 2)
            stream.long(size)
        for channel, piece in enumerate(pieces):
            differences = np.diff(piece, prepend=last[channel])
            last[channel] = int(piece[-1])
            if not piece.any():
                stream.unsigned(zero, 2)
                continue
            use_differences = np.abs(differences).sum() < np.abs(piece).sum()
            residuals = differences if use_differences else piece
            n_low = min(15, int(np.log2(np.abs(residuals).mean() + 1)))
            stream.unsigned(diff1 if use_differences else diff0, 2)
            stream.unsigned(n_low, 3)
            for value in residuals.tolist():
                stream.signed(value, n_low)
    stream.unsigned(quit_, 2)
    return b"ajkg\x02" + stream.packed()


def shorten_sphere(samples: NDArray[np.int16], **fields: object) -> bytes:
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    header = {
        "sample_count": len(samples),
        "channel_count": channels,
        "sample_coding": "pcm,embedded-shorten-v2.00",
    }
    return sphere(shorten(samples), **{**header, **fields})
