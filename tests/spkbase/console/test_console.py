"""What all command lines share: one message, an exit status, a clean end."""

from __future__ import annotations

import errno
import logging
import signal
import subprocess
import sys
import time
import weakref

import click
import pytest

from spkbase.console.commands import Command, Group, echo_log
from spkbase.errors import ConfigError, DataError, WorkerError


def run(action, capsys, kind=Command) -> tuple[int, str]:
    @click.command(cls=Command)
    def main() -> None:
        action()

    command = main
    arguments: list[str] = []
    if kind is Group:
        command = click.group(cls=Group)(lambda: None)
        command.add_command(main, "main")
        arguments = ["main"]
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    return int(end.value.code or 0), capsys.readouterr().err


def fail(error):
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize("kind", [Command, Group])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("wrong", file="a.txt", line=3, remedy="mend it"), "Error: a.txt:3: wrong (mend it)\n"),
        (ConfigError("seed is -1"), "Error: seed is -1\n"),
        (WorkerError("killed"), "Error: killed\n"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.txt"), "Error: a.txt: No such file or dir"),
        (OSError("strange"), "Error: strange\n"),
        (MemoryError("Unable to allocate 9 TiB"), "Error: memory ran out: Unable to allocate 9 TiB"),
        (RuntimeError("can't start new thread"), "Error: no more threads can be started"),
    ],
)
def test_errors_are_one_message(capsys, error, message, kind):
    status, err = run(fail(error), capsys, kind)
    assert status == 2
    assert err.startswith(message)
    assert err.count("Error") == 1


def test_bugs_are_not_hidden(capsys):
    @click.command(cls=Command)
    def main() -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        main.main([])


@pytest.mark.parametrize("kind", [Command, Group])
@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signals_end_with_their_status(capsys, number, status, word, kind):
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    found, err = run(lambda: signal.raise_signal(number), capsys, kind)
    assert found == status
    assert err.startswith(word)
    assert "Error" not in err
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers


class ClearsUp:
    """Something in whose removal a signal comes, where Python drops what is raised."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


class Remembered:
    pass


def clears_up(number: int) -> None:
    ClearsUp(number)


def calls_back(number: int) -> None:
    remembered = Remembered()
    kept = weakref.ref(remembered, lambda _: signal.raise_signal(number))
    del remembered
    assert kept() is None


@pytest.mark.parametrize("dropped", [clears_up, calls_back])
@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_that_python_drops_comes_again(capsys, number, status, word, dropped):
    hook = sys.unraisablehook

    def action() -> None:
        dropped(number)
        for _ in range(1000):
            time.sleep(0.01)

    found, err = run(action, capsys)
    assert found == status
    assert err.startswith(word)
    assert sys.unraisablehook is hook


def test_other_errors_that_python_drops_are_shown_as_before(capsys, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: shown.append(str(dropped.exc_value)))

    class Breaks:
        def __del__(self) -> None:
            raise ValueError("in vain")

    status, _ = run(lambda: Breaks() and None, capsys)
    assert (status, shown) == (0, ["in vain"])


def test_what_breaks_on_the_way_out_is_part_of_the_interrupt(capsys):
    def action() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            raise RuntimeError("half started")

    status, err = run(action, capsys)
    assert status == 143
    assert "half started" not in err


IMPATIENT = """
import atexit, os, signal, click
from spkbase.console import Command
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGINT, signal.SIGTERM):
    atexit.register(os.kill, os.getpid(), number)
click.command(cls=Command)(lambda: signal.raise_signal(signal.SIGTERM)).main([])
"""


def test_more_signals_while_python_ends_change_nothing():
    done = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "terminated\n")


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_threads_in_libraries(number):
    """Python that ended under them would end by SIGABRT."""
    with subprocess.Popen([sys.executable, "-c", BUSY_THREADS], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(number)
        _, err = run.communicate(timeout=60)
    assert run.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], err
    assert b"terminate called" not in err
