"""The attackers that are known by name beside the classic presets: what each is, and how it is made of its settings.

An entry of the configuration's list ``attackers`` is the name of a preset of `PRESETS`, a name of `CATALOGUE`, what
comes in by a door (`DOORS`), or a name of one's own whose settings name one of these as ``preset``.

To add an attacker: a function ``make(name, settings, context)``, which gives a `Wanted`, and a row below.

**The doors for attackers of others: how each is named, and what opens it.**

============================================ ==========================================================================
``MODULE:FUNCTION``, ``FILE.py:FUNCTION``    a Python function (`spkver.attackers.own`)
``command:COMMAND``                          a shell command with places (`spkver.attackers.own`)
``scores:FOLDER``                            scores made elsewhere (`spkver.attackers.ready`)
``vectors:FOLDER``                           embeddings made elsewhere (`spkver.attackers.ready`)
``adapted:FOLDER``                           the same, adapted to the trials
============================================ ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evaluation.reports import LEVELS
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.aligned_attacker import wanted_aligned
from spkver.attackers.config import PRESETS, Context, Settings
from spkver.attackers.content import wanted_content
from spkver.attackers.fusion import wanted_fusion
from spkver.attackers.mixture_sources import wanted_ivectors, wanted_supervectors
from spkver.attackers.own import OwnCommand, OwnFunction, own_function
from spkver.attackers.protocol import Attacker, Wanted
from spkver.attackers.ready import ReadyScores, ReadyVectors
from spkver.attackers.undoing import wanted_undone
from spkver.attackers.vector_attacker import (
    ADAPTING,
    network_is_absent,
    wanted_adapted,
    wanted_extractor,
    wanted_network,
    wanted_onnx,
)

Make = Callable[[str, Settings, Context], Wanted]


def _always(preset: str) -> str:
    """Say nothing: what needs no file of others can run anywhere."""
    return ""


def _is_absent(preset: str) -> str:
    return network_is_absent(preset.partition("-")[0])


@one_line
@dataclass(frozen=True)
class Row:
    """An attacker that is known by name.

    Attributes
    ----------
    form : str
        How it is written; what may be left out is in brackets.
    summary : str
        What it is, for help texts and documents.
    make : callable
        Of its name, its settings (without ``preset``) and the context; ConfigError where they are wrong.
    is_absent : callable
        Says of its preset why it cannot run on this machine, or nothing where it can.
    is_network : bool
        Whether it hears by a neural network.
    """

    form: str
    summary: str
    make: Make
    is_absent: Callable[[str], str] = _always
    is_network: bool = False

    @property
    def takes_argument(self) -> bool:
        """Whether something may follow a colon."""
        return ":" in self.form


_NETWORKS = {"campplus": "CAM++", "ge2e": "GE2E"}


def _by_networks(ending: str, words: str, make: Make) -> dict[str, Row]:
    """Rows of the networks with something on top."""
    return {
        f"{base}-{ending}": Row(f"{base}-{ending}", f"{name} {words}", make, _is_absent, is_network=True)
        for base, name in _NETWORKS.items()
    }


def _that_adapt(ending: str, words: str) -> dict[str, Row]:
    """Rows of attackers by vectors that adapt, and of the same on undone speech."""
    made = partial(wanted_adapted, ending=ending)
    classic = {
        f"ivector-{ending}": (f"i-vectors {words}", made(wanted_ivectors)),
        f"supervector-{ending}": (f"supervectors {words}", made(wanted_supervectors)),
        f"supervector-{ending}-undone": (
            f"supervectors of undone speech, {words}",
            wanted_undone(made(wanted_supervectors)),
        ),
    }
    return {
        **_by_networks(ending, words, made(wanted_network)),
        **{name: Row(name, *row) for name, row in classic.items()},
        **_by_networks(f"{ending}-undone", f"of undone speech, {words}", wanted_undone(made(wanted_network))),
    }


CATALOGUE: dict[str, Row] = {
    # --- by vectors: an extractor and a backend that is chosen and trained on the background ---
    "campplus": Row(
        "campplus[:WEIGHTS]", "vectors of CAM++, a network of 2023", wanted_network, network_is_absent, is_network=True
    ),
    "ge2e": Row(
        "ge2e[:WEIGHTS]", "vectors of GE2E, a network of 2018", wanted_network, network_is_absent, is_network=True
    ),
    "onnx": Row("onnx:FILE", "vectors of a network in an ONNX file", wanted_onnx, is_network=True),
    "extractor": Row("extractor:EXTRACTOR", "vectors of what `spkver embed --extractor` takes", wanted_extractor),
    "ivector": Row("ivector", "i-vectors, trained on the background", wanted_ivectors),
    # --- that undo the anonymisation ---
    **{f"{base}-undone": Row(f"{base}-undone", f"{base} on undone speech", wanted_undone()) for base in PRESETS},
    **_by_networks("undone", "on undone speech", wanted_undone(wanted_network)),
    "ivector-undone": Row("ivector-undone", "i-vectors of undone speech", wanted_undone(wanted_ivectors)),
    **_by_networks("aligned", "after a map to original vectors", wanted_aligned(wanted_network)),
    "ivector-aligned": Row(
        "ivector-aligned", "i-vectors after a map to original ones", wanted_aligned(wanted_ivectors)
    ),
    # --- that adapt to the trials at hand ---
    **_that_adapt("adapted", "adapted to the trials at hand"),
    **_that_adapt("single-test", "adapted to the enrolled speakers alone"),
    # --- by something else than the voice ---
    "prosody": Row("prosody", "pitch, rhythm and pauses", wanted_network),
    "content": Row("content", "words said, where there are transcripts", wanted_content),
    "session": Row("session", "noise and channel, where nobody speaks", wanted_network),
    # --- of others together ---
    "fusion": Row("fusion", "all others together, weighted by what they score on the background", wanted_fusion),
}

DEFAULT: tuple[str, ...] = (
    *("campplus-adapted", "supervector-adapted", "ivector-adapted"),
    *("campplus-single-test", "supervector-single-test"),
    *("campplus", "gmm-svm-cms", "gmm-svm", "supervector-cosine", "ivector"),
    *("campplus-adapted-undone", "supervector-adapted-undone", "campplus-undone", "campplus-aligned"),
    *("prosody", "content", "session"),
    "fusion",  # of those before it
)
"""Those that run where none are named and they can: voices, first those that adapt to the trials; the same with the
anonymisation undone; cues beside the voice, each about from the strongest to the weakest; then all together. Of several
of a kind, those that were ahead on some speech."""

_STRONGER, _WEAKER = "campplus", "ge2e"
"""Of the second network, which was never ahead of the first, the attackers run where the first has no weights."""

_ALONE: dict[str, float] = {
    # a quarter each of "attackers and scores" in the timings of: spkver voiceprivacy --jobs 2, these four alone
    "gmm-ubm": 6,
    "gmm-svm": 6,
    "gmm-svm-cms": 6,
    "supervector-cosine": 6,
    # user time of: spkver embed DIR --extractor campplus --jobs 1 --output v.h5 (and others), 4.6 minutes of it
    "campplus": 70,
    "ge2e": 40,
    "prosody": 20,
    "session": 15,
    "content": 1,
    # the same of a run with it alone, on a machine that did other work too: less exact
    "ivector": 30,
}
# "anonymisation" in the timings of the same run: to turn the poles back is as much work as to turn them
_UNDOING = 15
_ADAPTING = 2
COSTS: dict[str, float] = {
    **_ALONE,
    **{f"{base}-undone": _ALONE[base] + _UNDOING for base in (*PRESETS, *_NETWORKS, "ivector")},
    **{f"{base}-{ending}": _ADAPTING for base in (*_NETWORKS, "ivector", "supervector") for ending in ADAPTING},
    **{f"{base}-{ending}-undone": _ADAPTING for base in (*_NETWORKS, "supervector") for ending in ADAPTING},
}
"""Seconds of one core for an hour of speech, training sets and their draws included; as measured on one machine, and
others are faster or slower. Attackers that adapt use vectors that others have: of theirs see `cost_of`."""


def cost_of(name: str, others: Collection[str]) -> float | None:
    """Return the seconds of one core for an hour of speech of an attacker beside others, by the names of their rows.

    Examples
    --------
    >>> [cost_of("ivector-adapted", others) for others in ([], ["ivector"])]
    [32, 2]
    >>> cost_of("scores", [])
    """
    if name not in COSTS:
        return None
    base = name.replace("-adapted", "").replace("-single-test", "")
    return COSTS[name] if base in others or base == name else COSTS[name] + COSTS.get(base, 0.0)


def absent_attackers() -> dict[str, str]:
    """Return which attackers of `DEFAULT` cannot run on this machine, and why."""
    reasons = {name: CATALOGUE[name].is_absent(name) for name in DEFAULT if name in CATALOGUE}
    return {name: why for name, why in reasons.items() if why}


def default_attackers() -> tuple[str, ...]:
    """Return the attackers that run where none are named: those of `DEFAULT` that can run on this machine.

    Where CAM++ has no weights, GE2E takes its place if it has some.
    """
    absent = absent_attackers()
    others = {name: name.replace(_STRONGER, _WEAKER) for name in absent}
    instead = {name: other for name, other in others.items() if not CATALOGUE[other].is_absent(other)}
    return tuple(instead.get(name, name) for name in DEFAULT if name not in absent or name in instead)


def find_row(entry: str) -> tuple[str, Row, str] | None:
    """Return the name of the row that an entry stands for, the row, and what follows the colon; None where none does.

    Examples
    --------
    >>> name, row, argument = find_row("onnx:ecapa.onnx")
    >>> name, argument, find_row("gmm-svm"), find_row("scores:run/exp")
    ('onnx', 'ecapa.onnx', None, None)

    Raises
    ------
    ConfigError
        If something follows a colon that should not, or nothing does that should.
    """
    name, colon, argument = entry.partition(":")
    row = CATALOGUE.get(name)
    if row is None:
        return None
    must = row.takes_argument and "[" not in row.form
    if (colon and not argument) or (argument and not row.takes_argument) or (must and not argument):
        raise ConfigError(f"attackers: {entry!r}: expected {row.form}")
    return name, row, argument


def catalogue_name(entry: str) -> str | None:
    """Return what an attacker of the catalogue is called where its settings give no name; None if it is none.

    Examples
    --------
    >>> catalogue_name("campplus:wheels"), catalogue_name("onnx:models/ecapa.onnx"), catalogue_name("gmm-svm")
    ('campplus', 'onnx-ecapa', None)
    """
    found = find_row(entry)
    if found is None:
        return None
    name, row, argument = found
    return f"{name}-{Path(argument).stem}" if argument and "[" not in row.form else name


def known_attackers() -> tuple[str, ...]:
    """Return how each attacker is written that is known by name, the classic presets first."""
    return *PRESETS, *(row.form for row in CATALOGUE.values())


_UNSAFE = re.compile(r"[^A-Za-z0-9_+-]+")
_LONGEST = 40
_INTERPRETER = re.compile(r"(python|pypy|bash|sh|perl|env|nice)[0-9.]*")


@dataclass(frozen=True)
class Door:
    """A door.

    Attributes
    ----------
    form : str
        How it is written.
    summary : str
        What comes in by it, for help texts.
    open : callable
        Makes an attacker of its name, what follows the prefix, and the seed.
    label : callable
        What follows the prefix to the part of a name.
    """

    form: str
    summary: str
    open: Callable[[str, str, int], Attacker]
    label: Callable[[str], str]


def _folder_label(folder: str) -> str:
    """Name of the folder; of a run's folder exp, the name of the run."""
    path = Path(folder).resolve()
    return path.parent.name if path.name == "exp" else path.name


def _command_label(template: str) -> str:
    words = [Path(word).stem for word in template.split()]
    return next((word for word in words if word and not _INTERPRETER.fullmatch(word)), "")


def _function_label(spec: str) -> str:
    where, _, function = spec.rpartition(":")
    module = Path(where).stem if where.endswith(".py") else where.rpartition(".")[2]
    return f"{module}-{function}"


FUNCTION = Door("MODULE:FUNCTION or FILE.py:FUNCTION", "a Python function", own_function, _function_label)
DOORS: dict[str, Door] = {
    "command": Door("command:COMMAND", "a shell command with places", OwnCommand, _command_label),
    "scores": Door(
        "scores:FOLDER",
        "scores made elsewhere",
        lambda name, folder, seed: ReadyScores(name, Path(folder)),
        _folder_label,
    ),
    "vectors": Door(
        "vectors:FOLDER",
        "embeddings made elsewhere",
        lambda name, folder, seed: ReadyVectors(name, Path(folder)),
        _folder_label,
    ),
    "adapted": Door(
        "adapted:FOLDER",
        "embeddings made elsewhere, adapted to the trials at hand",
        lambda name, folder, seed: ReadyVectors(name, Path(folder), adapted=True),
        _folder_label,
    ),
}


def is_outside(spec: str) -> bool:
    """Return whether an entry in a list of attackers is for a door, not the name of a preset.

    Examples
    --------
    >>> is_outside("scores:ecapa/exp"), is_outside("gmm-svm")
    (True, False)
    """
    prefix, _, rest = spec.partition(":")
    return bool(prefix and rest)


def short_name(spec: str) -> str:
    """Return a name for folders and tables, made of letters, digits and -_+.

    Examples
    --------
    >>> [short_name(spec) for spec in ("scores:runs/ecapa/exp", "mine/ltas.py:attack", "command:python x.py {scores}")]
    ['scores-ecapa', 'ltas-attack', 'command-x']
    """
    prefix, _, rest = spec.partition(":")
    door = DOORS.get(prefix)
    label = f"{prefix}-{door.label(rest)}" if door else FUNCTION.label(spec)
    return _UNSAFE.sub("-", label)[:_LONGEST].strip("-") or "own"


def open_door(
    spec: str, *, name: str = "", seed: int = 0, time_limit: float | None = None, level: str = ""
) -> Attacker:
    """Make an attacker of what an outsider gives.

    Parameters
    ----------
    spec : str
        See the module.
    name : str
        What it is called; by default `short_name` of it.
    seed : int
        For functions and commands.
    time_limit : float, optional [s]
        For functions and commands, to learn and for each list of trials; see `spkver.attackers.own.usual_limit`.

    level : str
        What a function, a command or scores look at, see `evaluation.reports.LEVELS`; trial-by-trial by default.

    Raises
    ------
    ConfigError
        If there is no such function, folder or level, or a command lacks a place.
    """
    prefix, _, rest = spec.partition(":")
    if not is_outside(spec):
        known = ", ".join(door.form for door in (FUNCTION, *DOORS.values()))
        raise ConfigError(f"attacker {spec!r}: expected {known}")
    name, door = name or short_name(spec), DOORS.get(prefix)
    try:
        attacker = FUNCTION.open(name, spec, seed) if door is None else door.open(name, rest, seed)
        if level and (level not in LEVELS or isinstance(attacker, ReadyVectors)):
            raise ConfigError(f"level is {level!r}: expected {', '.join(LEVELS)}; of vectors the door tells it")
        if level:
            attacker = replace(attacker, level=level)  # type: ignore[type-var]
        return replace(attacker, time_limit=time_limit) if isinstance(attacker, OwnFunction | OwnCommand) else attacker
    except ConfigError as error:
        if error.text.startswith(("attacker ", "the attacker ")):
            raise
        raise ConfigError(f"attacker {name!r}: {error.text}", remedy=error.remedy) from error
