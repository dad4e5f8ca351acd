"""Attackers from results computed elsewhere: score files, or embeddings that are scored here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, cosine_scores, holds_embeddings, read_embeddings
from evaluation.formats import read_scores
from evaluation.trials import TRIAL_BY_TRIAL, WHOLE_LIST, Scores, Trials, align
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import file_digest, fingerprint
from spkver.attackers import lists
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, folder_name, naming
from spkver.attackers.vector_attacker import ADAPTED_COSINE, BackendChoice, lacks_models, learn_backend, limited
from spkver.backend import train_chain
from spkver.datadir import DataDir

SUFFIXES = (".h5", ".hdf5", ".npz", ".scp", ".ark", ".pt", ".safetensors", ".csv", ".tsv")
CACHES = "emb_xvect"


@dataclass(frozen=True)
class ReadyScores:
    """Scores computed elsewhere, laid out as in a run's ``exp``; see `spkver.attackers.Attacker`.

    FOLDER/asv_orig/<enrolment>-<trials>/scores            attacker trained on original speech
    FOLDER/asv_anon<suffix>/<enrolment>-<trials>/scores    attacker trained on anonymised speech

    If there is no such file, ``<enrolment>-<trials>/<attacker>/scores`` is read, from the folder with this attacker's
    name or from the only folder.
    """

    name: str
    folder: Path
    level: str = TRIAL_BY_TRIAL

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)
        if not any(next(self.folder.glob(pattern), None) for pattern in ("asv_*/*/scores", "asv_*/*/*/scores")):
            inner = self.folder / "exp"
            remedy = f"give scores:{inner}" if inner.is_dir() else "lay it out as a run's folder exp"
            text = f"attacker {self.name!r}: expected files asv_orig/<enrolment>-<trials>/scores, found none"
            raise ConfigError(text, file=self.folder, remedy=remedy)

    def file(self, name: str) -> Path:
        """Return the path of the scores for an attack, by its name; the file may be missing."""
        place = self.folder / name
        if not (place / "scores").is_file():
            found = self._of_attackers(name)
            if self.name in found or len(found) == 1:
                return place / (self.name if self.name in found else found[0]) / "scores"
        return place / "scores"

    def _of_attackers(self, name: str) -> list[str]:
        return sorted(path.parent.name for path in (self.folder / name).glob("*/scores"))

    def record(self, attack: Attack) -> Any:
        """Return the checksum of the file."""
        return {"scores": file_digest(self.file(attack.name))}

    def lacks(self, attack: Attack) -> str:
        """Return that the file is missing, or an empty string; an existing file is checked."""
        if not self.file(attack.name).is_file():
            several = ", ".join(self._of_attackers(attack.name))
            which = f", and of {several} none is called {self.name}" if several else ""
            return f"there is no {self.file(attack.name)}{which}"
        self._score(attack.name, attack.tested, attack.trials)
        return ""

    def fit(self, training: TrainingSet) -> Scorer:
        """Return a scorer that reads the file; nothing is trained."""
        return lambda enrolment, tested, trials: self._score(folder_name(training, enrolment, tested), tested, trials)

    def _score(self, name: str, tested: DataDir, trials: Trials) -> Scores:
        file = self.file(name)
        remedy = f"score the trials of {tested.path / 'trials'}, or remove the file: then they are left out"
        with naming(self.name, file, remedy):
            return lists.as_scores(trials, align(read_scores(file), trials))


class ReadyChoice(BackendChoice):
    """How a backend of ready vectors is chosen: without vectors of pieces."""

    cut: ClassVar[bool] = False


@dataclass(frozen=True)
class ReadyVectors:
    """Embeddings computed elsewhere, a file or a folder for each data directory; see `spkver.attackers.Attacker`.

        FOLDER/<data directory>{.h5,.hdf5,.npz,.scp,.ark,.pt,.safetensors,.csv,.tsv,/}   of any extractor
        FOLDER/asv_anon<suffix>/<data directory>{the same}           of an extractor trained on anonymised speech
        FOLDER/asv_{orig,anon<suffix>}/emb_xvect/<data directory>/   in ``exp`` of VoicePrivacy's toolkits

    Folders may hold all that `read_embeddings` takes: Kaldi's archives, the cache of VoicePrivacy and others. A
    semi-informed attacker uses the second if available, else the first (weaker knowledge).

    They are compared by cosine or, if `adapted`, by `spkver.backend.adapted_cosine_scores`. In a run with embeddings of
    all versions of the training set, a backend is chosen and trained on them, see
    `spkver.attackers.vector_attacker.learn_backend`.
    """

    name: str
    folder: Path
    adapted: bool = False
    place: Place = field(default=NOWHERE, repr=False)
    _read: dict[Path, Embeddings] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""
        return WHOLE_LIST if self.adapted else TRIAL_BY_TRIAL

    @property
    def choice(self) -> ReadyChoice:
        """How its backend is chosen."""
        return ReadyChoice(self.name, adapted=ADAPTED_COSINE if self.adapted else "")

    def file(self, training: TrainingSet, directory: DataDir) -> Path | None:
        """Return the file or folder with the embeddings of a data directory, or None."""
        name, of_attacker = directory.path.name, self.folder / training.name
        folders = (of_attacker, of_attacker / CACHES, self.folder, self.folder / CACHES)
        for folder in (*folders, self.folder / "asv_orig" / CACHES):
            for suffix in SUFFIXES:
                if (path := folder / f"{name}{suffix}").is_file():
                    return path
            if holds_embeddings(folder / name):
                return folder / name
        return None

    def record(self, attack: Attack) -> Any:
        """Return a checksum of the embeddings of both sides, and of the training set if it is used."""
        both = [self._embeddings(attack.training, side) for side in (attack.enrolment[0], attack.tested)]
        digests = [fingerprint(embeddings.ids, np.asarray(embeddings.vectors)) for embeddings in both]
        found: dict[str, Any] = {"vectors": digests}
        found |= {"adapted": ADAPTED_COSINE} if self.adapted else {}
        if (background := self.background(attack.training)) is not None:
            found |= {"background": background.digest, "choice": self.choice.record()}
        return found

    def lacks(self, attack: Attack) -> str:
        """Return which data directory has no embeddings, or an empty string; existing embeddings are checked."""
        sides = (attack.enrolment[0], attack.tested)
        absent = [side.path.name for side in sides if self.file(attack.training, side) is None]
        if absent:
            files = " and no ".join(f"{self.folder / name}.h5" for name in absent)
            return f"there is no {files} (or .npz, .scp, .ark, .pt, a folder ...)"
        self._sides(attack.training, *sides, attack.trials)
        self.background(attack.training)
        return lacks_models(attack) if self.adapted else ""

    def fit(self, training: TrainingSet) -> Scorer:
        """Train a backend on the embeddings of the training set, if there are any."""
        background, backend = self.background(training), None
        if background is not None:
            with naming(self.name, self.folder):
                choice, depends = self.choice, {"background": background.digest}
                versions = limited(training.versions, choice.utterances, seed=self.place.seed)
                backend = learn_backend(choice, background, depends, versions, self.place)[0]

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            first, second = self._sides(training, enrolment[0], tested, trials)
            with naming(self.name, self.folder):
                if backend is None and not self.adapted:
                    return cosine_scores(first, second, trials)
                found = backend or train_chain(first, ADAPTED_COSINE)  # `ADAPTED_COSINE` learns nothing
                return found.score(first, second, trials)

        return score

    def background(self, training: TrainingSet) -> ReadySource | None:
        """Return the embeddings of the training set; None if a version has no file, or outside a run.

        Raises
        ------
        DataError
            If there are files, but a recording has no embedding.
        """
        if self.place is NOWHERE or any(self.file(training, version) is None for version in training.versions):
            return None
        known: dict[Path, NDArray[np.floating]] = {}
        for version in training.versions:
            found = self._chosen(training, version, version.speakers, "then cosines are taken")
            known |= zip((Path(version.recordings[name]) for name in found.ids), found.vectors, strict=True)
        return ReadySource(known)

    def _sides(
        self, training: TrainingSet, enrolment: DataDir, tested: DataDir, trials: Trials
    ) -> tuple[Embeddings, ...]:
        """Return the embeddings of enrolment, by model, and tests; all missing ones are reported."""
        models, segments = lists.match_trials(enrolment, tested, trials)
        problems, sides = Problems(), []
        for side, owners in ((enrolment, lists.owners_of(models)), (tested, dict.fromkeys(segments, "?"))):
            with problems.noted():
                sides.append(self._chosen(training, side, owners, "then its trials are left out"))
        problems.raise_if_any()
        return tuple(sides)

    def _chosen(
        self, training: TrainingSet, directory: DataDir, owners: Mapping[str, str], otherwise: str
    ) -> Embeddings:
        """Return the embeddings of some utterances of a directory, sorted, with their owners."""
        embeddings = self._embeddings(training, directory)
        row, ids = {name: number for number, name in enumerate(embeddings.ids.tolist())}, sorted(owners)
        if missing := [name for name in ids if name not in row]:
            text = f"attacker {self.name!r}: {len(missing)} of {len(ids)} utterances of {directory.path.name}"
            remedy = f"extract them, or remove the file: {otherwise}"
            text = f"{text} without an embedding: {few(list(map(repr, missing)))}"
            raise DataError(text, file=self.file(training, directory), remedy=remedy)
        vectors = np.asarray(embeddings.vectors)[[row[name] for name in ids]]
        return Embeddings(np.array(ids, object), np.array([owners[name] for name in ids], object), vectors)

    def _embeddings(self, training: TrainingSet, directory: DataDir) -> Embeddings:
        file = self.file(training, directory)
        assert file is not None  # `lacks` is asked first
        if file not in self._read:
            with naming(self.name, file):
                self._read[file] = read_embeddings(file)
        return self._read[file]


@dataclass(frozen=True)
class ReadySource:
    """Embeddings by recording, see `spkver.attackers.vector_attacker.VectorSource`."""

    known: Mapping[Path, NDArray[np.floating]]

    @property
    def digest(self) -> str:
        """Digest of all embeddings."""
        return fingerprint([np.asarray(self.known[path]) for path in sorted(self.known)])

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the embeddings of a data directory that consists of training recordings."""
        known, paths = self.known, directory.recordings
        return lists.rows_as_embeddings(directory, utterances, lambda ids: [known[Path(paths[one])] for one in ids])


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigError(f"attacker {name!r}: no such folder", file=folder, remedy="give the folder that holds them")
