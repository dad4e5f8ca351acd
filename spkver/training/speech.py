"""The speech on which a network is trained, and the speakers who are held out to judge it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import eer, sort_scores
from spkbase.configuration import load_config
from spkbase.errors import DataError
from spkbase.files import fingerprint
from spkbase.showing import one_line
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.datadir import DataDir

_KEY = 16  # number of digits in keys
_FURTHER = 1000  # added to the seed of the run, whose own draws use the seeds just after it


@dataclass(frozen=True)
class Utterance:
    """A recording of the training set.

    Attributes
    ----------
    id, speaker : str
    sex : str
        "f" or "m"; empty if unknown.
    original : Path
        The recording before anonymisation.
    versions : tuple of Path
        The recordings to learn from: anonymised versions, each with different random numbers, or only the original.
    """

    id: str
    speaker: str
    sex: str
    original: Path
    versions: tuple[Path, ...]


@one_line
@dataclass(frozen=True)
class HeldOut:
    """Trials of speakers on whom a network is not trained.

    Attributes
    ----------
    enrolment : dict of str to list of Path
        Recordings of each model.
    tested : dict of str to Path
        Recording of each segment.
    trials : list of (str, str, bool)
        Model, segment, and whether the speaker is the same.
    """

    enrolment: dict[str, list[Path]] = field(repr=False)
    tested: dict[str, Path] = field(repr=False)
    trials: list[tuple[str, str, bool]] = field(repr=False)

    def eer(self, embed: Callable[[Path], NDArray[Any]]) -> float:
        """Return the equal error rate of cosines.

        Parameters
        ----------
        embed : callable
            Function that returns the vector of a recording, shape (D,). A model is the mean of the unit vectors of its
            recordings.
        """
        models = {}
        for name, paths in self.enrolment.items():
            mean = np.mean([_unit(embed(path)) for path in paths], axis=0)
            models[name] = _unit(mean)
        segments = {name: _unit(embed(path)) for name, path in self.tested.items()}
        scores = np.array([models[model] @ segments[segment] for model, segment, _ in self.trials])
        is_target = np.array([same for *_, same in self.trials])
        return float(eer(sort_scores(scores[is_target], scores[~is_target])))


@one_line
@dataclass(frozen=True)
class TrainingSpeech:
    """The speech that is passed to a trainer.

    Attributes
    ----------
    utterances : tuple of Utterance
        Recordings to train on, sorted by id.
    held_out : HeldOut
        Trials of other speakers with the same versions, to choose settings and to decide when to stop.
    anonymizer : AnonymizerConfig or None
        The anonymiser of the versions; None if recordings cannot be anonymised again.
    folder : Path
        Folder for recordings that are anonymised again.
    """

    utterances: tuple[Utterance, ...] = field(repr=False)
    held_out: HeldOut
    anonymizer: AnonymizerConfig | None = None
    folder: Path = Path()

    @property
    def speakers(self) -> list[str]:
        """The speakers to train on, sorted."""
        return sorted({utterance.speaker for utterance in self.utterances})

    @property
    def recordings(self) -> list[Path]:
        """All recordings."""
        paths = list(self.held_out.tested.values())
        for enrolled in self.held_out.enrolment.values():
            paths += enrolled
        for utterance in self.utterances:
            paths += [utterance.original, *utterance.versions]
        return paths

    def anonymise(self, seed: int, *, jobs: int = 1) -> dict[str, Path]:
        """Anonymise the originals of all utterances once more, with other random numbers.

        Parameters
        ----------
        seed : int
            Seed of the version; recordings that were made before with the same seed are kept.
        jobs : int
            Worker processes.

        Returns
        -------
        dict of str to Path
            The recording of each utterance.

        Raises
        ------
        DataError
            If the anonymiser is unknown, or fails.
        """
        if self.anonymizer is None:
            raise DataError(
                "the anonymiser of the training set is not known, or uses no random numbers"
            )
        ids = [utterance.id for utterance in self.utterances]
        recordings = {utterance.id: utterance.original for utterance in self.utterances}
        speakers = {utterance.id: utterance.speaker for utterance in self.utterances}
        name = fingerprint(ids, self.anonymizer)[:_KEY]
        source = DataDir(self.folder / name, recordings, speakers)
        target = self.folder / f"{name}-seed{seed}"
        made = anonymize_datadir(
            source, target, self.anonymizer, seed=seed, side="training", jobs=jobs
        )
        return dict(made.recordings)

    def further_versions(self, most: int, *, seed: int, jobs: int = 1) -> dict[str, list[Path]]:
        """Return the versions of each utterance; if the anonymiser is known, further ones are made.

        Parameters
        ----------
        most : int
            Number of versions of an utterance; if there are already more, all are kept.
        seed : int
            Seed of the run, see `anonymise`.
        jobs : int
            Worker processes.
        """
        versions = {utterance.id: list(utterance.versions) for utterance in self.utterances}
        if self.anonymizer is not None:
            for number in range(max(map(len, versions.values())), most):
                for name, path in self.anonymise(seed + _FURTHER + number, jobs=jobs).items():
                    versions[name].append(path)
        return versions

    def to_json(self) -> str:
        """Return a text that `from_json` reads."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> TrainingSpeech:
        """Return the speech that `to_json` described."""
        values = json.loads(text)
        utterances = []
        for row in values["utterances"]:
            row["original"] = Path(row["original"])
            row["versions"] = tuple(map(Path, row["versions"]))
            utterances.append(Utterance(**row))
        held_out = values["held_out"]
        enrolment = {name: list(map(Path, paths)) for name, paths in held_out["enrolment"].items()}
        tested = {name: Path(path) for name, path in held_out["tested"].items()}
        trials = [(model, segment, same) for model, segment, same in held_out["trials"]]
        anonymizer = None
        if values["anonymizer"] is not None:
            anonymizer = load_config(AnonymizerConfig, defaults=values["anonymizer"])
        return cls(
            tuple(utterances),
            HeldOut(enrolment, tested, trials),
            anonymizer,
            Path(values["folder"]),
        )


def _unit(vector: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(vector, np.float64)
    unit: NDArray[np.float64] = values / np.linalg.norm(values)
    return unit
