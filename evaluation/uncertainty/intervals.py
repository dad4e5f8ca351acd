"""From resampled values to an interval: one named method for each metric, chosen by a study of coverage.

Conventions
-----------
Quantiles of the resampled values (the percentile method) cover too little: speakers are few, error rates are skewed,
and metrics of the convex hull (ROCCH) are biased, because the best thresholds are chosen on the same trials that are
counted. So each metric has a method of three parts:

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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError

HULL_FACTOR = 1 / (2 ** (2 / 3) - 1)
COST_FACTOR = (1 + HULL_FACTOR) / 2

Scale = Literal["identity", "log", "inverse root", "logit", "complement", "percentile"]

_SCALES = {
    "identity": "linear",
    "log": "log",
    "inverse root": "1 / sqrt(x)",
    "logit": "logit",
    "complement": "log(maximum - x)",
}


@dataclass(frozen=True)
class Method:
    """How the interval of a metric is made; see the module.

    Attributes
    ----------
    scale : {"identity", "log", "inverse root", "logit", "complement", "percentile"}
        Where the error is near to normal; the last one takes quantiles, without the rest.
    factor : float
        How much of what the resamples are off the value is taken off as bias; 0 for metrics without the hull.
    lower, upper : float
        Least and largest value of the metric; intervals are cut there.
    """

    scale: Scale
    factor: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def name(self) -> str:
        """Words for a table or a file."""
        if self.scale == "percentile":
            return "percentile"
        return f"t on the {_SCALES[self.scale]} scale" + (
            f", {self.factor:.2f} times the bias removed" if self.factor else ""
        )


@dataclass(frozen=True)
class Interval:
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

    def numbers(self) -> dict[str, float]:
        """Return the value and the ends by name."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def to_dict(self) -> dict[str, Any]:
        """Return the value, the ends and the method by name, for a report."""
        named = {"value": self.value, "interval": [self.low, self.high], "method": self.method}
        return named | ({"note": self.note} if self.note else {})


# by the name of the metric up to its first dot
_METHODS = {
    "eer": Method("logit", lower=0, upper=1),
    "min_dcf": Method("log", factor=COST_FACTOR, lower=0),
    "min_dcf_normalised": Method("log", factor=COST_FACTOR, lower=0, upper=1),
    "act_dcf": Method("log", lower=0),
    "act_dcf_normalised": Method("log", lower=0),
    "prbep": Method("log", factor=HULL_FACTOR, lower=0),
    "cllr": Method("inverse root", lower=0),
    "min_cllr": Method("log", factor=HULL_FACTOR, lower=0, upper=1),
    "calibration_loss": Method("identity", factor=HULL_FACTOR, lower=0),
    "ece": Method("inverse root", lower=0),
    "min_ece": Method("log", factor=HULL_FACTOR, lower=0, upper=1),
    "d_sys": Method("complement", lower=0, upper=1),
    "d_sys_pav": Method("complement", factor=HULL_FACTOR, lower=0, upper=1),
    "tpr_at_fpr": Method("logit", lower=0, upper=1),
    "threshold_at_eer": Method("identity"),
}
_ZEBRA = {
    "zebra.population": Method("complement", factor=HULL_FACTOR, lower=0, upper=1 / np.log(4)),
    # the largest LLR of a sample grows with it: there is no true value to cover, only a spread to show
    "zebra.individual": Method("percentile", lower=0),
    "zebra.individual_ceiling": Method("percentile", lower=0),
}


def method_of(metric: str, *, difference: bool = False) -> Method:
    """Name the method of a metric.

    Parameters
    ----------
    metric : str
        Such as ``"cllr"``, ``"eer.rocch"`` or ``"min_dcf.0.01"``: keys of a result, with dots between them.
    difference : bool
        For the difference of two systems on the same trials: linear, and nothing taken off, because a bias that both
        have goes out of the difference.

    Examples
    --------
    >>> method_of("min_dcf.0.01").name
    't on the log scale, 1.35 times the bias removed'
    >>> method_of("eer.interpolated").name
    't on the logit scale'
    """
    head, _, rest = metric.partition(".")
    method = _ZEBRA.get(metric) or _METHODS.get(head, Method("identity"))
    if metric == "eer.rocch":
        method = replace(method, factor=HULL_FACTOR, upper=0.5)
    if head == "min_dcf" and is_prior(rest):
        method = replace(method, upper=min(float(rest), 1 - float(rest)))
    if difference:
        return method if method.scale == "percentile" else Method("identity")
    return method


def interval(
    value: float, resampled: np.ndarray, *, method: Method, n_units: int, n_trials: int = 0, level: float = 0.95
) -> Interval:
    """Return the interval of a metric from its resampled values.

    Parameters
    ----------
    value : float
        The metric of the trials as they are.
    resampled : ndarray of float64 of shape (B,)
        Its values on resamples; NaN ones do not count.
    method : Method
        See `method_of`.
    n_units : int
        Number of speakers (or trials) that the scarcer class hangs on, at least 2.
    n_trials : int
        Number of trials of the scarcer class, which says how small half an error is; 0 if there is no such thing.
    level : float
        Share of true values that such intervals should cover, between 0 and 1.

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
    if np.isnan(value) or len(resampled) < 2:
        return Interval(value, np.nan, np.nan, method.name, "undefined, and so is its interval")
    if (resampled == resampled[0]).all():
        note = "every resample gives the same value: the spread cannot be seen"
        return Interval(value, np.nan, np.nan, method.name, note)
    note = ""
    if method.scale != "percentile" and not (np.isfinite(value) and np.isfinite(resampled).all()):
        method, note = replace(method, scale="percentile", factor=0.0), "resampled values are infinite: percentiles"
    if method.scale == "percentile":
        # of values that are there: between an infinite one and another there is none
        ends = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
        return Interval(value, float(ends[0]), float(ends[1]), method.name, note)
    centre, spread = _centre_and_spread(value, resampled, method, n_units, n_trials)
    if spread == 0:  # all but the same, nothing or half an error
        return Interval(value, np.nan, np.nan, method.name, "too few errors: the spread cannot be seen")
    reach = _quantile(n_units, level) * spread
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


def is_prior(text: str) -> bool:
    """Tell whether a part of a metric's name is a prior."""
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False
