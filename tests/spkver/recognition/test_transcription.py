"""Transcription by PocketSphinx, and the chunks that keep its results."""

import json
from functools import partial

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.utility.lists import read_transcripts
from spkbase.errors import DataError
from spkbase.runs import start_run
from spkver.audio import write_audio
from spkver.recognition.recordings import map_recordings


def length_of(path, log):
    """Tell how long a file is, and that it was asked."""
    with log.open("a") as file:
        file.write(f"{path.name}\n")
    if path.stat().st_size == 0:
        raise DataError("nothing in it", file=path)
    return path.stat().st_size


def test_results_are_kept_in_chunks_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("spkver.recognition.recordings._CHUNK", 3)
    files = {}
    for number in range(8):
        files[f"u{number}"] = tmp_path / f"{number}.raw"
        files[f"u{number}"].write_bytes(b"x" * (number + 1))
    files["u4"].write_bytes(b"")
    log = tmp_path / "log"
    work = partial(length_of, log=log)

    def call(settings="one"):
        log.write_text("")
        with start_run(tmp_path / "out", {}, jobs=1) as started:
            return map_recordings(started, "lengths", work, files, settings=settings)

    with pytest.raises(DataError, match=r"4\.raw: nothing in it"):
        call()
    assert len(log.read_text().split()) == 8  # one that fails does not stop the others
    assert not (tmp_path / "out" / "lengths" / "00001.json").exists()
    files["u4"].write_bytes(b"x" * 5)
    assert call() == {f"u{number}": number + 1 for number in range(8)}
    assert log.read_text().split() == ["3.raw", "4.raw", "5.raw"]  # the chunk that failed, and no other
    call()
    assert log.read_text() == ""
    files["u7"].write_bytes(b"changed and longer")
    assert call()["u7"] == 18
    assert log.read_text().split() == ["6.raw", "7.raw"]
    call("two")
    assert len(log.read_text().split()) == 8


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Two utterances of synthetic speech."""
    pytest.importorskip("pocketsphinx")
    folder = tmp_path_factory.mktemp("spoken")
    rng = np.random.default_rng(0)
    for number, seconds in enumerate((0.5, 0.7)):
        time = np.arange(int(16000 * seconds)) / 16000
        pitch = 120 + 20 * np.sin(2 * np.pi * time)
        source = sum(np.sin(2 * np.pi * k * np.cumsum(pitch) / 16000) for k in range(1, 30))
        envelope = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time)
        write_audio(folder / f"{number}.wav", 0.01 * envelope * source + 1e-4 * rng.standard_normal(len(time)), 16000)
    (folder / "wav.scp").write_text(f"a {folder}/0.wav\nb {folder}/1.wav\n")
    (folder / "utt2spk").write_text("a s\nb s\n")
    return folder


def test_text_does_not_depend_on_what_came_before(spoken, tmp_path):
    passes("transcribe", spoken, "-o", tmp_path / "one", "--jobs", 1)
    found = read_transcripts(tmp_path / "one" / "text")
    assert list(found) == ["a", "b"]
    assert all(text == text.upper() for text in found.values())
    swapped = tmp_path / "swapped"
    swapped.mkdir()
    (swapped / "wav.scp").write_text(f"a {spoken}/1.wav\nb {spoken}/0.wav\n")
    (swapped / "utt2spk").write_text("a s\nb s\n")
    passes("transcribe", swapped, "-o", tmp_path / "two", "--jobs", 1)
    again = read_transcripts(tmp_path / "two" / "text")
    assert (again["a"], again["b"]) == (found["b"], found["a"])
    kept = json.loads((tmp_path / "one" / "transcripts" / "00000.json").read_text())
    assert kept["results"] == found
    assert "transcripts 0: up to date" in passes("transcribe", spoken, "-o", tmp_path / "one").output


@pytest.mark.slow
@pytest.mark.golden
def test_real_speech_is_understood_whatever_came_before(shared):
    """An actress says a known sentence; as the model sees it, to the last bit, after any other recording."""
    pytest.importorskip("pocketsphinx")
    from spkver.recognition.words import _decoder, recognise_file

    folder = shared / "corpora" / "ravdess24"
    paths = [folder / name / "rep01" / "s01_neutral_i01.flac" for name in ("rav02", "rav01")]
    found = []
    for order in ((0, 1), (1, 0)):
        _decoder.cache_clear()
        results = {}
        for place in order:
            said = recognise_file(paths[place])
            results[place] = (said, _decoder().hyp().score)
        found.append(results)
    assert found[0] == found[1]
    assert len({"KIDS", "ARE", "TALKING", "BY", "THE", "DOOR"} & set(found[0][0][0].split())) >= 4


def test_without_the_recogniser_the_remedy_is_told(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    assert "pip install pocketsphinx" in refused("transcribe", tmp_path, "-o", tmp_path / "out")
