"""Attackers whose work was done elsewhere: score files, or embeddings that are scored here by cosine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.embeddings import Embeddings, cosine_scores, holds_embeddings, read_embeddings
from evaluation.formats import read_scores
from evaluation.trials import Scores
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import file_digest, fingerprint
from spkver.attackers.attack import match_trials
from spkver.attackers.kept import Kept
from spkver.attackers.own import joined
from spkver.attackers.protocol import Attack, Scorer
from spkver.datadir import DataDir

SUFFIXES = (".h5", ".hdf5", ".npz", ".scp", ".ark", ".pt", ".safetensors", ".csv", ".tsv")
CACHES = "emb_xvect"
_NAMED = 3


@dataclass(frozen=True)
class ReadyScores:
    """Scores made elsewhere, laid out as below a run's ``exp``; see `spkver.attackers.Attacker`.

    FOLDER/asv_orig/<enrolment>-<trials>/scores            by an attacker that learnt from original speech
    FOLDER/asv_anon<suffix>/<enrolment>-<trials>/scores    from anonymised speech
    """

    name: str
    folder: Path

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)
        if not any(self.folder.glob("asv_*/*/scores")):
            inner = self.folder / "exp"
            remedy = f"give scores:{inner}" if inner.is_dir() else "lay it out as a run's folder exp"
            text = f"attacker {self.name!r}: expected files asv_orig/<enrolment>-<trials>/scores, found none"
            raise ConfigError(text, file=self.folder, remedy=remedy)

    def file(self, attack: Attack) -> Path:
        """Return the file of scores for some trials."""
        return self.folder / attack.name / "scores"

    def record(self, attack: Attack) -> Any:
        """Return the checksum of the file."""
        return {"scores": file_digest(self.file(attack))}

    def lacks(self, attack: Attack) -> str:
        """Return that there is no file, or nothing; a file that is there is checked."""
        if not self.file(attack).is_file():
            return f"there is no {self.file(attack)}"
        self._score(attack)
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Return the scorer; nothing is left to be learnt."""
        return lambda attack, kept: self._score(attack)

    def _score(self, attack: Attack) -> Scores:
        file = self.file(attack)
        remedy = f"score the trials of {attack.tested.path / 'trials'}, or remove the file: then they are left out"
        try:
            scores = read_scores(file)
        except DataError as error:
            text = f"attacker {self.name!r}: {error.text}"
            raise DataError(text, file=file, line=error.line, remedy=error.remedy or remedy) from error
        return joined(self.name, attack, scores, file, remedy)


@dataclass(frozen=True)
class ReadyVectors:
    """Embeddings made elsewhere, a file or a folder for each data directory; see `spkver.attackers.Attacker`.

        FOLDER/<data directory>{.h5,.hdf5,.npz,.scp,.ark,.pt,.safetensors,.csv,.tsv,/}   of any extractor
        FOLDER/asv_anon<suffix>/<data directory>{the same}           of one that learnt from anonymised speech
        FOLDER/asv_{orig,anon<suffix>}/emb_xvect/<data directory>/   what VoicePrivacy's toolkits keep below ``exp``

    A folder is one of those that `read_embeddings` takes: Kaldi's archives, the cache of VoicePrivacy and others.
    A semi-informed attacker has the second where they are there, else the first: what knows less it can do too.
    """

    name: str
    folder: Path
    _read: dict[Path, Embeddings] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)

    def file(self, attack: Attack, directory: DataDir) -> Path | None:
        """Return the file or folder with the embeddings of a data directory, or None."""
        name = directory.path.name
        of_attacker = self.folder / attack.name.split("/")[0]
        folders = (
            of_attacker,
            of_attacker / CACHES,
            self.folder,
            self.folder / CACHES,
            self.folder / "asv_orig" / CACHES,
        )
        for folder in folders:
            for suffix in SUFFIXES:
                if (path := folder / f"{name}{suffix}").is_file():
                    return path
            if holds_embeddings(folder / name):
                return folder / name
        return None

    def record(self, attack: Attack) -> Any:
        """Return a checksum of the embeddings of both sides."""
        both = [self._embeddings(attack, directory) for directory in (attack.enrolment, attack.tested)]
        return {"vectors": [fingerprint(embeddings.ids, np.asarray(embeddings.vectors)) for embeddings in both]}

    def lacks(self, attack: Attack) -> str:
        """Return which data directory has no embeddings, or nothing; those that are there are checked."""
        absent = [
            directory.path.name
            for directory in (attack.enrolment, attack.tested)
            if self.file(attack, directory) is None
        ]
        if absent:
            files = " and no ".join(f"{self.folder / name}.h5" for name in absent)
            return f"there is no {files} (or .npz, .scp, .ark, .pt, a folder ...)"
        self._sides(attack)
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Return the scorer; nothing is left to be learnt."""
        return self._score

    def _score(self, attack: Attack, kept: Kept) -> Scores:
        enrolled, tested = self._sides(attack)
        try:
            return cosine_scores(enrolled, tested, attack.trials)
        except DataError as error:
            text = f"attacker {self.name!r}, {attack.name}: {error.text}"
            raise DataError(text, file=self.folder, remedy=error.remedy) from error

    def _sides(self, attack: Attack) -> tuple[Embeddings, Embeddings]:
        """Embeddings of what enrols, by model, and of what is tested; all that are missing are told."""
        models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
        # an utterance that is a model of its own may enrol its speaker too
        owners: dict[str, str] = {}
        for model, utterance in zip(models.models, models.segments, strict=True):
            if model != utterance or utterance not in owners:
                owners[utterance] = model
        problems = Problems()
        sides = []
        for directory, speakers in ((attack.enrolment, owners), (attack.tested, dict.fromkeys(tested, "?"))):
            embeddings = self._embeddings(attack, directory)
            row = {utterance: number for number, utterance in enumerate(embeddings.ids.tolist())}
            missing = sorted(set(speakers) - set(row))
            if missing:
                examples = ", ".join(map(repr, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
                problems.add(
                    f"attacker {self.name!r}: {len(missing)} of {len(speakers)} utterances of {directory.path.name}"
                    f" without an embedding: {examples}",
                    file=self.file(attack, directory),
                    remedy="extract them, or remove the file: then its trials are left out",
                )  # fmt: skip
                continue
            ids = sorted(speakers)
            vectors = np.asarray(embeddings.vectors)[[row[utterance] for utterance in ids]]
            sides.append(Embeddings(np.array(ids, object), np.array([speakers[name] for name in ids], object), vectors))
        problems.raise_if_any()
        return sides[0], sides[1]

    def _embeddings(self, attack: Attack, directory: DataDir) -> Embeddings:
        file = self.file(attack, directory)
        assert file is not None  # `lacks` is asked first
        if file not in self._read:
            try:
                self._read[file] = read_embeddings(file)
            except DataError as error:
                text = f"attacker {self.name!r}: {error.text}"
                raise DataError(text, file=error.file or file, line=error.line, remedy=error.remedy) from error
        return self._read[file]


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigError(f"attacker {name!r}: no such folder", file=folder, remedy="give the folder that holds them")
