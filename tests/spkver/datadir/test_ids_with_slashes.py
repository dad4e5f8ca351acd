"""Ids such as those of VoxCeleb hold slashes: they are read, and name files that stay in their folder."""

from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.audio import write_audio
from spkver.datadir import DataDir, read_datadir, wav_file, write_datadir
from spkver.datadir.directory import file_stem, id_of_stem

IDS = ["id10270/x6u/00001", "id10270/x6u/00002", "id10271/a%2Fb/00001", "id10271/a/b/00001"]


@pytest.fixture
def directory(tmp_path):
    recordings, speakers = {}, {}
    for number, name in enumerate(IDS):
        recordings[name] = tmp_path / f"{number}.wav"
        speakers[name] = name.partition("/")[0]
        write_audio(recordings[name], 0.1 * np.random.default_rng(number).normal(size=8000), 8000)
    made = DataDir(tmp_path / "data", recordings, speakers)
    write_datadir(made)
    return made


def test_ids_with_slashes_are_read_as_written(directory):
    data = read_datadir(directory.path)
    assert dict(sorted(data.speakers.items())) == dict(sorted(directory.speakers.items()))
    assert data.recordings.keys() == directory.recordings.keys()


def test_anonymised_copies_have_a_file_for_each_id(directory, tmp_path):
    target = tmp_path / "data_none"
    anonymize_datadir(
        read_datadir(directory.path), target, AnonymizerConfig(name="mcadams"), jobs=1
    )
    twin = read_datadir(target)
    assert twin.recordings.keys() == directory.recordings.keys()
    assert {path.resolve().parent for path in twin.recordings.values()} == {
        target.resolve() / "wav"
    }
    assert len(set(twin.recordings.values())) == len(IDS)
    # as in the VoicePrivacy Challenge: only recordings, with the names of the original
    for name in ("wav.scp", "utt2spk", "spk2utt"):
        (target / name).unlink()
    alone = read_datadir(target, original=read_datadir(directory.path))
    assert alone.speakers == directory.speakers


@pytest.mark.parametrize("name", [*IDS, "%", "%2F/%25", "a"])
def test_ids_are_recovered_from_file_names(name):
    assert id_of_stem(file_stem(name)) == name
    assert wav_file(Path("d"), name).parent == Path("d/wav")


@pytest.mark.parametrize(
    "name", ["../x", "a/../x", "/etc/x", "a//b", "a/", "a/.hidden", ".", "a\\b"]
)
def test_ids_that_leave_the_folder_are_refused(tmp_path, directory, name):
    recordings = {**directory.recordings, name: directory.recordings[IDS[0]]}
    speakers = {**directory.speakers, name: "s"}
    with pytest.raises(DataError, match=r"holds a path separator|starts with a point"):
        write_datadir(DataDir(tmp_path / "other", recordings, speakers))
    for file in ("wav.scp", "utt2spk"):
        path = directory.path / file
        path.write_text(path.read_text() + f"{name} x\n")
    with pytest.raises(DataError, match=r"holds a path separator|starts with a point"):
        read_datadir(directory.path)


def test_problems_of_several_lists_are_reported_together(directory):
    for file in ("wav.scp", "utt2spk"):
        path = directory.path / file
        path.write_text(path.read_text() + "../x x\n../y y\n")
    with pytest.raises(DataError) as caught:
        read_datadir(directory.path)
    assert str(caught.value).count("problems:") == 1
    assert len(caught.value.parts) >= 4
