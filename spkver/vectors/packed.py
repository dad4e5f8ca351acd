"""Symmetric matrices packed: the lower triangles of many as rows of one array, factored where they stand.

A row has the order of LAPACK's *rectangular full packed* form [1]_ (TRANSR = N, UPLO = L): n (n + 1) / 2 numbers, half
of a matrix, and yet the routines run on blocks, as fast as those for whole matrices. `packed_places` says which entry
is where; sums, products with matrices and means of packed rows are those of the matrices.

LAPACK is called through SciPy's own pointers: SciPy's wrappers hold Python's lock, and threads would wait for it.

References
----------
.. [1] F. Gustavson, J. Wasniewski, J. Dongarra and J. Langou, "Rectangular full packed format for Cholesky's
   algorithm", ACM Trans. Mathematical Software 37(2), 2010.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PLAIN, _LOWER, _AS_IS = b"N", b"L", b"N"  # TRANSR, UPLO, TRANS
_ARGUMENTS = {"dpftrf": (2, 3), "dpftri": (2, 3), "dpftrs": (2, 6), "dsfrk": (3, 7)}  # letters, and addresses


def packed_length(rank: int) -> int:
    """Return the length of a packed row: rank (rank + 1) / 2."""
    return rank * (rank + 1) // 2


def rank_of(length: int) -> int:
    """Return the rank of matrices whose packed rows have this length.

    Examples
    --------
    >>> rank_of(packed_length(400))
    400
    """
    return int(np.sqrt(2 * length + 0.25))


@lru_cache(maxsize=8)
def packed_places(rank: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row and the column of each entry of a packed row, shape (rank (rank + 1) / 2,) both; row >= column.

    Examples
    --------
    >>> [places.tolist() for places in packed_places(2)]
    [[1, 0, 1], [1, 0, 0]]
    """
    from scipy.linalg.lapack import dtrttf

    numbers = np.arange(float(rank * rank)).reshape(rank, rank)
    order = dtrttf(numbers, transr="N", uplo="L")[0].astype(np.int64)
    places = order // rank, order % rank
    for array in places:
        array.setflags(write=False)
    return places


def pack(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangles of matrices (..., R, R) as packed rows (..., R (R + 1) / 2)."""
    rows, columns = packed_places(matrices.shape[-1])
    return np.ascontiguousarray(matrices[..., rows, columns])


def unpack(packed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the symmetric matrices (..., R, R) of packed rows (..., R (R + 1) / 2).

    Examples
    --------
    >>> unpack(pack(np.array([[2.0, 1.0], [1.0, 3.0]]))).tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    rank = rank_of(packed.shape[-1])
    rows, columns = packed_places(rank)
    matrices = np.empty((*packed.shape[:-1], rank, rank))
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


@lru_cache(maxsize=8)
def diagonal_places(rank: int) -> NDArray[np.int64]:
    """Return where the diagonal stands in a packed row, shape (rank,), from the first entry to the last."""
    rows, columns = packed_places(rank)
    places = np.flatnonzero(rows == columns)
    places = places[np.argsort(rows[places])]
    places.setflags(write=False)
    return places


def squares(matrices: NDArray[np.float64], *, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return X' X of each matrix, packed.

    Parameters
    ----------
    matrices : ndarray of shape (n, D, R)
    out : ndarray of shape (n, R (R + 1) / 2), optional
        Where to put them.

    Returns
    -------
    ndarray of shape (n, R (R + 1) / 2)
    """
    n_matrices, depth, rank = matrices.shape
    packed = np.empty((n_matrices, packed_length(rank))) if out is None else out
    packed[:] = 0
    _add_squares(packed, np.ascontiguousarray(matrices, np.float64), rank, depth)
    return packed


def add_outer_products(packed: NDArray[np.float64], vectors: NDArray[np.float64]) -> None:
    """Add x x' of each vector (n, R) to its packed row (n, R (R + 1) / 2), in place."""
    _add_squares(packed, np.ascontiguousarray(vectors), vectors.shape[1], 1)


def _add_squares(packed: NDArray[np.float64], matrices: NDArray[np.float64], rank: int, depth: int) -> None:
    routine, sizes = _routine("dsfrk"), (ctypes.c_int(rank), ctypes.c_int(depth))
    factor = ctypes.c_double(1.0)
    alpha, n, k = _at(factor), _at(sizes[0]), _at(sizes[1])
    for target, source in zip(_rows(packed), _rows(matrices), strict=True):
        routine(_PLAIN, _LOWER, _AS_IS, n, k, alpha, source, n, alpha, target)


def factor(packed: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Replace each packed row (n, R (R + 1) / 2) by its Cholesky factor, in place.

    Returns
    -------
    ndarray of bool of shape (n,)
        Whether the matrix was positive definite; the rows of others are spoilt.
    """
    return _in_place("dpftrf", packed)


def invert(factors: NDArray[np.float64]) -> None:
    """Replace the Cholesky factors of matrices by the inverses of the matrices, in place; see `factor`."""
    _in_place("dpftri", factors)


def _in_place(name: str, packed: NDArray[np.float64]) -> NDArray[np.bool_]:
    routine, status = _routine(name), ctypes.c_int(0)
    rank = ctypes.c_int(rank_of(packed.shape[1]))
    good = np.empty(len(packed), bool)
    n, info = _at(rank), _at(status)
    for row, target in enumerate(_rows(packed)):
        routine(_PLAIN, _LOWER, n, target, info)
        good[row] = status.value == 0
    return good


def solve(factors: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    """Replace right-hand sides by the solutions for matrices whose Cholesky factors are given, in place.

    Parameters
    ----------
    factors : ndarray of shape (n, R (R + 1) / 2)
        See `factor`.
    right : ndarray of shape (n, R) or (n, m, R)
        One or m right-hand sides of each matrix.
    """
    routine, status = _routine("dpftrs"), ctypes.c_int(0)
    rank, sides = ctypes.c_int(right.shape[-1]), ctypes.c_int(right.shape[1] if right.ndim == 3 else 1)
    n, m, info = _at(rank), _at(sides), _at(status)
    for matrix, target in zip(_rows(factors), _rows(right), strict=True):
        routine(_PLAIN, _LOWER, n, m, matrix, target, n, info)


def log_determinants(factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the determinant of each matrix, shape (n,), from its Cholesky factor."""
    places = diagonal_places(rank_of(factors.shape[1]))
    return 2 * np.log(factors[:, places]).sum(axis=1)


def _rows(array: NDArray[np.float64]) -> range:
    """Address of each row of an array in C order."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise TypeError(f"expected float64 in C order, got {array.dtype} with strides {array.strides}")
    width = array.nbytes // len(array) if len(array) else 8
    begin = array.ctypes.data
    return range(begin, begin + len(array) * width, width)


def _at(value: Any) -> int:
    return ctypes.addressof(value)


@cache
def _routine(name: str) -> Callable[..., None]:
    """A routine of LAPACK that SciPy brings, called without Python's lock."""
    from scipy import LowLevelCallable
    from scipy.linalg import cython_lapack

    capsule = LowLevelCallable.from_cython(cython_lapack, name)
    signature = capsule.signature.encode()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsules: Any = cython_lapack.__pyx_capi__
    address = pointer(capsules[name], signature)
    n_letters, n_addresses = _ARGUMENTS[name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * n_letters, *[ctypes.c_void_p] * n_addresses)(address)
