"""The steps of a system as stages of a run: each arrow of the design is one function and one file.

    audio -> features.h5 -> gmm/ubm.h5 -> data/stat_*.h5 -> data/sv_*.h5 -> data/nap.h5 -> svm/*.h5 -> scores/*.h5, .txt

Each function declares its stage and hands it out; `spkbase.runs.Run.complete`, or asking for a `value`, does the
work. A stage that is up to date is not done again, so frames are only post-processed when a step needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align
from spkbase.errors import ConfigError
from spkbase.files import open_file, read_arrays, write_arrays
from spkbase.runs import Draft, Handle, Run, Stage
from spkver.backend import (
    NapConfig,
    Projection,
    SvmConfig,
    SvmModels,
    fit_nap,
    open_svms,
    score_gmm_ubm,
    score_trials,
    stream_svms,
)
from spkver.features import (
    FeatureConfig,
    FeatureTable,
    Frames,
    extract_features,
    import_sidekit,
    label_file,
    load_frames,
    read_feature_table,
    sidekit_files,
)
from spkver.idmap import IdMap
from spkver.mixture import (
    GaussianMixture,
    Statistics,
    TrainedUbm,
    UbmConfig,
    open_statistics,
    stream_statistics,
    train_ubm,
)
from spkver.sidekit import read_mixture, write_mixture
from spkver.vectors import MapConfig, Supervectors, open_supervectors, stream_supervectors


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
            return load_frames(table, self.config, folder=self.run.output, jobs=self.run.jobs)

    def release(self) -> None:
        """Let go of the frames; asked for again, they are made again."""
        self.__dict__.pop("value", None)


def features(run: Run, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> LazyFrames:
    """Extract features of all recordings, or take SIDEKIT's (`features.h5`); hand out their post-processed frames."""

    def make(draft: Draft) -> None:
        if config.files is None:
            extract_features(
                recordings, config, draft.path, seed=seed, jobs=run.jobs, attributes=draft.attributes,
                folder=draft.folder, fingerprint=draft.fingerprint,
            )  # fmt: skip
        else:
            import_sidekit(config.files, recordings, config, draft.path, attributes=draft.attributes)

    sources = dict(recordings if config.files is None else sidekit_files(config.files, recordings))
    if config.vad == "labels":
        sources |= {f"labels of {name}": label_file(config, name) for name in recordings}
    table = run.stage(
        "features", "features.h5", make=make, read=read_feature_table, inputs=[config.extraction(), seed],
        sources=sources, libraries=_feature_libraries(recordings, config),
    )  # fmt: skip
    stamp = run.stamp("frames", config.post_processing(), after=[table], libraries=("numpy", "scipy"))
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


def universal_model(
    run: Run, frames: Handle[Frames], recordings: tuple[str, ...], config: UbmConfig
) -> Stage[TrainedUbm]:
    """Train the universal background model (`gmm/ubm.h5`), or take the one of `ubm.file`."""

    def make(draft: Draft) -> None:
        stacked = frames.value.stack(recordings)
        trained = train_ubm(
            stacked, config, jobs=run.jobs, folder=draft.folder, fingerprint=draft.fingerprint, device=run.device
        )
        _write_ubm(draft, trained)

    if config.file is not None:
        file = Path(config.file)
        return run.stage(
            "ubm", "gmm/ubm.h5", make=lambda draft: _write_ubm(draft, read_ubm(file)), read=read_ubm,
            sources={"ubm.file": file},
        )  # fmt: skip
    return run.stage(
        "ubm", "gmm/ubm.h5", make=make, read=read_ubm, inputs=[config, recordings], after=[frames], on_device=True
    )


def check_ubm(config: UbmConfig, *, dimension: int, most_frames: float) -> None:
    """Check the options of the universal background model against the features, before there are any.

    Parameters
    ----------
    config : UbmConfig
    dimension : int
        Length of a frame.
    most_frames : float
        Frames that there are at most, when all is speech.

    Raises
    ------
    DataError
        If `ubm.file` cannot be read or has another dimension, the first split dimension does not exist, or there
        cannot be as many frames as Gaussians.
    """
    if config.file is not None:
        found = read_ubm(config.file).mixture.dimension
        if found != dimension:
            raise ConfigError(
                f"ubm.file holds a mixture of {found} dimensions, the features have {dimension}",
                file=config.file,
                remedy="choose the features that it was trained on",
            )
        return
    if config.first_split_dimension is not None and not 0 <= config.first_split_dimension < dimension:
        raise ConfigError(f"ubm.first_split_dimension is {config.first_split_dimension}: expected 0 to {dimension - 1}")
    if config.components > most_frames:
        raise ConfigError(
            f"ubm.components is {config.components}, but the background speech has at most {most_frames:.0f} frames",
            remedy="lower it or give more background speech",
        )


def read_ubm(path: str | Path) -> TrainedUbm:
    """Read a mixture of ours or of SIDEKIT's, with its training history where it is kept."""
    mixture = read_mixture(path)
    with open_file(path) as file:
        history = {name: np.asarray(file.attrs.get(name, [])) for name in ("log_likelihoods", "n_components")}
    return TrainedUbm(
        GaussianMixture(mixture.weights, mixture.means, 1.0 / mixture.precisions),
        mixture.variance_control[0],
        **history,
    )


def _write_ubm(draft: Draft, trained: TrainedUbm) -> None:
    mixture = trained.mixture
    history = {"log_likelihoods": trained.log_likelihoods, "n_components": trained.n_components}
    write_mixture(
        draft.path,
        weights=mixture.weights,
        means=mixture.means,
        variances=mixture.variances,
        variance_control=np.tile(trained.variance_control, (mixture.n_components, 1)),
        attributes={**draft.attributes, **({} if not len(trained.log_likelihoods) else history)},
    )


def statistics(run: Run, name: str, ubm: Handle[TrainedUbm], frames: Handle[Frames], idmap: IdMap) -> Stage[Statistics]:
    """Statistics of the segments of a list (`data/stat_<name>.h5`)."""

    def make(draft: Draft) -> None:
        stream_statistics(
            draft.path, ubm.value.mixture, frames.value, idmap.models, idmap.segments, jobs=run.jobs, device=run.device,
            attributes=draft.attributes, folder=draft.folder, fingerprint=draft.fingerprint,
        )  # fmt: skip

    return run.stage(
        f"statistics of {name}", f"data/stat_{name}.h5", make=make, read=open_statistics, inputs=idmap,
        after=[frames, ubm],
        on_device=True,
    )  # fmt: skip


def supervectors(
    run: Run,
    name: str,
    ubm: Handle[TrainedUbm],
    found: Handle[Statistics],
    config: MapConfig,
    *,
    multisession: bool = False,
) -> Stage[Supervectors]:
    """MAP-adapted supervectors (`data/sv_<name>.h5`): of each segment, or of all sessions of a model together."""

    def make(draft: Draft) -> None:
        stream_supervectors(
            draft.path, ubm.value.mixture, found.value, config, multisession=multisession, jobs=run.jobs,
            device=run.device, attributes=draft.attributes, folder=draft.folder, fingerprint=draft.fingerprint,
        )  # fmt: skip

    return run.stage(
        f"supervectors of {name}", f"data/sv_{name}.h5", make=make, read=open_supervectors,
        inputs=[config, multisession], after=[found], on_device=True,
    )  # fmt: skip


def nuisance_projection(run: Run, found: Handle[Supervectors], config: NapConfig) -> Stage[Projection]:
    """Directions of nuisance, estimated on the supervectors of a list (`data/nap.h5`)."""

    def make(draft: Draft) -> None:
        given = found.value
        projection = fit_nap(
            given.vectors,
            rank=config.rank,
            scatter=config.scatter,
            speakers=given.models,
            jobs=run.jobs,
            device=run.device,
        )
        write_arrays(draft.path, {"directions": projection.directions}, attributes=draft.attributes)

    def read(path: Path) -> Projection:
        return Projection(read_arrays(path, "directions")["directions"])

    return run.stage(
        "nap", "data/nap.h5", make=make, read=read, inputs=[config.rank, config.scatter], after=[found], on_device=True
    )


def svm_system(
    run: Run,
    system: str,
    found: Mapping[str, Handle[Supervectors]],
    trials: Trials,
    config: SvmConfig,
    *,
    projection: Handle[Projection] | None = None,
) -> Stage[Scores]:
    """Train a system's machines (`svm/<system>.h5`) and score the trials (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    found : mapping
        Supervectors of the lists enroll, back and test.
    projection : Handle of Projection, optional
        Applied to all of them first.
    """
    enroll, back, test = (found[name] for name in ("enroll", "back", "test"))
    after = [] if projection is None else [projection]

    def removed() -> Projection | None:
        return None if projection is None else projection.value

    def make(draft: Draft) -> None:
        given = enroll.value
        stream_svms(
            draft.path, given.models, given.vectors, back.value.vectors, config, projection=removed(), jobs=run.jobs,
            device=run.device, attributes=draft.attributes, folder=draft.folder, fingerprint=draft.fingerprint,
        )  # fmt: skip

    machines: Stage[SvmModels] = run.stage(
        f"models of {system}", f"svm/{system}.h5", make=make, read=open_svms, inputs=config,
        after=[enroll, back, *after], libraries=("numpy", "scikit-learn"), on_device=True,
    )  # fmt: skip

    def compute(draft: Draft) -> Scores:
        tested = test.value
        return score_trials(
            machines.value, tested.segments, tested.vectors, trials, projection=removed(), jobs=run.jobs,
            device=run.device, folder=draft.folder, fingerprint=draft.fingerprint,
        )  # fmt: skip

    return _scores(run, system, trials, compute, after=[machines, test, *after])


def gmm_scores(
    run: Run,
    system: str,
    ubm: Handle[TrainedUbm],
    models: Handle[Supervectors],
    frames: Handle[Frames],
    trials: Trials,
) -> Stage[Scores]:
    """Log-likelihood ratios of the trials (`scores/<system>.h5` and `.txt`)."""

    def compute(draft: Draft) -> Scores:
        adapted = models.value
        return score_gmm_ubm(
            ubm.value.mixture, adapted.models, adapted.vectors, frames.value, trials, jobs=run.jobs,
            device=run.device, folder=draft.folder, fingerprint=draft.fingerprint,
        )  # fmt: skip

    return _scores(run, system, trials, compute, after=[ubm, models, frames])


def _scores(
    run: Run, system: str, trials: Trials, compute: Callable[[Draft], Scores], *, after: list[Handle]
) -> Stage[Scores]:
    def make(draft: Draft) -> None:
        scores = compute(draft)
        # the stage is done when the HDF5 file is there: it goes first and comes last, so that the text fits it
        draft.path.unlink(missing_ok=True)
        write_scores(draft.path.with_suffix(".txt"), scores)
        write_scores(draft.path, scores, attributes=dict(draft.attributes))

    def read(path: Path) -> Scores:
        scores = read_scores(path)
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, align(scores, trials))

    return run.stage(
        f"scores of {system}", f"scores/{system}.h5", also=(f"scores/{system}.txt",), make=make, read=read,
        inputs=trials, after=after, on_device=True,
    )  # fmt: skip
