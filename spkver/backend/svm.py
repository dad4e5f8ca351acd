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

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import vectors_of
from spkbase.arrays import Floats, Rows, SelectedRows, StoredArray, fill_rows
from spkbase.errors import ConfigError, DataError
from spkbase.hdf5 import (
    check_forms,
    new_file,
    read_arrays,
    stored_array,
    write_arrays,
    write_strings,
)
from spkbase.progress import verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunks, ships_items
from spkver.backend.nap import Projection, combine_rows, gram_matrix, inner_products, projected
from spkver.vectors import Supervectors

_MODELS = 16  # number of models in a task and in a block of a file


def train_one(
    background_gram: NDArray[Any],
    cross_gram: NDArray[Any],
    own_gram: NDArray[Any],
    config: SvmConfig,
) -> tuple[Floats, float]:
    """Solve one machine from its kernel, the inner products of all its examples.

    The weight vector is w = sum_i a_i x_i, over background and speaker; it and the bias b minimise

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

    kernel = np.block([[background_gram, cross_gram.T], [cross_gram, own_gram]])
    cost = config.cost or 1.0 / np.trace(kernel) * len(kernel)
    # the background comes first and has the lower label: the order decides which of equal solutions libsvm reaches
    labels = np.concatenate([np.zeros(len(background_gram)), np.ones(len(own_gram))])
    weight = "balanced" if config.balanced else None
    machine = SVC(kernel="precomputed", C=cost, tol=config.tolerance, class_weight=weight)
    machine.fit(kernel, labels)
    coefficients = np.zeros(len(kernel))
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, float(machine.intercept_[0])


@dataclass(frozen=True)
class SvmConfig:
    """Settings for training the machines.

    Attributes
    ----------
    tolerance : float
        Tolerance of the solver's stopping rule.
    cost : float or None
        Penalty C; by default 1 / mean of the kernel's diagonal, for each model.
    balanced : bool
        Weight the penalty of each class by the inverse of its size, so that the speaker's few examples count as much as
        the many of the background.
    """

    tolerance: float = 1e-3
    cost: float | None = None
    balanced: bool = False

    def __post_init__(self) -> None:
        for name in ("tolerance", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"svm.{name} is {value}: expected a number above 0")


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

    models: NDArray[Any]
    weights: Rows
    biases: Floats

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or not len(self.models) == len(self.weights) == len(self.biases):
            raise DataError(
                f"machines need models (M,), weights (M, D) and biases (M,); got {len(self.models)}, "
                f"{self.weights.shape}, {self.biases.shape}"
            )

    def __len__(self) -> int:
        return len(self.models)


@verbosely
def train_svms(
    enrolment: Supervectors,
    background: Supervectors | Rows,
    config: SvmConfig | None = None,
    *,
    projection: Projection | None = None,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
    verbose: bool = True,
) -> SvmModels:
    """Train one machine for each model against the background.

    Parameters
    ----------
    enrolment : Supervectors
        Vectors of the models, each with any number of sessions, in any order. Vectors in a file are read for some
        models at a time.
    background : Supervectors or their vectors of shape (B, D)
        Negative examples that all machines share; held in memory.
    config : SvmConfig
    projection : Projection, optional
        Applied to vectors and background when they are read.
    work : spkbase.work.Work
        The machines do not depend on the number of workers.
    destination : path, optional
        File for the machines, in the form of `write_svms`; weights are then read from it on access.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    SvmModels
        Models sorted by id. Kernel and solver work in float64, the weights have the dtype of the vectors.

    Raises
    ------
    DataError
        If the arrays do not fit together, or the file cannot be written.
    """
    vectors = enrolment.vectors
    if isinstance(background, Supervectors):
        background = background.vectors
    others: Rows = vectors_of(background, "background vectors")
    if not len(others):
        raise DataError("no background vectors: a machine needs vectors of other speakers")
    if vectors.shape[1:] != others.shape[1:]:
        shapes = f"vectors of shape {vectors.shape} and a background of shape {others.shape}"
        raise DataError(f"{shapes} do not fit together")
    rows_of_models: dict[str, list[int]] = {}
    for row, model in enumerate(enrolment.models):
        rows_of_models.setdefault(model, []).append(row)
    models = sorted(rows_of_models)

    held = projected(others, projection)
    gram = gram_matrix(held, work=work)
    negatives: tuple[Rows, Projection | None] = (held, None)
    if ships_items() and isinstance(others, StoredArray):
        # other processes read the background from its file
        negatives = (others, projection)
    groups = chunks([rows_of_models[model] for model in models], _MODELS)
    items = ((SelectedRows(vectors, np.concatenate(rows)), [*map(len, rows)]) for rows in groups)
    config = config or SvmConfig()
    train = partial(
        _train_block, negatives=negatives, gram=gram, projection=projection, config=config
    )
    blocks = work.map(train, items, description="SVM training", total=len(groups))

    shape = len(models), vectors.shape[1]
    if destination is None:
        weights = np.empty(shape, vectors.dtype)
        biases = np.empty(len(models))
        fill_rows((weights, biases), blocks)
        return SvmModels(np.array(models, object), weights, biases)
    with new_file(destination) as file:
        write_strings(file, "models", models)
        biases = file.create_dataset("biases", (len(models),), np.float64)
        fill_rows((file.create_dataset("weights", shape, vectors.dtype), biases), blocks)
    return open_svms(destination)


def write_svms(path: str | Path, machines: SvmModels) -> None:
    """Write machines as one HDF5 file: `models`, `weights` (M, D), `biases` (M,)."""
    arrays = {
        "models": machines.models,
        "weights": np.asarray(machines.weights),
        "biases": machines.biases,
    }
    write_arrays(path, arrays)


def open_svms(path: str | Path) -> SvmModels:
    """Open the machines that `write_svms` or `train_svms` wrote; weights are read by rows, on access."""
    small = read_arrays(path, "models", "biases")
    weights = stored_array(path, "weights")
    check_forms(path, {**small, "weights": weights}, models="O1", weights="f2", biases="f1")
    return SvmModels(small["models"], weights, small["biases"])


def _train_block(
    block: tuple[SelectedRows, list[int]],
    negatives: tuple[Rows, Projection | None],
    gram: Floats,
    projection: Projection | None,
    config: SvmConfig,
) -> tuple[NDArray[Any], Floats]:
    """Train some models on their enrolment vectors, given their numbers; return weights (m, D) and biases (m,)."""
    selected, n_vectors = block
    positives = projected(selected, projection)
    background = projected(*negatives)
    # the kernels of all models against the background are one product
    cross = inner_products(positives, background)
    coefficients = np.zeros((len(n_vectors), len(gram)))
    biases = np.empty(len(n_vectors))
    weights = np.zeros((len(n_vectors), positives.shape[1]))
    for model, end in enumerate(np.cumsum(n_vectors)):
        rows = slice(end - n_vectors[model], end)
        own = positives[rows]
        alpha, biases[model] = train_one(gram, cross[rows], inner_products(own, own), config)
        coefficients[model] = alpha[: len(gram)]
        weights[model] = alpha[len(gram) :] @ own.astype(np.float64)
    return combine_rows(coefficients, background, onto=weights).astype(positives.dtype), biases
