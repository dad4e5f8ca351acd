"""Every number at once: all metrics of a table, for one list of scores.

**Metrics of scores that come in batches, and one number for model selection: after torchmetrics and scikit-learn.**

Neither library is imported. Metrics of detection are no means over batches: an equal error rate of all trials is not
the mean of those of the batches. So the state is the scores themselves, 8 bytes a trial, and states add by standing
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics.conventions import convention_named
from evaluation.metrics.equal_error import reversal
from evaluation.metrics.sorted_scores import GivenScores, SortedScores, as_count, sort_scores
from evaluation.metrics.table import (
    METRICS,
    PRIORS,
    Metric,
    at_priors,
    check_metrics,
    compute_all,
    is_prior,
    metric_lines,
    number_of,
    number_text,
)
from evaluation.metrics.zebra_profile import Zebra
from evaluation.trials import Key, Scores, are_labels, column_of, split_by_labels, split_scores
from spkbase.errors import DataError, few
from spkbase.files import format_table
from spkbase.showing import Tabular, html_table, one_line
from spkbase.work import one_blas_thread


@one_line
@dataclass(frozen=True)
class Evaluation(Tabular):
    """What `evaluate` finds; rates are fractions, information is in bits, LLRs are natural.

    Each metric can be had as an attribute under its key in the report: ``result.cllr``, ``result.eer["rocch"]``,
    ``result.min_dcf["0.01"]``, ``result.tpr_at_fpr["0.01"].value``, ``result.zebra.population``.

    Parameters
    ----------
    n_target, n_nontarget : int, or float where trials have weights
        Number of trials.
    convention : str
        The convention that every number follows; see `evaluation.metrics.conventions`.
    results : dict
        What each metric gave, by the key of the report; numbers of one group, such as the equal error rates, are a
        dict in it.
    metrics : tuple of Metric
        The table that was computed; docs/metrics.md says what its rows are.
    intervals : dict of str to (low, high)
        Confidence intervals by the name that `values` gives; empty unless they were asked for.
    notes : dict of str to str
        Why a number is undefined, infinite or to be read with care.
    """

    n_target: int | float
    n_nontarget: int | float
    convention: str
    results: dict[str, Any]
    metrics: tuple[Metric, ...] = METRICS
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return what a metric gave, by its key in the report."""
        results = vars(self).get("results", {})  # empty while the object is being copied
        if name in results:
            return results[name]
        raise AttributeError(f"expected a metric among {', '.join(results)}, got {name!r}")

    def __dir__(self) -> list[str]:
        """Return the names of the attributes, metrics too."""
        return [*super().__dir__(), *self.results]

    @property
    def zebra(self) -> Zebra:
        """Return the disclosure to the population and to an individual, where the table has both."""
        group = self.results.get("zebra", {})
        names = [column.name for column in fields(Zebra)]
        if not set(names) <= set(group):
            raise AttributeError("expected all rows of ZEBRA in the table of metrics")
        return Zebra(**{name: group[name] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by the keys of the JSON report; `spkbase.files.to_json` writes infinities as text."""
        counts = {"n_target": self.n_target, "n_nontarget": self.n_nontarget, "convention": self.convention}
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        return counts | _plain(self.results) | {"intervals": intervals, "notes": self.notes}

    def values(self) -> dict[str, float]:
        """Return every number by a flat name, such as ``"eer.rocch"``, ``"min_dcf.0.01"`` or ``"zebra.population"``."""
        flat: dict[str, float] = {}
        for metric in self.metrics:
            for name, _ in metric.numbers():
                head, _, rest = name.partition(".")
                flat[name] = number_of(self.results[head][rest] if rest else self.results[head])
        return flat

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of a table to be read: counts and convention, then each metric, written out."""
        counts = {"target trials": f"{self.n_target:,}", "nontarget trials": f"{self.n_nontarget:,}"}
        rows: list[dict[str, Any]] = [
            {"metric": title, "value": text} for title, text in (counts | {"convention": self.convention}).items()
        ]
        values = self.values()
        for name, title, form in metric_lines(self.metrics, self.results):
            rows.append({"metric": title, "value": number_text(values[name], form), "interval": None})
            if name in self.intervals:
                low, high = (number_text(end, form) for end in self.intervals[name])
                rows[-1]["interval"] = low if low == high == "undefined" else f"{low} to {high}"
        return rows

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each number: its name, title, value and unit, the ends of its interval, and its note."""
        values, units = self.values(), {name: row.unit.name for row in self.metrics for name, _ in row.numbers()}
        titles = {name: title for name, title, _ in metric_lines(self.metrics, self.results)}
        ends = [self.intervals.get(name, (float("nan"), float("nan"))) for name in values]
        return {
            "metric": list(values),
            "title": [titles[name] for name in values],
            "value": list(values.values()),
            "unit": [units[name] for name in values],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "note": [self.notes.get(name, "") for name in values],
        }

    def _repr_html_(self) -> str:
        rows, names, notes = self._table()
        return html_table({name: [row.get(name) for row in rows] for name in names}, notes=notes, most=len(rows))

    def __str__(self) -> str:
        rows, names, notes = self._table()
        return "\n".join([format_table(rows, names), *([""] if notes else []), *notes])

    def _table(self) -> tuple[list[dict[str, Any]], list[str], list[str]]:
        """Rows and columns of the table to be read, with a column of intervals where there are any, and its notes."""
        names = ["metric", "value", "interval"] if self.intervals else ["metric", "value"]
        return self.lines(), names, [f"{name}: {text}" for name, text in self.notes.items()]

    def with_intervals(
        self, intervals: Mapping[str, tuple[float, float]], notes: Mapping[str, str] | None = None
    ) -> Evaluation:
        """Return the same with confidence intervals, and notes about them.

        Parameters
        ----------
        intervals : mapping of str to (low, high)
            By the name that `values` gives.
        notes : mapping of str to str, optional
            Added to the notes there are.
        """
        return replace(self, intervals=dict(intervals), notes={**self.notes, **(notes or {})})


@one_line
@dataclass(frozen=True)
class Metrics:
    """All metrics as a statistic for `evaluation.uncertainty.confidence` and `evaluation.uncertainty.groups`.

    Parameters
    ----------
    priors : sequence of str or float
        Target priors of the detection costs.
    convention : str
        Whose way to follow; see `evaluation.metrics.conventions`.
    metrics : tuple of Metric
        What to compute.
    """

    priors: Sequence[str | float] = PRIORS
    convention: str = "default"
    metrics: tuple[Metric, ...] = METRICS

    def __call__(self, scores: SortedScores) -> dict[str, float]:
        """Compute the numbers alone."""
        return {name: number_of(result) for name, result in compute_all(self.rows, scores).items()}

    def evaluate(self, scores: SortedScores) -> Evaluation:
        """Compute them with all that belongs to them; see `evaluate`."""
        results = compute_all(self.rows, scores)
        return Evaluation(
            n_target=as_count(scores.n_target),
            n_nontarget=as_count(scores.n_nontarget),
            convention=self.convention,
            results=_grouped(self.rows, results, scores),
            metrics=self.rows,
            notes=_notes(self.rows, results, scores, self.convention),
        )

    @cached_property
    def rows(self) -> tuple[Metric, ...]:
        """Return the table at these priors and under this convention."""
        replaces = convention_named(self.convention).replaces
        rows = at_priors(self.metrics, self.priors)
        if self.metrics is not METRICS:
            check_metrics(rows)
        if not replaces:
            return rows
        return tuple(replace(row, compute=replaces.get(row.name, row.compute)) for row in rows)


@one_blas_thread()
def evaluate(
    target: GivenScores | Scores,
    nontarget: ArrayLike | None = None,
    *,
    labels: ArrayLike | Key | None = None,
    convention: str = "default",
    priors: Sequence[str | float] = PRIORS,
    metrics: tuple[Metric, ...] = METRICS,
    target_weights: ArrayLike | None = None,
    nontarget_weights: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Evaluation:
    """Compute every metric of scores.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,)
        Scores; for the actual costs and Cllr, natural LLRs. Infinite ones are legal. Series of pandas or polars will
        do, and `SortedScores` alone. With `labels` the first holds the scores of both classes, and there is no second.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), or Key, optional
        The class of each score: true for a target trial, or text (``target`` and ``nontarget``). `Scores` are joined
        with their `Key` by the pairs of ids. Truth values and text may be the second argument as well.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Whose way to follow; see `evaluation.metrics.conventions`.
    priors : sequence of str or float
        Target priors of the detection costs; the keys of the result are as they are written here.
    metrics : tuple of Metric
        What to compute: the built-in table, one with rows of your own (``METRICS + (mine,)``), part of it, or one with
        other options (`evaluation.metrics.metrics_with`).
    target_weights, nontarget_weights, weights : array_like of float, optional
        How often each trial counts, once by default: the first two for scores by class, `weights` with `labels`.

    Returns
    -------
    Evaluation
        The numbers by name, with notes on those to be read with care.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, an option is out of range, or a table of metrics has a name twice; with
        labels also if lengths or indices differ, or a label says neither.

    Examples
    --------
    >>> result = evaluate([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0])
    >>> result.eer["rocch"], result.zebra.tag, sorted(result.notes)
    (0.125, 'A', ['d_sys', 'tpr_at_fpr.0.0001', 'tpr_at_fpr.0.001', 'tpr_at_fpr.0.01'])
    >>> evaluate([0.5, -1.0, 2.0, 0.0], labels=[1, 0, 1, 0]).eer["rocch"]
    0.0
    """
    if not isinstance(target, SortedScores):
        given = {"target_weights": target_weights, "nontarget_weights": nontarget_weights, "weights": weights}
        given = {name: column for name, column in given.items() if column is not None}
        target = sort_scores(**_by_class(target, nontarget, labels, given))
    return Metrics(priors, convention, tuple(metrics)).evaluate(target)


def _by_class(target: Any, nontarget: Any, labels: Any, weights: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of each class with their weights, as `sort_scores` takes them."""
    if labels is None and nontarget is not None and are_labels(nontarget):
        labels, nontarget = nontarget, None
    fitting = ["target_weights", "nontarget_weights"] if labels is None else ["weights"]
    if strange := [name for name in weights if name not in fitting]:
        form = "scores by class" if labels is None else "scores with labels"
        raise DataError(f"expected {' and '.join(fitting)} for {form}, got {', '.join(strange)}")
    if (nontarget is None) == (labels is None):
        got = "neither" if labels is None else "both"
        remedy = "evaluate(target, nontarget), or evaluate(scores, labels=labels)"
        raise DataError(f"expected nontarget scores or labels, got {got}", remedy=remedy)
    if isinstance(target, Scores) or isinstance(labels, Key):
        if not (isinstance(target, Scores) and isinstance(labels, Key)) or weights:
            text = "expected Scores and a Key as labels, without weights"
            got = f"{type(target).__name__} and {type(nontarget if labels is None else labels).__name__}"
            raise DataError(f"{text}, got {got}", remedy="evaluate(scores, labels=key)")
        return dict(zip(("target", "nontarget"), split_scores(target, labels), strict=True))
    if labels is None:
        return {"target": target, "nontarget": nontarget} | weights
    split = dict(split_by_labels(target, labels, weights.get("weights")))
    if absent := [name for name in ("target", "nontarget") if not len(split[name])]:
        text = f"expected labels of both classes, got no {absent[0]} among {sum(map(len, split.values()))}"
        raise DataError(text, remedy="detection metrics need trials of both classes")
    return split


def metrics_of(statistic: Callable[[SortedScores], Mapping[str, float]]) -> tuple[Metric, ...]:
    """Return the table that says how the numbers of a statistic are read: its own, or the built-in one.

    Parameters
    ----------
    statistic : callable
        Gives numbers by name from `SortedScores`.
    """
    return statistic.rows if isinstance(statistic, Metrics) else METRICS


def _grouped(rows: Sequence[Metric], results: Mapping[str, Any], scores: SortedScores) -> dict[str, Any]:
    """Put numbers of one group, and what stands beside them, into a dict of their own."""
    grouped: dict[str, Any] = {}
    for row in rows:
        if row.points is not None:
            grouped.setdefault(row.name, {})
        for name, _ in row.numbers():
            head, _, rest = name.partition(".")
            group, key = (grouped.setdefault(head, {}), rest) if rest else (grouped, head)
            group[key] = results[name]
            if row.beside is not None:
                group.update(row.beside(number_of(results[name]), scores))
    return grouped


def _notes(rows: Sequence[Metric], results: Mapping[str, Any], scores: SortedScores, convention: str) -> dict[str, str]:
    """Ask each metric for its caveat; the one of ZEBRA's worst case stands last, as it always has in reports."""
    notes: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row.name == "zebra.individual"):
        for name, point in row.numbers():
            if row.caveat is not None and (text := row.caveat(results[name], scores, convention, point)):
                notes[name] = text
    if (turned := reversal(scores)) is not None:
        notes["scores"] = turned.text
    return notes


def _plain(result: Any) -> Any:
    """Turn records into dicts."""
    if isinstance(result, dict):
        return {name: _plain(part) for name, part in result.items()}
    return vars(result) if is_dataclass(result) else result


class SpeakerVerificationMetrics:
    """All metrics of scores that come in batches: `update` with each, `compute` at the end, `reset` to begin anew.

    The order and the size of the batches do not matter: the result is that of `evaluate` on all scores at once. States
    of several processes, or of several parts of the data, are added by ``+`` or ``sum``.

    Parameters
    ----------
    convention, priors, metrics
        See `evaluate`.

    Examples
    --------
    >>> metrics = SpeakerVerificationMetrics()
    >>> metrics.update([2.0, -1.0, 0.5], [1, 0, 1])
    >>> metrics.update(np.array([0.0, 1.0]), np.array([False, False]))
    >>> metrics
    SpeakerVerificationMetrics(2 target, 3 nontarget scores)
    >>> found = metrics.compute()
    >>> round(found.eer["rocch"], 4) == round(evaluate([2.0, 0.5], [-1.0, 0.0, 1.0]).eer["rocch"], 4)
    True
    >>> metrics + metrics
    SpeakerVerificationMetrics(4 target, 6 nontarget scores)
    """

    def __init__(
        self,
        *,
        convention: str = "default",
        priors: Sequence[str | float] = PRIORS,
        metrics: tuple[Metric, ...] = METRICS,
    ) -> None:
        self._metrics = Metrics(tuple(priors), convention, tuple(metrics))
        assert self._metrics.rows  # an unknown convention or prior is said now, not after an epoch
        self._target: list[NDArray[np.float64]] = []
        self._nontarget: list[NDArray[np.float64]] = []

    def update(self, scores: ArrayLike, labels: ArrayLike) -> None:
        """Take in a batch; one without trials of a class is welcome.

        Parameters
        ----------
        scores : array_like of float of shape (N,)
            Scores, or a tensor of them on any device.
        labels : array_like of bool, of 0 and 1, or of str of shape (N,)
            True for target trials; see `evaluation.trials.truth_of`.

        Raises
        ------
        DataError
            If lengths differ, a label says neither class, or a score is no number or NaN; the state is then as before.
        """
        split = split_by_labels(scores, labels)
        self._target.append(split["target"])
        self._nontarget.append(split["nontarget"])

    def compute(self) -> Evaluation:
        """Return every metric of all scores so far.

        Raises
        ------
        DataError
            If there is no trial of one class.
        """
        state = self.state()
        with one_blas_thread():
            return self._metrics.evaluate(sort_scores(state["target"], state["nontarget"]))

    def reset(self) -> None:
        """Forget all scores."""
        self._target, self._nontarget = [], []

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return the scores so far, ``target`` and ``nontarget``, to be sent to another process."""
        empty = [np.empty(0)]
        return {"target": np.concatenate(self._target + empty), "nontarget": np.concatenate(self._nontarget + empty)}

    def load_state(self, state: dict[str, ArrayLike]) -> None:
        """Take the scores of a `state`, in place of those so far."""
        parts = {name: np.array(column_of(state[name], name), np.float64) for name in ("target", "nontarget")}
        self._target, self._nontarget = [parts["target"]], [parts["nontarget"]]

    def __add__(self, other: SpeakerVerificationMetrics) -> SpeakerVerificationMetrics:
        """Return one that has the scores of both.

        Raises
        ------
        DataError
            If the two compute other metrics.
        """
        if not isinstance(other, SpeakerVerificationMetrics):
            return NotImplemented
        if self._metrics != other._metrics:
            remedy = "make both with the same convention, priors and metrics"
            raise DataError("expected states of the same metrics to add", remedy=remedy)
        ours = self._metrics
        merged = SpeakerVerificationMetrics(convention=ours.convention, priors=ours.priors, metrics=ours.metrics)
        merged._target = self._target + other._target
        merged._nontarget = self._nontarget + other._nontarget
        return merged

    def __radd__(self, other: Any) -> SpeakerVerificationMetrics:
        """Begin a ``sum``, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __len__(self) -> int:
        return sum(map(len, self._target)) + sum(map(len, self._nontarget))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        counts = (sum(map(len, part)) for part in (self._target, self._nontarget))
        return "{}({} target, {} nontarget scores)".format(type(self).__name__, *counts)


def detection_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    metric: str = "eer.rocch",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    convention: str = "default",
) -> float:
    """Return one metric of scores, with the arguments in the order of scikit-learn's metrics.

    Parameters
    ----------
    y_true : array_like of shape (N,)
        The class of each trial; see `evaluation.trials.truth_of`.
    y_score : array_like of float of shape (N,)
        Scores: the higher, the more a target.
    metric : str
        Name of the number, as `Evaluation.values` gives it: ``"eer.rocch"``, ``"min_dcf.0.01"``, ``"cllr"`` and so on.
    sample_weight : array_like of float of shape (N,), optional
        How often each trial counts.
    pos_label : object, optional
        The class of target trials, where the labels are none of those known.
    convention : str
        See `evaluate`.

    Raises
    ------
    DataError
        If there is no such metric, or as `evaluate`.

    Examples
    --------
    >>> detection_score([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.6])
    0.25
    >>> detection_score([1, -1, -1], [0.9, 0.1, 0.4], pos_label=1, metric="min_dcf.0.5")
    0.0

    For model selection, lower being better::

        make_scorer(detection_score, greater_is_better=False, response_method="decision_function", metric="min_cllr")
    """
    labels = y_true if pos_label is None else column_of(y_true, "y_true") == pos_label
    rows, priors = _rows_for(metric)
    found = evaluate(y_score, labels=labels, weights=sample_weight, convention=convention, metrics=rows, priors=priors)
    return found.values()[metric]


def _rows_for(metric: str) -> tuple[tuple[Metric, ...], Sequence[str | float]]:
    """Return the rows of the table that a number needs, and the priors to take it at, which may be none of those."""
    head, _, point = metric.partition(".")
    costs = [row for row in METRICS if row.over_priors and row.name == head]
    priors = (point,) if costs and is_prior(point) else PRIORS
    table = at_priors(METRICS, priors)
    names = {name: row for row in table for name, _ in row.numbers()}
    if metric not in names:
        raise DataError(f"expected a metric such as {few(list(names), repr, 8)}, got {metric!r}")
    wanted, waiting = set(), [metric]
    while waiting:
        row = names[waiting.pop()]
        wanted.add(row.name)
        waiting += row.of
    return tuple(row for row in table if row.name in wanted), priors
