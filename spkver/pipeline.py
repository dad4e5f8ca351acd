"""The steps of a system as stages of a run: each arrow is one function and one file.

    audio -> features.h5 -> gmm/ubm.h5 -> data/stat_*.h5 -> data/sv_*.h5 -> data/nap.h5 -> svm/*.h5 -> scores/*.h5, .txt
                                                         -> data/tv.h5 -> data/iv_*.h5 -> backends/*.h5 -> scores/...

Each function makes its file, or reuses the one that is up to date, and returns the stage, whose `value` is read from
the file on demand. Results of other tools, such as SIDEKIT's statistics, are read from their files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align, factorise
from spkbase.errors import DataError, Problems, counted, few
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Origin, Run, Stage, Stamp
from spkbase.work import chunk_bounds
from spkver import backend as backends
from spkver import features as frontend
from spkver import mixture
from spkver import vectors as vector
from spkver.idmap import IdMap
from spkver.sidekit import read_svm, write_svm

_LAPACK = ("numpy", "scipy")
_ROWS = 256  # number of rows of statistics by state and component in memory


def vector_rows(file: Path, known: Embeddings, idmap: IdMap) -> NDArray[np.int64]:
    """Return the row of each segment of a list among vectors, by its id or the last part of the id, ``m101_02_001``.

    Raises
    ------
    DataError
        With the first segments that have no vector.
    """
    row_of = {name: row for row, name in enumerate(known.ids.tolist())}
    rows = []
    absent = []
    for name in idmap.segments.tolist():
        row = row_of.get(name, row_of.get(name.rpartition("/")[2]))
        if row is None:
            absent.append(name)
        else:
            rows.append(row)
    if absent:
        text = f"{len(absent)} of {len(idmap)} recordings have no vector: {few(absent)}"
        remedy = "extract those of all recordings of the lists: spkver embed takes task/data of a recipe's output"
        raise DataError(text, file=file, remedy=remedy)
    return np.array(rows, np.int64)


def machine_files(given: Path, models: Sequence[str]) -> dict[str, Path]:
    """Return the file of each model's machine: ``{model}.svm`` in a folder of SIDEKIT's, or the same file of this
    package.

    Raises
    ------
    DataError
        With all models that have no file.
    """
    if not given.is_dir():
        return {"machines": given}
    files = {model: given / f"{model}.svm" for model in models}
    problems = Problems(given)
    for model, path in files.items():
        if not path.is_file():
            remedy = "copy SIDEKIT's svm folder, or train them"
            problems.add(f"no machine of model {model!r}", file=path, remedy=remedy)
    problems.raise_if_any()
    return files


def copy_machines(path: Path, files: Mapping[str, Path], models: Sequence[str]) -> None:
    """Make an artefact of machines, from SIDEKIT's files, with the restricted reader, or from one of this package."""
    if [*files] == ["machines"]:
        trained = backends.open_svms(files["machines"])
        rows = {model: row for row, model in enumerate(trained.models.tolist())}
        absent = [model for model in models if model not in rows]
        if absent:
            text = f"{counted(len(absent), 'model')} without a machine, {absent[0]!r} first"
            remedy = "train machines for all models of the enrolment list"
            raise DataError(text, file=files["machines"], remedy=remedy)
        order = np.array([rows[model] for model in models])
        weights = np.asarray(trained.weights)[order]
        biases = trained.biases[order]
    else:
        pairs = [read_svm(files[model], allow_pickle=True) for model in models]
        widths = {len(weights): model for model, (weights, _) in zip(models, pairs, strict=True)}
        if len(widths) > 1:
            differing = ", ".join(f"{width} of {model}" for width, model in widths.items())
            remedy = "train all of them on the same supervectors"
            text = f"machines of different dimensions: {differing}"
            raise DataError(text, file=files[models[0]].parent, remedy=remedy)
        weights, biases = map(np.array, zip(*pairs, strict=True))
    backends.write_svms(path, backends.SvmModels(np.array(models, object), weights, biases))


def score_without_prompts(trials: Trials, score: Callable[[Trials], Scores]) -> Scores:
    """Score trials by a system that does not know which text should be spoken.

    Parameters
    ----------
    trials : Trials
        Models may be followed by a prompt, ``m101_01:4-8-0-7-3``.
    score : callable
        Given each pair of a model and a segment once, without prompts, it returns scores in their order.

    Returns
    -------
    Scores
        Scores in the order of the trials; trials that differ only by the prompt have equal scores.
    """
    names = [name.partition(":")[0] for name in trials.model_ids.tolist()]
    if names == trials.model_ids.tolist():
        return score(trials)
    table, codes = factorise(names)
    models = codes[trials.models]
    pairs = models.astype(np.int64) * len(trials.segment_ids) + trials.segments
    _, first, rows = np.unique(pairs, return_index=True, return_inverse=True)
    values = score(Trials(table, trials.segment_ids, models[first], trials.segments[first])).values[
        rows
    ]
    return trials.scored(values)


def gmm_scores(
    run: Run,
    system: str,
    ubm: Stage[mixture.TrainedUbm],
    models: Stage[vector.Supervectors],
    frames: FramesStage,
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by log-likelihood ratios (`scores/<system>.h5` and `.txt`)."""

    def compute() -> Scores:
        score = partial(
            backends.score_gmm_ubm, ubm.value, models.value, frames.value, work=run.work
        )
        return score_without_prompts(trials, score)

    return scores_of(run, system, trials, compute, after=[ubm, models, *frames.origins])


def scores_of(
    run: Run, system: str, trials: Trials, compute: Callable[[], Scores], *, after: Sequence[Origin]
) -> Stage[Scores]:
    """Compute the scores of a system (`scores/<system>.h5` and `.txt`), in the order of the trials."""

    def make(path: Path) -> None:
        scores = compute()
        write_scores(path.with_suffix(".txt"), scores)
        write_scores(path, scores)

    def read(path: Path) -> Scores:
        scores = read_scores(path)
        return trials.scored(align(scores, trials))

    return run.stage(
        f"scores of {system}",
        f"scores/{system}.h5",
        step="scores",
        also=(f"scores/{system}.txt",),
        make=make,
        read=read,
        inputs=trials,
        after=after,
    )


class FramesStage:
    """Post-processed frames of all recordings: computed from `features.h5` on demand, without a file.

    Parameters
    ----------
    run : Run
    table : Stage of FeatureTable
    config : FeatureConfig

    Attributes
    ----------
    origins : list
        Origins of the frames, for stages that read them.
    """

    def __init__(
        self, run: Run, table: Stage[frontend.FeatureTable], config: frontend.FeatureConfig
    ) -> None:
        self.run = run
        self.table = table
        self.config = config
        stamp = run.stamp("frames", inputs=[config.post_processing(), table.fingerprint])
        self.fingerprint = stamp.fingerprint
        self.origins: list[Origin] = [table, stamp]

    @cached_property
    def value(self) -> frontend.Frames:
        """The frames."""
        with self.run.timed("post-processing"):
            return frontend.load_frames(
                self.table.value, self.config, folder=self.run.output, work=self.run.work
            )

    def release(self) -> None:
        """Release the frames; they are computed again on demand."""
        self.__dict__.pop("value", None)


def features(
    run: Run, recordings: Mapping[str, Path], config: frontend.FeatureConfig, *, seed: int
) -> FramesStage:
    """Extract features of all recordings, or import SIDEKIT's (`features.h5`); return their post-processed frames."""
    table = run.stage(
        "features",
        "features.h5",
        make=partial(frontend.extract_features, recordings, config, seed=seed, work=run.work),
        read=frontend.read_feature_table,
        inputs=[config.extraction(), seed],
        sources=feature_sources(recordings, config),
        libraries=feature_libraries(recordings, config),
    )
    return FramesStage(run, table, config)


def feature_sources(
    recordings: Mapping[str, Path], config: frontend.FeatureConfig
) -> dict[str, Path]:
    """Return the files that features are made from: recordings or SIDEKIT's features, and labels of speech."""
    sources = dict(recordings)
    if config.files is not None:
        sources = dict(frontend.sidekit_files(config.files, recordings))
    if config.vad == "labels":
        sources |= {f"labels of {name}": frontend.label_file(config, name) for name in recordings}
    return sources


def feature_libraries(recordings: Mapping[str, Path], config: frontend.FeatureConfig) -> list[str]:
    """Return the libraries that features depend on."""
    if config.files is not None:
        return ["numpy"]
    used = ["numpy", "scipy", "soundfile"]
    used += ["soxr"] * config.resample + ["librosa"] * (config.engine == "librosa")
    return used + ["av"] * any(path.suffix.lower() == ".sph" for path in recordings.values())


def universal_model(
    run: Run, frames: FramesStage | None, recordings: tuple[str, ...], config: mixture.UbmConfig
) -> Stage[mixture.TrainedUbm]:
    """Train the universal background model (`gmm/ubm.h5`), or use that of `ubm.file`, which needs no frames."""
    origin: dict[str, Any] = {}

    def make(path: Path) -> None:
        if config.file is not None:
            return mixture.write_ubm(path, mixture.read_ubm(config.file))
        assert frames is not None
        return mixture.write_ubm(
            path, mixture.train_ubm(frames.value.stack(recordings), config, work=run.work)
        )

    if config.file is not None:
        origin = {"sources": {"ubm.file": Path(config.file)}}
    elif frames is not None:
        origin = {"inputs": [config, recordings], "after": frames.origins}
    return run.stage("ubm", "gmm/ubm.h5", make=make, read=mixture.read_ubm, **origin)


def statistics(
    run: Run,
    name: str,
    ubm: Stage[mixture.TrainedUbm] | Stamp,
    frames: FramesStage | Stamp | None,
    idmap: IdMap,
    *,
    file: Path | None = None,
) -> Stage[mixture.Statistics]:
    """Accumulate the statistics of the segments of a list (`data/stat_<name>.h5`), or read them from a StatServer.

    Frames that were cut into other segments are given as a stamp. A StatServer needs no frames.
    """

    def make(path: Path) -> None:
        if file is None:
            assert frames is not None
            mixture.accumulate_statistics(
                ubm.value,
                frames.value,
                idmap.models,
                idmap.segments,
                work=run.work,
                destination=path,
            )
        else:
            widths = ubm.value.n_components, ubm.value.means.size
            mixture.copy_stat_rows(file, idmap.models, idmap.segments, path, widths=widths)

    if file is None:
        assert frames is not None
        before = [frames] if isinstance(frames, Stamp) else frames.origins
        origin: dict[str, Any] = {"after": [*before, ubm]}
    else:
        origin = {"after": [ubm], "sources": {f"statistics of {name}": file}}
    artefact = f"data/stat_{name}.h5"
    return run.stage(
        f"statistics of {name}",
        artefact,
        step="statistics",
        make=make,
        read=mixture.open_statistics,
        inputs=idmap,
        **origin,
    )


def supervectors(
    run: Run,
    name: str,
    ubm: Stage[mixture.TrainedUbm] | Stamp,
    accumulated: Stage[mixture.Statistics] | Stamp,
    config: vector.MapConfig,
    *,
    multisession: bool = False,
) -> Stage[vector.Supervectors]:
    """Adapt supervectors by MAP (`data/sv_<name>.h5`): for each segment, or for all sessions of a model together."""
    adapt = vector.adapt_multisession if multisession else vector.adapt_supervectors
    return run.stage(
        f"supervectors of {name}",
        f"data/sv_{name}.h5",
        step="supervectors",
        make=lambda path: adapt(
            ubm.value, accumulated.value, config, work=run.work, destination=path
        ),
        read=vector.open_supervectors,
        inputs=[config, multisession],
        after=[accumulated],
    )


def given_supervectors(run: Run, name: str, file: Path, idmap: IdMap) -> Stage[vector.Supervectors]:
    """Read the supervectors of a list from a StatServer, which may hold others too (`data/sv_<name>.h5`)."""
    return run.stage(
        f"supervectors of {name}",
        f"data/sv_{name}.h5",
        step="supervectors",
        make=lambda path: mixture.copy_stat_rows(file, idmap.models, idmap.segments, path),
        read=vector.open_supervectors,
        inputs=idmap,
        sources={f"supervectors of {name}": file},
    )


def nuisance_projection(
    run: Run, of_list: Stage[vector.Supervectors], config: backends.NapConfig
) -> Stage[backends.Projection]:
    """Estimate the directions of nuisance on the supervectors of a list (`data/nap.h5`)."""

    def make(path: Path) -> None:
        projection = backends.fit_nap(
            of_list.value, rank=config.rank, scatter=config.scatter, work=run.work
        )
        write_arrays(path, {"directions": projection.directions})

    def read(path: Path) -> backends.Projection:
        return backends.Projection(read_arrays(path, "directions")["directions"])

    inputs = [config.rank, config.scatter]
    return run.stage("nap", "data/nap.h5", make=make, read=read, inputs=inputs, after=[of_list])


def svm_system(
    run: Run,
    system: str,
    of_lists: Mapping[str, Stage[vector.Supervectors]],
    trials: Trials,
    config: backends.SvmConfig,
    *,
    projection: Stage[backends.Projection] | None = None,
    machines: Path | None = None,
    as_files: bool = False,
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
    projection : Stage of Projection, optional
        Projection that is applied to all supervectors first.
    machines : Path, optional
        Trained machines: a folder of SIDEKIT's, ``{model}.svm``, or a file of this package.
    as_files : bool
        Also write ``svm/<system>/{model}.svm``, see `write_machine_files`.

    Returns
    -------
    Stage of Scores
    """
    enroll = of_lists["enroll"]
    back = of_lists["back"]
    test = of_lists["test"]
    after = [] if projection is None else [projection]
    models = sorted({name.partition(":")[0] for name in trials.model_ids})
    files = {} if machines is None else machine_files(machines, models)

    def removed() -> backends.Projection | None:
        return None if projection is None else projection.value

    def make(path: Path) -> None:
        if files:
            copy_machines(path, files, models)
        else:
            backends.train_svms(
                enroll.value,
                back.value,
                config,
                projection=removed(),
                work=run.work,
                destination=path,
            )

    def compute() -> Scores:
        score = partial(
            backends.score_trials, trained.value, test.value, projection=removed(), work=run.work
        )
        return score_without_prompts(trials, score)

    if files:
        origin: dict[str, Any] = {"inputs": models, "sources": files}
    else:
        libraries = ("numpy", "scikit-learn")
        origin = {"inputs": config, "after": [enroll, back, *after], "libraries": libraries}
    trained = run.stage(
        f"models of {system}",
        f"svm/{system}.h5",
        step="models",
        make=make,
        read=backends.open_svms,
        **origin,
    )
    if as_files:
        write_machine_files(run.path(f"svm/{system}"), trained.value)
    return scores_of(run, system, trials, compute, after=[trained, test, *after])


def write_machine_files(folder: Path, machines: backends.SvmModels) -> None:
    """Write a file ``{model}.svm`` for each machine, as SIDEKIT does.

    Parameters
    ----------
    folder : Path
    machines : SvmModels
    """
    folder.mkdir(parents=True, exist_ok=True)
    for row, model in enumerate(machines.models):
        weights = np.asarray(machines.weights[row])
        write_svm(folder / f"{model}.svm", weights, float(machines.biases[row]))


@dataclass(frozen=True)
class IVectorTraining:
    """Settings for training an extractor of i-vectors; `seed` is that of the dither."""

    seed: int = 0
    features: frontend.FeatureConfig = field(default_factory=frontend.FeatureConfig)
    ubm: mixture.UbmConfig = field(default_factory=mixture.UbmConfig)
    total_variability: vector.TotalVariabilityConfig = field(
        default_factory=vector.TotalVariabilityConfig
    )


def ivector_extractor(
    run: Run, recordings: Mapping[str, Path], config: IVectorTraining, *, work: Run
) -> None:
    """Train a mixture and a matrix of total variability on recordings (`gmm/ubm.h5`, `data/tv.h5`).

    Together with the `config.yaml` of the run, they are the files of the extractor ``ivector:FOLDER``. No speakers are
    needed.

    Parameters
    ----------
    run : Run
    recordings : mapping of str to Path
    config : IVectorTraining
    work : Run
        Run in whose folder features and statistics are kept.

    Raises
    ------
    DataError
        With all problems of the recordings and the configuration, before any long step.
    """
    names: Any = tuple(sorted(recordings))
    problems = Problems()
    seconds = frontend.check_recordings(
        recordings, config.features, work=run.work, problems=problems
    )
    if not problems.errors:  # the duration is that of all recordings
        with problems.noted():
            most_frames = seconds / config.features.shift
            mixture.check_ubm(
                config.ubm, dimension=config.features.dimension, most_frames=most_frames
            )
    with problems.noted():
        width = config.ubm.components * config.features.dimension
        vector.check_rank(config.total_variability.rank, n_segments=len(names), width=width)
    problems.raise_if_any()
    frames = features(work, recordings, config.features, seed=config.seed)
    ubm = universal_model(run, frames, names, config.ubm)
    accumulated = statistics(work, "training", ubm, frames, IdMap(names, names))
    frames.release()
    total_variability(run, ubm, accumulated, config.total_variability)


def total_variability(
    run: Run,
    ubm: Stage[mixture.TrainedUbm] | Stamp,
    accumulated: Stage[mixture.Statistics] | Stamp,
    config: vector.TotalVariabilityConfig,
) -> Stage[vector.TotalVariability]:
    """Train the matrix of total variability on the statistics of a list (`data/tv.h5`)."""

    def make(path: Path) -> None:
        vector.write_total_variability(
            path,
            vector.train_total_variability(ubm.value, accumulated.value, config, work=run.work),
        )

    after = [ubm, accumulated]
    read = vector.read_total_variability
    return run.stage(
        "total variability",
        "data/tv.h5",
        make=make,
        read=read,
        inputs=config,
        after=after,
        libraries=_LAPACK,
    )


def ivectors(
    run: Run,
    name: str,
    matrix: Stage[vector.TotalVariability],
    accumulated: Stage[mixture.Statistics] | Stamp,
    *,
    method: vector.IVectorMethod = "exact",
) -> Stage[vector.IVectors]:
    """Extract the i-vectors of the segments of a list (`data/iv_<name>.h5`)."""

    def make(path: Path) -> None:
        vector.extract_ivectors(
            matrix.value, accumulated.value, method=method, work=run.work, destination=path
        )

    after = [matrix, accumulated]
    stage = (f"vectors of {name}", f"data/iv_{name}.h5")
    return run.stage(
        *stage,
        step="vectors",
        make=make,
        read=vector.open_ivectors,
        inputs=method,
        after=after,
        libraries=_LAPACK,
    )


def given_vectors(run: Run, name: str, file: Path, idmap: IdMap) -> Stage[vector.IVectors]:
    """Use the vectors of a file, such as `spkver embed` writes, in place of i-vectors.

    The file may have any form that `evaluation.embeddings.read_embeddings` reads, and may hold other vectors too.
    """

    def make(path: Path) -> None:
        known = read_embeddings(file)
        vectors = np.asarray(known.vectors[vector_rows(file, known, idmap)])
        write_arrays(path, {"ids": idmap.segments, "speakers": idmap.models, "vectors": vectors})

    sources = {f"vectors of {name}": file}
    stage = (f"vectors of {name}", f"data/iv_{name}.h5")
    return run.stage(
        *stage, step="vectors", make=make, read=vector.open_ivectors, inputs=idmap, sources=sources
    )


def backend(
    run: Run, system: str, training: Stage[vector.IVectors], chain: backends.Chain, *, seed: int
) -> Stage[backends.Backend]:
    """Train a chain of steps on the vectors of a list, whose models are the speakers (`backends/<system>.h5`)."""
    return run.stage(
        f"backend of {system}",
        f"backends/{system}.h5",
        step="backend",
        make=lambda path: backends.write_backend(
            path, backends.train_chain(training.value.embeddings(), chain, seed=seed, warn=False)
        ),
        read=backends.read_backend,
        inputs=[backends.plain_chain(chain), seed],
        after=[training],
        libraries=("numpy", "scipy", "scikit-learn"),
    )


def vector_scores(
    run: Run,
    system: str,
    trained: Stage[backends.Backend],
    vectors: Mapping[str, Stage[vector.IVectors]],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by a trained chain (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    run : Run
    system : str
    trained : Stage of Backend
    vectors : mapping
        Vectors of the lists enroll and test; a model has all of its enrolment sessions.
    trials : Trials
    """
    enroll = vectors["enroll"]
    test = vectors["test"]

    def compute() -> Scores:
        score = partial(trained.value.score, enroll.value.embeddings(), test.value.embeddings())
        return score_without_prompts(trials, score)

    return scores_of(run, system, trials, compute, after=[trained, enroll, test])


def joint_factors(
    run: Run,
    ubm: Stage[mixture.TrainedUbm],
    accumulated: Stage[mixture.Statistics],
    config: vector.JointFactorConfig,
) -> Stage[vector.JointFactors]:
    """Train joint factors on the statistics of a list, whose models are the speakers (`data/jfa.h5`)."""

    def make(path: Path) -> None:
        vector.write_joint_factors(
            path, vector.train_joint_factors(ubm.value, accumulated.value, config, work=run.work)
        )

    after = [ubm, accumulated]
    read = vector.read_joint_factors
    return run.stage(
        "joint factors",
        "data/jfa.h5",
        make=make,
        read=read,
        inputs=config,
        after=after,
        libraries=_LAPACK,
    )


def joint_factor_scores(
    run: Run,
    system: str,
    factors: Stage[vector.JointFactors],
    statistics: Mapping[str, Stage[mixture.Statistics]],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by joint factors, all sessions of a model together (`scores/<system>.h5` and `.txt`).

    Parameters
    ----------
    run : Run
    system : str
    factors : Stage of JointFactors
    statistics : mapping
        Statistics of the lists enroll and test.
    trials : Trials
    """
    enroll = statistics["enroll"]
    test = statistics["test"]

    def compute() -> Scores:
        score = partial(
            backends.score_joint_factors, factors.value, enroll.value, test.value, work=run.work
        )
        return score_without_prompts(trials, score)

    return scores_of(run, system, trials, compute, after=[factors, enroll, test])


def word_models(
    run: Run,
    frames: FramesStage,
    texts: Mapping[str, mixture.Text],
    config: mixture.HiddenMarkovConfig,
) -> Stage[mixture.WordModels]:
    """Train a hidden Markov model of each word on recordings whose texts are known (`gmm/words.h5`)."""

    def make(path: Path) -> None:
        mixture.write_word_models(
            path, mixture.train_word_models(frames.value, texts, config, work=run.work)
        )

    stage = ("models of words", "gmm/words.h5")
    read = mixture.read_word_models
    return run.stage(
        *stage, step="models", make=make, read=read, inputs=[config, texts], after=frames.origins
    )


def aligned_words(
    run: Run,
    name: str,
    words: Stage[mixture.WordModels],
    frames: FramesStage,
    idmap: IdMap,
    texts: Sequence[mixture.Text],
) -> Stage[mixture.AlignedWords]:
    """Find the frames of each word in the recordings of a list, whose texts are given (`data/words_<name>.h5`)."""

    def make(path: Path) -> None:
        aligned = mixture.align_texts(words.value, frames.value, idmap, texts, work=run.work)
        write_arrays(path, {**vars(aligned.rows), "words": aligned.words, "owners": aligned.owners})

    def read(path: Path) -> mixture.AlignedWords:
        arrays = read_arrays(path)
        rows = IdMap(*(arrays[key] for key in ("models", "segments", "start", "stop")))
        return mixture.AlignedWords(rows, arrays["words"], arrays["owners"])

    stage = (f"words of {name}", f"data/words_{name}.h5")
    after = [words, *frames.origins]
    return run.stage(*stage, step="words", make=make, read=read, inputs=[idmap, texts], after=after)


def word_states(
    run: Run,
    name: str,
    ubm: Stage[mixture.TrainedUbm],
    words: Stage[mixture.WordModels],
    frames: FramesStage,
    aligned: Stage[mixture.AlignedWords],
    relevance: float,
    speakers: Stage[vector.Supervectors] | None = None,
    speaker_of: Mapping[str, str] | None = None,
) -> Stage[vector.Supervectors]:
    """Adapt means to the states of each word that a model has spoken (`data/sv_<name>.h5`).

    Adaptation starts from the means of each model's speaker. Without speakers, all models are joined into one, the
    background, and it starts from those of the mixture.
    """

    def make(path: Path) -> None:
        of_list = aligned.value
        means = ubm.value.means
        priors = {"background": means}
        if speakers is None:
            rows = of_list.rows
            rows = IdMap(
                np.full(len(rows), "background", object), rows.segments, rows.start, rows.stop
            )
            of_list = mixture.AlignedWords(rows, of_list.words, of_list.owners)
        else:
            priors = _speaker_means(speakers.value, speaker_of or {}, means.shape)
        inputs = ubm.value, words.value, frames.value, of_list, priors
        vector.write_supervectors(
            path, backends.adapt_words(*inputs, relevance=relevance, work=run.work)
        )

    after: list[Origin] = [ubm, words, aligned]
    if speakers is not None:
        after.append(speakers)
    after += frames.origins
    stage = (f"states of {name}", f"data/sv_{name}.h5")
    inputs = [relevance, speaker_of]
    return run.stage(
        *stage, step="states", make=make, read=vector.open_supervectors, inputs=inputs, after=after
    )


def statistics_without_text(
    run: Run,
    name: str,
    ubm: Stage[mixture.TrainedUbm],
    words: Stage[mixture.WordModels],
    states: Stage[vector.Supervectors],
    frames: FramesStage,
    aligned: Stage[mixture.AlignedWords],
) -> Stage[mixture.Statistics]:
    """Accumulate the statistics of each word of a list, with the effect of the text removed (`data/stat_<name>.h5`)."""

    def make(path: Path) -> None:
        rows = aligned.value.rows
        n_components, dimension = ubm.value.means.shape
        zeroth = np.zeros((len(rows), n_components), np.float32)
        first = np.zeros((len(rows), n_components * dimension), np.float32)
        vectors = np.asarray(states.value.vectors, np.float64)
        for word, means in zip(states.value.segments, vectors, strict=True):
            rows_of_word = np.flatnonzero(aligned.value.words == word)
            for start, stop in chunk_bounds(len(rows_of_word), _ROWS):
                numbers = rows_of_word[start:stop]
                inputs = (
                    words.value.of((word,)),
                    frames.value,
                    rows[numbers],
                    [(word,)] * len(numbers),
                    ubm.value,
                )
                aligned_sums = mixture.aligned_statistics(*inputs, work=run.work)
                word_means = means.reshape(-1, n_components, dimension)
                statistics = mixture.without_text(aligned_sums, word_means, ubm.value)
                zeroth[numbers] = statistics.zeroth
                first[numbers] = statistics.first
        names = np.array([f"{segment} {row}" for row, segment in enumerate(rows.segments)], object)
        mixture.write_statistics(path, mixture.Statistics(rows.models, names, zeroth, first))

    stage = (f"statistics of {name}", f"data/stat_{name}.h5")
    after = [ubm, words, states, aligned, *frames.origins]
    return run.stage(
        *stage, step="statistics", make=make, read=mixture.open_statistics, after=after
    )


def word_scores(
    run: Run,
    system: str,
    trained: Stage[backends.Backend],
    vectors: Mapping[str, Stage[vector.IVectors]],
    aligned: Mapping[str, Stage[mixture.AlignedWords]],
    prompted: backends.PromptedTrials,
) -> Stage[Scores]:
    """Score the trials by the vectors of their words (`scores/<system>.h5` and `.txt`)."""

    def compute() -> Scores:
        enroll, test = (
            (aligned[name].value, np.asarray(vectors[name].value.vectors))
            for name in ("enroll", "test")
        )
        return backends.score_words(trained.value, enroll, test, prompted)

    after: list[Origin] = [
        trained,
        aligned["enroll"],
        vectors["enroll"],
        aligned["test"],
        vectors["test"],
    ]
    return scores_of(run, system, prompted.trials, compute, after=after)


def sentence_scores(
    run: Run,
    system: str,
    ubm: Stage[mixture.TrainedUbm],
    sentences: Stage[vector.Supervectors],
    frames: FramesStage,
    tested: Stage[mixture.AlignedWords],
    prompted: backends.PromptedTrials,
) -> Stage[Scores]:
    """Score the trials by the best path through the states of the model's words (`scores/<system>.h5` and `.txt`)."""

    def compute() -> Scores:
        inputs = ubm.value, sentences.value, frames.value, tested.value, prompted
        return backends.score_sentences(*inputs, work=run.work)

    return scores_of(
        run, system, prompted.trials, compute, after=[ubm, sentences, tested, *frames.origins]
    )


def own_text_scores(
    run: Run,
    system: str,
    scores: Stage[Scores],
    ubm: Stage[mixture.TrainedUbm],
    sentences: Stage[vector.Supervectors],
    frames: FramesStage,
    tested: Stage[mixture.AlignedWords],
    prompted: backends.PromptedTrials,
    speakers: Stage[vector.Supervectors],
    speaker_of: Mapping[str, str],
) -> Stage[Scores]:
    """Score the text by the states of the model's words minus its speaker's mixture (`scores/<system>.h5`, `.txt`)."""

    def compute() -> Scores:
        priors = _speaker_means(speakers.value, speaker_of, ubm.value.means.shape)
        inputs = ubm.value, sentences.value, priors, frames.value, tested.value, prompted
        return backends.minus_own_mixture(scores.value, *inputs, work=run.work)

    return scores_of(run, system, prompted.trials, compute, after=[scores, speakers])


def _speaker_means(
    speakers: vector.Supervectors, speaker_of: Mapping[str, str], shape: tuple[int, ...]
) -> dict[str, NDArray[np.float64]]:
    """Return the means of the speaker of each model."""
    adapted = dict(zip(speakers.models, np.asarray(speakers.vectors, np.float64), strict=True))
    return {model: adapted[speaker].reshape(shape) for model, speaker in speaker_of.items()}


def text_scores(
    run: Run,
    words: Stage[mixture.WordModels],
    frames: FramesStage,
    prompted: backends.PromptedTrials,
) -> Stage[Scores]:
    """Score the trials by the posterior of their prompts among all sequences of words (`scores/text.h5` and `.txt`)."""

    def compute() -> Scores:
        posteriors = mixture.text_posteriors(
            words.value, frames.value, prompted.rows, prompted.texts, work=run.work
        )
        posterior_of_trial = posteriors[prompted.tested]
        return prompted.scores(posterior_of_trial)

    prompts_stamp = run.stamp("prompts", inputs=[prompted.rows, prompted.tested])
    return scores_of(
        run, "text", prompted.trials, compute, after=[words, prompts_stamp, *frames.origins]
    )
