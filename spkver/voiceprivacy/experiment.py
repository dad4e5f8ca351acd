"""What every step of an evaluation is given: the run, the data, the configuration, and how far to go."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers import Attacker, AttackerConfig, Wanted
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.making import Outcome
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.steps import Steps
from spkver.voiceprivacy.twins import Anonymizers, find_anonymizers


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
    outcome : Outcome
        What came of the scores besides the scores.
    named : tuple of str
        Sets of the configuration file, of which `config` may have others.
    """

    run: Run
    data: Path
    suffix: str
    config: Config
    steps: Steps
    allow_pipes: bool = False
    outcome: Outcome = field(default_factory=Outcome)
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
