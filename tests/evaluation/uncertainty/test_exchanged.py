"""The bound of the equal error rate with exchanged files, beside simulated trials."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.metrics import eer
from evaluation.uncertainty import eer_bound, eer_guess, share_of_trials


@pytest.mark.parametrize("separation", [0.2, 0.6, 1.6])
@pytest.mark.parametrize("enrolment", [0.0, 0.2])
@pytest.mark.parametrize("tests", [0.1, 0.36, 0.6])
def test_the_true_rate_lies_between_the_bound_and_the_measured_rate(
    separation: float, enrolment: float, tests: float
) -> None:
    """Scores of trials: where either side is exchanged, a target trial has the scores of a nontarget trial."""
    rng = np.random.default_rng(0)
    n_trials = 50_000
    nontarget = rng.normal(size=n_trials)
    target = rng.normal(separation, size=n_trials)
    is_exchanged = (rng.random(n_trials) < enrolment) | (rng.random(n_trials) < tests)
    measured = eer(np.where(is_exchanged, rng.normal(size=n_trials), target), nontarget)
    share = share_of_trials(enrolment, tests)
    threshold = np.quantile(nontarget, 1 - measured)
    missed = np.mean(target[~is_exchanged] < threshold)
    assert eer_bound(measured, share) == pytest.approx(missed, abs=0.01)
    true = eer(target, nontarget)
    assert eer_bound(measured, share) <= true <= measured
    if share < 0.4:
        assert eer_guess(measured, share) == pytest.approx(true, abs=0.02)


def test_a_share_of_zero_changes_nothing_and_an_unknown_share_gives_no_bound() -> None:
    rates = np.linspace(0, 0.5, 11)
    np.testing.assert_allclose(eer_bound(rates, 0.0), rates)
    np.testing.assert_allclose(eer_guess(rates, 0.0), rates)
    assert not eer_bound(rates, np.nan).any()
    assert not eer_bound(rates, 1.0).any()
    np.testing.assert_allclose(eer_bound(0.5, [0.1, 0.9]), 0.5)
