"""Moments and maps of vectors: closed forms, scikit-learn, properties, shrinkage; no reference material."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from spkbase.arrays import StoredArray
from spkbase.errors import DataError
from spkver.backend import transforms
from spkver.backend.plda import Sessions, residual_prior

DRAW = np.random.default_rng(0)
CODES = np.repeat(np.arange(15), [2, 9, 3, 4, 4, 5, 2, 7, 6, 3, 3, 4, 5, 2, 1])
VECTORS = (
    DRAW.normal(size=(15, 6))[CODES]
    + DRAW.normal(size=(len(CODES), 6)) @ DRAW.normal(size=(6, 6))
    + 2
)


def test_covariances_add_up_and_equal_numpy():
    within, between = (
        transforms.within_covariance(VECTORS, CODES),
        transforms.between_covariance(VECTORS, CODES),
    )
    np.testing.assert_allclose(within + between, np.cov(VECTORS.T, bias=True), atol=1e-12)
    np.testing.assert_allclose(
        transforms.total_covariance(VECTORS), np.cov(VECTORS.T, bias=True), atol=1e-12
    )
    each = [np.cov(VECTORS[code == CODES].T, bias=True) for code in range(15)]
    np.testing.assert_allclose(
        transforms.within_covariance(VECTORS, CODES, weighting="classes"),
        np.mean(each, 0),
        atol=1e-12,
    )
    assert transforms.class_sums(VECTORS, CODES)[0].tolist() == np.bincount(CODES).tolist()


def test_blocks_and_files_change_nothing(tmp_path):
    VECTORS.tofile(tmp_path / "v")
    stored = StoredArray(tmp_path / "v", 0, VECTORS.shape, VECTORS.dtype)
    whole = (
        transforms.within_covariance(VECTORS, CODES),
        transforms.apply_maps(transforms.fit_efr(VECTORS), VECTORS),
    )
    assert np.array_equal(transforms.within_covariance(stored, CODES), whole[0])
    assert np.array_equal(transforms.apply_maps(transforms.fit_efr(stored), stored), whole[1])
    in_blocks = transforms.apply_maps(transforms.fit_efr(VECTORS), VECTORS, block_size=7)
    np.testing.assert_allclose(in_blocks, whole[1], atol=1e-12)
    counts, sums = transforms.class_sums(VECTORS, CODES)
    fewer, parts = transforms.class_sums(VECTORS, CODES, block_size=7)
    np.testing.assert_array_equal(fewer, counts)
    np.testing.assert_allclose(parts, sums, atol=1e-12)
    weights = np.full(len(CODES), 1 / len(CODES))
    spread = transforms.scatter(VECTORS, sums / counts[:, None], CODES, weights, block_size=7)
    np.testing.assert_allclose(spread, whole[0], atol=1e-12)


@pytest.mark.parametrize("kind", transforms.WHITENINGS)
def test_whitening_gives_the_identity_covariance(kind):
    white = transforms.fit_whitening(VECTORS, kind=kind)(VECTORS)
    covariance = np.cov(white.T, bias=True)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), 1, atol=1e-10)
    if kind != "diagonal":
        np.testing.assert_allclose(covariance, np.eye(6), atol=1e-10)
    matrix = transforms.whitening_matrix(transforms.total_covariance(VECTORS), kind)
    if kind == "symmetric":
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    if kind == "cholesky":
        assert np.array_equal(matrix, np.tril(matrix))
        assert (np.diag(matrix) > 0).all()


def test_length_normalisation_names_zero_vectors():
    lengths = np.linalg.norm(transforms.LengthNorm()(VECTORS), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-15)
    with pytest.raises(DataError, match=r"1 vector is zero .*: 1 "):
        transforms.apply_maps([transforms.LengthNorm()], np.array([[1.0, 2.0], [0.0, 0.0]]))
    with pytest.raises(DataError, match=r"zero .*: b "):
        transforms.apply_maps(
            [transforms.LengthNorm()], np.array([[1.0], [0.0]]), names=np.array(["a", "b"], object)
        )


def test_spherical_normalisations_repeat_their_round():
    for name, maps in (
        ("efr", transforms.fit_efr(VECTORS, rounds=2)),
        ("sphnorm", transforms.fit_sphnorm(VECTORS, CODES, rounds=2)),
    ):
        first = transforms.apply_maps(maps[:2], VECTORS)
        once = transforms.fit_efr(first) if name == "efr" else transforms.fit_sphnorm(first, CODES)
        np.testing.assert_allclose(
            transforms.apply_maps(maps, VECTORS), transforms.apply_maps(once, first), atol=1e-12
        )


@pytest.mark.filterwarnings("ignore:Only one sample")
def test_lda_equals_scikit_learn():
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(VECTORS, CODES)
    ours = transforms.fit_lda(VECTORS, CODES, rank=4).matrix
    np.testing.assert_allclose(
        ours, transforms.signed(theirs.scalings_[:, :4]), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        ours.T @ transforms.within_covariance(VECTORS, CODES) @ ours, np.eye(4), atol=1e-10
    )


def test_wccn_makes_the_covariance_within_speakers_the_identity():
    mapped = transforms.fit_wccn(VECTORS, CODES)(VECTORS)
    np.testing.assert_allclose(
        transforms.within_covariance(mapped, CODES, weighting="classes"), np.eye(6), atol=1e-10
    )


def test_coral_gives_mean_and_covariance_of_the_other_domain():
    other = DRAW.normal(size=(70, 6)) @ DRAW.normal(size=(6, 6)) - 4
    mapped = transforms.fit_coral(VECTORS, other)(VECTORS)
    np.testing.assert_allclose(mapped.mean(axis=0), other.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(
        np.cov(mapped.T), np.cov(other.T) * (len(mapped) / (len(mapped) - 1)) * 69 / 70, atol=1e-8
    )
    # a singular covariance, shrunk like that of Gaussian vectors about their own mean
    few = VECTORS[:5]
    shrunk = transforms.regularised(np.cov(few.T, bias=True), 4)
    change = transforms.fit_coral(few, other)(few) - other.mean(axis=0)
    expected = (
        (few - few.mean(axis=0)) @ np.linalg.inv(sqrtm(shrunk)) @ sqrtm(np.cov(other.T, bias=True))
    )
    np.testing.assert_allclose(change, expected, atol=1e-8)
    same = transforms.fit_coral(VECTORS, VECTORS)
    np.testing.assert_allclose(same(VECTORS), VECTORS, atol=1e-9)


# --- shrinkage -------------------------------------------------------------------------------------------------------


def test_regular_covariances_are_unchanged():
    covariance = transforms.total_covariance(VECTORS)
    assert transforms.regularised(covariance, len(VECTORS)) is covariance


@given(st.integers(1, 8), st.integers(2, 10), st.integers(0, 1 << 16))
def test_shrinkage_keeps_trace_and_eigenvectors(n_free, size, seed):
    """(1 - a) S + a t I, a as Chen et al. have it; and the bound on the condition number."""
    rows = np.random.default_rng(seed).normal(size=(min(n_free, size - 1), size))
    covariance = rows.T @ rows / n_free
    assert transforms.is_singular(covariance)
    shrunk = transforms.regularised(covariance, n_free)
    np.testing.assert_allclose(np.trace(shrunk), np.trace(covariance))
    assert np.linalg.cond(shrunk) <= (n_free + 1) * size * (1 + 1e-9)
    squares, trace = np.trace(covariance @ covariance), np.trace(covariance)
    share = ((1 - 2 / size) * squares + trace**2) / (
        (n_free + 1 - 2 / size) * (squares - trace**2 / size)
    )
    share = min(1.0, share)
    np.testing.assert_allclose(
        shrunk, (1 - share) * covariance + share * trace / size * np.eye(size), atol=1e-12
    )


def test_duplicates_and_constant_columns_are_refused():
    same = np.ones((9, 3)) * [0.1, 1e6, -3]
    assert not transforms.total_covariance(same).any(), "rounding of the mean is no variance"
    with pytest.raises(DataError, match="the 9 vectors are all the same"):
        transforms.fit_centring(same)
    constant = np.column_stack([VECTORS, np.full(len(VECTORS), 0.1)])
    for fit in (transforms.fit_whitening, transforms.fit_efr):
        maps = fit(constant)
        white = transforms.apply_maps(maps if isinstance(maps, tuple) else [maps], constant)
        assert np.isfinite(white).all()
        assert np.abs(white).max() < 10
    with pytest.raises(DataError, match="1 dimensions are constant, such as 6"):
        transforms.fit_whitening(constant, kind="diagonal")
    own = np.stack([VECTORS[code == CODES].mean(axis=0) for code in range(15)])[CODES]
    alike = VECTORS.mean(axis=0) + VECTORS - own
    with pytest.raises(DataError, match="the means of all speakers are the same"):
        transforms.fit_lda(alike, CODES, rank=1)


@pytest.mark.parametrize(("n_vectors", "warned"), [(26, True), (71, True), (73, False)])
def test_few_vectors_per_dimension_raise_a_warning(caplog, n_vectors, warned):
    """The covariance can be inverted, so scores come out, and they are worse than without the step."""
    vectors = np.random.default_rng(0).standard_normal((n_vectors, 24))
    transforms.fit_whitening(vectors)
    assert [
        ("is estimated from" in record.message and "shrink" in record.message)
        for record in caplog.records
    ] == [True] * warned
    caplog.clear()
    transforms.fit_whitening(vectors, shrink=0.1)
    assert not caplog.records


@pytest.mark.parametrize(("n_speakers", "warned"), [(30, True), (100, False)])
def test_few_vectors_per_dimension_raise_a_warning_in_plda(caplog, n_speakers, warned):
    draw = np.random.default_rng(0)
    codes = np.repeat(np.arange(n_speakers), 2)
    vectors = draw.standard_normal((n_speakers, 24))[codes] + draw.standard_normal((len(codes), 24))
    residual_prior(Sessions(vectors, codes))
    assert [record.message.count("plda.prior") for record in caplog.records] == [1] * warned
    caplog.clear()
    residual_prior(Sessions(vectors, codes), weight=24)
    assert not caplog.records


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_principal_directions_equal_the_singular_value_decomposition(shape):
    vectors = np.random.default_rng(0).normal(3, np.linspace(1, 5, shape[1]), shape)
    found = transforms.fit_pca(vectors, rank=5)
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs(found(vectors)), np.abs(centred @ axes.T), atol=1e-9)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(5), atol=1e-9)
    assert transforms.fit_pca(vectors).matrix.shape[1] == min(shape[0] - 1, shape[1])
    with pytest.raises(DataError, match="all the same"):
        transforms.fit_pca(np.ones(shape))
