"""Unweighted average recall, against scikit-learn's `recall_score` and resamples by copying."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import recall_score

from evaluation.uncertainty.resampling import Resampling
from evaluation.utility.recalls import (
    CONVENTIONS,
    average_recall,
    confusions,
    recall_differences,
    uar,
)
from spkbase.errors import DataError

CLASSES = ["ang", "hap", "neu", "sad"]


def example(seed, n_speakers=6, n_each=9):
    rng = np.random.default_rng(seed)
    truth, predicted, speakers = {}, {}, {}
    for speaker in range(n_speakers):
        for number in range(n_each):
            one = f"s{speaker}-{number}"
            truth[one], speakers[one] = CLASSES[rng.integers(4)], f"s{speaker}"
            predicted[one] = truth[one] if rng.random() < 0.5 else CLASSES[rng.integers(4)]
    return truth, predicted, speakers


def sklearn_uar(truth, predicted, fold_of, *, only_true):
    values = []
    for fold in sorted(set(fold_of.values())):
        mine = [one for one in truth if fold_of[one] == fold]
        labels = sorted({truth[one] for one in mine}) if only_true else None
        with warnings.catch_warnings():
            # scikit-learn warns of classes that are predicted and never true
            warnings.simplefilter("ignore")
            found = recall_score(
                [truth[one] for one in mine],
                [predicted[one] for one in mine],
                labels=labels,
                average="macro",
            )
        values.append(found if only_true else round(100 * found, 3) / 100)
    return float(np.mean(values))


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_every_convention_equals_scikit_learn(seed):
    truth, predicted, speakers = example(seed)
    folds = {f"s{n}": f"f{n % 3}" for n in range(6)}
    for by in (None, folds):
        of = speakers if by is None else {one: by[speaker] for one, speaker in speakers.items()}
        for convention, only_true in (("default", True), ("vpc2024", False)):
            found = average_recall(
                confusions(truth, predicted, speakers, folds=by, convention=convention),
                Resampling(0),
            )
            assert found.interval.value == pytest.approx(
                sklearn_uar(truth, predicted, of, only_true=only_true)
            )
            assert len(found.folds) == (6 if by is None else 3)
    pooled = average_recall(
        confusions(truth, predicted, speakers, convention="pooled"), Resampling(0)
    )
    expected = recall_score(
        list(truth.values()), [predicted[one] for one in truth], average="macro"
    )
    assert pooled.interval.value == pytest.approx(expected)


def test_conventions_differ_if_a_fold_lacks_a_class():
    truth = {"a1": "sad", "a2": "hap", "b1": "sad", "b2": "sad"}
    heard = {"a1": "sad", "a2": "hap", "b1": "sad", "b2": "hap"}
    speakers = {one: one[0] for one in truth}
    values = {
        convention: average_recall(
            confusions(truth, heard, speakers, convention=convention), Resampling(0)
        )
        for convention in CONVENTIONS
    }
    assert values["default"].interval.value == (1 + 1 / 2) / 2
    # hap was predicted for b, who never has this label
    assert values["vpc2024"].interval.value == (1 + 1 / 4) / 2
    assert values["pooled"].interval.value == pytest.approx((2 / 3 + 1) / 2)
    assert values["default"].confusions == {
        "hap": {"hap": 1, "sad": 0},
        "sad": {"hap": 1, "sad": 2},
    }
    assert values["default"].recalls == {"hap": 1.0, "sad": pytest.approx(2 / 3)}
    assert values["default"].chance == 0.5


def test_the_convention_of_the_challenge_rounds_each_fold():
    truth = {f"a{n}": "sad" for n in range(3)}
    heard = {"a0": "sad", "a1": "sad", "a2": "sad"} | {"a2": "hap"}
    found = average_recall(
        confusions(truth, heard, dict.fromkeys(truth, "a"), convention="vpc2024"), Resampling(0)
    )
    # (2/3 + 0) / 2 to 3 decimals of percent
    assert found.interval.value == pytest.approx(0.33333, abs=1e-12)


@pytest.mark.parametrize("convention", ["default", "pooled"])
@pytest.mark.parametrize("with_folds", [False, True])
def test_resamples_equal_copied_speakers(convention, with_folds):
    truth, predicted, speakers = example(7)
    folds = {f"s{n}": f"f{n % 3}" for n in range(6)} if with_folds else None
    counted = confusions(truth, predicted, speakers, folds=folds, convention=convention)
    for weights in Resampling(20, 1).weights(6):
        rows = {}
        share = {}
        for place, times in enumerate(weights.astype(int)):
            speaker = f"s{place}"
            fold = "all" if convention == "pooled" else folds[speaker] if folds else speaker
            size = 6 if convention == "pooled" else 2 if folds else 1
            share[fold] = share.get(fold, 0) + times / size
            for _ in range(times):
                mine = [one for one in truth if speakers[one] == speaker]
                rows.setdefault(fold, []).extend((truth[one], predicted[one]) for one in mine)
        recalls = {}
        for fold, pairs in rows.items():
            true, heard = zip(*pairs, strict=True)
            recalls[fold] = recall_score(true, heard, labels=sorted(set(true)), average="macro")
        expected = sum(share[fold] * recalls[fold] for fold in recalls) / sum(
            share[fold] for fold in recalls
        )
        assert uar(counted, weights[None])[0] == pytest.approx(expected)


def test_recall_differences_have_intervals():
    truth, predicted, speakers = example(3)
    first, best = (confusions(truth, heard, speakers) for heard in (predicted, truth))
    found = recall_differences([first, best])[0]
    assert found.value == pytest.approx(1 - average_recall(first).interval.value)
    assert 0 < found.low < found.value < found.high
    fewer = {one: label for one, label in truth.items() if one != "s0-0"}
    with pytest.raises(DataError, match="to share utterances"):
        recall_differences([first, confusions(fewer, fewer, speakers)])
    with pytest.raises(DataError, match="to share speakers"):
        recall_differences([first, confusions(truth, truth, speakers, convention="pooled")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted": {}}, "4 utterances missing: 'a1', 'a2', 'b1', ..."),
        ({"predicted": {"z": "sad"}, "missing": "drop"}, "no utterance has both"),
        ({"speakers": {"a1": "a"}}, "3 of 4 utterances without a speaker"),
        ({"folds": {"a": "1"}}, "1 speaker without a fold: 'b'"),
        ({"convention": "vpc2025"}, "expected one of"),
    ],
)
def test_mismatched_lists_are_refused(change, message):
    truth = dict.fromkeys(("a1", "a2", "b1", "b2"), "sad")
    arguments = {
        "truth": truth,
        "predicted": truth,
        "speakers": {one: one[0] for one in truth},
    } | change
    with pytest.raises(DataError) as caught:
        confusions(**arguments)
    assert message in str(caught.value)
