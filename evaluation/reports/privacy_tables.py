"""Results of a privacy evaluation as tables in Markdown and LaTeX: the result of each scenario, and all attackers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.metrics import format_value
from evaluation.plots import escape
from evaluation.reports.beside import Beside, Figure
from evaluation.reports.by_versions import rates_by_versions
from evaluation.reports.privacy_results import GENDERS, Outcome, Results, parse_results
from evaluation.reports.privacy_schema import LEVELS
from evaluation.uncertainty import Interval
from spkbase.files import escape_markdown, format_table

MISSING = "n/a"
_PLACE = ("Dataset", "Speakers", "Scenario", "Attacker")
_TEXTS = {*_PLACE, "Category", "Strongest"}
# column, flat name, factor, decimals (None: as ZEBRA prints), and whether the interval follows
_COLUMNS: tuple[tuple[str, str, float, int | None, bool], ...] = (
    ("EER [%]", "eer.rocch", 100, 1, True),
    ("min Cllr", "min_cllr", 1, 3, False),
    ("Population [bit]", "zebra.population", 1, None, True),
    ("Individual", "zebra.individual", 1, None, False),
)
_LEGEND = (
    f"{'; '.join(f'{level}: {words}' for level, words in LEVELS.items())}. Identification: utterances whose speaker is"
    " first among so many enrolled. Closed set: scores centred over the enrolled. An attacker is named where it is not"
    " the strongest one."
)
Rows = list[dict[str, str]]


def summary_rows(results: Results) -> Rows:
    """Return a row for the strongest attacker of each data set, sex and scenario; texts by the names of the columns."""
    return [_summary_row(outcome) for outcome in results.outcomes]


def glance_rows(results: Results) -> Rows:
    """Return a row for each scenario of each data set, all speakers where they are pooled: what a reader looks for.

    Identification and the closed set are those of the attacker that they are worst by, who is named where it is not
    the strongest one.
    """
    several = any(len(outcome.beside.draws) > 1 for outcome in results.outcomes)
    rows = []
    for outcome in results.outcomes:
        if outcome.gender not in results.main_genders(outcome.dataset):
            continue
        beside, sex = outcome.beside, GENDERS.get(outcome.gender, outcome.gender)
        rate, count = _with_interval(outcome.eer, 100, 1, True), len(beside.draws)
        row = {
            "Dataset": outcome.dataset if outcome.gender == "all" else f"{outcome.dataset}, {sex}",
            "Scenario": outcome.scenario,
            "Strongest": outcome.attacker,
            "EER [%], mean of draws" if several else "EER [%]": f"{rate} ({count} draws)" if count > 1 else rate,
            **{
                f"{level.capitalize()} [%]": _figure(beside.levels.get(level, Figure()), outcome.attacker, 1)
                for level in LEVELS
            },
            "Identification [%]": _figure(beside.identification, outcome.attacker, 0) + _among(beside),
            "Closed set, EER [%]": _figure(beside.closed_set, outcome.attacker, 1),
        }
        rows.append(row)
    return rows


def attacker_rows(results: Results) -> Rows:
    """Return a row for each attacker of each data set and sex, with its EER in percent in each scenario."""
    scenarios = list(dict.fromkeys(name for dataset in results.datasets() for name in results.scenarios(dataset)))
    rows = []
    for dataset in results.datasets():
        for gender in results.genders(dataset):
            for attacker in results.attackers(dataset):
                row = {"Dataset": dataset, "Speakers": GENDERS.get(gender, gender), "Attacker": attacker}
                for scenario in scenarios:
                    row[scenario] = _with_interval(results.eer(dataset, gender, scenario, attacker), 100, 1, True)
                rows.append(row)
    return rows


def version_rows(results: Results) -> Rows:
    """Return a row for each data set with its semi-informed EER in percent by the number of versions learnt from."""
    found = rates_by_versions(results)
    counts = sorted({count for one in found for count in one.rates})
    return [
        {"Dataset": one.dataset, "Attacker": one.attacker}
        | {f"{count} [%]": _number(one.rates.get(count, math.nan), 100, 1) for count in counts}
        for one in found
    ]


def format_markdown(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown.

    Parameters
    ----------
    results : mapping
        As ``results.json`` holds them; see `evaluation.reports.parse_results`.

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
        parts.append(f"## {title}")
        parts.append(format_table(rows, markdown=True))
    parts.append("EER from the ROC convex hull, in percent, with its interval in brackets; 50 is a guess.")
    if any(outcome.beside.draws for outcome in parsed.outcomes):
        parts.append(_LEGEND)
    return "\n\n".join(parts) + "\n"


def format_latex(results: Mapping[str, Any]) -> str:
    r"""Return all tables as LaTeX that ``\input`` takes, without packages; see `format_markdown`."""
    parsed = parse_results(results)
    return "\n".join(f"% {title}\n{latex_table(rows)}" for title, rows in _tables(parsed))


def latex_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Lay out rows as a ``tabular``; names to the left, numbers to the right."""
    columns = list(rows[0])
    kinds = "".join("l" if name in _TEXTS else "r" for name in columns)
    lines = [
        " & ".join(map(escape, line)) + r" \\" for line in [columns, *([row[name] for name in columns] for row in rows)]
    ]
    body = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def _tables(results: Results) -> list[tuple[str, Rows]]:
    known = any(outcome.beside.draws for outcome in results.outcomes)  # earlier versions did not tell
    by_versions = version_rows(results)
    return [
        *([("At a glance", glance_rows(results))] if known else []),
        ("Strongest attacker of each scenario", summary_rows(results)),
        ("EER of each attacker", attacker_rows(results)),
        *([("Semi-informed EER by anonymised versions learnt from", by_versions)] if by_versions else []),
    ]


def _figure(figure: Figure, strongest: str, decimals: int) -> str:
    text = _number(figure.rate.value, 100, decimals)
    return f"{text} ({figure.attacker})" if figure.attacker not in ("", strongest) else text


def _among(beside: Beside) -> str:
    least, most = beside.candidates
    return "" if not most else f" of {most}" if least == most else f" of {least} to {most}"


def _summary_row(outcome: Outcome) -> dict[str, str]:
    condition = outcome.condition
    row = dict(
        zip(
            _PLACE,
            (outcome.dataset, GENDERS.get(outcome.gender, outcome.gender), outcome.scenario, outcome.attacker),
            strict=True,
        )
    )
    for title, name, factor, decimals, wide in _COLUMNS:
        figure = outcome.eer if name == "eer.rocch" else condition.interval(name)
        row[title] = _with_interval(figure, factor, decimals, wide)
    row["Category"] = outcome.tag or MISSING
    row["Linkability, all [%]"] = _with_interval(outcome.linkability, 100, 0, True)
    return row


def _with_interval(figure: Interval, factor: float, decimals: int | None, wide: bool) -> str:
    value = _number(figure.value, factor, decimals)
    if not (wide and figure.has_interval):
        return value
    return f"{value} [{_number(figure.low, factor, decimals)}, {_number(figure.high, factor, decimals)}]"


def _number(value: float, factor: float, decimals: int | None) -> str:
    if math.isnan(value):
        return MISSING
    return format_value(value) if decimals is None else f"{factor * value:.{decimals}f}"
