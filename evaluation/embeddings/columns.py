"""What a file of embeddings holds, before it is an `Embeddings`: vectors, and ids and speakers where it has them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line

VECTORS = ("vectors", "embeddings", "embedding", "xvectors", "xvector", "vector", "embs", "emb", "data", "x", "stat1")
IDS = (
    *("ids", "id", "utterances", "utterance", "utts", "utt", "utt_ids", "utt_id", "utterance_id", "segments"),
    *("segment", "segment_ids", "segment_id", "keys", "key", "names", "name", "filename", "file", "segset"),
)
SPEAKERS = ("speakers", "speaker", "spks", "spk", "speaker_ids", "speaker_id", "spk_ids", "spk_id", "modelset")
"""Names of columns, in lower case; where a file has several of a kind, the first of these counts.

The last of each are those of SIDEKIT's StatServer.
"""


@one_line
@dataclass(frozen=True, eq=False)
class Columns:
    """What was read.

    Attributes
    ----------
    ids : sequence of str, or None
        None where a file holds vectors alone.
    speakers : sequence of str, or None
    vectors : ndarray of a floating type of shape (n, D)
    notes : tuple of str
        How it was understood, where that is not plain.
    """

    ids: Sequence[str] | None
    speakers: Sequence[str] | None
    vectors: Any
    notes: tuple[str, ...] = ()


def name_among(names: Iterable[str], kind: Sequence[str]) -> str | None:
    """Return the name that stands for a column, or None.

    Examples
    --------
    >>> name_among(["Utt", "spk", "path"], IDS)
    'Utt'
    """
    present = {name.lower(): name for name in names}
    return next((present[name] for name in kind if name in present), None)


def columns_of(named: Mapping[str, Any], path: Path, what: str) -> Columns:
    """Make columns of named arrays: vectors, ids and speakers.

    Raises
    ------
    DataError
        If there are no vectors, or a column is not of its type.
    """
    key = name_among(named, VECTORS)
    if key is None:
        missing = "vectors not there" if name_among(named, IDS) else "ids and vectors not there"
        raise DataError(f"expected {what} ids, speakers and vectors; {missing}", file=path)
    vectors = np.asanyarray(named[key])
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(f"expected vectors (n, D) of floats, got {vectors.dtype} of shape {vectors.shape}", file=path)
    ids, speakers = name_among(named, IDS), name_among(named, SPEAKERS)
    return Columns(
        None if ids is None else texts(named[ids], ids, path),
        None if speakers is None else texts(named[speakers], speakers, path),
        vectors,
    )


def texts(column: Any, name: str, path: Path) -> list[str]:
    """Return a column of text as strings."""
    column = np.asarray(column)
    if column.ndim != 1 or column.dtype.kind not in "USO":
        raise DataError(f"expected {name} of text, got {column.dtype} of shape {column.shape}", file=path)
    try:
        return [value.decode("utf-8") if isinstance(value, bytes) else str(value) for value in column.tolist()]
    except UnicodeDecodeError as error:
        raise DataError(f"{name} holds an id that is not UTF-8: {error.object!r:.60}", file=path) from error


def stacked(ids: Sequence[str], vectors: Sequence[NDArray[Any]] | NDArray[Any], path: Path) -> NDArray[np.floating]:
    """Put vectors under each other, unless they are; an error names two of unequal lengths."""
    if not len(vectors):
        raise DataError("expected embeddings, got none", file=path, remedy="write it again")
    if isinstance(vectors, np.ndarray):
        return vectors
    first = vectors[0].shape
    for utterance, vector in zip(ids, vectors, strict=True):
        if vector.ndim != 1 or vector.shape != first:
            got = f"{first} for {ids[0]} and {vector.shape} for {utterance}"
            text = f"expected vectors of as many dimensions each, got {got}"
            raise DataError(text, file=path, remedy="use one extractor for all")
    return np.concatenate(vectors).reshape(len(vectors), -1)


def joined(parts: Sequence[Columns], paths: Sequence[Path]) -> Columns:
    """Put the columns of several files under each other; each must have ids, and all or none of them speakers."""
    if len(parts) == 1:
        return parts[0]
    width = parts[0].vectors.shape[1]
    for part, path in zip(parts, paths, strict=True):
        if part.vectors.shape[1] != width:
            text = f"expected vectors of {width} dimensions as in {paths[0]}, got {part.vectors.shape[1]}"
            raise DataError(text, file=path, remedy="use one extractor for all")
    owners = [part.speakers for part in parts]
    if any(names is None for names in owners) and any(names is not None for names in owners):
        bare = paths[[names is None for names in owners].index(True)]
        text = "has no speakers, while others of the files have"
        raise DataError(text, file=bare, remedy="give a map of all utterances to speakers, as utt2spk")
    return Columns(
        [name for part in parts for name in part.ids or ()],
        None if owners[0] is None else [name for names in owners for name in names or ()],
        np.concatenate([part.vectors for part in parts]),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def broken(path: Path, kind: str, error: BaseException) -> DataError:
    """Return the error of a damaged file, from what a library says of it."""
    if "Python objects" in str(error):
        text = "holds Python objects, which are never read: they can carry programs"
        return DataError(text, file=path, remedy="write ids and speakers as text: numpy.array(ids, str)")
    reason = (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)).splitlines()
    text = f"cannot be read as {kind}: {reason[0] if reason else type(error).__name__}"
    return DataError(text, file=path, remedy="it may be truncated: copy or write it again")
