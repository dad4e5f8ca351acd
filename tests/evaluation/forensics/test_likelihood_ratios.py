"""devPAV, bounds and kernel densities: the numbers of `lir` (tests/data/forensics), closed forms, honest mistakes."""

import json
import logging
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import evaluation as ev
from evaluation import forensics
from evaluation.forensics import LN10, validate
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "data" / "forensics" / "golden.json").read_text(encoding="utf-8")
)
SETS = GOLDEN["sets"]


def floats(values):
    return np.array(values, np.float64)


def ratios(name):
    """Natural LLRs of both classes."""
    return tuple(floats(SETS[name][side]) * LN10 for side in ("target", "nontarget"))


@pytest.mark.parametrize("name", SETS)
def test_numbers_equal_those_of_lir(name):
    expected = SETS[name]
    trials = ratios(name)
    found = {
        "dev_pav": ev.dev_pav(*trials),
        "invariance": ev.invariance_bounds(*trials).log10,
        "kernel": ev.train_kernel(*trials)(floats(GOLDEN["queries"]) * LN10) / LN10,
        "cllr": ev.cllr(*trials),
        "min_cllr": ev.min_cllr(*trials),
    }
    if name != "tied":
        found["elub"] = ev.elub(*trials).log10
    for measure, value in found.items():
        np.testing.assert_allclose(value, floats(expected[measure]), rtol=0, atol=1e-9)


def test_elub_of_ratios_on_the_grid_equals_exact_arithmetic():
    """lir rounds 10 ** llr, so that ties between ratios and the grid fall on either side."""
    target, nontarget = (
        [round(10 * value) for value in SETS["tied"][side]] for side in ("target", "nontarget")
    )

    def useful(step):  # thresholds are hundredths, ratios tenths
        misses = Fraction(sum(10 * value <= step for value in target) + 1, len(target) + 1)
        alarms = Fraction(sum(10 * value > step for value in nontarget) + 1, len(nontarget) + 1)
        return min(1.0, 10 ** (step / 100)) >= float(misses) + 10 ** (step / 100) * float(alarms)

    lower = max(step for step in range(-500, 1) if not useful(step)) + 1
    upper = min(step for step in range(500) if not useful(step)) - 1
    np.testing.assert_allclose(ev.elub(*ratios("tied")).log10, [lower / 100, upper / 100])


def test_dev_pav_is_the_area_between_the_pav_line_and_the_diagonal():
    for name in ("calibrated", "few", "shifted", "tied"):
        trials = ev.sort_scores(*ratios(name))
        before = trials.thresholds / LN10
        after = trials.blocks.per_score() / LN10
        known = np.isfinite(after)
        grid = np.linspace(*before[known][[0, -1]], 200_001)
        gap = np.abs(np.interp(grid, before[known], after[known]) - grid)
        assert ev.dev_pav(trials) == pytest.approx(gap.mean(), rel=1e-3)


def test_kernel_densities_are_sums_of_normals():
    target, nontarget = ratios("few")
    calibration = ev.train_kernel(target, nontarget)
    densities = []
    for own in (target, nontarget):
        width = own.std() * (4 / (3 * len(own))) ** 0.2
        densities.append(norm.pdf(0.3, own, width).mean())
    assert calibration([0.3])[0] == pytest.approx(np.log(densities[0] / densities[1]), abs=1e-12)
    assert calibration([np.inf, -np.inf]).tolist() == [np.inf, -np.inf]


def test_many_calibrated_ratios_have_a_dev_pav_near_0_and_bounds_far_from_it():
    places = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    target = 2 * places + 2
    assert ev.dev_pav(target, -target) < 0.05
    lower, upper = ev.elub(target, -target).log10
    assert lower == pytest.approx(-upper)
    assert upper > 2
    # a factor of 10 too much support for one side
    assert ev.dev_pav(target + LN10, LN10 - target) == pytest.approx(1.0, abs=0.05)


def test_bounds_take_scores_and_arrays():
    bounds = forensics.Bounds(-1.0, 2.0)
    scores = ev.Scores.from_ids(["a", "b"], ["s", "s"], [-5.0, 7.0])
    assert bounds(scores).values.tolist() == [-1.0, 2.0]
    assert bounds([0.5]).tolist() == [0.5]


EXTREMES = {
    "separate": (([2.0, 3.0], [-2.0, -3.0]), np.isnan),
    "misleading and infinite": (([-np.inf, 1.0, 2.0, np.inf], [-1.0, 0.5, 1.5]), np.isinf),
    "all alike": (([0.0, 0.0], [0.0]), lambda value: value == 0),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_dev_pav_of_extremes(name):
    trials, holds = EXTREMES[name]
    assert holds(ev.dev_pav(*trials))


MISTAKES = {
    "reversed": (lambda target, nontarget: (-target, -nontarget), "REVERSED"),
    "ratios, no logarithms": (lambda *trials: tuple(map(np.exp, trials)), "take the logarithm"),
    "probabilities": (lambda *trials: tuple(1 / (1 + np.exp(-side)) for side in trials), "logit"),
    "scores": (lambda target, nontarget: (30 * target, 30 * nontarget), "not calibrated LLRs"),
}


@pytest.mark.parametrize("measure", [ev.dev_pav, ev.elub, ev.invariance_bounds])
@pytest.mark.parametrize("name", MISTAKES)
def test_honest_mistakes_raise_a_warning(name, measure, caplog):
    change, message = MISTAKES[name]
    with caplog.at_level(logging.WARNING):
        measure(*change(*ratios("calibrated")))
    assert message in caplog.text


def test_kernel_densities_warn_of_scores_beyond_the_training_scores(caplog):
    calibration = ev.train_kernel(*ratios("calibrated"))
    calibration([0.0, 1.0])
    assert not caplog.text
    # densities that underflow
    assert np.isfinite(calibration([-500.0, 0.0, 500.0])).all()
    assert "2 of 3 scores are beyond all training scores" in caplog.text


def test_kernel_densities_warn_of_reversed_scores_and_refuse_a_single_score(caplog):
    target, nontarget = ratios("calibrated")
    ev.train_kernel(-target, -nontarget)
    assert "REVERSED" in caplog.text
    with pytest.raises(DataError, match="expected target scores that differ, got 1 equal"):
        ev.train_kernel([1.0], nontarget)
    with pytest.raises(DataError, match="nontarget scores, got none"):
        ev.train_kernel(target, [])


@pytest.fixture(scope="module")
def lists():
    """LLRs of ten speakers, each against each."""
    rng = np.random.default_rng(0)
    pairs = [(m, f"{s}/{take}") for m in "abcdefghij" for s in "abcdefghij" for take in range(3)]
    models, segments = zip(*pairs, strict=True)
    truth = np.array([segment[0] == model for model, segment in pairs])
    values = np.where(truth, 2.0, -2.0) + 2 * rng.normal(size=len(pairs))
    key = ev.Key.from_ids(models, segments, truth)
    return ev.Scores.from_ids(models, segments, values), key


def test_validation_has_the_numbers_of_its_measures(lists):
    result = validate(*lists, speakers="/", resampling=Resampling(50))
    trials = ev.split_scores(*lists)
    assert result.cllr == ev.cllr(*trials)
    assert result.dev_pav == ev.dev_pav(*trials)
    assert tuple(result.elub.values()) == pytest.approx(ev.elub(*trials).log10)
    assert result.misleading["target"] == np.mean(trials[0] < 0)
    assert result.misleading["nontarget"] == np.mean(trials[1] > 0)
    low, high = result.intervals["cllr"]
    assert low < result.cllr < high
    assert "dev_pav" not in result.intervals
    assert "10 speakers" in result.notes["intervals"]


def test_validation_needs_both_classes(lists):
    scores, key = lists
    for rows in (key.is_target, ~key.is_target):
        with pytest.raises(DataError, match="expected trials of both classes"):
            validate(scores, key.subset(rows), speakers="/", missing="drop")


def test_validation_asks_for_speakers():
    key = ev.Key.from_ids(
        ["m1_1", "m1_2", "m2_1", "m2_2"] * 2, list("aabbbbaa"), [1, 1, 1, 1, 0, 0, 0, 0]
    )
    scores = ev.Scores.from_ids(
        ["m1_1", "m1_2", "m2_1", "m2_2"] * 2, list("aabbbbaa"), np.arange(8.0)
    )
    with pytest.raises(DataError, match="bootstrap_by='id'"):
        validate(scores, key)


def crossed(change=lambda *trials: trials):
    """The calibrated ratios as trials of sixty speakers with themselves and with each other."""
    target, nontarget = change(*ratios("calibrated"))
    names = [f"s{number}" for number in range(60)]
    models = names + names
    segments = names + names[1:] + names[:1]
    values = np.concatenate([np.resize(target, 60), np.resize(nontarget, 60)])
    is_target = np.arange(120) < 60
    return ev.Scores.from_ids(models, segments, values), ev.Key.from_ids(
        models, segments, is_target
    )


@pytest.mark.parametrize("name", MISTAKES)
def test_validating_scores_that_are_not_ratios_raises_a_warning(name, caplog):
    change, message = MISTAKES[name]
    validate(*crossed(change), resampling=ev.Resampling(0))
    assert message in caplog.text


def test_validation_of_ratios_to_base_10_names_the_base():
    scores, key = crossed()
    natural = validate(scores, key, resampling=ev.Resampling(0))
    tens = ev.Scores.from_ids(*zip(*key.pairs(), strict=True), scores.values / np.log(10))
    other = validate(tens, key, resampling=ev.Resampling(0), llr_base=10)
    assert other.cllr == pytest.approx(natural.cllr)
    assert natural.notes["base"] == "read as natural logarithms"
    assert other.notes["base"] == "read as logarithms of base 10"
    with pytest.raises(DataError, match="expected a base of log-likelihood ratios above 1"):
        validate(scores, key, llr_base=1)
