"""Self-training on a list of trials: against loops over single trials with densities, and what it may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from evaluation.metrics import eer
from spkbase.errors import ConfigError, DataError
from spkver.backend import (
    PldaConfig,
    Sessions,
    adapted_cosine_scores,
    enrolled_plda_scores,
    fit_plda,
    self_trained_scores,
    shifted_self_trained_scores,
)
from spkver.backend.self_training import Decisions, clearest, deal_tests, decide

N_MODELS = 6


def draw_list(seed, *, per_model=3, n_tests=5, n_strangers=0, shift=0.0, noise=0.6, dimension=6):
    """Vectors of enrolled speakers and strangers, the list of all pairs, and which trials are targets."""
    rng = np.random.default_rng(seed)
    voices = rng.normal(size=(N_MODELS + n_strangers, dimension))
    spread = noise * np.linspace(0.3, 2, dimension)
    owners = np.repeat(np.arange(len(voices)), n_tests)
    models = np.repeat(np.arange(N_MODELS), per_model)
    sessions = Sessions(
        4 + voices[models] + spread * rng.normal(size=(len(models), dimension)), models
    )
    moved = shift * rng.normal(size=dimension)
    tests = 4 + moved + voices[owners] + spread * rng.normal(size=(len(owners), dimension))
    pairs = all_pairs(len(tests))
    return sessions, tests, pairs, pairs[0] == owners[pairs[1]]


def all_pairs(n_tests):
    return np.divmod(np.arange(N_MODELS * n_tests), n_tests)


def unit(vectors, centre=0):
    return (vectors - centre) / np.linalg.norm(vectors - centre, axis=-1, keepdims=True)


def ratio(plda, model, test):
    """The log-density of a pair of vectors of one speaker, minus that of two."""
    between = plda.between
    total = between + plda.within
    mean = np.tile(plda.mean, 2)
    pair = np.concatenate([model, test])
    same = multivariate_normal(mean, np.block([[total, between], [between, total]])).logpdf(pair)
    nothing = np.zeros_like(between)
    return same - multivariate_normal(mean, np.block([[total, nothing], [nothing, total]])).logpdf(
        pair
    )


def leading(scores, row):
    """The model of the highest score of a test, and its lead."""
    ordered = np.sort(scores[:, row])
    return int(np.argmax(scores[:, row])), ordered[-1] - ordered[-2]


@pytest.mark.parametrize("with_background", [False, True])
def test_each_trial_equals_a_refit_without_the_fold_of_its_test(with_background):
    sessions, tests, pairs, _ = draw_list(1, n_strangers=2)
    background = draw_list(2)[0] if with_background else None
    options = {"prior": 20.0, "background": background}
    first = enrolled_plda_scores(sessions, tests, *pairs, **options).reshape(N_MODELS, -1)
    folds = deal_tests(tests)
    expected = np.empty_like(first)
    labelled = 0
    for row, test in enumerate(tests):
        vectors = list(sessions.vectors)
        owners = list(sessions.models)
        for other, vector in enumerate(tests):
            model, lead = leading(first, other)
            if folds[other] != folds[row] and lead > 2.0:
                vectors.append(vector)
                owners.append(model)
        labelled = len(vectors) - len(sessions.vectors)
        means = [
            np.mean([v for v, o in zip(vectors, owners, strict=True) if o == m], axis=0)
            for m in range(N_MODELS)
        ]
        centre = np.mean(means, axis=0)
        sides = [(unit(np.array(vectors), centre), np.array(owners))]
        if background is not None:
            others = unit(background.vectors, background.means.mean(axis=0))
            codes = np.concatenate([sides[0][1], N_MODELS + background.models])
            sides.append((np.concatenate([sides[0][0], others]), codes))
        trained = [fit_plda(*side, PldaConfig(prior=20.0))[0] for side in sides]
        for model in range(N_MODELS):
            mean = sides[0][0][sides[0][1] == model].mean(axis=0)
            expected[model, row] = np.mean(
                [ratio(plda, mean, unit(test, centre)) for plda in trained]
            )
    assert 3 < labelled < len(tests)
    found = self_trained_scores(sessions, tests, *pairs, margin=2.0, **options)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-7, atol=1e-8)


def test_rounds_on_a_shifted_list_equal_refits_of_single_trials():
    sessions, tests, pairs, _ = draw_list(3, n_strangers=1, shift=2.0)
    shares = (0.4, 0.7)
    scores = adapted_cosine_scores(sessions, tests, *pairs).reshape(N_MODELS, -1)
    folds = deal_tests(tests)
    centre = sessions.means.mean(axis=0)
    enrolled = unit(sessions.vectors, centre)
    tested = [
        unit(test, np.mean([*np.delete(tests, row, axis=0), centre], axis=0))
        for row, test in enumerate(tests)
    ]
    for share in shares:
        labels = {}
        for model in range(N_MODELS):
            own = [row for row in range(len(tests)) if leading(scores, row)[0] == model]
            own.sort(key=lambda row: -leading(scores, row)[1])
            labels.update(dict.fromkeys(own[: int(np.ceil(share * len(own)))], model))
        expected = np.empty_like(scores)
        for row in range(len(tests)):
            used = [other for other in labels if folds[other] != folds[row]]
            vectors = np.array([*enrolled, *(tested[other] for other in used)])
            owners = np.array([*sessions.models, *(labels[other] for other in used)])
            plda = fit_plda(vectors, owners, PldaConfig(prior=50.0))[0]
            for model in range(N_MODELS):
                every = vectors[owners == model].mean(axis=0)
                alone = [tested[other] for other in used if labels[other] == model]
                other_mean = np.mean(alone, axis=0) if alone else every
                values = [ratio(plda, mean, tested[row]) for mean in (every, other_mean)]
                expected[model, row] = np.mean(values)
        scores = expected
    found = shifted_self_trained_scores(sessions, tests, *pairs, prior=50.0, shares=shares)
    np.testing.assert_allclose(found.reshape(scores.shape), scores, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("score", [self_trained_scores, shifted_self_trained_scores])
def test_order_of_tests_models_and_trials_changes_no_score(score):
    sessions, tests, pairs, _ = draw_list(5, n_strangers=2, shift=0.5)
    expected = score(sessions, tests, *pairs)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(tests))
    names = rng.permutation(N_MODELS)
    vectors = rng.permutation(len(sessions.vectors))
    trials = rng.permutation(len(expected))
    other = Sessions(sessions.vectors[vectors], names[sessions.models[vectors]])
    found = score(other, tests[rows], names[pairs[0]][trials], np.argsort(rows)[pairs[1]][trials])
    np.testing.assert_allclose(found, expected[trials], rtol=0, atol=1e-9)


def test_tests_not_compared_with_all_models_are_not_trained_on():
    """A list of target trials alone would otherwise tell who speaks."""
    sessions, tests, pairs, is_target = draw_list(6)
    targets = pairs[0][is_target], pairs[1][is_target]
    expected = enrolled_plda_scores(sessions, tests, *targets)
    np.testing.assert_allclose(self_trained_scores(sessions, tests, *targets), expected, atol=1e-9)
    whole = self_trained_scores(sessions, tests, *pairs)
    assert np.abs(whole[is_target] - expected).max() > 0.1
    few = shifted_self_trained_scores(sessions, tests, *targets)
    changed = shifted_self_trained_scores(sessions, tests, *targets, shares=(1.0, 1.0))
    np.testing.assert_array_equal(few, changed)


def test_equal_tests_share_a_fold_and_folds_are_even():
    tests = np.random.default_rng(0).normal(size=(23, 3))
    folds = deal_tests(np.concatenate([tests, tests[::-1]]))
    np.testing.assert_array_equal(folds[:23], folds[:22:-1])
    assert np.bincount(folds[:23]).tolist() == [5, 5, 5, 4, 4]
    assert (deal_tests(tests, seed=1) != folds[:23]).any()


@pytest.mark.parametrize("n_strangers", [0, 6])
def test_self_training_lowers_error_rates_of_simulated_lists(n_strangers):
    """Of closed lists, and of lists in which every second test is of a stranger."""
    rates = {"same": [], "plain": [], "shifted": [], "adapted": []}
    for seed in range(4):
        options = {"per_model": 2, "n_tests": 12, "n_strangers": n_strangers, "dimension": 12}
        sessions, tests, pairs, is_target = draw_list(seed, noise=0.9, **options)
        found = {
            "same": self_trained_scores(sessions, tests, *pairs, margin=2.0),
            "plain": enrolled_plda_scores(sessions, tests, *pairs),
        }
        sessions, tests, pairs, is_target = draw_list(seed, noise=0.7, shift=2.0, **options)
        found["shifted"] = shifted_self_trained_scores(sessions, tests, *pairs)
        found["adapted"] = adapted_cosine_scores(sessions, tests, *pairs)
        for name, scores in found.items():
            rates[name].append(eer(scores[is_target], scores[~is_target]))
    means = {name: np.mean(values) for name, values in rates.items()}
    assert means["same"] < means["plain"]
    assert means["shifted"] < means["adapted"]


def test_decisions_need_all_models_and_a_lead():
    scores = np.array([4.0, 1.0, 7.0, 2.0, 2.5])
    decided = decide(scores, np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 2, 2]), n_tests=4)
    assert decided.models.tolist() == [0, -1, 1, -1]
    assert decided.margins.tolist() == [3.0, 0.0, 0.5, 0.0]
    assert clearest(
        Decisions(np.array([0, 0, 0, 1]), np.array([1.0, 3.0, 2.0, 9.0])), 0.5
    ).tolist() == [-1, 0, 0, 1]


def test_input_unfit_for_self_training_raises_one_error():
    sessions, tests, pairs, _ = draw_list(7)
    alone = Sessions(sessions.means, np.arange(N_MODELS))
    for score in (self_trained_scores, shifted_self_trained_scores):
        with pytest.raises(DataError, match="expected tested vectors of 6 dimensions"):
            score(sessions, tests[:, :3], *pairs)
        with pytest.raises(DataError, match="expected codes of models from 0 to 5"):
            score(sessions, tests, pairs[0] + 1, pairs[1])
    with pytest.raises(DataError, match="each speaker has only one"):
        self_trained_scores(alone, tests, *pairs)
    with pytest.raises(ConfigError, match="margin is -1: expected 0 nat or more"):
        self_trained_scores(sessions, tests, *pairs, margin=-1)
    for shares in ((), (0.0,), (0.5, 1.5)):
        with pytest.raises(ConfigError, match="expected numbers above 0, at most 1"):
            shifted_self_trained_scores(sessions, tests, *pairs, shares=shares)
