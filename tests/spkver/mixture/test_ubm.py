"""EM by splitting: golden numbers, scikit-learn, closed forms and properties."""

import golden_numbers
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import stored

from spkbase.errors import DataError
from spkbase.work import Work
from spkver.mixture import ubm
from spkver.mixture.gmm import Accumulator, GaussianMixture, e_step, log_likelihood, m_step

PEER_FIRST_SPLIT = 57
NO_LIMITS = {"lowest": np.zeros(2), "highest": np.full(2, np.inf)}


@pytest.fixture(scope="module")
def golden():
    return golden_numbers.load("em_split")


def random_mixture(rng, n_components, dimension):
    weights = rng.uniform(0.5, 1.5, n_components)
    return GaussianMixture(
        weights / weights.sum(),
        rng.standard_normal((n_components, dimension)),
        rng.uniform(0.3, 2.0, (n_components, dimension)),
    )


@pytest.mark.parametrize("n_components", [16, 64])
def test_golden_mixtures_are_reproduced_in_float64(golden, n_components):
    config = ubm.UbmConfig(components=n_components, first_split_dimension=PEER_FIRST_SPLIT)
    trained = ubm.train_ubm(golden["frames"].astype(np.float64), config)
    mixture = trained.mixture
    np.testing.assert_allclose(mixture.weights, golden[f"w{n_components}"], atol=1e-9, rtol=0)
    np.testing.assert_allclose(mixture.means, golden[f"mu{n_components}"], atol=1e-9, rtol=0)
    np.testing.assert_allclose(
        1 / mixture.variances, golden[f"invcov{n_components}"], atol=1e-9, rtol=0
    )
    np.testing.assert_allclose(
        trained.log_likelihoods, golden[f"llk{n_components}"], atol=1e-9, rtol=0
    )
    np.testing.assert_allclose(
        trained.variance_control, golden[f"cov_var_ctl{n_components}"][0], atol=1e-9, rtol=0
    )


def test_golden_mixtures_are_reproduced_in_float32(golden):
    trained = ubm.train_ubm(
        golden["frames"], ubm.UbmConfig(components=64, first_split_dimension=PEER_FIRST_SPLIT)
    )
    for ours, name in (
        (trained.mixture.weights, "w"),
        (trained.mixture.means, "mu"),
        (trained.log_likelihoods, "llk"),
    ):
        expected = golden[f"{name}64"]
        assert np.abs(ours - expected).max() <= 1e-4 * np.abs(expected).max()
    precisions = 1 / trained.mixture.variances
    assert np.abs(precisions - golden["invcov64"]).max() <= 1e-4 * golden["invcov64"].max()


def test_one_em_step_equals_scikit_learn():
    from sklearn.mixture import GaussianMixture as Reference

    rng = np.random.default_rng(5)
    start = random_mixture(rng, 4, 3)
    frames = rng.standard_normal((3000, 3)) * 1.5 + 0.2
    reference = Reference(
        4, covariance_type="diag", weights_init=start.weights, means_init=start.means,
        precisions_init=1 / start.variances, reg_covar=0, max_iter=1, tol=0, init_params="random",
    )  # fmt: skip
    with pytest.warns(Warning, match="did not converge"):
        reference.fit(frames)
    accumulator = e_step(frames, start)
    ours = m_step(accumulator, lowest=np.zeros(3), highest=np.full(3, np.inf))
    np.testing.assert_allclose(ours.weights, reference.weights_, atol=1e-12, rtol=0)
    np.testing.assert_allclose(ours.means, reference.means_, atol=1e-12, rtol=0)
    np.testing.assert_allclose(ours.variances, reference.covariances_, atol=1e-12, rtol=0)
    assert accumulator.mean_log_likelihood == pytest.approx(reference.lower_bound_, abs=1e-12)


@pytest.mark.parametrize("variance", [1e-6, 1e6])
@pytest.mark.parametrize("dimension", [60, 2000])
def test_densities_are_finite_in_any_dimension(variance, dimension):
    """The determinant is 1e-360 and less: the peer's constant overflows there."""
    mixture = GaussianMixture(
        np.full(2, 0.5), np.zeros((2, dimension)), np.full((2, dimension), variance)
    )
    expected = -0.5 * dimension * np.log(2 * np.pi * variance)
    np.testing.assert_allclose(
        log_likelihood(np.zeros((3, dimension)), mixture), expected, rtol=1e-12
    )
    far = log_likelihood(np.full((1, dimension), 1e3), mixture)
    assert np.isfinite(far).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 6))
def test_the_likelihood_never_falls(seed, n_components, dimension):
    """EM without variance limits never lowers the likelihood."""
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((400, dimension)) * rng.uniform(0.5, 2, dimension)
    mixture, previous = random_mixture(rng, n_components, dimension), -np.inf
    for _ in range(5):
        accumulator = e_step(frames, mixture, work=Work(jobs=1))
        assert accumulator.mean_log_likelihood >= previous - 1e-9
        previous = accumulator.mean_log_likelihood
        mixture = m_step(
            accumulator, lowest=np.full(dimension, 1e-12), highest=np.full(dimension, np.inf)
        )


def test_ties_are_resolved_to_the_lowest_dimension():
    noisy = 1 + np.random.default_rng(0).uniform(-1, 1, (6, 60)) * 1e-8
    np.testing.assert_array_equal(ubm.widest_dimensions(noisy), np.zeros(6))
    noisy[2, 17] = 1.001
    assert ubm.widest_dimensions(noisy)[2] == 17


def test_variances_stay_within_their_limits():
    rng = np.random.default_rng(4)
    frames = np.concatenate([rng.standard_normal((500, 2)) * 1e-4, rng.standard_normal((500, 2))])
    trained = ubm.train_ubm(
        frames, ubm.UbmConfig(components=4, variance_floor=0.2, variance_ceiling=1.5)
    )
    assert (trained.mixture.variances >= 0.2 * trained.variance_control - 1e-15).all()
    assert (trained.mixture.variances <= 1.5 * trained.variance_control + 1e-15).all()


def test_an_empty_component_is_replaced_by_splitting_the_largest(caplog):
    first = np.array([[0.0, 0.0], [80.0, 0.0], [0.0, 0.0]])
    second = np.array([[30.0, 30.0], [400.0, 100.0], [0.0, 0.0]])
    accumulator = Accumulator(np.array([30.0, 70.0, 1e-9]), first, second, -1.0, 100)
    with caplog.at_level("WARNING"):
        revived = ubm._revive(accumulator)
    assert "Gaussian 2" in caplog.text
    np.testing.assert_allclose(revived.zeroth, [30, 35, 35])
    before = m_step(
        Accumulator(np.array([30.0, 70.0]), first[:2], second[:2], -1.0, 100), **NO_LIMITS
    )
    mixture = m_step(revived, **NO_LIMITS)
    # each half is a copy of the fullest one, shifted by one of its deviations to either side; the other Gaussian stays
    deviation = np.array([before.variances[1, 0] ** 0.5, 0])
    expected = [before.means[0], before.means[1] - deviation, before.means[1] + deviation]
    np.testing.assert_allclose(mixture.means, expected, atol=1e-12)
    np.testing.assert_allclose(mixture.variances, before.variances[[0, 1, 1]])


@pytest.mark.parametrize(
    ("frames", "config", "words"),
    [
        (np.ones((5, 2)), ubm.UbmConfig(components=8), "5 frames cannot train 8 Gaussians"),
        (np.full((50, 2), np.nan), ubm.UbmConfig(components=2), "finite"),
        (np.full((50, 2), np.inf), ubm.UbmConfig(components=2), "finite"),
        (np.zeros((50, 2)), ubm.UbmConfig(components=2), "0 everywhere"),
        (np.ones(50), ubm.UbmConfig(components=2), r"frames of shape \(n, D\), got \(50,\)"),
        (np.ones((0, 2)), ubm.UbmConfig(components=1), "0 frames"),
        (np.eye(20), ubm.UbmConfig(components=2, first_split_dimension=20), "0 to 19"),
    ],
)
def test_bad_frames_are_refused(frames, config, words):
    with pytest.raises(DataError, match=words):
        ubm.train_ubm(frames, config)


# --- training by EM ---------------------------------------------------------------------------------------------------


def some_frames():
    return np.random.default_rng(2).standard_normal((20_000, 5)).astype(np.float32)


def contents(trained):
    mixture = trained.mixture
    arrays = (mixture.weights, mixture.means, mixture.variances, trained.variance_control)
    return b"".join(one.tobytes() for one in (*arrays, trained.log_likelihoods, trained.sizes))


def test_a_mixture_is_written_with_and_without_its_history(tmp_path):
    trained = ubm.train_ubm(
        some_frames()[:2000].astype(np.float64), ubm.UbmConfig(components=4, variance_floor=1e-6)
    )
    ubm.write_ubm(str(tmp_path / "a.h5"), trained)
    ubm.write_ubm(str(tmp_path / "b.h5"), trained.mixture)
    found, plain = ubm.read_ubm(tmp_path / "a.h5"), ubm.read_ubm(tmp_path / "b.h5")
    assert found.sizes.tolist() == trained.sizes.tolist()
    assert plain.sizes.tolist() == []
    np.testing.assert_array_equal(plain.means, trained.means)
    # under EM the second moment of a mixture is that of the frames
    np.testing.assert_allclose(plain.variance_control, trained.variance_control, rtol=1e-9)


def test_frames_in_a_file_give_the_same_mixture(tmp_path):
    expected = ubm.train_ubm(some_frames(), ubm.UbmConfig(components=8))
    for jobs in (1, 2):
        found = ubm.train_ubm(
            stored(some_frames(), tmp_path), ubm.UbmConfig(components=8), work=Work(jobs=jobs)
        )
        assert contents(found) == contents(expected)
    with pytest.raises(DataError, match="finite"):
        ubm.train_ubm(
            stored(np.full((50, 2), np.nan), tmp_path, "nan"), ubm.UbmConfig(components=2)
        )
