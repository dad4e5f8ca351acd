"""Speakers cut into folds, so that what is learnt from some of them is tried on the others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.seeding import stream


def speaker_folds(speakers: Iterable[str], n_folds: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of each utterance: all those of a speaker are in one; folds differ by one speaker at most.

    Parameters
    ----------
    speakers : iterable of str
        Speaker of each utterance.
    n_folds : int
        As many as there are speakers, if there are fewer.
    seed : int
        Of the draw of the speakers; their order in the list does not matter.

    Returns
    -------
    ndarray of int of shape (n,)
        From 0 on.

    Raises
    ------
    DataError
        If there are fewer than two speakers or folds.

    Examples
    --------
    >>> speaker_folds(["anna", "bert", "anna", "cleo"], 3).tolist()
    [0, 1, 0, 2]
    """
    names = list(speakers)
    known = sorted(set(names))
    if len(known) < 2 or n_folds < 2:
        text = f"expected at least two speakers and two folds, got {len(known)} and {n_folds}"
        raise DataError(text, remedy="what is learnt from a speaker cannot be tried on the same one")
    order = stream(seed, "folds of speakers").permutation(len(known))
    fold = {known[place]: number % n_folds for number, place in enumerate(order)}
    return np.array([fold[name] for name in names], np.int64)
