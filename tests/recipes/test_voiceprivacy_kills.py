"""The VoicePrivacy recipe, killed at random moments and started again, ends with the bits of an undisturbed run."""

from __future__ import annotations

import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from dask_cluster import DaskCluster, wait_until
from recipe_runs import leftovers
from test_interrupts import STATUS, processes, wait_for
from voiceprivacy_outputs import check_same, outputs
from voiceprivacy_runs import SUFFIX, lines_of, recipe_options, write, write_layout

from spkbase.runs import read_status
from spkver.anonymization.directories import RECORD
from spkver.commands.status import twin_status

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
BRIEF = {
    "anonymizer__training_draws": 2,
    "anonymizer__trial_draws": 2,
    "attackers": "[gmm-ubm,gmm-svm]",
    "attacker_settings.gmm-svm.norm": "{kind: s, speakers: 2}",
    "evaluation__replicates": 50,
}
# every step has something to do
WHOLE = {**BRIEF, "utility__f0": "true", "utility__emotion": "[moods_test]"}
ANONYMISER = ("--suffix", "_mcadams")
MOST = 18  # utterances in a folder

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set without twins, which the recipe makes, and a set of emotions; read only."""
    root = write_layout(tmp_path_factory.mktemp("originals"))
    for twin in root.glob(f"*{SUFFIX}"):
        shutil.rmtree(twin)
    shutil.copytree(root / "tiny_test_trials_f", root / "moods_test")
    path = root / "moods_test/wav.scp"
    write(path, [line.replace("tiny_test_trials_f/", "moods_test/") for line in lines_of(path)])
    utterances = [line.split()[0] for line in lines_of(root / "moods_test/utt2spk")]
    write(root / "moods_test/utt2emo", [f"{one} {'sad' if one.endswith('3') else 'glad'}" for one in utterances])
    return root


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody has disturbed, by one worker: its data, settings, what it left behind, and its seconds."""

    originals: Path
    settings: dict[str, object]
    outputs: dict[str, object]
    seconds: float


def start(originals: Path, output: Path, settings: dict[str, object], *arguments: str) -> subprocess.Popen:
    """Start the recipe; what it says goes to a file beside the output, which a worker left behind cannot keep open."""
    command = [sys.executable, str(RECIPE), *recipe_options(originals, output, *ANONYMISER, *arguments, **settings)]
    with said(output).open("w") as file:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


def said(output: Path) -> Path:
    return output.with_name(f"{output.name}.err")


def undisturbed(originals: Path, output: Path, settings: dict[str, object]) -> Undisturbed:
    started = time.monotonic()
    with start(originals, output, settings, "--jobs", "1") as run:
        run.wait(300)
    assert run.returncode == 0, said(output).read_text()
    return Undisturbed(originals, settings, outputs(output), time.monotonic() - started)


@pytest.fixture(scope="module")
def brief(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Without utility, which loads much before it works."""
    return undisturbed(originals, tmp_path_factory.mktemp("brief") / "out", BRIEF)


@pytest.fixture(scope="module")
def whole(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """With all steps."""
    return undisturbed(originals, tmp_path_factory.mktemp("whole") / "out", WHOLE)


def attempt(
    like: Undisturbed, output: Path, seconds: float, *arguments: str, number: signal.Signals = signal.SIGKILL
) -> str | None:
    """Start the recipe and end it so long after its first line; gives what it said if it was ended at work."""
    with start(like.originals, output, like.settings, "--jobs", "2", *arguments) as run:
        wait_for(lambda: said(output).stat().st_size or run.poll() is not None)
        try:
            run.wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(run.pid, number)
        run.wait(60)
    wait_for(lambda: not processes(run.pid))  # no worker outlives it
    err = said(output).read_text()
    assert run.returncode in (0, -number, STATUS.get(number)), err
    if run.returncode == -number and number != signal.SIGKILL and "\nfinished\n" in err:
        return None  # all was done, and Python about to end, with signals as they were before the command
    return err if run.returncode else None


def check_nothing_twice(output: Path, n_killed: int) -> None:
    """At most what was in flight is done again: a stage of one chunk, or the batches of utterances."""
    log = (output / "run.log").read_text()
    done = re.findall(r": (scores of \S+ in \S+|evaluation): [\d.]+ s\n", log)
    assert len(done) <= len(set(done)) + n_killed
    n_asked = sum(int(due) for due in re.findall(r"anonymising (\d+) of \d+ utterances", log))
    n_utterances = sum(len(list(wav.iterdir())) for wav in output.glob("data/*/wav"))
    # each time one folder is at work, of which all batches may be in flight: folders here are not larger
    assert n_asked <= n_utterances + n_killed * MOST


def kill_often(like: Undisturbed, folder: Path, times: int, *arguments: str) -> None:
    """Kill at random moments and start again, some times, then let it get through; as often as it takes."""
    moments, killed, met = random.Random(times), 0, set()
    while killed < times:
        output, kills = folder / f"after {killed}", 0
        for share in moments.sample([1 / 8, 1 / 4, 1 / 2, 1 / 2, 1], min(5, times)):
            err = attempt(like, output, moments.uniform(0, share * like.seconds), *arguments)
            if err is None:
                break
            kills += 1
            met |= set(re.findall(r"spkver\.\S+: ([^\n:]+): [^\n]+\n$", (output / "run.log").read_text()))
            if (output / "stages.json").exists():
                read_status(output, {RECORD: twin_status})
        assert attempt(like, output, 300, *arguments) is None
        killed += kills
        check_same(output, like.outputs)
        check_nothing_twice(output, kills)
        shutil.rmtree(output)
    logging.getLogger(__name__).info("%d kills met %s", killed, ", ".join(sorted(met)))


def test_killed_and_started_again(brief, tmp_path):
    kill_often(brief, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "threads", "loky"])
def test_killed_20_times(whole, tmp_path, engine):
    kill_often(whole, tmp_path, 20, "--engine", engine)


def interrupt(like: Undisturbed, output: Path, number: signal.Signals, times: int) -> None:
    """End a run some times at random moments, then let it get through."""
    moments = random.Random(int(number))
    ended = [attempt(like, output, moments.uniform(0.5, like.seconds / 2), number=number) for _ in range(times)]
    assert any(ended)
    for err in filter(None, ended):
        assert "the same command goes on from there" in err
        assert "Traceback" not in err
    assert not leftovers(output)
    assert attempt(like, output, 300) is None
    check_same(output, like.outputs)


def test_an_interrupt_leaves_no_worker_and_no_temporary_file(brief, tmp_path):
    interrupt(brief, tmp_path / "out", signal.SIGINT, 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", list(STATUS))
def test_interrupted_often(whole, tmp_path, number):
    interrupt(whole, tmp_path / "out", number, 5)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DaskCluster]:
    """A cluster that the test may kill; recipe modules are not installed on its workers."""
    pytest.importorskip("distributed")
    (tmp_path / "cluster").mkdir()
    with closing(DaskCluster(tmp_path / "cluster")) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_on_a_cluster_that_loses_workers(whole, own, tmp_path, seed):
    """One is killed when the UBM comes, then the other at a random moment, each when another has been started."""
    output, moments = tmp_path / "out", random.Random(seed)
    with start(whole.originals, output, whole.settings, "--engine", own.address) as run:
        wait_for(lambda: run.poll() is not None or "UBM" in said(output).read_text(), seconds=120)
        for worker in own.workers[:2]:
            own.start_worker()
            worker.kill()
            time.sleep(moments.uniform(0, whole.seconds / 3))
        run.wait(300)
    assert run.returncode == 0, said(output).read_text()
    check_same(output, whole.outputs)


@pytest.mark.slow
def test_killed_on_a_cluster(whole, own, tmp_path):
    """The next run on the same scheduler is not disturbed by what it still has of the last."""
    kill_often(whole, tmp_path, 4, "--engine", own.address)
    wait_until(lambda: own.n_tasks() == 0, "an end of all tasks")
