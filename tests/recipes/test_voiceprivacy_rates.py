"""Sets at sampling rates that the features do not expect: heard at one rate each, with one note."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import soundfile
import soxr
from recipe_runs import refused, results_of
from voiceprivacy_runs import SUFFIX, findings, lines_of, run_recipe, write, write_layout

from spkbase.configuration import load_config
from spkbase.runs import Run
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.inspection import check
from spkver.voiceprivacy.settings import Config

pytestmark = pytest.mark.whole

ALL = "attacker_settings.all.features"
ONE = {"attackers": "[gmm-ubm]", "evaluation.resamples": 0}
SCORES = ("--until", "scores")
NOTE = re.compile("sampling rates: (.*)")


@pytest.fixture(scope="module")
def layout_8k(tmp_path_factory):
    """The tiny set, all of it at 8 kHz."""
    root = write_layout(tmp_path_factory.mktemp("eight") / "sets")
    at_rate(root, 8000)
    return root


@pytest.fixture
def two_rates(layout_8k, tmp_path):
    """``tiny`` at 16 kHz and ``low``, of other speakers, at 8 kHz."""
    root = write_layout(tmp_path / "two")
    for directory in sorted(layout_8k.iterdir()):
        low = shutil.copytree(directory, root / directory.name.replace("tiny", "low"))
        write(low / "wav.scp", [line.replace("tiny", "low") for line in lines_of(low / "wav.scp")])
    return root


def at_rate(root, rate, pattern="*"):
    """Resample the recordings of some data directories."""
    for path in sorted(root.glob(f"{pattern}/wav/*.wav")):
        samples, found = soundfile.read(path)
        moved = np.clip(soxr.resample(samples, found, rate, quality="HQ"), -1, 1)
        soundfile.write(path, np.rint(moved * 32767).astype(np.int16), rate)


def features_of(data, output, training, attacker="gmm-ubm"):
    """Rate, upper edge and resampling of the features of an attacker."""
    config = load_config(Config, file=output / "config.yaml")
    suffix = "_low" if (output / "results_low.json").exists() else SUFFIX
    groups = check(Experiment(Run(output / "again"), data, suffix, config)).rate_groups
    (group,) = (group for group in groups if training in group.training)
    (features,) = (one.source.features for spec, one in group.attackers if spec.name == attacker)
    return features.rate, features.high_frequency, features.resample


def note_of(outcome, output):
    """The one note on sampling rates: on standard error and, where there are results, among their notes."""
    assert outcome.status == 0, outcome.err
    told = NOTE.findall(outcome.err)
    assert len(told) <= 1
    if (output / "results.json").exists():
        noted = findings(results_of(output), "sampling rates")
        assert [(one["level"], one["text"]) for one in noted] == [("note", text) for text in told]
    return told[0] if told else ""


def test_sets_with_different_rates_share_a_run(layout_8k, two_rates, tmp_path):
    outcome = run_recipe(two_rates, tmp_path / "both", *SCORES, **ONE)
    note = note_of(outcome, tmp_path / "both")
    assert note.startswith(
        "low_test, with low_train: 100 recordings at 8000 Hz; features at 8000 Hz, up to 3800 Hz"
    )
    assert "tiny" not in note
    assert features_of(two_rates, tmp_path / "both", "tiny_train") == (16000, 7600.0, False)
    assert features_of(two_rates, tmp_path / "both", "low_train") == (8000, 3800.0, False)
    # each set is scored as in a run of its own
    alone = run_recipe(two_rates, tmp_path / "alone", *SCORES, **ONE, datasets="[tiny_test]")
    assert note_of(alone, tmp_path / "alone") == ""
    scores = sorted((tmp_path / "alone/exp").glob("*/tiny_test_enrolls*/*/scores"))
    assert scores
    for path in scores:
        assert (
            path.read_bytes()
            == (tmp_path / "both" / path.relative_to(tmp_path / "alone")).read_bytes()
        )


def test_training_at_16_khz_and_trials_at_8_khz_are_compared_at_8_khz(tmp_path):
    root = write_layout(tmp_path / "sets")
    at_rate(root, 8000, "tiny_test_*")
    outcome = run_recipe(root, tmp_path / "out", *SCORES, **ONE)
    note = note_of(outcome, tmp_path / "out")
    assert "64 recordings at 8000 Hz (tiny_test_enrolls, " in note
    assert (
        "36 recordings at 16000 Hz (tiny_train, tiny_train_anon); features at 8000 Hz, up to 3800 Hz: gmm"
        in note
    )
    assert features_of(root, tmp_path / "out", "tiny_train") == (8000, 3800.0, True)
    outcome = run_recipe(root, tmp_path / "other", "--set", f"{ALL}.resample=false", **ONE)
    refused(outcome, "set features.resample=true")


def test_an_anonymised_copy_at_another_rate_sets_the_rate_of_its_set(layout_8k, tmp_path):
    """What the anonymiser left of the band is all that enrolment, trials and training can be compared by."""
    root = write_layout(tmp_path / "sets")
    usual = run_recipe(root, tmp_path / "out", **ONE)
    assert note_of(usual, tmp_path / "out") == ""
    for twin in root.glob(f"*{SUFFIX}"):
        shutil.copytree(twin, twin.with_name(twin.name.replace(SUFFIX, "_low")))
    at_rate(root, 8000, "*_low")
    for path in root.glob("*_low/wav.scp"):
        write(path, [line.replace(SUFFIX, "_low") for line in lines_of(path)])
    outcome = run_recipe(root, tmp_path / "out", "--suffix", "_low", **ONE)
    note = note_of(outcome, tmp_path / "out")
    assert "50 recordings at 8000 Hz" in note
    assert "50 recordings at 16000 Hz" in note
    assert features_of(root, tmp_path / "out", "tiny_train") == (8000, 3800.0, True)
    # original speech is played in another form than with the other anonymiser: this does not mean that the data changed
    assert not findings(results_of(tmp_path / "out"), "independence of the anonymiser")


EIGHT = 8000, 3800.0, False


@pytest.mark.parametrize(
    ("options", "expected", "note"),
    [
        (
            (),
            [EIGHT] * 3,
            "100 recordings at 8000 Hz; features at 8000 Hz, up to 3800 Hz: gmm-ubm, gmm-svm, ivector.",
        ),
        (
            (f"{ALL}.resample=true",),
            [(16000, 7600.0, True)] * 3,
            "features at 16000 Hz, up to 7600 Hz: gmm-ubm, gmm",
        ),
        (
            ("attacker_settings.gmm-ubm.features.high_frequency=3000",),
            [(8000, 3000.0, False), EIGHT, EIGHT],
            "3000 Hz: ",
        ),
    ],
)
def test_sets_at_8_khz_need_no_setting_and_explicit_settings_apply(
    layout_8k, tmp_path, options, expected, note
):
    """A setting of one attacker is its own; resampling without a rate is to that of the preset."""
    names = ("gmm-ubm", "gmm-svm", "ivector")
    arguments = [part for option in options for part in ("--set", option)]
    outcome = run_recipe(
        layout_8k,
        tmp_path / "out",
        "--until",
        "checks",
        *arguments,
        attackers=f"[{','.join(names)}]",
    )
    assert [
        features_of(layout_8k, tmp_path / "out", "tiny_train", name) for name in names
    ] == expected
    assert note in note_of(outcome, tmp_path / "out")
