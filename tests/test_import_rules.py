"""Who may import whom: the data go one way, and so do the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What `spkver` may use of the other package: the boundary, nothing that computes metrics or draws.
BOUNDARY = {
    "console",
    "devices",
    "errors",
    "files",
    "formats",
    "parallel",
    "stored",
    "trials",
    "unpickle",
    "worker_options",
}

# The arrows of the design: a module imports from its own layer and from those before it.
LAYERS = [
    ["version", "errors"],
    ["idmap", "store", "shorten_process", "shorten", "sphere", "audio", "locks", "rows"],
    ["journal", "partial", "row_files"],
    ["datadir"],
    ["sidekit", "stat_files"],
    ["corpora"],
    ["features"],
    ["config"],
    ["anonymization"],
    ["ledger", "stages", "run", "run_log", "status"],
    ["recordings"],
    ["transcription", "emotion"],
    ["device"],
    ["gmm", "ubm"],
    ["statistics"],
    ["supervectors"],
    ["nap"],
    ["svm"],
    ["trial_pieces", "scoring"],
    ["pipeline"],
    ["attackers"],
    ["commands"],
    ["cli"],
    ["__main__"],
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
HEAVY = ("librosa", "sklearn", "matplotlib", "numba", "av", "espeakng_loader")


def imports_of(path: Path) -> set[str]:
    """Full names of what a file imports, wherever the statement stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not used here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", ["evaluation", "spkver"])
def test_there_is_something_to_check(package):
    assert len(files_of(package)) > 5


@pytest.mark.parametrize("path", files_of("evaluation"), ids=lambda path: path.stem)
def test_evaluation_is_usable_alone(path):
    assert not [name for name in imports_of(path) if name.split(".")[0] in ("spkver", "recipes")]


@pytest.mark.parametrize("path", files_of("spkver"), ids=lambda path: path.stem)
def test_spkver_uses_only_the_boundary(path):
    used = [name.split(".") for name in imports_of(path)]
    assert {name[1] for name in used if name[0] == "evaluation"} <= BOUNDARY
    assert not [name for name in used if name[0] == "recipes"]


@pytest.mark.parametrize("path", files_of("spkver"), ids=lambda path: path.stem)
def test_imports_follow_the_arrows(path):
    own = path.relative_to(ROOT / "spkver").with_suffix("").parts[0]
    if own == "__init__":
        return
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "spkver" and len(parts) > 1 and parts[1] != "__version__":
            assert LAYER[parts[1]] <= LAYER[own], f"{path} turns back to {name}"


@pytest.mark.parametrize("module", ["spkver", "spkver.pipeline", "spkver.attackers", "spkver.cli"])
def test_heavy_libraries_are_loaded_when_they_are_used(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
