"""Attributes of speakers (sex, age, accent, ...) that are recognised from their voices.

A linear classifier predicts an attribute from vectors of held-out speakers, before and after anonymisation. The
scenarios are

============  =================  =================
scenario      trained on         tested on
============  =================  =================
original      original           original
ignorant      original           anonymised
informed      anonymised         anonymised
============  =================  =================

Training uses a set of other speakers if there is one, else the other folds of the tested speakers
(cross-validation), which with few speakers underestimates an adversary with more data.

`attribute_leakage` gives the UAR of an attribute over all utterances, `inferred_sets` what several attributes together
say about a person (`evaluation.utility.inference`), and `attribute_risk` what an attacker learns from the attributes
that are published with anonymised recordings. Intervals are over speakers.

References
----------
.. [1] P.-G. Noé et al., "Towards a unified assessment framework of speech pseudonymisation", Computer Speech & Language
   72, 2022 (attributes other than identity).
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    TIE,
    Embeddings,
    check_anonymised,
    to_unit,
    warn_of_copies,
)
from evaluation.linkage import mean_interval
from evaluation.trials import factorise, warn_of_alike
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility.inference import (
    InferenceRisk,
    InferredSets,
    inference_risk,
    set_sizes,
    shares_named,
    uniqueness,
)
from evaluation.utility.lists import DEFAULT, OR_DROP, check_same, named
from evaluation.utility.recalls import (
    Confusions,
    Recalls,
    average_recall,
    count_confusions,
    recall_differences,
)
from spkbase.errors import DataError, counted
from spkbase.progress import progress
from spkbase.rounding import is_constant
from spkbase.showing import Tabular, one_line
from spkbase.work import chunk_bounds, one_blas_thread

FOLDS = 10
"""Folds of the tested speakers without a training set; fewer if a class has fewer speakers."""

PENALTY = 0.1
"""C of the logistic regression on standardised vectors: of 1, 0.1, 0.01 and 0.001 the best for the sex of 251 training
speakers by two networks."""

Attributes: TypeAlias = Mapping[str, Mapping[str, str]]
"""Values of each speaker by attribute, blank where not known; a data frame with speakers as index will do."""

logger = logging.getLogger(__name__)

_ROUNDS = 2000
_LEAST = 1e-6  # share of the largest deviation; dimensions that vary less count as constant
_CELLS = 2**22  # number of cosines computed at once


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
        UAR by scenario (original, ignorant, informed), for those with vectors.
    differences : dict of str to Interval
        UAR of the other scenarios minus that on original speech, in shared resamples.
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
    machine, scaled = _recogniser(vectors, labels, tested)
    return [str(label) for label in machine.predict(scaled)]


@one_blas_thread()
def label_log_probabilities(
    vectors: NDArray[Any], labels: Sequence[str], tested: NDArray[Any]
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the log-probability of each class by the regression of `predict_labels`, and the classes.

    Returns
    -------
    log_probabilities : ndarray of float64 of shape (m, C)
        For equally frequent classes, so that values of independent recordings of a speaker may be added.
    classes : list of str, length C
        Sorted.
    """
    from scipy.special import log_softmax

    machine, scaled = _recogniser(vectors, labels, tested)
    scores = machine.decision_function(scaled)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    classes = [str(name) for name in machine.classes_]
    return log_softmax(scores, axis=1), classes


def _recogniser(
    vectors: NDArray[Any], labels: Sequence[str], tested: NDArray[Any]
) -> tuple[Any, NDArray[np.float64]]:
    """Return the fitted regression, and the tested vectors standardised by the training vectors."""
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
    return machine, (np.asarray(tested, np.float64) - mean) / deviation


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
        The attribute, by utterance if any key is an utterance, else by speaker; blank if unknown.
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
        folds = _folds(truth, speakers)
    else:
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
        for fold in progress(folds, description="attributes", total=len(folds)):
            inside = {speakers[name] for name in fold}
            names = [name for name in examples if learnt_speakers[name] not in inside]
            classes = [examples[name] for name in names]
            predictions = predict_labels(
                _rows(learnt_side, names), classes, _rows(tested_side, fold)
            )
            predicted |= dict(zip(fold, predictions, strict=True))
        counted[scenario] = count_confusions(sorted(truth), truth, predicted, speakers)
    recalls = {scenario: average_recall(table, resampling) for scenario, table in counted.items()}
    if resampling.resamples:
        notes += _doubts(recalls)
    differences = dict(
        zip(list(counted)[1:], recall_differences(list(counted.values()), resampling), strict=True)
    )
    learnt_from = "folds" if training is None else "training"
    return Leakage(recalls, differences, learnt_from, tuple(notes))


def inferred_sets(
    tested: Sides,
    attributes: Attributes,
    *,
    training: Sides | None = None,
    missing: Literal["error", "drop"] = "error",
    resampling: Resampling = DEFAULT,
) -> dict[str, InferredSets]:
    """Return how far several attributes together identify a person, both true ones and those inferred from vectors.

    Parameters
    ----------
    tested, training, missing, resampling
        See `attribute_leakage`.
    attributes : mapping of str to mapping of str to str, or data frame
        Values of each speaker, or of each utterance, by attribute.

    Returns
    -------
    dict of str to InferredSets
        ``true`` sets, and those of each scenario. People with a unique value of an attribute are attacked too, but a
        value that no training speaker has is never inferred.

    Raises
    ------
    DataError
        As `attribute_leakage`, or if a speaker has several values of an attribute.
    """
    tables = _tables_of(attributes)
    notes = _check_sides(tested, training)
    owner = _speakers_by_id(tested.original)
    truth = _known_sets(tested.original, tables, missing, notes)
    people = sorted({owner[name] for name in truth})
    owners = np.searchsorted(people, [owner[name] for name in truth])
    by_speaker = {owner[name]: own for name, own in truth.items()}
    true_sets = [by_speaker[name] for name in people]
    everybody = np.arange(len(people))
    known = _set_rates(people, true_sets, true_sets, true_sets, everybody, resampling)
    results = {"true": replace(known, right=Interval(1.0), right_by_one=Interval(1.0))}
    for scenario, learnt_side, tested_side in _scenarios(tested, training or tested):
        pooled = []
        guesses = []
        for column, values in enumerate(tables.values()):
            labels = {name: own[column] for name, own in truth.items()}
            likely, classes = _log_probabilities(
                labels, owner, learnt_side, tested_side, values, training
            )
            sums = np.zeros((len(people), len(classes)))
            np.add.at(sums, owners, likely)
            pooled.append(classes[sums.argmax(axis=1)].tolist())
            guesses.append(classes[likely.argmax(axis=1)].tolist())
        of_people = list(zip(*pooled, strict=True))
        of_recordings = list(zip(*guesses, strict=True))
        results[scenario] = _set_rates(
            people, true_sets, of_people, of_recordings, owners, resampling
        )
    return results


def attribute_risk(
    known: Embeddings,
    released: Embeddings,
    control: Embeddings,
    attributes: Attributes,
    *,
    missing: Literal["error", "drop"] = "error",
    resampling: Resampling = DEFAULT,
) -> dict[str, InferenceRisk]:
    """Return how much more can be inferred about people because their anonymised recordings were published.

    The attributes of the speakers were published with the recordings. An attacker who has an original recording of
    somebody looks for the nearest published one, by the cosine, and reads its attributes.

    Parameters
    ----------
    known : Embeddings
        Original recordings of people in the data.
    released : Embeddings
        The anonymised recordings.
    control : Embeddings
        Original recordings of people who are not in the data.
    attributes : mapping of str to mapping of str to str, or data frame
        Values of each speaker, or of each utterance, by attribute.
    missing : {"error", "drop"}
        Treatment of recordings without a known attribute.
    resampling : Resampling
        Resampling of speakers.

    Returns
    -------
    dict of str to InferenceRisk
        By attribute; for all together (``set``) if there are several.

    Raises
    ------
    DataError
        If people are on the wrong sides, ids or dimensions do not fit, or vectors are not finite.
    """
    tables = _tables_of(attributes)
    published = set(released.speakers.tolist())
    strange = set(known.speakers.tolist()) - published
    if strange:
        text = f"{counted(len(strange), 'speaker')} of no anonymised recording: {named(strange)}"
        remedy = "give their names by --segment-speakers, or people who are in the data"
        raise DataError(text, file=known.source or None, remedy=remedy)
    both = set(control.speakers.tolist()) & published
    if both:
        text = f"{counted(len(both), 'speaker')} of the control group in the data: {named(both)}"
        raise DataError(text, file=control.source or None, remedy="give other people")
    check_anonymised(known, released)
    _warn_of_unpublished_values(control, released, tables)
    attacked = _shares_read(known, released, tables, missing)
    others = _shares_read(control, released, tables, missing)
    risks = {}
    for name, shares in attacked.items():
        risks[name] = inference_risk(shares, others[name], resampling)
    return risks


def _tables_of(attributes: Any) -> dict[str, dict[str, str]]:
    """Return the values of speakers by attribute as text; blank where a data frame has none."""
    given = attributes
    if hasattr(given, "to_dict"):
        given = given.to_dict()
    if not (isinstance(given, Mapping) and given):
        text = f"expected values of speakers by attribute, got {attributes!r:.60}"
        raise DataError(text, remedy="give {'sex': {'s01': 'f', ...}, ...}")
    tables = {}
    for name, values in given.items():
        if not isinstance(values, Mapping):
            raise DataError(f"expected values by speaker, got {values!r:.60} for {name!r}")
        known = {str(key): value for key, value in values.items() if value == value}
        tables[str(name)] = {key: str(value) for key, value in known.items() if value is not None}
        warn_of_alike(tables[str(name)].values(), f"values of {name}", "a value")
    return tables


def _known_sets(
    embeddings: Embeddings,
    tables: Mapping[str, Mapping[str, str]],
    missing: Literal["error", "drop"],
    notes: list[str],
) -> dict[str, tuple[str, ...]]:
    """Return the set of attributes of each utterance for which all are known; a speaker has one set."""
    columns = [_labels_of(embeddings, values, missing, notes) for values in tables.values()]
    sets = {}
    of_speakers: dict[str, tuple[str, ...]] = {}
    owner = _speakers_by_id(embeddings)
    for name in sorted(owner):
        if all(name in column for column in columns):
            sets[name] = tuple(column[name] for column in columns)
            if of_speakers.setdefault(owner[name], sets[name]) != sets[name]:
                text = f"speaker {owner[name]!r} has several values: {of_speakers[owner[name]]}, {sets[name]}"
                remedy = "give attributes of speakers, not of recordings"
                raise DataError(text, file=embeddings.source or None, remedy=remedy)
    if not sets:
        raise DataError("no utterance has all attributes", file=embeddings.source or None)
    return sets


def _log_probabilities(
    labels: Mapping[str, str],
    owner: Mapping[str, str],
    learnt_side: Embeddings,
    tested_side: Embeddings,
    values: Mapping[str, str],
    training: Sides | None,
) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Return the log-probability of each class for each utterance, by recognisers without its speaker."""
    utterances = list(labels)
    if training is None:
        examples = _without_rare(labels, owner, [])
        learnt_owner = owner
        folds = _folds(examples, owner)
        rare = [name for name in utterances if name not in examples]
        if rare:
            folds.append(rare)
    else:
        examples = _examples(training.original, values, set(owner.values()))
        learnt_owner = _speakers_by_id(training.original)
        folds = [utterances]
    rows = {name: row for row, name in enumerate(utterances)}
    classes = sorted(set(examples.values()))
    likely = np.zeros((len(utterances), len(classes)))
    for fold in progress(folds, description="attributes", total=len(folds)):
        inside = {owner[name] for name in fold}
        names = [name for name in examples if learnt_owner[name] not in inside]
        own = [examples[name] for name in names]
        vectors = _rows(learnt_side, names)
        likely[[rows[name] for name in fold]], _ = label_log_probabilities(
            vectors, own, _rows(tested_side, fold)
        )
    return likely, np.array(classes, object)


def _set_rates(
    people: list[str],
    truth: list[tuple[str, ...]],
    pooled: list[tuple[str, ...]],
    guesses: list[tuple[str, ...]],
    owners: NDArray[np.intp],
    resampling: Resampling,
) -> InferredSets:
    """Return the rates of sets that are inferred from all recordings of each person, and from single ones."""
    rates = []
    for inferred, targets in ((pooled, np.arange(len(people))), (guesses, owners)):
        right = np.zeros(len(inferred))
        for row, target in enumerate(targets.tolist()):
            right[row] = inferred[row] == truth[target]
        for shares in (right, shares_named(truth, inferred, targets)):
            means = np.bincount(targets, shares) / np.bincount(targets)
            rates.append(mean_interval(np.minimum(means, 1.0), resampling))
    right_in_all, named_by_all, right_by_one, named_by_one = rates
    return InferredSets(
        people,
        pooled,
        set_sizes(pooled),
        uniqueness(pooled, level=resampling.level),
        right_in_all,
        right_by_one,
        named_by_all,
        named_by_one,
    )


@one_blas_thread()
def _warn_of_unpublished_values(
    control: Embeddings, released: Embeddings, tables: Mapping[str, Mapping[str, str]]
) -> None:
    """Warn of values that only the control group has: they cannot be inferred, so the risk is too high."""
    owner = _speakers_by_id(control)
    for name, table in tables.items():
        published = set(_labels_of(released, table, "drop", []).values())
        strange = {
            owner[utterance]
            for utterance, value in _labels_of(control, table, "drop", []).items()
            if value not in published
        }
        if strange:
            logger.warning(
                "%d of %d speakers of the control group have a value of %s that no published speaker has: it cannot be"
                " inferred for them, so the risk is too high (take classes such as 30-39, or other people)",
                len(strange),
                len(set(owner.values())),
                name,
            )


def _shares_read(
    known: Embeddings,
    released: Embeddings,
    tables: Mapping[str, Mapping[str, str]],
    missing: Literal["error", "drop"],
) -> dict[str, NDArray[np.float64]]:
    """Return how often the nearest published recordings have each speaker's attributes; equally near ones share."""
    own = _known_sets(known, tables, missing, [])
    theirs = _known_sets(released, tables, missing, [])
    queries = _rows(known, list(own))
    vectors = _rows(released, list(theirs))
    if queries.shape[1] != vectors.shape[1]:
        text = f"expected vectors of {vectors.shape[1]} dimensions, got {queries.shape[1]}"
        raise DataError(
            text, file=known.source or None, remedy="give vectors of the same extractor"
        )
    unit = to_unit(vectors)
    shares: dict[str, list[NDArray[np.float64]]] = {}
    for start, stop in chunk_bounds(len(queries), max(1, _CELLS // len(vectors))):
        cosines = to_unit(queries[start:stop]) @ unit.T
        nearest = (cosines >= cosines.max(axis=1, keepdims=True) - TIE).astype(float)
        nearest /= nearest.sum(axis=1, keepdims=True)
        whole = np.ones(nearest.shape, bool)
        for column, name in enumerate(tables):
            values = np.array([part[column] for part in list(own.values())[start:stop]], object)
            right = values[:, None] == np.array([part[column] for part in theirs.values()], object)
            whole &= right
            shares.setdefault(name, []).append((nearest * right).sum(axis=1))
        if len(tables) > 1:
            shares.setdefault("set", []).append((nearest * whole).sum(axis=1))
    owner = _speakers_by_id(known)
    _, speakers = factorise([owner[name] for name in own])
    means = {}
    for name, parts in shares.items():
        sums = np.bincount(speakers, np.concatenate(parts))
        means[name] = np.minimum(sums / np.bincount(speakers), 1.0)
    return means


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
    learnt = training or tested
    originals = [tested.original]
    warn_of_copies(tested.original, finding="utterances have copies")
    if training is not None:
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
        check_same(ids, others, file=tested.anonymised.source or None)
    for side in (tested, learnt):
        if side.anonymised is not None:
            check_anonymised(side.original, side.anonymised)
    expected = tested.original.vectors.shape[1]
    for vectors in (*tested, *learnt):
        if vectors is not None and vectors.vectors.shape[1] != expected:
            text = f"expected vectors of {expected} dimensions as those of the original, got {vectors.vectors.shape[1]}"
            remedy = "give vectors of the same extractor"
            raise DataError(text, file=vectors.source or None, remedy=remedy)
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
                f"{scenario}: below chance, so the attribute could be recognised by exchanging the predicted labels"
            )
        if recall.interval.note:
            notes.append(f"{scenario}: {recall.interval.note}")
    return notes


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
    """Drop classes with a single speaker, who cannot be used for both training and testing."""
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
        notes.append(f"classes with a single speaker were left out: {named(rare)}")
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
        text = f"{counted(len(missing), 'utterance')} without a vector: {named(missing)}"
        raise DataError(text, file=embeddings.source or None, remedy="extract them")
    vectors = np.asarray(embeddings.vectors, np.float64)[[row[name] for name in names]]
    bad = [names[row] for row in np.unique(np.argwhere(~np.isfinite(vectors))[:, 0])]
    if bad:
        text = f"{counted(len(bad), 'vector')} not finite: {named(bad)}"
        raise DataError(text, file=embeddings.source or None, remedy="extract them again")
    return vectors
