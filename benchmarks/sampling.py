"""What a command and its workers use while they run: memory, processor and disk, sampled from /proc (Linux).

The command is started in a session of its own; every process of that session counts, so a worker whose parent has
died is not lost.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ROLLUP = re.compile(r"^(Pss|Pss_Anon|Pss_Shmem):\s+(\d+) kB$", re.MULTILINE)
_SHARE = 0.03  # of a core's time may go into sampling; the samples become rarer before they disturb what they measure


@dataclass
class Usage:
    """Samples of a command, in the order of time.

    Attributes
    ----------
    times : list of float [unit=s]
        Since the epoch, as in logs.
    memory : list of float [unit=byte]
        Of all processes together: proportional set size, so that a page that several processes share counts once.
    private : list of float [unit=byte]
        The part of it that is not a file mapped into memory, which the system could drop at any time.
    cpu : list of float [unit=s]
        Processor time of all processes so far.
    disk : list of float [unit=byte]
        Allocated in the folder, and in files without a name that the processes hold open.
    started, ended : float [unit=s]
    status : int
        Exit status of the command.
    proportional : bool
        False where the system does not tell proportional sizes: resident sizes are summed instead.
    """

    times: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    private: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0
    status: int = 0
    proportional: bool = True

    def peak(self, values: Sequence[float], start: float, stop: float) -> float:
        """Largest of the samples between two times; that of the nearest where there is none between them."""
        if not self.times:
            return float("nan")
        times = np.array(self.times)
        inside = (times >= start) & (times <= stop)
        if not inside.any():
            inside[np.argmin(np.abs(times - (start + stop) / 2))] = True
        return float(np.array(values)[inside].max())

    def cpu_between(self, start: float, stop: float) -> float:
        """Processor seconds between two times."""
        if not self.times:
            return float("nan")
        first, last = np.interp([start, stop], [self.started, *self.times], [0.0, *self.cpu])
        return float(last - first)


def run_sampled(
    command: Sequence[str],
    *,
    folder: Path,
    output: Path,
    interval: float = 0.2,
    environment: dict[str, str] | None = None,
) -> Usage:
    """Run a command to its end and sample what it uses.

    Parameters
    ----------
    command : sequence of str
    folder : path
        Whose disk use is followed.
    output : path
        File for what the command prints.
    interval : float [unit=s]
        Between two samples, more where a sample takes long.
    environment : dict, optional
        Added to this process's own.
    """
    usage = Usage()
    done = threading.Event()
    with output.open("wb") as handle:
        usage.started = time.time()
        process = subprocess.Popen(
            command,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        watcher = threading.Thread(target=_watch, args=(process.pid, folder, interval, usage, done), daemon=True)
        watcher.start()
        try:
            usage.status = process.wait()
        except BaseException:
            process.terminate()  # the recipe stops its workers itself
            process.wait()
            raise
        finally:
            usage.ended = time.time()
            done.set()
            watcher.join()
    return usage


def _watch(session: int, folder: Path, interval: float, usage: Usage, done: threading.Event) -> None:
    cpu: dict[int, float] = {}
    last_disk, disk = 0.0, 0.0
    while not done.is_set():
        started, thread_started = time.time(), time.thread_time()
        pids = _session_members(session, cpu)
        sizes = [_memory(pid, usage) for pid in pids]
        if started - last_disk >= 5 * interval:  # a walk through the folder is dearer than the rest
            last_disk, disk = started, folder_bytes(folder) + _nameless_bytes(pids)
        if sizes:
            usage.times.append(started)
            usage.memory.append(sum(size for size, _ in sizes))
            usage.private.append(sum(private for _, private in sizes))
            usage.cpu.append(sum(cpu.values()))
            usage.disk.append(disk)
        done.wait(max(interval, (time.thread_time() - thread_started) / _SHARE))


def _session_members(session: int, cpu: dict[int, float]) -> list[int]:
    """Processes of a session; their processor seconds so far go into `cpu`, where those of the dead stay."""
    members = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # after the command's name, which may hold blanks and brackets: state, parent, group, session, ...
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    members.append(int(process.name))
                    cpu[int(process.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    return members


def _memory(pid: int, usage: Usage) -> tuple[float, float]:
    try:
        kilobytes = dict(_ROLLUP.findall(Path(f"/proc/{pid}/smaps_rollup").read_text()))
        size = 1024.0 * int(kilobytes["Pss"])
        return size, 1024.0 * (int(kilobytes.get("Pss_Anon", 0)) + int(kilobytes.get("Pss_Shmem", 0)))
    except (ProcessLookupError, KeyError):  # it has just ended
        return 0.0, 0.0
    except OSError:
        if not Path(f"/proc/{pid}").exists():  # it ended before that
            return 0.0, 0.0
        usage.proportional = False
        with suppress(OSError, IndexError):
            resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
            return float(int(resident) * _PAGE), float((int(resident) - int(shared)) * _PAGE)
        return 0.0, 0.0


def folder_bytes(folder: Path) -> int:
    """Bytes allocated for the files below a folder; a file with several names counts once."""
    seen: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(parent, name))  # noqa: PTH118  # called often
                seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


def _nameless_bytes(pids: Sequence[int]) -> int:
    """Bytes of files that processes hold open and that have no name any more."""
    seen: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    target = str(descriptor.readlink())
                    if target.startswith("/") and target.endswith(" (deleted)"):
                        status = descriptor.stat()
                        seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())
