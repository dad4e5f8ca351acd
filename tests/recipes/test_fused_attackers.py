"""Fusion as one attacker more of an evaluation: what it is made of, what is redone, and that its bits stay the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from recipe_runs import Outcome
from voiceprivacy_runs import SUFFIX, run_recipe

from evaluation.formats.reading import read_scores
from evaluation.trials import align

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


def test_a_fusion_of_nobody_says_so(layout, tmp_path, output):
    chosen = {"attackers": "[knows,fusion]", "attacker_settings__knows__preset": f"scores:{output}/exp"}
    outcome = run_recipe(layout, tmp_path / "out", evaluation__replicates=0, **chosen)
    assert outcome.status == 2
    assert "has no attacker to fuse" in outcome.error
    assert (tmp_path / "out/results.json").exists()
