"""From audio to frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spkbase.runs import Depends, Draft, Handle, Run
from spkbase.showing import one_line
from spkver.features import (
    FeatureConfig,
    FeatureTable,
    Frames,
    extract_features,
    label_file,
    load_frames,
    read_feature_table,
    sidekit_files,
)


@one_line
@dataclass(frozen=True)
class LazyFrames:
    """Post-processed frames of all recordings: made when they are asked for, kept while stages need them; no artefact.

    Attributes
    ----------
    run : Run
    table : Handle of FeatureTable
    config : FeatureConfig
    fingerprint : str
    """

    run: Run
    table: Handle[FeatureTable]
    config: FeatureConfig
    fingerprint: str
    name: str = "frames"

    @cached_property
    def value(self) -> Frames:
        """The frames."""
        table = self.table.value
        with self.run.timed("post-processing"):
            return load_frames(table, self.config, folder=self.run.output, work=self.run.work)

    def release(self) -> None:
        """Let go of the frames; asked for again, they are made again."""
        self.__dict__.pop("value", None)


def features(run: Run, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> LazyFrames:
    """Extract features of all recordings, or take SIDEKIT's (`features.h5`); hand out their post-processed frames."""

    def make(draft: Draft) -> None:
        extract_features(recordings, config, draft.destination, seed=seed, work=run.work)

    sources = dict(recordings if config.files is None else sidekit_files(config.files, recordings))
    if config.vad == "labels":
        sources |= {f"labels of {name}": label_file(config, name) for name in recordings}
    table = run.stage(
        "features",
        "features.h5",
        make=make,
        read=read_feature_table,
        depends=Depends(
            inputs=[config.extraction(), seed], sources=sources, libraries=_feature_libraries(recordings, config)
        ),
    )
    stamp = run.stamp("frames", Depends(inputs=config.post_processing(), after=[table], libraries=("numpy", "scipy")))
    frames = LazyFrames(run, table, config, stamp)
    run.hold(frames.name, frames.release)
    return frames


def _feature_libraries(recordings: Mapping[str, Path], config: FeatureConfig) -> list[str]:
    """Libraries that the features depend on."""
    if config.files is not None:
        return ["numpy"]
    used = ["numpy", "scipy", "soundfile"]
    used += ["soxr"] * config.resample + ["librosa"] * (config.engine == "librosa")
    return used + ["av"] * any(path.suffix.lower() == ".sph" for path in recordings.values())
