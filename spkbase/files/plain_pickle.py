"""Pickles of plain data, read without running what they say.

A pickle is a program. This one is run with stand-ins for the few names that containers, strings, numbers, NumPy arrays
and PyTorch tensors need; any other name ends the reading, before anything is called. The stand-ins cannot be changed by
the pickle, and no code of NumPy or PyTorch sees the contents before sizes and types were checked. PyTorch is not
needed: a tensor's storage is a small file of its own within the pickle, which is read here in the same way
(`spkbase.files.torch_files` reads whole files of PyTorch).
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spkbase.errors import DataError
from spkbase.files.pickle_guard import check_pickle
from spkbase.files.pickled_arrays import ARRAYS, Call, Name, PickledArray
from spkbase.files.pickled_tensors import TENSORS, Storage, Tensor, find_storage

Reader = TypeVar("Reader", bound="_Unpickler")
_TORCH_MAGIC, _TORCH_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_WAY_OUT = "do not trust this file; your own: write npz where it was made, numpy.savez(path, ids=ids, vectors=vectors)"


class RefusedError(DataError):
    """A pickle asked for a name that plain data do not need."""


class _Refused(pickle.UnpicklingError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not admitted")
        self.name = name


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
    return read_with(path, "a pickle", lambda path: load_plain(path.read_bytes()))


def load_plain(raw: bytes) -> Any:
    """Return what a pickle holds, of containers, strings, numbers, arrays and tensors.

    Raises
    ------
    Exception
        Of any kind if it is broken, `pickle.UnpicklingError` if it asks for anything else; nothing of it was run.
    """
    unpickler, _ = _reader(raw, 0, _PlainUnpickler)
    return as_plain_data(unpickler.load(), {})


def read_with(path: str | Path, what: str, load: Callable[[Path], Any]) -> Any:
    """Read a file by a function that may raise anything; one error says what was wrong, as for `read_pickle`."""
    try:
        return load(Path(path))
    except _Refused as error:
        raise RefusedError(
            f"is {what} that asks for {error.name}, which is no part of plain data: nothing of it was run",
            file=path,
            remedy=_WAY_OUT,
        ) from None
    except DataError as error:
        raise DataError(error.text, file=error.file or path, remedy=error.remedy) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except Exception as error:  # a broken pickle can raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"cannot be read as {what} of plain data: {reason}", file=path, remedy="write it again"
        ) from None


def load_tensors(raw: bytes, fill: Callable[[Storage], None]) -> Any:
    """Return what the pickle of a file of PyTorch holds; `fill` gives a storage its bytes. Errors as `load_plain`."""
    unpickler, _ = _reader(raw, 0, _TorchUnpickler)
    value = unpickler.load()
    for storage in unpickler.storages.values():
        fill(storage)
    return as_plain_data(value, {})


def load_older_tensors(raw: bytes) -> Any:
    """Return what a file of PyTorch's older form holds: five pickles, then a size and bytes of each storage."""
    return as_plain_data(_load_older(raw), {})


def _load_older(raw: bytes) -> Any:
    position, head = 0, []
    for _ in range(3):
        reader, position = _reader(raw, position, _Unpickler)
        head.append(reader.load())
    magic, protocol, system = head
    if magic != _TORCH_MAGIC or protocol != _TORCH_PROTOCOL or not isinstance(system, dict):
        raise pickle.UnpicklingError("a tensor in an unknown form")
    if system.get("little_endian") is not True:
        raise pickle.UnpicklingError("a tensor of a big-endian machine")
    tensors, position = _reader(raw, position, _TorchUnpickler)
    value = tensors.load()
    reader, position = _reader(raw, position, _Unpickler)
    keys = reader.load()
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(tensors.storages):
        raise pickle.UnpicklingError("tensors whose storages are not those of the file")
    for key in keys:
        storage = tensors.storages[str(key)]
        stored = int.from_bytes(raw[position : position + 8], "little", signed=True)
        start = position + 8
        position = start + storage.n_bytes
        if stored != storage.size:
            raise pickle.UnpicklingError("a tensor whose storage is cut short")
        storage.fill(memoryview(raw)[start:position])
    if position != len(raw):
        raise pickle.UnpicklingError("more bytes than its tensors have")
    return value


def _reader(raw: bytes, start: int, kind: type[Reader]) -> tuple[Reader, int]:
    """Return the reader of a pickle that begins there, after a look at the sizes that it names, and where it ends."""
    end = check_pickle(raw, start)
    return kind(io.BytesIO(raw[start:end])), end


class _Ordered(dict[Any, Any]):
    """Stands for collections.OrderedDict; attributes, such as the versions that `state_dict` notes, are left out."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Take no attributes."""


class _EmbeddingSet:
    """Stands for the EmbeddingSet of kiwano and Speaker-Linkability: an object whose one attribute is a dictionary."""

    __slots__ = ("content",)

    def __setstate__(self, state: Any) -> None:
        self.content = state["h"]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "EmbeddingSet":  # in whichever module
            return _EmbeddingSet
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None


class _PlainUnpickler(_Unpickler):
    """Reads a pickle within which each storage is a small file of PyTorch."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _LOAD_STORAGE
        return super().find_class(module, name)


class _TorchUnpickler(_Unpickler):
    """Notes each storage that is described."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.storages: dict[str, Storage] = {}

    def persistent_load(self, pid: Any) -> Storage:
        return find_storage(pid, self.storages)


def _load_storage(raw: Any) -> Storage:
    if not isinstance(raw, bytes):
        raise pickle.UnpicklingError("a tensor without bytes")
    storage = _load_older(raw)
    if not isinstance(storage, Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return storage


_LOAD_STORAGE = Call(_load_storage)


def _encode(text: Any, encoding: Any = "utf-8") -> bytes:
    """Bytes as protocol 2 keeps them."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError(f"text in {encoding!r:.60} is not admitted")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    **ARRAYS,
    **TENSORS,
    ("_codecs", "encode"): Call(_encode),
    ("collections", "OrderedDict"): Call(lambda pairs=(): _Ordered(pairs)),
    ("collections", "defaultdict"): Call(lambda *_: {}),
    **{(module, name): Name(name) for module in ("builtins", "__builtin__") for name in ("list", "dict", "int")},
}


def as_plain_data(value: Any, done: dict[int, Any]) -> Any:
    """Put arrays in the place of their stand-ins, and refuse stand-ins that are no data.

    What a pickle names again and again is done once, so that a small file cannot ask for a large amount of work.
    """
    if type(value) is str:
        return value
    if id(value) not in done:
        done[id(value)] = _converted(value, done)
    return done[id(value)]


def _converted(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, (PickledArray, Tensor)):
        return value.array()
    if isinstance(value, _EmbeddingSet):
        return as_plain_data(value.content, done)
    if isinstance(value, dict):
        return {as_plain_data(name, done): as_plain_data(item, done) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)([as_plain_data(item, done) for item in value])
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.ndarray)):
        return value
    raise pickle.UnpicklingError(f"expected plain data, found {type(value).__name__.lstrip('_')}")
