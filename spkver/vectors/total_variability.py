"""Total variability: the subspace in which the means of all segments vary, trained by EM on statistics.

The means of a segment are m + T h, where T has low rank R and h ~ N(0, I); the i-vector is the posterior mean of h. EM
alternates the E-step of `spkver.vectors.posteriors` with `m_step` and `minimum_divergence`, in the space in which every
Gaussian of the mixture has the covariance I, whether its covariance is diagonal or full.

References
----------
N. Dehak, P. Kenny, R. Dehak, P. Dumouchel and P. Ouellet, "Front-end factor analysis for speaker verification", IEEE
Trans. Audio, Speech and Language Processing 19(4), 2011.
P. Kenny, G. Boulianne and P. Dumouchel, "Eigenvoice modeling with sparse training data", IEEE Trans. Speech and Audio
Processing 13(3), 2005 (the EM).
P. Kenny, P. Ouellet, N. Dehak, V. Gupta and P. Dumouchel, "A study of interspeaker variability in speaker
verification", IEEE Trans. Audio, Speech and Language Processing 16(5), 2008 (minimum divergence).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from spkbase.arrays import Floats
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, errors_of
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.progress import progress, verbosely
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import (
    ALL_CORES,
    Work,
    chunk_bounds,
    one_blas_thread,
    share_out,
    ships_items,
)
from spkver.mixture import GaussianMixture, Statistics, whiten, whitening_factors
from spkver.vectors import posteriors

logger = logging.getLogger(__name__)

MinimumDivergence = Literal["right", "sidekit", "none"]
# a random initial matrix has the scatter of means that MAP adaptation with this relevance assumes
RELEVANCE = 16.0
_GROUP = 8  # number of components in a task of the M-step
_EMPTY = 1e-90  # a component with fewer frames in total does not determine its rows

_KIND = "total variability"
_NAMES = ("loadings", "means", "factors", "weights", "log_likelihoods")


@dataclass(frozen=True)
class TotalVariabilityConfig:
    """Settings for training the matrix.

    Attributes
    ----------
    rank : int
        Length of the i-vectors, R.
    rounds : int
        Rounds of EM.
    seed : int
        Seed of the initial matrix.
    minimum_divergence : {"right", "sidekit", "none"}
        How the prior of the factors is made N(0, I) again after each round, see `minimum_divergence`.
    """

    rank: int = 400
    rounds: int = 10
    seed: int = 0
    minimum_divergence: MinimumDivergence = "right"

    def __post_init__(self) -> None:
        choices = {"minimum_divergence": get_args(MinimumDivergence)}
        check_values(
            "total_variability", self, least={"rank": 1, "rounds": 0, "seed": 0}, choices=choices
        )


@one_line
@dataclass(frozen=True)
class TotalVariability:
    """A matrix T, the means and the whitening of its mixture, and the history of its training.

    Attributes
    ----------
    loadings : ndarray of shape (C, D, R)
        T in the whitened space.
    means : ndarray of shape (C, D)
        Means of the mixture.
    factors : ndarray of shape (C, D) or (C, D, D)
        `spkver.mixture.whitening_factors` of the mixture: standard deviations, or Cholesky factors of covariances.
    weights : ndarray of shape (C,)
        Weights of the mixture, for the fast extraction.
    log_likelihoods : ndarray of shape (I,)
        In each round of EM, the part of the mean log-likelihood of a segment that depends on T, in nat, under the
        parameters before the update.
    """

    loadings: Floats
    means: Floats
    factors: Floats
    weights: Floats
    log_likelihoods: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        shape = self.means.shape
        arrays = self.loadings, self.means, self.factors, self.weights
        if (
            len(shape) != 2
            or self.loadings.ndim != 3
            or self.loadings.shape[:2] != shape
            or self.factors.shape not in (shape, (*shape, shape[1]))
            or self.weights.shape != shape[:1]
        ):
            got = ", ".join(str(array.shape) for array in arrays)
            expected = "loadings (C, D, R), means (C, D), factors (C, D) or (C, D, D), weights (C,)"
            raise DataError(f"expected {expected}, got {got}")
        if not all(np.isfinite(array).all() for array in arrays):
            raise DataError(
                "a total variability matrix and its mixture must be finite", remedy="train it again"
            )
        diagonals = self.factors
        if self.factors.ndim == 3:
            diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        if not (diagonals > 0).all():
            raise DataError(
                "the standard deviations of the mixture must be above 0", remedy="train it again"
            )

    @property
    def rank(self) -> int:
        """Length of the i-vectors, R."""
        return int(self.loadings.shape[2])

    def terms(self, *, work: Work = ALL_CORES, products: bool = True) -> posteriors.PosteriorTerms:
        """Return the terms of segments' posteriors, see `posterior_terms`."""
        return posteriors.posterior_terms(
            self.loadings, self.means, self.factors, work=work, products=products
        )

    def check(self, statistics: Statistics) -> None:
        """Raise a DataError if there are no statistics, or if they do not belong to the mixture."""
        statistics.check(self.means)
        if not len(statistics):
            raise DataError("no statistics: expected at least one segment")


def m_step(second: Floats, cross: Floats, before: Floats) -> Floats:
    """Return the maximum-likelihood rows of T: T_c = B_c A_c^-1.

    Parameters
    ----------
    second : ndarray of shape (C, R (R + 1) / 2)
        A_c = sum_s n_c (L^-1 + h h'), packed (`spkver.vectors.posteriors`).
    cross : ndarray of shape (C, D, R)
        B_c = sum_s f_c h', with whitened f_c.
    before : ndarray of shape (C, D, R)
        T before the step; a component without frames keeps its rows.

    Returns
    -------
    ndarray of shape (C, D, R)

    References
    ----------
    Kenny, Boulianne and Dumouchel, proposition 3.
    """
    loadings = np.array(cross, np.float64, order="C")
    matrices = np.array(second)
    usable = posteriors.factor(matrices)
    posteriors.solve(matrices, loadings)
    loadings[~usable] = before[~usable]
    return loadings


def minimum_divergence(moment: Floats, convention: MinimumDivergence = "right") -> Floats:
    """Return the matrix G for which the factors of T G have the prior N(0, I) if the factors of T have N(0, M).

        M = mean_s (L^-1 + h h') = G G',   G lower triangular

    Parameters
    ----------
    moment : ndarray of shape (R, R)
        M.
    convention : {"right", "sidekit", "none"}
        "sidekit" is the upper factor U of M = U' U, as in SIDEKIT 1.3.2: T U does not have that prior, and EM has to
        compensate for it. "none" is I.

    Returns
    -------
    ndarray of shape (R, R)

    References
    ----------
    Kenny et al. 2008, section II.B.

    Examples
    --------
    >>> minimum_divergence(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if convention == "none":
        return np.eye(len(moment))
    lower = np.linalg.cholesky(moment).astype(np.float64, copy=False)
    if convention == "right":
        return lower
    return lower.T


def start_loadings(
    shape: tuple[int, ...], rank: int, seed: int, name: str = "total variability"
) -> Floats:
    """Return a matrix to start from, shape (C, D, R): random normal numbers with the scatter that MAP assumes."""
    draws = stream(seed, name).standard_normal((*shape, rank))
    start: Floats = draws / np.sqrt(RELEVANCE * rank)
    return start


@verbosely
def train_total_variability(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: TotalVariabilityConfig | None = None,
    *,
    start: Floats | None = None,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> TotalVariability:
    """Train the matrix on the statistics of segments.

    Parameters
    ----------
    mixture : GaussianMixture
        With diagonal or full covariances.
    statistics : Statistics
        Statistics under that mixture; files are read in blocks. A segment without frames is allowed.
    config : TotalVariabilityConfig
    start : ndarray of shape (C, D, R) or (C * D, R), optional
        Whitened matrix to start from; by default drawn with the seed.
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    TotalVariability

    Raises
    ------
    DataError
        If the statistics do not fit this mixture, a number is not finite, or there are none.
    ConfigError
        If the rank is higher than the segments or the mixture allow.
    """
    config = config or TotalVariabilityConfig()
    shape = mixture.means.shape
    statistics.check(mixture.means)
    if not len(statistics):
        raise DataError("no statistics: expected at least one segment")
    check_rank(config.rank, n_segments=len(statistics), width=mixture.means.size)
    if start is None:
        start = start_loadings(shape, config.rank, config.seed)
    loadings = np.asarray(start, np.float64)
    if loadings.size != mixture.means.size * config.rank:
        expected = f"{(*shape, config.rank)} or {(mixture.means.size, config.rank)}"
        raise DataError(f"the matrix to start from has shape {loadings.shape}, expected {expected}")
    loadings = loadings.reshape(*shape, config.rank)
    model = TotalVariability(loadings, mixture.means, whitening_factors(mixture), mixture.weights)
    likelihoods: list[float] = []
    rounds = range(config.rounds)
    for number in progress(rounds, description="total variability", total=config.rounds):
        model = TotalVariability(loadings, model.means, model.factors, model.weights)
        sums = e_step(model, statistics, work=work)
        likelihoods.append(sums.log_likelihood / sums.n_segments)
        text = "total variability, EM iteration %d: mean log-likelihood %.6f nat per segment"
        logger.debug(text, number + 1, likelihoods[-1])
        loadings = updated(model, sums, config.minimum_divergence, work=work)
    return TotalVariability(
        loadings, model.means, model.factors, model.weights, np.array(likelihoods)
    )


def check_rank(rank: int, *, n_segments: int, width: int) -> None:
    """Raise ConfigError if the rank is too high for the segments, or for the length of supervectors."""
    for limit, reason, remedy in (
        (width, f"a supervector has only {width} dimensions", "lower it"),
        (n_segments, f"there are only {n_segments} segments", "lower it or give more segments"),
    ):
        if rank > limit:
            raise ConfigError(f"total_variability.rank is {rank}, but {reason}", remedy=remedy)


def e_step(
    model: TotalVariability, statistics: Statistics, *, work: Work = ALL_CORES
) -> posteriors.EmSums:
    """Return the sums of the E-step over all segments: blocks are computed by worker processes, or parts of a block by
    threads.

    Parameters
    ----------
    model : TotalVariability
    statistics : Statistics
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    EmSums

    Raises
    ------
    DataError
        If the statistics do not fit the matrix's mixture, or are not finite.
    """
    model.check(statistics)
    blocks = posteriors.blocks_of(statistics, model.rank)
    shape = len(model.means), model.means.size
    terms = model.terms(work=work)
    if ships_items():
        n_blocks = len(posteriors.block_sizes(statistics, model.rank))
        sums_of_block = partial(_sums_of_block, terms=terms, shape=shape)
        return reduce(add, work.map(sums_of_block, blocks, total=n_blocks))
    sums = posteriors.EmSums.empty(*shape, model.rank)
    memory = posteriors.block_memory(statistics, model.rank)
    for block in blocks:
        posteriors.add_block(sums, block, terms, work=work, memory=memory)
    return sums


def updated(
    model: TotalVariability,
    sums: posteriors.EmSums,
    convention: MinimumDivergence = "right",
    *,
    work: Work = ALL_CORES,
) -> Floats:
    """Return the matrix (C, D, R) after the M-step and, by its convention, the minimum divergence step."""
    with one_blas_thread():
        rotation = minimum_divergence(posteriors.unpack(sums.moment) / sums.n_segments, convention)
    cross = sums.cross.reshape(model.rank, *model.means.shape)
    loadings = np.empty(model.loadings.shape)

    def update(bounds: tuple[int, int]) -> None:
        some = slice(*bounds)
        centred = cross[:, some] - sums.counted[:, some, None] * model.means[some]
        whitened = np.moveaxis(whiten(centred, model.factors[some]), 0, 2)
        second = sums.second[some].copy()
        second[
            ~(np.abs(second).max(axis=1) > _EMPTY)
        ] = -1  # so that the matrix has no Cholesky factor
        loadings[some] = m_step(second, whitened, model.loadings[some])
        if convention != "none":
            loadings[some] = loadings[some] @ rotation

    share_out(work, update, chunk_bounds(len(loadings), _GROUP))
    return loadings


def write_total_variability(path: str | Path, model: TotalVariability) -> None:
    """Write a matrix with its mixture's means and whitening to an HDF5 file, whole or not at all."""
    arrays = {name: getattr(model, name) for name in _NAMES}
    write_arrays(path, arrays, attributes={"kind": _KIND})


def read_total_variability(path: str | Path) -> TotalVariability:
    """Read a matrix that `write_total_variability` wrote.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, or does not hold such a matrix.
    """
    with errors_of(path, remedy="give a file of write_total_variability"):
        return TotalVariability(**read_arrays(path, *_NAMES))


def _sums_of_block(
    block: Statistics, terms: posteriors.PosteriorTerms, shape: tuple[int, int]
) -> posteriors.EmSums:
    sums = posteriors.EmSums.empty(*shape, terms.rank)
    posteriors.add_block(sums, block, terms, work=Work(1))
    return sums
