"""Calls of our own functions: the stack above the cepstra of one file, and how many functions a recipe enters.

python -m benchmarks.calls
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from spkver.cli import main

_HOME = str(Path(__file__).resolve().parent.parent)
_OURS = tuple(f"{_HOME}/{name}/" for name in ("spkbase", "evaluation", "spkver", "recipes"))
_CEPSTRA = ("mfcc", "librosa_mfcc")
_FEW = "--set ubm.components=16 --jobs 1"
_RUNS = {
    "rsr2015": f"rsr2015 svm-gmm --corpus simulated {_FEW}",
    "voiceprivacy": "voiceprivacy --data simulated --suffix _mcadams --set attackers=[gmm-ubm] --jobs 1 --until scores",
}


def run(command: str) -> tuple[list[str], set[CodeType]]:
    """Run a command of ``spkver``; return our functions above the first cepstra, and all of ours that it entered."""
    stack: list[str] = []
    entered: set[CodeType] = set()

    def enter(frame: FrameType | None, event: str, _: Any) -> None:
        if event != "call" or frame is None or not frame.f_code.co_filename.startswith(_OURS):
            return
        entered.add(frame.f_code)
        if not stack and frame.f_code.co_name in _CEPSTRA:
            while (frame := frame.f_back) is not None:
                if frame.f_code.co_filename.startswith(_OURS):
                    stack.insert(
                        0,
                        f"{frame.f_code.co_filename.removeprefix(_HOME + '/')}: {frame.f_code.co_name}",
                    )

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(enter)
        main([*command.split(), "--output", folder], prog_name="spkver", standalone_mode=False)
        sys.setprofile(None)
    return stack, {
        code for code in entered if code.co_flags & 1 and not code.co_name.startswith("<")
    }  # no class bodies


if __name__ == "__main__":
    for name, command in _RUNS.items():
        stack, entered = run(command)
        print(
            f"{name}: {len(stack)} calls above the cepstra, {len(entered)} functions entered",
            *stack,
            sep="\n  ",
        )
