"""Files of trials, keys and scores: read by their content, written by their extension.

======  ==========================================================================================================
Text    columns separated by white space; the orders of `evaluation.formats.layouts`
Table   a header, then columns between commas, tabs, semicolons or blanks (`evaluation.formats.tables`)
HDF5    the square form of SIDEKIT and BOSARIS, and their matlab form (`evaluation.formats.hdf5`)
npz     `evaluation.formats.npz`
gzip    of each of these
======  ==========================================================================================================

Written are ``.h5`` and ``.hdf5``, ``.npz``, ``.csv`` and ``.tsv``, text by ``.txt``, the names of lists or no
extension, and each with ``.gz`` behind it. A further format is one more module here.
"""

from __future__ import annotations

from pathlib import Path

from evaluation.formats.hdf5 import (
    read_hdf5_key,
    read_hdf5_scores,
    read_hdf5_trials,
    write_hdf5_key,
    write_hdf5_scores,
    write_hdf5_trials,
)
from evaluation.formats.layouts import DETECT, Choice
from evaluation.formats.npz import MAGIC as _NPZ_MAGIC
from evaluation.formats.npz import read_npz_key, read_npz_scores, read_npz_trials, write_npz
from evaluation.formats.tables import (
    find_header,
    read_columns,
    read_table_key,
    read_table_scores,
    read_table_trials,
    write_table,
)
from evaluation.formats.text import (
    read_text_key,
    read_text_scores,
    read_text_trials,
    write_text_key,
    write_text_scores,
    write_text_trials,
)
from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError
from spkbase.files import inner_suffix, read_bytes, read_text_bytes

__all__ = [
    "Choice",
    "find_line",
    "read_columns",
    "read_key",
    "read_scores",
    "read_trials",
    "write_key",
    "write_scores",
    "write_trials",
]

_HDF5_EXTENSIONS = (".h5", ".hdf5")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_TABLES = {".csv": ",", ".tsv": "\t"}
_TEXT_EXTENSIONS = ("", ".txt", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst")
_KNOWN = (*_HDF5_EXTENSIONS, ".npz", *_TABLES, *_TEXT_EXTENSIONS)


def read_trials(path: str | Path, choice: Choice = DETECT) -> Trials:
    """Read a list of trials; of a key the trials are read.

    Parameters
    ----------
    path : path
        Any of the formats, told apart by content.
    choice : Choice
        What is said about the columns of a text or a table; the rest is detected.

    Raises
    ------
    DataError
        With the place: no such file, an empty, broken or foreign file, a malformed line, a repeated pair.
    """
    path = Path(path)
    form = _form(path)
    if form == "hdf5":
        return read_hdf5_trials(path)
    if form == "npz":
        return read_npz_trials(path, read_bytes(path))
    raw = read_text_bytes(path)
    header = find_header(path, raw, None, choice)
    return read_text_trials(path, raw) if header is None else read_table_trials(path, raw, header)


def read_key(path: str | Path, choice: Choice = DETECT) -> Key:
    """Read a key: trials with their truth. Parameters and errors as for `read_trials`."""
    path = Path(path)
    form = _form(path)
    if form == "hdf5":
        return read_hdf5_key(path)
    if form == "npz":
        return read_npz_key(path, read_bytes(path))
    raw = read_text_bytes(path)
    header = find_header(path, raw, "key", choice)
    return read_text_key(path, choice, raw) if header is None else read_table_key(path, raw, header)


def read_scores(path: str | Path, choice: Choice = DETECT) -> Scores:
    """Read scores; NaN is an error, infinite scores are legal. Parameters and errors as for `read_trials`."""
    path = Path(path)
    form = _form(path)
    if form == "hdf5":
        return read_hdf5_scores(path)
    if form == "npz":
        return read_npz_scores(path, read_bytes(path))
    raw = read_text_bytes(path)
    header = find_header(path, raw, "scores", choice)
    return read_text_scores(path, choice, raw) if header is None else read_table_scores(path, raw, header)


def find_line(path: str | Path, row: int, choice: Choice = DETECT) -> int | None:
    """Line of a text or table where a trial stands, by its row in the list that was read; None for other formats."""
    path = Path(path)
    if _form(path) != "text":
        return None
    raw = read_text_bytes(path)
    if find_header(path, raw, None, choice):
        row += 1
    filled = (number for number, line in enumerate(raw.split(b"\n"), 1) if line.strip())
    return next((number for place, number in enumerate(filled) if place == row), None)


def write_trials(path: str | Path, trials: Trials, *, attributes: dict[str, str] | None = None) -> None:
    """Write a list of trials.

    Parameters
    ----------
    path : path
        The file to write, whole or not at all; its extension says how.
    trials : Trials
        The list.
    attributes : dict of str, optional
        Kept with an HDF5 file, such as the fingerprint of its inputs; other formats have no place for them.

    Raises
    ------
    DataError
        If the extension is unknown, an id cannot be written in this format, or the file cannot be written.
    """
    suffix = check_extension(path)
    if suffix in _HDF5_EXTENSIONS:
        write_hdf5_trials(path, trials, attributes=attributes)
    elif not _write_common(path, suffix, trials):
        write_text_trials(path, trials)


def write_key(path: str | Path, key: Key, *, attributes: dict[str, str] | None = None) -> None:
    """Write a key; HDF5 and CSV keep trial types. Parameters and errors as for `write_trials`."""
    suffix = check_extension(path)
    if suffix in _HDF5_EXTENSIONS:
        write_hdf5_key(path, key, attributes=attributes)
    elif not _write_common(path, suffix, key):
        write_text_key(path, key)


def write_scores(path: str | Path, scores: Scores, *, attributes: dict[str, str] | None = None) -> None:
    """Write scores, to the last bit. Parameters and errors as for `write_trials`."""
    suffix = check_extension(path)
    if suffix in _HDF5_EXTENSIONS:
        write_hdf5_scores(path, scores, attributes=attributes)
    elif not _write_common(path, suffix, scores):
        write_text_scores(path, scores)


def _write_common(path: str | Path, suffix: str, trials: Trials) -> bool:
    """Write npz and tables, which know by themselves what they hold; tell whether it was one."""
    if suffix == ".npz":
        write_npz(path, trials)
    elif suffix in _TABLES:
        write_table(path, trials, delimiter=_TABLES[suffix])
    return suffix == ".npz" or suffix in _TABLES


def _form(path: Path) -> str:
    """Tell a format from the content (HDF5 also behind a user block, as Matlab writes)."""
    try:
        with path.open("rb") as handle:
            head = handle.read(2056)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if head.startswith(b"\x1f\x8b"):
        head = read_bytes(path)[:2056]
    if any(head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048)):
        return "hdf5"
    if head.startswith(_NPZ_MAGIC):
        return "npz"
    suffix = inner_suffix(path)
    if suffix in (*_HDF5_EXTENSIONS, ".npz"):
        kind = "HDF5" if suffix in _HDF5_EXTENSIONS else "npz"
        got = "something else" if head else "an empty file"
        remedy = "write it again, or name a text list .txt"
        raise DataError(f"expected an {kind} file by its name, got {got}", file=path, remedy=remedy)
    return "text"


def check_extension(path: str | Path) -> str:
    """Give the extension of a list that is to be written; a DataError if there is no format for it."""
    suffix = inner_suffix(path)
    if suffix not in _KNOWN:
        remedy = f"use one of {', '.join(one for one in _KNOWN if one)}, or none for text, each with .gz too"
        raise DataError(f"no format of lists is known for the extension {suffix!r}", file=path, remedy=remedy)
    return suffix
