"""The counts of `benchmarks.house`, on small houses whose numbers can be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.house import (
    Import,
    arrows,
    circles,
    code_lines,
    components,
    floors,
    imports_of,
    modules,
    mutual,
    read_house,
    rooms,
    undocumented,
    wide_functions,
)

ROOT = Path(__file__).resolve().parent.parent

HOUSE = {
    "spkbase/__init__.py": "",
    "spkbase/errors.py": "",
    "evaluation/__init__.py": "import lazy_loader\n",
    "evaluation/__init__.pyi": "from .metrics import eer as eer\n",
    "evaluation/metrics/__init__.py": "import lazy_loader\n",
    "evaluation/metrics/__init__.pyi": "from .equal_error import eer as eer\nfrom .zebra import zebra as zebra\n",
    "evaluation/metrics/equal_error.py": "from spkbase.errors import DataError\n",
    "evaluation/metrics/zebra.py": "from evaluation.metrics import eer\n",
    "evaluation/reports/__init__.py": "",
    "evaluation/reports/page.py": """
from typing import TYPE_CHECKING
from evaluation.metrics import zebra
if TYPE_CHECKING:
    from evaluation.cli import main
""",
    "evaluation/cli.py": """
def main():
    from evaluation.reports import page
    from evaluation.reports.page import write
""",
    "spkver/__init__.py": "",
    "spkver/scoring.py": "import evaluation\nfrom evaluation import eer\nfrom spkver.svm import train\n",
    "spkver/svm.py": "def train():\n    from spkver.scoring import score\n",
    "recipes/rsr2015/prepare.py": "import spkver.svm\n",
    "recipes/rsr2015/svm_gmm.py": "from prepare import Config\nfrom report import report\n",
    "recipes/rsr2015/report.py": "",
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small house with faces on its rooms."""
    for name, text in HOUSE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_modules_have_the_names_that_imports_use(house: Path) -> None:
    found = modules(house)
    assert list(found)[:4] == ["spkbase", "spkbase.errors", "evaluation", "evaluation.cli"]
    assert found["evaluation.metrics"] == house / "evaluation/metrics/__init__.py"
    assert len(found) == len([name for name in HOUSE if name.endswith(".py")])
    assert set(modules(house, ["spkver"])) == {"spkver", "spkver.scoring", "spkver.svm"}


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("""
import os.path, sys
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a.b import C
else:
    from a.b import D
try:
    from . import e
except ImportError:
    from ..f import g as h
class K:
    from i import j
    def method(self):
        import l
        if TYPE_CHECKING:
            import m
""")
    assert imports_of(tmp_path / "x.py") == [
        Import("os.path", 2, "import"), Import("sys", 2, "import"), Import("typing.TYPE_CHECKING", 3, "import"),
        Import("a.b.C", 5, "typing"), Import("a.b.D", 7, "import"), Import(".e", 9, "import"),
        Import("..f.g", 11, "import"), Import("i.j", 13, "import"), Import("l", 15, "inside"),
        Import("m", 17, "typing"),
    ]  # fmt: skip


def test_a_name_is_followed_through_the_faces_to_its_module(house: Path) -> None:
    found = read_house(modules(house))
    assert found.imports["spkver.scoring"] == {"evaluation", "evaluation.metrics.equal_error", "spkver.svm"}
    assert found.imports["evaluation.metrics.zebra"] == {"evaluation.metrics.equal_error"}
    assert found.imports["evaluation.cli"] == {"evaluation.reports.page"}
    assert (found.imports["evaluation.reports.page"], found.checked["evaluation.reports.page"]) == (
        {"evaluation.metrics.zebra"}, {"evaluation.cli"},
    )  # fmt: skip
    # scripts import what lies beside them
    assert found.imports["recipes.rsr2015.svm_gmm"] == {"recipes.rsr2015.prepare", "recipes.rsr2015.report"}
    assert found.imports["recipes.rsr2015.prepare"] == {"spkver.svm"}


def test_rooms_arrows_and_floors(house: Path) -> None:
    found = read_house(modules(house))
    room_of = rooms(found.files, "evaluation")
    assert room_of["evaluation.metrics.zebra"] == room_of["evaluation.metrics"] == "evaluation.metrics"
    assert set(room_of.values()) == {"evaluation.metrics", "evaluation.reports", "evaluation.cli"}
    graph = arrows(found.imports, room_of)
    assert graph == {
        "evaluation.metrics": set(),
        "evaluation.reports": {"evaluation.metrics"},
        "evaluation.cli": {"evaluation.reports"},
    }  # fmt: skip
    assert floors(graph) == 3
    assert arrows(found.checked, room_of)["evaluation.reports"] == {"evaluation.cli"}
    assert circles(graph) == []
    assert set(rooms(found.files, "recipes").values()) == {"recipes.rsr2015"}
    assert len(set(rooms(found.files, "recipes.rsr2015").values())) == 3


def test_circles_and_pairs(house: Path) -> None:
    found = read_house(modules(house))
    assert circles(found.imports) == [["spkver.scoring", "spkver.svm"]]
    assert mutual(found.imports) == [("spkver.scoring", "spkver.svm")]
    graph = {"a": "b", "b": "c", "c": "ad", "d": "ef", "e": "d", "f": "", "g": "ag"}
    assert circles(graph) == [["d", "e"], ["a", "b", "c"]]
    assert components(graph) == [["f"], ["d", "e"], ["a", "b", "c"], ["g"]]
    assert (floors(graph), mutual(graph)) == (4, [("d", "e")])
    assert (floors({}), circles({})) == (0, [])
    long = {str(number): [str(number + 1)] for number in range(5000)} | {"5000": []}
    assert floors(long) == 5001, "no recursion"


COUNTED = '''"""The module."""

import click


# a comment
def seven(a, b, /, c, d, *, e, f, g):
    """Has a docstring
    of two lines."""
    text = """no
docstring"""

    def inner(a, b, c, d, e, f, g, h):
        return text


class Public:
    def method(self, a, b, c, d, e, f, g):
        pass

    @staticmethod
    def loose(a, b, c, d, e, f, *rest, **more):
        """Has one."""

    def _private(self): ...


@click.command()
def command(a, b, c, d, e, f, g, h):
    """Run."""


class _Private:
    def public(self): ...
'''


def test_what_the_house_style_counts(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(COUNTED)
    assert wide_functions(tmp_path / "x.py") == ["seven.inner (8)", "Public.loose (8)"]
    assert wide_functions(tmp_path / "x.py", 6) == [
        "seven (7)", "seven.inner (8)", "Public.method (7)", "Public.loose (8)",
    ]  # fmt: skip
    assert undocumented(tmp_path / "x.py") == ["Public", "Public.method"]
    assert code_lines(tmp_path / "x.py") == 16
    (tmp_path / "y.py").write_text("x = 1\n")
    assert undocumented(tmp_path / "y.py") == ["the module"]


def test_the_account_is_printed(house: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.house", str(house), "--names"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    head, *lines = done.stdout.partition("\n\n")[0].splitlines()
    rows = {line[:19].strip(): line[19:].split() for line in lines}
    assert head.split()[:4] == ["spkbase", "evaluation", "spkver", "recipes"]
    assert rows["rooms"] == ["1", "3", "2", "1", "3"]
    assert rows["floors"] == ["1", "3", "1", "1", "2"]
    assert rows["circles of modules"] == ["0", "0", "1", "0", "0"]
    assert "spkver, pairs: spkver.scoring - spkver.svm" in done.stdout
    assert "packages: 4, floors 4, circles 0" in done.stdout
