"""Cost of scoring: it follows the number of trials, in full blocks and scattered; log-log slopes near 1."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from evaluation.trials import Trials
from spkbase.work import default_jobs
from spkver.backend import SvmModels, score_trials
from spkver.vectors import Supervectors


def main(n_models: int = 640, n_segments: int = 3840, dimension: int = 7680) -> None:
    rng = np.random.default_rng(0)
    ids = [
        np.array([f"{kind}{number:05d}" for number in range(n)], object)
        for kind, n in (("m", n_models), ("s", n_segments))
    ]
    machines = SvmModels(
        ids[0], rng.standard_normal((n_models, dimension)).astype(np.float32), rng.standard_normal(n_models)
    )
    vectors = rng.standard_normal((n_segments, dimension)).astype(np.float32)
    tests = Supervectors(ids[1], ids[1], vectors)
    reference = matmul_rate(default_jobs())
    print(describe_machine())
    print(f"scoring: {n_models} models, {n_segments} segments, {dimension} dimensions, float32, median of 5")
    for shape, make in (("blocks of 1/16 of the models and segments", _blocks), ("scattered", _scattered)):
        counts, times = [], []
        for share in (1, 2, 4, 8, 16):
            models, segments = make(rng, n_models, n_segments, share)
            trials = Trials(ids[0], ids[1], models.astype(np.int32), segments.astype(np.int32))
            seconds = median_seconds(lambda trials=trials: score_trials(machines, tests, trials))  # type: ignore[misc]
            counts.append(len(trials))
            times.append(seconds)
            rate = 2 * dimension * len(trials) / seconds
            print(
                f"  {shape}, {len(trials):7d} trials: {seconds:7.3f} s, {1e6 * seconds / len(trials):6.2f} us a trial, "
                f"{rate / reference:.2f} of the matrix product's rate"
            )
        slope = np.polyfit(np.log(counts), np.log(times), 1)[0]
        print(f"  {shape}: log-log slope {slope:.2f}")


def _blocks(rng: np.random.Generator, n_models: int, n_segments: int, share: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `share` of 16 sentences: all models of a sentence against all its segments."""
    pairs = [
        np.meshgrid(np.arange(number, n_models, 16), np.arange(number, n_segments, 16), indexing="ij")
        for number in range(share)
    ]
    models, segments = (np.concatenate([pair[axis].ravel() for pair in pairs]) for axis in (0, 1))
    return models, segments


def _scattered(rng: np.random.Generator, n_models: int, n_segments: int, share: int) -> tuple[np.ndarray, np.ndarray]:
    """As many trials at random pairs."""
    count = n_models * n_segments // 256 * share
    return np.divmod(rng.choice(n_models * n_segments, count, replace=False), n_segments)


if __name__ == "__main__":
    main()
