"""How often intervals of equal error rates hold the true one where errors are few.

The simulation is that of `benchmarks.coverage`, at true rates of 0.5, 2, 10 and 30 % with 10, 30 and 80 speakers;
the distance d of the log-likelihood ratios is that whose EER, Phi(-d / 2), is the rate.

A second table is of means over three draws of an anonymiser: miss rates at the threshold of the true rate, of scores
whose variance is that of speakers, recordings and draws in the shares of `SHARES`.

    python -m benchmarks.coverage_few_errors [--repetitions 300] [--speakers 10 30 80] [--first-seed 0]
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage import simulate
from benchmarks.measure import covered, repeated, study_options
from evaluation.metrics import SortedScores, eer, method_of
from evaluation.uncertainty import AT_ONCE, Resampling, bootstrap, interval, interval_over_draws
from spkbase.files import format_table

RATES = (0.005, 0.02, 0.1, 0.3)
READINGS = ("rocch", "interpolated")
SHARES = ((0.7, 0.3, 0.0), (0.7, 0.2, 0.1), (0.4, 0.1, 0.5))
SIZES = ((10, 7), (23, 40), (80, 8))
"""Speakers, and recordings of each."""
DRAWS, DRAW_RATES = 3, (0.005, 0.02, 0.03, 0.05, 0.1, 0.2)


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
    sample = simulate(
        np.random.default_rng([seed, n_speakers]), n_speakers, (float(-2 * ndtri(rate)),)
    )[0]
    values = rates(sample.runs())
    resampled = bootstrap(sample, rates, Resampling(resamples, seed))[0]
    ends = []
    for name, value in values.items():
        settings = {"n_units": sample.n_effective, "n_trials": sample.n_least}
        now = interval(value, resampled[name], method=method_of(name), **settings)
        usual = interval(
            value, resampled[name], method=replace(method_of(name), of_errors=False), **settings
        )
        ends.append([[value, value], [now.low, now.high], [usual.low, usual.high]])
    return np.array(ends)


def repeat_draws(
    size: tuple[int, int], shares: tuple[float, ...], rate: float, resamples: int, seed: int
) -> list[Any]:
    """Run the study of draws once: whether the true rate is below and above, the width, of the usual level and of 16.

    The second interval is of the level at which 16 attackers hold at once, whose upper end that of a minimum is.
    """
    n_speakers, each = size
    rng = np.random.default_rng([seed, n_speakers])
    shapes = ((1, n_speakers, 1), (1, n_speakers, each), (DRAWS, n_speakers, each))
    scores = sum(
        np.sqrt(part) * rng.standard_normal(shape)
        for part, shape in zip(shares, shapes, strict=True)
    )
    failed = (scores < ndtri(rate)).mean(axis=2)
    resampled = (
        failed
        @ rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), resamples).T
        / n_speakers
    )
    settings: dict[str, Any] = {
        "method": method_of("eer.kaldi"),
        "n_units": n_speakers,
        "n_trials": n_speakers * each,
    }
    found = []
    for level in (0.95, 1 - 0.05 / AT_ONCE):
        ends = interval_over_draws(failed.mean(axis=1), resampled, level=level, **settings)
        found.append((rate < ends.low, rate > ends.high, ends.high - ends.low))
    return found


def main() -> None:
    options = study_options(__doc__, repetitions=300, resamples=200, speakers=[10, 30, 80])
    started, rows = time.perf_counter(), []
    for rate, count in product(RATES, options.speakers):
        found = np.array(repeated(partial(repeat, count, rate, options.resamples), options))
        for place, reading in enumerate(READINGS):
            rows.append({"true EER": f"{100 * rate:g} %", "speakers": count, "reading": reading})
            rows[-1] |= _row(found[:, place], rate)
    print(format_table(rows, markdown=True), end="\n\n")
    rows = []
    for size, shares, rate in product(SIZES, SHARES, DRAW_RATES):
        work = partial(repeat_draws, size, shares, rate, options.resamples)
        usual, wide = np.mean(repeated(work, options), axis=0)
        row = {
            "speakers": f"{size[0]} x {size[1]}",
            "of speaker, recording, draw": " ".join(map(str, shares)),
        }
        row |= {
            "true rate": f"{100 * rate:g} %",
            "covered": covered(usual, f"; {100 * usual[2]:.1f}"),
        }
        rows.append(row | {f"of {AT_ONCE}": covered(wide, f"; {100 * wide[2]:.1f}")})
    print(format_table(rows, markdown=True))
    print(f"\n{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def _row(found: np.ndarray, rate: float) -> dict[str, object]:
    """Shares in per cent of a cell of the table; (repetitions, 3, 2)."""
    row: dict[str, object] = {"no error": f"{100 * np.mean(found[:, 0, 0] == 0):.0f}"}
    for place, name in ((1, ""), (2, " before")):
        low, high = found[:, place].T
        known = ~np.isnan(low)
        row[f"covered{name}"] = covered(
            np.array([np.mean(rate < low[known]), np.mean(rate > high[known])])
        )
        row[f"width{name}"] = f"{100 * np.median(high[known] - low[known]):.1f}"
    return row | {"none before": f"{100 * np.mean(np.isnan(found[:, 2, 0])):.0f}"}


if __name__ == "__main__":
    main()
