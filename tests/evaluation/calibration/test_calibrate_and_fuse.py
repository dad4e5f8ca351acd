"""`calibrate` and `fuse`: numbers against scikit-learn and closed forms, folds, quality measures, honest mistakes."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

import evaluation as ev
from evaluation.calibration import cross_validate_affine, load_affine, read_quality, train_affine
from evaluation.trials import find_rows, find_speakers
from spkbase.errors import DataError

pandas = pytest.importorskip("pandas")

SPEAKERS = [f"s{number:02d}" for number in range(12)]
IDS = (
    [f"{model}/0" for model in SPEAKERS for _ in range(36)],
    [f"{speaker}/{take}" for _ in SPEAKERS for speaker in SPEAKERS for take in (1, 2, 3)],
)
TRUTH = np.array([model[:3] == segment[:3] for model, segment in zip(*IDS, strict=True)])
RNG = np.random.default_rng(0)
SECONDS = {name: float(np.exp(RNG.normal())) for name in sorted({*IDS[0], *IDS[1]})}
SHORTER = np.log([min(SECONDS[one], SECONDS[other]) for one, other in zip(*IDS, strict=True)])
A = 0.4 + 0.1 * (RNG.normal(size=len(TRUTH)) + 1.5 * TRUTH - SHORTER)
B = 5 * RNG.normal(size=len(TRUTH)) + 4 * TRUTH
KEY = ev.Key.from_ids(*IDS, TRUTH)
SCORES = {"a": ev.Scores.from_ids(*IDS, A), "b": ev.Scores.from_ids(*IDS, B)}
OWNERS = tuple(np.array([name[:3] for name in side]) for side in IDS)
FRAME = pandas.DataFrame({"model": IDS[0], "segment": IDS[1], "a": A, "b": B, "same": TRUTH})
QUALITY = {"seconds": SECONDS}
LOG = ["log(min seconds)"]


def shuffled(trials, seed=1):
    return trials.subset(np.random.default_rng(seed).permutation(len(trials)))


# numbers


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.8])
@pytest.mark.parametrize("columns", [(), LOG, ("model seconds", "max seconds")])
def test_weights_equal_those_of_scikit_learn(prior, columns):
    linear = pytest.importorskip("sklearn.linear_model")
    quality = QUALITY if columns else None
    fused = ev.fuse(SCORES, KEY, folds=0, prior=prior, quality=quality, quality_columns=columns)
    sides = [np.array([SECONDS[name] for name in side]) for side in IDS]
    known = {
        "log(min seconds)": SHORTER,
        "model seconds": sides[0],
        "max seconds": np.maximum(*sides),
    }
    rows = np.column_stack([A, B, *(known[column] for column in columns)])
    shares = np.where(TRUTH, prior / TRUTH.sum(), (1 - prior) / (~TRUTH).sum())
    peer = linear.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    spread = rows.std(axis=0)
    peer.fit(rows / spread, TRUTH, sample_weight=shares * len(rows))
    np.testing.assert_allclose(fused.affine.weights, peer.coef_[0] / spread, rtol=1e-6)
    assert fused.affine.offset == pytest.approx(peer.intercept_[0] - logit(prior), rel=1e-5)
    assert fused.affine.names == ("a", "b", *columns)


def test_gaussian_scores_that_depend_on_the_duration_have_the_closed_form():
    """Scores N(d + q, 1) and N(q, 1): the ratio is d (s - q) - d d / 2, which needs the measure q."""
    rng = np.random.default_rng(3)
    n, distance, slope = 60_000, 2.0, 1.5
    truth = np.arange(n) % 3 == 0
    ids = [f"m{row}" for row in range(n)], [f"t{row}" for row in range(n)]
    measure = rng.normal(size=n)
    values = rng.normal(size=n) + distance * truth + slope * measure
    key = ev.Key.from_ids(*ids, truth)
    quality = {"noise": dict(zip(ids[1], measure.tolist(), strict=True))}
    found = ev.calibrate(
        ev.Scores.from_ids(*ids, values),
        key,
        folds=0,
        quality=quality,
        quality_columns=["segment noise"],
    )
    np.testing.assert_allclose(found.affine.weights, [distance, -distance * slope], rtol=0.03)
    assert found.affine.offset == pytest.approx(-(distance**2) / 2, rel=0.03)
    without = ev.calibrate(values, labels=truth, folds=0)
    loss = ev.cllr(without.affine(values), labels=truth)
    expected = ev.cllr(distance * (values - slope * measure) - distance**2 / 2, labels=truth)
    assert expected < loss - 0.1


def test_a_fusion_without_folds_is_train_affine():
    rows = np.column_stack([A, B])
    expected = train_affine(rows[TRUTH], rows[~TRUTH], names=("a", "b"))
    for fused in (
        ev.fuse(SCORES, KEY, folds=0),
        ev.fuse({"a": A, "b": B}, labels=TRUTH, folds=0),
        ev.fuse(FRAME, scores=["a", "b"], folds=0),
    ):
        np.testing.assert_allclose(fused.affine.weights, expected.weights, rtol=1e-12)
        assert fused.systems == ("a", "b")
        assert fused.scores is None
    unnamed = ev.fuse(rows, labels=TRUTH, folds=0)
    assert unnamed.affine.weights == expected.weights
    assert unnamed.systems == ("score", "system 2")
    assert ev.fuse(rows[TRUTH], rows[~TRUTH], folds=0).affine.weights == expected.weights


# forms


def test_every_form_of_the_arguments_gives_the_same():
    """Lists in any order, arrays with their speakers, data frames with ids and with columns of speakers."""
    expected = ev.fuse(SCORES, KEY, speakers="/", seed=3)
    people = find_speakers(KEY, model_speakers="/", segment_speakers="/")
    by_hand = cross_validate_affine(np.column_stack([A, B]), TRUTH, people, seed=3)
    np.testing.assert_array_equal(expected.scores.values, by_hand)
    other = ev.fuse(
        {"a": shuffled(SCORES["a"]), "b": shuffled(SCORES["b"], 2)}, KEY, speakers="/", seed=3
    )
    np.testing.assert_array_equal(other.scores.values, by_hand)
    for result in (
        ev.fuse({"a": A, "b": B}, labels=TRUTH, speakers=OWNERS, seed=3),
        ev.fuse(FRAME, scores=["a", "b"], speakers="/", seed=3),
        ev.fuse(FRAME, scores=["a", "b"], speakers=OWNERS, seed=3),
        ev.fuse(
            FRAME[["a", "b"]], labels=FRAME["same"], scores=["a", "b"], speakers=OWNERS, seed=3
        ),
    ):
        assert isinstance(result.scores, np.ndarray)
        np.testing.assert_allclose(result.scores, by_hand)
        np.testing.assert_allclose(result.affine.weights, expected.affine.weights)
    owner = dict(zip(IDS[0] + IDS[1], [*OWNERS[0], *OWNERS[1]], strict=True))
    for speakers in (owner, lambda name: name[:3], (owner, "/")):
        result = ev.fuse(SCORES, labels=KEY, speakers=speakers, seed=3)
        np.testing.assert_array_equal(result.scores.values, by_hand)
    one = ev.calibrate(SCORES["a"], KEY, speakers="/")
    assert len(one.affine.weights) == 1
    for result in (
        ev.calibrate(A, labels=TRUTH, speakers=OWNERS),
        ev.calibrate(A, TRUTH, speakers=OWNERS),
        ev.calibrate(FRAME.rename(columns={"a": "score"}), speakers="/"),
        ev.calibrate(FRAME, score="a", label="same", speakers="/"),
        ev.calibrate({"score": A, "label": TRUTH}, speakers=OWNERS),
    ):
        np.testing.assert_allclose(result.scores, one.scores.values)
    assert ev.calibrate(A[TRUTH], A[~TRUTH], folds=0).affine.weights == one.affine.weights


def test_other_trials_are_fused_in_every_form():
    fused = ev.fuse(SCORES, KEY, speakers="/")
    new = {name: replace(part, values=part.values + 0.01) for name, part in SCORES.items()}
    renamed = tuple([f"new {name}" for name in side] for side in IDS)
    new = {name: ev.Scores.from_ids(*renamed, part.values) for name, part in new.items()}
    expected = fused.affine(np.column_stack([A + 0.01, B + 0.01]))
    assert fused.apply(new).values.tolist() == expected.tolist()
    turned = fused.apply({"b": shuffled(new["b"]), "a": new["a"]})
    assert turned.values.tolist() == expected.tolist()
    assert list(turned.pairs()) == list(new["a"].pairs())
    for form in (
        {"b": B + 0.01, "a": A + 0.01},
        FRAME.assign(a=A + 0.01, b=B + 0.01),
        np.column_stack([A + 0.01, B + 0.01]),
    ):
        np.testing.assert_array_equal(fused.apply(form), expected)


def test_a_fusion_is_saved_and_loaded_with_all_digits(tmp_path):
    trained = ev.fuse(SCORES, KEY, speakers="/", quality=QUALITY)
    trained.save(tmp_path / "fusion.json")
    loaded = ev.load_calibration(tmp_path / "fusion.json")
    assert loaded.affine == trained.affine
    assert loaded.quality == trained.quality
    assert loaded.scores is None
    assert loaded.systems == ("a", "b")
    new = {name: ev.Scores.from_ids(IDS[0], IDS[1], part.values) for name, part in SCORES.items()}
    expected = trained.apply(new, quality=QUALITY).values
    assert loaded.apply(new, quality=QUALITY).values.tolist() == expected.tolist()
    with pytest.raises(DataError, match=r"fusion\.json: expected no quality measures"):
        load_affine(tmp_path / "fusion.json")
    ev.calibrate(SCORES["a"], KEY, folds=0).save(tmp_path / "plain.json")
    assert load_affine(tmp_path / "plain.json").names == ()
    content = json.loads((tmp_path / "fusion.json").read_text())
    for change in ({"version": 2}, {"names": ["a", "b"]}, {"quality": content["names"]}):
        (tmp_path / "other.json").write_text(json.dumps({**content, **change}))
        with pytest.raises(DataError, match=r"other\.json: expected 'spkver affine calibration'"):
            ev.load_calibration(tmp_path / "other.json")


# folds


@pytest.mark.parametrize("speaker", SPEAKERS[:4])
def test_no_trial_is_scored_by_a_fit_that_saw_its_speakers(speaker):
    """Whatever one speaker's trials are, the maps of the trials that the speaker is in stay the same."""
    mine = (OWNERS[0] == speaker) | (OWNERS[1] == speaker)
    before = ev.fuse(SCORES, KEY, speakers="/", quality=QUALITY)
    spoilt = A.copy()
    spoilt[mine] = np.where(TRUTH[mine], -9.0, 9.0) + 20 * A[mine]
    systems = {"a": ev.Scores.from_ids(*IDS, spoilt), "b": SCORES["b"]}
    after = ev.fuse(systems, KEY, speakers="/", quality=QUALITY)
    rows = np.column_stack([A, B, both_sides()])[mine]
    moved = np.column_stack([spoilt, B, both_sides()])[mine]
    difference = after.scores.values[mine] - before.scores.values[mine]
    # each trial's map is unchanged: what changed is its own score times the weight of the first system
    slopes = difference / (moved[:, 0] - rows[:, 0])
    for fold in np.unique(np.round(slopes, 9)):
        assert fold > 0
    assert len(np.unique(np.round(slopes, 9))) <= 5
    other = after.scores.values[~mine] != before.scores.values[~mine]
    assert other.any()


def both_sides():
    sides = [np.array([SECONDS[name] for name in side]) for side in IDS]
    return np.column_stack([np.minimum(*sides), np.maximum(*sides)])


def test_folds_make_cllr_honest_and_rejected_trials_stay_rejected():
    noise = np.random.default_rng(5).normal(size=(len(TRUTH), 12))
    systems = {f"n{number}": column for number, column in enumerate(noise.T)}
    crossed = ev.fuse(systems, labels=TRUTH, speakers=OWNERS)
    seen = crossed.affine(noise)
    assert ev.cllr(seen, labels=TRUTH) < 1 < ev.cllr(crossed.scores, labels=TRUTH)
    fewer = SCORES["a"].subset(np.arange(len(TRUTH)) != 7)
    rejected = ev.calibrate(fewer, KEY, speakers="/", missing="reject")
    assert np.flatnonzero(rejected.scores.values == -np.inf).tolist() == [7]
    dropped = ev.calibrate(fewer, KEY, speakers="/", missing="drop")
    assert len(dropped.scores) == len(TRUTH) - 1
    assert rejected.affine == dropped.affine
    gap = A.copy()
    gap[7] = np.nan
    for missing, expected in (("reject", rejected), ("drop", dropped)):
        found = ev.calibrate(gap, labels=TRUTH, speakers=OWNERS, missing=missing)
        np.testing.assert_allclose(found.scores, expected.scores.values)


# quality measures


@pytest.mark.parametrize("columns", ["min duration", "log(min duration)", "log(max duration)"])
@pytest.mark.parametrize(
    ("factor", "doubted"), [(1, False), (2, False), (1000, True), (0.001, True)]
)
def test_measures_in_another_unit_raise_a_warning(columns, factor, doubted, tmp_path, caplog):
    rng = np.random.default_rng(0)
    names = [f"s{number}" for number in range(30)]
    models = [name for name in names for _ in names]
    segments = [f"{name}/x" for _ in names for name in names]
    truth = np.eye(30, dtype=bool).ravel()
    seconds = dict(zip([*names, *segments[:30]], rng.uniform(2, 10, 60), strict=True))
    scores = ev.Scores.from_ids(models, segments, rng.normal(size=900) + 2 * truth)
    key = ev.Key.from_ids(models, segments, truth)
    measures = {"duration": seconds}
    trained = ev.calibrate(
        scores, key, speakers="/", quality=measures, quality_columns=columns, folds=0
    )
    trained.save(tmp_path / "a.json")
    caplog.clear()
    new = ev.Scores.from_ids(["s1", "s2"], ["s3/x", "s4/x"], [0.0, 1.0])
    others = {"duration": {name: factor * value for name, value in seconds.items()}}
    ev.load_calibration(tmp_path / "a.json").apply(new, quality=others)
    assert ("another unit?" in caplog.text) == doubted


def test_measures_of_models_and_segments_form_columns():
    trials = ev.Trials.from_ids(["m", "m", "n"], ["m", "t", "t"])
    pair = ({"m": 2.0, "n": 8.0}, {"m": 4.0, "t": 1.0})
    from evaluation.calibration.quality import columns_of_trials

    columns = ["min q", "max q", "model q", "segment q", "log(max q)"]
    expected = [[2, 4, 2, 4, np.log(4)], [1, 2, 2, 1, np.log(2)], [1, 8, 8, 1, np.log(8)]]
    np.testing.assert_allclose(columns_of_trials({"q": pair}, columns, trials), expected)
    series = pandas.Series({"m": 2.0, "n": 3.0, "t": 1.0})
    assert columns_of_trials({"q": series}, ["max q"], trials).ravel().tolist() == [2, 2, 3]


def test_measures_of_data_frames_are_joined_by_their_columns_of_ids():
    frame = FRAME.rename(columns={"model": "who", "segment": "tested"})
    columns = {"score": "a", "label": "same", "model": "who", "segment": "tested"}
    found = ev.calibrate(frame, **columns, speakers=OWNERS, quality=QUALITY)
    np.testing.assert_allclose(found.scores, WITH_QUALITY.scores.values)
    new = frame.assign(a=A + 0.01, who="new " + frame["who"])
    renamed = {f"new {name}": seconds for name, seconds in SECONDS.items()} | SECONDS
    applied = found.apply(new, quality={"seconds": renamed}, model="who", segment="tested")
    rows = np.column_stack([A + 0.01, both_sides()])
    np.testing.assert_allclose(applied, found.affine(rows))
    with pytest.raises(DataError, match=r"name the columns: model=\.\.\., segment="):
        found.apply(new, quality={"seconds": renamed})


def test_a_single_column_may_be_a_text():
    named = trained(quality=QUALITY, quality_columns=LOG[0])
    assert named.quality == tuple(LOG)
    assert named.affine == trained(quality=QUALITY, quality_columns=LOG).affine


def test_cohort_means_are_those_of_the_highest_scores():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(24, 10))
    models, segments = sorted(set(IDS[0])), sorted(set(IDS[1]))
    cohort = [f"c{number}" for number in range(10)]
    by_model = [(model, one) for model in models for one in cohort]
    by_segment = [(one, segment) for segment in segments for one in cohort]
    first = ev.Scores.from_ids(*zip(*by_model, strict=True), matrix[:12].ravel())
    other = rng.normal(size=(36, 10))
    second = ev.Scores.from_ids(*zip(*by_segment, strict=True), other.ravel())
    means = ev.cohort_means(KEY, first, second, top=4)
    best = np.sort(matrix[:12], axis=1)[:, -4:].mean(axis=1)
    np.testing.assert_allclose([means[0][model] for model in models], best)
    best = np.sort(other, axis=1)[:, -4:].mean(axis=1)
    np.testing.assert_allclose([means[1][segment] for segment in segments], best)
    assert ev.calibrate(SCORES["a"], KEY, speakers="/", quality={"cohort": means}).quality


def test_files_of_measures_are_joined_by_name(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "utt2dur").write_text("a 1.5\nb 2\n")
    (tmp_path / "dev" / "utt2dur").write_text("c 3\na 1.5\n")
    (tmp_path / "snr.txt").write_text("a -3\n")
    measures = read_quality(
        [tmp_path / "utt2dur", tmp_path / "dev" / "utt2dur", tmp_path / "snr.txt"]
    )
    assert measures == {"utt2dur": {"a": 1.5, "b": 2.0, "c": 3.0}, "snr": {"a": -3.0}}
    for line in ("a 2", "a nan", "a long"):
        (tmp_path / "dev" / "utt2dur").write_text(line)
        with pytest.raises(DataError, match=r"dev/utt2dur: expected one number as utt2dur of 'a'"):
            read_quality([tmp_path / "utt2dur", tmp_path / "dev" / "utt2dur"])


# likely mistakes


NAN = B.copy()
NAN[3] = np.nan
LACKING = {name: seconds for name, seconds in SECONDS.items() if name != "s03/2"}
FUSED = ev.fuse(SCORES, KEY, speakers="/")
ONE_INFINITE = A.copy()
ONE_INFINITE[np.flatnonzero(TRUTH)[0]] = np.inf
WITH_QUALITY = ev.calibrate(SCORES["a"], KEY, speakers="/", quality=QUALITY)


def trained(**options):
    return ev.calibrate(SCORES["a"], KEY, **{"speakers": "/", **options})


MISTAKES = {
    "a system too few": (
        lambda: FUSED.apply({"a": SCORES["a"]}),
        "expected the systems a, b, got a",
    ),
    "a system too many": (
        lambda: FUSED.apply({**SCORES, "c": SCORES["a"]}),
        "expected the systems a, b, got a, b, c",
    ),
    "another system": (lambda: FUSED.apply({"a": SCORES["a"], "c": SCORES["b"]}), "got a, c"),
    "scores of one": (lambda: FUSED.apply(SCORES["a"]), "expected the systems a, b, got a"),
    "a column too few": (lambda: FUSED.apply(FRAME[["a"]]), "expected the systems a, b, got a"),
    "a narrow matrix": (lambda: FUSED.apply(np.ones((4, 1))), "expected scores of 2 systems"),
    "NaN applied": (lambda: FUSED.apply({"a": A, "b": NAN}), "1 NaN or missing among 432"),
    "NaN in a matrix": (lambda: FUSED.apply(np.column_stack([A, NAN])), "1 NaN or missing"),
    "NaN trained": (
        lambda: ev.fuse({"a": A, "b": NAN}, labels=TRUTH, speakers=OWNERS),
        "1 score not a number|NaN",
    ),
    "infinite": (
        lambda: ev.fuse({"a": A, "b": np.where(TRUTH, B, -np.inf)}, labels=TRUTH, speakers=OWNERS),
        "infinite or NaN of b",
    ),
    "infinite in both": (
        lambda: ev.fuse(
            {"a": ONE_INFINITE, "b": np.where(TRUTH, np.inf, B)},
            labels=TRUTH,
            speakers=OWNERS,
        ),
        "expected finite target scores, got 1 infinite or NaN of a",
    ),
    "a trial lost": (
        lambda: ev.fuse({**SCORES, "b": SCORES["b"].subset(np.arange(9))}, KEY, speakers="/"),
        "b: 423 trials of 432 without a score",
    ),
    "a trial lost later": (
        lambda: FUSED.apply({**SCORES, "b": SCORES["b"].subset(np.arange(9))}),
        "b: 423 trials of 432 without a score",
    ),
    "an array and a key": (
        lambda: ev.calibrate(A, ev.Key.from_ids(IDS[1], IDS[0], TRUTH)),
        "score: expected Scores, got ndarray",
    ),
    "ids of recordings": (
        lambda: ev.calibrate(
            ev.Scores.from_ids(IDS[1], IDS[0], A), ev.Key.from_ids(IDS[1], IDS[0], TRUTH)
        ),
        "the speakers are not known: .*folds=0 needs none",
    ),
    "speakers of one side": (
        lambda: ev.calibrate(A, labels=TRUTH, speakers=OWNERS[0]),
        "both speakers of each",
    ),
    "no speakers": (lambda: ev.calibrate(A[TRUTH], A[~TRUTH]), "both speakers of each"),
    "speakers exchanged": (
        lambda: ev.calibrate(A, labels=TRUTH, speakers=(OWNERS[0], OWNERS[1][::-1])),
        "are one",
    ),
    "two speakers of an id": (
        lambda: ev.calibrate(FRAME, score="a", label="same", speakers=(OWNERS[1], OWNERS[1])),
        "the same for the same id",
    ),
    "speakers of fewer trials": (
        lambda: ev.calibrate(A, labels=TRUTH, speakers=(OWNERS[0][1:], OWNERS[1][1:])),
        "one speaker of each id of 432 trials, got 431",
    ),
    "key first": (lambda: ev.calibrate(KEY, SCORES["a"]), "expected Scores by name and a Key"),
    "no key": (lambda: ev.calibrate(SCORES["a"]), "expected Scores by name and a Key"),
    "a system called labels": (
        lambda: ev.fuse({"labels": FRAME["a"]}, FRAME["same"][::-1], speakers=OWNERS),
        "labels and the labels with the same index",
    ),
    "key and labels": (lambda: ev.calibrate(SCORES["a"], KEY, TRUTH), "got both"),
    "no labels": (lambda: ev.fuse({"a": A}, folds=0), "expected Scores by name and a Key"),
    "labels as a system": (
        lambda: ev.fuse({"a": A, "b": TRUTH.astype(int)}, labels=TRUTH, speakers=OWNERS),
        "separate the classes",
    ),
    "arrays and a key": (
        lambda: ev.fuse({"a": A, "b": SCORES["b"]}, KEY, folds=0),
        "a: expected Sc",
    ),
    "another index": (
        lambda: ev.fuse({"a": FRAME["a"], "b": FRAME["b"][::-1]}, labels=TRUTH, speakers=OWNERS),
        "same index",
    ),
    "another index later": (
        lambda: FUSED.apply({"a": FRAME["a"], "b": FRAME["b"][::-1]}),
        "same index",
    ),
    "two folds": (lambda: trained(folds=2), "at least 3 folds"),
    "more folds than people": (lambda: trained(folds=13), "got 12 and 13"),
    "frame without scores": (lambda: ev.fuse(FRAME), "expected columns of scores out of"),
    "frame of two systems": (lambda: ev.calibrate(FRAME), "expected columns of scores out of"),
    "an utterance without quality": (
        lambda: trained(quality={"seconds": LACKING}),
        r"1 of 36 segments without a finite seconds: 's03/2'",
    ),
    "NaN as quality": (
        lambda: trained(quality={"seconds": {**SECONDS, "s04/0": np.nan}}),
        r"1 of 12 models without a finite seconds: 's04/0'",
    ),
    "text as quality": (
        lambda: trained(quality={"seconds": {**SECONDS, "s04/0": "3.1"}}),
        "expected numbers as seconds, got '3.1'",
    ),
    "logarithm of nothing": (
        lambda: trained(quality={"seconds": {**SECONDS, "s04/1": 0.0}}, quality_columns=LOG),
        r"1 of 36 segments without a positive seconds: 's04/1'",
    ),
    "quality by row": (
        lambda: trained(quality={"seconds": SHORTER}),
        "as a mapping of ids to numbers, got ndarray",
    ),
    "quality without ids": (
        lambda: ev.calibrate(A, labels=TRUTH, speakers=OWNERS, quality=QUALITY),
        "432 of 432 models without a finite seconds",
    ),
    "three measures of a trial": (
        lambda: trained(quality={"seconds": (SECONDS, SECONDS, SECONDS)}),
        "as a mapping of ids to numbers, got tuple",
    ),
    "one norm for all": (
        lambda: trained(quality={"norm": dict.fromkeys(SECONDS, 1.0)}),
        "min norm gives every trial the same score",
    ),
    "quality forgotten": (
        lambda: WITH_QUALITY.apply(SCORES["a"]),
        "expected seconds for .*got none",
    ),
    "quality too much": (
        lambda: FUSED.apply(SCORES, quality=QUALITY),
        "expected no quality measures .*got seconds",
    ),
    "another quality": (
        lambda: WITH_QUALITY.apply(SCORES["a"], quality={"snr": SECONDS}),
        "expected seconds for .*got snr",
    ),
    "quality for an array": (
        lambda: WITH_QUALITY.apply(A, quality=QUALITY),
        "joined by ids, which the trials lack",
    ),
    "no formula": (
        lambda: trained(quality=QUALITY, quality_columns=["seconds"]),
        r"such as 'min snr' or 'log\(segment duration\)', got 'seconds'",
    ),
    "a measure in no column": (
        lambda: trained(quality={**QUALITY, "snr": SECONDS}, quality_columns=LOG),
        "expected seconds .*got seconds, snr",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_honest_mistakes_are_refused(case):
    call, says = MISTAKES[case]
    with pytest.raises(DataError, match=says):
        call()


WARNED = {
    "the trained trials": (
        lambda: FUSED.apply(SCORES),
        "432 of 432 trials are training trials too",
    ),
    "some of them": (
        lambda: FUSED.apply({name: part.subset(TRUTH) for name, part in SCORES.items()}),
        "36 of 36 trials are training trials too",
    ),
    "the trained array": (
        lambda: ev.calibrate(A, labels=TRUTH, folds=0).apply(A),
        "432 of 432 trials are training trials too",
    ),
    "the same under other ids": (
        lambda: trained().apply(ev.Scores.from_ids([f"x{n}" for n in range(432)], ["y"] * 432, A)),
        "432 of 432 trials are training trials too",
    ),
    "a system twice": (
        lambda: ev.fuse({"a": SCORES["a"], "b": SCORES["a"]}, KEY, speakers="/"),
        "a and b have the same scores",
    ),
    "distances": (
        lambda: ev.calibrate(replace(SCORES["a"], values=-A), KEY, folds=0),
        "the calibration has a negative slope",
    ),
    "a distance among systems": (
        lambda: ev.fuse({"a": -A, "b": B}, labels=TRUTH, folds=0),
        "the calibration of a has a negative slope",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_doubtful_uses_raise_one_warning(case, caplog):
    call, says = WARNED[case]
    with caplog.at_level(logging.WARNING):
        call()
    assert [record for record in caplog.records if says in record.getMessage()]
    assert len(caplog.records) == 1


def test_negative_weights_of_quality_measures_raise_no_warning(caplog):
    quality = {"noise": {name: -seconds for name, seconds in SECONDS.items()}}
    for folds in (0, 5):
        for sign in (1, -1):
            own = {name: sign * number for name, number in quality["noise"].items()}
            trained(folds=folds, quality={"noise": own}, quality_columns=["min noise"])
    assert not caplog.text


def test_results_do_not_depend_on_the_order_of_the_trials():
    turned = shuffled(KEY)
    first, second = (
        trained(quality=QUALITY),
        ev.calibrate(SCORES["a"], turned, speakers="/", quality=QUALITY),
    )
    rows = find_rows(turned, KEY)
    np.testing.assert_allclose(second.scores.values, first.scores.values[rows], rtol=1e-9)
