"""Files of trial lists, which scores and results refer to.

OUTPUT/lists/<trials>/trials                    the key
OUTPUT/lists/<trials>/{utt2spk,spk2gender}      speakers of recordings, and sexes of speakers
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from evaluation.formats import write_key
from evaluation.trials import Key
from spkbase.files import write_text
from spkbase.runs import Run
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, pooled_key


class _TrialList(NamedTuple):
    key: Key
    speakers: dict[str, str]
    sexes: dict[str, str]


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key, the speakers and the sexes of every trial list, also of pooled ones, to ``lists/``."""
    for dataset in sets.datasets:
        lists = {gender: _trial_list(sets, dataset, gender) for gender in dataset.trials}
        if len(lists) > 1:
            lists[POOLED] = _pooled(lists)
        for gender, trial_list in lists.items():
            folder = run.path(f"lists/{trial_name(dataset, gender)}")
            write_key(folder / "trials", trial_list.key)
            _write_table(folder / "utt2spk", trial_list.speakers)
            _write_table(folder / "spk2gender", trial_list.sexes)


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Return the name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def _trial_list(sets: Sets, dataset: Dataset, gender: str) -> _TrialList:
    """Return a list of one sex with the speakers of its models and segments."""
    trials = sets.original[dataset.trials[gender]]
    key = trials.trials
    assert key is not None  # checked before
    enrolled = sets.original[dataset.enrolls].sexes
    speakers = {*trials.speakers.values(), *key.model_ids[key.models]}
    sexes = {}
    for speaker in speakers:
        sexes[speaker] = trials.sexes.get(speaker) or enrolled.get(speaker, "unknown")
    return _TrialList(key, dict(trials.speakers), sexes)


def _pooled(lists: Mapping[str, _TrialList]) -> _TrialList:
    """Return the list of both sexes together."""
    speakers: dict[str, str] = {}
    sexes: dict[str, str] = {}
    for trial_list in lists.values():
        speakers |= trial_list.speakers
        sexes |= trial_list.sexes
    return _TrialList(pooled_key(trial_list.key for trial_list in lists.values()), speakers, sexes)


def _write_table(path: Path, table: Mapping[str, str]) -> None:
    """Write a line for each id, sorted."""
    write_text(path, "".join(f"{name} {table[name]}\n" for name in sorted(table)))
