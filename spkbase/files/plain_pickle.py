"""Pickles of plain data, read without running what they say.

A pickle is a program. This one is run with stand-ins for the few names that containers, strings, numbers, NumPy arrays
and PyTorch tensors need; any other name ends the reading, before anything is called. The stand-ins cannot be changed by
the pickle, and no code of NumPy or PyTorch sees the contents before sizes and types were checked. PyTorch is not
needed: a tensor's storage is a small file of its own within the pickle, which is read here in the same way.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files.pickle_guard import check_pickle

_DTYPE = re.compile(r"([<>=|]?)([fiu][1248]|b1|[US][1-9][0-9]{0,4})")
_STORAGES = {"Half": "<f2", "Float": "<f4", "Double": "<f8", "BFloat16": "<u2", "Long": "<i8", "Int": "<i4"}
_TORCH_MAGIC, _TORCH_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


class RefusedError(DataError):
    """A pickle asked for a name that plain data do not need."""


def read_pickle(path: str | Path) -> Any:
    """Read a pickle of containers, strings, numbers, arrays and tensors; tensors become arrays.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    RefusedError
        If the pickle asks for anything else; nothing was run.
    DataError
        If the file cannot be read, or is no whole pickle.
    """
    try:
        return load_plain(Path(path).read_bytes())
    except _Refused as error:
        raise RefusedError(
            f"is a pickle that asks for {error.name}, which is no part of plain data: nothing of it was run",
            file=path,
            remedy="do not trust this file",
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except Exception as error:  # a broken pickle can raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"cannot be read as a pickle of plain data: {reason}", file=path, remedy="write it again"
        ) from None


def load_plain(raw: bytes) -> Any:
    """Return what a pickle holds, of containers, strings, numbers, arrays and tensors.

    Raises
    ------
    Exception
        Of any kind if it is broken, `pickle.UnpicklingError` if it asks for anything else; nothing of it was run.
    """
    return _plain(_load(io.BytesIO(raw)), {})


class _Refused(pickle.UnpicklingError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not admitted")
        self.name = name


class _Fixed:
    """Something that a pickle may hold but not change: it has no `__dict__`, and setting an attribute is an error."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise pickle.UnpicklingError(f"a pickle may not set {name!r}")


class _Call(_Fixed):
    """Stands for a function or a class that is called."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class _Name(_Fixed):
    """Stands for a class that is only named, such as the type of a tensor's storage."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)


class _DType:
    """Stands for numpy.dtype."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: object) -> None:
        match = _DTYPE.fullmatch(code) if isinstance(code, str) else None
        if match is None:
            raise pickle.UnpicklingError(f"an array of {code!r}, expected numbers or text")
        self.order, self.code = match[1] or "=", match[2]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">", "|", "="):
            self.order = state[1]

    def read(self, raw: bytes) -> NDArray[Any]:
        return np.frombuffer(raw, np.dtype(self.order + self.code))


class _Array:
    """Stands for numpy.ndarray while its state is not known."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> NDArray[Any]:
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise pickle.UnpicklingError("an array without contents")
        _, shape, dtype, is_fortran, raw = self.state
        if isinstance(raw, str):  # as Python 2 wrote it
            raw = raw.encode("latin-1")
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array of objects, expected numbers or text")
        return dtype.read(raw).reshape(_sizes(shape), order="F" if is_fortran else "C")


class _Storage(_Fixed):
    """Stands for the memory of a tensor."""

    __slots__ = ("values",)
    values: NDArray[Any]

    def __init__(self, values: NDArray[Any]) -> None:
        object.__setattr__(self, "values", values)


def _load(stream: io.BytesIO, kind: type[_Unpickler] | None = None) -> Any:
    """Read the pickle where the stream is, after a look at the sizes that it names."""
    start = stream.tell()
    check_pickle(stream.getbuffer()[start:].tobytes())
    return (kind or _Unpickler)(stream).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None


class _TorchUnpickler(_Unpickler):
    """Reads the description of one storage: its kind, key and size."""

    def persistent_load(self, pid: Any) -> Any:
        kind, key, size = pid[1], pid[2], pid[4]
        if pid[0] != "storage" or not isinstance(kind, _Name) or not isinstance(size, int):
            raise pickle.UnpicklingError("a tensor without a storage")
        return (kind.name, str(key), size)


def _load_storage(raw: Any) -> _Storage:
    """Read what `torch.save` makes of a storage in its older form: five pickles, then sizes and bytes."""
    if not isinstance(raw, bytes):
        raise pickle.UnpicklingError("a tensor without bytes")
    stream = io.BytesIO(raw)
    magic, protocol, system = (_load(stream) for _ in range(3))
    if magic != _TORCH_MAGIC or protocol != _TORCH_PROTOCOL or system.get("little_endian") is not True:
        raise pickle.UnpicklingError("a tensor in an unknown form")
    kind, key, size = _load(stream, _TorchUnpickler)
    if _load(stream) != [key]:
        raise pickle.UnpicklingError("a tensor with several storages")
    dtype = np.dtype(_STORAGES[kind])
    stored = int.from_bytes(stream.read(8), "little", signed=True)
    contents = stream.read()
    if stored != size or len(contents) != size * dtype.itemsize:
        raise pickle.UnpicklingError("a tensor whose storage is cut short")
    values = np.frombuffer(contents, dtype)
    if kind == "BFloat16":  # the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return _Storage(values)


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: object) -> NDArray[Any]:
    """Cut a tensor out of its storage, within its bounds."""
    shape, steps = _sizes(size), _sizes(stride)
    if not isinstance(storage, _Storage) or len(shape) != len(steps):
        raise pickle.UnpicklingError("a tensor without a storage")
    values, (start,) = storage.values, _sizes((offset,))
    if math.prod(shape) == 0:
        return np.empty(shape, values.dtype)
    last = start + sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
    if last >= len(values) or math.prod(shape) > len(values):
        raise pickle.UnpicklingError("a tensor beyond its storage")
    places = np.full(shape, start)
    for axis, (length, step) in enumerate(zip(shape, steps, strict=True)):
        places += (np.arange(length) * step).reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return values[places]


def _sizes(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and 0 <= size < 1 << 48 for size in shape):
        raise pickle.UnpicklingError(f"expected sizes, got {shape!r:.60}")
    return shape


def _from_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.state = (1, shape, dtype, order == "F", bytes(raw) if isinstance(raw, (bytes, bytearray)) else None)
    return array


def _scalar(dtype: Any, raw: Any) -> Any:
    if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
        raise pickle.UnpicklingError("a number without bytes")
    return dtype.read(raw)[0].item()


def _encode(text: Any, encoding: Any = "utf-8") -> bytes:
    """Bytes as protocol 2 keeps them."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError(f"text in {encoding!r:.60} is not admitted")
    return text.encode("latin-1")


def _as_tuple(values: Any = ()) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
        raise pickle.UnpicklingError("a size that is no list")
    return tuple(values)


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    return dict(pairs)


_ARRAYS: dict[str, Any] = {
    "multiarray._reconstruct": _Call(lambda *_: _Array()),
    "multiarray.scalar": _Call(_scalar),
    "numeric._frombuffer": _Call(_from_buffer),
}
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Name("ndarray"),
    ("numpy", "dtype"): _Call(_DType),
    ("_codecs", "encode"): _Call(_encode),
    ("collections", "OrderedDict"): _Call(_ordered),
    ("collections", "defaultdict"): _Call(lambda *_: {}),
    ("torch", "Size"): _Call(_as_tuple),
    ("torch._utils", "_rebuild_tensor"): _Call(_rebuild_tensor),
    ("torch._utils", "_rebuild_tensor_v2"): _Call(_rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): _Call(lambda tensor, *_: tensor),
    ("torch.storage", "_load_from_bytes"): _Call(_load_storage),
    **{(module, name): _Name(name) for module in ("builtins", "__builtin__") for name in ("list", "dict", "int")},
    **{("torch", f"{kind}Storage"): _Name(kind) for kind in _STORAGES},
    **{
        (f"numpy.{core}.{path.split('.')[0]}", path.split(".")[1]): stand_in
        for core in ("core", "_core")
        for path, stand_in in _ARRAYS.items()
    },
}


def _plain(value: Any, done: dict[int, Any]) -> Any:
    """Put arrays in the place of their stand-ins, and refuse stand-ins that are no data.

    What a pickle names again and again is done once, so that a small file cannot ask for a large amount of work.
    """
    if id(value) not in done:
        done[id(value)] = _converted(value, done)
    return done[id(value)]


def _converted(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, _Array):
        return value.array()
    if isinstance(value, dict):
        return {_plain(name, done): _plain(item, done) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)([_plain(item, done) for item in value])
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.ndarray)):
        return value
    raise pickle.UnpicklingError(f"expected plain data, found {type(value).__name__.lstrip('_')}")
