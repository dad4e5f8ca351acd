"""Attackers that are no voice print, and what vectors tell beside identity, in the VoicePrivacy report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of
from voiceprivacy_runs import rows

from evaluation.reports.page import render_page

ATTACKERS = ["prosody", "session", "content"]


def write_texts(data: Path) -> None:
    """Everybody says words of their own, the same in the twins."""
    for directory in data.iterdir():
        speakers = [line.split() for line in (directory / "utt2spk").read_text().splitlines()]
        vp.write(directory / "text", [f"{name} the word of {speaker} and {speaker}x" for name, speaker in speakers])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = vp.write_layout(tmp_path_factory.mktemp("cues") / "vp")
    write_texts(folder)
    people = [*vp.ENROLLED["f"], *vp.ENROLLED["m"], *vp.STRANGERS["f"], *vp.STRANGERS["m"]]
    rows = [f"{name},{'old' if int(name[1:]) % 2 else 'young'},{name}" for name in people]
    vp.write(folder.parent / "people.csv", ["speaker,age,nobody", *rows])
    return folder


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    output = tmp_path_factory.mktemp("run") / "out"
    settings = {"utility__attributes": data.parent / "people.csv", "evaluation__resamples": 0}
    found = vp.evaluated(data, output, attackers=f"[{','.join(ATTACKERS)}]", **settings)
    for training in ("tiny_train", f"tiny_train{vp.SUFFIX}"):
        choice = json.loads((output / "attackers" / training / "content" / "choice.json").read_text())
        assert choice["why"].startswith("chosen by the area under the ROC over 3 folds of 6 background speakers")
    return found


def test_all_scenarios_are_served_and_words_tell_everybody(results: dict) -> None:
    for attacker in ATTACKERS:
        served = {row["scenario"] for row in rows(results["conditions"], attacker=attacker)}
        assert served == set(vp.SCENARIOS)
    assert {row["eer"]["rocch"] for row in rows(results["conditions"], attacker="content")} == {0}


def test_recognition_without_speech_stands_among_the_checks(results: dict) -> None:
    (found,) = vp.findings(results, "recognition without speech")
    rate = vp.condition(results, "all", "original", "session")["eer"]["rocch"]
    assert f"an EER of {100 * rate:.1f} %" in found["text"]


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


def test_without_transcripts_content_says_so_and_the_others_finish(layout: Path, tmp_path: Path) -> None:
    settings = {"evaluation__resamples": 0}
    outcome = vp.run_recipe(layout, tmp_path / "out", attackers="[gmm-ubm,content]", **settings)
    assert "content is left out" in outcome.err
    assert "no transcripts" in outcome.err
    results = results_of(tmp_path / "out")
    assert {row["attacker"] for row in results["conditions"]} == {"gmm-ubm"}
    assert results["attributes"] == {
        "vectors": None, "sets": {}, "notes": ["no vector attacker has scores of original speech"]
    }  # fmt: skip
    outcome = vp.run_recipe(layout, tmp_path / "alone", attackers="[content]", **settings)
    refused(outcome, "no attacker can score any condition: content on", "no transcripts")


def test_a_table_that_is_none_is_told_before_the_start(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    settings = {"attackers": "[prosody]", "utility__attributes": tmp_path / "empty.csv"}
    refused(vp.run_recipe(data, tmp_path / "out", **settings), "empty.csv")
    assert not (tmp_path / "out/exp").exists()
