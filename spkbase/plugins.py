"""User plug-ins: a Python object by its name, or a shell command with placeholders."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest

SAFE_PATH = {"PYTHONSAFEPATH": "spkver"}
"""Environment of worker processes: Python imports nothing from their start folder, which may hold a file named
`pickle.py`. The user's commands do not get it; its value tells it from a setting of the user."""

interrupted = threading.Event()
"""Set while an interrupt ends the program; then no command is started."""

_SHOWN = 200  # largest number of characters shown of a command's message
_LEAST_SECONDS = 1800.0
_BYTES_A_SECOND = 32000
_RUNNING: set[subprocess.Popen[Any]] = set()


class TimeLimitError(DataError):
    """A command was ended because it exceeded its time limit."""


def load_plugin(name: str, purpose: str, *, kind: str = "") -> tuple[Any, Path | None]:
    """Return the object named ``MODULE:NAME`` or ``FILE.py:NAME``.

    Parameters
    ----------
    name : str
        The name that the user gave.
    purpose : str
        Purpose of the plug-in, for messages: "format", "anonymiser", "attacker".
    kind : str
        "function" for a callable; with any other word, every object is accepted.

    Returns
    -------
    plugin : object
    file : path or None
        File of its module.

    Raises
    ------
    ConfigError
        If there is no such module or object, or the module raises an error.

    Examples
    --------
    >>> load_plugin("math:pi", "number")[0]
    3.141592653589793
    """
    where, _, object_name = name.rpartition(":")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"_{purpose}_{Path(where).stem}", where)
            if spec is None or spec.loader is None:
                raise ImportError(f"{where} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except Exception as error:
        placeholder = (kind or "name").upper()
        raise ConfigError(
            f"the {purpose} {name!r} cannot be imported: {type(error).__name__}: {error}",
            remedy=f"give MODULE:{placeholder}, with the module's folder in PYTHONPATH, or FILE.py:{placeholder}",
        ) from error
    plugin = getattr(module, object_name, None)
    if plugin is None or (kind == "function" and not callable(plugin)):
        raise ConfigError(
            f"the {purpose} {name!r}: {where} has no {f'{kind} {object_name!r}'.strip()}"
        )
    file = getattr(module, "__file__", None)
    if file is not None:
        file = Path(file)
    return plugin, file


def files_behind(plugin: str, file: Path | None = None) -> dict[str, str | None]:
    """Return the SHA-256 of the other files that a plug-in visibly depends on, by path.

    Parameters
    ----------
    plugin : str
        A command, which depends on the files that it names, such as a script or weights, or the name of a function.
    file : Path, optional
        File of the function's module, which depends on the Python files beside it that it imports, directly or not.
    """
    if file is None:
        words = sorted(set(re.split(r"[\s'\"=;|&<>()]+", plugin)) - {""})
        return {word: file_digest(word) for word in words if Path(word).is_file()}
    files = [file]
    for source in files:  # the list grows during the loop
        for part in _imported_names(source):
            beside = file.parent / f"{part}.py", *sorted((file.parent / part).glob("*.py"))
            files += [path for path in beside if path not in files and path.is_file()]
    return {str(path): file_digest(path) for path in sorted(files[1:])}


def _imported_names(source: Path) -> list[str]:
    """Return the parts of all dotted names in the imports of a Python file; none for a file that is not Python."""
    names: list[str] = []
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(source.read_bytes())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names += [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
    parts = []
    for name in names:
        parts += name.split(".")
    return parts


def check_places(template: str, allowed: Sequence[str], needed: Sequence[str]) -> None:
    """Check the placeholders of a command, such as {input}.

    Parameters
    ----------
    template : str
    allowed : sequence of str
        Placeholders that the command may use.
    needed : sequence of str
        Placeholders that the command must use.

    Raises
    ------
    ConfigError
        If a placeholder is missing, unknown or in quotes, or the quotes are not closed.
    """
    probe = "a 'b\" c"
    try:
        filled = fill_places(template, dict.fromkeys(allowed, probe))
        words = shlex.split(filled)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{name}}}" for name in allowed)
        text = f"the command {template!r} cannot be filled in: {error}"
        raise ConfigError(
            text, remedy=f"placeholders are {known}; other braces are doubled: {{{{ }}}}"
        ) from error
    for name in needed:
        if f"{{{name}}}" not in template:
            raise ConfigError(f"the command {template!r} has no {{{name}}}")
    if sum(word.count(probe) for word in words) != filled.count(shlex.quote(probe)):
        text = f"the command {template!r} has a placeholder in quotes"
        raise ConfigError(text, remedy="leave the quotes out: values are quoted")


def fill_places(template: str, values: Mapping[str, Any]) -> str:
    """Fill in the placeholders of a command; values are quoted for the shell."""
    return template.format_map({name: shlex.quote(str(value)) for name, value in values.items()})


def usual_seconds(recordings: Iterable[Path]) -> float:
    """Return the time limit in seconds of a plug-in for some recordings: half an hour plus their duration.

    The duration is estimated from the file sizes, as for 16-bit WAV at 16 kHz.
    """
    size = 0
    for path in sorted(set(recordings)):
        with suppress(OSError):
            size += path.stat().st_size
    return _LEAST_SECONDS + size / _BYTES_A_SECOND


def run_command(
    command: str,
    *,
    output: IO[bytes] | None = None,
    folder: Path | None = None,
    seconds: float | None = None,
) -> None:
    """Run a shell command; end it and its children at the time limit or when this process is interrupted.

    Parameters
    ----------
    command : str
    output : binary file, optional
        Receives the standard output.
    folder : path, optional
        Working folder.
    seconds : float, optional
        Time limit.

    Raises
    ------
    DataError
        If its status is not 0, or it exceeds the time limit (`TimeLimitError`); the end of its standard error is shown.
    """
    with tempfile.TemporaryFile() as errors:
        streams = {
            "stdin": subprocess.DEVNULL,
            "stdout": output or subprocess.DEVNULL,
            "stderr": errors,
        }
        process = start_process(["sh", "-c", command], cwd=folder, **streams)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeLimitError(f"it was ended after {seconds:g} s, the time limit") from error
        finally:
            end_process(process)
        if status:
            errors.seek(max(errors.seek(0, os.SEEK_END) - 4 * _SHOWN, 0))
            message = errors.read().decode("utf-8", "replace").strip()[-_SHOWN:]
            if status < 0:  # a signal, reported with the number that a shell would give
                status = 128 - status
            raise DataError(
                ": ".join(filter(None, [f"the command ended with status {status}", message]))
            )


def start_process(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in a new process group, which `end_process` ends; `subprocess.Popen` takes the options."""
    if interrupted.is_set():
        raise DataError("interrupted")
    environment = {
        name: value for name, value in os.environ.items() if (name, value) not in SAFE_PATH.items()
    }
    process = subprocess.Popen(command, env=environment, start_new_session=True, **options)
    _RUNNING.add(process)
    if interrupted.is_set():  # `end_commands` may have missed a process that was starting
        end_process(process)
        raise DataError("interrupted")
    return process


def end_process(process: subprocess.Popen[Any]) -> None:
    """End a process with its children."""
    _RUNNING.discard(process)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_commands() -> None:
    """End the commands of all threads at an interrupt; no further command is started, see `interrupted`."""
    interrupted.set()
    for process in list(_RUNNING):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
