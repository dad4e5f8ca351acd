"""Attackers that are no voice print, and what vectors tell beside identity, in the VoicePrivacy report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from voiceprivacy_runs import ENROLLED, STRANGERS, SUFFIX, run_recipe, write, write_layout

from evaluation.reports.page import render_page

ATTACKERS = ["prosody", "session", "content"]
SCENARIOS = ["original", "ignorant", "lazy-informed", "semi-informed"]


def write_texts(data: Path) -> None:
    """Everybody says words of their own, the same in the twins."""
    for directory in data.iterdir():
        speakers = [line.split() for line in (directory / "utt2spk").read_text().splitlines()]
        write(directory / "text", [f"{name} the word of {speaker} and {speaker}x" for name, speaker in speakers])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_layout(tmp_path_factory.mktemp("cues") / "vp")
    write_texts(folder)
    people = [*ENROLLED["f"], *ENROLLED["m"], *STRANGERS["f"], *STRANGERS["m"]]
    rows = [f"{name},{'old' if int(name[1:]) % 2 else 'young'},{name}" for name in people]
    write(folder.parent / "people.csv", ["speaker,age,nobody", *rows])
    return folder


def run(data: Path, output: Path, attackers: list[str], **settings: object) -> dict:
    outcome = run_recipe(data, output, attackers=f"[{','.join(attackers)}]", **settings)
    assert outcome.status == 0, outcome.err
    return json.loads((output / "results.json").read_text())


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    output = tmp_path_factory.mktemp("run") / "out"
    found = run(data, output, ATTACKERS, utility__attributes=data.parent / "people.csv")
    for training in ("tiny_train", f"tiny_train{SUFFIX}"):
        choice = json.loads((output / "attackers" / training / "content" / "choice.json").read_text())
        assert choice["why"].startswith("chosen by the area under the ROC over 3 folds of 6 background speakers")
    return found


def test_all_scenarios_are_served(results: dict) -> None:
    for attacker in ATTACKERS:
        served = {row["scenario"] for row in results["conditions"] if row["attacker"] == attacker}
        assert served == set(SCENARIOS)


def test_words_tell_everybody_whatever_is_done_to_the_voice(results: dict) -> None:
    rates = {row["eer"]["rocch"] for row in results["conditions"] if row["attacker"] == "content"}
    assert rates == {0}


def test_recognition_without_speech_stands_among_the_checks(results: dict) -> None:
    found = [finding for finding in results["sanity"] if finding["check"] == "recognition without speech"]
    (condition,) = [
        row
        for row in results["conditions"]
        if (row["attacker"], row["scenario"], row["gender"]) == ("session", "original", "all")
    ]
    assert len(found) == 1
    assert f"an EER of {100 * condition['eer']['rocch']:.1f} %" in found[0]["text"]


def test_attributes_are_read_from_the_vectors(results: dict) -> None:
    measured = results["attributes"]
    assert measured["vectors"] in ("prosody", "session")
    found = measured["sets"]["tiny_test"]
    assert set(found) == {"sex", "age"}
    assert found["sex"]["learnt_from"] == "training"
    assert found["age"]["learnt_from"] == "folds"  # the table knows no training speaker
    assert found["sex"]["original"]["n_speakers"] == 9
    for leakage in found.values():
        for scenario in ("original", "ignorant", "informed"):
            assert 0 <= leakage[scenario]["value"] <= 1
    assert any("nobody: not measured: expected at least two classes" in note for note in measured["notes"])
    page = render_page(results, folder=".")
    assert 'id="attributes"' in page
    assert "vectors of " in page


def test_without_transcripts_content_says_so_and_the_others_finish(tmp_path: Path) -> None:
    data = write_layout(tmp_path / "vp")
    outcome = run_recipe(data, tmp_path / "out", attackers="[gmm-ubm,content]")
    assert "content is left out" in outcome.err
    assert "no transcripts" in outcome.err
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["attacker"] for row in results["conditions"]} == {"gmm-ubm"}
    assert results["attributes"] == {
        "vectors": None, "sets": {}, "notes": ["no vector attacker has scores of original speech"]
    }  # fmt: skip


def test_a_table_that_is_none_is_told_before_the_start(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    outcome = run_recipe(data, tmp_path / "out", attackers="[prosody]", utility__attributes=tmp_path / "empty.csv")
    assert outcome.status == 2
    assert "empty.csv" in outcome.error
    assert SUFFIX not in str(list((tmp_path / "out").glob("exp/*")))


def test_content_alone_without_transcripts_is_told(tmp_path: Path) -> None:
    outcome = run_recipe(write_layout(tmp_path / "vp"), tmp_path / "out", attackers="[content]")
    assert outcome.status == 2
    assert "no attacker serves any condition: content lacks" in outcome.error
    assert "no transcripts" in outcome.error
