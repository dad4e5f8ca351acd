"""The page that maps the names of other tools to ours names what is there."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "names.md"


def ours():
    right = [
        line.split(" | ", 1)[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")
    ]
    modules = {path.stem for path in (PAGE.parents[1] / "evaluation").iterdir()}
    found = re.findall(r"`(?:evaluation\.)?(\w+)\.(\w+)", "\n".join(right))
    return {(module, name) for module, name in found if module in modules}


def test_the_page_lists_many_names():
    assert len(ours()) >= 25


@pytest.mark.parametrize(("module", "name"), sorted(ours()))
def test_every_listed_name_exists(module, name):
    found = importlib.import_module(f"evaluation.{module}")
    assert hasattr(found, name) or name.endswith("_")
