"""From statistics to supervectors, and from supervectors to machines and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from evaluation.trials import Scores, Trials
from spkbase.files import read_arrays, write_arrays
from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkver.backend import (
    NapConfig,
    Projection,
    SvmConfig,
    SvmModels,
    fit_nap,
    open_svms,
    score_trials,
    train_svms,
)
from spkver.mixture import GaussianMixture, Statistics
from spkver.pipeline.files import RowsFile, copy_machines, machine_files
from spkver.pipeline.trials import scores_of
from spkver.vectors import MapConfig, Supervectors, adapt_multisession, adapt_supervectors, open_supervectors


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
