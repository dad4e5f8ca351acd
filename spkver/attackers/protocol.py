"""The interface of attackers, built in or user-supplied.

An attacker works in three steps, in this order: `extract` reads speech, `fit` learns from a training set, and `score`
compares enrolment and tested recordings. `spkver.attackers.registry` lists the attackers, and the ways to plug in
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evaluation.trials import Scores, Trials
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers.pieces import whole_name
from spkver.datadir import DataDir

ENDING = (MemoryError, WorkerError, ConfigError)
"""Errors that no attacker is to blame for: they end a run."""


class LostModelError(DataError):
    """The process that held an attacker's model has ended: to score further trials, the attacker must learn again."""


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
        Whether recognisers learn from the anonymised versions, as semi-informed attackers do.
    name : str
        ``asv_orig`` or ``asv_anon<suffix>``, as VoicePrivacy names training sets.
    """

    original: DataDir
    anonymised: tuple[DataDir, ...] = ()
    on_anonymised: bool = False
    name: str = ""

    @property
    def versions(self) -> tuple[DataDir, ...]:
        """The speech that recognisers learn from; several directories are anonymised versions, see `merge_versions`."""
        return self.anonymised if self.on_anonymised else (self.original,)

    @property
    def folder(self) -> str:
        """Folder of the attackers that learn from it, below the output folder."""
        return f"attackers/{whole_name(self.versions[0])}"


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
    variants : tuple of DataDir
        What an attacker listens to in place of `tested`: the same recordings, inverted with different numbers.
    """

    training: TrainingSet
    enrolment: tuple[DataDir, ...]
    tested: DataDir
    trials: Trials
    scenario: str = ""
    variants: tuple[DataDir, ...] = ()

    @property
    def name(self) -> str:
        """As VoicePrivacy names its folder: ``asv_orig/<enrolment>-<trials>``."""
        return f"{self.training.name}/{self.enrolment[0].path.name}-{self.tested.path.name}"

    @property
    def directories(self) -> tuple[DataDir, ...]:
        """All speech that it needs: the training set, the enrolment and the tested recordings."""
        return (*self.training.versions, *self.enrolment, *(self.variants or (self.tested,)))


@one_line
@dataclass(frozen=True, eq=False)
class Extracted:
    """What was extracted from the speech of a run: vectors of networks, and features for mixtures.

    Attributes
    ----------
    run : Run
        Its folder gets the models, below ``attackers/``.
    work : Run
        Its folder gets what was extracted; it may be removed.
    seed : int
        Seed of the dither of features.
    vectors : dict of str to dict of Path to ndarray
        Vectors by source and recording.
    features : dict of str to list of FeatureSet
        By source; see `spkver.attackers.sources`.
    lacking : dict of str to set of str
        Recordings that an extractor failed on, by the extractor.
    """

    run: Run
    work: Run
    seed: int = 0
    vectors: dict[str, dict[Path, np.ndarray]] = field(default_factory=dict, repr=False)
    features: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    lacking: dict[str, set[str]] = field(default_factory=dict)


class Attacker(Protocol):
    """Scores, for each trial, how alike enrolment and test are.

    A user's function has the form ``fit(training)`` -> ``score(enrolment, tested, trials)``, with lists of files in
    place of data directories (`spkver.attackers.supplied`).
    """

    @property
    def name(self) -> str:
        """Name of the folder of its models."""

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""

    @property
    def utterances(self) -> int | None:
        """The most recordings of a training set that it learns from, all versions counted; None: no limit."""

    def record(self, attack: Attack) -> Any:
        """Return all that its scores depend on besides speech, trials and seed, see `spkbase.files.fingerprint`."""

    def obstacle(self, attack: Attack) -> str:
        """Return why it cannot score these trials, or an empty string; called before anything long starts.

        Raises
        ------
        DataError
            If its files for these trials cannot be used.
        """

    def extract(self, extracted: Extracted, attack: Attack) -> None:
        """Read the speech of an attack that has not been read for another one."""

    def fit(self, extracted: Extracted, training: TrainingSet) -> Any:
        """Learn from the training set, and return the model."""

    def score(self, extracted: Extracted, model: Any, attack: Attack) -> Scores:
        """Score the trials of an attack with a model of its training set."""


@contextmanager
def naming(name: str, file: Path | None = None, remedy: str | None = None) -> Iterator[None]:
    """Add the attacker's name to errors of this block, and a file and a remedy if they have none."""
    try:
        yield
    except DataError as error:
        placed = error.changed(error.text, file=error.file or file, remedy=error.remedy or remedy)
        raise placed.attributed("attacker", name) from error
