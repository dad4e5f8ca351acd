"""Shared resources of GMM-based attackers: cached features, mixtures, statistics, and the vectors derived from them.

    WORK/<data directory>-<key>/features.h5              cepstra of its recordings WORK/<data
    directory>-<key>/data/stat_*.h5           their statistics, one file for each universal background model WORK/<data
    directory>-<key>/data/stat_sessions-*.h5  statistics of the sessions that a training set is cut into
    WORK/ubm-<key>/gmm/ubm.h5                            universal background models

A key is made from the files (path, size, time of change) and from the configuration: equal inputs are processed once.

The i-vector and supervector attackers train their mixture and matrix on the background alone; no network is needed.
Their backend is chosen as for all vector attackers, see `spkver.attackers.vector_attacker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.configuration import load_config, merged
from spkbase.files import fingerprint, make_folder
from spkbase.runs import Origin, Run, Stamp
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers import lists
from spkver.attackers.pieces import with_pieces
from spkver.attackers.protocol import Place, naming
from spkver.attackers.vector_attacker import BackendChoice, Context, VectorAttacker
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, Frames
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics, UbmConfig
from spkver.vectors import MapConfig, TotalVariabilityConfig, adapt_supervectors, extract_ivectors

_KEY = 16  # digits of a key
SMALL_MIXTURE: dict[str, Any] = {"features": {"preset": "wideband"}, "ubm": {"components": 64}}
"""Default features and mixture of all attackers."""


@dataclass(frozen=True)
class Workplace:
    """A folder with the resources that attackers share.

    Attributes
    ----------
    folder : Path
    jobs : int or None
        Workers; all cores by default.
    """

    folder: Path
    jobs: int | None = None

    def recordings(self, name: str, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> Prepared:
        """Return the features of recordings; `name` only makes the folder easy to recognise."""
        stamps = {}
        for recording, path in sorted(recordings.items()):
            status = Path(path).stat()
            stamps[recording] = [str(Path(path).resolve()), status.st_size, status.st_mtime_ns]
        run = self.run(f"{name}-{fingerprint(stamps, config.extraction(), seed)[:_KEY]}")
        return Prepared(run, tuple(sorted(recordings)), pipeline.features(run, recordings, config, seed=seed))

    def ubm(self, prepared: Prepared, config: UbmConfig) -> GaussianMixture:
        """Return the universal background model of all recordings."""
        run = self.run(f"ubm-{fingerprint(prepared.frames.fingerprint, config)[:_KEY]}")
        return pipeline.universal_model(run, prepared.frames, prepared.names, config).value.mixture

    def run(self, name: str, force: bool = False) -> Run:
        """Return a run in a subfolder."""
        return Run(make_folder(self.folder / name), jobs=self.jobs, force=force, quiet=True)


@dataclass(frozen=True)
class Prepared:
    """Recordings with their features.

    Attributes
    ----------
    run : Run
        Run in the folder of these recordings.
    names : tuple of str
        The recordings, sorted.
    frames : spkver.pipeline.FramesStage
        Their frames; computed on first access to the value.
    """

    run: Run
    names: tuple[str, ...]
    frames: pipeline.FramesStage

    def statistics(self, ubm: GaussianMixture) -> Statistics:
        """Return the statistics of each recording; models and segments are the recordings."""
        return self._found("", ubm, self.frames, IdMap.from_pairs([(name, name) for name in self.names]))

    def session_statistics(self, ubm: GaussianMixture, speakers: Mapping[str, str], length: float | None) -> Statistics:
        """Return the statistics of sessions of about `length` frames, see `cut_sessions`; models are the speakers."""
        frames, recordings = cut_sessions(self.frames.value, length)
        key = fingerprint(self.frames.fingerprint, frames.ids, frames.offsets)
        sessions = SessionFrames(frames, key, [*self.frames.origins, Stamp("sessions", key)])
        order = sorted(range(len(frames)), key=lambda row: (speakers[recordings[row]], recordings[row]))
        owners: Any = [speakers[recordings[row]] for row in order]
        return self._found("sessions-", ubm, sessions, IdMap(owners, frames.ids[order].tolist()))

    def _found(self, kind: str, ubm: GaussianMixture, frames: Any, idmap: IdMap) -> Statistics:
        mixture = Stamp("ubm", fingerprint(ubm), ubm)
        key = kind + fingerprint(frames.fingerprint, mixture.fingerprint)[:_KEY]
        found = pipeline.statistics(self.run, key, mixture, frames, idmap).value
        self.frames.release()
        return found


class SessionFrames(NamedTuple):
    """Frames of sessions, with the fingerprint that later stages depend on; as `spkver.pipeline.FramesStage`."""

    value: Frames
    fingerprint: str
    origins: list[Origin]


def cut_sessions(frames: Frames, length: float | None) -> tuple[Frames, list[str]]:
    """Cut recordings into sessions.

    Pieces of different recordings are never joined: an anonymiser may have drawn other numbers for each, and the
    scatter within speakers should show that.

    Parameters
    ----------
    frames : Frames
        Frames of recordings.
    length : float or None
        A recording is divided into equal pieces of about this many frames; shorter ones stay whole. None: all stay
        whole.

    Returns
    -------
    frames : Frames
        The same frames; ids are recording and first frame.
    recordings : list of str
        The recording of each session.
    """
    ids, recordings, edges = [], [], [0]
    pairs = frames.offsets[:-1].tolist(), frames.offsets[1:].tolist()
    for recording, begin, end in zip(frames.ids.tolist(), *pairs, strict=True):
        size = end - begin
        count = 1 if length is None else max(1, min(round(size / length), size))
        bounds = [round(number * size / count) for number in range(count + 1)]
        ids += [f"{recording} {start}" for start in bounds[:-1]]
        recordings += [recording] * count
        edges += [begin + stop for stop in bounds[1:]]
    return Frames(np.array(ids, object), np.array(edges, np.int64), frames.values), recordings


@one_line
@dataclass(frozen=True, eq=False)
class MixtureSource:
    """Vectors from statistics of one mixture; see `spkver.attackers.vector_attacker.VectorSource`.

    Attributes
    ----------
    work : Workplace
    seed : int
        Seed of the dither.
    features : FeatureConfig
    ubm : GaussianMixture
    extract : callable
        Computes vectors from statistics: `IVectors` or `Supervectors`.
    """

    work: Workplace = field(repr=False)
    seed: int
    features: FeatureConfig
    ubm: GaussianMixture = field(repr=False)
    extract: Callable[[Statistics], Any] = field(repr=False)
    _known: dict[Path, NDArray[np.floating]] = field(default_factory=dict, repr=False)

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""

        def rows_of(names: list[str]) -> list[NDArray[np.floating]]:
            # folds consist of training recordings: their vectors are known, whatever the directory
            paths = {name: Path(directory.recordings[name]) for name in names}
            if due := {name: path for name, path in paths.items() if path not in self._known}:
                prepared = self.work.recordings(directory.name, due, self.features, seed=self.seed)
                found = self.extract(prepared.statistics(self.ubm))
                rows = np.asarray(found.vectors)
                self._known.update({due[str(name)]: row for name, row in zip(found.segments, rows, strict=True)})
            return [self._known[path] for path in paths.values()]

        return lists.rows_as_embeddings(directory, utterances, rows_of)


@dataclass(frozen=True)
class MixtureConfig(BackendChoice):
    """Configuration of an attacker with vectors from a mixture; each part is as for the classic attackers."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)


@dataclass(frozen=True)
class IVectorConfig(MixtureConfig):
    """Configuration of the i-vector attacker; `total_variability` is as for `spkver rsr2015 ivector`."""

    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)


@dataclass(frozen=True)
class SupervectorConfig(MixtureConfig):
    """Configuration of the supervector attacker."""

    map: MapConfig = field(default_factory=MapConfig)


Config = TypeVar("Config", bound=MixtureConfig)


def ivector_attacker(name: str, settings: Mapping[str, Any], context: Context) -> VectorAttacker:
    """Create the i-vector attacker.

    If speakers have one recording each, pieces of it train mixture and matrix, see `spkver.attackers.with_pieces`; the
    rank is lowered to what the recordings allow.
    """
    config = _config(IVectorConfig, {"total_variability": {"rank": 100, "rounds": 10}}, name, settings, context)

    def learn(place: Place, training: tuple[DataDir, ...]) -> MixtureSource:
        prepared, source = _trained(config, with_pieces(training, place), place)
        statistics = prepared.statistics(source.ubm)
        most = max(1, min(len(statistics) - 1, source.ubm.means.size))
        wanted = replace(config.total_variability, rank=min(config.total_variability.rank, most))
        mixture = Stamp("ubm", fingerprint(source.ubm), source.ubm)
        accumulated = Stamp("statistics", fingerprint(prepared.frames.fingerprint, mixture.fingerprint), statistics)
        run = source.work.run(f"total-variability-{fingerprint(accumulated.fingerprint, wanted)[:_KEY]}", place.force)
        matrix = pipeline.total_variability(run, mixture, accumulated, wanted).value
        return replace(source, extract=partial(extract_ivectors, matrix, work=Work(place.jobs)))

    return VectorAttacker(config, [config.features, config.ubm, config.total_variability], learn)


def supervector_attacker(name: str, settings: Mapping[str, Any], context: Context) -> VectorAttacker:
    """Create the supervector attacker, by default with the features and mixture of supervector-cosine."""
    # no other chain is tried: maps of thousands of dimensions take minutes, and need a background of many speakers
    chains = [settings.get("adapted") or "cosine"]
    config = _config(SupervectorConfig, {"chains": chains}, name, settings, context)

    def learn(place: Place, training: tuple[DataDir, ...]) -> MixtureSource:
        source, workers = _trained(config, training, place)[1], Work(place.jobs)
        return replace(source, extract=partial(adapt_supervectors, source.ubm, config=config.map, work=workers))

    return VectorAttacker(config, [config.features, config.ubm, config.map], learn)


def _config(kind: type[Config], defaults: Mapping[str, Any], name: str, settings: Any, context: Context) -> Config:
    """Return a configuration; ``attacker_settings.all`` may set features and mixture."""
    shared = {key: context.shared[key] for key in ("features", "ubm") if key in context.shared}
    with naming(name):
        return load_config(kind, defaults=merged(SMALL_MIXTURE, defaults, shared, settings, {"name": name}))


def _trained(config: MixtureConfig, training: tuple[DataDir, ...], place: Place) -> tuple[Prepared, MixtureSource]:
    """Train the mixture on all versions of a training set, or reuse the one from an earlier run."""
    speech, work = lists.merge_versions(training), Workplace(place.work, place.jobs)
    recordings = {name: Path(path) for name, path in speech.recordings.items()}
    prepared = work.recordings(speech.name, recordings, config.features, seed=place.seed)
    ubm = work.ubm(prepared, config.ubm)
    return prepared, MixtureSource(work, place.seed, config.features, ubm, extract=lambda found: found)
