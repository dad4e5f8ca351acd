"""Who attacks what: the scenarios, what attackers learn, and the scores of every condition.

============== ============ ============ ==============
scenario       enrolment    trials       attacker
============== ============ ============ ==============
original       original     original     ASV_eval
ignorant       original     anonymised   ASV_eval
lazy-informed  anonymised   anonymised   ASV_eval
semi-informed  anonymised   anonymised   ASV_eval^anon
============== ============ ============ ==============

ASV_eval is trained on original speech, ASV_eval^anon on the same speech anonymised, several times where the anonymiser
is at hand. The key is always that of the original trial list. Where the enrolment is anonymised several times an
attacker enrols with all versions. Each version of the trials is scored by itself, in a folder of its own.

    OUTPUT/lists/<trials>/                         keys, speakers and sexes
    OUTPUT/exp/asv_.../<enrol>-<trials>/NAME/scores    scores, in folders that are named as the challenge names them
    OUTPUT/failures.json                           what failed in the last run, which the steps after it take up

`train` says what is to be scored and has the attackers learn that scores are missing of, `score` makes the scores. An
attacker that fails is left out, is named, and does not keep the others from their work.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_key, write_scores
from evaluation.reports import SCENARIOS, TRIAL_BY_TRIAL, Scenario
from evaluation.trials import Scores
from spkbase.errors import DataError, Problems, SpkverError
from spkbase.files import load_json, write_json, write_text
from spkbase.plugins import TimeLimitError
from spkbase.runs import Run, Stage, Stamp
from spkbase.showing import one_line
from spkver.attackers import (
    ENDING,
    Attack,
    Attacker,
    Background,
    Fusion,
    Place,
    Scorer,
    learns_from,
    level_of,
    serves,
    speech_of,
)
from spkver.datadir import DataDir, without_labels
from spkver.voiceprivacy.choosing import Chosen
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, noted_each, pooled_key

logger = logging.getLogger(__name__)

Json = dict[str, Any]

SCORES = "exp"  # as in the challenge
WORK = "work"  # features and statistics, which the attackers share; may be removed
FAILURES = "failures.json"


@one_line
@dataclass(frozen=True)
class Scored:
    """The scores of an attacker in a scenario; paths are those of files in the output folder.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        What they are of; gender is "f", "m" or "all".
    lists : str
        Folder of the key (``trials``) and of ``utt2spk`` and ``spk2gender``.
    scores : dict of int to str
        File of the scores of each draw that the attacker scored, by its number; the first is always there.
    made_from : tuple of str
        Fingerprints of these scores.
    level : str
        What the attacker may look at, see `evaluation.reports.LEVELS`.
    content : str
        Where the attacker reads what is said: "oracle" if the transcripts come with the data, else "recognised".
    tested : tuple of int
        Recordings that each of its lists of trials tests: what a whole-list attacker adapts to.
    lacking : tuple of int
        Draws that there are, and that the attacker could not score.
    weights : tuple of str
        Files of the weights of a fusion.
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


@dataclass(frozen=True)
class Job:
    """A list of trials of one sex, in one draw, that one attacker scores; `parts` are the scores that a fusion fuses,
    by attacker.
    """

    dataset: Dataset
    gender: str
    scenario: Scenario
    draw: int
    attack: Attack
    attacker: Attacker
    stage: Stage[Scores]
    parts: Mapping[str, Stage[Scores]] = field(default_factory=dict)

    @property
    def learns_from(self) -> tuple[str, tuple[DataDir, ...]]:
        """The attacker's name, and what it learns from."""
        return self.attacker.name, learns_from(self.attacker, self.attack)


@one_line
@dataclass(frozen=True)
class Attackers:
    """The attackers at work, what they are to score, and what they have learnt.

    Attributes
    ----------
    by_training : dict of str to list of Attacker
        In the order of the configuration, for each training set; features fit its sampling rates.
    jobs : list of Job
        Those of fusions follow when the others have scored.
    lacking : dict of (str, str) to str
        Why an attacker cannot score an attack, by the names of both.
    learnt : dict of tuple to callable or Exception
        Scorers, or what went wrong, by `Job.learns_from`; of what is due alone.
    """

    by_training: dict[str, list[Attacker]]
    jobs: list[Job] = field(default_factory=list, repr=False)
    lacking: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)
    learnt: dict[tuple[str, tuple[DataDir, ...]], Scorer | Exception] = field(default_factory=dict, repr=False)


@one_line
@dataclass(frozen=True)
class ScoreTable:
    """The scores of all conditions, and what came of them besides.

    Attributes
    ----------
    conditions : list of Scored
        By set, scenario, sex and attacker; the trials of both sexes together after those of each.
    failures : list of dict
        Scores that attackers should have given and did not: ``attacker``, ``dataset``, ``gender``, ``scenario``,
        ``scores`` (the file that is missing) and ``reason``.
    fusions : list of dict
        Weights of fusions, as in their files.
    """

    conditions: list[Scored] = field(default_factory=list)
    failures: list[Json] = field(default_factory=list)
    fusions: list[Json] = field(default_factory=list)


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key and the maps of speakers of every trial list, pooled ones too, to ``lists/``."""
    for dataset in sets.datasets:
        enrolled, lists = sets.original[dataset.enrolls].genders, {}
        for gender, name in dataset.trials.items():
            trials = sets.original[name]
            assert trials.trials is not None  # checked before
            names = {*trials.speakers.values(), *trials.trials.model_ids[trials.trials.models]}
            sexes = {speaker: trials.genders.get(speaker) or enrolled.get(speaker, "unknown") for speaker in names}
            lists[gender] = trials.trials, dict(trials.speakers), sexes
        if len(lists) > 1:
            keys, *tables = zip(*lists.values(), strict=True)
            speakers, sexes = ({name: one[name] for one in table for name in one} for table in tables)
            lists[POOLED] = pooled_key(keys), speakers, sexes
        for gender, (key, speakers, sexes) in lists.items():
            folder = run.path(f"lists/{trial_name(dataset, gender)}")
            write_key(folder / "trials", key)
            for file, table in (("utt2spk", speakers), ("spk2gender", sexes)):
                write_text(folder / file, "".join(f"{name} {table[name]}\n" for name in sorted(table)))


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str, draw: int = 1) -> str:
    """Return the folder of the scores of a condition in a draw of the trials, named as the challenge does."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    drawn = suffix if draw == 1 else f"{suffix}-draw{draw}"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"{SCORES}/{attacker}/{enrol}-{trial_name(dataset, gender, drawn if scenario.trials else '')}"


def put_to_work(run: Run, chosen: Sequence[Chosen], seed: int, *, learnt: Path | None = None) -> list[Attacker]:
    """Return the attackers in their order, the built-in ones at work on this run.

    What they learn goes below the output folder of the run, or `learnt`; what they share is the run's in either case.
    """
    output = learnt or run.output
    place = Place(output, run.path(WORK), seed, run.jobs, run.force, speech=run.output)
    attackers: dict[str, Attacker] = {}
    for attacker in sorted(chosen, key=lambda one: getattr(one, "fuses", False)):  # of all others, so they come last
        made = attacker.at(place, attackers) if hasattr(attacker, "at") else attacker
        attackers[attacker.name] = made
        if isinstance(made, Fusion):
            attackers |= {further.name: further for further in made.further()}
    return list(attackers.values())


def attacks_of(sets: Sets, suffix: str) -> Iterator[tuple[Dataset, str, Scenario, int, Attack]]:
    """Every list of trials of one sex in every scenario and draw, with the speech that an attacker has there."""
    for dataset, scenario in product(sets.datasets, SCENARIOS):
        anonymised = sets.twins[dataset.training], *sets.draws.get(dataset.training, ())
        background = Background(sets.original[dataset.training], anonymised)
        training = anonymised if scenario.training else (background.original,)
        original = enrolment = sets.original[dataset.enrolls]
        versions: tuple[DataDir, ...] = ()
        if scenario.enrolment:
            enrolment, versions = sets.twins[dataset.enrolls], sets.draws.get(dataset.enrolls, ())
        draws = range(1, 1 + (sets.tested_draws(dataset) if scenario.trials else 1))
        for (gender, name), draw in product(dataset.trials.items(), draws):
            key = sets.original[name].trials
            assert key is not None  # checked before
            folder = condition_folder(dataset, gender, scenario, suffix, draw).removeprefix(f"{SCORES}/")
            tested = _unlabelled(sets.version(name, draw) if scenario.trials else sets.original[name])
            sides = training, enrolment, tested, key.trials()
            yield dataset, gender, scenario, draw, Attack(folder, *sides, scenario.name, background, versions, original)


_unlabelled = lru_cache(maxsize=256)(without_labels)  # the same object each time: attackers keep what they made of it


def check_attackers(chosen: Sequence[Chosen], sets: Sets, suffix: str) -> None:
    """Check what attackers of others have for the trials, before anything is made; for missing twins by name.

    Raises
    ------
    DataError
        With all that cannot be used, or where an attacker has nothing at all.
    """
    # some can be asked before they are at work
    others: list[Any] = [one for one in chosen if hasattr(one, "lacks")]
    expected = {
        name: replace(original, path=original.path.with_name(f"{original.path.name}{suffix}"))
        for name, original in sets.original.items()
    }
    attacks = [attack for *_, attack in attacks_of(replace(sets, twins={**expected, **sets.twins}, draws={}), suffix)]
    lacking = _lacking(product(others, attacks))
    for attacker in others:
        if all((attacker.name, attack.name) in lacking for attack in attacks if serves(attacker, attack)):
            looked = ", ".join(attack.name for attack in attacks[:3])
            raise DataError(
                f"attacker {attacker.name!r} serves no condition: looked for {looked} and so on",
                remedy="give what it lacks, see docs/own_attackers.md, or leave it out of 'attackers'",
            )


def _lacking(pairs: Iterable[tuple[Attacker, Attack]]) -> dict[tuple[str, str], str]:
    """Why attackers cannot score some lists, by the names of both; all that cannot be used is told."""
    problems, lacking = Problems(), {}
    for attacker, attack in pairs:
        with noted_each(problems):
            if serves(attacker, attack) and (why := attacker.lacks(attack)):
                lacking[attacker.name, attack.name] = why
    problems.raise_if_any()
    return lacking


def train(experiment: Experiment, sets: Sets) -> Attackers:
    """Write the lists of trials, and have every attacker learn that scores are missing of; none learns otherwise.

    Raises
    ------
    DataError
        With all that is wrong with what attackers of others give; or where no attacker serves any condition.
    """
    if not experiment.steps.needs("scores"):
        return Attackers({})
    run, seed = experiment.steps.begin("scores", experiment.run), experiment.config.seed
    write_lists(run, sets)
    by_training: dict[str, list[Attacker]] = {}
    for heard in sets.heard:
        by_training |= dict.fromkeys(heard.training, put_to_work(run, heard.attackers, seed))
    with run.timed("attackers and scores"):
        attackers = _plan(run, sets, by_training, suffix=experiment.suffix, seed=seed)
        _learn_all(run, attackers)
    return attackers


def _plan(run: Run, sets: Sets, by_training: dict[str, list[Attacker]], *, suffix: str, seed: int) -> Attackers:
    """Say what is to be scored: every list of trials by every attacker that can; nothing is made."""
    attacks = list(attacks_of(sets, suffix))
    n_attackers = len(next(iter(by_training.values())))
    pairs = [(by_training[of[0].training][number], of[-1]) for number in range(n_attackers) for of in attacks]
    lacking = _lacking(pairs)
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, condition), why in lacking.items():
        reasons.setdefault((name, why), []).append(condition)
    for (name, why), left in reasons.items():
        where = left[0] if len(left) == 1 else f"{len(left)} conditions, such as {left[0]}"
        logger.warning("%s is left out of %s: %s", name, where, why)
    if lacking and lacking.keys() >= {(attacker.name, attack.name) for attacker, attack in pairs}:
        (name, condition), why = next(iter(lacking.items()))
        raise DataError(f"no attacker serves any condition: {name} lacks for {condition}: {why}")
    quiet = replace(run, quiet=True)  # one line for each scenario says enough
    speech: dict[DataDir, Stamp] = {}
    jobs = []
    for dataset, gender, scenario, draw, attack in attacks:
        for attacker in by_training[dataset.training]:
            can = serves(attacker, attack) and (attacker.name, attack.name) not in lacking
            if can and not isinstance(attacker, Fusion):
                stage = declare_scores(quiet, attack, attacker, seed=seed, speech=speech)
                jobs.append(Job(dataset, gender, scenario, draw, attack, attacker, stage))
    return Attackers(by_training, jobs, lacking)


def declare_scores(
    run: Run,
    attack: Attack,
    attacker: Attacker,
    *,
    seed: int,
    speech: dict[DataDir, Stamp],
    place: str = "",
    parts: Mapping[str, Stage[Scores]] | None = None,
) -> Stage[Scores]:
    """Declare the scores of a list by an attacker; by a fusion, after its `parts`.

    `speech` keeps what stands for data directories: their lists and recordings. `place` stands before the folders in
    the names of stages, where the run is at work below another one.
    """
    for directory in speech_of(attacker, attack):
        if directory not in speech:
            lists = [sorted(directory.speakers.items()), sorted(directory.enrolls or ()), directory.enrolls is None]
            sources = dict(sorted(directory.recordings.items()))
            speech[directory] = run.stamp(f"speech of {directory.path.name}", inputs=lists, sources=sources)
    folder = f"{SCORES}/{attack.name}"
    return run.declare(
        f"scores of {attacker.name} in {place}{folder}",
        f"{folder}/{attacker.name}/scores",
        read=read_scores,
        inputs=[attacker.record(attack), seed, attack.trials],
        after=[*dict.fromkeys(speech[part] for part in speech_of(attacker, attack)), *(parts or {}).values()],
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    )


def _learn_all(run: Run, attackers: Attackers) -> None:
    """Have each attacker learn what it needs for scores that are missing; what fails is kept for `score`.

    One that was ended for its time is not asked again. With `force` the features and statistics that attackers share
    are made again.
    """
    if run.frozen:
        return
    if run.force:
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    given_up: dict[str, Exception] = {}
    for job in attackers.jobs:
        name, known = job.learns_from
        if (name, known) in attackers.learnt or not job.stage.is_due:
            continue
        try:
            found = given_up.get(name) or job.attacker.learn(job.attack)
        except ENDING:
            raise
        except Exception as error:  # whatever it is
            found = error
            if isinstance(error, TimeLimitError):
                given_up[name] = error
        attackers.learnt[name, known] = found


def score(experiment: Experiment, sets: Sets, attackers: Attackers) -> ScoreTable:
    """Make the scores of all conditions that are not up to date: those of single attackers, of fusions, of both sexes.

    Who fails is left out, and is named. What failed is not up to date, so that the next run tries it again; one that
    was ended for its time is not tried again in this run.

    Raises
    ------
    DataError, Exception
        What all attackers fail at that serve a list of trials, where one of ours is among them: it is the data's.
    """
    steps, suffix, seed = experiment.steps, experiment.suffix, experiment.config.seed
    if not steps.needs("scores"):
        return ScoreTable()
    outside = [other.name for other in experiment.attackers if not hasattr(other, "at")]
    run = steps.seen("scores", experiment.run)
    quiet, attempts = replace(run, quiet=True), _Attempts(run, attackers)
    conditions: list[Scored] = []
    with run.timed("attackers and scores"):
        for (dataset, scenario), of_scenario in groupby(attackers.jobs, lambda job: (job.dataset, job.scenario)):
            started, made = time.perf_counter(), list[Job]()
            for _, jobs in groupby(of_scenario, lambda job: job.gender):
                scored = attempts.make_all(list(jobs), outside)
                made += scored + attempts.make_all(list(_fusions(quiet, scored, attackers, seed)), None)
            n_draws = sets.tested_draws(dataset) if scenario.trials else 1
            found = list(_conditions(quiet, sets, made, attackers, suffix, n_draws))
            seconds = time.perf_counter() - started
            logger.info("%s %s: scores of %d conditions after %.1f s", dataset.name, scenario.name, len(found), seconds)
            conditions += found
    if not run.frozen:
        if attempts.failed:
            write_json(run.path(FAILURES), attempts.failed)
        else:
            run.path(FAILURES).unlink(missing_ok=True)
    failures = [{key: note[key] for key in note if key != "fingerprint"} for note in attempts.failed.values()]
    files: dict[str, list[str]] = {}
    for condition in conditions:
        for file in condition.weights:
            files.setdefault(file, []).append(condition.scores[1])
    fusions = [{"file": file, "scores": used, **load_json(run.path(file))} for file, used in files.items()]
    steps.failures[:] = failures
    steps.end("scores", f"{len(conditions)} conditions by {', '.join(experiment.config.attackers)}")
    return ScoreTable(conditions, failures, fusions)


def _fusions(run: Run, scored: Sequence[Job], attackers: Attackers, seed: int) -> Iterator[Job]:
    """Yield what fusions score: lists of trials that others, of whom they take some, have scored."""
    speech: dict[DataDir, Stamp] = {}
    for _, of_draw in groupby(scored, lambda job: job.draw):
        others = list(of_draw)
        attack = others[0].attack
        for fusion in attackers.by_training[others[0].dataset.training]:
            if isinstance(fusion, Fusion) and serves(fusion, attack):
                parts = {job.attacker.name: job.stage for job in others if fusion.takes(job.attacker.name)}
                if parts and (fusion.name, attack.name) not in attackers.lacking:
                    stage = declare_scores(run, attack, fusion, seed=seed, speech=speech, parts=parts)
                    yield replace(others[0], attacker=fusion, stage=stage, parts=parts)


def _conditions(
    run: Run, sets: Sets, made: Sequence[Job], attackers: Attackers, suffix: str, n_draws: int
) -> Iterator[Scored]:
    """Yield the conditions of a scenario that have scores of the first draw; then those of both sexes, put together."""
    if not made:
        return
    dataset, scenario = made[0].dataset, made[0].scenario
    jobs = {(job.attacker.name, job.gender, job.draw): job for job in made}
    together = {gender: [gender] for gender in dataset.trials}
    together |= {POOLED: list(dataset.trials)} if len(dataset.trials) > 1 else {}
    for gender, sexes in together.items():
        keys = [sets.original[dataset.trials[sex]].trials for sex in sexes]
        tested = tuple(len(np.unique(key.segments)) for key in keys if key is not None)
        for attacker in attackers.by_training[dataset.training]:
            stages, lacking, weights = {}, [], dict[str, None]()
            for draw in range(1, 1 + n_draws):
                parts = [jobs.get((attacker.name, sex, draw)) for sex in sexes]
                found = [job for job in parts if job is not None]
                if len(found) < len(parts):
                    lacking.append(draw)
                    continue
                stages[draw] = found[0].stage
                if len(found) > 1:
                    folder = condition_folder(dataset, gender, scenario, suffix, draw)
                    stages[draw] = _pooled(run, attacker.name, folder, [job.stage for job in found])
                elif isinstance(attacker, Fusion):
                    file = attacker.file(found[0].attack, list(found[0].parts))
                    weights[str(file.relative_to(run.output))] = None
            if 1 not in lacking:
                yield Scored(
                    *(dataset.name, gender, scenario.name, attacker.name, f"lists/{trial_name(dataset, gender)}"),
                    scores={draw: stage.artefact for draw, stage in stages.items()},
                    made_from=tuple(stage.fingerprint for stage in stages.values()),
                    level=level_of(attacker),
                    content=getattr(attacker, "content", ""),
                    tested=tested,
                    lacking=tuple(lacking),
                    weights=tuple(weights),
                )


def _pooled(run: Run, attacker: str, folder: str, stages: Sequence[Stage[Scores]]) -> Stage[Scores]:
    """Put the scores of all sexes together."""
    return run.stage(
        f"scores of {attacker} in {folder}",
        f"{folder}/{attacker}/scores",
        make=lambda path: write_scores(path, joined([stage.value for stage in stages])),
        read=read_scores,
        after=stages,
    )


def joined(lists: Sequence[Scores]) -> Scores:
    """Return the scores of several lists of trials as those of one."""
    models = [model for scores in lists for model in scores.model_ids[scores.models]]
    segments = [segment for scores in lists for segment in scores.segment_ids[scores.segments]]
    return Scores.from_ids(models, segments, np.concatenate([scores.values for scores in lists]))


class _Attempts:
    """Makes scores, and remembers who failed: what is noted in ``failures.json``, by the file that is missing."""

    def __init__(self, run: Run, attackers: Attackers) -> None:
        self.failed: dict[str, Json] = {}
        self._run, self._learnt, self._given_up = run, attackers.learnt, dict[str, Exception]()
        self._names = {job.attacker.name for job in attackers.jobs}
        self._earlier = load_json(run.path(FAILURES)) if run.path(FAILURES).is_file() else {}

    def make_all(self, jobs: Sequence[Job], outside: Collection[str] | None) -> list[Job]:
        """Make the scores of one list of trials in all draws; return the jobs that are done.

        Where all attackers failed and not all of them are `outside`, of others, it is an error; None: it is none.
        """
        done: list[Job] = []
        errors: dict[str, Exception | None] = {}  # of first draws
        for job in jobs:
            error, name, file = self._make(job), job.attacker.name, job.stage.artefact
            if error is None:
                done.append(job)
            else:
                reason = " ".join(reason_of(error).split())
                place = {"dataset": job.dataset.name, "gender": job.gender, "scenario": job.scenario.name}
                note = {"fingerprint": job.stage.fingerprint, "attacker": name, **place}
                self.failed[file] = {**note, "scores": file, "reason": reason}
                logger.warning("%s: %s has no scores: %s", Path(file).parents[1], name, reason)
                if not isinstance(error, SpkverError):
                    logger.info("%s", name, exc_info=error, extra={"file_only": True})
            if job.draw == 1:
                errors[name] = error
        failed = {name: error for name, error in errors.items() if error is not None}
        have_all_failed = failed and len(failed) == len(errors) and outside is not None
        if have_all_failed and (failed.keys() - set(outside or ()) or failed.keys() == self._names):
            if len({str(error) for error in failed.values()}) == 1:
                raise next(iter(failed.values()))
            problems = Problems()
            for name, error in failed.items():
                told = error if isinstance(error, DataError) else DataError(f"attacker {name!r}: {reason_of(error)}")
                problems.note(told)
            problems.raise_if_any()
        return done

    def _make(self, job: Job) -> Exception | None:
        stage, name = job.stage, job.attacker.name
        noted = self._earlier.get(stage.artefact, {})
        if self._run.frozen and noted.get("fingerprint") == stage.fingerprint and stage.state() != "done":
            return DataError(noted["reason"])
        if self._run.frozen or not stage.is_due:
            stage.bring_up_to_date()
            return None
        if name in self._given_up:
            return self._given_up[name]
        try:
            with stage.run.timed(stage.name):
                if isinstance(job.attacker, Fusion):
                    found = job.attacker.fuse(job.attack, {name: part.value for name, part in job.parts.items()})
                else:
                    scorer = self._learnt[job.learns_from]
                    if isinstance(scorer, Exception):
                        raise scorer
                    found = scorer(job.attack)
            stage.bring_up_to_date(partial(write_scores, scores=found))
        except ENDING:
            raise
        except Exception as error:
            if isinstance(error, TimeLimitError):
                self._given_up[name] = error
            return error
        return None


def reason_of(error: Exception) -> str:
    """Return in words what went wrong; of an error of others with its kind."""
    return str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"
