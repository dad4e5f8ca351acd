"""Affine calibration and fusion against a general minimiser and what is known of the scores."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from evaluation.calibration.affine import (
    Affine,
    apply_affine,
    cross_validate_affine,
    load_affine,
    save_affine,
    train_affine,
)
from evaluation.metrics.calibration import ece
from evaluation.trials.speakers import TrialSpeakers
from spkbase.errors import DataError


def overlapping(seed, systems=1, n=300):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(n, systems)) + np.linspace(0.5, 1.5, systems)
    nontarget = rng.normal(size=(2 * n, systems)) * 1.3
    return 20 * target + 3, 20 * nontarget + 3


@pytest.mark.parametrize("systems", [1, 3])
@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
def test_training_reaches_the_minimum_of_a_general_minimiser(systems, prior):
    target, nontarget = overlapping(0, systems)
    affine = train_affine(target, nontarget, prior=prior)

    def cost(parameters):
        one = Affine(tuple(parameters[:-1]), parameters[-1], prior)
        return ece(one(target), one(nontarget), prior=prior)

    start = np.array([*affine.weights, affine.offset])
    found = minimize(
        cost,
        start + 0.01,
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 20_000},
    )
    assert cost(start) <= found.fun + 1e-13
    np.testing.assert_allclose(start, found.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("prior", [0.01, 0.99])
@pytest.mark.parametrize("seed", [0, 7, 29])
def test_training_converges_with_few_targets_and_an_extreme_prior(seed, prior):
    """At the minimum both classes pull alike; there a whole step of Newton's method overshoots."""
    rng = np.random.default_rng(seed)
    target, nontarget = rng.normal(size=5) + 2, 3 * rng.normal(size=200)
    affine, odds = train_affine(target, nontarget, prior=prior), logit(prior)
    pulls = (
        prior * expit(-affine(target) - odds) / 5,
        (1 - prior) * expit(affine(nontarget) + odds) / 200,
    )
    assert pulls[0].sum() == pytest.approx(pulls[1].sum(), rel=1e-6)
    assert pulls[0] @ target == pytest.approx(pulls[1] @ nontarget, rel=1e-6)


def test_calibrated_scores_are_unchanged():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(2, 2, 100_000), rng.normal(-2, 2, 100_000)
    affine = train_affine(target, nontarget)
    assert affine.weights[0] == pytest.approx(1, abs=0.02)
    assert affine.offset == pytest.approx(0, abs=0.02)
    shifted = train_affine(10 * target - 7, 10 * nontarget - 7)
    assert (shifted.weights[0], shifted.offset) == pytest.approx(
        (affine.weights[0] / 10, affine.offset + 0.7 * affine.weights[0])
    )


@given(st.integers(0, 1000), st.floats(0.01, 0.99))
@settings(max_examples=25)
def test_training_never_raises_the_cost(seed, prior):
    target, nontarget = overlapping(seed, n=20)
    target, nontarget = target[:, 0], nontarget[:, 0]
    affine = train_affine(target, nontarget, prior=prior)
    assert (
        ece(affine(target), affine(nontarget), prior=prior)
        <= ece(target, nontarget, prior=prior) + 1e-12
    )
    assert (
        ece(affine(target), affine(nontarget), prior=prior)
        <= ece([0.0], [0.0], prior=prior) + 1e-12
    )


def test_a_calibration_is_read_back_exactly_from_plain_json(tmp_path):
    affine = train_affine(*overlapping(2, 2), prior=0.1, names=("a", "b"))
    save_affine(tmp_path / "fusion.json", affine)
    assert load_affine(tmp_path / "fusion.json") == affine
    save_affine(tmp_path / "a.json", Affine((1.0,), 0.0, 0.5))
    assert json.loads((tmp_path / "a.json").read_text()) == KNOWN


def test_infinite_scores_stay_infinite_and_overflowing_results_are_refused():
    affine = Affine((3.0,), 0.5, 0.5)
    assert apply_affine(affine, [np.inf, -np.inf, 1e300]).tolist() == [np.inf, -np.inf, 3e300]
    with pytest.raises(DataError, match=r"scores of up to 1e\+308 are too large"):
        apply_affine(affine, [1.0, 1e308])
    with pytest.raises(DataError, match="infinite scores cancel each other"):
        apply_affine(Affine((1.0, 1.0), 0.0, 0.5), [[np.inf, -np.inf]])


def test_reversed_scores_are_inverted_with_a_warning(caplog):
    target, nontarget = overlapping(3)
    assert train_affine(-target, -nontarget).weights[0] < 0
    assert "the calibration has a negative slope: weights -" in caplog.text
    train_affine(-target, -nontarget, names=("session",))
    assert "the calibration of session has a negative slope: weights -" in caplog.text


@pytest.mark.parametrize(
    ("target", "nontarget"),
    [
        ([2.0, 3.0], [0.0, 1.0]),
        ([1.0, 3.0], [0.0, 1.0]),
        ([0.0], [1.0]),
        (np.eye(3)[:1], np.eye(3)[1:]),
    ],
)
def test_separated_scores_need_a_ridge(target, nontarget):
    with pytest.raises(DataError, match="separate the classes without error"):
        train_affine(target, nontarget)
    assert np.isfinite(train_affine(target, nontarget, ridge=0.01).weights).all()


@pytest.mark.parametrize(
    ("target", "nontarget", "options", "words"),
    [
        ([], [1.0], {}, "expected target scores, got none"),
        ([1.0], [], {}, "expected nontarget scores, got none"),
        ([1.0, np.inf], [0.0], {}, "finite target scores, got 1 infinite or NaN"),
        ([1.0], [np.nan], {}, "finite nontarget scores, got 1"),
        ([[1.0, 2.0]], [[1.0]], {}, "the same systems in both classes, got 2 and 1"),
        ([[[1.0]]], [1.0], {}, r"shape \(N,\) or \(N, systems\)"),
        ([1.0, 1.0], [1.0], {}, "the system gives every trial the same score"),
        ([1.0, 0.0], [0.5], {"prior": 1.0}, "prior between 0 and 1"),
        ([1.0, 0.0], [0.5], {"ridge": -1.0}, "ridge"),
        (
            [[0.0, 1e308], [1.0, 0.0]],
            [[1.0, -1e308]],
            {},
            r"system 1 has scores of up to 1e\+308, too large",
        ),
    ],
)
def test_malformed_training_is_refused(target, nontarget, options, words):
    with pytest.raises(DataError, match=words):
        train_affine(target, nontarget, **options)


KNOWN = {
    "format": "spkver affine calibration",
    "version": 1,
    "weights": [1],
    "offset": 0,
    "prior": 0.5,
    "names": [],
}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        json.dumps({**KNOWN, "version": 2}),
        json.dumps({**KNOWN, "weights": []}),
        json.dumps({**KNOWN, "weights": ["inf"]}),
        *(json.dumps({**KNOWN, "prior": prior}) for prior in (0, 1, 2)),
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"a\.json(:1)?: expected"):
        load_affine(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_affine(tmp_path / "none.json")


# cross-validation


def trials_of_speakers(seed=0, n_speakers=12):
    rng = np.random.default_rng(seed)
    numbers = np.arange(n_speakers)
    models, segments = (side.ravel() for side in np.meshgrid(numbers, np.repeat(numbers, 3)))
    is_target = models == segments
    scores = rng.normal(size=len(models)) + 2.0 * is_target
    names = np.array([f"speaker{number}" for number in numbers], object)
    return scores, is_target, TrialSpeakers(names, models, segments)


@pytest.mark.parametrize("speaker", range(12))
def test_cross_validation_never_calibrates_a_trial_by_its_own_speakers(speaker):
    """Changing all trials of one speaker must leave alone the calibration of every trial that he is in."""
    scores, is_target, speakers = trials_of_speakers()
    before = cross_validate_affine(scores, is_target, speakers, folds=4)
    models, segments = speakers.models, speakers.segments
    mine = (models == speaker) | (segments == speaker)
    changed = scores.copy()
    changed[mine] = 3 * changed[mine] + np.where(is_target[mine], -4.0, 4.0)
    after = cross_validate_affine(changed, is_target, speakers, folds=4)
    # the calibration of each trial is affine in its own score: take scale and offset from the two ends of a fold pair
    slope = np.polyfit(scores[mine], before[mine], 1)
    assert slope[0] > 0
    for own in np.flatnonzero(mine):
        same = np.flatnonzero(mine & (models == models[own]) & (segments == segments[own]))
        if len(same) >= 2:
            first, second = same[:2]
            was = (before[second] - before[first]) / (scores[second] - scores[first])
            now = (after[second] - after[first]) / (changed[second] - changed[first])
            assert now == pytest.approx(was, rel=1e-9)


def test_cross_validated_calibrations_that_invert_scores_are_reported(caplog):
    scores, is_target, speakers = trials_of_speakers()
    cross_validate_affine(scores, is_target, speakers, folds=3)
    assert not caplog.text
    cross_validate_affine(-scores, is_target, speakers, folds=3)
    assert "the calibration has a negative slope for 6 of 6 pairs of folds" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": 2}, "at least 3 folds"),
        ({"folds": 13}, "got 12 and 13"),
        ({"folds": 3, "prior": 0.0}, "prior between 0 and 1"),
    ],
)
def test_malformed_cross_validation_is_refused(options, words):
    with pytest.raises(DataError, match=words):
        cross_validate_affine(*trials_of_speakers(), **options)
    scores, is_target, speakers = trials_of_speakers()
    # one speaker each
    assert np.isfinite(cross_validate_affine(scores, is_target, speakers, folds=12)).all()
    with pytest.raises(DataError, match="two speakers for each"):
        cross_validate_affine(scores, is_target[:-1], speakers)


@pytest.mark.parametrize("seed", range(8))
def test_training_stops_at_the_minimum_when_rounding_prevents_progress(seed, monkeypatch):
    """The gradient vanishes to rounding, which scipy's solver of equations confirms, after a few evaluations."""
    from scipy.optimize import root

    from evaluation.calibration import affine as module

    rng = np.random.default_rng(seed)
    is_target = rng.random(6000) < 0.3
    rows = rng.normal(size=(6000, 1 + seed % 3)) + rng.uniform(0.2, 2.5) * is_target[:, None]
    problem = module._problem((rows - rows.mean(axis=0)) / rows.std(axis=0), is_target, 0.5, 0.0)
    calls = []
    logaddexp = np.logaddexp
    monkeypatch.setattr(np, "logaddexp", lambda *given: calls.append(1) or logaddexp(*given))
    solution = module._minimise(*problem)
    inputs, signs, shares, _, log_odds = problem

    def gradient(weights):
        return inputs.T @ (-signs * shares / (1 + np.exp(signs * (inputs @ weights + log_odds))))

    exact = root(gradient, solution + 1e-3, tol=1e-15).x
    np.testing.assert_allclose(solution, exact, rtol=1e-9, atol=1e-12)
    assert np.abs(gradient(solution)).max() < 1e-14
    assert len(calls) < 40  # one for each of a dozen steps, and a few for halved steps


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_labels_given_as_scores_are_refused_also_as_a_column(shape):
    truth = np.arange(40) % 4 == 0
    scores = np.random.default_rng(2).standard_normal(40) + 2 * truth
    if len(shape) > 1:
        with pytest.raises(DataError, match=r"labels|without text, truth values"):
            train_affine(scores.reshape(shape), truth.reshape(shape))
    else:
        expected = train_affine(scores[truth], scores[~truth])
        assert train_affine(scores, truth) == train_affine(scores, labels=truth) == expected
    with pytest.raises(DataError, match="40 labels"):
        train_affine(scores.reshape(shape), truth.astype(int).reshape(shape))
