"""How often the interval of the minimum over attackers holds the smallest of their true equal error rates.

The simulation is that of `benchmarks.coverage`, with at most 1,500 nontarget trials: every attacker scores the same
trials of the same speakers, with effects that correlate with those of the first by 0.7, and between others by 0.49. The
attackers are equal, or the true rate of each is 1.15 times that of the one before. The true minimum is the smallest of
the true rates. Beside the interval of `evaluation.uncertainty.minima_over_attackers`, of 1, 4 and 16 attackers on the
same trials, stand the interval of the attacker that has the smallest rate, as if it had been the only one, and the mean
of the printed minimum. Last comes what is printed of 1 and 16 attackers of a perfect anonymiser (cosines of vectors,
half of whose variance is the attacker's own, that tell nothing of who speaks), and what is told of that.

The part "lists" takes the minimum over independent lists of other speakers too: 16 attackers on each, whose estimates
lie normally about one true rate on the logit scale, with a correlation of 0.49 between attackers. It counts how often
the true minimum lies above the upper end, as the ends hold for one list, and as `over_lists` moves them.

    python -m benchmarks.minimum_over_attackers [--repetitions 100] [--speakers 10 30 80] [--strengths equal]
    python -m benchmarks.minimum_over_attackers --parts lists --repetitions 4000
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from benchmarks.coverage import simulate
from benchmarks.measure import covered, repeated, study_options
from evaluation.metrics import SortedScores, eer, method_of
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import (
    AT_ONCE,
    Interval,
    Resampling,
    bootstrap,
    interval,
    minima_over_attackers,
    minimum_of,
    over_lists,
    sample_of,
)
from spkbase.files import format_table
from spkbase.work import one_blas_thread

ATTACKERS = (1, 4, 16)
LISTS = (1, 2, 4, 12)
RATES = (0.005, 0.02, 0.1, 0.3)
RATIOS = {"equal": 1.0, "unequal": 1.15}
MOST_NONTARGET = 1500
SEGMENTS, WIDTH = 7, 16  # a speaker, and dimensions of vectors, of a perfect anonymiser
METHOD = method_of("eer.rocch")
WAYS = ("the minimum", "the chosen one alone")


def rate_of(scores: SortedScores) -> dict[str, float]:
    """Compute what the study looks at."""
    return {"eer": eer(scores)}


def repeat(n_speakers: int, rates: tuple[float, ...], resamples: int, seed: int) -> np.ndarray:
    """Run the study once.

    Returns
    -------
    ndarray of float64 of shape (3, 3, 2)
        For each number of attackers the smallest rate (twice), its ends, and the ends of the chosen attacker alone.
    """
    distances = tuple((-2 * ndtri(np.array(rates))).tolist())
    rng = np.random.default_rng([seed, n_speakers])
    samples = simulate(rng, n_speakers, distances, most_nontarget=MOST_NONTARGET)
    values = [rate_of(sample.runs())["eer"] for sample in samples]
    with one_blas_thread():
        resampled = [
            found["eer"] for found in bootstrap(samples, rate_of, Resampling(resamples, seed))
        ]
    settings: dict[str, Any] = {
        "method": METHOD,
        "n_units": samples[0].n_effective,
        "n_trials": samples[0].n_least,
    }
    usual, wide = (
        [
            interval(value, row, **settings, level=level)
            for value, row in zip(values, resampled, strict=True)
        ]
        for level in (0.95, 1 - 0.05 / AT_ONCE)
    )
    rows = []
    for count in ATTACKERS:
        found = minimum_of(
            replace(one, high=other.high) for one, other in zip(usual[:count], wide, strict=False)
        )
        alone = usual[int(np.argmin(values[:count]))]
        rows.append([[found.value, found.value], [found.low, found.high], [alone.low, alone.high]])
    return np.array(rows)


def of_perfect(n_speakers: int, n_attackers: int, seed: int) -> tuple[float, float, float]:
    """Return the printed minimum of attackers that know nothing, and the mean and 5 % quantile that are told of it."""
    rng = np.random.default_rng([seed, n_speakers])
    models, segments = np.divmod(
        np.arange(n_speakers * n_speakers * SEGMENTS), n_speakers * SEGMENTS
    )
    names = np.array([f"s{number:04d}" for number in range(n_speakers)], object)
    speakers = TrialSpeakers(names, models, segments // SEGMENTS)
    common = rng.standard_normal((n_speakers * (1 + SEGMENTS), WIDTH))
    samples = {}
    for number in range(n_attackers):
        vectors = common + rng.standard_normal(common.shape)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = (vectors[models] * vectors[n_speakers + segments]).sum(axis=1)
        samples[str(number)] = [sample_of(scores, models == speakers.segments, speakers)]
    with one_blas_thread():
        found = minima_over_attackers(samples, {"all": samples}, resampling=Resampling(2, seed))[
            "all"
        ]
    return found.interval.value, found.perfect, found.perfect_low


def main() -> None:
    options = study_options(
        __doc__,
        repetitions=100,
        resamples=200,
        speakers=[10, 30, 80],
        rates=[*RATES],
        strengths=[*RATIOS],
        parts=["attackers", "perfect", "lists"],
    )
    started = time.perf_counter()
    tables = {"attackers": attackers_table, "perfect": perfect_table, "lists": lists_table}
    for part in options.parts:
        print(format_table(tables[part](options), markdown=True), "\n", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def attackers_table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """How often intervals of the minimum over attackers on one list hold it."""
    rows: list[dict[str, Any]] = []
    for rate, strength, count in product(options.rates, options.strengths, options.speakers):
        rates = tuple(
            np.minimum(rate * RATIOS[strength] ** np.arange(max(ATTACKERS)), 0.499).tolist()
        )
        found = np.array(repeated(partial(repeat, count, rates, options.resamples), options))
        for place, number in enumerate(ATTACKERS):
            cell = {
                "true": f"{100 * rate:g} %",
                "strength": strength,
                "speakers": count,
                "attackers": number,
            }
            rows.append(cell | row_of(found[:, place], rate))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def perfect_table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What is printed of attackers of a perfect anonymiser, and told of it."""
    rows: list[dict[str, Any]] = []
    for count, number in product((10, 23), (1, 16)):
        printed, told, low = np.array(repeated(partial(of_perfect, count, number), options)).T
        cell = {"speakers": count, "attackers": number, "printed": f"{100 * printed.mean():.1f}"}
        cell |= {
            "told": f"{100 * told.mean():.1f}",
            "below the 5 % quantile": f"{100 * np.mean(printed < low):.1f}",
        }
        rows.append(cell | {"smallest printed": f"{100 * printed.min():.1f}"})
    return rows


def lists_table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """How often the true minimum over attackers and lists lies above the upper end."""
    rows: list[dict[str, Any]] = []
    true, error = logit(0.1), 0.25
    further = error * ndtri(1 - 0.05 / 2 / AT_ONCE)
    for n_lists in LISTS:
        rng = np.random.default_rng([options.first_seed, n_lists])
        shape = options.repetitions, n_lists, max(ATTACKERS)
        noise = 0.7 * rng.standard_normal((*shape[:2], 1)) + np.sqrt(
            1 - 0.49
        ) * rng.standard_normal(shape)
        least = true + error * noise.min(axis=2)
        values, highs = expit(least), expit(least + further)
        intervals = [
            Interval(*ends) for ends in zip(values.flat, values.flat, highs.flat, strict=True)
        ]
        moved = [
            over_lists(one, n_lists, n_units=np.inf, n_trials=np.inf).high for one in intervals
        ]
        row: dict[str, Any] = {"lists": n_lists}
        for name, given in (
            ("as of one list", highs),
            ("over lists", np.reshape(moved, highs.shape)),
        ):
            upper = given.min(axis=1)
            row[f"true minimum above (%), {name}"] = f"{100 * np.mean(upper < expit(true)):.1f}"
            row[f"median upper end (%), {name}"] = f"{100 * np.median(upper):.1f}"
        rows.append(row)
    return rows


def row_of(found: np.ndarray, rate: float) -> dict[str, str]:
    """Shares in per cent of a row of the table; (repetitions, 3, 2)."""
    row = {"printed": f"{100 * found[:, 0, 0].mean():.1f}"}
    for place, way in enumerate(WAYS, 1):
        low, high = (
            np.nan_to_num(found[:, place, 0], nan=0.0),
            np.nan_to_num(found[:, place, 1], nan=1.0),
        )
        row[way] = covered(np.array([np.mean(rate < low), np.mean(rate > high)]))
        row[f"width, {way}"] = f"{100 * np.median(high - low):.1f}"
    return row


if __name__ == "__main__":
    main()
