"""What `make check` and `make kernels` choose is there, and another kernel is another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from other_kernel import AVX512, NUMERICAL, files, kernels, other_kernel
from quick_loop import WHOLE

TESTS = Path(__file__).resolve().parent


def test_the_files_that_are_named_are_there() -> None:
    stems = [path.stem for path in TESTS.rglob("test_*.py")]
    assert sorted(name for name in stems if name in WHOLE) == sorted(WHOLE)
    assert len(files()) == len(NUMERICAL) == len(set(NUMERICAL))
    assert not set(NUMERICAL) & set(WHOLE)


def test_the_other_kernel_is_another_and_numpy_leaves_out_what_it_is_told() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    own = kernels(environment)
    if not own:
        pytest.skip("NumPy has no OpenBLAS here")
    name, without = other_kernel(own)
    now = kernels({**environment, "OPENBLAS_CORETYPE": name})
    if not own & now:
        assert len(now) == 1
    assert (name == "Prescott") == bool(own & {"Haswell", "Zen"})
    assert set(AVX512) <= set(without)
