"""Systems on the same trials: metrics with intervals, groups of trials, and paired differences.

`evaluate_systems` computes what ``spkver-eval metrics`` reports: each system may have its own key, and notes say what
cannot be compared. `compare` is strict and short: one key, a few metrics, an error where trials differ.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from evaluation.metrics import (
    METRICS,
    PRIORS,
    Evaluation,
    Metric,
    Metrics,
    SortedScores,
    find_metric,
    is_prior,
    reversal,
    sort_scores,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    find_speakers,
    given_systems,
    group_trials,
    join_scores,
    order_free_digest,
    warn_of_repeats,
)
from evaluation.uncertainty.confidence import (
    check_speakers,
    closed_search_note,
    confidence_intervals,
    paired_differences,
    sample_from,
    with_intervals,
)
from evaluation.uncertainty.groups import Groups, evaluate_groups
from evaluation.uncertainty.intervals import Differences, Interval, Intervals
from evaluation.uncertainty.resampling import DEFAULT, NO_INTERVALS, Resampling, Sample
from evaluation.uncertainty.systems import (
    Column,
    columns_of,
    difference_rows,
    paper_tables,
    system_rows,
)
from spkbase.errors import DataError, errors_of, few
from spkbase.files import format_table, write_text
from spkbase.progress import verbosely
from spkbase.showing import Tabular, html_table, one_line

logger = logging.getLogger(__name__)

Unit = Literal["speaker", "id", "trial"]
"""What a resample draws; see `sample_from`."""

_UNITS = {"speaker": "speakers", "id": "ids, each counted as a speaker"}


@one_line
@dataclass(frozen=True, eq=False)
class EvaluatedSystem:
    """Every metric of one system.

    Attributes
    ----------
    result : Evaluation
        The numbers, their intervals and notes.
    sample : Sample or None
        The trials with their speakers; None if neither intervals nor groups were requested.
    intervals : Intervals
        Interval of each metric, with its method; empty without resamples.
    groups : Groups or None
        The metrics of each group of trials.
    key : Key
        The trials with their truth.
    scores : SortedScores
        The scores of both classes.
    """

    result: Evaluation
    sample: Sample | None
    intervals: Intervals
    groups: Groups | None
    key: Key
    scores: SortedScores

    @property
    def has_ids(self) -> bool:
        """Whether trials have ids; they have none if scores and key were joined by their order."""
        ids: list[str] = self.key.segment_ids.tolist()
        return ids != ["unknown"]

    @cached_property
    def digest(self) -> int:
        """A hash that is equal for keys with the same trials and labels."""
        return order_free_digest(self.key)

    def to_dict(self) -> dict[str, Any]:
        """Return the report of the system: the report of `Evaluation`, the methods of its intervals, and its groups."""
        report = self.result.to_dict()
        if self.intervals:
            report["interval_methods"] = {
                name: ends.method for name, ends in self.intervals.items()
            }
        if self.groups is not None:
            report["groups"] = self.groups.to_dict()
        return report

    def has_trials_of(self, other: EvaluatedSystem) -> bool:
        """Return whether both systems were evaluated on the same trials."""
        counts = (self.scores.n_target, self.scores.n_nontarget)
        return self.digest == other.digest and counts == (
            other.scores.n_target,
            other.scores.n_nontarget,
        )


@one_line
@dataclass(frozen=True, eq=False)
class EvaluatedSystems:
    """Every metric of several systems, and their differences from one of them.

    Attributes
    ----------
    systems : dict of str to EvaluatedSystem
        By name.
    reference : str
        The system that others are compared with.
    differences : Differences
        Metrics of each other system minus those of the reference; empty without resamples.
    notes : dict of str to str
        Why systems cannot be compared, and how trials without ids were paired.
    """

    systems: dict[str, EvaluatedSystem]
    reference: str
    differences: Differences
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> EvaluatedSystem:
        """The first system."""
        return next(iter(self.systems.values()))

    @property
    def results(self) -> dict[str, Evaluation]:
        """The metrics of each system."""
        return {name: system.result for name, system in self.systems.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the report of ``spkver-eval metrics --json``, which nests systems if there are several."""
        if len(self.systems) == 1:
            return self.first.to_dict()
        report: dict[str, Any] = {"systems": {}, "reference": self.reference, "differences": {}}
        for name, system in self.systems.items():
            report["systems"][name] = system.to_dict()
        for name, gaps in self.differences.items():
            report["differences"][name] = {metric: gap.to_dict() for metric, gap in gaps.items()}
        if self.notes:
            report["notes"] = self.notes
        return report


@one_line
@dataclass(frozen=True)
class PairedComparison(Tabular):
    """Metrics with intervals of systems on the same trials, and their differences with p-values.

    `print`, a notebook and `to_latex` show both as tables, in which p-values are corrected for their number (`holm`).

    Attributes
    ----------
    systems : dict of str to Intervals
        Each metric of each system with its interval over speakers.
    differences : Differences
        Differences of each system from the first one, with intervals and p-values.
    resampling : Resampling
        Resampling of the speakers.
    units : str
        What was resampled.
    evaluated : EvaluatedSystems, optional
        Everything that was computed, for `to_dict`.
    """

    systems: dict[str, Intervals]
    differences: Differences
    resampling: Resampling = DEFAULT
    units: str = "the speakers"
    evaluated: EvaluatedSystems | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the report of ``spkver-eval metrics --json``; see `EvaluatedSystems.to_dict`.

        Raises
        ------
        DataError
            If the comparison was not made by `compare`.
        """
        if self.evaluated is None:
            raise DataError("expected a comparison made by `compare`, got only tables")
        return self.evaluated.to_dict()

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each metric of each system and of each difference; see `Differences.to_columns`."""
        return Differences(self._every).to_columns()

    @property
    def _every(self) -> dict[str, Intervals]:
        first = next(iter(self.systems))
        return self.systems | {
            f"{name} minus {first}": gaps for name, gaps in self.differences.items()
        }

    def _tables(self, columns: Sequence[str] = ()) -> list[list[dict[str, str]]]:
        """Return a table with a row per system and one with a row per difference, as in ``spkver-eval metrics``."""
        shown = self._columns(columns)
        tables = [system_rows(self.systems, shown)]
        if self.differences:
            first = next(iter(self.systems))
            tables.append(difference_rows(self.differences, shown, first, family=self._columns()))
        return tables

    def _columns(self, names: Sequence[str] = ()) -> list[Column]:
        first = next(iter(self.systems.values()))
        chosen = []
        for name in names:
            matching = [other for other in first if other == name or other.startswith(f"{name}.")]
            if not matching:
                raise DataError(f"no metric {name!r}; the metrics are: {', '.join(first)}")
            chosen += matching
        table: Sequence[Metric] = METRICS
        if self.evaluated is not None:
            table = self.evaluated.first.result.metrics
        known = columns_of(table)
        return [known[name] for name in chosen or first]

    @property
    def _note(self) -> str:
        note = self.resampling.text(self.units)
        if sum(map(len, self.differences.values())) > 1:
            note += "; p-values are corrected for their number (Holm)"
        return note

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        caption: str | None = None,
        label: str = "tab:metrics",
        columns: Sequence[str] = (),
    ) -> str:
        r"""Return two tables for ``\input`` in LaTeX, with the rules of booktabs, as ``spkver-eval metrics --latex``.

        Parameters
        ----------
        path : path, optional
            A file to write them to as well.
        caption, label : str, optional
            Caption (TeX) and label of the first table; by default the caption explains intervals and bold numbers.
        columns : sequence of str
            Metrics by their names, such as ``min_cllr`` and ``eer``; all by default. P-values are corrected for the
            number of all comparisons, including those not shown.
        """
        tex = paper_tables(
            self.systems,
            self.differences,
            self._columns(columns),
            next(iter(self.systems)),
            family=self._columns(),
            note=self.resampling.text(self.units),
            caption=caption,
            label=label,
        )
        if path is not None:
            write_text(path, tex)
        return tex

    def _repr_html_(self) -> str:
        parts = []
        for rows in self._tables():
            cells = zip(*(row.values() for row in rows), strict=True)
            parts.append(html_table(dict(zip(rows[0], cells, strict=True))))
        return "\n".join([*parts, f"<p>{self._note}</p>"])

    def __str__(self) -> str:
        return "\n\n".join([*map(format_table, self._tables()), self._note])


@verbosely
def evaluate_systems(
    systems: Mapping[str, Scores],
    key: Key | Mapping[str, Key],
    *,
    metrics: Sequence[Metric] = METRICS,
    convention: str = "default",
    priors: Sequence[str | float] = PRIORS,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Unit = "speaker",
    resampling: Resampling | None = None,
    reference: str | None = None,
    metadata: Mapping[str, str] | None = None,
    column: str = "",
    missing: Missing = "error",
    jobs: int | None = 1,
    verbose: bool = True,
) -> EvaluatedSystems:
    """Compute every metric of systems, intervals if speakers are given, and differences of systems on equal trials.

    Parameters
    ----------
    systems : mapping of str to Scores
        Systems by name.
    key : Key, or mapping of str to Key
        Trials with their truth, for all systems or for each.
    metrics : sequence of Metric
        Metrics to compute; see `evaluation.metrics.metrics_with` and `evaluation.metrics.metrics_at_thresholds_of`.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Which convention to follow; see `evaluation.metrics.conventions`.
    priors : sequence of str or float
        Target priors of the detection costs.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.trials.find_speakers`.
    bootstrap_by : {"speaker", "id", "trial"}
        Units that are resampled; see `sample_from`.
    resampling : Resampling, optional
        Resampling for the intervals; by default 1000 resamples if speakers are given, else none.
    reference : str, optional
        The system that others are compared with; by default the first.
    metadata : mapping of str to str, optional
        Group of each model, segment or speaker, such as their sex, with its name as `column`.
    column : str
        Name of the grouping.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.
    jobs : int, optional
        Number of workers; all cores if None.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    EvaluatedSystems
        `EvaluatedSystems.to_dict` gives the report of ``spkver-eval metrics --json``.

    Raises
    ------
    DataError
        If there is no system, the reference is unknown, groups have no name, an option is out of range, or scores
        and key do not fit; with resamples also as `sample_from`.

    Examples
    --------
    >>> key = Key.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [True, False, False, True])
    >>> scores = Scores.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [2.0, -1.0, 0.5, 1.0])
    >>> evaluate_systems({"mine": scores}, key).to_dict()["eer"]["rocch"]
    0.0
    """
    if not isinstance(systems, Mapping) or not systems:
        raise DataError(f"expected Scores by the names of systems, got {systems!r:.60}")
    if reference is None:
        reference = next(iter(systems))
    if reference not in systems:
        raise DataError(
            f"the reference {reference!r} is not one of the systems {', '.join(systems)}"
        )
    if bootstrap_by not in get_args(Unit):
        raise DataError(
            f"expected bootstrap_by to be one of {', '.join(get_args(Unit))}, got {bootstrap_by!r}"
        )
    if (metadata is None) != (not column):
        raise DataError(
            "expected metadata together with the name of their column",
            remedy="metadata=..., column='sex'",
        )
    maps = {"model_speakers": model_speakers, "segment_speakers": segment_speakers}
    if resampling is None:
        resampling = NO_INTERVALS
        if model_speakers is not None or segment_speakers is not None:
            resampling = DEFAULT
    statistic = Metrics(priors, convention, tuple(metrics))
    if not isinstance(key, Mapping):
        key = dict.fromkeys(systems, key)
    evaluated = {}
    for name, scores in systems.items():
        evaluated[name] = _evaluate_system(
            scores,
            key[name],
            statistic,
            resampling,
            maps=maps,
            bootstrap_by=bootstrap_by,
            metadata=metadata,
            column=column,
            missing=missing,
            jobs=jobs,
        )
    differences, notes = _compared(evaluated, reference, statistic, resampling, jobs)
    return EvaluatedSystems(evaluated, reference, differences, notes)


def _compared(
    evaluated: Mapping[str, EvaluatedSystem],
    reference: str,
    statistic: Metrics,
    resampling: Resampling,
    jobs: int | None,
) -> tuple[Differences, dict[str, str]]:
    """Return the differences of systems from a reference on the same trials, and notes on the trials."""
    differences = Differences()
    notes = {}
    base = evaluated[reference]
    unlike = [name for name, system in evaluated.items() if not system.has_trials_of(base)]
    if unlike:
        notes["trials"] = (
            f"{', '.join(unlike)}: other trials than {reference}, so figures are not comparable"
        )
    samples = {}
    for name in {reference: None, **evaluated}:
        sample = evaluated[name].sample
        if sample is not None and name not in unlike:
            samples[name] = sample
    if len(samples) > 1 and resampling.resamples:
        try:
            differences = paired_differences(samples, statistic, resampling, jobs=jobs)
        except DataError as error:
            notes["differences"] = error.text
    if differences and not base.has_ids:
        notes["pairs"] = (
            "trials have no ids and are paired by line: all files must list them in the same order"
        )
    return differences, notes


@verbosely
def compare(
    systems: Any,
    key: Any = None,
    *,
    labels: Any = None,
    scores: Sequence[str] = (),
    label: str | None = None,
    model: str | None = None,
    segment: str | None = None,
    speakers: Any = None,
    metrics: Sequence[str | Metric] = ("eer.rocch", "min_dcf.0.01", "min_cllr"),
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    jobs: int | None = 1,
    missing: Missing = "error",
    verbose: bool = True,
) -> PairedComparison:
    """Compare systems on the same trials: metrics with intervals, paired differences with intervals and p-values.

    Speakers are resampled once for all systems, so that easy and hard speakers cancel in the differences. The
    p-value is that of Student's t with the standard error of the resampled differences: below 0.05 where the 95 %
    interval excludes 0. If a table shows several, they are corrected for their number (`holm`). (Scores of two
    systems have no common scale, so they cannot be permuted between systems.)

    Parameters
    ----------
    systems : mapping of str to Scores, of str to array_like of float of shape (N,), or data frame
        Systems by name; the others are compared with the first. A single system has intervals but no differences.
    key : Key, or array_like of bool or of str of shape (N,)
        Trials with their truth; of arrays, the label of each score.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), optional
        Labels of arrays, in the place of the key.
    scores, label, model, segment : sequence of str, and str, optional
        Columns of a data frame: the scores of each system, the labels, and the ids if there are any; those of labels
        and ids have known names by default.
    speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and each segment: a map, a function of the id, or a separator such as ``"/"`` that ends
        the speaker in each id; or a pair of these, for models and for segments. By default ids count as speakers if
        they look like it, otherwise there is an error. For trials without ids, give the speaker of each: an array, or a
        column of the data frame.
    metrics : sequence of str, or of Metric
        Names such as in `evaluation.metrics.METRICS`: ``"eer.rocch"`` or ``"eer"``, ``"cllr"``, ``"min_dcf.0.02"`` at
        any prior; or rows of a table with all of their numbers, such as ``METRICS`` for everything that
        ``spkver-eval metrics`` computes.
    resamples, seed, level
        Resamples of the speakers, two or more, their seed, and the coverage of the intervals.
    jobs : int, optional
        Number of workers; all cores if None.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`. All systems must
        lack the same ones.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    PairedComparison
        Shown as tables; `PairedComparison.to_dict` gives the report of ``spkver-eval metrics --json``.

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
    columns = {"label": label, "model": model, "segment": segment}
    systems, key, maps = given_systems(
        systems, key, labels, scores, columns, speakers, missing=missing
    )
    if not systems:
        raise DataError("expected at least one system to compare, got none")
    resampling = Resampling(resamples, seed, level)
    if not resampling.resamples:
        raise DataError("expected at least 2 resamples, got none")
    names, statistic = _chosen_metrics(metrics)
    evaluated = {}
    for name, values in systems.items():
        with errors_of(None, before=f"{name}: "):
            check_speakers(key, maps["segment_speakers"])
            evaluated[name] = _evaluate_system(
                values, key, statistic, resampling, maps=maps, missing=missing, jobs=jobs
            )
    samples = {
        name: system.sample for name, system in evaluated.items() if system.sample is not None
    }
    warn_of_repeats({name: sample.scores for name, sample in samples.items()})
    _warn_of_reversals(samples)
    gaps = Differences()
    if len(samples) > 1:
        gaps = paired_differences(samples, statistic, resampling, jobs=jobs)
    shown = {name: _selected(system.intervals, names) for name, system in evaluated.items()}
    differences = Differences(
        {name: _selected(intervals, names) for name, intervals in gaps.items()}
    )
    first = next(iter(systems))
    units = f"{samples[first].n_effective} speakers"
    everything = EvaluatedSystems(evaluated, first, gaps)
    return PairedComparison(shown, differences, resampling, units, everything)


def _warn_of_reversals(samples: Mapping[str, Sample]) -> None:
    for name, sample in samples.items():
        turned = reversal(sample.runs())
        if turned is not None and turned.clear:
            logger.warning("%s: %s", name, turned.text)


def _evaluate_system(
    scores: Scores,
    key: Key,
    statistic: Metrics,
    resampling: Resampling,
    *,
    maps: Mapping[str, Speakers | None],
    bootstrap_by: Unit = "speaker",
    metadata: Mapping[str, str] | None = None,
    column: str = "",
    missing: Missing,
    jobs: int | None,
) -> EvaluatedSystem:
    """Compute every metric of one system, with intervals and groups on request."""
    values, joined = join_scores(scores, key, missing=missing)
    ordered = sort_scores(values[joined.is_target], values[~joined.is_target])
    search = closed_search_note(values, joined, ordered)
    sample = None
    intervals = Intervals()
    groups = None
    if not resampling.resamples and metadata is None:
        result = statistic.evaluate(ordered)
        result.notes.update(search)
    else:
        units = bootstrap_by
        if bootstrap_by == "speaker" and not resampling.resamples:
            units = "id"  # without resamples, speakers are not needed
        sample, scored = sample_from(scores, key, bootstrap_by=units, missing=missing, **maps)
        result = statistic.evaluate(sample.runs())
        result.notes.update(search)
        if resampling.resamples:
            intervals = confidence_intervals(sample, statistic, resampling, jobs=jobs)
            result = with_intervals(result, intervals, _how_drawn(sample, bootstrap_by, resampling))
        if metadata is not None:
            if bootstrap_by == "trial":
                speakers = None
            else:
                speakers = find_speakers(scored, **maps)
            grouped = group_trials(scored, metadata, speakers=speakers)
            groups = evaluate_groups(
                sample, *grouped, statistic, resampling, column=column, jobs=jobs
            )
    return EvaluatedSystem(result, sample, intervals, groups, key, ordered)


def _how_drawn(sample: Sample, bootstrap_by: Unit, resampling: Resampling) -> str:
    """Return the note on what was resampled."""
    if bootstrap_by == "trial":
        return f"{resampling.text('trials')}; far too narrow where trials share speakers"
    return resampling.text(f"{sample.n_effective} {_UNITS[bootstrap_by]}")


def _chosen_metrics(metrics: Sequence[str | Metric]) -> tuple[list[str], Metrics]:
    """Return the names of the chosen numbers, and the metrics that compute them."""
    rows = tuple(row for row in metrics if isinstance(row, Metric))
    if rows:
        return list(columns_of(rows)), Metrics(metrics=rows)
    priors = [*PRIORS]
    for name in metrics:
        row, prior = find_metric(str(name), METRICS)
        if row is not None and row.over_priors and is_prior(prior):
            priors.append(prior)
    known = columns_of(Metrics(priors).rows)
    names = []
    for name in metrics:
        usual = f"{name}.rocch"
        names.append(usual if usual in known else str(name))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DataError(f"no metric {few(unknown, repr)}; the metrics are: {', '.join(known)}")
    needed = set()
    for name in names:
        row, _ = find_metric(name, METRICS)
        if row is not None:
            needed |= {row.name, *row.inputs}
    table = tuple(row for row in METRICS if row.name in needed)
    return names, Metrics(priors, metrics=table)


def _selected(intervals: Mapping[str, Interval], names: Sequence[str]) -> Intervals:
    return Intervals({name: intervals[name] for name in names})
