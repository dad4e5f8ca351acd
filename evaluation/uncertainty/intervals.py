"""From resampled values to an interval: one named method for each metric, chosen by a study of coverage.

Conventions
-----------
Quantiles of the resampled values (the percentile method) cover too little: speakers are few, error rates are skewed,
and metrics of the convex hull (ROCCH) are biased, because the best thresholds are chosen on the same trials that are
counted. So each metric has a method, named by its row of `evaluation.metrics.METRICS`, of three parts:

* a *scale* on which its error is near to normal: the metric itself, its log or logit, or the log of its distance from
  the largest value;
* Student's t with as many degrees of freedom as the rarer class has speakers, minus one, and the standard deviation
  of the resampled values on that scale times sqrt(n / (n - 1)), since a bootstrap of n units divides by n;
* for metrics of the hull the bias, removed: a factor times the mean difference between resamples and value.

The factor comes from how isotonic estimates behave: they see the noise of size a as a**(4/3). A resample adds noise as
large as that of the sample, so the noise has sqrt(2) its size, and the resamples are off by 2**(2/3) - 1 = 0.587 times
the bias of the sample itself. The inverse, 1.70, is `HULL_FACTOR`. A least cost depends on only one threshold, and on
the smooth effects of speakers there, for which the factor would be 1: `COST_FACTOR` is halfway between. Their coverage
is in docs/studies/intervals.md.

Error rates based on few errors have another interval, see below.

On a log or logit scale resampled values of 0 count as half an error. Where resampled values are infinite, an interval
is one of percentiles. Where they are all the same, nothing is known about the spread, and the interval is undefined.

Few errors
----------
Resamples of a handful of errors do not show how many there might be. The resamples' variance v says how many
independent trials a rate p is worth, p (1 - p) / v, and p times that how many independent errors it is based on (Korn
and Graubard [3]_ do so for surveys). With at least `PLENTY` independent errors the usual interval holds. Below, an
exact interval (Clopper and Pearson's [4]_) takes its place: its ends are the rates at which that many or more, and that
many or fewer, errors occur in 2.5 % of the cases. How often a speaker's trials fail together cannot be seen in a
handful of errors, so they are assumed to do so as scores of which `OF_SPEAKERS` of the variance is the speaker's, which
is more than in studies of ours. Between `ALONE` and `PLENTY` errors the two intervals are mixed on the logit scale, so
that nothing jumps.

If there is no error, the interval is a one-sided upper bound at the full level: the rate at which no error occurs in 5
% of the cases. No interval with more errors ends below that bound, so the upper end never falls as errors increase.

Several draws of a recording are not several trials: all counts refer to one draw, and draws narrow an interval only as
far as their errors differ, which shows in the variance of the resampled means.

Mean over draws
---------------
Draws are several anonymised versions of the same trials, each with its own random numbers. The speakers are the same in
every draw, so there are two factors that cross, P speakers and D draws. With effects of speakers (variance a), of draws
(b) and of a speaker in a draw (c, which holds utterances and trials too) the mean over draws has the variance

    a / P + b / D + c / (P D).

Resamples of speakers that are shared by all draws see the first and the last term, S = a / P + c / (P D). The spread of
the draws' own values, divided by D, sees the last two, B = b / D + c / (P D). The common term is estimated from the
differences of draws within a resample: with t_d(w) for the metric of draw d in resample w and t(w) for their mean,

    I = sum over d of Var_w (t_d(w) - t(w)) / (D (D - 1))    estimates    c / (P D).

So the variance is S + max(0, B - I), as for other data of two crossed factors [5]_, [6]_, and the interval above is
made wider by sqrt(1 + max(0, B - I) / S). B - I has D - 1 degrees of freedom and S as many as there are speakers, minus
one; the degrees of their sum are Satterthwaite's [7]_. If each utterance has its own draw, b is 0 and
most of what draws differ by is I: then the number of speakers is the limitation.

References
----------
.. [1] B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", chapters 12 to 14, 1993.
.. [2] P. Groeneboom and G. Jongbloed, "Nonparametric Estimation under Shape Constraints", 2014 (rates of isotonic
   estimates).
.. [3] E. Korn and B. Graubard, "Confidence intervals for proportions with small expected number of positive counts
   estimated from survey data", Survey Methodology 24, 1998.
.. [4] C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
   Biometrika 26, 1934.
.. [5] C. Cameron, J. Gelbach and D. Miller, "Robust inference with multiway clustering", Journal of Business and
   Economic Statistics 29, 2011.
.. [6] A. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007.
.. [7] F. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import Method, format_value
from spkbase.errors import DataError
from spkbase.rounding import is_constant, is_negligible
from spkbase.showing import Tabular, brief, one_line

ALONE = 2.0
PLENTY = 8.0
"""Numbers of independent errors up to which the exact interval is used, and from which the usual one is used."""

OF_SPEAKERS = 0.7
"""Share of the variance of scores that the exact interval ascribes to the speaker."""

_LEAST = 1e-9

NOTED = 1.5
"""The factor by which draws widen an interval from which on a note says so."""


def independent_errors(rate: float, variance: float, n_trials: int) -> float:
    """Return the number of independent errors on which a rate is based: p * min(N, p (1 - p) / v).

    Parameters
    ----------
    rate : float
        Error rate p, below 1.
    variance : float
        Variance of its resamples; 0 if they are all equal.
    n_trials : int
        Number N of trials of the rarer class.

    Examples
    --------
    >>> independent_errors(0.1, 0.1 * 0.9 / 50, 400)
    5.0
    """
    if variance > 0:
        trials = rate * (1 - rate) / variance
    else:
        trials = float(n_trials)
    return float(rate * min(trials, n_trials))


@cache
def rate_where(n_errors: int, n_units: int, n_trials: int, share: float) -> float:
    """Return the error rate at which at most this many errors occur in a given share of cases.

    Parameters
    ----------
    n_errors : int
        Number k of errors, below N.
    n_units : int
        Number n of speakers, each with an effect u on the scores.
    n_trials : int
        Number N of trials of the rarer class, N / n per speaker. share : float Share of the cases, between 0 and 1.

    Returns
    -------
    float
        p of P(K_1 + ... + K_n <= k) = share. The K_i are independent and binomial with N / n trials (some speakers with
        one more, if n does not divide N) at the rate q(u) = Phi((Phi^-1(p) + sqrt(s) u) / sqrt(1 - s)), where s is
        `OF_SPEAKERS` and u is standard normal.

    Examples
    --------
    >>> round(rate_where(0, 10, 70, 0.05), 3), round(rate_where(7, 10, 70, 0.05), 3)
    (0.093, 0.268)
    """
    from scipy.optimize import brentq
    from scipy.special import gammaln, log_ndtr, ndtr

    effects, weights = np.polynomial.hermite_e.hermegauss(151)
    weights /= weights.sum()
    fewer, more = divmod(n_trials, n_units)
    parts = []
    for trials, speakers in ((fewer, n_units - more), (fewer + 1, more)):
        errors = np.arange(min(n_errors, trials) + 1)[:, None]
        ways = gammaln(trials + 1) - gammaln(errors + 1) - gammaln(trials - errors + 1)
        parts.append((errors, trials - errors, ways, speakers))

    def excess(scaled: float) -> float:
        at = (scaled + np.sqrt(OF_SPEAKERS) * effects) / np.sqrt(1 - OF_SPEAKERS)
        failing = log_ndtr(at)
        passing = log_ndtr(-at)
        # distribution of the errors of all speakers, convolved by repeated squaring
        every = np.ones(1)
        for errors, others, ways, speakers in parts:
            power = np.exp(ways + errors * failing + others * passing) @ weights
            while speakers:
                if speakers % 2:
                    every = np.convolve(every, power)[: n_errors + 1]
                power = np.convolve(power, power)[: n_errors + 1]
                speakers = speakers // 2
        return float(every.sum() - share)

    return float(ndtr(brentq(excess, -12.0, 12.0, xtol=1e-6)))


def rate_interval(
    rate: float, *, n_units: int, n_trials: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of an error rate when there are few errors.

    Parameters
    ----------
    rate, n_trials
        See `independent_errors`.
    n_units : int
        Number n of speakers.
    level : float
        Confidence level; such intervals cover at least as much.

    Returns
    -------
    low, high : float
        The rates at which at least as many, and at most as many, errors as observed occur in (1 - level) / 2 of the
        cases, by `rate_where`; without errors, 0 and the rate at which none occurs in 1 - level of the cases. Between
        whole numbers of errors the ends are interpolated.

    Examples
    --------
    >>> low, high = rate_interval(0.0, n_units=23, n_trials=200)
    >>> low, round(high, 2)
    (0.0, 0.03)
    """
    errors = min(rate, 1.0) * n_trials
    below = min(int(errors + 1e-9), n_trials - 1)

    def ends(count: int) -> NDArray[np.float64]:
        if count == 0:
            return np.array([0.0, rate_where(0, n_units, n_trials, 1 - level)])
        if count == n_trials:
            high = 1.0
        else:
            high = rate_where(count, n_units, n_trials, (1 - level) / 2)
        return np.array([rate_where(count - 1, n_units, n_trials, (1 + level) / 2), high])

    part = max(0.0, errors - below)
    low_and_high = ends(below)
    if part >= 1e-6:
        low_and_high = (1 - part) * low_and_high + part * ends(below + 1)
    low, high = low_and_high
    return float(min(low, rate)), float(max(high, rate))


def mixed(
    few: tuple[float, float], usual: tuple[float, float], errors: float
) -> tuple[float, float]:
    """Interpolate between the ends of `rate_interval` and the usual ones, by the number of independent errors.

    Examples
    --------
    >>> mixed((0.1, 0.2), (0.3, 0.4), ALONE), mixed((0.1, 0.2), (0.3, 0.4), PLENTY)
    ((0.1, 0.2), (0.3, 0.4))
    """
    share = min(1.0, max(0.0, (errors - ALONE) / (PLENTY - ALONE)))
    if share in (0.0, 1.0):
        if share:
            return usual
        return few
    ends = np.clip(np.array([few, usual]), _LEAST, 1 - _LEAST)
    low, high = (np.array([1 - share, share]) @ np.log(ends / (1 - ends))).tolist()
    return float(1 / (1 + np.exp(-low))), float(1 / (1 + np.exp(-high)))


@one_line
@dataclass(frozen=True)
class Interval(Tabular):
    """A number with its interval, such as a metric or the difference of two systems.

    Attributes
    ----------
    value : float
        Value on the observed data; NaN if unknown.
    low, high : float
        Ends; NaN if unknown or undefined.
    method : str
        How the interval was made; empty if unknown.
    note : str
        Why the interval is undefined or not the usual one; empty otherwise.
    p_value : float
        Two-sided p-value of the hypothesis that a difference is 0; NaN for other numbers.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    method: str = ""
    note: str = ""
    p_value: float = np.nan

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def in_percent(self) -> Interval:
        """The same fraction in per cent."""
        return Interval(100 * self.value, 100 * self.low, 100 * self.high)

    def text(self, form: str | Callable[[float], str], missing: str = "-") -> str:
        """Return the value and, in brackets, its interval, as tables print them.

        Parameters
        ----------
        form : str or callable
            How a number is written: a format specification (three decimals for four), the form of a metric's `Unit`
            (a fraction is written in per cent, without the sign), or a function.
        missing : str
            Text in place of NaN.

        Examples
        --------
        >>> Interval(0.1234, 0.1, 0.2).text("%"), Interval(0.5, 0.25, 0.75).text(".4f"), Interval(0.5).text(".1f")
        ('12.34 [10.00, 20.00]', '0.500 [0.250, 0.750]', '0.5')
        """
        known = {
            "%": lambda share: f"{100 * share:.2f}",
            "zebra": format_value,
            ".4f": "{:.3f}".format,
        }
        if callable(form):
            write = form
        else:
            write = known.get(form, f"{{:{form}}}".format)
        parts = []
        for number in self.numbers().values():
            parts.append(missing if math.isnan(number) else write(number))
        if self.has_interval:
            return "{} [{}, {}]".format(*parts)
        return parts[0]

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the value, the ends, method and note by name, one row."""
        return {name: [getattr(self, name)] for name in ("value", "low", "high", "method", "note")}

    def numbers(self) -> dict[str, float]:
        """Return the value and the ends by name."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def to_dict(self) -> dict[str, Any]:
        """Return the value, the ends and the method by name, for a report."""
        fields: dict[str, Any] = {
            "value": self.value,
            "interval": [self.low, self.high],
            "method": self.method,
        }
        if not math.isnan(self.p_value):
            fields["p_value"] = self.p_value
        if self.note:
            fields["note"] = self.note
        return fields


def to_report(record: Any) -> dict[str, Any]:
    """Return a record as dictionaries for a report, with intervals as their numbers; fields that are None are left out.

    Examples
    --------
    >>> to_report({"eer": Interval(0.1, 0.05, 0.2), "side": None})
    {'eer': {'value': 0.1, 'low': 0.05, 'high': 0.2}}
    """
    report = {}
    fields = record if isinstance(record, Mapping) else vars(record)
    for name, part in fields.items():
        if isinstance(part, Interval):
            part = part.numbers()
        elif hasattr(part, "to_dict"):
            part = part.to_dict()
        elif isinstance(part, Mapping) or is_dataclass(part):
            part = to_report(part)
        if part is not None:
            report[str(name)] = part
    return report


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
        Values of the metric on resamples; NaN are ignored.
    method : Method
        See `evaluation.metrics.method_of`.
    n_units : int
        Number of speakers (or trials) that the rarer class depends on, at least 2.
    n_trials : int
        Number of trials of the rarer class, which determines half an error; 0 if not applicable.
    level : float
        Confidence level of the intervals, between 0 and 1.
    widening : float
        Factor that widens the interval for variance that resamples do not show, such as that of draws.

    Raises
    ------
    DataError
        If there are fewer than 2 units.
    """
    if n_units < 2:
        raise DataError(f"expected at least 2 units, got {n_units}")
    resampled = np.asarray(resampled, np.float64)
    resampled = resampled[~np.isnan(resampled)]
    usual = _usual_interval(value, resampled, method, n_units, n_trials, level, widening)
    # NaN ends stay NaN
    usual = replace(usual, low=min(usual.low, value), high=max(usual.high, value))
    if not (method.of_errors and n_trials) or not 0 <= value < 0.5 or len(resampled) < 2:
        return usual
    variance = float(resampled.var(ddof=1)) * n_units / (n_units - 1)
    errors = independent_errors(value, variance, n_trials)
    least = rate_where(0, n_units, n_trials, 1 - level)
    if errors >= PLENTY and usual.has_interval:
        return replace(usual, high=max(usual.high, least))
    # correlated draws reduce the effective number of trials
    worth = max(1, round(n_trials / widening**2))
    low, high = few = rate_interval(value, n_units=n_units, n_trials=worth, level=level)
    if usual.has_interval:
        low, high = mixed(few, (usual.low, usual.high), errors)
    high = max(high, min(least, method.upper))
    note = (
        f"few errors, worth {errors:.1f} independent ones: the interval is in part a binomial one"
    )
    if value == 0:
        note = f"no error: an upper bound only, from {n_units} speakers"
    return Interval(value, max(low, method.lower), min(high, method.upper), method.name, note)


def simultaneous(
    values: np.ndarray,
    resampled: np.ndarray,
    *,
    method: Method,
    n_units: int,
    n_trials: int = 0,
    level: float = 0.95,
) -> tuple[np.ndarray, np.ndarray]:
    """Return simultaneous intervals (max-t): all true values are covered at once with confidence `level`.

    Parameters
    ----------
    values : ndarray of float64 of shape (G,)
        Finite values.
    resampled : ndarray of float64 of shape (B, G)
        Finite values, a row for each draw.
    method : Method
        Method of the interval; percentiles are treated as linear.
    n_units, n_trials, level
        See `interval`.

    Returns
    -------
    low, high : ndarray of float64 of shape (G,)
    """
    from scipy.special import ndtri, stdtrit

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
    # the widest interval, widened again by the ratio of the quantiles of t and the normal
    wider = stdtrit(n_units - 1, (1 + level) / 2) / ndtri((1 + level) / 2)
    reach = np.quantile(off.max(axis=1), level) * wider * spread
    low = from_scale(centre - reach, method)
    high = from_scale(centre + reach, method)
    low = np.minimum(low, values)
    high = np.maximum(high, values)
    return np.maximum(low, method.lower), np.minimum(high, method.upper)


def jackknife_interval(
    value: float, replicates: ArrayLike, *, method: Method, level: float = 0.95
) -> Interval:
    """Return the interval of a number from its values without each of G groups of units.

    Parameters
    ----------
    value : float
        The number computed from all units.
    replicates : array_like of float of shape (G,)
        The number computed without each group.
    method : Method
        Scale, which cannot be percentiles, and range of the interval; no bias is subtracted.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    Interval
        Student's t with G - 1 degrees of freedom and the variance (G - 1) / G times the sum of squares about the mean,
        on the scale; the ends are NaN with fewer than two groups, or if values are unknown or equal.

    References
    ----------
    .. [1] P. Kott, "Delete-a-group jackknife", Journal of Official Statistics 17, 2001.

    Examples
    --------
    Of a mean, without each number in turn, it is the interval of the t-test:

    >>> found = jackknife_interval(2.0, [2.5, 2.0, 1.5], method=Method("identity"))
    >>> round(found.low, 3), round(found.high, 3)
    (-0.484, 4.484)
    """
    from scipy.special import stdtrit

    others = np.asarray(replicates, np.float64)
    count = len(others)
    if count < 2 or not np.isfinite(np.append(others, value)).all() or is_constant(others):
        return Interval(value)
    scaled = to_scale(np.append(others, value), method)
    deviation = np.sqrt((count - 1) ** 2 / count * scaled[:-1].var(ddof=1))
    reach = stdtrit(count - 1, (1 + level) / 2) * deviation
    low, high = from_scale(np.array([scaled[-1] - reach, scaled[-1] + reach]), method).tolist()
    name = f"{method.name}, jackknife of {count} groups of speakers"
    return Interval(value, max(low, method.lower), min(high, method.upper), name)


def to_scale(values: NDArray[np.float64], method: Method, n_trials: int = 0) -> NDArray[np.float64]:
    """Return values on the scale of a method; values at an end of the scale are moved slightly inside.

    Parameters
    ----------
    values : ndarray of float64 of shape (B,) or (B, S)
        Finite values; columns are independent.
    method : Method
        Method with the scale, which cannot be percentiles.
    n_trials : int
        See `interval`. A value at an end is moved inside by half an error, or as far as the nearest other value of its
        column, whichever is nearer; if the number is 0, as far as the nearest other value.

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
    # work in place: both arrays are new and may be large
    np.log(values, out=values)
    np.log(others, out=others)
    return np.subtract(values, others, out=values)


def from_scale(values: NDArray[np.float64], method: Method) -> NDArray[np.float64]:
    """Map values on a scale back to values of the metric; the inverse of `to_scale`."""
    if method.scale == "identity":
        return values
    if method.scale == "log":
        return np.exp(values)
    if method.scale == "inverse root":
        with np.errstate(divide="ignore"):  # the upper end may overflow to infinity
            return 1 / np.square(np.minimum(values, 0.0))
    if method.scale == "complement":
        return method.upper - np.exp(-values)
    return 1 / (1 + np.exp(-values))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values corrected for multiple comparisons by Holm's method, which controls the family-wise error rate.

    Parameters
    ----------
    p_values : array_like of float of shape (M,)
        P-values; NaN are ignored.

    Returns
    -------
    ndarray of float64 of shape (M,)
        The k-th smallest of m values times m - k + 1, at least as large as the corrected smaller ones, and at most 1.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
       1979.

    Examples
    --------
    >>> holm([0.01, 0.04, np.nan, 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    corrected = np.array(p_values, np.float64)
    order = np.argsort(corrected)[: np.count_nonzero(~np.isnan(corrected))]  # NaN sorts last
    times = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(times * corrected[order]), 1.0)
    return corrected


def p_text(p_value: float) -> str:
    """Format a p-value for tables: ``p = 0.023``, ``p < 0.001``, or "" for NaN."""
    if math.isnan(p_value):
        return ""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}"


class Intervals(Tabular, dict[str, Any]):
    """An interval for each metric.

    Examples
    --------
    >>> Intervals({"eer.rocch": Interval(0.1, 0.05, 0.2)}).to_columns()["high"]
    [0.2]
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({brief(dict(self), 180)})"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each metric: its name, value, the ends, the method and the note."""
        columns: dict[str, list[Any]] = {"metric": list(self)}
        for name in ("value", "low", "high", "method", "note"):
            columns[name] = [getattr(interval, name) for interval in self.values()]
        return columns


class Differences(Intervals):
    """For each system the `Intervals` of the differences of its metrics from those of the first."""

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each system and metric, with its p-value, raw and corrected (`holm`)."""
        columns: dict[str, list[Any]] = {"system": [], **Intervals().to_columns(), "p_value": []}
        for system, intervals in self.items():
            columns["system"] += [system] * len(intervals)
            for name, cells in intervals.to_columns().items():
                columns[name] += cells
            columns["p_value"] += [gap.p_value for gap in intervals.values()]
        return columns | {"p_corrected": holm(columns["p_value"]).tolist()}


def draw_variance(values: ArrayLike, resampled: ArrayLike, *, n_units: int) -> tuple[float, float]:
    """Split the variance of a mean over draws into the part of the speakers and the part that draws add.

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
    of_draws = np.asarray(values, np.float64)
    resamples = np.asarray(resampled, np.float64)
    count = len(of_draws)
    correction = n_units / (n_units - 1)
    means = resamples.mean(axis=0)
    speakers = correction * float(means.var(ddof=1))
    both = correction * float((resamples - means).var(axis=1, ddof=1).sum()) / (count * (count - 1))
    return speakers, max(0.0, float(of_draws.var(ddof=1)) / count - both)


def widening(
    speakers: ArrayLike, draws: ArrayLike, *, n_units: ArrayLike, n_draws: int, level: float
) -> NDArray[Any]:
    """Return the factor by which draws widen an interval that resamples speakers only.

    Parameters
    ----------
    speakers, draws : array_like of float
        Results of `draw_variance`; the ratio is 1 if speakers have no variance.
    n_units : array_like of float
        Number of speakers, or one more than the degrees of freedom of the interval.
    n_draws : int
        Number of draws, at least 2.
    level : float
        Confidence level of the interval.

    Returns
    -------
    ndarray of float64
        Ratio of the deviations times ratio of the quantiles of Student's t; at least 1.
    """
    from scipy.special import stdtrit

    first = np.asarray(speakers, np.float64)
    second = np.asarray(draws, np.float64)
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
    """Return the mean of a metric over draws, with an interval over speakers and draws.

    Parameters
    ----------
    values : array_like of float of shape (D,)
        The metric in each draw.
    resampled : array_like of float of shape (D, B)
        The metric of each draw in resamples of speakers that all draws share; resamples with a NaN do not count.
    method, n_units, level
        See `evaluation.uncertainty.intervals.interval`.
    n_trials : int
        Number of trials of the rarer class in one draw.

    Returns
    -------
    Interval
        The interval; for a single draw, the result of `interval`.

    Raises
    ------
    DataError
        If the level or the number of units is out of range.
    """
    of_draws = np.asarray(values, np.float64)
    resamples = np.asarray(resampled, np.float64)
    count = len(of_draws)
    means = resamples.mean(axis=0)
    there = ~np.isnan(means)
    known = np.isfinite(resamples[:, there]).all() and np.isfinite(of_draws).all()
    factor = 1.0
    if count > 1 and n_units > 1 and known and there.sum() > 1 and 0 < level < 1:
        parts = draw_variance(of_draws, resamples[:, there], n_units=n_units)
        factor = float(widening(*parts, n_units=n_units, n_draws=count, level=level))
    settings = {"n_units": n_units, "n_trials": n_trials, "level": level, "widening": factor}
    ends = interval(float(of_draws.mean()), means[there], method=method, **settings)  # type: ignore[arg-type]
    if factor < NOTED:
        return ends
    note = (
        f"the {count} draws differ: the interval is {factor:.1f} times as wide as by speakers alone"
    )
    return replace(ends, note="; ".join(filter(None, [note, ends.note])))


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
    from scipy.special import stdtrit

    if method.scale == "none":
        return Interval(
            value,
            np.nan,
            np.nan,
            method.name,
            "the worst case of a sample has no true value to cover",
        )
    if np.isnan(value) or len(resampled) < 2:
        return Interval(
            value, np.nan, np.nan, method.name, "the value is undefined, and so is its interval"
        )
    if is_constant(resampled):
        note = "every resample gives the same value: the spread is unknown"
        return Interval(value, np.nan, np.nan, method.name, note)
    note = ""
    if method.scale != "percentile" and not (np.isfinite(value) and np.isfinite(resampled).all()):
        method = replace(method, scale="percentile", factor=0.0)
        note = "resampled values are infinite: percentiles"
    if method.scale == "percentile":
        if widening > 1:
            resampled = resampled.mean() + widening * (resampled - resampled.mean())
        # observed values only: infinite ones cannot be interpolated
        ends = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
        return Interval(value, float(ends[0]), float(ends[1]), method.name, note)
    centre, spread = _centre_and_spread(value, resampled, method, n_units, n_trials)
    if is_negligible(spread, centre):  # negligible spread, no error or half an error
        return Interval(value, np.nan, np.nan, method.name, "too few errors: the spread is unknown")
    reach = widening * method.widening * stdtrit(n_units - 1, (1 + level) / 2) * spread
    low, high = (
        float(end) for end in from_scale(np.array([centre - reach, centre + reach]), method)
    )
    return Interval(value, max(low, method.lower), min(high, method.upper), method.name, note)


def _centre_and_spread(
    value: float, resampled: np.ndarray, method: Method, n_units: int, n_trials: int
) -> tuple[float, float]:
    """Centre of the interval, and its standard error, both on the scale."""
    scaled = to_scale(np.append(resampled, value), method, n_trials)
    centre = float(scaled[-1])
    scaled = scaled[:-1]
    if method.factor:
        centre -= method.factor * (float(scaled.mean()) - centre)
    return centre, float(np.sqrt(n_units / (n_units - 1)) * scaled.std(ddof=1))


def _lifted(values: NDArray[np.float64], method: Method, n_trials: int) -> NDArray[np.float64]:
    """Lift values of 0 to half an error, column by column."""
    least = np.min(np.where(values > 0, values, np.inf), axis=0)
    least = np.where(np.isfinite(least), least, 1.0)
    if n_trials:
        top = method.upper if np.isfinite(method.upper) else 1.0
        least = np.minimum(least, 0.5 * top / n_trials)
    return np.maximum(values, least)
