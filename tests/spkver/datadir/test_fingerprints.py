"""Copies of a recording are found whatever was done to the file; other takes of its words are none."""

import io

import numpy as np
import pytest
import soundfile
import soxr
from scipy.signal import lfilter

from spkver.datadir import copies, fingerprint, fingerprints_of, similarity

RATE = 16000
N_WORDS = 12


def take(text, seed, seconds=3.0, melody=0.1):
    """The syllables of a text with the formants of one speaker; timing, melody and noise differ between takes."""
    of_text, rng = np.random.default_rng(text), np.random.default_rng([text, seed])
    n_syllables = round(4 * seconds)
    n = int(seconds * RATE)
    times = np.arange(n) / RATE
    pitch = 120 * np.exp(melody * np.interp(times, np.linspace(0, seconds, 8), rng.normal(size=8)))
    source = np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0) + 0.01 * rng.normal(size=n)
    bounds = np.linspace(0, n, n_syllables + 1) + np.r_[0, rng.normal(0, 300, n_syllables - 1), 0]
    parts = []
    for start, stop in zip(bounds[:-1].astype(int), bounds[1:].astype(int), strict=True):
        part = source[start:stop]
        for centre in of_text.uniform([300, 900, 2000], [800, 1900, 2800]):
            radius = np.exp(-np.pi * 90 / RATE)
            part = lfilter(
                [1], [1, -2 * radius * np.cos(2 * np.pi * centre / RATE), radius**2], part
            )
        parts.append(part / np.abs(part).max() * np.hanning(len(part)) * of_text.uniform(0.2, 1))
    return 0.3 * np.concatenate(parts)


def coded(samples, container, subtype, rate=RATE):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=container, subtype=subtype)
    buffer.seek(0)
    return soundfile.read(buffer)


CHANGES = {
    "gain": lambda x: (0.3 * x, RATE),
    "polarity": lambda x: (-x, RATE),
    "constant": lambda x: (x + 0.02, RATE),
    "three samples": lambda x: (x[3:], RATE),
    "100 ms": lambda x: (x[1600:], RATE),
    "both ends": lambda x: (x[2000:-3000], RATE),
    "8 kHz": lambda x: (soxr.resample(x, RATE, 8000), 8000),
    "11 kHz": lambda x: (soxr.resample(x, RATE, 11025), 11025),
    "44 kHz": lambda x: (soxr.resample(x, RATE, 44100), 44100),
    "MP3": lambda x: coded(x, "MP3", "MPEG_LAYER_III"),
    "Vorbis": lambda x: coded(x, "OGG", "VORBIS"),
    "Opus": lambda x: coded(x, "OGG", "OPUS"),
    "all": lambda x: coded(
        0.01 - 0.4 * soxr.resample(x[1234:-2345], RATE, 24000), "MP3", "MPEG_LAYER_III", 24000
    ),
}


@pytest.fixture(scope="module")
def prints():
    """Of four takes of each of some texts, by one speaker."""
    return [fingerprint(take(text, seed), RATE) for text in range(N_WORDS) for seed in range(4)]


def test_other_takes_are_not_reported_as_copies(prints):
    assert copies(prints) == []


def test_recordings_of_a_monotone_voice_are_not_reported_as_copies():
    prints = [
        fingerprint(take(text, seed, melody=0), RATE)
        for text in range(N_WORDS)
        for seed in range(2)
    ]
    assert copies(prints) == []


@pytest.mark.parametrize("change", CHANGES)
def test_copies_are_found_among_other_takes(prints, change):
    changed = []
    for text in range(N_WORDS):
        samples, rate = CHANGES[change](take(text, 1))
        changed.append(fingerprint(samples, rate))
    expected = [(text, 4 * text + 1) for text in range(N_WORDS)]
    assert copies(changed, prints) == expected
    assert len(copies([*prints, *changed])) == N_WORDS


def test_fingerprints_depend_on_neither_level_nor_polarity():
    samples = take(0, 0)
    first, second = fingerprint(samples, RATE), fingerprint(-4 * samples, RATE)
    assert np.array_equal(first.signs, second.signs)
    assert similarity(first.signs, second.signs) == pytest.approx(1)


@pytest.mark.parametrize("samples", [np.zeros(RATE), np.zeros(3), np.full(RATE, 0.2), np.ones(1)])
def test_silence_is_not_a_copy_of_silence(samples):
    prints = [fingerprint(samples, RATE) for _ in range(3)]
    assert copies(prints) == []
    assert copies(prints[:1]) == []
    assert copies([]) == []


def test_three_copies_of_a_recording_form_one_group(tmp_path):
    samples = take(0, 0)
    soundfile.write(tmp_path / "a.wav", samples, RATE)
    soundfile.write(tmp_path / "b.flac", 0.5 * samples[7:], RATE)
    soundfile.write(tmp_path / "c.ogg", soxr.resample(samples, RATE, 22050), 22050)
    soundfile.write(tmp_path / "d.wav", take(0, 1), RATE)
    (tmp_path / "e.wav").write_bytes(b"no audio")
    files = {path.stem: path for path in sorted(tmp_path.iterdir())}
    prints = fingerprints_of(files, jobs=1)
    assert list(prints) == ["a", "b", "c", "d"]
    assert copies(list(prints.values())) == [(0, 1), (0, 2), (1, 2)]
