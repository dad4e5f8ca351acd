"""Fusion as one attacker more of an evaluation: what it is made of, what is redone, and that its bits stay the same."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from recipe_runs import refused, results_of
from voiceprivacy_runs import SCENARIOS, SUFFIX, evaluated, findings, rows, run_recipe, stamps

from evaluation.formats.reading import read_scores
from evaluation.trials import align

pytestmark = pytest.mark.whole

# a speaker of the tiny set is in the name of its file: this one knows who speaks, or guesses
ORACLE = """
import zlib

def noise(*words):
    return zlib.crc32(" ".join(map(str, words)).encode()) / 2**31 - 1

def knows(training, seed):
    def score(enrolment, tested, trials):
        said = {s: path.resolve().name for s, path in tested.items()}  # the link leads to it
        names = {m: paths[0].resolve().name[:4] for m, paths in enrolment.items()}
        return [2.0 * (said[s][:4] == names[m]) + 1.2 * noise(names[m], said[s]) for m, s in trials]
    return score

def guesses(training, seed):
    return lambda enrolment, tested, trials: [noise(m, s, "guess") for m, s in trials]

def fails(training, seed):
    raise RuntimeError("no inversion")
"""
ATTACKERS = ["gmm-ubm", "knows", "guesses", "fusion"]


@pytest.fixture(scope="module")
def oracles(tmp_path_factory):
    """A module of attackers, one of which knows and one guesses; read only."""
    folder = tmp_path_factory.mktemp("oracles")
    (folder / "oracles.py").write_text(ORACLE)
    return folder


def settings(oracles, *more):
    """Settings for the women's lists."""
    return {
        "attackers": json.dumps([*ATTACKERS, *more]),
        "attacker_settings.knows.preset": f"{oracles}/oracles.py:knows",
        "attacker_settings.guesses.preset": f"{oracles}/oracles.py:guesses",
        "evaluation__resamples": 0,
        "lists": "[f]",
    }


def run(layout, output, oracles, *more, **others):
    """Run the recipe on the women's lists."""
    return evaluated(layout, output, **{**settings(oracles, *more), **others})


@pytest.fixture(scope="module")
def output(layout, oracles, tmp_path_factory):
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("output") / "out"
    run(layout, folder, oracles)
    return folder


@pytest.fixture(scope="module")
def results(output):
    return results_of(output)


def test_every_condition_has_the_fusion_as_a_further_attacker(results):
    for scenario in SCENARIOS:
        part = rows(results["conditions"], scenario=scenario)
        assert [one["attacker"] for one in part] == ATTACKERS
        assert {one["level"] for one in part} == {"one-model"}


def test_informative_members_get_weight_and_random_ones_none(results, output):
    assert len(results["fusions"]) == 2  # one learnt from original, one from anonymised speech
    for fusion in results["fusions"]:
        weights = fusion["weights"]["weights"]
        assert set(weights) == {"gmm-ubm", "knows", "guesses"}
        assert weights["knows"] > 0
        assert weights["guesses"] == 0
        assert min(weights.values()) >= 0
        assert fusion["left_out"] == {}
        assert (
            fusion["cross_validated"]["cllr"]
            <= min(one["cllr"] for one in fusion["alone"].values()) + 0.05
        )
        assert fusion["alone"]["knows"]["eer"] < 0.3 < fusion["alone"]["guesses"]["eer"]
        assert len(fusion["folds"]) == 2
        assert {"file", "scores", "ridges", "training", "kind"} <= set(fusion)
        assert json.loads((output / fusion["file"]).read_text())["weights"] == fusion["weights"]
    kinds = {fusion["kind"]: fusion["training"] for fusion in results["fusions"]}
    assert kinds == {"original": "tiny_train", "semi-informed": f"tiny_train{SUFFIX}"}


def test_fused_scores_equal_the_weighted_sum_of_the_written_scores(results, output):
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
    assert checked == 4


def test_weights_are_learnt_from_background_speakers_only(output):
    tested = {name for path in output.glob("lists/*/utt2spk") for name in path.read_text().split()}
    folds = list(output.glob("attackers/*/folds-*/*/*/scores"))
    assert len(folds) == 2 * 2 * 3
    seen = {}
    for path in folds:
        scores = read_scores(path)
        used = {
            *scores.model_ids[scores.models],
            *(name[:4] for name in scores.segment_ids[scores.segments]),
        }
        assert not used & tested
        seen.setdefault(f"{path.parents[2].name} {path.parent.name}", []).append(used)
    for first, second in seen.values():
        assert not first & second


def test_a_second_run_keeps_the_fusion_and_a_further_attacker_redoes_only_the_fusion(
    layout, oracles, output, tmp_path
):
    again = tmp_path / "out"
    shutil.copytree(output, again)
    before = stamps([*again.glob("exp/*/*/*/scores"), *again.glob("attackers/**/scores")])
    run(layout, again, oracles)
    assert stamps(before) == before
    results = run(layout, again, oracles, "supervector-cosine")
    assert {path.parent.name for path, time in stamps(before).items() if time != before[path]} == {
        "fusion"
    }
    assert set(results["fusions"][0]["weights"]["weights"]) == {
        "gmm-ubm",
        "knows",
        "guesses",
        "supervector-cosine",
    }


@pytest.mark.slow
def test_members_without_background_scores_are_omitted_and_reported(
    layout, oracles, output, tmp_path
):
    for scores in (output / "exp").glob("*/*/gmm-ubm/scores"):
        place = tmp_path / "ready" / scores.parents[1].relative_to(output / "exp")
        place.mkdir(parents=True)
        shutil.copy(scores, place)
    ready = {"attacker_settings.ready.preset": f"scores:{tmp_path}/ready"}
    results = run(layout, tmp_path / "out", oracles, "ready", **ready)
    for fusion in results["fusions"]:
        assert "ready" not in fusion["weights"]["weights"]
        assert "there is no" in fusion["left_out"]["ready"]
    assert any("ready" in one["text"] for one in findings(results, "fusion"))


def test_members_without_weight_or_scores_do_not_raise_the_level_of_a_fusion(
    layout, oracles, output, tmp_path
):
    shutil.copytree(output, tmp_path / "out")
    knowledge = {
        "attacker_settings.guesses.level": "whole-list",
        "attacker_settings.fails.level": "inverting",
    }
    fails = {"attacker_settings.fails.preset": f"{oracles}/oracles.py:fails"}
    outcome = run_recipe(
        layout, tmp_path / "out", **settings(oracles, "fails"), **knowledge, **fails
    )
    assert "1 attacker failed" in outcome.err
    results = results_of(tmp_path / "out")
    levels = {one["attacker"]: one["level"] for one in results["conditions"]}
    assert levels == dict.fromkeys(("gmm-ubm", "knows", "fusion"), "one-model") | {
        "guesses": "whole-list"
    }


def test_a_fusion_without_members_is_reported(layout, tmp_path, output):
    chosen = {
        "attackers": "[knows,fusion]",
        "attacker_settings__knows__preset": f"scores:{output}/exp",
    }
    refused(
        run_recipe(layout, tmp_path / "out", **chosen, evaluation__resamples=0),
        "has no attackers to fuse",
    )
    assert (tmp_path / "out/results.json").exists()


def test_a_member_that_failed_on_the_background_is_retried_by_the_same_command(layout, tmp_path):
    """And then fused; a command that changes nothing makes nothing again."""
    (tmp_path / "own.py").write_text(f"{ORACLE}\nfrom pathlib import Path\n\n" + (
        "def late(training, seed):\n"
        # a fold has fewer speakers
        f"    if len(training) < 6 and Path({str(tmp_path / 'broken')!r}).exists():\n"
        "        raise RuntimeError('not yet')\n"
        "    return knows(training, seed)\n"
    ))  # fmt: skip
    preset = {
        "attacker_settings.late.preset": f"{tmp_path}/own.py:late",
        "attackers": "[gmm-ubm,late,fusion]",
    }
    how = {**preset, "evaluation__resamples": 0, "lists": "[f]"}
    (tmp_path / "broken").touch()
    for left_out in (["late"], ["late"], [], []):
        if not left_out:
            (tmp_path / "broken").unlink(missing_ok=True)
        before = stamps(tmp_path.glob("out/exp/*/*/fusion/scores"))
        results = evaluated(layout, tmp_path / "out", **how)
        assert [list(fusion["left_out"]) for fusion in results["fusions"]] == [left_out] * 2
    assert stamps(before) == before
