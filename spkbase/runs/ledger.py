"""What the artefacts of an output folder were made from: `stages.json` and `sources.json`.

    stages.json   artefacts: file -> stage, fingerprint, checksum, seconds, origin; plan: the stages of the last run
    sources.json  stage -> path, size and time of change of each audio file that it reads

Both are written whole or not at all. A damaged one counts as missing: everything is then made again.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from spkbase.files import fingerprint, size_and_time, write_text
from spkbase.version import __version__

LEDGER, SOURCES = "stages.json", "sources.json"

Json = dict[str, Any]

# What numbers depend on besides this package.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "h5py", "soundfile", "soxr")


@dataclass(frozen=True)
class Origin:
    """What an artefact is made from, part by part, so that one can say what has changed.

    Attributes
    ----------
    stage : str
    version : str
        Of this package.
    inputs, sources : str
        Digests of configuration and lists, and of the files that are read (path, size, time of change).
    libraries : dict of str to str
        Versions of the libraries that the numbers depend on.
    device : str or None
        Where it is computed, unless by NumPy.
    after : dict of str to str
        Fingerprints of the stages that it depends on.
    """

    stage: str
    version: str
    inputs: str = ""
    sources: str = ""
    libraries: dict[str, str] = field(default_factory=dict)
    device: str | None = None
    after: dict[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Digest of all parts."""
        return fingerprint(self)

    def changes(self, now: Origin) -> list[str]:
        """Return a description of each difference to the origin `now`."""
        changed = []
        if self.version != now.version:
            changed.append(f"spkver {self.version} -> {now.version}")
        if self.inputs != now.inputs:
            changed.append("configuration or lists changed")
        if self.sources != now.sources:
            changed.append("audio files changed")
        changed += library_changes(self.libraries, now.libraries)
        if self.device != now.device:
            changed.append(f"device {self.device or 'cpu'} -> {now.device or 'cpu'}")
        changed += [
            f"depends on {name!r}, which changed" for name in now.after if self.after.get(name) != now.after[name]
        ]
        return changed or (["it depends on other stages"] if set(self.after) != set(now.after) else [])


def library_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a description of each library whose version differs."""
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} {before.get(name, 'none')} -> {now.get(name, 'none')}"
        for name in names
        if before.get(name) != now.get(name)
    ]


@cache
def library_version(name: str) -> str:
    """Return the version of an installed distribution, or "none"."""
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):  # ValueError: no name at all, from a damaged record
        return "none"


def versions() -> dict[str, str]:
    """Return the versions of the package, of Python and of the libraries that numbers depend on."""
    installed = {name: library_version(name) for name in _LIBRARIES}
    return {
        "spkver": __version__,
        "python": platform.python_version(),
        **{name: number for name, number in installed.items() if number != "none"},
    }


def distribution_of(namespace: Any) -> str:
    """Return the distribution that a namespace of arrays comes from; those of CuPy bear CUDA's version."""
    module = namespace.__name__.rpartition(".")[2]
    return module if library_version(module) != "none" else packages_distributions().get(module, [module])[0]


def source_stamps(files: Mapping[str, Path]) -> list[list[Any]]:
    """Return path, size in bytes and time of change in ns of files; None for the last two where one is missing."""
    parent = cache(os.path.realpath)
    stamps: list[list[Any]] = []
    for path in files.values():
        stamps.append([f"{parent(path.parent)}{os.sep}{path.name}", *size_and_time(path)])
    return stamps


def changed_sources(stamps: Iterable[list[Any]]) -> list[str]:
    """Return the paths of files that are not as their stamps say."""
    return [path for path, *stamp in stamps if stamp != list(size_and_time(path))]


class Ledger:
    """The records of an output folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> tuple[dict[str, Json], list[Json]]:
        """Return the entries of the artefacts, and the plan; what is damaged is left out."""
        record = _read_json(self.folder / LEDGER)
        artefacts, plan = record.get("artefacts"), record.get("plan")
        entries = artefacts.items() if isinstance(artefacts, dict) else ()
        steps = plan if isinstance(plan, list) else ()
        return (
            {name: entry for name, entry in entries if isinstance(entry, dict)},
            [step for step in steps if isinstance(step, dict)],
        )

    def entry(self, artefact: str) -> Json:
        """Return the entry of an artefact; empty if there is none."""
        return self.read()[0].get(artefact, {})

    def note(self, artefact: str, entry: Json, plan: list[Json]) -> None:
        """Write the entry of an artefact; the stages of `plan` replace those of the same names in the kept plan."""
        entries, before = self.read()
        here = {step["stage"] for step in plan}
        kept = [step for step in before if step.get("stage") not in here]
        self._write({**entries, artefact: entry}, kept + plan)

    def set_plan(self, plan: list[Json]) -> None:
        """Write the plan of a run, unless it is there."""
        entries, before = self.read()
        if before != plan:
            self._write(entries, plan)

    def _write(self, entries: Mapping[str, Json], plan: list[Json]) -> None:
        record = {"artefacts": entries, "plan": plan}
        write_text(self.folder / LEDGER, json.dumps(record, indent=1, sort_keys=True) + "\n")

    def sources(self) -> dict[str, list[list[Any]]]:
        """Return the stamps of the files that each stage reads."""
        return {name: stamps for name, stamps in _read_json(self.folder / SOURCES).items() if _are_stamps(stamps)}

    def note_sources(self, stage: str, stamps: list[list[Any]]) -> None:
        """Keep the stamps of the files that a stage reads."""
        before = self.sources()
        if before.get(stage) != stamps:
            record = {**before, stage: stamps}
            write_text(self.folder / SOURCES, json.dumps(record, separators=(",", ":")).replace("],", "],\n") + "\n")


def origin_of(record: Mapping[str, Any]) -> Origin | None:
    """Return the origin that an entry or a step of a plan holds; None if it is damaged."""
    origin = record.get("origin")
    if not isinstance(origin, dict):
        return None
    try:
        kept = Origin(**origin)
    except TypeError:
        return None
    parts: list[Any] = [kept.stage, kept.version, kept.inputs, kept.sources, kept.device or ""]
    names: list[Any] = [kept.libraries, kept.after]
    for mapping in names:
        parts += [*mapping, *mapping.values()] if isinstance(mapping, dict) else [None]
    return kept if all(isinstance(part, str) for part in parts) else None


def origin_record(origin: Origin) -> Json:
    """Return the form in which an origin is kept."""
    return {"stage": origin.stage, "fingerprint": origin.fingerprint, "origin": asdict(origin)}


def _are_stamps(stamps: Any) -> bool:
    return isinstance(stamps, list) and all(
        isinstance(stamp, list) and len(stamp) == 3 and isinstance(stamp[0], str) for stamp in stamps
    )


def _read_json(path: Path) -> Json:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
