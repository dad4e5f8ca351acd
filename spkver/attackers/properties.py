"""The attacker by properties, which recognises the files of a speaker without a voice.

Level, length, format, tags or noise may be equal for all recordings of a speaker: `spkver.extractors.PROPERTIES`. Two
recordings are compared by the logarithm of the difference of each property, and these are weighted by a logistic
regression with weights of at least 0. It is learnt twice and added: from pairs of background recordings, and from pairs
of the enrolled recordings, whose speakers every attacker knows. What a single scenario or speaker hides is then still
seen where the enrolment shows it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import train_nonnegative
from evaluation.trials import ALL_ENROLLED, Scores
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.attackers import lists
from spkver.attackers.protocol import Attack, Extracted, TrainingSet, naming
from spkver.attackers.sources import ExtractorSource
from spkver.datadir import DataDir, with_versions
from spkver.extractors import PROPERTIES, open_extractor

logger = logging.getLogger(__name__)

_PARTNERS = 20  # pairs of each recording with its neighbours in the list of speakers, and as many with others
_JUMP = 2.0
_RIDGE = 0.1
_VERSIONS = 2  # of the enrolment
_ENROLLED = 32  # recordings of a model, versions counted, evenly spaced
_LEAST_WEIGHT = 1e-3  # of each property, so that scores tell something even where nothing can be learnt
_METHOD = 1  # version of the scores


def closeness(some: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how close the properties of two recordings are.

    Parameters
    ----------
    some, others : ndarray of float64 of shape (..., P)
        In the order of `PROPERTIES`.

    Returns
    -------
    ndarray of float64 of shape (..., P)
        0 where properties are equal within the resolution; where they differ, less by `_JUMP` and by the logarithm of
        the difference in units of the resolution.
    """
    resolutions = np.array(list(PROPERTIES.values()))
    differences = np.abs(some - others)
    steps = np.divide(differences, resolutions, out=np.ones_like(differences), where=resolutions > 0)
    return -(_JUMP * (differences > resolutions) + np.log(np.maximum(steps, 1)))


@one_blas_thread()
def learn_weights_of_properties(
    properties: NDArray[np.float64], speakers: Sequence[str], recordings: Sequence[str], *, seed: int
) -> NDArray[np.float64]:
    """Return the weight of each property, learnt from pairs of recordings.

    Parameters
    ----------
    properties : ndarray of float64 of shape (n, P)
    speakers, recordings : sequence of str of length n
        Speaker and recording of each row; versions of one recording form no pair.
    seed : int
        Of the pairs of different speakers.

    Returns
    -------
    ndarray of float64 of shape (P,)
        At least 0; all are 0 if no speaker, or only one, has two recordings.
    """
    _, owners = np.unique(np.asarray(speakers, str), return_inverse=True)
    _, sources = np.unique(np.asarray(recordings, str), return_inverse=True)
    order = np.argsort(owners, kind="stable")
    random = stream(seed, "pairs of recordings")
    near = [np.roll(order, -lag) for lag in range(1, _PARTNERS + 1)]
    far = [random.permutation(order) for _ in near]
    pairs = np.stack([np.tile(order, 2 * _PARTNERS), np.concatenate([*near, *far])])
    first, second = pairs[:, sources[pairs[0]] != sources[pairs[1]]]
    is_target = owners[first] == owners[second]
    if len(np.unique(owners[first[is_target]])) < 2:
        return np.zeros(len(PROPERTIES))
    trained = train_nonnegative(closeness(properties[first], properties[second]), is_target, ridge=_RIDGE)
    return np.array(trained.weights)


class Weights(NamedTuple):
    """Weights of the properties by the training set, and by each enrolment once it is scored."""

    background: NDArray[np.float64]
    enrolment: dict[DataDir, NDArray[np.float64]]


@one_line
@dataclass(frozen=True)
class PropertiesAttacker:
    """The attacker by properties; see `spkver.attackers.Attacker`."""

    level: ClassVar[str] = ALL_ENROLLED
    utterances: ClassVar[int | None] = 400

    name: str = "properties"
    source: ExtractorSource = field(default_factory=lambda: ExtractorSource(open_extractor("properties")), repr=False)

    def record(self, attack: Attack) -> Any:
        """Return what its scores depend on."""
        return {"method": _METHOD, "properties": self.source.record}

    def obstacle(self, attack: Attack) -> str:
        """Return an empty string: it can score every list."""
        return ""

    def extract(self, extracted: Extracted, attack: Attack) -> None:
        """Read the files of the training set, the enrolment and the tested recordings."""
        background = self._part(attack.training.versions, extracted.seed)
        with naming(self.name):
            for directory in (background, lists.enrolled_speech(attack.enrolment[:_VERSIONS]), attack.tested):
                self.source.extract(extracted, directory)

    def fit(self, extracted: Extracted, training: TrainingSet) -> Weights:
        """Learn the weights of the properties from the training set."""
        with naming(self.name):
            return Weights(self._learn(extracted, training.versions), {})

    def score(self, extracted: Extracted, model: Weights, attack: Attack) -> Scores:
        """Score each trial by the mean closeness of the tested recording to the enrolled ones."""
        versions = attack.enrolment[:_VERSIONS]
        enrolment = lists.enrolled_speech(versions)
        models, segments = lists.match_trials(enrolment, attack.tested, attack.trials)
        if enrolment not in model.enrolment:
            model.enrolment[enrolment] = self._learn(extracted, versions)
        weights = model.background + model.enrolment[enrolment] + _LEAST_WEIGHT
        enrolled = self._properties(extracted, enrolment)
        tested = self._properties(extracted, lists.select(attack.tested, set(segments)))
        tests = np.stack(list(tested.values()))
        values = {}
        for speaker, names in lists.sessions_of(models).items():
            spaced = names[:: -(-len(names) // _ENROLLED)]
            near = [closeness(enrolled[name], tests) @ weights for name in spaced]
            values[speaker] = dict(zip(tested, np.mean(near, axis=0), strict=True))
        trials = attack.trials
        pairs = zip(trials.model_ids[trials.models], trials.segment_ids[trials.segments], strict=True)
        return lists.as_scores(trials, np.array([values[speaker][segment] for speaker, segment in pairs]))

    def _part(self, versions: Sequence[DataDir], seed: int) -> DataDir:
        """Return the recordings to learn from, in all versions: of speakers with at least two."""
        counts = Counter(versions[0].speakers.values())
        several = {name for name, speaker in versions[0].speakers.items() if counts[speaker] > 1}
        first, *others = lists.limited([lists.select(one, several) for one in versions], self.utterances, seed=seed)
        return with_versions(first, others)

    def _properties(self, extracted: Extracted, directory: DataDir) -> dict[str, NDArray[np.float64]]:
        if not len(directory):
            return {}
        found = self.source.fit(extracted, directory, "")(directory)
        return dict(zip(found.ids.tolist(), np.asarray(found.vectors), strict=True))

    def _learn(self, extracted: Extracted, versions: Sequence[DataDir]) -> NDArray[np.float64]:
        """Return the weights by a data directory, and log those that tell its speakers apart."""
        directory = self._part(versions, extracted.seed)
        properties = self._properties(extracted, directory)
        speakers = [directory.speakers[utterance] for utterance in properties]
        recordings = [directory.version_of.get(utterance, utterance) for utterance in properties]
        rows = np.array(list(properties.values())).reshape(-1, len(PROPERTIES))
        weights = learn_weights_of_properties(rows, speakers, recordings, seed=extracted.seed)
        told = {key: f"{weight:.2g}" for key, weight in zip(PROPERTIES, weights, strict=True) if weight > 0}
        logger.debug("%s, weights by %s: %s", self.name, directory.name, told)
        return weights
