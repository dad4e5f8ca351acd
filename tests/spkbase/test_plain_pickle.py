"""Pickles, npz and files of PyTorch: plain data are read, hostile ones are refused and run nothing."""

import base64
import io
import pickle
import struct
import sys
import zipfile
import zlib
from collections import OrderedDict, defaultdict
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

from evaluation.embeddings import read_embeddings
from spkbase.errors import DataError
from spkbase.plain_pickle import OLDER_TORCH, read_npy, read_npz, read_torch

VECTORS = np.array([[1.0, 2.0, -3.0], [0.5, 0.25, 8.0], [1e-3, 4.0, 0.0]], np.float32)


class Hostile:
    """Pickles to a call."""

    def __init__(self, flag, function=None, *arguments):
        self.call = (function or Path.touch, arguments or (flag,))

    def __reduce__(self):
        return self.call


PLAIN = {"anna": [VECTORS[0], VECTORS[1]], "bert": [VECTORS[2]]}
PAIRS = {"anna": [("u1", VECTORS[0]), ("u2", VECTORS[1])], "bert": [["u3", VECTORS[2]]]}


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda one: defaultdict(list, one)])
def test_pickles_of_the_linkability_tool_are_read(tmp_path, protocol, kind):
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(kind(PLAIN), protocol))
    found = read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert found.ids.tolist() == ["anna#1", "anna#2", "bert#1"]
    assert found.speakers.tolist() == ["anna", "anna", "bert"]
    assert found.vectors.tolist() == VECTORS.tolist()
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(kind(PAIRS), protocol))
    assert read_embeddings(tmp_path / "e.pkl", allow_pickle=True).ids.tolist() == ["u1", "u2", "u3"]


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("module", ["kiwano.embedding", "__main__"])
def test_embedding_sets_of_the_linkability_tool_are_read(tmp_path, protocol, module):
    """Objects whose one attribute `h` is the dictionary: what its own write_pkl writes."""
    kind = type("EmbeddingSet", (), {"__module__": module})
    known = ModuleType(module)
    known.EmbeddingSet = kind
    one = kind()
    one.h = dict(zip(("u1", "u2", "u3"), VECTORS, strict=True))
    with mock.patch.dict(sys.modules, {module.partition(".")[0]: known, module: known}):
        (tmp_path / "e.pkl").write_bytes(pickle.dumps(one, protocol))
    found = read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert found.ids.tolist() == ["u1", "u2", "u3"]
    assert found.vectors.tolist() == VECTORS.tolist()


# as PyTorch 2.15 pickles it: rows of 4 floats that share a storage of 12, one of them cut out of a repeated column
TORCH = (
    "eNrtkk1rE0EYgGc3kxSTVNp6qbf2tiKGfKhNRRoopVCWaq0ge7AMm90xuzLuZGZnCy0EAjWlLXvr6KkXb94FbzZe9FjwR3jwJwgefJOV0oJevA"
    "nOYT7eeZh555m3j1/5GI1bT1spdqPI1VswM5OaTsuKSy+okESFLNbpDJG0nYTMJ4pGMZdku66PgZ3MsBgGt0N1OkUYd33yTPIXpL2jaAzU8k0D"
    "ob55VGQ/Tla/zz1/u3G90jfXv+Wg7wlkOVOQQldyxT3OyDaVccgjYQDgTMIOC5VilNDID91ImAdOEYJqp0tJHO7SWOR6AltOHoJxwKUSedt0cr"
    "AKIyUKNnZGb2Q86ogJGycJ3Gk5EyM4S1kgb/yE4iokrh5nwaIwnKvALN5uNqqNeq1Wbd5ZuCuyc71uInJ2+YES+BGctiXQ71jDrZQzuehp61Nr"
    "4/7r0zVR+vj+5XTrzZej4a38u+Hu3tnS14MnrZX55rC0d3Y6+2F2+Llzb0kP9Ka2sY0H2jYG+jAtgRdGPQVa4CtKD6VPJfVXQk+B3RubWgG/r+"
    "Hf6jooWMGV5Wv/vvCFWr16SXjhz8LHLAgvXBA+kjwSe3GeiUXnYoPpc3k0xW0qFdQ/aGz80vi/bv+ibvNjveiyXjep/ATIxF9G"
)


def test_tensors_are_read_without_torch(tmp_path):
    (tmp_path / "e.pkl").write_bytes(zlib.decompress(base64.b64decode(TORCH)))
    found = read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert (found.ids.tolist(), found.speakers.tolist()) == (
        ["u1", "u2", "u3"],
        ["anna", "anna", "bert"],
    )
    normal = [
        [1.5410, -0.2934, -2.1788, 0.5684],
        [-1.0845, -1.3986, 0.4033, 0.8380],
        [-0.7193, -0.4033, -0.5966, 0.1820],
    ]
    column = [row[0] for row in normal]
    expected = [normal[1], [*column, column[0]], [normal[1][1]] * 4]
    assert found.vectors == pytest.approx(np.array(expected), abs=1e-4)


def test_pickles_are_read_only_on_request(tmp_path):
    for name in ("e.pkl", "e.dat"):
        (tmp_path / name).write_bytes(pickle.dumps(PLAIN))
        with pytest.raises(
            DataError, match=r"is a pickle, a format that can carry programs \(allow_pickle=True"
        ):
            read_embeddings(tmp_path / name)


def shapes_of_attack(flag):
    import os
    import subprocess

    touch = f"touch {flag}"
    return {
        "os.system": Hostile(flag, os.system, touch),
        "subprocess": Hostile(flag, subprocess.call, ["touch", str(flag)]),
        "eval": Hostile(flag, eval, f"open({str(flag)!r}, 'w')"),
        "inside data": {"anna": [VECTORS[0], Hostile(flag, os.system, touch)]},
        "numpy's loader": Hostile(flag, np.load, str(flag)),
    }


@pytest.mark.parametrize("protocol", [0, 5])
@pytest.mark.parametrize("name", list(shapes_of_attack(Path("x"))))
def test_hostile_pickles_are_refused_and_run_nothing(tmp_path, name, protocol):
    flag = tmp_path / "ran"
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(shapes_of_attack(flag)[name], protocol))
    with pytest.raises(DataError, match="which is not part of plain data: nothing of it was run"):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert not flag.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "expected {speaker: .vector, ...]}"),
        ({"anna": ["x"]}, "got str for 'anna#1'"),
        ({"anna": [VECTORS[0], VECTORS[1, :2]]}, r"got \(3,\) for anna#1 and \(2,\) for anna#2"),
        ({"anna": [("u", VECTORS[0])], "bert": [("u", VECTORS[1])]}, "'u' is repeated"),
        ({"anna": [np.array([None, 1], object)]}, "got list for 'anna#1'"),
    ],
)
def test_pickles_of_other_types_are_refused(tmp_path, value, message):
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(DataError, match=message):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)


# --- files of PyTorch ---------------------------------------------------------------------------------------------

FOLDER = Path(__file__).resolve().parents[1] / "data" / "torch_files"
BASE = (np.arange(24, dtype=np.float32) / 8).reshape(4, 6)
EXPECTED = {
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
def test_files_of_torch_are_read_without_it(name):
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


def storage(kind="Float", key="0", size=3):
    """Orders that name a storage: ('storage', torch.FloatStorage, key, 'cpu', size), then BINPERSID."""
    text = b"".join(b"X" + struct.pack("<I", len(word)) + word for word in (key.encode(), b"cpu"))
    number = b"\x8a\x08" + struct.pack("<q", size)
    return b"(X\x07\0\0\0storagectorch\n" + kind.encode() + b"Storage\n" + text + number + b"tQ"


def tensor(parts=b"", shape=(3,), steps=(1,), offset=0):
    """Orders that cut a tensor out of a storage."""

    def sizes(values):
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


def zipped(path, orders, **members):
    """Write a zip as torch.save does."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + orders + b".")
        for name, raw in ({"data/0": np.arange(3, dtype="<f4").tobytes()} | members).items():
            archive.writestr(f"archive/{name}", raw)
    return path


BAD = {
    "a call": (b"cos\nsystem\nX\x0c\0\0\0touch hacked\x85R", r"asks for os\.system"),
    "a class": (
        b"ctorch.nn.modules.linear\nLinear\n)\x81",
        "asks for torch.nn.modules.linear.Linear",
    ),
    "numpy's loader of storages": (
        b"ctorch.storage\n_load_from_bytes\nC\0\x85R",
        "asks for torch.storage._load_from_bytes",
    ),
    "beyond the storage": (tensor(offset=1), "a tensor beyond its storage"),
    "steps beyond it": (tensor(steps=(2,)), "a tensor beyond its storage"),
    "a storage that is too short": (tensor(storage(size=4)), "a tensor whose storage is cut short"),
    "a storage of complex numbers": (
        tensor(storage("ComplexFloat")),
        "asks for torch.ComplexFloatStorage",
    ),
    "a storage that is not there": (tensor(storage(key="9")), "There is no item named"),
    "one storage, two types": (
        b"(" + tensor() + tensor(storage("Int")) + b"t",
        "with two conflicting descriptions",
    ),
    "a storage alone": (storage(), "expected plain data, found Storage"),
}


@pytest.mark.parametrize("what", BAD)
def test_hostile_pickles_in_a_zip_are_refused(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    orders, message = BAD[what]
    with pytest.raises(DataError, match=message) as caught:
        read_torch(zipped(tmp_path / "e.pt", orders))
    assert str(caught.value).startswith(str(tmp_path / "e.pt"))
    assert [path.name for path in tmp_path.iterdir()] == ["e.pt"]


def older(orders, keys, *storages, system=None):
    """A file of the older form."""
    parts = [
        pickle.dumps(part, 2)
        for part in (1001, {"little_endian": True} if system is None else system)
    ]
    rows = b"".join(struct.pack("<q", size) + raw for size, raw in storages)
    return (
        OLDER_TORCH + b"".join(parts) + b"\x80\x02" + orders + b"." + pickle.dumps(keys, 2) + rows
    )


FLOATS = np.arange(3, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (older(tensor(), ["0"]), "cut short"),
        (older(tensor(), ["1"], (3, FLOATS)), "whose storages are not those in the file"),
        (older(tensor(), ["0"], (3, FLOATS), system={"little_endian": False}), "big-endian"),
        (older(b"cos\nsystem\nX\x0c\0\0\0touch hacked\x85R", []), r"asks for os\.system"),
    ],
)
def test_hostile_files_of_the_older_torch_format_are_refused(tmp_path, monkeypatch, raw, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.pt").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        read_torch(tmp_path / "e.pt")
    assert not Path("hacked").exists()
    (tmp_path / "e.pt").write_bytes(older(tensor(), ["0"], (3, FLOATS)))
    assert read_torch(tmp_path / "e.pt").tolist() == [0.0, 1.0, 2.0]


# --- npz -------------------------------------------------------------------------------------------------------------


def npy(shape, kind="<f8", body=b""):
    head = (
        f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
        + b"\n"
    )
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (npy("(3,)", body=bytes(16)), "cannot be read as np[yz]: "),
        (npy("(1,)", "|O", b"cos\nsystem\n."), "holds Python objects, which can carry programs"),
        (npy("(2,)", "<U1", struct.pack("<II", 97, 0xD800)), "cannot be read as np[yz]: "),
    ],
)
def test_malformed_arrays_are_refused(tmp_path, raw, message):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", raw)
    (tmp_path / "x.npy").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        read_npz(tmp_path / "x.npz")
    with pytest.raises(DataError, match=message):
        read_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_npz_are_read(tmp_path, save):
    arrays = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "i": np.array(["a", "é"]),
        "n": np.arange(3),
    }
    save(tmp_path / "x.npz", **arrays)
    found = read_npz(tmp_path / "x.npz")
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    assert list(read_npz(io.BytesIO((tmp_path / "x.npz").read_bytes()), "n", "none", file="x")) == [
        "n"
    ]
