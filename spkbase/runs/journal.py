"""Finished chunks of a long step, kept in a file that survives whatever ends the process.

A journal is a file that only grows: a record for each chunk, with its length before it and a checksum in it. Whoever
opens it checks every record; what comes after the first bad one is cut off, and worked out again. So a process that is
killed while it writes loses that record, and a flipped bit on the disk loses the records from there on, but nothing
wrong is ever read. A record is JSON and the bytes of arrays of numbers: reading one runs nothing.

A file is records without gaps. Numbers of a record's frame are little-endian, without sign:

======  ==========  ==================================================================================
at      bytes       what
======  ==========  ==================================================================================
0       4           marker, ``SPKj``
4       4           n, bytes of JSON
8       8           m, bytes of arrays
16      4           CRC-32 of bytes 4 to 16, the JSON and the arrays
20      n           JSON, ASCII
20 + n  m           the arrays one after the other, each in C order, in the byte order that its type says
======  ==========  ==================================================================================

The first record has no arrays. Its JSON is ``{"version": 1, "fingerprint": ..., "total": ..., "setup": ...}``: the
fingerprint of what the chunks are made from, how many there will be or null, and how many of the next records are no
chunks. The JSON of the others is ``{"arrays": [[NAME, TYPE, SHAPE], ...], "note": ...}``, with types as NumPy writes
them (``"<f8"``).
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import bytes_of, disk_errors, make_folder, write_at
from spkbase.work import ordered_map

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
Json = Any

SUFFIX = ".journal"
_VERSION = 1
_MARKER = b"SPKj"
_HEAD = struct.Struct("<4sIQI")
_MOST_JSON = 1 << 26  # bytes; a record that promises more is a broken one
_READ = 1 << 22  # bytes that are checked at a time
_MOST_AXES, _MOST_VALUES = 32, 1 << 48
_NUMBERS = re.compile(r"[<>|=]?[biufc]\d{1,2}")


class Journal:
    """A file of checksummed records.

    Parameters
    ----------
    path : path
        By custom it ends in ``.journal``, see `progress_of`.
    fingerprint : str
        Of all that the chunks depend on; a journal of another fingerprint is emptied.
    total : int, optional
        Chunks that there will be, for those who ask how far it is.
    setup : int
        How many of the first records are no chunks.
    read_only : bool
        For onlookers: changes nothing, so somebody else may be writing. What is damaged or of another fingerprint is
        not there.

    Raises
    ------
    DataError
        If the file cannot be read or written, or the disk is full.
    FileNotFoundError
        If there is no file, for onlookers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder) / "a.journal", "abc") as journal:
    ...         journal.append({"x": np.arange(3)}, {"name": "first"})
    ...     with Journal(Path(folder) / "a.journal", "abc") as journal:
    ...         len(journal), journal.read(0)
    (1, ({'x': array([0, 1, 2])}, {'name': 'first'}))
    """

    def __init__(
        self,
        path: str | Path,
        fingerprint: str,
        *,
        total: int | None = None,
        setup: int = 0,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self._records: list[tuple[int, int, int]] = []  # offset, bytes of JSON, bytes of arrays
        self._file = _opened(self.path, read_only)
        try:
            head = {"version": _VERSION, "fingerprint": fingerprint, "total": total, "setup": setup}
            offset, size = self._find(head)
            self._end = offset
            if not read_only:
                self._begin(head, size)
        except BaseException:
            self.close()
            raise

    def _find(self, head: dict[str, Json]) -> tuple[int, int]:
        """Find the good records of these contents; give where the last one ends, and where the file does."""
        with disk_errors(self.path):
            size, offset = os.fstat(self._file).st_size, 0
            while (record := self._check(offset, size)) is not None:
                if not offset and self._contents(record)[0] != head:
                    break
                self._records.append(record)
                offset = sum(record) + _HEAD.size
        return offset, size

    def _begin(self, head: dict[str, Json], size: int) -> None:
        """Make ready for the next record: cut off what is damaged; without a good head, begin anew."""
        if self._records and self._end < size:
            logger.warning("%s: %d bytes after record %d are damaged", self.path, size - self._end, len(self))
        with disk_errors(self.path):
            os.ftruncate(self._file, self._end)
        if not self._records:
            self._write(head, [])

    def __len__(self) -> int:
        return max(0, len(self._records) - 1)

    def read(self, number: int) -> tuple[dict[str, NDArray], Json]:
        """Read the arrays and the note of a record.

        Raises
        ------
        DataError
            If the file was changed since it was opened.
        """
        with disk_errors(self.path):
            record = self._records[1 + range(len(self))[number]]
            if self._check(record[0], self._end) != record:
                text = f"record {number} was damaged while the run was on"
                raise DataError(text, file=self.path, remedy="start again: the run goes on before it")
            contents, offset = self._contents(record)
            arrays = {}
            for name, dtype, shape in contents["arrays"]:
                arrays[name] = np.empty(shape, dtype)
                offset += self._fill(arrays[name], offset)
        return arrays, contents["note"]

    def append(self, arrays: Mapping[str, NDArray] | None = None, note: Json = None) -> None:
        """Add a record.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Of numbers.
        note : JSON value

        Raises
        ------
        DataError
            If the disk is full; the journal stays as it was.
        """
        flat = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
        described = [[name, array.dtype.str, list(np.shape(arrays[name]))] for name, array in flat.items()]  # type: ignore[index]
        for name, array in flat.items():
            if not _NUMBERS.fullmatch(array.dtype.str):
                raise TypeError(f"{name}: a journal keeps numbers, not {array.dtype}")
        self._write({"arrays": described, "note": note}, [bytes_of(array) for array in flat.values()])

    def truncate(self, length: int) -> None:
        """Keep the first `length` records."""
        if length < len(self):
            self._records = self._records[: length + 1]
            self._end = sum(self._records[-1]) + _HEAD.size
            with disk_errors(self.path):
                os.ftruncate(self._file, self._end)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, contents: Json, pieces: Sequence[memoryview]) -> None:
        text = json.dumps(contents).encode()
        size = sum(len(piece) for piece in pieces)
        check = zlib.crc32(text, zlib.crc32(struct.pack("<IQ", len(text), size)))
        for piece in pieces:
            check = zlib.crc32(piece, check)
        offset = self._end
        try:
            with disk_errors(self.path):
                head = memoryview(_HEAD.pack(_MARKER, len(text), size, check) + text)
                for data in (head, *pieces):
                    offset += write_at(self._file, data, offset)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise
        self._records.append((self._end, len(text), size))
        self._end = offset

    def _check(self, offset: int, size: int) -> tuple[int, int, int] | None:
        """Record at an offset of the file, None unless it is whole, sound and understood."""
        head = os.pread(self._file, _HEAD.size, offset)
        if len(head) < _HEAD.size:
            return None
        marker, n_text, n_data, expected = _HEAD.unpack(head)
        end = offset + _HEAD.size + n_text + n_data
        if marker != _MARKER or n_text > _MOST_JSON or end > size:
            return None
        check, at = zlib.crc32(head[4:-4]), offset + _HEAD.size
        while at < end:
            block = os.pread(self._file, min(_READ, end - at), at)
            if not block:
                return None
            check, at = zlib.crc32(block, check), at + len(block)
        return (offset, n_text, n_data) if check == expected and self._is_sound((offset, n_text, n_data)) else None

    def _is_sound(self, record: tuple[int, int, int]) -> bool:
        """Whether the JSON says what the arrays hold: true of all that was written here."""
        try:
            contents = self._contents(record)[0]
            if not record[0]:
                return isinstance(contents["fingerprint"], str)
            return (
                "note" in contents
                and sum(_bytes(*shape_and_type) for shape_and_type in contents["arrays"]) == record[2]
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            return False

    def _contents(self, record: tuple[int, int, int]) -> tuple[Json, int]:
        """The JSON of a record, and where its arrays begin."""
        offset, n_text, _ = record
        return json.loads(os.pread(self._file, n_text, offset + _HEAD.size)), offset + _HEAD.size + n_text

    def _fill(self, array: NDArray, offset: int) -> int:
        target, done = bytes_of(array), 0
        while done < len(target):
            count = os.preadv(self._file, [target[done:]], offset + done)
            if not count:
                raise DataError("was cut off while the run was on", file=self.path, remedy="start again")
            done += count
        return done


def _opened(path: Path, read_only: bool) -> int:
    """The descriptor of a file, which is made where it may be."""
    close = getattr(os, "O_CLOEXEC", 0)
    if read_only:
        return os.open(path, os.O_RDONLY | close)
    make_folder(path.parent)
    with disk_errors(path):
        return os.open(path, os.O_RDWR | os.O_CREAT | close, 0o666)


def _bytes(name: str, dtype: str, shape: list[int]) -> int:
    if not (isinstance(name, str) and _NUMBERS.fullmatch(dtype) and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError("no array of numbers")
    if len(shape) > _MOST_AXES or math.prod(max(n, 1) for n in shape) > _MOST_VALUES:
        raise ValueError("no array that there can be")  # (0, 2**62), say
    return math.prod(shape) * np.dtype(dtype).itemsize


def _as_note(result: Json) -> tuple[dict[str, NDArray], Json]:
    return {}, result


def _of_note(_: dict[str, NDArray], note: Json) -> Json:
    return note


def resumed_map(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    journal: Path | None,
    fingerprint: str,
    pack: Callable[[Result], tuple[Mapping[str, NDArray], Json] | None] = _as_note,
    unpack: Callable[[dict[str, NDArray], Json], Result] = _of_note,
    **options: Any,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item in order, those that an earlier run has kept without working them out.

    Parameters
    ----------
    function : callable
        See `spkbase.work.ordered_map`.
    items : sequence
        Fixed by what the fingerprint stands for.
    journal : path or None
        Where results are kept, each before it is handed out; nowhere without it.
    fingerprint : str
        Of all that the results depend on.
    pack : callable
        Result to arrays and note of a record; None for a result that is not kept, nor is what follows it. By default
        results are JSON values.
    unpack : callable
        Arrays and note to the result, the same to the last bit.
    **options
        Of `ordered_map`; `sizes` of all items.
    """
    if journal is None:
        yield from ordered_map(function, items, **options)
        return
    with Journal(journal, fingerprint, total=len(items)) as kept:
        kept.truncate(len(items))
        n_kept = len(kept)
        if n_kept:
            what = options.get("description") or journal.stem
            logger.info("%s: %d of %d chunks taken up from an earlier run", what, n_kept, len(items))
        for number in range(n_kept):
            yield unpack(*kept.read(number))
        if options.get("sizes") is not None:
            options["sizes"] = options["sizes"][n_kept:]
        keeps = True
        for result in ordered_map(function, items[n_kept:], **options):
            packed = pack(result) if keeps else None
            keeps = packed is not None
            if packed is not None:
                kept.append(*packed)
            yield result


def progress_of(folder: str | Path) -> tuple[int, int] | None:
    """Return how many chunks the journals of a folder hold, and how many there will be; None without a journal.

    For onlookers: reads the lengths alone and changes nothing, also while a run is at work.
    """
    done = total = 0
    for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
        with suppress(OSError, ValueError, TypeError, KeyError), path.open("rb") as file:
            head, n_records = _count(file)
            if head["total"] is not None:
                total += int(head["total"])
                done += min(max(0, n_records - 1 - int(head["setup"])), int(head["total"]))
    return (done, total) if total else None


def _count(file: Any) -> tuple[Json, int]:
    size, offset, n_records, contents = os.fstat(file.fileno()).st_size, 0, 0, None
    while offset + _HEAD.size <= size:
        file.seek(offset)
        marker, n_text, n_data, _ = _HEAD.unpack(file.read(_HEAD.size))
        if marker != _MARKER or n_text > _MOST_JSON or offset + _HEAD.size + n_text + n_data > size:
            break
        if not n_records:
            contents = json.loads(file.read(n_text))
        offset, n_records = offset + _HEAD.size + n_text + n_data, n_records + 1
    return contents, n_records
