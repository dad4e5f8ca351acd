"""Locks of output folders, into which only one run at a time may write, and removal of files left by killed runs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files import TEMPORARY, make_folder

_TEMPORARY = re.compile(rf"\..*\.[a-z0-9_]{{8}}{re.escape(TEMPORARY)}(\..*)?")


@contextmanager
def sole_use(folder: str | Path) -> Iterator[None]:
    """Make the folder and lock it for other runs; the lock ends with the process.

    Raises
    ------
    DataError
        If the folder cannot be made, or another run is using it.
    """
    handle = os.open(make_folder(folder), os.O_RDONLY)
    try:
        if not _lock(handle):
            raise DataError("another run is using it", file=folder, remedy="wait for its end")
        yield
    finally:
        os.close(handle)


def is_in_use(folder: str | Path) -> bool:
    """Return whether a run is using a folder."""
    if not Path(folder).is_dir():
        return False
    handle = os.open(folder, os.O_RDONLY)
    try:
        return not _lock(handle)
    finally:
        os.close(handle)


def is_temporary(path: Path) -> bool:
    """Return whether a path has the name of an unfinished file."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporaries(folder: str | Path) -> int:
    """Remove the unfinished files of a killed run from a folder and its sub-folders; return their number."""
    count = 0
    for parent, folders, files in os.walk(folder):
        for path in filter(is_temporary, map(Path(parent).joinpath, [*files, *folders])):
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                count += 1
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not is_in_use(Path(parent) / name)
        ]
    return count


def _lock(handle: int) -> bool:
    """Lock an open folder; return whether it is ours, which is always true on systems without such locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True
