"""Long steps that are stopped at every chunk and called again: the second call does the rest, to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from spkbase.arrays import StoredArray
from spkbase.runs import Journal
from spkver.vectors.supervectors import Supervectors


class Stopped(BaseException):
    """Stands for whatever ends a process: nothing may catch it."""


@contextmanager
def records(limit: int | None = None) -> Iterator[list[int]]:
    """Count the records that are written to journals; stop before there are more than `limit`."""
    written: list[int] = []
    append = Journal.append

    def counted(self: Journal, *arguments: object, **options: object) -> None:
        if len(written) == limit:
            raise Stopped
        append(self, *arguments, **options)
        written.append(len(self))

    with mock.patch.object(Journal, "append", counted):
        yield written


def check_every_stop(make: Callable[[Path | None], object], folder: Path, *, read: Callable[[], object]) -> int:
    """Stop `make(folder)` before each of its records, then let it run; `read()` gives the same every time.

    Returns
    -------
    int
        Number of records.
    """
    make(None)
    expected = read()
    with records() as whole:
        make(folder / "whole")
    assert read() == expected
    assert whole
    for stop in range(len(whole)):
        with pytest.raises(Stopped), records(stop):
            make(folder / str(stop))
        with records() as rest:
            make(folder / str(stop))
        assert len(rest) == len(whole) - stop, "nothing that was done is done again"
        assert read() == expected
    return len(whole)


def flip_bits(path: Path, place: int) -> None:
    """Damage one byte of a file; places below 0 count from its end."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    path.write_bytes(bytes(content))


def stored(array: np.ndarray, folder: Path, name: str = "stored") -> StoredArray:
    """The same array in a file, not at its beginning."""
    path = folder / f"{name}.raw"
    path.write_bytes(b"x" * 24 + np.ascontiguousarray(array).tobytes())
    return StoredArray(path, 24, array.shape, array.dtype)


def named(ids, vectors) -> Supervectors:
    """Vectors with ids, which stand for models and segments alike."""
    return Supervectors(ids, ids, vectors)


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str, *, most: int | None = None) -> list[object]:
    """Calls of a function from now on; the one after `most` is interrupted."""
    calls: list[object] = []
    original: Callable[..., object] = getattr(module, name)

    def count(*arguments: object, **options: object) -> object:
        if most is not None and len(calls) == most:
            raise KeyboardInterrupt
        calls.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, count)
    return calls
