"""One run at a time in a folder, and what a run that was killed leaves there."""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spkbase.errors import DataError
from spkbase.files import TEMPORARY, make_folder

logger = logging.getLogger(__name__)

_TRIES, _PAUSE = 5, 0.05  # `spkver status` holds a folder for a moment while it looks
# Names that `spkbase.files.atomic_path` gives to files in the making, and nobody else to anything.
_TEMPORARY = re.compile(rf"\..*\.[a-z0-9_]{{8}}{re.escape(TEMPORARY)}(\..*)?")


@contextmanager
def sole_use(folder: str | Path) -> Iterator[None]:
    """Make the folder and keep other runs out of it; a process that dies lets go of it.

    Raises
    ------
    DataError
        If it cannot be made, or another run is at work in it.
    """
    folder = make_folder(folder)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"folder cannot be opened: {error.strerror}", file=folder) from error
    try:
        for left in reversed(range(_TRIES)):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise DataError("another run is at work in it", file=folder, remedy="wait for its end") from None
                time.sleep(_PAUSE)
            except OSError as error:  # file systems without locks
                logger.info("%s: not locked: %s", folder, error.strerror)
                break
        yield
    finally:
        os.close(handle)


def is_in_use(folder: str | Path) -> bool:
    """Return whether a run is at work in a folder; False where that cannot be known."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def is_temporary(path: Path) -> bool:
    """Return whether a path is named as files in the making are."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporaries(folder: str | Path) -> int:
    """Remove files that a run which was killed was writing below a folder; returns how many there were.

    Folders in which another run is at work, other hidden folders and links are left alone.
    """
    count = 0
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        for path in filter(is_temporary, map(here.joinpath, [*files, *folders])):
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                count += 1
        folders[:] = [name for name in folders if not name.startswith(".") and not is_in_use(here / name)]
    return count
