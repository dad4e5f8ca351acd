r"""Files of Kaldi's backend, binary and text: a PLDA, matrices, vectors (``lda.mat``, ``transform.mat``, ``mean.vec``).

In little endian, ``\4`` the bytes of the size that follows,

    plda        \0B <Plda> _ mean transform psi </Plda> _      each as below, without its own \0B
    vector      \0B DV _ \4 n values                           FV: float32
    matrix      \0B DM _ \4 rows \4 columns values             row by row; FM: float32
    text        <Plda> [ mean ] [ transform ] [ psi ] </Plda>  or numbers between brackets alone

and, in HDF5, the transform of VBx: ``mean1`` (R,), ``lda`` (R, K), ``mean2`` (K,).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, read_binary, read_text_matrix, row_norms
from spkbase.errors import DataError
from spkbase.files import write_arrays, write_bytes
from spkbase.showing import one_line
from spkver.backend.kaldi_plda import KaldiPlda
from spkver.backend.sessions import checked_vectors
from spkver.sidekit import open_hdf5, read_array

_BINARY = b"\0B"
_OPENING, _CLOSING = b"<Plda>", b"</Plda>"
_WHITE = b" \t\r\n"
_REMEDY = "it is cut short or of another kind: copy or write it again"


@one_line
@dataclass(frozen=True, eq=False)
class VbxTransform:
    """Centring and LDA between two length norms, as VBx keeps them beside its PLDA.

    Attributes
    ----------
    mean1 : ndarray of shape (R,)
    lda : ndarray of shape (R, K)
    mean2 : ndarray of shape (K,)

    Raises
    ------
    DataError
        If shapes disagree, or a number is not finite.
    """

    mean1: NDArray[np.float64]
    lda: NDArray[np.float64]
    mean2: NDArray[np.float64]

    def __post_init__(self) -> None:
        parts = {name: np.asarray(getattr(self, name), np.float64) for name in ("mean1", "lda", "mean2")}
        shapes = [part.shape for part in parts.values()]
        if parts["lda"].ndim != 2 or not parts["lda"].size or shapes != [shapes[1][:1], shapes[1], shapes[1][1:]]:
            raise DataError(f"expected mean1 (R,), lda (R, K) and mean2 (K,), got {', '.join(map(str, shapes))}")
        for name, part in parts.items():
            if not np.isfinite(part).all():
                raise DataError(f"{name} of a transform holds NaN or infinity")
            object.__setattr__(self, name, part)

    def apply(self, vectors: NDArray) -> NDArray[np.float64]:
        """Return u((u(x - mean1)) lda - mean2), of shape (N, K), where u scales to length 1.

        Raises
        ------
        DataError
            If vectors have not R dimensions, are not finite, or one has no length where it is scaled.
        """
        centred = checked_vectors(vectors, "vectors", len(self.mean1)) - self.mean1
        return _unit(_unit(centred) @ self.lda - self.mean2)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = row_norms(vectors)
    check_norms(norms, np.array([f"row {row}" for row in range(len(vectors))], object))
    return vectors / norms[:, None]


def read_kaldi_matrix(path: str | Path) -> NDArray[np.float64]:
    """Read a file that holds one vector or matrix, binary or text.

    Returns
    -------
    ndarray of float64 of shape (n,) or (rows, columns)
        A transform of Kaldi's is (K, R), y = T x, or (K, R + 1) with the offset in the last column.

    Raises
    ------
    DataError
        If the file is missing, cut short, of another kind, goes on behind the numbers, or a number is not finite.
    """
    with _opened(path) as (handle, binary):
        matrix = _read_array(handle, binary)
        if handle.read().strip(_WHITE):
            raise ValueError("something follows the numbers")
        return matrix


def write_kaldi_matrix(path: str | Path, matrix: NDArray, *, binary: bool = True) -> None:
    """Write a vector or a matrix as Kaldi does, in float64; as text with all digits where it is not to be binary.

    Raises
    ------
    DataError
        If it is neither a vector nor a matrix of finite numbers, or the file cannot be written.
    """
    array = np.asarray(matrix, np.float64)
    if array.ndim not in (1, 2) or not array.size or not np.isfinite(array).all():
        raise DataError(f"expected a vector or a matrix of finite numbers, got shape {array.shape}", file=path)
    write_bytes(path, (_BINARY if binary else b"") + _formatted(array, binary))


def read_kaldi_plda(path: str | Path) -> KaldiPlda:
    """Read a PLDA of Kaldi's, binary or text.

    Raises
    ------
    DataError
        If the file is missing, cut short, of another kind, sizes do not agree, or a number is not what it should be.
    """
    with _opened(path) as (handle, binary):
        start = handle.read(64)
        opening = start.lstrip(_WHITE)
        if not opening.startswith(_OPENING):
            raise ValueError(f"it begins with {start[:12]!r}, not with <Plda>")
        handle.seek(handle.tell() - len(opening) + len(_OPENING))
        parts = []
        for _ in range(3):
            while (blank := handle.read(1)) and blank in _WHITE:
                pass
            handle.seek(handle.tell() - len(blank))
            parts.append(_read_array(handle, binary))
        if handle.read().strip(_WHITE) != _CLOSING:
            raise ValueError("it does not end with </Plda>")
        return KaldiPlda(*parts)


def write_kaldi_plda(path: str | Path, plda: KaldiPlda, *, binary: bool = True) -> None:
    """Write a PLDA as Kaldi does, in float64; as text with all digits where it is not to be binary.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    parts = [_formatted(part, binary) for part in (plda.mean, plda.transform, plda.psi)]
    write_bytes(path, b"".join([_BINARY if binary else b"", _OPENING + b" ", *parts, _CLOSING + b" "]))


def read_vbx_transform(path: str | Path) -> VbxTransform:
    """Read a ``transform.h5`` of VBx.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a number is not finite.
    """
    with open_hdf5(path) as file:
        mean1, mean2 = (read_array(file, name, shape=(None,)) for name in ("mean1", "mean2"))
        return VbxTransform(mean1, read_array(file, "lda", shape=(None, None)), mean2)


def write_vbx_transform(path: str | Path, transform: VbxTransform) -> None:
    """Write a ``transform.h5`` as VBx reads it."""
    write_arrays(path, {"mean1": transform.mean1, "lda": transform.lda, "mean2": transform.mean2})


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[BinaryIO, bool]]:
    """Open a file behind its binary mark; what is wrong with it becomes one error with its name."""
    try:
        with Path(path).open("rb") as handle:
            binary = handle.read(len(_BINARY)) == _BINARY
            if not binary:
                handle.seek(0)
            yield handle, binary
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from None
    except (ValueError, struct.error) as error:
        raise DataError(f"is no such file of Kaldi: {error}", file=path, remedy=_REMEDY) from error


def _read_array(handle: BinaryIO, binary: bool) -> NDArray[np.float64]:
    array = read_binary(handle) if binary else read_text_matrix(handle, np.float64)
    if not array.size:
        raise ValueError("an array without numbers")
    if not np.isfinite(array).all():
        raise ValueError("a number is NaN or infinite")
    return array.astype(np.float64)


def _formatted(array: NDArray[np.float64], binary: bool) -> bytes:
    if binary:
        sizes = b"".join(struct.pack("<BI", 4, size) for size in array.shape)
        return (b"DV " if array.ndim == 1 else b"DM ") + sizes + np.ascontiguousarray(array, "<f8").tobytes()
    if array.ndim == 1:
        return f" [ {' '.join(map(repr, array.tolist()))} ]\n".encode()
    rows = "".join(f"\n  {' '.join(map(repr, row))}" for row in array.tolist())
    return f" [{rows} ]\n".encode()
