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


def test_a_recording_is_the_same_in_every_draw(tmp_path):
    """By the file of the recipe, as a user names it, with the recogniser and eSpeak."""
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    samples, rate = recipe.say_by_espeak("good morning", 1.0)
    soundfile.write(tmp_path / "u.wav", samples, rate)
    source, config = DataDir(tmp_path, {"u": tmp_path / "u.wav"}, {"u": "anna"}), AnonymizerConfig(f"{RECIPE}:espeak")
    first, second = (anonymize_datadir(source, tmp_path / str(seed), config, seed=seed, jobs=1) for seed in (1, 2))
    assert first.recordings["u"].read_bytes() == second.recordings["u"].read_bytes()
    assert soundfile.read(first.recordings["u"])[0].any()
