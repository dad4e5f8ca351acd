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

from evaluation.parallel import chunk_bounds, ordered_map
from spkver.errors import ConfigError, DataError

_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_ROWS = 256


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

    def __call__(self, vectors: NDArray, *, jobs: int | None = None) -> NDArray:
        """Project vectors (N, D); they keep their dtype.

        The product runs in float64: what remains is small beside what is removed, and in float32 the rounding of the
        large part would be felt in the small one.
        """
        projected = np.empty_like(vectors)
        work = partial(_project, vectors=vectors, directions=self.directions, out=projected)
        for _ in ordered_map(work, chunk_bounds(len(vectors), _ROWS), jobs=jobs, threads=True):
            pass
        return projected


def _project(bounds: tuple[int, int], vectors: NDArray, directions: NDArray, out: NDArray) -> None:
    block = vectors[slice(*bounds)].astype(np.float64)
    out[slice(*bounds)] = block - (block @ directions.T) @ directions


def fit_nap(
    vectors: NDArray,
    *,
    rank: int,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray | None = None,
    jobs: int | None = None,
) -> Projection:
    """Find the directions of largest scatter.

    Parameters
    ----------
    vectors : ndarray [shape=(S, D)]
        Supervectors of S sessions.
    rank : int
        Number of directions.
    scatter : str
        "total" or "within", see `NapConfig`.
    speakers : sequence of str, length S
        For the scatter within speakers.
    jobs : int, optional
        Worker threads; the result does not depend on it.

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
    if scatter == "within":
        vectors = _centre(vectors, np.asarray(speakers, object))
    gram = gram_matrix(vectors, jobs=jobs) / vectors.shape[1]
    with threadpool_limits(1):  # one BLAS thread everywhere: results must not depend on the machine's cores
        values, coordinates = np.linalg.eigh(gram)
    values, coordinates = values[::-1][:rank], coordinates[:, ::-1][:, :rank]
    if rank and not values[-1] > values[0] * n_sessions * np.finfo(vectors.dtype).eps:
        spanned = int((values > values[0] * n_sessions * np.finfo(vectors.dtype).eps).sum())
        raise ConfigError(
            f"nap.rank is {rank}, but the {n_sessions} sessions span only {spanned} directions", remedy="lower it"
        )
    weights = (coordinates / np.sqrt(vectors.shape[1] * values)).T
    directions = np.empty((rank, vectors.shape[1]))
    with threadpool_limits(1):
        for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
            directions[:, start:stop] = weights @ vectors[:, start:stop].astype(np.float64)
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


def gram_matrix(vectors: NDArray, others: NDArray | None = None, *, jobs: int | None = None) -> NDArray[np.float64]:
    """Inner products (N, M) of two sets of vectors, in float64 and without a float64 copy of them.

    Parameters
    ----------
    vectors : ndarray [shape=(N, D)]
    others : ndarray [shape=(M, D)], optional
        The same vectors by default.
    jobs : int, optional
        Worker threads; the result does not depend on it.
    """
    gram = np.zeros((len(vectors), len(vectors if others is None else others)))
    work = partial(_partial_gram, vectors=vectors, others=others)
    for part in ordered_map(work, chunk_bounds(vectors.shape[1], _COLUMNS), jobs=jobs, threads=True):
        gram += part
    return gram


def _partial_gram(bounds: tuple[int, int], vectors: NDArray, others: NDArray | None) -> NDArray[np.float64]:
    left = vectors[:, slice(*bounds)].astype(np.float64)
    return left @ (left if others is None else others[:, slice(*bounds)].astype(np.float64)).T


def _centre(vectors: NDArray, speakers: NDArray) -> NDArray:
    """Subtract each speaker's mean."""
    centred = vectors.copy()
    for speaker in sorted(set(speakers)):
        rows = speakers == speaker
        centred[rows] -= vectors[rows].mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    return centred
