"""The formats of lists that are known: a row each, asked in this order.

A user-supplied format is one more `Format`, given as `Choice.formats`, ``formats=`` or ``--format``
(``docs/formats.md``); one that everybody should have is one more row here. Detection, readers, writers, help texts and
the table of ``docs/formats.md`` are made from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from evaluation.formats.format import Format, Kind, ListFile
from evaluation.formats.hdf5 import (
    read_hdf5_key,
    read_hdf5_scores,
    read_hdf5_trials,
    write_hdf5_key,
    write_hdf5_scores,
    write_hdf5_trials,
)
from evaluation.formats.npz import MAGIC as _NPZ_MAGIC
from evaluation.formats.npz import read_npz_key, read_npz_scores, read_npz_trials, write_npz
from evaluation.formats.tables import (
    Header,
    find_header,
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
from evaluation.trials import Trials
from spkbase.errors import DataError
from spkbase.files import inner_suffix

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def _header(file: ListFile) -> Header | None:
    return find_header(file.path, file.text, None if file.kind == "trials" else file.kind, file.choice)


def _from_table(read: Callable[[Path, bytes, Header], Trials]) -> Callable[[ListFile], Trials]:
    """Make a reader of tables, which begins with the header."""

    def read_file(file: ListFile) -> Trials:
        header = _header(file)
        if header is None:
            raise DataError("expected a table with a header", file=file.path, line=1)
        return read(file.path, file.text, header)

    return read_file


def _write_table(path: str | Path, trials: Trials) -> None:
    write_table(path, trials, delimiter="\t" if inner_suffix(path) == ".tsv" else ",")


HDF5 = Format(
    name="hdf5",
    suffixes=(".h5", ".hdf5"),
    # also behind a user block, as Matlab writes
    recognises=lambda file: any(file.head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048)),
    read_scores=lambda file: read_hdf5_scores(file.path),
    read_key=lambda file: read_hdf5_key(file.path),
    read_trials=lambda file: read_hdf5_trials(file.path),
    write_scores=write_hdf5_scores,
    write_key=write_hdf5_key,
    write_trials=write_hdf5_trials,
    title="HDF5",
    keeps_attributes=True,
)
MATLAB = Format(
    name="matlab",
    suffixes=(),
    recognises=lambda _: False,  # it is read as HDF5
    write_scores=partial(write_hdf5_scores, matlab=True),
    title="SIDEKIT's other HDF5 form of scores",
)
NPZ = Format(
    name="npz",
    suffixes=(".npz",),
    recognises=lambda file: file.head.startswith(_NPZ_MAGIC),
    read_scores=lambda file: read_npz_scores(file.path, file.content),
    read_key=lambda file: read_npz_key(file.path, file.content),
    read_trials=lambda file: read_npz_trials(file.path, file.content),
    write_scores=write_npz,
    write_key=write_npz,
    write_trials=write_npz,
)
TABLE = Format(
    name="table",
    suffixes=(".csv", ".tsv"),
    recognises=lambda file: _header(file) is not None,
    read_scores=_from_table(read_table_scores),  # type: ignore[arg-type]  # each gives what it is named after
    read_key=_from_table(read_table_key),  # type: ignore[arg-type]
    read_trials=_from_table(read_table_trials),
    write_scores=_write_table,
    write_key=_write_table,
    write_trials=_write_table,
    title="a table",
    signed=False,
)
TEXT = Format(
    name="text",
    suffixes=(".txt", "", ".text", ".scores", ".key", ".keys", ".ndx", ".trials", ".trl", ".lst"),
    recognises=lambda _: True,
    read_scores=lambda file: read_text_scores(file.path, file.choice, file.text),
    read_key=lambda file: read_text_key(file.path, file.choice, file.text),
    read_trials=lambda file: read_text_trials(file.path, file.text),
    write_scores=write_text_scores,
    write_key=write_text_key,
    write_trials=write_text_trials,
    title="text",
    signed=False,
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
