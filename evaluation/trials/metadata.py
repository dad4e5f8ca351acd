"""Tables about models, segments or speakers (sex, accent, language, ...), and the groups of trials that they make.

Conventions
-----------
A table has a header; its first column holds ids of models, of segments, or of speakers. Where both sides of a trial
have a group, the trial belongs to it if they agree; a trial across groups belongs to none. Where the table knows the
ids of one side alone, that side decides.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from evaluation.trials.lists import Key
from evaluation.trials.speakers import TrialSpeakers
from spkbase.errors import DataError, Problems, few
from spkbase.files import whole_file

Side = Literal["both", "model", "segment"]


def read_metadata(path: str | Path, column: str) -> dict[str, str]:
    """Read one column of a table with a header.

    Parameters
    ----------
    path : path
        Text in UTF-8, its columns separated by tabs, commas, semicolons or blanks, whichever the header holds first in
        this order. The first column holds ids.
    column : str
        Name of the wanted column, as in the header.

    Returns
    -------
    dict of str to str
        The value for each id; blank where the table has nothing.

    Raises
    ------
    DataError
        With file and line: no such column, a row of another length, an id with two values, an empty file, not UTF-8.
    """
    path = Path(path)
    header, *rows = _table(path)
    if column not in header[1:]:
        columns = ", ".join(header[1:]) or "none"
        raise DataError(f"no column {column!r} beside the ids; there are: {columns}", file=path, line=1)
    place = header.index(column, 1)
    values: dict[str, str] = {}
    problems = Problems(path)
    for number, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problems.add(f"expected {len(header)} columns as in the header, got {len(row)}", line=number)
            continue
        row_id, value = row[0].strip(), row[place].strip()
        if values.setdefault(row_id, value) != value:
            problems.add(f"{row_id!r} is {value!r} here, but {values[row_id]!r} further up", line=number)
    problems.raise_if_any()
    return values


def metadata_columns(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, without that of the ids.

    Raises
    ------
    DataError
        As `read_metadata`; if there is no column beside the ids.
    """
    columns = _table(Path(path))[0][1:]
    if not columns:
        raise DataError("expected a header with columns beside the ids", file=Path(path), line=1)
    return columns


def group_trials(
    key: Key, metadata: Mapping[str, str], *, speakers: TrialSpeakers | None = None, side: Side = "both"
) -> tuple[np.ndarray, list[str]]:
    """Find the group of each trial.

    Parameters
    ----------
    key : Key
        Trials.
    metadata : mapping of str to str
        Group of each id of a model or a segment, or else of its speaker.
    speakers : TrialSpeakers, optional
        In the order of the key; needed where the metadata name speakers.
    side : {"both", "model", "segment"}
        Which side decides.

    Returns
    -------
    codes : ndarray of int32 of shape (N,)
        Place of the group of each trial in `names`; -1 for trials across groups, -2 where a group is blank.
    names : list of str
        Sorted.

    Raises
    ------
    DataError
        If the metadata know some ids of a side but not all, or no side is known.
    """
    names = sorted({value for value in metadata.values() if value})
    places = {"": -2} | {name: place for place, name in enumerate(names)}
    sides = []
    for what, ids, codes, by_speaker in (
        ("model", key.model_ids, key.models, None if speakers is None else speakers.models),
        ("segment", key.segment_ids, key.segments, None if speakers is None else speakers.segments),
    ):
        if side in ("both", what):
            found = _look_up(ids, codes, metadata, places, what)
            if found is None and speakers is not None and by_speaker is not None:
                found = _look_up(speakers.names, by_speaker, metadata, places, f"speakers of the {what}")
            sides += [] if found is None else [found]
    if not sides:
        remedy = "the first column of the table must hold ids of models, segments or speakers"
        raise DataError(
            f"no {'model or segment' if side == 'both' else side} of the key is in the table", remedy=remedy
        )
    group = sides[0].copy()
    group[sides[0] != sides[-1]] = -1
    group[np.minimum(sides[0], sides[-1]) == -2] = -2
    used = np.unique(group[group >= 0])
    rank = np.full(len(names), -1, np.int32)
    rank[used] = np.arange(len(used))
    return np.where(group >= 0, rank[group], group).astype(np.int32), [names[place] for place in used.tolist()]


def _look_up(
    ids: np.ndarray, codes: np.ndarray, metadata: Mapping[str, str], places: Mapping[str, int], what: str
) -> np.ndarray | None:
    """Group of each trial by one side, or None if the table knows none of its ids."""
    used = np.unique(codes).tolist()
    absent = [ids[code] for code in used if ids[code] not in metadata]
    if len(absent) == len(used):
        return None
    if absent:
        remedy = "add them, with a blank value where it is not known"
        raise DataError(
            f"{len(absent)} of {len(used)} {what}s are not in the table: {few(absent, repr)}", remedy=remedy
        )
    table = np.full(len(ids), -2, np.int32)
    table[used] = [places[metadata[ids[code]]] for code in used]
    return table[codes]


def _table(path: Path) -> list[list[str]]:
    """The rows of a table, its header first."""
    try:
        lines = whole_file(path).read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DataError("expected a table in UTF-8", file=path, remedy="give text with a header") from error
    if not lines or not lines[0].strip():
        raise DataError("expected a header with names of columns, got a blank line", file=path, line=1)
    try:
        return _rows(lines)
    except csv.Error as error:
        raise DataError(f"expected a table: {error}", file=path, remedy="write it again") from error


def _rows(lines: list[str]) -> list[list[str]]:
    for mark in "\t,;":
        if mark in lines[0]:
            return list(csv.reader(lines, delimiter=mark))
    return [line.split() for line in lines]
