"""SIDEKIT's Mixture: a Gaussian mixture with diagonal or full covariances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.sidekit.hdf5 import create_hdf5, open_hdf5, read_array, write_column

_WEIGHT_TOLERANCE = 1e-3


@one_line
@dataclass(frozen=True, eq=False)
class MixtureFile:
    """Parameters of a mixture of C Gaussians in D dimensions, in float64.

    Attributes
    ----------
    weights : ndarray of shape (C,)
        Sum to 1.
    means : ndarray of shape (C, D)
        Means.
    precisions : ndarray of shape (C, D) or (C, D, D)
        Inverse variances, or inverse covariances.
    variance_control : ndarray of shape (C, D)
        Variances that floors and ceilings refer to: those of the training data.
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    precisions: NDArray[np.float64]
    variance_control: NDArray[np.float64]

    def variances(self) -> NDArray[np.float64]:
        """Return the variances (C, D), or the covariances (C, D, D)."""
        return 1.0 / self.precisions if self.precisions.ndim == 2 else inverse_matrices(self.precisions)


def read_mixture(path: str | Path, prefix: str = "") -> MixtureFile:
    """Read a mixture that SIDEKIT or `write_mixture` wrote.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a parameter is out of its range.
    """
    with open_hdf5(path) as file:
        weights = read_array(file, f"{prefix}w", kinds="f", shape=(None,)).astype(np.float64)
        precisions = read_array(file, f"{prefix}invcov", kinds="f")
        n_components = len(weights)
        means = read_array(file, f"{prefix}mu", kinds="f", shape=(n_components, None)).astype(np.float64)
        control = read_array(file, f"{prefix}cov_var_ctl", kinds="f", shape=means.shape).astype(np.float64)
        full = (*means.shape, means.shape[1])
        if precisions.shape not in (means.shape, full):
            text = f"invcov should have the shape of mu, {means.shape}, not {precisions.shape}"
            raise DataError(f"{text}, or be {full} for full covariances")
        mixture = MixtureFile(weights, means, precisions.astype(np.float64), control)
        _check_values(mixture)
        return mixture


def write_mixture(
    path: str | Path,
    *,
    weights: NDArray[Any],
    means: NDArray[Any],
    variances: NDArray[Any],
    variance_control: NDArray[Any],
    prefix: str = "",
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write a mixture, with the constants that SIDEKIT expects beside the parameters.

    Parameters
    ----------
    path : path
        The file.
    weights : ndarray of shape (C,)
        Sum to 1.
    means, variance_control : ndarray of shape (C, D)
        The latter is `cov_var_ctl`.
    variances : ndarray of shape (C, D) or (C, D, D)
        Of each dimension, or whole covariances.
    prefix : str
        What to put before the names of the datasets.
    attributes : dict, optional
        Attributes of the file, such as a fingerprint.

    Raises
    ------
    DataError
        If shapes do not agree, a parameter is out of its range, or the file cannot be written.

    Notes
    -----
    With many dimensions the determinant of the covariance, `det`, leaves the range of float64 (60 variances of 1e-6
    multiply to 1e-360) and `cst` with it; both are written as they come. `a` comes from sums of logarithms instead
    and stays finite; our own reader uses none of the three.
    """
    weights, means, variances, control = (
        np.asarray(x, dtype=np.float64) for x in (weights, means, variances, variance_control)
    )
    full = (*means.shape, means.shape[-1] if means.ndim else 0)
    good = means.ndim == 2 and weights.shape == means.shape[:1] and control.shape == means.shape
    if not good or variances.shape not in (means.shape, full):
        raise DataError(
            f"expected (C,), (C, D), (C, D), (C, D), not {weights.shape}, {means.shape}, {variances.shape}, "
            f"{control.shape}; full covariances are (C, D, D)",
            file=path,
        )
    try:
        with np.errstate(divide="ignore"):
            mixture = MixtureFile(
                weights, means, 1 / variances if variances.ndim == 2 else inverse_matrices(variances), control
            )
        _check_values(mixture)
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error
    with create_hdf5(path, attributes) as file:
        for name, values in _datasets(mixture).items():
            write_column(file, f"{prefix}{name}", values)


def _datasets(mixture: MixtureFile) -> dict[str, NDArray[np.float64]]:
    factors: NDArray[np.float64] = np.zeros(0)
    if mixture.precisions.ndim == 2:
        log_det = -np.log(mixture.precisions).sum(axis=1)
        lengths = (mixture.means**2 * mixture.precisions).sum(axis=1)
    else:
        factors = np.asarray(np.linalg.cholesky(mixture.precisions))
        log_det = -2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        lengths = ((mixture.means[:, None, :] @ factors)[:, 0, :] ** 2).sum(axis=1)
    log_constant = -0.5 * (log_det + mixture.means.shape[1] * np.log(2 * np.pi))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):  # see the notes above
        det, constant = np.exp(log_det), np.exp(log_constant)
        log_weights = np.log(mixture.weights)
    a = lengths - 2 * (log_weights + log_constant)
    return {
        "w": mixture.weights,
        "mu": mixture.means,
        "invcov": mixture.precisions,
        "invchol": factors,
        "cov_var_ctl": mixture.variance_control,
        "cst": constant,
        "det": det,
        "a": a,
    }


def _check_values(mixture: MixtureFile) -> None:
    weights = mixture.weights
    if mixture.means.size == 0:
        raise DataError(f"a mixture without parameters, mu {mixture.means.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or abs(weights.sum() - 1) > _WEIGHT_TOLERANCE:
        raise DataError(
            f"weights should be 0 or more and sum to 1, they sum to {weights.sum():.6g}", remedy="train it again"
        )
    for name, values, positive in (
        ("mu", mixture.means, False),
        ("invcov", mixture.precisions, True),
        ("cov_var_ctl", mixture.variance_control, True),
    ):
        if values.ndim == 3:
            _check_matrices(name, values)
            continue
        bad = ~np.isfinite(values) | ((values <= 0) if positive else False)
        if bad.any():
            component, dimension = np.argwhere(bad)[0]
            expected = "above 0 and finite" if positive else "finite"
            raise DataError(
                f"{name} of component {component}, dimension {dimension} should be {expected}, "
                f"not {values[component, dimension]}",
                remedy="train it again",
            )


def _check_matrices(name: str, matrices: NDArray[np.float64]) -> None:
    """Raise DataError unless all are finite, symmetric and positive definite."""
    for component, matrix in enumerate(matrices):
        good = bool(np.isfinite(matrix).all())
        if good:
            scale = np.sqrt(np.abs(np.diag(matrix)))
            good = bool((np.abs(matrix - matrix.T) <= 1e-6 * np.outer(scale, scale)).all())
        if not good or not np.linalg.eigvalsh(matrix).min() > 0:
            raise DataError(
                f"{name} of component {component} should be finite, symmetric and positive definite",
                remedy="train it again",
            )


@one_blas_thread()
def inverse_matrices(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverses of matrices (C, D, D) that are symmetric and positive definite, symmetric to the bit.

    Raises
    ------
    DataError
        If one is not.
    """
    try:
        inverse_factors = np.linalg.inv(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError as error:
        text = "covariances should be finite, symmetric and positive definite"
        raise DataError(text, remedy="train the mixture again") from error
    inverses = inverse_factors.swapaxes(1, 2) @ inverse_factors
    return np.asarray((inverses + inverses.swapaxes(1, 2)) / 2)
