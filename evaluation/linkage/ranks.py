"""Where the owner of each trial ranks among all who are enrolled: from embeddings, and from any scores.

From embeddings there is one row a trial speaker, and all are compared with the whole gallery. From scores there is one
row a segment that has a target trial, or with `utterances` one a speaker, whose scores are means over segments.
Segments without a target trial have no owner among the enrolled and make no row.

**Where the owner of each trial ranks: a table of counts, and its file.**

A *row* is one trial: a trial embedding with one gallery, or a tested segment with the models that it was scored
against. Its owner is the enrolled speaker that it comes from; all others are impostors. A row knows how many impostors
score strictly higher than the owner (beaters), how many the same (ties), and how many there are.

The file is an npz with the columns of each table under its number of utterances, such as ``3/beaters``.

**How many of a gallery score higher than the owner: blocked float32 products, and exact integers out of them.**

The matrix of similarities is never held. A block of the gallery times a block of the trials gives cosines in float32,
which are compared with the owner's cosine from float64, a margin above it and a margin below. The margin is 1e-5, or
the largest error that a float32 product of so many dimensions can have, whichever is larger; so what lies outside is
certain, and what lies between is computed again in float64. Counts are therefore those of float64, whatever the shape
of the blocks, the library of products and the number of workers. Two cosines closer than 1e-12, which float64 cannot
tell apart, are a tie.

Comparisons are summed eight at a time in the bytes of words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.embeddings import TIE, cosine_margin, cosines, to_unit
from evaluation.trials import Key, Scores, TrialSpeakers, doubt_speakers, find_rows, split_scores
from spkbase.arrays import Rows, part
from spkbase.errors import DataError, few
from spkbase.files import atomic_path
from spkbase.plain_pickle import read_npz
from spkbase.showing import Tabular, one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, ordered_map, ships_items

if TYPE_CHECKING:
    from evaluation.embeddings import Averaging, Embeddings, SpeakerVectors

logger = logging.getLogger(__name__)


TieRule = Literal["shared", "strict", "lenient"]
TIE_RULES: tuple[TieRule, ...] = ("shared", "strict", "lenient")
_FIELDS = {"speakers": np.str_, "beaters": np.int64, "ties": np.int64, "impostors": np.int64, "mated": np.float64}


@one_line
@dataclass(frozen=True, eq=False)
class Ranks(Tabular):
    """The rank of the owner in each row; see the module.

    Attributes
    ----------
    speakers : ndarray of str of shape (n,)
        Owner of each row.
    beaters : ndarray of int64 of shape (n,)
        Impostors that score strictly higher than the owner.
    ties : ndarray of int64 of shape (n,)
        Impostors that score the same.
    impostors : ndarray of int64 of shape (n,)
        Impostors that the row was compared with, at least as many as beaters and ties.
    mated : ndarray of float64 of shape (n,)
        Score of the owner.
    notes : tuple of str
        What a reader of the numbers should know, such as speakers with fewer utterances than asked for.

    Raises
    ------
    DataError
        If shapes disagree, there is no row, or counts are negative or exceed the impostors.

    Examples
    --------
    >>> Ranks.of([0, 2], [0, 1], 9).places("shared")
    array([1. , 3.5])
    """

    speakers: NDArray[np.str_]
    beaters: NDArray[np.int64]
    ties: NDArray[np.int64]
    impostors: NDArray[np.int64]
    mated: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, dtype in _FIELDS.items():
            column = np.asarray(getattr(self, name))
            object.__setattr__(self, name, column.astype(dtype, copy=False))
            if column.ndim != 1 or len(column) != len(np.asarray(self.beaters)):
                raise DataError(f"expected {name} of shape ({len(self.beaters)},), got {column.shape}")
        if not len(self):
            raise DataError("expected at least one trial with its owner among the enrolled, got none")
        broken = next((name for name in self.speakers.tolist() if "\n" in name or "\r" in name), None)
        if broken is not None:  # lists of speakers have one a line
            raise DataError(f"expected names of speakers in one line each, got {broken!r:.80}")
        least = min(int(counts.min()) for counts in (self.beaters, self.ties, self.impostors))
        if least < 0 or (self.beaters + self.ties > self.impostors).any():
            raise DataError("expected counts from 0, and no more beaters and ties than impostors")

    def __len__(self) -> int:
        return len(self.beaters)

    @classmethod
    def of(cls, beaters: Any, ties: Any, impostors: Any, *, speakers: Any = None, mated: Any = None) -> Ranks:
        """Return ranks of counts; a single number of impostors serves all rows, and rows without speakers get names."""
        beaters = np.asarray(beaters, np.int64)
        names = [f"s{row:0{len(str(len(beaters)))}d}" for row in range(len(beaters))] if speakers is None else speakers
        return cls(
            np.asarray(names, np.str_),
            beaters,
            np.broadcast_to(np.asarray(ties, np.int64), beaters.shape),
            np.broadcast_to(np.asarray(impostors, np.int64), beaters.shape),
            np.full(len(beaters), np.nan) if mated is None else np.asarray(mated, np.float64),
        )

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each trial."""
        return {"speaker": self.speakers} | {name: getattr(self, name) for name in list(_FIELDS)[1:]}

    @property
    def largest_size(self) -> int:
        """The largest gallery, owner included, that every row can serve."""
        return int(self.impostors.min()) + 1

    def span(self, ties: TieRule = "shared") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the largest number of beaters of each row under a rule for ties; see `places`.

        All numbers between them are as likely.

        Raises
        ------
        DataError
            If there is no such rule.
        """
        if ties not in TIE_RULES:
            raise DataError(f"expected a rule for ties among {', '.join(TIE_RULES)}, got {ties!r}")
        most = self.beaters + self.ties
        return (most if ties == "strict" else self.beaters), (self.beaters if ties == "lenient" else most)

    def places(self, ties: TieRule = "shared") -> NDArray[np.float64]:
        """Return the mean rank of the owner in the whole gallery, from 1.

        `strict` puts the owner behind all that score the same, `lenient` before them, `shared` anywhere among them.
        """
        low, high = self.span(ties)
        return 1 + (low + high) / 2


@one_line
@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted for each trial.

    Attributes
    ----------
    beaters, ties : ndarray of int64 of shape (n,)
        Vectors of the gallery, the owner's left out, that score higher than the owner, and the same.
    mated : ndarray of float64 of shape (n,)
        Cosine of each trial with its owner.
    """

    beaters: NDArray[np.int64]
    ties: NDArray[np.int64]
    mated: NDArray[np.float64]


def write_ranks(path: str | Path, ranks: Mapping[int, Ranks]) -> None:
    """Write tables by their number of utterances (0 for all of them), whole or not at all."""
    columns = {f"{number}/{name}": getattr(table, name) for number, table in ranks.items() for name in _FIELDS}
    notes = {f"{number}/notes": np.asarray(table.notes, np.str_) for number, table in ranks.items() if table.notes}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **columns, **notes)  # type: ignore[arg-type]


def read_ranks(path: str | Path) -> dict[int, Ranks]:
    """Return the tables that `write_ranks` wrote, by their number of utterances.

    Raises
    ------
    DataError
        If the file is missing, broken, or holds no such tables.
    """
    columns = read_npz(path)
    try:
        numbers = sorted({int(name.partition("/")[0]) for name in columns})
        tables = {number: {name: columns[f"{number}/{name}"] for name in _FIELDS} for number in numbers}
        notes = {number: columns.get(f"{number}/notes", np.empty(0, np.str_)).tolist() for number in numbers}
        found = {number: Ranks(**table, notes=tuple(notes[number])) for number, table in tables.items()}
    except (ValueError, KeyError, TypeError) as error:
        text = error.text if isinstance(error, DataError) else f"is no file of ranks: {error}"
        raise DataError(text, file=path, remedy="write it again") from error
    if not found:
        raise DataError("expected ranks, got an empty file", file=path, remedy="write it again")
    return found


# Sums of comparisons are made eight at a time, in the bytes of one word: at most 255 rows go into a byte.
_GROUP = 255
_WORD = 8
GALLERY_BLOCK = 4 * _GROUP
TRIAL_BLOCK = 2048
_FEW = 8
_BLOCKS_SENT = 8  # in a piece of work that goes to another process, so that it is worth the way
_NOBODY = np.float32(-2.0)  # below any cosine


@dataclass(frozen=True, eq=False)
class _Trials:
    """Trials, ready for products."""

    unit: NDArray[np.float64]  # (n, D)
    mated: NDArray[np.float64]  # (n,)
    # columns from which to which, vectors, and ends of what is certain; padded to whole words with what nothing beats
    blocks: list[tuple[int, int, NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]]
    owners: NDArray[np.int64]  # rows of the gallery, sorted
    owned: NDArray[np.int64]  # the trial of each


def count_beaters(
    gallery: Rows,
    norms: NDArray[np.float64],
    trials: NDArray[np.floating],
    owners: NDArray[np.int64],
    *,
    work: Work = ALL_CORES,
    blocks: tuple[int, int] = (GALLERY_BLOCK, TRIAL_BLOCK),
) -> Counts:
    """Return for each trial how many vectors of a gallery beat its owner.

    Parameters
    ----------
    gallery : ndarray of shape (G, D)
        Vectors of the enrolled, of any floating type; they may stand in a file, and are read block by block, once.
    norms : ndarray of float64 of shape (G,)
        Their lengths, none 0.
    trials : ndarray of shape (n, D)
        Vectors of the trials, none of length 0.
    owners : ndarray of int64 of shape (n,)
        For each trial the row of its owner in the gallery.
    work : Work
        Who computes; the counts do not depend on it.
    blocks : (int, int)
        Rows and columns of a block of similarities.

    Returns
    -------
    Counts
    """
    gallery_block, trial_block = blocks
    unit = to_unit(trials)
    mated = cosines(gallery, norms, unit, owners, np.arange(len(unit)))
    margin = cosine_margin(unit.shape[1])
    prepared = _Trials(unit, mated, [], np.sort(owners, kind="stable"), np.argsort(owners, kind="stable"))
    for start, stop in chunk_bounds(len(unit), trial_block):
        length = -(-(stop - start) // _WORD) * _WORD
        padded, low, high = np.zeros((length, unit.shape[1]), np.float32), *np.full((2, length), np.inf, np.float32)
        padded[: stop - start] = unit[start:stop]
        low[: stop - start], high[: stop - start] = mated[start:stop] - margin, mated[start:stop] + margin
        prepared.blocks.append((start, stop, padded, low, high))
    bounds = chunk_bounds(len(gallery), gallery_block * (_BLOCKS_SENT if ships_items() else 1))
    parts = ((start, part(gallery, start, stop), norms[start:stop]) for start, stop in bounds)
    count = partial(_count_part, prepared, gallery_block)
    beaters, ties = np.zeros((2, len(unit)), np.int64)
    for more, same in ordered_map(count, parts, jobs=work.jobs, threads=True, description="ranks", total=len(bounds)):
        beaters += more
        ties += same
    return Counts(beaters, ties, mated)


def _count_part(
    trials: _Trials, height: int, item: tuple[int, Rows, NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count over some rows of the gallery, given with the number of the first: who is higher, and who is the same."""
    first, rows, norms = item
    beaters, ties = np.zeros((2, len(trials.mated)), np.int64)
    for start, stop in chunk_bounds(len(norms), height):
        _count_block(np.asarray(part(rows, start, stop)), norms[start:stop], trials, first + start, beaters, ties)
    return beaters, ties


def _count_block(
    block: NDArray,
    norms: NDArray[np.float64],
    trials: _Trials,
    start: int,
    beaters: NDArray[np.int64],
    ties: NDArray[np.int64],
) -> None:
    """Add those of a block, the rows of the gallery from `start` on."""
    vectors = np.empty(block.shape, np.float32)
    np.multiply(block, (1 / norms)[:, None], out=vectors, casting="same_kind")
    first, last = np.searchsorted(trials.owners, [start, start + len(block)])
    own_rows, own_columns = trials.owners[first:last] - start, trials.owned[first:last]
    similarities, flags = np.empty((0, 0), np.float32), np.empty((0, 0), bool)
    for at, end, padded, low, high in trials.blocks:
        if similarities.shape != (len(vectors), len(padded)):
            similarities = np.empty((len(vectors), len(padded)), np.float32)
            flags = np.empty((min(_GROUP, len(vectors)), len(padded)), bool)
        np.matmul(vectors, padded.T, out=similarities)
        inside = (own_columns >= at) & (own_columns < end)
        similarities[own_rows[inside], own_columns[inside] - at] = _NOBODY
        for group in range(0, len(similarities), _GROUP):
            rows = similarities[group : group + _GROUP]
            certain, near_rows, columns = _compare(rows, low, high, flags[: len(rows)])
            beaters[at:end] += certain[: end - at]
            if len(columns):
                columns = columns + at
                above = cosines(block, norms, trials.unit, near_rows + group, columns) - trials.mated[columns]
                np.add.at(beaters, columns[above > TIE], 1)
                np.add.at(ties, columns[np.abs(above) <= TIE], 1)


def _compare(
    rows: NDArray[np.float32], low: NDArray[np.float32], high: NDArray[np.float32], flags: NDArray[np.bool_]
) -> tuple[NDArray[np.integer], NDArray[np.intp], NDArray[np.intp]]:
    """Count in each column the values above `high`, and find (rows, columns) of those between `low` and `high`."""
    np.greater(rows, low, out=flags)
    possible = _column_sums(flags)
    columns = np.flatnonzero(possible)
    if len(columns) * _FEW < len(low):  # most owners are beaten by none of the group: look at the others alone
        certain = np.zeros(len(low), np.uint8)
        values = rows[:, columns]
        certain[columns] = (values > high[columns]).sum(axis=0)
        columns = columns[possible[columns] > certain[columns]]
    else:
        np.greater(rows, high, out=flags)
        certain = _column_sums(flags)
        columns = np.flatnonzero(possible > certain)
    values = rows[:, columns]
    near_rows, near_columns = np.nonzero((values > low[columns]) & ~(values > high[columns]))
    return certain, near_rows, columns[near_columns]


def _column_sums(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Sum at most 255 rows of flags, in the bytes of words."""
    return np.add.reduce(flags.view(np.uint64), axis=0).view(np.uint8)


def ranks_from_embeddings(
    enrol: Embeddings,
    trial: Embeddings,
    *,
    utterances: int | None = 1,
    averaging: Averaging | None = None,
    strict_utterances: bool = False,
    not_enrolled: Literal["error", "drop"] = "error",
    work: Work = ALL_CORES,
) -> Ranks:
    """Return the rank of each trial speaker's owner in the whole gallery, by cosine similarity.

    Parameters
    ----------
    enrol, trial : Embeddings
        An enrolled speaker is the mean of all its embeddings, a trial speaker the mean of `utterances` of them.
    utterances : int, optional
        How many of the trial speaker's embeddings to average; all by default of None.
    averaging : Averaging, optional
        How means are made and utterances are chosen.
    strict_utterances : bool
        Raise an error for speakers that have fewer utterances, instead of a note.
    not_enrolled : {"error", "drop"}
        What to do with trial speakers that are not enrolled.
    work : Work
        Who computes; the counts do not depend on it.

    Returns
    -------
    Ranks
        One row a trial speaker, sorted by name.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or 0, fewer than 2 speakers are enrolled, or as said above.
    """
    from evaluation.embeddings import Averaging, speaker_vectors

    averaging = averaging or Averaging()
    gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    trials = speaker_vectors(trial, averaging=averaging, utterances=utterances, strict=strict_utterances)
    return rank_speakers(gallery, trials, not_enrolled=not_enrolled, work=work)


def rank_speakers(
    gallery: SpeakerVectors,
    trials: SpeakerVectors,
    *,
    not_enrolled: Literal["error", "drop"] = "error",
    work: Work = ALL_CORES,
) -> Ranks:
    """Return the rank of each trial vector's owner in a gallery; see `ranks_from_embeddings`, which makes both."""

    if gallery.vectors.shape[1] != trials.vectors.shape[1]:
        got = f"{gallery.vectors.shape[1]} of the enrolled and {trials.vectors.shape[1]} of the trials"
        raise DataError(f"expected as many dimensions on both sides, got {got}", remedy="use one extractor for both")
    if len(gallery.names) < 2:
        raise DataError("expected at least 2 enrolled speakers, got 1", remedy="a gallery needs impostors")
    rows = {name: row for row, name in enumerate(gallery.names.tolist())}
    owners = np.array([rows.get(name, -1) for name in trials.names.tolist()], np.int64)
    notes = (*gallery.notes, *trials.notes)
    absent = trials.names[owners < 0].tolist()
    if absent:
        text = f"{len(absent)} of {len(owners)} trial speakers are not enrolled: {few(absent)}"
        if not_enrolled == "error" or len(absent) == len(owners):
            raise DataError(text, remedy="enrol them, check the ids, or ask to drop them: --not-enrolled drop")
        logger.warning("dropped: %s", text)
        notes = (*notes, f"dropped: {text}")
    kept = owners >= 0
    counts = count_beaters(gallery.vectors, gallery.norms, trials.vectors[kept], owners[kept], work=work)
    impostors = np.full(len(counts.beaters), len(gallery.names) - 1, np.int64)
    names = np.asarray(trials.names[kept].tolist(), np.str_)
    return Ranks(names, counts.beaters, counts.ties, impostors, counts.mated, notes)


def ranks_from_scores(
    scores: Scores,
    key: Key,
    *,
    utterances: int | Literal["all"] | None = None,
    strict_utterances: bool = False,
    missing: Literal["error", "drop"] = "error",
) -> Ranks:
    """Return the rank of each tested segment's owner among the models that it was scored against.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair; the key's target trials say who the owner is. Each model is one enrolled speaker; a note
        says where the ids speak against it.
    utterances : int or "all", optional
        With a number one row a speaker, whose scores are means over its first so many segments by id; speakers with
        fewer use all they have, with a note. By default each segment is a row.
    strict_utterances : bool
        Raise an error for speakers that have fewer segments, instead of a note.
    missing : {"error", "drop"}
        What to do with trials of the key without a score, and scores of unknown ids.

    Returns
    -------
    Ranks
        Rows sorted by speaker, then by segment.

    Raises
    ------
    DataError
        If scores and key do not fit together, a segment has several target trials or no impostor, or no segment has a
        target trial; with `utterances`, if the segments of a speaker were scored against different models.

    Examples
    --------
    >>> key = Key.from_ids(["a", "b", "c"] * 2, ["s"] * 3 + ["t"] * 3, [True, False, False, False, True, False])
    >>> scores = Scores.from_ids(["a", "b", "c"] * 2, ["s"] * 3 + ["t"] * 3, [1.0, 3.0, 1.0, 0.0, 5.0, 1.0])
    >>> ranks = ranks_from_scores(scores, key)
    >>> ranks.speakers.tolist(), ranks.beaters.tolist(), ranks.ties.tolist()
    (['a', 'b'], [1, 0], [1, 0])
    """
    return rank_scores(scores, key, [utterances], strict_utterances=strict_utterances, missing=missing)[0][0]


def ranks_of_matrix(similarities: ArrayLike) -> Ranks:
    """Return the ranks that a matrix of similarities holds, such as SimMatrix of Speaker-Linkability keeps.

    Parameters
    ----------
    similarities : array_like of float of shape (n, N)
        Row i is a trial of the speaker of column i; the other N - n columns are speakers that are only enrolled.

    Raises
    ------
    DataError
        If it is no such matrix, or a value is not finite.

    Examples
    --------
    >>> ranks_of_matrix([[0.9, 0.1, 0.2], [0.3, 0.2, 0.2]]).beaters.tolist()
    [0, 1]
    """
    matrix = np.asarray(similarities)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not 0 < len(matrix) <= matrix.shape[1]:
        text = "expected a matrix of similarities, trials by enrolled speakers, with the owners on its diagonal"
        raise DataError(f"{text}, got {matrix.dtype} of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise DataError("expected finite similarities", remedy="compute the matrix again")
    own = matrix.diagonal()[:, None]
    beaters, ties = (matrix > own).sum(axis=1), (matrix == own).sum(axis=1) - 1
    note = "speakers go by the rows of the matrix, whose owners are on its diagonal"
    return replace(Ranks.of(beaters, ties, matrix.shape[1] - 1, mated=own[:, 0]), notes=(note,))


def rank_scores(
    scores: Scores,
    key: Key,
    numbers: Sequence[int | Literal["all"] | None],
    *,
    largest: int = 0,
    strict_utterances: bool = False,
    missing: Literal["error", "drop"] = "error",
    speakers: TrialSpeakers | None = None,
) -> list[tuple[Ranks, NDArray[np.float64] | None]]:
    """Return ranks for several numbers of utterances, with each row's largest impostor scores where asked for.

    Parameters
    ----------
    scores, key, strict_utterances, missing
        See `ranks_from_scores`, which also names the errors.
    numbers : sequence of int, "all" or None
        What `ranks_from_scores` calls `utterances`.
    largest : int
        How many impostor scores of each row to keep.
    speakers : TrialSpeakers, optional
        The speakers of each trial, in the order of the key: the gallery then holds speakers, not models, and one with
        several models has the highest of their scores. By default each model is a speaker.

    Returns
    -------
    list of (Ranks, ndarray of float64 of shape (n, largest), or None)
        For each number; the scores falling, and None if a row has fewer or infinite ones.
    """
    split_scores(scores, key, missing=missing)  # for its checks
    rows = find_rows(key, scores)
    notes: list[str] = []
    if (rows < 0).any():
        notes.append(f"dropped: {int((rows < 0).sum())} of {len(rows)} trials without a score")
        speakers = None if speakers is None else speakers.subset(rows >= 0)
        key, rows = key.subset(rows >= 0), rows[rows >= 0]
    values = scores.values[rows]
    if speakers is None:
        doubt = doubt_speakers(key)
        if doubt is not None and doubt.side == "model":
            notes.append(f"each model counts as a speaker, which it may not be: {doubt.text}")
    else:
        n_trials = len(key)
        key, values = _against_speakers(key, values, speakers)
        if len(key) < n_trials:
            notes.append(f"{n_trials} trials of models are {len(key)} of speakers: the highest score of each speaker")
    segments, n_without = _by_segment(key, values)
    if n_without:
        notes.append(f"{n_without} segments without a target trial left out: their speakers are not enrolled")
    found = []
    for number in numbers:
        trials, more = segments, notes
        if number is not None:
            n_used = len(segments.owners) if number == "all" else number
            trials, short = _by_speaker(segments, n_used, key)
            more = notes + ([] if number == "all" else _short_note(short, number, strict_utterances, "segments"))
        found.append((_count(trials, key, tuple(more)), _largest_scores(trials, largest) if largest else None))
    return found


def _against_speakers(
    key: Key, values: NDArray[np.float64], speakers: TrialSpeakers
) -> tuple[Key, NDArray[np.float64]]:
    """Turn trials of models into trials of speakers, each with the highest score of the speaker's models.

    Of the owner the target trials alone count: others within a speaker ask something else (another sentence, say).
    """
    pairs = key.segments.astype(np.int64) * len(speakers.names) + speakers.models
    owned = np.isin(pairs, pairs[key.is_target])
    kept = np.flatnonzero(key.is_target | ~owned)
    found, first, inverse = np.unique(pairs[kept], return_index=True, return_inverse=True)
    highest = np.full(len(found), -np.inf)
    np.maximum.at(highest, inverse, values[kept])
    rows = kept[first]
    segments, models = np.divmod(found, len(speakers.names))
    columns = {"models": models.astype(np.int32), "segments": segments.astype(np.int32)}
    by_speaker = Key.trusted(
        model_ids=speakers.names, segment_ids=key.segment_ids, **columns, is_target=key.is_target[rows]
    )
    return by_speaker, highest


@dataclass(frozen=True, eq=False)
class _Joined:
    """Trials with a score each, and the row of the table of ranks that each belongs to; rows are sorted."""

    rows: NDArray[np.int64]  # (N,)
    models: NDArray[np.int64]  # (N,)
    values: NDArray[np.float64]  # (N,)
    is_target: NDArray[np.bool_]  # (N,)
    owners: NDArray[np.int64]  # (n,) the model that owns each row
    names: NDArray[np.object_]  # (n,) of each row, for errors


def _count(trials: _Joined, key: Key, notes: tuple[str, ...]) -> Ranks:
    """Compare the scores of each row's impostors with its owner's."""
    n_rows = len(trials.owners)
    mated = np.full(n_rows, np.nan)
    mated[trials.rows[trials.is_target]] = trials.values[trials.is_target]
    others, values = trials.rows[~trials.is_target], trials.values[~trials.is_target]
    higher, same = values > mated[others], values == mated[others]
    beaters, ties, impostors = (np.bincount(others[some], minlength=n_rows) for some in (higher, same, slice(None)))
    if not impostors.all():
        alone = trials.names[impostors == 0].tolist()
        raise DataError(f"{len(alone)} with a target trial alone: {few(alone)}", remedy="a rank needs impostors")
    return Ranks(key.model_ids[trials.owners].astype(np.str_), beaters, ties, impostors, mated, notes)


def _largest_scores(trials: _Joined, count: int) -> NDArray[np.float64] | None:
    """Largest impostor scores of each row, falling; None if a row has too few or infinite ones."""
    others, values = trials.rows[~trials.is_target], trials.values[~trials.is_target]
    order = np.lexsort((-values, others))
    numbers = np.bincount(others, minlength=len(trials.owners))
    if numbers.min() < count:
        return None
    starts = np.cumsum(numbers) - numbers
    found = values[order][starts[:, None] + np.arange(count)]
    mated = trials.values[trials.is_target]
    return found if np.isfinite(found).all() and np.isfinite(mated).all() else None


def _by_segment(key: Key, values: NDArray[np.float64]) -> tuple[_Joined, int]:
    """Make a row of each segment that has a target trial; also count those that have none."""
    targets = np.flatnonzero(key.is_target)
    segments = key.segments[targets]
    found, first, counts = np.unique(segments, return_index=True, return_counts=True)
    if (counts > 1).any():
        several = key.segment_ids[found[counts > 1]].tolist()
        text = f"{len(several)} segments have several target trials: {few(several)}"
        raise DataError(text, remedy="a gallery holds each speaker once: keep one model of each")
    owners = key.models[targets[first]].astype(np.int64)
    # sorted by the ids, which the tables need not be
    order = np.array(
        sorted(range(len(found)), key=lambda row: (key.model_ids[owners[row]], key.segment_ids[found[row]])), np.int64
    )
    row_of = np.full(len(key.segment_ids), -1)
    row_of[found[order]] = np.arange(len(found))
    rows = row_of[key.segments]
    kept = rows >= 0
    n_without = len(np.unique(key.segments[~kept]))
    names = np.array([f"segment {name!r}" for name in key.segment_ids[found[order]].tolist()], object)
    columns = rows[kept], key.models[kept].astype(np.int64), values[kept], key.is_target[kept]
    return _Joined(*columns, owners[order], names), n_without


def _by_speaker(trials: _Joined, utterances: int, key: Key) -> tuple[_Joined, list[str]]:
    """Average the scores of the first segments of each speaker; also name the speakers that have fewer."""
    if utterances < 1:
        raise DataError(f"expected at least 1 utterance, got {utterances}")
    # rows come by owner, then by segment
    owners, first, speaker_of = np.unique(trials.owners, return_index=True, return_inverse=True)
    starts = np.sort(first)
    place = np.empty(len(owners), np.int64)
    place[np.argsort(first)] = np.arange(len(owners))
    speaker_of = place[speaker_of]
    number = np.arange(len(speaker_of)) - starts[speaker_of]
    used = number < utterances
    n_used = np.bincount(speaker_of[used], minlength=len(owners))
    kept = used[trials.rows]
    n_models = int(trials.models.max()) + 1
    codes = speaker_of[trials.rows[kept]] * n_models + trials.models[kept]
    found, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    speakers, models = np.divmod(found, n_models)
    owners = trials.owners[starts]
    names = key.model_ids[owners]
    if (counts != n_used[speakers]).any():
        uneven = names[np.unique(speakers[counts != n_used[speakers]])].tolist()
        text = f"{len(uneven)} speakers whose segments were scored against different models: {few(uneven)}"
        raise DataError(text, remedy="means over segments need the same models for all of them")
    values = np.bincount(inverse, trials.values[kept]) / counts
    if np.isnan(values).any():
        raise DataError("infinite scores of both signs cannot be averaged", remedy="use single segments")
    short = [names[row] for row in np.flatnonzero(n_used < utterances)]
    return _Joined(speakers, models, values, models == owners[speakers], owners, names), short


def _short_note(short: Sequence[str], utterances: int, strict: bool, what: str) -> list[str]:
    """Report speakers with fewer utterances than asked for, as a note or as an error."""
    if not short:
        return []
    text = f"{len(short)} speakers have fewer than {utterances} {what}: {few(short)}"
    if strict:
        raise DataError(text, remedy="ask for fewer, or use all they have: strict=False")
    logger.warning("%s; all of theirs are used", text)
    return [f"{text}; all of theirs are used"]
