"""What all command lines share: errors as one clear message, a clean end on Ctrl-C, log lines on standard error."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from evaluation.errors import SpkverError

STATUS_ERROR, STATUS_INTERRUPT, STATUS_TERMINATED = 2, 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM came; it ends a command as Ctrl-C does."""


class _CleanEnd(click.Command):
    def invoke(self, ctx: click.Context) -> Any:
        with clean_end(ctx):
            return super().invoke(ctx)


class Command(_CleanEnd):
    """A command whose errors end in one clear message and status 2; Ctrl-C leaves no worker, status 130."""


class Group(_CleanEnd, click.Group):
    """A group of such commands."""


@contextmanager
def clean_end(ctx: click.Context) -> Iterator[None]:
    """Turn errors into a message and an exit status, and stop the workers."""
    _terminate_like_interrupt()
    try:
        yield
    except SpkverError as error:
        click.echo(f"Error: {error}", err=True)
        ctx.exit(STATUS_ERROR)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {where}{error.strerror or error}", err=True)
        ctx.exit(STATUS_ERROR)
    except KeyboardInterrupt as error:
        # workers that wait for work would keep the process alive
        if "joblib" in sys.modules:
            from evaluation.parallel import stop_workers

            stop_workers()
        terminated = isinstance(error, _Terminated)
        what = "terminated" if terminated else "interrupted"
        click.echo(f"{what}; finished steps are kept, the same command goes on from there", err=True)
        ctx.exit(STATUS_TERMINATED if terminated else STATUS_INTERRUPT)


def _terminate_like_interrupt() -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    try:
        signal.signal(signal.SIGTERM, handle)
    except ValueError:  # not the main thread: the caller has its own way to end
        return


class EchoHandler(logging.Handler):
    """Log lines on standard error, beside a progress bar too."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.capitalize()}: "
        click.echo(level + record.getMessage(), err=True)


@contextmanager
def echo_log(level: int, *names: str) -> Iterator[None]:
    """Show log lines of some packages on standard error."""
    handler = EchoHandler()
    handler.setLevel(level)
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(min(level, logger.level or level))
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
