"""Access to the committed golden numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import soundfile

GOLDEN = Path(__file__).resolve().parent / "data" / "golden"


def _maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


signed_sums = _maker().signed_sums


def load(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def samples(name: str) -> np.ndarray:
    """16-bit samples of a synthetic recording."""
    return soundfile.read(GOLDEN / f"{name}.flac", dtype="int16")[0]


def objects(array: np.ndarray) -> np.ndarray:
    return np.array(array.tolist(), dtype=object)
