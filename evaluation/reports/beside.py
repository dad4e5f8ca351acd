"""What stands beside the EER of a scenario: levels of knowledge, draws, the closed set, how often speakers are named.

The result of a scenario is the least privacy over all attackers. What each of them may look at is its ``level`` in the
entries of ``results.json`` (`LEVELS`); the least of each level stands beside the result. Attackers that read what is
said (``content``) attack what an anonymiser must keep; the least without them stands there too. Where the trials were
anonymised several times the result is the mean over the draws, which ``draws`` of an entry tell. ``closed_set`` holds
what an attacker gets who knows that the speaker is one of the enrolled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.reports.privacy_schema import LEVELS, TRIAL_BY_TRIAL, error_rate_of, strongest
from evaluation.uncertainty import Interval, minimum_of
from spkbase.showing import one_line


@one_line
@dataclass(frozen=True)
class Figure:
    """A rate of an attacker; no name where there is none.

    Attributes
    ----------
    attacker : str
    rate : Interval
    """

    attacker: str = ""
    rate: Interval = field(default_factory=Interval)

    def to_dict(self, name: str) -> dict[str, Any] | None:
        """Return attacker, rate under a name, and its ends, as the summary of the results has them; None without."""
        if not self.attacker:
            return None
        ends = {end: None if math.isnan(value) else value for end, value in self._ends().items()}
        return {"attacker": self.attacker, name: self.rate.value, **ends}

    def _ends(self) -> dict[str, float]:
        return {"low": self.rate.low, "high": self.rate.high}


@one_line
@dataclass(frozen=True)
class Beside:
    """What stands beside the EER of a scenario.

    Attributes
    ----------
    levels : dict of str to Figure
        EER of the strongest attacker of each level of knowledge that has one, in the order of `LEVELS`.
    without_content : Figure
        EER of the strongest attacker that does not read what is said; none where no attacker reads.
    tested : tuple of int
        Recordings that each list of trials tests, which whole-list attackers adapt to; empty where it is not known.
    closed_set : Figure
        Least EER of scores that are centred over the enrolled, with the interval of the minimum over attackers.
    identification : Figure
        Largest share of utterances whose speaker is first among all enrolled.
    candidates : (int, int)
        Least and largest number of enrolled speakers that an utterance was compared with; 0 where it is not known.
    draws : tuple of float
        EER of the strongest attacker in each draw; empty where it is not known.
    """

    levels: dict[str, Figure] = field(default_factory=dict)
    without_content: Figure = field(default_factory=Figure)
    tested: tuple[int, ...] = ()
    closed_set: Figure = field(default_factory=Figure)
    identification: Figure = field(default_factory=Figure)
    candidates: tuple[int, int] = (0, 0)
    draws: tuple[float, ...] = ()


def figures_beside(conditions: Sequence[Mapping[str, Any]], minima: Mapping[str, Any] | None = None) -> Beside:
    """Return what stands beside the EER of a scenario.

    Parameters
    ----------
    conditions : sequence of mappings
        Entries of ``results.json`` for one set, sex and scenario; at least one.
    minima : mapping, optional
        By level of knowledge, and ``without_content``, the interval of the minimum, in place of the attacker's own.

    Examples
    --------
    >>> undone = {"attacker": "undone", "eer": 0.1, "level": "inverting"}
    >>> levels = figures_beside([undone, {"attacker": "plain", "eer": 0.2, "level": "trial-by-trial"}]).levels
    >>> {level: figure.attacker for level, figure in levels.items()}
    {'trial-by-trial': 'plain', 'inverting': 'undone'}
    """
    levels: dict[str, list[Mapping[str, Any]]] = {level: [] for level in LEVELS}
    for condition in conditions:
        levels.setdefault(str(condition.get("level") or TRIAL_BY_TRIAL), []).append(condition)
    minima = minima or {}
    voices = [condition for condition in conditions if not condition.get("content")]
    closed = _of_closed_sets(conditions, "eer")
    least = min(closed, key=lambda figure: figure.rate.value, default=Figure())
    named = max(_of_closed_sets(conditions, "identification"), key=lambda figure: figure.rate.value, default=Figure())
    return Beside(
        levels={level: _of_strongest(part, minima.get(level)) for level, part in levels.items() if part},
        without_content=(
            _of_strongest(voices, minima.get("without_content")) if 0 < len(voices) < len(conditions) else Figure()
        ),
        tested=_counts(conditions[0].get("tested")),
        closed_set=replace(least, rate=minimum_of(figure.rate for figure in closed)) if closed else least,
        identification=named,
        candidates=_candidates(conditions, named.attacker),
        draws=_draws(strongest(conditions)),
    )


def _of_strongest(conditions: Sequence[Mapping[str, Any]], minimum: Any) -> Figure:
    condition = strongest(conditions)
    ends = condition.get("intervals")
    own = ends.get("eer.rocch") if isinstance(ends, Mapping) else None
    smallest = minimum if isinstance(minimum, Mapping) else own
    return Figure(str(condition.get("attacker")), _interval(error_rate_of(condition), smallest))


def _of_closed_sets(conditions: Sequence[Mapping[str, Any]], name: str) -> list[Figure]:
    """A figure of the closed set of each attacker that has one."""
    found = []
    for condition in conditions:
        closed = condition.get("closed_set")
        stated = closed.get(name) if isinstance(closed, Mapping) else None
        if isinstance(stated, Mapping):
            rate = _interval(_number(stated.get("value")), stated)
            if rate.known:
                found.append(Figure(str(condition.get("attacker")), rate))
    return found


def _candidates(conditions: Sequence[Mapping[str, Any]], attacker: str) -> tuple[int, int]:
    for condition in conditions:
        closed = condition.get("closed_set")
        if condition.get("attacker") == attacker and isinstance(closed, Mapping):
            numbers = _counts(closed.get("candidates"))
            if len(numbers) == 2:
                return numbers[0], numbers[1]
    return 0, 0


def _counts(stated: Any) -> tuple[int, ...]:
    return tuple(stated) if isinstance(stated, list) and all(type(number) is int for number in stated) else ()


def _draws(condition: Mapping[str, Any]) -> tuple[float, ...]:
    stated = condition.get("draws")
    if not isinstance(stated, list):
        return ()
    return tuple(error_rate_of(of_draw) for of_draw in stated if isinstance(of_draw, Mapping))


def _interval(value: float, ends: Any) -> Interval:
    stated = ends if isinstance(ends, Mapping) else {}
    return Interval(value, _number(stated.get("low")), _number(stated.get("high")))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
