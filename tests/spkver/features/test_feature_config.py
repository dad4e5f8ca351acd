"""The configuration of the features: ranges, derived numbers, and what each key may change."""

from __future__ import annotations

from dataclasses import fields

import pytest

from spkbase.errors import ConfigError
from spkver.features.config import PRESETS, FeatureConfig


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "htk"},
        {"vad": "loud"},
        {"normalisation": "all"},
        {"deltas": 3},
        {"dtype": "float16"},
        {"low_frequency": 0.0},
        {"low_frequency": 7000.0},
        {"high_frequency": 8000.1},
        {"rate": 8000},
        {"window": 0.0},
        {"window": 1e-5},
        {"shift": -0.01},
        {"shift": 1e-5},
        {"n_filters": 0},
        {"n_cepstra": 0},
        {"n_cepstra": 40},
        {"n_filters": 1_000_000_000},
        {"min_speech_frames": 0},
        {"sample_scale": 0.0},
        {"memory_gb": 0.0},
        {"dither": -1.0},
        {"pre_emphasis": 1.5},
        {"vad_percentile": 101.0},
        {"vad": "labels"},
    ],
)
def test_out_of_range(options):
    with pytest.raises(ConfigError, match="^features.*" + next(iter(options))):
        FeatureConfig(**options)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_are_valid(preset):
    config = FeatureConfig(**{**PRESETS[preset], "preset": preset})
    assert config.dimension == (2 * 24 if preset == "wideband" else 3 * (1 + config.n_cepstra))
    assert config.window_samples == round(0.025 * config.rate)


def test_defaults_are_the_tutorials():
    config = FeatureConfig()
    assert (config.dimension, config.window_samples, config.shift_samples, config.min_samples) == (60, 400, 160, 1040)


def test_each_key_belongs_to_one_step():
    """Stored features, frames, or no numbers at all: what a changed key makes again depends on it."""
    config = FeatureConfig()
    names = {field.name for field in fields(config)}
    stored, afterwards = set(config.extraction()), set(config.post_processing())
    assert not stored & afterwards
    assert names - stored - afterwards == {"preset", "memory_gb"}
    assert afterwards == {"log_energy", "rasta", "deltas", "normalisation", "keep_all"}
