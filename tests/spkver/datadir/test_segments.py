"""Utterances that are parts of recordings are cut by `segments`."""

import numpy as np
import pytest
from test_datadir import RATE, speech

from spkbase.errors import DataError
from spkver.audio import read_audio, write_audio
from spkver.datadir import read_datadir

LINES = "a-1 call 0 0.1\na-2 call 0.1001 -1\nb-1 other 0.05 0.3\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    for number, name in enumerate(("call", "other")):
        write_audio(folder / f"{name}.wav", speech(number, 4000), RATE)
    (folder / "wav.scp").write_text(f"call {folder}/call.wav\nother {folder}/other.wav\n")
    (folder / "utt2spk").write_text("a-1 a\na-2 a\nb-1 b\n")
    (folder / "segments").write_text(LINES)
    return folder


def test_utterances_are_cut_from_their_recordings(folder, tmp_path):
    data = read_datadir(folder, pipes_to=tmp_path / "cut")
    assert [*data.recordings] == ["a-1", "a-2", "b-1"]
    call = read_audio(folder / "call.wav").samples
    other = read_audio(folder / "other.wav").samples
    # the last one ends 0.05 s after its recording, which Kaldi accepts
    expected = {"a-1": call[:1600], "a-2": call[1602:], "b-1": other[800:]}
    for name, samples in expected.items():
        np.testing.assert_array_equal(read_audio(data.recordings[name]).samples, samples)
    times = [path.stat().st_mtime_ns for path in data.recordings.values()]
    write_audio(folder / "call.wav", speech(7, 4000), RATE)
    again = read_datadir(folder, pipes_to=tmp_path / "cut")
    changed = [path.stat().st_mtime_ns for path in again.recordings.values()]
    assert [first == second for first, second in zip(times, changed, strict=True)] == [
        False,
        False,
        True,
    ]


WRONG = {
    "no number": (
        "a-1 call 0 x\n",
        r"segments.* 'a-1': expected 'recording start end' in seconds, got 'call 0 x'",
    ),
    "two columns": ("a-1 call\n", "expected 'recording start end'"),
    "an end before the start": ("a-1 call 0.2 0.1\n", "expected 'recording start end'"),
    "an unknown recording": ("a-1 tape 0 1\n", "no recording 'tape' in wav.scp"),
    "a speaker without a segment": ("a-1 call 0 0.1\n", "2 utterances of the list of speakers"),
    "a segment without a speaker": (
        LINES + "c-1 call 0 0.1\n",
        "1 utterance of segments not in the other list",
    ),
    "a start behind the recording": (
        LINES.replace("0.05 0.3", "0.25 0.3"),
        "0.25 to 0.3 s of a recording of 0.25 s",
    ),
    "an end far behind the recording": (
        LINES.replace("0.05 0.3", "0 0.8"),
        "0 to 0.8 s of a recording of 0.25 s",
    ),
}


@pytest.mark.parametrize(("lines", "message"), WRONG.values(), ids=WRONG)
def test_wrong_segments_raise(lines, message, folder, tmp_path):
    (folder / "segments").write_text(lines)
    with pytest.raises(DataError, match=message):
        read_datadir(folder, pipes_to=tmp_path / "cut")
