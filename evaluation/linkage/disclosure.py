"""Disclosure by ranks: the cumulative match characteristic, and similarity rank disclosure in bits.

Conventions
-----------
The cumulative match characteristic (CMC) gives for each r how often the target speaker is among the first r of the
whole gallery; ties are spread as `evaluation.linkage.curve` spreads them.

Similarity rank disclosure [1]_ asks how much a rank tells about who somebody is. An attacker who knows nothing gives
each of N speakers the probability 1 / N. With p(r) the probability that the target speaker has the rank r, seeing a
list of ranks raises the probability of the one on rank r to p(r), which discloses log2(N p(r)) bits. The mean
disclosure is the sum of p(r) log2(N p(r)), that is log2 N minus the entropy of the rank; the worst is the largest over
r. For p the default is the beta-binomial distribution of largest likelihood, since there are seldom enough trials for N
bins; the histogram, which is far too high where trials are fewer than ranks, is reported with it. The rank spread
is the share of ranks with p(r) > 1 / N.

The module also finds the largest impostor scores of each trial, to which a tail is fitted beyond the gallery, and joins
the worst case of scores (`evaluation.metrics.worst_case`) with the ranks of target speakers.

References
----------
.. [1] T. Bäckström et al., "Privacy disclosure of similarity rank in speech and language processing", 2025.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.embeddings import SpeakerVectors, to_unit
from evaluation.linkage.ranks import Ranks, TieRule, ranks_from_scores
from evaluation.metrics import Evidence, WorstCase, rank_evidence, worst_case
from evaluation.trials import Key, Missing, Scores, recode, split_scores
from spkbase.arrays import Rows, part
from spkbase.errors import DataError
from spkbase.work import Work, chunk_bounds, one_blas_thread

_BOUND = 18.0  # limit of the logs of the parameters
_SLOPE = 1e-9  # slope of the log-likelihood at which the fit ends

KEPT = 21


def rank_shares(ranks: Ranks, *, ties: TieRule = "shared") -> NDArray[np.float64]:
    """Return the share of rows with each rank of the target speaker in the whole gallery, shape (M + 1,).

    Raises
    ------
    DataError
        If rows differ in their number of impostors.
    """
    impostors = int(ranks.impostors.max())
    if impostors > ranks.impostors.min():
        raise DataError(
            f"expected the same number of impostors in each row, got {ranks.impostors.min()} to {impostors}",
            remedy="ranks of the whole gallery are comparable only if all galleries have the same size",
        )
    kinds, counts = np.unique(np.stack(ranks.span(ties)), axis=1, return_counts=True)
    shares = np.zeros(impostors + 1)
    for low, high, count in zip(*kinds.tolist(), counts.tolist(), strict=True):
        shares[low : high + 1] += count / (high - low + 1)
    return shares / len(ranks)


def cumulative_match(ranks: Ranks, *, ties: TieRule = "shared") -> NDArray[np.float64]:
    """Return the share of rows with the target speaker among the first r, for each r; errors as in `rank_shares`.

    >>> cumulative_match(Ranks([0, 1], 0, 2))
    array([0.5, 1. , 1. ])
    """
    return np.minimum(np.cumsum(rank_shares(ranks, ties=ties)), 1.0)


@one_blas_thread()
def similarity_rank_disclosure(ranks: Ranks, *, ties: TieRule = "shared") -> dict[str, float]:
    """Return the similarity rank disclosure in the whole gallery.

    Returns
    -------
    dict of str to float
        ``mean_bits`` and ``worst_bits`` under the beta-binomial distribution, ``histogram_mean_bits`` and
        ``histogram_worst_bits`` under the histogram of ranks, and ``alpha`` and ``beta``, the parameters of the
        distribution of the number of beaters: 1 and 1 where ranks are uniform.

    Raises
    ------
    DataError
        If rows differ in their number of impostors.
    """
    shares = rank_shares(ranks, ties=ties)
    alpha, beta = fit_beta_binomial(shares)
    bits = (*_bits(_beta_binomial(len(shares) - 1, alpha, beta)), *_bits(shares))
    names = ("mean_bits", "worst_bits", "histogram_mean_bits", "histogram_worst_bits")
    return dict(zip(names, bits, strict=True)) | {"alpha": alpha, "beta": beta}


def rank_spread(alpha: float, beta: float, impostors: int) -> float:
    """Return the share of ranks that are more probable than by chance, p(r) > 1 / N, under a beta-binomial.

    A small spread with much disclosure is a sharp peak: few ranks, mostly the first, hold the target speaker.

    Parameters
    ----------
    alpha, beta : float
        See `similarity_rank_disclosure`.
    impostors : int
        Number of impostors, N - 1.

    References
    ----------
    .. [1] Chandra et al., Odyssey 2026, arXiv 2605.07291.

    Examples
    --------
    >>> rank_spread(1.0, 1.0, 9), rank_spread(1.0, 2.0, 9)
    (0.0, 0.5)
    """
    by_chance = 1 / (impostors + 1)
    return float((_beta_binomial(impostors, alpha, beta) > by_chance * (1 + 1e-9)).mean())


@one_blas_thread()
def fit_beta_binomial(shares: ArrayLike) -> tuple[float, float]:
    """Fit a beta-binomial distribution to shares of 0, 1, ..., M by maximum likelihood.

    With S(i) the share above i and T(i) the share below M - i, and without terms that do not depend on the parameters,
    the log-likelihood is the sum over i = 0, ..., M - 1 of

        S(i) log(alpha + i) + T(i) log(beta + i) - log(alpha + beta + i)

    Its slope in log alpha is alpha times the sum of S(i) / (alpha + i) - 1 / (alpha + beta + i), and so for beta. Both
    are sums of M terms without cancellation, so the search ends where the slope is below 1e-9. If only the share of 0,
    or only that of M, is not 0, the loss falls to 0 together with its slope: then the distribution is exact to 1e-9,
    but the parameters are not determined, except that alpha / beta goes to 0 or to infinity.

    Returns
    -------
    alpha, beta : float
        Between exp(-18) and exp(18): if all values are 0, or all M, there is no inner maximum.
    """
    from scipy.optimize import minimize

    share = np.asarray(shares, np.float64) / np.sum(shares)
    steps = np.arange(len(share) - 1)
    above = np.cumsum(share[:0:-1])[::-1]
    below = np.cumsum(share[:-1])[::-1]

    def loss(logs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        alpha, beta = np.exp(logs)
        both = alpha + beta + steps
        # sums instead of dot products, which differ between BLAS libraries
        value = np.sum(np.log(both) - above * np.log(alpha + steps) - below * np.log(beta + steps))
        slope_alpha = alpha * np.sum(1 / both - above / (alpha + steps))
        slope_beta = beta * np.sum(1 / both - below / (beta + steps))
        return float(value), np.array([slope_alpha, slope_beta])

    # start from the moments of the shares, if these give valid parameters, and from the uniform distribution
    values = np.arange(len(share)) / (len(share) - 1)
    mean = float(np.sum(share * values))
    variance = float(np.sum(share * (values - mean) ** 2))
    mean = min(max(mean, 1e-6), 1 - 1e-6)
    total = max(mean * (1 - mean) / max(variance, 1e-12) - 1, 1e-3)
    starts = [np.zeros(2), np.clip(np.log([mean * total, (1 - mean) * total]), -_BOUND, _BOUND)]
    settings: dict[str, Any] = {
        "jac": True,
        "method": "L-BFGS-B",
        "bounds": [(-_BOUND, _BOUND)] * 2,
    }
    fits = [
        minimize(loss, start, options={"ftol": 0.0, "gtol": _SLOPE}, **settings) for start in starts
    ]
    alpha, beta = np.exp(min(fits, key=lambda fit: fit.fun).x).tolist()
    return alpha, beta


def largest_impostor_scores(
    gallery: SpeakerVectors,
    trials: SpeakerVectors,
    ranks: Ranks,
    *,
    count: int = KEPT,
    jobs: int | None = None,
    gallery_block: int = 4096,
    trial_block: int = 512,
) -> NDArray[np.float64]:
    """Return the largest cosines of each trial with enrolled speakers other than its target speaker.

    Parameters
    ----------
    gallery, trials : SpeakerVectors
        One vector per speaker; the ones from which the ranks were computed.
    ranks : Ranks
        Ranks of the trials, which determine their order: one row per speaker.
    count : int
        Number of scores to keep, at most the number of impostors.
    jobs : int, optional
        Number of workers; all cores by default. The result does not depend on it.
    gallery_block, trial_block : int
        Enrolled speakers and trials that are compared at once, which bounds the memory.

    Returns
    -------
    ndarray of float64 of shape (n_rows, count)
        Scores in descending order, from products in float32.

    Raises
    ------
    DataError
        If a row's speaker is not on both sides, or there are fewer impostors than `count`.
    """
    if not 1 <= count < len(gallery.names):
        raise DataError(
            f"expected to keep 1 to {len(gallery.names) - 1} impostor scores, got {count}"
        )
    owners = recode(ranks.speakers, gallery.names)
    rows = recode(ranks.speakers, trials.names)
    absent = ranks.speakers[(owners < 0) | (rows < 0)].tolist()
    if absent:
        raise DataError(
            f"expected the vectors that the ranks were computed from, but there is none for {absent[0]!r}"
        )
    unit = to_unit(trials.vectors[rows], trials.norms[rows]).astype(np.float32)
    bounds = chunk_bounds(len(gallery.names), gallery_block)
    parts = (
        (start, part(gallery.vectors, start, stop), gallery.norms[start:stop])
        for start, stop in bounds
    )
    best = np.full((len(rows), count), -np.inf, np.float32)
    search = partial(_largest, unit, owners, count, trial_block)
    for largest in Work(jobs).map(search, parts, total=len(bounds)):
        best = -np.partition(-np.concatenate([best, largest], axis=1), count - 1, axis=1)[:, :count]
    return -np.sort(-best.astype(np.float64), axis=1)


def rank_evidence_of(ranks: Ranks) -> Evidence:
    """Return the strongest evidence of ranks; see `evaluation.metrics.rank_llrs`.

    Galleries of different sizes, such as those of women and men, are evaluated separately: the attacker knows the size.
    """
    sizes = np.unique(ranks.impostors).tolist()
    parts = [ranks.subset(ranks.impostors == size) for size in sizes]
    strongest = [
        rank_evidence(rank_shares(part), len(part)) for part in parts if part.largest_size > 1
    ]
    if not strongest:
        return Evidence(float("nan"), "not given: a rank needs impostors")
    return max(strongest, key=lambda evidence: evidence.llr)


def worst_case_from(scores: Scores, key: Key, *, missing: Missing = "error") -> WorstCase:
    """Return the strongest evidence about one person in any trial, by four estimates.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does; each model is one enrolled speaker.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score, and scores of unknown ids.

    Returns
    -------
    WorstCase
        The reading by ranks is left out, with a note, if the trials do not form a gallery of one size.

    Raises
    ------
    DataError
        As `split_scores`, or if a class is empty.
    """
    target, nontarget = split_scores(scores, key, missing=missing)
    try:
        ranks = rank_evidence_of(ranks_from_scores(scores, key, missing=missing))
    except DataError as error:
        ranks = Evidence(float("nan"), f"not given: {error.text}")
    return worst_case(target, nontarget, ranks=ranks)


def _beta_binomial(n_draws: int, alpha: float, beta: float) -> NDArray[np.float64]:
    """Return the probabilities of 0, ..., M by sums of logs, since large beta functions would cancel."""
    from scipy.special import betaln

    steps = np.arange(n_draws)
    values = np.arange(n_draws + 1)
    rises = [
        np.append(0.0, np.cumsum(np.log(start + steps))) for start in (alpha, beta, alpha + beta)
    ]
    choices = -np.log(n_draws + 1) - betaln(n_draws - values + 1, values + 1)
    probability: NDArray[np.float64] = np.exp(choices + rises[0] + rises[1][::-1] - rises[2][-1])
    return probability


def _bits(shares: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the largest disclosure of a distribution of ranks."""
    seen = shares[shares > 0]
    bits = np.log2(len(shares) * seen)
    return max(float(np.sum(seen * bits)), 0.0), float(bits.max())


def _largest(
    unit: NDArray[np.float32],
    owners: NDArray[np.int64],
    count: int,
    trial_block: int,
    item: tuple[int, Rows, NDArray[np.float64]],
) -> NDArray[np.float32]:
    """Find the largest cosines, unsorted, within a part of the gallery, given by first row, vectors and lengths."""
    first, rows, norms = item
    vectors = np.asarray(np.asarray(rows) / norms[:, None], np.float32)
    kept = min(count, len(vectors))
    largest = np.full((len(unit), kept), -np.inf, np.float32)
    for start, stop in chunk_bounds(len(unit), trial_block):
        similarity = unit[start:stop] @ vectors.T
        places = owners[start:stop] - first
        owned = np.flatnonzero((places >= 0) & (places < len(vectors)))
        similarity[owned, places[owned]] = -np.inf
        largest[start:stop] = -np.partition(-similarity, kept - 1, axis=1)[:, :kept]
    return largest
