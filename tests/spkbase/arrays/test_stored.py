"""Arrays that stay in their file: every index as NumPy has it, references that travel, files that break."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.arrays import StoredArray, part, stored_rows
from spkbase.errors import DataError

HEADER = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A stored array of long rows and the same in memory."""
    array = np.random.default_rng(0).standard_normal((40, 2000)).astype(np.float32)
    return store(tmp_path_factory.mktemp("stored") / "rows.bin", array), array


def store(path: Path, array: np.ndarray) -> StoredArray:
    path.write_bytes(b"x" * HEADER + array.tobytes())
    return StoredArray(path, HEADER, array.shape, array.dtype)


INDICES = [
    0,
    -1,
    np.int64(7),
    slice(None),
    slice(3, 17),
    slice(-5, None),
    slice(30, 2, -3),
    slice(9, 9),
    [4, 3, 3, -1],
    np.array([5, 6, 7, 20, 21, 0]),
    np.array([], np.int64),
    np.arange(40) % 3 == 0,
    (slice(2, 9), slice(100, 130)),
    (slice(2, 9), slice(None, None, 7)),
    (slice(2, 9), slice(1, None)),
    (slice(None), slice(8, 8)),
    (3, slice(100, 130)),
    ([9, 1], slice(-10, None)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_it_is_indexed_as_an_array(made, index):
    stored, array = made
    found = stored[index]
    assert found.dtype == array.dtype
    assert np.array_equal(found, array[index])
    assert found.shape == array[index].shape
    if found.ndim:
        found[...] = 0  # fresh memory: the file keeps its own
        assert np.array_equal(stored[index], array[index])


@given(st.lists(st.integers(-40, 39), max_size=50), st.integers(0, 2000), st.integers(0, 2000))
def test_any_rows_and_columns(made, rows, first, last):
    stored, array = made
    rows = np.array(rows, np.int64)
    assert np.array_equal(stored[rows], array[rows])
    assert np.array_equal(stored[rows, first:last], array[rows, first:last])


@pytest.mark.parametrize("shape", [(7,), (5, 3, 2), (5, 600, 4), (0, 3), (4, 0)])
def test_any_shape(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    stored = store(tmp_path / "rows.bin", array)
    assert (len(stored), stored.ndim, stored.shape, stored.nbytes) == (len(array), array.ndim, shape, array.nbytes)
    assert np.array_equal(np.asarray(stored), array)
    if len(array):
        assert np.array_equal(stored[-1], array[-1])
    if len(shape) > 1:
        assert np.array_equal(stored[1:, 1:3], array[1:, 1:3])


@pytest.mark.parametrize("index", [40, -41, [0, 40], np.zeros(3, bool), (0, 0), "a", (slice(2), slice(2), slice(2))])
def test_indices_that_are_none(made, index):
    with pytest.raises((IndexError, ValueError)):
        made[0][index]


def test_one_axis_has_no_columns(tmp_path):
    with pytest.raises(IndexError, match="expected rows"):
        store(tmp_path / "a", np.arange(4.0))[:, :2]


def test_parts_are_references(made):
    stored, array = made
    some = stored.part(10, 20).part(2, 5)
    assert isinstance(some, StoredArray)
    assert np.array_equal(np.asarray(some), array[12:15])
    assert np.array_equal(np.asarray(stored.part(35, 99)), array[35:])
    assert len(stored.part(5, 3)) == 0
    assert part(array, 3, 6).base is array
    assert part(stored, 3, 6) == stored.part(3, 6)


def test_it_travels_as_a_file_name(made, monkeypatch, tmp_path):
    stored, array = made
    monkeypatch.chdir(stored.path.parent)
    relative = StoredArray(Path("rows.bin"), stored.offset, stored.shape, stored.dtype)
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(relative)
    assert len(sent) < 600
    assert np.array_equal(pickle.loads(sent)[3:5], array[3:5])
    assert relative == stored


def test_as_an_array(made):
    stored, array = made
    assert np.asarray(stored, np.float64).dtype == np.float64
    assert np.array_equal(np.asarray(stored.part(0, 2)) @ np.ones(2000), array[:2] @ np.ones(2000))
    with pytest.raises(ValueError, match="without a copy"):
        stored.__array__(copy=False)


@pytest.mark.parametrize("index", [slice(None), -1, (-1, slice(1990, 2000))], ids=str)
def test_a_file_cut_off_is_an_error(tmp_path, index):
    stored = store(tmp_path / "rows.bin", np.ones((40, 2000)))
    os.truncate(stored.path, HEADER + stored.nbytes - 8 * 5)
    assert stored[3].sum() == 2000, "rows before the end are still there"
    assert stored[:, :10].sum() == 400
    with pytest.raises(DataError, match=r"rows\.bin.*the file ends.*start again"):
        stored[index]


def test_a_file_that_is_gone_is_an_error(tmp_path):
    stored = store(tmp_path / "rows.bin", np.ones((4, 2)))
    stored.path.unlink()
    with pytest.raises(DataError, match="not readable: No such file"):
        stored[0]
    stored.path.mkdir()
    with pytest.raises(DataError, match="not readable"):
        stored[0]


@pytest.mark.parametrize(
    ("offset", "shape", "dtype"), [(-1, (3,), "f4"), (0, (), "f4"), (0, (-1, 2), "f4"), (0, (2,), "O")]
)
def test_descriptions_that_are_none(offset, shape, dtype):
    with pytest.raises(DataError, match="expected an offset, a shape"):
        StoredArray(Path("a"), offset, shape, np.dtype(dtype))


def test_mapped_arrays_are_found_in_their_files(tmp_path):
    array = np.random.default_rng(1).standard_normal((50, 30))
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for rows, expected in ((mapped, array), (mapped[7:20], array[7:20]), (mapped[10:][5:8], array[15:18])):
        stored = stored_rows(rows)
        assert isinstance(stored, StoredArray)
        assert np.array_equal(np.asarray(stored), expected)
    written = np.lib.format.open_memmap(tmp_path / "b.npy", "w+", np.float32, (3, 2))
    written[...] = 5
    assert (np.asarray(stored_rows(written)) == 5).all()


def test_other_arrays_stay_as_they_are(tmp_path):
    array = np.ones((6, 4))
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    for other in (array, mapped[:, 1:], mapped[::2], mapped + 1, private, mapped.T):
        assert stored_rows(other) is other
    stored = StoredArray(tmp_path / "a.npy", 128, (6, 4), np.dtype(float))
    assert stored_rows(stored) is stored
