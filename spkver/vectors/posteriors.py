"""Posteriors of the factor of each segment: what training and extraction share.

A segment's supervector is m + T h with the prior h ~ N(0, I). In the space in which every Gaussian has the covariance
I, counts n_c and centred first-order sums f_c give

    L = I + sum_c n_c T_c' T_c,   b = sum_c T_c' f_c,   h | segment ~ N(L^-1 b, L^-1)

`posterior` is that. `block_sums` and `block_posteriors` do the same for hundreds of segments: matrices are packed
(`spkver.vectors.packed`), L of all segments is one product of counts and packed T_c' T_c, the sums of the E-step are
another. Whitening and centring of the statistics are folded into the matrix, so the statistics are read as they are.

References
----------
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, part
from spkbase.errors import DataError
from spkbase.work import Array, Namespace, Work, chunk_bounds, use_engine
from spkver.mixture import Statistics
from spkver.vectors.packed import (
    add_outer_products,
    diagonal_places,
    factor,
    invert,
    log_determinants,
    packed_length,
    solve,
    squares,
)

_BLOCK_BYTES = 1 << 28  # of the statistics and packed matrices of a block of segments
_MOST_SEGMENTS = 1024  # in a block
COLUMNS, _WIDE = 512, 2048  # of packed matrices, and of first-order sums, in one task
_PIECE = 32  # segments whose matrices are factored in one task
_GROUP = 16  # components whose squares are taken in one task


def posterior(zeroth: Array, projected: Array, products: Array, *, xp: Namespace = np) -> tuple[Array, Array, Array]:
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
    identity = xp.eye(rank, dtype=xp.float64, device=getattr(zeroth, "device", None))
    precision = precision + identity
    covariances = xp.linalg.inv(precision)
    covariances = (covariances + xp.matrix_transpose(covariances)) / 2
    means = xp.squeeze(covariances @ xp.expand_dims(projected, axis=2), axis=2)
    diagonal = xp.linalg.diagonal(xp.linalg.cholesky(precision))
    return means, covariances, 2 * xp.sum(xp.log(diagonal), axis=1)


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
    products : tuple of ndarray of shape (g, R (R + 1) / 2)
        Packed T_c' T_c of groups of components, which are C together.
    loadings : ndarray of shape (C, D, R)
        S_c^-T T_c for S_c S_c' the covariance of the component and T_c in the whitened space.
    means : ndarray of shape (C, D)
        Of the mixture.
    """

    products: tuple[NDArray[np.float64], ...]
    loadings: NDArray[np.float64]
    means: NDArray[np.float64]

    @property
    def rank(self) -> int:
        """Length of the factors, R."""
        return self.loadings.shape[2]

    def offsets(self) -> NDArray[np.float64]:
        """Return m_c' S_c^-T T_c of each component, shape (C, R): what its centring takes from b for each frame."""
        return np.matmul(self.means[:, None, :], self.loadings)[:, 0]


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
    groups = [loadings[start:stop] for start, stop in chunk_bounds(len(loadings) if products else 0, _GROUP)]
    with use_engine("threads"):  # to send the products would take longer than to make them
        packed = tuple(work.on_cores().map(squares, groups))
    turned = np.swapaxes(factors, 1, -1)
    raw = loadings / factors[:, :, None] if factors.ndim == 2 else np.linalg.solve(turned, loadings)
    return PosteriorTerms(packed, np.ascontiguousarray(raw, np.float64), means)


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
    most = max(_PIECE, min(_MOST_SEGMENTS, _BLOCK_BYTES // (8 * packed_length(rank) + 4 * width)))
    n_blocks = -(-n_segments // most)
    return chunk_bounds(n_segments, -(-n_segments // max(1, n_blocks)))


def blocks_of(statistics: Statistics, rank: int, *, done: int = 0) -> Iterator[Block]:
    """Yield the blocks of `block_bounds`, but for the first `done`; nothing is read yet."""
    for start, stop in block_bounds(len(statistics), rank, statistics.first.shape[1])[done:]:
        rows = (part(array, start, stop) for array in (statistics.zeroth, statistics.first))
        yield Block(statistics.segments[start:stop], *rows)


def block_posteriors(
    block: Block, terms: PosteriorTerms, *, work: Work, variances: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the posterior means (n, R), variances (n, R) or nothing (n, 0), and likelihoods (n,) of a block.

    Parameters and errors as for `spkver.vectors.em_sums.block_sums`; variances are the diagonals of L^-1, likelihoods
    those of `likelihood_part`.
    """
    counts = block.counts()
    projected = project(block, counts, np.asarray(block.first), terms, work)
    pieces = list(factor_pieces(block, counts, projected, terms, work, "variances" if variances else "means"))
    means, rest = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("means", "rest"))
    return means, rest, np.concatenate([piece.log_likelihoods for piece in pieces])


def project(
    block: Block, counts: NDArray[np.float64], first: NDArray, terms: PosteriorTerms, work: Work
) -> NDArray[np.float64]:
    """Return b = sum_c T_c' f_c of each segment, shape (n, R), from statistics as they are; checks these."""
    items = [of_components(counts, first, terms, *bounds) for bounds in component_ranges(terms)]
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found just below
        projected = sum_in_order(list(work.map(_project_part, items)))
    return checked_projection(projected, counts, block.segments)


def checked_projection(projected: NDArray[np.float64], counts: NDArray[np.float64], segments: NDArray) -> NDArray:
    """Return b (n, R) as it is; raise DataError that names the segment where it, or a count (n, C), cannot be."""
    for good, what in (
        (np.isfinite(projected).all(axis=1) & np.isfinite(counts).all(axis=1), "are not finite"),
        (~(counts < 0).any(axis=1), "have counts below 0"),
    ):
        if not good.all():
            name = str(segments[np.argmin(good)])
            raise DataError(f"the statistics of segment {name!r} {what}", remedy="compute the statistics again")
    return projected


@dataclass(frozen=True)
class Piece:
    """Posteriors of a few segments: means (n, R), `rest` as asked for, likelihoods (n,)."""

    means: NDArray[np.float64]
    rest: NDArray[np.float64]
    log_likelihoods: NDArray[np.float64]


def factor_pieces(
    block: Block, counts: NDArray, projected: NDArray, terms: PosteriorTerms, work: Work, rest: str
) -> Iterator[Piece]:
    """Posteriors of pieces of a block: precisions by ranges of their columns, then factors by segments."""
    columns = chunk_bounds(packed_length(terms.rank), COLUMNS)
    items = ([group[:, start:stop] for group in terms.products] for start, stop in columns)
    precisions = list(work.map(partial(_product, counts), items, total=len(columns)))
    rows = chunk_bounds(len(counts), _PIECE)
    pieces = [
        ([precision[start:stop] for precision in precisions], projected[start:stop], block.segments[start:stop])
        for start, stop in rows
    ]
    return work.map(partial(_solve_piece, rest=rest), pieces)


def _solve_piece(item: tuple[Sequence[NDArray], NDArray, NDArray], rest: str) -> Piece:
    matrices = np.concatenate(item[0], axis=1)
    projected, segments = item[1:]
    diagonal = diagonal_places(projected.shape[1])
    matrices[:, diagonal] += 1
    good = factor(matrices)
    if not good.all():
        text = f"the statistics of segment {str(segments[np.argmin(good)])!r} are too large to be computed with"
        raise DataError(text, remedy="compute the statistics again")
    of_precision = log_determinants(matrices)
    means = projected.copy()
    solve(matrices, means)
    likelihoods = likelihood_part(projected, means, of_precision)
    if rest == "means":
        return Piece(means, np.empty((len(means), 0)), likelihoods)
    invert(matrices)
    if rest == "variances":
        return Piece(means, matrices[:, diagonal], likelihoods)
    add_outer_products(matrices, means)
    return Piece(means, matrices, likelihoods)


def _product(counts: NDArray, groups: Sequence[NDArray]) -> NDArray:
    return counts @ np.concatenate(groups)


Components = tuple[NDArray, NDArray, NDArray, NDArray]  # counts, first-order sums, loadings and means of some


def component_ranges(terms: PosteriorTerms) -> list[tuple[int, int]]:
    n_components, dimension = terms.means.shape
    return chunk_bounds(n_components, max(1, _WIDE // dimension))


def of_components(counts: NDArray, first: NDArray, terms: PosteriorTerms, start: int, stop: int) -> Components:
    dimension = terms.means.shape[1]
    sums = first[:, start * dimension : stop * dimension]
    return counts[:, start:stop], sums, terms.loadings[start:stop], terms.means[start:stop]


def _project_part(item: Components) -> NDArray:
    counts, first, loadings, means = item
    offsets = np.matmul(means[:, None, :], loadings)[:, 0]
    return first.astype(np.float64) @ loadings.reshape(-1, loadings.shape[2]) - counts @ offsets


def sum_in_order(arrays: Sequence[NDArray]) -> NDArray:
    """Return the sum of arrays, added one after the other."""
    return reduce(add, arrays)
