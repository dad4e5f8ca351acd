"""Anonymisers of one's own: a Python function, or a shell command."""

from __future__ import annotations

import importlib
import importlib.util
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkver.audio import read_audio, write_audio

Anonymizer = Callable[[NDArray[Any], int, str, np.random.Generator], NDArray[Any]]

_PLACES = ("input", "output", "utterance", "rate", "seed")
_SHOWN = 200


def load_function(name: str) -> tuple[Anonymizer, Path | None]:
    """Import ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.

    Returns
    -------
    function : callable
        ``samples, rate, utterance, rng -> samples``.
    file : path or None
        Where its module stands.

    Raises
    ------
    ConfigError
        If there is no such module or function, or the module breaks.
    """
    where, _, function_name = name.rpartition(":")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"_anonymizer_{Path(where).stem}", where)
            if spec is None or spec.loader is None:
                raise ImportError(f"{where} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except Exception as error:
        text = f"the anonymiser {name!r} cannot be imported: {type(error).__name__}: {error}"
        raise ConfigError(
            text, remedy="give MODULE:FUNCTION, with the module's folder in PYTHONPATH, or FILE.py:FUNCTION"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"the anonymiser {name!r}: {where} has no function {function_name!r}")
    file = getattr(module, "__file__", None)
    return function, None if file is None else Path(file)


def check_command(template: str) -> None:
    """Check the places of a command.

    Raises
    ------
    ConfigError
        If {input} or {output} is missing, a place is unknown or stands in quotes, or the quotes do not close.
    """
    probe = "a 'b\" c"
    try:
        filled = _fill(template, dict.fromkeys(_PLACES, probe))
        words = shlex.split(filled)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{place}}}" for place in _PLACES)
        text = f"the command {template!r} cannot be filled in: {error}"
        raise ConfigError(text, remedy=f"places are {known}; other braces are doubled: {{{{ }}}}") from error
    for place in ("{input}", "{output}"):
        if place not in template:
            raise ConfigError(f"the command {template!r} has no {place}")
    if sum(word.count(probe) for word in words) != filled.count(shlex.quote(probe)):
        text = f"the command {template!r} has a place in quotes"
        raise ConfigError(text, remedy="leave the quotes out: values are quoted as they are filled in")


def command_anonymizer(template: str) -> Anonymizer:
    """Make an anonymiser of a shell command that turns one WAV file (16 bits, one channel) into another.

    Values are quoted for the shell, so no id is ever read as part of the command. Both files lie in a temporary
    folder; a sampling rate that the command changed is changed back.
    """

    def anonymize(samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator) -> NDArray[Any]:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "input.wav", Path(folder) / "output.wav"
            write_audio(source, samples, rate)
            values = {"input": source, "output": target, "utterance": utterance, "rate": rate}
            command = _fill(template, {**values, "seed": int(rng.integers(1 << 31))})
            done = subprocess.run(
                command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]
                raise DataError(f"the command ended with status {done.returncode}{': ' if said else ''}{said}")
            if not target.is_file():
                raise DataError("the command wrote no {output}")
            try:
                return read_audio(target, rate=rate, resample=True).samples
            except DataError as error:
                raise DataError(f"the command's output {error.text}") from error

    return anonymize


def _fill(template: str, values: dict[str, Any]) -> str:
    return template.format_map({name: shlex.quote(str(value)) for name, value in values.items()})
