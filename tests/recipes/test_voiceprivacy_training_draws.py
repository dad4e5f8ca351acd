"""The semi-informed EER by number of anonymised versions of the training set that an attacker learnt from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recipe_runs import results_of
from voiceprivacy_runs import condition, evaluated, noting_extractor, rows, run_recipe

from spkbase.runs import Run
from spkver.voiceprivacy import Config, Experiment, table
from spkver.voiceprivacy.scores import Attackers, attackers_at_work
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.table import smaller_counts

SETTINGS = {
    "anonymizer__name": "mcadams",
    "anonymizer__training_draws": 3,
    "anonymizer__trial_draws": 2,
    "attackers": "[gmm-ubm,supervector-cosine]",
    "evaluation__resamples": 0,
}


@pytest.fixture(scope="module")
def output(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three versions of the training set; read only."""
    folder = tmp_path_factory.mktemp("output") / "out"
    evaluated(originals, folder, **SETTINGS)
    return folder


@pytest.mark.parametrize(("total", "expected"), [(1, []), (2, [1]), (3, [1, 2]), (4, [1, 2]), (5, [1, 2, 4])])
def test_numbers_of_versions_double_and_stay_below_all_of_them(total: int, expected: list[int]) -> None:
    assert smaller_counts(total) == expected


def test_the_largest_number_has_the_figure_of_the_report(output: Path) -> None:
    results = results_of(output)
    (found,) = results["training_draws"]
    assert (found["dataset"], found["gender"], found["note"]) == ("tiny_test", "all", None)
    (row,) = rows(results["summary"], gender="all", scenario="semi-informed")
    assert found["attacker"] == row["strongest"]
    assert list(found["eer"]) == ["1", "2", "3"]
    assert found["eer"]["3"] == row["eer"]
    assert found["draws"]["3"] == row["draws"]
    assert all(len(rates) == 2 for rates in found["draws"].values())
    assert not [one for one in results["sanity"] if "fewer versions" in one["text"]]


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_smaller_number_has_the_bits_of_a_run_with_so_many(
    count: int, originals: Path, output: Path, tmp_path: Path
) -> None:
    found = results_of(output)["training_draws"][0]
    attackers = f"[{found['attacker']}]"
    outcome = run_recipe(
        originals, tmp_path / "out", **{**SETTINGS, "anonymizer__training_draws": count, "attackers": attackers}
    )
    assert outcome.status == 0, outcome.err
    results = results_of(tmp_path / "out")
    other = condition(results, "all", "semi-informed", found["attacker"])
    assert found["eer"][str(count)] == other["eer"]["rocch"]
    assert found["draws"][str(count)] == [one["eer"]["rocch"] for one in other["draws"]]
    named = "exp/asv_anon_anon/tiny_test_enrolls_anon-tiny_test_trials_f_anon/{attacker}/scores".format(**found)
    kept = output / "training_draws" / str(count) / named
    assert kept.read_bytes() == (tmp_path / "out" / named).read_bytes()
    if count == 1:  # nothing to compare with
        assert results["training_draws"] == []
        assert not (tmp_path / "out/training_draws").exists()
        assert "learnt from:" not in outcome.out


def test_what_fails_is_a_note_and_the_next_run_tries_it_again(
    originals: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = results_of(output)
    shutil.rmtree(output / "training_draws")

    def fail(*_: object) -> None:
        raise RuntimeError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(table, "fewer_versions", fail)
        results = evaluated(originals, output, **SETTINGS)
    found = results["training_draws"][0]
    assert found["note"] == "RuntimeError: no luck"
    assert list(found["eer"]) == ["3"]
    (told,) = [one for one in results["sanity"] if "fewer versions" in one["text"]]
    assert (told["level"], told["check"]) == ("note", "training draws")
    assert "tiny_test" in told["text"]
    assert "RuntimeError: no luck" in told["text"]
    assert results["conditions"] == before["conditions"]
    assert evaluated(originals, output, **SETTINGS)["training_draws"] == before["training_draws"]


def test_those_learn_again_that_learn_here_from_their_training_set_alone(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def attack(training, seed):\n    return print\n")
    (tmp_path / "emb").mkdir()
    others = ("ivector-undone", "content", f"vectors:{tmp_path}/emb", f"{tmp_path}/own.py:attack", "fusion")
    config = Config(attackers=("gmm-svm", "ivector", "supervector-adapted", *others))
    experiment = Experiment(Run(tmp_path / "out"), tmp_path, "_anon", config)
    attackers = Attackers({"tiny_train": attackers_at_work(experiment.run, experiment.attackers, 0)})
    able = table.able_attackers(experiment, Sets((), {}), attackers, "tiny_train")
    assert set(able) == {"gmm-svm", "ivector", "supervector-adapted"}


def test_an_attacker_by_vectors_hears_nothing_twice(originals: Path, tmp_path: Path) -> None:
    settings = {
        "attackers": "[mine]",
        "attacker_settings__mine__preset": noting_extractor(tmp_path),
        "attacker_settings__mine__chains": '["[cosine]"]',
        "anonymizer__trial_draws": 1,
        "anonymizer__training_draws": 2,
    }
    results = evaluated(originals, tmp_path / "out", **{**SETTINGS, **settings})
    (found,) = results["training_draws"]
    assert (found["attacker"], list(found["eer"])) == ("mine", ["1", "2"])
    heard = [path for root in (originals, tmp_path / "out/data") for path in root.glob("*/wav/*.wav")]
    assert len((tmp_path / "calls").read_text()) == len({path.read_bytes() for path in heard})
    choice = json.loads((tmp_path / "out/training_draws/1/attackers/tiny_train_anon/mine/choice.json").read_text())
    assert choice["versions"] == 1
