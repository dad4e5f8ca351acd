"""What changes between two runs of the VoicePrivacy recipe is never used stale; unusual sets; emotions."""

from __future__ import annotations

import json
import shutil

import pytest
import soundfile
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of
from voiceprivacy_runs import rows

from evaluation.challenges.rank_files import SER, read_rank_file, records

pytestmark = pytest.mark.whole

ONE = {"attackers": "[supervector-cosine]", "evaluation__resamples": 0}


@pytest.fixture(scope="module")
def output(layout, tmp_path_factory):
    """What the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("output")
    run(layout, folder)
    return folder


def run(data, output, **settings):
    """Run the recipe with one attacker; returns the results."""
    return vp.evaluated(data, output, **{**ONE, **settings})


# --- changed inputs -------------------------------------------------------------------------------


def another_twin(data):
    """An anonymised utterance becomes another one, of the same length."""
    path = data / f"tiny_test_trials_f{vp.SUFFIX}/wav/f001-3.wav"
    samples, rate = soundfile.read(path, dtype="int16")
    soundfile.write(path, samples[::-1], rate)


def fewer_enrolments(data):
    path = data / "tiny_test_enrolls/enrolls"
    vp.write(path, [line for line in vp.lines_of(path) if line != "f002-2"])


def test_changes_between_runs_redo_only_their_dependents(own, tmp_path):
    """Oracle: a run of the changed data in a fresh folder."""
    before = run(own, tmp_path / "out", lists="[f]")
    for change in (another_twin, fewer_enrolments):
        change(own)
        after = run(own, tmp_path / "out", lists="[f]")
        assert before["conditions"] != after["conditions"]
        before = after
    fresh = run(own, tmp_path / "fresh", lists="[f]")
    ours, theirs = (sorted((tmp_path / name).glob("exp/**/scores")) for name in ("out", "fresh"))
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]
    assert after["conditions"] == fresh["conditions"]
    assert after["lists"] == fresh["lists"]


# --- unusual sets ---------------------------------------------------------------------------------


def test_a_set_with_one_sex_is_not_pooled_and_the_missing_list_is_reported(own, output, tmp_path):
    """Nor are `enrolls` needed: all utterances enrol, which is the same here."""
    for end in ("", vp.SUFFIX):
        shutil.rmtree(own / f"tiny_test_trials_m{end}")
        (own / f"tiny_test_enrolls{end}/enrolls").unlink()
    results, whole = run(own, tmp_path / "out"), results_of(output)
    assert {one["gender"] for one in results["conditions"]} == {"f"}
    assert "tiny_test (women)" in results["verdict"]
    told = vp.findings(results, "missing lists")
    assert [(one["level"], "tiny_test_trials_m" in one["text"]) for one in told] == [
        ("warning", True)
    ]
    assert [one["eer"] for one in results["conditions"]] == [
        one["eer"] for one in rows(whole["conditions"], gender="f")
    ]
    assert not vp.findings(whole, "missing lists")


# --- transcripts of other recognisers -------------------------------------------------------------


@pytest.mark.parametrize("key", ["hypotheses", "predictions"])
def test_anonymised_copies_made_here_have_no_recognised_words(own, tmp_path, key):
    """Its lists are copies: what was heard in the original would count as heard in the anonymised speech."""
    vp.without_twins(own)
    for name in ("tiny_test_trials_f", "tiny_test_trials_m"):
        utterances = [line.split()[0] for line in vp.lines_of(own / name / "utt2spk")]
        vp.write(own / name / "text", [f"{one} ONE TWO" for one in utterances])
        vp.write(own / name / "heard", [f"{one} ONE" for one in utterances])
        vp.write(
            own / name / "utt2emo",
            [f"{one} {('sad', 'ONE')[place % 2]}" for place, one in enumerate(utterances)],
        )
    settings = {"utility__hypotheses": "heard"}
    if key == "predictions":
        settings = {
            "utility__emotion": "[tiny_test_trials_f,tiny_test_trials_m]",
            "utility__predictions": "heard",
        }
    outcome = vp.run_recipe(own, tmp_path / "out", anonymizer__name="vtln", **ONE, **settings)
    refused(
        outcome,
        f"utility.{key}: tiny_test_trials_f, tiny_test_trials_m would be anonymised by this run",
    )
    assert not (tmp_path / "out/data").exists()


def with_emotions(data, *, wrong=0):
    """The women's trials as a set with emotions; in the twin so many predictions are wrong."""
    for end in ("", vp.SUFFIX):
        shutil.copytree(data / f"tiny_test_trials_f{end}", data / f"moods_test{end}")
        path = data / f"moods_test{end}/wav.scp"
        vp.write(
            path,
            [
                line.replace(f"tiny_test_trials_f{end}/", f"moods_test{end}/")
                for line in vp.lines_of(path)
            ],
        )
        utterances = [line.split()[0] for line in vp.lines_of(data / f"moods_test{end}/utt2spk")]
        truth = {one: "sad" if one.endswith("3") else "glad" for one in utterances}
        if not end:
            vp.write(data / "moods_test/utt2emo", [f"{one} {mood}" for one, mood in truth.items()])
        guess = dict.fromkeys(utterances[:wrong] if end else [], "none")
        vp.write(
            data / f"moods_test{end}/guesses",
            [f"{one} {guess.get(one, mood)}" for one, mood in truth.items()],
        )
    return data


def test_recalls_are_computed_from_predictions(own, tmp_path):
    with_emotions(own, wrong=1)
    results = run(own, tmp_path / "out", utility__emotion="[moods_test]", utility__predictions="guesses",
                  challenge__attacker="supervector-cosine")  # fmt: skip
    found = results["utility"]["uar"]["moods_test"]
    # each of the five speakers is a fold; in one of them, one of two classes is missed
    assert [found[kind]["value"] for kind in ("original", "anonymised")] == [
        1.0,
        pytest.approx(0.9),
    ]
    assert found["anonymised"]["recalls"] == {"glad": 1.0, "sad": 0.8}
    assert found["anonymised"]["recogniser"] == "guesses"
    assert {"moods_test/utt2emo", f"moods_test{vp.SUFFIX}/guesses"} <= set(results["lists"])
    ranked = read_rank_file(tmp_path / f"out/exp/results_summary/result_for_rank{vp.SUFFIX}")
    rows = {
        row["ser"]: row
        for row in records(ranked, SER)
        if (row["dataset"], row["split"]) == ("moods", "test")
    }
    assert (rows["original"]["UAR"], rows["anon"]["UAR"], rows["anon"]["ACC_sad"]) == (
        100.0,
        90.0,
        80.0,
    )


DAMAGES = {
    "no emotions": ("moods_test/utt2emo", None, r"moods_test/utt2emo"),
    "one emotion": (
        "moods_test/utt2emo",
        lambda lines: [f"{line.split()[0]} sad" for line in lines],
        r"moods_test/utt2emo.*several emotions, got one",
    ),
    "a stranger": (
        f"moods_test{vp.SUFFIX}/guesses",
        lambda lines: [*lines[1:], "ghost sad"],
        rf"moods_test{vp.SUFFIX}/guesses.*1 utterance missing.*1 utterance unknown: 'ghost'",
    ),
    "no predictions": (f"moods_test{vp.SUFFIX}/guesses", None, rf"moods_test{vp.SUFFIX}/guesses"),
    "no folds": (
        "moods_test/spk2fold",
        lambda _: ["f001 1", "f002 2"],
        r"moods_test/spk2fold.*3 speakers without a fold",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_bad_emotion_sets_are_refused_before_any_long_step(own, tmp_path, name):
    path, change, word = DAMAGES[name]
    path = with_emotions(own) / path
    if change is None:
        path.unlink()
    else:
        vp.write(path, change(vp.lines_of(path) if path.exists() else []))
    outcome = vp.run_recipe(
        own,
        tmp_path / "out",
        **ONE,
        utility__emotion="[moods_test]",
        utility__predictions="guesses",
    )
    refused(outcome, word)
    assert not (tmp_path / "out/work").exists()


# --- twins with unwanted contents -----------------------------------------------------------------


def test_original_audio_of_another_directory_is_found_among_anonymised_files(own, tmp_path):
    """The trials' twin holds a recording that enrols: `check_twin` compares a directory with its own twin alone."""
    shutil.copy(
        own / "tiny_test_enrolls/wav/f002-1.wav",
        own / f"tiny_test_trials_f{vp.SUFFIX}/wav/f001-3.wav",
    )
    (told,) = vp.findings(run(own, tmp_path / "out"), "original audio")
    assert told["level"] == "warning"
    assert f"tiny_test_trials_f{vp.SUFFIX}/f001-3 = tiny_test_enrolls/f002-1" in told["text"]


def test_results_are_standard_json(output):
    """JSON that other tools read: no bare NaN or Infinity."""

    def refuse(name):
        raise AssertionError(f"{name} in results.json")

    assert json.loads((output / "results.json").read_text(), parse_constant=refuse)["format"] == 1


@pytest.mark.parametrize("name", ["tiny_train", "tiny_train/out"])
def test_nothing_is_written_into_a_data_directory(own, name):
    before = sorted(own.rglob("*"))
    refused(vp.run_recipe(own, own / name, **ONE), "is a data directory, or lies in one")
    refused(vp.run_recipe(own, own, **ONE), "is the folder of the data")
    assert sorted(own.rglob("*")) == before
