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
docs/uncertainty.md how often such intervals hold the true value.

Interval of a minimum
---------------------
The smallest of several error rates is often one that chance made small, so that it lies below the true minimum on
average. The *true minimum* is the smallest true rate of several attackers on the same trials. With [L_a, U_a] for
attacker a, L_a at the usual level and U_a at one at which `AT_ONCE` attackers hold at once (Bonferroni), its interval
is

    low = min over a of L_a,    high = min over a of U_a.

The lower end needs no correction: it is at most that of the attacker who truly has the smallest rate. The upper end is
above the true minimum unless some U_a is below the true rate of a, for up to `AT_ONCE` attackers, scenarios and sets,
however they depend on each other. As no end depends on who else was there, another attacker on the same trials never
raises either end; this is why already the first one pays for those that may come. Minima of parts are joined by the
same rule (`minimum_of`): those of scenarios, and of sets of other speakers.

*What a perfect anonymiser would show* is the reported minimum if scores carried no identity: the speakers of the
segments are permuted against those of the models, nobody staying in place, for all attackers alike. The nontarget
trials that this pairs count as target trials, the other ones as nontarget trials, and true target trials not at all.
So the sizes of lists, the choice of the smallest, and what attackers have in common stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import (
    FRACTION,
    METRICS,
    Metrics,
    SortedScores,
    eer,
    find_metric,
    is_prior,
    method_of,
    reversal,
    sort_scores,
)
from evaluation.trials import Key, Scores, doubt_speakers, find_speakers, join_scores
from evaluation.uncertainty.intervals import Differences, Interval, Intervals, holm, interval_over_draws
from evaluation.uncertainty.resampling import DEFAULT, Resampling, Sample, Statistic, bootstrap, sample_of
from spkbase.errors import DataError
from spkbase.files import format_table
from spkbase.showing import one_line

logger = logging.getLogger(__name__)
_FEW = 10


def sample_from(
    scores: Scores,
    key: Key,
    *,
    model_speakers: Mapping[str, str] | None = None,
    segment_speakers: Mapping[str, str] | None = None,
    bootstrap_by: Literal["speaker", "id", "trial"] = "speaker",
    missing: str = "error",
) -> tuple[Sample, Key]:
    """Return the trials of scores and key, joined and sorted for a bootstrap.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does.
    model_speakers, segment_speakers : mapping of str to str, optional
        Speaker of each model and segment; see `evaluation.trials.speakers` for what holds without.
    bootstrap_by : {"speaker", "id", "trial"}
        What resamples draw. speaker: speakers of the maps and the key; id: the same, and each id that no map and no
        target trial names is a speaker, whatever it looks like; trial: far too narrow where trials share speakers.
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
    first, rows = samples[0], getattr(statistic, "rows", METRICS)
    for number, sample in enumerate(samples[1:], 2):
        _check_same_trials(first, sample, "draw 1", f"draw {number}")
    values = [statistic(sample.runs()) for sample in samples]
    resampled = bootstrap(samples, statistic, resampling, jobs=jobs)
    settings: dict[str, Any] = {"n_units": first.n_effective, "n_trials": first.n_least, "level": resampling.level}
    found = {}
    for name in values[0]:
        columns = [of_draw[name] for of_draw in values], [of_draw[name] for of_draw in resampled]
        ends = interval_over_draws(*columns, method=method_of(name, metrics=rows), **settings)
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
    rows, n_units = getattr(statistic, "rows", METRICS), first.n_effective
    differences: dict[str, Intervals] = {}
    for place, name in enumerate(others, 1):
        differences[name] = Intervals()
        pairs = [(place * count + draw, draw) for draw in range(count)]
        for metric in values[0]:
            with np.errstate(invalid="ignore"):  # of two infinite values it is undefined
                gaps = [float(np.subtract(values[one][metric], values[other][metric])) for one, other in pairs]
                drawn = [resampled[one][metric] - resampled[other][metric] for one, other in pairs]
            method = method_of(metric, difference=True, metrics=rows)
            gap = interval_over_draws(gaps, drawn, method=method, n_units=n_units, level=resampling.level)
            differences[name][metric] = replace(gap, p_value=_p_value(gap, n_units, resampling.level))
    return Differences(differences)


def _p_value(gap: Interval, n_units: int, level: float) -> float:
    """Return the level at which an interval of Student's t around a difference would end at 0; NaN of any other."""
    from scipy.special import stdtr, stdtrit

    reach = (gap.high - gap.low) / 2
    if not (reach > 0 and np.isclose(gap.value, (gap.low + gap.high) / 2, rtol=1e-9, atol=1e-9 * reach)):
        return np.nan
    return float(2 * stdtr(n_units - 1, -abs(gap.value) / reach * stdtrit(n_units - 1, (1 + level) / 2)))


@one_line
@dataclass(frozen=True)
class PairedComparison:
    """Systems on the same trials: `print` shows their metrics with intervals, and the differences with p-values.

    Attributes
    ----------
    systems : dict of str to Intervals
        Each metric of each system with its interval over speakers.
    differences : Differences
        Of each system from the first one, with intervals and p-values.
    resampling : Resampling
        Of the speakers.
    """

    systems: dict[str, Intervals]
    differences: Differences
    resampling: Resampling = DEFAULT

    def __str__(self) -> str:
        def cell(metric: str, ends: Interval) -> str:
            row = find_metric(metric, METRICS)[0]
            scale, sign = (100, " %") if row is not None and row.unit == FRACTION else (1, "")
            return f"{scale * ends.value:.4g}{sign} [{scale * ends.low:.4g}, {scale * ends.high:.4g}]"

        first = next(iter(self.systems))
        rows = [
            {"metric": metric, **{name: cell(metric, found[metric]) for name, found in self.systems.items()}}
            for metric in self.systems[first]
        ]
        gaps = [
            {"metric": metric, "systems": f"{name} minus {first}", "difference": cell(metric, gap), "p": gap.p_value}
            for name, found in self.differences.items()
            for metric, gap in found.items()
        ]
        heading = "p-value (Holm)" if len(gaps) > 1 else "p-value"
        corrected = holm([row.pop("p") for row in gaps])
        gaps = [row | {heading: f"{value:.3g}"} for row, value in zip(gaps, corrected, strict=True)]
        drawn = f"{100 * self.resampling.level:g} % intervals by {self.resampling.resamples} resamples of the speakers"
        return f"{format_table(rows)}\n\n{format_table(gaps)}\n\n{drawn}"


def compare(
    systems: Mapping[str, Scores],
    key: Key,
    *,
    speakers: Mapping[str, str] | None = None,
    metrics: Sequence[str] = ("eer.rocch", "min_dcf.0.01", "min_cllr"),
    resampling: Resampling = DEFAULT,
    jobs: int | None = 1,
) -> PairedComparison:
    """Compare systems on the same trials: metrics with intervals, paired differences with intervals and p-values.

    Speakers are resampled once for all systems, so that what is easy or hard for all cancels in the differences. The
    p-value is that of Student's t with the standard error of the resampled differences: below 0.05 where the 95 %
    interval excludes 0. Where the table shows several, it corrects them for their number (`holm`). (Scores of two
    systems have no common scale, so they cannot be permuted between systems.)

    Parameters
    ----------
    systems : mapping of str to Scores
        Two systems or more by name; the others are compared with the first.
    key : Key
        Trials with their truth.
    speakers : mapping of str to str, optional
        Speaker of each model and each segment. Without it ids are speakers where they look like it; an error otherwise.
    metrics : sequence of str
        Names such as in `evaluation.metrics.METRICS`: ``"eer.rocch"``, ``"min_dcf.0.01"``, ``"cllr"``.
    resampling, jobs
        See `confidence_intervals`.

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
    >>> found = compare({"good": good, "bad": bad}, key, metrics=["cllr"], resampling=Resampling(100))
    >>> found.differences["bad"]["cllr"].p_value < 0.01
    True
    """
    if not (isinstance(systems, Mapping) and isinstance(key, Key)):
        raise DataError(f"expected Scores by name and a Key, got {type(systems).__name__} and {type(key).__name__}")
    if speakers is None and (doubt := doubt_speakers(key)) is not None:
        raise doubt.error("give the speaker of each model and segment: speakers={id: speaker, ...}")
    samples = {
        name: sample_from(scores, key, model_speakers=speakers, segment_speakers=speakers)[0]
        for name, scores in systems.items()
    }
    for name, sample in samples.items():
        if (turned := reversal(sample.runs())) is not None and turned.clear:
            logger.warning("%s: %s", name, turned.text)
    differences = paired_differences(samples, Metrics(), resampling, jobs=jobs)
    found = {name: confidence_intervals(sample, Metrics(), resampling, jobs=jobs) for name, sample in samples.items()}
    if unknown := [name for name in metrics for known in found.values() if name not in known]:
        known = ", ".join(next(iter(found.values())))
        raise DataError(f"no metric {', '.join(map(repr, dict.fromkeys(unknown)))}; there are: {known}")

    def chosen(intervals: Intervals) -> Intervals:
        return Intervals({name: intervals[name] for name in metrics})

    gaps = Differences({name: chosen(intervals) for name, intervals in differences.items()})
    return PairedComparison({name: chosen(intervals) for name, intervals in found.items()}, gaps, resampling)


def _with_resolution(name: str, interval: Interval, sample: Sample) -> Interval:
    """Note where a least cost depends on a handful of trials: the study of coverage finds its interval too short."""
    head, _, prior = name.partition(".")
    if head not in ("min_dcf", "min_dcf_unnormalised") or interval.note or not is_prior(prior):
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
    settings: dict[str, Any] = {"method": method_of(f"eer.{reading}"), "n_units": first.n_effective}
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


def _rate(reading: str, scores: SortedScores) -> dict[str, float]:
    return {"eer": eer(scores, method=reading)}


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
                rates.append(statistic(sort_scores(scores[paired], scores[~paired]))["eer"])
            found.append(rates)
    return np.array(found).reshape(-1, len(samples))
