"""Careless arguments of Python functions: each is refused, or said in one line, where it gave a plausible number."""

import numpy as np
import pytest

import evaluation as ev
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError

MODELS, SEGMENTS = ["a", "a", "b", "b"], ["s", "t", "s", "t"]
GOOD = [True, False, False, True]
RNG = np.random.default_rng(0)
TARGET, NONTARGET = RNG.normal(3, 1, 50), RNG.normal(0, 1, 80)
SPEAKERS = [f"p{number:02d}" for number in range(12)]
PAIRS = [(model, segment) for model in SPEAKERS for segment in SPEAKERS]
KEY = ev.Key.from_ids(*zip(*PAIRS, strict=True), [model == segment for model, segment in PAIRS])
VALUES = RNG.normal(0, 1, len(PAIRS)) + 4 * KEY.is_target


def scores(values):
    return ev.Scores.from_ids(*zip(*PAIRS, strict=True), values)


@pytest.mark.parametrize("other", [np.nan, 2, 0.5, -0.5, "perhaps", None])
@pytest.mark.parametrize("given", [ev.Key.from_ids, lambda *columns: ev.Key(*KEY4[:4], columns[2])])
def test_unknown_labels_of_a_key_are_refused(given, other):
    with pytest.raises(DataError, match="row 2: expected target or nontarget, got"):
        given(MODELS, SEGMENTS, [1, 0, other, 1])


KEY4 = (
    np.array(["a", "b"], object),
    np.array(["s", "t"], object),
    np.array([0, 0, 1, 1]),
    np.array([0, 1, 0, 1]),
)


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 0, 1],
        [1, -1, -1, 1],
        ["target", "nontarget", "nontarget", "target"],
        ["True", "False", "False", "True"],
        [1.0, 0.0, 0.0, 1.0],
    ],
)
def test_labels_of_a_key_mean_the_same_as_in_files(labels):
    assert ev.Key.from_ids(MODELS, SEGMENTS, labels).is_target.tolist() == GOOD


METRICS = {
    "eer": ev.eer,
    "auc": ev.auc,
    "zebra": ev.zebra,
    "min_cllr": ev.min_cllr,
    "cllr": ev.cllr,
    "d_sys": ev.d_sys,
    "min_dcf": lambda *given: ev.min_dcf(*given, p_target=0.1),
    "tpr_at_fpr": lambda *given: ev.tpr_at_fpr(*given, fpr=0.1),
}


@pytest.mark.parametrize("metric", [*METRICS.values(), ev.pav_llrs, ev.train_affine])
def test_functions_of_target_and_nontarget_scores_accept_scores_and_key(metric):
    given = scores(VALUES), KEY
    found, expected = metric(*given), metric(*ev.split_scores(*given))
    np.testing.assert_equal(found, expected)


PLOTS = (ev.plot_det, ev.plot_roc, ev.plot_histogram, ev.plot_ece, ev.plot_ape, ev.plot_zebra)


@pytest.mark.parametrize("plot", PLOTS)
def test_plots_accept_scores_and_key_and_names(plot):
    def lines(figure):
        return [line.get_xydata().tolist() for line in figure.axes[0].lines]

    given = scores(VALUES)
    for name, figure in (("scores", plot(given, KEY)), ("mine", plot({"mine": given}, KEY))):
        expected = plot([(name, *ev.split_scores(given, KEY))])
        assert lines(figure) == lines(expected)
        texts = [one.get_legend_handles_labels() or one for one in figure.axes]
        assert len(texts) == len(expected.axes)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_metrics_warn_once_of_reversed_and_equal_scores(metric, caplog):
    target, nontarget = (3 * (side - 1.5) for side in (TARGET, NONTARGET))  # log-likelihood ratios
    metric(target, nontarget)
    assert not caplog.records
    metric(-target, -nontarget)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "REVERSED?" in record.getMessage()
    caplog.clear()
    metric(0 * target, 0 * nontarget)
    assert [record.getMessage() for record in caplog.records] == [
        "all scores are equal: a broken system, not privacy"
    ]
    caplog.clear()
    metric(ev.sort_scores(-target, -nontarget))  # as it is called for each resample
    assert not caplog.records


def test_equal_scores_are_noted_in_an_evaluation():
    assert "all scores are equal" in ev.evaluate(0 * TARGET, 0 * NONTARGET).notes["scores"]


def test_linkability_and_comparison_warn_of_reversed_scores(caplog):
    ev.linkability(scores(VALUES), KEY, [12], resampling=Resampling(0))
    ev.compare({"a": scores(VALUES), "b": scores(VALUES**3)}, KEY, metrics=["cllr"], resamples=50)
    assert not caplog.records
    ev.linkability(scores(-VALUES), KEY, [12], resampling=Resampling(0))
    ev.compare({"a": scores(VALUES), "b": scores(-VALUES)}, KEY, metrics=["cllr"], resamples=50)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("REVERSED?")
    assert second.startswith("b: REVERSED?")


MASKED = np.ma.array(TARGET, mask=TARGET > 3)
MISUSES = {
    "masked target": (lambda: ev.eer(MASKED, NONTARGET), "expected target scores without a mask"),
    "masked nontarget": (
        lambda: ev.evaluate(TARGET, MASKED),
        "expected nontarget scores without a mask",
    ),
    "masked and labels": (
        lambda: ev.evaluate(MASKED, labels=TARGET > 3),
        "expected scores without a mask",
    ),
    "masked values": (
        lambda: ev.Scores.from_ids(MODELS, SEGMENTS, MASKED[:4]),
        "expected values without a mask",
    ),
    "arrays compared": (
        lambda: ev.compare({"a": VALUES, "b": VALUES}, KEY),
        "Scores and a Key, got ndarray and Key",
    ),
    "list compared": (
        lambda: ev.compare([scores(VALUES)], KEY),
        "expected Scores by name and a Key, got list and Key",
    ),
    "labels as key": (
        lambda: ev.compare({"a": scores(VALUES)}, KEY.is_target),
        "got dict and ndarray",
    ),
    "array split": (
        lambda: ev.split_scores(VALUES, KEY),
        "expected Scores and a Key, got ndarray and Key",
    ),
    "scores as key": (
        lambda: ev.split_scores(scores(VALUES), scores(VALUES)),
        "got Scores and Scores",
    ),
    "no labels": (lambda: ev.Key.from_ids(MODELS, SEGMENTS, None), "expected labels of shape"),
    "key first": (
        lambda: ev.eer(KEY, scores(VALUES)),
        "expected Scores and a Key, got Key and Scores",
    ),
    "scores and array": (
        lambda: ev.cllr(scores(VALUES), NONTARGET),
        "expected Scores and a Key, got Scores and ndarray",
    ),
    "scores alone": (
        lambda: ev.zebra(scores(VALUES)),
        "expected Scores and a Key, got Scores and NoneType",
    ),
    "text": (lambda: ev.eer(["a", "b"], NONTARGET), "expected numbers as target scores, got 'a'"),
    "mapping": (
        lambda: ev.min_cllr({"a": 1.0}, NONTARGET),
        r"expected target scores of shape \(N,\)",
    ),
    "ragged": (
        lambda: ev.auc([[1.0], [2.0, 3.0]], NONTARGET),
        r"expected target scores of shape \(N,\), got list",
    ),
    "none": (lambda: ev.eer([None], NONTARGET), "expected numbers as target scores, got None"),
    "plot of scores": (
        lambda: ev.plot_det(scores(VALUES)),
        "systems in a list, got Scores and NoneType",
    ),
    "words, no counts": (
        lambda: ev.error_rate(["a b"], {}),
        "expected ErrorCounts, as from count_errors, got list",
    ),
    "plot of a name": (
        lambda: ev.plot_roc([("a", scores(VALUES))]),
        "expected Scores and a Key, got Scores and None",
    ),
    "plot of lists": (
        lambda: ev.plot_zebra([TARGET, NONTARGET]),
        "systems in a list, got list and NoneType",
    ),
    "plot of array": (
        lambda: ev.plot_ece(scores(VALUES), TARGET),
        "expected Scores and a Key, got Scores and ndarray",
    ),
    "speakers of arrays": (
        lambda: ev.evaluate(TARGET, NONTARGET, speakers="-"),
        "a Key, got ndarray and NoneType",
    ),
    "speakers by number": (
        lambda: ev.evaluate(scores(VALUES), KEY, speakers=3),
        "a function of the id or a separator",
    ),
    "sign not there": (
        lambda: ev.compare({"a": scores(VALUES)}, KEY, speakers="/"),
        "12 segments without a speaker",
    ),
    "function of none": (
        lambda: ev.compare({"a": scores(VALUES)}, KEY, speakers=lambda _: None),
        "12 models without",
    ),
    "no system": (lambda: ev.compare({}, KEY), "at least one system to compare, got none"),
    "arrays for cosines": (
        lambda: ev.cosine_scores(np.eye(2), np.eye(2), KEY),
        "expected Embeddings, got ndarray",
    ),
    "arrays singled out": (
        lambda: ev.singling_out(np.eye(2), np.eye(2)),
        "expected Embeddings, got ndarray",
    ),
    "vectors as text": (
        lambda: ev.Embeddings.from_arrays(["a"]),
        "expected numbers as vectors, got 'a'",
    ),
    "no speaker": (
        lambda: ev.Embeddings.from_arrays(np.eye(2), speakers=["a", None]),
        "expected speakers as text",
    ),
    "no values": (lambda: ev.Scores.from_ids(MODELS, SEGMENTS, None), "expected values of shape"),
}


@pytest.mark.parametrize(("call", "text"), MISUSES.values(), ids=MISUSES)
def test_arguments_of_the_wrong_type_are_refused(call, text):
    with pytest.raises(DataError, match=text):
        call()
