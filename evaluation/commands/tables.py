"""Tables of results for the terminal, in Markdown, and for papers in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evaluation.commands.shared import show_json
from evaluation.metrics import METRICS, PRIORS, Evaluation, Metric
from evaluation.uncertainty import (
    Column,
    EvaluatedSystems,
    Groups,
    Interval,
    columns_of,
    difference_rows,
    paper_tables,
    system_rows,
)
from spkbase.errors import ConfigError
from spkbase.files import format_table

PAPER = ("eer.rocch", "min_dcf.0.01", "cllr", "min_cllr", "zebra.population", "d_sys_pav")
"""The default columns of a table."""

NARROW = ("eer.rocch", "min_dcf.0.01", "min_cllr")
"""The metrics that fit one column of a paper (3.4 in)."""

SCREEN = (*PAPER, "min_dcf.0.05", "d_sys")
"""The default rows of a single system."""

# built-in metrics for which the narrow table of groups has room; user-supplied metrics are always shown
_OF_GROUPS = ("eer.rocch", "min_cllr", "cllr", "zebra.population", "d_sys_pav")


def chosen_columns(result: Evaluation, names: Sequence[str]) -> list[Column]:
    """Return the columns of the given metrics, by default those for papers; ``eer`` stands for the EER usual in papers.

    Raises
    ------
    ConfigError
        If a name is unknown; the error lists the known ones.
    """
    known = columns_of(result.metrics)
    for name, number in numbers_of_system(result).items():
        if isinstance(number, str):
            known[name] = Column(name, name.rpartition(".")[2], "")
    in_full = {name: name for name in known}
    in_full = {name.partition(".")[0]: name for name in PAPER if name in known} | in_full
    unknown = [name for name in names if name not in in_full]
    if unknown:
        raise ConfigError(
            f"no metric {', '.join(map(repr, unknown))}; the metrics are: {', '.join(known)}"
        )
    if not names:
        return [known[name] for name in PAPER if name in known]
    return [known[in_full[name]] for name in names]


def numbers_of_system(result: Evaluation) -> dict[str, Interval | str]:
    """Return the numbers of a result with their intervals, and its texts, such as ``zebra.tag``."""
    unknown = (math.nan, math.nan)
    numbers: dict[str, Interval | str] = {}
    for name, value in result.values().items():
        numbers[name] = Interval(value, *result.intervals.get(name, unknown))
    for head, group in result.results.items():
        if isinstance(group, dict):
            numbers |= {
                f"{head}.{name}": text for name, text in group.items() if isinstance(text, str)
            }
    return numbers


def usual_rows(result: Evaluation, priors: Sequence[str]) -> Evaluation:
    """Return a result with only the metrics of `SCREEN`, user-supplied metrics, and costs at requested priors."""
    names = set(SCREEN)
    if tuple(priors) != PRIORS:
        names |= {f"min_dcf.{prior}" for prior in priors}
    built_in = {metric.name for metric in METRICS}
    kept = []
    for metric in result.metrics:
        is_own = metric.name not in built_in
        points = [point for name, point in metric.numbers() if is_own or name in names]
        if points:
            kept.append(replace(metric, points=metric.points and tuple(points)))
    usual = replace(result, metrics=tuple(kept))
    hidden = result.values().keys() - usual.values().keys()
    notes = {
        name: text
        for name, text in result.notes.items()
        if name.removeprefix("intervals.") not in hidden
    }
    if hidden:
        notes["more"] = f"{len(hidden)} metrics by --all"
    return replace(usual, notes=notes)


def format_systems(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> str:
    """Return the table for the terminal, with the notes of each system below."""
    shown = {"scores", "intervals", "identification", *(column.name for column in columns)}
    numbers = {label: numbers_of_system(result) for label, result in results.items()}
    rows = []
    notes = []
    for row in system_rows(numbers, columns):
        label = row["system"]
        result = results[label]
        rows.append(
            {"system": label, "trials": f"{result.n_target:,} + {result.n_nontarget:,}"} | row
        )
        notes += [f"{label}: {text}" for name, text in result.notes.items() if name in shown]
    lines = [format_table(rows)]
    if notes:
        lines += ["", *dict.fromkeys(notes)]
    return "\n".join(lines)


def markdown_tables(evaluated: EvaluatedSystems, columns: Sequence[Column]) -> str:
    """Return the metrics of systems as a table in Markdown, and their differences as a second one."""
    numbers = {name: numbers_of_system(result) for name, result in evaluated.results.items()}
    text = format_table(system_rows(numbers, columns), markdown=True) + "\n"
    gaps = difference_rows(evaluated.differences, columns, evaluated.reference)
    if gaps:
        text += f"\nDifferences:\n\n{format_table(gaps, markdown=True)}\n"
    return text


def latex_tables(evaluated: EvaluatedSystems, columns: Sequence[Column]) -> str:
    """Return the metrics of systems and their differences as two narrow tables in LaTeX."""
    numbers = {name: numbers_of_system(result) for name, result in evaluated.results.items()}
    note = evaluated.results[evaluated.reference].notes.get("intervals", "")
    return paper_tables(numbers, evaluated.differences, columns, evaluated.reference, note=note)


def format_comparison(evaluated: EvaluatedSystems, columns: Sequence[Column]) -> str:
    """Return the text below the table of metrics: differences, notes, and the groups of each system."""
    parts = []
    gaps = difference_rows(evaluated.differences, columns, evaluated.reference)
    if evaluated.differences:
        parts.append(format_table(gaps))
        n_p_values = sum(" ".join(row.values()).count(", p ") for row in gaps)
        if n_p_values > 1:
            parts.append("p-values are corrected for their number by Holm's method")
    for name, text in evaluated.notes.items():
        head = "no differences" if name == "differences" else "note"
        parts.append(f"{head}: {text}")
    for name, system in evaluated.systems.items():
        if system.groups is not None:
            head = f"{name}:\n" if len(evaluated.systems) > 1 else ""
            parts.append(head + format_groups(system.groups))
    return "".join(f"\n{part}\n" for part in parts)


def format_groups(groups: Groups) -> str:
    """Return a table of the main metrics of each group, and one of the groups with the highest and lowest values."""
    titles = _titles_of_groups(groups)
    forms = {groups.column: "", "target": ",", "nontarget": ","} | dict.fromkeys(
        titles.values(), ".4f"
    )
    rows = []
    for name, group in groups.groups.items():
        row: dict[str, Any] = {
            groups.column: name,
            "target": group.n_target,
            "nontarget": group.n_nontarget,
        }
        for metric, title in titles.items():
            row[title] = group.metrics.get(metric)
        rows.append(row)
    lines = [format_table(rows, forms)]
    extremes = _extreme_rows(groups, titles)
    if extremes:
        forms = dict.fromkeys(("metric", "worst", "highest", "lowest"), "") | {"gap": ".4f"}
        if any("to" in row for row in extremes):
            forms |= {"gap from": ".4f", "to": ".4f"}
        lines += ["", format_table(extremes, forms)]
    if groups.headline():
        lines += ["", groups.headline()]
    if groups.n_across or groups.n_unknown:
        lines += [
            "",
            f"{groups.n_across:,} trials across groups and {groups.n_unknown:,} of unknown group are in none",
        ]
    return "\n".join(lines)


def show_rows(
    rows: Sequence[Mapping[str, Any]],
    report: Mapping[str, Any],
    json_path: Path | None,
    note: str,
    form: str = ".2f",
) -> None:
    """Show a result as JSON or as a table with a note below; undefined values stay blank."""
    if show_json(report, json_path):
        return
    forms: dict[str, str] = {}
    cleaned = []
    for row in rows:
        cells = {}
        for name, value in row.items():
            forms.setdefault(name, "")
            if isinstance(value, float):
                forms[name] = form
            cells[name] = None if value != value else value
        cleaned.append(cells)
    click.echo(format_table(cleaned, forms) + f"\n\n{note}")


def _titles_of_groups(groups: Groups) -> dict[str, str]:
    """Return the headings of the main and all user-supplied metrics, by the names of their numbers."""
    built_in = {metric.name for metric in METRICS}
    rows: dict[str, Metric] = {}
    for metric in groups.metrics:
        rows |= dict.fromkeys((name for name, _ in metric.numbers()), metric)
    titles = {name: rows[name].short for name in _OF_GROUPS if name in rows}
    for name, metric in rows.items():
        if metric.name not in built_in:
            titles[name] = metric.short or metric.title or name
    return titles


def _extreme_rows(groups: Groups, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for each metric: its worst group, the highest and the lowest, and the gap between the two."""
    rows = []
    for metric, title in titles.items():
        extreme = groups.extremes.get(metric)
        if extreme is None:
            continue
        row: dict[str, Any] = {
            "metric": title,
            "worst": extreme.worst,
            "highest": extreme.highest,
            "lowest": extreme.lowest,
        }
        if not math.isnan(extreme.gap.low):
            row |= {"gap from": extreme.gap.low, "to": extreme.gap.high}
        rows.append(row | {"gap": extreme.gap.value})
    return rows
