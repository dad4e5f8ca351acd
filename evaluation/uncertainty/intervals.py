"""From resampled values to an interval: one named method for each metric, chosen by a study of coverage.

Conventions
-----------
Quantiles of the resampled values (the percentile method) cover too little: speakers are few, error rates are skewed,
and metrics of the convex hull (ROCCH) are biased, because the best thresholds are chosen on the same trials that are
counted. So each metric has a method, named by its row of `evaluation.metrics.table`, of three parts:

* a *scale* on which its error is near to normal: the metric itself, its log or logit, or the log of its distance from
  the largest value;
* Student's t with as many degrees of freedom as the scarcer class has speakers, less one, and the standard deviation
  of the resampled values on that scale times sqrt(n / (n - 1)), since a bootstrap of n units divides by n;
* for metrics of the hull the bias, taken off: a factor times what the resamples are off the value.

The factor comes from how isotonic estimates behave: they see the noise of size a as a**(4/3). A resample adds noise as
large as that of the sample, so the noise has sqrt(2) its size, and the resamples are off by 2**(2/3) - 1 = 0.587 of
the bias that the sample itself has. The inverse, 1.70, is `HULL_FACTOR`. A least cost hangs on one threshold alone, and
on the smooth effects of speakers there, for which the factor would be 1: `COST_FACTOR` is halfway between. The coverage
with them is in docs/uncertainty.md.

Error rates of few errors have another interval (`evaluation.uncertainty.few_errors`).

On a log or logit scale resampled values of 0 count as half an error. Where resampled values are infinite, an interval
is one of percentiles. Where they are all the same, nothing is known about the spread, and the interval is undefined.

References
----------
.. [1] B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", chapters 12 to 14, 1993.
.. [2] P. Groeneboom and G. Jongbloed, "Nonparametric Estimation under Shape Constraints", 2014 (rates of isotonic
   estimates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Method
from evaluation.uncertainty.few_errors import PLENTY, end_without_error, independent_errors, mixed, rate_interval
from spkbase.errors import DataError
from spkbase.showing import Tabular, one_line


@one_line
@dataclass(frozen=True)
class Interval(Tabular):
    """A number with its interval: of a metric, of a file of results, of the difference of two systems.

    Attributes
    ----------
    value : float
        On the data as they are; NaN where it is not known.
    low, high : float
        Ends; NaN where they are not known or undefined.
    method : str
        How the interval was made; empty where nobody says.
    note : str
        Why it is undefined, or made in another way than usual; empty otherwise.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    method: str = ""
    note: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the value, the ends, method and note by name, one row."""
        return {name: [getattr(self, name)] for name in ("value", "low", "high", "method", "note")}

    def numbers(self) -> dict[str, float]:
        """Return the value and the ends by name."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def to_dict(self) -> dict[str, Any]:
        """Return the value, the ends and the method by name, for a report."""
        fields = {"value": self.value, "interval": [self.low, self.high], "method": self.method}
        return fields | ({"note": self.note} if self.note else {})


def interval(
    value: float,
    resampled: np.ndarray,
    *,
    method: Method,
    n_units: int,
    n_trials: int = 0,
    level: float = 0.95,
    widening: float = 1.0,
) -> Interval:
    """Return the interval of a metric from its resampled values.

    Parameters
    ----------
    value : float
        The metric of the trials as they are.
    resampled : ndarray of float64 of shape (B,)
        Its values on resamples; NaN ones do not count.
    method : Method
        See `evaluation.metrics.method_of`.
    n_units : int
        Number of speakers (or trials) that the scarcer class hangs on, at least 2.
    n_trials : int
        Number of trials of the scarcer class, which says how small half an error is; 0 if there is no such thing.
    level : float
        Share of true values that such intervals should cover, between 0 and 1.
    widening : float
        How many times as wide as by the resamples it is for what they do not see, such as draws.

    Raises
    ------
    DataError
        If the level or the number of units is out of range.
    """
    if not 0 < level < 1:
        raise DataError(f"expected a level between 0 and 1, got {level}")
    if n_units < 2:
        raise DataError(f"expected at least 2 units, got {n_units}")
    resampled = np.asarray(resampled, np.float64)
    resampled = resampled[~np.isnan(resampled)]
    usual = _usual_interval(value, resampled, method, n_units, n_trials, level, widening)
    if not (method.of_errors and n_trials) or not 0 <= value < 0.5 or len(resampled) < 2:
        return usual
    variance = float(resampled.var(ddof=1)) * n_units / (n_units - 1)
    errors = independent_errors(value, variance, n_trials)
    if errors >= PLENTY and usual.has_interval:
        return replace(usual, high=max(usual.high, end_without_error(n_units, n_trials, level)))
    low, high = few = rate_interval(value, variance * widening**2, n_units=n_units, n_trials=n_trials, level=level)
    if usual.has_interval:
        low, high = mixed(few, (usual.low, usual.high), errors)
    least = max(low + 1 / n_trials, end_without_error(n_units, n_trials, level))
    high = max(high, min(least, method.upper))
    note = f"few errors, worth {errors:.1f} independent ones: the binomial interval of so many has a share in it"
    if value == 0:
        note = f"no error: a bound from above alone, by {n_units} speakers"
    return Interval(value, max(low, method.lower), min(high, method.upper), method.name, note)


def _usual_interval(
    value: float,
    resampled: np.ndarray,
    method: Method,
    n_units: int,
    n_trials: int,
    level: float,
    widening: float,
) -> Interval:
    """Return the interval of the method; see `interval`."""
    if np.isnan(value) or len(resampled) < 2:
        return Interval(value, np.nan, np.nan, method.name, "undefined, and so is its interval")
    if (resampled == resampled[0]).all():
        note = "every resample gives the same value: the spread cannot be seen"
        return Interval(value, np.nan, np.nan, method.name, note)
    note = ""
    if method.scale != "percentile" and not (np.isfinite(value) and np.isfinite(resampled).all()):
        method, note = replace(method, scale="percentile", factor=0.0), "resampled values are infinite: percentiles"
    if method.scale == "percentile":
        if widening > 1:
            resampled = resampled.mean() + widening * (resampled - resampled.mean())
        # of values that are there: between an infinite one and another there is none
        ends = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
        return Interval(value, float(ends[0]), float(ends[1]), method.name, note)
    centre, spread = _centre_and_spread(value, resampled, method, n_units, n_trials)
    if spread == 0:  # all but the same, nothing or half an error
        return Interval(value, np.nan, np.nan, method.name, "too few errors: the spread cannot be seen")
    reach = widening * _quantile(n_units, level) * spread
    low, high = (float(end) for end in from_scale(np.array([centre - reach, centre + reach]), method))
    return Interval(value, max(low, method.lower), min(high, method.upper), method.name, note)


def simultaneous(
    values: np.ndarray, resampled: np.ndarray, *, method: Method, n_units: int, n_trials: int = 0, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals that hold all true values at once in a share `level` of the cases (max-t).

    Parameters
    ----------
    values : ndarray of float64 of shape (G,)
        Finite values.
    resampled : ndarray of float64 of shape (B, G)
        Finite values, each row of one draw.
    method : Method
        One of percentiles is taken as linear.
    n_units, n_trials, level
        See `interval`.

    Returns
    -------
    low, high : ndarray of float64 of shape (G,)
    """
    if method.scale == "percentile":
        method = replace(method, scale="identity")
    pairs = [
        _centre_and_spread(value, column, method, n_units, n_trials)
        for value, column in zip(values.tolist(), resampled.T, strict=True)
    ]
    centre, spread = np.array(pairs).T
    scaled = np.stack([to_scale(column, method, n_trials) for column in resampled.T], axis=1)
    off = np.abs(scaled - scaled.mean(axis=0))
    deviation = scaled.std(axis=0, ddof=1)
    off = np.divide(off, deviation, out=np.zeros_like(off), where=deviation > 0)
    # the widest of all, and as much wider again as t is than the normal
    reach = np.quantile(off.max(axis=1), level) * _quantile(n_units, level) / _normal(level) * spread
    low, high = from_scale(centre - reach, method), from_scale(centre + reach, method)
    return np.maximum(low, method.lower), np.minimum(high, method.upper)


def _centre_and_spread(
    value: float, resampled: np.ndarray, method: Method, n_units: int, n_trials: int
) -> tuple[float, float]:
    """Centre of the interval, and its standard error, both on the scale."""
    scaled = to_scale(np.append(resampled, value), method, n_trials)
    scaled, centre = scaled[:-1], float(scaled[-1])
    if method.factor:
        centre -= method.factor * (float(scaled.mean()) - centre)
    return centre, float(np.sqrt(n_units / (n_units - 1)) * scaled.std(ddof=1))


def to_scale(values: NDArray[np.float64], method: Method, n_trials: int = 0) -> NDArray[np.float64]:
    """Return values on the scale of a method, those at an end of it lifted a little inside.

    Parameters
    ----------
    values : ndarray of float64 of shape (B,) or (B, S)
        Finite values; each column is on its own.
    method : Method
        Which scale; not that of percentiles.
    n_trials : int
        See `interval`: an end counts as half an error, or as near to the end as the nearest other value of its column,
        whichever is nearer; without a number of trials as the nearest other value.

    Returns
    -------
    ndarray of float64 of the shape of `values`
    """
    if method.scale == "identity":
        return values
    if method.scale == "log":
        return np.log(_lifted(values, method, n_trials))
    if method.scale == "inverse root":
        return -1 / np.sqrt(_lifted(values, method, n_trials))
    if method.scale == "complement":
        return -np.log(_lifted(method.upper - values, method, n_trials))
    values = _lifted(values, method, n_trials)
    others = _lifted(1 - values, method, n_trials)
    # in place: both are new, and as large as all resamples at many sizes of a gallery
    np.log(values, out=values)
    np.log(others, out=others)
    return np.subtract(values, others, out=values)


def from_scale(values: NDArray[np.float64], method: Method) -> NDArray[np.float64]:
    """Return values of a scale as values of the metric; the inverse of `to_scale`."""
    if method.scale == "identity":
        return values
    if method.scale == "log":
        return np.exp(values)
    if method.scale == "inverse root":
        with np.errstate(divide="ignore"):  # so wide that there is no upper end
            return 1 / np.square(np.minimum(values, 0.0))
    if method.scale == "complement":
        return method.upper - np.exp(-values)
    return 1 / (1 + np.exp(-values))


def _lifted(values: NDArray[np.float64], method: Method, n_trials: int) -> NDArray[np.float64]:
    """Lift values of 0 to what counts as next to nothing, column by column."""
    least = np.min(np.where(values > 0, values, np.inf), axis=0)
    least = np.where(np.isfinite(least), least, 1.0)
    if n_trials:
        top = method.upper if np.isfinite(method.upper) else 1.0
        least = np.minimum(least, 0.5 * top / n_trials)
    return np.maximum(values, least)


def _quantile(n_units: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n_units - 1, (1 + level) / 2))


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))
