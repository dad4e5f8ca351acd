"""The middle of an evaluation: speech is read, attackers are trained, trials are scored.

    OUTPUT/data/                                       inverted speech, pieces of recordings
    OUTPUT/work/                                       vectors and features; may be removed
    OUTPUT/work/lacking.json                           recordings that an extractor failed on, by the extractor
    OUTPUT/attackers/<training set>/NAME/              models
    OUTPUT/exp/asv_.../<enrol>-<trials>/NAME/scores    scores, in folders with the challenge's names

`extract` reads all speech that the plan needs, `fit` trains every model and computes the vectors that depend on one,
`score` scores every row and then fuses. Each does what is due alone: a run that was killed goes on with the next file.
An attacker that fails is left out and named in the report; the others go on.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.reports import Failure, FusionWeights
from evaluation.trials import INVERTING, ONE_MODEL, SCENARIOS, Scores
from spkbase.errors import DataError, Problems, SpkverError
from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.plugins import TimeLimitError
from spkbase.runs import Run, Stage
from spkbase.showing import one_line
from spkbase.work import progress
from spkver.attackers import (
    ENDING,
    LostModelError,
    SpeechFiles,
    Trained,
    compute_vectors,
    cut,
    extract_speech,
    fuse,
    learn_models,
    learn_weights,
    score_trials,
)
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.plan import Plan
from spkver.voiceprivacy.plan_rows import highest
from spkver.voiceprivacy.rows import Row
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets
from spkver.voiceprivacy.trial_lists import trial_name

logger = logging.getLogger(__name__)

Json = dict[str, Any]
Value = TypeVar("Value")

WORK = "work"
LACKING = f"{WORK}/lacking.json"


@one_line
@dataclass(frozen=True)
class Scored:
    """The scores of an attacker in a scenario; paths are relative to the output folder.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        The condition; gender is "f", "m" or "all".
    lists : str
        Folder that holds the key (``trials``), ``utt2spk`` and ``spk2gender``.
    scores : dict of int to str
        File of the scores of each draw, by the number of the draw; the first draw is always included.
    made_from : tuple of str
        Fingerprints of these scores.
    level : str
        Level of knowledge of the attacker, see `evaluation.trials.LEVELS`.
    content : str
        If the attacker uses the words: "oracle" if the transcripts come with the data, else "recognised"; empty if it
        does not.
    tested : tuple of int
        Number of test recordings in each trial list: a whole-list attacker adapts to them.
    lacking : tuple of int
        Draws that exist but that the attacker could not score.
    weights : tuple of str
        Files that hold the weights of a fusion.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    lists: str
    scores: Mapping[int, str]
    made_from: tuple[str, ...] = ()
    level: str = ONE_MODEL
    content: str = ""
    tested: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    weights: tuple[str, ...] = ()


@one_line
@dataclass
class Failures:
    """Errors of single attackers, recorded so that the others can continue.

    Attributes
    ----------
    plugins : set of str
        Attackers that run users' code, of which any error is recorded. Built-in attackers may fail by an `SpkverError`:
        another error of theirs is a defect of this package.
    of_rows : dict of str to Exception
        By the file of the scores.
    timed_out : dict of str to Exception
        Attackers that exceeded the time limit; they are not called again in this run.
    """

    plugins: Collection[str] = ()
    of_rows: dict[str, Exception] = field(default_factory=dict)
    timed_out: dict[str, Exception] = field(default_factory=dict)

    def attempt(self, name: str, files: Sequence[str], action: Callable[[], Value]) -> Value | None:
        """Return the value of an action of an attacker, or record its error for some files of scores.

        `ENDING` exceptions, and defects of built-in attackers, end the run.
        """
        try:
            if name in self.timed_out:
                raise self.timed_out[name]
            return action()
        except ENDING:
            raise
        except Exception as error:
            if not isinstance(error, SpkverError) and name not in self.plugins:
                raise
            if isinstance(error, TimeLimitError):
                self.timed_out[name] = error
            self.of_rows |= dict.fromkeys(files, error)
            return None


def extract(experiment: Experiment, plan: Plan) -> tuple[SpeechFiles, Failures]:
    """Read all speech that rows without scores need: inverted speech, pieces, vectors and features.

    Returns
    -------
    speech : SpeechFiles
    failures : Failures
        Rows whose speech could not be read.
    """
    experiment.begin("extraction")
    run = experiment.run
    failures = Failures({spec.name for spec, _ in experiment.attackers if spec.row is None or spec.is_own_code})
    if run.force:  # shared features and statistics are computed again
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    work = Run(make_folder(run.path(WORK)), run.jobs, quiet=True)
    file = run.path(LACKING)
    lacking = {}
    if file.is_file():
        lacking = {name: set(utterances) for name, utterances in load_json(file).items()}
    speech = SpeechFiles(run, work, experiment.config.seed, lacking)
    with run.timed("extraction"):
        done: set[Path] = set()

        def read(row: Row) -> None:
            attack = plan.attacks[row.id]
            training = attack.training
            with work.timed(f"speech for {row.attacker}"):
                for directory in dict.fromkeys((*attack.directories, training.original, *training.anonymised)):
                    _derive(directory.recordings, plan=plan, run=run, done=done)
                extract_speech(speech, plan.attacker(row), attack)

        due = plan.due(run)
        for row in progress(due, description="extraction", sizes=_new_recordings(plan, due)):
            failures.attempt(row.attacker, [row.file], partial(read, row))
        write_json(file, {name: sorted(utterances) for name, utterances in lacking.items()})
    experiment.end("extraction", f"{len(due)} lists of trials, {run.path(WORK)}")
    return speech, failures


def fit(experiment: Experiment, plan: Plan, speech: SpeechFiles, failures: Failures) -> dict[tuple[str, str], Trained]:
    """Train every model that rows without scores need, and compute the vectors that depend on models.

    Returns
    -------
    dict of (str, str) to Trained
        By attacker and training set.
    """
    experiment.begin("training")
    models: dict[tuple[str, str], Trained] = {}
    with experiment.run.timed("training"):
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in plan.due(experiment.run):
            if row.file not in failures.of_rows:
                rows.setdefault(plan.model(row), []).append(row)
        for model, same in progress(rows.items(), description="training", total=len(rows)):
            first = same[0]
            learn = partial(learn_models, speech, plan.attacker(first), plan.attacks[first.id].training)
            with speech.work.timed(f"model of {first.attacker}"):
                trained = failures.attempt(first.attacker, [row.file for row in same], learn)
            if trained is not None:
                models[model] = trained
        able = [row for row in plan.due(experiment.run) if row.file not in failures.of_rows]
        for row in progress(able, description="vectors", total=len(able)):
            compute = partial(compute_vectors, plan.attacker(row), models[plan.model(row)], plan.attacks[row.id])
            with speech.work.timed(f"vectors for {row.attacker}"):
                failures.attempt(row.attacker, [row.file], compute)
    experiment.end("training", f"{len(models)} models, {experiment.run.path('attackers')}")
    return models


def score(
    experiment: Experiment,
    sets: Sets,
    plan: Plan,
    speech: SpeechFiles,
    models: dict[tuple[str, str], Trained],
    failures: Failures,
) -> list[Scored]:
    """Compute all scores that are not up to date: those of folds, attackers and fusions, then pooled over the sexes.

    An attacker that fails is left out and named in `Experiment.failures`. Failed rows have no scores, so the next run
    tries them again. Nothing is trained here but weights of fusions, and a user's function whose process has ended.

    Returns
    -------
    list of Scored
        By set, scenario, sex and attacker; pooled trials follow the trials of each sex.

    Raises
    ------
    DataError, Exception
        If all attackers of a trial list fail and a built-in one is among them: then the data are at fault.
    """
    experiment.begin("scores")
    run, conditions = experiment.run, list[Scored]()
    due = {row.id: row for row in plan.due(run)}
    counted = progress(due, description="scores", total=len(due))
    stages: dict[str, Stage[Any]] = {}  # by the file of the scores or weights
    outside = {spec.name for spec, _ in experiment.attackers if spec.row is None}

    def by_attacker(row: Row) -> Scores:
        """Score a row by its attacker, which learns again if an earlier row has ended the process of its model."""
        model = plan.model(row)
        attacker = plan.attacker(row)
        attack = plan.attacks[row.id]
        if model not in models:
            text = "%s learns again: its process ended while it scored"
            logger.warning(text, row.attacker, extra={"file_only": True})
            models[model] = learn_models(speech, attacker, attack.training)
        try:
            return score_trials(attacker, models[model], attack)
        except LostModelError:
            del models[model]
            raise

    def scored(row: Row) -> None:
        """Score a row unless its scores are up to date."""
        if row.id in due:
            next(counted)
        members, origin = [one for one in plan.members(row) if one.file in stages], plan.origins[row.id]
        if row.file in failures.of_rows or (row.members and not members):
            return
        if row.kind == "pooled" and len(members) < len(row.members):
            return
        if row.kind == "fusion":
            if row.level == INVERTING and INVERTING not in {one.level for one in members}:
                return
            folds = [one for one in plan.of_folds if one.fold_kind == row.fold_kind]
            lost = {one.attacker for one in folds if one.file in failures.of_rows}
            if lost or len(members) < len(row.members):  # the next run, with the usual origin, tries all members again
                names = sorted({one.attacker for one in members} - lost)
                origin = run.origin(origin.name, inputs=names, after=[origin])

        def make(path: Path) -> None:
            found = {one.file: read_scores(run.path(one.file)) for one in members}
            if row.kind == "pooled":
                scores = joined(list(found.values()))
            elif row.kind == "fusion":
                file = plan.weights_file(row, members)
                if file not in stages:
                    stages[file] = _weights(run, file, row, members, plan, failures)
                scores = fuse(stages[file].value["weights"], {one.attacker: found[one.file] for one in members})
            else:
                scores = by_attacker(row)
            write_scores(path, scores)

        stage = partial(run.stage, origin.name, row.file, make=make, read=read_scores, origin=origin)
        if (done := failures.attempt(row.attacker, [row.file], stage)) is not None:
            stages[row.file] = done

    with run.timed("scores"), closing(counted):
        for row in (row for row in plan.of_folds if row.id in due):
            scored(row)
        datasets = {dataset.name: dataset for dataset in sets.datasets}
        for (dataset, _), of_scenario in groupby(plan.rows, lambda row: (row.dataset, row.scenario)):
            rows = list(of_scenario)
            alone = [row for row in rows if not row.members]
            for row in alone:
                scored(row)
            for _, of_list in groupby(alone, lambda row: row.gender):
                _raise_if_all_failed(list(of_list), plan, failures, outside)
            for row in rows[len(alone) :]:
                scored(row)
            for row in rows:
                if error := failures.of_rows.get(row.file):
                    _note(experiment, row, error)
            conditions += _conditions(run, sets, datasets[dataset], rows, plan, stages)
    experiment.end("scores", f"{len(conditions)} conditions by {', '.join(experiment.config.attackers)}")
    return conditions


def fusion_weights(run: Run, conditions: Sequence[Scored]) -> tuple[FusionWeights, ...]:
    """Return the weights of each fusion, as in its file, with the scores computed with them."""
    files: dict[str, list[str]] = {}
    for condition in conditions:
        for file in condition.weights:
            files.setdefault(file, []).append(condition.scores[1])
    entries = [{**load_json(run.path(file)), "file": file, "scores": used} for file, used in files.items()]
    return tuple(map(FusionWeights.from_dict, entries))


def joined(lists: Sequence[Scores]) -> Scores:
    """Concatenate the scores of several trial lists."""
    models = [model for scores in lists for model in scores.model_ids[scores.models]]
    segments = [segment for scores in lists for segment in scores.segment_ids[scores.segments]]
    return Scores.from_ids(models, segments, np.concatenate([scores.values for scores in lists]))


def reason_of(error: Exception) -> str:
    """Return the message of an error in one line, with the type if the error is not ours."""
    text = str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _new_recordings(plan: Plan, rows: Sequence[Row]) -> list[int]:
    """Return how many recordings each row is the first to need; rows with one source of vectors share them."""
    seen, counts = set[Any](), []
    for row in rows:
        kind, source = row.attacker, plan.attacker(row).source
        if source is not None:
            kind = source.key if source.features is None else fingerprint(source.features.extraction())
        needed = {(kind, one.path): len(one.recordings) for one in plan.attacks[row.id].directories}
        counts.append(sum(needed[key] for key in needed.keys() - seen))
        seen |= needed.keys()
    return counts


def _derive(recordings: Mapping[str, Path], *, plan: Plan, run: Run, done: set[Path]) -> None:
    """Make the inverted speech and the pieces among some recordings, and first what these are made of."""
    for folder in sorted({path.parent.parent for path in recordings.values()} - done):
        if folder in plan.speech.pieces:
            source, counts = plan.speech.pieces[folder]
            _derive(source.recordings, plan=plan, run=run, done=done)
            cut(source, counts, folder, jobs=run.jobs)
        for inversion in plan.speech.inversions.values():
            if (source_of := inversion.source(folder)) is not None:
                _derive(source_of.recordings, plan=plan, run=run, done=done)
                inversion.make(folder)
        done.add(folder)


def _weights(run: Run, file: str, fused: Row, members: Sequence[Row], plan: Plan, failures: Failures) -> Stage[Json]:
    """Train the weights of a fusion on the scores of its members in the folds, or reuse them."""
    names, kind = [row.attacker for row in members], fused.fold_kind
    folds, left_out = plan.folds[kind], {one: why for one, why in plan.left_out[kind].items() if one in names}
    if not folds:
        text = "fusion needs four background speakers with two recordings, or with one that can be cut in two"
        raise DataError(text, file=plan.speech.background(kind).original.path, remedy="leave it out of 'attackers'")
    of_kind = [row for row in plan.of_folds if row.fold_kind == kind]
    rows = {one: [row for row in of_kind if row.attacker == one] for one in names}
    for one in [name for name in names if name not in left_out]:
        for error in [failures.of_rows[row.file] for row in rows[one] if row.file in failures.of_rows][:1]:
            left_out[one] = error.text if isinstance(error, DataError) else reason_of(error)
            logger.warning("fusion leaves out %s: %s", one, left_out[one])
    used = [one for one in names if one not in left_out]
    if not used:
        reasons = "; ".join(f"{one}: {why}" for one, why in left_out.items())
        raise DataError(f"attacker {fused.attacker!r} has no attacker to fuse ({reasons})")
    training = plan.speech.background(kind).versions[0].name
    about = {"attacker": fused.attacker, "training": training, "kind": kind[1], "left_out": left_out}

    def make(path: Path) -> None:
        found = {one: [read_scores(run.path(row.file)) for row in rows[one]] for one in used}
        write_json(path, learn_weights(folds, found, about))

    return run.stage(
        f"weights of {fused.attacker}",
        file,
        step="weights",
        make=make,
        read=load_json,
        inputs=[about, used, [fold.key for fold in folds]],
        after=[plan.origins[row.id] for one in used for row in rows[one]],
        libraries=("numpy", "scipy"),
    )


def _raise_if_all_failed(rows: Sequence[Row], plan: Plan, failures: Failures, outside: Collection[str]) -> None:
    """Raise the errors of a trial list if all its attackers fail.

    Nothing is raised if all of them are in `outside` and other attackers have rows.
    """
    of_first = [row for row in rows if row.draw == 1 and row.file in failures.of_rows]
    errors = {row.attacker: failures.of_rows[row.file] for row in of_first}
    if not errors or errors.keys() != {row.attacker for row in rows}:
        return
    if errors.keys() <= set(outside) and errors.keys() != {row.attacker for row in plan.rows}:
        return
    if len({str(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    problems = Problems()
    for name, error in errors.items():
        problems.note(error if isinstance(error, DataError) else DataError(f"attacker {name!r}: {reason_of(error)}"))
    problems.raise_if_any()


def _note(experiment: Experiment, row: Row, error: Exception) -> None:
    """Note that an attacker has no scores for a list of trials."""
    failure = Failure(row.attacker, row.dataset, row.gender, row.scenario, row.file, reason_of(error))
    experiment.failures.append(failure)
    logger.warning("%s: %s has no scores: %s", row.list_name, row.attacker, reason_of(error))
    if not isinstance(error, SpkverError):
        logger.debug("%s", row.attacker, exc_info=error)


def _conditions(
    run: Run, sets: Sets, dataset: Dataset, rows: Sequence[Row], plan: Plan, stages: Mapping[str, Stage[Any]]
) -> Iterator[Scored]:
    """Yield the conditions of a scenario that have scores of the first draw; pooled sexes come last.

    The level of a fusion is the highest of its members with weight.
    """

    def weights_file(row: Row) -> str:
        return plan.weights_file(row, [one for one in plan.members(row) if one.file in stages])

    def level(row: Row) -> str:
        members = plan.members(row)
        if row.kind == "fusion":
            weights = load_json(run.path(weights_file(row)))["weights"]["weights"]
            members = [one for one in members if weights.get(one.attacker)]
        return highest(map(level, members)) if members else row.level

    scenario = next(one for one in SCENARIOS if one.name == rows[0].scenario)
    draws = range(1, 1 + sets.tested_draws(dataset, scenario))
    found: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        if row.file in stages:
            found.setdefault((row.gender, row.attacker), {})[row.draw] = row
    genders = [*dataset.trials, *([POOLED] if len(dataset.trials) > 1 else [])]
    for gender, name in product(genders, plan.names[dataset.training]):
        scored = found.get((gender, name), {})
        if 1 not in scored:
            continue
        lists = [member.trials for member in plan.members(scored[1])] if scored[1].kind == "pooled" else []
        tested = [plan.speech.trials[trials] for trials in lists or [scored[1].trials]]
        weights = [weights_file(row) for row in scored.values() if row.kind == "fusion"]
        yield Scored(
            dataset=dataset.name,
            gender=gender,
            scenario=scenario.name,
            attacker=name,
            lists=f"lists/{trial_name(dataset, gender)}",
            scores={draw: row.file for draw, row in scored.items()},
            made_from=tuple(stages[row.file].fingerprint for row in scored.values()),
            level=level(scored[1]),
            content=scored[1].content,
            tested=tuple(len(np.unique(trials.segments)) for trials in tested),
            lacking=tuple(draw for draw in draws if draw not in scored),
            weights=tuple(dict.fromkeys(weights)),
        )
