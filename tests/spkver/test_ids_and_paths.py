"""Ids come from lists that anybody may have written: they never name a file outside of the output folder."""

from pathlib import Path

import numpy as np
import pytest

from evaluation.embeddings.kaldi import read_scp
from evaluation.utility.lists import read_recordings
from spkbase.errors import DataError
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.audio import read_audio, write_audio
from spkver.datadir.directory import DataDir, write_datadir
from spkver.datadir.reading import read_datadir, run_pipes

BAD = ["../../x", ".", "/a/b", "a/../../b", "", "a\0b", "a b", "x" * 300, ".hidden"]
# text that fits in one line of a list
IN_A_LIST = [one for one in BAD if one and not set(one) & set("\0\n ")]
RATE = 8000


@pytest.fixture
def work(tmp_path):
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


def datadir(work, identifier, speaker="s"):
    return DataDir(work / "set", {identifier: work / "audio.wav"}, {identifier: speaker})


@pytest.mark.parametrize("identifier", IN_A_LIST)
@pytest.mark.parametrize("place", ["utterance", "speaker"])
def test_lists_with_dangerous_ids_are_refused(work, identifier, place):
    utterance, speaker = (identifier, "s") if place == "utterance" else ("u", identifier)
    (work / "set").mkdir()
    (work / "set" / "wav.scp").write_text(f"{utterance} {work / 'audio.wav'}\n")
    (work / "set" / "utt2spk").write_text(f"{utterance} {speaker}\n")
    with pytest.raises(DataError, match="id '"):
        read_datadir(work / "set")


@pytest.mark.parametrize("identifier", BAD)
def test_nothing_is_written_for_dangerous_ids(work, identifier):
    for bad in (datadir(work, identifier), datadir(work, "u", identifier)):
        with pytest.raises(DataError, match=r"id ['\"]"):
            write_datadir(bad)
        assert not (work / "set").exists()
    with pytest.raises(DataError, match=r"id ['\"]"):
        anonymize_datadir(
            datadir(work, identifier), work / "twin", AnonymizerConfig(name="none"), jobs=1
        )
    assert not (work / "twin").exists()
    with pytest.raises(DataError, match=r"id ['\"]"):
        run_pipes({identifier: "cat audio.wav |"}, work / "pipes", jobs=1)
    assert not (work / "pipes").exists()


# --- shell commands in lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ["touch {0}/ran |", "|touch {0}/ran"])
def test_commands_of_lists_are_not_run(work, entry):
    (work / "set").mkdir()
    (work / "set" / "wav.scp").write_text(f"u {entry.format(work)}\n")
    (work / "set" / "utt2spk").write_text("u s\n")
    (work / "x.scp").write_text(f"u {entry.format(work)}\n")
    for read, path in (
        (read_datadir, work / "set"),
        (read_recordings, work / "set"),
        (read_scp, work / "x.scp"),
    ):
        with pytest.raises(
            DataError, match=r"command|no such file|is not there|there is no archive"
        ):
            read(path)
    with pytest.raises(DataError, match="no such file"):
        read_audio(entry.format(work))
    assert not (work / "ran").exists()
