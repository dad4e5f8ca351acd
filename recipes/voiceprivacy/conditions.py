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
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sets import POOLED, Dataset, Sets, pooled_key

from evaluation.files import write_text
from evaluation.formats import read_scores, write_key, write_scores
from evaluation.trials import Key, Scores
from spkver.attackers import Attacker, AttackerConfig, score, train_attackers
from spkver.datadir import DataDir
from spkver.run import Run

logger = logging.getLogger(f"spkver.{__name__}")  # the recipe shows what spkver logs

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


def score_conditions(
    run: Run, sets: Sets, configs: Sequence[AttackerConfig], *, suffix: str, seed: int
) -> list[Scored]:
    """Train the attackers on original and on anonymised speech and score every condition with each.

    Returns
    -------
    list of Scored
        By set, scenario, sex and attacker; the trials of both sexes together after those of each.
    """

    @cache
    def attackers_of(*training: DataDir) -> dict[str, Attacker]:
        return train_attackers(
            training, configs, run.path(f"attackers/{training[0].name}"), seed=seed, jobs=run.jobs,
            features=run.path(WORK), force=run.force,
        )  # fmt: skip

    run = replace(run, quiet=True)  # one line for each scenario says enough
    found = []
    for dataset in sets.datasets:
        for scenario in SCENARIOS:
            started = time.perf_counter()
            enrol = _side(sets, dataset.enrolls, scenario.enrolment)
            draws = sets.draws.get(dataset.training, ()) if scenario.training else ()
            training = (_side(sets, dataset.training, scenario.training), *draws)
            folders = []
            for gender, name in dataset.trials.items():
                folder = condition_folder(dataset, gender, scenario, suffix)
                key = sets.original[name].trials
                assert key is not None  # checked before
                data = (enrol, _side(sets, name, scenario.trials), *training)
                _score(run, configs, folder, data, key, seed, attackers=partial(attackers_of, *training))
                found += [_scored(dataset, gender, scenario, one, folder) for one in configs]
                folders.append(folder)
            if len(folders) > 1:
                folder = condition_folder(dataset, POOLED, scenario, suffix)
                _pool(run, configs, folder, folders)
                found += [_scored(dataset, POOLED, scenario, one, folder) for one in configs]
            logger.info("%s %s: scores after %.1f s", dataset.name, scenario.name, time.perf_counter() - started)
    return found


def data_stamp(datadir: DataDir) -> list[Any]:
    """What tells a data directory from a changed one: its lists, and path, size and time of each recording."""
    files = []
    for utterance in sorted(datadir.recordings):
        status = datadir.recordings[utterance].stat()
        files.append([utterance, datadir.speakers[utterance], str(datadir.recordings[utterance].resolve()),
                      status.st_size, status.st_mtime_ns])  # fmt: skip
    return [files, sorted(datadir.enrolls) if datadir.enrolls is not None else None]


def _scored(dataset: Dataset, gender: str, scenario: Scenario, config: AttackerConfig, folder: str) -> Scored:
    return Scored(dataset.name, gender, scenario.name, config.name, folder, lists_of(dataset, gender))


def _side(sets: Sets, name: str, anonymised: bool) -> DataDir:
    return sets.twins[name] if anonymised else sets.original[name]


def _write_list(run: Run, folder: str, key: Key, speakers: Mapping[str, str], genders: Mapping[str, str]) -> None:
    write_key(run.path(f"{folder}/trials"), key)
    for name, table in (("utt2spk", speakers), ("spk2gender", genders)):
        write_text(run.path(f"{folder}/{name}"), "".join(f"{one} {table[one]}\n" for one in sorted(table)))


def _score(
    run: Run,
    configs: Sequence[AttackerConfig],
    folder: str,
    data: tuple[DataDir, ...],
    key: Key,
    seed: int,
    *,
    attackers: Callable[[], Mapping[str, Attacker]],
) -> None:
    """Score a trial list with every attacker, unless the scores of the same speech and attackers are there.

    `data` holds enrolment, trials, and what the attackers are trained on.
    """
    wanted = key.trials()

    @cache
    def computed() -> dict[str, Scores]:
        # nothing is trained while all scores are there
        return score(attackers(), data[0], data[1], wanted, jobs=run.jobs, work=run.path(WORK))

    stamps = [data_stamp(one) for one in data]
    for config in configs:

        def make(path: Path, _: Mapping[str, Any], name: str = config.name) -> None:
            write_scores(path, computed()[name])

        run.stage(
            f"scores of {config.name} in {folder}",
            f"{folder}/{config.name}/scores",
            make=make,
            read=read_scores,
            inputs=[config, seed, stamps, wanted],
        )


def _pool(run: Run, configs: Sequence[AttackerConfig], folder: str, parts: Sequence[str]) -> None:
    """Put the scores of the sexes together."""
    for config in configs:
        name = config.name

        def make(path: Path, _: Mapping[str, Any], name: str = name) -> None:
            lists = [read_scores(run.path(f"{part}/{name}/scores")) for part in parts]
            models = [one for scores in lists for one in scores.model_ids[scores.models]]
            segments = [one for scores in lists for one in scores.segment_ids[scores.segments]]
            write_scores(path, Scores.from_ids(models, segments, np.concatenate([scores.values for scores in lists])))

        run.stage(
            f"scores of {name} in {folder}",
            f"{folder}/{name}/scores",
            make=make,
            read=read_scores,
            after=tuple(f"scores of {name} in {part}" for part in parts),
        )
