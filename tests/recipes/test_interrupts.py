"""Ctrl-C, SIGTERM and killed workers: a clean end, nothing left behind, and the same bits when the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from recipe_runs import COMMANDS, datasets, leftovers, options

RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "rsr2015"
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
# enough work that a signal after a line of the log meets the step that is named
LONG = {
    "ubm__components": 256,
    "ubm__iterations": "[1, 1, 1, 1, 1, 1, 1, 60]",
    "nap__rank": 0,
    "report__formats": "png",
}

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def processes(session: int) -> dict[int, str]:
    """Running processes of a session (what the recipe started is in its own) and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it ended just now
                continue
    return found


def workers(session: int) -> list[int]:
    """Worker processes of a session."""
    return [number for number, command in processes(session).items() if "LokyProcess" in command]


def wait_for(condition, *, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def started(request) -> Iterator[list[subprocess.Popen]]:
    """Recipes that a test starts; none outlives it."""
    running: list[subprocess.Popen] = []
    yield running
    for one in running:
        if one.poll() is None:
            one.kill()
        one.communicate()


def start(started: list[subprocess.Popen], *arguments: str) -> subprocess.Popen:
    def hear() -> None:  # a background job of a shell ignores Ctrl-C, and so would we
        signal.signal(signal.SIGINT, signal.default_int_handler)

    command = [sys.executable, str(RECIPES / "svm_gmm.py"), *arguments]
    run = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=hear
    )
    started.append(run)
    return run


def until(run: subprocess.Popen, word: str) -> None:
    """Read log lines up to one with a word."""
    assert run.stderr is not None
    read = []
    for line in run.stderr:
        read.append(line)
        if word in line:
            return
    raise AssertionError(f"{word!r} never came: {''.join(read)}")


def check_end(run: subprocess.Popen, output: Path, number: signal.Signals) -> None:
    _, err = run.communicate(timeout=30)
    assert run.returncode == STATUS[number], err
    assert "Traceback" not in err
    assert "Error" not in err
    assert "the same command goes on from there" in err
    wait_for(lambda: not processes(run.pid), seconds=5)
    assert not leftovers(output)


def test_ctrl_c_during_extraction(tiny, tmp_path, started):
    """To the whole group, as a terminal sends it, with workers at work."""
    run = start(started, *options(tiny, tmp_path, "--jobs", "2"))
    until(run, "lists:")
    wait_for(lambda: workers(run.pid))
    os.killpg(run.pid, signal.SIGINT)
    check_end(run, tmp_path, signal.SIGINT)
    assert not (tmp_path / "results.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "pause", "kept", "number"),
    [
        ("lists:", 0.5, [], signal.SIGTERM),
        ("post-processing: ", 0.5, ["features.h5"], signal.SIGINT),  # within its rounds
        ("supervectors of test: ", 0.0, ["features.h5", "gmm/ubm.h5", "data/sv_test.h5"], signal.SIGTERM),
    ],
)
def test_interrupted_run_goes_on_with_the_same_bits(tiny, tmp_path, started, line, pause, kept, number):
    arguments = options(tiny, tmp_path / "out", "--jobs", "2", **LONG)
    run = start(started, *arguments)
    until(run, line)
    time.sleep(pause)
    os.kill(run.pid, number)
    check_end(run, tmp_path / "out", number)
    for name in kept:
        assert (tmp_path / "out" / name).is_file()
    for output in ("out", "undisturbed"):
        with pytest.raises(SystemExit) as end:
            COMMANDS["svm_gmm"].main(options(tiny, tmp_path / output, "--jobs", "1", **LONG))
        assert not end.value.code
    assert datasets(tmp_path / "out") == datasets(tmp_path / "undisturbed")


@pytest.mark.slow
def test_killed_worker_is_an_error(tiny, tmp_path, started):
    """Killed from outside, as the system does when memory runs out."""
    for _ in range(5):  # the work is short: the worker may be through with it
        run = start(started, *options(tiny, tmp_path / "out", "--jobs", "2", "--force"))
        until(run, "lists:")
        wait_for(lambda number=run.pid: workers(number))
        os.kill(workers(run.pid)[0], signal.SIGKILL)
        _, err = run.communicate(timeout=60)
        if run.returncode:
            break
    assert run.returncode == 2, err
    assert "Traceback" not in err
    assert "Error: a worker process was killed" in err
    wait_for(lambda: not processes(run.pid), seconds=5)
    assert not leftovers(tmp_path / "out")
