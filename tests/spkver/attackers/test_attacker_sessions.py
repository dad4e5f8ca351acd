"""The training set: evenly chosen utterances, sessions that hold every frame once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkver.attackers.workplace import choose_utterances, cut_sessions, session_frames
from spkver.features.frames import Frames


def speakers(counts: dict[str, int]) -> dict[str, str]:
    return {f"{speaker}-{number:03d}": speaker for speaker, count in counts.items() for number in range(count)}


@pytest.mark.parametrize("limit", [3, 6, 7, 11, 19, 20, 500, None])
def test_utterances_are_spread_evenly(limit):
    counts = {"a": 12, "b": 2, "c": 6}
    chosen = choose_utterances(speakers(counts), limit=limit, seed=1)
    assert len(chosen) == len(set(chosen)) == min(limit or 20, 20)
    assert chosen == sorted(chosen)
    taken = Counter(utterance[0] for utterance in chosen)
    most = max(taken.values())
    # who has fewer than the most by two or more has no more to give
    assert all(taken[speaker] >= min(count, most - 1) for speaker, count in counts.items())


def test_the_choice_depends_on_the_seed_and_not_on_the_order():
    every = speakers({"a": 30, "b": 30})
    backwards = dict(reversed(every.items()))
    first = choose_utterances(every, limit=10, seed=1)
    assert choose_utterances(backwards, limit=10, seed=1) == first
    assert choose_utterances(every, limit=10, seed=2) != first
    # a larger limit adds to the choice, it does not replace it
    assert set(first) < set(choose_utterances(every, limit=20, seed=1))


def places(sessions: list) -> list:
    return [(one.speaker, one.recording, one.start, one.stop) for one in sessions]


def test_each_utterance_is_a_session_by_default():
    sessions = cut_sessions({"b-1": 5, "a-2": 7, "a-1": 3}, {"b-1": "b", "a-2": "a", "a-1": "a"}, frames=None)
    assert places(sessions) == [("a", "a-1", 0, 3), ("a", "a-2", 0, 7), ("b", "b-1", 0, 5)]


def test_long_utterances_are_divided_and_short_ones_left():
    sessions = cut_sessions({"a-1": 250, "b-1": 40, "b-2": 149}, {"a-1": "a", "b-1": "b", "b-2": "b"}, frames=100)
    assert places(sessions) == [("a", "a-1", 0, 125), ("a", "a-1", 125, 250), ("b", "b-1", 0, 40), ("b", "b-2", 0, 149)]
    assert [one.name for one in sessions[:2]] == ["a-1 0", "a-1 125"]


@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.one_of(st.none(), st.floats(0.5, 200)))
def test_every_frame_stands_in_one_session(lengths, size):
    names = [f"s{number % 3}-{number:02d}" for number in range(len(lengths))]
    owners = {name: name[:2] for name in names}
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    frames = Frames(np.array(names, object), offsets, np.arange(offsets[-1], dtype=np.float32)[:, None])
    sessions = cut_sessions(dict(zip(names, lengths, strict=True)), owners, frames=size)
    joined = session_frames(frames, sessions)
    assert sorted(joined.values[:, 0]) == list(range(offsets[-1]))
    for one in sessions:
        assert one.speaker == owners[one.recording]
        np.testing.assert_array_equal(joined.of(one.name), frames.of(one.recording)[one.start : one.stop])
        assert 0 < one.stop - one.start <= (90 if size is None else 1.5 * size + 1)
