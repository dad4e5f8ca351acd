"""One run of a recipe in its output folder: stages that are skipped when their inputs have not changed.

    OUTPUT/run.log, OUTPUT/config.yaml, OUTPUT/stages.json, and the artefacts of the stages

Each artefact carries the fingerprint of what it was made from: the stage's configuration, the fingerprints of the
stages it depends on and the library's version. A stage whose artefact has the right fingerprint is not run again.
`stages.json` keeps the fingerprints with the checksums of the files: a damaged file is made again, and is noticed
before it is opened, since the HDF5 library reads some damage as other numbers and dies of some.
"""

from __future__ import annotations

import json
import logging
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from evaluation.files import write_text
from spkver.config import write_yaml
from spkver.errors import DataError
from spkver.store import file_digest, fingerprint
from spkver.version import __version__

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

_LEDGER = "stages.json"
# What the numbers depend on besides this package.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "h5py", "soundfile", "soxr", "librosa", "joblib")


@dataclass
class Run:
    """A recipe at work.

    Attributes
    ----------
    output : path
        Folder that everything is written to.
    jobs : int or None
        Workers; all cores by default.
    force : bool
        Redo every stage.
    quiet : bool
        Tell of the stages in the log file alone: of work that goes on inside a step of a larger run.
    stamps : dict
        Stage name to fingerprint.
    timings : dict
        Stage name to seconds.
    """

    output: Path
    jobs: int | None = None
    force: bool = False
    quiet: bool = False
    stamps: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Path of an artefact in the output folder."""
        return self.output / name

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure a stage that leaves no artefact of its own."""
        with self._measured(name):
            yield
        self._tell("%s: %.1f s", name, self.timings[name])

    def _tell(self, text: str, *values: object) -> None:
        logger.info(text, *values, extra={"file_only": self.quiet})

    @contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started

    def stamp(self, name: str, inputs: Any = None, *, after: tuple[str, ...] = ()) -> str:
        """Fingerprint of a stage, kept for those that depend on it; `stage` calls this.

        Parameters
        ----------
        name : str
        inputs : object
            Configuration and lists that it depends on, see `spkver.store.fingerprint`.
        after : tuple of str
            Names of the stages that it depends on.
        """
        self.stamps[name] = fingerprint(name, __version__, inputs, [self.stamps[stage] for stage in after])
        return self.stamps[name]

    def stage(
        self,
        name: str,
        artefact: str,
        *,
        make: Callable[[Path, Mapping[str, Any]], object],
        read: Callable[[Path], Value],
        inputs: Any = None,
        after: tuple[str, ...] = (),
    ) -> Value:
        """Run a stage unless its artefact is there and nothing that it depends on has changed; read the artefact.

        The value always comes from the file, so that a run that takes up old artefacts continues with the same bits.

        Parameters
        ----------
        name : str
        artefact : str
            File in the output folder.
        make : callable
            Computes and writes the artefact: called with its path and the attributes to write.
        read : callable
            Reads the value from the artefact.
        inputs, after
            See `stamp`.
        """
        stamp = self.stamp(name, inputs, after=after)
        path = self.path(artefact)
        if not self.force and self._is_current(artefact, stamp):
            try:
                with self._measured(name):
                    value = read(path)
                self._tell("%s: up to date, taken from %s", name, path)
                return value
            except DataError as error:
                logger.warning("%s cannot be used and is made again: %s", path, error)
        with self.timed(name):
            make(path, {"fingerprint": stamp})
            entry = {"stage": name, "fingerprint": stamp, "sha256": file_digest(path)}
            ledger = {**self._ledger(), artefact: entry}
            write_text(self.path(_LEDGER), json.dumps(ledger, indent=2, sort_keys=True) + "\n")
            return read(path)

    def _is_current(self, artefact: str, stamp: str) -> bool:
        entry, path = self._ledger().get(artefact, {}), self.path(artefact)
        if entry.get("fingerprint") != stamp or not path.is_file():
            return False
        if entry.get("sha256") == file_digest(path):
            return True
        logger.warning("%s is not as it was written: it is made again", path)
        return False

    def _ledger(self) -> dict[str, dict[str, str]]:
        """Artefact to stage, fingerprint and checksum; nothing where the file is missing or damaged."""
        try:
            ledger = json.loads(self.path(_LEDGER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        entries = ledger.items() if isinstance(ledger, dict) else ()
        return {artefact: entry for artefact, entry in entries if isinstance(entry, dict)}


@contextmanager
def start_run(output: str | Path, config: Any, *, jobs: int | None = None, force: bool = False) -> Iterator[Run]:
    """Open the output folder: log to its `run.log` and keep the resolved configuration beside it.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    if jobs is not None and jobs < 1:
        raise DataError(f"--jobs is {jobs}: expected a whole number of at least 1")
    output = Path(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        handler = _RunLog(output / "run.log", encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"output folder cannot be written: {error.strerror}", file=output, remedy="choose another --output"
        ) from error
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO) if level else logging.INFO)
    try:
        logger.info("spkver %s: %s", __version__, " ".join(sys.argv))
        write_yaml(output / "config.yaml", config)
        yield Run(output, jobs=jobs, force=force)
        logger.info("finished")
    except BaseException as error:
        # the one who catches it shows it
        logger.error("stopped: %s", str(error) or type(error).__name__, extra={"file_only": True})
        raise
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _RunLog(logging.FileHandler):
    """The log of a run. A full disk does not end the run here: the artefacts will say so, once."""

    def __init__(self, path: Path, *, encoding: str) -> None:
        super().__init__(path, encoding=encoding)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass


def versions() -> dict[str, str]:
    """Versions of the package, of Python and of the libraries that numbers depend on."""
    found = {"spkver": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
