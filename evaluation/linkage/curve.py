"""Linkability: how often the target speaker scores highest among N enrolled speakers, for all N at once.

Conventions
-----------
Of a row with k beaters among M impostors, N - 1 impostors are drawn without replacement. The target speaker is linked
when no beater is drawn, which has the probability C(M - k, N - 1) / C(M, N - 1) [1]_; among the first r when fewer than
r are, a hypergeometric sum. This is the expected value of the published Monte Carlo [2]_, without its noise.
Linkability is the mean over rows; chance is 1 / N.

Ties. With t impostors that score the same as the target speaker, `shared` gives the target speaker 1 / (T + 1) where T
of them are drawn. That is the mean over all places of the target speaker among them: over k, k + 1, ..., k + t beaters.
It holds for every r. `strict` takes a tie for a failure (k + t beaters), `lenient` for a success (k).

Logarithms of factorials are sums of log(i / M), log-gamma without its part that is linear in the argument: that part
cancels in every ratio here, and with it most of the rounding.

Measures of N. The mean over N of a row has a closed form, with H the harmonic numbers and G = M + 1: `log`, where N
from 2 to G counts 1 / N, that is evenly spaced on a log scale, (G (H_G - H_k) / (G - k) - 1) / (H_G - 1); `uniform`,
where each N counts the same, (G / (k + 1) - 1) / (G - 1). Neither depends on a grid of sizes.

Intervals
---------
Speakers are resampled, and every size of the gallery gets an interval. Each choice is made for a reason, and
docs/studies/linkability.md shows how often such intervals hold the true value:

* *Speakers are drawn, with all rows of each*, since rows of a speaker are alike: P out of P with replacement. So an
  interval says how sure the mean over speakers *like these* is.
* *The gallery stays*, since counts of beaters do not say which impostors beat whom: nothing can be resampled there.
  Against another gallery the mean is less sure.
* *Student's t on the logit scale*, from the standard deviation of the resampled values, as in
  `evaluation.uncertainty.intervals`: a mean of probabilities is skewed near 0 and 1, its logit hardly, and the ends
  stay inside.
* *Degrees of freedom by how many speakers carry the value*: (sum x)^2 / (sum x^2) of what is linked, or of what is
  missing to 1, whichever are fewer; at least 1. Near 1 few speakers account for all that is missing, and near 0 few for
  all there is, and resamples then hardly show the spread: with P - 1 degrees intervals hold far too seldom.
* *No wider than the interval of Clopper and Pearson for a share out of P*: a mean of numbers from 0 to 1 is as sure as
  a share at least. This is the whole interval where resamples show no spread, such as where all speakers are linked.

Draws
-----
Draws are several anonymised versions of the same trials, each with its own random numbers. The mean over draws is the
linkability of all rows together, and resamples of speakers take all rows of a speaker, of all draws. What the draws add
to such an interval is in `evaluation.uncertainty.intervals`; linkability is a mean over speakers, so the three parts of
its variance need no resamples. With r_pd for the sum over the rows of speaker p in draw d minus as many times the
draw's mean, in units of the mean number of rows:

    S = sum over p of (mean over d of r_pd)^2 / (P (P - 1))
    I = sum over p and d of (r_pd - mean over d of r_pd)^2 / (P (P - 1) D (D - 1))

Steps
-----
`linkability` goes from embeddings, or scores with their key, to the curve over sizes of the gallery in one call. Its
steps can be used separately: `ranks` finds where target speakers rank, `curve` and `intervals` make
curves and intervals of ranks, `evaluation.reports.linkability` everything that the command reports.

References
----------
.. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.
.. [2] "A large-scale per-speaker analysis of re-identification risk in speech anonymization", 2026.
.. [3] R. Graham, D. Knuth, O. Patashnik, "Concrete Mathematics", chapters 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.embeddings import Embeddings
from evaluation.linkage.ranks import Ranks, TieRule, ranks_from_embeddings, ranks_from_scores
from evaluation.metrics import Method, clopper_pearson, sort_with_warning
from evaluation.trials import Key, Missing, Scores, split_scores
from evaluation.uncertainty import (
    BLOCK,
    Interval,
    Resampling,
    block_generator,
    draw_counts,
    from_scale,
    to_scale,
    widening,
)
from spkbase.errors import DataError
from spkbase.progress import progress, verbosely
from spkbase.rounding import is_constant
from spkbase.showing import Tabular, one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread

Measure = Literal["log", "uniform"]
MEASURES: tuple[Measure, ...] = ("log", "uniform")

_CELLS = 1 << 21
_ALL_UP_TO = 100_000

METHOD = "t on the logit scale, degrees of freedom by the effective number of speakers"
_LOGIT = Method("logit", lower=0, upper=1)


@one_blas_thread()
def linkability_at_sizes(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1
) -> NDArray[np.float64]:
    """Return the probability that the target speaker is among the first `top` of N, averaged over rows.

    Parameters
    ----------
    ranks : Ranks
        Beaters, ties and impostors of each row.
    sizes : array_like of int of shape (S,)
        Sizes N of the gallery, target speaker included, from 1 to the largest that every row can serve.
    ties : {"shared", "strict", "lenient"}
        How ties count; see the module.
    top : int
        The r of "among the first r".

    Returns
    -------
    ndarray of float64 of shape (S,)

    Raises
    ------
    DataError
        If a size or `top` is out of range, or the rule is unknown.

    Examples
    --------
    Of nine impostors two beat the target speaker, so that it is first of two in seven cases of nine.

    >>> linkability_at_sizes(Ranks([2], 0, 9), [1, 2, 10]).round(3)
    array([1.   , 0.778, 0.   ])
    """
    kinds, blocks = probabilities(ranks, sizes, ties=ties, top=top)
    shares = np.bincount(kinds) / len(ranks)
    return np.concatenate([shares @ block for block in blocks] or [np.empty(0)])


def linkability_by_row(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1
) -> NDArray[np.float64]:
    """Return the probability for each row at each size; parameters and errors as in `linkability_at_sizes`.

    Returns
    -------
    ndarray of float64 of shape (n, S)
    """
    kinds, blocks = probabilities(ranks, sizes, ties=ties, top=top)
    return np.hstack([np.empty((len(ranks), 0)), *(block[kinds] for block in blocks)])


def linkability_over_sizes(
    ranks: Ranks, *, measure: Measure = "log", ties: TieRule = "shared"
) -> NDArray[np.float64]:
    """Return the mean of each row's linkability over the sizes from 2 to its whole gallery, in closed form.

    Parameters
    ----------
    ranks : Ranks
        Beaters, ties and impostors of each row.
    measure : {"log", "uniform"}
        How sizes count; see the module.
    ties : {"shared", "strict", "lenient"}
        How ties count.

    Returns
    -------
    ndarray of float64 of shape (n,)
        1 for target speakers that nobody beats, 0 for target speakers that everybody beats.

    Raises
    ------
    DataError
        If the measure or the rule is unknown.

    Examples
    --------
    >>> linkability_over_sizes(Ranks([0, 1, 2], 0, 2), measure="uniform")
    array([1.  , 0.25, 0.  ])
    """
    if measure not in MEASURES:
        raise DataError(
            f"expected one of the measures of sizes {', '.join(MEASURES)}, got {measure!r}"
        )
    low, high = ranks.span(ties)
    values = np.empty(len(ranks))
    for impostors in np.unique(ranks.impostors).tolist():
        some = ranks.impostors == impostors
        size = impostors + 1
        beaters = np.arange(impostors + 1)
        if measure == "uniform":
            table = (size / (beaters + 1) - 1) / (size - 1)
        else:
            harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, size + 1)))
            table = (size / (size - beaters) * (harmonic[size] - harmonic[beaters]) - 1) / (
                harmonic[size] - 1
            )
        sums = np.append(0.0, np.cumsum(table))
        first = low[some]
        last = high[some]
        means = (sums[last + 1] - sums[first]) / (last - first + 1)
        values[some] = np.where(first == last, table[first], means)
    return values


def chance(sizes: ArrayLike, *, top: int = 1) -> NDArray[np.float64]:
    """Return the linkability of uninformative scores, min(1, top / N), at each size."""
    return np.minimum(1.0, top / np.asarray(sizes, np.float64))


def monte_carlo(
    ranks: Ranks,
    sizes: ArrayLike,
    *,
    runs: int = 5,
    seed: int = 0,
    ties: TieRule = "shared",
    top: int = 1,
) -> NDArray[np.float64]:
    """Estimate linkability as published: by draws of N - 1 impostors for each row, size and run.

    Each size and run has its own generator, so that errors are independent along the curve and between runs. The
    number of beaters in a draw is hypergeometric, and is drawn as such.

    Parameters
    ----------
    ranks, sizes, ties, top
        See `linkability_at_sizes`. Under `shared` the order among ties is drawn too.
    runs : int
        Number of repetitions.
    seed : int
        Seed of the draws, not negative.

    Returns
    -------
    ndarray of float64 of shape (runs, S)

    Raises
    ------
    DataError
        If a number is out of range, or the rule is unknown.
    """
    if runs < 1 or seed < 0:
        raise DataError(f"expected at least 1 run and a seed from 0, got {runs} and {seed}")
    sizes = _checked_sizes(ranks, sizes, top)
    low, high = ranks.span(ties)
    shares = np.empty((runs, len(sizes)))
    for run in progress(range(runs), description="draws of galleries", total=runs):
        for column, size in enumerate(sizes.tolist()):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run, size)))
            beaters = low + rng.integers(0, high - low + 1)
            if size > 1:
                drawn = rng.hypergeometric(beaters, ranks.impostors - beaters, size - 1)
            else:
                drawn = 0 * beaters
            shares[run, column] = (drawn < top).mean()
    return shares


def published_sizes(largest: int) -> NDArray[np.int64]:
    """Return the sizes of the Speaker-Linkability tool, ascending: the gallery is halved while at least 20 remain.

    Examples
    --------
    >>> published_sizes(600)
    array([ 37,  75, 150, 300, 600])
    """
    sizes = []
    while largest >= 20:
        sizes.append(largest)
        largest //= 2
    return np.array(sizes[::-1], np.int64)


def probabilities(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1
) -> tuple[NDArray[np.int64], Iterator[NDArray[np.float64]]]:
    """Return the kind of each row, and in blocks of sizes the probability that each kind is linked.

    Rows with equal numbers of beaters, ties and impostors are one kind, which is computed once.

    Returns
    -------
    kinds : ndarray of int64 of shape (n,)
    blocks : iterator of ndarray of float64 of shape (D, block)
        Probabilities of the D kinds, at a number of sizes that limits the memory.
    """
    sizes = _checked_sizes(ranks, sizes, top)
    low, high = ranks.span(ties)
    distinct, kinds = np.unique(np.stack([ranks.impostors, low, high]), axis=1, return_inverse=True)
    return kinds.reshape(-1), _blocks(distinct, sizes - 1, top)


def all_sizes(largest: int) -> NDArray[np.int64]:
    """Return all sizes from 2 to the largest, or `log_spaced_sizes` if there are more than 100,000.

    Examples
    --------
    >>> all_sizes(5)
    array([2, 3, 4, 5])
    """
    if largest <= _ALL_UP_TO:
        return np.arange(2, largest + 1)
    return log_spaced_sizes(largest)


def log_spaced_sizes(largest: int, count: int = 1000) -> NDArray[np.int64]:
    """Return distinct sizes from 2 to the largest, evenly spaced on a log scale.

    Examples
    --------
    >>> log_spaced_sizes(100, 5)
    array([  2,   5,  14,  38, 100])
    """
    return np.unique(np.round(np.geomspace(2, largest, min(count, largest - 1))).astype(np.int64))


def by_speaker(
    speakers: Sequence[str] | NDArray[np.str_], values: NDArray[np.float64]
) -> dict[str, float]:
    """Return the mean over the rows of each speaker, in the order of the names.

    Parameters
    ----------
    speakers : sequence of str of length n
        Speaker of each row.
    values : ndarray of float64 of shape (n,)
        Value of each row, such as a result of `linkability_over_sizes`.
    """
    names, codes = np.unique(np.asarray(speakers, np.str_), return_inverse=True)
    sums = np.bincount(codes, values, len(names))
    return dict(
        zip(names.tolist(), (sums / np.bincount(codes, minlength=len(names))).tolist(), strict=True)
    )


@one_line
@dataclass(frozen=True, eq=False)
class Curve(Tabular):
    """Linkability against the size of the gallery, with the ends of its intervals.

    Attributes
    ----------
    sizes : ndarray of int64 of shape (S,)
        Sizes of the gallery, target speaker included.
    values, low, high, chance : ndarray of float64 of shape (S,)
        Linkability, the ends (NaN without intervals or if undefined), and the value of uninformative scores.
    top : int
        The r of "among the first r".
    level : float
        Confidence level of the intervals; NaN where that is not known.
    """

    sizes: NDArray[np.int64]
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    chance: NDArray[np.float64]
    top: int = 1
    level: float = float("nan")

    def headline(self) -> str:
        """Return linkability in the largest gallery, with its interval and chance."""
        last = int(np.argmax(self.sizes))
        interval = ""
        if np.isfinite(self.low[last]):
            interval = f" [{self.low[last]:.4f}, {self.high[last]:.4f}]"
        text = f"linkability {self.values[last]:.4f}{interval} among {self.sizes[last]} speakers"
        return f"{text}, by chance {self.chance[last]:.4f}"

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each size of the gallery."""
        columns = {
            "size": self.sizes,
            "linkability": self.values,
            "low": self.low,
            "high": self.high,
        }
        return columns | {"chance": self.chance}


@one_blas_thread()
def linkability_curve(
    ranks: Ranks,
    sizes: ArrayLike,
    *,
    ties: TieRule = "shared",
    top: int = 1,
    resampling: Resampling | None = None,
) -> Curve:
    """Return linkability for many sizes of the gallery, with intervals by a bootstrap of the speakers.

    Parameters
    ----------
    ranks, sizes, ties, top
        See `evaluation.linkage.linkability_at_sizes`.
    resampling : Resampling, optional
        Resampling for the intervals; none by default.

    Returns
    -------
    Curve

    Raises
    ------
    DataError
        If a size or `top` is out of range, or the rule is unknown.
    """
    from scipy.sparse import coo_array

    sizes = _checked_sizes(ranks, sizes, top)
    by_chance = chance(sizes, top=top)
    none = np.full(len(sizes), np.nan)
    if resampling is None or not resampling.resamples:
        return Curve(
            sizes,
            linkability_at_sizes(ranks, sizes, ties=ties, top=top),
            none,
            none,
            by_chance,
            top,
        )
    kinds, blocks = probabilities(ranks, sizes, ties=ties, top=top)
    names, speakers = np.unique(ranks.speakers, return_inverse=True)
    # number of rows of each kind for each speaker
    counts = coo_array(
        (np.ones(len(ranks)), (speakers, kinds)), shape=(len(names), kinds.max() + 1)
    ).tocsr()
    shares = np.bincount(kinds) / len(ranks)
    # number of rows of each kind in each resample
    weights = np.asarray((counts.T @ _draws(len(names), resampling).T).T)
    weights /= weights.sum(axis=1, keepdims=True)
    # if each speaker has one row, equal rows are counted together; otherwise speakers are treated one by one
    single = len(ranks) == len(names)
    if single:
        rows = np.ones(len(shares))
        alike = np.asarray(counts.sum(axis=0), np.float64)
    else:
        rows = np.asarray(counts.sum(axis=1), np.float64)
        alike = np.ones(len(names))
    parts = []
    for block in blocks:
        for start, stop in chunk_bounds(
            block.shape[1], max(1, _CELLS // max(resampling.resamples, len(rows)))
        ):
            some = block[:, start:stop]
            carried = some if single else counts @ some
            freedom = carriers(carried, rows, alike)
            parts.append(
                (
                    shares @ some,
                    *_ends(shares @ some, weights @ some, freedom, len(names), resampling.level),
                )
            )
    if not parts:
        return Curve(sizes, none, none, none, by_chance, top, resampling.level)
    values, low, high = map(np.concatenate, zip(*parts, strict=True))
    return Curve(sizes, values, low, high, by_chance, top, resampling.level)


@one_blas_thread()
def mean_interval(
    values: ArrayLike, resampling: Resampling | None = None, *, counts: ArrayLike | None = None
) -> Interval:
    """Return the mean of one value in [0, 1] per speaker, with an interval as for a size of `linkability_curve`.

    Parameters
    ----------
    values : array_like of float of shape (P,)
        Between 0 and 1.
    resampling : Resampling, optional
        By default that of `Resampling`; without resamples the ends are NaN.
    counts : array_like of float of shape (P,), optional
        Number of rows of each speaker, whose mean the value is: the mean is that of all rows. 1 for each by default.

    Returns
    -------
    Interval

    Examples
    --------
    >>> found = mean_interval([0.0, 1.0] * 50)
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (0.5, 0.4, 0.6)
    """
    values = np.asarray(values, np.float64)
    rows = np.ones(len(values)) if counts is None else np.asarray(counts, np.float64)
    resampling = resampling or Resampling()
    linked = rows * values
    mean = float(linked.sum() / rows.sum())
    if not resampling.resamples:
        return Interval(mean)
    weights = _draws(len(values), resampling)
    drawn = weights @ linked / (weights @ rows)
    freedom = carriers(linked[:, None], rows, np.ones(len(values)))
    low, high = _ends(np.array([mean]), drawn[:, None], freedom, len(values), resampling.level)
    return Interval(mean, float(low[0]), float(high[0]), METHOD)


def carriers(
    linked: NDArray[np.float64], rows: NDArray[np.float64], alike: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the effective number of speakers behind each mean: the degrees of freedom of its interval.

    For amounts x it is (sum x)^2 / (sum x^2), the number of equal amounts with the same sum and the same sum of
    squares. The amounts are the linked rows of the speakers, or their missing rows, whichever number is smaller; the
    result is never more than the number of speakers minus one.

    Parameters
    ----------
    linked : ndarray of float64 of shape (K, S)
        Rows linked of each kind of speaker, at each size.
    rows : ndarray of float64 of shape (K,)
        Rows that each kind has.
    alike : ndarray of float64 of shape (K,)
        Speakers of each kind.

    Returns
    -------
    ndarray of float64 of shape (S,)
    """
    freedom = np.full(linked.shape[1], max(alike.sum() - 1.0, 0.0))
    for part in (linked, rows[:, None] - linked):
        squares = alike @ np.square(part)
        some = squares > 0
        freedom[some] = np.minimum(freedom[some], (alike @ part)[some] ** 2 / squares[some])
    return freedom


def linkability_over_draws(
    draws: Sequence[Ranks], sizes: ArrayLike, *, resampling: Resampling | None = None
) -> Curve:
    """Return the mean linkability over draws for many gallery sizes, with intervals over speakers and draws.

    Parameters
    ----------
    draws : sequence of Ranks
        One per draw, of the same rows.
    sizes, resampling
        See `linkability_curve`, whose result is returned for a single draw.

    Returns
    -------
    Curve
    """
    curve = linkability_curve(all_draws(draws), sizes, resampling=resampling)
    if (
        len(draws) < 2
        or resampling is None
        or not resampling.resamples
        or np.isnan(curve.low).all()
    ):
        return curve
    speakers, added, n_units = _parts(draws, curve.sizes)
    factor = widening(speakers, added, n_units=n_units, n_draws=len(draws), level=resampling.level)
    centre, low, high = to_scale(np.stack([curve.values, curve.low, curve.high]), _LOGIT)
    low = from_scale(centre + factor * (low - centre), _LOGIT)
    high = from_scale(centre + factor * (high - centre), _LOGIT)
    wider = factor > 1
    return replace(
        curve, low=np.where(wider, low, curve.low), high=np.where(wider, high, curve.high)
    )


def all_draws(draws: Sequence[Ranks]) -> Ranks:
    """Return the rows of all draws in one table."""
    if len(draws) == 1:
        return draws[0]
    columns = {}
    for name in ("beaters", "ties", "impostors", "speakers", "mated"):
        columns[name] = np.concatenate([getattr(ranks, name) for ranks in draws])
    notes: dict[str, None] = {}
    for ranks in draws:
        notes |= dict.fromkeys(ranks.notes)
    return Ranks(
        **columns, notes=tuple(notes), are_speakers=all(ranks.are_speakers for ranks in draws)
    )


@verbosely
def linkability(
    enrolled: Embeddings | Scores,
    tested: Embeddings | Key,
    sizes: ArrayLike | None = None,
    *,
    utterances: int | Literal["all"] | None = None,
    ties: TieRule = "shared",
    resampling: Resampling | None = None,
    work: Work = ALL_CORES,
    missing: Missing = "error",
    verbose: bool = True,
) -> Curve:
    """Return how often the target speaker scores highest among N enrolled speakers, for many N.

    Parameters
    ----------
    enrolled, tested : Embeddings and Embeddings, or Scores and Key
        Embeddings of the enrolled speakers and of the trials, compared by cosine; or scores of any kind, each model one
        enrolled speaker, with the key whose target trials say who the target speaker is.
    sizes : array_like of int of shape (S,), optional
        Sizes N of the gallery, target speaker included; all from 2 on by default, above 100,000 a thousand evenly
        spaced on a log scale.
    utterances : int or "all", optional
        Number of utterances averaged into a trial. By default one: of embeddings, the first utterance of each speaker;
        of scores, each segment, which is then a separate trial.
    ties : {"shared", "strict", "lenient"}
        How impostors with the target speaker's score count; see `evaluation.linkage.curve`.
    resampling : Resampling, optional
        Resampling of the trial speakers for intervals; default 1000 draws, seed 0, 95 %; ``Resampling(0)`` for none.
    work : Work
        Workers; the result does not depend on them.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Curve
        `sizes`, `values`, `low`, `high`, and `chance`, which is 1 / N.

    Raises
    ------
    DataError
        If the first two arguments do not fit together, ids or dimensions do not fit, a vector has no direction, or a
        size is beyond the gallery.

    References
    ----------
    .. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.

    Examples
    --------
    Fifty speakers, and another, noisy utterance of each:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> names = [f"s{number:02d}" for number in range(50)]
    >>> voices = rng.standard_normal((50, 16))
    >>> enrolled = Embeddings(names, names, voices)
    >>> tested = Embeddings([f"{name}-b" for name in names], names, voices + 1.5 * rng.standard_normal((50, 16)))
    >>> curve = linkability(enrolled, tested, [2, 10, 50])
    >>> curve.values.round(2)
    array([0.96, 0.85, 0.66])
    >>> bool((curve.low < curve.values).all() and (curve.values < curve.high).all())
    True
    """
    if isinstance(enrolled, Embeddings) and isinstance(tested, Embeddings):
        if utterances is None:
            utterances = 1
        number = None if utterances == "all" else utterances
        ranks = ranks_from_embeddings(enrolled, tested, utterances=number, work=work)
    elif isinstance(enrolled, Scores) and isinstance(tested, Key):
        sort_with_warning(*split_scores(enrolled, tested, missing=missing))
        ranks = ranks_from_scores(enrolled, tested, utterances=utterances, missing=missing)
    else:
        got = f"{type(enrolled).__name__} and {type(tested).__name__}"
        raise DataError(f"expected Embeddings and Embeddings, or Scores and Key, got {got}")
    if sizes is None:
        sizes = all_sizes(ranks.largest_size)
    return linkability_curve(ranks, sizes, ties=ties, resampling=resampling or Resampling())


def _checked_sizes(ranks: Ranks, sizes: ArrayLike, top: int) -> NDArray[np.int64]:
    """Return sizes of the gallery as integers, after a check that every row can serve them."""
    wanted = np.asarray(sizes)
    largest = ranks.largest_size
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise DataError(
            f"expected sizes to be integers of shape (S,), got {wanted.dtype} of shape {wanted.shape}"
        )
    bad = wanted[(wanted < 1) | (wanted > largest)]
    if len(bad):
        remedy = "larger populations can only be extrapolated"
        raise DataError(
            f"expected sizes from 1 to {largest}, the whole gallery, got {bad[0]}", remedy=remedy
        )
    if top < 1:
        raise DataError(f"expected top to be at least 1, got {top}")
    return wanted.astype(np.int64)


def _blocks(
    distinct: NDArray[np.int64], drawn: NDArray[np.int64], top: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the probabilities of kinds (impostors, least and most beaters) for numbers of drawn impostors."""
    impostors, low, high = distinct
    tables = {size: _log_factorials(size) for size in np.unique(impostors).tolist()}
    for start, stop in chunk_bounds(len(drawn), max(1, _CELLS // len(low))):
        block = np.empty((len(low), stop - start))
        for size, table in tables.items():
            single = (impostors == size) & (low == high)
            block[single] = _fewer_than(top, low[single], size, drawn[start:stop], table)
            for row in np.flatnonzero((impostors == size) & (low < high)).tolist():
                beaters = np.arange(low[row], high[row] + 1)
                parts = chunk_bounds(len(beaters), max(1, _CELLS // (stop - start)))
                shares = (
                    _fewer_than(top, beaters[at:end], size, drawn[start:stop], table)
                    for at, end in parts
                )
                block[row] = sum(
                    (part.sum(axis=0) for part in shares), np.zeros(stop - start)
                ) / len(beaters)
        yield block


def _fewer_than(
    top: int,
    beaters: NDArray[np.int64],
    impostors: int,
    drawn: NDArray[np.int64],
    table: NDArray[Any],
) -> NDArray[np.float64]:
    """Probability that fewer than `top` of k beaters are among n drawn of m impostors, (len(beaters), len(drawn)).

    `table` holds log factorials from index `impostors` on, preceded by infinity, which stands for impossible.
    """
    k = beaters[:, None]
    n = drawn
    m = impostors
    outer = table[m:][m - k] + (table[m:][m - n] - table[m:][m])
    probability: NDArray[np.float64] = np.exp(outer - table[(m - k) + (m - n)])
    for j in range(1, min(top, int(beaters.max(initial=0)) + 1)):
        # log of C(k, j) C(m - k, n - j) / C(m, n) without its constant factor
        terms = table[m:][k] - table[m:][j] - table[m + k - j] + table[m:][n] - table[m + n - j]
        # indices beyond the table mean more than k or n, to which the terms already give probability 0
        probability += np.exp(outer + terms - table[np.minimum((m - k) + (m - n) + j, 2 * m)])
    np.minimum(probability, 1.0, out=probability)
    return probability


def _log_factorials(impostors: int) -> NDArray[np.float64]:
    """Sums of log(i / M) for i up to 0, 1, ..., M, preceded by M infinite entries, shape (2 M + 1,)."""
    steps = np.log(np.arange(1, impostors + 1, dtype=np.longdouble) / np.longdouble(impostors))
    sums = np.append(0.0, np.cumsum(steps).astype(np.float64))
    return np.append(np.full(impostors, np.inf), sums)


def _draws(n_units: int, resampling: Resampling) -> NDArray[np.float64]:
    """Count how often each unit occurs in each resample, shape (resamples, n_units)."""
    blocks = enumerate(chunk_bounds(resampling.resamples, BLOCK))
    generators = [
        (block_generator(resampling.seed, block), stop - start) for block, (start, stop) in blocks
    ]
    return np.vstack(
        [draw_counts(n_units, count, rng, one_by_one=True) for rng, count in generators]
    )


def _ends(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    freedom: NDArray[np.float64],
    n_units: int,
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the interval of each column, from value, resampled values and degrees of freedom."""
    from scipy.special import stdtrit

    if n_units < 2:
        return np.full(len(values), np.nan), np.full(len(values), np.nan)
    # values and resamples are summed in different orders, so 0 and 1 may differ by an ulp
    both = np.vstack([resampled, values])
    both[both < 1e-300] = 0.0
    both[np.abs(1 - both) < 1e-12] = 1.0
    resampled = both[:-1]
    values = both[-1]
    scaled = to_scale(both, _LOGIT)
    factor = np.sqrt(n_units / (n_units - 1)) * stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2)
    reach = factor * scaled[:-1].std(axis=0, ddof=1)
    # exact interval of a share of the speakers
    low, high = clopper_pearson(values * n_units, (1 - values) * n_units, level=level)
    spread = ~is_constant(resampled) & (reach > 0)
    low[spread] = np.maximum(low, from_scale(scaled[-1] - reach, _LOGIT))[spread]
    high[spread] = np.minimum(high, from_scale(scaled[-1] + reach, _LOGIT))[spread]
    return low, high


def _parts(
    draws: Sequence[Ranks], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Variance due to speakers and variance that draws add, at each size, and the number of speakers."""
    names = np.unique(draws[0].speakers)
    residuals = []
    means = []
    for ranks in draws:
        speakers = np.searchsorted(names, ranks.speakers)
        values = linkability_by_row(ranks, sizes)
        sums = np.zeros((len(names), len(sizes)))
        np.add.at(sums, speakers, values)
        rows = np.bincount(speakers, minlength=len(names))[:, None]
        means.append(sums.sum(axis=0) / len(ranks))
        residuals.append((sums - rows * means[-1]) * len(names) / len(ranks))
    stacked = np.stack(residuals)
    count = len(names)
    n_draws = len(draws)
    shared = stacked.mean(axis=0)
    pairs = max(count * (count - 1), 1)
    both = np.square(stacked - shared).sum(axis=(0, 1)) / (pairs * n_draws * (n_draws - 1))
    spread = np.var(np.stack(means), axis=0, ddof=1) / n_draws
    return np.square(shared).sum(axis=0) / pairs, np.maximum(0.0, spread - both), count
