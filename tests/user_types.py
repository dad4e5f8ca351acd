"""A user's lines under a strict type checker."""

import subprocess
import sys
from pathlib import Path

import pytest


def check_types(lines: str, folder: Path, cache: Path) -> None:
    """Check lines of a user with ``mypy --strict``, as outside this project; fail with its messages."""
    pytest.importorskip("mypy")
    script = folder / "user.py"
    script.write_text(lines)
    # the bodies of what is imported are not checked, which takes a tenth of the time
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={cache}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
