"""Configurations: types, presets, places of errors, and everything that is wrong at once."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spkbase.configuration import load_config, read_yaml, to_dict, write_yaml
from spkbase.errors import ConfigError
from spkver.features.config import PRESETS, FeatureConfig


@dataclass(frozen=True)
class Inner:
    rate: float = 1.0
    count: int | None = 3
    pair: tuple[int, int] = (1, 2)

    def __post_init__(self):
        if self.rate < 0:
            raise ConfigError(f"inner.rate is {self.rate}: expected at least 0")


@dataclass(frozen=True)
class Outer:
    seed: int = 0
    name: str = "none"
    flag: bool = False
    names: tuple[str, ...] = ("a",)
    folder: str | None = None
    inner: Inner = field(default_factory=Inner)
    features: FeatureConfig = field(default_factory=FeatureConfig)


def problems(**options):
    with pytest.raises(ConfigError) as caught:
        load_config(Outer, **options)
    return str(caught.value).splitlines()


def test_later_sources_of_settings_override_earlier_ones(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("seed: 2\ninner: {rate: 2, count: 2}\n")
    defaults = {"seed": 1, "name": "one", "inner": {"rate": 1, "count": 1, "pair": [7, 8]}}
    found = load_config(
        Outer,
        defaults=defaults,
        file=path,
        settings=["inner.count=3", "flag=true", "inner.count=4"],
    )
    assert found == Outer(seed=2, name="one", flag=True, inner=Inner(2.0, 4, (7, 8)))
    assert defaults["inner"] == {"rate": 1, "count": 1, "pair": [7, 8]}, (
        "what is given is not changed"
    )


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("inner.rate=1e-3", "rate", 1e-3),
        ("inner.rate=2", "rate", 2.0),
        ("inner.count=null", "count", None),
        ("inner.pair=[3, 4]", "pair", (3, 4)),
        ("inner={rate: 3}", "rate", 3.0),
        ("inner=", "rate", 1.0),
    ],
)
def test_values_are_converted_to_their_type(setting, name, value):
    found = getattr(load_config(Outer, settings=[setting]).inner, name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed=1.5", "seed must be a whole number, got 1.5"),
        ("seed=true", "seed must be a whole number, got True"),
        ("name=3", "name must be a text, got 3"),
        ("flag=1", "flag must be true or false, got 1"),
        ("inner.rate=fast", "inner.rate must be a number, got 'fast'"),
        ("inner.rate=.nan", "inner.rate must be a finite number, got nan"),
        ("inner.pair=[1, 2, 3]", "inner.pair must hold 2 values, got [1, 2, 3]"),
        ("inner.pair=[1, a]", "inner.pair must be a whole number, got 'a'"),
        ("inner=3", "inner is a section with keys, got 3"),
        ("inner.rate=-1", "inner.rate is -1.0: expected at least 0"),
        ("seed", "setting 'seed': expected KEY=VALUE"),
        (
            "seed=[1",
            "the value of 'seed=[1' is not YAML: expected ',' or ']', but got '<stream end>'",
        ),
        (
            "features.preset=loud",
            "features.preset is 'loud': expected one of sidekit, telephone, wideband, librosa, kaldi, plp",
        ),
        ("sede=3", "unknown configuration key 'sede': did you mean seed?"),
        ("count=3", "unknown configuration key 'count': did you mean inner.count?"),
        ("vad=snr", "unknown configuration key 'vad': did you mean features.vad?"),
        ("inner.zzz=3", "unknown configuration key 'inner.zzz': inner has rate, count, pair"),
    ],
)
def test_wrong_values_are_refused(setting, message):
    assert problems(settings=[setting]) == [message]


def test_all_errors_are_reported_together_with_their_lines(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "seed: x\ninner:\n  rate: -1\n  # a comment\n  kount: 3\n\nfeatures:\n  vad: loud\nname: n\n"
    )
    assert problems(file=path, settings=["flag=3", "name=[]", "nothing"]) == [
        "setting 'nothing': expected KEY=VALUE",
        f"{path}:1: seed must be a whole number, got 'x'",
        f"{path}:5: unknown configuration key 'inner.kount': did you mean inner.count?",
        f"{path}:8: features.vad is 'loud': expected one of snr, energy, percentile, labels, none, or FILE.py:FUNCTION",
        "name must be a text, got []",
        "flag must be true or false, got 3",
    ]


@pytest.mark.parametrize("preset", list(PRESETS))
def test_keys_override_presets(preset):
    found = load_config(
        Outer, settings=[f"features.preset={preset}", "features.n_cepstra=5"]
    ).features
    assert found == FeatureConfig(**{**PRESETS[preset], "preset": preset, "n_cepstra": 5})


NESTED = "a0: &a0 [x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: not YAML: key 'a' is repeated"),
        ("1: 2\n", ":1: not YAML: key 1 is not a string"),
        ("a: [1\n", ":2: not YAML"),
        ("a: !!python/name:os.system\n", ":1: not YAML"),
        ("- a\n", ": expected keys and values, 'key: value', got ['a']"),
        ("a: &a\n  b: *a\n", ":2: not YAML: alias *a, which is not read here"),
        (NESTED, ":2: not YAML: alias *a0, which is not read here"),
    ],
)
def test_bad_yaml_is_refused(tmp_path, text, message):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**40),
    name=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=10),
    rate=st.floats(0, 1e300),
    count=st.none() | st.integers(-5, 5),
    names=st.lists(st.sampled_from(["TC", "on", "1e-3", "3", "null", "ü"]), max_size=3),
)
def test_written_configurations_are_read_back(tmp_path_factory, seed, name, rate, count, names):
    config = Outer(seed=seed, name=name, names=tuple(names), inner=Inner(rate=rate, count=count))
    path = tmp_path_factory.mktemp("config") / "a.yaml"
    write_yaml(path, config)
    assert load_config(Outer, file=path) == config
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == to_dict(config)


# --- choices and names with values -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choices:
    method: Literal["exact", "fast"] = "exact"
    systems: dict[str, Any] = field(default_factory=dict)


def test_names_with_values_are_merged_and_keep_their_order():
    defaults = {"systems": {"a": [1], "b": [2]}}
    config = load_config(
        Choices, defaults=defaults, settings=["systems.b=[3, 4]", "systems.c=null"]
    )
    assert list(config.systems.items()) == [("a", [1]), ("b", [3, 4]), ("c", None)]
    with pytest.raises(ConfigError, match="expected systems to map names to values, got 5"):
        load_config(Choices, settings=["systems=5"])
