"""Ctrl-C, SIGTERM and killed workers: a clean end, nothing left behind, and the same bits when the run goes on."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recipe_runs import COMMANDS, RECIPES, datasets, leftovers, options
from tiny_corpus import write_tiny_corpus

pytestmark = [
    pytest.mark.whole(seconds=40),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


def hear():
    """Let Ctrl-C be heard, which background jobs of a shell ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def processes(session=None):
    """Running processes of a session (what the recipe started is in its own), or all, and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if session in (None, int(fields[3])) and fields[0] != "Z":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:  # the process has just ended
                continue
    return found


def wait_for(condition, *, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_ctrl_c_during_extraction_ends_cleanly(tiny, tmp_path):
    """To the whole group, as a terminal sends it, with workers at work."""
    command = [sys.executable, str(RECIPES / "svm_gmm.py"), *options(tiny, tmp_path, "--jobs", "2")]
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, preexec_fn=hear, **streams) as run:
        try:
            wait_for(
                lambda: any("LokyProcess" in command for command in processes(run.pid).values())
            )
            os.killpg(run.pid, signal.SIGINT)
            _, err = run.communicate(timeout=30)
        finally:
            run.kill()
    assert run.returncode == 130, err
    assert "Traceback" not in err
    assert not [
        line for line in err.splitlines() if re.search("Error|Warning|Exception|loky|Thread", line)
    ]
    assert "the same command resumes from there" in err
    wait_for(lambda: not processes(run.pid), seconds=5)
    assert not leftovers(tmp_path)
    assert not (tmp_path / "results.json").exists()


# --- kills at random moments --------------------------------------------------------------------------------------

# speakers of both kinds, and settings with which a moment drawn at random meets every stage, or one of the long ones
LARGE = ((20, 12), {"ubm__components": 64, "background__size": 100})
SMALL = ((10, 6), {"ubm__components": 16, "background__size": 40})
SETTINGS = {
    "ubm__iterations": "[1, 1, 2, 2, 4, 4]",
    "nap__rank": 10,
    "report__formats": "[png]",
    "total_variability__rank": 8,
    "joint_factors__speaker_rank": 4,
    "joint_factors__channel_rank": 4,
}


def killed(page, corpus, output, seconds, settings):
    """Start a recipe and kill it with its workers so long after its first line; returns whether it was at work."""
    chosen = options(corpus, output, "--jobs", "2", **settings)
    errors = output.with_suffix(".err")
    with errors.open("w") as file:
        command = [sys.executable, str(RECIPES / f"{page}.py"), *chosen]
        run = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True
        )
    wait_for(lambda: errors.stat().st_size or run.poll() is not None, seconds=60)
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    wait_for(lambda: not processes(run.pid), seconds=60)
    assert run.returncode in (0, -signal.SIGKILL), errors.read_text()
    return run.returncode != 0


def check_same(output, undisturbed):
    assert datasets(output) == datasets(undisturbed)
    results = [
        json.loads((folder / "results.json").read_text()) for folder in (output, undisturbed)
    ]
    assert all(results[0][name] == results[1][name] for name in ("systems", "lists", "config"))
    for path in undisturbed.glob("scores/*.txt"):
        assert (output / "scores" / path.name).read_bytes() == path.read_bytes()
    assert not leftovers(output)


@pytest.mark.parametrize(
    ("page", "times", "size"),
    [
        ("svm_gmm", 1, SMALL),
        *(
            pytest.param(page, 10, LARGE, marks=pytest.mark.slow)
            for page in ("svm_gmm", "ivector", "jfa")
        ),
    ],
    ids=["svm_gmm-1", "svm_gmm-10", "ivector-10", "jfa-10"],
)
def test_a_killed_run_started_again_gives_the_same_bits(tmp_path, page, times, size):
    (background, evaluation), settings = size
    settings = SETTINGS | settings
    corpus, expected, began = tmp_path / "corpus", tmp_path / "expected", time.monotonic()
    write_tiny_corpus(
        corpus, background=range(1, background + 1), evaluation=range(101, evaluation + 101)
    )
    with pytest.raises(SystemExit) as end:
        COMMANDS[page].main(options(corpus, expected, "--jobs", "1", **settings))
    assert not end.value.code
    seconds = time.monotonic() - began
    moments, kills, output = random.Random(times), 0, tmp_path / "out"
    while kills < times:
        # later and later: an unfinished stage begins anew
        moment = moments.uniform(0, seconds / 2) * 1.1**kills
        if killed(page, corpus, output, moment, settings):
            kills += 1
        else:
            check_same(output, expected)
            output = tmp_path / f"after {kills}"
    while killed(page, corpus, output, 10 * seconds, settings):
        pass
    check_same(output, expected)
