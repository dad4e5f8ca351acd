"""Attackers: scenarios (which speech is anonymised) and levels of knowledge (what a score may depend on)."""

from __future__ import annotations

from dataclasses import dataclass

ONE_MODEL = "one-model"
ALL_ENROLLED = "all-enrolled"
WHOLE_LIST = "whole-list"
INVERTING = "inverting"
REVERSAL = "reversal"

LEVELS = {
    ONE_MODEL: "compares one enrolled speaker with one test recording, as NIST and the challenge's attacker do",
    ALL_ENROLLED: "learns from all enrolled speakers, and looks at one test recording",
    WHOLE_LIST: "learns from all test recordings of a list, without labels",
    INVERTING: "inverts the anonymisation: it knows the family of anonymisers, or learns from original and anonymised"
    " speech of the same people",
}
"""What an attacker may use besides what its scenario gives it, from the least to the most."""


@dataclass(frozen=True)
class Scenario:
    """A scenario: which speech is anonymised, and whether the attacker was trained on such speech."""

    name: str
    enrolment: bool
    trials: bool
    training: bool


SCENARIOS = (
    Scenario("original", enrolment=False, trials=False, training=False),
    Scenario("ignorant", enrolment=False, trials=True, training=False),
    Scenario(REVERSAL, enrolment=False, trials=True, training=False),
    Scenario("lazy-informed", enrolment=True, trials=True, training=False),
    Scenario("semi-informed", enrolment=True, trials=True, training=True),
)
"""From the least to the best informed attacker. In a reversal attack the enrolment is original; the attacker knows the
family of anonymisers and the range of its parameter, but not the values drawn, and has no anonymised speech except the
trials; where no record names the family, it is recognised from a few pairs of original and anonymised background
recordings."""

SCENARIO_ORDER = tuple(scenario.name for scenario in SCENARIOS)
