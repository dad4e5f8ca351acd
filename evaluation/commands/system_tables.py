"""Several systems in one table: for the terminal, for Markdown, and for a paper in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.metrics import Evaluation, format_value, metric_lines
from evaluation.plots import escape
from evaluation.uncertainty import Interval
from spkbase.errors import ConfigError
from spkbase.files import format_table
from spkbase.showing import one_line

PAPER = ("eer.rocch", "min_dcf.0.01", "cllr", "min_cllr", "zebra.population", "d_sys_pav")
"""The columns of a table, unless others are asked for."""

Differences = Mapping[str, Mapping[str, Interval]]
Rows = list[dict[str, str]]


@one_line
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

    def written(self, value: float) -> str:
        """Return a number as it stands in a cell."""
        if value != value:
            return "-"
        if self.form == "zebra":
            return format_value(value)
        return f"{100 * value:.2f}" if self.form == "%" else format(value, ".3f" if self.form == ".4f" else self.form)

    def with_ends(self, value: float, ends: tuple[float, float] | None) -> str:
        """Return a number with its interval in brackets, where there is one."""
        if ends is None or ends[0] != ends[0] or ends[1] != ends[1]:
            return self.written(value)
        return f"{self.written(value)} [{self.written(ends[0])}, {self.written(ends[1])}]"


def chosen_columns(result: Evaluation, names: Sequence[str]) -> list[Column]:
    """Return the columns of some metrics, or of those for a paper that a result has.

    Raises
    ------
    ConfigError
        If a name is not there; those that are stand in the error.
    """
    known = {
        name: Column(name, f"{title} [%]" if form == "%" else title, form)
        for name, title, form in metric_lines(result.metrics, result.results)
    }
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"no metric {', '.join(map(repr, unknown))}; there are: {', '.join(known)}")
    return [known[name] for name in names or PAPER if name in known]


def system_rows(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> Rows:
    """Return a row for each system: its name and its metrics with their intervals."""
    return [
        {"system": label}
        | {
            column.heading: column.with_ends(result.values()[column.name], result.intervals.get(column.name))
            for column in columns
        }
        for label, result in results.items()
    ]


def difference_rows(differences: Differences, columns: Sequence[Column], reference: str) -> Rows:
    """Return a row for each system: its metrics less those of the reference, with intervals."""
    return [
        {"system": f"{label} less {reference}"}
        | {
            column.heading: column.with_ends(of.value, (of.low, of.high))
            for column in columns
            if (of := found[column.name]) is not None
        }
        for label, found in differences.items()
    ]


def format_systems(results: Mapping[str, Evaluation], columns: Sequence[Column]) -> str:
    """Return the table of the terminal, with the notes of each system below."""
    counts = {label: f"{result.n_target:,} + {result.n_nontarget:,}" for label, result in results.items()}
    rows = [{"system": row["system"], "trials": counts[row["system"]]} | row for row in system_rows(results, columns)]
    notes = [
        f"{label}: {text}"
        for label, result in results.items()
        for name, text in result.notes.items()
        if name in ("scores", "intervals", *(column.name for column in columns))
    ]
    return "\n".join([format_table(rows), *([""] if notes else []), *dict.fromkeys(notes)])


def format_paper_markdown(rows: Sequence[Mapping[str, str]], differences: Sequence[Mapping[str, str]]) -> str:
    """Return the tables as Markdown."""
    parts = [format_table(rows, markdown=True)]
    if differences:
        parts += ["Differences:", format_table(differences, markdown=True)]
    return "\n\n".join(parts) + "\n"


def format_paper_latex(
    rows: Sequence[Mapping[str, str]], differences: Sequence[Mapping[str, str]], *, caption: str, label: str
) -> str:
    r"""Return a ``table`` for a paper, of booktabs; differences stand below a rule of their own."""
    headings = list(rows[0])
    blocks = [rows, *([differences] if differences else [])]
    lines = [
        "% \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
        r"\toprule",
        _tex_line(headings),
    ]
    for block in blocks:
        lines += [r"\midrule", *(_tex_line([row[heading] for heading in headings]) for row in block)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _tex_line(cells: Sequence[str]) -> str:
    # a minus is one only in mathematics
    texts = [escape(cell) for cell in cells]
    numbers = [re.sub(r"(?<![^\[ ])-(?=\d|inf)", "$-$", text) for text in texts[1:]]
    return " & ".join([texts[0], *numbers]) + r" \\"
