"""The training set of an attacker: which utterances, and how they are cut into sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spkver.features import Frames, recording_generator


def choose_utterances(speakers: Mapping[str, str], *, limit: int | None, seed: int) -> list[str]:
    """Choose at most `limit` utterances, evenly over the speakers.

    Parameters
    ----------
    speakers : mapping
        Utterance to speaker.
    limit : int or None
        None takes all.
    seed : int
        Which utterances of a speaker come first; each speaker has a generator of its own.

    Returns
    -------
    list of str
        Sorted; independent of the order of the mapping.
    """
    if limit is None or limit >= len(speakers):
        return sorted(speakers)
    queue = []
    for speaker, utterances in _by_speaker(speakers).items():
        generator = recording_generator(speaker, seed)
        order = generator.permutation(len(utterances))
        # the draw also decides which speakers come last, where not all can have as many
        queue += [(turn, generator.random(), utterances[number]) for turn, number in enumerate(order)]
    return sorted(utterance for _, _, utterance in sorted(queue)[:limit])


def _by_speaker(speakers: Mapping[str, str]) -> dict[str, list[str]]:
    utterances_of: dict[str, list[str]] = {}
    for utterance in sorted(speakers):
        utterances_of.setdefault(speakers[utterance], []).append(utterance)
    return dict(sorted(utterances_of.items()))


@dataclass(frozen=True)
class Session:
    """A piece of a recording that is worked on as one.

    Attributes
    ----------
    speaker : str
    recording : str
    start, stop : int
        First frame and end.
    """

    speaker: str
    recording: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Recording and first frame."""
        return f"{self.recording} {self.start}"


def cut_sessions(lengths: Mapping[str, int], speakers: Mapping[str, str], *, frames: float | None) -> list[Session]:
    """Cut the recordings of the training set into sessions.

    Pieces of different recordings are never put together: they may differ in what an anonymiser drew, and this is what
    the scatter within speakers should show.

    Parameters
    ----------
    lengths : mapping
        Utterance to its number of frames.
    speakers : mapping
        Utterance to speaker.
    frames : float or None
        A recording is divided into equal pieces of about this length; shorter ones stay whole. None: all stay whole.

    Returns
    -------
    list of Session
        Speakers in sorted order, the utterances of each too.
    """
    return [
        Session(speaker, utterance, start, stop)
        for speaker, utterances in _by_speaker({utterance: speakers[utterance] for utterance in lengths}).items()
        for utterance in utterances
        for start, stop in _pieces(lengths[utterance], frames)
    ]


def _pieces(length: int, frames: float | None) -> list[tuple[int, int]]:
    count = 1 if frames is None else min(max(1, round(length / frames)), length)
    return list(pairwise(round(number * length / count) for number in range(count + 1)))


def session_frames(frames: Frames, sessions: Sequence[Session]) -> Frames:
    """Return the frames of each session as one recording, copied."""
    offsets = np.cumsum([0, *(session.stop - session.start for session in sessions)], dtype=np.int64)
    values = np.concatenate([frames.of(session.recording)[session.start : session.stop] for session in sessions])
    return Frames(np.array([session.name for session in sessions], object), offsets, values)
