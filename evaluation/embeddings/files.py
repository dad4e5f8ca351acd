"""Files of embeddings: read by their content, large ones mapped instead of copied.

======  ==========================================================================================================
npz     ``vectors`` (n, D) of floats, ``ids`` (n,) and ``speakers`` (n,) of text
folder  the same as ``vectors.npy``, ``ids.npy`` and ``speakers.npy``
HDF5    the same as datasets of the root
Kaldi   ``.scp`` and ``.ark`` of vectors (`evaluation.embeddings.kaldi`), with an ``utt2spk``
pickle  ``{speaker: [vector, ...]}`` or ``{speaker: [(utterance, vector), ...]}``, as the Speaker-Linkability tool
        writes them, on request only (`spkbase.files.plain_pickle`)
======  ==========================================================================================================

Speakers come from a map that is given, else from the file, else from an ``utt2spk`` beside an archive; where there is
none of these, each id is a speaker of its own. Vectors above 64 MiB are mapped where they lie in one piece, not packed:
in npy, in an npz of `numpy.savez`, and in a contiguous dataset.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.sets import Embeddings
from evaluation.trials import read_speakers
from spkbase.errors import DataError, few
from spkbase.files import (
    BROKEN_HDF5,
    BROKEN_NPZ,
    atomic_file,
    check_array,
    check_characters,
    check_hdf5,
    check_members,
    check_memory,
    errors_named,
    is_as_in_memory,
    is_text,
    read_header,
    read_npz,
    read_text,
    whole_file,
)

MAP_ABOVE = 1 << 26
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_ZIP_MAGIC = b"PK\x03\x04"
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".pk")

Columns = tuple[Sequence[str], Sequence[str] | None, Any]
"""Ids, speakers where the file has them, and vectors."""


def read_embeddings(
    path: str | Path,
    *,
    speakers: str | Path | None = None,
    allow_pickle: bool = False,
    map_above: int = MAP_ABOVE,
) -> Embeddings:
    """Read embeddings of any of the formats.

    Parameters
    ----------
    path : path
        File or folder.
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
    path = Path(path)
    notes: tuple[str, ...] = ()
    with errors_named(path, copy := whole_file(path)):
        ids, owners, vectors = _read(copy, allow_pickle, map_above)
    if speakers is None and owners is None and path.suffix in (".scp", ".ark") and (path.parent / "utt2spk").is_file():
        speakers = path.parent / "utt2spk"
    if speakers is not None:
        owners = _mapped(ids, Path(speakers), path)
    elif owners is None:
        owners, notes = ids, (f"{path.name} has no speakers: each id counts as one",)
    try:
        return Embeddings(np.asarray(ids, object), np.asarray(owners, object), vectors, notes)
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error


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
        with atomic_file(path) as file:
            np.savez(file, vectors=embeddings.vectors, **columns)  # type: ignore[arg-type]
    elif path.suffix in (".h5", ".hdf5"):
        import h5py

        with atomic_file(path) as file, h5py.File(file, "w") as root:
            root.create_dataset("vectors", data=embeddings.vectors)
            for name, values in (("ids", ids), ("speakers", speakers)):
                root.create_dataset(name, data=np.array([value.encode() for value in values]))
    else:
        raise DataError(f"no format of embeddings is known for {path.suffix!r}", file=path, remedy="use .npz or .h5")


def _read(path: Path, allow_pickle: bool, map_above: int) -> Columns:
    if path.is_dir():
        return _read_folder(path, map_above)
    try:
        with path.open("rb") as handle:
            head = handle.read(2056)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if not head:
        raise DataError("expected embeddings, got an empty file", file=path, remedy="write it again")
    if any(head[offset:].startswith(_HDF5_MAGIC) for offset in (0, 512, 1024, 2048)):
        return _read_hdf5(path, map_above)
    if head.startswith(_ZIP_MAGIC):
        return _read_npz(path, map_above)
    if path.suffix in (".scp", ".ark"):
        from evaluation.embeddings.kaldi import read_ark, read_scp

        ids, vectors = (read_scp if path.suffix == ".scp" else read_ark)(path)
        return ids, None, _stacked(ids, vectors, path)
    if path.suffix in _PICKLE_SUFFIXES or (len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5):
        return _read_pickle(path, allow_pickle)
    known = "npz, HDF5, a folder of npy, Kaldi's .scp and .ark, or a pickle with --allow-pickle"
    raise DataError("is no known file of embeddings", file=path, remedy=f"expected {known}")


def _read_folder(path: Path, map_above: int) -> Columns:
    columns: dict[str, Any] = {}
    for name in ("ids", "speakers", "vectors"):
        file = path / f"{name}.npy"
        if not file.is_file():
            continue
        try:
            size = file.stat().st_size
            with file.open("rb") as handle:
                check_array(handle, size)
            mapped = name == "vectors" and size > map_above
            columns[name] = check_characters(np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False))
        except BROKEN_NPZ as error:
            raise _broken(file, "npy", error) from error
    return _columns(columns, path, "a folder with")


def _read_npz(path: Path, map_above: int) -> Columns:
    try:
        mapped = _map_member(path, "vectors.npy", map_above)
        columns = read_npz(path, *(("ids", "speakers") if mapped is not None else ("ids", "speakers", "vectors")))
        if mapped is not None:
            columns["vectors"] = mapped
    except BROKEN_NPZ as error:
        raise _broken(path, "npz", error) from error
    return _columns(columns, path, "an npz with")


def _map_member(path: Path, name: str, map_above: int) -> NDArray[Any] | None:
    """Map an array within an npz, if it is not packed and large enough."""
    with zipfile.ZipFile(path) as archive:
        info = next((member for member in check_members(archive) if member.filename == name), None)
    if info is None or info.compress_type != zipfile.ZIP_STORED or info.file_size <= map_above:
        return None
    with path.open("rb") as handle:
        handle.seek(info.header_offset)
        local = handle.read(30)
        start = (
            info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        )
        handle.seek(start)
        shape, fortran, dtype = read_header(handle)
        offset = handle.tell()
    if offset - start + dtype.itemsize * math.prod(shape) != info.file_size:
        raise ValueError(f"{name} is cut short")
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")


def _read_hdf5(path: Path, map_above: int) -> Columns:
    import h5py

    columns: dict[str, Any] = {}
    try:
        with h5py.File(path, "r") as file:
            check_hdf5(file)
            for name in ("ids", "speakers", "vectors"):
                if name in file:
                    columns[name] = _read_dataset(file[name], path, map_above if name == "vectors" else None)
    except BROKEN_HDF5 as error:
        if isinstance(error, DataError):
            raise DataError(error.text, file=path, remedy=error.remedy) from error
        raise _broken(path, "HDF5", error) from error
    return _columns(columns, path, "an HDF5 file with the datasets")


def _read_dataset(dataset: Any, path: Path, map_above: int | None) -> NDArray[Any]:
    if not hasattr(dataset, "shape") or dataset.shape is None:
        raise ValueError(f"{dataset.name} is no array")
    if is_text(dataset):
        return read_text(dataset)
    if dataset.dtype.kind not in "fiub":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, expected numbers or text")
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    offset = dataset.id.get_offset()
    whole = dataset.chunks is None and offset is not None and dataset.id.get_storage_size() == size
    if map_above is not None and size > map_above and whole and dataset.dtype.kind == "f" and is_as_in_memory(dataset):
        return np.memmap(path, dataset.dtype, "r", offset, dataset.shape)
    check_memory(size, str(dataset.name))
    return dataset[()]


def _read_pickle(path: Path, allow_pickle: bool) -> Columns:
    if not allow_pickle:
        raise DataError(
            "is a pickle, a format that can carry programs",
            file=path,
            remedy="--allow-pickle reads it without running what it says; or write npz",
        )
    from spkbase.files import read_pickle

    content = read_pickle(path)
    shape = "expected {speaker: [vector, ...]} or {speaker: [(utterance, vector), ...]}"
    if not isinstance(content, dict) or not content:
        raise DataError(f"{shape}, got {type(content).__name__}", file=path)
    ids: list[str] = []
    speakers: list[str] = []
    vectors: list[Any] = []
    held = 0
    for speaker, entries in content.items():
        if not isinstance(speaker, (str, int)) or not isinstance(entries, (list, tuple, np.ndarray)):
            raise DataError(f"{shape}, got {type(entries).__name__} for {speaker!r:.60}", file=path)
        for number, entry in enumerate(entries, 1):
            pair = isinstance(entry, (tuple, list)) and len(entry) == 2 and isinstance(entry[0], (str, int))
            utterance, vector = entry if pair else (f"{speaker}#{number}", entry)
            if not isinstance(vector, np.ndarray) or vector.dtype.kind != "f":
                raise DataError(f"{shape}, got {type(vector).__name__} for {utterance!r:.60}", file=path)
            ids.append(str(utterance))
            speakers.append(str(speaker))
            vectors.append(vector.reshape(-1) if vector.ndim != 1 and max(vector.shape) == vector.size else vector)
            held += vector.nbytes + 1
            if held > 4 * path.stat().st_size:  # one thing named many times
                raise DataError("holds more vectors than its size allows", file=path, remedy="do not trust this file")
    return ids, speakers, _stacked(ids, vectors, path)


def _stacked(ids: Sequence[str], vectors: Sequence[NDArray[Any]], path: Path) -> NDArray[np.floating]:
    """Put vectors under each other."""
    if not vectors:
        raise DataError("expected embeddings, got none", file=path, remedy="write it again")
    first = vectors[0].shape
    for utterance, vector in zip(ids, vectors, strict=True):
        if vector.ndim != 1 or vector.shape != first:
            got = f"{first} for {ids[0]} and {vector.shape} for {utterance}"
            text = f"expected vectors of as many dimensions each, got {got}"
            raise DataError(text, file=path, remedy="use one extractor for all")
    return np.stack(vectors)


def _columns(columns: dict[str, Any], path: Path, what: str) -> Columns:
    missing = [name for name in ("ids", "vectors") if name not in columns]
    if missing:
        raise DataError(f"expected {what} ids, speakers and vectors; {' and '.join(missing)} not there", file=path)
    vectors = columns["vectors"]
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(f"expected vectors (n, D) of floats, got {vectors.dtype} of shape {vectors.shape}", file=path)
    return _text(columns, "ids", path), _text(columns, "speakers", path) if "speakers" in columns else None, vectors


def _text(columns: dict[str, Any], name: str, path: Path) -> list[str]:
    column = np.asarray(columns[name])
    if column.ndim != 1 or column.dtype.kind not in "USO":
        raise DataError(f"expected {name} of text, got {column.dtype} of shape {column.shape}", file=path)
    try:
        return [value.decode("utf-8") if isinstance(value, bytes) else str(value) for value in column.tolist()]
    except UnicodeDecodeError as error:
        raise DataError(f"{name} holds an id that is not UTF-8: {error.object!r:.60}", file=path) from error


def _mapped(ids: Sequence[str], speakers: Path, path: Path) -> list[str]:
    """Look the speakers of ids up in a map."""
    table = read_speakers(speakers)
    absent = [utterance for utterance in ids if utterance not in table]
    if absent:
        text = f"{len(absent)} of {len(ids)} utterances of {path} without a speaker: {few(absent)}"
        raise DataError(text, file=speakers, remedy="the map must name the speaker of each")
    return [table[utterance] for utterance in ids]


def _broken(path: Path, kind: str, error: BaseException) -> DataError:
    if "Python objects" in str(error):
        text = "holds Python objects, which are never read: they can carry programs"
        return DataError(text, file=path, remedy="write ids and speakers as text: numpy.array(ids, str)")
    reason = (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)).splitlines()
    text = f"cannot be read as {kind}: {reason[0] if reason else type(error).__name__}"
    return DataError(text, file=path, remedy="it may be truncated: copy or write it again")
