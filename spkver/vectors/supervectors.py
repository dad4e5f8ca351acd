"""MAP adaptation of the means and the supervectors that they make.

References
----------
J.-L. Gauvain and C.-H. Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of Markov
chains", IEEE Trans. Speech and Audio Processing 2(2), 1994.
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006 (the normalisation by sqrt(w / v)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows
from spkbase.errors import ConfigError, DataError
from spkbase.files import fingerprint as digest_of
from spkbase.work import Device, chunk_bounds, ordered_map
from spkver.mixture import GaussianMixture, StatDraft, Statistics, open_stat_server
from spkver.vectors.products_device import adapted_means

_CHUNK = 32  # supervectors in one task and in one block of a file
_EPSILON = float(np.finfo(np.float32).eps)  # keeps a component without frames at the UBM's mean


@dataclass(frozen=True)
class MapConfig:
    """How models are adapted.

    Attributes
    ----------
    relevance : float
        Frames at which the data weigh as much as the prior.
    normalise : bool
        Scale supervectors by sqrt(weight / variance), so that their inner product bounds the divergence of the models.
    """

    relevance: float = 3.0
    normalise: bool = True

    def __post_init__(self) -> None:
        if not self.relevance >= 0:
            raise ConfigError(f"map.relevance is {self.relevance}: expected a number of at least 0")


@dataclass(frozen=True)
class Supervectors:
    """One vector for each segment (or model).

    Attributes
    ----------
    models, segments : ndarray of str [shape=(N,)]
    vectors : ndarray or StoredArray [shape=(N, C * D)]
    """

    models: NDArray
    segments: NDArray
    vectors: Rows

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.models) == len(self.segments) == len(self.vectors):
            raise DataError(
                f"supervectors need models (N,), segments (N,) and vectors (N, C D); got {len(self.models)}, "
                f"{len(self.segments)}, {self.vectors.shape}"
            )

    def __len__(self) -> int:
        return len(self.models)

    def with_vectors(self, vectors: Rows) -> Supervectors:
        """The same rows with other vectors."""
        return replace(self, vectors=vectors)


def supervector_scale(mixture: GaussianMixture) -> NDArray[np.float64]:
    """Factor sqrt(weight / variance) of each entry of a normalised supervector, shape (C * D,)."""
    return np.sqrt(mixture.weights[:, None] / mixture.variances).reshape(-1)


def adapt_supervectors(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig | None = None,
    *,
    jobs: int | None = None,
    device: Device | None = None,
) -> Supervectors:
    """MAP-adapted means of each row, as supervectors in memory.

    Parameters
    ----------
    mixture : GaussianMixture
    statistics : Statistics
        Those in a file are read by blocks.
    config : MapConfig
    jobs : int, optional
        Workers; the result does not depend on it.
    device : spkbase.work.Device, optional
        Computes there instead, equal to the rounding of the dtype.

    Returns
    -------
    Supervectors
        In the dtype of the statistics; the UBM's mean is not subtracted.
    """
    return _in_memory(mixture, statistics, config or MapConfig(), _rows_apart(statistics), jobs, device)


def adapt_multisession(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig | None = None,
    *,
    jobs: int | None = None,
    device: Device | None = None,
) -> Supervectors:
    """MAP-adapted means of each model from all its sessions together.

    Parameters
    ----------
    mixture, statistics, config, jobs, device
        See `adapt_supervectors`.

    Returns
    -------
    Supervectors
        One row for each model, sorted by id; models and segments are the same ids.
    """
    return _in_memory(mixture, statistics, config or MapConfig(), _rows_by_model(statistics), jobs, device)


def stream_supervectors(
    path: str | Path,
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig | None = None,
    *,
    multisession: bool = False,
    folder: str | Path | None = None,
    fingerprint: str = "",
    attributes: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    device: Device | None = None,
) -> None:
    """Supervectors straight into a file, a block of rows at a time.

    Parameters
    ----------
    path : path
        In the layout of SIDEKIT's StatServer, float32, with ones as counts; `open_supervectors` refers to its rows.
    mixture, config, jobs, device
        See `adapt_supervectors`, which gives the same numbers.
    statistics : Statistics
        Best in a file too (`open_statistics`).
    multisession : bool
        One supervector for each model, as `adapt_multisession`.
    folder : path, optional
        Keeps what is done if the process is killed; called again with it, only the rest is worked out.
    fingerprint : str
        Of the mixture and the statistics: what is in the folder is used again if it has the same.
    attributes : mapping, optional
        At the root of the file.

    Raises
    ------
    DataError
        If the statistics are not those of this mixture, a number is not finite, or the file cannot be written.
    """
    grouped = _rows_by_model(statistics) if multisession else _rows_apart(statistics)
    whole = digest_of(fingerprint, config or MapConfig(), multisession)
    with StatDraft(
        path, grouped.models, grouped.segments, (1, statistics.first.shape[1]), folder=folder, fingerprint=whole,
        attributes=attributes, n_blocks=len(grouped.blocks()),
    ) as draft:  # fmt: skip
        for vectors in _adapted(
            mixture, statistics, config or MapConfig(), grouped, done=draft.n_done, jobs=jobs, device=device
        ):
            draft.add(np.ones((len(vectors), 1), np.float32), vectors)
        draft.finish()


def open_supervectors(path: str | Path) -> Supervectors:
    """Refer to the supervectors in a file; `vectors` are read by rows, when they are asked for."""
    models, segments, _, vectors = open_stat_server(path)
    return Supervectors(models, segments, vectors)


def sum_by_model(statistics: Statistics) -> Statistics:
    """Add the statistics of all sessions of each model, in memory; rows sorted by model id."""
    grouped = _rows_by_model(statistics)
    ids = grouped.models
    zeroth = np.empty((len(ids), statistics.zeroth.shape[1]), statistics.zeroth.dtype)
    first = np.empty((len(ids), statistics.first.shape[1]), statistics.first.dtype)
    for start, stop in grouped.blocks():
        zeroth[start:stop], first[start:stop] = _summed(grouped.item(statistics, start, stop))
    return Statistics(ids, ids, zeroth, first)


@dataclass(frozen=True)
class _Grouped:
    """Which rows of statistics make each supervector: one, or those of a model."""

    models: NDArray
    segments: NDArray
    rows: NDArray[np.int64]  # of the statistics, those that belong together in a row
    ends: NDArray[np.int64]  # where in `rows` those of each supervector end, after a 0
    epsilon: float

    def blocks(self) -> list[tuple[int, int]]:
        """Supervectors that are worked out together."""
        return chunk_bounds(len(self.models), _CHUNK)

    def item(self, statistics: Statistics, start: int, stop: int) -> _Item:
        """What is needed for the supervectors of a block."""
        rows, ends = self.rows[self.ends[start] : self.ends[stop]], self.ends[start : stop + 1] - self.ends[start]
        return SelectedRows(statistics.zeroth, rows), SelectedRows(statistics.first, rows), ends


_Item = tuple[SelectedRows, SelectedRows, NDArray[np.int64]]


def _rows_apart(statistics: Statistics) -> _Grouped:
    rows = np.arange(len(statistics))
    return _Grouped(statistics.models, statistics.segments, rows, np.arange(len(rows) + 1), _EPSILON)


def _rows_by_model(statistics: Statistics) -> _Grouped:
    models = sorted(set(statistics.models))
    place = {model: number for number, model in enumerate(models)}
    owner = np.array([place[model] for model in statistics.models], np.int64)
    ids = np.asarray(models, object)
    ends = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ids)))])
    return _Grouped(ids, ids, np.argsort(owner, kind="stable"), ends, 0.0)


def _in_memory(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig,
    grouped: _Grouped,
    jobs: int | None,
    device: Device | None,
) -> Supervectors:
    vectors = np.empty((len(grouped.models), statistics.first.shape[1]), statistics.first.dtype)
    blocks = _adapted(mixture, statistics, config, grouped, jobs=jobs, device=device)
    for (start, stop), block in zip(grouped.blocks(), blocks, strict=True):
        vectors[start:stop] = block
    return Supervectors(grouped.models, grouped.segments, vectors)


def _adapted(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: MapConfig,
    grouped: _Grouped,
    *,
    done: int = 0,
    jobs: int | None,
    device: Device | None,
) -> Iterator[NDArray]:
    """Supervectors of each block after those that are done."""
    n_components, dimension = mixture.means.shape
    if statistics.zeroth.shape[1:] != (n_components,) or statistics.first.shape[1:] != (n_components * dimension,):
        raise DataError(
            f"statistics of shapes {statistics.zeroth.shape} and {statistics.first.shape} do not fit a mixture of "
            f"{n_components} Gaussians in {dimension} dimensions",
            remedy="accumulate them on the mixture that is adapted",
        )
    scale = supervector_scale(mixture).reshape(n_components, dimension) if config.normalise else None
    work = partial(
        _adapt, means=mixture.means, scale=scale, relevance=config.relevance, epsilon=grouped.epsilon, device=device
    )
    left = grouped.blocks()[done:]
    items = (grouped.item(statistics, *block) for block in left)
    if device is not None:  # one device, one stream of blocks
        return map(work, items)
    return ordered_map(work, items, jobs=jobs, threads=True, total=len(left))


def _summed(item: _Item) -> tuple[NDArray, NDArray]:
    """Zeroth and first statistics of each supervector: those of its rows, added in their order."""
    zeroth, first, ends = item
    if len(zeroth) == len(ends) - 1:
        return np.asarray(zeroth), np.asarray(first)
    sums = []
    for rows in (zeroth, first):
        total = []
        for start, stop in pairwise(ends):
            one = np.asarray(rows.part(start, start + 1))[0]
            for begin, end in chunk_bounds(stop - start - 1, _CHUNK):
                for more in np.asarray(rows.part(start + 1 + begin, start + 1 + end)):
                    one += more
            total.append(one)
        sums.append(np.stack(total))
    return sums[0], sums[1]


def _adapt(
    item: _Item,
    means: NDArray[np.float64],
    scale: NDArray[np.float64] | None,
    relevance: float,
    epsilon: float,
    device: Device | None,
) -> NDArray:
    """Supervectors of a block, in the dtype of the statistics; a row at a time, which stays in the cache."""
    zeroth, first = _summed(item)
    if device is not None:
        return adapted_means(zeroth, first, means, scale, relevance=relevance, epsilon=epsilon, device=device)
    vectors = np.empty_like(first)
    for row, (counts, sums) in enumerate(zip(zeroth, first, strict=True)):
        count, total = counts[:, None].astype(np.float64), sums.reshape(means.shape).astype(np.float64)
        adapted = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        share = count + epsilon
        # a relevance of 0 with a component that has no frames leaves nothing to share out: the prior stays
        share = np.divide(share, share + relevance, out=np.zeros_like(share), where=share > 0)
        adapted *= share
        adapted += (1 - share) * means
        if scale is not None:
            adapted *= scale
        vectors[row] = adapted.reshape(-1)
    return vectors
