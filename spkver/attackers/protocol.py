"""What an evaluation asks of an attacker, whether it is built in or somebody else's.

An attacker learns from training recordings, then scores lists of trials from recordings that enrol and recordings that
are tested. Built in are those of `spkver.attackers.training`; the doors for others are in `spkver.attackers.doors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from evaluation.reports import INVERTING, TRIAL_BY_TRIAL
from evaluation.trials import Scores, Trials
from spkbase.showing import one_line
from spkver.datadir import DataDir, with_versions

Arrays = dict[str, NDArray]


@one_line
@dataclass(frozen=True, eq=False)
class Background:
    """Speech of people who are neither enrolled nor tested, as it was and as the anonymiser makes it.

    Attributes
    ----------
    original : DataDir
    anonymised : tuple of DataDir
        Versions of it, each with other random numbers.
    whole : Background or None
        Of which this is a part, without the speakers of a fold. What is learnt of the anonymiser, and of no voice, may
        be learnt from all of it.
    """

    original: DataDir
    anonymised: tuple[DataDir, ...] = ()
    whole: Background | None = None


@one_line
@dataclass(frozen=True, eq=False)
class Attack:
    """A list of trials, and the speech that an attacker has for it.

    Attributes
    ----------
    name : str
        ``asv_orig/<enrolment>-<trials>`` or ``asv_anon<suffix>/<enrolment>-<trials>``: by what the attacker learnt
        from, and by the data directories.
    training : tuple of DataDir
        What the attacker may learn from; several are versions of the same speech, see `merge_versions`.
    enrolment : DataDir
        A model of the trials is a speaker, with the utterances that `enrolls` lists.
    tested : DataDir
        A segment of the trials is an utterance. Whose it is the evaluation does not tell: each is a speaker of its own.
    trials : Trials
    scenario : str
        What the attacker knows, see `evaluation.reports.SCENARIOS`.
    background : Background or None
        The whole background. Only an attacker that says so (`BackgroundAttacker`) looks at more of it than `training`.
    versions : tuple of DataDir
        Further anonymised versions of `enrolment`: who has the recordings and the anonymiser makes several.
    original_enrolment : DataDir or None
        These recordings themselves.
    """

    name: str
    training: tuple[DataDir, ...]
    enrolment: DataDir
    tested: DataDir
    trials: Trials
    scenario: str = ""
    background: Background | None = None
    versions: tuple[DataDir, ...] = ()
    original_enrolment: DataDir | None = None

    @cached_property
    def enrolled(self) -> DataDir:
        """The enrolment with all its versions."""
        return with_versions(self.enrolment, self.versions)

    @property
    def sides(self) -> tuple[DataDir, ...]:
        """What enrols, in all versions, and what is tested."""
        return (self.enrolment, *self.versions, self.tested)


Scorer = Callable[[Attack], Scores]
"""Scores the trials of an attack, in their order."""


class Attacker(Protocol):
    """Somebody who tells, for each trial, how much two sides sound alike."""

    @property
    def name(self) -> str:
        """What its folders and its results are called."""

    def record(self, attack: Attack) -> Any:
        """Return all that its scores depend on besides speech, trials and seed, see `spkbase.files.fingerprint`."""

    def lacks(self, attack: Attack) -> str:
        """Return why it cannot score these trials, or nothing if it can.

        Called before anything long starts.

        Raises
        ------
        DataError
            If it could, but what it has for them cannot be used.
        """

    def learn(self, attack: Attack) -> Scorer:
        """Learn from what an attack leaves it to learn from: training recordings, and perhaps the whole background.

        What comes back scores its trials, and those of other attacks with the same speech to learn from, see
        `learns_from`.
        """


@runtime_checkable
class BackgroundAttacker(Protocol):
    """An attacker that learns from both sides of the background, such as one that undoes the anonymisation.

    Its level of knowledge is `evaluation.reports.INVERTING`, see `level_of`.
    """

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that it serves; out of the others it is left without a word."""

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return all data directories that its scores depend on."""


def speech_of(attacker: Attacker, attack: Attack) -> tuple[DataDir, ...]:
    """Return all data directories that the scores of an attack depend on."""
    if isinstance(attacker, BackgroundAttacker):
        return attacker.speech(attack)
    return (*attack.sides, *attack.training)


def learns_from(attacker: Attacker, attack: Attack) -> tuple[DataDir, ...]:
    """Return the speech that an attacker learns from before it meets enrolment and trials, the training set first."""
    sides = set(attack.sides)
    return (*attack.training, *(directory for directory in speech_of(attacker, attack) if directory not in sides))


def level_of(attacker: Attacker) -> str:
    """Return what an attacker may look at, see `evaluation.reports.LEVELS`.

    That is its attribute ``level``, trial-by-trial where it has none; or inverting, where it learns from both sides of
    the background.
    """
    return INVERTING if isinstance(attacker, BackgroundAttacker) else getattr(attacker, "level", TRIAL_BY_TRIAL)


@one_line
@dataclass(frozen=True)
class Place:
    """Where the attackers of a run work.

    Attributes
    ----------
    output : Path
        Output folder of the run: what attackers learnt goes below ``attackers/``, speech below ``data/``.
    work : Path
        Folder of what they share, such as features and vectors; it may be removed.
    seed : int
    jobs : int or None
    force : bool
        Make again what is there.
    speech : Path or None
        Folder that has ``data/`` where it is another than `output`, so that two places share their pieces of speech.
    """

    output: Path
    work: Path
    seed: int = 0
    jobs: int | None = None
    force: bool = False
    speech: Path | None = None


@runtime_checkable
class Wanted(Protocol):
    """An attacker that is configured, before it has a place to work at."""

    @property
    def name(self) -> str:
        """What its folders and its results are called."""

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return the attacker at work; `others` are those before it in the configuration, by name."""
