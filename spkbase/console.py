"""Common parts of command lines: errors as one clear message with status 2, a clean end on Ctrl-C, log lines on
standard error, commands that are imported when they are called, and the options for workers."""

from __future__ import annotations

import difflib
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from types import FrameType
from typing import Any

import click

from spkbase.errors import SpkverError
from spkbase.packages import OURS
from spkbase.progress import at_work

FILE = click.Path(path_type=Path)
Function = Callable[..., Any]
Decorator = Callable[[Any], Any]
STATUS_ERROR = 2

OUTPUTS = {
    "--output",
    "--save",
    "--json",
    "--latex",
    "--markdown",
    "--plot",
    "--zoo",
    "--conversations",
    "destination",
}
"""Options and arguments that name output files, the same in all commands."""

HELP = {"help_option_names": ["-h", "--help"]}

_ENGINE = "spkbase.engine"  # key of the option in a context of Click
_ARGUMENT = re.compile(
    r"\b([a-z][a-z_]*)=(?:(True)\b|[A-Z]\w*\(([^()]*)\)|'([^']*)'|([A-Z]+|-?\d+)\b)"
)
_UNKNOWN = re.compile(r"(?:; |, or |\()[^;()]*\b(?:missing|duplicates|in_order)=\S[^;()]*")


def in_options(text: str, command: click.Command) -> str:
    """Rewrite the arguments of Python functions in a message as options; remedies with options that the command lacks
    are left out.

    Examples
    --------
    >>> @click.command()
    ... @click.option("--missing")
    ... @click.option("--key-columns")
    ... def metrics(missing: str, key_columns: str) -> None: ...
    >>> in_options("give other=1, missing='drop' or key_columns=Choice(model='a', label='b')", metrics)
    'give other=1, --missing drop or --key-columns model=a,label=b'
    >>> in_options("a repeated trial (keep one; duplicates='first' reads the first line)", metrics)
    'a repeated trial (keep one)'
    """
    options = {}
    for parameter in command.params:
        for name in parameter.opts:
            options[name.lstrip("-").replace("-", "_")] = name

    def option(match: re.Match[str]) -> str:
        name, true, parts, *values = match.groups()
        if name not in options:
            return match[0]
        if true:
            return options[name]
        if parts is None:
            value = next(filter(None, values), "")
        else:
            value = re.sub(r"layout=|'|\s", "", parts)
        return f"{options[name]} {value}".rstrip()

    text = _ARGUMENT.sub(option, text)
    return _UNKNOWN.sub(lambda match: match[0][0].strip(";,"), text).replace(" ()", "")


class Command(click.Command):
    """A command that ends at an error with one clear message and status 2, and at Ctrl-C with status 130 and without
    remaining workers.

    A last paragraph of its help text, "Example:" with command lines, is shown below the options.

    It refuses a repeated option that takes one value: click silently keeps the last. It refuses an output that is also
    an input (``calibrate -k KEY -o KEY``), or another output.
    """

    going_on = ""

    def __init__(self, name: str | None, *, help: str | None = None, **options: Any) -> None:
        about, _, lines = cleandoc(help or "").partition("\n\nExample:\n")
        epilog = f"\b\nExample:\n{lines}" if lines else None
        settings = {**HELP, "show_default": True}
        super().__init__(
            name, context_settings=settings, help=about or None, epilog=epilog, **options
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; refuse repeated options and overwritten files."""
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in given:
            if given.count(parameter) > 1 and _takes_one_value(parameter):
                raise click.UsageError(
                    f"{parameter.opts[-1]} is given more than once; it takes one value", ctx
                )
        taken: dict[Path, str] = {}
        for parameter in sorted(dict.fromkeys(given), key=_is_output):  # inputs come first
            name = parameter.opts[-1]
            for text in _files_of(parameter, values.get(parameter.name or "")):
                before = taken.setdefault(Path(text).resolve(), name)
                if _is_output(parameter) and before != name:
                    raise click.UsageError(
                        f"{name} would replace {text}, the file of {before}: name another file", ctx
                    )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command on its engine.

        Turn errors into a message and an exit status, and stop the workers on an interrupt.
        """
        came: list[int] = []

        def interrupt(number: int, frame: FrameType | None) -> None:
            from spkbase.plugins import end_commands

            came.append(number)
            end_commands()
            raise KeyboardInterrupt

        handlers = _handle(interrupt)
        try:
            ctx.with_resource(at_work(self.name or ""))
            engine = ctx.meta.get(_ENGINE, "auto")
            if engine == "auto":
                return super().invoke(ctx)
            from spkbase.work import WAIT, use_engine  # loads NumPy, which help texts do not need

            with use_engine(engine, timeout=float(os.environ.get("SPKVER_WAIT", WAIT))):
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (SpkverError, OSError, MemoryError, KeyboardInterrupt) as error:
            if not came and not isinstance(error, KeyboardInterrupt):
                click.echo(f"Error: {in_options(_text_of(error), self)}", err=True)
                ctx.exit(STATUS_ERROR)
            _handle(signal.SIG_IGN)  # a second Ctrl-C must not disturb the clean end
            from spkbase.plugins import interrupted
            from spkbase.work import stop_workers

            stop_workers()
            interrupted.clear()
            number = came[0] if came else signal.SIGINT
            ended = "terminated" if number == signal.SIGTERM else "interrupted"
            click.echo(ended + self.going_on, err=True)
            ctx.exit(128 + number)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


class ResumableCommand(Command):
    """A command that reuses its finished steps when it is called again; the message at an interrupt says so."""

    going_on = "; finished steps are kept, the same command resumes from there"


class CommandGroup(click.Group):
    """A group whose commands are imported when they are called, so that its help is fast.

    Parameters
    ----------
    table : mapping of str to (str, str)
        For the words of a command, such as ``simulate rsr2015``, its ``MODULE:NAME`` and a summary. A command that
        begins with the words of another belongs to the group of that name.
    """

    def __init__(
        self, *arguments: Any, table: Mapping[str, tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*arguments, context_settings=HELP, **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return [name for name in self.table if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it; None if the table does not have it."""
        if cmd_name not in self.list_commands(ctx):
            return None
        where, about = self.table[cmd_name]
        start = f"{cmd_name} "
        below = {
            name.removeprefix(start): row
            for name, row in self.table.items()
            if name.startswith(start)
        }
        if below:
            return CommandGroup(cmd_name, table=below, help=about)
        module, _, name = where.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line; the error for an unknown command suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=2)
            if near:
                ctx.fail(f"No such command {args[0]!r}: did you mean {' or '.join(near)}?")
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help section on commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])


@contextmanager
def echo_log(level: int = logging.INFO) -> Iterator[None]:
    """Show log lines of this project's packages on standard error, from the given level up."""
    handler = _EchoHandler(level)
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


def path_option(*names: str, help: str, **settings: Any) -> Decorator:
    """Make an option that takes a path."""
    return click.option(*names, type=FILE, help=help, **settings)


def _text_of(error: BaseException) -> str:
    """Return the message for an error; for a system error, it names the file."""
    text = str(error)
    if isinstance(error, MemoryError):
        return f"memory ran out: {text or 'none left'} (use fewer workers)"
    if isinstance(error, OSError):
        text = error.strerror or text
        if error.filename:
            return f"{error.filename}: {text}"
    return text


def choice_option(*names: str, choices: Iterable[str], help: str, **settings: Any) -> Decorator:
    """Make an option that takes one of several words; the first is the default, unless one is required."""
    words = list(choices)
    if not settings.get("required"):
        settings = {"default": words[0], **settings}
    return click.option(*names, type=click.Choice(words), help=help, **settings)


def number_option(
    *names: str, default: int | None = 0, least: int = 0, help: str, **settings: Any
) -> Decorator:
    """Make an option that takes a whole number."""
    return click.option(
        *names, type=click.IntRange(min=least), default=default, help=help, **settings
    )


def together(*options: Decorator) -> Decorator:
    """Join several option decorators into one; the help shows the options in this order."""

    def decorate(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def log_option(command: Function) -> Function:
    """Add the option ``--verbose``; log lines are shown while the command runs."""

    def show_log(context: click.Context, _: click.Parameter, verbose: bool) -> None:
        level = logging.DEBUG if verbose else logging.INFO
        context.with_resource(echo_log(level))

    option = click.option(
        *("-v", "--verbose"),
        is_flag=True,
        expose_value=False,
        callback=show_log,
        help="Show the details too, which are in run.log.",
    )
    return option(command)


def worker_options(command: Function) -> Function:
    """Add the options ``--jobs`` and ``--engine`` to a `Command`, which receives only `jobs`; its maps run on the
    engine.

    The environment variable ``SPKVER_WAIT`` sets how many seconds a Dask cluster may take to provide a worker.

    Examples
    --------
    >>> @click.command(cls=Command)
    ... @worker_options
    ... def work(jobs: int | None) -> None: ...
    >>> [option.name for option in work.params]
    ['jobs', 'engine']
    """

    jobs = click.option(
        "--jobs", type=click.IntRange(min=1), help="Workers on this machine; all cores by default."
    )
    engines = click.option(
        "--engine",
        metavar="auto|threads|loky|ray|spark|tcp://HOST:PORT",
        default="auto",
        expose_value=False,
        callback=lambda ctx, _, engine: ctx.meta.update({_ENGINE: engine}),
        help="Workers: threads or processes (loky) of this machine, each where it fits; or a cluster.",
    )
    return jobs(engines(command))


def _takes_one_value(parameter: click.Parameter) -> bool:
    if not isinstance(parameter, click.Option):
        return False
    return not (
        parameter.multiple
        or parameter.count
        or (parameter.is_flag and not parameter.secondary_opts)
    )


def _files_of(parameter: click.Parameter, value: Any) -> list[str]:
    """Return the files that a parameter names; not folders, and not the standard streams."""
    if not isinstance(parameter.type, click.Path):
        return []
    values = value if isinstance(value, (list, tuple)) else [value]
    return [
        text for text in values if isinstance(text, str) and text != "-" and not Path(text).is_dir()
    ]


def _handle(handler: Any) -> dict[int, Any]:
    """Set the handler of Ctrl-C and SIGTERM; return the previous handlers. Ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {
        number: signal.signal(number, handler)
        for number, old in before.items()
        if old != signal.SIG_IGN
    }


def _is_output(parameter: click.Parameter) -> bool:
    return not OUTPUTS.isdisjoint(parameter.opts)


class _EchoHandler(logging.Handler):
    warned: frozenset[str] = frozenset()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to standard error, a warning with its level and once; records for log files are skipped."""
        text = record.getMessage()
        if getattr(record, "file_only", False) or text in self.warned:
            return
        if record.levelno >= logging.WARNING:
            self.warned |= {text}
            text = f"{record.levelname.capitalize()}: {text}"
        from tqdm import tqdm

        with tqdm.external_write_mode(
            file=sys.stderr
        ):  # printed above the progress bar, if there is one
            click.echo(text, err=True)
