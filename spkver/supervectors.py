"""MAP adaptation of the means and the supervectors that they make.

References
----------
J.-L. Gauvain and C.-H. Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of Markov
chains", IEEE Trans. Speech and Audio Processing 2(2), 1994.
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006 (the normalisation by sqrt(w / v)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunk_bounds
from spkver.errors import ConfigError, DataError
from spkver.gmm import GaussianMixture
from spkver.statistics import Statistics

_CHUNK = 64  # segments whose supervectors are computed together, in float64
_EPSILON = float(np.finfo(np.float32).eps)  # keeps a component without frames at the UBM's mean


@dataclass(frozen=True)
class MapConfig:
    """How models are adapted.

    Attributes
    ----------
    relevance : float
        Frames at which the data weigh as much as the prior.
    normalise : bool
        Scale supervectors by sqrt(weight / variance), so that their inner product bounds the divergence of the models.
    """

    relevance: float = 3.0
    normalise: bool = True

    def __post_init__(self) -> None:
        if not self.relevance >= 0:
            raise ConfigError(f"map.relevance is {self.relevance}: expected a number of at least 0")


@dataclass(frozen=True)
class Supervectors:
    """One vector for each segment (or model).

    Attributes
    ----------
    models, segments : ndarray of str [shape=(N,)]
    vectors : ndarray [shape=(N, C * D)]
    """

    models: NDArray
    segments: NDArray
    vectors: NDArray

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.models) == len(self.segments) == len(self.vectors):
            raise DataError(
                f"supervectors need models (N,), segments (N,) and vectors (N, C D); got {len(self.models)}, "
                f"{len(self.segments)}, {self.vectors.shape}"
            )

    def __len__(self) -> int:
        return len(self.models)

    def with_vectors(self, vectors: NDArray) -> Supervectors:
        """The same rows with other vectors."""
        return replace(self, vectors=vectors)


def supervector_scale(mixture: GaussianMixture) -> NDArray[np.float64]:
    """Factor sqrt(weight / variance) of each entry of a normalised supervector, shape (C * D,)."""
    return np.sqrt(mixture.weights[:, None] / mixture.variances).reshape(-1)


def adapt_supervectors(
    mixture: GaussianMixture, statistics: Statistics, config: MapConfig | None = None
) -> Supervectors:
    """MAP-adapted means of each row, as supervectors.

    Parameters
    ----------
    mixture : GaussianMixture
    statistics : Statistics
    config : MapConfig

    Returns
    -------
    Supervectors
        In the dtype of the statistics; the UBM's mean is not subtracted.
    """
    config = config or MapConfig()
    return Supervectors(statistics.models, statistics.segments, _adapt(mixture, statistics, config, epsilon=_EPSILON))


def adapt_multisession(
    mixture: GaussianMixture, statistics: Statistics, config: MapConfig | None = None
) -> Supervectors:
    """MAP-adapted means of each model from all its sessions together.

    Parameters
    ----------
    mixture : GaussianMixture
    statistics : Statistics
    config : MapConfig

    Returns
    -------
    Supervectors
        One row for each model, sorted by id; models and segments are the same ids.
    """
    config = config or MapConfig()
    summed = sum_by_model(statistics)
    return Supervectors(summed.models, summed.segments, _adapt(mixture, summed, config, epsilon=0.0))


def sum_by_model(statistics: Statistics) -> Statistics:
    """Add the statistics of all sessions of each model; rows sorted by model id."""
    models = sorted(set(statistics.models))
    row = {model: place for place, model in enumerate(models)}
    rows = np.array([row[model] for model in statistics.models])
    zeroth = np.zeros((len(models), statistics.zeroth.shape[1]), statistics.zeroth.dtype)
    first = np.zeros((len(models), statistics.first.shape[1]), statistics.first.dtype)
    np.add.at(zeroth, rows, statistics.zeroth)
    for place, model_row in enumerate(rows):  # a row at a time: no copy of the whole array
        first[model_row] += statistics.first[place]
    ids = np.asarray(models, object)
    return Statistics(ids, ids, zeroth, first)


def _adapt(mixture: GaussianMixture, statistics: Statistics, config: MapConfig, *, epsilon: float) -> NDArray:
    n_components, dimension = mixture.means.shape
    if statistics.zeroth.shape[1:] != (n_components,) or statistics.first.shape[1:] != (n_components * dimension,):
        raise DataError(
            f"statistics of shapes {statistics.zeroth.shape} and {statistics.first.shape} do not fit a mixture of "
            f"{n_components} Gaussians in {dimension} dimensions",
            remedy="accumulate them on the mixture that is adapted",
        )
    scale = supervector_scale(mixture).reshape(n_components, dimension) if config.normalise else 1.0
    vectors = np.empty(statistics.first.shape, statistics.first.dtype)
    for start, stop in chunk_bounds(len(statistics), _CHUNK):
        count = statistics.zeroth[start:stop, :, None].astype(np.float64)
        total = statistics.first[start:stop].reshape(-1, n_components, dimension).astype(np.float64)
        mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        share = count + epsilon
        # a relevance of 0 with a component that has no frames leaves nothing to share out: the prior stays
        share = np.divide(share, share + config.relevance, out=np.zeros_like(share), where=share > 0)
        adapted = share * mean + (1 - share) * mixture.means
        vectors[start:stop] = (adapted * scale).reshape(len(adapted), -1)
    return vectors
