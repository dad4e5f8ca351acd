"""The section on what vectors tell of speakers beside their identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import interval, percent
from evaluation.reports.page.tables import Row, table
from evaluation.reports.page.verdict import place_of
from evaluation.reports.privacy_results import Results, as_number, interval_ends
from evaluation.uncertainty import Interval

_SCENARIOS = {
    "original": "Original",
    "ignorant": "Anonymised, learnt from original",
    "informed": "Anonymised, learnt from anonymised",
}


def attributes(results: Results) -> Html | None:
    """Build the section; None where nothing was measured."""
    block = results.block("attributes")
    sets = block.get("sets")
    groups = [
        (place_of(str(dataset), "all"), rows)
        for dataset, found in (sets.items() if isinstance(sets, Mapping) else ())
        if isinstance(found, Mapping) and (rows := list(_rows(found)))
    ]
    said = block.get("notes")
    notes = [note for note in said if isinstance(note, str)] if isinstance(said, list) else []
    if not groups:
        return None
    lead = (
        f"What a linear classifier reads from the vectors of {block.get('vectors')}, of speakers that it has not learnt"
        " from: unweighted average recall with its interval by speakers. Anonymised speech should be at chance."
    )
    made = table(
        ["Attribute", "Chance", *_SCENARIOS.values()],
        groups,
        caption="Attributes read from vectors",
        kind="stack",
        numbers=(1, 2, 3, 4),
    )
    below = [element("p", note, class_="lead") for note in notes]
    return element(
        "section", element("h2", "Attributes"), element("p", lead, class_="lead"), made, below, id="attributes"
    )


def _rows(found: Mapping[str, Any]) -> Iterator[Row]:
    for name, leakage in found.items():
        if not isinstance(leakage, Mapping):
            continue
        cells = [_cell(leakage.get(scenario)) for scenario in _SCENARIOS]
        original = leakage.get("original")
        chance = as_number(original.get("chance")) if isinstance(original, Mapping) else float("nan")
        yield name, [percent(chance), *cells]


def _cell(value: Any) -> str:
    """A recall with its interval."""
    if not isinstance(value, Mapping):
        return ""
    figure = Interval(as_number(value.get("value")), *interval_ends(value.get("interval")))
    span = interval(figure)
    return percent(figure.value) + (f" ({span})" if span else "")
