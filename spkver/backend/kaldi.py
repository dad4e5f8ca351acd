"""Kaldi's PLDA, in which both covariances are diagonal: conversion from ours, scores, adaptation, and Kaldi's files.

    u = A (x - m)        within speakers N(0, I), between them N(0, diag(psi))

Kaldi's backend has binary and text files: a PLDA, matrices, vectors (``lda.mat``, ``transform.mat``, ``mean.vec``).
Binary files are little-endian; ``\4`` is the number of bytes of the size that follows:

    plda        \0B <Plda> _ mean transform psi </Plda> _      each as below, without its own \0B
    vector      \0B DV _ \4 n values                           FV: float32
    matrix      \0B DM _ \4 rows \4 columns values             row by row; FM: float32
    text        <Plda> [ mean ] [ transform ] [ psi ] </Plda>  or numbers between brackets alone

and, in HDF5, the transform of VBx: ``mean1`` (R,), ``lda`` (R, K), ``mean2`` (K,).

References
----------
S. Ioffe, "Probabilistic linear discriminant analysis", ECCV 2006.
D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import read_binary, read_text_matrix
from spkbase.arrays import Floats
from spkbase.errors import ConfigError, DataError, counted, errors_of
from spkbase.files import read_bytes, write_bytes
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend.plda import (
    Plda,
    Sessions,
    check_finite,
    checked_vectors,
    enrolled,
    lower_factor,
    ratio_rows,
)
from spkver.backend.scoring import pair_products
from spkver.sidekit import open_hdf5, read_array

LENGTHS = ("kaldi", "simple", "none")
_SINGULAR = 1e-12  # a transform is singular if its least singular value is below this fraction of the largest

_BINARY = b"\0B"
_OPENING = b"<Plda>"
_CLOSING = b"</Plda>"
_WHITE = b" \t\r\n"
_REMEDY = "it is cut short or of another kind: copy or write it again"


@one_line
@dataclass(frozen=True, eq=False)
class KaldiPlda:
    """A PLDA in Kaldi's form.

    Attributes
    ----------
    mean : ndarray of shape (R,)
        Mean m.
    transform : ndarray of shape (R, R)
        Matrix A, not singular.
    psi : ndarray of shape (R,)
        Variances between speakers, 0 or more.

    Raises
    ------
    DataError
        If shapes disagree, a number is not finite, A is singular, or a variance is negative.
    """

    mean: Floats
    transform: Floats
    psi: Floats

    def __post_init__(self) -> None:
        dimension = np.size(self.mean)
        check_finite(self, mean=(dimension,), transform=(dimension, dimension), psi=(dimension,))
        with one_blas_thread():
            values = np.linalg.svd(self.transform, compute_uv=False)
        if not values[-1] > _SINGULAR * values[0]:
            raise DataError(
                "the transform of a PLDA is singular", remedy="train it again, on more vectors"
            )
        if self.psi.min() < 0:
            raise DataError(
                f"psi of a PLDA should be 0 or more, not {self.psi.min():.6g}",
                remedy="train it again",
            )

    @property
    def dimension(self) -> int:
        """Dimension R of the vectors."""
        return len(self.mean)


class VbxTransform(NamedTuple):
    """Centring and LDA between two length norms, u((u(x - mean1)) lda - mean2), as stored by VBx with its PLDA.

    Attributes
    ----------
    mean1 : ndarray of shape (R,)
    lda : ndarray of shape (R, K)
    mean2 : ndarray of shape (K,)
    """

    mean1: Floats
    lda: Floats
    mean2: Floats


def diagonalised(mean: Floats, within: Floats, between: Floats) -> KaldiPlda:
    """Return the transform that makes W the identity and B diagonal, the largest variance between speakers first.

        A = U' L^-1,  L L' = W,  L^-1 B L^-T = U diag(psi) U'

    Parameters
    ----------
    mean : ndarray of shape (R,)
    within : ndarray of shape (R, R)
        W, positive definite.
    between : ndarray of shape (R, R)
        B.
    """
    whitening = np.linalg.inv(lower_factor(within))
    projected = whitening @ between @ whitening.T
    psi, directions = np.linalg.eigh((projected + projected.T) / 2)
    return KaldiPlda(mean, directions[:, ::-1].T @ whitening, np.maximum(psi[::-1], 0))


def plda_to_kaldi(plda: Plda) -> KaldiPlda:
    """Return the same model in Kaldi's form: scores are equal, eigenchannels are kept only through their covariance."""
    with one_blas_thread():
        return diagonalised(plda.mean, plda.within, plda.between)


def plda_from_kaldi(plda: KaldiPlda) -> Plda:
    """Return the same model as x = m + F y + e: F = A^-1 diag(psi)^(1/2), S = A^-1 A^-T."""
    with one_blas_thread():
        inverse = np.asarray(np.linalg.inv(plda.transform), np.float64)
        used = plda.psi > 0
        loadings: Floats = inverse[:, used] * np.sqrt(plda.psi[used])
        return Plda(plda.mean, loadings, inverse @ inverse.T)


def length_normalised(transformed: Floats, psi: Floats, counts: NDArray[Any]) -> NDArray[Any]:
    """Return u sqrt(R / sum_r u_r^2 / (psi_r + 1/n)), which has the expected length of a mean of n vectors.

    Parameters
    ----------
    transformed : ndarray of shape (N, R)
        u.
    psi : ndarray of shape (R,)
    counts : ndarray of shape (N,)
        n.
    """
    squares = (transformed**2 / (psi + 1 / counts[:, None])).sum(axis=1)
    scaled: NDArray[Any] = transformed * np.sqrt(len(psi) / squares)[:, None]
    return scaled


def kaldi_plda_scores(
    plda: KaldiPlda,
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    sessions_as: str = "all",
    length: str = "kaldi",
) -> Floats:
    """Return the log-likelihood ratio of each trial as Kaldi computes it.

    A model is the mean of its n vectors; it is transformed, scaled to length, and counts as n vectors.

    Parameters
    ----------
    plda : KaldiPlda
    sessions : Sessions
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
    sessions_as : str
        "all": the mean counts as n vectors; "mean": it counts as one vector.
    length : str
        Length of vectors: "kaldi", see `length_normalised`; "simple", sqrt(R) for all; "none", unchanged, which gives
        the exact ratio of `plda_scores`.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Log-likelihood ratios in nat.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or has no length, or a code is out of its range.
    """
    if length not in LENGTHS:
        raise ConfigError(f"length is {length!r}: expected one of {', '.join(LENGTHS)}")
    vectors, counts = enrolled(sessions, plda.dimension, sessions_as)
    tests = checked_vectors(tests, "tested vectors", plda.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sides = []
        for rows, numbers in ((vectors, counts), (tests, np.ones(len(tests)))):
            transformed = (rows - plda.mean) @ plda.transform.T
            if length != "none" and not transformed.any(axis=1).all():
                flat = int((~transformed.any(axis=1)).sum())
                text = (
                    f"{counted(flat, 'vector')} equal to the mean of the PLDA, so without a length"
                )
                raise DataError(text, remedy="leave them out")
            if length == "kaldi":
                transformed = length_normalised(transformed, plda.psi, numbers)
            elif length == "simple":
                transformed = length_normalised(
                    transformed, np.zeros(plda.dimension), np.ones(len(rows))
                )
            sides.append(transformed * np.sqrt(plda.psi))
        return pair_products(
            *ratio_rows(plda.psi, sides[0] * counts[:, None], counts, sides[1]), models, segments
        )


def adapt_plda_unsupervised(
    plda: KaldiPlda,
    vectors: NDArray[Any],
    *,
    mean_scale: float = 1.0,
    within_scale: float = 0.3,
    between_scale: float = 0.7,
) -> KaldiPlda:
    """Return a PLDA that explains the variance of unlabelled vectors of another domain, as Kaldi does.

    The mean becomes that of the vectors. In the space where the model's total covariance is the identity, each
    principal direction of the vectors with a variance s above 1 gives (s - 1) times `within_scale` to the variance
    within speakers and (s - 1) times `between_scale` to that between them; directions with less variance do not change.

    Parameters
    ----------
    plda : KaldiPlda
    vectors : ndarray of shape (N, R)
        Vectors of any speakers.
    mean_scale : float
        Share of the squared difference of the means that counts as variance.
    within_scale, between_scale : float
        Shares of the unexplained variance that are attributed to within and between speakers; the defaults are Kaldi's.

    Returns
    -------
    KaldiPlda

    Raises
    ------
    DataError
        If dimensions differ, or a vector is not finite.
    """
    vectors = checked_vectors(vectors, "vectors of the other domain", plda.dimension)
    with one_blas_thread():
        mean = vectors.mean(axis=0)
        centred = vectors - mean
        shift = mean - plda.mean
        variance = centred.T @ centred / len(vectors) + mean_scale * np.outer(shift, shift)
        total = plda.transform / np.sqrt(1 + plda.psi)[:, None]
        values, directions = np.linalg.eigh(total @ variance @ total.T)
        excess = np.maximum(values - 1, 0)
        back = np.linalg.inv(total) @ directions

        def enlarged(own: Floats, scale: float) -> Floats:
            adapted = (directions.T * own) @ directions + np.diag(scale * excess)
            return np.asarray(back @ adapted @ back.T)

        within = enlarged(1 / (1 + plda.psi), within_scale)
        between = enlarged(plda.psi / (1 + plda.psi), between_scale)
        return diagonalised(mean, within, between)


def read_kaldi_matrix(path: str | Path) -> Floats:
    """Read a file that holds one vector or matrix, binary or text.

    Returns
    -------
    ndarray of float64 of shape (n,) or (rows, columns)
        The array; Kaldi's transforms are (K, R), y = T x, or (K, R + 1) with the offset in the last column.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, has data after the numbers, or a number is not finite.
    """
    with _opened(path) as (raw, binary):
        matrix, end = _read_array(raw, binary)
        if raw[end:].strip(_WHITE):
            raise ValueError("something follows the numbers")
        return matrix


def read_kaldi_plda(path: str | Path) -> KaldiPlda:
    """Read a PLDA in Kaldi's format, binary or text.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, sizes do not agree, or a number is out of its range.
    """
    with _opened(path) as (raw, binary):
        opening = raw.lstrip(_WHITE)
        if not opening.startswith(_OPENING):
            raise ValueError(f"it begins with {raw[:12]!r}, not with <Plda>")
        parts = []
        rest = opening[len(_OPENING) :]
        for _ in range(3):
            rest = rest.lstrip(_WHITE)
            part, end = _read_array(rest, binary)
            parts.append(part)
            rest = rest[end:]
        if rest.strip(_WHITE) != _CLOSING:
            raise ValueError("it does not end with </Plda>")
        return KaldiPlda(*parts)


def write_kaldi_plda(path: str | Path, plda: KaldiPlda, *, binary: bool = True) -> None:
    """Write a PLDA as Kaldi does, in float64: binary, or as text with all digits.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    parts = [_formatted(part, binary) for part in (plda.mean, plda.transform, plda.psi)]
    opening = _OPENING
    if binary:
        opening = _BINARY + _OPENING
    write_bytes(path, b"".join([opening, b" ", *parts, _CLOSING, b" "]))


def read_vbx_transform(path: str | Path) -> VbxTransform:
    """Read a ``transform.h5`` of VBx.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a number is not finite.
    """
    with open_hdf5(path) as file:
        mean1, mean2 = (read_array(file, name, shape=(None,)) for name in ("mean1", "mean2"))
        lda = read_array(file, "lda", shape=(len(mean1), len(mean2)))
        if not all(np.isfinite(array).all() for array in (mean1, lda, mean2)):
            raise DataError("the transform holds NaN or infinity", remedy="train it again")
        return VbxTransform(*(array.astype(np.float64) for array in (mean1, lda, mean2)))


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[bytes, bool]]:
    """Read a file without its binary mark; any failure becomes one error that names the file."""
    raw = read_bytes(path)
    try:
        with errors_of(path):
            yield raw.removeprefix(_BINARY), raw.startswith(_BINARY)
    except DataError:
        raise
    except (ValueError, struct.error) as error:
        raise DataError(
            f"is not such a file of Kaldi: {error}", file=path, remedy=_REMEDY
        ) from error


def _read_array(raw: bytes, binary: bool) -> tuple[Floats, int]:
    if binary:
        array, end = read_binary(raw)
    else:
        array, end = read_text_matrix(raw, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        raise ValueError("an array without numbers, or with NaN or infinity")
    return array.astype(np.float64), end


def _formatted(array: Floats, binary: bool) -> bytes:
    if binary:
        mark = b"DV " if array.ndim == 1 else b"DM "
        sizes = b"".join(struct.pack("<BI", 4, size) for size in array.shape)
        return mark + sizes + np.ascontiguousarray(array, "<f8").tobytes()
    if array.ndim == 1:
        return f" [ {' '.join(map(repr, array.tolist()))} ]\n".encode()
    rows = "".join(f"\n  {' '.join(map(repr, row))}" for row in array.tolist())
    return f" [{rows} ]\n".encode()
