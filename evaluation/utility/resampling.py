"""Bootstrap of speakers for measures that are sums or means over utterances.

Conventions
-----------
Utterances of a speaker are alike, so speakers are drawn: out of P speakers P with replacement, each with all of its
utterances. A measure is computed anew from the weights of the speakers; systems that are compared share the draws.
Intervals are made as `evaluation.uncertainty.intervals` says, with Student's t on the scale of the measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Method
from evaluation.uncertainty import Interval, Resampling, interval

# the scale on which the error of each measure is near to normal
METHODS = {
    "error_rate": Method("log", lower=0),
    "uar": Method("logit", lower=0, upper=1),
    "correlation": Method("identity", lower=-1, upper=1),
    "difference": Method("identity"),
}


DEFAULT = Resampling()
"""1000 draws, seed 0, 95 %."""


def interval_by_speaker(
    value: float,
    resampled: NDArray[np.float64],
    measure: str,
    resampling: Resampling,
    n_speakers: int,
    n_trials: int = 0,
) -> Interval:
    """Return the interval of a measure of utility from its values on resampled speakers.

    Parameters
    ----------
    value : float
        Of all utterances.
    resampled : ndarray of float64 of shape (B,)
        On the resamples.
    measure : str
        Name in `METHODS`, which says on what scale the interval is made.
    resampling : Resampling
        Says the level, and whether there are resamples.
    n_speakers, n_trials : int
        See `evaluation.uncertainty.interval`.

    Returns
    -------
    Interval
        Without ends, and with a note that says why, where there are fewer than two speakers or no resamples.
    """
    method = METHODS[measure]
    if n_speakers < 2 or not resampling.replicates:
        note = "no resamples were drawn" if n_speakers > 1 else "one speaker: the spread cannot be seen"
        return Interval(value, method=method.name, note=note)
    settings: dict[str, Any] = {"n_units": n_speakers, "n_trials": n_trials, "level": resampling.level}
    return interval(value, resampled, method=method, **settings)


def speaker_codes(speakers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the sorted names of the speakers and the index of each utterance's speaker among them."""
    names = sorted(set(speakers))
    codes = {name: code for code, name in enumerate(names)}
    return names, np.array([codes[name] for name in speakers], np.intp)


def sum_by_speaker(values: NDArray, codes: NDArray[np.intp], n_speakers: int) -> NDArray[np.float64]:
    """Return the sums of values of utterances, shape (n, ...), by speaker, shape (n_speakers, ...)."""
    sums = np.zeros((n_speakers, *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums
