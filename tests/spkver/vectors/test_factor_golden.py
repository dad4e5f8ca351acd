"""SIDEKIT's i-vectors, joint factor analysis and MAP of several sessions, and the right values where it is wrong."""

import numpy as np
import pytest

from evaluation.trials import Trials
from spkver.backend import score_gmm_ubm, score_joint_factors
from spkver.features import Frames
from spkver.mixture import GaussianMixture, Statistics, unwhiten, with_full_covariances
from spkver.vectors import (
    JointFactorConfig,
    JointFactors,
    MapConfig,
    TotalVariability,
    TotalVariabilityConfig,
    adapt_multisession,
    extract_ivectors,
    hidden_variables,
    train_joint_factors,
    train_total_variability,
)
from spkver.vectors.joint_factors import unwhitened
from spkver.vectors.total_variability import e_step

RELATIVE = 1e-9


@pytest.fixture(scope="module")
def inputs(backend):
    return load(backend / "inputs.npz")


@pytest.fixture(scope="module")
def golden(backend):
    return load(backend / "jfa_gmm.npz")


def load(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def backend(shared):
    return shared / "golden" / "backend"


def mixture_of(inputs):
    return GaussianMixture(inputs["w"] / inputs["w"].sum(), inputs["mu"], 1 / inputs["invcov"])


def strings(array):
    return np.array([name.decode() for name in array.tolist()], object)


def statistics_of(inputs, name):
    segments = strings(inputs[f"{name}_segments"])
    models = segments if name == "test" else strings(inputs[f"{name}_models"])
    zeroth, first = (inputs[f"{name}_stat{order}"].astype(np.float64) for order in (0, 1))
    return Statistics(models, segments, zeroth, first)


def check(ours, expected):
    assert ours.shape == expected.shape
    assert np.abs(ours - expected).max() <= RELATIVE * np.abs(expected).max()


def start_of(inputs):
    deviations = 1 / np.sqrt(inputs["invcov"])
    matrices = [
        inputs[f"jfa_{name}0"].astype(np.float64).reshape(*deviations.shape, -1)
        / deviations[:, :, None]
        for name in "VU"
    ]
    return (*matrices, inputs["jfa_D0"].reshape(deviations.shape) / deviations)


def trained(inputs, n_rounds, convention):
    config = JointFactorConfig(10, 5, rounds=n_rounds, minimum_divergence=convention)
    return train_joint_factors(
        mixture_of(inputs), statistics_of(inputs, "train"), config, start=start_of(inputs)
    )


@pytest.mark.parametrize(
    ("name", "n_rounds", "convention"),
    [
        ("jfa_it1", 1, "sidekit"),
        ("jfa", 5, "sidekit"),
        ("jfa_nomindiv", 5, "none"),
        ("right_jfa", 5, "right"),
    ],
)
def test_joint_factor_matrices_equal_sidekit(inputs, golden, name, n_rounds, convention):
    model = trained(inputs, n_rounds, convention)
    for matrix, letter in ((model.speaker, "V"), (model.channel, "U")):
        check(unwhitened(matrix, model.factors).reshape(1920, -1), golden[f"{name}_{letter}"])
    check(unwhiten(model.residual, model.factors).ravel(), golden[f"{name}_D"])


@pytest.fixture(scope="module")
def sidekits(inputs, golden):
    """SIDEKIT's own V, U and D, with which its hidden variables and scores were computed."""
    mixture = mixture_of(inputs)
    deviations = np.sqrt(mixture.variances)
    matrices = [
        golden[f"jfa_{name}"].reshape(*deviations.shape, -1) / deviations[:, :, None]
        for name in "VU"
    ]
    residual = golden["jfa_D"].reshape(deviations.shape) / deviations
    return JointFactors(*matrices, residual, mixture.means, deviations, mixture.weights)


def test_hidden_variables_equal_sidekit(inputs, golden, sidekits):
    """SIDEKIT's own `hidden_z`, 48 % off, is not reproduced: `right_hidden_z` is what its formula should give."""
    models, y, x, z = hidden_variables(sidekits, statistics_of(inputs, "enroll"))
    assert models.tolist() == strings(inputs["trial_models"]).tolist()
    check(y, golden["hidden_y"])
    check(x, golden["hidden_x"])
    check(z.reshape(60, -1)[:12], golden["right_hidden_z"])
    of_tests = extract_ivectors(sidekits.matrix("channel"), statistics_of(inputs, "test")).vectors
    check(np.asarray(of_tests), golden["hidden_test_x"])


def test_joint_factor_scores_equal_sidekit(inputs, golden, sidekits):
    """SIDEKIT's own `jfa_scores` whiten twice and take the first session alone: they are not reproduced."""
    models, segments = strings(inputs["trial_models"]), strings(inputs["trial_segments"])
    trials = Trials.from_ids(
        np.repeat(models, len(segments)).tolist(), np.tile(segments, len(models)).tolist()
    )
    scores = score_joint_factors(
        sidekits, statistics_of(inputs, "enroll"), statistics_of(inputs, "test"), trials
    ).values.reshape(len(models), -1)
    mask = inputs["trial_mask"]
    check(scores[mask], golden["right_jfa_scores"][mask])


def test_map_adaptation_of_several_sessions_equals_sidekit(inputs, backend):
    config = MapConfig(relevance=16, normalise=False)
    adapted = adapt_multisession(mixture_of(inputs), statistics_of(inputs, "enroll"), config)
    check(adapted.vectors[:12], load(backend / "backend.npz")["map_multisession_r16"])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("relevance", [3, 16])
def test_gmm_ubm_scores_equal_sidekit(inputs, golden, backend, relevance, full):
    of_tests = load(backend / "gmm_inputs.npz")
    mixture = mixture_of(inputs)
    config = MapConfig(relevance=relevance, normalise=False)
    adapted = adapt_multisession(mixture, statistics_of(inputs, "enroll"), config)
    segments = strings(of_tests["segments"])
    frames = Frames(segments, of_tests["offsets"], of_tests["frames"].astype(np.float64))
    trials = Trials.from_ids(np.repeat(adapted.models, 12).tolist(), np.tile(segments, 60).tolist())
    if full:
        mixture = with_full_covariances(mixture)
    scores = score_gmm_ubm(mixture, adapted, frames, trials).values.reshape(60, 12)
    expected = golden[f"gmm_scores_r{relevance}"]
    mask = expected != 0
    assert mask.sum() > 100
    check(scores[mask], expected[mask])


# --- total variability and i-vectors ---------------------------------------------------------------------------------

CONVENTIONS = {
    "right": ("right_F_mindiv", "llk_right_mindiv"),
    "sidekit": ("F_mindiv", "llk_sidekit_mindiv"),
    "none": ("F_nomindiv", "llk_nomindiv"),
}


@pytest.fixture(scope="module")
def subspace(backend):
    return load(backend / "tv.npz")


def trained_matrix(inputs, convention, rounds):
    config = TotalVariabilityConfig(rank=30, rounds=rounds, minimum_divergence=convention)
    return train_total_variability(
        mixture_of(inputs), statistics_of(inputs, "train"), config, start=inputs["tv_init"]
    )


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_total_variability_matrices_and_likelihoods_equal_sidekit(inputs, subspace, convention):
    name, likelihoods = CONVENTIONS[convention]
    for rounds in (1, 5):
        model = trained_matrix(inputs, convention, rounds)
        check(model.loadings.reshape(-1, 30), subspace[f"{name}_it{rounds}"])
    train = statistics_of(inputs, "train")
    found = np.append(model.log_likelihoods * len(train), e_step(model, train).log_likelihood)
    np.testing.assert_allclose(found, subspace[likelihoods], rtol=1e-12)


def test_the_default_minimum_divergence_is_the_correct_one():
    assert TotalVariabilityConfig().minimum_divergence == "right"


def model_of(inputs, subspace):
    mixture = mixture_of(inputs)
    loadings = subspace["F_mindiv_it5"].reshape(*mixture.means.shape, 30)
    return TotalVariability(loadings, mixture.means, np.sqrt(mixture.variances), mixture.weights)


@pytest.mark.parametrize("name", ["train", "enroll", "test"])
def test_ivectors_and_variances_equal_sidekit(inputs, subspace, name):
    found = extract_ivectors(
        model_of(inputs, subspace), statistics_of(inputs, name), variances=True
    )
    check(found.vectors, subspace[f"iv_{name}"])
    check(found.variances, subspace[f"right_iv_{name}_variance"])
    check(found.variances + found.vectors**2, subspace[f"iv_{name}_uncertainty"])


@pytest.mark.parametrize(
    ("method", "name"), [("weights", "iv_test_weight"), ("eigen", "iv_test_eigen")]
)
def test_fast_approximations_equal_sidekit(inputs, subspace, method, name):
    model = model_of(inputs, subspace)
    found = extract_ivectors(model, statistics_of(inputs, "test"), method=method)
    check(found.vectors, subspace[name])
    exact = extract_ivectors(model, statistics_of(inputs, "test")).vectors
    error = np.linalg.norm(found.vectors - exact) / np.linalg.norm(exact)
    assert 0.15 < error < 0.35, "docs/ivectors.md says how far off they are"
