"""Whether ids can be taken for speakers where no map names them.

A command that draws speakers must know them. An id without a map passes for a speaker, which makes intervals far too
narrow where it is one of several models, or one of several recordings, of a speaker. Two signs tell: a segment that is
a target of several models, and ids of which several begin alike up to a separator (``m101_001``, ``m101_002``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from evaluation.trials.lists import Key
from evaluation.trials.pairs import recode
from spkbase.errors import DataError, few

_SEPARATOR = re.compile(r"[-_/.:|#+@~]+")


@dataclass(frozen=True)
class Doubt:
    """Why ids may not be speakers.

    Attributes
    ----------
    side : {"model", "segment"}
        Whose ids.
    text : str
        What was seen.
    """

    side: str
    text: str

    def error(self) -> DataError:
        """Return the refusal of intervals over speakers, with its remedy."""
        remedy = (
            f"give the speakers of the {self.side}s, lines 'id speaker': --{self.side}-speakers FILE; if each id is a"
            " speaker say --bootstrap-by id; --bootstrap-by trial is far too narrow where trials share speakers"
        )
        return DataError(f"the speakers are not known: {self.text}", remedy=remedy)


def shared_prefixes(ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of which several begin alike, by their common beginning.

    The beginning is what stands before a separator (one of ``- _ / . : | # + @ ~``), the first one that parts the ids
    into several groups of which at least one has several members. A beginning that all ids have tells nothing.

    Parameters
    ----------
    ids : iterable of str
        Distinct ids.

    Returns
    -------
    dict of str to list of str
        The groups with several members, each in the order of the ids; empty where there is none.

    Examples
    --------
    >>> shared_prefixes(["m101_001", "m101_002", "m102_001"])
    {'m101': ['m101_001', 'm101_002']}
    >>> shared_prefixes(["spk_1", "spk_2", "spk_3"])
    {}
    """
    parts = {name: [match.start() for match in _SEPARATOR.finditer(name)] for name in ids}
    for place in range(max(map(len, parts.values()), default=0)):
        groups: dict[str, list[str]] = {}
        for name, cuts in parts.items():
            groups.setdefault(name[: cuts[place]] if place < len(cuts) else name, []).append(name)
        if 1 < len(groups) < len(parts):
            return {prefix: names for prefix, names in groups.items() if len(names) > 1}
    return {}


def doubt_speakers(
    key: Key, *, model_speakers: Mapping[str, str] | None = None, segment_speakers: Mapping[str, str] | None = None
) -> Doubt | None:
    """Return why the ids of a key may not be speakers, as far as neither a map nor a target trial names theirs.

    Parameters
    ----------
    key : Key
        Trials with their truth.
    model_speakers, segment_speakers : mapping of str to str, optional
        See `find_speakers`. A model without a map has the speaker of its target segments where these have a map, and
        the other way round.

    Returns
    -------
    Doubt or None
        None where every speaker is named, or nothing tells against an id as a speaker.
    """
    if model_speakers is None:
        unnamed = _unnamed(key.models, key.models[key.is_target] if segment_speakers is not None else None)
        if segment_speakers is None and (several := _targets_of_several(key)):
            text = f"{len(several)} segments are targets of several models: {few(several, repr)}"
            return Doubt("model", text)
        if doubt := _doubt_prefixes("model", key.model_ids[unnamed].tolist()):
            return doubt
    if segment_speakers is None:
        strangers = _unnamed(key.segments, key.segments[key.is_target])
        return _doubt_prefixes("segment", key.segment_ids[strangers].tolist())
    return None


def own_trials(key: Key) -> list[str]:
    """Return the ids of the target trials whose model and segment have the same id.

    Examples
    --------
    >>> own_trials(Key.from_ids(["u1", "u1", "u2"], ["u1", "u2", "u2"], [True, True, False]))
    ['u1']
    """
    same = key.is_target & (recode(key.model_ids, key.segment_ids)[key.models] == key.segments)
    own: list[str] = key.model_ids[np.unique(key.models[same])].tolist()
    return own


def _unnamed(codes: np.ndarray, named: np.ndarray | None) -> np.ndarray:
    return np.unique(codes) if named is None else np.setdiff1d(codes, named)


def _targets_of_several(key: Key) -> list[str]:
    found, counts = np.unique(key.segments[key.is_target], return_counts=True)
    several: list[str] = key.segment_ids[found[counts > 1]].tolist()
    return several


def _doubt_prefixes(side: str, ids: list[str]) -> Doubt | None:
    groups = shared_prefixes(ids)
    if not groups:
        return None
    largest = max(groups.values(), key=len)
    more = " that are in no target trial" if side == "segment" else ""
    n_alike = sum(map(len, groups.values()))
    text = f"{n_alike} of {len(ids)} {side}s{more} have ids that begin alike, such as {few(largest, repr)}"
    return Doubt(side, text)
