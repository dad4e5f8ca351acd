"""Maps between two spaces of embeddings, such as those of original and of anonymised speech.

Rows are vectors. With known pairs a map is a least squares fit; without pairs it is estimated together with the
assignment of one side to the other that it fits best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.sets import row_norms, to_unit
from evaluation.trials import check_index, vectors_of
from spkbase.errors import DataError
from spkbase.progress import progress
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

Matrix = NDArray[Any]
"""Of float64."""
MapKind = Literal["centred", "orthogonal", "ridge"]

# vectors of each side in an assignment, which takes cubic time
_MOST = 1500
_ROUNDS = 50  # maximum number of rounds
_FEW_ROUNDS = 5
_FIRST = 4  # directions of the first assignment


@one_blas_thread()
def procrustes(source: Matrix, target: Matrix, *, prior: float = 0.0) -> Matrix:
    """Return the orthogonal map that brings paired vectors closest to each other.

    W = U V' of the singular value decomposition X'Y = U S V' minimises ||X W - Y|| over all W with orthonormal columns
    (or rows, if the target has more dimensions).

    Parameters
    ----------
    source, target : ndarray of float64 of shape (n, D) and (n, E)
        X and Y, a pair in each row.
    prior : float
        The p of X'Y + p tr(S) / D I, which is decomposed in place of X'Y and draws the map towards the identity: for
        spaces of the same extractor and few pairs per dimension. 0 in the literature.

    Returns
    -------
    ndarray of float64 of shape (D, E)

    References
    ----------
    P. H. Schönemann, A generalized solution of the orthogonal Procrustes problem, Psychometrika 31, 1966.
    P. Champion, T. Thebaud, G. Le Lan, A. Larcher, D. Jouvet, On the invertibility of a voice privacy system using
    embedding alignment, ASRU 2021.

    Examples
    --------
    >>> procrustes(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 2.0], [-2.0, 0.0]])).round(12) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    moment = source.T @ target
    left_vectors, values, right_vectors = np.linalg.svd(moment, full_matrices=False)
    if prior:
        moment[np.diag_indices(len(moment))] += prior * values.sum() / len(moment)
        left_vectors, _, right_vectors = np.linalg.svd(moment)
    rotation: Matrix = left_vectors @ right_vectors
    return rotation


@one_blas_thread()
def ridge_map(source: Matrix, target: Matrix, ridge: float) -> Matrix:
    """Return the linear map of least squares with a penalty on its size.

    B = (X'X + r tr(X'X) / D I)^-1 X'Y.

    Parameters
    ----------
    source, target : ndarray of float64 of shape (n, D) and (n, E)
        X and Y, a pair in each row.
    ridge : float
        r, as a share of the mean variance of X; above 0.

    Returns
    -------
    ndarray of float64 of shape (D, E)
    """
    scatter = source.T @ source
    scatter[np.diag_indices(len(scatter))] += ridge * np.trace(scatter) / len(scatter)
    solution: Matrix = np.linalg.solve(scatter, source.T @ target)
    return solution


@one_blas_thread()
def wasserstein_procrustes(
    source: Matrix, target: Matrix, *, start: Matrix | None = None, seed: int = 0, restarts: int = 5
) -> Matrix:
    """Return an orthogonal map between vectors without known pairs.

    The W and the assignment P that minimise ||X W - P Y|| are improved in turn: P by the Hungarian method, W by
    `procrustes` on the pairs of P. The result depends on the start: with few vectors per dimension a wrong map may
    have a smaller distance than the right one. Spaces of one extractor are close to each other, and the identity is
    the start for them. Without a start, principal directions are mapped to principal directions in their order, with
    the signs that make their third moments agree, some of them inverted in further starts; the first assignments use
    the first 4 directions, the next ones twice as many, up to all of them.

    Parameters
    ----------
    source, target : ndarray of float64 of shape (n, D) and (m, D)
        X and Y, with means of 0. If a side has more than 1500 vectors, 1500 are drawn.
    start : ndarray of float64 of shape (D, D), optional
        The first W.
    seed : int
        Seed of the starts and of the drawn vectors.
    restarts : int
        Number of random starts; the result with the smallest distance is returned.

    Returns
    -------
    ndarray of float64 of shape (D, D)

    References
    ----------
    E. Grave, A. Joulin, Q. Berthet, Unsupervised alignment of embeddings with Wasserstein Procrustes, AISTATS 2019.
    """
    generator = stream(seed, "Wasserstein Procrustes")
    if len(source) > _MOST:
        source = source[np.sort(generator.permutation(len(source))[:_MOST])]
    if len(target) > _MOST:
        target = target[np.sort(generator.permutation(len(target))[:_MOST])]
    if start is not None:
        return _alternate(source, target, start, source.shape[1])[0]
    bases = [np.linalg.svd(some, full_matrices=False)[2].T for some in (source, target)]
    n_directions = min(base.shape[1] for base in bases)
    source_axes, target_axes = (base[:, :n_directions] for base in bases)
    signs = np.where(
        np.sum((source @ source_axes) ** 3, axis=0) * np.sum((target @ target_axes) ** 3, axis=0)
        < 0,
        -1.0,
        1.0,
    )
    best = np.eye(source.shape[1])
    least = np.inf
    starts = range(max(1, restarts))
    for number in progress(starts, description="alignment", total=len(starts)):
        if number:
            flipped = signs * np.where(generator.random(n_directions) < 0.25, -1.0, 1.0)
        else:
            flipped = signs
        rotation, cost = _alternate(
            source @ source_axes, target @ target_axes, np.diag(flipped), _FIRST
        )
        if cost < least:
            best = source_axes @ rotation @ target_axes.T
            least = cost
    # also map the directions without vectors to each other
    return procrustes(np.eye(len(best)), best)


@one_line
@dataclass(frozen=True, eq=False)
class Alignment:
    """A map from one space of embeddings to another: (x - source mean) W + target mean.

    Attributes
    ----------
    source_mean, target_mean : ndarray of float64 of shape (D,) and (E,)
    matrix : ndarray of float64 of shape (D, E)
        W.
    """

    source_mean: Matrix
    target_mean: Matrix
    matrix: Matrix

    @one_blas_thread()
    def apply(self, vectors: NDArray[np.floating]) -> Matrix:
        """Return vectors, (n, D), in the other space, (n, E)."""
        moved: Matrix = (
            vectors_of(vectors).astype(np.float64, copy=False) - self.source_mean
        ) @ self.matrix + self.target_mean
        return moved


def fit_alignment(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    kind: MapKind = "orthogonal",
    *,
    ridge: float = 0.1,
    prior: float = 0.0,
    uncentred: bool = False,
) -> Alignment:
    """Fit a map to pairs of vectors, see `procrustes` and `ridge_map`; "centred" only shifts the mean.

    Parameters
    ----------
    source, target : ndarray of a floating type of shape (n, D) and (n, E)
        A pair in each row.
    kind : {"centred", "orthogonal", "ridge"}
    ridge : float
        Penalty of `ridge_map`.
    prior : float
        Prior of `procrustes`.
    uncentred : bool
        Fit only a matrix to the vectors as they are; both means of the alignment are 0.

    Raises
    ------
    DataError
        If there are fewer than two pairs, or "centred" has sides of different dimension.
    """
    check_index(source=source, target=target)
    centred, means = _centred_sides(source, target, same=kind == "centred", subtract=not uncentred)
    if len(source) != len(target):
        raise DataError(f"expected pairs of vectors, got {len(source)} and {len(target)}")
    if kind == "centred":
        return Alignment(*means, np.eye(len(means[0])))
    if kind == "orthogonal":
        matrix = procrustes(*centred, prior=prior)
    else:
        matrix = ridge_map(*centred, ridge)
    return Alignment(*means, matrix)


def fit_alignment_without_pairs(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    *,
    one_extractor: bool = True,
    seed: int = 0,
    restarts: int = 5,
    uncentred: bool = False,
) -> Alignment:
    """Fit a map to vectors without known pairs, see `wasserstein_procrustes`.

    Parameters
    ----------
    source, target : ndarray of a floating type of shape (n, D) and (m, D)
    one_extractor : bool
        Both sides come from the same extractor: the start only shifts the mean.
    seed, restarts : int
        See `wasserstein_procrustes`.
    uncentred : bool
        See `fit_alignment`.

    Raises
    ------
    DataError
        If a side has fewer than two vectors, or the dimensions differ.
    """
    centred, means = _centred_sides(source, target, same=True, subtract=not uncentred)
    start = np.eye(len(means[0])) if one_extractor else None
    return Alignment(
        *means, wasserstein_procrustes(*centred, start=start, seed=seed, restarts=restarts)
    )


@one_blas_thread()
def owner_ranks(
    tested: NDArray[np.floating],
    speakers: NDArray[np.object_],
    gallery: NDArray[np.floating],
    owners: NDArray[np.object_],
) -> NDArray[np.int64]:
    """Return the rank (from 1) of each vector's speaker among the speakers of a gallery.

    The similarity of a speaker of the gallery is the highest cosine of its vectors; another speaker within 1e-12 of the
    target speaker ranks first. So rank 1 means that the nearest neighbour is a vector of the target speaker.

    Parameters
    ----------
    tested, gallery : ndarray of a floating type of shape (n, D) and (m, D)
    speakers, owners : ndarray of str of shape (n,) and (m,), dtype object
        Speaker of each vector; a tested speaker without a vector in the gallery ranks last.

    Returns
    -------
    ndarray of int of shape (n,)
    """
    check_index(tested=tested, speakers=speakers)
    check_index(gallery=gallery, owners=owners)
    names, codes = np.unique(owners.astype(str), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names)))
    unit = _to_unit(gallery[order])
    column_of = {name: number for number, name in enumerate(names.tolist())}
    ranks = np.empty(len(tested), np.int64)
    for start in range(0, len(tested), _MOST):
        some = slice(start, start + _MOST)
        nearest = np.maximum.reduceat(_to_unit(tested[some]) @ unit.T, starts, axis=1)
        columns = np.array([column_of.get(str(name), -1) for name in speakers[some].tolist()])
        own = np.where(columns >= 0, nearest[np.arange(len(columns)), columns], -np.inf)
        ranks[some] = np.sum(nearest > own[:, None] - 1e-12, axis=1) + (columns < 0)
    return ranks


def _alternate(
    source: Matrix, target: Matrix, rotation: Matrix, n_directions: int
) -> tuple[Matrix, float]:
    """Improve map and assignment in turn, in more and more directions; return the map and its squared distance."""
    from scipy.optimize import linear_sum_assignment

    while True:
        n_directions = min(n_directions, source.shape[1])
        cost = np.inf
        rounds = _ROUNDS if n_directions == source.shape[1] else _FEW_ROUNDS
        for _ in range(rounds):
            mapped = (source @ rotation)[:, :n_directions]
            goal = target[:, :n_directions]
            squares = (
                np.sum(mapped**2, axis=1)[:, None] + np.sum(goal**2, axis=1) - 2 * mapped @ goal.T
            )
            rows, columns = linear_sum_assignment(squares)
            now = float(squares[rows, columns].mean())
            rotation = procrustes(source[rows], target[columns])
            if not now < cost - 1e-9 * abs(now):
                break
            cost = now
        if n_directions == source.shape[1]:
            return rotation, cost
        n_directions *= 2


def _centred_sides(
    source: NDArray[np.floating], target: NDArray[np.floating], *, same: bool, subtract: bool
) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """Check both sides, and return them centred, with their means; `same` requires equal dimensions."""
    sides = [
        vectors_of(side, "training vectors").astype(np.float64, copy=False)
        for side in (source, target)
    ]
    for side in sides:
        if len(side) < 2:
            raise DataError(
                f"expected at least two vectors on each side to train on, got {len(side)}"
            )
        if not np.isfinite(side).all():
            raise DataError(
                "training vectors are not finite (NaN or infinite)", remedy="extract them again"
            )
    dimensions = [side.shape[1] for side in sides]
    if same and dimensions[0] != dimensions[1]:
        text = f"expected the same number of dimensions on both sides, got {dimensions[0]} and {dimensions[1]}"
        raise DataError(
            text,
            remedy="use one extractor for both, or an orthogonal or ridge map trained on pairs",
        )
    means = subtract * sides[0].mean(axis=0), subtract * sides[1].mean(axis=0)
    return (sides[0] - means[0], sides[1] - means[1]), means


def _to_unit(vectors: NDArray[np.floating]) -> Matrix:
    """Scale vectors to length 1, except those of length 0."""
    norms = row_norms(vectors)
    return to_unit(vectors, np.where(norms > 0, norms, 1.0))
