"""The challenge's averages of equal error rates, and the minimum targets that they reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import cell, percent
from evaluation.reports.page.tables import Row, table
from evaluation.reports.page.verdict import short
from evaluation.reports.privacy_results import Results, as_number
from evaluation.reports.privacy_schema import SCENARIO_ORDER

SCENARIO_NAMES = {
    "original": "Original\N{NO-BREAK SPACE}speech",
    "ignorant": "Ignorant",
    "lazy-informed": "Lazy\N{NON-BREAKING HYPHEN}informed",
    "semi-informed": "Semi\N{NON-BREAKING HYPHEN}informed",
}


def averages(results: Results) -> Html | None:
    """Build the section of averages, where the results hold any."""
    found = results.raw.get("averages")
    rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    if not rows:
        return None
    scenarios = sorted({_text(row, "scenario") for row in rows}, key=_place)
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        name = " ".join(filter(None, (_text(row, "dataset"), _text(row, "split"))))
        groups.setdefault(name, {})[_text(row, "scenario")] = row
    targets, attacker = _targets(results), next(filter(None, (_text(row, "attacker") for row in rows)), "strongest")
    who = "the strongest attackers" if attacker == "strongest" else f"the attacker {short(attacker)}"
    lines: list[Row] = [
        (short(name), [_cell(group.get(scenario), targets=bool(targets)) for scenario in scenarios])
        for name, group in groups.items()
    ]
    made = table(
        ["Set", *(SCENARIO_NAMES.get(scenario, short(scenario)) for scenario in scenarios)],
        [(None, lines)],
        caption=f"Average equal error rate of {who}",
        label="Challenge averages",
        numbers=tuple(range(1, len(scenarios) + 1)),
        kind="stack",
    )
    heading = element("h2", "Challenge averages")
    return element(
        "section", heading, element("p", _lead(results, rows, targets, who), class_="lead"), made, id="averages"
    )


def _lead(results: Results, rows: list[Mapping[str, Any]], targets: list[float], who: str) -> str:
    challenge = results.block("config").get("challenge")
    block = challenge if isinstance(challenge, Mapping) else {}
    name = f" of {short(name)}" if (name := _text(block, "name")) else ""
    reading = next(filter(None, (_text(row, "reading") for row in rows)), "")
    over = "with the weights of the challenge over corpora and sexes" if block.get("weights") else "over the sexes"
    text = f"Averages{name} {over}, of {who}"
    if reading and reading != "rocch":
        text += f"; equal error rates are read as {short(reading)!r} does, so they may differ from those above"
    if not targets:
        return f"{text}. No minimum targets are configured."
    percentages = ", ".join(percent(target / 100, 0) for target in targets)
    by = "the value itself, as the challenge ranks" if block.get("attacker") else "the lower end of the interval"
    return f"{text}. Minimum targets: {percentages}, reached or not by {by}."


def _cell(row: Mapping[str, Any] | None, *, targets: bool) -> Html:
    if row is None:
        return cell(percent(float("nan")))
    reached = [as_number(target) for target in row.get("targets_reached") or [] if as_number(target) >= 0]
    below = ""
    if targets and _text(row, "scenario") == "semi-informed":  # the scenario that the challenges rank by
        below = f"reaches {percent(max(reached) / 100, 0)}" if reached else "reaches no target"
    low, high = (as_number(row.get(f"{end}_percent")) / 100 for end in ("low", "high"))
    if low == low and high == high:
        below = f"{percent(low)} to {percent(high)} {below}".strip()
    return cell(percent(as_number(row.get("eer_percent")) / 100), below)


def _targets(results: Results) -> list[float]:
    challenge = results.block("config").get("challenge")
    found = challenge.get("targets") if isinstance(challenge, Mapping) else None
    return [value for entry in (found if isinstance(found, list) else []) if (value := as_number(entry)) >= 0]


def _place(scenario: str) -> tuple[int, str]:
    return (SCENARIO_ORDER.index(scenario) if scenario in SCENARIO_ORDER else len(SCENARIO_ORDER), scenario)


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""
