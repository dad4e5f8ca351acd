"""Conversations of the tested recordings: several recordings of one unknown speaker that an attacker scores at once.

Each version of the trials is a round, in which the recordings are dealt anew. The recordings of a conversation come
from different versions, in turn, as if each had been anonymised with its own random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evaluation.trials import Conversations, Key, conversation_key, draw_conversations
from spkbase.showing import one_line
from spkver.voiceprivacy.sets import Sets

Parts = dict[str, tuple[tuple[int, str], ...]]
"""The recordings of each conversation: place of the version of the trials, from 0, and utterance."""


@one_line
@dataclass(frozen=True, eq=False)
class Dealt:
    """The recordings of a list of trials, dealt into conversations.

    Attributes
    ----------
    utterances : int
        Number of recordings in a conversation.
    key : Key
        Trials of the conversations.
    speakers : dict of str to str
        Speaker of each conversation.
    rounds : sequence of dict of str to tuple of str
        Recordings of the conversations in each round.
    """

    utterances: int
    key: Key = field(repr=False)
    speakers: dict[str, str] = field(repr=False)
    rounds: Sequence[Conversations] = field(repr=False)

    def parts(self, draw: int, n_draws: int) -> Parts:
        """Return the recordings of a round (the first is 1), each from one of the versions of the trials."""
        parts = {}
        for name, recordings in self.rounds[draw - 1].items():
            numbered = enumerate(recordings, draw - 1)
            parts[name] = tuple((place % n_draws, recording) for place, recording in numbered)
        return parts


def list_ending(utterances: int) -> str:
    """Return the ending of the names of lists of conversations; empty for single recordings.

    Examples
    --------
    >>> list_ending(1), list_ending(5)
    ('', '-utterances5')
    """
    return "" if utterances == 1 else f"-utterances{utterances}"


def deal_sets(sets: Sets, utterances: Sequence[int], *, seed: int) -> dict[str, Dealt]:
    """Deal the recordings of all lists of trials into conversations.

    Parameters
    ----------
    sets : Sets
    utterances : sequence of int
        Numbers of recordings in a conversation; 1 needs no conversations and is skipped.
    seed : int

    Returns
    -------
    dict of str to Dealt
        By the name of the list of conversations.

    Raises
    ------
    DataError
        As `evaluation.trials.conversation_key`.
    """
    dealt = {}
    for dataset in sets.datasets:
        for trials in dataset.trials.values():
            for number in utterances:
                if number > 1:
                    name = trials + list_ending(number)
                    rounds = sets.tested_draws(dataset)
                    dealt[name] = _deal(sets, trials, number, seed=seed, rounds=rounds)
    return dealt


def _deal(sets: Sets, trials: str, utterances: int, **options: Any) -> Dealt:
    """Deal the recordings of a list of trials."""
    directory = sets.original[trials]
    key = directory.trials
    assert key is not None  # trials without a key were refused earlier
    tested = key.segment_ids[np.unique(key.segments)].tolist()
    speakers: Mapping[str, str] = {name: directory.speakers[name] for name in tested}
    rounds = draw_conversations(speakers, utterances, **options)
    owners = {name: speakers[recordings[0]] for name, recordings in rounds[0].items()}
    return Dealt(utterances, conversation_key(key, rounds[0]), owners, rounds)
