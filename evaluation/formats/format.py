"""What a format of lists is, what a user may say about a file, and the file as a reader sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError
from spkbase.files import check_text, read_bytes
from spkbase.showing import one_line

Kind = Literal["scores", "key", "trials"]
KINDS: tuple[Kind, ...] = ("scores", "key", "trials")

_HEAD_BYTES = 2056
_GZIP_MAGIC = b"\x1f\x8b"


@one_line
@dataclass(frozen=True)
class Choice:
    """What a user says about a file; what is not said is detected.

    Parameters
    ----------
    layout : str or sequence of str, optional
        Order of the columns of a text without header: a name of `evaluation.formats.text`, or roles.
    model, segment : sequence of str
        Columns of a table with header that form the id together, joined by ``:``.
    score, label : str, optional
        Columns of a table with header.
    formats : tuple of Format
        User-supplied formats; they are asked before those of `evaluation.formats.FORMATS`.
    distances : bool
        The scores are distances, the lower the more alike: they are turned round.
    labelled : bool
        The scores' own file holds the truth too, so that a header lacks a column where there is none for it.
    """

    layout: str | Sequence[str] | None = None
    model: Sequence[str] = ()
    segment: Sequence[str] = ()
    score: str | None = None
    label: str | None = None
    formats: tuple[Format, ...] = ()
    distances: bool = False
    labelled: bool = False

    @property
    def names_columns(self) -> bool:
        """Whether columns of a header are named."""
        return bool(self.model or self.segment or self.score or self.label)


DETECT: Choice = Choice()


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
    recognises : function of a ListFile to bool
        Whether a file is of this format. Formats are asked in their order; the first that says yes reads the file.
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
    recognises: Callable[[ListFile], bool]
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
