"""Sources of vectors: extractors, supervectors and i-vectors of a Gaussian mixture, and networks that are trained.

A source is a configuration. Its steps are public functions of arrays: those of `Extractor`, of
`spkver.mixture` and `spkver.vectors`, and `cut_sessions` and `mean_statistics` of this module.
`spkver.attackers.stages` calls them and keeps the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from spkbase.files import file_digest, fingerprint
from spkbase.plugins import files_behind
from spkver.extractors import Extractor, ExtractorSettings
from spkver.features import FeatureConfig, Frames
from spkver.mixture import Statistics, UbmConfig
from spkver.training import check_trainer
from spkver.vectors import MapConfig, TotalVariabilityConfig

SMALL_MIXTURE: dict[str, Any] = {"features": {"preset": "wideband"}, "ubm": {"components": 64}}
"""Default features and mixture of all attackers."""


@dataclass(frozen=True)
class ExtractorSource:
    """Vectors of an extractor, which learns nothing from the training set."""

    features: ClassVar[None] = None

    extractor: Extractor

    @property
    def key(self) -> str:
        """Digest of what the extractor depends on, such as its weights."""
        return fingerprint(dict(self.extractor.extraction.record))

    @property
    def rate(self) -> int | None:
        """Sampling rate in hertz to which recordings are resampled; None: they keep their own."""
        return self.extractor.extraction.rate


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
    def mixture_key(self) -> str:
        """Digest of the configuration of its mixture, and of its file if it is given."""
        file = None
        if self.ubm.file is not None:
            file = file_digest(self.ubm.file)
        return fingerprint(self.ubm, file)

    @property
    def key(self) -> str:
        """Digest of its whole configuration."""
        vectors = self.total_variability or self.map
        return fingerprint(self.features, self.mixture_key, vectors, self.session_seconds)

    @property
    def session_frames(self) -> float | None:
        """Length of sessions in frames; None: recordings stay whole."""
        if self.session_seconds is None:
            return None
        return self.session_seconds / self.features.shift

    def fitting_rank(self, n_segments: int, width: int) -> TotalVariabilityConfig:
        """Return the configuration of the matrix, with its rank lowered to what the statistics allow.

        Parameters
        ----------
        n_segments : int
            Number of training segments.
        width : int
            Columns of their first-order statistics.
        """
        assert self.total_variability is not None
        most = max(1, min(n_segments - 1, width))
        return replace(self.total_variability, rank=min(self.total_variability.rank, most))


@dataclass(frozen=True)
class TrainedSource:
    """Vectors of a network that is trained on the training set.

    Attributes
    ----------
    module : str
        The trainer, see `spkver.training`.
    settings : mapping
        Settings of the trainer.
    device : str
    threads : int
    windows : ExtractorSettings
        Windows of long recordings.
    time_limit : float or None [s]
        Time limit of the training; None: half an hour plus the duration of the speech.
    least_speakers : int
        The fewest speakers of a training set.
    """

    features: ClassVar[None] = None
    rate: ClassVar[None] = None

    module: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    threads: int = 1
    windows: ExtractorSettings = field(default_factory=ExtractorSettings)
    time_limit: float | None = None
    least_speakers: int = 4

    @cached_property
    def file(self) -> Path:
        """File of the trainer."""
        return check_trainer(self.module)

    @cached_property
    def key(self) -> str:
        """Digest of all that its vectors depend on besides the training set: the text of the module, and settings."""
        code = [file_digest(self.file), files_behind(self.module, self.file)]
        return fingerprint(code, self.settings, self.device, self.threads, self.windows)


Source = ExtractorSource | MixtureSource | TrainedSource
"""Extractors and trained networks have no `features`: they read recordings. `key` is a digest of all that vectors
depend on besides recordings and the training set."""


def mean_statistics(
    statistics: Statistics, sessions: Mapping[tuple[str, str], Sequence[str]]
) -> Statistics:
    """Return the mean statistics of groups of segments, such as the anonymised versions of a recording.

    Parameters
    ----------
    statistics : Statistics
    sessions : mapping of (str, str) to sequence of str
        Segments of each (model, recording).

    Returns
    -------
    Statistics
        One row for each group, in their order.
    """
    row_of = {name: row for row, name in enumerate(statistics.segments.tolist())}
    zeroth = np.asarray(statistics.zeroth)
    first = np.asarray(statistics.first)
    rows = []
    for names in sessions.values():
        rows.append([row_of[name] for name in names])
    models, recordings = np.array(list(sessions), object).T
    return Statistics(
        models,
        recordings,
        np.stack([zeroth[group].mean(axis=0) for group in rows]),
        np.stack([first[group].mean(axis=0) for group in rows]),
    )


def cut_sessions(frames: Frames, length: float | None) -> tuple[Frames, list[str]]:
    """Cut recordings into sessions.

    Pieces of different recordings are never joined: an anonymiser may have drawn different numbers for each, and the
    scatter within speakers should reflect that.

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
    ids = []
    recordings = []
    edges = [0]
    pairs = frames.offsets[:-1].tolist(), frames.offsets[1:].tolist()
    for recording, begin, end in zip(frames.ids.tolist(), *pairs, strict=True):
        size = end - begin
        count = 1 if length is None else max(1, min(round(size / length), size))
        bounds = [round(number * size / count) for number in range(count + 1)]
        ids += [f"{recording} {start}" for start in bounds[:-1]]
        recordings += [recording] * count
        edges += [begin + stop for stop in bounds[1:]]
    return Frames(np.array(ids, object), np.array(edges, np.int64), frames.values), recordings
