"""The cosine that is adapted to its list of trials, against the formula written out with an inverse root."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkver.backend import Sessions, adapted_cosine_scores, parse_chain, train_chain


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _by_the_book(enrolled, models, tests, prior=1.0, *, whole_list=True):
    """All models against all tests, shape (M, T): trial by trial, without the trial's own model and test."""
    n_models, dimension = models.max() + 1, enrolled.shape[1]
    scores = np.empty((n_models, len(tests)))
    for model, test in np.ndindex(*scores.shape):
        others = [other for other in range(n_models) if other != model]
        enrolled_mean = np.mean(
            [enrolled[models == other].mean(axis=0) for other in others], axis=0
        )
        counted = (
            [*np.delete(tests, test, axis=0), enrolled_mean] if whole_list else [enrolled_mean]
        )
        scatter, n_free = np.zeros((dimension, dimension)), 0
        for other in others:
            moved = enrolled[models == other] - enrolled_mean
            lengths = np.linalg.norm(moved, axis=1, keepdims=True)
            moved = moved / np.where(lengths > 1e-12, lengths, 1)
            scatter += np.cov(moved.T, bias=True) * len(moved)
            n_free += len(moved) - 1
        within = np.eye(dimension)
        if n_free and np.trace(scatter) > 0:
            weight = prior * dimension
            mean_variance = np.trace(scatter) / (n_free * dimension)
            within = (scatter + weight * mean_variance * np.eye(dimension)) / (n_free + weight)
        root = np.linalg.inv(np.real(sqrtm(within)))
        left = _unit(enrolled[models == model] - enrolled_mean).mean(axis=0) @ root
        right = (tests[test] - np.mean(counted, axis=0)) @ root
        scores[model, test] = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    return scores


def _draw(n_models, per_model, dimension, seed=0):
    draw = np.random.default_rng(seed)
    models = np.repeat(np.arange(n_models), per_model)
    speakers = draw.normal(size=(n_models, dimension))
    spread = np.linspace(0.2, 3, dimension)
    enrolled = speakers[models] + spread * draw.normal(size=(len(models), dimension)) + 4
    tests = (
        np.repeat(speakers, 3, axis=0) + spread * draw.normal(size=(3 * n_models, dimension)) - 7
    )
    return enrolled, draw.permutation(models), tests


def _all_pairs(n_models, n_tests):
    return np.divmod(np.arange(n_models * n_tests), n_tests)


@pytest.mark.parametrize("whole_list", [True, False], ids=["whole list", "single test"])
@pytest.mark.parametrize("prior", [0.2, 5.0])
@pytest.mark.parametrize(
    ("n_models", "per_model", "dimension"),
    [(5, 1, 6), (5, 3, 30), (5, 20, 6), (2, 1, 6), (2, 4, 30), (3, 6, 4)],
    ids=["one each", "fewer than dimensions", "more", "two of one", "two", "three"],
)
def test_scores_equal_the_formula(n_models, per_model, dimension, prior, whole_list):
    enrolled, models, tests = _draw(n_models, per_model, dimension)
    pairs = _all_pairs(n_models, len(tests))
    found = adapted_cosine_scores(
        Sessions(enrolled, models), tests, *pairs, prior=prior, whole_list=whole_list
    )
    expected = _by_the_book(enrolled, models, tests, prior, whole_list=whole_list)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dimension", [6, 30])
def test_means_and_spread_exclude_the_scored_test(dimension):
    """Scores against one model and of one test: what leaves that test or model, and is not that trial, changes them.

    A vector further along its own direction from the means has the same scores; if it counted in them, it had not.
    """
    enrolled, models, tests = _draw(4, 3, dimension)
    pairs = _all_pairs(4, len(tests))
    before = adapted_cosine_scores(Sessions(enrolled, models), tests, *pairs).reshape(4, -1)
    others = models != 1
    centre = np.mean([enrolled[models == model].mean(axis=0) for model in (0, 2, 3)], axis=0)
    moved = np.where(others[:, None], enrolled, centre + 50 * (enrolled - centre))
    after = adapted_cosine_scores(Sessions(moved, models), tests, *pairs).reshape(4, -1)
    # the mean of tests holds that of enrolment without model 1: neither changed for its own trials
    np.testing.assert_allclose(after[1], before[1], atol=1e-12)
    assert np.abs(after[[0, 2, 3]] - before[[0, 2, 3]]).max() > 0.1
    centre = (np.delete(tests, 5, axis=0).sum(axis=0) + centre) / len(tests)
    far = tests.copy()
    far[5] = centre + 50 * (tests[5] - centre)
    after = adapted_cosine_scores(Sessions(enrolled, models), far, *pairs).reshape(4, -1)
    np.testing.assert_allclose(after[1, 5], before[1, 5], atol=1e-12)
    assert np.abs(np.delete(after[1] - before[1], 5)).max() > 0.1


@pytest.mark.parametrize(
    "chain", ["single_test_cosine", "centre,length,lda:3,length,single_test_cosine"]
)
def test_a_single_test_has_the_same_bits_whatever_else_is_tested(chain):
    enrolled, models, tests = _draw(6, 5, 40)
    names = np.array([f"s{model}" for model in models], object)
    tested = np.array([f"t{row}" for row in range(len(tests))], object)
    enrol = Embeddings(
        np.array([f"u{row}" for row in range(len(enrolled))], object), names, enrolled
    )
    backend = train_chain(enrol, chain)
    listed = [f"s{model}" for model in range(6)]

    def scores(rows, vectors=tests):
        trials = Trials.from_ids(listed * len(rows), [f"t{row}" for row in rows for _ in listed])
        return backend.score(enrol, Embeddings(tested, tested, vectors), trials).values.reshape(
            len(rows), 6
        )

    whole = scores(range(len(tests)))
    for rows in ([4], [4, 0], range(3, 18), range(17, -1, -1)):
        np.testing.assert_array_equal(scores(rows), whole[list(rows)])
    other = np.where(np.arange(len(tests))[:, None] == 4, tests, 1000.0)
    np.testing.assert_array_equal(scores(range(18), other)[4], whole[4])


@pytest.mark.parametrize(
    ("n_models", "per_model", "dimension"), [(6, 5, 700), (5, 30, 129), (6, 60, 513), (3, 100, 290)]
)
def test_a_single_test_has_the_same_bits_in_blocks_of_any_size(n_models, per_model, dimension):
    enrolled, models, _ = _draw(n_models, per_model, dimension)
    tests = np.random.default_rng(1).standard_normal((70, dimension))

    def scores(rows):
        pairs = _all_pairs(n_models, len(rows))
        found = adapted_cosine_scores(
            Sessions(enrolled, models), tests[rows], *pairs, whole_list=False
        )
        return found.reshape(n_models, len(rows))

    whole = scores(np.arange(70))
    for size in (1, 23, 48, 49, 69):
        rows = np.random.default_rng(size).permutation(70)[:size]
        np.testing.assert_array_equal(scores(rows), whole[:, rows])


def test_input_that_cannot_be_adapted_raises_one_error():
    enrolled, models, tests = _draw(5, 2, 4)
    pairs = np.zeros(3, int), np.arange(3)
    with pytest.raises(DataError, match="the mean of the other models, and there is one"):
        adapted_cosine_scores(Sessions(enrolled, np.zeros(10, int)), tests, *pairs)
    with pytest.raises(DataError, match="nothing is left of 2 of 2 enrolled vectors"):
        adapted_cosine_scores(Sessions(np.ones((10, 4)), models), tests, *pairs)
    others = np.tile(
        np.mean([enrolled[models == model].mean(axis=0) for model in range(1, 5)], axis=0), (4, 1)
    )
    for whole_list in (True, False):
        with pytest.raises(DataError, match="nothing is left of 3 of 3 tested vectors"):
            adapted_cosine_scores(Sessions(enrolled, models), others, *pairs, whole_list=whole_list)
    with pytest.raises(DataError, match="expected codes of models from 0 to 4"):
        adapted_cosine_scores(Sessions(enrolled, models), tests, np.full(3, 5), pairs[1])
    for prior in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="expected a number above 0"):
            adapted_cosine_scores(Sessions(enrolled, models), tests, *pairs, prior=prior)
    with pytest.raises(ConfigError, match="snorm cannot follow adapted_cosine"):
        parse_chain("adapted_cosine,snorm")
    with pytest.raises(ConfigError, match="snorm cannot follow single_test_cosine"):
        parse_chain("single_test_cosine,snorm")
