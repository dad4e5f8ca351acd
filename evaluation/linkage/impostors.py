"""The largest impostor scores of each trial: what a tail is fitted to beyond the gallery."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import to_unit
from spkbase.arrays import Rows, part, stored_rows
from spkbase.errors import DataError
from spkbase.work import chunk_bounds, ordered_map, ships_items

if TYPE_CHECKING:
    from evaluation.embeddings import SpeakerVectors
    from evaluation.linkage.table import Ranks

KEPT = 21
_TRIALS, _GALLERY = 512, 4096


def largest_impostor_scores(
    gallery: SpeakerVectors, trials: SpeakerVectors, ranks: Ranks, *, count: int = KEPT, jobs: int | None = None
) -> NDArray[np.float64]:
    """Return the largest cosines of each trial with enrolled speakers other than its owner.

    Parameters
    ----------
    gallery, trials : SpeakerVectors
        One vector a speaker; the ones that the ranks were made from.
    ranks : Ranks
        Says which trials, in which order: one row a speaker.
    count : int
        How many to keep, at most as many as there are impostors.
    jobs : int, optional
        Number of workers; all cores by default. The result does not depend on it.

    Returns
    -------
    ndarray of float64 of shape (n_rows, count)
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
    bounds = chunk_bounds(len(gallery.names), _GALLERY)
    vectors = stored_rows(gallery.vectors) if ships_items() else gallery.vectors
    parts = ((start, part(vectors, start, stop), gallery.norms[start:stop]) for start, stop in bounds)
    best = np.full((len(rows), count), -np.inf, np.float32)
    search = partial(_largest, unit, owners, count)
    for largest in ordered_map(search, parts, jobs=jobs, threads=True, total=len(bounds)):
        best = _keep_largest(np.concatenate([best, largest], axis=1), count)
    return -np.sort(-best.astype(np.float64), axis=1)


def _largest(
    unit: NDArray[np.float32], owners: NDArray[np.int64], count: int, item: tuple[int, Rows, NDArray[np.float64]]
) -> NDArray[np.float32]:
    """Find the largest within a part of the gallery, that is given with its first row and lengths."""
    first, rows, norms = item
    vectors = np.asarray(np.asarray(rows) / norms[:, None], np.float32)
    largest = np.full((len(unit), count), -np.inf, np.float32)
    for start, stop in chunk_bounds(len(unit), _TRIALS):
        similarity = unit[start:stop] @ vectors.T
        owned = np.flatnonzero((owners[start:stop] >= first) & (owners[start:stop] < first + len(vectors)))
        similarity[owned, owners[start:stop][owned] - first] = -np.inf
        kept = min(count, len(vectors))
        largest[start:stop, :kept] = _keep_largest(similarity, kept)
    return largest


def _keep_largest(values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """The largest of each row, in no order."""
    return values if count == values.shape[1] else -np.partition(-values, count - 1, axis=1)[:, :count]
