"""HDF5 files: arrays come back, files are whole or absent, and nothing outside of a file is read."""

import errno
import io
import os

import numpy as np
import pytest

from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkbase.files import file_digest
from spkbase.hdf5 import new_file, open_file, read_arrays, stored_array, write_arrays


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


class _FullDisk(io.FileIO):
    """A file that can be written as far as there is room."""

    room = 0

    def write(self, data):
        if len(data) > _FullDisk.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _FullDisk.room -= len(data)
        return super().write(data)


@pytest.mark.parametrize("room", [100, 50_000])
def test_a_full_disk_is_one_error(tmp_path, monkeypatch, room):
    """The library itself would raise one thing or another, keep the file open, and crash at the end."""
    import spkbase.hdf5

    late = spkbase.hdf5._LateErrors
    monkeypatch.setattr(_FullDisk, "room", room)
    # between the class and io.FileIO, whose writes it notes
    monkeypatch.setattr(spkbase.hdf5, "_LateErrors", type("Late", (late, _FullDisk), {}))
    path = tmp_path / "a.h5"
    path.write_text("old")
    with pytest.raises(DataError, match=r"a\.h5: cannot be written: No space left"), new_file(path) as file:  # noqa: PT012
        file.create_dataset("big", data=np.arange(20_000.0))
        file.create_dataset("packed", data=np.arange(20_000.0), compression="gzip", chunks=(500,))
    assert path.read_text() == "old"
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"no HDF5 at all"),
        lambda path: path.write_bytes(path.read_bytes()[:700]),
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
