"""The attacker by properties, which recognises the files of a speaker without a voice.

Level, length, format, tags or noise may be equal for all recordings of a speaker: `spkver.extractors.PROPERTIES`. Two
recordings are compared by the logarithm of the difference of each property, and these are weighted by a logistic
regression with weights of at least 0. The weights are the sum of two regressions: on pairs of background recordings,
and on pairs of the enrolled recordings, whose speakers every attacker knows. So a property that identifies speakers
only in the enrolment is used too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import train_nonnegative
from evaluation.embeddings import Embeddings
from evaluation.trials import ALL_ENROLLED, Scores
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.attackers import lists
from spkver.attackers.protocol import Attack, Defaults, Learnt, TrainingSet, Vectors
from spkver.attackers.sources import ExtractorSource
from spkver.datadir import DataDir, with_versions
from spkver.extractors import PROPERTIES, open_extractor

logger = logging.getLogger(__name__)

_JUMP = 2.0
_RIDGE = 0.1
_LEARNT = 300  # number of recordings whose pairs are used for learning
_VERSIONS = 2  # number of versions of the enrolment that are used
_ENROLLED = 32  # number of recordings of a model, versions counted, evenly spaced
# initial weight of each property, so that scores carry information even if nothing can be learnt
_LEAST_WEIGHT = 1e-3
_METHOD = 2  # version of the scores


def closeness(some: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how close the properties of two recordings are.

    Parameters
    ----------
    some, others : ndarray of float64 of shape (..., P)
        Properties in the order of `PROPERTIES`.

    Returns
    -------
    ndarray of float64 of shape (..., P)
        0 if properties are equal within the resolution; otherwise minus `_JUMP`, minus the logarithm of the difference
        in units of the resolution.
    """
    resolutions = np.array(list(PROPERTIES.values()))
    differences = np.abs(some - others)
    steps = np.divide(
        differences, resolutions, out=np.ones_like(differences), where=resolutions > 0
    )
    closeness_of_parts: NDArray[np.float64] = -(
        _JUMP * (differences > resolutions) + np.log(np.maximum(steps, 1))
    )
    return closeness_of_parts


@one_blas_thread()
def learn_weights_of_properties(
    properties: NDArray[np.float64], speakers: Sequence[str], recordings: Sequence[str]
) -> NDArray[np.float64]:
    """Return the weight of each property, learnt from pairs of recordings.

    Parameters
    ----------
    properties : ndarray of float64 of shape (n, P)
    speakers, recordings : sequence of str of length n
        Speaker and recording of each row; versions of the same recording form no pair.

    Returns
    -------
    ndarray of float64 of shape (P,)
        At least 0; all are 0 if no speaker, or only one, has two recordings.
    """
    owners = np.asarray(speakers, str)
    sources = np.asarray(recordings, str)
    order = np.argsort(owners, kind="stable")[:_LEARNT]
    first, second = order[np.array(np.triu_indices(len(order), 1))]
    are_apart = sources[first] != sources[second]
    first = first[are_apart]
    second = second[are_apart]
    is_target = owners[first] == owners[second]
    if len(np.unique(owners[first[is_target]])) < 2:
        return np.zeros(len(PROPERTIES))
    trained = train_nonnegative(
        closeness(properties[first], properties[second]), is_target, ridge=_RIDGE
    )
    return np.array(trained.weights)


@one_line
@dataclass(frozen=True)
class PropertiesAttacker(Defaults):
    """The attacker by properties; see `spkver.attackers.Attacker`."""

    level: ClassVar[str] = ALL_ENROLLED
    hears_voices: ClassVar[bool] = False
    utterances: ClassVar[int | None] = 400

    name: str = "properties"
    source: ExtractorSource = field(
        default_factory=lambda: ExtractorSource(open_extractor("properties")), repr=False
    )

    def record(self, attack: Attack) -> Any:
        """Return what its scores depend on."""
        return {"method": _METHOD, "properties": self.source.key}

    def speech(self, attack: Attack, seed: int) -> Sequence[DataDir]:
        """Return the training set, the enrolment and the tested recordings."""
        background = self._part(attack.training.versions, seed)
        return background, self._enrolment(attack), attack.tested

    def fit(
        self, training: TrainingSet, vectors: Vectors, *, seed: int, jobs: int | None
    ) -> Learnt:
        """Learn the weights of the properties from the training set; the model also holds the seed."""
        return Learnt((self._learn(training.versions, vectors, seed), seed))

    def score(
        self, model: tuple[NDArray[np.float64], int], attack: Attack, vectors: Vectors
    ) -> Scores:
        """Score each trial by the mean closeness of the tested recording to the enrolled ones."""
        learnt, seed = model
        weights = learnt + self._learn(attack.enrolment[:_VERSIONS], vectors, seed) + _LEAST_WEIGHT
        trials = attack.trials
        enrolment = self._enrolment(attack)
        models, segments = lists.match_trials(enrolment, attack.tested, trials)
        enrolled = _by_utterance(vectors(enrolment))
        tested = _by_utterance(vectors(lists.select(attack.tested, set(segments))))
        tests = np.stack([tested[name] for name in trials.segment_ids])
        sessions = lists.sessions_of(models)
        rows = []
        for speaker in trials.model_ids:
            names = sessions[speaker]
            spaced = names[:: -(-len(names) // _ENROLLED)]
            # each row is summed separately, so that rounding does not depend on the order of the tests
            near = [(closeness(enrolled[name], tests) * weights).sum(axis=1) for name in spaced]
            rows.append(np.mean(near, axis=0))
        return lists.as_scores(trials, np.array(rows)[trials.models, trials.segments])

    def _enrolment(self, attack: Attack) -> DataDir:
        return lists.enrolled_speech(attack.enrolment[:_VERSIONS])

    def _part(self, versions: Sequence[DataDir], seed: int) -> DataDir:
        """Return the recordings to learn from, in all versions."""
        first, *others = lists.limited(versions, self.utterances, seed=seed)
        return with_versions(first, others)

    def _learn(
        self, versions: Sequence[DataDir], vectors: Vectors, seed: int
    ) -> NDArray[np.float64]:
        """Learn weights from a data directory, and log those that distinguish its speakers."""
        directory = self._part(versions, seed)
        properties = _by_utterance(vectors(directory))
        speakers = []
        recordings = []
        for utterance in properties:
            speakers.append(directory.speakers[utterance])
            recordings.append(directory.version_of.get(utterance, utterance))
        weights = learn_weights_of_properties(
            np.array(list(properties.values())), speakers, recordings
        )
        used = {}
        for key, weight in zip(PROPERTIES, weights, strict=True):
            if weight > 0:
                used[key] = f"{weight:.2g}"
        logger.debug("%s, weights by %s: %s", self.name, directory.name, used)
        return weights


def _by_utterance(properties: Embeddings) -> dict[str, NDArray[np.float64]]:
    return dict(zip(properties.ids.tolist(), np.asarray(properties.vectors), strict=True))
