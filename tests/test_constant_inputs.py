"""Inputs that do not vary, though their computed mean is rounded: no function takes the rounding for a spread."""

import numpy as np
import pytest

import evaluation as ev
from evaluation import calibration, uncertainty
from evaluation.linkage.extrapolation import fit_tail
from evaluation.metrics import METRICS, Method, Metrics, reversal, sort_scores
from evaluation.metrics.worst_case import gaussian_llrs
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import Resampling, interval, sample_of
from evaluation.utility import SimilarityMatrix, compare_voices, matrix_of_voices
from evaluation.utility.attributes import predict_labels
from evaluation.utility.pitch import compare_tracks
from spkbase.errors import ConfigError, DataError
from spkbase.rounding import is_constant, is_negligible
from spkver.backend import fit_nap, fit_plda
from spkver.backend import transforms as maps
from spkver.backend.plda import fit_two_covariance
from spkver.features.frames import normalise
from spkver.features.vad import energy_vad

CONSTANTS = [0.0, 0.1, -1e-9, 1e8 + 1 / 3]
COUNTS = [2, 7, 1000]
constant_inputs = pytest.mark.parametrize("value", CONSTANTS)
counts = pytest.mark.parametrize("count", COUNTS)


def nearly(value, shape, seed=0):
    """The same number everywhere, but for its last bits."""
    signs = np.random.default_rng(seed).integers(-1, 2, shape)
    return value * (1 + signs * np.finfo(float).eps)


@constant_inputs
@counts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_equal_up_to_rounding_are_constant(value, count, dtype):
    values = nearly(value, (count, 3)).astype(dtype)
    assert is_constant(values).all()
    assert is_constant(values.T, axis=1).all()
    values[0] += dtype(max(abs(value), 1) * 1e-3)
    assert not is_constant(values).any()


def test_infinite_and_undefined_numbers_are_compared_without_warnings():
    assert not is_constant([0.1, np.inf])
    assert not is_constant([-np.inf, np.inf])
    assert not is_constant([-1e308, 1e308])
    assert is_constant([np.inf, np.inf])
    assert is_constant([0.1, np.nan])
    assert not is_negligible(np.inf, np.inf)
    assert is_negligible(np.nan, 1.0)
    assert is_negligible(0.0, 0.0)


# --- evaluation ------------------------------------------------------------------------------------------------------

PEOPLE = ["ann", "bob", "cat", "dan", "eve"]
TRIALS = [(model, f"{owner}-{take}") for model in PEOPLE for owner in PEOPLE for take in range(3)]
KEY = ev.Key.from_ids(
    *zip(*TRIALS, strict=True), [model == segment[:3] for model, segment in TRIALS]
)
SPEAKERS = {segment: segment[:3] for _, segment in TRIALS} | {name: name for name in PEOPLE}


def scores_of(values):
    return ev.Scores.from_ids(*zip(*TRIALS, strict=True), values)


def matrix_of(values, key=KEY):
    return matrix_of_voices(scores_of(values), key, calibration="none", segment_speakers=SPEAKERS)


@constant_inputs
@pytest.mark.parametrize("noisy", [False, True])
def test_equal_scores_have_neither_deid_nor_gain(value, noisy):
    equal = nearly(value, len(TRIALS)) if noisy else np.full(len(TRIALS), value)
    rng = np.random.default_rng(0)
    (oo, notes), (oa, none), (aa, _) = (
        matrix_of(values) for values in (equal, *rng.normal(size=(2, len(TRIALS))))
    )
    assert notes == ["all scores are equal: a broken system, not privacy"]
    assert none == []
    result = compare_voices({"oo": oo, "oa": oa, "aa": aa}, resampling=Resampling(20))
    assert result.distinctiveness["oo"].value == 0
    assert np.isnan([result.deid.value, result.deid.low, result.gain.value, result.gain.high]).all()
    assert any("original voices are all alike" in note for note in result.notes)
    result = compare_voices({"oo": oa, "oa": oo, "aa": oo}, resampling=Resampling(20))
    assert (result.deid.value, result.gain.value) == (1.0, -np.inf)


@constant_inputs
def test_equally_similar_voices_are_indistinguishable_for_any_number(value):
    for count in (2, 3, 7, 11):
        cells = 1 / (1 + np.exp(-nearly(min(value, 30.0), (count, count))))
        matrix = SimilarityMatrix(tuple(map(str, range(count))), cells)
        result = compare_voices({"oo": matrix, "aa": matrix}, resampling=Resampling(10))
        assert result.distinctiveness["oo"].value == 0
        assert np.isnan(result.gain.value)


@constant_inputs
@counts
def test_equal_scores_are_a_broken_system_and_have_no_density(value, count):
    target, nontarget = nearly(value, count, 0), nearly(value, count, 1)
    assert reversal(target, nontarget).text == "all scores are equal: a broken system, not privacy"
    with pytest.raises(DataError, match="two different target scores"):
        gaussian_llrs(sort_scores(target, np.append(nontarget, 1e9)))
    for ridge in (0.0, 1e-3):
        with pytest.raises(DataError, match="gives every trial the same score"):
            calibration.train_affine(target, nontarget, ridge=ridge)
    fused = np.stack([np.arange(2.0 * count), np.append(target, nontarget)], axis=1)
    weights = calibration.train_nonnegative(fused, np.arange(2 * count) % 2, ridge=0.1).weights
    assert weights[1] == 0


@constant_inputs
@counts
def test_cohorts_with_equal_scores_are_refused(value, count):
    cohort = nearly(value, (1, count))
    with pytest.raises(DataError, match="equal cohort scores"):
        calibration.cohort_moments(cohort, ["m"])
    models = ["m"] * count
    listed = ev.Scores.from_ids(models, [f"s{number}" for number in range(count)], cohort[0])
    with pytest.raises(DataError, match="equal cohort scores"):
        calibration.z_norm(ev.Scores.from_ids(["m"], ["t"], [1.0]), listed)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_resamples_have_no_interval(value):
    result = interval(value, nearly(value, 200), method=Method("identity"), n_units=10)
    assert np.isnan([result.low, result.high]).all()
    assert "every resample gives the same value" in result.note


def test_systems_that_differ_by_rounding_do_not_differ():
    rng = np.random.default_rng(0)
    values = rng.normal(size=len(TRIALS)) + 2 * KEY.is_target
    samples = {
        name: uncertainty.sample_from(scores_of(given), KEY, segment_speakers=SPEAKERS)[0]
        for name, given in {"one": values, "same": values * (1 + 1e-15)}.items()
    }
    statistic = Metrics(
        metrics=tuple(row for row in METRICS if row.name in ("eer", "cllr", "min_cllr"))
    )
    gaps = uncertainty.paired_differences(samples, statistic, Resampling(50))["same"]
    assert {gap.value for gap in gaps.values()} == {0.0}
    assert all(np.isnan(gap.low) and np.isnan(gap.p_value) for gap in gaps.values())


@pytest.mark.parametrize(
    ("value", "count"), [(0.1, 60), (100.1, 1000), (1e8 + 1 / 3, 1000), (0.1, 30_000)]
)
@pytest.mark.parametrize("convention", ["default", "vpc2022"])
def test_a_pitch_that_never_moves_has_no_correlation(value, convention, count):
    track = 200 + 10 * np.sin(np.arange(count))
    compared = compare_tracks(np.full(count, value), track, convention=convention)
    assert compared.correlation == 0 if convention == "vpc2022" else np.isnan(compared.correlation)


@constant_inputs
def test_constant_dimensions_do_not_predict_a_class(value):
    rng = np.random.default_rng(0)
    labels = ["f", "m"] * 20
    useful = rng.normal(size=(40, 2)) + 3 * (np.arange(40) % 2)[:, None]
    tested = rng.normal(size=(10, 2)) + 1.5
    without = predict_labels(useful, labels, tested)
    beside = predict_labels(
        np.c_[useful, np.full(40, value)], labels, np.c_[tested, np.full(10, value + 1)]
    )
    assert beside == without


@constant_inputs
def test_equal_impostor_scores_have_no_tail(value):
    largest = np.random.default_rng(0).normal(size=(30, 12))
    largest[4] = nearly(value, 12)
    with pytest.raises(DataError, match="all the same"):
        fit_tail(largest, np.full(30, 100))


# --- backend and features --------------------------------------------------------------------------------------------

CODES = np.repeat(np.arange(4), 5)
MAPS = {
    "centre": lambda vectors, codes: maps.fit_centring(vectors),
    "pca": lambda vectors, codes: maps.fit_pca(vectors),
    "whiten": lambda vectors, codes: maps.fit_whitening(vectors),
    "diagonal": lambda vectors, codes: maps.fit_whitening(vectors, kind="diagonal"),
    "efr": lambda vectors, codes: maps.fit_efr(vectors),
    "sphnorm": maps.fit_sphnorm,
    "lda": maps.fit_lda,
    "wccn": maps.fit_wccn,
    "nap": lambda vectors, codes: fit_nap(
        vectors, speakers=codes.tolist(), rank=2, scatter="within"
    ),
    "coral": lambda vectors, codes: maps.fit_coral(vectors, vectors),
    "two_covariance": fit_two_covariance,
    "plda": fit_plda,
}
OF_SESSIONS = ["sphnorm", "lda", "wccn", "nap", "two_covariance", "plda"]


@pytest.mark.parametrize(("value", "count"), [(0.1, 8), (1e8 + 1 / 3, 8), (0.1, 50_000)])
@pytest.mark.parametrize("name", MAPS)
def test_equal_vectors_are_refused_in_training(name, value, count):
    count = min(count, 200) if name == "nap" else count  # it makes a matrix of all pairs of vectors
    with pytest.raises((DataError, ConfigError)):
        MAPS[name](np.full((count, 3), value), np.arange(count) % 4)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e8 + 1 / 3])
@pytest.mark.parametrize("name", OF_SESSIONS)
def test_equal_sessions_have_no_scatter_within_speakers(name, offset):
    vectors = (np.random.default_rng(0).normal(size=(4, 3)) / 3 + offset)[CODES]
    with pytest.raises((DataError, ConfigError)):
        MAPS[name](vectors, CODES)


@constant_inputs
@pytest.mark.parametrize("count", [40, 100_000])
def test_diagonal_whitening_names_constant_dimensions(value, count):
    vectors = np.random.default_rng(0).normal(size=(count, 3))
    vectors[:, 1] = value
    with pytest.raises(DataError, match=r"1 dimensions are constant, such as 1:"):
        maps.fit_whitening(vectors, kind="diagonal")


@constant_inputs
@pytest.mark.parametrize("count", [3, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cmvn_only_centres_constant_features(value, count, dtype):
    frames = np.random.default_rng(0).normal(size=(count, 2)).astype(dtype)
    frames[:, 1] = value
    speech = np.ones(count, bool)
    done = normalise(frames, speech)
    centred = frames - frames.mean(axis=0)
    assert np.array_equal(done[:, 0], centred[:, 0] / frames.std(axis=0)[0])
    assert np.array_equal(done[:, 1], centred[:, 1])
    assert np.abs(done[:, 1]).max() <= 1e-2 * abs(value)


@constant_inputs
@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames_with_equal_energy_are_all_speech(value, count, dtype):
    assert energy_vad(np.full(count, value, dtype)).all()


def test_means_that_cancel_have_no_direction():
    turns = 2 * np.pi * np.arange(3) / 3
    vectors = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    both = ev.Embeddings(
        [f"a{n}" for n in range(3)] + ["b0", "b1"],
        ["a"] * 3 + ["b"] * 2,
        [*vectors, [1, 0], [0, 1]],
    )
    trials = ev.Trials.from_ids(["a", "b"], ["b0", "b1"])
    with pytest.raises(DataError, match="1 speaker mean is zero"):
        ev.cosine_scores(both, both, trials)


def test_samples_of_equal_scores_have_no_interval():
    models, segments = np.divmod(np.arange(36), 6)
    speakers = TrialSpeakers(np.array([f"s{n}" for n in range(6)], object), models, segments)
    sample = sample_of(np.full(36, 0.1), models == segments, speakers)
    statistic = Metrics(metrics=tuple(row for row in METRICS if row.name in ("cllr", "min_cllr")))
    for ends in uncertainty.confidence_intervals(sample, statistic, Resampling(50)).values():
        assert np.isnan(ends.low)
        assert ends.note
