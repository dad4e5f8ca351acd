"""Ranks of systems: by utility, within each least privacy that they reach.

Conventions
-----------
A condition is a least EER of the semi-informed attacker (10, 20, 30 and 40 % in VoicePrivacy 2024; 15, 20, 25 and 30 %
in 2022). A system is ranked in each condition that it reaches (``reached``), or only in the highest one (``highest``);
the plans can be read either way. Within a condition systems are ranked by each utility alone. Equal values share a
place.

Two systems tie where the interval of the difference of their utilities holds 0. It is made of their two intervals
[1]_. By default it is that of systems measured on different data; on the same data, where errors of two systems go
together, it errs on the side of ties, and `Rule.correlation` may say how much they go together. From the ties follow
the best and the worst place that a system may truly have. Without intervals nothing is known about ties.

References
----------
.. [1] G. Zou and A. Donner, "Construction of confidence limits about effect measures: a general approach", Statistics
   in Medicine 27, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from spkbase.errors import DataError

Assignment = Literal["reached", "highest"]

LOWER_IS_BETTER: Mapping[str, bool] = {"wer": True, "cer": True, "uar": False, "f0": False}
_TITLES = {"wer": "WER", "cer": "CER", "uar": "UAR", "f0": "F0 correlation", "eer": "EER"}


@dataclass(frozen=True)
class Measure:
    """A number with its interval; ends are NaN where they are not known."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True)
class System:
    """What a ranking needs to know about a system.

    Parameters
    ----------
    name : str
    eer : Measure
        Of the semi-informed attacker, a fraction of 1; of several attackers the strongest.
    utilities : dict of str to Measure
        By name: ``wer`` and ``uar``, fractions of 1, and others of `LOWER_IS_BETTER`.
    notes : tuple of str
        Where the numbers are from.
    sets : tuple of str
        Sets and sexes that the EER is of; empty where they are not known.
    """

    name: str
    eer: Measure
    utilities: Mapping[str, Measure]
    notes: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """How systems are ranked.

    Parameters
    ----------
    name : str
    targets : tuple of float
        Least EERs, rising, fractions of 1.
    utilities : tuple of str
        What to rank by.
    assignment : {"reached", "highest"}
        See the module.
    least : dict of str to float
        Utilities that must be above a value for a system to be ranked at all.
    correlation : float
        Of the errors of two systems, from 0 (included) to 1.
    """

    name: str
    targets: tuple[float, ...]
    utilities: tuple[str, ...] = ("wer", "uar")
    assignment: Assignment = "reached"
    least: Mapping[str, float] = field(default_factory=dict)
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not self.targets or any(not 0 <= one <= 1 for one in self.targets):
            raise DataError(f"expected least EERs between 0 and 1, got {self.targets}")
        if list(self.targets) != sorted(set(self.targets)):
            raise DataError(f"expected least EERs that rise, got {self.targets}")
        unknown = [one for one in (*self.utilities, *self.least) if one not in LOWER_IS_BETTER]
        if unknown or not self.utilities:
            raise DataError(f"expected utilities among {', '.join(LOWER_IS_BETTER)}, got {unknown or 'none'}")
        if self.assignment not in ("reached", "highest"):
            raise DataError(f"expected 'reached' or 'highest', got {self.assignment!r}")
        if not 0 <= self.correlation < 1:
            raise DataError(f"expected a correlation from 0 to less than 1, got {self.correlation}")


RULES: Mapping[str, Rule] = {
    "vpc2024": Rule("vpc2024", (0.1, 0.2, 0.3, 0.4)),
    "vpc2022": Rule("vpc2022", (0.15, 0.2, 0.25, 0.3), ("wer",), least={"f0": 0.3}),
}


@dataclass(frozen=True)
class Entry:
    """A system's place in a condition.

    Parameters
    ----------
    system : str
    place : int
        By the values as they are, from 1.
    best, worst : int
        Places that the intervals leave open; 0 where there are no intervals.
    value : Measure
        The utility.
    ties : tuple of str
        Systems that it cannot be told from.
    reason : str
        The place in a sentence.
    """

    system: str
    place: int
    best: int
    worst: int
    value: Measure
    ties: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Condition:
    """The ranking by one utility among the systems that reach a least EER.

    Parameters
    ----------
    target : float
        Least EER.
    utility : str
    entries : tuple of Entry
        By place.
    excluded : dict of str to str
        Why other systems are not ranked here.
    doubts : dict of str to str
        Systems, ranked or not, whose EER may truly be on the other side of the target.
    """

    target: float
    utility: str
    entries: tuple[Entry, ...]
    excluded: dict[str, str]
    doubts: dict[str, str]


def rank_systems(systems: Sequence[System], rule: Rule) -> list[Condition]:
    """Rank systems.

    Returns
    -------
    list of Condition
        One for each least EER and utility, in their order.

    Raises
    ------
    DataError
        If there is no system, two have one name, or a number is undefined.

    Examples
    --------
    >>> one = System("one", Measure(0.35), {"wer": Measure(0.05)})
    >>> two = System("two", Measure(0.22), {"wer": Measure(0.04)})
    >>> for condition in rank_systems([one, two], Rule("", (0.2, 0.3), ("wer",))):
    ...     print(condition.target, [entry.system for entry in condition.entries])
    0.2 ['two', 'one']
    0.3 ['one']
    """
    _check(systems)
    return [_rank(systems, rule, target, utility) for target in rule.targets for utility in rule.utilities]


def difference(one: Measure, other: Measure, correlation: float = 0.0) -> tuple[float, float]:
    """Interval of the difference of two measures from their own intervals.

    Examples
    --------
    >>> low, high = difference(Measure(5, 4, 6), Measure(3, 2, 4))
    >>> round(low, 3), round(high, 3)
    (0.586, 3.414)
    """
    gap = one.value - other.value
    down = _joined(one.value - one.low, other.high - other.value, correlation)
    return gap - down, gap + _joined(one.high - one.value, other.value - other.low, correlation)


def _joined(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def ranking_to_dict(conditions: Sequence[Condition], systems: Sequence[System], rule: Rule) -> dict[str, Any]:
    """Give rule, systems and conditions, for a report."""
    return {
        "rule": asdict(rule),
        "systems": [asdict(one) for one in systems],
        "conditions": [asdict(one) for one in conditions],
    }


def _check(systems: Sequence[System]) -> None:
    if not systems:
        raise DataError("no system to rank")
    names = [one.name for one in systems]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"two systems are named {repeated[0]!r}", remedy="give labels")
    for one in systems:
        for name, measure in {"eer": one.eer, **one.utilities}.items():
            if math.isnan(measure.value):
                raise DataError(f"system {one.name!r}: {_TITLES.get(name, name)} is undefined")


def _rank(systems: Sequence[System], rule: Rule, target: float, utility: str) -> Condition:
    excluded, ranked, doubts = {}, [], {}
    for system in systems:
        why = _why_not(system, rule, target, utility)
        if why:
            excluded[system.name] = why
        else:
            ranked.append(system)
        doubt = _doubt(system, target)
        if doubt:
            doubts[system.name] = doubt
    sign = 1 if LOWER_IS_BETTER[utility] else -1
    ranked.sort(key=lambda one: (sign * one.utilities[utility].value, one.name))
    entries = tuple(_entry(one, ranked, rule, (target, utility), doubts.get(one.name, "")) for one in ranked)
    return Condition(target, utility, entries, excluded, doubts)


def _why_not(system: System, rule: Rule, target: float, utility: str) -> str:
    """Say why a system is not ranked in a condition; blank if it is."""
    if system.eer.value < target:
        return f"EER {_percent(system.eer.value)} is below {_percent(target)}"
    if utility not in system.utilities:
        return f"its {_TITLES[utility]} is not known"
    higher = [one for one in rule.targets if target < one <= system.eer.value]
    if rule.assignment == "highest" and higher:
        return f"ranked where the EER is at least {_percent(higher[-1])}"
    for name, least in rule.least.items():
        found = system.utilities.get(name)
        if found is None:
            return f"its {_TITLES[name]}, which must be above {least:g}, is not known"
        if not found.value > least:
            return f"its {_TITLES[name]} {found.value:.3f} is not above {least:g}"
    return ""


def _doubt(system: System, target: float) -> str:
    eer = system.eer
    if not eer.has_interval or not eer.low < target <= eer.high:
        return ""
    side = "reaches" if eer.value >= target else "misses"
    ends = f"{_percent(eer.low)} to {_percent(eer.high)}"
    return f"{side} {_percent(target)} with an EER of {_percent(eer.value)}, but the interval is {ends}"


def _entry(system: System, ranked: Sequence[System], rule: Rule, where: tuple[float, str], doubt: str) -> Entry:
    target, utility = where
    mine = system.utilities[utility]
    sign = 1 if LOWER_IS_BETTER[utility] else -1
    others = [one for one in ranked if one is not system]
    place = 1 + sum(sign * one.utilities[utility].value < sign * mine.value for one in others)
    known = mine.has_interval and all(one.utilities[utility].has_interval for one in others)
    ties: list[str] = []
    better = worse = 0
    for one in others:
        theirs = one.utilities[utility]
        same = mine.value == theirs.value
        if mine.has_interval and theirs.has_interval:
            low, high = difference(mine, theirs, rule.correlation)
            same = same or low <= 0 <= high
        if same:
            ties.append(one.name)
        elif sign * theirs.value < sign * mine.value:
            better += 1
        else:
            worse += 1
    best, worst = (1 + better, len(ranked) - worse) if known else (0, 0)
    reason = _reason(system, utility, target, place, len(ranked), ties, known, doubt)
    return Entry(system.name, place, best, worst, mine, tuple(ties), reason)


def _reason(
    system: System, utility: str, target: float, place: int, count: int, ties: Sequence[str], known: bool, doubt: str
) -> str:
    value = system.utilities[utility]
    ends = f" ({_shown(utility, value.low)} to {_shown(utility, value.high)})" if value.has_interval else ""
    said = f"EER {_percent(system.eer.value)} reaches {_percent(target)}; {_TITLES[utility]} "
    said += f"{_shown(utility, value.value)}{ends} is number {place} of {count}"
    if count > 1:
        if ties:
            said += f", not to be told from {', '.join(ties)}"
        elif known:
            said += ", apart from all others"
        else:
            said += "; without intervals ties are not known"
    return said + (f". In doubt: {doubt}" if doubt else "")


def _shown(utility: str, value: float) -> str:
    return f"{value:.3f}" if utility == "f0" else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
