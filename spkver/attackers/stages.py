"""The files of attackers, made by stages of a run: features and vectors of speech, models, and chosen backends.

    WORK/vectors/<extractor>-<key>/<data directory>-<key>.h5  vectors of an extractor
    WORK/<data directory>-<key>/features.h5                   cepstra
    WORK/<data directory>-<key>/data/stat_*.h5                statistics, one file for each universal background model
    WORK/<data directory>-<key>/data/stat_sessions-*.h5       statistics of the sessions that recordings are cut into
    WORK/<data directory>-<key>/data/sv_*.h5, iv_*.h5         supervectors and i-vectors of these
    OUTPUT/attackers/<training set>/mixture-<key>/            universal background model, matrix of total variability
    OUTPUT/attackers/<training set>/network-<key>/            files of a trained network, see `spkver.training`
    WORK/anonymised/<key>-seed<number>/                       recordings that a trainer anonymised again
    OUTPUT/attackers/<training set>/<name>/choice.json        how a backend, or another model, was chosen
    OUTPUT/attackers/<training set>/<name>/backend.h5         the backend, trained on all speakers

`extract_speech`, `learn_models`, `compute_vectors` and `score_trials` are the steps of one attacker. Each recording is
read once: anonymised versions, folds and attackers share features and vectors. A recording is identified by its
content, not by its name: cepstra with dither depend only on the audio file.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from evaluation.trials import Scores
from spkbase.files import file_digest, fingerprint, load_json, make_folder, write_json
from spkbase.plugins import usual_seconds
from spkbase.runs import Run, Stage, Stamp
from spkbase.showing import one_line
from spkbase.version import versions as library_versions
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers import lists
from spkver.attackers.pieces import whole_name
from spkver.attackers.protocol import Attack, Attacker, TrainingSet, naming
from spkver.attackers.sources import (
    ExtractorSource,
    MixtureSource,
    Source,
    TrainedSource,
    cut_sessions,
    mean_statistics,
)
from spkver.attackers.trained import training_speech
from spkver.backend import read_backend, write_backend
from spkver.datadir import DataDir
from spkver.extractors import TRAINED, embed_directory, open_extractor, trained_record
from spkver.features import FeatureConfig, Frames
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics
from spkver.training import train_network
from spkver.vectors import Supervectors, TotalVariability

logger = logging.getLogger(__name__)

_KEY = 16  # number of digits in keys
_PART = 8
_MOST_LACKING = 0.1  # largest share of recordings on which an extractor may fail


class DirectoryFeatures(NamedTuple):
    """Features of recordings; `ids` maps each recording to its id in them, a digest of its content."""

    frames: pipeline.FramesStage
    ids: Mapping[Path, str]


@one_line
@dataclass(frozen=True, eq=False)
class SpeechFiles:
    """The features and vectors that were extracted from the speech of a run.

    Attributes
    ----------
    run : Run
        The run whose folder holds the models, below ``attackers/``.
    work : Run
        The run whose folder holds features and vectors; the folder may be removed.
    seed : int
        Seed of the dither of features.
    lacking : dict of str to set of str
        Recordings on which an extractor failed, by extractor.
    """

    run: Run
    work: Run
    seed: int = 0
    lacking: dict[str, set[str]] = field(default_factory=dict)
    _vectors: dict[str, dict[Path, NDArray[Any]]] = field(default_factory=dict, repr=False)
    _features: dict[str, list[DirectoryFeatures]] = field(default_factory=dict, repr=False)

    def read(self, source: Source, directory: DataDir) -> None:
        """Extract the vectors of an extractor, or the features of a mixture, of recordings that have none yet."""
        if isinstance(source, ExtractorSource):
            self._embed(source, directory)
        elif isinstance(source, MixtureSource):
            self.features(source.features, directory)

    def _embed(self, source: ExtractorSource, directory: DataDir) -> None:
        """Extract the vectors of the recordings that have none yet.

        A few failed recordings get the median vector of their directory, so that their scores carry no information.
        If many fail, all errors are raised together.
        """
        known = self._vectors.setdefault(source.key, {})
        due = {utterance for utterance, path in directory.recordings.items() if path not in known}
        if not due:
            return
        extractor = source.extractor
        key = fingerprint("vectors", source.key, library_versions())[:_KEY]
        folder = f"vectors/{Path(extractor.spec.partition(':')[0]).stem}-{key}"
        make_folder(self.work.path(folder))
        # the sides of a fold have the name of the training set
        file = f"{folder}/{directory.name}-{fingerprint(sorted(due))[:_PART]}.h5"
        chosen = lists.select(directory, due)
        work = self.run.work
        embeddings = self.work.stage(
            f"vectors of {file}",
            file,
            step="vectors",
            make=partial(
                embed_directory,
                chosen,
                extractor,
                work=work,
                quiet=True,
                most_lacking=_MOST_LACKING,
            ),
            read=read_embeddings,
            inputs=sorted(chosen.speakers.items()),
            sources=dict(sorted(chosen.recordings.items())),
        ).value
        vectors = np.asarray(embeddings.vectors)
        for utterance, vector in zip(embeddings.ids.tolist(), vectors, strict=True):
            known[directory.recordings[utterance]] = vector
        missing = due - set(embeddings.ids)
        for utterance in missing:
            known[directory.recordings[utterance]] = np.median(vectors, axis=0)
        lacking = self.lacking.setdefault(extractor.spec, set())
        lacking.difference_update(f"{directory.name}/{utterance}" for utterance in due)
        lacking.update(f"{directory.name}/{utterance}" for utterance in missing)

    def features(self, config: FeatureConfig, directory: DataDir) -> DirectoryFeatures:
        """Extract features, or return those of a larger set that contains the recordings of the directory."""
        known = self._features.setdefault(fingerprint(config), [])
        paths = set(directory.recordings.values())
        for features in known:
            if features.ids.keys() >= paths:
                for other in known:  # only one set is kept in memory
                    if other is not features:
                        other.frames.release()
                return features
        ids = self._feature_ids(config, directory)
        recordings = {ids[path]: path for path in sorted(paths)}
        key = fingerprint(sorted(recordings), config.extraction(), self.seed)[:_KEY]
        run = Run(
            make_folder(self.work.path(f"{directory.name}-{key}")), jobs=self.run.jobs, quiet=True
        )
        frames = pipeline.features(run, recordings, config, seed=self.seed)
        known.append(DirectoryFeatures(frames, ids))
        return known[-1]

    def _feature_ids(self, config: FeatureConfig, directory: DataDir) -> dict[Path, str]:
        """Return the id in features of each recording: a digest of its content."""
        if config.files is not None or config.vad == "labels":
            # features or labels from another tool are found by the names of recordings
            return {path: name for name, path in directory.recordings.items()}
        paths = sorted(set(directory.recordings.values()))
        digests = self.work.once(
            f"digests of {directory.name}-{fingerprint(paths)[:_PART]}",
            lambda: list(self.run.work.map(file_digest, paths)),
            after=[self.work.stamp("recordings", sources={str(path): path for path in paths})],
        )
        return {path: str(digest) for path, digest in zip(paths, digests, strict=True)}

    def extracted(self, source: ExtractorSource) -> ExtractedVectors:
        """Return the extracted vectors of an extractor."""
        return ExtractedVectors(self._vectors.setdefault(source.key, {}))

    def learn(
        self, name: str, source: Source, training: TrainingSet, versions: Sequence[DataDir]
    ) -> ExtractedVectors | TrainedMixture | TrainedNetwork:
        """Train the models that the vectors of an attacker's source need, and return its vectors.

        Parameters
        ----------
        name : str
            Name of the attacker, for the log.
        source : Source
        training : TrainingSet
        versions : sequence of DataDir
            The versions to learn from, or a part of their recordings.
        """
        if isinstance(source, ExtractorSource):
            return self.extracted(source)
        if isinstance(source, TrainedSource):
            return self._train(name, source, training, versions)
        return self._learn_mixture(source, lists.merge_versions(versions), training.folder)

    def _train(
        self, name: str, source: TrainedSource, training: TrainingSet, versions: Sequence[DataDir]
    ) -> TrainedNetwork:
        """Train a network, or reuse the files of an earlier run; a training that was killed continues in its folder."""
        speech = training_speech(training, versions, self.work.path("anonymised"), seed=self.seed)
        held_out = speech.held_out
        title = f"network of {name} on {whole_name(versions[0])}"
        origin = self.run.origin(
            title,
            inputs=[
                source.key,
                self.seed,
                speech.utterances,
                held_out.enrolment,
                held_out.trials,
                speech.anonymizer,
            ],
            sources={str(path): path for path in speech.recordings},
            libraries=("numpy", "scipy", "scikit-learn", "soundfile", "torch"),
        )
        folder = f"{training.folder}/network-{origin.fingerprint[:_KEY]}"
        seconds = source.time_limit or usual_seconds(speech.recordings)

        def make(path: Path) -> None:
            if path.exists():  # a finished training is discarded, as with --force
                shutil.rmtree(path.parent)
            make_folder(path.parent)
            network = train_network(
                source.module,
                speech,
                path.parent,
                seed=self.seed,
                settings=source.settings,
                device=source.device,
                threads=source.threads,
                seconds=seconds,
                name=name,
            )
            write_json(path, trained_record(path.parent, source.module, network))

        stage = self.run.stage(
            title, f"{folder}/{TRAINED}", step="network", make=make, read=load_json, origin=origin
        )
        extractor = open_extractor(f"trained:{stage.path.parent}", source.windows)
        return TrainedNetwork(self, ExtractorSource(extractor), folder)

    def _learn_mixture(
        self, source: MixtureSource, training: DataDir, folder: str
    ) -> TrainedMixture:
        """Train the universal background model and the matrix of total variability."""
        features = self.features(source.features, training)
        names = tuple(sorted({features.ids[path] for path in training.recordings.values()}))
        key = fingerprint(features.frames.fingerprint, names, source.mixture_key)[:_KEY]
        run = Run(
            make_folder(self.run.path(f"{folder}/mixture-{key}")), jobs=self.run.jobs, quiet=True
        )
        trained = pipeline.universal_model(run, features.frames, names, source.ubm)
        vectors = TrainedMixture(self, source, trained.value.mixture)
        if source.total_variability is None:
            return vectors
        statistics = vectors.statistics(training).value
        config = source.fitting_rank(len(statistics), vectors.ubm.means.size)
        accumulated = Stamp("statistics of training", trained.fingerprint, statistics)
        return replace(
            vectors, matrix=pipeline.total_variability(run, trained, accumulated, config)
        )


class ExtractedVectors(NamedTuple):
    """The vectors of an extractor; see `spkver.attackers.protocol.Vectors`."""

    known: Mapping[Path, NDArray[Any]]

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vectors of a data directory that was read, sorted by utterance."""
        names = sorted(directory.speakers)
        return lists.as_embeddings(
            directory, [self.known[directory.recordings[name]] for name in names]
        )


class TrainedNetwork(NamedTuple):
    """The vectors of a trained network, extracted when they are asked for; see `spkver.attackers.protocol.Vectors`.

    Attributes
    ----------
    speech : SpeechFiles
    source : ExtractorSource
    folder : str
        Folder of the network, relative to that of the run.
    """

    speech: SpeechFiles
    source: ExtractorSource
    folder: str

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vectors of a data directory, sorted by utterance."""
        self.speech.read(self.source, directory)
        return self.speech.extracted(self.source)(directory)


@dataclass(frozen=True, eq=False)
class TrainedMixture:
    """A mixture trained on a training set, and the vectors of speech by it; see `spkver.attackers.protocol.Vectors`.

    The statistics and vectors of each list are kept in files.

    Attributes
    ----------
    speech : SpeechFiles
    source : MixtureSource
    ubm : GaussianMixture
    matrix : Stage of TotalVariability or None
        For i-vectors; None: supervectors.
    """

    speech: SpeechFiles = field(repr=False)
    source: MixtureSource
    ubm: GaussianMixture
    matrix: Stage[TotalVariability] | None = None

    @property
    def work(self) -> Work:
        """Workers of the run."""
        return self.speech.run.work

    @cached_property
    def _stamp(self) -> Stamp:
        return Stamp("ubm", fingerprint(self.ubm), self.ubm)

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vector of each recording of a data directory, sorted by utterance."""
        vectors = self._vectors(directory, self.statistics(directory))
        row_of = {name: row for row, name in enumerate(vectors.segments.tolist())}
        ids = self.ids(directory)
        rows = [row_of[ids[name]] for name in sorted(directory.speakers)]
        return lists.as_embeddings(directory, np.asarray(vectors.vectors)[rows])

    def sessions(self, directory: DataDir) -> Embeddings:
        """Return the vectors of the sessions that the recordings of a data directory are cut into."""
        features = self._features(directory)
        cut, recordings = cut_sessions(features.frames.value, self.source.session_frames)
        owners = self._owners(directory, features)
        order = [row for row, name in enumerate(recordings) if name in owners]
        order.sort(key=lambda row: (owners[recordings[row]], recordings[row]))
        models = [owners[recordings[row]] for row in order]
        idmap = IdMap(models, cut.ids[order].tolist())  # type: ignore[arg-type]
        frames = Stamp(
            "sessions", fingerprint(features.frames.fingerprint, cut.ids, cut.offsets), cut
        )
        statistics = self._statistics(features.frames.run, "sessions-", frames, idmap)
        vectors = self._vectors(directory, statistics)
        return Embeddings(vectors.segments, vectors.models, np.asarray(vectors.vectors))

    def averaged(
        self, directory: DataDir, sessions: Mapping[tuple[str, str], Sequence[str]]
    ) -> Embeddings:
        """Return the vector of each (model, recording) from the mean statistics of its versions."""
        return self._vectors(directory, self._averaged(directory, sessions)).embeddings()

    def adapted(
        self, directory: DataDir, sessions: Mapping[tuple[str, str], Sequence[str]]
    ) -> Supervectors:
        """Return the means adapted to all recordings of each model, each by the mean statistics of its versions."""
        run = self._features(directory).frames.run
        statistics = self._averaged(directory, sessions)
        config = replace(self.source.map, normalise=False)
        name = fingerprint(statistics.fingerprint, config)[:_KEY]
        means = pipeline.supervectors(
            run, name, self._stamp, statistics, config, multisession=True
        ).value
        return replace(means, vectors=np.asarray(means.vectors))

    def frames(self, directory: DataDir) -> Frames:
        """Return frames that include those of a data directory; see `ids`."""
        return self._features(directory).frames.value

    def ids(self, directory: DataDir) -> dict[str, str]:
        """Return the id in frames and statistics of each utterance."""
        ids = self._features(directory).ids
        return {name: ids[path] for name, path in directory.recordings.items()}

    def statistics(self, directory: DataDir) -> Stage[Statistics]:
        """Accumulate the statistics of each recording, or reuse those of an earlier run."""
        features = self._features(directory)
        idmap = IdMap.from_pairs(
            [(name, name) for name in sorted(self._owners(directory, features))]
        )
        return self._statistics(features.frames.run, "", features.frames, idmap)

    def _features(self, directory: DataDir) -> DirectoryFeatures:
        return self.speech.features(self.source.features, directory)

    def _owners(self, directory: DataDir, features: DirectoryFeatures) -> dict[str, str]:
        """Return the speaker of each recording, by its id in features."""
        return {
            features.ids[path]: directory.speakers[name]
            for name, path in directory.recordings.items()
        }

    def _statistics(
        self, run: Run, prefix: str, frames: pipeline.FramesStage | Stamp, idmap: IdMap
    ) -> Stage[Statistics]:
        key = fingerprint(frames.fingerprint, self._stamp.fingerprint, idmap)[:_KEY]
        return pipeline.statistics(run, prefix + key, self._stamp, frames, idmap)

    def _averaged(
        self, directory: DataDir, sessions: Mapping[tuple[str, str], Sequence[str]]
    ) -> Stamp:
        """Return the mean statistics of each (model, recording) over its utterances."""
        statistics = self.statistics(directory)
        ids = self.ids(directory)
        by_id = {}
        for pair, names in sessions.items():
            by_id[pair] = [ids[name] for name in names]
        key = fingerprint(
            statistics.fingerprint, [[*pair, *names] for pair, names in by_id.items()]
        )
        return Stamp(f"means of {statistics.name}", key, mean_statistics(statistics.value, by_id))

    def _vectors(self, directory: DataDir, statistics: Stage[Statistics] | Stamp) -> Supervectors:
        """Compute the vectors of statistics, or reuse those of an earlier run."""
        run = self._features(directory).frames.run
        name = fingerprint(statistics.fingerprint, self.source.key)[:_KEY]
        if self.matrix is not None:
            return pipeline.ivectors(run, name, self.matrix, statistics).value
        return pipeline.supervectors(run, name, self._stamp, statistics, self.source.map).value


# --- the steps of an attacker -----------------------------------------------------------------------------------------


class Trained(NamedTuple):
    """An attacker after training.

    Attributes
    ----------
    read : callable
        Returns its model; a backend is read from its file.
    vectors : Vectors or None
        Function that computes the vectors of its source.
    """

    read: Callable[[], Any]
    vectors: Any = None


def extract_speech(speech: SpeechFiles, attacker: Attacker, attack: Attack) -> None:
    """Read the speech of an attack, except what was read for an earlier one."""
    if attacker.source is None:
        return
    with naming(attacker.name):
        for directory in attacker.speech(attack, speech.seed):
            speech.read(attacker.source, directory)


def learn_models(speech: SpeechFiles, attacker: Attacker, training: TrainingSet) -> Trained:
    """Train all that an attacker learns from a training set, or reuse the files of an earlier run."""
    vectors = None
    with naming(attacker.name):
        if attacker.source is not None:
            versions = lists.limited(training.versions, attacker.utterances, seed=speech.seed)
            vectors = speech.learn(attacker.name, attacker.source, training, versions)
        learn = partial(attacker.fit, training, vectors, seed=speech.seed, jobs=speech.run.jobs)
        record = attacker.backend_record(training)
        if record is not None:
            network: dict[str, str] = {}
            if isinstance(vectors, TrainedNetwork):
                record = [record, vectors.source.key]
                network["network"] = vectors.folder
            return Trained(
                _fit_backend(speech, attacker, training, record, learn, network), vectors
            )
        learnt = learn()
        if learnt.choice is not None:
            folder = make_folder(speech.run.path(f"{training.folder}/{attacker.name}"))
            write_json(folder / "choice.json", learnt.choice)
        return Trained(lambda: learnt.model, vectors)


def compute_vectors(attacker: Attacker, trained: Trained, attack: Attack) -> None:
    """Compute the vectors of an attack that depend on learnt models, so that scoring only reads them."""
    with naming(attacker.name):
        attacker.prepare(attack, trained.vectors)


def score_trials(attacker: Attacker, trained: Trained, attack: Attack) -> Scores:
    """Score the trials of an attack."""
    with naming(attacker.name):
        return attacker.score(trained.read(), attack, trained.vectors)


def _fit_backend(
    speech: SpeechFiles,
    attacker: Attacker,
    training: TrainingSet,
    record: Any,
    learn: Callable[[], Any],
    network: Mapping[str, str],
) -> Callable[[], Any]:
    """Choose and train a backend, or reuse the one from an earlier run; return the function that reads it.

    The file of its choice also names the folder of its network, if that was trained.
    """
    versions = lists.limited(training.versions, attacker.utterances, seed=speech.seed)
    folder = make_folder(speech.run.path(f"{training.folder}/{attacker.name}"))
    run = Run(folder, speech.run.jobs, speech.run.force, quiet=True)
    file = run.path("backend.h5")

    def make(path: Path) -> None:
        learnt = learn()
        write_backend(file, learnt.model)
        names = {"attacker": attacker.name, "training": whole_name(versions[0]), **network}
        write_json(path, {**names, **learnt.choice})

    speakers = [sorted(version.speakers.items()) for version in versions]
    choice = run.stage(
        f"backend of {attacker.name}",
        "choice.json",
        step="backend",
        make=make,
        read=load_json,
        also=("backend.h5",),
        inputs=[record, speakers, sorted(versions[0].sexes.items()), speech.seed],
        sources=lists.recordings_of(versions),
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    ).value
    _log_choice(choice, f"{attacker.name} on {versions[0].name}", is_fold=training.is_fold)
    return partial(read_backend, file)


def _log_choice(choice: Mapping[str, Any], title: str, *, is_fold: bool) -> None:
    """Log the chosen chain, and reasons to doubt the choice."""
    logger.debug("%s: %s", title, choice["chosen"])
    where = {"file_only": is_fold}
    if not choice["folds"] and len(choice["chains"]) > 1:
        logger.warning("%s: %s", title, choice["why"], extra=where)
    for row in choice["chains"]:
        folds = row.get("no_slope")
        if row["chain"] == choice["chosen"] and folds:
            numbers = ", ".join(map(str, folds))
            text = "%s: the calibration tried on fold %s has a negative slope, as is usual at chance level"
            logger.warning(text, title, numbers, extra=where)
