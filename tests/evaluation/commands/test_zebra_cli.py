"""The commands `metrics` under conventions and `zebra`: lines, files and JSON."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused, run

import evaluation as ev
from evaluation import formats
from evaluation.metrics import meaning_of
from evaluation.metrics.disclosure import individual_ceiling
from evaluation.trials import Key, Scores
from spkbase.errors import DataError
from spkbase.files import to_json

pytestmark = pytest.mark.whole

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"
GOLDEN = json.loads((DATA / "golden.json").read_text())


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """Scores and keys of two sets as text, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("vpc_like", "all_ties"):
        with np.load(DATA / "scores.npz") as file:
            target, nontarget = file[f"{name}/target"], file[f"{name}/nontarget"]
        ids = [f"s{number:05d}" for number in range(len(target) + len(nontarget))]
        models = ["m"] * len(ids)
        is_target = np.arange(len(ids)) < len(target)
        formats.write_scores(
            f"{name}.txt", Scores.from_ids(models, ids, np.concatenate([target, nontarget]))
        )
        formats.write_key(f"{name}.key", Key.from_ids(models, ids, is_target))
    return tmp_path


def profile(name, *arguments):
    return passes("zebra", "-s", f"{name}.txt", "-k", f"{name}.key", *arguments)


@pytest.mark.parametrize("name", ["vpc_like", "all_ties"])
def test_output_equals_the_reference(lists, name):
    population, individual = GOLDEN[name]["zebra"]["print"]
    category = GOLDEN[name]["zebra"]["tag"]
    expected = (
        f"\nmy label\nPopulation: {population} bit\nIndividual: {individual} ({category})\n\n"
    )
    expected += f"Category {category}: {meaning_of(category)}\n"
    expected += "Individual: at the ceiling that the number of trials imposes\n" * (
        name == "all_ties"
    )
    assert profile(name, "-l", "my label", "--convention", "zebra-2020").stdout == expected
    assert list(lists.glob("ZEBRA*")) == []


def test_the_ceiling_is_printed(tmp_path):
    """A perfect attacker on few trials gets a harmless category: that the trials allow no worse one stands beside."""
    lines = [
        f"m s{number} {score}\n" for number, score in enumerate([9.5, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    ]
    (tmp_path / "s").write_text("".join(lines))
    (tmp_path / "k").write_text(
        "".join(f"m s{number} {'non' * (number > 1)}target\n" for number in range(7))
    )
    result = run("zebra", "-s", tmp_path / "s", "-k", tmp_path / "k", "--json", tmp_path / "z.json")
    assert "Individual: 0.875 (A)" in result.stdout
    assert result.stdout.endswith(
        "\nIndividual: at the ceiling that the number of trials imposes\n"
    )
    assert "ceiling" in json.loads((tmp_path / "z.json").read_text())["notes"]["zebra.individual"]


def test_useless_scores_are_printed_as_no_evidence_under_the_default_label(lists):
    assert profile("all_ties").stdout == (
        "\nZEBRA profile\nPopulation: 0 bit\nIndividual: 0 (0)\n\nCategory 0: no evidence: even odds stay even\n"
    )


def test_exported_files_are_named_after_the_label(lists):
    (lists / "out").mkdir()
    profile("vpc_like", "-l", "out/my label", "-e", "tex", "-e", "png", "-e", "svg", "-e", "pdf")
    names = sorted(path.name for path in (lists / "out").iterdir())
    assert names == [f"ZEBRA-my label.{extension}" for extension in ("pdf", "png", "svg", "tex")]
    assert all((lists / "out" / name).stat().st_size > 1000 for name in names)
    assert "my label" in (lists / "out" / "ZEBRA-my label.tex").read_text()


def test_json_goes_to_standard_output_or_a_file(lists):
    alone = profile("vpc_like", "--json", "-")
    report = json.loads(alone.stdout)
    assert list(report) == ["label", "n_target", "n_nontarget", "convention", "zebra"]
    assert report["zebra"]["population"] == pytest.approx(
        GOLDEN["vpc_like"]["zebra"]["population"], abs=2e-9
    )
    assert report["zebra"]["tag"] == "C"
    beside = profile("vpc_like", "--json", "zebra.json")
    assert "Population: 0.278 bit" in beside.stdout
    assert json.loads((lists / "zebra.json").read_text()) == report


def test_user_defined_tags_are_applied(lists):
    (lists / "tags.yaml").write_text("fine: 1\nbad: .inf\n")
    assert "Individual: 2.566 (bad)" in profile("vpc_like", "--scale", "tags.yaml").stdout
    result = run(
        "metrics", "-s", "vpc_like.txt", "-k", "vpc_like.key", "--scale", "tags.yaml", "--json", "-"
    )
    assert json.loads(result.stdout)["zebra"]["tag"] == "bad"


@pytest.mark.parametrize("convention", ["default", "zebra-2020", "vpc2022", "vpc2024", "bosaris"])
def test_every_output_names_the_convention(lists, convention):
    arguments = ["metrics", "-s", "vpc_like.txt", "-k", "vpc_like.key", "--convention", convention]
    table = passes(*arguments, "--json", "m.json")
    report = json.loads((lists / "m.json").read_text())
    assert report["convention"] == convention
    assert ["convention", convention] in [line.split() for line in table.stdout.splitlines()]
    assert report["min_cllr"] == pytest.approx(
        GOLDEN["vpc_like"]["pybosaris"]["min_cllr"], abs=2e-9
    )
    assert (
        json.loads(profile("vpc_like", "--convention", convention, "--json", "-").stdout)[
            "convention"
        ]
        == convention
    )


def test_notes_follow_the_table(lists):
    result = run("metrics", "-s", "all_ties.txt", "-k", "all_ties.key", "--all")
    assert (
        "\nd_sys: undefined: the histogram needs finite scores that are neither all equal nor too far apart\n"
        in result.stdout
    )
    assert ["D_sys", "linkability", "undefined"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert (
        "tpr_at_fpr.0.001: not resolved: 700 nontarget trials, but at least 1,000 needed"
        in result.stdout
    )


def test_the_plot_is_shown_if_there_is_a_display(lists, monkeypatch):
    """As ZEBRA's README calls it; the tests have no display, so the backend Agg plays one that has."""
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    alone = profile("vpc_like", "-p")
    assert (alone.exit_code, alone.stderr) == (
        0,
        "no display to show the profile: -e png writes it\n",
    )
    both = profile("vpc_like", "-p", "-e", "png")
    assert (both.exit_code, both.stderr) == (0, "no display to show the profile: see the files\n")
    assert (lists / "ZEBRA-ZEBRA profile.png").stat().st_size > 1000
    shown = []
    monkeypatch.setattr(pyplot.figure().canvas.__class__, "required_interactive_framework", "some")
    monkeypatch.setattr(
        pyplot,
        "show",
        lambda: shown.append(pyplot.gcf().axes[0].get_legend().get_texts()[1].get_text()),
    )
    window = profile("vpc_like", "-p", "-l", "mine")
    assert (window.exit_code, window.stderr) == (0, "")
    assert [text.partition(" (")[0] for text in shown] == ["mine"]
    pyplot.close("all")


TWO = ("-s", "vpc_like.txt", "-k", "vpc_like.key", "-s", "all_ties.txt", "-k", "all_ties.key")


def test_profiles_of_several_systems_share_one_table(lists):
    """Each row is the profile that the command gives for the system alone."""
    result = passes(
        "zebra",
        *TWO,
        "-l",
        "one",
        "-l",
        "two",
        "-e",
        "png",
        "--json",
        "z.json",
        "--convention",
        "zebra-2020",
    )
    rows = {
        line.split()[0]: line.split()[-3:]
        for line in result.stdout.splitlines()
        if line[:3] in ("one", "two")
    }
    golden = {name: GOLDEN[name]["zebra"] for name in ("vpc_like", "all_ties")}
    assert rows["one"] == [*golden["vpc_like"]["print"], golden["vpc_like"]["tag"]]
    report = json.loads((lists / "z.json").read_text())["systems"]
    for label, name in (("one", "vpc_like"), ("two", "all_ties")):
        single = json.loads(profile(name, "--json", "-", "--convention", "zebra-2020").stdout)
        assert report[label] == {part: value for part, value in single.items() if part != "label"}
    assert sorted(path.name for path in lists.glob("*.png")) == ["ZEBRA-one.png", "ZEBRA-two.png"]


def test_evidence_beyond_the_ceiling_is_printed_as_a_bound(tmp_path):
    """Six trials, 100 deviations apart: a Gaussian makes 10^2000 of them, isotonic regression at most 10^0.6."""
    pairs = [f"m{place % 3} s{place // 3}" for place in range(9)]
    values = {"m0 s0": 100, "m1 s1": 101, "m2 s2": 102}
    scores = "\n".join(f"{pair} {values.get(pair, number)}" for number, pair in enumerate(pairs))
    key = "\n".join(f"{pair} {'target' if pair in values else 'nontarget'}" for pair in pairs)
    (tmp_path / "s").write_text(scores + "\n")
    (tmp_path / "k").write_text(key + "\n")
    lines = run(
        "zebra", "-s", tmp_path / "s", "-k", tmp_path / "k", "--worst-case"
    ).stdout.splitlines()
    shown = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in lines if "  " in line}
    ceiling = f"{individual_ceiling(3, 6):.3f}"
    assert (shown["isotonic regression"], shown["Gaussians"]) == (ceiling, f"over {ceiling}")


def test_the_worst_case_needs_a_single_system(lists):
    assert "--worst-case takes one system" in refused("zebra", *TWO, "--worst-case")


def test_every_table_has_a_column_of_tags(lists):
    """A heading holds no text of one system; differences have no tag."""
    shared_key = ("-s", "vpc_like.txt", "-s", "other.txt", "-k", "vpc_like.key")
    (lists / "other.txt").write_text((lists / "vpc_like.txt").read_text())
    columns = ("--columns", "zebra.individual,zebra.tag")
    options = (
        "--bootstrap",
        "20",
        "--bootstrap-by",
        "trial",
        "--latex",
        "t.tex",
        "--markdown",
        "t.md",
    )
    result = passes("metrics", *shared_key, *columns, *options)
    for text in (result.stdout, (lists / "t.md").read_text(), (lists / "t.tex").read_text()):
        rows = [
            line.strip("| ").replace("|", " ").replace("\\\\", "").split()
            for line in text.splitlines()
        ]
        rows = [row for row in rows if row and row[0] in ("system", "vpc_like", "vpc\\_like")]
        assert [row[-1] for row in rows[:2]] == ["tag", "C"]
        assert "at most" not in text


def test_one_system_has_the_same_columns_and_intervals_as_several(lists):
    """Speakers bring 1000 resamples by default; options of tables serve the screen."""
    rng = np.random.default_rng(0)
    pairs = [
        (f"m{model}", f"m{tested}/{take}")
        for model in range(6)
        for tested in range(6)
        for take in range(3)
    ]
    is_target = [model == segment.partition("/")[0] for model, segment in pairs]
    models, segments = zip(*pairs, strict=True)
    formats.write_scores(
        "own.txt", Scores.from_ids(models, segments, rng.normal(np.multiply(is_target, 2.0)))
    )
    formats.write_key("own.key", Key.from_ids(models, segments, is_target))
    result = passes(
        "metrics",
        "-s",
        "own.txt",
        "-k",
        "own.key",
        "--speakers-by",
        "/",
        "--columns",
        "eer,min_cllr",
    )
    heading, row = result.stdout.splitlines()[0], result.stdout.splitlines()[2]
    assert [
        title
        for title in ("EER (ROCCH) [%]", "minCllr (bit)", "Cllr (bit)")
        if f" {title} " in f"{heading} "
    ] == [
        "EER (ROCCH) [%]",
        "minCllr (bit)",
    ]
    assert row.count("[") == 2
    assert "by 1000 resamples of 6 speakers" in result.stdout
    none = run(
        "metrics", "-s", "own.txt", "-k", "own.key", "--speakers-by", "/", "--bootstrap", "0"
    )
    assert "resamples" not in none.stdout


def read_list(name):
    return formats.read_scores(f"{name}.txt"), formats.read_key(f"{name}.key")


def written(result):
    return json.loads(to_json(result.to_dict()))


def test_zebra_profiles_give_the_json_of_the_command(lists):
    scores, key = read_list("vpc_like")
    options = ("--convention", "zebra-2020", "--worst-case", "--json", "-")
    found = ev.zebra_profiles(scores, key, convention="zebra-2020", worst_case=True)
    assert written(found) == json.loads(profile("vpc_like", *options).stdout)
    other, its_key = read_list("all_ties")
    found = ev.zebra_profiles(
        {"vpc_like": scores, "all_ties": other}, {"vpc_like": key, "all_ties": its_key}
    )
    both = ("-s", "all_ties.txt", "-k", "all_ties.key", "--json", "-")
    assert written(found) == json.loads(profile("vpc_like", *both).stdout)


def test_zebra_profiles_refuse_misuse(lists):
    scores, key = read_list("vpc_like")
    with pytest.raises(DataError, match="expected one system for the worst case, got 2"):
        ev.zebra_profiles({"a": scores, "b": scores}, key, worst_case=True)
    with pytest.raises(DataError, match="expected Scores, or Scores by the names of systems"):
        ev.zebra_profiles({}, key)
    with pytest.raises(DataError, match="expected one of the conventions"):
        ev.zebra_profiles(scores, key, convention="mine")
