"""What lets an evaluation grow: nothing is read twice, no more is anonymised than is learnt from, its cost is told."""

from __future__ import annotations

import re
import shutil
import sys
from collections import namedtuple

import pytest
from recipe_runs import refused
from voiceprivacy_runs import SUFFIX, noting_extractor, run_recipe

from spkver.commands.runs import last_progress

pytestmark = pytest.mark.whole

OPENED: list[str] = []
"""Audio files that this process has opened."""

MCADAMS = {"anonymizer__name": "mcadams", "evaluation__resamples": 0}


def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".wav"):
        OPENED.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def noted():
    """`read_audio` and `audio_header` look at the first bytes before libsndfile opens a file."""
    sys.addaudithook(note)


@pytest.mark.parametrize("until", ["extraction", "report"])
@pytest.mark.parametrize("twins", ["found", "made"])
def test_a_restarted_run_opens_no_audio_file(layout, originals, tmp_path, until, twins):
    settings = {
        "attackers": f"[gmm-ubm,supervector-cosine,{noting_extractor(tmp_path)}]",
        "evaluation__resamples": 0,
        "lists": "[f]",
    }
    data = layout
    if twins == "made":
        data, settings = originals, settings | MCADAMS | {"anonymizer__training_draws": 2}
    counts = []
    for step in (until, "report"):
        OPENED.clear()
        outcome = run_recipe(data, tmp_path / "out", "--until", step, **settings)
        assert outcome.status == 0, outcome.err
        counts.append(len(OPENED))
    assert counts[0] > 80
    assert counts[1] == 0


def test_only_the_training_recordings_in_use_are_anonymised(originals, tmp_path):
    """Oracle: a run that anonymises all, since an attacker of the user's own is among the attackers."""
    extractor = noting_extractor(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def fit(training, seed):\n    return lambda enrolment, tested, trials: [1.0] * len(trials)\n"
    )
    settings = {
        **MCADAMS,
        "attacker_settings__little": f"{{preset: '{extractor}', utterances: 24}}",
        "anonymizer__training_draws": 2,
        "lists": "[f]",
    }
    for name, attackers in (("part", "[little]"), ("all", f"[little,{tmp_path}/mine.py:fit]")):
        run_recipe(originals, tmp_path / name, "--until", "scores", attackers=attackers, **settings)
        made = {
            path.name: len(list(path.glob("wav/*")))
            for path in (tmp_path / name / "data").glob("tiny_train*")
        }
        n_recordings = 12 if name == "part" else 18
        assert made == dict.fromkeys(
            [f"tiny_train{SUFFIX}", f"tiny_train{SUFFIX}-draw2"], n_recordings
        )
    files = sorted((tmp_path / "part/exp").rglob("little/scores"))
    assert len(files) > 3
    for file in files:
        assert (
            file.read_bytes()
            == (tmp_path / "all" / file.relative_to(tmp_path / "part")).read_bytes()
        )


def test_time_memory_and_disk_are_estimated_and_a_full_disk_ends_the_run_immediately(
    originals, tmp_path, monkeypatch
):
    settings = {**MCADAMS, "attackers": "[gmm-svm]", "anonymizer__trial_draws": 2}
    outcome = run_recipe(originals, tmp_path / "out", **settings)
    told = re.search(
        r"about .*?, [\d.]+ [MG]B of memory and ([\d.]+) MB of disk if all is new", outcome.err
    )
    files = [path for path in (tmp_path / "out").rglob("*") if path.suffix in (".wav", ".h5")]
    assert float(told[1]) == pytest.approx(
        sum(path.stat().st_size for path in files) / 1e6, rel=0.4
    )
    usage = namedtuple("usage", "total used free")(10**9, 10**9 - 1000, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    refused(
        run_recipe(originals, tmp_path / "full", **settings),
        "needs about [0-9]+ MB of disk, 0 MB are free",
    )
    assert not list((tmp_path / "full").rglob("*.wav"))
    assert run_recipe(originals, tmp_path / "out", **settings).status == 0  # all is up to date


def test_status_shows_the_last_progress_of_a_background_run(tmp_path):
    begun = "2026-11-26 21:00:00,000 DEBUG spkbase.runs: spkver 0.1.0: run.py"
    told = [
        "about 9 min on 2 cores, 1 GB of memory and 2 GB of disk if all is new: ...",
        "about 8 min if all is new",
    ]
    done = [
        "extraction, vectors: 4 % after 00:30, 10:00 left",
        "extraction, vectors: 9 % after 01:00, 09:00 left",
    ]
    lines = [begun, told[0], done[1], begun, told[1], *done]
    log = tmp_path / "run.log"
    log.write_text(
        "".join(f"2026-11-26 21:00:01,000 INFO spkbase.work: {line}\n" for line in lines)
    )
    assert last_progress(log) == [told[1], done[1]]
    log.write_text(f"{begun}\n")
    assert last_progress(log) == []
