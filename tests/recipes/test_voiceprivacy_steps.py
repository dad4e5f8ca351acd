"""A run of the VoicePrivacy recipe that is cut up, killed, damaged or on a cluster ends with the same bits."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name
from unittest.mock import patch

import pytest
import soundfile
from command_lines import passes
from recipe_runs import datasets, leftovers, results_of
from sklearn.svm import SVC, LinearSVC
from voiceprivacy_runs import noting_extractor, recipe_options, run_recipe, stamps

from spkver import voiceprivacy
from spkver.anonymization import RECORD, AnonymizerConfig, anonymize_datadir
from spkver.datadir import read_datadir

pytestmark = pytest.mark.whole(seconds=30)

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
ANONYMISER = ("--suffix", "_mcadams")
SETTINGS = {"attackers": "[gmm-svm]", "evaluation__resamples": 0}
SCORES = "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f_mcadams/gmm-svm/scores"
CONDITIONS = "numbers/tiny_test_mcadams/gmm-svm.json"


# keys in the names of folders and files are made from the times of change of the recordings
_KEY = re.compile(r"-?[0-9a-f]{16}")


def outputs(output):
    """Everything but logs, timings, dates, plots and the records of what was made from what."""
    arrays = {
        (_KEY.sub("", name), dataset, *value) for (name, dataset), value in datasets(output).items()
    }
    results = json.loads((output / "results.json").read_text())
    # lists of files that were made here hold their paths
    results["lists"] = {
        name: value for name, value in results["lists"].items() if not name.endswith("/wav.scp")
    }
    files = [
        *output.glob("exp/**/*"),
        *output.glob("data/**/*"),
        *output.glob("attackers/*/*/attacker.yaml"),
    ]
    files += [
        *output.glob("numbers/**/*.json"),
        *output.glob("*/*/predictions"),
        *output.glob("pitch/*/tracks/*.json"),
    ]
    return {
        "arrays": arrays,
        "results": {
            name: value for name, value in results.items() if name not in ("timings", "run")
        },
        **{
            str(path.relative_to(output)): _content(path)
            for path in files
            if path.is_file() and path.name not in ("wav.scp", "stages.json")
        },
    }


def _content(path):
    if path.name == "anonymization.json":
        record = json.loads(path.read_text())
        for entry in record["files"].values():
            del entry["source"]["time"], entry["output"]["time"]
        return record
    # fingerprints of files that record a time
    if path.name == "attacker.yaml" or path.parent.name == "tracks":
        return re.sub(r"fingerprint\W+\w+", "", path.read_text())
    return path.read_bytes()


def check_same(output, undisturbed):
    """The same to the last bit, and nothing unfinished beside it."""
    found = outputs(output)
    assert found.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        assert found[name] == value, name
    unfinished = [
        *output.rglob("partial"),
        *output.rglob("*.journal"),
        *output.rglob("*.draft"),
        *leftovers(output),
    ]
    assert not unfinished


def run(data, output, *arguments, **settings):
    return run_recipe(data, output, *ANONYMISER, *arguments, **{**SETTINGS, **settings})


@pytest.fixture(scope="module")
def finished(originals, tmp_path_factory):
    """A copy of what the recipe makes of it; read only."""
    folder = tmp_path_factory.mktemp("finished")
    outcome = run(originals, folder / "out")
    assert outcome.status == 0, outcome.err
    return Path(shutil.copytree(folder / "out", folder / "copy"))


@pytest.fixture
def output(finished):
    """The same in its own place, times of change included, for a test to go on from: paths are part of stages."""
    place = finished.with_name("out")
    shutil.rmtree(place)
    return Path(shutil.copytree(finished, place))


# the first file or folder that a step leaves
LEFT = {
    "checks": "run.log",
    "anonymisation": "data/tiny_train_mcadams/anonymization.json",
    "pairs": "pairs_mcadams.json",
    "facts": "data/tiny_train_mcadams/anonymization.json",  # the record: nothing to recognise
    "plan": "plan.csv",
    "extraction": "work",
    "training": "attackers",
    "scores": SCORES,
    "evaluation": CONDITIONS,
    "utility": CONDITIONS,
    "report": "results.json",
}


def test_running_the_steps_separately_gives_the_same_results(
    originals, finished, tmp_path, monkeypatch
):
    output, plan = (
        tmp_path / "out",
        patch("soundfile.SoundFile.read", refuse)(voiceprivacy.plan_attacks),
    )
    monkeypatch.setattr("spkver.voiceprivacy.plan_attacks", plan)
    for number, step in enumerate(LEFT):
        outcome = run(originals, output, "--until", step)
        assert outcome.status == 0, outcome.err
        assert step == "report" or f"  {step}: " in outcome.out
        assert step == "report" or "the same command without --until" in outcome.out
        there = {name for name in LEFT.values() if (output / name).exists()}
        assert there == {*list(LEFT.values())[: number + 1]}
        assert (output / "lists").exists() == (number >= 4)
        assert (output / "exp").exists() == (number >= 7)
        assert (output / "checks_mcadams.json").exists() == (step != "checks")
    check_same(output, outputs(finished))


TRAINING = (
    *("spkver.mixture.accumulate_statistics", "spkver.vectors.extract_ivectors"),
    *("spkver.vectors.adapt_supervectors", "spkver.vectors.adapt_multisession"),
    *("spkver.mixture.train_ubm", "spkver.vectors.train_total_variability"),
    *("spkver.attackers.chain_choice.choose_chain", "spkver.attackers.chain_choice.train_chain"),
    "spkver.attackers.warping.fit_warp_estimator",
)
OWN = "def attack(training, seed):\n    return lambda enrolment, tested, trials: [len(m + s) for m, s in trials]\n"


def refuse(*given, **named):
    raise AssertionError("a step reaches back")


def every_kind_of_attacker(folder):
    """Settings of a run with attackers of every kind, two of which are written into a folder."""
    (folder / "mine.py").write_text(OWN)
    return {
        "attackers": "[gmm-ubm,gmm-svm,ivector,heard,own,gmm-ubm-inverted,ivector-adapted,fusion]",
        "attacker_settings.heard.preset": noting_extractor(folder),
        "attacker_settings.own.preset": f"{folder}/mine.py:attack",
        "attacker_settings.heard.chains": "[cosine,centre]",
        "attacker_settings.ivector": "{chains: [centre], total_variability: {rank: 4, rounds: 2}}",
        "lists": "[f]",
    }


def ended(data, output, *arguments, **settings):
    outcome = run(data, output, *arguments, **settings)
    assert outcome.status == 0, outcome.err


def test_no_step_repeats_the_work_of_an_earlier_one(originals, tmp_path, monkeypatch):
    """After extraction no audio is read, after training nothing is trained and no vector is computed, after scoring no
    machine is fitted.
    """
    settings = every_kind_of_attacker(tmp_path)
    # a user's function runs in processes of its own, where nothing is watched
    settings["attackers"] = settings["attackers"].replace("own,", "")
    del settings["attacker_settings.own.preset"]
    output, calls = tmp_path / "out", tmp_path / "calls"
    with ExitStack() as stack:
        trained = {
            name: stack.enter_context(patch(name, wraps=resolve_name(name))) for name in TRAINING
        }
        ended(originals, output, "--until", "extraction", **settings)
        read, heard = stamps(output.glob("work/**/*.h5")), calls.read_text()
        # recordings of training, enrolment and tests, original and anonymised
        assert len(heard) == 2 * (18 + 14 + 10)
        for step in ("plan_attacks", "fit", "score"):
            place = f"spkver.voiceprivacy.{step}"
            monkeypatch.setattr(place, patch("soundfile.SoundFile", refuse)(resolve_name(place)))
        ended(originals, output, "--until", "training", **settings)
    assert [name for name, function in trained.items() if not function.called] == []
    for name in TRAINING:
        monkeypatch.setattr(name, refuse)

    def assess(*given, then=voiceprivacy.assess):
        places = [
            (soundfile, "read"),
            (soundfile.SoundFile, "read"),
            (SVC, "fit"),
            (LinearSVC, "fit"),
        ]
        for name in sorted(name for name in sys.modules if name.startswith("spkver.")):
            module = sys.modules[name]
            places += [(module, one) for one in vars(module) if one.startswith(("train_", "fit_"))]
            kinds = [
                one for one in vars(module).values() if isinstance(one, type) and "fit" in vars(one)
            ]
            places += [(kind, "fit") for kind in kinds if kind.__module__ == name]
        assert len(places) > 20
        for place, name in places:
            monkeypatch.setattr(place, name, refuse)
        return then(*given)

    monkeypatch.setattr(voiceprivacy, "assess", assess)
    ended(originals, output, "--set", "evaluation.resamples=2", **settings)
    checks = [one["check"] for one in results_of(output)["sanity"]]
    assert {"pairs", "duplicate audio"} <= set(checks)
    assert stamps(read) == read
    assert calls.read_text() == heard
    assert not {*output.glob("work/*/*.h5"), *output.glob("work/vectors/*/*.h5")} - read.keys()
    cepstra = {
        key: names
        for key, (_, names) in datasets(output / "work").items()
        if key[0].endswith("features.h5")
    }
    ids = re.findall(
        rb"[0-9a-f]{64}", b"".join(names for (_, part), names in cepstra.items() if part == "ids")
    )
    assert len(set(ids)) == len(ids) > 100  # each recording is read once
    assert {path.parent.name for path in output.glob("exp/*/*/*/scores")} == {
        *("gmm-ubm", "gmm-svm", "ivector", "heard", "gmm-ubm-inverted", "ivector-adapted"),
        *("fusion", "fusion-inverted"),
    }


@pytest.mark.slow
def test_attackers_of_every_kind_have_the_same_scores_step_by_step(originals, tmp_path):
    settings = every_kind_of_attacker(tmp_path)
    whole, output = tmp_path / "whole", tmp_path / "out"
    ended(originals, whole, "--until", "scores", **settings)
    for step in ("extraction", "training", "scores"):
        ended(originals, output, "--until", step, **settings)
    scores = sorted(output.glob("exp/*/*/*/scores"))
    assert len(scores) > 30
    for path in scores:
        assert path.read_bytes() == (whole / path.relative_to(output)).read_bytes(), path


def test_an_unrecorded_anonymiser_is_recognised_once_and_planning_reads_no_speech(
    originals, tmp_path, monkeypatch
):
    data, output = Path(shutil.copytree(originals, tmp_path / "data")), tmp_path / "out"
    for folder in sorted(data.iterdir()):
        twin = anonymize_datadir(
            read_datadir(folder), data / f"{folder.name}_mine", AnonymizerConfig(), jobs=1
        )
        (twin.path / RECORD).unlink()
    settings = {"attackers": "[gmm-ubm,gmm-ubm-inverted]", "lists": "[f]"}

    def until(step):
        outcome = run_recipe(data, output, "--suffix", "_mine", "--until", step, **settings)
        assert outcome.status == 0, outcome.err
        return outcome.out

    assert "tiny_train: mcadams, from pairs" in until("facts")
    file = output / "checks/anonymiser-of-tiny_train_mine.json"
    kept = stamps([file])
    assert json.loads(file.read_text())["anonymizer"] == "mcadams"
    for step in ("find_facts", "plan_attacks"):
        place = f"spkver.voiceprivacy.{step}"
        monkeypatch.setattr(place, patch("soundfile.SoundFile.read", refuse)(resolve_name(place)))
    until("plan")
    assert stamps([file]) == kept
    assert "gmm-ubm-inverted" in (output / "plan.csv").read_text()


def test_exchanged_recordings_are_reported_before_training(own, tmp_path):
    """By words of another recogniser, one utterance further."""
    for folder in own.glob("tiny_*"):
        names = [line.split()[0] for line in (folder / "wav.scp").read_text().splitlines()]
        said = [f"first{number} second{number} third{number}" for number in range(len(names))]
        heard = said[1:] + said[:1]
        for file, texts in {"text": said, "heard": heard}.items():
            (folder / file).write_text(
                "".join(f"{name} {text}\n" for name, text in zip(names, texts, strict=True))
            )
    exempt = {**SETTINGS, "anonymizer__name": "none"}  # a setting does not exempt anything
    outcome = run_recipe(
        own, tmp_path / "out", "--until", "pairs", **exempt, utility__hypotheses="heard"
    )
    assert outcome.status == 0, outcome.err
    assert re.search(
        "no verdict will be given: tiny_train_anon: .* match the wrong one", outcome.err
    )
    assert '"state": "exchanged"' in (tmp_path / "out/pairs_anon.json").read_text()


def test_status_shows_finished_steps(originals, output):
    def states():
        return {
            stage["stage"]: stage["state"]
            for record in json.loads(passes("status", "--json", output).output)
            for stage in record["stages"]
        }

    found = states()
    assert set(found.values()) == {"done"}
    assert {"recordings of tiny_train_mcadams", "evidence"} <= set(found)
    (output / "data/tiny_train_mcadams/wav/f101-1.wav").unlink()
    (output / SCORES).write_bytes(b"")
    found = states()
    assert found["recordings of tiny_train_mcadams"] == "missing"
    assert found[f"scores of gmm-svm in {Path(SCORES).parents[1]}"] == "damaged"


def test_force_redoes_everything(originals, output):
    before = outputs(output)
    patterns = (
        "data/*/wav/*.wav",
        "work/*/*.h5",
        "work/*/*/*.h5",
        "attackers/*/*/attacker.h5",
        "exp/*/*/*/scores",
    )
    files = [path for pattern in patterns for path in output.glob(pattern)] + [output / CONDITIONS]
    # kept open: no new file gets the inode of a removed one
    held = {path: path.open("rb") for path in files}
    outcome = run(originals, output, "--force")
    assert outcome.status == 0, outcome.err
    check_same(output, before)
    assert len(files) > 60
    assert not [
        path
        for path in files
        if path.exists() and os.path.samestat(path.stat(), os.fstat(held[path].fileno()))
    ]
    for file in held.values():
        file.close()


@pytest.mark.parametrize("step", ["scroes", "simulation"])
def test_an_unknown_last_step_is_refused(originals, tmp_path, step):
    outcome = run(originals, tmp_path / "out", "--until", step)
    assert outcome.status == 2
    assert ("nothing to simulate" if step == "simulation" else "scroes") in outcome.err


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("data/tiny_test_trials_f_mcadams/wav/f001-3.wav", ()),
        (SCORES, ()),
        (SCORES.replace("trials_f", "trials_all"), ()),
        (CONDITIONS, ()),
        ("attackers/tiny_train/gmm-svm/backend.h5", ("exp/*/*/*/scores",)),
    ],
)
def test_truncated_and_missing_files_are_made_again(originals, finished, output, name, needed):
    # removed, so that the truncated or missing file is needed
    for path in [path for pattern in needed for path in output.glob(pattern)]:
        path.unlink()
    os.truncate(output / name, (output / name).stat().st_size // 2)
    outcome = run(originals, output)
    assert outcome.status == 0, outcome.err
    check_same(output, outputs(finished))


@pytest.mark.slow
def test_a_run_killed_at_random_moments_gives_the_same_bits(originals, finished, tmp_path):
    moments, output = random.Random(1), tmp_path / "out"
    command = [
        sys.executable,
        str(RECIPE),
        *recipe_options(originals, output, *ANONYMISER, **SETTINGS),
    ]
    for _ in range(3):
        with subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            time.sleep(moments.uniform(1, 6))
            os.killpg(process.pid, signal.SIGKILL)
    assert run(originals, output).status == 0
    check_same(output, outputs(finished))
