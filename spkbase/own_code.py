"""User-supplied code, where a door is open for it: a Python function by its name, or a shell command with places."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from spkbase.errors import ConfigError, DataError

SAFE_PATH = {"PYTHONSAFEPATH": "spkver"}
"""Environment of processes that we start: Python takes nothing from the folder that they start in, which may hold a
`pickle.py` of somebody. Commands of the user do not get it; the value tells ours from the user's own."""

_SHOWN = 200  # characters of what a command says
# A shell with two children in a group of processes of its own: the command, and a guard that waits for the end of a
# pipe, at standard input, whose other end this process holds. However this process ends, SIGKILL included, the guard
# ends the whole group.
_GUARDED = """
exec 3<&0 </dev/null
{ read _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
guard=$!
sh -c "$1" 3<&-
status=$?
kill -KILL $guard 2>/dev/null
exit $status
"""
_GUARDS: set[int] = set()  # our ends of the pipes of the commands that run now


def load_named(name: str, what: str, *, kind: str = "") -> tuple[Any, Path | None]:
    """Return an object that a user names by ``MODULE:NAME`` or ``FILE.py:NAME``.

    Parameters
    ----------
    name : str
        As the user gave it.
    what : str
        What it is for, in messages: "format", "anonymiser", "attacker".
    kind : str
        What it is in Python, for messages: "function".

    Returns
    -------
    named : object
    file : path or None
        Where its module stands.

    Raises
    ------
    ConfigError
        If there is no such module or object, or the module breaks.

    Examples
    --------
    >>> load_named("math:pi", "number")[0]
    3.141592653589793
    """
    where, _, object_name = name.rpartition(":")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"_{what}_{Path(where).stem}", where)
            if spec is None or spec.loader is None:
                raise ImportError(f"{where} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except Exception as error:
        placeholder = (kind or "name").upper()
        raise ConfigError(
            f"the {what} {name!r} cannot be imported: {type(error).__name__}: {error}",
            remedy=f"give MODULE:{placeholder}, with the module's folder in PYTHONPATH, or FILE.py:{placeholder}",
        ) from error
    if not hasattr(module, object_name):
        raise ConfigError(f"the {what} {name!r}: {where} has no {f'{kind} {object_name!r}'.strip()}")
    file = getattr(module, "__file__", None)
    return getattr(module, object_name), None if file is None else Path(file)


def import_function(name: str, what: str) -> tuple[Callable[..., Any], Path | None]:
    """Return a function that a user names, as `load_named`.

    Raises
    ------
    ConfigError
        If there is no such module or function, or the module breaks.
    """
    function, file = load_named(name, what, kind="function")
    if not callable(function):
        where, _, function_name = name.rpartition(":")
        raise ConfigError(f"the {what} {name!r}: {where} has no function {function_name!r}")
    return function, file


def check_places(template: str, places: Sequence[str], needed: Sequence[str]) -> None:
    """Check the places of a command, such as {input}.

    Parameters
    ----------
    template : str
    places : sequence of str
        Names that the command may use.
    needed : sequence of str
        Those that it must use.

    Raises
    ------
    ConfigError
        If a place is missing, unknown or stands in quotes, or the quotes do not close.
    """
    probe = "a 'b\" c"
    try:
        filled = fill_places(template, dict.fromkeys(places, probe))
        words = shlex.split(filled)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{place}}}" for place in places)
        text = f"the command {template!r} cannot be filled in: {error}"
        raise ConfigError(text, remedy=f"places are {known}; other braces are doubled: {{{{ }}}}") from error
    for place in needed:
        if f"{{{place}}}" not in template:
            raise ConfigError(f"the command {template!r} has no {{{place}}}")
    if sum(word.count(probe) for word in words) != filled.count(shlex.quote(probe)):
        text = f"the command {template!r} has a place in quotes"
        raise ConfigError(text, remedy="leave the quotes out: values are quoted as they are filled in")


def fill_places(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a command; values are quoted for the shell, so that no id is ever read as part of the command."""
    return template.format_map({name: shlex.quote(str(value)) for name, value in values.items()})


def run_filled(template: str, values: Mapping[str, Any]) -> None:
    """Run a command with its places filled in.

    Raises
    ------
    DataError
        If it ends with another status than 0; the end of what it says on standard error is shown.
    """
    run_command(fill_places(template, values))


def run_command(command: str, *, output: IO[bytes] | None = None, place: Path | None = None) -> None:
    """Run a shell command; neither it nor its children outlive this process.

    Parameters
    ----------
    command : str
    output : binary file, optional
        Where its standard output goes.
    place : path, optional
        The folder that it runs in.

    Raises
    ------
    DataError
        If it ends with another status than 0; the end of what it says on standard error is shown.
    """
    theirs, ours = os.pipe()
    _GUARDS.add(ours)
    try:
        with subprocess.Popen(
            ["sh", "-c", _GUARDED, "sh", command],
            cwd=place,
            stdin=theirs,
            stdout=subprocess.DEVNULL if output is None else output,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if (name, value) not in SAFE_PATH.items()},
            start_new_session=True,
        ) as process:
            try:
                errors = process.communicate()[1]
            finally:
                _end([ours])
    finally:
        _end([ours])
        os.close(theirs)
    if process.returncode:
        said = errors.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise DataError(f"the command ended with status {process.returncode}{': ' if said else ''}{said}")


def end_commands() -> None:
    """End the commands that run now, in whatever thread of this process."""
    _end(list(_GUARDS))


def _end(guards: Sequence[int]) -> None:
    for guard in guards:
        with suppress(KeyError):
            _GUARDS.remove(guard)  # once, also where two threads are at it
            os.close(guard)
