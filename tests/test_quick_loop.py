"""What `make check` and `make kernels` choose is there, and another kernel is another one."""

import ast
from pathlib import Path

from other_kernel import NUMERICAL, files

TESTS = Path(__file__).resolve().parent


def is_whole(path):
    """Whether a file of tests carries the mark `whole` for all its tests."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            return "pytest.mark.whole" in ast.unparse(node.value)
    return False


def test_every_numerical_test_file_exists():
    assert len(files()) == len(NUMERICAL) == len(set(NUMERICAL))
    assert not [path for path in map(Path, files()) if is_whole(path)]


def test_the_quick_loop_omits_recipes():
    assert all(is_whole(path) for path in TESTS.glob("recipes/test_*.py"))
