"""The interface of attackers, built in or user-supplied.

An attacker learns from training recordings, then scores lists of trials between enrolment and tested recordings.
`spkver.attackers.registry` lists the attackers, and the ways to plug in others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evaluation.trials import TRIAL_BY_TRIAL, Scores, Trials
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.showing import one_line
from spkver.datadir import DataDir

ENDING = (MemoryError, WorkerError, ConfigError)
"""Errors that no attacker is to blame for: they end a run."""

Scorer = Callable[[tuple[DataDir, ...], DataDir, Trials], Scores]
"""``score(enrolment, tested, trials)``: scores trials, in their order; see `Attack` for what the arguments hold."""


@one_line
@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What an attacker learns from: speech of people who are neither enrolled nor tested.

    Attributes
    ----------
    original : DataDir
        The background as it was recorded.
    anonymised : tuple of DataDir
        Versions of it, each with other random numbers.
    on_anonymised : bool
        Whether recognisers learn from the anonymised versions, as semi-informed attackers do. Only an attacker that
        inverts the anonymisation uses the other side too.
    name : str
        ``asv_orig`` or ``asv_anon<suffix>``, as VoicePrivacy names training sets.
    whole : TrainingSet or None
        The set of which this is a part, without the speakers of a fold. Knowledge of the anonymiser (not of voices) may
        be learnt from the whole set.
    """

    original: DataDir
    anonymised: tuple[DataDir, ...] = ()
    on_anonymised: bool = False
    name: str = ""
    whole: TrainingSet | None = None

    @property
    def versions(self) -> tuple[DataDir, ...]:
        """The speech that recognisers learn from; several directories are anonymised versions, see `merge_versions`."""
        return self.anonymised if self.on_anonymised else (self.original,)


@one_line
@dataclass(frozen=True, eq=False)
class Attack:
    """A list of trials, and the speech that an attacker has for it.

    Attributes
    ----------
    training : TrainingSet
    enrolment : tuple of DataDir
        A model of the trials is a speaker, with the utterances that `enrolls` lists. Several are anonymised versions of
        the same speech: whoever enrols speakers and has the anonymiser can make them.
    tested : DataDir
        A segment of the trials is an utterance. Its speaker is not disclosed: each utterance is a speaker by itself.
    trials : Trials
    scenario : str
        What the attacker knows, see `evaluation.trials.SCENARIOS`.
    """

    training: TrainingSet
    enrolment: tuple[DataDir, ...]
    tested: DataDir
    trials: Trials
    scenario: str = ""

    @property
    def name(self) -> str:
        """As VoicePrivacy names its folder: ``asv_orig/<enrolment>-<trials>``."""
        return folder_name(self.training, self.enrolment, self.tested)

    def scored_by(self, scorer: Scorer) -> Scores:
        """Score its trials with a scorer that was trained on its training set."""
        return scorer(self.enrolment, self.tested, self.trials)

    @property
    def sides(self) -> tuple[DataDir, ...]:
        """All versions of the enrolment, and the tested directory."""
        return (*self.enrolment, self.tested)


def folder_name(training: TrainingSet, enrolment: Sequence[DataDir], tested: DataDir) -> str:
    """Return the name of a list of trials and its folder, from the training set and the data directories."""
    return f"{training.name}/{enrolment[0].path.name}-{tested.path.name}"


class Attacker(Protocol):
    """Scores, for each trial, how alike enrolment and test are: ``fit(training)(enrolment, tested, trials)``.

    A user's function has the same form, with lists of files in place of data directories (`spkver.attackers.supplied`).
    An attacker may have three more attributes: `level`, what it may look at (`evaluation.trials.LEVELS`; trial-by-trial
    by default); `scenarios`, the scenarios that it is made for (all by default); and `speech`, a method that returns
    all data directories that the scores of an attack depend on (both sides and the training set by default).
    """

    @property
    def name(self) -> str:
        """Name of its folders and its results."""

    def record(self, attack: Attack) -> Any:
        """Return all that its scores depend on besides speech, trials and seed, see `spkbase.files.fingerprint`."""

    def lacks(self, attack: Attack) -> str:
        """Return why it cannot score these trials, or an empty string if it can.

        Called before anything long starts.

        Raises
        ------
        DataError
            If its files for these trials cannot be used.
        """

    def fit(self, training: TrainingSet) -> Scorer:
        """Learn from the training set, and return a scorer of trials."""


def serves(attacker: Attacker, attack: Attack) -> bool:
    """Return whether an attacker is made for the scenario of an attack; it is left out of the others silently."""
    scenarios = getattr(attacker, "scenarios", ())
    return not scenarios or attack.scenario in scenarios


def speech_of(attacker: Attacker, attack: Attack) -> tuple[DataDir, ...]:
    """Return all data directories that the scores of an attack depend on."""
    return attacker.speech(attack) if hasattr(attacker, "speech") else (*attack.sides, *attack.training.versions)


def learns_from(attacker: Attacker, attack: Attack) -> tuple[DataDir, ...]:
    """Return the speech that an attacker learns from before it meets enrolment and trials, the training set first."""
    further = (directory for directory in speech_of(attacker, attack) if directory not in set(attack.sides))
    return (*attack.training.versions, *further)


def level_of(attacker: Attacker) -> str:
    """Return what an attacker may look at, see `evaluation.trials.LEVELS`."""
    return getattr(attacker, "level", TRIAL_BY_TRIAL)


@one_line
@dataclass(frozen=True, eq=False)
class Place:
    """Where the attackers of a run work.

    Attributes
    ----------
    output : Path
        Output folder of the run: trained attackers go into ``attackers/``, speech into ``data/``.
    work : Path
        Folder of shared intermediate results, such as features and vectors; it may be removed.
    seed : int
    jobs : int or None
    force : bool
        Recompute existing results.
    speech : Path or None
        Folder with ``data/`` if it is not `output`, so that two places share their pieces of speech.
    shared : dict
        Objects that the attackers of the place share in memory.
    """

    output: Path
    work: Path
    seed: int = 0
    jobs: int | None = None
    force: bool = False
    speech: Path | None = None
    shared: dict[Any, Any] = field(default_factory=dict, repr=False)


NOWHERE = Place(Path(), Path())
"""The place of a configured attacker before `spkver.attackers.put_to_work` sets it up in a run."""


@contextmanager
def naming(name: str, file: Path | None = None, remedy: str | None = None) -> Iterator[None]:
    """Add the attacker's name to errors of this block, and a file and a remedy if they have none."""
    try:
        yield
    except DataError as error:
        is_named = error.text.startswith(("attacker ", "the attacker "))
        text = error.text if is_named else f"attacker {name!r}: {error.text}"
        remedy = error.remedy or remedy
        raise type(error)(text, file=error.file or file, line=error.line, remedy=remedy) from error
