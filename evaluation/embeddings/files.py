"""Files of embeddings: read by their content, large ones memory-mapped instead of copied.

===========  =====================================================================================================
npz, HDF5    ``vectors`` (n, D) of floats, ``ids`` (n,) and ``speakers`` (n,) of text or whole numbers; also other
             names that the field uses; an array for each utterance, in HDF5 perhaps in groups by speaker; an npz of a
             window that slides over a recording (``data``, ``start``, ``duration``, ``step``)
npy          (n, D), with a list of ids in its folder; a folder of ``vectors.npy``, ``ids.npy`` and ``speakers.npy``
Kaldi        ``.scp`` and ``.ark`` of vectors (`evaluation.embeddings.kaldi`), with an ``utt2spk``; folders of them
PyTorch      ``.pt`` in both forms, without PyTorch, and the cache of VoicePrivacy
safetensors  of a tensor for each utterance
text         CSV, TSV, and lines ``id v1 v2 ...``
pickle       on request only, never run (`spkbase.plain_pickle.read_pickle`)
===========  =====================================================================================================

The speakers come from the given map, else from the file, else from the ``utt2spk`` of an archive. If the ids of the
file are speakers of the map, the file holds a vector for each speaker. Otherwise each id counts as one speaker, with a
note.

Vectors above 64 MiB are memory-mapped where they are contiguous: in npy, in contiguous HDF5 datasets and in tensors.

Pickles, PyTorch files and archives of arrays hold dictionaries and lists:

{utterance: vector}                 one vector for each key; speakers as above
{speaker: [vector, ...]}            the ids are speaker#1, speaker#2 ...
{speaker: [(utterance, vector)]}    also {speaker: {utterance: vector}}, and an array of shape (n, D) per speaker
[(name, vector), ...]               names are speakers if one is repeated, else utterances
{"ids": [...], "vectors": (n, D)}   columns, by the names that npz and HDF5 have
(n, D)                              a single array, or a list of vectors, with a list of ids in the folder

A vector is an array of floats with one axis that is not 1, such as (192,), (1, 192) and (1, 1, 192), or a list of
floats.

Text files are CSV or TSV with a header, or lines ``id v1 v2 ...``. A header names a column of ids (`id`, `utt`,
`utterance`, `segment` ...; pandas' unnamed index serves if there is none), perhaps one of speakers, and the values:
one column each, or a single column (`vector`, `embedding` ...) that holds them all as text, ``[0.1, 0.2]``. Columns of
values may be numbered behind a common name (`e0`, `e1`, or `0`, `1`): then other columns are left alone; else each
further column must be numbers.

A folder is one of

    vectors.npy, ids.npy, speakers.npy             an array speaker_vectors.pt, id2idx, idx2spk            as
    VoicePrivacy 2024 and 2026 store them below `emb_xvect`; `id2idx` has

                                                   the row of each id, `idx2spk` the speaker of each row, as text or as
                                                   pickled dictionaries; the folder above (of `utt-level`) is read too
    X.scp, or X.1.scp, X.2.scp, or *.ark           Kaldi's; an X.scp includes its parts; means of speakers (`spk_*`)
                                                   only if there is nothing else
    files of one kind, *.npy, *.pt, *.npz, *.h5    an utterance each (its id is the file's name), or tables
"""

from __future__ import annotations

import glob
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.kaldi import read_ark, read_scp
from evaluation.embeddings.sets import Embeddings
from evaluation.trials import cut_lines, delimiter_of, is_number, read_speakers
from spkbase.errors import DataError, errors_of, few
from spkbase.files import atomic_path, check_data, read_id_list, read_text_bytes, shown
from spkbase.hdf5 import create_file, open_file, read_dataset, stored_dataset
from spkbase.plain_pickle import MAP_ABOVE, OLDER_TORCH, read_npy, read_npz, read_pickle, read_torch

VECTORS = (
    "vectors",
    "embeddings",
    "embedding",
    "xvectors",
    "xvector",
    "vector",
    "embs",
    "emb",
    "data",
    "x",
    "stat1",
)
IDS = (
    *(
        "ids",
        "id",
        "utterances",
        "utterance",
        "utts",
        "utt",
        "utt_ids",
        "utt_id",
        "utterance_id",
        "segments",
    ),
    *(
        "segment",
        "segment_ids",
        "segment_id",
        "keys",
        "key",
        "names",
        "name",
        "filename",
        "file",
        "segset",
    ),
)
SPEAKERS = (
    "speakers",
    "speaker",
    "spks",
    "spk",
    "speaker_ids",
    "speaker_id",
    "spk_ids",
    "spk_id",
    "modelset",
)
"""Names of columns, in lower case; where a file has several of a kind, the first of these counts.

The last of each are those of SIDEKIT's StatServer.
"""
CACHE = "speaker_vectors.pt"
_INDEX_NAMES = ("id2idx", "utt2idx", "spk2idx")
_WINDOW = ("start", "duration", "step")
_KaldiReader = Callable[[Path], tuple[list[str], list[NDArray[np.floating]]]]
_SHAPE = (
    "expected {speaker: [vector, ...]}, {speaker: [(utterance, vector), ...]}, {utterance: vector}"
    " or [(speaker, vector), ...]"
)
_HEAD = 2056  # bytes that identify the format
_SAFE_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_ARCHIVE = re.compile(rb"[^\s\0]{1,1024} (\0B[FDC]| ?\[\s)")
_SCP_LINE = re.compile(rb"\S+[ \t]+\S+\.ark(:[0-9]+)?\r?\n")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,6})")
_INDEX = ("", "unnamed: 0", "index")
_BRACKETS = str.maketrans("[](),;", "      ")
_NOT_VECTORS = ("wav", "feats", "vad", "cmvn", "segments", "text")
_PART = re.compile(r"(.+)\.[0-9]+")
_KINDS = (".npy", ".pt", ".pth", ".npz", ".h5", ".hdf5", ".safetensors", ".pkl", ".csv")
_KALDI = (".scp", ".ark")
_LISTS = (".ids", ".txt", ".lst", ".seg", ".scp")


def read_embeddings(
    path: str | Path | Sequence[str | Path],
    *,
    speakers: str | Path | None = None,
    allow_pickle: bool = False,
    map_above: int = MAP_ABOVE,
) -> Embeddings:
    """Read embeddings from any of these files.

    Parameters
    ----------
    path : path, or several
        File, folder, or pattern such as ``xvector.*.scp``. Several are concatenated.
    speakers : path, optional
        Map of ids to speakers, lines ``id speaker`` as in ``utt2spk``.
    allow_pickle : bool
        Read pickles too, without running them.
    map_above : int
        Bytes of vectors above which they are memory-mapped from the file.

    Raises
    ------
    DataError
        With file and line: a missing, broken or foreign file, a missing column, an id that is repeated or has no
        speaker, vectors of unequal dimensions, a pickle that is not allowed or asks for more than plain data.
    """
    if isinstance(path, (str, Path)):
        given = [path]
    else:
        given = list(path)
    if not given:
        raise DataError("expected a file of embeddings, got none")
    paths = _matching(given)
    columns = _joined([_read(file, allow_pickle, map_above) for file in paths], paths)
    source = few(given)
    ids = list(columns.ids or ())
    owners = columns.speakers
    note = ""
    if speakers is None and owners is None:
        speakers = _map_beside(paths)
    if speakers is not None:
        owners, note = _mapped_speakers(ids, Path(speakers), source)
    has_speakers = owners is not None
    if owners is None:
        names = few([Path(entry).name for entry in given])
        owners = ids
        note = f"{names} has no speakers: each id counts as one"
    notes = tuple(filter(None, [note]))
    with errors_of(source):
        return Embeddings(
            np.asarray(ids, object),
            np.asarray(owners, object),
            columns.vectors,
            notes,
            source,
            has_speakers,
        )


def write_embeddings(path: str | Path, embeddings: Embeddings) -> None:
    """Write embeddings atomically as ``.npz``, or as ``.h5``, which can be memory-mapped.

    Raises
    ------
    DataError
        If the extension is another, or the file cannot be written.
    """
    path = Path(path)
    columns = {"ids": embeddings.ids.tolist(), "speakers": embeddings.speakers.tolist()}
    if path.suffix == ".npz":
        texts = {name: np.array(column, np.str_) for name, column in columns.items()}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, vectors=embeddings.vectors, **texts)  # type: ignore[arg-type]
    elif path.suffix in (".h5", ".hdf5"):
        with create_file(path) as root:
            root.create_dataset("vectors", data=embeddings.vectors)
            for name, column in columns.items():
                root.create_dataset(name, data=np.array([text.encode() for text in column]))
    else:
        raise DataError(
            f"no format of embeddings is known for {path.suffix!r}",
            file=path,
            remedy="use .npz or .h5",
        )


def holds_embeddings(folder: str | Path) -> bool:
    """Return whether `read_embeddings` can read a folder."""
    folder = Path(folder)
    try:
        known = _is_cache(folder) or _is_cache(folder / "utt-level") or _is_npy_folder(folder)
        return folder.is_dir() and (known or bool(_files_of(folder)))
    except DataError:
        return False


def window_ids(name: str, count: int, start: float, duration: float, step: float) -> list[str]:
    """Return ids of sliding windows of a recording: its name, with start and end in milliseconds.

    Examples
    --------
    >>> window_ids("call", 2, 0.0, 1.5, 0.25)
    ['call-0000000-0001500', 'call-0000250-0001750']
    """
    begins = [round(1000 * (start + step * number)) for number in range(count)]
    return [f"{name}-{begin:07d}-{begin + round(1000 * duration):07d}" for begin in begins]


class _Columns(NamedTuple):
    """The contents of a file; ids and speakers are None if it has none."""

    ids: Sequence[str] | None
    speakers: Sequence[str] | None
    vectors: NDArray[Any]


class _Positions(NamedTuple):
    """The columns of a text table; if it names no columns of values, they are all columns after the first."""

    of_ids: int = 0
    of_speakers: int | None = None
    values: Sequence[int] = ()
    is_text: bool = False  # one column holds all values

    def cells(self, row: Sequence[str]) -> Sequence[str]:
        """Return the cells of the values of a row."""
        if not self.values:
            return row[1:]
        if self.is_text:
            return row[self.values[0]].translate(_BRACKETS).split()
        return [row[column] for column in self.values]


def _matching(given: Sequence[str | Path]) -> list[Path]:
    """Return the given files and folders, and the files that match patterns."""
    paths: list[Path] = []
    for entry in map(Path, given):
        if entry.exists() or not glob.has_magic(str(entry)):
            paths.append(entry)
            continue
        matches = sorted(glob.glob(str(entry)))  # noqa: PTH207
        if not matches:
            raise DataError("no file has this name", file=entry, remedy="check the pattern")
        paths += map(Path, matches)
    return paths


def _map_beside(paths: Sequence[Path]) -> Path | None:
    """Return the utt2spk in the folder of Kaldi's archives, if there is one."""
    folders = {path for path in paths if path.is_dir()}
    folders |= {path.parent for path in paths if path.suffix in _KALDI and not path.is_dir()}
    if len(folders) == 1:
        table = folders.pop() / "utt2spk"
        if table.is_file():
            return table
    return None


def _mapped_speakers(ids: list[str], path: Path, source: str) -> tuple[list[str], str]:
    """Look up the speakers of ids in a map; return a note too if the ids are speakers themselves."""
    table = read_speakers(path)
    absent = [utterance for utterance in ids if utterance not in table]
    if len(absent) == len(ids) and set(ids) <= set(table.values()):
        return ids, f"{source} holds a vector for each speaker: its ids are speakers of {path.name}"
    if absent:
        text = (
            f"{len(absent)} of {len(ids)} utterances of {source} without a speaker: {few(absent)}"
        )
        raise DataError(text, file=path, remedy="the map must name the speaker of each")
    return [table[utterance] for utterance in ids], ""


def _read(path: Path, allow_pickle: bool, map_above: int) -> _Columns:
    """Read a file or a folder; the result has ids."""
    if not path.is_dir():
        return _read_file(path, allow_pickle, map_above)
    for cache in (path, path / "utt-level"):
        if _is_cache(cache):
            return _read_file(cache / CACHE, allow_pickle, map_above)
    if _is_npy_folder(path):
        names = _needed([file.stem for file in path.glob("*.npy")])
        arrays = {}
        for name in names:
            arrays[name] = read_npy(
                path / f"{name}.npy", map_above=map_above, allow_pickle=allow_pickle
            )
        return _with_ids(_columns_of(arrays, path), path)
    files = _files_of(path)
    return _joined(
        [_read_file(file, allow_pickle, map_above, is_part=True) for file in files], files
    )


def _read_file(
    path: Path, allow_pickle: bool, map_above: int, *, is_part: bool = False
) -> _Columns:
    """Read one file; a single vector in a file of a folder gets the name of the file."""
    try:
        with path.open("rb") as handle:
            head = check_data(path, handle.read(_HEAD))
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}", file=path, remedy="check the path"
        ) from error
    if not head:
        raise DataError(
            "expected embeddings, got an empty file", file=path, remedy="write it again"
        )
    columns = _by_content(path, head, allow_pickle, map_above)
    if columns.ids is None and path.name == CACHE and _is_cache(path.parent):
        return _read_cache(path.parent, columns.vectors)
    if columns.ids is None and is_part and len(columns.vectors) == 1:
        return columns._replace(ids=[path.stem])
    return _with_ids(columns, path)


def _by_content(path: Path, head: bytes, allow_pickle: bool, map_above: int) -> _Columns:
    """Read a file by its first bytes, or by its extension if these are not decisive."""
    # also version 7.3, which is HDF5: arrays are transposed, and texts are references
    if head.startswith(b"MATLAB"):
        remedy = "in Python: numpy.savez(path, vectors=vectors, ids=ids) of what scipy.io.loadmat or h5py reads"
        raise DataError("is a file of MATLAB, which is not read", file=path, remedy=remedy)
    if any(head[offset:].startswith(b"\x89HDF\r\n\x1a\n") for offset in (0, 512, 1024, 2048)):
        return _read_hdf5(path, map_above)
    if head.startswith(b"PK\x03\x04"):
        return _read_zip(path, allow_pickle)
    if head.startswith(b"\x93NUMPY"):
        return _columns_of_data(
            read_npy(path, map_above=map_above, allow_pickle=allow_pickle), path
        )
    if head.startswith(OLDER_TORCH):
        return _columns_of_data(read_torch(path), path)
    if head[8:10] == b'{"' and head[4:8] == bytes(4):
        return _read_safetensors(path)
    return _by_extension(path, head, allow_pickle)


def _by_extension(path: Path, head: bytes, allow_pickle: bool) -> _Columns:
    """Read a file of Kaldi, a pickle or a text, which the first bytes identify less reliably."""
    is_pickle = path.suffix in (".pkl", ".pickle", ".pk") or (
        head[0] == 0x80 and head[1:2] in b"\2\3\4\5"
    )
    read = _reader_of_kaldi(path, head, is_pickle)
    if read is not None:
        ids, vectors = read(path)
        return _Columns(ids, None, _stacked(ids, vectors, path))
    if is_pickle:
        if not allow_pickle:
            remedy = "allow_pickle=True reads it without running it; or write npz"
            raise DataError(
                "is a pickle, a format that can carry programs", file=path, remedy=remedy
            )
        return _columns_of_data(read_pickle(path), path)
    if b"\0" not in head and re.search(rb"[,\t; ]", head.split(b"\n")[0].strip()):
        return _read_table(path)
    known = "npz, npy, HDF5, Kaldi's .scp and .ark, .pt, safetensors, CSV or text, or a pickle (allow_pickle=True)"
    raise DataError("is not a known file of embeddings", file=path, remedy=f"expected {known}")


def _reader_of_kaldi(path: Path, head: bytes, is_pickle: bool) -> _KaldiReader | None:
    """Return the function that reads a list or an archive of Kaldi, or None if the file is neither."""
    if path.suffix == ".ark":
        return read_ark
    if path.suffix == ".scp" or (not is_pickle and _SCP_LINE.match(head)):
        return read_scp
    if _ARCHIVE.match(head):
        return read_ark
    return None


def _with_ids(columns: _Columns, path: Path) -> _Columns:
    """Give vectors without ids the ids of a list in the same folder: the first word of each line.

    The list has `.ids`, `.txt`, `.lst`, `.seg` or `_ids.npy` after the stem of the file, or is `ids.npy` or `ids.txt`.
    """
    if columns.ids is not None:
        return columns
    count = len(columns.vectors)
    names = [f"{path.stem}_ids.npy", "ids.npy"]
    names += [f"{path.stem}{suffix}" for suffix in _LISTS]
    names.append("ids.txt")
    beside = next(filter(Path.is_file, map(path.parent.joinpath, names)), None)
    if path.is_dir() or beside is None:
        remedy = f"write a list of the {count} ids beside it: {path.stem}.ids, a line each"
        raise DataError(
            "expected ids, speakers and vectors, but there are no ids", file=path, remedy=remedy
        )
    if beside.suffix == ".npy":
        ids = _texts(read_npy(beside), "ids", beside)
    else:
        ids = [words[0] for _, words in cut_lines(beside, read_text_bytes(beside), None)]
    if len(ids) != count:
        text = f"expected the ids of {count} vectors of {path.name}, got {len(ids)}"
        raise DataError(text, file=beside, remedy="it must list each row, in order")
    return columns._replace(ids=ids)


def _joined(parts: Sequence[_Columns], paths: Sequence[Path]) -> _Columns:
    """Concatenate the columns of several files; each must have ids, and all or none of them speakers."""
    if len(parts) == 1:
        return parts[0]
    _check_parts(parts, paths)
    ids: list[str] = []
    speakers: list[str] = []
    for part in parts:
        ids += part.ids or ()
        speakers += part.speakers or ()
    vectors = np.concatenate([part.vectors for part in parts])
    if parts[0].speakers is None:
        return _Columns(ids, None, vectors)
    return _Columns(ids, speakers, vectors)


def _check_parts(parts: Sequence[_Columns], paths: Sequence[Path]) -> None:
    """Refuse files with vectors of unequal length, or of which only some have speakers."""
    width = parts[0].vectors.shape[1]
    bare = []
    for part, path in zip(parts, paths, strict=True):
        if part.vectors.shape[1] != width:
            text = f"expected vectors of {width} dimensions as in {paths[0]}, got {part.vectors.shape[1]}"
            raise DataError(text, file=path, remedy="use one extractor for all")
        if part.speakers is None:
            bare.append(path)
    if bare and len(bare) < len(parts):
        text = "has no speakers, while others of the files have"
        raise DataError(
            text, file=bare[0], remedy="give a map of all utterances to speakers, as utt2spk"
        )


def _name_among(names: Iterable[str], kind: Sequence[str]) -> str | None:
    """Return the name of a column among some names, in upper or lower case, or None."""
    present = {name.lower(): name for name in names}
    for name in kind:
        if name in present:
            return present[name]
    return None


def _needed(names: Iterable[str]) -> set[str]:
    """Return those of the names that are columns to be read."""
    return {name for name in names if name.lower() in (*VECTORS, *IDS, *SPEAKERS)}


def _single(named: Mapping[str, Any], kind: Sequence[str], path: Path) -> str | None:
    """Return the name of the column of a kind, or None; refuse several candidates."""
    names = sorted(
        (name for name in named if name.lower() in kind), key=lambda name: kind.index(name.lower())
    )
    for other in names[1:]:
        if _differ(named[names[0]], named[other]):
            _check_single([names[0], other], path)
    return next(iter(names), None)


def _differ(first: Any, second: Any) -> bool:
    """Return whether columns with equal numbers of rows and equal types differ in content."""
    try:
        is_alike = len(first) == len(second) > 0 and type(first[0]) is type(second[0])
    except (TypeError, KeyError):  # numbers and dictionaries cannot be compared
        return False
    if not is_alike or np.array_equal(first, second):
        return False
    if not isinstance(first[0], (str, bytes)):
        return True
    names = set(first)  # for example files with ids
    others = set(second)
    is_renamed = names.isdisjoint(others) and len(set(zip(first, second, strict=True))) == len(
        names
    ) == len(others)
    return not is_renamed


def _check_single(names: Sequence[str], path: Path) -> None:
    """Refuse several columns of a kind, among which the user must choose."""
    if len(names) > 1:
        remedy = "write one of them: numpy.savez(path, vectors=vectors, ids=ids, speakers=speakers)"
        raise DataError(f"holds {names[0]} and {names[1]}, which differ", file=path, remedy=remedy)


def _columns_of(named: Mapping[str, Any], path: Path) -> _Columns:
    """Build columns from named arrays: vectors, ids and speakers."""
    key = _single(named, VECTORS, path)
    ids = _single(named, IDS, path)
    speakers = _single(named, SPEAKERS, path)
    if key is None:
        got = few(list(named)) or "nothing"
        remedy = f"name them: {', '.join(VECTORS[:3])} ..."
        raise DataError(
            f"expected ids, speakers and vectors, but instead of vectors there is {got}",
            file=path,
            remedy=remedy,
        )
    own = None
    if ids is not None:
        own = _texts(named[ids], ids, path)
    owners = None
    if speakers is not None:
        owners = _texts(named[speakers], speakers, path)
    return _Columns(own, owners, _matrix(named[key], path))


def _matrix(vectors: Any, path: Path) -> NDArray[Any]:
    matrix: NDArray[Any] = np.asanyarray(vectors)
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise DataError(
            f"expected vectors (n, D) of floats, got {matrix.dtype} of shape {matrix.shape}",
            file=path,
        )
    return matrix


def _texts(column: Any, name: str, path: Path) -> list[str]:
    """Return a column of text as strings."""
    column = np.asarray(column)
    is_text = (
        all(isinstance(value, (str, bytes)) for value in column.flat) or column.dtype.kind in "iu"
    )
    if column.ndim != 1 or not is_text:
        got = f"{column.dtype} of shape {column.shape}"
        raise DataError(
            f"expected {name} of text or whole numbers, got {got}",
            file=path,
            remedy="write them as text",
        )
    try:
        texts = []
        for value in column.tolist():
            texts.append(value.decode("utf-8") if isinstance(value, bytes) else str(value))
        return texts
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name} holds an id that is not UTF-8: {error.object!r:.60}", file=path
        ) from error


def _stacked(
    ids: Sequence[str], vectors: Sequence[NDArray[Any]], path: Path
) -> NDArray[np.floating]:
    """Stack vectors; the error names two of different length."""
    if not vectors:
        raise DataError("expected embeddings, got none", file=path, remedy="write it again")
    first = vectors[0].shape
    for utterance, vector in zip(ids, vectors, strict=True):
        if vector.shape != first:
            text = f"expected vectors of equal length, got {first} for {ids[0]} and {vector.shape} for {utterance}"
            raise DataError(text, file=path, remedy="use one extractor for all")
    return np.concatenate(vectors).reshape(len(vectors), -1)


def _is_vector(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and value.ndim > 0 and 0 < value.size == max(value.shape)
    return isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(value[0], float)


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], (str, int))


def _columns_of_data(content: Any, path: Path) -> _Columns:
    """Build columns from dictionaries, lists and arrays, as returned by `read_pickle` and `read_torch`."""
    if isinstance(content, np.ndarray):
        if _is_vector(content):
            content = content.reshape(1, -1)
        if content.ndim == 3 and content.shape[1] == 1:
            content = content[:, 0]
        return _Columns(None, None, _matrix(content, path))
    if isinstance(content, dict):
        named = _named_columns(content)
        if named is not None:
            return _columns_of(named, path)
    rows = _rows_of_data(content)
    if not rows:
        raise DataError(f"{_SHAPE}, got {type(content).__name__}", file=path)
    columns = _columns_of_rows(rows, path)
    if isinstance(content, dict) or _is_pair(content[0]):
        return columns
    return columns._replace(ids=None)


def _columns_of_rows(rows: Sequence[tuple[Any, Any, Any]], path: Path) -> _Columns:
    """Build columns from the speaker (or None), the name and the vector of each utterance."""
    ids = []
    speakers = []
    vectors = []
    for speaker, name, value in rows:
        is_named = isinstance(name, (str, int)) and isinstance(speaker, (str, int, type(None)))
        if not is_named or not _holds_floats(value):
            raise DataError(f"{_SHAPE}, got {type(value).__name__} for {name!r:.60}", file=path)
        ids.append(str(name))
        speakers.append(str(speaker))
        vectors.append(np.asarray(value).reshape(-1))
    matrix = _stacked(ids, vectors, path)
    if rows[0][0] is None:
        return _Columns(ids, None, matrix)
    return _Columns(ids, speakers, matrix)


def _holds_floats(value: Any) -> bool:
    return _is_vector(value) and (
        isinstance(value, np.ndarray) or all(isinstance(number, float) for number in value)
    )


def _rows_of_data(content: Any) -> list[tuple[Any, Any, Any]]:
    """Return the speaker (or None), the name and the vector of each utterance; nothing if the form is unknown."""
    if isinstance(content, dict):
        if all(map(_is_vector, content.values())):
            return [(None, name, vector) for name, vector in content.items()]
        rows = []
        for speaker, entries in content.items():
            for name, vector in _entries(speaker, entries):
                rows.append((speaker, name, vector))
        return rows
    if isinstance(content, (list, tuple)):
        if all(map(_is_vector, content)):
            return [(None, number, vector) for number, vector in enumerate(content)]
        if all(map(_is_pair, content)):
            return _rows_of_pairs(content)
    return []


def _rows_of_pairs(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """Return the speaker, the name and the vector of each pair: names are speakers if one is repeated."""
    if len({name for name, _ in pairs}) == len(pairs):
        return [(None, name, vector) for name, vector in pairs]
    rows = []
    numbers = Counter[Any]()
    for speaker, vector in pairs:
        numbers[speaker] += 1
        rows.append((speaker, f"{speaker}#{numbers[speaker]}", vector))
    return rows


def _entries(speaker: Any, entries: Any) -> list[tuple[Any, Any]]:
    """Return the utterances and vectors of a speaker, from vectors, pairs or a dictionary."""
    if isinstance(entries, dict):
        return list(entries.items())
    is_array = isinstance(entries, np.ndarray) and entries.ndim > 0
    if _is_vector(entries) or not (is_array or isinstance(entries, (list, tuple))):
        entries = [entries]
    pairs: list[tuple[Any, Any]] = []
    for number, entry in enumerate(entries, 1):
        if not _is_pair(entry):
            entry = (f"{speaker}#{number}", entry)
        pairs.append(tuple(entry))
    return pairs


def _named_columns(content: dict[Any, Any]) -> dict[str, Any] | None:
    """Return columns by name if a dictionary holds a table instead of named vectors."""
    if not all(isinstance(name, str) for name in content):
        return None
    key = _name_among(content, VECTORS)
    ids = _name_among(content, IDS)
    if key is None or ids is None or _is_vector(content[ids]):
        return None
    vectors = content[key]
    if isinstance(vectors, (list, tuple)) and all(map(_is_vector, vectors)):
        vectors = np.array([np.asarray(vector).reshape(-1) for vector in vectors])
    if isinstance(vectors, np.ndarray):
        return content | {key: vectors}
    return None


def _read_zip(path: Path, allow_pickle: bool) -> _Columns:
    """Read an npz (vectors with ids, windows of a recording, or an array per utterance), or a file of PyTorch."""
    names = _names_in_zip(path)
    if any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return _columns_of_data(read_torch(path), path)
    if _name_among(names, VECTORS) is None:
        wanted = set[str]()
    else:
        wanted = {*_needed(names), *_WINDOW}
    arrays = read_npz(path, *wanted, allow_pickle=allow_pickle)
    values = list(arrays.values())
    if len(values) == 1 and isinstance(values[0], dict):
        return _columns_of_data(values[0], path)
    if arrays and not _needed(names):
        return _columns_of_data(arrays, path)
    columns = _columns_of(arrays, path)
    if columns.ids is None and set(_WINDOW) <= set(arrays):
        return columns._replace(ids=_ids_of_windows(arrays, len(columns.vectors), path))
    return columns


def _names_in_zip(path: Path) -> list[str]:
    """Return the names of the members of a zip archive, those of arrays without their extension."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        if path.suffix in (".pt", ".pth", ".bin", ".ckpt"):
            kind = "PyTorch"
        else:
            kind = "npz"
        remedy = "it may be truncated: copy or write it again"
        raise DataError(f"cannot be read as {kind}: {error}", file=path, remedy=remedy) from error


def _ids_of_windows(arrays: Mapping[str, Any], count: int, path: Path) -> list[str]:
    """Return the ids of the windows of a recording, whose start, duration and step a file holds."""
    window = []
    for name in _WINDOW:
        value = np.asarray(arrays[name])
        if value.size != 1 or value.dtype.kind not in "fiu" or not np.isfinite(value).all():
            text = f"expected {', '.join(_WINDOW)} of the sliding window in seconds, a number each"
            raise DataError(text, file=path, remedy="write ids beside the vectors")
        window.append(float(value.item()))
    return window_ids(path.stem, count, *window)


def _read_hdf5(path: Path, map_above: int) -> _Columns:
    """Read datasets in the root of an HDF5 file, or a dataset for each utterance."""
    columns: dict[str, Any] = {}
    with open_file(path, remedy="it may be truncated: copy or write it again") as file:
        vectors = _name_among(file, VECTORS)
        if vectors is None:
            return _columns_of_tree(file, path)
        if hasattr(file[vectors], "visititems"):
            return _columns_of_tree(file[vectors], path)
        if vectors == "stat1" and "stat0" in file and file["stat0"].shape[1:] != (1,):
            text = f"holds statistics of a mixture, stat0 {file['stat0'].shape}"
            raise DataError(text, remedy="extract i-vectors from them first")
        for name in _needed(file):
            stored = None
            if name == vectors:
                stored = stored_dataset(file[name], path)
            if stored is not None and stored.nbytes > map_above:
                columns[name] = np.memmap(path, stored.dtype, "r", stored.offset, stored.shape)
            else:
                columns[name] = read_dataset(file[name])
    return _columns_of(columns, path)


def _columns_of_tree(file: Any, path: Path) -> _Columns:
    """Read a dataset for each utterance; groups are speakers. Ids are whole paths if names repeat."""
    arrays = _arrays_of_tree(file)
    leaves = {name.rpartition("/")[2].lower() for name in arrays}
    if len(leaves) == 1 < len(arrays) and leaves <= {*VECTORS}:  # each utterance is a group
        arrays = {name.rpartition("/")[0]: array for name, array in arrays.items()}
    if not arrays or any(array.dtype.kind != "f" for array in arrays.values()):
        return _columns_of(arrays, path)
    if not all("/" in name for name in arrays):
        return _columns_of_data(arrays, path)
    return _columns_of_data(_by_group(arrays), path)


def _arrays_of_tree(file: Any) -> dict[str, NDArray[Any]]:
    """Read all datasets below a group, by their paths."""
    links: list[bytes] = []
    # `visititems` would skip a dataset's second name
    file.id.links.visit(links.append)
    arrays = {}
    for name in map(bytes.decode, links):
        if hasattr(file[name], "shape"):
            arrays[name] = read_dataset(file[name])
    return arrays


def _by_group(arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return arrays by speaker, the first part of their path, and id: the rest of it, or all if rests repeat."""
    utterances = [name.partition("/")[2] for name in arrays]
    if len(set(utterances)) < len(utterances) or any("/" in name for name in utterances):
        utterances = list(arrays)
    speakers: dict[str, dict[str, Any]] = {}
    for (name, array), utterance in zip(arrays.items(), utterances, strict=True):
        speakers.setdefault(name.partition("/")[0], {})[utterance] = array
    return speakers


def _read_safetensors(path: Path) -> _Columns:
    """Read a safetensors file: a tensor for each utterance, or one for all with a list of ids.

    References
    ----------
    The format: eight bytes of a length, a JSON object ``{name: {dtype, shape, data_offsets}}`` of that length, bytes.
    """
    arrays = {}
    try:
        content = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(content[:8].tobytes(), "little")
        for name, entry in json.loads(content[8 : 8 + length].tobytes()).items():
            if name == "__metadata__":
                continue
            start, stop = entry["data_offsets"]
            values = np.asarray(content[8 + length + start : 8 + length + stop]).view(
                _SAFE_TYPES[entry["dtype"]]
            )
            if entry["dtype"] == "BF16":  # bfloat16 is the upper half of a float32
                values = (values.astype(np.uint32) << 16).view(np.float32)
            arrays[name] = values.reshape(entry["shape"])
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        text = f"cannot be read as safetensors of floats: {error}"
        raise DataError(
            text, file=path, remedy="it may be truncated: copy or write it again"
        ) from error
    if len(arrays) == 1:
        return _columns_of_data(next(iter(arrays.values())), path)
    return _columns_of_data(arrays, path)


def _read_table(path: Path) -> _Columns:
    """Read embeddings from a text file: lines ``id v1 v2 ...``, or a table with a header; see the module."""
    raw = read_text_bytes(path)
    delimiter = delimiter_of(raw.partition(b"\n")[0].decode("utf-8", "replace"))
    lines = cut_lines(path, raw, delimiter)
    if not lines:
        raise DataError("expected embeddings, got no line", file=path, remedy="write it again")
    header = [cell.strip() for cell in lines[0][1]]
    columns = _Positions()
    if _is_header(header):
        columns = _find_columns(header, path)
        lines = lines[1:]
    ids = []
    speakers = []
    vectors = []
    for line, row in lines:
        if columns.values and len(row) != len(header):
            text = f"expected {len(header)} columns as in the header, got {len(row)}"
            raise DataError(text, file=path, line=line, remedy="write it again")
        row = [cell.strip() for cell in row]
        ids.append(row[columns.of_ids])
        if columns.of_speakers is not None:
            speakers.append(row[columns.of_speakers])
        vectors.append(_vector(columns.cells(row), path, line))
    _check_ids(ids, path)
    matrix = _stacked(ids, vectors, path)
    if columns.of_speakers is None:
        return _Columns(ids, None, matrix)
    return _Columns(ids, speakers, matrix)


def _check_ids(ids: Sequence[str], path: Path) -> None:
    """Refuse numbers with a point where ids are expected."""
    if ids and all("." in name and is_number(name) for name in ids):
        text = f"expected an id first in each line, got numbers: {few(ids)}"
        raise DataError(
            text, file=path, remedy="lines 'id v1 v2 ...', or a header with a column of ids"
        )


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether the first line of a table names columns: one of ids, and no number after it."""
    has_numbers = len(cells) > 1 and is_number(cells[1]) and not all(map(str.isdigit, cells[1:]))
    names_ids = cells[0].lower() in _INDEX or _name_among(cells, IDS) is not None
    return names_ids and not has_numbers


def _vector(cells: Sequence[str], path: Path, line: int) -> NDArray[np.float64]:
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        bad = next(cell for cell in cells if not is_number(cell))
        text = f"{shown(bad.encode())} is not a number"
        remedy = (
            "expected lines 'id v1 v2 ...', or a header with a column of ids and columns of values"
        )
        raise DataError(text, file=path, line=line, remedy=remedy) from None


def _find_columns(header: list[str], path: Path) -> _Positions:
    """Find the columns that a header names."""
    if len(set(header)) < len(header):
        raise DataError(
            "expected distinct names of columns in the header",
            file=path,
            line=1,
            remedy="write it again",
        )
    ids = _position_of(IDS, header) or 0
    speakers = _position_of(SPEAKERS, header)
    taken = {ids, speakers}
    if header[0].lower() in _INDEX:
        taken.add(0)
    others = [column for column in range(len(header)) if column not in taken]
    whole = [column for column in others if header[column].lower() in VECTORS]
    if whole:
        _check_single([header[column] for column in whole], path)
        return _Positions(ids, speakers, whole, is_text=True)
    others = _numbered(header, others, path) or others
    if not others:
        raise DataError("expected columns of values after the ids, got none", file=path, line=1)
    return _Positions(ids, speakers, others)


def _position_of(kind: Sequence[str], header: list[str]) -> int | None:
    """Return the number of the first column of a kind, or None."""
    name = _name_among(header, kind)
    if name is None:
        return None
    return header.index(name)


def _numbered(header: Sequence[str], candidates: Sequence[int], path: Path) -> list[int]:
    """Return the columns that are numbered behind a common name, by their numbers; none if there are fewer than two."""
    series: dict[str, list[tuple[int, int]]] = {}
    for column in candidates:
        match = _NUMBERED.fullmatch(header[column])
        if match:
            series.setdefault(match[1], []).append((int(match[2]), column))
    longest = max(series.values(), key=len, default=[])
    if len(longest) < 2:
        return []
    _check_single(
        [f"{name}0" for name, columns in series.items() if len(columns) == len(longest)], path
    )
    return [column for _, column in sorted(longest)]


def _is_cache(folder: Path) -> bool:
    """Return whether a folder is VoicePrivacy's cache of an extractor's vectors."""
    return (folder / CACHE).is_file() and any((folder / name).is_file() for name in _INDEX_NAMES)


def _is_npy_folder(folder: Path) -> bool:
    """Return whether a folder holds one array and its columns."""
    return any((folder / f"{name}.npy").is_file() for name in (*VECTORS, *IDS, *SPEAKERS))


def _files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that make up its embeddings, in the order of their names."""
    for suffix in _KALDI:
        files = _kaldi_files(folder, suffix)
        if files:
            return files
    present = {}
    for suffix in _KINDS:
        files = sorted(folder.glob(f"*{suffix}"))
        if files:
            present[suffix] = files
    if len(present) == 1:
        return next(iter(present.values()))
    if present:
        got = f"files of several kinds: {', '.join(present)}"
    else:
        got = "none of them"
    known = f"vectors.npy and ids.npy, {CACHE} and id2idx, Kaldi's scp or ark, or files of one kind"
    remedy = f"expected {known} ({' '.join(_KINDS)})"
    raise DataError(f"expected a folder of embeddings, got {got}", file=folder, remedy=remedy)


def _kaldi_files(folder: Path, suffix: str) -> list[Path]:
    """Return the files of vectors with a suffix in a folder, without the parts of files that are there as a whole."""
    files = [
        file for file in folder.glob(f"*{suffix}") if file.name.split(".")[0] not in _NOT_VECTORS
    ]
    stems = _stems_of_wholes(sorted(files))
    files = [file for file in stems if "spk_" not in file.name] or list(stems)
    several = sorted({stems[file] for file in files})
    if suffix == ".scp" and len(several) > 1:
        text = f"holds scp files of several names: {few(several)}"
        remedy = f"give one of them: '{folder / several[0]}.*scp'"
        raise DataError(text, file=folder, remedy=remedy)
    return files


def _stems_of_wholes(files: Sequence[Path]) -> dict[Path, str]:
    """Return the stem of each file without the number of a part.

    Parts of files that are also there as a whole are left out.
    """
    names = {file.stem for file in files}
    stems = {}
    for file in files:
        stem = file.stem
        part = _PART.fullmatch(stem)
        if part:
            stem = part[1]
        if stem == file.stem or stem not in names:
            stems[file] = stem
    return stems


def _read_cache(folder: Path, vectors: NDArray[Any]) -> _Columns:
    """Read the rows of `speaker_vectors.pt` with their ids and speakers."""
    index = next(folder / name for name in _INDEX_NAMES if (folder / name).is_file())
    words = _mapping(index, "id row")
    numbers = {name: int(word) if word.isdigit() else -1 for name, word in words.items()}
    ids = sorted(numbers, key=numbers.__getitem__)
    rows = np.array([numbers[name] for name in ids])
    if (
        not ids
        or vectors.ndim != 2
        or rows[0] < 0
        or rows[-1] >= len(vectors)
        or (np.diff(rows) == 0).any()
    ):
        text = f"expected lines 'id row', the rows from 0 to {len(vectors) - 1}, each once"
        raise DataError(text, file=index, remedy=f"it must belong to {CACHE}: make both again")
    if len(ids) < len(vectors):
        vectors = vectors[rows]
    return _Columns(ids, _speakers_of_cache(folder, {name: words[name] for name in ids}), vectors)


def _speakers_of_cache(folder: Path, words: Mapping[str, str]) -> list[str] | None:
    """Look up the speaker of each row, by its number as text in `idx2spk`, else by its id in `utt2spk`."""
    owners = folder / "idx2spk"
    ids = list(words)
    keys = list(words.values())
    form = "row speaker"
    if not owners.is_file():
        owners = folder / "utt2spk"
        keys = ids
        form = "id speaker"
    if not owners.is_file():
        return None
    speakers = _mapping(owners, form)
    absent = [name for name, key in zip(ids, keys, strict=True) if key not in speakers]
    if absent:
        text = f"{len(absent)} of {len(ids)} utterances without a speaker: {few(absent)}"
        raise DataError(text, file=owners, remedy=f"it must belong to {CACHE}: make both again")
    return [speakers[key] for key in keys]


def _mapping(path: Path, form: str) -> dict[str, str]:
    """Read a map of two columns, as text or a pickled dictionary."""
    with path.open("rb") as handle:
        if handle.read(1) != b"\x80":
            return read_id_list(path, form, same_twice=True)
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise DataError(
            f"expected a dictionary of '{form}', got {type(content).__name__}", file=path
        )
    return {str(name): str(value) for name, value in content.items()}
