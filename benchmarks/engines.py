"""What each engine takes for a task, beside its work: empty ones, ones with 2 MB of results, and 10 MB that all need.

    python -m benchmarks.engines

The cluster is a scheduler and two workers with one thread each on this machine, which share its cores with the process
that asks: network is left out, and on machines with more cores the figures are smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import describe_machine, median_seconds
from spkbase.work import EngineKind, ordered_map, stop_workers, use_engine

WORKERS = 2
RESULT, COMMON = 2_000_000, 10_000_000  # bytes


def nothing(number: int) -> int:
    """Do an empty task."""
    return number


def large(number: int) -> np.ndarray:
    """Return a large result."""
    return np.full(RESULT // 8, float(number))


def needy(common: np.ndarray, number: int) -> float:
    """Look at something that all tasks need."""
    return float(common[number])


def measure(engine: EngineKind, scheduler: str | None = None) -> list[float]:
    """Median seconds for a task of each kind; for what all need, those of the whole map."""
    common = np.arange(COMMON // 8, dtype=float)
    kinds: list[tuple[Callable[[int], Any], int, int]] = [
        (nothing, 500, 500),
        (large, 60, 60),
        (partial(needy, common), 20, 1),
    ]
    with use_engine(engine, scheduler=scheduler):
        return [median_seconds(partial(_drain, function, n_tasks)) / divisor for function, n_tasks, divisor in kinds]


def _drain(function: Callable[[int], Any], n_tasks: int) -> None:
    for _ in ordered_map(function, range(n_tasks), jobs=WORKERS):
        pass


def main() -> None:
    print(describe_machine())
    found: dict[str, list[float]] = {}
    for engine in ("threads", "loky"):
        found[engine] = measure(engine)
    stop_workers()
    try:
        from distributed import LocalCluster
    except ImportError:
        print("dask is not installed: pip install 'spkver[dask]'")
    else:
        with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster:
            found["dask"] = measure("dask", cluster.scheduler_address)
    for engine, (empty, result, needed) in found.items():
        print(
            f"{engine:7}: {1e6 * empty:6.0f} us a task, {1e6 * result:6.0f} us with 2 MB of results, "
            f"{1e3 * needed:5.0f} ms for 20 tasks that all need 10 MB (medians of 5, {WORKERS} workers)"
        )


if __name__ == "__main__":
    main()
