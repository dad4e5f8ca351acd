"""Linkability: how often the owner of a voice scores highest among N enrolled speakers, for all N at once.

Conventions
-----------
Of a row with k beaters among M impostors, N - 1 impostors are drawn without replacement. The owner is linked when no
beater is drawn, which has the probability C(M - k, N - 1) / C(M, N - 1) [1]_; among the first r when fewer than r are,
a hypergeometric sum. This is the expected value of the published Monte Carlo [2]_, without its noise. Linkability is
the mean over rows; chance is 1 / N.

Ties. With t impostors that score the same as the owner, `shared` gives the owner 1 / (T + 1) where T of them are drawn.
That is the mean over an owner who comes anywhere among them as likely: over k, k + 1, ..., k + t beaters. It holds for
every r. `strict` takes a tie for a failure (k + t beaters), `lenient` for a success (k).

Logarithms of factorials are sums of log(i / M), log-gamma without its part that is linear in the argument: that part
cancels in every ratio here, and with it most of the rounding.

Measures of N. The mean over N of a row has a closed form, with H the harmonic numbers and G = M + 1: `log`, where N
from 2 to G counts 1 / N, that is alike on a log scale, (G (H_G - H_k) / (G - k) - 1) / (H_G - 1); `uniform`, where each
N counts the same, (G / (k + 1) - 1) / (G - 1). Neither depends on a grid of sizes.

References
----------
.. [1] N. Vauquier et al., "Legally validated evaluation framework for voice anonymization", Interspeech 2025.
.. [2] "A large-scale per-speaker analysis of re-identification risk in speech anonymization", 2026.
.. [3] R. Graham, D. Knuth, O. Patashnik, "Concrete Mathematics", chapters 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.table import Ranks, TieRule
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import chunk_bounds, one_blas_thread

Measure = Literal["log", "uniform"]
MEASURES: tuple[Measure, ...] = ("log", "uniform")

_CELLS = 1 << 21
_ALL_UP_TO = 100_000


@one_blas_thread()
def linkability_at_sizes(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1
) -> NDArray[np.float64]:
    """Return the probability that the owner is among the first `top` of N, averaged over rows.

    Parameters
    ----------
    ranks : Ranks
        Beaters, ties and impostors of each row.
    sizes : array_like of int of shape (S,)
        Sizes N of the gallery, owner included, from 1 to the largest that every row can serve.
    ties : {"shared", "strict", "lenient"}
        What a tie counts; see the module.
    top : int
        The r of "among the first r".

    Returns
    -------
    ndarray of float64 of shape (S,)

    Raises
    ------
    DataError
        If a size or `top` is out of range, or there is no such rule.

    Examples
    --------
    Of nine impostors two beat the owner, so that it is first of two in seven cases of nine.

    >>> linkability_at_sizes(Ranks.of([2], 0, 9), [1, 2, 10]).round(3)
    array([1.   , 0.778, 0.   ])
    """
    spans = distinct_spans(ranks, ties)
    shares = np.bincount(spans.inverse, minlength=len(spans.low)) / len(ranks)
    sizes = checked_sizes(ranks, sizes)
    return np.concatenate([shares @ block for block in probability_blocks(spans, sizes, top)] or [np.empty(0)])


def linkability_by_row(
    ranks: Ranks, sizes: ArrayLike, *, ties: TieRule = "shared", top: int = 1
) -> NDArray[np.float64]:
    """Return the probability of each row at each size; parameters and errors as for `linkability_at_sizes`.

    Returns
    -------
    ndarray of float64 of shape (n, S)
    """
    spans = distinct_spans(ranks, ties)
    sizes = checked_sizes(ranks, sizes)
    values = np.empty((len(ranks), len(sizes)))
    at = 0
    for block in probability_blocks(spans, sizes, top):
        values[:, at : at + block.shape[1]] = block[spans.inverse]
        at += block.shape[1]
    return values


def linkability_over_sizes(ranks: Ranks, *, measure: Measure = "log", ties: TieRule = "shared") -> NDArray[np.float64]:
    """Return the mean of each row's linkability over the sizes from 2 to its whole gallery, in closed form.

    Parameters
    ----------
    ranks : Ranks
        Beaters, ties and impostors of each row.
    measure : {"log", "uniform"}
        How sizes count; see the module.
    ties : {"shared", "strict", "lenient"}
        What a tie counts.

    Returns
    -------
    ndarray of float64 of shape (n,)
        1 for owners that nobody beats, 0 for those that all beat.

    Raises
    ------
    DataError
        If there is no such measure or rule.

    Examples
    --------
    >>> linkability_over_sizes(Ranks.of([0, 1, 2], 0, 2), measure="uniform")
    array([1.  , 0.25, 0.  ])
    """
    if measure not in MEASURES:
        raise DataError(f"expected a measure of sizes among {', '.join(MEASURES)}, got {measure!r}")
    low, high = ranks.span(ties)
    values = np.empty(len(ranks))
    for impostors in np.unique(ranks.impostors).tolist():
        some = ranks.impostors == impostors
        table = _over_sizes(impostors + 1, measure)
        sums = np.append(0.0, np.cumsum(table))
        first, last = low[some], high[some]
        means = (sums[last + 1] - sums[first]) / (last - first + 1)
        values[some] = np.where(first == last, table[first], means)
    return values


def chance(sizes: ArrayLike, *, top: int = 1) -> NDArray[np.float64]:
    """Return the linkability of scores that say nothing, min(1, top / N), for each of the sizes."""
    return np.minimum(1.0, top / np.asarray(sizes, np.float64))


def monte_carlo(
    ranks: Ranks, sizes: ArrayLike, *, runs: int = 5, seed: int = 0, ties: TieRule = "shared", top: int = 1
) -> NDArray[np.float64]:
    """Return linkability estimated as it was published: by draws of N - 1 impostors for each row, size and run.

    Each size and run has a generator of its own, so that errors are independent along the curve and between runs. The
    number of beaters in a draw is hypergeometric, and is drawn as such.

    Parameters
    ----------
    ranks, sizes, ties, top
        See `linkability_at_sizes`. Under `shared` the order among ties is drawn too.
    runs : int
        Number of repetitions.
    seed : int
        Not negative.

    Returns
    -------
    ndarray of float64 of shape (runs, S)

    Raises
    ------
    DataError
        If a number is out of range, or there is no such rule.
    """
    if runs < 1 or seed < 0:
        raise DataError(f"expected at least 1 run and a seed from 0, got {runs} and {seed}")
    sizes = checked_sizes(ranks, sizes)
    _check_top(top)
    low, high = ranks.span(ties)
    shares = np.empty((runs, len(sizes)))
    for run in range(runs):
        for column, size in enumerate(sizes.tolist()):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run, size)))
            beaters = low + rng.integers(0, high - low + 1)
            drawn = rng.hypergeometric(beaters, ranks.impostors - beaters, size - 1) if size > 1 else 0 * beaters
            shares[run, column] = (drawn < top).mean()
    return shares


def published_sizes(largest: int) -> NDArray[np.int64]:
    """Return the sizes of the Speaker-Linkability tool: the gallery halved again and again while 20 are left, rising.

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


@one_line
@dataclass(frozen=True, eq=False)
class Spans:
    """The distinct kinds of rows: low to high beaters, each as likely, among so many impostors.

    Attributes
    ----------
    low, high, impostors : ndarray of int64 of shape (D,)
        Of each kind.
    inverse : ndarray of int64 of shape (n,)
        The kind of each row.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    impostors: NDArray[np.int64]
    inverse: NDArray[np.int64]


def distinct_spans(ranks: Ranks, ties: TieRule = "shared") -> Spans:
    """Return the distinct kinds of rows under a rule for ties."""
    low, high = ranks.span(ties)
    kinds, inverse = np.unique(np.stack([ranks.impostors, low, high]), axis=1, return_inverse=True)
    return Spans(kinds[1], kinds[2], kinds[0], inverse.reshape(-1))


def checked_sizes(ranks: Ranks, sizes: ArrayLike) -> NDArray[np.int64]:
    """Return sizes of the gallery as integers, checked against what every row can serve.

    Raises
    ------
    DataError
        If they are no integers, or one is below 1 or beyond the smallest gallery.
    """
    wanted = np.asarray(sizes)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        if not (wanted.ndim == 1 and wanted.size == 0):
            raise DataError(f"expected sizes to be integers of shape (S,), got {wanted.dtype} of shape {wanted.shape}")
        wanted = wanted.astype(np.int64)
    largest = ranks.largest_size
    bad = wanted[(wanted < 1) | (wanted > largest)]
    if len(bad):
        remedy = "larger populations can only be extrapolated"
        raise DataError(f"expected sizes from 1 to {largest}, the whole gallery, got {bad[0]}", remedy=remedy)
    return wanted.astype(np.int64)


def probability_blocks(spans: Spans, sizes: NDArray[np.int64], top: int = 1) -> Iterator[NDArray[np.float64]]:
    """Yield the probabilities of the kinds of rows, shape (D, block), for blocks of sizes that bound the memory."""
    _check_top(top)
    tables = {impostors: _log_factorials(impostors) for impostors in np.unique(spans.impostors).tolist()}
    width = max(1, _CELLS // len(spans.low))
    for start, stop in chunk_bounds(len(sizes), width):
        block = np.empty((len(spans.low), stop - start))
        for impostors, table in tables.items():
            some = spans.impostors == impostors
            drawn = sizes[start:stop] - 1
            block[some] = _probabilities(spans.low[some], spans.high[some], impostors, drawn, table, top)
        yield block


def _probabilities(
    low: NDArray[np.int64], high: NDArray[np.int64], impostors: int, drawn: NDArray[np.int64], table: NDArray, top: int
) -> NDArray[np.float64]:
    """Probabilities of kinds of rows with as many impostors, shape (D, S)."""
    single = low == high
    probabilities = np.empty((len(low), len(drawn)))
    probabilities[single] = _fewer_than(top, low[single], impostors, drawn, table)
    for row in np.flatnonzero(~single).tolist():
        total, step = np.zeros(len(drawn)), max(1, _CELLS // max(1, len(drawn)))
        for first in range(int(low[row]), int(high[row]) + 1, step):
            beaters = np.arange(first, min(first + step, int(high[row]) + 1))
            total += _fewer_than(top, beaters, impostors, drawn, table).sum(axis=0)
        probabilities[row] = total / (high[row] - low[row] + 1)
    return probabilities


def _fewer_than(
    top: int, beaters: NDArray[np.int64], impostors: int, drawn: NDArray[np.int64], table: NDArray
) -> NDArray[np.float64]:
    """Probability that fewer than `top` beaters are drawn, shape (len(beaters), len(drawn)).

    `table` holds log factorials from index `impostors` on, and before them infinity, which stands for impossible.
    """
    k, n, m = beaters[:, None], drawn, impostors
    outer = table[m:][m - k] + (table[m:][m - n] - table[m:][m])
    probability = np.exp(outer - table[(m - k) + (m - n)])
    for j in range(1, min(top, int(beaters.max(initial=0)) + 1)):
        # C(k, j) C(m - k, n - j) / C(m, n), as the first term with what j changes
        terms = table[m:][k] - table[m:][j] - table[m + k - j] + table[m:][n] - table[m + n - j]
        # beyond the table more than k or n are asked for, which the terms already make impossible
        probability += np.exp(outer + terms - table[np.minimum((m - k) + (m - n) + j, 2 * m)])
    return np.minimum(probability, 1.0, out=probability)


def _log_factorials(impostors: int) -> NDArray[np.float64]:
    """Sums of log(i / M) for i up to 0, 1, ..., M, with M entries of infinity before them, shape (2 M + 1,)."""
    steps = np.log(np.arange(1, impostors + 1, dtype=np.longdouble) / np.longdouble(impostors))
    table = np.full(2 * impostors + 1, np.inf)
    table[impostors] = 0.0
    table[impostors + 1 :] = np.cumsum(steps)
    return table


def _over_sizes(size: int, measure: Measure) -> NDArray[np.float64]:
    """Mean over sizes from 2 to `size`, for each number of beaters, shape (size,)."""
    beaters = np.arange(size)
    if measure == "uniform":
        return (size / (beaters + 1) - 1) / (size - 1)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, size + 1)))
    return (size / (size - beaters) * (harmonic[size] - harmonic[beaters]) - 1) / (harmonic[size] - 1)


def _check_top(top: int) -> None:
    if top < 1:
        raise DataError(f"expected the owner among the first 1 or more, got {top}")


def all_sizes(largest: int) -> NDArray[np.int64]:
    """Return all sizes from 2 to the largest, or those of `log_spaced_sizes` where they are more than 100,000.

    Examples
    --------
    >>> all_sizes(5)
    array([2, 3, 4, 5])
    """
    return np.arange(2, largest + 1) if largest <= _ALL_UP_TO else log_spaced_sizes(largest)


def log_spaced_sizes(largest: int, count: int = 1000) -> NDArray[np.int64]:
    """Return distinct sizes from 2 to the largest, alike on a log scale.

    Examples
    --------
    >>> log_spaced_sizes(100, 5)
    array([  2,   5,  14,  38, 100])
    """
    return np.unique(np.round(np.geomspace(2, largest, min(count, largest - 1))).astype(np.int64))


def by_speaker(speakers: Sequence[str] | NDArray[np.str_], values: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean over the rows of each speaker, in the order of the names.

    Parameters
    ----------
    speakers : sequence of str of length n
        Speaker of each row.
    values : ndarray of float64 of shape (n,)
        Of each row, such as what `linkability_over_sizes` returns.
    """
    names, codes = np.unique(np.asarray(speakers, np.str_), return_inverse=True)
    sums = np.bincount(codes, values, len(names))
    return dict(zip(names.tolist(), (sums / np.bincount(codes, minlength=len(names))).tolist(), strict=True))
