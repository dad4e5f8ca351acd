"""What a bootstrap draws: how often each unit (a speaker, or a trial) comes in each resample.

Out of n units n are drawn with replacement. Every draw hangs on a generator that the caller gives: `block_generator`
is that of the blocks in which long bootstraps are made, so that their draws do not depend on the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

BLOCK = 25
"""Resamples that share a generator."""

MOST_REPLICATES = 1_000_000
"""Resamples that can be asked for; more change no digit that is shown, and their numbers no longer fit memory."""


@dataclass(frozen=True)
class Resampling:
    """How many resamples are drawn for intervals, of which seed, and at which level.

    Attributes
    ----------
    replicates : int
        Number of resamples; 0 for no intervals.
    seed : int
        Of the draws, not negative.
    level : float
        Share of true values that intervals should cover.

    Raises
    ------
    DataError
        If a number is out of range.
    """

    replicates: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.replicates == 1 or not 0 <= self.replicates <= MOST_REPLICATES or self.seed < 0:
            text = f"expected 0, or 2 to {MOST_REPLICATES:,} replicates and a seed from 0"
            raise DataError(f"{text}, got {self.replicates} and {self.seed}")
        if not 0 < self.level < 1:
            raise DataError(f"expected a level between 0 and 1, got {self.level}")

    def weights(self, n_units: int) -> NDArray[np.float64]:
        """Return all draws of one generator of the seed, as `draw_counts` of shape (replicates, n_units)."""
        return draw_counts(n_units, self.replicates, np.random.default_rng(self.seed))


def draw_counts(
    n_units: int, replicates: int, rng: np.random.Generator, *, one_by_one: bool = False
) -> NDArray[np.float64]:
    """Return how often each unit comes in each resample.

    Parameters
    ----------
    n_units : int
        How many there are, and how many are drawn.
    replicates : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of the draws; it is advanced.
    one_by_one : bool
        Draw the units themselves and count them, in place of one multinomial number a unit. Both are the same bootstrap
        with other numbers; a result keeps to the one that it was first made with.

    Returns
    -------
    ndarray of float64 of shape (replicates, n_units)
        Each row sums to `n_units`.

    Examples
    --------
    >>> draw_counts(4, 3, np.random.default_rng(0)).sum(axis=1)
    array([4., 4., 4.])
    """
    if not one_by_one:
        return rng.multinomial(n_units, np.full(n_units, 1 / n_units), replicates).astype(np.float64)
    counts = np.empty((replicates, n_units))
    for resample in counts:
        resample[:] = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
    return counts


def block_generator(seed: int, block: int) -> np.random.Generator:
    """Return the generator of a block of resamples, which hangs on the seed and on the block's number alone."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
