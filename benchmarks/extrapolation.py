"""Validation by hiding: fit on 1,000 speakers, predict larger populations, count how often intervals hold.

Worlds of scores have closed forms for any population, 10**8 included; each repetition draws 1,000 trials with 999
impostor scores each. Worlds of embeddings have 20,000 speakers, all ranked; each repetition sees 1,000 of them alone,
as gallery and as trials, and predicts the curve of all 20,000.

    scores, normal        impostor N(0, 1), mated N(2, 1)
    scores, Student       impostor t with 5 degrees of freedom, mated the same + 6: no monotone map makes both normal
    scores, polarised     mated N(5, 1) for one speaker in five, N(1, 1) for the others
    embeddings, sphere    speakers uniform in 64 dimensions, trials with normal noise
    embeddings, six accents   20 dimensions, speakers about six centres, little noise: (nearly) all trials are first
    embeddings, uneven noise  20 dimensions, trials with noise that differs between them by a log-normal factor
    embeddings, clustered 2 x 20 nested clusters with Student t speakers (4 degrees of freedom), noise that differs
                          between speakers by a log-normal factor and has Student t steps, one trial in twenty at random

Of the worlds of 20 dimensions 60,000 speakers are the truth at 3,000 and 30,000, and each repetition sees 300 of them,
without scores of impostors and with some. A span that is not trusted is withheld, and does not count as held or not.

    python -m benchmarks.extrapolation [--repetitions 40] [--worlds 2] [--kept 20] [--resamples 200] [--jobs 2]
    python -m benchmarks.extrapolation --parts small --repetitions 30 --resamples 60
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from benchmarks.measure import repeated, study_options
from evaluation.linkage import Extrapolation, Ranks, extrapolate, linkability_at_sizes
from evaluation.uncertainty import Resampling
from spkbase.files import format_table
from spkbase.work import Work

N_FIT, N_WORLD, DIMENSIONS = 1_000, 20_000, 64
SIZES = (20_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
METHODS = ("normal", "tail", "bounds")
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
DrawWorld = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def draw_normal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mated scores (n,) and impostor scores (n, n - 1)."""
    return rng.normal(2, 1, N_FIT), rng.normal(size=(N_FIT, N_FIT - 1))


def draw_student(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_normal`."""
    return 6 + rng.standard_t(5, N_FIT), rng.standard_t(5, (N_FIT, N_FIT - 1))


def draw_polarised(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_normal`."""
    return rng.normal(np.where(rng.random(N_FIT) < 0.2, 5.0, 1.0), 1), rng.normal(
        size=(N_FIT, N_FIT - 1)
    )


def true_curve(world: str) -> np.ndarray:
    """Linkability of a world of scores at `SIZES`, by quadrature over the mated score."""
    from scipy.stats import norm, t

    grid = np.linspace(-12, 400, 2_000_001) if world == "student" else np.linspace(-10, 16, 400_001)
    if world == "student":
        density, beaten = t.pdf(grid - 6, 5), t.sf(grid, 5)
    else:
        parts = [(1.0, 2.0)] if world == "normal" else [(0.2, 5.0), (0.8, 1.0)]
        density = np.sum([share * norm.pdf(grid - mean) for share, mean in parts], axis=0)
        beaten = norm.sf(grid)
    stays = np.log1p(-np.minimum(beaten, 1 - 1e-16))
    # beyond the grid a heavy-tailed mated score is never beaten
    rest = t.sf(grid[-1] - 6, 5) if world == "student" else 0.0
    return np.array(
        [trapezoid(density * np.exp((size - 1) * stays), grid) + rest for size in SIZES]
    )


SCORE_WORLDS: dict[str, Draw] = {
    "normal": draw_normal,
    "student": draw_student,
    "polarised": draw_polarised,
}


def repeat_scores(world: str, kept: int, resamples: int, seed: int) -> Extrapolation:
    """Draw a sample of a world of scores, and extrapolate."""
    rng = np.random.default_rng(seed)
    mated, impostors = SCORE_WORLDS[world](rng)
    ranks = Ranks((impostors > mated[:, None]).sum(axis=1), 0, N_FIT - 1, mated=mated)
    largest = -np.partition(-impostors, kept, axis=1)[:, : kept + 1]
    return extrapolate(
        ranks, SIZES, impostor_scores=largest, resampling=Resampling(resamples, seed=seed)
    )


def draw_sphere(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of gallery and trials, both (count, D), the same speakers in the same order."""
    speakers = _unit(rng.normal(size=(count, DIMENSIONS)))
    return speakers, _unit(speakers + 0.35 * rng.normal(size=speakers.shape))


def draw_clustered(
    rng: np.random.Generator, count: int, *, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_sphere`."""
    outer = rng.normal(size=(2, DIMENSIONS))
    inner = outer[:, None] * 0.8 + rng.normal(size=(2, 20, DIMENSIONS)) * 0.6
    centres = inner[rng.integers(2, size=count), rng.integers(20, size=count)]
    heavy = np.sqrt(4 / rng.chisquare(4, (count, 1)))
    speakers = centres + 0.9 * heavy * rng.normal(size=centres.shape)
    spread = (
        noise
        * np.exp(0.5 * rng.normal(size=(count, 1)))
        * np.sqrt(4 / rng.chisquare(4, (count, 1)))
    )
    trials = speakers + spread * rng.normal(size=speakers.shape)
    lost = rng.random(count) < 0.05
    trials[lost] = centres[lost] + rng.normal(size=(int(lost.sum()), DIMENSIONS))
    return _unit(speakers), _unit(trials)


EMBEDDING_WORLDS: dict[str, DrawWorld] = {
    "sphere": draw_sphere,
    "clustered": partial(draw_clustered, noise=2.5),
    "clustered, easy": partial(draw_clustered, noise=1.3),
}


def repeat_embeddings(
    kept: int, resamples: int, sizes: ArrayLike, pair: tuple[np.ndarray, np.ndarray, int]
) -> Extrapolation:
    """Extrapolate from some speakers of a world."""
    gallery, trials, seed = pair
    similarity = trials @ gallery.T
    mated = similarity.diagonal().copy()
    np.fill_diagonal(similarity, -np.inf)
    ranks = Ranks((similarity > mated[:, None]).sum(axis=1), 0, len(gallery) - 1, mated=mated)
    largest = -np.partition(-similarity, kept, axis=1)[:, : kept + 1] if kept else None
    return extrapolate(
        ranks, sizes, impostor_scores=largest, resampling=Resampling(resamples, seed=seed)
    )


def draw_accents(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_sphere`."""
    accents = rng.normal(size=(6, 20))
    speakers = accents[rng.integers(6, size=count)] + 0.6 * rng.normal(size=(count, 20))
    return _unit(speakers), _unit(speakers + 0.33 * rng.normal(size=speakers.shape))


def draw_uneven(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_sphere`."""
    speakers = rng.normal(size=(count, 20))
    noise = 0.6 * np.exp(0.5 * rng.normal(size=(count, 1)))
    return _unit(speakers), _unit(speakers + noise * rng.normal(size=speakers.shape))


SMALL_WORLDS: dict[str, DrawWorld] = {"six accents": draw_accents, "uneven noise": draw_uneven}
N_SMALL, N_SMALL_WORLD = 300, 60_000
SMALL_SIZES = np.array([3_000, 30_000])


def small_table(options: argparse.Namespace) -> list[dict[str, object]]:
    """One row a world, kind of scores and size: the span, how often it held the truth, how often it was withheld."""
    rows: list[dict[str, object]] = []
    for name, draw in SMALL_WORLDS.items():
        gallery, trials = draw(np.random.default_rng(options.first_seed), N_SMALL_WORLD)
        similarity = trials[:6000].astype(np.float32) @ gallery.T.astype(np.float32)
        own = similarity.diagonal()[:, None].copy()
        everyone = Ranks((similarity > own).sum(axis=1), 0, N_SMALL_WORLD - 1)
        truth = linkability_at_sizes(everyone, SMALL_SIZES)
        for kept in (0, options.kept):
            pieces = [
                slice(start, start + N_SMALL)
                for start in range(0, options.repetitions * N_SMALL, N_SMALL)
            ]
            pairs = [(gallery[piece], trials[piece], number) for number, piece in enumerate(pieces)]
            sees = partial(repeat_embeddings, kept, options.resamples, SMALL_SIZES)
            estimates = list(Work(options.jobs).map(sees, pairs, processes=True))
            spans = np.array([estimate.span() for estimate in estimates if estimate.is_trusted])
            low, high = spans[:, 0], spans[:, 1]
            for place, size in enumerate(SMALL_SIZES.tolist()):
                held = (low[:, place] <= truth[place]) & (truth[place] <= high[:, place])
                row = {
                    "world": name,
                    "impostor scores": kept,
                    "N": f"{size:,}",
                    "true": f"{truth[place]:.3f}",
                }
                row |= {
                    "low": f"{low[:, place].mean():.3f}",
                    "high": f"{high[:, place].mean():.4f}",
                }
                share = {"held %": held.mean(), "withheld %": 1 - len(low) / len(estimates)}
                rows.append(row | {column: f"{100 * value:.0f}" for column, value in share.items()})
    return rows


def measured_curve(gallery: np.ndarray, trials: np.ndarray) -> float:
    """Share of all speakers of a world that are first in it."""
    first = 0
    gallery, trials = gallery.astype(np.float32), trials.astype(np.float32)
    for start in range(0, len(trials), 1000):
        similarity = trials[start : start + 1000] @ gallery.T
        mated = similarity[np.arange(len(similarity)), start + np.arange(len(similarity))].copy()
        first += int(((similarity > mated[:, None]).sum(axis=1) == 0).sum())
    return first / len(trials)


def summarise(
    world: str, estimates: list[Extrapolation], truth: np.ndarray
) -> list[dict[str, object]]:
    """One row a method and size: median prediction, typical error, how often the interval held the truth."""
    rows: list[dict[str, object]] = []
    spans = np.array([estimate.span() for estimate in estimates])
    trusted = np.array([estimate.is_trusted for estimate in estimates])
    for place, size in enumerate(estimates[0].sizes):
        true = truth[..., place]
        for method in (*METHODS, "span"):
            row: dict[str, object] = {
                "world": world,
                "N": f"{size:.0e}",
                "true": f"{np.mean(true):.2e}",
            }
            row["method"] = method
            if method == "span":
                low, high = spans[trusted, 0, place], spans[trusted, 1, place]
                true = np.broadcast_to(true, len(trusted))[trusted]
                row["withheld %"] = f"{100 * np.mean(~trusted):.0f}"
            else:
                parts = [estimate.predictions[method] for estimate in estimates]
                value, low, high = (
                    np.array([getattr(part, name)[place] for part in parts])
                    for name in ("linkability", "low", "high")
                )
                off = np.abs(np.log2(np.maximum(value, 1e-12) / true))
                row |= {
                    "median": f"{np.median(value):.2e}",
                    "off by a factor of": f"{2 ** np.median(off):.2f}",
                }
            row["covered %"] = f"{100 * np.mean((low <= true) & (true <= high)):.0f}"
            rows.append(row | {"low": f"{np.median(low):.1e}", "high": f"{np.median(high):.1e}"})
    return rows


def main() -> None:
    options = study_options(
        __doc__, repetitions=40, worlds=2, kept=20, resamples=200, parts=["large", "small"]
    )
    started = time.perf_counter()
    tables = {"large": large_table, "small": small_table}
    for part in options.parts:
        print(format_table(tables[part](options), markdown=True), "\n", flush=True)
    print(f"{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def large_table(options: argparse.Namespace) -> list[dict[str, object]]:
    """Rows of `summarise`, with all columns in the first."""
    rows: list[dict[str, object]] = []
    for name in SCORE_WORLDS:
        found = repeated(partial(repeat_scores, name, options.kept, options.resamples), options)
        rows += summarise(f"scores, {name}", found, true_curve(name))
    for name, draw in EMBEDDING_WORLDS.items():
        estimates: list[Extrapolation] = []
        truths = []
        for number in range(options.worlds):
            gallery, trials = draw(np.random.default_rng([options.first_seed, number]), N_WORLD)
            pieces = [slice(start, start + N_FIT) for start in range(0, N_WORLD, N_FIT)]
            pairs = [(gallery[piece], trials[piece], number) for piece in pieces]
            sees = partial(repeat_embeddings, options.kept, options.resamples, SIZES[:1])
            estimates += Work(options.jobs).map(sees, pairs, processes=True)
            truths += [measured_curve(gallery, trials)] * len(pieces)
        rows += summarise(f"embeddings, {name}", estimates, np.array(truths)[:, None])
    columns = [
        "world",
        "N",
        "true",
        "method",
        "median",
        "off by a factor of",
        "covered %",
        "withheld %",
        "low",
        "high",
    ]
    return [{column: row.get(column) for column in columns} for row in rows]


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


if __name__ == "__main__":
    main()
