"""Prosody and session: what they hear, what they must not hear, and what happens where there is nothing to hear."""

import numpy as np
import pytest
from known_pitch import voice

from spkbase.errors import ConfigError
from spkver.extractors import ExtractorSettings, open_extractor
from spkver.extractors.cues import (
    N_BANDS,
    PROSODY,
    energy_contour,
    prosody_statistics,
    prosody_vector,
    session_vector,
)
from spkver.features import PitchTrack, rapt_track

RATE = 16000
VECTORS = {"prosody": prosody_vector, "session": session_vector}


def syllables(gaps, *, pitch=150.0, noise=1e-4):
    """Bursts of voice of 0.15 s with these times in seconds between their starts, over quiet noise."""
    buzz, _ = voice(pitch, seconds=0.15)
    starts = np.cumsum([0.2, *gaps])
    samples = np.zeros(int((starts[-1] + 0.5) * RATE))
    for start in starts:
        samples[int(start * RATE) :][: len(buzz)] += buzz * np.hanning(len(buzz))
    return samples + noise * np.random.default_rng(0).standard_normal(len(samples))


def statistics(samples):
    return prosody_statistics(rapt_track(samples, RATE), energy_contour(samples, RATE))


def test_pitch_statistics_equal_those_of_the_contour():
    samples, contour = voice(180)
    found = statistics(samples)
    semitones = 12 * np.log2(contour / 100)
    assert found["pitch mean"] == pytest.approx(semitones.mean(), abs=0.1)
    assert found["pitch 50 %"] == pytest.approx(np.median(semitones), abs=0.2)
    assert found["pitch deviation"] == pytest.approx(semitones.std(), abs=0.1)
    assert found["pitch rising"] == pytest.approx(0.5, abs=0.08)
    assert found["voiced share"] > 0.97
    assert found["pause share"] == 0


def test_statistics_of_a_track_equal_hand_computed_values():
    """Ten frames of voice that rise by 1 semitone a frame, twenty of silence, ten that stay."""
    semitones = np.r_[np.arange(10.0), np.zeros(20), np.full(10, 4.0)]
    voiced = np.r_[np.ones(10, bool), np.zeros(20, bool), np.ones(10, bool)]
    track = PitchTrack(np.where(voiced, 100 * 2 ** (semitones / 12), 0), np.where(voiced, 0.9, 0.1))
    found = prosody_statistics(track, np.where(voiced, -10.0, -90.0))
    assert found["pitch mean"] == pytest.approx(4.25)
    assert found["pitch change size"] == pytest.approx(0.5)
    assert found["stretch slope"] == pytest.approx(50)  # 100 and 0 semitones a second
    assert found["stretch slope deviation"] == pytest.approx(50)
    assert found["pause share"] == pytest.approx(0.5)
    assert found["pauses"] == pytest.approx(1 / 0.4)
    assert found["pause length"] == pytest.approx(np.log(0.2))
    assert found["voiced length"] == pytest.approx(np.log(0.1))
    assert found["voiced share"] == 1
    assert found["voiced stretches"] == pytest.approx(2 / 0.2)
    assert found["strength"] == pytest.approx(0.9)


@pytest.mark.parametrize("gap", [0.2, 0.4])
def test_syllables_are_counted(gap):
    found = statistics(syllables([gap] * 8))
    assert found["syllables"] == pytest.approx(1 / gap, rel=0.12)
    assert found["syllable gap"] == pytest.approx(np.log(gap), abs=0.08)
    assert found["syllable gap deviation"] < 0.1


def test_session_vectors_do_not_depend_on_the_voice():
    """Other voices over the same noise give nearly the same vector, other noise over the same voice does not."""
    gaps = [0.6, 0.7, 0.5]
    same = [session_vector(syllables(gaps, pitch=pitch, noise=1e-3), RATE) for pitch in (100, 220)]
    other = session_vector(syllables(gaps, pitch=100, noise=4e-3), RATE)
    assert np.abs(same[0] - same[1]).max() < 0.6
    assert np.abs(other - same[0])[:N_BANDS] == pytest.approx(
        np.full(N_BANDS, 20 * np.log10(4) / 14), abs=0.15
    )


def test_session_vectors_detect_bandwidth_and_offset():
    from scipy.signal import butter, sosfilt

    samples = 0.01 * np.random.default_rng(0).standard_normal(2 * RATE)
    narrow = sosfilt(butter(8, 3400, fs=RATE, output="sos"), samples)
    assert session_vector(samples, RATE)[2 * N_BANDS + 1] == pytest.approx(2)
    assert session_vector(narrow, RATE)[2 * N_BANDS + 1] == pytest.approx(
        4 * 3800 / 8000 - 2, abs=0.3
    )
    assert session_vector(samples + 0.01, RATE)[2 * N_BANDS + 2] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("kind", ["offset", "click", "tiny", "short", "huge"])
def test_degenerate_signals_give_finite_vectors_of_equal_length(name, kind):
    signals = {
        "offset": np.full(RATE, 0.25),
        "click": np.eye(1, RATE, 8000)[0],
        "tiny": np.full(RATE, 1e-30),
        "short": np.random.default_rng(0).standard_normal(RATE // 10),
        "huge": 1e12 * np.random.default_rng(0).standard_normal(RATE),
    }
    vector = VECTORS[name](signals[kind].astype(np.float32), RATE)
    assert vector.shape == ((len(PROSODY),) if name == "prosody" else (2 * N_BANDS + 4,))
    assert np.isfinite(vector).all()
    assert np.abs(vector).max() <= 10
    assert vector.any()


@pytest.mark.parametrize("name", VECTORS)
def test_inapplicable_settings_are_refused(name):
    with pytest.raises(ConfigError, match="takes no argument after a colon"):
        open_extractor(f"{name}:file")
    with pytest.raises(ConfigError, match="needs 16000 Hz"):
        open_extractor(name, ExtractorSettings(rate=8000))
    with pytest.raises(ConfigError, match="needs a window"):
        open_extractor(name, ExtractorSettings(hop=1))
    assert open_extractor(name, ExtractorSettings(window=2.0)).extraction.record["window"] == 2
