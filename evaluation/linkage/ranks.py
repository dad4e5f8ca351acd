"""Where the owner of each trial ranks among all who are enrolled: from embeddings, and from any scores.

From embeddings there is one row a trial speaker, and all are compared with the whole gallery. From scores there is one
row a segment that has a target trial, or with `utterances` one a speaker, whose scores are means over segments.
Segments without a target trial have no owner among the enrolled and make no row.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.table import Ranks
from evaluation.trials import Key, Scores, TrialSpeakers, doubt_speakers, find_rows, split_scores
from spkbase.errors import DataError, few
from spkbase.work import ALL_CORES, Work

if TYPE_CHECKING:
    from evaluation.embeddings import Averaging, Embeddings, SpeakerVectors

logger = logging.getLogger(__name__)


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
    from evaluation.linkage.counts import count_beaters

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
    split_scores(scores, key, missing=missing, unknown=missing)  # for its checks
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
        raise DataError(text, remedy="ask for fewer, or leave out --strict-utterances to use all they have")
    logger.warning("%s; all of theirs are used", text)
    return [f"{text}; all of theirs are used"]
