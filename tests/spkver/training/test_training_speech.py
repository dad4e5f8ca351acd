"""What a trainer gets: recordings, held-out trials, and recordings anonymised once more."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from spkbase.errors import DataError
from spkver.anonymization import AnonymizerConfig
from spkver.training import HeldOut, TrainingSpeech, Utterance

HELD_OUT = HeldOut({"a": [Path("a1"), Path("a2")]}, {"t": Path("t")}, [("a", "t", True)])


@pytest.fixture
def speech(tmp_path):
    draw = np.random.default_rng(0)
    utterances = []
    for name in ("s1-1", "s1-2", "s2-1"):
        path = tmp_path / f"{name}.wav"
        soundfile.write(path, 0.1 * draw.standard_normal(8000), 16000)
        utterances.append(Utterance(name, name[:2], "f", path, (path,)))
    return TrainingSpeech(tuple(utterances), HELD_OUT, AnonymizerConfig(), tmp_path / "again")


def test_training_speech_survives_a_json_round_trip(speech):
    assert TrainingSpeech.from_json(speech.to_json()) == speech


def test_further_versions_differ_by_seed_and_are_reused(speech):
    first = speech.anonymise(1)
    assert sorted(first) == ["s1-1", "s1-2", "s2-1"]
    times = {path: path.stat().st_mtime_ns for path in first.values()}
    assert speech.anonymise(1) == first
    assert {path: path.stat().st_mtime_ns for path in first.values()} == times
    other = speech.anonymise(2)
    for name, path in first.items():
        original, anonymised, again = (
            soundfile.read(file)[0]
            for file in (speech.folder.parent / f"{name}.wav", path, other[name])
        )
        assert len(original) == len(anonymised) == len(again)
        assert not np.array_equal(original, anonymised)
        assert not np.array_equal(anonymised, again)


def test_an_unknown_anonymiser_raises_an_error(speech):
    with pytest.raises(DataError, match="the anonymiser of the training set is not known"):
        TrainingSpeech(speech.utterances, HELD_OUT).anonymise(1)


def test_models_are_means_of_unit_vectors():
    """Model a is at 45 degrees, b on the second axis: the errors of the cosines by hand."""
    vectors = {
        "a1": [2.0, 0.0],
        "a2": [0.0, 9.0],
        "b1": [0.0, 1.0],
        "t": [1.0, 1.0],
        "u": [0.1, 1.0],
    }
    enrolment = {"a": [Path("a1"), Path("a2")], "b": [Path("b1")]}
    tested = {"t": Path("t"), "u": Path("u")}
    right = [("a", "t", True), ("a", "u", False), ("b", "t", False), ("b", "u", True)]

    def embed(path):
        return np.array(vectors[path.name])

    assert HeldOut(enrolment, tested, right).eer(embed) == 0
    wrong = [(model, segment, not same) for model, segment, same in right]
    assert HeldOut(enrolment, tested, wrong).eer(embed) == 0.5
