"""One process that tries inputs on one parser, under limits and with its doings watched.

    python -m tests.fuzz.worker PARSER FOLDER SEED FIRST LAST SECONDS

It tries inputs FIRST, FIRST + 1, ... until LAST are tried and SECONDS have gone by. FOLDER/number holds the number of
the input in work and FOLDER/input* the input itself, both written before it is tried: when the process dies, they are
what killed it. Each line of the output is JSON: counts, or a fault.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spkbase.errors import SpkverError
from tests.fuzz.mutation import nonsense
from tests.fuzz.parsers import Parser, all_parsers

SLOW = 5.0  # seconds for one input that are a fault
_MEMORY = 3 << 29  # bytes that an input may ask for beyond what the process has
_RESIDENT = 512 << 20  # bytes that it may fill
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_FORBIDDEN = {
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "pty.spawn", "pickle.find_class"),
    *(
        "socket.connect",
        "socket.bind",
        "urllib.Request",
        "os.kill",
        "os.symlink",
        "os.link",
        "os.chown",
        "ctypes.dlopen",
    ),
}
_CHANGING = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree"}
_REPORT_EVERY = 2.0


def main() -> None:
    name, folder, seed, first, last, seconds = sys.argv[1:]
    parser, home = _parser(name), Path(folder).resolve()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    os.chdir(home)
    made = home / "seeds"
    made.mkdir(exist_ok=True)
    seeds = parser.seeds(made)
    for data in seeds:  # what is loaded when it is needed is loaded now
        try:
            parser.read(parser.place(home, data))
        except SpkverError:
            continue
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, size + _MEMORY))
    _try_all(parser, home, seeds, seed, range(int(first), 1 << 60), int(last), float(seconds))


def _parser(name: str) -> Parser:
    """One of ours, or ``MODULE:NAME``."""
    if ":" not in name:
        return all_parsers()[name]
    found: Parser = getattr(importlib.import_module(name.split(":")[0]), name.split(":")[1])
    return found


def input_of(parser: Parser, seed: str, number: int, seeds: list[bytes]) -> bytes:
    """Input `number`: a valid one, a damaged one, or one from scratch."""
    chance = random.Random(f"{parser.name}/{seed}/{number}")
    if number < len(seeds):
        return seeds[number]
    if chance.random() < 0.08:
        return nonsense(chance, parser.words)
    return chance.choice(parser.kinds)(chance, chance.choice(seeds), seeds)


def _try_all(
    parser: Parser, home: Path, seeds: list[bytes], seed: str, numbers: range, last: int, seconds: float
) -> None:
    watch = _Watch(home)
    counts = {"inputs": 0, "accepted": 0, "refused": 0}
    started = reported = time.monotonic()
    progress = os.open(home / "number", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number in numbers:
        os.pwrite(progress, b"%19d?" % number, 0)  # in the making
        data = input_of(parser, seed, number, seeds)
        path = parser.place(home, data)
        os.pwrite(progress, b"%20d" % number, 0)
        outcome, why = watch.outcome_of(parser, path)
        counts["inputs"] += 1
        if outcome in counts:
            counts[outcome] += 1
        else:
            (home / f"fault-{number}").write_bytes(data)
            _say({"fault": outcome, "number": number, "why": why})
        now = time.monotonic()
        is_last = number + 1 >= last and now - started >= seconds
        if is_last or now - reported > _REPORT_EVERY:
            _say({**counts, "seconds": round(now - started, 2), "next": number + 1, "done": is_last})
            reported = now
        if is_last:
            return


def _say(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


class _Watch:
    """What the process does while it reads: files that it writes, programs that it starts, time and memory."""

    def __init__(self, home: Path) -> None:
        self._home, self._armed, self._seen = str(home), False, ""
        sys.addaudithook(self._note)
        signal.signal(signal.SIGALRM, self._too_long)

    def outcome_of(self, parser: Parser, path: Path) -> tuple[str, str]:
        """Kind of the outcome, and what is to be said of a fault."""
        before, started, self._seen = _resident(), time.monotonic(), ""
        outcome, why = "accepted", ""
        try:
            with self._armed_for(SLOW):
                parser.read(path)
        except SpkverError as error:
            outcome = "refused"
            if _ran_out_of_memory(error):
                outcome, why = "memory", f"asked for too much: {error}"
        except MemoryError:
            outcome, why = "memory", traceback.format_exc(limit=-6)
        except _TooLongError:
            outcome, why = "hang", traceback.format_exc(limit=-8)
        except BaseException as error:
            outcome, why = f"error {type(error).__name__}", traceback.format_exc(limit=-6)
        if self._seen:
            outcome, why = "side effect", self._seen
        elif _resident() - before > _RESIDENT:
            outcome, why = "memory", f"filled {(_resident() - before) >> 20} MiB"
        elif outcome in ("accepted", "refused") and time.monotonic() - started > SLOW:
            outcome, why = "hang", f"{time.monotonic() - started:.1f} s"
        return outcome, why[-3000:]

    @contextmanager
    def _armed_for(self, seconds: float) -> Any:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        self._armed = True
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    @staticmethod
    def _too_long(*_: object) -> None:
        raise _TooLongError

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and isinstance(path, (str, bytes)):
                self._check_place(event, path)
        elif event in _CHANGING:
            self._check_place(event, arguments[0])
        elif event in _FORBIDDEN or (
            event == "subprocess.Popen" and "spkver.audio.shorten_process" not in map(str, arguments[1])
        ):
            self._seen = f"{event} {arguments!r}"[:500]

    def _check_place(self, event: str, path: Any) -> None:
        place = os.path.realpath(os.fsdecode(path)) if isinstance(path, (str, bytes)) else ""
        if place and not f"{place}/".startswith((self._home + "/", "/dev/null/")):
            self._seen = f"{event} {place!r}"[:500]


class _TooLongError(BaseException):
    """Is not caught by what catches errors of a damaged file."""


def _resident() -> int:
    """Most memory that this process has had; `ru_maxrss` begins with that of the process that started it."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _ran_out_of_memory(error: BaseException | None) -> bool:
    seen = 0
    while error is not None and seen < 20:
        if isinstance(error, MemoryError):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


if __name__ == "__main__":
    main()
