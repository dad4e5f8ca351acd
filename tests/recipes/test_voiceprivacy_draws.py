"""Enrolment and trials anonymised several times: what is made, scored, taken up, and recomputed from the files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from voiceprivacy_runs import SUFFIX, run_recipe, write, write_originals

from spkver.cli import main as spkver_main
from spkver.evaluation_cli import main as evaluation_main
from spkver.voiceprivacy.checks import shared_draws
from spkver.voiceprivacy.sets import read_sets
from spkver.voiceprivacy.settings import Config

SETTINGS = {
    "anonymizer__name": "mcadams",
    "anonymizer__trial_draws": 3,
    "anonymizer__enrolment_draws": 4,
    "attackers": "[supervector-cosine]",
    "evaluation__replicates": 20,
}
REVERSE = f"{Path(__file__).parents[1] / 'own_anonymizer.py'}:reverse"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set without twins; read only."""
    return write_originals(tmp_path_factory.mktemp("originals"))


@pytest.fixture(scope="module")
def output(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three draws of it; read only."""
    folder = tmp_path_factory.mktemp("output") / "out"
    run(originals, folder)
    return folder


@pytest.fixture
def own(output: Path, tmp_path: Path) -> Path:
    """A copy for a test to change, with the times of all files."""
    return Path(shutil.copytree(output, tmp_path / "out", symlinks=True))


def run(data: Path, output: Path, *arguments: str, **settings: object) -> dict[str, Any]:
    """Run the recipe; returns the results."""
    outcome = run_recipe(data, output, *arguments, **{**SETTINGS, **settings})
    assert outcome.status == 0, outcome.err
    return dict(json.loads((output / "results.json").read_text()))


def results_of(output: Path) -> dict[str, Any]:
    return dict(json.loads((output / "results.json").read_text()))


def times(output: Path, *patterns: str) -> dict[str, int]:
    """When the files were made that are no results, and what they hold."""
    return {
        str(path.relative_to(output)): path.stat().st_mtime_ns
        for pattern in patterns
        for path in output.glob(pattern)
        if path.is_file()
    }


def contents(output: Path, pattern: str) -> dict[str, bytes]:
    return {str(path.relative_to(output)): path.read_bytes() for path in sorted(output.glob(pattern))}


def named(results: Mapping[str, Any], scenario: str, gender: str = "all") -> dict[str, Any]:
    found = [row for row in results["conditions"] if (row["scenario"], row["gender"]) == (scenario, gender)]
    assert len(found) == 1
    return dict(found[0])


def test_every_directory_of_enrolment_and_trials_is_drawn_and_each_draw_sounds_otherwise(output: Path) -> None:
    made = sorted(path.name for path in (output / "data").iterdir())
    tested = ["tiny_test_enrolls", "tiny_test_trials_f", "tiny_test_trials_m"]
    drawn = [f"{name}{SUFFIX}{end}" for name in tested for end in ("", "-draw2", "-draw3")]
    drawn.insert(3, f"{tested[0]}{SUFFIX}-draw4")
    assert made == sorted([*drawn, f"tiny_train{SUFFIX}"])
    sounds = {(output / f"data/{name}/wav/f001-1.wav").read_bytes() for name in drawn[:4]}
    assert len(sounds) == 4
    described = results_of(output)["anonymiser"]
    assert (described["trial_draws"], described["enrolment_draws"]) == ({"tiny_test": 3}, {"tiny_test": 4})


def test_each_draw_of_the_trials_is_scored_against_all_draws_of_the_enrolment(output: Path) -> None:
    found = named(results_of(output), "lazy-informed", "f")
    folder = f"exp/asv_orig/tiny_test_enrolls{SUFFIX}-tiny_test_trials_f{SUFFIX}{{}}/supervector-cosine/scores"
    ends = ("", "-draw2", "-draw3")
    assert [of_draw["scores"] for of_draw in found["draws"]] == [folder.format(end) for end in ends]
    ignorant = named(results_of(output), "ignorant", "f")["draws"][1]["scores"]
    assert ignorant.startswith(f"exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f{SUFFIX}-draw2/")
    assert len(named(results_of(output), "original")["draws"]) == 1
    assert named(results_of(output), "lazy-informed")["scores"] == found["scores"].replace("_f_", "_all_")


def test_each_draw_and_the_mean_come_out_of_the_written_scores(output: Path, tmp_path: Path) -> None:
    """Oracle: ``spkver-eval metrics`` on the files; of the closed set after ``spkver-eval normalise``."""

    def metrics(scores: Path, key: str) -> dict[str, Any]:
        arguments = ["metrics", "-s", str(scores), "-k", str(output / key), "--json", str(tmp_path / "m.json")]
        outcome = CliRunner().invoke(evaluation_main, arguments)
        assert outcome.exit_code == 0, outcome.output
        return dict(json.loads((tmp_path / "m.json").read_text()))

    for found in results_of(output)["conditions"]:
        rates, costs, closed = [], [], []
        for of_draw in found["draws"]:
            recomputed = metrics(output / of_draw["scores"], found["key"])
            assert of_draw["eer"] == recomputed["eer"]
            rates.append(recomputed["eer"]["rocch"])
            costs.append(recomputed["min_dcf"]["0.05"])
            arguments = ["-s", str(output / of_draw["scores"]), "-o", str(tmp_path / "centred"), "-m", "closed-set"]
            outcome = CliRunner().invoke(evaluation_main, ["normalise", *arguments])
            assert outcome.exit_code == 0, outcome.output
            closed.append(metrics(tmp_path / "centred", found["key"])["eer"]["rocch"])
            assert_allclose(of_draw["closed_set"]["eer"], closed[-1], atol=1e-12)
        assert_allclose(found["eer"]["rocch"], sum(rates) / len(rates), rtol=1e-12)
        assert_allclose(found["min_dcf"]["0.05"], sum(costs) / len(costs), rtol=1e-12)
        assert_allclose(found["closed_set"]["eer"]["value"], sum(closed) / len(closed), rtol=1e-9)
        if found["gender"] != "all":  # of one sex all are candidates
            assert_allclose(found["closed_set"]["identification"]["value"], found["linkability"]["linkability"][-1])


def test_the_first_draw_is_the_run_of_one_draw_to_the_byte(originals: Path, output: Path, tmp_path: Path) -> None:
    """Both ways: one draw first and two more later leave what was done as it is, and give the same."""
    single = run(originals, tmp_path / "out", anonymizer__trial_draws=1)
    for pattern in (
        f"data/*{SUFFIX}/wav/*.wav",
        f"exp/*/*{SUFFIX}/supervector-cosine/scores",
        "exp/asv_orig/*/*/scores",
    ):
        of_one = contents(tmp_path / "out", pattern)
        of_three = contents(output, pattern)
        assert of_one.items() <= of_three.items()
    for found in single["conditions"]:
        of_draw = named(results_of(output), found["scenario"], found["gender"])["draws"][0]
        assert of_draw == found["draws"][0]
    patterns = ("data/**/*.wav", "exp/**/supervector-cosine/scores", "attackers/**/*")
    before = times(tmp_path / "out", *patterns)
    again = run(originals, tmp_path / "out")
    after = times(tmp_path / "out", *patterns)
    assert before.items() <= after.items()
    assert len(after) > len(before)
    assert again["conditions"] == results_of(output)["conditions"]


def test_a_second_run_makes_nothing_and_a_new_attacker_its_own_numbers_alone(originals: Path, own: Path) -> None:
    patterns = ("numbers/**/*", "exp/**/supervector-cosine/scores", "data/**/*.wav")
    run(originals, own)  # recordings are known by their paths, and this is a copy
    before = times(own, *patterns)
    earlier = results_of(own)["conditions"]
    run(originals, own)
    assert times(own, *patterns) == before
    more = run(originals, own, attackers="[gmm-ubm,supervector-cosine]")
    assert before.items() <= times(own, *patterns).items()
    assert (own / f"numbers/tiny_test{SUFFIX}/gmm-ubm.json").is_file()
    alone = [row for row in more["conditions"] if row["attacker"] == "supervector-cosine"]
    assert alone == earlier


def shared(results: Mapping[str, Any]) -> list[str]:
    return [line["text"] for line in results["sanity"] if line["check"] == "shared draws"]


def streams(twin: Path) -> set[str]:
    record = json.loads((twin / "anonymization.json").read_text())
    return {entry["stream"] for entry in record["files"].values()}


BY_SPEAKER = {"anonymizer__level": "speaker", "anonymizer__trial_draws": 1, "anonymizer__enrolment_draws": 1}


def test_by_speaker_each_side_has_draws_of_its_own_unless_they_are_asked_to_be_shared(
    originals: Path, tmp_path: Path
) -> None:
    found = run(originals, tmp_path / "own", **BY_SPEAKER)
    enrolled = streams(tmp_path / f"own/data/tiny_test_enrolls{SUFFIX}")
    assert enrolled >= {f"utterance speaker enrolment {name}" for name in ("f001", "m003")}
    tried = [streams(tmp_path / f"own/data/tiny_test_trials_{sex}{SUFFIX}") for sex in "fm"]
    assert all(name.startswith("utterance speaker trials ") for name in tried[0] | tried[1])
    assert not shared(found)
    named_option = run(originals, tmp_path / "shared", anonymizer__shared_draws=True, **BY_SPEAKER)
    assert ["7 speakers have the same draw" in text for text in shared(named_option)] == [True]


def test_the_challenges_draws_of_a_speaker_are_shared_in_all_draws_and_that_is_said(
    originals: Path, tmp_path: Path
) -> None:
    settings = {**BY_SPEAKER, "anonymizer__trial_draws": 2, "anonymizer__enrolment_draws": 2}
    found = run(originals, tmp_path / "out", anonymizer__seeding="vpc2024", **settings)
    assert ["7 speakers have the same draw" in text for text in shared(found)] == [True]
    second = [streams(tmp_path / f"out/data/tiny_test_{name}{SUFFIX}-draw2") for name in ("enrolls", "trials_f")]
    assert second[0] & second[1] == {f"utterance speaker f00{number}" for number in (1, 2, 3, 4)}


@pytest.mark.parametrize(("options", "told"), [([], 1), (["--seed", "1"], 0), (["--side", "trials"], 0)])
def test_own_twins_of_one_seed_are_noticed(originals: Path, tmp_path: Path, options: list[str], told: int) -> None:
    data = Path(shutil.copytree(originals, tmp_path / "data"))
    for name, more in (("enrolls", []), ("trials_f", options), ("trials_m", options)):
        arguments = ["anonymize", "mcadams", str(data / f"tiny_test_{name}"), "--level", "speaker", *more]
        outcome = CliRunner().invoke(spkver_main, arguments)
        assert outcome.exit_code == 0, outcome.output
    sets = read_sets(data, tmp_path / "out", "_mcadams", Config(), can_make=True)
    sets = replace(sets, twins={**sets.original, **sets.twins})
    assert [found.level for found in shared_draws(sets)] == ["warning"] * told


def test_a_draw_that_is_missing_is_an_error_where_nothing_may_be_made(originals: Path, own: Path) -> None:
    shutil.rmtree(own / f"data/tiny_test_enrolls{SUFFIX}-draw3")
    outcome = run_recipe(originals, own, "--only", "evaluation", **SETTINGS)
    assert outcome.status == 2
    assert f"tiny_test_enrolls{SUFFIX}-draw3" in outcome.error


def test_an_anonymiser_that_draws_nothing_has_one_draw_and_that_is_said(originals: Path, tmp_path: Path) -> None:
    found = run(originals, tmp_path / "out", anonymizer__alpha="[0.8, 0.8]")
    assert not list((tmp_path / "out/data").glob("*-draw*"))
    assert {len(row["draws"]) for row in found["conditions"]} == {1}
    told = [line for line in found["sanity"] if line["check"] == "trial draws"]
    assert [line["level"] for line in told] == ["note"]
    assert "draws nothing" in told[0]["text"]


@pytest.mark.slow
def test_a_function_that_gives_the_same_again_has_one_draw(originals: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def turn(samples, rate, utterance, rng):\n    return -0.5 * samples[::-1]\n")
    settings = {"anonymizer__name": f"{path}:turn"}
    found = run(originals, tmp_path / "out", **settings)
    assert {len(row["draws"]) for row in found["conditions"]} == {1}
    assert "the first one again" in next(line["text"] for line in found["sanity"] if line["check"] == "trial draws")
    drawn = run(originals, tmp_path / "other", anonymizer__name=REVERSE, anonymizer__trial_draws=2)
    assert {len(row["draws"]) for row in drawn["conditions"] if row["scenario"] != "original"} == {2}


def test_twins_of_unknown_origin_have_one_draw(originals: Path, tmp_path: Path) -> None:
    """One standing directory that nobody knows the origin of leaves the whole set with one."""
    data = tmp_path / "data"
    shutil.copytree(originals, data)
    first = tmp_path / "first"
    made = run_recipe(originals, first, "--suffix", "_mcadams", "--until", "anonymisation", anonymizer__trial_draws=1)
    assert made.status == 0, made.err
    twin = shutil.copytree(first / "data/tiny_test_enrolls_mcadams", data / "tiny_test_enrolls_mcadams")
    write(twin / "wav.scp", [f"{path.stem} {path}" for path in sorted((twin / "wav").iterdir())])
    (twin / "anonymization.json").unlink()
    settings = {name: value for name, value in SETTINGS.items() if name != "anonymizer__name"}
    outcome = run_recipe(data, tmp_path / "out", "--suffix", "_mcadams", **settings)
    assert outcome.status == 0, outcome.err
    assert not list((tmp_path / "out/data").glob("tiny_test*-draw*"))
    assert "nothing in its folder says" in outcome.err


def test_scores_from_elsewhere_give_the_mean_of_the_draws_that_they_have(
    originals: Path, output: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    for path in (output / "exp").glob("asv_*/*/supervector-cosine/scores"):
        folder = path.parents[1]
        if "-draw3" not in folder.name and "_all" not in folder.name:
            target = theirs / folder.relative_to(output / "exp")
            target.mkdir(parents=True)
            shutil.copy(path, target / "scores")
    found = run(originals, tmp_path / "out", attackers=f"[scores:{theirs}]")
    ours = named(results_of(output), "lazy-informed")
    lazy = named(found, "lazy-informed")
    assert [of_draw["eer"] for of_draw in lazy["draws"]] == [of_draw["eer"] for of_draw in ours["draws"][:2]]
    assert lazy["notes"]["draws"] == "no scores of draw 3: means over the other 2"
    assert any("lack draws" in line["text"] for line in found["sanity"])
