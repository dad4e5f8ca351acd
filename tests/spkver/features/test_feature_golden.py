"""Every step of the features against SIDEKIT's own numbers for two synthetic recordings."""

import golden_numbers
import numpy as np
import pytest
import soundfile
from golden_numbers import signed_sums

from spkver.features.cepstra import log_mel_spectrum, mel_filterbank, mfcc
from spkver.features.config import FeatureConfig
from spkver.features.extraction import features_of_signals, recording_generator
from spkver.features.frames import delta, post_process, rasta
from spkver.features.vad import enhance, snr_vad

NAMES = ("syn_a", "syn_b")
SETTINGS = FeatureConfig()


@pytest.fixture(scope="module")
def golden():
    return golden_numbers.load("features")


def peer_noise(n_samples):
    """The peer's masking noise: the draws after the dither's, from a generator that starts at seed 0 for each file."""
    generator = np.random.RandomState(0)  # the test needs the generator of the other toolkit
    generator.randn(n_samples)
    return generator.randn(n_samples)


def test_the_filterbank_equals_sidekit(golden):
    filters, edges = mel_filterbank(
        rate=16000, n_fft=512, n_filters=40, low_frequency=133.3333, high_frequency=6955.4976
    )
    np.testing.assert_allclose(edges, golden["trfbank_freqs"], atol=1e-9)
    # the other toolkit's are float32
    np.testing.assert_allclose(signed_sums(filters), golden["trfbank_sums"], atol=2e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-3), (np.float32, 1e-3)])
def test_cepstra_and_energy_equal_sidekit(golden, name, dtype, tolerance):
    samples = golden_numbers.samples(name).astype(dtype) * dtype(8192)
    cepstra, log_energy = mfcc(samples, SETTINGS)
    assert cepstra.dtype == dtype
    np.testing.assert_allclose(cepstra, golden[f"{name}_cep"], atol=tolerance, rtol=0)
    np.testing.assert_allclose(log_energy, golden[f"{name}_energy"], atol=tolerance, rtol=0)
    log_mel, _ = log_mel_spectrum(samples, SETTINGS)
    np.testing.assert_allclose(
        signed_sums(log_mel), golden[f"{name}_fb_sums"], atol=tolerance, rtol=0
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 2e-4), (np.float32, 1e-3)])
def test_enhanced_speech_equals_sidekit(golden, name, dtype, tolerance):
    (enhanced,) = enhance([golden_numbers.samples(name).astype(dtype) / dtype(4)])
    np.testing.assert_allclose(enhanced[::8], golden[f"{name}_enhanced"], atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vad_labels_equal_sidekit(golden, name, dtype):
    samples = golden_numbers.samples(name).astype(dtype) / dtype(4)
    noise = peer_noise(len(samples)).astype(dtype)
    (labels,) = snr_vad([samples], [noise], window=400, shift=160)
    np.testing.assert_array_equal(labels, golden[f"{name}_vad"])


@pytest.mark.parametrize("name", NAMES)
def test_post_processing_equals_sidekit(golden, name):
    raw, speech = golden[f"{name}_raw_none"], golden[f"{name}_vad"]
    filtered = rasta(raw)
    np.testing.assert_allclose(filtered, golden[f"{name}_rasta"], atol=1e-9, rtol=0)
    slope = delta(filtered)
    np.testing.assert_allclose(slope, golden[f"{name}_delta"], atol=1e-9, rtol=0)
    np.testing.assert_allclose(delta(slope), golden[f"{name}_ddelta"], atol=1e-9, rtol=0)
    frames, label = post_process(raw[:, 1:], raw[:, 0], speech, FeatureConfig(keep_all=True))
    np.testing.assert_allclose(
        signed_sums(frames), golden[f"{name}_post_all_sums"], atol=1e-9, rtol=0
    )
    np.testing.assert_array_equal(label, golden[f"{name}_post_all_label"])
    selected, label = post_process(raw[:, 1:], raw[:, 0], speech, FeatureConfig())
    np.testing.assert_allclose(selected[::4], golden[f"{name}_post_vad"], atol=1e-9, rtol=0)
    assert label.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_from_samples_equal_sidekit(golden, dtype):
    """The preset as users run it, own dither and all: the peer's cepstra, and its labels but for borderline frames."""
    config = FeatureConfig(dtype=dtype)
    signals = [
        golden_numbers.samples(name).astype(dtype) / np.dtype(dtype).type(32768) for name in NAMES
    ]
    generators = [recording_generator(name, 0) for name in NAMES]
    for name, one in zip(NAMES, features_of_signals(signals, generators, config), strict=True):
        np.testing.assert_allclose(one.cepstra, golden[f"{name}_cep"], atol=1e-3, rtol=0)
        np.testing.assert_allclose(one.log_energy, golden[f"{name}_energy"], atol=1e-3, rtol=0)
        # a frame at the threshold follows the masking noise, and ours is drawn from another generator
        assert np.count_nonzero(one.speech != golden[f"{name}_vad"]) <= 1


def test_features_of_real_speech_equal_sidekit(shared):
    """The same steps on a recording that may not be part of the project."""
    golden = np.load(shared / "golden" / "sidekit" / "features.npz")
    samples, _ = soundfile.read(shared / "golden" / "sidekit" / "wav" / "libri.wav", dtype="int16")
    cepstra, log_energy = mfcc(samples.astype(np.float64) * 8192, SETTINGS)
    np.testing.assert_allclose(cepstra, golden["libri/cep"], atol=1e-3, rtol=0)
    np.testing.assert_allclose(log_energy, golden["libri/energy"], atol=1e-3, rtol=0)
    signal = samples.astype(np.float64) / 4
    np.testing.assert_allclose(
        enhance([signal])[0], golden["libri/vad_enhanced"], atol=2e-4, rtol=0
    )
    (labels,) = snr_vad([signal], [peer_noise(len(signal))], window=400, shift=160)
    np.testing.assert_array_equal(labels, golden["libri/vad"])
    for form in ("none", "percentile"):
        raw = golden[f"libri/raw_{form}"]
        for keep_all, which in ((True, "all"), (False, "vad")):
            frames, label = post_process(
                raw[:, 1:], raw[:, 0], golden["libri/vad"], FeatureConfig(keep_all=keep_all)
            )
            np.testing.assert_allclose(
                frames, golden[f"libri/post_{form}_{which}"], atol=1e-9, rtol=0
            )
            np.testing.assert_array_equal(label, golden[f"libri/post_{form}_{which}_label"])
