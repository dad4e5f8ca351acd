"""Twin folders through crashes and damage: nothing is lost but what was in flight, and nothing wrong is taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.directories import Record, anonymize_datadir, finished_twin, progress
from spkver.audio import write_audio
from spkver.datadir.directory import DataDir, write_datadir
from spkver.datadir.reading import read_datadir

RATE = 16000


@pytest.fixture
def source(tmp_path) -> DataDir:
    """Three utterances."""
    return many(tmp_path / "set", 3)


def outputs(data: DataDir) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in data.recordings.items()}


def times(data: DataDir) -> dict[str, int]:
    return {name: path.stat().st_mtime_ns for name, path in data.recordings.items()}


def many(folder, count=40):
    """A data directory of so many utterances of one speaker."""
    names = [f"u-{number:02d}" for number in range(count)]
    for number, name in enumerate(names):
        write_audio(folder / "wav" / f"{name}.wav", 0.1 * np.random.default_rng(number).standard_normal(4000), RATE)
    write_datadir(DataDir(folder, {name: folder / "wav" / f"{name}.wav" for name in names}, dict.fromkeys(names, "u")))
    return read_datadir(folder)


SLOWLY = """
import time, pathlib
def slowly(samples, rate, utterance, rng):
    pathlib.Path({log!r}).open("a").write(utterance + "\\n")
    time.sleep(0.01)
    return samples[::-1].copy()
"""


def test_killed_often_it_loses_the_batches_in_flight_alone(tmp_path):
    """To the last byte as a run that nobody has disturbed, the record too."""
    source, log, mine = many(tmp_path / "set"), tmp_path / "log", tmp_path / "mine.py"
    mine.write_text(SLOWLY.format(log=str(log)))
    config, target = AnonymizerConfig(f"{mine}:slowly"), tmp_path / "set_x"
    code = (
        "import sys; from spkver.anonymization import *; from spkver.datadir import read_datadir\n"
        "anonymize_datadir(read_datadir(sys.argv[1]), sys.argv[2], AnonymizerConfig(sys.argv[3]), jobs=1)"
    )
    kills = asked = done = 0
    while kills < 3:
        with subprocess.Popen([sys.executable, "-c", code, str(source.path), str(target), config.name]) as run:
            while run.poll() is None and not (log.exists() and len(log.read_text().split()) >= asked + 11 + kills):
                time.sleep(0.002)
            run.kill()
        kills, asked = kills + 1, len(log.read_text().split())
        before, (done, total) = done, progress(target)
        assert total == 40
        assert before < done < 40
    made = anonymize_datadir(source, target, config, jobs=1)
    times_done = Counter(log.read_text().split())
    assert set(times_done) == set(source.recordings)
    assert sum(times_done.values()) <= 40 + kills * 8
    fresh = anonymize_datadir(source, tmp_path / "fresh" / "set_x", config, jobs=1)
    assert outputs(made) == outputs(fresh)
    assert progress(target) == (40, 40)
    for name in ("anonymization.json", "utt2spk"):
        assert (target / name).read_bytes() == (fresh.path / name).read_bytes()
    assert {path.name for path in target.iterdir()} == {path.name for path in fresh.path.iterdir()}


@pytest.mark.parametrize("where", [0.3, 0.9])
def test_a_torn_journal_loses_what_is_torn(tmp_path, where):
    source, target = many(tmp_path / "set", 20), tmp_path / "set_x"
    expected = outputs(anonymize_datadir(source, tmp_path / "fresh", AnonymizerConfig(), jobs=1))

    def stop(record, results, add=Record.add):
        add(record, results)
        if len(record.files) >= 16:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        Record.add = stop
        anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert progress(target) == (16, 20)
    journal = target / "anonymization.journal"
    os.truncate(journal, int(where * journal.stat().st_size))
    size = journal.stat().st_size
    assert progress(target) == (0 if where < 0.5 else 8, 20)
    assert journal.stat().st_size == size  # who only looks changes nothing
    assert outputs(anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)) == expected
    assert not journal.exists()


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_recording_that_the_disk_has_changed_is_made_again(source, tmp_path, damage):
    """Size (of the flipped one) and times are as they were: the checksum tells."""
    target = tmp_path / "set_x"
    expected = outputs(anonymize_datadir(source, target, AnonymizerConfig(), jobs=1))
    path = target / "wav" / "u-01.wav"
    status, raw = path.stat(), bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw if damage == "flip" else raw[: len(raw) // 2])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match="2 of 3 utterances are anonymised"):
        finished_twin(source, target, AnonymizerConfig(), jobs=1)
    assert outputs(anonymize_datadir(source, target, AnonymizerConfig(), jobs=1)) == expected
    assert outputs(finished_twin(source, target, AnonymizerConfig(), jobs=1)) == expected


def test_force_makes_all_again(source, tmp_path):
    first = anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    before, bytes_before = times(first), outputs(first)
    again = anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1, force=True)
    assert not set(times(again).items()) & set(before.items())
    assert outputs(again) == bytes_before


def test_what_is_half_written_does_not_make_a_folder_somebody_elses(source, tmp_path):
    """A process that was killed while it wrote its first record."""
    (tmp_path / "set_x").mkdir()
    (tmp_path / "set_x" / ".anonymization.x7abcd_e.spkver-tmp.json").write_text("{")
    anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    assert not list((tmp_path / "set_x").glob(".*"))


def test_twins_that_are_not_finished(source, tmp_path):
    with pytest.raises(DataError, match="the anonymised folder is missing"):
        finished_twin(source, tmp_path / "set_x", AnonymizerConfig())
    anonymize_datadir(source, tmp_path / "set_x", AnonymizerConfig(), jobs=1)
    with pytest.raises(DataError, match="0 of 3 utterances are anonymised by this anonymiser"):
        finished_twin(source, tmp_path / "set_x", AnonymizerConfig(), seed=1)
    assert progress(tmp_path) is None
