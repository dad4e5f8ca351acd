"""Moments and transforms against the golden numbers of SIDEKIT 1.3.2 and the textbook (golden/backend/README.md)."""

import numpy as np
import pytest

from spkver.backend import fit_nap, transforms
from spkver.backend.transforms import within_covariance as within

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module")
def golden(shared):
    arrays = {}
    for name in ("backend", "inputs", "tv"):
        with np.load(shared / "golden" / "backend" / f"{name}.npz") as file:
            arrays.update(file)
    return arrays


@pytest.fixture(scope="module")
def vectors(golden):
    return golden["iv_train"]


@pytest.fixture(scope="module")
def codes(golden):
    return np.unique(golden["train_models"], return_inverse=True)[1]


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def same_gram(ours, theirs):
    same(ours @ ours.T, theirs @ theirs.T)


def test_moments_equal_sidekit(golden, vectors, codes):
    same(transforms.mean(vectors), golden["mean"])
    same(transforms.total_covariance(vectors), golden["total_covariance"])
    same(within(vectors, codes), golden["within_covariance"])
    same(transforms.between_covariance(vectors, codes), golden["between_covariance"])
    same(np.linalg.inv(within(vectors, codes)), golden["mahalanobis"])


def test_sums_and_means_of_models_equal_sidekit(golden):
    names, codes = np.unique(golden["enroll_models"], return_inverse=True)
    assert names.tolist() == golden["sum_models"].tolist()
    counts, sums = transforms.class_sums(golden["iv_enroll"], codes)
    same(counts, golden["sum_sessions"])
    same(sums, golden["sum_stat1_iv"])
    same(transforms.class_means(golden["iv_enroll"], codes), golden["mean_iv"])
    same(transforms.class_sums(golden["enroll_stat0"], codes)[1], golden["sum_stat0"])
    same(transforms.class_means(golden["enroll_stat0"], codes), golden["mean_stat0"])


def test_centring_length_and_whitening_equal_sidekit(golden, vectors):
    same(transforms.fit_centring(vectors)(vectors), golden["center"])
    same(transforms.LengthNorm()(vectors), golden["norm"])
    same_gram(transforms.fit_whitening(vectors)(vectors), golden["whiten_full"])
    same_gram(transforms.fit_whitening(vectors, kind="symmetric")(vectors), golden["whiten_full"])
    same(transforms.fit_whitening(vectors, kind="cholesky")(vectors), golden["whiten_cholesky"])
    same(transforms.fit_whitening(vectors, kind="diagonal")(vectors), golden["whiten_diag"])


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("name", ["efr", "sphNorm"])
def test_spherical_normalisations_equal_sidekit(golden, vectors, codes, name, rounds):
    maps = (
        transforms.fit_efr(vectors, rounds=rounds)
        if name == "efr"
        else transforms.fit_sphnorm(vectors, codes, rounds=rounds)
    )
    means = [step.offset for step in maps if isinstance(step, transforms.AffineMap)]
    same(means[0], golden[f"{name}_{rounds}_mean"][0])
    # up to a rotation
    same(np.linalg.norm(means[-1]), np.linalg.norm(golden[f"{name}_{rounds}_mean"][-1]))
    theirs = golden[f"{name}_{rounds}_cov"]
    for number, covariance in enumerate(theirs):
        current = transforms.apply_maps(maps[: 2 * number], vectors)
        ours = transforms.total_covariance(current) if name == "efr" else within(current, codes)
        same(np.linalg.eigvalsh(ours), np.linalg.eigvalsh(covariance))
    both = [
        (transforms.apply_maps(maps, golden[f"iv_{part}"]), golden[f"{name}_{rounds}_{part}"])
        for part in ("train", "enroll")
    ]
    for ours, reference in both:
        same_gram(ours, reference)
    tested = transforms.apply_maps(maps, golden["iv_test"]), golden[f"{name}_{rounds}_test"]
    same(tested[0] @ both[1][0].T, tested[1] @ both[1][1].T)


def test_lda_wccn_and_nap_equal_sidekit(golden, vectors, codes):
    signs = lambda ours, theirs: np.sign((ours * theirs).sum(axis=0))  # noqa: E731
    for convention, name in (("book", "right_lda_10"), ("sidekit", "lda_10")):
        directions = transforms.fit_lda(vectors, codes, rank=10, convention=convention).matrix
        same(directions * signs(directions, golden[name]), golden[name])
    rotated = transforms.fit_lda(vectors, codes, rank=10, convention="sidekit")(vectors)
    same_gram(rotated, golden["rotate_lda"])
    every = transforms.fit_lda(vectors, codes).matrix
    eigenvalues = np.diag(every.T @ transforms.between_covariance(vectors, codes) @ every)
    same(eigenvalues, golden["right_lda_eigenvalues"])
    same(transforms.fit_wccn(vectors, codes).matrix, golden["wccn_cholesky"])
    removed = fit_nap(vectors, rank=5).directions
    same_gram(removed.T, golden["nap_5"])
