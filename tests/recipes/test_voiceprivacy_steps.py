"""A run of the VoicePrivacy recipe that is cut up, killed, damaged or on a cluster ends with the same bits."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from dask_cluster import DaskCluster
from recipe_runs import Outcome
from test_interrupts import STATUS, processes, wait_for
from voiceprivacy_outputs import check_same, outputs
from voiceprivacy_runs import recipe_options, run_recipe, write_originals

from spkver.cli import main

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
ANONYMISER = ("--suffix", "_mcadams")
SETTINGS = {"attackers": "[gmm-svm]", "evaluation__replicates": 0}
SCORES = "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f_mcadams/gmm-svm/scores"
CONDITIONS = "numbers/tiny_test_mcadams/gmm-svm.json"


def run(data: Path, output: Path, *arguments: str, **settings: object) -> Outcome:
    return run_recipe(data, output, *ANONYMISER, *arguments, **{**SETTINGS, **settings})


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set without twins, which the recipe makes; read only."""
    return write_originals(tmp_path_factory.mktemp("originals"))


@pytest.fixture(scope="module")
def finished(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("finished")
    outcome = run(originals, folder / "out")
    assert outcome.status == 0, outcome.err
    return Path(shutil.copytree(folder / "out", folder / "copy"))


@pytest.fixture
def output(finished: Path) -> Path:
    """The same in its own place, times of change included, for a test to go on from: paths are part of stages."""
    place = finished.with_name("out")
    shutil.rmtree(place)
    return Path(shutil.copytree(finished, place))


def test_one_step_after_the_other_gives_the_same(originals, finished, tmp_path):
    output = tmp_path / "out"
    for step in ("checks", "anonymisation", "scores", "evaluation", "utility"):
        outcome = run(originals, output, "--until", step)
        assert outcome.status == 0, outcome.err
        assert f"  {step}: " in outcome.out
        assert "the same command without --until" in outcome.out
        assert (output / "data").exists() == (step != "checks")
        assert (output / SCORES).exists() == (step in ("scores", "evaluation", "utility"))
        assert (output / CONDITIONS).exists() == (step in ("evaluation", "utility"))
        assert not (output / "results.json").exists()
    outcome = run(originals, output, "--only", "report")
    assert outcome.status == 0, outcome.err
    check_same(output, outputs(finished))


def test_only_takes_what_is_there_and_does_one_step(originals, output):
    before = outputs(output)
    (output / CONDITIONS).unlink()
    shutil.rmtree(output / "work")  # nobody learns again
    outcome = run(originals, output, "--only", "evaluation")
    assert outcome.status == 0, outcome.err
    assert "checks: " not in outcome.out
    assert "To go on (utility, report)" in outcome.out
    assert not (output / "work").exists()
    check_same(output, {**before, "arrays": outputs(output)["arrays"]})
    assert run(originals, output, "--only", "evaluation", evaluation__sizes="[2]").status == 0
    assert {len(one["linkability"]["sizes"]) for one in json.loads((output / CONDITIONS).read_text())} == {1}


@pytest.mark.parametrize(
    ("step", "gone", "settings", "words"),
    [
        ("evaluation", SCORES, {}, f"{SCORES}: 'scores of gmm-svm in .*' is missing"),
        ("report", CONDITIONS, {}, f"{CONDITIONS}: 'numbers of gmm-svm on tiny_test_mcadams' is missing"),
        (
            "scores",
            "data/tiny_train_mcadams/anonymization.json",
            {},
            "the anonymised folder is missing",
        ),
        ("scores", "data/tiny_train_mcadams/wav/f101-1.wav", {}, "tiny_train_mcadams: 17 of 18 utterances are anonym"),
        ("evaluation", None, {"seed": 1}, "0 of 14 utterances are anonymised by this anonymiser"),
        ("evaluation", None, {"attacker_settings.gmm-svm.map.relevance": 7}, "is stale, and is needed as it is"),
        ("scroes", None, {}, "'scroes' is no step: expected one of simulation, checks, anonymisation, scores, eval"),
        ("simulation", None, {}, "there is nothing to simulate"),
    ],
)
def test_only_says_what_it_lacks(originals, output, step, gone, settings, words):
    if gone:
        (output / gone).unlink()
    outcome = run(originals, output, "--only", step, **settings)
    assert outcome.status == 2
    assert re.search(words, outcome.error), outcome.error
    assert not gone or not (output / gone).exists()


def test_only_and_until_exclude_each_other(originals, tmp_path):
    outcome = run(originals, tmp_path / "out", "--only", "scores", "--until", "report")
    assert outcome.status == 2
    assert "exclude each other" in outcome.error


def test_status_shows_what_is_done(originals, output):
    def states() -> dict[str, str]:
        result = CliRunner().invoke(main, ["status", "--json", str(output)])
        assert result.exit_code == 0, result.output
        return {
            (Path(record["folder"]).name if stage["stage"] == "anonymisation" else stage["stage"]): stage["state"]
            for record in json.loads(result.output)
            for stage in record["stages"]
        }

    found = states()
    assert set(found.values()) == {"done"}
    assert {"tiny_train_mcadams", "evidence"} <= set(found)
    (output / "data/tiny_train_mcadams/wav/f101-1.wav").unlink()
    (output / SCORES).write_bytes(b"")
    found = states()
    assert found["tiny_train_mcadams"] == "missing"
    assert found[f"scores of gmm-svm in {Path(SCORES).parents[1]}"] == "damaged"


def test_force_makes_everything_again(originals, output):
    before = outputs(output)
    patterns = ("data/*/wav/*.wav", "work/*/*.h5", "work/*/*/*.h5", "attackers/*/*/attacker.h5", "exp/*/*/*/scores")
    files = [path for pattern in patterns for path in output.glob(pattern)] + [output / CONDITIONS]
    held = {path: path.open("rb") for path in files}  # open: no new file gets the number of a removed one
    outcome = run(originals, output, "--force")
    assert outcome.status == 0, outcome.err
    check_same(output, before)
    assert len(files) > 60
    assert not [
        path for path in files if path.exists() and os.path.samestat(path.stat(), os.fstat(held[path].fileno()))
    ]
    for file in held.values():
        file.close()


# what is made of a file is removed with it, so that the file is asked for
NEEDED = ("exp/*/*/*/scores", "attackers/*/*/attacker.yaml", "work/*/data/stat_*.h5")


@pytest.mark.parametrize("damage", [lambda path: os.truncate(path, path.stat().st_size // 2), Path.unlink])
@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("data/tiny_test_trials_f_mcadams/wav/f001-3.wav", 0),
        (SCORES, 0),
        (SCORES.replace("trials_f", "trials_all"), 0),
        (CONDITIONS, 0),
        ("stages.json", 0),
        ("attackers/tiny_train/gmm-svm/attacker.h5", 1),
        ("work/tiny_train-*/data/stat_sessions-*.h5", 2),
        ("work/ubm-*/gmm/ubm.h5", 2),
        ("work/tiny_test_enrolls-*/features.h5", 3),
    ],
)
def test_what_is_damaged_or_gone_is_made_again(originals, finished, output, pattern, needed, damage):
    for path in [path for one in NEEDED[:needed] for path in output.glob(one)]:
        path.unlink()
    damage(next(output.glob(pattern)))
    outcome = run(originals, output)
    assert outcome.status == 0, outcome.err
    check_same(output, outputs(finished))


# --- processes ------------------------------------------------------------------------------------

BRIEF = {
    "anonymizer__training_draws": 2,
    "anonymizer__trial_draws": 2,
    "attackers": "[gmm-ubm,gmm-svm]",
    "evaluation__replicates": 50,
}


def start(originals: Path, output: Path, *arguments: str) -> subprocess.Popen:
    """Start the recipe; what it says goes to a file beside the output, which a worker left behind cannot keep open."""
    command = [sys.executable, str(RECIPE), *recipe_options(originals, output, *ANONYMISER, *arguments, **BRIEF)]
    with output.with_suffix(".err").open("w") as file:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


@pytest.fixture(scope="module")
def undisturbed(originals, tmp_path_factory) -> tuple[dict[str, object], float]:
    """What one worker makes that nobody disturbs, and its seconds."""
    output, started = tmp_path_factory.mktemp("undisturbed") / "out", time.monotonic()
    with start(originals, output, "--jobs", "1") as process:
        process.wait(300)
    assert process.returncode == 0, output.with_suffix(".err").read_text()
    return outputs(output), time.monotonic() - started


def end(
    originals: Path, output: Path, seconds: float, send: Callable[[int, int], None], number: signal.Signals
) -> bool:
    """Start the recipe and end it so long after its first line; whether it was ended at work."""
    err = output.with_suffix(".err")
    with start(originals, output, "--jobs", "2") as process:
        wait_for(lambda: err.stat().st_size or process.poll() is not None)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            send(process.pid, number)
        process.wait(60)
    wait_for(lambda: not processes(process.pid))  # no worker outlives it
    assert process.returncode in (0, -number, STATUS.get(number)), err.read_text()
    return process.returncode != 0


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_started_again(originals, undisturbed, tmp_path, times):
    moments, output = random.Random(times), tmp_path / "out"
    for _ in range(times):
        end(originals, output, moments.uniform(0, undisturbed[1] / 2), os.killpg, signal.SIGKILL)
    assert not end(originals, output, 300, os.killpg, signal.SIGKILL)
    check_same(output, undisturbed[0])


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_no_worker_and_says_how_to_go_on(originals, undisturbed, tmp_path, number):
    output = tmp_path / "out"
    assert end(originals, output, undisturbed[1] / 4, os.kill, number)
    said = output.with_suffix(".err").read_text()
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert not end(originals, output, 300, os.kill, number)
    check_same(output, undisturbed[0])


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same(originals, undisturbed, tmp_path):
    pytest.importorskip("distributed")
    output = tmp_path / "out"
    (tmp_path / "cluster").mkdir()
    with closing(DaskCluster(tmp_path / "cluster")) as cluster:
        with start(originals, output, "--engine", cluster.address) as process:
            wait_for(lambda: process.poll() is not None or "UBM" in output.with_suffix(".err").read_text(), seconds=120)
            cluster.start_worker()
            cluster.workers[0].kill()
            process.wait(300)
        assert process.returncode == 0, output.with_suffix(".err").read_text()
    check_same(output, undisturbed[0])
