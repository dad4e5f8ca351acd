"""Data frames and labels: pandas, polars and stand-ins that have no more than what is asked of them."""

from functools import partial

import numpy as np
import pytest

import evaluation as ev
from spkbase.errors import DataError

TARGET, NONTARGET = [0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0]
SCORES = [-1.0, 0.5, 0.0, 2.0, 3.0, 1.0, 4.0, -2.0]
TRUTHS = [False, True, False, True, True, False, True, False]
WORDS = ["target" if truth else "nontarget" for truth in TRUTHS]
COLUMNS = {
    "enroll": ["a", "a", "b"],
    "test": ["s", "t", "s"],
    "cos_sim": [0.5, -0.5, 0.25],
    "label": [1, 0, 0],
}
MEANT = ((1, 0), (1.0, 0.0), (2, 1))  # 0 and 1 as whole numbers and with a point, -1 and 1


class Series:
    """As little of a column as there can be."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.array(self.values)


class Frame:
    """As little of a data frame as there can be."""

    def __init__(self, columns):
        self.held = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return Series(self.held[name])


@pytest.fixture(params=["mapping", "stand-in", "pandas", "polars"])
def make_frame(request):
    """Each kind of data frame that is installed."""
    if request.param in ("pandas", "polars"):
        return pytest.importorskip(request.param).DataFrame
    return dict if request.param == "mapping" else Frame


@pytest.mark.parametrize("wrap", [list, np.array, Series])
@pytest.mark.parametrize(
    "kind", [bool, int, float, str, lambda truth: "TARGET" if truth else "nontarget"]
)
def test_labelled_scores_and_separate_classes_give_equal_results(wrap, kind):
    expected = ev.evaluate(TARGET, NONTARGET)
    labels = wrap([kind(truth) for truth in TRUTHS])
    assert ev.evaluate(wrap(SCORES), labels=labels).to_dict() == expected.to_dict()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_of_pandas_and_polars_are_accepted(library):
    make = pytest.importorskip(library).Series
    expected = ev.evaluate(TARGET, NONTARGET).to_dict()
    for labels in (TRUTHS, WORDS, list(map(int, TRUTHS))):
        assert ev.evaluate(make(SCORES), labels=make(labels)).to_dict() == expected
    assert ev.evaluate(make(TARGET), make(NONTARGET)).to_dict() == expected
    assert ev.eer(make(TARGET), make(NONTARGET)) == expected["eer"]["rocch"]


def test_a_second_argument_that_cannot_be_scores_is_taken_as_labels():
    expected = ev.evaluate(TARGET, NONTARGET).to_dict()
    assert (
        ev.evaluate(SCORES, TRUTHS).to_dict()
        == ev.evaluate(SCORES, Series(WORDS)).to_dict()
        == expected
    )
    # a few with a point; or not as many: scores
    assert ev.evaluate(TARGET, [1.0, 0.0, 0.0, 1.0]).n_nontarget == 4
    assert ev.evaluate(TARGET, [1, 0, 0]).n_nontarget == 3
    assert ev.evaluate([1, 2], [0, 1]).n_target == 2


@pytest.mark.parametrize(
    "labels", [np.array(TRUTHS * 5), *(np.array(TRUTHS * 5) * by - off for by, off in MEANT)]
)
@pytest.mark.parametrize(
    "metric", [ev.eer, ev.cllr, ev.zebra, ev.d_sys, ev.evaluate, partial(ev.min_dcf, p_target=0.5)]
)
def test_labels_given_as_scores_are_refused(metric, labels):
    """scikit-learn's order, ``metric(y_true, y_score)``, gave an EER of 0, or of 0.5 the other way round."""
    scores = np.linspace(-3.5, 3.5, 40)
    remedy = r"labels \((0|-1) and 1\).*give scores\[labels == 1\], scores\[labels == \1\]"
    with pytest.raises(DataError, match=rf"expected target scores, got 40 {remedy}"):
        metric(labels, scores)
    # truth values are taken as labels
    if labels.dtype != bool:
        with pytest.raises(DataError, match=rf"expected nontarget scores, got 40 {remedy}"):
            metric(scores, labels)
    with pytest.raises(DataError, match=rf"expected target scores, got 4 {remedy}"):
        ev.eer([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])


def test_plausible_scores_are_accepted():
    """Of as many trials of each class: decisions, a few whole numbers, and scores that are all 1."""
    decisions = [0, 1] * 20
    assert ev.eer(decisions, decisions) == 0.5
    assert ev.eer([1, 0, 1], [-1, 0, -2]) == pytest.approx(1 / 6)
    assert ev.eer(np.ones(30), np.linspace(0, 0.9, 30)) == 0.0


def test_scores_are_joined_with_their_key_by_ids():
    key = ev.Key.from_ids(["a", "a", "b"], ["s", "t", "s"], is_target=[True, False, False])
    scores = ev.Scores.from_ids(["b", "a", "a"], ["s", "t", "s"], [0.25, -0.5, 0.5])
    assert ev.evaluate(scores, labels=key).to_dict() == ev.evaluate([0.5], [-0.5, 0.25]).to_dict()
    for arguments, text in (
        ({"labels": [1, 0, 0]}, "Scores and a Key"),
        ({"labels": key, "weights": [1] * 3}, "class"),
    ):
        with pytest.raises(DataError, match=text):
            ev.evaluate(scores, **arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"target": SCORES}, "expected scores of target and of nontarget trials"),
        ({"target": SCORES, "nontarget": SCORES, "labels": TRUTHS}, "expected scores by class, or"),
        ({"target": SCORES, "labels": TRUTHS[1:]}, "a label for each of 8 scores, got 7"),
        ({"target": SCORES, "labels": [True] * 8}, "expected nontarget scores, got none"),
        (
            {"target": SCORES, "labels": SCORES},
            "row 0, 1, 3, ...: .* got -1.0, 0.5, 2.0, ... .*exchanged",
        ),
        ({"target": SCORES, "labels": [*WORDS[:-1], "perhaps"]}, "row 7: .*'perhaps'"),
        ({"target": SCORES, "labels": [1, 0, 2, 1, 1, 0, 1, None]}, "row 2, 7: .*2, None"),
        ({"target": [*SCORES[:-1], np.nan], "labels": TRUTHS}, "row 7: .*1 NaN or missing among 8"),
        ({"target": [*SCORES[:-1], None], "labels": TRUTHS}, "row 7: .*got None"),
        (
            {"target": [*map(str, SCORES)], "labels": TRUTHS},
            "row 0: .*numbers as scores, got .*'-1.0'",
        ),
        ({"target": TRUTHS, "labels": TRUTHS}, "got False|got np.False_"),
        ({"target": [[0.5, 1.0]], "labels": [1, 0]}, r"scores of shape \(N,\), got \(1, 2\)"),
        (
            {"target": TARGET, "nontarget": NONTARGET, "weights": [1]},
            "expected scores by class, or",
        ),
        (
            {"target": SCORES, "labels": TRUTHS, "weights": [1, 2]},
            "a label for each of 2 weights, got 8",
        ),
    ],
)
def test_mismatched_arguments_are_refused_with_a_reason(arguments, text):
    with pytest.raises(DataError, match=text):
        ev.evaluate(**arguments)


def test_series_with_different_indices_are_refused():
    """Taken by position they would give a wrong number, silently."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"score": SCORES, "label": TRUTHS})
    by_score = frame.sort_values("score")
    assert ev.evaluate(by_score["score"], labels=by_score["label"]).n_target == 4
    with pytest.raises(DataError, match="same index"):
        ev.evaluate(by_score["score"], labels=frame["label"])
    with pytest.raises(DataError, match=r"NaN or missing|numbers as scores"):
        ev.evaluate(pandas.Series([0.5, None, 1.0], dtype="Float64"), labels=[1, 0, 0])
    with pytest.raises(DataError, match="expected target or nontarget"):
        ev.evaluate(
            pandas.Series([0.5, 0.2, 1.0]),
            labels=pandas.Series([True, None, False], dtype="boolean"),
        )
    with pytest.raises(DataError, match=r"shape \(N,\), got \(8, 2\).*choose the column"):
        ev.evaluate(frame, labels=TRUTHS)
    twice = pandas.DataFrame([["a", "s", 0.5, 0.7]], columns=["enroll", "test", "score", "score"])
    with pytest.raises(DataError, match="choose the column of the data frame"):
        ev.Scores.from_frame(twice)


def test_lists_are_made_from_frames(make_frame):
    frame = make_frame(COLUMNS)
    scores, key, trials = (
        ev.Scores.from_frame(frame),
        ev.Key.from_frame(frame),
        ev.Trials.from_frame(frame),
    )
    assert (
        list(scores.pairs())
        == list(key.pairs())
        == list(trials.pairs())
        == [("a", "s"), ("a", "t"), ("b", "s")]
    )
    assert scores.values.tolist() == [0.5, -0.5, 0.25]
    assert key.is_target.tolist() == [True, False, False]
    assert ev.evaluate(scores, labels=key).eer["rocch"] == 0


def test_columns_and_types_can_be_named(make_frame):
    frame = make_frame(
        {"x": ["a", "b"], "y": [7, 8], "z": ["target", "nontarget"], "type": ["TC", "IC"]}
    )
    key = ev.Key.from_frame(frame, model="x", segment="y", label="z")
    assert list(key.pairs()) == [("a", "7"), ("b", "8")], (
        "ids of digits are numbers in a data frame"
    )
    assert key.of_types("TC").is_target.tolist() == [True]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"enroll": None, "cos_sim": None},
            "column for model and score, got test, label .name the columns: model=..., segm",
        ),
        ({"enroll": ["a", None, "b"]}, "row 1: expected ids of models as text, got None"),
        ({"enroll": ["a", "", "b"]}, "row 1: expected ids of models as text, got ''"),
        ({"enroll": [1.0, 2.0, 3.0]}, "row 0: expected ids of models as text, got 1.0"),
        ({"test": ["s", "s", "s"]}, "repeated"),
        ({"cos_sim": [0.5, float("nan"), 1.0]}, "1 score not a number .*missing='drop'"),
        ({"cos_sim": ["high", "low", "low"]}, "numbers as scores"),
        ({"cos_sim": [0.5, 1.0]}, "values of shape"),
    ],
)
def test_mismatched_frames_are_refused(change, text):
    columns = {name: column for name, column in (COLUMNS | change).items() if column is not None}
    with pytest.raises(DataError, match=text):
        ev.Scores.from_frame(Frame(columns))


PAIRS = [("a", "s"), ("a", "t"), ("b", "s"), ("b", "t")]


@pytest.mark.parametrize(
    "build",
    [
        lambda column, other: ev.Scores.from_ids(column(["a", "b"]), ["s", "t"], other([0.5, 0.7])),
        lambda column, other: ev.Scores.from_ids(column(["a", "b"]), other(["s", "t"]), [0.5, 0.7]),
        lambda column, other: ev.Key.from_ids(column(["a", "b"]), ["s", "t"], other([True, False])),
        lambda column, other: ev.Key.from_ids(
            ["a", "b"], ["s", "t"], column([True, False]), other(["x", "y"])
        ),
        lambda column, other: ev.Trials.from_ids(column(["a", "b"]), other(["s", "t"])),
    ],
)
def test_lists_of_series_in_another_order_are_refused(build):
    pandas = pytest.importorskip("pandas")
    other = partial(pandas.Series, index=[1, 0])
    assert len(build(pandas.Series, pandas.Series)) == 2
    with pytest.raises(DataError, match="with the same index"):
        build(pandas.Series, other)


@pytest.mark.parametrize(
    ("missing", "kept", "score"), [("drop", [0, 2, 3], None), ("reject", [0, 1, 2, 3], -np.inf)]
)
def test_nan_in_arrays_is_dropped_or_rejected_as_in_scores(missing, kept, score, caplog):
    values, truth = np.array([2.0, np.nan, -1.0, 0.5]), np.array([True, True, False, False])
    ids = list(zip(*PAIRS, strict=True))
    scores = ev.Scores.from_ids(*ids, values, missing=missing)
    expected = ev.evaluate(scores, ev.Key.from_ids(*ids, truth), missing=missing).values()
    caplog.clear()
    assert ev.evaluate(values, labels=truth, missing=missing).values() == expected
    assert "1 of 4 scores that are not a number (NaN)" in caplog.text
    assert ev.evaluate(values[truth], values[~truth], missing=missing).values() == expected
    weighted = ev.evaluate(values, labels=truth, weights=[1, 5, 1, 1], missing=missing)
    assert weighted.n_target == (1 if score is None else 6)
    frame = {"model": ids[0], "segment": ids[1], "score": values}
    assert len(ev.Scores.from_frame(frame, missing=missing)) == len(kept)
    with pytest.raises(DataError, match=r"ev\.evaluate and ev\.sort_scores take missing='drop'"):
        ev.evaluate(values, labels=truth)
    for call in (ev.evaluate, ev.sort_scores):
        with pytest.raises(DataError, match="expected missing to be"):
            call(values[truth], values[~truth], missing="leave")


@pytest.mark.parametrize(
    "metric", [ev.eer, ev.auc, ev.cllr, ev.min_cllr, ev.zebra, ev.d_sys, ev.pav_llrs]
)
def test_suggested_remedies_name_arguments_that_the_metric_accepts(metric):
    ids = list(zip(*PAIRS, strict=True))
    key = ev.Key.from_ids(*ids, [True, False, False, True])
    scores = ev.Scores.from_ids(*ids, [2.0, -1.0, 0.0, 1.0]).subset(np.arange(3))
    with pytest.raises(
        DataError, match=r"ev.sort_scores\(scores, key, missing='drop'\) in the place of both"
    ):
        metric(scores, key)
    metric(ev.sort_scores(scores, key, missing="drop"))


@pytest.mark.parametrize("function", [ev.linkability, ev.evaluate, ev.train_affine])
def test_functions_that_suggest_missing_accept_it(function):
    ids = zip(*[(model, segment) for model in "abcd" for segment in "stuv"], strict=True)
    models, segments = map(list, ids)
    truth = np.array(
        [
            "abcd".index(model) == "stuv".index(segment)
            for model, segment in zip(models, segments, strict=True)
        ]
    )
    values = np.random.default_rng(0).standard_normal(16) + truth
    key, scores = (
        ev.Key.from_ids(models, segments, truth),
        ev.Scores.from_ids(models, segments, values),
    )
    with pytest.raises(DataError, match="missing='drop'"):
        function(scores.subset(np.arange(14)), key)
    function(scores.subset(np.arange(14)), key, missing="drop")
