"""Networks that are trained on the training set, by a module of the user's or of this package.

A fifth of the training speakers is held out: they judge the network while it is trained, and the backend of its vectors
is chosen and trained only on them. Vectors of the speakers that a network was trained on are too compact to show how a
voice varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spkbase.errors import DataError
from spkver.attackers import lists
from spkver.attackers.folds import Fold, background_folds, fewer_trials
from spkver.attackers.protocol import TrainingSet
from spkver.datadir import DataDir
from spkver.training import HeldOut, TrainingSpeech, Utterance


def held_out_fold(versions: Sequence[DataDir], *, seed: int) -> Fold:
    """Return the speakers of a training set on whom a network is not trained, with trials.

    Raises
    ------
    DataError
        If fewer than four speakers have two recordings or pieces.
    """
    folds = background_folds(versions, seed=seed)
    if not folds:
        text = "a network needs at least four training speakers with two recordings: some of them are held out"
        raise DataError(
            text, file=versions[0].path, remedy="give more speakers, or leave out its attackers"
        )
    return folds[0]


def held_out_speech(versions: Sequence[DataDir], *, seed: int) -> tuple[DataDir, ...]:
    """Return the recordings of the held-out speakers, in all versions."""
    speakers = set(held_out_fold(versions, seed=seed).speakers)
    names = {name for name, speaker in versions[0].speakers.items() if speaker in speakers}
    return tuple(lists.select(version, names) for version in versions)


def training_speech(
    training: TrainingSet, versions: Sequence[DataDir], folder: Path, *, seed: int
) -> TrainingSpeech:
    """Return the speech that is passed to a trainer.

    Parameters
    ----------
    training : TrainingSet
    versions : sequence of DataDir
        The versions to learn from, or a part of their recordings.
    folder : Path
        Folder for recordings that are anonymised again.
    seed : int
    """
    fold = held_out_fold(versions, seed=seed)
    judging = fewer_trials(fold, seed=seed)
    first = versions[0]
    utterances = []
    for name, speaker in sorted(first.speakers.items()):
        if speaker not in fold.speakers:
            paths = tuple(version.recordings[name].absolute() for version in versions)
            original = training.original.recordings[name].absolute()
            utterances.append(
                Utterance(name, speaker, first.sexes.get(speaker, ""), original, paths)
            )
    enrolment: dict[str, list[Path]] = {}
    for name, speaker in sorted(judging.enrolment.speakers.items()):
        enrolment.setdefault(speaker, []).append(judging.enrolment.recordings[name].absolute())
    tested = {name: path.absolute() for name, path in sorted(judging.tested.recordings.items())}
    pairs = zip(judging.key.pairs(), judging.key.is_target.tolist(), strict=True)
    trials = [(model, segment, same) for (model, segment), same in pairs]
    anonymizer = training.anonymizer if training.on_anonymised else None
    return TrainingSpeech(tuple(utterances), HeldOut(enrolment, tested, trials), anonymizer, folder)
