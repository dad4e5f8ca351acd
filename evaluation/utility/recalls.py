"""Unweighted average recall of recognised emotions (or any labels), over folds, with intervals by speaker.

Conventions
-----------
The UAR of a fold is the mean over classes of the share of its utterances that were recognised; the result is the plain
mean over folds. Without folds each speaker is one. What counts as a class is where tools differ:

===========  ========================================================================================================
convention   rule
===========  ========================================================================================================
default      the classes that the fold's utterances belong to
vpc2024      those and the classes that were predicted in the fold, which then count 0 (what `recall_score` of
             scikit-learn does with ``average="macro"``); the UAR of a fold is rounded to 3 decimals of percent
pooled       one fold of all utterances
===========  ========================================================================================================

Under a bootstrap of speakers a fold weighs as the mean weight of its speakers, so that a speaker that is drawn twice
counts as two.

References
----------
.. [1] B. Schuller, S. Steidl and A. Batliner, "The INTERSPEECH 2009 Emotion Challenge", Interspeech 2009 (the measure).
.. [2] N. Tomashenko et al., "The VoicePrivacy 2024 Challenge evaluation plan", arXiv 2404.02677.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.uncertainty import Interval, Resampling
from evaluation.utility.lists import check_same, named, speakers_of
from evaluation.utility.resampling import DEFAULT, interval_by_speaker, speaker_codes
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

Convention = Literal["default", "vpc2024", "pooled"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2024", "pooled")

_DIGITS = 3  # of percent, as the challenge rounds


@one_line
@dataclass(frozen=True, eq=False)
class Confusions:
    """How often each class was taken for which, by speaker.

    Attributes
    ----------
    classes : list of str, length C
        All that are true or predicted, sorted.
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
    """An unweighted average recall.

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
        UAR of a guess: 1 / number of true classes.
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
        """Return all of it by name, for a report."""
        names = ("convention", "chance", "n_speakers", "n_utterances", "folds", "recalls", "confusions")
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
    """Return how often each class was taken for which.

    Parameters
    ----------
    truth, predicted : mapping of str to str
        Class of each utterance.
    speakers : mapping of str to str
        Speaker of each utterance.
    folds : mapping of str to str, optional
        Fold of each speaker; each speaker is a fold of its own by default.
    convention : {"default", "vpc2024", "pooled"}
        See the module.
    missing : {"error", "drop"}
        What to do with utterances that lack a prediction or a truth.
    file : path, optional
        Of the predictions, for errors.

    Raises
    ------
    DataError
        If ids do not fit, or a speaker or a fold is unknown.
    """
    if convention not in CONVENTIONS:
        raise DataError(f"expected one of {CONVENTIONS}, got {convention!r}")
    if missing == "error":
        check_same(truth, predicted, file=file, what="utterances")
    utterances = sorted(utterance for utterance in truth if utterance in predicted)
    if not utterances:
        raise DataError("no utterance has both a label and a prediction", file=file, remedy="compare the ids")
    names, codes = speaker_codes(speakers_of(utterances, speakers))
    if convention == "pooled":
        folds = dict.fromkeys(names, "all")
    homeless = [] if folds is None else [name for name in names if name not in folds]
    if folds is None:
        folds = {name: name for name in names}
    if homeless:
        raise DataError(f"{len(homeless)} speakers without a fold: {named(homeless)}", remedy="add them to spk2fold")
    fold_names, places = speaker_codes([folds[name] for name in names])
    classes = sorted({labels[utterance] for labels in (truth, predicted) for utterance in utterances})
    code = {name: number for number, name in enumerate(classes)}
    counts = np.zeros((len(names), len(classes), len(classes)))
    rows = np.array([code[truth[utterance]] for utterance in utterances])
    columns = np.array([code[predicted[utterance]] for utterance in utterances])
    np.add.at(counts, (codes, rows, columns), 1)
    return Confusions(classes, names, counts, places, fold_names, convention)


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
    >>> heard = {"a1": "sad", "a2": "sad", "b1": "sad", "b2": "happy"}
    >>> average_recall(confusions(truth, heard, {one: one[0] for one in truth})).interval.value
    0.75
    """
    values = uar(counted, np.ones((1, len(counted.speakers))))
    by_fold = _fold_recalls(counted, np.ones(len(counted.speakers)))
    resampled = uar(counted, resampling.weights(len(counted.speakers)))
    total = counted.counts.sum(axis=0)
    size = total.sum(axis=1)
    n_least = int(size[size > 0].min())
    found = interval_by_speaker(float(values[0]), resampled, "uar", resampling, len(counted.speakers), n_least)
    true = [row for row in range(len(counted.classes)) if size[row]]
    table = {
        counted.classes[row]: dict(zip(counted.classes, total[row].astype(int).tolist(), strict=True)) for row in true
    }
    return Recalls(
        found,
        dict(zip(counted.fold_names, by_fold.tolist(), strict=True)),
        {counted.classes[row]: float(total[row, row] / size[row]) for row in true},
        table,
        1 / len(true),
        len(counted.speakers),
        int(total.sum()),
        counted.convention,
    )


@one_blas_thread()
def recall_differences(systems: Sequence[Confusions], resampling: Resampling = DEFAULT) -> list[Interval]:
    """Return what the UARs of systems on the same utterances differ by from the first one's, under shared draws.

    Raises
    ------
    DataError
        If speakers, their utterances or the conventions differ.
    """
    first = systems[0]
    weights = resampling.weights(len(first.speakers))
    ones = np.ones((1, len(first.speakers)))
    differences = []
    for other in systems[1:]:
        if (other.speakers, other.convention, other.fold_names) != (first.speakers, first.convention, first.fold_names):
            raise DataError("expected the same speakers, folds and convention of systems that are compared")
        if _truths(other) != _truths(first):
            raise DataError("expected the same utterances of systems that are compared")
        value = float(uar(other, ones)[0] - uar(first, ones)[0])
        resampled = uar(other, weights) - uar(first, weights)
        differences.append(interval_by_speaker(value, resampled, "difference", resampling, len(first.speakers)))
    return differences


@one_blas_thread()
def uar(counted: Confusions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the UAR under weights of the speakers.

    Parameters
    ----------
    counted : Confusions
        What was taken for what.
    weights : ndarray of float64 of shape (B, P)
        Of each speaker in each resample.

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


def _fold_recalls(counted: Confusions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """UAR of each fold, shape (F,); NaN for one without weight."""
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
        found = (recalls * counts).sum(axis=1) / counts.sum(axis=1)
    return np.round(100 * found, _DIGITS) / 100 if counted.convention == "vpc2024" else found


def _truths(counted: Confusions) -> dict[tuple[str, str], float]:
    sums = counted.counts.sum(axis=2)
    return {
        (speaker, name): count
        for speaker, row in zip(counted.speakers, sums.tolist(), strict=True)
        for name, count in zip(counted.classes, row, strict=True)
        if count
    }
