"""Damaged files end in a right answer or in one error of ours, and do nothing else; see `tests.fuzz`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import PARSERS

pytestmark = pytest.mark.whole(seconds=80)

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "last", [40, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_damaged_files_raise_only_data_errors(last):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz", "all", "0", str(last)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=7200)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.keys() == PARSERS.keys()
    # each parser both accepts and refuses some files
    assert min(count for counts in found.values() for count in counts.values()) >= 2
