"""Who attacks what: the scenarios, the attackers' training, and the scores of every condition.

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

**Where scores and lists of an evaluation stand, in folders that are named as the challenge names them.**
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_key, write_scores
from evaluation.reports import SCENARIOS, TRIAL_BY_TRIAL, Scenario
from evaluation.trials import Key, Scores
from spkbase.errors import DataError, Problems
from spkbase.files import write_text
from spkbase.runs import Run, Stage, Stamp
from spkver.attackers import (
    ENDING,
    Attack,
    Attacker,
    AttackerConfig,
    Background,
    BackgroundAttacker,
    Classics,
    Fusion,
    Place,
    Scorer,
    Wanted,
    WantedFusion,
    Workplace,
    level_of,
)
from spkver.datadir import DataDir, without_labels
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, note_each, pooled_key

logger = logging.getLogger(__name__)

SCORES = "exp"  # as in the challenge


@dataclass(frozen=True)
class Scored:
    """The scores of one condition; paths are those of files in the output folder.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        What they are of; gender is "f", "m" or "all".
    folder : str
        ``exp/asv_.../<enrol>-<trial>``, relative to the output folder.
    lists : str
        Folder of the key (``trials``) and of ``utt2spk`` and ``spk2gender``, relative to the output folder.
    further : tuple of (int, str)
        Number and folder of each draw beyond the first that the attacker scored.
    level : str
        What the attacker may look at, see `evaluation.reports.LEVELS`.
    content : str
        Where the attacker reads what is said: "oracle" if the transcripts come with the data, else "recognised".
    tested : tuple of int
        Recordings that each of its lists of trials tests: what a whole-list attacker adapts to.
    lacking : tuple of int
        Draws that there are, and that the attacker could not score.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    folder: str
    lists: str
    further: tuple[tuple[int, str], ...] = ()
    level: str = TRIAL_BY_TRIAL
    content: str = ""
    tested: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()

    @property
    def scores(self) -> str:
        """File of the scores of the first draw, relative to the output folder."""
        return f"{self.folder}/{self.attacker}/scores"

    @property
    def draws(self) -> dict[int, str]:
        """File of the scores of each draw by its number, relative to the output folder."""
        return {1: self.scores} | {number: f"{folder}/{self.attacker}/scores" for number, folder in self.further}

    @property
    def key(self) -> str:
        """File of the key, relative to the output folder."""
        return f"{self.lists}/trials"


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key and the maps of speakers of every trial list, pooled ones too, to ``lists/``."""
    for dataset in sets.datasets:
        keys = []
        speakers: dict[str, str] = {}
        genders: dict[str, str] = {}
        enrolled = sets.original[dataset.enrolls].genders
        for gender, name in dataset.trials.items():
            trials = sets.original[name]
            assert trials.trials is not None  # checked before
            names = {*trials.speakers.values(), *trials.trials.model_ids[trials.trials.models]}
            sexes = {speaker: trials.genders.get(speaker) or enrolled.get(speaker, "unknown") for speaker in names}
            _write_list(run, lists_of(dataset, gender), trials.trials, trials.speakers, sexes)
            keys.append(trials.trials)
            speakers |= trials.speakers
            genders |= sexes
        if len(keys) > 1:
            _write_list(run, lists_of(dataset, POOLED), pooled_key(keys), speakers, genders)


def lists_of(dataset: Dataset, gender: str) -> str:
    """Return the folder of the lists of a condition."""
    return f"lists/{trial_name(dataset, gender)}"


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str, draw: int = 1) -> str:
    """Return the folder of the scores of a condition in a draw of the trials, named as the challenge does."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    drawn = suffix if draw == 1 else f"{suffix}-draw{draw}"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"{SCORES}/{attacker}/{enrol}-{trial_name(dataset, gender, drawn if scenario.trials else '')}"


def _write_list(run: Run, folder: str, key: Key, speakers: Mapping[str, str], genders: Mapping[str, str]) -> None:
    write_key(run.path(f"{folder}/trials"), key)
    for name, table in (("utt2spk", speakers), ("spk2gender", genders)):
        write_text(
            run.path(f"{folder}/{name}"),
            "".join(f"{identifier} {table[identifier]}\n" for identifier in sorted(table)),
        )


Chosen = AttackerConfig | Attacker | Wanted
"""An attacker as it is configured: a built-in one, one of somebody else's, or one that needs a place to work at."""

WORK = "work"  # features and statistics, which the attackers share; may be removed


@dataclass(frozen=True)
class Condition:
    """A condition with the stages that make its scores, one a draw; those of both sexes are those of each together."""

    scored: Scored
    stages: tuple[Stage[Scores], ...]
    weights: tuple[str, ...] = ()
    """Files of the weights of a fusion, relative to the output folder."""

    @property
    def stage(self) -> Stage[Scores]:
        """The stage of the first draw."""
        return self.stages[0]


def declare_scores(
    run: Run,
    sets: Sets,
    attackers: Sequence[Attacker],
    *,
    suffix: str,
    seed: int,
    failed: Collection[tuple[str, str]] = (),
    fitted: Mapping[str, Sequence[Attacker]] | None = None,
) -> list[Condition]:
    """Declare the scores of every condition with every attacker; nothing is trained before some are asked for.

    Parameters
    ----------
    run : Run
    sets : Sets
    attackers : sequence of Attacker
    suffix : str
    seed : int
    failed : collection of (str, str)
        Attackers, and the names of attacks at which they failed.
    fitted : mapping of str to sequence of Attacker, optional
        Training sets for which attackers of the same names stand in place of these, see `Heard`.

    Returns
    -------
    list of Condition
        By set, scenario, sex and attacker; the trials of both sexes together after those of each. Conditions that an
        attacker of somebody else cannot serve are missing; the log says why.

    Raises
    ------
    DataError
        With all that is wrong with what others give.
    """
    quiet = replace(run, quiet=True)  # one line for each scenario says enough
    attacks = {
        (dataset.name, gender, scenario.name, draw): attack
        for dataset, gender, scenario, draw, attack in attacks_of(sets, suffix)
    }
    by_dataset = {dataset.name: (fitted or {}).get(dataset.training, attackers) for dataset in sets.datasets}
    lacking = _lacking(
        (by_dataset[place[0]][number], attacks[place]) for number in range(len(attackers)) for place in attacks
    )
    if not failed:  # else it was said before
        _tell_lacking(
            lacking, product((attacker.name for attacker in attackers), (attack.name for attack in attacks.values()))
        )
    lacking |= dict.fromkeys(failed, "it failed")
    scorer = ScoreMaker(quiet, seed)
    conditions = []
    for dataset in sets.datasets:
        attackers = by_dataset[dataset.name]
        tested = {
            gender: len(np.unique(attacks[dataset.name, gender, "original", 1].trials.segments))
            for gender in dataset.trials
        }
        for scenario in SCENARIOS:
            draws = range(1, 1 + (sets.tested_draws(dataset) if scenario.trials else 1))
            parts: dict[str, list[dict[int, Stage[Scores]]]] = {attacker.name: [] for attacker in attackers}
            for gender in dataset.trials:
                for attacker in attackers:
                    served = {draw: attacks[dataset.name, gender, scenario.name, draw] for draw in draws}
                    stages = {
                        draw: scorer.stage(attack, attacker)
                        for draw, attack in served.items()
                        if serves(attacker, attack)
                        and (attacker.name, attack.name) not in lacking
                        and not (isinstance(attacker, Fusion) and not scorer.fused(attacker, attack))
                    }
                    if 1 in stages:
                        parts[attacker.name].append(stages)
                        place = _Place(dataset, gender, scenario, suffix, draws, (tested[gender],))
                        weights = tuple(dict.fromkeys(scorer.weights[stage.name] for stage in stages.values()))
                        conditions.append(
                            replace(_condition(place, attacker, stages), weights=tuple(filter(None, weights)))
                        )
            if len(dataset.trials) > 1:
                for attacker in attackers:
                    of_sexes = parts[attacker.name]
                    if len(of_sexes) == len(dataset.trials):
                        place = _Place(dataset, POOLED, scenario, suffix, draws, tuple(tested.values()))
                        conditions.append(_condition(place, attacker, _pooled(quiet, attacker.name, place, of_sexes)))
    return conditions


def declare_attackers(run: Run, chosen: Sequence[Chosen], seed: int, *, learnt: Path | None = None) -> list[Attacker]:
    """Return the attackers in their order, the built-in ones at work on this run; each learns when a score asks it to.

    What they learn goes below the output folder of the run, or `learnt`; what they share is the run's in either case.
    """
    output = learnt or run.output
    configs = [attacker for attacker in chosen if isinstance(attacker, AttackerConfig)]
    work = Workplace(run.path(WORK), run.jobs, run.device)
    classics = iter(Classics(configs, output / "attackers", work, seed, run.force).attackers())
    place = Place(output, run.path(WORK), seed, run.jobs, run.device, run.force, speech=run.output)
    attackers: dict[str, Attacker] = {}
    for attacker in sorted(chosen, key=lambda one: isinstance(one, WantedFusion)):  # of all others, so they come last
        if isinstance(attacker, AttackerConfig):
            attackers[attacker.name] = next(classics)
            continue
        made = attacker.at(place, attackers) if isinstance(attacker, Wanted) else attacker
        attackers[attacker.name] = made
        if isinstance(made, Fusion):
            attackers |= {further.name: further for further in made.further()}
    return list(attackers.values())


def attacks_of(sets: Sets, suffix: str) -> Iterator[tuple[Dataset, str, Scenario, int, Attack]]:
    """Every list of trials of one sex in every scenario and draw, with the speech that an attacker has there."""
    for dataset in sets.datasets:
        for scenario in SCENARIOS:
            anonymised = sets.twins[dataset.training], *sets.draws.get(dataset.training, ())
            background = Background(sets.original[dataset.training], anonymised)
            training = anonymised if scenario.training else (background.original,)
            draws = sets.tested_draws(dataset) if scenario.trials else 1
            for (gender, name), draw in product(dataset.trials.items(), range(1, 1 + draws)):
                key = sets.original[name].trials
                assert key is not None  # checked before
                folder = condition_folder(dataset, gender, scenario, suffix, draw).removeprefix(f"{SCORES}/")
                enrol = _side(sets, dataset.enrolls, scenario.enrolment, 1)
                versions = sets.draws.get(dataset.enrolls, ()) if scenario.enrolment else ()
                tested = _unlabelled(_side(sets, name, scenario.trials, draw))
                sides = training, enrol, tested, key.trials()
                heard = background, versions, sets.original[dataset.enrolls]
                yield dataset, gender, scenario, draw, Attack(folder, *sides, scenario.name, *heard)


_unlabelled = lru_cache(maxsize=256)(without_labels)  # the same object each time: attackers keep what they made of it


def serves(attacker: Attacker, attack: Attack) -> bool:
    """Return whether a scenario is one that an attacker is made for."""
    return not isinstance(attacker, BackgroundAttacker) or attack.scenario in attacker.scenarios


def check_attackers(chosen: Sequence[Chosen], sets: Sets, suffix: str) -> None:
    """Check what attackers of others have for the trials, before anything is made; for missing twins by name.

    Raises
    ------
    DataError
        With all that cannot be used, or where an attacker has nothing at all.
    """
    # some can be asked before they are at work
    others: list[Any] = [
        attacker for attacker in chosen if not isinstance(attacker, AttackerConfig) and hasattr(attacker, "lacks")
    ]
    if not others:
        return
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
    problems = Problems()
    lacking: dict[tuple[str, str], str] = {}
    for attacker, attack in pairs:
        if not serves(attacker, attack):
            continue
        try:
            if why := attacker.lacks(attack):
                lacking[attacker.name, attack.name] = why
        except DataError as error:
            note_each(problems, error)
    problems.raise_if_any()
    return lacking


def _tell_lacking(lacking: Mapping[tuple[str, str], str], wanted: Iterable[tuple[str, str]]) -> None:
    """Warn of what attackers are left out of, by reason; an error where they are left out of all that is wanted."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, condition), why in lacking.items():
        reasons.setdefault((name, why), []).append(condition)
    for (name, why), left in reasons.items():
        where = left[0] if len(left) == 1 else f"{len(left)} conditions, such as {left[0]}"
        logger.warning("%s is left out of %s: %s", name, where, why)
    if lacking and lacking.keys() >= set(wanted):
        (name, condition), why = next(iter(lacking.items()))
        raise DataError(f"no attacker serves any condition: {name} lacks for {condition}: {why}")


@dataclass(frozen=True)
class _Place:
    """Where a condition stands, in which draws there is speech for it, and how many recordings its lists test."""

    dataset: Dataset
    gender: str
    scenario: Scenario
    suffix: str
    draws: range
    tested: tuple[int, ...]

    def folder(self, draw: int) -> str:
        return condition_folder(self.dataset, self.gender, self.scenario, self.suffix, draw)


def _condition(place: _Place, attacker: Attacker, stages: Mapping[int, Stage[Scores]]) -> Condition:
    scored = Scored(
        place.dataset.name,
        place.gender,
        place.scenario.name,
        attacker.name,
        place.folder(1),
        lists_of(place.dataset, place.gender),
        further=tuple((draw, place.folder(draw)) for draw in stages if draw > 1),
        level=level_of(attacker),
        content=getattr(attacker, "content", ""),
        tested=place.tested,
        lacking=tuple(draw for draw in place.draws if draw not in stages),
    )
    return Condition(scored, tuple(stages.values()))


def _side(sets: Sets, name: str, anonymised: bool, draw: int) -> DataDir:
    return sets.version(name, draw) if anonymised else sets.original[name]


class ScoreMaker:
    """Declares the scores of lists of trials; an attacker learns once from each training set.

    `place` stands before the folders in the names of stages, where the run is at work below another one.
    """

    def __init__(self, run: Run, seed: int, *, place: str = "") -> None:
        self._run, self._seed, self._place = run, seed, place
        self._learnt: dict[tuple[str, tuple[DataDir, ...]], Scorer | Exception] = {}
        self._speech: dict[DataDir, Stamp] = {}
        self._declared: dict[str, dict[str, Stage[Scores]]] = {}
        self.weights: dict[str, str] = {}

    def fused(self, fusion: Fusion, attack: Attack) -> dict[str, Stage[Scores]]:
        """Return the scores that a fusion has a use for, of the attackers before it."""
        declared = self._declared.get(attack.name, {})
        return {name: stage for name, stage in declared.items() if fusion.takes(name)}

    def stage(self, attack: Attack, attacker: Attacker) -> Stage[Scores]:
        """Declare the scores of a list by an attacker; by a fusion, after those of the others."""
        parts = self.fused(attacker, attack) if isinstance(attacker, Fusion) else {}

        def make(path: Path) -> None:
            if isinstance(attacker, Fusion):
                write_scores(path, attacker.fuse(attack, {name: part.value for name, part in parts.items()}))
                return
            score = self._learn(attacker, attack.training)  # nothing is trained while all scores are there
            write_scores(path, score(attack))

        speech: tuple[DataDir, ...] = (*attack.sides, *attack.training)
        if isinstance(attacker, BackgroundAttacker):
            speech = attacker.speech(attack)
        folder = f"{SCORES}/{attack.name}"
        declared = self._run.declare(
            f"scores of {attacker.name} in {self._place}{folder}",
            f"{folder}/{attacker.name}/scores",
            make=make,
            read=read_scores,
            inputs=[attacker.record(attack), self._seed, attack.trials],
            after=[*dict.fromkeys(map(self._step, speech)), *parts.values()],
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
            on_device=True,
        )
        self.weights[declared.name] = ""
        if isinstance(attacker, Fusion):
            self.weights[declared.name] = str(attacker.file(attack, list(parts)).relative_to(self._run.output))
        else:
            self._declared.setdefault(attack.name, {})[attacker.name] = declared
        return declared

    def _learn(self, attacker: Attacker, training: tuple[DataDir, ...]) -> Scorer:
        """Have an attacker learn, once: what could not be learnt is not tried again in this run."""
        known = attacker.name, training
        if known not in self._learnt:
            try:
                self._learnt[known] = attacker.learn(training)
            except Exception as error:
                if isinstance(error, ENDING):
                    raise
                self._learnt[known] = error
        learnt = self._learnt[known]
        if isinstance(learnt, Exception):
            raise learnt
        return learnt

    def _step(self, directory: DataDir) -> Stamp:
        """The step that stands for the speech of a data directory: its lists and its recordings."""
        if directory not in self._speech:
            lists = [sorted(directory.speakers.items()), sorted(directory.enrolls or ()), directory.enrolls is None]
            sources = dict(sorted(directory.recordings.items()))
            name = f"speech of {directory.path.name}"
            self._speech[directory] = self._run.stamp(name, inputs=lists, sources=sources)
        return self._speech[directory]


def joined(lists: Sequence[Scores]) -> Scores:
    """Return the scores of several lists of trials as those of one."""
    models = [model for scores in lists for model in scores.model_ids[scores.models]]
    segments = [segment for scores in lists for segment in scores.segment_ids[scores.segments]]
    return Scores.from_ids(models, segments, np.concatenate([scores.values for scores in lists]))


def _pooled(
    run: Run, attacker: str, place: _Place, parts: Sequence[Mapping[int, Stage[Scores]]]
) -> dict[int, Stage[Scores]]:
    """Declare the scores of all sexes together, of each draw that has them of every sex."""

    def declare(folder: str, stages: Sequence[Stage[Scores]]) -> Stage[Scores]:
        def make(path: Path) -> None:
            write_scores(path, joined([stage.value for stage in stages]))

        return run.declare(
            f"scores of {attacker} in {folder}",
            f"{folder}/{attacker}/scores",
            make=make,
            read=read_scores,
            after=stages,
        )

    shared = [draw for draw in parts[0] if all(draw in part for part in parts)]
    return {draw: declare(place.folder(draw), [part[draw] for part in parts]) for draw in shared}
