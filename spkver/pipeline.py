"""The steps of a system as stages of a run: each arrow of the design is one function and one file.

    audio -> features.h5 -> gmm/ubm.h5 -> data/stat_*.h5 -> data/sv_*.h5 -> data/nap.h5 -> svm/*.h5 -> scores/*.h5, .txt

A step that is up to date is read from its file, so frames are only post-processed when a step needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align
from spkver.errors import ConfigError, DataError
from spkver.features import (
    FeatureConfig,
    Frames,
    extract_features,
    label_file,
    load_frames,
    read_feature_table,
)
from spkver.features.exchange import import_sidekit, sidekit_files
from spkver.gmm import GaussianMixture
from spkver.idmap import IdMap
from spkver.nap import NapConfig, Projection, fit_nap
from spkver.run import Run
from spkver.scoring import score_gmm_ubm, score_trials
from spkver.sidekit import read_mixture, read_stat_server, write_mixture, write_stat_server
from spkver.statistics import Statistics, accumulate_statistics
from spkver.store import open_file, read_arrays, write_arrays
from spkver.supervectors import MapConfig, Supervectors, adapt_multisession, adapt_supervectors
from spkver.svm import SvmConfig, read_svms, train_svms, write_svms
from spkver.ubm import TrainedUbm, UbmConfig, train_ubm

# Frames are made when the first step asks for them, then kept.
LazyFrames = Callable[[], Frames]


def features(run: Run, recordings: Mapping[str, Path], config: FeatureConfig, *, seed: int) -> LazyFrames:
    """Extract features of all recordings, or take SIDEKIT's (`features.h5`); hand out their post-processed frames."""

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        if config.files is None:
            extract_features(recordings, config, path, seed=seed, jobs=run.jobs, attributes=attributes)
        else:
            import_sidekit(config.files, recordings, config, path, attributes=attributes)

    sources = recordings if config.files is None else sidekit_files(config.files, recordings)
    files = {name: _file_stamp(path) for name, path in sources.items()}
    labels = [_file_stamp(label_file(config, name)) for name in recordings] if config.vad == "labels" else []
    inputs = [files, labels, config.extraction(), seed]
    table = run.stage("features", "features.h5", make=make, read=read_feature_table, inputs=inputs)
    run.stamp("frames", config.post_processing(), after=("features",))

    @cache
    def frames() -> Frames:
        with run.timed("post-processing"):
            return load_frames(table, config, folder=run.output, jobs=run.jobs)

    return frames


def _file_stamp(path: Path) -> list[int | str]:
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def universal_model(run: Run, frames: LazyFrames, recordings: tuple[str, ...], config: UbmConfig) -> TrainedUbm:
    """Train the universal background model (`gmm/ubm.h5`), or take the one of `ubm.file`."""

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        trained = train_ubm(frames().stack(recordings), config, jobs=run.jobs)
        history = {"log_likelihoods": trained.log_likelihoods, "n_components": trained.n_components}
        _write_ubm(path, trained, {**attributes, **history})

    def copy(path: Path, attributes: Mapping[str, Any]) -> None:
        _write_ubm(path, read_ubm(str(config.file)), attributes)

    if config.file is not None:
        return run.stage("ubm", "gmm/ubm.h5", make=copy, read=read_ubm, inputs=_file_stamp(Path(config.file)))
    return run.stage("ubm", "gmm/ubm.h5", make=make, read=read_ubm, inputs=[config, recordings], after=("frames",))


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


def _write_ubm(path: Path, trained: TrainedUbm, attributes: Mapping[str, Any]) -> None:
    mixture = trained.mixture
    control = np.tile(trained.variance_control, (mixture.n_components, 1))
    write_mixture(
        path,
        weights=mixture.weights,
        means=mixture.means,
        variances=mixture.variances,
        variance_control=control,
        attributes=attributes,
    )


def statistics(run: Run, name: str, ubm: TrainedUbm, frames: LazyFrames, idmap: IdMap) -> Statistics:
    """Statistics of the segments of a list (`data/stat_<name>.h5`)."""

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        found = accumulate_statistics(ubm.mixture, frames(), idmap.models, idmap.segments, jobs=run.jobs)
        write_stat_server(
            path, models=found.models, segments=found.segments, stat0=found.zeroth, stat1=found.first,
            attributes=attributes,
        )  # fmt: skip

    def read(path: Path) -> Statistics:
        server = read_stat_server(path)
        return Statistics(server.models, server.segments, server.stat0, server.stat1)

    return run.stage(
        f"statistics of {name}", f"data/stat_{name}.h5", make=make, read=read, inputs=idmap, after=("frames", "ubm")
    )


def supervectors(
    run: Run,
    name: str,
    ubm: TrainedUbm,
    found: Statistics,
    config: MapConfig,
    *,
    of: str | None = None,
    multisession: bool = False,
) -> Supervectors:
    """MAP-adapted supervectors of the list `of` (`data/sv_<name>.h5`): each segment, or all sessions of a model."""

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        adapt = adapt_multisession if multisession else adapt_supervectors
        adapted = adapt(ubm.mixture, found, config)
        write_stat_server(
            path,
            models=adapted.models,
            segments=adapted.segments,
            stat0=np.ones((len(adapted), 1), np.float32),
            stat1=adapted.vectors,
            attributes=attributes,
        )

    def read(path: Path) -> Supervectors:
        server = read_stat_server(path)
        return Supervectors(server.models, server.segments, server.stat1)

    return run.stage(
        f"supervectors of {name}", f"data/sv_{name}.h5", make=make, read=read, inputs=[config, multisession],
        after=(f"statistics of {of or name}",),
    )  # fmt: skip


def nuisance_projection(run: Run, name: str, found: Supervectors, config: NapConfig) -> Projection:
    """Directions of nuisance, estimated on the list `name` (`data/nap.h5`)."""

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        projection = fit_nap(
            found.vectors, rank=config.rank, scatter=config.scatter, speakers=found.models, jobs=run.jobs
        )
        write_arrays(path, {"directions": projection.directions}, attributes=attributes)

    def read(path: Path) -> Projection:
        return Projection(read_arrays(path, "directions")["directions"])

    inputs = [config.rank, config.scatter]
    return run.stage("nap", "data/nap.h5", make=make, read=read, inputs=inputs, after=(f"supervectors of {name}",))


def svm_system(
    run: Run,
    system: str,
    found: Mapping[str, Supervectors],
    trials: Trials,
    config: SvmConfig,
    *,
    projection: Projection | None = None,
) -> Scores:
    """Train a system's machines (`svm/<system>.h5`) and score the trials (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    found : mapping
        Supervectors of the lists enroll, back and test.
    projection : Projection, optional
        Applied to all of them first.
    """

    @cache
    def vectors(name: str) -> NDArray:
        return found[name].vectors if projection is None else projection(found[name].vectors, jobs=run.jobs)

    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        trained = train_svms(found["enroll"].models, vectors("enroll"), vectors("back"), config, jobs=run.jobs)
        write_svms(path, trained, attributes=attributes)

    after = () if projection is None else ("nap",)
    machines = run.stage(
        f"models of {system}",
        f"svm/{system}.h5",
        make=make,
        read=read_svms,
        inputs=config,
        after=("supervectors of enroll", "supervectors of back", *after),
    )
    return _scores(
        run,
        system,
        trials,
        lambda: score_trials(machines, found["test"].segments, vectors("test"), trials, jobs=run.jobs),
        after=(f"models of {system}", "supervectors of test", *after),
    )


def gmm_scores(
    run: Run, system: str, ubm: TrainedUbm, models: Supervectors, frames: LazyFrames, trials: Trials
) -> Scores:
    """Log-likelihood ratios of the trials (`scores/<system>.h5` and `.txt`)."""
    return _scores(
        run,
        system,
        trials,
        lambda: score_gmm_ubm(ubm.mixture, models.models, models.vectors, frames(), trials, jobs=run.jobs),
        after=("ubm", "supervectors of models", "frames"),
    )


def _scores(run: Run, system: str, trials: Trials, compute: Callable[[], Scores], *, after: tuple[str, ...]) -> Scores:
    def make(path: Path, attributes: Mapping[str, Any]) -> None:
        scores = compute()
        # the stage is done when the HDF5 file is there: it goes first and comes last, so that the text fits it
        path.unlink(missing_ok=True)
        write_scores(path.with_suffix(".txt"), scores)
        write_scores(path, scores, attributes=dict(attributes))

    def read(path: Path) -> Scores:
        if not path.with_suffix(".txt").is_file():
            raise DataError("the scores as text are gone", file=path.with_suffix(".txt"))
        scores = read_scores(path)
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, align(scores, trials))

    return run.stage(f"scores of {system}", f"scores/{system}.h5", make=make, read=read, inputs=trials, after=after)
