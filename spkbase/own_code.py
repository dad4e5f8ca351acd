"""User-supplied code, where a door is open for it: a Python function by its name, or a shell command with places."""

from __future__ import annotations

import importlib
import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError, DataError

_SHOWN = 200  # characters of what a command says


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
    done = subprocess.run(
        fill_places(template, values),
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise DataError(f"the command ended with status {done.returncode}{': ' if said else ''}{said}")
