"""Ids come from lists that anybody may have written: they never name a file outside of the output folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluation.embeddings.kaldi import read_scp
from evaluation.utility.lists import read_recordings
from spkbase.errors import DataError
from spkbase.runs import Run
from spkver.anonymization.anonymizers import AnonymizerConfig
from spkver.anonymization.directories import RECORD, anonymize_datadir
from spkver.audio import read_audio, write_audio
from spkver.datadir.directory import DataDir, write_datadir
from spkver.datadir.reading import read_datadir, run_pipes
from spkver.features.extraction import export_sidekit
from spkver.features.frames import FeatureTable
from spkver.sidekit.features import SidekitFeatures, write_feature_file

BAD = [
    "../../x",
    "..",
    ".",
    "/etc/x",
    "a/b",
    "a/../../b",
    "a\\b",
    "",
    "a\0b",
    "a\nb",
    "a b",
    "x" * 300,
    ".hidden",
    "é" * 150,
    "\x1b[2J",
]
IN_A_LIST = [one for one in BAD if one and not set(one) & set("\0\n ")]  # what one line of a list can hold
WRITTEN = ["a-1", "1998_29455_0003", "é", "x" * 200]
RATE = 8000


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A folder some levels down, around which nothing may change."""
    work = tmp_path / "1" / "2" / "3"
    work.mkdir(parents=True)
    write_audio(work / "audio.wav", np.linspace(-0.5, 0.5, 800), RATE)
    (tmp_path / "1" / "x.wav").write_text("precious")
    before = sorted(path for path in tmp_path.rglob("*") if work not in path.parents)
    yield work
    assert sorted(path for path in tmp_path.rglob("*") if work not in path.parents) == before
    assert (tmp_path / "1" / "x.wav").read_text() == "precious"
    assert not Path("/etc/x.wav").exists()
    assert not Path("/etc/x.h5").exists()


def datadir(work: Path, identifier: str, speaker: str = "s") -> DataDir:
    return DataDir(work / "set", {identifier: work / "audio.wav"}, {identifier: speaker})


@pytest.mark.parametrize("identifier", IN_A_LIST)
@pytest.mark.parametrize("place", ["utterance", "speaker"])
def test_lists_with_such_ids_are_refused(work: Path, identifier: str, place: str) -> None:
    utterance, speaker = (identifier, "s") if place == "utterance" else ("u", identifier)
    (work / "set").mkdir()
    (work / "set" / "wav.scp").write_text(f"{utterance} {work / 'audio.wav'}\n")
    (work / "set" / "utt2spk").write_text(f"{utterance} {speaker}\n")
    with pytest.raises(DataError, match="id '"):
        read_datadir(work / "set")


@pytest.mark.parametrize("identifier", BAD)
def test_nothing_is_written_for_such_ids(work: Path, identifier: str) -> None:
    for bad in (datadir(work, identifier), datadir(work, "u", identifier)):
        with pytest.raises(DataError, match=r"id ['\"]"):
            write_datadir(bad)
        assert not (work / "set").exists()
    with pytest.raises(DataError, match=r"id ['\"]"):
        anonymize_datadir(datadir(work, identifier), work / "twin", AnonymizerConfig(name="none"), jobs=1)
    assert not (work / "twin").exists()
    with pytest.raises(DataError, match=r"id ['\"]"):
        run_pipes({identifier: "cat audio.wav |"}, work / "pipes", jobs=1)
    assert not (work / "pipes").exists()


@pytest.mark.parametrize("identifier", WRITTEN)
def test_other_ids_are_written(work: Path, identifier: str) -> None:
    write_datadir(datadir(work, identifier))
    twin = anonymize_datadir(read_datadir(work / "set"), work / "twin", AnonymizerConfig(name="none"), jobs=1)
    assert [path.is_file() and work in path.parents for path in twin.recordings.values()] == [True]


@pytest.mark.parametrize("identifier", ["../../x", "..", "/etc/x", "a/../../../b", "a\0b", "", "x" * 300])
def test_feature_files_stay_in_their_folder(work: Path, identifier: str) -> None:
    ones = np.ones((3, 2), np.float32)
    table = FeatureTable(np.array([identifier], object), np.array([0, 3]), ones, ones[:, 0], np.ones(3, bool))
    with pytest.raises(DataError):
        export_sidekit(table, work / "features")
    assert not list(work.rglob("*.h5"))
    with (
        pytest.raises(DataError, match=r"cannot be a name|collides")
        if len(identifier) < 300
        else pytest.raises(AssertionError)
    ):
        write_feature_file(work / "f.h5", {identifier: SidekitFeatures(cep=ones)})
        raise AssertionError  # a long name within a file does no harm


@pytest.mark.parametrize("name", ["../x.h5", "/etc/x.h5", "a/../../x.h5", "a\0b"])
def test_artefacts_stay_in_the_output_folder(work: Path, name: str) -> None:
    with pytest.raises(DataError, match="leads out of the output folder"):
        Run(work).path(name)
    assert Run(work).path("exp/a..b/x.h5") == work / "exp/a..b/x.h5"


def test_a_forged_record_removes_nothing_elsewhere(work: Path) -> None:
    write_datadir(datadir(work, "u"))
    source = read_datadir(work / "set")
    anonymize_datadir(source, work / "twin", AnonymizerConfig(name="none"), jobs=1)
    (work / "precious").write_text("1")
    record = json.loads((work / "twin" / RECORD).read_text())
    record["files"] |= dict.fromkeys(("../../../x", str(work / "precious"), "../../precious"), record["files"]["u"])
    record["lists"] += ["../precious", str(work / "precious")]
    (work / "twin" / RECORD).write_text(json.dumps(record))
    anonymize_datadir(source, work / "twin", AnonymizerConfig(name="none"), jobs=1)
    assert (work / "precious").read_text() == "1"


# --- shell commands in lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry", ["touch {0}/ran |", "|touch {0}/ran", "touch {0}/ran|", "cat audio.wav; touch {0}/ran |"]
)
def test_commands_of_lists_are_not_run(work: Path, entry: str) -> None:
    (work / "set").mkdir()
    (work / "set" / "wav.scp").write_text(f"u {entry.format(work)}\n")
    (work / "set" / "utt2spk").write_text("u s\n")
    (work / "x.scp").write_text(f"u {entry.format(work)}\n")
    for read, path in ((read_datadir, work / "set"), (read_recordings, work / "set"), (read_scp, work / "x.scp")):
        with pytest.raises(DataError, match=r"command|no such file|is not there|there is no archive"):
            read(path)
    with pytest.raises(DataError, match="no such file"):
        read_audio(entry.format(work))
    assert not (work / "ran").exists()


def test_they_are_run_behind_the_flag_alone(work: Path) -> None:
    (work / "set").mkdir()
    (work / "set" / "wav.scp").write_text(f"u cat {work / 'audio.wav'} |\n")
    (work / "set" / "utt2spk").write_text("u s\n")
    with pytest.raises(DataError, match="--allow-pipes"):
        read_datadir(work / "set", pipes_to=work / "pipes")
    assert not (work / "pipes").exists()
    found = read_datadir(work / "set", allow_pipes=True, pipes_to=work / "pipes")
    assert found.recordings == {"u": work / "pipes" / "u.wav"}
