"""Embeddings in dictionaries and lists, as pickles, files of PyTorch and archives of arrays hold them.

{utterance: vector}                 one vector a key; see `evaluation.embeddings.files` for who the speakers are
{speaker: [vector, ...]}            the ids are speaker#1, speaker#2 ...
{speaker: [(utterance, vector)]}    also {speaker: {utterance: vector}}, and an array of shape (n, D) a speaker
[(name, vector), ...]               speakers where a name comes twice, else utterances
{"ids": [...], "vectors": (n, D)}   columns, by the names in `evaluation.embeddings.columns`
(n, D)                              an array alone, or a list of vectors: ids must stand beside the file

A vector is an array of floats with one axis that is not 1, such as (192,), (1, 192) and (1, 1, 192), or a list of
floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.columns import IDS, VECTORS, Columns, columns_of, name_among, stacked
from spkbase.errors import DataError

_SHAPE = (
    "expected {speaker: [vector, ...]}, {speaker: [(utterance, vector), ...]}, {utterance: vector}"
    " or [(speaker, vector), ...]"
)
_MOST_COPIES = 4
_MOST_COLUMNS = 64


def is_vector(value: Any) -> bool:
    """Tell whether something is one vector; see the module."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and value.ndim > 0 and 0 < value.size == max(value.shape)
    return isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(value[0], float)


def columns_of_data(content: Any, path: Path) -> Columns:
    """Make columns of dictionaries, lists and arrays.

    Parameters
    ----------
    content : object
        Plain data, as `spkbase.files.read_pickle` and `read_torch` give it.
    path : path
        The file it came from, for errors and as a bound on what it can hold.

    Raises
    ------
    DataError
        If it is none of the forms, vectors differ in length, or one vector is named so often that the file cannot hold
        them all.
    """
    if isinstance(content, np.ndarray):
        return _of_array(content, path)
    if isinstance(content, dict) and content:
        if named := _named_columns(content):
            return columns_of(named, path, "a dictionary with")
        if all(map(is_vector, content.values())):
            return _of_pairs(iter(content.items()), None, path)
        return _of_speakers(content, path)
    if isinstance(content, (list, tuple)) and content:
        if all(map(is_vector, content)):
            return Columns(
                None, None, _of_pairs(((str(row), one) for row, one in enumerate(content)), None, path).vectors
            )
        if all(isinstance(entry, (list, tuple)) and len(entry) == 2 and _is_name(entry[0]) for entry in content):
            return _of_names(content, path)
    raise DataError(f"{_SHAPE}, got {type(content).__name__}", file=path)


def _of_array(array: NDArray[Any], path: Path) -> Columns:
    if is_vector(array):
        return Columns(None, None, array.reshape(1, -1))
    if array.ndim == 3 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 2 or array.dtype.kind != "f":
        raise DataError(f"expected vectors (n, D) of floats, got {array.dtype} of shape {array.shape}", file=path)
    return Columns(None, None, array)


def _named_columns(content: dict[Any, Any]) -> dict[str, Any] | None:
    """Columns by their names, where a dictionary holds a table and not vectors by names."""
    if len(content) > _MOST_COLUMNS or not all(isinstance(name, str) for name in content):
        return None
    key, ids = name_among(content, VECTORS), name_among(content, IDS)
    if key is None or ids is None or not isinstance(content[ids], (list, tuple, np.ndarray)) or is_vector(content[ids]):
        return None
    vectors = content[key]
    if isinstance(vectors, (list, tuple)) and vectors and all(map(is_vector, vectors)):
        vectors = np.array([np.asarray(vector).reshape(-1) for vector in vectors])
    return content | {key: vectors} if isinstance(vectors, np.ndarray) else None


def _of_speakers(content: dict[Any, Any], path: Path) -> Columns:
    speakers: list[str] = []

    def pairs() -> Iterator[tuple[Any, Any]]:
        for speaker, entries in content.items():
            several = isinstance(entries, (list, tuple, dict)) or (isinstance(entries, np.ndarray) and entries.ndim > 0)
            if not _is_name(speaker) or not several:
                raise DataError(f"{_SHAPE}, got {type(entries).__name__} for {speaker!r:.60}", file=path)
            if is_vector(entries):
                entries = [entries]
            for number, entry in enumerate(entries.items() if isinstance(entries, dict) else entries, 1):
                is_pair = isinstance(entry, (tuple, list)) and len(entry) == 2 and _is_name(entry[0])
                speakers.append(str(speaker))
                yield entry if is_pair else (f"{speaker}#{number}", entry)

    return _of_pairs(pairs(), speakers, path)


def _of_names(content: Any, path: Path) -> Columns:
    """Pairs of a name and a vector: utterances, or speakers where a name comes again."""
    names = [str(name) for name, _ in content]
    if len(set(names)) == len(names):
        return _of_pairs(iter(content), None, path)
    seen: dict[str, int] = {}
    ids = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        ids.append(f"{name}#{seen[name]}")
    return _of_pairs(zip(ids, (vector for _, vector in content), strict=True), names, path)


def _of_pairs(pairs: Iterator[tuple[Any, Any]], speakers: list[str] | None, path: Path) -> Columns:
    """Columns of names and vectors; what a small file names many times is not copied without end."""
    ids: list[str] = []
    vectors: list[NDArray[Any]] = []
    room = _MOST_COPIES * path.stat().st_size
    while block := list(islice(pairs, 4096)):
        for name, value in block:
            if not _is_name(name) or not is_vector(value):
                raise DataError(f"{_SHAPE}, got {type(value).__name__} for {name!r:.60}", file=path)
            ids.append(name if type(name) is str else str(name))
            vector = value if isinstance(value, np.ndarray) else _floats(name, value, path)
            vectors.append(vector if vector.ndim == 1 else vector.reshape(-1))
            room -= vector.nbytes + 1
            if room < 0:
                raise DataError("holds more vectors than its size allows", file=path, remedy="do not trust this file")
    return Columns(ids, speakers, stacked(ids, vectors, path))


def _floats(name: Any, values: Any, path: Path) -> NDArray[np.float64]:
    if not all(isinstance(value, float) for value in values):
        raise DataError(f"{_SHAPE}, got {type(values).__name__} for {name!r:.60}", file=path)
    return np.array(values, np.float64)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int))
