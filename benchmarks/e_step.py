"""Rate of the E-step against the rate of a 4096 x 4096 float32 matrix product, with diagonal and with full covariances.

Operations are those of its two products: 8 T C D, or 4 T C (D (D + 1) / 2 + D) with full covariances.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from spkbase.work import Work, default_jobs
from spkver.mixture import GaussianMixture, e_step, with_full_covariances


def main(n_frames: int = 400_000, n_components: int = 512, dimension: int = 60) -> None:
    rng = np.random.default_rng(0)
    # as far apart as those of speech: a frame's log-densities spread over hundreds of nats, as they do there, and many
    # posteriors are so small that exponentials take their slow ways
    means = rng.standard_normal((n_components, dimension))
    variances = rng.uniform(0.2, 0.8, (n_components, dimension))
    mixture = GaussianMixture(np.full(n_components, 1 / n_components), means, variances)
    drawn = rng.integers(n_components, size=n_frames)
    frames = (means[drawn] + np.sqrt(variances[drawn]) * rng.standard_normal((n_frames, dimension))).astype(np.float32)
    print(describe_machine())
    some = frames[: n_frames // 16]  # full covariances take 16 times as many operations
    for name, model, used, terms in (
        ("diagonal", mixture, frames, 2 * dimension),
        ("full", with_full_covariances(mixture), some, dimension * (dimension + 3) // 2),
    ):
        size = f"{len(used)} frames, {n_components} Gaussians, {dimension} dimensions, float32"
        print(f"E-step, {name} covariances: {size}, median of 5")
        operations = 4 * len(used) * n_components * terms
        for threads in sorted({1, default_jobs()}):
            reference = matmul_rate(threads)
            seconds = median_seconds(partial(e_step, used, model, work=Work(jobs=threads)))
            rate = operations / seconds
            print(
                f"  {threads} thread(s): {rate / 1e9:6.1f} GFLOP/s, matrix product {reference / 1e9:6.1f} GFLOP/s, "
                f"ratio {rate / reference:.2f}, {seconds:.2f} s"
            )


if __name__ == "__main__":
    main()
