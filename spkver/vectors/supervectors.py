"""MAP adaptation of a mixture's means, and supervectors of the adapted means.

Sums over the sessions of models, and sessions minus factors, are computed on access: only counts and factors are held
in memory, so the statistics of all sessions may be in a file.

References
----------
J.-L. Gauvain and C.-H. Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of Markov
chains", IEEE Trans. Speech and Audio Processing 2(2), 1994.
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000.
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006 (the normalisation by sqrt(w / v)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.arrays import ComputedRows, Floats, Rows, fill_rows
from spkbase.configuration import check_values
from spkbase.errors import DataError
from spkbase.progress import verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.mixture import (
    GaussianMixture,
    SegmentRows,
    Statistics,
    of_each_gaussian,
    whitening_factors,
)
from spkver.sidekit import (
    StatServer,
    open_stat_server,
    read_stat_server,
    write_stat_blocks,
    write_stat_server,
)

VECTORS = 32  # number of supervectors in a task and in a block of a file
_SESSIONS = 256  # number of sessions read together
_ROWS = 64  # number of sessions whose shifts are in memory together

_EPSILON = float(np.finfo(np.float32).eps)


def sum_by_model(statistics: Statistics, dtype: Any = np.float64) -> Statistics:
    """Return the statistics of each model, summed over its sessions in their order; models are sorted by id.

    Parameters
    ----------
    statistics : Statistics
        Statistics of sessions; `models` are their models.
    dtype : dtype
        Type of the sums.

    Returns
    -------
    Statistics
        Statistics whose models and segments are the same ids. First-order rows are summed on access.
    """
    names, owner = np.unique(statistics.models, return_inverse=True)
    rows_of_models = np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1])

    def sums_of(array: Rows, models: NDArray[np.int64]) -> NDArray[Any]:
        sums = np.zeros((len(models), array.shape[1]), dtype)
        rows = [rows_of_models[model] for model in models]
        owners = np.repeat(np.arange(len(models)), [*map(len, rows)])
        numbers = np.concatenate([*rows, np.empty(0, np.int64)])
        for start, stop in chunk_bounds(len(numbers), _SESSIONS):
            sessions = np.asarray(array[numbers[start:stop]])
            for owner, session in zip(owners[start:stop], sessions, strict=True):
                sums[owner] += session
        return sums

    shape = len(names), statistics.first.shape[1]
    first = ComputedRows(shape, partial(sums_of, statistics.first), dtype)
    zeroth = sums_of(statistics.zeroth, np.arange(len(names)))
    return Statistics(names, names, zeroth, cast("Rows", first), statistics.mixture)


def without_factors(
    statistics: Statistics,
    loadings: Floats,
    vectors: Floats,
    owners: NDArray[np.int64] | None = None,
) -> Statistics:
    """Return statistics from which the shift of the mixture's means by each session's factors is removed: f_c - n_c T_c
    h.

    Parameters
    ----------
    statistics : Statistics
        Statistics of S sessions.
    loadings : ndarray of shape (C, D, R)
        T_c, not whitened.
    vectors : ndarray of shape (H, R)
        h.
    owners : ndarray of int64 of shape (S,), optional
        Row of `vectors` for each session; by default each session has its own row.

    Returns
    -------
    Statistics
        First-order rows are computed on access, in float64.
    """
    n_components, dimension, rank = loadings.shape
    matrix = np.ascontiguousarray(loadings.reshape(-1, rank).T)
    zeroth = np.asarray(statistics.zeroth).astype(np.float64)
    rows_of_sessions = np.arange(len(statistics)) if owners is None else owners

    @one_blas_thread()
    def shifted(sessions: NDArray[np.int64]) -> Floats:
        first = np.asarray(statistics.first[sessions]).astype(np.float64)
        first = first.reshape(-1, n_components, dimension)
        for start, stop in chunk_bounds(len(sessions), _ROWS):
            some = sessions[start:stop]
            used, rows = np.unique(rows_of_sessions[some], return_inverse=True)
            shifts = (vectors[used] @ matrix).reshape(-1, n_components, dimension)
            first[start:stop] -= zeroth[some][:, :, None] * shifts[rows]
        return first.reshape(len(sessions), -1)

    rows = cast("Rows", ComputedRows(statistics.first.shape, shifted))
    return replace(statistics, zeroth=zeroth, first=rows)


def map_means(
    zeroth: NDArray[Any],
    first: NDArray[Any],
    means: NDArray[Any],
    relevance: float,
    *,
    epsilon: float = 0.0,
) -> NDArray[Any]:
    """Return the means of a mixture adapted to the statistics of a speaker.

        m'_c = a_c f_c / n_c + (1 - a_c) m_c,   a_c = n_c / (n_c + r)

    Parameters
    ----------
    zeroth : ndarray of shape (..., C)
        Counts n_c; float64, like all arrays.
    first : ndarray of shape (..., C, D)
        Sums f_c of the frames, not centred.
    means : ndarray of shape (C, D)
        Prior means m_c.
    relevance : float
        Number of frames r at which the data weigh as much as the prior.
    epsilon : float
        Number added to the counts n_c in a_c, as in SIDEKIT for single sessions.

    Returns
    -------
    ndarray of shape (..., C, D)
        Adapted means; a component without frames keeps its prior mean, even at a relevance of 0 unless there is an
        epsilon.

    References
    ----------
    Reynolds, Quatieri and Dunn, equations 11 to 14; Gauvain and Lee.

    Examples
    --------
    >>> map_means(np.array([2.0, 0.0]), np.array([[4.0], [0.0]]), np.array([[1.0], [5.0]]), 3.0).tolist()
    [[1.4], [5.0]]
    """
    count = zeroth[..., None]
    share = count + epsilon
    share = share / np.where(share > 0, share + relevance, 1.0)
    adapted = first / np.where(count > 0, count, 1.0)
    adapted *= share
    adapted += (1 - share) * means
    return adapted


@one_blas_thread()
def supervector_scale(mixture: GaussianMixture) -> Floats:
    """Return the factors from means to a normalised supervector: sqrt(w_c / v_c), or sqrt(w_c) L_c^-1.

    The inner product of normalised supervectors m and m' is sum_c w_c m_c' S_c^-1 m'_c; L_c is the lower Cholesky
    factor of a full covariance S_c.

    Parameters
    ----------
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (C * D,), or (C, D, D) for full covariances
    """
    if not mixture.has_full_covariances:
        return np.sqrt(mixture.weights[:, None] / mixture.variances).reshape(-1)
    inverses = np.linalg.inv(whitening_factors(mixture))
    return np.asarray(np.sqrt(mixture.weights)[:, None, None] * inverses)


@dataclass(frozen=True)
class MapConfig:
    """Settings of the adaptation of models.

    Attributes
    ----------
    relevance : float
        Number of frames at which the data weigh as much as the prior.
    normalise : bool
        Scale supervectors by sqrt(weight / variance), so that their inner product bounds the divergence of the models.
    """

    relevance: float = 3.0
    normalise: bool = True

    def __post_init__(self) -> None:
        check_values("map", self, least={"relevance": 0.0})


@one_line
@dataclass(frozen=True)
class Supervectors(SegmentRows):
    """One vector for each segment (or model).

    Attributes
    ----------
    models, segments : ndarray of str of shape (N,)
    vectors : ndarray or StoredArray of shape (N, C * D)
    """

    models: NDArray[Any]
    segments: NDArray[Any]
    vectors: Rows

    def __post_init__(self) -> None:
        lengths = {len(self.models), len(self.segments), len(self.vectors)}
        if self.vectors.ndim != 2 or len(lengths) > 1:
            got = f"{len(self.models)}, {len(self.segments)}, {self.vectors.shape}"
            raise DataError(f"expected models (N,), segments (N,) and vectors (N, K); got {got}")

    def __len__(self) -> int:
        return len(self.models)

    def embeddings(self) -> Embeddings:
        """Return the vectors in memory, models as speakers.

        Ids are the segments, preceded by their models if segments repeat.
        """
        ids = self.segments
        if len(set(ids)) < len(self):
            rows = zip(self.models, self.segments, strict=True)
            ids = np.array([f"{model} {segment}" for model, segment in rows], object)
        return Embeddings(ids, self.models, np.asarray(self.vectors))


@verbosely
def adapt_supervectors(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig | float | None = None,
    *,
    epsilon: float = _EPSILON,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
    verbose: bool = True,
) -> Supervectors:
    """Return the MAP-adapted means of each row of statistics, as supervectors.

    Parameters
    ----------
    mixture : GaussianMixture
    statistics : Statistics
        Statistics; those in a file are read by blocks.
    config : MapConfig or float
        Settings; a number is taken as the relevance, in frames.
    epsilon : float
        See `map_means`.
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    destination : path, optional
        File for the rows, in the layout of SIDEKIT's StatServer in float32, with ones as counts, from which they are
        read on access.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Supervectors
        Supervectors, in memory in the dtype of the statistics; the UBM's mean is not subtracted.

    Raises
    ------
    DataError
        If the statistics do not fit this mixture, a number is not finite, or the file cannot be written.
    """
    if config is None:
        config = MapConfig()
    elif not isinstance(config, MapConfig):
        config = MapConfig(relevance=config)
    statistics.check(mixture.means)
    scale = None
    if config.normalise:
        scale = supervector_scale(mixture).reshape(mixture.variances.shape)
    adapt = partial(
        _adapt_block, means=mixture.means, scale=scale, relevance=config.relevance, epsilon=epsilon
    )
    bounds = chunk_bounds(len(statistics), VECTORS)
    parts = (statistics.part(start, stop) for start, stop in bounds)
    blocks = work.map(adapt, parts, total=len(bounds))
    models = statistics.models
    segments = statistics.segments
    width = mixture.means.size
    if destination is None:
        vectors = np.empty((len(models), width), statistics.first.dtype)
        fill_rows((vectors,), ((rows,) for rows in blocks))
        return Supervectors(models, segments, vectors)
    pairs = ((np.ones((len(rows), 1), np.float32), rows) for rows in blocks)
    server = write_stat_blocks(destination, models, segments, (1, width), pairs)
    return Supervectors(models, segments, server.stat1)


def adapt_multisession(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig | float | None = None,
    *,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
) -> Supervectors:
    """Return the MAP-adapted means of each model from all its sessions together.

    Parameters
    ----------
    mixture, statistics, config, work, destination
        As for `adapt_supervectors`.

    Returns
    -------
    Supervectors
        One row for each model, sorted by id; models and segments are the same ids.

    Raises
    ------
    DataError
        As for `adapt_supervectors`.
    """
    sums = sum_by_model(statistics, statistics.first.dtype)
    return adapt_supervectors(
        mixture, sums, config, epsilon=0.0, work=work, destination=destination
    )


def open_supervectors(path: str | Path) -> Supervectors:
    """Open the supervectors in a file; `vectors` are read by rows, on access."""
    models, segments, _, vectors = open_stat_server(path)
    return Supervectors(models, segments, vectors)


def read_supervectors(path: str | Path) -> Supervectors:
    """Read all supervectors of a file that `write_supervectors`, a recipe or SIDEKIT wrote, in float32.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, or a number is not finite.
    """
    server = read_stat_server(path)
    return Supervectors(server.models, server.segments, server.stat1)


def write_supervectors(path: str | Path, supervectors: Supervectors) -> None:
    """Write supervectors in the layout of SIDEKIT's StatServer, in float32, with ones as counts, whole or not at all.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    ones = np.ones((len(supervectors), 1), np.float32)
    write_stat_server(
        path, StatServer(supervectors.models, supervectors.segments, ones, supervectors.vectors)
    )


def _adapt_block(
    statistics: Statistics,
    means: NDArray[Any],
    scale: NDArray[Any] | None,
    relevance: float,
    epsilon: float,
) -> NDArray[Any]:
    """Return the supervectors of a block, in the dtype of the statistics."""
    zeroth = np.asarray(statistics.zeroth)
    first = np.asarray(statistics.first)
    vectors = np.empty_like(first)
    # process a row at a time, which stays in the cache
    for row, (counts, sums) in enumerate(zip(zeroth, first, strict=True)):
        sums = sums.reshape(means.shape).astype(np.float64)
        adapted = map_means(counts.astype(np.float64), sums, means, relevance, epsilon=epsilon)
        if scale is not None:
            adapted = of_each_gaussian(scale, adapted)
        vectors[row] = adapted.reshape(-1)
    return vectors
