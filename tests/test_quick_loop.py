"""What `make check` and `make kernels` choose is there, and another kernel is another one."""

from pathlib import Path

from other_kernel import NUMERICAL, files
from quick_loop import WHOLE

TESTS = Path(__file__).resolve().parent


def test_every_listed_test_file_exists():
    stems = [path.stem for path in TESTS.rglob("test_*.py")]
    assert sorted(name for name in stems if name in WHOLE) == sorted(WHOLE)
    assert len(files()) == len(NUMERICAL) == len(set(NUMERICAL))
    assert not set(NUMERICAL) & set(WHOLE)
