"""Metrics of scores that come in batches, and one number for model selection: after torchmetrics and scikit-learn.

Neither library is imported. Metrics of detection are no means over batches: an equal error rate of all trials is not
the mean of those of the batches. So the state is the scores themselves, 8 bytes a trial, and states add by standing
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics.metric import Metric, at_priors
from evaluation.metrics.sorted_scores import sort_scores
from evaluation.metrics.summary import Evaluation, Metrics, evaluate
from evaluation.metrics.table import METRICS, PRIORS, is_prior
from evaluation.trials import column_of, split_by_labels
from spkbase.errors import DataError, few
from spkbase.work import one_blas_thread


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
