"""gmm-svm: a linear machine for each model, its projected supervectors against those of the training set.

    score = w . x + b

References
----------
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import Work, chunks
from spkver.attackers.backend import Backend
from spkver.attackers.kept import Arrays
from spkver.attackers.kind import Kind, Lesson, cohort_by_model
from spkver.attackers.options import Options
from spkver.attackers.projection import cohort_vectors, enrolment_vectors, learn_transform, segment_vectors
from spkver.attackers.sessions import choose_utterances
from spkver.backend import Background, SvmConfig, SvmModels, gram_matrix, inner_products, train_one, train_svms
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import Supervectors

_CHUNK = 16  # cohort machines in one task


def machines(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Return the machine of each model, trained against the background."""
    assert backend.background is not None
    names, vectors = enrolment_vectors(options, ubm, backend, statistics, jobs=jobs)
    background = Background(backend.background, backend.gram)
    return train_svms(Supervectors(names, names, vectors), background, options.svm, work=Work(jobs))


def background_rows(lesson: Lesson) -> NDArray[np.bool_]:
    """Return which learnt sessions machines are trained against: all, or so many as the configuration allows."""
    owners = dict(zip(lesson.learnt.segments, lesson.learnt.models, strict=True))
    chosen = set(choose_utterances(owners, limit=lesson.options.training.background, seed=lesson.seed))
    return np.array([segment in chosen for segment in lesson.learnt.segments])


def _learn(lesson: Lesson) -> Backend:
    transform, vectors = learn_transform(lesson, unit_length=GMM_SVM.scales(lesson.options))
    background = transform(vectors[background_rows(lesson)], jobs=lesson.workers.jobs)

    def products() -> Arrays:
        return {"gram": gram_matrix(background, work=lesson.workers)}

    return Backend(transform, background, lesson.kept.arrays("gram", products)["gram"])


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
    options = {"jobs": lesson.workers.jobs, "threads": True, "description": description}
    parts = list(lesson.kept.map("cohort", work, chunks(sides, _CHUNK), **options))
    coefficients, own_part, biases = (
        np.concatenate([part[name] for part in parts]) for name in ("coefficients", "own", "biases")
    )
    weights = own_part + gram_matrix(coefficients, background.T, work=lesson.workers.on_cores())
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
