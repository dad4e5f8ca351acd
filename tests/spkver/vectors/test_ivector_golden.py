"""Total variability and i-vectors against SIDEKIT's own numbers, and the right ones where it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spkver.mixture.gmm import GaussianMixture
from spkver.mixture.statistics import Statistics
from spkver.vectors.ivectors import extract_ivectors
from spkver.vectors.total_variability import (
    TotalVariability,
    TotalVariabilityConfig,
    e_step,
    train_total_variability,
)

TOLERANCE = 1e-9  # relative to the largest entry
CONVENTIONS = {
    "right": ("right_F_mindiv", "llk_right_mindiv"),
    "sidekit": ("F_mindiv", "llk_sidekit_mindiv"),
    "none": ("F_nomindiv", "llk_nomindiv"),
}


@pytest.fixture(scope="module")
def folder(shared) -> Path:
    if not (shared / "golden" / "backend").is_dir():
        pytest.skip("no golden numbers of the backend")
    return shared / "golden" / "backend"


@pytest.fixture(scope="module")
def inputs(folder) -> dict[str, np.ndarray]:
    return dict(np.load(folder / "inputs.npz"))


@pytest.fixture(scope="module")
def golden(folder) -> dict[str, np.ndarray]:
    return dict(np.load(folder / "tv.npz"))


@pytest.fixture(scope="module")
def mixture(inputs) -> GaussianMixture:
    return GaussianMixture(inputs["w"], inputs["mu"], 1 / inputs["invcov"])


def statistics(inputs, name) -> Statistics:
    segments = inputs[f"{name}_segments"].astype(str).astype(object)
    return Statistics(segments, segments, inputs[f"{name}_stat0"], inputs[f"{name}_stat1"])


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float64
    assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()


def trained(mixture, inputs, convention: str, rounds: int) -> TotalVariability:
    config = TotalVariabilityConfig(rank=30, rounds=rounds, minimum_divergence=convention)
    return train_total_variability(mixture, statistics(inputs, "train"), config, start=inputs["tv_init"])


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_matrices_and_likelihoods(mixture, inputs, golden, convention):
    name, likelihoods = CONVENTIONS[convention]
    for rounds in (1, 5):
        model = trained(mixture, inputs, convention, rounds)
        assert_near(model.loadings.reshape(-1, 30), golden[f"{name}_it{rounds}"])
    train = statistics(inputs, "train")
    found = np.append(model.log_likelihoods * len(train), e_step(model, train).log_likelihood)
    np.testing.assert_allclose(found, golden[likelihoods], rtol=1e-12)


def test_the_default_is_the_right_one():
    assert TotalVariabilityConfig().minimum_divergence == "right"


def model_of(mixture, golden) -> TotalVariability:
    loadings = golden["F_mindiv_it5"].reshape(*mixture.means.shape, 30)
    return TotalVariability(loadings, mixture.means, np.sqrt(mixture.variances), mixture.weights)


@pytest.mark.parametrize("name", ["train", "enroll", "test"])
def test_vectors_and_variances(mixture, inputs, golden, name):
    found = extract_ivectors(model_of(mixture, golden), statistics(inputs, name), variances=True)
    assert_near(found.vectors, golden[f"iv_{name}"])
    assert_near(found.variances, golden[f"right_iv_{name}_variance"])
    assert_near(found.variances + found.vectors**2, golden[f"iv_{name}_uncertainty"])


@pytest.mark.parametrize(("method", "name"), [("weights", "iv_test_weight"), ("eigen", "iv_test_eigen")])
def test_fast_approximations(mixture, inputs, golden, method, name):
    model = model_of(mixture, golden)
    found = extract_ivectors(model, statistics(inputs, "test"), method=method)
    assert_near(found.vectors, golden[name])
    exact = extract_ivectors(model, statistics(inputs, "test")).vectors
    error = np.linalg.norm(found.vectors - exact) / np.linalg.norm(exact)
    assert 0.15 < error < 0.35, "docs/ivectors.md says how far off they are"
