"""Intervals of any metric by a joint bootstrap of speakers, and paired differences.

>>> import numpy as np
>>> from evaluation.uncertainty import sample_of
>>> from evaluation.trials import TrialSpeakers
>>> rng = np.random.default_rng(0)
>>> models, segments = np.divmod(np.arange(400), 20)  # 20 speakers, each against each
>>> speakers = TrialSpeakers(np.array([f"s{n:02d}" for n in range(20)], object), models, segments)
>>> scores = rng.standard_normal(400) + 2 * (models == segments)
>>> def mean_target(trials):
...     return {"mean_target": float(trials.thresholds @ trials.target / trials.n_target)}
>>> found = confidence_intervals(sample_of(scores, models == segments, speakers), mean_target, Resampling(200))
>>> found["mean_target"].low < 2 < found["mean_target"].high
True

`resampling` draws, `intervals` turns draws into intervals, with one method for each metric,
docs/studies/intervals.md how often such intervals hold the true value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation import metrics as measures
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    are_labels,
    doubt_speakers,
    find_speakers,
    join_scores,
    split_by_labels,
)
from evaluation.uncertainty.intervals import (
    Differences,
    Interval,
    Intervals,
    interval_over_draws,
)
from evaluation.uncertainty.resampling import (
    DEFAULT,
    Resampling,
    Sample,
    Statistic,
    bootstrap,
    check_same_trials,
    sample_of,
)
from spkbase.errors import DataError
from spkbase.progress import verbosely
from spkbase.rounding import is_negligible

_FEW = 10

_CROSSED = 5  # models


def sample_from(
    scores: Scores,
    key: Key,
    *,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Literal["speaker", "id", "trial"] = "speaker",
    missing: Missing = "error",
) -> tuple[Sample, Key]:
    """Join scores and key, and sort the trials for a bootstrap.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.trials.find_speakers`.
    bootstrap_by : {"speaker", "id", "trial"}
        Unit of resampling. "speaker": speakers from the maps and the key; "id": the same, but every id without a
        speaker counts as one; "trial": single trials, whose intervals are far too narrow if trials share speakers.
    missing : {"error", "drop", "reject"}
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
        (`evaluation.trials.doubt_speakers`) and `bootstrap_by` is "speaker".
    """
    values, key = join_scores(scores, key, missing=missing)
    speakers = None
    maps = {"model_speakers": model_speakers, "segment_speakers": segment_speakers}
    if bootstrap_by != "trial":
        doubt = doubt_speakers(key, **maps) if bootstrap_by == "speaker" else None
        if doubt is not None:
            raise doubt.error(
                f"give the speakers of the {doubt.side}s (utt2spk): {doubt.side}_speakers=SPEAKERS; if each id is a"
                " speaker: bootstrap_by='id'; bootstrap_by='trial' is far too narrow if trials share speakers"
            )
        speakers = find_speakers(key, **maps)
    return sample_of(values, key.is_target, speakers), key


@verbosely
def confidence_intervals(
    samples: Sample | Sequence[Sample],
    statistic: Statistic,
    resampling: Resampling = DEFAULT,
    *,
    jobs: int | None = 1,
    verbose: bool = True,
) -> Intervals:
    """Return each metric with its interval.

    Parameters
    ----------
    samples : Sample or sequence of Sample
        Trials; see `sample_of` and `sample_from`. Several are draws of the same trials of the same speakers, such as
        anonymised versions with different random numbers: the value is the mean over them, and its interval covers
        speakers and draws.
    statistic : callable
        Computes metrics by name from `SortedScores`, such as `evaluation.metrics.Metrics`, which also says how its
        intervals are made. For several workers it must be importable.
    resampling : Resampling
        Number of resamples, seed and level; the result is the same for any number of workers.
    jobs : int, optional
        Number of workers; all cores if None.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Intervals
        A dict of str to `Interval`, which is shown as a table too; in the order of the statistic's names.

    Raises
    ------
    DataError
        If a number is out of range, draws are not of the same trials, or a class vanishes in more than half of the
        resamples.
    """
    if isinstance(samples, Sample):
        samples = [samples]
    else:
        samples = list(samples)
    if not (samples and all(isinstance(sample, Sample) for sample in samples)):
        raise DataError(
            "expected samples of trials", remedy="make them by sample_from(scores, key)"
        )
    first = samples[0]
    rows = getattr(statistic, "rows", measures.METRICS)
    for number, sample in enumerate(samples[1:], 2):
        check_same_trials(first, sample, "draw 1", f"draw {number}")
    values = [statistic(sample.runs()) for sample in samples]
    resampled = bootstrap(samples, statistic, resampling, jobs=jobs)
    settings: dict[str, Any] = {
        "n_units": first.n_effective,
        "n_trials": first.n_least,
        "level": resampling.level,
    }
    intervals = Intervals()
    for name in values[0]:
        metric_of_draws = [draw[name] for draw in values]
        resampled_metric = [draw[name] for draw in resampled]
        method = measures.method_of(name, metrics=rows)
        ends = interval_over_draws(metric_of_draws, resampled_metric, method=method, **settings)
        intervals[name] = _with_resolution(name, ends, first)
    return intervals


@verbosely
def paired_differences(
    samples: Mapping[str, Sample | Sequence[Sample]],
    statistic: Statistic,
    resampling: Resampling = DEFAULT,
    *,
    jobs: int | None = 1,
    verbose: bool = True,
) -> Differences:
    """Return differences of systems on the same trials: metrics minus those of the first, in shared resamples.

    Effects that both systems share cancel in the difference, whose interval is therefore shorter.

    Parameters
    ----------
    samples : mapping of str to Sample or sequence of Sample
        Two systems at least, by name; their trials and speakers are the same ones. Several samples of a system are its
        draws, as in `confidence_intervals`; all systems use the smallest number of draws.
    statistic, resampling, jobs
        See `confidence_intervals`.
    verbose : bool
        Whether to show progress.

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
    if len(samples) < 2:
        raise DataError(f"expected at least two systems to compare, got {len(samples)}")
    base, *others = samples
    draws: dict[str, list[Sample]] = {}
    for name, given in samples.items():
        draws[name] = [given] if isinstance(given, Sample) else list(given)
    n_draws = min(map(len, draws.values()))
    every: list[Sample] = []
    for name, own in draws.items():
        for sample in own[:n_draws]:
            if every:
                check_same_trials(every[0], sample, base, name)
            every.append(sample)
    resampled = bootstrap(every, statistic, resampling, jobs=jobs)
    values = [statistic(sample.runs()) for sample in every]
    rows = getattr(statistic, "rows", measures.METRICS)
    n_units = every[0].n_effective
    differences = Differences()
    for number, name in enumerate(others, 1):
        differences[name] = Intervals()
        start = number * n_draws
        for metric in values[0]:
            gaps = []
            resampled_gaps = []
            for draw in range(n_draws):
                gaps.append(float(_gap(values[start + draw][metric], values[draw][metric])))
                resampled_gaps.append(
                    _gap(resampled[start + draw][metric], resampled[draw][metric])
                )
            method = measures.method_of(metric, difference=True, metrics=rows)
            gap = interval_over_draws(
                gaps, resampled_gaps, method=method, n_units=n_units, level=resampling.level
            )
            differences[name][metric] = replace(
                gap, p_value=_p_value(gap, n_units, resampling.level)
            )
    return differences


def check_speakers(key: Key, speakers: Speakers | None) -> None:
    """Refuse ids that may not be speakers if no speakers are given; the error names Python arguments.

    Raises
    ------
    UnknownSpeakersError
        If no speakers are given and the ids of the key may not be speakers; see `evaluation.trials.doubt_speakers`.
    """
    if speakers is None:
        doubt = doubt_speakers(key)
        if doubt is not None:
            remedy = "give the speaker of each id: speakers={id: speaker, ...}, a function, or a separator such as '/'"
            raise doubt.error(remedy)


def evaluate(
    target: ArrayLike | Scores | measures.SortedScores,
    nontarget: ArrayLike | None = None,
    *,
    labels: ArrayLike | Key | None = None,
    convention: str = "default",
    priors: Sequence[str | float] = measures.PRIORS,
    metrics: tuple[measures.Metric, ...] = measures.METRICS,
    weights: ArrayLike | None = None,
    speakers: Speakers | None = None,
    resamples: int | None = None,
    seed: int = 0,
    missing: Missing = "error",
    llr_base: float = math.e,
) -> measures.Evaluation:
    """Compute every metric of scores, with confidence intervals if speakers are known.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Scores; for the actual costs and Cllr, natural LLRs. They may be infinite. Series of pandas or polars will
        do, or one `SortedScores`. With `labels` the first holds the scores of both classes, and there is no second.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), or Key, optional
        The class of each score: true for a target trial, or text (``target`` and ``nontarget``). `Scores` are joined
        with their `Key` by the pairs of ids. Truth values and text may be the second argument as well.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Which convention to follow; see `evaluation.metrics.conventions`.
    priors : sequence of str or float
        Target priors of the detection costs; the result has them as keys, written as they are here.
    metrics : tuple of Metric
        What to compute: the built-in table, one with user-supplied rows (``METRICS + (mine,)``), part of it, or one
        with other options (`evaluation.metrics.metrics_with`).
    weights : array_like of float of shape (N,), optional
        Weight of each trial, 1 by default, if `labels` are given; `sort_scores` takes weights by class.
    speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and each segment of `Scores`, for intervals: a map, a function of the id, or a separator
        such as ``"/"`` that ends the speaker in each id.
    resamples, seed : int
        Resamples of the speakers for intervals of 95 %, and their seed. The default is 1000 with speakers, else none;
        if resamples are requested without speakers, ids count as speakers if they look like it.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score, and with scores in arrays that are NaN; see
        `evaluation.trials.split_scores`.
    llr_base : float
        Base of the log-likelihood ratios, such as 10 in forensic science.

    Returns
    -------
    Evaluation
        The numbers by name, with intervals, and notes on those to be read with care.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, an option is out of range, or a table of metrics has a name twice; with
        labels also if lengths or indices differ, or a label means neither; with speakers also as in `compare`.

    Examples
    --------
    >>> result = evaluate([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0])
    >>> result.eer["rocch"], result.zebra.tag, sorted(result.notes)
    (0.125, 'A', ['d_sys', 'tpr_at_fpr.0.0001', 'tpr_at_fpr.0.001', 'tpr_at_fpr.0.01'])
    >>> evaluate([0.5, -1.0, 2.0, 0.0], labels=[1, 0, 1, 0]).eer["rocch"]
    0.0
    """
    if labels is None and (
        isinstance(nontarget, Key) or (nontarget is not None and are_labels(nontarget))
    ):
        labels = nontarget
        nontarget = None
    search: dict[str, str] = {}
    if labels is None and weights is None and not isinstance(target, Scores):
        scores = measures.sort_scores(target, nontarget, missing=missing)
    elif (
        labels is None
        or nontarget is not None
        or (weights is not None and isinstance(target, Scores))
    ):
        remedy = "evaluate(target, nontarget), or evaluate(scores, labels=labels, weights=weights)"
        raise DataError(
            "expected scores by class, or scores of all trials and labels", remedy=remedy
        )
    elif isinstance(target, Scores) or isinstance(labels, Key):
        given: Any = target, labels
        # raises an error for anything but Scores and a Key
        values, key = join_scores(*given, missing=missing)
        scores = measures.sort_scores(values[key.is_target], values[~key.is_target])
        search = closed_search_note(values, key, scores)
    else:
        scores = measures.sort_scores(**split_by_labels(target, labels, weights, missing=missing))
    if not llr_base > 1:
        raise DataError(f"expected a base of log-likelihood ratios above 1, got {llr_base}")
    scores = replace(scores, thresholds=scores.thresholds * math.log(llr_base))
    statistic = measures.Metrics(priors, convention, tuple(metrics))
    result = statistic.evaluate(scores)
    result.notes.update(search)
    if resamples is None:
        resamples = 0 if speakers is None else 1000
    resampling = Resampling(resamples, seed)
    if not resampling.resamples:
        return result
    if isinstance(labels, Key):
        check_speakers(labels, speakers)
    trials: Any = target, labels
    sample, _ = sample_from(
        *trials, model_speakers=speakers, segment_speakers=speakers, missing=missing
    )
    sample = replace(sample, scores=sample.scores * math.log(llr_base))
    intervals = confidence_intervals(sample, statistic, resampling)
    return with_intervals(result, intervals, resampling.text(f"{sample.n_effective} speakers"))


def closed_search_note(
    values: NDArray[np.float64], key: Key, scores: measures.SortedScores
) -> dict[str, str]:
    """Note how often a search among all models finds the target speaker, if the trials are a cross of tests and models.

    Scores with an offset for each test tell little at one threshold, and much within a test. Models and tests are
    crossed if nine in ten trials are of tests with one target trial, which have scores of five models or more, and of
    half as many as the median test.

    Parameters
    ----------
    values : ndarray of float64 of shape (N,)
        Scores in the order of the key.
    key : Key
    scores : SortedScores
        The same scores, sorted.

    Returns
    -------
    dict of str to str
        A note ``identification``, or nothing.
    """
    n_tests = len(key.segment_ids)
    sizes = np.bincount(key.segments, minlength=n_tests)
    targets = np.bincount(key.segments[key.is_target], minlength=n_tests)
    crossed = (targets == 1) & (sizes >= max(_CROSSED, np.median(sizes[sizes > 0]) / 2))
    if sizes[crossed].sum() < 0.9 * len(key):
        return {}
    best = np.full(n_tests, -np.inf)
    np.maximum.at(best, key.segments[~key.is_target], values[~key.is_target])
    own = np.full(n_tests, -np.inf)
    own[key.segments[key.is_target]] = values[key.is_target]
    first = np.mean((own > best)[crossed])
    chance = np.mean(1 / sizes[crossed])
    rate = f"EER {100 * measures.eer(scores):.1f} %"
    search = f"the target one scores highest in {100 * first:.1f} % of tests (chance {100 * chance:.1f} %)"
    return {"identification": f"{rate}; in a search among the models of a test {search}"}


def with_intervals(
    result: measures.Evaluation, intervals: Intervals, note: str
) -> measures.Evaluation:
    """Return a result with intervals and a note on what was resampled; see `Resampling.text`."""
    notes = {f"intervals.{name}": ends.note for name, ends in intervals.items() if ends.note}
    of_each = {name: (ends.low, ends.high) for name, ends in intervals.items()}
    return replace(result, intervals=of_each, notes=result.notes | {"intervals": note} | notes)


def _gap(values: ArrayLike, base: ArrayLike) -> NDArray[np.float64]:
    """Return differences from the base; 0 for rounding errors, NaN for two infinite values."""
    with np.errstate(invalid="ignore"):
        gap = np.subtract(values, base)
    return np.where(is_negligible(gap, base) & ~np.isnan(gap), 0.0, gap)


def _p_value(gap: Interval, n_units: int, level: float) -> float:
    """Return the level at which the Student's t interval of a difference ends at 0; NaN for other intervals."""
    from scipy.special import stdtr, stdtrit

    reach = (gap.high - gap.low) / 2
    if not (
        reach > 0 and np.isclose(gap.value, (gap.low + gap.high) / 2, rtol=1e-9, atol=1e-9 * reach)
    ):
        return np.nan
    return float(
        2 * stdtr(n_units - 1, -abs(gap.value) / reach * stdtrit(n_units - 1, (1 + level) / 2))
    )


def _with_resolution(name: str, interval: Interval, sample: Sample) -> Interval:
    """Note minimum costs that depend on a handful of trials, whose intervals the study of coverage finds too short."""
    head, _, prior = name.partition(".")
    if (
        head not in ("min_dcf", "min_dcf_unnormalised")
        or interval.note
        or not measures.is_prior(prior)
    ):
        return interval
    n_target = int(sample.is_target.sum())
    if min((len(sample) - n_target) * float(prior), n_target * (1 - float(prior))) >= _FEW:
        return interval
    scarce = "P nontarget trials" if float(prior) < 0.5 else "(1 - P) target trials"
    return replace(interval, note=f"fewer than {_FEW} / {scarce}: the interval may be too short")
