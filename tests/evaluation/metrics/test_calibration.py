"""Calibration metrics against single sums, closed forms and search."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from evaluation.metrics.calibration import cllr, ece, min_cllr, min_ece, pav_llrs, softplus
from evaluation.metrics.sorted_scores import sort_scores
from spkbase.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"
scores = st.lists(st.floats(-50, 50), min_size=1, max_size=12) | st.lists(
    st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=1, max_size=12
)
classes = st.tuples(scores, scores)


def single_sum(target, nontarget, prior):
    log_odds = np.log(prior / (1 - prior))
    miss = [np.logaddexp(0, -score - log_odds) for score in target]
    false = [np.logaddexp(0, score + log_odds) for score in nontarget]
    return float((prior * np.mean(miss) + (1 - prior) * np.mean(false)) / np.log(2))


@given(classes, st.floats(1e-4, 1 - 1e-4))
def test_cross_entropy_equals_a_plain_sum(both, prior):
    assert ece(*both, prior=prior) == pytest.approx(single_sum(*both, prior), rel=1e-11)
    assert cllr(*both) == pytest.approx(single_sum(*both, 0.5), rel=1e-11)
    several = ece(*both, prior=np.array([prior, 0.5]))
    assert several.tolist() == [ece(*both, prior=prior), cllr(*both)]


@given(classes, st.floats(1e-3, 1 - 1e-3))
def test_the_minimum_is_a_lower_bound_and_is_reached(both, prior):
    least = min_ece(*both, prior=prior)
    llrs = pav_llrs(*both)
    for of_class, ranked in zip(llrs, pav_llrs(sort_scores(*both)), strict=True):
        assert np.sort(of_class).tolist() == ranked.tolist()
    assert ece(*llrs, prior=prior) == pytest.approx(least, abs=1e-12)
    entropy = -(prior * np.log2(prior) + (1 - prior) * np.log2(1 - prior))
    assert -1e-12 <= least <= entropy + 1e-12
    for scale, offset in ((1, 0), (0.5, 0.3), (2, -1), (0, 0.1)):
        mapped = (scale * np.array(side) + offset for side in both)
        assert least <= ece(*mapped, prior=prior) + 1e-12
    assert min_cllr(*both) <= cllr(*both) + 1e-12


def test_infinite_llrs_have_their_limits():
    assert cllr([np.inf], [-np.inf]) == 0.0
    assert cllr([-np.inf], [0.0]) == np.inf
    assert cllr([0.0], [np.inf]) == np.inf
    assert cllr([1e4, 800.0], [-1e4]) == 0.0
    assert cllr([-1e4], [0.0]) == pytest.approx((1e4 / np.log(2) + 1) / 2)
    assert min_cllr([np.inf, -np.inf], [-np.inf, np.inf]) == 1.0
    np.testing.assert_array_equal(
        softplus(np.array([-np.inf, 0.0, np.inf])), [0.0, np.log(2), np.inf]
    )


@pytest.mark.parametrize("distance", ["0.2", "1", "2", "4"])
def test_gaussian_scores_converge_at_the_rate_of_their_number(distance):
    """At quantiles the error of minCllr falls as n**(-2/3), that of isotonic regression, or quicker."""
    expected = json.loads((DATA / "closed_forms.json").read_text())[distance]["min_cllr"]
    shift = float(distance)
    errors = []
    for n in (1_000, 10_000, 100_000):
        noise = ndtri((np.arange(n) + 0.5) / n) * shift
        target, nontarget = noise + shift**2 / 2, noise - shift**2 / 2
        errors.append(abs(min_cllr(target, nontarget) - expected))
        # these are LLRs already
        assert abs(cllr(target, nontarget) - expected) < 5 / n * max(shift, 1)
    assert errors[-1] < 1e-4
    assert errors[2] < errors[1] < errors[0]
    assert np.log10(errors[0] / errors[2]) / 2 > 0.6


def test_pav_llrs_are_returned_in_the_order_of_their_trials():
    target, nontarget = pav_llrs([3.0, 1.0], [2.0, 0.0], laplace=True)
    # above: one target and Laplace's pair; middle: 1 and 2 in the wrong order; below: one nontarget and Laplace's pair
    assert target == pytest.approx([np.log(2), 0.0])
    assert nontarget == pytest.approx([0.0, -np.log(2)])


@pytest.mark.parametrize("prior", [0, 1, -0.1, np.nan, np.array([0.5, 1.0])])
def test_priors_out_of_range_are_refused(prior):
    for metric in (ece, min_ece):
        with pytest.raises(DataError, match="expected target priors between 0 and 1"):
            metric([1.0], [0.0], prior=prior)
