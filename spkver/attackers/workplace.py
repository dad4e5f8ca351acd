"""Features and statistics of data directories, kept in a folder and shared between attackers.

    WORK/<data directory>-<key>/features.h5     cepstra of its recordings
    WORK/<data directory>-<key>/data/stat_*.h5  their statistics, one file for each universal background model
    WORK/ubm-<key>/gmm/ubm.h5                   universal background models

A key is made from the files (path, size, time of change) and from the configuration: what is equal is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.files import make_folder
from spkver import pipeline
from spkver.features import FeatureConfig
from spkver.gmm import GaussianMixture
from spkver.idmap import IdMap
from spkver.run import Run
from spkver.statistics import Statistics
from spkver.store import fingerprint
from spkver.ubm import TrainedUbm, UbmConfig

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
    frames : callable
        Gives their frames; the work is done at the first call.
    """

    run: Run
    names: tuple[str, ...]
    frames: pipeline.LazyFrames


@dataclass(frozen=True)
class Workplace:
    """A folder with what attackers share, and what of it is in memory."""

    folder: Path
    jobs: int | None = None
    _prepared: dict[str, Prepared] = field(default_factory=dict, repr=False)
    _statistics: dict[str, Statistics] = field(default_factory=dict, repr=False)

    def recordings(self, name: str, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> Prepared:
        """Features of recordings; `name` is for the eye of those who look into the folder."""
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
        """Universal background model of all recordings."""
        run = self._run(f"ubm-{fingerprint(prepared.run.stamps['frames'], config)[:_KEY]}")
        run.stamps["frames"] = prepared.run.stamps["frames"]
        return pipeline.universal_model(run, prepared.frames, prepared.names, config)

    def statistics(self, prepared: Prepared, ubm: GaussianMixture) -> Statistics:
        """Statistics of each recording; models and segments are the recordings."""
        run = prepared.run
        run.stamps["ubm"] = fingerprint(ubm)
        idmap = IdMap(list(prepared.names), list(prepared.names))  # type: ignore[arg-type]
        key = fingerprint(run.stamps["frames"], run.stamps["ubm"])[:_KEY]
        if key not in self._statistics:
            mixture = TrainedUbm(ubm, ubm.variances[0])
            self._statistics[key] = pipeline.statistics(run, key, mixture, prepared.frames, idmap)
        return self._statistics[key]

    def _run(self, name: str) -> Run:
        return Run(make_folder(self.folder / name), jobs=self.jobs, quiet=True)
