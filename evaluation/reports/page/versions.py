"""The section on how many anonymised versions of the training set attackers learnt from, and what more would change."""

from __future__ import annotations

import math

from evaluation.reports.by_versions import rates_by_versions
from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import percent
from evaluation.reports.page.tables import table
from evaluation.reports.page.verdict import place_of
from evaluation.reports.privacy_results import Results

_LEAD = (
    "Each version of the training set is anonymised with other random numbers. An attacker who owns the anonymiser "
    "makes as many as it likes, and learns from them to look away from what was drawn: where the rate still falls with "
    "their number, more would leave less privacy, and results from different numbers do not compare. A row is of one "
    "attacker, the strongest one with all versions; with fewer another attacker may be ahead of it."
)
_MORE = (
    "To have more of them, set anonymizer.training_draws higher; for twins that were made elsewhere, name the "
    "anonymiser too (anonymizer.name, or anonymizer.command with its command line)."
)


def training_versions(results: Results) -> Html | None:
    """Build the section; None where rates are known for no more than one number of versions."""
    found = rates_by_versions(results)
    if not found:
        return None
    counts = sorted({count for one in found for count in one.rates})
    rows = [
        (place_of(one.dataset, "all"), [one.attacker, *(_cell(one.rates.get(count, math.nan)) for count in counts)])
        for one in found
    ]
    made = table(
        ["Data set", "Attacker", *(f"{count} version{'s' if count > 1 else ''}" for count in counts)],
        [(None, rows)],
        caption="Semi-informed equal error rate of the strongest attacker that was trained here, inverting ones aside",
        kind="stack",
        numbers=tuple(range(2, 2 + len(counts))),
    )
    return element(
        "section",
        element("h2", "Versions learnt from"),
        element("p", _LEAD, class_="lead"),
        made,
        element("p", _MORE, class_="lead"),
        id="versions",
    )


def _cell(rate: float) -> str:
    return percent(rate) if math.isfinite(rate) else ""
