"""The configuration of an evaluation is the same on every machine, until the command resolves the default attackers."""

import pytest

from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkver.attackers import DEFAULT
from spkver.attackers.registry import WITHOUT_NETWORK
from spkver.voiceprivacy.settings import Config

CHALLENGE = ["challenge.attacker=campplus"] + [
    f"anonymizer.{name}=1" for name in ("training_draws", "enrolment_draws", "trial_draws")
]


def absence(text):
    return lambda name: text if name in ("campplus", "ge2e") else ""


@pytest.fixture
def no_disk(monkeypatch):
    def look(*arguments):
        raise AssertionError("the disk was read")

    for name in ("is_absent", "network_is_absent"):
        monkeypatch.setattr(f"spkver.attackers.registry.{name}", look)
    monkeypatch.setattr("spkver.extractors.weights.find_weights", look)


@pytest.mark.parametrize(
    "settings", [[], ["seed=3"], ["attacker_settings.gmm-svm.ubm.components=8"], CHALLENGE]
)
def test_a_configuration_reads_no_disk(no_disk, settings):
    config = load_config(Config, settings=settings)
    assert config.attackers == ()
    assert config == load_config(Config, settings=settings)


@pytest.mark.parametrize(("absent", "expected"), [("", DEFAULT), ("no weights", WITHOUT_NETWORK)])
def test_default_attackers_are_those_available_on_the_machine(monkeypatch, absent, expected):
    monkeypatch.setattr("spkver.attackers.registry.is_absent", absence(absent))
    assert Config().with_default_attackers().attackers == expected


def test_named_attackers_are_kept(no_disk):
    config = Config(attackers=("gmm-svm", "mine.py:attack"))
    assert config.with_default_attackers() is config


def test_a_challenge_whose_attacker_cannot_run_here_is_refused(monkeypatch):
    config = load_config(Config, settings=CHALLENGE)
    monkeypatch.setattr("spkver.attackers.registry.is_absent", absence(""))
    assert config.with_default_attackers().challenge.attacker == "campplus"
    monkeypatch.setattr("spkver.attackers.registry.is_absent", absence("no weights"))
    with pytest.raises(
        ConfigError,
        match=r"challenge\.attacker is 'campplus': expected one of the attackers, which are",
    ):
        config.with_default_attackers()
