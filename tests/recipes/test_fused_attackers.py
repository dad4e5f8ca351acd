"""Fusion as one attacker more of an evaluation: what it is made of, what is redone, and that its bits stay the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from recipe_runs import Outcome
from voiceprivacy_runs import SUFFIX, recipe_options, run_recipe, write_layout

from evaluation.embeddings.files import write_embeddings
from evaluation.embeddings.sets import Embeddings
from evaluation.formats.reading import read_key, read_scores
from evaluation.trials import align

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
# the pitch of a speaker of the tiny set is in the name of its file: this one knows who speaks, or guesses
ORACLE = """
import zlib

def noise(*words):
    return zlib.crc32(" ".join(map(str, words)).encode()) / 2**31 - 1

def knows(training, seed):
    def score(enrolment, tested, trials):
        return [2.0 * (str(tested[s].name)[:4] == enrolment[m][0].name[:4]) + 1.2 * noise(m, s) for m, s in trials]
    return score

def guesses(training, seed):
    return lambda enrolment, tested, trials: [noise(m, s, "guess") for m, s in trials]
"""
SCENARIOS = ("original", "ignorant", "lazy-informed", "semi-informed")


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set; read only."""
    return write_layout(tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="module")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of attackers, one of which knows and one guesses; read only."""
    folder = tmp_path_factory.mktemp("oracles")
    (folder / "oracles.py").write_text(ORACLE)
    return folder


def settings(oracles: Path, *more: str) -> dict[str, object]:
    return {
        "attackers": json.dumps(["fusion", "gmm-ubm", "knows", "guesses", *more]),
        "attacker_settings.knows.preset": f"{oracles}/oracles.py:knows",
        "attacker_settings.guesses.preset": f"{oracles}/oracles.py:guesses",
        "evaluation__replicates": 0,
    }


def run(layout: Path, output: Path, oracles: Path, *arguments: str, more: tuple[str, ...] = (), **others) -> Outcome:
    return run_recipe(layout, output, *arguments, **{**settings(oracles, *more), **others})


@pytest.fixture(scope="module")
def output(layout: Path, oracles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("output") / "out"
    outcome = run(layout, folder, oracles)
    assert outcome.status == 0, outcome.err
    return folder


@pytest.fixture(scope="module")
def results(output: Path) -> dict:
    return json.loads((output / "results.json").read_text())


def files(output: Path) -> dict[str, bytes]:
    """All scores and weights."""
    found = [*output.glob("exp/**/scores"), *output.glob("attackers/**/scores"), *output.glob("attackers/**/weights*")]
    return {str(path.relative_to(output)): path.read_bytes() for path in found}


def test_fusion_is_one_attacker_more_of_every_condition(results):
    for scenario in SCENARIOS:
        for gender in ("f", "m", "all"):
            part = [one for one in results["conditions"] if (one["scenario"], one["gender"]) == (scenario, gender)]
            assert [one["attacker"] for one in part] == ["gmm-ubm", "knows", "guesses", "fusion"]
            assert {one["level"] for one in part} == {"trial-by-trial"}


def test_who_knows_gets_weight_and_who_guesses_gets_none(results, output):
    assert len(results["fusions"]) == 2  # learnt from original, and from anonymised speech
    for fusion in results["fusions"]:
        weights = fusion["weights"]["weights"]
        assert set(weights) == {"gmm-ubm", "knows", "guesses"}
        assert weights["knows"] > 0
        assert weights["guesses"] == 0
        assert min(weights.values()) >= 0
        assert fusion["left_out"] == {}
        assert fusion["cross_validated"]["cllr"] <= min(one["cllr"] for one in fusion["alone"].values()) + 0.05
        assert fusion["alone"]["knows"]["eer"] < 0.3 < fusion["alone"]["guesses"]["eer"]
        assert len(fusion["folds"]) == 2
        assert {"file", "scores", "ridges", "training", "kind"} <= set(fusion)
        assert json.loads((output / fusion["file"]).read_text())["weights"] == fusion["weights"]
    kinds = {fusion["kind"]: fusion["training"] for fusion in results["fusions"]}
    assert kinds == {"original": "tiny_train", "semi-informed": f"tiny_train{SUFFIX}"}


def test_scores_are_the_weighted_sum_of_the_written_scores(results, output):
    """By nothing but the files: original, ignorant and lazy-informed attackers have the weights of the original."""
    checked = 0
    for fusion in results["fusions"]:
        for file in fusion["scores"]:
            found = read_scores(output / file)
            folder = (output / file).parents[1]
            sums = np.full(len(found), fusion["weights"]["offset"])
            for name, weight in fusion["weights"]["weights"].items():
                sums += weight * align(read_scores(folder / name / "scores"), found)
            np.testing.assert_allclose(found.values, sums, rtol=1e-12, atol=1e-12)
            checked += 1
    assert checked == 8


def test_weights_come_from_background_speakers_alone(output):
    tested = {name for path in output.glob("lists/*/utt2spk") for name in path.read_text().split()}
    folds = list(output.glob("attackers/*/folds-*/*/*/scores"))
    assert len(folds) == 2 * 2 * 3
    seen: dict[str, list[set[str]]] = {}
    for path in folds:
        scores = read_scores(path)
        used = {*scores.model_ids[scores.models], *(name[:4] for name in scores.segment_ids[scores.segments])}
        assert not used & tested
        seen.setdefault(f"{path.parents[2].name} {path.parent.name}", []).append(used)
    for first, second in seen.values():
        assert not first & second


def test_fusion_is_calibrated_on_the_lists_it_was_not_trained_on(results, output):
    """Positive where the oracle is sure: an LLR, not a score."""
    file = next(file for fusion in results["fusions"] for file in fusion["scores"] if "asv_orig" in file)
    folder = (output / file).parents[1].name.partition("-")[2]
    key = read_key(output / "lists" / folder.removesuffix(SUFFIX) / "trials")
    values = align(read_scores(output / file), key)
    assert values[key.is_target].mean() > 0 > values[~key.is_target].mean()


def test_a_second_run_keeps_it_and_an_attacker_more_redoes_the_fusion_alone(layout, oracles, output, tmp_path):
    again = tmp_path / "out"
    shutil.copytree(output, again)
    every = [*again.glob("exp/*/*/*/scores"), *again.glob("attackers/**/scores")]
    before = {path: path.stat().st_mtime_ns for path in every}
    assert run(layout, again, oracles).status == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    outcome = run(layout, again, oracles, more=("supervector-cosine",))
    assert outcome.status == 0, outcome.err
    assert {path.parent.name for path in before if path.stat().st_mtime_ns != before[path]} == {"fusion"}
    results = json.loads((again / "results.json").read_text())
    assert set(results["fusions"][0]["weights"]["weights"]) == {"gmm-ubm", "knows", "guesses", "supervector-cosine"}


@pytest.mark.slow
def test_its_bits_do_not_depend_on_the_number_of_workers(layout, oracles, output, tmp_path):
    outcome = run(layout, tmp_path / "out", oracles, "--jobs", "2")
    assert outcome.status == 0, outcome.err
    assert files(tmp_path / "out") == files(output)


@pytest.mark.slow
def test_who_fails_is_left_out_of_the_fusion(layout, oracles, tmp_path):
    (tmp_path / "bad.py").write_text("def attack(training, seed):\n    raise OSError('no luck')\n")
    bad = {"attacker_settings.bad.preset": f"{tmp_path}/bad.py:attack"}
    outcome = run(layout, tmp_path / "out", oracles, more=("bad",), **bad)
    assert outcome.status == 2
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert {failure["attacker"] for failure in results["failures"]} == {"bad"}
    fused = [one for one in results["conditions"] if one["attacker"] == "fusion"]
    assert len(fused) == 12
    assert all("bad" not in fusion["weights"]["weights"] for fusion in results["fusions"])


@pytest.mark.slow
def test_who_has_no_scores_for_the_background_is_left_out_and_told(layout, oracles, output, tmp_path):
    for scores in (output / "exp").glob("*/*/gmm-ubm/scores"):
        place = tmp_path / "ready" / scores.parents[1].relative_to(output / "exp")
        place.mkdir(parents=True)
        shutil.copy(scores, place)
    ready = {"attacker_settings.ready.preset": f"scores:{tmp_path}/ready"}
    outcome = run(layout, tmp_path / "out", oracles, more=("ready",), **ready)
    assert outcome.status == 0, outcome.err
    results = json.loads((tmp_path / "out/results.json").read_text())
    for fusion in results["fusions"]:
        assert "ready" not in fusion["weights"]["weights"]
        assert "there is no" in fusion["left_out"]["ready"]
    told = [one["text"] for one in results["sanity"] if one["check"] == "fusion"]
    assert any("ready" in text for text in told)


@pytest.mark.slow
def test_vectors_of_the_training_set_let_those_of_others_have_a_part(layout, oracles, tmp_path):
    """Of original speech; the anonymised training set has none here, and that is told."""
    rng = np.random.default_rng(0)
    places = {name: rng.standard_normal(16) for name in {path.name[:4] for path in layout.glob("*/wav/*")}}
    for directory in (*layout.glob("tiny_test_*"), layout / "tiny_train"):
        ids = sorted(path.stem for path in directory.glob("wav/*"))
        vectors = np.array([places[name[:4]] + 0.4 * rng.standard_normal(16) for name in ids])
        (tmp_path / "mine").mkdir(exist_ok=True)
        write_embeddings(
            tmp_path / "mine" / f"{directory.name}.npz",
            Embeddings(np.array(ids, object), np.array(["?"] * len(ids), object), vectors),
        )
    chosen = {"attacker_settings.vec.preset": f"vectors:{tmp_path}/mine"}
    outcome = run(layout, tmp_path / "out", oracles, more=("vec",), **chosen)
    assert outcome.status == 0, outcome.err
    results = json.loads((tmp_path / "out/results.json").read_text())
    original, anonymised = sorted(results["fusions"], key=lambda fusion: fusion["kind"])
    assert original["alone"]["vec"]["eer"] < 0.1
    assert "vec" in original["weights"]["weights"]
    assert f"there is no {tmp_path}/mine/tiny_train{SUFFIX}.h5" in anonymised["left_out"]["vec"]


def test_a_fusion_of_nobody_says_so(layout, tmp_path, output):
    chosen = {"attackers": "[knows,fusion]", "attacker_settings__knows__preset": f"scores:{output}/exp"}
    outcome = run_recipe(layout, tmp_path / "out", evaluation__replicates=0, **chosen)
    assert outcome.status == 2
    assert "has no attacker to fuse" in outcome.error
    assert (tmp_path / "out/results.json").exists()


def test_a_fusion_has_no_settings(layout, oracles, tmp_path):
    outcome = run(layout, tmp_path / "out", oracles, **{"attacker_settings.fusion.ridge": 1})
    assert outcome.status == 2
    assert "a fusion has none" in outcome.error


@pytest.mark.slow
def test_killed_and_started_again_it_ends_with_the_same_bits(layout, oracles, output, tmp_path):
    arguments = recipe_options(layout, tmp_path / "out", "--until", "scores", **settings(oracles))
    waits, kills = iter((1.0, 1.5, 2.0, 2.6, 3.4, 5.0, 8.0, 12.0)), 0  # on fast and on busy machines
    while True:
        with subprocess.Popen([sys.executable, str(RECIPE), *arguments], stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(next(waits, 300))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        time.sleep(0.2)
    assert kills >= 3
    assert files(tmp_path / "out") == {name: content for name, content in files(output).items() if _is_made(name)}


def _is_made(name: str) -> bool:
    """Whether the scores step makes it, not the report."""
    return len(Path(name).parts) > 4 or not name.startswith("exp/")
