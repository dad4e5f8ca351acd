"""Arrays in HDF5 files, fingerprints and checksums."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.files.hdf5 import file_digest, fingerprint, new_file, open_file, read_arrays, stored_array, write_arrays

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True)
class Options:
    rank: int = 3
    name: str = "a"


@given(VALUES)
def test_fingerprint_is_stable(value):
    assert fingerprint(value) == fingerprint(value)


@given(VALUES, VALUES)
def test_fingerprint_takes_parts_one_by_one(first, second):
    assert fingerprint(first, second) != fingerprint([first, second])
    assert fingerprint(first) != fingerprint(first, None)


def test_fingerprint_does_not_change_with_the_process():
    """A run goes on from what an earlier process wrote: this value may change only with the format's version."""
    expected = "a4b6e3ff"
    found = fingerprint({"b": (1, 2.5), "a": None}, "ü", Path("x/y"), Options())
    assert len(found) == 64
    assert found == fingerprint({"a": None, "b": [1, 2.5]}, "ü", "x/y", {"rank": 3, "name": "a"})
    assert found[:8] == expected


ARRAY = np.arange(6.0)


@pytest.mark.parametrize(
    "other",
    [
        ARRAY.astype(np.float32),
        ARRAY.reshape(2, 3),
        ARRAY + np.eye(1, 6, 5)[0] * 1e-15,
        -ARRAY,
        ARRAY[::-1],
        ARRAY[:5],
        np.array([str(x) for x in ARRAY], object),
    ],
)
def test_fingerprint_of_arrays(other):
    assert fingerprint(ARRAY) == fingerprint(np.arange(12.0)[:6])
    assert fingerprint(ARRAY) == fingerprint(np.column_stack([ARRAY, ARRAY])[:, 0]), "the layout in memory is no matter"
    assert fingerprint(ARRAY) != fingerprint(other)


def test_fingerprint_of_options():
    assert fingerprint(Options()) != fingerprint(Options(rank=4))
    assert fingerprint(Options(rank=1)) != fingerprint(Options(rank=True))
    assert fingerprint(np.float32(0.5)) == fingerprint(0.5)
    with pytest.raises(TypeError):
        fingerprint(object())


def test_arrays_come_back(tmp_path):
    path = tmp_path / "deep" / "a.h5"
    ids = ["m001/ü", "a" * 300, "", "日本語"]
    arrays = {
        "float32": np.float32([[1, np.nan], [np.inf, -0.0]]),
        "float64": np.array(np.pi),
        "ints": np.array([], np.int64),
        "bools": np.array([True, False]),
        "ids": np.array(ids, object),
        "list": ids,
        "none": [],
    }
    write_arrays(path, arrays, attributes={"fingerprint": "abc", "n": 3})
    found = read_arrays(path)
    assert set(found) == set(arrays)
    for name in ("float32", "float64", "ints", "bools"):
        np.testing.assert_array_equal(found[name], arrays[name])
        assert found[name].dtype == arrays[name].dtype
    assert found["ids"].tolist() == found["list"].tolist() == ids
    assert found["none"].tolist() == []
    assert list(read_arrays(path, "ids")) == ["ids"]
    with open_file(path) as file:
        assert (file.attrs["fingerprint"], file.attrs["n"]) == ("abc", 3)


def test_equal_contents_are_equal_bytes(tmp_path):
    for name in ("a.h5", "b.h5"):
        write_arrays(tmp_path / name, {"x": np.arange(5), "ids": ["a", "b"]}, attributes={"fingerprint": "abc"})
    assert file_digest(tmp_path / "a.h5") == file_digest(tmp_path / "b.h5")


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.h5"
    write_arrays(path, {"x": np.arange(3)})
    with pytest.raises(KeyboardInterrupt), new_file(path) as file:  # noqa: PT012
        file["x"] = np.arange(100)
        raise KeyboardInterrupt
    assert read_arrays(path)["x"].tolist() == [0, 1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.h5"]


def test_stored_array(tmp_path):
    path = tmp_path / "a.h5"
    values = np.random.default_rng(0).standard_normal((1000, 7)).astype(np.float32)
    write_arrays(path, {"first": np.arange(3), "values": values, "empty": np.empty((0, 7)), "flags": values > 0})
    found = stored_array(path, "values")
    assert isinstance(found, StoredArray)
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(found[[5, 3], 2:4], values[[5, 3], 2:4])
    np.testing.assert_array_equal(stored_array(path, "flags"), values > 0)
    assert stored_array(path, "empty").shape == (0, 7)


def test_arrays_in_chunks_are_read(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(100), chunks=(10,), compression="gzip")
    assert isinstance(stored_array(path, "x"), np.ndarray)
    np.testing.assert_array_equal(stored_array(path, "x"), np.arange(100))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no HDF5 at all"),
        lambda path: path.write_bytes(path.read_bytes()[:700]),
        lambda path: path.write_bytes(path.read_bytes()[:-1000]),
        lambda path: path.write_bytes(bytes(600) + path.read_bytes()[600:]),
    ],
)
@pytest.mark.parametrize("read", [read_arrays, lambda path: stored_array(path, "x")])
def test_damage_is_an_error_with_the_file(tmp_path, damage, read):
    path = tmp_path / "a.h5"
    write_arrays(path, {"x": np.arange(1000.0)})
    damage(path)
    with pytest.raises(DataError, match=r"a\.h5: "):
        read(path)


def test_missing_array_is_an_error(tmp_path):
    write_arrays(tmp_path / "a.h5", {"x": np.arange(3)})
    with pytest.raises(DataError, match=r"a\.h5: .*'?y'?"):
        read_arrays(tmp_path / "a.h5", "y")


def test_digest(tmp_path):
    import hashlib

    path = tmp_path / "a.bin"
    path.write_bytes(b"abc" * 3_000_000)
    assert file_digest(path) == hashlib.sha256(b"abc" * 3_000_000).hexdigest()
    assert file_digest(tmp_path / "none") is None
    assert file_digest(tmp_path) is None
