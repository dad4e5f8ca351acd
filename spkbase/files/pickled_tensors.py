"""Stand-ins for what a pickle of PyTorch's tensors calls and names, without PyTorch.

A tensor is a part of a storage: (offset, sizes, strides). The storage is described in the pickle by its kind, a key
and a number of values; its bytes stand elsewhere in the file and are given to it when the pickle has been read.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.files.pickled_arrays import Call, Fixed, Name, sizes

_KINDS = {
    **{"Half": "<f2", "Float": "<f4", "Double": "<f8", "BFloat16": "<u2"},
    **{"Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?"},
}


class Storage(Fixed):
    """Stands for the memory of tensors, first without its values."""

    __slots__ = ("_values", "key", "kind", "size")
    key: str
    kind: str
    size: int
    _values: NDArray[Any] | None

    def __init__(self, kind: str, key: str, size: int) -> None:
        for name, value in (("kind", kind), ("key", key), ("size", size), ("_values", None)):
            object.__setattr__(self, name, value)

    @property
    def n_bytes(self) -> int:
        """How many bytes it has."""
        return self.size * np.dtype(_KINDS[self.kind]).itemsize

    def fill(self, raw: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Give it its bytes; an error if they are not as many as it says."""
        if len(raw) != self.n_bytes:
            raise pickle.UnpicklingError("a tensor whose storage is cut short")
        values = np.frombuffer(raw, _KINDS[self.kind])
        if self.kind == "BFloat16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        object.__setattr__(self, "_values", values)

    def cut(self, start: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> NDArray[Any]:
        """Return a part of it, not copied; an error if it goes beyond."""
        values = self._values
        if values is None:
            raise pickle.UnpicklingError("a tensor without a storage")
        count = math.prod(shape)
        if count == 0:
            return np.empty(shape, values.dtype)
        last = start + sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
        if last >= len(values) or count > len(values):
            raise pickle.UnpicklingError("a tensor beyond its storage")
        width = values.itemsize
        return np.lib.stride_tricks.as_strided(values[start:], shape, [step * width for step in steps], writeable=False)


class Tensor(Fixed):
    """Stands for a tensor while its storage has no values."""

    __slots__ = ("place", "storage")
    place: tuple[int, tuple[int, ...], tuple[int, ...]]
    storage: Storage

    def __init__(self, storage: Any, offset: Any, shape: Any, steps: Any, *_: object) -> None:
        if not isinstance(storage, Storage) or len(sizes(shape)) != len(sizes(steps)):
            raise pickle.UnpicklingError("a tensor without a storage")
        object.__setattr__(self, "storage", storage)
        object.__setattr__(self, "place", (*sizes((offset,)), shape, steps))

    def array(self) -> NDArray[Any]:
        """Return it as an array, of float32 where it is of bfloat16."""
        return self.storage.cut(*self.place)


def find_storage(pid: Any, known: dict[str, Storage]) -> Storage:
    """Return the storage that a pickle describes; one that was named before stays the same."""
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or any(part is not None for part in pid[5:]):
        raise pickle.UnpicklingError("a tensor without a storage")
    kind, key, size = pid[1], str(pid[2]), pid[4]
    if not isinstance(kind, Name) or kind.name not in _KINDS or not isinstance(size, int) or not 0 <= size < 1 << 48:
        raise pickle.UnpicklingError("a tensor without a storage")
    storage = known.setdefault(key, Storage(kind.name, key, size))
    if (storage.kind, storage.size) != (kind.name, size):
        raise pickle.UnpicklingError("a storage that is described in two ways")
    return storage


def _as_tuple(values: Any = ()) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
        raise pickle.UnpicklingError("a size that is no list")
    return tuple(values)


TENSORS: dict[tuple[str, str], Any] = {
    ("torch", "Size"): Call(_as_tuple),
    ("torch._utils", "_rebuild_tensor"): Call(Tensor),
    ("torch._utils", "_rebuild_tensor_v2"): Call(Tensor),
    ("torch._utils", "_rebuild_parameter"): Call(lambda tensor, *_: tensor),
    **{("torch", f"{kind}Storage"): Name(kind) for kind in _KINDS},
}
"""By module and name."""
