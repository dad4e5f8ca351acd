"""The states of the stages of a run: which are done, stale, missing or damaged, and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spkbase.errors import DataError
from spkbase.files import size_and_time
from spkbase.locks import is_in_use
from spkbase.runs import (
    LOG,
    SOURCES,
    STAGES,
    Json,
    State,
    read_record,
    read_records,
    state_of_files,
)
from spkbase.version import __version__, library_version


def read_status(output: str | Path, *, verify: bool = False) -> list[Json]:
    """Return the states of the stages in an output folder and its sub-folders, without changing anything.

    Parameters
    ----------
    output : path
        Output folder of a recipe.
    verify : bool
        Compare the digests of all artefacts, not only their sizes and times.

    Returns
    -------
    list of dict
        For each folder ``folder``, ``run`` (the folder of the whole run), ``in_use`` (whether a run is using it),
        ``stages`` in the order of the last run, each with ``stage``, ``step``, ``artefact``, ``state`` ("done";
        "stale": made from inputs that differ from those of the next run; "missing"; "damaged": changed since it was
        written), ``why`` and ``seconds``, and ``others``: artefacts of earlier configurations, which the last run did
        not use.

    Raises
    ------
    DataError
        If there is no such folder, or it holds no run.
    """
    output = Path(output)
    if not output.is_dir():
        raise DataError("no such folder", file=output, remedy="give the output folder of a recipe")
    statuses: list[Json] = []
    runs: dict[str, str] = {}
    for parent, folders, files in os.walk(output):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folder = Path(parent)
        runs[parent] = runs.get(str(folder.parent), parent)
        if LOG in files:
            runs[parent] = parent
        if STAGES in files:
            about = {"folder": parent, "run": runs[parent], "in_use": is_in_use(folder)}
            statuses.append({**about, **_stages_of_folder(folder, verify)})
    if not statuses and not (output / LOG).is_file():
        raise DataError("no run in this folder: there is no stages.json", file=output)
    if statuses:
        return statuses
    about = {"folder": str(output), "run": str(output), "in_use": is_in_use(output)}
    return [{**about, "stages": [], "others": []}]


def format_status(
    folders: Sequence[Json], *, every: bool = False, steps: Sequence[str] = ()
) -> str:
    """Return the number of stages that are done, then a line for each step, or with `every` for each stage.

    `steps` are in order; those after the last one that a run has begun are due.
    """
    stages = []
    for status in folders:
        stages += status["stages"]
    lines = [_head_of_status(stages)]
    key, group = ("folder", "stage") if every else ("run", "step")
    for folder in dict.fromkeys(status[key] for status in folders):
        parts = [status for status in folders if status[key] == folder]
        is_busy = any(status["in_use"] for status in parts)
        number = "a" if is_busy else "no"
        lines += ["", f"{folder}: {number} run is at work in it"]
        groups: dict[str, list[Json]] = {}
        others = []
        for status in parts:
            others += status["others"]
            for stage in status["stages"]:
                groups.setdefault(stage[group], []).append(stage)
        known = []
        if groups.keys() <= set(steps):
            known = [name for name in steps if name in groups]
        width = max(map(len, groups), default=0)
        for name in dict.fromkeys([*known, *groups]):
            cells = _cells_of_stages(groups[name], every=every, is_busy=is_busy)
            lines.append(f"  {name:{width}}  {cells}".rstrip())
        if known:
            lines += [f"  {name:{width}}  due" for name in steps[steps.index(known[-1]) + 1 :]]
        lines += [f"  {name}: of an earlier configuration" for name in others]
    return "\n".join(lines)


def _head_of_status(stages: Sequence[Json]) -> str:
    """Return the number of stages in each state, and the next stage."""
    states = Counter(stage["state"] for stage in stages)
    head = f"{states['done']} of {len(stages)} stages done"
    for state, number in states.items():
        if state != "done":
            head += f", {number} {state}"
    for stage in stages:
        if stage["state"] != "done":
            return f"{head}; next: {stage['stage']}"
    return head


def _cells_of_stages(stages: Sequence[Json], *, every: bool, is_busy: bool) -> str:
    """Return the state of a step's stages, the number that are done, their seconds, and why others are not done."""
    unfinished = [stage for stage in stages if stage["state"] != "done"]
    begun = [
        stage for stage in unfinished if is_busy and stage["state"] == "missing" and stage["why"]
    ]
    state = "done"
    if begun:
        state = "running"
    elif unfinished:
        state = unfinished[0]["state"]
    seconds = [stage["seconds"] for stage in stages if stage["state"] == "done"]
    cells = f"{state:7}"
    if not every:
        cells += f"{len(seconds):5} of {len(stages):3}"
    if seconds and None not in seconds:
        cells += f"{sum(seconds):9.1f} s"
    if unfinished:
        stage = (begun or unfinished)[0]
        cells += "  "
        if not every:
            cells += f"{stage['stage']}: "
        cells += stage["why"]
    return cells


def _stages_of_folder(folder: Path, verify: bool) -> Json:
    entries, plan = read_records(folder)
    sources = read_record(folder / SOURCES)
    current: Json = {
        name: entries.get(artefact, {}).get("fingerprint") for artefact, (name, _) in plan.items()
    }
    reasons: dict[str, str] = {}  # reasons by stage, for those that are not up to date
    stages = []
    for artefact, (name, step) in plan.items():
        entry = entries.get(artefact, {})
        state: State = "missing"
        if entry.get("fingerprint"):
            state = state_of_files(folder, entry, verify=verify)
        why = ""
        seconds = None
        if state == "damaged":
            why = "it has changed since it was written"
        elif state == "missing" and entry:
            why = "it was begun"
        elif state == "done":
            seconds = entry.get("seconds")
            why = _outdated(entry["origin"], sources.get(name, []), current, reasons)
            if why:
                state = "stale"
                seconds = None
                reasons[name] = why.split(": ", 1)[-1]
        status = {
            "stage": name,
            "step": step,
            "artefact": artefact,
            "state": state,
            "why": why,
            "seconds": seconds,
        }
        stages.append(status)
    others = sorted(name for name in entries if name not in plan and (folder / name).is_file())
    return {"stages": stages, "others": others}


def _outdated(origin: Json, stamps: list[Any], current: Json, reasons: Mapping[str, str]) -> str:
    """Return why the next run will not use an artefact with this origin; "" if nothing has changed."""
    if origin["version"] != __version__:
        return f"spkver {origin['version']} -> {__version__}"
    for name, before in origin["libraries"].items():
        now = library_version(name)
        if now != before:
            return f"{name} {before} -> {now}"
    changed = [path for path, *stamp in stamps if stamp != list(size_and_time(Path(path)))]
    if len(changed) > 1:
        return f"{changed[0]} and {len(changed) - 1} more changed"
    if changed:
        return f"{changed[0]} changed"
    for name, before in origin["after"].items():
        if name in reasons:
            return f"depends on {name!r}: {reasons[name]}"
        if current.get(name) not in (None, before):
            return f"depends on {name!r}, which was made again"
    return ""
