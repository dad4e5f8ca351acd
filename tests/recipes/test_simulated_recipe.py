"""The embedded corpus through the whole recipe: neither trivial nor hopeless, and NAP helps."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from spkver.recipes.rsr2015 import svm_gmm
from spkver.rsr2015 import results as report
from spkver.rsr2015.lists import RecipeConfig

pytestmark = pytest.mark.whole

pytest.importorskip("espeakng_loader")


@pytest.mark.slow
@pytest.mark.parametrize("gender", ["m", "f"])
def test_equal_error_rate_lies_between_1_and_10_per_cent(tmp_path, gender):
    arguments = ["--corpus", "simulated", "--output", str(tmp_path), "--set", f"gender={gender}"]
    result = CliRunner().invoke(svm_gmm.main, arguments)
    assert result.exit_code == 0, result.output
    assert "SIMULATED" in result.output
    systems = json.loads((tmp_path / "results.json").read_text())["systems"]
    rates = {name: system["eer"]["rocch"] for name, system in systems.items()}
    assert 0.01 < rates["svm-gmm"] < 0.10
    assert rates["svm-gmm-nap"] < rates["svm-gmm"]


def test_the_corpus_is_made_once_as_a_stage_of_the_run(tmp_path):
    settings = (
        "simulation.speakers=3",
        "simulation.sentences=1",
        "simulation.sessions=4",
        "background.size=4",
        "nap.rank=2",
    )
    options = ["--corpus", "simulated", "--output", str(tmp_path), "--until", "features"]
    for setting in settings:
        options += ["--set", setting]
    for _ in range(2):
        result = CliRunner().invoke(svm_gmm.main, options)
        assert result.exit_code == 0, result.output
        assert "simulation  done       1 of   1" in result.output
    log = (tmp_path / "run.log").read_text()
    assert log.count("simulation: started") == 1
    assert "simulation: up to date" in log


def test_plots_of_synthetic_speech_are_labelled(tmp_path):
    """The record that `spkver simulate` leaves at the root of its trees decides, however the tree is named."""
    recording = tmp_path / "sph" / "male" / "m001" / "m001_01_001.wav"
    lists = SimpleNamespace(recordings={"m001/m001_01_001": recording})
    assert "Synthetic" not in report._title(RecipeConfig(), lists)
    (tmp_path / "simulation.json").touch()
    assert "Synthetic" in report._title(RecipeConfig(), lists)
