"""Nuisance attribute projection: remove the directions in which sessions vary.

References
----------
W. M. Campbell, D. E. Sturim, D. A. Reynolds and A. Solomonoff, "SVM based speaker verification using a GMM supervector
kernel and NAP variability compensation", ICASSP 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows, fill_rows, part
from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Array, Device, Work, chunk_bounds, one_blas_thread
from spkver.backend.linear import GroupMeans, combine_rows, gram_matrix
from spkver.vectors import Supervectors, vectors_of

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


def remove_directions(vectors: Array, directions: Array) -> Array:
    """Return vectors without their part in the span of orthonormal directions: x - N^T N x.

    Parameters
    ----------
    vectors : ndarray of shape (n, D)
        Of NumPy or of a device's library; float64, since what remains is small beside what is removed: in float32 the
        rounding of the large part would be felt in the small one.
    directions : ndarray of shape (k, D)
        Orthonormal rows N.

    Returns
    -------
    ndarray of shape (n, D)

    References
    ----------
    Campbell, Sturim, Reynolds and Solomonoff, see the module.
    """
    return vectors - (vectors @ directions.T) @ directions


def fit_nap(
    vectors: Supervectors | Rows,
    *,
    rank: int,
    scatter: str = "total",
    speakers: Sequence[str] | NDArray | None = None,
    work: Work = ALL_CORES,
) -> Projection:
    """Find the directions of largest scatter.

    They are the first eigenvectors of X^T X for the (S, D) matrix X of all vectors. D is much larger than S, so they
    come from the Gram matrix G = X X^T: where G u = l u, X^T u / sqrt(l) is one of them, of length 1. X is neither
    centred nor sorted by speaker ("total"), or less the mean of each speaker ("within").

    Parameters
    ----------
    vectors : Supervectors, or ndarray or StoredArray of shape (S, D)
        Of S sessions; those in a file are read by blocks.
    rank : int
        Number of directions.
    scatter : str
        "total" or "within", see `NapConfig`.
    speakers : sequence of str, of length S
        For the scatter within speakers; by default the models of supervectors.
    work : spkbase.work.Work
        The result does not depend on the number of workers; a device computes in float64 too.

    Returns
    -------
    Projection

    Raises
    ------
    DataError
        If the scatter within speakers is asked for, and there is not one speaker for each session.
    ConfigError
        If the sessions do not span that many directions.
    """
    speakers = getattr(vectors, "models", None) if speakers is None else speakers
    vectors = vectors_of(vectors)
    n_sessions, dimension = vectors.shape
    check_rank(rank, n_sessions, scatter=scatter, speakers=speakers)
    centre = _speaker_means(vectors, np.asarray(speakers, object)) if scatter == "within" else None
    gram = gram_matrix(vectors, centre=centre, work=work) / dimension
    with one_blas_thread():  # results must not depend on the machine's cores
        values, coordinates = np.linalg.eigh(gram)
    values, coordinates = values[::-1][:rank], coordinates[:, ::-1][:, :rank]
    smallest = n_sessions * np.finfo(vectors.dtype).eps
    if rank and not values[-1] > values[0] * smallest:
        n_spanned = int((values > values[0] * smallest).sum())
        raise ConfigError(
            f"nap.rank is {rank}, but the {n_sessions} sessions span only {n_spanned} directions", remedy="lower it"
        )
    weights = (coordinates / np.sqrt(dimension * values)).T
    return Projection(combine_rows(weights, vectors, centre=centre, work=work))


@one_line
@dataclass(frozen=True)
class Projection:
    """Removes a subspace, see `remove_directions`; vectors keep their dtype.

    Attributes
    ----------
    directions : ndarray of shape (k, D)
        Orthonormal rows, the largest scatter first.
    """

    directions: NDArray

    @overload
    def __call__(self, vectors: Supervectors, *, work: Work = ...) -> Supervectors: ...

    @overload
    def __call__(self, vectors: Rows, *, work: Work = ...) -> NDArray: ...

    def __call__(self, vectors: Supervectors | Rows, *, work: Work = ALL_CORES) -> Supervectors | NDArray:
        """Project supervectors or vectors (N, D), read by blocks if they are in a file, by workers or on a device."""
        if isinstance(vectors, Supervectors):
            return vectors.with_vectors(self(vectors.vectors, work=work))
        vectors = vectors_of(vectors)
        size, project = _ROWS, self.of_rows
        if work.device is not None:
            size, project = work.device.rows_of(4 * 8 * vectors.shape[1]), DeviceProjection(self, work.device).of_rows
        projected = np.empty(vectors.shape, vectors.dtype)
        bounds = chunk_bounds(len(vectors), size)
        blocks = work.map(project, (part(vectors, *block) for block in bounds), total=len(bounds))
        fill_rows([projected], ((block,) for block in blocks))
        return projected

    def of_rows(self, vectors: Rows | SelectedRows) -> NDArray:
        """Project the few vectors (n, D) that were asked for, in this thread."""
        vectors = np.asarray(vectors)
        projected = np.empty_like(vectors)
        for start, stop in chunk_bounds(len(vectors), _ROWS):
            block = vectors[start:stop].astype(np.float64)
            projected[start:stop] = remove_directions(block, self.directions)
        return projected


class DeviceProjection:
    """A projection whose directions are on a device, for block after block.

    Parameters
    ----------
    projection : Projection
    device : spkbase.work.Device
    """

    def __init__(self, projection: Projection, device: Device) -> None:
        self.device = device
        self._directions = device.asarray(projection.directions, np.float64)

    def __call__(self, vectors: Array) -> Array:
        """Project vectors (n, D) that are on the device."""
        xp = self.device.xp
        return xp.astype(remove_directions(xp.astype(vectors, xp.float64), self._directions), vectors.dtype)

    def of_rows(self, vectors: Rows | SelectedRows) -> NDArray:
        """Project vectors (n, D) that are not on the device, and fetch them."""
        return self.device.to_numpy(self(self.device.asarray(np.asarray(vectors))))


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


def _speaker_means(vectors: Rows, speakers: NDArray) -> GroupMeans:
    names = sorted(set(speakers))
    means = [vectors[np.flatnonzero(speakers == name)].mean(axis=0, dtype=np.float64) for name in names]
    number = {name: group for group, name in enumerate(names)}
    groups = np.array([number[name] for name in speakers], np.int64)
    return GroupMeans(np.stack(means).astype(vectors.dtype), groups)
