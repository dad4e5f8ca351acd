"""How often the intervals of disclosure hold: of local information, the worst speaker, fairness, and inference.

Speakers are searched among all of them, by 5 recordings each that have a level of their own. Scores are standard
normal; those of a target speaker are higher by the speaker's own shift:

    alike    1.5 for everybody
    spread   log-normal about 1.5, with a standard deviation of 0.7 of the log
    few      4 for one in five, 0 for the others

The true values of local information disclosure and of the share of speakers mostly found are means over all
repetitions; the true share of first places of a speaker is an integral. Groups have target scores of their own shift
(and of their speakers, normal with a standard deviation of 0.5), and meet the threshold 1.

People have one of 40 or 400 sets of attributes, equally frequent or as 1 / rank (Zipf), and a beta-distributed share of
their 5 recordings tells it; a recording that does not tell it gives any set. The control group is half as large.

    python -m benchmarks.coverage_disclosure [--repetitions 300] [--speakers 20 60] [--parts leaks groups sets]
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.measure import covered, repeated, study_options
from evaluation.linkage import (
    GalleryTrials,
    disclosed_information,
    first_shares,
    mostly_found,
)
from evaluation.linkage.curve import mean_interval
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import (
    Interval,
    Resampling,
    garbe,
    group_fairness,
    largest_rate,
    sample_of,
    worst_ratio,
)
from evaluation.utility import inference_risk, shares_named, uniqueness
from spkbase.files import format_table

RECORDINGS, RESAMPLES = 5, 200
WORLDS = ("alike", "spread", "few")
GROUPS = {"2 equal": (1.5, 1.5), "2 unequal": (2.0, 1.0), "4 unequal": (2.0, 1.5, 1.5, 1.0)}
SETS = {"40 sets": (40, 0.0), "40 sets, Zipf": (40, 1.0), "400 sets": (400, 0.0)}
TOLD, TOLD_OF_OTHERS = (6.0, 2.0), (2.0, 2.0)  # of beta distributions
MEASURES = ("ALID", "PDR", "LID+", "worst speaker", "mostly found")
OF_SPEAKERS, THRESHOLD = 0.5, 1.0


def shifts(world: str, rng: np.random.Generator, n_speakers: int) -> np.ndarray:
    """Draw how much higher the target scores of each speaker are."""
    if world == "alike":
        return np.full(n_speakers, 1.5)
    if world == "spread":
        return 1.5 * np.exp(0.7 * rng.normal(size=n_speakers) - 0.245)
    return np.where(rng.random(n_speakers) < 0.2, 4.0, 0.0)


def true_first(shift: np.ndarray, n_enrolled: int) -> np.ndarray:
    """Return the probability that a target score exceeds those of all impostors."""
    grid = np.linspace(-8, 14, 4001)
    density = np.exp(-((grid - shift[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
    return np.trapezoid(density * ndtr(grid) ** (n_enrolled - 1), grid, axis=1)


def repeat(world: str, n_speakers: int, seed: int) -> np.ndarray:
    """Value, ends and truth (NaN where it is the mean over repetitions) of each measure, shape (5, 4)."""
    rng = np.random.default_rng([seed, n_speakers])
    shift = shifts(world, rng, n_speakers)
    owner = np.repeat(np.arange(n_speakers), RECORDINGS)
    rows, models = np.indices((len(owner), n_speakers)).reshape(2, -1)
    is_target = models == owner[rows]
    scores = rng.normal(size=len(rows)) + np.where(is_target, shift[models], 0.0)
    scores += 10 * rng.normal(size=len(owner))[rows]
    names = [f"s{number:03d}" for number in owner]
    trials = GalleryTrials(rows, models, scores, is_target, names, names, ())
    resampling = Resampling(RESAMPLES, seed)
    found = disclosed_information(trials, resampling=resampling)
    shares = first_shares(trials)
    _, largest = largest_rate(shares.own * shares.n_own, shares.n_own, beyond=shares.others)
    truth = float((true_first(shift, n_speakers) - shares.others).max())
    mostly = mean_interval(mostly_found(shares).astype(float), resampling)
    results = [found.mean, found.share, found.gain, largest, mostly]
    truths = [np.nan, np.nan, np.nan, truth, np.nan]
    return np.array([_numbers(*pair) for pair in zip(results, truths, strict=True)])


def repeat_groups(group_shifts: tuple[float, ...], n_speakers: int, seed: int) -> np.ndarray:
    """Value, ends and truth of the ratio of true-accept rates and of GARBE, shape (2, 4)."""
    rng = np.random.default_rng([seed, n_speakers, len(group_shifts)])
    group = np.arange(n_speakers) % len(group_shifts)
    models, segments = np.divmod(np.arange(n_speakers**2 * RECORDINGS), n_speakers * RECORDINGS)
    tested = segments // RECORDINGS
    is_target = models == tested
    own = np.array(group_shifts)[group] + OF_SPEAKERS * rng.normal(size=n_speakers)
    scores = rng.normal(size=len(models)) + np.where(is_target, own[models], 0.0)
    groups = np.where(group[models] == group[tested], group[models], -1)
    people = np.array([f"s{number:03d}" for number in range(n_speakers)], object)
    sample = sample_of(scores, is_target, TrialSpeakers(people, models, tested))
    names = [f"g{number}" for number in range(len(group_shifts))]
    found = group_fairness(
        sample, groups, names, threshold=THRESHOLD, resampling=Resampling(RESAMPLES, seed)
    )
    accepted = ndtr((np.array(group_shifts) - THRESHOLD) / np.hypot(1, OF_SPEAKERS))
    false_alarms = np.full(len(group_shifts), ndtr(-THRESHOLD))
    truths = (worst_ratio(accepted), garbe(false_alarms, 1 - accepted))
    results = (found.ratios["true_accept"], found.garbe)
    return np.array([_numbers(*pair) for pair in zip(results, truths, strict=True)])


def repeat_sets(n_sets: int, exponent: float, n_people: int, seed: int) -> np.ndarray:
    """Value, ends and truth of the unique people, of naming and of the risk, shape (3, 4)."""
    rng = np.random.default_rng([seed, n_people, n_sets])
    frequency = np.arange(1, n_sets + 1) ** -exponent
    frequency /= frequency.sum()
    sets = [(f"{number}",) for number in rng.choice(n_sets, n_people, p=frequency)]
    told = rng.beta(*TOLD, n_people)
    is_told = rng.random((n_people, RECORDINGS)) < told[:, None]
    owners = np.repeat(np.arange(n_people), RECORDINGS)
    guesses = []
    for owner, right in zip(owners.tolist(), is_told.ravel().tolist(), strict=True):
        guesses.append(sets[owner] if right else (f"{rng.choice(n_sets, p=frequency)}",))
    named = shares_named(sets, guesses, owners).reshape(n_people, RECORDINGS).mean(axis=1)
    others = rng.binomial(RECORDINGS, rng.beta(*TOLD_OF_OTHERS, n_people // 2)) / RECORDINGS
    resampling = Resampling(RESAMPLES, seed)
    risk = inference_risk(is_told.mean(axis=1), others, resampling).risk
    true_unique = float(frequency @ (1 - frequency) ** (n_people - 1))
    attack, control = (own[0] / sum(own) for own in (TOLD, TOLD_OF_OTHERS))
    results = [uniqueness(sets), mean_interval(named, resampling), risk]
    truths = [true_unique, np.nan, (attack - control) / (1 - control)]
    return np.array([_numbers(*pair) for pair in zip(results, truths, strict=True)])


def main() -> None:
    options = study_options(
        __doc__, repetitions=300, speakers=[20, 60], parts=["leaks", "groups", "sets"]
    )
    started = time.perf_counter()
    tables: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "leaks": ({world: partial(repeat, world) for world in WORLDS}, MEASURES),
        "groups": (
            {name: partial(repeat_groups, shifts) for name, shifts in GROUPS.items()},
            ("ratio", "GARBE"),
        ),
        "sets": (
            {name: partial(repeat_sets, *setting) for name, setting in SETS.items()},
            ("unique", "named", "risk"),
        ),
    }
    for part in options.parts:
        settings, measures = tables[part]
        rows = []
        for (name, function), n_speakers in product(settings.items(), options.speakers):
            runs = np.array(repeated(partial(function, n_speakers), options))
            rows.append({part: name, "speakers": n_speakers} | _row(measures, runs))
        print(format_table(rows, markdown=True), flush=True)
    print(f"{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def _numbers(interval: Interval, truth: float) -> list[float]:
    return [interval.value, interval.low, interval.high, truth]


def _row(names: tuple[str, ...], runs: np.ndarray) -> dict[str, Any]:
    """Return the coverage of each measure."""
    cells = {}
    for number, name in enumerate(names):
        value, low, high, truth = runs[:, number].T
        truth = np.where(np.isnan(truth), value.mean(), truth)
        below = truth < low - 1e-12
        cells[name] = covered(np.array([below.mean(), (truth > high + 1e-12).mean()]))
    return cells


if __name__ == "__main__":
    main()
