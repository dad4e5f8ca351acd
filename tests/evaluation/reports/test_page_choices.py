"""The section of the report on how backends were chosen, also of results that somebody else wrote."""

from __future__ import annotations

import pytest

from evaluation.reports import parse_results
from evaluation.reports.page.choices import choices
from evaluation.reports.page.markup import Html


def section(value: object) -> Html | None:
    results = parse_results(RESULTS)
    results.raw["choices"] = value  # type: ignore[index]
    return choices(results)


RESULTS = {
    "format": 1,
    "conditions": [
        {"dataset": "d", "gender": "f", "scenario": "original", "attacker": "a", "eer": {"rocch": 0.1}},
    ],
}
CHAIN = {"chain": "[cosine]", "eer": [0.1, 0.3], "cllr": [0.5, 0.7], "mean_eer": 0.2, "above_best": 0.05,
         "standard_error": 0.01}  # fmt: skip
CHOICE = {
    "attacker": "<b>", "training": "set", "vectors": 1200, "speakers": 20, "chosen": "[cosine]", "why": "it is simple",
    "folds": [{"number": 1, "speakers": ["a", "b"], "targets": 7, "trials": 14}],
    "chains": [CHAIN, {"chain": "[lda: 9, cosine]", "why": "too few"}],
}  # fmt: skip


def test_what_was_chosen_and_why():
    page = section([CHOICE])
    for text in (
        "&lt;b&gt; on set: [cosine]",
        "1,200 vectors of 20 speakers",
        "because it is simple",
        "2 speakers and 7 target trials",
        "<strong>[cosine]</strong>",
        "20.00",
        "5.00 \N{PLUS-MINUS SIGN} 1.00",
        "0.600",
        "10.0 30.0",
        "not trained: too few",
    ):
        assert text in page, text


@pytest.mark.parametrize("value", [None, [], {}, "text", 3, [4], ["x"]])
def test_without_choices_there_is_no_section(value):
    assert section(value) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"folds": 3},
        {"folds": [{"speakers": 5}]},
        {"chains": "x"},
        {"chains": [{"eer": "abc", "cllr": 1}]},
        {"chains": [{"eer": [None, "x", {}], "cllr": ["a"]}]},
        {"vectors": "many", "attacker": ["x"], "why": None},
    ],
)
def test_results_that_are_odd_are_shown_as_far_as_they_go(damage):
    assert 'id="choices"' in section([{**CHOICE, **damage}])
