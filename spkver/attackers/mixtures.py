"""What attackers by a mixture share: features, mixtures and statistics, kept in a folder; vectors that come of these.

    WORK/<data directory>-<key>/features.h5              cepstra of its recordings
    WORK/<data directory>-<key>/data/stat_*.h5           their statistics, one file for each universal background model
    WORK/<data directory>-<key>/data/stat_sessions-*.h5  those of the sessions that a training set is cut into
    WORK/ubm-<key>/gmm/ubm.h5                            universal background models

A key is made from the files (path, size, time of change) and from the configuration: what is equal is worked out once.

**Attackers by i-vectors and by supervectors**, whose mixture and matrix are trained on the background alone; no network
is needed. Their backend is that of any attacker by vectors, see `spkver.attackers.vector_attacker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.files import fingerprint, make_folder
from spkbase.runs import Origin, Run, Stamp
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers.folds import with_pieces
from spkver.attackers.protocol import Place, by_speaker, merge_versions
from spkver.attackers.vector_attacker import BackendChoice, Context, WantedVectors
from spkver.datadir import DataDir
from spkver.features import FeatureConfig, Frames
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics, UbmConfig
from spkver.vectors import MapConfig, TotalVariabilityConfig, adapt_supervectors, extract_ivectors

_KEY = 16  # digits of a key


@dataclass(frozen=True)
class Workplace:
    """A folder with what attackers share.

    Attributes
    ----------
    folder : Path
    jobs : int or None
        Workers; all cores by default.
    """

    folder: Path
    jobs: int | None = None

    def recordings(self, name: str, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> Prepared:
        """Return the features of recordings; `name` is for those who look into the folder."""
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

    def run(self, name: str) -> Run:
        """Return a run in a folder of its own."""
        return Run(make_folder(self.folder / name), jobs=self.jobs, quiet=True)


@dataclass(frozen=True)
class Prepared:
    """Recordings with their features.

    Attributes
    ----------
    run : Run
        In the folder of these recordings.
    names : tuple of str
        The recordings, sorted.
    frames : spkver.pipeline.FramesStage
        Their frames; the work is done when its value is asked for.
    """

    run: Run
    names: tuple[str, ...]
    frames: pipeline.FramesStage

    def statistics(self, ubm: GaussianMixture) -> Statistics:
        """Return the statistics of each recording; models and segments are the recordings."""
        names: Any = list(self.names)
        return self._found("", ubm, self.frames, IdMap(names, names))

    def session_statistics(self, ubm: GaussianMixture, speakers: Mapping[str, str], length: float | None) -> Statistics:
        """Return those of sessions of about `length` frames, see `cut_sessions`; models are the speakers."""
        whole = self.frames.value
        lengths = {name: len(whole.of(name)) for name in self.names}
        frames = SessionFrames(self.frames, tuple(cut_sessions(lengths, speakers, frames=length)))
        owners: Any = [session.speaker for session in frames.sessions]
        names: Any = [session.name for session in frames.sessions]
        return self._found("sessions-", ubm, frames, IdMap(owners, names))

    def _found(self, kind: str, ubm: GaussianMixture, frames: Any, idmap: IdMap) -> Statistics:
        mixture = Stamp("ubm", fingerprint(ubm), ubm)
        key = kind + fingerprint(frames.fingerprint, mixture.fingerprint)[:_KEY]
        found = pipeline.statistics(self.run, key, mixture, frames, idmap).value
        self.frames.release()
        return found


@dataclass(frozen=True)
class TrainingSession:
    """A piece of a recording that is worked on as one: frames `start` to `stop`."""

    speaker: str
    recording: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Recording and first frame."""
        return f"{self.recording} {self.start}"


@dataclass(frozen=True)
class SessionFrames:
    """Frames of the sessions of a training set; they are cut out of those of the recordings when they are asked for."""

    whole: pipeline.FramesStage
    sessions: tuple[TrainingSession, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Of the frames of the recordings, and of where they are cut."""
        return fingerprint(self.whole.fingerprint, [(session.name, session.stop) for session in self.sessions])

    @property
    def origins(self) -> list[Origin]:
        """What stages that read the frames depend on."""
        return [*self.whole.origins, Stamp("sessions", self.fingerprint)]

    @property
    def value(self) -> Frames:
        """The frames."""
        return session_frames(self.whole.value, self.sessions)


def cut_sessions(
    lengths: Mapping[str, int], speakers: Mapping[str, str], *, frames: float | None
) -> list[TrainingSession]:
    """Cut the recordings of the training set into sessions.

    Pieces of different recordings are never put together: they may differ in what an anonymiser drew, and this is what
    the scatter within speakers should show.

    Parameters
    ----------
    lengths : mapping
        Utterance to its number of frames.
    speakers : mapping
        Utterance to speaker.
    frames : float or None
        A recording is divided into equal pieces of about this length; shorter ones stay whole. None: all stay whole.

    Returns
    -------
    list of TrainingSession
        Speakers in sorted order, the utterances of each too.
    """
    sessions = []
    for speaker, utterances in by_speaker({utterance: speakers[utterance] for utterance in lengths}).items():
        for utterance in utterances:
            length = lengths[utterance]
            count = 1 if frames is None else min(max(1, round(length / frames)), length)
            bounds = pairwise(round(number * length / count) for number in range(count + 1))
            sessions += [TrainingSession(speaker, utterance, start, stop) for start, stop in bounds]
    return sessions


def session_frames(frames: Frames, sessions: Sequence[TrainingSession]) -> Frames:
    """Return the frames of each session as one recording, copied."""
    offsets = np.cumsum([0, *(session.stop - session.start for session in sessions)], dtype=np.int64)
    values = np.concatenate([frames.of(session.recording)[session.start : session.stop] for session in sessions])
    return Frames(np.array([session.name for session in sessions], object), offsets, values)


@one_line
@dataclass(frozen=True, eq=False)
class MixtureSource:
    """Vectors from statistics of one mixture; see `spkver.attackers.vector_attacker.VectorSource`.

    Attributes
    ----------
    work : Workplace
    seed : int
        Of the dither.
    features : FeatureConfig
    ubm : GaussianMixture
    extract : callable
        Makes vectors of statistics: `IVectors` or `Supervectors`.
    """

    work: Workplace = field(repr=False)
    seed: int
    features: FeatureConfig
    ubm: GaussianMixture = field(repr=False)
    extract: Callable[[Statistics], Any] = field(repr=False)
    _known: dict[Path, NDArray[np.floating]] = field(default_factory=dict, repr=False)

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""
        owners = dict(directory.speakers if utterances is None else utterances)
        names = sorted(owners)
        # folds are made of recordings that the training set has: theirs are known, in whatever directory they stand
        due = {name: Path(directory.recordings[name]) for name in names}
        due = {name: path for name, path in due.items() if path not in self._known}
        if due:
            found = self.extract(self.prepared(directory.name, due).statistics(self.ubm))
            rows = np.asarray(found.vectors)
            self._known.update({due[str(name)]: row for name, row in zip(found.segments, rows, strict=True)})
        vectors = np.stack([self._known[Path(directory.recordings[name])] for name in names])
        speakers = np.array([owners[name] for name in names], object)
        return Embeddings(np.array(names, object), speakers, vectors, source=str(directory.path))

    def prepared(self, name: str, recordings: Mapping[str, Path]) -> Prepared:
        """Return the features of recordings, see `Workplace.recordings`."""
        return self.work.recordings(name, recordings, self.features, seed=self.seed)


@dataclass(frozen=True)
class MixtureConfig(BackendChoice):
    """How an attacker by such vectors is made; each part as for the classic attackers."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)


@dataclass(frozen=True)
class IVectorConfig(MixtureConfig):
    """How an attacker by i-vectors is made; its own part as for `spkver rsr2015 ivector`."""

    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)


@dataclass(frozen=True)
class SupervectorConfig(MixtureConfig):
    """How an attacker by supervectors is made."""

    map: MapConfig = field(default_factory=MapConfig)


Config = TypeVar("Config", bound=MixtureConfig)
SMALL_MIXTURE: dict[str, Any] = {"features": {"preset": "wideband"}, "ubm": {"components": 64}}
"""Features and mixture of all attackers, where nothing else is set."""


def _config(kind: type[Config], defaults: Mapping[str, Any], name: str, settings: Any, context: Context) -> Config:
    """A configuration; features and mixture are those of ``attacker_settings.all`` where it has them."""
    shared = {key: context.shared[key] for key in ("features", "ubm") if key in context.shared}
    try:
        return load_config(kind, defaults=merged(SMALL_MIXTURE, defaults, shared, settings, {"name": name}))
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error


def _trained(config: MixtureConfig, training: tuple[DataDir, ...], place: Place) -> tuple[Prepared, MixtureSource]:
    """Train the mixture on all recordings of the versions of a training set, or take that of an earlier run."""
    speech, work = merge_versions(training), Workplace(place.work, place.jobs)
    recordings = {name: Path(path) for name, path in speech.recordings.items()}
    prepared = work.recordings(speech.name, recordings, config.features, seed=place.seed)
    ubm = work.ubm(prepared, config.ubm)
    return prepared, MixtureSource(work, place.seed, config.features, ubm, extract=lambda found: found)


def wanted_ivectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make the attacker by i-vectors.

    Where speakers have one recording, the pieces of it train mixture and matrix, see `spkver.attackers.with_pieces`;
    the rank is lowered to what the recordings allow.
    """
    config = _config(IVectorConfig, {"total_variability": {"rank": 100, "rounds": 10}}, name, settings, context)

    def learn(place: Place, training: tuple[DataDir, ...]) -> MixtureSource:
        prepared, source = _trained(config, with_pieces(training, place), place)
        statistics = prepared.statistics(source.ubm)
        most = max(1, min(len(statistics) - 1, source.ubm.means.size))
        wanted = replace(config.total_variability, rank=min(config.total_variability.rank, most))
        mixture = Stamp("ubm", fingerprint(source.ubm), source.ubm)
        accumulated = Stamp("statistics", fingerprint(prepared.frames.fingerprint, mixture.fingerprint), statistics)
        folder = make_folder(place.work / f"total-variability-{fingerprint(accumulated.fingerprint, wanted)[:_KEY]}")
        run = Run(folder, jobs=place.jobs, force=place.force, quiet=True)
        matrix = pipeline.total_variability(run, mixture, accumulated, wanted).value
        return replace(source, extract=partial(extract_ivectors, matrix, work=Work(place.jobs)))

    return WantedVectors(config, [config.features, config.ubm, config.total_variability], learn)


def wanted_supervectors(name: str, settings: Mapping[str, Any], context: Context) -> WantedVectors:
    """Make the attacker by supervectors; features and mixture are those of supervector-cosine by default."""
    # no other chain is tried: maps of thousands of dimensions take minutes to learn, and a background of many speakers
    chains = [settings.get("adapted") or "cosine"]
    config = _config(SupervectorConfig, {"chains": chains}, name, settings, context)

    def learn(place: Place, training: tuple[DataDir, ...]) -> MixtureSource:
        source, workers = _trained(config, training, place)[1], Work(place.jobs)
        return replace(source, extract=partial(adapt_supervectors, source.ubm, config=config.map, work=workers))

    return WantedVectors(config, [config.features, config.ubm, config.map], learn)
