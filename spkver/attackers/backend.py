"""What stands between statistics and scores: vectors of segments, and the machines of models.

Every attacker scores as a linear machine does, weights . vector + bias, but for the exact log-likelihood ratio, whose
machines hold adapted means and which is computed from frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, chunk_bounds
from spkver.attackers.config import AttackerConfig
from spkver.backend import Background, Projection, SvmModels, gram_matrix, train_svms
from spkver.features import Frames
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import adapt_multisession, adapt_supervectors

_ROWS = 256  # vectors that are in float64 at a time


@dataclass(frozen=True)
class Transform:
    """Supervectors to the vectors of an attacker.

    Attributes
    ----------
    centre : ndarray [shape=(D,)]
        Subtracted first.
    directions : ndarray [shape=(k, D)]
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
    centre : ndarray [shape=(D,)]
        Mean of the vectors of length 1.
    matrix : ndarray [shape=(k, D)]
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
    ids : ndarray of str [shape=(S,)]
    vectors : ndarray [shape=(S, D)] or None
    frames : Frames or None
    """

    ids: NDArray
    vectors: NDArray | None = None
    frames: Frames | None = None


@dataclass(frozen=True)
class Cohort:
    """Training speakers that scores are normalised by: as models and as segments."""

    models: SvmModels
    segments: Segments


@dataclass(frozen=True)
class Backend:
    """All that is learnt after the universal background model.

    Attributes
    ----------
    transform : Transform or None
    background : ndarray [shape=(B, D)] or None
        Negative examples of the machines.
    gram : ndarray [shape=(B, B)] or None
        Their inner products.
    cohort : Cohort or None
    """

    transform: Transform | None = None
    background: NDArray | None = None
    gram: NDArray[np.float64] | None = None
    cohort: Cohort | None = None


def vectors_of(
    config: AttackerConfig,
    ubm: GaussianMixture,
    transform: Transform | None,
    statistics: Statistics,
    *,
    jobs: int | None = None,
) -> NDArray:
    """Vectors of the segments of statistics, one row each, in the dtype of the statistics.

    For the log-likelihood ratio from statistics they are the first-order statistics, centred on the UBM's means, per
    frame: the derivative of the mean log-likelihood by the means, but for the precisions, which stand with the models
    [1]_. With the scoring "bound" the share of frames of each component follows, C more columns, for the term of
    second order: at the UBM's posteriors it makes the sum a lower bound of the ratio, by Jensen's inequality.

    References
    ----------
    .. [1] O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker
       recognition with joint factor analysis", ICASSP 2009.
    """
    if transform is not None:
        return transform(
            np.asarray(adapt_supervectors(ubm, statistics, config.map, work=Work(jobs)).vectors), jobs=jobs
        )
    width = statistics.first.shape[1]
    bound = config.scoring == "bound"
    vectors = np.empty((len(statistics), width + bound * ubm.n_components), statistics.first.dtype)
    for start, stop in chunk_bounds(len(statistics), _ROWS):
        count = statistics.zeroth[start:stop].astype(np.float64)
        n_frames = count.sum(axis=1, keepdims=True)
        expected = (count[:, :, None] * ubm.means).reshape(len(count), -1)
        vectors[start:stop, :width] = (statistics.first[start:stop] - expected) / n_frames
        if bound:
            vectors[start:stop, width:] = count / n_frames
    return vectors


def enrol(
    config: AttackerConfig, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Models of the speakers in statistics: `statistics.models` says which rows belong together.

    Returns
    -------
    SvmModels
        Sorted by id. For the exact log-likelihood ratio the weights are the adapted means.
    """
    if config.kind == "gmm-ubm":
        adapted = adapt_multisession(ubm, statistics, replace(config.map, normalise=False), work=Work(jobs))
        means = np.asarray(adapted.vectors)
        weights = means if config.exact else _ratio_weights(config, ubm, means)
        return SvmModels(adapted.models, weights, np.zeros(len(adapted)))
    names, vectors = enrolment_vectors(config, ubm, backend.transform, statistics, jobs=jobs)
    if config.kind == "gmm-svm":
        assert backend.background is not None
        background = Background(backend.background, backend.gram)
        return train_svms(names, vectors, background, config.svm, work=Work(jobs))
    models, weights = mean_vectors(names, vectors, scale=True)
    return SvmModels(models, weights, np.zeros(len(models)))


def enrolment_vectors(
    config: AttackerConfig,
    ubm: GaussianMixture,
    transform: Transform | None,
    statistics: Statistics,
    *,
    jobs: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Model ids and vectors (n, D) that models are made of: one for each model, or one for each session."""
    assert transform is not None
    adapt = adapt_multisession if config.enrolment == "pooled" else adapt_supervectors
    adapted = adapt(ubm, statistics, config.map, work=Work(jobs))
    return adapted.models, transform(np.asarray(adapted.vectors), jobs=jobs)


def _ratio_weights(config: AttackerConfig, ubm: GaussianMixture, means: NDArray) -> NDArray:
    shift = means.reshape(len(means), *ubm.means.shape) - ubm.means
    weights = (shift / ubm.variances).reshape(len(means), -1)
    if config.scoring == "bound":
        weights = np.hstack([weights, -0.5 * (shift * shift / ubm.variances).sum(axis=2)])
    return weights.astype(means.dtype)


def mean_vectors(names: NDArray, vectors: NDArray, *, scale: bool) -> tuple[NDArray, NDArray]:
    """Sorted distinct names, and the mean of the vectors of each, on request of length 1."""
    distinct = np.array(sorted(set(names)), object)
    means = np.stack([vectors[names == name].mean(axis=0, dtype=np.float64) for name in distinct])
    return distinct, (unit_length(means) if scale else means).astype(vectors.dtype)
