"""Enrolment vectors by model: what every scorer takes, whatever the number of sessions of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import factorise
from spkbase.errors import DataError, few


@dataclass(frozen=True, eq=False, repr=False)
class Sessions:
    """Vectors and the model, or the speaker, that each belongs to.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (N, R)
        Finite.
    models : ndarray of int64 of shape (N,)
        Codes 0 to M - 1, in any order; each has a vector.

    Raises
    ------
    DataError
        If shapes disagree, a vector is not finite, there is none, or a code is out of its range or without a vector.

    Examples
    --------
    >>> sessions = Sessions([[1.0, 0.0], [3.0, 2.0], [0.0, 1.0]], [1, 1, 0])
    >>> sessions
    Sessions(3 vectors of 2 models, 2 dimensions)
    >>> sessions.counts, sessions.sums.tolist(), sessions.means.tolist()
    (array([1, 2]), [[0.0, 1.0], [4.0, 2.0]], [[0.0, 1.0], [2.0, 1.0]])
    """

    vectors: NDArray[np.float64]
    models: NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", checked_vectors(self.vectors, "enrolled vectors"))
        codes = np.asarray(self.models)
        if codes.shape != (len(self.vectors),) or codes.dtype.kind not in "iu":
            raise DataError(
                f"expected a whole number for each of {len(self.vectors)} vectors, the code of its model, got "
                f"{codes.dtype} of shape {codes.shape}"
            )
        codes = codes.astype(np.int64)
        if codes.min() < 0 or codes.max() >= len(codes):
            raise DataError(
                f"expected codes of models from 0 without gaps, got {codes.min()} to {codes.max()} for "
                f"{len(codes)} vectors"
            )
        object.__setattr__(self, "models", codes)
        empty = np.flatnonzero(self.counts == 0)
        if empty.size:
            raise DataError(
                f"expected at least one vector for each model, none for those of code {few(empty.tolist())}"
            )

    @classmethod
    def named(cls, vectors: NDArray, names: Sequence[str] | Sequence[int] | NDArray) -> tuple[Sessions, NDArray]:
        """Return the sessions of models that are known by names, and the sorted names: code m is names[m]."""
        column = np.asarray(names)
        if column.ndim != 1 or len(column) != len(vectors):
            raise DataError(f"expected a name for each of {len(vectors)} vectors, got shape {column.shape}")
        if column.dtype.kind in "iu":
            distinct, codes = np.unique(column, return_inverse=True)
        else:
            distinct, codes = factorise(np.asarray(names, object))
        return cls(vectors, codes), distinct

    def __repr__(self) -> str:
        return f"Sessions({len(self.vectors)} vectors of {len(self.counts)} models, {self.dimension} dimensions)"

    @property
    def dimension(self) -> int:
        """R."""
        return self.vectors.shape[1]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of vectors of each model, shape (M,)."""
        return np.bincount(self.models)

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """Sum of the vectors of each model, shape (M, R), in the order in which they stand."""
        order = np.argsort(self.models, kind="stable")
        starts = np.cumsum(self.counts) - self.counts
        return np.add.reduceat(self.vectors[order], starts, axis=0)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of the vectors of each model, shape (M, R)."""
        return self.sums / self.counts[:, None]


def checked_vectors(vectors: NDArray[np.floating], what: str, dimension: int | None = None) -> NDArray[np.float64]:
    """Return vectors in float64.

    Raises
    ------
    DataError
        If there is none, they are no rows of numbers, have not `dimension` columns, or one is not finite.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.size:
        raise DataError(f"expected {what} as rows of numbers, got {array.dtype} of shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise DataError(
            f"expected {what} of {dimension} dimensions, got {array.shape[1]}",
            remedy="use vectors of one extractor and one chain throughout",
        )
    array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise DataError(
            f"{bad.size} of {len(array)} {what} hold NaN or infinity: rows {few(bad.tolist())}",
            remedy="extract them anew, or leave them out",
        )
    return array
