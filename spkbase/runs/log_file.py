"""The log of a run, a file in its output folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spkbase.packages import OURS


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Add all log lines of our packages to a file, and warnings and errors of the libraries that they use."""
    handler = _RunLog(path, encoding="utf-8")
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO) if level else logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _RunLog(logging.FileHandler):
    """The log of a run. A full disk does not end the run here: the artefacts will say so, once."""

    def __init__(self, path: Path, *, encoding: str) -> None:
        super().__init__(path, encoding=encoding)
        self.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.split(".")[0] in OURS)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass
