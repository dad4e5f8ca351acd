"""Easy-to-link and hard-to-link speakers over conditions: attackers, anonymisers and numbers of utterances.

Conventions
-----------
A *condition* is one level of each factor, such as attacker ECAPA, anonymiser B3, 3 utterances. Two conditions are a
*pair* of a factor where they differ in it alone. The similarity of a factor is the mean over its pairs, as published.
*Global* sets are unions over the numbers of utterances, as published, compared by attacker and by anonymiser. A *joint*
similarity is that of all levels of a factor at once, or of all conditions: speakers in all sets over speakers in any.

Quarters are taken among the speakers that all conditions share, so that all sets come out of the same speakers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.agreement import (
    Agreement,
    corrected_for_chance,
    joint_agreement,
    mean_agreement,
    pair_agreement,
)
from evaluation.linkage.easy_and_hard import DisclosureSets, TieSets, disclosure_sets
from spkbase.errors import DataError
from spkbase.showing import one_line

UTTERANCES = "utterances"
KINDS = ("easy", "hard")
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


@one_line
@dataclass(frozen=True)
class LinkageCondition:
    """One level of each factor, in the order of the factors.

    Attributes
    ----------
    levels : tuple of (str, str)
        Factor and level; the number of utterances is the factor ``utterances``.
    """

    levels: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Words for a table, such as ``ECAPA/B3, L = 3``."""
        others = "/".join(level for factor, level in self.levels if factor != UTTERANCES)
        number = dict(self.levels).get(UTTERANCES)
        return others if number is None else f"{others}, L = {number}" if others else f"L = {number}"


@one_line
@dataclass(frozen=True)
class Comparison:
    """A comparison of levels that differ in one factor (or in all, where there is no factor).

    Attributes
    ----------
    factor : str
        What differs; ``all`` for all conditions at once.
    fixed : tuple of (str, str)
        Levels of the other factors.
    compared : tuple of str
        The levels.
    easy, hard : Agreement
        How far the sets agree.
    """

    factor: str
    fixed: tuple[tuple[str, str], ...]
    compared: tuple[str, ...]
    easy: Agreement
    hard: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "factor": self.factor,
            "fixed": dict(self.fixed),
            "compared": list(self.compared),
            "easy": asdict(self.easy),
            "hard": asdict(self.hard),
        }


@one_line
@dataclass(frozen=True)
class Comparisons:
    """All comparisons of some conditions.

    Attributes
    ----------
    n_speakers : int
        Speakers that all conditions share.
    sets : dict of LinkageCondition to DisclosureSets
        The quarters.
    factors : dict of str to dict of str to Agreement
        Mean over the pairs of each factor, ``easy`` and ``hard``.
    pairs, unions, joint : tuple of Comparison
        Each pair; pairs of unions over utterances; all levels of a factor, and all conditions, at once.
    settings : dict
        Rule for ties, level, permutations, seed.
    notes : tuple of str
        Speakers left out, sets that are no quarters.
    """

    n_speakers: int
    sets: dict[LinkageCondition, DisclosureSets]
    factors: dict[str, dict[str, Agreement]]
    pairs: tuple[Comparison, ...]
    unions: tuple[Comparison, ...]
    joint: tuple[Comparison, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the published figures of the same factors."""
        return {
            "n_speakers": self.n_speakers,
            **self.settings,
            "conditions": [
                {
                    **dict(condition.levels),
                    "n_easy": len(quarters.easy),
                    "n_hard": len(quarters.hard),
                    "q1": quarters.q1,
                    "q3": quarters.q3,
                }
                for condition, quarters in self.sets.items()
            ],
            "factors": {
                factor: {kind: asdict(agreement) for kind, agreement in kinds.items()}
                for factor, kinds in self.factors.items()
            },
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
    found: dict[str, dict[str, dict[str, float]]] = {}
    for factor, pairs in PUBLISHED.items():
        found[factor] = {}
        for kind, values in zip(KINDS, np.array(pairs).T, strict=True):
            mean = float(values.mean())
            found[factor][kind] = {
                "jaccard": mean,
                "spread": float(values.std()),
                "n_pairs": len(values),
                "chance": QUARTER_CHANCE,
                "corrected": corrected_for_chance(mean, QUARTER_CHANCE),
            }
    return found


def compare_conditions(
    linkability: Mapping[LinkageCondition, Mapping[str, float]],
    *,
    rule: TieSets = "nearest",
    permutations: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparisons:
    """Return who is easy and who is hard to link in each condition, and how far conditions agree on it.

    Parameters
    ----------
    linkability : mapping of LinkageCondition to mapping of str to float
        Linkability by speaker in each condition, at least 2 of them with the same factors.
    rule : {"nearest", "include", "exclude", "random"}
        For equal speakers; see `evaluation.linkage.easy_and_hard`.
    permutations : int
        For means over pairs and joint similarities.
    seed : int
        Of permutations, and of the rule `random`.
    level : float
        Share of permutations that the intervals of chance hold.

    Returns
    -------
    Comparisons

    Raises
    ------
    DataError
        If there are fewer than 2 conditions, their factors differ, or they share fewer than 4 speakers.
    """
    conditions = list(linkability)
    factors = _checked(conditions)
    shared = set.intersection(*(set(values) for values in linkability.values()))
    if len(shared) < 4:
        raise DataError(f"expected at least 4 speakers that all conditions share, got {len(shared)}")
    notes = [
        f"{condition.name}: {len(values) - len(shared)} speakers left out that not all conditions have"
        for condition, values in linkability.items()
        if len(values) > len(shared)
    ]
    sets = {
        condition: disclosure_sets({name: values[name] for name in shared}, rule=rule, seed=seed + number)
        for number, (condition, values) in enumerate(linkability.items())
    }
    notes += [f"{condition.name}: {note}" for condition, quarters in sets.items() for note in quarters.notes]
    comparing = _Comparing(conditions, factors, sets, sorted(shared), permutations, seed, level)
    return Comparisons(
        n_speakers=len(shared),
        sets=sets,
        factors=comparing.means(),
        pairs=tuple(comparing.pairs()),
        unions=tuple(comparing.unions()),
        joint=tuple(comparing.joint()),
        settings={"tie_rule": rule, "level": level, "permutations": permutations, "seed": seed},
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Comparing:
    conditions: Sequence[LinkageCondition]
    factors: Sequence[str]
    sets: Mapping[LinkageCondition, DisclosureSets]
    speakers: Sequence[str]
    permutations: int
    seed: int
    level: float

    def means(self) -> dict[str, dict[str, Agreement]]:
        """Return the mean over the pairs of each factor."""
        found = {}
        for factor in self.factors:
            pairs = self._pairs_differing_in(factor)
            if pairs:
                draws: dict[str, Any] = {"permutations": self.permutations, "seed": self.seed, "level": self.level}
                found[factor] = {
                    kind: mean_agreement(self._members(kind, self.conditions), pairs, **draws) for kind in KINDS
                }
        return found

    def pairs(self) -> list[Comparison]:
        """Return each pair of conditions that differ in one factor."""
        found = []
        for factor in self.factors:
            for left, right in self._pairs_differing_in(factor):
                pair = self.conditions[left], self.conditions[right]
                found.append(self._compare(factor, *pair, lambda kind, which: getattr(self.sets[which], kind)))
        return found

    def unions(self) -> list[Comparison]:
        """Compare unions over utterances by the other factors; nothing where there is one number of utterances."""
        if len({dict(condition.levels).get(UTTERANCES) for condition in self.conditions}) < 2:
            return []
        groups: dict[LinkageCondition, list[LinkageCondition]] = {}
        for condition in self.conditions:
            rest = LinkageCondition(tuple(level for level in condition.levels if level[0] != UTTERANCES))
            groups.setdefault(rest, []).append(condition)

        def union(kind: str, which: LinkageCondition) -> frozenset[str]:
            return frozenset().union(*(getattr(self.sets[condition], kind) for condition in groups[which]))

        return [
            self._compare(factor, left, right, union)
            for factor in self.factors
            if factor != UTTERANCES
            for left, right in combinations(groups, 2)
            if _differ_in(left, right) == [factor]
        ]

    def joint(self) -> list[Comparison]:
        """Compare three or more levels of a factor at once, and all conditions."""
        found = []
        for factor in self.factors:
            groups: dict[tuple[tuple[str, str], ...], list[LinkageCondition]] = {}
            for condition in self.conditions:
                fixed = tuple(level for level in condition.levels if level[0] != factor)
                groups.setdefault(fixed, []).append(condition)
            for fixed, members in groups.items():
                if len(members) > 2:
                    levels = [dict(condition.levels)[factor] for condition in members]
                    found.append(self._jointly(factor, fixed, levels, members))
        if len(self.conditions) > 2:
            names = [condition.name for condition in self.conditions]
            found.append(self._jointly("all", (), names, self.conditions))
        return found

    def _compare(
        self,
        factor: str,
        left: LinkageCondition,
        right: LinkageCondition,
        members: Callable[[str, LinkageCondition], frozenset[str]],
    ) -> Comparison:
        easy, hard = (
            pair_agreement(members(kind, left), members(kind, right), len(self.speakers), level=self.level)
            for kind in KINDS
        )
        fixed = tuple(level for level in left.levels if level[0] != factor)
        return Comparison(factor, fixed, (dict(left.levels)[factor], dict(right.levels)[factor]), easy, hard)

    def _jointly(
        self, factor: str, fixed: tuple[tuple[str, str], ...], levels: list[str], members: Sequence[LinkageCondition]
    ) -> Comparison:
        easy, hard = (
            joint_agreement(
                self._members(kind, members), permutations=self.permutations, seed=self.seed, level=self.level
            )
            for kind in KINDS
        )
        return Comparison(factor, fixed, tuple(levels), easy, hard)

    def _members(self, kind: str, conditions: Sequence[LinkageCondition]) -> NDArray[np.bool_]:
        rows = [[name in getattr(self.sets[condition], kind) for name in self.speakers] for condition in conditions]
        return np.array(rows, bool)

    def _pairs_differing_in(self, factor: str) -> list[tuple[int, int]]:
        numbered = combinations(range(len(self.conditions)), 2)
        return [
            (left, right)
            for left, right in numbered
            if _differ_in(self.conditions[left], self.conditions[right]) == [factor]
        ]


def _differ_in(left: LinkageCondition, right: LinkageCondition) -> list[str]:
    return [first[0] for first, second in zip(left.levels, right.levels, strict=True) if first != second]


def _checked(conditions: Sequence[LinkageCondition]) -> list[str]:
    if len(conditions) < 2:
        raise DataError(f"expected at least 2 conditions to compare, got {len(conditions)}", remedy="give more runs")
    factors = [factor for factor, _ in conditions[0].levels]
    for condition in conditions:
        if [factor for factor, _ in condition.levels] != factors:
            raise DataError(
                f"expected the factors {', '.join(factors)} in all conditions, got {condition.name!r} with others",
                remedy="label all runs in the same way, as ATTACKER/ANONYMISER=PATH or as LABEL=PATH",
            )
    return factors
