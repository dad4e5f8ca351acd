"""What it would cost to have one text for NumPy and devices: the texts of `spkver.backend`, run by NumPy on one core.

    python -m benchmarks.device_texts

Each is compared with the text for the cores, in turns; what is given is CPU time, so that a busy machine matters less.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.devices import mixture_and_frames
from benchmarks.measure import describe_machine
from spkbase.devices import Device
from spkbase.work import Work
from spkver.backend import MeanRatios, log_likelihood_ratios
from spkver.mixture import PosteriorKernel, Table, e_step, natural_parameters, segment_statistics, segment_sums


def main(n_models: int = 20, repeats: int = 7) -> None:
    numpy = Device("numpy", np)
    mixture, frames = mixture_and_frames(16_384, 512)
    parameters = natural_parameters(mixture)
    segments = np.split(frames, np.arange(300, len(frames), 300))
    shift = np.random.default_rng(1).standard_normal((n_models, *mixture.means.shape))
    means = (mixture.means + 0.3 * shift).astype(np.float32)
    ratios = MeanRatios(parameters, Table(means.reshape(n_models, -1), numpy), frames.dtype)

    def statistics_on_a_core() -> None:
        kernel = PosteriorKernel(parameters, frames.dtype)
        for segment in segments:
            segment_statistics(segment, kernel)

    print(describe_machine())
    compare(
        "E-step",
        lambda: e_step(frames, mixture, work=Work(jobs=1)),
        lambda: e_step(frames, mixture, work=Work(device=numpy)),
        repeats,
    )
    compare("statistics", statistics_on_a_core, lambda: segment_sums(segments, parameters, numpy), repeats)
    compare(
        "log-likelihood ratios",
        lambda: [log_likelihood_ratios(segment, means, mixture) for segment in segments[:6]],
        lambda: [ratios(segment, np.arange(n_models)) for segment in segments[:6]],
        repeats,
    )


def compare(title: str, on_cores: Callable[[], object], for_devices: Callable[[], object], repeats: int) -> None:
    """Print the median CPU times of both, and their ratio."""
    seconds: tuple[list[float], list[float]] = ([], [])
    with threadpool_limits(1):
        for _ in range(repeats):
            for times, step in zip(seconds, (on_cores, for_devices), strict=True):
                started = time.thread_time()
                step()
                times.append(time.thread_time() - started)
    cores, devices = (statistics.median(times) for times in seconds)
    print(f"  {title}: {cores:.3f} s, text for devices {devices:.3f} s, ratio {devices / cores:.2f}")


if __name__ == "__main__":
    main()
