"""Embeddings in text: CSV and TSV with a header, and lines ``id v1 v2 ...``.

A header names a column of ids (`id`, `utt`, `utterance`, `segment` ...; pandas' unnamed index serves where there is
none), perhaps one of speakers, and the values: one column each, or a single column (`vector`, `embedding` ...) that
holds them all as text, ``[0.1, 0.2]``. Columns of values may be numbered behind a common name (`e0`, `e1`, or `0`,
`1`): then other columns are left alone; else each further column must be numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.columns import IDS, SPEAKERS, VECTORS, Columns, name_among, stacked
from spkbase.errors import DataError
from spkbase.files import not_text, read_text_bytes, shown

_NUMBERED = re.compile(r"(.*?)([0-9]{1,6})")
_INDEX = ("", "unnamed: 0", "index")
_BRACKETS = str.maketrans("[](),;", "      ")
_MOST_COLUMNS = 1 << 16


def looks_like_text(head: bytes) -> bool:
    """Tell whether the first bytes of a file are text whose first line has several columns."""
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
    return b"\0" not in head and any(mark in line.strip() for mark in (b",", b"\t", b";", b" "))


def read_table(path: Path) -> Columns:
    """Read embeddings of a text file; see the module.

    Raises
    ------
    DataError
        With the line: what is no number, a line of another length, no column of ids.
    """
    raw = read_text_bytes(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(path, raw.count(b"\n", 0, error.start) + 1, "a byte is not") from error
    lines = _lines(text, path)
    first = next(lines, None)
    if first is None:
        raise DataError("expected embeddings, got no line", file=path, remedy="write it again")
    number, cells = first
    if _is_header(cells):
        return _with_header(cells, lines, path)

    def rows() -> Iterator[tuple[int, list[str]]]:
        yield number, cells
        yield from lines

    ids, vectors = [], []
    for line, row in rows():
        ids.append(row[0])
        vectors.append(_numbers(row[1:], path, line))
    return Columns(ids, None, stacked(ids, vectors, path))


def _lines(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that is not blank."""
    line = text.split("\n", 1)[0]
    delimiter = next((mark for mark in "\t,;" if mark in line), None)
    if delimiter is None:
        for number, words in enumerate(text.split("\n"), 1):
            if cells := words.split():
                yield number, cells
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in reader:
            if any(cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise DataError(f"is no table: {error}", file=path, line=reader.line_num, remedy="write it again") from error


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell.lower() for cell in cells]
    known = name_among(names, IDS) is not None or names[0] in _INDEX
    return known and (len(cells) < 2 or not _is_number(cells[1]) or all(map(str.isdigit, cells[1:])))


def _with_header(header: list[str], lines: Iterator[tuple[int, list[str]]], path: Path) -> Columns:
    if len(header) > _MOST_COLUMNS or len(set(header)) < len(header):
        raise DataError("expected distinct names of columns in the header", file=path, line=1, remedy="write it again")
    id_name = name_among(header, IDS)
    index = header[0] if header[0].lower() in _INDEX else None
    at_id = header.index(id_name) if id_name is not None else 0
    speaker_name = name_among(header, SPEAKERS)
    at_speaker = None if speaker_name is None else header.index(speaker_name)
    others = [place for place, name in enumerate(header) if place not in (at_id, at_speaker) and name != index]
    places, read = _values(header, others)
    if not places:
        raise DataError("expected columns of values behind the ids, got none", file=path, line=1)
    ids: list[str] = []
    speakers: list[str] = []
    vectors = []
    for line, row in lines:
        if len(row) != len(header):
            text = f"expected {len(header)} columns as in the header, got {len(row)}"
            raise DataError(text, file=path, line=line, remedy="write it again")
        ids.append(row[at_id])
        if at_speaker is not None:
            speakers.append(row[at_speaker])
        vectors.append(read([row[place] for place in places], path, line))
    return Columns(ids, speakers if at_speaker is not None else None, stacked(ids, vectors, path))


def _values(header: list[str], others: list[int]) -> tuple[list[int], Callable[..., NDArray[np.float64]]]:
    """Columns that hold values, and what reads them."""
    whole = name_among([header[place] for place in others], VECTORS)
    if whole is not None:
        return [header.index(whole)], lambda cells, *place: _numbers(cells[0].translate(_BRACKETS).split(), *place)
    series: dict[str, list[tuple[int, int]]] = {}
    for place in others:
        if match := _NUMBERED.fullmatch(header[place]):
            series.setdefault(match[1], []).append((int(match[2]), place))
    longest = max(series.values(), key=len, default=[])
    return ([place for _, place in sorted(longest)] if len(longest) > 1 else others), _numbers


def _numbers(cells: Sequence[str], path: Path, line: int) -> NDArray[np.float64]:
    if not cells:
        raise DataError("expected an id and values, got no value", file=path, line=line, remedy="write it again")
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        values = None
    if values is None or any("_" in cell for cell in cells):  # float() takes 1_000
        bad = next((cell for cell in cells if not _is_number(cell)), "")
        remedy = "expected lines 'id v1 v2 ...', or a header with a column of ids and columns of values"
        raise DataError(f"{shown(bad.encode())} is no number", file=path, line=line, remedy=remedy)
    return values


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
