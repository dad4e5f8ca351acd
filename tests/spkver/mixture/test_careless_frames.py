"""Frames that a mixture cannot be trained on as they are: far from 0, constant, of other types."""

import logging

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.features import Frames
from spkver.mixture import (
    GaussianMixture,
    HiddenMarkovConfig,
    UbmConfig,
    accumulate_statistics,
    e_step,
    log_likelihood,
    train_ubm,
    train_word_models,
)

RNG = np.random.default_rng(0)
CLUSTERS = RNG.normal(size=(2000, 2)) + np.array([[0, 0], [6, 0]]).repeat(1000, axis=0)
STANDARD = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2)))
TYPES = [bool, str, "S8", complex, "datetime64[s]"]


def frames_of(values):
    return Frames(np.array(["a", "b"], object), np.array([0, 1000, 2000]), values)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize(
    ("offset", "dimensions"),
    [
        ([0, 0], None),
        ([3, 0], None),
        ([0, 9], None),
        ([0, 11], "1"),
        ([50, 0], "0"),
        ([1e3, 1e3], "0, 1"),
        ([1e7, 0], "0"),
    ],
)
def test_a_mean_far_from_0_that_raises_the_variance_floor_raises_a_warning(
    caplog, covariance, offset, dimensions
):
    with caplog.at_level(logging.WARNING):
        train_ubm(
            CLUSTERS + offset,
            UbmConfig(components=2, iterations=(1,), full_iterations=1, covariance=covariance),
        )
    texts = [
        record.getMessage() for record in caplog.records if "variance floor" in record.getMessage()
    ]
    assert len(texts) == (dimensions is not None)
    if dimensions is not None:
        assert f"dimensions {dimensions}, whose" in texts[0]
        assert "normalise" in texts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normalised_frames_raise_no_warning(caplog, dtype):
    frames = (CLUSTERS - CLUSTERS.mean(axis=0)) / CLUSTERS.std(axis=0)
    with caplog.at_level(logging.WARNING):
        train_ubm(frames.astype(dtype), UbmConfig(components=4, variance_floor=0.3))
    assert not caplog.records


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16])
def test_integer_frames_train_the_same_mixture_as_floats(dtype):
    whole = np.round(10 * CLUSTERS + 40).clip(0, 120)
    one, other = (
        train_ubm(values, UbmConfig(components=2)) for values in (whole.astype(dtype), whole)
    )
    np.testing.assert_array_equal(one.means, other.means)
    np.testing.assert_array_equal(one.variances, other.variances)


@pytest.mark.parametrize("dtype", TYPES)
def test_frames_of_other_types_are_refused(dtype):
    frames = CLUSTERS.astype(np.int64).astype(dtype)
    for function in (
        lambda: train_ubm(frames, UbmConfig(components=2)),
        lambda: e_step(frames, STANDARD),
        lambda: log_likelihood(frames, STANDARD),
        lambda: accumulate_statistics(STANDARD, frames_of(frames), ["a"], ["a"]),
        lambda: train_word_models(frames_of(frames), {"a": ("yes",), "b": ("no",)}),
    ):
        with pytest.raises(DataError, match="expected numbers as frames, got"):
            function()


@pytest.mark.parametrize("dtype", [np.int64, object, np.float16])
def test_frames_of_other_types_have_the_statistics_of_floats(dtype):
    whole = np.round(100 * CLUSTERS)
    found, expected = (
        accumulate_statistics(STANDARD, frames_of(values), ["a"], ["a"])
        for values in (whole.astype(dtype), whole)
    )
    np.testing.assert_array_equal(found.first, expected.first)
    np.testing.assert_array_equal(
        e_step(whole.astype(dtype), STANDARD).second, e_step(whole, STANDARD).second
    )


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e8 + 1 / 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_word_models_of_constant_dimensions_are_refused(value, dtype):
    values = CLUSTERS.astype(dtype)
    values[:, 1] = value
    config = HiddenMarkovConfig(states=2, components=1, rounds=1)
    with pytest.raises(DataError, match=r"dimensions 1 of the frames do not vary"):
        train_word_models(frames_of(values), {"a": ("yes", "no"), "b": ("no", "yes")}, config)
