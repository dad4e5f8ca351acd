"""Who may import whom: the data go one way, and so do the imports; a room is entered by its face."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("librosa", "sklearn", "matplotlib", "torch", "numba", "av", "espeakng_loader")

# The floors of each package: a room imports from those below it, in its own package.
FLOORS = {
    "spkbase": [
        ["errors", "version", "seeding"],
        ["files", "packages"],
        ["plugins"],
        ["showing"],
        ["arrays", "work"],
        ["plain_pickle"],
        ["hdf5"],
        ["configuration", "console"],
        ["runs"],
    ],
    "evaluation": [
        ["trials"],
        ["formats", "calibration", "embeddings"],
        ["metrics"],
        ["uncertainty"],
        ["linkage"],
        ["plots"],
        ["utility", "reports"],
        ["challenges"],
        ["commands"],
    ],
    "spkver": [
        ["idmap", "audio"],
        ["sidekit", "datadir"],
        ["features", "corpora"],
        ["mixture"],
        ["vectors"],
        ["extractors"],
        ["backend"],
        ["pipeline", "anonymization", "recognition"],
        ["attackers"],
        ["rsr2015", "voiceprivacy"],
        ["commands"],
        ["cli", "evaluation_cli"],
        ["__main__"],
    ],
}
# What a package may import of the others.
BORDERS: dict[str, set[str]] = {
    "spkbase": set(),
    "evaluation": {"spkbase"},
    "spkver": {
        *("spkbase", "evaluation.trials", "evaluation.formats", "evaluation.embeddings", "evaluation.calibration"),
        "evaluation.metrics",
    },
}
# These measure and report; the door of ``spkver-eval`` is beside that of ``spkver``.
ALL_FACES = ("spkver.rsr2015", "spkver.voiceprivacy", "spkver.__main__")


def room_of(module: str) -> str:
    """The package and the room: ``spkver.mixture``; the package alone for its ``__init__``."""
    return ".".join(module.split(".")[:2])


FILES = [
    path for package in FLOORS for path in sorted((ROOT / package).rglob("*.py")) if "recipes" not in path.parts[-4:-1]
]


def of_ours(path: Path) -> list[str]:
    """What a file imports of this project, in full, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    assert not [name for name in names if name.startswith(".")], f"{path}: relative imports are not used here"
    return [name for name in names if name.split(".")[0] in (*FLOORS, "recipes", "tests", "benchmarks")]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package: str) -> None:
    there = {room_of(name_of(path)) for path in FILES if path.relative_to(ROOT).parts[0] == package} - {package}
    named = {f"{package}.{room}" for floor in FLOORS[package] for room in floor}
    assert there == named


def test_imports_go_down_and_enter_rooms_by_their_faces() -> None:
    """`from evaluation.metrics import eer`, not from a module in the room; private names are nobody else's."""
    for path in FILES:
        own = room_of(name_of(path))
        package = own.split(".")[0]
        floor = {f"{package}.{room}": number for number, rooms in enumerate(FLOORS[package]) for room in rooms}
        by_name = own in ("spkver.cli", "spkver.evaluation_cli")  # the tables of commands
        for name in of_ours(path):
            other, inside = room_of(name), name.split(".")[2:]
            if name.split(".")[0] != package:
                allowed = BORDERS[package] | ({"evaluation"} if own in ALL_FACES else set())
                assert name.split(".")[0] in allowed or other in allowed, f"{path}: {own} may not import {name}"
            elif other not in (own, f"{package}.__version__"):
                assert own == package or floor[other] < floor[own], f"{path}: {own} turns back to {name}"
            if other != own and (ROOT / other.replace(".", "/")).is_dir():
                assert len(inside) <= 1 or by_name, f"{path} goes round the face of {other}: {name}"
                assert not "".join(inside).startswith("_"), f"{path} takes the private {name}"


@pytest.mark.parametrize("module", ["evaluation", "spkver.cli", "spkver.voiceprivacy"])
def test_heavy_libraries_are_loaded_when_they_are_used(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_map_of_the_house_is_the_tree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.search(r"## Where things are\n.*?```text\n(.*?)```", text, re.S)
    assert drawn is not None
    named: set[str] = set()
    package = ""
    for line in drawn[1].splitlines():
        words = re.split(r"\s{2,}", line.strip(), maxsplit=1)[0].split()
        for word in words:
            if not line.startswith(" "):
                package = word.rstrip("/")
            elif word.endswith(("/", ".py")):
                named.add(f"{package}/{word.rstrip('/')}")
    there = {
        f"{package}/{path.name}"
        for package in FLOORS
        for path in (ROOT / package).iterdir()
        if not path.name.startswith("__") and path.name != "recipes" and (path.is_dir() or path.suffix == ".py")
    }
    assert {name for name in named if name.split("/")[0] in FLOORS} == there
