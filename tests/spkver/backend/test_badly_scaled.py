"""Badly scaled and degenerate training vectors: what a chain trains, it scores with."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evaluation as ev
from spkver.backend import train_chain
from spkver.backend import transforms as maps
from spkver.backend.plda import lower_factor

N_SPEAKERS, N_SESSIONS, DIMENSION = 40, 5, 10
SPEAKERS = np.repeat([f"s{number:02d}" for number in range(N_SPEAKERS)], N_SESSIONS)
IDS = np.array([f"{speaker}-{row}" for row, speaker in enumerate(SPEAKERS)])
TRIALS = ev.Trials.from_ids(np.repeat(SPEAKERS[:25:5], 25), np.tile(IDS[:25], 5))
CHAINS = [
    *(
        "cosine",
        "centre,cosine",
        "length,cosine",
        "efr,cosine",
        "sphnorm,cosine",
        "pca,cosine",
        "lda:3,cosine",
    ),
    *(
        "whiten,cosine",
        "whiten:symmetric,cosine",
        "whiten:cholesky,cosine",
        "wccn,cosine",
        "nap:1,cosine",
    ),
    *(
        "adapted_cosine",
        "single_test_cosine",
        "enrolled_plda",
        "self_trained_plda",
        "mahalanobis",
        "two_covariance",
        "plda",
        "plda:3",
    ),
    *(
        "lda:3,mahalanobis",
        "whiten,mahalanobis",
        "wccn,mahalanobis",
        "wccn,plda",
        "whiten,two_covariance",
        "svm",
    ),
    *(
        "pca,plda",
        "nap:1,plda",
        "lda:3,plda",
        "[{plda: {channel_rank: 2}}]",
        "[{plda: {residual: diagonal}}]",
    ),
    *("[{mahalanobis: {shrink: 0.01}}]", "[{wccn: {shrink: 0.01}}, cosine]", "mahalanobis,snorm"),
]


def vectors_of(seed, dimension=DIMENSION):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N_SPEAKERS, dimension)).repeat(N_SESSIONS, axis=0) + 0.5 * rng.normal(
        size=(len(SPEAKERS), dimension)
    )


def with_long_vector(seed, size):
    vectors = vectors_of(seed)
    vectors[0] *= size
    return vectors


def with_scaled_column(seed, size):
    vectors = vectors_of(seed)
    vectors[:, 0] *= size
    return vectors


def with_session_direction(seed, size):
    rng = np.random.default_rng(seed + 1)
    return vectors_of(seed) + size * rng.normal(size=(len(SPEAKERS), 1)) * rng.normal(
        size=DIMENSION
    )


def with_nearly_equal_columns(seed, size):
    vectors = vectors_of(seed)
    vectors[:, 1] = vectors[:, 0] + vectors[:, 2] / size
    return vectors


def with_equal_columns(seed, size):
    vectors = vectors_of(seed)
    vectors[:, 1] = vectors[:, 0] * size
    return vectors


def with_constant_column(seed, size):
    vectors = vectors_of(seed)
    vectors[:, 1] = size / 3
    return vectors


def with_repeated_vectors(seed, size):
    vectors = vectors_of(seed)
    vectors[1::2] = vectors[::2]
    return vectors * size


def with_offset(seed, size):
    return vectors_of(seed) + size


def of_few_vectors_for_the_dimensions(seed, size):
    return vectors_of(seed, dimension=len(SPEAKERS) + 20) * size


KINDS = [
    with_long_vector,
    with_scaled_column,
    with_session_direction,
    with_nearly_equal_columns,
    with_equal_columns,
    with_constant_column,
    with_repeated_vectors,
    with_offset,
    of_few_vectors_for_the_dimensions,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [1e4, 1e6])
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("chain", CHAINS)
def test_trained_chains_give_finite_scores(chain, make, size):
    if make is of_few_vectors_for_the_dimensions and size != 1e6:
        pytest.skip("one size is enough")
    vectors = make(1, size)
    embeddings = ev.Embeddings(ids=IDS, speakers=SPEAKERS, vectors=vectors)
    backend = train_chain(embeddings, chain)
    assert np.isfinite(backend.score(embeddings, embeddings, TRIALS).values).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**16),
    exponents=st.lists(st.floats(-5.5, 0), min_size=2, max_size=20),
    unit=st.floats(-100, 100),
)
def test_the_inverse_of_a_covariance_is_symmetric_and_positive_definite(seed, exponents, unit):
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(len(exponents),) * 2))[0]
    values = 10.0 ** (unit + 2 * np.array([0.0, *exponents[1:]]))
    covariance = (rotation * values) @ rotation.T
    covariance = (covariance + covariance.T) / 2
    inverse = maps.inverse(covariance)
    assert np.abs(inverse - inverse.T).max() <= 1e-9 * np.abs(inverse).max()
    lower_factor(inverse, "the inverse")
    condition = values.max() / values.min()
    assert np.abs(inverse @ covariance - np.eye(len(values))).max() < 1e-13 * condition


def test_distances_do_not_depend_on_the_unit_of_a_column():
    rng = np.random.default_rng(0)
    units = 10.0 ** rng.integers(-4, 2, DIMENSION)
    expected, scaled = (
        train_chain(ev.Embeddings(IDS, SPEAKERS, vectors), "mahalanobis")
        .score(*[ev.Embeddings(IDS, SPEAKERS, vectors)] * 2, TRIALS)
        .values
        for vectors in (vectors_of(0), vectors_of(0) * units)
    )
    np.testing.assert_allclose(scaled, expected, rtol=1e-6)
