"""The outcome of a scenario: the strongest attacker, which leaves the least privacy, among all conditions of a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, TypeVar

from evaluation.reports.conditions import GENDERS, Condition, list_in_words
from evaluation.reports.rows import FLAT, NOT_IN_JSON, Row
from evaluation.trials import LEVELS, SCENARIO_ORDER
from evaluation.uncertainty import Interval, Minimum, maximum_of, minimum_of
from spkbase.showing import one_line

OVER_SCENARIOS = "over scenarios"
"""Stands for all scenarios with anonymised speech in the key of a minimum."""

Identity = tuple[str, str, str]
"""Data set, sex and scenario."""
Minima = Mapping[Identity, Mapping[str, Minimum | None]]
"""The smallest error rates of a scenario (or `OVER_SCENARIOS`): over all attackers (``minimum``), over the attackers of
a level of knowledge (its name), and over attackers that do not use the words spoken (``without_content``)."""

Listed = TypeVar("Listed", Condition, "Outcome")
Joined = TypeVar("Joined", "AttackerRate", "Identification")

_ORDER = (*GENDERS, *SCENARIO_ORDER)


class WithMinimum(Row):
    """Base class of rows with an equal error rate, and with the minimum over attackers if it was estimated."""

    eer: Interval
    minimum: Minimum | None

    @property
    def rate(self) -> Interval:
        """The error rate, with the interval of the minimum over attackers if there is one."""
        ends = self.eer
        if self.minimum is not None:
            ends = self.minimum.interval
        return Interval(self.eer.value, ends.low, ends.high)


@dataclass(frozen=True)
class AttackerRate(Row):
    """Equal error rate of an attacker.

    Attributes
    ----------
    attacker : str
        The attacker.
    eer : Interval
        Equal error rate by the ROC convex hull: 0 is no privacy, 0.5 is chance.
    """

    attacker: str
    eer: Interval = field(metadata=FLAT)


@dataclass(frozen=True)
class SmallestRate(WithMinimum, AttackerRate):
    """Equal error rate of the strongest of several attackers.

    Attributes
    ----------
    attacker : str
        The attacker.
    eer : Interval
        Equal error rate by the ROC convex hull: 0 is no privacy, 0.5 is chance.
    minimum : Minimum, optional
        Interval of the smallest rate over attackers.
    """

    minimum: Minimum | None = None


@dataclass(frozen=True)
class Identification(Row):
    """Share of utterances whose speaker an attacker identifies.

    Attributes
    ----------
    attacker : str
        The attacker.
    share : Interval
        The share.
    candidates : (int, int)
        Smallest and largest number of candidates.
    """

    attacker: str
    share: Interval = field(metadata=FLAT)
    candidates: tuple[int, ...] = (0, 0)

    @property
    def among(self) -> str:
        """The number of candidates in words."""
        return " to ".join(map(str, dict.fromkeys(self.candidates)))


@one_line
@dataclass(frozen=True)
class Outcome(WithMinimum):
    """The result of a scenario: the strongest attacker, which leaves the least privacy.

    Attributes
    ----------
    dataset, gender, scenario : str
        The list of trials and the scenario.
    strongest : str
        The strongest attacker.
    eer : Interval
        Its equal error rate, with its own interval; see `rate`.
    population, individual, linkability_all : float
        The largest disclosure (ZEBRA) and the largest linkability among all enrolled speakers, over attackers.
    tag : str
        Category of the strongest evidence.
    worst_by : dict of str to str
        The attackers that reach these three.
    n_enrolled, n_target, n_nontarget : int
        Numbers of enrolled speakers and trials.
    attackers : dict of str to float
        Equal error rate of every attacker.
    draws : tuple of float
        Equal error rate of the strongest attacker in each draw; empty if unknown.
    tested : tuple of int
        Numbers of test recordings in each trial list; empty if unknown.
    levels : dict of str to SmallestRate
        The strongest attacker at each level of knowledge that has attackers, in the order of `LEVELS`.
    without_content : SmallestRate, optional
        The strongest attacker that does not use the words spoken; None if all or none of the attackers do.
    closed_set : AttackerRate, optional
        Smallest error rate in a closed set, with the interval of the minimum over attackers.
    centred : AttackerRate, optional
        Smallest error rate after the mean of each model is subtracted, which requires the whole list.
    identification : Identification, optional
        Largest share of identified speakers, with the interval of the maximum.
    minimum, minimum_over_scenarios : Minimum, optional
        The smallest error rate over attackers, and over scenarios with anonymised speech too.
    verdict : str
        The result in a sentence.
    conditions : tuple of Condition
        All attackers in this scenario.
    condition : Condition
        The strongest of these.
    """

    required = ("dataset", "gender", "scenario", "strongest", "eer")

    dataset: str
    gender: str
    scenario: str
    strongest: str
    eer: Interval = field(metadata=FLAT)
    population: float
    individual: float
    linkability_all: float
    tag: str
    worst_by: dict[str, str]
    n_enrolled: float
    n_target: float
    n_nontarget: float
    attackers: dict[str, float]
    draws: tuple[float, ...]
    tested: tuple[int, ...]
    levels: dict[str, SmallestRate]
    without_content: SmallestRate | None
    closed_set: AttackerRate | None
    centred: AttackerRate | None
    identification: Identification | None
    minimum: Minimum | None
    minimum_over_scenarios: Minimum | None
    verdict: str
    conditions: tuple[Condition, ...] = field(repr=False, metadata=NOT_IN_JSON)
    condition: Condition = field(repr=False, metadata=NOT_IN_JSON)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as in ``results.json``."""
        entry = super().to_dict()
        if not self.anonymised:
            del entry["minimum_over_scenarios"]
        return entry

    @property
    def identity(self) -> Identity:
        """Data set, sex and scenario."""
        return self.dataset, self.gender, self.scenario

    @property
    def anonymised(self) -> bool:
        """Whether the trials are anonymised."""
        return self.scenario != "original"

    @property
    def each_draw(self) -> str:
        """The rate of each draw in per cent."""
        return ", ".join(f"{100 * rate:.1f}" for rate in self.draws)

    def by_other(self, rate: AttackerRate | Identification) -> str:
        """Return the attacker of a rate in brackets; "" if it is the strongest one."""
        return "" if rate.attacker == self.strongest else f" ({rate.attacker})"


def strongest(conditions: Sequence[Condition]) -> Condition:
    """Return the condition of the attacker that leaves the least privacy.

    Parameters
    ----------
    conditions : sequence of Condition
        Attackers in one scenario on one list; at least one.

    Returns
    -------
    Condition
        The condition with the smallest EER; ties are broken by the most disclosed evidence, then by name. A condition
        without an EER is returned only if all lack one.

    Examples
    --------
    >>> rates = {"a": 0.3, "b": 0.2}
    >>> rows = [Condition(attacker=name, metrics={"eer": {"rocch": eer}}) for name, eer in rates.items()]
    >>> strongest(rows).attacker
    'b'
    """

    def order(condition: Condition) -> tuple[float, float, str]:
        eer = condition.eer.value
        least = math.inf if math.isnan(eer) else eer
        return least, -_population(condition), condition.attacker

    return min(conditions, key=order)


def summarise(conditions: Sequence[Condition], minima: Minima | None = None) -> list[Outcome]:
    """Return the outcome of each data set, sex and scenario, in the order of the conditions.

    Parameters
    ----------
    conditions : sequence of Condition
    minima : mapping, optional
        The smallest error rates with their intervals, see `Minima`.
    """
    groups: dict[Identity, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault(condition.identity[:3], []).append(condition)
    return [_outcome(part, minima or {}) for part in groups.values()]


def main_outcomes(outcomes: Sequence[Listed]) -> list[Listed]:
    """Return the outcomes (or conditions) on pooled speakers, or else on each sex, of each data set."""
    pooled = {outcome.dataset for outcome in outcomes if outcome.gender == "all"}
    return [
        outcome for outcome in outcomes if outcome.gender == "all" or outcome.dataset not in pooled
    ]


def in_order(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Sort outcomes by data set, in order of first appearance, then by sex, then by knowledge, the weakest first."""
    outcomes = list(outcomes)
    datasets = list(map(attrgetter("dataset"), outcomes))

    def order(outcome: Outcome) -> tuple[Any, ...]:
        return datasets.index(outcome.dataset), rank_of(outcome.gender), rank_of(outcome.scenario)

    return tuple(sorted(outcomes, key=order))


def _outcome(part: Sequence[Condition], minima: Minima) -> Outcome:
    """Return the outcome of a scenario from the conditions of its attackers."""
    best = strongest(part)
    smallest = minima.get(best.identity[:3], {})
    over_scenarios = None
    if best.scenario != "original":
        over_scenarios = minima.get((best.dataset, best.gender, OVER_SCENARIOS), {}).get("minimum")
    levels = {}
    for level in sorted({condition.level for condition in part}, key=list(LEVELS).index):
        members = [condition for condition in part if condition.level == level]
        levels[level] = _smallest_rate(members, smallest.get(level))
    without_content = None
    voices = [condition for condition in part if not condition.content]
    if 0 < len(voices) < len(part):
        without_content = _smallest_rate(voices, smallest.get("without_content"))
    closed: list[AttackerRate] = []
    identified: list[Identification] = []
    centred: list[AttackerRate] = []
    for condition in part:
        rates = condition.closed_set
        if rates is not None:
            closed.append(AttackerRate(condition.attacker, rates.eer))
            identified.append(
                Identification(condition.attacker, rates.identification, rates.candidates)
            )
        if condition.centred is not None:
            centred.append(AttackerRate(condition.attacker, condition.centred))
    population = max(part, key=_population)
    individual = max(part, key=_individual)
    linking = max(part, key=_linkability)
    return Outcome(
        *best.identity[:3],
        best.attacker,
        best.eer,
        population=population.metric("zebra.population").value,
        individual=individual.metric("zebra.individual").value,
        linkability_all=linking.found_among_all.value,
        tag=individual.tag,
        worst_by={
            "population": population.attacker,
            "individual": individual.attacker,
            "linkability_all": linking.attacker,
        },
        n_enrolled=best.n_enrolled,
        n_target=best.n_target,
        n_nontarget=best.n_nontarget,
        attackers={condition.attacker: condition.eer.value for condition in part},
        draws=tuple(draw.eer for draw in best.draws),
        tested=part[0].tested,
        levels=levels,
        without_content=without_content,
        closed_set=_joined(closed, "eer", minimum_of),
        centred=_joined(centred, "eer", minimum_of),
        identification=_joined(identified, "share", maximum_of),
        minimum=smallest.get("minimum"),
        minimum_over_scenarios=over_scenarios,
        verdict=_in_words(best, linking),
        conditions=tuple(part),
        condition=best,
    )


def _smallest_rate(conditions: Sequence[Condition], minimum: Minimum | None) -> SmallestRate:
    """Return the rate of the strongest attacker, with the minimum over all of them."""
    best = strongest(conditions)
    return SmallestRate(best.attacker, best.eer, minimum)


def _population(condition: Condition) -> float:
    return _or_least(condition.metric("zebra.population").value)


def _individual(condition: Condition) -> float:
    return _or_least(condition.metric("zebra.individual").value)


def _linkability(condition: Condition) -> float:
    return _or_least(condition.found_among_all.value)


def _or_least(value: float) -> float:
    """Return a number to sort by: unknown numbers are the smallest."""
    return -math.inf if math.isnan(value) else value


def _in_words(best: Condition, linking: Condition) -> str:
    """Return the result of a scenario in a sentence, from its strongest attacker and the one that links the most."""
    where = list_in_words(best.dataset, best.gender)
    text = f"{where}, {best.scenario}: the strongest attacker ({best.attacker}) has an equal error rate of"
    text += f" {100 * best.eer.value:.1f} %"
    linked = linking.found_among_all.value
    if not math.isnan(linked):
        finds = "finds"
        if linking.attacker != best.attacker:
            finds = f"{linking.attacker} finds"
        text += f", and {finds} the speaker of an utterance among all enrolled ones"
        text += f" in {100 * linked:.0f} % of the cases"
    return f"{text}."


def _joined(
    rows: Sequence[Joined], field: str, join: Callable[[Iterable[Interval]], Interval]
) -> Joined | None:
    """Return the row with the smallest or largest known value, and give it the interval of the minimum or maximum."""
    read = attrgetter(field)
    known = [row for row in rows if read(row).known]
    if not known:
        return None
    joined = join(map(read, known))
    values = list(map(attrgetter(f"{field}.value"), known))
    chosen: Any = known[values.index(joined.value)]
    row: Joined = replace(chosen, **{field: joined})
    return row


def rank_of(name: str) -> tuple[int, str]:
    """Sort key of sexes and scenarios: known names in their order, unknown names last in alphabetical order."""
    rank = _ORDER.index(name) if name in _ORDER else len(_ORDER)
    return rank, name
