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
>>> found = confidence_intervals(sample_of(scores, models == segments, speakers), mean_target, Resampling(200))
>>> found["mean_target"].low < 2 < found["mean_target"].high
True

`resampling` says what is drawn, `intervals` how an interval is made of it and by which method for each metric,
docs/studies/intervals.md how often such intervals hold the true value.

Interval of a minimum
---------------------
The smallest of several error rates is often one that chance made small, so that it lies below the true minimum on
average. The *true minimum* is the smallest true rate of several attackers on the same trials. With [L_a, U_a] for
attacker a, L_a at the usual level and U_a at one at which `AT_ONCE` attackers hold at once (Bonferroni), its interval
is

    low = min over a of L_a,    high = min over a of U_a.

The lower end needs no correction: it is at most that of the attacker who truly has the smallest rate. The upper end is
above the true minimum unless some U_a is below the true rate of a, for up to `AT_ONCE` attackers and scenarios on one
list of trials, however they depend on each other. As no end depends on who else was there, another attacker on the same
trials never raises either end; this is why already the first one pays for those that may come. Minima of parts are
joined by the same rule (`minimum_of`). Lists of other speakers are new chances to lie below: over L of them the upper
ends are moved to a level at which L times as many hold (`over_lists`).

*What a perfect anonymiser would show* is the reported minimum if scores carried no identity: the speakers of the
segments are permuted against those of the models, nobody staying in place, for all attackers alike. The nontarget
trials that this pairs count as target trials, the other ones as nontarget trials, and true target trials not at all.
So the sizes of lists, the choice of the smallest, and what attackers have in common stay as they are.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
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
    PLENTY,
    Differences,
    Interval,
    Intervals,
    interval_over_draws,
    rate_interval,
)
from evaluation.uncertainty.resampling import DEFAULT, Resampling, Sample, Statistic, bootstrap, sample_of
from evaluation.uncertainty.systems import Column, columns_of, difference_rows, paper_tables, system_rows
from spkbase.errors import DataError, errors_of, few
from spkbase.files import format_table
from spkbase.rounding import is_negligible
from spkbase.showing import Tabular, html_table, one_line

logger = logging.getLogger(__name__)
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
    """Return the trials of scores and key, joined and sorted for a bootstrap.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.trials.find_speakers`.
    bootstrap_by : {"speaker", "id", "trial"}
        What resamples draw. speaker: speakers of the maps and the key; id: the same, and each id that no map and no
        target trial names is a speaker, whatever it looks like; trial: far too narrow where trials share speakers.
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
    speakers, maps = None, {"model_speakers": model_speakers, "segment_speakers": segment_speakers}
    if bootstrap_by != "trial":
        if bootstrap_by == "speaker" and (doubt := doubt_speakers(key, **maps)) is not None:
            raise doubt.error(
                f"give the speakers of the {doubt.side}s (utt2spk): {doubt.side}_speakers=SPEAKERS; if each id is a"
                " speaker: bootstrap_by='id'; bootstrap_by='trial' is far too narrow where trials share speakers"
            )
        speakers = find_speakers(key, **maps)
    return sample_of(values, key.is_target, speakers), key


def confidence_intervals(
    samples: Sample | Sequence[Sample],
    statistic: Statistic,
    resampling: Resampling = DEFAULT,
    *,
    jobs: int | None = 1,
) -> Intervals:
    """Return each metric with its interval.

    Parameters
    ----------
    samples : Sample or sequence of Sample
        Trials; see `sample_of` and `sample_from`. Several are draws of the same trials of the same speakers, such as
        with other random numbers of an anonymiser: the value is the mean over them, and its interval holds speakers
        and draws.
    statistic : callable
        Gives metrics by name from `SortedScores`, such as `evaluation.metrics.Metrics`, which also says how its
        intervals are made. For several workers it must be importable.
    resampling : Resampling
        How many resamples are drawn, of which seed, and the level; the result is the same for any number of workers.
    jobs : int, optional
        Number of workers; all cores if None.

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
    samples = [samples] if isinstance(samples, Sample) else list(samples)
    if not (samples and all(isinstance(sample, Sample) for sample in samples)):
        raise DataError("expected samples of trials", remedy="make them by sample_from(scores, key)")
    first, rows = samples[0], getattr(statistic, "rows", measures.METRICS)
    for number, sample in enumerate(samples[1:], 2):
        _check_same_trials(first, sample, "draw 1", f"draw {number}")
    values = [statistic(sample.runs()) for sample in samples]
    resampled = bootstrap(samples, statistic, resampling, jobs=jobs)
    settings: dict[str, Any] = {"n_units": first.n_effective, "n_trials": first.n_least, "level": resampling.level}
    found = {}
    for name in values[0]:
        columns = [of_draw[name] for of_draw in values], [of_draw[name] for of_draw in resampled]
        ends = interval_over_draws(*columns, method=measures.method_of(name, metrics=rows), **settings)
        found[name] = _with_resolution(name, ends, first)
    return Intervals(found)


def paired_differences(
    samples: Mapping[str, Sample | Sequence[Sample]],
    statistic: Statistic,
    resampling: Resampling = DEFAULT,
    *,
    jobs: int | None = 1,
) -> Differences:
    """Return differences of systems on the same trials: metrics minus those of the first, in shared resamples.

    What is easy or hard for both systems cancels in the difference, whose interval is shorter than theirs.

    Parameters
    ----------
    samples : mapping of str to Sample or sequence of Sample
        Two systems at least, by name; their trials and speakers are the same ones. Several samples of a system are
        its draws, as in `confidence_intervals`; as many draws count as each system has.
    statistic, resampling, jobs
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
    if len(samples) < 2:
        raise DataError(f"expected at least two systems to compare, got {len(samples)}")
    base, *others = samples
    draws = {name: [given] if isinstance(given, Sample) else list(given) for name, given in samples.items()}
    count = min(map(len, draws.values()))
    every = [(name, sample) for name, of_it in draws.items() for sample in of_it[:count]]
    first = every[0][1]
    for name, sample in every[1:]:
        _check_same_trials(first, sample, base, name)
    resampled = bootstrap([sample for _, sample in every], statistic, resampling, jobs=jobs)
    values = [statistic(sample.runs()) for _, sample in every]
    rows, n_units = getattr(statistic, "rows", measures.METRICS), first.n_effective
    differences: dict[str, Intervals] = {}
    for place, name in enumerate(others, 1):
        differences[name] = Intervals()
        pairs = [(place * count + draw, draw) for draw in range(count)]
        for metric in values[0]:
            gaps = [float(_gap(values[one][metric], values[other][metric])) for one, other in pairs]
            drawn = [_gap(resampled[one][metric], resampled[other][metric]) for one, other in pairs]
            method = measures.method_of(metric, difference=True, metrics=rows)
            gap = interval_over_draws(gaps, drawn, method=method, n_units=n_units, level=resampling.level)
            differences[name][metric] = replace(gap, p_value=_p_value(gap, n_units, resampling.level))
    return Differences(differences)


def _gap(values: ArrayLike, base: ArrayLike) -> NDArray[np.float64]:
    """Return differences from the base, 0 where they are rounding, NaN of two infinite values."""
    with np.errstate(invalid="ignore"):
        gap = np.subtract(values, base)
    return np.where(is_negligible(gap, base) & ~np.isnan(gap), 0.0, gap)


def _p_value(gap: Interval, n_units: int, level: float) -> float:
    """Return the level at which an interval of Student's t around a difference would end at 0; NaN of any other."""
    from scipy.special import stdtr, stdtrit

    reach = (gap.high - gap.low) / 2
    if not (reach > 0 and np.isclose(gap.value, (gap.low + gap.high) / 2, rtol=1e-9, atol=1e-9 * reach)):
        return np.nan
    return float(2 * stdtr(n_units - 1, -abs(gap.value) / reach * stdtrit(n_units - 1, (1 + level) / 2)))


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
    """Compute every metric of scores, and with speakers its confidence interval.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Scores; for the actual costs and Cllr, natural LLRs. Infinite ones are legal. Series of pandas or polars will
        do, and `SortedScores` alone. With `labels` the first holds the scores of both classes, and there is no second.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), or Key, optional
        The class of each score: true for a target trial, or text (``target`` and ``nontarget``). `Scores` are joined
        with their `Key` by the pairs of ids. Truth values and text may be the second argument as well.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Which convention to follow; see `evaluation.metrics.conventions`.
    priors : sequence of str or float
        Target priors of the detection costs; the keys of the result are as they are written here.
    metrics : tuple of Metric
        What to compute: the built-in table, one with user-supplied rows (``METRICS + (mine,)``), part of it, or one
        with other options (`evaluation.metrics.metrics_with`).
    weights : array_like of float of shape (N,), optional
        How often each trial counts, once by default, with `labels`; `sort_scores` takes weights by class.
    speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and each segment of `Scores`, for intervals: a map, a function of the id, or a sign such
        as ``"/"`` that ends the speaker in each id.
    resamples, seed : int
        Resamples of the speakers for intervals of 95 %, and their seed. With speakers 1000 by default; without them
        none, and where they are asked for, ids are the speakers if they look like it.
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
        labels also if lengths or indices differ, or a label says neither; with speakers as `compare`.

    Examples
    --------
    >>> result = evaluate([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0])
    >>> result.eer["rocch"], result.zebra.tag, sorted(result.notes)
    (0.125, 'A', ['d_sys', 'tpr_at_fpr.0.0001', 'tpr_at_fpr.0.001', 'tpr_at_fpr.0.01'])
    >>> evaluate([0.5, -1.0, 2.0, 0.0], labels=[1, 0, 1, 0]).eer["rocch"]
    0.0
    """
    if labels is None and (isinstance(nontarget, Key) or (nontarget is not None and are_labels(nontarget))):
        labels, nontarget = nontarget, None
    search: dict[str, str] = {}
    if labels is None and weights is None and not isinstance(target, Scores):
        scores = measures.sort_scores(target, nontarget, missing=missing)
    elif labels is None or nontarget is not None or (weights is not None and isinstance(target, Scores)):
        remedy = "evaluate(target, nontarget), or evaluate(scores, labels=labels, weights=weights)"
        raise DataError("expected scores by class, or scores of all trials and labels", remedy=remedy)
    elif isinstance(target, Scores) or isinstance(labels, Key):
        given: Any = target, labels
        values, key = join_scores(*given, missing=missing)  # which refuses anything but Scores and a Key
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
    resampling = Resampling((0 if speakers is None else 1000) if resamples is None else resamples, seed)
    if not resampling.resamples:
        return result
    sample = _sample(target, labels, speakers, missing)
    sample = replace(sample, scores=sample.scores * math.log(llr_base))
    intervals = confidence_intervals(sample, statistic, resampling)
    return with_intervals(result, intervals, resampling.text(f"{sample.n_effective} speakers"))


def closed_search_note(values: NDArray[np.float64], key: Key, scores: measures.SortedScores) -> dict[str, str]:
    """Return how often a search among all models finds the target one, where tests and models are crossed.

    Scores with an offset for each test tell little at one threshold, and much within a test. Models and tests are
    crossed if nine in ten trials are of tests with one target trial, which have scores of five models or more, and of
    half as many as the median test.

    Parameters
    ----------
    values : ndarray of float64 of shape (N,)
        Scores in the order of the key.
    key : Key
    scores : SortedScores
        The same.

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
    found = f"the target one scores highest in {100 * first:.1f} % of tests (chance {100 * chance:.1f} %)"
    return {"identification": f"EER {100 * measures.eer(scores):.1f} %; in a search among the models of a test {found}"}


def with_intervals(result: measures.Evaluation, intervals: Intervals, note: str) -> measures.Evaluation:
    """Return a result with intervals and a note on what was resampled; see `Resampling.text`."""
    notes = {f"intervals.{name}": ends.note for name, ends in intervals.items() if ends.note}
    of_each = {name: (ends.low, ends.high) for name, ends in intervals.items()}
    return replace(result, intervals=of_each, notes=result.notes | {"intervals": note} | notes)


def _sample(scores: Any, key: Any, speakers: Speakers | None, missing: Missing) -> Sample:
    """Return the trials of a list whose speakers are given in words of Python, both sides in one."""
    if speakers is None and isinstance(key, Key) and (doubt := doubt_speakers(key)) is not None:
        raise doubt.error("give the speaker of each id: speakers={id: speaker, ...}, a function, or a sign such as '/'")
    return sample_from(scores, key, model_speakers=speakers, segment_speakers=speakers, missing=missing)[0]


@one_line
@dataclass(frozen=True)
class PairedComparison(Tabular):
    """Systems on the same trials: their metrics with intervals, and the differences with p-values.

    `print`, a notebook and `to_latex` show both as tables, in which p-values are corrected for their number (`holm`).

    Attributes
    ----------
    systems : dict of str to Intervals
        Each metric of each system with its interval over speakers.
    differences : Differences
        Of each system from the first one, with intervals and p-values.
    resampling : Resampling
        Of the speakers.
    units : str
        What was resampled.
    """

    systems: dict[str, Intervals]
    differences: Differences
    resampling: Resampling = DEFAULT
    units: str = "the speakers"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each metric of each system and of each difference; see `Differences.to_columns`."""
        return Differences(self._every).to_columns()

    @property
    def _every(self) -> dict[str, Intervals]:
        return self.systems | {f"{one} minus {next(iter(self.systems))}": gap for one, gap in self.differences.items()}

    def _tables(self, columns: Sequence[str] = ()) -> list[list[dict[str, str]]]:
        """Return a row for each system, and in a second table one for each difference, as ``spkver-eval metrics``."""
        shown, first = self._columns(columns), next(iter(self.systems))
        rows = system_rows(self.systems, shown), difference_rows(self.differences, shown, first)
        return [part for part in rows if part]

    def _columns(self, names: Sequence[str] = ()) -> list[Column]:
        first = next(iter(self.systems.values()))
        if unknown := [name for name in names if name not in first]:
            raise DataError(f"no metric {few(unknown, repr)}; there are: {', '.join(first)}")
        known = columns_of(measures.METRICS)
        return [known[name] for name in names or first]

    @property
    def _note(self) -> str:
        corrected = sum(map(len, self.differences.values())) > 1
        return self.resampling.text(self.units) + corrected * "; p-values are corrected for their number (Holm)"

    def to_latex(self, *, caption: str | None = None, label: str = "tab:metrics", columns: Sequence[str] = ()) -> str:
        r"""Return two tables for ``\input`` in LaTeX, with the rules of booktabs, as ``spkver-eval metrics --latex``.

        Parameters
        ----------
        caption, label : str, optional
            Of the first table, as TeX; by default the caption says how intervals were made and what is bold.
        columns : sequence of str
            Metrics by their names; all by default.
        """
        shown, first = self._columns(columns), next(iter(self.systems))
        how: dict[str, Any] = {"note": self.resampling.text(self.units), "caption": caption, "label": label}
        return paper_tables(self.systems, self.differences, shown, first, **how)

    def _repr_html_(self) -> str:
        shown = [html_table({name: [row[name] for row in rows] for name in rows[0]}) for rows in self._tables()]
        return "\n".join([*shown, f"<p>{self._note}</p>"])

    def __str__(self) -> str:
        return "\n\n".join([*map(format_table, self._tables()), self._note])


def compare(
    systems: Mapping[str, Scores],
    key: Key,
    *,
    speakers: Speakers | None = None,
    metrics: Sequence[str] = ("eer.rocch", "min_dcf.0.01", "min_cllr"),
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    jobs: int | None = 1,
    missing: Missing = "error",
) -> PairedComparison:
    """Compare systems on the same trials: metrics with intervals, paired differences with intervals and p-values.

    Speakers are resampled once for all systems, so that what is easy or hard for all cancels in the differences. The
    p-value is that of Student's t with the standard error of the resampled differences: below 0.05 where the 95 %
    interval excludes 0. Where the table shows several, it corrects them for their number (`holm`). (Scores of two
    systems have no common scale, so they cannot be permuted between systems.)

    Parameters
    ----------
    systems : mapping of str to Scores
        Systems by name; the others are compared with the first. A single one has intervals and no differences.
    key : Key
        Trials with their truth.
    speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and each segment: a map, a function of the id, or a sign such as ``"/"`` that ends the
        speaker in each id. Without it ids are speakers where they look like it; an error otherwise.
    metrics : sequence of str
        Names such as in `evaluation.metrics.METRICS`: ``"eer.rocch"``, ``"min_dcf.0.01"``, ``"cllr"``.
    resamples, seed, level
        Resamples of the speakers, two or more, their seed, and the coverage of the intervals.
    jobs : int, optional
        Number of workers; all cores if None.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`. Systems must have
        the same ones.

    Raises
    ------
    DataError
        As `sample_from` and `paired_differences`, or if a metric is not known.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = [(f"m{n // 20}", f"m{n % 20}") for n in range(400)]  # 20 speakers, each against each
    >>> is_target, rng = np.array([model == segment for model, segment in pairs]), np.random.default_rng(0)
    >>> key = Key.from_ids(*zip(*pairs), is_target)
    >>> noise = rng.standard_normal(400)
    >>> good, bad = (Scores.from_ids(*zip(*pairs), distance * is_target + noise) for distance in (4, 2))
    >>> found = compare({"good": good, "bad": bad}, key, metrics=["cllr"], resamples=100)
    >>> found.differences["bad"]["cllr"].p_value < 0.01
    True
    """
    if not (isinstance(systems, Mapping) and isinstance(key, Key)):
        raise DataError(f"expected Scores by name and a Key, got {type(systems).__name__} and {type(key).__name__}")
    if not systems:
        raise DataError("expected at least one system to compare, got none")
    known = [name for metric in measures.METRICS for name, _ in metric.numbers()]
    if unknown := [name for name in metrics if name not in known]:
        raise DataError(f"no metric {few(unknown, repr)}; there are: {', '.join(known)}")
    needed = {row.name for name in metrics if (row := measures.find_metric(name, measures.METRICS)[0]) is not None}
    needed |= {part for row in measures.METRICS if row.name in needed for part in row.of}
    statistic = measures.Metrics(metrics=tuple(row for row in measures.METRICS if row.name in needed))
    samples = {}
    for name, scores in systems.items():
        with errors_of(None, before=f"{name}: "):
            samples[name] = _sample(scores, key, speakers, missing)
    warn_of_repeats({name: sample.scores for name, sample in samples.items()})
    for name, sample in samples.items():
        if (turned := measures.reversal(sample.runs())) is not None and turned.clear:
            logger.warning("%s: %s", name, turned.text)
    resampling = Resampling(resamples, seed, level)
    found = {name: confidence_intervals(sample, statistic, resampling, jobs=jobs) for name, sample in samples.items()}
    gaps = paired_differences(samples, statistic, resampling, jobs=jobs) if len(samples) > 1 else {}

    def chosen(intervals: Mapping[str, Interval]) -> Intervals:
        return Intervals({name: intervals[name] for name in metrics})

    differences = Differences({name: chosen(intervals) for name, intervals in gaps.items()})
    units = f"{next(iter(samples.values())).n_effective} speakers"
    return PairedComparison({name: chosen(ends) for name, ends in found.items()}, differences, resampling, units)


def warn_of_repeats(scores: Mapping[str, NDArray[np.float64]]) -> None:
    """Warn where two systems have the same scores of the same trials.

    Parameters
    ----------
    scores : mapping of str to ndarray of float64 of shape (N,)
        Of each system, in one order of the trials.
    """
    for first, second in combinations(scores, 2):
        if np.array_equal(scores[first], scores[second]):
            logger.warning("%s and %s have the same scores: was one given for two systems?", first, second)


def _with_resolution(name: str, interval: Interval, sample: Sample) -> Interval:
    """Note where a least cost depends on a handful of trials: the study of coverage finds its interval too short."""
    head, _, prior = name.partition(".")
    if head not in ("min_dcf", "min_dcf_unnormalised") or interval.note or not measures.is_prior(prior):
        return interval
    n_target = int(sample.is_target.sum())
    if min((len(sample) - n_target) * float(prior), n_target * (1 - float(prior))) >= _FEW:
        return interval
    side = "nontarget trials" if float(prior) < 0.5 else "target trials"
    scarce = "P" if float(prior) < 0.5 else "(1 - P)"
    return replace(interval, note=f"fewer than {_FEW} / {scarce} {side}: the interval may be too short")


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


AT_ONCE = 16
"""How many attackers of equal strength the upper end of each is made for."""

METHOD = f"smallest ends over attackers, the upper ones corrected for {AT_ONCE} attackers (Bonferroni)"
LARGEST = f"largest ends over attackers, the lower ones corrected for {AT_ONCE} attackers (Bonferroni)"


def minimum_of(intervals: Iterable[Interval]) -> Interval:
    """Return the smallest of several values with the interval of the smallest of their true values.

    Parameters
    ----------
    intervals : iterable of Interval
        Values with their lower ends, and their upper ends at a level that holds for several at once.

    Returns
    -------
    Interval
        The smallest value and the smallest of either end; values and ends that are not known do not count.

    Raises
    ------
    DataError
        If there is none.

    Examples
    --------
    >>> found = minimum_of([Interval(0.2, 0.1, 0.3), Interval(0.25, 0.05, 0.4)])
    >>> found.value, found.low, found.high
    (0.2, 0.05, 0.3)
    """
    given = list(intervals)
    if not given:
        raise DataError("expected at least one value to take the minimum of")
    smallest = min(given, key=lambda one: one.value if one.known else np.inf)
    low, high = (float(np.fmin.reduce([getattr(one, end) for one in given])) for end in ("low", "high"))
    return replace(smallest, low=low, high=high, method=METHOD)


def over_lists(
    interval: Interval, n_lists: int, *, before: int = 1, n_units: float, n_trials: float, level: float = 0.95
) -> Interval:
    """Return an interval whose upper end holds for `AT_ONCE` attackers on each of several lists at once.

    Resamples are not needed again. On the logit scale the distance of the end from the value grows as the quantiles of
    Student's t do; where fewer than 8 trials are errors, the end moves as that of `rate_interval` does.

    Parameters
    ----------
    interval : Interval
        A minimum on one list, or on `before` of them.
    n_lists : int
        Lists of trials of other speakers, over which the minimum is taken.
    before : int
        Lists for which the upper end holds as it is.
    n_units, n_trials : float
        Numbers of speakers and target trials of a list; speakers are taken to be many where they are not known.
    level : float
        Share of true values that the interval should cover.

    Examples
    --------
    >>> one = Interval(0.2, 0.12, 0.35)
    >>> over_lists(one, 1, n_units=30, n_trials=300).high, round(over_lists(one, 12, n_units=30, n_trials=300).high, 3)
    (0.35, 0.402)
    """
    from scipy.special import expit, logit, stdtrit

    if n_lists <= before or not interval.has_interval or not 0 < interval.high < 1:
        return interval
    n_units = n_units if n_units >= 2 else math.inf
    levels = [1 - (1 - level) / (AT_ONCE * count) for count in (before, n_lists)]
    if interval.value * n_trials < PLENTY:
        settings: dict[str, Any] = {"n_units": int(min(n_units, n_trials)), "n_trials": int(n_trials)}
        ends = [rate_interval(interval.value, level=each, **settings)[1] for each in levels]
        further = logit(ends[1]) - logit(ends[0])
    else:
        quantiles = [stdtrit(n_units - 1, (1 + each) / 2) for each in levels]
        reach = logit(interval.high) - logit(max(interval.value, interval.high / 20))
        further = (quantiles[1] / quantiles[0] - 1) * reach
    return replace(interval, high=float(expit(logit(interval.high) + max(further, 0.0))))


def maximum_of(intervals: Iterable[Interval]) -> Interval:
    """Return the largest of several values with the interval of the largest of their true values; see `minimum_of`.

    Parameters
    ----------
    intervals : iterable of Interval
        Values with their upper ends, and their lower ends at a level that holds for several at once.

    Examples
    --------
    >>> found = maximum_of([Interval(0.8, 0.6, 0.9), Interval(0.7, 0.5, 0.95)])
    >>> found.value, found.low, found.high
    (0.8, 0.6, 0.95)
    """
    least = minimum_of(replace(one, value=-one.value, low=-one.high, high=-one.low) for one in intervals)
    return replace(least, value=-least.value, low=-least.high, high=-least.low, method=LARGEST)


@one_line
@dataclass(frozen=True)
class Minimum:
    """The smallest error rate of several attackers.

    Attributes
    ----------
    attacker : str
        Who has it.
    interval : Interval
        Of the smallest of the true rates.
    perfect, perfect_low : float
        What a perfect anonymiser would show in its place on the same trials: mean and 5 % quantile; NaN where it was
        not asked for.
    """

    attacker: str
    interval: Interval
    perfect: float = np.nan
    perfect_low: float = np.nan

    def to_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        ends = self.interval
        report: dict[str, Any] = {"attacker": self.attacker, **ends.numbers(), "method": ends.method}
        if not np.isnan(self.perfect):
            report["perfect"] = {"mean": self.perfect, "low": self.perfect_low}
        return report | ({"note": ends.note} if ends.note else {})

    @classmethod
    def from_dict(cls, report: Mapping[str, Any] | None) -> Minimum | None:
        """Return a minimum from a report; None without one."""
        if not report:
            return None
        value, low, high = (np.nan if report.get(name) is None else report[name] for name in ("value", "low", "high"))
        interval = Interval(value, low, high, report.get("method", ""), report.get("note", ""))
        perfect = report.get("perfect") or {}
        return cls(report.get("attacker", ""), interval, perfect.get("mean", np.nan), perfect.get("low", np.nan))


def minima_over_attackers(
    samples: Mapping[str, Sequence[Sample]],
    groups: Mapping[str, Collection[str]],
    *,
    reading: str = "rocch",
    resampling: Resampling = DEFAULT,
    permutations: int = 100,
) -> dict[str, Minimum]:
    """Return the smallest equal error rate of each group of attackers with its interval, from one bootstrap of all.

    Parameters
    ----------
    samples : mapping of str to sequence of Sample
        For each attacker (or attacker in a scenario) its trials, one `Sample` for each draw of the anonymiser, whose
        rates are averaged. The trials and their speakers are the same ones everywhere.
    groups : mapping of str to collection of str
        Names of attackers by the name of their group; they may be in several.
    reading : str
        Of the equal error rate, see `evaluation.metrics.eer`.
    resampling : Resampling
        How many resamples are drawn, of which seed, and the level.
    permutations : int
        How often speakers are permuted for what a perfect anonymiser would show; 0 not to ask for it.

    Returns
    -------
    dict of str to Minimum
        By group; a group without attackers is left out.

    Raises
    ------
    DataError
        If there is no attacker, or the trials differ.
    """
    if not samples or not all(samples.values()):
        raise DataError("expected trials of at least one attacker, each with at least one draw")
    names = [name for name, draws in samples.items() for _ in draws]
    every = [sample for draws in samples.values() for sample in draws]
    first = every[0]
    for name, sample in zip(names, every, strict=True):
        _check_same_trials(first, sample, names[0], name)
    statistic = partial(_rate, reading)
    rates = np.array([statistic(sample.runs())["eer"] for sample in every])
    found = bootstrap(every, statistic, resampling)
    resampled = np.array([columns["eer"] for columns in found])
    rows = {name: [row for row, owner in enumerate(names) if owner == name] for name in samples}
    settings: dict[str, Any] = {"method": measures.method_of(f"eer.{reading}"), "n_units": first.n_effective}
    settings["n_trials"] = first.n_least
    levels, ends = (resampling.level, 1 - (1 - resampling.level) / AT_ONCE), {}
    for name, places in rows.items():
        usual, wide = (
            interval_over_draws(rates[places], resampled[places], level=level, **settings) for level in levels
        )
        ends[name] = replace(usual, high=wide.high)
    permuted = _permuted(every, statistic, permutations, resampling.seed)
    by_name = {name: permuted[:, places].mean(axis=1) for name, places in rows.items()}
    minima = {}
    for group, members in groups.items():
        chosen = [name for name in samples if name in members]
        if chosen:
            best = min(chosen, key=lambda name: ends[name].value)
            smallest = np.min([by_name[name] for name in chosen], axis=0)
            perfect = (float(smallest.mean()), float(np.quantile(smallest, 0.05))) if len(smallest) else ()
            minima[group] = Minimum(best, minimum_of(ends[name] for name in chosen), *perfect)
    return minima


def _rate(reading: str, scores: measures.SortedScores) -> dict[str, float]:
    return {"eer": measures.eer(scores, method=reading)}


def _permuted(samples: Sequence[Sample], statistic: Statistic, permutations: int, seed: int) -> NDArray[np.float64]:
    """Rates of each sample under permutations of speakers, (permutations, samples); none of trials without speakers."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, found = samples[0], []
    if first.by_trial:
        return np.empty((0, len(samples)))
    others = [np.flatnonzero(~sample.is_target) for sample in samples]
    models, segments = first.first[others[0]], first.second[others[0]]
    pairs = coo_array((np.ones(len(models)), (models, segments)), shape=(first.n_units + 1,) * 2)
    parts = connected_components(pairs, directed=False)[1]  # such as the sexes, where trials are within them
    rng = np.random.default_rng(seed)
    for _ in range(permutations):
        partner = np.arange(first.n_units + 1)
        order = rng.permutation(first.n_units)
        for part in np.unique(parts):
            members = order[parts[order] == part]
            partner[members] = np.roll(members, 1)  # a cycle: nobody stays in place
        if 0 < (partner[segments] == models).sum() < len(models):
            rates = []
            for sample, rows in zip(samples, others, strict=True):
                scores, paired = sample.scores[rows], partner[sample.second[rows]] == sample.first[rows]
                rates.append(statistic(measures.sort_scores(scores[paired], scores[~paired]))["eer"])
            found.append(rates)
    return np.array(found).reshape(-1, len(samples))
