"""One vector a speaker: means of the embeddings of its utterances.

Conventions
-----------
`plain` averages the vectors as they are, as the published tools do; `normalised` scales each to length 1 first, so that
a long vector does not outvote the others. A trial speaker is the mean of L utterances: with `first` the first L in the
order of the file, with `random` L that are drawn by a seed, the speaker's name and the ids alone, whatever the order of
the file. Those of a smaller L are among those of a larger one, so that L alone differs between two curves. A speaker
with fewer than L utterances is the mean of all it has.

Speaker-Linkability draws at random too, by one generator of a fixed seed for the speakers in turn, anew for each L: its
choice hangs on the whole list, and that of a smaller L is not part of that of a larger one. Its numbers are therefore
those of `random` on average, not utterance by utterance.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.sets import Embeddings, check_norms, row_norms
from evaluation.trials import factorise
from spkbase.errors import DataError, few
from spkbase.seeding import stream
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

_ROWS = 1 << 14


@dataclass(frozen=True)
class Averaging:
    """How means are made and utterances are chosen; see the module.

    Attributes
    ----------
    mean : {"plain", "normalised"}
        Whether vectors are scaled to length 1 before they are averaged.
    choice : {"first", "random"}
        Which utterances of a trial speaker are used.
    seed : int
        Of the random choice.
    """

    mean: Literal["plain", "normalised"] = "plain"
    choice: Literal["first", "random"] = "first"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("mean", ("plain", "normalised")), ("choice", ("first", "random"))):
            if getattr(self, name) not in allowed:
                raise DataError(f"expected {name} among {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.seed < 0:
            raise DataError(f"expected a seed from 0, got {self.seed}")


@one_line
@dataclass(frozen=True, eq=False)
class SpeakerVectors:
    """One vector a speaker.

    Attributes
    ----------
    names : ndarray of str of shape (P,), dtype object
        Distinct speakers.
    vectors : ndarray of shape (P, D)
        Their vectors, not normalised; float64 where they are means, else as they came, perhaps mapped.
    norms : ndarray of float64 of shape (P,)
        Lengths of the vectors, none 0.
    notes : tuple of str
        What a reader of the results should know.
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
        How.
    utterances : int, optional
        How many utterances to use; all by default.
    strict : bool
        Raise an error for speakers that have fewer, instead of a note.
    keep_order : bool
        Give the vectors as they are, in their order, where each speaker has one: a mapped file is then not copied.

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
    if len(names) == len(embeddings) and (utterances is None or utterances == 1):
        if keep_order:
            return SpeakerVectors(embeddings.speakers, embeddings.vectors, norms, embeddings.notes)
        order = np.argsort(codes)
        return SpeakerVectors(names, embeddings.vectors[order], norms[order], embeddings.notes)
    rows, starts = _chosen(embeddings, names, codes, averaging, utterances)
    counts = np.diff(np.append(starts, len(rows)))
    notes = embeddings.notes
    if utterances is not None and (counts < utterances).any():
        short = names[counts < utterances].tolist()
        text = f"{len(short)} of {len(names)} speakers have fewer than {utterances} utterances: {few(short)}"
        if strict:
            raise DataError(text, remedy="ask for fewer, or leave out --strict-utterances to use all they have")
        logger.warning("%s; all of theirs are used", text)
        notes = (*notes, f"{text}; all of theirs are used")
    vectors = _means(embeddings.vectors, norms, rows, starts, normalised=averaging.mean == "normalised")
    lengths = row_norms(vectors)
    check_norms(lengths, names, what="speaker mean")
    return SpeakerVectors(names, vectors, lengths, notes)


def _chosen(
    embeddings: Embeddings, names: NDArray, codes: NDArray, averaging: Averaging, utterances: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to average, speaker by speaker, and where each speaker starts among them."""
    if averaging.choice == "random" and utterances is not None:
        # by id first, so that the draw does not see the order of the file
        by_id = np.array(sorted(range(len(embeddings)), key=embeddings.ids.__getitem__), np.int64)
    else:
        by_id = np.arange(len(embeddings))
    order = by_id[np.argsort(codes[by_id], kind="stable")]
    counts = np.bincount(codes, minlength=len(names))
    starts = np.cumsum(counts) - counts
    if utterances is None:
        return order, starts
    if averaging.choice == "random":
        for name, start, count in zip(names.tolist(), starts.tolist(), counts.tolist(), strict=True):
            drawn = stream(averaging.seed, name, words=4, spawned=True).permutation(count)
            order[start : start + count] = order[start : start + count][drawn]
    number = np.arange(len(order)) - np.repeat(starts, counts)
    kept = np.minimum(counts, utterances)
    return order[number < utterances], np.cumsum(kept) - kept


def _means(
    vectors: NDArray,
    norms: NDArray[np.float64],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    *,
    normalised: bool,
) -> NDArray[np.float64]:
    """Means over the rows of each speaker, some thousand rows at a time."""
    counts = np.diff(np.append(starts, len(rows)))
    means = np.empty((len(starts), vectors.shape[1]))
    first = 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _ROWS, side="right")) - 1)
        last = len(starts) if starts[first] + _ROWS >= len(rows) else last
        some = rows[starts[first] : len(rows) if last == len(starts) else starts[last]]
        block = np.asarray(vectors[some], np.float64)
        if normalised:
            block /= norms[some][:, None]
        np.add.reduceat(block, starts[first:last] - starts[first], axis=0, out=means[first:last])
        first = last
    return means / counts[:, None]
