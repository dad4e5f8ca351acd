"""Anonymised recordings in a folder of their own become twins, in whatever layout an anonymiser leaves them."""

import re

import numpy as np
import pytest
import soundfile

from spkbase.errors import DataError
from spkver.datadir import DataDir, link_twins, read_datadir

SETS = {"libri_test_enrolls": ("1-a", "1-b"), "libri_test_trials_f": ("1-c", "2-a")}


@pytest.fixture
def originals(tmp_path):
    made = []
    for name, utterances in SETS.items():
        folder = tmp_path / "data" / name
        recordings = {utterance: folder / f"{utterance}.wav" for utterance in utterances}
        speakers = {utterance: utterance[0] for utterance in utterances}
        made.append(DataDir(folder, recordings, speakers))
    return made


def write_recording(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(800, np.float32), 16000)


LAYOUTS = {
    "folders of the challenge": "{name}_x/wav/{utterance}.wav",
    "folders without wav": "{name}/{utterance}.wav",
    "one folder": "{utterance}.flac",
    "deep folders with an ending": "take1/{name}s/{utterance}_anon.wav",
    "both lists of VCTK": "{name}_all/wav/{utterance}.wav",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_recordings_are_found_in_every_layout(originals, tmp_path, layout):
    for name, utterances in SETS.items():
        for utterance in utterances:
            path = LAYOUTS[layout].format(name=name, utterance=utterance)
            write_recording(tmp_path / "anon" / path)
    linked = link_twins(originals, tmp_path / "anon", tmp_path / "linked", "_x")
    assert linked == list(SETS)
    for original in originals:
        twin = read_datadir(tmp_path / "linked" / f"{original.path.name}_x", original=original)
        assert twin.speakers == original.speakers
        assert all(path.is_relative_to(tmp_path / "anon") for path in twin.recordings.values())
    assert {path.suffix for path in (tmp_path / "linked").rglob("*.*")} == {".scp"}


def test_missing_sets_are_left_out_and_extra_recordings_stay(originals, tmp_path):
    for utterance in ("1-c", "3-a"):
        write_recording(tmp_path / f"anon/libri_test_trials_f/wav/{utterance}.wav")
    linked = link_twins(originals, tmp_path / "anon", tmp_path / "linked", "_x")
    assert linked == ["libri_test_trials_f"]
    twin = read_datadir(tmp_path / "linked/libri_test_trials_f_x")
    assert set(twin.recordings) == {"1-c", "3-a"}  # check_twin names both faults


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["readme.txt"], "no recordings: found no .wav"),
        (["one/1-a.wav", "two/1-a.wav"], "1 utterance with several recordings: '1-a'"),
        ([], "no such folder"),
    ],
)
def test_unclear_folders_are_refused(originals, tmp_path, paths, message):
    for name in paths:
        path = tmp_path / "anon" / name
        if path.suffix == ".wav":
            write_recording(path)
        else:
            path.parent.mkdir()
            path.write_text("no speech")
    with pytest.raises(DataError, match=re.escape(message)):
        link_twins(originals, tmp_path / "anon", tmp_path / "linked", "_x")
    assert not (tmp_path / "linked").exists()
