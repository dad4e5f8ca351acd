"""From statistics to i-vectors, and from one vector a segment to the scores of a chain of steps; joint factors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials
from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkver.backend import (
    Backend,
    Chain,
    plain_chain,
    read_backend,
    score_joint_factors,
    train_chain,
    write_backend,
)
from spkver.mixture import GaussianMixture, Statistics
from spkver.pipeline.files import RowsFile
from spkver.pipeline.trials import scores_of
from spkver.vectors import (
    IVectorMethod,
    IVectors,
    JointFactorConfig,
    JointFactors,
    TotalVariability,
    TotalVariabilityConfig,
    extract_ivectors,
    open_ivectors,
    read_joint_factors,
    read_total_variability,
    train_joint_factors,
    train_total_variability,
    write_joint_factors,
    write_total_variability,
)

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
