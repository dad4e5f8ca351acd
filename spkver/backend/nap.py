"""Nuisance attribute projection: remove the directions in which sessions vary.

Products of long vectors, in memory or in files, are summed in float64, by blocks of rows and columns. No float64 copy
of the vectors is made: a few thousand dimensions of a tile of rows are converted at a time.

References
----------
W. M. Campbell, D. E. Sturim, D. A. Reynolds and A. Solomonoff, "SVM based speaker verification using a GMM supervector
kernel and NAP variability compensation", ICASSP 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, starmap
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import check_index, vectors_of
from spkbase.arrays import ComputedRows, Floats, Rows, SelectedRows, fill_rows, part
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError
from spkbase.rounding import is_negligible
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.vectors import Supervectors

_COLUMNS = 4096  # number of dimensions converted to float64 at a time
_TILE = 256  # number of vectors of either side in a task

_ROWS = 64  # number of vectors projected together
_LARGE = 2000  # number of sessions above which only the largest eigenvalues are computed


def inner_products(vectors: Rows, others: Rows) -> Floats:
    """Return the inner products of vectors (N, D) and (M, D), shape (N, M), in this thread, for callers within a task.

    Products and sums are float64.
    """
    rows = np.asarray(vectors)
    products = [np.empty((len(rows), 0))]
    for bounds in chunk_bounds(len(others), _TILE):
        products.append(_product((rows, part(others, *bounds))))
    return np.hstack(products)


def gram_matrix(vectors: Rows, *, work: Work = ALL_CORES) -> Floats:
    """Return the inner products (N, N) of vectors with each other, in float64 and without a float64 copy of them.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, D)
        The vectors; those in a file are read by blocks.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    ndarray of shape (N, N)
    """
    # only the lower triangle, whose columns do not come after its rows
    tiles = [*combinations_with_replacement(chunk_bounds(len(vectors), _TILE), 2)]

    def sides(columns: tuple[int, int], rows: tuple[int, int]) -> tuple[Rows, Rows | None]:
        if rows == columns:
            return part(vectors, *rows), None
        return part(vectors, *rows), part(vectors, *columns)

    gram = np.empty((len(vectors), len(vectors)))
    products = work.map(_product, starmap(sides, tiles), total=len(tiles))
    for (columns, rows), product in zip(tiles, products, strict=True):
        gram[slice(*rows), slice(*columns)] = product
        if rows != columns:
            gram[slice(*columns), slice(*rows)] = product.T
    return gram


@one_blas_thread()
def combine_rows(weights: Floats, vectors: Rows, *, onto: Floats | None = None) -> Floats:
    """Return weighted sums of vectors, weights (K, N) @ vectors (N, D), in float64, added to `onto` if it is given."""
    combined = onto
    if combined is None:
        combined = np.zeros((len(weights), vectors.shape[1]))
    for start, stop in chunk_bounds(len(vectors), _TILE):
        rows = np.asarray(part(vectors, start, stop))
        for first, last in chunk_bounds(vectors.shape[1], _COLUMNS):
            block = rows[:, first:last].astype(np.float64)
            combined[:, first:last] += weights[:, start:stop] @ block
    return combined


@dataclass(frozen=True)
class NapConfig:
    """Which directions are removed.

    Attributes
    ----------
    rank : int
        Number of directions; 0 leaves NAP out.
    scatter : str
        "total": the largest directions of the second moment of all vectors, neither centred nor by speaker, as in
        SIDEKIT's tutorial; "within": those of the scatter within speakers, as in Campbell et al.
    list : str
        The list on which the directions are estimated: "background" (the tutorial's) or "nap".
    step : int
        The list "nap" takes every `step`-th recording of the UBM list.
    size : int or None
        Largest number of recordings of the list "nap".
    """

    rank: int = 40
    scatter: str = "total"
    list: str = "background"
    step: int = 7
    size: int | None = None

    def __post_init__(self) -> None:
        choices = {"scatter": ("total", "within"), "list": ("background", "nap")}
        check_values("nap", self, least={"rank": 0}, choices=choices)


def remove_directions(vectors: NDArray[Any], directions: NDArray[Any]) -> NDArray[Any]:
    """Return vectors without their component in the span of orthonormal directions: x - N^T N x.

    Parameters
    ----------
    vectors : ndarray of shape (n, D)
        In float64, since what remains is small beside what is removed: in float32 the rounding of the large part would
        disturb the small one.
    directions : ndarray of shape (k, D)
        Orthonormal rows N.

    Returns
    -------
    ndarray of shape (n, D)

    References
    ----------
    Campbell, Sturim, Reynolds and Solomonoff, see the module.
    """
    projected: NDArray[Any] = vectors - (vectors @ directions.T) @ directions
    return projected


def fit_nap(
    vectors: Supervectors | Rows,
    *,
    rank: int,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray[Any] | None = None,
    work: Work = ALL_CORES,
) -> Projection:
    """Find the directions of largest scatter.

    They are the first eigenvectors of X^T X for the (S, D) matrix X of all vectors. D is much larger than S, so they
    come from the Gram matrix G = X X^T: where G u = l u, X^T u / sqrt(l) is one of them, of length 1. X is neither
    centred nor sorted by speaker ("total"), or minus the mean of each speaker ("within").

    Parameters
    ----------
    vectors : Supervectors, or ndarray or StoredArray of shape (S, D)
        Vectors of S sessions; files are read in blocks.
    rank : int
        Number of directions.
    scatter : str
        "total" or "within", see `NapConfig`.
    speakers : sequence of str, of length S
        Speaker of each session, for the scatter within speakers; by default the models of supervectors.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    Projection

    Raises
    ------
    DataError
        If the scatter within speakers is requested and the number of speakers differs from that of the sessions.
    ConfigError
        If the sessions do not span that many directions.
    """
    if isinstance(vectors, Supervectors):
        if speakers is None:
            speakers = vectors.models
        vectors = vectors.vectors
    check_index(vectors=vectors, speakers=speakers)
    rows: Rows = vectors_of(vectors)
    n_sessions, dimension = rows.shape
    check_rank(rank, n_sessions, scatter=scatter, speakers=speakers)
    size = 0.0
    if scatter == "within":
        whole = rows
        groups = np.unique(np.asarray(speakers, object), return_inverse=True)[1]
        by_group = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        means = np.stack([whole[members].mean(axis=0, dtype=np.float64) for members in by_group])
        means = means.astype(whole.dtype)
        size = float(np.sqrt(np.square(means, dtype=np.float64).mean(axis=1).max()))
        less_means = ComputedRows(
            whole.shape, lambda places: whole[places] - means[groups[places]], whole.dtype
        )
        rows = cast("Rows", less_means)
    values, coordinates = _largest_eigenvalues(gram_matrix(rows, work=work) / dimension, rank)
    if is_negligible(np.sqrt(max(values[0], 0.0)), size * np.sqrt(n_sessions)):
        values[:] = 0.0  # only rounding errors are left of equal sessions
    smallest = n_sessions * np.finfo(rows.dtype).eps
    if rank and not values[-1] > values[0] * smallest:
        n_spanned = int((values > values[0] * smallest).sum())
        raise ConfigError(
            f"nap.rank is {rank}, but the {n_sessions} sessions span only {n_spanned} directions",
            remedy="lower it",
        )
    weights = (coordinates / np.sqrt(dimension * values)).T
    return Projection(combine_rows(weights, rows))


@one_line
@dataclass(frozen=True)
class Projection:
    """A projection that removes a subspace, see `remove_directions`; vectors keep their dtype.

    Attributes
    ----------
    directions : ndarray of shape (k, D)
        Orthonormal rows, the largest scatter first.
    """

    directions: NDArray[Any]

    def __call__(self, vectors: Any, *, work: Work = ALL_CORES) -> Any:
        """Project supervectors or vectors (N, D) by workers; vectors in a file are read by blocks."""
        if isinstance(vectors, Supervectors):
            return replace(vectors, vectors=self(vectors.vectors, work=work))
        projected = np.empty(vectors.shape, vectors.dtype)
        bounds = chunk_bounds(len(vectors), _ROWS)
        blocks = (part(vectors, *block) for block in bounds)
        done = work.map(self.of_rows, blocks, total=len(bounds))
        fill_rows([projected], ((block,) for block in done))
        return projected

    def of_rows(self, vectors: Rows | SelectedRows) -> NDArray[Any]:
        """Project a few vectors (n, D), in this thread."""
        vectors = np.asarray(vectors)
        projected = np.empty_like(vectors)
        for start, stop in chunk_bounds(len(vectors), _ROWS):
            block = vectors[start:stop].astype(np.float64)
            projected[start:stop] = remove_directions(block, self.directions)
        return projected


def projected(vectors: Rows | SelectedRows, projection: Projection | None) -> NDArray[Any]:
    """Return a few vectors (n, D) in memory, projected if there is a projection."""
    if projection is None:
        return np.asarray(vectors)
    return projection.of_rows(vectors)


def check_rank(
    rank: int,
    n_sessions: int,
    *,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray[Any] | None = None,
) -> None:
    """Raise a ConfigError, before any vector is computed, if the sessions cannot span `rank` directions."""
    if scatter == "within":
        if speakers is None or len(speakers) != n_sessions:
            raise DataError(
                f"the scatter within speakers needs one speaker for each of the {n_sessions} sessions"
            )
        n_speakers = len(set(speakers))
        limit = n_sessions - n_speakers
        why = f"{n_sessions} sessions of {n_speakers} speakers differ in only {limit} directions within speakers"
    else:
        limit = n_sessions
        why = f"{n_sessions} sessions span at most {n_sessions} directions"
    if rank > limit:
        raise ConfigError(f"nap.rank is {rank}, but {why}", remedy="lower it or give more sessions")


def _largest_eigenvalues(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, the largest first, and their vectors (N, count).

    A few of a large matrix are found by Lanczos' method, much faster than all.
    """
    from scipy.sparse.linalg import ArpackError, eigsh

    with one_blas_thread():  # results must not depend on the machine's cores
        if 0 < count < len(matrix) / 10 and len(matrix) > _LARGE:
            start = np.random.default_rng(0).standard_normal(len(matrix))
            with suppress(ArpackError):  # such as for a matrix of zeros
                values, vectors = eigsh(matrix, count, which="LA", v0=start)
                return values[::-1], vectors[:, ::-1]
        values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _product(tile: tuple[Rows, Rows | None]) -> Floats:
    """Return the inner products of rows (n, D) and (m, D), or of the former with themselves."""
    rows = np.asarray(tile[0])
    others = rows
    if tile[1] is not None:
        others = np.asarray(tile[1])
    total = np.zeros((len(rows), len(others)))
    for start, stop in chunk_bounds(rows.shape[1], _COLUMNS):
        block = rows[:, start:stop].astype(np.float64)
        # the product of a block with itself is exactly symmetric, and takes half the time
        other = block
        if others is not rows:
            other = others[:, start:stop].astype(np.float64)
        total += block @ other.T
    return total
