"""Products of long vectors in blocks against NumPy's products of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from stored_vectors import stored

from spkbase.work import Work
from spkver.backend.nap import combine_rows, gram_matrix, inner_products

WORKS = pytest.mark.parametrize("work", [Work(jobs=1), Work(jobs=3)], ids=["1", "3"])


def test_gram_matrix_in_tiles():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((700, 4200)), rng.standard_normal((300, 4200))
    gram = gram_matrix(left)
    np.testing.assert_allclose(gram, left @ left.T, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(inner_products(right, left), right @ left.T, rtol=1e-12, atol=1e-9)
    assert inner_products(right, left[:0]).shape == (300, 0)
    assert gram_matrix(right[:0]).shape == (0, 0)


@WORKS
@pytest.mark.parametrize("in_file", [False, True])
def test_gram_matrix_of_centred_rows(tmp_path, work, in_file):
    """Each row less the mean of its group; more than a tile of rows and than a block of columns."""
    rng = np.random.default_rng(2)
    vectors, means, groups = rng.standard_normal((300, 4100)), rng.standard_normal((7, 4100)), rng.integers(0, 7, 300)
    centred = vectors - means[groups]
    given = stored(vectors, tmp_path) if in_file else vectors
    found = gram_matrix(given, centre=(means, groups), work=work)
    np.testing.assert_allclose(found, centred @ centred.T, rtol=1e-12, atol=1e-9)
    weights = rng.standard_normal((3, 300))
    found = combine_rows(weights, given, centre=(means, groups))
    np.testing.assert_allclose(found, weights @ centred, rtol=1e-12, atol=1e-10)


@WORKS
def test_sums_are_float64(work):
    """Of float32 vectors: in float32, 2^24 + 1 is 2^24."""
    vectors = np.array([[4096.0, 1.0], [4096.0, 1.0]], np.float32)
    assert gram_matrix(vectors, work=work).tolist() == [[2**24 + 1] * 2] * 2
    assert inner_products(vectors, vectors).tolist() == [[2**24 + 1] * 2] * 2
    assert combine_rows(np.array([[4096.0, 1.0 / 4096]]), vectors)[0, 0] == 2**24 + 1
