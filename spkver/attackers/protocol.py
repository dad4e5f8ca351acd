"""What an evaluation asks of an attacker, built in or user-supplied.

An attacker learns from training recordings, then scores lists of trials from recordings that enrol and recordings that
are tested. `spkver.attackers.registry` lists the attackers, and the ways to plug in others.

Below are also operations on speech: several training sets as one, some recordings of a large one, recordings of trials.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.reports import TRIAL_BY_TRIAL
from evaluation.trials import Scores, Trials
from spkbase.errors import ConfigError, DataError, Problems, WorkerError, few
from spkbase.showing import one_line
from spkver.datadir import DataDir, enrolment, with_versions
from spkver.features import recording_generator
from spkver.idmap import IdMap

ENDING = (MemoryError, WorkerError, ConfigError)
"""Errors that no attacker is to blame for: they end a run."""


@one_line
@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What an attacker learns from: speech of people who are neither enrolled nor tested, and perhaps of the enrolled.

    Attributes
    ----------
    original : DataDir
        The background as it was recorded.
    anonymised : tuple of DataDir
        Versions of it, each with other random numbers.
    on_anonymised : bool
        Whether recognisers learn from the anonymised versions, as semi-informed attackers do. Only an attacker that
        inverts the anonymisation looks at the other side too.
    own : tuple of DataDir
        The original enrolment, then anonymised versions of it: who enrols and has the anonymiser has both.
    name : str
        ``asv_orig`` or ``asv_anon<suffix>``, as VoicePrivacy names what was learnt from.
    whole : TrainingSet or None
        Of which this is a part, without the speakers of a fold. What is learnt of the anonymiser, and of no voice, may
        be learnt from all of it.
    """

    original: DataDir
    anonymised: tuple[DataDir, ...] = ()
    on_anonymised: bool = False
    own: tuple[DataDir, ...] = ()
    name: str = ""
    whole: TrainingSet | None = None

    @property
    def versions(self) -> tuple[DataDir, ...]:
        """What recognisers learn from; several are anonymised versions of the same speech, see `merge_versions`."""
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
        the same speech: who has the recordings and the anonymiser makes them.
    tested : DataDir
        A segment of the trials is an utterance. Its speaker is not disclosed: each utterance is a speaker by itself.
    trials : Trials
    scenario : str
        What the attacker knows, see `evaluation.reports.SCENARIOS`.
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
        """Have its trials scored by what an attacker gives that has learnt from its training set."""
        return scorer(self.enrolment, self.tested, self.trials)

    @property
    def sides(self) -> tuple[DataDir, ...]:
        """What enrols, in all versions, and what is tested."""
        return (*self.enrolment, self.tested)


def folder_name(training: TrainingSet, enrolment: Sequence[DataDir], tested: DataDir) -> str:
    """Return the name of a list of trials, and of its folder: by what was learnt from, and by the data directories."""
    return f"{training.name}/{enrolment[0].path.name}-{tested.path.name}"


@lru_cache(maxsize=64)
def enrolled_speech(enrolment: tuple[DataDir, ...]) -> DataDir:
    """Return what enrols with all its anonymised versions as one, the same object each time; see `with_versions`."""
    return with_versions(enrolment[0], enrolment[1:])


Scorer = Callable[[tuple[DataDir, ...], DataDir, Trials], Scores]
"""``score(enrolment, tested, trials)``: scores trials, in their order; see `Attack` for what the arguments hold."""


class Attacker(Protocol):
    """What scores, for each trial, how alike enrolment and test are: ``fit(training)(enrolment, tested, trials)``.

    A function of a user has the same form, with lists of files in place of data directories
    (`spkver.attackers.own`). An attacker may have three attributes more: `level`, what it may look at
    (`evaluation.reports.LEVELS`, trial-by-trial without it); `scenarios`, those that it is made for (all without it);
    and `speech`, a function of an attack that returns all data directories that its scores depend on (both sides and
    the training set without it).
    """

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

    def fit(self, training: TrainingSet) -> Scorer:
        """Learn from the training set, and return what scores trials."""


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
    """Return what an attacker may look at, see `evaluation.reports.LEVELS`."""
    return getattr(attacker, "level", TRIAL_BY_TRIAL)


@one_line
@dataclass(frozen=True, eq=False)
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
    shared : dict
        What the attackers of the place share in memory.
    """

    output: Path
    work: Path
    seed: int = 0
    jobs: int | None = None
    force: bool = False
    speech: Path | None = None
    shared: dict[Any, Any] = field(default_factory=dict, repr=False)


NOWHERE = Place(Path(), Path())
"""Where an attacker is that is configured, before a run puts it to work by its method ``at``."""


@contextmanager
def naming(name: str, file: Path | None = None) -> Iterator[None]:
    """Have errors of this block name the attacker, and a file where they have none."""
    try:
        yield
    except DataError as error:
        is_named = error.text.startswith(("attacker ", "the attacker "))
        text = error.text if is_named else f"attacker {name!r}: {error.text}"
        raise type(error)(text, file=error.file or file, line=error.line, remedy=error.remedy) from error


def as_scores(trials: Trials, values: NDArray[np.floating]) -> Scores:
    """Return values, one a trial in their order, as the scores of trials."""
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)


def rows_as_embeddings(
    directory: DataDir,
    utterances: Mapping[str, str] | None,
    rows_of: Callable[[list[str]], Sequence[NDArray[np.floating]]],
) -> Embeddings:
    """Return the embeddings of a data directory, sorted by utterance.

    Parameters
    ----------
    directory : DataDir
    utterances : mapping of str to str, optional
        The utterances that are wanted, each with its speaker; all of the directory by default.
    rows_of : callable
        The vector of each of some utterances.
    """
    owners = directory.speakers if utterances is None else utterances
    names = sorted(owners)
    speakers = np.array([owners[name] for name in names], object)
    return Embeddings(np.array(names, object), speakers, np.stack(rows_of(names)), source=str(directory.path))


def select(directory: DataDir, utterances: Collection[str]) -> DataDir:
    """Return some utterances of a data directory, in its order, without its trials."""
    recordings = {name: path for name, path in directory.recordings.items() if name in utterances}
    speakers = {name: speaker for name, speaker in directory.speakers.items() if name in utterances}
    enrolls = None if directory.enrolls is None else tuple(name for name in directory.enrolls if name in utterances)
    return replace(directory, recordings=recordings, speakers=speakers, enrolls=enrolls, trials=None)


def merge_versions(datadirs: DataDir | Sequence[DataDir]) -> DataDir:
    """Return several training sets as one, such as versions of the same speech that differ in what an anonymiser drew.

    Speakers of the same id are the same; utterances of the same id are different versions and get different
    ids. One set stays as it is.
    """
    if isinstance(datadirs, DataDir):
        return datadirs
    if len(datadirs) == 1:
        return datadirs[0]
    recordings, speakers = {}, {}
    for number, version in enumerate(datadirs, 1):
        for utterance, path in version.recordings.items():
            # the number first: versions stand apart when ids are sorted, so that no session mixes them
            recordings[f"{number} {utterance}"] = path
            speakers[f"{number} {utterance}"] = version.speakers[utterance]
    path = datadirs[0].path
    return DataDir(path.with_name(f"{path.resolve().name}-and-{len(datadirs) - 1}"), recordings, speakers)


def recordings_of(directories: Sequence[DataDir]) -> dict[str, Path]:
    """Return the recordings of several data directories, sorted by utterance, as sources of a stage."""
    return {
        f"{number} {name}": Path(path)
        for number, directory in enumerate(directories)
        for name, path in sorted(directory.recordings.items())
    }


def choose_utterances(speakers: Mapping[str, str], *, limit: int | None, seed: int) -> list[str]:
    """Choose at most `limit` utterances, evenly over the speakers.

    Parameters
    ----------
    speakers : mapping
        Utterance to speaker.
    limit : int or None
        None takes all.
    seed : int
        Which utterances of a speaker come first; each speaker has a separate generator.

    Returns
    -------
    list of str
        Sorted; independent of the order of the mapping.
    """
    if limit is None or limit >= len(speakers):
        return sorted(speakers)
    utterances_of: dict[str, list[str]] = {}
    for utterance in sorted(speakers):
        utterances_of.setdefault(speakers[utterance], []).append(utterance)
    queue = []
    for speaker, utterances in utterances_of.items():
        generator = recording_generator(speaker, seed)
        order = generator.permutation(len(utterances))
        # the draw also decides which speakers come last, where not all can have as many
        queue += [(turn, generator.random(), utterances[number]) for turn, number in enumerate(order)]
    return sorted(utterance for _, _, utterance in sorted(queue)[:limit])


def match_trials(enrol_dir: DataDir, trial_dir: DataDir, trials: Trials) -> tuple[IdMap, dict[str, Path]]:
    """Find what models of trials are enrolled with, and the recordings of their segments.

    A model is a speaker of the enrolment, or one of its utterances; a segment is a tested utterance.

    Raises
    ------
    DataError
        With all models and segments that are not there, or if the list holds no trial.
    """
    problems = Problems()
    if not len(trials):
        problems.add("the list holds no trials", file=trial_dir.path, remedy="name one with --trials")
    speakers = sessions_of(enrolment(enrol_dir))
    rows: list[tuple[str, str]] = []
    models, segments = sorted(set(trials.model_ids[trials.models])), sorted(set(trials.segment_ids[trials.segments]))
    for model in models:
        if model in speakers:
            rows += [(model, segment) for segment in sorted(speakers[model])]
        elif model in enrol_dir.recordings:
            rows += [(model, model), *((model, name) for name, of in enrol_dir.version_of.items() if of == model)]
    matched = {model for model, _ in rows}
    for what, names, known, directory in (
        ("models of the trials are neither enrolled speakers nor utterances", models, matched, enrol_dir),
        ("segments of the trials are not there", segments, trial_dir.recordings, trial_dir),
    ):
        if unknown := [name for name in names if name not in known]:
            text = f"{len(unknown)} of {len(names)} {what}: {few(unknown, repr)}"
            problems.add(text, file=directory.path, remedy="check that the trials belong to this data directory")
    problems.raise_if_any()
    return IdMap.from_pairs(rows), {name: Path(trial_dir.recordings[name]) for name in segments}


def sessions_of(models: IdMap) -> dict[str, list[str]]:
    """Return the utterances that each model is enrolled with."""
    utterances: dict[str, list[str]] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        utterances.setdefault(model, []).append(utterance)
    return utterances


def owners_of(models: IdMap) -> dict[str, str]:
    """Return the model of each enrolled utterance; an utterance that is itself a model may enrol its speaker too."""
    owners: dict[str, str] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        if model != utterance or utterance not in owners:
            owners[utterance] = model
    return owners
