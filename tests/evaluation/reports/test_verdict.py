"""The verdict: words and level by the interval, what forbids it, and what speaks against it."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.reports import headlines, parse_results
from evaluation.reports.verdict import AGAINST, Verdict, judge


def condition(scenario: str, eer: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    names = {"dataset": "d", "gender": "all", "scenario": scenario, "attacker": "a"}
    return names | {"eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": low, "high": high}}}


def verdict(*rows: dict[str, Any], **more: Any) -> Verdict:
    return judge(parse_results({"format": 1, "conditions": rows, **more}))


@pytest.mark.parametrize(
    ("eer", "low", "high", "words", "reach"),
    [
        (0.05, 0.01, 0.09, "Very weak protection", "very weak to very weak"),
        (0.099, 0.05, 0.15, "Between very weak and weak protection", "very weak to weak"),
        (0.1, 0.1, 0.19, "Weak protection", "weak to weak"),
        (
            0.25,
            0.15,
            0.35,
            "At best good protection (too few speakers or draws to say how little)",
            "weak to good",
        ),
        (0.25, 0.15, 0.41, "Too few speakers or draws to say", "weak to strong"),
        (0.39, 0.3, 0.5, "Between good and strong protection", "good to strong"),
        (0.5, 0.45, 0.5, "Strong protection", "strong to strong"),
        (0.3, None, None, "Good protection by the point estimate", ""),
    ],
)
def test_words_follow_the_targets_of_the_challenge(
    eer: float, low: float | None, high: float | None, words: str, reach: str
) -> None:
    judged = verdict(condition("semi-informed", eer, low, high))
    assert judged.words == words
    assert judged.overall is not None
    if reach:
        assert " to ".join(judged.overall.reach) == reach
    else:
        assert judged.overall.advice.startswith("Without an interval over speakers")


def test_checks_forbid_a_verdict_and_objections_stand_in_the_order_of_their_weight() -> None:
    levels = {"fusion": "note", "utility": "warning", "new": "warning", "resemblance": "error", "pooled trials": "ok"}
    checks = [{"level": level, "check": check, "text": "x"} for check, level in levels.items()]
    judged = verdict(condition("lazy-informed", 0.45, 0.4, 0.5), sanity=checks, simulated=True)
    assert (judged.words, judged.level) == ("No verdict: resemblance", None)
    expected = [AGAINST["SIMULATED speech"], AGAINST["resemblance"], AGAINST["utility"], "A check warns: new."]
    assert judged.objections == expected


def test_original_speech_has_no_headline_of_anonymised_speech() -> None:
    rows = [condition("original", 0.01), condition("ignorant", 0.2) | {"dataset": "e"}]
    results = parse_results({"format": 1, "conditions": rows})
    assert [headline.worst.dataset for headline in headlines(results)] == ["e", "d"]
    assert [headline.worst.dataset for headline in headlines(results, anonymised=True)] == ["e"]
    assert verdict(rows[0]).words == "Not anonymised"
    assert verdict(rows[0] | {"eer": {"rocch": None}}).words == "No result"
