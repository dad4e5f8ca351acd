"""Scenarios, training of the attackers, and the scores of every condition.

============== ============ ============ ==============
scenario       enrolment    trials       attacker
============== ============ ============ ==============
original       original     original     ASV_eval
ignorant       original     anonymised   ASV_eval
lazy-informed  anonymised   anonymised   ASV_eval
semi-informed  anonymised   anonymised   ASV_eval^anon
============== ============ ============ ==============

ASV_eval is trained on original speech, ASV_eval^anon on the same speech anonymised, in several versions if the
anonymiser is available. The key is always the key of the original trial list. If the enrolment is anonymised several
times, an attacker enrols with all versions. Each version of the trials is scored separately, in its own folder.

    OUTPUT/lists/<trials>/                         keys, speakers and sexes
    OUTPUT/exp/asv_.../<enrol>-<trials>/NAME/scores    scores, in folders with the challenge's names

`train` plans the scoring and trains every attacker whose scores are missing; `score` computes them. An attacker that
fails is left out and named in the report; the others go on.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_key, write_scores
from evaluation.trials import SCENARIOS, TRIAL_BY_TRIAL, Scenario, Scores
from spkbase.errors import DataError, Problems, SpkverError
from spkbase.files import load_json, write_text
from spkbase.plugins import TimeLimitError
from spkbase.runs import Run, Stage, Stamp
from spkbase.showing import one_line
from spkver.attackers import (
    ENDING,
    Attack,
    Attacker,
    Fusion,
    Place,
    Scorer,
    TrainingSet,
    is_supplied,
    learns_from,
    level_of,
    put_to_work,
    serves,
    speech_of,
)
from spkver.datadir import DataDir, without_labels
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, noted_each, pooled_key

logger = logging.getLogger(__name__)

Json = dict[str, Any]

SCORES = "exp"  # the challenge's name
WORK = "work"  # features and statistics that the attackers share; may be removed

_unlabelled = lru_cache(maxsize=256)(without_labels)  # always the same object: attackers cache results by it


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


@dataclass(frozen=True)
class Job:
    """A trial list of one sex, in one draw, that one attacker scores; `parts` maps attackers to scores to be fused."""

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
        """The attacker's name, and the data directories that it learns from."""
        return self.attacker.name, learns_from(self.attacker, self.attack)


@one_line
@dataclass(frozen=True)
class Attackers:
    """The attackers, their jobs, and the trained scorers.

    Attributes
    ----------
    by_training : dict of str to list of Attacker
        Training set to attackers, in the order of the configuration, with features that fit its sampling rates.
    jobs : list of Job
        Jobs of fusions are added when the other attackers have scored.
    lacking : dict of (str, str) to str
        Reason why an attacker cannot score an attack, by the names of both.
    learnt : dict of tuple to callable or Exception
        Scorers (or the exception) by `Job.learns_from`, only for jobs that are due.
    timed_out : dict of str to Exception
        Attackers that exceeded the time limit; they are not called again in this run.
    """

    by_training: dict[str, list[Attacker]]
    jobs: list[Job] = field(default_factory=list, repr=False)
    lacking: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)
    learnt: dict[tuple[str, tuple[DataDir, ...]], Scorer | Exception] = field(default_factory=dict, repr=False)
    timed_out: dict[str, Exception] = field(default_factory=dict, repr=False)

    @contextmanager
    def attempt(self, name: str) -> Iterator[list[Exception]]:
        """Yield a list that receives the error if the attacker fails; `ENDING` exceptions end the run."""
        errors: list[Exception] = []
        try:
            yield errors
        except ENDING:
            raise
        except TimeLimitError as error:
            errors.append(self.timed_out.setdefault(name, error))
        except Exception as error:  # whatever fails, the other attackers go on
            errors.append(error)


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key, the speakers and the sexes of every trial list, also of pooled ones, to ``lists/``."""
    for dataset in sets.datasets:
        enrolled, lists = sets.original[dataset.enrolls].sexes, {}
        for gender, name in dataset.trials.items():
            trials = sets.original[name]
            assert trials.trials is not None  # checked before
            names = {*trials.speakers.values(), *trials.trials.model_ids[trials.trials.models]}
            sexes = {speaker: trials.sexes.get(speaker) or enrolled.get(speaker, "unknown") for speaker in names}
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
    """Return the name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str, draw: int = 1) -> str:
    """Return the folder of a condition's scores in a draw of the trials, with the challenge's name."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    drawn = suffix if draw == 1 else f"{suffix}-draw{draw}"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"{SCORES}/{attacker}/{enrol}-{trial_name(dataset, gender, drawn if scenario.trials else '')}"


def attacks_of(sets: Sets, suffix: str) -> Iterator[tuple[Dataset, str, Scenario, int, Attack]]:
    """Yield every trial list of one sex in every scenario and draw, with the speech that the attacker has."""
    for dataset, scenario in product(sets.datasets, SCENARIOS):
        enrolment = sets.versions[dataset.enrolls] if scenario.enrolment else (sets.original[dataset.enrolls],)
        speech = sets.original[dataset.training], sets.versions[dataset.training]
        learnt_from = f"asv_anon{suffix}" if scenario.training else "asv_orig"
        training = TrainingSet(*speech, on_anonymised=scenario.training, name=learnt_from)
        draws = range(1, 1 + (sets.tested_draws(dataset) if scenario.trials else 1))
        for (gender, name), draw in product(dataset.trials.items(), draws):
            key = sets.original[name].trials
            assert key is not None  # checked before
            tested = _unlabelled(sets.versions[name][draw - 1] if scenario.trials else sets.original[name])
            yield dataset, gender, scenario, draw, Attack(training, enrolment, tested, key.trials(), scenario.name)


def check_attackers(chosen: Sequence[Attacker], sets: Sets, suffix: str) -> None:
    """Check before the first long step that user-supplied attackers can score the trials.

    Missing twins are represented by their names.

    Raises
    ------
    DataError
        With all unusable files, or if an attacker can score no condition.
    """
    others = [one for one in chosen if is_supplied(one)]
    expected = {
        name: (replace(original, path=original.path.with_name(f"{original.path.name}{suffix}")),)
        for name, original in sets.original.items()
    }
    attacks = [attack for *_, attack in attacks_of(replace(sets, versions=expected | sets.versions), suffix)]
    lacking = _lacking(product(others, attacks))
    for attacker in others:
        if all((attacker.name, attack.name) in lacking for attack in attacks if serves(attacker, attack)):
            looked = ", ".join(attack.name for attack in attacks[:3])
            raise DataError(
                f"attacker {attacker.name!r} can score no condition: looked for {looked} and so on",
                remedy="give what it lacks, see docs/own_attackers.md, or leave it out of 'attackers'",
            )


def train(experiment: Experiment, sets: Sets) -> Attackers:
    """Write the trial lists, and train every attacker whose scores are missing.

    Raises
    ------
    DataError
        With all errors of user-supplied attackers, or if no attacker can score any condition.
    """
    experiment.begin("scores")
    run, seed = experiment.run, experiment.config.seed
    write_lists(run, sets)
    by_training: dict[str, list[Attacker]] = {}
    place = Place(run.output, run.path(WORK), seed, run.jobs, run.force, speech=run.output)
    for group in sets.rate_groups:
        by_training |= dict.fromkeys(group.training, put_to_work(group.attackers, place))
    with run.timed("attackers and scores"):
        attacks = list(attacks_of(sets, experiment.suffix))
        pairs = [(attacker, of[-1]) for of in attacks for attacker in by_training[of[0].training]]
        lacking = _lacking(pairs)
        reasons: dict[tuple[str, str], list[str]] = {}
        for (name, condition), why in lacking.items():
            reasons.setdefault((name, why), []).append(condition)
        for (name, why), left in reasons.items():
            where = left[0] if len(left) == 1 else f"{len(left)} conditions, such as {left[0]}"
            logger.warning("%s is left out of %s: %s", name, where, why)
        if lacking and lacking.keys() >= {(attacker.name, attack.name) for attacker, attack in pairs}:
            (name, condition), why = next(iter(lacking.items()))
            raise DataError(f"no attacker can score any condition: {name} on {condition}: {why}")
        attackers, speech = Attackers(by_training, lacking=lacking), dict[DataDir, Stamp]()
        for dataset, gender, scenario, draw, attack in attacks:
            for attacker in by_training[dataset.training]:
                can = serves(attacker, attack) and (attacker.name, attack.name) not in lacking
                if can and not isinstance(attacker, Fusion):  # quiet: one line for each scenario is enough
                    stage = declare_scores(replace(run, quiet=True), attack, attacker, seed=seed, speech=speech)
                    attackers.jobs.append(Job(dataset, gender, scenario, draw, attack, attacker, stage))
        if run.force:  # shared features and statistics are computed again
            shutil.rmtree(run.path(WORK), ignore_errors=True)
        for job in attackers.jobs:
            name, key = job.attacker.name, job.learns_from
            if key not in attackers.learnt and job.stage.is_due:
                with attackers.attempt(name) as errors:
                    attackers.learnt[key] = attackers.timed_out.get(name) or job.attacker.fit(job.attack.training)
                if errors:
                    attackers.learnt[key] = errors[0]
    return attackers


def declare_scores(
    run: Run,
    attack: Attack,
    attacker: Attacker,
    *,
    seed: int,
    speech: dict[DataDir, Stamp],
    parts: Mapping[str, Stage[Scores]] | None = None,
) -> Stage[Scores]:
    """Declare the stage that scores a trial list; a fusion depends on its `parts`.

    `speech` caches the stamps of data directories, which hold their lists and recordings.
    """
    used = speech_of(attacker, attack)
    for directory in used:
        if directory not in speech:
            lists = [sorted(directory.speakers.items()), sorted(directory.enrolls or ()), directory.enrolls is None]
            sources = dict(sorted(directory.recordings.items()))
            speech[directory] = run.stamp(f"speech of {directory.path.name}", inputs=lists, sources=sources)
    folder = f"{SCORES}/{attack.name}"
    return run.declare(
        f"scores of {attacker.name} in {folder}",
        f"{folder}/{attacker.name}/scores",
        read=read_scores,
        inputs=[attacker.record(attack), seed, attack.trials],
        after=[*dict.fromkeys(speech[directory] for directory in used), *(parts or {}).values()],
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    )


def score(experiment: Experiment, sets: Sets, attackers: Attackers) -> list[Scored]:
    """Compute all scores that are not up to date: of single attackers, of fusions, and of both sexes together.

    An attacker that fails is left out and named in `Experiment.failures`. Failed stages are not up to date, so the next
    run tries them again.

    Returns
    -------
    list of Scored
        By set, scenario, sex and attacker; pooled trials follow the trials of each sex.

    Raises
    ------
    DataError, Exception
        If all attackers of a trial list fail and a built-in one is among them: then the data are at fault.
    """
    run, seed = experiment.run, experiment.config.seed
    outside = {other.name for other in experiment.attackers if is_supplied(other)}
    conditions: list[Scored] = []
    with run.timed("attackers and scores"):
        for (dataset, scenario), of_scenario in groupby(attackers.jobs, lambda job: (job.dataset, job.scenario)):
            started, made = time.perf_counter(), list[Job]()
            for _, of_list in groupby(of_scenario, lambda job: job.gender):
                jobs = list(of_list)
                scored, failed = _make_scores(jobs, attackers)
                _raise_if_all_failed(jobs, failed, attackers, outside)
                fused, not_fused = _make_scores(list(_fusions(run, scored, attackers, seed)), attackers)
                made += scored + fused
                for job, error in failed + not_fused:
                    names = {"attacker": job.attacker.name, "dataset": dataset.name, "gender": job.gender}
                    what = {"scenario": scenario.name, "scores": job.stage.artefact, "reason": reason_of(error)}
                    experiment.failures.append(names | what)
            found = list(_conditions(run, sets, made, attackers, experiment.suffix)) if made else []
            seconds = time.perf_counter() - started
            logger.info("%s, %s: %d lists of trials scored in %.1f s", dataset.name, scenario.name, len(found), seconds)
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


def _lacking(pairs: Iterable[tuple[Attacker, Attack]]) -> dict[tuple[str, str], str]:
    """Return the reasons why attackers cannot score trial lists, by the names of both; unusable files are an error."""
    problems, lacking = Problems(), {}
    for attacker, attack in pairs:
        with noted_each(problems):
            if serves(attacker, attack) and (why := attacker.lacks(attack)):
                lacking[attacker.name, attack.name] = why
    problems.raise_if_any()
    return lacking


def _make_scores(jobs: Sequence[Job], attackers: Attackers) -> tuple[list[Job], list[tuple[Job, Exception]]]:
    """Bring scores up to date; return the finished jobs, and the failed jobs with their errors."""
    done, failed = [], []
    for job in jobs:
        name, stage, make = job.attacker.name, job.stage, None
        with attackers.attempt(name) as errors:
            if stage.is_due:
                scorer = attackers.timed_out.get(name) or attackers.learnt.get(job.learns_from)
                if isinstance(scorer, Exception):
                    raise scorer
                with stage.run.timed(stage.name):
                    if isinstance(job.attacker, Fusion):
                        parts = {part: of.value for part, of in job.parts.items()}
                        scores = job.attacker.fuse(job.attack.training, parts)
                    else:
                        assert scorer is not None  # `train` has trained it
                        scores = job.attack.scored_by(scorer)
                make = partial(write_scores, scores=scores)
            stage.bring_up_to_date(make)
        if not errors:
            done.append(job)
            continue
        failed.append((job, errors[0]))
        logger.warning("%s: %s has no scores: %s", Path(stage.artefact).parents[1], name, reason_of(errors[0]))
        if not isinstance(errors[0], SpkverError):
            logger.info("%s", name, exc_info=errors[0], extra={"file_only": True})
    return done, failed


def _raise_if_all_failed(
    jobs: Sequence[Job], failed: Sequence[tuple[Job, Exception]], attackers: Attackers, outside: Collection[str]
) -> None:
    """Raise the errors of a trial list if all its attackers fail.

    Nothing is raised if all of them are in `outside` and other attackers have jobs.
    """
    errors = {job.attacker.name: error for job, error in failed if job.draw == 1}
    if not errors or errors.keys() != {job.attacker.name for job in jobs}:
        return
    if errors.keys() <= set(outside) and errors.keys() != {job.attacker.name for job in attackers.jobs}:
        return
    if len({str(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    problems = Problems()
    for name, error in errors.items():
        problems.note(error if isinstance(error, DataError) else DataError(f"attacker {name!r}: {reason_of(error)}"))
    problems.raise_if_any()


def _fusions(run: Run, scored: Sequence[Job], attackers: Attackers, seed: int) -> Iterator[Job]:
    """Yield the jobs of fusions: trial lists that at least one of their members has scored."""
    quiet, speech = replace(run, quiet=True), dict[DataDir, Stamp]()
    for _, of_draw in groupby(scored, lambda job: job.draw):
        others = list(of_draw)
        attack = others[0].attack
        for fusion in attackers.by_training[others[0].dataset.training]:
            if isinstance(fusion, Fusion) and serves(fusion, attack):
                parts = {job.attacker.name: job.stage for job in others if fusion.takes(job.attacker.name)}
                if parts and (fusion.name, attack.name) not in attackers.lacking:
                    stage = declare_scores(quiet, attack, fusion, seed=seed, speech=speech, parts=parts)
                    yield replace(others[0], attacker=fusion, stage=stage, parts=parts)


def _conditions(run: Run, sets: Sets, made: Sequence[Job], attackers: Attackers, suffix: str) -> Iterator[Scored]:
    """Yield the conditions of a scenario that have scores of the first draw; pooled sexes come last."""
    dataset, scenario = made[0].dataset, made[0].scenario
    draws = range(1, 1 + (sets.tested_draws(dataset) if scenario.trials else 1))
    jobs = {(job.attacker.name, job.gender, job.draw): job for job in made}
    sides = {gender: [gender] for gender in dataset.trials}
    if len(dataset.trials) > 1:
        sides[POOLED] = list(dataset.trials)
    for (gender, sexes), attacker in product(sides.items(), attackers.by_training[dataset.training]):
        keys = [sets.original[dataset.trials[sex]].trials for sex in sexes]
        stages: dict[int, Stage[Scores]] = {}
        weights: dict[str, None] = {}
        for draw in draws:
            parts = [job for sex in sexes if (job := jobs.get((attacker.name, sex, draw)))]
            if len(parts) < len(sexes):
                if draw == 1:
                    break
                continue
            stages[draw] = parts[0].stage
            if len(sexes) > 1:  # all sexes together
                folder = condition_folder(dataset, gender, scenario, suffix, draw)
                both = [job.stage for job in parts]
                stages[draw] = replace(run, quiet=True).stage(
                    f"scores of {attacker.name} in {folder}",
                    f"{folder}/{attacker.name}/scores",
                    make=lambda path, both=both: write_scores(path, joined([stage.value for stage in both])),
                    read=read_scores,
                    after=both,
                )
            elif isinstance(attacker, Fusion):
                file = attacker.file(parts[0].attack.training, list(parts[0].parts))
                weights[str(file.relative_to(run.output))] = None
        if 1 in stages:
            yield Scored(
                dataset=dataset.name,
                gender=gender,
                scenario=scenario.name,
                attacker=attacker.name,
                lists=f"lists/{trial_name(dataset, gender)}",
                scores={draw: stage.artefact for draw, stage in stages.items()},
                made_from=tuple(stage.fingerprint for stage in stages.values()),
                level=level_of(attacker),
                content=getattr(attacker, "content", ""),
                tested=tuple(len(np.unique(key.segments)) for key in keys if key is not None),
                lacking=tuple(draw for draw in draws if draw not in stages),
                weights=tuple(weights),
            )
