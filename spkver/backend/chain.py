"""A chain of steps as data: its text, and whether it can be trained.

Three ways to write the same chain:

* short: ``centre,whiten,length,lda:150,length,plda:100``; what follows the colon is the step's first parameter;
* YAML: ``[centre, whiten, length, lda: 150, length, plda: {rank: 100}]``;
* Python: ``["centre", "whiten", "length", {"lda": 150}, "length", {"plda": {"rank": 100}}]``.

Maps of vectors come first, then one scorer (cosine where none is named), then normalisation by a cohort, then
calibration. `spkver.backend.STEPS` is the table of steps.

**The table of steps that a chain is made of: what each is called, takes, needs and does.**

Everything that shows steps is made from the rows: parsing and checks of chains, their file,
help texts, scikit-learn's estimators and docs/backends.md.

**A trained chain: vectors in, scores out.**

**Training of a chain: each step on the vectors as the steps before it leave them; calibration on held-out speakers.**
"""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Affine, Moments, apply_affine, cohort_moments, normalise, train_affine
from evaluation.embeddings import Embeddings, check_norms, row_norms
from evaluation.trials import Scores, Trials, factorise
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import fingerprint, load_yaml, read_yaml_text
from spkbase.showing import one_line
from spkbase.work import Work, chunk_bounds, one_blas_thread
from spkver.backend.kaldi_plda import LENGTHS
from spkver.backend.nap import fit_nap
from spkver.backend.plda import SESSIONS_AS, Sessions, fit_two_covariance
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
    apply_maps,
    class_means,
    fit_centring,
    fit_coral,
    fit_efr,
    fit_lda,
    fit_sphnorm,
    fit_wccn,
    fit_whitening,
)

logger = logging.getLogger(__name__)

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


_ROLES = ("map", "scorer", "norm", "calibration")
_ROLE_NAMES = {
    "map": "a map of vectors",
    "scorer": "a scorer",
    "norm": "a normalisation",
    "calibration": "a calibration",
}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_LONGEST = 100
_REMEDY = "such as centre,whiten,length,lda:150,length,plda:100"

Chain = tuple["ChosenStep", ...]
Spec = str | Sequence[str | Mapping[str, Any]] | Chain


@dataclass(frozen=True)
class ChosenStep:
    """A step of a chain.

    Attributes
    ----------
    step : Step
        Its row in the table.
    values : mapping of str to object
        Value of each of its parameters.
    """

    step: Step
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.step.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs of the training vectors."""
        is_adapted = "adapt" in (self.values.get("on"), self.values.get("cohort"))
        is_adapted = is_adapted or self.values.get("adapt", "none") != "none"
        return self.step.needs + (("adapt",) if is_adapted else ())


@dataclass(frozen=True)
class Facts:
    """What decides whether a chain can be trained on vectors.

    Attributes
    ----------
    dimension : int
    n_speakers : int
    most_vectors : int
        Of a speaker.
    is_adapted : bool
        There are vectors to adapt to.
    """

    dimension: int
    n_speakers: int
    most_vectors: int
    is_adapted: bool = False

    @classmethod
    def of(cls, dimension: int, codes: NDArray[np.integer], is_adapted: bool = False) -> Facts:
        """Return those of vectors by the speakers' codes (N,)."""
        counts = np.bincount(codes)
        return cls(dimension, len(counts), int(counts.max()), is_adapted)


def read_chain(text: str | Path) -> Chain:
    """Return the chain of a text as users write it, or of a YAML file where it names one (``*.yaml``, ``*.yml``).

    Raises
    ------
    ConfigError
        As `parse_chain`, with the file.
    """
    if not str(text).endswith((".yaml", ".yml")):
        return parse_chain(str(text))
    try:
        return parse_chain(_from_yaml(read_yaml_text(text)))
    except ConfigError as error:
        raise ConfigError(error.text, file=text, remedy=error.remedy) from error


def parse_chain(spec: Spec) -> Chain:
    """Return the steps of a chain, each with the values of all its parameters.

    Parameters
    ----------
    spec : str, or sequence of str and mappings
        See the module.

    Returns
    -------
    tuple of ChosenStep
        With the scorer cosine where none was named.

    Raises
    ------
    ConfigError
        With all problems at once: unknown steps and parameters, values out of range, an impossible order.

    Examples
    --------
    >>> format_chain(parse_chain("centre,length,lda:150,snorm"))
    '[centre, length, lda: 150, cosine, snorm]'
    >>> parse_chain("centre,whitten")
    Traceback (most recent call last):
      ...
    spkbase.errors.ConfigError: step 2 of the chain: there is no step 'whitten': did you mean whiten?
    """
    items = _items(spec)
    problems = Problems()
    chain: list[ChosenStep] = []
    for number, item in enumerate(items, 1):
        try:
            chain.append(item if isinstance(item, ChosenStep) else _chosen(item))
        except ConfigError as error:
            problems.note(ConfigError(f"step {number} of the chain: {error.text}", remedy=error.remedy))
    if not problems.errors:
        _check_order(chain, problems)
    _raise(problems)
    if step_of(tuple(chain), "scorer") is None:
        place = sum(chosen.step.role == "map" for chosen in chain)
        chain.insert(place, _chosen("cosine"))
    return tuple(chain)


def format_chain(chain: Chain) -> str:
    """Return the text of a chain in YAML, without the values that parameters have by default."""
    return "[" + ", ".join(map(_text, chain)) + "]"


def plain_chain(chain: Chain) -> list[Any]:
    """Return a chain as lists, mappings, texts and numbers, with all values: what files hold."""
    return [{chosen.name: dict(chosen.values)} for chosen in chain]


def step_of(chain: Chain, role: str) -> ChosenStep | None:
    """Return the one step of a role other than "map"; None where there is none."""
    return next((chosen for chosen in chain if chosen.step.role == role), None)


def check_chain(chain: Chain, facts: Facts) -> None:
    """Raise ConfigError, with all problems, if vectors of these facts cannot train a chain."""
    problems = Problems()
    there = {"speakers": facts.n_speakers > 1, "sessions": facts.most_vectors > 1, "adapt": facts.is_adapted}
    got = {
        "speakers": f"got {facts.n_speakers}",
        "sessions": "each has one: name the speakers of the vectors",
        "adapt": "none were given",
    }
    dimension = facts.dimension
    for chosen in chain:
        name, parameters = chosen.name, chosen.step.parameters
        missing: list[Need] = [need for need in chosen.needs if not there[need]]
        for need in missing:
            problems.add(f"{name} needs {NEEDS[need]}, {got[need]}")
        if not chosen.step.limit or missing:
            continue
        limit = dimension if chosen.step.limit == "dimensions" else min(dimension, facts.n_speakers - 1)
        wanted = chosen.values[parameters[0].name]
        if wanted is not None and wanted > limit:
            why = f"{dimension} dimensions" + f" and {facts.n_speakers} speakers" * (chosen.step.limit == "speakers")
            problems.add(f"{name}.{parameters[0].name} is {wanted}, but {why} allow {limit} at most", remedy="lower it")
        if chosen.step.role == "map":
            dimension = min(limit, wanted or limit)
    if facts.is_adapted and not any("adapt" in chosen.needs for chosen in chain):
        ways = "add coral, 'centre: adapt' or 'plda: {adapt: kaldi}'"
        problems.add("there are vectors to adapt to, but no step uses them", remedy=ways)
    calibrate = step_of(chain, "calibration")
    if calibrate and facts.n_speakers < 2 * calibrate.values["folds"]:
        text = f"calibrate deals {facts.n_speakers} speakers into {calibrate.values['folds']} parts: each needs two"
        problems.add(text, remedy="lower calibrate.folds, or give more speakers")
    if calibrate and there["sessions"] and facts.most_vectors <= calibrate.values["enrolled"]:
        text = f"calibrate.enrolled is {calibrate.values['enrolled']}, but no speaker has more vectors: none is tested"
        problems.add(text, remedy="lower it")
    _raise(problems)


def _raise(problems: Problems) -> None:
    try:
        problems.raise_if_any()
    except ConfigError:
        raise
    except DataError as error:
        raise ConfigError(error.text, remedy=error.remedy) from error


def _items(spec: Spec) -> list[Any]:
    if isinstance(spec, str):
        text = spec.strip()
        if text.startswith(("[", "{", "-")) or "\n" in text:
            spec = _from_yaml(text)
        else:
            spec = [part.strip() for part in text.split(",")] if text else []
    if isinstance(spec, Mapping) or not isinstance(spec, Sequence):
        raise ConfigError(f"expected a list of steps, got {spec!r:.80}", remedy=_REMEDY)
    if not spec:
        raise ConfigError("the chain is empty", remedy=_REMEDY)
    if len(spec) > _LONGEST:
        raise ConfigError(f"expected a chain of at most {_LONGEST} steps, got {len(spec)}", remedy=_REMEDY)
    return list(spec)


def _from_yaml(text: str) -> Any:
    return load_yaml(text)[0]


def _chosen(item: Any) -> ChosenStep:
    """A step and its values, from ``name``, ``name:value`` or a mapping of the name to a value or to values."""
    value: Any = None
    if isinstance(item, str):
        item, colon, text = item.partition(":")
        value = load_yaml(text)[0] if colon else None
        if colon and value is None:
            raise ConfigError(f"'{item}:' has no value")
    elif isinstance(item, Mapping) and len(item) == 1:
        item, value = next(iter(item.items()))
    name = item.strip() if isinstance(item, str) else item
    step = step_named(name) if isinstance(name, str) else None
    if step is None:
        raise _no_step(name)
    parameters = {parameter.name: parameter for parameter in step.parameters}
    if value is not None and not isinstance(value, Mapping):
        if not parameters:
            raise ConfigError(f"{name} takes no value, got {value!r:.60}")
        value = {step.parameters[0].name: value}
    given = dict(value or {})
    for key in given:
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise ConfigError(f"{name} has no parameter {key!r:.60}: it has {known}")
    values = {key: _value(parameter, given[key], name) if key in given else parameter.default
              for key, parameter in parameters.items()}  # fmt: skip
    return ChosenStep(step, values)


def _no_step(name: Any) -> ConfigError:
    if not isinstance(name, str):
        return ConfigError(f"expected the name of a step or one name with its values, got {name!r:.60}")
    names = [step.name for step in STEPS]
    near = difflib.get_close_matches(name, names, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return ConfigError(f"there is no step {name!r:.60}: {hint}")


def _value(parameter: Parameter, value: Any, step: str) -> Any:
    """A value in the type of its parameter."""
    if value is None and parameter.default is None:
        return None
    kind = parameter.kind
    if kind is float and isinstance(value, str):
        with suppress(ValueError):  # YAML 1.1 takes 1e-3 for a text
            value = float(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
        value = float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    known = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if kind is float and known:
        known = math.isfinite(value)
    expected = _KINDS[kind]
    if parameter.choices:
        known, expected = known and value in parameter.choices, "one of " + ", ".join(parameter.choices)
    if parameter.least is not None:
        high = math.inf if parameter.most is None else parameter.most
        known = known and parameter.least <= value <= high
        expected += f" from {parameter.least:g}" + f" to {high:g}" * (high < math.inf)
    if not known:
        raise ConfigError(f"{step}.{parameter.name} is {value!r:.60}: expected {expected}")
    return value


def _check_order(chain: Sequence[ChosenStep], problems: Problems) -> None:
    last = chain[0]
    for chosen in chain[1:]:
        role, before = chosen.step.role, last.step.role
        if role == "map" == before or _ROLES.index(before) < _ROLES.index(role):
            last = chosen
            continue
        text = f"{chosen.name}, {_ROLE_NAMES[role]}, cannot stand after {last.name}, {_ROLE_NAMES[before]}"
        problems.add(text, remedy="the order is: maps of vectors, one scorer, snorm, calibrate")
    scorer = step_of(tuple(chain), "scorer")
    if scorer and scorer.step.scorer and scorer.step.scorer.of_list and step_of(tuple(chain), "norm"):
        problems.add(f"snorm cannot stand after {scorer.name}: scores with a cohort would be those of another list")


def _text(chosen: ChosenStep) -> str:
    values = {
        parameter.name: chosen.values[parameter.name]
        for parameter in chosen.step.parameters
        if chosen.values[parameter.name] != parameter.default
    }
    if not values:
        return chosen.name
    shown = {key: str(value).lower() if isinstance(value, bool) else f"{value}" for key, value in values.items()}
    if list(shown) == [chosen.step.parameters[0].name]:
        return f"{chosen.name}: {next(iter(shown.values()))}"
    return f"{chosen.name}: {{{', '.join(f'{key}: {text}' for key, text in shown.items())}}}"


_PAIRS = 1 << 22  # scores with a cohort that are held at once


@dataclass(frozen=True, eq=False, repr=False)
class Backend:
    """A trained chain.

    Attributes
    ----------
    chain : tuple of ChosenStep
    maps : tuple of AffineMap, LengthNorm or Projection
        What is done to each vector.
    model : object
        What the scorer has learnt.
    cohort : ndarray of float64 of shape (K, R), optional
        Mapped vectors that scores are normalised by.
    calibration : Affine, optional
    facts : mapping
        `dimension` of the vectors that enter; `vectors` and `speakers`, how many it was trained on; `made_from`, the
        digest of these, of the chain and of the seed.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `speaker_digests`; empty where they are not known.
    """

    chain: Chain
    maps: tuple[Map, ...]
    model: Any
    cohort: NDArray[np.float64] | None
    calibration: Affine | None
    facts: dict[str, Any]
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __repr__(self) -> str:
        return f"Backend({format_chain(self.chain)}, {self.facts['dimension']} dimensions, {self.origin})"

    @property
    def origin(self) -> str:
        """What it was made of, in words."""
        if not self.facts["vectors"]:
            return "models of Kaldi"
        return f"trained on {self.facts['vectors']} vectors of {self.facts['speakers']} speakers"

    @property
    def adapts_to_list(self) -> str:
        """What of a list of trials a score depends on, so that it belongs with no score of another list; or nothing."""
        scorer = step_of(self.chain, "scorer")
        return scorer.step.scorer.of_list if scorer is not None and scorer.step.scorer is not None else ""

    def transform(self, vectors: NDArray[np.floating], *, names: NDArray | None = None) -> NDArray[np.float64]:
        """Return vectors (n, R) as the scorer sees them, shape (n, K).

        Parameters
        ----------
        vectors : ndarray of shape (n, R)
        names : ndarray of str of shape (n,), optional
            For errors; row numbers by default.

        Raises
        ------
        DataError
            If they have other dimensions, one is not finite or 0, or becomes 0 before a length norm.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.facts["dimension"]:
            text = f"expected vectors of {self.facts['dimension']} dimensions, got shape {vectors.shape}"
            raise DataError(text, remedy="use the extractor that the backend was trained with")
        names = np.arange(len(vectors)).astype(object) if names is None else names
        check_norms(row_norms(vectors), names)
        return apply_maps(self.maps, vectors, names=names)

    @one_blas_thread()
    def score(self, enrol: Embeddings, test: Embeddings, trials: Trials) -> Scores:
        """Return the score of each trial of a list.

        Parameters
        ----------
        enrol, test : Embeddings
            Of the enrolled and of the tested utterances.
        trials : Trials
            A model is an enrolled speaker, with all its vectors, or else the id of one enrolled utterance; a segment is
            the id of a tested utterance.

        Returns
        -------
        Scores
            In the order of the trials.

        Raises
        ------
        DataError
            If a model or a segment has no vector, or as `transform`.
        """
        used, models = np.unique(trials.models, return_inverse=True)
        tested, segments = np.unique(trials.segments, return_inverse=True)
        model_ids, segment_ids = trials.model_ids[used], trials.segment_ids[tested]
        problems = Problems()
        rows, codes = _sessions_of(model_ids, enrol, problems)
        test_rows = _rows_of(segment_ids, test, problems)
        problems.raise_if_any()
        with errors_of(enrol):
            sessions = Sessions(self.transform(enrol.vectors[rows], names=enrol.ids[rows]), codes)
        with errors_of(test):
            alone = self.adapts_to_list == "models"  # then no bit of a score may depend on what else is tested
            parts = np.split(test_rows, len(test_rows)) if alone else [test_rows]
            tests = np.concatenate([self.transform(test.vectors[rows], names=test.ids[rows]) for rows in parts])
        listed = Trials.trusted(
            model_ids=model_ids, segment_ids=segment_ids, models=models.astype(np.int32),
            segments=segments.astype(np.int32),
        )  # fmt: skip
        values = self.score_vectors(sessions, tests, listed).values
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)

    def score_vectors(self, sessions: Sessions, tests: NDArray[np.float64], trials: Trials) -> Scores:
        """Return scores of mapped vectors; the codes of the trials are those of the models and the rows of tests."""
        scorer = step_of(self.chain, "scorer")
        if scorer is not None and scorer.step.scorer is not None and scorer.step.scorer.needs_direction:
            check_norms(row_norms(sessions.means), trials.model_ids, what="mapped model")
            check_norms(row_norms(tests), trials.segment_ids, what="mapped vector")
        values = self._raw(sessions, tests, trials.models, trials.segments)
        scores = Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)
        if self.cohort is not None:
            norm = step_of(self.chain, "norm")
            assert norm is not None
            top = norm.values["top"]
            models = self._moments_of_models(sessions, trials.model_ids, top)
            scores = normalise(scores, models=models, segments=self._moments_of_tests(tests, trials.segment_ids, top))
        if self.calibration is not None:
            scores = replace(scores, values=apply_affine(self.calibration, scores.values))
        return scores

    def _raw(self, sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray) -> NDArray[np.float64]:
        chosen = step_of(self.chain, "scorer")
        assert chosen is not None
        assert chosen.step.scorer is not None
        return chosen.step.scorer.score(self.model, sessions, tests, models, segments, chosen.values)

    def _moments_of_models(self, sessions: Sessions, ids: NDArray, top: int | None) -> Moments:
        """Mean and deviation of the scores of each model with the cohort."""
        assert self.cohort is not None
        moments = []
        for start, stop in chunk_bounds(len(ids), max(1, _PAIRS // len(self.cohort))):
            rows = np.flatnonzero((sessions.models >= start) & (sessions.models < stop))
            some = Sessions(sessions.vectors[rows], sessions.models[rows] - start)
            pairs = np.divmod(np.arange((stop - start) * len(self.cohort)), len(self.cohort))
            scores = self._raw(some, self.cohort, *pairs).reshape(stop - start, -1)
            moments.append(cohort_moments(scores, ids[start:stop], top=top))
        return _joined(moments)

    def _moments_of_tests(self, tests: NDArray, ids: NDArray, top: int | None) -> Moments:
        """The same of each tested vector."""
        assert self.cohort is not None
        cohort = Sessions(self.cohort, np.arange(len(self.cohort)))
        moments = []
        for start, stop in chunk_bounds(len(ids), max(1, _PAIRS // len(self.cohort))):
            pairs = np.divmod(np.arange((stop - start) * len(self.cohort)), stop - start)
            scores = self._raw(cohort, tests[start:stop], *pairs).reshape(-1, stop - start)
            moments.append(cohort_moments(scores.T, ids[start:stop], top=top))
        return _joined(moments)


def speaker_digests(speakers: Iterable[str]) -> NDArray[np.uint64]:
    """Return 64 bits of the SHA-256 of each speaker's id, sorted by id: what was trained need not hold names."""
    return np.array([int(fingerprint(name)[:16], 16) for name in sorted(set(speakers))], np.uint64)


def warn_of_trained(heard: NDArray[np.uint64], speakers: Iterable[str]) -> None:
    """Warn if speakers of trials are among those that a backend or an attacker was trained on, by their digests."""
    names = sorted(set(speakers))
    if known := [names[place] for place in np.flatnonzero(np.isin(speaker_digests(names), heard))]:
        text = "%d of %d speakers of the trials were trained on (%s): errors are too few, unless the ids name others; "
        text += "train on others"
        logger.warning(text, len(known), len(names), few(known))


def _joined(moments: list[Moments]) -> Moments:
    return np.concatenate([mean for mean, _ in moments]), np.concatenate([deviation for _, deviation in moments])


def _sessions_of(model_ids: NDArray, enrol: Embeddings, problems: Problems) -> tuple[NDArray, NDArray]:
    """Rows of the enrolled vectors of each model, and the model's code of each row."""
    names, codes = factorise(enrol.speakers)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    speakers = {name: order[starts[place] : starts[place + 1]] for place, name in enumerate(names.tolist())}
    utterances = {name: np.array([row]) for row, name in enumerate(enrol.ids.tolist())}
    rows = [speakers[name] if name in speakers else utterances.get(name) for name in model_ids.tolist()]
    absent = [name for name, of_model in zip(model_ids, rows, strict=True) if of_model is None]
    _complain("models", absent, enrol, problems)
    known = [of_model for of_model in rows if of_model is not None]
    counts = [len(of_model) for of_model in known]
    return np.concatenate([np.zeros(0, np.int64), *known]), np.repeat(np.arange(len(known)), counts)


def _rows_of(segment_ids: NDArray, test: Embeddings, problems: Problems) -> NDArray[np.int64]:
    rows = {name: row for row, name in enumerate(test.ids.tolist())}
    _complain("segments", [name for name in segment_ids.tolist() if name not in rows], test, problems)
    return np.array([rows.get(name, 0) for name in segment_ids.tolist()], np.int64)


def _complain(what: str, absent: list[str], within: Embeddings, problems: Problems) -> None:
    if absent:
        text, file = f"{len(absent)} {what} without a vector: {few(absent)}", within.source or None
        problems.add(text, file=file, remedy="extract them, or leave their trials out")


@contextmanager
def errors_of(embeddings: Embeddings) -> Iterator[None]:
    """Put the file of vectors before errors that have none."""
    try:
        yield
    except ConfigError:
        raise
    except DataError as error:
        if error.file is not None or not embeddings.source:
            raise
        raise DataError(error.text, file=embeddings.source, remedy=error.remedy) from error


_ENROLLED, _TESTED = 300, 3  # speakers of a fold, and tests of a speaker, that calibration takes at most


@one_blas_thread()
def train_chain(embeddings: Embeddings, spec: Spec, *, adapt: Embeddings | None = None, seed: int = 0) -> Backend:
    """Train a chain on vectors with speakers.

    Parameters
    ----------
    embeddings : Embeddings
        They are held in float64.
    spec : str, sequence, or tuple of ChosenStep
        The chain, see `spkver.backend.parse_chain`.
    adapt : Embeddings, optional
        Vectors of the domain that will be tested; their speakers are not used.
    seed : int
        Deals the speakers for calibration.

    Returns
    -------
    Backend

    Raises
    ------
    ConfigError
        If the chain is none, or these vectors cannot train it; before anything is trained.
    DataError
        If a vector is not finite or 0, dimensions differ, or a step cannot be trained.

    Examples
    --------
    >>> import numpy as np
    >>> from evaluation.embeddings import Embeddings
    >>> from evaluation.trials import Trials
    >>> draw = np.random.default_rng(0)
    >>> speakers = [f"s{number // 5}" for number in range(50)]
    >>> vectors = np.repeat(draw.normal(size=(10, 4)), 5, axis=0) + 0.3 * draw.normal(size=(50, 4))
    >>> training = Embeddings([f"u{number}" for number in range(50)], speakers, vectors)
    >>> backend = train_chain(training, "centre,whiten,length,lda:3,cosine")
    >>> backend
    Backend([centre, whiten, length, lda: 3, cosine], 4 dimensions, trained on 50 vectors of 10 speakers)
    >>> backend.score(training, training, Trials.from_ids(["s0", "s0"], ["u1", "u17"])).values.round(2)
    array([ 0.9 , -0.96])
    """
    chain = parse_chain(spec)
    embeddings.norms()
    dimension = embeddings.vectors.shape[1]
    if adapt is not None:
        adapt.norms()
        if adapt.vectors.shape[1] != dimension:
            text = f"expected vectors to adapt to of {dimension} dimensions, got {adapt.vectors.shape[1]}"
            raise DataError(text, file=adapt.source or None, remedy="use one extractor for both")
    names, codes = factorise(embeddings.speakers)
    facts = Facts.of(dimension, codes, adapt is not None)
    check_chain(chain, facts)
    calibrate = step_of(chain, "calibration")
    if calibrate is not None:
        left = facts.n_speakers - -(-facts.n_speakers // calibrate.values["folds"])
        check_chain(chain[:-1], replace(facts, n_speakers=left))
    training = Training(
        np.asarray(embeddings.vectors, np.float64),
        codes,
        None if adapt is None else np.asarray(adapt.vectors, np.float64),
    )
    digest = fingerprint(
        plain_chain(chain), embeddings.ids, embeddings.speakers, np.asarray(embeddings.vectors),
        None if adapt is None else np.asarray(adapt.vectors), seed,
    )  # fmt: skip
    made = {"dimension": dimension, "vectors": len(embeddings), "speakers": len(names), "made_from": digest}
    with errors_of(embeddings):
        backend = replace(_trained(chain, training, made), heard=speaker_digests(names))
        if calibrate is None:
            return backend
        return replace(backend, calibration=_calibration(chain, calibrate, training, seed))


def _trained(chain: Chain, training: Training, facts: dict[str, Any]) -> Backend:
    """Train all but the calibration."""
    maps: list[Map] = []
    model, cohort = None, None
    for number, chosen in enumerate(chain, 1):
        with _named(number, chosen):
            if chosen.step.role == "map":
                assert chosen.step.fit is not None
                found = chosen.step.fit(training, chosen.values)
                training = _mapped(training, found, training_only=chosen.step.training_only)
                maps += () if chosen.step.training_only else found
            elif chosen.step.role == "scorer":
                assert chosen.step.fit is not None
                model = chosen.step.fit(training, chosen.values)
            elif chosen.step.role == "norm":
                cohort = _cohort(training, chosen.values["cohort"])
    return Backend(chain, tuple(maps), model, cohort, None, facts)


def _cohort(training: Training, which: str) -> NDArray[np.float64]:
    if which == "adapt" and training.adapt is not None:
        return training.adapt
    return class_means(training.vectors, training.codes) if which == "speakers" else training.vectors


def _mapped(training: Training, maps: tuple[Map, ...], *, training_only: bool) -> Training:
    adapt = training.adapt
    if adapt is not None and not training_only:
        adapt = apply_maps(maps, adapt)
    return Training(apply_maps(maps, training.vectors), training.codes, adapt)


@contextmanager
def _named(number: int, chosen: ChosenStep) -> Iterator[None]:
    """Put the step before errors."""
    try:
        yield
    except DataError as error:
        text = f"step {number} of the chain, {chosen.name}: {error.text}"
        raise type(error)(text, file=error.file, line=error.line, remedy=error.remedy) from error


def _calibration(chain: Chain, calibrate: ChosenStep, training: Training, seed: int) -> Affine:
    """Train the calibration on trials of speakers that the rest of the chain was not trained on.

    Speakers are dealt into folds. For each fold the chain is trained on the others; of at most 300 of its speakers with
    enough vectors, the first (or first few) are a model and the next three at most are tested, all models against all.
    """
    n_speakers, n_folds = int(training.codes.max()) + 1, calibrate.values["folds"]
    fold = np.empty(n_speakers, np.int64)
    fold[np.random.default_rng(seed).permutation(n_speakers)] = np.arange(n_speakers) % n_folds
    target, nontarget = [], []
    for number in range(n_folds):
        held = fold[training.codes] == number
        others = np.unique(training.codes[~held], return_inverse=True)[1]
        facts = {"dimension": training.vectors.shape[1], "vectors": len(others), "speakers": int(others.max()) + 1}
        part = Training(training.vectors[~held], others, training.adapt)
        backend = _trained(chain[:-1], part, facts)
        scores, is_target = _scores_of_held(
            backend, training.vectors[held], training.codes[held], calibrate.values["enrolled"]
        )
        target.append(scores[is_target])
        nontarget.append(scores[~is_target])
    values = calibrate.values
    try:
        return train_affine(
            np.concatenate(target), np.concatenate(nontarget), prior=values["prior"], ridge=values["ridge"]
        )
    except DataError as error:
        text = f"calibrate: {error.text}"
        raise DataError(text, remedy=f"{error.remedy}, such as 'calibrate: {{ridge: 0.01}}'") from error


def _scores_of_held(
    backend: Backend, vectors: NDArray[np.float64], codes: NDArray, n_enrolled: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of all trials of a fold, see `_calibration`, and which are of one speaker."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) > 0])
    counts = np.diff(np.r_[starts, len(order)])
    chosen = np.flatnonzero(counts > n_enrolled)[:_ENROLLED]
    if not len(chosen):
        return np.zeros(0), np.zeros(0, bool)
    enrolled = order[(starts[chosen, None] + np.arange(n_enrolled)).ravel()]
    firsts = starts[chosen] + n_enrolled
    ends = np.minimum(starts[chosen] + counts[chosen], firsts + _TESTED)
    tested = np.concatenate([order[first:end] for first, end in zip(firsts, ends, strict=True)])
    sessions = Sessions(backend.transform(vectors[enrolled]), np.arange(len(enrolled)) // n_enrolled)
    pairs = np.divmod(np.arange(len(chosen) * len(tested)), len(tested))
    ids = [np.array([str(number) for number in range(size)], object) for size in (len(chosen), len(tested))]
    trials = Trials(ids[0], ids[1], *pairs)
    scores = backend.score_vectors(sessions, backend.transform(vectors[tested]), trials).values
    return scores, codes[enrolled[::n_enrolled]][pairs[0]] == codes[tested][pairs[1]]
