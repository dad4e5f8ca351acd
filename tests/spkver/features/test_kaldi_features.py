"""The preset `kaldi` is Kaldi's MFCC; frames go into Kaldi's archives and come out of them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import ConfigError
from spkver.features import FeatureConfig, Frames, compute

DATA = Path(__file__).parents[2] / "data" / "features"
PLAIN = {"preset": "kaldi", "vad": "none", "deltas": 0, "normalisation": "none"}
FIRST = {"energy": {}, "c0": {"c0": True, "n_cepstra": 13, "log_energy": False}}


def maker():
    """The script of the golden numbers."""
    spec = importlib.util.spec_from_file_location("make_kaldi", DATA / "make_kaldi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_against(expected, recordings, dtype):
    for name, (samples, rate) in recordings.items():
        for first, values in FIRST.items():
            config = FeatureConfig(**PLAIN, **values, rate=rate, dtype=dtype)
            theirs = expected[f"{name}_{first}"]
            ours = compute(samples, rate, config)
            assert ours.shape == theirs.shape
            difference = np.abs(ours - theirs)
            # the other toolkit computes in float32 throughout, which shows in frames that are almost silent
            assert np.quantile(difference, 0.99) < 1e-4
            assert difference.max() < 3e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mfcc_equals_kaldi(dtype):
    pytest.importorskip("kaldi_native_fbank")
    module = maker()
    check_against(module.all_mfcc(), module.recordings(), dtype)


def test_mfcc_has_the_golden_numbers_of_kaldi():
    check_against(np.load(DATA / "kaldi_mfcc.npz"), maker().recordings(), "float32")


def test_the_preset_has_the_means_of_three_seconds():
    config = FeatureConfig(preset="kaldi")
    assert (config.dimension, config.normalisation, config.normalisation_window) == (
        39,
        "cms_sliding",
        300,
    )
    assert FeatureConfig(preset="kaldi", rate=8000).high_frequency == 4000
    assert FeatureConfig(engine="librosa", c0=False).engine == "librosa"
    for of_others in ({"c0": True}, {"lifter": 22.0}):
        with pytest.raises(ConfigError, match="do not exist for librosa"):
            FeatureConfig(preset="librosa", **of_others)


def test_c0_and_lifter_are_those_of_the_cosine_transform():
    samples = np.random.default_rng(0).normal(size=4000) / 10
    values = {
        "vad": "none",
        "deltas": 0,
        "normalisation": "none",
        "rasta": False,
        "log_energy": False,
        "dtype": "float64",
    }
    plain = compute(samples, 16000, FeatureConfig(**values, n_cepstra=6))
    from_zero = compute(samples, 16000, FeatureConfig(**values, n_cepstra=7, c0=True))
    np.testing.assert_allclose(from_zero[:, 1:], plain, atol=1e-9)
    liftered = compute(samples, 16000, FeatureConfig(**values, n_cepstra=6, lifter=22.0))
    factors = 1 + 11 * np.sin(np.pi * np.arange(1, 7) / 22)
    np.testing.assert_allclose(liftered, plain * factors, rtol=1e-9)


def test_frames_go_into_archives_of_kaldi_and_back(tmp_path):
    kaldiio = pytest.importorskip("kaldiio")
    draw = np.random.default_rng(0)
    own = {
        name: draw.normal(size=(size, 3)).astype(np.float32) for name, size in (("b", 5), ("a", 2))
    }
    frames = Frames.from_dict(own)
    files = str(tmp_path / "feats.ark"), str(tmp_path / "feats.scp")
    kaldiio.save_ark(files[0], frames.to_dict(), scp=files[1])
    back = Frames.from_dict(kaldiio.load_scp(files[1]))
    assert back.ids.tolist() == ["b", "a"]
    np.testing.assert_array_equal(back.values, frames.values)
