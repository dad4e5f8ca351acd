"""Linkability over draws: the mean of the draws, and an interval that holds speakers and draws."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from evaluation.linkage import (
    Ranks,
    linkability_at_sizes,
    linkability_by_row,
    linkability_over_draws,
)
from evaluation.linkage.curve import _parts
from evaluation.uncertainty import Resampling, draw_variance

SPEAKERS = np.repeat([f"s{number:02d}" for number in range(12)], 5)
SIZES = np.array([2, 5, 12])
RESAMPLING = Resampling(400, 0)


def ranks(seed: int, best: int = 0) -> Ranks:
    rng = np.random.default_rng(seed)
    beaters = np.minimum(best + rng.poisson(1.5, 60), 11)
    return Ranks(beaters, np.zeros(60, int), 11, speakers=SPEAKERS)


def test_values_are_means_of_draws() -> None:
    draws = [ranks(seed) for seed in range(3)]
    found = linkability_over_draws(draws, SIZES, resampling=RESAMPLING)
    assert_allclose(found.values, np.mean([linkability_at_sizes(one, SIZES) for one in draws], axis=0))
    assert (found.low < found.values).all()
    assert (found.values < found.high).all()
    bare = linkability_over_draws(draws, SIZES)
    assert np.isnan(bare.low).all()


def test_a_draw_that_is_worse_for_all_widens_the_interval() -> None:
    alike = linkability_over_draws([ranks(seed) for seed in range(3)], SIZES, resampling=RESAMPLING)
    apart = linkability_over_draws(
        [ranks(seed, best) for seed, best in ((0, 0), (1, 2), (2, 4))], SIZES, resampling=RESAMPLING
    )
    assert (apart.high - apart.low > 1.5 * (alike.high - alike.low)).all()


def test_the_parts_of_the_variance_are_those_of_resamples() -> None:
    """Oracle: the general formula, which needs resamples of speakers."""
    draws = [ranks(seed, best) for seed, best in ((0, 0), (1, 1), (2, 2))]
    weights = np.random.default_rng(0).multinomial(12, np.full(12, 1 / 12), 50_000)
    of_rows = np.repeat(weights, 5, axis=1)
    resampled = [of_rows @ linkability_by_row(one, SIZES) / of_rows.sum(axis=1, keepdims=True) for one in draws]
    speakers, added, count = _parts(draws, SIZES, 1)
    assert count == 12
    for column, size in enumerate(SIZES.tolist()):
        values = [linkability_at_sizes(one, [size])[0] for one in draws]
        expected = draw_variance(values, [drawn[:, column] for drawn in resampled], n_units=12)
        assert_allclose((speakers[column], added[column]), expected, rtol=0.05, atol=1e-5)
