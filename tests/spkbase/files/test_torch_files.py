"""Files of PyTorch: what torch.save wrote is read without torch; damaged and hostile ones run nothing, take nothing."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spkbase.errors import DataError
from spkbase.files.plain_pickle import RefusedError
from spkbase.files.torch_files import OLDER_TORCH, read_torch

FOLDER = Path(__file__).resolve().parents[2] / "data" / "torch_files"
BASE = (np.arange(24, dtype=np.float32) / 8).reshape(4, 6)
EXPECTED: dict[str, Any] = {
    "float32": BASE[0],
    "column": BASE[:, 1],
    "turned": BASE[:, 2],
    "part": BASE[1:3, ::2],
    "float64": BASE[1].astype(np.float64),
    "float16": BASE[2].astype(np.float16),
    "bfloat16": BASE[3],
    "int64": np.array([-1, 0, 1]),
    "uint8": np.array([0, 1, 2], np.uint8),
    "bool": np.array([True, False]),
    "parameter": BASE[0],
    "empty": np.empty((0, 3), np.float32),
    "scalar": np.array(2.5, np.float32),
}


@pytest.mark.parametrize("name", ["tensors.pt", "tensors_older.pt"])
def test_what_torch_saves_is_read_without_it(name: str) -> None:
    """Types, strides, a storage that several tensors share, containers; see the README beside the files."""
    found = read_torch(FOLDER / name)
    nested = found.pop("nested")
    assert found.keys() == EXPECTED.keys()
    for key, expected in EXPECTED.items():
        assert (found[key].dtype, found[key].shape) == (expected.dtype, expected.shape), key
        np.testing.assert_array_equal(found[key], expected)
        assert not found[key].flags.writeable or not found[key].size
    assert nested[0].tolist() == BASE[3].tolist()
    assert nested[1] == (1, "two", None)


def storage(kind: str = "Float", key: str = "0", size: int = 3) -> bytes:
    """Orders that name a storage: ('storage', torch.FloatStorage, key, 'cpu', size), then BINPERSID."""
    text = b"".join(b"X" + struct.pack("<I", len(word)) + word for word in (key.encode(), b"cpu"))
    number = b"\x8a\x08" + struct.pack("<q", size)
    return b"(X\x07\0\0\0storagectorch\n" + kind.encode() + b"Storage\n" + text + number + b"tQ"


def tensor(parts: bytes = b"", shape: tuple[int, ...] = (3,), steps: tuple[int, ...] = (1,), offset: int = 0) -> bytes:
    """Orders that cut a tensor out of a storage."""

    def sizes(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", value) for value in values) + b"t"

    start = b"\x8a\x08" + struct.pack("<q", offset)
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + (parts or storage())
        + start
        + sizes(shape)
        + sizes(steps)
        + b"\x89NtR"
    )


def zipped(path: Path, orders: bytes, *, packing: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    """Write a zip as torch.save does."""
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + orders + b".")
        for name, raw in ({"data/0": np.arange(3, dtype="<f4").tobytes()} | members).items():
            archive.writestr(f"archive/{name}", raw)
    return path


def test_the_zip_by_hand(tmp_path: Path) -> None:
    """The hostile ones below differ from this one, which is good."""
    assert read_torch(zipped(tmp_path / "e.pt", tensor())).tolist() == [0.0, 1.0, 2.0]


BAD: dict[str, tuple[bytes, str]] = {
    "a call": (b"cos\nsystem\nX\x0c\0\0\0touch hacked\x85R", r"asks for os\.system"),
    "a class": (b"ctorch.nn.modules.linear\nLinear\n)\x81", "asks for torch.nn.modules.linear.Linear"),
    "numpy's loader of storages": (
        b"ctorch.storage\n_load_from_bytes\nC\0\x85R",
        "asks for torch.storage._load_from_bytes",
    ),
    "beyond the storage": (tensor(offset=1), "a tensor beyond its storage"),
    "steps beyond it": (tensor(steps=(2,)), "a tensor beyond its storage"),
    "negative steps": (tensor(steps=(-1,)), "expected sizes"),
    "a negative offset": (tensor(offset=-1), "expected sizes"),
    "one value many times": (tensor(shape=(1 << 40,), steps=(0,)), "a tensor beyond its storage"),
    "as many axes as one likes": (tensor(shape=(1,) * 70, steps=(1,) * 70), "cannot be read as a file of PyTorch"),
    "another number of axes": (tensor(steps=(1, 1)), "a tensor without a storage"),
    "a storage that is too short": (tensor(storage(size=4)), "a tensor whose storage is cut short"),
    "a storage of 2^47 values": (tensor(storage(size=1 << 47)), "a tensor whose storage is cut short"),
    "a negative size": (tensor(storage(size=-1)), "a tensor without a storage"),
    "a storage of complex numbers": (tensor(storage("ComplexFloat")), "asks for torch.ComplexFloatStorage"),
    "a storage that is not there": (tensor(storage(key="9")), "there is no 'archive/data/9'"),
    "a path as a key": (tensor(storage(key="../../etc/passwd")), "there is no 'archive/data/../../etc/passwd'"),
    "one storage, two types": (b"(" + tensor() + tensor(storage("Int")) + b"t", "described in two ways"),
    "a tensor of no storage": (tensor(b"N"), "a tensor without a storage"),
    "a storage alone": (storage(), "expected plain data, found Storage"),
    "a stand-in that is changed": (
        tensor() + b"}X\x07\0\0\0storageK\x01sb",
        "a pickle may not set 'storage'|cannot be read",
    ),
    "depth": (b"]" + b"\x85" * 5000, "deeper than 100"),
    "itself": (b"]q\0h\0a", "cannot be read as a file of PyTorch"),
    "a memo number of 2^31": (b"Nr\xff\xff\xff\x7f", "it remembers a thing under the number"),
    "a size beyond the file": (b"\x8e" + struct.pack("<Q", 1 << 40), "it is cut off or damaged"),
}


@pytest.mark.parametrize("what", BAD)
def test_hostile_pickles_in_a_zip(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    orders, message = BAD[what]
    with pytest.raises(DataError, match=message) as caught:
        read_torch(zipped(tmp_path / "e.pt", orders))
    assert str(caught.value).startswith(str(tmp_path / "e.pt"))
    assert [path.name for path in tmp_path.iterdir()] == ["e.pt"]


def test_the_attack_would_work_on_plain_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: the same orders do run when they are simply loaded."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(b"\x80\x02cos\nsystem\nX\x0c\0\0\0touch hacked\x85R.")
    assert (tmp_path / "hacked").exists()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: zipped(p, tensor(), packing=zipfile.ZIP_DEFLATED), "is packed, which torch.save does not do"),
        (lambda p: zipped(p, tensor(), **{"constants.pkl": b"x"}), r"is a program \(TorchScript\), which is never run"),
        (lambda p: zipped(p, tensor(), **{"code/m.py": b"x"}), r"is a program \(TorchScript\)"),
        (lambda p: zipped(p, tensor(), byteorder=b"big"), "is of a big-endian machine"),
        (lambda p: zipped(p, tensor(), **{"x/data.pkl": b"N."}), "without the one data.pkl"),
        (lambda p: p.write_bytes(b"PK\3\4"), "cannot be read as a file of PyTorch"),
        (lambda p: p.write_bytes(b""), "cannot be read as a file of PyTorch"),
    ],
)
def test_other_zips(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    write(tmp_path / "e.pt")
    with pytest.raises(DataError, match=message):
        read_torch(tmp_path / "e.pt")


def test_members_that_are_not_where_the_list_says(tmp_path: Path) -> None:
    raw = bytearray(zipped(tmp_path / "e.pt", tensor()).read_bytes())
    place = raw.rindex(b"PK\1\2")  # the entry of the storage; its place in the file stands at byte 42
    for offset in (1, len(raw) - 8, len(raw) + 5, 0xFFFFFFFE):
        raw[place + 42 : place + 46] = struct.pack("<I", offset)
        (tmp_path / "e.pt").write_bytes(raw)
        with pytest.raises(DataError, match="cannot be read as a file of PyTorch"):
            read_torch(tmp_path / "e.pt")


def test_a_flipped_bit_in_a_storage(tmp_path: Path) -> None:
    raw = bytearray((FOLDER / "matrix.pt").read_bytes())
    raw[raw.index(BASE.tobytes())] ^= 1
    (tmp_path / "e.pt").write_bytes(raw)
    with pytest.raises(DataError, match=r"data/0' is damaged: its checksum is another"):
        read_torch(tmp_path / "e.pt")


def older(orders: bytes, keys: list[str], *storages: tuple[int, bytes], system: Any = None) -> bytes:
    """A file of the older form."""
    parts = [pickle.dumps(part, 2) for part in (1001, {"little_endian": True} if system is None else system)]
    rows = b"".join(struct.pack("<q", size) + raw for size, raw in storages)
    return OLDER_TORCH + b"".join(parts) + b"\x80\x02" + orders + b"." + pickle.dumps(keys, 2) + rows


FLOATS = np.arange(3, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (older(tensor(), ["0"]), "cut short"),
        (older(tensor(), ["0"], (3, FLOATS[:-1])), "cut short"),
        (older(tensor(), ["0"], (1 << 40, FLOATS)), "cut short"),
        (older(tensor(storage(size=1 << 47)), ["0"], (1 << 47, FLOATS)), "cut short"),
        (older(tensor(), ["1"], (3, FLOATS)), "whose storages are not those of the file"),
        (older(tensor(), ["0", "0"], (3, FLOATS), (3, FLOATS)), "whose storages are not those of the file"),
        (older(tensor(), ["0"], (3, FLOATS + b"x")), "more bytes than its tensors have"),
        (older(tensor(), ["0"], (3, FLOATS), system={"little_endian": False}), "big-endian"),
        (older(tensor(), ["0"], (3, FLOATS), system=[1]), "unknown form"),
        (older(b"cos\nsystem\nX\x0c\0\0\0touch hacked\x85R", []), r"asks for os\.system"),
        (OLDER_TORCH, "it is cut off or damaged"),
    ],
)
def test_hostile_files_of_the_older_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.pt").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        read_torch(tmp_path / "e.pt")
    assert not Path("hacked").exists()
    (tmp_path / "e.pt").write_bytes(older(tensor(), ["0"], (3, FLOATS)))
    assert read_torch(tmp_path / "e.pt").tolist() == [0.0, 1.0, 2.0]


def test_a_small_file_within_a_tensor_holds_no_other(tmp_path: Path) -> None:
    """What a plain pickle holds of a tensor is a file of the older form; there is no third."""
    from spkbase.files.plain_pickle import read_pickle

    def inner(raw: bytes) -> bytes:
        return b"ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(raw)) + raw + b"\x85R"

    good = older(storage(), ["0"], (3, FLOATS))
    (tmp_path / "e.pkl").write_bytes(b"\x80\x03" + tensor(inner(good)) + b".")
    assert read_pickle(tmp_path / "e.pkl").tolist() == [0.0, 1.0, 2.0]
    (tmp_path / "e.pkl").write_bytes(b"\x80\x03" + tensor(inner(older(inner(good), []))) + b".")
    with pytest.raises(RefusedError, match=r"asks for torch\.storage\._load_from_bytes"):
        read_pickle(tmp_path / "e.pkl")


@pytest.mark.parametrize("name", ["tensors.pt", "tensors_older.pt"])
@settings(max_examples=150)
@given(data=st.data())
def test_damaged_files(name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    raw = bytearray((FOLDER / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "e.pt"
    path.write_bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw), data.draw(st.integers(1, len(raw)))]))])
    try:
        read_torch(path)
    except DataError:
        return


def test_large_storages_are_not_copied(tmp_path: Path) -> None:
    """A tensor of 64 MB: what is handed back lies in the map of the file."""
    import tracemalloc

    values = np.ones(1 << 24, "<f4")
    zipped(tmp_path / "e.pt", tensor(storage(size=values.size), (values.size,)), **{"data/0": values.tobytes()})
    del values
    tracemalloc.start()
    found = read_torch(tmp_path / "e.pt")
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    assert (float(found[-1]), found.size) == (1.0, 1 << 24)
    tracemalloc.stop()
