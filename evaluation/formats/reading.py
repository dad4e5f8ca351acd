"""Files of trials, keys and scores: the content decides how a file is read, the extension how it is written.

`FORMATS` holds the built-in formats, in the order in which they are tried; detection, readers, writers, help texts and
the table of ``docs/formats.md`` use it. Users add a `Format` of their own with `Choice.formats` for reading,
``formats=`` for writing, or ``--format`` (``docs/formats.md``).

`read_scores_and_key` joins scores with their key; its errors name the file and the line that does not fit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats.binary import read_hdf5, read_npz, write_hdf5, write_npz
from evaluation.formats.text import (
    DETECT,
    Choice,
    Kind,
    ListFile,
    as_score,
    find_columns,
    is_score,
    read_list,
    write_table,
    write_text_list,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    TrialError,
    Trials,
    cut_lines,
    find_rows,
    join_scores,
    match_ids,
)
from spkbase.errors import DataError
from spkbase.files import inner_suffix, read_text_bytes
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

KINDS: tuple[Kind, ...] = ("scores", "key", "trials")

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_TEXTS = (".txt", "", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst")
_MATLAB_TITLE = "SIDEKIT's other HDF5 form of scores"


@one_line
@dataclass(frozen=True)
class Format:
    """A format of lists: how it is recognised, and what can be read from it and written in it.

    Parameters
    ----------
    name : str
        Its name.
    suffixes : tuple of str
        Extensions that it is written for, in lower case with their point; the first one is the usual one. None for a
        format that is only written by name.
    recognises : function of a ListFile to bool, optional
        Whether a file is of this format, as a magic number shows. Formats are tried in their order; the first that
        recognises the file reads it. A file with the extension of such a format but other content is an error.
    read : function of a ListFile, optional
        Reader, which gives `Scores`, a `Key` or `Trials`, according to the `kind` of the file.
    write : function of a path and a list, optional
        Writer.
    kinds : tuple of {"scores", "key", "trials"}
        Kinds of lists that the format can hold.
    title : str
        Words for help texts and tables; the name by default.

    Examples
    --------
    ``docs/formats.md`` has a whole user-supplied format.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[ListFile], bool] | None
    read: Callable[[ListFile], Any] | None = None
    write: Callable[..., None] | None = None
    kinds: tuple[Kind, ...] = KINDS
    title: str = ""


MATLAB = Format(
    "matlab", (), None, None, partial(write_hdf5, matlab=True), ("scores",), _MATLAB_TITLE
)
TEXT = Format("text", _TEXTS, None, read_list, write_text_list)


def read_trials(path: str | Path, choice: Choice = DETECT) -> Trials:
    """Read a list of trials; a key is read without its labels.

    Parameters
    ----------
    path : path
        Any of the formats, recognised by content.
    choice : Choice
        Specified columns of a text or a table; the rest is detected.

    Raises
    ------
    DataError
        With file and line: a missing, empty, broken or foreign file, a malformed line, a repeated pair.
    """
    trials: Trials = _read(path, "trials", choice)
    return trials


def read_key(path: str | Path, choice: Choice = DETECT) -> Key:
    """Read a key: trials with labels.

    Parameters
    ----------
    path : path
        Any of the formats, recognised by content.
    choice : Choice
        Specified columns of a text or a table; the rest is detected.

    Raises
    ------
    DataError
        With file and line: as `read_trials`, or a label is neither target nor nontarget.
    """
    key: Key = _read(path, "key", choice)
    return key


def read_scores(path: str | Path, choice: Choice = DETECT) -> Scores:
    """Read scores as float64; they may be infinite.

    Parameters
    ----------
    path : path
        Any of the formats, recognised by content.
    choice : Choice
        Specified columns of a text or a table; the rest is detected.

    Raises
    ------
    DataError
        With file and line: as `read_trials`, or a score is NaN or not a number.
    """
    scores: Scores = _read(path, "scores", choice)
    return _as_ratios(scores, choice)


def write_trials(path: str | Path, trials: Trials, *, formats: Sequence[Format] = ()) -> None:
    """Write a list of trials.

    Parameters
    ----------
    path : path
        The file to write, atomically; its extension decides the format.
    trials : Trials
        The list.
    formats : sequence of Format
        User-supplied formats, whose extensions override those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    write_as(path, "trials", trials, check_extension(path, formats))


def write_key(path: str | Path, key: Key, *, formats: Sequence[Format] = ()) -> None:
    """Write a key; only HDF5 and CSV keep trial types.

    Parameters
    ----------
    path : path
        The file to write, atomically; its extension decides the format.
    key : Key
    formats : sequence of Format
        User-supplied formats, whose extensions override those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    write_as(path, "key", key, check_extension(path, formats))


def write_scores(path: str | Path, scores: Scores, *, formats: Sequence[Format] = ()) -> None:
    """Write scores with all digits.

    Parameters
    ----------
    path : path
        The file to write, atomically; its extension decides the format.
    scores : Scores
    formats : sequence of Format
        User-supplied formats, whose extensions override those of `evaluation.formats.FORMATS`.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    write_as(path, "scores", scores, check_extension(path, formats))


def check_extension(path: str | Path, formats: Sequence[Format] = ()) -> Format:
    """Return the format of the extension, in which a list will be written.

    Raises
    ------
    DataError
        If no format has the extension.
    """
    known = (*formats, *FORMATS)
    suffix = inner_suffix(path)
    suffixes: list[str] = []
    for form in known:
        if suffix in form.suffixes:
            return form
        suffixes += filter(None, form.suffixes)
    remedy = f"use one of {', '.join(suffixes)}, or none for text, each with .gz too"
    raise DataError(
        f"no format of lists is known for the extension {suffix!r}", file=path, remedy=remedy
    )


def write_as(path: str | Path, kind: Kind, trials: Trials, form: Format) -> None:
    """Write a list in a format regardless of the extension; raise DataError if the format cannot hold it."""
    if form.write is None or kind not in form.kinds:
        able = ", ".join(row.name for row in FORMATS if kind in row.kinds)
        raise DataError(
            f"{form.name} cannot hold {kind}",
            file=path,
            remedy=f"write it as one of {able}",
        )
    if kind == "trials":
        trials = trials.trials()
    form.write(path, trials)


def read_split(
    scores: str | Path,
    key: str | Path,
    *,
    missing: Missing = "error",
    scores_columns: Choice = DETECT,
    key_columns: Choice = DETECT,
    binary: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Read scores and their key, and split the scores into those of target and of nontarget trials.

    Parameters
    ----------
    scores, key : path
        Files of any format; the same file may be both.
    missing : {"error", "drop", "reject"}
        What to do with trials without a score, scores that are NaN, and scores of unknown ids; see
        `evaluation.trials.split_scores`.
    scores_columns, key_columns : Choice
        Specified columns of each file.
    binary : bool
        The scores are decisions, only 0 and 1; see `read_scores_and_key`.

    Returns
    -------
    target, nontarget : ndarray of float64

    Raises
    ------
    DataError
        With file and line, if a file is malformed or the two do not match.
    """
    scores_columns = replace(scores_columns, missing=missing)
    values, truth = join(
        *read_scores_and_key(
            scores, key, scores_columns=scores_columns, key_columns=key_columns, binary=binary
        ),
        files=(scores, key),
        missing=missing,
        columns=(scores_columns, key_columns),
    )
    return values[truth.is_target], values[~truth.is_target]


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
        Specified columns of each file.
    binary : bool
        The scores are decisions, only 0 and 1. Otherwise such scores are refused, because labels read as scores have
        an EER of 0.

    Raises
    ------
    DataError
        With file and line, if a file is malformed; or if scores are labels.
    """
    if scores_columns.in_order:
        truth = read_key(key, key_columns)
        values = _in_order(scores, key, truth, scores_columns)
    else:
        values = read_scores(scores, scores_columns)
    if not binary and np.array_equal(np.unique(np.abs(values.values)), [0, 1]):
        remedy = "swap scores and key if this is the key; binary=True in Python if the scores are decisions"
        raise DataError(
            "all scores are 0 or 1, like the labels of a key", file=scores, remedy=remedy
        )
    if not scores_columns.in_order:
        truth = read_key(key, key_columns)
        if Path(scores) != Path(key):
            _warn_of_other_labels(ListFile(Path(scores), "scores", scores_columns), truth)
    return values, truth


def join(
    scores: Scores,
    key: Key,
    *,
    files: tuple[str | Path, str | Path],
    missing: Missing = "error",
    columns: tuple[Choice, Choice] = (DETECT, DETECT),
) -> tuple[np.ndarray, Key]:
    """Join scores with a key as `join_scores` does, with errors that name lines in their files."""
    try:
        return join_scores(scores, key, missing=missing)
    except TrialError as error:
        side = ("scores", "key").index(error.side)
        text = f"with the {('key', 'scores')[side]} {files[1 - side]}: {error.text}"
        line = _line_of(files[side], error.rows[0], columns[side])
        raise DataError(text, file=files[side], line=line, remedy=error.remedy) from error


def _is_hdf5(file: ListFile) -> bool:
    """Return whether a file is HDF5, possibly after a user block, as Matlab writes it."""
    return any(file.head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048))


FORMATS: tuple[Format, ...] = (
    Format("hdf5", (".h5", ".hdf5"), _is_hdf5, read_hdf5, write_hdf5, title="HDF5"),
    MATLAB,
    Format("npz", (".npz",), lambda file: file.head.startswith(b"PK\x03\x04"), read_npz, write_npz),
    Format("table", (".csv", ".tsv"), None, read_list, write_table, title="a table"),
    TEXT,
)
"""All formats, in the order in which they are tried; `TEXT` reads everything else, tables too."""


def _recognised(file: ListFile) -> Format:
    """Detect the format of a file; raise an error if the content contradicts the extension."""
    known: tuple[Format, ...] = (*file.choice.formats, *FORMATS)
    for form in known:
        if form.recognises is not None and form.recognises(file):
            return form
    for form in known:
        if form.recognises is not None and inner_suffix(file.path) in form.suffixes:
            title = form.title or form.name
            article = "an" if title in ("HDF5", "npz") else "a"
            got = "something else" if file.head else "an empty file"
            text = f"expected {article} {title} file by its name, got {got}"
            raise DataError(text, file=file.path, remedy="write it again, or name a text list .txt")
    return TEXT


def _read(path: str | Path, kind: Kind, choice: Choice) -> Any:
    file = ListFile(Path(path), kind, choice)
    form = _recognised(file)
    if form.read is None or kind not in form.kinds:
        text = f"expected {kind}, but a file of the format {form.name} holds {' and '.join(form.kinds)}"
        raise DataError(text, file=path)
    return form.read(file)


def _warn_of_other_labels(file: ListFile, key: Key) -> None:
    """Warn if labels in a text file of scores contradict the key."""
    with suppress(DataError):  # skip columns without labels
        is_text = file.path.is_file() and _recognised(file) is TEXT
        if is_text and {"label", "real"} & {*find_columns(file).positions}:
            own: Any = match_ids(read_list(replace(file, kind="key")), key)
            rows = find_rows(key, own)
            unlike = np.flatnonzero((rows >= 0) & (own.is_target[rows] != key.is_target))
            if len(unlike):
                text = "labels of the scores contradict the key, whose labels count"
                logger.warning(
                    "%s: %d of %d %s: %s", file.path, len(unlike), len(key), text, key.named(unlike)
                )


def _in_order(path: str | Path, key_path: str | Path, key: Key, choice: Choice) -> Scores:
    """Read one score per line, in the order of the trials of a key."""
    if _is_hdf5(ListFile(Path(key_path), "key", choice)):
        text = "a key as HDF5 is a matrix, which does not keep the order of its trials"
        raise DataError(text, file=key_path, remedy="give the list that was scored, as text")
    values = []
    for number, line in enumerate(read_text_bytes(path).decode("utf-8", "replace").split("\n"), 1):
        if line.strip():
            if not is_score(line.strip()):
                raise DataError(
                    f"expected one score, got {line.strip()[:60]!r}", file=path, line=number
                )
            values.append(as_score(line.strip()))
    if len(values) != len(key):
        raise DataError(
            f"expected a score for each of {len(key)} trials of the key, got {len(values)}",
            file=path,
        )
    columns = (key.model_ids, key.segment_ids, key.models, key.segments, np.array(values))
    return _as_ratios(Scores.acquired(*columns, **choice.failures), choice)


def _as_ratios(scores: Scores, choice: Choice) -> Scores:
    """Return the scores of a file: higher means more similar, and ratios are natural logarithms."""
    if choice.distances:
        scores = replace(scores, values=0.0 - scores.values)
    if choice.llr_base != math.e:
        scores = replace(scores, values=scores.values * math.log(choice.llr_base))
    return scores


def _line_of(path: str | Path, row: int, choice: Choice) -> int | None:
    """Find the line of a trial by reading a text or table again; None for other files."""
    file = ListFile(Path(path), "trials", choice)
    if not file.path.is_file() or _recognised(file) is not TEXT:  # a pipe cannot be read again
        return None
    columns = find_columns(file)
    return cut_lines(path, file.text, columns.delimiter)[columns.header + row][0]
