"""Prosody and session: what they hear, what they must not hear, and what happens where there is nothing to hear."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from test_pitch_tracker import voice

from evaluation.embeddings import read_embeddings
from spkbase.errors import ConfigError, DataError
from spkbase.work import Work
from spkver.datadir.directory import DataDir, write_datadir
from spkver.datadir.reading import read_datadir
from spkver.extractors.cues import (
    N_BANDS,
    PROSODY,
    PitchTrack,
    band_levels,
    energy_contour,
    prosody_statistics,
    prosody_vector,
    session_vector,
    silence,
    track_pitch,
)
from spkver.extractors.directories import embed_directory
from spkver.extractors.protocol import ExtractorSettings
from spkver.extractors.registry import open_extractor

RATE = 16000
NAMES = list(PROSODY)
VECTORS = {"prosody": prosody_vector, "session": session_vector}


def syllables(gaps: list[float], *, pitch: float = 150.0, noise: float = 1e-4) -> np.ndarray:
    """Bursts of voice of 0.15 s with these times in seconds between their starts, over quiet noise."""
    buzz, _ = voice(pitch, seconds=0.15)
    starts = np.cumsum([0.2, *gaps])
    samples = np.zeros(int((starts[-1] + 0.5) * RATE))
    for start in starts:
        samples[int(start * RATE) :][: len(buzz)] += buzz * np.hanning(len(buzz))
    return samples + noise * np.random.default_rng(0).standard_normal(len(samples))


def statistics(samples: np.ndarray) -> dict[str, float]:
    return prosody_statistics(track_pitch(samples, RATE), energy_contour(samples, RATE))


def test_pitch_statistics_are_those_of_the_contour() -> None:
    samples, contour = voice(180)
    found = statistics(samples)
    semitones = 12 * np.log2(contour / 100)
    assert found["pitch mean"] == pytest.approx(semitones.mean(), abs=0.1)
    assert found["pitch 50 %"] == pytest.approx(np.median(semitones), abs=0.2)
    assert found["pitch deviation"] == pytest.approx(semitones.std(), abs=0.1)
    assert found["pitch rising"] == pytest.approx(0.5, abs=0.08)
    assert found["voiced share"] > 0.97
    assert found["pause share"] == 0


def test_statistics_of_a_track_by_hand() -> None:
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


@pytest.mark.parametrize("gap", [0.2, 0.25, 0.4])
def test_syllables_are_counted(gap: float) -> None:
    found = statistics(syllables([gap] * 8))
    assert found["syllables"] == pytest.approx(1 / gap, rel=0.12)
    assert found["syllable gap"] == pytest.approx(np.log(gap), abs=0.08)
    assert found["syllable gap deviation"] < 0.1


def test_rhythm_shows_in_the_modulation() -> None:
    slow, fast = statistics(syllables([0.4] * 8)), statistics(syllables([0.17] * 16))
    assert slow["modulation 2 to 4 Hz"] > fast["modulation 2 to 4 Hz"]
    assert fast["modulation 4 to 8 Hz"] > slow["modulation 4 to 8 Hz"]


def test_prosody_does_not_hear_the_level_nor_how_long_silence_around_is() -> None:
    samples = syllables([0.25, 0.3, 0.2, 0.35])
    whole = prosody_vector(samples, RATE)
    np.testing.assert_allclose(prosody_vector(samples * 0.01, RATE), whole, atol=0.02)
    around = 1e-4 * np.random.default_rng(1).standard_normal(RATE)
    np.testing.assert_allclose(prosody_vector(np.r_[around, samples, around], RATE), whole, atol=0.5)


def test_prosody_does_not_hear_timbre() -> None:
    """A filter of 6 dB an octave moves the vector less than 2 semitones of pitch do."""
    from scipy.signal import lfilter

    one, _ = voice(150)
    higher, _ = voice(150 * 2 ** (2 / 12))
    vector = prosody_vector(one, RATE)
    filtered = lfilter([1], [1, -0.9], one)
    pitch = [NAMES.index(f"pitch {what}") for what in ("mean", "5 %", "50 %", "95 %")]
    assert np.abs(prosody_vector(filtered, RATE) - vector)[pitch].max() < 0.1
    assert np.abs(prosody_vector(higher, RATE) - vector)[pitch].min() > 0.2


def test_without_voice_pitch_counts_as_typical() -> None:
    vector = prosody_vector(np.random.default_rng(0).standard_normal(2 * RATE), RATE)
    assert np.isfinite(vector).all()
    assert not vector[[NAMES.index(name) for name in NAMES if name.startswith(("pitch", "stretch"))]].any()
    assert vector[NAMES.index("voiced share")] < -3


def test_session_does_not_hear_the_voice() -> None:
    """Other voices over the same noise give nearly the same vector, other noise over the same voice does not."""
    gaps = [0.6, 0.7, 0.5]
    same = [session_vector(syllables(gaps, pitch=pitch, noise=1e-3), RATE) for pitch in (100, 220)]
    other = session_vector(syllables(gaps, pitch=100, noise=4e-3), RATE)
    assert np.abs(same[0] - same[1]).max() < 0.6
    assert np.abs(other - same[0])[:N_BANDS] == pytest.approx(np.full(N_BANDS, 20 * np.log10(4) / 14), abs=0.15)


def test_silence_is_what_the_detector_leaves() -> None:
    samples = syllables([1.0, 1.0], noise=1e-3)
    found = silence(samples, RATE, band_levels(samples, RATE))
    times = np.arange(len(found)) * 0.01 + 0.0125
    speech = np.zeros(len(times), bool)
    for start in (0.2, 1.2, 2.2):
        speech |= (times > start + 0.03) & (times < start + 0.12)
    assert not (found & speech).any()
    assert found[~speech].mean() > 0.6


def test_without_silence_the_quietest_frames_stand_in() -> None:
    rng = np.random.default_rng(0)
    samples = rng.standard_normal(2 * RATE) * np.repeat(rng.uniform(0.1, 0.2, 200), RATE // 100)
    levels = band_levels(samples, RATE)
    found = silence(samples, RATE, levels)
    assert np.count_nonzero(found) == 20
    total = (10 ** (levels / 10)).sum(axis=1)
    assert total[found].max() <= np.sort(total)[19]


def test_bands_hold_the_power_of_white_noise_alike() -> None:
    levels = band_levels(np.random.default_rng(0).standard_normal(10 * RATE), RATE).mean(axis=0)
    assert levels.shape == (N_BANDS,)
    assert np.ptp(levels[1:-1]) < 1.5


def test_bandwidth_and_offset_are_heard() -> None:
    from scipy.signal import butter, sosfilt

    samples = 0.01 * np.random.default_rng(0).standard_normal(2 * RATE)
    narrow = sosfilt(butter(8, 3400, fs=RATE, output="sos"), samples)
    assert session_vector(samples, RATE)[2 * N_BANDS + 1] == pytest.approx(2)
    assert session_vector(narrow, RATE)[2 * N_BANDS + 1] == pytest.approx(4 * 3800 / 8000 - 2, abs=0.3)
    assert session_vector(samples + 0.01, RATE)[2 * N_BANDS + 2] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("kind", ["offset", "click", "square", "tiny", "short", "loud", "huge", "half"])
def test_strange_signals_give_finite_vectors_of_one_length(name: str, kind: str) -> None:
    signals = {
        "offset": np.full(RATE, 0.25),
        "click": np.eye(1, RATE, 8000)[0],
        "square": np.sign(np.sin(np.arange(RATE) / 20)),
        "tiny": np.full(RATE, 1e-30),
        "short": np.random.default_rng(0).standard_normal(RATE // 10),
        "huge": 1e12 * np.random.default_rng(0).standard_normal(RATE),
        "loud": 1e6 * np.random.default_rng(0).standard_normal(RATE),
        "half": np.r_[np.zeros(RATE), 0.1 * np.random.default_rng(0).standard_normal(RATE)],
    }
    vector = VECTORS[name](signals[kind].astype(np.float32), RATE)
    assert vector.shape == ((len(PROSODY),) if name == "prosody" else (2 * N_BANDS + 4,))
    assert np.isfinite(vector).all()
    assert np.abs(vector).max() <= 10
    assert vector.any()


def directory(folder: Path, recordings: dict[str, tuple[np.ndarray, int]]) -> DataDir:
    (folder / "wav").mkdir(parents=True)
    for name, (samples, rate) in recordings.items():
        soundfile.write(folder / "wav" / f"{name}.wav", samples, rate, subtype="FLOAT")
    paths = {name: folder / "wav" / f"{name}.wav" for name in recordings}
    write_datadir(DataDir(folder, paths, {name: name.split("-")[0] for name in recordings}))
    return read_datadir(folder)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_a_directory_do_not_depend_on_workers(name: str, tmp_path) -> None:
    rng = np.random.default_rng(0)
    source = directory(
        tmp_path / "set",
        {f"s{number % 3}-{number:02d}": (syllables(list(rng.uniform(0.2, 0.5, 3))), RATE) for number in range(9)},
    )
    files = [tmp_path / f"{jobs}.h5" for jobs in (1, 2)]
    for jobs, file in enumerate(files, 1):
        embed_directory(source, open_extractor(name), file, work=Work(jobs))
    one, two = map(read_embeddings, files)
    assert one.ids.tolist() == two.ids.tolist()
    assert np.array_equal(one.vectors, two.vectors)


@pytest.mark.parametrize("name", VECTORS)
def test_bad_recordings_are_named_and_strange_rates_taken(name: str, tmp_path) -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(2 * RATE)
    good = directory(tmp_path / "good", {"a-1": (noise[:2000], 1000), "a-2": (noise, 44100), "a-3": (noise, 8000)})
    vectors = embed_directory(good, open_extractor(name), tmp_path / "good.h5").vectors
    assert np.isfinite(vectors).all()
    slow = directory(tmp_path / "slow", {"a-1": (noise[:20], 1), "a-2": (noise, RATE)})
    with pytest.raises(DataError, match="the header says 1 Hz"):
        embed_directory(slow, open_extractor(name), tmp_path / "slow.h5")
    bad = directory(tmp_path / "bad", {"a-1": (noise[:100], RATE), "a-2": (noise, RATE)})
    with pytest.raises(DataError, match=r"0\.1 s are needed"):
        embed_directory(bad, open_extractor(name), tmp_path / "bad.h5")
    silent = directory(tmp_path / "silent", {"a-1": (0 * noise, RATE), "a-2": (noise, RATE)})
    with pytest.raises(DataError, match="digital silence"):
        embed_directory(silent, open_extractor(name), tmp_path / "silent.h5")


@pytest.mark.parametrize("name", VECTORS)
def test_settings_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="takes nothing after a colon"):
        open_extractor(f"{name}:file")
    with pytest.raises(ConfigError, match="needs 16000 Hz"):
        open_extractor(name, ExtractorSettings(rate=8000))
    with pytest.raises(ConfigError, match="needs --window"):
        open_extractor(name, ExtractorSettings(hop=1))
    assert open_extractor(name, ExtractorSettings(window=2.0)).extraction.record["window"] == 2
