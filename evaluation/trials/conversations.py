"""Conversations: several recordings of one unknown speaker, which an attacker scores at once.

The recordings of each speaker are dealt at random into groups of L that share no recording. A conversation is tested
against every model against which all of its recordings are tested; its score is the mean or sum of theirs. A sum of
calibrated log-likelihood ratios is the ratio of the whole conversation if its recordings are independent. Means rank
trials as that sum does, whatever the common calibration of the trials, as long as all conversations have equally many
recordings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.trials.lists import Key, Scores, Trials
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import fingerprint
from spkbase.seeding import stream

Conversations = Mapping[str, tuple[str, ...]]
"""The recordings of each conversation, by its name."""

_DIGITS = 16


class _Pairs(NamedTuple):
    """The complete pairs of a model and a conversation, and the trials of recordings of which they consist.

    Attributes
    ----------
    models, conversations : ndarray of int64 of shape (P,)
    rows : ndarray of int64 of shape (n,)
        Trials of recordings.
    pair_of : ndarray of int64 of shape (n,)
        The pair of each of these trials.
    sizes : ndarray of int64 of shape (P,)
        Number of recordings of each pair.
    """

    models: NDArray[np.int64]
    conversations: NDArray[np.int64]
    rows: NDArray[np.int64]
    pair_of: NDArray[np.int64]
    sizes: NDArray[np.int64]


def draw_conversations(
    speakers: Mapping[str, str], utterances: int, *, seed: int = 0, rounds: int = 1
) -> list[dict[str, tuple[str, ...]]]:
    """Deal the recordings of each speaker into conversations.

    Parameters
    ----------
    speakers : mapping of str to str
        Recording to speaker.
    utterances : int
        Number of recordings in a conversation.
    seed : int
    rounds : int
        Number of rounds in which all recordings are dealt; a conversation has the same name and speaker in each.

    Returns
    -------
    list of dict of str to tuple of str
        The conversations of each round, sorted by name. Within a round no recording occurs twice. A speaker with fewer
        recordings has one conversation of all of them; recordings that do not fill another conversation are left out.
        Names and their order reveal nothing about the speaker.

    Raises
    ------
    ConfigError
        If `utterances` is below 1.

    Examples
    --------
    >>> (conversations,) = draw_conversations({"u1": "anna", "u2": "anna", "u3": "bert"}, 2)
    >>> sorted(sorted(recordings) for recordings in conversations.values())
    [['u1', 'u2'], ['u3']]
    """
    if utterances < 1:
        raise ConfigError(f"utterances is {utterances}: expected a whole number of at least 1")
    recordings: dict[str, list[str]] = {}
    for recording in sorted(speakers):
        recordings.setdefault(speakers[recording], []).append(recording)
    dealt: list[dict[str, tuple[str, ...]]] = [{} for _ in range(rounds)]
    for speaker, own in recordings.items():
        generator = stream(seed, f"{utterances} recordings of", speaker)
        names: list[str] = []
        for conversations in dealt:
            order = [own[row] for row in generator.permutation(len(own))]
            groups = _full_groups(order, utterances)
            if not names:
                digests = [fingerprint(seed, sorted(group))[:_DIGITS] for group in groups]
                names = [f"conversation-{digest}" for digest in digests]
            conversations.update(zip(names, groups, strict=True))
    return [dict(sorted(conversations.items())) for conversations in dealt]


def conversation_key(key: Key, conversations: Conversations) -> Key:
    """Return the key of conversations: each has a trial with every model with which all of its recordings have one.

    Parameters
    ----------
    key : Key
        Trials of recordings.
    conversations : mapping of str to tuple of str

    Raises
    ------
    DataError
        If a conversation would have no trial, or has both target and nontarget trials with a model.

    Examples
    --------
    >>> key = Key.from_ids(["a", "a", "b"], ["s", "t", "s"], is_target=[True, True, False])
    >>> list(conversation_key(key, {"one": ("s", "t")}).pairs())
    [('a', 'one')]
    """
    pairs = _pairs_of(key, conversations)
    names = np.array(list(conversations), object)
    absent = np.setdiff1d(np.arange(len(names)), pairs.conversations)
    if len(absent):
        text = f"no model has trials with all recordings of {len(absent)} of {len(names)} conversations"
        raise DataError(f"{text}: {few([conversations[name][0] for name in names[absent]])}")
    n_target = np.bincount(pairs.pair_of, key.is_target[pairs.rows], len(pairs.models))
    mixed = np.flatnonzero((n_target > 0) & (n_target < pairs.sizes))
    if len(mixed):
        recordings = conversations[names[pairs.conversations[mixed[0]]]]
        text = f"recordings of one speaker are target and nontarget trials of one model: {few(recordings)}"
        raise DataError(text, remedy="check the speakers of the recordings, and the key")
    return Key(key.model_ids, names, pairs.models, pairs.conversations, n_target > 0)


def conversation_scores(
    scores: Scores, conversations: Conversations, *, summed: bool = False
) -> Scores:
    """Return the mean score of the recordings of each conversation, or their sum.

    Parameters
    ----------
    scores : Scores
        Scores of recordings; others are left out.
    conversations : mapping of str to tuple of str
    summed : bool
        Add the scores, which must then be calibrated log-likelihood ratios.

    Examples
    --------
    >>> scores = Scores.from_ids(["a", "a"], ["s", "t"], [1.0, 2.0])
    >>> conversation_scores(scores, {"one": ("s", "t")}).values.tolist()
    [1.5]
    """
    pairs = _pairs_of(scores, conversations)
    weights = scores.values[pairs.rows]
    values: NDArray[Any] = np.bincount(pairs.pair_of, weights, len(pairs.models))
    if not summed:
        values = values / pairs.sizes
    names = np.array(list(conversations), object)
    return Scores(scores.model_ids, names, pairs.models, pairs.conversations, values)


def count_conversations(conversations: Conversations, utterances: int) -> str:
    """Describe how many conversations there are, and how many of them have fewer recordings.

    Examples
    --------
    >>> count_conversations({"one": ("s", "t"), "two": ("u",)}, 2)
    '2 conversations of 2 recordings; 1 has fewer, all recordings of its speaker'
    """
    text = f"{len(conversations)} conversations of {utterances} recordings"
    short = [name for name, recordings in conversations.items() if len(recordings) < utterances]
    if not short:
        return text
    if len(short) == 1:
        return f"{text}; 1 has fewer, all recordings of its speaker"
    return f"{text}; {len(short)} have fewer, all recordings of their speakers"


def _full_groups(recordings: Sequence[str], utterances: int) -> list[tuple[str, ...]]:
    """Return full groups of recordings, or a single group of all recordings if these do not fill one."""
    if len(recordings) < utterances:
        return [tuple(recordings)]
    starts = range(0, len(recordings) - utterances + 1, utterances)
    return [tuple(recordings[start : start + utterances]) for start in starts]


def _pairs_of(trials: Trials, conversations: Conversations) -> _Pairs:
    """Return the pairs of a model and a conversation all of whose recordings have a trial with the model."""
    number_of: dict[str, int] = {}
    for number, recordings in enumerate(conversations.values()):
        number_of.update(dict.fromkeys(recordings, number))
    numbers = np.array([number_of.get(name, -1) for name in trials.segment_ids.tolist()], np.int64)
    spoken = numbers[trials.segments]
    rows = np.flatnonzero(spoken >= 0)
    codes = trials.models[rows].astype(np.int64) * len(conversations) + spoken[rows]
    pairs, pair_of, counts = np.unique(codes, return_inverse=True, return_counts=True)
    models, numbered = np.divmod(pairs, len(conversations))
    sizes = np.array(list(map(len, conversations.values())), np.int64)[numbered]
    complete = counts == sizes
    place = np.cumsum(complete) - 1
    kept = complete[pair_of]
    return _Pairs(
        models[complete], numbered[complete], rows[kept], place[pair_of[kept]], sizes[complete]
    )
