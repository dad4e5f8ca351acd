"""Score trials with attackers: enrolment and test are data directories."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from evaluation.trials import Scores, Trials
from spkbase.errors import DataError, Problems
from spkbase.files import fingerprint
from spkbase.work import Device, Work
from spkver.attackers.attacker import TrainedAttacker
from spkver.attackers.backend import Segments
from spkver.attackers.kept import Kept
from spkver.attackers.matching import normalised_scores
from spkver.attackers.workplace import Prepared, Workplace
from spkver.datadir import DataDir, enrolment
from spkver.features import check_recordings
from spkver.idmap import IdMap
from spkver.mixture import Statistics

logger = logging.getLogger(__name__)

_NAMED = 5


def score(
    attackers: Mapping[str, TrainedAttacker],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    *,
    work: str | Path,
    jobs: int | None = None,
    device: Device | None = None,
) -> dict[str, Scores]:
    """Score a list of trials with each attacker.

    Parameters
    ----------
    attackers : mapping of str to TrainedAttacker
    enrol_dir : DataDir
        A model of the trials is a speaker, enrolled by those of its utterances that `enrolls` lists, or by all without
        that list; or it is one utterance.
    trial_dir : DataDir
        A segment of the trials is an utterance.
    trial_list : evaluation.trials.Trials
    work : path
        Folder for features and statistics, which are taken up where they are there.
    jobs : int, optional
        Work; the scores do not depend on it.
    device : Device, optional
        Where statistics and scores are computed; NumPy by default.

    Returns
    -------
    dict of str to evaluation.trials.Scores
        For each attacker the scores in the order of the trials.

    Raises
    ------
    DataError
        With all problems of the trials and the recordings, before anything long starts.
    """
    models, tested = check_trials(attackers, enrol_dir, trial_dir, trial_list, jobs=jobs)
    workplace = Workplace(Path(work), jobs, device)
    return {
        name: score_checked(attacker, workplace, (enrol_dir, models), (trial_dir, tested), trial_list)
        for name, attacker in attackers.items()
    }


def check_trials(
    attackers: Mapping[str, TrainedAttacker],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    *,
    jobs: int | None = None,
) -> tuple[IdMap, dict[str, Path]]:
    """Check a list of trials and the headers of all recordings that it needs.

    Returns
    -------
    models : IdMap
        Enrolment utterances of each model that has a trial.
    tested : dict of str to path
        The recordings that have a trial.

    Raises
    ------
    DataError
        With all problems at once.
    """
    models, tested = match_trials(enrol_dir, trial_dir, trial_list)
    problems = Problems()
    enrolled = _enrolled(enrol_dir, models)
    _warn_of_enrolled(models, enrol_dir, trial_dir, trial_list)
    files = set(enrolled.values())
    others = {name: path for name, path in tested.items() if path not in files}
    kinds = {fingerprint(attacker.config.features): attacker.config.features for attacker in attackers.values()}
    for config in kinds.values():
        of_features = Problems()
        for recordings in (enrolled, others):
            check_recordings(recordings, config, work=Work(jobs), problems=of_features)
        for error in of_features.errors:
            problems.note(_for_trained(error))
    problems.raise_if_any()
    return models, tested


def match_trials(enrol_dir: DataDir, trial_dir: DataDir, trial_list: Trials) -> tuple[IdMap, dict[str, Path]]:
    """Find what models of trials are enrolled with, and the recordings of their segments; as `check_trials`, by id."""
    problems = Problems()
    if not len(trial_list):
        problems.add("the list holds no trials", file=trial_dir.path, remedy="name one with --trial-list")
    models = _models(enrol_dir, trial_list, problems)
    tested = _tested(trial_dir, trial_list, problems)
    problems.raise_if_any()
    return models, tested


def _for_trained(error: DataError) -> DataError:
    """What is wrong with a recording, where the features can no longer be changed."""
    if not (error.remedy or "").startswith("set features."):
        return error
    return DataError(error.text, file=error.file, remedy=f"the attacker was trained so; train another: {error.remedy}")


def _warn_of_enrolled(models: IdMap, enrol_dir: DataDir, trial_dir: DataDir, trial_list: Trials) -> None:
    """Trials of a recording against the model that was made from it look like a perfect attacker."""
    owners: dict[Path, set[str]] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        owners.setdefault(enrol_dir.recordings[utterance].resolve(), set()).add(model)
    doubtful = {
        code: owners[path]
        for code in np.unique(trial_list.segments)
        if (path := trial_dir.recordings[trial_list.segment_ids[code]].resolve()) in owners
    }
    rows = np.flatnonzero(np.isin(trial_list.segments, list(doubtful)))
    n_own = sum(trial_list.model_ids[trial_list.models[row]] in doubtful[trial_list.segments[row]] for row in rows)
    if n_own:
        logger.warning(
            "%d of %d trials test a recording that their model was enrolled with: list in 'enrolls' what is enrolled, "
            "or leave these trials out", n_own, len(trial_list),
        )  # fmt: skip


def _enrolled(enrol_dir: DataDir, models: IdMap) -> dict[str, Path]:
    """Recordings of the models; of a directory with `enrolls` all that it lists, so that trial lists share them."""
    names = {*models.segments, *(enrol_dir.enrolls or ())}
    return {name: Path(enrol_dir.recordings[name]) for name in sorted(names)}


def _models(enrol_dir: DataDir, trial_list: Trials, problems: Problems) -> IdMap:
    wanted = sorted(set(trial_list.model_ids[trial_list.models]))
    listed = enrolment(enrol_dir)
    speakers: dict[str, list[str]] = {}
    for model, segment in zip(listed.models, listed.segments, strict=True):
        speakers.setdefault(model, []).append(segment)
    rows, unknown = [], []
    for model in wanted:
        if model in speakers:
            rows += [(model, segment) for segment in sorted(speakers[model])]
        elif model in enrol_dir.recordings:
            rows += [(model, model), *((model, name) for name, of in enrol_dir.version_of.items() if of == model)]
        else:
            unknown.append(model)
    if unknown:
        problems.add(
            f"{len(unknown)} of {len(wanted)} models of the trials are neither enrolled speakers nor utterances: "
            f"{_some(unknown)}",
            file=enrol_dir.path,
            remedy="check that the trials belong to this enrolment",
        )
    return IdMap.from_pairs(rows)


def _tested(trial_dir: DataDir, trial_list: Trials, problems: Problems) -> dict[str, Path]:
    wanted = sorted(set(trial_list.segment_ids[trial_list.segments]))
    unknown = [segment for segment in wanted if segment not in trial_dir.recordings]
    if unknown:
        problems.add(
            f"{len(unknown)} of {len(wanted)} segments of the trials are not there: {_some(unknown)}",
            file=trial_dir.path,
            remedy="check that the trials belong to this data directory",
        )
    return {name: Path(trial_dir.recordings[name]) for name in wanted if name in trial_dir.recordings}


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def score_checked(
    attacker: TrainedAttacker,
    work: Workplace,
    enrolment_side: tuple[DataDir, IdMap],
    test_side: tuple[DataDir, Mapping[str, Path]],
    trial_list: Trials,
    *,
    kept: Kept | None = None,
) -> Scores:
    """Score a list of trials that `check_trials` has looked at with one attacker.

    Parameters
    ----------
    attacker : TrainedAttacker
    work : Workplace
        Keeps features and statistics; what is used more than once stays in its memory.
    enrolment_side, test_side : tuple
        Data directory, and what `check_trials` has found in it.
    trial_list : evaluation.trials.Trials
    kept : Kept, optional
        Keeps what is done through a crash.
    """
    config, (enrol_dir, models), (trial_dir, recordings) = attacker.config, enrolment_side, test_side
    enrolled = work.recordings(enrol_dir.name, _enrolled(enrol_dir, models), config.features, seed=attacker.seed)
    tested = work.recordings(trial_dir.name, recordings, config.features, seed=attacker.seed)
    rows = _rows(work, attacker, enrolled, models, enrol_dir.version_of)
    machines = config.method.enrol(config, attacker.ubm, attacker.backend, rows, jobs=work.jobs)
    return normalised_scores(
        attacker.backend.cohort, attacker.ubm, machines, _test(work, attacker, tested), trial_list,
        workers=Work(work.jobs, work.device), kept=kept,
    )  # fmt: skip


def _rows(
    work: Workplace, attacker: TrainedAttacker, prepared: Prepared, models: IdMap, version_of: Mapping[str, str]
) -> Statistics:
    """Statistics of each enrolment utterance, the mean over its versions, under the id of its model."""
    statistics = work.statistics(prepared, attacker.ubm)
    row_of = {name: number for number, name in enumerate(statistics.segments)}
    rows = np.array([row_of[segment] for segment in models.segments], np.int64)
    if not version_of:
        return Statistics(models.models, models.segments, statistics.zeroth[rows], statistics.first[rows])
    sessions: dict[tuple[str, str], list[int]] = {}
    for model, segment, row in zip(models.models, models.segments, rows.tolist(), strict=True):
        sessions.setdefault((model, version_of.get(segment, segment)), []).append(row)
    zeroth, first = (
        np.stack([values[places].mean(axis=0) for places in sessions.values()])
        for values in (statistics.zeroth, statistics.first)
    )
    names = np.array(list(sessions), object)
    return Statistics(names[:, 0], names[:, 1], zeroth, first)


def _test(work: Workplace, attacker: TrainedAttacker, prepared: Prepared) -> Segments:
    config = attacker.config
    if config.exact:
        frames = prepared.frames.value
        return Segments(frames.ids, frames=frames)
    statistics = work.statistics(prepared, attacker.ubm)
    vectors = config.method.vectors(config, attacker.ubm, attacker.backend, statistics, jobs=work.jobs)
    return Segments(statistics.segments, vectors=vectors)
