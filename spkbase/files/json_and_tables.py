"""Reports: results as JSON, and as tables in text and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spkbase.errors import DataError
from spkbase.files.atomic import as_plain, write_text


def to_json(value: Any) -> str:
    """Return a result as JSON, indented by two spaces, in its own order.

    JSON knows no infinite and no undefined numbers: they become ``"inf"``, ``"-inf"`` and ``null``.

    Parameters
    ----------
    value : object
        Mappings, sequences, dataclasses, NumPy numbers and arrays, paths, text, numbers, None.

    Raises
    ------
    DataError
        If it holds something else.

    Examples
    --------
    >>> print(to_json({"eer": np.float64(0.25), "threshold": float("-inf"), "cllr": float("nan")}))
    {
      "eer": 0.25,
      "threshold": "-inf",
      "cllr": null
    }
    """
    return json.dumps(as_plain(value, _as_json), indent=2, ensure_ascii=False, allow_nan=False)


def write_json(path: str | Path, value: Any) -> None:
    """Write a result as JSON, whole or not at all; see `to_json`."""
    write_text(path, to_json(value) + "\n")


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> str:
    r"""Lay out rows with commas, below a header.

    Parameters
    ----------
    columns : sequence of str
        The header.
    rows : iterable of mappings or sequences
        Values by column, or in the order of the columns. None and what a mapping lacks stay blank; what a mapping has
        beyond the columns is passed over. A text that a spreadsheet would take for a formula gets an apostrophe.

    Examples
    --------
    >>> format_csv(["system", "EER"], [{"system": "svm"}, ("a, b", 0.25), ("=1+2", -1.5)])
    'system,EER\nsvm,\n"a, b",0.25\n\'=1+2,-1.5\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [row.get(name, "") for name in columns] if isinstance(row, Mapping) else row
        writer.writerow([_without_formula(cell) for cell in cells])
    return text.getvalue()


def _without_formula(cell: Any) -> Any:
    """A cell that no spreadsheet runs: ids come from anywhere, and a table goes to somebody else."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def format_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str] | Sequence[str] | None = None,
    *,
    markdown: bool = False,
) -> str:
    """Lay out rows as a table; numbers stand to the right, other columns to the left.

    Parameters
    ----------
    rows : sequence of mappings
        One for each line; values that are missing or None stay blank.
    columns : mapping of str to str, or sequence of str, optional
        Columns in their order, with a format such as ``".2f"`` each, or without. Those of the first row by default.
    markdown : bool
        Bars between the columns, as in Markdown, where no cell is read as markup.

    Examples
    --------
    >>> rows = [{"system": "svm", "EER": 3.456}, {"system": "gmm", "EER": 12.0}]
    >>> print(format_table(rows, {"system": "", "EER": ".2f"}))
    system    EER
    ------  -----
    svm      3.46
    gmm     12.00
    """
    if columns is None:
        columns = list(rows[0]) if rows else []
    if not columns:
        return ""
    formats = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
    cells = [list(formats), *([_cell(row.get(name), form) for name, form in formats.items()] for row in rows)]
    right = [any(_is_number(row.get(name)) for row in rows) for name in formats]
    if markdown:
        cells = [[escape_markdown(cell) for cell in line] for line in cells]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(formats))]
    lines = [
        [
            cell.rjust(widths[column]) if right[column] else cell.ljust(widths[column])
            for column, cell in enumerate(line)
        ]
        for line in cells
    ]
    if markdown:
        rule = ["-" * (width - 1) + (":" if to_right else "-") for width, to_right in zip(widths, right, strict=True)]
        return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])
    return "\n".join("  ".join(line).rstrip() for line in [lines[0], ["-" * width for width in widths], *lines[1:]])


def escape_markdown(text: str) -> str:
    """Keep a text from being read as markup: on one line, without links, tags, emphasis, code or cells.

    Examples
    --------
    >>> print(escape_markdown("[x](y) <b> a_b 5 [4, 6]"))
    [x]\\(y) \\<b\\> a\\_b 5 [4, 6]
    """
    return re.sub(r"[\\`*_<>|]|(?<=\])\(", r"\\\g<0>", " ".join(text.split()))


def _as_json(value: Any) -> Any:
    """Turn a single value of a result into what JSON knows."""
    if isinstance(value, (np.ndarray, np.generic)):
        return as_plain(value.tolist(), _as_json)
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DataError(f"expected what JSON can hold, got {type(value).__name__}: {value!r}")


def _cell(value: Any, form: str) -> str:
    return "" if value is None else format(value, form if _is_number(value) else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
