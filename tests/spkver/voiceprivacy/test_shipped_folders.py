"""Folders of all challenges, named as their organisers ship them, are read without settings."""

from pathlib import Path

import pytest

from spkbase.configuration import load_config
from spkbase.errors import DataError
from spkver.voiceprivacy import CHALLENGES, Config
from spkver.voiceprivacy.sets import find_datasets, with_lists_there

CONFIGS = Path(__file__).resolve().parents[3] / "recipes/voiceprivacy/config"
OF_2022 = ["train-clean-360"]
for part in ("dev", "test"):
    OF_2022 += [f"libri_{part}_{name}" for name in ("enrolls", "trials_f", "trials_m")]
    OF_2022 += [f"vctk_{part}_{name}" for name in ("enrolls", "trials_f", "trials_m")]
    OF_2022 += [f"vctk_{part}_trials_f_common", f"vctk_{part}_trials_m_common"]
SHIPPED = {"2020 and 2022": ("vpc2022.yaml", tuple(OF_2022))}
for year, challenge in CHALLENGES.items():
    SHIPPED[year] = (challenge.config, challenge.directories + challenge.optional)


def make_folders(root, names):
    for name in names:
        (root / name).mkdir()
        (root / f"{name}_mine").mkdir()


@pytest.mark.parametrize("year", SHIPPED)
def test_sets_and_training_sets_are_found_by_their_names(tmp_path, year):
    file, names = SHIPPED[year]
    make_folders(tmp_path, names)
    config = with_lists_there(load_config(Config, file=CONFIGS / file), tmp_path)
    found = find_datasets(tmp_path, config)
    assert tuple(dataset.name for dataset in found) == config.datasets
    assert {name for dataset in found for name in dataset.directories} <= set(names)
    training = {dataset.name.partition("_")[0]: dataset.training for dataset in found}
    if year == "2026-track2":
        assert training == {
            "en": "train_english",
            "de": "train_german",
            "es": "train_spanish",
            "fr": "train_french",
        }
    else:
        assert set(training.values()) == {"train-clean-360"}


@pytest.mark.parametrize("year", SHIPPED)
def test_a_missing_set_is_named_with_the_option_that_leaves_it_out(tmp_path, year):
    file, names = SHIPPED[year]
    config = load_config(Config, file=CONFIGS / file)
    left_out = config.datasets[0]
    stem = left_out.removesuffix("_common")
    make_folders(tmp_path, [name for name in names if not name.startswith(stem)])
    kept = ",".join(name for name in config.datasets if not name.startswith(stem))
    with pytest.raises(DataError) as raised:
        find_datasets(tmp_path, config)
    assert f"no set {left_out}" in str(raised.value)
    assert f"--set 'datasets=[{kept}]'" in str(raised.value)
