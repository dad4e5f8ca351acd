"""Damaged files end in a right answer or in one error of ours, and do nothing else; see `tests.fuzz`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import PARSERS

ROOT = Path(__file__).resolve().parent.parent


def run(name: str, last: int, *paths: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *paths))), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz", name, "0", str(last)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=7200)


@pytest.mark.parametrize("last", [100, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_damaged_files(last: int) -> None:
    done = run("all", last)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.keys() == PARSERS.keys()
    assert min(count for counts in found.values() for count in counts.values()) >= 2  # neither only refusals nor none


TRAPS = {
    "another error": ("raise KeyError('x')", "KeyError"),
    "exit": ("raise SystemExit(3)", ""),
    "program": ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
    "shell": ("import os; os.system('true')", "os.system"),
    "a file": ("open('stray', 'w').close()", "stray"),
    "pickle": ("import pickle; pickle.loads(pickle.dumps(print))", "pickle.find_class"),
    "loop": ("import signal; signal.alarm(1)\n    while True: pass", "_TooLongError"),
    "memory": ("bytearray(1 << 40)", "MemoryError"),
    "crash": ("import ctypes; ctypes.string_at(0)", "Segmentation fault"),
}


@pytest.mark.parametrize("kind", TRAPS)
def test_the_watch_sees_it(kind: str, tmp_path: Path) -> None:
    body, message = TRAPS[kind]
    text = f"def spring(path):\n    if path.read_bytes() == b'b': return\n    {body}\n"
    setting = "from tests.fuzz import Parser, files\n\nPARSER = Parser(files('x', b'b'), spring)\n"
    (tmp_path / "trap.py").write_text(text + setting)
    done = run("trap:PARSER", 3, tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
