"""What is fuzzed: each parser with valid inputs, which our own writers make, and what reads them.

An input is the bytes of one file. A parser of several files gets one input that is spread over them: a line
``==> NAME`` begins the file of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spkbase.errors import SpkverError
from tests.fuzz.containers import Damage
from tests.fuzz.mutation import damage

_SECTION = re.compile(rb"(?:\A|\n)==> ([\w.-]{1,40})\n")


@dataclass(frozen=True)
class Parser:
    """One parser.

    Attributes
    ----------
    name : str
    file : str
        Name of the input; a folder where it ends with "/".
    seeds : callable
        Gives valid inputs; may use the folder that it is given.
    read : callable
        Takes the path of the input; must return or raise an `SpkverError`.
    kinds : sequence of damages
        In which way inputs are damaged, each as often.
    words : sequence of bytes
        Of the format, for inputs from scratch.
    """

    name: str
    file: str
    seeds: Callable[[Path], list[bytes]]
    read: Callable[[Path], object]
    kinds: Sequence[Damage] = (damage,)
    words: Sequence[bytes] = ()

    def place(self, folder: Path, data: bytes) -> Path:
        """Write an input where it is read."""
        path = folder / self.file.rstrip("/")
        if not self.file.endswith("/"):
            path.write_bytes(data)
            return path
        path.mkdir(exist_ok=True)
        for old in path.iterdir():
            if old.is_file():
                old.unlink()
        marks = list(_SECTION.finditer(data))
        ends = [*(mark.start() for mark in marks[1:]), len(data)]
        for mark, end in zip(marks, ends, strict=False):
            name = mark[1].decode()
            if name.strip("."):
                (path / name).write_bytes(data[mark.end() : end])
        return path


def joined(folder: Path, names: Sequence[str]) -> bytes:
    """Make one input of some files of a folder."""
    return b"\n".join(f"==> {name}\n".encode() + (folder / name).read_bytes() for name in names)


def written(write: Callable[..., Any], path: Path, *arguments: Any, **options: Any) -> bytes:
    """Bytes of what a writer writes."""
    write(path, *arguments, **options)
    return path.read_bytes()


def any_of(*readers: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader that tries all of these, and refuses what all refuse."""

    def read(path: Path) -> object:
        found, refused = [], None
        for one in readers:
            try:
                found.append(one(path))
            except SpkverError as error:
                refused = error
        if not found and refused is not None:
            raise refused
        return found[0]

    return read


def all_parsers() -> dict[str, Parser]:
    """By name."""
    from tests.fuzz import audio, backends, documents, lists, matrices, networks

    rooms = (lists, documents, audio, matrices, backends, networks)
    found = [parser for room in rooms for parser in room.PARSERS]
    assert len({parser.name for parser in found}) == len(found)
    return {parser.name: parser for parser in found}
