"""Embeddings of utterances with their ids and speakers.

Conventions
-----------
An embedding belongs to one utterance, whose id occurs once. Vectors stay as they came, float16 to float64, and may be
mapped from a file; nothing is normalised here. The order of the file is kept, because "the first utterances of a
speaker" means it. `evaluation.embeddings.files` reads them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Trials, checked_ids, find_rows
from spkbase.errors import DataError, few
from spkbase.work import chunk_bounds

logger = logging.getLogger(__name__)

_ROWS = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class Embeddings:
    """Vectors of utterances.

    Attributes
    ----------
    ids : ndarray of str of shape (n,), dtype object
        Distinct ids of the utterances.
    speakers : ndarray of str of shape (n,), dtype object
        Speaker of each.
    vectors : ndarray of a floating type of shape (n, D)
        Their embeddings; may be mapped from a file.
    notes : tuple of str
        What a reader of the results should know about their origin.
    source : str
        The file they came from, for errors; empty if none.

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

    def __post_init__(self) -> None:
        vectors = np.asanyarray(self.vectors)
        if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.size:
            got = f"{vectors.dtype} of shape {vectors.shape}"
            raise DataError(f"expected vectors of floats, one row an utterance, got {got}", remedy="check the file")
        ids = checked_ids(np.asarray(self.ids, object), "ids of utterances")
        speakers = np.asarray(self.speakers, object)
        for name, column in (("ids", ids), ("speakers", speakers)):
            if column.shape != (len(vectors),):
                raise DataError(f"expected {name} of {len(vectors)} vectors, got shape {column.shape}")
            object.__setattr__(self, name, column)
        if not all(isinstance(name, str) and name for name in speakers.tolist()):
            raise DataError("expected speakers to be strings that are not empty")
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        counts = f"{len(self)} utterances of {len(set(self.speakers.tolist()))} speakers"
        return f"Embeddings({counts}, {self.vectors.shape[1]} dimensions)"

    def norms(self) -> NDArray[np.float64]:
        """Return the length of each vector, shape (n,); reads all vectors once.

        Raises
        ------
        DataError
            If a vector is not finite, or has no length. The first few are named, with the file.
        """
        norms = row_norms(self.vectors)
        try:
            check_norms(norms, self.ids)
        except DataError as error:
            raise DataError(error.text, file=self.source or None, remedy=error.remedy) from error
        return norms


def row_norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the length of each row, in float64, read a block of rows at a time."""
    norms = np.empty(len(vectors))
    for start, stop in chunk_bounds(len(vectors), _ROWS):
        block = np.asarray(vectors[start:stop], np.float64)
        norms[start:stop] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return norms


def check_norms(norms: NDArray[np.float64], names: NDArray[np.object_], *, what: str = "vector") -> None:
    """Raise an error that names what has no direction: NaN and infinite vectors, and those of zeros.

    Raises
    ------
    DataError
        If there is one; the first few are named.
    """
    for bad, text in (
        (~np.isfinite(norms), "not finite (NaN, infinite or far too large)"),
        (norms == 0, "zero (or far too small): no direction"),
    ):
        if bad.any():
            count = int(bad.sum())
            verb = "are" if count > 1 else "is"
            message = f"{count} {what}{'s' * (count > 1)} {verb} {text}: {few(names[bad].tolist())}"
            raise DataError(message, remedy="extract these embeddings anew, or leave them out")


def warn_of_enrolled(enrolled: Embeddings, tested: Embeddings, trials: Trials | None = None) -> None:
    """Warn where an utterance is tried against a model that it is a part of.

    Parameters
    ----------
    enrolled, tested : Embeddings
        An utterance of both is the same where id and vector are.
    trials : Trials, optional
        What is scored; a model is a speaker or an utterance of `enrolled`. Every model and segment by default.
    """
    same = set(_common(enrolled, tested)[1])
    speakers = zip(enrolled.ids.tolist(), enrolled.speakers.tolist(), strict=True)
    own = {(model, name) for name, speaker in speakers if name in same for model in (name, speaker)}
    count, of = len(same), f"{len(tested)} tested utterances"
    if trials is not None and own:
        models, segments = zip(*sorted(own), strict=True)
        count, of = int((find_rows(Trials.from_ids(models, segments), trials) >= 0).sum()), f"{len(trials)} trials"
    if count:
        text = "meet a model of the same recording: they look too well recognised (enrol other recordings)"
        logger.warning("%d of %s %s", count, of, text)


def check_anonymised(original: Embeddings, anonymised: Embeddings) -> None:
    """Make sure that anonymised vectors are not the original ones once more, as when one file is given for both.

    Raises
    ------
    DataError
        If more than half of the utterances that both have are the same vectors.
    """
    common, same = _common(original, anonymised)
    if 2 * len(same) > len(common):
        text = f"{len(same)} of {len(common)} utterances have the same vector, original and anonymised"
        raise DataError(text, file=anonymised.source or None, remedy="give the vectors of the anonymised speech")


def _common(first: Embeddings, second: Embeddings) -> tuple[list[str], list[str]]:
    """Return the ids that both have, and those whose vectors are equal."""
    if first.vectors.shape[1] != second.vectors.shape[1]:
        return [], []
    row_of = {name: row for row, name in enumerate(first.ids.tolist())}
    rows = {name: (row_of[name], row) for row, name in enumerate(second.ids.tolist()) if name in row_of}
    same = [name for name, (one, two) in rows.items() if np.array_equal(first.vectors[one], second.vectors[two])]
    return list(rows), same
