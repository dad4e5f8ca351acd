"""Plain data in pickles, npz and PyTorch files, read without executing their code and without PyTorch.

A pickle is a program. It runs here with stand-ins for the few names that containers, strings, numbers, NumPy arrays and
PyTorch tensors need; any other name stops the reading before anything is called. A pickle cannot change the stand-ins,
and NumPy gets only checked sizes and types, because its own functions would let a pickle create pointers.

`torch.save` writes a zip with a pickle, `data.pkl`, and one member for each storage of a tensor. Its older form, which
the GE2E weights and pickled tensors still use, consists of five pickles and the storages.
"""

from __future__ import annotations

import io
import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.lib.format as npy
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import check_data

OLDER_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""First bytes of a file in PyTorch's older form."""

MAP_ABOVE = 1 << 26
"""Size in bytes above which an array that is contiguous in its file is memory-mapped."""

_DTYPE = re.compile(r"([<>=|]?)([fiu][1248]|b1|O8?|[US][1-9][0-9]{0,4})")
_STORAGES = {
    **{
        "HalfStorage": "<f2",
        "FloatStorage": "<f4",
        "DoubleStorage": "<f8",
        "BFloat16Storage": "<u2",
    },
    **{
        "LongStorage": "<i8",
        "IntStorage": "<i4",
        "ShortStorage": "<i2",
        "CharStorage": "i1",
        "ByteStorage": "u1",
    },
    "BoolStorage": "?",
}


def read_npz(
    source: Any, *names: str, file: str | Path | None = None, allow_pickle: bool | None = None
) -> dict[str, Any]:
    """Read arrays of an npz.

    Parameters
    ----------
    source : path, or binary file
    *names : str
        Names of arrays to read, if they exist; by default all.
    file : path, optional
        The file for error messages; by default `source`.
    allow_pickle : bool, optional
        Read arrays of objects too, as `read_pickle` does; they become lists, or the element of an array without axes.
        None has the effect of false, for callers whose users cannot choose.

    Raises
    ------
    DataError
        If it cannot be read, is broken, or holds Python objects that are not allowed or not plain data.
    """
    arrays: dict[str, Any] = {}
    with _one_error(source if file is None else file, "npz"), zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or (names and name not in names):
                continue
            with archive.open(member) as stream:
                arrays[name] = _read_array(stream, allow_pickle)
    return arrays


def read_npy(
    path: str | Path, *, map_above: int = MAP_ABOVE, allow_pickle: bool | None = None
) -> Any:
    """Read one array like `read_npz`, or map it if the file has more than `map_above` bytes."""
    with _one_error(path, "npy"), Path(path).open("rb") as stream:
        if Path(path).stat().st_size > map_above:
            with suppress(ValueError):  # arrays of objects cannot be memory-mapped
                return np.load(path, mmap_mode="r", allow_pickle=False)
        return _read_array(stream, allow_pickle)


def read_pickle(path: str | Path) -> Any:
    """Read a pickle of containers, strings, numbers, arrays and tensors; tensors become arrays.

    Raises
    ------
    DataError
        If the pickle asks for anything else (none of its code was run), cannot be read, or is incomplete.
    """
    with _one_error(path, "a pickle of plain data"):
        return load_plain(Path(path).read_bytes())


def load_plain(raw: bytes) -> Any:
    """Return the contents of a pickle like `read_pickle`; a broken pickle may raise any error."""
    return _plain(_PlainUnpickler(io.BytesIO(raw)).load(), {})


def read_torch(path: str | Path) -> Any:
    """Read containers, strings, numbers and tensors that `torch.save` wrote; tensors become arrays.

    Parameters
    ----------
    path : path
        The file: the zip of PyTorch 1.6 and later, or the older form.

    Returns
    -------
    object
        Arrays are read-only and have the tensors' types (float32 for bfloat16); arrays above 64 MiB are memory-mapped.

    Raises
    ------
    DataError
        If it asks for anything else, such as a class (none of its code was run), cannot be read or is cut off.
    """
    path = Path(path)
    with _one_error(path, "a file of PyTorch"), path.open("rb") as handle:
        if handle.read(len(OLDER_TORCH)) == OLDER_TORCH:
            handle.seek(0)
            return _plain(_load_older(handle.read()), {})
        with zipfile.ZipFile(handle) as archive:
            return _plain(_load_zip(path, archive), {})


def _read_array(stream: Any, allow_pickle: bool | None) -> Any:
    version = npy.read_magic(stream)
    if version == (1, 0):
        read_header = npy.read_array_header_1_0
    else:
        read_header = npy.read_array_header_2_0
    _, _, dtype = read_header(stream)
    if not dtype.hasobject:
        stream.seek(0)
        return _checked(npy.read_array(stream, allow_pickle=False))
    if allow_pickle:
        return load_plain(stream.read())  # the header has been read
    remedy = "write ids and speakers as text: numpy.array(ids, str)"
    if allow_pickle is not None:
        remedy = f"allow_pickle=True reads plain ones without running them; or {remedy}"
    raise DataError("holds Python objects, which can carry programs", remedy=remedy)


@contextmanager
def _one_error(path: Any, form: str) -> Iterator[None]:
    """Turn any error that a damaged file raises into one DataError with the file."""
    try:
        yield
    except DataError as error:
        raise DataError(error.text, file=error.file or path, remedy=error.remedy) from None
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}", file=path, remedy="check the path"
        ) from error
    except Exception as error:  # a broken file can raise anything
        check_data(path)
        if str(error):
            reason = str(error).splitlines()[0]
        else:
            reason = type(error).__name__
        remedy = "it may be truncated: copy or write it again"
        raise DataError(f"cannot be read as {form}: {reason}", file=path, remedy=remedy) from error


def _checked(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "U":
        # fail here, not later, if a number is not a character
        "".join(array.ravel().tolist()).encode()
    return array


def _member_start(path: str | Path, info: zipfile.ZipInfo) -> int:
    """Return the offset of an uncompressed member's bytes in a zip."""
    with Path(path).open("rb") as handle:
        handle.seek(info.header_offset)
        head = handle.read(30)
    return (
        info.header_offset
        + 30
        + int.from_bytes(head[26:28], "little")
        + int.from_bytes(head[28:30], "little")
    )


def _load_zip(path: Path, archive: zipfile.ZipFile) -> Any:
    pickles = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise DataError(
            "is a zip without a single data.pkl as written by torch.save",
            remedy="write it with torch.save",
        )
    folder = pickles[0].removesuffix("data.pkl")
    if (
        f"{folder}byteorder" in archive.namelist()
        and archive.read(f"{folder}byteorder") != b"little"
    ):
        raise DataError("was written on a big-endian machine", remedy="write it as npz")

    def fetch(key: str, kind: str, size: int) -> NDArray[Any]:
        info = archive.getinfo(f"{folder}data/{key}")
        if info.file_size != size * np.dtype(_STORAGES[kind]).itemsize:
            raise pickle.UnpicklingError("a tensor whose storage is cut short")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size <= MAP_ABOVE:
            return _numbers(archive.read(info), kind)
        return _numbers(
            np.memmap(path, np.uint8, "r", _member_start(path, info), (info.file_size,)), kind
        )

    return _TorchUnpickler(io.BytesIO(archive.read(pickles[0])), fetch).load()


def _load_older(raw: bytes) -> Any:
    def reserve(_key: str, kind: str, size: int) -> NDArray[Any]:
        if size > len(raw):
            raise pickle.UnpicklingError("a tensor whose storage is cut short")
        return np.empty_like(_numbers(bytes(size * np.dtype(_STORAGES[kind]).itemsize), kind))

    stream = io.BytesIO(raw)
    _magic, _protocol, system = (_Unpickler(stream).load() for _ in range(3))
    if system["little_endian"] is not True:
        raise pickle.UnpicklingError("a tensor from a big-endian machine")
    tensors = _TorchUnpickler(stream, reserve)
    value = tensors.load()
    keys = list(map(str, _Unpickler(stream).load()))
    if sorted(keys) != sorted(tensors.storages):
        raise pickle.UnpicklingError("tensors whose storages are not those in the file")
    for key in keys:
        storage = tensors.storages[key]
        size = int.from_bytes(stream.read(8), "little")
        content = stream.read(len(storage.values) * np.dtype(_STORAGES[storage.kind]).itemsize)
        values = _numbers(content, storage.kind)
        if not size == len(values) == len(storage.values):
            raise pickle.UnpicklingError("a tensor whose storage is cut short")
        storage.values[:] = values
    return value


def _numbers(raw: Any, kind: str) -> NDArray[Any]:
    """Return the numbers of a storage; bfloat16 numbers are the upper halves of float32."""
    values = np.frombuffer(raw, _STORAGES[kind])
    if kind == "BFloat16Storage":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


class _Fixed:
    """Base class of stand-ins that a pickle may use but not change."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a pickle may not change the functions that it calls")


class _Call(_Fixed):
    """A function that a pickle may call."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class _Storage(_Fixed):
    """The storage of a tensor."""

    __slots__ = ("kind", "values")

    def __init__(self, kind: str, values: NDArray[Any]) -> None:
        self.kind = kind
        self.values = values


class _DType:
    """Stands for numpy.dtype, for numbers and text."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: object) -> None:
        match = _DTYPE.fullmatch(code) if isinstance(code, str) else None
        if match is None:
            raise pickle.UnpicklingError(f"an array of {code!r}, expected numbers or text")
        self.order = match[1] or "="
        self.code = match[2]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">", "|", "="):
            self.order = state[1]

    def read(self, raw: bytes) -> NDArray[Any]:
        return np.frombuffer(raw, self.order + self.code)


class _Array:
    """Stands for numpy.ndarray; its contents follow in the pickle."""

    __slots__ = ("state",)

    def __init__(self, *_: object) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> Any:
        _, shape, dtype, is_fortran, raw = self.state
        order: Literal["F", "C"] = "F" if is_fortran else "C"
        if isinstance(raw, list):
            objects = np.fromiter(raw, object, len(raw))
            return objects.reshape(_sizes(shape), order=order).tolist()
        if not isinstance(dtype, _DType):
            raise pickle.UnpicklingError("an array of objects, expected numbers or text")
        if isinstance(raw, str):  # written by Python 2
            raw = raw.encode("latin-1")
        return dtype.read(raw).reshape(_sizes(shape), order=order)


class _EmbeddingSet:
    """Stands for the EmbeddingSet of kiwano and Speaker-Linkability: an object whose one attribute is a dictionary."""

    __slots__ = ("content",)

    def __setstate__(self, state: Any) -> None:
        self.content = state["h"]


class _Ordered(dict[Any, Any]):
    """Stands for collections.OrderedDict; drops attributes, such as the versions that `state_dict` notes."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Ignore the attributes."""


def _sizes(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(
        isinstance(size, int) and 0 <= size < 1 << 48 for size in shape
    ):
        raise pickle.UnpicklingError(f"expected sizes, got {shape!r:.60}")
    return shape


def _from_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.state = 1, shape, dtype, order == "F", raw
    return array


def _scalar(dtype: Any, raw: Any) -> Any:
    return dtype.read(raw)[0].item()


def _tensor(storage: Any, offset: Any, shape: Any, steps: Any, *_: object) -> NDArray[Any]:
    """Return a tensor as a view of its storage."""
    (offset,) = _sizes((offset,))
    shape = _sizes(shape)
    steps = _sizes(steps)
    if not isinstance(storage, _Storage) or len(shape) != len(steps):
        raise pickle.UnpicklingError("a tensor without a storage")
    values = storage.values
    count = math.prod(shape)
    if not count:
        return np.empty(shape, values.dtype)
    last = offset + sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
    if last >= len(values) or count > len(values):
        raise pickle.UnpicklingError("a tensor beyond its storage")
    width = values.itemsize
    return np.lib.stride_tricks.as_strided(
        values[offset:], shape, [step * width for step in steps], writeable=False
    )


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes that protocol 2 stored as text."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r:.60} is not admitted")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # names that are never called are represented by themselves
    ("numpy", "dtype"): _Call(_DType),
    ("numpy.core.multiarray", "_reconstruct"): _Call(_Array),
    ("numpy._core.multiarray", "_reconstruct"): _Call(_Array),
    ("numpy.core.multiarray", "scalar"): _Call(_scalar),
    ("numpy._core.multiarray", "scalar"): _Call(_scalar),
    ("numpy.core.numeric", "_frombuffer"): _Call(_from_buffer),
    ("numpy._core.numeric", "_frombuffer"): _Call(_from_buffer),
    ("torch", "Size"): _Call(lambda values=(): tuple(values)),
    ("torch._utils", "_rebuild_tensor"): _Call(_tensor),
    ("torch._utils", "_rebuild_tensor_v2"): _Call(_tensor),
    ("torch._utils", "_rebuild_parameter"): _Call(lambda tensor, *_: tensor),
    **{("torch", kind): kind for kind in _STORAGES},
    ("_codecs", "encode"): _Call(_encode),
    ("collections", "OrderedDict"): _Call(lambda pairs=(): _Ordered(pairs)),
    ("collections", "defaultdict"): _Call(lambda *_: {}),
    **{("builtins", name): name for name in ("list", "dict", "int")},
    **{("__builtin__", name): name for name in ("list", "dict", "int")},  # names used by Python 2
}


class _Unpickler(pickle.Unpickler):
    """Provides stand-ins for the names that plain data need, and refuses all other names."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "EmbeddingSet":  # whatever the module
            return _EmbeddingSet
        if (module, name) not in _ALLOWED:
            text = (
                f"asks for {module}.{name}, which is not part of plain data: nothing of it was run"
            )
            remedy = "do not trust this file; if it is yours, write npz: numpy.savez(path, ids=ids, vectors=vectors)"
            raise DataError(text, remedy=remedy)
        return _ALLOWED[module, name]


class _PlainUnpickler(_Unpickler):
    """Reads a pickle in which each storage is a small PyTorch file."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _Call(_load_older)
        return super().find_class(module, name)


class _TorchUnpickler(_Unpickler):
    """Reads the pickle of a PyTorch file; `fetch` returns a storage by key, kind and number of values."""

    def __init__(self, stream: io.BytesIO, fetch: Callable[[str, str, int], NDArray[Any]]) -> None:
        super().__init__(stream)
        self.fetch = fetch
        self.storages: dict[str, _Storage] = {}

    def persistent_load(self, pid: Any) -> _Storage:
        entry, kind, key, _device, size, *_ = pid
        if entry != "storage" or kind not in _STORAGES or not _sizes((size,)):
            raise pickle.UnpicklingError("a tensor without a storage")
        key = str(key)
        if key not in self.storages:
            self.storages[key] = _Storage(kind, self.fetch(key, kind, size))
        if (self.storages[key].kind, len(self.storages[key].values)) != (kind, size):
            raise pickle.UnpicklingError("a storage with two conflicting descriptions")
        return self.storages[key]


def _plain(value: Any, done: dict[int, Any]) -> Any:
    """Replace stand-ins by their arrays, and refuse stand-ins that are not data.

    Repeated objects are converted once.
    """
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.ndarray)):
        return value
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, _Array):
        made: Any = value.array()
        if not isinstance(made, np.ndarray):
            made = _plain(made, done)
    elif isinstance(value, _EmbeddingSet):
        made = _plain(value.content, done)
    elif isinstance(value, dict):
        made = {_plain(name, done): _plain(item, done) for name, item in value.items()}
    elif isinstance(value, (list, tuple, set, frozenset)):
        made = type(value)([_plain(item, done) for item in value])
    else:
        raise pickle.UnpicklingError(
            f"expected plain data, found {type(value).__name__.lstrip('_')}"
        )
    done[id(value)] = made
    return made
