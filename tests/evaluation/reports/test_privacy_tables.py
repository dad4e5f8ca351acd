"""Tables of the results of a privacy evaluation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evaluation.reports.privacy_results import as_number, find, parse_results
from evaluation.reports.privacy_tables import attacker_rows, format_latex, format_markdown, summary_rows
from evaluation.uncertainty.intervals import Interval
from spkbase.errors import DataError


def condition(scenario: str, attacker: str, eer: Any, gender: str = "all", **more: Any) -> dict[str, Any]:
    place = {"dataset": "libri_test", "gender": gender, "scenario": scenario, "attacker": attacker}
    return place | {"eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": eer / 2, "high": 2 * eer}}} | more


@pytest.fixture
def results() -> dict[str, Any]:
    zebra = {"population": 0.25, "individual": 2.5, "tag": "C"}
    linkability = {"sizes": [5, 2, 10], "linkability": [0.5, 0.8, 0.25], "low": [0, 0, 0.125], "high": [1, 1, 0.375]}
    rows = [
        condition("semi-informed", "gmm-ubm", 0.12),
        condition("semi-informed", "a_b", 0.1, zebra=zebra, linkability=linkability, min_cllr=0.345),
        condition("original", "gmm-ubm", 0.01),
        condition("original", "a_b", 0.02, gender="m"),
    ]
    return {"format": 1, "conditions": rows, "verdict": "It is 50% & *more*.", "anonymiser": {"name": "mc_adams"}}


def test_rows_go_by_sex_and_scenario_and_name_the_strongest(results: dict[str, Any]) -> None:
    rows = summary_rows(parse_results(results))
    places = [(row["Speakers"], row["Scenario"], row["Attacker"]) for row in rows]
    assert places == [
        ("all speakers", "original", "gmm-ubm"),
        ("all speakers", "semi-informed", "a_b"),
        ("male", "original", "a_b"),
    ]
    assert rows[1] == {
        "Dataset": "libri_test",
        "Speakers": "all speakers",
        "Scenario": "semi-informed",
        "Attacker": "a_b",
        "EER [%]": "10.0 [5.0, 20.0]",
        "min Cllr": "0.345",
        "Population [bit]": "0.250",
        "Individual": "2.500",
        "Category": "C",
        "Linkability, all [%]": "25 [12, 38]",
    }
    assert rows[0]["Population [bit]"] == rows[0]["Category"] == rows[0]["Linkability, all [%]"] == "n/a"


def test_rows_of_attackers_have_a_column_for_each_scenario(results: dict[str, Any]) -> None:
    rows = attacker_rows(parse_results(results))
    assert [(row["Speakers"], row["Attacker"], row["original"], row["semi-informed"]) for row in rows] == [
        ("all speakers", "gmm-ubm", "1.0 [0.5, 2.0]", "12.0 [6.0, 24.0]"),
        ("all speakers", "a_b", "n/a", "10.0 [5.0, 20.0]"),
        ("male", "gmm-ubm", "n/a", "n/a"),
        ("male", "a_b", "2.0 [1.0, 4.0]", "n/a"),
    ]


def test_markdown_keeps_names_from_being_markup(results: dict[str, Any]) -> None:
    results["conditions"][0]["attacker"] = "<b>|`x`\n# y"
    text = format_markdown(results)
    assert r"\<b\>\|\`x\` # y" in text
    assert text.startswith("# Results of mc\\_adams\n\nIt is 50% & \\*more\\*.\n\n## Strongest")
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows[:5]}) == 1


def test_latex_escapes_names_and_compiles(results: dict[str, Any], tmp_path: Path) -> None:
    results["conditions"][0]["attacker"] = "50%_$&{}#^~\\"
    text = format_latex(results)
    assert r"libri\_test & all speakers & semi-informed & a\_b & 10.0 [5.0, 20.0] & 0.345 & 0.250 & 2.500 & C &" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert r"\begin{tabular}{llllrrrrlr}" in text
    tex = shutil.which("pdflatex")
    if tex is None:
        return
    (tmp_path / "t.tex").write_text("\\documentclass{article}\\begin{document}\n" + text + "\\end{document}\n", "utf-8")
    command = [tex, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_flat_names_find_nested_values_whose_names_hold_dots() -> None:
    values = {"tpr_at_fpr": {"0.01": {"value": 0.5}}, "a.b": 3, "a": {"b": 4, "c": None}}
    assert find(values, "tpr_at_fpr.0.01.value") == 0.5
    assert find(values, "a.b") == 3
    assert find(values, "a.c") is find(values, "x.y") is find(values, "a.b.c") is None


def test_intervals_may_be_pairs_or_mappings_and_are_whole_or_absent() -> None:
    for ends, has in (([0.1, 0.3], True), ({"low": 0.1, "high": 0.3}, True), ([0.1], False), ({"low": 0.1}, False)):
        rows = [condition("original", "a", 0.2) | {"intervals": {"eer.rocch": ends}}]
        figure = parse_results({"format": 1, "conditions": rows}).outcomes[0].eer
        assert figure.has_interval == has
    assert not Interval(0.2).has_interval
    assert as_number("inf") == float("inf")


def test_all_faults_of_conditions_are_named_at_once(results: dict[str, Any]) -> None:
    results["conditions"] += [results["conditions"][0], {"dataset": ""}, None]
    with pytest.raises(DataError, match=r"(?s)3 problems:.*condition 5: .*twice.*condition 6.*condition 7") as error:
        format_markdown(results)
    assert "libri_test all semi-informed gmm-ubm" in str(error.value)
