"""How often the interval of the minimum over attackers holds the smallest of their true equal error rates.

The simulation is that of `benchmarks.coverage`, with at most 2,500 nontarget trials: every attacker scores the same
trials of the same speakers, with effects that correlate with those of the first by 0.7, and between others by 0.49. The
attackers are equal, or the true rate of each is 1.15 times that of the one before. The true minimum is the smallest of
the true rates. Beside the interval of `evaluation.uncertainty.minimum_interval` stand the interval of the attacker that
has the smallest rate, as if it had been the only one, and Bonferroni's: the smallest of all lower ends, and the
smallest of all upper ends at a level of 1 - 0.05 / A for A attackers.

    python -m benchmarks.minimum_over_attackers [--repetitions 150] [--speakers 10 23 55] [--first-seed 0]
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage import simulate
from benchmarks.measure import describe_machine
from evaluation.metrics import SortedScores, eer_of, method_of
from evaluation.uncertainty import bootstrap, interval, minimum_interval
from spkbase.files import format_table
from spkbase.work import default_jobs, one_blas_thread, ordered_map

ATTACKERS = (4, 14)
RATES = (0.1, 0.02)
RATIOS = {"equal": 1.0, "unequal": 1.15}
MOST_NONTARGET = 2500
METHOD = method_of("eer.rocch")
WAYS = ("the minimum", "the chosen one alone", "Bonferroni")


def rate_of(scores: SortedScores) -> dict[str, float]:
    """Compute what the study looks at."""
    return {"eer": eer_of(scores)}


@one_blas_thread()
def repeat(n_speakers: int, rates: tuple[float, ...], replicates: int, seed: int) -> np.ndarray:
    """Run the study once.

    Returns
    -------
    ndarray of float64 of shape (2, 3, 2)
        For 4 and for 14 attackers the ends of the three intervals.
    """
    distances = tuple((-2 * ndtri(np.array(rates))).tolist())
    rng = np.random.default_rng([seed, n_speakers])
    samples = simulate(rng, n_speakers, distances, most_nontarget=MOST_NONTARGET)
    values = np.array([rate_of(sample.runs())["eer"] for sample in samples])
    resampled = np.array([found["eer"] for found in bootstrap(samples, rate_of, replicates=replicates, seed=seed)])
    first = samples[0]
    return np.array(
        [ends_of(values[:count], resampled[:count], first.n_effective, first.n_least) for count in ATTACKERS]
    )


def ends_of(values: np.ndarray, resampled: np.ndarray, n_units: int, n_trials: int) -> np.ndarray:
    """Return the ends of the three intervals, ndarray of float64 of shape (3, 2)."""
    settings: dict[str, Any] = {"method": METHOD, "n_units": n_units, "n_trials": n_trials}
    together = minimum_interval(values, resampled, **settings)
    rows = list(zip(values.tolist(), resampled, strict=True))
    apart = [interval(value, row, **settings) for value, row in rows]
    chosen = apart[int(values.argmin())]
    wide = [interval(value, row, **settings, level=1 - 0.05 / len(values)) for value, row in rows]
    bonferroni = np.nanmin([found.low for found in apart]), np.nanmin([found.high for found in wide])
    return np.array([[together.low, together.high], [chosen.low, chosen.high], bonferroni])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=150)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--speakers", type=int, nargs="+", default=[10, 23, 55])
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--first-seed", type=int, default=0, help="the repetitions have this seed and the next ones")
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    print(describe_machine())
    started = time.perf_counter()
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    for rate in options.rates:
        for strength, ratio in RATIOS.items():
            rates = tuple((rate * ratio ** np.arange(max(ATTACKERS))).tolist())
            for count in options.speakers:
                work = partial(repeat, count, rates, options.replicates)
                found = np.array(list(ordered_map(work, seeds, jobs=options.jobs)))
                rows = [
                    {"true minimum": f"{100 * rate:g} %", "strength": strength, "speakers": count, "attackers": number}
                    | row_of(found[:, place], rate)
                    for place, number in enumerate(ATTACKERS)
                ]
                print(format_table(rows, markdown=True), flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s with {options.jobs or default_jobs()} workers")


def row_of(found: np.ndarray, rate: float) -> dict[str, str]:
    """Shares in per cent of a row of the table; (repetitions, 3, 2)."""
    row = {}
    for place, way in enumerate(WAYS):
        low, high = np.nan_to_num(found[:, place, 0], nan=0.0), np.nan_to_num(found[:, place, 1], nan=1.0)
        below, above = np.mean(rate < low), np.mean(rate > high)
        row[way] = f"{100 * (1 - below - above):.1f} ({100 * below:.1f}, {100 * above:.1f})"
        row[f"width, {way}"] = f"{100 * np.median(high - low):.1f}"
    return row


if __name__ == "__main__":
    main()
