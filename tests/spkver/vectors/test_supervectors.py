"""MAP adaptation: its limits, and supervectors of sessions and of models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import stored

from spkbase.errors import ConfigError
from spkbase.work import Work
from spkver.mixture import GaussianMixture, Statistics
from spkver.vectors.supervectors import (
    MapConfig,
    adapt_multisession,
    adapt_supervectors,
    sum_by_model,
    supervector_scale,
)

PLAIN = {"normalise": False}


def random_mixture(rng):
    weights = rng.uniform(0.5, 1.5, 4)
    return GaussianMixture(
        weights / weights.sum(), rng.standard_normal((4, 3)), rng.uniform(0.3, 2, (4, 3))
    )


def random_statistics(rng, models, dtype=np.float64, empty=()):
    zeroth = rng.uniform(0.5, 20, (len(models), 4))
    zeroth[:, list(empty)] = 0
    first = (zeroth[..., None] * rng.standard_normal((len(models), 4, 3))).reshape(len(models), -1)
    segments = np.array([f"s{row}" for row in range(len(models))], object)
    return Statistics(np.array(models, object), segments, zeroth.astype(dtype), first.astype(dtype))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("relevance", [0.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_component_without_frames_is_unchanged(rng, relevance, dtype):
    mixture, statistics = (
        random_mixture(rng),
        random_statistics(rng, ["a", "b"], dtype, empty=(1, 3)),
    )
    multisession = adapt_multisession(
        mixture, statistics, MapConfig(relevance=relevance, **PLAIN)
    ).vectors
    single = adapt_supervectors(mixture, statistics, MapConfig(relevance=3.0, **PLAIN)).vectors
    for vectors in (multisession, single):
        components = vectors.reshape(2, 4, 3)
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(
            components[:, [1, 3]], np.tile(mixture.means[[1, 3]], (2, 1, 1)), atol=1e-6
        )
        assert vectors.dtype == dtype


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1e4))
def test_adapted_means_lie_between_prior_and_data(seed, relevance):
    rng = np.random.default_rng(seed)
    mixture, statistics = random_mixture(rng), random_statistics(rng, ["a"])
    found = (
        adapt_multisession(mixture, statistics, MapConfig(relevance=relevance, **PLAIN))
        .vectors[0]
        .reshape(4, 3)
    )
    data = statistics.first[0].reshape(4, 3) / statistics.zeroth[0][:, None]
    share = statistics.zeroth[0] / (statistics.zeroth[0] + relevance)
    np.testing.assert_allclose(
        found, share[:, None] * data + (1 - share[:, None]) * mixture.means, atol=1e-12
    )


def test_normalisation_scales_the_means(rng):
    mixture, statistics = random_mixture(rng), random_statistics(rng, ["a", "b"])
    plain = adapt_supervectors(mixture, statistics, MapConfig(normalise=False)).vectors
    scaled = adapt_supervectors(mixture, statistics, MapConfig(normalise=True)).vectors
    expected = np.sqrt(np.repeat(mixture.weights, 3) / mixture.variances.ravel())
    np.testing.assert_allclose(supervector_scale(mixture), expected, rtol=1e-14)
    np.testing.assert_allclose(scaled, plain * expected, rtol=1e-12)


@pytest.mark.parametrize("relevance", [-1.0, float("nan")])
def test_bad_relevance_factors_are_refused(relevance):
    with pytest.raises(ConfigError, match=r"map\.relevance"):
        MapConfig(relevance=relevance)


# --- in files --------------------------------------------------------------------------------------------------------


def many_statistics(folder=None):
    """70 rows of 40 models, most of several rows; of one model more rows than are read at once."""
    rng = np.random.default_rng(3)
    models = [
        f"m{number:02d}" for number in [*rng.permutation(40), *rng.integers(0, 40, 30), *[7] * 40]
    ]
    mixture, found = random_mixture(rng), random_statistics(rng, models, np.float32, empty=(2,))
    if folder is not None:
        parts = (stored(getattr(found, name), folder, name) for name in ("zeroth", "first"))
        found = Statistics(found.models, found.segments, *parts)
    return mixture, found


def test_statistics_in_a_file_give_equal_supervectors(tmp_path):
    mixture, here = many_statistics()
    _, there = many_statistics(tmp_path)
    for function in (adapt_supervectors, adapt_multisession):
        expected = function(mixture, here).vectors
        for statistics in (here, there):
            for jobs in (1, 3):
                np.testing.assert_array_equal(
                    function(mixture, statistics, work=Work(jobs=jobs)).vectors, expected
                )
    ours, theirs = (sum_by_model(given, here.first.dtype) for given in (here, there))
    np.testing.assert_array_equal(np.asarray(ours.first), np.asarray(theirs.first))
    np.testing.assert_array_equal(ours.zeroth, theirs.zeroth)
    rows = np.flatnonzero(here.models == "m07")
    total = np.zeros_like(here.first[0])
    for row in rows:
        total += here.first[row]
    np.testing.assert_array_equal(
        np.asarray(ours.first)[7], total, "summed in the order of the rows"
    )
