"""Posteriors of the factor of each segment: what training and extraction share.

A segment's supervector is m + T h with the prior h ~ N(0, I). In the space in which every Gaussian has the covariance
I, counts n_c and centred first-order sums f_c give

    L = I + sum_c n_c T_c' T_c,   b = sum_c T_c' f_c,   h | segment ~ N(L^-1 b, L^-1)

`posterior` is that. `block_posteriors` does the same for hundreds of segments: matrices are packed
(`spkver.vectors.packed`), and L of all segments is one product of counts and packed T_c' T_c. Whitening and centring of
the statistics are folded into the matrix, so the statistics are read as they are.

References
----------
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, part
from spkbase.errors import DataError
from spkbase.work import Array, Namespace, Work, chunk_bounds, one_blas_thread, use_engine
from spkver.mixture import Statistics
from spkver.vectors.packed import (
    diagonal_places,
    factor,
    invert,
    log_determinants,
    packed_length,
    solve,
    squares,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

COLUMNS, WIDE = 1280, 480  # columns of packed matrices, and of first-order sums, in one task
PIECE = 32  # segments whose matrices are factored in one task
_GROUP = 16  # components whose squares are taken in one task
_BLOCK_BYTES = 1 << 28  # of the statistics and packed matrices of a block of segments
_MOST_SEGMENTS = 512  # in a block
_MOST_FRAMES = 1e100  # of a component


def posterior(
    zeroth: Array, projected: Array, products: Array, *, xp: Namespace = np, place: Any = None
) -> tuple[Array, Array, Array]:
    """Return the posterior means and covariances of the factors of segments, and the determinants of their precisions.

        L = I + sum_c n_c T_c' T_c,   h = L^-1 b

    Parameters
    ----------
    zeroth : ndarray of shape (S, C)
        Counts n_c; float64, as all others, of NumPy or of a device's library.
    projected : ndarray of shape (S, R)
        b = sum_c T_c' f_c, with whitened f_c.
    products : ndarray of shape (C, R, R)
        T_c' T_c, with whitened T_c.
    xp : module
        Namespace of the arrays, after the array API standard.
    place : object, optional
        Where the library keeps them (`spkbase.work.Device`).

    Returns
    -------
    means : ndarray of shape (S, R)
    covariances : ndarray of shape (S, R, R)
        L^-1.
    log_determinants : ndarray of shape (S,)
        Of L.

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 1.

    Examples
    --------
    >>> means, covariances, _ = posterior(np.array([[3.0]]), np.array([[8.0]]), np.ones((1, 1, 1)))
    >>> means.tolist(), covariances.tolist()
    ([[2.0]], [[[0.25]]])
    """
    n_components, rank = products.shape[0], products.shape[1]
    precision = xp.reshape(zeroth @ xp.reshape(products, (n_components, rank * rank)), (-1, rank, rank))
    precision = precision + xp.eye(rank, dtype=xp.float64, **({} if place is None else {"device": place}))
    covariances = xp.linalg.inv(precision)
    means = xp.squeeze(covariances @ xp.expand_dims(projected, axis=2), axis=2)
    return means, covariances, xp.linalg.slogdet(precision)[1]


def likelihood_part(projected: Array, means: Array, log_determinants: Array, *, xp: Namespace = np) -> Array:
    """Return the part of each segment's log-likelihood that depends on T, in nat: (b' h - log det L) / 2, shape (S,).

    Parameters
    ----------
    projected, means : ndarray of shape (S, R)
        b and h, see `posterior`.
    log_determinants : ndarray of shape (S,)
    xp : module

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 2.
    """
    return (xp.sum(projected * means, axis=1) - log_determinants) / 2


@dataclass(frozen=True)
class PosteriorTerms:
    """What the posteriors of segments need of a matrix T, so that statistics are used as they are.

    Attributes
    ----------
    products : ndarray of shape (C, R (R + 1) / 2)
        Packed T_c' T_c.
    loadings : ndarray of shape (C * D, R)
        S_c^-T T_c for S_c S_c' the covariance of the component and T_c in the whitened space.
    offsets : ndarray of shape (C, R)
        m_c' S_c^-T T_c: what the centring takes from b for each frame of a component.
    """

    products: NDArray[np.float64]
    loadings: NDArray[np.float64]
    offsets: NDArray[np.float64]

    @property
    def rank(self) -> int:
        """Length of the factors, R."""
        return self.loadings.shape[1]


def posterior_terms(
    loadings: NDArray[np.float64],
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
    *,
    work: Work,
    products: bool = True,
) -> PosteriorTerms:
    """Return what posteriors need of a matrix, once for all segments.

    Parameters
    ----------
    loadings : ndarray of shape (C, D, R)
        T_c in the whitened space.
    means : ndarray of shape (C, D)
    factors : ndarray of shape (C, D) or (C, D, D)
        `spkver.mixture.whitening_factors`.
    work : spkbase.work.Work
    products : bool
        Without them only b can be had.
    """
    rank = loadings.shape[2]
    packed = np.empty((len(loadings) if products else 0, packed_length(rank)))
    groups = chunk_bounds(len(packed), _GROUP)
    share_out(work, lambda bounds: squares(loadings[slice(*bounds)], out=packed[slice(*bounds)]), groups)
    turned = np.swapaxes(factors, 1, -1)
    raw = loadings / factors[:, :, None] if factors.ndim == 2 else np.linalg.solve(turned, loadings)
    with one_blas_thread():
        offsets = np.matmul(means[:, None, :], raw)[:, 0]
    return PosteriorTerms(packed, np.ascontiguousarray(raw.reshape(-1, rank), np.float64), offsets)


@dataclass(frozen=True)
class Block:
    """Statistics of some segments, which are worked out together: in memory or in a file.

    Attributes
    ----------
    segments : ndarray of str of shape (n,)
    zeroth : ndarray or StoredArray of shape (n, C)
    first : ndarray or StoredArray of shape (n, C * D)
    """

    segments: NDArray
    zeroth: Rows
    first: Rows

    def counts(self) -> NDArray[np.float64]:
        """Return the zeroth order in float64; counts below 1e-100, whose products would be denormal, as 0."""
        zeroth = np.asarray(self.zeroth).astype(np.float64)
        zeroth[np.abs(zeroth) < 1e-100] = 0
        return zeroth


def block_bounds(n_segments: int, rank: int, width: int) -> list[tuple[int, int]]:
    """Return (start, stop) of blocks of segments: of like length, fixed by the data, small enough for the memory.

    Examples
    --------
    >>> block_bounds(2000, 400, 512 * 60)[:2]
    [(0, 334), (334, 668)]
    """
    most = max(PIECE, min(_MOST_SEGMENTS, _BLOCK_BYTES // (8 * packed_length(rank) + 4 * width)))
    n_blocks = -(-n_segments // most)
    return chunk_bounds(n_segments, -(-n_segments // max(1, n_blocks)))


def blocks_of(statistics: Statistics, rank: int, *, done: int = 0) -> Iterator[Block]:
    """Yield the blocks of `block_bounds`, but for the first `done`; nothing is read yet."""
    for start, stop in block_bounds(len(statistics), rank, statistics.first.shape[1])[done:]:
        rows = (part(array, start, stop) for array in (statistics.zeroth, statistics.first))
        yield Block(statistics.segments[start:stop], *rows)


def packed_room(statistics: Statistics, rank: int) -> NDArray[np.float64]:
    """Return memory for the packed matrices of any block: what is used again need not be cleared by the system."""
    bounds = block_bounds(len(statistics), rank, statistics.first.shape[1])
    return np.empty((max(stop - start for start, stop in bounds), packed_length(rank)))


def block_posteriors(
    block: Block, terms: PosteriorTerms, *, work: Work, variances: bool = False, room: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the posterior means (n, R) and variances (n, R), or nothing (n, 0), of a block of segments.

    Parameters
    ----------
    block : Block
    terms : PosteriorTerms
    work : spkbase.work.Work
        Its workers share the block; the result does not depend on their number.
    variances : bool
        Give the diagonals of L^-1.
    room : ndarray of shape (at least n, R (R + 1) / 2), optional
        `packed_room`.

    Raises
    ------
    DataError
        If statistics are not finite, or counts are below 0.
    """
    counts = block.counts()
    projected = project(block, counts, np.asarray(block.first), terms, work)
    matrices = precisions(counts, terms, work, room)

    def of_rows(bounds: tuple[int, int]) -> tuple[NDArray, NDArray]:
        rows = slice(*bounds)
        means, _ = solve_rows(matrices[rows], projected[rows], block.segments[rows])
        if not variances:
            return means, np.empty((len(means), 0))
        invert(matrices[rows])
        return means, matrices[rows][:, diagonal_places(terms.rank)]

    means, spreads = zip(*share_out(work, of_rows, chunk_bounds(len(counts), PIECE)), strict=True)
    return np.concatenate(means), np.concatenate(spreads)


def share_out(work: Work, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return ``function(item)`` of each item from threads of this process, so that it may fill arrays of its caller.

    The parts of a block are hundreds of megabytes: to send them to other processes would take longer than the work.
    """
    with use_engine("threads"):
        return list(work.on_cores().map(function, items))


def project(
    block: Block, counts: NDArray[np.float64], first: NDArray, terms: PosteriorTerms, work: Work
) -> NDArray[np.float64]:
    """Return b = sum_c T_c' f_c of each segment, shape (n, R), from statistics as they are; checks these."""

    def of_columns(bounds: tuple[int, int]) -> NDArray[np.float64]:
        # with the segments along the rows the product is a third faster where the rank is low
        columns = slice(*bounds)
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found below
            return terms.loadings[columns].T @ first[:, columns].astype(np.float64).T

    parts = share_out(work, of_columns, chunk_bounds(first.shape[1], WIDE))
    with np.errstate(invalid="ignore", over="ignore"), one_blas_thread():
        projected = reduce(np.add, parts).T - counts @ terms.offsets
    return checked_projection(projected, counts, block.segments)


def checked_projection(projected: NDArray[np.float64], counts: NDArray[np.float64], segments: NDArray) -> NDArray:
    """Return b (n, R) as it is; raise DataError that names the segment where it, or a count (n, C), cannot be."""
    for good, what in (
        (np.isfinite(projected).all(axis=1) & np.isfinite(counts).all(axis=1), "are not finite"),
        (~(counts < 0).any(axis=1), "have counts below 0"),
        ((counts < _MOST_FRAMES).all(axis=1), "have counts too large to be computed with"),
    ):
        if not good.all():
            name = str(segments[np.argmin(good)])
            raise DataError(f"the statistics of segment {name!r} {what}", remedy="compute the statistics again")
    return projected


def precisions(
    counts: NDArray[np.float64], terms: PosteriorTerms, work: Work, room: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return L = I + sum_c n_c T_c' T_c of each segment, packed, shape (n, R (R + 1) / 2)."""
    shape = len(counts), packed_length(terms.rank)
    matrices = np.empty(shape) if room is None else room[: len(counts)]

    def fill(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        np.matmul(counts, terms.products[:, columns], out=matrices[:, columns])

    share_out(work, fill, chunk_bounds(shape[1], COLUMNS))
    matrices[:, diagonal_places(terms.rank)] += 1
    return matrices


def solve_rows(
    matrices: NDArray[np.float64], projected: NDArray[np.float64], segments: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return h = L^-1 b (n, R) and `likelihood_part` (n,); packed precisions L are replaced by their factors."""
    good = factor(matrices)
    if not good.all():
        text = f"the statistics of segment {str(segments[np.argmin(good)])!r} are too large to be computed with"
        raise DataError(text, remedy="compute the statistics again")
    means = projected.copy()
    solve(matrices, means)
    return means, likelihood_part(projected, means, log_determinants(matrices))
