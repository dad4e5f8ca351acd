"""Inner products of exactly the pairs of a list: what every scorer of vectors ends in.

A score of a model and a segment is written as one inner product of a row that belongs to the model and a row that
belongs to the segment, whatever stands in these rows; so a list of trials is a few products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.backend.trial_pieces import trial_pieces

_DENSE = 8  # a list with at least this part of all pairs is taken from the full product
_CELLS = 1 << 22  # of the full product that are held at a time
_PAIRED = 1 << 21  # numbers of either side that are multiplied pair by pair


@dataclass(frozen=True, eq=False)
class Pairs:
    """Codes of the models and of the segments of n trials, int64 of shape (n,)."""

    models: NDArray[np.int64]
    segments: NDArray[np.int64]


def pair_products(
    left: NDArray[np.float64], right: NDArray[np.float64], models: NDArray, segments: NDArray
) -> NDArray[np.float64]:
    """Return left[models[i]] . right[segments[i]] for each pair i.

    Parameters
    ----------
    left : ndarray of shape (M, Q)
        A row for each model.
    right : ndarray of shape (T, Q)
        A row for each segment.
    models, segments : ndarray of int of shape (n,)
        Rows of each pair. A list that holds a good part of all pairs costs the product of all; one that holds few,
        the products of its blocks (the same segments for several models) and the pairs that are left.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    DataError
        If a code is out of its range, or a product is not finite.
    """
    pairs = Pairs(check_codes(models, len(left), "models"), check_codes(segments, len(right), "segments"))
    if len(pairs.models) != len(pairs.segments):
        raise DataError(
            f"expected a model and a segment for each trial, got {len(pairs.models)} and {len(pairs.segments)}"
        )
    dense = len(pairs.models) * _DENSE >= len(left) * len(right)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        scores = (_of_all_pairs if dense else _of_blocks)(left, right, pairs)
        finite = np.isfinite(scores.sum())
    bad = 0 if finite else int(scores.size - np.isfinite(scores).sum())
    if bad:
        raise DataError(
            f"{bad} of {scores.size} scores are not finite: vectors or parameters are far too large",
            remedy="scale the vectors, to length 1 for example, before the model is trained",
        )
    return scores


def check_codes(codes: NDArray, n_rows: int, what: str) -> NDArray[np.int64]:
    """Return codes as int64; DataError where they are none, or out of the range of `n_rows`."""
    column = np.asarray(codes)
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise DataError(f"expected the codes of {what} as whole numbers, got {column.dtype} of shape {column.shape}")
    if column.size and (column.min() < 0 or column.max() >= n_rows):
        raise DataError(f"expected codes of {what} from 0 to {n_rows - 1}, got {column.min()} to {column.max()}")
    return column.astype(np.int64, copy=False)


def _of_all_pairs(left: NDArray[np.float64], right: NDArray[np.float64], pairs: Pairs) -> NDArray[np.float64]:
    if _is_grid(pairs, len(left), len(right)):
        return (left @ right.T).ravel()
    bounds = chunk_bounds(len(left), max(1, _CELLS // len(right)))
    if len(bounds) == 1:
        return _taken(left @ right.T, pairs.models, pairs.segments)
    order = np.argsort(pairs.models, kind="stable")
    places = np.searchsorted(pairs.models[order], [start for start, _ in bounds] + [len(left)])
    scores = np.empty(len(order))
    for (start, stop), first, last in zip(bounds, places[:-1], places[1:], strict=True):
        rows = order[first:last]
        scores[rows] = _taken(left[start:stop] @ right.T, pairs.models[rows] - start, pairs.segments[rows])
    return scores


def _is_grid(pairs: Pairs, n_models: int, n_segments: int) -> bool:
    """Return whether the list holds all pairs, model after model: its scores are then the product as it is."""
    if len(pairs.models) != n_models * n_segments:
        return False
    shape = n_models, n_segments
    return bool(
        (pairs.segments.reshape(shape) == np.arange(n_segments)).all()
        and (pairs.models.reshape(shape) == np.arange(n_models)[:, None]).all()
    )


def _taken(product: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    places = rows * product.shape[1]
    places += columns
    return product.take(places, mode="wrap")  # the codes were checked; this mode does not do it again


def _of_blocks(left: NDArray[np.float64], right: NDArray[np.float64], pairs: Pairs) -> NDArray[np.float64]:
    scores = np.empty(len(pairs.models))
    for piece in trial_pieces(pairs, paired=max(1, _PAIRED // left.shape[1])):
        if piece.ndim == 2:
            scores[piece] = left[pairs.models[piece[:, 0]]] @ right[pairs.segments[piece[0]]].T
        else:
            scores[piece] = np.einsum("ij,ij->i", left[pairs.models[piece]], right[pairs.segments[piece]])
    return scores
