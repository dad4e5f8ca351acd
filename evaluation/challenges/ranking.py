"""Systems in order: by utility, within each least privacy that they reach.

Conventions
-----------
A condition is a least EER of the semi-informed attacker (10, 20, 30 and 40 % in VoicePrivacy 2024; 15, 20, 25 and 30 %
in 2022). A system takes part in each condition that it reaches (``reached``), or only in the highest one (``highest``);
the plans can be read either way. Within a condition systems are ordered by each utility alone. Equal values share a
place.

Two systems tie where the interval of the difference of their utilities holds 0. It is made of their two intervals
[1]_. By default it is that of systems measured on different data; on the same data, where errors of two systems go
together, it errs on the side of ties, and `OrderingRule.correlation` may say how much they go together. From the ties
follow the best and the worst place that a system may truly have. Without intervals nothing is known about ties.

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

from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

Assignment = Literal["reached", "highest"]

LOWER_IS_BETTER: Mapping[str, bool] = {"wer": True, "cer": True, "uar": False, "f0": False}
_TITLES = {"wer": "WER", "cer": "CER", "uar": "UAR", "f0": "F0 correlation", "eer": "EER"}


@one_line
@dataclass(frozen=True)
class ComparedSystem:
    """What is known of a system that is compared with others.

    Attributes
    ----------
    name : str
    eer : Interval
        Of the semi-informed attacker, a fraction of 1.
    utilities : dict of str to Interval
        By name: ``wer`` and ``uar``, fractions of 1, and others of `LOWER_IS_BETTER`.
    notes : tuple of str
        Where the numbers are from.
    sets : tuple of str
        Sets and sexes that the EER is of; empty where they are not known.
    attacker : str
        Whose EER it is, and by which reading, as far as the file tells.
    broken : str
        Why its EER says nothing of privacy, so that it reaches no target; blank where it does.
    """

    name: str
    eer: Interval
    utilities: Mapping[str, Interval]
    notes: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    attacker: str = "not told"
    broken: str = ""


@one_line
@dataclass(frozen=True)
class OrderingRule:
    """How systems are ordered.

    Attributes
    ----------
    name : str
    targets : tuple of float
        Least EERs, rising, fractions of 1.
    utilities : tuple of str
        What to order by.
    assignment : {"reached", "highest"}
        See the module.
    least : dict of str to float
        Utilities that must be above a value for a system to take part at all.
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
        if not self.targets or any(not 0 <= target <= 1 for target in self.targets):
            raise DataError(f"expected least EERs between 0 and 1, got {self.targets}")
        if list(self.targets) != sorted(set(self.targets)):
            raise DataError(f"expected least EERs that rise, got {self.targets}")
        unknown = [name for name in (*self.utilities, *self.least) if name not in LOWER_IS_BETTER]
        if unknown or not self.utilities:
            raise DataError(f"expected utilities among {', '.join(LOWER_IS_BETTER)}, got {unknown or 'none'}")
        if self.assignment not in ("reached", "highest"):
            raise DataError(f"expected 'reached' or 'highest', got {self.assignment!r}")
        if not 0 <= self.correlation < 1:
            raise DataError(f"expected a correlation from 0 to less than 1, got {self.correlation}")


RULES: Mapping[str, OrderingRule] = {
    "vpc2024": OrderingRule("vpc2024", (0.1, 0.2, 0.3, 0.4)),
    "vpc2022": OrderingRule("vpc2022", (0.15, 0.2, 0.25, 0.3), ("wer",), least={"f0": 0.3}),
}


@one_line
@dataclass(frozen=True)
class Entry:
    """A system's place in a condition.

    Attributes
    ----------
    system : str
    place : int
        By the values as they are, from 1.
    best, worst : int
        Places that the intervals leave open; 0 where there are no intervals.
    value : Interval
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
    value: Interval
    ties: tuple[str, ...]
    reason: str


@one_line
@dataclass(frozen=True)
class SystemOrder:
    """The order by one utility among the systems that reach a least EER.

    Attributes
    ----------
    target : float
        Least EER.
    utility : str
    entries : tuple of Entry
        By place.
    excluded : dict of str to str
        Why other systems take no part here.
    doubts : dict of str to str
        Systems, here or not, whose EER may truly be on the other side of the target.
    """

    target: float
    utility: str
    entries: tuple[Entry, ...]
    excluded: dict[str, str]
    doubts: dict[str, str]


def order_systems(systems: Sequence[ComparedSystem], rule: OrderingRule) -> list[SystemOrder]:
    """Return the orders of systems, one for each least EER and utility, in their order.

    Parameters
    ----------
    systems : sequence of ComparedSystem
        At least one, with names that differ.
    rule : OrderingRule
        How they are ordered.

    Returns
    -------
    list of SystemOrder

    Raises
    ------
    DataError
        If there is no system, two have one name, or a number is undefined.

    Examples
    --------
    >>> first = ComparedSystem("first", Interval(0.35), {"wer": Interval(0.05)})
    >>> second = ComparedSystem("second", Interval(0.22), {"wer": Interval(0.04)})
    >>> for order in order_systems([first, second], OrderingRule("", (0.2, 0.3), ("wer",))):
    ...     print(order.target, [entry.system for entry in order.entries])
    0.2 ['second', 'first']
    0.3 ['first']
    """
    _check(systems)
    return [_order(systems, rule, target, utility) for target in rule.targets for utility in rule.utilities]


def difference(first: Interval, second: Interval, correlation: float = 0.0) -> Interval:
    """Return the first number less the second, with an interval made of their two intervals.

    With gap d = a - b and r the correlation of their errors, the lower end is d - sqrt(x**2 + y**2 - 2 r x y), where
    x = a - (lower end of a) and y = (upper end of b) - b; the upper end likewise [1]_.

    Parameters
    ----------
    first, second : Interval
        With ends.
    correlation : float
        Of their errors, from 0 to 1.

    Returns
    -------
    Interval

    Examples
    --------
    >>> gap = difference(Interval(5, 4, 6), Interval(3, 2, 4))
    >>> gap.value, round(gap.low, 3), round(gap.high, 3)
    (2, 0.586, 3.414)
    """
    gap = first.value - second.value
    down = _joined(first.value - first.low, second.high - second.value, correlation)
    up = _joined(first.high - first.value, second.value - second.low, correlation)
    return Interval(gap, gap - down, gap + up)


def _joined(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def orders_to_dict(
    orders: Sequence[SystemOrder], systems: Sequence[ComparedSystem], rule: OrderingRule
) -> dict[str, Any]:
    """Return rule, systems and orders by name, for a report."""
    return {
        "rule": asdict(rule),
        "systems": [
            asdict(system)
            | {"eer": system.eer.numbers()}
            | {"utilities": {name: utility.numbers() for name, utility in system.utilities.items()}}
            for system in systems
        ],
        "conditions": [
            asdict(order)
            | {"entries": tuple(asdict(entry) | {"value": entry.value.numbers()} for entry in order.entries)}
            for order in orders
        ],
    }


def _check(systems: Sequence[ComparedSystem]) -> None:
    if not systems:
        raise DataError("no system to rank")
    names = [system.name for system in systems]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"two systems are named {repeated[0]!r}", remedy="give labels")
    for system in systems:
        for name, number in {"eer": system.eer, **system.utilities}.items():
            if not number.known:
                raise DataError(f"system {system.name!r}: {_TITLES.get(name, name)} is undefined")


def _order(systems: Sequence[ComparedSystem], rule: OrderingRule, target: float, utility: str) -> SystemOrder:
    excluded, ordered, doubts = {}, [], {}
    for system in systems:
        why = _why_not(system, rule, target, utility)
        if why:
            excluded[system.name] = why
        else:
            ordered.append(system)
        doubt = _doubt(system, target)
        if doubt:
            doubts[system.name] = doubt
    sign = 1 if LOWER_IS_BETTER[utility] else -1
    ordered.sort(key=lambda system: (sign * system.utilities[utility].value, system.name))
    entries = tuple(_entry(system, ordered, rule, (target, utility), doubts.get(system.name, "")) for system in ordered)
    return SystemOrder(target, utility, entries, excluded, doubts)


def _why_not(system: ComparedSystem, rule: OrderingRule, target: float, utility: str) -> str:
    """Return why a system takes no part in a condition; blank if it does."""
    if system.broken:
        return f"EER {_percent(system.eer.value)} does not count: {system.broken}"
    if system.eer.value < target:
        return f"EER {_percent(system.eer.value)} is below {_percent(target)}"
    if utility not in system.utilities:
        return f"its {_TITLES[utility]} is not known"
    higher = [least for least in rule.targets if target < least <= system.eer.value]
    if rule.assignment == "highest" and higher:
        return f"ranked where the EER is at least {_percent(higher[-1])}"
    for name, least in rule.least.items():
        needed = system.utilities.get(name)
        if needed is None:
            return f"its {_TITLES[name]}, which must be above {least:g}, is not known"
        if not needed.value > least:
            return f"its {_TITLES[name]} {needed.value:.3f} is not above {least:g}"
    return ""


def _doubt(system: ComparedSystem, target: float) -> str:
    eer = system.eer
    if not eer.has_interval or not eer.low < target <= eer.high:
        return ""
    side = "reaches" if eer.value >= target else "misses"
    ends = f"{_percent(eer.low)} to {_percent(eer.high)}"
    return f"{side} {_percent(target)} with an EER of {_percent(eer.value)}, but the interval is {ends}"


def _entry(
    system: ComparedSystem, ordered: Sequence[ComparedSystem], rule: OrderingRule, where: tuple[float, str], doubt: str
) -> Entry:
    target, utility = where
    mine = system.utilities[utility]
    sign = 1 if LOWER_IS_BETTER[utility] else -1
    others = [other for other in ordered if other is not system]
    place = 1 + sum(sign * other.utilities[utility].value < sign * mine.value for other in others)
    known = mine.has_interval and all(other.utilities[utility].has_interval for other in others)
    ties: list[str] = []
    better = worse = 0
    for other in others:
        theirs = other.utilities[utility]
        same = mine.value == theirs.value
        if mine.has_interval and theirs.has_interval:
            gap = difference(mine, theirs, rule.correlation)
            same = same or gap.low <= 0 <= gap.high
        if same:
            ties.append(other.name)
        elif sign * theirs.value < sign * mine.value:
            better += 1
        else:
            worse += 1
    best, worst = (1 + better, len(ordered) - worse) if known else (0, 0)
    reached = f"EER {_percent(system.eer.value)} reaches {_percent(target)}"
    standing = f"{_TITLES[utility]} {_with_ends(utility, mine)} is number {place} of {len(ordered)}"
    reason = f"{reached}; {standing}{_apart(ties, known) if others else ''}"
    reason += f". In doubt: {doubt}" if doubt else ""
    return Entry(system.name, place, best, worst, mine, tuple(ties), reason)


def _apart(ties: Sequence[str], known: bool) -> str:
    """Return which of the others a system can be told from."""
    if ties:
        return f", not to be told from {', '.join(ties)}"
    return ", apart from all others" if known else "; without intervals ties are not known"


def _with_ends(utility: str, number: Interval) -> str:
    ends = f" ({_shown(utility, number.low)} to {_shown(utility, number.high)})" if number.has_interval else ""
    return f"{_shown(utility, number.value)}{ends}"


def _shown(utility: str, value: float) -> str:
    return f"{value:.3f}" if utility == "f0" else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
