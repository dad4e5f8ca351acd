"""The commands `metrics` under conventions and `zebra`: lines, files and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from evaluation import formats
from evaluation.metrics import meaning_of
from evaluation.trials.lists import Key, Scores
from spkver.evaluation_cli import main

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"
GOLDEN = json.loads((DATA / "golden.json").read_text())


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scores and keys of two sets as text, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("vpc_like", "all_ties"):
        with np.load(DATA / "scores.npz") as file:
            target, nontarget = file[f"{name}/target"], file[f"{name}/nontarget"]
        ids = [f"s{number:05d}" for number in range(len(target) + len(nontarget))]
        models = ["m"] * len(ids)
        is_target = np.arange(len(ids)) < len(target)
        formats.write_scores(f"{name}.txt", Scores.from_ids(models, ids, np.concatenate([target, nontarget])))
        formats.write_key(f"{name}.key", Key.from_ids(models, ids, is_target))
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def profile(name: str, *arguments: str) -> Result:
    return run("zebra", "-s", f"{name}.txt", "-k", f"{name}.key", *arguments)


@pytest.mark.parametrize("name", ["vpc_like", "all_ties"])
def test_lines_of_the_reference(lists: Path, name: str) -> None:
    population, individual = GOLDEN[name]["zebra"]["print"]
    category = GOLDEN[name]["zebra"]["tag"]
    expected = f"\nmy label\nPopulation: {population} bit\nIndividual: {individual} ({category})\n\n"
    expected += f"Category {category}: {meaning_of(category)}\n"
    expected += "Individual: at the ceiling that the number of trials imposes\n" * (name == "all_ties")
    result = profile(name, "-l", "my label", "--convention", "zebra-2020")
    assert (result.exit_code, result.stdout) == (0, expected)
    assert list(lists.glob("ZEBRA*")) == []


def test_the_ceiling_is_said(tmp_path: Path) -> None:
    """A perfect attacker on few trials gets a harmless category: that the trials allow no worse one stands beside."""
    lines = [f"m s{number} {score}\n" for number, score in enumerate([9.5, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0])]
    (tmp_path / "s").write_text("".join(lines))
    (tmp_path / "k").write_text("".join(f"m s{number} {'non' * (number > 1)}target\n" for number in range(7)))
    result = run("zebra", "-s", tmp_path / "s", "-k", tmp_path / "k", "--json", tmp_path / "z.json")
    assert "Individual: 0.875 (A)" in result.stdout
    assert result.stdout.endswith("\nIndividual: at the ceiling that the number of trials imposes\n")
    assert "ceiling" in json.loads((tmp_path / "z.json").read_text())["notes"]["zebra.individual"]


def test_the_default_label_and_the_truth_of_useless_scores(lists: Path) -> None:
    assert profile("all_ties").stdout == (
        "\nZEBRA profile\nPopulation: 0 bit\nIndividual: 0 (0)\n\nCategory 0: no evidence: even odds stay even\n"
    )


def test_exported_files_are_named_by_the_label(lists: Path) -> None:
    (lists / "out").mkdir()
    result = profile("vpc_like", "-l", "out/my label", "-e", "tex", "-e", "png", "-e", "svg", "-e", "pdf")
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (lists / "out").iterdir())
    assert names == [f"ZEBRA-my label.{extension}" for extension in ("pdf", "png", "svg", "tex")]
    assert all((lists / "out" / name).stat().st_size > 1000 for name in names)
    assert "my label" in (lists / "out" / "ZEBRA-my label.tex").read_text()


def test_json_alone_on_standard_output_or_in_a_file(lists: Path) -> None:
    alone = profile("vpc_like", "--json", "-")
    report = json.loads(alone.stdout)
    assert list(report) == ["label", "n_target", "n_nontarget", "convention", "zebra"]
    assert report["zebra"]["population"] == pytest.approx(GOLDEN["vpc_like"]["zebra"]["population"], abs=2e-9)
    assert report["zebra"]["tag"] == "C"
    beside = profile("vpc_like", "--json", "zebra.json")
    assert "Population: 0.278 bit" in beside.stdout
    assert json.loads((lists / "zebra.json").read_text()) == report


def test_tags_of_a_user(lists: Path) -> None:
    (lists / "tags.yaml").write_text("fine: 1\nbad: .inf\n")
    assert "Individual: 2.566 (bad)" in profile("vpc_like", "--scale", "tags.yaml").stdout
    result = run("metrics", "-s", "vpc_like.txt", "-k", "vpc_like.key", "--scale", "tags.yaml", "--json", "-")
    assert json.loads(result.stdout)["zebra"]["tag"] == "bad"


@pytest.mark.parametrize("convention", ["default", "zebra-2020", "vpc2022", "vpc2024", "bosaris"])
def test_the_convention_stands_in_every_output(lists: Path, convention: str) -> None:
    arguments = ["metrics", "-s", "vpc_like.txt", "-k", "vpc_like.key", "--convention", convention]
    table = run(*arguments, "--json", "m.json")
    assert table.exit_code == 0, table.output
    report = json.loads((lists / "m.json").read_text())
    assert report["convention"] == convention
    assert ["convention", convention] in [line.split() for line in table.stdout.splitlines()]
    assert report["min_cllr"] == pytest.approx(GOLDEN["vpc_like"]["pybosaris"]["min_cllr"], abs=2e-9)
    assert json.loads(profile("vpc_like", "--convention", convention, "--json", "-").stdout)["convention"] == convention


def test_notes_stand_below_the_table(lists: Path) -> None:
    result = run("metrics", "-s", "all_ties.txt", "-k", "all_ties.key")
    assert (
        "\nd_sys: undefined: the histogram needs finite scores that are neither all equal nor too far apart\n"
        in result.stdout
    )
    assert ["D_sys", "linkability", "undefined"] in [line.split() for line in result.stdout.splitlines()]
    assert "tpr_at_fpr.0.001: not resolved: 700 nontarget trials, but at least 1,000 needed" in result.stdout
