"""Vectors that come from statistics of a mixture which is trained on the background alone: i-vectors, supervectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.arrays import Rows
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.config import Context
from spkver.attackers.protocol import Attacker, Place
from spkver.attackers.training import merge_versions
from spkver.attackers.vector_attacker import ChoiceConfig, Source, VectorAttacker
from spkver.attackers.workplace import Prepared, Workplace
from spkver.datadir import DataDir
from spkver.features import FeatureConfig
from spkver.mixture import GaussianMixture, Statistics, UbmConfig


class Extracted(Protocol):
    """What is made of statistics of recordings: i-vectors, supervectors."""

    @property
    def segments(self) -> NDArray[np.object_]:
        """Recordings, shape (n,)."""

    @property
    def vectors(self) -> Rows:
        """Shape (n, R)."""


@dataclass(frozen=True)
class MixtureConfig(ChoiceConfig):
    """How an attacker by such vectors is made; each part as for the classic attackers."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)


Config = TypeVar("Config", bound=MixtureConfig)


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
        Makes vectors of statistics.
    """

    place: Place = field(repr=False)
    features: FeatureConfig
    ubm: GaussianMixture = field(repr=False)
    extract: Callable[[Statistics], Extracted] = field(repr=False)
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
            found = self.extract(work.statistics(prepared, self.ubm))
            rows = np.asarray(found.vectors)
            self._known.update({due[str(name)]: row for name, row in zip(found.segments, rows, strict=True)})
        vectors = np.stack([self._known[Path(directory.recordings[name])] for name in names])
        speakers = np.array([owners[name] for name in names], object)
        return Embeddings(np.array(names, object), speakers, vectors, source=str(directory.path))


def workplace_of(place: Place) -> Workplace:
    """Return the folder in which attackers share features and statistics."""
    return Workplace(place.work, place.jobs)


def prepare_training(versions: tuple[DataDir, ...], features: FeatureConfig, place: Place) -> Prepared:
    """Return the features of all recordings of versions of a training set."""
    speech = merge_versions(versions)
    recordings = {name: Path(path) for name, path in speech.recordings.items()}
    return workplace_of(place).recordings(speech.name, recordings, features, seed=place.seed)


@one_line
@dataclass(frozen=True)
class WantedByMixture:
    """An attacker by such vectors, before it is at work; see `spkver.attackers.Wanted`.

    Attributes
    ----------
    config : MixtureConfig
    learn : callable
        Learns the source of vectors from the versions of a training set.
    record : tuple
        Parts of the configuration that the vectors depend on.
    """

    config: MixtureConfig
    learn: Callable[[tuple[DataDir, ...], Place], Source] = field(repr=False)
    record: tuple[Any, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work; it learns from a training set the first time that it is asked to."""
        known: dict[tuple[DataDir, ...], Source] = {}

        def open_source(training: tuple[DataDir, ...]) -> Source:
            if training not in known:
                known[training] = self.learn(training, place)
            return known[training]

        return VectorAttacker(self.name, open_source, list(self.record), self.config.choice, place)


def mixture_config(
    kind: type[Config], defaults: Mapping[str, Any], name: str, settings: Mapping[str, Any], context: Context
) -> Config:
    """Return a configuration; features and mixture are those of ``attacker_settings.all`` where it has them.

    Raises
    ------
    ConfigError
        With the attacker's name.
    """
    shared = {key: context.shared[key] for key in ("features", "ubm") if key in context.shared}
    try:
        return load_config(kind, defaults=merged(defaults, shared, settings, {"name": name}))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error
