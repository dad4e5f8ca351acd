"""Enrolment and trials anonymised several times: what is made, scored, taken up, and recomputed from the files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes
from numpy.testing import assert_allclose
from recipe_runs import results_of
from voiceprivacy_runs import SUFFIX, condition, evaluated, rows, run_recipe, stamps, write

from evaluation.reports import Results
from spkbase.runs import Run
from spkver.voiceprivacy.checks import Evaluated, shared_draws
from spkver.voiceprivacy.sets import read_sets
from spkver.voiceprivacy.settings import Config

pytestmark = pytest.mark.whole

SETTINGS = {
    "anonymizer__name": "mcadams",
    "anonymizer__trial_draws": 3,
    "anonymizer__enrolment_draws": 2,
    "attackers": "[supervector-cosine]",
    "evaluation__resamples": 2,
}


@pytest.fixture(scope="module")
def output(originals, tmp_path_factory):
    """Three draws of the trials; read only."""
    folder = tmp_path_factory.mktemp("output") / "out"
    evaluated(originals, folder, **SETTINGS)
    return folder


def of_all(results, scenario, gender="all"):
    return condition(results, gender, scenario, "supervector-cosine")


def test_every_enrolment_and_trial_directory_is_drawn_and_draws_differ(output):
    made = sorted(path.name for path in (output / "data").iterdir() if path.is_dir())
    tested = ["tiny_test_enrolls", "tiny_test_trials_f", "tiny_test_trials_m"]
    drawn = [f"{name}{SUFFIX}{end}" for name in tested for end in ("", "-draw2", "-draw3")]
    drawn.remove(f"{tested[0]}{SUFFIX}-draw3")
    assert made == sorted([*drawn, f"tiny_train{SUFFIX}"])
    sounds = {path.read_bytes() for path in output.glob("data/*/wav/f001-[13].wav")}
    assert len(sounds) == 5
    described = results_of(output)["anonymiser"]
    assert (described["trial_draws"], described["enrolment_draws"]) == (
        {"tiny_test": 3},
        {"tiny_test": 2},
    )


def test_each_draw_of_the_trials_is_scored_against_all_draws_of_the_enrolment(output):
    found = of_all(results_of(output), "lazy-informed", "f")
    folder = f"exp/asv_orig/tiny_test_enrolls{SUFFIX}-tiny_test_trials_f{SUFFIX}{{}}/supervector-cosine/scores"
    ends = ("", "-draw2", "-draw3")
    assert [of_draw["scores"] for of_draw in found["draws"]] == [folder.format(end) for end in ends]
    ignorant = of_all(results_of(output), "ignorant", "f")["draws"][1]["scores"]
    assert ignorant.startswith(f"exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f{SUFFIX}-draw2/")
    assert len(of_all(results_of(output), "original")["draws"]) == 1
    assert of_all(results_of(output), "lazy-informed")["scores"] == found["scores"].replace(
        "_f_", "_all_"
    )


def test_each_draw_and_the_mean_equal_those_of_the_written_scores(output, tmp_path):
    """Oracle: ``spkver-eval metrics`` on the files; of the closed set after ``spkver-eval normalise``."""

    def metrics(scores, key):
        passes("metrics", "-s", scores, "-k", output / key, "--json", tmp_path / "m.json")
        return dict(json.loads((tmp_path / "m.json").read_text()))

    # the men's list is like the women's
    for found in [row for row in results_of(output)["conditions"] if row["gender"] != "m"]:
        recomputed, closed = [], []
        for of_draw in found["draws"]:
            recomputed.append(metrics(output / of_draw["scores"], found["key"]))
            assert of_draw["eer"] == recomputed[-1]["eer"]
            passes(
                "normalise",
                "-s",
                output / of_draw["scores"],
                "-o",
                tmp_path / "centred",
                "-m",
                "closed-set",
            )
            closed.append(metrics(tmp_path / "centred", found["key"])["eer"]["rocch"])
            assert_allclose(of_draw["closed_set"]["eer"], closed[-1], atol=1e-12)
        assert_allclose(
            found["eer"]["rocch"], np.mean([one["eer"]["rocch"] for one in recomputed]), rtol=1e-12
        )
        assert_allclose(
            found["min_dcf"]["0.05"],
            np.mean([one["min_dcf"]["0.05"] for one in recomputed]),
            rtol=1e-12,
        )
        assert_allclose(found["closed_set"]["eer"]["value"], np.mean(closed), rtol=1e-9)
        if found["gender"] != "all":  # all speakers of the sex are candidates
            assert_allclose(
                found["closed_set"]["identification"]["value"],
                found["linkability"]["linkability"][-1],
            )


def test_precomputed_scores_give_the_mean_of_their_draws(originals, output, tmp_path):
    theirs = tmp_path / "theirs"
    for path in (output / "exp").glob("asv_*/*/supervector-cosine/scores"):
        folder = path.parents[1]
        if "-draw3" not in folder.name and "_all" not in folder.name:
            target = theirs / folder.relative_to(output / "exp")
            target.mkdir(parents=True)
            shutil.copy(path, target / "scores")
    found = evaluated(
        originals, tmp_path / "out", **{**SETTINGS, "attackers": f"[scores:{theirs}]"}
    )
    (lazy,) = rows(found["conditions"], scenario="lazy-informed", gender="all")
    ours = of_all(results_of(output), "lazy-informed")
    assert [of_draw["eer"] for of_draw in lazy["draws"]] == [
        of_draw["eer"] for of_draw in ours["draws"][:2]
    ]
    assert lazy["notes"]["draws"] == "no scores of draw 3: means over the other 2"
    assert any("Draws are missing" in line["text"] for line in found["sanity"])


def test_adding_draws_later_gives_the_same_results(originals, output, tmp_path):
    """What was done of the first draw stays as it is; a new attacker adds its own numbers alone."""
    folder, whole = tmp_path / "out", results_of(output)
    of_women = {**SETTINGS, "lists": "[f]"}
    once = evaluated(originals, folder, **{**of_women, "anonymizer__trial_draws": 1})
    for found in once["conditions"]:
        assert of_all(whole, found["scenario"], "f")["draws"][0] == found["draws"][0]
    before = stamps(
        [*folder.glob("data/**/*.wav"), *folder.glob("exp/**/supervector-cosine/scores")]
    )
    again = evaluated(
        originals, folder, **{**of_women, "attackers": "[gmm-ubm,supervector-cosine]"}
    )
    assert stamps(before) == before
    ours = rows(again["conditions"], attacker="supervector-cosine")
    assert ours == rows(whole["conditions"], gender="f")


def anonymised(originals, output, *arguments, **settings):
    """Anonymise only; returns the log."""
    options = {
        **SETTINGS,
        "anonymizer__trial_draws": 2,
        "anonymizer__enrolment_draws": 2,
        **settings,
    }
    outcome = run_recipe(originals, output, "--until", "anonymisation", *arguments, **options)
    assert outcome.status == 0, outcome.err
    return outcome.err


@pytest.mark.parametrize(
    ("option", "are_shared"),
    [
        ({}, False),
        ({"anonymizer__shared_draws": True}, True),
        ({"anonymizer__seeding": "vpc2024"}, True),
    ],
)
def test_speakers_have_separate_draws_on_each_side_unless_shared(
    originals, tmp_path, option, are_shared
):
    anonymised(originals, tmp_path, anonymizer__level="speaker", **option)
    for end in (SUFFIX, f"{SUFFIX}-draw2"):
        records = [
            tmp_path / f"data/tiny_test_{name}{end}/anonymization.json"
            for name in ("enrolls", "trials_f")
        ]
        enrolled, tried = (
            {entry["stream"] for entry in json.loads(path.read_text())["files"].values()}
            for path in records
        )
        assert bool(enrolled & tried) == are_shared


@pytest.mark.parametrize(
    ("options", "told"), [([], 1), (["--seed", "1"], 0), (["--side", "trials"], 0)]
)
def test_user_supplied_copies_with_one_seed_are_reported(originals, tmp_path, options, told):
    data = Path(shutil.copytree(originals, tmp_path / "data"))
    for name, more in (("enrolls", []), ("trials_f", options), ("trials_m", options)):
        passes("anonymize", "mcadams", data / f"tiny_test_{name}", "--level", "speaker", *more)
    sets = read_sets(data, Run(tmp_path / "out"), "_mcadams", Config(), can_make=True)
    sets = replace(
        sets, versions={name: (of,) for name, of in {**sets.original, **sets.twins}.items()}
    )
    assert [
        found.level for found in shared_draws(Evaluated(Results(conditions=()), sets, Config()))
    ] == ["warning"] * told


def test_deterministic_anonymisers_have_one_draw(originals, tmp_path):
    assert "these parameters uses no random numbers" in anonymised(
        originals, tmp_path / "fixed", anonymizer__alpha="[0.8, 0.8]"
    )
    path = tmp_path / "mine.py"
    path.write_text("def turn(samples, rate, utterance, rng):\n    return -0.5 * samples[::-1]\n")
    assert "a second version is equal to the first" in anonymised(
        originals, tmp_path / "same", anonymizer__name=f"{path}:turn"
    )
    for name in ("fixed", "same"):
        twins = {
            path.name for path in (tmp_path / name / "data").iterdir() if "_test_" in path.name
        }
        assert f"tiny_test_trials_f{SUFFIX}-draw2" not in twins or name == "same"


def test_anonymised_copies_of_unknown_origin_have_one_draw(originals, tmp_path):
    """One standing directory that nobody knows the origin of leaves the whole set with one."""
    data = Path(shutil.copytree(originals, tmp_path / "data"))
    anonymised(originals, tmp_path / "first", "--suffix", "_mcadams", anonymizer__trial_draws=1)
    twin = shutil.copytree(
        tmp_path / "first/data/tiny_test_enrolls_mcadams", data / "tiny_test_enrolls_mcadams"
    )
    write(twin / "wav.scp", [f"{path.stem} {path}" for path in sorted((twin / "wav").iterdir())])
    (twin / "anonymization.json").unlink()
    told = anonymised(data, tmp_path / "out", "--suffix", "_mcadams", anonymizer__name="''")
    assert not list((tmp_path / "out/data").glob("tiny_test*-draw*"))
    assert "no record" in told
