"""The layout of the public corpus."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from benchmarks import dspspeech20
from spkver.corpora.rsr2015 import read_rsr2015

pytestmark = pytest.mark.whole


@pytest.fixture
def source(tmp_path):
    """All file names of DSPSpeech-20, each recording a few samples."""
    for number in range(1, 35):
        folder = tmp_path / "source" / "speech_data" / f"1630{number:03d}"
        folder.mkdir(parents=True)
        first = folder / "first.wav"
        soundfile.write(first, np.arange(number, number + 10, dtype=np.int16), 16000)
        for word in dspspeech20.WORDS:
            for take in {*dspspeech20.TAKES, "02", "03"}:
                shutil.copyfile(first, folder / f"{folder.name}-{word}-{take}.wav")
        first.unlink()
    return tmp_path / "source"


def run(*arguments):
    return CliRunner().invoke(dspspeech20.main, [str(argument) for argument in arguments])


def test_layout_reads_as_rsr2015(source, tmp_path):
    result = run(source, tmp_path / "layout")
    assert result.exit_code == 0, result.output
    lists = read_rsr2015(tmp_path / "layout")
    assert (len(lists.ubm), len(lists.enrolment), len(lists.test)) == (730, 690, 920)
    assert (int(lists.key.is_target.sum()), int((~lists.key.is_target).sum())) == (920, 20240)
    samples, _ = soundfile.read(lists.recordings["m003/m003_03_010"], dtype="int16")
    assert samples[0] == 6  # the third background speaker is the sixth in the corpus


def test_missing_recordings_are_named_and_no_files_remain(source, tmp_path):
    for name in ("1630004-12-13.wav", "1630006-00-03.wav"):
        (source / "speech_data" / name[:7] / name).unlink()
    result = run(source, tmp_path / "layout")
    assert result.exit_code == 2
    assert "1630004-12-13.wav" in result.output
    assert "1630006-00-03.wav" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


@pytest.mark.slow
def test_the_layout_equals_the_one_behind_the_published_figures(shared, tmp_path):
    """The same keys and samples as the reference layout of the same recordings."""
    for line in (shared / "corpora/dsp34/metadata.tsv").read_text().splitlines()[1:]:
        fields = line.split("\t")
        target = tmp_path / "source" / fields[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        samples, rate = soundfile.read(shared / "corpora/dsp34" / fields[0], dtype="int16")
        soundfile.write(target, samples, rate)
    assert run(tmp_path / "source", tmp_path / "ours").exit_code == 0
    script = str(shared / "tools/make_layouts.py")
    tool = [sys.executable, script, "rsr2015", str(tmp_path / "theirs"), "--format", "wav"]
    subprocess.run(tool, check=True, capture_output=True)
    ours, theirs = (
        {str(path.relative_to(root)): path for path in root.rglob("*.*") if path.is_file()}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    )
    # lists of the background speakers
    dev = {"key/part1/trn/3sesspwd_dev_m.trn", "key/part1/ndx/3sess-pwd_dev_m.ndx"}
    assert ours.keys() == theirs.keys() | dev
    for name in theirs:
        path = ours[name]
        if path.suffix == ".wav":
            np.testing.assert_array_equal(soundfile.read(path)[0], soundfile.read(theirs[name])[0])
        else:
            assert path.read_text() == theirs[name].read_text()
