"""Pickles of embeddings: those of the Speaker-Linkability tool are read, hostile ones are refused and run nothing."""

from __future__ import annotations

import base64
import pickle
import struct
import sys
import zlib
from collections import OrderedDict, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.embeddings.files import read_embeddings
from spkbase.errors import DataError
from spkbase.files.plain_pickle import RefusedError, read_pickle

VECTORS = np.array([[1.0, 2.0, -3.0], [0.5, 0.25, 8.0], [1e-3, 4.0, 0.0]], np.float32)


class Hostile:
    """Pickles to a call."""

    def __init__(self, flag: Path, function: Any = None, *arguments: Any) -> None:
        self.call = (function or Path.touch, arguments or (flag,))

    def __reduce__(self) -> Any:
        return self.call


PLAIN = {"anna": [VECTORS[0], VECTORS[1]], "bert": [VECTORS[2]]}
PAIRS = {"anna": [("u1", VECTORS[0]), ("u2", VECTORS[1])], "bert": [["u3", VECTORS[2]]]}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda one: defaultdict(list, one)])
def test_pickles_of_the_linkability_tool(tmp_path: Path, protocol: int, kind: Any) -> None:
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(kind(PLAIN), protocol))
    found = read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert found.ids.tolist() == ["anna#1", "anna#2", "bert#1"]
    assert found.speakers.tolist() == ["anna", "anna", "bert"]
    assert found.vectors.tolist() == VECTORS.tolist()
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(kind(PAIRS), protocol))
    assert read_embeddings(tmp_path / "e.pkl", allow_pickle=True).ids.tolist() == ["u1", "u2", "u3"]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("module", ["kiwano.embedding", "embedding.base", "__main__"])
def test_embedding_sets_of_the_linkability_tool(tmp_path: Path, protocol: int, module: str) -> None:
    """Objects whose one attribute `h` is the dictionary: what its own write_pkl writes."""
    kind = type("EmbeddingSet", (), {"__module__": module})
    known = ModuleType(module)
    known.EmbeddingSet = kind  # type: ignore[attr-defined]
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


def test_tensors_without_torch(tmp_path: Path) -> None:
    (tmp_path / "e.pkl").write_bytes(zlib.decompress(base64.b64decode(TORCH)))
    found = read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert (found.ids.tolist(), found.speakers.tolist()) == (["u1", "u2", "u3"], ["anna", "anna", "bert"])
    normal = [
        [1.5410, -0.2934, -2.1788, 0.5684],
        [-1.0845, -1.3986, 0.4033, 0.8380],
        [-0.7193, -0.4033, -0.5966, 0.1820],
    ]
    column = [row[0] for row in normal]
    expected = [normal[1], [*column, column[0]], [normal[1][1]] * 4]
    assert found.vectors == pytest.approx(np.array(expected), abs=1e-4)


def test_pickles_only_on_request(tmp_path: Path) -> None:
    for name in ("e.pkl", "e.dat"):
        (tmp_path / name).write_bytes(pickle.dumps(PLAIN))
        with pytest.raises(DataError, match=r"is a pickle, a format that can carry programs \(--allow-pickle"):
            read_embeddings(tmp_path / name)


def shapes_of_attack(flag: Path) -> dict[str, Any]:
    import os
    import subprocess

    touch = f"touch {flag}"
    return {
        "os.system": Hostile(flag, os.system, touch),
        "subprocess": Hostile(flag, subprocess.call, ["touch", str(flag)]),
        "eval": Hostile(flag, eval, f"open({str(flag)!r}, 'w')"),
        "a method": Hostile(flag),
        "getattr": Hostile(flag, getattr, "x", "upper"),
        "inside data": {"anna": [VECTORS[0], Hostile(flag, os.system, touch)]},
        "as a key": {Key(flag): [VECTORS[0]]},
        "numpy": Hostile(flag, np.frompyfunc, "x", 1, 1),
        "numpy's loader": Hostile(flag, np.load, str(flag)),
        "partial": Hostile(flag, __import__("functools").partial, os.system, touch),
        "import": Hostile(flag, __import__, "antigravity"),
    }


class Key(Hostile):
    def __init__(self, flag: Path) -> None:
        import os

        super().__init__(flag, os.system, f"touch {flag}")

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("name", list(shapes_of_attack(Path("x"))))
def test_hostile_pickles_are_refused_and_run_nothing(tmp_path: Path, name: str, protocol: int) -> None:
    flag = tmp_path / "ran"
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(shapes_of_attack(flag)[name], protocol))
    with pytest.raises(RefusedError, match="which is no part of plain data: nothing of it was run"):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert not flag.exists()


def test_the_attack_would_work_on_plain_pickle(tmp_path: Path) -> None:
    """The test above can fail: the same bytes do run when they are simply loaded."""
    flag = tmp_path / "ran"
    pickle.loads(pickle.dumps(shapes_of_attack(flag)["os.system"]))
    assert flag.exists()


def test_hostile_storage_of_a_tensor(tmp_path: Path) -> None:
    """The small file within a tensor is a pickle of its own, and no less hostile."""
    flag = tmp_path / "ran"
    inner = (
        pickle.dumps(0x1950A86A20F9469CFC6C) + pickle.dumps(1001) + pickle.dumps(shapes_of_attack(flag)["os.system"])
    )
    # GLOBAL torch.storage._load_from_bytes, its bytes, a tuple of one, REDUCE
    raw = b"\x80\x02ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R."
    (tmp_path / "e.pkl").write_bytes(raw)
    with pytest.raises(RefusedError, match=r"asks for (posix|nt|os)\.system"):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    assert not flag.exists()


@pytest.mark.parametrize(
    "state",
    [
        b"}X\x04\x00\x00\x00codeK\x01s",
        b"N}X\x09\x00\x00\x00_functionK\x01s\x86",
        b"}X\x0c\x00\x00\x00__setstate__K\x01s",
    ],
)
@pytest.mark.parametrize(
    "name", [b"numpy\ndtype", b"numpy\nndarray", b"collections\nOrderedDict", b"torch\nSize", b"x\nEmbeddingSet"]
)
def test_stand_ins_cannot_be_changed(tmp_path: Path, name: bytes, state: bytes) -> None:
    """BUILD on what a name gives: an attribute set there would stay for the next file."""
    (tmp_path / "e.pkl").write_bytes(b"\x80\x02c" + name + b"\n" + state + b"b.")
    with pytest.raises(DataError, match="cannot be read as a pickle of plain data"):
        read_pickle(tmp_path / "e.pkl")
    (tmp_path / "good.pkl").write_bytes(pickle.dumps(PLAIN))
    assert len(read_embeddings(tmp_path / "good.pkl", allow_pickle=True)) == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "expected {speaker: .vector, ...]}"),
        ({}, "expected {speaker: .vector, ...]}"),
        ({"anna": VECTORS[0, 0].item()}, "got float for 'anna'"),
        ({"anna": ["x"]}, "got str for 'anna#1'"),
        ({"anna": [np.array([1, 2])]}, "got ndarray for 'anna#1'"),
        ({"anna": [VECTORS[0], VECTORS[1, :2]]}, r"got \(3,\) for anna#1 and \(2,\) for anna#2"),
        ({"anna": [("u", VECTORS[0])], "bert": [("u", VECTORS[1])]}, "'u' is repeated"),
        ({"anna": [np.array([None, 1], object)]}, "an array of 'O8', expected numbers or text"),
        ({"anna": []}, "expected embeddings, got none"),
        ({3.5: [VECTORS[0]]}, "for 3.5"),
    ],
)
def test_pickles_of_other_things(tmp_path: Path, value: Any, message: str) -> None:
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(DataError, match=message):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)


def test_small_pickles_that_claim_much(tmp_path: Path) -> None:
    """Ten levels of lists of ten times the list below; one vector a million times; sizes without contents."""
    nested: Any = [VECTORS[0]]
    for _ in range(40):
        nested = [nested] * 10
    (tmp_path / "e.pkl").write_bytes(pickle.dumps({"anna": nested}))
    with pytest.raises(DataError, match="got list"):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)
    many = [np.zeros(10_000)] * 50_000
    (tmp_path / "e.pkl").write_bytes(pickle.dumps({"anna": many}))
    with pytest.raises(DataError, match="holds more vectors than its size allows"):
        read_embeddings(tmp_path / "e.pkl", allow_pickle=True)


@given(raw=st.binary(max_size=80))
def test_random_bytes_as_a_pickle(tmp_path_factory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "e.pkl"
    path.write_bytes(b"\x80\x04" + raw)
    with pytest.raises(DataError):
        read_embeddings(path, allow_pickle=True)


@given(data=st.data())
def test_damaged_pickles(tmp_path_factory, data: st.DataObject) -> None:
    raw = bytearray(zlib.decompress(base64.b64decode(TORCH)))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "e.pkl"
    path.write_bytes(bytes(raw))
    try:
        found = read_embeddings(path, allow_pickle=True)
    except DataError:
        return
    assert found.vectors.shape[0] <= 4
