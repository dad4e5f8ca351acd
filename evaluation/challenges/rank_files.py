"""VoicePrivacy 2024's and 2026's ``result_for_rank<suffix>``: read, and written byte for byte as pandas lays them out.

    ---- Time: 29-03-24_11:24 ----

    ---- ASV_eval results ----
      dataset split gender enrollment     trial     EER
    0   libri   dev      f   original  original  10.511

The file is made of sections: a line of the time now and then, a title, and a table as pandas prints a data frame, its
row numbers first. ``SER results`` has a second line of column names below the first. Numbers are percent. Track 2 of
2026 has a section ``ASV_eval^anon results`` for each language, also without row numbers. Files that were edited by hand
(other blanks, times left out) are read too; what is written then has the regular form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files import line_at, not_text, read_text_bytes, write_text
from spkbase.showing import one_line

SER, ASV, ASR, ASV_ANON = "SER results", "ASV_eval results", "ASR results", "ASV_eval^anon results"
PROTOCOL = "Protocol"
"""A section that files of ours have besides: whose EERs they are (``attacker``), read how (``reading``)."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    SER: ("dataset", "split", "ser", "UAR"),
    ASV: ("dataset", "split", "gender", "enrollment", "trial", "EER"),
    ASR: ("dataset", "split", "asr", "WER"),
    ASV_ANON: ("dataset", "split", "gender", "enrollment", "trial", "EER"),
}
"""Columns that each section has at least; SER has the recall of each emotion besides."""

_TITLE = re.compile(r"---- (?!Time)(.+?) ----$")
_TIME = re.compile(r"---- Time: (.+?) ----$")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|nan|inf)$", re.IGNORECASE)
_INDEX = re.compile(r"[0-9]{1,9}")

Cell = str | float


@one_line
@dataclass(frozen=True)
class Section:
    """One table of a file.

    Attributes
    ----------
    title : str
        Such as ``"ASR results"``.
    columns : tuple of str
        Names of the columns.
    rows : tuple of tuple of str or float
        Cells of each row, in the order of the columns.
    index : tuple of int
        The number that each row bears; empty for a table without.
    subtitles : tuple of str
        The second line of names, blank where there is none; empty for tables without.
    time : str or None
        The time that is told before the title.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    index: tuple[int, ...]
    subtitles: tuple[str, ...] = ()
    time: str | None = None


@one_line
@dataclass(frozen=True)
class RankFile:
    """The sections of a file, in their order."""

    sections: tuple[Section, ...]

    def records(self, title: str) -> list[dict[str, Cell]]:
        """Return each row of the sections of a title as a mapping of column to cell."""
        found = [section for section in self.sections if section.title == title]
        return [dict(zip(section.columns, row, strict=True)) for section in found for row in section.rows]

    def value(self, title: str, column: str, **where: str) -> float | None:
        """Return the number of the one row whose cells are as asked for; None if there is no such row.

        Raises
        ------
        DataError
            If several rows are, or the cell is no number.
        """
        rows = [row for row in self.records(title) if all(row.get(name) == cell for name, cell in where.items())]
        cells = [row[column] for row in rows]
        if len(cells) > 1 or any(isinstance(cell, str) for cell in cells):
            raise DataError(f"section {title!r}: expected one number {column} for {where}, got {cells}")
        return float(cells[0]) if cells else None


def make_section(
    title: str, records: Sequence[Mapping[str, Cell]], *, index: Sequence[int] | None = None, time: str | None = None
) -> Section:
    """Return a section of rows by name.

    Parameters
    ----------
    title : str
        One of `SER`, `ASV`, `ASR`, `ASV_ANON`, or another.
    records : sequence of mappings
        Rows; the columns are those of `COLUMNS` and then the others of the first row. Numbers in percent.
    index : sequence of int, optional
        Number of each row; 0, 1, ... by default.
    time : str, optional
        Told before the title, as ``29-03-24_11:24``.

    Raises
    ------
    DataError
        If there is no row, or a row lacks a column.
    """
    if not records:
        raise DataError(f"section {title!r} has no row", remedy="leave it out")
    known = COLUMNS.get(title, ())
    columns = (*known, *(name for name in records[0] if name not in known))
    for record in records:
        if set(record) != set(columns):
            raise DataError(f"section {title!r}: expected the columns {', '.join(columns)}, got {', '.join(record)}")
    rows = tuple(tuple(record[name] for name in columns) for record in records)
    subtitles = tuple("" if name in known[:3] else "mean" for name in columns) if title == SER else ()
    return Section(title, columns, rows, tuple(range(len(rows)) if index is None else index), subtitles, time)


def format_rank_file(file: RankFile) -> str:
    """Return the text of a file.

    Examples
    --------
    >>> row = {"dataset": "libri", "split": "test", "asr": "anon", "WER": 4.25}
    >>> print(format_rank_file(RankFile((make_section(ASR, [row], time="29-03-24_11:24"),))), end="")
    ---- Time: 29-03-24_11:24 ----
    <BLANKLINE>
    ---- ASR results ----
      dataset split   asr   WER
    0   libri  test  anon  4.25
    """
    import pandas as pd

    parts = []
    for section in file.sections:
        names = pd.Index(section.columns)
        if section.subtitles:
            names = pd.MultiIndex.from_tuples(list(zip(section.columns, section.subtitles, strict=True)))
        table = pd.DataFrame(list(section.rows), columns=names, index=list(section.index) or None)
        with pd.option_context("display.precision", 6):
            text = table.to_string(index=bool(section.index))
        time = "" if section.time is None else f"---- Time: {section.time} ----\n\n"
        parts.append(f"{time}---- {section.title} ----\n{text}\n")
    return "\n".join(parts)


def write_rank_file(path: str | Path, file: RankFile) -> None:
    """Write a file, whole or not at all."""
    write_text(path, format_rank_file(file))


def read_rank_file(path: str | Path) -> RankFile:
    """Return the sections of a file.

    Raises
    ------
    DataError
        With file and line: a line that is no part of a table, a row of another length, no number where one is expected,
        a section that lacks a column; a row that was there; no section at all.
    """
    path = Path(path)
    raw = read_text_bytes(path)
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise not_text(path, line_at(raw, error.start), "it holds other bytes") from None
    parts: list[tuple[str, str | None, int, list[tuple[int, list[str]]]]] = []
    time = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if match := _TIME.match(text):
            time = match[1]
        elif match := _TITLE.match(text):
            parts.append((match[1], time, number, []))
            time = None
        elif text:
            if not parts or time is not None:
                raise DataError(f"expected '---- ... ----', got {text[:60]!r}", file=path, line=number)
            parts[-1][-1].append((number, text.split()))
    if not parts:
        remedy = "give a result_for_rank file of VoicePrivacy 2024"
        raise DataError("expected sections '---- ... results ----', got none", file=path, remedy=remedy)
    seen: dict[tuple[str, ...], int] = {}
    return RankFile(tuple(_section(*part, path, seen) for part in parts))


def _section(
    title: str,
    time: str | None,
    start: int,
    block: list[tuple[int, list[str]]],
    path: Path,
    seen: dict[tuple[str, ...], int],
) -> Section:
    """Read the cells of the lines below a title, with their numbers; `seen` holds the rows that were there before."""
    known = COLUMNS.get(title, ())
    if len(block) < 2:
        raise DataError(f"the section {title!r} has no table", file=path, line=start)
    (line, columns), *body = block
    if len(set(columns)) < len(columns) or not set(known) <= set(columns):
        text = f"expected the columns {', '.join(known)} once each, got {', '.join(columns)}"
        raise DataError(text, file=path, line=line)
    bare = all(len(cells) == len(columns) and not _INDEX.fullmatch(cells[0]) for _, cells in body)
    bare = bare and title in COLUMNS and bool(_NUMBER.match(body[0][1][-1]))
    if bare:
        body = [(number, ["0", *cells]) for number, cells in body]
    subtitles: tuple[str, ...] = ()
    if not _INDEX.fullmatch(body[0][1][0]):  # names below the names, of the last columns
        below = body.pop(0)[1]
        if len(below) > len(columns):
            raise DataError(f"expected at most {len(columns)} names, got {len(below)}", file=path, line=block[1][0])
        subtitles = ("",) * (len(columns) - len(below)) + tuple(below)
    if not body:
        raise DataError(f"the section {title!r} has no row", file=path, line=start)
    for number, cells in body:
        if len(cells) != len(columns) + 1 or not _INDEX.fullmatch(cells[0]):
            text = f"expected a row number and {len(columns)} cells, got {' '.join(cells)[:60]!r}"
            raise DataError(text, file=path, line=number)
    # rates, recalls of emotions, and others whose cells all are numbers
    numeric = {*known[-1:], *(set(columns) - {*known} if title == SER else ())}
    others = [place for place, name in enumerate(columns, 1) if name not in known]
    numeric |= {columns[place - 1] for place in others if all(_NUMBER.match(cells[place]) for _, cells in body)}
    rows = []
    for number, cells in body:
        row: list[Cell] = []
        for name, cell in zip(columns, cells[1:], strict=True):
            if name in numeric and not _NUMBER.match(cell):
                raise DataError(f"expected a number as {name}, got {cell!r}", file=path, line=number)
            value = float(cell) if name in numeric else cell
            most = math.inf if name == "WER" else 100  # insertions; what is undefined is NaN
            if known and isinstance(value, float) and (value < 0 or value > most or math.isinf(value)):
                raise DataError(f"expected a rate in per cent as {name}, got {cell!r}", file=path, line=number)
            row.append(value)
        words = (title, *(cell for cell in row if isinstance(cell, str)))
        if known and seen.setdefault(words, number) < number:
            text = f"repeats line {seen[words]}: {' '.join(words[1:])}"
            raise DataError(text, file=path, line=number, remedy="leave one of them")
        rows.append(tuple(row))
    index = () if bare else tuple(int(cells[0]) for _, cells in body)
    return Section(title, tuple(columns), tuple(rows), index, subtitles, time)
