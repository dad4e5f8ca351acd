"""Sections of the page on worst case, ranks and voices: what they show, and that junk in the results breaks nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gaussian_results import make_results

from evaluation.reports.page.document import render_page
from evaluation.reports.page.evidence import voices, worst_cases
from evaluation.reports.privacy_results import parse_results

MATRIX = {"speakers": ["a", "b"], "n_trials": 9, "values": [[0.9, 0.1], [0.2, None]]}
ENTRY = {
    "dataset": "libri_test",
    "gender": "all",
    "scenario": "lazy-informed",
    "attacker": "gmm-svm",
    "deid": {"value": 0.75, "low": 0.7, "high": 0.8},
    "gain_of_voice_distinctiveness": {"value": -3.25, "low": -4.0, "high": None},
    "matrices": dict.fromkeys(("oo", "oa", "aa"), MATRIX),
}
WORST = {name: {"llr": 2.302585, "log10": 1.0} for name in ("pav", "gaussian", "student")} | {"ranks": {"llr": "inf"}}


@pytest.fixture
def results(tmp_path: Path) -> dict[str, Any]:
    made = make_results(tmp_path, attackers=("gmm-svm",), genders=("all",), n_speakers=3, n_segments=2)
    for one in made["conditions"]:
        one.update(scores=None, linkability=None, speakers=[])
    return made | {"utility": {}}


def test_what_the_sections_show(results: dict[str, Any]) -> None:
    for one in results["conditions"]:
        one.update(worst_case=WORST, cmc=[0.5, 0.75, 1.0])
    parsed = parse_results(results | {"similarity": [ENTRY]})
    worst, alike = str(worst_cases(parsed)), str(voices(parsed))
    assert worst.count(">1.00<") == 12  # three readings in each of four scenarios
    assert "Cumulative match characteristic of libri_test" in worst
    assert "50\N{NO-BREAK SPACE}%" in worst
    assert "0.75" in alike
    assert "\N{MINUS SIGN}3.25\N{NO-BREAK SPACE}dB" in alike
    assert "Voice similarity matrices of libri_test" in alike
    page = render_page(results | {"similarity": [ENTRY]}, folder=".")
    assert 'href="#worst"' in page
    assert 'href="#voices"' in page


def test_the_first_screen_has_the_interval_of_the_minimum(results: dict[str, Any]) -> None:
    (row,) = [one for one in results["conditions"] if one["scenario"] == "semi-informed"]
    place = {name: row[name] for name in ("dataset", "gender", "scenario")}
    stated = place | {"strongest": "gmm-svm", "eer": 0.2, "low": 0.11, "high": 0.31}
    minimum = {"low": 0.125, "high": 0.345, "method": ""}
    explained = {"attackers_run": {"explained": {"gmm-svm": "a line of its own"}}}
    page = render_page(results | explained | {"summary": [stated | {"minimum": minimum}]}, folder=".")
    assert "12.5\N{EN DASH}34.5\N{NO-BREAK SPACE}%" in page
    assert "11.0\N{EN DASH}31.0" not in page
    assert "counts in that the strongest attacker and scenario were chosen on these very trials" in page
    assert "a line of its own" in page
    before = render_page(results | {"summary": [stated]}, folder=".")
    assert "11.0\N{EN DASH}31.0\N{NO-BREAK SPACE}%" in before
    assert "which makes privacy look worse rather than better" in before


def test_results_of_before_have_neither(results: dict[str, Any]) -> None:
    parsed = parse_results(results)
    assert worst_cases(parsed) is None
    assert voices(parsed) is None


@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {"a": 1}, [[]], ["inf", 2], [0.5, float("nan")]])
def test_junk_breaks_nothing(results: dict[str, Any], junk: Any) -> None:
    for one in results["conditions"]:
        one.update(worst_case=junk, cmc=junk)
    entries = [
        ENTRY | {"matrices": junk},
        ENTRY | {"matrices": {"oo": junk, "oa": MATRIX | {"values": junk}, "aa": MATRIX | {"speakers": junk}}},
        ENTRY | {"deid": junk, "gain_of_voice_distinctiveness": junk, "attacker": junk, "scenario": junk},
        junk,
    ]
    render_page(results | {"similarity": entries}, folder=".")
    render_page(results | {"similarity": junk}, folder=".")


def test_a_matrix_out_of_range_is_left_out_and_said(results: dict[str, Any]) -> None:
    bad = ENTRY | {"matrices": {"oo": MATRIX | {"values": [[7, 0], [0, 7]]}}}
    assert "A plot is left out" in render_page(results | {"similarity": [bad]}, folder=".")
