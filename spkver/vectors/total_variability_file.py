"""Files of total variability matrices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spkbase.errors import DataError, few
from spkbase.files import check_forms, read_arrays, write_arrays
from spkver.vectors.total_variability import TotalVariability

_KIND = "total variability"
_NAMES = ("loadings", "means", "factors", "weights", "log_likelihoods")


def write_total_variability(
    path: str | Path, model: TotalVariability, *, attributes: Mapping[str, Any] | None = None
) -> None:
    """Write a matrix with its mixture's means and whitening to an HDF5 file, whole or not at all."""
    arrays = {name: getattr(model, name) for name in _NAMES}
    write_arrays(path, arrays, attributes={"kind": _KIND, **(attributes or {})})


def read_total_variability(path: str | Path) -> TotalVariability:
    """Read a matrix that `write_total_variability` has written.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, or what it holds is no such matrix.
    """
    arrays = read_arrays(path)
    if "loadings" not in arrays or not set(arrays) <= set(
        _NAMES
    ):  # not by an attribute of text, which the library cannot read of damaged files
        text = f"expected a total variability matrix with {', '.join(_NAMES)}, got {few(sorted(arrays)) or 'nothing'}"
        raise DataError(text, file=path, remedy="give a file of write_total_variability")
    diagonal = getattr(arrays.get("factors"), "ndim", 2) == 2
    check_forms(
        path, arrays, loadings="f3", means="f2", factors="f2" if diagonal else "f3", weights="f1", log_likelihoods="f1"
    )
    try:
        return TotalVariability(*(arrays[name].astype(np.float64, copy=False) for name in _NAMES))
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error
