"""How often intervals of equal error rates hold the true one where errors are few.

The simulation is that of `benchmarks.coverage`, at true rates of 0.5, 2, 10 and 30 % with 10, 30 and 80 speakers;
the distance d of the log-likelihood ratios is that whose EER, Phi(-d / 2), is the rate.

    python -m benchmarks.coverage_few_errors [--repetitions 300] [--speakers 10 30 80] [--first-seed 0]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage import simulate
from benchmarks.measure import describe_machine
from evaluation.metrics import SortedScores, eer, method_of
from evaluation.uncertainty import Resampling, bootstrap, interval
from spkbase.files import format_table
from spkbase.work import default_jobs, ordered_map

RATES = (0.005, 0.02, 0.1, 0.3)
READINGS = ("rocch", "interpolated")


def rates(scores: SortedScores) -> dict[str, float]:
    """Compute the equal error rates that the study looks at."""
    return {f"eer.{reading}": eer(scores, method=reading) for reading in READINGS}


def repeat(n_speakers: int, rate: float, replicates: int, seed: int) -> np.ndarray:
    """Run the study once.

    Returns
    -------
    ndarray of float64 of shape (2, 3, 2)
        For each reading the value (twice), the ends of the interval, and those of the usual interval alone.
    """
    sample = simulate(np.random.default_rng([seed, n_speakers]), n_speakers, (float(-2 * ndtri(rate)),))[0]
    values = rates(sample.runs())
    resampled = bootstrap(sample, rates, Resampling(replicates, seed))[0]
    ends = []
    for name, value in values.items():
        settings = {"n_units": sample.n_effective, "n_trials": sample.n_least}
        now = interval(value, resampled[name], method=method_of(name), **settings)
        usual = interval(value, resampled[name], method=replace(method_of(name), of_errors=False), **settings)
        ends.append([[value, value], [now.low, now.high], [usual.low, usual.high]])
    return np.array(ends)


def study(n_speakers: int, rate: float, *, repetitions: int, replicates: int, first_seed: int) -> np.ndarray:
    """Repeat it; ndarray of float64 of shape (repetitions, 2, 3, 2)."""
    work = partial(repeat, n_speakers, rate, replicates)
    return np.array(list(ordered_map(work, range(first_seed, first_seed + repetitions), jobs=None)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--speakers", type=int, nargs="+", default=[10, 30, 80])
    parser.add_argument("--first-seed", type=int, default=0, help="the repetitions have this seed and the next ones")
    options = parser.parse_args()
    print(describe_machine())
    started = time.perf_counter()
    rows = []
    for rate in RATES:
        for count in options.speakers:
            found = study(
                count,
                rate,
                repetitions=options.repetitions,
                replicates=options.replicates,
                first_seed=options.first_seed,
            )
            for place, reading in enumerate(READINGS):
                rows.append({"true EER": f"{100 * rate:g} %", "speakers": count, "reading": reading})
                rows[-1] |= _row(found[:, place], rate)
    print(format_table(rows, markdown=True))
    print(f"\n{time.perf_counter() - started:.0f} s with {default_jobs()} workers")


def _row(found: np.ndarray, rate: float) -> dict[str, object]:
    """Shares in per cent of a cell of the table; (repetitions, 3, 2)."""
    row: dict[str, object] = {"no error": f"{100 * np.mean(found[:, 0, 0] == 0):.0f}"}
    for place, name in ((1, ""), (2, " before")):
        low, high = found[:, place].T
        known = ~np.isnan(low)
        below, above = np.mean(rate < low[known]), np.mean(rate > high[known])
        row[f"covered{name}"] = f"{100 * (1 - below - above):.1f} ({100 * below:.1f}, {100 * above:.1f})"
        row[f"width{name}"] = f"{100 * np.median(high[known] - low[known]):.1f}"
    return row | {"none before": f"{100 * np.mean(np.isnan(found[:, 2, 0])):.0f}"}


if __name__ == "__main__":
    main()
