"""What a trainer says of its network."""

import json

import pytest

from spkbase.errors import DataError
from spkver.training import read_record


def test_rates_before_and_after_belong_to_the_first_and_the_used_steps(tmp_path):
    assert read_record(tmp_path) == {}
    record = {"held_out_eer": {"0": 0.5, "5": 0.25, "10": 0.125}, "steps": 10, "own": [1]}
    (tmp_path / "training.json").write_text(json.dumps(record))
    assert read_record(tmp_path) == record | {"eer_before": 0.5, "eer_after": 0.125}
    (tmp_path / "training.json").write_text('{"own": 1}')
    assert read_record(tmp_path) == {"own": 1}


@pytest.mark.parametrize(
    "record",
    [
        [],
        5,
        {"held_out_eer": [0.1]},
        {"held_out_eer": {"a": 0.1}, "steps": 1},
        {"held_out_eer": {"1": None}, "steps": 1},
        {"held_out_eer": {"1": 0.1}},
        {"held_out_eer": {"1": 0.1}, "steps": 2},
        {"steps": "1"},
        {"speakers": 1.5},
    ],
)
def test_a_record_of_another_form_is_an_error(tmp_path, record):
    (tmp_path / "training.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="expected an object with held_out_eer and steps"):
        read_record(tmp_path)
