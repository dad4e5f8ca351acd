"""All numbers at once: what a report holds, notes, properties that every metric shares."""

import json
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics import CONVENTIONS, PRIORS, Metrics, act_dcf, cllr, ece, sort_scores
from evaluation.metrics.detection import equal_error
from evaluation.trials import Key, Scores
from evaluation.uncertainty import evaluate
from spkbase.errors import DataError
from spkbase.files import to_json
from tests.score_strategies import classes

KEYS = [
    *[
        "n_target",
        "n_nontarget",
        "convention",
        "eer",
        "threshold_at_eer",
        "cllr",
        "min_cllr",
        "min_dcf",
        "act_dcf",
    ],
    *[
        "min_dcf_unnormalised",
        "act_dcf_unnormalised",
        "zebra",
        "d_sys",
        "tpr_at_fpr",
        "intervals",
        "notes",
    ],
]
ADDED = ["calibration_loss", "d_sys_pav", "prbep", "auc"]
# numbers that depend only on the order of the scores
ORDER = (
    "eer.",
    "min_dcf.",
    "min_dcf_unnormalised.",
    "min_cllr",
    "zebra.",
    "d_sys_pav",
    "tpr_at_fpr.",
    "prbep",
    "auc",
)
ACTUAL = (f"act_dcf{of}.{prior}" for of in ("", "_unnormalised") for prior in PRIORS)
NOT_OF_THE_ORDER = {"threshold_at_eer", "cllr", "calibration_loss", "d_sys", *ACTUAL}


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    return rng.normal(2, 2, 500), rng.normal(-2, 2, 2000)


def test_the_report_has_the_promised_keys(scores):
    report = json.loads(to_json(evaluate(*scores, priors=("0.01", ".5", 0.25)).to_dict()))
    assert set(KEYS) | set(ADDED) == set(report)
    assert list(report["eer"]) == ["rocch", "interpolated", "kaldi", "speechbrain", "nearest"]
    for name in ("min_dcf", "act_dcf", "min_dcf_unnormalised", "act_dcf_unnormalised"):
        assert list(report[name]) == ["0.01", ".5", "0.25"]
    assert list(report["zebra"]) == ["population", "individual", "individual_ceiling", "tag"]
    assert list(report["tpr_at_fpr"]) == ["0.01", "0.001", "0.0001"]
    assert report["convention"] == "default"
    assert (report["n_target"], report["n_nontarget"]) == (500, 2000)
    assert type(report["n_target"]) is int
    assert report["intervals"] == {}
    assert set(report["notes"]) == {"tpr_at_fpr.0.0001"}
    assert report["notes"]["tpr_at_fpr.0.0001"].startswith(
        "not resolved: 2,000 nontarget trials, but at least 10,000"
    )


def test_infinite_and_undefined_values_have_a_note():
    report = json.loads(to_json(evaluate([-np.inf, 1.0], [0.0, -np.inf]).to_dict()))
    assert report["cllr"] == report["calibration_loss"] == "inf"
    assert report["d_sys"] is None
    assert {"cllr", "calibration_loss", "d_sys"} <= set(report["notes"])
    for infinite in (([-np.inf, 1.0], [0.0]), ([1.0], [0.0, np.inf])):
        assert (
            "a target trial has a score of -inf, or a nontarget trial +inf"
            in evaluate(*infinite).notes["cllr"]
        )
    everything = json.dumps(report)
    assert "NaN" not in everything
    assert "Infinity" not in everything


def test_probabilities_are_reported_and_hard_decisions_are_not():
    assert "all scores are between 0 and 1" in evaluate([0.5, 1.0], [0.0, 0.5]).notes["cllr"]
    assert "cllr" not in evaluate([0.0, 1.0], [0.0, 1.0]).notes
    assert "cllr" not in evaluate([0.5, 2.0], [0.0, 0.5]).notes


def test_the_result_is_immutable_and_has_flat_names(scores):
    result = evaluate(*scores)
    with pytest.raises(FrozenInstanceError):
        result.cllr = 0.0
    values = result.values()
    assert values["eer.kaldi"] == result.eer["kaldi"]
    assert values["zebra.individual"] == result.zebra.individual
    assert values["tpr_at_fpr.0.01"] == result.tpr_at_fpr["0.01"].value
    assert all(isinstance(value, float) for value in values.values())
    assert Metrics()(sort_scores(*scores)) == values


@given(classes, st.randoms(use_true_random=False))
def test_the_order_of_trials_changes_nothing(both, random):
    values = evaluate(*both).values()
    again = evaluate(*(random.sample(side, len(side)) for side in both)).values()
    assert again == pytest.approx(values, rel=1e-12, nan_ok=True)


@given(classes)
def test_increasing_maps_change_no_rank_metric(both):
    values = evaluate(*both).values()
    rank = {score: place for place, score in enumerate(sorted({*both[0], *both[1]}))}
    mapped = evaluate(*([rank[score] ** 3 - 5.0 for score in side] for side in both)).values()
    kept = [name for name in values if name.startswith(ORDER)]
    assert set(ORDER) == {next(start for start in ORDER if name.startswith(start)) for name in kept}
    assert set(values) - set(kept) == NOT_OF_THE_ORDER
    assert {name: mapped[name] for name in kept} == {name: values[name] for name in kept}


@given(
    classes,
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
    st.sampled_from(sorted(CONVENTIONS)),
)
def test_weights_equal_repetition(both, numbers, way):
    weights = [np.array([1, *numbers[1:]][: len(side)]) for side in both]
    weighted = evaluate(
        sort_scores(*both, target_weights=weights[0], nontarget_weights=weights[1]), convention=way
    )
    repeated = evaluate(
        *(np.repeat(side, one) for side, one in zip(both, weights, strict=True)), convention=way
    )
    assert weighted.values() == pytest.approx(repeated.values(), rel=1e-12, abs=1e-12, nan_ok=True)


def test_the_threshold_belongs_to_the_reported_rate(scores):
    methods = {"vpc2022": "kaldi", "vpc2024": "speechbrain"}
    for convention in CONVENTIONS:
        rounded = [side.astype(np.float32) for side in scores] if convention in methods else scores
        expected = equal_error(
            sort_scores(*rounded), method=methods.get(convention, "rocch")
        ).threshold
        assert evaluate(*scores, convention=convention).threshold_at_eer == expected


def test_underflow_is_infinite_only_by_convention():
    target, nontarget = [-800.0, 3.0], [0.0]
    assert evaluate(target, nontarget).cllr == pytest.approx(
        (800 / np.log(2) + np.log2(1 + np.exp(-3))) / 4 + 0.5
    )
    found = evaluate(target, nontarget, convention="vpc2024")
    assert found.cllr == np.inf
    assert "underflows" in found.notes["cllr"]


def test_fractional_weights_need_the_default_convention():
    scores = sort_scores([1.0, 2.0], [0.0], target_weights=[0.5, 1.0])
    assert evaluate(scores).n_target == 1.5
    with pytest.raises(DataError, match="whole numbers as weights"):
        evaluate(scores, convention="zebra-2020")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"convention": "zebra"},
            "one of the conventions default, zebra-2020, vpc2022, vpc2024, bosaris, got 'zebra'",
        ),
        ({"priors": ["x"]}, "priors between 0 and 1, got 'x'"),
        ({"priors": [1.5]}, "priors between 0 and 1, got 1.5"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(DataError, match=words):
        evaluate([1.0], [0.0], **options)


NATURAL = np.random.default_rng(5).normal(2, 2, 300), np.random.default_rng(6).normal(-2, 2, 600)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda llr: llr, None),
        (np.exp, "all scores are above 0"),
        (lambda llr: 1 / (1 + np.exp(-llr)), "all scores are between 0 and 1"),
        (lambda llr: 100 / (1 + np.exp(-llr)), "all scores are above 0"),
        (lambda llr: llr - 30, "all scores are below 0"),
        (lambda llr: np.tanh(llr / 10), "not calibrated LLRs"),
        (lambda llr: 20 * llr, "not calibrated LLRs"),
    ],
)
def test_uncalibrated_scores_are_reported_by_every_function_that_needs_llrs(change, words, caplog):
    given = [change(side) for side in NATURAL]
    for metric in (cllr, partial(ece, prior=0.1), partial(act_dcf, p_target=0.5)):
        caplog.clear()
        metric(*given)
        assert (words or "") in caplog.text
        assert len(caplog.records) == (words is not None)
        metric(sort_scores(*given))  # as it is called for each resample
        assert len(caplog.records) == (words is not None)
    notes = evaluate(*given).notes
    assert ("cllr" in notes) == (words is not None)
    assert (words or "") in notes.get("cllr", "")


def test_ratios_of_another_base_are_evaluated_as_natural_ones():
    given = [side / np.log(10) for side in NATURAL]
    natural, decimal = evaluate(*NATURAL), evaluate(*given, llr_base=10)
    assert decimal.cllr == pytest.approx(natural.cllr, rel=1e-12)
    assert decimal.act_dcf["0.01"] == natural.act_dcf["0.01"]
    with pytest.raises(DataError, match="a base of log-likelihood ratios above 1, got 0"):
        evaluate(*given, llr_base=0)


def crossed(n_models, offset, seed=0):
    """40 tests of each of some speakers against all of them; targets are 4 higher, tests have an offset each."""
    rng = np.random.default_rng(seed)
    tests = np.repeat(np.arange(n_models), 40)
    truth = tests[:, None] == np.arange(n_models)
    values = (
        rng.normal(size=truth.shape) + 4.0 * truth + offset * rng.normal(size=len(tests))[:, None]
    )
    segments, models = np.divmod(np.arange(truth.size), n_models)
    ids = [f"m{number:03d}" for number in models], [f"t{number:05d}" for number in segments]
    return Scores.from_ids(*ids, values.ravel()), Key.from_ids(*ids, truth.ravel())


def test_scores_with_an_offset_for_each_test_are_detected():
    scores, key = crossed(20, 30.0)
    note = evaluate(scores, key).notes["identification"]
    values = scores.values.reshape(-1, 20)  # the tables are in this order
    right = np.mean(values.argmax(axis=1) == np.repeat(np.arange(20), 40))
    assert f"highest in {100 * right:.1f} % of tests (chance 5.0 %)" in note
    assert right > 0.9
    assert float(note.split()[1]) > 40
    most = key.subset(np.random.default_rng(0).random(len(key)) < 0.98)  # nearly a full cross
    assert "identification" in evaluate(scores, most).notes
    # not a full cross: two models for each test
    few = key.subset((key.segments % 7 == key.models) | key.is_target)
    assert "identification" not in evaluate(scores, few).notes
    swapped = Key(key.segment_ids, key.model_ids, key.segments, key.models, key.is_target)
    turned = Scores(
        scores.segment_ids, scores.model_ids, scores.segments, scores.models, scores.values
    )
    assert "identification" not in evaluate(turned, swapped).notes  # each test has 40 target trials
