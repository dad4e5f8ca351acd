"""Files of trial lists, which scores and results refer to.

OUTPUT/lists/<trials>/trials                    the key
OUTPUT/lists/<trials>/{utt2spk,spk2gender}      speakers of recordings, and sexes of speakers
OUTPUT/lists/<trials>-utterances5/              the same for conversations, and their recordings in each version
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from evaluation.formats import write_conversations
from evaluation.trials import Conversations, Key
from spkbase.files import write_text
from spkbase.runs import Run
from spkver.voiceprivacy.conversations import Dealt, list_ending
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, pooled_key


class _TrialList(NamedTuple):
    key: Key
    speakers: dict[str, str]
    sexes: dict[str, str]
    rounds: Sequence[Conversations] = ()


def write_lists(run: Run, sets: Sets, dealt: Mapping[str, Dealt] | None = None) -> None:
    """Write the key, the speakers and the sexes of every trial list, pooled ones included, to ``lists/``.

    Parameters
    ----------
    run : Run
    sets : Sets
    dealt : mapping of str to Dealt, optional
        Conversations, see `spkver.voiceprivacy.conversations.deal_sets`.
    """
    dealt = dealt or {}
    numbers = sorted({conversations.utterances for conversations in dealt.values()})
    for dataset in sets.datasets:
        lists = {gender: _trial_list(sets, dataset, gender) for gender in dataset.trials}
        for number in (1, *numbers):
            ending = list_ending(number)
            listed = dict(lists)
            if number > 1:
                for gender, trials in dataset.trials.items():
                    listed[gender] = _of_conversations(dealt[trials + ending], lists[gender])
            if len(listed) > 1:
                listed[POOLED] = _pooled(listed)
            for gender, trial_list in listed.items():
                _write_list(run.path(f"lists/{trial_name(dataset, gender)}{ending}"), trial_list)


def _write_list(folder: Path, trial_list: _TrialList) -> None:
    """Write the files of a trial list."""
    write_conversations(folder, trial_list.key, trial_list.speakers, *trial_list.rounds)
    lines = [f"{name} {trial_list.sexes[name]}\n" for name in sorted(trial_list.sexes)]
    write_text(folder / "spk2gender", "".join(lines))


def _of_conversations(dealt: Dealt, of_recordings: _TrialList) -> _TrialList:
    """Return the list of the conversations of a trial list."""
    return _TrialList(dealt.key, dealt.speakers, of_recordings.sexes, dealt.rounds)


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Return the name of a trial list, single or pooled."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def _trial_list(sets: Sets, dataset: Dataset, gender: str) -> _TrialList:
    """Return a list of one sex with the speakers of its models and segments."""
    trials = sets.original[dataset.trials[gender]]
    key = trials.trials
    assert key is not None  # trials without a key were refused earlier
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
    rounds = []
    for of_round in zip(*(trial_list.rounds for trial_list in lists.values()), strict=True):
        rounds.append(dict(chain.from_iterable(part.items() for part in of_round)))
    key = pooled_key(trial_list.key for trial_list in lists.values())
    return _TrialList(key, speakers, sexes, rounds)
