"""SIDEKIT's SVM files: a gzip'ed pickle of (w, b), opened only on demand and without running what it says.

A pickle is a program. This one is run with stand-ins for the few names that an array of floats needs; any other name
is an error, and no code of numpy sees the file's contents before they were checked.
"""

from __future__ import annotations

import io
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import check_pickle, unpack_gzip

_MAX_BYTES = 1 << 28
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
    w : array (D,) of float64
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
        raw = unpack_gzip(Path(path).read_bytes(), _MAX_BYTES)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(f"cannot be read as gzip: {error}", file=path, remedy="copy or write it again") from error
    try:
        check_pickle(raw)
        weights, offset = _FloatsUnpickler(io.BytesIO(raw)).load()
        array = weights.array() if isinstance(weights, _Array) else None
        if array is None or not isinstance(offset, (float, _Array)):
            raise TypeError("expected an array and a float")
        offset = float(offset.array().reshape(())) if isinstance(offset, _Array) else offset
        w = array.squeeze()
        if w.ndim != 1 or not np.isfinite(w).all() or not np.isfinite(offset):
            raise ValueError(f"expected a finite vector and a finite float, found {array.shape} and {offset}")
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(f"is not an SVM of SIDEKIT: {error}", file=path, remedy="write it again") from error
    return w, offset


class _DType:
    """Stands for numpy.dtype."""

    def __init__(self, name: str, *_: object) -> None:
        if name.lstrip("<=>") not in _FLOATS:
            raise pickle.UnpicklingError(f"an array of {name!r}, expected floats")
        self.name, self.order = name.lstrip("<=>"), "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = ">" if state[1] == ">" else "<"

    def floats(self, raw: bytes) -> NDArray[np.float64]:
        return np.frombuffer(raw, dtype=f"{self.order}{self.name}").astype(np.float64)


class _Array:
    """Stands for numpy.ndarray."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> NDArray[np.float64]:
        _, shape, dtype, is_fortran, raw = self.state
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array without floats")
        return dtype.floats(raw).reshape(shape, order="F" if is_fortran else "C")


def _reconstruct(*_: object) -> _Array:
    return _Array()


def _from_buffer(raw: bytes | bytearray, dtype: _DType, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.state = (1, shape, dtype, order == "F", bytes(raw))
    return array


def _scalar(dtype: _DType, raw: bytes) -> float:
    return float(dtype.floats(raw)[0])


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r} is not admitted")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class _FloatsUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted") from None
