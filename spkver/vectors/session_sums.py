"""Statistics that are worked out when they are asked for: sums over the sessions of models, sessions less factors.

Nothing is held but counts and factors, so the statistics of all sessions may lie in a file.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import ComputedRows, Rows
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.mixture import Statistics
from spkver.vectors.supervectors import sessions_of_models

_SESSIONS = 256  # read together
_ROWS = 64  # whose shifts are in memory together


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
