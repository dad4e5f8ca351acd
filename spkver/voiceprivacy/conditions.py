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
is at hand. The key is always that of the original trial list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluation.formats import read_scores, write_key, write_scores
from evaluation.reports import SCENARIOS, Scenario
from evaluation.trials import Key, Scores
from spkbase.errors import DataError, Problems
from spkbase.files import write_text
from spkbase.runs import Depends, Draft, Run, Stage
from spkver.attackers import (
    ENDING,
    Attack,
    Attacker,
    AttackerConfig,
    Background,
    BackgroundAttacker,
    Classics,
    Kept,
    Place,
    Scorer,
    Wanted,
    Workplace,
)
from spkver.datadir import DataDir
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, note_each, pooled_key

logger = logging.getLogger(__name__)

SCORES = "exp"  # as in the challenge
Chosen = AttackerConfig | Attacker | Wanted
"""An attacker as it is configured: a built-in one, one of somebody else's, or one that needs a place to work at."""

WORK = "work"  # features and statistics, which the attackers share; may be removed


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
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    folder: str
    lists: str

    @property
    def scores(self) -> str:
        """File of the scores, relative to the output folder."""
        return f"{self.folder}/{self.attacker}/scores"

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
            sexes = {speaker: trials.genders.get(speaker) or enrolled[speaker] for speaker in names}
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


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str) -> str:
    """Return the folder of the scores of a condition, named as the challenge does."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"{SCORES}/{attacker}/{enrol}-{trial_name(dataset, gender, suffix if scenario.trials else '')}"


@dataclass(frozen=True)
class Condition:
    """A condition with the stage that makes its scores; the scores of both sexes are those of each put together."""

    scored: Scored
    stage: Stage[Scores]


def declare_scores(run: Run, sets: Sets, attackers: Sequence[Attacker], *, suffix: str, seed: int) -> list[Condition]:
    """Declare the scores of every condition with every attacker; nothing is trained before some are asked for.

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
        (dataset.name, gender, scenario.name): attack for dataset, gender, scenario, attack in _attacks(sets, suffix)
    }
    lacking = _lacking(attackers, list(attacks.values()))
    for (name, condition), why in lacking.items():
        logger.warning("%s is left out of %s: %s", name, condition, why)
    scorer = _Scorer(quiet, seed)
    conditions = []
    for dataset in sets.datasets:
        for scenario in SCENARIOS:
            parts: dict[str, list[Stage[Scores]]] = {attacker.name: [] for attacker in attackers}
            for gender in dataset.trials:
                attack = attacks[dataset.name, gender, scenario.name]
                for attacker in attackers:
                    if serves(attacker, attack) and (attacker.name, attack.name) not in lacking:
                        stage = scorer.stage(attack, attacker)
                        parts[attacker.name].append(stage)
                        conditions.append(Condition(_scored(dataset, gender, scenario, attacker.name, suffix), stage))
            if len(dataset.trials) > 1:
                for name, stages in parts.items():
                    if len(stages) == len(dataset.trials):
                        scored = _scored(dataset, POOLED, scenario, name, suffix)
                        conditions.append(Condition(scored, _pooled(quiet, name, scored.folder, stages)))
    return conditions


def declare_attackers(run: Run, chosen: Sequence[Chosen], seed: int) -> list[Attacker]:
    """Return the attackers in their order, the built-in ones at work on this run; each learns when a score asks it
    to."""
    configs = [attacker for attacker in chosen if isinstance(attacker, AttackerConfig)]
    work = Workplace(run.path(WORK), run.jobs, run.device)
    classics = iter(Classics(configs, run.path("attackers"), work, seed, run.force).attackers())
    place = Place(run.output, run.path(WORK), seed, run.jobs, run.device, run.force)
    attackers: dict[str, Attacker] = {}
    for attacker in chosen:
        if isinstance(attacker, AttackerConfig):
            attackers[attacker.name] = next(classics)
        else:
            attackers[attacker.name] = attacker.at(place, attackers) if isinstance(attacker, Wanted) else attacker
    return list(attackers.values())


def _attacks(sets: Sets, suffix: str) -> Iterator[tuple[Dataset, str, Scenario, Attack]]:
    """Every list of trials of one sex in every scenario, with the speech that an attacker has there."""
    for dataset in sets.datasets:
        for scenario in SCENARIOS:
            enrol = _side(sets, dataset.enrolls, scenario.enrolment)
            anonymised = sets.twins[dataset.training], *sets.draws.get(dataset.training, ())
            background = Background(sets.original[dataset.training], anonymised)
            training = anonymised if scenario.training else (background.original,)
            for gender, name in dataset.trials.items():
                key = sets.original[name].trials
                assert key is not None  # checked before
                folder = condition_folder(dataset, gender, scenario, suffix).removeprefix(f"{SCORES}/")
                tested = _side(sets, name, scenario.trials)
                sides = training, enrol, tested, key.trials()
                yield dataset, gender, scenario, Attack(folder, *sides, scenario.name, background)


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
    others = [attacker for attacker in chosen if not isinstance(attacker, AttackerConfig | Wanted)]
    if not others:
        return
    expected = {
        name: replace(original, path=original.path.with_name(f"{original.path.name}{suffix}"))
        for name, original in sets.original.items()
    }
    attacks = [attack for *_, attack in _attacks(replace(sets, twins={**expected, **sets.twins}), suffix)]
    lacking = _lacking(others, attacks)
    for attacker in others:
        if all((attacker.name, attack.name) in lacking for attack in attacks if serves(attacker, attack)):
            looked = ", ".join(attack.name for attack in attacks[:3])
            raise DataError(
                f"attacker {attacker.name!r} serves no condition: looked for {looked} and so on",
                remedy="give what it lacks, see docs/own_attackers.md, or leave it out of 'attackers'",
            )


def _lacking(attackers: Sequence[Attacker], attacks: Sequence[Attack]) -> dict[tuple[str, str], str]:
    """Why attackers cannot score some lists, by the names of both; all that cannot be used is told."""
    problems = Problems()
    lacking: dict[tuple[str, str], str] = {}
    for attacker in attackers:
        for attack in attacks:
            if not serves(attacker, attack):
                continue
            try:
                if why := attacker.lacks(attack):
                    lacking[attacker.name, attack.name] = why
            except DataError as error:
                note_each(problems, error)
    problems.raise_if_any()
    return lacking


def _scored(dataset: Dataset, gender: str, scenario: Scenario, attacker: str, suffix: str) -> Scored:
    folder = condition_folder(dataset, gender, scenario, suffix)
    return Scored(dataset.name, gender, scenario.name, attacker, folder, lists_of(dataset, gender))


def _side(sets: Sets, name: str, anonymised: bool) -> DataDir:
    return sets.twins[name] if anonymised else sets.original[name]


def _write_list(run: Run, folder: str, key: Key, speakers: Mapping[str, str], genders: Mapping[str, str]) -> None:
    write_key(run.path(f"{folder}/trials"), key)
    for name, table in (("utt2spk", speakers), ("spk2gender", genders)):
        write_text(
            run.path(f"{folder}/{name}"),
            "".join(f"{identifier} {table[identifier]}\n" for identifier in sorted(table)),
        )


class _Scorer:
    """Declares the scores of lists of trials; an attacker learns once from each training set."""

    def __init__(self, run: Run, seed: int) -> None:
        self._run, self._seed = run, seed
        self._learnt: dict[tuple[str, tuple[DataDir, ...]], Scorer | Exception] = {}
        self._speech: dict[DataDir, str] = {}

    def stage(self, attack: Attack, attacker: Attacker) -> Stage[Scores]:
        """Declare the scores of a list by an attacker."""

        def make(draft: Draft) -> None:
            score = self._learn(attacker, attack.training)  # nothing is trained while all scores are there
            write_scores(draft.path, score(attack, Kept(draft.folder, draft.fingerprint)))

        speech: tuple[DataDir, ...] = (attack.enrolment, attack.tested, *attack.training)
        if isinstance(attacker, BackgroundAttacker):
            speech = attacker.speech(attack)
        folder = f"{SCORES}/{attack.name}"
        return self._run.stage(
            f"scores of {attacker.name} in {folder}",
            f"{folder}/{attacker.name}/scores",
            make=make,
            read=read_scores,
            depends=Depends(
                inputs=[attacker.record(attack), self._seed, attack.trials],
                after=list(dict.fromkeys(map(self._step, speech))),
                libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
                on_device=True,
            ),
        )

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

    def _step(self, directory: DataDir) -> str:
        """The step that stands for the speech of a data directory: its lists and its recordings."""
        if directory not in self._speech:
            name = f"speech of {directory.path.name}"
            lists = [sorted(directory.speakers.items()), sorted(directory.enrolls or ()), directory.enrolls is None]
            self._run.stamp(
                name, Depends(inputs=lists, sources=dict(sorted(directory.recordings.items())), libraries=())
            )
            self._speech[directory] = name
        return self._speech[directory]


def _pooled(run: Run, attacker: str, folder: str, parts: Sequence[Stage[Scores]]) -> Stage[Scores]:
    """Declare the scores of all sexes together."""

    def make(draft: Draft) -> None:
        lists = [part.value for part in parts]
        models = [model for scores in lists for model in scores.model_ids[scores.models]]
        segments = [segment for scores in lists for segment in scores.segment_ids[scores.segments]]
        values = np.concatenate([scores.values for scores in lists])
        write_scores(draft.path, Scores.from_ids(models, segments, values))

    return run.stage(
        f"scores of {attacker} in {folder}",
        f"{folder}/{attacker}/scores",
        make=make,
        read=read_scores,
        depends=Depends(after=parts),
    )
