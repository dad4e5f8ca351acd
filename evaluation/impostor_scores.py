"""The largest impostor scores of each trial: what a tail is fitted to beyond the gallery."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import DataError
from evaluation.parallel import chunk_bounds, ordered_map
from evaluation.rank_counts import to_unit

if TYPE_CHECKING:
    from evaluation.rank_table import Ranks
    from evaluation.speaker_vectors import SpeakerVectors

KEPT = 21
_TRIALS, _GALLERY = 512, 8192


def largest_impostor_scores(
    gallery: SpeakerVectors, trials: SpeakerVectors, ranks: Ranks, *, count: int = KEPT, jobs: int | None = None
) -> NDArray[np.float64]:
    """Find the largest cosines of each trial with enrolled speakers other than its owner.

    Parameters
    ----------
    gallery, trials : SpeakerVectors
        One vector a speaker; the ones that the ranks were made from.
    ranks : Ranks
        Says which trials, in which order: one row a speaker.
    count : int
        How many to keep, at most as many as there are impostors.
    jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    np.ndarray of float64, shape (n_rows, count)
        Falling; of products in float32.

    Raises
    ------
    DataError
        If a row's speaker is not on both sides, or there are fewer impostors.
    """
    if not 1 <= count < len(gallery.names):
        raise DataError(f"expected to keep 1 to {len(gallery.names) - 1} impostor scores, got {count}")
    enrolled = {name: row for row, name in enumerate(gallery.names.tolist())}
    tested = {name: row for row, name in enumerate(trials.names.tolist())}
    absent = [name for name in ranks.speakers.tolist() if name not in enrolled or name not in tested]
    if absent:
        raise DataError(f"expected the vectors that the ranks were made from, got none of {absent[0]!r}")
    owners = np.array([enrolled[name] for name in ranks.speakers.tolist()], np.int64)
    rows = np.array([tested[name] for name in ranks.speakers.tolist()], np.int64)
    unit = to_unit(trials.vectors[rows], trials.norms[rows]).astype(np.float32)
    work = partial(_largest, gallery, unit, owners, count)
    parts = ordered_map(work, chunk_bounds(len(rows), _TRIALS), jobs=jobs, threads=True)
    return np.concatenate(list(parts)).astype(np.float64)


def _largest(
    gallery: SpeakerVectors,
    unit: NDArray[np.float32],
    owners: NDArray[np.int64],
    count: int,
    bounds: tuple[int, int],
) -> NDArray[np.float32]:
    start, stop = bounds
    best = np.full((stop - start, count), -np.inf, np.float32)
    for first, last in chunk_bounds(len(gallery.names), _GALLERY):
        vectors = np.asarray(gallery.vectors[first:last] / gallery.norms[first:last, None], np.float32)
        similarity = unit[start:stop] @ vectors.T
        own = np.flatnonzero((owners[start:stop] >= first) & (owners[start:stop] < last))
        similarity[own, owners[start:stop][own] - first] = -np.inf
        both = np.concatenate([best, similarity], axis=1)
        best = -np.partition(-both, count - 1, axis=1)[:, :count]
    return -np.sort(-best, axis=1)
