"""Files of trials, keys and scores: read by their content, written by their extension.

**The formats of lists that are known: a row each, asked in this order.**

A user-supplied format is one more `Format`, given as `Choice.formats`, ``formats=`` or ``--format``
(``docs/formats.md``); one that everybody should have is one more row here. Detection, readers, writers, help texts and
the table of ``docs/formats.md`` are made from the rows.

**Scores and a key from files, joined; errors name the file and the line of what does not fit.**
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.formats import text as lists
from evaluation.formats.binary import NPZ_MAGIC, read_hdf5, read_npz_list, write_hdf5, write_npz
from evaluation.formats.text import DETECT, Choice, Header, read_list, write_text_list
from evaluation.trials import JoinError, Key, Scores, Trials, split_scores
from spkbase.errors import DataError
from spkbase.files import check_text, inner_suffix, read_bytes
from spkbase.showing import one_line

Kind = Literal["scores", "key", "trials"]
KINDS: tuple[Kind, ...] = ("scores", "key", "trials")

_HEAD_BYTES = 2056
_GZIP_MAGIC = b"\x1f\x8b"
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class ListFile:
    """A file that is to be read.

    Parameters
    ----------
    path : Path
        Where it is.
    kind : {"scores", "key", "trials"}
        What is expected in it.
    choice : Choice
        What the user says about it.
    head : bytes
        Its first 2056 bytes, decompressed where it is gzip.
    """

    path: Path
    kind: Kind
    choice: Choice
    head: bytes

    @cached_property
    def content(self) -> bytes:
        """All of its bytes, decompressed where it is gzip."""
        return read_bytes(self.path)

    @cached_property
    def text(self) -> bytes:
        """Its bytes without a byte order mark; a DataError if they hold zero bytes, which no text does."""
        return check_text(self.path, self.content)

    @cached_property
    def header(self) -> Header | None:
        """Where the columns of a table stand, or None if the first line names no columns."""
        return lists.find_header(self.path, self.text, self.kind, self.choice)

    def lines(self) -> list[str]:
        """Return its lines as text in UTF-8; a DataError if it is none."""
        try:
            return self.text.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError("expected text in UTF-8", file=self.path, remedy="save it as UTF-8") from error


@one_line
@dataclass(frozen=True)
class Format:
    """A format of lists: how it is told from others, and what can be read from it and written in it.

    Parameters
    ----------
    name : str
        Its name, as ``convert --to`` takes it.
    suffixes : tuple of str
        Extensions that it is written for, in lower case with their point; the first one is the usual one. None for a
        format that is only written by name.
    recognises : function of a ListFile to bool, optional
        Whether a file is of this format. Formats are asked in their order; the first that says yes reads the file. None
        for a format that is only written.
    read_scores, read_key, read_trials : function of a ListFile, optional
        Readers, which give `Scores`, `Key` and `Trials`; None for what the format cannot hold.
    write_scores, write_key, write_trials : function of a path and what is written, optional
        Writers; None for what the format cannot hold.
    title : str
        Words for help texts and tables; the name by default.
    signed : bool
        Whether the content shows the format for sure, as a magic number does. A file that has one of the extensions of
        such a format but not its content is an error, not a text.
    keeps_attributes : bool
        Whether writers take ``attributes``, a mapping of strings that stays with the file.

    Examples
    --------
    ``docs/formats.md`` has a whole user-supplied format.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[ListFile], bool] | None
    read_scores: Callable[[ListFile], Scores] | None = None
    read_key: Callable[[ListFile], Key] | None = None
    read_trials: Callable[[ListFile], Trials] | None = None
    write_scores: Callable[..., None] | None = None
    write_key: Callable[..., None] | None = None
    write_trials: Callable[..., None] | None = None
    title: str = ""
    signed: bool = True
    keeps_attributes: bool = False

    def reads(self) -> list[Kind]:
        """Return what can be read from it."""
        return [kind for kind in KINDS if getattr(self, f"read_{kind}") is not None]

    def writes(self) -> list[Kind]:
        """Return what can be written in it."""
        return [kind for kind in KINDS if getattr(self, f"write_{kind}") is not None]


def _is_hdf5(file: ListFile) -> bool:
    """Also behind a user block, as Matlab writes."""
    return any(file.head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048))


def _read_hdf5(file: ListFile) -> Any:
    image = BytesIO(file.content) if "content" in vars(file) else None  # it had to be decompressed
    return read_hdf5(file.path, file.kind, image)


def _is_npz(file: ListFile) -> bool:
    return file.head.startswith(NPZ_MAGIC)


def _read_npz(file: ListFile) -> Any:
    return read_npz_list(file.path, file.content, file.kind)


def _read_text(file: ListFile) -> Any:
    return read_list(file.path, file.text, file.kind, file.choice, file.header)


def _write_table(path: str | Path, trials: Trials) -> None:
    lists.write_table(path, trials, delimiter="\t" if inner_suffix(path) == ".tsv" else ",")


def _all_kinds(read: Callable[[ListFile], Any], write: Callable[..., None]) -> dict[str, Any]:
    """Return the fields of a format that holds trials, keys and scores alike."""
    return {f"read_{kind}": read for kind in KINDS} | {f"write_{kind}": write for kind in KINDS}


_TEXTS = (".txt", "", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst")
_MATLAB = partial(write_hdf5, matlab=True)
HDF5 = Format(
    "hdf5", (".h5", ".hdf5"), _is_hdf5, **_all_kinds(_read_hdf5, write_hdf5), title="HDF5", keeps_attributes=True
)
MATLAB = Format("matlab", (), None, write_scores=_MATLAB, title="SIDEKIT's other HDF5 form of scores")
NPZ = Format("npz", (".npz",), _is_npz, **_all_kinds(_read_npz, write_npz))
TABLE = Format(
    "table",
    (".csv", ".tsv"),
    attrgetter("header"),
    **_all_kinds(_read_text, _write_table),
    title="a table",
    signed=False,
)
TEXT = Format("text", _TEXTS, bool, **_all_kinds(_read_text, write_text_list), signed=False)

FORMATS: tuple[Format, ...] = (HDF5, MATLAB, NPZ, TABLE, TEXT)
"""All formats, in the order in which they are asked; `TEXT` takes what no other does."""


def open_list(path: str | Path, kind: Kind, choice: Choice) -> ListFile:
    """Look at the beginning of a file; a pipe is read whole, once.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    path = Path(path)
    try:
        if path.is_file():
            with path.open("rb") as handle:
                head = handle.read(_HEAD_BYTES)
            if not head.startswith(_GZIP_MAGIC):
                return ListFile(path, kind, choice, head)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    content = read_bytes(path)
    file = ListFile(path, kind, choice, content[:_HEAD_BYTES])
    file.__dict__["content"] = content  # so that it is not decompressed twice
    return file


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
        if (candidate.signed or promised is None) and candidate.recognises is not None and candidate.recognises(file):
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
    return lists.line_of(file.text, row + (form is TABLE)) if form in (TABLE, TEXT) else None


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
