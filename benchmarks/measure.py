"""What the benchmarks share: medians, the machine's own rates to compare with, and a line about the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from spkbase.work import default_jobs


def median_seconds(function: Callable[[], object], *, repeats: int = 5, warm_up: int = 1) -> float:
    """Median wall time of several calls."""
    for _ in range(warm_up):
        function()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def matmul_rate(threads: int, *, size: int = 4096, dtype: type = np.float32) -> float:
    """Operations per second of a square matrix product with so many BLAS threads."""
    matrix: np.ndarray = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    with threadpool_limits(threads):
        return 2 * size**3 / median_seconds(lambda: matrix @ matrix)


def workers_rate(jobs: int, *, size: int = 4096) -> float:
    """Operations per second of square float32 products in so many threads at once, each with one BLAS thread.

    That is how this package uses a machine: threads of its own over chunks, one BLAS thread in each.
    """
    matrix: np.ndarray = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    rows = np.array_split(matrix, jobs)
    with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:
        return 2 * size**3 / median_seconds(lambda: list(pool.map(lambda part: part @ matrix, rows)))


def describe_machine() -> str:
    """Processor, cores, Python, NumPy: what a figure must be read with."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{model}, {default_jobs()} cores; Python {platform.python_version()}, NumPy {np.__version__}; "
        f"load before the run {load:.1f}"
    )


def replace_block(page: Path, name: str, text: str) -> None:
    """Put measured figures into a page, between the lines ``<!-- name -->`` and ``<!-- end of name -->``."""
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(first)
    _, found_last, after = rest.partition(last)
    if not found or not found_last:
        raise SystemExit(f"{page} has no lines {first.strip()} and {last.strip()} to put the figures between")
    page.write_text(f"{before}{first}\n{text}\n\n{last}{after}", encoding="utf-8")
