"""Features and statistics of data directories, kept in a folder and shared between attackers.

    WORK/<data directory>-<key>/features.h5              cepstra of its recordings
    WORK/<data directory>-<key>/data/stat_*.h5           their statistics, one file for each universal background model
    WORK/<data directory>-<key>/data/stat_sessions-*.h5  those of the sessions that a training set is cut into
    WORK/ubm-<key>/gmm/ubm.h5                            universal background models

A key is made from the files (path, size, time of change) and from the configuration: what is equal is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from spkbase.files import fingerprint, make_folder
from spkbase.runs import Origin, Run, Stamp
from spkver import pipeline
from spkver.attackers.sessions import Session, cut_sessions, session_frames
from spkver.features import FeatureConfig, Frames
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics, TrainedUbm, UbmConfig

_KEY = 16  # digits of a key


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


@dataclass(frozen=True)
class SessionFrames:
    """Frames of the sessions of a training set; they are cut out of those of the recordings when they are asked for.

    Attributes
    ----------
    whole : spkver.pipeline.FramesStage
        Of the recordings.
    sessions : tuple of Session
    """

    whole: pipeline.FramesStage
    sessions: tuple[Session, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Of the frames of the recordings, and of where they are cut."""
        return fingerprint(self.whole.fingerprint, [(session.name, session.stop) for session in self.sessions])

    @property
    def origins(self) -> list[Origin]:
        """What stages that read the frames depend on."""
        return [*self.whole.origins, Stamp("sessions", self.fingerprint)]

    @cached_property
    def value(self) -> Frames:
        """The frames."""
        return session_frames(self.whole.value, self.sessions)


@dataclass(frozen=True)
class Workplace:
    """A folder with what attackers share, and what of it is in memory.

    Attributes
    ----------
    folder : Path
    jobs : int or None
        Work; all cores by default.
    """

    folder: Path
    jobs: int | None = None
    _prepared: dict[str, Prepared] = field(default_factory=dict, repr=False)
    _sessions: dict[str, SessionFrames] = field(default_factory=dict, repr=False)
    _statistics: dict[str, Statistics] = field(default_factory=dict, repr=False)

    def recordings(self, name: str, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> Prepared:
        """Return the features of recordings; `name` is for those who look into the folder."""
        stamps = {}
        for recording, path in sorted(recordings.items()):
            status = path.stat()
            stamps[recording] = [str(path.resolve()), status.st_size, status.st_mtime_ns]
        key = fingerprint(stamps, config.extraction(), seed)[:_KEY]
        whole = fingerprint(key, config.post_processing())
        if whole not in self._prepared:
            run = self._run(f"{name}-{key}")
            frames = pipeline.features(run, recordings, config, seed=seed)
            self._prepared[whole] = Prepared(run, tuple(sorted(recordings)), frames)
        return self._prepared[whole]

    def ubm(self, prepared: Prepared, config: UbmConfig) -> TrainedUbm:
        """Return the universal background model of all recordings."""
        run = self._run(f"ubm-{fingerprint(prepared.frames.fingerprint, config)[:_KEY]}")
        return pipeline.universal_model(run, prepared.frames, prepared.names, config).value

    def statistics(self, prepared: Prepared, ubm: GaussianMixture) -> Statistics:
        """Return the statistics of each recording; models and segments are the recordings."""
        idmap = IdMap(list(prepared.names), list(prepared.names))  # type: ignore[arg-type]
        return self._found(prepared.run, "", ubm, prepared.frames, idmap)

    def sessions(self, prepared: Prepared, speakers: Mapping[str, str], length: float | None) -> SessionFrames:
        """Return frames of the sessions of about `length` frames that recordings are cut into, see `cut_sessions`."""
        key = fingerprint(prepared.frames.fingerprint, sorted(speakers.items()), length)
        if key not in self._sessions:
            whole = prepared.frames.value
            lengths = {name: len(whole.of(name)) for name in prepared.names}
            self._sessions[key] = SessionFrames(prepared.frames, tuple(cut_sessions(lengths, speakers, frames=length)))
        return self._sessions[key]

    def session_statistics(self, prepared: Prepared, ubm: GaussianMixture, frames: SessionFrames) -> Statistics:
        """Return the statistics of the sessions of a training set; models are the speakers."""
        speakers, names = zip(*((session.speaker, session.name) for session in frames.sessions), strict=True)
        return self._found(prepared.run, "sessions-", ubm, frames, IdMap(speakers, names))  # type: ignore[arg-type]

    def _found(self, run: Run, kind: str, ubm: GaussianMixture, frames: Any, idmap: IdMap) -> Statistics:
        mixture = Stamp("ubm", fingerprint(ubm), ubm)
        key = kind + fingerprint(frames.fingerprint, mixture.fingerprint)[:_KEY]
        if key not in self._statistics:
            self._statistics[key] = pipeline.statistics(run, key, mixture, frames, idmap).value
        return self._statistics[key]

    def _run(self, name: str) -> Run:
        return Run(make_folder(self.folder / name), jobs=self.jobs, quiet=True)
