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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunks, ordered_map
from spkver.errors import ConfigError, DataError
from spkver.nap import gram_matrix
from spkver.store import read_arrays, write_arrays

_CHUNK = 16  # models in one task


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
    weights : ndarray [shape=(M, D)]
    biases : ndarray [shape=(M,)]
    """

    models: NDArray
    weights: NDArray
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
    vectors: NDArray,
    background: NDArray,
    config: SvmConfig | None = None,
    *,
    gram: NDArray[np.float64] | None = None,
    jobs: int | None = None,
) -> SvmModels:
    """Train one machine for each model against the background.

    Parameters
    ----------
    models : sequence of str, length N
        Model of each enrolment vector; a model may have any number of sessions, in any rows.
    vectors : ndarray [shape=(N, D)]
        Enrolment supervectors.
    background : ndarray [shape=(B, D)]
    config : SvmConfig
    gram : ndarray [shape=(B, B)], optional
        `gram_matrix(background)`, where it is known already.
    jobs : int, optional
        Worker threads; the machines do not depend on it.

    Returns
    -------
    SvmModels
        Models sorted by id. Kernel and solver work in float64, the weights have the dtype of the vectors.
    """
    config = config or SvmConfig()
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
    names = sorted(sessions)
    weights, biases = np.empty((len(names), vectors.shape[1]), vectors.dtype), np.empty(len(names))
    work = partial(
        _train_some,
        names=names,
        sessions=sessions,
        vectors=vectors,
        background=background,
        gram=gram_matrix(background, jobs=jobs) if gram is None else gram,
        config=config,
        out=(weights, biases),
    )
    for _ in ordered_map(work, chunks(range(len(names)), _CHUNK), jobs=jobs, threads=True, description="SVM training"):
        pass
    return SvmModels(np.asarray(names, object), weights, biases)


def _train_some(
    rows: range,
    names: Sequence[str],
    sessions: Mapping[str, list[int]],
    vectors: NDArray,
    background: NDArray,
    gram: NDArray[np.float64],
    config: SvmConfig,
    out: tuple[NDArray, NDArray],
) -> None:
    """Train the models of a chunk: their kernels against the background are one product."""
    positions = [sessions[names[row]] for row in rows]
    own = vectors[np.concatenate(positions)]
    cross = gram_matrix(own, background, jobs=1)
    ends = np.cumsum([len(position) for position in positions])
    coefficients = np.zeros((len(rows), len(background)))
    own_weights = np.zeros((len(rows), own.shape[1]))
    for place, (row, end) in enumerate(zip(rows, ends, strict=True)):
        mine = slice(end - len(positions[place]), end)
        alpha, bias = train_one(gram, cross[mine], gram_matrix(own[mine], jobs=1), config)
        coefficients[place] = alpha[: len(background)]
        own_weights[place] = alpha[len(background) :] @ own[mine].astype(np.float64)
        out[1][row] = bias
    out[0][rows.start : rows.stop] = own_weights + coefficients @ background.astype(np.float64)


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
    arrays = {"models": machines.models, "weights": machines.weights, "biases": machines.biases}
    write_arrays(path, arrays, attributes=attributes)


def read_svms(path: str | Path) -> SvmModels:
    """Read what `write_svms` wrote."""
    arrays = read_arrays(path, "models", "weights", "biases")
    return SvmModels(**arrays)
