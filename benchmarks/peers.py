"""Processor seconds of parts beside those of other packages on the same input, in turn, in one process.

    pip install hmmlearn kaldialign jiwer
    python -m benchmarks.peers

*detection* compares the EER, and EER, minDCF, Cllr and minCllr together, with NumPy's sort of all scores.
*hidden Markov models* compares posteriors of places and expected stays of a left-to-right model with hmmlearn's scaled
forward and backward recursions. *error rates* compares counts of each utterance. Times are medians; peers that are not
installed are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import describe_machine
from evaluation.metrics import cllr, eer, min_cllr, min_dcf, sort_scores
from evaluation.utility import count_errors
from spkbase.files import format_table
from spkbase.work import one_blas_thread
from spkver.mixture.hidden_markov import log_posteriors, place_posteriors, row_graph

ROUNDS = 7
N_WORDS = 8000


def seconds_in_turn(
    functions: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, float]:
    """Return the median processor seconds of functions that are called one after the other, round by round."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            started = time.process_time()
            function()
            times[name].append(time.process_time() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def compare_detection(share: float, n_trials: int = 1_000_000) -> dict[str, float]:
    """Metrics of a million scores of which a share are target trials."""
    rng = np.random.default_rng(0)
    n_target = int(share * n_trials)
    target = rng.normal(2, 2, n_target)
    nontarget = rng.normal(-2, 2, n_trials - n_target)
    scores = rng.permutation(np.concatenate([target, nontarget]))

    def four_metrics() -> None:
        ordered = sort_scores(target, nontarget)
        eer(ordered)
        min_dcf(ordered, p_target=0.01)
        cllr(ordered)
        min_cllr(ordered)

    return seconds_in_turn(
        {
            "np.sort": lambda: np.sort(scores),
            "EER": lambda: eer(target, nontarget),
            "EER, minDCF, Cllr, minCllr": four_metrics,
        }
    )


def compare_hidden_markov(
    n_states: int = 40, n_recordings: int = 100, n_frames: int = 300
) -> dict[str, float]:
    """Posteriors of states in a row; emissions of neighbouring states differ by some nats, as those of speech do."""
    rng = np.random.default_rng(0)
    stay = rng.uniform(0.6, 0.9, n_states)
    graph = row_graph(stay)
    emissions = 4 * rng.standard_normal((n_frames, n_recordings, n_states))
    lengths = np.full(n_recordings, n_frames)
    functions: dict[str, Callable[[], object]] = {
        "scaled": lambda: place_posteriors(emissions, lengths, graph),
        "log domain": lambda: log_posteriors(emissions, lengths, graph),
    }
    if find_spec("hmmlearn"):
        peer: Any = import_module("hmmlearn._hmmc")
        transitions = np.diag(stay) + np.diag(1 - stay[:-1], 1)
        transitions[-1, -1] = 1.0
        start = np.eye(n_states)[0]

        def of_hmmlearn(*, with_transitions: bool) -> None:
            for row in range(n_recordings):
                logs = emissions[:, row]
                densities = np.exp(logs - logs.max(axis=1, keepdims=True))
                _, ahead, scales = peer.forward_scaling(start, transitions, densities)
                behind = peer.backward_scaling(start, transitions, densities, scales)
                posteriors = ahead * behind
                posteriors /= posteriors.sum(axis=1, keepdims=True)
                if with_transitions:
                    peer.compute_scaling_xi_sum(ahead, transitions, behind, densities)

        functions["hmmlearn, posteriors"] = partial(of_hmmlearn, with_transitions=False)
        functions["hmmlearn, transitions too"] = partial(of_hmmlearn, with_transitions=True)
    return seconds_in_turn(functions)


def compare_error_rates(n_utterances: int = 5000) -> dict[str, float]:
    """Words of utterances of which some are left out, exchanged or added."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(N_WORDS)])
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    frequencies /= frequencies.sum()
    reference = {}
    hypothesis = {}
    for number in range(n_utterances):
        spoken = rng.choice(words, rng.integers(5, 40), p=frequencies)
        recognised = np.where(rng.random(len(spoken)) < 0.06, rng.permutation(spoken), spoken)
        recognised = recognised[rng.random(len(spoken)) > 0.03]
        reference[f"u{number:05d}"] = " ".join(spoken)
        hypothesis[f"u{number:05d}"] = " ".join(recognised)
    functions: dict[str, Callable[[], object]] = {
        "count_errors": lambda: count_errors(reference, hypothesis)
    }
    pairs = [(reference[name], hypothesis[name]) for name in sorted(reference)]
    if find_spec("kaldialign"):
        distance = import_module("kaldialign").edit_distance
        functions["kaldialign"] = lambda: [
            distance(spoken.split(), written.split()) for spoken, written in pairs
        ]
    if find_spec("jiwer"):
        process = import_module("jiwer").process_words
        spoken_texts, written_texts = map(list, zip(*pairs, strict=True))
        functions["jiwer"] = lambda: process(spoken_texts, written_texts)
    return seconds_in_turn(functions)


@one_blas_thread()
def main() -> None:
    """Print a row for each function, with its ratio to the first one of its part."""
    print(describe_machine())
    parts = {
        "detection, 1 % target trials": compare_detection(0.01),
        "detection, 50 % target trials": compare_detection(0.5),
        "hidden Markov models": compare_hidden_markov(),
        "error rates": compare_error_rates(),
    }
    rows = []
    for part, seconds in parts.items():
        first = next(iter(seconds.values()))
        for name, value in seconds.items():
            ratio = f"{value / first:.2f}"
            rows.append({"part": part, "function": name, "CPU s": f"{value:.3f}", "ratio": ratio})
    print(format_table(rows))


if __name__ == "__main__":
    main()
