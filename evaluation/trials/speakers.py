"""Which speaker stands on each side of a trial: from maps such as Kaldi's `utt2spk`, or from the ids and the key.

Conventions
-----------
A map gives the speaker of each id of one side. A side without a map goes by the ids themselves: an id is the name of a
speaker, and a target trial says that its model and its segment are of one speaker, whatever their ids are. So a key
alone already tells the speakers as far as its target trials join them; a segment that is nobody's target then counts
as a speaker of its own, which makes intervals too narrow if some of these segments share a speaker (a line in the log
counts them). The two names of a target trial are never kept apart: where both sides have a map and the maps disagree,
that is an error.

Nontarget trials within one speaker are legal (the right speaker with the wrong sentence, say).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.trials.lists import Key
from spkbase.errors import DataError, few
from spkbase.files import read_id_list

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class TrialSpeakers:
    """The speakers of a list of trials.

    Parameters
    ----------
    names : ndarray of str of shape (P,), dtype object
        Names of the speakers, sorted.
    models, segments : ndarray of int32 of shape (N,)
        For each trial the place of the speaker of its model and of its segment in `names`.
    """

    names: np.ndarray
    models: np.ndarray
    segments: np.ndarray

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        return f"TrialSpeakers({len(self.names)} speakers, {len(self)} trials)"

    def subset(self, rows: np.ndarray) -> TrialSpeakers:
        """Select trials, by a mask or by row numbers; the table of names stays."""
        return TrialSpeakers(self.names, self.models[rows], self.segments[rows])


def read_speakers(path: str | Path) -> dict[str, str]:
    """Read a map of ids to speakers: lines ``id speaker``, as in Kaldi's `utt2spk`.

    Parameters
    ----------
    path : path
        Text in UTF-8; blank lines, Windows line ends, gzip and a byte order mark are accepted.

    Raises
    ------
    DataError
        With file and line: wrong number of columns, an id with two speakers, an empty file, not UTF-8. All problems
        are reported together.
    """
    return read_id_list(path, "id speaker", same_twice=True)


def find_speakers(
    key: Key, *, model_speakers: Mapping[str, str] | None = None, segment_speakers: Mapping[str, str] | None = None
) -> TrialSpeakers:
    """Find the speaker on each side of each trial.

    Parameters
    ----------
    key : Key
        Trials with their truth.
    model_speakers, segment_speakers : mapping of str to str, optional
        Speaker of each model and of each segment; see the module for a side without.

    Returns
    -------
    TrialSpeakers
        In the order of the key.

    Raises
    ------
    DataError
        If an id with trials is not in its map, or a target trial joins two speakers of the maps.

    Examples
    --------
    >>> key = Key.from_ids(["anna", "anna", "bert", "bert"], ["s1", "s2", "s1", "s2"], [True, False, False, True])
    >>> speakers = find_speakers(key)
    >>> speakers, speakers.models.tolist(), speakers.segments.tolist()
    (TrialSpeakers(2 speakers, 4 trials), [0, 0, 1, 1], [0, 1, 0, 1])
    """
    models = _named(key.model_ids, key.models, model_speakers, "model")
    segments = _named(key.segment_ids, key.segments, segment_speakers, "segment")
    names = sorted({*models.values(), *segments.values()})
    places = {name: place for place, name in enumerate(names)}
    sides = [
        np.array([places.get(side.get(code, ""), -1) for code in range(len(ids))], np.int64)[column]
        for side, ids, column in ((models, key.model_ids, key.models), (segments, key.segment_ids, key.segments))
    ]
    joined = _join(sides[0][key.is_target], sides[1][key.is_target], len(names))
    fixed = _fixed(models if model_speakers is not None else {}, segments if segment_speakers is not None else {})
    _check_joined(names, joined, fixed)
    if segment_speakers is None:
        _warn_of_strangers(key)
    # a group goes by the name that a map gave it, else by its first
    label = {group: names[place] for place, group in reversed(list(enumerate(joined.tolist())))}
    label.update({joined[places[name]]: name for name in fixed})
    used = np.unique(np.concatenate([joined[side] for side in sides])) if len(key) else np.zeros(0, np.int64)
    table = np.array(sorted(label[group] for group in used.tolist()), dtype=object)
    rank = {name: place for place, name in enumerate(table)}
    code = np.array([rank.get(label[group], -1) for group in joined.tolist()], np.int32)
    return TrialSpeakers(table, code[sides[0]], code[sides[1]])


def _named(ids: np.ndarray, column: np.ndarray, speakers: Mapping[str, str] | None, what: str) -> dict[int, str]:
    """Name the speaker of each id that has a trial, by its code."""
    used = np.unique(column).tolist()
    if speakers is None:
        return {code: ids[code] for code in used}
    absent = [ids[code] for code in used if ids[code] not in speakers]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(used)} {what}s without a speaker: {few(absent, repr)}",
            remedy=f"the map of speakers must name the speaker of every {what} of the key",
        )
    return {code: speakers[ids[code]] for code in used}


def _join(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """Number the groups that pairs join among `count` things, shape (count,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _fixed(*sides: Mapping[int, str]) -> list[str]:
    return sorted({name for side in sides for name in side.values()})


def _check_joined(names: list[str], joined: np.ndarray, fixed: list[str]) -> None:
    """Make sure that no two speakers of the maps are joined by target trials."""
    places = {name: place for place, name in enumerate(names)}
    seen: dict[int, str] = {}
    for name in fixed:
        other = seen.setdefault(int(joined[places[name]]), name)
        if other != name:
            raise DataError(
                f"target trials say that the speakers {other!r} and {name!r} are one",
                remedy="check the maps of speakers, and give one for the models too if their ids are not speakers",
            )


def _warn_of_strangers(key: Key) -> None:
    linked = np.zeros(len(key.segment_ids), bool)
    linked[key.segments[key.is_target]] = True
    used = np.zeros(len(key.segment_ids), bool)
    used[key.segments] = True
    n_alone = int((used & ~linked).sum())
    if n_alone:
        logger.warning(
            "%d of %d segments are in no target trial, so each counts as a speaker of its own: "
            "give the speakers of the segments if some of them share one",
            n_alone,
            int(used.sum()),
        )
