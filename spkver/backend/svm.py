"""One-against-background support vector machines on supervectors.

All models share the Gram matrix of the background; each adds the rows of its own sessions. The machine is linear, so a
model is a weight vector and a bias, and its score of a segment is one inner product.

References
----------
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
C.-C. Chang and C.-J. Lin, "LIBSVM: a library for support vector machines", ACM Trans. Intelligent Systems and
Technology 2(3), 2011 (the solver).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows, StoredArray, part
from spkbase.errors import ConfigError, DataError
from spkbase.files import FORMAT_VERSION, check_forms, read_arrays, stored_array, write_arrays
from spkbase.files import fingerprint as digest_of
from spkbase.runs import ArrayDraft
from spkbase.work import Device, chunk_bounds, chunks, engine_kind, ordered_map, use_engine
from spkver.backend.nap import Projection, gram_matrix, inner_products

_CHUNK = 16  # models in one task and in one block of a file
_TILE = 256  # background vectors that are worked on together ...
_COLUMNS = 4096  # ... and their dimensions that are in float64 at a time
_HELD = 256e6  # bytes of background that are kept in memory; more is read, and projected, by each task


@dataclass(frozen=True)
class SvmConfig:
    """How the machines are trained.

    Attributes
    ----------
    tolerance : float
        Of the solver's stopping rule.
    cost : float or None
        Penalty C; by default 1 / mean of the kernel's diagonal, for each model.
    balanced : bool
        Weigh the penalty by the inverse of how many examples a side has, so that the few of the speaker count as much
        as the many of the background.
    """

    tolerance: float = 1e-3
    cost: float | None = None
    balanced: bool = False

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise ConfigError(f"svm.tolerance is {self.tolerance}: expected a number above 0")
        if self.cost is not None and not self.cost > 0:
            raise ConfigError(f"svm.cost is {self.cost}: expected a number above 0")


@dataclass(frozen=True)
class SvmModels:
    """Linear machines: the score of a supervector x is weights . x + bias, positive for the model's speaker.

    Attributes
    ----------
    models : ndarray of str [shape=(M,)]
    weights : ndarray or StoredArray [shape=(M, D)]
    biases : ndarray [shape=(M,)]
    """

    models: NDArray
    weights: Rows
    biases: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or not len(self.models) == len(self.weights) == len(self.biases):
            raise DataError(
                f"machines need models (M,), weights (M, D) and biases (M,); got {len(self.models)}, "
                f"{self.weights.shape}, {self.biases.shape}"
            )

    def __len__(self) -> int:
        return len(self.models)


def train_svms(
    models: Sequence[str] | NDArray,
    vectors: Rows,
    background: Rows,
    config: SvmConfig | None = None,
    *,
    gram: NDArray[np.float64] | None = None,
    projection: Projection | None = None,
    jobs: int | None = None,
    device: Device | None = None,
) -> SvmModels:
    """Train one machine for each model against the background.

    Parameters
    ----------
    models : sequence of str, length N
        Model of each enrolment vector; a model may have any number of sessions, in any rows.
    vectors : ndarray or StoredArray [shape=(N, D)]
        Enrolment supervectors; those in a file are read for some models at a time.
    background : ndarray or StoredArray [shape=(B, D)]
    config : SvmConfig
    gram : ndarray [shape=(B, B)], optional
        `gram_matrix(background)` (of the projected background), where it is known already.
    projection : Projection, optional
        Applied to vectors and background when they are read.
    jobs : int, optional
        Workers; the machines do not depend on it.
    device : spkbase.work.Device, optional
        Computes the kernel of the background there; the machines are solved by the workers.

    Returns
    -------
    SvmModels
        Models sorted by id. Kernel and solver work in float64, the weights have the dtype of the vectors.
    """
    sessions = _sessions(models, vectors, background)
    weights, biases = np.empty((len(sessions), vectors.shape[1]), vectors.dtype), np.empty(len(sessions))
    start = 0
    for block in _trained(
        sessions, vectors, background, config or SvmConfig(), gram, projection, jobs=jobs, device=device
    ):
        stop = start + len(block[1])
        weights[start:stop], biases[start:stop] = block
        start = stop
    return SvmModels(np.array([*sessions], object), weights, biases)


def stream_svms(
    path: str | Path,
    models: Sequence[str] | NDArray,
    vectors: Rows,
    background: Rows,
    config: SvmConfig | None = None,
    *,
    projection: Projection | None = None,
    folder: str | Path | None = None,
    fingerprint: str = "",
    attributes: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    device: Device | None = None,
) -> None:
    """Train machines straight into a file, as `write_svms` writes it, some models at a time.

    Parameters
    ----------
    path : path
        `open_svms` refers to its weights.
    models, vectors, background, config, projection, jobs, device
        See `train_svms`, which gives the same machines.
    folder : path, optional
        Keeps what is done if the process is killed; called again with it, only the rest is worked out.
    fingerprint : str
        Of vectors, background and projection: what is in the folder is used again if it has the same.
    attributes : mapping, optional
        At the root of the file.

    Raises
    ------
    DataError
        If the arrays do not fit together, or the file cannot be written.
    """
    config = config or SvmConfig()
    sessions = _sessions(models, vectors, background)
    datasets = {"weights": ((len(sessions), vectors.shape[1]), vectors.dtype), "biases": ((len(sessions),), np.float64)}
    with ArrayDraft(
        path, folder, digest_of(fingerprint, config, models), datasets, {"models": [*sessions]},
        {"format_version": FORMAT_VERSION, **(attributes or {})}, n_blocks=len(chunk_bounds(len(sessions), _CHUNK)),
    ) as draft:  # fmt: skip
        for weights, biases in _trained(
            sessions, vectors, background, config, None, projection, done=draft.n_done, jobs=jobs, device=device
        ):
            draft.write(draft.n_done, draft.n_rows, {"weights": weights, "biases": biases})
        draft.finish()


def _sessions(models: Sequence[str] | NDArray, vectors: Rows, background: Rows) -> dict[str, list[int]]:
    """Rows of each model, models sorted."""
    if not len(background):
        raise DataError("no background vectors: a machine needs something to tell the speaker from")
    if len(models) != len(vectors) or vectors.shape[1:] != background.shape[1:]:
        raise DataError(
            f"{len(models)} model ids, vectors of shape {vectors.shape} and a background of shape {background.shape} "
            "do not fit together"
        )
    sessions: dict[str, list[int]] = {}
    for row, model in enumerate(models):
        sessions.setdefault(model, []).append(row)
    return dict(sorted(sessions.items()))


_Chunk = tuple[SelectedRows, list[int]]  # enrolment vectors of some models, and how many each has


def _trained(
    sessions: Mapping[str, list[int]],
    vectors: Rows,
    background: Rows,
    config: SvmConfig,
    gram: NDArray[np.float64] | None,
    projection: Projection | None,
    *,
    done: int = 0,
    jobs: int | None,
    device: Device | None,
) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    """Weights and biases of chunks of models, after those that are done."""
    left = chunks([*sessions.values()], _CHUNK)[done:]
    if not left:
        return
    negatives = _Background(background, projection)
    travels = engine_kind() == "dask" and isinstance(background, StoredArray)  # by the name of its file
    if background.shape[0] * background.shape[1] * background.dtype.itemsize <= _HELD:
        held = _Background(negatives.rows(0, len(background)), None)
        if gram is None:
            with use_engine("threads") if travels else nullcontext():  # a small product, of what is here alone
                gram = held.gram(jobs, device)
        negatives = _Background(background, projection, held=True) if travels else held
    gram = negatives.gram(jobs, device) if gram is None else gram
    work = partial(_train_some, negatives=negatives, gram=gram, projection=projection, config=config)
    items = ((SelectedRows(vectors, np.concatenate(rows)), [len(one) for one in rows]) for rows in left)
    yield from ordered_map(work, items, jobs=jobs, threads=True, description="SVM training", total=len(left))


@dataclass(frozen=True)
class _Background:
    """Vectors that all machines are trained against: held in memory, or read (and projected) by each task.

    Those of a file that are `held` are read once by each worker of a cluster.
    """

    vectors: Rows
    projection: Projection | None
    held: bool = False

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, start: int, stop: int) -> NDArray:
        """Some of them."""
        return self._all[start:stop] if self.held else self._read(start, stop)

    @cached_property
    def _all(self) -> NDArray:
        return self._read(0, len(self))

    def _read(self, start: int, stop: int) -> NDArray:
        some = np.asarray(part(self.vectors, start, stop))
        return some if self.projection is None else self.projection.of_rows(some)

    def tiles(self) -> Iterator[tuple[slice, NDArray]]:
        """All of them, some at a time."""
        for start, stop in chunk_bounds(len(self), _TILE):
            yield slice(start, stop), self.rows(start, stop)

    def gram(self, jobs: int | None, device: Device | None) -> NDArray[np.float64]:
        """Their inner products."""
        if self.projection is None:
            return gram_matrix(self.vectors, jobs=jobs, device=device)
        bounds = chunk_bounds(len(self), _TILE)
        return np.vstack([*ordered_map(partial(_gram_rows, negatives=self), bounds, jobs=jobs, threads=True)])


def _gram_rows(bounds: tuple[int, int], negatives: _Background) -> NDArray[np.float64]:
    return _cross(negatives.rows(*bounds), negatives)


def _cross(own: NDArray, negatives: _Background) -> NDArray[np.float64]:
    """Inner products (n, B) of vectors with the background."""
    return np.hstack([inner_products(own, tile) for _, tile in negatives.tiles()])


def _train_some(
    chunk: _Chunk,
    negatives: _Background,
    gram: NDArray[np.float64],
    projection: Projection | None,
    config: SvmConfig,
) -> tuple[NDArray, NDArray[np.float64]]:
    """Train the models of a chunk: their kernels against the background are one product."""
    own = np.asarray(chunk[0])
    own = own if projection is None else projection.of_rows(own)
    cross = _cross(own, negatives)
    coefficients, biases = np.zeros((len(chunk[1]), len(negatives))), np.empty(len(chunk[1]))
    weights = np.zeros((len(chunk[1]), own.shape[1]))
    for place, end in enumerate(np.cumsum(chunk[1])):
        mine = slice(end - chunk[1][place], end)
        alpha, biases[place] = train_one(gram, cross[mine], inner_products(own[mine], own[mine]), config)
        coefficients[place] = alpha[: len(negatives)]
        weights[place] = alpha[len(negatives) :] @ own[mine].astype(np.float64)
    for rows, tile in negatives.tiles():
        for start, stop in chunk_bounds(tile.shape[1], _COLUMNS):
            weights[:, start:stop] += coefficients[:, rows] @ tile[:, start:stop].astype(np.float64)
    return weights.astype(own.dtype), biases


def train_one(
    background_gram: NDArray, cross_gram: NDArray, own_gram: NDArray, config: SvmConfig
) -> tuple[NDArray[np.float64], float]:
    """Solve one machine from its kernel.

    Parameters
    ----------
    background_gram : ndarray [shape=(B, B)]
    cross_gram : ndarray [shape=(n, B)]
    own_gram : ndarray [shape=(n, n)]
    config : SvmConfig

    Returns
    -------
    coefficients : ndarray [shape=(B + n,)]
        Of the vectors in the weight vector, background first.
    bias : float
    """
    from sklearn.svm import SVC

    n_background, n_own = len(background_gram), len(own_gram)
    kernel = np.block([[background_gram, cross_gram.T], [cross_gram, own_gram]])
    cost = config.cost or 1.0 / np.trace(kernel) * len(kernel)
    # the background comes first and has the lower label: the order decides which of equal solutions libsvm reaches
    labels = np.concatenate([np.zeros(n_background), np.ones(n_own)])
    weight = "balanced" if config.balanced else None
    machine = SVC(kernel="precomputed", C=cost, tol=config.tolerance, class_weight=weight).fit(kernel, labels)
    coefficients = np.zeros(len(kernel))
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, float(machine.intercept_[0])


def write_svms(path: str | Path, machines: SvmModels, *, attributes: Mapping[str, object] | None = None) -> None:
    """Write machines as one HDF5 file: `models`, `weights` (M, D), `biases` (M,)."""
    arrays = {"models": machines.models, "weights": np.asarray(machines.weights), "biases": machines.biases}
    write_arrays(path, arrays, attributes=attributes)


def read_svms(path: str | Path) -> SvmModels:
    """Read what `write_svms` or `stream_svms` wrote."""
    arrays = read_arrays(path, "models", "weights", "biases")
    check_forms(path, arrays, models="O1", weights="f2", biases="f1")
    return SvmModels(**arrays)


def open_svms(path: str | Path) -> SvmModels:
    """As `read_svms`, but the weights are read by rows, when they are asked for."""
    small, weights = read_arrays(path, "models", "biases"), stored_array(path, "weights")
    check_forms(path, {**small, "weights": weights}, models="O1", weights="f2", biases="f1")
    return SvmModels(small["models"], weights, small["biases"])
