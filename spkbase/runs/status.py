"""How far a run is: which stages of an output folder are done, stale, missing or damaged, and why.

Everything is read from the records of the folder; nothing is changed, also while a run is at work there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from spkbase.errors import DataError
from spkbase.files import file_digest, is_file
from spkbase.runs.journal import progress_of
from spkbase.runs.ledger import (
    LEDGER,
    Json,
    Ledger,
    Origin,
    changed_sources,
    library_changes,
    library_version,
    origin_of,
)
from spkbase.runs.locks import is_in_use
from spkbase.runs.stages import partial_folder, read_fingerprint
from spkbase.showing import one_line
from spkbase.version import __version__

State = Literal["done", "stale", "missing", "damaged", "in progress"]


@one_line
@dataclass(frozen=True)
class StageStatus:
    """A stage of the last run.

    Attributes
    ----------
    stage, artefact : str
    state : str
        "done"; "stale": made from something else than the next run would use; "missing"; "damaged": not as it was
        written; "in progress": finished chunks are kept.
    why : str
        Reason of the state.
    seconds : float or None
        That it took when it was made.
    chunks : tuple of int or None
        Finished chunks, and how many there will be.
    """

    stage: str
    artefact: str
    state: State
    why: str = ""
    seconds: float | None = None
    chunks: tuple[int, int] | None = None


@dataclass(frozen=True)
class FolderStatus:
    """An output folder, or a folder below it in which a step keeps stages of its own.

    Attributes
    ----------
    folder : Path
    in_use : bool
        A run is at work in it.
    stages : list of StageStatus
        In the order of the last run.
    others : list of str
        Artefacts of earlier configurations, which the last run had no use for.
    """

    folder: Path
    in_use: bool
    stages: list[StageStatus]
    others: list[str]


# What the owner of another record than a ledger says of a folder that holds one; None where it is no such record.
Reader = Callable[[Path], StageStatus | None]


def read_status(output: str | Path, readers: Mapping[str, Reader] | None = None) -> list[FolderStatus]:
    """Look into an output folder and the folders below it that have stages.

    Parameters
    ----------
    output : path
        Of a recipe.
    readers : mapping of str to function, optional
        For folders that keep other records than a ledger: the name of such a record, and its owner's function that
        gives the `StageStatus` of a folder that holds one, or None.

    Raises
    ------
    DataError
        If there is no such folder, or no run has been there.
    """
    output = Path(output)
    if not output.is_dir():
        raise DataError("no such folder", file=output, remedy="give the --output of a recipe")
    statuses = [_folder_status(folder) for folder in _folders(output, LEDGER)]
    for record, read in (readers or {}).items():
        for folder in _folders(output, record):
            stage = read(folder)
            if stage is not None:
                statuses.append(FolderStatus(folder, is_in_use(folder), [stage], []))
    if not statuses and not (output / "run.log").is_file():
        raise DataError("no run has been here: there is no stages.json", file=output)
    return statuses or [FolderStatus(output, is_in_use(output), [], [])]


def _folders(output: Path, record: str) -> Iterator[Path]:
    """Folders that hold a record, `output` the first."""
    for folder, folders, files in os.walk(output):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if record in files:
            yield Path(folder)


def _folder_status(folder: Path) -> FolderStatus:
    ledger = Ledger(folder)
    entries, plan = ledger.read()
    sources = ledger.sources()
    reasons: dict[str, str] = {}  # of the stages that are not as they should be
    stages = []
    for step in plan:
        origin, artefact = origin_of(step), step.get("artefact")
        if origin is None or not isinstance(artefact, str | None):
            continue
        why = _outdated(origin, sources.get(origin.stage, []), reasons)
        if artefact is None:  # a step without a file: what has changed in it is felt in the next ones
            if why:
                reasons[origin.stage] = why
            continue
        status = _stage_status(folder, artefact, origin, entries.get(artefact, {}), why)
        if status.state == "stale":
            reasons[origin.stage] = status.why
        stages.append(status)
    planned = {status.artefact for status in stages}
    others = [name for name in entries if name not in planned and is_file(folder / name)]
    return FolderStatus(folder, is_in_use(folder), stages, sorted(others))


def _outdated(origin: Origin, stamps: list[list[Any]], reasons: Mapping[str, str]) -> str:
    """Why the next run will not use what this origin gives; empty if nothing has changed since the last run."""
    if origin.version != __version__:
        return f"spkver {origin.version} -> {__version__}"
    if changed := library_changes(origin.libraries, {name: library_version(name) for name in origin.libraries}):
        return ", ".join(changed)
    if files := changed_sources(stamps):
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return f"{files[0]}{more} changed"
    before = [name for name in origin.after if name in reasons]
    return f"depends on {before[0]!r}: {reasons[before[0]]}" if before else ""


def _stage_status(folder: Path, artefact: str, origin: Origin, entry: Json, why: str) -> StageStatus:
    time, sums = entry.get("seconds"), entry.get("sha256")
    seconds = float(time) if isinstance(time, int | float) else None
    checksums = sums if isinstance(sums, dict) else {}
    files = list(checksums) or [artefact]
    kept = partial_folder(folder, artefact)
    chunks = progress_of(kept) if read_fingerprint(kept) == origin.fingerprint else None

    def status(state: State, why: str = "") -> StageStatus:
        return StageStatus(origin.stage, artefact, state, why, seconds if state == "done" else None, chunks)

    is_current = entry.get("fingerprint") == origin.fingerprint
    if chunks is not None and not (is_current and is_file(folder / artefact)):
        text = f"{chunks[0]} of {chunks[1]} chunks"
        return status("stale", f"{text}, but {why}") if why else status("in progress", text)
    gone = [name for name in files if not is_file(folder / name)]
    if not entry or gone:
        return status("missing", f"{gone[0]} is gone" if entry else "")
    if not is_current:
        made_from = origin_of(entry)
        changes = made_from.changes(origin) if made_from else []
        return status("stale", "; ".join(changes) or "made from something else")
    if why:
        return status("stale", why)
    damaged = [name for name in files if not checksums or file_digest(folder / name) != checksums.get(name)]
    if damaged:
        return status("damaged", f"{damaged[0]} is not as it was written")
    return status("done")


def format_status(folders: Sequence[FolderStatus]) -> str:
    """Return how many stages are done, in a line, and a table of each folder."""
    return "\n\n".join([summary(folders), *("\n".join(_lines(folder)) for folder in folders)])


def summary(folders: Sequence[FolderStatus]) -> str:
    """Return a line on the stages of all folders, and which is the first that is not done.

    Examples
    --------
    >>> stages = [StageStatus("features", "f.h5", "done"), StageStatus("ubm", "u.h5", "stale", "components")]
    >>> summary([FolderStatus(Path("demo"), False, stages, [])])
    '1 of 2 stages done, 1 stale; next: ubm'
    """
    stages = [stage for folder in folders for stage in folder.stages]
    counts = {state: sum(stage.state == state for stage in stages) for state in get_args(State)}
    parts = [f"{counts.pop('done')} of {len(stages)} stages done"]
    parts += [f"{count} {state}" for state, count in counts.items() if count]
    left = [stage.stage for stage in stages if stage.state != "done"]
    return ", ".join(parts) + (f"; next: {left[0]}" if left else "")


def _lines(status: FolderStatus) -> Iterator[str]:
    yield f"{status.folder}: {'a run is at work in it' if status.in_use else 'no run is at work in it'}"
    width = max((len(stage.stage) for stage in status.stages), default=0)
    for stage in status.stages:
        time = "" if stage.seconds is None else f"{stage.seconds:8.1f} s"
        yield f"  {stage.stage:{width}}  {stage.state:11}  {stage.why or time}".rstrip()
    if not status.stages:
        yield "  no stage has been planned yet"
    for name in status.others:
        yield f"  {name}: of an earlier configuration"


def status_record(folders: Sequence[FolderStatus]) -> list[Json]:
    """Return the states of the stages of each folder as JSON, for programs."""
    return [{**asdict(status), "folder": str(status.folder)} for status in folders]
