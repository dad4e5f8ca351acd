"""Transcription by PocketSphinx and by any recogniser, and the chunks that keep its results."""

import json
import math
import shutil
from functools import partial

import numpy as np
import pytest
from command_lines import passes

from evaluation.utility.lists import read_transcripts
from spkbase.errors import DataError
from spkbase.runs import start_run
from spkver.audio import write_audio
from spkver.datadir import read_datadir
from spkver.recognition import Recogniser, map_recordings, transcribe

pytestmark = pytest.mark.whole


def length_of(path, log):
    """Tell how long a file is, and that it was asked."""
    with log.open("a") as file:
        file.write(f"{path.name}\n")
    if path.stat().st_size == 0:
        raise DataError("nothing in it", file=path)
    return path.stat().st_size


def test_results_are_kept_in_chunks_and_resumed(tmp_path):
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
            return map_recordings(started, "lengths", work, files, settings=settings, chunk=3)

    with pytest.raises(DataError, match=r"4\.raw: nothing in it"):
        call()
    assert len(log.read_text().split()) == 8  # one that fails does not stop the others
    assert not (tmp_path / "out" / "lengths" / "00001.json").exists()
    files["u4"].write_bytes(b"x" * 5)
    assert call() == {f"u{number}": number + 1 for number in range(8)}
    # only the chunk that failed
    assert log.read_text().split() == ["3.raw", "4.raw", "5.raw"]
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
    folder = tmp_path_factory.mktemp("spoken")
    rng = np.random.default_rng(0)
    for number, seconds in enumerate((0.5, 0.7)):
        time = np.arange(int(16000 * seconds)) / 16000
        pitch = 120 + 20 * np.sin(2 * np.pi * time)
        source = sum(np.sin(2 * np.pi * k * np.cumsum(pitch) / 16000) for k in range(1, 30))
        envelope = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time)
        write_audio(
            folder / f"{number}.wav",
            0.01 * envelope * source + 1e-4 * rng.standard_normal(len(time)),
            16000,
        )
    (folder / "wav.scp").write_text(f"a {folder}/0.wav\nb {folder}/1.wav\n")
    (folder / "utt2spk").write_text("a s\nb s\n")
    return folder


def test_pocketsphinx_text_does_not_depend_on_earlier_recordings(spoken, tmp_path):
    pytest.importorskip("pocketsphinx")
    command = ("--recogniser", "pocketsphinx", "--jobs", 1)
    passes("transcribe", spoken, "-o", tmp_path / "one", *command)
    words = read_transcripts(tmp_path / "one" / "text")
    assert list(words) == ["a", "b"]
    assert all(text == text.upper() for text in words.values())
    swapped = tmp_path / "swapped"
    swapped.mkdir()
    (swapped / "wav.scp").write_text(f"a {spoken}/1.wav\nb {spoken}/0.wav\n")
    (swapped / "utt2spk").write_text("a s\nb s\n")
    passes("transcribe", swapped, "-o", tmp_path / "two", *command)
    again = read_transcripts(tmp_path / "two" / "text")
    assert (again["a"], again["b"]) == (words["b"], words["a"])
    kept = json.loads((tmp_path / "one" / "transcripts" / "00000.json").read_text())
    assert kept["results"] == {name: [text, False] for name, text in words.items()}
    assert (
        "transcripts 0: up to date"
        in passes("transcribe", spoken, "-o", tmp_path / "one", *command).output
    )


@pytest.mark.slow
@pytest.mark.golden
def test_real_speech_is_recognised_after_any_other_recording(shared):
    """An actress says a known sentence; as the model sees it, to the last bit, after any other recording."""
    pytest.importorskip("pocketsphinx")
    from spkver.recognition import open_recogniser
    from spkver.recognition.sphinx import load_decoder

    recogniser = open_recogniser("pocketsphinx")
    folder = shared / "corpora" / "ravdess24"
    paths = [folder / name / "rep01" / "s01_neutral_i01.flac" for name in ("rav02", "rav01")]
    found = []
    for order in ((0, 1), (1, 0)):
        load_decoder.cache_clear()
        results = {}
        for place in order:
            recognised = recogniser.recognise_file(paths[place])
            results[place] = (recognised, load_decoder().hyp().score)
        found.append(results)
    assert found[0] == found[1]
    assert (
        len({"KIDS", "ARE", "TALKING", "BY", "THE", "DOOR"} & set(found[0][0][0].words.split()))
        >= 4
    )


# --- any recogniser ---------------------------------------------------------------------------------------------------


def words_for_length(samples):
    """A recogniser for tests: it repeats itself in recordings of 0.7 s."""
    return "SHORT WORDS" if len(samples) < 10000 else "AND ON " * 20


STAND_IN = Recogniser("stand-in", words_for_length, {"version": 1})


def transcripts_of(speech, folder, *, jobs=1, recogniser=STAND_IN):
    with start_run(folder, {}, jobs=jobs) as run:
        return transcribe(run, read_datadir(speech), recogniser)


def test_words_do_not_depend_on_workers_and_are_reused(spoken, tmp_path):
    alone = transcripts_of(spoken, tmp_path / "one").words
    assert alone == transcripts_of(spoken, tmp_path / "two", jobs=2).words
    kept = [
        (tmp_path / name / "transcripts" / "00000.json").read_bytes() for name in ("one", "two")
    ]
    assert kept[0] == kept[1]
    log = tmp_path / "one" / "run.log"
    assert alone == transcripts_of(spoken, tmp_path / "one").words
    assert "transcripts 0: up to date" in log.read_text()
    other = Recogniser("stand-in", words_for_length, {"version": 2})
    transcripts_of(spoken, tmp_path / "one", recogniser=other)
    assert log.read_text().count("transcripts 0: started") == 2


def test_recordings_with_repetitions_of_the_recogniser_are_named_and_cut(spoken, tmp_path, caplog):
    transcripts = transcripts_of(spoken, tmp_path / "out")
    assert (transcripts.words, transcripts.cut) == ({"a": "SHORT WORDS", "b": "AND ON"}, ("b",))
    assert (tmp_path / "out" / "text").read_text() == "a SHORT WORDS\nb AND ON\n"
    assert "stand-in repeated itself in 1 of 2 recordings, and was cut: b" in caplog.text
    assert math.isnan(transcripts.agreement)


@pytest.mark.parametrize(
    ("writes", "text"),
    [
        ("Well, go on.", "Well, go on."),
        ("Well, go on. " + "And on, " * 20, "well go on and"),
        (None, "well go on"),
    ],
)
def test_text_keeps_the_punctuation_of_the_recogniser_unless_it_repeated_itself(writes, text):
    writer = None
    if writes is not None:
        writer = lambda samples: writes  # noqa: E731
    recogniser = Recogniser("stand-in", lambda samples: "WELL GO ON", writer=writer)
    assert recogniser.write(np.zeros(160000)) == text


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("a short words\nb And on.\n", "100 % of the words agree with "),
        ("a zhe shi\nb pu tong hua\n", "The words were not understood: 0 % of them agree with "),
    ],
)
def test_the_command_reports_the_agreement_with_the_text(
    spoken, tmp_path, monkeypatch, text, ending
):
    monkeypatch.setattr("spkver.recognition.open_recogniser", lambda name: {"mine": STAND_IN}[name])
    speech = shutil.copytree(spoken, tmp_path / "speech")
    assert (
        "agree"
        not in passes(
            "transcribe", speech, "-o", tmp_path / "before", "--recogniser", "mine"
        ).output
    )
    (speech / "text").write_text(text)
    told = passes("transcribe", speech, "-o", tmp_path / "out", "--recogniser", "mine").output
    assert (
        f"2 utterances, by stand-in: {tmp_path / 'out' / 'text'}\n{ending}{speech / 'text'}\n"
        in told
    )
