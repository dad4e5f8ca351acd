"""Score trials with attackers: enrolment and test are data directories.

**A trained attacker, and the folder that it is kept in.**

    ATTACKER/attacker.yaml    format, configuration, seed, what it was trained on, SHA-256 of the other, fingerprint
    ATTACKER/attacker.h5      universal background model, transformation, background, cohort

The folder is all that scoring needs. `attacker.yaml` is written last, so a folder with it is whole.

**Scores of models against segments, plain and normalised by the cohort.**
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Moments, cohort_moments, normalise
from evaluation.trials import Scores, Trials
from spkbase.configuration import load_config, read_yaml, to_dict
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import file_digest, fingerprint, write_text
from spkbase.hdf5 import check_forms, read_arrays, write_arrays
from spkbase.runs import versions
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kinds import Backend, Cohort, Segments, arrays_of, transform_of
from spkver.attackers.workplace import Prepared, Workplace
from spkver.backend import SvmModels, gram_matrix, score_gmm_ubm, score_trials
from spkver.datadir import DataDir, enrolment
from spkver.features import FeatureConfig, Frames, check_recordings
from spkver.idmap import IdMap
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors import Supervectors

logger = logging.getLogger(__name__)

_FORMAT = 1
_DESCRIPTION, _ARRAYS = "attacker.yaml", "attacker.h5"
_KEYS = {"format", "config", "seed", "trained_on", "versions", "sha256", "fingerprint"}


@one_line
@dataclass(frozen=True)
class TrainedAttacker:
    """A built-in attacker after its training: all that scoring needs.

    Attributes
    ----------
    config : AttackerConfig
    seed : int
    ubm : GaussianMixture
    backend : Backend
    trained_on : mapping
        Name of the training set, its numbers of utterances, speakers and sessions.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `spkver.backend.speaker_digests`; empty where they are not known.
    """

    config: AttackerConfig
    seed: int
    ubm: GaussianMixture
    backend: Backend
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)

    @property
    def name(self) -> str:
        """What its results are called."""
        return self.config.name


def save_attacker(attacker: TrainedAttacker, folder: str | Path) -> None:
    """Write an attacker as one folder; other files in it stay."""
    import yaml

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DESCRIPTION).unlink(missing_ok=True)
    write_arrays(folder / _ARRAYS, _arrays(attacker))
    description = {
        "format": _FORMAT,
        "config": to_dict(attacker.config),
        "seed": attacker.seed,
        "trained_on": dict(attacker.trained_on),
        "versions": versions(),
        "sha256": file_digest(folder / _ARRAYS),
    }
    description["fingerprint"] = fingerprint(description)
    write_text(folder / _DESCRIPTION, yaml.safe_dump(description, sort_keys=False, allow_unicode=True))


def load_attacker(folder: str | Path) -> TrainedAttacker:
    """Read an attacker from its folder.

    Raises
    ------
    DataError
        If it is not there, not whole, damaged or of another format.
    """
    folder = Path(folder)
    file = folder / _DESCRIPTION
    if not file.is_file():
        raise DataError(
            "no attacker there: attacker.yaml is missing", file=folder, remedy="train one with 'spkver train'"
        )
    try:
        description = read_yaml(file)
    except ConfigError as error:
        raise DataError(error.text, file=file, line=error.line, remedy="train the attacker again") from error
    if description.get("format") != _FORMAT or set(description) != _KEYS or not isinstance(description["seed"], int):
        raise DataError(
            f"not the description of an attacker in format {_FORMAT}", file=file, remedy="train the attacker again"
        )
    if not isinstance(description["config"], dict) or not isinstance(description["trained_on"], dict):
        raise DataError("config and trained_on should hold keys", file=file, remedy="train the attacker again")
    try:
        config = load_config(AttackerConfig, defaults=description["config"])
    except ConfigError as error:
        raise DataError(str(error), file=file, remedy="train the attacker again") from error
    if file_digest(folder / _ARRAYS) != description["sha256"]:
        raise DataError("missing, or not as it was written", file=folder / _ARRAYS, remedy="train the attacker again")
    if (
        fingerprint({key: value for key, value in description.items() if key != "fingerprint"})
        != description["fingerprint"]
    ):
        text = "not as it was written: another configuration does not fit what was trained"
        raise DataError(text, file=file, remedy="train the attacker again")
    arrays = read_arrays(folder / _ARRAYS)
    is_full = "ubm_variances" in arrays and arrays["ubm_variances"].ndim == 3
    check_forms(folder / _ARRAYS, arrays, ubm_weights="f1", ubm_means="f2", ubm_variances="f3" if is_full else "f2")
    try:
        ubm = GaussianMixture(*(arrays[f"ubm_{name}"] for name in ("weights", "means", "variances")))
        backend = _backend(config, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = f"holds no attacker of this kind: {type(error).__name__} {error}"
        raise DataError(text, file=folder / _ARRAYS, remedy="train the attacker again") from error
    heard = arrays.get("heard", np.zeros(0, np.uint64))
    return TrainedAttacker(config, description["seed"], ubm, backend, description["trained_on"], heard)


def _arrays(attacker: TrainedAttacker) -> dict[str, NDArray]:
    ubm, backend = attacker.ubm, attacker.backend
    arrays: dict[str, NDArray] = {"ubm_weights": ubm.weights, "ubm_means": ubm.means, "ubm_variances": ubm.variances}
    if len(attacker.heard):
        arrays["heard"] = attacker.heard
    if backend.transform is not None:
        arrays |= arrays_of(backend.transform)
    if backend.background is not None and backend.gram is not None:
        arrays |= {"background": backend.background, "gram": backend.gram}
    if backend.cohort is not None:
        machines, tested = backend.cohort.models, backend.cohort.segments
        arrays |= {"cohort_models": machines.models, "cohort_weights": np.asarray(machines.weights)}
        arrays |= {"cohort_biases": machines.biases, "cohort_segments": tested.ids}
        if tested.frames is not None:
            arrays |= {"cohort_offsets": tested.frames.offsets, "cohort_frames": np.asarray(tested.frames.values)}
        else:
            assert tested.vectors is not None
            arrays |= {"cohort_vectors": tested.vectors}
    return arrays


def _backend(config: AttackerConfig, arrays: dict[str, NDArray]) -> Backend:
    transform = cohort = None
    if "centre" in arrays:
        transform = transform_of(arrays, unit_length=config.method.scales(config))
    if "cohort_models" in arrays:
        machines = SvmModels(arrays["cohort_models"], arrays["cohort_weights"], arrays["cohort_biases"])
        segments = np.asarray(arrays["cohort_segments"], object)
        if "cohort_frames" in arrays:
            tested = Segments(segments, frames=Frames(segments, arrays["cohort_offsets"], arrays["cohort_frames"]))
        else:
            tested = Segments(segments, vectors=arrays["cohort_vectors"])
        cohort = Cohort(machines, tested, config.norm)
    return Backend(transform, arrays.get("background"), arrays.get("gram"), cohort)


def raw_scores(
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    trials: Trials,
    *,
    workers: Work | None = None,
) -> Scores:
    """Return the scores of trials before normalisation."""
    options: dict[str, Any] = {"work": workers or Work()}
    if tested.frames is not None:
        means = Supervectors(machines.models, machines.models, machines.weights)
        return score_gmm_ubm(ubm, means, tested.frames, trials, **options)
    assert tested.vectors is not None
    return score_trials(machines, Supervectors(tested.ids, tested.ids, tested.vectors), trials, **options)


def score_matrix(
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    *,
    workers: Work | None = None,
) -> NDArray[np.float64]:
    """Return the scores (M, S) of all models against all segments before normalisation."""
    if tested.vectors is not None:
        return gram_matrix(machines.weights, tested.vectors, work=workers or Work()) + machines.biases[:, None]
    n_models, n_segments = len(machines), len(tested.ids)
    rows, columns = np.divmod(np.arange(n_models * n_segments, dtype=np.int32), np.int32(n_segments))
    trials = Trials(machines.models, tested.ids, rows, columns)
    scores = raw_scores(ubm, machines, tested, trials, workers=workers)
    return scores.values.reshape(n_models, n_segments)


def normalised_scores(
    cohort: Cohort | None,
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    trials: Trials,
    *,
    workers: Work | None = None,
) -> Scores:
    """Return the scores of trials, normalised by a cohort as its `norm` says; without one, as they are."""
    scores = raw_scores(ubm, machines, tested, trials, workers=workers)
    if cohort is None:
        return scores
    models = segments = None
    if cohort.norm.kind in ("z", "s"):
        rows = _rows_used(trials.model_ids, trials.models, machines.models)
        mine = SvmModels(machines.models[rows.own], machines.weights[rows.own], machines.biases[rows.own])
        against = score_matrix(ubm, mine, cohort.segments, workers=workers)
        models = rows.spread(_moments(against, mine.models, cohort.norm.top))
    if cohort.norm.kind in ("t", "s"):
        rows = _rows_used(trials.segment_ids, trials.segments, tested.ids)
        some = _some(tested, rows.own)
        against = score_matrix(ubm, cohort.models, some, workers=workers).T
        segments = rows.spread(_moments(against, some.ids, cohort.norm.top))
    return normalise(scores, models=models, segments=segments)


def _moments(against: NDArray, ids: NDArray, top: int | None) -> Moments:
    try:
        return cohort_moments(against, ids, top=top)
    except DataError as error:
        raise DataError(error.text, remedy="set norm.kind=none, or give more training speakers") from error


@dataclass(frozen=True)
class _Rows:
    """Where the ids that trials use stand: `codes` in the table of the trials, `own` among what there is."""

    codes: NDArray[np.int64]
    own: NDArray[np.int64]
    size: int

    def spread(self, moments: Moments) -> Moments:
        """Return moments in the order of the table; ids without a trial have none."""
        mean, deviation = np.full(self.size, np.nan), np.full(self.size, np.nan)
        mean[self.codes], deviation[self.codes] = moments
        return mean, deviation


def _rows_used(ids: NDArray, used: NDArray, available: NDArray) -> _Rows:
    codes = np.unique(used).astype(np.int64)
    index = {name: row for row, name in enumerate(available)}
    return _Rows(codes, np.array([index[ids[code]] for code in codes], np.int64), len(ids))


def _some(tested: Segments, rows: NDArray[np.int64]) -> Segments:
    return Segments(tested.ids[rows], None if tested.vectors is None else tested.vectors[rows], tested.frames)


_NAMED = 5


def score(
    attackers: Mapping[str, TrainedAttacker],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    *,
    work: str | Path,
    jobs: int | None = None,
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

    Returns
    -------
    dict of str to evaluation.trials.Scores
        For each attacker the scores in the order of the trials.

    Raises
    ------
    DataError
        With all problems of the trials and the recordings, before anything long starts.
    """
    features = [attacker.config.features for attacker in attackers.values()]
    models, tested = check_trials(features, enrol_dir, trial_dir, trial_list, jobs=jobs)
    workplace = Workplace(Path(work), jobs)
    return {
        name: score_checked(attacker, workplace, (enrol_dir, models), (trial_dir, tested), trial_list)
        for name, attacker in attackers.items()
    }


def check_trials(
    features: Sequence[FeatureConfig],
    enrol_dir: DataDir,
    trial_dir: DataDir,
    trial_list: Trials,
    *,
    jobs: int | None = None,
) -> tuple[IdMap, dict[str, Path]]:
    """Check a list of trials and the headers of all recordings that it needs, for each of some kinds of features.

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
    for config in {fingerprint(config): config for config in features}.values():
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
            f"{_quoted(unknown)}",
            file=enrol_dir.path,
            remedy="check that the trials belong to this enrolment",
        )
    return IdMap.from_pairs(rows)


def _tested(trial_dir: DataDir, trial_list: Trials, problems: Problems) -> dict[str, Path]:
    wanted = sorted(set(trial_list.segment_ids[trial_list.segments]))
    unknown = [segment for segment in wanted if segment not in trial_dir.recordings]
    if unknown:
        problems.add(
            f"{len(unknown)} of {len(wanted)} segments of the trials are not there: {_quoted(unknown)}",
            file=trial_dir.path,
            remedy="check that the trials belong to this data directory",
        )
    return {name: Path(trial_dir.recordings[name]) for name in wanted if name in trial_dir.recordings}


def _quoted(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def score_checked(
    attacker: TrainedAttacker,
    work: Workplace,
    enrolment_side: tuple[DataDir, IdMap],
    test_side: tuple[DataDir, Mapping[str, Path]],
    trial_list: Trials,
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
    """
    config, (enrol_dir, models), (trial_dir, recordings) = attacker.config, enrolment_side, test_side
    enrolled = work.recordings(enrol_dir.name, _enrolled(enrol_dir, models), config.features, seed=attacker.seed)
    tested = work.recordings(trial_dir.name, recordings, config.features, seed=attacker.seed)
    rows = _rows(work, attacker, enrolled, models, enrol_dir.version_of)
    machines = config.method.enrol(config, attacker.ubm, attacker.backend, rows, jobs=work.jobs)
    return normalised_scores(
        attacker.backend.cohort, attacker.ubm, machines, _test(work, attacker, tested), trial_list,
        workers=Work(work.jobs),
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
