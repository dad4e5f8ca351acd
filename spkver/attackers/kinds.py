"""The kinds of attackers that score by a mixture: their options, how each learns, and how it scores.

**What an attacker is made by, before it is known which kinds there are: the parts of its configuration.**

**What stands between statistics and scores, as values: the transformation of vectors, the background, the cohort.**

**What a kind of attacker is: the functions in which one kind differs from another.**

All kinds start with the same features, universal background model and statistics, and all score as a linear machine
does, weights . vector + bias, but for the exact log-likelihood ratio, whose machines hold adapted means and which is
computed from frames.

**Linear discriminant analysis of vectors that are far longer than there are of them.**

**Projected supervectors, which gmm-svm and supervector-cosine share: how the projection is learnt, what it gives.**

**gmm-svm: a linear machine for each model, its projected supervectors against those of the training set.**

    score = w . x + b

**gmm-ubm: the log-likelihood ratio of a mixture adapted to the speaker and the universal background model.**

    score = 1/T sum_t log p(x_t | adapted) - log p(x_t | ubm)

**supervector-cosine: the cosine of the projected supervectors of a model and of a segment.**

score = m . x / (|m| |x|),  m the mean of the model's vectors of length 1

References
----------
R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7(2), 1936.
P. N. Belhumeur, J. P. Hespanha and D. J. Kriegman, "Eigenfaces vs. Fisherfaces: recognition using class specific linear
projection", IEEE Trans. PAMI 19(7), 1997 (principal components first).
A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
Interspeech 2006 (whitening within speakers, with smoothing).
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.work import Work, chunk_bounds, chunks, one_blas_thread, ordered_map
from spkver.attackers.protocol import Arrays
from spkver.attackers.workplace import choose_utterances
from spkver.backend import (
    Projection,
    SvmConfig,
    SvmModels,
    fit_nap,
    gram_matrix,
    inner_products,
    train_one,
    train_svms,
)
from spkver.features import FeatureConfig, Frames
from spkver.mixture import GaussianMixture, Statistics, UbmConfig, inverse_variances, of_each_gaussian
from spkver.vectors import MapConfig, Supervectors, adapt_multisession, adapt_supervectors, sum_by_model

logger = logging.getLogger(__name__)

_CHOICES = {"scoring": ("exact", "bound", "linear"), "enrolment": ("pooled", "sessions")}


@dataclass(frozen=True)
class TrainingConfig:
    """Which part of the training set is used.

    Attributes
    ----------
    utterances : int or None
        At most so many utterances, spread evenly over the speakers and drawn with the seed; None takes all.
    session_seconds : float or None [s]
        Utterances are cut into sessions of about this length; shorter ones stay whole. Sessions are the background of
        the machines, what the projection is estimated on and the cohort. None: each utterance is a session.
    background : int or None
        A machine is trained against at most so many sessions, spread evenly over the speakers; None takes all.
    """

    utterances: int | None = 4000
    session_seconds: float | None = None
    background: int | None = 1000

    def __post_init__(self) -> None:
        for name in ("utterances", "background"):
            if getattr(self, name) is not None and getattr(self, name) < 2:
                raise ConfigError(f"training.{name} is {getattr(self, name)}: expected a whole number of at least 2")
        if self.session_seconds is not None and not self.session_seconds > 0:
            raise ConfigError(f"training.session_seconds is {self.session_seconds}: expected a number above 0")


@dataclass(frozen=True)
class ProjectionConfig:
    """What happens to supervectors after the training set's mean is subtracted.

    Attributes
    ----------
    rank : int
        Directions of the largest scatter within the training speakers that are removed (NAP); fewer where the
        sessions of the training set differ in fewer.
    lda : int
        Dimensions of a linear discriminant analysis, which then stands in place of NAP; 0 does without. Fewer where
        there are fewer speakers.
    lda_speakers : int
        A training set of fewer speakers has NAP, whatever `lda` says ...
    lda_utterances : float
        ... and one of fewer utterances for each speaker, all versions counted: pieces of one utterance do not show how
        a speaker's utterances differ.
    pca : int
        Principal directions that the discriminant analysis works in.
    shrinkage : float
        Share of the covariance within speakers that is replaced by a multiple of the identity.
    unit_length : bool
        Scale the result to length 1. The cosine attacker always does.
    """

    rank: int = 0
    lda: int = 0
    lda_speakers: int = 50
    lda_utterances: float = 2.0
    pca: int = 250
    shrinkage: float = 0.2
    unit_length: bool = True

    def __post_init__(self) -> None:
        for name, lowest in (("rank", 0), ("lda", 0), ("lda_speakers", 2), ("pca", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(
                    f"projection.{name} is {getattr(self, name)}: expected a whole number of at least {lowest}"
                )
        if not 0 <= self.shrinkage <= 1:
            raise ConfigError(f"projection.shrinkage is {self.shrinkage}: expected a number of 0 to 1")


@dataclass(frozen=True)
class NormConfig:
    """Normalisation of scores by a cohort of training speakers.

    Attributes
    ----------
    kind : str
        none, z (by the scores of cohort segments against the model), t (of cohort models against the segment) or s
        (mean of both).
    top : int or None
        Of each model and segment take the highest `top` cohort scores alone, all where there are fewer; with `s` this
        is the adaptive s-norm.
    models : str
        A cohort model for each "speaker" of the training set, or for each "session".
    segments : str
        A cohort segment for each "session", or all speech of a "speaker" as one.
    speakers : int
        With fewer training speakers there is no normalisation.
    apart : float
        Share of the training speakers that make the cohort and stay out of the background of the machines and of the
        projection; 0: all speakers serve as both.
    """

    kind: str = "none"
    top: int | None = None
    models: str = "speaker"
    segments: str = "session"
    speakers: int = 2
    apart: float = 0.0

    def __post_init__(self) -> None:
        sides = ("speaker", "session")
        for name, allowed in (("kind", ("none", "z", "t", "s")), ("models", sides), ("segments", sides)):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"norm.{name} is {getattr(self, name)!r}: expected one of {', '.join(allowed)}")
        if self.top is not None and self.top < 2:
            raise ConfigError(f"norm.top is {self.top}: expected a whole number of at least 2")
        if self.speakers < 2:
            raise ConfigError(f"norm.speakers is {self.speakers}: expected a whole number of at least 2")
        if not 0 <= self.apart < 1:
            raise ConfigError(f"norm.apart is {self.apart}: expected a number of at least 0 and below 1")


@dataclass(frozen=True)
class Options:
    """Everything that an attacker is made by; `AttackerConfig` knows which kinds there are.

    Attributes
    ----------
    name : str
        What its folder and its results are called.
    kind : str
        A name of `spkver.attackers.KINDS`.
    features, ubm, map, svm
        See `FeatureConfig`, `UbmConfig`, `MapConfig` and `SvmConfig`; of `map`, gmm-ubm uses the relevance alone.
    training : TrainingConfig
    projection : ProjectionConfig
        For gmm-svm and supervector-cosine.
    norm : NormConfig
    enrolment : str
        What several utterances of a model become: "pooled", one adaptation to all of them, or "sessions", a
        supervector each (positive examples of the machine; their mean for the cosine).
    scoring : str
        For gmm-ubm: "exact", the log-likelihood ratio of the frames; from the statistics alone "bound", the ratio at
        the posteriors of the universal background model, or "linear", its part of first order.
    """

    name: str = "gmm-ubm"
    kind: str = "gmm-ubm"
    features: FeatureConfig = field(default_factory=FeatureConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)
    projection: ProjectionConfig = field(default_factory=ProjectionConfig)
    svm: SvmConfig = field(default_factory=SvmConfig)
    norm: NormConfig = field(default_factory=NormConfig)
    enrolment: str = "pooled"
    scoring: str = "exact"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(allowed)}")
        if not self.name or self.name in (".", "..") or set(self.name) & set("/\\\0") or self.name != self.name.strip():
            raise ConfigError(f"name is {self.name!r}: expected the name of a folder")


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


@dataclass(frozen=True)
class Sessions:
    """The sessions of a training set.

    Attributes
    ----------
    statistics : Statistics
        Of the sessions; models are speakers.
    frames : SessionFrames
        Of the sessions; asked for by the exact log-likelihood ratio alone.
    n_utterances : int
        Recordings that the sessions were cut from.
    """

    statistics: Statistics
    frames: Any
    n_utterances: int


@dataclass(frozen=True)
class Lesson:
    """What a kind learns from, after the universal background model.

    Attributes
    ----------
    options : Options
    ubm : GaussianMixture
    sessions : Sessions
    is_learnt : ndarray of bool of shape (S,)
        Sessions that the projection and the background are made of.
    is_cohort : ndarray of bool of shape (S,)
        Sessions that the cohort is made of.
    seed : int
        Draws the background.
    workers : Work
    """

    options: Options
    ubm: GaussianMixture
    sessions: Sessions
    is_learnt: NDArray[np.bool_]
    is_cohort: NDArray[np.bool_]
    seed: int = 0
    workers: Work = field(default_factory=Work)

    @cached_property
    def learnt(self) -> Statistics:
        """Statistics of the sessions that projection and background are made of."""
        return select(self.sessions.statistics, self.is_learnt)

    @cached_property
    def cohort(self) -> Statistics:
        """Statistics of the sessions of the cohort."""
        return select(self.sessions.statistics, self.is_cohort)

    @property
    def per_speaker(self) -> float:
        """Utterances of the training set for each of its speakers."""
        return self.sessions.n_utterances / len(set(self.sessions.statistics.models))


def select(statistics: Statistics, rows: NDArray[np.bool_]) -> Statistics:
    """Return some rows of statistics; the same object where they are all."""
    if rows.all():
        return statistics
    return Statistics(*(getattr(statistics, name)[rows] for name in ("models", "segments", "zeroth", "first")))


class VectorsOf(Protocol):
    """Vectors (N, D) of the segments of statistics, one row each, in the dtype of the statistics."""

    def __call__(
        self,
        options: Options,
        ubm: GaussianMixture,
        backend: Backend,
        statistics: Statistics,
        *,
        jobs: int | None = None,
    ) -> NDArray: ...


class Enrol(Protocol):
    """Models of the speakers in statistics, sorted by id: `statistics.models` says which rows belong together."""

    def __call__(
        self,
        options: Options,
        ubm: GaussianMixture,
        backend: Backend,
        statistics: Statistics,
        *,
        jobs: int | None = None,
    ) -> SvmModels: ...


def _never(options: Options) -> bool:
    return False


def _all_allowed(options: Options) -> None:
    pass


@dataclass(frozen=True)
class Kind:
    """A kind of attacker.

    Attributes
    ----------
    name : str
        As a configuration has it under `kind`.
    summary : str
        What it does, for help texts: a phrase.
    learn : callable or None
        Makes the transformation and the background; None where the universal background model is all there is.
    vectors, enrol : callable
        See `VectorsOf` and `Enrol`.
    cohort_models, cohort_segments : callable
        The cohort of a lesson as models and as segments. `lesson.cohort` are its sessions; models are made for each
        speaker or session, as `options.norm` says.
    unit_length : bool
        Vectors have length 1, whatever `projection.unit_length` says.
    scores_frames : callable
        Whether scores are computed from frames, not from vectors.
    check : callable
        Raises ConfigError for options that this kind cannot have.
    """

    name: str
    summary: str
    learn: Callable[[Lesson], Backend] | None
    vectors: VectorsOf
    enrol: Enrol
    cohort_models: Callable[[Lesson, Backend], SvmModels]
    cohort_segments: Callable[[Lesson, Backend], Segments]
    unit_length: bool = False
    scores_frames: Callable[[Options], bool] = _never
    check: Callable[[Options], None] = _all_allowed

    def scales(self, options: Options) -> bool:
        """Return whether vectors are scaled to length 1."""
        return self.unit_length or options.projection.unit_length

    def needs_sessions(self, options: Options) -> bool:
        """Return whether anything is learnt from the sessions of a training set, and so from several speakers."""
        return self.learn is not None or options.norm.kind != "none"


def cohort_by_model(lesson: Lesson) -> Statistics:
    """Return the statistics of the cohort, whose models are speakers or sessions, as `norm.models` says."""
    cohort = lesson.cohort
    if lesson.options.norm.models == "speaker":
        return cohort
    return Statistics(cohort.segments, cohort.segments, cohort.zeroth, cohort.first)


def enrolled_cohort(enrol: Enrol) -> Callable[[Lesson, Backend], SvmModels]:
    """Return a function that makes the cohort's models as those of other speakers are made."""

    def models(lesson: Lesson, backend: Backend) -> SvmModels:
        return enrol(lesson.options, lesson.ubm, backend, cohort_by_model(lesson), jobs=lesson.workers.jobs)

    return models


_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_SPANNED = 1e-9  # principal directions of less than this share of the largest variance are rounding


def fit_lda(
    vectors: NDArray,
    speakers: NDArray,
    *,
    n_dimensions: int,
    pca: int,
    shrinkage: float,
    jobs: int | None = None,
) -> NDArray[np.float64]:
    """Find the dimensions in which speakers differ most and sessions of a speaker least.

    The vectors are expressed in their largest principal directions, whitened by the covariance within speakers, shrunk
    towards a multiple of the identity, and turned to the largest directions of the speakers' means.

    Parameters
    ----------
    vectors : ndarray of shape (S, D)
        Of mean 0.
    speakers : ndarray of str of shape (S,)
        Some speaker must have several vectors.
    n_dimensions : int
        At most so many; there are no more than speakers less one, nor than principal directions.
    pca : int
        Principal directions, at most.
    shrinkage : float
        Share of the identity, 0 to 1.
    jobs : int, optional
        Worker threads; the result does not depend on it.

    Returns
    -------
    ndarray of shape (k, D)
        Maps a vector x to its k dimensions by matrix @ x.
    """
    from scipy.linalg import eigh

    names, owner = np.unique(speakers.astype(str), return_inverse=True)
    n_sessions = len(vectors)
    gram = gram_matrix(vectors, work=Work(jobs))
    with one_blas_thread():  # one BLAS thread everywhere: results must not depend on the machine's cores
        values, rotation = eigh(gram, subset_by_index=[max(n_sessions - pca, 0), n_sessions - 1])
        kept = values > _SPANNED * values[-1]
        values, rotation = values[kept][::-1], rotation[:, kept][:, ::-1]
        coordinates = rotation * np.sqrt(values)
        n_dimensions = min(n_dimensions, len(names) - 1, len(values))
        weights = (rotation / np.sqrt(values)) @ discriminants(coordinates, owner, shrinkage, n_dimensions)
        matrix = np.empty((n_dimensions, vectors.shape[1]))
        for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
            matrix[:, start:stop] = weights.T @ vectors[:, start:stop].astype(np.float64)
    return matrix


def discriminants(coordinates: NDArray, owner: NDArray, shrinkage: float, n_dimensions: int) -> NDArray[np.float64]:
    """Return the directions w in which w' B w / w' W w is largest, as columns, the largest first.

        W = (1 - s) W_speakers + s tr(W_speakers)/K I,    w' W w = 1

    W_speakers is the covariance of the sessions about their speakers' means, B that of these means.

    Parameters
    ----------
    coordinates : ndarray of shape (S, K)
        Vectors of mean 0.
    owner : ndarray of int of shape (S,)
        Speaker of each, from 0.
    shrinkage : float
        s, 0 to 1.
    n_dimensions : int
    """
    counts = np.bincount(owner)
    means = np.stack([coordinates[owner == speaker].mean(axis=0) for speaker in range(len(counts))])
    within = coordinates - means[owner]
    covariance = within.T @ within / (len(coordinates) - len(counts))
    level = np.trace(covariance) / len(covariance)
    covariance = (1 - shrinkage) * covariance + shrinkage * level * np.eye(len(covariance))
    spread, axes = np.linalg.eigh(covariance)
    # what is left without any spread would be blown up without limit
    whitening = axes / np.sqrt(np.maximum(spread, _SPANNED * spread[-1]))
    between = np.sqrt(counts / len(coordinates))[:, None] * (means @ whitening)
    _, turned = np.linalg.eigh(between.T @ between)
    reduced: NDArray[np.float64] = whitening @ turned[:, ::-1][:, :n_dimensions]
    return reduced


def learn_transform(lesson: Lesson, *, unit_length: bool) -> tuple[Transform, NDArray]:
    """Return the transformation that the sessions of a lesson teach, and their supervectors (S, D) before it."""
    options, workers = lesson.options, lesson.workers
    adapted = adapt_supervectors(lesson.ubm, lesson.learnt, options.map, work=workers)
    vectors = np.asarray(adapted.vectors)

    speakers = lesson.learnt.models
    fitted = fit_transform(
        options, vectors, speakers, per_speaker=lesson.per_speaker, unit_length=unit_length, workers=workers
    )
    return fitted, vectors


def fit_transform(
    options: Options,
    vectors: NDArray,
    speakers: Sequence[str] | NDArray,
    *,
    per_speaker: float,
    unit_length: bool = True,
    workers: Work | None = None,
) -> Transform:
    """Estimate the centre and what divides speakers on supervectors of sessions.

    Parameters
    ----------
    options : Options
        Of which `projection` counts, and the name for the log.
    vectors : ndarray of shape (S, D)
    speakers : sequence of str, length S
    per_speaker : float
        Utterances for each speaker.
    unit_length : bool
        Whether the transformation scales its result.
    workers : Work, optional
    """
    wanted, speakers, workers = options.projection, np.asarray(speakers, object), workers or Work()
    centre = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    centred = vectors - centre
    n_speakers = len(set(speakers))
    limit = len(vectors) - n_speakers
    none = np.empty((0, vectors.shape[1]))
    if wanted.lda and n_speakers >= wanted.lda_speakers and per_speaker >= wanted.lda_utterances and limit:
        return Transform(centre, none, _fit_mapping(options, centred, speakers, jobs=workers.jobs), unit_length)
    if wanted.lda:
        logger.info("%s: %.1f utterances of each of %d speakers: no LDA", options.name, per_speaker, n_speakers)
    rank = min(wanted.rank, limit)
    if rank < wanted.rank:
        logger.warning(
            "%s: the %d training sessions differ in %d directions within speakers: projection.rank is %d, not %d",
            options.name, len(vectors), limit, rank, wanted.rank,
        )  # fmt: skip
    if rank:
        nuisance = fit_nap(centred, rank=rank, scatter="within", speakers=speakers, work=workers)
        none = nuisance.directions
    return Transform(centre, none, None, unit_length)


def _fit_mapping(options: Options, centred: NDArray, speakers: NDArray, *, jobs: int | None) -> LdaMapping:
    """Discriminant analysis of centred supervectors, scaled to length 1 and centred again."""
    wanted, scaled = options.projection, unit_length(centred)
    centre = scaled.mean(axis=0, dtype=np.float64).astype(centred.dtype)
    matrix = fit_lda(
        scaled - centre, speakers, n_dimensions=wanted.lda, pca=wanted.pca, shrinkage=wanted.shrinkage, jobs=jobs
    )
    return LdaMapping(centre, matrix)


def arrays_of(transform: Transform) -> Arrays:
    """Return the arrays of a transformation by name, as files have them."""
    arrays: Arrays = {"centre": transform.centre, "directions": transform.directions}
    if transform.mapping is not None:
        arrays |= {"lda_centre": transform.mapping.centre, "lda_matrix": transform.mapping.matrix}
    return arrays


def transform_of(arrays: Arrays, *, unit_length: bool) -> Transform:
    """Return the transformation that `arrays_of` has taken apart."""
    mapping = LdaMapping(arrays["lda_centre"], arrays["lda_matrix"]) if "lda_centre" in arrays else None
    return Transform(arrays["centre"], arrays["directions"], mapping, unit_length)


def segment_vectors(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> NDArray:
    """Return the projected supervectors of segments, one row each."""
    assert backend.transform is not None
    return backend.transform(
        np.asarray(adapt_supervectors(ubm, statistics, options.map, work=Work(jobs)).vectors), jobs=jobs
    )


def enrolment_vectors(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> tuple[NDArray, NDArray]:
    """Return model ids and vectors (n, D) that models are made of: one for each model, or one for each session."""
    assert backend.transform is not None
    adapt = adapt_multisession if options.enrolment == "pooled" else adapt_supervectors
    adapted = adapt(ubm, statistics, options.map, work=Work(jobs))
    return adapted.models, backend.transform(np.asarray(adapted.vectors), jobs=jobs)


def cohort_vectors(lesson: Lesson, backend: Backend) -> Segments:
    """Return the cohort as segments: its sessions, or the mean of what each speaker would enrol with."""
    options, statistics, jobs = lesson.options, lesson.cohort, lesson.workers.jobs
    if options.norm.segments == "session":
        vectors = segment_vectors(options, lesson.ubm, backend, statistics, jobs=jobs)
        return Segments(statistics.segments, vectors=vectors)
    assert backend.transform is not None
    names, vectors = enrolment_vectors(options, lesson.ubm, backend, statistics, jobs=jobs)
    return Segments(*mean_vectors(names, vectors, scale=backend.transform.unit_length))


_CHUNK = 16  # cohort machines in one task


def machines(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Return the machine of each model, trained against the background."""
    assert backend.background is not None
    names, vectors = enrolment_vectors(options, ubm, backend, statistics, jobs=jobs)
    enrolled = Supervectors(names, names, vectors)
    return train_svms(enrolled, backend.background, options.svm, gram=backend.gram, work=Work(jobs))


def background_rows(lesson: Lesson) -> NDArray[np.bool_]:
    """Return which learnt sessions machines are trained against: all, or so many as the configuration allows."""
    owners = dict(zip(lesson.learnt.segments, lesson.learnt.models, strict=True))
    chosen = set(choose_utterances(owners, limit=lesson.options.training.background, seed=lesson.seed))
    return np.array([segment in chosen for segment in lesson.learnt.segments])


def _learn(lesson: Lesson) -> Backend:
    transform, vectors = learn_transform(lesson, unit_length=GMM_SVM.scales(lesson.options))
    background = transform(vectors[background_rows(lesson)], jobs=lesson.workers.jobs)
    return Backend(transform, background, gram_matrix(background, work=lesson.workers))


def cohort_machines(lesson: Lesson, backend: Backend) -> SvmModels:
    """Return the machines of the cohort: a speaker's own sessions are left out of the background of its machine."""
    background, gram = backend.background, backend.gram
    assert background is not None
    assert gram is not None
    statistics = cohort_by_model(lesson)
    speakers = dict(zip(statistics.models, lesson.cohort.models, strict=True))
    names, vectors = enrolment_vectors(lesson.options, lesson.ubm, backend, statistics, jobs=lesson.workers.jobs)
    models = np.array(sorted(set(names)), object)
    owners = lesson.learnt.models[background_rows(lesson)]
    sides = [
        (np.flatnonzero(names == model), np.flatnonzero(owners != speakers[model]).astype(np.int32)) for model in models
    ]
    if not all(len(others) for _, others in sides):
        raise DataError("the training set has one speaker: a machine needs others to tell it from")
    work = partial(train_some_apart, vectors=vectors, background=background, gram=gram, config=lesson.options.svm)
    description = f"{lesson.options.name}: cohort machines"
    parts = list(
        ordered_map(work, chunks(sides, _CHUNK), jobs=lesson.workers.jobs, threads=True, description=description)
    )
    coefficients, own_part, biases = (
        np.concatenate([part[name] for part in parts]) for name in ("coefficients", "own", "biases")
    )
    weights = own_part + gram_matrix(coefficients, background.T, work=lesson.workers)
    return SvmModels(models, weights.astype(vectors.dtype), biases)


def train_some_apart(
    sides: Sequence[tuple[NDArray, NDArray]],
    vectors: NDArray,
    background: NDArray,
    gram: NDArray[np.float64],
    config: SvmConfig,
) -> Arrays:
    """Train the machines of a chunk; each is given by the rows of its own vectors and of the background against it."""
    coefficients = np.zeros((len(sides), len(background)))
    own_part, biases = np.zeros((len(sides), vectors.shape[1])), np.zeros(len(sides))
    # the kernels of the chunk against the background are one product
    cross = inner_products(vectors[np.concatenate([mine for mine, _ in sides])], background)
    start = 0
    for row, (mine, others) in enumerate(sides):
        positives = vectors[mine].astype(np.float64)
        between = cross[start : start + len(mine), others]
        alpha, biases[row] = train_one(
            gram[np.ix_(others, others)], between, inner_products(positives, positives), config
        )
        coefficients[row, others] = alpha[: len(others)]
        own_part[row] = alpha[len(others) :] @ positives
        start += len(mine)
    return {"coefficients": coefficients, "own": own_part, "biases": biases}


GMM_SVM = Kind(
    name="gmm-svm",
    summary="a support vector machine for each model, on supervectors",
    learn=_learn,
    vectors=segment_vectors,
    enrol=machines,
    cohort_models=cohort_machines,
    cohort_segments=cohort_vectors,
)


def ratio_vectors(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> NDArray:
    """Return what the ratio from statistics needs of segments, one row each, in the dtype of the statistics.

    These are the first-order statistics, centred on the UBM's means, per frame: the derivative of the mean
    log-likelihood by the means, but for the precisions, which stand with the models. With the scoring "bound" the share
    of frames of each component follows, C more columns, for the term of second order: at the UBM's posteriors it makes
    the sum a lower bound of the ratio, by Jensen's inequality.
    """
    width = statistics.first.shape[1]
    bound = options.scoring == "bound"
    vectors = np.empty((len(statistics), width + bound * ubm.n_components), statistics.first.dtype)
    for start, stop in chunk_bounds(len(statistics), _ROWS):
        count = statistics.zeroth[start:stop].astype(np.float64)
        n_frames = count.sum(axis=1, keepdims=True)
        expected = (count[:, :, None] * ubm.means).reshape(len(count), -1)
        vectors[start:stop, :width] = (statistics.first[start:stop] - expected) / n_frames
        if bound:
            vectors[start:stop, width:] = count / n_frames
    return vectors


def adapted_models(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Return the adapted means of each model for the exact ratio, else the weights that go with `ratio_vectors`."""
    adapted = adapt_multisession(ubm, statistics, replace(options.map, normalise=False), work=Work(jobs))
    means = np.asarray(adapted.vectors)
    weights = means if _is_exact(options) else _ratio_weights(options, ubm, means)
    return SvmModels(adapted.models, weights, np.zeros(len(adapted)))


def _ratio_weights(options: Options, ubm: GaussianMixture, means: NDArray) -> NDArray:
    shift = means.reshape(len(means), *ubm.means.shape) - ubm.means
    if ubm.has_full_covariances:
        weighted = of_each_gaussian(inverse_variances(ubm.variances), shift)
        lengths = (shift * weighted).sum(axis=2)
    else:
        weighted = shift / ubm.variances
        lengths = (shift * shift / ubm.variances).sum(axis=2)
    weights = weighted.reshape(len(means), -1)
    if options.scoring == "bound":
        weights = np.hstack([weights, -0.5 * lengths])
    return weights.astype(means.dtype)


def _cohort_segments(lesson: Lesson, backend: Backend) -> Segments:
    by_speaker, statistics = lesson.options.norm.segments == "speaker", lesson.cohort
    if not _is_exact(lesson.options):
        tested = sum_by_model(statistics, statistics.first.dtype) if by_speaker else statistics
        return Segments(tested.segments, vectors=ratio_vectors(lesson.options, lesson.ubm, backend, tested))
    owners = statistics.models if by_speaker else statistics.segments
    names = np.array(sorted(set(owners)), object)
    parts = [np.asarray(lesson.sessions.frames.value.stack(statistics.segments[owners == name])) for name in names]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Segments(names, frames=Frames(names, offsets, np.concatenate(parts)))


def _is_exact(options: Options) -> bool:
    return options.scoring == "exact"


def _check(options: Options) -> None:
    if options.enrolment != "pooled":
        raise ConfigError("enrolment is 'sessions': the attacker gmm-ubm adapts to all utterances of a model, 'pooled'")


GMM_UBM = Kind(
    name="gmm-ubm",
    summary="the log-likelihood ratio of an adapted mixture and the background model",
    learn=None,
    vectors=ratio_vectors,
    enrol=adapted_models,
    cohort_models=enrolled_cohort(adapted_models),
    cohort_segments=_cohort_segments,
    scores_frames=_is_exact,
    check=_check,
)


def mean_directions(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Return for each model the direction of the mean of its vectors; there is no bias."""
    names, vectors = enrolment_vectors(options, ubm, backend, statistics, jobs=jobs)
    models, weights = mean_vectors(names, vectors, scale=True)
    return SvmModels(models, weights, np.zeros(len(models)))


def _learn_cosine(lesson: Lesson) -> Backend:
    return Backend(learn_transform(lesson, unit_length=SUPERVECTOR_COSINE.scales(lesson.options))[0])


SUPERVECTOR_COSINE = Kind(
    name="supervector-cosine",
    summary="the cosine of projected supervectors",
    learn=_learn_cosine,
    vectors=segment_vectors,
    enrol=mean_directions,
    cohort_models=enrolled_cohort(mean_directions),
    cohort_segments=cohort_vectors,
    unit_length=True,
)
