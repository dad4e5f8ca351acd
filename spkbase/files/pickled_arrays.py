"""Stand-ins for what a pickle of NumPy arrays calls and names; see `spkbase.files.plain_pickle`.

None of them can be changed by the pickle, and NumPy sees sizes and types only after they were checked.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

_DTYPE = re.compile(r"([<>=|]?)([fiu][1248]|b1|[US][1-9][0-9]{0,4})")


class Fixed:
    """Something that a pickle may hold but not change: it has no `__dict__`, and setting an attribute is an error."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise pickle.UnpicklingError(f"a pickle may not set {name!r}")


class Call(Fixed):
    """Stands for a function or a class that is called."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class Name(Fixed):
    """Stands for a class that is only named, such as the type of a tensor's storage."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)


class _DType:
    """Stands for numpy.dtype."""

    __slots__ = ("code", "dtype", "order")

    def __init__(self, code: Any, *_: object) -> None:
        match = _DTYPE.fullmatch(code) if isinstance(code, str) else None
        if match is None:
            raise pickle.UnpicklingError(f"an array of {code!r}, expected numbers or text")
        self.order, self.code = match[1] or "=", match[2]
        self.dtype = np.dtype(self.order + self.code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">", "|", "="):
            self.order = state[1]
            self.dtype = np.dtype(self.order + self.code)

    def read(self, raw: bytes) -> NDArray[Any]:
        return np.frombuffer(raw, self.dtype)


class PickledArray:
    """Stands for numpy.ndarray while its state is not known."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> NDArray[Any]:
        """Return the array; an error if its state is none of an array of numbers or text."""
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise pickle.UnpicklingError("an array without contents")
        _, shape, dtype, is_fortran, raw = self.state
        if isinstance(raw, str):  # as Python 2 wrote it
            raw = raw.encode("latin-1")
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array of objects, expected numbers or text")
        flat = dtype.read(raw)
        if isinstance(shape, tuple) and shape == flat.shape:
            return flat
        return flat.reshape(sizes(shape), order="F" if is_fortran else "C")


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as it is; an error if it is no tuple of sizes."""
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and 0 <= size < 1 << 48 for size in shape):
        raise pickle.UnpicklingError(f"expected sizes, got {shape!r:.60}")
    return shape


def _from_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> PickledArray:
    array = PickledArray()
    array.state = (1, shape, dtype, order == "F", bytes(raw) if isinstance(raw, (bytes, bytearray)) else None)
    return array


def _scalar(dtype: Any, raw: Any) -> Any:
    if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
        raise pickle.UnpicklingError("a number without bytes")
    return dtype.read(raw)[0].item()


_FUNCTIONS: dict[str, Any] = {
    "multiarray._reconstruct": Call(lambda *_: PickledArray()),
    "multiarray.scalar": Call(_scalar),
    "numeric._frombuffer": Call(_from_buffer),
}
ARRAYS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): Name("ndarray"),
    ("numpy", "dtype"): Call(_DType),
    **{
        (f"numpy.{core}.{path.split('.')[0]}", path.split(".")[1]): stand_in
        for core in ("core", "_core")
        for path, stand_in in _FUNCTIONS.items()
    },
}
"""By module and name."""
