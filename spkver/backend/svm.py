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

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, SelectedRows, StoredArray, fill_rows, part
from spkbase.errors import ConfigError, DataError
from spkbase.hdf5 import check_forms, new_file, read_arrays, stored_array, write_arrays, write_strings
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, chunks, engine_kind, use_engine
from spkver.backend.nap import Projection, gram_matrix, inner_products
from spkver.vectors import Supervectors, vectors_of

_MODELS = 16  # in one task and in one block of a file
_TILE = 256  # background vectors that are worked on together ...
_COLUMNS = 4096  # ... and their dimensions that are in float64 at a time
_HELD = 256e6  # bytes of background that are kept in memory; more is read, and projected, by each task


def train_one(
    background_gram: NDArray, cross_gram: NDArray, own_gram: NDArray, config: SvmConfig
) -> tuple[NDArray[np.float64], float]:
    """Solve one machine from its kernel, the inner products of all its examples.

    The weight vector is w = sum_i a_i x_i, over background vectors and the speaker's own; it and the bias b minimise

        1/2 |w|^2 + C sum_i max(0, 1 - y_i (w . x_i + b)),   y_i = -1 for the background, 1 for the speaker

    Parameters
    ----------
    background_gram : ndarray of shape (B, B)
    cross_gram : ndarray of shape (n, B)
    own_gram : ndarray of shape (n, n)
    config : SvmConfig

    Returns
    -------
    coefficients : ndarray of shape (B + n,)
        The a_i, background first.
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


@one_line
@dataclass(frozen=True)
class SvmModels:
    """Linear machines: the score of a supervector x is weights . x + bias, positive for the model's speaker.

    Attributes
    ----------
    models : ndarray of str of shape (M,)
    weights : ndarray or StoredArray of shape (M, D)
    biases : ndarray of shape (M,)
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


@one_line
@dataclass(frozen=True)
class Background:
    """Negative examples that all machines share.

    Attributes
    ----------
    vectors : ndarray or StoredArray of shape (B, D)
    gram : ndarray of shape (B, B), optional
        Their `gram_matrix` (of the projected vectors), where it is known already.
    """

    vectors: Rows
    gram: NDArray[np.float64] | None = None


def train_svms(
    enrolment: Supervectors,
    background: Background | Supervectors | Rows,
    config: SvmConfig | None = None,
    *,
    projection: Projection | None = None,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
) -> SvmModels:
    """Train one machine for each model against the background.

    Parameters
    ----------
    enrolment : Supervectors
        Their models may have any number of sessions each, in any rows. Vectors in a file are read for some models at a
        time.
    background : Background, Supervectors or their vectors of shape (B, D)
    config : SvmConfig
    projection : Projection, optional
        Applied to vectors and background when they are read.
    work : spkbase.work.Work
        The machines do not depend on the number of workers.
    destination : path, optional
        Machines go straight into a file, as `write_svms` writes it, and the weights are read from it when they are
        asked for.

    Returns
    -------
    SvmModels
        Models sorted by id. Kernel and solver work in float64, the weights have the dtype of the vectors.

    Raises
    ------
    DataError
        If the arrays do not fit together, or the file cannot be written.
    """
    vectors, config = vectors_of(enrolment, ids="models"), config or SvmConfig()
    background = background if isinstance(background, Background) else Background(vectors_of(background))
    sessions = _sessions(enrolment.models, vectors, background.vectors)

    shape = len(sessions), vectors.shape[1]
    blocks = machine_blocks([*sessions.values()], vectors, background, config, projection, work)
    if destination is None:
        weights, biases = np.empty(shape, vectors.dtype), np.empty(len(sessions))
        fill_rows((weights, biases), blocks)
        return SvmModels(np.array([*sessions], object), weights, biases)
    with new_file(destination) as file:
        write_strings(file, "models", sessions)
        biases = file.create_dataset("biases", (len(sessions),), np.float64)
        fill_rows((file.create_dataset("weights", shape, vectors.dtype), biases), blocks)
    return open_svms(destination)


def _sessions(models: Sequence[str] | NDArray, vectors: Rows, background: Rows) -> dict[str, list[int]]:
    """Return the rows of each model, models sorted."""
    if not len(background):
        raise DataError("no background vectors: a machine needs something to tell the speaker from")
    if vectors.shape[1:] != background.shape[1:]:
        raise DataError(
            f"vectors of shape {vectors.shape} and a background of shape {background.shape} do not fit together"
        )
    sessions: dict[str, list[int]] = {}
    for row, model in enumerate(models):
        sessions.setdefault(model, []).append(row)
    return dict(sorted(sessions.items()))


def machine_blocks(
    sessions: Sequence[Sequence[int]],
    vectors: Rows,
    background: Background,
    config: SvmConfig,
    projection: Projection | None,
    work: Work,
) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    """Yield the weights (m, D) and biases (m,) of block after block of models.

    Parameters
    ----------
    sessions : sequence of sequences of int
        Rows of each model.
    vectors, background, config, projection, work
        As for `train_svms`.
    """
    left = chunks(sessions, _MODELS)
    negatives, gram = Negatives(background.vectors, projection), background.gram
    n_bytes = background.vectors.shape[0] * background.vectors.shape[1] * background.vectors.dtype.itemsize
    if n_bytes <= _HELD:
        held = Negatives(negatives.rows(0, len(negatives)))
        by_name = engine_kind() == "dask" and isinstance(background.vectors, StoredArray)
        if gram is None:
            # a small product, of what this process alone has
            with use_engine("threads") if by_name else nullcontext():
                gram = held.gram(work)
        # to the workers of a cluster goes the name of the file, and each reads it once
        negatives = replace(negatives, is_held=True) if by_name else held
    gram = negatives.gram(work) if gram is None else gram
    train = partial(_train_block, negatives=negatives, gram=gram, projection=projection, config=config)
    items = ((SelectedRows(vectors, np.concatenate(rows)), [len(of_model) for of_model in rows]) for rows in left)
    yield from work.map(train, items, description="SVM training", total=len(left))


@dataclass(frozen=True)
class Negatives:
    """Background vectors as tasks read them.

    Attributes
    ----------
    vectors : ndarray or StoredArray of shape (B, D)
    projection : Projection, optional
        Applied to what is read.
    is_held : bool
        Read once and kept in memory; else read (and projected) whenever asked for.
    """

    vectors: Rows
    projection: Projection | None = None
    is_held: bool = False

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, start: int, stop: int) -> NDArray:
        """Read some of them."""
        return self._all[start:stop] if self.is_held else self._read(start, stop)

    @cached_property
    def _all(self) -> NDArray:
        return self._read(0, len(self))

    def _read(self, start: int, stop: int) -> NDArray:
        rows = np.asarray(part(self.vectors, start, stop))
        return rows if self.projection is None else self.projection.of_rows(rows)

    def tiles(self) -> Iterator[tuple[slice, NDArray]]:
        """Yield all of them, some at a time."""
        for start, stop in chunk_bounds(len(self), _TILE):
            yield slice(start, stop), self.rows(start, stop)

    def products(self, vectors: NDArray) -> NDArray[np.float64]:
        """Return the inner products (n, B) of vectors with all of them."""
        return np.hstack([inner_products(vectors, tile) for _, tile in self.tiles()])

    def gram(self, work: Work) -> NDArray[np.float64]:
        """Return their inner products (B, B)."""
        if self.projection is None:
            return gram_matrix(self.vectors, work=work)
        rows = work.map(partial(_gram_rows, negatives=self), chunk_bounds(len(self), _TILE))
        return np.vstack([*rows])


def _gram_rows(bounds: tuple[int, int], negatives: Negatives) -> NDArray[np.float64]:
    return negatives.products(negatives.rows(*bounds))


def _train_block(
    block: tuple[SelectedRows, list[int]],
    negatives: Negatives,
    gram: NDArray[np.float64],
    projection: Projection | None,
    config: SvmConfig,
) -> tuple[NDArray, NDArray[np.float64]]:
    """Train some models, given their enrolment vectors and how many each has."""
    n_vectors = block[1]
    positives = np.asarray(block[0]) if projection is None else projection.of_rows(block[0])
    cross = negatives.products(positives)  # the kernels of all models against the background are one product
    coefficients, biases = np.zeros((len(n_vectors), len(negatives))), np.empty(len(n_vectors))
    weights = np.zeros((len(n_vectors), positives.shape[1]))
    for model, end in enumerate(np.cumsum(n_vectors)):
        rows = slice(end - n_vectors[model], end)
        alpha, biases[model] = train_one(gram, cross[rows], inner_products(positives[rows], positives[rows]), config)
        coefficients[model] = alpha[: len(negatives)]
        weights[model] = alpha[len(negatives) :] @ positives[rows].astype(np.float64)
    for rows, tile in negatives.tiles():
        for start, stop in chunk_bounds(tile.shape[1], _COLUMNS):
            weights[:, start:stop] += coefficients[:, rows] @ tile[:, start:stop].astype(np.float64)
    return weights.astype(positives.dtype), biases


def write_svms(path: str | Path, machines: SvmModels) -> None:
    """Write machines as one HDF5 file: `models`, `weights` (M, D), `biases` (M,)."""
    arrays = {"models": machines.models, "weights": np.asarray(machines.weights), "biases": machines.biases}
    write_arrays(path, arrays)


def read_svms(path: str | Path) -> SvmModels:
    """Read the machines that `write_svms` or `train_svms` wrote."""
    arrays = read_arrays(path, "models", "weights", "biases")
    check_forms(path, arrays, models="O1", weights="f2", biases="f1")
    return SvmModels(**arrays)


def open_svms(path: str | Path) -> SvmModels:
    """Read machines as `read_svms` does, but the weights by rows, when they are asked for."""
    small, weights = read_arrays(path, "models", "biases"), stored_array(path, "weights")
    check_forms(path, {**small, "weights": weights}, models="O1", weights="f2", biases="f1")
    return SvmModels(small["models"], weights, small["biases"])
