"""Pipes taken whole: what is read once to see what it is would be gone when it is read again."""

from __future__ import annotations

import atexit
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spkbase.errors import DataError

_SPOOLED: dict[tuple[int, int], Path] = {}
_FOLDERS: list[str] = []


def whole_file(path: str | Path, *, again: bool = False) -> Path:
    """Return a file that can be read again and again: the path itself, or a copy of what comes out of a pipe.

    A pipe (``<(shuf key.txt)``, ``/dev/stdin`` behind ``|``, a named one) is read to its end when it is first asked
    for; the copy goes when the program ends.

    Parameters
    ----------
    path : path
        Whatever it is; what is not there is left to who opens it.
    again : bool
        What was read before is wanted again. A named pipe is read anew otherwise: somebody may write another list.

    Raises
    ------
    DataError
        If the pipe cannot be read, or its copy not be written.

    Examples
    --------
    >>> whole_file("no/such/file").as_posix()
    'no/such/file'
    """
    path = Path(path)
    try:
        status = path.stat()
        if not stat.S_ISFIFO(status.st_mode):
            return path
        known = _SPOOLED.get((status.st_dev, status.st_ino))
        if known is not None and (again or path.is_symlink()):  # those without a name are links in /dev/fd
            return known
        with path.open("rb") as source, tempfile.NamedTemporaryFile(dir=_folder(), delete=False) as copy:
            shutil.copyfileobj(source, copy)
        _SPOOLED[status.st_dev, status.st_ino] = Path(copy.name)
        return Path(copy.name)
    except OSError as error:
        if not path.exists():
            return path
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error


@contextmanager
def errors_named(path: str | Path, copy: Path) -> Iterator[None]:
    """Have errors about a copy of a pipe name the pipe."""
    try:
        yield
    except DataError as error:
        if error.file is None or Path(error.file) == Path(path) or Path(error.file) != copy:
            raise
        raise DataError(error.text, file=path, line=error.line, remedy=error.remedy) from error


def _folder() -> str:
    if not _FOLDERS:
        _FOLDERS.append(tempfile.mkdtemp(prefix="spkver-pipes-"))
        atexit.register(shutil.rmtree, _FOLDERS[0], ignore_errors=True)
    return _FOLDERS[0]
