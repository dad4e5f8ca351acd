"""Embeddings of utterances with ids and speakers: cosines, means by speaker, scores, and folds of speakers.

Conventions
-----------
An embedding belongs to one utterance, whose id occurs once. `evaluation.embeddings.files` reads embeddings and keeps
their type (float16 to float64), their lengths and the order of the file, on which "the first utterances of a speaker"
depends. The vectors may be memory-mapped from the file.

A *gallery* is a table of vectors with their lengths, in memory or in a file; the vectors that are compared with it are
scaled to length 1. Scores are cosines in float64, computed pair by pair, so a score does not depend on the rest of the
list. A model is an enrolled speaker (the mean of the speaker's embeddings) or the id of a single enrolled utterance; a
segment is the id of a tested utterance.

The mean of a speaker is *plain*, which averages the vectors as they are, as the published tools do, or *normalised*,
which scales each vector to length 1 first, so that a long vector does not outvote the others. A trial speaker is the
mean of L utterances, or of all utterances if the speaker has fewer: the *first* L in the order of the file, or L
*random* ones, which depend only on the seed, the speaker's name and the ids. A smaller L chooses a subset of the
utterances that a larger L chooses, so two curves differ only in L.

Speaker-Linkability also draws at random, but one generator with a fixed seed serves all speakers in turn, and draws
anew for each L. Its choice therefore depends on the whole list, and its numbers equal those of `random` on average,
not utterance by utterance.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.embeddings.copies import find_copies, rounding
from evaluation.trials import (
    Key,
    Scores,
    Trials,
    check_dimensions,
    check_index,
    checked_ids,
    draw_conversations,
    factorise,
    find_rows,
    ids_of,
    loosened,
    recode,
    speakers_of_ids,
    vectors_of,
    warn_of_alike,
)
from spkbase.arrays import Rows, chosen_rows
from spkbase.errors import DataError, Problems, errors_of, few
from spkbase.progress import progress, verbosely
from spkbase.rounding import is_negligible
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunk_bounds

logger = logging.getLogger(__name__)

TIE = 1e-12
"""Two cosines that are closer cannot be distinguished in float64: they are a tie."""

NUMBERED = "no ids and no speakers were given: utterances are known by their row numbers"
"""Note of embeddings from bare arrays; two of them are matched by row, and by nothing else."""

_ROWS = 1 << 13
_LEAST_MARGIN = 1e-5
_PAIRS = 1 << 14
_ROWS_OF_SPEAKERS = 1 << 14
_SHOWN = 2


@dataclass(frozen=True, eq=False, repr=False)
class Embeddings:
    """Vectors of utterances.

    Attributes
    ----------
    ids : ndarray of str of shape (n,), dtype object
        Distinct ids of the utterances.
    speakers : ndarray of str of shape (n,), dtype object
        Speaker of each utterance.
    vectors : ndarray of a floating type of shape (n, D)
        Their embeddings; may be memory-mapped from a file.
    notes : tuple of str
        Remarks about their origin, for reports.
    source : str
        The file they came from, for errors; "" if unknown.
    has_speakers : bool
        False if the file has no speakers, so that each id counts as one.

    Raises
    ------
    DataError
        If shapes disagree, an id is repeated or empty, or there is no vector.

    Examples
    --------
    >>> Embeddings(["u1", "u2"], ["anna", "bert"], np.eye(2))
    Embeddings(2 utterances of 2 speakers, 2 dimensions)
    """

    ids: NDArray[np.object_]
    speakers: NDArray[np.object_]
    vectors: NDArray[np.floating]
    notes: tuple[str, ...] = ()
    source: str = ""
    has_speakers: bool = True

    def __post_init__(self) -> None:
        check_index(ids=self.ids, speakers=self.speakers, vectors=self.vectors)
        vectors = np.asanyarray(self.vectors)
        if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.size:
            got = f"{vectors.dtype} of shape {vectors.shape}"
            raise DataError(
                f"expected vectors of floats, one row per utterance, got {got}",
                remedy="check the file",
            )
        check_dimensions(self.vectors, vectors)
        ids = checked_ids(np.asarray(self.ids, object), "ids of utterances")
        speakers = np.asarray(self.speakers, object)
        if not all(isinstance(name, str) and name for name in speakers.tolist()):
            raise DataError("expected speakers to be strings that are not empty")
        for name, column in (("ids", ids), ("speakers", speakers), ("vectors", vectors)):
            if len(column) != len(vectors):
                raise DataError(
                    f"expected {name} for {len(vectors)} vectors, got shape {column.shape}"
                )
            object.__setattr__(self, name, column)

    @classmethod
    def from_arrays(cls, vectors: Any, *, speakers: Any = None, ids: Any = None) -> Embeddings:
        """Build embeddings from arrays, data frames or lists.

        Parameters
        ----------
        vectors : array_like of shape (n, D)
            Whole numbers become float64.
        speakers : array_like of str or int of shape (n,), map, function or str, optional
            Speaker of each; or a map of ids to speakers, a function of the id, or a separator after the speaker in each
            id. By default each utterance is its own speaker.
        ids : array_like of str or int of shape (n,), optional
            Distinct ids; by default the index of a data frame, or u0, u1, ... if that only holds row numbers.

        Raises
        ------
        DataError
            If a value is not a number, a column of a data frame holds ids, speakers or row numbers, the indices of the
            arguments differ, an id is repeated, or shapes disagree.

        Examples
        --------
        >>> Embeddings.from_arrays([[1, 0], [2, 0], [0, 3]], speakers=[7, 7, 8])
        Embeddings(3 utterances of 2 speakers, 2 dimensions)
        """
        rule = None
        if isinstance(speakers, str | Mapping) or callable(speakers):
            rule = speakers
            speakers = None
        index = check_index(vectors=vectors, speakers=speakers, ids=ids)
        rows = vectors_of(vectors) + 0.0
        if index is None:
            named = [f"u{row}" for row in range(len(rows))]
        else:
            named = ids_of(index, "ids in the index")
        names = named
        if ids is not None:
            names = ids_of(ids, "ids")
        if index is not None and names != named and sorted(names) == sorted(named):
            remedy = "sort or join them by their index, or give arrays if the order is right"
            raise DataError("expected ids in the order of the index, got another", remedy=remedy)
        if rule is not None:
            owners = speakers_of_ids(names, rule)
        elif speakers is None:
            owners = names
        else:
            owners = ids_of(speakers, "speakers")
        is_bare = index is ids is speakers is rule is None
        return cls(np.array(names, object), np.array(owners, object), rows, (NUMBERED,) * is_bare)

    @classmethod
    def from_dict(cls, vectors: Mapping[str, Any], *, speakers: Any = None) -> Embeddings:
        """Build embeddings from vectors (D,) by id.

        Parameters
        ----------
        vectors : mapping of str to array_like of shape (D,)
        speakers : map, function or str, optional
            As in `from_arrays`.

        Raises
        ------
        DataError
            If there are no vectors, or as in `from_arrays`.

        Examples
        --------
        >>> Embeddings.from_dict({"anna/1": [1.0, 0.0], "anna/2": [2.0, 0.0], "bert/1": [0.0, 3.0]}, speakers="/")
        Embeddings(3 utterances of 2 speakers, 2 dimensions)
        """
        if not vectors:
            raise DataError("expected the vector of at least one utterance, got none")
        rows = [np.asarray(vector) for vector in vectors.values()]
        shapes = {row.shape for row in rows}
        if len(shapes) > 1 or rows[0].ndim != 1:
            shown = ", ".join(map(str, sorted(shapes)))
            raise DataError(f"expected vectors of the same shape (D,), got {shown}")
        return cls.from_arrays(np.stack(rows), speakers=speakers, ids=[*vectors])

    def __getitem__(self, rows: Any) -> Embeddings:
        """Return the embeddings chosen by a slice, a mask, numbers or ids.

        Raises
        ------
        DataError
            If an id or a number is unknown, a mask has another length, or nothing is chosen.

        Examples
        --------
        >>> both = Embeddings(["u1", "u2"], ["anna", "bert"], np.eye(2))
        >>> both[["u2"]], both[both.speakers == "anna"].ids.tolist()
        (Embeddings(1 utterances of 1 speakers, 2 dimensions), ['u1'])
        """
        chosen = chosen_rows(rows, self.ids)
        if not len(chosen):
            raise DataError("no embedding was chosen", file=self.source or None)
        return replace(
            self, ids=self.ids[chosen], speakers=self.speakers[chosen], vectors=self.vectors[chosen]
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        counts = f"{len(self)} utterances of {len(set(self.speakers.tolist()))} speakers"
        return f"Embeddings({counts}, {self.vectors.shape[1]} dimensions)"

    def norms(self) -> NDArray[np.float64]:
        """Return the length of each vector, shape (n,); reads all vectors once, and warns if all are equal.

        Raises
        ------
        DataError
            If a vector is not finite, or has no length. The first few are named, with the file.
        """
        norms = row_norms(self.vectors)
        with errors_of(self.source):
            check_norms(norms, self.ids)
        unit = to_unit(self.vectors[:_ROWS], norms[:_ROWS])
        if len(self) > 1 and (unit @ unit[0]).min() > 1 - TIE:
            text = "%s: all %d vectors are equal but for length and rounding: a broken extractor, not privacy"
            text += " (or a mean that all share, which may be subtracted)"
            logger.warning(text, self.source or "embeddings", len(unit))
        return norms


def check_embeddings(*given: Any) -> None:
    """Raise a DataError that explains how to make embeddings if an argument is something else."""
    for value in given:
        if not isinstance(value, Embeddings):
            text = f"expected Embeddings, got {type(value).__name__}"
            raise DataError(text, remedy="make them by Embeddings.from_arrays")


def row_norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the length of each row, in float64, read a block of rows at a time."""
    norms = np.empty(len(vectors))
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        block = np.asarray(vectors[start:stop], np.float64)
        norms[start:stop] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return norms


def check_norms(
    norms: NDArray[np.float64],
    names: NDArray[np.object_],
    *,
    kind: str = "vector",
    size: ArrayLike = 0.0,
) -> None:
    """Raise an error that names NaN, infinite and zero vectors.

    Parameters
    ----------
    norms : ndarray of float64 of shape (n,)
        Their lengths.
    names : ndarray of str of shape (n,)
        Their names.
    kind : str
        Kind of the vectors, for messages.
    size : array_like of float
        Lengths of the averaged vectors, which may cancel up to rounding.

    Raises
    ------
    DataError
        If there are such vectors; the first few are named.
    """
    for bad, text in (
        (~np.isfinite(norms), "not finite (NaN, infinite or far too large)"),
        (is_negligible(norms, size), "zero (or far too small): no direction"),
    ):
        count = int(bad.sum())
        if count:
            subject = f"{count} {kind}s are" if count > 1 else f"1 {kind} is"
            message = f"{subject} {text}: {few(names[bad].tolist())}"
            raise DataError(message, remedy="extract these embeddings again, or leave them out")


def warn_of_enrolled(
    enrolled: Embeddings, tested: Embeddings, trials: Trials | None = None
) -> None:
    """Warn if a recording is tested against a model that contains it, or occurs twice on one side.

    Parameters
    ----------
    enrolled, tested : Embeddings
        Recordings with the same vector count as the same, whatever their ids and speakers; see `find_copies`.
    trials : Trials, optional
        Trials to be scored; a model is a speaker or an utterance of `enrolled`. By default all pairs.
    """
    check_embeddings(enrolled, tested)
    _check_names(enrolled, tested)
    warn_of_copies(enrolled, finding="enrolled utterances have copies")
    if tested is not enrolled:
        warn_of_copies(tested, finding="tested utterances have copies")
    rows, originals = _copies(tested, enrolled)
    total = f"{len(tested)} tested utterances"
    if trials is not None and len(rows):
        total = f"{len(trials)} trials"
        met = np.full(len(trials), -1)
        for models in (enrolled.ids, enrolled.speakers):
            own = Trials.from_ids(models[originals].tolist(), tested.ids[rows].tolist())
            met = np.maximum(met, find_rows(trials, own))
        rows = rows[met[met >= 0]]
        originals = originals[met[met >= 0]]
    if len(rows):
        text = "%d of %s have a model made from the same recording (error rates are too low: enrol others): %s"
        logger.warning(text, len(rows), total, _pairs(tested, rows, enrolled, originals))


def warn_of_copies(
    embeddings: Embeddings, known: Embeddings | None = None, *, finding: str
) -> None:
    """Warn if vectors show that recordings of a set occur in another set, or twice in their own.

    Parameters
    ----------
    embeddings : Embeddings
    known : Embeddings, optional
        The other set; by default their own.
    finding : str
        What copies show, for the warning, such as "tested utterances are in training".
    """
    rows, originals = _copies(embeddings, known)
    # if all are equal, `Embeddings.norms` warns
    if len(rows) and (embeddings.vectors != embeddings.vectors[0]).any():
        text = "%d of %d %s (give each recording once): %s"
        logger.warning(
            text,
            len(rows),
            len(embeddings),
            finding,
            _pairs(embeddings, rows, known or embeddings, originals),
        )


def check_anonymised(original: Embeddings, anonymised: Embeddings) -> None:
    """Check that anonymised vectors are not the original ones, as when one file is given for both.

    Raises
    ------
    DataError
        If more than half of the utterances of the smaller side have the same vectors on both sides.
    """
    _check_names(original, anonymised)
    count = len(_copies(anonymised, original)[0])
    total = min(len(original), len(anonymised))
    if 2 * count > total:
        text = f"{count} of {total} utterances have the same vector, original and anonymised"
        raise DataError(
            text, file=anonymised.source or None, remedy="give the vectors of the anonymised speech"
        )


def to_unit(
    vectors: NDArray[np.floating], norms: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return rows scaled to length 1, in float64.

    Parameters
    ----------
    vectors : ndarray of a floating type of shape (n, D)
        Vectors of length > 0.
    norms : ndarray of float64 of shape (n,), optional
        Their lengths, if known.

    Returns
    -------
    ndarray of float64 of shape (n, D)
    """
    unit = np.array(vectors, np.float64)
    if norms is None:
        norms = np.linalg.norm(unit, axis=1)
    unit /= norms[:, None]
    return unit


def cosines(
    gallery: Rows,
    norms: NDArray[np.float64],
    unit: NDArray[np.float64],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the cosines of single pairs in float64; each is summed in the same way, whatever the other pairs.

    Parameters
    ----------
    gallery : ndarray or stored rows of shape (G, D)
        Vectors of any length.
    norms : ndarray of float64 of shape (G,)
        Their lengths.
    unit : ndarray of float64 of shape (n, D)
        Vectors of length 1.
    rows, columns : ndarray of int of shape (p,)
        For each pair the row of the gallery, and the row of `unit`.

    Returns
    -------
    ndarray of float64 of shape (p,)

    Examples
    --------
    >>> gallery, unit = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> cosines(gallery, np.array([5.0]), unit, np.array([0, 0]), np.array([0, 1]))
    array([0.6, 0.8])
    """
    values = np.empty(len(rows))
    bounds = chunk_bounds(len(rows), _PAIRS)
    for start, stop in progress(bounds, description="cosines", total=len(bounds)):
        some = rows[start:stop]
        products = np.asarray(gallery[some], np.float64)
        products /= norms[some][:, None]
        products *= unit[columns[start:stop]]
        np.add.reduce(products, axis=1, out=values[start:stop])
    return values


def cosine_margin(n_dimensions: int) -> float:
    """Return the largest error of a cosine computed as a float32 product of this many dimensions.

    A sum of D products of unit vectors is off by at most D u, u = 2**-24, in any order of summation; the rounding
    of the factors and of the compared value is added. It is never below 1e-5.

    References
    ----------
    .. [1] N. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1.
    """
    return max(_LEAST_MARGIN, (n_dimensions + 8) * 2.0**-24)


@dataclass(frozen=True)
class Averaging:
    """How utterances are chosen and averaged; see the module.

    Attributes
    ----------
    mean : {"plain", "normalised"}
        Whether vectors are scaled to length 1 before they are averaged.
    choice : {"first", "random"}
        Which utterances of a trial speaker are used.
    seed : int
        Seed of the random choice.
    """

    mean: Literal["plain", "normalised"] = "plain"
    choice: Literal["first", "random"] = "first"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mean not in ("plain", "normalised"):
            raise DataError(f"expected the mean 'plain' or 'normalised', got {self.mean!r}")
        if self.choice not in ("first", "random"):
            raise DataError(f"expected the choice 'first' or 'random', got {self.choice!r}")


@one_line
@dataclass(frozen=True, eq=False)
class SpeakerVectors:
    """One vector per speaker.

    Attributes
    ----------
    names : ndarray of str of shape (P,), dtype object
        Distinct speakers.
    vectors : ndarray of shape (P, D)
        Their vectors, not normalised; float64 if they are means, else in their own type, perhaps memory-mapped.
    norms : ndarray of float64 of shape (P,)
        Lengths of the vectors, all > 0.
    notes : tuple of str
        Remarks for reports.
    """

    names: NDArray[np.object_]
    vectors: NDArray[np.floating]
    norms: NDArray[np.float64]
    notes: tuple[str, ...] = ()


def speaker_vectors(
    embeddings: Embeddings,
    *,
    averaging: Averaging | None = None,
    utterances: int | None = None,
    strict: bool = False,
    keep_order: bool = False,
) -> SpeakerVectors:
    """Return the mean of the embeddings of each speaker's utterances.

    Parameters
    ----------
    embeddings : Embeddings
        Each vector must be finite and not 0.
    averaging : Averaging, optional
        How embeddings are averaged.
    utterances : int, optional
        How many utterances to use; all by default.
    strict : bool
        Raise an error for speakers that have fewer, instead of adding a note.
    keep_order : bool
        If each speaker has one vector, return them as they are, in their order: a memory-mapped file is not copied.

    Returns
    -------
    SpeakerVectors
        Sorted by name, unless the order was kept.

    Raises
    ------
    DataError
        If a vector or a mean has no direction, the number is below 1, or with `strict`.
    """
    averaging = averaging or Averaging()
    if utterances is not None and utterances < 1:
        raise DataError(f"expected at least 1 utterance, got {utterances}")
    norms = embeddings.norms()
    names, codes = factorise(embeddings.speakers)
    if len(names) == len(embeddings) and utterances in (None, 1):
        if keep_order:
            return SpeakerVectors(embeddings.speakers, embeddings.vectors, norms, embeddings.notes)
        order = np.argsort(codes)
        return SpeakerVectors(names, embeddings.vectors[order], norms[order], embeddings.notes)
    counts = np.bincount(codes, minlength=len(names))
    notes = embeddings.notes
    rows = np.argsort(codes, kind="stable")
    if utterances is not None:
        if averaging.choice != "first":
            rows = _drawn_rows(embeddings, averaging.seed)
        starts = np.cumsum(counts) - counts
        rows = rows[np.arange(len(rows)) - np.repeat(starts, counts) < utterances]
        if (counts < utterances).any():
            short = names[counts < utterances].tolist()
            notes = (*notes, _note_of_short(short, len(names), utterances, strict))
        counts = np.minimum(counts, utterances)
    ends = np.append(0, np.cumsum(counts))
    size: ArrayLike = 1.0
    if averaging.mean == "normalised":
        means = _sums(embeddings.vectors, rows, ends, norms)
    else:
        means = _sums(embeddings.vectors, rows, ends, None)
        size = np.maximum.reduceat(norms[rows], ends[:-1])
    means /= counts[:, None]
    lengths = row_norms(means)
    check_norms(lengths, names, kind="speaker mean", size=size)
    return SpeakerVectors(names, means, lengths, notes)


def _note_of_short(short: Sequence[str], total: int, utterances: int, strict: bool) -> str:
    """Warn of speakers with too few utterances, and return the warning; raise an error instead if strict."""
    text = f"{len(short)} of {total} speakers have fewer than {utterances} utterances: {few(short)}"
    if strict:
        raise DataError(text, remedy="ask for fewer, or use all they have: strict=False")
    logger.warning("%s; all of theirs are used", text)
    return f"{text}; all of theirs are used"


def _sums(
    vectors: NDArray[np.floating],
    rows: NDArray[np.intp],
    ends: NDArray[np.intp],
    norms: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return the sum of each speaker's rows, divided by their norms if these are given.

    Speaker i has the rows from ``ends[i]`` to ``ends[i + 1]``.
    """
    n_speakers = len(ends) - 1
    sums = np.empty((n_speakers, vectors.shape[1]))
    # pieces of some thousand rows, with whole speakers
    starts = np.searchsorted(ends[:-1], np.arange(0, len(rows), _ROWS_OF_SPEAKERS))
    pieces = np.unique(np.append(starts, n_speakers))
    for first, last in pairwise(pieces.tolist()):
        some = rows[ends[first] : ends[last]]
        block = np.asarray(vectors[some], np.float64)
        if norms is not None:
            block /= norms[some][:, None]
        np.add.reduceat(block, ends[first:last] - ends[first], axis=0, out=sums[first:last])
    return sums


def _drawn_rows(embeddings: Embeddings, seed: int) -> NDArray[np.intp]:
    """Return rows grouped by speaker, in random order within each speaker.

    Rows are first sorted by id, so that the draw does not depend on the order of the file.
    """
    names, codes = factorise(embeddings.speakers)
    by_id = np.argsort(embeddings.ids, kind="stable")
    rows = by_id[np.argsort(codes[by_id], kind="stable")]
    start = 0
    for name, count in zip(names.tolist(), np.bincount(codes).tolist(), strict=True):
        drawn = stream(seed, name, words=4, spawned=True).permutation(count)
        rows[start : start + count] = rows[start : start + count][drawn]
        start += count
    return rows


def conversation_vectors(
    draws: Sequence[Embeddings],
    conversations: Mapping[str, Sequence[tuple[int, str]]],
    *,
    averaging: Averaging | None = None,
) -> Embeddings:
    """Return the mean embedding of the recordings of each conversation.

    Parameters
    ----------
    draws : sequence of Embeddings
        Anonymised versions of the recordings, or a single set.
    conversations : mapping of str to sequence of (int, str)
        The recordings of each conversation: the index of its version in `draws`, and its id.
    averaging : Averaging, optional

    Returns
    -------
    Embeddings
        Ids are the names of the conversations, sorted; the speaker is that of the first recording.

    Raises
    ------
    DataError
        If a recording has no embedding, or a vector or a mean has no direction.

    Examples
    --------
    >>> tested = Embeddings(["t", "u"], ["x", "x"], np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> conversation_vectors([tested], {"one": [(0, "t"), (0, "u")]}).vectors
    array([[1., 1.]])
    """
    row_of = []
    for embeddings in draws:
        row_of.append({name: row for row, name in enumerate(embeddings.ids.tolist())})
    ids = []
    names = []
    speakers: dict[str, Any] = {}
    vectors = []
    problems = Problems()
    for name, recordings in conversations.items():
        for number, recording in recordings:
            row = row_of[number].get(recording)
            if row is None:
                text = f"recording {recording!r} of a conversation has no embedding"
                problems.add(text, file=draws[number].source or None, remedy="extract it")
                continue
            ids.append(f"{number} {recording}")
            names.append(name)
            speakers.setdefault(name, draws[number].speakers[row])
            vectors.append(draws[number].vectors[row])
    problems.raise_if_any()
    recorded = Embeddings(np.array(ids, object), np.array(names, object), np.stack(vectors))
    means = speaker_vectors(recorded, averaging=averaging)
    owners: NDArray[Any] = np.array([speakers[name] for name in means.names.tolist()], object)
    return Embeddings(means.names, owners, means.vectors, source=draws[0].source)


def deal_embeddings(
    tested: Embeddings,
    key: Key,
    utterances: int,
    *,
    seed: int = 0,
    averaging: Averaging | None = None,
) -> tuple[dict[str, tuple[str, ...]], Embeddings]:
    """Deal the tested recordings of a key into conversations, and average their embeddings.

    Parameters
    ----------
    tested : Embeddings
        With their speakers.
    key : Key
        Trials of recordings; see `evaluation.trials.conversation_key`.
    utterances, seed
        See `evaluation.trials.draw_conversations`.
    averaging : Averaging, optional

    Returns
    -------
    conversations : dict of str to tuple of str
    means : Embeddings
        See `conversation_vectors`.

    Raises
    ------
    DataError
        If the speakers are unknown, or as in `conversation_vectors`.
    """
    if not tested.has_speakers:
        text = "conversations are of one speaker each, and the speakers of these recordings are not known"
        remedy = "give embeddings with speakers, or a map (utt2spk)"
        raise DataError(text, file=tested.source or None, remedy=remedy)
    known = dict(zip(tested.ids.tolist(), tested.speakers.tolist(), strict=True))
    speakers = {}
    for segment in key.segment_ids[np.unique(key.segments)].tolist():
        # recordings without an embedding are named below
        speakers[segment] = known.get(segment, segment)
    (conversations,) = draw_conversations(speakers, utterances, seed=seed)
    parts = {}
    for name, recordings in conversations.items():
        parts[name] = [(0, recording) for recording in recordings]
    return conversations, conversation_vectors([tested], parts, averaging=averaging)


@verbosely
def cosine_scores(
    enrol: Embeddings,
    trial: Embeddings,
    trials: Trials,
    *,
    averaging: Averaging | None = None,
    verbose: bool = True,
) -> Scores:
    """Return the cosine of each trial of a list.

    Parameters
    ----------
    enrol, trial : Embeddings
        Embeddings of the enrolled speakers and of the tested utterances.
    trials : Trials
        The pairs of models and segments.
    averaging : Averaging, optional
        How the embeddings of an enrolled speaker are averaged.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Scores
        Cosines, in the order of the trials.

    Raises
    ------
    DataError
        If a model or a segment has no embedding, dimensions differ, or a vector is not finite or 0.

    Examples
    --------
    >>> enrol = Embeddings(["a1", "a2"], ["a", "a"], np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> trial = Embeddings(["t"], ["x"], np.array([[0.0, 2.0]]))
    >>> cosine_scores(enrol, trial, Trials.from_ids(["a", "a1"], ["t", "t"])).values.round(4)
    array([0.7071, 0.    ])
    """
    warn_of_enrolled(enrol, trial, trials)
    if enrol.vectors.shape[1] != trial.vectors.shape[1]:
        got = f"{enrol.vectors.shape[1]} of the enrolled and {trial.vectors.shape[1]} of the tested"
        if enrol.source and trial.source:
            files = f" ({enrol.source}, {trial.source})"
        else:
            files = ""
        text = f"expected the same number of dimensions on both sides, got {got}{files}"
        raise DataError(text, remedy="use one extractor for both")
    with errors_of(enrol.source):
        gallery = speaker_vectors(enrol, averaging=averaging)
    used_models, models = np.unique(trials.models, return_inverse=True)
    used_segments, segments = np.unique(trials.segments, return_inverse=True)
    of_speaker = recode(trials.model_ids[used_models], gallery.names)
    of_utterance = recode(trials.model_ids[used_models], enrol.ids)
    rows = recode(trials.segment_ids[used_segments], trial.ids)
    remedy = (
        "a model is an enrolled speaker or utterance: give the speakers of the enrolled (utt2spk),"
    )
    problems = Problems()
    unknown_models = np.maximum(of_speaker, of_utterance) < 0
    for side, names, unknown, known, advice in (
        ("models", trials.model_ids[used_models], unknown_models, enrol.ids, f"{remedy} or"),
        ("segments", trials.segment_ids[used_segments], rows < 0, trial.ids, "extract them, or"),
    ):
        absent = names[unknown].tolist()
        if absent:
            text = f"{len(absent)} of {len(names)} {side} without an embedding: {few(absent)}"
            alike = [name for name in known.tolist() if loosened(name) == loosened(absent[0])]
            if alike:
                advice = f"{alike[0]!r} is another spelling of {absent[0]!r}: spell ids of the trials alike, or"
            problems.add(text, remedy=f"{advice} leave their trials out")
    problems.raise_if_any()
    vectors = []
    for speaker, utterance in zip(of_speaker, of_utterance, strict=True):
        if speaker >= 0:
            vectors.append(gallery.vectors[speaker])
        else:
            vectors.append(enrol.vectors[utterance])
    enrolled = np.stack(vectors).astype(np.float64)
    unit = to_unit(trial.vectors[rows], trial.norms()[rows])
    values = np.clip(
        cosines(enrolled, np.linalg.norm(enrolled, axis=1), unit, models, segments), -1.0, 1.0
    )
    return trials.scored(values)


def speaker_folds(speakers: Iterable[str], n_folds: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of each utterance; speakers stay whole, and folds differ by at most one speaker.

    Parameters
    ----------
    speakers : iterable of str
        Speaker of each utterance.
    n_folds : int
        Number of folds, at most the number of speakers.
    seed : int
        Seed of the draw of speakers, which does not depend on their order.

    Returns
    -------
    ndarray of int of shape (n,)
        From 0 on.

    Raises
    ------
    DataError
        If there are fewer than two speakers or folds.

    Examples
    --------
    >>> speaker_folds(["anna", "bert", "anna", "cleo"], 3).tolist()
    [0, 1, 0, 2]
    """
    names = list(speakers)
    known = sorted(set(names))
    if len(known) < 2 or n_folds < 2:
        text = f"expected at least two speakers and two folds, got {len(known)} and {n_folds}"
        raise DataError(text, remedy="no speaker may be both in training and in test")
    order = stream(seed, "folds of speakers").permutation(len(known))
    folds = {known[index]: number % n_folds for number, index in enumerate(order)}
    return np.array([folds[name] for name in names], np.int64)


def _check_names(first: Embeddings, second: Embeddings) -> None:
    """Warn of speakers that differ only in spelling, and of two sets without speakers."""
    warn_of_alike([*first.speakers.tolist(), *second.speakers.tolist()])
    if NUMBERED in first.notes and NUMBERED in second.notes:
        logger.warning("neither side has ids or speakers: their rows are matched by number")


def _copies(
    embeddings: Embeddings, known: Embeddings | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that repeat recordings of a known set, or of other rows, and the rows that they repeat."""
    tolerance = rounding(embeddings.vectors, embeddings.speakers)
    if known is None:
        return find_copies(embeddings.vectors, None, tolerance)
    if embeddings.vectors.shape[1] != known.vectors.shape[1]:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    tolerance = min(tolerance, rounding(known.vectors, known.speakers))
    return find_copies(embeddings.vectors, known.vectors, tolerance)


def _pairs(
    side: Embeddings, rows: NDArray[np.int64], other: Embeddings, others: NDArray[np.int64]
) -> str:
    """Name the first copies and their originals, with speakers."""
    pairs = []
    for row, original in zip(rows[:_SHOWN], others[:_SHOWN], strict=True):
        pairs.append(
            f"{side.ids[row]} of {side.speakers[row]} = {other.ids[original]} of {other.speakers[original]}"
        )
    return ", ".join(pairs)
