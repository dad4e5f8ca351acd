"""A stage of a run: declared at once, done when its value is asked for, skipped when its artefact is up to date.

While a stage is at work, finished chunks are kept in ``partial/<artefact>/`` with the fingerprint of the stage. They
outlive a crash, and go when the stage is done or when it depends on something else than they were made from.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from spkbase.errors import DataError
from spkbase.files import file_digest, write_text
from spkbase.runs.destination import Destination
from spkbase.runs.journal import progress_of
from spkbase.runs.ledger import Json, Ledger, Origin, origin_record
from spkbase.runs.locks import sole_use
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
State = Literal["done", "stale", "missing", "damaged"]

PARTIAL = "partial"
_FINGERPRINT, _MADE = "fingerprint", "made.json"


class Handle(Protocol[Value_co]):
    """What stages depend on: a value, which may be made when it is asked for, and the fingerprint of its origin."""

    @property
    def name(self) -> str:
        """Name of the stage."""

    @property
    def fingerprint(self) -> str:
        """Digest of all that the value is made from."""

    @property
    def value(self) -> Value_co:
        """The value; it is made now if it has not been."""


@one_line
@dataclass(frozen=True)
class Depends:
    """What the artefact of a stage is made from: when it changes, the artefact is made again.

    Attributes
    ----------
    inputs : object
        Configuration and lists, see `spkbase.files.fingerprint`.
    after : sequence of Handle or str
        Stages, or their names.
    libraries : sequence of str
        Distributions whose versions the numbers depend on.
    sources : mapping of str to Path, optional
        Files that are read, by the ids of what is in them: their path, size and time of change count.
    on_device : bool
        Whether the stage computes on the run's device.
    """

    inputs: Any = None
    after: Sequence[str | Handle[Any]] = ()
    libraries: Sequence[str] = ("numpy",)
    sources: Mapping[str, Path] | None = None
    on_device: bool = False


NOTHING = Depends()


@one_line
@dataclass(frozen=True)
class Given(Generic[Value]):
    """A value that is there already, in the place of a stage."""

    name: str
    fingerprint: str
    value: Value


class Draft:
    """What a stage is made into: handed to `make`.

    Attributes
    ----------
    path : Path
        Where the artefact goes.
    fingerprint : str
    attributes : dict
        To be written at the root of an HDF5 artefact.
    folder : Path
        For finished chunks; made when it is asked for, kept after a crash.
    """

    def __init__(self, path: Path, fingerprint: str, folder: Path) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.attributes: dict[str, Any] = {"fingerprint": fingerprint}
        self._folder, self._lock = folder, ExitStack()
        self._is_open = False

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def folder(self) -> Path:
        """Folder for finished chunks, made and held for this stage alone when it is first asked for."""
        if not self._is_open:
            # runs that share a folder of features do not hold it: two must not add to the same chunks
            self._unlink()
            self._lock.enter_context(sole_use(self._folder))
            if not self.is_kept():
                _empty(self._folder)
                write_text(self._folder / _FINGERPRINT, self.fingerprint + "\n")
            self._is_open = True
        return self._folder

    @property
    def destination(self) -> Destination:
        """The same as a value, for functions that write files or keep finished chunks."""
        return Destination(self.path, self.folder, self.fingerprint, self.attributes)

    def is_kept(self) -> bool:
        """Return whether there are chunks of an earlier run that this stage may take up."""
        return read_fingerprint(self._folder) == self.fingerprint

    def discard(self) -> None:
        """Remove the folder."""
        self._unlink()
        if self._folder.is_dir():
            shutil.rmtree(self._folder, ignore_errors=True)
            with suppress(OSError):
                self._folder.parent.rmdir()

    def _unlink(self) -> None:
        """Remove a link in the place of the folder: what it leads to is somebody else's and is not to be emptied."""
        if self._folder.is_symlink():
            with suppress(OSError):
                self._folder.unlink()

    def note_made(self, files: list[Path]) -> None:
        """Note that the artefact is whole; its checksum follows, which takes its time."""
        if self._is_open:
            write_text(self._folder / _MADE, json.dumps([_stamp(path) for path in files]))

    def is_made(self, files: list[Path]) -> bool:
        """Return whether an earlier run noted the files as whole, and nobody has written them since."""
        try:
            noted = json.loads((self._folder / _MADE).read_text(encoding="utf-8"))
            return bool(self.is_kept() and noted == [_stamp(path) for path in files])
        except (OSError, ValueError):
            return False


def read_fingerprint(folder: Path) -> str | None:
    """Return the fingerprint of the stage whose finished chunks a folder holds."""
    try:
        return (folder / _FINGERPRINT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


def partial_folder(output: Path, artefact: str) -> Path:
    """Return the folder of the finished chunks of an artefact."""
    return output / PARTIAL / artefact.replace("/", "_")


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class WorkingFolder(Protocol):
    """What a stage asks of the run that it is a step of: its folder and options, its records, its clock and its log."""

    output: Path
    force: bool
    frozen: bool
    timings: dict[str, float]

    @property
    def ledger(self) -> Ledger:
        """The records of the folder."""

    def path(self, name: str) -> Path:
        """Return the path of an artefact."""

    def measured(self, name: str) -> AbstractContextManager[None]:
        """Add the time of a block to that of a stage."""

    def timed(self, name: str) -> AbstractContextManager[None]:
        """Add the time of a block to that of a stage, and log it."""

    def tell(self, text: str, *values: object) -> None:
        """Log a line about a stage."""

    def note(self, stage: Stage[Any], entry: Json) -> None:
        """Write the record of a stage that is done."""


class Stage(Generic[Value]):
    """A step of a run with its artefact; see `spkbase.runs.Run.stage`.

    Attributes
    ----------
    name, artefact : str
    origin : Origin
        What it is made from.
    fingerprint : str
        Digest of that.
    """

    def __init__(
        self,
        run: WorkingFolder,
        artefact: str,
        origin: Origin,
        *,
        make: Callable[[Draft], object],
        read: Callable[[Path], Value],
        also: tuple[str, ...] = (),
    ) -> None:
        self.run, self.artefact, self.origin, self.also = run, artefact, origin, also
        self.name, self.fingerprint = origin.stage, origin.fingerprint
        self._make, self._read = make, read
        self._is_ready = self._is_fresh = self._has_value = False
        self._value: Value

    def __repr__(self) -> str:
        return f"Stage({self.name!r}, {self.artefact!r})"

    @property
    def path(self) -> Path:
        """Where the artefact is."""
        return self.run.path(self.artefact)

    @property
    def value(self) -> Value:
        """What the artefact holds; the stage is brought up to date first.

        The value always comes from the file, so that a run that takes up old artefacts continues with the same bits.
        """
        if not self._has_value:
            self.bring_up_to_date()
            try:
                self._value = self._read(self.path)
            except DataError as error:
                if self._is_fresh or self.run.frozen:
                    raise
                logger.warning("%s cannot be used and is made again: %s", self.path, error)
                self._remake()
                self._value = self._read(self.path)
            self._has_value = True
        return self._value

    def bring_up_to_date(self) -> None:
        """Make the artefact unless it is there, whole, and made from the same."""
        if self._is_ready:
            return
        if self.run.force:
            self._draft().discard()
            self._remake()
            return
        with self.run.measured(self.name):
            state = self.state()
        if state == "done":
            self._draft().discard()  # of a run that was killed just before it did so
            self.run.tell("%s: up to date, taken from %s", self.name, self.path)
            self._is_ready = True
            return
        if self.run.frozen:
            raise self._not_made(state)
        if state == "damaged":
            logger.warning("%s is not as it was written: it is made again", self.path)
            self._draft().discard()
        self._remake()

    def _not_made(self, state: State) -> DataError:
        text = f"{self.name} is {state}, and is needed as it is"
        return DataError(text, file=self.path, remedy="make it first: run with --until, or without --only")

    def state(self) -> State:
        """Return whether the artefact is there and what this stage would make."""
        entry = self.run.ledger.entry(self.artefact)
        if not entry or not all(path.is_file() for path in self._files()):
            return "missing"
        if entry.get("fingerprint") != self.fingerprint:
            return "stale"
        return "done" if entry.get("sha256") == self._digests() else "damaged"

    def _remake(self) -> None:
        with self._draft() as draft:
            with self.run.timed(self.name):
                if draft.is_made(self._files()):
                    self.run.tell("%s: %s is whole, its checksum was missing", self.name, self.path)
                else:
                    if draft.is_kept() and (chunks := progress_of(draft.folder)):
                        self.run.tell("%s: goes on after %d of %d chunks", self.name, *chunks)
                    self._make(draft)
                    draft.note_made(self._files())
                digests = self._digests()
            entry = {**origin_record(self.origin), "sha256": digests, "seconds": round(self.run.timings[self.name], 3)}
            self.run.note(self, entry)
            draft.discard()
        self._is_ready = self._is_fresh = True

    def _draft(self) -> Draft:
        return Draft(self.path, self.fingerprint, partial_folder(self.run.output, self.artefact))

    def _files(self) -> list[Path]:
        return [self.path, *map(self.run.path, self.also)]

    def _digests(self) -> dict[str, str | None]:
        return {name: file_digest(self.run.path(name)) for name in (self.artefact, *self.also)}
