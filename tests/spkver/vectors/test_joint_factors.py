"""Joint factors: brute force on small cases, synthetic data, likelihoods, streaming, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import subspace_angles

from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkbase.work import Work
from spkver.backend.scoring import score_joint_factors
from spkver.mixture import GaussianMixture, Statistics, open_statistics, whiten, whitening_factors
from spkver.sidekit.tables import StatServer, write_stat_server
from spkver.vectors import joint_factors as joint
from spkver.vectors.supervectors import sum_by_model, without_factors

SMALL = joint.JointFactorConfig(speaker_rank=2, channel_rank=1, rounds=3)


def random_mixture(rng, n_components=3, dimension=2, full=False):
    weights = np.full(n_components, 1 / n_components)
    means = rng.standard_normal((n_components, dimension))
    variances = rng.uniform(0.3, 2.0, (n_components, dimension))
    if full:
        roots = rng.standard_normal((n_components, dimension, dimension))
        variances = roots @ roots.swapaxes(1, 2) + 0.3 * np.eye(dimension)
    return GaussianMixture(weights, means, variances)


def random_factors(rng, mixture, speaker=2, channel=1):
    shape = mixture.means.shape
    return joint.JointFactors(
        rng.standard_normal((*shape, speaker)),
        rng.standard_normal((*shape, channel)),
        rng.uniform(0.1, 0.6, shape),
        mixture.means,
        whitening_factors(mixture),
        mixture.weights,
    )


def drawn(
    rng,
    model,
    mixture,
    n_speakers,
    n_sessions,
    count,
):
    """Statistics of sessions of the model, as if every frame came from a component that is known."""
    shape, names = mixture.means.shape, [f"s{number:03d}" for number in range(n_speakers)]
    y, z = (
        rng.standard_normal((n_speakers, model.speaker.shape[2])),
        rng.standard_normal((n_speakers, *shape)),
    )
    models = np.array([name for name in names for _ in range(n_sessions)], object)
    x = rng.standard_normal((len(models), model.channel.shape[2]))
    owners = np.repeat(np.arange(n_speakers), n_sessions)
    offsets = (model.speaker @ y.T).transpose(2, 0, 1)[owners] + (model.channel @ x.T).transpose(
        2, 0, 1
    )
    offsets += (model.residual * z)[owners]
    counts = rng.uniform(0.5, 1.5, (len(models), shape[0])) * count
    whitened = counts[:, :, None] * offsets + np.sqrt(counts)[:, :, None] * rng.standard_normal(
        offsets.shape
    )
    deviations = np.sqrt(mixture.variances)
    first = whitened * deviations + counts[:, :, None] * mixture.means
    segments = np.array([f"{name}-{row}" for row, name in enumerate(models)], object)
    return Statistics(models, segments, counts, first.reshape(len(models), -1))


def some(seed=0, n_speakers=6, n_sessions=3):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    model = random_factors(rng, mixture)
    statistics = drawn(rng, model, mixture, n_speakers, n_sessions, 5.0)
    order = rng.permutation(len(statistics))
    return (
        mixture,
        model,
        Statistics(
            *(
                getattr(statistics, name)[order]
                for name in ("models", "segments", "zeroth", "first")
            )
        ),
    )


# --- formulas --------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0, 50.0), st.floats(-20, 20), st.floats(-2, 2))
def test_the_residual_of_one_entry_equals_numerical_integration(count, total, scale):
    """z has the density N(0, 1) exp(d f z - n d^2 z^2 / 2) but for a constant, which is the likelihood."""
    means, precisions = joint.residual_posterior(
        np.array([count]), np.array([[total]]), np.array([[scale]])
    )
    centre, width = float(means[0, 0]), float(precisions[0, 0]) ** -0.5

    def exponent(z):
        return scale * total * z - (1 + count * scale**2) * z * z / 2

    top = exponent(centre)  # its exponential may be too large for a number
    moments = [
        quad(
            lambda z, n=power: (z - centre) ** n * np.exp(exponent(z) - top),
            centre - 12 * width,
            centre + 12 * width,
        )
        for power in range(3)
    ]
    moments = [moment for moment, _ in moments]
    assert moments[1] / moments[0] == pytest.approx(0, abs=1e-7 * width)
    assert moments[2] / moments[0] == pytest.approx(1 / precisions[0, 0], rel=1e-6)
    likelihood = joint.residual_sums(
        np.array([[count]]), np.array([[[total]]]), np.array([[scale]])
    )[2]
    assert likelihood == pytest.approx(
        np.log(moments[0]) + top - np.log(2 * np.pi) / 2, rel=1e-6, abs=1e-7
    )


def test_residual_scales_are_the_ratio_of_the_sums_and_keep_their_value_without_frames():
    second, cross, before = (
        np.array([[0.25, 4.0, 0.0]]),
        np.array([[1.0, 1.0, 0.0]]),
        np.full((1, 3), 0.7),
    )
    np.testing.assert_allclose(joint.residual_m_step(second, cross, before), [[4.0, 0.25, 0.7]])


def test_the_likelihood_of_residuals_sums_over_speakers_and_entries():
    rng = np.random.default_rng(4)
    counts, sums, scales = (
        rng.uniform(0, 9, (3, 2)),
        rng.normal(size=(3, 2, 4)),
        rng.uniform(0.1, 2, (2, 4)),
    )
    single = [
        joint.residual_sums(
            counts[s, None, c, None], sums[s, None, c, None, d, None], scales[c, None, d, None]
        )[2]
        for s, c, d in np.ndindex(3, 2, 4)
    ]
    assert joint.residual_sums(counts, sums, scales)[2] == pytest.approx(sum(single))


def test_hidden_variables_equal_one_dense_system():
    """y and x from the normal equations of the summed sessions; z, entry by entry, from what they leave."""
    mixture, model, statistics = some()
    models, y, x, z = joint.hidden_variables(model, statistics)
    deviations, shape = np.sqrt(mixture.variances), mixture.means.shape
    matrix = np.concatenate([model.speaker, model.channel], axis=2).reshape(-1, 3)
    for row, name in enumerate(models):
        rows = statistics.models == name
        counts = statistics.zeroth[rows].sum(axis=0)
        sums = (
            statistics.first[rows].sum(axis=0).reshape(shape) - counts[:, None] * mixture.means
        ) / deviations
        frames = np.repeat(counts, shape[1])
        factors = np.linalg.solve(
            np.eye(3) + matrix.T @ (frames[:, None] * matrix), matrix.T @ sums.ravel()
        )
        np.testing.assert_allclose(np.concatenate([y[row], x[row]]), factors, rtol=1e-9)
        left, diagonal = sums.ravel() - frames * (matrix @ factors), model.residual.ravel()
        residual = np.linalg.solve(np.eye(6) + np.diag(frames * diagonal**2), diagonal * left)
        np.testing.assert_allclose(z[row].ravel(), residual, rtol=1e-9, atol=1e-12)


def test_scores_equal_their_formula():
    mixture, model, statistics = some()
    tests = replace(statistics, models=statistics.segments)
    models, y, _, z = joint.hidden_variables(model, statistics)
    trials = Trials.from_ids(
        ["s003", "s000", "s003"], [statistics.segments[number] for number in (0, 4, 7)]
    )
    scores = score_joint_factors(model, statistics, tests, trials).values
    deviations, shape = np.sqrt(mixture.variances), mixture.means.shape
    matrix = model.channel.reshape(-1, 1)
    for score, name, number in zip(scores, ("s003", "s000", "s003"), (0, 4, 7), strict=True):
        row = models.tolist().index(name)
        speaker = model.speaker @ y[row] + model.residual * z[row]
        counts = statistics.zeroth[number]
        sums = (
            statistics.first[number].reshape(shape) - counts[:, None] * mixture.means
        ) / deviations
        frames = np.repeat(counts, shape[1])
        channel = np.linalg.solve(
            np.eye(1) + matrix.T @ (frames[:, None] * matrix), matrix.T @ sums.ravel()
        )
        expected = (
            speaker * (sums - counts[:, None] * (model.channel @ channel))
        ).sum() / counts.sum()
        assert score == pytest.approx(expected, rel=1e-9)


def test_sums_and_shifts_equal_plain_array_computations():
    _, model, statistics = some(n_speakers=5, n_sessions=70)  # more sessions than one block holds
    sums = sum_by_model(statistics)
    names = sorted(set(statistics.models))
    assert sums.models.tolist() == names
    for order in ("zeroth", "first"):
        expected = [
            getattr(statistics, order)[statistics.models == name].sum(axis=0) for name in names
        ]
        np.testing.assert_allclose(np.asarray(getattr(sums, order)), expected, rtol=1e-12)
    rng = np.random.default_rng(1)
    vectors, owners = rng.standard_normal((4, 2)), rng.integers(0, 4, len(statistics))
    shifted = without_factors(statistics, model.speaker, vectors, owners)
    offsets = (
        np.einsum("cdr,sr->scd", model.speaker, vectors[owners]) * statistics.zeroth[:, :, None]
    )
    np.testing.assert_allclose(
        shifted.first[:], statistics.first - offsets.reshape(len(statistics), -1), rtol=1e-12
    )


# --- training --------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["right", "none"]))
def test_the_likelihood_never_falls(seed, convention):
    mixture, _, statistics = some(seed)
    config = replace(SMALL, rounds=6, seed=seed % 1000, minimum_divergence=convention)
    model = joint.train_joint_factors(mixture, statistics, config, work=Work(jobs=1))
    assert model.log_likelihoods.shape == (3, 6)
    assert (
        np.diff(model.log_likelihoods, axis=1) >= -1e-9 * np.abs(model.log_likelihoods[:, 1:])
    ).all()


def test_synthetic_factors_are_recovered():
    rng = np.random.default_rng(3)
    mixture = random_mixture(rng, 8, 4)
    truth = random_factors(rng, mixture, speaker=2, channel=2)
    truth = replace(truth, residual=np.full(mixture.means.shape, 0.4))
    statistics = drawn(rng, truth, mixture, n_speakers=300, n_sessions=8, count=20.0)
    config = joint.JointFactorConfig(speaker_rank=2, channel_rank=2, rounds=20)
    model = joint.train_joint_factors(mixture, statistics, config)
    for ours, theirs in ((model.speaker, truth.speaker), (model.channel, truth.channel)):
        angles = np.degrees(subspace_angles(ours.reshape(32, -1), theirs.reshape(32, -1)))
        assert angles.max() < 5
    ours, theirs = (
        matrix.reshape(32, 2) @ matrix.reshape(32, 2).T for matrix in (model.channel, truth.channel)
    )
    assert np.abs(ours - theirs).max() < 0.15 * np.abs(theirs).max()
    assert np.median(np.abs(model.residual)) == pytest.approx(0.4, rel=0.1)


def test_full_covariances_are_whitened_first():
    """The same factors come from the whitened statistics under a mixture of N(0, I)."""
    rng = np.random.default_rng(4)
    mixture = random_mixture(rng, full=True)
    standard = GaussianMixture(
        mixture.weights, np.zeros_like(mixture.means), np.ones_like(mixture.means)
    )
    _, _, statistics = some(5)
    first = statistics.first.reshape(-1, 3, 2) - statistics.zeroth[:, :, None] * mixture.means
    whitened = whiten(first, whitening_factors(mixture)).reshape(len(statistics), -1)
    ours = joint.train_joint_factors(mixture, statistics, SMALL)
    theirs = joint.train_joint_factors(standard, replace(statistics, first=whitened), SMALL)
    for name in ("speaker", "channel", "residual", "log_likelihoods"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-10
        )
    vectors = [
        joint.speaker_vectors(*pair).vectors
        for pair in ((ours, statistics), (theirs, replace(statistics, first=whitened)))
    ]
    np.testing.assert_allclose(*vectors, rtol=1e-8, atol=1e-10)


# --- workers, files, resumption --------------------------------------------------------------------------------------


def in_file(statistics, path):
    write_stat_server(
        path,
        StatServer(statistics.models, statistics.segments, statistics.zeroth, statistics.first),
    )
    return open_statistics(path)


def contents(model):
    arrays = (model.speaker, model.channel, model.residual, model.log_likelihoods)
    return b"".join(array.tobytes() for array in arrays)


def test_bits_depend_only_on_the_statistics(tmp_path):
    mixture, _, statistics = some(n_speakers=40)
    stored = in_file(statistics, tmp_path / "stat.h5")
    loaded = replace(stored, zeroth=np.asarray(stored.zeroth), first=np.asarray(stored.first))
    models = [
        joint.train_joint_factors(mixture, given, SMALL, work=Work(jobs=jobs))
        for given, jobs in ((stored, 1), (loaded, 3))
    ]
    assert contents(models[0]) == contents(models[1])
    for make in (joint.speaker_vectors, joint.session_vectors):
        whole = make(models[0], loaded, work=Work(jobs=1))
        streamed = make(models[0], stored, work=Work(jobs=3))
        assert whole.vectors.dtype == np.float32
        assert np.asarray(streamed.vectors).tobytes() == whole.vectors.tobytes()
        assert streamed.segments.tolist() == whole.segments.tolist()


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            replace(SMALL, speaker_rank=7),
            "joint_factors.speaker_rank is 7, but there are only 6 speakers",
        ),
        (
            replace(SMALL, channel_rank=19),
            "joint_factors.channel_rank is 19, but there are only 18 sessions",
        ),
        (
            replace(SMALL, channel_rank=7),
            "joint_factors.channel_rank is 7, but a supervector has only 6 dimensions",
        ),
    ],
)
def test_impossible_ranks_are_refused(config, words):
    mixture, _, statistics = some()
    with pytest.raises(ConfigError, match=words):
        joint.train_joint_factors(mixture, statistics, config)


def test_segments_without_frames_and_trials_without_models_are_refused():
    _, model, statistics = some()
    silent = replace(statistics, zeroth=np.where(np.arange(18)[:, None] == 4, 0, statistics.zeroth))
    with pytest.raises(DataError, match=f"segment '{statistics.segments[4]}' has no frames"):
        joint.session_vectors(model, silent)
    with pytest.raises(DataError, match="1 model of the trials not there: 'other'"):
        score_joint_factors(
            model, statistics, statistics, Trials.from_ids(["other"], [statistics.segments[0]])
        )
