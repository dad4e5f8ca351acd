"""What every step of an evaluation is given: the run, the data, the configuration, and how far to go.

Which steps a run is asked for by ``--only`` and ``--until`` is in `Steps`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError
from spkbase.runs import Ended, Run
from spkbase.showing import one_line
from spkver.voiceprivacy.choosing import Anonymizers, Chosen, chosen_attackers, find_anonymizers
from spkver.voiceprivacy.settings import Config

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
_ORDER = list(STEPS)


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
    failures : list of dict
        What single attackers failed at, see `spkver.voiceprivacy.scores.ScoreTable`, for the account too.
    """

    only: str | None = None
    until: str | None = None
    done: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for option, name in (("--only", self.only), ("--until", self.until)):
            if name is not None and name not in STEPS:
                raise ConfigError(f"{option} {name!r} is no step: expected one of {', '.join(STEPS)}")
        if self.only is not None and self.until is not None:
            raise ConfigError("--only and --until exclude each other", remedy="give one of them")

    def includes(self, name: str) -> bool:
        """Return whether a step is worked on."""
        if self.only is not None:
            return name == self.only
        return _ORDER.index(name) <= _ORDER.index(self.until or _ORDER[-1])

    def needs(self, name: str) -> bool:
        """Return whether a step must be up to date, by this run or an earlier one, for those that are worked on."""
        return self.includes(name) or not (self.only == "utility" and name in ("scores", "evaluation"))

    def ends_with(self, name: str) -> bool:
        """Return whether nothing is to be done after a step."""
        return name == (self.only or self.until or _ORDER[-1])

    def seen(self, name: str, run: Run) -> Run:
        """Return the run as a step sees it: one that is not worked on makes nothing, its stages stay as they are."""
        return run if self.includes(name) else replace(run, force=False, frozen=True)

    def begin(self, name: str, run: Run) -> Run:
        """Say which step begins, if it is worked on, and return the run as the step sees it, see `seen`."""
        if self.includes(name):
            logger.info("step %d of %d: %s (%s)", _ORDER.index(name) + 1, len(_ORDER), name, STEPS[name])
        return self.seen(name, run)

    def end(self, name: str, text: str) -> None:
        """Note what a step has done, if it was worked on; end the run by `Ended` if nothing is to be done after it."""
        if self.includes(name):
            self.done.append(f"{name}: {text}")
        if self.ends_with(name):
            raise Ended(name)

    def account(self) -> str:
        """Return what a run says that ends before the report."""
        option, last = ("only", self.only) if self.only else ("until", self.until)
        left = _ORDER[_ORDER.index(last) + 1 :] if last else []
        follows = f"To go on ({', '.join(left)}), give the same command without --{option}."
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
    def attackers(self) -> list[Chosen]:
        """Configurations of the built-in attackers, and those of others, in the order of the configuration."""
        return chosen_attackers(self.config)

    @cached_property
    def anonymizers(self) -> Anonymizers | None:
        """What makes missing twins; None where no anonymiser is at hand."""
        return find_anonymizers(self.config.anonymizer, self.suffix)
