"""The cosine that is adapted to its list of trials, against the formula written out with an inverse root."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkver.backend import Sessions, adapted_cosine_scores, cosine_of_sessions, parse_chain, train_chain


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _by_the_book(enrolled, models, tests, prior):
    """All models against all tests, shape (M, T)."""
    n_models, dimension = models.max() + 1, enrolled.shape[1]
    centre = np.mean([enrolled[models == model].mean(axis=0) for model in range(n_models)], axis=0)
    tested = _unit(tests - (tests.sum(axis=0) + centre) / (len(tests) + 1))
    enrolled = _unit(enrolled - centre)
    means = np.stack([enrolled[models == model].mean(axis=0) for model in range(n_models)])
    scatter, n_free = np.zeros((dimension, dimension)), len(enrolled) - n_models
    for vector, model in zip(enrolled, models, strict=True):
        scatter += np.outer(vector - means[model], vector - means[model])
    within = np.eye(dimension)
    if n_free:
        mean_variance = np.trace(scatter) / (n_free * dimension)
        weight = prior * dimension
        within = (scatter + weight * mean_variance * np.eye(dimension)) / (n_free + weight)
    root = np.linalg.inv(np.real(sqrtm(within)))
    return _unit(means @ root) @ _unit(tested @ root).T


def _draw(n_models, per_model, dimension, seed=0):
    draw = np.random.default_rng(seed)
    models = np.repeat(np.arange(n_models), per_model)
    speakers = draw.normal(size=(n_models, dimension))
    spread = np.linspace(0.2, 3, dimension)
    enrolled = speakers[models] + spread * draw.normal(size=(len(models), dimension)) + 4
    tests = np.repeat(speakers, 3, axis=0) + spread * draw.normal(size=(3 * n_models, dimension)) - 7
    return enrolled, draw.permutation(models), tests


def _all_pairs(n_models, n_tests):
    return np.divmod(np.arange(n_models * n_tests), n_tests)


@pytest.mark.parametrize("prior", [0.2, 1.0, 5.0])
@pytest.mark.parametrize(
    ("per_model", "dimension"), [(1, 6), (3, 30), (20, 6)], ids=["one each", "fewer than dimensions", "more"]
)
def test_scores_are_those_of_the_formula(per_model, dimension, prior):
    enrolled, models, tests = _draw(5, per_model, dimension)
    pairs = _all_pairs(5, len(tests))
    found = adapted_cosine_scores(Sessions(enrolled, models), tests, *pairs, prior=prior)
    expected = _by_the_book(enrolled, models, tests, prior)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-10)


def test_a_shift_of_either_side_changes_nothing_but_for_the_one_that_counts_with_the_tests():
    enrolled, models, tests = _draw(5, 4, 8)
    pairs = _all_pairs(5, len(tests))
    found = adapted_cosine_scores(Sessions(enrolled, models), tests, *pairs)
    both = adapted_cosine_scores(Sessions(enrolled + 100, models), tests + 100, *pairs)
    np.testing.assert_allclose(both, found, atol=1e-9)
    many = np.tile(tests, (2000, 1))  # beside which one vector more counts for nothing
    pairs_of_many = pairs[0], pairs[1]
    near = adapted_cosine_scores(Sessions(enrolled, models), many, *pairs_of_many)
    far = adapted_cosine_scores(Sessions(enrolled, models), many + 5, *pairs_of_many)
    np.testing.assert_allclose(far, near, atol=2e-3)


def test_a_single_test_is_centred_as_the_enrolled_are():
    enrolled, models, tests = _draw(5, 1, 8)
    centre = enrolled.mean(axis=0)
    found = adapted_cosine_scores(Sessions(enrolled, models), tests[:1], np.arange(5), np.zeros(5, int))
    plain = cosine_of_sessions(Sessions(enrolled - centre, models), tests[:1] - centre, np.arange(5), np.zeros(5, int))
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_a_shifted_and_spread_domain_is_undone():
    """What an anonymiser does to vectors: another place, and a direction in which each recording is moved at random."""
    draw = np.random.default_rng(1)
    speakers, moved = draw.normal(size=(20, 16)), draw.normal(size=16)
    models = np.repeat(np.arange(20), 10)
    enrolled = speakers[models] + 0.3 * draw.normal(size=(200, 16)) + 3 * moved + draw.normal(size=(200, 1)) * 2 * moved
    owners = np.repeat(np.arange(20), 5)
    tests = speakers[owners] + 0.3 * draw.normal(size=(100, 16)) + 6 * moved + draw.normal(size=(100, 1)) * 2 * moved
    pairs = _all_pairs(20, 100)
    sessions = Sessions(enrolled, models)
    shares = []
    for values in (cosine_of_sessions(sessions, tests, *pairs), adapted_cosine_scores(sessions, tests, *pairs)):
        shares.append(np.mean(values.reshape(20, 100).argmax(axis=0) == owners))
    assert shares[0] < 0.7
    assert shares[1] > 0.95


def test_a_score_does_not_depend_on_the_order_of_models_and_segments():
    enrolled, models, tests = _draw(6, 5, 7)
    ids = np.array([f"u{row}" for row in range(len(enrolled))], object)
    names = np.array([f"s{model}" for model in models], object)
    tested = np.array([f"t{row}" for row in range(len(tests))], object)
    backend = train_chain(Embeddings(ids, names, enrolled), "adapted_cosine")
    trials = Trials.from_ids([f"s{m}" for m in range(6) for _ in tests], [f"t{t}" for _ in range(6) for t in range(18)])
    back = np.arange(len(trials))[::-1]
    test = Embeddings(tested, tested, tests)
    found = backend.score(Embeddings(ids, names, enrolled), test, trials).values
    turned = backend.score(
        Embeddings(ids[::-1], names[::-1], enrolled[::-1]), Embeddings(tested[::-1], tested[::-1], tests[::-1]),
        Trials.from_ids([trials.model_ids[trials.models[row]] for row in back],
                        [trials.segment_ids[trials.segments[row]] for row in back]),
    ).values  # fmt: skip
    np.testing.assert_allclose(turned[::-1], found, atol=1e-12)


def test_what_is_of_no_trial_has_no_part():
    enrolled, models, tests = _draw(6, 5, 7)
    ids = np.array([f"u{row}" for row in range(len(enrolled))], object)
    names = np.array([f"s{model}" for model in models], object)
    tested = np.array([f"t{row}" for row in range(len(tests))], object)
    enrol = Embeddings(ids, names, enrolled)
    backend = train_chain(enrol, "adapted_cosine")
    trials = Trials.from_ids(["s0", "s1", "s2"] * 4, [f"t{row}" for row in range(4) for _ in range(3)])
    used = np.isin(names.astype(str), ["s0", "s1", "s2"])
    found = backend.score(enrol, Embeddings(tested, tested, tests), trials).values
    alone = backend.score(
        Embeddings(ids[used], names[used], enrolled[used]), Embeddings(tested[:4], tested[:4], tests[:4]), trials
    ).values
    np.testing.assert_array_equal(found, alone)


def test_what_cannot_be_adapted_is_one_clear_error():
    enrolled, models, tests = _draw(5, 2, 4)
    pairs = np.zeros(3, int), np.arange(3)
    with pytest.raises(DataError, match="the mean of all models, and there is one"):
        adapted_cosine_scores(Sessions(enrolled, np.zeros(10, int)), tests, *pairs)
    with pytest.raises(DataError, match="nothing is left of 10 of 10 enrolled vectors"):
        adapted_cosine_scores(Sessions(np.ones((10, 4)), models), tests, *pairs)
    same = np.tile(np.mean([enrolled[models == model].mean(axis=0) for model in range(5)], axis=0), (4, 1))
    with pytest.raises(DataError, match="nothing is left of 4 of 4 tested vectors"):
        adapted_cosine_scores(Sessions(enrolled, models), same, *pairs)
    for prior in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="expected a number above 0"):
            adapted_cosine_scores(Sessions(enrolled, models), tests, *pairs, prior=prior)
    with pytest.raises(ConfigError, match="snorm cannot stand after adapted_cosine"):
        parse_chain("adapted_cosine,snorm")


def test_sessions_that_never_differ_leave_the_cosine():
    speakers = np.eye(4) + 2
    enrolled, models = np.repeat(speakers, 3, axis=0), np.repeat(np.arange(4), 3)
    tests = speakers + 1
    found = adapted_cosine_scores(Sessions(enrolled, models), tests, *_all_pairs(4, 4)).reshape(4, 4)
    assert (found.argmax(axis=0) == np.arange(4)).all()
    assert np.isfinite(found).all()
