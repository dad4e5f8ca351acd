"""Statistics that are worked out when they are asked for: sums over the sessions of models, sessions less factors.

Nothing is held but counts and factors, so the statistics of all sessions may lie in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import ComputedRows, Rows, SelectedRows
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.mixture import Statistics

VECTORS = 32  # supervectors in one task and in one block of a file
_SESSIONS = 256  # read together
_ROWS = 64  # whose shifts are in memory together


@dataclass(frozen=True)
class SessionGroups:
    """Which rows of statistics make each supervector: one, or all sessions of a model.

    Attributes
    ----------
    models, segments : ndarray of str of shape (M,)
        Of each supervector.
    rows : ndarray of int64 of shape (N,)
        Rows of the statistics, those of a supervector together.
    ends : ndarray of int64 of shape (M + 1,)
        Where in `rows` those of each supervector end, after a 0.
    multisession : bool
        Whether supervectors are those of models.
    """

    models: NDArray
    segments: NDArray
    rows: NDArray[np.int64]
    ends: NDArray[np.int64]
    multisession: bool

    def blocks(self, statistics: Statistics, *, done: int = 0) -> Iterator[SessionBlock]:
        """Yield the statistics of the supervectors that are worked out together, block after block."""
        for start, stop in chunk_bounds(len(self.models), VECTORS)[done:]:
            rows = self.rows[self.ends[start] : self.ends[stop]]
            ends = self.ends[start : stop + 1] - self.ends[start]
            yield SessionBlock(SelectedRows(statistics.zeroth, rows), SelectedRows(statistics.first, rows), ends)


def sessions_of_models(statistics: Statistics) -> SessionGroups:
    """Return the rows of each model, in their order; models sorted by id."""
    models = np.array(sorted(set(statistics.models)), object)
    number = {model: row for row, model in enumerate(models)}
    owner = np.array([number[model] for model in statistics.models], np.int64)
    ends = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(models)))])
    return SessionGroups(models, models, np.argsort(owner, kind="stable"), ends, multisession=True)


@dataclass(frozen=True)
class SessionBlock:
    """Rows of statistics of some supervectors, read when they are summed; `ends` as in `SessionGroups`."""

    zeroth: SelectedRows
    first: SelectedRows
    ends: NDArray[np.int64]

    def of_groups(self) -> tuple[NDArray, NDArray]:
        """Return the zeroth (n, C) and first (n, C * D) statistics of each supervector: rows added in their order."""
        if len(self.zeroth) == len(self.ends) - 1:
            return np.asarray(self.zeroth), np.asarray(self.first)
        return self._sums(self.zeroth), self._sums(self.first)

    def _sums(self, rows: SelectedRows) -> NDArray:
        sums = []
        for start, stop in pairwise(self.ends):
            total = np.asarray(rows.part(start, start + 1))[0]
            for begin, end in chunk_bounds(stop - start - 1, VECTORS):
                for session in np.asarray(rows.part(start + 1 + begin, start + 1 + end)):
                    total += session
            sums.append(total)
        return np.stack(sums)


def summed_by_model(statistics: Statistics) -> Statistics:
    """Return the statistics of each model, those of its sessions added in float64; models sorted by id.

    Parameters
    ----------
    statistics : Statistics
        Of sessions; `models` says whose they are.

    Returns
    -------
    Statistics
        Models and segments are the same ids. First-order rows are summed when they are asked for.
    """
    groups = sessions_of_models(statistics)
    n_models = len(groups.models)

    def sums_of(array: Rows, models: NDArray[np.int64]) -> NDArray[np.float64]:
        sums = np.zeros((len(models), array.shape[1]))
        rows = [groups.rows[groups.ends[model] : groups.ends[model + 1]] for model in models]
        owners = np.repeat(np.arange(len(models)), [len(sessions) for sessions in rows])
        numbers = np.concatenate([*rows, np.empty(0, np.int64)])
        for start, stop in chunk_bounds(len(numbers), _SESSIONS):
            for owner, session in zip(owners[start:stop], np.asarray(array[numbers[start:stop]]), strict=True):
                sums[owner] += session
        return sums

    zeroth = sums_of(statistics.zeroth, np.arange(n_models))
    first = ComputedRows((n_models, statistics.first.shape[1]), lambda models: sums_of(statistics.first, models))
    return Statistics(groups.models, groups.models, zeroth, cast("Rows", first))


def without_factors(
    statistics: Statistics,
    loadings: NDArray[np.float64],
    vectors: NDArray[np.float64],
    owners: NDArray[np.int64] | None = None,
) -> Statistics:
    """Return statistics as if the mixture's means were moved back by each session's factors: f_c - n_c T_c h.

    Parameters
    ----------
    statistics : Statistics
        Of S sessions.
    loadings : ndarray of shape (C, D, R)
        T_c, not whitened.
    vectors : ndarray of shape (H, R)
        h.
    owners : ndarray of int64 of shape (S,), optional
        Which row of `vectors` is that of each session; by default they are one a session.

    Returns
    -------
    Statistics
        First-order rows are worked out when they are asked for, in float64.
    """
    n_components, dimension, rank = loadings.shape
    matrix = np.ascontiguousarray(loadings.reshape(-1, rank).T)
    zeroth = np.asarray(statistics.zeroth).astype(np.float64)
    whose = np.arange(len(statistics)) if owners is None else owners

    @one_blas_thread()
    def shifted(sessions: NDArray[np.int64]) -> NDArray[np.float64]:
        first = np.asarray(statistics.first[sessions]).astype(np.float64).reshape(-1, n_components, dimension)
        for start, stop in chunk_bounds(len(sessions), _ROWS):
            some = sessions[start:stop]
            used, rows = np.unique(whose[some], return_inverse=True)
            shifts = (vectors[used] @ matrix).reshape(-1, n_components, dimension)
            first[start:stop] -= zeroth[some][:, :, None] * shifts[rows]
        return first.reshape(len(sessions), -1)

    rows = cast("Rows", ComputedRows(statistics.first.shape, shifted))
    return Statistics(statistics.models, statistics.segments, zeroth, rows)
