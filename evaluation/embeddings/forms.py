"""The forms in which embeddings are kept: what tells each, and what reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluation.embeddings.arrays import read_hdf5_columns, read_npy_columns, read_npz_columns, read_safetensors
from evaluation.embeddings.columns import Columns, broken, stacked
from evaluation.embeddings.plain_data import columns_of_data
from evaluation.embeddings.tables import looks_like_text, read_table
from spkbase.errors import DataError
from spkbase.files import OLDER_TORCH, read_pickle, read_torch
from spkbase.showing import one_line

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
    import zipfile

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
    Form("npy", lambda path, head: head.startswith(b"\x93NUMPY"), lambda path, r: read_npy_columns(path, r.map_above)),
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
