"""HDF5 files from elsewhere are data, never orders: what one may hold, checked before anything of it is read.

HDF5 can send a reader to other files (external and soft links, external storage, virtual datasets), in circles or
through an endless chain of groups, can name sizes that nothing in the file could fill, and asks for plugins to unpack
what it does not know. Files of ours, of SIDEKIT and of BOSARIS do none of this, so that each is one clear error here.
The library believes the sizes and places that a file names, and ends the process on some of them; so these are
compared with the file first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spkbase.errors import DataError

if TYPE_CHECKING:
    import h5py

# deflate makes 1032 bytes of one at best; what claims more was never written
MOST_COMPRESSION = 1100
HARMLESS_BYTES = 1 << 20
_LEAST_CHUNK = 16  # bytes that a chunk takes at the least, with its entry in the index
_DEEPEST = 32  # groups within groups; an id of SIDEKIT with "/" makes two
_FILTERS = {1, 2, 3, 4, 32000}  # deflate, shuffle, fletcher32, szip, lzf; others are looked for as plugins
_FLETCHER, _CHECKSUM = 3, 4  # the filter, and how many bytes it adds
_REMEDY = "it is damaged, or made to do harm: copy or write it again"


def check_hdf5(file: h5py.File) -> None:
    """Walk over all links and datasets of a file that was just opened, without following or reading any.

    Raises
    ------
    DataError
        If it holds a link to anything but an object within it, a group that is linked twice or lies deeper than 32
        others, a dataset that lies in other files, is packed in an unknown way or claims more than the file can hold.
        It names no file: the caller knows which.
    """
    import h5py

    size = room = int(file.id.get_filesize())
    seen = {h5py.h5o.get_info(file.id).addr}
    pending: list[tuple[Any, str, int]] = [(file.id, "", 0)]
    while pending:
        group, above, depth = pending.pop()
        for name, kind in _links(group):
            where = f"{above}/{name.decode('utf-8', 'replace')}".lstrip("/")
            if kind != h5py.h5l.TYPE_HARD:
                raise refused(f"{shown(where)} is a link to elsewhere, which is not followed")
            info = h5py.h5o.get_info(group, name)
            if info.type == h5py.h5o.TYPE_GROUP:
                if info.addr in seen:
                    raise refused(f"group {shown(where)} is linked twice, or to a group above it")
                if depth == _DEEPEST:
                    raise refused(f"groups lie deeper than {_DEEPEST} in each other")
                pending.append((h5py.h5g.open(group, name), where, depth + 1))
            elif info.type == h5py.h5o.TYPE_DATASET and info.addr not in seen:
                room -= _check_dataset(h5py.h5d.open(group, name), where, room, size)
            seen.add(info.addr)


def _links(group: Any) -> list[tuple[bytes, int]]:
    """Name and kind of the links of a group."""
    links: list[tuple[bytes, int]] = []

    def note(name: bytes, info: Any) -> None:
        links.append((name, info.type))

    group.links.iterate(note, info=True)
    return links


def _check_dataset(dataset: Any, name: str, room: int, size: int) -> int:
    """Check where a dataset lies and what it claims; give the bytes that it takes, at most `room` of the `size`."""
    import h5py

    plan = dataset.get_create_plist()
    layout = plan.get_layout()
    if layout == h5py.h5d.VIRTUAL or plan.get_external_count():
        raise refused(f"{shown(name)} lies in other files, which are not read")
    filters = [plan.get_filter(number)[0] for number in range(plan.get_nfilters())]
    if not set(filters) <= _FILTERS or len(set(filters)) < len(filters):
        raise refused(f"{shown(name)} is packed in a way that is not read: filters {filters}")
    shape, item = tuple(map(int, dataset.shape)), bytes_of_row(dataset)
    chunk = tuple(map(int, plan.get_chunk())) if layout == h5py.h5d.CHUNKED else shape
    n_chunks = math.prod(-(-length // step) for length, step in zip(shape, chunk, strict=True) if step)
    stored = int(dataset.get_storage_size())
    # a dataset that is not filled takes no room, and reads as zeros
    possible = max(HARMLESS_BYTES, stored * (MOST_COMPRESSION if filters else 1))
    claimed, piece = math.prod(shape) * item, math.prod(chunk) * item
    if stored > room or max(claimed, piece, item) > possible or n_chunks * _LEAST_CHUNK > HARMLESS_BYTES + room:
        raise refused(f"{shown(name)} claims more than the file can hold: shape {shape}, {max(claimed, piece)} bytes")
    if layout == h5py.h5d.CHUNKED:
        _check_pieces(dataset, name, piece, filters, size)
    return stored


def bytes_of_row(dataset: Any) -> int:
    """Return the most bytes that a value takes in the file; what it is in memory is another size for some."""
    import h5py

    kind = dataset.get_type()
    if kind.get_class() == h5py.h5t.STRING and kind.is_variable_str():
        sizes: tuple[int, int] = h5py.h5i.get_file_id(dataset).get_create_plist().get_sizes()
        return 8 + sizes[0]
    plain = (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING, h5py.h5t.ENUM, h5py.h5t.BITFIELD, h5py.h5t.OPAQUE)
    return int(kind.get_size()) if kind.get_class() in plain else 4 * int(kind.get_size())


def _check_pieces(dataset: Any, name: str, whole: int, filters: list[int], size: int) -> None:
    """Compare the place and the length of each piece with the file."""
    least = 1 + (_CHECKSUM if _FLETCHER in filters else 0)
    most = whole + whole // 64 + 1024 if filters else whole  # what does not shrink grows a little
    wrong: list[Any] = []

    def check(piece: Any) -> bool | None:
        if not least <= piece.size <= most or piece.byte_offset + piece.size > size:
            wrong.append(piece)
            return True
        return None

    visit_pieces(dataset, check)
    if wrong:
        raise refused(f"{shown(name)} has a piece of {wrong[0].size} bytes at {wrong[0].byte_offset}: it cannot")


def visit_pieces(dataset: Any, look: Callable[[Any], bool | None]) -> None:
    """Show every piece of a dataset to a function, until it returns something."""
    if hasattr(dataset, "chunk_iter"):
        dataset.chunk_iter(look)
    else:  # HDF5 before 1.12.3
        any(look(dataset.get_chunk_info(number)) for number in range(dataset.get_num_chunks()))


def is_as_in_memory(dataset: h5py.Dataset) -> bool:
    """Return whether the bytes of a dataset are its values; HDF5 knows numbers with other bits, which it converts."""
    import h5py

    kind = h5py.h5t.py_create(dataset.dtype, logical=True)
    return bool(dataset.id.get_type().equal(kind))


def check_memory(n_bytes: int, name: str) -> None:
    """Refuse what unpacks to more than this machine has: with packed zeros, a small file can.

    Raises
    ------
    DataError
        Without a file name.
    """
    have = memory_size()
    if n_bytes > have:
        text = f"{shown(name)} takes {n_bytes / 1e9:.1f} GB, this machine has {have / 1e9:.1f} GB of memory"
        raise DataError(text, remedy="use a larger machine, if the file should be so large")


def memory_size() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def shown(name: str) -> str:
    """Return a name from a file so that it can be printed."""
    return repr(name[:80])[1:-1]


def refused(text: str) -> DataError:
    """Return the error of a file that is not as such files are; without its name, which the caller knows."""
    return DataError(text, remedy=_REMEDY)
