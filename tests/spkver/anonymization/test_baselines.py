"""The simple anonymisers: what they move, by closed forms, and what they leave."""

import sys

import numpy as np
import pytest
from scipy.signal import lfilter

from spkbase.errors import DataError
from spkver.anonymization.anonymizers import (
    AnonymizerConfig,
    import_world,
    make_anonymizer,
    scale_envelope,
    warp_envelope,
)

RATE = 16000


def changed(samples, name, seed=4, **bounds):
    return make_anonymizer(AnonymizerConfig(name, **bounds))(
        samples, RATE, "u", np.random.default_rng(seed)
    )


def buzz(pitch, formant, seconds=1.0):
    """Pulses through one resonance."""
    n = round(seconds * RATE)
    source = np.diff(np.floor(np.arange(n + 1) * pitch / RATE))
    radius = np.exp(-np.pi * 150 / RATE)
    shaped = lfilter([1], [1, -2 * radius * np.cos(2 * np.pi * formant / RATE), radius**2], source)
    return 0.5 * shaped / np.abs(shaped).max()


def peak_of(samples, low, high):
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 16)) ** 2
    frequencies = np.arange(len(power)) * RATE / (1 << 16)
    inside = (frequencies >= low) & (frequencies < high)
    return float(frequencies[inside][np.argmax(power[inside])])


def envelope_peak(samples):
    """Peak of the spectrum of short frames, too short to show the pitch."""
    frames = samples[: len(samples) // 80 * 80].reshape(-1, 80) * np.hanning(80)
    return float(np.argmax(np.mean(np.abs(np.fft.rfft(frames, 2048)) ** 2, 0)) * RATE / 2048)


def test_the_anonymiser_none_keeps_the_samples():
    samples = buzz(120, 1500)
    assert np.array_equal(changed(samples, "none"), samples)


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_resampling_scales_frequencies_and_time(factor):
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
    found = changed(tone, "resampling", speed=(factor, factor))
    assert abs(peak_of(found, 100, 4000) - 1000 * factor) < 1
    assert abs(len(found) - RATE / factor) <= 1


def test_vtln_moves_the_envelope_and_keeps_the_pitch():
    samples = buzz(125, 2000)
    signs = set()
    for seed in range(6):
        found = changed(samples, "vtln", seed, warp=(0.1, 0.1))
        rng = np.random.default_rng(seed)
        size = rng.uniform(0.1, 0.1) * (1 if rng.random() < 0.5 else -1)
        signs.add(np.sign(size))
        assert len(found) == len(samples)
        # the new envelope at omega is the old one at the bilinear image of omega
        omega = 2 * np.pi * envelope_peak(found) / RATE
        image = omega + 2 * np.arctan2(size * np.sin(omega), 1 - size * np.cos(omega))
        assert abs(image * RATE / (2 * np.pi) - envelope_peak(samples)) < 130
        assert abs(envelope_peak(found) - 2000) > 150
        assert abs(peak_of(found, 60, 190) - 125) < 1.5
    assert signs == {-1, 1}


def test_vtln_without_a_warp_returns_the_samples():
    samples = buzz(125, 2000)
    found = warp_envelope(samples, RATE, 0.0)
    np.testing.assert_allclose(found, samples, atol=1e-9)


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_the_envelope_is_scaled_and_the_pitch_kept(factor):
    found = scale_envelope(buzz(125, 2000), RATE, factor)
    assert abs(envelope_peak(found) - 2000 * factor) < 130
    assert abs(peak_of(found, 60, 190) - 125) < 1.5


def test_world_scales_pitch_and_formants():
    pytest.importorskip("pyworld")
    samples = buzz(150, 1500, 0.6)
    found = changed(samples, "world", pitch=(1.3, 1.3), formants=(1.2, 1.2))
    assert len(found) == len(samples)
    assert abs(peak_of(found, 120, 290) - 195) < 4
    assert abs(envelope_peak(found) - 1800) < 150


def test_world_without_its_package_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyworld", None)
    with pytest.raises(DataError, match=r"needs pyworld, .* \(pip install pyworld\)"):
        import_world()


@pytest.mark.parametrize(("name", "n_samples"), [("resampling", 0), ("vtln", 10), ("vtln", 511)])
def test_short_recordings_are_refused_and_silence_stays_silent(name, n_samples):
    with pytest.raises(DataError, match=f"{n_samples} samples are too few"):
        changed(np.ones(n_samples), name)
    assert not changed(np.zeros(4000), name).any()
