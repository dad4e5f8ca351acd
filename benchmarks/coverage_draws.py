"""How often intervals of a mean over draws of an anonymiser hold the true value: simulated speakers and draws.

Each speaker is a model and is tested with `SEGMENTS` segments of the same sex or not against every model, in each of
the draws. Scores of target trials are normal with mean d, those of nontarget trials with mean 0, both with variance 1,
which is made of independent normal effects with these shares:

    target      speaker 0.3, speaker in a draw 0.2, segment in a draw 0.1, trial 0.4
    nontarget   model's speaker 0.1, segment's speaker 0.1, both in a draw 0.1 each, segment in a draw 0.1, trial 0.5

In the settings called "common" a draw moves d by a normal number of deviation 0.25 for everybody (an anonymiser that
draws once, say a pseudo-speaker); in those called "own" it does not (each utterance has a draw of its own). The true
value is that of the mean over all draws with infinitely many speakers: the mean of Phi(-d / 2) over d.

    python -m benchmarks.coverage_draws [--repetitions 400] [--speakers 10 23 50] [--draws 3] [--distance 1.6]
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.measure import covered, repeated, study_options
from evaluation.metrics import SortedScores, eer, method_of
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import (
    Resampling,
    Sample,
    bootstrap,
    draw_variance,
    interval,
    interval_over_draws,
    sample_of,
)
from spkbase.files import format_table

SEGMENTS = 8
TARGET_SHARES, NONTARGET_SHARES = (0.3, 0.2, 0.1, 0.4), (0.1, 0.1, 0.1, 0.1, 0.1, 0.5)
MOVED = {"own": 0.0, "common": 0.25}
METRICS = ("eer.rocch", "eer.kaldi")
WAYS = ("speakers and draws", "speakers alone", "both added", "first draw alone")


def metrics(scores: SortedScores) -> dict[str, float]:
    """Compute what the study looks at."""
    return {name: eer(scores, method=name.partition(".")[2]) for name in METRICS}


def true_rate(distance: float, moved: float) -> float:
    """Return the mean of Phi(-d / 2) for a normal d: Phi(-m / sqrt(4 + s^2))."""
    return float(ndtr(-distance / np.sqrt(4 + moved**2)))


def simulate(
    rng: np.random.Generator, n_speakers: int, n_draws: int, distance: float, moved: float
) -> list[Sample]:
    """Draw speakers and draws, and score the same trials in each draw."""
    models, segments = np.divmod(
        np.arange(n_speakers * n_speakers * SEGMENTS), n_speakers * SEGMENTS
    )
    speakers = segments // SEGMENTS
    is_target = models == speakers
    names = np.array([f"s{number:04d}" for number in range(n_speakers)], object)
    trial_speakers = TrialSpeakers(names, models, speakers)

    def effect(share: float, count: int) -> np.ndarray:
        return np.sqrt(share) * rng.standard_normal(count)

    of_target = effect(TARGET_SHARES[0], n_speakers)
    of_model, of_tested = (effect(share, n_speakers) for share in NONTARGET_SHARES[:2])
    samples = []
    for _ in range(n_draws):
        apart = distance + moved * rng.standard_normal()
        target = (of_target + effect(TARGET_SHARES[1], n_speakers))[models]
        target += effect(TARGET_SHARES[2], n_speakers * SEGMENTS)[segments]
        other = (of_model + effect(NONTARGET_SHARES[2], n_speakers))[models]
        other += (of_tested + effect(NONTARGET_SHARES[3], n_speakers))[speakers]
        other += effect(NONTARGET_SHARES[4], n_speakers * SEGMENTS)[segments]
        noise = np.sqrt(np.where(is_target, TARGET_SHARES[-1], NONTARGET_SHARES[-1]))
        scores = np.where(is_target, apart + target, other) + noise * rng.standard_normal(
            len(models)
        )
        samples.append(sample_of(scores, is_target, trial_speakers))
    return samples


def repeat(
    n_speakers: int, n_draws: int, distance: float, moved: float, resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """Run the study once: for each metric and way, whether the true value is below and above, and the width."""
    rng = np.random.default_rng([seed, n_speakers, n_draws])
    samples = simulate(rng, n_speakers, n_draws, distance, moved)
    values = [metrics(sample.runs()) for sample in samples]
    resampled = bootstrap(samples, metrics, Resampling(resamples, seed))
    true, first = true_rate(distance, moved), samples[0]
    found = {}
    for name in METRICS:
        ours = np.array([of_draw[name] for of_draw in values])
        drawn = np.array([of_draw[name] for of_draw in resampled])
        settings: dict[str, Any] = {
            "method": method_of(name),
            "n_units": first.n_effective,
            "n_trials": first.n_least,
        }
        means = drawn.mean(axis=0)
        of_speakers, _ = draw_variance(ours, drawn, n_units=n_speakers)
        added = np.sqrt(1 + ours.var(ddof=1) / n_draws / of_speakers)
        intervals = [
            interval_over_draws(ours, drawn, **settings),
            interval(float(ours.mean()), means, **settings),
            interval(float(ours.mean()), means.mean() + added * (means - means.mean()), **settings),
            interval(float(ours[0]), drawn[0], **settings),
        ]
        found[name] = np.array(
            [(true < ends.low, true > ends.high, ends.high - ends.low) for ends in intervals]
        )
    return found


def main() -> None:
    options = study_options(
        __doc__, repetitions=400, resamples=200, speakers=[10, 23, 50], draws=3, distance=1.6
    )
    print(
        f"true values in intervals of 95 %, in percent: {options.repetitions} repetitions, {options.resamples}"
        f" resamples, {options.draws} draws, d = {options.distance:g}; in brackets true values below and above, and the"
        f" mean width in points; one standard error is {100 * np.sqrt(0.95 * 0.05 / options.repetitions):.1f}\n"
    )
    started, rows = time.perf_counter(), []
    for (name, moved), count in product(MOVED.items(), options.speakers):
        results = repeated(
            partial(repeat, count, options.draws, options.distance, moved, options.resamples),
            options,
        )
        for metric in METRICS:
            row: dict[str, object] = {"draws": name, "speakers": count, "metric": metric}
            row["true"] = f"{100 * true_rate(options.distance, moved):.2f}"
            means = np.mean([result[metric] for result in results], axis=0)
            row |= {
                way: covered(one, f"; {100 * one[2]:.1f}")
                for way, one in zip(WAYS, means, strict=True)
            }
            rows.append(row)
    print(format_table(rows, dict.fromkeys(rows[0], ""), markdown=True), end="\n\n")
    print(f"{time.perf_counter() - started:.0f} s with {options.jobs} workers")


if __name__ == "__main__":
    main()
