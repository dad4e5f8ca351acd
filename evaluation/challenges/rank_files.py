"""Reading and writing of the files ``result_for_rank<suffix>`` of VoicePrivacy 2024 and 2026, in pandas' printed form.

    ---- Time: 29-03-24_11:24 ----

    ---- ASV_eval results ----
      dataset split gender enrollment     trial     EER
    0   libri   dev      f   original  original  10.511

The file is made of sections: an optional line with the time, a title, and a table as pandas prints a data frame,
beginning with the row numbers. ``SER results`` has a second line of column names below the first. Numbers are percent.
Track 2 of 2026 has a section ``ASV_eval^anon results`` for each language, also without row numbers. Files that were
edited by hand (other blanks, times left out) are read too; files are written in the regular form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files import read_text_bytes, write_text
from spkbase.showing import one_line

SER = "SER results"
ASV = "ASV_eval results"
ASR = "ASR results"
ASV_ANON = "ASV_eval^anon results"
PROTOCOL = "Protocol"
"""An additional section of our files: whose EERs they are (``attacker``), and by which definition (``reading``)."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    SER: ("dataset", "split", "ser", "UAR"),
    ASV: ("dataset", "split", "gender", "enrollment", "trial", "EER"),
    ASR: ("dataset", "split", "asr", "WER"),
    ASV_ANON: ("dataset", "split", "gender", "enrollment", "trial", "EER"),
}
"""Columns that each section has at least; SER also has the recall of each emotion."""

_TITLE = re.compile(r"---- (?!Time)(.+?) ----$")
_TIME = re.compile(r"---- Time: (.+?) ----$")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|nan|inf)$", re.IGNORECASE)
_INDEX = re.compile(r"[0-9]{1,9}")

Cell = str | float
Lines = list[tuple[int, list[str]]]
"""Words of each line, with its number."""


@one_line
@dataclass(frozen=True)
class Section:
    """One table of a file.

    Attributes
    ----------
    title : str
        One of `SER`, `ASV`, `ASR`, `ASV_ANON`, or another.
    rows : sequence of dict of str to str or float
        Cells of each row by column, in the order of the columns. Numbers in percent.
    index : sequence of int, optional
        The number of each row, 0, 1, ... by default; empty for a table without row numbers.
    time : str, optional
        The time that is given before the title, as ``29-03-24_11:24``.
    """

    title: str
    rows: Sequence[Mapping[str, Cell]]
    index: Sequence[int] | None = None
    time: str | None = None


def records(sections: Sequence[Section], title: str) -> list[Mapping[str, Cell]]:
    """Return the rows of all sections with a title."""
    rows: list[Mapping[str, Cell]] = []
    for section in sections:
        if section.title == title:
            rows += section.rows
    return rows


def format_rank_file(sections: Sequence[Section]) -> str:
    """Return the text of a file.

    Examples
    --------
    >>> row = {"dataset": "libri", "split": "test", "asr": "anon", "WER": 4.25}
    >>> print(format_rank_file([Section(ASR, [row], time="29-03-24_11:24")]), end="")
    ---- Time: 29-03-24_11:24 ----
    <BLANKLINE>
    ---- ASR results ----
      dataset split   asr   WER
    0   libri  test  anon  4.25
    """
    import pandas as pd

    parts = []
    for section in sections:
        table = pd.DataFrame(list(section.rows), index=section.index or None)
        if section.title == SER:
            second = ["" if name in COLUMNS[SER][:3] else "mean" for name in table.columns]
            table.columns = pd.MultiIndex.from_arrays([table.columns, second])
        with pd.option_context("display.precision", 6):
            text = table.to_string(index=section.index is None or len(section.index) > 0)
        if section.time is None:
            time = ""
        else:
            time = f"---- Time: {section.time} ----\n\n"
        parts.append(f"{time}---- {section.title} ----\n{text}\n")
    return "\n".join(parts)


def write_rank_file(path: str | Path, sections: Sequence[Section]) -> None:
    """Write a file, whole or not at all."""
    write_text(path, format_rank_file(sections))


def read_rank_file(path: str | Path) -> list[Section]:
    """Return the sections of a file, in their order.

    Raises
    ------
    DataError
        With file and line, if a line belongs to no table, a row has another length, a number is malformed, a section
        lacks a column or repeats a row, or there is no section.
    """
    path = Path(path)
    sections = []
    first_lines: dict[tuple[str, ...], int] = {}
    for title, time, start, lines in _split_sections(path):
        rows, index = _table(title, start, lines, path)
        for (number, _), row in zip(lines[-len(rows) :], rows, strict=True):
            names = (title, *(cell for cell in row.values() if isinstance(cell, str)))
            if title in COLUMNS and first_lines.setdefault(names, number) < number:
                text = f"repeats line {first_lines[names]}: {' '.join(names[1:])}"
                raise DataError(text, file=path, line=number, remedy="remove one of them")
        sections.append(Section(title, rows, index, time))
    return sections


def _split_sections(path: Path) -> list[tuple[str, str | None, int, Lines]]:
    """Return the title of each section, the time above it, its line number, and the lines below it."""
    blocks: list[tuple[str, str | None, int, Lines]] = []
    time = None
    for number, line in enumerate(read_text_bytes(path).decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        dated = _TIME.match(text)
        titled = _TITLE.match(text)
        if dated:
            time = dated[1]
        elif titled:
            blocks.append((titled[1], time, number, []))
            time = None
        elif text:
            if not blocks or time is not None:
                raise DataError(
                    f"expected '---- ... ----', got {text[:60]!r}", file=path, line=number
                )
            blocks[-1][-1].append((number, text.split()))
    if not blocks:
        remedy = "give a result_for_rank file of VoicePrivacy 2024"
        raise DataError(
            "expected sections '---- ... results ----', got none", file=path, remedy=remedy
        )
    return blocks


def _table(
    title: str, start: int, lines: Lines, path: Path
) -> tuple[list[dict[str, Cell]], list[int]]:
    """Return the rows of the table below the title in line `start`, and their numbers."""
    known = COLUMNS.get(title, ())
    if len(lines) < 2:
        raise DataError(f"the section {title!r} has no table", file=path, line=start)
    (line, columns), *body = lines
    if len(set(columns)) < len(columns) or not set(known) <= set(columns):
        text = f"expected the columns {', '.join(known)} once each, got {', '.join(columns)}"
        raise DataError(text, file=path, line=line)
    without_index = bool(known) and _is_without_index(body, len(columns))
    if without_index:
        body = [(number, ["0", *cells]) for number, cells in body]
    elif not _INDEX.fullmatch(body[0][1][0]):  # a second header line
        body = body[1:]
    if not body:
        raise DataError(f"the section {title!r} has no row", file=path, line=start)
    _check_rows(body, len(columns), path)
    rows: list[dict[str, Cell]] = [dict(zip(columns, cells[1:], strict=True)) for _, cells in body]
    for name in columns:
        _read_numbers(rows, name, title, body, path)
    if without_index:
        return rows, []
    return rows, [int(cells[0]) for _, cells in body]


def _is_without_index(body: Lines, n_columns: int) -> bool:
    """Return whether no row begins with its number; a first row that ends with a word is a second header line."""
    if not _NUMBER.match(body[0][1][-1]):
        return False
    return all(len(cells) == n_columns and not _INDEX.fullmatch(cells[0]) for _, cells in body)


def _check_rows(body: Lines, n_columns: int, path: Path) -> None:
    """Refuse a row that does not begin with its number, or has another number of cells."""
    for number, cells in body:
        if len(cells) != n_columns + 1 or not _INDEX.fullmatch(cells[0]):
            text = f"expected a row number and {n_columns} cells, got {' '.join(cells)[:60]!r}"
            raise DataError(text, file=path, line=number)


def _read_numbers(
    rows: list[dict[str, Cell]], name: str, title: str, body: Lines, path: Path
) -> None:
    """Turn the cells of a column into numbers: rates, recalls of emotions, and any column that holds only numbers."""
    known = COLUMNS.get(title, ())
    cells = [str(row[name]) for row in rows]
    if name in known:
        is_numeric = name == known[-1]
    else:
        is_numeric = title == SER or all(map(_NUMBER.match, cells))
    if not is_numeric:
        return
    most = math.inf if name == "WER" else 100  # insertions have no limit; an undefined rate is NaN
    for (number, _), row, cell in zip(body, rows, cells, strict=True):
        if not _NUMBER.match(cell):
            raise DataError(f"expected a number as {name}, got {cell!r}", file=path, line=number)
        row[name] = float(cell)
        if known and (float(cell) < 0 or float(cell) > most or math.isinf(float(cell))):
            raise DataError(
                f"expected a rate in per cent as {name}, got {cell!r}", file=path, line=number
            )
