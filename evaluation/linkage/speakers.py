"""Found speakers: their own recordings rank them first more often than other recordings do.

An attacker that gives all recordings the same name always finds the bearer of this name, but has learnt nothing. So a
speaker counts as found only by comparison with other people's recordings: the recordings that rank the speaker first
are compared with a hypergeometric distribution, under the hypothesis that it does not matter whose they are (Fisher's
exact test, one-sided).

References
----------
R. A. Fisher, On the interpretation of chi-squared from contingency tables, and the calculation of P, Journal of the
Royal Statistical Society 85(1), 1922.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.ranks import GalleryTrials
from evaluation.metrics import eer

CLEARLY = 0.01
"""Level of the test by which a speaker is found."""

MOSTLY = 0.5
"""Share of the own recordings, beyond that of other people's, above which a speaker is mostly found."""

_SLACK = 1e-9
# number of random rates; determines the lowest tenth by chance within about a percentage point
_DRAWN = 2000


class FoundSpeakers(NamedTuple):
    """The speakers found among S speakers.

    Attributes
    ----------
    is_found : ndarray of bool of shape (S,)
        Whether own recordings rank the speaker first clearly more often than other people's recordings do.
    by_chance : ndarray of float64 of shape (S,)
        Probability of this if it does not matter whose the recordings are; at most the level. The sum is the expected
        number of speakers found by chance.
    """

    is_found: NDArray[np.bool_]
    by_chance: NDArray[np.float64]


def first_places(values: ArrayLike, models: ArrayLike, segments: ArrayLike) -> NDArray[np.float64]:
    """Return for each trial whether its model has the highest score of its segment; equal scores share the first rank.

    Parameters
    ----------
    values : array_like of float of shape (n,)
        Scores.
    models, segments : array_like of int of shape (n,)
        Codes from 0.

    Examples
    --------
    >>> first_places([2.0, 1.0, 3.0, 3.0], [0, 1, 0, 1], [0, 0, 1, 1]).tolist()
    [1.0, 0.0, 0.5, 0.5]
    """
    scores = np.asarray(values, dtype=float)
    codes = np.asarray(segments)
    highest = np.full(codes.max() + 1, -np.inf)
    np.maximum.at(highest, codes, scores)
    is_first = scores == highest[codes]
    shares: NDArray[np.float64] = is_first / np.bincount(codes, is_first)[codes]
    return shares


def found_speakers(
    own_first: ArrayLike,
    n_own: ArrayLike,
    others_first: ArrayLike,
    n_others: ArrayLike,
    *,
    level: float = CLEARLY,
) -> FoundSpeakers:
    """Return the speakers found, and the probabilities of finding them by chance.

    Parameters
    ----------
    own_first, others_first : array_like of float of shape (S,)
        Share of the speaker's own recordings, and of other people's, that rank the speaker first.
    n_own, n_others : array_like of int of shape (S,)
        Numbers of recordings that are compared with the speaker.
    level : float
        Level of the test.

    Examples
    --------
    >>> found_speakers([1.0, 0.5], [8, 8], [1.0, 0.02], [100, 100]).is_found.tolist()
    [False, True]
    """
    from scipy.stats import hypergeom

    own = np.asarray(n_own)
    everybody = own + np.asarray(n_others)
    first = np.floor(np.asarray(own_first) * own + _SLACK).astype(int)
    all_first = first + np.ceil(np.asarray(others_first) * np.asarray(n_others) - _SLACK).astype(
        int
    )
    p_values = hypergeom.sf(first - 1, everybody, all_first, own)
    by_chance = []
    for sizes in zip(everybody.tolist(), all_first.tolist(), own.tolist(), strict=True):
        tail = hypergeom.sf(np.arange(-1, sizes[2]), *sizes)
        by_chance.append(tail[tail <= level].max(initial=0.0))
    is_found: NDArray[np.bool_] = np.asarray(p_values <= level)
    return FoundSpeakers(is_found, np.array(by_chance))


class FirstShares(NamedTuple):
    """How often each of S speakers ranks first, in own recordings and in other people's.

    Attributes
    ----------
    speakers : ndarray of str of shape (S,)
        Tested speakers, sorted.
    own, others : ndarray of float64 of shape (S,)
        Share of the speaker's own recordings, and of other people's, that rank the speaker first.
    n_own, n_others : ndarray of int64 of shape (S,)
        Numbers of these recordings.
    """

    speakers: NDArray[np.object_]
    own: NDArray[np.float64]
    others: NDArray[np.float64]
    n_own: NDArray[np.int64]
    n_others: NDArray[np.int64]


def first_shares(trials: GalleryTrials) -> FirstShares:
    """Return how often each tested speaker ranks first; equal scores share the place.

    Parameters
    ----------
    trials : GalleryTrials
        See `evaluation.linkage.gallery_trials`.
    """
    first = first_places(trials.values, trials.models, trials.rows)
    targets = trials.is_target
    n_models = int(trials.models.max()) + 1
    n_own = np.bincount(trials.models[targets], minlength=n_models)
    n_others = np.bincount(trials.models[~targets], minlength=n_models)
    own = np.bincount(trials.models[targets], first[targets], n_models)
    others = np.bincount(trials.models[~targets], first[~targets], n_models)
    names = np.full(n_models, "", object)
    names[trials.models[targets]] = np.array(trials.owners, object)[trials.rows[targets]]
    tested = np.flatnonzero(n_own)
    order = tested[np.argsort(names[tested].astype(str), kind="stable")]
    return FirstShares(
        names[order],
        own[order] / n_own[order],
        others[order] / np.maximum(n_others[order], 1),
        n_own[order],
        n_others[order],
    )


def mostly_found(shares: FirstShares, *, level: float = CLEARLY) -> NDArray[np.bool_]:
    """Return who ranks first in more than half of their own recordings, relative to other people's recordings.

    A model to which all recordings of one voice are nearest (a hub) ranks first in all of its bearer's recordings too.
    So a speaker counts if the share of own recordings exceeds that of other people's by more than a half, and is found
    clearly, see `found_speakers`.

    Parameters
    ----------
    shares : FirstShares
        See `first_shares`.
    level : float
        Level of the test.

    Returns
    -------
    ndarray of bool of shape (S,)

    Examples
    --------
    >>> shares = FirstShares(np.array(["hub", "found"]), [1.0, 0.8], [1.0, 0.01], [10, 10], [90, 90])
    >>> mostly_found(shares).tolist()
    [False, True]
    """
    own = np.asarray(shares.own)
    others = np.asarray(shares.others)
    is_found, _ = found_speakers(own, shares.n_own, others, shares.n_others, level=level)
    in_most: NDArray[np.bool_] = is_found & (own - others > MOSTLY)
    return in_most


def lowest_tenth(rates: ArrayLike) -> float:
    """Return the mean of the lowest tenth of the rates, at least one of them.

    Examples
    --------
    >>> lowest_tenth([0.4, 0.1, 0.3]), lowest_tenth(np.arange(20))
    (0.1, 0.5)
    """
    ordered = np.sort(np.asarray(rates, dtype=float))
    return float(ordered[: -(-len(ordered) // 10)].mean())


def lowest_tenth_by_chance(n_target: ArrayLike, n_nontarget: ArrayLike, *, seed: int = 0) -> float:
    """Return the mean equal error rate of the lowest tenth of speakers if scores are uninformative.

    It is below 50 %, since some speakers with few recordings are recognised by luck.

    Parameters
    ----------
    n_target, n_nontarget : array_like of int of shape (S,)
        Numbers of trials of each speaker.
    seed : int
        Seed of the random scores.
    """
    rng = np.random.default_rng(seed)
    sizes = list(zip(np.asarray(n_target).tolist(), np.asarray(n_nontarget).tolist(), strict=True))
    means = []
    for _ in range(-(-_DRAWN // len(sizes))):
        rates = [eer(rng.normal(size=own), rng.normal(size=others)) for own, others in sizes]
        means.append(lowest_tenth(rates))
    return float(np.mean(means))
