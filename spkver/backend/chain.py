"""A chain of steps as data: its text, and whether it can be trained.

Three ways to write the same chain:

* short: ``centre,whiten,length,lda:150,length,plda:100``; what follows the colon is the step's first parameter;
* YAML: ``[centre, whiten, length, lda: 150, length, plda: {rank: 100}]``;
* Python: ``["centre", "whiten", "length", {"lda": 150}, "length", {"plda": {"rank": 100}}]``.

Maps of vectors come first, then one scorer (cosine where none is named), then normalisation by a cohort, then
calibration. `spkver.backend.STEPS` is the table of steps.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import load_yaml, read_yaml_text
from spkver.backend.chain_steps import NEEDS, STEPS, Need, Parameter, Step, step_named

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
