"""The recipe with several recordings of one speaker at once: rows, files and page beside those of single recordings."""

from __future__ import annotations

import pytest
from recipe_runs import results_of
from voiceprivacy_runs import noting_extractor, run_recipe

from evaluation.formats import read_conversations, read_key, read_scores
from evaluation.trials import read_speakers

pytestmark = pytest.mark.whole


def test_conversations_add_rows_and_leave_those_of_single_recordings_unchanged(layout, tmp_path):
    settings = {
        "attackers": "[gmm-ubm,mine]",
        "attacker_settings__mine__preset": noting_extractor(tmp_path),
    }
    output = tmp_path / "out"
    assert run_recipe(layout, output, **settings).status == 0
    before = results_of(output)
    files = {path: path.read_bytes() for path in output.glob("exp/*/*/*/scores")}
    dates = {path: path.stat().st_mtime_ns for path in output.glob("numbers/*/*.json")}
    heard = (tmp_path / "calls").read_text()
    outcome = run_recipe(layout, output, page=True, evaluation__utterances="[1,2]", **settings)
    assert outcome.status == 0, outcome.err
    after = results_of(output)
    # no recording is read again, and no score or number of single recordings is computed again
    assert (tmp_path / "calls").read_text() == heard
    assert all(path.read_bytes() == raw for path, raw in files.items())
    assert all(path.stat().st_mtime_ns == date for path, date in dates.items())
    assert after["conditions"] == before["conditions"]
    assert after["summary"] == before["summary"]
    assert before["conversations"] == []
    names = ("dataset", "gender", "scenario", "attacker")
    identities = [
        [tuple(row[name] for name in names) for row in after[key]]
        for key in ("conditions", "conversations")
    ]
    assert sorted(identities[0]) == sorted(identities[1])
    for row in after["conversations"]:
        assert row["utterances"] == 2
        people = {"f": 5, "m": 4, "all": 9}[row["gender"]]
        assert row["notes"]["conversations"] == f"{people} conversations of 2 recordings"
        key = read_key(output / row["key"])
        speakers = read_speakers(output / row["segment_speakers"])
        assert sorted(read_scores(output / row["scores"]).pairs()) == sorted(key.pairs())
        for (model, name), is_target in zip(key.pairs(), key.is_target, strict=True):
            assert is_target == (speakers[name] == model)
        recordings = read_conversations((output / row["key"]).parent)
        assert {name: parts[0][:4] for name, parts in recordings.items()} == speakers
    page = (output / "report.html").read_text()
    assert 'id="conversations"' in page
    assert "Recordings" in outcome.out


@pytest.mark.parametrize("utterances", ["[5]", "[0,1]", "[1,1]", "[]"])
def test_wrong_numbers_of_recordings_are_refused(layout, tmp_path, utterances):
    outcome = run_recipe(layout, tmp_path / "out", evaluation__utterances=utterances)
    assert outcome.status == 2
    assert "expected 1 and whole numbers above it, each once" in outcome.err
