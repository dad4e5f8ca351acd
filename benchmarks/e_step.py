"""Rate of the E-step (8 T C D operations) against the rate of a 4096 x 4096 float32 matrix product."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from spkbase.work import Work, default_jobs
from spkver.mixture import GaussianMixture, e_step


def main(n_frames: int = 400_000, n_components: int = 512, dimension: int = 60) -> None:
    rng = np.random.default_rng(0)
    # as far apart as those of speech: a frame's log-densities spread over hundreds of nats, as they do there, and many
    # posteriors are so small that exponentials take their slow ways
    means = rng.standard_normal((n_components, dimension))
    variances = rng.uniform(0.2, 0.8, (n_components, dimension))
    mixture = GaussianMixture(np.full(n_components, 1 / n_components), means, variances)
    drawn = rng.integers(n_components, size=n_frames)
    frames = (means[drawn] + np.sqrt(variances[drawn]) * rng.standard_normal((n_frames, dimension))).astype(np.float32)
    operations = 8 * n_frames * n_components * dimension
    print(describe_machine())
    print(f"E-step: {n_frames} frames, {n_components} Gaussians, {dimension} dimensions, float32, median of 5")
    for threads in sorted({1, default_jobs()}):
        reference = matmul_rate(threads)
        rate = operations / median_seconds(lambda threads=threads: e_step(frames, mixture, work=Work(jobs=threads)))  # type: ignore[misc]
        print(
            f"  {threads} thread(s): {rate / 1e9:6.1f} GFLOP/s, matrix product {reference / 1e9:6.1f} GFLOP/s, "
            f"ratio {rate / reference:.2f}"
        )


if __name__ == "__main__":
    main()
