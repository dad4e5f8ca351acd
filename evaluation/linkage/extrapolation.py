"""Linkability in populations larger than the gallery: extrapolated by several methods that are compared.

`extrapolate` gives each method's estimate with its interval, `backtest` what the methods would have predicted for the
gallery itself, had most of it been hidden. See docs/linkability.md.

Cells
-----
Of the M impostors that a trial is compared with, k beat it. If a random impostor beats it with probability p, k is
binomial with M and p. The scale on which p is described is its *margin* z, p = Phi(-z): p = 0.5 at 0, 1e-3 at 3.1, 1e-8
at 5.6. If impostor and mated scores are normal with the same spread, z is normal over trials with mean d'. Each small
count has its own cell; larger ones share cells that grow with them (about 12 % wide). The likelihood of a table of a
hundred cells costs the same for any number of trials, and loses little information.

Methods
-------
* *normal*: the margin is a mixture of normals over trials, fitted to the cells by expectation-maximisation, many tables
  of counts (resamples) at once. As it uses only ranks, it is exact for any increasing function of normal scores.
* *tail*: each trial has its own impostor distribution, since speakers in a crowded region have closer impostors.
  Beyond a trial's own threshold, its lowest kept score, scores follow a generalised Pareto distribution [1]_ [2]_ with
  a shape that all trials share and a scale of the trial. Scales and thresholds of single trials are noisy, so they are
  drawn towards the common ones by as much as their scatter is noise (James and Stein).
* *bounds*: no shape is assumed. The least and the largest value over all distributions on the grid of margins whose
curve runs
  inside a band around the measured curve, which holds the true curve at all its sizes at once; linear programmes.

Few errors, and few hits
------------------------
If (nearly) everybody ranks first, or (nearly) nobody, the shape is hardly determined by data. The methods' intervals
then reach at least as far as follows from the share q of the trials that are first in the whole gallery of M, whose
interval is that of few errors (`evaluation.uncertainty.rate_interval`): linkability at N > M is at most q, and at least
q**((N - 1) / (M - 1)), as the mean of a power is at least the power of the mean.

Hiding
------
Impostors are hidden at random, separately for each trial: of its k beaters among M impostors a hypergeometric number is
left among M / hidden. The extrapolation of these to the whole gallery is compared with the measurement there. The
trials are the same on both sides, so the error shown is that of the method and of the hidden impostors, not that of few
trials. If no method's interval contains the measured value (or overlaps its interval, if few trials rank first or few
do not), no extrapolation is trusted, and only the bounds are left.

References
----------
.. [1] J. Pickands, "Statistical inference using extreme order statistics", Annals of Statistics 3, 1975.
.. [2] S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.curve import linkability_at_sizes, linkability_by_row
from evaluation.linkage.ranks import Ranks, TieRule
from evaluation.metrics import clopper_pearson
from evaluation.uncertainty import PLENTY, Resampling, rate_interval
from spkbase.errors import DataError
from spkbase.progress import progress, verbosely
from spkbase.rounding import is_constant
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

Array = NDArray[np.float64]
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
SPANNED = ("normal", "tail")
"""Methods with a shape, whose intervals make up the span."""
LARGEST = 1e12
DEFAULT = Resampling(resamples=200)
"""200 resamples, seed 0, 95 %."""
HIDDEN = 20
LEAST_LEFT = 10  # least number of impostors of each trial
_LEFT = 50  # number of impostors left in the back-test
MIN_ROWS = 20
MIN_KEPT = 10
COMPONENTS = (1, 2, 3)
"""Numbers of normals in the mixtures of the method `normal`."""

MARGINS = np.linspace(-4.0, 10.0, 176)
"""The grid of margins, shape (J,)."""
_EXACT = 24  # each count up to this one has its own cell
_GROWTH = 0.12
_TINY = 1e-300
_SPREADS = (0.25, 3.0)
_ITERATIONS = 300
_TOLERANCE = 1e-3
_SHAPES = (-0.9, 0.9)
_SLACK = 1e-9
_N_INSIDE = 24  # number of sizes at which the band of the bounds holds


@one_line
@dataclass(frozen=True, eq=False)
class Prediction:
    """The extrapolation by one method, never a measurement.

    Attributes
    ----------
    method : str
        Name of the method.
    linkability, low, high : ndarray of float64 of shape (n_sizes,)
        Estimate and the ends of its interval; the bounds have no estimate, NaN.
    inside : float
        Largest deviation from the measured curve within the gallery; NaN for methods that do not model ranks.
    note : str
        How it was made.
    """

    method: str
    linkability: Array
    low: Array
    high: Array
    inside: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        if np.isnan(self.linkability).all():
            estimate = {}
        else:
            estimate = {"linkability": self.linkability}
        if np.isnan(self.inside):
            within = {}
        else:
            within = {"largest_distance_from_measured": self.inside}
        return {**estimate, "low": self.low, "high": self.high, **within, "note": self.note}


@one_line
@dataclass(frozen=True, eq=False)
class Extrapolation(Tabular):
    """Linkability beyond the gallery by several methods.

    Attributes
    ----------
    sizes : ndarray of float64 of shape (n_sizes,)
        Populations, the speaker included.
    measured_to : int
        Largest gallery that was measured, the speaker included; larger sizes are extrapolated.
    predictions : dict of str to Prediction
        By method.
    resampling : Resampling
        Resampling of the speakers.
    ties : {"shared", "strict", "lenient"}
        How ties count.
    notes : tuple of str
        Remarks to read together with the numbers.
    tests : tuple of Backtest
        Predictions for the gallery when most of it was hidden; empty if the gallery is too small.
    """

    sizes: Array
    measured_to: int
    predictions: dict[str, Prediction]
    resampling: Resampling
    ties: str
    notes: tuple[str, ...] = ()
    tests: tuple[Backtest, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether a method with a shape passed the back-test on the gallery; true without a back-test."""
        spanned = [test.held for test in self.tests if test.method in SPANNED]
        return not spanned or any(spanned)

    def span(self) -> tuple[Array, Array]:
        """Return the lowest and highest ends of the intervals of the methods that have a shape; NaN if not trusted."""
        if not self.is_trusted:
            unknown = np.full(len(self.sizes), np.nan)
            return unknown, unknown
        spanned = [part for name, part in self.predictions.items() if name in SPANNED]
        return np.min([part.low for part in spanned], axis=0), np.max(
            [part.high for part in spanned], axis=0
        )

    def ends(self) -> tuple[Array, Array]:
        """Return the span, or the bounds if no extrapolation is trusted."""
        bounds = self.predictions["bounds"]
        if self.is_trusted:
            return self.span()
        return (bounds.low, bounds.high)

    def at(self, sizes: ArrayLike) -> Extrapolation:
        """Return the extrapolation at some of the sizes."""
        kept = np.searchsorted(self.sizes, np.asarray(sizes, np.float64))
        parts = {}
        for name, part in self.predictions.items():
            parts[name] = replace(
                part, linkability=part.linkability[kept], low=part.low[kept], high=part.high[kept]
            )
        return replace(self, sizes=self.sizes[kept], predictions=parts)

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each method and size; no value is measured."""
        parts = list(self.predictions.values())
        columns = {"method": np.repeat(list(self.predictions), len(self.sizes))}
        columns["size"] = np.tile(self.sizes.astype(np.int64), len(parts))
        for name in ("linkability", "low", "high"):
            columns[name] = np.concatenate([getattr(part, name) for part in parts])
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, marked as extrapolated."""
        low, high = self.span()
        return {
            "kind": "extrapolated",
            "measured_to": self.measured_to,
            "sizes": self.sizes.astype(np.int64),
            **asdict(self.resampling),
            "tie_rule": self.ties,
            "methods": {
                name: prediction.to_dict() for name, prediction in self.predictions.items()
            },
            "span": {"low": low, "high": high},
            "notes": list(self.notes),
        }


@verbosely
@one_blas_thread()
def extrapolate(
    ranks: Ranks,
    sizes: ArrayLike = SIZES,
    *,
    impostor_scores: ArrayLike | None = None,
    ties: TieRule = "shared",
    resampling: Resampling = DEFAULT,
    verbose: bool = True,
) -> Extrapolation:
    """Extrapolate linkability to populations larger than the gallery.

    Parameters
    ----------
    ranks : Ranks
        Rank counts of the trials.
    sizes : array_like of float of shape (n_sizes,)
        Populations, the speaker included, 2 to 1e12; returned in ascending order.
    impostor_scores : array_like of float of shape (n, m), optional
        The m largest impostor scores of each trial, at least 11, better 21; the method ``tail`` needs them.
    ties : {"shared", "strict", "lenient"}
        Impostors of the same score: any order of them is equally likely, all beat the target speaker, or none.
    resampling : Resampling
        Resampling of the speakers, with at least 2 resamples; `DEFAULT` if omitted.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Extrapolation

    Raises
    ------
    DataError
        If a size or number is out of range, or there are fewer than 20 trials.

    Notes
    -----
    A trial that a random impostor beats with probability p is first among N with probability (1 - p)**(N - 1), so
    linkability at any N is a mean over the distribution of p. See docs/linkability.md for what each method takes it
    to be.
    """
    made = _extrapolated(ranks, sizes, impostor_scores, ties, resampling)
    hidden = min(HIDDEN, (ranks.largest_size - 1) // _LEFT)
    if hidden < 2:
        note = f"no back-test: {2 * _LEFT} impostors of each trial are needed, there are {ranks.largest_size - 1}"
        return replace(made, notes=(*made.notes, note))
    tests = backtest(
        ranks, hidden=hidden, impostor_scores=impostor_scores, ties=ties, resampling=resampling
    )
    made = replace(made, tests=tuple(tests))
    if made.is_trusted:
        return made
    spanned = [test for test in tests if test.method in SPANNED]
    low = min(test.low for test in spanned)
    high = max(test.high for test in spanned)
    note = (
        f"no extrapolation is trusted, and only the bounds are shown: of {tests[0].fitted_to:,} speakers the methods "
        f"predicted {low:.3g} to {high:.3g} for all {tests[0].size:,}, where {tests[0].measured:.3g} was measured"
    )
    return replace(made, notes=(*made.notes, note))


def sizes_beyond(measured_to: int, farthest: float = SIZES[-1], *, per_decade: int = 4) -> Array:
    """Return populations beyond the gallery: evenly spaced on a log scale, including powers of ten.

    Examples
    --------
    >>> sizes_beyond(2000, 1e5, per_decade=2)
    array([  2000.,   3162.,  10000.,  31623., 100000.])
    """
    powers = np.arange(0, round(np.log10(farthest) * per_decade) + 1) / per_decade
    steps = np.append(np.round(10.0**powers), float(farthest))
    return np.unique(
        np.append(steps[(steps > measured_to) & (steps <= farthest)], float(measured_to))
    )


@one_line
@dataclass(frozen=True)
class Backtest:
    """One method at one size, predicted from few impostors and measured with all.

    Attributes
    ----------
    method : str
        Name of the method.
    fitted_to, size : int
        Gallery that the method saw, and the one it predicted; the target speaker included.
    predicted, low, high : float
        Its estimate (NaN for the bounds) and its interval.
    measured : float
        Value measured on these trials with all impostors.
    held : bool
        Whether the interval contains the measured value, or overlaps its interval if few trials rank first or few do
        not.
    """

    method: str
    fitted_to: int
    size: int
    predicted: float
    low: float
    high: float
    measured: float
    held: bool


def backtest(
    ranks: Ranks,
    *,
    hidden: int = HIDDEN,
    impostor_scores: ArrayLike | None = None,
    ties: TieRule = "shared",
    resampling: Resampling = DEFAULT,
) -> list[Backtest]:
    """Return the prediction of each method for the whole gallery from one impostor in `hidden`.

    Parameters
    ----------
    ranks : Ranks
        Rank counts, of at least 10 times `hidden` impostors.
    hidden : int
        How many times larger the gallery is than what the methods see, at least 2.
    impostor_scores, ties, resampling
        See `extrapolate`; the seed also hides impostors. Of the largest impostor scores only about one in `hidden`
        is left, so the method `tail` takes part only if at least 11 are left for every trial.

    Returns
    -------
    list of Backtest
        One per method, with the measured value.

    Raises
    ------
    DataError
        If there are too few impostors to hide most of them.
    """
    most = ranks.largest_size - 1
    if hidden < 2 or most // hidden < LEAST_LEFT:
        raise DataError(
            f"expected at least {LEAST_LEFT * max(hidden, 2)} impostors to hide most of them, got {most}"
        )
    rng = np.random.default_rng(resampling.seed)
    n_left = ranks.impostors // hidden
    beaters = rng.hypergeometric(ranks.beaters, ranks.impostors - ranks.beaters, n_left)
    same = rng.hypergeometric(
        ranks.ties, ranks.impostors - ranks.beaters - ranks.ties, n_left - beaters
    )
    scores = None
    # each score is kept with equal probability, and every trial keeps as many as the one with the fewest
    if impostor_scores is not None:
        largest = -np.sort(-np.asarray(impostor_scores, np.float64), axis=1)
        kept = rng.random(largest.shape) < 1 / hidden
        count = int(kept.sum(axis=1).min())
        if count > MIN_KEPT:
            scores = np.take_along_axis(
                largest, np.argsort(~kept, axis=1, kind="stable")[:, :count], axis=1
            )
    seen = Ranks(beaters, same, n_left, ranks.speakers, ranks.mated)
    size = ranks.largest_size
    predicted = _extrapolated(seen, [size], scores, ties, resampling)
    measured = float(linkability_at_sizes(ranks, [size], ties=ties)[0])
    n_speakers = len(np.unique(ranks.speakers))
    few = _few(measured, n_speakers, len(ranks), resampling.level) or (measured, measured)
    tests = []
    for name, part in predicted.predictions.items():
        value = float(part.linkability[0])
        low = float(part.low[0])
        high = float(part.high[0])
        held = bool(low <= few[1] and few[0] <= high)
        tests.append(Backtest(name, predicted.measured_to, size, value, low, high, measured, held))
    return tests


def first_probability(
    margin: NDArray[np.float64], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probability that trials with these margins rank first among `sizes` speakers, (n_margins, n_sizes)."""
    from scipy.special import ndtr

    stays = np.log1p(-np.minimum(ndtr(-margin), 1 - 1e-16))
    return np.exp(np.multiply.outer(stays, np.asarray(sizes, np.float64) - 1))


def rank_cells(ranks: Ranks, *, ties: TieRule = "shared") -> tuple[Array, Array]:
    """Return rank counts in cells, and how likely each cell is at each margin.

    Parameters
    ----------
    ranks : Ranks
        Rank counts; rows with different numbers of impostors have separate cells.
    ties : {"shared", "strict", "lenient"}
        Impostors of the same score: any order of them is equally likely, all beat the target speaker, or none.

    Returns
    -------
    counts : ndarray of float64 of shape (S, n_cells)
        By speaker: trials in each cell, where ties are spread over several; rows sum to the speaker's trials.
    likelihood : ndarray of float64 of shape (n_cells, J)
        Probability of each cell at each of the `MARGINS`.

    Raises
    ------
    DataError
        If there are fewer than 20 trials, or none has an impostor.
    """
    from scipy.special import ndtr

    low, high = ranks.span(ties)
    impostors = ranks.impostors
    if len(ranks) < MIN_ROWS or not (impostors > 0).all():
        n_rows = int((impostors > 0).sum())
        raise DataError(
            f"expected at least {MIN_ROWS} trials with impostors to extrapolate from, got {n_rows}"
        )
    names, speaker = np.unique(ranks.speakers, return_inverse=True)
    tables = []
    shares = []
    for count in np.unique(impostors):
        rows = np.flatnonzero(impostors == count)
        # first count of each cell, and the end of the last
        edges = list(range(min(_EXACT, int(count)) + 1))
        while edges[-1] <= count:
            edges.append(min(edges[-1] + max(1, round(_GROWTH * edges[-1])), int(count) + 1))
        # share of the ranks low..high of each row in each cell
        first = np.maximum(low[rows, None], edges[:-1])
        last = np.minimum(high[rows, None], np.array(edges[1:]) - 1)
        share = np.maximum(last - first + 1, 0) / (high[rows] - low[rows] + 1)[:, None]
        used = share.sum(axis=0) > 0
        part = np.zeros((len(names), int(used.sum())))
        np.add.at(part, speaker[rows], share[:, used])
        shares.append(part)
        tables.append(_cell_probability(np.array(edges), int(count), ndtr(-MARGINS))[used])
    return np.hstack(shares), np.vstack(tables)


@one_blas_thread()
def fit_mixture(
    likelihood: Array, counts: Array, *, components: int, start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return a mixture of normal distributions of the margin, fitted to tables of counts by expectation-maximisation.

    Parameters
    ----------
    likelihood : ndarray of float64 of shape (n_cells, J)
        Probability of each cell at each of the `MARGINS`.
    counts : ndarray of float64 of shape (n_cells, B)
        Tables of counts, one per column (resample).
    components : int
        K.
    start : ndarray of float64 of shape (3, K, 1), optional
        Parameters to start from; by default components side by side, about the likeliest margin of each cell.

    Returns
    -------
    weights : ndarray of float64 of shape (J, B)
        Weights of the margins; they sum to 1.
    log_likelihood : ndarray of float64 of shape (B,)
        Log-likelihood of the counts in the cells.
    parameters : ndarray of float64 of shape (3, K, B)
        Share of each component, and mean and spread of its margin.
    """
    z = MARGINS
    share = counts / counts.sum(axis=0)
    if start is None:
        likely = z[np.argmax(likelihood, axis=1)].clip(-4, 4.5)
        mean = likely @ share
        spread = np.sqrt(np.maximum((likely**2) @ share - mean**2, 0.25))
        steps = np.linspace(-1, 1, components) if components > 1 else np.zeros(1)
        means = mean + steps[:, None] * spread
        spreads = np.broadcast_to(spread, means.shape) / np.sqrt(components)
        start = np.stack([np.full_like(means, 1 / components), means, spreads])
    parameters = np.broadcast_to(start, (3, components, counts.shape[1]))
    before = np.full(counts.shape[1], -np.inf)
    for _ in range(_ITERATIONS):
        shares, mean, spread = parameters
        logs = -0.5 * ((z[:, None, None] - mean) / spread) ** 2
        logs -= logs.max(axis=0)
        part = np.exp(logs, out=logs)  # (J, K, B)
        part /= part.sum(axis=0)
        part *= shares
        weights = part.sum(axis=1)
        likely = np.maximum(likelihood @ weights, _TINY)
        log_likelihood = (counts * np.log(likely)).sum(axis=0)
        if (log_likelihood - before).max() < _TOLERANCE:
            break
        before = log_likelihood
        part *= (likelihood.T @ (share / likely))[:, None, :]
        total = np.maximum(part.sum(axis=0), _TINY)
        mean = np.tensordot(z, part, 1) / total
        second = np.tensordot(z**2, part, 1) / total
        spread = np.sqrt(np.clip(second - mean**2, _SPREADS[0] ** 2, _SPREADS[1] ** 2))
        parameters = np.stack([total / total.sum(axis=0), mean, spread])
    return weights, log_likelihood, parameters


@one_line
@dataclass(frozen=True, eq=False)
class Tail:
    """A fitted tail.

    Attributes
    ----------
    shape : float
        Shape of the generalised Pareto distribution: below 0 scores are bounded, above 0 unbounded.
    means : ndarray of float64 of shape (n,)
        Mean excess over each trial's threshold.
    thresholds : ndarray of float64 of shape (n,)
        Where each trial's tail begins.
    rates : ndarray of float64 of shape (n,)
        Share of its impostors beyond.
    excess : ndarray of float64 of shape (n, m)
        Excesses of the kept scores over the threshold, in units of the mean excess.
    """

    shape: float
    means: Array
    thresholds: Array
    rates: Array
    excess: Array


def fit_tail(largest: Array, impostors: NDArray[np.int64]) -> Tail:
    """Return the tail of each trial's impostor scores.

    Parameters
    ----------
    largest : ndarray of float64 of shape (n, m + 1)
        The largest impostor scores of each trial, in any order; at least 11.
    impostors : ndarray of int64 of shape (n,)
        How many impostors each trial was compared with.

    Raises
    ------
    DataError
        If a score is not finite, or a trial's scores are all the same.
    """
    largest = -np.sort(-np.asarray(largest, np.float64), axis=1)
    count = largest.shape[1] - 1
    if not np.isfinite(largest).all():
        raise DataError("expected finite impostor scores")
    excess = largest[:, :-1] - largest[:, -1:]
    row_means = excess.mean(axis=1)
    if is_constant(largest, axis=1).any():
        raise DataError(
            "expected impostor scores that differ, got a trial whose largest ones are all the same"
        )
    logs = np.log(row_means)
    scatter = float(logs.var())
    noise = float((excess / row_means[:, None]).var(axis=1).mean()) / count
    trust = max(0.0, 1 - noise / scatter) if scatter > 0 else 0.0
    means = np.exp(logs.mean() + trust * (logs - logs.mean()))
    relative = excess / means[:, None]
    relative /= relative.mean()
    # division by their own mean lowers the shape by 1 / m
    shape = float(np.clip(_shape(relative.ravel()) + trust / count, *_SHAPES))
    # the rate beyond the threshold has relative error 1 / sqrt(m), and so has the threshold in units of the scale
    thresholds = largest[:, -1]
    wobble = (float(row_means.mean()) * (1 - shape)) ** 2 / count
    trust = max(0.0, 1 - wobble / max(float(thresholds.var()), wobble))
    thresholds = thresholds.mean() + trust * (thresholds - thresholds.mean())
    return Tail(shape, means, thresholds, count / np.asarray(impostors, np.float64), relative)


def beat_probabilities(
    tail: Tail, mated: Array, fallback: Array, *, shape: float | None = None, stretch: float = 1.0
) -> Array:
    """Return the probability that a random impostor beats each trial, estimated from the fitted tail or, below the
    tail's threshold, from the rank.

    Parameters
    ----------
    tail : Tail
        The fit.
    mated : ndarray of float64 of shape (n,)
        Mated scores.
    fallback : ndarray of float64 of shape (n,)
        The probability for trials below their threshold.
    shape, stretch : float
        Another shape, and a factor of the mean excess, as resamples have them.
    """
    if shape is None:
        shape = tail.shape
    above = (mated - tail.thresholds) / (tail.means * stretch * (1 - shape))
    inside = np.maximum(above, 0.0)
    exponential = abs(shape) < 1e-6
    if exponential:
        survival = np.exp(-inside)
    else:
        survival = np.maximum(1 + shape * inside, 0.0) ** (-1 / shape)
    return np.where(above > 0, tail.rates * survival, fallback)


def influences(tail: Tail) -> tuple[Array, Array]:
    """Return the influence of each trial on the shape and on the mean excess, both of shape (n,).

    The score of the shape with the scale profiled out, over its information 1 / (1 + shape)**2 for each excess.
    """
    shape = tail.shape if abs(tail.shape) > 1e-4 else 1e-4
    scale = 1 - shape  # scale of excesses with mean 1
    inner = np.maximum(1 + shape * tail.excess / scale, 1e-9)
    to_shape = np.log(inner) / shape**2 - (1 / shape + 1) * (tail.excess / scale) / inner
    to_scale = (-1 + (1 + shape) * (tail.excess / scale) / inner) / scale
    # profile out the scale: the information is [2, 1; 1, 1 + shape] / ((1 + shape) (1 + 2 shape))
    profiled = to_shape - to_scale * scale / (1 + shape)
    profiled = np.clip(profiled, *np.quantile(profiled, [0.001, 0.999]))
    total = profiled.size / (1 + shape) ** 2
    return profiled.sum(axis=1) / total, (tail.excess.mean(axis=1) - 1) / len(tail.excess)


def curve_bounds(low: Array, high: Array, inside: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the least and the largest linkability compatible with a band around the measured curve.

    Parameters
    ----------
    low, high : ndarray of float64 of shape (n_inside,)
        Band around the measured curve.
    inside : ndarray of float64 of shape (n_inside,)
        Its sizes.
    sizes : ndarray of float64 of shape (n_sizes,)
        Populations to extrapolate to.

    Returns
    -------
    least, most : ndarray of float64 of shape (n_sizes,)
        NaN where no distribution runs inside the band.
    """
    from scipy.optimize import linprog

    grid = np.append(MARGINS, np.inf)  # infinite margin: never beaten
    known = first_probability(grid, inside)
    wanted = first_probability(grid, sizes)
    limits = np.concatenate([high + _SLACK, -low + _SLACK])
    rows = np.vstack([known.T, -known.T])
    ends = np.full((2, len(sizes)), np.nan)
    for column in range(len(sizes)):
        for side, sign in enumerate((1.0, -1.0)):
            solution = linprog(
                sign * wanted[:, column],
                rows,
                limits,
                np.ones((1, len(grid))),
                [1.0],
                bounds=(0, 1),
                method="highs",
            )
            if solution.status == 0:
                ends[side, column] = sign * float(solution.fun or 0.0)
    # values below the slack of the linear programme are 0
    ends[0][ends[0] < _SLACK] = 0.0
    return np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1)


def _extrapolated(
    ranks: Ranks,
    sizes: ArrayLike,
    impostor_scores: ArrayLike | None,
    ties: TieRule,
    resampling: Resampling,
) -> Extrapolation:
    """Extrapolate without a back-test; see `extrapolate`."""
    wanted = np.unique(np.asarray(sizes, np.float64))
    if not len(wanted) or not ((wanted >= 2) & (wanted <= LARGEST)).all():
        raise DataError(f"expected populations from 2 to {LARGEST:.0e}, got {wanted.tolist()}")
    if resampling.resamples < 2:
        raise DataError(f"expected at least 2 resamples, got {resampling.resamples}")
    cells, likelihood = rank_cells(ranks, ties=ties)
    n_speakers = len(cells)
    speakers = np.unique(ranks.speakers, return_inverse=True)[1]
    # the first row is the sample itself
    drawn = np.vstack([np.ones(n_speakers), resampling.weights(n_speakers)])
    # the measured curve of each trial, at sizes up to the whole gallery, evenly spaced on a log scale
    inside = np.unique(np.geomspace(2, max(ranks.largest_size, 2), _N_INSIDE).round())
    rows = linkability_by_row(ranks, inside.astype(np.int64), ties=ties)
    counts = (drawn @ cells).T
    predictions = {
        "normal": _by_normals(
            likelihood, counts, rows.mean(axis=0), inside, wanted, resampling.level
        )
    }
    notes = []
    share = float((ranks.span(ties)[1] == 0).mean())
    if share > 0.5:
        notes.append(
            f"{100 * share:.1f} % of the trials are first in the whole gallery: their margins are poorly determined"
        )
    if impostor_scores is None:
        notes.append(
            "the method tail needs impostor scores: the span is that of the method normal alone"
        )
    else:
        scores = np.asarray(impostor_scores, np.float64)
        predictions["tail"] = _by_tail(
            ranks, scores, ties, drawn[:, speakers], wanted, resampling.level
        )
    share = float(rows[:, -1].mean())
    ends = _few(share, n_speakers, len(rows), resampling.level)
    if ends is not None:
        power = (wanted - 1) / (ranks.largest_size - 1)
        least = ends[0] ** np.maximum(power, 1.0)
        most = ends[1] ** np.minimum(power, 1.0)
        for name, part in predictions.items():
            predictions[name] = replace(
                part, low=np.minimum(part.low, least), high=np.maximum(part.high, most)
            )
    predictions["bounds"] = _by_bounds(
        rows, drawn[1:, speakers], n_speakers, inside, wanted, resampling.level
    )
    return Extrapolation(wanted, ranks.largest_size, predictions, resampling, ties, tuple(notes))


def _few(share: float, n_speakers: int, n_rows: int, level: float) -> tuple[float, float] | None:
    """Return the interval of the share of trials that rank first, if few do or few do not; else None."""
    settings: dict[str, Any] = {"n_units": n_speakers, "n_trials": n_rows, "level": level}
    if (1 - share) * n_rows < PLENTY:
        low, high = rate_interval(1 - share, **settings)
        return 1 - high, 1 - low
    if share * n_rows < PLENTY:
        return rate_interval(share, **settings)
    return None


def _by_normals(
    likelihood: Array, counts: Array, measured: Array, inside: Array, sizes: Array, level: float
) -> Prediction:
    """Average mixtures of one, two and three normals, weighted by BIC."""
    table = first_probability(MARGINS, np.concatenate([sizes, inside]))
    n_rows = float(counts[:, 0].sum())
    alone = {
        number: fit_mixture(likelihood, counts[:, :1], components=number) for number in COMPONENTS
    }
    fits = {}
    for (number, fit), share in zip(alone.items(), _trust(alone, n_rows)[:, 0], strict=True):
        if share >= 0.05:  # fits with a negligible weight need no resamples
            fits[number] = fit_mixture(likelihood, counts, components=number, start=fit[2])
    trust = _trust(fits, n_rows)
    curves = np.einsum(
        "kb,kbs->bs", trust, np.array([weights.T @ table for weights, _, _ in fits.values()])
    )
    parts = [f"{number} ({share:.2f})" for number, share in zip(fits, trust[:, 0], strict=True)]
    note = f"mixture of normal margins; numbers of components, with their weights by BIC: {', '.join(parts)}"
    off = float(np.abs(curves[0, len(sizes) :] - measured).max())
    return Prediction(
        "normal", curves[0, : len(sizes)], *_ends(curves[:, : len(sizes)], level), off, note
    )


def _trust(fits: Mapping[int, tuple[Array, Array, Array]], n_rows: float) -> Array:
    """BIC weight of each fit (by number of components), shape (n_fits, B)."""
    evidence = [
        likely - 0.5 * (3 * number - 1) * np.log(n_rows) for number, (_, likely, _) in fits.items()
    ]
    trust = np.exp(np.array(evidence) - np.max(evidence, axis=0))
    return np.asarray(trust / trust.sum(axis=0))


def _ends(curves: Array, level: float) -> tuple[Array, Array]:
    """Ends of the intervals from the curves of the sample (first) and of the resamples, (B, n_sizes)."""
    low, high = np.quantile(curves[1:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(low, curves[0]), np.maximum(high, curves[0])


def _by_tail(
    ranks: Ranks, largest: Array, ties: TieRule, weights: Array, sizes: Array, level: float
) -> Prediction:
    """Extrapolate by tails of all kept impostor scores and of their higher half; a difference widens the interval."""
    if largest.ndim != 2 or len(largest) != len(ranks) or largest.shape[1] <= MIN_KEPT:
        raise DataError(
            f"expected impostor scores of shape ({len(ranks)}, {MIN_KEPT + 1} or more), got {largest.shape}"
        )
    if not np.isfinite(ranks.mated).all():
        raise DataError("expected finite mated scores")
    largest = -np.sort(-largest, axis=1)
    fallback = (ranks.places(ties) - 0.5) / (ranks.impostors + 1)
    kept = largest.shape[1] - 1
    counts = [kept]
    if kept // 2 >= MIN_KEPT:
        counts.append(kept // 2)
    estimates = []
    shapes = []
    for count in counts:
        tail = fit_tail(largest[:, : count + 1], ranks.impostors)
        to_shape, to_mean = influences(tail)
        curves = np.empty((len(weights), len(sizes)))
        drawings = progress(weights, description="extrapolation", total=len(weights))
        for resample, drawn in enumerate(drawings):
            shape = float(np.clip(tail.shape + (drawn - 1) @ to_shape, *_SHAPES))
            stretch = max(float(1 + (drawn - 1) @ to_mean), 0.1)
            p = beat_probabilities(tail, ranks.mated, fallback, shape=shape, stretch=stretch)
            stays = np.log1p(-np.minimum(p, 1 - 1e-16))
            curves[resample] = drawn @ np.exp(np.multiply.outer(stays, sizes - 1)) / drawn.sum()
        estimates.append(curves)
        shapes.append(f"{tail.shape:.3f}" + f" of the {count} largest" * (count < kept))
    # if hardly any trial can rank first, resamples show no spread
    estimate = estimates[0][0]
    ends = [clopper_pearson(estimate * len(ranks), (1 - estimate) * len(ranks), level=level)]
    ends += [_ends(curves, level) for curves in estimates]
    low = np.min([lower for lower, _ in ends], axis=0)
    high = np.max([upper for _, upper in ends], axis=0)
    note = f"generalised Pareto tail of the {kept} largest impostor scores of each trial, shape {' and '.join(shapes)}"
    return Prediction("tail", estimate, low, high, float("nan"), note)


def _by_bounds(
    rows: Array, weights: Array, n_speakers: int, inside: Array, sizes: Array, level: float
) -> Prediction:
    """Bounds over all distributions whose curve stays within a simultaneous confidence band."""
    from scipy.special import stdtrit

    curve = rows.mean(axis=0)
    resampled = weights @ rows / weights.sum(axis=1, keepdims=True)
    deviation = np.maximum(resampled.std(axis=0, ddof=1), 1 / (3 * len(rows)))
    reach = float(np.quantile((np.abs(resampled - curve) / deviation).max(axis=1), level))
    reach = max(reach, float(stdtrit(n_speakers - 1, (1 + level) / 2)))
    low = np.maximum(curve - reach * deviation, 0)
    high = np.minimum(curve + reach * deviation, 1)
    note = "minimum and maximum over all distributions whose curve stays in the band of the measured one; no estimate"
    none = np.full(len(sizes), np.nan)
    return Prediction("bounds", none, *curve_bounds(low, high, inside, sizes), float("nan"), note)


def _cell_probability(
    edges: NDArray[np.int64], impostors: int, p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Binomial probability of each cell, computed from the tail that avoids cancellation."""
    from scipy.special import bdtr, betainc

    # at least k: betainc(k, M - k + 1, p); at most k: bdtr(k, M, p)
    k = edges[:, None].astype(np.float64)
    at_least = np.ones((len(edges), len(p)))
    inside = (edges > 0) & (edges <= impostors)
    at_least[inside] = betainc(k[inside], impostors - k[inside] + 1, p[None, :])
    at_least[edges > impostors] = 0.0
    below = np.zeros_like(at_least)
    below[edges > 0] = bdtr(np.minimum(k[edges > 0] - 1, impostors), impostors, p[None, :])
    upper = at_least[:-1] - at_least[1:]
    lower = below[1:] - below[:-1]
    return np.maximum(np.where(p[None, :] * impostors < k[:-1], upper, lower), 0.0)


def _shape(excess: Array) -> float:
    """Shape of the generalised Pareto distribution by maximum likelihood, the scale profiled out (Grimshaw)."""
    from scipy.optimize import minimize_scalar

    most = float(excess.max())

    def loss(theta: float) -> float:
        # theta = -shape / scale, below 1 / the largest
        shape = float(np.log1p(-theta * excess).mean())
        scale = -shape / theta if theta else 1.0
        return float(np.log(scale)) + shape + 1

    optimum = minimize_scalar(
        loss, bounds=(-5.0, (1 - 1e-6) / most), method="bounded", options={"xatol": 1e-7}
    )
    return float(np.log1p(-optimum.x * excess).mean())
