"""Files of trials, keys and scores: read by their content, written by their extension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.formats.format import DETECT, Choice, Format, Kind, ListFile, open_list
from evaluation.formats.known import FORMATS, TABLE, TEXT, format_for, recognise
from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError
from spkbase.files import errors_named, inner_suffix, whole_file


def read_trials(path: str | Path, choice: Choice = DETECT, *, formats: Sequence[Format] = ()) -> Trials:
    """Read a list of trials; of a key the trials are read.

    Parameters
    ----------
    path : path
        Any of the formats, told apart by content.
    choice : Choice
        What is said about the columns of a text or a table; the rest is detected.
    formats : sequence of Format
        User-supplied formats, which are asked before `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        With the place: no such file, an empty, broken or foreign file, a malformed line, a repeated pair.
    """
    trials: Trials = _read(path, "trials", choice, formats)
    return trials


def read_key(path: str | Path, choice: Choice = DETECT, *, formats: Sequence[Format] = ()) -> Key:
    """Read a key: trials with their truth.

    Parameters
    ----------
    path : path
        Any of the formats, told apart by content.
    choice : Choice
        What is said about the columns of a text or a table; the rest is detected.
    formats : sequence of Format
        User-supplied formats, which are asked before `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        With the place: as `read_trials`, or a label is neither target nor nontarget.
    """
    key: Key = _read(path, "key", choice, formats)
    return key


def read_scores(path: str | Path, choice: Choice = DETECT, *, formats: Sequence[Format] = ()) -> Scores:
    """Read scores, float64; infinite ones are legal.

    Parameters
    ----------
    path : path
        Any of the formats, told apart by content.
    choice : Choice
        What is said about the columns of a text or a table; the rest is detected.
    formats : sequence of Format
        User-supplied formats, which are asked before `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        With the place: as `read_trials`, or a score is no number or NaN.
    """
    scores: Scores = _read(path, "scores", choice, formats)
    return replace(scores, values=0.0 - scores.values) if choice.distances else scores


def find_line(path: str | Path, row: int, choice: Choice = DETECT) -> int | None:
    """Return the line of a text or table where a trial stands, by its row in the list that was read.

    None for other formats.
    """
    file = open_list(whole_file(path, again=True), "trials", choice)
    form = recognise(file)
    if form not in (TABLE, TEXT):
        return None
    if form is TABLE:
        row += 1
    filled = (number for number, line in enumerate(file.text.split(b"\n"), 1) if line.strip())
    return next((number for place, number in enumerate(filled) if place == row), None)


def write_trials(
    path: str | Path, trials: Trials, *, attributes: dict[str, str] | None = None, formats: Sequence[Format] = ()
) -> None:
    """Write a list of trials.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all; its extension says how.
    trials : Trials
        The list.
    attributes : dict of str, optional
        Kept with an HDF5 file, such as the fingerprint of its inputs; other formats have no place for them.
    formats : sequence of Format
        User-supplied formats, whose extensions win over those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    _write(path, "trials", trials, attributes, formats)


def write_key(
    path: str | Path, key: Key, *, attributes: dict[str, str] | None = None, formats: Sequence[Format] = ()
) -> None:
    """Write a key; HDF5 and CSV keep trial types.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all; its extension says how.
    key : Key
    attributes : dict of str, optional
        Kept with an HDF5 file, such as the fingerprint of its inputs; other formats have no place for them.
    formats : sequence of Format
        User-supplied formats, whose extensions win over those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    _write(path, "key", key, attributes, formats)


def write_scores(
    path: str | Path, scores: Scores, *, attributes: dict[str, str] | None = None, formats: Sequence[Format] = ()
) -> None:
    """Write scores, to the last bit.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all; its extension says how.
    scores : Scores
    attributes : dict of str, optional
        Kept with an HDF5 file, such as the fingerprint of its inputs; other formats have no place for them.
    formats : sequence of Format
        User-supplied formats, whose extensions win over those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    _write(path, "scores", scores, attributes, formats)


def check_extension(path: str | Path, formats: Sequence[Format] = ()) -> str:
    """Return the extension of a list that is to be written; a DataError if there is no format for it."""
    format_for(path, formats)
    return inner_suffix(path)


def write_as(path: str | Path, kind: Kind, trials: Trials, form: Format, **options: Any) -> None:
    """Write a list in a format, whatever its extension; a DataError if the format cannot hold it."""
    write = getattr(form, f"write_{kind}")
    if write is None:
        able = ", ".join(row.name for row in FORMATS if kind in row.writes())
        raise DataError(f"no {kind} can be written as {form.name}", file=path, remedy=f"write it as one of {able}")
    write(path, trials, **options)


def _read(path: str | Path, kind: Kind, choice: Choice, formats: Sequence[Format]) -> Any:
    with errors_named(path, copy := whole_file(path)):
        return _read_list(open_list(copy, kind, choice), formats)


def _read_list(file: ListFile, formats: Sequence[Format]) -> Any:
    kind, path = file.kind, file.path
    form = recognise(file, formats)
    read = getattr(form, f"read_{kind}")
    if read is None:
        held = " and ".join(form.reads())
        raise DataError(f"expected {kind}, but a file of the format {form.name} holds {held}", file=path)
    return read(file)


def _write(
    path: str | Path, kind: Kind, trials: Trials, attributes: dict[str, str] | None, formats: Sequence[Format]
) -> None:
    form = format_for(path, formats)
    write_as(path, kind, trials, form, **({"attributes": attributes} if form.keeps_attributes else {}))
