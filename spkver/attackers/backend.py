"""What stands between statistics and scores, as values: the transformation of vectors, the background, the cohort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, chunk_bounds
from spkver.attackers.options import NormConfig
from spkver.backend import Projection, SvmModels, gram_matrix
from spkver.features import Frames

_ROWS = 256  # vectors that are in float64 at a time


@dataclass(frozen=True)
class Transform:
    """Supervectors to the vectors of an attacker.

    Attributes
    ----------
    centre : ndarray of shape (D,)
        Subtracted first.
    directions : ndarray of shape (k, D)
        Orthonormal; removed.
    mapping : LdaMapping or None
        Discriminant analysis, in place of `directions`.
    unit_length : bool
        Scale the result to length 1.
    """

    centre: NDArray
    directions: NDArray[np.float64]
    mapping: LdaMapping | None
    unit_length: bool

    def __call__(self, vectors: NDArray, *, jobs: int | None = None) -> NDArray:
        """Transform vectors (N, D); they keep their dtype."""
        vectors = vectors - self.centre
        if self.mapping is not None:
            vectors = self.mapping(vectors, jobs=jobs)
        elif len(self.directions):
            vectors = Projection(self.directions)(vectors, work=Work(jobs))
        return unit_length(vectors) if self.unit_length else vectors


@dataclass(frozen=True)
class LdaMapping:
    """Centred supervectors of length 1, centred again, to the dimensions of a discriminant analysis.

    Attributes
    ----------
    centre : ndarray of shape (D,)
        Mean of the vectors of length 1.
    matrix : ndarray of shape (k, D)
    """

    centre: NDArray
    matrix: NDArray[np.float64]

    def __call__(self, vectors: NDArray, *, jobs: int | None = None) -> NDArray:
        """Map vectors (N, D) to (N, k), in their dtype."""
        return gram_matrix(unit_length(vectors) - self.centre, self.matrix, work=Work(jobs)).astype(vectors.dtype)


def unit_length(vectors: NDArray) -> NDArray:
    """Scale each row to Euclidean length 1; a row of zeros stays."""
    scaled = np.empty_like(vectors)
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        block = vectors[start:stop].astype(np.float64)
        length = np.sqrt((block * block).sum(axis=1, keepdims=True))
        scaled[start:stop] = block / np.where(length > 0, length, 1.0)
    return scaled


@dataclass(frozen=True)
class Segments:
    """What is tested: vectors of segments, or frames for the exact log-likelihood ratio.

    Attributes
    ----------
    ids : ndarray of str of shape (S,)
    vectors : ndarray of shape (S, D) or None
    frames : Frames or None
    """

    ids: NDArray
    vectors: NDArray | None = None
    frames: Frames | None = None


@dataclass(frozen=True)
class Cohort:
    """Training speakers that scores are normalised by.

    Attributes
    ----------
    models : SvmModels
        The cohort as models (t-norm).
    segments : Segments
        The cohort as segments (z-norm).
    norm : NormConfig
        Which of them normalise, and by how many of the highest scores.
    """

    models: SvmModels
    segments: Segments
    norm: NormConfig


@dataclass(frozen=True)
class Backend:
    """All that is learnt after the universal background model.

    Attributes
    ----------
    transform : Transform or None
    background : ndarray of shape (B, D) or None
        Negative examples of the machines.
    gram : ndarray of shape (B, B) or None
        Their inner products.
    cohort : Cohort or None
    """

    transform: Transform | None = None
    background: NDArray | None = None
    gram: NDArray[np.float64] | None = None
    cohort: Cohort | None = None


def mean_vectors(names: NDArray, vectors: NDArray, *, scale: bool) -> tuple[NDArray, NDArray]:
    """Return sorted distinct names, and the mean of the vectors of each, on request of length 1."""
    distinct = np.array(sorted(set(names)), object)
    means = np.stack([vectors[names == name].mean(axis=0, dtype=np.float64) for name in distinct])
    return distinct, (unit_length(means) if scale else means).astype(vectors.dtype)
