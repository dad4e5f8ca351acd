"""The doors for attackers of others: how each is named, and what opens it.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.reports import LEVELS
from spkbase.errors import ConfigError
from spkver.attackers.own import OwnCommand, OwnFunction, own_function
from spkver.attackers.protocol import Attacker
from spkver.attackers.ready import ReadyScores, ReadyVectors

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
