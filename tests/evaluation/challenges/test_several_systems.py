"""Figures of several systems beside each other: rank files of 2024 and 2026, results.json, tables and charts."""

import json
import re

import pytest
from command_lines import passes, refused

from evaluation.challenges import (
    ASR,
    ASV,
    ASV_ANON,
    MIXED,
    ComparedSystem,
    Section,
    official_name,
    rank_systems,
    read_rank_file,
    write_rank_file,
)
from evaluation.challenges.systems import (
    figure_rows,
    figures_of_results,
    plot_systems,
    read_system,
    system_rows,
)
from evaluation.reports import typed_results
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.files import to_json

pytestmark = pytest.mark.whole

CONDITIONS = {
    ("ASV_eval", "original", "original"): "original",
    ("ASV_eval", "original", "anon"): "ignorant",
    ("ASV_eval", "anon", "anon"): "lazy-informed",
    ("ASV_eval^anon", "anon", "anon"): "semi-informed",
    ("anon",): "anonymised",
    ("original",): "original",
}


def rows_of(path):
    """Every number of a rank file by what it is of, read by blanks alone: an oracle for the reader."""
    numbers = {}
    title, columns = "", []
    for line in path.read_text().splitlines():
        if match := re.match(r"---- (.+) results ----", line):
            title, columns = match[1], []
        elif not columns and line.strip() and not line.startswith("----"):
            columns = line.split()
        elif columns and re.search(r"\d$", line):
            cells = line.split()[-len(columns) :]
            row = dict(zip(columns, cells, strict=True))
            place = (row["dataset"], row["split"], row.get("gender", ""))
            names = (
                (title, row["enrollment"], row["trial"])
                if "trial" in row
                else (row.get("asr", row.get("ser")),)
            )
            for name in columns:
                if re.fullmatch(r"[0-9.]+", row[name]):
                    numbers[(name, *place, CONDITIONS[names])] = float(row[name])
    return numbers


RANK_FILES = {
    "vpc2026_results/track1": (4, "B5", 21.279),
    "vpc2026_results/track2": (3, "BM3", 40.567),
    "vpc2024_results": (7, "B5", 34.3375),
}


@pytest.mark.golden
@pytest.mark.parametrize("folder", RANK_FILES)
def test_every_row_of_the_challenges_rank_files_is_reproduced(shared, folder):
    count, best, eer = RANK_FILES[folder]
    paths = sorted((shared / "formats" / folder).glob("result_for_rank_*"))
    assert len(paths) == count
    report = json.loads(passes("rank", *paths, "--figures", "--json", "-").stdout)
    for path in paths:
        name = official_name(path) or path.name.removeprefix("result_for_rank_")
        shown = {
            (row["measure"], row["dataset"], row["split"], row["speakers"], row["condition"]): 100
            * row["value"]
            for row in report["figures"][name]
        }
        expected = rows_of(path)
        assert len(expected) >= 8
        assert shown == pytest.approx(expected, abs=1e-9)
        semi_test = [
            number
            for place, number in expected.items()
            if place[0] == "EER" and place[4] == "semi-informed" and place[2] == "test"
        ]
        (system,) = [row for row in report["systems"] if row["name"] == name]
        assert 100 * system["eer"]["value"] == pytest.approx(sum(semi_test) / len(semi_test))
    strongest_privacy = max(report["systems"], key=lambda system: system["eer"]["value"])
    assert strongest_privacy["name"] == best
    assert 100 * strongest_privacy["eer"]["value"] == pytest.approx(eer, abs=5e-4)


def language(name, eer):
    columns = "dataset split gender enrollment trial EER"
    return f"---- {ASV_ANON} ----\n{columns}\n{name} test mixed anon anon {eer:.3f}\n\n"


def test_one_of_several_languages_is_selected(tmp_path):
    path = tmp_path / "result_for_rank_x"
    words = [
        {"dataset": name, "split": "test", "asr": "anon", "WER": wer}
        for name, wer in (("en", 5.0), ("de", 7.0))
    ]
    path.write_text(language("en", 3.734) + language("de", 1.75))
    write_rank_file(path, [*read_rank_file(path), Section(ASR, words)])
    assert 100 * read_system(path).eer.value == pytest.approx((3.734 + 1.75) / 2)
    system = read_system(path, datasets=("de",))
    assert 100 * system.eer.value == pytest.approx(1.75)
    assert 100 * system.utilities["wer"].value == pytest.approx(7.0)
    with pytest.raises(DataError, match="or choose other sets"):
        read_system(path, datasets=("fr",))
    results = own_results()
    results["conditions"] += [
        results["conditions"][0] | {"dataset": "en_test", "eer": {"rocch": 0.3}, "intervals": {}}
    ]
    results["utility"]["wer"]["en_test"] = {"anonymised": {"value": 0.5}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    own = read_system(tmp_path, datasets=("en",))
    assert (own.eer.value, own.utilities["wer"].value) == (0.3, 0.5)
    assert read_system(tmp_path, datasets=("en_test",)).eer.value == 0.3


def own_results():
    def row(scenario, attacker, eer):
        ends = {"eer.rocch": {"low": eer - 0.02, "high": eer + 0.02}}
        names = {
            "dataset": "mine_test",
            "gender": "all",
            "scenario": scenario,
            "attacker": attacker,
        }
        return names | {"eer": {"rocch": eer}, "intervals": ends}

    rates = {"original": {"value": 0.02, "low": 0.01, "high": 0.03}, "anonymised": {"value": 0.06}}
    return {
        "anonymiser": {"name": "own <one> & $2$"},
        "conditions": [
            row("semi-informed", "a", 0.12),
            row("semi-informed", "b", 0.08),
            row("lazy-informed", "a", 0.2),
        ],
        "utility": {
            "wer": {"mine_test": rates},
            "f0": {"mine_test": {"anonymised": {"value": 0.9}}},
        },
    }


def test_figures_of_own_results_come_from_the_strongest_attacker():
    figures = figures_of_results(typed_results(own_results()))
    assert [(*one.place, one.value.value, one.n_attackers) for one in figures] == [
        ("EER", "mine", "test", "mixed", "semi-informed", 0.08, 2),
        ("EER", "mine", "test", "mixed", "lazy-informed", 0.2, 1),
        ("WER", "mine", "test", "", "original", 0.02, 0),
        ("WER", "mine", "test", "", "anonymised", 0.06, 0),
    ]
    assert (figures[2].value.low, figures[2].value.high) == (0.01, 0.03)
    rows = figure_rows({"own": figures, "other": figures[:1]})
    assert [row["other"] for row in rows] == ["8.000 [6.000, 10.000]", "-", "-", "-"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp/results.json").write_text(json.dumps(own_results()))
    anon = {
        "dataset": "mine",
        "split": "test",
        "gender": "mixed",
        "enrollment": "anon",
        "trial": "anon",
    }
    words = {"dataset": "mine", "split": "test", "asr": "anon"}
    sections = (Section(ASV, [anon | {"EER": 30.5}]), Section(ASV_ANON, [anon | {"EER": 22.25}]))
    write_rank_file(
        tmp_path / "result_for_rank_x", [*sections, Section(ASR, [words | {"WER": 4.125}])]
    )
    return [tmp_path / "exp", tmp_path / "result_for_rank_x"]


def test_results_and_rank_files_share_one_table_and_one_chart(files, tmp_path):
    papers = {name: tmp_path / f"systems.{name}" for name in ("tex", "md", "png", "json")}
    options = [
        "--latex",
        papers["tex"],
        "--markdown",
        papers["md"],
        "--plot",
        papers["png"],
        "--json",
        papers["json"],
    ]
    outcome = passes("rank", *files, *options, "--figures")
    assert re.search(
        r"own <one> & \$2\$ +8\.00 \[6\.00, 10\.00\] +strongest of 2 \(rocch\) +6\.00\n",
        outcome.stdout,
    )
    assert re.search(r"x +22\.25 +not stated +4\.12\n", outcome.stdout)
    assert re.search(
        r"EER +mine +test +mixed +lazy-informed +20\.000 \[18\.000, 22\.000\] +30\.500",
        outcome.stdout,
    )
    mixed = "the EERs are of different attackers or definitions"
    assert mixed in outcome.stdout
    assert mixed in outcome.stderr
    assert mixed not in passes("rank", files[1], files[1], "-l", "one", "-l", "two").output
    # a list across the sexes counts for both sexes
    assert "the EERs were measured on different sets" not in outcome.stderr
    tex = papers["tex"].read_text()
    assert r"own \textless{}one\textgreater{} \& \$2\$ & 8.00 & strongest of 2 & 6.00 \\" in tex
    assert r" & {\scriptsize [6.00, 10.00]} & {\scriptsize (rocch)} &" in tex
    assert papers["md"].read_text().splitlines()[0].startswith("| system")
    assert papers["png"].read_bytes()[:4] == b"\x89PNG"
    assert json.loads(papers["json"].read_text())["figures"]["x"][0]["value"] == pytest.approx(
        0.305
    )


def test_systems_with_equal_names_are_distinguished_by_folder(files, tmp_path):
    (tmp_path / "track1").mkdir()
    again = tmp_path / "track1/result_for_rank_x"
    again.write_text(files[1].read_text())
    shown = passes("rank", files[1], again, "--dataset", "mine").stdout
    assert f"x ({tmp_path.name})" in shown
    assert "x (track1)" in shown
    assert "two systems are named 'x (track1)'" in refused("rank", again, again)


def test_one_chart_is_drawn_for_each_utility(tmp_path):
    first = ComparedSystem(
        "B2", Interval(0.047, 0.03, 0.06), {"wer": Interval(0.1), "uar": Interval(0.5, 0.4, 0.6)}
    )
    second = ComparedSystem("B4", Interval(0.14), {"wer": Interval(0.06, 0.05, 0.07)})
    written = plot_systems([first, second], tmp_path / "all.tex", targets=(0.1, 0.2, 0.9))
    assert [path.name for path in written] == ["all_wer.tex", "all_uar.tex"]
    assert "B4" in written[0].read_text()
    assert "B4" not in written[1].read_text()
    assert "not stated" not in written[0].read_text()
    other = ComparedSystem("B4", Interval(0.14), {"wer": Interval(0.06)}, attacker="a (rocch)")
    named = plot_systems([first, other], tmp_path / "named.tex", utilities=("wer",))[0].read_text()
    assert "B2, not stated" in named
    assert "B4, a (rocch)" in named
    assert [
        path.name for path in plot_systems([second], tmp_path / "one.svg", utilities=("wer",))
    ] == ["one.svg"]
    with pytest.raises(DataError, match="no system has a utility to plot over"):
        plot_systems([second], tmp_path / "none.png", utilities=("uar", "f0"))
    assert not (tmp_path / "none.png").exists()
    rows = system_rows([first, second])
    assert rows[1] == {
        "system": "B4",
        "EER [%]": "14.00",
        "EER of": "not stated",
        "WER [%]": "6.00 [5.00, 7.00]",
        "UAR [%]": "-",
    }


def test_rank_systems_gives_the_json_of_the_command(files):
    found = rank_systems(
        files, names=["a", "b"], rule="vpc2022", targets=[0.05, 0.2], assignment="highest"
    )
    options = [
        "-l",
        "a",
        "-l",
        "b",
        "--rule",
        "vpc2022",
        "--target",
        "5",
        "--target",
        "20",
        "--assignment",
        "highest",
    ]
    report = json.loads(passes("rank", *files, *options, "--json", "-").stdout)
    assert json.loads(to_json(found.to_dict())) == report
    assert found.warnings == [MIXED]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files": []}, "no system to rank"),
        ({"names": ["a"]}, "expected a label for each of 2 files, got 1"),
        ({"rule": "vpc2020"}, "expected one of the rules vpc2024, vpc2022, got 'vpc2020'"),
        ({"targets": [0.3, 0.2]}, "expected minimum EERs between 0 and 1 that rise"),
        ({"utilities": ["mos"]}, "expected utilities out of wer, cer, uar, f0"),
        ({"assignment": "lowest"}, "expected the assignment 'reached' or 'highest', got 'lowest'"),
        ({"average": "median"}, "expected the average 'mean' or 'least', got 'median'"),
    ],
)
def test_rank_systems_refuses_misuse(files, options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        rank_systems(**{"files": files} | options)
