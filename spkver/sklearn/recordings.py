"""Estimators of frames: a Gaussian mixture, GMM-UBM, and i-vectors.

Recordings of different lengths are a list of arrays of frames, (T, D); `spkver.features.compute` makes them from
samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from evaluation.trials import Trials
from spkbase.arrays import Floats
from spkbase.errors import DataError
from spkbase.work import Work
from spkver import mixture as gmm
from spkver.backend import numbered_ids, score_gmm_ubm
from spkver.features import Frames
from spkver.sklearn.pairs import PairScorer
from spkver.sklearn.vectors import validate_data
from spkver.vectors import (
    MapConfig,
    TotalVariabilityConfig,
    adapt_multisession,
    adapt_supervectors,
    extract_ivectors,
    train_total_variability,
)

_COVARIANCES = {"diag": "diagonal", "full": "full"}


class _OfFrames(BaseEstimator):
    """Base class: recordings as `Frames`, and the mixture that is trained on them."""

    n_components: int
    covariance_type: str
    n_jobs: int | None

    def _frames(self, recordings: Any, *, reset: bool = False) -> Frames:
        """Return the frames of recordings, whose ids are their numbers."""
        if not reset:
            check_is_fitted(self)
        if not is_recordings(recordings):
            text = f"expected recordings as a list of arrays of frames (T, D), got {type(recordings).__name__}"
            raise DataError(text, remedy="give a single recording as [frames]")
        ids = numbered_ids(len(recordings))
        frames = Frames.from_dict(dict(zip(ids, recordings, strict=True)))
        if reset:
            self.n_features_in_ = frames.dimension
        elif frames.dimension != self.n_features_in_:
            text = f"X has {frames.dimension} features, but {type(self).__name__} is expecting "
            raise DataError(f"{text}{self.n_features_in_} features as input")
        return frames

    def _trained(self, frames: Any, **values: Any) -> gmm.TrainedUbm:
        covariance = _COVARIANCES.get(self.covariance_type)
        if covariance is None:
            text = f"covariance_type is {self.covariance_type!r:.40}: expected one of diag, full"
            raise DataError(text)
        config = gmm.UbmConfig(components=self.n_components, covariance=covariance, **values)
        return gmm.train_ubm(frames, config, work=self._work)

    def _statistics(self, ubm: gmm.GaussianMixture, frames: Frames) -> gmm.Statistics:
        return gmm.accumulate_statistics(ubm, frames, frames.ids, frames.ids, work=self._work)

    @property
    def _work(self) -> Work:
        """The workers: None is one job and -1 all cores, as in scikit-learn; results do not depend on them."""
        if self.n_jobs is None:
            return Work(jobs=1)
        if self.n_jobs < 0:
            return Work()
        return Work(jobs=self.n_jobs)


def is_recordings(samples: Any) -> bool:
    """Return whether samples are a list, or an array of objects, of two-dimensional arrays."""
    if isinstance(samples, np.ndarray):
        if samples.dtype != object or samples.ndim != 1:
            return False
    elif not isinstance(samples, list | tuple):
        return False
    return len(samples) > 0 and all(np.ndim(sample) == 2 for sample in samples)


class GaussianMixture(DensityMixin, _OfFrames):
    """A mixture of Gaussians, trained by EM with splitting: a universal background model (UBM).

    Parameters
    ----------
    n_components : int
        Number of Gaussians, a power of two, since the mixture doubles.
    covariance_type : {"diag", "full"}
    variance_floor, variance_ceiling : float
        Limits of the variances as shares of the second moment of all frames.
    iterations : sequence of int, optional
        Rounds of EM after the first, second, ... doubling; by default those of `spkver.mixture.UbmConfig`.
    n_jobs : int, optional
        Threads; -1 takes all cores.

    Attributes
    ----------
    mixture_ : spkver.mixture.TrainedUbm
    weights_ : ndarray of shape (C,)
    means_ : ndarray of shape (C, D)
    covariances_ : ndarray of shape (C, D) or (C, D, D)
        Variances, or full covariances.
    log_likelihoods_ : ndarray of shape (rounds,)
        Mean log-likelihood of a frame in each round of EM, before its update, in nat.
    n_iter_ : int
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "diag",
        variance_floor: float = 0.01,
        variance_ceiling: float = 10.0,
        iterations: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.variance_floor = variance_floor
        self.variance_ceiling = variance_ceiling
        self.iterations = iterations
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> GaussianMixture:  # noqa: N803
        """Train on frames `X` (T, D), or on the frames of a list of recordings."""
        if is_recordings(X):
            frames = self._frames(X, reset=True).values
        else:
            types = [np.float64, np.float32]
            frames = validate_data(self, X, dtype=types, ensure_min_samples=2)
        values: dict[str, Any] = {
            "variance_floor": self.variance_floor,
            "variance_ceiling": self.variance_ceiling,
        }
        if self.iterations is not None:
            values["iterations"] = tuple(self.iterations)
        self.mixture_ = self._trained(frames, **values)
        self.weights_ = self.mixture_.weights
        self.means_ = self.mixture_.means
        self.covariances_ = self.mixture_.variances
        self.log_likelihoods_ = self.mixture_.log_likelihoods
        self.n_iter_ = len(self.log_likelihoods_)
        return self

    def score_samples(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-likelihood of each frame (T,) in nat, or the mean of each recording's frames."""
        check_is_fitted(self)
        if is_recordings(X):
            return mean_log_likelihoods(self.mixture_, self._frames(X))
        frames = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return gmm.log_likelihood(frames, self.mixture_)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean of `score_samples`."""
        return float(self.score_samples(X).mean())


def mean_log_likelihoods(mixture: gmm.GaussianMixture, frames: Frames) -> Floats:
    """Return the mean log-likelihood of a frame of each recording, in nat, shape (R,)."""
    means = []
    for name in frames.ids:
        means.append(gmm.log_likelihood(np.asarray(frames.of(name)), mixture).mean())
    return np.array(means)


class GmmUbm(PairScorer, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _OfFrames):
    """A UBM, and models of speakers that are adapted from it (MAP): log-likelihood ratios, and supervectors.

    Parameters
    ----------
    n_components : int
        Number of Gaussians, a power of two.
    covariance_type : {"diag", "full"}
    relevance : float
        Number of frames at which the data weigh as much as the prior.
    normalise : bool
        Scale supervectors by sqrt(weight / variance).
    n_jobs : int, optional
        Threads; -1 takes all cores.

    Attributes
    ----------
    ubm_ : spkver.mixture.TrainedUbm
    weights_, means_, covariances_
        As in `GaussianMixture`.
    n_features_in_ : int
        D.
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        covariance_type: str = "diag",
        relevance: float = 3.0,
        normalise: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.relevance = relevance
        self.normalise = normalise
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> GmmUbm:  # noqa: N803
        """Train the UBM on recordings `X`, a list of arrays (T, D); `y` is ignored."""
        self.ubm_ = self._trained(self._frames(X, reset=True).values)
        self.weights_ = self.ubm_.weights
        self.means_ = self.ubm_.means
        self.covariances_ = self.ubm_.variances
        self._n_features_out = self.means_.size
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the supervector of each recording, made of the means adapted to it, (n, C D)."""
        config = MapConfig(self.relevance, self.normalise)
        statistics = self._statistics(self.ubm_, self._frames(X))
        adapted = adapt_supervectors(self.ubm_, statistics, config, work=self._work)
        return np.asarray(adapted.vectors)

    def score_samples(self, X: Any) -> Floats:  # noqa: N803
        """Return the mean log-likelihood of a frame of each recording under the UBM, in nat, (n,)."""
        return mean_log_likelihoods(self.ubm_, self._frames(X))

    def _samples(self, samples: Any) -> Frames:
        return self._frames(samples)

    def _compared(self, models: Frames, tests: Frames, first: Any, second: Any) -> Floats:
        statistics = self._statistics(self.ubm_, models)
        config = MapConfig(self.relevance, normalise=False)
        adapted = adapt_multisession(self.ubm_, statistics, config, work=self._work)
        trials = Trials(models.ids, tests.ids, first, second)
        return score_gmm_ubm(self.ubm_, adapted, tests, trials, work=self._work).values


class IVectorExtractor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _OfFrames):
    """A UBM and a total variability matrix: an i-vector for each recording.

    Parameters
    ----------
    n_components : int
        Number of Gaussians, a power of two.
    rank : int
        Length of the i-vectors, at most the number of training recordings.
    rounds : int
        Rounds of EM of the matrix.
    covariance_type : {"diag", "full"}
    random_state : int
        Seed of the initial matrix.
    n_jobs : int, optional
        Threads; -1 takes all cores.

    Attributes
    ----------
    ubm_ : spkver.mixture.TrainedUbm
    total_variability_ : spkver.vectors.TotalVariability
    loadings_ : ndarray of shape (C, D, rank)
        The matrix in the space in which each Gaussian has the covariance I.
    log_likelihoods_ : ndarray of shape (rounds,)
        The part of the mean log-likelihood of a recording that depends on the matrix, in each round, in nat.
    n_features_in_ : int
        D.
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        rank: int = 100,
        rounds: int = 10,
        covariance_type: str = "diag",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.rounds = rounds
        self.covariance_type = covariance_type
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> IVectorExtractor:  # noqa: N803
        """Train on recordings `X`, a list of arrays (T, D); `y` is ignored."""
        frames = self._frames(X, reset=True)
        config = TotalVariabilityConfig(self.rank, self.rounds, self.random_state)
        self.ubm_ = self._trained(frames.values)
        statistics = self._statistics(self.ubm_, frames)
        model = train_total_variability(self.ubm_, statistics, config, work=self._work)
        self.total_variability_ = model
        self.loadings_ = model.loadings
        self.log_likelihoods_ = model.log_likelihoods
        self._n_features_out = model.rank
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the i-vector of each recording, (n, rank)."""
        statistics = self._statistics(self.ubm_, self._frames(X))
        vectors = extract_ivectors(self.total_variability_, statistics, work=self._work)
        return np.asarray(vectors.vectors)
