"""The pitch tracker against harmonic signals whose pitch is known, and against pYIN on real speech."""

import numpy as np
import pytest
from known_pitch import voice

from spkver.features.pitch import FRAME_SHIFT, rapt_track

GROSS = 0.2  # relative deviation of the pitch from which it counts as a gross error


def noisy(samples, decibels):
    noise = np.random.default_rng(0).standard_normal(len(samples))
    return samples + noise * np.sqrt((samples**2).mean() / 10 ** (decibels / 10))


@pytest.mark.parametrize("decibels", [40, 0])
@pytest.mark.parametrize("pitch", [75, 180, 400])
def test_known_pitch_is_found_without_gross_errors(pitch, decibels):
    samples, contour = voice(pitch)
    hertz, _ = rapt_track(noisy(samples, decibels), 16000)
    true = np.interp(np.arange(len(hertz)) * FRAME_SHIFT, np.arange(len(contour)) / 16000, contour)
    voiced = hertz > 0
    assert voiced.mean() > 0.97
    assert np.abs(hertz[voiced] / true[voiced] - 1).max() < GROSS
    assert np.sqrt(np.mean((hertz[voiced] / true[voiced] - 1) ** 2)) < 0.012


@pytest.mark.parametrize("rate", [8000, 44100])
def test_other_rates_give_the_same_pitch(rate):
    samples, contour = voice(150, rate=rate, seconds=1.0)
    hertz, _ = rapt_track(samples, rate)
    true = np.interp(np.arange(len(hertz)) * FRAME_SHIFT, np.arange(len(contour)) / rate, contour)
    voiced = hertz > 0
    assert voiced.mean() > 0.95
    assert np.median(np.abs(hertz[voiced] / true[voiced] - 1)) < 0.01


@pytest.mark.parametrize("kind", ["noise", "silence", "offset", "click"])
def test_signals_without_pitch_are_unvoiced(kind):
    samples = {
        "noise": np.random.default_rng(1).standard_normal(32000),
        "silence": np.zeros(16000),
        "offset": np.full(16000, 0.3),
        "click": np.eye(1, 16000, 8000)[0],
    }[kind]
    hertz, strength = rapt_track(samples, 16000)
    assert (hertz > 0).mean() < 0.02
    assert np.isfinite(strength).all()
    assert strength.min() >= 0
    assert strength.max() <= 1


@pytest.mark.slow
@pytest.mark.golden
def test_pitch_of_real_speech_agrees_with_pyin(shared):
    """Where both hear voice in 12 recordings of LibriSpeech; what is left over are pYIN's errors too."""
    import librosa
    import soundfile

    files = sorted((shared / "corpora" / "libri261" / "bg").rglob("*.flac"))[::21]
    gross, total = 0, 0
    for file in files:
        samples, rate = soundfile.read(file)
        hertz, _ = rapt_track(samples, rate)
        other, voiced, _ = librosa.pyin(
            samples, fmin=60, fmax=500, sr=rate, frame_length=1024, hop_length=160, resolution=0.2
        )
        both = (hertz[: len(other)] > 0) & voiced
        gross += int((np.abs(hertz[: len(other)][both] / other[both] - 1) > GROSS).sum())
        total += int(both.sum())
    assert total > 3000
    assert gross / total < 0.02
