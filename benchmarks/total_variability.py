"""Rates of one EM round of total variability and of i-vector extraction against that of a float64 matrix product."""

from __future__ import annotations

import statistics as averages
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import describe_machine
from spkbase.work import Work, default_jobs
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import TotalVariabilityConfig, extract_ivectors, train_total_variability

Sizes = tuple[int, int, int, int]  # segments, components, dimensions, rank


def round_operations(sizes: Sizes) -> float:
    """Additions and multiplications that a round of EM needs, as few as the formulas allow."""
    n_segments, n_components, dimension, rank = sizes
    packed, width = rank * (rank + 1) / 2, n_components * dimension
    sums = 4 * n_segments * (n_components * packed + width * rank)  # L and A of packed matrices, b and B
    factors = n_segments * (rank**3 + 2 * rank**2)  # L factored, inverted, solved
    update = 2 * width * packed + n_components * rank**3 / 3 + 4 * width * rank**2  # T' T; A factored, solved; T G
    return sums + factors + update


def extraction_operations(sizes: Sizes) -> float:
    """Those of i-vectors without variances."""
    n_segments, n_components, dimension, rank = sizes
    packed, width = rank * (rank + 1) / 2, n_components * dimension
    sums = 2 * n_segments * (n_components * packed + width * rank)
    return sums + n_segments * (rank**3 / 3 + 2 * rank**2) + 2 * width * packed


def some_statistics(sizes: Sizes, *, seed: int = 0) -> tuple[GaussianMixture, Statistics]:
    """Statistics of segments of 100 to 500 frames, as uneven over the components as those of speech."""
    n_segments, n_components, dimension, _ = sizes
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((n_components, dimension))
    variances = rng.uniform(0.2, 0.8, means.shape)
    mixture = GaussianMixture(np.full(n_components, 1 / n_components), means, variances)
    # logarithms of shares spread as log-posteriors do: many counts are next to nothing
    shares = np.exp(np.minimum(rng.normal(-8, 8, (n_segments, n_components)), 0))
    zeroth = shares / shares.sum(axis=1, keepdims=True) * rng.integers(100, 500, (n_segments, 1))
    first = np.empty((n_segments, n_components * dimension), np.float32)
    for row, counts in enumerate(zeroth):
        noise = rng.standard_normal(means.shape, np.float32)
        first[row] = (counts[:, None] * means + np.sqrt(counts[:, None] * variances) * noise).reshape(-1)
    names = np.array([f"s{row}" for row in range(n_segments)], object)
    return mixture, Statistics(names, names, zeroth.astype(np.float32), first)


def rates(operations: float, task: Callable[[], object]) -> tuple[float, float]:
    """Return operations per second of wall time, and of CPU time, which other work on the machine disturbs less."""
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    return operations / (time.perf_counter() - wall), operations / (time.process_time() - cpu)


def compare(what: str, operations: float, task: Callable[[], object], threads: int, repeats: int) -> None:
    """Print the rate of a task, and its ratio to that of matrix products just before and after each of its runs."""
    matrix: np.ndarray = np.random.default_rng(0).standard_normal((2048, 2048))

    def product() -> None:
        with threadpool_limits(threads):
            np.matmul(matrix @ matrix, matrix)

    product()
    of_task, of_product = [], [rates(4 * 2048**3, product)]
    for _ in range(repeats):
        of_task.append(rates(operations, task))
        of_product.append(rates(4 * 2048**3, product))
    ratios = np.array(of_task) / (np.array(of_product[1:]) + of_product[:-1]) * 2
    rate, reference = (averages.median(wall for wall, _ in some) / 1e9 for some in (of_task, of_product))
    wall, cpu = np.median(ratios, axis=0)
    print(
        f"  {threads} thread(s), {what}: {operations / rate / 1e9:7.3f} s, {rate:6.1f} GFLOP/s, matrix product "
        f"{reference:6.1f} GFLOP/s, ratio {wall:.2f} (least {ratios[:, 0].min():.2f}), of CPU time {cpu:.2f}",
        flush=True,
    )


def main(ranks: tuple[int, ...] = (100, 400), n_segments: int = 2000, repeats: int = 3) -> None:
    print(describe_machine())
    for rank in ranks:
        sizes = n_segments, 512, 60, rank
        mixture, statistics = some_statistics(sizes)
        config = TotalVariabilityConfig(rank=rank, rounds=1)
        trained = train_total_variability(mixture, statistics, TotalVariabilityConfig(rank=rank, rounds=0))
        print(f"total variability: {n_segments} segments, 512 x 60, rank {rank}, float64, median of {repeats}")
        for threads in sorted({1, default_jobs()}):
            work = Work(jobs=threads)
            train = partial(train_total_variability, mixture, statistics, config, start=trained.loadings, work=work)
            extract = partial(extract_ivectors, trained, statistics, work=work)
            compare("EM round  ", round_operations(sizes), train, threads, repeats)
            compare("extraction", extraction_operations(sizes), extract, threads, repeats)
            fast = partial(extract, method="eigen")
            compare("eigen     ", 2.0 * n_segments * trained.loadings.size, fast, threads, repeats)


if __name__ == "__main__":
    main(tuple(int(rank) for rank in sys.argv[1:]) or (100, 400))
