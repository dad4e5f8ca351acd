"""The worked example of an anonymiser of one's own: words in, one voice out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.datadir import DataDir
from spkver.recipes.voiceprivacy import words_to_one_voice as recipe

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "words_to_one_voice.py"


@pytest.fixture
def said(monkeypatch):
    """A recogniser that always hears the same number of words, and the texts that a voice was asked to speak."""
    said: list[tuple[str, float]] = []

    def voice(text, pace):
        said.append((text, pace))
        return np.sin(np.arange(round(22050 * len(text.split()) / pace)) / 9), 22050  # a second a word

    monkeypatch.setattr(recipe, "recognise", lambda samples: "ONE TWO" if samples.any() else "")
    return voice, said


@pytest.mark.parametrize(("timed", "seconds"), [(False, 2.0), (True, 5.0)])
@pytest.mark.parametrize("rate", [8000, 16000])
def test_the_words_alone_are_spoken_and_the_duration_is_kept_if_asked(said, rate, timed, seconds):
    voice, texts = said
    samples, rng = np.ones(5 * rate, np.float32), np.random.default_rng(0)
    made = recipe.one_voice(samples, rate, "u", rng, voice=voice, timed=timed)
    assert len(made) == pytest.approx(seconds * rate, abs=2)
    assert {text for text, _ in texts} == {"one two"}
    if timed:
        assert len(made) == len(samples)
        assert texts[-1][1] == pytest.approx(0.4)


def test_a_recording_without_words_is_spoken_too(said):
    voice, texts = said
    assert recipe.one_voice(np.zeros(8000), 8000, "u", np.random.default_rng(0), voice=voice, timed=False).any()
    assert texts == [(recipe.NOTHING, 1.0)]


def test_the_same_words_by_two_speakers_give_the_same_recording(tmp_path):
    """By the file of the recipe, as a user names it, with the recogniser and eSpeak."""
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    from spkver.corpora.voices import accent_text, synthesise

    paths = {}
    for name, pitch in (("anna", "pitch 160 220"), ("bert", "pitch 80 110")):
        samples, rate = synthesise("good morning", f"{accent_text('en-US')}\n{pitch}\n", words_per_minute=150)
        paths[name] = tmp_path / f"{name}.wav"
        soundfile.write(paths[name], samples, rate)
    source = DataDir(tmp_path / "source", paths, {name: name for name in paths})
    made = anonymize_datadir(source, tmp_path / "made", AnonymizerConfig(name=f"{RECIPE}:espeak"), jobs=1)
    anna, bert = (made.recordings[name].read_bytes() for name in ("anna", "bert"))
    assert anna == bert
