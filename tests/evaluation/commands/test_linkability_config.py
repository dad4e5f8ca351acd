"""Configurations of Speaker-Linkability are taken as they are."""

import json
import pickle

import numpy as np
import pytest
import yaml
from command_lines import passes, refused

KEYS = {"model_type": "ECAPA", "data_type": "anon_B3", "seed": 42, "matrix_path": None}


@pytest.fixture
def config(tmp_path):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 8))
    for name, count in (("enroll", 2), ("trial", 5)):
        vectors = {
            f"s{row}": [mean + 2 * rng.normal(size=8) for _ in range(count)]
            for row, mean in enumerate(means)
        }
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(vectors))
    path = tmp_path / "libri_ECAPA_B3.yaml"
    path.write_text(yaml.safe_dump({"enroll_path": "enroll.pkl", "trial_path": "trial.pkl"} | KEYS))
    return path


def test_a_configuration_equals_options_for_files_choice_and_seed(config):
    shown = ["--bootstrap", "0", "--json", "-"]
    found = passes("linkability", "--config", config, "--L", "3", "--allow-pickle", *shown)
    files = ["--enroll", config.parent / "enroll.pkl", "--test", config.parent / "trial.pkl"]
    drawn = ["--utterances", "3", "--choice", "random", "--seed", "42"]
    expected = passes("linkability", *files, *drawn, "--allow-pickle", *shown)
    assert json.loads(found.stdout) == json.loads(expected.stdout)
    first = passes("linkability", *files, "--utterances", "3", "--allow-pickle", *shown)
    assert json.loads(found.stdout) != json.loads(first.stdout)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"L": 3}, "unknown key 'L': expected enroll_path, trial_path, seed"),
        ({"trial_path": None}, "expected a path as trial_path, got None"),
        ({"seed": "x"}, "expected a whole number as seed, got 'x'"),
        ({"trial_path": "other.pkl"}, "other.pkl"),
    ],
)
def test_wrong_configurations_are_refused(config, change, message):
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | change))
    assert message in refused("linkability", "--config", config, "--allow-pickle")
