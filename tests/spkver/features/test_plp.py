"""PLP against Toeplitz systems, all-pole models whose cepstra are known, and the definition written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz
from scipy.signal import lfilter

from spkbase.errors import ConfigError
from spkver.features import FeatureConfig, compute
from spkver.features.plp import (
    autocorrelation,
    cepstra_of_model,
    equal_loudness,
    linear_prediction,
)

PLAIN = {"preset": "plp", "vad": "none", "deltas": 0, "normalisation": "none"}


def noise(seconds=0.3, rate=16000, seed=0):
    """Coloured noise with samples in [-1, 1]."""
    white = np.random.default_rng(seed).normal(size=round(seconds * rate))
    return 0.02 * lfilter([1.0], [1.0, -1.3, 0.8], white)


def written_out(frame, rate, order, lifter, n_filters=23):
    """Cepstra of one frame, by dense sums, a Toeplitz system and the logarithm of the model's spectrum."""
    frame = frame - frame.mean()
    previous = np.concatenate([frame[:1], frame[:-1]])
    windowed = (frame - 0.97 * previous) * np.hanning(len(frame)) ** 0.85
    n_fft = 512
    power = np.abs(np.fft.rfft(windowed, n_fft)) ** 2
    edges = np.linspace(
        1127 * np.log(1 + 20 / 700), 1127 * np.log(1 + rate / 2 / 700), n_filters + 2
    )
    loudness = []
    for number in range(n_filters):
        low, centre, high = edges[number : number + 3]
        total = 0.0
        for place in range(n_fft // 2):
            mel = 1127 * np.log(1 + place * rate / n_fft / 700)
            if low < mel < high:
                rises = (mel - low) / (centre - low)
                falls = (high - mel) / (high - centre)
                total += power[place] * min(rises, falls)
        square = (700 * (np.exp(centre / 1127) - 1)) ** 2
        weight = (square / (square + 1.6e5)) ** 2 * (square + 1.44e6) / (square + 9.61e6)
        loudness.append((total * weight) ** (1 / 3))
    whole = [loudness[0], *loudness, loudness[-1]]
    mirrored = np.array(whole + whole[-2:0:-1])  # a period of the even spectrum
    correlation = np.fft.ifft(mirrored).real[: order + 1]
    poles = solve_toeplitz(correlation[:-1], correlation[1:])
    error = correlation[0] - poles @ correlation[1:]
    response = np.fft.rfft(np.concatenate([[1.0], -poles]), 1 << 14)
    cepstra = np.fft.irfft(-2 * np.log(np.abs(response)))[1 : order + 1]
    factors = 1 + lifter / 2 * np.sin(np.pi * np.arange(1, order + 1) / lifter)
    return np.log(error), cepstra * factors


@pytest.mark.parametrize("order", [1, 5, 12, 20])
def test_prediction_solves_the_normal_equations(order):
    spectra = np.random.default_rng(order).uniform(0.1, 2.0, size=(7, 30))
    correlation = autocorrelation(spectra, order)
    coefficients, error = linear_prediction(correlation)
    for row, own, left in zip(correlation, coefficients, error, strict=True):
        np.testing.assert_allclose(own, solve_toeplitz(row[:-1], row[1:]), atol=1e-10)
        assert left == pytest.approx(row[0] - own @ row[1:])


def test_cepstra_of_one_pole_are_its_powers():
    pole = 0.8
    cepstra = cepstra_of_model(np.array([[pole, 0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(cepstra[0], pole ** np.arange(1, 5) / np.arange(1, 5))


def test_cepstra_add_up_over_poles():
    poles = np.array([0.9, -0.5, 0.3 + 0.6j, 0.3 - 0.6j])
    coefficients = -np.poly(poles).real[1:]
    numbers = np.arange(1, 5)
    expected = (poles[:, None] ** numbers / numbers).sum(axis=0).real
    np.testing.assert_allclose(cepstra_of_model(coefficients[None])[0], expected)


@pytest.mark.parametrize(("rate", "order", "lifter"), [(16000, 12, 22.0), (16000, 8, 15.0)])
def test_frames_are_those_of_the_definition(rate, order, lifter):
    samples = noise(rate=rate)
    values = {"rate": rate, "lifter": lifter, "dtype": "float64"}
    with_energy = compute(samples, rate, FeatureConfig(**PLAIN, **values, n_cepstra=order))
    with_c0 = compute(
        samples,
        rate,
        FeatureConfig(**PLAIN, **values, n_cepstra=order + 1, c0=True, log_energy=False),
    )
    for place in (0, 13, len(with_energy) - 1):
        frame = 32768 * samples[160 * place : 160 * place + 400]
        error, cepstra = written_out(frame, rate, order, lifter)
        np.testing.assert_allclose(with_energy[place, 1:], cepstra, atol=1e-6)
        np.testing.assert_allclose(with_c0[place], [error, *cepstra], atol=1e-6)
        centred = frame - frame.mean()
        assert with_energy[place, 0] == pytest.approx(np.log(centred @ centred))


def test_a_change_of_level_shifts_only_the_energies():
    values = {"c0": True, "n_cepstra": 13, "log_energy": False, "dtype": "float64"}
    config = FeatureConfig(**PLAIN, **values)
    quiet = compute(noise(), 16000, config)
    loud = compute(8 * noise(), 16000, config)
    np.testing.assert_allclose(loud[:, 1:], quiet[:, 1:], atol=1e-8)
    np.testing.assert_allclose(loud[:, 0] - quiet[:, 0], np.log(8**2) / 3, atol=1e-8)


def test_silence_and_float32_are_finite():
    samples = np.concatenate([noise(0.1), np.zeros(3000)])
    rows = {}
    for dtype in ("float32", "float64"):
        rows[dtype] = compute(samples, 16000, FeatureConfig(**PLAIN, dtype=dtype))
        assert np.isfinite(rows[dtype]).all()
        assert rows[dtype].dtype == dtype
    np.testing.assert_allclose(rows["float32"][:8], rows["float64"][:8], atol=2e-3)


def test_loudness_follows_the_40_phon_curve():
    weights = equal_loudness(np.array([100.0, 1000.0, 4000.0]))
    assert weights[0] < 0.01 < weights[1] < weights[2]


def test_the_preset_fits_every_rate():
    config = FeatureConfig(preset="plp", rate=8000)
    assert (config.high_frequency, config.dimension) == (4000, 39)
    with pytest.raises(ConfigError, match=r"must be below features\.n_filters"):
        FeatureConfig(preset="plp", n_cepstra=23)
