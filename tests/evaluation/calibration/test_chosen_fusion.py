"""Weights that are not negative, against other libraries, brute force, and attackers that tell nothing."""

import numpy as np
import pytest

from evaluation.calibration.affine import (
    RIDGES,
    apply_affine,
    choose_fusion,
    cllr_of_trials,
    train_affine,
    train_nonnegative,
)
from evaluation.metrics.calibration import cllr
from spkbase.errors import DataError


def background(seed, strengths, *, speakers=30, folds=3):
    """Trials of each speaker of a fold against each other one, with a bias of each model; one column a strength."""
    rng = np.random.default_rng(seed)
    rows, is_target, numbers, names = [], [], [], []
    for fold in range(folds):
        for model in range(speakers):
            bias = 0.3 * rng.standard_normal(len(strengths))
            for segment in range(speakers):
                rows.append(
                    np.array(strengths) * (model == segment)
                    + rng.standard_normal(len(strengths))
                    + bias
                )
                is_target.append(model == segment)
                numbers.append(fold)
                names.append(f"{fold}-{model}")
    return np.array(rows), np.array(is_target), np.array(numbers), np.array(names)


def test_fusion_with_positive_weights_equals_logistic_regression():
    rows, is_target, *_ = background(0, (2.0, 1.5))
    found = train_nonnegative(rows, is_target)
    expected = train_affine(rows[is_target], rows[~is_target])
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-5)
    assert found.offset == pytest.approx(expected.offset, rel=1e-5)


@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_fusion_with_a_ridge_equals_scikit_learn(ridge):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows, is_target, *_ = background(1, (2.0, 1.0, 0.7))
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    shares = np.where(is_target, 0.5 / is_target.sum(), 0.5 / (~is_target).sum())
    other = linear_model.LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000)
    other.fit(scaled, is_target, sample_weight=shares)
    found = train_nonnegative(rows, is_target, ridge=ridge)
    np.testing.assert_allclose(
        np.array(found.weights) * rows.std(axis=0), other.coef_[0], rtol=1e-5
    )


def test_the_constrained_minimum_equals_a_grid_search():
    """A system whose scores are inverted has weight 0, and the other the weight that it has alone."""
    rows, is_target, *_ = background(2, (2.0, -1.5))
    found = train_nonnegative(rows, is_target)
    assert found.weights[1] == 0

    def cost(first, second, offset):
        llr = rows @ np.array([first, second]) + offset
        return float(cllr_of_trials(llr, is_target).sum())

    best = cost(*found.weights, found.offset)
    steps = np.linspace(-0.05, 0.05, 5)
    others = [
        cost(found.weights[0] + first, second, found.offset + offset)
        for first in steps
        for second in (0.0, 0.01, 0.05)
        for offset in steps
    ]
    assert best <= min(others) + 1e-9


def test_the_contributions_of_trials_add_up_to_cllr():
    rng = np.random.default_rng(3)
    llr, is_target = rng.normal(size=500), rng.random(500) < 0.2
    assert cllr_of_trials(llr, is_target).sum() == pytest.approx(
        cllr(llr[is_target], llr[~is_target]), rel=1e-12
    )


def test_uninformative_attackers_get_no_weight_and_fusion_matches_the_best():
    """One in 40 that tell nothing stays by the rule; of 20 here at most 2, and the sum is not harmed."""
    kept = 0
    for seed in range(5):
        rows, is_target, folds, speakers = background(seed, (0.0, 2.5, 0.0, 0.0, 0.0), speakers=20)
        chosen = choose_fusion(rows, is_target, folds, speakers, "abcde")
        assert chosen.affine.weights[1] > 0
        kept += sum(chosen.affine.weights[number] > 0 for number in (0, 2, 3, 4))
        assert chosen.cllr <= min(chosen.alone.values()) == chosen.alone["b"]
    assert kept <= 2


def test_trials_are_scored_with_weights_from_other_folds():
    rows, is_target, folds, speakers = background(4, (2.0, 1.0))
    chosen = choose_fusion(rows, is_target, folds, speakers, ["one", "two"])
    for fold in range(3):
        others = folds != fold
        affine = train_nonnegative(rows[others], is_target[others], ridge=chosen.ridge)
        np.testing.assert_array_equal(chosen.llr[~others], apply_affine(affine, rows[~others]))
    assert chosen.tried.keys() == set(RIDGES)
    assert chosen.tried[chosen.ridge] == min(chosen.tried.values())


def test_perfect_attackers_get_finite_weights_and_constant_ones_none():
    """Scores that separate without error have a finite weight, equal ones none."""
    rows, is_target, folds, speakers = background(5, (50.0, 0.0))
    rows[:, 1] = 7
    chosen = choose_fusion(rows, is_target, folds, speakers, ["one", "same"])
    assert 0 < chosen.affine.weights[0] < 100
    assert chosen.affine.weights[1] == 0
    assert chosen.cllr < 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows, truth, folds: (rows * np.inf, truth, folds),
            "expected finite trials' scores",
        ),
        (lambda rows, truth, folds: (rows, truth & False, folds), "trials of both classes"),
        (lambda rows, truth, folds: (rows, truth, folds * 0), "two folds of speakers"),
    ],
)
def test_unusable_training_data_is_refused(change, message):
    rows, is_target, folds, speakers = background(7, (2.0, 0.0), speakers=5)
    with np.errstate(invalid="ignore"), pytest.raises(DataError, match=message):
        choose_fusion(*change(rows, is_target, folds), speakers, ["one", "two"])
