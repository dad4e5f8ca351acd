"""The interface of attackers, built in or user-supplied, and of the sources of their vectors.

Sources, scorers and attackers know nothing of runs, their folders or files: they get data directories and arrays, and
return arrays. `spkver.attackers.stages` makes the files, in this order: speech is read, models are learnt, vectors are
computed, trials are scored. `spkver.attackers.registry` lists the attackers, and the ways to plug in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.showing import one_line
from spkver.anonymization import AnonymizerConfig
from spkver.attackers.pieces import whole_name
from spkver.attackers.sources import Source
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
        Anonymised versions of it, each with different random numbers.
    on_anonymised : bool
        Whether recognisers learn from the anonymised versions, as semi-informed attackers do.
    name : str
        ``asv_orig`` or ``asv_anon<suffix>``, as VoicePrivacy names training sets.
    is_fold : bool
        Whether it is a training set without the speakers of one fold, on whose trials the weights of fusions are
        learnt.
    anonymizer : AnonymizerConfig or None
        The anonymiser with which further versions can be made.
    """

    original: DataDir
    anonymised: tuple[DataDir, ...] = ()
    on_anonymised: bool = False
    name: str = ""
    is_fold: bool = False
    anonymizer: AnonymizerConfig | None = None

    @property
    def versions(self) -> tuple[DataDir, ...]:
        """The speech that recognisers learn from.

        Several directories are anonymised versions of the same speech, see `merge_versions`.
        """
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
        the same speech: an attacker who has the anonymiser can make them.
    tested : DataDir
        A segment of the trials is an utterance, or a conversation under the path of one of its recordings. Its speaker
        is not disclosed: each segment counts as a separate speaker.
    trials : Trials
    scenario : str
        The attacker's scenario, see `evaluation.trials.SCENARIOS`.
    variants : tuple of DataDir
        The speech that is used instead of `tested`: the same recordings, inverted with different numbers, or all
        anonymised versions from which conversations take their recordings.
    conversations : mapping of str to sequence of (int, str)
        If segments of the trials are conversations: the recordings of each, with the index of their version in
        `variants`.
    """

    training: TrainingSet
    enrolment: tuple[DataDir, ...]
    tested: DataDir
    trials: Trials
    scenario: str = ""
    variants: tuple[DataDir, ...] = ()
    conversations: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Name of its folder as in VoicePrivacy: ``asv_orig/<enrolment>-<trials>``."""
        return f"{self.training.name}/{self.enrolment[0].path.name}-{self.tested.path.name}"

    @property
    def tests(self) -> tuple[DataDir, ...]:
        """The tested recordings that the attacker uses: the variants if there are any."""
        return self.variants or (self.tested,)

    @property
    def directories(self) -> tuple[DataDir, ...]:
        """All speech that it needs: the training set, the enrolment and the tested recordings."""
        return (*self.training.versions, *self.enrolment, *self.tests)


class Vectors(Protocol):
    """Function that computes the vectors of a source after its models are learnt."""

    def __call__(self, directory: DataDir) -> Embeddings:
        """Return the vector of each recording of a data directory, sorted by utterance."""


class Learnt(NamedTuple):
    """What an attacker has learnt from a training set.

    Attributes
    ----------
    model : object
        The model, which is passed to `score`.
    choice : mapping or None
        How the model was chosen, for ``choice.json``.
    """

    model: Any
    choice: Mapping[str, Any] | None = None


class Attacker(Protocol):
    """An attacker: it scores how similar the enrolment and the test of each trial are.

    A user's function has the form ``fit(training)`` -> ``score(enrolment, tested, trials)``, with lists of files
    instead of data directories (`spkver.attackers.supplied`).
    """

    @property
    def name(self) -> str:
        """Name of the folder of its models."""

    @property
    def source(self) -> Source | None:
        """The source of its vectors; None if it uses no vectors and reads its input itself."""

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""

    @property
    def content(self) -> str:
        """Source of the words that it uses: "oracle" (transcripts of the data) or "recognised"; "" if it uses none."""

    @property
    def hears_voices(self) -> bool:
        """Whether the attacker judges by the voice, rather than by words or properties of files."""

    @property
    def pools(self) -> bool:
        """Whether the attacker can score all recordings of a conversation at once.

        Otherwise the scores of recordings are averaged.
        """

    @property
    def learns_from_pieces(self) -> bool:
        """Whether the attacker learns how recordings of a speaker differ, so that single recordings must be cut up."""

    @property
    def least_speakers(self) -> int:
        """The fewest speakers that it can learn from."""

    @property
    def utterances(self) -> int | None:
        """The most recordings of a training set that it learns from, all versions counted; None: no limit."""

    def record(self, attack: Attack) -> Any:
        """Return all that its scores depend on besides speech, trials and seed, see `spkbase.files.fingerprint`."""

    def backend_record(self, training: TrainingSet) -> Any:
        """Return all that its backend depends on besides speech and seed.

        None if its model is not a backend in a file.
        """

    def obstacle(self, attack: Attack) -> str:
        """Return why it cannot score these trials, or an empty string; called before anything long starts.

        Raises
        ------
        DataError
            If its files for these trials cannot be used.
        """

    def speech(self, attack: Attack, seed: int) -> Sequence[DataDir]:
        """Return the data directories whose vectors it uses, the training set first."""

    def fit(self, training: TrainingSet, vectors: Any, *, seed: int, jobs: int | None) -> Learnt:
        """Learn from the training set; `vectors` computes those of its source; None if it has no source."""

    def prepare(self, attack: Attack, vectors: Any) -> None:
        """Ask for the vectors of an attack, so that they are computed before trials are scored."""

    def score(self, model: Any, attack: Attack, vectors: Any) -> Scores:
        """Score the trials of an attack with a model of its training set."""


class Defaults:
    """Defaults of most attackers: they judge by the voice, score recordings one by one, can score all trials, and keep
    no backend."""

    hears_voices: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    learns_from_pieces: ClassVar[bool] = False
    least_speakers: ClassVar[int] = 1

    @property
    def content(self) -> str:
        """An empty string: no words are used."""
        return ""

    def backend_record(self, training: TrainingSet) -> Any:
        """Return None: there is no backend to keep."""
        return None

    def obstacle(self, attack: Attack) -> str:
        """Return an empty string: it can score all trials."""
        return ""

    def prepare(self, attack: Attack, vectors: Any) -> None:
        """Do nothing: no vectors depend on a learnt model."""


class WithoutSource(Defaults):
    """Defaults of attackers that read their input themselves, when they learn and when they score."""

    source: ClassVar[None] = None

    def speech(self, attack: Attack, seed: int) -> Sequence[DataDir]:
        """Return no directories: there are no vectors to extract."""
        return ()


@contextmanager
def naming(name: str, file: Path | None = None, remedy: str | None = None) -> Iterator[None]:
    """Add the attacker's name to errors of this block, and a file and a remedy if they have none."""
    try:
        yield
    except DataError as error:
        placed = error.changed(error.text, file=error.file or file, remedy=error.remedy or remedy)
        raise placed.attributed("attacker", name) from error
