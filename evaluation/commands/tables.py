"""Results as tables: for the terminal, for Markdown, and for a paper in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from evaluation.commands.shared import show_json
from evaluation.metrics import METRICS, PRIORS, Evaluation
from evaluation.plots import escape
from evaluation.uncertainty import Groups, Interval, holm, p_text
from spkbase.errors import ConfigError
from spkbase.files import format_table

PAPER = ("eer.rocch", "min_dcf.0.01", "cllr", "min_cllr", "zebra.population", "d_sys_pav")
"""The columns of a table, unless others are asked for."""

NARROW = ("eer.rocch", "min_dcf.0.01", "min_cllr")
"""Those that a column of a paper (3.4 in) has room for."""

SCREEN = (*PAPER, "min_dcf.0.05", "d_sys")
"""The rows of a single system, unless all are asked for."""

# the built-in metrics that the narrow table of groups has room for; user-supplied metrics are always there
_OF_GROUPS = ("eer.rocch", "min_cllr", "cllr", "zebra.population", "d_sys_pav")

# where a cell of a narrow table goes on below, in small type: units, intervals, p-values
_BREAK = re.compile(r" (?=\[|\(|minus |at )|, (?=p )")
_MINUS = re.compile(r"(?<![^\[ ])-(?=\d|inf)")  # of a number, which TeX sets in mathematics

Rows = Sequence[Mapping[str, str]]
Differences = Mapping[str, Mapping[str, Interval]]


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


def usual_rows(result: Evaluation, priors: Sequence[str]) -> Evaluation:
    """Return a result with the metrics of `SCREEN` alone, user-supplied metrics, and costs at the priors asked for."""
    names = {*SCREEN, *(f"min_dcf.{prior}" for prior in priors if tuple(priors) != PRIORS)}
    built_in = {metric.name for metric in METRICS}
    kept = []
    for metric in result.metrics:
        points = [point for name, point in metric.numbers() if name in names or metric.name not in built_in]
        kept += [replace(metric, points=metric.points and tuple(points))] if points else []
    usual = replace(result, metrics=tuple(kept))
    hidden = result.values().keys() - usual.values().keys()
    notes = {name: text for name, text in result.notes.items() if name.removeprefix("intervals.") not in hidden}
    return replace(usual, notes=notes | ({"more": f"{len(hidden)} metrics by --all"} if hidden else {}))


def system_rows(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> list[dict[str, str]]:
    """Return a row for each system: its name and its metrics with their intervals."""
    rows = []
    for label, result in results.items():
        values, intervals = _values(result), result.intervals
        cells = {one.heading: one.cell(values[one.name], *intervals.get(one.name, ())) for one in columns}
        rows.append({"system": label, **cells})
    return rows


def corrected_p_values(differences: Differences, columns: Sequence[Column]) -> dict[tuple[str, Column], float]:
    """Return the p-value of each difference of a table, corrected for their number by Holm's method."""
    pairs = [(label, one) for label, found in differences.items() for one in columns if one.name in found]
    return dict(zip(pairs, holm([differences[label][one.name].p_value for label, one in pairs]).tolist(), strict=True))


def difference_rows(differences: Differences, columns: Sequence[Column], reference: str) -> list[dict[str, str]]:
    """Return a row for each system: its metrics minus those of the reference, with intervals and p-values (Holm)."""
    blank = dict.fromkeys([one.heading for one in columns], "")
    rows = {label: {"system": f"{label} minus {reference}"} | blank for label in differences}
    for (label, one), p_value in corrected_p_values(differences, columns).items():
        gap = differences[label][one.name]
        rows[label][one.heading] = ", ".join(filter(None, [gap.text(one.form), p_text(p_value)]))
    return list(rows.values())


def format_systems(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> str:
    """Return the table of the terminal, with the notes of each system below."""
    counts = {label: f"{result.n_target:,} + {result.n_nontarget:,}" for label, result in results.items()}
    rows = [{"system": row["system"], "trials": counts[row["system"]]} | row for row in system_rows(results, columns)]
    shown = ("scores", "intervals", "identification", *(column.name for column in columns))
    texts = [(label, name, text) for label, result in results.items() for name, text in result.notes.items()]
    notes = [f"{label}: {text}" for label, name, text in texts if name in shown]
    return "\n".join([format_table(rows), *([""] if notes else []), *dict.fromkeys(notes)])


def format_latex(rows: Rows, *, caption: str, label: str, best: Mapping[str, str] | None = None) -> str:
    r"""Return a narrow ``table`` for a paper, of booktabs: intervals are below their numbers, in small type.

    Parameters
    ----------
    rows : sequence of mapping of str to str
        Cells by heading; the first column names the systems.
    caption : str
        As TeX, without special letters of its own.
    label : str
        For references to the table.
    best : mapping of str to str, optional
        System whose number is bold, by heading.
    """
    headings, blocks = list(rows[0]), []
    for row in [dict(zip(headings, headings, strict=True)), *rows]:
        lines = []
        bold = [(best or {}).get(heading) == row[headings[0]] for heading in headings]
        for depth, parts in enumerate(zip_longest(*map(_BREAK.split, row.values()), fillvalue="")):
            texts = [f"${one}$" if one[:3] in ("p =", "p <") else _MINUS.sub("$-$", escape(one)) for one in parts]
            forms = [r"{\scriptsize %s}" if depth else r"\textbf{%s}" if thick else "%s" for thick in bold]
            lines.append(" & ".join(text and form % text for form, text in zip(forms, texts, strict=True)) + r" \\")
        blocks.append("\n".join(lines))
    lines = [
        "% \\usepackage{booktabs}; up to three metrics with intervals fit a column of 3.4 in, more fit table*",
        r"\begin{table}\centering\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{caption}}}\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}\toprule",
        "\n\\addlinespace[2pt]\n".join(blocks).replace(r"\addlinespace[2pt]", r"\midrule", 1),
        "\\bottomrule\\end{tabular}\n\\end{table}\n",
    ]
    return "\n".join(lines)


def paper_tables(
    results: Mapping[str, Evaluation], differences: Differences, columns: Sequence[Column], reference: str
) -> str:
    """Return the metrics of systems, and their differences, as two narrow tables in LaTeX.

    The best number of a metric is bold if its difference from the reference is significant at 5 % (Holm), that of the
    reference if the differences of all others are.
    """
    best, name, p_values = {}, escape(reference), corrected_p_values(differences, columns)
    worse = {number: metric.worse for metric in results[reference].metrics for number, _ in metric.numbers()}
    for one in columns:
        if differences and one.name in worse:
            values = {label: found.values()[one.name] for label, found in results.items()}
            label = (min if worse[one.name] == "high" else max)(values, key=values.__getitem__)
            others = differences if label == reference else [label]
            if all(p_values.get((other, one), 1.0) < 0.05 for other in others):
                best[one.heading] = label
    intervals = escape(results[reference].notes.get("intervals", ""))
    caption = "Metrics of the systems." + (f" In brackets: {intervals}." if intervals else "")
    if best:
        caption += f" Bold: best, and significantly different from {name} (or {name} from all others), $p < 0.05$."
    text = format_latex(system_rows(results, columns), caption=caption, label="tab:metrics", best=best)
    if differences:
        caption = f"Differences from {name}. In brackets: {intervals}. Each $p$ is corrected by Holm's method."
        gaps = difference_rows(differences, columns, reference)
        text += "\n" + format_latex(gaps, caption=caption, label="tab:differences")
    return text


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
