"""The Python examples in the documents give what stands below them."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = [
    path for path in sorted(ROOT.glob("docs/*.md")) if "\n>>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path):
    results = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert results.attempted > 3
    assert not results.failed
