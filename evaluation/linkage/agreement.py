"""Do conditions agree on who is easy and who is hard to link? Overlaps of sets, corrected for chance.

Conventions
-----------
The Jaccard similarity of sets is the size of their intersection over that of their union. Two random quarters of the
same speakers have 1/7 on average, not 0. *Chance* here is what the overlap would be if each set held the same number of
speakers, but speakers at random (a permutation of the speakers of each set). For two sets the intersection is then
hypergeometric, and chance, its interval and the p-value are exact; for means over pairs and for more than two sets they
come from seeded permutations. The *corrected* similarity is (J - chance) / (1 - chance), as in Cohen's kappa: 0 at
chance, 1 for equal sets, below 0 for sets that avoid each other.

The p-value is the share of permutations (or their exact probability) with an overlap at least as large.

References
----------
.. [1] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960.
.. [2] N. Chung et al., "Jaccard/Tanimoto similarity test and estimation methods for biological presence-absence data",
   BMC Bioinformatics 20, 2019.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread


@one_line
@dataclass(frozen=True)
class Agreement:
    """How far sets agree.

    Attributes
    ----------
    intersection, union : float
        Numbers of speakers; means where it is a mean over pairs.
    jaccard : float
        Similarity; NaN where a set is empty.
    chance, low, high : float
        Mean similarity by chance, and the ends of the interval that holds it in a share `level` of permutations.
    corrected : float
        (jaccard - chance) / (1 - chance).
    p_value : float
        Probability by chance of a similarity at least as large.
    spread : float
        Standard deviation of the similarity over pairs; NaN for one pair.
    n_pairs : int
        Number of pairs in the mean; 1 for a single comparison.
    """

    intersection: float
    union: float
    jaccard: float
    chance: float
    low: float
    high: float
    corrected: float
    p_value: float
    spread: float = float("nan")
    n_pairs: int = 1


def corrected_for_chance(jaccard: float, chance: float) -> float:
    """Return a similarity rescaled so that chance is 0 and equality 1.

    Examples
    --------
    >>> round(corrected_for_chance(1 / 7, 1 / 7), 12), corrected_for_chance(1.0, 1 / 7)
    (0.0, 1.0)
    """
    return (jaccard - chance) / (1 - chance) if chance < 1 else float("nan")


@one_blas_thread()
def pair_agreement(
    first: Collection[str], second: Collection[str], n_speakers: int, *, level: float = 0.95
) -> Agreement:
    """Return how far two sets out of the same speakers agree; chance is exact.

    Parameters
    ----------
    first, second : collection of str
        The sets.
    n_speakers : int
        How many speakers they were taken from.
    level : float
        Share of permutations that the interval of chance holds.

    Raises
    ------
    DataError
        If the sets hold more speakers than there are, or the level is out of range.

    Examples
    --------
    >>> round(pair_agreement(range(250), range(125, 375), 1000).chance, 3)
    0.143
    """
    first, second = frozenset(first), frozenset(second)
    _check(len(first | second), n_speakers, level)
    common, together = len(first & second), len(first | second)
    if not first or not second:
        return _undefined(common, together)
    counts, probability = _hypergeometric(n_speakers, len(first), len(second))
    similarity = counts / (len(first) + len(second) - counts)
    chance = float(probability @ similarity)
    rising = np.cumsum(probability)
    tail = (1 - level) / 2
    ends = np.minimum(np.searchsorted(rising, [tail + 1e-12, 1 - tail - 1e-12]), len(counts) - 1)
    low, high = similarity[ends].tolist()
    jaccard = common / together
    above = float(probability[counts >= common].sum())
    return Agreement(
        common,
        together,
        jaccard,
        chance,
        float(low),
        float(high),
        corrected_for_chance(jaccard, chance),
        min(above, 1.0),
    )


def joint_agreement(
    members: NDArray[np.bool_], *, permutations: int = 1000, seed: int = 0, level: float = 0.95
) -> Agreement:
    """Return how far several sets agree at once: those in all of them over those in any of them.

    Parameters
    ----------
    members : ndarray of bool of shape (n_sets, n_speakers)
        Who is in each set; at least 2 sets.
    permutations : int
        Of the speakers of each set.
    seed : int
        Of the permutations.
    level : float
        See `pair_agreement`.
    """
    _check(0, members.shape[1], level, permutations)
    common, together = int(members.all(axis=0).sum()), int(members.any(axis=0).sum())
    if not members.any(axis=1).all():
        return _undefined(common, together)
    drawn = np.empty(permutations)
    rng = np.random.default_rng(seed)
    for permutation in range(permutations):
        shuffled = rng.permuted(members, axis=1)
        drawn[permutation] = shuffled.all(axis=0).sum() / shuffled.any(axis=0).sum()
    return _against(drawn, common / together, level, common, together)


@one_blas_thread()
def mean_agreement(
    members: NDArray[np.bool_],
    pairs: Sequence[tuple[int, int]],
    *,
    permutations: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Return the mean similarity over pairs of sets; pairs with an empty set do not count.

    Parameters
    ----------
    members : ndarray of bool of shape (n_sets, n_speakers)
        Who is in each set.
    pairs : sequence of (int, int)
        Rows to compare; a set may be in several pairs, and is permuted once for all of them.
    permutations, seed, level
        See `joint_agreement`.
    """
    _check(0, members.shape[1], level, permutations)
    sizes = members.sum(axis=1)
    counted = [(first, second) for first, second in pairs if sizes[first] and sizes[second]]
    if not counted:
        return _undefined(n_pairs=0)
    left, right = np.array(counted).T
    total = (sizes[left] + sizes[right]).astype(np.float64)

    def similarities(rows: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        numbers = rows.astype(np.float32)
        common = (numbers @ numbers.T)[left, right].astype(np.float64).round()
        return common, common / (total - common)

    common, found = similarities(members)
    rng = np.random.default_rng(seed)
    drawn = np.array([similarities(rng.permuted(members, axis=1))[1].mean() for _ in range(permutations)])
    spread = float(found.std()) if len(found) > 1 else float("nan")
    mean = _against(drawn, float(found.mean()), level, float(common.mean()), float((total - common).mean()))
    return replace(mean, spread=spread, n_pairs=len(counted))


def _against(drawn: NDArray[np.float64], jaccard: float, level: float, intersection: float, union: float) -> Agreement:
    chance = float(drawn.mean())
    low, high = (float(end) for end in np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
    # the sample itself is one of the permutations
    p_value = float((1 + (drawn >= jaccard - 1e-12).sum()) / (1 + len(drawn)))
    return Agreement(intersection, union, jaccard, chance, low, high, corrected_for_chance(jaccard, chance), p_value)


def _undefined(common: int = 0, together: int = 0, n_pairs: int = 1) -> Agreement:
    """An empty set neither agrees nor disagrees with another: their similarity is 0 whoever is in the other."""
    nothing = float("nan")
    return Agreement(common, together, nothing, nothing, nothing, nothing, nothing, nothing, n_pairs=n_pairs)


def _hypergeometric(total: int, first: int, second: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sizes of the intersection of two random sets, and their probabilities."""
    from scipy.special import gammaln

    counts = np.arange(max(0, first + second - total), min(first, second) + 1)

    def log_choose(n: int, k: NDArray[np.int64] | int) -> NDArray[np.float64]:
        return np.asarray(gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1))

    logs = log_choose(first, counts) + log_choose(total - first, second - counts) - log_choose(total, second)
    probability = np.exp(logs - logs.max())
    return counts, probability / probability.sum()


def _check(n_members: int, n_speakers: int, level: float, permutations: int = 1) -> None:
    if n_members > n_speakers:
        raise DataError(f"expected sets out of {n_speakers} speakers, got {n_members} in them")
    if not 0 < level < 1:
        raise DataError(f"expected a level between 0 and 1, got {level}")
    if permutations < 1:
        raise DataError(f"expected at least 1 permutation, got {permutations}")
