"""Nuisance attribute projection: remove the directions in which sessions vary.

References
----------
W. M. Campbell, D. E. Sturim, D. A. Reynolds and A. Solomonoff, "SVM based speaker verification using a GMM supervector
kernel and NAP variability compensation", ICASSP 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spkbase.arrays import Rows, SelectedRows, part
from spkbase.errors import ConfigError, DataError
from spkbase.work import Device, chunk_bounds, ordered_map
from spkver.vectors import products_device as there

_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_TILE = 256  # vectors of either side of a task of the Gram matrix
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


@dataclass(frozen=True)
class Projection:
    """Removes a subspace: x - N N^T x.

    Attributes
    ----------
    directions : ndarray [shape=(k, D)]
        Orthonormal rows, the largest scatter first.
    """

    directions: NDArray

    def __call__(self, vectors: Rows, *, jobs: int | None = None, device: Device | None = None) -> NDArray:
        """Project vectors (N, D), read by blocks if they are in a file; they keep their dtype."""
        if device is not None:
            return there.Projector(self.directions, device)(vectors)
        projected = np.empty(vectors.shape, vectors.dtype)
        bounds = chunk_bounds(len(vectors), _ROWS)
        items = (part(vectors, *block) for block in bounds)
        work = partial(_project, directions=self.directions)
        blocks = ordered_map(work, items, jobs=jobs, threads=True, total=len(bounds))
        for (start, stop), block in zip(bounds, blocks, strict=True):
            projected[start:stop] = block
        return projected

    def of_rows(self, vectors: Rows | SelectedRows) -> NDArray:
        """Project the few vectors (n, D) that were asked for, in this thread.

        The product runs in float64: what remains is small beside what is removed, and in float32 the rounding of the
        large part would be felt in the small one.
        """
        return _project(vectors, self.directions)


def _project(vectors: Rows | SelectedRows, directions: NDArray) -> NDArray:
    vectors = np.asarray(vectors)
    projected = np.empty_like(vectors)
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        block = vectors[start:stop].astype(np.float64)
        projected[start:stop] = block - (block @ directions.T) @ directions
    return projected


def fit_nap(
    vectors: Rows,
    *,
    rank: int,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray | None = None,
    jobs: int | None = None,
    device: Device | None = None,
) -> Projection:
    """Find the directions of largest scatter.

    Parameters
    ----------
    vectors : ndarray or StoredArray [shape=(S, D)]
        Supervectors of S sessions; those in a file are read by blocks.
    rank : int
        Number of directions.
    scatter : str
        "total" or "within", see `NapConfig`.
    speakers : sequence of str, length S
        For the scatter within speakers.
    jobs : int, optional
        Worker threads; the result does not depend on it.
    device : spkbase.work.Device, optional
        Computes the products there instead, in float64 too.

    Returns
    -------
    Projection

    Raises
    ------
    ConfigError
        If the sessions do not span that many directions.
    """
    n_sessions = len(vectors)
    check_rank(rank, n_sessions, scatter=scatter, speakers=speakers)
    centre = _centre(vectors, np.asarray(speakers, object)) if scatter == "within" else None
    gram = _gram(vectors, None, centre, jobs, device) / vectors.shape[1]
    with threadpool_limits(1):  # one BLAS thread everywhere: results must not depend on the machine's cores
        values, coordinates = np.linalg.eigh(gram)
    values, coordinates = values[::-1][:rank], coordinates[:, ::-1][:, :rank]
    if rank and not values[-1] > values[0] * n_sessions * np.finfo(vectors.dtype).eps:
        spanned = int((values > values[0] * n_sessions * np.finfo(vectors.dtype).eps).sum())
        raise ConfigError(
            f"nap.rank is {rank}, but the {n_sessions} sessions span only {spanned} directions", remedy="lower it"
        )
    weights = (coordinates / np.sqrt(vectors.shape[1] * values)).T
    if device is not None:
        return Projection(there.combinations(weights, _Centred(vectors, centre), device))
    directions = np.zeros((rank, vectors.shape[1]))
    with threadpool_limits(1):
        for start, stop in chunk_bounds(n_sessions, _TILE):
            tile = np.asarray(part(vectors, start, stop))
            for columns in _column_blocks(vectors):
                directions[:, columns] += weights[:, start:stop] @ _wide(tile, start, columns, centre)
    return Projection(directions)


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


def gram_matrix(
    vectors: Rows, others: Rows | None = None, *, jobs: int | None = None, device: Device | None = None
) -> NDArray[np.float64]:
    """Inner products (N, M) of two sets of vectors, in float64 and without a float64 copy of them.

    Parameters
    ----------
    vectors : ndarray or StoredArray [shape=(N, D)]
        Those in a file are read by blocks.
    others : ndarray or StoredArray [shape=(M, D)], optional
        The same vectors by default.
    jobs : int, optional
        Workers; the result does not depend on it.
    device : spkbase.work.Device, optional
        Computes there instead, in float64 too.
    """
    return _gram(vectors, others, None, jobs, device)


def inner_products(vectors: Rows, others: Rows) -> NDArray[np.float64]:
    """As `gram_matrix`, in this thread: for what is itself a task."""
    rows = np.asarray(vectors)
    tiles = [_products((rows, 0, part(others, *tile), 0), None) for tile in chunk_bounds(len(others), _TILE)]
    return np.hstack([np.empty((len(rows), 0)), *tiles])


@dataclass(frozen=True)
class _Centre:
    """Means that are subtracted: those of the speakers (n, D), and the speaker of each session (S,)."""

    means: NDArray
    owner: NDArray[np.int64]


_Tiles = tuple[Rows, int, Rows | None, int]  # rows and their first number, of both sides; None for the same


@dataclass(frozen=True)
class _Centred:
    """Rows less the means of their speakers, a block at a time."""

    vectors: Rows
    centre: _Centre | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.vectors.shape

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, index: tuple[slice, slice]) -> NDArray:
        block = self.vectors[index]
        if self.centre is None:
            return block
        return block - self.centre.means[self.centre.owner[index[0]]][:, index[1]]


def _gram(
    vectors: Rows, others: Rows | None, centre: _Centre | None, jobs: int | None, device: Device | None
) -> NDArray[np.float64]:
    """Inner products, tile by tile; half of the tiles where both sides are the same."""
    if device is not None:
        return there.inner_products(_Centred(vectors, centre), others, device)
    n_left, n_right = len(vectors), len(vectors if others is None else others)
    places = [
        (left, right)
        for left in chunk_bounds(n_left, _TILE)
        for right in chunk_bounds(n_right, _TILE)
        if others is not None or right <= left
    ]
    items = (_tiles(vectors, others, left, right) for left, right in places)
    gram = np.empty((n_left, n_right))
    products = ordered_map(partial(_products, centre=centre), items, jobs=jobs, threads=True, total=len(places))
    for (left, right), product in zip(places, products, strict=True):
        gram[slice(*left), slice(*right)] = product
        if others is None and left != right:
            gram[slice(*right), slice(*left)] = product.T
    return gram


def _tiles(vectors: Rows, others: Rows | None, left: tuple[int, int], right: tuple[int, int]) -> _Tiles:
    same = others is None and left == right
    return (
        part(vectors, *left),
        left[0],
        None if same else part(vectors if others is None else others, *right),
        right[0],
    )


def _products(item: _Tiles, centre: _Centre | None) -> NDArray[np.float64]:
    left, right = np.asarray(item[0]), None if item[2] is None else np.asarray(item[2])
    product = np.zeros((len(left), len(left if right is None else right)))
    for columns in _column_blocks(left):
        first = _wide(left, item[1], columns, centre)
        product += first @ (first if right is None else _wide(right, item[3], columns, centre)).T
    return product


def _column_blocks(vectors: Rows) -> list[slice]:
    return [slice(*bounds) for bounds in chunk_bounds(vectors.shape[1], _COLUMNS)]


def _wide(rows: NDArray, start: int, columns: slice, centre: _Centre | None) -> NDArray[np.float64]:
    """Some columns of rows from number `start` on, centred, in float64."""
    block = rows[:, columns]
    if centre is not None:
        block = block - centre.means[centre.owner[start : start + len(rows)], columns]
    return block.astype(np.float64)


def _centre(vectors: Rows, speakers: NDArray) -> _Centre:
    """Mean of each speaker's vectors."""
    names = sorted(set(speakers))
    means = [vectors[np.flatnonzero(speakers == name)].mean(axis=0, dtype=np.float64) for name in names]
    place = {name: number for number, name in enumerate(names)}
    return _Centre(np.stack(means).astype(vectors.dtype), np.array([place[name] for name in speakers], np.int64))
