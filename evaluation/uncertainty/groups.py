"""Metrics for each group of speakers or segments (sex, accent, language, ...), the extreme groups, and the gap.

Conventions
-----------
`evaluation.trials.speakers` decides which group a trial belongs to; trials across groups belong to none and are
counted.

The highest of several estimates is too high, and the gap between highest and lowest too wide, even if all groups are
alike. So the intervals of the highest value, the lowest one and the gap come from intervals that hold for all groups
(for all pairs of groups) at once: the highest true value is at least the highest of the lower ends, and at most the
highest of the upper ones. Groups share the resamples of speakers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import METRICS, Method, Metric, find_metric, method_of
from evaluation.uncertainty.intervals import Interval, interval, simultaneous
from evaluation.uncertainty.resampling import NO_INTERVALS, Resampling, Sample, Statistic, bootstrap
from spkbase.errors import DataError
from spkbase.progress import verbosely
from spkbase.showing import Tabular, one_line


@one_line
@dataclass(frozen=True)
class Group:
    """The trials of a group and their metrics.

    Parameters
    ----------
    n_target, n_nontarget : int
        Number of trials.
    metrics : dict of str to float
        By name; empty where a class has no trial.
    intervals : dict of str to Interval
        By name; empty without resamples.
    note : str
        Why a value is missing.
    """

    n_target: int
    n_nontarget: int
    metrics: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    note: str = ""


@one_line
@dataclass(frozen=True)
class Extremes:
    """Groups with the highest and the lowest value of a metric, and the gap, with intervals if there were resamples.

    Parameters
    ----------
    highest, lowest : str
        Names of the groups.
    worst : str
        The group that is worse off: that with the highest error, cost or disclosed evidence, but the lowest true-accept
        rate. For people who do not want to be recognised, error rates have the opposite meaning.
    highest_value, lowest_value, gap : Interval
        The values with simultaneous intervals.
    """

    highest: str
    lowest: str
    worst: str
    highest_value: Interval
    lowest_value: Interval
    gap: Interval


@one_line
@dataclass(frozen=True)
class Groups(Tabular):
    """Metrics by group.

    Parameters
    ----------
    column : str
        Column of the table.
    groups : dict of str to Group
        By name, sorted.
    extremes : dict of str to Extremes
        By metric, where at least two groups have a finite value.
    n_across : int
        Trials between two groups, which belong to none.
    n_unknown : int
        Trials of ids whose group is blank.
    metrics : tuple of Metric
        The table of metrics, with titles and directions.
    """

    column: str
    groups: dict[str, Group]
    extremes: dict[str, Extremes]
    n_across: int
    n_unknown: int
    metrics: tuple[Metric, ...] = METRICS

    def headline(self) -> str:
        """Return how many groups have no metrics because a class is empty; nothing if all have metrics."""
        lacking = [name for name, group in self.groups.items() if not group.metrics]
        if not lacking:
            return ""
        without = sum(not self.groups[name].n_nontarget for name in lacking)
        return (
            f"{len(lacking)} of {len(self.groups)} groups have no metrics, {without} of them as they have no nontarget"
            " trial: trials across groups belong to none. For a row of each speaker use per_speaker, or --by speaker"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each group and metric: names, numbers of trials, the value and its interval."""
        blank = Interval()
        names = (self.column, "n_target", "n_nontarget", "metric", "value", "low", "high")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for name, group in self.groups.items():
            for metric, value in group.metrics.items():
                ends = group.intervals.get(metric, blank)
                row = (name, group.n_target, group.n_nontarget, metric, value, ends.low, ends.high)
                for column, cell in zip(columns.values(), row, strict=True):
                    column.append(cell)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything for a report, intervals as [low, high]."""
        groups = {}
        for name, group in self.groups.items():
            ends = {metric: [span.low, span.high] for metric, span in group.intervals.items()}
            groups[name] = {part: value for part, value in vars(group).items() if value != ""} | {
                "intervals": ends
            }
        extremes = {}
        for metric, extreme in self.extremes.items():
            parts = dict(vars(extreme))
            for name, part in parts.items():
                if isinstance(part, Interval):
                    parts[name] = part.to_dict()
            extremes[metric] = parts
        counts = {"n_across_groups": self.n_across, "n_unknown": self.n_unknown}
        return {"column": self.column, "groups": groups, "extremes": extremes} | counts


@verbosely
def evaluate_groups(
    sample: Sample,
    groups: np.ndarray,
    names: Sequence[str],
    statistic: Statistic,
    resampling: Resampling = NO_INTERVALS,
    *,
    column: str = "group",
    jobs: int | None = 1,
    verbose: bool = True,
) -> Groups:
    """Compute metrics for each group, the extreme groups and the gap.

    Parameters
    ----------
    sample : Sample
        All trials; see `evaluation.uncertainty.sample_from`.
    groups : ndarray of int of shape (N,)
        Group of each trial in the order that the sample was made from; -1 across groups, -2 unknown. See
        `evaluation.trials.group_trials`.
    names : sequence of str
        Names of the groups.
    statistic : callable
        Computes metrics by name from `SortedScores`, such as `evaluation.metrics.Metrics`, which also has the titles
        and directions of its metrics.
    resampling : Resampling
        Number of resamples, seed and level; no intervals by default.
    column : str
        Name of the grouping, for reports.
    jobs : int, optional
        Number of workers; all cores if None.
    verbose : bool
        Whether to show progress.

    Raises
    ------
    DataError
        If shapes disagree, or as in `bootstrap`.
    """
    metrics = getattr(statistic, "rows", METRICS)
    every = sample_by_group(sample, groups, names)
    parts = {name: part for name, part in every.items() if part.n_least}
    values = {name: dict(statistic(part.runs())) for name, part in parts.items()}
    resampled: dict[str, dict[str, np.ndarray]] = {}
    if resampling.resamples and parts:
        drawn = bootstrap(list(parts.values()), statistic, resampling, jobs=jobs)
        resampled = dict(zip(parts, drawn, strict=True))
    results = {}
    for name, part in every.items():
        counts = (int(part.is_target.sum()), int((~part.is_target).sum()))
        if name not in parts:
            results[name] = Group(*counts, note="no trial of one class: metrics are undefined")
        elif resampled and part.n_effective < 2:
            results[name] = Group(*counts, values[name], note="one speaker only: no intervals")
        else:
            settings: Any = {
                "n_units": part.n_effective,
                "n_trials": part.n_least,
                "level": resampling.level,
            }
            intervals = {}
            for metric, resampled_values in resampled.get(name, {}).items():
                method = method_of(metric, metrics=metrics)
                intervals[metric] = interval(
                    values[name][metric], resampled_values, method=method, **settings
                )
            results[name] = Group(*counts, values[name], intervals)
    extremes = _extremes(parts, values, resampled, resampling.level, metrics)
    return Groups(
        column, results, extremes, int((groups == -1).sum()), int((groups == -2).sum()), metrics
    )


def sample_by_group(
    sample: Sample, groups: NDArray[Any], names: Sequence[str]
) -> dict[str, Sample]:
    """Return the trials of each group; see `evaluate_groups`."""
    if groups.shape != sample.scores.shape:
        raise DataError(
            f"expected a group for each of {len(sample)} trials, got shape {groups.shape}"
        )
    ordered = groups[sample.order]
    return {name: sample.subset(ordered == code) for code, name in enumerate(names)}


def _extremes(
    parts: Mapping[str, Sample],
    values: Mapping[str, Mapping[str, float]],
    resampled: Mapping[str, Mapping[str, np.ndarray]],
    level: float,
    metrics: tuple[Metric, ...],
) -> dict[str, Extremes]:
    """Return the extreme groups of each metric with finite values in at least two groups."""
    extremes = {}
    for metric in next(iter(values.values()), {}):
        finite = {name: parts[name] for name in values if np.isfinite(values[name][metric])}
        if len(finite) >= 2:
            extremes[metric] = _extreme(metric, finite, values, resampled, level, metrics)
    return extremes


def _extreme(
    metric: str,
    parts: Mapping[str, Sample],
    values: Mapping[str, Mapping[str, float]],
    resampled: Mapping[str, Mapping[str, np.ndarray]],
    level: float,
    metrics: tuple[Metric, ...],
) -> Extremes:
    names = list(parts)
    ours = np.array([values[name][metric] for name in names])
    high = int(ours.argmax())
    low = int(ours.argmin())
    extreme_values = (ours[high], ours[low], ours[high] - ours[low])
    row, _ = find_metric(metric, metrics)
    worst = low if row is not None and row.worse == "low" else high
    extreme_names = (names[high], names[low], names[worst])
    n_units = min(part.n_effective for part in parts.values())
    n_trials = min(part.n_least for part in parts.values())
    draws = _finite_draws(metric, names, resampled)
    if len(draws) < 2 or n_units < 2:
        if not resampled:
            note = "no resamples"
        else:
            note = "a group of one speaker, or of infinite values: no intervals"
        blank = [Interval(float(value), np.nan, np.nan, "", note) for value in extreme_values]
        return Extremes(*extreme_names, *blank)
    method = method_of(metric, metrics=metrics)
    # groups differ in size and so in bias, which does not cancel as it does for systems on the same trials
    gap_method = Method("identity", factor=method.factor)
    lower, upper = simultaneous(
        ours, draws, method=method, n_units=n_units, n_trials=n_trials, level=level
    )
    first, second = np.array(list(permutations(range(len(names)), 2))).T
    gap_lower, gap_upper = simultaneous(
        ours[first] - ours[second],
        draws[:, first] - draws[:, second],
        method=gap_method,
        n_units=n_units,
        level=level,
    )
    ends = [(lower.max(), upper.max(), method), (lower.min(), upper.min(), method)]
    ends.append((max(0.0, gap_lower.max()), gap_upper.max(), gap_method))
    intervals = []
    for value, (start, stop, used) in zip(extreme_values, ends, strict=True):
        intervals.append(
            Interval(float(value), float(start), float(stop), f"{used.name}, simultaneous")
        )
    return Extremes(*extreme_names, *intervals)


def _finite_draws(
    metric: str, names: Sequence[str], resampled: Mapping[str, Mapping[str, np.ndarray]]
) -> np.ndarray:
    """Return the resampled values of a metric, (draws, groups), from the draws in which all groups have finite ones."""
    if not resampled:
        return np.zeros((0, len(names)))
    draws = np.stack([resampled[name][metric] for name in names], axis=1)
    finite: np.ndarray = draws[np.isfinite(draws).all(axis=1)]
    return finite
