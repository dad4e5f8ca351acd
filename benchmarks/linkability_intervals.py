"""How often intervals of linkability hold: against the gallery at hand, and against galleries drawn anew.

Worlds of embeddings in 32 dimensions; a trial is its speaker with noise, and scores are cosines.

    alike    all speakers alike; noise 1.1, 3 or 6 times as large as the spread of the speakers
    goats    the noise of each speaker is its own, log-normal about twice the spread
    wolves   each enrolled speaker has an offset in all its scores, normal, as large as cosines spread among impostors

    python -m benchmarks.linkability_intervals [--repetitions 400] [--jobs 2]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from benchmarks.measure import repeated, study_options
from evaluation.linkage import Ranks, linkability_at_sizes, linkability_curve
from evaluation.uncertainty import Resampling
from spkbase.files import format_table

DIMENSIONS, RESAMPLES, FRESH = 32, 200, 2000
SHAPES = ((30, 30), (30, 300), (300, 300))


@dataclass(frozen=True)
class World:
    """Noise of trials, its log-normal spread over speakers, and the spread of the offsets of the enrolled."""

    noise: float
    goats: float = 0.0
    wolves: float = 0.0


WORLDS = {
    "alike, noise 1.1": World(1.1),
    "alike, noise 3": World(3.0),
    "alike, noise 6": World(6.0),
    "goats, noise 2": World(2.0, goats=0.7),
    "wolves, noise 1.1": World(1.1, wolves=1.0),
    "wolves, noise 3": World(3.0, wolves=1.0),
}


def beaters(
    world: World, rng: np.random.Generator, n_trials: int, gallery: np.ndarray, offsets: np.ndarray
) -> tuple:
    """Beaters of the first speakers of a gallery, and of fresh speakers who meet the whole gallery."""
    counts = []
    for fresh in (False, True):
        speakers = rng.normal(size=(FRESH, DIMENSIONS)) if fresh else gallery[:n_trials]
        offset = world.wolves * rng.normal(size=FRESH) if fresh else offsets[:n_trials]
        spread = world.noise * np.exp(world.goats * rng.normal(size=(len(speakers), 1)))
        trials = _unit(speakers + spread * rng.normal(size=speakers.shape))
        mated = np.einsum("ij,ij->i", trials, _unit(speakers)) * DIMENSIONS**0.5 + offset
        scores = trials @ _unit(gallery).T * DIMENSIONS**0.5 + offsets
        if not fresh:
            np.fill_diagonal(scores, -np.inf)
        counts.append((scores > mated[:, None]).sum(axis=1))
    return tuple(counts)


def repeat(world: World, n_trials: int, n_enrolled: int, seed: int) -> np.ndarray:
    """Ends of the intervals and the truth against this gallery at 2, 20 and all, shape (3, 3)."""
    rng = np.random.default_rng([seed, n_trials, n_enrolled])
    gallery = rng.normal(size=(n_enrolled, DIMENSIONS))
    offsets = world.wolves * rng.normal(size=n_enrolled)
    seen, fresh = beaters(world, rng, n_trials, gallery, offsets)
    sizes = np.array([2, 20, n_enrolled])
    curve = linkability_curve(
        Ranks(seen, 0, n_enrolled - 1), sizes, resampling=Resampling(RESAMPLES, seed=seed)
    )
    return np.array(
        [curve.low, curve.high, linkability_at_sizes(Ranks(fresh, 0, n_enrolled), sizes)]
    )


def main() -> None:
    options = study_options(__doc__, repetitions=400)
    started, rows = time.perf_counter(), []
    for (name, world), (n_trials, n_enrolled) in product(WORLDS.items(), SHAPES):
        low, high, here = np.moveaxis(
            np.array(repeated(partial(repeat, world, n_trials, n_enrolled), options)), 1, 0
        )
        anywhere = here.mean(axis=0)
        row: dict[str, object] = {"world": name, "trial speakers": n_trials, "enrolled": n_enrolled}
        row["true at 2, 20, all"] = _three(anywhere, ".3f")
        row["held, this gallery %"] = _three(
            100 * ((low <= here) & (here <= high)).mean(axis=0), ".0f"
        )
        row["held, new galleries %"] = _three(
            100 * ((low <= anywhere) & (anywhere <= high)).mean(axis=0), ".0f"
        )
        row["width"] = _three(np.median(high - low, axis=0), ".3f")
        rows.append(row)
    print(format_table(rows, markdown=True))
    print(f"{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def _three(values: np.ndarray, form: str) -> str:
    return ", ".join(format(value, form) for value in values.tolist())


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


if __name__ == "__main__":
    main()
