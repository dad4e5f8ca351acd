"""Markdown and LaTeX tables of a privacy evaluation: the result of each scenario, and all attackers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evaluation.metrics import format_value
from evaluation.plots import escape
from evaluation.reports.results import GENDERS, AttackerRate, Results, parse_results
from evaluation.trials import LEVELS
from evaluation.uncertainty import Interval
from spkbase.files import escape_markdown, format_table

MISSING = "n/a"
Rows = list[dict[str, str]]

_TEXTS = {"Dataset", "Speakers", "Scenario", "Attacker", "Category", "Strongest"}
_LEGEND = (
    f"{'; '.join(f'{level}: {words}' for level, words in LEVELS.items())}. Identification: utterances whose speaker is"
    " first among so many enrolled. Closed set: scores centred over the enrolled. Attackers are named where they are"
    " not the strongest one."
)


def summary_rows(results: Results) -> Rows:
    """Return a row for the strongest attacker of each data set, sex and scenario: texts by column name."""
    return [
        {
            "Dataset": outcome.dataset,
            "Speakers": GENDERS.get(outcome.gender, outcome.gender),
            "Scenario": outcome.scenario,
            "Attacker": outcome.attacker,
            "EER [%]": _percent(outcome.eer),
            "min Cllr": _decimals(outcome.interval("min_cllr").value, 3),
            "Population [bit]": _as_zebra(outcome.interval("zebra", "population")),
            "Individual": _as_zebra(Interval(outcome.interval("zebra", "individual").value)),
            "Category": (outcome.values.get("zebra") or {}).get("tag") or MISSING,
            "Linkability, all [%]": _percent(outcome.linkability, 0),
        }
        for outcome in results.outcomes
    ]


def glance_rows(results: Results) -> Rows:
    """Return a row with the main figures for each scenario of each data set, pooled over the sexes where possible.

    Identification and the closed set have strongest attackers of their own, who are named if they are not the strongest
    one overall.
    """
    several = any(len(outcome.beside.draws) > 1 for outcome in results.outcomes)
    rows = []
    for outcome in results.outcomes:
        if (outcome.dataset, outcome.gender) not in results.main_places():
            continue
        beside, sex = outcome.beside, GENDERS.get(outcome.gender, outcome.gender)
        draws = f" ({len(beside.draws)} draws)" if len(beside.draws) > 1 else ""
        (least, most) = beside.candidates
        among = "" if not most else f" of {most}" if least == most else f" of {least} to {most}"
        columns = {
            **{f"{level.capitalize()} [%]": (beside.levels.get(level, AttackerRate()), 1, "") for level in LEVELS},
            "Identification [%]": (beside.identification, 0, among),
            "Closed set, EER [%]": (beside.closed_set, 1, ""),
        }
        row = {
            "Dataset": outcome.dataset if outcome.gender == "all" else f"{outcome.dataset}, {sex}",
            "Scenario": outcome.scenario,
            "Strongest": outcome.attacker,
            "EER [%], mean of draws" if several else "EER [%]": _percent(outcome.eer) + draws,
        }
        for name, (figure, decimals, more) in columns.items():
            by = f" ({figure.attacker})" if figure.attacker not in ("", outcome.attacker) else ""
            row[name] = _decimals(100 * figure.rate.value, decimals) + by + more
        rows.append(row)
    return rows


def attacker_rows(results: Results) -> Rows:
    """Return a row for each attacker of each data set and sex, with its EER in percent in each scenario."""
    scenarios = dict.fromkeys(name for dataset in results.datasets() for name in results.scenarios(dataset))
    return [
        {"Dataset": dataset, "Speakers": GENDERS.get(gender, gender), "Attacker": attacker}
        | {scenario: _percent(results.eer(dataset, gender, scenario, attacker)) for scenario in scenarios}
        for dataset in results.datasets()
        for gender in results.genders(dataset)
        for attacker in results.attackers(dataset)
    ]


def format_markdown(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown.

    Parameters
    ----------
    results : mapping
        Contents of ``results.json``; see `evaluation.reports.parse_results`.

    Raises
    ------
    DataError
        If the results are malformed.
    """
    parsed = parse_results(results)
    parts = ["# Results" + (f" of {escape_markdown(parsed.name)}" if parsed.name else "")]
    if parsed.verdict:
        parts.append(escape_markdown(parsed.verdict))
    for title, rows in _tables(parsed):
        parts += [f"## {title}", format_table(rows, markdown=True)]
    parts.append("EER from the ROC convex hull, in percent, with its interval in brackets; 50 is chance.")
    if any(outcome.beside.draws for outcome in parsed.outcomes):
        parts.append(_LEGEND)
    return "\n\n".join(parts) + "\n"


def format_latex(results: Mapping[str, Any]) -> str:
    r"""Return all tables as LaTeX for ``\input``, which needs no packages; see `format_markdown`."""
    found = _tables(parse_results(results))
    return "\n".join(f"% {title}\n{latex_table(list(rows[0]), rows, _TEXTS)}" for title, rows in found)


def latex_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], texts: Collection[str]) -> str:
    """Lay out rows as a ``tabular``, with the columns in `texts` aligned to the left and numbers to the right."""
    cells = [columns, *([str(row.get(name, "")) for name in columns] for row in rows)]
    lines = [" & ".join(map(escape, line)) + r" \\" for line in cells]
    kinds = "".join("l" if name in texts else "r" for name in columns)
    body = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"]
    return "\n".join([*body, r"\end{tabular}"]) + "\n"


def _tables(results: Results) -> list[tuple[str, Rows]]:
    tables = [
        ("At a glance", glance_rows(results) if any(outcome.beside.draws for outcome in results.outcomes) else []),
        ("Strongest attacker of each scenario", summary_rows(results)),
        ("EER of each attacker", attacker_rows(results)),
    ]
    return [(title, rows) for title, rows in tables if rows]


def _percent(figure: Interval, decimals: int = 1) -> str:
    """Format a share in percent, with its interval in brackets."""
    value, low, high = (_decimals(100 * share, decimals) for share in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]" if figure.has_interval else value


def _as_zebra(figure: Interval) -> str:
    """Format a figure as the ZEBRA reference implementation prints it."""
    value, low, high = (format_value(number) for number in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]" if figure.has_interval else MISSING if math.isnan(figure.value) else value


def _decimals(value: float, decimals: int) -> str:
    return MISSING if math.isnan(value) else f"{value:.{decimals}f}"
