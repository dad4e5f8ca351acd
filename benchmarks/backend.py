"""Cost of the scorers of vectors beside one matrix product of the same size, and of training a PLDA.

Everything computes in one thread, so seconds are those of the CPU: a shared machine matters less.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import describe_machine
from evaluation.embeddings import read_embeddings
from evaluation.formats import read_trials, write_trials
from evaluation.trials import Trials
from spkbase.hdf5 import write_arrays
from spkbase.work import one_blas_thread
from spkver.backend import (
    Plda,
    PldaConfig,
    Sessions,
    TwoCovariance,
    cosine_of_sessions,
    fit_plda,
    kaldi_plda_scores,
    mahalanobis_scores,
    plda_scores,
    plda_to_kaldi,
)

MODELS, SEGMENTS = 600, 1000
SESSIONS = 3


def main(rank: int = 100) -> None:
    print(describe_machine())
    print("CPU seconds, medians of five, one BLAS thread")
    full_lists(rank)
    growth()
    training()


def full_lists(rank: int) -> None:
    """600,000 trials: all models against all segments."""
    for dimension, in_order in ((rank, True), (rank, False), (4 * rank, True)):
        plda, sessions, tests = _drawn(np.random.default_rng(0), MODELS, SEGMENTS, dimension, rank)
        models, segments = np.divmod(np.arange(MODELS * SEGMENTS), SEGMENTS)
        if not in_order:
            order = np.random.default_rng(1).permutation(len(models))
            models, segments = models[order], segments[order]
        left, right = np.ones((MODELS, rank)), np.ones((SEGMENTS, rank))
        with one_blas_thread():
            product = cpu_seconds(lambda: left @ right.T)  # noqa: B023
        reading = _reading(tests, models, segments)
        print(
            f"{MODELS * SEGMENTS} trials {'model by model' if in_order else 'in any order'}, {SESSIONS} sessions "
            f"a model, {dimension} dimensions, rank {rank}: "
            f"one product {1e3 * product:.1f} ms, reading vectors and trials {1e3 * reading:.0f} ms"
        )
        kaldi = plda_to_kaldi(plda)
        two = TwoCovariance(plda.mean, plda.between, plda.within)
        trials = (sessions, tests, models, segments)
        scorers = {
            "PLDA, all sessions": lambda: plda_scores(plda, *trials),  # noqa: B023
            "PLDA, their mean": lambda: plda_scores(plda, *trials, sessions_as="mean"),  # noqa: B023
            "PLDA of Kaldi": lambda: kaldi_plda_scores(kaldi, *trials),  # noqa: B023
            "two covariances": lambda: plda_scores(two.plda, *trials),  # noqa: B023
            "Mahalanobis": lambda: mahalanobis_scores(plda.residual, *trials),  # noqa: B023
            "cosine": lambda: cosine_of_sessions(*trials),  # noqa: B023
        }
        for name, score in scorers.items():
            seconds = cpu_seconds(score)
            print(
                f"  {name:20s} {1e3 * seconds:6.1f} ms, {seconds / product:5.1f} products; with reading "
                f"{(seconds + reading) / (3 * product + reading):.2f} of three products and reading"
            )


def growth() -> None:
    """The lists of RSR2015's development set and its sixteenth parts: each model against its sentence's segments."""
    rng, counts, times = np.random.default_rng(0), [], []
    for share in (1, 2, 4, 8, 16):
        n_models, n_segments = 1710 * share // 16, 10_260 * share // 16
        plda, sessions, tests = _drawn(rng, n_models, n_segments, 400, 400)
        models, segments = np.nonzero(np.arange(n_models)[:, None] % 30 == np.arange(n_segments) % 30)
        seconds = cpu_seconds(lambda: plda_scores(plda, sessions, tests, models, segments))  # noqa: B023
        counts.append(len(models))
        times.append(seconds)
        print(f"  {len(models):6d} trials, {n_models} models, {n_segments} segments, rank 400: {1e3 * seconds:.0f} ms")
    print(f"  log-log slope by the trials {np.polyfit(np.log(counts), np.log(times), 1)[0]:.2f}")


def training(count: int = 5000, dimension: int = 400) -> None:
    """Ten rounds of EM, and the product of the total scatter beside them."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(count // 10), 10)
    vectors = rng.normal(size=(count // 10, dimension))[who] + rng.normal(size=(count, dimension))
    for rank in (100, 200, 400):
        seconds = cpu_seconds(lambda: fit_plda(vectors, who, PldaConfig(rank=rank)), repeats=3)  # noqa: B023
        print(f"training, {count} x {dimension}, rank {rank}, 10 rounds: {seconds:.2f} s")


def cpu_seconds(function: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the median CPU time of several calls, after one to warm up."""
    times = []
    for _ in range(1 + repeats):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return statistics.median(times[1:])


def _drawn(
    rng: np.random.Generator, n_models: int, n_segments: int, dimension: int, rank: int
) -> tuple[Plda, Sessions, NDArray]:
    plda = Plda(rng.normal(size=dimension), rng.normal(size=(dimension, rank)), dimension * np.eye(dimension))
    codes = np.repeat(np.arange(n_models), SESSIONS)
    return plda, Sessions(rng.normal(size=(len(codes), dimension)), codes), rng.normal(size=(n_segments, dimension))


def _reading(tests: NDArray, models: NDArray, segments: NDArray) -> float:
    """Seconds in which the tested vectors and the list of trials are read from HDF5 and from text."""
    names, ids = (
        np.array([f"{kind}{number:05d}" for number in range(n)], object)
        for kind, n in (("m", MODELS), ("s", len(tests)))
    )
    with tempfile.TemporaryDirectory() as folder:
        vectors, trials = Path(folder) / "vectors.h5", Path(folder) / "trials.txt"
        write_arrays(vectors, {"vectors": tests, "ids": ids, "speakers": ids})
        write_trials(trials, Trials(names, ids, models.astype(np.int32), segments.astype(np.int32)))
        return cpu_seconds(lambda: (read_embeddings(vectors), read_trials(trials)), repeats=3)


if __name__ == "__main__":
    main()
