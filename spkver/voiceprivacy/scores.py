"""The middle of an evaluation: speech is read, attackers are trained, trials are scored.

    OUTPUT/data/                                       inverted speech, pieces of recordings
    OUTPUT/work/                                       vectors and features; may be removed
    OUTPUT/attackers/<training set>/NAME/              models
    OUTPUT/exp/asv_.../<enrol>-<trials>/NAME/scores    scores, in folders with the challenge's names

`extract` reads all speech that the plan needs, `fit` trains every model, `score` scores every row and then fuses. Each
does what is due alone: a run that was killed goes on with the next file. An attacker that fails is left out and named
in the report; the others go on.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.trials import TRIAL_BY_TRIAL, Scores
from spkbase.errors import DataError, Problems, SpkverError
from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.plugins import TimeLimitError
from spkbase.runs import Run, Stage
from spkbase.showing import one_line
from spkver.attackers import ENDING, Extracted, cut, fuse, highest_level, learn_weights
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.plan import SCORES, FusedRow, Plan, PlanRow, trial_name
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets

logger = logging.getLogger(__name__)

Json = dict[str, Any]
Value = TypeVar("Value")

WORK = "work"
_KEY = 8  # digits


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
        Number of each draw that the attacker scored to the file of its scores; the first draw is always included.
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
    level: str = TRIAL_BY_TRIAL
    content: str = ""
    tested: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    weights: tuple[str, ...] = ()


@one_line
@dataclass
class Failures:
    """What went wrong with attackers, so that the others go on.

    Attributes
    ----------
    of_rows : dict of str to Exception
        By the file of the scores.
    timed_out : dict of str to Exception
        Attackers that exceeded the time limit; they are not called again in this run.
    """

    of_rows: dict[str, Exception] = field(default_factory=dict)
    timed_out: dict[str, Exception] = field(default_factory=dict)

    def attempt(self, name: str, files: Sequence[str], action: Callable[[], Value]) -> Value | None:
        """Return the value of an action of an attacker, or note its error as that of some files of scores.

        `ENDING` exceptions end the run.
        """
        try:
            if name in self.timed_out:
                raise self.timed_out[name]
            return action()
        except ENDING:
            raise
        except Exception as error:  # whatever fails, the other attackers go on
            if isinstance(error, TimeLimitError):
                self.timed_out[name] = error
            self.of_rows |= dict.fromkeys(files, error)
            return None


def extract(experiment: Experiment, plan: Plan) -> tuple[Extracted, Failures]:
    """Read all speech that rows without scores need: inverted speech, pieces, vectors and features.

    Returns
    -------
    extracted : Extracted
    failures : Failures
        Rows whose speech could not be read.
    """
    experiment.begin("extraction")
    run, failures = experiment.run, Failures()
    if run.force:  # shared features and statistics are computed again
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    work = Run(make_folder(run.path(WORK)), run.jobs, quiet=True)
    extracted = Extracted(run, work, experiment.config.seed)
    with run.timed("extraction"):
        done: set[Path] = set()

        def read(row: PlanRow) -> None:
            for directory in (*row.attack.directories, row.attack.training.original):
                _derive(directory.recordings, plan=plan, run=run, done=done)
            row.attacker.extract(extracted, row.attack)

        for row in plan.due:
            failures.attempt(row.name, [row.file], partial(read, row))
    experiment.end("extraction", f"{len(plan.due)} lists of trials, {run.path(WORK)}")
    return extracted, failures


def fit(experiment: Experiment, plan: Plan, extracted: Extracted, failures: Failures) -> dict[tuple[str, str], Any]:
    """Train every model that rows without scores need: the only step that trains.

    Returns
    -------
    dict of (str, str) to object
        Models by attacker and training set.
    """
    experiment.begin("training")
    models: dict[tuple[str, str], Any] = {}
    with experiment.run.timed("training"):
        for row in plan.due:
            if row.file not in failures.of_rows and row.model not in models:
                same = [other.file for other in plan.due if other.model == row.model]
                learn = partial(row.attacker.fit, extracted, row.attack.training)
                models[row.model] = failures.attempt(row.name, same, learn)
    experiment.end("training", f"{len(models)} models, {experiment.run.path('attackers')}")
    return models


def score(
    experiment: Experiment,
    sets: Sets,
    plan: Plan,
    extracted: Extracted,
    models: Mapping[tuple[str, str], Any],
    failures: Failures,
) -> list[Scored]:
    """Compute all scores that are not up to date: of folds, of single attackers, of fusions, of both sexes together.

    An attacker that fails is left out and named in `Experiment.failures`. Failed rows have no scores, so the next run
    tries them again.

    Returns
    -------
    list of Scored
        By set, scenario, sex and attacker; pooled trials follow the trials of each sex.

    Raises
    ------
    DataError, Exception
        If all attackers of a trial list fail and a built-in one is among them: then the data are at fault.
    """
    run = experiment.run
    experiment.begin("scores")
    quiet, conditions = replace(run, quiet=True), list[Scored]()

    def scored(row: PlanRow) -> None:
        """Score a row unless its scores are up to date."""

        def make(path: Path) -> None:
            write_scores(path, row.attacker.score(extracted, models[row.model], row.attack))

        if row.file not in failures.of_rows:
            stage = partial(quiet.stage, row.origin.name, row.file, make=make, read=read_scores, origin=row.origin)
            failures.attempt(row.name, [row.file], stage)

    outside = {spec.name for spec, _ in experiment.attackers if spec.row is None}
    with run.timed("scores"):
        for row in (row for row in plan.of_folds if row.is_due):
            scored(row)
        weights: dict[tuple[str, ...], Stage[Json]] = {}
        for (dataset, scenario), of_scenario in groupby(plan.rows, lambda row: (row.dataset, row.scenario)):
            started, rows = time.perf_counter(), list(of_scenario)
            for row in rows:
                scored(row)
            for _, of_list in groupby(rows, lambda row: row.gender):
                _raise_if_all_failed(list(of_list), plan, failures, outside)
            fused = [one for one in plan.fused if (one.first.dataset, one.first.scenario) == (dataset, scenario)]
            files = {one.file: _fuse(quiet, one, plan, failures, weights) for one in fused}
            of_fusions = [(one.first, one.fusion.name, one.file) for one in fused]
            for row, name, file in (*((row, row.name, row.file) for row in rows), *of_fusions):
                if error := failures.of_rows.get(file):
                    _note(experiment, row, name, file, error)
            assert dataset is not None
            found = list(_conditions(quiet, sets, dataset, rows, fused, plan, failures, files, experiment.suffix))
            seconds = time.perf_counter() - started
            where = dataset.name, scenario.name if scenario else ""
            logger.info("%s, %s: %d lists of trials scored in %.1f s", *where, len(found), seconds)
            conditions += found
    experiment.end("scores", f"{len(conditions)} conditions by {', '.join(experiment.config.attackers)}")
    return conditions


def fusion_weights(run: Run, conditions: Sequence[Scored]) -> list[Json]:
    """Return the weights of each fusion, as in its file, with the scores computed with them."""
    files: dict[str, list[str]] = {}
    for condition in conditions:
        for file in condition.weights:
            files.setdefault(file, []).append(condition.scores[1])
    return [{"file": file, "scores": used, **load_json(run.path(file))} for file, used in files.items()]


def joined(lists: Sequence[Scores]) -> Scores:
    """Concatenate the scores of several trial lists."""
    models = [model for scores in lists for model in scores.model_ids[scores.models]]
    segments = [segment for scores in lists for segment in scores.segment_ids[scores.segments]]
    return Scores.from_ids(models, segments, np.concatenate([scores.values for scores in lists]))


def reason_of(error: Exception) -> str:
    """Return the message of an error in one line, with the type if the error is not ours."""
    text = str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _derive(recordings: Mapping[str, Path], *, plan: Plan, run: Run, done: set[Path]) -> None:
    """Make the inverted speech and the pieces among some recordings, and first what these are made of."""
    for folder in sorted({path.parent.parent for path in recordings.values()} - done):
        done.add(folder)
        if folder in plan.pieces:
            source, counts = plan.pieces[folder]
            _derive(source.recordings, plan=plan, run=run, done=done)
            cut(source, counts, folder, jobs=run.jobs)
        for inversion in plan.inversions:
            if (source_of := inversion.source(folder)) is not None:
                _derive(source_of.recordings, plan=plan, run=run, done=done)
                inversion.make(folder)


def _fuse(
    run: Run, fused: FusedRow, plan: Plan, failures: Failures, weights: dict[tuple[str, ...], Stage[Json]]
) -> str:
    """Fuse the scores of a trial list unless they are up to date; return the file of the weights."""
    members = [row for row in fused.members if row.file not in failures.of_rows]
    names, kind, name = [row.name for row in members], fused.kind, fused.fusion.name
    file = f"{plan.whole[kind].folder}/{name}/weights-{fingerprint(kind[1], names)[:_KEY]}.json"
    origin = fused.origin
    if len(members) < len(fused.members):
        origin = run.origin(origin.name, inputs=names, after=[fused.origin])

    def make(path: Path) -> None:
        if (key := (name, *kind, *names)) not in weights:
            weights[key] = _weights(run, file, name, names, plan, kind, failures)
        scores = {row.name: read_scores(run.path(row.file)) for row in members}
        write_scores(path, fuse(weights[key].value["weights"], scores))

    if members:
        stage = partial(run.stage, origin.name, fused.file, make=make, read=read_scores, origin=origin)
        failures.attempt(name, [fused.file], stage)
    else:
        failures.of_rows[fused.file] = DataError(f"attacker {name!r} has no attacker to fuse: all have failed")
    return file


def _weights(
    run: Run, file: str, name: str, names: Sequence[str], plan: Plan, kind: tuple[str, str], failures: Failures
) -> Stage[Json]:
    """Train the weights of a fusion on the scores of its members in the folds, or reuse them."""
    folds, left_out = plan.folds.get(kind, []), {one: why for one, why in plan.left_out[kind].items() if one in names}
    if not folds:
        text = "fusion needs four background speakers with two recordings, or with one that can be cut in two"
        raise DataError(text, file=plan.whole[kind].original.path, remedy="leave it out of 'attackers'")
    rows = {one: [row for _, of_fold in folds for row in of_fold if row.name == one] for one in names}
    for one in names:
        if one not in left_out and (
            errors := [failures.of_rows[row.file] for row in rows[one] if row.file in failures.of_rows]
        ):
            left_out[one] = errors[0].text if isinstance(errors[0], DataError) else reason_of(errors[0])
            logger.warning("fusion leaves out %s: %s", one, left_out[one])
    used = [one for one in names if one not in left_out]
    if not used:
        reasons = "; ".join(f"{one}: {why}" for one, why in left_out.items())
        raise DataError(f"attacker {name!r} has no attacker to fuse ({reasons})")
    about = {"attacker": name, "training": plan.whole[kind].versions[0].name, "kind": kind[1], "left_out": left_out}

    def make(path: Path) -> None:
        found = {one: [read_scores(run.path(row.file)) for row in rows[one]] for one in used}
        write_json(path, learn_weights([fold for fold, _ in folds], found, about))

    return run.stage(
        f"weights of {name}",
        file,
        make=make,
        read=load_json,
        inputs=[about, used, [fold.key for fold, _ in folds]],
        after=[row.origin for one in used for row in rows[one]],
        libraries=("numpy", "scipy"),
    )


def _join(path: Path, *, files: Sequence[Path]) -> None:
    write_scores(path, joined([*map(read_scores, files)]))


def _raise_if_all_failed(rows: Sequence[PlanRow], plan: Plan, failures: Failures, outside: Collection[str]) -> None:
    """Raise the errors of a trial list if all its attackers fail.

    Nothing is raised if all of them are in `outside` and other attackers have rows.
    """
    errors = {row.name: failures.of_rows[row.file] for row in rows if row.draw == 1 and row.file in failures.of_rows}
    if not errors or errors.keys() != {row.name for row in rows}:
        return
    if errors.keys() <= set(outside) and errors.keys() != {row.name for row in plan.rows}:
        return
    if len({str(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    problems = Problems()
    for name, error in errors.items():
        problems.note(error if isinstance(error, DataError) else DataError(f"attacker {name!r}: {reason_of(error)}"))
    problems.raise_if_any()


def _note(experiment: Experiment, row: PlanRow, name: str, file: str, error: Exception) -> None:
    """Note that an attacker has no scores for a list of trials."""
    assert row.dataset is not None
    assert row.scenario is not None
    names = {"attacker": name, "dataset": row.dataset.name, "gender": row.gender}
    what = {"scenario": row.scenario.name, "scores": file, "reason": reason_of(error)}
    experiment.failures.append(names | what)
    logger.warning("%s: %s has no scores: %s", Path(file).parents[1], name, reason_of(error))
    if not isinstance(error, SpkverError):
        logger.info("%s", name, exc_info=error, extra={"file_only": True})


def _conditions(
    run: Run,
    sets: Sets,
    dataset: Dataset,
    rows: Sequence[PlanRow],
    fused: Sequence[FusedRow],
    plan: Plan,
    failures: Failures,
    files: Mapping[str, str],
    suffix: str,
) -> Iterator[Scored]:
    """Yield the conditions of a scenario that have scores of the first draw; pooled sexes come last."""
    scenario = rows[0].scenario
    assert scenario is not None
    draws = range(1, 1 + (sets.tested_draws(dataset) if scenario.trials else 1))
    found = {(row.name, row.gender, row.draw): row for row in rows if row.file not in failures.of_rows}
    fusions = {
        (one.fusion.name, one.first.gender, one.first.draw): one for one in fused if one.file not in failures.of_rows
    }
    sides = {gender: [gender] for gender in dataset.trials}
    if len(dataset.trials) > 1:
        sides[POOLED] = list(dataset.trials)
    attacker_folder = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    for (gender, sexes), name in product(sides.items(), plan.names[dataset.training]):
        known: Any = fusions if (name, sexes[0], 1) in fusions else found
        scores, made_from, weights, parts = dict[int, str](), list[str](), dict[str, None](), list[Any]()
        for draw in draws:
            parts = [one for sex in sexes if (one := known.get((name, sex, draw)))]
            if len(parts) < len(sexes):
                if draw == 1:
                    break
                continue
            file, origin = parts[0].file, parts[0].origin
            if len(sexes) > 1:  # all sexes together
                drawn = suffix if draw == 1 else f"{suffix}-draw{draw}"
                enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
                tested = trial_name(dataset, gender, drawn if scenario.trials else "")
                folder = f"{SCORES}/{attacker_folder}/{enrol}-{tested}"
                both = [run.path(one.file) for one in parts]
                origin = run.origin(f"scores of {name} in {folder}", after=[one.origin for one in parts])
                file = f"{folder}/{name}/scores"
                run.stage(origin.name, file, make=partial(_join, files=both), read=read_scores, origin=origin)
            elif isinstance(parts[0], FusedRow):
                weights[files[file]] = None
            scores[draw] = file
            made_from.append(origin.fingerprint)
        if 1 not in scores:
            continue
        first = known[name, sexes[0], 1]
        members = first.members if isinstance(first, FusedRow) else (first,)
        keys = [sets.original[dataset.trials[sex]].trials for sex in sexes]
        yield Scored(
            dataset=dataset.name,
            gender=gender,
            scenario=scenario.name,
            attacker=name,
            lists=f"lists/{trial_name(dataset, gender)}",
            scores=scores,
            made_from=tuple(made_from),
            level=highest_level([row.level for row in members]),
            content="" if isinstance(first, FusedRow) else first.content,
            tested=tuple(len(np.unique(key.segments)) for key in keys if key is not None),
            lacking=tuple(draw for draw in draws if draw not in scores),
            weights=tuple(weights),
        )
