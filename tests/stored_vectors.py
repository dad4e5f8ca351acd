"""Vectors in files, and calls that are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str, *, most: int | None = None) -> list[object]:
    """Calls of a function from now on; the one after `most` is interrupted."""
    calls: list[object] = []
    original: Callable[..., object] = getattr(module, name)

    def count(*arguments: object, **options: object) -> object:
        if most is not None and len(calls) == most:
            raise KeyboardInterrupt
        calls.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, count)
    return calls
