"""Arrays that stay in their file: every index as NumPy has it, references that travel, files that break."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.arrays import StoredArray, keep_rows, part
from spkbase.errors import DataError

HEADER = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A stored array of long rows and the same in memory."""
    array = np.random.default_rng(0).standard_normal((40, 2000)).astype(np.float32)
    return store(tmp_path_factory.mktemp("stored") / "rows.bin", array), array


def store(path, array):
    path.write_bytes(b"x" * HEADER + array.tobytes())
    return StoredArray(path, HEADER, array.shape, array.dtype)


INDICES = [
    0,
    -1,
    slice(None),
    slice(3, 17),
    slice(30, 2, -3),
    [4, 3, 3, -1],
    np.array([5, 6, 7, 20, 21, 0]),
    np.arange(40) % 3 == 0,
    (slice(2, 9), slice(100, 130)),
    (slice(2, 9), slice(None, None, 7)),
    (3, slice(100, 130)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_stored_arrays_are_indexed_like_arrays(made, index):
    stored, array = made
    found = stored[index]
    assert found.dtype == array.dtype
    assert np.array_equal(found, array[index])
    assert found.shape == array[index].shape
    if found.ndim:
        found[...] = 0  # new memory: the file keeps its contents
        assert np.array_equal(stored[index], array[index])


@given(st.lists(st.integers(-40, 39), max_size=50), st.integers(0, 2000), st.integers(0, 2000))
def test_any_rows_and_columns_are_read(made, rows, first, last):
    stored, array = made
    rows = np.array(rows, np.int64)
    assert np.array_equal(stored[rows], array[rows])
    assert np.array_equal(stored[rows, first:last], array[rows, first:last])


@pytest.mark.parametrize("shape", [(7,), (5, 3, 2), (0, 3), (4, 0)])
def test_arrays_of_any_shape_are_stored(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    stored = store(tmp_path / "rows.bin", array)
    assert (len(stored), stored.ndim, stored.shape, stored.nbytes) == (
        len(array),
        array.ndim,
        shape,
        array.nbytes,
    )
    assert np.array_equal(np.asarray(stored), array)
    if len(array):
        assert np.array_equal(stored[-1], array[-1])
    if len(shape) > 1:
        assert np.array_equal(stored[1:, 1:3], array[1:, 1:3])


def test_parts_of_stored_arrays_are_references(made):
    stored, array = made
    some = stored.part(10, 20).part(2, 5)
    assert isinstance(some, StoredArray)
    assert np.array_equal(np.asarray(some), array[12:15])
    assert np.array_equal(np.asarray(stored.part(35, 99)), array[35:])
    assert len(stored.part(5, 3)) == 0
    assert part(array, 3, 6).base is array
    assert part(stored, 3, 6) == stored.part(3, 6)


def test_a_truncated_file_is_an_error(tmp_path):
    stored = store(tmp_path / "rows.bin", np.ones((40, 2000)))
    os.truncate(stored.path, HEADER + stored.nbytes - 8 * 5)
    with pytest.raises(DataError, match=r"rows\.bin: not readable.*start again"):
        stored[3]


def test_stored_rows_are_pickled_as_the_name_of_their_file(tmp_path):
    rows = np.random.default_rng(0).standard_normal((50, 3))
    kept = keep_rows(tmp_path, rows.shape, np.float32, np.array_split(rows, 4))
    assert len(pickle.dumps(kept)) < 600
    assert np.array_equal(pickle.loads(pickle.dumps(kept))[7:9], rows[7:9].astype(np.float32))
