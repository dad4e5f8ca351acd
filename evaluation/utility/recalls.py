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

Training uses a set of other speakers if there is one, else the other folds of the tested speakers
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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, warn_of_copies
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
from spkbase.errors import DataError
from spkbase.rounding import is_constant
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

Convention = Literal["default", "vpc2024", "pooled"]
CONVENTIONS: tuple[Convention, ...] = ("default", "vpc2024", "pooled")

FOLDS = 10
"""Folds of the tested speakers without a training set; fewer if a class has fewer speakers."""

PENALTY = 0.1
"""C of the logistic regression on standardised vectors: of 1, 0.1, 0.01 and 0.001 the best for the sex of 251 training
speakers by two networks."""

_DIGITS = 3  # decimals of per cent, as in the challenge
_ROUNDS = 2000
_LEAST = 1e-6  # share of the largest deviation: dimensions that vary less are constant


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
        check_same(truth, predicted, file=file, items="utterances", otherwise=OR_DROP)
    utterances = sorted(utterance for utterance in truth if utterance in predicted)
    if not utterances:
        raise DataError(
            "no utterance has both a label and a prediction", file=file, remedy="compare the ids"
        )
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
            raise DataError(
                "expected the same speakers, folds and convention of systems that are compared"
            )
        if _true_counts(other) != _true_counts(first):
            raise DataError("expected the same utterances of systems that are compared")
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
        UAR by scenario: original, ignorant, informed, as far as there are vectors.
    differences : dict of str to Interval
        UAR of the other scenarios minus that of original, in shared resamples.
    learnt_from : str
        "training" or "folds".
    notes : tuple of str
        Notes on omitted data.
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
        """Return all values by name, for a report."""
        return {
            "learnt_from": self.learnt_from,
            "notes": list(self.notes),
            **{scenario: recall.to_dict() for scenario, recall in self.recalls.items()},
            "differences": {
                scenario: difference.to_dict() for scenario, difference in self.differences.items()
            },
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
        # the likelihood of separable classes has no maximum
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit((vectors - mean) / deviation, np.asarray(labels, np.str_))
    return [
        str(label) for label in machine.predict((np.asarray(tested, np.float64) - mean) / deviation)
    ]


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
        Vectors of other speakers with the same attribute; tested speakers are left out.
    missing : {"error", "drop"}
        Treatment of tested utterances without a known attribute.
    resampling : Resampling
        Resampling of speakers.

    Raises
    ------
    DataError
        If ids do not fit, vectors are not finite, or fewer than two classes have two speakers each.
    """
    notes = _check_sides(tested, training)
    truth = _labels_of(tested.original, labels, missing, notes)
    speakers = _speakers_by_id(tested.original)
    if training is None:
        truth = _without_rare(truth, speakers, notes)
        examples = truth
        learnt_speakers = speakers
        learnt_from = "folds"
        folds = _folds(truth, speakers)
    else:
        learnt_from = "training"
        learnt_speakers = _speakers_by_id(training.original)
        examples = _examples(training.original, labels, set(speakers.values()))
        folds = [list(truth)]
        strange = set(truth.values()) - set(examples.values())
        if strange:
            notes.append(
                f"no training speakers of class {named(strange)}, which is never predicted"
            )
    warn_of_alike([*truth.values(), *examples.values()], "classes", "a class")
    counted: dict[str, Confusions] = {}
    for scenario, learnt_side, tested_side in _scenarios(tested, training or tested):
        predicted: dict[str, str] = {}
        for fold in folds:
            inside = {speakers[name] for name in fold}
            names = [name for name in examples if learnt_speakers[name] not in inside]
            classes = [examples[name] for name in names]
            predictions = predict_labels(
                _rows(learnt_side, names), classes, _rows(tested_side, fold)
            )
            predicted |= dict(zip(fold, predictions, strict=True))
        counted[scenario] = _counted(sorted(truth), truth, predicted, speakers)
    recalls = {scenario: average_recall(table, resampling) for scenario, table in counted.items()}
    if resampling.resamples:
        notes += _doubts(recalls)
    differences = dict(
        zip(list(counted)[1:], recall_differences(list(counted.values()), resampling), strict=True)
    )
    return Leakage(recalls, differences, learnt_from, tuple(notes))


def _scenarios(tested: Sides, learnt: Sides) -> list[tuple[str, Embeddings, Embeddings]]:
    """Return the training and the tested vectors of each scenario."""
    scenarios = [("original", learnt.original, tested.original)]
    if tested.anonymised is not None:
        scenarios.append(("ignorant", learnt.original, tested.anonymised))
        if learnt.anonymised is not None:
            scenarios.append(("informed", learnt.anonymised, tested.anonymised))
    return scenarios


def _check_sides(tested: Sides, training: Sides | None) -> list[str]:
    """Refuse incompatible vectors; return notes on unknown speakers."""
    sides = [*tested]
    originals = [tested.original]
    warn_of_copies(tested.original, finding="utterances have copies")
    if training is not None:
        sides += training
        originals.append(training.original)
        warn_of_copies(tested.original, training.original, finding="utterances are in training too")
    notes: dict[str, None] = {}
    names: list[str] = []
    for original in originals:
        names += original.speakers.tolist()
        if not original.has_speakers:
            notes |= dict.fromkeys(original.notes)
    warn_of_alike(names)
    if tested.anonymised is not None:
        ids = dict.fromkeys(tested.original.ids.tolist())
        others = dict.fromkeys(tested.anonymised.ids.tolist())
        check_same(ids, others, file=tested.anonymised.source or None, items="utterances")
    expected = tested.original.vectors.shape[1]
    for side in sides:
        if side is not None and side.vectors.shape[1] != expected:
            text = f"expected vectors of {expected} dimensions as those of the original, got {side.vectors.shape[1]}"
            raise DataError(text, file=side.source or None, remedy="give vectors of one extractor")
    text = "so one voice may be in training and in test, and recalls are too high: give the utterances' speakers"
    return [f"{note}, {text}" for note in notes]


def _speakers_by_id(embeddings: Embeddings) -> dict[str, str]:
    return dict(zip(embeddings.ids.tolist(), embeddings.speakers.tolist(), strict=True))


def _examples(
    training: Embeddings, labels: Mapping[str, str], tested_speakers: Collection[str]
) -> dict[str, str]:
    """Return the labels of the training utterances of speakers who are not tested."""
    speakers = _speakers_by_id(training)
    known = _labels_of(training, labels, "drop", [])
    known = {name: label for name, label in known.items() if speakers[name] not in tested_speakers}
    if not known:
        text = "has no labelled speaker who is not tested too"
        raise DataError(text, file=training.source or None, remedy="train on other speakers")
    return _without_rare(known, speakers, [])


def _doubts(recalls: Mapping[str, Recalls]) -> list[str]:
    """Return notes on recalls below chance, and on their intervals."""
    notes = []
    for scenario, recall in recalls.items():
        high = recall.interval.high
        if not np.isfinite(high):
            high = 2 * recall.interval.value
        if high < recall.chance:
            notes.append(
                f"{scenario}: below chance, so the attribute is recognised by exchanging the predicted labels"
            )
        if recall.interval.note:
            notes.append(f"{scenario}: {recall.interval.note}")
    return notes


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
        raise DataError(
            f"{len(homeless)} speakers without a fold: {named(homeless)}",
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


def _labels_of(
    embeddings: Embeddings,
    labels: Mapping[str, str],
    missing: Literal["error", "drop"],
    notes: list[str],
) -> dict[str, str]:
    """Return the attribute of each utterance, by its id or its speaker."""
    ids = embeddings.ids.tolist()
    keys = embeddings.speakers.tolist()
    if any(name in labels for name in ids):
        keys = ids
    known = {
        name: labels[key]
        for name, key in sorted(zip(ids, keys, strict=True))
        if labels.get(key, "")
    }
    unknown = [name for name in ids if name not in known]
    if unknown:
        text = f"{len(unknown)} of {len(ids)} utterances without a label"
        if missing == "error" or not known:
            remedy = "add their labels" + OR_DROP * bool(known)
            raise DataError(
                f"{text}: {named(unknown)}", file=embeddings.source or None, remedy=remedy
            )
        notes.append(f"{text} were left out")
    return known


def _without_rare(
    truth: Mapping[str, str], speakers: Mapping[str, str], notes: list[str]
) -> dict[str, str]:
    """Drop classes with one speaker, who cannot be both trained on and tested."""
    owners: dict[str, set[str]] = {}
    for name, label in truth.items():
        owners.setdefault(label, set()).add(speakers[name])
    rare = sorted(label for label, names in owners.items() if len(names) < 2)
    if len(owners) - len(rare) < 2:
        got = (
            ", ".join(f"{label!r} with {len(names)}" for label, names in sorted(owners.items())[:5])
            or "none"
        )
        text = f"expected at least two classes with two speakers each, got {got}"
        raise DataError(text, remedy="give labels of more speakers, or another attribute")
    if rare:
        notes.append(f"classes of one speaker were left out: {named(rare)}")
    return {name: label for name, label in truth.items() if label not in rare}


def _folds(truth: Mapping[str, str], speakers: Mapping[str, str]) -> list[list[str]]:
    """Return the utterances of each fold; speakers are assigned in turn, sorted by their most frequent class."""
    labels: dict[str, Counter[str]] = {}
    for name, label in sorted(truth.items()):
        labels.setdefault(speakers[name], Counter())[label] += 1
    order = sorted(labels, key=lambda speaker: (labels[speaker].most_common(1)[0][0], speaker))
    n_speakers = Counter(chain.from_iterable(labels.values()))
    n_folds = min(FOLDS, *n_speakers.values())
    numbers = {speaker: number % n_folds for number, speaker in enumerate(order)}
    folds: list[list[str]] = [[] for _ in range(n_folds)]
    for name in sorted(truth):
        folds[numbers[speakers[name]]].append(name)
    return folds


def _rows(embeddings: Embeddings, names: Sequence[str]) -> NDArray[np.float64]:
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
