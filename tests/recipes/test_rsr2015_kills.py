"""A recipe that is killed by SIGKILL at random moments and started again ends with the bits of an undisturbed run."""

from __future__ import annotations

import json
import logging
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recipe_runs import COMMANDS, datasets, leftovers, options
from test_interrupts import RECIPES, processes, wait_for
from tiny_corpus import write_tiny_corpus

from spkbase.runs import read_status

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

# several chunks in every stage, and each long enough to be met
ROUNDS = [1, 1, 2, 2, 4, 4]
SETTINGS = {
    "ubm__components": 64,
    "ubm__iterations": str(ROUNDS),
    "nap__rank": 10,
    "background__size": 100,
    "report__formats": "[png]",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """More speakers than the tiny corpus; read only."""
    return write_tiny_corpus(
        tmp_path_factory.mktemp("kills") / "corpus", background=range(1, 21), evaluation=range(101, 113)
    )


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory) -> tuple[Path, float]:
    """Output of a run by one worker, and its seconds; read only."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    started = time.monotonic()
    with pytest.raises(SystemExit) as end:
        COMMANDS["svm_gmm"].main(options(corpus, output, "--jobs", "1", **SETTINGS))
    assert not end.value.code
    return output, time.monotonic() - started


def attempt(corpus: Path, output: Path, seconds: float, *arguments: str) -> bool:
    """Start the recipe and kill it so long after its first line; returns whether it was killed at work."""
    chosen = options(corpus, output, "--jobs", "2", *arguments, **SETTINGS)
    errors = output.with_suffix(".err")
    with errors.open("w") as file:
        run = subprocess.Popen(
            [sys.executable, str(RECIPES / "svm_gmm.py"), *chosen],
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )
    try:
        wait_for(lambda: errors.stat().st_size or run.poll() is not None, seconds=60)
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        run.kill()
        run.wait()
    wait_for(lambda: not processes(run.pid))
    assert run.returncode in (0, -signal.SIGKILL), errors.read_text()
    return run.returncode != 0


def chunks(output: Path) -> dict[str, tuple[int, int]]:
    """Finished chunks of the stages that are in progress."""
    if not (output / "stages.json").exists():
        return {}
    return {one.stage: one.chunks for one in read_status(output)[0].stages if one.state == "in progress" and one.chunks}


def last_log(output: Path) -> str:
    """The log of the last run."""
    return re.split(r"spkver \S+: \S+svm_gmm.py", (output / "run.log").read_text())[-1]


def metrics(output: Path) -> object:
    results = json.loads((output / "results.json").read_text())
    return {name: results[name] for name in ("systems", "lists", "config")}


def check_same(output: Path, undisturbed: Path) -> None:
    assert datasets(output) == datasets(undisturbed)
    assert metrics(output) == metrics(undisturbed)
    for path in undisturbed.glob("scores/*.txt"):
        assert (output / "scores" / path.name).read_bytes() == path.read_bytes()
    assert not leftovers(output)
    assert not (output / "partial").exists()


def kill_often(corpus: Path, folder: Path, undisturbed: tuple[Path, float], times: int, *arguments: str) -> None:
    """Kill at random moments and start again, until a run gets through; as often as it takes."""
    moments = random.Random(times)
    killed, met = 0, set()
    while killed < times:
        output = folder / f"after {killed}"
        there: dict[str, tuple[int, int]] = {}
        kills = 0
        # later and later: each start has work of its own, which a short time does not get through
        while attempt(corpus, output, moments.uniform(0, undisturbed[1] / 4) * 1.2**kills, *arguments):
            log = last_log(output) if (output / "run.log").exists() else ""
            for stage, (done, of) in there.items():
                check_taken_up(log, stage, done, of)
            there = chunks(output)
            met |= set(re.findall(r"spkver\.run: (.*): started", log)[-1:])
            kills += 1
        killed += kills
        check_same(output, undisturbed[0])
        rounds = len(re.findall(r"UBM \d+ Gaussians", (output / "run.log").read_text()))
        assert rounds <= sum(ROUNDS) + kills, "only the round in flight is done again"
    logging.getLogger(__name__).info("%d kills met %s", killed, ", ".join(sorted(met)))


def check_taken_up(log: str, stage: str, done: int, of: int) -> None:
    """What a stage had done is not done again, if the run came so far as to say so."""
    _, _, follows = log.partition(f"{stage}: started\n")
    # a run may be killed after the file is in its place, before its checksum is written down
    is_whole = done == of and re.search(rf"{re.escape(stage)}: .* is whole, its checksum was missing", follows)
    assert not follows or is_whole or f"{stage}: goes on after {done} of {of} chunks" in follows


def test_killed_and_started_again(corpus, undisturbed, tmp_path):
    kill_often(corpus, tmp_path, undisturbed, 3)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "threads", "loky"])
def test_killed_20_times(corpus, undisturbed, tmp_path, engine):
    kill_often(corpus, tmp_path, undisturbed, 20, "--engine", engine)
