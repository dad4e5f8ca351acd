"""Some stages of the recipes alone, what `spkver status` says of them, and two runs in one folder."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from recipe_runs import COMMANDS, Recipe, datasets, leftovers, made, options

from spkbase.runs import library_version
from spkver.cli import main

STAGES = [
    "features",
    "ubm",
    *(f"{what} of {name}" for name in ("enroll", "back", "test") for what in ("statistics", "supervectors")),
    "models of svm-gmm",
    "scores of svm-gmm",
    "nap",
    "models of svm-gmm-nap",
    "scores of svm-gmm-nap",
]


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory) -> Path:
    """Output of the SVM-GMM recipe; read only."""
    output = tmp_path_factory.mktemp("finished") / "out"
    with pytest.raises(SystemExit) as end:
        COMMANDS["svm_gmm"].main(options(tiny, output))
    assert not end.value.code
    return output


@pytest.fixture
def output(finished, tmp_path) -> Path:
    """A copy of that output for a test to go on from."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def status(output: Path) -> dict[str, str]:
    """What `spkver status` gives: state of each stage."""
    result = CliRunner().invoke(main, ["status", "--json", str(output)])
    assert result.exit_code == 0, result.output
    (record,) = json.loads(result.output)
    return {stage["stage"]: stage["state"] for stage in record["stages"]}


def test_status_of_a_finished_run(finished):
    assert status(finished) == dict.fromkeys([*STAGES, "report"], "done")


def test_until_then_only_then_all(recipe: Recipe, tiny, finished, tmp_path):
    output = tmp_path / "out"
    outcome = recipe(tiny, output, "--until", "ubm")
    assert outcome.status == 0
    assert made(outcome.err) == {"features", "ubm"}
    assert status(output) == dict.fromkeys(STAGES[:2], "done")
    assert "2 of 2 stages done" in outcome.out
    assert not (output / "results.json").exists()

    outcome = recipe(tiny, output, "--only", "statistics of back")
    assert outcome.status == 0
    assert made(outcome.err) == {"statistics of back"}

    outcome = recipe(tiny, output)
    assert made(outcome.err) == set(STAGES) - {"features", "ubm", "statistics of back"}
    assert datasets(output) == datasets(finished)
    assert (output / "results.json").is_file()


def test_only_wants_what_comes_before(recipe: Recipe, tiny, tmp_path):
    outcome = recipe(tiny, tmp_path, "--only", "nap")
    assert outcome.status == 2
    assert "'nap' needs stage 'supervectors of back', which is missing" in outcome.error
    assert made(outcome.err) == set()


def test_only_the_report(recipe: Recipe, tiny, output):
    (output / "results.json").unlink()
    outcome = recipe(tiny, output, "--only", "report")
    assert outcome.status == 0
    assert (output / "results.json").is_file()
    (output / "scores/svm-gmm.h5").unlink()
    outcome = recipe(tiny, output, "--only", "report")
    assert outcome.status == 2
    assert "needs stage 'scores of svm-gmm', which is missing" in outcome.error


def test_force_only(recipe: Recipe, tiny, finished, output):
    outcome = recipe(tiny, output, "--force", "--only", "models of svm-gmm")
    assert made(outcome.err) == {"models of svm-gmm"}
    assert datasets(output) == datasets(finished)


@pytest.mark.parametrize("name", ["svm_gmm", "gmm_ubm"])
def test_unknown_stage(recipe: Recipe, tiny, tmp_path, name):
    outcome = recipe(tiny, tmp_path, "--only", "training", name=name, nap__rank=0)
    assert outcome.status == 2
    assert "--only 'training' is no stage: expected one of features, ubm, statistics of enroll" in outcome.error
    assert outcome.error.endswith("report")
    assert made(outcome.err) == set()
    assert not leftovers(tmp_path)


def test_only_and_until_exclude_each_other(recipe: Recipe, tiny, tmp_path):
    outcome = recipe(tiny, tmp_path / "out", "--until", "ubm", "--only", "ubm")
    assert outcome.status == 2
    assert "--only and --until" in outcome.error
    assert not (tmp_path / "out").exists()


def test_status_after_a_changed_configuration(recipe: Recipe, tiny, output):
    recipe(tiny, output, "--until", "features", map__relevance=10)
    found = status(output)
    assert set(found.values()) == {"done"}, "the stages that were met, as they were met"
    recipe(tiny, output, "--until", "supervectors of enroll", map__relevance=10)
    found = status(output)
    assert {name for name, state in found.items() if state == "stale"} == {
        name for name in [*STAGES, "report"] if "svm-gmm" in name or name == "report"
    }


def test_status_after_changed_audio(recipe: Recipe, own_corpus, tmp_path):
    assert recipe(own_corpus, tmp_path / "out").status == 0
    path = own_corpus / "sph/male/m001/m001_01_001.wav"
    os.utime(path)
    assert set(status(tmp_path / "out").values()) == {"stale"}
    result = CliRunner().invoke(main, ["status", str(tmp_path / "out")])
    assert str(path) in result.output


@pytest.mark.parametrize(
    ("library", "kept"),
    [
        ("soundfile", set()),
        ("soxr", {*STAGES, "report"}),
        ("matplotlib", set(STAGES)),
        ("scikit-learn", {name for name in STAGES if "svm-gmm" not in name}),
    ],
)
def test_another_library_makes_again_what_depends_on_it(recipe: Recipe, tiny, output, monkeypatch, library, kept):
    real = library_version
    monkeypatch.setattr("spkbase.runs.library_version", lambda name: "99" if name == library else real(name))
    assert {name for name, state in status(output).items() if state == "done"} == kept
    assert made(recipe(tiny, output).err) == set(STAGES) - kept
    assert status(output) == dict.fromkeys([*STAGES, "report"], "done")


def test_flipped_bit_is_damaged_then_mended(recipe: Recipe, tiny, finished, output):
    path = output / "data/sv_test.h5"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    assert status(output)["supervectors of test"] == "damaged"
    outcome = recipe(tiny, output)
    assert made(outcome.err) == {"supervectors of test"}
    assert "is not as it was written" in outcome.err
    assert datasets(output) == datasets(finished)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"x" * len(data)])
def test_every_file_is_mended(recipe: Recipe, tiny, finished, output, damage):
    """Logs, plots and results, which are made anew, apart."""
    files = [path for kind in ("*.h5", "scores/*.txt", "s*.json") for path in output.rglob(kind)]
    assert len(files) > 20
    for path in files:
        path.write_bytes(damage(path.read_bytes()))
    assert recipe(tiny, output).status == 0
    assert datasets(output) == datasets(finished)
    for name in ("svm-gmm", "svm-gmm-nap"):
        assert (output / f"scores/{name}.txt").read_bytes() == (finished / f"scores/{name}.txt").read_bytes()


def test_two_runs_in_one_folder(recipe: Recipe, tiny, output):
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    handle = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        outcome = recipe(tiny, output, "--force")
    finally:
        os.close(handle)
    assert outcome.status == 2
    assert outcome.error == f"Error: {output}: another run is at work in it (wait for its end)"
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before
