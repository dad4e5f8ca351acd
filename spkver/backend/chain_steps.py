"""The table of steps that a chain is made of: what each is called, takes, needs and does.

Everything that shows steps is made from the rows: parsing and checks of chains (`spkver.backend.chain`), their file,
help texts, scikit-learn's estimators and docs/backends.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spkbase.showing import one_line
from spkbase.work import Work
from spkver.backend.kaldi_plda import LENGTHS
from spkver.backend.nap import fit_nap
from spkver.backend.plda_scoring import SESSIONS_AS
from spkver.backend.scorers import (
    Cosine,
    Mahalanobis,
    Plda,
    Scorer,
    SvmBackground,
    TwoCovariance,
    fit_mahalanobis,
    fit_plda_model,
    score_adapted_cosine,
    score_cosine,
    score_mahalanobis,
    score_plda,
    score_svm,
    score_two_covariance,
)
from spkver.backend.transforms import (
    WHITENINGS,
    LengthNorm,
    Map,
    fit_centring,
    fit_coral,
    fit_efr,
    fit_lda,
    fit_sphnorm,
    fit_wccn,
    fit_whitening,
)
from spkver.backend.two_covariance import fit_two_covariance

Need = Literal["speakers", "sessions", "adapt"]
Limit = Literal["", "dimensions", "speakers"]
Values = Mapping[str, Any]

NEEDS: dict[Need, str] = {
    "speakers": "two speakers",
    "sessions": "a speaker with two vectors",
    "adapt": "vectors to adapt to",
}
"""What a step may need of the training vectors, in words."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step.

    Attributes
    ----------
    name : str
    kind : type
        int, float, str or bool.
    default : object
        None where it may be left out.
    about : str
    choices : tuple of str
        The texts that it can be, all others refused.
    least, most : float, optional
        The smallest and the largest number that it can be.
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
    """What a step is trained on: the vectors as the steps before it leave them.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (N, R)
    codes : ndarray of int of shape (N,)
        Speaker of each, 0 .. C-1.
    adapt : ndarray of float64 of shape (M, R), optional
        Vectors to adapt to.
    """

    vectors: NDArray[np.float64]
    codes: NDArray[np.integer]
    adapt: NDArray[np.float64] | None = None


@one_line
@dataclass(frozen=True)
class Step:
    """A row of the table.

    Attributes
    ----------
    name : str
    role : {"map", "scorer", "norm", "calibration"}
        Vectors to vectors; vectors to scores; scores to scores. They stand in this order in a chain.
    about : str
    parameters : tuple of Parameter
        The first is what ``name:value`` means.
    needs : tuple of str
        Keys of `NEEDS`.
    fit : callable, optional
        Of a map: `Training` and the values of the parameters to the maps. Of a scorer: to its model.
    scorer : Scorer, optional
        How a scorer scores, and the type of its model.
    limit : {"", "dimensions", "speakers"}
        What the first parameter may not exceed: the dimensions of the vectors, or also the speakers less 1. A map with
        a limit leaves so many dimensions.
    training_only : bool
        The map is of the training vectors alone, as those of a test are of the other domain already.
    """

    name: str
    role: Literal["map", "scorer", "norm", "calibration"]
    about: str
    parameters: tuple[Parameter, ...] = ()
    needs: tuple[Need, ...] = ()
    fit: Callable[[Training, Values], Any] | None = None
    scorer: Scorer | None = None
    limit: Limit = ""
    training_only: bool = False


def _centre(training: Training, values: Values) -> tuple[Map, ...]:
    return (fit_centring(_of(training, values["on"])),)


def _whiten(training: Training, values: Values) -> tuple[Map, ...]:
    return (fit_whitening(_of(training, values["on"]), kind=values["kind"], shrink=values["shrink"]),)


def _of(training: Training, which: str) -> NDArray[np.float64]:
    return training.vectors if which == "training" or training.adapt is None else training.adapt


def _length(training: Training, values: Values) -> tuple[Map, ...]:
    return (LengthNorm(),)


def _efr(training: Training, values: Values) -> tuple[Map, ...]:
    return fit_efr(training.vectors, rounds=values["rounds"])


def _sphnorm(training: Training, values: Values) -> tuple[Map, ...]:
    return fit_sphnorm(training.vectors, training.codes, rounds=values["rounds"])


def _lda(training: Training, values: Values) -> tuple[Map, ...]:
    return (fit_lda(training.vectors, training.codes, **values),)


def _wccn(training: Training, values: Values) -> tuple[Map, ...]:
    return (fit_wccn(training.vectors, training.codes, **values),)


def _nap(training: Training, values: Values) -> tuple[Map, ...]:
    return (fit_nap(training.vectors, speakers=training.codes, work=Work(jobs=1), **values),)


def _coral(training: Training, values: Values) -> tuple[Map, ...]:
    assert training.adapt is not None
    return (fit_coral(training.vectors, training.adapt, **values),)


def _cosine(training: Training, values: Values) -> Cosine:
    return Cosine()


def _svm(training: Training, values: Values) -> SvmBackground:
    return SvmBackground(training.vectors)


def _mahalanobis(training: Training, values: Values) -> Mahalanobis:
    return fit_mahalanobis(training.vectors, training.codes, **values)


def _two_covariance(training: Training, values: Values) -> TwoCovariance:
    return fit_two_covariance(training.vectors, training.codes, convention=values["convention"])


def _plda(training: Training, values: Values) -> Plda:
    return fit_plda_model(training.vectors, training.codes, training.adapt, values)


_CONVENTIONS = ("book", "sidekit")
_COHORTS = ("speakers", "vectors", "adapt")
_SHRINK = Parameter(
    "shrink", float, None, "share of shrinkage; by default only of a singular covariance", least=0, most=1
)
_ROUNDS = Parameter("rounds", int, 1, "how many times", least=1)
_ON = Parameter("on", str, "training", "vectors that it is trained on", ("training", "adapt"))
_SESSIONS = Parameter(
    "sessions", str, "all", "enrolled vectors of a model: all by the book, or their mean as one", SESSIONS_AS
)
_PRIOR = Parameter("prior", float, 1.0, "weight of the identity in their spread", least=1e-6)
_TOP = Parameter(
    "top", int, None, "highest cohort scores that are used of each side (adaptive); all by default", least=2
)

STEPS: tuple[Step, ...] = (
    Step("centre", "map", "subtract the mean", (_ON,), fit=_centre),
    Step(
        "whiten",
        "map",
        "subtract the mean and make the total covariance the identity",
        (Parameter("kind", str, "full", "root of the covariance", WHITENINGS), _ON, _SHRINK),
        fit=_whiten,
    ),
    Step("length", "map", "scale each vector to length 1", fit=_length),
    Step("efr", "map", "whiten and scale to length 1, so many times (eigen factor radial)", (_ROUNDS,), fit=_efr),
    Step(
        "sphnorm",
        "map",
        "the same with the covariance within speakers (spherical nuisance normalisation)",
        (_ROUNDS,),
        ("sessions",),
        _sphnorm,
    ),
    Step(
        "lda",
        "map",
        "keep the directions that tell speakers apart (linear discriminant analysis)",
        (
            Parameter("rank", int, None, "directions that are kept; by default as many as there can be", least=1),
            _SHRINK,
            Parameter("convention", str, "book", "the textbook's, or SIDEKIT 1.3.2's mistake", _CONVENTIONS),
        ),
        ("speakers", "sessions"),
        _lda,
        limit="speakers",
    ),
    Step(
        "wccn",
        "map",
        "make the covariance within speakers the identity, speakers of equal weight",
        (_SHRINK,),
        ("sessions",),
        _wccn,
    ),
    Step(
        "nap",
        "map",
        "remove the directions in which sessions vary (nuisance attribute projection)",
        (
            Parameter("rank", int, 40, "directions that are removed", least=0),
            Parameter("scatter", str, "within", "of which they are the largest", ("within", "total")),
        ),
        ("sessions",),
        _nap,
    ),
    Step(
        "coral",
        "map",
        "give the training vectors mean and covariance of the vectors to adapt to (correlation alignment)",
        (_SHRINK,),
        ("adapt",),
        _coral,
        training_only=True,
    ),
    Step(
        "cosine",
        "scorer",
        "cosine with the mean of the enrolled vectors",
        fit=_cosine,
        scorer=Scorer(Cosine, score_cosine, lambda model: None, needs_direction=True),
    ),
    Step(
        "adapted_cosine",
        "scorer",
        "the cosine after each side of the list of trials lost its mean, and what spreads the models' vectors; the "
        "trial's own model and test left out",
        (_PRIOR,),
        fit=_cosine,
        scorer=Scorer(Cosine, score_adapted_cosine, lambda model: None, of_list="models and segments"),
    ),
    Step(
        "single_test_cosine",
        "scorer",
        "the same with mean and spread of the other models alone: nothing depends on what else is tested",
        (_PRIOR,),
        fit=_cosine,
        scorer=Scorer(Cosine, partial(score_adapted_cosine, whole_list=False), lambda model: None, of_list="models"),
    ),
    Step(
        "mahalanobis",
        "scorer",
        "half the squared distance from the mean of the enrolled vectors, in the metric of the covariance within "
        "speakers, negated",
        (_SHRINK,),
        ("sessions",),
        _mahalanobis,
        Scorer(Mahalanobis, score_mahalanobis, lambda model: len(model.matrix)),
    ),
    Step(
        "two_covariance",
        "scorer",
        "log-likelihood ratio of Gaussian speakers and sessions, each with a full covariance",
        (_SESSIONS, Parameter("convention", str, "book", "unbiased covariances, or SIDEKIT 1.3.2's", _CONVENTIONS)),
        ("speakers", "sessions"),
        _two_covariance,
        Scorer(TwoCovariance, score_two_covariance, lambda model: len(model.mean)),
    ),
    Step(
        "plda",
        "scorer",
        "log-likelihood ratio of probabilistic linear discriminant analysis, trained by EM",
        (
            Parameter("rank", int, None, "directions of speakers; by default the dimensions", least=1),
            Parameter("channel_rank", int, 0, "directions of sessions, with a diagonal residual", least=0),
            Parameter("residual", str, "full", "covariance of the rest", ("full", "diagonal")),
            Parameter("rounds", int, 10, "of EM", least=0),
            _SESSIONS,
            Parameter("length", str, "none", "scaling of vectors within the model, as Kaldi scores", LENGTHS),
            Parameter("prior", float, None, "weight of the residual's prior; only where it is singular", least=0),
            Parameter(
                "adapt", str, "none", "to unlabelled vectors of another domain, as Kaldi does", ("none", "kaldi")
            ),
            Parameter("convention", str, "book", "the book's minimum divergence, or SIDEKIT 1.3.2's", _CONVENTIONS),
        ),
        ("speakers", "sessions"),
        _plda,
        Scorer(Plda, score_plda, lambda model: model.dimension),
        limit="dimensions",
    ),
    Step(
        "svm",
        "scorer",
        "a support vector machine for each model, against the training vectors",
        (
            Parameter("cost", float, None, "penalty C; 1 / mean of the kernel's diagonal by default", least=0),
            Parameter("tolerance", float, 1e-3, "of the solver", least=0),
            Parameter("balanced", bool, False, "weigh both sides the same"),
        ),
        fit=_svm,
        scorer=Scorer(SvmBackground, score_svm, lambda model: model.vectors.shape[1]),
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
            Parameter("prior", float, 0.5, "of a target, that it is trained for", least=1e-6, most=1 - 1e-6),
            Parameter("enrolled", int, 1, "vectors of a model in these trials", least=1),
            Parameter("folds", int, 5, "parts that the speakers are dealt into", least=2),
            Parameter("ridge", float, 0.0, "penalty on the weight", least=0),
        ),
        ("speakers", "sessions"),
    ),
)


def step_named(name: str) -> Step | None:
    """Return the row of a name; None where there is none."""
    return next((step for step in STEPS if step.name == name), None)
