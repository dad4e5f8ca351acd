"""Selected rows, here and on the way to another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from interruptions import stored

from spkbase.arrays import SelectedRows


@pytest.mark.parametrize("in_file", [False, True])
def test_rows_are_the_same_here_and_elsewhere(tmp_path, in_file):
    array = np.random.default_rng(0).standard_normal((100, 50)).astype(np.float32)
    rows = np.array([7, 99, 7, 0])
    selected = SelectedRows(stored(array, tmp_path) if in_file else array, rows)
    sent = pickle.dumps(selected)
    for one in (selected, pickle.loads(sent)):
        assert len(one) == 4
        np.testing.assert_array_equal(one, array[rows])
        np.testing.assert_array_equal(one.part(1, 3), array[[99, 7]])
        assert np.asarray(one, np.float64).dtype == np.float64
    assert len(sent) < (700 if in_file else 4 * 200 + 700), "a reference, or just the rows"


def test_nothing_is_copied_until_it_is_asked_for():
    array = np.zeros((5, 2))
    selected = SelectedRows(array, np.array([1]))
    array[1] = 3
    np.testing.assert_array_equal(selected, [[3, 3]])
    assert len(SelectedRows(array, np.empty(0, np.int64))) == len(np.asarray(selected.part(0, 0))) == 0
