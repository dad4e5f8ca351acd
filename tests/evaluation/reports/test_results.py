"""What is read from results of a privacy evaluation: the strongest attackers, what stands beside them, and tables."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evaluation import reports
from evaluation.challenges.systems import figures_of_results
from evaluation.reports import Condition, Outcome, interval_from, parse_results, summarise
from evaluation.reports import page as page_module
from evaluation.reports.tables import FIGURES, GLANCE, attacker_rows, table_rows
from spkbase.errors import DataError
from spkbase.files import to_json


def render_page(results: dict[str, Any], **options: Any) -> str:
    """The page of the contents of results.json."""
    return page_module.render_page(parse_results(results), **options)


def format_markdown(results: dict[str, Any]) -> str:
    """The tables of the contents of results.json."""
    return reports.format_markdown(parse_results(results))


def format_latex(results: dict[str, Any]) -> str:
    """The same as LaTeX."""
    return reports.format_latex(parse_results(results))


def condition(
    scenario: str, attacker: str, eer: float, gender: str = "all", **more: Any
) -> dict[str, Any]:
    place = {"dataset": "libri_test", "gender": gender, "scenario": scenario, "attacker": attacker}
    return (
        place
        | {"eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": eer / 2, "high": 2 * eer}}}
        | more
    )


@pytest.fixture
def results() -> dict[str, Any]:
    zebra = {"population": 0.25, "individual": 2.5, "tag": "C"}
    linkability = {
        "sizes": [5, 2, 10],
        "linkability": [0.5, 0.8, 0.25],
        "low": [0, 0, 0.125],
        "high": [1, 1, 0.375],
    }
    rows = [
        condition("semi-informed", "gmm-ubm", 0.12),
        condition(
            "semi-informed", "a_b", 0.1, zebra=zebra, linkability=linkability, min_cllr=0.345
        ),
        condition("original", "gmm-ubm", 0.01),
        condition("original", "a_b", 0.02, gender="m"),
    ]
    return {
        "format": 1,
        "conditions": rows,
        "verdict": "It is 50% & *more*.",
        "anonymiser": {"name": "mc_adams"},
    }


def closed(
    eer: float, share: float, candidates: tuple[int, int] = (5, 5), **ends: float
) -> dict[str, Any]:
    found = {
        "eer": {"value": eer, "low": eer / 2, "high": 2 * eer},
        "identification": {"value": share, **ends},
    }
    return {"closed_set": {**found, "candidates": list(candidates), "chance": 0.2}}


@pytest.fixture
def levels() -> dict[str, Any]:
    """Results with attackers of two levels of knowledge, draws and closed sets."""
    draws = [
        {"draw": number, "eer": {"rocch": eer}}
        for number, eer in ((1, 0.181), (2, 0.192), (3, 0.057))
    ]
    inverted = {"tested": [35, 36], "level": "inverting", "draws": draws, **closed(0.05, 0.7)}
    adapted = {
        "tested": [35, 36],
        "level": "whole-list",
        "draws": draws[:1],
        **closed(0.022, 0.9, (10, 13)),
    }
    rows = [
        condition("lazy-informed", "gmm-svm-inverted", 0.09, **inverted),
        condition("lazy-informed", "campplus", 0.179, **adapted),
    ]
    return {"format": 1, "conditions": rows, "anonymiser": {"name": "mcadams"}}


def test_rows_are_ordered_by_sex_and_scenario_and_name_the_strongest_attacker(
    results: dict[str, Any],
) -> None:
    rows = table_rows(FIGURES, parse_results(results).outcomes)
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
    assert (
        rows[0]["Population [bit]"]
        == rows[0]["Category"]
        == rows[0]["Linkability, all [%]"]
        == "n/a"
    )


def test_rows_of_attackers_have_a_column_for_each_scenario(results: dict[str, Any]) -> None:
    rows = attacker_rows(parse_results(results))
    assert [
        (row["Speakers"], row["Attacker"], row["original"], row["semi-informed"]) for row in rows
    ] == [
        ("all speakers", "gmm-ubm", "1.0 [0.5, 2.0]", "12.0 [6.0, 24.0]"),
        ("all speakers", "a_b", "n/a", "10.0 [5.0, 20.0]"),
        ("male", "gmm-ubm", "n/a", "n/a"),
        ("male", "a_b", "2.0 [1.0, 4.0]", "n/a"),
    ]


def test_names_are_escaped_in_markdown(results: dict[str, Any]) -> None:
    results["conditions"][0]["attacker"] = "<b>|`x`\n# y"
    text = format_markdown(results)
    assert r"\<b\>\|\`x\` # y" in text
    assert text.startswith("# Results of mc\\_adams\n\nIt is 50% & \\*more\\*.\n\n## Strongest")
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows[:5]}) == 1


def test_names_are_escaped_in_latex_which_compiles(results: dict[str, Any], tmp_path: Path) -> None:
    results["conditions"][0]["attacker"] = "50%_$&{}#^~\\"
    text = format_latex(results)
    assert (
        r"libri\_test & all speakers & semi-informed & a\_b & 10.0 [5.0, 20.0] & 0.345 & 0.250 & 2.500 & C &"
        in text
    )
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert r"\begin{tabular}{llllrrrrlr}" in text
    tex = shutil.which("pdflatex")
    if tex is None:
        return
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\begin{document}\n" + text + "\\end{document}\n", "utf-8"
    )
    command = [tex, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_intervals_may_be_pairs_or_mappings_or_missing() -> None:
    for ends in ({"interval": [0.1, 0.3]}, {"low": 0.1, "high": 0.3}):
        assert interval_from({"value": 0.2, **ends}).numbers() == {
            "value": 0.2,
            "low": 0.1,
            "high": 0.3,
        }
    assert not interval_from({"value": "inf", "low": None, "high": 1}).has_interval
    assert not interval_from(None).known


def test_all_errors_of_conditions_are_named_together(results: dict[str, Any]) -> None:
    results["conditions"] += [results["conditions"][0], {"dataset": ""}]
    with pytest.raises(
        DataError, match=r"(?s)2 problems:.*condition 5: .*repeated.*condition 6"
    ) as error:
        format_markdown(results)
    assert "libri_test all semi-informed gmm-ubm" in str(error.value)


@pytest.mark.parametrize(
    "damage",
    [
        {"conditions": [condition("original", "a", 0.1) | {"eer": 0.1}]},
        {"conditions": [condition("original", "a", 0.1) | {"level": "all-knowing"}]},
        {
            "summary": [
                {"dataset": "libri_test", "gender": "all", "scenario": "original", "minimum": 0.1}
            ]
        },
        {"sanity": [{"level": "doubt", "check": "x", "text": "y"}]},
        *(
            {name: value}
            for name in (
                "anonymiser",
                "attackers_run",
                "run",
                "seeds",
                "protocol",
                "config",
                "lists",
                "versions",
            )
            for value in ("x", 5, ["x"])
        ),
        *(
            {name: value}
            for name in (
                "similarity",
                "fusions",
                "averages",
                "failures",
                "sanity",
                "choices",
                "trained_networks",
                "undoing",
            )
            for value in (5, ["x"], [5])
        ),
        {"similarity": [{"dataset": "a"}]},
        {"fusions": [{"weights": 3}]},
        {"undoing": [{"rmse": "x"}]},
        {"timings": {"a": "x"}},
        {"config": {"evaluation": {"level": "x"}}},
        {"utility": ["wer"]},
        {"utility": {"wer": "x"}},
        {"summary": [{}]},
        {"verdict": 5},
        {"suffix": 5},
        {"simulated": "no"},
        {"caveats": 5},
    ],
)
def test_a_damaged_block_raises_one_error(results: dict[str, Any], damage: dict[str, Any]) -> None:
    with pytest.raises(
        DataError, match=r"expected results of format 1 .*got damaged or foreign ones: \w+Error"
    ):
        render_page(results | damage, folder=".")


# ---- figures beside the EER


def outcome_of(rows: list[dict[str, Any]]) -> Outcome:
    (found,) = summarise([Condition.from_dict(row) for row in rows])
    return found


def test_levels_and_closed_sets_may_come_from_other_attackers_than_the_minimum(
    levels: dict[str, Any],
) -> None:
    found = outcome_of(levels["conditions"])
    assert list(found.levels) == ["whole-list", "inverting"]
    assert (found.levels["whole-list"].attacker, found.levels["whole-list"].rate.value) == (
        "campplus",
        0.179,
    )
    assert (found.levels["whole-list"].rate.low, found.levels["whole-list"].rate.high) == (
        0.0895,
        0.358,
    )
    assert (found.levels["inverting"].attacker, found.tested) == ("gmm-svm-inverted", (35, 36))
    assert found.without_content is None  # no attacker reads the words
    assert (found.closed_set.attacker, found.closed_set.eer.value) == ("campplus", 0.022)
    assert (found.identification.attacker, found.identification.candidates) == (
        "campplus",
        (10, 13),
    )
    stated = {
        "attacker": "campplus",
        "share": 0.9,
        "low": None,
        "high": None,
        "candidates": [10, 13],
    }
    assert json.loads(to_json(found.to_dict()))["identification"] == stated
    assert found.draws == (0.181, 0.192, 0.057)


def test_identification_takes_the_attacker_with_the_highest_rate_and_its_interval() -> None:
    """That of the attacker who has it is too high: who takes the largest of many takes what chance made large."""
    ends = {"first": (0.6, 0.4, 0.75), "second": (0.55, 0.45, 0.8), "third": (0.2, 0.1, 0.3)}
    rows = [
        condition("lazy-informed", name, 0.1, **closed(0.1, value, low=low, high=high))
        for name, (value, low, high) in ends.items()
    ]
    found = outcome_of(rows).identification
    assert (found.attacker, found.share.value, found.share.low, found.share.high) == (
        "first",
        0.6,
        0.45,
        0.8,
    )


def test_a_row_is_read_back_from_json_unchanged(levels: dict[str, Any]) -> None:
    """Without a line for any single field."""
    more = {
        "convention": "default",
        "min_dcf": {"0.01": 0.5},
        "cmc": [0.5, 1.0],
        "n_target": 7,
        "n_enrolled": 4,
    }
    more |= {"speakers": [{"speaker": "a", "rank": None}], "notes": {"x": "y"}, "key": "trials"}
    more |= {"linkability": {"sizes": [2, 4], "linkability": [0.5, 0.25], "top": {"2": [1.0, 0.5]}}}
    more["worst_case"] = {name: {"llr": "inf"} for name in ("pav", "gaussian", "student")} | {
        "ranks": {"llr": None}
    }
    row = Condition.from_dict(levels["conditions"][0] | more)
    again = Condition.from_dict(json.loads(to_json(row.to_dict())))
    assert repr(row.to_dict()) == repr(again.to_dict())  # NaN is not equal to itself
    assert (row.metric("min_dcf.0.01").value, row.found_among_all.value, row.n_target) == (
        0.5,
        0.25,
        7,
    )
    assert row.worst_case.pav.log10 == math.inf


def test_evidence_beyond_the_ceiling_is_shown_as_a_bound(
    results: dict[str, Any],
) -> None:
    """A Gaussian gave likelihood ratios of 10^54 from 32 target trials."""
    readings = {
        name: {"llr": log10 * math.log(10)}
        for name, log10 in (("pav", 1.51), ("gaussian", 54.61), ("student", 1.25), ("ranks", 1.1))
    }
    for row in results["conditions"]:
        row |= {
            "worst_case": readings,
            "zebra": {"population": 0.25, "individual": 1.51, "individual_ceiling": 1.52},
        }
    page = re.sub("<svg.*?</svg>", "", render_page(results, folder="."), flags=re.DOTALL)
    assert "54.6" not in page
    assert "over 1.52" in page
    assert "1.25" in page


def test_a_figure_has_the_same_interval_everywhere(levels: dict[str, Any]) -> None:
    """That of the minimum over attackers, on the page and in the tables of single attackers too."""
    place = {
        "dataset": "libri_test",
        "gender": "all",
        "scenario": "lazy-informed",
        "strongest": "gmm-svm-inverted",
    }
    levels["summary"] = [place | {"eer": 0.09, "minimum": {"low": 0.033, "high": 0.299}}]
    text = format_markdown(levels)
    assert text.count("9.0 [3.3, 29.9]") == 3
    assert "18.0" not in text
    page = render_page(levels, folder=".")
    assert "3.3\N{EN DASH}29.9" in page
    assert "4.5\N{EN DASH}18.0" not in page
    (figure,) = figures_of_results(parse_results(levels))  # the figure for `spkver-eval rank`
    assert (figure.value.value, figure.value.low, figure.value.high) == (0.09, 0.033, 0.299)


def test_the_minimum_without_content_attackers_is_shown(levels: dict[str, Any]) -> None:
    reader = condition("lazy-informed", "content", 0.01, level="one-model", content="oracle")
    found = outcome_of([reader, *levels["conditions"]])
    assert (found.levels["one-model"].attacker, found.without_content.attacker) == (
        "content",
        "gmm-svm-inverted",
    )
    assert outcome_of([reader]).without_content is None


def test_values_absent_from_the_results_are_unknown() -> None:
    missing = dict.fromkeys(("closed_set", "draws", "level", "tested"))
    for more in ({}, missing):
        found = outcome_of([condition("original", "a", 0.1, **more)])
        assert ([*found.levels], found.closed_set, found.identification) == (
            ["one-model"],
            None,
            None,
        )
        assert (found.draws, found.tested) == ((), ())


def test_the_short_table_has_its_columns(levels: dict[str, Any]) -> None:
    assert table_rows(GLANCE, parse_results(levels).outcomes) == [
        {
            "Dataset": "libri_test",
            "Scenario": "lazy-informed",
            "Strongest": "gmm-svm-inverted",
            "EER [%], mean of draws": "9.0 [4.5, 18.0] (3 draws)",
            "One-model [%]": "n/a",
            "All-enrolled [%]": "n/a",
            "Whole-list [%]": "17.9 (campplus)",
            "Inverting [%]": "9.0",
            "Identification [%]": "90 (campplus) of 10 to 13",
            "Closed set, EER [%]": "2.2 (campplus)",
        }
    ]
    text = format_markdown(levels)
    assert text.index("## At a glance") < text.index("## Strongest attacker")
    unknown = [row | {"gender": "children"} for row in levels["conditions"]]
    assert "| libri_test, children |" in format_markdown(levels | {"conditions": unknown}).replace(
        "\\", ""
    )
    assert "At a glance" in format_latex(levels)


def test_the_detailed_verdict_names_draws_levels_and_the_closed_set(
    levels: dict[str, Any],
) -> None:
    text = re.sub(r"<[^>]*>|\s", " ", render_page(levels, folder=Path()).replace("&nbsp;", " "))
    text = (
        re.sub(" +", " ", text)
        .partition("The verdict in detail")[2]
        .partition("Results by scenario")[0]
    )
    assert "Mean of 3 draws: 18.1, 19.2, 5.7 %." in text
    assert "Whole-list attackers (lists of 35 and 36 recordings): 17.9 %, campplus." in text
    assert "Identifies the speaker of 90 % of the utterances, first of 10 to 13, campplus." in text
    # the closed set has the rate of the headline, with one interval
    assert text.count("2.2 %") == 1
    assert text.count("\N{EN DASH}") == 1
