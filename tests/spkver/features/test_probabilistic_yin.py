"""Probabilistic YIN against tracks by librosa.

`tests/data/features/pyin_tracks.npz` holds what `librosa.pyin` 0.11 makes of the signals below, so that the quick
tests need no numba; the slow ones ask librosa itself, for more signals and real speech.
"""

import inspect

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.features.pitch import pitch_track, pyin_track

RATES = (8000, 16000, 44100)


def of_evaluation(rate):
    """How `pitch_track` asks for a track."""
    frame = 1 << int(np.ceil(np.log2(4 * rate / 75)))
    return {
        "pitch_range": (75.0, 500.0),
        "frame": frame,
        "shift": rate // 100,
        "resolution": 0.1,
        "centred": True,
    }


def of_emotions(rate):
    """How `functionals` asks for one."""
    frame = 1 << int(np.ceil(np.log2(3 * rate / 60)))
    return {
        "pitch_range": (60.0, 600.0),
        "frame": frame,
        "shift": rate // 100,
        "resolution": 0.2,
        "centred": False,
    }


CALLERS = {"evaluation": of_evaluation, "emotions": of_emotions}


def buzz(pitch, rate):
    """Seven harmonics of a pitch in Hz, one value a sample."""
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    return sum(np.sin(number * phase) / number for number in range(1, 8))


def sounds(rate, seconds=0.6):
    """What a tracker meets: a glide, jumps of an octave and more, bursts, noise, whole steps, a clipped voice."""
    rng = np.random.default_rng(1)
    times = np.arange(int(seconds * rate)) / rate
    swing = np.sin(2 * np.pi * 1.7 * times)
    jumps = np.choose((3 * np.arange(len(times))) // len(times), (110.0, 331.0, 87.3))
    noise = rng.standard_normal(len(times))
    return {
        "glide": 0.2 * buzz(100 * 2 ** (1.5 * times), rate) + 0.01 * noise,
        "jumps": 0.2 * buzz(jumps, rate) + 0.003 * noise,
        "bursts": 0.2 * buzz(180 + 20 * swing, rate) * (np.sin(2 * np.pi * 4 * times) > 0)
        + 0.001 * noise,
        "noise": 0.1 * noise,
        "low": 0.2 * buzz(72 + 10 * swing, rate) + 0.01 * noise,
        "high": 0.2 * buzz(495 + 20 * swing, rate) + 0.01 * noise,
        "steps": np.round(100 * buzz(120 + 30 * swing, rate) + 3 * noise) / 32768,
        "clipped": np.clip(5 * buzz(140 + 30 * swing, rate) + 0.1 * noise, -1, 1),
    }


def awkward(rate):
    """Where rounding decides, or there is little to hear."""
    n_samples = int(0.6 * rate)
    times = np.arange(n_samples) / rate
    voice = buzz(np.full(n_samples, 150.0), rate)
    early = times < 0.3
    return {
        "pure": np.sin(2 * np.pi * 200 * times),
        "square": np.sign(np.sin(2 * np.pi * 133 * times)),
        "square that fits": np.sign(np.sin(2 * np.pi * 100 * times + 0.1)),
        "constant": np.full(n_samples, 0.3),
        "click": np.eye(1, n_samples, n_samples // 2)[0],
        "clicks": 0.9 * (np.arange(n_samples) % round(rate / 123) == 0),
        "silence, then voice": voice * ~early,
        "voice, then silence": voice * early,
        "offset": 1 + 1e-3 * np.random.default_rng(0).standard_normal(n_samples),
        "faint": 1e-6 * voice,
        "short": voice[: int(0.027 * rate)],
    }


def whole(samples, settings):
    """At least a frame, for settings that do not pad."""
    return samples if settings["centred"] else np.pad(samples, settings["frame"] // 2)


def by_librosa(samples, rate, settings):
    import librosa

    lowest, highest = settings["pitch_range"]
    named = {
        "frame_length": "frame",
        "hop_length": "shift",
        "resolution": "resolution",
        "center": "centred",
    }
    given = {theirs: settings[ours] for theirs, ours in named.items()}
    # librosa 1 leaves out improbable transitions unless it is told not to; librosa 0 cannot
    if "transition_min_prob" in inspect.signature(librosa.pyin).parameters:
        given["transition_min_prob"] = None
    return np.nan_to_num(
        librosa.pyin(samples, sr=rate, fmin=lowest, fmax=highest, **given)[0], nan=0.0
    )


def same(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found > 0, expected > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("rate", RATES)
def test_tracks_equal_stored_ones_of_librosa(rate, caller, data):
    settings = CALLERS[caller](rate)
    with np.load(data / "features" / "pyin_tracks.npz") as expected:
        for name, samples in sounds(rate).items():
            found = pyin_track(whole(samples, settings), rate, **settings)
            same(found, expected[f"{name} {rate} {caller}"])


@pytest.mark.slow
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("rate", [1200, *RATES])
def test_tracks_equal_those_of_the_installed_librosa(rate, caller):
    settings = CALLERS[caller](rate)
    voices = sounds(rate, seconds=2.0) | awkward(rate)
    for name in voices if rate > 1200 else ("glide", "bursts"):
        samples = whole(voices[name], settings)
        if rate > 1200 or caller == "evaluation":  # 600 Hz is half of 1200
            same(pyin_track(samples, rate, **settings), by_librosa(samples, rate, settings))


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.parametrize("caller", CALLERS)
def test_tracks_of_real_speech_equal_librosa(caller, shared):
    import soundfile

    voiced = 0
    for corpus in ("libri261/bg", "ravdess24", "dsp34"):
        files = sorted((shared / "corpora" / corpus).rglob("*.flac"))
        for file in files[:: len(files) // 8]:
            samples, rate = soundfile.read(file)
            settings = CALLERS[caller](rate)
            expected = by_librosa(samples, rate, settings)
            same(pyin_track(samples, rate, **settings), expected)
            voiced += np.count_nonzero(expected)
    assert voiced > 2000


def test_a_track_follows_a_known_pitch():
    rate = 16000
    pitch = np.r_[np.zeros(rate // 4), np.linspace(110, 220, rate // 2), np.zeros(rate // 4)]
    found = pitch_track(0.1 * buzz(pitch, rate) * (pitch > 0), rate)
    assert len(found) == 101
    inside = slice(32, 68)
    assert np.allclose(found[inside], pitch[:: rate // 100][inside], rtol=0.03)
    assert (found[:18] == 0).all()
    assert (found[84:] == 0).all()
    assert not pitch_track(np.zeros(8000), rate).any()
    assert not pitch_track(np.full(5, 0.1), rate).any()


@pytest.mark.parametrize("rate", RATES)
def test_silence_and_short_signals_give_unvoiced_tracks(rate):
    settings = of_evaluation(rate)
    centred = {
        n_samples: pyin_track(np.zeros(n_samples), rate, **settings) for n_samples in (0, 1, rate)
    }
    assert {n_samples: len(found) for n_samples, found in centred.items()} == {
        0: 1,
        1: 1,
        rate: 101,
    }
    assert not any(found.any() for found in centred.values())
    assert len(pyin_track(np.ones(100), rate, **of_emotions(rate))) == 0
    assert not pyin_track(np.full(rate, 0.3), rate, **of_emotions(rate)).any()
    loud, faint = (
        pyin_track(sounds(rate)["glide"] * gain, rate, **settings) for gain in (4.0, 2.0**-30)
    )
    np.testing.assert_array_equal(loud, faint)


def test_bad_input_is_refused():
    settings = of_evaluation(16000)
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match="expected one channel of finite samples"):
            pyin_track(np.array([0.0, bad, 0.1]), 16000, **settings)
    with pytest.raises(DataError, match="expected one channel"):
        pyin_track(np.zeros((2, 3)), 16000, **settings)
    with pytest.raises(DataError, match="half of the rate of 800 Hz, got 75 to 500 Hz"):
        pyin_track(np.zeros(9), 800, **settings)
