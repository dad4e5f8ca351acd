"""The steps of a chain: the name, parameters, requirements and function of each.

Parsing and checks of chains, their file, help texts and docs/backends.md all follow the rows of `STEPS`, as do the
estimators of `spkver.sklearn`. The formulas are in `spkver.backend.transforms` (maps of vectors),
`spkver.backend.session_scores` and the modules of the other scorers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Trials
from spkbase.arrays import Floats
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.backend import plda, transforms
from spkver.backend.kaldi import (
    LENGTHS,
    adapt_plda_unsupervised,
    kaldi_plda_scores,
    plda_from_kaldi,
    plda_to_kaldi,
)
from spkver.backend.nap import fit_nap
from spkver.backend.plda import Sessions
from spkver.backend.scoring import numbered_ids, score_trials
from spkver.backend.self_training import self_trained_scores, shifted_self_trained_scores
from spkver.backend.session_scores import (
    adapted_cosine_scores,
    cosine_of_sessions,
    enrolled_plda_scores,
    mahalanobis_scores,
)
from spkver.backend.svm import SvmConfig, train_svms
from spkver.vectors import Supervectors

Need = Literal["speakers", "sessions", "adapt"]
Values = Mapping[str, Any]

NEEDS: dict[Need, str] = {
    "speakers": "two speakers",
    "sessions": "a speaker with two vectors",
    "adapt": "vectors to adapt to",
}
"""What a step may need of the training vectors, in words."""

_CONVENTIONS = ("book", "sidekit")
_COHORTS = ("speakers", "vectors", "adapt")

ALIASES = {"center": "centre", "lnorm": "length"}
"""Other names of steps."""


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """The inverse of the covariance within speakers, (R, R); a singular covariance is shrunk first."""

    matrix: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class SvmBackground:
    """Negative examples of all machines, (B, R)."""

    vectors: Floats


@dataclass(frozen=True, eq=False)
class PldaBackground:
    """Vectors, (B, R), and their speakers, (B,), on which an enrolled PLDA is trained besides the enrolled speakers."""

    vectors: Floats
    speakers: NDArray[Any]

    @property
    def sessions(self) -> Sessions | None:
        """The vectors by speaker; None if there are none."""
        if not len(self.vectors):
            return None
        return Sessions(self.vectors, self.speakers.astype(np.int64))


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step.

    Attributes
    ----------
    name : str
    kind : type
        int, float, str or bool.
    default : object
        Default value; None if the parameter may be left out.
    about : str
    choices : tuple of str
        The allowed values, if they are texts.
    least, most : float, optional
        The smallest and the largest number that is allowed.
    """

    name: str
    kind: type
    default: Any
    about: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Training:
    """The training data of a step: vectors after the steps before it.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (N, R)
    codes : ndarray of int of shape (N,)
        Speaker of each vector, 0 .. C-1.
    adapt : ndarray of float64 of shape (M, R), optional
        Vectors to adapt to.
    """

    vectors: Floats
    codes: NDArray[np.integer]
    adapt: Floats | None = None

    def on(self, on: str) -> Floats:
        """Return the vectors to adapt to for "adapt", if there are any; else the training vectors."""
        if on == "adapt" and self.adapt is not None:
            return self.adapt
        return self.vectors


@one_line
@dataclass(frozen=True)
class Step:
    """A row of the table.

    Attributes
    ----------
    name : str
    role : {"map", "scorer", "norm", "calibration"}
        Role of the step, in the order of a chain: maps of vectors, from vectors to scores, maps of scores.
    about : str
    parameters : tuple of Parameter
        The parameters; ``name:value`` sets the first one.
    needs : tuple of str
        Keys of `NEEDS`.
    fit : callable, optional
        For a map: takes the training vectors, then the speakers' codes or the vectors to adapt to if it needs them,
        and the parameters by name; returns one or several maps. For a scorer: takes `Training` and the values of the
        parameters; returns its model.
    score : callable, optional
        For a scorer: takes its model, the values, enrolled `Sessions`, tested vectors, and codes of the trials; returns
        the scores.
    model : type, optional
        Dataclass of the arrays that a scorer learns and that its file holds; the last axis of its first array is the
        dimension.
    limit : {"", "dimensions", "speakers"}
        Limit of the first parameter: the dimension of the vectors, or that and the number of speakers minus 1. The
        output of a map with a limit has as many dimensions as this parameter says.
    training_only : bool
        The map is applied only to training vectors, because tested vectors already belong to the target domain.
    of_list : {"", "models", "models and segments"}
        The part of the trial list that a score depends on besides the two sides of its trial.
    """

    name: str
    role: Literal["map", "scorer", "norm", "calibration"]
    about: str
    parameters: tuple[Parameter, ...] = ()
    needs: tuple[Need, ...] = ()
    fit: Callable[..., Any] | None = None
    score: Callable[..., Floats] | None = None
    model: type = NoneType
    limit: Literal["", "dimensions", "speakers"] = ""
    training_only: bool = False
    of_list: Literal["", "models", "models and segments"] = ""

    def learn(self, training: Training, values: Values) -> Any:
        """Train a step: return a tuple of maps (for a map), a model (for a scorer), or None."""
        if self.fit is None:
            return None
        if self.role != "map":
            return self.fit(training, values)
        given = dict(values)
        arguments: list[NDArray[Any]] = [training.on(given.pop("on", "training"))]
        if "sessions" in self.needs:
            arguments.append(training.codes)
        elif "adapt" in self.needs:
            arguments.append(training.on("adapt"))
        maps = self.fit(*arguments, **given)
        if not isinstance(maps, tuple):
            maps = (maps,)
        return maps


def _fit_plda(training: Training, values: Values) -> plda.Plda:
    config = plda.PldaConfig(
        rank=values["rank"],
        channel_rank=values["channel_rank"],
        residual=values["residual"],
        iterations=values["rounds"],
        minimum_divergence="sidekit" if values["convention"] == "sidekit" else "lower",
        prior=values["prior"],
    )
    trained = plda.fit_plda(training.vectors, training.codes, config)[0]
    if values["adapt"] == "none" or training.adapt is None:
        return trained
    return plda_from_kaldi(adapt_plda_unsupervised(plda_to_kaldi(trained), training.adapt))


def _score_plda(model: plda.Plda, values: Values, *trials: Any) -> Floats:
    if values["length"] == "none":
        return plda.plda_scores(model, *trials, sessions_as=values["sessions"])
    return kaldi_plda_scores(
        plda_to_kaldi(model), *trials, sessions_as=values["sessions"], length=values["length"]
    )


def _score_enrolled_plda(model: PldaBackground, values: Values, *trials: Any) -> Floats:
    return enrolled_plda_scores(*trials, prior=values["prior"], background=model.sessions)


def _score_self_trained(model: PldaBackground, values: Values, *trials: Any) -> Floats:
    if values["shifted"]:
        return shifted_self_trained_scores(*trials, prior=values["prior"])
    background = model.sessions
    return self_trained_scores(
        *trials, prior=values["prior"], margin=values["margin"], background=background
    )


def _score_svm(
    model: SvmBackground,
    values: Values,
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
) -> Floats:
    names = numbered_ids(len(sessions.counts))
    tested = numbered_ids(len(tests))
    enrolled = Supervectors(names[sessions.models], names[sessions.models], sessions.vectors)
    config = SvmConfig(values["tolerance"], values["cost"], values["balanced"])
    try:
        trained = train_svms(enrolled, model.vectors, config, work=Work(jobs=1))
    except DataError:
        raise
    except ValueError as error:  # libsvm keeps its kernel in float32
        text = f"the support vector machines have no finite solution: {error}"
        raise DataError(text, remedy="put the step length before svm") from error
    trials = Trials(names, tested, np.asarray(models, np.int32), np.asarray(segments, np.int32))
    vectors = Supervectors(tested, tested, tests)
    return score_trials(trained, vectors, trials, work=Work(jobs=1)).values


def _keep_background(training: Training, values: Values) -> PldaBackground:
    if values["background"]:
        return PldaBackground(training.vectors, training.codes)
    return PldaBackground(training.vectors[:0], training.codes[:0])


def _some_of_each(training: Training, most: int | None) -> SvmBackground:
    """Return a limited number of training vectors, drawn evenly over the speakers: one of each, then a second ..."""
    order = np.random.default_rng(0).permutation(len(training.codes))
    by_speaker = order[np.argsort(training.codes[order], kind="stable")]
    counts = np.bincount(training.codes)
    turns = np.concatenate([np.arange(count) for count in counts])
    chosen = by_speaker[np.argsort(turns, kind="stable")[:most]]
    return SvmBackground(training.vectors[np.sort(chosen)])


_SHRINK = Parameter(
    "shrink",
    float,
    None,
    "share of shrinkage; by default only of a singular covariance",
    least=0,
    most=1,
)
_ROUNDS = Parameter("rounds", int, 1, "repetitions", least=1)
_ON = Parameter("on", str, "training", "vectors that it is trained on", ("training", "adapt"))
_SESSIONS = Parameter(
    "sessions",
    str,
    "all",
    "enrolled vectors of a model: all, or their mean as one vector",
    plda.SESSIONS_AS,
)
_PRIOR = Parameter("prior", float, 1.0, "weight of the identity in that covariance", least=1e-6)
_PLDA_PRIOR = Parameter("prior", float, 100.0, "weight of the residual's prior", least=0)
_BACKGROUND = Parameter("background", bool, False, "train it on the training vectors too")
_TOP = Parameter(
    "top",
    int,
    None,
    "highest cohort scores that are used of each side (adaptive); all by default",
    least=2,
)

STEPS: tuple[Step, ...] = (
    Step("centre", "map", "subtract the mean", (_ON,), fit=transforms.fit_centring),
    Step(
        "whiten",
        "map",
        "subtract the mean and make the total covariance the identity",
        (
            Parameter("kind", str, "full", "root of the covariance", transforms.WHITENINGS),
            _ON,
            _SHRINK,
        ),
        fit=transforms.fit_whitening,
    ),
    Step(
        "length",
        "map",
        "scale each vector to length 1",
        fit=lambda vectors: transforms.LengthNorm(),
    ),
    Step(
        "efr",
        "map",
        "whiten and scale to length 1, repeatedly (eigen factor radial)",
        (_ROUNDS,),
        fit=transforms.fit_efr,
    ),
    Step(
        "sphnorm",
        "map",
        "the same with the covariance within speakers (spherical nuisance normalisation)",
        (_ROUNDS,),
        ("sessions",),
        transforms.fit_sphnorm,
    ),
    Step(
        "pca",
        "map",
        "subtract the mean and keep the directions of the largest variance (principal components)",
        (
            Parameter(
                "rank",
                int,
                None,
                "directions that are kept; by default all that vectors span",
                least=1,
            ),
        ),
        fit=transforms.fit_pca,
        limit="dimensions",
    ),
    Step(
        "lda",
        "map",
        "keep the directions that distinguish speakers (linear discriminant analysis)",
        (
            Parameter(
                "rank",
                int,
                None,
                "directions that are kept; by default as many as there can be",
                least=1,
            ),
            _SHRINK,
            Parameter(
                "convention",
                str,
                "book",
                "the textbook's, or SIDEKIT 1.3.2's mistake",
                _CONVENTIONS,
            ),
        ),
        ("speakers", "sessions"),
        transforms.fit_lda,
        limit="speakers",
    ),
    Step(
        "wccn",
        "map",
        "make the covariance within speakers the identity, speakers of equal weight",
        (_SHRINK,),
        ("sessions",),
        transforms.fit_wccn,
    ),
    Step(
        "nap",
        "map",
        "remove the directions in which sessions vary (nuisance attribute projection)",
        (
            Parameter("rank", int, 40, "directions that are removed", least=0),
            Parameter(
                "scatter",
                str,
                "within",
                "scatter whose largest directions these are",
                ("within", "total"),
            ),
        ),
        ("sessions",),
        lambda vectors, codes, **values: fit_nap(
            vectors, speakers=codes, work=Work(jobs=1), **values
        ),
    ),
    Step(
        "coral",
        "map",
        "give the training vectors mean and covariance of the vectors to adapt to (correlation alignment)",
        (_SHRINK,),
        ("adapt",),
        transforms.fit_coral,
        training_only=True,
    ),
    Step(
        "cosine",
        "scorer",
        "cosine with the mean of the enrolled vectors, or the largest cosine with one of them",
        (Parameter("sessions", str, "mean", "enrolled vectors of a model", ("mean", "maximum")),),
        score=lambda model, values, *trials: cosine_of_sessions(
            *trials, sessions_as=values["sessions"]
        ),
    ),
    Step(
        "adapted_cosine",
        "scorer",
        "cosine after subtracting the mean of each side of the trial list and whitening by the "
        "covariance within the enrolled models; the trial's own model and test are left out",
        (_PRIOR,),
        score=lambda model, values, *trials: adapted_cosine_scores(*trials, prior=values["prior"]),
        of_list="models and segments",
    ),
    Step(
        "single_test_cosine",
        "scorer",
        "the same with mean and covariance of the other enrolled models alone: independent of the other tests",
        (_PRIOR,),
        score=lambda model, values, *trials: adapted_cosine_scores(
            *trials, prior=values["prior"], whole_list=False
        ),
        of_list="models",
    ),
    Step(
        "enrolled_plda",
        "scorer",
        "log-likelihood ratio of a full-rank PLDA that is trained on the enrolled models themselves",
        (_PLDA_PRIOR, _BACKGROUND),
        fit=_keep_background,
        score=_score_enrolled_plda,
        model=PldaBackground,
        of_list="models",
    ),
    Step(
        "self_trained_plda",
        "scorer",
        "the same, trained again on the tests that clearly belong to an enrolled model, by folds of the tests",
        (
            _PLDA_PRIOR,
            _BACKGROUND,
            Parameter(
                "margin",
                float,
                5.0,
                "by how many nat the model of such a test leads the next",
                least=0,
            ),
            Parameter(
                "shifted",
                bool,
                False,
                "tests are of another domain than the enrolled: in rounds, without margin and background",
            ),
        ),
        fit=_keep_background,
        score=_score_self_trained,
        model=PldaBackground,
        of_list="models and segments",
    ),
    Step(
        "mahalanobis",
        "scorer",
        "half the squared distance from the mean of the enrolled vectors, in the metric of the covariance within "
        "speakers, negated",
        (_SHRINK,),
        ("sessions",),
        lambda training, values: Mahalanobis(
            transforms.inverse(
                transforms.regularised_within(training.vectors, training.codes, **values)
            )
        ),
        lambda model, values, *trials: mahalanobis_scores(model.matrix, *trials),
        Mahalanobis,
    ),
    Step(
        "two_covariance",
        "scorer",
        "log-likelihood ratio of Gaussian speakers and sessions, each with a full covariance",
        (
            _SESSIONS,
            Parameter(
                "convention", str, "book", "unbiased covariances, or SIDEKIT 1.3.2's", _CONVENTIONS
            ),
        ),
        ("speakers", "sessions"),
        lambda training, values: plda.fit_two_covariance(
            training.vectors, training.codes, convention=values["convention"]
        ),
        lambda model, values, *trials: plda.plda_scores(
            model.plda, *trials, sessions_as=values["sessions"]
        ),
        plda.TwoCovariance,
    ),
    Step(
        "plda",
        "scorer",
        "log-likelihood ratio of probabilistic linear discriminant analysis, trained by EM",
        (
            Parameter(
                "rank", int, None, "directions of speakers; by default the dimensions", least=1
            ),
            Parameter(
                "channel_rank", int, 0, "directions of sessions, with a diagonal residual", least=0
            ),
            Parameter("residual", str, "full", "covariance of the rest", ("full", "diagonal")),
            Parameter("rounds", int, 10, "iterations of EM", least=0),
            _SESSIONS,
            Parameter(
                "length",
                str,
                "none",
                "scaling of vectors within the model, as Kaldi scores",
                LENGTHS,
            ),
            Parameter(
                "prior",
                float,
                None,
                "weight of the residual's prior; by default only where it is singular",
                least=0,
            ),
            Parameter(
                "adapt",
                str,
                "none",
                "to unlabelled vectors of another domain, as Kaldi does",
                ("none", "kaldi"),
            ),
            Parameter(
                "convention",
                str,
                "book",
                "the book's minimum divergence, or SIDEKIT 1.3.2's",
                _CONVENTIONS,
            ),
        ),
        ("speakers", "sessions"),
        _fit_plda,
        _score_plda,
        plda.Plda,
        limit="dimensions",
    ),
    Step(
        "svm",
        "scorer",
        "a support vector machine for each model, against the training vectors",
        (
            Parameter(
                "cost",
                float,
                None,
                "penalty C; 1 / mean of the kernel's diagonal by default",
                least=0,
            ),
            Parameter("tolerance", float, 1e-3, "tolerance of the solver", least=0),
            Parameter("balanced", bool, False, "give both classes the same weight"),
            Parameter(
                "most",
                int,
                None,
                "at most so many training vectors, evenly over the speakers; by default all",
                least=1,
            ),
        ),
        fit=lambda training, values: _some_of_each(training, values["most"]),
        score=_score_svm,
        model=SvmBackground,
    ),
    Step(
        "snorm",
        "norm",
        "normalise scores by those of a cohort on both sides (s-norm)",
        (
            _TOP,
            Parameter(
                "cohort",
                str,
                "speakers",
                "means of the training speakers, all training vectors, or those to adapt to",
                _COHORTS,
            ),
        ),
    ),
    Step(
        "calibrate",
        "calibration",
        "scores to natural log-likelihood ratios, learnt on trials of held-out training speakers",
        (
            Parameter(
                "prior",
                float,
                0.5,
                "prior of a target trial that it is trained for",
                least=1e-6,
                most=1 - 1e-6,
            ),
            Parameter("enrolled", int, 1, "vectors that enrol a model in these trials", least=1),
            Parameter("folds", int, 5, "folds of the training speakers", least=2),
            Parameter("ridge", float, 0.0, "penalty on the weight", least=0),
        ),
        ("speakers", "sessions"),
    ),
)
