"""Tables of systems on the same trials: metrics with intervals, and differences, for screen and paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.metrics import Metric
from evaluation.uncertainty.intervals import Interval, holm, p_text
from spkbase.showing import escape_tex, latex_table

Systems = Mapping[str, Mapping[str, "Interval | str"]]
"""Of each system the numbers with their intervals, and texts, by the names of metrics."""

Differences = Mapping[str, Mapping[str, Interval]]


@dataclass(frozen=True)
class Column:
    """A metric as a column.

    Attributes
    ----------
    name : str
        Name, as in `Evaluation.values`.
    heading : str
        Heading with the unit.
    form : str
        How its numbers are written; "%" for fractions in per cent.
    worse : {"high", "low", ""}
        Which values are bad for the system; empty for texts.
    """

    name: str
    heading: str
    form: str
    worse: str = ""

    def cell(self, value: Interval | str) -> str:
        """Return the text of a cell: a number with its interval in brackets if there is one, or a text."""
        if isinstance(value, str):
            return value
        return value.text(self.form)


def columns_of(metrics: Sequence[Metric]) -> dict[str, Column]:
    """Return each number of a table of metrics as a column, by its name."""
    columns = {}
    for metric in metrics:
        for name, point in metric.numbers():
            # the brackets in a title show a value of a single system
            if metric.beside is not None:
                title = metric.title.partition(" (")[0]
            else:
                title = metric.title_at(point)
            heading = f"{title} [%]" if metric.unit.form == "%" else title
            columns[name] = Column(name, heading, metric.unit.form, metric.worse)
    return columns


def system_rows(systems: Systems, columns: Sequence[Column]) -> list[dict[str, str]]:
    """Return a row for each system: its name and its metrics with their intervals."""
    rows = []
    for label, values in systems.items():
        rows.append(
            {"system": label}
            | {column.heading: column.cell(values[column.name]) for column in columns}
        )
    return rows


def corrected_p_values(
    differences: Differences, columns: Sequence[Column]
) -> dict[tuple[str, Column], float]:
    """Return the p-values of the differences of a table, corrected for multiple comparisons by Holm's method."""
    alone = {}
    for label, gaps in differences.items():
        for column in columns:
            if column.name in gaps:
                alone[label, column] = gaps[column.name].p_value
    return dict(zip(alone, holm(list(alone.values())).tolist(), strict=True))


def difference_rows(
    differences: Differences,
    columns: Sequence[Column],
    reference: str,
    *,
    family: Sequence[Column] = (),
) -> list[dict[str, str]]:
    """Return a row for each system: its metrics minus those of the reference, with intervals and p-values (Holm).

    P-values are corrected for all columns of the family, shown or not; by default for the columns shown.
    """
    blank = dict.fromkeys([column.heading for column in columns], "")
    rows = {label: {"system": f"{label} minus {reference}"} | blank for label in differences}
    for (label, column), p_value in corrected_p_values(differences, family or columns).items():
        if column not in columns:
            continue
        gap = differences[label][column.name]
        rows[label][column.heading] = ", ".join(
            filter(None, [gap.text(column.form), p_text(p_value)])
        )
    return list(rows.values())


def paper_tables(
    systems: Systems,
    differences: Differences,
    columns: Sequence[Column],
    reference: str,
    *,
    family: Sequence[Column] = (),
    note: str = "",
    caption: str | None = None,
    label: str = "tab:metrics",
) -> str:
    """Return the metrics of systems, and their differences, as two narrow tables in LaTeX.

    The best number of a metric is bold if its difference from the reference is significant at 5 % (Holm), that of the
    reference if the differences of all others are.

    Parameters
    ----------
    systems, differences, columns
        What the tables show.
    reference : str
        The system that the others are compared with.
    family : sequence of Column
        The columns for whose number p-values are corrected; by default those shown.
    note : str
        How the intervals were made, for the captions.
    caption : str, optional
        Caption of the first table, as TeX; by default it describes the table.
    label : str
        Label of the first table.
    """
    name = escape_tex(reference)
    p_values = corrected_p_values(differences, family or columns)
    best = _best_systems(systems, differences, columns, reference, p_values)
    if caption is None:
        caption = "Metrics of the systems."
        if note:
            caption += f" In brackets: {escape_tex(note)}."
        if best:
            caption += f" Bold: best, and significantly different from {name} (or {name} from all others), $p < 0.05$."
    text = latex_table(system_rows(systems, columns), caption=caption, label=label, best=best)
    if differences:
        below = f"Differences from {name}. In brackets: {escape_tex(note)}."
        below += f" Each $p$ is corrected by Holm's method, for {len(p_values)}."
        gaps = difference_rows(differences, columns, reference, family=family)
        text += "\n" + latex_table(gaps, caption=below, label="tab:differences")
    return text


def _best_systems(
    systems: Systems,
    differences: Differences,
    columns: Sequence[Column],
    reference: str,
    p_values: Mapping[tuple[str, Column], float],
) -> dict[str, str]:
    """Return, by heading, the system that is significantly the best in each column."""
    best: dict[str, str] = {}
    for column in columns:
        if differences and column.worse:
            values = {
                system: getattr(row[column.name], "value", 0.0) for system, row in systems.items()
            }
            first = min if column.worse == "high" else max
            system = first(values, key=values.__getitem__)
            others = differences if system == reference else [system]
            if all(p_values.get((other, column), 1.0) < 0.05 for other in others):
                best[column.heading] = system
    return best
