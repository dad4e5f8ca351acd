"""The E-step, linkability ranks, statistics and scores on a device against NumPy on all cores.

    python -m benchmarks.devices --device cuda        # a GPU; torch for PyTorch on the cores, as a check of sanity
    python -m benchmarks.devices --device cuda --small

What a step takes includes sending its data and fetching its results; the E-step is also given with frames that are on
the device already, as they are from the second round of UBM training on.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import numpy as np

from benchmarks.measure import describe_machine, median_seconds
from evaluation.linkage import count_beaters
from spkbase.devices import Device, find_device
from spkbase.work import Work, default_jobs
from spkver.backend import gram_matrix
from spkver.mixture import (
    GaussianMixture,
    PosteriorKernel,
    Table,
    e_step,
    natural_parameters,
    segment_statistics,
    segment_sums,
)

Step = Callable[[], object]


def mixture_and_frames(n_frames: int, n_components: int, dimension: int = 60) -> tuple[GaussianMixture, np.ndarray]:
    """Random ones; rates do not depend on the values."""
    rng = np.random.default_rng(0)
    mixture = GaussianMixture(
        np.full(n_components, 1 / n_components),
        rng.standard_normal((n_components, dimension)) * 0.5,
        rng.uniform(0.3, 1.5, (n_components, dimension)),
    )
    return mixture, rng.standard_normal((n_frames, dimension)).astype(np.float32)


def e_steps(device: Device, small: bool) -> None:
    """Times of a round of EM."""
    mixture, frames = mixture_and_frames(*((50_000, 128) if small else (1_000_000, 512)))
    operations = 8 * len(frames) * mixture.n_components * mixture.dimension
    title = f"E-step, {len(frames):,} frames, {mixture.n_components} Gaussians, {mixture.dimension} dimensions"
    table = Table(frames, device)
    compare(
        title,
        operations,
        lambda: e_step(frames, mixture),
        {
            "sent each time": lambda: e_step(frames, mixture, work=Work(device=device)),
            "kept": lambda: e_step(table, mixture),
        },
    )


def statistics(device: Device, small: bool) -> None:
    """Times of the statistics of segments of 1 to 5 seconds."""
    mixture, frames = mixture_and_frames(*((20_000, 128) if small else (150_000, 512)))
    bounds = np.cumsum(np.random.default_rng(1).integers(100, 500, len(frames) // 300))
    segments = np.split(frames, bounds[bounds < len(frames)])
    parameters = natural_parameters(mixture)

    def on_a_core() -> None:
        kernel = PosteriorKernel(parameters, frames.dtype)
        for segment in segments:
            segment_statistics(segment, kernel)

    title = f"statistics of {len(segments)} segments, {mixture.n_components} Gaussians (one core against the device)"
    operations = 6 * len(frames) * mixture.n_components * mixture.dimension
    compare(title, operations, on_a_core, {"device": lambda: segment_sums(segments, parameters, device)})


def kernels(device: Device, small: bool) -> None:
    """Times of the Gram matrix of supervectors, in float64."""
    shape = (300, 3000) if small else (3000, 30_720)
    vectors = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    compare(
        f"kernel of {shape[0]} supervectors of {shape[1]} dimensions",
        2 * shape[0] ** 2 * shape[1],
        lambda: gram_matrix(vectors),
        {"device": lambda: gram_matrix(vectors, work=Work(device=device))},
    )


def ranks(device: Device, small: bool) -> None:
    """Times of counts of beaters, 192 dimensions; the counts must be the same."""
    n_enrolled, n_trials = (5000, 1000) if small else (200_000, 10_000)
    rng = np.random.default_rng(3)
    gallery = rng.standard_normal((n_enrolled, 192)).astype(np.float32)
    trials = gallery[:n_trials] + np.float32(2.5) * rng.standard_normal((n_trials, 192)).astype(np.float32)
    norms, owners = np.linalg.norm(gallery.astype(np.float64), axis=1), np.arange(n_trials)
    counts = [count_beaters(gallery, norms, trials, owners, work=Work(device=where)) for where in (None, device)]
    assert (counts[0].beaters == counts[1].beaters).all()
    assert (counts[0].ties == counts[1].ties).all()
    compare(
        f"ranks of {n_trials:,} trials among {n_enrolled:,}",
        2 * n_enrolled * n_trials * 192,
        lambda: count_beaters(gallery, norms, trials, owners),
        {"device": lambda: count_beaters(gallery, norms, trials, owners, work=Work(device=device))},
    )


def compare(title: str, operations: float, here: Step, there: dict[str, Step]) -> None:
    """Print the times of a step, and how many times faster the device is; medians of 3."""
    seconds = median_seconds(here, repeats=3)
    print(f"{title}\n  cores: {seconds:8.3f} s, {operations / seconds / 1e9:8.1f} GFLOP/s")
    for name, step in there.items():
        taken = median_seconds(step, repeats=3)
        rate = operations / taken / 1e9
        print(f"  {name}: {taken:8.3f} s, {rate:8.1f} GFLOP/s, ratio {seconds / taken:.2f}")


@click.command()
@click.option("--device", "name", default="cuda", show_default=True)
@click.option("--small", is_flag=True, help="Sizes that take a moment, to see that it works.")
def main(name: str, small: bool) -> None:
    """Compare a device with the cores."""
    device = find_device(name)
    if device is None:
        raise click.UsageError("the cores cannot be compared with themselves: give a GPU, or torch")
    print(describe_machine())
    print(f"device {name} against {default_jobs()} cores")
    for step in (e_steps, ranks, statistics, kernels):
        step(device, small)


if __name__ == "__main__":
    main()
