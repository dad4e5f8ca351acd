"""Scorers of a chain: each has a model, learnt from training vectors, and scores enrolled sessions against tests.

A score function takes the model, the enrolled `Sessions`, tested vectors (T, R) and, of each of n trials, the codes of
model and segment; it returns n scores, the higher the more alike. Each says what it does with several sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, cosines, row_norms, to_unit
from evaluation.trials import Trials
from spkbase.work import Work
from spkver.backend.scoring import score_trials
from spkver.backend.sessions import Sessions
from spkver.backend.svm import Background, SvmConfig, train_svms

Codes = NDArray[np.integer]


@dataclass(frozen=True)
class Cosine:
    """The model of `cosine_of_sessions`: there is nothing to learn."""


def cosine_of_sessions(
    model: Cosine, sessions: Sessions, tests: NDArray[np.float64], models: Codes, segments: Codes
) -> NDArray[np.float64]:
    """Return the cosine of the mean of each model's sessions with the tested vector, shape (n,).

    Raises
    ------
    DataError
        If a mean or a tested vector has no direction.
    """
    means, norms, test_norms = sessions.means, row_norms(sessions.means), row_norms(tests)
    check_norms(norms, np.arange(len(means)).astype(object), what="mean of enrolled vectors")
    check_norms(test_norms, np.arange(len(tests)).astype(object), what="tested vector")
    return np.clip(cosines(means, norms, to_unit(tests, test_norms), models, segments), -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class SvmBackground:
    """What machines tell a model's sessions from.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (B, R)
    """

    vectors: NDArray[np.float64]


def svm_of_sessions(
    model: SvmBackground,
    sessions: Sessions,
    tests: NDArray[np.float64],
    models: Codes,
    segments: Codes,
    *,
    config: SvmConfig | None = None,
) -> NDArray[np.float64]:
    """Return the score of each trial by a machine that is trained on all sessions of its model, shape (n,)."""
    work = Work(jobs=1)
    names, tested = (
        np.array([f"{code}" for code in range(size)], object) for size in (len(sessions.counts), len(tests))
    )
    trained = train_svms(names[sessions.models], sessions.vectors, Background(model.vectors), config, work=work)
    trials = Trials(names, tested, np.asarray(models, np.int32), np.asarray(segments, np.int32))
    values: NDArray[np.float64] = score_trials(trained, tested, tests, trials, work=work).values
    return values


@dataclass(frozen=True)
class Scorer:
    """How a step of a chain scores.

    Attributes
    ----------
    model : type
        Dataclass of arrays: what is learnt, and what a file holds.
    score : callable
        As the score functions of this module, with the values of the step's parameters last.
    dimension : callable
        Gives the dimensions R that a model is for; None where it is for any.
    """

    model: type
    score: Callable[[Any, Sessions, NDArray[np.float64], Codes, Codes, Mapping[str, Any]], NDArray[np.float64]]
    dimension: Callable[[Any], int | None]
