"""gmm-ubm: the log-likelihood ratio of a mixture adapted to the speaker and the universal background model.

    score = 1/T sum_t log p(x_t | adapted) - log p(x_t | ubm)

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import Work, chunk_bounds
from spkver.attackers.backend import Backend, Segments
from spkver.attackers.kind import Kind, Lesson, enrolled_cohort
from spkver.attackers.options import Options
from spkver.backend import SvmModels
from spkver.features import Frames
from spkver.mixture import GaussianMixture, Statistics, inverse_variances, of_each_gaussian
from spkver.vectors import adapt_multisession, sum_by_model

_ROWS = 256  # vectors that are in float64 at a time


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
        tested = sum_by_model(statistics) if by_speaker else statistics
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
