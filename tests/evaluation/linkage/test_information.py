"""Local information disclosure: against loops, scikit-learn's regression and closed forms; three leaks told apart."""

import math

import numpy as np
import pytest
from scipy import special

from evaluation.linkage import (
    GalleryTrials,
    crossed_slopes,
    disclosed_information,
    disclosure_curve,
    disclosure_slope,
    drawn_gallery,
    gallery_trials,
    local_disclosure,
    summarise_disclosure,
    z_normalised,
)
from evaluation.metrics import eer
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError

NONE = Resampling(0)


def random_trials(seed, *, n_rows=12, largest=9):
    """Rows of different sizes in random order, with tied scores, some of them all equal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, largest, n_rows)
    rows = np.repeat(np.arange(n_rows), sizes)
    values = rng.integers(-2, 3, len(rows)).astype(float)
    values[rows == 0] = 0.1
    is_target = np.zeros(len(rows), bool)
    ends = np.cumsum(sizes)
    for start, end in zip(ends - sizes, ends, strict=True):
        is_target[rng.integers(start, end)] = True
    values[is_target] += rng.integers(0, 3, n_rows)
    order = rng.permutation(len(rows))
    owners = [f"s{number % 5}" for number in range(n_rows)]
    segments = [f"t{number}" for number in range(n_rows)]
    models = np.zeros(len(rows), np.int64)
    return GalleryTrials(rows[order], models, values[order], is_target[order], owners, segments, ())


def brute_bits(trials, slopes):
    bits = []
    for row, slope in enumerate(slopes):
        scores = trials.values[trials.rows == row]
        own = trials.values[(trials.rows == row) & trials.is_target][0]
        mean = sum(scores) / len(scores)
        spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
        if spread < 1e-9:
            bits.append(0.0)
            continue
        weights = [math.exp(slope * (score - mean) / spread) for score in scores]
        share = math.exp(slope * (own - mean) / spread) / sum(weights)
        bits.append(math.log2(len(scores) * share))
    return bits


@pytest.mark.parametrize("seed", range(25))
def test_disclosure_equals_a_loop_over_rows(seed):
    trials = random_trials(seed)
    slopes = np.random.default_rng(seed).uniform(-1, 4, 12)
    bits = local_disclosure(trials.values, trials.rows, trials.is_target, slopes)
    assert bits == pytest.approx(brute_bits(trials, slopes), abs=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_slope_equals_that_of_scikit_learn(seed):
    """Its default penalty, C = 1, is a ridge of 1 over the number of trials; z of whole rows has variance 1."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    trials = random_trials(seed)
    spread = [np.ptp(trials.values[trials.rows == row]) for row in range(12)]
    varying = np.array(spread)[trials.rows] > 0  # otherwise z of the row is 0
    rows = np.unique(trials.rows[varying], return_inverse=True)[1]
    values = trials.values[varying]
    truth = trials.is_target[varying]
    # lbfgs of older versions stops early
    fitted = linear_model.LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000)
    fitted.fit(z_normalised(values, rows)[:, None], truth)
    assert disclosure_slope(values, rows, truth) == pytest.approx(fitted.coef_[0, 0], abs=1e-5)


@pytest.mark.parametrize("seed", range(25))
def test_summaries_and_their_jackknife_equal_loops(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    bits = rng.integers(-2, 4, 30).astype(float)
    group = np.arange(30) % 6
    replicates = np.where(
        group == np.arange(6)[:, None], np.nan, bits + rng.normal(size=(6, 1)) / 9
    )
    summaries = summarise_disclosure(bits, replicates)
    functions = {
        "mean": np.mean,
        "share": lambda some: np.mean(some > 0),
        "gain": lambda some: some[some > 0].mean(),
        "loss": lambda some: some[some <= 0].mean(),
    }
    scales = {"gain": (np.log, np.exp), "share": (special.logit, special.expit)}
    for name, function in functions.items():
        scale, back = scales.get(name, (np.asarray, np.asarray))
        value = function(bits)
        others = np.array([scale(function(row[~np.isnan(row)])) for row in replicates])
        reach = stats.t.ppf(0.975, 5) * np.sqrt(5 / 6 * ((others - others.mean()) ** 2).sum())
        found = summaries[name]
        assert found.value == pytest.approx(value)
        ends = (float(back(scale(value) - reach)), float(back(scale(value) + reach)))
        assert (found.low, found.high) == pytest.approx(ends)


def test_two_enrolled_speakers_match_the_closed_form():
    """With N = 2 z is 1 and -1, so that LID is log2(2 / (1 + exp(-2 w)))."""
    bits = local_disclosure([0.3, 0.1, 5.0, 9.0], [0, 0, 1, 1], [True, False, True, False], 0.7)
    expected = [math.log2(2 / (1 + math.exp(sign * 1.4))) for sign in (-1, 1)]
    assert bits == pytest.approx(expected, abs=1e-12)


def test_perfect_scores_disclose_all_and_equal_scores_nothing():
    rows = np.repeat(np.arange(20), 16)
    is_target = np.tile(np.arange(16), 20) == rows % 16
    speakers = [f"s{row % 16}" for row in range(20)]
    models = np.tile(np.arange(16), 20)

    def found(values):
        trials = GalleryTrials(rows, models, values, is_target, speakers, speakers, ())
        return disclosed_information(trials, resampling=Resampling(100))

    certain = found(is_target.astype(float))
    assert certain.mean.value == pytest.approx(4, abs=0.01)
    assert certain.share.value == 1
    nothing = found(np.ones(320))
    assert nothing.mean.value == 0
    assert nothing.share.value == 0
    assert nothing.largest == 0
    assert math.isnan(nothing.gain.value)


def test_level_and_spread_of_a_row_do_not_matter():
    trials = random_trials(3)
    rng = np.random.default_rng(0)
    changed = (
        rng.uniform(0.1, 9, 12)[trials.rows] * trials.values + rng.normal(size=12)[trials.rows]
    )
    slope = disclosure_slope(trials.values, trials.rows, trials.is_target)
    assert disclosure_slope(changed, trials.rows, trials.is_target) == pytest.approx(slope)


def test_no_speaker_is_calibrated_on_own_recordings():
    trials = random_trials(1)
    speakers, folds = np.unique(trials.owners, return_inverse=True)
    slopes = crossed_slopes(trials.values, trials.rows, trials.is_target, folds)
    own = folds[trials.rows] == 2
    changed = np.where(own, trials.values**3 + 7 * trials.is_target, trials.values)
    others = crossed_slopes(changed, trials.rows, trials.is_target, folds)
    assert (slopes == others).tolist() == [name == "s2" for name in speakers]


@pytest.mark.parametrize(
    ("owner", "sign", "text"),
    [
        ("b", 1, ""),
        ("s", 1, "5 of 5 speakers of the background are tested as well (s0, s1, s2, ...)"),
        ("b", -1, "REVERSED? target speakers of the background score low"),
    ],
)
def test_a_background_that_is_tested_or_reversed_raises_a_warning(owner, sign, text, caplog):
    trials = random_trials(1)
    background = random_trials(2)
    background = background._replace(
        owners=[owner + name[1:] for name in background.owners], values=sign * background.values
    )
    disclosed_information(trials, background=background, resampling=NONE)
    assert text in caplog.text
    assert bool(text) == bool(caplog.text)


def test_background_speakers_calibrate_all_rows():
    trials = random_trials(1)
    background = random_trials(2)
    slope = disclosure_slope(background.values, background.rows, background.is_target)
    found = disclosed_information(trials, background=background, resampling=NONE)
    assert found.slope == pytest.approx(slope)
    assert found.bits == pytest.approx(brute_bits(trials, [slope] * 12), abs=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_drawn_galleries_keep_the_target_speaker_and_have_the_requested_size(seed):
    trials = random_trials(seed)
    smaller = drawn_gallery(trials, 3, np.random.default_rng(seed))
    sizes = np.bincount(trials.rows)
    assert np.bincount(smaller.rows).tolist() == np.minimum(sizes, 3).tolist()
    assert np.bincount(smaller.rows[smaller.is_target]).tolist() == [1] * 12


def test_drawn_galleries_are_uniform():
    trials = GalleryTrials(
        np.zeros(6, np.int64), np.arange(6), np.zeros(6), np.arange(6) == 2, ["a"], ["t"], ()
    )
    rng = np.random.default_rng(0)
    drawn = [drawn_gallery(trials, 3, rng).models.tolist() for _ in range(3000)]
    counts = np.bincount(np.ravel(drawn), minlength=6)
    assert counts[2] == 3000
    assert np.delete(counts, 2) / 3000 == pytest.approx(0.4, abs=0.04)


def leak(kind, *, n_rows=2000, n_enrolled=40):
    """Trials of 2,000 recordings that leak in one of three ways."""
    rng = np.random.default_rng(0)
    owner = rng.integers(0, n_enrolled, n_rows)
    is_target = np.arange(n_enrolled) == owner[:, None]
    scores = rng.normal(size=is_target.shape)
    if kind == "everybody a little":
        scores[is_target] += 0.55
    elif kind == "one in ten fully":
        scores[is_target] += np.where(rng.random(n_rows) < 0.1, 8.0, 0.0)
    else:
        scores[is_target] += 3.0
        scores += 10 * rng.normal(size=(n_rows, 1))
    return scores, is_target, owner


@pytest.mark.parametrize(
    ("kind", "rate", "first", "mean", "share", "gain", "largest"),
    [
        ("everybody a little", 38.2, 7.6, 0.22, 62, 0.75, 2.40),
        ("one in ten fully", 47.0, 12.6, 0.15, 47, 0.94, 3.25),
        ("every recording has a level of its own", 43.1, 78.6, 4.26, 95, 4.61, 5.32),
    ],
)
def test_three_kinds_of_leaks_are_distinguished(kind, rate, first, mean, share, gain, largest):
    """Expected numbers are those of another implementation, on its own random numbers."""
    scores, is_target, owner = leak(kind)
    rows, models = np.indices(scores.shape).reshape(2, -1)
    names = [f"s{number:02d}" for number in owner]
    trials = GalleryTrials(
        rows, models, scores.ravel(), is_target.ravel(), names, [str(row) for row in rows[::40]], ()
    )
    found = disclosed_information(trials, resampling=Resampling(50))
    assert 100 * eer(scores[is_target], scores[~is_target]) == pytest.approx(rate, abs=2)
    assert 100 * (scores.argmax(axis=1) == owner).mean() == pytest.approx(first, abs=2)
    assert found.mean.value == pytest.approx(mean, abs=0.05)
    assert 100 * found.share.value == pytest.approx(share, abs=3)
    assert found.gain.value == pytest.approx(gain, abs=0.1)
    assert found.largest == pytest.approx(largest, abs=0.5)


def test_the_curve_ends_at_the_whole_gallery():
    scores, is_target, owner = leak("level", n_rows=300, n_enrolled=12)
    rows, models = np.indices(scores.shape).reshape(2, -1)
    names = [f"s{number:02d}" for number in owner]
    trials = GalleryTrials(rows, models, scores.ravel(), is_target.ravel(), names, names, ())
    curve = disclosure_curve(trials, [2, 6, 12], draws=3, resampling=Resampling(50))
    whole = disclosed_information(trials, resampling=Resampling(50))
    assert curve[12]["mean"].value == pytest.approx(whole.mean.value)
    assert 0 < curve[2]["mean"].value < curve[12]["mean"].value
    assert curve[2]["mean"].high < 1
    with pytest.raises(DataError, match="from 2 to 12"):
        disclosure_curve(trials, [13])


def test_rows_come_from_scores_and_key():
    models = ["a", "b", "c"] * 3
    segments = ["t"] * 3 + ["s"] * 3 + ["x"] * 3
    truth = [True, False, False, False, True, False, False, False, False]
    key = Key.from_ids(models, segments, truth)
    scores = Scores.from_ids(models, segments, np.arange(9.0))
    trials = gallery_trials(scores, key)
    assert (trials.owners, trials.segments) == (["a", "b"], ["t", "s"])
    assert trials.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert trials.rows.tolist() == [0, 0, 0, 1, 1, 1]
    assert "1 segment without a target trial" in trials.notes[0]


@pytest.mark.parametrize(
    ("values", "is_target", "message"),
    [
        ([1.0, np.inf, 0.0, 0.0], [True, False, True, False], "finite"),
        (
            [1.0, 0.0, 0.0, 0.0],
            [True, True, True, False],
            "one target trial in each row, got 2 in 0",
        ),
        ([1.0, 0.0, 0.0, 0.0], [True, False, False, False], "got 0 in 1"),
    ],
)
def test_wrong_trials_raise(values, is_target, message):
    with pytest.raises(DataError, match=message):
        local_disclosure(values, [0, 0, 1, 1], is_target, 1.0)


def test_one_speaker_cannot_calibrate():
    trials = random_trials(0)._replace(owners=["s0"] * 12)
    with pytest.raises(DataError, match="at least 2 tested speakers"):
        disclosed_information(trials)
