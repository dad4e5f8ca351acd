"""Recordings that wav.scp names by an archive and the place in it, as Kaldi and ESPnet do."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from spkbase.errors import DataError
from spkver.audio import read_audio
from spkver.datadir import read_datadir


def encoded(seed, container):
    buffer = io.BytesIO()
    soundfile.write(
        buffer, np.random.default_rng(seed).normal(size=4000) / 10, 8000, format=container
    )
    return buffer.getvalue()


def with_size(content):
    """A recording as kaldiio writes it in other formats than WAV."""
    size = len(content).to_bytes(2, "little")
    return b"AUDIO" + bytes([len(size)]) + size + content


@pytest.fixture
def directory(tmp_path):
    """Data directory of four recordings in one archive, with an archive of vectors beside it."""
    contents = [
        encoded(seed, container) for seed, container in enumerate(["WAV", "FLAC", "OGG", "WAV"])
    ]
    parts = [contents[0], with_size(contents[1]), with_size(contents[2]), contents[3]]
    folder = tmp_path / "set"
    folder.mkdir()
    archive, entries = b"", []
    for number, part in enumerate(parts):
        archive += f"s{number}-a ".encode()
        entries.append(f"s{number}-a wav.ark:{len(archive)}\n")
        archive += part
        (tmp_path / f"{number}.wav").write_bytes(contents[number])
    (folder / "wav.ark").write_bytes(archive)
    (folder / "vectors.ark").write_bytes(b"a \0BFV \4" + bytes(100))
    (folder / "wav.scp").write_text("".join(entries[::-1]))
    (folder / "utt2spk").write_text("".join(f"s{number}-a s{number}\n" for number in range(4)))
    return folder


def read(folder):
    return read_datadir(folder, pipes_to=folder.parent / "audio").recordings


def test_each_recording_of_an_archive_is_read(directory):
    recordings = read(directory)
    assert list(recordings) == ["s3-a", "s2-a", "s1-a", "s0-a"]
    for number in range(4):
        expected = read_audio(directory.parent / f"{number}.wav").samples
        assert np.array_equal(read_audio(recordings[f"s{number}-a"]).samples, expected)


def test_unchanged_recordings_are_not_rewritten(directory):
    before = {path: path.stat().st_mtime_ns for path in read(directory).values()}
    assert {path: path.stat().st_mtime_ns for path in read(directory).values()} == before
    path = directory / "wav.ark"
    path.write_bytes(path.read_bytes()[:-2] + b"ab")
    changed = {path: path.stat().st_mtime_ns for path in read(directory).values()}
    assert sum(before[path] != time for path, time in changed.items()) == 1


def test_archives_of_kaldiio_are_read(directory):
    kaldiio = pytest.importorskip("kaldiio")
    samples = (read_audio(directory.parent / "0.wav").samples * 32768).astype(np.int16)
    for how in (None, "soundfile"):
        given = {f"s{number}-a": (8000, samples) for number in range(4)}
        if how:
            given = {name: part[::-1] for name, part in given.items()}
        kaldiio.save_ark(
            str(directory / "k.ark"), given, scp=str(directory / "wav.scp"), write_function=how
        )
        for path in read(directory).values():
            assert np.array_equal(read_audio(path).samples * 32768, samples)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("wav.ark:9", "no recording begins at byte 9"),
        ("vectors.ark:2", "no recording begins at byte 2"),
        ("wav.ark:10000000", "no recording begins"),
        ("other.ark:5", "no such file, tried .*other.ark"),
        ("wav.ark:5[0:100]", "no such file"),
    ],
)
def test_entries_without_a_recording_are_refused(directory, entry, message):
    lists = directory / "wav.scp"
    lists.write_text(lists.read_text().replace(lists.read_text().split()[1], entry))
    with pytest.raises(DataError, match=message):
        read(directory)


def test_a_truncated_archive_is_refused(directory):
    path = directory / "wav.ark"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="the archive ends before the recording"):
        read(directory)


def test_archives_need_a_folder_for_recordings(directory):
    with pytest.raises(DataError, match="4 entries are parts of archives"):
        read_datadir(directory)
