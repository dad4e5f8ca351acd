"""The bytes of a file, decompressed where it is gzip, and errors that name the place in it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files.archives import unpack_gzip
from spkbase.files.atomic import atomic_path
from spkbase.files.spooling import whole_file

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_bytes(path: str | Path) -> bytes:
    """Read a file whole, and decompress it if its first bytes say gzip.

    Raises
    ------
    DataError
        If it cannot be read, its gzip stream is broken, or unpacks to more than any list does.
    """
    path = Path(path)
    try:
        raw = whole_file(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if not raw.startswith(_GZIP_MAGIC):
        return raw
    try:
        return unpack_gzip(raw)
    except (ValueError, EOFError, zlib.error) as error:
        remedy = "it is truncated or damaged: copy or write it again"
        raise DataError(f"cannot be decompressed: {error}", file=path, remedy=remedy) from error


def read_text_bytes(path: str | Path) -> bytes:
    """Read a text file as `read_bytes` does, without a byte order mark, and refuse zero bytes, which no text holds."""
    return check_text(path, read_bytes(path))


def check_text(path: str | Path, raw: bytes) -> bytes:
    """Return the content of a text file without a byte order mark; a DataError if it holds zero bytes."""
    if b"\0" in raw:
        raise not_text(Path(path), line_at(raw, raw.index(b"\0")), "it holds zero bytes")
    return raw.removeprefix(_BYTE_ORDER_MARK)


def write_bytes(path: str | Path, raw: bytes) -> None:
    """Write a file, whole or not at all; as gzip, without a date, if it is named ``.gz``."""
    path = Path(path)
    if path.suffix.lower() == ".gz":
        raw = gzip.compress(raw, mtime=0)
    with atomic_path(path) as temporary:
        temporary.write_bytes(raw)


def inner_suffix(path: str | Path) -> str:
    """Return the extension in lower case, that before ``.gz`` where it ends so.

    Examples
    --------
    >>> inner_suffix("a/scores.CSV.gz"), inner_suffix("scores")
    ('.csv', '')
    """
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def line_at(raw: bytes, offset: int) -> int:
    """Return the number, from 1, of the line in which a byte stands."""
    return raw.count(b"\n", 0, offset) + 1


def not_text(path: Path, line: int, why: str) -> DataError:
    """Return the error of a file that is no text."""
    remedy = "give a text list, CSV, npz or HDF5"
    return DataError(f"expected text in UTF-8, but {why}", file=path, line=line, remedy=remedy)


def shown(raw: bytes, width: int = 60) -> str:
    """Quote some bytes of a file, shortened."""
    text = raw[: 4 * width].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= width else text[:width] + "...")
