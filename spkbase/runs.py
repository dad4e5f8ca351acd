"""Runs: the stages of an output folder are made one after the other, and only if something has changed.

    OUTPUT/run.log, OUTPUT/config.yaml   log and resolved configuration
    OUTPUT/stages.json                   for each artefact: its inputs, size, modification time and SHA-256
    OUTPUT/sources.json                  for each stage: path, size and modification time of the files that it reads

`Run.stage` makes an artefact, or reuses it if it was made from the same configuration, lists, input files and earlier
stages, with the same versions of this package and of the libraries that its numbers depend on. A stage is made
completely or not at all: after a crash the unfinished one is made again.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from spkbase.configuration import write_yaml
from spkbase.errors import ConfigError, DataError, SpkverError
from spkbase.files import (
    TEMPORARY,
    disk_errors,
    file_digest,
    fingerprint,
    load_json,
    make_folder,
    size_and_time,
    write_json,
    write_text,
)
from spkbase.packages import OURS
from spkbase.showing import one_line
from spkbase.version import __version__
from spkbase.work import Work

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

Json = dict[str, Any]
State = Literal["done", "stale", "missing", "damaged"]
REPORT = "report"  # the last stage of a recipe

_STEP = ""  # in which stages are made, in any folder
_LOG, _STAGES, _SOURCES = "run.log", "stages.json", "sources.json"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "h5py", "soundfile", "soxr")
_TEMPORARY = re.compile(rf"\..*\.[a-z0-9_]{{8}}{re.escape(TEMPORARY)}(\..*)?")


class Ended(Exception):  # noqa: N818  # not an error
    """The stage named by `only` or `until` is done."""


class Origin(Protocol):
    """A dependency of a stage: a name, and a fingerprint of its inputs."""

    @property
    def name(self) -> str:
        """Name of the stage."""

    @property
    def fingerprint(self) -> str:
        """Digest of all its inputs."""


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

    def __init__(self, run: Run, artefact: str, origin: Stamp, read: Callable[[Path], Value], *, is_made: bool) -> None:
        self.run, self.name, self.artefact, self.fingerprint = run, origin.name, artefact, origin.fingerprint
        self._origin, self._read, self._is_made = origin, read, is_made

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
            If a run of another stage alone has not made it.
        """
        if "_value" not in self.__dict__:
            state = "done" if self._is_made else self.run.state(self.artefact, self._origin)
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
        Folder that everything is written to.
    jobs : int or None
        Workers; all cores by default.
    force : bool
        Make every stage again.
    quiet : bool
        The stages are details, for the log file: in a step of a larger run.
    only, until : str or None
        Make only this stage, for which the earlier ones must be up to date; or all stages until this one.
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
    plan: dict[str, str] = field(default_factory=dict, repr=False)
    """Names of the stages of this run, by artefact."""

    def path(self, name: str) -> Path:
        """Return the path of an artefact in the output folder; raise a DataError if its name leads out of it."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            raise DataError(f"{name!r} leads out of the output folder", file=self.output, remedy="choose another name")
        return self.output / name

    def below(self, name: str) -> Run:
        """Return a run with the same options in a sub-folder, for a step that has stages."""
        folder = make_folder(self.path(name))
        return Run(folder, self.jobs, self.force, self.quiet)

    @property
    def work(self) -> Work:
        """Workers of the stages."""
        return Work(self.jobs)

    def tell(self, text: str, *values: object) -> None:
        """Log a line about a stage."""
        logger.log(logging.DEBUG if self.quiet else logging.INFO, text, *values)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a stage, or a step, which may have several stages."""
        global _STEP
        logger.debug("%s: started", name)
        before, _STEP, started = _STEP, _STEP or name, time.perf_counter()
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
        make : callable
            Writes the artefact to the given path, completely or not at all.
        read : callable
            Reads the value from the artefact, when it is asked for.
        also : sequence of str
            Further files that `make` writes.
        origin : Stamp, optional
            See the method `origin`; by default it is made of the further arguments, which are those of the method.

        Raises
        ------
        Ended
            If this is the last requested stage.
        """
        origin = origin or self.origin(name, **inputs)
        self.path(artefact)
        self.plan[artefact] = name
        is_meant = self.only in (None, name)
        if is_meant:
            state = self.state(artefact, origin)
            if state == "done" and not self.force:
                self.tell("%s: up to date, %s", name, self.path(artefact))
            else:
                if state == "damaged":
                    logger.warning("%s has changed since it was written: it is made again", self.path(artefact))
                with self.timed(name):
                    begun = {"stage": name, "step": _STEP, "origin": origin.value}
                    self.note(artefact, begun)
                    make(self.path(artefact))
                files = {}
                for file in (artefact, *also):
                    size, changed = size_and_time(self.path(file))
                    files[file] = {"size": size, "time": changed, "sha256": file_digest(self.path(file))}
                made = {"fingerprint": origin.fingerprint, "files": files, "seconds": round(self.timings[name], 3)}
                self.note(artefact, {**begun, **made})
        if name in (self.only, self.until) and name != REPORT:
            raise Ended(name)
        return Stage(self, artefact, origin, read, is_made=is_meant)

    def once(self, name: str, find: Callable[[], Any], *, after: Sequence[Origin], inputs: Any = None) -> Any:
        """Return what `find` finds in files, or found in an earlier run if nothing that it depends on has changed.

        Parameters
        ----------
        name : str
        find : callable
            Returns what JSON can hold. If it raises, nothing is recorded.
        after, inputs
            See `origin`; stamps of the files, for example.
        """

        def make(path: Path) -> None:
            write_json(path, find())

        artefact = f"checks/{re.sub('[^A-Za-z0-9_-]+', '-', name)}.json"
        apart = replace(self, quiet=True, only=None, until=None, timings={})
        return apart.stage(name, artefact, make=make, read=load_json, inputs=inputs, after=after).value

    def origin(
        self,
        name: str,
        *,
        inputs: Any = None,
        after: Sequence[Origin] = (),
        sources: Mapping[str, Path] | None = None,
        libraries: Sequence[str] = ("numpy",),
    ) -> Stamp:
        """Return the fingerprint of all that a stage depends on; the value has its parts, which name a change.

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

    def stamp(self, name: str, *, inputs: Any = None, sources: Mapping[str, Path] | None = None) -> Stamp:
        """Return the fingerprint of a step that leaves no artefact, for stages that depend on it."""
        return Stamp(name, fingerprint(inputs, sources if sources is None else [list(sources), _stats(sources)]))

    def state(self, artefact: str, origin: Stamp) -> State:
        """Return whether an artefact exists and was made from these inputs."""
        entry = read_records(self.output)[0].get(artefact, {})
        if entry.get("fingerprint") != origin.fingerprint:
            return "stale" if entry.get("fingerprint") and self.path(artefact).is_file() else "missing"
        return _state_of_files(self.output, entry)

    def _sources(self, name: str, sources: Mapping[str, Path] | None) -> str:
        if sources is None:
            return ""
        stamps = _stats(sources)
        known = _read_json(self.output / _SOURCES)
        if known.get(name) != stamps:
            text = json.dumps({**known, name: stamps}, separators=(",", ":")).replace("],", "],\n")
            write_text(self.output / _SOURCES, text + "\n")
        return fingerprint(list(sources), stamps)

    def note(self, artefact: str, entry: Json) -> None:
        """Write the record of an artefact to ``stages.json``."""
        entries, plan = read_records(self.output)
        _write_records(self.output, {**entries, artefact: entry}, {**plan, **self.plan})

    def limited(self, recipe: Callable[[Run], object]) -> Run:
        """Return this run with the full names of the stages that `only` or `until` abbreviate.

        The recipe itself finds them, without making any stage.

        Raises
        ------
        ConfigError
            If no stage begins with the given text, or for `only` more than one does.
        """
        if (wanted := self.only or self.until) is None:
            return self
        planned = replace(self, only="", until=None, quiet=True, timings={}, plan={})
        with suppress(Ended):
            recipe(planned)
        names = list(planned.plan.values())
        meant = [wanted] if wanted in names else [name for name in names if name.startswith(wanted)]
        if not meant or (self.only and len(meant) > 1):
            text = f"{'only' if self.only else 'until'}={wanted!r} is no stage"
            raise ConfigError(f"{text}: expected one of {', '.join(dict.fromkeys(names))}")
        return replace(self, only=self.only and meant[0], until=self.until and meant[-1])

    def finish(self) -> None:
        """Forget the stages of earlier plans after the last stage; a run that only plans ends here."""
        if self.only == "":
            raise Ended("the plan")
        _write_records(self.output, read_records(self.output)[0], self.plan)


def _stats(files: Mapping[str, Path]) -> list[list[Any]]:
    """Return path, size and modification time of each file."""
    parent = cache(os.path.realpath)
    return [[f"{parent(path.parent)}{os.sep}{path.name}", *size_and_time(path)] for path in files.values()]


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
        If the folder cannot be written, or another run is at work in it.
    """
    if jobs is not None and jobs < 1:
        raise DataError(f"jobs={jobs}: expected a whole number of at least 1")
    if only is not None and until is not None:
        raise ConfigError("a run does one stage only, or all until one: give one of only and until")
    output = Path(output)
    with ExitStack() as stack:
        try:
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(sole_use(output))
            is_ours = (output / _LOG).exists() or (output / _STAGES).exists()
            stack.enter_context(_logging_to(output / _LOG))
        except OSError as error:
            text = f"output folder cannot be written: {error.strerror}"
            raise DataError(text, file=output, remedy="choose another output folder") from error
        try:
            logger.debug("spkver %s: %s", __version__, " ".join(sys.argv))
            if is_ours and (count := remove_temporaries(output)):
                logger.info("removed %d files that an earlier run was writing when it was killed", count)
            write_yaml(output / "config.yaml", config)
            yield Run(output, jobs=jobs, force=force, only=only, until=until)
            logger.info("finished")
        except Ended as end:
            logger.info("ended after %s, as requested", end)
            raise
        except BaseException as error:
            # the one who catches it shows it
            is_defect = isinstance(error, Exception) and not isinstance(error, (SpkverError, OSError, MemoryError))
            reason = str(error) or type(error).__name__
            logger.error("stopped: %s", reason, exc_info=error if is_defect else None, extra={"file_only": True})
            raise


@contextmanager
def sole_use(folder: str | Path) -> Iterator[None]:
    """Make the folder and lock it for other runs; the lock ends with the process.

    Raises
    ------
    DataError
        If the folder cannot be made, or another run is at work in it.
    """
    handle = os.open(make_folder(folder), os.O_RDONLY)
    try:
        if not _lock(handle):
            raise DataError("another run is at work in it", file=folder, remedy="wait for its end")
        yield
    finally:
        os.close(handle)


def is_in_use(folder: str | Path) -> bool:
    """Return whether a run is at work in a folder."""
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
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                count += 1
        folders[:] = [name for name in folders if not name.startswith(".") and not is_in_use(Path(parent) / name)]
    return count


def append_line(path: Path, value: Any) -> None:
    """Append a JSON line to a file of finished results, so that it survives a crash."""
    with disk_errors(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the values that `append_line` wrote, without a line that a kill cut off."""
    with suppress(OSError, UnicodeDecodeError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                yield json.loads(line)


@cache
def library_version(name: str) -> str:
    """Return the version of an installed distribution, or "none"."""
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):  # ValueError: an empty name, from a damaged record
        return "none"


def versions() -> dict[str, str]:
    """Return the versions of the package, Python and the libraries that the numbers depend on."""
    installed = {name: library_version(name) for name in _LIBRARIES if library_version(name) != "none"}
    return {"spkver": __version__, "python": platform.python_version(), **installed}


def read_records(folder: Path) -> tuple[dict[str, Json], dict[str, str]]:
    """Return the records of the artefacts of a folder, and the stage names of its last run by artefact."""
    record = _read_json(folder / _STAGES)
    entries, plan = record.get("artefacts", {}), record.get("plan", {})
    return (entries, plan) if isinstance(entries, dict) and isinstance(plan, dict) else ({}, {})


def stage_status(
    stage: str, artefact: str, state: State, why: str = "", seconds: float | None = None, *, step: str = ""
) -> Json:
    """Return the entry of a stage in `read_status`; its step is named by what precedes " of ", as in "scores of A"."""
    part = (step or stage).partition(" of ")[0]
    return {"stage": stage, "step": part, "artefact": artefact, "state": state, "why": why, "seconds": seconds}


def read_status(
    output: str | Path, readers: Mapping[str, Callable[[Path], Json | None]] | None = None, *, verify: bool = False
) -> list[Json]:
    """Return the states of the stages in an output folder and its sub-folders, without changing anything.

    Parameters
    ----------
    output : path
        Output folder of a recipe.
    readers : mapping of str to function, optional
        For folders with records of another kind: a function that returns its `stage_status`, by the record's file name.
    verify : bool
        Compare the digests of all artefacts, not only their sizes and times.

    Returns
    -------
    list of dict
        For each folder ``folder``, ``run`` (that of the whole run), ``in_use`` (a run uses it), ``stages`` in the order
        of the last run, each with ``stage``, ``step``, ``artefact``, ``state`` ("done"; "stale": made from inputs other
        than the next run would use; "missing"; "damaged": changed since it was written), ``why`` and ``seconds``, and
        ``others``: artefacts of earlier configurations, which the last run did not use.

    Raises
    ------
    DataError
        If there is no such folder, or it holds no run.
    """
    output = Path(output)
    if not output.is_dir():
        raise DataError("no such folder", file=output, remedy="give the output folder of a recipe")
    statuses, runs = list[Json](), dict[str, str]()
    for parent, folders, files in os.walk(output):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folder = Path(parent)
        runs[parent] = parent if _LOG in files else runs.get(str(folder.parent), parent)
        found = [_stages_of_folder(folder, verify)] if _STAGES in files else []
        others = [read(folder) for record, read in (readers or {}).items() if record in files]
        found += [{"stages": [stage], "others": []} for stage in others if stage is not None]
        statuses += [{"folder": parent, "run": runs[parent], "in_use": is_in_use(folder), **one} for one in found]
    if not statuses and not (output / _LOG).is_file():
        raise DataError("no run in this folder: there is no stages.json", file=output)
    place = str(output)
    return statuses or [{"folder": place, "run": place, "in_use": is_in_use(output), "stages": [], "others": []}]


def format_status(folders: Sequence[Json], *, every: bool = False, steps: Sequence[str] = ()) -> str:
    """Return a line on how many stages are done, then a line a step, or a line a stage if `every` one is asked for.

    If a run has begun one of `steps`, which are in their order, those after the last that has begun are due.
    """
    whole = [stage for status in folders for stage in status["stages"]]
    states = Counter(stage["state"] for stage in whole)
    lines = [f"{states['done']} of {len(whole)} stages done"]
    lines[0] += "".join(f", {number} {state}" for state, number in states.items() if state != "done")
    lines[0] += "".join([f"; next: {stage['stage']}" for stage in whole if stage["state"] != "done"][:1])
    place, key = ("folder", "stage") if every else ("run", "step")
    for folder in dict.fromkeys(status[place] for status in folders):
        parts = [status for status in folders if status[place] == folder]
        is_busy = any(status["in_use"] for status in parts)
        lines += ["", f"{folder}: {'a' if is_busy else 'no'} run is at work in it"]
        groups: dict[str, list[Json]] = {}
        for stage in (stage for status in parts for stage in status["stages"]):
            groups.setdefault(stage[key], []).append(stage)
        known = [name for name in steps if groups.keys() <= {*steps} and name in groups]
        width = max(map(len, groups), default=0)
        for name in dict.fromkeys([*known, *groups]):
            left = [stage for stage in groups[name] if stage["state"] != "done"]
            begun = [stage for stage in left if is_busy and stage["state"] == "missing" and stage["why"]]
            state = "running" if begun else left[0]["state"] if left else "done"
            done = [stage["seconds"] for stage in groups[name] if stage["state"] == "done"]
            counted = "" if every else f"{len(done):5} of {len(groups[name]):3}"
            spent = "" if None in done or not done else f"{sum(done):9.1f} s"
            why = "".join(f"  {'' if every else one['stage'] + ': '}{one['why']}" for one in (begun or left)[:1])
            lines.append(f"  {name:{width}}  {state:7}{counted}{spent}{why}".rstrip())
        lines += [f"  {name:{width}}  due" for name in (steps[steps.index(known[-1]) + 1 :] if known else ())]
        lines += [f"  {name}: of an earlier configuration" for status in parts for name in status["others"]]
    return "\n".join(lines)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Append the log lines of this project, and warnings of the libraries that it uses, to a file."""
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.split(".")[0] in OURS)
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


def _lock(handle: int) -> bool:
    """Lock an open folder; also True on systems without such locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


def _write_records(folder: Path, entries: Mapping[str, Json], plan: Mapping[str, str]) -> None:
    write_text(folder / _STAGES, json.dumps({"artefacts": entries, "plan": plan}, indent=1) + "\n")


def _read_json(path: Path) -> Json:
    """Read a record; a missing or damaged record is empty, so that everything is made again."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _state_of_files(folder: Path, entry: Json, *, verify: bool = False) -> State:
    """Compare files with their record: by size and modification time, and where these differ by digest."""
    for name, made in entry["files"].items():
        size, changed = size_and_time(folder / name)
        if size is None:
            return "missing"
        is_in_doubt = verify or changed != made["time"]
        if size != made["size"] or (is_in_doubt and file_digest(folder / name) != made["sha256"]):
            return "damaged"
    return "done"


def _stages_of_folder(folder: Path, verify: bool) -> Json:
    entries, plan = read_records(folder)
    sources = _read_json(folder / _SOURCES)
    current: Json = {name: entries.get(artefact, {}).get("fingerprint") for artefact, name in plan.items()}
    reasons: dict[str, str] = {}  # stages that are not up to date
    stages = []
    for artefact, name in plan.items():
        entry = entries.get(artefact, {})
        state: State = _state_of_files(folder, entry, verify=verify) if entry.get("fingerprint") else "missing"
        whys = {"damaged": "it has changed since it was written", "missing": "it was begun" if entry else ""}
        why = whys.get(state, "")
        if state == "done" and (why := _outdated(entry["origin"], sources.get(name, []), current, reasons)):
            state, reasons[name] = "stale", why.split(": ", 1)[-1]
        seconds = entry.get("seconds") if state == "done" else None
        stages.append(stage_status(name, artefact, state, why, seconds, step=entry.get("step", "")))
    others = sorted(name for name in entries if name not in plan and (folder / name).is_file())
    return {"stages": stages, "others": others}


def _outdated(origin: Json, stamps: list[Any], current: Json, reasons: Mapping[str, str]) -> str:
    """Return why the next run will not use an artefact of this origin; "" if nothing has changed."""
    if origin["version"] != __version__:
        return f"spkver {origin['version']} -> {__version__}"
    for name, before in origin["libraries"].items():
        if (now := library_version(name)) != before:
            return f"{name} {before} -> {now}"
    changed = [path for path, *stamp in stamps if stamp != list(size_and_time(Path(path)))]
    if changed:
        return f"{changed[0]}{f' and {len(changed) - 1} more' if len(changed) > 1 else ''} changed"
    for name, before in origin["after"].items():
        if name in reasons:
            return f"depends on {name!r}: {reasons[name]}"
        if current.get(name) not in (None, before):
            return f"depends on {name!r}, which was made again"
    return ""
