"""Front ends against kaldi-native-fbank, librosa and the definition, and in blocks."""

import numpy as np
import pytest

from spkver.extractors.filterbanks import kaldi_filterbanks, mel_spectra, slaney_filters


def noise(n, seed=0):
    samples = np.random.default_rng(seed).standard_normal(n) * np.linspace(0.02, 0.2, n)
    return samples.astype(np.float32)


@pytest.mark.parametrize("shape", ["povey", "hamming"])
@pytest.mark.parametrize(
    ("rate", "n_mels", "n"), [(16000, 80, 16123), (16000, 24, 400), (8000, 40, 9999)]
)
def test_filterbanks_equal_kaldi(shape, rate, n_mels, n):
    knf = pytest.importorskip("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither, options.frame_opts.samp_freq, options.frame_opts.window_type = (
        0,
        rate,
        shape,
    )
    options.mel_opts.num_bins, options.energy_floor = n_mels, 0
    samples = noise(n)
    theirs = knf.OnlineFbank(options)
    theirs.accept_waveform(rate, (samples * 32768).tolist())
    theirs.input_finished()
    expected = np.stack([theirs.get_frame(frame) for frame in range(theirs.num_frames_ready)])
    expected -= expected.mean(axis=0)
    for ours in (
        kaldi_filterbanks(samples, rate=rate, n_mels=n_mels, shape=shape),
        kaldi_filterbanks(samples.astype(float), rate=rate, n_mels=n_mels, shape=shape),
    ):
        np.testing.assert_allclose(ours, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("rate", "n_fft", "n_mels"), [(16000, 400, 40), (8000, 400, 20), (1600, 256, 10)]
)
def test_filters_equal_those_of_slaney(rate, n_fft, n_mels):
    filters = pytest.importorskip("librosa").filters.mel(
        sr=rate, n_fft=n_fft, n_mels=n_mels, dtype=np.float64
    )
    np.testing.assert_allclose(
        slaney_filters(rate=rate, n_fft=n_fft, n_mels=n_mels), filters, rtol=1e-9, atol=1e-15
    )


def test_mel_spectra_equal_their_definition():
    samples = noise(1000).astype(float)
    spectra = mel_spectra(samples)
    padded = np.pad(samples, 200)
    phases = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    window = np.sin(np.pi * np.arange(400) / 400) ** 2
    filters = slaney_filters(rate=16000, n_fft=400, n_mels=40)
    expected = [
        filters @ np.abs(phases @ (window * padded[start : start + 400])) ** 2
        for start in range(0, 1001, 160)
    ]
    np.testing.assert_allclose(spectra, expected, rtol=1e-9)
