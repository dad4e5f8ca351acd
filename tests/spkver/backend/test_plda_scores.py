"""Scores of vectors: PLDA and two-covariance against joint Gaussian densities, cosine, Mahalanobis; bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics import cllr
from spkbase.errors import DataError
from spkver.backend import cosine_of_sessions, mahalanobis_scores, pair_products, scoring
from spkver.backend.plda import Plda, Sessions, TwoCovariance, fit_two_covariance, plda_scores


def model(rng, *, dimension=5, rank=3, channels=0):
    spread = rng.normal(size=(dimension, dimension))
    channel = rng.normal(size=(dimension, channels)) if channels else None
    return Plda(
        rng.normal(size=dimension),
        rng.normal(size=(dimension, rank)),
        spread @ spread.T + np.eye(dimension),
        channel,
    )


def log_density(vectors, plda):
    """Of all vectors as those of one speaker: one Gaussian of all their numbers."""
    count = len(vectors)
    covariance = np.kron(np.ones((count, count)), plda.between) + np.kron(
        np.eye(count), plda.within
    )
    away = (vectors - plda.mean).ravel()
    return float(
        -0.5
        * (np.linalg.slogdet(2 * np.pi * covariance)[1] + away @ np.linalg.solve(covariance, away))
    )


def by_brute_force(plda, enrolled, tested):
    """One speaker against two."""
    together = np.vstack([enrolled, tested[None]])
    return (
        log_density(together, plda) - log_density(enrolled, plda) - log_density(tested[None], plda)
    )


def every_pair(n_models, n_segments):
    return np.divmod(np.arange(n_models * n_segments), n_segments)


@pytest.mark.parametrize("channels", [0, 2])
@pytest.mark.parametrize(("dimension", "rank"), [(1, 1), (5, 3), (5, 5), (4, 6)])
def test_ratios_equal_those_of_joint_densities(dimension, rank, channels):
    """One to five enrolled vectors, at 1e-10."""
    rng = np.random.default_rng(dimension + rank)
    plda = model(rng, dimension=dimension, rank=rank, channels=channels)
    models = rng.permutation(np.repeat(np.arange(5), [1, 2, 3, 4, 5]))
    sessions = Sessions(2 * rng.normal(size=(15, dimension)), models)
    tests = 2 * rng.normal(size=(7, dimension))
    pairs = every_pair(5, 7)
    expected = [
        by_brute_force(plda, sessions.vectors[models == of], tests[row])
        for of, row in zip(*pairs, strict=True)
    ]
    np.testing.assert_allclose(
        plda_scores(plda, sessions, tests, *pairs), expected, rtol=1e-10, atol=1e-10
    )
    means = [
        by_brute_force(plda, sessions.means[[of]], tests[row])
        for of, row in zip(*pairs, strict=True)
    ]
    found = plda_scores(plda, sessions, tests, *pairs, sessions_as="mean")
    np.testing.assert_allclose(found, means, rtol=1e-10, atol=1e-10)


def test_ratios_match_the_closed_form_in_two_dimensions():
    """B = diag(b, 0), W = I: the second dimension says nothing; the first is the ratio of two bivariate densities.

    With r = b / (1 + b) and v = 1 + b, s = -log(1 - r^2) / 2 - (r^2 (x^2 + y^2) - 2 r x y) / (2 v (1 - r^2)).
    """
    b, x, y = 3.0, 1.3, -0.4
    plda = Plda(np.zeros(2), np.array([[np.sqrt(b)], [0.0]]), np.eye(2))
    r, v = b / (1 + b), 1 + b
    expected = -0.5 * np.log(1 - r**2) - (r**2 * (x**2 + y**2) - 2 * r * x * y) / (
        2 * v * (1 - r**2)
    )
    sessions, zero = Sessions(np.array([[x, 9.0]]), np.array([0])), np.array([0])
    assert plda_scores(plda, sessions, np.array([[y, -7.0]]), zero, zero)[0] == pytest.approx(
        expected, rel=1e-13
    )


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_ratios_do_not_depend_on_the_basis(seed, dimension, rank):
    """A regular map of the vectors changes no ratio, nor does a rotation of F; two single vectors are symmetric."""
    rng = np.random.default_rng(seed)
    plda = model(rng, dimension=dimension, rank=rank)
    sessions, tests = (
        Sessions(rng.normal(size=(4, dimension)), np.array([0, 1, 1, 2])),
        rng.normal(size=(3, dimension)),
    )
    pairs = every_pair(3, 3)
    expected = plda_scores(plda, sessions, tests, *pairs)
    turn, _ = np.linalg.qr(rng.normal(size=(dimension, dimension)))
    change = turn * rng.uniform(0.5, 2, dimension)
    rotation, _ = np.linalg.qr(rng.normal(size=(rank, rank)))
    residual = change.T @ plda.residual @ change
    other = Plda(
        plda.mean @ change, change.T @ plda.loadings @ rotation, (residual + residual.T) / 2
    )
    moved = plda_scores(
        other, Sessions(sessions.vectors @ change, sessions.models), tests @ change, *pairs
    )
    np.testing.assert_allclose(moved, expected, rtol=1e-8, atol=1e-8)
    alone = Sessions(tests, np.arange(3))
    square = plda_scores(plda, alone, tests, *pairs).reshape(3, 3)
    np.testing.assert_allclose(square, square.T, rtol=1e-11, atol=1e-11)


def test_true_parameters_give_calibrated_ratios():
    """E[exp(-s)] of targets and E[exp(s)] of non-targets are 1, whatever the model: mean over 20,000 trials."""
    rng = np.random.default_rng(0)
    plda = Plda(np.ones(3), 0.8 * np.eye(3), np.eye(3))
    who = rng.normal(size=(20_000, 3)) @ plda.loadings.T
    noise = rng.normal(size=(3, 20_000, 3))
    enrolled = np.vstack([who + noise[0], who + noise[1]]) + plda.mean
    sessions = Sessions(enrolled, np.tile(np.arange(20_000), 2))
    codes = np.arange(20_000)
    targets = plda_scores(plda, sessions, who + noise[2] + plda.mean, codes, codes)
    others = plda_scores(plda, sessions, who + noise[2] + plda.mean, codes, np.roll(codes, 1))
    assert np.exp(-targets).mean() == pytest.approx(1, abs=0.1)
    assert np.exp(others).mean() == pytest.approx(1, abs=0.1)
    assert targets.mean() > 0 > others.mean()


# --- two covariances -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [4, 2])
def test_the_two_covariance_model_is_a_plda(rank):
    rng = np.random.default_rng(rank)
    plda = model(rng, dimension=4, rank=rank)
    two = TwoCovariance(plda.mean, plda.between, plda.within)
    sessions, tests = (
        Sessions(rng.normal(size=(6, 4)), np.array([0, 1, 1, 2, 2, 2])),
        rng.normal(size=(5, 4)),
    )
    pairs = every_pair(3, 5)
    for how in ("all", "mean"):
        expected = plda_scores(plda, sessions, tests, *pairs, sessions_as=how)
        found = plda_scores(two.plda, sessions, tests, *pairs, sessions_as=how)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_moments_of_two_sessions_equal_those_of_the_model():
    """Data drawn from the model: W and B are found, and ratios lose next to nothing against those of the true ones."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 6, 6)) / np.sqrt(6) + 0.5 * np.eye(6)
    true = TwoCovariance(np.zeros(6), 0.4 * roots[0] @ roots[0].T, roots[1] @ roots[1].T)

    def drawn(counts):
        who = np.repeat(np.arange(len(counts)), counts)
        speakers = np.sqrt(0.4) * rng.normal(size=(len(counts), 6)) @ roots[0].T
        return speakers[who] + rng.normal(size=(len(who), 6)) @ roots[1].T, who

    for counts in (np.full(4000, 2), rng.integers(1, 5, 4000)):
        two = fit_two_covariance(*drawn(counts))
        np.testing.assert_allclose(two.within, true.within, atol=0.1)
        np.testing.assert_allclose(two.between, true.between, atol=0.1)
    vectors, who = drawn(np.full(300, 2))
    tested, _ = drawn(np.full(200, 2))
    pairs = every_pair(200, 200)
    costs = []
    for model in (
        true,
        fit_two_covariance(vectors, who),
        fit_two_covariance(vectors, who, convention="sidekit"),
    ):
        scores = plda_scores(
            model.plda, Sessions(tested[::2], np.arange(200)), tested[1::2], *pairs
        )
        costs.append(cllr(scores[pairs[0] == pairs[1]], scores[pairs[0] != pairs[1]]))
    assert costs[1] < 1.05 * costs[0]
    assert costs[2] > 1.3 * costs[0]


# --- cosine and Mahalanobis ------------------------------------------------------------------------------------------


def test_cosine_scores_use_the_mean_of_the_sessions():
    rng = np.random.default_rng(0)
    sessions, tests = (
        Sessions(rng.normal(size=(5, 3)), np.array([0, 1, 0, 1, 1])),
        rng.normal(size=(4, 3)),
    )
    left = np.stack(
        [sessions.vectors[[0, 2]].mean(axis=0), sessions.vectors[[1, 3, 4]].mean(axis=0)]
    )
    expected = [
        a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a in left for b in tests
    ]  # fmt: skip
    np.testing.assert_allclose(
        cosine_of_sessions(sessions, tests, *every_pair(2, 4)), expected, rtol=1e-13
    )
    same = cosine_of_sessions(sessions, sessions.vectors, np.array([0]), np.array([0]))
    assert same.max() <= 1


def test_mahalanobis_scores_equal_distances_to_means():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(3, 3))
    matrix = spread @ spread.T + np.eye(3)
    sessions, tests = (
        Sessions(1e3 + rng.normal(size=(4, 3)), np.array([0, 1, 1, 1])),
        1e3 + rng.normal(size=(5, 3)),
    )
    away = sessions.means[:, None] - tests
    expected = -0.5 * np.einsum("mti,ij,mtj->mt", away, matrix, away).ravel()
    found = mahalanobis_scores(matrix, sessions, tests, *every_pair(2, 5))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    own = mahalanobis_scores(
        matrix, Sessions(tests, np.arange(5)), tests, np.arange(5), np.arange(5)
    )
    assert np.abs(own).max() < 1e-13
    assert own.max() <= 0


# --- bad input, for every scorer -------------------------------------------------------------------------------------

SCORERS = {
    "plda": lambda *rest: plda_scores(Plda(np.zeros(3), np.eye(3), np.eye(3)), *rest),
    "two covariances": lambda *rest: plda_scores(
        TwoCovariance(np.zeros(3), np.eye(3), np.eye(3)).plda, *rest
    ),
    "mahalanobis": lambda *rest: mahalanobis_scores(np.eye(3), *rest),
    "cosine": cosine_of_sessions,
}
GOOD = Sessions(np.eye(3), np.array([0, 1, 1]))


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=list(SCORERS))
@pytest.mark.parametrize(
    ("tests", "models", "segments", "message"),
    [
        (np.eye(4), [0], [0], "expected tested vectors of 3 dimensions, got 4 .*same extractor"),
        (np.array([[1, np.nan, 0]]), [0], [0], "1 of 1 tested vectors hold NaN"),
        (np.zeros((0, 3)), [], [], "tested vectors as rows of numbers"),
        (np.eye(3), [2], [0], "codes of models from 0 to 1, got 2 to 2"),
        (np.eye(3), [0], [3], "codes of segments from 0 to 2, got 3 to 3"),
        (np.eye(3), [0, 1], [0], "a model and a segment for each trial"),
    ],
)
def test_bad_input_is_refused(scorer, tests, models, segments, message):
    with pytest.raises(DataError, match=message):
        scorer(GOOD, tests, np.array(models, np.int64), np.array(segments, np.int64))


# --- sessions and pairs --------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [["b", "a", "b"], np.array(["b", "a", "b"]), np.array([7, -3, 7])]
)
def test_models_may_be_given_by_name(names):
    sessions, distinct = Sessions.named(np.eye(3), names)
    assert distinct.tolist() == sorted(set(np.asarray(names).tolist()))
    assert sessions.models.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("vectors", "models", "message"),
    [
        (
            np.zeros((0, 3)),
            [],
            r"enrolled vectors as rows of numbers, got float64 of shape \(0, 3\)",
        ),
        (
            np.array([[1.0], [np.nan], [np.inf]]),
            [0, 0, 1],
            "2 of 3 enrolled vectors hold NaN or infinity: rows 1, 2",
        ),
        (np.eye(2), [0], "a whole number for each of 2 vectors"),
        (
            np.eye(3),
            [0, 0, 2],
            "expected codes of models from 0 without gaps, got 0 to 2 for 3 vectors",
        ),
    ],
)
def test_malformed_sessions_are_refused(vectors, models, message):
    with pytest.raises(DataError, match=message):
        Sessions(vectors, np.array(models) if models else np.zeros(0, np.int64))


@given(st.data())
def test_products_of_any_list_equal_those_of_its_pairs(data):
    """Full lists, lists cut into blocks, blocks in them, single pairs, repeated ones and none."""
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    n_left, n_right = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    left, right = rng.normal(size=(n_left, 5)), rng.normal(size=(n_right, 5))
    kind = data.draw(st.sampled_from(["all", "some", "blocks", "few"]))
    mask = np.ones((n_left, n_right), bool)
    if kind == "some":
        mask = rng.random((n_left, n_right)) < 0.3
    elif kind == "blocks":
        mask = np.arange(n_left)[:, None] % 13 == np.arange(n_right) % 13
    elif kind == "few":
        mask = rng.random((n_left, n_right)) < 0.03
    models, segments = (rng.permutation(column) for column in np.nonzero(mask))
    if data.draw(st.booleans()):
        models, segments = np.tile(models, 2), np.tile(segments, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "_CELLS", data.draw(st.sampled_from([1, 100, 1 << 22])))
        patch.setattr(scoring, "_PAIRED", data.draw(st.sampled_from([1, 100, 1 << 22])))
        found = pair_products(left, right, models, segments)
    np.testing.assert_allclose(
        found, (left[models] * right[segments]).sum(axis=1), rtol=1e-12, atol=1e-13
    )


def test_overflowing_scores_raise_an_error():
    with pytest.raises(
        DataError, match="1 of 2 scores are not finite: vectors or parameters are far too large"
    ):
        pair_products(
            np.array([[1e200], [1.0]]), np.array([[1e200]]), np.array([0, 1]), np.array([0, 0])
        )
