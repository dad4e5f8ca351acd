"""A short form of the coverage study, benchmarks/coverage.py: the methods hold, resamples of trials do not."""

from argparse import Namespace

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks.coverage import metrics, study, true_metrics


def test_true_values_equal_those_of_a_large_simulation():
    """The closed forms against 160,000 independent trials, within a tolerance of 4 standard errors or so."""
    from benchmarks.coverage import OFFSET, SCALE
    from evaluation.metrics.sorted_scores import sort_scores

    rng, d, count = np.random.default_rng(0), 2.0, 80_000
    target, nontarget = (
        SCALE * (sign * d * d / 2 + d * rng.standard_normal(count)) + OFFSET for sign in (1, -1)
    )
    found, true = metrics(sort_scores(target, nontarget)), true_metrics(d)
    assert true["eer.rocch"] == pytest.approx(ndtr(-1), abs=1e-15)
    for name, value in true.items():
        assert found[name] == pytest.approx(value, abs=0.008), name


@pytest.mark.slow
def test_intervals_have_their_nominal_coverage():
    """20 speakers, 200 repetitions: bounds are 92 to 98 % and two and a half standard errors more on either side."""
    single, _ = study(
        20, 2.5, Namespace(ratio=1.2, resamples=150, repetitions=200, first_seed=0, jobs=2)
    )
    for name in (
        "eer.interpolated",
        "eer.rocch",
        "min_dcf_unnormalised.0.05",
        "cllr",
        "min_cllr",
        "zebra.population",
    ):
        covered, _, by_trial = 1 - single[name].sum(axis=1)
        assert 0.88 <= covered <= 1, name
        assert by_trial < covered - 0.1, name
