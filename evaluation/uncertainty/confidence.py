"""How sure a metric is: intervals of any metric under a joint bootstrap of speakers, and paired differences.

>>> import numpy as np
>>> from evaluation.uncertainty import sample_of
>>> from evaluation.trials import TrialSpeakers
>>> rng = np.random.default_rng(0)
>>> models, segments = np.divmod(np.arange(400), 20)  # 20 speakers, each against each
>>> speakers = TrialSpeakers(np.array([f"s{n:02d}" for n in range(20)], object), models, segments)
>>> scores = rng.standard_normal(400) + 2 * (models == segments)
>>> def mean_target(trials):
...     return {"mean_target": float(trials.thresholds @ trials.target / trials.n_target)}
>>> found = confidence_intervals(sample_of(scores, models == segments, speakers), mean_target, replicates=200)
>>> found["mean_target"].low < 2 < found["mean_target"].high
True

`resampling` says what is drawn, `intervals` how an interval is made of it and by which method for each metric,
docs/uncertainty.md how often such intervals hold the true value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics import METRICS, Method, is_prior, method_of
from evaluation.trials import Key, Scores, doubt_speakers, find_rows, find_speakers, split_scores
from evaluation.uncertainty.intervals import Differences, Interval, Intervals, interval, interval_over_draws
from evaluation.uncertainty.resampling import Sample, Statistic, bootstrap, sample_of
from spkbase.errors import DataError

_FEW = 10


def sample_from(
    scores: Scores,
    key: Key,
    *,
    model_speakers: Mapping[str, str] | None = None,
    segment_speakers: Mapping[str, str] | None = None,
    by_trial: bool = False,
    ids_are_speakers: bool = False,
    missing: str = "error",
) -> tuple[Sample, Key]:
    """Return the trials of scores and key, joined and sorted for a bootstrap.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does.
    model_speakers, segment_speakers : mapping of str to str, optional
        Speaker of each model and segment; see `evaluation.trials.speakers` for what holds without.
    by_trial : bool
        Draw trials, not speakers.
    ids_are_speakers : bool
        Take each id that no map and no target trial names for a speaker, whatever it looks like.
    missing : {"error", "drop"}
        What to do with trials without a score and scores of unknown ids.

    Returns
    -------
    sample : Sample
    key : Key
        The trials that have a score.

    Raises
    ------
    DataError
        As `split_scores`, `find_speakers` and `sample_of`; or if the ids do not look like speakers
        (`evaluation.trials.doubt_speakers`), unless they are said to be.
    """
    choice = "drop" if missing == "drop" else "error"
    split_scores(scores, key, missing=choice, unknown=choice)  # type: ignore[arg-type]  # for its checks
    rows = find_rows(key, scores)
    present = rows >= 0
    if not present.all():
        key, rows = key.subset(present), rows[present]
    speakers = None
    if not by_trial:
        doubt = doubt_speakers(key, model_speakers=model_speakers, segment_speakers=segment_speakers)
        if doubt is not None and not ids_are_speakers:
            raise doubt.error()
        speakers = find_speakers(key, model_speakers=model_speakers, segment_speakers=segment_speakers)
    return sample_of(scores.values[rows], key.is_target, speakers), key


def confidence_intervals(
    sample: Sample,
    statistic: Statistic,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    jobs: int | None = 1,
    methods: Mapping[str, Method] | None = None,
) -> Intervals:
    """Return each metric with its interval.

    Parameters
    ----------
    sample : Sample
        Trials; see `sample_of` and `sample_from`.
    statistic : callable
        Gives metrics by name from `SortedScores`, such as `evaluation.metrics.Metrics`, which also says how its
        intervals are made. For several workers it must be importable.
    replicates : int
        Number of resamples.
    seed : int
        Of the draws; with it the result is the same everywhere and for any number of workers.
    level : float
        Share of true values that such intervals should cover.
    jobs : int, optional
        Number of workers; all cores if None.
    methods : mapping of str to Method, optional
        Other methods than the statistic's table or `evaluation.metrics.method_of` names, by metric.

    Returns
    -------
    Intervals
        A dict of str to `Interval`, which is shown as a table too; in the order of the statistic's names.

    Raises
    ------
    DataError
        If a number is out of range, or a class vanishes in more than half of the draws.
    """
    return confidence_over_draws(
        [sample], statistic, replicates=replicates, seed=seed, level=level, jobs=jobs, methods=methods
    )


def confidence_over_draws(
    samples: Sequence[Sample],
    statistic: Statistic,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    jobs: int | None = 1,
    methods: Mapping[str, Method] | None = None,
) -> Intervals:
    """Return the mean of each metric over draws of the same trials, with an interval that holds speakers and draws.

    Parameters
    ----------
    samples : sequence of Sample
        The same trials of the same speakers in each draw, such as with other random numbers of an anonymiser.
    statistic, replicates, seed, level, jobs, methods
        See `confidence_intervals`, which this is for one draw.

    Returns
    -------
    Intervals
        A dict of str to `Interval`, see `evaluation.uncertainty.intervals` for how they are made.

    Raises
    ------
    DataError
        As `confidence_intervals`; if the draws are not of the same trials.
    """
    first = samples[0]
    for number, sample in enumerate(samples[1:], 2):
        _check_same_trials(first, sample, "draw 1", f"draw {number}")
    values = [statistic(sample.runs()) for sample in samples]
    resampled = bootstrap(list(samples), statistic, replicates=replicates, seed=seed, jobs=jobs)
    chosen, rows = dict(methods or {}), getattr(statistic, "rows", METRICS)
    settings: dict[str, Any] = {"n_units": first.n_effective, "n_trials": first.n_least, "level": level}
    found = {}
    for name in values[0]:
        columns = [of_draw[name] for of_draw in values], [of_draw[name] for of_draw in resampled]
        method = chosen.get(name) or method_of(name, metrics=rows)
        found[name] = _with_resolution(name, interval_over_draws(*columns, method=method, **settings), first)
    return Intervals(found)


def paired_differences(
    samples: Mapping[str, Sample],
    statistic: Statistic,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    jobs: int | None = 1,
) -> Differences:
    """Return what systems differ by on the same trials: each one's metrics less those of the first, under shared draws.

    What is easy or hard for both systems goes out of the difference, so its interval is shorter than the two apart.

    Parameters
    ----------
    samples : mapping of str to Sample
        Two systems at least, by name; their trials and speakers are the same ones.
    statistic, replicates, seed, level, jobs
        See `confidence_intervals`.

    Returns
    -------
    Differences
        A dict of str to dict of str to `Interval`, which is shown as a table too. For each system but the first the
        difference of each metric; an interval without 0 is a difference at this
        level.

    Raises
    ------
    DataError
        If there are fewer than two systems, or their trials differ.
    """
    names = list(samples)
    if len(names) < 2:
        raise DataError(f"expected two systems or more to compare, got {len(names)}")
    for name in names[1:]:
        _check_same_trials(samples[names[0]], samples[name], names[0], name)
    resampled = bootstrap(list(samples.values()), statistic, replicates=replicates, seed=seed, jobs=jobs)
    values = [statistic(sample.runs()) for sample in samples.values()]
    first = samples[names[0]]
    differences = {
        name: Intervals(
            {
                metric: interval(
                    float(_difference(values[system][metric], values[0][metric])),
                    _difference(resampled[system][metric], resampled[0][metric]),
                    method=method_of(metric, difference=True, metrics=getattr(statistic, "rows", METRICS)),
                    n_units=first.n_effective,
                    level=level,
                )
                for metric in values[0]
            }
        )
        for system, name in enumerate(names)
        if system > 0
    }
    return Differences(differences)


def _with_resolution(name: str, interval: Interval, sample: Sample) -> Interval:
    """Note where a least cost hangs on a handful of trials: the study of coverage finds its interval too short."""
    head, _, prior = name.partition(".")
    if head not in ("min_dcf", "min_dcf_unnormalised") or interval.note or not is_prior(prior):
        return interval
    n_target = int(sample.is_target.sum())
    if min((len(sample) - n_target) * float(prior), n_target * (1 - float(prior))) >= _FEW:
        return interval
    side = "nontarget trials" if float(prior) < 0.5 else "target trials"
    scarce = "P" if float(prior) < 0.5 else "(1 - P)"
    return replace(interval, note=f"fewer than {_FEW} / {scarce} {side}: the interval may be too short")


def _difference(value: ArrayLike, base: ArrayLike) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of two infinite values it is undefined
        return np.subtract(np.asarray(value, np.float64), np.asarray(base, np.float64))


def _check_same_trials(base: Sample, other: Sample, base_name: str, name: str) -> None:
    """Compare the trials as a set of (class, units), whatever the order of their scores."""
    remedy = "score the same trials with each system"
    if len(base) != len(other) or base.n_units != other.n_units or base.by_trial != other.by_trial:
        counts = f"{len(base)} and {len(other)}"
        raise DataError(f"expected the same trials of {base_name!r} and {name!r}, got {counts}", remedy=remedy)
    columns = [np.lexsort((sample.second, sample.first, sample.is_target)) for sample in (base, other)]
    for field in ("first", "second", "is_target"):
        if (getattr(base, field)[columns[0]] != getattr(other, field)[columns[1]]).any():
            raise DataError(f"expected the same trials of {base_name!r} and {name!r}, but they differ", remedy=remedy)
