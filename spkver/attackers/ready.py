"""Attackers from results computed elsewhere: score files, or embeddings that are scored here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Embeddings,
    conversation_vectors,
    cosine_scores,
    holds_embeddings,
    read_embeddings,
)
from evaluation.formats import read_scores
from evaluation.trials import ONE_MODEL, Scores, align
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import file_digest, fingerprint
from spkver.attackers import lists
from spkver.attackers.chain_choice import UTTERANCES, BackendChoice, choose_backend
from spkver.attackers.protocol import Attack, Learnt, TrainingSet, WithoutSource, naming
from spkver.attackers.vector_attacker import of_scenario, unfit_enrolment
from spkver.backend import Backend, train_chain
from spkver.datadir import DataDir

SUFFIXES = (".h5", ".hdf5", ".npz", ".scp", ".ark", ".pt", ".safetensors", ".csv", ".tsv")
CACHES = "emb_xvect"


@dataclass(frozen=True)
class ReadyScores(WithoutSource):
    """Scores computed elsewhere, laid out as in a run's ``exp``; see `spkver.attackers.Attacker`.

    FOLDER/asv_orig/<enrolment>-<trials>/scores            attacker trained on original speech
    FOLDER/asv_anon<suffix>/<enrolment>-<trials>/scores    attacker trained on anonymised speech

    If there is no such file, ``<enrolment>-<trials>/<attacker>/scores`` is read, from the folder with this attacker's
    name or from the only folder.
    """

    utterances: ClassVar[int | None] = 0

    name: str
    folder: Path
    level: str = ONE_MODEL

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)
        files = chain(self.folder.glob("asv_*/*/scores"), self.folder.glob("asv_*/*/*/scores"))
        if next(files, None) is None:
            inner = self.folder / "exp"
            remedy = "lay it out as a run's folder exp"
            if inner.is_dir():
                remedy = f"give scores:{inner}"
            error = ConfigError(
                "expected files asv_orig/<enrolment>-<trials>/scores, found none",
                file=self.folder,
                remedy=remedy,
            )
            raise error.attributed("attacker", self.name)

    def file(self, name: str) -> Path:
        """Return the path of the scores for an attack, by its name; the file may be missing."""
        file = self.folder / name / "scores"
        if file.is_file():
            return file
        attackers = self._attackers(name)
        if self.name in attackers:
            return file.parent / self.name / "scores"
        if len(attackers) == 1:
            return file.parent / attackers[0] / "scores"
        return file

    def _attackers(self, name: str) -> list[str]:
        return sorted(path.parent.name for path in (self.folder / name).glob("*/scores"))

    def record(self, attack: Attack) -> Any:
        """Return the checksum of the file."""
        return {"scores": file_digest(self.file(attack.name))}

    def obstacle(self, attack: Attack) -> str:
        """Return that the file is missing, or an empty string; an existing file is checked."""
        if not self.file(attack.name).is_file():
            text = f"there is no {self.file(attack.name)}"
            several = ", ".join(self._attackers(attack.name))
            if several:
                text += f", and of {several} none is called {self.name}"
            return text
        self._score(attack)
        return ""

    def fit(self, training: TrainingSet, vectors: None, *, seed: int, jobs: int | None) -> Learnt:
        """Learn nothing."""
        return Learnt(None)

    def score(self, model: None, attack: Attack, vectors: None) -> Scores:
        """Read the file."""
        return self._score(attack)

    def _score(self, attack: Attack) -> Scores:
        file = self.file(attack.name)
        remedy = f"score the trials of {attack.tested.path / 'trials'}, or remove the file: then they are left out"
        with naming(self.name, file, remedy):
            return lists.as_scores(attack.trials, align(read_scores(file), attack.trials))


@dataclass(frozen=True)
class ReadyVectors(WithoutSource):
    """Embeddings computed elsewhere, in a file or a folder for each data directory; see `spkver.attackers.Attacker`.

        FOLDER/<data directory>{.h5,.hdf5,.npz,.scp,.ark,.pt,.safetensors,.csv,.tsv,/}   of any extractor
        FOLDER/asv_anon<suffix>/<data directory>{the same}           of an extractor trained on anonymised speech
        FOLDER/asv_{orig,anon<suffix>}/emb_xvect/<data directory>/   in ``exp`` of VoicePrivacy's toolkits

    Folders may hold anything that `read_embeddings` reads: Kaldi's archives, the cache of VoicePrivacy and others. A
    semi-informed attacker uses the second form if available, otherwise the first (with less knowledge).

    They are compared by cosine, or by the scorer `adapted`, see `BackendChoice`. In a run with embeddings of
    all versions of the training set, a backend is chosen and trained on them, see
    `spkver.attackers.chain_choice.choose_backend`.
    """

    pools: ClassVar[bool] = True
    utterances: ClassVar[int | None] = UTTERANCES

    name: str
    folder: Path
    adapted: str = ""
    _read: dict[Path, Embeddings] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)

    @property
    def choice(self) -> BackendChoice:
        """How its backend is chosen."""
        return BackendChoice(self.name, adapted=self.adapted)

    @property
    def level(self) -> str:
        """Its level of knowledge, see `evaluation.trials.LEVELS`."""
        return self.choice.level

    def file(self, training: TrainingSet, directory: DataDir) -> Path | None:
        """Return the file or folder with the embeddings of a data directory, or None."""
        name = directory.path.name
        of_attacker = self.folder / training.name
        folders = (of_attacker, of_attacker / CACHES, self.folder, self.folder / CACHES)
        for folder in (*folders, self.folder / "asv_orig" / CACHES):
            for suffix in SUFFIXES:
                path = folder / f"{name}{suffix}"
                if path.is_file():
                    return path
            if holds_embeddings(folder / name):
                return folder / name
        return None

    def record(self, attack: Attack) -> Any:
        """Return a checksum of the embeddings of both sides, and of the training set if it is used."""
        digests = []
        for directory in (attack.enrolment[0], attack.tested):
            embeddings = self._embeddings(attack.training, directory)
            digests.append(fingerprint(embeddings.ids, np.asarray(embeddings.vectors)))
        background = self.background(attack.training)
        return {
            "vectors": digests,
            "background": background and _digest(background),
            "choice": self.choice.record(),
        }

    def obstacle(self, attack: Attack) -> str:
        """Return which data directory has no embeddings, or an empty string; existing embeddings are checked."""
        sides = (attack.enrolment[0], attack.tested)
        absent = [side.path.name for side in sides if self.file(attack.training, side) is None]
        if absent:
            files = " and no ".join(f"{self.folder / name}.h5" for name in absent)
            return f"there is no {files} (or .npz, .scp, .ark, .pt, a folder ...)"
        self._sides(attack)
        self.background(attack.training)
        return unfit_enrolment(self.adapted, attack, versions=1)

    def backend_record(self, training: TrainingSet) -> Any:
        """Return what its backend depends on; None without embeddings of the training set."""
        background = self.background(training)
        if background is None:
            return None
        return [_digest(background), self.choice.on(training.on_anonymised).record()]

    def fit(self, training: TrainingSet, vectors: None, *, seed: int, jobs: int | None) -> Learnt:
        """Train a backend on the embeddings of the training set, if there are any."""
        background = self.background(training)
        if background is None:
            return Learnt(None)
        with naming(self.name, self.folder):
            versions = lists.limited(training.versions, self.utterances, seed=seed)
            speech = lists.merge_versions(versions)
            rows = [background[speech.recordings[name]] for name in sorted(speech.recordings)]
            embeddings = lists.as_embeddings(speech, rows)
            choice = self.choice.on(training.on_anonymised)
            return Learnt(*choose_backend(choice, embeddings, versions, seed=seed, jobs=jobs))

    def score(self, model: Backend | None, attack: Attack, vectors: None) -> Scores:
        """Score trials by the backend; without one, by cosines or adapted scores, which need no training."""
        first, second = self._sides(attack)
        with naming(self.name, self.folder):
            if model is None and not self.adapted:
                return cosine_scores(first, second, attack.trials)
            backend = model or train_chain(first, self.adapted, warn=False)
            chosen = of_scenario(backend, attack.scenario)
            return chosen.score(first, second, attack.trials, warn=False)

    def background(self, training: TrainingSet) -> dict[Path, NDArray[np.floating]] | None:
        """Return the embeddings of the training set by recording; None if a version has no file.

        Raises
        ------
        DataError
            If there are files, but a recording has no embedding.
        """
        if any(self.file(training, version) is None for version in training.versions):
            return None
        known: dict[Path, NDArray[np.floating]] = {}
        for version in training.versions:
            embeddings = self._chosen(training, version, version.speakers, "then cosines are taken")
            for name, vector in zip(embeddings.ids, embeddings.vectors, strict=True):
                known[Path(version.recordings[name])] = vector
        return known

    def _sides(self, attack: Attack) -> tuple[Embeddings, ...]:
        """Return the embeddings of enrolment, by model, and tests; report all that are missing."""
        enrolment = attack.enrolment[0]
        models, segments = lists.match_trials(enrolment, attack.tested, attack.trials)
        owners = dict(zip(models.segments, models.models, strict=True))
        asked = [(enrolment, owners)]
        if attack.conversations:
            spoken: list[dict[str, str]] = [{} for _ in attack.tests]
            for recordings in attack.conversations.values():
                for place, recording in recordings:
                    spoken[place][recording] = "?"
            asked += zip(attack.tests, spoken, strict=True)
        else:
            asked.append((attack.tested, dict.fromkeys(segments, "?")))
        problems = Problems()
        sides = []
        for directory, speakers in asked:
            with problems.noted():
                sides.append(
                    self._chosen(
                        attack.training, directory, speakers, "then its trials are left out"
                    )
                )
        problems.raise_if_any()
        enrolled, *tests = sides
        if attack.conversations:
            return enrolled, conversation_vectors(tests, attack.conversations)
        return enrolled, tests[0]

    def _chosen(
        self, training: TrainingSet, directory: DataDir, owners: Mapping[str, str], otherwise: str
    ) -> Embeddings:
        """Return the embeddings of some utterances of a directory, sorted, with their owners."""
        embeddings = self._embeddings(training, directory)
        row_of = {name: row for row, name in enumerate(embeddings.ids.tolist())}
        ids = sorted(owners)
        missing = [name for name in ids if name not in row_of]
        if missing:
            text = f"{len(missing)} of {len(ids)} utterances of {directory.path.name}"
            remedy = f"extract them, or remove the file: {otherwise}"
            text = f"{text} without an embedding: {few(list(map(repr, missing)))}"
            error = DataError(text, file=self.file(training, directory), remedy=remedy)
            raise error.attributed("attacker", self.name)
        vectors = np.asarray(embeddings.vectors)[[row_of[name] for name in ids]]
        return Embeddings(
            np.array(ids, object), np.array([owners[name] for name in ids], object), vectors
        )

    def _embeddings(self, training: TrainingSet, directory: DataDir) -> Embeddings:
        file = self.file(training, directory)
        assert file is not None  # `obstacle` has checked this
        if file not in self._read:
            with naming(self.name, file):
                self._read[file] = read_embeddings(file)
        return self._read[file]


def _digest(known: Mapping[Path, NDArray[np.floating]]) -> str:
    return fingerprint([np.asarray(known[path]) for path in sorted(known)])


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        error = ConfigError("no such folder", file=folder, remedy="give the folder that holds them")
        raise error.attributed("attacker", name)
