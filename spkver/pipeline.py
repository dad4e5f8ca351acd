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

from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align
from spkbase.files import read_arrays, write_arrays
from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkver.backend import (
    NapConfig,
    Projection,
    SvmConfig,
    SvmModels,
    fit_nap,
    open_svms,
    score_gmm_ubm,
    score_trials,
    train_svms,
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
    Statistics,
    TrainedUbm,
    UbmConfig,
    accumulate_statistics,
    open_statistics,
    read_ubm,
    train_ubm,
    write_ubm,
)
from spkver.vectors import MapConfig, Supervectors, adapt_multisession, adapt_supervectors, open_supervectors


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
            extract_features(recordings, config, draft.destination, seed=seed, jobs=run.jobs)
        else:
            import_sidekit(config.files, recordings, config, draft.path, attributes=draft.attributes)

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


def universal_model(
    run: Run, frames: Handle[Frames], recordings: tuple[str, ...], config: UbmConfig
) -> Stage[TrainedUbm]:
    """Train the universal background model (`gmm/ubm.h5`), or take the one of `ubm.file`."""

    def make(draft: Draft) -> None:
        trained = train_ubm(frames.value.stack(recordings), config, work=run.work, destination=draft.destination)
        write_ubm(draft.path, trained, attributes=draft.attributes)

    if config.file is not None:
        file = Path(config.file)

        def copy(draft: Draft) -> None:
            write_ubm(draft.path, read_ubm(file), attributes=draft.attributes)

        return run.stage("ubm", "gmm/ubm.h5", make=copy, read=read_ubm, depends=Depends(sources={"ubm.file": file}))
    return run.stage(
        "ubm",
        "gmm/ubm.h5",
        make=make,
        read=read_ubm,
        depends=Depends(inputs=[config, recordings], after=[frames], on_device=True),
    )


def statistics(run: Run, name: str, ubm: Handle[TrainedUbm], frames: Handle[Frames], idmap: IdMap) -> Stage[Statistics]:
    """Accumulate the statistics of the segments of a list (`data/stat_<name>.h5`)."""

    def make(draft: Draft) -> None:
        mixture = ubm.value.mixture
        accumulate_statistics(
            mixture, frames.value, idmap.models, idmap.segments, work=run.work, destination=draft.destination
        )

    return run.stage(
        f"statistics of {name}",
        f"data/stat_{name}.h5",
        make=make,
        read=open_statistics,
        depends=Depends(inputs=idmap, after=[frames, ubm], on_device=True),
    )


def supervectors(
    run: Run,
    name: str,
    ubm: Handle[TrainedUbm],
    accumulated: Handle[Statistics],
    config: MapConfig,
    *,
    multisession: bool = False,
) -> Stage[Supervectors]:
    """Adapt supervectors by MAP (`data/sv_<name>.h5`): of each segment, or of all sessions of a model together."""

    adapt = adapt_multisession if multisession else adapt_supervectors

    def make(draft: Draft) -> None:
        adapt(ubm.value.mixture, accumulated.value, config, work=run.work, destination=draft.destination)

    return run.stage(
        f"supervectors of {name}",
        f"data/sv_{name}.h5",
        make=make,
        read=open_supervectors,
        depends=Depends(inputs=[config, multisession], after=[accumulated], on_device=True),
    )


def nuisance_projection(run: Run, of_list: Handle[Supervectors], config: NapConfig) -> Stage[Projection]:
    """Estimate the directions of nuisance on the supervectors of a list (`data/nap.h5`)."""

    def make(draft: Draft) -> None:
        vectors, speakers = of_list.value.vectors, of_list.value.models
        projection = fit_nap(vectors, rank=config.rank, scatter=config.scatter, speakers=speakers, work=run.work)
        write_arrays(draft.path, {"directions": projection.directions}, attributes=draft.attributes)

    def read(path: Path) -> Projection:
        return Projection(read_arrays(path, "directions")["directions"])

    return run.stage(
        "nap",
        "data/nap.h5",
        make=make,
        read=read,
        depends=Depends(inputs=[config.rank, config.scatter], after=[of_list], on_device=True),
    )


def svm_system(
    run: Run,
    system: str,
    of_lists: Mapping[str, Handle[Supervectors]],
    trials: Trials,
    config: SvmConfig,
    *,
    projection: Handle[Projection] | None = None,
) -> Stage[Scores]:
    """Train a system's machines (`svm/<system>.h5`) and score the trials (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    run : Run
    system : str
    of_lists : mapping
        Supervectors of the lists enroll, back and test.
    trials : Trials
    config : SvmConfig
    projection : Handle of Projection, optional
        Applied to all of them first.

    Returns
    -------
    Stage of Scores
    """
    enroll, back, test = (of_lists[name] for name in ("enroll", "back", "test"))
    after = [] if projection is None else [projection]

    def removed() -> Projection | None:
        return None if projection is None else projection.value

    def make(draft: Draft) -> None:
        train_svms(
            enroll.value.models,
            enroll.value.vectors,
            back.value.vectors,
            config,
            projection=removed(),
            work=run.work,
            destination=draft.destination,
        )

    machines: Stage[SvmModels] = run.stage(
        f"models of {system}",
        f"svm/{system}.h5",
        make=make,
        read=open_svms,
        depends=Depends(
            inputs=config, after=[enroll, back, *after], libraries=("numpy", "scikit-learn"), on_device=True
        ),
    )

    def compute(draft: Draft) -> Scores:
        return score_trials(
            machines.value,
            test.value.segments,
            test.value.vectors,
            trials,
            projection=removed(),
            work=run.work,
            destination=draft.destination,
        )

    return _scores(run, system, trials, compute, after=[machines, test, *after])


def gmm_scores(
    run: Run,
    system: str,
    ubm: Handle[TrainedUbm],
    models: Handle[Supervectors],
    frames: Handle[Frames],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by log-likelihood ratios (`scores/<system>.h5` and `.txt`)."""

    def compute(draft: Draft) -> Scores:
        adapted = models.value
        return score_gmm_ubm(
            ubm.value.mixture,
            adapted.models,
            adapted.vectors,
            frames.value,
            trials,
            work=run.work,
            destination=draft.destination,
        )

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
        f"scores of {system}",
        f"scores/{system}.h5",
        also=(f"scores/{system}.txt",),
        make=make,
        read=read,
        depends=Depends(inputs=trials, after=after, on_device=True),
    )
