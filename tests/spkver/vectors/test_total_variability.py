"""Training of total variability: an oracle of plain loops, laws of EM, engines, devices, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import stored

from spkbase.errors import ConfigError, DataError
from spkbase.work import Work, stop_workers
from spkver.mixture import GaussianMixture, Statistics, whitening_factors
from spkver.vectors import extract_ivectors, posteriors
from spkver.vectors.total_variability import (
    TotalVariability,
    TotalVariabilityConfig,
    check_rank,
    e_step,
    read_total_variability,
    train_total_variability,
    write_total_variability,
)

SHAPE = 4, 3  # components, dimensions


@pytest.fixture(scope="module", autouse=True)
def no_worker_outlives():
    yield
    stop_workers()


def random_mixture(seed=0, *, full=False, shape=SHAPE):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, shape[0])
    variances = rng.uniform(0.3, 2, shape)
    if full:
        roots = rng.standard_normal((*shape, shape[1]))
        variances = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(shape[1])
    return GaussianMixture(weights / weights.sum(), rng.standard_normal(shape), variances)


def draw(mixture, loadings, n_segments, *, seed=1, frames=30):
    """Statistics that follow the model: f_c = n_c (m_c + S_c T_c h) + sqrt(n_c) S_c noise."""
    rng = np.random.default_rng(seed)
    n_components, dimension, rank = loadings.shape
    factors = whitening_factors(mixture)
    zeroth = rng.exponential(frames, (n_segments, n_components))
    hidden = rng.standard_normal((n_segments, rank))
    white = np.sqrt(zeroth)[..., None] * rng.standard_normal((n_segments, n_components, dimension))
    white += zeroth[..., None] * np.einsum("cdr,sr->scd", loadings, hidden)
    moved = white * factors if factors.ndim == 2 else np.einsum("cij,scj->sci", factors, white)
    first = zeroth[..., None] * mixture.means + moved
    names = np.array([f"s{row}" for row in range(n_segments)], object)
    return Statistics(names, names, zeroth, first.reshape(n_segments, -1))


def some(n_segments=40, rank=3, *, full=False):
    mixture = random_mixture(full=full)
    loadings = np.random.default_rng(2).standard_normal((*SHAPE, rank))
    return mixture, draw(mixture, loadings, n_segments)


def covariances(mixture):
    return np.array([np.diag(v) if v.ndim == 1 else v for v in mixture.variances])


def dense_posterior(mixture, loadings, zeroth, first):
    """Mean, covariance and likelihood part of one segment from the joint Gaussian of supervector and factor.

    The mean of the frames of component c, f_c / n_c, is m_c + S_c T_c h plus noise of covariance S_c S_c' / n_c.
    """
    n_components, dimension, rank = loadings.shape
    roots = [np.linalg.cholesky(matrix) for matrix in covariances(mixture)]
    used = np.flatnonzero(zeroth > 0)
    raw = np.concatenate([roots[c] @ loadings[c] for c in used])
    noise = np.zeros((len(raw), len(raw)))
    for number, c in enumerate(used):
        rows = slice(number * dimension, (number + 1) * dimension)
        noise[rows, rows] = covariances(mixture)[c] / zeroth[c]
    total = raw @ raw.T + noise
    residual = np.concatenate(
        [first.reshape(n_components, dimension)[c] / zeroth[c] - mixture.means[c] for c in used]
    )
    gain = raw.T @ np.linalg.inv(total)
    change = np.linalg.slogdet(total)[1] - np.linalg.slogdet(noise)[1]
    exponent = residual @ (np.linalg.inv(noise) - np.linalg.inv(total)) @ residual
    return gain @ residual, np.eye(rank) - gain @ raw, (exponent - change) / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("full", [False, True])
def test_the_posterior_equals_that_of_the_joint_gaussian(full, dtype):
    mixture, statistics = some(6, full=full)
    rows = statistics.zeroth.astype(dtype), statistics.first.astype(dtype)
    statistics = Statistics(statistics.models, statistics.segments, *rows)
    loadings = np.random.default_rng(5).standard_normal((*SHAPE, 3))
    model = TotalVariability(loadings, mixture.means, whitening_factors(mixture), mixture.weights)
    found = extract_ivectors(model, statistics, variances=True)
    likelihood = 0.0
    for row in range(6):
        mean, spread, of_segment = dense_posterior(
            mixture, loadings, *(x[row].astype(float) for x in rows)
        )
        np.testing.assert_allclose(found.vectors[row], mean, atol=1e-10)
        np.testing.assert_allclose(found.variances[row], np.diag(spread), atol=1e-10)
        likelihood += of_segment
    assert e_step(model, statistics).log_likelihood == pytest.approx(likelihood, abs=1e-8)


def plain_round(mixture, statistics, loadings, factor):
    """One round of EM in loops over segments and components, by the joint Gaussian of each segment."""
    n_components, _, rank = loadings.shape
    roots = [np.linalg.cholesky(matrix) for matrix in covariances(mixture)]
    second, cross = np.zeros((n_components, rank, rank)), np.zeros(loadings.shape)
    moment = np.zeros((rank, rank))
    for zeroth, first in zip(statistics.zeroth, statistics.first.reshape(-1, *SHAPE), strict=True):
        mean, spread, _ = dense_posterior(mixture, loadings, zeroth, first)
        moments = spread + np.outer(mean, mean)
        moment += moments / len(statistics)
        for c in range(n_components):
            second[c] += zeroth[c] * moments
            white = np.linalg.solve(roots[c], first[c] - zeroth[c] * mixture.means[c])
            cross[c] += np.outer(white, mean)
    new = np.stack([b @ np.linalg.inv(a) for a, b in zip(second, cross, strict=True)])
    lower = np.linalg.cholesky(moment)
    return new @ {"right": lower, "sidekit": lower.T, "none": np.eye(rank)}[factor]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("convention", ["right", "sidekit", "none"])
def test_em_rounds_equal_plain_loops(convention, full):
    mixture, statistics = some(full=full)
    expected = start = np.random.default_rng(3).standard_normal((*SHAPE, 3))
    for rounds in (1, 2):
        expected = plain_round(mixture, statistics, expected, convention)
        config = TotalVariabilityConfig(rank=3, rounds=rounds, minimum_divergence=convention)
        found = train_total_variability(mixture, statistics, config, start=start.reshape(-1, 3))
        np.testing.assert_allclose(found.loadings, expected, rtol=1e-8, atol=1e-9)
        assert found.log_likelihoods.shape == (rounds,)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from(["right", "none"]), st.booleans()
)
def test_the_likelihood_never_falls(seed, rank, convention, full):
    mixture = random_mixture(seed, full=full)
    rng = np.random.default_rng(seed)
    statistics = draw(
        mixture, rng.standard_normal((*SHAPE, 2)), 12, seed=seed, frames=rng.uniform(0.1, 30)
    )
    statistics.zeroth[0], statistics.first[0] = 0, 0  # a segment without frames
    config = TotalVariabilityConfig(rank=rank, rounds=6, seed=seed, minimum_divergence=convention)
    model = train_total_variability(mixture, statistics, config, work=Work(1))
    history = np.append(model.log_likelihoods, e_step(model, statistics).log_likelihood / 12)
    assert (np.diff(history) >= -1e-9 * (1 + np.abs(history[1:]))).all()


@pytest.mark.parametrize("full", [False, True])
def test_the_subspace_is_recovered(full):
    shape = 6, 5
    mixture = random_mixture(7, full=full, shape=shape)
    truth = 0.5 * np.random.default_rng(8).standard_normal((*shape, 3))
    statistics = draw(mixture, truth, 3000, frames=100)
    found = train_total_variability(
        mixture, statistics, TotalVariabilityConfig(rank=3, rounds=30)
    ).loadings
    left, right = truth.reshape(-1, 3), found.reshape(-1, 3)
    scale = np.linalg.norm(left @ left.T)
    # sampling error: 1 / sqrt(3000) for each entry
    assert np.linalg.norm(left @ left.T - right @ right.T) < 0.06 * scale
    angles = np.linalg.svd(np.linalg.qr(left)[0].T @ np.linalg.qr(right)[0], compute_uv=False)
    assert angles.min() > 0.999


def contents(model):
    return model.loadings.tobytes() + model.log_likelihoods.tobytes()


def large():
    mixture = random_mixture(shape=(9, 130))
    return mixture, draw(mixture, np.random.default_rng(2).standard_normal((9, 130, 40)) / 9, 200)


CONFIG = TotalVariabilityConfig(rank=40, rounds=2)


@pytest.mark.parametrize("jobs", [2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_workers_change_no_bit(monkeypatch, tmp_path, jobs, dtype):
    # small, so that a few segments need several tasks
    monkeypatch.setattr(posteriors, "_MOST_SEGMENTS", 70)
    mixture, statistics = large()
    rows = [array.astype(dtype) for array in (statistics.zeroth, statistics.first)]
    statistics = Statistics(statistics.models, statistics.segments, *rows)
    expected = contents(train_total_variability(mixture, statistics, CONFIG, work=Work(1)))
    assert (
        contents(train_total_variability(mixture, statistics, CONFIG, work=Work(jobs))) == expected
    )
    files = (stored(array, tmp_path, name) for array, name in zip(rows, "zf", strict=True))
    in_files = Statistics(statistics.models, statistics.segments, *files)
    assert contents(train_total_variability(mixture, in_files, CONFIG, work=Work(jobs))) == expected


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True])
def test_written_models_are_read_back(tmp_path, full):
    mixture, statistics = some(full=full)
    model = train_total_variability(mixture, statistics, TotalVariabilityConfig(rank=3, rounds=2))
    write_total_variability(tmp_path / "tv.h5", model)
    again = read_total_variability(tmp_path / "tv.h5")
    for name in ("loadings", "means", "factors", "weights", "log_likelihoods"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        ("zeroth", np.nan, "'s5' are not finite"),
        ("first", np.inf, "'s5' are not finite"),
        ("zeroth", -1.0, "'s5' have counts below 0"),
    ],
)
def test_malformed_statistics_are_refused(what, value, words):
    mixture, statistics = some()
    getattr(statistics, what)[5, 1] = value
    with pytest.raises(DataError, match=words):
        train_total_variability(
            mixture, statistics, TotalVariabilityConfig(rank=3, rounds=1), work=Work(1)
        )


def test_impossible_ranks_are_refused():
    mixture, statistics = some()
    with pytest.raises(ConfigError, match="rank is 13, but a supervector has only 12 dimensions"):
        train_total_variability(mixture, statistics, TotalVariabilityConfig(rank=13))
    with pytest.raises(ConfigError, match="rank is 1000000000000"):  # before the matrix is drawn
        train_total_variability(mixture, statistics, TotalVariabilityConfig(rank=10**12))
    with pytest.raises(
        ConfigError, match=r"total_variability\.rank is 0: expected a whole number of at least 1"
    ):
        TotalVariabilityConfig(rank=0)
    with pytest.raises(ConfigError, match="rank is 41, but there are only 40 segments"):
        check_rank(41, n_segments=40, width=1000)
    with pytest.raises(
        DataError, match=r"start from has shape \(4, 3\), expected \(4, 3, 3\) or \(12, 3\)"
    ):
        train_total_variability(
            mixture, statistics, TotalVariabilityConfig(rank=3), start=np.zeros((4, 3))
        )
    start = np.full((4, 3, 3), np.nan)
    with pytest.raises(DataError, match="finite"):
        train_total_variability(mixture, statistics, TotalVariabilityConfig(rank=3), start=start)
