"""The form of ``results.json``: its number, its scenarios, and who is the strongest attacker of several.

`spkver.voiceprivacy` writes results in this form; reports, rankings and pages read it. `conditions` of the results
has an entry for each set, sex, scenario and attacker: ``dataset``, ``gender``, ``scenario``, ``attacker``, ``eer`` (a
number, or readings by name), ``intervals``, ``zebra``, ``linkability`` and more; ``summary`` has the strongest
attacker of each scenario. Beside these (`evaluation.reports.beside`) an entry has ``level``, what the attacker may
look at (`LEVELS`); ``content``, whether it reads what is said, which an anonymiser must keep; ``draws``, what each
anonymised version of the trials gives, of which the other numbers are means; ``closed_set``, error rate and
identification where the attacker knows the enrolled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Entry = TypeVar("Entry", bound=Mapping[str, Any])

FORMAT = 1
"""Number of the form; a file with another one is refused."""


@dataclass(frozen=True)
class Scenario:
    """What the attacker has: which speech is anonymised, and whether it was trained on such speech."""

    name: str
    enrolment: bool
    trials: bool
    training: bool


SCENARIOS = (
    Scenario("original", enrolment=False, trials=False, training=False),
    Scenario("ignorant", enrolment=False, trials=True, training=False),
    Scenario("lazy-informed", enrolment=True, trials=True, training=False),
    Scenario("semi-informed", enrolment=True, trials=True, training=True),
)
"""From the one who knows least to the one who knows most."""

SCENARIO_ORDER = tuple(scenario.name for scenario in SCENARIOS)

TRIAL_BY_TRIAL, WHOLE_LIST, INVERTING = "trial-by-trial", "whole-list", "inverting"
LEVELS = {
    TRIAL_BY_TRIAL: "scores a trial from the enrolment and one test recording, as NIST and the challenge's attacker do",
    WHOLE_LIST: "adapts to all test recordings of a list, without labels",
    INVERTING: "inverts the anonymisation: it knows the family of anonymisers, or learns from original and anonymised"
    " speech of the same people",
}
"""What an attacker may look at beside what its scenario gives it, from the least to the most."""


def strongest(conditions: Sequence[Entry]) -> Entry:
    """Return the condition of the attacker that leaves the least privacy.

    Parameters
    ----------
    conditions : sequence of mappings
        Entries of ``results.json`` for one set, sex and scenario; at least one.

    Returns
    -------
    mapping
        That with the smallest EER; of equal ones that with the most disclosed evidence, then by name. One without an
        EER only where none has one.

    Examples
    --------
    >>> weak, strong = {"attacker": "a", "eer": {"rocch": 0.3}}, {"attacker": "b", "eer": 0.2}
    >>> strongest([weak, strong])["attacker"]
    'b'
    """

    def order(condition: Entry) -> tuple[float, float, str]:
        zebra = condition.get("zebra")
        population = _number(zebra.get("population")) if isinstance(zebra, Mapping) else math.nan
        return (
            _last_if_unknown(error_rate_of(condition)),
            _last_if_unknown(-population),
            str(condition.get("attacker")),
        )

    return min(conditions, key=order)


def error_rate_of(condition: Mapping[str, Any]) -> float:
    """Return the EER of a condition by the ROC convex hull, as a share; NaN where it has none."""
    eer = condition.get("eer")
    return _number(eer.get("rocch") if isinstance(eer, Mapping) else eer)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _last_if_unknown(value: float) -> float:
    return math.inf if math.isnan(value) else value
