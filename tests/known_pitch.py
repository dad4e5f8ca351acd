"""Synthetic voices whose pitch is known."""

from __future__ import annotations

import numpy as np


def voice(
    pitch: float, *, rate: int = 16000, seconds: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """A buzz with two formants whose pitch swings by 3 semitones, and its pitch at every sample."""
    times = np.arange(int(seconds * rate)) / rate
    contour = pitch * 2 ** (0.25 * np.sin(2 * np.pi * 1.5 * times))
    phase = 2 * np.pi * np.cumsum(contour) / rate
    rng = np.random.default_rng(int(pitch))
    samples = np.zeros(len(times))
    for number in range(1, 40):
        frequency = number * contour
        formants = 1 / (1 + ((frequency - 600) / 150) ** 2) + 0.5 / (
            1 + ((frequency - 1500) / 200) ** 2
        )
        part = (formants + 0.02) / number * np.sin(number * phase + rng.uniform(0, 2 * np.pi))
        samples += np.where(frequency < 0.47 * rate, part, 0)
    return samples, contour
