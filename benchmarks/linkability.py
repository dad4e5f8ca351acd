"""Linkability at scale: all sizes of a large gallery with every speaker, and a million enrolled from mapped files.

Each part runs in a process of its own, so that its peak of memory is its own.

    python -m benchmarks.linkability
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import apart, describe_machine, matmul_rate, peak_mb
from evaluation.embeddings import Embeddings, read_embeddings
from evaluation.linkage import count_beaters, ranks_from_embeddings
from evaluation.reports import Settings, measure_linkage, write_linkage
from spkbase.work import Work, default_jobs

DIMENSIONS = 192


def all_sizes(
    n_enrolled: int = 22_024, n_trials: int = 4_949, resamples: int = 0, jobs: int = 2
) -> list[float]:
    """Seconds from vectors in memory to the files of a run, with every size and speaker; and the peak in MB."""
    vectors = _vectors(n_enrolled, seed=0)
    names = np.array([f"s{number:05d}" for number in range(n_enrolled)], object)
    enrol = Embeddings(names, names, vectors)
    trial = Embeddings(names[:n_trials], names[:n_trials], _trials(vectors[:n_trials]))
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        ranks = ranks_from_embeddings(enrol, trial, work=Work(jobs))
        counted = time.perf_counter()
        run = measure_linkage({1: ranks}, Settings(resamples=resamples))
        write_linkage(folder, run)
        done = time.perf_counter()
        n_lines = Path(folder, "per_speaker.csv").read_text().count("\n")
    assert len(run.curves[1].sizes) == n_enrolled - 1
    assert n_lines == n_trials + 1
    return [done - started, counted - started, peak_mb()]


def mapped(
    n_enrolled: int = 1_000_000, n_trials: int = 10_000, repeats: int = 5, jobs: int = 2
) -> list[float]:
    """Median rate of products (per second) over mapped files, the share of a square product's, seconds, peak in MB."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"from benchmarks import linkability as b; b.write_mapped({folder!r}, {n_enrolled}, {n_trials})"
        subprocess.run([sys.executable, "-c", code], check=True)
        enrol, trial = (
            read_embeddings(Path(folder, side), map_above=0) for side in ("enrol", "trial")
        )
        norms, owners = enrol.norms(), np.arange(n_trials)
        pairs = []
        for _ in range(repeats):
            square = matmul_rate(jobs)
            started = time.perf_counter()
            count_beaters(enrol.vectors, norms, trial.vectors, owners, work=Work(jobs))
            pairs.append(
                (2.0 * n_enrolled * n_trials * DIMENSIONS / (time.perf_counter() - started), square)
            )
        rate, share = (
            statistics.median(measured)
            for measured in zip(*((a, a / b) for a, b in pairs), strict=True)
        )
        started = time.perf_counter()
        ranks_from_embeddings(enrol, trial, work=Work(jobs))
        return [rate, share, time.perf_counter() - started, peak_mb()]


def write_mapped(folder: str, n_enrolled: int, n_trials: int) -> None:
    """Write folders of npy, a part at a time."""
    names = np.array([f"s{number:07d}" for number in range(n_enrolled)])
    for side, count in (("enrol", n_enrolled), ("trial", n_trials)):
        place = Path(folder, side)
        place.mkdir()
        np.save(place / "ids.npy", names[:count])
        np.save(place / "speakers.npy", names[:count])
        shape = (count, DIMENSIONS)
        vectors = np.lib.format.open_memmap(place / "vectors.npy", "w+", np.float32, shape)
        for start in range(0, count, 50_000):
            part = _vectors(min(50_000, count - start), seed=start)
            vectors[start : start + len(part)] = part if side == "enrol" else _trials(part)


def _vectors(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)


def _trials(vectors: np.ndarray) -> np.ndarray:
    """Other utterances of the same speakers, far from clean."""
    noise = np.random.default_rng(1).standard_normal(vectors.shape).astype(np.float32)
    return vectors + np.float32(2.5) * noise


def main() -> None:
    print(describe_machine())
    jobs = default_jobs()
    for resamples in (0, 1000):
        runs = [
            apart("linkability", f"all_sizes(resamples={resamples}, jobs={jobs})") for _ in range(3)
        ]
        seconds, counted, peak = (
            statistics.median(measured) for measured in zip(*runs, strict=True)
        )
        print(
            f"22,024 x 4,949 x 192, all sizes and speakers, {resamples} resamples: {seconds:.2f} s "
            f"({counted:.2f} s of them the ranks), peak {peak:.0f} MB (median of 3)"
        )
    rate, share, seconds, peak = apart("linkability", f"mapped(jobs={jobs})")
    print(
        f"1,000,000 x 10,000 x 192, mapped: {rate / 1e9:.0f} GFLOP/s with {jobs} threads, {share:.0%} of a product of "
        f"4096 x 4096 (median of 5); {seconds:.0f} s with all checks, peak {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
