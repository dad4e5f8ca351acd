"""Attackers that are no voice print, in the VoicePrivacy report."""

from __future__ import annotations

import json

import pytest
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of
from voiceprivacy_runs import rows

pytestmark = pytest.mark.whole

ATTACKERS = ["prosody", "session", "content", "properties"]


def write_texts(data):
    """Everybody says words of their own, the same in the twins."""
    for directory in data.iterdir():
        speakers = [line.split() for line in (directory / "utt2spk").read_text().splitlines()]
        vp.write(
            directory / "text",
            [f"{name} the word of {speaker} and {speaker}x" for name, speaker in speakers],
        )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = vp.write_layout(tmp_path_factory.mktemp("cues") / "vp")
    write_texts(folder)
    return folder


@pytest.fixture(scope="module")
def results(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("run") / "out"
    found = vp.evaluated(
        data, output, attackers=f"[{','.join(ATTACKERS)}]", evaluation__resamples=0
    )
    for training in ("tiny_train", f"tiny_train{vp.SUFFIX}"):
        choice = json.loads(
            (output / "attackers" / training / "content" / "choice.json").read_text()
        )
        assert choice["why"].startswith(
            "chosen by the area under the ROC over 3 folds of 6 background speakers"
        )
    return found


def test_cue_attackers_serve_all_scenarios_and_words_identify_everybody(results):
    for attacker in ATTACKERS:
        served = {row["scenario"] for row in rows(results["conditions"], attacker=attacker)}
        assert served == set(vp.SCENARIOS)
    assert {row["eer"]["rocch"] for row in rows(results["conditions"], attacker="content")} == {0}


def test_recognition_without_speech_is_reported_by_the_checks(results):
    told = [finding["text"] for finding in vp.findings(results, "recognition without speech")]
    for attacker in ("session", "properties"):
        rate = vp.condition(results, "all", "original", attacker)["eer"]["rocch"]
        assert (
            sum(
                f"({attacker})" in text and f"an EER of {100 * rate:.1f} %" in text for text in told
            )
            == 1
        )


def test_without_transcripts_the_content_attacker_is_omitted_and_the_others_finish(
    layout, tmp_path
):
    settings = {"lists": "[f]"}
    outcome = vp.run_recipe(layout, tmp_path / "out", attackers="[gmm-ubm,content]", **settings)
    assert "content is left out" in outcome.err
    assert "no transcripts" in outcome.err
    results = results_of(tmp_path / "out")
    assert {row["attacker"] for row in results["conditions"]} == {"gmm-ubm"}
    outcome = vp.run_recipe(layout, tmp_path / "alone", attackers="[content]", **settings)
    refused(outcome, "no attacker can score any condition: content on", "no transcripts")


def test_fusions_include_words_only_by_name_and_never_file_properties(data, tmp_path):
    found = vp.evaluated(
        data,
        tmp_path / "out",
        attackers="[gmm-ubm,properties,content,fusion]",
        lists="[f]",
    )
    members = {}
    for fusion in found["fusions"]:
        members.setdefault(fusion["attacker"], set()).update(fusion["weights"]["weights"])
    assert members["fusion"] == {"gmm-ubm"}
    assert members["fusion-words"] == {"gmm-ubm", "content"}


def test_files_with_equal_properties_are_not_reported_as_a_broken_attacker(data, tmp_path):
    found = vp.evaluated(
        data, tmp_path / "out", attackers="[properties,gmm-ubm]", evaluation__resamples=0
    )
    assert not any(
        "properties" in finding["text"] for finding in vp.findings(found, "broken attackers")
    )
