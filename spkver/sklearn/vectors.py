"""Estimators of vectors: the maps, PLDA and two-covariance model of a chain's steps, and whole chains.

Parameters are those of the steps (`spkver.backend.STEPS`, docs/backends.md). `X` is an array of vectors, (n, R), and
`y`, if a class needs it, the speaker of each.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from evaluation.trials import Trials, check_dimensions, check_index
from spkbase.arrays import Floats
from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.backend import (
    STEPS,
    Backend,
    Sessions,
    Training,
    apply_maps,
    dimension_after,
    numbered_ids,
    parse_chain,
    train_chain,
)
from spkver.sklearn.pairs import PairScorer

_ROWS = {step.name: step for step in STEPS}


def validate_data(estimator: Any, *data: Any, **options: Any) -> Any:
    """Check data as scikit-learn does, and note or compare their names and dimensions."""
    if not hasattr(validation, "validate_data"):
        text = "the estimators of spkver.sklearn need scikit-learn 1.6 or later"
        raise ConfigError(text, remedy="update it: pip install -U scikit-learn")
    return validation.validate_data(estimator, *data, **options)


class _OfVectors(BaseEstimator):
    """Base class: checks `X` and `y`, and trains the step of a chain on them."""

    _step: ClassVar[str] = ""

    def _checked(self, X: Any, y: Any = None) -> tuple[Floats, NDArray[np.int64]]:  # noqa: N803
        """Return the training vectors, and the codes of their speakers if they are needed."""
        check_index(X=X, y=y)
        codes = np.zeros(0, np.int64)
        if self._needs_speakers:
            vectors, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
            codes = np.unique(y, return_inverse=True)[1]
        else:
            vectors = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_dimensions(X, vectors, "X")
        return vectors, codes

    def _samples(self, X: Any) -> Floats:  # noqa: N803
        check_is_fitted(self)
        vectors: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return vectors

    @property
    def _needs_speakers(self) -> bool:
        return bool(_ROWS[self._step].needs)

    @property
    def _values(self) -> Any:
        return parse_chain([{self._step: self.get_params()}])[0].values

    @one_blas_thread()
    def _learnt(self, X: Any, y: Any) -> Any:  # noqa: N803
        training = Training(*self._checked(X, y))
        return _ROWS[self._step].learn(training, self._values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_speakers
        return tags


class _Map(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _OfVectors):
    """A map of vectors. After `fit`, `maps_` are those of `spkver.backend`, in their order."""

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """Learn the map from vectors `X` (n, R) and, if it needs them, speakers `y` (n,)."""
        self.maps_ = self._learnt(X, y)
        self._n_features_out = dimension_after(self.maps_, self.n_features_in_)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return vectors `X` (n, R) after the map, (n, K)."""
        vectors = self._samples(X)
        return apply_maps(self.maps_, vectors)


class _Centring(_Map):
    @property
    def mean_(self) -> Floats:
        """The mean that is subtracted, (R,)."""
        offset: Floats = self.maps_[0].offset
        return offset


class _Linear(_Map):
    @property
    def components_(self) -> Floats:
        """The directions, (K, R): a row for each component of the result."""
        matrix: Floats = self.maps_[0].matrix
        return matrix.T


class Centre(_Centring):
    """Subtract the mean of the training vectors.

    Attributes
    ----------
    mean_ : ndarray of shape (R,)
    """

    _step = "centre"


class Whiten(_Centring, _Linear):
    """Subtract the mean and make the total covariance the identity.

    Parameters
    ----------
    kind : {"full", "symmetric", "cholesky", "diagonal"}
        Root of the covariance.
    shrink : float, optional
        Share of shrinkage, 0 to 1; by default only a singular covariance is shrunk.

    Attributes
    ----------
    mean_ : ndarray of shape (R,)
    components_ : ndarray of shape (R, R), or (R,) where the kind is diagonal
    """

    _step = "whiten"

    def __init__(self, kind: str = "full", *, shrink: float | None = None) -> None:
        self.kind = kind
        self.shrink = shrink


class LengthNorm(_Map):
    """Scale each vector to length 1; a vector of zeros is an error."""

    _step = "length"


class Efr(_Map):
    """Whiten and scale to length 1, repeatedly: eigen factor radial.

    Parameters
    ----------
    rounds : int
        Repetitions.
    """

    _step = "efr"

    def __init__(self, rounds: int = 1) -> None:
        self.rounds = rounds


class Sphnorm(_Map):
    """The same as `Efr` with the covariance within speakers: spherical nuisance normalisation.

    Parameters
    ----------
    rounds : int
        Repetitions.
    """

    _step = "sphnorm"

    def __init__(self, rounds: int = 1) -> None:
        self.rounds = rounds


class Pca(_Centring, _Linear):
    """Subtract the mean and keep the directions of the largest variance: principal components.

    Parameters
    ----------
    rank : int, optional
        Number of directions to keep; by default all that the vectors span.

    Attributes
    ----------
    mean_ : ndarray of shape (R,)
    components_ : ndarray of shape (K, R)
    """

    _step = "pca"

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank


class Lda(_Linear):
    """Keep the directions that distinguish speakers: linear discriminant analysis.

    Parameters
    ----------
    rank : int, optional
        Number of directions to keep; by default as many as possible.
    shrink : float, optional
        Share of shrinkage, 0 to 1; by default only a singular covariance is shrunk.
    convention : {"book", "sidekit"}
        "book": the textbook's definition; "sidekit": that of SIDEKIT 1.3.2, which is in error.

    Attributes
    ----------
    components_ : ndarray of shape (K, R)
        The covariance within speakers is the identity along them.
    """

    _step = "lda"

    def __init__(
        self, rank: int | None = None, *, shrink: float | None = None, convention: str = "book"
    ) -> None:
        self.rank = rank
        self.shrink = shrink
        self.convention = convention


class Wccn(_Linear):
    """Make the covariance within speakers the identity: within-class covariance normalisation.

    Parameters
    ----------
    shrink : float, optional
        Share of shrinkage, 0 to 1; by default only a singular covariance is shrunk.

    Attributes
    ----------
    components_ : ndarray of shape (R, R)
    """

    _step = "wccn"

    def __init__(self, shrink: float | None = None) -> None:
        self.shrink = shrink


class Nap(_Map):
    """Remove the directions in which sessions vary: nuisance attribute projection.

    Parameters
    ----------
    rank : int
        Number of directions to remove.
    scatter : {"within", "total"}
        Scatter whose largest directions are removed.

    Attributes
    ----------
    components_ : ndarray of shape (rank, R)
        The directions that are removed, orthonormal.
    """

    _step = "nap"

    def __init__(self, rank: int = 40, *, scatter: str = "within") -> None:
        self.rank = rank
        self.scatter = scatter

    @property
    def components_(self) -> Floats:
        """The directions that are removed, (rank, R)."""
        directions: Floats = self.maps_[0].directions
        return directions


class _VectorScorer(PairScorer, _OfVectors):
    """A scorer of pairs of vectors."""

    def _enrolled(self, samples: Any) -> Sessions:
        if np.ndim(samples) != 3:
            return Sessions(self._samples(samples), np.arange(len(samples)))
        several = np.asarray(samples)
        codes = np.repeat(np.arange(len(several)), several.shape[1])
        return Sessions(self._samples(several.reshape(len(codes), -1)), codes)

    def _compared(self, models: Sessions, tests: Floats, first: Any, second: Any) -> Floats:
        score = _ROWS[self._step].score
        assert score is not None
        return score(self.model_, self._values, models, tests, first, second)


class Plda(_VectorScorer):
    """Probabilistic linear discriminant analysis: log-likelihood ratios of one speaker against two.

    Parameters
    ----------
    rank : int, optional
        Number of directions of speakers; by default the dimension of the vectors.
    channel_rank : int
        Number of directions of sessions, with a diagonal residual.
    residual : {"full", "diagonal"}
        Form of the residual covariance.
    rounds : int
        Iterations of EM.
    sessions : {"all", "mean"}
        "all": several enrolled vectors count as several; "mean": their mean counts as one.
    length : {"none", "kaldi", "simple"}
        Scaling of vectors within the model, as in Kaldi.
    prior : float, optional
        Weight of the residual's prior; by default only if it is singular.
    convention : {"book", "sidekit"}
        Minimum divergence as in the textbook, or as in SIDEKIT 1.3.2.

    Attributes
    ----------
    model_ : spkver.backend.Plda
    mean_ : ndarray of shape (R,)
    loadings_ : ndarray of shape (R, K)
        Directions in which speakers differ.
    residual_ : ndarray of shape (R, R)
    channel_ : ndarray of shape (R, L) or None
        Directions in which sessions of a speaker differ.
    """

    _step = "plda"

    def __init__(
        self,
        rank: int | None = None,
        *,
        channel_rank: int = 0,
        residual: str = "full",
        rounds: int = 10,
        sessions: str = "all",
        length: str = "none",
        prior: float | None = None,
        convention: str = "book",
    ) -> None:
        self.rank = rank
        self.channel_rank = channel_rank
        self.residual = residual
        self.rounds = rounds
        self.sessions = sessions
        self.length = length
        self.prior = prior
        self.convention = convention

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Learn from vectors `X` (n, R) of speakers `y` (n,)."""
        self.model_ = self._learnt(X, y)
        self.mean_ = self.model_.mean
        self.loadings_ = self.model_.loadings
        self.residual_ = self.model_.residual
        self.channel_ = self.model_.channel
        return self


class TwoCovariance(_VectorScorer):
    """Gaussian speakers and sessions, each with a full covariance: log-likelihood ratios of one speaker against two.

    Parameters
    ----------
    sessions : {"all", "mean"}
        "all": several enrolled vectors count as several; "mean": their mean counts as one.
    convention : {"book", "sidekit"}
        "book": unbiased covariances; "sidekit": those of SIDEKIT 1.3.2.

    Attributes
    ----------
    mean_ : ndarray of shape (R,)
    between_, within_ : ndarray of shape (R, R)
        Covariances of speakers, and of the vectors of one speaker.
    """

    _step = "two_covariance"

    def __init__(self, *, sessions: str = "all", convention: str = "book") -> None:
        self.sessions = sessions
        self.convention = convention

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Learn from vectors `X` (n, R) of speakers `y` (n,)."""
        self.model_ = self._learnt(X, y)
        self.mean_ = self.model_.mean
        self.between_ = self.model_.between
        self.within_ = self.model_.within
        return self


class Chain(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _VectorScorer):
    """A whole chain: maps of vectors, a scorer, s-norm and calibration.

    Parameters
    ----------
    steps : str or sequence
        See `spkver.backend.parse_chain`.
    seed : int
        Seed of the assignment of speakers to folds for calibration.

    Attributes
    ----------
    backend_ : spkver.backend.Backend
    """

    def __init__(self, steps: Any = "lda,plda", *, seed: int = 0) -> None:
        self.steps = steps
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Train the chain on vectors `X` (n, R) of speakers `y` (n,)."""
        vectors, codes = self._checked(X, y)
        # numbers of equal length sort in the same order as strings
        speakers = 10**9 + codes
        backend: Backend = train_chain(vectors, self.steps, speakers=speakers, seed=self.seed)
        self.backend_ = backend
        self._n_features_out = dimension_after(backend.maps, self.n_features_in_)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return vectors `X` (n, R) after the maps, as input of the scorer, (n, K)."""
        vectors = self._samples(X)
        return apply_maps(self.backend_.maps, vectors)

    @property
    def _needs_speakers(self) -> bool:
        return True

    def _enrolled(self, samples: Any) -> Sessions:
        models = super()._enrolled(samples)
        return Sessions(apply_maps(self.backend_.maps, models.vectors), models.models)

    def _compared(self, models: Sessions, tests: Floats, first: Any, second: Any) -> Floats:
        ids = numbered_ids(len(models.counts)), numbered_ids(len(tests))
        mapped = apply_maps(self.backend_.maps, tests)
        return self.backend_.score_vectors(models, mapped, Trials(*ids, first, second)).values
