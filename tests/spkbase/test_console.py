"""What all command lines share: one message, an exit status, a clean end, options for workers."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from spkbase.console import Command, Group, ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.work import engine_kind
from spkver.cli import main as spkver_main
from spkver.evaluation_cli import main as evaluation_main


def run(action, capsys, *, grouped=False, kind=Command) -> tuple[int, str]:
    @click.command(cls=kind)
    def main() -> None:
        action()

    command, arguments = main, []
    if grouped:
        command, arguments = Group("main", table={}), ["main"]
        command.get_command = lambda *_: main
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    return int(end.value.code or 0), capsys.readouterr().err


def fail(error):
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("wrong", file="a.txt", line=3, remedy="mend it"), "Error: a.txt:3: wrong (mend it)\n"),
        (ConfigError("seed is -1"), "Error: seed is -1\n"),
        (WorkerError("killed"), "Error: killed\n"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.txt"), "Error: a.txt: No such file or dir"),
        (OSError("strange"), "Error: strange\n"),
        (MemoryError("Unable to allocate 9 TiB"), "Error: memory ran out: Unable to allocate 9 TiB"),
    ],
)
def test_errors_are_one_message(capsys, error, message, grouped):
    status, err = run(fail(error), capsys, grouped=grouped)
    assert status == 2
    assert err.startswith(message)
    assert err.count("Error") == 1


def test_bugs_are_not_hidden(capsys):
    with pytest.raises(ZeroDivisionError):
        run(fail(ZeroDivisionError("a bug")), capsys)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signals_end_with_their_status(capsys, number, status, word, grouped):
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    found, err = run(lambda: signal.raise_signal(number), capsys, grouped=grouped)
    assert (found, err) == (status, f"{word}\n")
    found, err = run(lambda: signal.raise_signal(number), capsys, grouped=grouped, kind=ResumableCommand)
    assert (found, err) == (status, f"{word}; finished steps are kept, the same command goes on from there\n")
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_an_ignored_ctrl_c_stays_ignored(capsys):
    """A shell has its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status, _ = run(lambda: signal.raise_signal(signal.SIGINT), capsys)
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 0


def test_log_lines_are_echoed_with_their_level(capsys):
    logger = logging.getLogger("spkver.test_console")
    before = logging.getLogger("spkver").level
    with echo_log(logging.INFO):
        logger.info("step one")
        logger.warning("careful")
        logger.debug("details")
        logger.error("only in the log", extra={"file_only": True})
    logger.info("after")
    assert capsys.readouterr().err == "step one\nWarning: careful\n"
    assert logging.getLogger("spkver").level == before


@pytest.mark.parametrize(("encoding", "expected"), [("latin-1", b"\xfc \\u2192\n"), ("utf-8", "ü →\n".encode())])
def test_letters_that_a_terminal_lacks(encoding, expected):
    code = (
        "import click\nfrom spkbase.console import Command\n"
        "@click.command(cls=Command)\ndef main():\n    click.echo('\\u00fc \\u2192')\nmain()"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60)
    assert (run.stdout, run.returncode) == (expected, 0)


BUSY_THREADS = """
import time
import click, numpy, scipy.fft
from spkbase.console import Command
from spkbase.work import ordered_map

def work(number):  # inside a C++ library for most of a second
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        scipy.fft.rfft(numpy.ones(1 << 20))
    return number

@click.command(cls=Command)
def main():
    for _ in ordered_map(work, range(100), jobs=2, threads=True):
        print("at work", flush=True)

main()
"""


def test_a_signal_waits_for_threads_in_libraries():
    """Python that ended under them would end by SIGABRT."""
    with subprocess.Popen([sys.executable, "-c", BUSY_THREADS], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=60)
    assert run.returncode == 143, err
    assert b"terminate called" not in err


# --- every command ----------------------------------------------------------------------------------------------------


def commands(group: click.Command, *names: str):
    """All commands under a group with their names."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), *names, name)
    else:
        yield names, group


ALL = [
    pytest.param(command, id=" ".join(names))
    for group, root in ((spkver_main, "spkver"), (evaluation_main, "spkver-eval"))
    for names, command in commands(group, root)
]


@pytest.mark.parametrize("command", ALL)
def test_every_command_ends_cleanly_and_has_all_options_for_workers_or_none(command):
    assert isinstance(command, Command)
    assert ("jobs" in (names := {option.name for option in command.params})) == ("engine" in names)


@click.command(cls=Command)
@worker_options
def work(jobs: int | None) -> None:
    click.echo(f"{jobs} {engine_kind()}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "None auto"), (["--jobs", "3", "--engine", "threads"], "3 threads")],
)
def test_the_command_gets_the_jobs_and_runs_on_the_engine(arguments, said):
    assert CliRunner().invoke(work, arguments).stdout == said + "\n"
    assert engine_kind() == "auto"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "spark"], "expected an engine among auto, threads, loky"),
        (["--engine", "http://a:1"], "no Dask scheduler answered at http://a:1"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--jobs", "1", "--jobs", "2"], "--jobs is given more than once; it takes one value"),
    ],
)
def test_options_that_are_refused(arguments, said):
    found = CliRunner().invoke(work, arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
