"""Runs: the stages of an output folder are made one after another, and only if something has changed.

    OUTPUT/run.log, OUTPUT/config.yaml   log and resolved configuration
    OUTPUT/stages.json                   for each artefact: its inputs, size, modification time and SHA-256
    OUTPUT/sources.json                  for each stage: path, size and modification time of the files that it reads

`Run.stage` makes an artefact, or reuses it if it was made from the same configuration, lists, input files and earlier
stages, with the same versions of this package and of the libraries that its numbers depend on. A stage is made
completely or not at all: after a crash, the unfinished stage is made again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from spkbase.configuration import write_yaml
from spkbase.errors import ConfigError, DataError, SpkverError
from spkbase.files import (
    file_digest,
    fingerprint,
    load_json,
    make_folder,
    size_and_time,
    write_json,
    write_text,
)
from spkbase.locks import remove_temporaries, sole_use
from spkbase.packages import OURS
from spkbase.showing import one_line
from spkbase.version import __version__, library_version
from spkbase.work import Work

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

Json = dict[str, Any]
State = Literal["done", "stale", "missing", "damaged"]
REPORT = "report"  # the last stage of a recipe

_STEP = ""  # the step in which stages are made, in any folder
LOG = "run.log"
STAGES = "stages.json"
SOURCES = "sources.json"


class Ended(Exception):  # noqa: N818  # not an error
    """Raised when the stage named by `only` or `until` is done."""


class Origin(Protocol):
    """A dependency of a stage: a name, and a fingerprint of its inputs."""

    @property
    def name(self) -> str:
        """Name of the stage."""

    @property
    def fingerprint(self) -> str:
        """Digest of all its inputs."""


class Planned(NamedTuple):
    """A stage of a run, and the step that it belongs to."""

    stage: str
    step: str


class Stamp(NamedTuple):
    """A dependency without an artefact, such as recordings that stages read, or an existing value."""

    name: str
    fingerprint: str
    value: Any = None


class Stage(Generic[Value]):
    """A step of a run and its artefact, which `Run.stage` makes.

    Attributes
    ----------
    name : str
    artefact : str
        File in the output folder.
    fingerprint : str
        Digest of its inputs.
    """

    def __init__(
        self,
        run: Run,
        artefact: str,
        origin: Stamp,
        read: Callable[[Path], Value],
        *,
        is_made: bool,
    ) -> None:
        self.run = run
        self.name = origin.name
        self.artefact = artefact
        self.fingerprint = origin.fingerprint
        self._origin = origin
        self._read = read
        self._is_made = is_made

    def __repr__(self) -> str:
        return f"Stage({self.name!r}, {self.artefact!r})"

    @property
    def path(self) -> Path:
        """Path of the artefact."""
        return self.run.path(self.artefact)

    @property
    def value(self) -> Value:
        """Contents of the artefact, read once from the file, so that every run uses the same bits.

        Raises
        ------
        DataError
            If a run limited to another stage has not made it.
        """
        if "_value" not in self.__dict__:
            if self._is_made:
                state = "done"
            else:
                state = self.run.state(self.artefact, self._origin)
            if state != "done":
                text = f"{self.run.only!r} needs stage {self.name!r}, which is {state}"
                remedy = f"run with until={self.name!r} first, or do not choose one stage only"
                raise DataError(text, file=self.path, remedy=remedy)
            self._value = self._read(self.path)
        return self._value

    def release(self) -> None:
        """Drop the value from memory; it is read again on demand."""
        self.__dict__.pop("_value", None)


@one_line
@dataclass
class Run:
    """A run of a recipe in its output folder.

    Attributes
    ----------
    output : path
        Folder into which everything is written.
    jobs : int or None
        Workers; all cores by default.
    force : bool
        Make every stage again.
    quiet : bool
        Whether stages are logged only to the file, as details of a step of a larger run.
    only, until : str or None
        `only`: make only this stage, for which the earlier ones must be up to date; `until`: make all stages up to this
        one.
    timings : dict
        Stage name to seconds.
    """

    output: Path
    jobs: int | None = None
    force: bool = False
    quiet: bool = False
    only: str | None = None
    until: str | None = None
    timings: dict[str, float] = field(default_factory=dict)
    plan: dict[str, Planned] = field(default_factory=dict, repr=False)
    """The stages of this run, by artefact."""

    def path(self, name: str) -> Path:
        """Return the path of an artefact in the output folder; raise a DataError if its name leads out of it."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            raise DataError(
                f"{name!r} leads out of the output folder",
                file=self.output,
                remedy="choose another name",
            )
        return self.output / name

    def below(self, name: str) -> Run:
        """Return a run with the same options in a sub-folder, for a step that has stages."""
        folder = make_folder(self.path(name))
        return Run(folder, self.jobs, self.force, self.quiet)

    @property
    def _records(self) -> _Records:
        return _records_in(self.output.absolute())

    @property
    def work(self) -> Work:
        """Workers of the stages."""
        return Work(self.jobs)

    def tell(self, text: str, *values: object) -> None:
        """Log a line about a stage."""
        level = logging.DEBUG if self.quiet else logging.INFO
        logger.log(level, text, *values)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a stage, or a step, which may have several stages."""
        global _STEP
        logger.debug("%s: started", name)
        before = _STEP
        _STEP = _STEP or name
        started = time.perf_counter()
        try:
            yield
        finally:
            _STEP = before
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started
        self.tell("%s: %.1f s", name, self.timings[name])

    def stage(
        self,
        name: str,
        artefact: str,
        *,
        step: str = "",
        make: Callable[[Path], object],
        read: Callable[[Path], Value],
        also: Sequence[str] = (),
        origin: Stamp | None = None,
        **inputs: Any,
    ) -> Stage[Value]:
        """Make an artefact unless it is up to date.

        Parameters
        ----------
        name : str
        artefact : str
            File in the output folder.
        step : str
            Step under which `spkver status` counts the stage; by default the name of the stage, or the current timed
            step.
        make : callable
            Writes the artefact to the given path, completely or not at all.
        read : callable
            Reads the value from the artefact, on demand.
        also : sequence of str
            Further files that `make` writes.
        origin : Stamp, optional
            See the method `origin`; by default it is made from the further arguments, which are passed to that method.

        Raises
        ------
        Ended
            If this is the last requested stage.
        """
        origin = origin or self.origin(name, **inputs)
        self.path(artefact)
        self.plan[artefact] = Planned(name, _STEP or step or name)
        is_meant = self.only in (None, name)
        if is_meant:
            state = self.state(artefact, origin)
            if state == "done" and not self.force:
                self.tell("%s: up to date, %s", name, self.path(artefact))
            else:
                if state == "damaged":
                    logger.warning(
                        "%s has changed since it was written: it is made again", self.path(artefact)
                    )
                with self.timed(name):
                    begun = {"stage": name, "origin": origin.value}
                    self.note(artefact, begun)
                    make(self.path(artefact))
                files = {}
                for file in (artefact, *also):
                    size, changed = size_and_time(self.path(file))
                    files[file] = {
                        "size": size,
                        "time": changed,
                        "sha256": file_digest(self.path(file)),
                    }
                made = {
                    "fingerprint": origin.fingerprint,
                    "files": files,
                    "seconds": round(self.timings[name], 3),
                }
                self.note(artefact, {**begun, **made})
        if name in (self.only, self.until) and name != REPORT:
            raise Ended(name)
        return Stage(self, artefact, origin, read, is_made=is_meant)

    def once(
        self, name: str, find: Callable[[], Any], *, after: Sequence[Origin], inputs: Any = None
    ) -> Any:
        """Return the result of `find`, or that of an earlier run if its dependencies have not changed.

        Parameters
        ----------
        name : str
        find : callable
            Function whose result JSON can hold. If it raises an error, nothing is recorded.
        after, inputs
            See `origin`; stamps of the files, for example.
        """

        def make(path: Path) -> None:
            write_json(path, find())

        artefact = f"checks/{re.sub('[^A-Za-z0-9_-]+', '-', name)}.json"
        apart = replace(self, quiet=True, only=None, until=None, timings={})
        return apart.stage(
            name, artefact, step="checks", make=make, read=load_json, inputs=inputs, after=after
        ).value

    def origin(
        self,
        name: str,
        *,
        inputs: Any = None,
        after: Sequence[Origin] = (),
        sources: Mapping[str, Path] | None = None,
        libraries: Sequence[str] = ("numpy",),
    ) -> Stamp:
        """Return the fingerprint of all that a stage depends on; its value holds the parts, so that a change can be
        named.

        Parameters
        ----------
        name : str
        inputs : object
            Configuration and lists; see `spkbase.files.fingerprint`.
        after : sequence of Stage or Stamp
            Stages whose artefacts it uses.
        sources : mapping of str to Path, optional
            Input files by id; their paths, sizes and modification times are compared.
        libraries : sequence of str
            Distributions whose versions the numbers depend on.
        """
        parts = {
            "version": __version__,
            "inputs": fingerprint(inputs),
            "sources": self._sources(name, sources),
            "libraries": {library: library_version(library) for library in sorted(libraries)},
            "after": {before.name: before.fingerprint for before in after},
        }
        return Stamp(name, fingerprint(parts), parts)

    def stamp(
        self, name: str, *, inputs: Any = None, sources: Mapping[str, Path] | None = None
    ) -> Stamp:
        """Return the fingerprint of a step that leaves no artefact, for stages that depend on it."""
        return Stamp(
            name,
            fingerprint(inputs, sources if sources is None else [list(sources), _stats(sources)]),
        )

    def state(self, artefact: str, origin: Origin) -> State:
        """Return whether an artefact exists and was made from these inputs."""
        return self._state(artefact, origin, self._records.read()[0])

    def due(self, origins: Mapping[str, Origin]) -> set[str]:
        """Return which of these artefacts a stage would make now, given all that they depend on."""
        if self.force:
            return set(origins)
        records = self._records.read()[0]
        return {
            artefact
            for artefact, origin in origins.items()
            if self._state(artefact, origin, records) != "done"
        }

    def _state(self, artefact: str, origin: Origin, records: Mapping[str, Json]) -> State:
        entry = records.get(artefact, {})
        if entry.get("fingerprint") != origin.fingerprint:
            if entry.get("fingerprint") and self.path(artefact).is_file():
                return "stale"
            return "missing"
        return state_of_files(self.output, entry)

    def _sources(self, name: str, sources: Mapping[str, Path] | None) -> str:
        if sources is None:
            return ""
        stamps = _stats(sources)
        known = read_record(self.output / SOURCES)
        if known.get(name) != stamps:
            text = json.dumps({**known, name: stamps}, separators=(",", ":")).replace("],", "],\n")
            write_text(self.output / SOURCES, text + "\n")
        return fingerprint(list(sources), stamps)

    def note(self, artefact: str, entry: Json) -> None:
        """Write the record of an artefact to ``stages.json``."""
        records = self._records
        entries, plan = records.read()
        records.write({**entries, artefact: entry}, {**plan, **self.plan})

    def limited(self, recipe: Callable[[Run], object]) -> Run:
        """Return this run with `only` and `until` expanded to the full names of stages.

        The recipe itself is used to find the names, without making any stage.

        Raises
        ------
        ConfigError
            If no stage begins with the given text, or for `only` more than one does.
        """
        wanted = self.only or self.until
        if wanted is None:
            return self
        planned = replace(self, only="", until=None, quiet=True, timings={}, plan={})
        with suppress(Ended):
            recipe(planned)
        names = [entry.stage for entry in planned.plan.values()]
        meant = [name for name in names if name.startswith(wanted)]
        if wanted in names:
            meant = [wanted]
        if not meant or (self.only and len(meant) > 1):
            option = "only" if self.only else "until"
            expected = ", ".join(dict.fromkeys(names))
            raise ConfigError(f"{option}={wanted!r} is not a stage: expected one of {expected}")
        if self.only:
            return replace(self, only=meant[0])
        return replace(self, until=meant[-1])

    def finish(self) -> None:
        """After the last stage, forget the stages of earlier plans; a run that only plans ends here."""
        if self.only == "":
            raise Ended("the plan")
        self._records.write(self._records.read()[0], self.plan)


@contextmanager
def start_run(
    output: str | Path,
    config: Any,
    *,
    jobs: int | None = None,
    force: bool = False,
    only: str | None = None,
    until: str | None = None,
) -> Iterator[Run]:
    """Open an output folder exclusively for this run: log to its `run.log`, write the resolved configuration.

    Unfinished files of a killed run are removed.

    Raises
    ------
    DataError
        If the folder cannot be written, or another run is using it.
    """
    if jobs is not None and jobs < 1:
        raise DataError(f"jobs={jobs}: expected a whole number of at least 1")
    if only is not None and until is not None:
        raise ConfigError("a run makes a single stage, or all up to one: give either only or until")
    output = Path(output)
    with ExitStack() as stack:
        try:
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(sole_use(output))
            is_ours = (output / LOG).exists() or (output / STAGES).exists()
            stack.enter_context(_logging_to(output / LOG))
        except OSError as error:
            text = f"output folder cannot be written: {error.strerror}"
            raise DataError(text, file=output, remedy="choose another output folder") from error
        try:
            logger.debug("spkver %s: %s", __version__, " ".join(sys.argv))
            count = remove_temporaries(output) if is_ours else 0
            if count:
                logger.info(
                    "removed %d files that an earlier run was writing when it was killed", count
                )
            write_yaml(output / "config.yaml", config)
            yield Run(output, jobs=jobs, force=force, only=only, until=until)
            logger.info("finished")
        except Ended as end:
            logger.info("ended after %s, as requested", end)
            raise
        except BaseException as error:
            # log only to the file: the caller shows the error
            is_defect = isinstance(error, Exception) and not isinstance(
                error, (SpkverError, OSError, MemoryError)
            )
            traceback = error if is_defect else None
            reason = str(error) or type(error).__name__
            logger.error("stopped: %s", reason, exc_info=traceback, extra={"file_only": True})
            raise


def read_records(folder: Path) -> tuple[dict[str, Json], dict[str, Planned]]:
    """Return the records of the artefacts of a folder, and the stages of its last run by artefact."""
    record = read_record(folder / STAGES)
    entries = record.get("artefacts", {})
    plan = record.get("plan", {})
    try:
        return dict(entries), {artefact: Planned(*stage) for artefact, stage in plan.items()}
    except (AttributeError, TypeError, ValueError):  # a damaged record
        return {}, {}


def read_record(path: Path) -> Json:
    """Read a record; a missing or damaged record is empty, so that everything is made again."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if isinstance(record, dict):
        return record
    return {}


class _Records:
    """The records of the artefacts of a folder, in ``stages.json``, which is read again only after other changes.

    They are written after every stage, so the line of an artefact is formatted once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[str, Json] = {}
        self._plan: dict[str, Planned] = {}
        self._lines: dict[str, str] = {}
        self._state: tuple[int, ...] = ()

    def read(self) -> tuple[dict[str, Json], dict[str, Planned]]:
        """Return what `read_records` returns."""
        state = self._state_of_file()
        if state != self._state:
            self._entries, self._plan = read_records(self._folder)
            self._lines = {}
            self._state = state
        return self._entries, self._plan

    def write(self, entries: dict[str, Json], plan: dict[str, Planned]) -> None:
        """Write the records of all artefacts, and the stages of the last run."""
        lines = {}
        for artefact, entry in entries.items():
            if artefact in self._lines and self._entries[artefact] is entry:
                lines[artefact] = self._lines[artefact]
            else:
                lines[artefact] = f"{json.dumps(artefact)}: {json.dumps(entry)}"
        artefacts = ",\n".join(lines.values())
        text = f'{{"artefacts": {{\n{artefacts}\n}},\n"plan": {json.dumps(plan)}}}\n'
        write_text(self._folder / STAGES, text)
        self._entries = entries
        self._plan = plan
        self._lines = lines
        self._state = self._state_of_file()

    def _state_of_file(self) -> tuple[int, ...]:
        """Return what changes whenever the file is replaced; () if there is none."""
        try:
            stat = (self._folder / STAGES).stat()
        except OSError:
            return ()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=8)
def _records_in(folder: Path) -> _Records:
    return _Records(folder)


def state_of_files(folder: Path, entry: Json, *, verify: bool = False) -> State:
    """Compare files with their record: by size and modification time, and if these differ, by digest."""
    for name, made in entry["files"].items():
        size, changed = size_and_time(folder / name)
        if size is None:
            return "missing"
        is_in_doubt = verify or changed != made["time"]
        if size != made["size"] or (is_in_doubt and file_digest(folder / name) != made["sha256"]):
            return "damaged"
    return "done"


def _stats(files: Mapping[str, Path]) -> list[list[Any]]:
    """Return path, size and modification time of each file."""
    parent = cache(os.path.realpath)
    return [
        [f"{parent(path.parent)}{os.sep}{path.name}", *size_and_time(path)]
        for path in files.values()
    ]


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Append the log lines of this project, and warnings of the libraries that it uses, to a file."""
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.addFilter(
        lambda record: record.levelno >= logging.WARNING or record.name.split(".")[0] in OURS
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    levels = {logger: logger.level for logger in map(logging.getLogger, OURS)}
    logging.getLogger().addHandler(handler)
    try:
        for logger in levels:
            logger.setLevel(logging.DEBUG)
        yield
    finally:
        for logger, before in levels.items():
            logger.setLevel(before)
        logging.getLogger().removeHandler(handler)
        handler.close()
