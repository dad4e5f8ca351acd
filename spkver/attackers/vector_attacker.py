"""Attackers by vectors: an extractor, and a backend that is chosen and trained on the background alone.

OUTPUT/attackers/<training set>/<name>/choice.json    the chains that were tried, with their scores in each fold
OUTPUT/attackers/<training set>/<name>/backend.h5     the one that was chosen, trained on all speakers
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from evaluation.embeddings import Embeddings
from evaluation.reports import TRIAL_BY_TRIAL, WHOLE_LIST
from evaluation.trials import Scores
from spkbase.errors import DataError
from spkbase.files import fingerprint, make_folder, write_text
from spkbase.runs import Depends, Draft, Run
from spkbase.showing import one_line
from spkver.attackers.attack import match_trials
from spkver.attackers.chain_choice import (
    ADAPTED_COSINE,
    PRIOR,
    SHRINK,
    FoldVectors,
    adapted_chains,
    choose_chain,
    standard_chains,
)
from spkver.attackers.folds import ENROLLED, FOLDS, TESTED, Fold, background_folds
from spkver.attackers.kept import Kept
from spkver.attackers.pieces import PIECES, SHORTEST, with_pieces
from spkver.attackers.protocol import Attack, Place, Scorer
from spkver.attackers.sessions import choose_utterances
from spkver.attackers.training import merge_versions
from spkver.backend import Backend, format_chain, read_backend, train_chain, write_backend
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

UTTERANCES = 8000
"""Recordings of a training set that are used at most: a large one would cost hours."""


class Source(Protocol):
    """Where the vectors of data directories come from, such as `spkver.attackers.VectorStore`."""

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""


@one_line
@dataclass(frozen=True)
class Choice:
    """How a backend is chosen.

    Attributes
    ----------
    chains : tuple of str
        From the simplest on, see docs/backends.md; empty: `standard_chains`.
    folds : int
        Parts that background speakers are dealt into, see `background_folds`.
    enrolled : int
        Recordings of a model in their trials.
    cut : bool
        Cut recordings into pieces where speakers have one alone, see `spkver.attackers.with_pieces`.
    utterances : int or None
        At most so many recordings are used, all versions counted; see `limited`.
    adapted : str
        The scorer, `ADAPTED_COSINE` or `SINGLE_TEST_COSINE`, where scores are adapted to the trials at hand:
        `adapted_chains` in place of `standard_chains`. Otherwise empty.
    """

    chains: tuple[str, ...] = ()
    folds: int = FOLDS
    enrolled: int = ENROLLED
    cut: bool = True
    utterances: int | None = UTTERANCES
    adapted: str = ""

    @property
    def level(self) -> str:
        """What an attacker with such a backend looks at, see `evaluation.reports.LEVELS`."""
        scorers = (self.adapted, *self.chains)
        return WHOLE_LIST if any(ADAPTED_COSINE in scorer for scorer in scorers) else TRIAL_BY_TRIAL

    def record(self) -> Any:
        """Return all that the choice depends on besides the vectors."""
        pieces = [PIECES, SHORTEST] if self.cut else []
        found = [list(self.chains), self.folds, self.enrolled, TESTED, SHRINK, PRIOR, pieces, self.utterances]
        return [*found, self.adapted] if self.adapted else found


def limited(training: tuple[DataDir, ...], limit: int | None, *, seed: int) -> tuple[DataDir, ...]:
    """Return versions of a training set with at most `limit` recordings in all, spread evenly over the speakers.

    Each version keeps the same utterances, at least two of a speaker who has them; a set that is small enough stays.
    """
    if limit is None or sum(map(len, training)) <= limit:
        return training
    speakers = training[0].speakers
    most = max(limit // len(training), 2 * len(set(speakers.values())))
    chosen = set(choose_utterances(speakers, limit=most, seed=seed))
    return tuple(_only(version, chosen) for version in training)


@one_line
@dataclass(frozen=True, eq=False)
class TrainedBackend:
    """A backend and how it was chosen."""

    backend: Backend
    choice: dict[str, Any]


def learn_backend(
    name: str, source: Source, record: Any, choice: Choice, training: tuple[DataDir, ...], place: Place
) -> TrainedBackend:
    """Choose and train a backend on a training set, or take the one that an earlier run has.

    Parameters
    ----------
    name : str
        Of the attacker; its folder is below that of the training set.
    source : Source
    record : object
        What the vectors depend on besides the recordings, see `spkbase.files.fingerprint`.
    choice : Choice
    training : tuple of DataDir
        Versions of the same speech.
    place : Place

    Raises
    ------
    DataError
        If recordings have no vector, or no chain can be trained.
    """
    folder = make_folder(place.output / "attackers" / training[0].name / name)
    run = Run(folder, jobs=place.jobs, force=place.force, quiet=True)

    def make(draft: Draft) -> None:
        found, backend = _choose(source, choice, training, place, draft)
        write_backend(folder / "backend.h5", backend)
        write_text(draft.path, json.dumps({"attacker": name, "training": training[0].name, **found}, indent=1) + "\n")

    def read(path: Any) -> TrainedBackend:
        return TrainedBackend(read_backend(folder / "backend.h5"), json.loads(path.read_text(encoding="utf-8")))

    speakers = [sorted(version.speakers.items()) for version in training]
    recordings = {
        f"{number} {utterance}": path
        for number, version in enumerate(training)
        for utterance, path in version.recordings.items()
    }
    depends = Depends(
        inputs=[record, choice.record(), speakers, sorted(training[0].genders.items()), place.seed],
        sources=recordings,
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    )
    stage = run.stage(f"backend of {name}", "choice.json", make=make, read=read, depends=depends, also=("backend.h5",))
    return stage.value


def _choose(
    source: Source, choice: Choice, training: tuple[DataDir, ...], place: Place, draft: Draft
) -> tuple[dict[str, Any], Backend]:
    whole = source.vectors(merge_versions(with_pieces(training, place) if choice.cut else training))
    whole.norms()
    rounds = [] if len(choice.chains) == 1 else _rounds(training, place, choice)  # nothing is to be chosen
    folds = [_vectors_of(source, fold, whole) for fold in rounds]
    least = min([len(set(fold.training.speakers)) for fold in folds] or [len(set(whole.speakers))])
    most = max(np.unique(whole.speakers.astype(str), return_counts=True)[1])
    known_chains = partial(adapted_chains, choice.adapted) if choice.adapted else standard_chains
    chains = list(choice.chains) or known_chains(whole.vectors.shape[1], least, int(most))
    digest = fingerprint(draft.fingerprint, np.asarray(whole.vectors))
    found = choose_chain(
        chains, folds, seed=place.seed, jobs=place.jobs, journal=draft.folder / "chains.journal", fingerprint=digest
    )
    told = [
        {"number": fold.number, "speakers": list(fold.speakers), "targets": int(fold.key.is_target.sum()),
         "trials": len(fold.key)} for fold in rounds
    ]  # fmt: skip
    facts = {"vectors": len(whole), "speakers": len(set(whole.speakers)), "versions": len(training), "folds": told}
    return {**facts, **found}, train_chain(whole, found["chosen"], seed=place.seed)


def _rounds(training: tuple[DataDir, ...], place: Place, choice: Choice) -> list[Fold]:
    """Folds; of few speakers, who make few, several times dealt anew."""
    options: dict[str, Any] = {"folds": choice.folds, "enrolled": choice.enrolled, "cut": choice.cut}
    folds = background_folds(training, place, **options)
    dealt = 1
    while folds and len(folds) < choice.folds:
        further = background_folds(training, replace(place, seed=place.seed + dealt), **options)
        folds += [replace(fold, number=len(folds) + number) for number, fold in enumerate(further, 1)]
        dealt += 1
    return folds


def _vectors_of(source: Source, fold: Fold, whole: Embeddings) -> FoldVectors:
    others = ~np.isin(whole.speakers.astype(str), fold.speakers)
    training = Embeddings(whole.ids[others], whole.speakers[others], np.asarray(whole.vectors)[others])
    attack = fold.attack
    return FoldVectors(training, source.vectors(attack.enrolment), source.vectors(attack.tested), fold.key)


@one_line
@dataclass(frozen=True, eq=False)
class VectorAttacker:
    """An attacker by vectors; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    open_source : callable
        Gives, for a training set, the source of vectors.
    depends : object
        What they depend on besides the recordings.
    choice : Choice
    place : Place
    """

    name: str
    open_source: Callable[[tuple[DataDir, ...]], Source] = field(repr=False)
    depends: Any = field(repr=False)
    choice: Choice
    place: Place = field(repr=False)

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.reports.LEVELS`."""
        return self.choice.level

    def record(self, attack: Attack) -> Any:
        """Return what its vectors depend on, and how its backend is chosen."""
        return {"vectors": self.depends, "choice": self.choice.record()}

    def lacks(self, attack: Attack) -> str:
        """Return why scores cannot be adapted to these trials; without that it serves all."""
        return lacks_models(attack) if self.choice.adapted else ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Return the scorer; its backend is chosen and trained on these versions of a training set."""
        learnt: list[tuple[Source, Backend]] = []

        def score(attack: Attack, kept: Kept) -> Scores:
            try:
                if not learnt:
                    learnt.append(self._learn(training))
                return _scored(*learnt[0], attack, keeps_versions=bool(self.choice.adapted))
            except DataError as error:
                text = error.text if error.text.startswith("attacker ") else f"attacker {self.name!r}: {error.text}"
                raise DataError(text, file=error.file, remedy=error.remedy) from error

        return score

    def _learn(self, training: tuple[DataDir, ...]) -> tuple[Source, Backend]:
        training = limited(training, self.choice.utterances, seed=self.place.seed)
        source = self.open_source(training)
        learnt = learn_backend(self.name, source, self.depends, self.choice, training, self.place)
        logger.info("%s on %s: %s", self.name, training[0].name, format_chain(learnt.backend.chain))
        if not learnt.choice["folds"] and len(self.choice.chains) != 1:
            logger.warning("%s on %s: %s", self.name, training[0].name, learnt.choice["why"])
        chosen = next(row for row in learnt.choice["chains"] if row["chain"] == learnt.choice["chosen"])
        if folds := chosen.get("no_slope"):
            text = "%s on %s: the calibration tried on fold %s has a negative slope"
            logger.warning(text, self.name, training[0].name, ", ".join(map(str, folds)))
        return source, learnt.backend


def lacks_models(attack: Attack) -> str:
    """Return why scores cannot be adapted to the trials of an attack, or nothing."""
    if len(np.unique(attack.trials.models)) > 1:
        return ""
    return "one speaker is enrolled in its trials: adapted scores are without the mean of the others"


def _only(version: DataDir, utterances: set[str]) -> DataDir:
    """Some utterances of a version."""
    speakers = {name: speaker for name, speaker in version.speakers.items() if name in utterances}
    recordings = {name: path for name, path in version.recordings.items() if name in utterances}
    return replace(version, recordings=recordings, speakers=speakers, enrolls=None, trials=None)


def _scored(source: Source, backend: Backend, attack: Attack, *, keeps_versions: bool) -> Scores:
    """Score trials; `keeps_versions` where the spread of a recording over its versions is learnt from."""
    models, tested = match_trials(attack.enrolled, attack.tested, attack.trials)
    # an utterance that is a model of its own may enrol its speaker too
    owners: dict[str, str] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        if model != utterance or utterance not in owners:
            owners[utterance] = model
    enrolled = source.vectors(attack.enrolled, owners)
    if attack.versions and not keeps_versions:
        enrolled = _mean_over_versions(enrolled, attack.enrolled.version_of)
    tests = source.vectors(attack.tested, {name: attack.tested.speakers[name] for name in tested})
    return backend.score(enrolled, tests, attack.trials)


def _mean_over_versions(enrolled: Embeddings, version_of: Mapping[str, str]) -> Embeddings:
    """One vector for each recording and model: a recording counts once, however often it was anonymised."""
    sessions: dict[tuple[str, str], list[int]] = {}
    for row, (name, model) in enumerate(zip(enrolled.ids.tolist(), enrolled.speakers.tolist(), strict=True)):
        sessions.setdefault((version_of.get(name, name), model), []).append(row)
    vectors = np.asarray(enrolled.vectors)
    names = np.array(list(sessions), object)
    return Embeddings(names[:, 0], names[:, 1], np.stack([vectors[rows].mean(axis=0) for rows in sessions.values()]))
