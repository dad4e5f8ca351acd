"""Text tables, such as keys, maps and metadata, with tabs, commas, semicolons or blanks between columns."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from spkbase.errors import DataError, Problems
from spkbase.files import line_at, not_text, read_text_bytes, shown


def read_columns(
    path: str | Path, columns: Sequence[str | None], *, header: Sequence[str] = ()
) -> list[tuple[int, list[str]]]:
    """Read columns of a table, which has a header or whose columns are named here.

    Parameters
    ----------
    path : path
        Text in UTF-8, with the delimiter of its header: tabs, commas, semicolons or blanks. Quotes are interpreted
        except in tables with tabs, because corpora such as Common Voice have unpaired quotes there.
    columns : sequence of str or None
        Names of the wanted columns in the header; None for the first column, whatever its name.
    header : sequence of str
        Names of all columns of a table without a header; its delimiter is then that of its first line.

    Returns
    -------
    list of tuple of int and list of str
        The number of each line, and its cells in the order of `columns`.

    Raises
    ------
    DataError
        With file and line: a missing column, rows of different length, an empty file, text that is not UTF-8.
    """
    rows = _lines(path)
    if not header:
        header = rows[0][1]
        rows = rows[1:]
    _check_names(columns, header, path)
    places = [0 if name is None else header.index(name) for name in columns]
    problems = Problems(path)
    cells = []
    for line, row in rows:
        if len(row) == len(header):
            cells.append((line, [row[column].strip() for column in places]))
        else:
            problems.add(
                f"expected {len(header)} columns as in the header, got {len(row)}", line=line
            )
    problems.raise_if_any()
    return cells


def read_header(path: str | Path) -> list[str]:
    """Return the names of the columns of a table with a header; see `read_columns`."""
    return _lines(path)[0][1]


def _lines(path: str | Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a table, the first of which is its header."""
    raw = read_text_bytes(path)
    delimiter = delimiter_of(raw.partition(b"\n")[0].decode("utf-8", "replace"))
    if delimiter == "\t":
        raw = raw.replace(b'"', b"")
    lines = cut_lines(path, raw, delimiter)
    if not lines:
        raise DataError("expected a header with names of columns, got an empty file", file=path)
    return lines


def _check_names(columns: Sequence[str | None], header: Sequence[str], path: str | Path) -> None:
    others = header
    besides = ""
    if None in columns:
        others = header[1:]
        besides = " besides the ids"
    unknown = [name for name in columns if name not in (None, *others)]
    if unknown:
        text = f"no column {unknown[0]!r}{besides}; the columns are: {', '.join(others) or 'none'}"
        raise DataError(text, file=path, line=1)


def delimiter_of(line: str) -> str | None:
    """Return the delimiter of a line: the most frequent of tab, comma and semicolon, or None."""
    counts = {mark: line.count(mark) for mark in "\t,;"}
    mark = max(counts, key=counts.__getitem__)
    if counts[mark]:
        return mark
    return None


def cut_lines(path: str | Path, raw: bytes, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """Cut a text into the fields of its lines.

    Parameters
    ----------
    path : path
        The file, for errors.
    raw : bytes
        Its text.
    delimiter : str or None
        Delimiter, with quotes as in CSV; None for ASCII white space.

    Returns
    -------
    list of tuple of int and list of str
        The number of each line, from 1, and its fields; without blank lines.

    Raises
    ------
    DataError
        With file and line: text that is not UTF-8, quotes that are not closed.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = shown(raw[max(0, error.start - 10) : error.end + 10])
        raise not_text(Path(path), line_at(raw, error.start), f"{where} is not UTF-8") from None
    rows = []
    if delimiter is None:
        for number, line in enumerate(raw.split(b"\n"), 1):
            words = line.split()
            if words:
                rows.append((number, [word.decode() for word in words]))
        return rows
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        for row in reader:
            rows.append((start, row))
            start = reader.line_num + 1
    except csv.Error as error:
        remedy = "close quotes, and double those within quotes"
        raise DataError(
            f"expected a table: {error}", file=path, line=start, remedy=remedy
        ) from error
    return [(line, row) for line, row in rows if any(map(str.strip, row))]


def is_number(token: str) -> bool:
    """Return whether a token is a number, possibly NaN or infinite; ``1_000`` and ``2e308`` (too large) are not."""
    try:
        too_large = math.isinf(float(token)) and any(map(str.isdigit, token))
    except ValueError:
        return False
    return "_" not in token and token.isascii() and not too_large
