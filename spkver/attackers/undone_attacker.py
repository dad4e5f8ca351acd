"""Attackers that undo the anonymisation first: what another attacker makes of speech that was turned back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.trials import Scores
from spkbase.configuration import merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.config import AttackerConfig, Context, Settings, attacker_config
from spkver.attackers.protocol import Attack, Attacker, Background, Place, Scorer, Wanted
from spkver.attackers.training import Classics
from spkver.attackers.undoing import VERSION, Undoing, known_anonymizer, why_not
from spkver.attackers.workplace import Workplace
from spkver.datadir import DataDir

UNDONE = "-undone"
"""What their names end with."""

Base = AttackerConfig | Wanted
Workshops = dict[tuple[DataDir, tuple[DataDir, ...]], Undoing]
"""What undoes the speech of each background; attackers share it."""


@one_line
@dataclass(frozen=True, eq=False)
class UndoneAttacker:
    """An attacker on undone speech; see `spkver.attackers.BackgroundAttacker`.

    Lazy-informed, the base attacker learns from original speech, and meets undone enrolment and trials; semi-informed,
    it learns from undone draws of the background too.
    """

    name: str
    base: Attacker
    place: Place = field(repr=False)
    workshops: Workshops = field(default_factory=dict, repr=False)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Where enrolment and trials are both anonymised."""
        return "lazy-informed", "semi-informed"

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return both sides, and the whole background."""
        background = _whole_background(attack)
        return *attack.sides, background.original, *background.anonymised

    def record(self, attack: Attack) -> Any:
        """Return what it depends on besides the speech: the base attacker, and what is known of the anonymiser."""
        known = known_anonymizer(_whole_background(attack))
        assert known is not None  # see `lacks`
        what = [known.inverse.anonymizer, list(known.bounds)]
        return {"undoing": VERSION, "anonymizer": what, "base": self.base.record(attack)}

    def lacks(self, attack: Attack) -> str:
        """Return why the speech cannot be undone, or what the base attacker lacks."""
        return why_not(attack) or self.base.lacks(attack)

    def learn(self, attack: Attack) -> Scorer:
        """Undo the training set where it is anonymised, and have the base attacker learn from it."""
        background = _whole_background(attack)
        known = background.original, background.anonymised
        undoing = self.workshops.setdefault(known, Undoing(background, self.place))
        training = attack.training
        if attack.scenario == "semi-informed":
            is_part = background is not attack.background
            training = tuple(map(undoing.selected, training)) if is_part else undoing.undone_background
        scorer = self.base.learn(replace(attack, training=training))

        def score(attack: Attack) -> Scores:
            enrolment, *versions, tested = map(undoing.undone, attack.sides)
            sides = {"enrolment": enrolment, "versions": tuple(versions), "tested": tested}
            return scorer(replace(attack, training=training, **sides))  # type: ignore[arg-type]

        return score


def _whole_background(attack: Attack) -> Background:
    """The background that tells what the anonymiser does, also where an attack is one of a fold of it."""
    assert attack.background is not None  # see `UndoneAttacker.lacks`
    return attack.background.whole or attack.background


@one_line
@dataclass(frozen=True)
class WantedUndone:
    """An attacker on undone speech, before it is at work; see `spkver.attackers.Wanted`."""

    name: str
    base: Base

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work; what undoes the speech is shared with those before it."""
        shared = next((other.workshops for other in others.values() if isinstance(other, UndoneAttacker)), {})
        return UndoneAttacker(self.name, base_at_work(self.base, place), place, shared)


def base_at_work(base: Base, place: Place) -> Attacker:
    """Return an attacker that works for another one, beside that of its name if there is one.

    What it learns from speech that both learn from, it finds there.
    """
    if isinstance(base, AttackerConfig):
        work = Workplace(place.work, place.jobs)
        return Classics([base], place.output / "attackers", work, place.seed, place.force).attackers()[0]
    return base.at(place, {})


def wanted_undone(
    base: Callable[[str, Settings, Context], Wanted] | None = None,
) -> Callable[[str, Settings, Context], Wanted]:
    """Return what makes an attacker on undone speech of its settings; `base` makes the other one, by default a classic.

    Settings are those of the base attacker: its own in the configuration, and what differs from them here.
    """

    def make(name: str, settings: Settings, context: Context) -> Wanted:
        preset = context.preset.removesuffix(UNDONE)
        of_base = {key: value for key, value in context.settings.get(preset, {}).items() if key != "preset"}
        # its own settings make it another one, which is kept elsewhere
        called = name if settings else preset
        own = replace(context, preset=preset)
        try:
            if base is not None:
                return WantedUndone(name, base(called, merged(of_base, settings), own))
            values = merged(context.shared, of_base, settings, {"name": called})
            return WantedUndone(name, attacker_config(preset, values=values))
        except ConfigError as error:
            raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error

    return make
