"""One run of a recipe in its output folder: stages that are skipped when their inputs have not changed.

    OUTPUT/run.log, OUTPUT/config.yaml, OUTPUT/stages.json, and the artefacts of the stages

A stage is declared first and done when its value is asked for, or by `Run.complete`. Each artefact carries the
fingerprint of what it was made from: the stage's configuration, the files that it reads, the fingerprints of the stages
it depends on, and the versions of this package and of the libraries whose numbers it holds. A stage whose artefact has
the right fingerprint is not run again. `stages.json` keeps the fingerprints with the checksums of the files: a damaged
file is made again, and is noticed before it is opened, since the HDF5 library reads some damage as other numbers and
dies of some.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from spkbase.configuration import write_yaml
from spkbase.errors import ConfigError, DataError
from spkbase.files import fingerprint, make_folder
from spkbase.runs.ledger import (
    LEDGER,
    Json,
    Ledger,
    Origin,
    distribution_of,
    library_version,
    origin_record,
    source_stamps,
    versions,
)
from spkbase.runs.locks import remove_temporaries, sole_use
from spkbase.runs.log_file import logging_to
from spkbase.runs.stages import NOTHING, PARTIAL, Depends, Draft, Stage, partial_folder, read_fingerprint
from spkbase.showing import one_line
from spkbase.version import __version__
from spkbase.work import Device, Work

__all__ = ["REPORT", "Draft", "Run", "Stage", "start_run", "versions"]

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

REPORT = "report"  # name of the step after the last stage: results and plots, which are always made anew
_LOG = "run.log"


@one_line
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
    only, until : str or None
        Do only this stage, or all up to it; see `complete`.
    frozen : bool
        Make nothing: a stage that is not up to date is an error.
    device : spkbase.work.Device or None
        Where stages compute that can do so elsewhere than in NumPy; None for NumPy.
    stamps : dict
        Stage name to fingerprint.
    timings : dict
        Stage name to seconds.
    stages : dict
        Stage name to stage, in the order of declaration.
    """

    output: Path
    jobs: int | None = None
    force: bool = False
    quiet: bool = False
    only: str | None = None
    until: str | None = None
    frozen: bool = False
    device: Device | None = None
    stamps: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    stages: dict[str, Stage[Any]] = field(default_factory=dict, repr=False)
    _steps: dict[str, Json] = field(default_factory=dict, repr=False)
    _sources: dict[str, list[list[Any]]] = field(default_factory=dict, repr=False)
    _held: dict[str, Callable[[], None]] = field(default_factory=dict, repr=False)
    _due: list[Stage[Any]] = field(default_factory=list, repr=False)

    def path(self, name: str) -> Path:
        """Path of an artefact in the output folder; a DataError if its name leads out of it."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            raise DataError(f"{name!r} leads out of the output folder", file=self.output, remedy="choose another name")
        return self.output / name

    def below(self, name: str) -> Run:
        """A run with the same options in a folder below, for a step that has stages of its own."""
        return Run(
            make_folder(self.path(name)), self.jobs, self.force, self.quiet, frozen=self.frozen, device=self.device
        )

    @property
    def work(self) -> Work:
        """What stages compute with."""
        return Work(self.jobs, self.device)

    @property
    def ledger(self) -> Ledger:
        """The records of the output folder."""
        return Ledger(self.output)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure a stage, or a step that leaves no artefact of its own."""
        logger.info("%s: started", name, extra={"file_only": True})
        self._tell_place(name)
        with self.measured(name):
            yield
        self.tell("%s: %.1f s", name, self.timings[name])

    def _tell_place(self, name: str) -> None:
        """Say which of the steps to do now begins, and how long the rest took the last time, where that is known."""
        names = [stage.name for stage in self._due]
        if name not in names:
            return
        place = names.index(name)
        entries = [self.ledger.entry(stage.artefact) for stage in self._due[place:]]
        seconds = [entry.get("seconds") for entry in entries]
        known = [float(time) for time in seconds if isinstance(time, int | float)]
        to_go = f" ({sum(known):.0f} s to the end, the last time)" if known and len(known) == len(seconds) else ""
        self.tell("step %d of %d: %s%s", place + 1, len(names), name, to_go)

    def tell(self, text: str, *values: object) -> None:
        """Log a line about a stage."""
        logger.info(text, *values, extra={"file_only": self.quiet})

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Add the time of a block to that of a stage, without a word."""
        started = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started

    def stamp(self, name: str, depends: Depends) -> str:
        """Return the fingerprint of a step that leaves no artefact, kept for those that depend on it."""
        stamps = None if depends.sources is None else source_stamps(depends.sources)
        if stamps is not None:
            self.ledger.note_sources(name, stamps)
        return self._declare(name, None, self._origin(name, depends, stamps))

    def stage(
        self,
        name: str,
        artefact: str,
        *,
        make: Callable[[Draft], object],
        read: Callable[[Path], Value],
        depends: Depends = NOTHING,
        also: tuple[str, ...] = (),
    ) -> Stage[Value]:
        """Declare a stage; nothing runs before its value is asked for.

        Parameters
        ----------
        name : str
        artefact : str
            File in the output folder.
        make : callable
            Computes and writes the artefact, whole or not at all: called with a `Draft`, which holds its path, the
            attributes to write, and a folder for finished chunks that outlive a crash.
        read : callable
            Reads the value from the artefact.
        depends : Depends
            What the artefact is made from.
        also : tuple of str
            Further files that `make` writes with the artefact.

        Returns
        -------
        Stage
            Its `value` brings it up to date.
        """
        stamps = None if depends.sources is None else source_stamps(depends.sources)
        origin = self._origin(name, depends, stamps)
        self._declare(name, artefact, origin)
        if stamps is not None:
            self._sources[name] = stamps
        declared = self.stages.get(name)
        if declared is None or (declared.fingerprint, declared.artefact) != (origin.fingerprint, artefact):
            declared = self.stages[name] = Stage(self, artefact, origin, make=make, read=read, also=also)
        return declared

    def _origin(self, name: str, depends: Depends, stamps: list[list[Any]] | None) -> Origin:
        device = self.device if depends.on_device else None
        libraries = [*depends.libraries, *([] if device is None else [distribution_of(device.xp)])]
        return Origin(
            stage=name,
            version=__version__,
            inputs=fingerprint(depends.inputs),
            sources="" if depends.sources is None else fingerprint(list(depends.sources), stamps),
            libraries={library: library_version(library) for library in sorted(libraries)},
            device=None if device is None else device.name,
            after=dict(
                (stage, self.stamps[stage]) if isinstance(stage, str) else (stage.name, stage.fingerprint)
                for stage in depends.after
            ),
        )

    def _declare(self, name: str, artefact: str | None, origin: Origin) -> str:
        self.stamps[name] = origin.fingerprint
        self._steps[name] = {**origin_record(origin), "artefact": artefact}
        return origin.fingerprint

    def hold(self, name: str, release: Callable[[], None]) -> None:
        """Have `complete` let go of what a step keeps in memory, once no stage that is left depends on it."""
        self._held[name] = release

    def _release(self, left: Sequence[Stage[Any]]) -> None:
        for name in [name for name in self._held if not any(name in stage.origin.after for stage in left)]:
            self._held.pop(name)()

    def note(self, stage: Stage[Any], entry: Json) -> None:
        """Write the record of a stage that is done; stages call this."""
        if stage.name in self._sources:
            self.ledger.note_sources(stage.name, self._sources[stage.name])
        self.ledger.note(stage.artefact, entry, list(self._steps.values()))

    def write_plan(self) -> None:
        """Write down what was declared, so that `spkver status` knows of stages that are still to be done."""
        self.ledger.set_plan(list(self._steps.values()))

    def complete(self, stages: Sequence[Stage[Any]] | None = None) -> bool:
        """Bring stages up to date, in the order of their declaration, within `only` and `until`.

        Parameters
        ----------
        stages : sequence of Stage, optional
            All that were declared by default.

        Returns
        -------
        bool
            Whether all are done and the report may follow.

        Raises
        ------
        DataError
            If `only` or `until` name no stage, or a stage that `only` depends on is not up to date.
        """
        due = list(self.stages.values() if stages is None else stages)
        self._check_limits([stage.name for stage in due])
        self.write_plan()
        if self.only is not None:
            self._do_only(due, self.only)
            return self.only == REPORT
        self._due = due
        for number, stage in enumerate(due, 1):
            stage.bring_up_to_date()
            if stage.name == self.until:
                return False
            self._release(due[number:])
        self._due = []
        self._drop_unused_chunks()
        return True

    def _check_limits(self, names: list[str]) -> None:
        for option, wanted in (("--only", self.only), ("--until", self.until)):
            if wanted is not None and wanted not in (*names, REPORT):
                raise ConfigError(f"{option} {wanted!r} is no stage: expected one of {', '.join([*names, REPORT])}")

    def _do_only(self, due: list[Stage[Any]], name: str) -> None:
        needed = {stage.name for stage in due} if name == REPORT else self._upstream(name)
        force, self.force = self.force, False
        for stage in due:
            if stage.name in needed:
                state = stage.state()
                if state != "done":
                    text = f"{name!r} needs stage {stage.name!r}, which is {state}: {stage.path}"
                    raise DataError(text, remedy=f"run with --until {stage.name!r} first, or without --only")
                stage.bring_up_to_date()
        self.force = force
        if name != REPORT:
            self.stages[name].bring_up_to_date()

    def _upstream(self, name: str) -> set[str]:
        """Return the names of all that a stage depends on."""
        upstream: set[str] = set()
        left = [name]
        while left:
            for step in self._steps[left.pop()]["origin"]["after"]:
                if step in self._steps and step not in upstream:
                    upstream.add(step)
                    left.append(step)
        return upstream

    def keep_only(self, wanted: Sequence[str]) -> None:
        """Forget the stages that none of these depends on: what is given takes the place of what would make it."""
        needed = {*wanted}.union(*(self._upstream(name) for name in wanted))
        for name in [name for name in self._steps if name not in needed]:
            del self._steps[name]
            self.stages.pop(name, None)

    def _drop_unused_chunks(self) -> None:
        """Remove finished chunks that no stage of this run will take up."""
        folder = self.path(PARTIAL)
        if folder.is_dir():
            for stage in self.stages.values():
                Draft(stage.path, stage.fingerprint, partial_folder(self.output, stage.artefact)).discard()
            for left in folder.glob("*/"):
                if read_fingerprint(left) is not None:  # ours
                    Draft(left, "", left).discard()


@contextmanager
def start_run(
    output: str | Path,
    config: Any,
    *,
    jobs: int | None = None,
    force: bool = False,
    only: str | None = None,
    until: str | None = None,
    device: Device | None = None,
) -> Iterator[Run]:
    """Open the output folder for this run alone: log to its `run.log`, keep the resolved configuration beside it.

    What a run that was killed was writing is removed; its finished chunks stay.

    Raises
    ------
    DataError
        If the folder cannot be written, or another run is at work in it.
    """
    if jobs is not None and jobs < 1:
        raise DataError(f"--jobs is {jobs}: expected a whole number of at least 1")
    if only is not None and until is not None:
        raise ConfigError("--only and --until exclude each other", remedy="give one of them")
    output = Path(output)
    with ExitStack() as stack:
        try:
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(sole_use(output))
            is_ours = (output / _LOG).exists() or (output / LEDGER).exists()
            stack.enter_context(logging_to(output / _LOG))
        except OSError as error:
            raise DataError(
                f"output folder cannot be written: {error.strerror}", file=output, remedy="choose another --output"
            ) from error
        try:
            logger.info("spkver %s: %s", __version__, " ".join(sys.argv))
            if is_ours and (count := remove_temporaries(output)):
                logger.info("removed %d files that an earlier run was writing when it was killed", count)
            write_yaml(output / "config.yaml", config)
            yield Run(output, jobs=jobs, force=force, only=only, until=until, device=device)
            logger.info("finished")
        except BaseException as error:
            # the one who catches it shows it
            logger.error("stopped: %s", str(error) or type(error).__name__, extra={"file_only": True})
            raise
