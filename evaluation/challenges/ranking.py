"""Systems ordered by utility, within each minimum EER that they reach.

Conventions
-----------
A condition is a minimum EER of the semi-informed attacker (10, 20, 30 and 40 % in VoicePrivacy 2024; 15, 20, 25 and 30
% in 2022). A system takes part in each condition that it reaches (``reached``), or only in the highest one
(``highest``); the challenges' evaluation plans can be read either way. Within a condition systems are ordered by each
utility. Equal values share a place.

Two systems tie where the interval of the difference of their utilities holds 0. It is made of their two intervals [1]_.
By default it is that of systems measured on different data; on the same data, where the errors of two systems are
correlated, it errs on the side of ties, and `OrderingRule.correlation` may state the correlation. From the ties follow
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
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

from evaluation.reports import percent
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.showing import one_line

Assignment = Literal["reached", "highest"]

_percent = partial(percent, decimals=2)

NOT_STATED = "not stated"
"""The attacker of a file that names none, as the challenges' own files do."""

LOWER_IS_BETTER: Mapping[str, bool] = {"wer": True, "cer": True, "uar": False, "f0": False}
_TITLES = {"wer": "WER", "cer": "CER", "uar": "UAR", "f0": "F0 correlation", "eer": "EER"}


@one_line
@dataclass(frozen=True)
class ComparedSystem:
    """A system to be ordered.

    Attributes
    ----------
    name : str
    eer : Interval
        EER of the semi-informed attacker, a fraction of 1.
    utilities : dict of str to Interval
        By name: ``wer`` and ``uar``, fractions of 1, and others of `LOWER_IS_BETTER`.
    notes : tuple of str
        Sources of the numbers.
    sets : tuple of str
        Sets and sexes on which the EER was measured; empty if unknown.
    attacker : str
        Attacker and definition of the EER, as far as the file states them.
    broken : str
        Why its EER does not measure privacy, so that it reaches no target; empty if there is no such reason.
    """

    name: str
    eer: Interval
    utilities: Mapping[str, Interval]
    notes: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    attacker: str = NOT_STATED
    broken: str = ""


@one_line
@dataclass(frozen=True)
class OrderingRule:
    """How systems are ordered.

    Attributes
    ----------
    name : str
    targets : tuple of float
        Minimum EERs in ascending order, as fractions of 1.
    utilities : tuple of str
        Utilities to order by.
    assignment : {"reached", "highest"}
        See the module.
    least : dict of str to float
        Utilities that must be above a value for a system to take part at all.
    correlation : float
        Correlation of the errors of two systems, from 0 (included) to 1.
    """

    name: str
    targets: tuple[float, ...]
    utilities: tuple[str, ...] = ("wer", "uar")
    assignment: Assignment = "reached"
    least: Mapping[str, float] = field(default_factory=dict)
    correlation: float = 0.0

    def __post_init__(self) -> None:
        rising = list(self.targets) == sorted(set(self.targets))
        if not self.targets or not rising or self.targets[0] < 0 or self.targets[-1] > 1:
            raise DataError(f"expected minimum EERs between 0 and 1 that rise, got {self.targets}")
        if self.assignment not in get_args(Assignment):
            raise DataError(
                f"expected the assignment 'reached' or 'highest', got {self.assignment!r}"
            )
        unknown = [name for name in (*self.utilities, *self.least) if name not in LOWER_IS_BETTER]
        if unknown or not self.utilities:
            raise DataError(
                f"expected utilities out of {', '.join(LOWER_IS_BETTER)}, got {unknown or 'none'}"
            )


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
        Rank by the observed values, from 1.
    best, worst : int
        Range of ranks that the intervals allow; 0 without intervals.
    value : Interval
        The utility.
    ties : tuple of str
        Systems that it is indistinguishable from.
    reason : str
        A sentence that explains the rank.
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
    """The order by one utility among the systems that reach a minimum EER.

    Attributes
    ----------
    target : float
        Minimum EER.
    utility : str
    entries : tuple of Entry
        By place.
    excluded : dict of str to str
        Why other systems take no part here.
    doubts : dict of str to str
        Systems, listed or not, whose true EER may be on the other side of the target.
    """

    target: float
    utility: str
    entries: tuple[Entry, ...]
    excluded: dict[str, str]
    doubts: dict[str, str]


def order_systems(systems: Sequence[ComparedSystem], rule: OrderingRule) -> list[SystemOrder]:
    """Return one order of the systems for each minimum EER and utility.

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
        If there is no system, two have the same name, or a number is undefined.

    Examples
    --------
    >>> first = ComparedSystem("first", Interval(0.35), {"wer": Interval(0.05)})
    >>> second = ComparedSystem("second", Interval(0.22), {"wer": Interval(0.04)})
    >>> for order in order_systems([first, second], OrderingRule("", (0.2, 0.3), ("wer",))):
    ...     print(order.target, [entry.system for entry in order.entries])
    0.2 ['second', 'first']
    0.3 ['first']
    """
    _check_systems(systems)
    orders = []
    for target, utility in product(rule.targets, rule.utilities):
        ordered = []
        excluded = {}
        doubts = {}
        for system in systems:
            reason = _why_not(system, rule, target, utility)
            if reason:
                excluded[system.name] = reason
            else:
                ordered.append(system)
            doubt = _doubt(system, target)
            if doubt:
                doubts[system.name] = doubt
        sign = _sign(utility)
        ordered.sort(key=lambda system: (sign * system.utilities[utility].value, system.name))
        entries = [
            _entry(system, ordered, rule, target, utility, doubts.get(system.name, ""))
            for system in ordered
        ]
        orders.append(SystemOrder(target, utility, tuple(entries), excluded, doubts))
    return orders


def _check_systems(systems: Sequence[ComparedSystem]) -> None:
    if not systems:
        raise DataError("no system to rank")
    names = [system.name for system in systems]
    for system in systems:
        if names.count(system.name) > 1:
            raise DataError(f"two systems are named {system.name!r}", remedy="give labels")
        for name, number in {"eer": system.eer, **system.utilities}.items():
            if not number.known:
                raise DataError(f"system {system.name!r}: {_TITLES.get(name, name)} is undefined")


def _sign(utility: str) -> int:
    """The factor by which a lower value is better."""
    return 1 if LOWER_IS_BETTER[utility] else -1


def difference(first: Interval, second: Interval, correlation: float = 0.0) -> Interval:
    """Return the first number minus the second, with an interval computed from their two intervals.

    With gap d = a - b and r the correlation of their errors, the lower end is d - sqrt(x**2 + y**2 - 2 r x y), where
    x = a - (lower end of a) and y = (upper end of b) - b; the upper end likewise [1]_.

    Parameters
    ----------
    first, second : Interval
        With ends.
    correlation : float
        Correlation of their errors, from 0 to 1.

    Returns
    -------
    Interval

    Examples
    --------
    >>> gap = difference(Interval(5, 4, 6), Interval(3, 2, 4))
    >>> gap.value, round(gap.low, 3), round(gap.high, 3)
    (2, 0.586, 3.414)
    """

    def reach(x: float, y: float) -> float:
        return math.sqrt(max(x * x + y * y - 2 * correlation * x * y, 0.0))

    gap = first.value - second.value
    down = reach(first.value - first.low, second.high - second.value)
    up = reach(first.high - first.value, second.value - second.low)
    return Interval(gap, gap - down, gap + up)


def orders_to_dict(
    orders: Sequence[SystemOrder], systems: Sequence[ComparedSystem], rule: OrderingRule
) -> dict[str, Any]:
    """Return rule, systems and orders by name, for a report."""
    systems_by_name = []
    for system in systems:
        utilities = {name: utility.numbers() for name, utility in system.utilities.items()}
        systems_by_name.append(
            asdict(system) | {"eer": system.eer.numbers(), "utilities": utilities}
        )
    conditions = []
    for order in orders:
        entries = tuple(asdict(entry) | {"value": entry.value.numbers()} for entry in order.entries)
        conditions.append(asdict(order) | {"entries": entries})
    return {"rule": asdict(rule), "systems": systems_by_name, "conditions": conditions}


def order_rows(orders: Sequence[SystemOrder]) -> list[dict[str, str]]:
    """Return a row for each minimum EER, with the systems that reach it by each utility, the best one first.

    A rate is in per cent, followed by the best and the worst place that the intervals allow, if these differ.

    Examples
    --------
    >>> first = ComparedSystem("first", Interval(0.35), {"wer": Interval(0.05)})
    >>> order_rows(order_systems([first], OrderingRule("", (0.3, 0.4), ("wer",))))
    [{'minimum EER': '30 %', 'by WER': 'first 5.00'}, {'minimum EER': '40 %', 'by WER': 'none'}]
    """
    rows: dict[float, dict[str, str]] = {}
    for order in orders:
        cells = []
        for entry in order.entries:
            cell = f"{entry.system} {_short(entry.value.value, order.utility)}"
            if entry.best != entry.worst:
                cell += f" ({entry.best} to {entry.worst})"
            cells.append(cell)
        row = rows.setdefault(order.target, {"minimum EER": f"{100 * order.target:g} %"})
        row[f"by {_TITLES[order.utility]}"] = ", ".join(cells) or "none"
    return list(rows.values())


def _short(value: float, utility: str) -> str:
    """Return a utility without its unit."""
    if utility == "f0":
        return f"{value:.3f}"
    return f"{100 * value:.2f}"


def _why_not(system: ComparedSystem, rule: OrderingRule, target: float, utility: str) -> str:
    """Return why a system is excluded from a condition; "" if it is included."""
    if system.broken:
        return f"EER {_percent(system.eer.value)} does not count: {system.broken}"
    if system.eer.value < target:
        return f"EER {_percent(system.eer.value)} is below {100 * target:g} %"
    if utility not in system.utilities:
        return f"its {_TITLES[utility]} is not known"
    higher = [least for least in rule.targets if target < least <= system.eer.value]
    if rule.assignment == "highest" and higher:
        return f"ranked where the EER is at least {100 * higher[-1]:g} %"
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
    return f"{side} {100 * target:g} % with an EER of {_percent(eer.value)}, but the interval is {ends}"


def _entry(
    system: ComparedSystem,
    ordered: Sequence[ComparedSystem],
    rule: OrderingRule,
    target: float,
    utility: str,
    doubt: str,
) -> Entry:
    mine = system.utilities[utility]
    sign = _sign(utility)
    others = {other.name: other.utilities[utility] for other in ordered if other is not system}
    ties: list[str] = []
    rank = 1
    better = 0
    worse = 0
    for name, theirs in others.items():
        rank += sign * theirs.value < sign * mine.value
        gap = difference(mine, theirs, rule.correlation)
        if mine.value == theirs.value or gap.low <= 0 <= gap.high:
            ties.append(name)
        elif sign * theirs.value < sign * mine.value:
            better += 1
        else:
            worse += 1
    best = 0
    worst = 0
    have_intervals = mine.has_interval and all(theirs.has_interval for theirs in others.values())
    if have_intervals:
        best = 1 + better
        worst = len(ordered) - worse
    reaches = f"EER {_percent(system.eer.value)} reaches {100 * target:g} %"
    reason = f"{reaches}; {_TITLES[utility]} {_in_words(mine, utility)} is number {rank} of {len(ordered)}"
    if others:
        reason += _comparison(ties, have_intervals=have_intervals)
    if doubt:
        reason += f". In doubt: {doubt}"
    return Entry(system.name, rank, best, worst, mine, tuple(ties), reason)


def _comparison(ties: Sequence[str], *, have_intervals: bool) -> str:
    if ties:
        return f", indistinguishable from {', '.join(ties)}"
    if have_intervals:
        return ", distinguished from all others"
    return "; without intervals ties are not known"


def _in_words(value: Interval, utility: str) -> str:
    form = "{:.3f}".format if utility == "f0" else _percent
    if not value.has_interval:
        return form(value.value)
    return f"{form(value.value)} ({form(value.low)} to {form(value.high)})"
