"""How often intervals of equal error rates hold the true one where errors are few.

The simulation is that of `benchmarks.coverage`, at true rates of 0.5, 2, 10 and 30 % with 10, 30 and 80 speakers;
the distance d of the log-likelihood ratios is that whose EER, Phi(-d / 2), is the rate.

    python -m benchmarks.coverage_few_errors [--repetitions 300] [--speakers 10 30 80] [--first-seed 0]
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage import simulate
from benchmarks.measure import covered, repeated, study_options
from evaluation.metrics import SortedScores, eer, method_of
from evaluation.uncertainty import Resampling, bootstrap, interval
from spkbase.files import format_table

RATES = (0.005, 0.02, 0.1, 0.3)
READINGS = ("rocch", "interpolated")


def rates(scores: SortedScores) -> dict[str, float]:
    """Compute the equal error rates that the study looks at."""
    return {f"eer.{reading}": eer(scores, method=reading) for reading in READINGS}


def repeat(n_speakers: int, rate: float, resamples: int, seed: int) -> np.ndarray:
    """Run the study once.

    Returns
    -------
    ndarray of float64 of shape (2, 3, 2)
        For each reading the value (twice), the ends of the interval, and those of the usual interval alone.
    """
    sample = simulate(np.random.default_rng([seed, n_speakers]), n_speakers, (float(-2 * ndtri(rate)),))[0]
    values = rates(sample.runs())
    resampled = bootstrap(sample, rates, Resampling(resamples, seed))[0]
    ends = []
    for name, value in values.items():
        settings = {"n_units": sample.n_effective, "n_trials": sample.n_least}
        now = interval(value, resampled[name], method=method_of(name), **settings)
        usual = interval(value, resampled[name], method=replace(method_of(name), of_errors=False), **settings)
        ends.append([[value, value], [now.low, now.high], [usual.low, usual.high]])
    return np.array(ends)


def main() -> None:
    options = study_options(__doc__, repetitions=300, resamples=200, speakers=[10, 30, 80])
    started, rows = time.perf_counter(), []
    for rate, count in product(RATES, options.speakers):
        found = np.array(repeated(partial(repeat, count, rate, options.resamples), options))
        for place, reading in enumerate(READINGS):
            rows.append({"true EER": f"{100 * rate:g} %", "speakers": count, "reading": reading})
            rows[-1] |= _row(found[:, place], rate)
    print(format_table(rows, markdown=True))
    print(f"\n{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def _row(found: np.ndarray, rate: float) -> dict[str, object]:
    """Shares in per cent of a cell of the table; (repetitions, 3, 2)."""
    row: dict[str, object] = {"no error": f"{100 * np.mean(found[:, 0, 0] == 0):.0f}"}
    for place, name in ((1, ""), (2, " before")):
        low, high = found[:, place].T
        known = ~np.isnan(low)
        row[f"covered{name}"] = covered(np.array([np.mean(rate < low[known]), np.mean(rate > high[known])]))
        row[f"width{name}"] = f"{100 * np.median(high[known] - low[known]):.1f}"
    return row | {"none before": f"{100 * np.mean(np.isnan(found[:, 2, 0])):.0f}"}


if __name__ == "__main__":
    main()
