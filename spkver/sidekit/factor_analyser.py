"""SIDEKIT's FactorAnalyser: the matrices of a total variability model, a PLDA or a joint factor analysis.

In HDF5, ``fa/mean``, ``fa/f``, ``fa/g``, ``fa/h`` and ``fa/sigma`` (those that there are) and ``fa/kind``, five int16
that say which: 1 for each that stands in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line
from spkver.sidekit.hdf5 import create_hdf5, open_hdf5, read_array

_NAMES = {"mean": "mean", "loadings": "f", "channel": "g", "diagonal": "h", "residual": "sigma"}  # in the order of kind


@one_line
@dataclass(frozen=True, eq=False)
class FactorAnalyser:
    """Matrices of a factor analysis in R dimensions; None for those that are not there.

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
        If there is none, shapes do not agree, or a number is not finite.
    """

    mean: NDArray[np.float64] | None = None
    loadings: NDArray[np.float64] | None = None
    channel: NDArray[np.float64] | None = None
    diagonal: NDArray[np.float64] | None = None
    residual: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        axes = {"mean": (1,), "loadings": (2,), "channel": (2,), "diagonal": (1,), "residual": (1, 2)}
        lengths: dict[str, int] = {}
        for field in fields(self):
            value: Any = getattr(self, field.name)
            array = np.zeros(0) if value is None else np.asarray(value, np.float64)
            if not array.size:  # SIDEKIT writes an H of no numbers
                object.__setattr__(self, field.name, None)
                continue
            if array.ndim not in axes[field.name]:
                raise DataError(f"{field.name} of a FactorAnalyser should not have the shape {array.shape}")
            if not np.isfinite(array).all():
                raise DataError(f"{field.name} of a FactorAnalyser holds NaN or infinity", remedy="train it again")
            object.__setattr__(self, field.name, array)
            lengths[field.name] = len(array)
        if not lengths:
            raise DataError("a FactorAnalyser without a matrix")
        square = self.residual is None or self.residual.ndim == 1 or self.residual.shape[0] == self.residual.shape[1]
        if len(set(lengths.values())) > 1 or not square:
            shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in lengths)
            raise DataError(f"matrices of a FactorAnalyser should have one number of rows, not {shapes}")


def read_factor_analyser(path: str | Path) -> FactorAnalyser:
    """Read a FactorAnalyser that SIDEKIT or `write_factor_analyser` wrote.

    Raises
    ------
    DataError
        If the file is missing, broken or of another kind, shapes do not agree, or a number is not finite.
    """
    with open_hdf5(path) as file:
        kind = read_array(file, "fa/kind", kinds="iu", shape=(len(_NAMES),))
        there = [field for field, given in zip(_NAMES, kind.tolist(), strict=True) if given]
        return FactorAnalyser(**{field: read_array(file, f"fa/{_NAMES[field]}", kinds="f") for field in there})


def write_factor_analyser(path: str | Path, analyser: FactorAnalyser) -> None:
    """Write a FactorAnalyser as SIDEKIT does, whole or not at all.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    with create_hdf5(path) as file:
        for field, name in _NAMES.items():
            if getattr(analyser, field) is not None:
                file.create_dataset(f"fa/{name}", data=getattr(analyser, field), compression="gzip", fletcher32=True)
        kind = np.array([getattr(analyser, field) is not None for field in _NAMES], np.int16)
        file.create_dataset("fa/kind", data=kind, compression="gzip", fletcher32=True)
