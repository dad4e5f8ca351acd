"""Rank of the target speaker of each trial among all enrolled speakers, from embeddings or scores.

From embeddings there is one row per trial speaker, and all are compared with the whole gallery. From scores there is
one row per segment that has a target trial, or with `utterances` one per speaker, whose scores are means over segments.
Segments without a target trial have no target speaker among the enrolled and make no row.

Table of counts
---------------
A *row* is one trial: a trial embedding with one gallery, or a tested segment with the models that it was scored
against. Its target speaker is the enrolled speaker that it comes from; all others are impostors. A row knows how many
impostors score strictly higher than the target speaker (beaters), how many the same (ties), and how many there are.

The file is an npz with the columns of each table under its number of utterances, such as ``3/beaters``.

Exact counts from float32 products
----------------------------------
The matrix of similarities is never held. A block of the gallery times a block of the trials gives cosines in float32,
which are compared with the target speaker's cosine from float64, a margin above it and a margin below. The margin is
1e-5, or the largest error of a float32 product of this many dimensions, whichever is larger; so what lies
outside is certain, and what lies between is computed again in float64. Counts are therefore those of float64, whatever
the shape of the blocks, the BLAS library and the number of workers. Two cosines closer than 1e-12, which float64 cannot
tell apart, are a tie.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.embeddings import (
    TIE,
    Averaging,
    Embeddings,
    SpeakerVectors,
    cosine_margin,
    cosines,
    speaker_vectors,
    to_unit,
    warn_of_enrolled,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    TrialSpeakers,
    doubt_speakers,
    find_rows,
    floats_of,
    join_scores,
    match_sides,
)
from spkbase.arrays import Rows, part
from spkbase.errors import DataError, counted, few
from spkbase.files import atomic_path
from spkbase.plain_pickle import read_npz
from spkbase.showing import Tabular, one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, ships_items

logger = logging.getLogger(__name__)

TieRule = Literal["shared", "strict", "lenient"]
TIE_RULES: tuple[TieRule, ...] = ("shared", "strict", "lenient")
_DTYPES = {
    "speakers": np.str_,
    "beaters": np.int64,
    "ties": np.int64,
    "impostors": np.int64,
    "mated": np.float64,
}
_BLOCKS_SENT = 32  # blocks in a task of another process, enough to make the transfer worthwhile

_Trials = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]
"""Trials: the row of the table of ranks that each belongs to, its model, its score, and whether it is a target."""


@one_line
@dataclass(frozen=True, eq=False)
class Ranks(Tabular):
    """The rank of the target speaker in each row; see the module.

    Attributes
    ----------
    beaters : ndarray of int64 of shape (n,)
        Impostors that score strictly higher than the target speaker.
    ties : ndarray of int64 of shape (n,)
        Impostors that score the same; one number serves all rows, here and for the impostors.
    impostors : ndarray of int64 of shape (n,)
        Impostors that the row was compared with, at least as many as beaters and ties.
    speakers : ndarray of str of shape (n,)
        Target speaker of each row; unnamed speakers get names.
    mated : ndarray of float64 of shape (n,)
        Score of the target speaker; NaN if it is not known.
    notes : tuple of str
        Notes for readers, for example on speakers with fewer utterances than requested.
    are_speakers : bool
        False if models may not be speakers, so that there are no intervals over speakers.

    Raises
    ------
    DataError
        If shapes disagree, there is no row, or counts are negative or exceed the impostors.

    Examples
    --------
    >>> Ranks([0, 2], [0, 1], 9).places("shared")
    array([1. , 3.5])
    """

    beaters: Any
    ties: Any
    impostors: Any
    speakers: Any = None
    mated: Any = float("nan")
    notes: tuple[str, ...] = ()
    are_speakers: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        n_rows = np.size(self.beaters)
        if not n_rows:
            raise DataError("expected at least one trial of an enrolled speaker, got none")
        if self.speakers is None:
            object.__setattr__(
                self, "speakers", [f"s{row:0{len(str(n_rows))}d}" for row in range(n_rows)]
            )
        for name, dtype in _DTYPES.items():
            column = np.asarray(getattr(self, name))
            if column.shape not in ((), (n_rows,)):
                raise DataError(f"expected {name} of shape ({n_rows},), got {column.shape}")
            object.__setattr__(
                self, name, np.broadcast_to(column.astype(dtype, copy=False), n_rows)
            )
        least = min(int(counts.min()) for counts in (self.beaters, self.ties, self.impostors))
        if least < 0 or (self.beaters + self.ties > self.impostors).any():
            raise DataError("expected counts from 0, and no more beaters and ties than impostors")

    def __len__(self) -> int:
        return len(self.beaters)

    def headline(self) -> str:
        """Return how often the target speaker alone ranks first."""
        first = int((self.beaters + self.ties == 0).sum())
        largest = self.impostors.max() + 1
        return f"the target speaker ranks first in {first} of {len(self)} trials, among up to {largest}"

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each trial."""
        return {"speaker": self.speakers} | {
            name: getattr(self, name) for name in list(_DTYPES)[1:]
        }

    def subset(self, rows: NDArray[np.bool_]) -> Ranks:
        """Return some of the rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _DTYPES})

    @property
    def largest_size(self) -> int:
        """The largest gallery, target speaker included, that every row can serve."""
        return int(self.impostors.min()) + 1

    def span(self, ties: TieRule = "shared") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest number of beaters of each row under a rule for ties; see `places`.

        All numbers between them are equally likely.

        Raises
        ------
        DataError
            If the rule is unknown.
        """
        if ties not in TIE_RULES:
            raise DataError(
                f"expected one of the rules for ties {', '.join(TIE_RULES)}, got {ties!r}"
            )
        most = self.beaters + self.ties
        if ties == "strict":
            return most, most
        if ties == "lenient":
            return self.beaters, self.beaters
        return self.beaters, most

    def places(self, ties: TieRule = "shared") -> NDArray[np.float64]:
        """Return the mean rank of the target speaker in the whole gallery, from 1.

        `strict` puts the target speaker behind all with an equal score, `lenient` before them, `shared` anywhere among
        them.
        """
        low, high = self.span(ties)
        return 1 + (low + high) / 2

    def first(self, ties: TieRule = "shared") -> NDArray[np.float64]:
        """Return the probability that the target speaker of each row ranks first in the whole gallery.

        Examples
        --------
        >>> Ranks([0, 0, 1], [0, 1, 0], 9).first()
        array([1. , 0.5, 0. ])
        """
        low, high = self.span(ties)
        return np.where(low == 0, 1 / (high - low + 1), 0.0)


def write_ranks(path: str | Path, ranks: Mapping[int, Ranks]) -> None:
    """Write ranks by number of utterances (0 for all), atomically."""
    columns: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    for number, table in ranks.items():
        columns |= {f"{number}/{name}": getattr(table, name) for name in _DTYPES}
        if table.notes:
            notes[f"{number}/notes"] = np.asarray(table.notes, np.str_)
        if not table.are_speakers:
            notes[f"{number}/are_speakers"] = np.asarray(False)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **columns, **notes)


def read_ranks(path: str | Path) -> dict[int, Ranks]:
    """Return the ranks that `write_ranks` wrote, by number of utterances.

    Raises
    ------
    DataError
        If the file is missing, broken, or holds no ranks.
    """
    columns = read_npz(path)
    try:
        numbers = sorted({int(name.partition("/")[0]) for name in columns})
        tables = {}
        for number in numbers:
            table = {name: columns[f"{number}/{name}"] for name in _DTYPES}
            notes = columns.get(f"{number}/notes", np.empty(0, np.str_))
            are_speakers = bool(columns.get(f"{number}/are_speakers", True))
            tables[number] = Ranks(**table, notes=tuple(notes.tolist()), are_speakers=are_speakers)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, DataError):
            text = error.text
        else:
            text = f"is not a file of ranks: {error}"
        raise DataError(text, file=path, remedy="write it again") from error
    if not tables:
        raise DataError("expected ranks, got an empty file", file=path, remedy="write it again")
    return tables


def count_beaters(
    gallery: Rows,
    norms: NDArray[np.float64],
    trials: NDArray[np.floating],
    owners: NDArray[np.int64],
    *,
    work: Work = ALL_CORES,
    blocks: tuple[int, int] = (255, 2048),
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of vectors of a gallery that beat the target speaker of each trial.

    Parameters
    ----------
    gallery : ndarray of shape (G, D)
        Vectors of the enrolled, of any floating type; they may be in a file, and are read block by block, once.
    norms : ndarray of float64 of shape (G,)
        Their lengths, all > 0.
    trials : ndarray of shape (n, D)
        Vectors of the trials, of length > 0.
    owners : ndarray of int64 of shape (n,)
        For each trial the row of its target speaker in the gallery.
    work : Work
        Workers; the counts do not depend on them.
    blocks : (int, int)
        Rows and columns of a block of similarities; at most 255 rows, whose comparisons are summed in a byte.

    Returns
    -------
    beaters, ties : ndarray of int64 of shape (n,)
        Numbers of vectors of other speakers that score higher than the target speaker's, and the same.
    mated : ndarray of float64 of shape (n,)
        Cosine of each trial with its target speaker.
    """
    unit = to_unit(trials)
    mated = cosines(gallery, norms, unit, owners, np.arange(len(unit)))
    n_blocks = _BLOCKS_SENT if ships_items() else 1
    bounds = chunk_bounds(len(gallery), blocks[0] * n_blocks)
    parts = ((start, part(gallery, start, stop), norms[start:stop]) for start, stop in bounds)
    count = partial(_count_part, unit, unit.astype(np.float32), mated, owners, blocks)
    counts = np.zeros((2, len(unit)), np.int64)
    for of_part in work.map(count, parts, description="ranks", total=len(bounds)):
        counts += of_part
    return counts[0], counts[1], mated


def ranks_from_embeddings(
    enrol: Embeddings,
    trial: Embeddings,
    *,
    utterances: int | None = 1,
    averaging: Averaging | None = None,
    not_enrolled: Literal["error", "drop"] = "error",
    work: Work = ALL_CORES,
) -> Ranks:
    """Return the rank of each trial speaker in the whole gallery, by cosine similarity.

    Parameters
    ----------
    enrol, trial : Embeddings
        An enrolled speaker is the mean of all its embeddings, a trial speaker the mean of `utterances` of them.
    utterances : int, optional
        Number of averaged embeddings of the trial speaker; None for all.
    averaging : Averaging, optional
        How means are made and utterances are chosen.
    not_enrolled : {"error", "drop"}
        Treatment of trial speakers who are not enrolled.
    work : Work
        Workers; the counts do not depend on them.

    Returns
    -------
    Ranks
        One row per trial speaker, sorted by name.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or 0, fewer than 2 speakers are enrolled, or as described above.
    """
    averaging = averaging or Averaging()
    warn_of_enrolled(enrol, trial)
    gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    trials = speaker_vectors(trial, averaging=averaging, utterances=utterances)
    return rank_speakers(gallery, trials, not_enrolled=not_enrolled, work=work)


def rank_speakers(
    gallery: SpeakerVectors,
    trials: SpeakerVectors,
    *,
    not_enrolled: Literal["error", "drop"] = "error",
    work: Work = ALL_CORES,
) -> Ranks:
    """Return the rank of each trial vector's speaker in a gallery.

    See `ranks_from_embeddings`, which makes the vectors.
    """
    if gallery.vectors.shape[1] != trials.vectors.shape[1]:
        got = f"{gallery.vectors.shape[1]} of the enrolled and {trials.vectors.shape[1]} of the trials"
        raise DataError(
            f"expected the same number of dimensions on both sides, got {got}",
            remedy="use one extractor for both",
        )
    if len(gallery.names) < 2:
        raise DataError(
            "expected at least 2 enrolled speakers, got 1", remedy="a gallery needs impostors"
        )
    rows = {name: row for row, name in enumerate(gallery.names.tolist())}
    owners = np.array([rows.get(name, -1) for name in trials.names.tolist()], np.int64)
    kept = owners >= 0
    notes = (*gallery.notes, *trials.notes)
    absent = trials.names[~kept].tolist()
    if absent:
        text = f"{len(absent)} of {len(owners)} trial speakers are not enrolled: {few(absent)}"
        if not_enrolled == "error" or len(absent) == len(owners):
            raise DataError(
                text, remedy="enrol them, check the ids, or drop them: not_enrolled='drop'"
            )
        logger.warning("dropped: %s", text)
        notes = (*notes, f"dropped: {text}")
    beaters, ties, mated = count_beaters(
        gallery.vectors, gallery.norms, trials.vectors[kept], owners[kept], work=work
    )
    return Ranks(beaters, ties, len(gallery.names) - 1, trials.names[kept], mated, notes)


def ranks_from_scores(
    scores: Scores,
    key: Key,
    *,
    utterances: int | Literal["all"] | None = None,
    missing: Missing = "error",
) -> Ranks:
    """Return the rank of each tested segment's target speaker among the models that it was scored against.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair; the key's target trials say who the target speaker is. Each model is one enrolled speaker; a
        note says if the ids suggest otherwise.
    utterances : int or "all", optional
        If an integer L: one row per speaker, scored by the mean over its first L segments (by id). Speakers with fewer
        use all of them; a note says so. By default each segment is a row.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key without a score, and scores of unknown ids.

    Returns
    -------
    Ranks
        Rows sorted by speaker, then by segment.

    Raises
    ------
    DataError
        If scores and key do not match, a segment has several target trials or no impostor, or no segment has a
        target trial; with `utterances`, if the segments of a speaker were scored against different models.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b", "c"] * 2, ["s"] * 3 + ["t"] * 3, [True, False, False, False, True, False])
    >>> scores = Scores.from_ids(["a", "b", "c"] * 2, ["s"] * 3 + ["t"] * 3, [1.0, 3.0, 1.0, 0.0, 5.0, 1.0])
    >>> ranks = ranks_from_scores(scores, key)
    >>> ranks.speakers.tolist(), ranks.beaters.tolist(), ranks.ties.tolist()
    (['a', 'b'], [1, 0], [1, 0])
    """
    return rank_scores(scores, key, [utterances], missing=missing)[0][0]


def ranks_of_matrix(similarities: ArrayLike) -> Ranks:
    """Return the ranks in a similarity matrix, such as the SimMatrix of Speaker-Linkability.

    Parameters
    ----------
    similarities : array_like of float of shape (n, N)
        Row i is a trial of the speaker of column i; the other N - n columns are speakers that are only enrolled.

    Raises
    ------
    DataError
        If the matrix has fewer columns than rows, or a value is not finite.

    Examples
    --------
    >>> ranks_of_matrix([[0.9, 0.1, 0.2], [0.3, 0.2, 0.2]]).beaters.tolist()
    [0, 1]
    """
    matrix = floats_of(similarities, "similarities")
    if matrix.ndim != 2 or not 0 < len(matrix) <= matrix.shape[1]:
        text = "expected a matrix of similarities, trials by enrolled speakers, with target scores on its diagonal"
        raise DataError(f"{text}, got {matrix.dtype} of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise DataError("expected finite similarities", remedy="compute the matrix again")
    own = matrix.diagonal()[:, None]
    beaters = (matrix > own).sum(axis=1)
    ties = (matrix == own).sum(axis=1) - 1
    note = "speakers are named by the rows of the matrix; target scores are on its diagonal"
    return Ranks(beaters, ties, matrix.shape[1] - 1, mated=own[:, 0], notes=(note,))


def rank_scores(
    scores: Scores,
    key: Key,
    numbers: Sequence[int | Literal["all"] | None],
    *,
    largest: int = 0,
    missing: Missing = "error",
    speakers: TrialSpeakers | None = None,
    side: Mapping[str, str] | None = None,
) -> list[tuple[Ranks, NDArray[np.float64] | None]]:
    """Return ranks for several numbers of utterances, and on request each row's largest impostor scores.

    Parameters
    ----------
    scores, key, missing
        See `ranks_from_scores`, which also names the errors.
    numbers : sequence of int, "all" or None
        Numbers of utterances, as in `ranks_from_scores`.
    largest : int
        Number of impostor scores kept for each row.
    speakers : TrialSpeakers, optional
        The speakers of each trial, in the order of the key: the gallery then holds speakers, not models, and a speaker
        with several models has the highest of their scores. By default each model is a speaker.
    side : mapping of str to str, optional
        What the attacker knows about each id or speaker, see `evaluation.trials.match_sides`: the gallery of a row then
        holds those who match, who may be nobody else.

    Returns
    -------
    list of (Ranks, ndarray of float64 of shape (n, largest), or None)
        For each number; scores in descending order, None if a row has fewer or infinite scores.
    """
    gallery = gallery_trials(scores, key, missing=missing, speakers=speakers, side=side)
    trials = gallery.rows, gallery.models, gallery.values, gallery.is_target
    may_be_alone = side is not None
    ranked = []
    for number in numbers:
        if number is None:
            titles = [f"segment {segment!r}" for segment in gallery.segments]
            ranked.append(
                _count(trials, gallery.owners, titles, gallery.notes, largest, may_be_alone)
            )
            continue
        means, owners, short = _by_speaker(trials, gallery.owners, number)
        notes = gallery.notes
        if short and number != "all":
            text = (
                f"{counted(len(short), 'speaker')} with fewer than {number} segments: {few(short)}"
            )
            logger.warning("%s; all of theirs are used", text)
            notes = (*notes, f"{text}; all of theirs are used")
        ranked.append(_count(means, owners, owners, notes, largest, may_be_alone))
    return ranked


class GalleryTrials(NamedTuple):
    """Trials of the tested segments that have a target trial, each row of which is one search of a gallery.

    Attributes
    ----------
    rows, models : ndarray of int64 of shape (n,)
        The segment, from 0, and the model of each trial.
    values : ndarray of float64 of shape (n,)
        Scores.
    is_target : ndarray of bool of shape (n,)
        Whether each is a target trial, one for each row.
    owners, segments : list of str
        The target speaker and the id of each row, sorted.
    notes : tuple of str
        Which trials were left out or joined.
    """

    rows: NDArray[np.int64]
    models: NDArray[np.int64]
    values: NDArray[np.float64]
    is_target: NDArray[np.bool_]
    owners: list[str]
    segments: list[str]
    notes: tuple[str, ...]


def gallery_trials(
    scores: Scores,
    key: Key,
    *,
    missing: Missing = "error",
    speakers: TrialSpeakers | None = None,
    side: Mapping[str, str] | None = None,
) -> GalleryTrials:
    """Return the trials of a key as searches of a gallery; parameters and errors as for `rank_scores`."""
    asked = key
    notes = list[str]()
    values, key = join_scores(scores, asked, missing=missing)
    if len(key) < len(asked):
        notes.append(f"dropped: {len(asked) - len(key)} of {len(asked)} trials without a score")
        if speakers is not None:
            speakers = speakers.subset(find_rows(asked, scores) >= 0)
    if side is not None:
        matching = match_sides(key, side, speakers=speakers)
        key = key.subset(matching)
        values = values[matching]
        if speakers is not None:
            speakers = speakers.subset(matching)
    if speakers is None:
        doubt = doubt_speakers(key)
        if doubt is not None and doubt.side == "model":
            notes.append(f"each model counts as a speaker, which it may not be: {doubt.text}")
    else:
        n_trials = len(key)
        key, values = against_speakers(key, values, speakers)
        if len(key) < n_trials:
            notes.append(
                f"{n_trials} trials of models are {len(key)} of speakers: the highest score counts"
            )
    rows, names = _rows_of_segments(key)
    n_without = len(np.unique(key.segments[rows < 0]))
    if n_without:
        notes.append(
            f"left out: {counted(n_without, 'segment')} without a target trial, of speakers who are not enrolled"
        )
    kept = rows >= 0
    return GalleryTrials(
        rows[kept],
        key.models[kept].astype(np.int64),
        values[kept],
        key.is_target[kept],
        [owner for owner, _ in names],
        [segment for _, segment in names],
        tuple(notes),
    )


def _rows_of_segments(key: Key) -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
    """Return each trial's row (that of its segment, or -1 without a target trial), and each row's target speaker and
    id.

    Rows are sorted by speaker and id, unlike the tables of the key.
    """
    targets = np.flatnonzero(key.is_target)
    tested, first, counts = np.unique(key.segments[targets], return_index=True, return_counts=True)
    if (counts > 1).any():
        several = key.segment_ids[tested[counts > 1]].tolist()
        text = f"{counted(len(several), 'segment')} with several target trials: {few(several)}"
        raise DataError(text, remedy="a gallery holds each speaker once: keep one model of each")
    owners = key.model_ids[key.models[targets[first]]].tolist()
    names = list(zip(owners, key.segment_ids[tested].tolist(), strict=True))
    order = sorted(range(len(names)), key=names.__getitem__)
    row_of = np.full(len(key.segment_ids), -1)
    row_of[tested[order]] = np.arange(len(names))
    return row_of[key.segments], [names[row] for row in order]


def _count_part(
    unit: NDArray[np.float64],
    rounded: NDArray[np.float32],
    mated: NDArray[np.float64],
    owners: NDArray[np.int64],
    blocks: tuple[int, int],
    item: tuple[int, Rows, NDArray[np.float64]],
) -> NDArray[np.int64]:
    """Count higher and equal scores, (2, n), in a part of the gallery's rows, given with the number of the first."""
    first, rows, norms = item
    margin = cosine_margin(unit.shape[1])
    low = (mated - margin).astype(np.float32)
    high = (mated + margin).astype(np.float32)
    counts = np.zeros((2, len(unit)), np.int64)
    for start, stop in chunk_bounds(len(norms), blocks[0]):
        block = np.asarray(part(rows, start, stop))
        vectors = (block * (1 / norms[start:stop])[:, None]).astype(np.float32)
        own = np.flatnonzero((owners >= first + start) & (owners < first + stop))
        for at, end in chunk_bounds(len(unit), blocks[1]):
            similarities = vectors @ rounded[at:end].T
            mine = own[(own >= at) & (own < end)]
            similarities[owners[mine] - first - start, mine - at] = -2.0  # lower than any cosine
            higher = similarities > high[at:end]
            counts[0, at:end] += np.add.reduce(higher.view(np.uint8), axis=0, dtype=np.uint8)
            near_ties = np.flatnonzero((similarities > low[at:end]) != higher)
            near = near_ties // (end - at)
            columns = near_ties % (end - at) + at
            above = cosines(block, norms[start:stop], unit, near, columns) - mated[columns]
            for number, some in enumerate((above > TIE, np.abs(above) <= TIE)):
                counts[number] += np.bincount(columns[some], minlength=len(unit))
    return counts


def against_speakers(
    key: Key, values: NDArray[np.float64], speakers: TrialSpeakers
) -> tuple[Key, NDArray[np.float64]]:
    """Turn trials of models into trials of speakers, each with the highest score of the speaker's models.

    For the target speaker only target trials count: nontarget trials within a speaker concern, for example, another
    sentence.
    """
    pairs = key.segments.astype(np.int64) * len(speakers.names) + speakers.models
    owned = np.isin(pairs, pairs[key.is_target])
    kept = np.flatnonzero(key.is_target | ~owned)
    distinct, first, inverse = np.unique(pairs[kept], return_index=True, return_inverse=True)
    highest = np.full(len(distinct), -np.inf)
    np.maximum.at(highest, inverse, values[kept])
    segments, models = (
        codes.astype(np.int32) for codes in np.divmod(distinct, len(speakers.names))
    )
    return Key(
        speakers.names, key.segment_ids, models, segments, key.is_target[kept[first]]
    ), highest


def _count(
    trials: _Trials,
    owners: Sequence[str],
    names: Sequence[str],
    notes: tuple[str, ...],
    largest: int,
    may_be_alone: bool = False,
) -> tuple[Ranks, NDArray[np.float64] | None]:
    """Count each row's impostors with scores above or equal to the target speaker's; return the largest scores too."""
    rows, _, values, is_target = trials
    mated = np.full(len(owners), np.nan)
    mated[rows[is_target]] = values[is_target]
    rows = rows[~is_target]
    values = values[~is_target]
    higher = values > mated[rows]
    same = values == mated[rows]
    beaters = np.bincount(rows[higher], minlength=len(owners))
    ties = np.bincount(rows[same], minlength=len(owners))
    impostors = np.bincount(rows, minlength=len(owners))
    if not (impostors.all() or may_be_alone):
        alone = [name for name, count in zip(names, impostors.tolist(), strict=True) if not count]
        raise DataError(
            f"{len(alone)} without any impostor trial: {few(alone)}",
            remedy="a rank needs impostors",
        )
    ranks = Ranks(beaters, ties, impostors, owners, mated, notes)
    if not largest or impostors.min() < largest:
        return ranks, None
    starts = np.cumsum(impostors) - impostors
    kept = values[np.lexsort((-values, rows))][starts[:, None] + np.arange(largest)]
    if np.isfinite(kept).all() and np.isfinite(mated).all():
        return ranks, kept
    return ranks, None


def _by_speaker(
    trials: _Trials, owners: Sequence[str], utterances: int | Literal["all"]
) -> tuple[_Trials, list[str], list[str]]:
    """Average the scores of each speaker's first rows; also return the speakers, and the number with fewer rows."""
    if utterances != "all" and utterances < 1:
        raise DataError(f"expected at least 1 utterance, got {utterances}")
    # rows are sorted by owner
    names, speaker_of, counts = np.unique(owners, return_inverse=True, return_counts=True)
    n_used = counts
    short = []
    if utterances != "all":
        n_used = np.minimum(counts, utterances)
        short = names[counts < utterances].tolist()
    number = np.arange(len(owners)) - (np.cumsum(counts) - counts)[speaker_of]
    rows, models, values, is_target = trials
    kept = (number < n_used[speaker_of])[rows]
    n_models = int(models.max()) + 1
    codes = speaker_of[rows[kept]] * n_models + models[kept]
    distinct, first, inverse, n_scores = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    speakers, models = np.divmod(distinct, n_models)
    uneven = n_scores != n_used[speakers]
    if uneven.any():
        several = names[np.unique(speakers[uneven])].tolist()
        text = f"{counted(len(several), 'speaker')} whose segments were scored against different models: {few(several)}"
        raise DataError(text, remedy="means over segments need the same models for all of them")
    means = np.bincount(inverse, values[kept]) / n_scores
    if np.isnan(means).any():
        raise DataError(
            "infinite scores of both signs cannot be averaged", remedy="use single segments"
        )
    return (speakers, models, means, is_target[kept][first]), names.tolist(), short
