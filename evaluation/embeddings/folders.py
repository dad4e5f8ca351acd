"""Embeddings in several files: folders, the cache of VoicePrivacy, and lists of ids beside an array.

A folder is one of

    vectors.npy, ids.npy, speakers.npy             an array (`evaluation.embeddings.arrays`)
    speaker_vectors.pt, id2idx, idx2spk            what VoicePrivacy 2024 and 2026 keep below `emb_xvect`; `id2idx` says
                                                   the row of each id, `idx2spk` the speaker of each row, as text or as
                                                   pickled dictionaries; the folder above (of `utt-level`) is taken too
    X.scp, or X.1.scp, X.2.scp, or *.ark           Kaldi's; an X.scp stands for its parts; means of speakers (`spk_*`)
                                                   only where there is nothing else
    files of one kind, *.npy, *.pt, *.npz, *.h5    an utterance each (its id is the file's name), or tables
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.embeddings.arrays import read_npy
from evaluation.embeddings.columns import IDS, SPEAKERS, VECTORS, Columns, texts
from spkbase.errors import DataError, few
from spkbase.files import read_id_list, read_pickle, read_text_bytes

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
        ids = texts(read_npy(companion, 1 << 62), "ids", companion)
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
