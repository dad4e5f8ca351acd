"""What the benchmarks share: medians, the machine's own rates to compare with, options and repetitions of studies."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from spkbase.work import Work, default_jobs


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
        return (
            2 * size**3 / median_seconds(lambda: list(pool.map(lambda part: part @ matrix, rows)))
        )


def describe_machine() -> str:
    """Processor, cores, Python, NumPy: what a figure must be read with."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
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
        raise SystemExit(
            f"{page} has no lines {first.strip()} and {last.strip()} to put the figures between"
        )
    page.write_text(f"{before}{first}\n{text}\n\n{last}{after}", encoding="utf-8")


def peak_mb(*, children: bool = False) -> float:
    """Peak of memory of this process (of the largest child, where asked) in MB."""
    return (
        resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF).ru_maxrss
        / 1024
    )


def apart(module: str, call: str) -> list[float]:
    """Call a function of a benchmark in a process of its own, whose peak of memory is its own."""
    code = (
        f"import json; from benchmarks import {module} as module; print(json.dumps(module.{call}))"
    )
    return json.loads(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    )


def study_options(description: str | None, **defaults: Any) -> argparse.Namespace:
    """Options of a study, each with its default; a list takes several values. Prints what the figures depend on."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    for name, default in {**defaults, "first_seed": 0, "jobs": default_jobs()}.items():
        several = (
            {"nargs": "+", "type": type(default[0])}
            if isinstance(default, list)
            else {"type": type(default)}
        )
        parser.add_argument(
            f"--{name.replace('_', '-')}", default=default, help=f"default: {default}", **several
        )
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    return options


def repeated(work: Callable[[int], Any], options: argparse.Namespace) -> list[Any]:
    """Results of all repetitions; each has a seed of its own, `first_seed` and the next ones."""
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    return list(Work(options.jobs).map(work, seeds, processes=True))


def covered(misses: np.ndarray, note: str = "") -> str:
    """Share of intervals that hold the true value, in percent; in brackets true values below and above."""
    below, above = (100 * np.asarray(misses, float)[:2]).tolist()
    return f"{100 - below - above:.1f} ({below:.1f}, {above:.1f}{note})"
