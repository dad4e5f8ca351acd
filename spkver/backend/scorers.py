"""Scorers of a chain: each has a model, learnt from training vectors, and scores enrolled sessions against tests.

A score function takes the model, the enrolled `Sessions`, tested vectors (T, R), of each of n trials the codes of model
and segment, and the values of the step's parameters; it returns n scores, the higher the more alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Trials
from spkbase.errors import DataError
from spkbase.work import Work
from spkver.backend.adapted import adapted_cosine_scores
from spkver.backend.closeness import cosine_of_sessions, mahalanobis_scores
from spkver.backend.kaldi_plda import adapt_plda_unsupervised, kaldi_plda_scores, plda_from_kaldi, plda_to_kaldi
from spkver.backend.moments import regularised, within_covariance
from spkver.backend.plda import Plda, PldaConfig, fit_plda
from spkver.backend.plda_scoring import plda_scores
from spkver.backend.scoring import score_trials
from spkver.backend.sessions import Sessions
from spkver.backend.svm import SvmConfig, train_svms
from spkver.backend.two_covariance import TwoCovariance, two_covariance_scores
from spkver.vectors import Supervectors

Codes = NDArray[np.integer]
Values = Mapping[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scorer:
    """How a step of a chain scores.

    Attributes
    ----------
    model : type
        Dataclass of arrays: what is learnt, and what a file holds.
    score : callable
        See the module.
    dimension : callable
        Gives the dimensions R that a model is for; None where it is for any.
    needs_direction : bool
        Means of sessions and tested vectors must not be 0.
    of_list : {"", "models", "models and segments"}
        What of the list of trials a score depends on besides its own two sides.
    """

    model: type
    score: Callable[[Any, Sessions, Floats, Codes, Codes, Values], Floats]
    dimension: Callable[[Any], int | None]
    needs_direction: bool = False
    of_list: Literal["", "models", "models and segments"] = ""


@dataclass(frozen=True)
class Cosine:
    """Nothing is learnt."""


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """The inverse of the covariance within speakers.

    Attributes
    ----------
    matrix : ndarray of float64 of shape (R, R)
    """

    matrix: Floats


@dataclass(frozen=True, eq=False)
class SvmBackground:
    """What machines tell a model's sessions from.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (B, R)
    """

    vectors: Floats


def fit_mahalanobis(vectors: Floats, codes: Codes, shrink: float | None = None) -> Mahalanobis:
    """Return the inverse of the covariance within speakers, shrunk where it is singular (`moments.regularised`)."""
    within = within_covariance(vectors, codes)
    n_free, what = len(codes) - int(codes.max()) - 1, "covariance within speakers"
    return Mahalanobis(np.asarray(np.linalg.inv(regularised(within, n_free, shrink=shrink, what=what)), np.float64))


def fit_plda_model(vectors: Floats, codes: Codes, adapt: Floats | None, values: Values) -> Plda:
    """Return a PLDA by the values of the step; see `spkver.backend.PldaConfig` and `adapt_plda_unsupervised`."""
    config = PldaConfig(
        rank=values["rank"],
        channel_rank=values["channel_rank"],
        residual=values["residual"],
        iterations=values["rounds"],
        minimum_divergence="sidekit" if values["convention"] == "sidekit" else "lower",
        prior=values["prior"],
    )
    plda = fit_plda(vectors, codes, config)[0]
    if values["adapt"] == "none" or adapt is None:
        return plda
    return plda_from_kaldi(adapt_plda_unsupervised(plda_to_kaldi(plda), adapt))


def score_cosine(
    model: Cosine, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return cosines with the means of the models' sessions."""
    return cosine_of_sessions(sessions, tests, models, segments)


def score_adapted_cosine(
    model: Cosine, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values,
    whole_list: bool = True,
) -> Floats:  # fmt: skip
    """Return cosines after adaptation to the list's own sessions and, of a whole list, its tests."""
    return adapted_cosine_scores(sessions, tests, models, segments, prior=values["prior"], whole_list=whole_list)


def score_mahalanobis(
    model: Mahalanobis, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return half the squared distances from the means of the models' sessions, negated."""
    return mahalanobis_scores(model.matrix, sessions, tests, models, segments)


def score_two_covariance(
    model: TwoCovariance, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return log-likelihood ratios of the two-covariance model."""
    return two_covariance_scores(model, sessions, tests, models, segments, sessions_as=values["sessions"])


def score_plda(
    model: Plda, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return log-likelihood ratios of the PLDA, by the book or as Kaldi scores."""
    if values["length"] != "none":
        options = {"sessions_as": values["sessions"], "length": values["length"]}
        return kaldi_plda_scores(plda_to_kaldi(model), sessions, tests, models, segments, **options)
    return plda_scores(model, sessions, tests, models, segments, sessions_as=values["sessions"])


def score_svm(
    model: SvmBackground, sessions: Sessions, tests: Floats, models: Codes, segments: Codes, values: Values
) -> Floats:
    """Return scores by a machine for each model, which is trained on all its sessions."""
    work, config = Work(jobs=1), SvmConfig(**values)
    sizes = len(sessions.counts), len(tests)
    names, tested = (np.array([str(code) for code in range(size)], object) for size in sizes)
    enrolled = names[sessions.models]
    try:
        trained = train_svms(Supervectors(enrolled, enrolled, sessions.vectors), model.vectors, config, work=work)
    except DataError:
        raise
    except ValueError as error:  # libsvm keeps its kernel in float32
        text = f"the support vector machines have no finite solution: {error}"
        raise DataError(text, remedy="put the step length before svm") from error
    trials = Trials(names, tested, np.asarray(models, np.int32), np.asarray(segments, np.int32))
    scores: Floats = score_trials(trained, Supervectors(tested, tested, tests), trials, work=work).values
    return scores
