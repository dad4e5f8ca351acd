"""Intervals of a mean over draws: several anonymised versions of the same trials, each with random numbers of its own.

The speakers are the same in every draw, so there are two factors that cross, P speakers and D draws. With effects of
speakers (variance a), of draws (b) and of a speaker in a draw (c, which holds utterances and trials too) the mean over
draws has the variance

    a / P + b / D + c / (P D).

Resamples of speakers that are shared by all draws see the first and the last term, S = a / P + c / (P D). The spread of
the draws' own values, divided by D, sees the last two, B = b / D + c / (P D). What is in both is seen by what the draws
differ by within a resample: with t_d(w) for the metric of draw d in resample w and t(w) for their mean,

    I = sum over d of Var_w (t_d(w) - t(w)) / (D (D - 1))    estimates    c / (P D).

So the variance is S + max(0, B - I), as for other data of two crossed factors [1]_, [2]_, and the interval of
`evaluation.uncertainty.intervals` is made wider by sqrt(1 + max(0, B - I) / S). B - I has D - 1 degrees of freedom and
S as many as there are speakers, less one; the degrees of their sum are Satterthwaite's [3]_. Where each utterance has a
draw of its own, b is nothing and most of what draws differ by is I: then it is the speakers that are few.

References
----------
.. [1] C. Cameron, J. Gelbach and D. Miller, "Robust inference with multiway clustering", Journal of Business and
   Economic Statistics 29, 2011.
.. [2] A. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007.
.. [3] F. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import Method
from evaluation.uncertainty.intervals import Interval, interval

TOLD = 1.5
"""How many times as wide draws make an interval, from which on its note says so."""


def draw_variance(values: ArrayLike, resampled: ArrayLike, *, n_units: int) -> tuple[float, float]:
    """Return the variance of a mean over draws that speakers account for, and what draws add to it.

    Parameters
    ----------
    values : array_like of float of shape (D,)
        The metric in each draw, D at least 2.
    resampled : array_like of float of shape (D, B)
        The metric of each draw in resamples of speakers that all draws share.
    n_units : int
        Number of speakers, at least 2.

    Returns
    -------
    speakers, draws : float
        S and max(0, B - I) of the module.

    Examples
    --------
    >>> draw_variance([0.1, 0.3], [[0.0, 0.2, 0.1], [0.2, 0.4, 0.3]], n_units=1000)[1].__round__(6)
    0.01
    """
    of_draws, resamples = np.asarray(values, np.float64), np.asarray(resampled, np.float64)
    count = len(of_draws)
    correction = n_units / (n_units - 1)
    means = resamples.mean(axis=0)
    speakers = correction * float(means.var(ddof=1))
    both = correction * float((resamples - means).var(axis=1, ddof=1).sum()) / (count * (count - 1))
    return speakers, max(0.0, float(of_draws.var(ddof=1)) / count - both)


def widening(speakers: ArrayLike, draws: ArrayLike, *, n_units: ArrayLike, n_draws: int, level: float) -> NDArray:
    """Return how many times as wide an interval by speakers alone becomes with what draws add.

    Parameters
    ----------
    speakers, draws : array_like of float
        Of `draw_variance`; 1 comes back where speakers have no spread.
    n_units : array_like of float
        Number of speakers, or one more than the degrees of freedom that the interval was made with.
    n_draws : int
        Number of draws, at least 2.
    level : float
        Of the interval.

    Returns
    -------
    ndarray of float64
        The ratio of deviations times that of the quantiles of Student's t; at least 1.
    """
    from scipy.special import stdtrit

    first, second = np.asarray(speakers, np.float64), np.asarray(draws, np.float64)
    freedom = np.maximum(np.asarray(n_units, np.float64) - 1, 1.0)
    known = (first > 0) & (second > 0) & np.isfinite(first + second)
    share = np.divide(second, first, out=np.zeros(np.broadcast(first, second).shape), where=known)
    joint = (1 + share) ** 2 / (1 / freedom + share**2 / (n_draws - 1))
    ratio = stdtrit(np.minimum(joint, freedom), (1 + level) / 2) / stdtrit(freedom, (1 + level) / 2)
    return np.where(known, np.sqrt(1 + share) * ratio, 1.0)


def interval_over_draws(
    values: ArrayLike,
    resampled: ArrayLike,
    *,
    method: Method,
    n_units: int,
    n_trials: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the mean of a metric over draws, with an interval that holds speakers and draws.

    Parameters
    ----------
    values : array_like of float of shape (D,)
        The metric in each draw.
    resampled : array_like of float of shape (D, B)
        The metric of each draw in resamples of speakers that all draws share; resamples with a NaN do not count.
    method, n_units, level
        See `evaluation.uncertainty.intervals.interval`.
    n_trials : int
        Number of trials of the scarcer class in one draw.

    Returns
    -------
    Interval
        Of one draw that of `interval`.

    Raises
    ------
    DataError
        If the level or the number of units is out of range.
    """
    of_draws, resamples = np.asarray(values, np.float64), np.asarray(resampled, np.float64)
    count = len(of_draws)
    means = resamples.mean(axis=0)
    there = ~np.isnan(means)
    known = np.isfinite(resamples[:, there]).all() and np.isfinite(of_draws).all()
    factor = 1.0
    if count > 1 and n_units > 1 and known and there.sum() > 1 and 0 < level < 1:
        parts = draw_variance(of_draws, resamples[:, there], n_units=n_units)
        factor = float(widening(*parts, n_units=n_units, n_draws=count, level=level))
    settings = {"n_units": n_units, "n_trials": n_trials * count, "level": level, "widening": factor}
    found = interval(float(of_draws.mean()), means[there], method=method, **settings)  # type: ignore[arg-type]
    if factor < TOLD:
        return found
    note = f"the {count} draws differ: they make the interval {factor:.1f} times as wide as speakers alone would"
    return replace(found, note="; ".join(filter(None, [note, found.note])))
