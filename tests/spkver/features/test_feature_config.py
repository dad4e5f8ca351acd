"""The configuration of the features: ranges, derived numbers, and what each key may change."""

import pickle
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkver.features.config import PRESETS, FeatureConfig, values_for_rates


@pytest.mark.parametrize(
    "options",
    [
        {"vad": "loud"},
        {"deltas": 3},
        {"low_frequency": 0.0},
        {"low_frequency": 7000.0},
        {"high_frequency": 8000.1},
        {"channel": [0, 1]},
        {"channel": 0.0},
        {"preset": "phone"},
        {"window": 1e-5},
        {"shift": 1e-5},
        {"n_cepstra": 40},
        {"n_filters": 1_000_000_000},
        {"min_speech_frames": 0},
        {"dither": -1.0},
        {"pre_emphasis": 1.5},
        {"vad_percentile": 101.0},
        {"vad": "labels"},
    ],
)
def test_values_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="^features.*" + next(iter(options))):
        FeatureConfig(**options)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"sdc": (1, 3, 7)}, "write sdc='7-1-3-7'"),
        ({"sdc": True}, "write sdc='7-1-3-7'"),
        ({"mask": [0, 1, 2]}, "write mask='0-12,19'"),
        ({"vad": None}, "write vad='none'"),
        ({"normalisation": None}, "write normalisation='none'"),
        ({"function": len}, "write function='FILE.py:NAME'"),
        ({"engine": 3}, "must be a text"),
        ({"preset": None}, "must be a text"),
        ({"labels_dir": 3}, "must be a text"),
        ({"rasta": "no"}, "must be true or false"),
        ({"n_filters": "24"}, "must be a whole number"),
        ({"n_cepstra": 13.5}, "must be a whole number"),
        ({"window": (0.025, 0.01)}, "must be a number"),
    ],
)
def test_values_of_another_kind_are_refused(options, remedy):
    with pytest.raises(ConfigError, match=f"^features.{next(iter(options))} .*{remedy}"):
        FeatureConfig(**options)


def test_numbers_of_numpy_and_paths_become_plain_values():
    given = FeatureConfig(n_cepstra=np.int64(13), vad_snr=np.float64(30), labels_dir=Path("labels"))
    assert given == FeatureConfig(n_cepstra=13, vad_snr=30, labels_dir="labels")
    assert type(given.n_cepstra) is int


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_are_valid(preset):
    config = FeatureConfig(**{**PRESETS[preset], "preset": preset})
    assert config.dimension == (2 * 24 if preset == "wideband" else 3 * (1 + config.n_cepstra))
    assert config.window_samples == round(0.025 * config.rate)


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("more", [{}, {"vad": "percentile"}, {"n_cepstra": 7, "rate": 16000}])
def test_presets_in_python_equal_those_of_the_command_line(preset, more):
    settings = [f"preset={preset}", *(f"{name}={value}" for name, value in more.items())]
    config = FeatureConfig(preset=preset, **more)
    assert config == load_config(FeatureConfig, settings=settings)
    assert config.preset == preset
    assert config == FeatureConfig(preset, **more)
    for name, value in more.items():
        assert getattr(config, name) == value  # a given value takes precedence
    # and does not change
    assert (
        replace(config)
        == pickle.loads(pickle.dumps(config))
        == FeatureConfig(**asdict(config))
        == config
    )


def test_configurations_equal_to_a_preset_have_its_name():
    for name, values in PRESETS.items():
        assert FeatureConfig(**values).preset == name
        assert FeatureConfig(**values) == FeatureConfig(preset=name)
    assert FeatureConfig(**{**PRESETS["telephone"], "n_filters": 23}).preset == "sidekit"
    assert replace(FeatureConfig(), vad="energy").preset == "sidekit"


@pytest.mark.parametrize("preset", [name for name, values in PRESETS.items() if values])
def test_replacing_only_the_name_of_a_preset_is_refused(preset):
    others = [FeatureConfig()]
    if not PRESETS[preset].items() & PRESETS["telephone"].items():  # such as 12 cepstra
        others.append(FeatureConfig(preset="telephone"))
    for config in others:
        with pytest.raises(ConfigError, match="none of its values is set"):
            replace(config, preset=preset)
    assert replace(FeatureConfig(preset=preset), deltas=0).preset == preset


def test_unknown_presets_are_refused():
    with pytest.raises(ConfigError, match="preset is 'phone': expected one of"):
        FeatureConfig(preset="phone")


def test_cepstra_of_given_files_need_no_filters():
    assert FeatureConfig(files="folder", n_cepstra=56).dimension == 3 * 57
    with pytest.raises(ConfigError, match="must be below"):
        FeatureConfig(n_cepstra=56)


def test_defaults_equal_the_tutorial():
    config = FeatureConfig()
    assert (config.dimension, config.window_samples, config.shift_samples, config.min_samples) == (
        60,
        400,
        160,
        1040,
    )


@pytest.mark.parametrize(
    ("values", "rates", "expected"),
    [
        ({}, [], {}),
        ({"preset": "telephone"}, [8000], {}),
        ({"preset": "telephone"}, [8000, 16000], {"resample": True}),
        ({}, [11025, 48000], {"rate": 11025, "resample": True}),
        ({}, [4000], {"rate": 6000, "resample": True}),  # no lower: filters would be empty
        ({"rate": 8000}, [8000], {}),
        ({"resample": True}, [8000], {}),
        ({"rate": "high"}, [8000], {}),  # refused when it is read
    ],
)
def test_values_are_chosen_by_rate(values, rates, expected):
    assert values_for_rates(values, rates) == expected


@pytest.mark.parametrize(
    ("preset", "share"), [("sidekit", 6955.4976 / 16000), ("wideband", 0.475), ("librosa", 0.5)]
)
def test_filters_follow_the_rate(preset, share):
    config = load_config(FeatureConfig, settings=[f"preset={preset}", "rate=8000"])
    assert config.high_frequency == pytest.approx(8000 * share, abs=1e-9)
    # if they fit, or are set, they stay unchanged
    assert (
        load_config(FeatureConfig, settings=["rate=44100"]).high_frequency
        == FeatureConfig().high_frequency
    )
    with pytest.raises(ConfigError, match="at most half of"):
        load_config(FeatureConfig, settings=["rate=8000", "high_frequency=6000"])


def test_the_error_for_another_rate_names_working_settings():
    with pytest.raises(ConfigError, match=r"^features.low_frequency .* features.rate") as caught:
        FeatureConfig(rate=8000)
    assert "FeatureConfig(preset='telephone')" in str(caught.value)
    assert FeatureConfig(preset="telephone").rate == 8000
    assert load_config(FeatureConfig, settings=["preset=telephone"]).rate == 8000
