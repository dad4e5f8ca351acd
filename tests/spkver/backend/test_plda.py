"""Training of PLDA: the likelihood against joint densities, parameters found again, what is regularised, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spkbase.errors import ConfigError, DataError
from spkver.backend.plda import (
    Plda,
    PldaConfig,
    ResidualPrior,
    Sessions,
    expectation,
    fit_plda,
    fit_two_covariance,
    lower_factor,
    plda_scores,
    residual_prior,
)


def log_density(vectors, mean, covariance):
    """Of stacked vectors under one Gaussian, by its definition."""
    away = (vectors - mean).ravel()
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return float(-0.5 * (log_determinant + away @ np.linalg.solve(covariance, away)))


def joint_covariance(plda, count):
    """Of `count` vectors of one speaker, stacked."""
    return np.kron(np.ones((count, count)), plda.between) + np.kron(np.eye(count), plda.within)


def drawn(rng, *, speakers, sessions, rank, dimension, channels=0):
    """Vectors of a model that is drawn too."""
    spread = rng.normal(size=(dimension, dimension))
    residual = (
        np.diag(rng.uniform(0.3, 1, dimension))
        if channels
        else spread @ spread.T / dimension + np.eye(dimension)
    )
    channel = rng.normal(size=(dimension, channels)) if channels else None
    plda = Plda(rng.normal(size=dimension), rng.normal(size=(dimension, rank)), residual, channel)
    who = np.repeat(np.arange(speakers), sessions)
    vectors = plda.mean + (rng.normal(size=(speakers, rank)) @ plda.loadings.T)[who]
    return plda, vectors + rng.normal(size=vectors.shape) @ np.linalg.cholesky(plda.within).T, who


@pytest.mark.parametrize("channels", [0, 2])
@pytest.mark.parametrize("rank", [1, 3, 4])
def test_the_likelihood_equals_the_joint_density(rank, channels):
    rng = np.random.default_rng(rank)
    plda, vectors, _ = drawn(
        rng, speakers=1, sessions=15, rank=rank, dimension=4, channels=channels
    )
    who = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    sessions = Sessions(vectors - plda.mean, who)
    of = sessions.counts.astype(float), sessions.sums, sessions.vectors.T @ sessions.vectors
    expected = sum(
        log_density(vectors[who == speaker], plda.mean, joint_covariance(plda, speaker + 1))
        for speaker in range(5)
    )
    assert expectation(plda, *of)[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("rank", "channels", "residual"), [(2, 0, "full"), (6, 0, "full"), (2, 2, "diagonal")]
)
def test_parameters_of_synthetic_data_are_recovered(rank, channels, residual):
    """3,000 speakers of 8 vectors: a covariance is known to about 1/sqrt(3000) of itself, 2 %."""
    rng = np.random.default_rng(7)
    plda, vectors, who = drawn(
        rng, speakers=3000, sessions=8, rank=rank, dimension=6, channels=channels
    )
    config = PldaConfig(rank=rank, channel_rank=channels, residual=residual, iterations=100)
    found, _ = fit_plda(vectors, who, config)
    for name in ("between", "within"):
        expected = getattr(plda, name)
        error = np.linalg.norm(getattr(found, name) - expected) / np.linalg.norm(expected)
        assert error < (0.06 if name == "between" else 0.02), name
    assert np.linalg.norm(found.mean - plda.mean) < 4 * np.sqrt(np.trace(plda.between) / 3000)
    if channels:  # with a diagonal S, the channel can be separated from it
        channel = found.channel @ found.channel.T
        assert np.linalg.norm(channel - plda.channel @ plda.channel.T) < 0.03 * np.linalg.norm(
            channel
        )


@given(st.data())
@settings(max_examples=40)
def test_the_likelihood_never_falls(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    dimension = data.draw(st.integers(1, 6))
    speakers = data.draw(st.integers(2, 12))
    who = np.r_[np.arange(speakers), rng.integers(0, speakers, data.draw(st.integers(2, 40)))]
    vectors = rng.normal(size=(speakers, dimension))[who] + rng.normal(size=(len(who), dimension))
    vectors *= 10.0 ** rng.integers(-4, 5, dimension)
    channels = data.draw(st.integers(0, dimension))
    config = PldaConfig(
        rank=data.draw(st.integers(1, dimension)),
        channel_rank=channels,
        residual=data.draw(st.sampled_from(["full", "diagonal"])),
        minimum_divergence=data.draw(st.sampled_from(["lower", "none"])),
        session_weight=data.draw(st.sampled_from([1.0, 0.5])),
        prior=data.draw(st.sampled_from([None, 3.0])),
        iterations=15,
    )
    _, objective = fit_plda(vectors, who, config)
    assert len(objective) == 16
    assert np.isfinite(objective).all()
    assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()


def test_training_does_not_depend_on_order_and_rotation():
    rng = np.random.default_rng(2)
    _, vectors, who = drawn(rng, speakers=20, sessions=4, rank=2, dimension=5)
    plda, objective = fit_plda(vectors, who, PldaConfig(rank=2))
    order = rng.permutation(len(who))
    names = np.array([f"s{code}" for code in who], object)
    again, _ = fit_plda(vectors[order], names[order].tolist(), PldaConfig(rank=2))
    np.testing.assert_allclose(again.between, plda.between, rtol=0, atol=1e-11)
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    turned, turned_objective = fit_plda(vectors @ rotation, who, PldaConfig(rank=2))
    np.testing.assert_allclose(rotation @ turned.between @ rotation.T, plda.between, atol=1e-10)
    np.testing.assert_allclose(turned_objective, objective, rtol=1e-11)


# --- regularisation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_the_density_of_the_prior_equals_its_formula(weight):
    variances, covariance = (
        np.array([0.5, 2.0, 1.0]),
        np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.7]]),
    )
    trace = np.trace(np.diag(variances) @ np.linalg.inv(covariance))
    expected = -weight / 2 * (np.linalg.slogdet(covariance)[1] + trace)
    assert ResidualPrior(weight, variances).log_density(covariance) == pytest.approx(
        expected, abs=1e-12
    )


def test_well_posed_vectors_use_no_prior():
    rng = np.random.default_rng(4)
    _, vectors, who = drawn(rng, speakers=30, sessions=5, rank=3, dimension=8)
    vectors = vectors * 10.0 ** np.arange(-4, 4)  # the scale of each dimension is irrelevant
    assert residual_prior(Sessions(vectors, who)).weight == 0
    plain, objective = fit_plda(vectors, who, PldaConfig(rank=3, prior=0.0))
    default, other = fit_plda(vectors, who, PldaConfig(rank=3))
    assert default.residual.tolist() == plain.residual.tolist()
    assert objective.tolist() == other.tolist()


def with_third(vectors, third):
    return np.column_stack([vectors[:, :2], np.broadcast_to(third, len(vectors)), vectors[:, 3:]])


SINGULAR = {
    "fewer vectors than dimensions": lambda x, who: (
        np.hstack([x, np.random.default_rng(1).normal(size=(40, 60))]),
        who,
    ),
    "a constant dimension": lambda x, who: (with_third(x, 0.1), who),
    "a dimension twice": lambda x, who: (with_third(x, x[:, 3]), who),
    "a dimension that is a sum": lambda x, who: (with_third(x, x[:, 3] - 2 * x[:, 4]), who),
    "a dimension that names the speaker": lambda x, who: (with_third(x, who), who),
    "each vector many times": lambda x, who: (
        np.repeat(x[:6], 30, axis=0),
        np.repeat([0, 0, 1, 1, 2, 2], 30),
    ),
    "few speakers with two": lambda x, who: (x[FEW], who[FEW]),
}
FEW = [0, 1, 4, 8, 12, 16, 17]


@pytest.mark.parametrize("kind", SINGULAR)
def test_singular_vectors_are_regularised(kind):
    _, vectors, who = drawn(np.random.default_rng(1), speakers=10, sessions=4, rank=2, dimension=6)
    vectors, who = SINGULAR[kind](vectors, who)
    prior = residual_prior(Sessions(vectors, who))
    assert prior.weight == vectors.shape[1]
    assert prior.variances.min() > 0
    for config in (
        PldaConfig(rank=2),
        PldaConfig(),
        PldaConfig(rank=2, channel_rank=2, residual="diagonal"),
    ):
        plda, objective = fit_plda(vectors, who, config)
        assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()
        assert np.linalg.eigvalsh(plda.within)[0] > 0
        count = len(vectors)
        pairs = np.divmod(np.arange(count**2), count)
        scores = plda_scores(plda, Sessions(vectors, np.arange(count)), vectors, *pairs)
        assert np.isfinite(scores).all()
        same = (who[:, None] == who).ravel()
        assert scores[same].mean() > scores[~same].mean()
    with pytest.raises(
        DataError, match=r"do not determine the covariance within speakers in \d+ dimensions .*lda"
    ):
        fit_plda(vectors, who, PldaConfig(rank=2, prior=0.0))


def test_two_covariances_are_unbiased_with_unequal_numbers_of_sessions():
    rng, who = np.random.default_rng(3), np.repeat(np.arange(4), [2, 3, 9, 4])
    found = []
    for _ in range(400):
        vectors = rng.normal(size=(4, 2))[who] * [2.0, 3.0] + rng.normal(size=(18, 2))
        found.append(fit_two_covariance(vectors, who))
    between, within = (
        np.mean([getattr(one, name) for one in found], axis=0) for name in ("between", "within")
    )
    np.testing.assert_allclose(between, np.diag([4.0, 9.0]), atol=0.7)
    np.testing.assert_allclose(within, np.eye(2), atol=0.05)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_test_for_symmetry_does_not_depend_on_the_unit(unit):
    covariance = unit * np.array([[2.0, 0.5], [0.5 * (1 + 1e-9), 1.0]])
    np.testing.assert_allclose(
        lower_factor(covariance) @ lower_factor(covariance).T, covariance, rtol=1e-8
    )
    covariance[0, 1] *= 1.01
    with pytest.raises(DataError, match="as a symmetric matrix"):
        lower_factor(covariance)


@pytest.mark.parametrize(
    ("vectors", "speakers", "message"),
    [
        (np.eye(3), ["a", "a", "a"], "at least two speakers, got 3 of one"),
        (np.eye(3), ["a", "b", "c"], "each speaker has only one .*add sessions"),
        (np.ones((4, 2)), ["a", "a", "b", "b"], "the vectors are all the same"),
        (
            np.repeat(np.eye(2), 2, axis=0),
            ["a", "a", "b", "b"],
            "the vectors of each speaker are all the same",
        ),
        (
            np.tile(np.eye(2), (2, 1)),
            ["a", "a", "b", "b"],
            "the means of all speakers are the same",
        ),
        (
            np.array([[np.nan, 0], [1, 2]]),
            ["a", "b"],
            "1 of 2 training vectors hold NaN or infinity: rows 0",
        ),
        (np.eye(3) * 1e200, ["a", "a", "b"], "far too large"),
        (np.eye(3), ["a", "b"], "a name for each of 3 vectors"),
        (np.zeros((0, 2)), [], "training vectors as rows of numbers"),
    ],
)
def test_unusable_training_data_is_refused(vectors, speakers, message):
    with pytest.raises(DataError, match=message):
        fit_plda(vectors, speakers, PldaConfig(rank=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "plda.rank is 0: expected a whole number of at least 1"),
        ({"residual": "spherical"}, "plda.residual is 'spherical': expected one of full, diagonal"),
        ({"session_weight": 0}, "plda.session_weight is 0"),
        ({"rank": 5}, "plda.rank is 5: the vectors have 4 dimensions"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    _, vectors, who = drawn(np.random.default_rng(0), speakers=10, sessions=3, rank=2, dimension=4)
    with pytest.raises(ConfigError, match=message):
        fit_plda(vectors, who, PldaConfig(**options))
