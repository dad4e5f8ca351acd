"""How much of this project a command goes through: functions that it enters, and calls of ours above a formula.

    python -m benchmarks.calls spkver rsr2015 svm-gmm --corpus simulated --output DIR
    python -m benchmarks.calls spkver voiceprivacy --data simulated --suffix _mcadams --output DIR
    python -m benchmarks.calls spkver-eval metrics -s SCORES -k KEY

The command runs in this process (commands that compute in parallel with one worker) under a profiler. A function
counts once, also one that ran while modules were loaded; lambdas and inner functions count, comprehensions, class
bodies and what dataclasses generate do not. Calls are those on the stack when features of a recording are computed.
"""

from __future__ import annotations

import inspect
import sys
import threading
from importlib import import_module
from types import FrameType

OURS = ("spkbase", "evaluation", "spkver", "recipes")
FORMULAS = ("mfcc", "log_mel_spectrum")  # of spkver/features/cepstra.py
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


def main() -> None:
    """Run the command of the arguments, and print the counts."""
    entered: dict[object, str] = {}
    deepest: list[str] = []

    def name_of(frame: FrameType) -> str | None:
        """Name of a function of ours; None of anything else."""
        code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
        is_written = code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.endswith(".py")
        is_ours = is_written and module.partition(".")[0] in OURS
        return f"{module}.{code.co_qualname}" if is_ours and code.co_name not in _COMPREHENSIONS else None

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (frame.f_code not in entered and name_of(frame) is None):
            return
        entered.setdefault(frame.f_code, str(name_of(frame)))
        if frame.f_code.co_name in FORMULAS:
            stack, above = [], frame.f_back
            while above is not None:
                stack += [name] if (name := name_of(above)) else []
                above = above.f_back
            if len(stack) > len(deepest):
                deepest[:] = stack

    program, *arguments = sys.argv[1:]
    command = import_module("spkver.evaluation_cli" if program == "spkver-eval" else "spkver.cli").main
    jobs = [] if program == "spkver-eval" else ["--jobs", "1"]
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        command([*arguments, *jobs], prog_name=program, standalone_mode=False)
    finally:
        sys.setprofile(None)
    print(f"{len(entered)} functions of ours were entered")
    print("\n".join([f"{len(deepest)} calls of ours above the features of a recording", *reversed(deepest)]))


if __name__ == "__main__":
    main()
