"""Intervals of error rates where errors are few: resamples of a handful of errors do not show how many there might be.

Conventions
-----------
The resamples' variance v says how many independent trials a rate p is worth, p (1 - p) / v, and p times that how many
independent errors it rests on (Korn and Graubard [1]_ do so for surveys). With at least `PLENTY` independent errors the
usual interval holds. Below, an interval of a binomial share takes its place, by Jeffreys' prior [2]_, of as many trials
as the resamples show, but with fewer than `TRUSTED` errors of fewer ones: down to what trials are worth where there is
no error at all. Between `ALONE` and `PLENTY` errors the two are mixed on the logit scale, so that nothing jumps.

Without an error the interval is a bound from above alone, at the whole level: the rate at which n speakers with N / n
trials each would show no error in 5 % of the cases. Nothing tells then how often a speaker's trials fail together; they
do as scores of which `OF_SPEAKERS` of the variance is the speaker's, which is more than in studies of ours. No interval
of more errors ends below that bound, so that the upper end does not fall as errors grow; and none is narrower than one
error of one trial.

References
----------
.. [1] E. Korn and B. Graubard, "Confidence intervals for proportions with small expected number of positive counts
   estimated from survey data", Survey Methodology 24, 1998.
.. [2] L. Brown, T. Cai and A. DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16, 2001.
"""

from __future__ import annotations

from functools import cache

import numpy as np

TRUSTED, ALONE, PLENTY = 2.0, 1.0, 4.0
OF_SPEAKERS = 0.7
_LEAST = 1e-9


def independent_errors(rate: float, variance: float, n_trials: int) -> float:
    """Return how many independent errors a rate rests on: p * min(N, p (1 - p) / v).

    Parameters
    ----------
    rate : float
        Error rate p, below 1.
    variance : float
        Of its resamples; 0 where they are all the same.
    n_trials : int
        Number N of trials of the scarcer class.

    Examples
    --------
    >>> independent_errors(0.1, 0.1 * 0.9 / 50, 400)
    5.0
    """
    trials = rate * (1 - rate) / variance if variance > 0 else float(n_trials)
    return float(rate * min(trials, n_trials))


@cache
def end_without_error(n_units: int, n_trials: int, level: float = 0.95) -> float:
    """Return the rate at which no error would be seen in a share 1 - level of the cases.

    Parameters
    ----------
    n_units : int
        Number n of speakers, whose scores have an effect u of their own.
    n_trials : int
        Number N of trials of the scarcer class, N / n a speaker.
    level : float
        Of a bound from above alone.

    Returns
    -------
    float
        p of (E[(1 - q(u))^(N / n)])^n = 1 - level, where q(u) = Phi((Phi^-1(p) + sqrt(s) u) / sqrt(1 - s)), s =
        `OF_SPEAKERS` and u is standard normal.

    Examples
    --------
    >>> round(end_without_error(10, 70), 3)
    0.093
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    effects, weights = np.polynomial.hermite_e.hermegauss(151)

    def excess(scaled: float) -> float:
        passed = ndtr(-(scaled + np.sqrt(OF_SPEAKERS) * effects) / np.sqrt(1 - OF_SPEAKERS))
        return float((passed ** (n_trials / n_units) @ weights / weights.sum()) ** n_units - (1 - level))

    return float(ndtr(brentq(excess, -12.0, 12.0)))


def rate_interval(
    rate: float, variance: float, *, n_units: int, n_trials: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of an error rate of few errors.

    Parameters
    ----------
    rate, variance, n_trials
        See `independent_errors`.
    n_units : int
        Number n of speakers.
    level : float
        Share of true values that such intervals should cover at least.

    Returns
    -------
    low, high : float
        Jeffreys' interval of p m errors in m trials, where m = m0 + (p (1 - p) / v - m0) min(1, e / `TRUSTED`) for e
        independent errors and 1 - (1 - level)^(1 / m0) = `end_without_error`, which is the least upper end and, from 0,
        the interval without an error.

    Examples
    --------
    >>> low, high = rate_interval(0.0, 0.0, n_units=23, n_trials=200)
    >>> low, round(high, 2)
    (0.0, 0.03)
    """
    from scipy.special import betaincinv

    least = end_without_error(n_units, n_trials, level)
    if rate <= 0:
        return 0.0, least
    errors, blank = independent_errors(rate, variance, n_trials), float(np.log(1 - level) / np.log1p(-least))
    trials = errors / rate
    if trials > blank:
        trials = blank + (trials - blank) * min(1.0, errors / TRUSTED)
    prior = rate * trials + 0.5, trials - rate * trials + 0.5
    low, high = (float(betaincinv(*prior, share)) for share in ((1 - level) / 2, (1 + level) / 2))
    low = min(low, rate)
    return low, min(1.0, max(high, rate, low + 1 / n_trials, least))


def mixed(few: tuple[float, float], usual: tuple[float, float], errors: float) -> tuple[float, float]:
    """Return the ends between those of `rate_interval` and the usual ones, by the number of independent errors.

    Examples
    --------
    >>> mixed((0.1, 0.2), (0.3, 0.4), 0.5), mixed((0.1, 0.2), (0.3, 0.4), 7)
    ((0.1, 0.2), (0.3, 0.4))
    """
    share = min(1.0, max(0.0, (errors - ALONE) / (PLENTY - ALONE)))
    if share in (0.0, 1.0):
        return usual if share else few
    ends = np.clip(np.array([few, usual]), _LEAST, 1 - _LEAST)
    low, high = (np.array([1 - share, share]) @ np.log(ends / (1 - ends))).tolist()
    return float(1 / (1 + np.exp(-low))), float(1 / (1 + np.exp(-high)))
