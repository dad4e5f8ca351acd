"""Some steps of the VoicePrivacy recipe alone, and what is damaged between two runs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner
from recipe_runs import Outcome
from voiceprivacy_outputs import check_same, outputs
from voiceprivacy_runs import run_recipe, write_originals

from spkver.cli import main

ANONYMISER = ("--suffix", "_mcadams")
ONE = {"attackers": "[gmm-svm]", "evaluation__replicates": 0}
SCORES = "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f_mcadams/gmm-svm/scores"
CONDITIONS = "conditions_mcadams.json"


def run(data: Path, output: Path, *arguments: str, **settings: object) -> Outcome:
    return run_recipe(data, output, *ANONYMISER, *arguments, **{**ONE, **settings})


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


def states(output: Path) -> dict[str, str]:
    """What `spkver status` says: state of each stage, of twins by the name of their folder."""
    result = CliRunner().invoke(main, ["status", "--json", str(output)])
    assert result.exit_code == 0, result.output
    return {
        (Path(record["folder"]).name if stage["stage"] == "anonymisation" else stage["stage"]): stage["state"]
        for record in json.loads(result.output)
        for stage in record["stages"]
    }


# --- steps ----------------------------------------------------------------------------------------


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
    assert "started" not in outcome.err
    check_same(output, outputs(finished))


def test_only_takes_what_is_there_and_does_one_step(originals, output):
    before = outputs(output)
    (output / CONDITIONS).unlink()
    outcome = run(originals, output, "--only", "evaluation")
    assert outcome.status == 0, outcome.err
    assert "checks: " not in outcome.out
    assert "To go on (utility, report)" in outcome.out
    assert "anonymising" not in outcome.err
    check_same(output, before)


@pytest.mark.parametrize(
    ("step", "gone", "words"),
    [
        ("evaluation", SCORES, f"{SCORES}: scores of gmm-svm in .* is missing"),
        ("report", SCORES, f"{SCORES}: scores of gmm-svm in .* is missing"),
        ("report", CONDITIONS, f"{CONDITIONS}: evaluation is missing"),
        ("scores", "data/tiny_train_mcadams/anonymization.json", "tiny_train_mcadams: the anonymised folder is miss"),
        ("scores", "data/tiny_train_mcadams/wav/f101-1.wav", "tiny_train_mcadams: 17 of 18 utterances are anonymised"),
        ("utility", "data/tiny_test_enrolls_mcadams/wav.scp", "tiny_test_enrolls_mcadams: 14 of 14 utterances"),
    ],
)
def test_only_says_what_it_lacks(originals, output, step, gone, words):
    (output / gone).unlink()
    outcome = run(originals, output, "--only", step)
    assert outcome.status == 2
    assert re.search(words, outcome.error), outcome.error
    assert not (output / gone).exists()


def test_only_does_not_take_what_is_stale(originals, output):
    outcome = run(originals, output, "--only", "evaluation", seed=1)
    assert outcome.status == 2
    # the first that depends on the seed are the twins
    assert "0 of 14 utterances are anonymised by this anonymiser" in outcome.error
    outcome = run(originals, output, "--only", "evaluation", **{"attacker_settings.gmm-svm.map.relevance": 7})
    assert outcome.status == 2
    assert "scores of gmm-svm in" in outcome.error
    assert "is stale, and is needed as it is" in outcome.error


def test_evaluation_alone_with_other_numbers(originals, output):
    """Scores do not depend on what is made of them."""
    outcome = run(originals, output, "--only", "evaluation", evaluation__sizes="[2]")
    assert outcome.status == 0, outcome.err
    conditions = json.loads((output / CONDITIONS).read_text())
    assert {tuple(one["linkability"]["sizes"]) for one in conditions} == {(2,)}


@pytest.mark.parametrize("option", ["--only", "--until"])
def test_names_of_steps(originals, tmp_path, option):
    outcome = run(originals, tmp_path / "out", option, "scroes")
    assert outcome.status == 2
    steps = "simulation, checks, anonymisation, scores, evaluation, utility, report"
    assert f"{option} 'scroes' is no step: expected one of {steps}" in outcome.error
    outcome = run(originals, tmp_path / "out", option, "simulation")
    assert outcome.status == 2
    assert "there is nothing to simulate" in outcome.error
    assert not (tmp_path / "out").exists()


def test_only_and_until_exclude_each_other(originals, tmp_path):
    outcome = run(originals, tmp_path / "out", "--only", "scores", "--until", "report")
    assert outcome.status == 2
    assert "exclude each other" in outcome.error


def test_status_shows_what_is_done(originals, output):
    assert set(states(output).values()) == {"done"}
    assert {"tiny_train_mcadams", "evaluation"} <= set(states(output))
    (output / "data/tiny_train_mcadams/wav/f101-1.wav").unlink()
    (output / SCORES).write_bytes(b"")
    found = states(output)
    assert found["tiny_train_mcadams"] == "in progress"
    assert found[f"scores of gmm-svm in {Path(SCORES).parents[1]}"] == "damaged"


def test_force_makes_everything_again(originals, output):
    before = outputs(output)
    with ExitStack() as stack:
        # Held open, so that the file system cannot give the number of a removed file to its successor.
        held = {path: stack.enter_context(path.open("rb")) for path in kept_files(output)}
        outcome = run(originals, output, "--force")
        assert outcome.status == 0, outcome.err
        check_same(output, before)
        assert not [path for path, old in held.items() if path.exists() and same_file(path, old)]


def same_file(path: Path, old: IO[bytes]) -> bool:
    return os.path.samestat(path.stat(), os.fstat(old.fileno()))


def kept_files(output: Path) -> list[Path]:
    patterns = ("data/*/wav/*.wav", "work/*/*.h5", "work/*/*/*.h5", "attackers/*/*/attacker.h5", "exp/*/*/*/scores")
    files = [path for pattern in patterns for path in output.glob(pattern)]
    assert len(files) > 60
    return [*files, output / CONDITIONS]


def test_one_run_at_a_time(originals, output):
    handle = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        outcome = run(originals, output)
    finally:
        os.close(handle)
    assert outcome.status == 2
    assert "another run is at work in it" in outcome.error
    assert run(originals, output).status == 0


# --- damage ---------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    """Flip a bit as a disk does: size and times stay."""
    status, raw = path.stat(), bytearray(path.read_bytes())
    raw[len(raw) * 2 // 3] ^= 4
    path.write_bytes(raw)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(path: Path) -> None:
    status = path.stat()
    os.truncate(path, status.st_size // 2)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def without_scores(output: Path) -> None:
    """So that what they are made from is asked for."""
    for path in output.glob("exp/**/scores"):
        path.unlink()


DAMAGED = {
    "twin": ("data/tiny_test_trials_f_mcadams/wav/f001-3.wav", "anonymising 1 of 10"),
    "draw": ("data/tiny_train_mcadams/wav/f101-2.wav", "anonymising 1 of 18"),
    "scores": (SCORES, "scores is not as it was written: it is made again"),
    "pooled scores": (SCORES.replace("trials_f", "trials_all"), "scores is not as it was written: it is made again"),
    "conditions": (CONDITIONS, f"{CONDITIONS} is not as it was written: it is made again"),
    "ledger": ("stages.json", ""),
    "record": ("data/tiny_train_mcadams/anonymization.json", ""),
}


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize("what", list(DAMAGED))
def test_what_is_damaged_is_made_again(originals, finished, output, what, damage):
    file, said = DAMAGED[what]
    damage(output / file)
    outcome = run(originals, output)
    assert outcome.status == 0, outcome.err
    assert said in outcome.err.replace("\n", " ")
    check_same(output, outputs(finished))


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("attackers/tiny_train/gmm-svm/attacker.h5", None),
        ("attackers/tiny_train/gmm-svm/attacker.yaml", None),
        ("work/tiny_test_enrolls-*/data/stat_*.h5", None),
        ("work/tiny_test_enrolls-*/features.h5", "work/tiny_test_enrolls-*/data/stat_*.h5"),
        ("work/ubm-*/gmm/ubm.h5", "attackers/*/*/attacker.yaml"),
        ("work/tiny_train-*/data/stat_sessions-*.h5", "attackers/*/*/attacker.yaml"),
    ],
)
def test_what_scores_are_made_from_is_checked(originals, finished, output, pattern, needed, damage):
    """Files are asked for by those that are made from them: these are removed."""
    without_scores(output)
    for path in output.glob(needed or "nothing"):
        path.unlink()
    (file,) = list(output.glob(pattern))[:1]
    damage(file)
    outcome = run(originals, output)
    assert outcome.status == 0, outcome.err
    stage = file.with_suffix(".yaml") if file.name == "attacker.h5" else file
    assert f"{stage} is not as it was written: it is made again" in (output / "run.log").read_text()
    check_same(output, outputs(finished))


@pytest.mark.parametrize("folder", ["attackers", "work", "data/tiny_train_mcadams", "exp"])
def test_what_is_gone_is_made_again(originals, finished, output, folder):
    shutil.rmtree(output / folder)
    outcome = run(originals, output)
    assert outcome.status == 0, outcome.err
    if folder not in ("attackers", "work"):  # asked for by none, while all scores are there
        check_same(output, outputs(finished))
    assert (output / SCORES).read_bytes() == (finished / SCORES).read_bytes()
