"""Files of trials, keys and scores: read by their content, written by their extension.

**The formats of lists that are known: a row each, asked in this order.**

A user-supplied format is one more `Format`, given as `Choice.formats`, ``formats=`` or ``--format``
(``docs/formats.md``); one that everybody should have is one more row here. Detection, readers, writers, help texts and
the table of ``docs/formats.md`` are made from the rows.

**Scores and a key from files, joined; errors name the file and the line of what does not fit.**
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.formats.binary import NPZ_MAGIC, read_hdf5, read_npz_list, write_hdf5, write_npz
from evaluation.formats.format import DETECT, KINDS, Choice, Format, Kind, ListFile, open_list
from evaluation.formats.text import Header, find_header, line_of, read_list, write_table, write_text_list
from evaluation.trials import JoinError, Key, Scores, Trials, split_scores
from spkbase.errors import DataError
from spkbase.files import inner_suffix

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def _header(file: ListFile) -> Header | None:
    return find_header(file.path, file.text, file.kind, file.choice)


def _read_hdf5(file: ListFile) -> Any:
    image = BytesIO(file.content) if "content" in vars(file) else None  # it had to be decompressed
    return read_hdf5(file.path, file.kind, image)


def _read_npz(file: ListFile) -> Any:
    return read_npz_list(file.path, file.content, file.kind)


def _read_table(file: ListFile) -> Any:
    return read_list(file.path, file.text, file.kind, file.choice, _header(file))


def _read_text(file: ListFile) -> Any:
    return read_list(file.path, file.text, file.kind, file.choice)


def _write_table(path: str | Path, trials: Trials) -> None:
    write_table(path, trials, delimiter="\t" if inner_suffix(path) == ".tsv" else ",")


def _all_kinds(read: Callable[[ListFile], Any], write: Callable[..., None]) -> dict[str, Any]:
    """Return the readers and writers of a format that holds scores, keys and trials alike."""
    return {f"read_{kind}": read for kind in KINDS} | {f"write_{kind}": write for kind in KINDS}


HDF5 = Format(
    "hdf5",
    (".h5", ".hdf5"),
    # also behind a user block, as Matlab writes
    recognises=lambda file: any(file.head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048)),
    title="HDF5",
    keeps_attributes=True,
    **_all_kinds(_read_hdf5, write_hdf5),
)
MATLAB = Format(
    "matlab",
    (),
    recognises=lambda _: False,  # it is read as HDF5
    write_scores=partial(write_hdf5, matlab=True),
    title="SIDEKIT's other HDF5 form of scores",
)
NPZ = Format(
    "npz", (".npz",), lambda file: file.head.startswith(NPZ_MAGIC), title="npz", **_all_kinds(_read_npz, write_npz)
)
TABLE = Format(
    "table",
    (".csv", ".tsv"),
    recognises=lambda file: _header(file) is not None,
    title="a table",
    signed=False,
    **_all_kinds(_read_table, _write_table),
)
TEXT = Format(
    "text",
    (".txt", "", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst"),
    recognises=lambda _: True,
    title="text",
    signed=False,
    **_all_kinds(_read_text, write_text_list),
)

FORMATS: tuple[Format, ...] = (HDF5, MATLAB, NPZ, TABLE, TEXT)
"""All formats, in the order in which they are asked; `TEXT` takes what no other does."""


def recognise(file: ListFile, formats: Sequence[Format] = ()) -> Format:
    """Detect the format of a file.

    Parameters
    ----------
    file : ListFile
    formats : sequence of Format
        User-supplied formats, which are asked first.

    Raises
    ------
    DataError
        If its extension promises a format that its content is not, or a header lacks a column.
    """
    known = (*formats, *file.choice.formats, *FORMATS)
    suffix = inner_suffix(file.path)
    promised = next((candidate for candidate in known if candidate.signed and suffix in candidate.suffixes), None)
    for candidate in known:
        if (candidate.signed or promised is None) and candidate.recognises(file):
            return candidate
    assert promised is not None, "text takes everything"
    title, got = promised.title or promised.name, "something else" if file.head else "an empty file"
    text = f"expected {'an' if title in ('HDF5', 'npz') else 'a'} {title} file by its name, got {got}"
    raise DataError(text, file=file.path, remedy="write it again, or name a text list .txt")


def format_for(path: str | Path, formats: Sequence[Format] = ()) -> Format:
    """Return the format that a list is to be written in, by the extension.

    Raises
    ------
    DataError
        If there is none for it.
    """
    known, suffix = (*formats, *FORMATS), inner_suffix(path)
    form = next((candidate for candidate in known if suffix in candidate.suffixes), None)
    if form is None:
        suffixes = [suffix for candidate in known for suffix in candidate.suffixes if suffix]
        remedy = f"use one of {', '.join(suffixes)}, or none for text, each with .gz too"
        raise DataError(f"no format of lists is known for the extension {suffix!r}", file=path, remedy=remedy)
    return form


def format_named(name: str, formats: Sequence[Format] = ()) -> Format | None:
    """Return the format of a name, or None."""
    return next((candidate for candidate in (*formats, *FORMATS) if candidate.name == name), None)


def titles_besides_text(kind: Kind) -> str:
    """Return the formats beside text that a list may come in, for help texts.

    Examples
    --------
    >>> titles_besides_text("scores")
    'a table, npz or HDF5'
    """
    titles = [row.title or row.name for row in reversed(FORMATS) if kind in row.reads() and row is not TEXT]
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


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
    if not Path(path).is_file():  # a pipe, which is gone
        return None
    file = open_list(path, "trials", choice)
    form = recognise(file)
    return line_of(file.text, row + (form is TABLE)) if form in (TABLE, TEXT) else None


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
    write(path, trials.trials() if kind == "trials" else trials, **options)


def _read(path: str | Path, kind: Kind, choice: Choice, formats: Sequence[Format]) -> Any:
    file = open_list(path, kind, choice)
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


def read_split(
    scores: str | Path,
    key: str | Path,
    *,
    missing: Literal["error", "drop"] = "error",
    scores_columns: Choice = DETECT,
    key_columns: Choice = DETECT,
    binary: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Read scores and their key, and split the scores into those of target and of nontarget trials.

    Parameters
    ----------
    scores, key : path
        Files of any format; the same file may be both.
    missing : {"error", "drop"}
        What to do with trials without a score and with scores of unknown ids; dropped ones are counted in the log.
    scores_columns, key_columns : Choice
        What is said about the columns of each file.
    binary : bool
        Scores of 0 and 1 alone are meant; see `read_scores_and_key`.

    Returns
    -------
    target, nontarget : ndarray of float64

    Raises
    ------
    DataError
        With file and line, if a file is malformed or the two do not fit together.
    """
    return join(
        *read_scores_and_key(scores, key, scores_columns=scores_columns, key_columns=key_columns, binary=binary),
        files=(scores, key),
        missing=missing,
        columns=(scores_columns, key_columns),
    )


def read_scores_and_key(
    scores: str | Path,
    key: str | Path,
    *,
    scores_columns: Choice = DETECT,
    key_columns: Choice = DETECT,
    binary: bool = False,
) -> tuple[Scores, Key]:
    """Read scores and a key.

    Parameters
    ----------
    scores, key : path
        Files of any format; the same file may be both.
    scores_columns, key_columns : Choice
        What is said about the columns of each file.
    binary : bool
        Scores of 0 and 1 alone are meant: decisions. They are refused otherwise, because labels that are read as scores
        have an EER of 0.

    Raises
    ------
    DataError
        With file and line, if a file is malformed; or if scores are labels.
    """
    found = read_scores(scores, scores_columns)
    if not binary and np.array_equal(np.unique(np.abs(found.values)), [0, 1]):
        remedy = "exchange scores and key if this is the key; binary=True in Python if such decisions are meant"
        raise DataError("the scores are 0 and 1 alone, as the labels of a key are", file=scores, remedy=remedy)
    return found, read_key(key, key_columns)


def join(
    scores: Scores,
    key: Key,
    *,
    files: tuple[str | Path, str | Path],
    missing: Literal["error", "drop"] = "error",
    columns: tuple[Choice, Choice] = (DETECT, DETECT),
) -> tuple[np.ndarray, np.ndarray]:
    """Split scores by a key as `split_scores` does, with errors that name the place in the files they came from."""
    try:
        return split_scores(scores, key, missing=missing)
    except DataError as error:
        remedy = f"{error.remedy}: --missing drop" if error.remedy else "--missing drop leaves such trials out"
        line = None
        if isinstance(error, JoinError):
            place = 0 if error.side == "scores" else 1
            line = find_line(files[place], error.row, columns[place])
            if error.side == "key":
                text = f"with the scores {files[0]}: {error.text}"
                raise DataError(text, file=files[1], line=line, remedy=remedy) from error
        raise DataError(f"with the key {files[1]}: {error.text}", file=files[0], line=line, remedy=remedy) from error
