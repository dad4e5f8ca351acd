"""One calling convention: each metric, plot and comparison takes trials in every form, with the same numbers."""

import pickle
from functools import partial

import numpy as np
import pytest

import evaluation as ev
from evaluation.metrics import cllr, ece, equal_error, min_ece, sort_scores
from spkbase.errors import DataError

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
TRUTH = RNG.random(300) < 0.3
VALUES = np.round(RNG.normal(size=300) + 2 * TRUTH, 1)  # with ties
OTHER = VALUES + RNG.normal(size=300)
SPEAKERS = np.array([f"s{number % 15:02d}" for number in range(300)])
IDS = [f"m{number // 20}" for number in range(300)], [f"u{number % 20}" for number in range(300)]
KEY = ev.Key.from_ids(*IDS, TRUTH)
FRAME = pandas.DataFrame(
    {"model": IDS[0], "segment": IDS[1], "a": VALUES, "b": OTHER, "label": TRUTH.astype(int)}
)

METRICS = {
    "eer": ev.eer,
    "auc": ev.auc,
    "cllr": ev.cllr,
    "min_cllr": ev.min_cllr,
    "d_sys": ev.d_sys,
    "zebra": ev.zebra,
    "min_dcf": partial(ev.min_dcf, p_target=0.05),
    "act_dcf": partial(ev.act_dcf, p_target=0.05),
    "tpr_at_fpr": partial(ev.tpr_at_fpr, fpr=0.1),
    "ece": partial(ece, prior=0.1),
    "min_ece": partial(min_ece, prior=0.1),
    "pav_llrs": ev.pav_llrs,
    "dev_pav": ev.dev_pav,
    "elub": ev.elub,
    "invariance_bounds": ev.invariance_bounds,
    "train_kernel": lambda *given, **named: ev.train_kernel(*given, **named)([0.0, 1.0]),
    "det_curve": ev.det_curve,
    "roc_curve": ev.roc_curve,
    "train_affine": ev.train_affine,
    "sort_scores": lambda *given, **named: vars(ev.sort_scores(*given, **named)),
    "evaluate": lambda *given, **named: ev.evaluate(*given, **named).values(),
}
FORMS = {
    "labels of 0 and 1": ((VALUES,), {"labels": TRUTH.astype(int)}),
    "labels of text": ((VALUES,), {"labels": np.where(TRUTH, "target", "nontarget")}),
    "truth values second": ((VALUES, TRUTH), {}),
    "scores and key": ((ev.Scores.from_ids(*IDS, VALUES), KEY), {}),
    "key as labels": ((ev.Scores.from_ids(*IDS, VALUES),), {"labels": KEY}),
    "columns": ((FRAME["a"],), {"labels": FRAME["label"]}),
    "data frame": ((FRAME[["a", "label"]].rename(columns={"a": "score"}),), {}),
    "mapping": (({"score": VALUES, "label": TRUTH},), {}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_equal_for_every_form_of_input(name, form):
    given, named = FORMS[form]
    found = METRICS[name](*given, **named)
    expected = METRICS[name](VALUES[TRUTH], VALUES[~TRUTH])
    np.testing.assert_equal(found, expected)


PLOTS = (
    *(ev.plot_det, ev.plot_roc, ev.plot_histogram, ev.plot_ece, ev.plot_ape, ev.plot_zebra),
    ev.plot_tippett,
)


@pytest.mark.parametrize("plot", PLOTS)
def test_plots_are_equal_for_every_form_of_input(plot):
    def lines(*given, **named):
        return [line.get_xydata().tolist() for line in plot(*given, **named).axes[0].lines]

    expected = lines([("scores", VALUES[TRUTH], VALUES[~TRUTH])])
    assert lines({"scores": (VALUES[TRUTH], VALUES[~TRUTH])}) == expected
    classes = {"target": VALUES[TRUTH], "nontarget": VALUES[~TRUTH]}
    assert lines({"scores": classes}) == expected
    assert lines({"scores": list(classes.values())}) == expected
    assert lines(VALUES, labels=TRUTH.astype(int)) == expected
    assert lines({"scores": VALUES}, TRUTH) == expected
    assert lines(FORMS["data frame"][0][0]) == expected
    assert lines({"scores": FRAME["a"]}, labels=FRAME["label"]) == expected


def test_comparisons_are_equal_for_every_form_of_input():
    settings = {"resamples": 50, "metrics": ["eer", "min_dcf.0.02", "cllr"]}
    by_row = [
        ev.compare({"a": VALUES, "b": OTHER}, labels=TRUTH, speakers=SPEAKERS, **settings),
        ev.compare({"a": VALUES, "b": OTHER}, TRUTH, speakers=SPEAKERS, **settings),
        ev.compare(
            FRAME.drop(columns=["model", "segment"]).assign(who=SPEAKERS),
            scores=["a", "b"],
            speakers="who",
            **settings,
        ),
    ]
    for other in by_row[1:]:
        np.testing.assert_equal(other.to_columns(), by_row[0].to_columns())
    assert list(by_row[0].systems["a"]) == ["eer.rocch", "min_dcf.0.02", "cllr"]
    assert by_row[0].systems["b"]["eer.rocch"].value == ev.eer(OTHER, labels=TRUTH)
    maps = {name: f"p{int(name[1:]) % 15}" for name in [*IDS[0], *IDS[1]]}
    square = FRAME[[int(s[1:]) < 15 for s in IDS[1]]]
    square = square.assign(
        label=[m[1:] == s[1:] for m, s in zip(square.model, square.segment, strict=True)]
    )
    key = ev.Key.from_frame(square)
    found = ev.compare(square, scores=["a", "b"], speakers=maps, **settings)
    expected = ev.compare(
        {name: ev.Scores.from_frame(square, score=name) for name in ("a", "b")},
        key,
        speakers=maps,
        **settings,
    )
    np.testing.assert_equal(found.to_columns(), expected.to_columns())


MISUSE = {
    "both": (lambda: ev.eer([1.0, 2.0], [0.0], labels=[1, 0]), "scores by class, or"),
    "one class alone": (lambda: ev.eer([1.0, 2.0]), "target and of nontarget"),
    "another length": (lambda: ev.eer([1.0, 2.0], labels=[1, 0, 0]), "label for each"),
    "unknown labels": (lambda: ev.cllr([1.0, 2.0], labels=["x", "y"]), "target or nontarget"),
    "frame without labels": (lambda: ev.eer(FRAME[["a"]]), "column of scores and one of labels"),
    "sorted with labels": (
        lambda: ev.eer(sort_scores([1.0], [0.0]), labels=[1, 0]),
        "expected scores of target",
    ),
    "arrays without speakers": (
        lambda: ev.compare({"a": VALUES}, TRUTH),
        "trials without ids need the speaker",
    ),
    "frame without scores": (lambda: ev.compare(FRAME), "expected columns of scores out of"),
    "unknown column": (
        lambda: ev.compare(FRAME, scores=["a"], label="truth", speakers="-"),
        "no column 'truth' for label",
    ),
    "unknown metric": (
        lambda: ev.compare({"a": VALUES}, TRUTH, speakers=SPEAKERS, metrics=["min_dcf.2"]),
        "no metric 'min_dcf.2'",
    ),
}


@pytest.mark.parametrize("case", MISUSE)
def test_incompatible_inputs_are_refused(case):
    call, says = MISUSE[case]
    with pytest.raises(DataError, match=says):
        call()


def test_points_have_their_threshold():
    """The rates of a point are those of its threshold, and the least cost is found by trying all."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.random(60) < 0.4
        values = np.round(rng.normal(size=60) + truth, 1)
        target, nontarget = values[truth], values[~truth]
        for prior in (0.01, 0.3, 0.5, 0.9):
            point = ev.min_dcf(values, labels=truth, p_target=prior)
            costs = []
            for threshold in [*values, np.inf]:
                missed = np.mean(target < threshold)
                accepted = np.mean(nontarget >= threshold)
                costs.append(prior * missed + (1 - prior) * accepted)
            assert point == pytest.approx(min(costs) / min(prior, 1 - prior))
            assert point.p_miss == pytest.approx(np.mean(target < point.threshold))
            assert point.p_fa == pytest.approx(np.mean(nontarget >= point.threshold))
        for method in ("rocch", "kaldi", "speechbrain"):
            point = ev.eer(values, labels=truth, method=method)
            expected = equal_error(sort_scores(target, nontarget), method=method)
            assert (point, point.threshold) == (expected.rate, expected.threshold)
    copy = pickle.loads(pickle.dumps(point))
    assert (copy, copy.threshold) == (point, point.threshold)


def test_curves_equal_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    found = ev.roc_curve(VALUES, labels=TRUTH)
    expected = metrics.roc_curve(TRUTH, VALUES, drop_intermediate=False)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-12)
    curve = ev.det_curve(VALUES, labels=TRUTH)
    fpr, fnr, thresholds = metrics.det_curve(TRUTH, VALUES)
    rows = np.searchsorted(curve.thresholds, thresholds[np.isfinite(thresholds)])
    np.testing.assert_allclose(curve.fpr[rows], fpr[: len(rows)], atol=1e-12)
    np.testing.assert_allclose(curve.fnr[rows], fnr[: len(rows)], atol=1e-12)


def test_evaluations_are_read_by_number_and_by_name():
    result = ev.evaluate(VALUES, labels=TRUTH)
    assert float(result.eer) == result.eer.rocch == result["eer.rocch"] == result.eer["rocch"]
    assert result.min_dcf[0.01] == result.min_dcf["0.01"] == result["min_dcf.0.01"]
    assert result["cllr"] == result.cllr == cllr(VALUES[TRUTH], VALUES[~TRUTH])
    assert result["zebra.population"] == result.zebra.population
    assert dict(result["min_dcf"]) == dict(result.min_dcf)
    assert pickle.loads(pickle.dumps(result)).eer.rocch == result.eer.rocch
    with pytest.raises(KeyError, match=r"expected one of 0.001, .*got 0.02"):
        result.min_dcf[0.02]
    with pytest.raises(KeyError, match=r"no metric 'eer.x'"):
        result["eer.x"]
    with pytest.raises(AttributeError, match="expected one of rocch"):
        getattr(result.eer, "brentq")  # noqa: B009
    with pytest.raises(TypeError, match="choose one of"):
        float(result.min_dcf)


def test_the_interface_requested_by_users_works():
    """What they wrote down before they knew ours, as far as it is about scores."""
    frame = FRAME.drop(columns=["model", "segment"]).assign(speaker=SPEAKERS)
    assert ev.eer(VALUES, labels=TRUTH) == ev.eer(VALUES[TRUTH], VALUES[~TRUTH])
    assert np.isfinite(ev.min_dcf(VALUES, labels=TRUTH, p_target=0.01).threshold)
    compared = ev.compare(frame, scores=["a", "b"], label="label", speakers="speaker", resamples=50)
    assert r"\begin{table}" in compared.to_latex()
    ids = (
        [f"id{m}/a" for m in range(6) for _ in range(12)],
        [f"id{s}/b{k}" for _ in range(6) for s in range(6) for k in range(2)],
    )
    truth = [m[:3] == s[:3] for m, s in zip(*ids, strict=True)]
    scores = ev.Scores.from_ids(*ids, np.random.default_rng(3).normal(size=72) + truth)
    key = ev.Key.from_ids(*ids, truth)
    utt2dur = {name: 2.0 + (7 * row) % 11 for row, name in enumerate(sorted({*ids[0], *ids[1]}))}
    aware = ev.calibrate(scores, key, speakers="/", quality={"duration": utt2dur}, folds=3)
    fused = ev.fuse({"a": scores, "b": aware.scores}, key, speakers="/", folds=3)
    assert len(fused.scores) == len(aware.scores) == 72
    people = ev.per_speaker(scores, key, speakers="/")
    assert people.to_dataframe().sort_values("eer").speaker.iloc[0] in {f"id{m}" for m in range(6)}


@pytest.mark.parametrize("role", ["score", "label"])
@pytest.mark.parametrize(
    "function", [ev.eer, ev.evaluate, ev.det_curve, ev.plot_det, partial(ev.min_dcf, p_target=0.5)]
)
def test_data_frames_with_two_columns_of_a_kind_are_refused(function, role):
    frame = pandas.DataFrame({"score": VALUES, "label": TRUTH})
    frame[{"score": "llr", "label": "target"}[role]] = frame[role]
    with pytest.raises(DataError, match=f"expected one column for {role}"):
        function(frame)


def test_comparisons_refuse_data_frames_with_two_columns_of_labels():
    frame = FRAME.assign(target=FRAME["label"])
    with pytest.raises(DataError, match="expected one column for label, got target and label"):
        ev.compare(frame, scores=["a", "b"], resamples=2)
