"""Who may import whom: the data go one way, and so do the imports; packages are imported by their public names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("librosa", "sklearn", "matplotlib", "torch", "numba", "av", "espeakng_loader")

# The layers of each top-level package: its packages and modules import from the earlier layers alone.
LAYERS = {
    "spkbase": [
        ["errors", "version", "seeding", "rounding"],
        ["files", "packages"],
        ["locks"],
        ["plugins"],
        ["showing"],
        ["progress"],
        ["arrays", "work"],
        ["plain_pickle"],
        ["hdf5"],
        ["configuration", "console"],
        ["runs"],
        ["status"],
    ],
    "evaluation": [
        ["trials"],
        ["formats", "calibration", "embeddings"],
        ["metrics"],
        ["uncertainty"],
        ["linkage", "forensics"],
        ["plots"],
        ["utility", "reports"],
        ["challenges"],
        ["commands"],
    ],
    "spkver": [
        ["streams", "function_server"],
        ["idmap", "audio"],
        ["sidekit", "datadir"],
        ["features", "corpora"],
        ["mixture"],
        ["vectors"],
        ["extractors"],
        ["backend"],
        ["pipeline", "anonymization", "recognition", "sklearn"],
        ["training"],
        ["attackers"],
        ["rsr2015", "voiceprivacy"],
        ["commands"],
        ["cli", "evaluation_cli"],
        ["__main__"],
    ],
}
# What a top-level package may import from the others.
OTHERS = {
    "spkbase": set(),
    "evaluation": {"spkbase"},
    "spkver": {
        *(
            "spkbase",
            "evaluation.trials",
            "evaluation.formats",
            "evaluation.embeddings",
            "evaluation.calibration",
        ),
        "evaluation.metrics",
    },
}
# These packages measure and report: they may import all of evaluation.
WHOLE_EVALUATION = ("spkver.rsr2015", "spkver.voiceprivacy")


def package_of(module):
    """The package, or module beside packages: ``spkver.mixture``; the top level alone for its ``__init__``."""
    return ".".join(module.split(".")[:2])


FILES = [
    path
    for top in LAYERS
    for path in sorted((ROOT / top).rglob("*.py"))
    if "recipes" not in path.parts[-4:-1]
]


def of_ours(path):
    """What a file imports of this project, in full, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    assert not [name for name in names if name.startswith(".")], (
        f"{path}: relative imports are not used here"
    )
    return [
        name for name in names if name.split(".")[0] in (*LAYERS, "recipes", "tests", "benchmarks")
    ]


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("top", LAYERS)
def test_every_package_has_a_layer(top):
    there = {
        package_of(name_of(path)) for path in FILES if path.relative_to(ROOT).parts[0] == top
    } - {top}
    named = {f"{top}.{name}" for layer in LAYERS[top] for name in layer}
    assert there == named


def test_imports_go_down_to_public_names():
    """`from evaluation.metrics import eer`, not from a module in the package; private names are nobody else's."""
    for path in FILES:
        own = package_of(name_of(path))
        top = own.split(".")[0]
        layer = {
            f"{top}.{name}": number for number, names in enumerate(LAYERS[top]) for name in names
        }
        by_name = own in ("spkver.cli", "spkver.evaluation_cli")  # the tables of commands
        for name in of_ours(path):
            other, inside = package_of(name), name.split(".")[2:]
            if name.split(".")[0] != top:
                allowed = OTHERS[top] | ({"evaluation"} if own in WHOLE_EVALUATION else set())
                assert name.split(".")[0] in allowed or other in allowed, (
                    f"{path}: {own} may not import {name}"
                )
            elif other not in (own, f"{top}.__version__"):
                assert own == top or layer[other] < layer[own], (
                    f"{path}: {own} imports {name} of a later layer"
                )
            if other != own and (ROOT / other.replace(".", "/")).is_dir():
                assert len(inside) <= 1 or by_name, (
                    f"{path} imports {name}: import a public name of {other}"
                )
                assert not "".join(inside).startswith("_"), f"{path} imports the private {name}"


@pytest.mark.parametrize("module", ["evaluation", "spkver.cli", "spkver.voiceprivacy"])
def test_heavy_libraries_are_imported_in_functions(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_map_in_the_documentation_equals_the_tree():
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.search(r"## Where things are\n.*?```text\n(.*?)```", text, re.S)
    named = set()
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
        for package in LAYERS
        for path in (ROOT / package).iterdir()
        if not path.name.startswith("__")
        and path.name != "recipes"
        and (path.is_dir() or path.suffix == ".py")
    }
    assert {name for name in named if name.split("/")[0] in LAYERS} == there


# the package spkver itself exports only its version
FACES = [
    path
    for path in FILES
    if path.name == "__init__.py"
    and "import " in path.read_text()
    and path.parent != ROOT / "spkver"
]


@pytest.mark.parametrize("path", FACES, ids=name_of)
def test_packages_export_every_public_name(path):
    """Type checkers of users take only what ``__all__`` names."""
    imported, exported = set(), set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            imported |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            imported.add(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            exported = set(ast.literal_eval(node.value))
    assert exported == {
        name for name in imported if not name.startswith("_") or name == "__version__"
    }
