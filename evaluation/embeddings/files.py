"""Files of embeddings: read by their content, large ones mapped instead of copied.

===========  =====================================================================================================
npz, HDF5    ``vectors`` (n, D) of floats, ``ids`` (n,) and ``speakers`` (n,) of text; also other names that the
             field uses; an npz of an array for each utterance, or of a window that
             slides over a recording (``data``, ``start``, ``duration``, ``step``)
npy          (n, D), with a list of ids beside it; a folder of ``vectors.npy``, ``ids.npy`` and ``speakers.npy``
Kaldi        ``.scp`` and ``.ark`` of vectors (`evaluation.embeddings.kaldi`), with an ``utt2spk``; folders of them
PyTorch      ``.pt`` in both forms, without PyTorch, and the cache of VoicePrivacy
safetensors  of a tensor for each utterance
text         CSV, TSV, and lines ``id v1 v2 ...``
pickle       on request only, through stand-ins (`spkbase.plain_pickle.read_pickle`)
===========  =====================================================================================================

What dictionaries and lists may look like in pickles, PyTorch's files and safetensors stands below.

Who the speakers are: a map that is given, else the file, else an ``utt2spk`` beside an archive. A map whose ids are not
those of the file, but whose speakers are, says that the file holds a vector for each speaker. Without all of these
each id is a speaker of its own, and a note says so.

Vectors above 64 MiB are mapped where they lie in one piece, not packed: in npy, in an npz of `numpy.savez`, in a
contiguous dataset, and in a tensor.

**What a file of embeddings holds, before it is an Embeddings:** vectors, and ids and speakers where it has them.

**Embeddings in dictionaries and lists, as pickles, files of PyTorch and archives of arrays hold them.**

{utterance: vector}                 one vector a key; who the speakers are is said above
{speaker: [vector, ...]}            the ids are speaker#1, speaker#2 ...
{speaker: [(utterance, vector)]}    also {speaker: {utterance: vector}}, and an array of shape (n, D) a speaker
[(name, vector), ...]               speakers where a name comes twice, else utterances
{"ids": [...], "vectors": (n, D)}   columns, by the names that npz and HDF5 have
(n, D)                              an array alone, or a list of vectors: ids must stand beside the file

A vector is an array of floats with one axis that is not 1, such as (192,), (1, 192) and (1, 1, 192), or a list of
floats.

**Embeddings in npz, npy, HDF5 and safetensors; large ones are mapped where they lie in one piece, not packed.**

**Embeddings in text:** CSV and TSV with a header, and lines ``id v1 v2 ...``.

A header names a column of ids (`id`, `utt`, `utterance`, `segment` ...; pandas' unnamed index serves where there is
none), perhaps one of speakers, and the values: one column each, or a single column (`vector`, `embedding` ...) that
holds them all as text, ``[0.1, 0.2]``. Columns of values may be numbered behind a common name (`e0`, `e1`, or `0`,
`1`): then other columns are left alone; else each further column must be numbers.

**The forms in which embeddings are kept: what tells each, and what reads it.**

**Embeddings in several files: folders, the cache of VoicePrivacy, and lists of ids beside an array.**

A folder is one of

    vectors.npy, ids.npy, speakers.npy             an array
    speaker_vectors.pt, id2idx, idx2spk            what VoicePrivacy 2024 and 2026 keep below `emb_xvect`; `id2idx` says
                                                   the row of each id, `idx2spk` the speaker of each row, as text or as
                                                   pickled dictionaries; the folder above (of `utt-level`) is taken too
    X.scp, or X.1.scp, X.2.scp, or *.ark           Kaldi's; an X.scp stands for its parts; means of speakers (`spk_*`)
                                                   only where there is nothing else
    files of one kind, *.npy, *.pt, *.npz, *.h5    an utterance each (its id is the file's name), or tables
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.sets import Embeddings
from evaluation.trials import read_speakers
from spkbase.errors import DataError, few
from spkbase.files import atomic_path, not_text, read_id_list, read_text_bytes, shown
from spkbase.hdf5 import create_file, open_file, read_dataset, stored_dataset
from spkbase.plain_pickle import MAP_ABOVE, OLDER_TORCH, read_npy, read_npz, read_pickle, read_torch
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
    reason = (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)).splitlines()
    text = f"cannot be read as {kind}: {reason[0] if reason else type(error).__name__}"
    return DataError(text, file=path, remedy="it may be truncated: copy or write it again")


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
        Plain data, as `spkbase.plain_pickle.read_pickle` and `read_torch` give it.
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


_WINDOW = ("start", "duration", "step")
_SAFE_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_LONGEST_HEAD = 100_000_000


def window_ids(name: str, count: int, start: float, duration: float, step: float) -> list[str]:
    """Return ids of windows that slide over a recording: its name, begin and end in milliseconds.

    Examples
    --------
    >>> window_ids("call", 2, 0.0, 1.5, 0.25)
    ['call-0000000-0001500', 'call-0000250-0001750']
    """
    begins = [round(1000 * (start + step * number)) for number in range(count)]
    return [f"{name}-{begin:07d}-{begin + round(1000 * duration):07d}" for begin in begins]


def read_npz_columns(path: Path, map_above: int) -> Columns:
    """Read an npz: vectors with their ids, windows of a recording, or an array for each utterance."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    key = name_among(names, VECTORS)
    if key is None:
        columns = read_npz(path)
        if columns and not name_among(names, (*IDS, *SPEAKERS)) and all(map(is_vector, columns.values())):
            return columns_of_data(columns, path)
        return columns_of(columns, path, "an npz with")
    columns = read_npz(path, *_needed(names), map_above=map_above)
    made = columns_of(columns, path, "an npz with")
    if made.ids is None and set(_WINDOW) <= set(columns):
        return Columns(_windows(columns, made, path), None, made.vectors)
    return made


def _needed(names: Collection[str]) -> set[str]:
    """Names of the columns that are read, of all."""
    kinds = [name_among(names, kind) for kind in (VECTORS, IDS, SPEAKERS)]
    return {name for name in kinds if name is not None} | ({*_WINDOW} & set(names))


def _windows(columns: dict[str, Any], made: Columns, path: Path) -> list[str]:
    window = [np.asarray(columns[name]) for name in _WINDOW]
    if not all(value.size == 1 and value.dtype.kind in "fiu" and np.isfinite(value).all() for value in window):
        text = f"expected {', '.join(_WINDOW)} of the sliding window in seconds, a number each"
        raise DataError(text, file=path, remedy="write ids beside the vectors")
    return window_ids(path.stem, len(made.vectors), *(float(value.reshape(())) for value in window))


def read_npy_folder(path: Path, map_above: int) -> Columns:
    """Read a folder of `vectors.npy`, `ids.npy` and `speakers.npy`."""
    names = [file.stem for file in path.glob("*.npy")]
    columns = {name: read_npy(path / f"{name}.npy", map_above=map_above) for name in _needed(names) - {*_WINDOW}}
    return columns_of(columns, path, "a folder with")


def read_hdf5_columns(path: Path, map_above: int) -> Columns:
    """Read datasets of the root of an HDF5 file."""
    columns: dict[str, Any] = {}
    with open_file(path, remedy="it may be truncated: copy or write it again") as file:
        vectors = name_among(file, VECTORS)
        if vectors == "stat1" and "stat0" in file and file["stat0"].shape[1:] != (1,):
            got = f"stat0 {file['stat0'].shape}"
            raise DataError(f"holds statistics of a mixture, {got}", remedy="extract i-vectors from them first")
        for name in _needed(list(file)) - {*_WINDOW}:
            stored = stored_dataset(file[name], path) if name == vectors else None
            if stored is not None and stored.nbytes > map_above:
                columns[name] = np.memmap(path, stored.dtype, "r", stored.offset, stored.shape)
            else:
                columns[name] = read_dataset(file[name])
    return columns_of(columns, path, "an HDF5 file with the datasets")


def read_safetensors(path: Path) -> Columns:
    """Read a safetensors file: a tensor for each utterance, or one of all whose ids stand beside the file.

    References
    ----------
    The format: eight bytes of a length, a JSON object ``{name: {dtype, shape, data_offsets}}`` of that length, bytes.
    """
    try:
        content = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(content[:8].tobytes(), "little")
        if length > min(_LONGEST_HEAD, len(content) - 8):
            raise ValueError(f"its head claims {length} bytes")
        head = json.loads(content[8 : 8 + length].tobytes())
        body = content[8 + length :]
        arrays = {name: _safe_tensor(entry, body) for name, entry in head.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise broken(path, "safetensors", error) from error
    return columns_of_data(next(iter(arrays.values())) if len(arrays) == 1 else arrays, path)


def _safe_tensor(entry: Any, body: NDArray[np.uint8]) -> NDArray[Any]:
    kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _SAFE_TYPES:
        raise ValueError(f"a tensor of {kind!r:.20}, expected floats")
    numbers = [start, stop, *shape]
    if not all(isinstance(number, int) and 0 <= number <= len(body) for number in numbers) or start > stop:
        raise ValueError("a tensor beyond the file")
    values = np.asarray(body[start:stop]).view(_SAFE_TYPES[kind])
    if kind == "BF16":  # the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)


_NUMBERED = re.compile(r"(.*?)([0-9]{1,6})")
_INDEX = ("", "unnamed: 0", "index")
_BRACKETS = str.maketrans("[](),;", "      ")
_MOST_COLUMNS_OF_TABLES = 1 << 16


def looks_like_text(head: bytes) -> bool:
    """Tell whether the first bytes of a file are text whose first line has several columns."""
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
    return b"\0" not in head and any(mark in line.strip() for mark in (b",", b"\t", b";", b" "))


def read_table(path: Path) -> Columns:
    """Read embeddings of a text file; see the module.

    Raises
    ------
    DataError
        With the line: what is no number, a line of another length, no column of ids.
    """
    raw = read_text_bytes(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(path, raw.count(b"\n", 0, error.start) + 1, "a byte is not") from error
    lines = _lines(text, path)
    first = next(lines, None)
    if first is None:
        raise DataError("expected embeddings, got no line", file=path, remedy="write it again")
    number, cells = first
    if _is_header(cells):
        return _with_header(cells, lines, path)

    def rows() -> Iterator[tuple[int, list[str]]]:
        yield number, cells
        yield from lines

    ids, vectors = [], []
    for line, row in rows():
        ids.append(row[0])
        vectors.append(_numbers(row[1:], path, line))
    return Columns(ids, None, stacked(ids, vectors, path))


def _lines(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that is not blank."""
    line = text.split("\n", 1)[0]
    delimiter = next((mark for mark in "\t,;" if mark in line), None)
    if delimiter is None:
        for number, words in enumerate(text.split("\n"), 1):
            if cells := words.split():
                yield number, cells
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in reader:
            if any(cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise DataError(f"is no table: {error}", file=path, line=reader.line_num, remedy="write it again") from error


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell.lower() for cell in cells]
    known = name_among(names, IDS) is not None or names[0] in _INDEX
    return known and (len(cells) < 2 or not _is_number(cells[1]) or all(map(str.isdigit, cells[1:])))


def _with_header(header: list[str], lines: Iterator[tuple[int, list[str]]], path: Path) -> Columns:
    if len(header) > _MOST_COLUMNS_OF_TABLES or len(set(header)) < len(header):
        raise DataError("expected distinct names of columns in the header", file=path, line=1, remedy="write it again")
    id_name = name_among(header, IDS)
    index = header[0] if header[0].lower() in _INDEX else None
    at_id = header.index(id_name) if id_name is not None else 0
    speaker_name = name_among(header, SPEAKERS)
    at_speaker = None if speaker_name is None else header.index(speaker_name)
    others = [place for place, name in enumerate(header) if place not in (at_id, at_speaker) and name != index]
    places, read = _values(header, others)
    if not places:
        raise DataError("expected columns of values behind the ids, got none", file=path, line=1)
    ids: list[str] = []
    speakers: list[str] = []
    vectors = []
    for line, row in lines:
        if len(row) != len(header):
            text = f"expected {len(header)} columns as in the header, got {len(row)}"
            raise DataError(text, file=path, line=line, remedy="write it again")
        ids.append(row[at_id])
        if at_speaker is not None:
            speakers.append(row[at_speaker])
        vectors.append(read([row[place] for place in places], path, line))
    return Columns(ids, speakers if at_speaker is not None else None, stacked(ids, vectors, path))


def _values(header: list[str], others: list[int]) -> tuple[list[int], Callable[..., NDArray[np.float64]]]:
    """Columns that hold values, and what reads them."""
    whole = name_among([header[place] for place in others], VECTORS)
    if whole is not None:
        return [header.index(whole)], lambda cells, *place: _numbers(cells[0].translate(_BRACKETS).split(), *place)
    series: dict[str, list[tuple[int, int]]] = {}
    for place in others:
        if match := _NUMBERED.fullmatch(header[place]):
            series.setdefault(match[1], []).append((int(match[2]), place))
    longest = max(series.values(), key=len, default=[])
    return ([place for _, place in sorted(longest)] if len(longest) > 1 else others), _numbers


def _numbers(cells: Sequence[str], path: Path, line: int) -> NDArray[np.float64]:
    if not cells:
        raise DataError("expected an id and values, got no value", file=path, line=line, remedy="write it again")
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        values = None
    if values is None or any("_" in cell for cell in cells):  # float() takes 1_000
        bad = next((cell for cell in cells if not _is_number(cell)), "")
        remedy = "expected lines 'id v1 v2 ...', or a header with a column of ids and columns of values"
        raise DataError(f"{shown(bad.encode())} is no number", file=path, line=line, remedy=remedy)
    return values


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


HEAD = 2056
"""How many of the first bytes tell the form."""

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_ZIP_MAGIC = b"PK\x03\x04"
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".pk")
_TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
_ARCHIVE = re.compile(rb"[^\s\0]{1,1024} (\0B[FDC]| ?\[\s)")
_SCP_LINE = re.compile(rb"\S+[ \t]+\S+\.ark(:[0-9]+)?\r?\n")


@dataclass(frozen=True)
class Reading:
    """What a reader is told.

    Attributes
    ----------
    allow_pickle : bool
        Whether pickles are read, through stand-ins.
    map_above : int
        Bytes of vectors above which they are mapped from the file.
    """

    allow_pickle: bool
    map_above: int


@one_line
@dataclass(frozen=True)
class Form:
    """One form.

    Attributes
    ----------
    name : str
    recognises : callable
        Takes the path and the first bytes.
    read : callable
        Takes the path and a `Reading`.
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path, Reading], Columns]


def _read_archive(path: Path, reading: Reading) -> Columns:
    from evaluation.embeddings.kaldi import read_ark

    ids, vectors = read_ark(path)
    return Columns(ids, None, stacked(ids, vectors, path))


def _read_scp(path: Path, reading: Reading) -> Columns:
    from evaluation.embeddings.kaldi import read_scp

    ids, vectors = read_scp(path)
    return Columns(ids, None, stacked(ids, vectors, path))


def _read_pickle(path: Path, reading: Reading) -> Columns:
    if not reading.allow_pickle:
        raise DataError(
            "is a pickle, a format that can carry programs",
            file=path,
            remedy="--allow-pickle reads it without running what it says; or write npz",
        )
    return columns_of_data(read_pickle(path), path)


def _read_zip(path: Path, reading: Reading) -> Columns:
    """An npz, or a file of PyTorch."""
    try:
        with zipfile.ZipFile(path) as archive:
            is_torch = any(name.rpartition("/")[2] == "data.pkl" for name in archive.namelist())
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise broken(path, "PyTorch" if path.suffix in _TORCH_SUFFIXES else "npz", error) from error
    return columns_of_data(read_torch(path), path) if is_torch else read_npz_columns(path, reading.map_above)


def _refuse_matlab(path: Path, reading: Reading) -> Columns:
    remedy = "in MATLAB: save(file, 'vectors', 'ids', '-v7.3'); in Python: numpy.savez of scipy.io.loadmat"
    raise DataError("is a file of MATLAB 5, which is not read", file=path, remedy=remedy)


def _is_hdf5(path: Path, head: bytes) -> bool:
    return any(head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048))


def _is_safetensors(path: Path, head: bytes) -> bool:
    return head[8:10] == b'{"' and head[4:8] == bytes(4)


def _is_pickle(path: Path, head: bytes) -> bool:
    return path.suffix in _PICKLE_SUFFIXES or (len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5)


FORMS = (
    Form("HDF5", _is_hdf5, lambda path, reading: read_hdf5_columns(path, reading.map_above)),
    Form("npz, PyTorch", lambda path, head: head.startswith(_ZIP_MAGIC), _read_zip),
    Form(
        "npy",
        lambda path, head: head.startswith(b"\x93NUMPY"),
        lambda path, r: columns_of_data(read_npy(path, map_above=r.map_above), path),
    ),
    Form(
        "older PyTorch",
        lambda path, head: head.startswith(OLDER_TORCH),
        lambda path, reading: columns_of_data(read_torch(path), path),
    ),
    Form("MATLAB 5", lambda path, head: head.startswith(b"MATLAB 5"), _refuse_matlab),
    Form("safetensors", _is_safetensors, lambda path, reading: read_safetensors(path)),
    Form("Kaldi scp", lambda path, head: path.suffix == ".scp", _read_scp),
    Form("Kaldi ark", lambda path, head: path.suffix == ".ark" or bool(_ARCHIVE.match(head)), _read_archive),
    Form("pickle", _is_pickle, _read_pickle),
    Form("Kaldi scp", lambda path, head: bool(_SCP_LINE.match(head)), _read_scp),
    Form("table", lambda path, head: looks_like_text(head), lambda path, reading: read_table(path)),
)
"""Asked in this order; the first that recognises a file reads it."""


CACHE = "speaker_vectors.pt"
_INDEX_NAMES = ("id2idx", "utt2idx", "spk2idx")
_NOT_VECTORS = ("wav", "feats", "vad", "cmvn", "segments", "text")
_PART = re.compile(r"(.+)\.[0-9]+")
_KINDS = (".npy", ".pt", ".pth", ".npz", ".h5", ".hdf5", ".safetensors", ".pkl", ".csv")
_LISTS = (".ids", ".txt", ".lst", ".seg", ".scp")


def is_cache(folder: Path) -> bool:
    """Tell whether a folder holds what VoicePrivacy keeps of an extractor's vectors."""
    return (folder / CACHE).is_file() and any((folder / name).is_file() for name in _INDEX_NAMES)


def is_npy_folder(folder: Path) -> bool:
    """Tell whether a folder holds one array and its columns."""
    return any((folder / f"{name}.npy").is_file() for name in (*VECTORS, *IDS, *SPEAKERS))


def holds_embeddings(folder: str | Path) -> bool:
    """Tell whether a folder is one of those that `read_embeddings` takes."""
    folder = Path(folder)
    if not folder.is_dir():
        return False
    if is_cache(folder) or is_cache(folder / "utt-level") or is_npy_folder(folder):
        return True
    try:
        return bool(files_of(folder))
    except DataError:
        return False


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that make up its embeddings, in the order of their names.

    Raises
    ------
    DataError
        If there are none, or of several kinds.
    """
    for suffix in (".scp", ".ark"):
        found = sorted(file for file in folder.glob(f"*{suffix}") if file.name.split(".")[0] not in _NOT_VECTORS)
        names = {file.stem for file in found}
        found = [file for file in found if not ((part := _PART.fullmatch(file.stem)) and part[1] in names)]
        utterances = [file for file in found if "spk_" not in file.name]
        found = utterances or found
        if found:
            stems = sorted({part[1] if (part := _PART.fullmatch(file.stem)) else file.stem for file in found})
            if suffix == ".scp" and len(stems) > 1:
                text = f"holds scp files of several names: {few(stems)}"
                raise DataError(text, file=folder, remedy=f"give one of them: '{folder / stems[0]}.*scp'")
            return found
    kinds = {suffix: sorted(folder.glob(f"*{suffix}")) for suffix in _KINDS}
    present = {suffix: files for suffix, files in kinds.items() if files}
    if len(present) == 1:
        return next(iter(present.values()))
    got = f"files of several kinds: {', '.join(present)}" if present else "none of them"
    known = (
        f"vectors.npy and ids.npy, {CACHE} and id2idx, Kaldi's scp or ark, or files of one kind ({' '.join(_KINDS)})"
    )
    raise DataError(f"expected a folder of embeddings, got {got}", file=folder, remedy=f"expected {known}")


def read_cache(folder: Path, vectors: Any) -> Columns:
    """Give the rows of `speaker_vectors.pt` their ids and speakers.

    Raises
    ------
    DataError
        If a row is named twice or does not exist, or has no speaker where others have.
    """
    index = next(folder / name for name in _INDEX_NAMES if (folder / name).is_file())
    rows = _row_numbers(_mapping(index, "id row"), index)
    if vectors.ndim != 2 or max(rows.values()) >= len(vectors) or len(set(rows.values())) < len(rows):
        text = f"expected the row of each id, 0 to {len(vectors) - 1}, each once"
        raise DataError(text, file=index, remedy=f"it must belong to {CACHE}: make both again")
    ids = sorted(rows, key=rows.__getitem__)
    chosen = np.array([rows[name] for name in ids])
    kept = vectors if len(chosen) == len(vectors) else vectors[chosen]
    owners, owner_rows = folder / "idx2spk", folder / "utt2spk"
    if owners.is_file():
        named = _mapping(owners, "row speaker")
        speakers = {name: named.get(str(rows[name])) for name in ids}
    elif owner_rows.is_file():
        owners = owner_rows
        speakers = dict.fromkeys(ids) | _mapping(owners, "id speaker")
    else:
        return Columns(ids, None, kept)
    if absent := [name for name in ids if speakers[name] is None]:
        text = f"{len(absent)} of {len(ids)} utterances without a speaker: {few(absent)}"
        raise DataError(text, file=owners, remedy=f"it must belong to {CACHE}: make both again")
    return Columns(ids, [str(speakers[name]) for name in ids], kept)


def _mapping(path: Path, what: str) -> dict[str, str]:
    """Read a map of two columns, as text or a pickled dictionary."""
    with path.open("rb") as handle:
        is_pickle = handle.read(1) == b"\x80"
    if not is_pickle:
        return read_id_list(path, what, same_twice=True)
    content = read_pickle(path)
    parts = [part for pair in content.items() for part in pair] if isinstance(content, dict) else [None]
    if not all(isinstance(part, (str, int)) for part in parts):
        raise DataError(f"expected a dictionary of '{what}', got {type(content).__name__}", file=path)
    return {str(name): str(value) for name, value in content.items()}


def _row_numbers(mapping: dict[str, str], path: Path) -> dict[str, int]:
    bad = [value for value in mapping.values() if not (value.isascii() and value.isdigit() and len(value) < 19)]
    if bad or not mapping:
        raise DataError(f"expected lines 'id row', got {few(bad, repr) if bad else 'none'}", file=path)
    return {name: int(value) for name, value in mapping.items()}


def ids_beside(path: Path, count: int) -> list[str] | None:
    """Return the ids that stand beside an array, as many as it has rows, or None where there is no list.

    The list is named as the file, with `.ids`, `.txt`, `.lst`, `.seg` or `_ids.npy` behind its stem, or `ids.npy` or
    `ids.txt`; the first word of each line is the id.

    Raises
    ------
    DataError
        If the list is of another length.
    """
    names = [f"{path.stem}_ids.npy", "ids.npy", *(f"{path.stem}{suffix}" for suffix in _LISTS), "ids.txt"]
    companion = next((path.parent / name for name in names if (path.parent / name).is_file()), None)
    if companion is None or companion == path:
        return None
    if companion.suffix == ".npy":
        ids = texts(read_npy(companion, map_above=1 << 62), "ids", companion)
    else:
        try:
            lines = read_text_bytes(companion).decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError("expected text in UTF-8", file=companion, remedy="write the ids again") from error
        ids = [words[0] for line in lines if (words := line.split())]
    if len(ids) != count:
        text = f"expected the ids of {count} vectors of {path.name}, got {len(ids)}"
        raise DataError(text, file=companion, remedy="it must name each row, in order")
    return ids


_KALDI = (".scp", ".ark")


def read_embeddings(
    path: str | Path | Sequence[str | Path],
    *,
    speakers: str | Path | None = None,
    allow_pickle: bool = False,
    map_above: int = MAP_ABOVE,
) -> Embeddings:
    """Read embeddings of any of the forms.

    Parameters
    ----------
    path : path, or several
        File, folder, or a pattern such as ``xvector.*.scp``. Those of several are put under each other.
    speakers : path, optional
        Map of ids to speakers, lines ``id speaker`` as in ``utt2spk``.
    allow_pickle : bool
        Read pickles too, without running what they say.
    map_above : int
        Bytes of vectors above which they are mapped from the file.

    Raises
    ------
    DataError
        With the place: no such file, a broken or foreign one, a missing column, an id that is repeated or has no
        speaker, vectors of unequal dimensions, a pickle that is not allowed or asks for more than plain data.
    """
    given = [path] if isinstance(path, (str, Path)) else list(path)
    if not given:
        raise DataError("expected a file of embeddings, got none")
    paths = [file for entry in given for file in _matching(Path(entry))]
    reading = Reading(allow_pickle, map_above)
    columns = joined([_read(file, reading) for file in paths], paths)
    source = few(given)
    ids, owners, notes = columns.ids, columns.speakers, columns.notes
    assert ids is not None  # `_read` sees to it
    if speakers is None and owners is None and (beside := _map_beside(paths)) is not None:
        speakers = beside
    if speakers is not None:
        owners, more = _mapped(ids, Path(speakers), source)
        notes += more
    elif owners is None:
        names = few([Path(entry).name for entry in given])
        owners, notes = ids, (*notes, f"{names} has no speakers: each id counts as one")
    try:
        return Embeddings(np.asarray(ids, object), np.asarray(owners, object), columns.vectors, notes, source)
    except DataError as error:
        raise DataError(error.text, file=source, remedy=error.remedy) from error


def write_embeddings(path: str | Path, embeddings: Embeddings) -> None:
    """Write embeddings as ``.npz`` or ``.h5``, not packed, so that they can be mapped; whole or not at all.

    Raises
    ------
    DataError
        If the extension is another, or the file cannot be written.
    """
    path = Path(path)
    ids, speakers = embeddings.ids.tolist(), embeddings.speakers.tolist()
    if path.suffix == ".npz":
        columns = {"ids": np.array(ids, np.str_), "speakers": np.array(speakers, np.str_)}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, vectors=embeddings.vectors, **columns)  # type: ignore[arg-type]
    elif path.suffix in (".h5", ".hdf5"):
        with create_file(path) as root:
            root.create_dataset("vectors", data=embeddings.vectors)
            for name, values in (("ids", ids), ("speakers", speakers)):
                root.create_dataset(name, data=np.array([value.encode() for value in values]))
    else:
        raise DataError(f"no format of embeddings is known for {path.suffix!r}", file=path, remedy="use .npz or .h5")


def _matching(path: Path) -> list[Path]:
    """Files that a pattern names; a path that is there, or names nothing, stays as it is."""
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = [Path(name) for name in sorted(glob.glob(str(path)))]  # noqa: PTH207
    if not found:
        raise DataError("no file has such a name", file=path, remedy="check the pattern")
    return found


def _read(path: Path, reading: Reading) -> Columns:
    """Read a file or a folder; what it leaves has ids."""
    if not path.is_dir():
        return _read_file(path, reading)
    if not is_cache(path) and is_cache(path / "utt-level"):
        path = path / "utt-level"
    if is_cache(path):
        return _read_file(path / CACHE, reading)
    if is_npy_folder(path):
        return _with_ids(read_npy_folder(path, reading.map_above), path, "a folder with")
    files = files_of(path)
    return joined([_read_file(file, reading, is_part=True) for file in files], files)


def _read_file(path: Path, reading: Reading, *, is_part: bool = False) -> Columns:
    """Read one file; a vector alone in a file of a folder is named as the file."""
    if path.exists() and not path.is_file():
        raise DataError("embeddings are not read from a pipe", file=path, remedy="write them to a file")
    try:
        with path.open("rb") as handle:
            head = handle.read(HEAD)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if not head:
        raise DataError("expected embeddings, got an empty file", file=path, remedy="write it again")
    form = next((form for form in FORMS if form.recognises(path, head)), None)
    if form is None:
        known = "npz, npy, HDF5, Kaldi's .scp and .ark, .pt, safetensors, CSV or text, or a pickle with --allow-pickle"
        raise DataError("is no known file of embeddings", file=path, remedy=f"expected {known}")
    columns = form.read(path, reading)
    if columns.ids is None and path.name == CACHE and is_cache(path.parent):
        return read_cache(path.parent, columns.vectors)
    if columns.ids is None and is_part and len(columns.vectors) == 1:
        return Columns([path.stem], None, columns.vectors)
    return _with_ids(columns, path, "a file with")


def _with_ids(columns: Columns, path: Path, what: str) -> Columns:
    """Give vectors without ids those that stand beside them."""
    if columns.ids is not None:
        return columns
    ids = None if path.is_dir() else ids_beside(path, len(columns.vectors))
    if ids is None:
        text = f"expected {what} ids, speakers and vectors; ids not there"
        remedy = f"write a list of the {len(columns.vectors)} ids beside it: {path.stem}.ids, a line each"
        raise DataError(text, file=path, remedy=remedy)
    return Columns(ids, columns.speakers, columns.vectors, columns.notes)


def _map_beside(paths: Sequence[Path]) -> Path | None:
    """The utt2spk beside an archive of Kaldi, or in a folder."""
    folders = {path if path.is_dir() else path.parent for path in paths if path.is_dir() or path.suffix in _KALDI}
    beside = [folder / "utt2spk" for folder in folders]
    return beside[0] if len(beside) == 1 and beside[0].is_file() else None


def _mapped(ids: Sequence[str], speakers: Path, source: str) -> tuple[list[str], tuple[str, ...]]:
    """Look the speakers of ids up in a map; where all ids are speakers of the map, each is its own."""
    table = read_speakers(speakers)
    absent = [utterance for utterance in ids if utterance not in table]
    if len(absent) == len(ids) and set(ids) <= set(table.values()):
        return list(ids), (f"{source} holds a vector for each speaker: its ids are speakers of {speakers.name}",)
    if absent:
        text = f"{len(absent)} of {len(ids)} utterances of {source} without a speaker: {few(absent)}"
        raise DataError(text, file=speakers, remedy="the map must name the speaker of each")
    return [table[utterance] for utterance in ids], ()
