"""Nuisance attribute projection: remove the directions in which sessions vary.

**Products of long vectors, summed in float64: blocks of rows and columns, in memory or in files.**

No float64 copy of the vectors is made: a tile of rows is taken, and of it some thousand dimensions at a time.

References
----------
W. M. Campbell, D. E. Sturim, D. A. Reynolds and A. Solomonoff, "SVM based speaker verification using a GMM supervector
kernel and NAP variability compensation", ICASSP 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows, fill_rows, part
from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.vectors import Supervectors, vectors_of

_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_TILE = 256  # vectors of either side of a task


def inner_products(vectors: Rows, others: Rows) -> NDArray[np.float64]:
    """Return the inner products of two sets of vectors, in this thread: for what is itself a task.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, D)
    others : ndarray or StoredArray of shape (M, D)

    Returns
    -------
    ndarray of shape (N, M)
        Products and sums in float64.
    """
    left = Tile(np.asarray(vectors), 0)
    bounds = chunk_bounds(len(others), _TILE)
    products = [tile_product((left, Tile(part(others, start, stop), start))) for start, stop in bounds]
    return np.hstack([np.empty((len(vectors), 0)), *products])


@dataclass(frozen=True)
class GroupMeans:
    """Means that are subtracted from the rows of a matrix: each row's group has one.

    Attributes
    ----------
    means : ndarray of shape (G, D)
    groups : ndarray of int64 of shape (N,)
        Group of each row.
    """

    means: NDArray
    groups: NDArray[np.int64]


@dataclass(frozen=True)
class Tile:
    """Some rows of a matrix, and the number of the first of them."""

    rows: Rows
    start: int

    def columns(self, bounds: slice, centre: GroupMeans | None) -> NDArray[np.float64]:
        """Return some columns in float64, less the means of the rows' groups."""
        block = self.rows[:, bounds]
        if centre is not None:
            block = block - centre.means[centre.groups[self.start : self.start + len(self.rows)], bounds]
        return block.astype(np.float64)


def tile_product(tiles: tuple[Tile, Tile | None], centre: GroupMeans | None = None) -> NDArray[np.float64]:
    """Return the inner products of the rows of two tiles, or of one with itself where the second is None.

    Parameters
    ----------
    tiles : tuple of Tile and (Tile or None)
        Rows (n, D) and (m, D).
    centre : GroupMeans, optional
        Subtracted from the rows first.

    Returns
    -------
    ndarray of shape (n, m)
    """
    left, right = tiles
    left = Tile(np.asarray(left.rows), left.start)
    right = None if right is None else Tile(np.asarray(right.rows), right.start)
    total = np.zeros((len(left.rows), len((right or left).rows)))
    for start, stop in chunk_bounds(left.rows.shape[1], _COLUMNS):
        block = left.columns(slice(start, stop), centre)
        total += block @ (block if right is None else right.columns(slice(start, stop), centre)).T
    return total


def gram_matrix(
    vectors: Rows, others: Rows | None = None, *, centre: GroupMeans | None = None, work: Work = ALL_CORES
) -> NDArray[np.float64]:
    """Return the inner products of two sets of vectors, in float64 and without a float64 copy of them.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, D)
        Those in a file are read by blocks.
    others : ndarray or StoredArray of shape (M, D), optional
        The same vectors by default: half of the tiles are computed then.
    centre : GroupMeans, optional
        Subtracted from the rows first.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    ndarray of shape (N, M)
    """
    right_rows = vectors if others is None else others
    places = [
        (left, right)
        for left in chunk_bounds(len(vectors), _TILE)
        for right in chunk_bounds(len(right_rows), _TILE)
        if others is not None or right <= left
    ]
    tiles = (
        (
            Tile(part(vectors, *left), left[0]),
            None if others is None and left == right else Tile(part(right_rows, *right), right[0]),
        )
        for left, right in places
    )
    gram = np.empty((len(vectors), len(right_rows)))
    products = work.map(partial(tile_product, centre=centre), tiles, total=len(places))
    for (left, right), product in zip(places, products, strict=True):
        gram[slice(*left), slice(*right)] = product
        if others is None and left != right:
            gram[slice(*right), slice(*left)] = product.T
    return gram


def combine_rows(
    weights: NDArray[np.float64], vectors: Rows, *, centre: GroupMeans | None = None
) -> NDArray[np.float64]:
    """Return weighted sums of vectors, weights @ vectors, in float64; this thread alone computes.

    Parameters
    ----------
    weights : ndarray of shape (K, N)
    vectors : ndarray or StoredArray of shape (N, D)
    centre : GroupMeans, optional
        Subtracted from the rows first.

    Returns
    -------
    ndarray of shape (K, D)
    """
    combined = np.zeros((len(weights), vectors.shape[1]))
    with one_blas_thread():
        for start, stop in chunk_bounds(len(vectors), _TILE):
            tile = Tile(np.asarray(part(vectors, start, stop)), start)
            for bounds in chunk_bounds(vectors.shape[1], _COLUMNS):
                combined[:, slice(*bounds)] += weights[:, start:stop] @ tile.columns(slice(*bounds), centre)
    return combined


_ROWS = 64  # vectors that are projected together


@dataclass(frozen=True)
class NapConfig:
    """Which directions are removed.

    Attributes
    ----------
    rank : int
        How many; 0 leaves NAP out.
    scatter : str
        "total": the largest directions of the second moment of all vectors, neither centred nor by speaker, as in
        SIDEKIT's tutorial; "within": of the scatter within speakers, as in Campbell et al.
    list : str
        The list that the directions are estimated on: "background" (the tutorial's) or "nap".
    step : int
        The list "nap" takes every `step`-th recording of the UBM list ...
    size : int or None
        ... and at most so many of them.
    """

    rank: int = 40
    scatter: str = "total"
    list: str = "background"
    step: int = 7
    size: int | None = None

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise ConfigError(f"nap.rank is {self.rank}: expected a whole number of at least 0")
        if self.scatter not in ("total", "within"):
            raise ConfigError(f"nap.scatter is {self.scatter!r}: expected one of total, within")
        if self.list not in ("background", "nap"):
            raise ConfigError(f"nap.list is {self.list!r}: expected one of background, nap")


def remove_directions(vectors: NDArray, directions: NDArray) -> NDArray:
    """Return vectors without their part in the span of orthonormal directions: x - N^T N x.

    Parameters
    ----------
    vectors : ndarray of shape (n, D)
        In float64, since what remains is small beside what is removed: in float32 the rounding of the large part would
        be felt in the small one.
    directions : ndarray of shape (k, D)
        Orthonormal rows N.

    Returns
    -------
    ndarray of shape (n, D)

    References
    ----------
    Campbell, Sturim, Reynolds and Solomonoff, see the module.
    """
    return vectors - (vectors @ directions.T) @ directions


def fit_nap(
    vectors: Supervectors | Rows,
    *,
    rank: int,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray | None = None,
    work: Work = ALL_CORES,
) -> Projection:
    """Find the directions of largest scatter.

    They are the first eigenvectors of X^T X for the (S, D) matrix X of all vectors. D is much larger than S, so they
    come from the Gram matrix G = X X^T: where G u = l u, X^T u / sqrt(l) is one of them, of length 1. X is neither
    centred nor sorted by speaker ("total"), or less the mean of each speaker ("within").

    Parameters
    ----------
    vectors : Supervectors, or ndarray or StoredArray of shape (S, D)
        Of S sessions; those in a file are read by blocks.
    rank : int
        Number of directions.
    scatter : str
        "total" or "within", see `NapConfig`.
    speakers : sequence of str, of length S
        For the scatter within speakers; by default the models of supervectors.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    Projection

    Raises
    ------
    DataError
        If the scatter within speakers is asked for, and there is not one speaker for each session.
    ConfigError
        If the sessions do not span that many directions.
    """
    speakers = getattr(vectors, "models", None) if speakers is None else speakers
    vectors = vectors_of(vectors)
    n_sessions, dimension = vectors.shape
    check_rank(rank, n_sessions, scatter=scatter, speakers=speakers)
    centre = _speaker_means(vectors, np.asarray(speakers, object)) if scatter == "within" else None
    gram = gram_matrix(vectors, centre=centre, work=work) / dimension
    with one_blas_thread():  # results must not depend on the machine's cores
        values, coordinates = np.linalg.eigh(gram)
    values, coordinates = values[::-1][:rank], coordinates[:, ::-1][:, :rank]
    smallest = n_sessions * np.finfo(vectors.dtype).eps
    if rank and not values[-1] > values[0] * smallest:
        n_spanned = int((values > values[0] * smallest).sum())
        raise ConfigError(
            f"nap.rank is {rank}, but the {n_sessions} sessions span only {n_spanned} directions", remedy="lower it"
        )
    weights = (coordinates / np.sqrt(dimension * values)).T
    return Projection(combine_rows(weights, vectors, centre=centre))


@one_line
@dataclass(frozen=True)
class Projection:
    """Removes a subspace, see `remove_directions`; vectors keep their dtype.

    Attributes
    ----------
    directions : ndarray of shape (k, D)
        Orthonormal rows, the largest scatter first.
    """

    directions: NDArray

    @overload
    def __call__(self, vectors: Supervectors, *, work: Work = ...) -> Supervectors: ...

    @overload
    def __call__(self, vectors: Rows, *, work: Work = ...) -> NDArray: ...

    def __call__(self, vectors: Supervectors | Rows, *, work: Work = ALL_CORES) -> Supervectors | NDArray:
        """Project supervectors or vectors (N, D), read by blocks if they are in a file, by workers."""
        if isinstance(vectors, Supervectors):
            return vectors.with_vectors(self(vectors.vectors, work=work))
        vectors = vectors_of(vectors)
        projected = np.empty(vectors.shape, vectors.dtype)
        bounds = chunk_bounds(len(vectors), _ROWS)
        blocks = work.map(self.of_rows, (part(vectors, *block) for block in bounds), total=len(bounds))
        fill_rows([projected], ((block,) for block in blocks))
        return projected

    def of_rows(self, vectors: Rows | SelectedRows) -> NDArray:
        """Project the few vectors (n, D) that were asked for, in this thread."""
        vectors = np.asarray(vectors)
        projected = np.empty_like(vectors)
        for start, stop in chunk_bounds(len(vectors), _ROWS):
            block = vectors[start:stop].astype(np.float64)
            projected[start:stop] = remove_directions(block, self.directions)
        return projected


def check_rank(
    rank: int, n_sessions: int, *, scatter: str = "total", speakers: Sequence[str] | NDArray | None = None
) -> None:
    """Raise ConfigError if so many sessions cannot span `rank` directions; cheap, for the start of a recipe."""
    if scatter == "within":
        if speakers is None or len(speakers) != n_sessions:
            raise DataError(f"the scatter within speakers needs one speaker for each of the {n_sessions} sessions")
        n_speakers = len(set(speakers))
        limit = n_sessions - n_speakers
        why = f"{n_sessions} sessions of {n_speakers} speakers differ in only {limit} directions within speakers"
    else:
        limit, why = n_sessions, f"{n_sessions} sessions span at most {n_sessions} directions"
    if rank > limit:
        raise ConfigError(f"nap.rank is {rank}, but {why}", remedy="lower it or give more sessions")


def _speaker_means(vectors: Rows, speakers: NDArray) -> GroupMeans:
    names = sorted(set(speakers))
    means = [vectors[np.flatnonzero(speakers == name)].mean(axis=0, dtype=np.float64) for name in names]
    number = {name: group for group, name in enumerate(names)}
    groups = np.array([number[name] for name in speakers], np.int64)
    return GroupMeans(np.stack(means).astype(vectors.dtype), groups)
