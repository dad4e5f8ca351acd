"""Vectors in files and in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spkbase.arrays import StoredArray
from spkver.vectors.supervectors import Supervectors


def stored(array: np.ndarray, folder: Path, name: str = "stored") -> StoredArray:
    """The same array in a file, not at its beginning."""
    path = folder / f"{name}.raw"
    path.write_bytes(b"x" * 24 + np.ascontiguousarray(array).tobytes())
    return StoredArray(path, 24, array.shape, array.dtype)


def named(ids, vectors) -> Supervectors:
    """Vectors with ids, which stand for models and segments alike."""
    return Supervectors(ids, ids, vectors)
