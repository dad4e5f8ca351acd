"""Files of PyTorch (`torch.save`), read without PyTorch and without running what they say.

The zip of today holds a pickle, `data.pkl`, and the storages of its tensors as members of their own that are not
packed; the older form is a row of pickles and then the storages. The pickle is read by `spkbase.files.plain_pickle`.
Storages are mapped from the file: sizes are compared with it, and no memory is taken for them.
"""

from __future__ import annotations

import mmap
import zipfile
import zlib
from pathlib import Path
from typing import Any

from spkbase.errors import DataError
from spkbase.files.pickled_tensors import Storage
from spkbase.files.plain_pickle import load_older_tensors, load_tensors, read_with

OLDER_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_CHECKED = 1 << 26  # bytes of a storage up to which its checksum is computed
_LOCAL_HEAD = 30


def read_torch(path: str | Path) -> Any:
    """Read what `torch.save` wrote of containers, strings, numbers and tensors; tensors become arrays.

    Parameters
    ----------
    path : path
        The file: the zip of PyTorch 1.6 and later, or the older form.

    Returns
    -------
    object
        Arrays are read-only and of the tensors' types (float32 for bfloat16), large ones mapped.

    Raises
    ------
    RefusedError
        If it asks for anything else, such as a class; nothing was run.
    DataError
        If it cannot be read, is cut off, packed, or a program (TorchScript).
    """
    return read_with(path, "a file of PyTorch", _load)


def _load(path: Path) -> Any:
    with path.open("rb") as handle:
        is_older = handle.read(len(OLDER_TORCH)) == OLDER_TORCH
        if is_older:
            return load_older_tensors(path.read_bytes())
        content = memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
        with zipfile.ZipFile(handle) as archive:
            members = {info.filename: info for info in archive.infolist()}
    pickles = [name for name in members if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise DataError("is a zip without the one data.pkl of torch.save", remedy="write it with torch.save")
    folder = pickles[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in members or any(name.startswith(f"{folder}code/") for name in members):
        remedy = "load it in PyTorch and torch.save the dictionary of its vectors"
        raise DataError("is a program (TorchScript), which is never run", remedy=remedy)
    if f"{folder}byteorder" in members and bytes(_stored(content, members[f"{folder}byteorder"])) != b"little":
        raise DataError("is of a big-endian machine", remedy="write it as npz")

    def fill(storage: Storage) -> None:
        name = f"{folder}data/{storage.key}"
        if name not in members:
            raise ValueError(f"there is no {name[:60]!r}")
        storage.fill(_stored(content, members[name]))

    return load_tensors(bytes(_stored(content, members[pickles[0]])), fill)


def _stored(content: memoryview, info: zipfile.ZipInfo) -> memoryview:
    """Return the bytes of a member of a zip, not copied; they must lie in the file as they are."""
    name = f"{info.filename[:60]!r}"
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
        raise ValueError(f"{name} is packed, which torch.save does not do")
    start = info.header_offset
    head = content[start : start + _LOCAL_HEAD]
    if len(head) < _LOCAL_HEAD or head[:4] != b"PK\3\4":
        raise ValueError(f"{name} is not where the list of contents says")
    start += _LOCAL_HEAD + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    raw = content[start : start + info.file_size]
    if len(raw) != info.file_size:
        raise ValueError(f"{name} is cut off")
    if len(raw) <= _CHECKED and zlib.crc32(raw) != info.CRC:
        raise ValueError(f"{name} is damaged: its checksum is another")
    return raw
