"""Nuisance attribute projection against the eigenvectors of the scatter matrix itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import named, stored

from spkbase.errors import ConfigError
from spkbase.work import Work
from spkver.backend.nap import combine_rows, fit_nap, gram_matrix, inner_products


def sessions(seed=0, *, n=24, dimension=40, n_speakers=6):
    rng = np.random.default_rng(seed)
    speakers = [f"m{number % n_speakers:03d}" for number in rng.permutation(n)]
    vectors = rng.standard_normal((n, dimension)) * np.linspace(3, 0.3, dimension)
    return vectors + 0.5, speakers


def total_scatter(vectors, speakers):
    return vectors.T @ vectors


def within_scatter(vectors, speakers):
    scatter = np.zeros((vectors.shape[1],) * 2)
    for speaker in set(speakers):
        own = vectors[[name == speaker for name in speakers]]
        scatter += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
    return scatter


@pytest.mark.parametrize(
    ("scatter", "matrix"), [("total", total_scatter), ("within", within_scatter)]
)
@pytest.mark.parametrize("rank", [1, 5, 18])
@pytest.mark.parametrize("n", [24, 2100], ids=["few", "many"])
def test_directions_equal_the_eigenvectors_of_the_scatter(scatter, matrix, rank, n):
    vectors, speakers = sessions(n=n)
    found = fit_nap(vectors, rank=rank, scatter=scatter, speakers=speakers).directions
    expected = np.linalg.eigh(matrix(vectors, speakers))[1][:, ::-1][:, :rank].T
    signs = np.sign((found * expected).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found * signs, expected, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["total", "within"]))
def test_the_projection_is_orthonormal_and_idempotent(seed, rank, scatter):
    vectors, speakers = sessions(seed)
    project = fit_nap(vectors, rank=rank, scatter=scatter, speakers=speakers, work=Work(jobs=1))
    np.testing.assert_allclose(project.directions @ project.directions.T, np.eye(rank), atol=1e-9)
    once = project(vectors, work=Work(jobs=1))
    np.testing.assert_allclose(project(once, work=Work(jobs=1)), once, atol=1e-9)
    np.testing.assert_allclose(once @ project.directions.T, 0, atol=1e-9)
    # it removes exactly the components in the subspace
    np.testing.assert_allclose(
        (vectors - once) @ (np.eye(40) - project.directions.T @ project.directions), 0, atol=1e-9
    )
    np.testing.assert_allclose(project(project.directions, work=Work(jobs=1)), 0, atol=1e-9)


def test_supervectors_keep_their_type_and_supply_their_speakers():
    vectors, speakers = sessions()
    rows = named(speakers, vectors)
    expected = fit_nap(vectors, rank=3, scatter="within", speakers=speakers)
    project = fit_nap(rows, rank=3, scatter="within")
    np.testing.assert_array_equal(project.directions, expected.directions)
    assert project(rows).models is speakers
    np.testing.assert_array_equal(project(rows).vectors, expected(vectors))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 25}, "nap.rank is 25, but 24 sessions span at most 24 directions .lower it"),
        (
            {"rank": 19, "scatter": "within"},
            "24 sessions of 6 speakers differ in only 18 directions within speakers",
        ),
    ],
)
def test_a_rank_above_the_number_of_sessions_is_refused(options, words):
    vectors, speakers = sessions()
    with pytest.raises(ConfigError, match=words):
        fit_nap(vectors, speakers=speakers, **options)


@pytest.mark.parametrize(("value", "n_spanned"), [(0.0, 0), (1.0, 1)])
@pytest.mark.parametrize("n", [24, 2100])
def test_equal_sessions_span_no_more_than_one_direction(n, value, n_spanned):
    with pytest.raises(ConfigError, match=f"the {n} sessions span only {n_spanned} directions"):
        fit_nap(np.full((n, 40), value), rank=5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_in_a_file_give_the_same(tmp_path, dtype):
    """More than one tile of rows and more than one block of columns."""
    vectors, speakers = sessions(n=270, dimension=4200, n_speakers=20)
    vectors = vectors.astype(dtype)
    there = stored(vectors, tmp_path)
    for scatter in ("total", "within"):
        here = fit_nap(vectors, rank=7, scatter=scatter, speakers=speakers)
        found = fit_nap(there, rank=7, scatter=scatter, speakers=speakers, work=Work(jobs=2))
        np.testing.assert_array_equal(found.directions, here.directions)
    np.testing.assert_array_equal(found(there, work=Work(jobs=2)), here(vectors))
    np.testing.assert_array_equal(gram_matrix(there, work=Work(jobs=2)), gram_matrix(vectors))


def test_sums_are_float64():
    """Of float32 vectors: in float32, 2^24 + 1 is 2^24."""
    vectors = np.array([[4096.0, 1.0], [4096.0, 1.0]], np.float32)
    assert gram_matrix(vectors).tolist() == [[2**24 + 1] * 2] * 2
    assert inner_products(vectors, vectors).tolist() == [[2**24 + 1] * 2] * 2
    assert combine_rows(np.array([[4096.0, 1.0 / 4096]]), vectors)[0, 0] == 2**24 + 1
