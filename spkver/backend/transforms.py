"""Maps of vectors that are learnt from training vectors: whitening, length norm, LDA, WCCN, CORAL.

A map is affine, y = (x - offset) @ matrix (`AffineMap`), scales to length 1 (`LengthNorm`), or removes directions
(`spkver.backend.Projection`, NAP). Each ``fit_...`` takes vectors and the integer codes 0 .. C-1 of their speakers,
each of whom has a vector, and returns the maps to apply one after another. The signs of directions are free: the
largest entry of each is positive.

Covariances of vectors and of their classes (speakers) are divided by the number N of vectors, so that total = within +
between exactly. Sums are float64, taken over blocks of rows that the data fix, with one BLAS thread.

A covariance whose smallest eigenvalue is below 1e-12 of its largest is numerically singular: it has fewer vectors than
dimensions, constant dimensions, or duplicates. Unless ``shrink`` is given, only such a covariance is shrunk
(`regularised`). Others are not changed at all; if vectors are few, their inverse is inaccurate, and `warn_of_few` warns
of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, row_norms, to_unit
from spkbase.arrays import Floats, Rows, part
from spkbase.errors import ConfigError, DataError
from spkbase.rounding import is_negligible, share_of_sum
from spkbase.showing import one_line
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.backend.nap import Projection

logger = logging.getLogger(__name__)

_ROWS = 1 << 13
_SINGULAR = 1e-12  # an eigenvalue below this fraction of the largest is a rounding error
_SPANNED = 1e-9  # principal directions with a smaller fraction of the largest eigenvalue are rounding errors
_WELL_CONDITIONED = 1e6
# with fewer vectors per dimension, the inverse of a covariance is far off (docs/backends.md)
_FEW = 3

WHITENINGS = ("full", "symmetric", "cholesky", "diagonal")


@one_blas_thread()
def scatter(
    vectors: Rows,
    means: Floats,
    groups: NDArray[np.integer],
    weights: Floats,
    *,
    block_size: int = _ROWS,
) -> Floats:
    """Return the weighted scatter of vectors about the means of their groups: sum_i w_i (x_i - m_g) (x_i - m_g)^T.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    means : ndarray of float64 of shape (G, R)
    groups : ndarray of int of shape (N,)
        Group of each vector.
    weights : ndarray of float64 of shape (N,)
    block_size : int
        Vectors in memory at once; the last bits of the sums depend on it.

    Returns
    -------
    ndarray of float64 of shape (R, R)
        Symmetric.
    """
    total = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start, stop in chunk_bounds(len(vectors), block_size):
        block = np.asarray(part(vectors, start, stop), np.float64) - means[groups[start:stop]]
        total += block.T @ (block * weights[start:stop, None])
    return (total + total.T) / 2


def class_sums(
    vectors: Rows, codes: NDArray[np.integer], *, block_size: int = _ROWS
) -> tuple[Floats, Floats]:
    """Return the number of vectors of each class, and their sum.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.
    block_size : int
        See `scatter`.

    Returns
    -------
    counts : ndarray of float64 of shape (C,)
    sums : ndarray of float64 of shape (C, R)
        Sums of the vectors of each class, added in the order of the rows.
    """
    from scipy.sparse import csr_array

    counts = np.bincount(codes).astype(np.float64)
    sums = np.zeros((len(counts), vectors.shape[1]))
    for start, stop in chunk_bounds(len(vectors), block_size):
        rows = np.arange(stop - start)
        members = csr_array((np.ones(len(rows)), (codes[start:stop], rows)), (len(sums), len(rows)))
        sums += members @ np.asarray(part(vectors, start, stop), np.float64)
    return counts, sums


def class_means(vectors: Rows, codes: NDArray[np.integer]) -> Floats:
    """Return the mean of the vectors of each class, shape (C, R); see `class_sums`."""
    counts, sums = class_sums(vectors, codes)
    return sums / counts[:, None]


def mean(vectors: Rows) -> Floats:
    """Return the mean of vectors (N, R), shape (R,)."""
    total: NDArray[np.float64] = class_means(vectors, np.zeros(len(vectors), np.int64))[0]
    return total


def total_covariance(vectors: Rows) -> Floats:
    """Return the covariance of vectors (N, R) about their mean, divided by N, shape (R, R)."""
    return within_covariance(vectors, np.zeros(len(vectors), np.int64))


def within_covariance(
    vectors: Rows, codes: NDArray[np.integer], *, weighting: str = "vectors"
) -> Floats:
    """Return the covariance of vectors about the means of their classes.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.
    weighting : {"vectors", "classes"}
        "vectors": all vectors have the same weight, sum_i (x_i - m_c) (x_i - m_c)^T / N, so that total = within +
        between; "classes": all classes do: the mean of their covariances, each divided by its own number of vectors, as
        in WCCN [1]_.

    Returns
    -------
    ndarray of float64 of shape (R, R)

    References
    ----------
    .. [1] A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker
       recognition", Interspeech 2006.
    """
    counts, sums = class_sums(vectors, codes)
    if weighting == "vectors":
        shares = np.full(len(codes), 1 / len(codes))
    else:
        shares = 1 / (len(counts) * counts[codes])
    means = sums / counts[:, None]
    return _unless_rounding(scatter(vectors, means, codes, shares), means, counts.max())


def between_covariance(
    vectors: Rows, codes: NDArray[np.integer], *, weighting: str = "vectors"
) -> Floats:
    """Return the covariance of the means of classes, about the mean of all vectors.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
        Class of each vector.
    weighting : {"vectors", "classes"}
        "vectors": the weight of a class is its number of vectors, sum_c n_c (m_c - m) (m_c - m)^T / N; "classes": all
        classes have the same weight.

    Returns
    -------
    ndarray of float64 of shape (R, R)
    """
    counts, sums = class_sums(vectors, codes)
    if weighting == "vectors":
        shares = counts / counts.sum()
    else:
        shares = np.full(len(counts), 1 / len(counts))
    means = sums / counts[:, None]
    middle = sums.sum(axis=0)[None] / counts.sum()
    spread = scatter(means, middle, np.zeros(len(counts), np.int64), shares)
    return _unless_rounding(spread, means, counts.sum())


@one_blas_thread()
def regularised(
    covariance: Floats, n_free: int, *, shrink: float | None = None, name: str = "covariance"
) -> Floats:
    """Return a covariance that can be inverted: shrunk if it is singular, else unchanged.

    A singular one becomes (1 - a) S + a t I, t the mean eigenvalue trace(S) / R, with the share of the oracle
    approximating shrinkage of Chen et al. (2010) for n Gaussian vectors:

        a = ((1 - 2/R) tr(S^2) + tr(S)^2) / ((n + 1 - 2/R) (tr(S^2) - tr(S)^2 / R)),   at most 1

    It is never below 1 / (n + 1), so the result has a condition number of at most (n + 1) R.

    Parameters
    ----------
    covariance : ndarray of float64 of shape (R, R)
        Symmetric, no eigenvalue below 0.
    n_free : int
        The number of vectors that it was estimated from, minus the number of means that were subtracted from them.
    shrink : float, optional
        Share a to use whether or not it is singular, from 0 to 1; it is an error if the result is still singular.
    name : str
        Its name in errors.

    Raises
    ------
    DataError
        If it is 0, so that there is nothing to estimate, holds NaN or infinite numbers, or stays singular.

    Examples
    --------
    >>> regularised(np.diag([2.0, 0.0]), 3).round(3)
    array([[1.333, 0.   ],
           [0.   , 0.667]])

    References
    ----------
    Y. Chen, A. Wiesel, Y. C. Eldar and A. O. Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE
    Transactions on Signal Processing 58(10), 2010, equation 23.
    """
    size = len(covariance)
    trace = float(np.trace(covariance))
    if not np.isfinite(covariance).all():
        raise DataError(
            f"the {name} is not finite",
            remedy="scale the vectors: their squares are beyond float64",
        )
    if not trace > np.finfo(np.float64).tiny * size:
        raise DataError(
            f"the {name} is 0: the vectors do not differ", remedy="give vectors that differ"
        )
    if shrink is None:
        if not is_singular(covariance):
            warn_of_few(n_free, size, name, remedy="shrink, such as 0.1, or lda before it")
            return covariance
        squares = float((covariance**2).sum())
        spread = (n_free + 1 - 2 / size) * (squares - trace**2 / size)
        shrink = 1.0
        if spread > 0:
            shrink = min(1.0, ((1 - 2 / size) * squares + trace**2) / spread)
        logger.debug("the %s is singular: shrunk by %.3g", name, shrink)
    shrunk: Floats = (1 - shrink) * covariance + shrink * trace / size * np.eye(size)
    if is_singular(shrunk):
        raise DataError(
            f"the {name} is singular with shrink {shrink:g}", remedy="raise shrink, or leave it out"
        )
    return shrunk


def regularised_within(
    vectors: Rows,
    codes: NDArray[np.integer],
    *,
    shrink: float | None = None,
    weighting: str = "vectors",
) -> Floats:
    """Return the covariance of vectors about the means of their classes, `regularised`; see `within_covariance`."""
    within = within_covariance(vectors, codes, weighting=weighting)
    name = "covariance within speakers" if codes.any() else "total covariance"
    return regularised(within, len(codes) - int(codes.max()) - 1, shrink=shrink, name=name)


def warn_of_few(n_free: int, size: int, name: str, *, remedy: str) -> None:
    """Warn if a covariance can be inverted but should not be: scores would look plausible but be poor."""
    if n_free < _FEW * size:
        logger.warning(
            "the %s of %d dimensions is estimated from %d vectors (means subtracted), fewer than %d per dimension: its"
            " inverse is inaccurate, and scores may be worse than without this step (give %s)",
            *(name, size, n_free, _FEW, remedy),
        )


@one_blas_thread()
def is_singular(covariance: Floats) -> bool:
    """Return whether the smallest eigenvalue is below 1e-12 of the largest."""
    values = np.linalg.eigvalsh(covariance)
    return not bool(values[0] > _SINGULAR * values[-1])


@one_line
@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map y = (x - offset) @ matrix.

    Attributes
    ----------
    offset : ndarray of float64 of shape (R,)
    matrix : ndarray of float64 of shape (R, K) or (R,)
        A matrix, or the diagonal of one.
    """

    offset: Floats
    matrix: Floats

    def __post_init__(self) -> None:
        shape = self.matrix.shape
        if self.offset.ndim != 1 or len(shape) not in (1, 2) or len(self.offset) != shape[0]:
            raise DataError(
                f"expected an offset (R,) and a matrix (R, K) or (R,), got {self.offset.shape} and {shape}"
            )
        if not (np.isfinite(self.offset).all() and np.isfinite(self.matrix).all()):
            raise DataError("expected a map of finite numbers, got NaN or infinite ones")

    def __call__(self, vectors: NDArray[Any]) -> Floats:
        """Return the images (n, K) of vectors (n, R)."""
        moved = vectors - self.offset
        if self.matrix.ndim == 1:
            return moved * self.matrix
        return moved @ self.matrix


@dataclass(frozen=True)
class LengthNorm:
    """The map y = x / |x| (Garcia-Romero and Espy-Wilson, "Analysis of i-vector length normalization", 2011)."""

    def __call__(self, vectors: NDArray[Any], names: NDArray[Any] | None = None) -> Floats:
        """Return vectors (n, R) scaled to length 1; a DataError names those of length 0."""
        norms = row_norms(vectors)
        if names is None:
            names = np.arange(len(vectors)).astype(object)
        check_norms(norms, names)
        return to_unit(vectors, norms)


Map = AffineMap | LengthNorm | Projection


@one_blas_thread()
def apply_maps(
    maps: Sequence[Map],
    vectors: Rows,
    *,
    names: NDArray[Any] | None = None,
    block_size: int = _ROWS,
) -> Floats:
    """Return vectors after a sequence of maps, some thousand rows at a time.

    Parameters
    ----------
    maps : sequence of AffineMap, LengthNorm or Projection
    vectors : ndarray or StoredArray of shape (N, R)
    names : ndarray of str of shape (N,), optional
        For errors; row numbers by default.
    block_size : int
        Vectors in memory at once.

    Returns
    -------
    ndarray of float64 of shape (N, K)

    Raises
    ------
    DataError
        If a vector to be scaled to length 1 has length 0.
    """
    if names is None:
        names = np.arange(len(vectors)).astype(object)
    blocks = []
    for start, stop in chunk_bounds(len(vectors), block_size):
        block = np.array(part(vectors, start, stop), np.float64)
        for step in maps:
            if isinstance(step, Projection):
                block = step.of_rows(block)
            elif isinstance(step, LengthNorm):
                block = step(block, names[start:stop])
            else:
                block = step(block)
        blocks.append(block)
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks)


def dimension_after(maps: Sequence[Map], dimension: int) -> int:
    """Return the dimension that vectors have after the maps, given their dimension.

    Raise a DataError if maps do not fit.
    """
    for step in maps:
        if isinstance(step, Projection):
            size = after = step.directions.shape[1]
        elif isinstance(step, AffineMap):
            size = len(step.offset)
            after = step.matrix.shape[-1]
        else:
            continue
        if size != dimension:
            raise DataError(f"expected a map of {dimension} dimensions, got one of {size}")
        dimension = after
    return dimension


def whitening_matrix(covariance: Floats, kind: str = "full") -> Floats:
    """Return a matrix M with M^T S M = I, for row vectors x @ M.

    Parameters
    ----------
    covariance : ndarray of float64 of shape (R, R)
        S, not singular.
    kind : {"full", "symmetric", "cholesky", "diagonal"}
        V diag(l)^(-1/2) of the eigenvectors V and eigenvalues l, largest first; "symmetric": the symmetric root V
        diag(l)^(-1/2) V^T; the lower factor L of S^-1 = L L^T; the diagonal of S alone, S_ii^(-1/2).

    Returns
    -------
    ndarray of float64 of shape (R, R), or (R,) for the diagonal one
    """
    if kind == "diagonal":
        return 1 / np.sqrt(np.diag(covariance))
    if kind == "cholesky":
        from scipy.linalg import solve_triangular

        # S = U U^T with U upper triangular gives S^-1 = L L^T with L = U^-T lower; U comes from S with axes reversed
        upper = np.linalg.cholesky(covariance[::-1, ::-1])[::-1, ::-1]
        lower: Floats = solve_triangular(upper, np.eye(len(upper)), trans="T")
        return lower
    values, directions = np.linalg.eigh(covariance)
    directions = signed(directions[:, ::-1])
    root: Floats = directions / np.sqrt(values[::-1])
    if kind == "symmetric":
        root = root @ directions.T
    return root


def inverse(covariance: Floats) -> Floats:
    """Return the inverse of a covariance that is not singular: symmetric, and positive definite.

    It is computed by LU decomposition; if the covariance is so ill-conditioned that this would lose both properties, it
    is computed from the Cholesky factor.
    """
    if np.linalg.cond(covariance) < _WELL_CONDITIONED:
        return np.asarray(np.linalg.inv(covariance))
    factor = whitening_matrix(covariance, "cholesky")
    product = factor @ factor.T
    return np.asarray((product + product.T) / 2)


def fit_centring(vectors: Rows) -> AffineMap:
    """Return the map x - m, m the mean of the vectors (N, R).

    Raises
    ------
    DataError
        If the vectors do not differ, so that only rounding errors would be left of them.
    """
    middle = mean(vectors)
    spread = max(
        float(np.abs(np.asarray(part(vectors, start, stop), np.float64) - middle).max())
        for start, stop in chunk_bounds(len(vectors), _ROWS)
    )
    if is_negligible(spread, np.abs(middle).max(), share=share_of_sum(len(vectors))):
        raise DataError(
            f"the {len(vectors)} vectors are all the same: without their mean, nothing is left"
        )
    return AffineMap(middle, np.ones(len(middle)))


@one_blas_thread()
def fit_whitening(vectors: Rows, *, kind: str = "full", shrink: float | None = None) -> AffineMap:
    """Return the map (x - m) @ M that makes the covariance of the vectors (N, R) the identity; see `whitening_matrix`.

    The diagonal kind only makes its diagonal 1; a constant dimension is then an error.
    """
    covariance = total_covariance(vectors)
    middle = mean(vectors)
    if kind == "diagonal" and shrink is None:
        deviations = np.sqrt(np.diag(covariance))
        size = np.maximum(np.abs(middle), deviations.max())
        constant = np.flatnonzero(is_negligible(deviations, size, share=share_of_sum(len(vectors))))
        if len(constant):
            some = ", ".join(map(str, constant[:3].tolist()))
            remedy = "leave them out, use another whitening, or give shrink"
            raise DataError(
                f"{len(constant)} dimensions are constant, such as {some}: no variance 1",
                remedy=remedy,
            )
    else:
        covariance = regularised(
            covariance, len(vectors) - 1, shrink=shrink, name="total covariance"
        )
    return AffineMap(middle, whitening_matrix(covariance, kind))


def fit_efr(vectors: Rows, *, rounds: int = 1) -> tuple[Map, ...]:
    """Return the maps of the eigen factor radial: whitening by the total covariance and length norm, `rounds` times.

    References
    ----------
    P.-M. Bousquet, D. Matrouf and J.-F. Bonastre, "Intersession compensation and scoring methods in the i-vectors space
    for speaker recognition", Interspeech 2011.
    """
    return _spherical(vectors, np.zeros(len(vectors), np.int64), rounds)


def fit_sphnorm(vectors: Rows, codes: NDArray[np.integer], *, rounds: int = 1) -> tuple[Map, ...]:
    """Return the maps of the spherical nuisance normalisation: as `fit_efr`, with the covariance within classes.

    References
    ----------
    P.-M. Bousquet, A. Larcher, D. Matrouf, J.-F. Bonastre and O. Plchot, "Variance-spectra based normalization for
    i-vector standard and probabilistic linear discriminant analysis", Odyssey 2012.
    """
    return _spherical(vectors, codes, rounds)


@one_blas_thread()
def fit_pca(vectors: Rows, *, rank: int | None = None) -> AffineMap:
    """Return the map (x - m) @ V to the leading eigenvectors of the covariance of the vectors (N, R), as columns V.

    With fewer vectors than dimensions they are computed from the inner products X X' = U L U': V = X' U L^(-1/2).

    Raises
    ------
    DataError
        If the vectors do not differ.
    """
    from scipy.linalg import eigh

    middle = mean(vectors)
    centred = np.asarray(vectors, np.float64) - middle
    is_wide = len(centred) < centred.shape[1]
    products = centred @ centred.T if is_wide else centred.T @ centred
    lowest = max(0, len(products) - (rank or len(products)))
    values, axes = eigh(products, subset_by_index=[lowest, len(products) - 1])
    kept = values > _SPANNED * values[-1]
    size = np.linalg.norm(middle) * np.sqrt(len(centred))
    if is_negligible(np.sqrt(values[-1]), size, share=share_of_sum(len(centred))):
        raise DataError(
            f"the {len(vectors)} vectors are all the same: they have no principal directions"
        )
    axes = axes[:, kept][:, ::-1]
    if is_wide:
        axes = centred.T @ axes / np.sqrt(values[kept][::-1])
    return AffineMap(middle, signed(axes))


@one_blas_thread()
def fit_lda(
    vectors: Rows,
    codes: NDArray[np.integer],
    *,
    rank: int | None = None,
    shrink: float | None = None,
    convention: str = "book",
) -> AffineMap:
    """Return the linear discriminant directions: the leading v of S_b v = l S_w v, with v^T S_w v = 1.

    Parameters
    ----------
    vectors : ndarray or StoredArray of shape (N, R)
    codes : ndarray of int of shape (N,)
    rank : int, optional
        Number of directions, at most C - 1 and R; that many by default.
    shrink : float, optional
        Shrinkage of the covariance within classes.
    convention : {"book", "sidekit"}
        "book": classes weighted by their size, as scatter matrices are defined; "sidekit": the computation of SIDEKIT
        1.3.2, only for comparisons: classes are not weighted, and the upper triangle of the (not symmetric) product S_b
        S_w^-1 is taken for a symmetric matrix, whose eigenvectors of length 1 are not the discriminant directions.

    Returns
    -------
    AffineMap
        With an offset of 0.

    Raises
    ------
    DataError
        If vectors of the same class never differ, or the classes' means do not.

    References
    ----------
    K. Fukunaga, "Introduction to statistical pattern recognition", 1990, chapter 10.
    """
    from scipy.linalg import eigh

    n_classes = int(codes.max()) + 1
    limit = min(n_classes - 1, vectors.shape[1])
    if rank is None:
        rank = limit
    if not 1 <= rank <= limit:
        text = f"lda.rank is {rank}, but {n_classes} speakers in {vectors.shape[1]} dimensions allow 1 to {limit}"
        raise ConfigError(text, remedy="lower it, or give more speakers")
    weighting = "vectors" if convention == "book" else "classes"
    within = regularised_within(vectors, codes, shrink=shrink, weighting=weighting)
    between = between_covariance(vectors, codes, weighting=weighting)
    if not between.any():
        raise DataError("the means of all speakers are the same: no direction distinguishes them")
    if convention == "sidekit":
        directions = eigh(between @ np.linalg.inv(within), lower=False)[1]
    else:
        directions = eigh(between, within)[1]
    return AffineMap(np.zeros(len(within)), signed(directions[:, ::-1][:, :rank]))


@one_blas_thread()
def fit_wccn(
    vectors: Rows, codes: NDArray[np.integer], *, shrink: float | None = None
) -> AffineMap:
    """Return the within-class covariance normalisation: x @ L, L L^T = W^-1, with the same weight for each class in W.

    References
    ----------
    A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
    Interspeech 2006.
    """
    within = regularised_within(vectors, codes, shrink=shrink, weighting="classes")
    return AffineMap(np.zeros(len(within)), whitening_matrix(within, "cholesky"))


@one_blas_thread()
def fit_coral(source: Rows, target: Rows, *, shrink: float | None = None) -> AffineMap:
    """Return the map that gives vectors of one domain the mean and covariance of another: correlation alignment.

        y = (x - m_s) C_s^(-1/2) C_t^(1/2) + m_t

    Sun et al. add the identity to both covariances; here they are shrunk if they are singular, so that the result
    does not depend on the unit of the vectors.

    Parameters
    ----------
    source : ndarray or StoredArray of shape (N, R)
        Vectors to be mapped: the training vectors of later steps.
    target : ndarray or StoredArray of shape (M, R)
        Vectors of the other domain, which need no speakers.
    shrink : float, optional
        Share of shrinkage of both covariances; by default only of singular ones.

    References
    ----------
    B. Sun, J. Feng and K. Saenko, "Return of frustratingly easy domain adaptation", AAAI 2016, algorithm 1.
    """

    def whitening(vectors: Rows, name: str) -> Floats:
        total = total_covariance(vectors)
        covariance = regularised(total, len(vectors) - 1, shrink=shrink, name=name)
        return whitening_matrix(covariance, "symmetric")

    of_source = whitening(source, "covariance of the training vectors")
    of_target = whitening(target, "covariance to adapt to")
    # (x - offset) @ matrix = (x - m_s) @ matrix + m_t
    offset = mean(source) - mean(target) @ of_target @ np.linalg.inv(of_source)
    return AffineMap(offset, of_source @ np.linalg.inv(of_target))


def signed(directions: Floats) -> Floats:
    """Return columns (R, K) with the signs that make the largest entry of each positive."""
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return directions * np.where(largest < 0, -1.0, 1.0)


def _unless_rounding(covariance: Floats, means: Floats, count: float) -> Floats:
    """Return a covariance, or zeros if it is within the rounding error of means of `count` equal vectors."""
    deviation = np.sqrt(np.trace(covariance))
    if is_negligible(deviation, row_norms(means).max(), share=share_of_sum(count)):
        return 0 * covariance
    return covariance


@one_blas_thread()
def _spherical(vectors: Rows, codes: NDArray[np.integer], rounds: int) -> tuple[Map, ...]:
    maps: list[Map] = []
    current: Rows = vectors
    for _ in range(rounds):
        whitening = whitening_matrix(regularised_within(current, codes))
        maps += [AffineMap(mean(current), whitening), LengthNorm()]
        current = apply_maps(maps[-2:], current)
    return tuple(maps)
