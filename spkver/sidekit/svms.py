"""SIDEKIT's SVM files: a gzip'ed pickle of (w, b), read only on demand and without running what it says; and written.

A pickle is a program. This one is read by `spkbase.plain_pickle`, which admits plain data and runs nothing.
"""

from __future__ import annotations

import gzip
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import atomic_path
from spkbase.plain_pickle import load_plain

_FLOATS = {"f4": 4, "f8": 8}


def read_svm(path: str | Path, *, allow_pickle: bool = False) -> tuple[NDArray[np.float64], float]:
    """Read an SVM that SIDEKIT wrote.

    Parameters
    ----------
    path : path
        File ``{model}.svm``.
    allow_pickle : bool
        Must be true: says that the caller knows that the file is a pickle. It is read by a restricted reader, which
        admits arrays of floats and floats only.

    Returns
    -------
    w : ndarray of float64 of shape (D,)
        Weights.
    b : float
        Offset: the score of x is ``w @ x + b``, positive for the target.

    Raises
    ------
    DataError
        If pickles were not allowed, or the file is missing, broken, or holds anything else.
    """
    if not allow_pickle:
        raise DataError(
            "is a pickle, a format that can carry programs",
            file=path,
            remedy="pass allow_pickle=True to read it with a reader that admits arrays of floats only",
        )
    try:
        raw = gzip.decompress(Path(path).read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read as gzip: {error}", file=path, remedy="copy or write it again") from error
    try:
        weights, offset = load_plain(raw)
        if not isinstance(weights, np.ndarray) or not isinstance(offset, float | np.ndarray):
            raise TypeError("expected an array and a float")
        array, offset = _floats(weights), float(_floats(np.asarray(offset)).reshape(()))
        w = array.squeeze()
        if w.ndim != 1 or not np.isfinite(w).all() or not np.isfinite(offset):
            raise ValueError(f"expected a finite vector and a finite float, found {array.shape} and {offset}")
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(f"is not an SVM of SIDEKIT: {error}", file=path, remedy="write it again") from error
    return w, offset


def write_svm(path: str | Path, weights: NDArray[Any], offset: float) -> None:
    """Write an SVM as SIDEKIT does: what is written holds arrays and a float alone, and SIDEKIT unpickles it.

    Parameters
    ----------
    path : path
        File ``{model}.svm``; its folder is there.
    weights : ndarray of shape (D,)
    offset : float
        Of the score ``w @ x + b``.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    w, b = np.asarray(weights, np.float64), float(offset)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all() or not np.isfinite(b):
        raise DataError(f"expected a vector of finite weights and a finite offset, got {w.shape} and {b}", file=path)
    # protocol 3 is the newest that names modules in plain lines: NumPy 2's name of its core is one that the NumPy
    # which SIDEKIT runs under does not know
    raw = pickle.dumps((w[:, None], b), protocol=3).replace(b"cnumpy._core.", b"cnumpy.core.", 1)
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(raw, mtime=0))


def _floats(array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise TypeError(f"an array of {array.dtype.str[1:]!r}, expected floats")
    return array.astype(np.float64)
