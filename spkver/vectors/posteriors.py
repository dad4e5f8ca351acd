"""Posteriors of the factor of each segment, for training and extraction.

A segment's supervector is m + T h with the prior h ~ N(0, I). In the space in which every Gaussian has the covariance
I, the counts n_c and the centred first-order sums f_c give

    L = I + sum_c n_c T_c' T_c,   b = sum_c T_c' f_c,   h | segment ~ N(L^-1 b, L^-1)

`block_posteriors` computes that for hundreds of segments at a time: matrices are packed, and L for all segments is one
product of counts and packed T_c' T_c. Whitening and centring of the statistics are folded into the matrix, so the
statistics are read as they are.

Symmetric matrices are packed: their lower triangles are rows of one array, factored in place. A row has the order
of LAPACK's *rectangular full packed* form [1]_ (TRANSR = N, UPLO = L): n (n + 1) / 2 numbers, half of a matrix, and yet
the routines run on blocks, as fast as for whole matrices. `packed_places` gives the position of each entry. Sums and
means of packed rows are packed sums and means of the matrices.

LAPACK is called through SciPy's own pointers: SciPy's wrappers hold Python's lock, and threads would wait for it.

References
----------
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005.
.. [1] F. Gustavson, J. Wasniewski, J. Dongarra and J. Langou, "Rectangular full packed format for Cholesky's
   algorithm", ACM Trans. Mathematical Software 37(2), 2010.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Floats
from spkbase.errors import DataError
from spkbase.work import Work, chunk_bounds, one_blas_thread, share_out
from spkver.mixture import Statistics

_PLAIN = b"N"  # LAPACK's TRANSR
_LOWER = b"L"  # LAPACK's UPLO
_AS_IS = b"N"  # LAPACK's TRANS
# numbers of character arguments and of address arguments of each routine
_ARGUMENTS = {"dpftrf": (2, 3), "dpftri": (2, 3), "dpftrs": (2, 6), "dsfrk": (3, 7)}

# columns of small packed matrices in a task, see `column_bounds`
COLUMNS = 1280
WIDE = 480  # number of columns of first-order sums in a task
PIECE = 32  # number of segments whose matrices are factored in a task
_TASKS = 16  # fewest tasks for the columns of large packed matrices
_GROUP = 16  # number of components whose squares are computed in a task
_BLOCK_BYTES = 1 << 28  # memory for the statistics and packed matrices of a block of segments
_MOST_SEGMENTS = 512  # largest number of segments in a block
_MOST_FRAMES = 1e100  # largest number of frames of a component


def packed_length(rank: int) -> int:
    """Return the length of a packed row: rank (rank + 1) / 2."""
    return rank * (rank + 1) // 2


def rank_of(length: int) -> int:
    """Return the rank of matrices whose packed rows have this length.

    Examples
    --------
    >>> rank_of(packed_length(400))
    400
    """
    return int(np.sqrt(2 * length + 0.25))


@lru_cache(maxsize=8)
def packed_places(rank: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row and the column of each entry of a packed row, both of shape (rank (rank + 1) / 2,); row >= column.

    Examples
    --------
    >>> [places.tolist() for places in packed_places(2)]
    [[1, 0, 1], [1, 0, 0]]
    """
    from scipy.linalg.lapack import dtrttf

    numbers = np.arange(float(rank * rank)).reshape(rank, rank)
    order = dtrttf(numbers, transr="N", uplo="L")[0].astype(np.int64)
    places = order // rank, order % rank
    for array in places:
        array.setflags(write=False)
    return places


def pack(matrices: Floats) -> Floats:
    """Return the lower triangles of matrices (..., R, R) as packed rows (..., R (R + 1) / 2)."""
    rows, columns = packed_places(matrices.shape[-1])
    return np.ascontiguousarray(matrices[..., rows, columns])


def unpack(packed: Floats) -> Floats:
    """Return the symmetric matrices (..., R, R) of packed rows (..., R (R + 1) / 2).

    Examples
    --------
    >>> unpack(pack(np.array([[2.0, 1.0], [1.0, 3.0]]))).tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    rank = rank_of(packed.shape[-1])
    rows, columns = packed_places(rank)
    matrices = np.empty((*packed.shape[:-1], rank, rank))
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


@lru_cache(maxsize=8)
def diagonal_places(rank: int) -> NDArray[np.int64]:
    """Return the positions of the diagonal in a packed row, from its first entry to its last, shape (rank,)."""
    rows, columns = packed_places(rank)
    places = np.flatnonzero(rows == columns)
    places = places[np.argsort(rows[places])]
    places.setflags(write=False)
    return places


def squares(matrices: Floats, *, out: Floats | None = None) -> Floats:
    """Return X' X of each matrix, packed.

    Parameters
    ----------
    matrices : ndarray of shape (n, D, R)
    out : ndarray of shape (n, R (R + 1) / 2), optional
        Array for the result.

    Returns
    -------
    ndarray of shape (n, R (R + 1) / 2)
    """
    n_matrices, depth, rank = matrices.shape
    if out is None:
        out = np.empty((n_matrices, packed_length(rank)))
    out[:] = 0
    _add_squares(out, np.ascontiguousarray(matrices, np.float64), rank, depth)
    return out


def add_outer_products(packed: Floats, vectors: Floats) -> None:
    """Add x x' of each vector (n, R) to its packed row (n, R (R + 1) / 2), in place."""
    _add_squares(packed, np.ascontiguousarray(vectors), vectors.shape[1], 1)


def factor(packed: Floats) -> NDArray[np.bool_]:
    """Replace each packed row (n, R (R + 1) / 2) by its Cholesky factor, in place.

    Returns
    -------
    ndarray of bool of shape (n,)
        Whether the matrix was positive definite; rows of other matrices are no longer usable.
    """
    return _in_place("dpftrf", packed)


def invert(factors: Floats) -> None:
    """Replace the Cholesky factors of matrices by the inverses of the matrices, in place; see `factor`."""
    _in_place("dpftri", factors)


def solve(factors: Floats, right: Floats) -> None:
    """Replace right-hand sides by the solutions for matrices whose Cholesky factors are given, in place.

    Parameters
    ----------
    factors : ndarray of shape (n, R (R + 1) / 2)
        See `factor`.
    right : ndarray of shape (n, R) or (n, m, R)
        One or m right-hand sides of each matrix.
    """
    routine = _routine("dpftrs")
    rank = ctypes.c_int(right.shape[-1])
    sides = ctypes.c_int(1)
    if right.ndim == 3:
        sides.value = right.shape[1]
    status = ctypes.c_int(0)
    n, m, info = map(ctypes.addressof, (rank, sides, status))
    for matrix, target in zip(_rows(factors), _rows(right), strict=True):
        routine(_PLAIN, _LOWER, n, m, matrix, target, n, info)


def log_determinants(factors: Floats) -> Floats:
    """Return the logarithm of the determinant of each matrix, shape (n,), from its Cholesky factor."""
    places = diagonal_places(rank_of(factors.shape[1]))
    log_determinants: NDArray[np.float64] = 2 * np.log(factors[:, places]).sum(axis=1)
    return log_determinants


def likelihood_part(
    projected: NDArray[Any], means: NDArray[Any], log_determinants: NDArray[Any]
) -> Floats:
    """Return the part of each segment's log-likelihood that depends on T, in nat: (b' h - log det L) / 2, shape (S,).

    Parameters
    ----------
    projected, means : ndarray of shape (S, R)
        b = sum_c T_c' f_c with whitened f_c, and h = L^-1 b for L = I + sum_c n_c T_c' T_c.
    log_determinants : ndarray of shape (S,)

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 2.
    """
    log_likelihoods: NDArray[np.float64] = (
        np.sum(projected * means, axis=1) - log_determinants
    ) / 2
    return log_likelihoods


@dataclass(frozen=True)
class PosteriorTerms:
    """The terms of segments' posteriors that depend only on the matrix T, so that statistics need no centring or
    whitening.

    Attributes
    ----------
    products : ndarray of shape (C, R (R + 1) / 2)
        Packed T_c' T_c.
    loadings : ndarray of shape (C * D, R)
        S_c^-T T_c where S_c S_c' is the covariance of the component and T_c is in the whitened space.
    offsets : ndarray of shape (C, R)
        m_c' S_c^-T T_c: centring subtracts it from b for each frame of a component.
    """

    products: Floats
    loadings: Floats
    offsets: Floats

    @property
    def rank(self) -> int:
        """Length of the factors, R."""
        return int(self.loadings.shape[1])


def posterior_terms(
    loadings: Floats, means: Floats, factors: Floats, *, work: Work, products: bool = True
) -> PosteriorTerms:
    """Return the terms of posteriors that depend only on the matrix.

    Parameters
    ----------
    loadings : ndarray of shape (C, D, R)
        T_c in the whitened space.
    means : ndarray of shape (C, D)
    factors : ndarray of shape (C, D) or (C, D, D)
        `spkver.mixture.whitening_factors`.
    work : spkbase.work.Work
    products : bool
        Whether to compute `products`; b can be computed without them.
    """
    rank = loadings.shape[2]
    n_products = len(loadings) if products else 0
    packed = np.empty((n_products, packed_length(rank)))

    def fill(bounds: tuple[int, int]) -> None:
        rows = slice(*bounds)
        squares(loadings[rows], out=packed[rows])

    share_out(work, fill, chunk_bounds(n_products, _GROUP))
    if factors.ndim == 2:
        raw = loadings / factors[:, :, None]
    else:
        raw = np.asarray(np.linalg.solve(np.swapaxes(factors, 1, 2), loadings), np.float64)
    with one_blas_thread():
        offsets = np.matmul(means[:, None, :], raw)[:, 0]
    return PosteriorTerms(packed, np.ascontiguousarray(raw.reshape(-1, rank), np.float64), offsets)


def counts_of(statistics: Statistics) -> Floats:
    """Return the counts in float64; counts below 1e-100, whose products would be denormal, become 0."""
    zeroth = np.asarray(statistics.zeroth).astype(np.float64)
    zeroth[np.abs(zeroth) < 1e-100] = 0
    return zeroth


def block_bounds(n_segments: int, rank: int, width: int) -> list[tuple[int, int]]:
    """Return (start, stop) of blocks of segments: of similar length, fixed by the data, small enough for the memory.

    Examples
    --------
    >>> block_bounds(2000, 400, 512 * 60)[:2]
    [(0, 334), (334, 668)]
    """
    most = max(PIECE, min(_MOST_SEGMENTS, _BLOCK_BYTES // (8 * packed_length(rank) + 4 * width)))
    n_blocks = -(-n_segments // most)
    return chunk_bounds(n_segments, -(-n_segments // max(1, n_blocks)))


def blocks_of(statistics: Statistics, rank: int) -> Iterator[Statistics]:
    """Yield the blocks of `block_bounds`; nothing is read yet."""
    for bounds in block_bounds(len(statistics), rank, statistics.first.shape[1]):
        yield statistics.part(*bounds)


def block_sizes(statistics: Statistics, rank: int) -> list[int]:
    """Return the number of segments of each block of `blocks_of`."""
    bounds = block_bounds(len(statistics), rank, statistics.first.shape[1])
    return [stop - start for start, stop in bounds]


def block_memory(statistics: Statistics, rank: int) -> Floats:
    """Return memory for the packed matrices of any block: the system need not clear memory that is reused."""
    return np.empty((max(block_sizes(statistics, rank)), packed_length(rank)))


def block_posteriors(
    block: Statistics,
    terms: PosteriorTerms,
    *,
    work: Work,
    variances: bool = False,
    memory: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the posterior means (n, R) of a block of segments, and their variances (n, R), or (n, 0) if they are not
    requested.

    Parameters
    ----------
    block : Statistics
    terms : PosteriorTerms
    work : spkbase.work.Work
        Its workers share the block; the result does not depend on their number.
    variances : bool
        Whether to return the diagonals of L^-1.
    memory : ndarray of shape (at least n, R (R + 1) / 2), optional
        `block_memory`.

    Raises
    ------
    DataError
        If statistics are not finite, or counts are below 0.
    """
    counts = counts_of(block)
    projected = project(block, counts, np.asarray(block.first), terms, work)
    matrices = precisions(counts, terms, work, memory)

    def of_rows(bounds: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
        rows = slice(*bounds)
        means, _ = solve_rows(matrices[rows], projected[rows], block.segments[rows])
        if not variances:
            return means, np.empty((len(means), 0))
        invert(matrices[rows])
        return means, matrices[rows][:, diagonal_places(terms.rank)]

    means, spreads = zip(*share_out(work, of_rows, chunk_bounds(len(counts), PIECE)), strict=True)
    return np.concatenate(means), np.concatenate(spreads)


def column_bounds(length: int) -> list[tuple[int, int]]:
    """Return (start, stop) of the columns of packed matrices in each task: a multiple of `COLUMNS`, at most 4 times it.

    Wide products are faster, but each worker needs tasks. Multiples of one width give the same bits.

    Examples
    --------
    >>> column_bounds(packed_length(400))[:2]
    [(0, 3840), (3840, 7680)]
    """
    multiple = length // (_TASKS * COLUMNS)
    return chunk_bounds(length, COLUMNS * min(max(multiple, 1), 4))


def project(
    block: Statistics, counts: Floats, first: NDArray[Any], terms: PosteriorTerms, work: Work
) -> Floats:
    """Return b = sum_c T_c' f_c of each segment, shape (n, R), from raw statistics, which are checked."""

    def of_columns(bounds: tuple[int, int]) -> Floats:
        # with the segments along the rows, the product is a third faster for low ranks
        columns = slice(*bounds)
        with np.errstate(
            invalid="ignore", over="ignore"
        ):  # numbers that are not finite are detected below
            return terms.loadings[columns].T @ first[:, columns].astype(np.float64).T

    parts = share_out(work, of_columns, chunk_bounds(first.shape[1], WIDE))
    with np.errstate(invalid="ignore", over="ignore"), one_blas_thread():
        projected = reduce(np.add, parts).T - counts @ terms.offsets
    is_finite = np.isfinite(projected).all(axis=1) & np.isfinite(counts).all(axis=1)
    for good, problem in (
        (is_finite, "are not finite"),
        (~(counts < 0).any(axis=1), "have counts below 0"),
        ((counts < _MOST_FRAMES).all(axis=1), "have counts too large to be computed with"),
    ):
        if not good.all():
            text = f"the statistics of segment {str(block.segments[np.argmin(good)])!r} {problem}"
            raise DataError(text, remedy="compute the statistics again")
    return np.asarray(projected)


def precisions(
    counts: Floats, terms: PosteriorTerms, work: Work, memory: Floats | None = None
) -> Floats:
    """Return L = I + sum_c n_c T_c' T_c of each segment, packed, shape (n, R (R + 1) / 2)."""
    if memory is None:
        memory = np.empty((len(counts), packed_length(terms.rank)))
    matrices = memory[: len(counts)]

    def fill(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        np.matmul(counts, terms.products[:, columns], out=matrices[:, columns])

    share_out(work, fill, column_bounds(matrices.shape[1]))
    matrices[:, diagonal_places(terms.rank)] += 1
    return matrices


def solve_rows(
    matrices: Floats, projected: Floats, segments: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return h = L^-1 b (n, R) and `likelihood_part` (n,); packed precisions L are replaced by their factors."""
    good = factor(matrices)
    if not good.all():
        text = f"the statistics of segment {str(segments[np.argmin(good)])!r} are too large to be computed with"
        raise DataError(text, remedy="compute the statistics again")
    means = projected.copy()
    solve(matrices, means)
    return means, likelihood_part(projected, means, log_determinants(matrices))


@dataclass
class EmSums:
    """Sums of the E-step over segments, which can be added.

    Attributes
    ----------
    second : ndarray of shape (C, R (R + 1) / 2)
        Packed A_c = sum_s n_c (L^-1 + h h').
    cross : ndarray of shape (R, C * D)
        sum_s h f', with f neither centred nor whitened.
    counted : ndarray of shape (R, C)
        sum_s h n', for centring.
    moment : ndarray of shape (R (R + 1) / 2,)
        Packed sum_s (L^-1 + h h').
    log_likelihood : float
        Sum of `spkver.vectors.likelihood_part`.
    n_segments : int
    """

    second: Floats
    cross: Floats
    counted: Floats
    moment: Floats
    log_likelihood: float = 0.0
    n_segments: int = 0

    @classmethod
    def empty(cls, n_components: int, width: int, rank: int) -> EmSums:
        """Return the sums over no segment; `width` is C D."""
        length = packed_length(rank)
        return cls(
            second=np.zeros((n_components, length)),
            cross=np.zeros((rank, width)),
            counted=np.zeros((rank, n_components)),
            moment=np.zeros(length),
        )

    def __add__(self, other: EmSums) -> EmSums:
        return EmSums(*map(add, vars(self).values(), vars(other).values()))


def add_block(
    sums: EmSums,
    block: Statistics,
    terms: PosteriorTerms,
    *,
    work: Work,
    memory: Floats | None = None,
) -> None:
    """Add a block of segments to the sums of the E-step, in place.

        A_c += sum_s n_c (L^-1 + h h'),   B_c += sum_s f_c h'

    Parameters
    ----------
    sums : EmSums
    block : Statistics
    terms : PosteriorTerms
    work : spkbase.work.Work
        Its workers share the block; the result does not depend on their number.
    memory : ndarray of shape (at least n, R (R + 1) / 2), optional
        `spkver.vectors.posteriors.block_memory`.

    Raises
    ------
    DataError
        If statistics are not finite, or counts are below 0; the sums are then unchanged.

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 3.
    """
    counts = counts_of(block)
    first = np.asarray(block.first)
    projected = project(block, counts, first, terms, work)
    matrices = precisions(counts, terms, work, memory)

    def moments(bounds: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        rows = slice(*bounds)
        vectors, likelihoods = solve_rows(matrices[rows], projected[rows], block.segments[rows])
        invert(matrices[rows])
        add_outer_products(matrices[rows], vectors)
        return vectors, likelihoods, matrices[rows].sum(axis=0)

    of_pieces = share_out(work, moments, chunk_bounds(len(counts), PIECE))
    rows, likelihoods, sums_of_pieces = zip(*of_pieces, strict=True)
    vectors = np.concatenate(rows).T

    def add_second(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        sums.second[:, columns] += counts.T @ matrices[:, columns]

    def add_cross(bounds: tuple[int, int]) -> None:
        columns = slice(*bounds)
        sums.cross[:, columns] += vectors @ first[:, columns].astype(np.float64)

    share_out(work, add_second, column_bounds(matrices.shape[1]))
    share_out(work, add_cross, chunk_bounds(first.shape[1], WIDE))
    with one_blas_thread():
        sums.counted += vectors @ counts
    # pieces are summed within the block first, so that the sums equal those of blocks from workers
    sums.moment += reduce(np.add, sums_of_pieces)
    sums.log_likelihood += float(np.concatenate(likelihoods).sum())
    sums.n_segments += len(counts)


def _add_squares(packed: Floats, matrices: Floats, rank: int, depth: int) -> None:
    routine = _routine("dsfrk")
    factor = ctypes.c_double(1.0)
    rows = ctypes.c_int(rank)
    columns = ctypes.c_int(depth)
    alpha = ctypes.addressof(factor)
    n = ctypes.addressof(rows)
    k = ctypes.addressof(columns)
    for target, source in zip(_rows(packed), _rows(matrices), strict=True):
        routine(_PLAIN, _LOWER, _AS_IS, n, k, alpha, source, n, alpha, target)


def _in_place(name: str, packed: Floats) -> NDArray[np.bool_]:
    routine = _routine(name)
    status = ctypes.c_int(0)
    rank = ctypes.c_int(rank_of(packed.shape[1]))
    good = np.empty(len(packed), bool)
    n, info = map(ctypes.addressof, (rank, status))
    for row, target in enumerate(_rows(packed)):
        routine(_PLAIN, _LOWER, n, target, info)
        good[row] = status.value == 0
    return good


def _rows(array: Floats) -> range:
    """Return the address of each row of an array in C order."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise TypeError(
            f"expected float64 in C order, got {array.dtype} with strides {array.strides}"
        )
    if not len(array):
        return range(0)
    begin = array.ctypes.data
    return range(begin, begin + array.nbytes, array.nbytes // len(array))


@cache
def _routine(name: str) -> Callable[..., None]:
    """Return a routine of SciPy's LAPACK, which is called without holding Python's lock."""
    from scipy import LowLevelCallable
    from scipy.linalg import cython_lapack

    capsule = LowLevelCallable.from_cython(cython_lapack, name)
    signature = capsule.signature.encode()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsules: Any = cython_lapack.__pyx_capi__
    address = pointer(capsules[name], signature)
    n_letters, n_addresses = _ARGUMENTS[name]
    arguments = [ctypes.c_char_p] * n_letters + [ctypes.c_void_p] * n_addresses
    return ctypes.CFUNCTYPE(None, *arguments)(address)
