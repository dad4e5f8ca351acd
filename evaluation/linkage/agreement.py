"""Agreement of attackers and anonymisers on easy and hard speakers: overlaps of sets, corrected for chance.

Overlap of sets
---------------
The Jaccard similarity of sets is the size of their intersection over that of their union. Two random quarters of the
same speakers have 1/7 on average, not 0. *Chance* here is the overlap of random sets with as many speakers each
 (a permutation of the speakers of each set). For two sets the intersection is then
hypergeometric, and chance, its interval and the p-value are exact; for means over pairs and for more than two sets they
come from seeded permutations. The *corrected* similarity is (J - chance) / (1 - chance), as in Cohen's kappa: 0 at
chance, 1 for equal sets, below 0 for sets that avoid each other.

The p-value is the share of permutations (or their exact probability) with an overlap at least as large.

Conditions
----------
A *condition* is one level of each factor, such as attacker ECAPA, anonymiser B3, 3 utterances. Two conditions are a
*pair* of a factor if they differ only in this factor. The similarity of a factor is the mean over its pairs, as
published. *Global* sets are unions over the numbers of utterances, as published, compared by attacker and by
anonymiser. A *joint* similarity compares all levels of a factor, or all conditions, at once: speakers in all sets over
speakers in any.

Quarters are taken among the speakers that all conditions share, so that all sets come out of the same speakers.

References
----------
.. [1] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960.
.. [2] N. Chung et al., "Jaccard/Tanimoto similarity test and estimation methods for biological presence-absence data",
   BMC Bioinformatics 20, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.quarters import KINDS, DisclosureSets, TieSets, disclosure_sets
from spkbase.errors import DataError, counted
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

UTTERANCES = "utterances"
QUARTER_CHANCE = 1 / 7

# Jaccard similarities (easy, hard) of the pairs that the Speaker-Linkability project published for CommonVoice:
# B3 against B5; ECAPA, ResNet and WavLM-ECAPA against each other; 1, 3 and 5 utterances against each other
# (github.com/OraneD/Speaker-Linkability, plot/plot_mean_jaccard.py).
# fmt: off
PUBLISHED: dict[str, tuple[tuple[float, float], ...]] = {
    "anonymiser": (
        (0.211, 0.321), (0.236, 0.315), (0.440, 0.319), (0.281, 0.350), (0.287, 0.362), (0.318, 0.381),
        (0.271, 0.328), (0.289, 0.353), (0.269, 0.368),
    ),
    "attacker": (
        (0.429, 0.513), (0.393, 0.527), (0.415, 0.543), (0.350, 0.455), (0.360, 0.384), (0.367, 0.430),
        (0.425, 0.494), (0.418, 0.497), (0.428, 0.543), (0.320, 0.533), (0.338, 0.405), (0.347, 0.406),
        (0.418, 0.480), (0.401, 0.502), (0.430, 0.534), (0.311, 0.434), (0.322, 0.364), (0.329, 0.391),
    ),
    UTTERANCES: (
        (0.253, 0.332), (0.280, 0.332), (0.249, 0.325), (0.254, 0.299), (0.245, 0.317), (0.232, 0.411),
        (0.288, 0.343), (0.261, 0.344), (0.255, 0.313), (0.244, 0.323), (0.263, 0.329), (0.240, 0.354),
        (0.334, 0.416), (0.324, 0.401), (0.295, 0.348), (0.286, 0.352), (0.307, 0.405), (0.287, 0.387),
    ),
}
# fmt: on

Levels = tuple[tuple[str, str], ...]
"""Factor and level of each factor; the number of utterances is the factor ``utterances``."""


@one_line
@dataclass(frozen=True)
class Agreement:
    """How far sets agree.

    Attributes
    ----------
    intersection, union : float
        Numbers of speakers; their means for a mean over pairs.
    jaccard : float
        Similarity; NaN if a set is empty.
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
    jaccard: float = np.nan
    chance: float = np.nan
    low: float = np.nan
    high: float = np.nan
    corrected: float = np.nan
    p_value: float = np.nan
    spread: float = np.nan
    n_pairs: int = 1


def corrected_for_chance(jaccard: float, chance: float) -> float:
    """Return a similarity rescaled so that chance is 0 and equality 1.

    Examples
    --------
    >>> round(corrected_for_chance(1 / 7, 1 / 7), 12), corrected_for_chance(1.0, 1 / 7)
    (0.0, 1.0)
    """
    if chance < 1:
        return (jaccard - chance) / (1 - chance)
    return float("nan")


@one_blas_thread()
def pair_agreement(
    first: NDArray[np.bool_], second: NDArray[np.bool_], *, level: float = 0.95
) -> Agreement:
    """Return the agreement of two sets of the same speakers, with exact chance.

    Parameters
    ----------
    first, second : ndarray of bool of shape (n_speakers,)
        Members of each set.
    level : float
        Share of permutations that the interval of chance contains.

    Examples
    --------
    >>> place = np.arange(1000)
    >>> round(pair_agreement(place < 250, (place >= 125) & (place < 375)).chance, 3)
    0.143
    """
    from scipy.special import gammaln

    common = int((first & second).sum())
    together = int((first | second).sum())
    total = len(first)
    n_first = int(first.sum())
    n_second = int(second.sum())
    if not n_first or not n_second:  # an empty set neither agrees nor disagrees with another
        return Agreement(common, together)

    def log_choose(n: int, k: NDArray[np.int64] | int) -> NDArray[np.float64]:
        return np.asarray(
            gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1)
        )

    # sizes of the intersection of two random sets, and their hypergeometric probabilities
    counts = np.arange(max(0, n_first + n_second - total), min(n_first, n_second) + 1)
    logs = (
        log_choose(n_first, counts)
        + log_choose(total - n_first, n_second - counts)
        - log_choose(total, n_second)
    )
    probability = np.exp(logs - logs.max())
    probability /= probability.sum()
    similarity = counts / (n_first + n_second - counts)
    chance = float(probability @ similarity)
    jaccard = common / together
    tail = (1 - level) / 2
    ends = np.searchsorted(np.cumsum(probability), [tail + 1e-12, 1 - tail - 1e-12])
    low, high = similarity[np.minimum(ends, len(counts) - 1)].tolist()
    p_value = min(float(probability[counts >= common].sum()), 1.0)
    corrected = corrected_for_chance(jaccard, chance)
    return Agreement(common, together, jaccard, chance, low, high, corrected, p_value)


def joint_agreement(
    members: NDArray[np.bool_], *, permutations: int = 1000, seed: int = 0, level: float = 0.95
) -> Agreement:
    """Return the joint agreement of several sets: the size of their intersection over that of their union.

    Parameters
    ----------
    members : ndarray of bool of shape (n_sets, n_speakers)
        Members of each set; at least 2 sets.
    permutations : int
        Number of random permutations of the speakers of each set.
    seed : int
        Seed of the permutations.
    level : float
        See `pair_agreement`.
    """
    common = int(members.all(axis=0).sum())
    together = int(members.any(axis=0).sum())
    if not members.any(axis=1).all():
        return Agreement(common, together)
    rng = np.random.default_rng(seed)
    shuffled = (rng.permuted(members, axis=1) for _ in range(permutations))
    drawn = np.array([rows.all(axis=0).sum() / rows.any(axis=0).sum() for rows in shuffled])
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
    """Return the mean similarity over pairs of sets, without pairs that have an empty set.

    Parameters
    ----------
    members : ndarray of bool of shape (n_sets, n_speakers)
        Members of each set.
    pairs : sequence of (int, int)
        Rows to compare; a set may be in several pairs, and is permuted once for all of them.
    permutations, seed, level
        See `joint_agreement`.
    """
    sizes = members.sum(axis=1)
    counted = [(first, second) for first, second in pairs if sizes[first] and sizes[second]]
    if not counted:
        return Agreement(0, 0, n_pairs=0)
    first_of_pair, second_of_pair = np.array(counted).T
    total = (sizes[first_of_pair] + sizes[second_of_pair]).astype(np.float64)

    def in_both(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        numbers = rows.astype(np.float32)
        common: NDArray[np.float64] = (
            (numbers @ numbers.T)[first_of_pair, second_of_pair].astype(np.float64).round()
        )
        return common

    rng = np.random.default_rng(seed)
    shuffled = (in_both(rng.permuted(members, axis=1)) for _ in range(permutations))
    drawn = np.array([(common / (total - common)).mean() for common in shuffled])
    common = in_both(members)
    similarity = common / (total - common)
    mean = _against(
        drawn, float(similarity.mean()), level, float(common.mean()), float((total - common).mean())
    )
    spread = float(similarity.std()) if len(similarity) > 1 else float("nan")
    return replace(mean, spread=spread, n_pairs=len(counted))


def condition_name(condition: Levels) -> str:
    """Return the name of a condition in tables.

    Examples
    --------
    >>> condition_name((("attacker", "ECAPA"), ("anonymiser", "B3"), ("utterances", "3")))
    'ECAPA/B3, L = 3'
    """
    others = "/".join(level for factor, level in condition if factor != UTTERANCES)
    number = dict(condition).get(UTTERANCES)
    if number is None:
        return others
    if not others:
        return f"L = {number}"
    return f"{others}, L = {number}"


@one_line
@dataclass(frozen=True)
class Comparison:
    """A comparison of levels that differ in one factor (or in all factors).

    Attributes
    ----------
    factor : str
        The factor that differs; ``all`` for all conditions at once.
    fixed : Levels
        Levels of the other factors.
    compared : tuple of str
        The levels.
    easy, hard : Agreement
        How far the sets agree.
    """

    factor: str
    fixed: Levels
    compared: tuple[str, ...]
    easy: Agreement
    hard: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison by name, its fixed levels by factor."""
        return asdict(self) | {"fixed": dict(self.fixed)}


@one_line
@dataclass(frozen=True)
class Comparisons:
    """All comparisons of some conditions.

    Attributes
    ----------
    n_speakers : int
        Speakers that all conditions share.
    sets : dict of Levels to DisclosureSets
        The easiest and the hardest quarter of the speakers.
    factors : dict of str to dict of str to Agreement
        Mean over the pairs of each factor, ``easy`` and ``hard``.
    pairs, unions, joint : tuple of Comparison
        Each pair; pairs of unions over utterances; all levels of a factor, and all conditions, at once.
    settings : dict
        Rule for ties, level, permutations, seed.
    notes : tuple of str
        Speakers left out, and sets that are not exact quarters.
    """

    n_speakers: int
    sets: dict[Levels, DisclosureSets]
    factors: dict[str, dict[str, Agreement]]
    pairs: tuple[Comparison, ...]
    unions: tuple[Comparison, ...]
    joint: tuple[Comparison, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the published figures of the same factors."""
        conditions = []
        for condition, sets in self.sets.items():
            numbers = {
                "n_easy": len(sets.easy),
                "n_hard": len(sets.hard),
                "q1": sets.q1,
                "q3": sets.q3,
            }
            conditions.append({**dict(condition), **numbers})
        factors = {}
        for factor, kinds in self.factors.items():
            factors[factor] = {kind: asdict(agreement) for kind, agreement in kinds.items()}
        return {
            "n_speakers": self.n_speakers,
            **self.settings,
            "conditions": conditions,
            "factors": factors,
            "pairs": [comparison.to_dict() for comparison in self.pairs],
            "global": [comparison.to_dict() for comparison in self.unions],
            "joint": [comparison.to_dict() for comparison in self.joint],
            "published": published(),
            "notes": list(self.notes),
        }


def published() -> dict[str, dict[str, dict[str, float]]]:
    """Return the published mean similarities by factor, corrected for the chance level of two random quarters, 1/7.

    Examples
    --------
    >>> {kind: round(one["jaccard"], 3) for kind, one in published()["anonymiser"].items()}
    {'easy': 0.289, 'hard': 0.344}
    """
    means: dict[str, dict[str, dict[str, float]]] = {}
    for factor, pairs in PUBLISHED.items():
        means[factor] = {}
        for kind, values in zip(KINDS, np.array(pairs).T, strict=True):
            mean = float(values.mean())
            numbers = {
                "jaccard": mean,
                "spread": float(values.std()),
                "n_pairs": len(values),
                "chance": QUARTER_CHANCE,
            }
            means[factor][kind] = numbers | {
                "corrected": corrected_for_chance(mean, QUARTER_CHANCE)
            }
    return means


def compare_conditions(
    linkability: Mapping[Levels, Mapping[str, float]],
    *,
    rule: TieSets = "nearest",
    permutations: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparisons:
    """Return the easy and the hard speakers in each condition, and the agreement of the conditions.

    Parameters
    ----------
    linkability : mapping of Levels to mapping of str to float
        Linkability by speaker in each condition, at least 2 of them with the same factors.
    rule : {"nearest", "include", "exclude", "random"}
        Rule for speakers with equal values; see `evaluation.linkage.quarters`.
    permutations : int
        Number of permutations for means over pairs and joint similarities.
    seed : int
        Seed of the permutations, and of the rule `random`.
    level : float
        Share of permutations that the intervals of chance hold.

    Returns
    -------
    Comparisons

    Raises
    ------
    DataError
        If a number is out of range, there are fewer than 2 conditions, their factors differ, or they share fewer than
        4 speakers.
    """
    if not 0 < level < 1 or permutations < 1:
        raise DataError(
            f"expected a level between 0 and 1 and at least 1 permutation, got {level} and {permutations}"
        )
    conditions = list(linkability)
    if len(conditions) < 2:
        raise DataError(
            f"expected at least 2 conditions to compare, got {len(conditions)}",
            remedy="give more runs",
        )
    factors = _factors_of(conditions)
    shared = sorted(set.intersection(*map(set, linkability.values())))
    if len(shared) < 4:
        raise DataError(
            f"expected at least 4 speakers that all conditions share, got {len(shared)}"
        )
    left_out = []
    remarks = []
    sets = {}
    for number, (condition, values) in enumerate(linkability.items()):
        name = condition_name(condition)
        if len(values) > len(shared):
            lone = counted(len(values) - len(shared), "speaker")
            left_out.append(f"{name}: {lone} left out that other conditions lack")
        quarters = disclosure_sets(
            {speaker: values[speaker] for speaker in shared}, rule=rule, seed=seed + number
        )
        remarks += [f"{name}: {note}" for note in quarters.notes]
        sets[condition] = quarters
    members = {kind: _members(shared, sets.values(), kind) for kind in KINDS}
    draws: dict[str, Any] = {"permutations": permutations, "seed": seed, "level": level}
    pairs: list[Comparison] = []
    for factor in factors:
        pairs += _compare_pairs(conditions, members, factor, level)
    return Comparisons(
        n_speakers=len(shared),
        sets=sets,
        factors=_means_by_factor(conditions, members, factors, draws),
        pairs=tuple(pairs),
        unions=tuple(_compare_unions(conditions, members, factors, level)),
        joint=tuple(_compare_at_once(conditions, members, factors, draws)),
        settings={"tie_rule": rule, "level": level, "permutations": permutations, "seed": seed},
        notes=(*left_out, *remarks),
    )


def _members(
    speakers: Sequence[str], sets: Iterable[DisclosureSets], kind: str
) -> NDArray[np.bool_]:
    """Return the members of each set of a kind, shape (n_sets, n_speakers)."""
    return np.array([np.isin(speakers, list(getattr(quarters, kind))) for quarters in sets])


def _means_by_factor(
    conditions: Sequence[Levels],
    members: Mapping[str, NDArray[np.bool_]],
    factors: Sequence[str],
    draws: Mapping[str, Any],
) -> dict[str, dict[str, Agreement]]:
    """Return for each factor the mean agreement of conditions that differ only in this factor, if any."""
    means = {}
    for factor in factors:
        differing = _differing(conditions, factor)
        if differing:
            means[factor] = {
                kind: mean_agreement(members[kind], differing, **draws) for kind in KINDS
            }
    return means


def _factors_of(conditions: Sequence[Levels]) -> list[str]:
    """Return the factors that all conditions have."""
    factors = [factor for factor, _ in conditions[0]]
    for condition in conditions:
        if [factor for factor, _ in condition] != factors:
            text = f"expected the factors {', '.join(factors)} in all conditions"
            remedy = "label all runs in the same way, as ATTACKER/ANONYMISER=PATH or as LABEL=PATH"
            raise DataError(f"{text}, got {condition_name(condition)!r} with others", remedy=remedy)
    return factors


def _compare_pairs(
    conditions: Sequence[Levels],
    members: Mapping[str, NDArray[np.bool_]],
    factor: str,
    level: float,
) -> list[Comparison]:
    """Compare all pairs of conditions that differ in only one factor."""
    comparisons = []
    for first, second in _differing(conditions, factor):
        easy, hard = (
            pair_agreement(members[kind][first], members[kind][second], level=level)
            for kind in KINDS
        )
        compared = (dict(conditions[first])[factor], dict(conditions[second])[factor])
        comparisons.append(
            Comparison(factor, _without(conditions[first], factor), compared, easy, hard)
        )
    return comparisons


def _compare_unions(
    conditions: Sequence[Levels],
    members: Mapping[str, NDArray[np.bool_]],
    factors: Sequence[str],
    level: float,
) -> list[Comparison]:
    """Compare pairs of unions over several numbers of utterances."""
    if len({dict(condition).get(UTTERANCES) for condition in conditions}) < 2:
        return []
    rows_of: dict[Levels, list[int]] = {}
    for row, condition in enumerate(conditions):
        rows_of.setdefault(_without(condition, UTTERANCES), []).append(row)
    united = {}
    for kind, table in members.items():
        united[kind] = np.array([table[rows].any(axis=0) for rows in rows_of.values()])
    comparisons = []
    for factor in factors:
        if factor != UTTERANCES:
            comparisons += _compare_pairs(list(rows_of), united, factor, level)
    return comparisons


def _compare_at_once(
    conditions: Sequence[Levels],
    members: Mapping[str, NDArray[np.bool_]],
    factors: Sequence[str],
    draws: Mapping[str, Any],
) -> list[Comparison]:
    """Compare all levels of each factor jointly, and all conditions, if there are more than two."""
    comparisons = []
    for factor in (*factors, "all"):
        groups: dict[Levels, list[int]] = {}
        for number, condition in enumerate(conditions):
            fixed = () if factor == "all" else _without(condition, factor)
            groups.setdefault(fixed, []).append(number)
        for fixed, numbers in groups.items():
            if len(numbers) > 2:
                levels = []
                for number in numbers:
                    condition = conditions[number]
                    levels.append(dict(condition).get(factor) or condition_name(condition))
                easy, hard = (joint_agreement(members[kind][numbers], **draws) for kind in KINDS)
                comparisons.append(Comparison(factor, fixed, tuple(levels), easy, hard))
    return comparisons


def _against(
    drawn: NDArray[np.float64], jaccard: float, level: float, intersection: float, union: float
) -> Agreement:
    chance = float(drawn.mean())
    low, high = (float(end) for end in np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
    # the sample itself is one of the permutations
    p_value = float((1 + (drawn >= jaccard - 1e-12).sum()) / (1 + len(drawn)))
    return Agreement(
        intersection,
        union,
        jaccard,
        chance,
        low,
        high,
        corrected_for_chance(jaccard, chance),
        p_value,
    )


def _without(condition: Levels, factor: str) -> Levels:
    """Return the levels of the other factors."""
    return tuple(other for other in condition if other[0] != factor)


def _differing(conditions: Sequence[Levels], factor: str) -> list[tuple[int, int]]:
    """Return pairs of conditions, by position, that differ in only one factor."""
    pairs = []
    for first, second in combinations(range(len(conditions)), 2):
        is_same = conditions[first] == conditions[second]
        if not is_same and _without(conditions[first], factor) == _without(
            conditions[second], factor
        ):
            pairs.append((first, second))
    return pairs
