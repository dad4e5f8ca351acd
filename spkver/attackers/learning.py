"""Learn from the sessions of a training set what an attacker needs after the universal background model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.runs import Handle
from spkbase.work import Device, Work, chunks
from spkver.attackers.backend import (
    Backend,
    Cohort,
    LdaMapping,
    Segments,
    Transform,
    enrol,
    enrolment_vectors,
    mean_vectors,
    unit_length,
    vectors_of,
)
from spkver.attackers.config import AttackerConfig
from spkver.attackers.discriminant import fit_lda
from spkver.attackers.kept import Arrays, Kept
from spkver.attackers.sessions import choose_utterances
from spkver.backend import SvmConfig, SvmModels, fit_nap, gram_matrix, inner_products, train_one
from spkver.features import Frames
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import adapt_supervectors, sum_by_model

logger = logging.getLogger(__name__)

_CHUNK = 16  # cohort machines in one task


def train_backend(
    config: AttackerConfig,
    ubm: GaussianMixture,
    statistics: Statistics,
    frames: Handle[Frames],
    *,
    n_utterances: int,
    seed: int,
    jobs: int | None = None,
    kept: Kept | None = None,
    device: Device | None = None,
) -> Backend:
    """Learn the transformation, the background and the cohort from the sessions of the training set.

    Parameters
    ----------
    config : AttackerConfig
    ubm : GaussianMixture
    statistics : Statistics
        Of the sessions; models are speakers.
    frames : Handle of Frames
        Of the sessions; asked for by the exact log-likelihood ratio alone.
    n_utterances : int
        Recordings that the sessions were cut from.
    seed : int
        Draws the speakers that are set apart for the cohort.
    jobs : int, optional
        Workers; the result does not depend on it.
    kept : Kept, optional
        Keeps what is done through a crash.
    device : spkbase.work.Device, optional
        Computes supervectors, the projection and the kernel of the background there; the workers do the rest.
    """
    kept = kept or Kept()
    n_speakers = len(set(statistics.models))
    normed = config.norm.kind != "none" and n_speakers >= config.norm.speakers
    if config.norm.kind != "none" and not normed:
        logger.info("%s: a cohort of %d speakers: scores are not normalised", config.name, n_speakers)
    ours = cohort_rows(statistics.models, config.norm.apart, seed=seed)
    theirs = ~ours if config.norm.apart and normed else np.ones(len(ours), bool)
    learning = _select(statistics, theirs)
    transform = background = gram = None
    if config.kind != "gmm-ubm":
        vectors = np.asarray(adapt_supervectors(ubm, learning, config.map, work=Work(jobs, device)).vectors)
        per_speaker = n_utterances / n_speakers
        fit = partial(
            fit_transform, config, vectors, learning.models, per_speaker=per_speaker, jobs=jobs, device=device
        )
        transform = _transform(config, kept.arrays("transform", lambda: _arrays_of(fit())))
        if config.kind == "gmm-svm":
            negatives = background_rows(config, learning, seed=seed)
            learning = _select(learning, negatives)
            background = transform(vectors[negatives], jobs=jobs)
            gram = kept.arrays("gram", lambda: {"gram": gram_matrix(background, work=Work(jobs, device))})["gram"]
    backend = Backend(transform, background, gram)
    if not normed:
        return backend
    cohort = _train_cohort(
        config, ubm, backend, _select(statistics, ours), learning.models, frames, jobs=jobs, kept=kept
    )
    return replace(backend, cohort=cohort)


def _arrays_of(transform: Transform) -> Arrays:
    arrays: Arrays = {"centre": transform.centre, "directions": transform.directions}
    if transform.mapping is not None:
        arrays |= {"lda_centre": transform.mapping.centre, "lda_matrix": transform.mapping.matrix}
    return arrays


def _transform(config: AttackerConfig, arrays: Arrays) -> Transform:
    mapping = LdaMapping(arrays["lda_centre"], arrays["lda_matrix"]) if "lda_centre" in arrays else None
    unit = config.projection.unit_length or config.kind == "supervector-cosine"
    return Transform(arrays["centre"], arrays["directions"], mapping, unit)


def background_rows(config: AttackerConfig, statistics: Statistics, *, seed: int) -> NDArray[np.bool_]:
    """Sessions that machines are trained against: all, or so many as the configuration allows."""
    owners = dict(zip(statistics.segments, statistics.models, strict=True))
    chosen = set(choose_utterances(owners, limit=config.training.background, seed=seed))
    return np.array([segment in chosen for segment in statistics.segments])


def cohort_rows(speakers: NDArray, apart: float, *, seed: int) -> NDArray[np.bool_]:
    """Rows whose speakers make the cohort: all, or a share of the speakers, at least 2, drawn with the seed."""
    if not apart:
        return np.ones(len(speakers), bool)
    names = sorted(set(speakers))
    n_chosen = min(max(2, round(apart * len(names))), len(names) - 1)
    chosen = np.random.default_rng(seed).permutation(len(names))[:n_chosen]
    return np.isin(speakers, np.array(names, object)[chosen])


def fit_transform(
    config: AttackerConfig,
    vectors: NDArray,
    speakers: Sequence[str] | NDArray,
    *,
    per_speaker: float,
    jobs: int | None = None,
    device: Device | None = None,
) -> Transform:
    """Estimate the centre and what divides speakers on supervectors (S, D) of sessions.

    `per_speaker` is the number of utterances for each speaker.
    """
    wanted, speakers = config.projection, np.asarray(speakers, object)
    centre = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    centred = vectors - centre
    n_speakers = len(set(speakers))
    limit = len(vectors) - n_speakers
    unit = wanted.unit_length or config.kind == "supervector-cosine"
    none = np.empty((0, vectors.shape[1]))
    if wanted.lda and n_speakers >= wanted.lda_speakers and per_speaker >= wanted.lda_utterances and limit:
        centred = unit_length(centred)
        second = centred.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
        matrix = fit_lda(
            centred - second, speakers, n_dimensions=wanted.lda, pca=wanted.pca, shrinkage=wanted.shrinkage, jobs=jobs
        )
        return Transform(centre, none, LdaMapping(second, matrix), unit)
    if wanted.lda:
        logger.info("%s: %.1f utterances of each of %d speakers: no LDA", config.name, per_speaker, n_speakers)
    rank = min(wanted.rank, limit)
    if rank < wanted.rank:
        logger.warning(
            "%s: the %d training sessions differ in %d directions within speakers: projection.rank is %d, not %d",
            config.name, len(vectors), limit, rank, wanted.rank,
        )  # fmt: skip
    if rank:
        none = fit_nap(centred, rank=rank, scatter="within", speakers=speakers, work=Work(jobs, device)).directions
    return Transform(centre, none, None, unit)


def _select(statistics: Statistics, rows: NDArray[np.bool_]) -> Statistics:
    if rows.all():
        return statistics
    found = [getattr(statistics, name)[rows] for name in ("models", "segments", "zeroth", "first")]
    return Statistics(*found)


def _train_cohort(
    config: AttackerConfig,
    ubm: GaussianMixture,
    backend: Backend,
    statistics: Statistics,
    background: NDArray,
    frames: Handle[Frames],
    *,
    jobs: int | None,
    kept: Kept,
) -> Cohort:
    """Cohort of the sessions in statistics; `background` says whose the rows of the background are."""
    tested = _cohort_segments(config, ubm, backend.transform, statistics, frames, jobs=jobs)
    owners = dict(zip(statistics.models, statistics.models, strict=True))
    if config.norm.models == "session":
        owners = dict(zip(statistics.segments, statistics.models, strict=True))
        statistics = replace(statistics, models=statistics.segments)
    if config.kind == "gmm-svm":
        names, vectors = enrolment_vectors(config, ubm, backend.transform, statistics, jobs=jobs)
        return Cohort(_train_apart(config, backend, names, vectors, owners, background, jobs=jobs, kept=kept), tested)
    return Cohort(enrol(config, ubm, backend, statistics, jobs=jobs), tested)


def _cohort_segments(
    config: AttackerConfig,
    ubm: GaussianMixture,
    transform: Transform | None,
    statistics: Statistics,
    frames: Handle[Frames],
    *,
    jobs: int | None,
) -> Segments:
    by_speaker = config.norm.segments == "speaker"
    if by_speaker and config.kind != "gmm-ubm":
        names, vectors = enrolment_vectors(config, ubm, transform, statistics, jobs=jobs)
        return Segments(*mean_vectors(names, vectors, scale=transform is not None and transform.unit_length))
    if not config.exact:
        found = sum_by_model(statistics) if by_speaker else statistics
        return Segments(found.segments, vectors=vectors_of(config, ubm, transform, found, jobs=jobs))
    owners = statistics.models if by_speaker else statistics.segments
    names = np.array(sorted(set(owners)), object)
    parts = [np.asarray(frames.value.stack(statistics.segments[owners == name])) for name in names]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Segments(names, frames=Frames(names, offsets, np.concatenate(parts)))


def _train_apart(
    config: AttackerConfig,
    backend: Backend,
    names: NDArray,
    vectors: NDArray,
    owners: dict[str, str],
    background: NDArray,
    *,
    jobs: int | None,
    kept: Kept,
) -> SvmModels:
    """Machines of cohort models: a speaker's own sessions are left out of the background it is trained against."""
    assert backend.background is not None
    assert backend.gram is not None
    models = np.array(sorted(set(names)), object)
    sides = [
        (np.flatnonzero(names == model), np.flatnonzero(background != owners[model]).astype(np.int32))
        for model in models
    ]
    if not all(len(others) for _, others in sides):
        raise DataError("the training set has one speaker: a machine needs others to tell it from")
    work = partial(
        _train_some_apart, vectors=vectors, background=backend.background, gram=backend.gram, config=config.svm
    )
    found = kept.map(
        "cohort", work, chunks(sides, _CHUNK), jobs=jobs, threads=True, description=f"{config.name}: cohort machines"
    )
    parts = list(found)
    coefficients, own_part, biases = (
        np.concatenate([part[name] for part in parts]) for name in ("coefficients", "own", "biases")
    )
    weights = own_part + gram_matrix(coefficients, backend.background.T, work=Work(jobs))
    return SvmModels(models, weights.astype(vectors.dtype), biases)


def _train_some_apart(
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
        own = vectors[mine].astype(np.float64)
        between = cross[start : start + len(mine), others]
        alpha, biases[row] = train_one(gram[np.ix_(others, others)], between, inner_products(own, own), config)
        coefficients[row, others] = alpha[: len(others)]
        own_part[row] = alpha[len(others) :] @ own
        start += len(mine)
    return {"coefficients": coefficients, "own": own_part, "biases": biases}
