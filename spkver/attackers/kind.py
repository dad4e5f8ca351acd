"""What a kind of attacker is: the functions in which one kind differs from another.

All kinds start with the same features, universal background model and statistics, and all score as a linear machine
does, weights . vector + bias, but for the exact log-likelihood ratio, whose machines hold adapted means and which is
computed from frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spkbase.runs import Handle
from spkbase.work import Work
from spkver.attackers.backend import Backend, Segments
from spkver.attackers.kept import Kept
from spkver.attackers.options import Options
from spkver.backend import SvmModels
from spkver.features import Frames
from spkver.mixture import GaussianMixture, Statistics


@dataclass(frozen=True)
class Sessions:
    """The sessions of a training set.

    Attributes
    ----------
    statistics : Statistics
        Of the sessions; models are speakers.
    frames : Handle of Frames
        Of the sessions; asked for by the exact log-likelihood ratio alone.
    n_utterances : int
        Recordings that the sessions were cut from.
    """

    statistics: Statistics
    frames: Handle[Frames]
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
    kept : Kept
        Keeps what is done through a crash.
    """

    options: Options
    ubm: GaussianMixture
    sessions: Sessions
    is_learnt: NDArray[np.bool_]
    is_cohort: NDArray[np.bool_]
    seed: int = 0
    workers: Work = field(default_factory=Work)
    kept: Kept = field(default_factory=Kept)

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
