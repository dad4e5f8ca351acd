"""Projected supervectors, which gmm-svm and supervector-cosine share: how the projection is learnt, what it gives."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work
from spkver.attackers.backend import Backend, LdaMapping, Segments, Transform, mean_vectors, unit_length
from spkver.attackers.discriminant import fit_lda
from spkver.attackers.kept import Arrays
from spkver.attackers.kind import Lesson
from spkver.attackers.options import Options
from spkver.backend import fit_nap
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import adapt_multisession, adapt_supervectors

logger = logging.getLogger(__name__)


def learn_transform(lesson: Lesson, *, unit_length: bool) -> tuple[Transform, NDArray]:
    """Return the transformation that the sessions of a lesson teach, and their supervectors (S, D) before it."""
    options, workers = lesson.options, lesson.workers
    adapted = adapt_supervectors(lesson.ubm, lesson.learnt, options.map, work=workers)
    vectors = np.asarray(adapted.vectors)

    def fit() -> Arrays:
        return arrays_of(
            fit_transform(options, vectors, lesson.learnt.models, per_speaker=lesson.per_speaker, workers=workers)
        )

    return transform_of(lesson.kept.arrays("transform", fit), unit_length=unit_length), vectors


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
