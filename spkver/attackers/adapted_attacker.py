"""Attackers by vectors that adapt to the trials at hand: `spkver.backend.adapted_cosine_scores` in place of a scorer.

Nothing but what every scenario gives an attacker is looked at: the recordings that enrol speakers, with their names,
and those that are tested, without. So they are strict attackers; but a score depends on the whole list of trials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spkbase.configuration import merged
from spkver.attackers.context import Context, Settings
from spkver.attackers.protocol import Wanted

ADAPTED = "-adapted"
"""What their names end with."""


def wanted_adapted(base: Callable[[str, Settings, Context], Wanted]) -> Callable[[str, Settings, Context], Wanted]:
    """Return what makes an adapted attacker of its settings; `base` makes the one by vectors that does not adapt.

    Settings are those of the base attacker, but for its chains: its own in the configuration, and what differs from
    them here.
    """

    def make(name: str, settings: Settings, context: Context) -> Wanted:
        preset = context.preset.removesuffix(ADAPTED)
        of_base = context.settings.get(preset, {})
        of_base = {key: value for key, value in of_base.items() if key not in ("preset", "chains", "adapted")}
        return base(name, merged(of_base, {"adapted": True}, settings), replace(context, preset=preset))

    return make
