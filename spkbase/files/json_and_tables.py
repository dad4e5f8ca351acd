"""Reports: results as JSON, and as tables in text and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spkbase.errors import DataError
from spkbase.files.atomic import write_text


def to_json(value: Any) -> str:
    """Give a result as JSON, indented by two spaces, in its own order.

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
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def write_json(path: str | Path, value: Any) -> None:
    """Write a result as JSON, whole or not at all; see `to_json`."""
    write_text(path, to_json(value) + "\n")


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
        Bars between the columns, as in Markdown.

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
        cells = [[cell.replace("|", r"\|") for cell in line] for line in cells]
    widths = [max(3, *(len(line[place]) for line in cells)) for place in range(len(formats))]
    lines = [
        [cell.rjust(widths[place]) if right[place] else cell.ljust(widths[place]) for place, cell in enumerate(line)]
        for line in cells
    ]
    if markdown:
        rule = ["-" * (width - 1) + (":" if to_right else "-") for width, to_right in zip(widths, right, strict=True)]
        return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])
    return "\n".join("  ".join(line).rstrip() for line in [lines[0], ["-" * width for width in widths], *lines[1:]])


def _plain(value: Any) -> Any:
    """Turn what a result may hold into what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
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
