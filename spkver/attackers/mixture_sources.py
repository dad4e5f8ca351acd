"""Vectors that come from statistics of a mixture which is trained on the background alone: i-vectors, supervectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.showing import one_line
from spkver.attackers.protocol import Place
from spkver.attackers.training import merge_versions
from spkver.attackers.vector_attacker import Source
from spkver.attackers.workplace import Prepared, Workplace
from spkver.datadir import DataDir
from spkver.features import FeatureConfig
from spkver.mixture import GaussianMixture, Statistics

Extract = Callable[[Statistics], tuple[NDArray[np.object_], NDArray[np.floating]]]
"""Segments and vectors (n, R) of statistics of recordings."""

OpenSource = Callable[[tuple[DataDir, ...]], Source]


@one_line
@dataclass(frozen=True, eq=False)
class MixtureSource:
    """Vectors from statistics of one mixture; see `spkver.attackers.vector_attacker.Source`.

    Attributes
    ----------
    place : Place
    features : FeatureConfig
    ubm : GaussianMixture
    extract : callable
    """

    place: Place = field(repr=False)
    features: FeatureConfig
    ubm: GaussianMixture = field(repr=False)
    extract: Extract = field(repr=False)
    _known: dict[Path, NDArray[np.floating]] = field(default_factory=dict, repr=False)

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""
        owners = dict(directory.speakers if utterances is None else utterances)
        names = sorted(owners)
        # folds are made of recordings that the training set has: theirs are known, in whatever directory they stand
        due = {name: Path(directory.recordings[name]) for name in names}
        due = {name: path for name, path in due.items() if path not in self._known}
        if due:
            work = workplace_of(self.place)
            prepared = work.recordings(directory.name, due, self.features, seed=self.place.seed)
            segments, rows = self.extract(work.statistics(prepared, self.ubm))
            self._known.update({due[str(name)]: row for name, row in zip(segments, rows, strict=True)})
        vectors = np.stack([self._known[Path(directory.recordings[name])] for name in names])
        speakers = np.array([owners[name] for name in names], object)
        return Embeddings(np.array(names, object), speakers, vectors, source=str(directory.path))


def workplace_of(place: Place) -> Workplace:
    """Return the folder in which attackers share features and statistics."""
    return Workplace(place.work, place.jobs, place.device)


def prepare_training(versions: tuple[DataDir, ...], features: FeatureConfig, place: Place) -> Prepared:
    """Return the features of all recordings of versions of a training set."""
    speech = merge_versions(versions)
    recordings = {name: Path(path) for name, path in speech.recordings.items()}
    return workplace_of(place).recordings(speech.name, recordings, features, seed=place.seed)


def opened_once(learn: Callable[[tuple[DataDir, ...]], Source]) -> OpenSource:
    """Return what learns a source from a training set the first time that it is asked for."""
    known: dict[tuple[DataDir, ...], Source] = {}

    def open_source(training: tuple[DataDir, ...]) -> Source:
        if training not in known:
            known[training] = learn(training)
        return known[training]

    return open_source
