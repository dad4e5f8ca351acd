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
