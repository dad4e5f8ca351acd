"""supervector-cosine: the cosine of the projected supervectors of a model and of a segment.

score = m . x / (|m| |x|),  m the mean of the model's vectors of length 1
"""

from __future__ import annotations

import numpy as np

from spkver.attackers.backend import Backend, mean_vectors
from spkver.attackers.kind import Kind, Lesson, enrolled_cohort
from spkver.attackers.options import Options
from spkver.attackers.projection import cohort_vectors, enrolment_vectors, learn_transform, segment_vectors
from spkver.backend import SvmModels
from spkver.mixture import GaussianMixture, Statistics


def mean_directions(
    options: Options, ubm: GaussianMixture, backend: Backend, statistics: Statistics, *, jobs: int | None = None
) -> SvmModels:
    """Return for each model the direction of the mean of its vectors; there is no bias."""
    names, vectors = enrolment_vectors(options, ubm, backend, statistics, jobs=jobs)
    models, weights = mean_vectors(names, vectors, scale=True)
    return SvmModels(models, weights, np.zeros(len(models)))


def _learn(lesson: Lesson) -> Backend:
    return Backend(learn_transform(lesson, unit_length=SUPERVECTOR_COSINE.scales(lesson.options))[0])


SUPERVECTOR_COSINE = Kind(
    name="supervector-cosine",
    summary="the cosine of projected supervectors",
    learn=_learn,
    vectors=segment_vectors,
    enrol=mean_directions,
    cohort_models=enrolled_cohort(mean_directions),
    cohort_segments=cohort_vectors,
    unit_length=True,
)
