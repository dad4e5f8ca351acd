"""How often intervals hold the true value: simulated speaker effects whose true metrics have closed forms.

The simulation: each speaker is a model and is tested with `SEGMENTS` segments against every model; of the nontarget
trials at most `MAX_NONTARGET` are kept, at random. Log-likelihood ratios of target trials are normal with mean d**2 / 2
and standard deviation d, those of nontarget trials normal with mean -d**2 / 2 and the same deviation, so that every
metric has a closed form or an integral. The deviation is made of independent normal effects, with these shares of the
variance:

    target      speaker 0.5, segment 0.1, trial 0.4
    nontarget   model's speaker 0.15, segment's speaker 0.15, pair of speakers 0.1, segment 0.1, trial 0.5

The score is 1.3 LLR + 0.3, so that there is some calibration loss. A second system has another d and effects that are
correlated with those of the first; it serves the paired differences. With a ratio of 1 both have the same d: then the
differences whose interval does not hold 0 are those that a test at 5 % calls significant by chance.

    python -m benchmarks.coverage [--repetitions 500] [--speakers 20 50 100] [--distance 2.5] [--ratio 1.2]
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from benchmarks.measure import covered, repeated, study_options
from evaluation import metrics as m
from evaluation.metrics import METHODS, Method, SortedScores, method_of
from evaluation.metrics.calibration import softplus
from evaluation.metrics.disclosure import d_sys_pav
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import Resampling, Sample, bootstrap, interval, sample_of
from spkbase.files import format_table

SEGMENTS, MAX_NONTARGET = 8, 8000
TARGET_SHARES, NONTARGET_SHARES = (0.5, 0.1, 0.4), (0.15, 0.15, 0.1, 0.1, 0.5)
SCALE, OFFSET = 1.3, 0.3
CORRELATION = 0.7
PRIORS = (0.5, 0.05, 0.01, 0.001)
PERCENTILE = Method("percentile")


def metrics(scores: SortedScores) -> dict[str, float]:
    """Compute what the study looks at."""
    found: dict[str, float] = {f"eer.{method}": m.eer(scores, method=method) for method in METHODS}
    found |= {
        f"min_dcf_unnormalised.{p:g}": m.min_dcf(scores, p_target=p, normalised=False)
        for p in PRIORS
    }
    found["act_dcf_unnormalised.0.05"] = m.act_dcf(scores, p_target=0.05, normalised=False)
    found["tpr_at_fpr.0.01"] = m.tpr_at_fpr(scores, fpr=0.01).value
    found |= {"cllr": m.cllr(scores), "min_cllr": m.min_cllr(scores)}
    found["calibration_loss"] = found["cllr"] - found["min_cllr"]
    found |= {"d_sys": m.d_sys(scores), "d_sys_pav": d_sys_pav(scores)}
    return found | {"zebra.population": m.population(scores)}


def true_metrics(d: float) -> dict[str, float]:
    """Compute the same of infinitely many trials of infinitely many speakers."""
    error = float(ndtr(-d / 2))
    found = dict.fromkeys([f"eer.{method}" for method in METHODS], error)
    for prior in PRIORS:
        found[f"min_dcf_unnormalised.{prior:g}"] = _cost(d, prior, -np.log(prior / (1 - prior)))
    found["act_dcf_unnormalised.0.05"] = _cost(d, 0.05, (-np.log(0.05 / 0.95) - OFFSET) / SCALE)
    found["tpr_at_fpr.0.01"] = float(ndtr(d - ndtri(0.99)))
    found["cllr"] = _mean(
        d, lambda llr: softplus(-SCALE * llr - OFFSET) + softplus(-SCALE * llr + OFFSET)
    ) / np.log(4)
    found["min_cllr"] = _mean(d, lambda llr: softplus(-llr)) / np.log(2)
    found["calibration_loss"] = found["cllr"] - found["min_cllr"]
    found["zebra.population"] = 2 * _mean(d, _evidence) / np.log(2)
    found["d_sys"] = found["d_sys_pav"] = _mean(d, lambda llr: np.maximum(0, np.tanh(llr / 2)))
    return found


def simulate(
    rng: np.random.Generator,
    n_speakers: int,
    distances: tuple[float, ...],
    *,
    most_nontarget: int = MAX_NONTARGET,
) -> list[Sample]:
    """Draw speakers and score their trials with systems of these distances, whose effects are correlated."""
    models, segments = np.divmod(
        np.arange(n_speakers * n_speakers * SEGMENTS), n_speakers * SEGMENTS
    )
    speakers = segments // SEGMENTS
    is_target = models == speakers
    others = np.flatnonzero(~is_target)
    kept = np.concatenate([np.flatnonzero(is_target), rng.permutation(others)[:most_nontarget]])
    models, segments, speakers, is_target = (
        column[kept] for column in (models, segments, speakers, is_target)
    )
    names = np.array([f"s{number:04d}" for number in range(n_speakers)], object)
    trial_speakers = TrialSpeakers(names, models, speakers)
    shared = _effects(rng, n_speakers, models, speakers, segments, is_target)
    samples = []
    for number, d in enumerate(distances):
        effects = shared
        if number:
            separate = _effects(rng, n_speakers, models, speakers, segments, is_target)
            effects = CORRELATION * shared + np.sqrt(1 - CORRELATION**2) * separate
        llr = np.where(is_target, d, -d) * d / 2 + d * effects
        samples.append(sample_of(SCALE * llr + OFFSET, is_target, trial_speakers))
    return samples


def repeat(
    n_speakers: int, distance: float, ratio: float, resamples: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Run the study once.

    Returns
    -------
    single : dict of str to ndarray of bool of shape (3, 2)
        For each metric whether the true value is below and above the interval: by the method of the metric, by
        percentiles of the same resamples, by percentiles of resamples of trials.
    paired : dict of str to ndarray of bool of shape (1, 2)
        The same of differences, by their method.
    """
    rng = np.random.default_rng([seed, n_speakers])
    distances = (distance, distance * ratio)
    samples = simulate(rng, n_speakers, distances)
    values = [metrics(sample.runs()) for sample in samples]
    resampled = bootstrap(samples, metrics, Resampling(resamples, seed))
    first = samples[0]
    by_trial = sample_of(first.scores, first.is_target)
    of_trials = bootstrap(by_trial, metrics, Resampling(max(100, resamples // 2), seed))[0]
    truth = [true_metrics(d) for d in distances]
    settings = {"n_units": first.n_effective}
    single, paired = {}, {}
    for name, true in truth[0].items():
        draws, value = resampled[0][name], values[0][name]
        intervals = [
            interval(value, draws, method=method_of(name), n_trials=first.n_least, **settings),
            interval(value, draws, method=PERCENTILE, **settings),
            interval(value, of_trials[name], method=PERCENTILE, **settings),
        ]
        single[name] = np.array(
            [(true < interval.low, true > interval.high) for interval in intervals]
        )
        difference = interval(
            values[1][name] - value,
            resampled[1][name] - draws,
            method=method_of(name, difference=True),
            **settings,
        )
        gap = truth[1][name] - true
        paired[name] = np.array([(gap < difference.low, gap > difference.high)])
    return single, paired


def study(
    n_speakers: int, distance: float, options: argparse.Namespace
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Count misses over repetitions: as `repeat`, but shares of the repetitions."""
    results = repeated(
        partial(repeat, n_speakers, distance, options.ratio, options.resamples), options
    )
    single, paired = (
        {
            name: np.mean([result[place][name] for result in results], axis=0)
            for name in results[0][place]
        }
        for place in (0, 1)
    )
    return single, paired


def main() -> None:
    options = study_options(
        __doc__, repetitions=500, resamples=200, speakers=[20, 50, 100], distance=2.5, ratio=1.2
    )
    print(
        f"true values in intervals of 95 %, in percent: {options.repetitions} repetitions from seed "
        f"{options.first_seed}, {options.resamples} "
        f"resamples, d = {options.distance:g}; in brackets true values below and above; one standard error is "
        f"{100 * np.sqrt(0.95 * 0.05 / options.repetitions):.1f}\n"
    )
    started = time.perf_counter()
    results = {count: study(count, options.distance, options) for count in options.speakers}
    further = true_metrics(options.distance * options.ratio)
    rows, differences = [], []
    for name, true in true_metrics(options.distance).items():
        row: dict[str, object] = {"metric": name, "true": true, "method": method_of(name).name}
        pair: dict[str, object] = {"difference of": name, "true": further[name] - true}
        pair["method"] = method_of(name, difference=True).name
        for count, (single, paired) in results.items():
            row[f"{count} speakers"] = covered(single[name][0])
            row[f"{count}, percentile"] = covered(single[name][1]).split()[0]
            row[f"{count}, by trial"] = covered(single[name][2]).split()[0]
            pair[f"{count} speakers"] = covered(paired[name][0])
        rows.append(row)
        differences.append(pair)
    for table in (rows, differences):
        columns = {name: ".4f" if name == "true" else "" for name in table[0]}
        print(format_table(table, columns, markdown=True), end="\n\n")
    print(f"{time.perf_counter() - started:.0f} s with {options.jobs} workers")


def _effects(
    rng: np.random.Generator,
    n_speakers: int,
    models: np.ndarray,
    speakers: np.ndarray,
    segments: np.ndarray,
    is_target: np.ndarray,
) -> np.ndarray:
    """Draw standard normal deviations of the trials out of the effects of the speakers, segments and trials."""
    draw = rng.standard_normal
    own, as_model, as_segment = draw((3, n_speakers))
    pair, segment = draw((n_speakers, n_speakers)), draw(n_speakers * SEGMENTS)[segments]
    trial = draw(len(models))
    target = zip(TARGET_SHARES, (own[models], segment, trial), strict=True)
    nontarget = zip(
        NONTARGET_SHARES,
        (as_model[models], as_segment[speakers], pair[models, speakers], segment, trial),
        strict=True,
    )
    sums = [sum(np.sqrt(share) * effect for share, effect in side) for side in (target, nontarget)]
    return np.where(is_target, *sums)


def _cost(d: float, prior: float, threshold: float) -> float:
    return float(
        prior * ndtr((threshold - d * d / 2) / d) + (1 - prior) * ndtr(-(threshold + d * d / 2) / d)
    )


def _mean(d: float, function: object) -> float:
    """Mean of a function of the LLR of target trials."""

    def density(deviation: float) -> float:
        llr = d * d / 2 + d * deviation
        return float(function(llr)) * np.exp(-deviation * deviation / 2) / np.sqrt(2 * np.pi)  # type: ignore[operator]

    return float(quad(density, -12, 12, limit=200)[0])


def _evidence(llr: float) -> float:
    """What a trial adds to ZEBRA's population metric: see reference 1.3 of the ZEBRA paper's D_ECE, in nats."""
    if abs(llr) < 0.01:
        return llr / 6 - llr**2 / 24 + llr**3 / 360
    return 0.25 if llr > 300 else 0.25 + (llr - np.expm1(llr)) / (2 * np.expm1(llr) ** 2)


if __name__ == "__main__":
    main()
