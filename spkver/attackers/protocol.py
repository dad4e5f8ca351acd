"""What an evaluation asks of an attacker, whether it is built in or somebody else's.

An attacker learns from training recordings, then scores lists of trials from recordings that enrol and recordings that
are tested. Built in are those of `spkver.attackers.classic`; the doors for others are in `spkver.attackers.doors`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from evaluation.trials import Scores, Trials
from spkbase.showing import one_line
from spkver.attackers.kept import Kept
from spkver.datadir import DataDir


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
        A segment of the trials is an utterance.
    trials : Trials
    """

    name: str
    training: tuple[DataDir, ...]
    enrolment: DataDir
    tested: DataDir
    trials: Trials


Scorer = Callable[[Attack, Kept], Scores]
"""Scores the trials of an attack, in their order; what is done may be kept through a crash."""


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

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Learn from training recordings; what comes back scores any trials."""
