"""What is killed by SIGKILL at random moments and started again ends with the bits of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from dask_cluster import DaskCluster
from recipe_runs import COMMANDS, datasets, leftovers, options
from test_interrupts import RECIPES, processes, wait_for
from tiny_corpus import write_tiny_corpus

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

PAGES = ("svm_gmm", "gmm_ubm", "ivector", "jfa")
# several chunks in every stage, each long enough to be met
SETTINGS = {
    "ubm__components": 64,
    "ubm__iterations": "[1, 1, 2, 2, 4, 4]",
    "nap__rank": 10,
    "background__size": 100,
    "report__formats": "[png]",
    "total_variability__rank": 8,
    "joint_factors__speaker_rank": 4,
    "joint_factors__channel_rank": 4,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """More speakers than the tiny corpus; read only."""
    return write_tiny_corpus(
        tmp_path_factory.mktemp("kills") / "corpus", background=range(1, 21), evaluation=range(101, 113)
    )


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """Output of a run of a recipe by one worker, and its seconds; read only."""

    @cache
    def run(page: str) -> tuple[Path, float]:
        output, started = tmp_path_factory.mktemp("undisturbed") / "out", time.monotonic()
        with pytest.raises(SystemExit) as end:
            COMMANDS[page].main(options(corpus, output, "--jobs", "1", **SETTINGS))
        assert not end.value.code
        return output, time.monotonic() - started

    return run


def killed(page: str, corpus: Path, output: Path, seconds: float) -> bool:
    """Start a recipe and kill it with its workers so long after its first line; returns whether it was at work."""
    chosen = options(corpus, output, "--jobs", "2", **SETTINGS)
    errors = output.with_suffix(".err")
    with errors.open("w") as file:
        command = [sys.executable, str(RECIPES / f"{page}.py"), *chosen]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)
    wait_for(lambda: errors.stat().st_size or run.poll() is not None, seconds=60)
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    wait_for(lambda: not processes(run.pid), seconds=60)
    assert run.returncode in (0, -signal.SIGKILL), errors.read_text()
    return run.returncode != 0


def check_same(output: Path, undisturbed: Path) -> None:
    assert datasets(output) == datasets(undisturbed)
    results = [json.loads((folder / "results.json").read_text()) for folder in (output, undisturbed)]
    assert all(results[0][name] == results[1][name] for name in ("systems", "lists", "config"))
    for path in undisturbed.glob("scores/*.txt"):
        assert (output / "scores" / path.name).read_bytes() == path.read_bytes()
    assert not leftovers(output)


@pytest.mark.parametrize(
    ("page", "times"), [("svm_gmm", 2), *(pytest.param(page, 10, marks=pytest.mark.slow) for page in PAGES)]
)
def test_killed_and_started_again(corpus, undisturbed, tmp_path, page, times):
    expected, seconds = undisturbed(page)
    moments, kills, output = random.Random(times), 0, tmp_path / "out"
    while kills < times:
        # later and later: what is unfinished begins anew
        if killed(page, corpus, output, moments.uniform(0, seconds / 2) * 1.1**kills):
            kills += 1
        else:
            check_same(output, expected)
            output = tmp_path / f"after {kills}"
    while killed(page, corpus, output, 10 * seconds):
        pass
    check_same(output, expected)


@pytest.fixture
def cluster(tmp_path) -> Iterator[DaskCluster]:
    """A cluster that the test may kill."""
    (tmp_path / "cluster").mkdir()
    with closing(DaskCluster(tmp_path / "cluster")) as cluster:
        yield cluster


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_killed_workers_of_a_cluster_change_nothing(corpus, undisturbed, cluster, tmp_path, seed):
    pytest.importorskip("distributed")
    output, (expected, seconds), moments = tmp_path / "out", undisturbed("svm_gmm"), random.Random(seed)
    command = [sys.executable, str(RECIPES / "svm_gmm.py"), *options(corpus, output, **SETTINGS)]
    with subprocess.Popen([*command, "--engine", cluster.address], stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline()
        for number in range(2):
            time.sleep(moments.uniform(0.2, seconds / 2))
            cluster.start_worker()
            cluster.workers[number].kill()
        errors = run.communicate(timeout=240)[1]
    assert run.returncode == 0, errors
    check_same(output, expected)
