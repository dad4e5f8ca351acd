"""Learn from the sessions of a training set what an attacker needs after the universal background model."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work
from spkver.attackers.backend import Backend, Cohort
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kept import Kept
from spkver.attackers.kind import Lesson, Sessions
from spkver.mixture import GaussianMixture

logger = logging.getLogger(__name__)


def train_backend(
    config: AttackerConfig,
    ubm: GaussianMixture,
    sessions: Sessions,
    *,
    seed: int,
    workers: Work | None = None,
    kept: Kept | None = None,
) -> Backend:
    """Learn the transformation, the background and the cohort from the sessions of the training set.

    Parameters
    ----------
    config : AttackerConfig
    ubm : GaussianMixture
    sessions : Sessions
    seed : int
        Draws the background, and the speakers that are set apart for the cohort.
    workers : Work, optional
        The device computes supervectors, the projection and the kernel of the background; the workers do the rest.
    kept : Kept, optional
        Keeps what is done through a crash.
    """
    speakers = sessions.statistics.models
    n_speakers = len(set(speakers))
    normed = config.norm.kind != "none" and n_speakers >= config.norm.speakers
    if config.norm.kind != "none" and not normed:
        logger.info("%s: a cohort of %d speakers: scores are not normalised", config.name, n_speakers)
    is_cohort = cohort_rows(speakers, config.norm.apart, seed=seed)
    is_learnt = ~is_cohort if config.norm.apart and normed else np.ones(len(speakers), bool)
    lesson = Lesson(config, ubm, sessions, is_learnt, is_cohort, seed, workers or Work(), kept or Kept())
    method = config.method
    backend = Backend() if method.learn is None else method.learn(lesson)
    if not normed:
        return backend
    segments = method.cohort_segments(lesson, backend)
    return replace(backend, cohort=Cohort(method.cohort_models(lesson, backend), segments, config.norm))


def cohort_rows(speakers: NDArray, apart: float, *, seed: int) -> NDArray[np.bool_]:
    """Return which rows are of cohort speakers: all, or of a share of the speakers, at least 2, drawn with the seed."""
    if not apart:
        return np.ones(len(speakers), bool)
    names = sorted(set(speakers))
    n_chosen = min(max(2, round(apart * len(names))), len(names) - 1)
    chosen = np.random.default_rng(seed).permutation(len(names))[:n_chosen]
    return np.isin(speakers, np.array(names, object)[chosen])
