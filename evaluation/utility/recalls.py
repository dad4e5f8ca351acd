"""Unweighted average recall (UAR) of emotions or other labels.

Conventions
-----------
The UAR of a fold is the mean over classes of the share of its utterances that were recognised; the result is the plain
mean over folds. Without folds each speaker is a fold. Tools differ in which classes they count:

===========  ========================================================================================================
convention   rule
===========  ========================================================================================================
default      the classes that the fold's utterances belong to
vpc2024      these, and the classes that were predicted in the fold, whose recall is then 0 (what `recall_score` of
             scikit-learn does with ``average="macro"``); the UAR of a fold is rounded to 3 decimals of percent
pooled       one fold of all utterances
===========  ========================================================================================================

Under a bootstrap of speakers the weight of a fold is the mean weight of its speakers, so that a speaker drawn twice
counts as two.

References
----------
.. [1] B. Schuller, S. Steidl and A. Batliner, "The INTERSPEECH 2009 Emotion Challenge", Interspeech 2009 (the measure).
.. [2] N. Tomashenko et al., "The VoicePrivacy 2024 Challenge evaluation plan", arXiv 2404.02677.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import warn_of_alike
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility.lists import (
    DEFAULT,
    OR_DROP,
    check_same,
    interval_by_speaker,
    named,
    speakers_of,
)
from spkbase.errors import DataError, counted
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

Convention = Literal["default", "vpc2024", "pooled"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2024", "pooled")

_DIGITS = 3  # decimals of rates in per cent, as in the challenge


@one_line
@dataclass(frozen=True, eq=False)
class Confusions:
    """Confusion matrices by speaker.

    Attributes
    ----------
    classes : list of str, length C
        All true or predicted classes, sorted.
    speakers : list of str, length P
        Sorted.
    counts : ndarray of float64 of shape (P, C, C)
        Utterances of a speaker by true class (rows) and predicted class (columns).
    folds : ndarray of intp of shape (P,)
        Fold of each speaker.
    fold_names : list of str, length F
        Sorted.
    convention : {"default", "vpc2024", "pooled"}
    """

    classes: list[str]
    speakers: list[str]
    counts: NDArray[np.float64]
    folds: NDArray[np.intp]
    fold_names: list[str]
    convention: Convention


@one_line
@dataclass(frozen=True)
class Recalls:
    """An unweighted average recall with its interval.

    Attributes
    ----------
    interval : Interval
        The UAR and its ends.
    folds : dict of str to float
        UAR of each fold.
    recalls : dict of str to float
        Recall of each class over all utterances.
    confusions : dict of str to dict of str to int
        Number of utterances by true and predicted class.
    chance : float
        UAR by chance: 1 / number of true classes.
    n_speakers, n_utterances : int
    convention : str
    """

    interval: Interval
    folds: dict[str, float]
    recalls: dict[str, float]
    confusions: dict[str, dict[str, int]]
    chance: float
    n_speakers: int
    n_utterances: int
    convention: str

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, for a report."""
        names = (
            "convention",
            "chance",
            "n_speakers",
            "n_utterances",
            "folds",
            "recalls",
            "confusions",
        )
        return self.interval.to_dict() | {name: getattr(self, name) for name in names}


def confusions(
    truth: Mapping[str, str],
    predicted: Mapping[str, str],
    speakers: Mapping[str, str],
    *,
    folds: Mapping[str, str] | None = None,
    convention: Convention = "default",
    missing: Literal["error", "drop"] = "error",
    file: str | Path | None = None,
) -> Confusions:
    """Return the confusion matrix of each speaker.

    Parameters
    ----------
    truth, predicted : mapping of str to str
        Class of each utterance.
    speakers : mapping of str to str
        Speaker of each utterance.
    folds : mapping of str to str, optional
        Fold of each speaker; each speaker is one fold by default.
    convention : {"default", "vpc2024", "pooled"}
        See the module.
    missing : {"error", "drop"}
        Treatment of utterances without a prediction or a label.
    file : path, optional
        File of the predictions, for errors.

    Raises
    ------
    DataError
        If ids do not fit, or a speaker or a fold is unknown.
    """
    warn_of_alike([*truth.values(), *predicted.values()], "classes", "a class")
    if convention not in CONVENTIONS:
        raise DataError(f"expected one of {CONVENTIONS}, got {convention!r}")
    if missing == "error":
        check_same(truth, predicted, file=file, otherwise=OR_DROP)
    utterances = sorted(utterance for utterance in truth if utterance in predicted)
    if not utterances:
        raise DataError(
            "no utterance has both a label and a prediction", file=file, remedy="compare the ids"
        )
    return count_confusions(utterances, truth, predicted, speakers, folds, convention)


@one_blas_thread()
def average_recall(counted: Confusions, resampling: Resampling = DEFAULT) -> Recalls:
    """Return the UAR with its interval.

    Returns
    -------
    Recalls
        Values are fractions of 1.

    Examples
    --------
    >>> truth = {"a1": "sad", "a2": "happy", "b1": "sad", "b2": "happy"}
    >>> predicted = {"a1": "sad", "a2": "sad", "b1": "sad", "b2": "happy"}
    >>> average_recall(confusions(truth, predicted, {name: name[0] for name in truth})).interval.value
    0.75
    """
    n_speakers = len(counted.speakers)
    by_fold = _fold_recalls(counted, np.ones(n_speakers)).tolist()
    total = counted.counts.sum(axis=0)
    size = total.sum(axis=1)
    fewest = int(size[size > 0].min())
    interval = interval_by_speaker(
        partial(uar, counted), n_speakers, "uar", resampling, n_trials=fewest
    )
    recalls = {}
    by_class = {}
    for row, name in enumerate(counted.classes):
        if size[row]:
            recalls[name] = float(total[row, row] / size[row])
            by_class[name] = dict(
                zip(counted.classes, total[row].astype(int).tolist(), strict=True)
            )
    return Recalls(
        interval,
        dict(zip(counted.fold_names, by_fold, strict=True)),
        recalls,
        by_class,
        1 / len(recalls),
        n_speakers,
        int(total.sum()),
        counted.convention,
    )


@one_blas_thread()
def recall_differences(
    systems: Sequence[Confusions], resampling: Resampling = DEFAULT
) -> list[Interval]:
    """Return the UARs of systems on the same utterances minus the first one's, in shared resamples.

    Raises
    ------
    DataError
        If speakers, their utterances or the conventions differ.
    """
    first = systems[0]
    differences = []
    for other in systems[1:]:
        if (other.speakers, other.convention, other.fold_names) != (
            first.speakers,
            first.convention,
            first.fold_names,
        ):
            raise DataError("expected the compared systems to share speakers, folds and convention")
        if _true_counts(other) != _true_counts(first):
            raise DataError("expected the compared systems to share utterances")
        n_speakers = len(first.speakers)
        of_other = partial(uar, other)
        of_first = partial(uar, first)
        differences.append(
            interval_by_speaker(of_other, n_speakers, "difference", resampling, minus=of_first)
        )
    return differences


def _true_counts(counted: Confusions) -> dict[tuple[str, str], float]:
    """Return the number of utterances of each speaker and true class."""
    counts = {}
    for (row, column), count in np.ndenumerate(counted.counts.sum(axis=2)):
        if count:
            counts[counted.speakers[row], counted.classes[column]] = float(count)
    return counts


@one_blas_thread()
def uar(counted: Confusions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the UAR under weights of the speakers.

    Parameters
    ----------
    counted : Confusions
        Confusion matrices.
    weights : ndarray of float64 of shape (B, P)
        Weight of each speaker in each resample.

    Returns
    -------
    ndarray of float64 of shape (B,)
    """
    sizes = np.bincount(counted.folds, minlength=len(counted.fold_names))
    values = np.empty(len(weights))
    for row, drawn in enumerate(weights):
        share = np.bincount(counted.folds, weights=drawn, minlength=len(sizes)) / sizes
        recalls = _fold_recalls(counted, drawn)
        values[row] = share[share > 0] @ recalls[share > 0] / share.sum()
    return values


def count_confusions(
    utterances: Sequence[str],
    truth: Mapping[str, str],
    predicted: Mapping[str, str],
    speakers: Mapping[str, str],
    folds: Mapping[str, str] | None = None,
    convention: Convention = "pooled",
) -> Confusions:
    """Count utterances by speaker, true and predicted class; `confusions` checks its arguments first."""
    names, codes = np.unique(speakers_of(utterances, speakers), return_inverse=True)
    if convention == "pooled":
        folds = dict.fromkeys(names.tolist(), "all")
    else:
        folds = folds or {name: name for name in names}
    homeless = [name for name in names.tolist() if name not in folds]
    if homeless:
        raise DataError(
            f"{counted(len(homeless), 'speaker')} without a fold: {named(homeless)}",
            remedy="add them to spk2fold",
        )
    fold_names, fold_codes = np.unique(
        [folds[name] for name in names.tolist()], return_inverse=True
    )
    true_labels = [truth[utterance] for utterance in utterances]
    predicted_labels = [predicted[utterance] for utterance in utterances]
    classes, columns = np.unique(np.array([true_labels, predicted_labels]), return_inverse=True)
    counts = np.zeros((len(names), len(classes), len(classes)))
    np.add.at(counts, (codes, *columns.reshape(2, -1)), 1)
    return Confusions(
        classes.tolist(), names.tolist(), counts, fold_codes, fold_names.tolist(), convention
    )


def _fold_recalls(counted: Confusions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """UAR of each fold, shape (F,); NaN for a fold without weight."""
    n_classes = len(counted.classes)
    table = np.zeros((len(counted.fold_names), n_classes, n_classes))
    np.add.at(table, counted.folds, counted.counts * weights[:, None, None])
    size = table.sum(axis=2)
    hits = np.diagonal(table, axis1=1, axis2=2)
    counts = size > 0
    if counted.convention == "vpc2024":
        counts = counts | (table.sum(axis=1) > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recalls = np.where(size > 0, hits / size, 0.0)
        average: NDArray[np.float64] = (recalls * counts).sum(axis=1) / counts.sum(axis=1)
    if counted.convention == "vpc2024":
        average = np.round(100 * average, _DIGITS) / 100
    return average
