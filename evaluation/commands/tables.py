"""Results as tables: for the terminal, for Markdown, and for a paper in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from evaluation.commands.shared import show_json
from evaluation.metrics import METRICS, Evaluation
from evaluation.plots import escape
from evaluation.uncertainty import Groups, Interval, holm, p_text
from spkbase.errors import ConfigError
from spkbase.files import format_table, write_text

PAPER = ("eer.rocch", "min_dcf.0.01", "cllr", "min_cllr", "zebra.population", "d_sys_pav")
"""The columns of a table, unless others are asked for."""

# the built-in metrics that the narrow table of groups has room for; user-supplied metrics are always there
_OF_GROUPS = ("eer.rocch", "min_cllr", "cllr", "zebra.population", "d_sys_pav")

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Column:
    """A metric as a column.

    Attributes
    ----------
    name : str
        As `Evaluation.values` gives it.
    heading : str
        With its unit.
    form : str
        How its numbers are written; "%" for fractions in per cent.
    """

    name: str
    heading: str
    form: str

    def cell(self, value: float | str, low: float = math.nan, high: float = math.nan) -> str:
        """Return a number as a cell shows it, with its interval in brackets where there is one; or a text."""
        return value if isinstance(value, str) else Interval(value, low, high).text(self.form)


def chosen_columns(result: Evaluation, names: Sequence[str]) -> list[Column]:
    """Return the columns of some metrics, or of those for a paper that a result has; ``eer`` is that of the paper.

    Raises
    ------
    ConfigError
        If a name is unknown; the error lists the known ones.
    """
    known = {
        name: Column(name, f"{title} [%]" if unit.form == "%" else title, unit.form)
        for name, (title, unit) in result.titles().items()
    }
    for metric in result.metrics:
        if metric.beside is not None:  # in brackets its title has what is beside the number of one system
            known[metric.name] = replace(known[metric.name], heading=metric.title.partition(" (")[0])
    texts = [name for name, value in _values(result).items() if isinstance(value, str)]
    known |= {name: Column(name, name.rpartition(".")[2], "") for name in texts}
    usual = {name.partition(".")[0]: name for name in PAPER if name in known}
    names = [name if name in known else usual.get(name, name) for name in names]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"no metric {', '.join(map(repr, unknown))}; there are: {', '.join(known)}")
    return [known[name] for name in names or PAPER if name in known]


def _values(result: Evaluation) -> dict[str, float | str]:
    """Return the numbers of a result, and the texts beside them, such as ``zebra.tag``."""
    groups = ((head, group) for head, group in result.results.items() if isinstance(group, dict))
    texts = {f"{head}.{name}": text for head, group in groups for name, text in group.items() if isinstance(text, str)}
    return result.values() | texts


def system_rows(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> list[dict[str, str]]:
    """Return a row for each system: its name and its metrics with their intervals."""
    rows = []
    for label, result in results.items():
        values, intervals = _values(result), result.intervals
        cells = {one.heading: one.cell(values[one.name], *intervals.get(one.name, ())) for one in columns}
        rows.append({"system": label, **cells})
    return rows


def difference_rows(
    differences: Mapping[str, Mapping[str, Interval]], columns: Sequence[Column], reference: str
) -> list[dict[str, str]]:
    """Return a row for each system: its metrics minus those of the reference, with intervals and p-values (Holm)."""
    pairs = [(label, one) for label, found in differences.items() for one in columns if one.name in found]
    p_values = holm([differences[label][one.name].p_value for label, one in pairs]).tolist()
    blank = dict.fromkeys([one.heading for one in columns], "")
    rows = {label: {"system": f"{label} minus {reference}"} | blank for label in differences}
    for (label, one), p_value in zip(pairs, p_values, strict=True):
        gap = differences[label][one.name]
        rows[label][one.heading] = ", ".join(filter(None, [gap.text(one.form), p_text(p_value)]))
    return list(rows.values())


def format_systems(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> str:
    """Return the table of the terminal, with the notes of each system below."""
    counts = {label: f"{result.n_target:,} + {result.n_nontarget:,}" for label, result in results.items()}
    rows = [{"system": row["system"], "trials": counts[row["system"]]} | row for row in system_rows(results, columns)]
    shown = ("scores", "intervals", *(column.name for column in columns))
    texts = [(label, name, text) for label, result in results.items() for name, text in result.notes.items()]
    notes = [f"{label}: {text}" for label, name, text in texts if name in shown]
    return "\n".join([format_table(rows), *([""] if notes else []), *dict.fromkeys(notes)])


def write_papers(
    rows: Rows, differences: Rows, *, latex: Path | None, markdown: Path | None, caption: str, label: str
) -> None:
    """Write a table of systems and of their differences to the files given."""
    if markdown is not None:
        parts = [format_table(rows, markdown=True)]
        parts += ["Differences:", format_table(differences, markdown=True)] if differences else []
        write_text(markdown, "\n\n".join(parts) + "\n")
    if latex is not None:
        write_text(latex, format_latex(rows, differences, caption=caption, label=label))


def format_latex(rows: Rows, differences: Rows, *, caption: str, label: str) -> str:
    r"""Return a ``table`` for a paper, of booktabs; differences are below a separate rule."""

    def line(cells: Sequence[str]) -> str:
        # a minus is one only in mathematics
        texts = [escape(cell) for cell in cells]
        numbers = [re.sub(r"(?<![^\[ ])-(?=\d|inf)", "$-$", text) for text in texts[1:]]
        return " & ".join([texts[0], *numbers]) + r" \\"

    headings = list(rows[0])
    lines = [
        "% \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
        r"\toprule",
        line(headings),
    ]
    for block in [rows, *([differences] if differences else [])]:
        lines += [r"\midrule", *(line([row[heading] for heading in headings]) for row in block)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def format_groups(groups: Groups) -> str:
    """Return the main metrics of each group as a table, and a second one of where each is highest and lowest."""
    ours = {name: metric for metric in groups.metrics for name, _ in metric.numbers()}
    built_in = {metric.name for metric in METRICS}
    titles = {name: ours[name].short for name in _OF_GROUPS if name in ours}
    titles |= {name: one.short or one.title or name for name, one in ours.items() if one.name not in built_in}
    rows = [
        {groups.column: name, "target": group.n_target, "nontarget": group.n_nontarget}
        | {title: group.metrics.get(metric) for metric, title in titles.items()}
        for name, group in groups.groups.items()
    ]
    forms = {groups.column: "", "target": ",", "nontarget": ","} | dict.fromkeys(titles.values(), ".4f")
    lines = [format_table(rows, forms)]
    extremes = []
    for metric, title in titles.items():
        if (extreme := groups.extremes.get(metric)) is not None:
            row = {"metric": title, "worst": extreme.worst, "highest": extreme.highest, "lowest": extreme.lowest}
            ends = {"gap from": extreme.gap.low, "to": extreme.gap.high} if extreme.gap.low == extreme.gap.low else {}
            extremes.append({**row, "gap": extreme.gap.value, **ends})
    if extremes:
        gaps = ("gap", "gap from", "to") if any("to" in row for row in extremes) else ("gap",)
        forms = dict.fromkeys(("metric", "worst", "highest", "lowest"), "") | dict.fromkeys(gaps, ".4f")
        lines += ["", format_table(extremes, forms)]
    if groups.n_across or groups.n_unknown:
        lines += ["", f"{groups.n_across:,} trials across groups and {groups.n_unknown:,} of unknown group are in none"]
    return "\n".join(lines)


def show_rows(
    rows: Sequence[Mapping[str, Any]], report: Mapping[str, Any], json_path: Path | None, note: str, form: str = ".2f"
) -> None:
    """Show a result as JSON or as a table with a note below; what is undefined stays blank."""
    if show_json(report, json_path):
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    decimals = {name: form if any(isinstance(row.get(name), float) for row in rows) else "" for name in columns}
    cleaned = [{name: None if value != value else value for name, value in row.items()} for row in rows]
    click.echo(format_table(cleaned, decimals) + f"\n\n{note}")
