"""Unweighted average recall (UAR) of emotions or other labels, and attributes of speakers predicted from vectors.

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

Under a bootstrap of speakers a fold weighs as the mean weight of its speakers, so that a speaker drawn twice
counts as two.

Leakage of attributes
---------------------
A linear classifier predicts an attribute (sex, age, accent, ...) from vectors of held-out speakers, before and after
anonymisation; the measure is the UAR over all utterances, with an interval by speakers. The scenarios are

============  =================  =================
scenario      trained on         tested on
============  =================  =================
original      original           original
ignorant      original           anonymised
informed      anonymised         anonymised
============  =================  =================

Training uses a set of other speakers where there is one, else the other folds of the tested speakers
(cross-validation), which with few speakers underestimates an adversary with more data.

References
----------
.. [1] B. Schuller, S. Steidl and A. Batliner, "The INTERSPEECH 2009 Emotion Challenge", Interspeech 2009 (the measure).
.. [2] N. Tomashenko et al., "The VoicePrivacy 2024 Challenge evaluation plan", arXiv 2404.02677.
.. [3] P.-G. Noé et al., "Towards a unified assessment framework of speech pseudonymisation", Computer Speech & Language
   72, 2022 (attributes other than identity).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, warn_of_copies
from evaluation.trials import warn_of_alike
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility.lists import DEFAULT, OR_DROP, check_same, interval_by_speaker, named, speakers_of
from spkbase.errors import DataError
from spkbase.rounding import is_constant
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

Convention = Literal["default", "vpc2024", "pooled"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2024", "pooled")

FOLDS = 10
"""Of the tested speakers, where there is no training set; fewer where a class has fewer speakers."""

PENALTY = 0.1
"""C of the logistic regression on standardised vectors: of 1, 0.1, 0.01 and 0.001 the best for the sex of 251 training
speakers by two networks."""

_DIGITS = 3  # of percent, as the challenge rounds
_ROUNDS = 2000
_LEAST = 1e-6  # of the largest deviation: a dimension that varies less is constant


@one_line
@dataclass(frozen=True, eq=False)
class Confusions:
    """Confusion matrices by speaker.

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
        What to do with utterances that lack a prediction or a truth.
    file : path, optional
        Of the predictions, for errors.

    Raises
    ------
    DataError
        If ids do not fit, or a speaker or a fold is unknown.
    """
    warn_of_alike([*truth.values(), *predicted.values()], "classes", "a class")
    if convention not in CONVENTIONS:
        raise DataError(f"expected one of {CONVENTIONS}, got {convention!r}")
    if missing == "error":
        check_same(truth, predicted, file=file, what="utterances", otherwise=OR_DROP)
    utterances = sorted(utterance for utterance in truth if utterance in predicted)
    if not utterances:
        raise DataError("no utterance has both a label and a prediction", file=file, remedy="compare the ids")
    return _counted(utterances, truth, predicted, speakers, folds, convention)


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
    >>> average_recall(confusions(truth, predicted, {one: one[0] for one in truth})).interval.value
    0.75
    """
    n_speakers = len(counted.speakers)
    by_fold = _fold_recalls(counted, np.ones(n_speakers)).tolist()
    total = counted.counts.sum(axis=0)
    size = total.sum(axis=1)
    fewest = int(size[size > 0].min())
    found = interval_by_speaker(partial(uar, counted), n_speakers, "uar", resampling, n_trials=fewest)
    true = {name: row for row, name in enumerate(counted.classes) if size[row]}
    return Recalls(
        found,
        dict(zip(counted.fold_names, by_fold, strict=True)),
        {name: float(total[row, row] / size[row]) for name, row in true.items()},
        {name: dict(zip(counted.classes, total[row].astype(int).tolist(), strict=True)) for name, row in true.items()},
        1 / len(true),
        n_speakers,
        int(total.sum()),
        counted.convention,
    )


@one_blas_thread()
def recall_differences(systems: Sequence[Confusions], resampling: Resampling = DEFAULT) -> list[Interval]:
    """Return the UARs of systems on the same utterances minus the first one's, in shared resamples.

    Raises
    ------
    DataError
        If speakers, their utterances or the conventions differ.
    """
    first = systems[0]
    differences = []
    for other in systems[1:]:
        if (other.speakers, other.convention, other.fold_names) != (first.speakers, first.convention, first.fold_names):
            raise DataError("expected the same speakers, folds and convention of systems that are compared")
        # utterances of each speaker and class, without classes that are predicted alone
        truths = [
            {(one.speakers[row], one.classes[column]): count for (row, column), count in np.ndenumerate(sizes) if count}
            for one, sizes in ((one, one.counts.sum(axis=2)) for one in (first, other))
        ]
        if truths[0] != truths[1]:
            raise DataError("expected the same utterances of systems that are compared")

        statistics = [partial(uar, one) for one in (other, first)]
        n_speakers = len(first.speakers)
        differences.append(
            interval_by_speaker(statistics[0], n_speakers, "difference", resampling, minus=statistics[1])
        )
    return differences


@one_blas_thread()
def uar(counted: Confusions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the UAR under weights of the speakers.

    Parameters
    ----------
    counted : Confusions
        Confusion matrices.
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


class Sides(NamedTuple):
    """Vectors of the same utterances before and after anonymisation.

    Attributes
    ----------
    original : Embeddings
    anonymised : Embeddings or None
    """

    original: Embeddings
    anonymised: Embeddings | None = None


@one_line
@dataclass(frozen=True)
class Leakage(Tabular):
    """How well an attribute is predicted from vectors.

    Attributes
    ----------
    recalls : dict of str to Recalls
        By scenario: original, ignorant, informed, as far as there are vectors.
    differences : dict of str to Interval
        UAR of the other scenarios minus that of original, in shared resamples.
    learnt_from : str
        "training" or "folds".
    notes : tuple of str
        What was left out.
    """

    recalls: dict[str, Recalls]
    differences: dict[str, Interval]
    learnt_from: str
    notes: tuple[str, ...] = ()

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each scenario."""
        columns: dict[str, list[Any]] = {"scenario": list(self.recalls)}
        for recall in self.recalls.values():
            columns.setdefault("chance", []).append(recall.chance)
            for title, cells in recall.interval.to_columns().items():
                columns.setdefault(title, []).extend(cells)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name, for a report."""
        return {
            "learnt_from": self.learnt_from,
            "notes": list(self.notes),
            **{scenario: found.to_dict() for scenario, found in self.recalls.items()},
            "differences": {scenario: found.to_dict() for scenario, found in self.differences.items()},
        }


@one_blas_thread()
def predict_labels(vectors: NDArray[Any], labels: Sequence[str], tested: NDArray[Any]) -> list[str]:
    """Return the class of vectors by a logistic regression with balanced class weights.

    Vectors are standardised by the training vectors; see `PENALTY`.

    Parameters
    ----------
    vectors : ndarray of shape (n, D)
    labels : sequence of str, length n
        At least two classes.
    tested : ndarray of shape (m, D)

    Returns
    -------
    list of str, length m
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    vectors = np.asarray(vectors, np.float64)
    mean = vectors.mean(axis=0)
    deviation = vectors.std(axis=0)
    deviation[is_constant(vectors)] = 0.0
    deviation[deviation <= _LEAST * deviation.max()] = np.inf
    machine = LogisticRegression(C=PENALTY, class_weight="balanced", max_iter=_ROUNDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of what is apart there is no largest likelihood
        machine.fit((vectors - mean) / deviation, np.asarray(labels, np.str_))
    return [str(label) for label in machine.predict((np.asarray(tested, np.float64) - mean) / deviation)]


def attribute_leakage(
    tested: Sides,
    labels: Mapping[str, str],
    *,
    training: Sides | None = None,
    missing: Literal["error", "drop"] = "error",
    resampling: Resampling = DEFAULT,
) -> Leakage:
    """Return how well an attribute is predicted from vectors.

    Parameters
    ----------
    tested : Sides
        Vectors of the tested speakers; both sides hold the same utterances.
    labels : mapping of str to str
        The attribute by speaker, or by utterance where it knows one of the utterances; blank where it is not known.
    training : Sides, optional
        Of other speakers, with the same attribute: speakers that are tested are left out of it.
    missing : {"error", "drop"}
        What to do with tested utterances whose attribute is not known.
    resampling : Resampling
        Of speakers.

    Raises
    ------
    DataError
        If ids do not fit, vectors are not finite, or fewer than two classes have two speakers each.
    """
    sides = [side for side in (tested.original, training and training.original) if side is not None]
    notes = []
    for note in dict.fromkeys(note for side in sides if not side.has_speakers for note in side.notes):
        text = "so one voice may be in training and in test, and recalls are too high: give the utterances' speakers"
        notes.append(f"{note}, {text}")
    warn_of_alike(name for side in sides for name in side.speakers.tolist())
    warn_of_copies(tested.original, what="utterances have copies")
    if training is not None:
        warn_of_copies(tested.original, training.original, what="utterances are in training too")
    truth = _labels_of(tested.original, labels, missing, notes)
    speakers = dict(zip(tested.original.ids.tolist(), tested.original.speakers.tolist(), strict=True))
    if tested.anonymised is not None:
        ids, others = (dict.fromkeys(side.ids.tolist()) for side in (tested.original, tested.anonymised))
        check_same(ids, others, file=tested.anonymised.source or None, what="utterances")
    if training is None:
        examples = truth = _without_rare(truth, speakers, notes)
        folds = _folds(truth, speakers)
        learnt_speakers = speakers
    else:
        learnt_speakers = dict(zip(training.original.ids.tolist(), training.original.speakers.tolist(), strict=True))
        own = set(speakers.values())
        known = _labels_of(training.original, labels, "drop", [])
        known = {name: label for name, label in known.items() if learnt_speakers[name] not in own}
        if not known:
            text = "has no labelled speaker who is not tested too"
            raise DataError(text, file=training.original.source or None, remedy="train on other speakers")
        examples = _without_rare(known, learnt_speakers, [])
        folds = [list(truth)]
        strange = set(truth.values()) - set(examples.values())
        if strange:
            notes.append(f"no training speakers of class {named(strange)}, which is never predicted")
    warn_of_alike([*truth.values(), *examples.values()], "classes", "a class")
    present = [side for both in (tested, training) if both is not None for side in both if side is not None]
    for other in present[1:]:
        got = other.vectors.shape[1]
        if got != (expected := present[0].vectors.shape[1]):
            text = f"expected vectors of {expected} dimensions as those of the original, got {got}"
            raise DataError(text, file=other.source or None, remedy="give vectors of one extractor")
    scenarios = [("original", 0, 0)]  # each with the side that is learnt from and the side that is tested
    if tested.anonymised is not None:
        scenarios.append(("ignorant", 0, 1))
        if training is None or training.anonymised is not None:
            scenarios.append(("informed", 1, 1))
    counted: dict[str, Confusions] = {}
    for scenario, learns, meets in scenarios:
        predicted: dict[str, str] = {}
        for fold in folds:
            inside = {speakers[name] for name in fold}
            names = [name for name in examples if learnt_speakers[name] not in inside]
            vectors = _rows((training or tested)[learns], names)
            found = predict_labels(vectors, [examples[name] for name in names], _rows(tested[meets], fold))
            predicted |= dict(zip(fold, found, strict=True))
        counted[scenario] = _counted(sorted(truth), truth, predicted, speakers)
    recalls = {scenario: average_recall(found, resampling) for scenario, found in counted.items()}
    for scenario, recall in recalls.items() if resampling.resamples else ():
        if np.isfinite(recall.interval.high):
            end = recall.interval.high
        else:
            end = 2 * recall.interval.value
        if end < recall.chance:
            notes.append(f"{scenario}: below chance, so the attribute is recognised by exchanging the predicted labels")
        if recall.interval.note:
            notes.append(f"{scenario}: {recall.interval.note}")
    differences = dict(zip(list(counted)[1:], recall_differences(list(counted.values()), resampling), strict=True))
    return Leakage(recalls, differences, "folds" if training is None else "training", tuple(notes))


def _counted(
    utterances: Sequence[str],
    truth: Mapping[str, str],
    predicted: Mapping[str, str],
    speakers: Mapping[str, str],
    folds: Mapping[str, str] | None = None,
    convention: Convention = "pooled",
) -> Confusions:
    """Count utterances by speaker, true and predicted class."""
    names, codes = np.unique(speakers_of(utterances, speakers), return_inverse=True)
    if convention == "pooled":
        folds = dict.fromkeys(names.tolist(), "all")
    else:
        folds = folds or {name: name for name in names}
    homeless = [name for name in names.tolist() if name not in folds]
    if homeless:
        raise DataError(f"{len(homeless)} speakers without a fold: {named(homeless)}", remedy="add them to spk2fold")
    fold_names, places = np.unique([folds[name] for name in names.tolist()], return_inverse=True)
    both = [[labels[utterance] for utterance in utterances] for labels in (truth, predicted)]
    classes, columns = np.unique(np.array(both), return_inverse=True)
    counts = np.zeros((len(names), len(classes), len(classes)))
    np.add.at(counts, (codes, *columns.reshape(2, -1)), 1)
    return Confusions(classes.tolist(), names.tolist(), counts, places, fold_names.tolist(), convention)


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
        average: NDArray[np.float64] = (recalls * counts).sum(axis=1) / counts.sum(axis=1)
    if counted.convention == "vpc2024":
        average = np.round(100 * average, _DIGITS) / 100
    return average


def _labels_of(
    embeddings: Embeddings, labels: Mapping[str, str], missing: Literal["error", "drop"], notes: list[str]
) -> dict[str, str]:
    """The attribute of each utterance, by its id or its speaker's."""
    ids = embeddings.ids.tolist()
    if any(name in labels for name in ids):
        by = ids
    else:
        by = embeddings.speakers.tolist()
    found = {name: labels[key] for name, key in sorted(zip(ids, by, strict=True)) if labels.get(key, "")}
    unknown = [name for name in ids if name not in found]
    if unknown:
        text = f"{len(unknown)} of {len(ids)} utterances without a label"
        if missing == "error" or not found:
            remedy = "add their labels" + OR_DROP * bool(found)
            raise DataError(f"{text}: {named(unknown)}", file=embeddings.source or None, remedy=remedy)
        notes.append(f"{text} were left out")
    return found


def _without_rare(truth: Mapping[str, str], speakers: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """Labels without classes of one speaker, which cannot be in training and in test."""
    owners = {label: {speakers[name] for name, own in truth.items() if own == label} for label in set(truth.values())}
    rare = sorted(label for label, of in owners.items() if len(of) < 2)
    if len(owners) - len(rare) < 2:
        got = ", ".join(f"{label!r} with {len(of)}" for label, of in sorted(owners.items())[:5]) or "none"
        text = f"expected at least two classes with two speakers each, got {got}"
        raise DataError(text, remedy="give labels of more speakers, or another attribute")
    if rare:
        notes.append(f"classes of one speaker were left out: {named(rare)}")
    return {name: label for name, label in truth.items() if label not in rare}


def _folds(truth: Mapping[str, str], speakers: Mapping[str, str]) -> list[list[str]]:
    """Utterances of each fold; speakers are assigned in turn, by the class of most of their utterances."""
    labels: dict[str, Counter[str]] = {}
    for name, label in sorted(truth.items()):
        labels.setdefault(speakers[name], Counter())[label] += 1
    order = sorted(labels, key=lambda speaker: (labels[speaker].most_common(1)[0][0], speaker))
    fewest = min(sum(label in of for of in labels.values()) for label in set(truth.values()))
    n_folds = min(FOLDS, fewest)
    place = {speaker: number % n_folds for number, speaker in enumerate(order)}
    return [[name for name in sorted(truth) if place[speakers[name]] == number] for number in range(n_folds)]


def _rows(embeddings: Embeddings | None, names: Sequence[str]) -> NDArray[np.float64]:
    assert embeddings is not None  # scenarios without a side are left out
    row = {name: number for number, name in enumerate(embeddings.ids.tolist())}
    missing = [name for name in names if name not in row]
    if missing:
        text = f"{len(missing)} utterances without a vector: {named(missing)}"
        raise DataError(text, file=embeddings.source or None, remedy="extract them")
    vectors = np.asarray(embeddings.vectors, np.float64)[[row[name] for name in names]]
    bad = [names[row] for row in np.unique(np.argwhere(~np.isfinite(vectors))[:, 0])]
    if bad:
        text = f"{len(bad)} vectors are not finite: {named(bad)}"
        raise DataError(text, file=embeddings.source or None, remedy="extract them again")
    return vectors
