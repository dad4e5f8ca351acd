"""Configurations of attackers: presets, what wins over what, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spkbase.configuration import load_config, to_dict, write_yaml
from spkbase.errors import ConfigError
from spkver.attackers import PRESETS, AttackerConfig, attacker_config


def test_attackers_are_declared_without_what_trains_them():
    """A run that is up to date declares all, and is to cost next to nothing."""
    code = "import sys; import spkver.attackers.registry; print({'scipy', 'sklearn', 'librosa'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_their_names(name):
    config = attacker_config(name)
    assert config.name == name
    assert config.features.preset == "wideband"


def test_settings_win_over_the_file_and_the_file_over_values_and_preset(tmp_path):
    file = tmp_path / "attacker.yaml"
    file.write_text("ubm: {components: 64}\nmap: {relevance: 9}\n")
    values = {"ubm": {"components": 32, "variance_floor": 0.5}, "chains": ["cosine"], "name": "mine"}
    config = attacker_config("gmm-svm", file=file, settings=["map.relevance=11"], values=values)
    assert (config.name, config.chains) == ("mine", ("cosine",))
    assert (config.ubm.components, config.ubm.variance_floor, config.map.relevance) == (64, 0.5, 11.0)


@pytest.mark.parametrize("name", PRESETS)
def test_a_written_configuration_is_read_back(name, tmp_path):
    config = attacker_config(name, settings=["training.session_seconds=2.5"])
    write_yaml(tmp_path / "c.yaml", config)
    assert load_config(AttackerConfig, file=tmp_path / "c.yaml") == config
    assert load_config(AttackerConfig, defaults=to_dict(config)) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["kind=svm"], "unknown configuration key 'kind'"),
        (["scoring=fast"], "scoring is 'fast': expected one of exact, bound, linear"),
        (["chains=[centre,whitten]"], "there is no step 'whitten'"),
        (["chains=[coral]"], "coral adapts to vectors of another domain"),
        (["training.utterances=1"], "training.utterances is 1: expected a whole number of at least 2"),
        (["training.session_seconds=0"], "training.session_seconds is 0.0: expected a number above 0"),
        (["ubm.components=100"], "ubm.components is 100: expected a power of two"),
        (["map.relevanc=3"], "unknown configuration key 'map.relevanc': did you mean map.relevance"),
        (["name=../x"], "name is '../x': expected the name of a folder"),
        (["name=.."], "name is '..'"),
        (["name=''"], "name is ''"),
        (["name=' x'"], "name is ' x'"),
    ],
)
def test_refused_values(settings, message):
    with pytest.raises(ConfigError) as caught:
        attacker_config("gmm-ubm", settings=settings)
    assert message in str(caught.value)


def test_unknown_presets():
    with pytest.raises(ConfigError, match="unknown attacker 'plda': expected one of gmm-ubm"):
        attacker_config("plda")
