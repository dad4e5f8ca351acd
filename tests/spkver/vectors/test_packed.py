"""Packed symmetric matrices: each routine against NumPy on whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from spkver.vectors.posteriors import (
    add_outer_products,
    diagonal_places,
    factor,
    invert,
    log_determinants,
    pack,
    packed_length,
    packed_places,
    rank_of,
    solve,
    squares,
    unpack,
)

RANKS = [1, 2, 3, 8, 31, 100]


def positive(rank: int, count: int = 3) -> np.ndarray:
    rows = np.random.default_rng(rank).standard_normal((count, 2 * rank + 2, rank))
    return np.einsum("nij,nik->njk", rows, rows)


@pytest.mark.parametrize("rank", RANKS)
def test_every_entry_has_one_place(rank):
    rows, columns = packed_places(rank)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [
        (i, j) for i in range(rank) for j in range(i + 1)
    ]
    matrices = positive(rank)
    np.testing.assert_array_equal(unpack(pack(matrices)), np.tril(matrices) + np.swapaxes(np.tril(matrices, -1), 1, 2))
    np.testing.assert_array_equal(pack(matrices)[:, diagonal_places(rank)], np.diagonal(matrices, axis1=1, axis2=2))
    assert rank_of(packed_length(rank)) == rank


@pytest.mark.parametrize("rank", RANKS)
def test_routines_are_those_of_whole_matrices(rank):
    matrices, rng = positive(rank), np.random.default_rng(0)
    scale = np.abs(matrices).max()
    rows = rng.standard_normal((3, rank + 4, rank))
    np.testing.assert_allclose(unpack(squares(rows)), np.swapaxes(rows, 1, 2) @ rows, atol=1e-13 * scale)
    sums, vectors = pack(matrices), rng.standard_normal((3, rank))
    add_outer_products(sums, vectors)
    np.testing.assert_allclose(unpack(sums), matrices + vectors[:, :, None] * vectors[:, None], atol=1e-14 * scale)
    factors = pack(matrices)
    assert factor(factors).all()
    np.testing.assert_allclose(log_determinants(factors), np.linalg.slogdet(matrices)[1], rtol=1e-11)
    one, many = vectors.copy(), rng.standard_normal((3, 5, rank))
    expected = np.linalg.solve(matrices, np.concatenate([one[:, None], many], axis=1).swapaxes(1, 2)).swapaxes(1, 2)
    solve(factors, one)
    solve(factors, many)
    np.testing.assert_allclose(np.concatenate([one[:, None], many], axis=1), expected, rtol=1e-8, atol=1e-10)
    invert(factors)
    np.testing.assert_allclose(unpack(factors), np.linalg.inv(matrices), rtol=1e-8, atol=1e-10)


def test_a_matrix_that_is_not_positive_is_told_apart():
    matrices = positive(4, count=5)
    matrices[1, 2, 2], matrices[3] = -1, 0
    assert factor(pack(matrices)).tolist() == [True, False, True, False, True]
