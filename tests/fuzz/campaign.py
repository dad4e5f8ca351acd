"""Runs parsers in workers, starts a worker anew behind the input that killed the last one, and counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.worker import SLOW

_ROOT = Path(__file__).resolve().parent.parent.parent
_HANGS = 6 * SLOW  # seconds without a new input that are the end of a worker
_STARTS = 120.0  # seconds until its first input
_IN_MEMORY = "/dev/shm"  # ten thousand inputs are written and removed
_MOST_FAULTS = 20  # of a parser; then it is given up


@dataclass
class Tally:
    """What became of a parser's inputs."""

    parser: str
    inputs: int = 0
    seconds: float = 0.0
    accepted: int = 0
    refused: int = 0
    faults: list[dict[str, object]] = field(default_factory=list)


def run(
    parsers: Iterable[str], *, inputs: int, seconds: float, seed: str = "0", jobs: int = 1, keep: Path | None = None,
    tell: Callable[[str], object] | None = None,
) -> list[Tally]:  # fmt: skip
    """Try at least `inputs` inputs and for at least `seconds` on each parser, `jobs` parsers at a time.

    Inputs that are faults are kept below the folder `keep`.
    """

    def one(name: str) -> Tally:
        tally = _try_parser(name, range(inputs), seconds, seed, keep)
        if tell:
            tell(row(tally))
        return tally

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, parsers))


def try_again(name: str, number: int, *, seed: str = "0", keep: Path | None = None) -> Tally:
    """Try one input."""
    return _try_parser(name, range(number, number + 1), 0.0, seed, keep)


def _try_parser(name: str, numbers: range, seconds: float, seed: str, keep: Path | None) -> Tally:
    tally, following = Tally(name), numbers.start
    with tempfile.TemporaryDirectory(
        prefix=f"fuzz-{name}-", dir=_IN_MEMORY if Path(_IN_MEMORY).is_dir() else None
    ) as folder:
        home = Path(folder) / "work"
        home.mkdir()
        while len(tally.faults) < _MOST_FAULTS:
            before = tally.inputs, tally.accepted, tally.refused, tally.seconds
            left = max(0.0, seconds - tally.seconds)
            died = _worker(
                tally, home, [name, str(home), seed, str(following), str(numbers.stop), str(left)], before, keep
            )
            if died is None:
                break
            tally.inputs = max(tally.inputs, before[0] + died + 1 - following)
            following = died + 1
        strays = [path.name for path in Path(folder).iterdir() if path != home]
        if strays:
            tally.faults.append({"fault": "side effect", "number": -1, "why": f"files outside of the folder: {strays}"})
    return tally


def _worker(
    tally: Tally, home: Path, arguments: list[str], before: tuple[int, int, int, float], keep: Path | None
) -> int | None:
    """Run one worker; give the number of the input that it died of."""
    (home / "number").write_text(" " * 20)
    paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "TMPDIR": str(home),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.worker", *arguments],
            stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=_ROOT, text=True,
        )  # fmt: skip
        hung = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process, home / "number", hung), daemon=True)
        watcher.start()
        done = False
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if "fault" in said:
                _note(tally, said, home, keep)
                if len(tally.faults) >= _MOST_FAULTS:
                    process.kill()
                    return None
            else:
                tally.inputs, tally.accepted, tally.refused = (
                    was + said[name] for was, name in zip(before, ("inputs", "accepted", "refused"), strict=False)
                )
                tally.seconds, done = before[3] + said["seconds"], said["done"]
        process.wait()
        watcher.join()
        if done and process.returncode == 0:
            return None
        # what it had not reported counts too: one that dies soon, again and again, else never comes to its end
        tally.seconds = max(tally.seconds, before[3] + time.monotonic() - started)
        errors.seek(0)
        why = errors.read().decode("utf-8", "replace")[-3000:]
    text = (home / "number").read_text().strip()
    if not text:
        raise RuntimeError(f"the worker of {tally.parser} did not start:\n{why}")
    if text.endswith("?"):  # it was not the parser that died
        return int(text[:-1])
    fault = "hang" if hung.is_set() else f"crash, status {process.returncode}"
    _note(tally, {"fault": fault, "number": int(text), "why": why}, home, keep)
    return int(text)


def _watch(process: subprocess.Popen[str], progress: Path, hung: threading.Event) -> None:
    """Kill a worker that has been at one input for long."""
    last, since = "", time.monotonic()
    while True:
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
        try:
            number = progress.read_text()
        except FileNotFoundError:  # the worker came to its end meanwhile
            return
        if number != last:
            last, since = number, time.monotonic()
        elif time.monotonic() - since > (_HANGS if number.strip() else _STARTS):
            hung.set()
            process.kill()


def _note(tally: Tally, fault: dict[str, object], home: Path, keep: Path | None) -> None:
    """Keep what a fault needs to be seen again."""
    if keep is not None:
        target = keep / f"{tally.parser}-{fault['number']}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        kept = home / f"fault-{fault['number']}"
        for path in [kept] if kept.exists() else home.glob("input*"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, target / path.name)
        (target / "fault.txt").write_text(f"{fault['fault']}\n{fault['why']}\n")
    tally.faults.append(fault)


HEAD = f"{'parser':22}{'inputs':>9}{'seconds':>9}{'accepted':>10}{'refused':>9}{'faults':>8}"


def row(tally: Tally) -> str:
    """A line of the table."""
    counts = f"{tally.inputs:9}{tally.seconds:9.1f}{tally.accepted:10}{tally.refused:9}{len(tally.faults):8}"
    return f"{tally.parser:22}{counts}"
