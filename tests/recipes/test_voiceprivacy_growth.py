"""The parts of a set that the growth of the VoicePrivacy evaluation is measured on are sets themselves."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.voiceprivacy_growth import lay_out
from spkver.datadir import read_datadir
from tests.recipes.voiceprivacy_runs import write_layout


@pytest.fixture(scope="module")
def layout(tmp_path_factory) -> Path:
    return write_layout(tmp_path_factory.mktemp("layout"))


@pytest.mark.parametrize(
    ("axis", "speakers", "enrolled", "training"),
    [("speakers", 4, 8, 18), ("utterances", 7, 14, 18), ("training", 7, 14, 12)],
)
def test_a_part_of_one_axis_is_laid_out(layout, tmp_path, axis, speakers, enrolled, training):
    options = Namespace(data=layout, dataset="tiny_test", training="tiny_train")
    lay_out(options, axis, 0.5, tmp_path)
    enrolment = read_datadir(tmp_path / "tiny_test_enrolls")
    assert (len(set(enrolment.speakers.values())), len(enrolment.recordings)) == (speakers, enrolled)
    assert len(read_datadir(tmp_path / "tiny_train").recordings) == training
    for sex in "fm":
        part, whole = (read_datadir(root / f"tiny_test_trials_{sex}") for root in (tmp_path, layout))
        assert part.trials is not None
        assert whole.trials is not None
        models = set(enrolment.speakers.values())
        wanted = {
            (model, segment, bool(target))
            for (model, segment), target in zip(whole.trials.pairs(), whole.trials.is_target, strict=True)
            if model in models and segment in part.recordings
        }
        found = {(*pair, bool(target)) for pair, target in zip(part.trials.pairs(), part.trials.is_target, strict=True)}
        assert found == wanted
        assert {segment for _, segment, _ in found} == set(part.recordings)
        assert any(target for *_, target in found)
