"""Attributes of HDF5 files: numbers by the library, strings of variable length not by it.

The library follows whatever place and length a damaged file names for such a string: it fills gigabytes, comes to no
end, or ends the process. So they are found in the header of the object here, and their text in the heap by
`spkbase.files.hdf5_strings`.

References
----------
"HDF5 File Format Specification Version 3.0", The HDF Group: IV.A.1.a, "Version 1 Data Object Header Prefix", IV.A.2.m,
"The Attribute Message", and IV.A.2.q, "The Object Header Continuation Message".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spkbase.files.hdf5_guard import refused, shown
from spkbase.files.hdf5_strings import reader_of, string_at

if TYPE_CHECKING:
    import h5py

_ATTRIBUTE, _CONTINUATION = 0x0C, 0x10
_PREFIX, _HEAD = 16, 8  # bytes before the messages of an object, and before each message
_MOST_BLOCKS = 64  # pieces of a header; files of ours have one or two


def read_attribute(file: h5py.File, name: str) -> Any:
    """Read an attribute at the root of a file that `check_hdf5` has passed.

    Parameters
    ----------
    file : h5py.File
    name : str

    Returns
    -------
    str, NumPy scalar, ndarray or None
        None where there is no such attribute.

    Raises
    ------
    DataError
        If it holds anything but numbers or one string, or the string is not there. It names no file.
    """
    import h5py

    if not h5py.h5a.exists(file.id, name.encode()):
        return None
    attribute = h5py.h5a.open(file.id, name.encode())
    kind, is_scalar = attribute.get_type(), attribute.get_space().get_simple_extent_ndims() == 0
    if int(attribute.get_storage_size()) > int(file.id.get_filesize()):
        raise refused(f"the attribute {shown(name)} claims more than the file can hold")
    if kind.get_class() in (h5py.h5t.INTEGER, h5py.h5t.FLOAT):
        return file.attrs[name]
    if kind.get_class() != h5py.h5t.STRING or not is_scalar:
        raise refused(f"the attribute {shown(name)} holds neither numbers nor one string")
    raw = _variable_string(file, name) if kind.is_variable_str() else bytes(file.attrs[name])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"the attribute {shown(name)} is not UTF-8") from error


def _variable_string(file: h5py.File, name: str) -> bytes:
    found = [value for found, value in _attributes(file) if found == name.encode()]
    n_offset, _ = file.id.get_create_plist().get_sizes()
    if len(found) != 1 or len(found[0]) < 8 + n_offset:
        raise refused(f"the attribute {shown(name)} is not where it is looked for")
    return string_at(file, found[0][: 8 + n_offset], name)


def _attributes(file: h5py.File) -> Iterator[tuple[bytes, bytes]]:
    """Names and values, as they stand in the file, of the attributes in the header of its root."""
    for kind, message in _messages(file):
        version = message[0] if len(message) >= 8 else 0
        if kind != _ATTRIBUTE or version not in (1, 2, 3):
            continue
        lengths = [int.from_bytes(message[at : at + 2], "little") for at in (2, 4, 6)]
        at = 9 if version == 3 else 8
        parts = []
        for length in lengths:
            parts.append(message[at : at + length])
            at += length + (-length % 8 if version == 1 else 0)
        yield parts[0].rstrip(b"\0"), message[at:]


def _messages(file: h5py.File) -> Iterator[tuple[int, bytes]]:
    """Kind and contents of the messages in the header of the root, which is of version 1 in what is read here."""
    import h5py

    read, base = reader_of(file), int(file.userblock_size)
    n_offset, n_length = file.id.get_create_plist().get_sizes()
    start = base + int(h5py.h5o.get_info(file.id).addr)
    prefix = read(start, _PREFIX)
    if len(prefix) < _PREFIX or prefix[0] != 1:
        raise refused("its header is of a kind that is not read")
    room = int(file.id.get_filesize())
    blocks = [(start + _PREFIX, int.from_bytes(prefix[8:12], "little"))]
    for number in range(_MOST_BLOCKS):
        if number == len(blocks):
            return
        offset, size = blocks[number]
        room -= size
        if room < 0:
            raise refused("its header claims more than the file can hold")
        block, at = read(offset, size), 0
        while at + _HEAD <= len(block):
            kind, length = (int.from_bytes(block[at + place : at + place + 2], "little") for place in (0, 2))
            message = block[at + _HEAD : at + _HEAD + length]
            if kind == _CONTINUATION and len(message) >= n_offset + n_length:
                place = base + int.from_bytes(message[:n_offset], "little")
                blocks.append((place, int.from_bytes(message[n_offset : n_offset + n_length], "little")))
            yield kind, message
            at += _HEAD + length
    raise refused("its header is in more pieces than any of ours")
