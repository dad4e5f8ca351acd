"""The attacker that needs no network: i-vectors whose mixture and matrix are trained on the background alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.files import fingerprint, make_folder
from spkbase.runs import Given, Run
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers.context import Context
from spkver.attackers.pieces import with_pieces
from spkver.attackers.protocol import Attacker, Place
from spkver.attackers.training import merge_versions
from spkver.attackers.vector_attacker import VectorAttacker
from spkver.attackers.vector_settings import ChoiceConfig
from spkver.attackers.workplace import Workplace
from spkver.datadir import DataDir
from spkver.features import FeatureConfig
from spkver.mixture import GaussianMixture, TrainedUbm, UbmConfig
from spkver.vectors import TotalVariability, TotalVariabilityConfig, extract_ivectors

_SHARED = ("features", "ubm")  # what `attacker_settings.all` has for this attacker too


@dataclass(frozen=True)
class IVectorConfig(ChoiceConfig):
    """How an attacker by i-vectors is made; each part as for the classic attackers and `spkver rsr2015 ivector`."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)


DEFAULTS: dict[str, Any] = {
    "features": {"preset": "wideband"},
    "ubm": {"components": 64},
    "total_variability": {"rank": 100, "rounds": 10},
}


@one_line
@dataclass(frozen=True, eq=False)
class IVectorSource:
    """I-vectors by a mixture and a matrix that were trained on one training set; see `learn_ivectors`."""

    place: Place = field(repr=False)
    config: IVectorConfig
    ubm: GaussianMixture = field(repr=False)
    matrix: TotalVariability = field(repr=False)
    _known: dict[Path, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the i-vectors of a data directory, or of some of its utterances with their speakers."""
        owners = dict(directory.speakers if utterances is None else utterances)
        names = sorted(owners)
        # folds are made of recordings that the training set has: theirs are known, in whatever directory they stand
        due = {name: Path(directory.recordings[name]) for name in names}
        due = {name: path for name, path in due.items() if path not in self._known}
        if due:
            work = _workplace(self.place)
            prepared = work.recordings(directory.name, due, self.config.features, seed=self.place.seed)
            statistics = work.statistics(prepared, self.ubm)
            found = extract_ivectors(self.matrix, statistics, work=Work(self.place.jobs, self.place.device))
            rows = np.asarray(found.vectors)
            self._known.update({due[str(name)]: row for name, row in zip(found.segments, rows, strict=True)})
        vectors = np.stack([self._known[Path(directory.recordings[name])] for name in names])
        speakers = np.array([owners[name] for name in names], object)
        return Embeddings(np.array(names, object), speakers, vectors, source=str(directory.path))


def learn_ivectors(config: IVectorConfig, training: tuple[DataDir, ...], place: Place) -> IVectorSource:
    """Train the mixture and the matrix on a training set, or take those of an earlier run.

    Of several versions all recordings count; where speakers have one recording, the pieces of it, see
    `spkver.attackers.with_pieces`. The rank is lowered to what the recordings allow.
    """
    speech = merge_versions(with_pieces(training, place))
    work = _workplace(place)
    recordings = {name: Path(path) for name, path in speech.recordings.items()}
    prepared = work.recordings(speech.name, recordings, config.features, seed=place.seed)
    ubm = work.ubm(prepared, config.ubm).mixture
    statistics = work.statistics(prepared, ubm)
    most = min(len(statistics) - 1, ubm.means.size)
    matrix_config = replace(config.total_variability, rank=max(1, min(config.total_variability.rank, most)))
    mixture = Given("ubm", fingerprint(ubm), TrainedUbm(ubm, np.ones(ubm.dimension)))
    accumulated = Given("statistics", fingerprint(prepared.frames.fingerprint, mixture.fingerprint), statistics)
    key = fingerprint(accumulated.fingerprint, matrix_config)[:16]
    folder = make_folder(place.work / f"total-variability-{key}")
    run = Run(folder, jobs=place.jobs, force=place.force, quiet=True, device=place.device)
    matrix = pipeline.total_variability(run, mixture, accumulated, matrix_config).value
    return IVectorSource(place, config, ubm, matrix)


def _workplace(place: Place) -> Workplace:
    return Workplace(place.work, place.jobs, place.device)


@one_line
@dataclass(frozen=True)
class WantedIVectors:
    """The attacker by i-vectors, before it is at work; see `spkver.attackers.Wanted`."""

    config: IVectorConfig

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work."""
        config = self.config
        record = [config.features, config.ubm, config.total_variability]
        known: dict[tuple[DataDir, ...], IVectorSource] = {}

        def open_source(training: tuple[DataDir, ...]) -> IVectorSource:
            if training not in known:
                known[training] = learn_ivectors(config, training, place)
            return known[training]

        return VectorAttacker(config.name, open_source, record, config.choice, place)


def wanted_ivectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedIVectors:
    """Make the attacker by i-vectors; features and mixture are those of ``attacker_settings.all`` where it has them."""
    shared = {key: context.shared[key] for key in _SHARED if key in context.shared}
    try:
        return WantedIVectors(load_config(IVectorConfig, defaults=merged(DEFAULTS, shared, settings, {"name": name})))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error
