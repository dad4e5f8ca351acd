"""Attackers by vectors that adapt to the trials at hand: `spkver.backend.adapted_cosine_scores` in place of a scorer.

Nothing but what every scenario gives an attacker is looked at: the recordings that enrol speakers, with their names,
and those that are tested, without. A score of `-adapted` depends on the whole list of trials; one of `-single-test` on
the enrolled models and its own tested recording alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spkbase.configuration import merged
from spkver.attackers.chain_choice import ADAPTED_COSINE, SINGLE_TEST_COSINE
from spkver.attackers.context import Context, Settings
from spkver.attackers.protocol import Wanted

ADAPTING = {"adapted": ADAPTED_COSINE, "single-test": SINGLE_TEST_COSINE}
"""What their names end with, and what scores."""


def wanted_adapted(
    base: Callable[[str, Settings, Context], Wanted], ending: str = "adapted"
) -> Callable[[str, Settings, Context], Wanted]:
    """Return what makes an adapted attacker of its settings; `base` makes the one by vectors that does not adapt.

    Settings are those of the base attacker, but for its chains: its own in the configuration, and what differs from
    them here.
    """

    def make(name: str, settings: Settings, context: Context) -> Wanted:
        preset = context.preset.removesuffix(f"-{ending}")
        of_base = context.settings.get(preset, {})
        of_base = {key: value for key, value in of_base.items() if key not in ("preset", "chains", "adapted")}
        values = merged(of_base, {"adapted": ADAPTING[ending]}, settings)
        return base(name, values, replace(context, preset=preset))

    return make
