"""Files as `torch.save` writes them, written without it: for tests of what reads them."""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np


class Tensors(OrderedDict):
    """A state_dict: it has an attribute, as PyTorch's has."""


class _Storage:
    def __init__(self, key: str, size: int) -> None:
        self.key, self.size = key, size


def write_torch(path: Path, content: Any) -> Path:
    """Write a dictionary or an array, float32 arrays as tensors and `Tensors` as a state_dict, in the form of today."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")
    kind = type("FloatStorage", (), {"__module__": "torch"})

    def rebuild(*arguments: Any) -> None: ...

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    torch.FloatStorage, torch._utils, utils._rebuild_tensor_v2 = kind, utils, rebuild  # type: ignore[attr-defined]
    storages: list[bytes] = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return (
                ("storage", kind, value.key, "cpu", value.size)
                if isinstance(value, _Storage)
                else None
            )

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, np.ndarray):
                assert value.dtype == np.float32
                storages.append(value.tobytes())
                steps = tuple(step // 4 for step in np.ascontiguousarray(value).strides)
                storage = _Storage(str(len(storages) - 1), value.size)
                return rebuild, (storage, 0, value.shape, steps, False, OrderedDict())
            if type(value) is Tensors:
                return (
                    OrderedDict,
                    (),
                    {"_metadata": {"": {"version": 1}}},
                    None,
                    iter(value.items()),
                )
            return NotImplemented

    stream = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        Pickler(stream, protocol=2).dump(content)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", stream.getvalue())
        for key, raw in enumerate(storages):
            archive.writestr(f"archive/data/{key}", raw)
        archive.writestr("archive/version", "3\n")
    return path
