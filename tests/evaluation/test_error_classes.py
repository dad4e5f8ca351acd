"""Errors that steer a command are classes: their texts are for people alone."""

import pytest

from evaluation.formats import read_key
from evaluation.trials import Key, LabelError, Scores, UnknownSpeakersError, truth_of
from evaluation.uncertainty import sample_from
from spkbase.errors import DataError

MODELS = ["m101_001", "m101_002", "m102_001", "m102_002"]
SEGMENTS = ["r1", "r2", "r3", "r4"]


def test_unknown_labels_raise_their_class_with_and_without_a_file(tmp_path):
    with pytest.raises(LabelError) as caught:
        truth_of(["yes please", "target"])
    assert caught.value.rows == [0]
    file = tmp_path / "key.txt"
    file.write_text("m1 u1 target\nm1 u2 perhaps\n")
    with pytest.raises(LabelError, match=r"key\.txt:2: ") as caught:
        read_key(file)
    assert caught.value.line == 2


def test_other_errors_of_a_line_are_not_label_errors(tmp_path):
    file = tmp_path / "target or nontarget.txt"
    file.write_text("m1 u1 target\nm1 u1 target\n")
    with pytest.raises(DataError, match="target or nontarget") as caught:
        read_key(file)
    assert not isinstance(caught.value, LabelError)


def test_ambiguous_ids_raise_their_class():
    scores = Scores.from_ids(MODELS, SEGMENTS, [1.0, 0.0, 0.0, 1.0])
    with pytest.raises(UnknownSpeakersError, match="the speakers are not known"):
        sample_from(scores, Key.from_ids(MODELS, SEGMENTS, [True, True, True, False]))
