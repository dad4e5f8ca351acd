"""Tables of the page: a caption, headers with their scope, rows that become blocks on a narrow screen where asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.reports.page.markup import Html, element

_ROLES = ("table", "rowgroup", "row", "columnheader", "rowheader")


@dataclass(frozen=True)
class Cell:
    """What a cell holds, and its own class beside that of its column."""

    content: Any
    style: str | None = None


Row = tuple[Any, Sequence[Any]]


def table(
    columns: Sequence[str],
    groups: Iterable[tuple[str | None, Iterable[Row]]],
    *,
    caption: str,
    label: str | None = None,
    kind: str = "grid",
    numbers: Sequence[int] = (),
    classes: dict[int, str] | None = None,
) -> Html:
    """Build a table whose first column names the rows.

    Parameters
    ----------
    columns : sequence of str
        Headers, that of the first column included.
    groups : iterable of (str or None, rows)
        Rows below a heading of their own, or without; a row is (header, cells), a cell a value or `Cell`.
    caption : str
        What the table shows.
    label : str, optional
        The same for those who do not see what stands above; the caption by default.
    kind : {"grid", "stack", "plain"}
        With "stack" each row becomes a block on a narrow screen, "plain" is for names and values.
    numbers : sequence of int
        Columns to set to the right, from 0.
    classes : dict of int to str, optional
        Classes of the cells of a column.
    """
    # blocks are no table to a screen reader unless it is told so
    roles = {
        name: name if kind == "stack" else None
        for name in ("table", "rowgroup", "row", "columnheader", "rowheader", "cell")
    }
    styles = [_classes((classes or {}).get(place), place in numbers) for place in range(len(columns))]
    head = [
        element("th", name, scope="col", class_=style, role=roles["columnheader"])
        for name, style in zip(columns, styles, strict=True)
    ]
    bodies = []
    for heading, rows in groups:
        lines = []
        if heading is not None:
            top = element(
                "th", heading, colspan=len(columns), scope="rowgroup", class_="group", role=roles["rowheader"]
            )
            lines.append(element("tr", top, role=roles["row"]))
        for header, cells in rows:
            line = [element("th", header, scope="row", role=roles["rowheader"])]
            for name, style, content in zip(columns[1:], styles[1:], cells, strict=True):
                cell = content if isinstance(content, Cell) else Cell(content)
                line.append(_cell(cell, name if kind == "stack" else None, style))
            lines.append(element("tr", line, role=roles["row"]))
        bodies.append(element("tbody", lines, role=roles["rowgroup"]))
    top = element("thead", element("tr", head, role=roles["row"]), role=roles["rowgroup"])
    made = element("table", element("caption", caption), top, bodies, class_=kind, role=roles["table"])
    if kind == "plain":
        return made
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=label or caption)


def listing(rows: Iterable[tuple[Any, Any]], columns: tuple[str, str], *, caption: str, hashes: bool = False) -> Html:
    """Build a table of names and values."""
    classes = {1: "hash"} if hashes else None
    lines = [(name, [value]) for name, value in rows]
    return table(columns, [(None, lines)], caption=caption, kind="plain", classes=classes)


def _cell(cell: Cell, name: str | None, style: str | None) -> Html:
    """Build a cell; with the name of its column where the row becomes a block."""
    style = " ".join(filter(None, (style, cell.style))) or None
    if name is None:
        return element("td", cell.content, class_=style)
    return element("td", element("span", cell.content), class_=style, role="cell", data_name=name)


def _classes(name: str | None, number: bool) -> str | None:
    return " ".join(filter(None, (name, "number" if number else None))) or None
