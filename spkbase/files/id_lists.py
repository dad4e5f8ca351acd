"""Lists of an id and a value on each line, such as Kaldi's `utt2spk`, `utt2emo`, `text` and `wav.scp`."""

from __future__ import annotations

from pathlib import Path

from spkbase.errors import DataError, Problems
from spkbase.files.source import line_at, not_text, read_text_bytes


def read_id_list(
    path: str | Path, form: str, *, n_columns: int = 2, rest: bool = False, same_twice: bool = False
) -> dict[str, str]:
    """Read a list of an id and a value on each line.

    Parameters
    ----------
    path : path
        UTF-8; blank lines, Windows line ends, gzip and a byte order mark are accepted.
    form : str
        What a line should hold, for errors, such as ``"id speaker"``.
    n_columns : int
        Columns that a line has: 2, or 1 where the value may be missing.
    rest : bool
        The value is the rest of the line, white space within it too; else it is one column.
    same_twice : bool
        An id may stand there again with the same value.

    Returns
    -------
    dict of str to str
        In the order of the file.

    Raises
    ------
    DataError
        With file and line: another number of columns, an id that is there twice, an empty file, not UTF-8. All problems
        at once.
    """
    path = Path(path)
    raw = read_text_bytes(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(path, line_at(raw, error.start), "it holds other bytes") from None
    problems = Problems(path)
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    # not splitlines, which also cuts at characters that a transcript may hold
    for number, line in enumerate(text.split("\n"), 1):
        columns = line.split(maxsplit=1) if rest else line.split()
        if not columns:
            continue
        if len(columns) < n_columns or len(columns) > 2:
            got = len(line.split())
            problems.add(f"expected '{form}', got {got} columns: {line.strip()[:60]!r}", line=number)
            continue
        name, value = columns[0], "".join(columns[1:]).strip()
        if name not in values:
            lines[name], values[name] = number, value
        elif not same_twice:
            problems.add(f"{name!r} is there already, in line {lines[name]}", line=number)
        elif values[name] != value:
            what = form.split()[-1]
            text = f"{name!r} has the {what} {value!r}, but {values[name]!r} in line {lines[name]}"
            problems.add(text, line=number)
    problems.raise_if_any()
    if not values:
        raise DataError(f"expected lines '{form}', got an empty file", file=path, remedy="write it again")
    return values
