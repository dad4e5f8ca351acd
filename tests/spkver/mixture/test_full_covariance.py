"""Full covariances: scikit-learn, scipy, the diagonal mixture as a special case, and properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkbase.work import Work
from spkver.backend.scoring import score_gmm_ubm
from spkver.features import Frames
from spkver.mixture import ubm
from spkver.mixture.gmm import GaussianMixture, e_step, log_likelihood
from spkver.mixture.statistics import Statistics, accumulate_statistics
from spkver.vectors.supervectors import MapConfig, adapt_multisession, adapt_supervectors


def random_mixture(rng, n_components=3, dimension=4):
    weights = rng.uniform(0.5, 1.5, n_components)
    roots = rng.standard_normal((n_components, dimension, dimension))
    covariances = roots @ roots.swapaxes(1, 2) / dimension + 0.2 * np.eye(dimension)
    return GaussianMixture(
        weights / weights.sum(), rng.standard_normal((n_components, dimension)) * 2, covariances
    )


def diagonal_mixture(rng, n_components=3, dimension=4):
    variances = rng.uniform(0.3, 2.0, (n_components, dimension))
    weights = np.full(n_components, 1 / n_components)
    return GaussianMixture(weights, rng.standard_normal((n_components, dimension)), variances)


def drawn(rng, mixture, n_frames):
    owners = rng.choice(mixture.n_components, n_frames, p=mixture.weights)
    factors = np.linalg.cholesky(mixture.variances)
    noise = rng.standard_normal((n_frames, mixture.dimension))
    return mixture.means[owners] + (factors[owners] @ noise[:, :, None])[:, :, 0]


def densities(mixture, frames):
    """Weighted densities (T, C) by scipy."""
    parts = zip(mixture.weights, mixture.means, mixture.variances, strict=True)
    return np.stack([w * multivariate_normal(m, c).pdf(frames) for w, m, c in parts], axis=1)


# --- densities, statistics, EM ---------------------------------------------------------------------------------------


def every_trial(models, segments):
    pairs = [(model, segment) for model in models for segment in segments]
    return Trials.from_ids(*map(list, zip(*pairs, strict=True)))


def as_frames(segments):
    ids = np.array([f"s{number}" for number in range(len(segments))], object)
    return Frames(ids, np.cumsum([0, *map(len, segments)]), np.concatenate(segments))


@pytest.mark.parametrize("n_rounds", [1, 7])
def test_em_rounds_equal_scikit_learn(n_rounds):
    from sklearn.mixture import GaussianMixture as Reference

    rng = np.random.default_rng(5)
    start = random_mixture(rng)
    frames = drawn(rng, random_mixture(rng), 3000)
    reference = Reference(
        3, covariance_type="full", weights_init=start.weights, means_init=start.means,
        precisions_init=np.linalg.inv(start.variances), reg_covar=0, max_iter=n_rounds, tol=0, init_params="random",
    )  # fmt: skip
    with pytest.warns(Warning, match="did not converge"):
        reference.fit(frames)
    mixture = start
    for _ in range(n_rounds):
        accumulator = e_step(frames, mixture)
        mixture = ubm.full_m_step(accumulator, mixture, reference=np.ones(4), limits=(1e-12, 1e12))
    np.testing.assert_allclose(mixture.weights, reference.weights_, rtol=1e-10)
    np.testing.assert_allclose(mixture.means, reference.means_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(mixture.variances, reference.covariances_, rtol=1e-9, atol=1e-10)
    assert accumulator.mean_log_likelihood == pytest.approx(reference.lower_bound_, rel=1e-11)
    np.testing.assert_allclose(
        log_likelihood(frames, mixture), reference.score_samples(frames), rtol=1e-9
    )


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 5), st.sampled_from([0.01, 0.3])
)
def test_the_likelihood_never_falls_for_any_variance_limits(seed, n_components, dimension, floor):
    """Far fewer frames than entries of the covariances: the floor is all that keeps them regular."""
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((12, dimension)) @ rng.standard_normal((dimension, dimension))
    reference, limits = (frames**2).mean(axis=0), (floor, 1.0)
    mixture = ubm.with_full_covariances(
        GaussianMixture(
            np.full(n_components, 1 / n_components),
            frames[rng.choice(12, n_components, replace=False)],
            np.tile(reference, (n_components, 1)),
        )
    )
    previous = -np.inf
    for _ in range(6):
        accumulator = e_step(frames, mixture, work=Work(jobs=1))
        assert accumulator.mean_log_likelihood >= previous - 1e-9
        previous = accumulator.mean_log_likelihood
        mixture = ubm.full_m_step(accumulator, mixture, reference=reference, limits=limits)
        shares = np.linalg.eigvalsh(mixture.variances / np.sqrt(np.outer(reference, reference)))
        assert shares.min() >= floor * (1 - 1e-6)
        assert shares.max() <= 1 + 1e-6


def test_clipped_covariances_maximise_the_likelihood():
    """No covariance within the limits has a lower log |S| + tr(S^-1 A): checked on many others."""
    rng = np.random.default_rng(3)
    scatter = random_mixture(rng, 1, 3).variances
    best = ubm.clipped_covariances(scatter, np.ones(3), (0.5, 1.2))[0]

    def cost(covariance):
        return float(
            np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, scatter[0]))
        )

    for _ in range(2000):
        axes = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        assert cost((axes * rng.uniform(0.5, 1.2, 3)) @ axes.T) >= cost(best) - 1e-12


def test_training_continues_from_the_diagonal_mixture():
    rng = np.random.default_rng(2)
    truth = random_mixture(rng, 2, 3)
    frames = drawn(rng, truth, 20_000)
    diagonal = ubm.train_ubm(frames, ubm.UbmConfig(components=2))
    full = ubm.train_ubm(frames, ubm.UbmConfig(components=2, covariance="full", full_iterations=30))
    np.testing.assert_array_equal(
        full.log_likelihoods[: len(diagonal.log_likelihoods)], diagonal.log_likelihoods
    )
    assert len(full.log_likelihoods) == len(full.sizes) == len(diagonal.log_likelihoods) + 30
    assert (np.diff(full.log_likelihoods) >= -1e-10).all()
    assert full.log_likelihoods[-1] > diagonal.log_likelihoods[-1] + 0.05
    order = np.argsort(full.mixture.means[:, 0])
    expected = np.argsort(truth.means[:, 0])
    np.testing.assert_allclose(full.mixture.means[order], truth.means[expected], atol=0.1)
    np.testing.assert_allclose(full.mixture.variances[order], truth.variances[expected], atol=0.1)


def test_a_component_without_frames_is_unchanged(caplog):
    mixture = GaussianMixture(
        np.array([0.5, 0.5]), np.array([[0.0, 0.0], [90.0, 90.0]]), np.tile(np.eye(2), (2, 1, 1))
    )
    frames = np.random.default_rng(0).standard_normal((100, 2))
    after = ubm.full_m_step(
        e_step(frames, mixture), mixture, reference=np.ones(2), limits=(0.01, 10)
    )
    assert after.means[1].tolist() == [90.0, 90.0]
    assert after.variances[1].tolist() == np.eye(2).tolist()
    assert "Gaussians [1] have less than one frame" in caplog.text


# --- diagonal matrices given as full ---------------------------------------------------------------------------------


def test_diagonal_matrices_equal_the_diagonal_mixture():
    rng = np.random.default_rng(8)
    diagonal = diagonal_mixture(rng)
    full = ubm.with_full_covariances(diagonal)
    segments = [rng.standard_normal((n_frames, 4)) for n_frames in (3, 40, 900, 2, 70)]
    frames, ids = as_frames(segments), [f"s{number}" for number in range(5)]
    models = ["a", "a", "b", "c", "c"]
    ours, theirs = (e_step(frames.values, mixture) for mixture in (full, diagonal))
    np.testing.assert_allclose(ours.zeroth, theirs.zeroth, rtol=1e-13)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-14)
    of_full, of_diagonal = (
        accumulate_statistics(mixture, frames, models, ids) for mixture in (full, diagonal)
    )
    np.testing.assert_allclose(of_full.first, of_diagonal.first, rtol=1e-11, atol=1e-13)
    for adapt in (adapt_supervectors, adapt_multisession):
        vectors = [adapt(mixture, of_diagonal, MapConfig()).vectors for mixture in (full, diagonal)]
        np.testing.assert_allclose(*vectors, rtol=1e-12, atol=1e-14)
    means = adapt_multisession(diagonal, of_diagonal, MapConfig(normalise=False))
    trials = every_trial("abc", ids)
    scores = [score_gmm_ubm(mixture, means, frames, trials) for mixture in (full, diagonal)]
    np.testing.assert_allclose(scores[0].values, scores[1].values, rtol=1e-11, atol=1e-13)


# --- supervectors and ratios -----------------------------------------------------------------------------------------


def some_statistics(rng):
    names = np.array(["a", "b"], object)
    return Statistics(names, names, rng.uniform(0, 5, (2, 3)), rng.standard_normal((2, 12)))


def test_products_of_supervectors_use_the_precisions():
    rng = np.random.default_rng(1)
    mixture, statistics = random_mixture(rng), some_statistics(rng)
    means = adapt_multisession(mixture, statistics, MapConfig(normalise=False)).vectors.reshape(
        2, 3, 4
    )
    vectors = adapt_multisession(mixture, statistics).vectors
    precisions = np.linalg.inv(mixture.variances)
    expected = np.einsum("c,scd,cde,tce->st", mixture.weights, means, precisions, means)
    np.testing.assert_allclose(vectors @ vectors.T, expected, rtol=1e-11)


def test_log_likelihood_ratios_equal_scipy():
    rng = np.random.default_rng(4)
    mixture, statistics = random_mixture(rng), some_statistics(rng)
    frames = as_frames([rng.standard_normal((n_frames, 4)) for n_frames in (30, 700)])
    means = adapt_multisession(mixture, statistics, MapConfig(normalise=False))
    trials = Trials.from_ids(["a", "b", "a"], ["s0", "s0", "s1"])
    scores = score_gmm_ubm(mixture, means, frames, trials).values
    for score, row, segment in zip(scores, (0, 1, 0), ("s0", "s0", "s1"), strict=True):
        adapted = GaussianMixture(
            mixture.weights, means.vectors[row].reshape(3, 4), mixture.variances
        )
        tested = frames.of(segment)
        logs = [np.log(densities(model, tested).sum(axis=1)) for model in (adapted, mixture)]
        assert score == pytest.approx((logs[0] - logs[1]).mean(), rel=1e-10)


# --- files, configuration, bad input ---------------------------------------------------------------------------------


def test_written_mixtures_are_read_back(tmp_path):
    rng = np.random.default_rng(7)
    full = random_mixture(rng)
    trained = ubm.TrainedUbm(
        full.weights, full.means, full.variances, np.ones(4), np.array([-5.0]), np.array([3])
    )
    ubm.write_ubm(tmp_path / "ubm.h5", trained)
    read = ubm.read_ubm(tmp_path / "ubm.h5")
    assert read.has_full_covariances
    np.testing.assert_array_equal(read.means, trained.means)
    np.testing.assert_allclose(read.variances, trained.variances, rtol=1e-9, atol=1e-12)
    assert read.log_likelihoods.tolist() == [-5.0]
    ubm.check_ubm(
        ubm.UbmConfig(file=str(tmp_path / "ubm.h5"), covariance="full"),
        dimension=4,
        most_frames=1e6,
    )
    ubm.write_ubm(tmp_path / "diagonal.h5", diagonal_mixture(rng))
    with pytest.raises(ConfigError, match="holds diagonal covariances"):
        ubm.check_ubm(
            ubm.UbmConfig(file=str(tmp_path / "diagonal.h5"), covariance="full"),
            dimension=4,
            most_frames=1e6,
        )


@pytest.mark.parametrize(
    ("covariances", "words"),
    [
        (np.ones((1, 2, 2)), "not positive definite"),
        (np.array([[[1.0, 0.5], [0.0, 1.0]]]), "not symmetric"),
        (np.ones((1, 2, 3)), r"covariances \(C, D, D\)"),
    ],
)
def test_bad_mixtures_are_refused(covariances, words):
    with pytest.raises(DataError, match=words):
        GaussianMixture(np.ones(1), np.zeros((1, 2)), covariances)
    for weights in ([1.5, -0.5], [0.5, 0.6], [np.nan, 1.0]):
        with pytest.raises(DataError, match="weights of a mixture must be at least 0 and sum to 1"):
            GaussianMixture(np.array(weights), np.zeros((2, 2)), np.ones((2, 2)))
