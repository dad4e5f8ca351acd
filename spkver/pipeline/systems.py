"""Stages of the systems of RSR2015: from audio to the scores of trials, or files of other tools in their place.

**What another tool has done already: its files in the place of a stage's own work.**

**Scores of trials: of any system, and of adapted mixtures.**

**From audio to frames.**

**From frames to a mixture, and to the statistics of segments under it.**

**From statistics to supervectors, and from supervectors to machines and their scores.**

**From statistics to i-vectors, and from one vector a segment to the scores of a chain of steps; joint factors.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align
from spkbase.errors import DataError, Problems, few
from spkbase.files import read_arrays, write_arrays
from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkbase.showing import one_line
from spkver.backend import (
    Backend,
    Chain,
    NapConfig,
    Projection,
    SvmConfig,
    SvmModels,
    fit_nap,
    open_svms,
    plain_chain,
    read_backend,
    read_svms,
    score_gmm_ubm,
    score_joint_factors,
    score_trials,
    train_chain,
    train_svms,
    write_backend,
    write_svms,
)
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
from spkver.idmap import IdMap
from spkver.mixture import (
    GaussianMixture,
    Statistics,
    TrainedUbm,
    UbmConfig,
    accumulate_statistics,
    copy_stat_rows,
    open_statistics,
    read_ubm,
    train_ubm,
    write_ubm,
)
from spkver.sidekit import read_svm
from spkver.vectors import (
    IVectorMethod,
    IVectors,
    JointFactorConfig,
    JointFactors,
    MapConfig,
    Supervectors,
    TotalVariability,
    TotalVariabilityConfig,
    adapt_multisession,
    adapt_supervectors,
    extract_ivectors,
    open_ivectors,
    open_supervectors,
    read_joint_factors,
    read_total_variability,
    train_joint_factors,
    train_total_variability,
    write_joint_factors,
    write_total_variability,
)


@dataclass(frozen=True)
class RowsFile:
    """A file of statistics, supervectors or vectors, and the list whose rows are to be taken from it.

    Attributes
    ----------
    path : Path
        A StatServer in SIDEKIT's layout; for vectors any file that `evaluation.embeddings.read_embeddings` reads.
    idmap : IdMap
        Rows of (model, segment); the file may hold others too, in any order.
    """

    path: Path
    idmap: IdMap

    def copy_statistics(self, draft: Draft, widths: tuple[int, int] | None = None) -> None:
        """Make an artefact of the rows of the list, in its order; see `spkver.mixture.copy_stat_rows`."""
        copy_stat_rows(self.path, self.idmap.models, self.idmap.segments, draft.destination, widths=widths)

    def copy_vectors(self, draft: Draft) -> None:
        """Make an artefact of the vectors of the list, in its order."""
        known = read_embeddings(self.path)
        vectors = np.asarray(known.vectors[vector_rows(self.path, known, self.idmap)])
        arrays = {"ids": self.idmap.segments, "speakers": self.idmap.models, "vectors": vectors}
        write_arrays(draft.path, arrays, attributes=draft.attributes)


def vector_rows(file: Path, known: Embeddings, idmap: IdMap) -> NDArray[np.int64]:
    """Return the row of each segment of a list among vectors, by its id or by the last part of it, ``m101_02_001``.

    Raises
    ------
    DataError
        With the first segments that have none.
    """
    rows = {name: row for row, name in enumerate(known.ids.tolist())}
    segments = [name if name in rows else name.rpartition("/")[2] for name in idmap.segments.tolist()]
    absent = [name for name, key in zip(idmap.segments.tolist(), segments, strict=True) if key not in rows]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(idmap)} recordings have no vector: {few(absent)}",
            file=file,
            remedy="extract those of all recordings of the lists: spkver embed takes task/data of a recipe's output",
        )
    return np.array([rows[key] for key in segments], np.int64)


def machine_files(given: Path, models: list[str]) -> dict[str, Path]:
    """Return the file of each model's machine in a folder of SIDEKIT's, ``{model}.svm``; one file of ours for all.

    Raises
    ------
    DataError
        With all models that have none.
    """
    if not given.is_dir():
        return {"machines": given}
    files = {model: given / f"{model}.svm" for model in models}
    problems = Problems(given)
    for model, path in files.items():
        if not path.is_file():
            problems.add(f"no machine of model {model!r}", file=path, remedy="copy SIDEKIT's svm folder, or train them")
    problems.raise_if_any()
    return files


def copy_machines(draft: Draft, files: Mapping[str, Path], models: list[str]) -> None:
    """Make an artefact of machines: of SIDEKIT's files, which the restricted reader opens, or of one of ours."""
    if [*files] == ["machines"]:
        there = read_svms(files["machines"])
        rows = {model: row for row, model in enumerate(there.models.tolist())}
        absent = [model for model in models if model not in rows]
        if absent:
            raise DataError(
                f"{len(absent)} models without a machine, {absent[0]!r} first",
                file=files["machines"],
                remedy="train machines for all models of the enrolment list",
            )
        order = np.array([rows[model] for model in models])
        machines = SvmModels(np.array(models, object), np.asarray(there.weights)[order], there.biases[order])
    else:
        pairs = [read_svm(files[model], allow_pickle=True) for model in models]
        widths = {len(weights): model for model, (weights, _) in zip(models, pairs, strict=True)}
        if len(widths) > 1:
            text = f"machines of different dimensions: {', '.join(f'{n} of {model}' for n, model in widths.items())}"
            raise DataError(text, file=files[models[0]].parent, remedy="train all of them on the same supervectors")
        weights, biases = (np.array(column) for column in zip(*pairs, strict=True))
        machines = SvmModels(np.array(models, object), weights, biases)
    write_svms(draft.path, machines, attributes=draft.attributes)


def gmm_scores(
    run: Run,
    system: str,
    ubm: Handle[GaussianMixture],
    models: Handle[Supervectors],
    frames: Handle[Frames],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by log-likelihood ratios (`scores/<system>.h5` and `.txt`)."""

    def compute(draft: Draft) -> Scores:
        given = ubm.value, models.value, frames.value, trials
        return score_gmm_ubm(*given, work=run.work, destination=draft.destination)

    return scores_of(run, system, trials, compute, after=[ubm, models, frames])


def scores_of(
    run: Run, system: str, trials: Trials, compute: Callable[[Draft], Scores], *, after: Sequence[Handle]
) -> Stage[Scores]:
    """Have the scores of a system computed (`scores/<system>.h5` and `.txt`); they come in the order of the trials."""

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


def universal_model(
    run: Run, frames: Handle[Frames], recordings: tuple[str, ...], config: UbmConfig
) -> Stage[TrainedUbm]:
    """Train the universal background model (`gmm/ubm.h5`), or take the one of `ubm.file`."""

    def make(draft: Draft) -> None:
        if config.file is not None:
            trained = read_ubm(config.file)
        else:
            trained = train_ubm(frames.value.stack(recordings), config, work=run.work, destination=draft.destination)
        write_ubm(draft.path, trained, attributes=draft.attributes)

    depends = Depends(inputs=[config, recordings], after=[frames], on_device=True)
    if config.file is not None:
        depends = Depends(sources={"ubm.file": Path(config.file)})
    return run.stage("ubm", "gmm/ubm.h5", make=make, read=read_ubm, depends=depends)


def statistics(
    run: Run,
    name: str,
    ubm: Handle[GaussianMixture],
    frames: Handle[Frames],
    idmap: IdMap,
    *,
    file: Path | None = None,
) -> Stage[Statistics]:
    """Accumulate the statistics of the segments of a list (`data/stat_<name>.h5`), or take them from a StatServer's."""

    def make(draft: Draft) -> None:
        mixture = ubm.value
        if file is not None:
            RowsFile(file, idmap).copy_statistics(draft, (mixture.n_components, mixture.means.size))
            return
        accumulate_statistics(
            mixture, frames.value, idmap.models, idmap.segments, work=run.work, destination=draft.destination
        )

    if file is not None:
        depends = Depends(inputs=idmap, after=[ubm], sources={f"statistics of {name}": file})
    else:
        depends = Depends(inputs=idmap, after=[frames, ubm], on_device=True)
    return run.stage(f"statistics of {name}", f"data/stat_{name}.h5", make=make, read=open_statistics, depends=depends)


def supervectors(
    run: Run,
    name: str,
    ubm: Handle[GaussianMixture],
    accumulated: Handle[Statistics],
    config: MapConfig,
    *,
    multisession: bool = False,
    file: RowsFile | None = None,
) -> Stage[Supervectors]:
    """Adapt supervectors by MAP (`data/sv_<name>.h5`): of each segment, or of all sessions of a model together.

    With a file they are taken from it, and neither the mixture nor the statistics are asked for.
    """

    adapt = adapt_multisession if multisession else adapt_supervectors

    def make(draft: Draft) -> None:
        if file is not None:
            file.copy_statistics(draft)
            return
        adapt(ubm.value, accumulated.value, config, work=run.work, destination=draft.destination)

    depends = Depends(inputs=[config, multisession], after=[accumulated], on_device=True)
    if file is not None:
        depends = Depends(inputs=file.idmap, sources={f"supervectors of {name}": file.path})
    return run.stage(
        f"supervectors of {name}", f"data/sv_{name}.h5", make=make, read=open_supervectors, depends=depends
    )


def nuisance_projection(run: Run, of_list: Handle[Supervectors], config: NapConfig) -> Stage[Projection]:
    """Estimate the directions of nuisance on the supervectors of a list (`data/nap.h5`)."""

    def make(draft: Draft) -> None:
        projection = fit_nap(of_list.value, rank=config.rank, scatter=config.scatter, work=run.work)
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
    machines: Path | None = None,
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
    machines : Path, optional
        Machines that are trained already: a folder of SIDEKIT's, ``{model}.svm``, or a file of ours.

    Returns
    -------
    Stage of Scores
    """
    enroll, back, test = (of_lists[name] for name in ("enroll", "back", "test"))
    after = [] if projection is None else [projection]

    def removed() -> Projection | None:
        return None if projection is None else projection.value

    def make(draft: Draft) -> None:
        train_svms(enroll.value, back.value, config, projection=removed(), work=run.work, destination=draft.destination)

    depends = Depends(inputs=config, after=[enroll, back, *after], libraries=("numpy", "scikit-learn"), on_device=True)
    if machines is not None:
        models = sorted(set(trials.model_ids))
        files = machine_files(machines, models)
        make, depends = partial(copy_machines, files=files, models=models), Depends(inputs=models, sources=files)
    trained: Stage[SvmModels] = run.stage(
        f"models of {system}", f"svm/{system}.h5", make=make, read=open_svms, depends=depends
    )

    def compute(draft: Draft) -> Scores:
        return score_trials(
            trained.value, test.value, trials, projection=removed(), work=run.work, destination=draft.destination
        )

    return scores_of(run, system, trials, compute, after=[trained, test, *after])


_LAPACK = ("numpy", "scipy")


def total_variability(
    run: Run, ubm: Handle[GaussianMixture], accumulated: Handle[Statistics], config: TotalVariabilityConfig
) -> Stage[TotalVariability]:
    """Train the matrix of total variability on the statistics of a list (`data/tv.h5`)."""

    def make(draft: Draft) -> None:
        trained = train_total_variability(
            ubm.value, accumulated.value, config, work=run.work, destination=draft.destination
        )
        write_total_variability(draft.path, trained, attributes=draft.attributes)

    return run.stage(
        "total variability",
        "data/tv.h5",
        make=make,
        read=read_total_variability,
        depends=Depends(inputs=config, after=[ubm, accumulated], libraries=_LAPACK, on_device=True),
    )


def ivectors(
    run: Run,
    name: str,
    matrix: Handle[TotalVariability],
    accumulated: Handle[Statistics],
    *,
    method: IVectorMethod = "exact",
    file: RowsFile | None = None,
) -> Stage[IVectors]:
    """Extract the i-vectors of the segments of a list (`data/iv_<name>.h5`), or take vectors of a file in their place.

    With a file, such as `spkver embed` writes, neither the matrix nor the statistics are asked for.
    """

    def make(draft: Draft) -> None:
        if file is not None:
            file.copy_vectors(draft)
            return
        extract_ivectors(matrix.value, accumulated.value, method=method, work=run.work, destination=draft.destination)

    depends = Depends(inputs=method, after=[matrix, accumulated], libraries=_LAPACK, on_device=True)
    if file is not None:
        depends = Depends(inputs=file.idmap, sources={f"vectors of {name}": file.path})
    return run.stage(f"vectors of {name}", f"data/iv_{name}.h5", make=make, read=open_ivectors, depends=depends)


def backend(run: Run, system: str, training: Handle[IVectors], chain: Chain, *, seed: int) -> Stage[Backend]:
    """Train a chain of steps on the vectors of a list, whose models are the speakers (`backends/<system>.h5`)."""

    def make(draft: Draft) -> None:
        write_backend(draft.path, train_chain(_embeddings(training.value), chain, seed=seed))

    return run.stage(
        f"backend of {system}",
        f"backends/{system}.h5",
        make=make,
        read=read_backend,
        depends=Depends(
            inputs=[plain_chain(chain), seed], after=[training], libraries=("numpy", "scipy", "scikit-learn")
        ),
    )


def vector_scores(
    run: Run,
    system: str,
    trained: Handle[Backend],
    vectors: Mapping[str, Handle[IVectors]],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by a trained chain (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    run : Run
    system : str
    trained : Handle of Backend
    vectors : mapping
        Of the lists enroll and test; a model has all sessions that enrol it.
    trials : Trials
    """
    enroll, test = vectors["enroll"], vectors["test"]

    def compute(draft: Draft) -> Scores:
        return trained.value.score(_embeddings(enroll.value), _embeddings(test.value), trials)

    return scores_of(run, system, trials, compute, after=[trained, enroll, test])


def _embeddings(vectors: IVectors) -> Embeddings:
    """Return vectors with ids that are distinct: a recording may enrol several models."""
    if len(set(vectors.segments.tolist())) == len(vectors):
        return vectors.embeddings()
    ids = np.array([f"{model} {name}" for model, name in zip(vectors.models, vectors.segments, strict=True)], object)
    return Embeddings(ids, vectors.models, np.asarray(vectors.vectors))


def joint_factors(
    run: Run, ubm: Handle[GaussianMixture], accumulated: Handle[Statistics], config: JointFactorConfig
) -> Stage[JointFactors]:
    """Train joint factors on the statistics of a list, whose models are the speakers (`data/jfa.h5`)."""

    def make(draft: Draft) -> None:
        trained = train_joint_factors(
            ubm.value, accumulated.value, config, work=run.work, destination=draft.destination
        )
        write_joint_factors(draft.path, trained, attributes=draft.attributes)

    return run.stage(
        "joint factors",
        "data/jfa.h5",
        make=make,
        read=read_joint_factors,
        depends=Depends(inputs=config, after=[ubm, accumulated], libraries=_LAPACK, on_device=True),
    )


def joint_factor_scores(
    run: Run,
    system: str,
    factors: Handle[JointFactors],
    statistics: Mapping[str, Handle[Statistics]],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by joint factors, all sessions of a model together (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    run : Run
    system : str
    factors : Handle of JointFactors
    statistics : mapping
        Of the lists enroll and test.
    trials : Trials
    """
    enroll, test = statistics["enroll"], statistics["test"]

    def compute(draft: Draft) -> Scores:
        return score_joint_factors(
            factors.value, enroll.value, test.value, trials, work=run.work, destination=draft.destination
        )

    return scores_of(run, system, trials, compute, after=[factors, enroll, test])
