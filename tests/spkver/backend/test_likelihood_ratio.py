"""Log-likelihood ratios against the densities that SciPy computes."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from spkver.backend.scoring import log_likelihood_ratios
from spkver.mixture.gmm import GaussianMixture, natural_parameters, sufficient_statistics


def joint_densities(frames: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Log of weight times density, (T, C)."""
    of_dimensions = norm.logpdf(frames[:, None, :], means, np.sqrt(variances))
    return np.log(weights) + of_dimensions.sum(axis=2)


def case() -> tuple[np.ndarray, GaussianMixture]:
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, 5)
    mixture = GaussianMixture(weights / weights.sum(), rng.standard_normal((5, 3)), rng.uniform(0.3, 2, (5, 3)))
    return 1.5 * rng.standard_normal((700, 3)), mixture


def test_ratios_of_models():
    frames, mixture = case()
    means = mixture.means + 0.3 * np.random.default_rng(1).standard_normal((4, 5, 3))
    models, background = (
        [logsumexp(joint_densities(frames, mixture.weights, of_model, mixture.variances), axis=1) for of_model in some]
        for some in (means, [mixture.means])
    )
    expected = [(model - background[0]).mean() for model in models]
    np.testing.assert_allclose(log_likelihood_ratios(frames, means, mixture), expected, rtol=1e-10, atol=1e-12)


def test_sufficient_statistics_are_sums_over_posteriors():
    frames, mixture = case()
    joint = joint_densities(frames, mixture.weights, mixture.means, mixture.variances)
    total = logsumexp(joint, axis=1, keepdims=True)
    posteriors = np.exp(joint - total)
    found = sufficient_statistics(frames, natural_parameters(mixture))
    np.testing.assert_allclose(found.zeroth, posteriors.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.first, posteriors.T @ frames, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.second, posteriors.T @ frames**2, rtol=1e-10)
    np.testing.assert_allclose(found.log_likelihood, total.sum(), rtol=1e-12)
    assert found.n_frames == 700
