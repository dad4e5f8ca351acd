"""SIDEKIT's models: mixtures, factor analysers, and SVMs.

- Mixture: weights, means and covariances, diagonal or full.
- FactorAnalyser: the matrices of a total variability model, a PLDA or a joint factor analysis. In HDF5 the matrices
  that exist, ``fa/mean``, ``fa/f``, ``fa/g``, ``fa/h`` and ``fa/sigma``, and ``fa/kind``: five int16, 1 for each matrix
  that exists.
- SVM: a gzip'ed pickle of (w, b), read only on request by `spkbase.plain_pickle`, which admits plain data and runs
  nothing.
"""

from __future__ import annotations

import gzip
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, errors_of
from spkbase.files import atomic_path
from spkbase.hdf5 import create_file, write_column
from spkbase.plain_pickle import load_plain
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.sidekit.tables import open_hdf5, read_array

_WEIGHT_TOLERANCE = 1e-3


# the matrices in the order of `kind`
_NAMES = {"mean": "mean", "loadings": "f", "channel": "g", "diagonal": "h", "residual": "sigma"}


class MixtureFile(NamedTuple):
    """Parameters of a mixture of C Gaussians in D dimensions, in float64.

    Attributes
    ----------
    weights : ndarray of shape (C,)
        Weights, which sum to 1.
    means : ndarray of shape (C, D)
        Means.
    precisions : ndarray of shape (C, D) or (C, D, D)
        Inverse variances, or inverse covariances.
    variance_control : ndarray of shape (C, D)
        Variances of the training data, to which floors and ceilings refer.
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    precisions: NDArray[np.float64]
    variance_control: NDArray[np.float64]

    def variances(self) -> NDArray[np.float64]:
        """Return the variances (C, D), or the covariances (C, D, D)."""
        return _inverses(self.precisions)


def read_mixture(path: str | Path) -> MixtureFile:
    """Read a mixture that SIDEKIT or `write_mixture` wrote.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a parameter is out of its range.
    """
    with open_hdf5(path) as file:
        weights = read_array(file, "w", kinds="f", shape=(None,))
        precisions = read_array(file, "invcov", kinds="f")
        means = read_array(file, "mu", kinds="f", shape=(len(weights), None))
        control = read_array(file, "cov_var_ctl", kinds="f", shape=means.shape)
        full = (*means.shape, means.shape[1])
        if precisions.shape not in (means.shape, full):
            text = f"invcov should have the shape of mu, {means.shape}, not {precisions.shape}"
            raise DataError(f"{text}, or be {full} for full covariances")
        arrays = weights, means, precisions, control
        mixture = MixtureFile(*(array.astype(np.float64) for array in arrays))
        _check_values(mixture)
        return mixture


def write_mixture(
    path: str | Path,
    *,
    weights: NDArray[Any],
    means: NDArray[Any],
    variances: NDArray[Any],
    variance_control: NDArray[Any],
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write a mixture with the constants that SIDEKIT expects besides the parameters.

    Parameters
    ----------
    path : path
        The file.
    weights : ndarray of shape (C,)
        Weights, which sum to 1.
    means, variance_control : ndarray of shape (C, D)
        Means, and variances of the training data (`cov_var_ctl`).
    variances : ndarray of shape (C, D) or (C, D, D)
        Variances of each dimension, or full covariances.
    attributes : dict, optional
        Attributes of the file, such as a fingerprint.

    Raises
    ------
    DataError
        If shapes do not agree, a parameter is out of its range, or the file cannot be written.

    Notes
    -----
    With many dimensions the determinant of the covariance, `det`, exceeds the range of float64 (the product of 60
    variances of 1e-6 is 1e-360), and so does `cst`; both are written nevertheless. `a` is computed from sums of
    logarithms and stays finite; `read_mixture` uses none of the three.
    """
    arrays = weights, means, variances, variance_control
    weights, means, variances, control = (np.asarray(array, np.float64) for array in arrays)
    shape = means.shape
    good = means.ndim == 2 and weights.shape == shape[:1] and control.shape == shape
    if not good or variances.shape not in (shape, (*shape, shape[1])):
        shapes = f"{weights.shape}, {shape}, {variances.shape}, {control.shape}"
        text = (
            f"expected (C,), (C, D), (C, D), (C, D), not {shapes}; full covariances are (C, D, D)"
        )
        raise DataError(text, file=path)
    with errors_of(path), np.errstate(divide="ignore"):
        precisions = _inverses(variances)
        _check_values(MixtureFile(weights, means, precisions, control))
    factors: NDArray[np.float64] = np.zeros(0)
    if precisions.ndim == 2:
        log_det = -np.log(precisions).sum(axis=1)
        lengths = (means**2 * precisions).sum(axis=1)
    else:
        factors = np.asarray(np.linalg.cholesky(precisions))
        log_det = -2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        lengths = ((means[:, None, :] @ factors)[:, 0, :] ** 2).sum(axis=1)
    log_constant = -0.5 * (log_det + means.shape[1] * np.log(2 * np.pi))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):  # see the notes above
        det = np.exp(log_det)
        constant = np.exp(log_constant)
        log_weights = np.log(weights)
    values = {
        "w": weights,
        "mu": means,
        "invcov": precisions,
        "invchol": factors,
        "cov_var_ctl": control,
        "cst": constant,
        "det": det,
        "a": lengths - 2 * (log_weights + log_constant),
    }
    with create_file(path) as file:
        file.attrs.update(attributes or {})
        for name, array in values.items():
            write_column(file, name, array)


@one_blas_thread()
def inverse_matrices(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverses of symmetric, positive definite matrices (C, D, D), exactly symmetric.

    Raises
    ------
    DataError
        If a matrix is not positive definite.
    """
    try:
        inverse_factors = np.linalg.inv(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError as error:
        text = "covariances should be finite, symmetric and positive definite"
        raise DataError(text, remedy="train the mixture again") from error
    inverses = inverse_factors.swapaxes(1, 2) @ inverse_factors
    return np.asarray((inverses + inverses.swapaxes(1, 2)) / 2)


@one_line
@dataclass(frozen=True, eq=False)
class FactorAnalyser:
    """Matrices of a factor analysis in R dimensions; None for matrices that do not exist.

    Attributes
    ----------
    mean : ndarray of shape (R,)
    loadings : ndarray of shape (R, K)
        F: T of a total variability model, V of a joint factor analysis.
    channel : ndarray of shape (R, L)
        G, or U of a joint factor analysis.
    diagonal : ndarray of shape (R,)
        H, or D of a joint factor analysis.
    residual : ndarray of shape (R, R) or (R,)
        Sigma.

    Raises
    ------
    DataError
        If there are no matrices, shapes do not agree, or a number is not finite.
    """

    mean: NDArray[np.float64] | None = None
    loadings: NDArray[np.float64] | None = None
    channel: NDArray[np.float64] | None = None
    diagonal: NDArray[np.float64] | None = None
    residual: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        axes = {
            "mean": (1,),
            "loadings": (2,),
            "channel": (2,),
            "diagonal": (1,),
            "residual": (1, 2),
        }
        lengths: dict[str, int] = {}
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if value is None or not np.size(value):  # SIDEKIT writes an empty H
                object.__setattr__(self, field.name, None)
                continue
            array = np.asarray(value, np.float64)
            if array.ndim not in axes[field.name]:
                raise DataError(
                    f"{field.name} of a FactorAnalyser should not have the shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise DataError(
                    f"{field.name} of a FactorAnalyser holds NaN or infinity",
                    remedy="train it again",
                )
            object.__setattr__(self, field.name, array)
            lengths[field.name] = len(array)
        if not lengths:
            raise DataError("a FactorAnalyser without a matrix")
        is_square = self.residual is None or len(set(self.residual.shape)) == 1
        if len(set(lengths.values())) > 1 or not is_square:
            shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in lengths)
            raise DataError(
                f"matrices of a FactorAnalyser should have the same number of rows, not {shapes}"
            )


def read_factor_analyser(path: str | Path) -> FactorAnalyser:
    """Read a FactorAnalyser that SIDEKIT or `write_factor_analyser` wrote.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a number is not finite.
    """
    with open_hdf5(path) as file:
        kind = read_array(file, "fa/kind", kinds="iu", shape=(len(_NAMES),))
        matrices = {}
        for (field, name), exists in zip(_NAMES.items(), kind.tolist(), strict=True):
            if exists:
                matrices[field] = read_array(file, f"fa/{name}", kinds="f")
        return FactorAnalyser(**matrices)


def write_factor_analyser(path: str | Path, analyser: FactorAnalyser) -> None:
    """Write a FactorAnalyser as SIDEKIT does, whole or not at all.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    with create_file(path) as file:
        kind = np.zeros(len(_NAMES), np.int16)
        for number, (field, name) in enumerate(_NAMES.items()):
            matrix = getattr(analyser, field)
            if matrix is not None:
                kind[number] = 1
                file.create_dataset(f"fa/{name}", data=matrix, compression="gzip", fletcher32=True)
        file.create_dataset("fa/kind", data=kind, compression="gzip", fletcher32=True)


def read_svm(path: str | Path, *, allow_pickle: bool = False) -> tuple[NDArray[np.float64], float]:
    """Read an SVM that SIDEKIT wrote.

    Parameters
    ----------
    path : path
        File ``{model}.svm``.
    allow_pickle : bool
        Must be true: the caller knows that the file is a pickle. A restricted reader admits only arrays of floats and
        floats.

    Returns
    -------
    w : ndarray of float64 of shape (D,)
        Weights.
    b : float
        Offset: the score of x is ``w @ x + b``, positive for the target.

    Raises
    ------
    DataError
        If pickles were not allowed, or the file is missing, broken, or holds anything else.
    """
    if not allow_pickle:
        raise DataError(
            "is a pickle, a format that can carry programs",
            file=path,
            remedy="pass allow_pickle=True to read it with a reader that admits only arrays of floats",
        )
    try:
        raw = gzip.decompress(Path(path).read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"cannot be read as gzip: {error}", file=path, remedy="copy or write it again"
        ) from error
    try:
        weights, offset = load_plain(raw)
        if not isinstance(weights, np.ndarray) or not isinstance(offset, float | np.ndarray):
            raise TypeError("expected an array and a float")
        array = _floats(weights)
        offset = float(_floats(np.asarray(offset)).reshape(()))
        w = array.squeeze()
        if w.ndim != 1 or not np.isfinite(w).all() or not np.isfinite(offset):
            text = f"expected a finite vector and a finite float, found {array.shape} and {offset}"
            raise ValueError(text)
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(
            f"is not an SVM of SIDEKIT: {error}", file=path, remedy="write it again"
        ) from error
    return w, offset


def write_svm(path: str | Path, weights: NDArray[Any], offset: float) -> None:
    """Write an SVM as SIDEKIT does: a pickle of an array and a float, which SIDEKIT unpickles.

    Parameters
    ----------
    path : path
        File ``{model}.svm``; its folder exists.
    weights : ndarray of shape (D,)
    offset : float
        Offset b of the score ``w @ x + b``.

    Raises
    ------
    DataError
        If a number is not finite, or the file cannot be written.
    """
    w = np.asarray(weights, np.float64)
    b = float(offset)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all() or not np.isfinite(b):
        raise DataError(
            f"expected a vector of finite weights and a finite offset, got {w.shape} and {b}",
            file=path,
        )
    # protocol 3 is the newest that names modules in plain lines; the NumPy that SIDEKIT runs under does not know
    # NumPy 2's name of its core
    raw = pickle.dumps((w[:, None], b), protocol=3).replace(b"cnumpy._core.", b"cnumpy.core.", 1)
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(raw, mtime=0))


def _inverses(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if values.ndim == 2:
        return 1 / values
    return inverse_matrices(values)


def _check_values(mixture: MixtureFile) -> None:
    weights = mixture.weights
    if mixture.means.size == 0:
        raise DataError(f"a mixture without parameters, mu {mixture.means.shape}")
    is_in_range = np.isfinite(weights).all() and (weights >= 0).all()
    if not is_in_range or abs(weights.sum() - 1) > _WEIGHT_TOLERANCE:
        text = f"weights should be 0 or more and sum to 1, they sum to {weights.sum():.6g}"
        raise DataError(text, remedy="train it again")
    _check_numbers("mu", mixture.means, ~np.isfinite(mixture.means), "finite")
    for name, values in (("invcov", mixture.precisions), ("cov_var_ctl", mixture.variance_control)):
        if values.ndim == 3:
            _check_matrices(name, values)
        else:
            bad = ~np.isfinite(values) | (values <= 0)
            _check_numbers(name, values, bad, "above 0 and finite")


def _check_numbers(name: str, values: NDArray[Any], bad: NDArray[np.bool_], expected: str) -> None:
    if bad.any():
        component, dimension = np.argwhere(bad)[0]
        text = f"{name} of component {component}, dimension {dimension} should be {expected}, "
        text += f"not {values[component, dimension]}"
        raise DataError(text, remedy="train it again")


def _check_matrices(name: str, matrices: NDArray[np.float64]) -> None:
    for component, matrix in enumerate(matrices):
        scale = np.sqrt(np.abs(np.diag(matrix)))
        # this comparison is false for NaN too
        is_symmetric = (np.abs(matrix - matrix.T) <= 1e-6 * np.outer(scale, scale)).all()
        is_good = np.isfinite(matrix).all() and is_symmetric
        if not is_good or not np.linalg.eigvalsh(matrix).min() > 0:
            text = (
                f"{name} of component {component} should be finite, symmetric and positive definite"
            )
            raise DataError(text, remedy="train it again")


def _floats(array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise TypeError(f"an array of {array.dtype.str[1:]!r}, expected floats")
    return array.astype(np.float64)
