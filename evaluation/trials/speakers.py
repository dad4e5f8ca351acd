"""The speaker on each side of a trial, from maps such as Kaldi's `utt2spk` or from the ids and the key.

Conventions
-----------
A map gives the speaker of each id of one side. Without a map each id is the name of a speaker, and a target trial
joins its model and its segment into one speaker. So a key alone defines the speakers as far as its target trials join
them. A segment without a target trial counts as a separate speaker, which makes intervals too narrow if some of these
segments share a speaker (the log counts them). Where both sides have a map, a target trial whose two speakers differ
is an error.

Nontarget trials within one speaker are allowed, such as the right speaker with the wrong sentence.

Ambiguous ids
-------------
A command that resamples speakers must know them. An id without a map counts as a speaker, which makes intervals far
too narrow where it is one of several models, or one of several recordings, of a speaker. Two observations suggest
this: a segment that is a target of several models, and several ids with a common beginning up to a separator
(``m101_001``, ``m101_002``).

Groups
------
Tables about models, segments or speakers (sex, accent, language, ...) divide trials into groups. A table has a header;
its first column holds ids of models, of segments, or of speakers. Where both sides of a trial have a group, the trial
belongs to it if they agree; a trial across groups belongs to none. If the table has the ids of only one side,
that side decides.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from evaluation.trials.ids import recode
from evaluation.trials.lists import Key
from evaluation.trials.spellings import folded
from evaluation.trials.tables import read_columns, read_header
from spkbase.errors import DataError, Problems, counted, few
from spkbase.files import read_id_list

logger = logging.getLogger(__name__)

Speakers: TypeAlias = Mapping[str, str] | Callable[[str], str] | str
"""The speaker of each id: a map, a function of the id, or the sign, as ``"/"``, that ends the speaker in each id."""

_BLANK = -2  # code of a side whose group is unknown
_SEPARATOR = re.compile(r"[-_/.:|#+@~]+")


@dataclass(frozen=True, eq=False, repr=False)
class TrialSpeakers:
    """The speakers of a list of trials.

    Parameters
    ----------
    names : ndarray of str of shape (P,), dtype object
        Names of the speakers, sorted.
    models, segments : ndarray of int32 of shape (N,)
        Indices in `names` of the speakers of each trial's model and segment.
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
        Text in UTF-8; blank lines, Windows line ends, gzip and a byte order mark are accepted. If the name of the file
        begins with ``spk2utt``, lines are ``speaker id id ...``, as in Kaldi's enrolment maps.

    Raises
    ------
    DataError
        With file and line: a wrong number of columns, an id with two speakers, an empty file, text that is not UTF-8.
        All problems are reported together.
    """
    if Path(path).name.startswith("spk2utt"):
        speakers: dict[str, str] = {}
        problems = Problems(path)
        for speaker, ids in read_id_list(path, "speaker id id ...", rest=True).items():
            for name in ids.split():
                if speakers.setdefault(name, speaker) != speaker:
                    problems.add(f"{name!r} has two speakers, {speakers[name]!r} and {speaker!r}")
        problems.raise_if_any()
    else:
        speakers = read_id_list(path, "id speaker", same_twice=True)
    warn_of_alike(speakers.values())
    return speakers


def warn_of_alike(
    names: Iterable[str],
    kind: str = "names of speakers",
    each: str = "a speaker",
    form: Callable[[str], str] = folded,
) -> None:
    """Warn of names that differ only in spelling, such as case or Unicode form, since each counts separately.

    Parameters
    ----------
    names : iterable of str
        Names of speakers, classes or words.
    kind, each : str
        Nouns that the warning uses for the names and for each of them.
    form : callable
        Function that maps spellings of a name to a common form.
    """
    first: dict[str, str] = {}
    pairs = [(first.setdefault(form(name), name), name) for name in sorted(set(names))]
    alike = [pair for pair in pairs if pair[0] != pair[1]]
    if alike:
        text = "some %s differ in case, blanks or Unicode form alone, such as %s (%d in all): each is %s"
        logger.warning(text, kind, " and ".join(map(ascii, alike[0])), len(alike), each)


def find_speakers(
    key: Key, *, model_speakers: Speakers | None = None, segment_speakers: Speakers | None = None
) -> TrialSpeakers:
    """Find the speaker on each side of each trial.

    Parameters
    ----------
    key : Key
        Trials with their truth.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and of each segment: a map, a function of the id, or a separator such as ``"/"``: the
        speaker is the part before it, and a model without it is a speaker. See the module for a side without speakers.

    Returns
    -------
    TrialSpeakers
        In the order of the key.

    Raises
    ------
    DataError
        If an id with trials has no speaker, or a target trial joins two speakers of the maps.

    Examples
    --------
    >>> key = Key.from_ids(["anna", "anna", "bert", "bert"], ["s1", "s2", "s1", "s2"], [True, False, False, True])
    >>> speakers = find_speakers(key)
    >>> speakers, speakers.models.tolist(), speakers.segments.tolist()
    (TrialSpeakers(2 speakers, 4 trials), [0, 0, 1, 1], [0, 1, 0, 1])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    of_models = _named(key.model_ids, key.models, model_speakers, "model")
    of_segments = _named(key.segment_ids, key.segments, segment_speakers, "segment")
    names, codes = np.unique(np.concatenate([of_models, of_segments]), return_inverse=True)
    by_model = codes[: len(of_models)]
    by_segment = codes[len(of_models) :]
    models = by_model[key.models]
    segments = by_segment[key.segments]
    # names joined by target trials are one speaker
    pairs = models[key.is_target], segments[key.is_target]
    graph = coo_array((np.ones(len(pairs[0]), np.int8), pairs), shape=(len(names), len(names)))
    groups = connected_components(graph, directed=False)[1]
    mapped = np.zeros(len(names), bool)
    for places, speakers in ((by_model, model_speakers), (by_segment, segment_speakers)):
        mapped[places] |= speakers is not None
    label: dict[int, str] = {}  # a group is named by a map, else by its first name
    for code in [*np.flatnonzero(mapped), *np.flatnonzero(~mapped)]:
        name = names[code]
        other = label.setdefault(groups[code], name)
        if mapped[code] and name and other != name:
            text = f"target trials say that the speakers {other!r} and {name!r} are one"
            remedy = "check the maps of speakers, and give one for the models too if their ids are not speakers"
            raise DataError(text, remedy=remedy)
    if segment_speakers is None:
        used = np.unique(key.segments)
        linked = np.unique(key.segments[key.is_target])
        if len(used) > len(linked):
            text = (
                "%d of %d segments are in no target trial, so each counts as a separate speaker: "
            )
            text += "give the speakers of the segments if some of them share a speaker"
            logger.warning(text, len(used) - len(linked), len(used))
    present = np.unique(groups[np.concatenate([models, segments])])
    labels = np.array([label[group] for group in present], object)
    warn_of_alike(labels)
    speaker_of = np.zeros(len(names), np.int32)  # speaker of each group
    table, speaker_of[present] = np.unique(labels, return_inverse=True)
    return TrialSpeakers(table, speaker_of[groups[models]], speaker_of[groups[segments]])


class UnknownSpeakersError(DataError):
    """Error: ids may not be speakers, so that intervals over speakers are impossible."""


class Doubt(NamedTuple):
    """Why ids may not be speakers.

    Attributes
    ----------
    side : {"model", "segment"}
        The side of the ids.
    text : str
        The observation.
    """

    side: str
    text: str

    def error(self, remedy: str) -> UnknownSpeakersError:
        """Return the error that refuses intervals over speakers."""
        return UnknownSpeakersError(f"the speakers are not known: {self.text}", remedy=remedy)


def shared_prefixes(ids: Iterable[str]) -> dict[str, list[str]]:
    """Group ids by their common beginning.

    The beginning is the part before a separator (one of ``- _ / . : | # + @ ~``): the first separator that divides the
    ids into several groups, at least one of them with several members. A beginning that all ids share is ignored.

    Parameters
    ----------
    ids : iterable of str
        Distinct ids.

    Returns
    -------
    dict of str to list of str
        The groups with several members, each in the order of the ids; empty if there are none.

    Examples
    --------
    >>> shared_prefixes(["m101_001", "m101_002", "m102_001"])
    {'m101': ['m101_001', 'm101_002']}
    >>> shared_prefixes(["spk_1", "spk_2", "spk_3"])
    {}
    """
    cuts = {}
    for name in ids:
        cuts[name] = [match.start() for match in _SEPARATOR.finditer(name)] + [len(name)]
    for number in range(max(map(len, cuts.values()), default=1) - 1):
        groups: dict[str, list[str]] = {}
        for name, ends in cuts.items():
            end = ends[min(number, len(ends) - 1)]
            groups.setdefault(name[:end], []).append(name)
        if 1 < len(groups) < len(cuts):
            return {prefix: names for prefix, names in groups.items() if len(names) > 1}
    return {}


def doubt_speakers(
    key: Key, *, model_speakers: Speakers | None = None, segment_speakers: Speakers | None = None
) -> Doubt | None:
    """Return why ids of a key without a known speaker may not be speakers.

    Parameters
    ----------
    key : Key
        Trials with their truth.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        See `find_speakers`. A model without a map has the speaker of its target segments if these have one, and vice
        versa.

    Returns
    -------
    Doubt or None
        None if every speaker is known, or no ids look like several of one speaker.
    """
    targets = key.segments[key.is_target]
    if model_speakers is None:
        unnamed = np.unique(key.models)
        if segment_speakers is not None:
            unnamed = np.setdiff1d(unnamed, key.models[key.is_target])
        else:
            tested, counts = np.unique(targets, return_counts=True)
            several = key.segment_ids[tested[counts > 1]].tolist()
            if several:
                return Doubt(
                    "model",
                    f"targets of several models: {counted(len(several), 'segment')} ({few(several, repr)})",
                )
        doubt = _doubt_prefixes("model", key.model_ids[unnamed], "models")
        if doubt is not None:
            return doubt
    if segment_speakers is None:
        strangers = key.segment_ids[np.setdiff1d(key.segments, targets)]
        return _doubt_prefixes("segment", strangers, "segments that are in no target trial")
    return None


def own_trials(key: Key) -> list[str]:
    """Return the ids of target trials whose model and segment have the same id.

    Examples
    --------
    >>> own_trials(Key.from_ids(["u1", "u1", "u2"], ["u1", "u2", "u2"], [True, True, False]))
    ['u1']
    """
    same = key.is_target & (recode(key.model_ids, key.segment_ids)[key.models] == key.segments)
    return list(key.model_ids[np.unique(key.models[same])])


def read_metadata(path: str | Path, column: str) -> dict[str, str]:
    """Read one column of a table with a header.

    Parameters
    ----------
    path : path
        Text in UTF-8, its columns separated by tabs, commas, semicolons or blanks, whichever the header contains first,
        in this order. The first column holds ids.
    column : str
        Name of the wanted column, as in the header.

    Returns
    -------
    dict of str to str
        The value for each id; blank if the table has none.

    Raises
    ------
    DataError
        With file and line: a missing column, a row of another length, an id with two values, an empty file, text that
        is not UTF-8.
    """
    values: dict[str, str] = {}
    problems = Problems(path)
    for line, (name, value) in read_columns(path, [None, column]):
        if values.setdefault(name, value) != value:
            problems.add(f"{name!r} is {value!r} here, but {values[name]!r} above", line=line)
    problems.raise_if_any()
    return values


def group_trials(
    key: Key, metadata: Mapping[str, str], *, speakers: TrialSpeakers | None = None
) -> tuple[np.ndarray, list[str]]:
    """Find the group of each trial.

    Parameters
    ----------
    key : Key
        Trials.
    metadata : mapping of str to str
        Group of each id of a model or a segment, or else of its speaker.
    speakers : TrialSpeakers, optional
        Speakers of the trials, in the order of the key; required if the metadata name speakers.

    Returns
    -------
    codes : ndarray of int32 of shape (N,)
        Index in `names` of each trial's group; -1 for trials across groups, -2 if a group is blank.
    names : list of str
        Names of the groups, sorted.

    Raises
    ------
    DataError
        If the metadata cover only some ids of a side, or no side.
    """
    names, known_sides = _groups_of_sides(key, metadata, speakers)
    first = known_sides[0]
    last = known_sides[-1]
    group = first.copy()
    group[first != last] = -1
    group[np.minimum(first, last) == _BLANK] = _BLANK
    used = np.unique(group[group >= 0])
    rank = np.full(len(names), -1, np.int32)
    rank[used] = np.arange(len(used))
    return np.where(group >= 0, rank[group], group).astype(np.int32), [
        names[row] for row in used.tolist()
    ]


def match_sides(
    key: Key, side: Mapping[str, str], *, speakers: TrialSpeakers | None = None
) -> np.ndarray:
    """Return which trials an attacker with side information cannot rule out.

    Parameters
    ----------
    key : Key
        Trials.
    side : mapping of str to str
        What is known about each id of a model and a segment, or else about its speaker, such as ``"f"``; blank if
        nothing is known.
    speakers : TrialSpeakers, optional
        Speakers of the trials, in the order of the key; required if the side information is about speakers.

    Returns
    -------
    ndarray of bool of shape (N,)
        Whether both sides have the same value, or one of them is blank.

    Raises
    ------
    DataError
        If the side information lacks an id, covers only one side of the trials, or contradicts a target trial.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b"], ["s", "s"], [True, False])
    >>> match_sides(key, {"a": "f", "b": "m", "s": "f"})
    array([ True, False])
    """
    _, known_sides = _groups_of_sides(key, side, speakers)
    if len(known_sides) < 2:
        raise DataError(
            "expected side information on models and on segments, got it only for one side",
            remedy="give both, or the speakers of both, so that they can be compared",
        )
    models, segments = known_sides
    matching: np.ndarray = (models == segments) | (models == _BLANK) | (segments == _BLANK)
    wrong = np.flatnonzero(key.is_target & ~matching)
    if len(wrong):
        pair = key.model_ids[key.models[wrong[0]]], key.segment_ids[key.segments[wrong[0]]]
        text = "expected both sides of a target trial to match, but {!r} and {!r} do not"
        raise DataError(
            f"{text.format(*pair)} ({len(wrong)} such trials)",
            remedy="correct the table, or leave what is not certain blank",
        )
    return matching


def side_of(names: Iterable[str], side: Mapping[str, str]) -> np.ndarray:
    """Return the side information on each of the given speakers.

    Parameters
    ----------
    names : iterable of str of length P
        Speakers.
    side : mapping of str to str
        See `match_sides`.

    Returns
    -------
    ndarray of str of shape (P,), dtype object

    Raises
    ------
    DataError
        If the side information lacks a speaker.
    """
    listed = list(names)
    absent = [name for name in listed if name not in side]
    if absent:
        text = f"{len(absent)} of {len(listed)} speakers are not in the side information: {few(absent, repr)}"
        raise DataError(text, remedy="add them, with a blank if nothing is known")
    known = [side[name] for name in listed]
    warn_of_alike(known, "groups", "a group")
    return np.array(known, object)


def read_side(path: str | Path) -> dict[str, str]:
    """Read what an attacker knows about speakers: the columns of a table as one value.

    Parameters
    ----------
    path : path
        See `read_metadata`; the first column holds ids.

    Returns
    -------
    dict of str to str
        The cells of each id, joined by " / "; blank if any of them is.

    Raises
    ------
    DataError
        As `read_metadata`, or if there is no column beside the ids.
    """
    columns = read_header(path)[1:]
    if not columns:
        raise DataError("expected ids and at least one more column, got only ids", file=path)
    parts = [read_metadata(path, column) for column in columns]
    side = {}
    for name in parts[0]:
        cells = [part[name] for part in parts]
        side[name] = " / ".join(cells) if all(cells) else ""
    return side


def _groups_of_sides(
    key: Key, metadata: Mapping[str, str], speakers: TrialSpeakers | None
) -> tuple[list[str], list[np.ndarray]]:
    """Return the names of all groups, and for each side that the metadata cover the group of each trial."""
    names = sorted({value for value in metadata.values() if value})
    warn_of_alike(names, "groups", "a group")
    places = {"": _BLANK} | {name: row for row, name in enumerate(names)}
    known_sides = []
    for side in ("model", "segment"):
        codes = getattr(key, f"{side}s")
        groups = _look_up(getattr(key, f"{side}_ids"), codes, metadata, places, side)
        if groups is None and speakers is not None:
            codes = getattr(speakers, f"{side}s")
            groups = _look_up(speakers.names, codes, metadata, places, f"speakers of the {side}")
        if groups is not None:
            known_sides.append(groups)
    if not known_sides:
        remedy = "the first column of the table must hold ids of models, segments or speakers"
        raise DataError("no model or segment of the key is in the table", remedy=remedy)
    return names, known_sides


def speakers_of_ids(ids: Sequence[str], speakers: Speakers) -> list[str]:
    """Return the speaker of each id by a map, a function of the id, or the separator that ends the speaker in it.

    Raises
    ------
    DataError
        If an id has no speaker.

    Examples
    --------
    >>> speakers_of_ids(["anna/1", "bert/7"], "/")
    ['anna', 'bert']
    """
    names: list[str] = _named(
        np.array(ids, object), np.arange(len(ids)), speakers, "utterance"
    ).tolist()
    return names


def _named(ids: np.ndarray, codes: np.ndarray, speakers: Speakers | None, side: str) -> np.ndarray:
    """Return the speaker of each id that has a trial; "" for the others."""
    used = np.unique(codes)
    listed = ids[used].tolist()
    remedy = f"the map of speakers must name the speaker of every {side} of the key"
    named: list[Any] = listed
    if isinstance(speakers, str) and speakers:
        named = [_before(speakers, name, is_model=side == "model") for name in listed]
        other = next((sign for sign in "/-_." if sign in "".join(listed)), "a map of them")
        remedy = f"no {speakers!r} ends their speakers: try {other}"
    elif isinstance(speakers, Mapping):
        named = [speakers.get(name) for name in listed]
    elif callable(speakers):
        named = [speakers(name) for name in listed]
    elif speakers is not None:
        raise DataError(
            f"expected speakers as a map, a function of the id or a separator such as '/', got {speakers!r:.60}"
        )
    names = np.full(len(ids), "", object)
    names[used] = named
    absent = []
    for name, speaker in zip(listed, named, strict=True):
        if not speaker or not isinstance(speaker, str):
            absent.append(name)
    if absent:
        raise DataError(
            f"{len(absent)} of {len(used)} {side}s without a speaker: {few(absent, repr)}",
            remedy=remedy,
        )
    return names


def _before(sign: str, name: str, *, is_model: bool) -> str:
    """Return the part of an id before a separator; without one, all of it for a model, else nothing."""
    speaker, end, _ = name.partition(sign)
    if end or is_model:
        return speaker
    return ""


def _doubt_prefixes(side: str, ids: np.ndarray, title: str) -> Doubt | None:
    groups = list(shared_prefixes(ids).values())
    if not groups:
        return None
    largest = max(groups, key=len)
    n_alike = sum(map(len, groups))
    return Doubt(
        side,
        f"{n_alike} of {len(ids)} {title} have ids that begin alike, such as {few(largest, repr)}",
    )


def _look_up(
    ids: np.ndarray,
    codes: np.ndarray,
    metadata: Mapping[str, str],
    places: Mapping[str, int],
    noun: str,
) -> np.ndarray | None:
    """Return the group of each trial by one side, or None if the table has none of its ids."""
    used = np.unique(codes).tolist()
    absent = [ids[code] for code in used if ids[code] not in metadata]
    if len(absent) == len(used):
        warn_of_alike(
            [*absent, *metadata], f"ids of {noun}s", "an id of its own, which the table lacks"
        )
        return None
    if absent:
        text = f"{len(absent)} of {len(used)} {noun}s are not in the table: {few(absent, repr)}"
        raise DataError(text, remedy="add them, with a blank value if it is unknown")
    table = np.full(len(ids), _BLANK, np.int32)
    table[used] = [places[metadata[ids[code]]] for code in used]
    groups: np.ndarray = table[codes]
    return groups
