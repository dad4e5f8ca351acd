"""Damage inside of containers: HDF5, npz, gzip, and documents that only pretend to be small."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress

import h5py
import numpy as np

from tests.fuzz.mutation import NUMBERS, WORDS, damage

Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def inside_gzip(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage what a gzip file holds."""
    try:
        inner = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        inner = data
    packed = gzip.compress(damage(chance, inner, others) + (bytes(1 << 21) if chance.random() < 0.05 else b""), 1)
    return packed * chance.choice((1, 1, 1, 2)) + chance.choice((b"", b"", b"\0\0", b"x"))


def inside_npz(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage the arrays of an npz, their heads above all, or its directory."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError):
        return damage(chance, data, others)
    name = chance.choice([*members, "x.npy"])
    kind = chance.randrange(6)
    if kind == 0:
        members[name] = _array(chance)
    elif kind == 1:
        members.pop(name, None)
    elif kind == 2:
        members[name] = _claim(chance, members.get(name, b""))
    elif kind == 3:
        members[chance.choice(("../../x.npy", "/etc/x.npy", "ids.npy", "vectors.npy", "speakers", "é.npy"))] = _array(
            chance
        )
    else:
        members[name] = damage(chance, members.get(name, b""), list(members.values()) or [b""])
    content = io.BytesIO()
    packing = chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(content, "w", packing) as archive:
        for one, raw in members.items():
            archive.writestr(one, raw)
    return content.getvalue()


def inside_torch(change: Damage) -> Damage:
    """Change the pickle of a file of PyTorch, or another of its members, and pack all as they were."""

    def damaged(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError):
            return change(chance, data, others)
        pickled = next((name for name in members if name.endswith("data.pkl")), "archive/data.pkl")
        name = pickled if chance.random() < 0.8 else chance.choice([*members, "archive/data/7", "../data.pkl"])
        raw = members.get(name, b"")
        members[name] = change(chance, raw, [raw]) if name == pickled else damage(chance, raw, list(members.values()))
        content = io.BytesIO()
        packing = zipfile.ZIP_DEFLATED if chance.random() < 0.05 else zipfile.ZIP_STORED
        with zipfile.ZipFile(content, "w", packing) as archive:
            for one, raw in members.items():
                archive.writestr(one, raw)
        return content.getvalue()

    return damaged


def _claim(chance: random.Random, raw: bytes) -> bytes:
    """Write another shape into the head of an array."""
    shape = chance.choice(
        ("(1099511627776,)", "(-1,)", "(2,-3)", "(" + "1," * 40 + ")", "(True,)", "(0,)", "()", "(5,5)")
    )
    start, stop = raw.find(b"'shape': "), raw.find(b"}")
    return (
        raw
        if start < 0
        else raw[:start] + f"'shape': {shape}, ".encode()[: stop - start].ljust(stop - start) + raw[stop:]
    )


def _array(chance: random.Random) -> bytes:
    content = io.BytesIO()
    np.save(content, values(chance), allow_pickle=True)
    return content.getvalue()


def values(chance: random.Random) -> np.ndarray:
    """An array of nearly any type and shape."""
    shape = chance.choice(((), (0,), (1,), (3,), (4,), (2, 3), (3, 0), (2, 2, 2), (1, 1, 1, 1)))
    kind = chance.choice(("f2", "f4", ">f4", "f8", "c8", "i1", "u1", "i4", ">i8", "u8", "?", "S3", "U3", "O", "f4,i2"))
    if kind == "O":
        return np.full(shape, b"x", object)
    if kind == "f4,i2":
        return np.zeros(shape, kind)
    filled = np.full(shape, chance.choice((0, 1, -1, 7, 127)), float).astype(kind)
    if np.dtype(kind).kind == "f" and filled.size and chance.random() < 0.4:
        filled.flat[0] = chance.choice((np.nan, np.inf, -np.inf, 6e4, -1e-8))
    return filled


# --- HDF5 ------------------------------------------------------------------------------------------------------------


def inside_hdf5(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change a file as its library can, then perhaps its bytes."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.compress(inside_hdf5(chance, gzip.decompress(data), others), 1)
    if not data.startswith(b"\x89HDF"):
        return damage(chance, data, others)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fapl_core(1 << 16, False)
    access.set_file_image(data)
    with h5py.File(h5py.h5f.open(b"in memory", h5py.h5f.ACC_RDWR, access)) as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for _ in range(chance.choice((1, 1, 2))):
            # the trick may not go with this file
            with suppress(Exception):
                chance.choice(_TRICKS)(chance, file, chance.choice(names) if names else "x")
        file.flush()
        changed = file.id.get_file_image()
    return damage(chance, changed, others) if chance.random() < 0.3 else changed


def _put(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    file[name] = values(chance)


def _remove(_: random.Random, file: h5py.File, name: str) -> None:
    if name in file:
        del file[name]


def _change_values(chance: random.Random, file: h5py.File, name: str) -> None:
    dataset = file[name]
    if dataset.shape is None or dataset.nbytes > 1 << 22:
        return
    if dataset.dtype.kind not in "SfiubO" or (dataset.dtype.kind == "O" and not h5py.check_string_dtype(dataset.dtype)):
        return  # the library ends the process that writes some of these
    rows = np.asarray(dataset[()])
    if not rows.size or rows.ndim == 0:
        return
    place = chance.randrange(rows.size)
    if rows.dtype.kind in "SO":
        rows.flat[place] = chance.choice((*WORDS, *NUMBERS))[: rows.dtype.itemsize if rows.dtype.kind == "S" else 300]
    elif rows.dtype.kind == "f":
        rows.flat[place] = chance.choice((np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300))
    else:
        limits = np.iinfo(rows.dtype) if rows.dtype.kind in "iu" else None
        rows.flat[place] = chance.choice((0, 1, 2, limits.min, limits.max) if limits else (0, 1))
    dataset[()] = rows


def _resize(chance: random.Random, file: h5py.File, name: str) -> None:
    dataset = file[name]
    if dataset.maxshape == dataset.shape or dataset.maxshape is None:
        _put(chance, file, name)
    else:
        dataset.resize(chance.choice((0, 1, 3, 1000, 1 << 20, 1 << 40)), axis=chance.randrange(dataset.ndim))


def _soft_link(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    file[name] = h5py.SoftLink(chance.choice(("/", f"/{name}", "/nowhere", "/" + next(iter(file), "x"))))


def _external_link(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    file[name] = h5py.ExternalLink(chance.choice(("input.h5", "/etc/passwd", "../x.h5")), "/" + name)


def _circle(chance: random.Random, file: h5py.File, name: str) -> None:
    group = file.require_group("circle/within")
    group["again"] = file[chance.choice(("/", "circle", "circle/within"))]


def _deep(chance: random.Random, file: h5py.File, name: str) -> None:
    file.create_group("/".join("d" * chance.choice((3, 30, 300))))


def _virtual(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource(chance.choice((".", "/etc/passwd")), "x", (4,))
    file.create_virtual_dataset(name, layout)


def _external_storage(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    file.create_dataset(name, (8,), "u1", external=[(chance.choice(("/etc/passwd", "input.h5")), 0, 8)])


def _claims(chance: random.Random, file: h5py.File, name: str) -> None:
    """A size that nothing fills, or a small file that is large when it is unpacked."""
    shape = file[name].shape or (4,) if name in file and chance.random() < 0.7 else (4,)
    kind = file[name].dtype if name in file else "f4"
    _remove(chance, file, name)
    longer = (chance.choice((1 << 18, 1 << 33, 1 << 45)), *shape[1:])
    file.create_dataset(
        name, longer, kind, chunks=(1 << 16, *shape[1:]), compression=chance.choice((None, "gzip", "lzf"))
    )


def _zeros(chance: random.Random, file: h5py.File, name: str) -> None:
    _remove(chance, file, name)
    rows = chance.choice((1 << 16, 1 << 20))
    file.create_dataset(name, data=np.zeros(rows, "i1"), compression="gzip", chunks=(1 << 16,))


def _odd(chance: random.Random, file: h5py.File, name: str) -> None:
    """Types that look like others: references, nested arrays, empty data, groups."""
    _remove(chance, file, name)
    kind = chance.randrange(7)
    if kind == 0:
        file.create_dataset(name, (3,), h5py.ref_dtype)[:] = [file.ref] * 3
    elif kind == 1:
        file.create_dataset(name, (3,), h5py.regionref_dtype)
    elif kind == 2:
        file.create_dataset(name, (3,), h5py.vlen_dtype("i4"))[0] = [1, 2, 3]
    elif kind == 3:
        file[name] = h5py.Empty("f4")
    elif kind == 4:
        file.create_dataset(name, (3,), h5py.enum_dtype({"a": 1, "b": 2}, "i1"))
    elif kind == 5:
        file.create_group(name)
    else:
        file.create_dataset(name, (3,), h5py.string_dtype())[0] = chance.choice((b"\xff", b"x" * 100000, b""))


_TRICKS = (
    *(
        _put,
        _put,
        _remove,
        _change_values,
        _change_values,
        _change_values,
        _resize,
        _soft_link,
        _external_link,
        _circle,
    ),
    *(_deep, _virtual, _external_storage, _claims, _zeros, _odd, _odd),
)


# --- YAML and JSON ---------------------------------------------------------------------------------------------------

ODD_VALUES = (
    *(
        b"2001-99-99",
        b"!!bool x",
        b"!!int ''",
        b"!!float ''",
        b"!!timestamp x",
        b"=",
        b"<<",
        b"~",
        b"0b",
        b"1__",
        b"1:60",
    ),
    *(
        b"!!binary \xff",
        b"!!set {a}",
        b"!!omap [a: 1]",
        b"? [a]",
        b"!!python/object/apply:os.system ['x']",
        b".nan",
        b".inf",
    ),
    *(b"&a [*a]", b"&a {b: *a}", b"{a: {a: {a: {a: 1}}}}", b"[" * 200 + b"]" * 200, b"!!merge x"),
    b"[&a [x" + b",x" * 9 + b"], &b [*a" + b",*a" * 9 + b"], &c [*b" + b",*b" * 9 + b"], &d [*c" + b",*c" * 9 + b"]]",
)


def odd_values(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Put an odd value behind a colon of a document."""
    lines = data.split(b"\n")
    places = [number for number, line in enumerate(lines) if b":" in line]
    if not places or chance.random() < 0.3:
        return damage(chance, data, others)
    place = chance.choice(places)
    lines[place] = lines[place].split(b":")[0] + b": " + chance.choice(ODD_VALUES)
    return b"\n".join(lines)
