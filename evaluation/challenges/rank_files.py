"""VoicePrivacy 2024's and 2026's ``result_for_rank<suffix>``: read, and written byte for byte as pandas lays them out.

    ---- Time: 29-03-24_11:24 ----

    ---- ASV_eval results ----
      dataset split gender enrollment     trial     EER
    0   libri   dev      f   original  original  10.511

The file is made of sections: a line of the time now and then, a title, and a table as pandas prints a data frame: its
row numbers first, columns aligned to the right, and all numbers of a column with as many decimals as the longest needs
(6 at most). ``SER results`` has a second line of column names below the first. Numbers are percent. Track 2 of 2026
has a section ``ASV_eval^anon results`` for each language, also without row numbers: `RankFile.section` joins the
sections of one title. Files that were edited by hand (other blanks, times left out) are read too; what is written then
has the regular form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
_MOST_DECIMALS = 6

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

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows) or len(self.index) not in (0, len(self.rows)):
            raise DataError(f"section {self.title!r}: expected {len(self.columns)} cells and a number for each row")

    def records(self) -> list[dict[str, Cell]]:
        """Return each row as a mapping of column to cell."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def value(self, column: str, **where: str) -> float | None:
        """Return the number of the one row whose cells are as asked for; None if there is no such row.

        Raises
        ------
        DataError
            If several rows are, or the cell is no number.
        """
        cells = [row[column] for row in self.records() if all(row.get(name) == cell for name, cell in where.items())]
        if len(cells) > 1 or any(isinstance(cell, str) for cell in cells):
            raise DataError(f"section {self.title!r}: expected one number {column} for {where}, got {cells}")
        return float(cells[0]) if cells else None


@one_line
@dataclass(frozen=True)
class RankFile:
    """The sections of a file, in their order."""

    sections: tuple[Section, ...]

    def section(self, title: str) -> Section | None:
        """Return the section of that title, or None; several of one title are joined, with the time of the first."""
        parts = [section for section in self.sections if section.title == title]
        if len(parts) < 2:
            return parts[0] if parts else None
        rows = tuple(row for part in parts for row in part.rows)
        numbered = all(part.index for part in parts)
        index = tuple(number for part in parts for number in part.index) if numbered else ()
        return replace(parts[0], rows=rows, index=index)

    def value(self, title: str, column: str, **where: str) -> float | None:
        """Return a number, see `Section.value`; None where the section or the row is not there."""
        section = self.section(title)
        return None if section is None else section.value(column, **where)


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
    parts = []
    for section in file.sections:
        time = "" if section.time is None else f"---- Time: {section.time} ----\n\n"
        parts.append(f"{time}---- {section.title} ----\n{_table(section)}\n")
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
        a section that lacks a column, or is there again with other columns; a row that was there; no section at all.
    """
    path = Path(path)
    raw = read_text_bytes(path)
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise not_text(path, line_at(raw, error.start), "it holds other bytes") from None
    sections: list[Section] = []
    for title, time, start, block in _blocks(lines, path):
        section = _section(title, time, start, block, path)
        if any(_clash(section, earlier) for earlier in sections):
            raise DataError(f"the section {title!r} is there already", file=path, line=start)
        sections.append(section)
    if not sections:
        remedy = "give a result_for_rank file of VoicePrivacy 2024"
        raise DataError("expected sections '---- ... results ----', got none", file=path, remedy=remedy)
    return RankFile(tuple(sections))


def _blocks(lines: Sequence[str], path: Path) -> Iterator[tuple[str, str | None, int, list[tuple[int, list[str]]]]]:
    """Yield title, time, line of the title, and the numbered cells of the lines below."""
    title, time, start = "", None, 0
    block: list[tuple[int, list[str]]] = []
    next_time: str | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if match := _TIME.match(text):
            next_time = match[1]
        elif match := _TITLE.match(text):
            if title:
                yield title, time, start, block
            title, time, start, block = match[1], next_time, number, []
            next_time = None
        elif text:
            if not title or next_time is not None:
                raise DataError(f"expected '---- ... ----', got {text[:60]!r}", file=path, line=number)
            block.append((number, text.split()))
    if title:
        yield title, time, start, block


def _clash(section: Section, earlier: Section) -> bool:
    """Whether two sections are of one title and cannot be joined: other columns, or a row of both."""
    if section.title != earlier.title:
        return False
    rows, before = (
        {tuple(cell for cell in row if isinstance(cell, str)) for row in part.rows} for part in (section, earlier)
    )
    return section.columns != earlier.columns or not rows.isdisjoint(before)


def _section(title: str, time: str | None, start: int, block: list[tuple[int, list[str]]], path: Path) -> Section:
    if len(block) < 2:
        raise DataError(f"the section {title!r} has no table", file=path, line=start)
    (line, columns), *body = block
    repeated = len(set(columns)) < len(columns)
    lacking = [name for name in COLUMNS.get(title, ()) if name not in columns]
    if repeated or lacking:
        text = f"expected the columns {', '.join(COLUMNS.get(title, ()))} once each, got {', '.join(columns)}"
        raise DataError(text, file=path, line=line)
    subtitles: tuple[str, ...] = ()
    bare = all(len(cells) == len(columns) and not _INDEX.fullmatch(cells[0]) for _, cells in body)
    bare = bare and title in COLUMNS and bool(_NUMBER.match(body[0][1][-1]))
    if bare:
        body = [(number, ["0", *cells]) for number, cells in body]
    if not _INDEX.fullmatch(body[0][1][0]):  # names below the names, of the last columns
        below = body.pop(0)[1]
        if len(below) > len(columns):
            raise DataError(f"expected at most {len(columns)} names, got {len(below)}", file=path, line=block[1][0])
        subtitles = ("",) * (len(columns) - len(below)) + tuple(below)
    known = COLUMNS.get(title, ())
    numeric = {*known[-1:]}  # and recalls of emotions, and others whose cells all are numbers
    for column, name in enumerate(columns):
        if name not in known:
            all_are = all(len(cells) > column + 1 and _NUMBER.match(cells[column + 1]) for _, cells in body)
            numeric |= {name} if title == SER or all_are else set()
    rows, index = [], []
    seen: dict[tuple[str, ...], int] = {}
    for number, cells in body:
        if len(cells) != len(columns) + 1 or not _INDEX.fullmatch(cells[0]):
            text = f"expected a row number and {len(columns)} cells, got {' '.join(cells)[:60]!r}"
            raise DataError(text, file=path, line=number)
        index.append(int(cells[0]))
        row: list[Cell] = []
        for name, cell in zip(columns, cells[1:], strict=True):
            if name in numeric and not _NUMBER.match(cell):
                raise DataError(f"expected a number as {name}, got {cell!r}", file=path, line=number)
            value = float(cell) if name in numeric else cell
            if title in COLUMNS and isinstance(value, float) and not _is_rate(name, value):
                raise DataError(f"expected a rate in per cent as {name}, got {cell!r}", file=path, line=number)
            row.append(value)
        rows.append(tuple(row))
        words = tuple(cell for cell in row if isinstance(cell, str))
        if title in COLUMNS and seen.setdefault(words, number) < number:
            remedy = "leave one of them"
            raise DataError(f"repeats line {seen[words]}: {' '.join(words)}", file=path, line=number, remedy=remedy)
    if not rows:
        raise DataError(f"the section {title!r} has no row", file=path, line=start)
    return Section(title, tuple(columns), tuple(rows), () if bare else tuple(index), subtitles, time)


def _is_rate(name: str, value: float) -> bool:
    """Whether a number can be a rate in per cent: insertions may push a WER beyond 100; what is undefined is NaN."""
    return math.isnan(value) or (0 <= value < math.inf and (name == "WER" or value <= 100))


def _table(section: Section) -> str:
    """Lay out a table as pandas does: one blank between columns and, with row numbers, one more before each cell."""
    labels = [str(number) for number in section.index]
    first = max(map(len, ["", *labels]))
    heads = [section.columns, section.subtitles] if section.subtitles else [section.columns]
    blank = " " if labels else ""
    lines = [" " * first for _ in heads] + [label.ljust(first) for label in labels or [""] * len(section.rows)]
    for number in range(len(section.columns)):
        cells = [row[number] for row in section.rows]
        numeric = all(not isinstance(cell, str) for cell in cells)
        texts = _decimals([float(cell) for cell in cells]) if numeric else [str(cell) for cell in cells]
        # a single line of names sets those of numbers in too
        names = [f"{blank}{head[number]}" if numeric and len(heads) == 1 else head[number] for head in heads]
        column = [*names, *(f"{blank}{text}" for text in texts)]
        width = max(map(len, column))
        lines = [f"{line} {text.rjust(width)}" for line, text in zip(lines, column, strict=True)]
    return "\n".join(lines if labels else [line[1:] for line in lines])


def _decimals(values: Sequence[float]) -> list[str]:
    """Write numbers with as many decimals as the longest needs, one at least."""
    texts = [f"{value:.{_MOST_DECIMALS}f}" for value in values if math.isfinite(value)]
    needed = max([1, *(len(text.rstrip("0").split(".")[1]) for text in texts)])
    others = {math.inf: "inf", -math.inf: "-inf"}
    return [
        f"{round(value, _MOST_DECIMALS):.{needed}f}" if math.isfinite(value) else others.get(value, "NaN")
        for value in values
    ]
