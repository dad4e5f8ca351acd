"""What stands beside the EER of a scenario, in tables and on the page; results of earlier versions have less."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from evaluation.reports import figures_beside, format_latex, format_markdown, parse_results
from evaluation.reports.page import render_page
from evaluation.reports.privacy_tables import glance_rows


def condition(attacker: str, eer: float, **more: Any) -> dict[str, Any]:
    place = {"dataset": "libri_test", "gender": "all", "scenario": "lazy-informed", "attacker": attacker}
    return place | {"eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": eer / 2, "high": 2 * eer}}} | more


def closed(eer: float, share: float, candidates: Any = (5, 5)) -> dict[str, Any]:
    found = {"eer": {"value": eer, "low": eer / 2, "high": 2 * eer}, "identification": {"value": share}}
    return {"closed_set": {**found, "candidates": list(candidates), "chance": 0.2}}


@pytest.fixture
def results() -> dict[str, Any]:
    draws = [{"draw": number, "eer": {"rocch": eer}} for number, eer in ((1, 0.181), (2, 0.192), (3, 0.057))]
    rows = [
        condition("gmm-svm-undone", 0.09, tested=[35, 36], level="inverting", draws=draws, **closed(0.05, 0.7)),
        condition(
            "campplus", 0.179, level="whole-list", tested=[35, 36], draws=draws[:1], **closed(0.022, 0.9, (10, 13))
        ),
    ]
    return {"format": 1, "conditions": rows, "anonymiser": {"name": "mcadams"}}


def test_levels_and_the_closed_set_may_be_of_other_attackers_than_the_least(results: dict[str, Any]) -> None:
    found = figures_beside(results["conditions"])
    assert list(found.levels) == ["whole-list", "inverting"]
    assert (found.levels["whole-list"].attacker, found.levels["whole-list"].rate.value) == ("campplus", 0.179)
    assert (found.levels["whole-list"].rate.low, found.levels["whole-list"].rate.high) == (0.0895, 0.358)
    assert (found.levels["inverting"].attacker, found.tested) == ("gmm-svm-undone", (35, 36))
    assert not found.without_content.attacker  # nobody reads
    assert (found.closed_set.attacker, found.closed_set.rate.value) == ("campplus", 0.022)
    assert (found.identification.attacker, found.candidates) == ("campplus", (10, 13))
    assert math.isnan(found.identification.rate.low)
    assert found.draws == (0.181, 0.192, 0.057)


def test_one_figure_has_one_interval_wherever_it_stands(results: dict[str, Any]) -> None:
    """That of the minimum over attackers, on the page and in the tables of single attackers too."""
    place = {"dataset": "libri_test", "gender": "all", "scenario": "lazy-informed", "strongest": "gmm-svm-undone"}
    results["summary"] = [place | {"eer": 0.09, "minimum": {"low": 0.033, "high": 0.299}}]
    text = format_markdown(results)
    assert text.count("9.0 [3.3, 29.9]") == 3
    assert "18.0" not in text
    page = render_page(results, folder=".")
    assert "3.3\N{EN DASH}29.9" in page
    assert "4.5\N{EN DASH}18.0" not in page


def test_the_least_without_those_who_read_what_is_said(results: dict[str, Any]) -> None:
    reader = condition("content", 0.01, level="trial-by-trial", content="oracle")
    found = figures_beside([reader, *results["conditions"]])
    assert (found.levels["trial-by-trial"].attacker, found.without_content.attacker) == ("content", "gmm-svm-undone")
    assert not figures_beside([reader]).without_content.attacker


@pytest.mark.parametrize(
    "damage",
    [
        {"closed_set": None, "draws": None, "level": None, "tested": None},
        {"closed_set": [], "draws": "no", "level": [], "tested": [True]},
        {"closed_set": {"eer": 3, "identification": {"value": "x"}, "candidates": 7}, "draws": [1, None]},
        {"closed_set": {"eer": {"value": True}, "candidates": ["<b>", 2]}},
    ],
)
def test_what_is_no_such_thing_counts_as_not_known(damage: dict[str, Any]) -> None:
    found = figures_beside([condition("a", 0.1, **damage)])
    attackers = [figure.attacker for figure in found.levels.values()]
    assert (attackers, found.closed_set.attacker, found.identification.attacker) == (["a"], "", "")
    assert (found.draws, found.candidates, found.tested) == ((), (0, 0), ())


def test_the_table_for_a_glance(results: dict[str, Any]) -> None:
    rows = glance_rows(parse_results(results))
    assert rows == [
        {
            "Dataset": "libri_test",
            "Scenario": "lazy-informed",
            "Strongest": "gmm-svm-undone",
            "EER [%], mean of draws": "9.0 [4.5, 18.0] (3 draws)",
            "Trial-by-trial [%]": "n/a",
            "Whole-list [%]": "17.9 (campplus)",
            "Inverting [%]": "9.0",
            "Identification [%]": "90 (campplus) of 10 to 13",
            "Closed set, EER [%]": "2.2 (campplus)",
        }
    ]
    text = format_markdown(results)
    assert text.index("## At a glance") < text.index("## Strongest attacker")
    assert "At a glance" in format_latex(results)


def test_results_of_earlier_versions_have_the_tables_that_they_had(results: dict[str, Any]) -> None:
    for row in results["conditions"]:
        for name in ("level", "draws", "closed_set"):
            del row[name]
    assert "At a glance" not in format_markdown(results)
    page = render_page(results, folder=Path())
    assert "Names the speaker" not in page
    assert "draws:" not in page


def test_the_first_screen_names_draws_levels_and_the_closed_set(results: dict[str, Any]) -> None:
    page = render_page(results, folder=Path())
    text = re.sub(r"<[^>]*>", " ", page.split('class="contents"')[0]).replace("\xa0", " ")
    assert "Mean of 3 draws: 18.1, 19.2, 5.7 %." in text
    assert "Whole-list attackers (lists of 35 and 36 recordings): 17.9 % (8.9–35.8 %), campplus." in text
    assert "Names the speaker of 90 % of the utterances, first of 10 to 13, campplus." in text
    assert "Closed set, equal error rate: 2.2 % (1.1–4.4 %), campplus." in text
    results["conditions"][1]["attacker"] = "<script>"
    assert "<script>" not in render_page(results, folder=Path())
