"""Long steps that survive SIGKILL: finished chunks are kept (`Journal`, `resumed_map`), big files are filled in place.

An `ArrayDraft` is the HDF5 file that a step ends with, laid out at the start with all its space reserved and then
filled by blocks of rows. A journal beside it keeps the checksum of each block, so a draft that is found again goes on
after the last block that still has its checksum.

A folder of unfinished work on ``NAME`` holds

================  ====================================================================================================
file              what
================  ====================================================================================================
``NAME.draft``    the HDF5 file as it will be, of its full size; rows that are not written yet are zeros
``NAME.journal``  a journal (`spkbase.runs.journal`) of notes, without arrays
================  ====================================================================================================

The first note says where the rows are, ``{"offsets": {DATASET: first byte}, "size": ..., "check": ...}``, with the size
of the file and the CRC-32 of all its bytes that are not rows. Each other note stands for a block of rows, ``{"start":
first row, "rows": number, "checks": {DATASET: CRC-32}}``.
"""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import StoredArray
from spkbase.files import (
    atomic_file,
    atomic_path,
    bytes_of,
    disk_errors,
    make_folder,
    temporary_name,
    write_at,
    write_strings,
)
from spkbase.files import fingerprint as digest_of
from spkbase.runs.journal import SUFFIX, Journal, progress_of, resumed_map

if TYPE_CHECKING:
    import h5py

__all__ = ["ArrayDraft", "Journal", "progress_of", "resumed_map", "working_folder"]

Small = Mapping[str, NDArray | Iterable[str]] | Callable[["h5py.File"], None]
Draft = TypeVar("Draft", bound="ArrayDraft")
_READ = 1 << 22  # bytes that are checked at a time


@contextmanager
def working_folder(path: str | Path, folder: str | Path | None) -> Iterator[Path]:
    """Yield a folder for unfinished work on the file `path`: the given one, which stays, else one that is removed.

    Raises
    ------
    DataError
        If it cannot be made.
    """
    if folder is not None:
        yield make_folder(folder)
        return
    make_folder(Path(path).parent)
    made = temporary_name(Path(path))
    try:
        with disk_errors(Path(path)):
            made.mkdir(mode=0o700)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


class ArrayDraft:
    """An HDF5 file in the making: datasets of known length, filled by blocks of rows.

    Use it as a context manager. A draft that is left before `finish` stays in its folder, for the next time, or is
    removed where no folder was given.

    Parameters
    ----------
    path : path
        Where the file goes when it is whole.
    folder : path or None
        Keeps the draft until then; should be on the same disk. Without it nothing is taken up by a later run.
    fingerprint : str
        Of all that the file depends on: a draft of another one is begun anew.
    datasets : mapping of str to (shape, dtype)
        All of the same length; contiguous in the file.
    small : mapping of str to array or strings, or callable, optional
        What else is in the file; a callable is given the open h5py file.
    attributes : mapping, optional
        At the root of the file.
    n_blocks : int, optional
        Blocks that there will be, for those who ask how far it is.

    Raises
    ------
    DataError
        If there is no space for the whole file, or the folder cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        folder: str | Path | None,
        fingerprint: str,
        datasets: Mapping[str, tuple[tuple[int, ...], Any]],
        small: Small | None = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        n_blocks: int | None = None,
    ) -> None:
        self.path = Path(path)
        self._datasets = {name: (tuple(shape), np.dtype(dtype)) for name, (shape, dtype) in datasets.items()}
        if len({shape[0] for shape, _ in self._datasets.values()}) != 1:
            raise ValueError(f"the datasets of a draft have one length, not {self._datasets}")
        self.n_rows = 0
        if isinstance(small, Mapping):
            small = {name: values if isinstance(values, np.ndarray) else list(values) for name, values in small.items()}
        self._small, self._attributes, self._file = small or {}, dict(attributes or {}), -1
        self._working = ExitStack()
        self._folder = self._working.enter_context(working_folder(path, folder))
        self._draft = self._folder / f"{self.path.name}.draft"
        try:
            described = [[name, list(shape), dtype.str] for name, (shape, dtype) in self._datasets.items()]
            known = small if isinstance(small, Mapping) else None
            whole = digest_of(
                fingerprint, described, known, {name: str(value) for name, value in self._attributes.items()}
            )
            journal = self._folder / f"{self.path.name}{SUFFIX}"
            self._journal = Journal(journal, whole, total=n_blocks, setup=1)
            self._take_up()
        except BaseException:
            self.close()
            raise

    @property
    def n_done(self) -> int:
        """Blocks that are written: the number of the next one."""
        return max(0, len(self._journal) - 1)

    def write(self, block: int, start: int, rows: Mapping[str, NDArray]) -> None:
        """Write rows `start` and following of every dataset.

        Parameters
        ----------
        block : int
            Blocks come in order: this is `n_done`.
        start : int
            The rows follow each other: this is `n_rows`.
        rows : mapping of str to ndarray
            Of every dataset as many.

        Raises
        ------
        DataError
            If the disk fails.
        """
        length = {len(values) for values in rows.values()}
        if block != self.n_done or start != self.n_rows or len(length) != 1 or set(rows) != set(self._datasets):
            raise ValueError(f"block {block} from row {start} does not follow {self.n_done} blocks, {self.n_rows} rows")
        n_new, checks = length.pop(), {}
        for name, values in rows.items():
            shape, dtype = self._datasets[name]
            if values.shape[1:] != shape[1:] or start + n_new > shape[0]:
                raise ValueError(f"rows {start} ff. of shape {values.shape} do not fit {name} of shape {shape}")
            data = bytes_of(np.ascontiguousarray(values, dtype))
            checks[name] = zlib.crc32(data)
            if len(data):
                with disk_errors(self.path):
                    write_at(self._file, data, self._range(name, start, start)[0])
        self._journal.append(note={"start": start, "rows": n_new, "checks": checks})
        self.n_rows += n_new

    def stored(self, name: str) -> StoredArray:
        """Return the rows of a dataset that are written so far."""
        shape, dtype = self._datasets[name]
        begin, _ = self._range(name, 0, 0)
        return StoredArray(self._draft, begin, (self.n_rows, *shape[1:]), dtype)

    def finish(self) -> None:
        """Put the file in its place.

        Raises
        ------
        DataError
            If the disk fails.
        """
        length = next(iter(self._datasets.values()))[0][0]
        if self.n_rows != length:
            raise ValueError(f"{self.n_rows} of {length} rows are written")
        with disk_errors(self.path):
            os.fsync(self._file)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._draft.replace(self.path)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                with atomic_path(self.path) as temporary:
                    shutil.copyfile(self._draft, temporary)
                self._draft.unlink()
        self.close()

    def close(self) -> None:
        """Let go of the files; what is unfinished stays for the next time where a folder was given."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if hasattr(self, "_journal"):
            self._journal.close()
        self._working.close()

    def __enter__(self: Draft) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_up(self) -> None:
        """Go on with what is there, or lay out a new file."""
        if len(self._journal):
            self._layout = self._journal.read(0)[1]
            if self._is_ours(self._draft):
                self._reserve()
            elif self._is_ours(self.path):
                # finished by a run that was killed before it read the result
                with disk_errors(self.path):
                    self.path.replace(self._draft)
                self._reserve()
        if self._file < 0:
            self._journal.truncate(0)
            self._lay_out()
            try:
                self._reserve()
            except BaseException:
                self._draft.unlink(missing_ok=True)
                raise
            self._layout["check"] = self._frame_check(self._file)
            self._journal.append(note=self._layout)
        for number in range(1, len(self._journal)):
            if not self._holds(self._journal.read(number)[1]):
                self._journal.truncate(number)
                break

    def _lay_out(self) -> None:
        import h5py

        layout: dict[str, Any] = {"offsets": {}}
        with atomic_file(self._draft) as handle, h5py.File(handle, "w") as file:
            for name, value in self._attributes.items():
                file.attrs[name] = value
            if callable(self._small):
                self._small(file)
            else:
                for name, array in self._small.items():
                    if isinstance(array, np.ndarray) and array.dtype != object:
                        file.create_dataset(name, data=array)
                    else:
                        write_strings(file, name, array)
            for name, (shape, dtype) in self._datasets.items():
                layout["offsets"][name] = _empty_dataset(file, name, shape, dtype)
        layout["size"] = self._draft.stat().st_size
        self._layout = layout

    def _reserve(self) -> None:
        """Open the draft and make sure of its space: later, there could be none left."""
        with disk_errors(self.path):
            self._file = os.open(self._draft, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, 0, self._layout["size"])

    def _is_ours(self, path: Path) -> bool:
        """Whether a file has the layout of the draft, down to the bytes that are not rows."""
        with suppress(OSError, KeyError, TypeError, ValueError):
            file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            try:
                at_hand = {"size": os.fstat(file).st_size, "check": self._frame_check(file)}
                return at_hand == {name: self._layout[name] for name in at_hand}
            finally:
                os.close(file)
        return False

    def _frame_check(self, file: int) -> int:
        """Checksum of all bytes that are not rows."""
        check, reached = 0, 0
        ends = sorted(self._range(name, 0, shape[0]) for name, (shape, _) in self._datasets.items())
        for begin, end in [*ends, (self._layout["size"], 0)]:
            check = _check(file, reached, begin, check)
            reached = max(reached, end)
        return check

    def _holds(self, block: Mapping[str, Any]) -> bool:
        """Whether the rows of a block follow the last one and are as they were written; counts them."""
        if block["start"] != self.n_rows:
            return False
        stop = self.n_rows + block["rows"]
        for name, expected in block["checks"].items():
            if _check(self._file, *self._range(name, self.n_rows, stop)) != expected:
                return False
        self.n_rows = stop
        return True

    def _range(self, name: str, start: int, stop: int) -> tuple[int, int]:
        """First byte of a row in the file, and the end of another."""
        shape, dtype = self._datasets[name]
        row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
        begin = self._layout["offsets"][name]
        return begin + start * row, begin + stop * row


def _empty_dataset(file: h5py.File, name: str, shape: tuple[int, ...], dtype: np.dtype) -> int:
    """A dataset with its place in the file and nothing in it; returns the place."""
    import h5py

    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.CONTIGUOUS)
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    settings.set_obj_track_times(False)
    kind = h5py.h5t.py_create(dtype, logical=True)
    made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), settings)
    return int(made.get_offset() or 0)


def _check(file: int, begin: int, end: int, check: int = 0) -> int:
    """Checksum of bytes of a file; that of fewer bytes where it ends too early."""
    while begin < end and (block := os.pread(file, min(_READ, end - begin), begin)):
        check, begin = zlib.crc32(block, check), begin + len(block)
    return check
