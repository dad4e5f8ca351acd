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
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_key, write_scores
from evaluation.trials import Key, Scores, Trials
from spkbase.files import write_text
from spkbase.runs import Draft, Run, Stage
from spkver.attackers import Attacker, AttackerConfig, Kept, Workplace, check_trials, score_checked, train_attackers
from spkver.datadir import DataDir
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, pooled_key

logger = logging.getLogger(__name__)

WORK = "work"  # features and statistics, which the attackers share; may be removed


@dataclass(frozen=True)
class Scenario:
    """What the attacker has: which speech is anonymised, and whether it was trained on such speech."""

    name: str
    enrolment: bool
    trials: bool
    training: bool


SCENARIOS = (
    Scenario("original", enrolment=False, trials=False, training=False),
    Scenario("ignorant", enrolment=False, trials=True, training=False),
    Scenario("lazy-informed", enrolment=True, trials=True, training=False),
    Scenario("semi-informed", enrolment=True, trials=True, training=True),
)


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
            own = {speaker: trials.genders.get(speaker) or enrolled[speaker] for speaker in names}
            _write_list(run, lists_of(dataset, gender), trials.trials, trials.speakers, own)
            keys.append(trials.trials)
            speakers |= trials.speakers
            genders |= own
        if len(keys) > 1:
            _write_list(run, lists_of(dataset, POOLED), pooled_key(keys), speakers, genders)


def lists_of(dataset: Dataset, gender: str) -> str:
    """Folder of the lists of a condition."""
    return f"lists/{trial_name(dataset, gender)}"


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str) -> str:
    """Folder of the scores of a condition, named as the challenge does."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"exp/{attacker}/{enrol}-{trial_name(dataset, gender, suffix if scenario.trials else '')}"


@dataclass(frozen=True)
class Condition:
    """A condition with the stage that makes its scores; the scores of both sexes are those of each put together."""

    scored: Scored
    stage: Stage[Scores]


def declare_scores(
    run: Run, sets: Sets, configs: Sequence[AttackerConfig], *, suffix: str, seed: int
) -> list[Condition]:
    """Declare the scores of every condition with every attacker; nothing is trained before some are asked for.

    Returns
    -------
    list of Condition
        By set, scenario, sex and attacker; the trials of both sexes together after those of each.
    """
    quiet = replace(run, quiet=True)  # one line for each scenario says enough
    scorer = _Scorer(quiet, configs, seed)
    found = []
    for dataset in sets.datasets:
        for scenario in SCENARIOS:
            enrol = _side(sets, dataset.enrolls, scenario.enrolment)
            draws = sets.draws.get(dataset.training, ()) if scenario.training else ()
            training = (_side(sets, dataset.training, scenario.training), *draws)
            parts: dict[str, list[Stage[Scores]]] = {config.name: [] for config in configs}
            for gender, name in dataset.trials.items():
                folder = condition_folder(dataset, gender, scenario, suffix)
                key = sets.original[name].trials
                assert key is not None  # checked before
                work = _Work(folder, enrol, _side(sets, name, scenario.trials), training, key.trials())
                for config in configs:
                    stage = scorer.stage(work, config)
                    parts[config.name].append(stage)
                    found.append(Condition(_scored(dataset, gender, scenario, config, folder), stage))
            if len(dataset.trials) > 1:
                folder = condition_folder(dataset, POOLED, scenario, suffix)
                for config in configs:
                    stage = _pooled(quiet, config, folder, parts[config.name])
                    found.append(Condition(_scored(dataset, POOLED, scenario, config, folder), stage))
    return found


def make_scores(run: Run, conditions: Sequence[Condition]) -> None:
    """Train the attackers and score all conditions that are not up to date.

    With `force` the features and statistics that attackers share are made again too.
    """
    if run.force:
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    started, count = time.perf_counter(), 0
    for place, one in enumerate(conditions, 1):
        one.stage.bring_up_to_date()
        count += 1
        names = [(other.scored.dataset, other.scored.scenario) for other in conditions[place - 1 : place + 1]]
        if len(set(names)) > 1 or place == len(conditions):
            seconds = time.perf_counter() - started
            logger.info("%s: scores of %d conditions after %.1f s", " ".join(names[0]), count, seconds)
            started, count = time.perf_counter(), 0


def _scored(dataset: Dataset, gender: str, scenario: Scenario, config: AttackerConfig, folder: str) -> Scored:
    return Scored(dataset.name, gender, scenario.name, config.name, folder, lists_of(dataset, gender))


def _side(sets: Sets, name: str, anonymised: bool) -> DataDir:
    return sets.twins[name] if anonymised else sets.original[name]


def _write_list(run: Run, folder: str, key: Key, speakers: Mapping[str, str], genders: Mapping[str, str]) -> None:
    write_key(run.path(f"{folder}/trials"), key)
    for name, table in (("utt2spk", speakers), ("spk2gender", genders)):
        write_text(run.path(f"{folder}/{name}"), "".join(f"{one} {table[one]}\n" for one in sorted(table)))


@dataclass(frozen=True)
class _Work:
    """A list of trials, and the speech that enrols, is tried and trains the attackers."""

    folder: str
    enrolment: DataDir
    trials: DataDir
    training: tuple[DataDir, ...]
    wanted: Trials


class _Scorer:
    """Scores lists of trials; features and statistics stay in memory from one attacker to the next."""

    def __init__(self, run: Run, configs: Sequence[AttackerConfig], seed: int) -> None:
        self._run, self._configs, self._seed = run, configs, seed
        self._attackers: dict[tuple[DataDir, ...], dict[str, Attacker]] = {}
        self._speech: dict[DataDir, str] = {}
        self._latest: tuple[str, tuple[Any, ...]] | None = None

    def stage(self, work: _Work, config: AttackerConfig) -> Stage[Scores]:
        """Declare the scores of a list by an attacker."""

        def make(draft: Draft) -> None:
            attacker = self._trained(work.training)[config.name]  # nothing is trained while all scores are there
            place, enrolled, tested = self._prepared(work)
            sides = (work.enrolment, enrolled), (work.trials, tested)
            kept = Kept(draft.folder, draft.fingerprint)
            write_scores(draft.path, score_checked(attacker, place, *sides, work.wanted, kept=kept))

        return self._run.stage(
            f"scores of {config.name} in {work.folder}",
            f"{work.folder}/{config.name}/scores",
            make=make,
            read=read_scores,
            inputs=[config, self._seed, work.wanted],
            after=list(dict.fromkeys(map(self._step, (work.enrolment, work.trials, *work.training)))),
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
            on_device=True,
        )

    def _step(self, directory: DataDir) -> str:
        """The step that stands for the speech of a data directory: its lists and its recordings."""
        if directory not in self._speech:
            name = f"speech of {directory.path.name}"
            lists = [sorted(directory.speakers.items()), sorted(directory.enrolls or ()), directory.enrolls is None]
            self._run.stamp(name, lists, sources=dict(sorted(directory.recordings.items())), libraries=())
            self._speech[directory] = name
        return self._speech[directory]

    def _trained(self, training: tuple[DataDir, ...]) -> dict[str, Attacker]:
        if training not in self._attackers:
            self._attackers[training] = train_attackers(
                training,
                self._configs,
                self._run.path(f"attackers/{training[0].name}"),
                seed=self._seed,
                jobs=self._run.jobs,
                features=self._run.path(WORK),
                force=self._run.force,
                device=self._run.device,
            )
        return self._attackers[training]

    def _prepared(self, work: _Work) -> tuple[Any, ...]:
        """Where to work, and what enrols and is tried; of the latest list alone, whose frames may be large."""
        if self._latest is None or self._latest[0] != work.folder:
            self._latest = None
            attackers = self._trained(work.training)
            checked = check_trials(attackers, work.enrolment, work.trials, work.wanted, jobs=self._run.jobs)
            self._latest = work.folder, (Workplace(self._run.path(WORK), self._run.jobs, self._run.device), *checked)
        return self._latest[1]


def _pooled(run: Run, config: AttackerConfig, folder: str, parts: Sequence[Stage[Scores]]) -> Stage[Scores]:
    """Declare the scores of all sexes together."""

    def make(draft: Draft) -> None:
        lists = [part.value for part in parts]
        models = [one for scores in lists for one in scores.model_ids[scores.models]]
        segments = [one for scores in lists for one in scores.segment_ids[scores.segments]]
        write_scores(draft.path, Scores.from_ids(models, segments, np.concatenate([one.values for one in lists])))

    return run.stage(
        f"scores of {config.name} in {folder}",
        f"{folder}/{config.name}/scores",
        make=make,
        read=read_scores,
        after=parts,
    )
