"""What is checked of enrolled and tested recordings before a trained attacker scores them."""

import numpy as np
import pytest
import soundfile

from evaluation.trials import Trials
from spkbase.errors import SpkverError
from spkver.attackers.classic import check_trials
from spkver.datadir import DataDir
from spkver.features import FeatureConfig


def write_set(folder, names, *, rate=16000, seconds=1.0):
    """Return a data directory of recordings; the speaker is the first letter."""
    folder.mkdir()
    paths = {}
    for name in names:
        paths[name] = folder / f"{name}.wav"
        soundfile.write(
            paths[name], 0.1 * np.random.default_rng(0).normal(size=int(rate * seconds)), rate
        )
    speakers = {name: name[0] for name in names}
    return DataDir(folder, recordings=paths, speakers=speakers)


@pytest.fixture
def enrolled(tmp_path):
    return write_set(tmp_path / "enrol", ["a1", "b1"])


TRIALS = Trials.from_ids(["a", "b"], ["t1", "t2"])
CONFIG = FeatureConfig(rate=16000)


def errors_of(enrolled, tested):
    with pytest.raises(SpkverError) as caught:
        check_trials([CONFIG], enrolled, tested, TRIALS, jobs=1)
    return str(caught.value)


def test_recordings_used_only_in_tests_are_checked(tmp_path, enrolled):
    tested = write_set(tmp_path / "test", ["t1", "t2"])
    check_trials([CONFIG], enrolled, tested, TRIALS, jobs=1)
    tested.recordings["t2"].write_bytes(b"no audio")
    assert "t2.wav" in errors_of(enrolled, tested)


def test_recordings_that_are_enrolled_and_tested_are_checked_once(tmp_path, enrolled):
    both = DataDir(
        tmp_path / "test",
        recordings={"t1": enrolled.recordings["b1"], "t2": enrolled.recordings["a1"]},
        speakers={"t1": "b", "t2": "a"},
    )
    enrolled.recordings["b1"].write_bytes(b"no audio")
    assert errors_of(enrolled, both).count("b1.wav") == 1


@pytest.mark.parametrize("side", ["enrol", "test"])
def test_the_feature_settings_of_a_trained_attacker_cannot_be_changed(tmp_path, side):
    rates = {"enrol": 16000, "test": 16000, side: 8000}
    names = {"enrol": ["a1", "b1"], "test": ["t1", "t2"]}
    sets = [write_set(tmp_path / name, ids, rate=rates[name]) for name, ids in names.items()]
    text = errors_of(*sets)
    assert "was trained in this way; to train another: set features.resample=true" in text
