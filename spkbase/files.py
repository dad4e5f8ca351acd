"""Files that are complete or absent, and their formats: JSON, YAML, CSV, tables and lists of ids.

A file is written to the same folder under a temporary name, flushed, then renamed. Input that is not as expected raises
one `DataError` with the file, the line if there is one, and what was expected.
"""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spkbase.errors import ConfigError, DataError, Problems, counted

if TYPE_CHECKING:
    import yaml

TEMPORARY = ".spkver-tmp"
"""Marks unfinished files and folders: after a killed run, only these may be removed."""

FORMAT_VERSION = 1

_GZIP_MAGIC = b"\x1f\x8b"
_POINTER = b"version https://git-lfs"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SCALARS = frozenset({str, int, float, bool, type(None)})

# raised by PyYAML's constructors, for example for `!!bool x`, `!!int ''`, 2001-99-99, or numbers of 5000 digits
_BROKEN_YAML = (
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    TypeError,
    OverflowError,
    RecursionError,
)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success the file is renamed to `path`, else removed.

    Parameters
    ----------
    path : path
        The file to write. Its folder is made if it is missing.

    Raises
    ------
    DataError
        If the folder cannot be written, the disk is full, or the path is a device or a pipe, which a new file would
        replace.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print((Path(folder) / "a.txt").read_text())
    whole
    """
    path = Path(path)
    # keep the suffix, by which writers choose the format
    temporary = temporary_name(path, path.suffix)
    with disk_errors(path, temporary):
        if path.exists() and not (path.is_file() or path.is_dir()):
            remedy = "give the path of a file"
            raise DataError(
                "is a device or a pipe, which is not written to", file=path, remedy=remedy
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.open("xb").close()
            yield temporary
            with temporary.open("rb+") as handle:
                os.fsync(handle.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def temporary_name(path: Path, suffix: str = "") -> Path:
    """Return the name of an unfinished file, in the same folder."""
    return path.parent / f".{path.stem[:40]}.{os.urandom(4).hex()}{TEMPORARY}{suffix}"


@contextmanager
def disk_errors(path: Path, *temporaries: Path) -> Iterator[None]:
    """Turn an OSError in the block into a DataError: the file cannot be written, and why.

    Errors about files other than this one, its temporary files and its folders are not changed.
    """
    try:
        yield
    except OSError as error:
        ours = {name.absolute() for name in (path, *temporaries, *path.absolute().parents)}
        if (
            temporaries
            and error.filename is not None
            and Path(error.filename).absolute() not in ours
        ):
            raise
        full = error.errno in _FULL
        if full:
            remedy = "free space or choose another output folder"
        else:
            remedy = "check the folder and its rights"
        # h5py's texts can be pages long
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DataError(f"cannot be written: {reason}", file=path, remedy=remedy) from error


def make_folder(path: str | Path) -> Path:
    """Make a folder and its parents if they are missing; raise a DataError if that fails."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"folder cannot be made: {error.strerror}"
        raise DataError(text, file=path, remedy="choose another folder") from error
    return Path(path)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, raw: bytes) -> None:
    """Write a file completely or not at all; it is compressed, without a date, if its name ends in ``.gz``."""
    if Path(path).suffix.lower() == ".gz":
        raw = gzip.compress(raw, mtime=0)
    with atomic_path(path) as temporary:
        temporary.write_bytes(raw)


def is_file(path: str | Path) -> bool:
    """Return whether a file exists; False for impossible names (too long, with a zero byte)."""
    return size_and_time(path) != (None, None) and Path(path).is_file()


def size_and_time(path: str | Path) -> tuple[int | None, int | None]:
    """Return the size of a file in bytes and its modification time in ns; (None, None) if it is missing."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # a zero byte in the name, from a damaged list
        return None, None
    return status.st_size, status.st_mtime_ns


def file_digest(path: str | Path) -> str | None:
    """Return the SHA-256 of a file's bytes; None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def as_plain(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Turn dataclasses and mappings into dictionaries with text keys, and lists and tuples into lists.

    Examples
    --------
    >>> as_plain({1: (Path("a"), [2.5])}, str)
    {'1': ['a', ['2.5']]}
    """
    if type(value) in _SCALARS:  # true of most values, and faster than the checks below
        return leaf(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name), leaf) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_plain(item, leaf) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item, leaf) for item in value]
    return leaf(value)


def fingerprint(*parts: Any) -> str:
    """Return a digest of configurations, lists or other fingerprints; equal inputs give equal strings.

    Parameters
    ----------
    *parts
        Dataclasses, mappings, sequences, strings, numbers, paths and NumPy arrays.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": [2.0]}) == fingerprint({"b": (2.0,), "a": 1})
    True
    """
    plain = [FORMAT_VERSION, *(as_plain(part, _digested) for part in parts)]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file, and decompress it if it begins like a gzip file.

    Raises
    ------
    DataError
        If it cannot be read, or its gzip stream is broken.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}", file=path, remedy="check the path"
        ) from error
    try:
        if raw.startswith(_GZIP_MAGIC):
            return gzip.decompress(raw)
        return check_data(path, raw)
    except (OSError, EOFError, zlib.error) as error:
        remedy = "it is truncated or damaged: copy or write it again"
        raise DataError(f"cannot be decompressed: {error}", file=path, remedy=remedy) from error


def check_data(path: str | Path, raw: bytes | None = None) -> bytes:
    """Return the first bytes of a file, which may be given; raise a DataError for a Git LFS pointer."""
    if raw is None:
        with suppress(OSError, TypeError), Path(path).open("rb") as file:
            raw = file.read(len(_POINTER))
    if raw is not None and raw.startswith(_POINTER):
        raise DataError("is a Git LFS pointer, not the data", file=path, remedy="run: git lfs pull")
    return raw or b""


def read_text_bytes(path: str | Path) -> bytes:
    """Read a text file like `read_bytes`; drop a byte order mark, and refuse zero bytes, which no text holds."""
    return check_text(path, read_bytes(path))


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file like `read_text_bytes`; raise a DataError with the line that is not UTF-8."""
    raw = read_text_bytes(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(Path(path), line_at(raw, error.start), "it holds other bytes") from None


def check_text(path: str | Path, raw: bytes) -> bytes:
    """Return the content of a text file without a byte order mark; raise a DataError if it has zero bytes."""
    if b"\0" in raw:
        raise not_text(Path(path), line_at(raw, raw.index(b"\0")), "it holds zero bytes")
    return raw.removeprefix(_BYTE_ORDER_MARK)


def inner_suffix(path: str | Path) -> str:
    """Return the extension in lower case, without a final ``.gz``.

    Examples
    --------
    >>> inner_suffix("a/scores.CSV.gz"), inner_suffix("scores")
    ('.csv', '')
    """
    path = Path(path)
    if path.suffix.lower() == ".gz":
        return Path(path.stem).suffix.lower()
    return path.suffix.lower()


def line_at(raw: bytes, offset: int) -> int:
    """Return the line number, from 1, of a byte."""
    return raw.count(b"\n", 0, offset) + 1


def not_text(path: Path, line: int, why: str) -> DataError:
    """Return the error for a file that is not text."""
    remedy = "give a text list, CSV, npz or HDF5"
    return DataError(f"expected text in UTF-8, but {why}", file=path, line=line, remedy=remedy)


def shown(raw: bytes, width: int = 60) -> str:
    """Quote the first bytes of a file."""
    text = raw[: 4 * width].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= width else text[:width] + "...")


def read_id_list(
    path: str | Path, form: str, *, n_columns: int = 2, rest: bool = False, same_twice: bool = False
) -> dict[str, str]:
    """Read a list with an id and a value on each line, such as Kaldi's `utt2spk`, `text` and `wav.scp`.

    Parameters
    ----------
    path : path
        UTF-8; blank lines, Windows line ends, gzip and a byte order mark are accepted.
    form : str
        Form of a line for error messages, such as ``"id speaker"``.
    n_columns : int
        Number of columns of a line: 2, or 1 if the value may be missing.
    rest : bool
        Whether the value is the rest of the line, with its white space; otherwise it is one column.
    same_twice : bool
        Whether an id may be repeated with the same value.

    Returns
    -------
    dict of str to str
        Values by id, in the order of the file.

    Raises
    ------
    DataError
        For wrong numbers of columns, repeated ids, an empty file, or text that is not UTF-8: all problems at once, with
        file and line.
    """
    problems = Problems(path)
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    # not splitlines, which also splits at characters that a transcript may contain
    for number, line in enumerate(read_text(path).split("\n"), 1):
        columns = line.split(maxsplit=1) if rest else line.split()
        if not columns:
            continue
        if not n_columns <= len(columns) <= 2:
            got = len(line.split())
            problems.add(
                f"expected '{form}', got {counted(got, 'column')}: {line.strip()[:60]!r}",
                line=number,
            )
            continue
        name = columns[0]
        value = "".join(columns[1:]).strip()
        if name not in values:
            lines[name] = number
            values[name] = value
        elif not same_twice:
            problems.add(f"{name!r} is repeated, first in line {lines[name]}", line=number)
        elif values[name] != value:
            column = form.split()[-1]
            text = (
                f"{name!r} has the {column} {value!r}, but {values[name]!r} in line {lines[name]}"
            )
            problems.add(text, line=number)
    problems.raise_if_any()
    if not values:
        raise DataError(
            f"expected lines '{form}', got an empty file", file=path, remedy="write it again"
        )
    return values


def load_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    DataError
        If it cannot be read, see `read_text`, or is not JSON; with the line.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"expected JSON: {error.msg}", file=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON: {error}", file=path) from error


def read_yaml_text(path: str | Path) -> str:
    """Read the text of a YAML file.

    Raises
    ------
    ConfigError
        If it cannot be read or is not in UTF-8.
    """
    try:
        return read_text(path)
    except DataError as error:
        raise ConfigError(error.text, file=path, line=error.line, remedy=error.remedy) from error


def load_yaml(text: str, *, file: str | Path | None = None) -> tuple[Any, yaml.Node | None]:
    """Read a YAML document safely: Python tags and aliases are refused.

    Parameters
    ----------
    text : str
        The document.
    file : path, optional
        The file of the document, for error messages.

    Returns
    -------
    value : object
        None for an empty document.
    node : yaml.Node or None
        The document's nodes, with their lines.

    Raises
    ------
    ConfigError
        If it is not YAML; with the line.
    """
    import yaml

    try:
        aliases: Any = (
            event
            for event in yaml.parse(text, yaml.SafeLoader)
            if isinstance(event, yaml.AliasEvent)
        )
        alias = next(aliases, None)
        if alias is not None:  # nine nested aliases can expand to a billion values
            problem = f"alias *{alias.anchor}, which is not read here: write its value out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=alias.start_mark)
        reader: Any = yaml.SafeLoader(text)
        node = reader.get_single_node()
        return (None if node is None else reader.construct_document(node)), node
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise ConfigError(
            f"not YAML: {getattr(error, 'problem', None) or error}", file=file, line=line
        ) from error
    except _BROKEN_YAML as error:
        raise ConfigError(f"not YAML: {type(error).__name__}: {error}"[:200], file=file) from error


def to_json(value: Any) -> str:
    """Return a result as JSON, indented by two spaces, in the order of its entries.

    JSON has no infinite or undefined numbers: they become ``"inf"``, ``"-inf"`` and ``null``.

    Parameters
    ----------
    value : object
        Mappings, sequences, dataclasses, NumPy numbers and arrays, paths, text, numbers, None.

    Raises
    ------
    DataError
        If it holds anything else.

    Examples
    --------
    >>> print(to_json({"eer": np.float64(0.25), "threshold": float("-inf"), "cllr": float("nan")}))
    {
      "eer": 0.25,
      "threshold": "-inf",
      "cllr": null
    }
    """
    return json.dumps(as_plain(value, _as_json), indent=2, ensure_ascii=False, allow_nan=False)


def write_json(path: str | Path, value: Any) -> None:
    """Write a result as JSON, completely or not at all; see `to_json`."""
    write_text(path, to_json(value) + "\n")


def append_line(path: Path, value: Any) -> None:
    """Append a JSON line to a file of finished results, so that it survives a crash."""
    with disk_errors(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the values that `append_line` wrote, except a last line that was cut off."""
    with suppress(OSError, UnicodeDecodeError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                yield json.loads(line)


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> str:
    r"""Lay out rows with commas, below a header.

    Parameters
    ----------
    columns : sequence of str
        The header.
    rows : iterable of mappings or sequences
        Values by column name, or in the order of the columns. None and missing values give blanks; other keys of a
        mapping are ignored. A text that a spreadsheet would interpret as a formula gets an apostrophe.

    Examples
    --------
    >>> format_csv(["system", "EER"], [{"system": "svm"}, ("a, b", 0.25), ("=1+2", -1.5)])
    'system,EER\nsvm,\n"a, b",0.25\n\'=1+2,-1.5\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        if isinstance(row, Mapping):
            row = [row.get(name, "") for name in columns]
        writer.writerow(map(without_formula, row))
    return text.getvalue()


def without_formula(cell: Any) -> Any:
    """Return a cell text that no spreadsheet interprets as a formula."""
    if not isinstance(cell, str) or not cell.lstrip("'").startswith(
        ("=", "+", "-", "@", "\t", "\r")
    ):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def format_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str] | Sequence[str] | None = None,
    *,
    markdown: bool = False,
) -> str:
    """Lay out rows as a table, with numbers aligned to the right and other columns to the left.

    Parameters
    ----------
    rows : sequence of mappings
        One mapping for each line; missing values and None give blanks.
    columns : mapping of str to str, or sequence of str, optional
        Columns in order, with or without a format such as ``".2f"``; by default the columns of the first row.
    markdown : bool
        Format the table as Markdown, and escape markup in cells.

    Examples
    --------
    >>> rows = [{"system": "svm", "EER": 3.456}, {"system": "gmm", "EER": 12.0}]
    >>> print(format_table(rows, {"system": "", "EER": ".2f"}))
    system    EER
    ------  -----
    svm      3.46
    gmm     12.00
    """
    if columns is None:
        columns = list(rows[0]) if rows else []
    if isinstance(columns, Mapping):
        formats = dict(columns)
    else:
        formats = dict.fromkeys(columns, "")
    laid_out = []
    for name, form in formats.items():
        values = [row.get(name) for row in rows]
        laid_out.append(_column_of_table(name, values, form, markdown))
    lines = zip(*laid_out, strict=True)
    if markdown:
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _column_of_table(name: str, values: Sequence[Any], form: str, markdown: bool) -> list[str]:
    """Return the title, the rule and the values of a column, all with the same width."""
    cells = [name]
    justified = str.ljust
    for value in values:
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            justified = str.rjust
            cells.append(format(value, form))
        elif value is None:
            cells.append("")
        else:
            cells.append(format(value))
    if markdown:
        cells = [escape_markdown(cell) for cell in cells]
    width = max(3, *map(len, cells))
    rule = "-" * width
    if markdown and justified is str.rjust:
        rule = "-" * (width - 1) + ":"
    cells.insert(1, rule)
    return [justified(cell, width) for cell in cells]


def escape_markdown(text: str) -> str:
    """Escape a text for a Markdown cell: one line, without links, tags, emphasis, code or bars.

    Examples
    --------
    >>> print(escape_markdown("[x](y) <b> a_b 5 [4, 6]"))
    [x]\\(y) \\<b\\> a\\_b 5 [4, 6]
    """
    return re.sub(r"[\\`*_<>|~]|&(?=#?\w+;)|(?<=\])\(", r"\\\g<0>", " ".join(text.split()))


def _digested(value: Any) -> Any:
    """Turn a single value of a fingerprint into a JSON value: an array into the digest of its bytes."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [
            value.dtype.str,
            list(value.shape),
            hashlib.sha256(np.ascontiguousarray(value).data).hexdigest(),
        ]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Iterable):
        return [as_plain(item, _digested) for item in value]
    raise TypeError(f"no fingerprint for {type(value)}")


def _as_json(value: Any) -> Any:
    """Turn a single value of a result into a JSON value."""
    if isinstance(value, (np.ndarray, np.generic)):
        return as_plain(value.tolist(), _as_json)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return None
        return str(value)
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DataError(f"expected a value that JSON can hold, got {type(value).__name__}: {value!r}")
