"""What all command lines share: errors as one clear message, a clean end on Ctrl-C, log lines on standard error."""

from __future__ import annotations

import atexit
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import click

from spkbase.console.parameters import take_once
from spkbase.errors import SpkverError
from spkbase.packages import OURS

STATUS_ERROR, STATUS_INTERRUPT, STATUS_TERMINATED = 2, 130, 143
_SECONDS_UNTIL_AGAIN = 0.01


class _Terminated(KeyboardInterrupt):
    """SIGTERM came; it ends a command as Ctrl-C does."""


class _CleanEnd(click.Command):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        take_once(self)

    def invoke(self, ctx: click.Context) -> Any:
        with clean_end(ctx):
            return super().invoke(ctx)

    def main(self, *arguments: Any, **options: Any) -> Any:
        _open_standard_streams()
        return super().main(*arguments, **options)


class Command(_CleanEnd):
    """A command whose errors end in one clear message and status 2; Ctrl-C leaves no worker, status 130."""


class ResumableCommand(Command):
    """A command that takes up its finished steps when it is called again; it says so when it is interrupted."""


class Group(_CleanEnd, click.Group):
    """A group of such commands."""


class LazyGroup(Group):
    """A group whose commands are imported when they are called, so that its help costs nothing.

    Parameters
    ----------
    table : mapping of str to (str, str)
        Name of a command to where it is, ``MODULE:NAME``, and what its line of the help says.
    examples : mapping of str to str, optional
        Words of a command, as ``simulate rsr2015``, to lines that call it, which end its help.
    more : mapping of str to mapping of str to str, optional
        Further sections of the help: title to names and what they are.
    """

    def __init__(
        self,
        *arguments: Any,
        table: Mapping[str, tuple[str, str]],
        examples: Mapping[str, str] | None = None,
        more: Mapping[str, Mapping[str, str]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.table, self.examples, self.more = table, examples or {}, more or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it; None where the table has none of this name."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        _add_examples(command, cmd_name, self.examples)
        return take_once(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section of commands of the help from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])
        for title, rows in self.more.items():
            with formatter.section(title):
                formatter.write_dl(list(rows.items()))


def _add_examples(command: click.Command, words: str, examples: Mapping[str, str]) -> None:
    """End the help of a command, and of those below it, with lines that call it."""
    if words in examples:
        lines = "\n".join(f"  {line}" for line in examples[words].strip().splitlines())
        command.epilog = f"\b\nExample:\n{lines}"
    below = {f"{words} {name}": other for name, other in getattr(command, "commands", {}).items()}
    for name, other in below.items():
        _add_examples(other, name, examples)
    if isinstance(command, LazyGroup):
        start = f"{words} "
        of_it = {name.removeprefix(start): text for name, text in examples.items() if name.startswith(start)}
        command.examples = {**of_it, **command.examples}


def _open_standard_streams() -> None:
    """Put a sink in the place of standard streams that the caller closed; write letters that one lacks as numbers.

    Else files that are opened get the numbers of closed streams, and what children print goes into these; libraries
    flush them too. An id or a file's name may hold any letter, and the terminal's encoding few.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def clean_end(ctx: click.Context) -> Iterator[None]:
    """Turn errors into a message and an exit status, and stop the workers."""
    try:
        with _interrupts() as came:
            try:
                yield
            except Exception as error:
                if came:  # what breaks on the way out of an interrupt is part of it
                    raise came[0]() from error
                raise
    except SpkverError as error:
        click.echo(f"Error: {error}", err=True)
        ctx.exit(STATUS_ERROR)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {where}{error.strerror or error}", err=True)
        ctx.exit(STATUS_ERROR)
    except MemoryError as error:
        click.echo(f"Error: memory ran out: {error or 'no more to be had'} (use fewer --jobs)", err=True)
        ctx.exit(STATUS_ERROR)
    except RuntimeError as error:
        if "start new thread" not in str(error):  # what Python says where the system grants no more
            raise
        text = "no more threads can be started: memory or processes are limited"
        click.echo(f"Error: {text} (ulimit -v, ulimit -u; or use fewer --jobs)", err=True)
        ctx.exit(STATUS_ERROR)
    except KeyboardInterrupt as error:
        terminated = isinstance(error, _Terminated)
        with _deaf():
            from spkbase.work import stop_workers

            # workers that wait for work would keep the process alive
            stop_workers()
            what = "terminated" if terminated else "interrupted"
            going_on = "; finished steps are kept, the same command goes on from there"
            click.echo(what + (going_on if isinstance(ctx.command, ResumableCommand) else ""), err=True)
            atexit.register(_end_deaf)
        ctx.exit(STATUS_TERMINATED if terminated else STATUS_INTERRUPT)


@contextmanager
def _interrupts() -> Iterator[list[type[KeyboardInterrupt]]]:
    """Have SIGTERM end the command as Ctrl-C does; yields the interrupts that came."""
    came: list[type[KeyboardInterrupt]] = []

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(_Terminated if number == signal.SIGTERM else KeyboardInterrupt)
        raise came[-1]

    with _handled(handle, signal.SIGTERM), _handled(handle, signal.SIGINT), _none_lost():
        yield came


@contextmanager
def _none_lost() -> Iterator[None]:
    """Have an interrupt come again that Python dropped, as it drops all that is raised while an object is removed."""
    before, main = sys.unraisablehook, threading.main_thread()
    again: list[threading.Timer] = []

    def unraisable(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            before(dropped)
            return
        number = signal.SIGTERM if isinstance(dropped.exc_value, _Terminated) else signal.SIGINT
        again.append(threading.Timer(_SECONDS_UNTIL_AGAIN, signal.pthread_kill, (main.ident, number)))
        again[-1].daemon = True
        again[-1].start()

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()


@contextmanager
def _deaf() -> Iterator[None]:
    """Let no second Ctrl-C disturb the clearing up."""
    with _handled(signal.SIG_IGN, signal.SIGINT), _handled(signal.SIG_IGN, signal.SIGTERM):
        yield


def _end_deaf() -> None:
    """Let an impatient Ctrl-C not break the last steps of Python itself, which would show them and lose the status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _handled(handler: Any, number: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # the caller has its own way to end
        yield
        return
    before = signal.getsignal(number)
    if before == signal.SIG_IGN and number == signal.SIGINT:  # a job in the background: Ctrl-C is not for it
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


class EchoHandler(logging.Handler):
    """Log lines on standard error, beside a progress bar too; none that is marked as one for files only."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to standard error, with its level unless that is INFO."""
        if getattr(record, "file_only", False):
            return
        level = "" if record.levelno == logging.INFO else f"{record.levelname.capitalize()}: "
        text = level + record.getMessage()
        if "tqdm" in sys.modules and sys.stderr.isatty():  # a line of its own, above the bar
            sys.modules["tqdm"].tqdm.write(text, file=sys.stderr)
        else:
            click.echo(text, err=True)


@contextmanager
def echo_log(level: int) -> Iterator[None]:
    """Show log lines of this project's packages on standard error, from a level up."""
    handler = EchoHandler()
    handler.setLevel(level)
    levels = {logger: logger.level for logger in map(logging.getLogger, OURS)}
    for logger, before in levels.items():
        logger.addHandler(handler)
        logger.setLevel(min(level, before or level))
    try:
        yield
    finally:
        for logger, before in levels.items():
            logger.removeHandler(handler)
            logger.setLevel(before)
