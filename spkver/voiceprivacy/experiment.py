"""What every step of an evaluation is given: the run, the data, the configuration, and how far to go.

Which steps a run is asked for by ``--only`` and ``--until`` is in `Steps`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from spkbase.errors import ConfigError
from spkbase.runs import Ended, Run
from spkbase.showing import one_line
from spkver.attackers import Attacker, AttackerConfig, Wanted
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.scores import Failure
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.twins import Anonymizers, find_anonymizers

logger = logging.getLogger(__name__)

STEPS: Mapping[str, str] = {
    "simulation": "SIMULATED speech, for --data simulated",
    "checks": "everything wrong with data and configuration",
    "anonymisation": "twins that are missing",
    "scores": "attackers, and the scores of every condition",
    "evaluation": "the numbers of every condition",
    "utility": "words, pitch and emotions, where asked for",
    "report": "results, tables and the page",
}


@one_line
@dataclass(frozen=True)
class Steps:
    """Which steps are worked on.

    Attributes
    ----------
    only : str or None
        This one alone; what it needs must be there as it would be made now.
    until : str or None
        All up to this one.
    done : list of str
        What was done, a line for each step, for the account at the end.
    failures : list of Failure
        What single attackers failed at, for the account too.
    """

    only: str | None = None
    until: str | None = None
    done: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        for option, name in (("--only", self.only), ("--until", self.until)):
            if name is not None and name not in STEPS:
                raise ConfigError(f"{option} {name!r} is no step: expected one of {', '.join(STEPS)}")
        if self.only is not None and self.until is not None:
            raise ConfigError("--only and --until exclude each other", remedy="give one of them")

    def includes(self, name: str) -> bool:
        """Return whether a step is worked on."""
        order = list(STEPS)
        return name == self.only or (self.only is None and order.index(name) <= order.index(self.until or order[-1]))

    def needs(self, name: str) -> bool:
        """Return whether a step must be up to date, by this run or an earlier one, for those that are worked on."""
        return self.includes(name) or not (self.only == "utility" and name in ("scores", "evaluation"))

    def ends_with(self, name: str) -> bool:
        """Return whether nothing is to be done after a step."""
        return name == (self.only or self.until or "report")

    def end_with(self, name: str) -> None:
        """End the run here, by `Ended`, if nothing is to be done after a step."""
        if self.ends_with(name):
            raise Ended(name)

    def run(self, run: Run, name: str) -> Run:
        """Return the run as a step sees it: one that is not worked on makes nothing, its stages stay as they are."""
        return run if self.includes(name) else replace(run, force=False, frozen=True)

    def begin(self, name: str) -> None:
        """Say which step begins, if it is worked on."""
        if self.includes(name):
            order = list(STEPS)
            logger.info("step %d of %d: %s (%s)", order.index(name) + 1, len(order), name, STEPS[name])

    def tell(self, name: str, text: str) -> None:
        """Note what a step has done, if it was worked on."""
        if self.includes(name):
            self.done.append(f"{name}: {text}")

    def account(self) -> str:
        """Return what a run says that ends before the report."""
        last = self.only or self.until
        left = list(STEPS)[list(STEPS).index(last) + 1 :] if last else []
        follows = f"To go on ({', '.join(left)}), give the same command without --{'only' if self.only else 'until'}."
        return "\n".join(["Done:", *(f"  {line}" for line in self.done), follows])


@one_line
@dataclass(frozen=True)
class Experiment:
    """An evaluation of one anonymiser.

    Attributes
    ----------
    run : Run
        The output folder, and who computes.
    data : Path
        Folder of the original data directories.
    suffix : str
        What the names of anonymised sets end with.
    config : Config
    steps : Steps
        Which steps are worked on.
    allow_pipes : bool
        Run shell commands of a ``wav.scp``.
    named : tuple of str
        Sets of the configuration file, of which `config` may have others.
    """

    run: Run
    data: Path
    suffix: str
    config: Config
    steps: Steps
    allow_pipes: bool = False
    named: tuple[str, ...] = ()

    @cached_property
    def attackers(self) -> list[AttackerConfig | Attacker | Wanted]:
        """Configurations of the built-in attackers, and those of others, in the order of the configuration."""
        return chosen_attackers(self.config)

    @cached_property
    def anonymizers(self) -> Anonymizers | None:
        """What makes missing twins; None where no anonymiser is at hand."""
        return find_anonymizers(self.config.anonymizer, self.suffix)

    def at(self, step: str) -> Run:
        """Return the run as a step sees it, see `Steps.run`."""
        return self.steps.run(self.run, step)
