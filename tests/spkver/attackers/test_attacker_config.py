"""Configurations of attackers: presets, what wins over what, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spkbase.configuration import load_config, to_dict, write_yaml
from spkbase.errors import ConfigError
from spkver.attackers.config import KINDS, PRESETS, AttackerConfig, attacker_config


def test_attackers_are_declared_without_what_trains_them():
    """A run that is up to date declares all, and is to cost next to nothing."""
    code = "import sys; import spkver.attackers.catalogue; print({'scipy', 'sklearn', 'librosa'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_their_names(name):
    config = attacker_config(name)
    assert config.name == name
    assert config.kind in KINDS
    assert PRESETS.keys() >= set(KINDS)
    assert config.features.preset == "wideband"


def test_settings_win_over_the_file_and_the_file_over_values_and_preset(tmp_path):
    file = tmp_path / "attacker.yaml"
    file.write_text("ubm: {components: 64}\nnorm: {kind: z, top: 9}\n")
    values = {"ubm": {"components": 32, "variance_floor": 0.5}, "norm": {"kind": "t"}, "name": "mine"}
    config = attacker_config("gmm-svm", file=file, settings=["norm.top=7", "map.relevance=11"], values=values)
    assert (config.name, config.kind) == ("mine", "gmm-svm")
    assert (config.ubm.components, config.ubm.variance_floor) == (64, 0.5)
    assert (config.norm.kind, config.norm.top, config.map.relevance) == ("z", 7, 11.0)


@pytest.mark.parametrize("name", PRESETS)
def test_a_written_configuration_is_read_back(name, tmp_path):
    config = attacker_config(name, settings=["training.session_seconds=2.5"])
    write_yaml(tmp_path / "c.yaml", config)
    assert load_config(AttackerConfig, file=tmp_path / "c.yaml") == config
    assert load_config(AttackerConfig, defaults=to_dict(config)) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["kind=svm"], "kind is 'svm': expected one of gmm-ubm, gmm-svm, supervector-cosine"),
        (["scoring=fast"], "scoring is 'fast': expected one of exact, bound, linear"),
        (["enrolment=mean"], "enrolment is 'mean': expected one of pooled, sessions"),
        (["enrolment=sessions"], "enrolment is 'sessions': the attacker gmm-ubm adapts"),
        (["norm.kind=zt"], "norm.kind is 'zt': expected one of none, z, t, s"),
        (["norm.models=all"], "norm.models is 'all': expected one of speaker, session"),
        (["norm.segments=all"], "norm.segments is 'all': expected one of speaker, session"),
        (["norm.top=1"], "norm.top is 1: expected a whole number of at least 2"),
        (["norm.speakers=1"], "norm.speakers is 1: expected a whole number of at least 2"),
        (["projection.lda=-1"], "projection.lda is -1: expected a whole number of at least 0"),
        (["projection.pca=0"], "projection.pca is 0: expected a whole number of at least 1"),
        (["projection.lda_speakers=1"], "projection.lda_speakers is 1: expected a whole number of at least 2"),
        (["projection.shrinkage=1.5"], "projection.shrinkage is 1.5: expected a number of 0 to 1"),
        (["norm.apart=1"], "norm.apart is 1.0: expected a number of at least 0 and below 1"),
        (["norm.apart=-0.1"], "norm.apart is -0.1"),
        (["projection.rank=-1"], "projection.rank is -1: expected a whole number of at least 0"),
        (["training.utterances=1"], "training.utterances is 1: expected a whole number of at least 2"),
        (["training.background=0"], "training.background is 0: expected a whole number of at least 2"),
        (["training.session_seconds=0"], "training.session_seconds is 0.0: expected a number above 0"),
        (["ubm.components=100"], "ubm.components is 100: expected a power of two"),
        (["norm.tops=3"], "unknown configuration key 'norm.tops': did you mean norm.top"),
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


@pytest.mark.parametrize("name", KINDS)
def test_unit_length_is_the_rule_of_the_cosine_and_a_choice_elsewhere(name):
    for chosen in (True, False):
        config = attacker_config(name, settings=[f"projection.unit_length={str(chosen).lower()}"])
        assert config.method.scales(config) == (chosen or name == "supervector-cosine")


def test_unknown_presets():
    with pytest.raises(ConfigError, match="unknown attacker 'plda': expected one of gmm-ubm"):
        attacker_config("plda")
