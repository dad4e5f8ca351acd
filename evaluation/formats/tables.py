"""Tables with a header: CSV, or columns separated by tabs, semicolons or blanks; quotes as in CSV.

The header says which column is what; names of NIST, bob and the usual ones are known, others can be given. Several
columns together can form an id, joined by ``:`` as NIST writes the channel of a segment.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.formats.format import DETECT, Choice
from evaluation.formats.layouts import LABELS, Content, is_number, label_remedy
from evaluation.formats.tokens import first_line
from evaluation.trials import COLUMN_NAMES, Key, Scores, Trials, factorise, find_repeat
from spkbase.errors import DataError
from spkbase.files import line_at, not_text, shown, write_bytes
from spkbase.showing import one_line

_DELIMITERS = ("\t", ",", ";", None)  # None: any white space
_OPTIONS = {"model": "--model", "segment": "--segment", "score": "--score-column", "label": "--target-column"}
_LONGEST_FIELD = 1 << 16


@one_line
@dataclass(frozen=True)
class Header:
    """Where the columns of a table stand.

    Parameters
    ----------
    delimiter : str or None
        What separates columns; None for any white space.
    n_columns : int
        Number of columns.
    places : dict of str to tuple of int
        Columns of each role; several of a model or segment form the id together.
    """

    delimiter: str | None
    n_columns: int
    places: dict[str, tuple[int, ...]]


def find_header(path: Path, raw: bytes, content: Content | None, choice: Choice = DETECT) -> Header | None:
    """Return whether the first line names columns.

    Parameters
    ----------
    path : Path
        The file, for errors.
    raw : bytes
        Its text.
    content : {"scores", "key"} or None
        What it should hold; None for trials alone.
    choice : Choice
        Columns that the user named.

    Raises
    ------
    DataError
        If the line is a header, or must be one because columns were named, but lacks a column.
    """
    if choice.layout is not None:
        return None
    line = first_line(raw)
    if len(line) > _LONGEST_FIELD or not line:
        return None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return None
    headers = {delimiter: _fields(text, delimiter) for delimiter in _DELIMITERS}
    found = {delimiter: _places(names, choice) for delimiter, names in headers.items()}
    delimiter = max(_DELIMITERS, key=lambda candidate: (len(found[candidate]), len(headers[candidate])))
    places, names = found[delimiter], headers[delimiter]
    lacking = [role for role in _needed(content, places, choice.labelled) if role not in places]
    if not lacking:
        return Header(delimiter, len(names), places)
    known = "model" in places and "segment" in places and delimiter is not None
    if choice.names_columns or (known and not _has_number(names)) or _is_above_values(raw, names, delimiter):
        remedy = f"name it: {', '.join(_OPTIONS[role] for role in lacking)}"
        remedy += ", or give a key" if choice.labelled and lacking == ["label"] else ""
        text = f"expected a header with a column for {' and '.join(lacking)}, got {', '.join(names)[:200]}"
        raise DataError(text, file=path, line=1, remedy=remedy)
    return None


def read_table_scores(path: Path, raw: bytes, header: Header) -> Scores:
    """Read the scores of a table.

    Raises
    ------
    DataError
        With file and line: wrong number of columns, a repeated pair, no number or NaN as score, not UTF-8.
    """
    table = _read(path, raw, header, ("score",))
    values = np.empty(len(table.lines))
    for row, text in enumerate(table.columns["score"]):
        if not is_number(text.encode("utf-8", "replace")):
            raise DataError(f"expected a number as score, got {shown(text.encode())}", file=path, line=table.lines[row])
        values[row] = float(text)
        if np.isnan(values[row]):
            remedy = "score this trial anew"
            raise DataError("the score is not a number (NaN)", file=path, line=table.lines[row], remedy=remedy)
    return Scores.trusted(**table.ids(path), values=values)


def read_table_key(path: Path, raw: bytes, header: Header) -> Key:
    """Read the key of a table. Errors as for scores, or a label is neither target nor nontarget."""
    roles = ("label",) if "label" in header.places else ("claimed", "real")
    table = _read(path, raw, header, roles)
    if roles != ("label",):
        claimed, real = table.columns["claimed"], table.columns["real"]
        is_target = np.array([claim == other for claim, other in zip(claimed, real, strict=True)], bool)
        return Key.trusted(**table.ids(path), is_target=is_target)
    is_target = np.empty(len(table.lines), bool)
    for row, text in enumerate(table.columns["label"]):
        label = LABELS.get(text.lower().encode("utf-8", "replace"))
        if label is None:
            remedy = label_remedy(text.encode("utf-8", "replace"))
            got = shown(text.encode())
            line = table.lines[row]
            raise DataError(f"expected target or nontarget, got {got}", file=path, line=line, remedy=remedy)
        is_target[row] = label
    return Key.trusted(**table.ids(path), is_target=is_target)


def read_table_trials(path: Path, raw: bytes, header: Header) -> Trials:
    """Read the trials of a table. Errors as for scores."""
    return Trials.trusted(**_read(path, raw, header, ()).ids(path))


def write_table(path: str | Path, trials: Trials, *, delimiter: str = ",") -> None:
    """Write trials, a key or scores as a table with a header."""
    columns: dict[str, Sequence[str]] = {}
    if isinstance(trials, Key):
        columns["target"] = np.where(trials.is_target, "target", "nontarget").tolist()
        if trials.types is not None:
            columns["type"] = [trials.type_names[place] for place in trials.types]
    elif isinstance(trials, Scores):
        columns["score"] = list(map(repr, trials.values.tolist()))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["model", "segment", *columns])
    pairs = trials.pairs()
    writer.writerows([*pair, *values] for pair, *values in zip(pairs, *columns.values(), strict=True))
    try:
        write_bytes(path, text.getvalue().encode("utf-8"))
    except UnicodeEncodeError as error:
        raise DataError(f"id {error.object[:60]!r} cannot be written as UTF-8", remedy="rename it") from error


@dataclass
class _Table:
    models: list[str]
    segments: list[str]
    lines: list[int]
    columns: dict[str, list[str]]

    def ids(self, path: Path) -> dict[str, np.ndarray]:
        for name, column in (("model", self.models), ("segment", self.segments)):
            if "" in column:
                raise DataError(f"the {name} is blank", file=path, line=self.lines[column.index("")])
        (model_ids, models), (segment_ids, segments) = factorise(self.models), factorise(self.segments)
        repeat = find_repeat(models, segments, len(segment_ids), len(model_ids))
        if repeat is not None:
            earlier, later = repeat
            text = f"trial '{self.models[later]} {self.segments[later]}' repeats line {self.lines[earlier]}"
            remedy = "each pair may occur once; several columns can form an id, as in --segment test,chan"
            raise DataError(text, file=path, line=self.lines[later], remedy=remedy)
        return {"model_ids": model_ids, "segment_ids": segment_ids, "models": models, "segments": segments}


def _read(path: Path, raw: bytes, header: Header, roles: Sequence[str]) -> _Table:
    model, segment = header.places["model"], header.places["segment"]
    single = {role: header.places[role][0] for role in roles}
    table = _Table([], [], [], {role: [] for role in roles})
    for line, row in _rows(path, raw, header):
        table.models.append(row[model[0]] if len(model) == 1 else ":".join(row[place] for place in model))
        table.segments.append(row[segment[0]] if len(segment) == 1 else ":".join(row[place] for place in segment))
        table.lines.append(line)
        for role, place in single.items():
            table.columns[role].append(row[place])
    if not table.lines:
        raise DataError("expected trials, got a header alone", file=path, remedy="write the list again")
    return table


def _rows(path: Path, raw: bytes, header: Header) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) below the header."""
    lines = io.StringIO(_decoded(path, raw), newline="")
    rows: Iterator[tuple[int, list[str]]] = ((number, line.split()) for number, line in enumerate(lines, 1))
    if header.delimiter is not None:
        rows = _with_lines(path, csv.reader(lines, delimiter=header.delimiter, strict=True))
    started = False
    for line, row in rows:
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if not started:
            started = True
            continue
        if len(row) != header.n_columns:
            text = f"expected {header.n_columns} columns as in the header, got {len(row)}: {' '.join(row)[:60]!r}"
            raise DataError(text, file=path, line=line)
        yield line, row


def _with_lines(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    while True:
        start = reader.line_num + 1  # type: ignore[attr-defined]
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "close quotes, and double those within quotes"
            raise DataError(f"no line of a table: {error}", file=path, line=start, remedy=remedy) from error
        yield start, row


def _decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = raw[max(0, error.start - 10) : error.end + 10]
        raise not_text(path, line_at(raw, error.start), f"{shown(where)} is not UTF-8") from None


def _fields(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return [field.strip('"') for field in line.split()]
    try:
        return [field.strip() for field in next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _places(names: Sequence[str], choice: Choice) -> dict[str, tuple[int, ...]]:
    """Find the columns of each role: those that the user named, else the first known name."""
    lower = [name.lower() for name in names]
    places: dict[str, tuple[int, ...]] = {}
    for role, known in COLUMN_NAMES.items():
        found = next((lower.index(name) for name in known if name in lower), None)
        if found is not None:
            places[role] = (found,)
    single = {"score": choice.score, "label": choice.label}
    forced = {"model": tuple(choice.model), "segment": tuple(choice.segment)}
    forced |= {role: () if name is None else (name,) for role, name in single.items()}
    for role, wanted in forced.items():
        if not wanted:
            continue
        places.pop(role, None)
        if all(name in names for name in wanted):
            places[role] = tuple(names.index(name) for name in wanted)
    return places


def _has_number(fields: Sequence[str]) -> bool:
    return any(is_number(field.encode("utf-8", "replace")) for field in fields)


def _is_above_values(raw: bytes, names: Sequence[str], delimiter: str | None) -> bool:
    """Whether a line of words stands above one of as many fields of which some are numbers: a header of other names."""
    if delimiter is None or len(names) < 3 or _has_number(names):
        return False
    below = raw.lstrip().partition(b"\n")[2][: 2 * _LONGEST_FIELD].decode("utf-8", "replace")
    values = _fields(below.lstrip().partition("\n")[0], delimiter)
    return len(values) == len(names) and _has_number(values)


def _needed(content: Content | None, places: dict[str, tuple[int, ...]], labelled: bool = False) -> list[str]:
    needed = ["model", "segment", *(["score"] if content == "scores" else [])]
    truth = content == "key" or (content == "scores" and labelled)
    return [*needed, "label"] if truth and not {"claimed", "real"} <= set(places) else needed
