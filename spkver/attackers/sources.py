"""Sources of vectors: networks and other extractors, and supervectors and i-vectors of a Gaussian mixture.

    WORK/vectors/<extractor>-<key>/<data directory>-<key>.h5  vectors of an extractor
    WORK/<data directory>-<key>/features.h5                   cepstra
    WORK/<data directory>-<key>/data/stat_*.h5                statistics, one file for each universal background model
    WORK/<data directory>-<key>/data/stat_sessions-*.h5       statistics of the sessions that recordings are cut into
    OUTPUT/attackers/<training set>/mixture-<key>/            universal background model, matrix of total variability

Each recording is read once: anonymised versions, folds and attackers share what was extracted. A source is known by the
content of recordings, not by their names: cepstra with dither depend on the audio file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.runs import Origin, Run, Stage, Stamp
from spkbase.version import versions
from spkbase.work import Work
from spkver import pipeline
from spkver.attackers import lists
from spkver.attackers.protocol import Extracted
from spkver.datadir import DataDir
from spkver.extractors import Extractor, embed_directory
from spkver.features import FeatureConfig, Frames
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics, TrainedUbm, UbmConfig
from spkver.vectors import (
    MapConfig,
    Supervectors,
    TotalVariability,
    TotalVariabilityConfig,
    adapt_supervectors,
    extract_ivectors,
)

SMALL_MIXTURE: dict[str, Any] = {"features": {"preset": "wideband"}, "ubm": {"components": 64}}
"""Default features and mixture of all attackers."""

_KEY, _PART = 16, 8  # digits of keys
_MOST_LACKING = 0.1  # share of recordings that an extractor may fail on


class Vectors(Protocol):
    """A source that has learnt what it needs, see `VectorSource.fit`."""

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vectors of a data directory, sorted by utterance."""


class VectorSource(Protocol):
    """Where the vectors of recordings come from."""

    @property
    def record(self) -> Any:
        """All that the vectors depend on besides the recordings."""

    def extract(self, extracted: Extracted, directory: DataDir) -> Any:
        """Read the recordings of a data directory that have not been read before."""

    def fit(self, extracted: Extracted, training: DataDir, folder: str) -> Vectors:
        """Train what the vectors need, such as a mixture, on a training set; return the function to vectors.

        Models go to the folder of the training set, below the output folder.
        """


@dataclass(frozen=True)
class ExtractorSource:
    """Vectors of an extractor, which learns nothing from the training set."""

    extractor: Extractor

    @property
    def record(self) -> Any:
        """What the extractor depends on, such as its weights."""
        return dict(self.extractor.extraction.record)

    def extract(self, extracted: Extracted, directory: DataDir) -> None:
        """Extract the vectors of the recordings that have none yet.

        A recording that the extractor fails on has the median vector of its directory, and so a score that tells
        nothing, as long as there are few of them; else the errors of all are raised together.
        """
        known = extracted.vectors.setdefault(fingerprint(self.record), {})
        due = {utterance for utterance, path in directory.recordings.items() if path not in known}
        if not due:
            return
        key = fingerprint("vectors", self.record, versions())[:_KEY]
        folder = f"vectors/{Path(self.extractor.spec.partition(':')[0]).stem}-{key}"
        make_folder(extracted.work.path(folder))
        # the sides of a fold bear the name of the training set
        file = f"{folder}/{directory.name}-{fingerprint(sorted(due))[:_PART]}.h5"
        chosen, work = lists.select(directory, due), extracted.run.work
        embed = partial(embed_directory, chosen, self.extractor, work=work, quiet=True, most_lacking=_MOST_LACKING)
        found = extracted.work.stage(
            f"vectors of {file}",
            file,
            step="vectors",
            make=embed,
            read=read_embeddings,
            inputs=sorted(chosen.speakers.items()),
            sources=dict(sorted(chosen.recordings.items())),
        ).value
        known.update(zip(map(directory.recordings.get, found.ids), np.asarray(found.vectors), strict=True))  # type: ignore[arg-type]
        missing = due - set(found.ids)
        known.update((directory.recordings[name], np.median(found.vectors, axis=0)) for name in missing)
        lacking = extracted.lacking.setdefault(self.extractor.spec, set())
        lacking.difference_update(f"{directory.name}/{name}" for name in due)
        lacking.update(f"{directory.name}/{name}" for name in missing)

    def fit(self, extracted: Extracted, training: DataDir, folder: str) -> Vectors:
        """Return the function that looks vectors up."""

        def vectors(directory: DataDir) -> Embeddings:
            self.extract(extracted, directory)
            known = extracted.vectors[fingerprint(self.record)]
            return lists.as_embeddings(
                directory, [known[directory.recordings[name]] for name in sorted(directory.speakers)]
            )

        return vectors


class FeatureSet(NamedTuple):
    """Recordings with their features; `ids` has the id in `frames` of each recording, a digest of its content."""

    run: Run
    frames: pipeline.FramesStage
    ids: Mapping[Path, str]


class SessionFrames(NamedTuple):
    """Frames of sessions, with the fingerprint that later stages depend on; as `spkver.pipeline.FramesStage`."""

    value: Frames
    fingerprint: str
    origins: list[Origin]


@dataclass(frozen=True)
class MixtureSource:
    """Supervectors or i-vectors of a Gaussian mixture that is trained on the training set.

    Attributes
    ----------
    features, ubm, map
        See `FeatureConfig`, `UbmConfig` and `MapConfig`.
    total_variability : TotalVariabilityConfig or None
        For i-vectors; the rank is lowered to what the recordings allow. None: supervectors.
    session_seconds : float or None [s]
        Training recordings are cut into sessions of about this length; shorter ones stay whole. None: all stay whole.
    """

    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)
    total_variability: TotalVariabilityConfig | None = None
    session_seconds: float | None = None

    @property
    def record(self) -> Any:
        """Its configuration, and the file of a given mixture."""
        mixture = None if self.ubm.file is None else file_digest(self.ubm.file)
        return [self.features, self.ubm, self.total_variability or self.map, self.session_seconds, mixture]

    def extract(self, extracted: Extracted, directory: DataDir) -> FeatureSet:
        """Extract features, or return those of a larger set that holds the recordings of the directory."""
        known, paths = extracted.features.setdefault(fingerprint(self.features), []), set(directory.recordings.values())
        for found in known:
            if found.ids.keys() >= paths:
                for other in known:  # one set is in memory at a time
                    if other is not found:
                        other.frames.release()
                return found
        if self.features.files is None and self.features.vad != "labels":
            order = sorted(paths)
            digests = extracted.work.once(
                f"digests of {directory.name}-{fingerprint(order)[:_PART]}",
                lambda: list(extracted.run.work.map(file_digest, order)),
                after=[extracted.work.stamp("recordings", sources={str(path): path for path in order})],
            )
            ids = dict(zip(order, digests, strict=True))
        else:  # features or labels of another tool are found by the name of a recording
            ids = {path: name for name, path in directory.recordings.items()}
        recordings = {str(ids[path]): path for path in sorted(paths)}
        key = fingerprint(sorted(recordings), self.features.extraction(), extracted.seed)[:_KEY]
        run = Run(make_folder(extracted.work.path(f"{directory.name}-{key}")), jobs=extracted.run.jobs, quiet=True)
        frames = pipeline.features(run, recordings, self.features, seed=extracted.seed)
        known.append(FeatureSet(run, frames, {path: str(name) for path, name in ids.items()}))
        return known[-1]

    def universal_model(self, extracted: Extracted, training: DataDir, folder: str) -> Stage[TrainedUbm]:
        """Train the mixture, or reuse the one from an earlier run."""
        found = self.extract(extracted, training)
        names = tuple(sorted({found.ids[path] for path in training.recordings.values()}))
        key = fingerprint(found.frames.fingerprint, names, self.record[-1], self.ubm)[:_KEY]
        run = Run(make_folder(extracted.run.path(f"{folder}/mixture-{key}")), jobs=extracted.run.jobs, quiet=True)
        return pipeline.universal_model(run, found.frames, names, self.ubm)

    def statistics(
        self, extracted: Extracted, ubm: GaussianMixture, directory: DataDir, *, sessions: bool = False
    ) -> Statistics:
        """Return the statistics of each recording, or of sessions of it with their speakers as models."""
        found = self.extract(extracted, directory)
        frames: Any = found.frames
        owners = {found.ids[path]: directory.speakers[name] for name, path in directory.recordings.items()}
        if sessions:
            length = None if self.session_seconds is None else self.session_seconds / self.features.shift
            cut, recordings = cut_sessions(frames.value, length)
            key = fingerprint(frames.fingerprint, cut.ids, cut.offsets)
            order = [row for row, name in enumerate(recordings) if name in owners]
            order.sort(key=lambda row: (owners[recordings[row]], recordings[row]))
            frames = SessionFrames(cut, key, [*frames.origins, Stamp("sessions", key)])
            idmap = IdMap([owners[recordings[row]] for row in order], cut.ids[order].tolist())  # type: ignore[arg-type]
        else:
            idmap = IdMap.from_pairs([(name, name) for name in sorted(owners)])
        mixture = Stamp("ubm", fingerprint(ubm), ubm)
        key = fingerprint(frames.fingerprint, mixture.fingerprint, idmap)[:_KEY]
        return pipeline.statistics(found.run, ("sessions-" if sessions else "") + key, mixture, frames, idmap).value

    def averaged(
        self,
        extracted: Extracted,
        ubm: GaussianMixture,
        enrolment: DataDir,
        sessions: Mapping[tuple[str, str], Sequence[str]],
    ) -> Statistics:
        """Return the mean statistics of each (model, recording) over its utterances."""
        found, ids = self.statistics(extracted, ubm, enrolment), self.by_name(extracted, enrolment)
        row_of = {name: row for row, name in enumerate(found.segments.tolist())}
        rows = [[row_of[ids[name]] for name in names] for names in sessions.values()]
        sides = (np.asarray(found.zeroth), np.asarray(found.first))
        models, recordings = np.array(list(sessions), object).T
        return Statistics(models, recordings, *(np.stack([side[one].mean(axis=0) for one in rows]) for side in sides))

    def by_name(self, extracted: Extracted, directory: DataDir) -> dict[str, str]:
        """Return the id in features and statistics of each utterance."""
        ids = self.extract(extracted, directory).ids
        return {name: ids[path] for name, path in directory.recordings.items()}

    def fit(self, extracted: Extracted, training: DataDir, folder: str) -> MixtureVectors:
        """Train the mixture, and the matrix of total variability."""
        stage, matrix = self.universal_model(extracted, training, folder), None
        ubm = stage.value.mixture
        if self.total_variability is not None:
            statistics = self.statistics(extracted, ubm, training)
            most = max(1, min(len(statistics) - 1, ubm.means.size))
            wanted = replace(self.total_variability, rank=min(self.total_variability.rank, most))
            accumulated = Stamp("statistics of training", stage.fingerprint, statistics)
            matrix = pipeline.total_variability(stage.run, stage, accumulated, wanted).value
        return MixtureVectors(self, extracted, ubm, matrix)


@dataclass(frozen=True, eq=False)
class MixtureVectors:
    """Vectors of a trained mixture; see `Vectors`."""

    source: MixtureSource
    extracted: Extracted
    ubm: GaussianMixture
    matrix: TotalVariability | None = None

    @property
    def _vectors(self) -> Callable[[Statistics], Any]:
        work: Work = self.extracted.run.work
        if self.matrix is not None:
            return partial(extract_ivectors, self.matrix, work=work)
        return partial(adapt_supervectors, self.ubm, config=self.source.map, work=work)

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vectors of a data directory, sorted by utterance."""
        found = self._vectors(self.source.statistics(self.extracted, self.ubm, directory))
        row_of = {name: row for row, name in enumerate(found.segments.tolist())}
        ids = self.source.by_name(self.extracted, directory)
        rows = [row_of[ids[name]] for name in sorted(directory.speakers)]
        return lists.as_embeddings(directory, np.asarray(found.vectors)[rows])

    def averaged(self, enrolment: DataDir, sessions: Mapping[tuple[str, str], Sequence[str]]) -> Embeddings:
        """Return the vector of each (model, recording) from the mean statistics of its versions."""
        found = self._vectors(self.source.averaged(self.extracted, self.ubm, enrolment, sessions))
        return Supervectors(found.models, found.segments, np.asarray(found.vectors)).embeddings()

    def sessions(self, directory: DataDir) -> Embeddings:
        """Return the vectors of the sessions that the recordings of a data directory are cut into."""
        found = self._vectors(self.source.statistics(self.extracted, self.ubm, directory, sessions=True))
        return Embeddings(found.segments, found.models, np.asarray(found.vectors))


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
