"""User-supplied code, where a door is open for it: a Python function by its name, or a shell command with places."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from spkbase.errors import ConfigError, DataError

SAFE_PATH = {"PYTHONSAFEPATH": "spkver"}
"""Environment of processes that we start: Python takes nothing from the folder that they start in, which may hold a
`pickle.py` of somebody. Commands of the user do not get it; the value tells ours from the user's own."""

_SHOWN = 200  # characters of what a command says
_REMEMBERED = 1 << 14  # bytes of it that are kept while it runs
_SECONDS_BETWEEN_LOOKS = 0.05
_LEAST_SECONDS, _BYTES_A_SECOND = 1800.0, 32000
_SECONDS_FOR_CHILDREN = 5.0  # that a command with limits leaves behind, to let go of its standard error
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


class TimeLimitError(DataError):
    """A command was ended because it took too long."""


@dataclass(frozen=True)
class Limits:
    """What a command may use up; beyond it is ended, with all its children.

    Attributes
    ----------
    seconds : float or None
    said : int [bytes]
        On standard error.
    file : Path or None
        A file that it writes.
    file_bytes : int
        How large that file may become.
    """

    seconds: float | None = None
    said: int = 64 << 20
    file: Path | None = None
    file_bytes: int = 1 << 30


def usual_seconds(recordings: Iterable[Path]) -> float:
    """Return how long somebody else's code may work on recordings: half an hour, and as long as they last.

    Their length is taken from the sizes of the files, as if they were WAV of 16 bits at 16 kHz.
    """
    size = 0
    for path in sorted(set(recordings)):
        with suppress(OSError):
            size += path.stat().st_size
    return _LEAST_SECONDS + size / _BYTES_A_SECOND


def run_filled(template: str, values: Mapping[str, Any], limits: Limits | None = None) -> None:
    """Run a command with its places filled in.

    Raises
    ------
    DataError
        If it ends with another status than 0; the end of what it says on standard error is shown.
    """
    run_command(fill_places(template, values), limits=limits)


def run_command(
    command: str, *, output: IO[bytes] | None = None, place: Path | None = None, limits: Limits | None = None
) -> None:
    """Run a shell command; neither it nor its children outlive this process.

    Parameters
    ----------
    command : str
    output : binary file, optional
        Where its standard output goes.
    place : path, optional
        The folder that it runs in.
    limits : Limits, optional
        Without them the command is waited for, and children that it leaves behind while they hold its standard error.

    Raises
    ------
    DataError
        If it ends with another status than 0, or is ended for its limits (`TimeLimitError` for the time); the end of
        what it says on standard error is shown.
    """
    with GuardedCommand(command, output=output, place=place) as at_work:
        status = at_work.wait(limits)
    if status:
        said = at_work.said[-_SHOWN:]
        raise DataError(f"the command ended with status {status}{': ' if said else ''}{said}")


class GuardedCommand:
    """A shell command at work, in a group of processes that ends with this process, and with the block.

    Parameters
    ----------
    command : str
    output, place
        See `run_command`.
    """

    def __init__(self, command: str, *, output: IO[bytes] | None = None, place: Path | None = None) -> None:
        self._tail, self._count, self._is_over = b"", 0, False
        theirs, self._guard = os.pipe()
        _GUARDS.add(self._guard)
        try:
            self._process = subprocess.Popen(
                ["sh", "-c", _GUARDED, "sh", command],
                cwd=place,
                stdin=theirs,
                stdout=subprocess.DEVNULL if output is None else output,
                stderr=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if (name, value) not in SAFE_PATH.items()},
                start_new_session=True,
            )
        except BaseException:
            _end([self._guard])
            raise
        finally:
            os.close(theirs)
        assert self._process.stderr is not None
        self._errors = self._process.stderr
        os.set_blocking(self._errors.fileno(), False)
        self._ears = selectors.DefaultSelector()
        self._ears.register(self._errors, selectors.EVENT_READ)

    def __enter__(self) -> GuardedCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def said(self) -> str:
        """The end of what it said on standard error, the last time that it was waited for."""
        return self._tail.decode("utf-8", "replace").strip()

    @property
    def is_alive(self) -> bool:
        """Whether it is still at work."""
        return self._process.poll() is None

    def wait(self, limits: Limits | None = None, until: Callable[[], bool] | None = None) -> int | None:
        """Wait for its end and return its exit status, or None as soon as `until` is true.

        Raises
        ------
        DataError
            If it goes beyond the limits; it is ended then.
        """
        began, ended_at = time.monotonic(), math.inf
        self._tail, self._count = b"", 0
        while True:
            if until is not None and until():
                return None
            has_ended = self._process.poll() is not None
            hears = self._listen(0.0 if has_ended else _SECONDS_BETWEEN_LOOKS)
            now = time.monotonic()
            if has_ended:
                ended_at = min(ended_at, now)
                # children that it has left may hold its standard error for ever
                if not hears or until is not None or (limits is not None and now - ended_at > _SECONDS_FOR_CHILDREN):
                    self._check_file(limits)
                    return self._process.returncode
                time.sleep(_SECONDS_BETWEEN_LOOKS / 10)
            elif limits is not None:
                self._check(limits, now - began)

    def end(self) -> None:
        """End it with all its children."""
        if self._is_over:
            return
        self._is_over = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _end([self._guard])
        self._process.wait()
        self._ears.close()
        self._errors.close()

    def _listen(self, seconds: float) -> bool:
        """Take what it says for a moment; returns whether more can come."""
        if not self._ears.get_map():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return False
        if self._ears.select(seconds):
            heard = self._errors.read(1 << 16)
            if heard == b"":
                self._ears.unregister(self._errors)
                return False
            self._tail, self._count = (self._tail + (heard or b""))[-_REMEMBERED:], self._count + len(heard or b"")
        return True

    def _check(self, limits: Limits, seconds: float) -> None:
        if limits.seconds is not None and seconds > limits.seconds:
            self.end()
            raise TimeLimitError(f"it was ended after {limits.seconds:g} s, the time limit")
        if self._count > limits.said:
            self.end()
            text = f"it was ended after {limits.said >> 20} MiB on standard error"
            raise DataError(f"{text}: {self.said[-_SHOWN:]}")
        self._check_file(limits)

    def _check_file(self, limits: Limits | None) -> None:
        if limits is None or limits.file is None or not limits.file.is_file():
            return
        if limits.file.stat().st_size > limits.file_bytes:
            self.end()
            most = f"{limits.file_bytes >> 20} MiB" if limits.file_bytes >= 1 << 20 else f"{limits.file_bytes} bytes"
            raise DataError(f"it wrote more than {most} to {{{limits.file.name}}}, and was ended")


def end_commands() -> None:
    """End the commands that run now, in whatever thread of this process."""
    _end(list(_GUARDS))


def _end(guards: Sequence[int]) -> None:
    for guard in guards:
        with suppress(KeyError):
            _GUARDS.remove(guard)  # once, also where two threads are at it
            os.close(guard)
