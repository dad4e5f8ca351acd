"""Bootstrap of speakers for measures that are sums or means over utterances.

Conventions
-----------
Utterances of a speaker are alike, so speakers are drawn: out of P speakers P with replacement, each with all of its
utterances. A measure is computed anew from the weights of the speakers; systems that are compared share the draws.
Intervals are made as `evaluation.uncertainty.intervals` says, with Student's t on the scale of the measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Method
from evaluation.uncertainty import Interval, interval
from spkbase.errors import DataError

# the scale on which the error of each measure is near to normal
METHODS = {
    "error_rate": Method("log", lower=0),
    "uar": Method("logit", lower=0, upper=1),
    "correlation": Method("identity", lower=-1, upper=1),
    "difference": Method("identity"),
}


@dataclass(frozen=True)
class Resampling:
    """How intervals are drawn.

    Parameters
    ----------
    replicates : int
        Number of resamples; 0 for no intervals.
    seed : int
        Of the draws, not negative.
    level : float
        Share of true values that intervals should cover.
    """

    replicates: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.replicates == 1 or self.replicates < 0 or self.seed < 0:
            text = f"expected 0 or at least 2 replicates and a seed from 0, got {self.replicates} and {self.seed}"
            raise DataError(text)
        if not 0 < self.level < 1:
            raise DataError(f"expected a level between 0 and 1, got {self.level}")

    def weights(self, n_speakers: int) -> NDArray[np.float64]:
        """Draw how often each speaker comes, shape (replicates, n_speakers)."""
        rng = np.random.default_rng(self.seed)
        return rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), self.replicates).astype(np.float64)

    def interval(
        self, value: float, resampled: NDArray[np.float64], measure: str, n_speakers: int, n_trials: int = 0
    ) -> Interval:
        """Make the interval of a measure; undefined, with a note, where there are fewer than two speakers."""
        method = METHODS[measure]
        if n_speakers < 2 or not self.replicates:
            note = "no resamples were drawn" if n_speakers > 1 else "one speaker: the spread cannot be seen"
            return Interval(value, np.nan, np.nan, method.name, note)
        settings: dict[str, Any] = {"n_units": n_speakers, "n_trials": n_trials, "level": self.level}
        return interval(value, resampled, method=method, **settings)


DEFAULT = Resampling()
"""1000 draws, seed 0, 95 %."""


def speaker_codes(speakers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Give the sorted names of the speakers and the place of each utterance's speaker among them."""
    names = sorted(set(speakers))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[name] for name in speakers], np.intp)


def sum_by_speaker(values: NDArray, codes: NDArray[np.intp], n_speakers: int) -> NDArray[np.float64]:
    """Add up values of utterances, shape (n, ...), by speaker, shape (n_speakers, ...)."""
    sums = np.zeros((n_speakers, *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums
