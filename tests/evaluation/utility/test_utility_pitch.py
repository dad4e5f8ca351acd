"""Pitch correlation, against definitions written out and synthetic voices whose pitch is known."""

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.uncertainty.resampling import Resampling
from evaluation.utility.pitch import (
    TrackComparison,
    compare_recordings,
    compare_tracks,
    mean_correlation,
)
from spkbase.errors import DataError
from spkver.features import pitch_track

pytestmark = pytest.mark.whole


def contour(seed, length=120):
    """A track that wanders, with gaps without voice."""
    rng = np.random.default_rng(seed)
    track = 150 + np.cumsum(rng.normal(0, 2, length))
    for start in rng.integers(0, length, 3):
        track[start : start + 12] = 0
    return np.maximum(track, 0)


def circular(one, other):
    """The rule of 2022 written out: sums of products at each lag, then a circular shift, then Pearson on all frames."""
    count = len(one)
    sums = {
        lag: sum(one[n] * other[n - lag] for n in range(count) if 0 <= n - lag < count)
        for lag in range(-count + 1, count)
    }
    best = max(sums.values())
    lag = min(
        (lag for lag, value in sums.items() if value >= best * (1 - 1e-9)),
        key=lambda lag: (abs(lag), lag),
    )
    moved = np.array([other[(n - lag) % count] for n in range(count)])
    return float(np.corrcoef(one, moved)[0, 1]), lag


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(0, 999))
def test_the_rule_of_2022_is_applied(first, second):
    one, other = contour(first, 60), contour(second, 60)
    found = compare_tracks(one, other, convention="vpc2022")
    expected, lag = circular(one, other)
    assert found.lag == lag
    assert found.correlation == pytest.approx(expected)


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(0, 999), st.floats(0.5, 2))
def test_scale_and_order_change_nothing(first, second, factor):
    one, other = contour(first), contour(second)
    found, turned = compare_tracks(one, other), compare_tracks(factor * other, one)
    assert turned.lag == -found.lag
    assert turned.correlation == pytest.approx(found.correlation, nan_ok=True)
    assert turned.voicing_agreement == found.voicing_agreement


def test_a_delay_is_found_without_wrapping_around():
    track = contour(1, 200)
    late = np.concatenate([np.zeros(15), track[:-15]])
    found = compare_tracks(track, late)
    assert (found.lag, found.correlation) == (-15, pytest.approx(1))
    assert found.voicing_agreement == 1
    rolled = compare_tracks(track, np.roll(track, 15))
    assert rolled.correlation == pytest.approx(1)
    assert compare_tracks(
        track, np.roll(track, 15), convention="vpc2022"
    ).correlation == pytest.approx(1)


def test_unrelated_pitch_is_uncorrelated_despite_equal_voicing():
    """Where the pitch itself is unrelated, the rule of 2022 still sees a high correlation, made by the gaps."""
    rng = np.random.default_rng(4)
    voiced = np.tile(np.repeat([True, False], [25, 25]), 8)
    one, other = (np.where(voiced, 150 + rng.normal(0, 5, 400), 0) for _ in range(2))
    assert compare_tracks(one, other, convention="vpc2022").correlation > 0.99
    assert abs(compare_tracks(one, other).correlation) < 0.3


def test_the_default_is_pearson_over_frames_voiced_in_both():
    one, other = contour(2), contour(3)
    found = compare_tracks(one, other)
    lag = found.lag
    pairs = [(one[n], other[n - lag]) for n in range(len(one)) if 0 <= n - lag < len(other)]
    voiced = np.array([pair for pair in pairs if min(pair) > 0])
    assert found.correlation == pytest.approx(np.corrcoef(voiced.T)[0, 1])
    assert found.voicing_agreement == pytest.approx(np.mean([(a > 0) == (b > 0) for a, b in pairs]))
    assert abs(lag) <= 20


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(50), contour(0, 50)),
        (np.full(50, 120.0), contour(0, 50)),
        (np.r_[contour(0, 9), np.zeros(41)], np.r_[np.zeros(41), contour(1, 9)]),
        (np.array([100.0]), np.array([100.0])),
    ],
    ids=["no voice", "monotone", "never together", "one frame"],
)
def test_undefined_correlations_are_nan(one, other):
    assert np.isnan(compare_tracks(one, other).correlation)
    assert not np.isnan(compare_tracks(one, other, convention="vpc2022").correlation)


def test_tracks_of_different_length_are_stretched_within_voice_only():
    track = np.r_[np.zeros(20), np.linspace(100, 200, 60), np.zeros(20)]
    longer = np.r_[np.zeros(40), np.linspace(100, 200, 120), np.zeros(40)]
    found = compare_tracks(track, longer)
    assert found.correlation > 0.999
    assert found.voicing_agreement >= 0.98
    one = compare_tracks(
        np.r_[np.zeros(30), np.full(40, 150.0) + np.arange(40)],
        np.r_[np.zeros(21), 150 + np.arange(28.0)],
    )
    assert one.correlation > 0.99


@pytest.mark.parametrize(
    "track", [np.zeros(0), np.array([-1.0]), np.array([np.nan]), np.zeros((2, 2))]
)
def test_bad_tracks_are_refused(track):
    with pytest.raises(DataError, match="expected a track"):
        compare_tracks(track, np.ones(3))


def test_the_mean_omits_and_counts_undefined_values():
    compared = {
        "a1": TrackComparison(0.9, 0, 1.0),
        "a2": TrackComparison(0.5, 0, 0.8),
        "b1": TrackComparison(0.1, 0, 0.6),
        "b2": TrackComparison(np.nan, 0, 0.0),
    }
    speakers = {one: one[0] for one in compared}
    found = mean_correlation(compared, speakers, resampling=Resampling(30, 2))
    assert found.interval.value == pytest.approx(0.5)
    assert (found.n_utterances, found.n_undefined) == (4, 1)
    assert found.speakers == {"a": pytest.approx(0.7), "b": pytest.approx(0.1)}
    assert found.deviation == pytest.approx(np.std([0.9, 0.5, 0.1]))
    assert found.voicing_agreement == pytest.approx(0.6)
    with pytest.raises(DataError, match="no utterance has a defined"):
        mean_correlation({"b2": compared["b2"]}, speakers)


def voice(pitch, rate):
    """Harmonics of a pitch in Hz, one value each sample; silence where it is 0."""
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, 8)) * (pitch > 0)


def test_recordings_are_compared_and_bad_files_are_named(tmp_path):
    rate = 16000
    pitch = 150 + 40 * np.sin(np.linspace(0, 9, rate))
    files = {}
    for name, factor in (("o", 1.0), ("a", 1.3)):
        soundfile.write(tmp_path / f"{name}.wav", voice(factor * pitch, rate), rate)
        files[name] = tmp_path / f"{name}.wav"
    found = compare_recordings({"u": files["o"]}, {"u": files["a"]}, pitch_track, jobs=1)
    assert found["u"].correlation > 0.98
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    soundfile.write(tmp_path / "two.wav", np.zeros((100, 2)), rate)
    soundfile.write(tmp_path / "slow.wav", voice(np.full(1600, 100.0), 800), 800)
    soundfile.write(tmp_path / "none.wav", np.zeros(0), rate)
    pairs = {name: tmp_path / f"{name}.wav" for name in ("bad", "two", "slow", "none")}
    with pytest.raises(DataError) as caught:
        compare_recordings(dict.fromkeys(pairs, files["o"]), pairs, pitch_track, jobs=1)
    for problem in (
        "4 problems",
        "bad.wav: not readable as audio",
        "two.wav: expected one channel of finite samples, got samples of shape (100, 2)",
        "slow.wav: expected a pitch between 0 and half of the rate of 800 Hz, got 75",
        "none.wav: expected one channel of finite samples, got",
    ):
        assert problem in str(caught.value)
    with pytest.raises(DataError, match="1 utterance missing: 'u'; 1 utterance unknown: 'w'"):
        compare_recordings({"u": files["o"]}, {"w": files["o"]}, pitch_track)
