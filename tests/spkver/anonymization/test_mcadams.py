"""The McAdams coefficient: golden output, a plain oracle, closed forms, and bits that do not depend on the company."""

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from lpc_oracle import plain_burg
from scipy.signal import lfilter

from spkbase.errors import DataError
from spkver.anonymization import mcadams_coefficient as module
from spkver.anonymization.mcadams_coefficient import turn_poles

EPS = np.finfo(np.float32).eps


def vowel(seconds=0.4, rate=16000, seed=0):
    """Pulses and noise through three formants, float32 in [-0.5, 0.5]."""
    rng = np.random.default_rng(seed)
    n = round(seconds * rate)
    source = 0.01 * rng.standard_normal(n)
    source[:: rate // 120] += 1
    for frequency, width in ((600, 90), (1300, 120), (2600, 200)):
        radius = np.exp(-np.pi * width / rate)
        source = lfilter(
            [1], [1, -2 * radius * np.cos(2 * np.pi * frequency / rate), radius**2], source
        )
    return (0.5 * source / np.abs(source).max()).astype(np.float32)


def oracle(samples, rate, alpha):
    """The definition, a frame at a time: plain Burg, LAPACK's roots, SciPy's filters."""
    samples = samples.astype(np.float32) + EPS
    length, shift = int(rate * 0.02), int(rate * 0.01)
    hann = np.hanning(length)
    window = np.sqrt(hann / (hann.sum() / shift))
    output = np.zeros(len(samples))
    for start in range(0, len(samples) - length + 1, shift):
        frame = samples[start : start + length] * window
        coefficients = plain_burg(frame + EPS, 20)
        poles = np.roots(coefficients)
        angles = np.angle(poles)
        turned = np.abs(poles) * np.exp(1j * np.sign(angles) * np.abs(angles) ** alpha)
        polynomial = np.poly(np.where(poles.imag == 0, poles, turned)).real
        residual = lfilter(coefficients, [1], frame)
        output[start : start + length] += lfilter([1], polynomial, residual) * window
    return np.trunc(output / np.abs(output).max() * 32766)


def to_integers(samples):
    values = np.asarray(samples) * 32768
    assert np.array_equal(values, np.rint(values))
    return values


def turned(samples, rate, alpha):
    output = turn_poles([samples], [rate], [alpha])[0]
    assert isinstance(output, np.ndarray)
    return output


@pytest.mark.golden
@pytest.mark.parametrize("recording", ["libri", "syn_a", "syn_b"])
@pytest.mark.parametrize("alpha", ["0.5", "0.7", "0.8", "0.9"])
def test_output_agrees_with_the_challenge_toolkit(shared, recording, alpha):
    samples, rate = soundfile.read(
        shared / "golden" / "sidekit" / "wav" / f"{recording}.wav", dtype="float32"
    )
    with np.load(shared / "golden" / "mcadams" / "mcadams.npz") as golden:
        expected = golden[f"{recording}/alpha{alpha}"].astype(int)
    found = to_integers(turned(samples, rate, float(alpha)))
    assert np.abs(found - expected).max() <= 2  # the required tolerance; 1 was observed


@pytest.mark.parametrize("rate", [8000, 11025, 16000])
@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.3])
def test_output_agrees_with_the_definition(rate, alpha):
    samples = vowel(0.4, rate)
    assert (
        np.abs(to_integers(turned(samples, rate, alpha)) - oracle(samples, rate, alpha)).max() <= 1
    )


def test_output_agrees_with_the_definition_on_digital_silence_and_tones():
    rate = 16000
    tone = (0.3 * np.sin(2 * np.pi * 440 * np.arange(4000) / rate)).astype(np.float32)
    samples = np.concatenate(
        [vowel(0.2), np.zeros(3000, np.float32), np.rint(tone * 32768) / 32768]
    ).astype(np.float32)
    assert np.abs(to_integers(turned(samples, rate, 0.8)) - oracle(samples, rate, 0.8)).max() <= 2


@given(
    seeds=st.lists(st.integers(0, 50), min_size=1, max_size=4),
    frames=st.sampled_from([3, 17, 64]),
    data=st.data(),
)
@settings(max_examples=8)
def test_output_does_not_depend_on_other_recordings_of_the_batch(seeds, frames, data):
    signals = [vowel(data.draw(st.sampled_from([0.02, 0.15, 0.31])), seed=seed) for seed in seeds]
    coefficients = [0.5 + seed / 125 for seed in seeds]
    together = turn_poles(signals, [16000] * len(seeds), coefficients)
    before = module._FRAMES
    try:
        module._FRAMES = frames
        in_pieces = turn_poles(signals, [16000] * len(seeds), coefficients)
    finally:
        module._FRAMES = before
    for signal, coefficient, first, second in zip(
        signals, coefficients, together, in_pieces, strict=True
    ):
        alone = turned(signal, 16000, coefficient)
        assert np.array_equal(alone, first)
        assert np.array_equal(alone, second)


def test_the_tail_after_the_last_complete_frame_is_silent():
    samples = vowel(0.4)[: 320 + 160 + 159]
    found = turned(samples, 16000, 0.8)
    assert len(found) == len(samples)
    assert not found[480:].any()
    assert found[:480].any()
    assert not turned(np.zeros(1000, np.float32), 16000, 0.8).any()


@pytest.mark.parametrize(("n_samples", "rate"), [(319, 16000), (4000, 1000)])
def test_only_recordings_shorter_than_a_frame_are_refused(n_samples, rate):
    first, second = turn_poles([np.ones(n_samples, np.float32), vowel()], [rate, 16000], [0.6, 0.7])
    assert isinstance(first, DataError)
    assert f"{n_samples} samples at {rate} Hz are too few" in str(first)
    assert isinstance(second, np.ndarray)
