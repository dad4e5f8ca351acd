"""What changes between two runs of the VoicePrivacy recipe is never used stale; unusual sets; emotions."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import soundfile
from recipe_runs import Outcome
from voiceprivacy_runs import SUFFIX, lines_of, run_recipe, write

from evaluation.challenges.rank_files import SER, read_rank_file, records

ONE = {"attackers": "[supervector-cosine]", "evaluation__replicates": 0}


@pytest.fixture(scope="module")
def output(layout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("output")
    run(layout, folder)
    return folder


def run(data: Path, output: Path, *arguments: str, **settings: object) -> dict:
    """Run the recipe with one attacker; returns the results."""
    outcome = run_recipe(data, output, *arguments, **{**ONE, **settings})
    assert outcome.status == 0, outcome.err
    return json.loads((output / "results.json").read_text())


def refused(outcome: Outcome, *words: str) -> None:
    """One clear error with these words, and nothing long started."""
    assert outcome.status == 2, outcome.err
    for word in words:
        assert re.search(word, outcome.error), f"{word!r} is not in: {outcome.error}"


def rates(results: dict) -> dict[tuple[str, str, str], float]:
    return {(one["dataset"], one["gender"], one["scenario"]): one["eer"]["rocch"] for one in results["conditions"]}


def score_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "exp").rglob("scores")
        if path.parent.name == "supervector-cosine"
    }


# --- changed inputs -------------------------------------------------------------------------------


def another_twin(data: Path) -> None:
    """An anonymised utterance becomes another one, of the same length."""
    path = data / f"tiny_test_trials_f{SUFFIX}/wav/f001-3.wav"
    samples, rate = soundfile.read(path, dtype="int16")
    soundfile.write(path, samples[::-1], rate)


def fewer_enrolments(data: Path) -> None:
    path = data / "tiny_test_enrolls/enrolls"
    write(path, [line for line in lines_of(path) if line != "f002-2"])


@pytest.mark.parametrize("change", [another_twin, fewer_enrolments])
def test_what_changed_between_two_runs_is_done_anew(own, tmp_path, change):
    """Oracle: a run of the changed data in a fresh folder."""
    before = run(own, tmp_path / "out")
    change(own)
    after = run(own, tmp_path / "out")
    fresh = run(own, tmp_path / "fresh")
    assert score_files(tmp_path / "out") == score_files(tmp_path / "fresh")
    assert after["conditions"] == fresh["conditions"]
    assert after["lists"] == fresh["lists"]
    assert before["conditions"] != after["conditions"]


# --- unusual sets ---------------------------------------------------------------------------------


def test_a_set_of_one_sex_is_not_pooled_and_the_missing_list_is_told(own, output, tmp_path):
    for end in ("", SUFFIX):
        shutil.rmtree(own / f"tiny_test_trials_m{end}")
    results = run(own, tmp_path / "out")
    assert {one["gender"] for one in results["conditions"]} == {"f"}
    assert "tiny_test (women)" in results["verdict"]
    told = [one for one in results["sanity"] if one["check"] == "missing lists"]
    assert [(one["level"], "tiny_test_trials_m" in one["text"]) for one in told] == [("warning", True)]
    whole = json.loads((output / "results.json").read_text())
    assert rates(results).items() <= rates(whole).items()
    assert not [one for one in whole["sanity"] if one["check"] == "missing lists"]


def test_without_enrolls_all_utterances_enrol(own, output, tmp_path):
    for end in ("", SUFFIX):
        (own / f"tiny_test_enrolls{end}/enrolls").unlink()
    assert run(own, tmp_path / "out")["conditions"] == json.loads((output / "results.json").read_text())["conditions"]


# --- what other recognisers made ------------------------------------------------------------------


@pytest.mark.parametrize("key", ["hypotheses", "predictions"])
def test_a_twin_that_is_made_here_has_nothing_that_was_recognised(own, tmp_path, key):
    """Its lists are copies: what was heard in the original would count as heard in the anonymised speech."""
    for twin in own.glob(f"*{SUFFIX}"):
        shutil.rmtree(twin)
    for name in ("tiny_test_trials_f", "tiny_test_trials_m"):
        utterances = [line.split()[0] for line in lines_of(own / name / "utt2spk")]
        write(own / name / "text", [f"{one} ONE TWO" for one in utterances])
        write(own / name / "heard", [f"{one} ONE" for one in utterances])
        write(own / name / "utt2emo", [f"{one} {('sad', 'ONE')[place % 2]}" for place, one in enumerate(utterances)])
    settings = {"utility__hypotheses": "heard"}
    if key == "predictions":
        settings = {"utility__emotion": "[tiny_test_trials_f,tiny_test_trials_m]", "utility__predictions": "heard"}
    outcome = run_recipe(own, tmp_path / "out", anonymizer__name="vtln", **ONE, **settings)
    refused(outcome, f"utility.{key}: tiny_test_trials_f, tiny_test_trials_m would be anonymised here")
    assert not (tmp_path / "out/data").exists()


def with_emotions(data: Path, *, wrong: int = 0) -> Path:
    """The women's trials as a set with emotions; in the twin so many predictions are wrong."""
    for end in ("", SUFFIX):
        shutil.copytree(data / f"tiny_test_trials_f{end}", data / f"moods_test{end}")
        path = data / f"moods_test{end}/wav.scp"
        write(path, [line.replace(f"tiny_test_trials_f{end}/", f"moods_test{end}/") for line in lines_of(path)])
        utterances = [line.split()[0] for line in lines_of(data / f"moods_test{end}/utt2spk")]
        truth = {one: "sad" if one.endswith("3") else "glad" for one in utterances}
        if not end:
            write(data / "moods_test/utt2emo", [f"{one} {mood}" for one, mood in truth.items()])
        guess = dict.fromkeys(utterances[:wrong] if end else [], "none")
        write(data / f"moods_test{end}/guesses", [f"{one} {guess.get(one, mood)}" for one, mood in truth.items()])
    return data


def test_recalls_come_from_predictions(own, tmp_path):
    with_emotions(own, wrong=1)
    results = run(own, tmp_path / "out", utility__emotion="[moods_test]", utility__predictions="guesses",
                  challenge__attacker="supervector-cosine")  # fmt: skip
    found = results["utility"]["uar"]["moods_test"]
    # five speakers are a fold each; in one of them one of two classes is missed
    assert [found[kind]["value"] for kind in ("original", "anonymised")] == [1.0, pytest.approx(0.9)]
    assert found["anonymised"]["recalls"] == {"glad": 1.0, "sad": 0.8}
    assert found["anonymised"]["recogniser"] == "guesses"
    assert {"moods_test/utt2emo", f"moods_test{SUFFIX}/guesses"} <= set(results["lists"])
    ranked = read_rank_file(tmp_path / f"out/exp/results_summary/result_for_rank{SUFFIX}")
    rows = {row["ser"]: row for row in records(ranked, SER) if (row["dataset"], row["split"]) == ("moods", "test")}
    assert (rows["original"]["UAR"], rows["anon"]["UAR"], rows["anon"]["ACC_sad"]) == (100.0, 90.0, 80.0)


def lacking(data: Path) -> None:
    (data / "moods_test/utt2emo").unlink()


def one_mood(data: Path) -> None:
    path = data / "moods_test/utt2emo"
    write(path, [f"{line.split()[0]} sad" for line in lines_of(path)])


def unknown_utterance(data: Path) -> None:
    path = data / f"moods_test{SUFFIX}/guesses"
    write(path, [*lines_of(path)[1:], "ghost sad"])


def no_predictions(data: Path) -> None:
    (data / f"moods_test{SUFFIX}/guesses").unlink()


def homeless(data: Path) -> None:
    write(data / "moods_test/spk2fold", ["f001 1", "f002 2"])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lacking, [r"moods_test/utt2emo"]),
        (one_mood, [r"moods_test/utt2emo.*several emotions, got one"]),
        (unknown_utterance, [rf"moods_test{SUFFIX}/guesses.*1 utterances missing.*1 utterances unknown: 'ghost'"]),
        (no_predictions, [rf"moods_test{SUFFIX}/guesses"]),
        (homeless, [r"moods_test/spk2fold.*3 speakers without a fold"]),
    ],
)
def test_bad_sets_of_emotions_are_told_before_anything_long(own, tmp_path, damage, words):
    with_emotions(own)
    damage(own)
    outcome = run_recipe(own, tmp_path / "out", **ONE, utility__emotion="[moods_test]", utility__predictions="guesses")
    refused(outcome, *words)
    assert not (tmp_path / "out/work").exists()


# --- the twin holds what it must not ---------------------------------------------------------------


def test_original_audio_of_another_directory_is_found_in_a_twin(own, tmp_path):
    """The trials' twin holds a recording that enrols: `check_twin` compares a directory with its own twin alone."""
    shutil.copy(own / "tiny_test_enrolls/wav/f002-1.wav", own / f"tiny_test_trials_f{SUFFIX}/wav/f001-3.wav")
    results = run(own, tmp_path / "out")
    (told,) = [one for one in results["sanity"] if one["check"] == "original audio"]
    assert told["level"] == "warning"
    assert f"tiny_test_trials_f{SUFFIX}/f001-3 = tiny_test_enrolls/f002-1" in told["text"]


def test_results_are_json_that_every_tool_reads(output):
    """JSON that other tools read: no bare NaN or Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in results.json")

    assert json.loads((output / "results.json").read_text(), parse_constant=refuse)["format"] == 1


@pytest.mark.parametrize("name", ["tiny_train", "tiny_train/out"])
def test_nothing_is_written_into_a_data_directory(own, name):
    before = sorted(own.rglob("*"))
    refused(run_recipe(own, own / name, **ONE), "is a data directory, or lies in one")
    assert sorted(own.rglob("*")) == before
