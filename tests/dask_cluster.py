"""A Dask cluster of real processes on this machine, for tests: started, killed and counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 60.0
_PLAIN = ("--no-nanny", "--no-dashboard")
# A cluster that waits for the next test should use no processor: no profile every 10 ms, and rare measurements.
_IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "30s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "5s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
}
# Run a module that ends when the tests do, even if they are killed and cannot report it: they hold its input open.
_TIED = """
import os, runpy, signal, sys, threading

def end_with_input():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=end_with_input, daemon=True).start()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def wait_until(condition: Callable[[], object], event: str, seconds: float = _PATIENCE) -> None:
    """Wait for an event that takes a while; fail if it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{event} did not come within {seconds:g} s"
        time.sleep(0.05)


class DaskCluster:
    """A scheduler and workers, each a process without a nanny, in a folder where nothing of ours is.

    They can import the packages, and no test.
    """

    def __init__(self, folder: Path, n_workers: int = 2, **settings: str) -> None:
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
        }
        self.environment |= _IDLE | settings
        self.environment["PYTHONPATH"] = str(_ROOT)  # the code under test, not an installed version
        self.workers: list[subprocess.Popen] = []
        address_file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
        options += ["--scheduler-file", str(address_file)]
        self.scheduler = self._start("scheduler", *options)
        wait_until(lambda: self._address(address_file), "the scheduler")
        self.address = self._address(address_file)
        for _ in range(n_workers):
            self.start_worker()
        self.wait_for(n_workers)

    def start_worker(self) -> subprocess.Popen:
        """Start a worker more; `wait_for` waits until it is there."""
        own = (
            "--nthreads",
            "1",
            "--memory-limit",
            "0",
            "--host",
            "127.0.0.1",
            "--death-timeout",
            "20",
        )
        self.workers.append(
            self._start(
                "worker", self.address, *_PLAIN, *own, "--local-directory", str(self.folder)
            )
        )
        return self.workers[-1]

    def replace_dead_workers(self, n_workers: int) -> None:
        """Start workers until so many are alive, and wait for them."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < n_workers:
            self.start_worker()
        self.wait_for(len(self.workers))

    def wait_for(self, n_workers: int) -> None:
        """Wait until the scheduler knows so many workers."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            wait_until(lambda: len(client.ncores()) == n_workers, f"{n_workers} workers")

    def n_tasks(self) -> int:
        """Number of tasks that the scheduler knows."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            return int(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    def close(self) -> None:
        """End everything."""
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.communicate()  # closes its input and waits

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen:
        with (self.folder / f"{kind}.log").open("ab") as log:
            command = [sys.executable, "-c", _TIED, f"distributed.cli.dask_{kind}", *arguments]
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    @staticmethod
    def _address(file: Path) -> str:
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError):
            return ""
