"""Shifted deltas, sliding normalisation and warping, by loops over frames; masks."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from spkbase.errors import ConfigError
from spkver.features import (
    FeatureConfig,
    gaussianise,
    post_process,
    shifted_deltas,
    sliding_normalise,
)

LENGTHS = [(1, 5), (4, 5), (5, 5), (6, 5), (40, 7), (300, 60), (301, 300)]


def frames_of(length, width=3):
    return np.random.default_rng(length).normal(size=(length, width)).cumsum(axis=0)


def kaldi_window(time, length, window):
    """As apply-cmvn-sliding --center=true moves it."""
    start = time - window // 2
    end = start + window
    if start < 0:
        end -= start
        start = 0
    if end > length:
        start -= end - length
        end = length
        start = max(start, 0)
    return slice(start, end)


@pytest.mark.parametrize(("length", "window"), LENGTHS)
@pytest.mark.parametrize("variance", [False, True])
def test_sliding_normalisation_equals_kaldi(length, window, variance):
    frames = frames_of(length)
    found = sliding_normalise(frames, window=window, variance=variance)
    for time in range(length):
        around = frames[kaldi_window(time, length, window)]
        expected = frames[time] - around.mean(axis=0)
        if variance:
            spread = np.maximum((around**2).mean(axis=0) - around.mean(axis=0) ** 2, 1e-10)
            expected = expected / np.sqrt(spread)
        np.testing.assert_allclose(found[time], expected, atol=1e-6)


@pytest.mark.parametrize(("length", "window"), LENGTHS)
def test_warping_gives_the_normal_quantile_of_the_rank(length, window):
    frames = frames_of(length)
    frames[::3] = np.round(frames[::3])  # ties
    found = gaussianise(frames, window=window)
    for time in range(length):
        part = kaldi_window(time, length, window)
        around = frames[part]
        rank = rankdata(around, axis=0)[time - part.start]
        np.testing.assert_allclose(found[time], norm.ppf((rank - 0.5) / len(around)), atol=1e-12)


@pytest.mark.parametrize("numbers", [(7, 1, 3, 7), (2, 2, 1, 3), (3, 1, 1, 1)])
def test_shifted_deltas_are_differences_of_later_frames(numbers):
    size, spread, shift, blocks = numbers
    static = frames_of(30, size)
    found = shifted_deltas(static, spread=spread, shift=shift, blocks=blocks)
    assert found.shape == (30, size * blocks)

    def frame(time):
        return static[min(max(time, 0), 29)]

    for time in range(30):
        for block in range(blocks):
            centre = time + block * shift
            expected = frame(centre + spread) - frame(centre - spread)
            np.testing.assert_array_equal(found[time, block * size : (block + 1) * size], expected)


def processed(**values):
    config = FeatureConfig(rasta=False, n_cepstra=6, **values)
    cepstra = frames_of(50, 6)
    speech = np.arange(50) % 5 > 0
    return post_process(cepstra, cepstra[:, 0] ** 2, speech, config)[0], config, cepstra, speech


def test_shifted_deltas_take_the_place_of_deltas():
    frames, config, cepstra, speech = processed(sdc="7-1-3-7", normalisation="none")
    assert frames.shape == (40, config.dimension) == (40, 56)
    static = np.column_stack([cepstra[:, 0] ** 2, cepstra])
    np.testing.assert_array_equal(frames[:, :7], static[speech])
    np.testing.assert_array_equal(
        frames[:, 7:], shifted_deltas(static, spread=1, shift=3, blocks=7)[speech]
    )


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("cmvn_sliding", lambda frames: sliding_normalise(frames, window=11)),
        ("cms_sliding", lambda frames: sliding_normalise(frames, window=11, variance=False)),
        ("stg", lambda frames: gaussianise(frames, window=11)),
    ],
)
def test_windows_slide_over_the_frames_kept(kind, function):
    for keep_all in (False, True):
        plain = processed(normalisation="none", keep_all=keep_all)[0]
        found = processed(normalisation=kind, normalisation_window=11, keep_all=keep_all)[0]
        np.testing.assert_array_equal(found, function(plain))


def test_masks_keep_columns():
    frames = processed(deltas=1)[0]
    masked, config, *_ = processed(deltas=1, mask="0,3-5,13")
    np.testing.assert_array_equal(masked, frames[:, [0, 3, 4, 5, 13]])
    assert config.dimension == 5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sdc": "7-1-3"}, "expected N-d-P-k"),
        ({"sdc": "0-1-3-7"}, "expected N-d-P-k"),
        ({"sdc": "21-1-3-7"}, "takes 21 coefficients, the features have 20"),
        ({"mask": "0-60"}, "up to 59"),
        ({"mask": "3,2"}, "ranges that rise"),
        ({"mask": "4-2"}, "up to 59"),
        ({"mask": "a"}, "such as 0-12,19"),
        ({"normalisation": "stg", "normalisation_window": 0}, "normalisation_window is 0"),
        ({"lifter": -1.0}, "features.lifter is -1.0"),
    ],
)
def test_unusable_values_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(**values)
